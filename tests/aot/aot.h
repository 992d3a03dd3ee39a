/* aot.h - private to the test of `kiln build` over cases: what its parts share. */
#ifndef AOT_H
#define AOT_H

#include "cli/args.h"
#include "tool.h"

enum { PARAMS = 48 };

/* As the generated headers declare them. */
struct aot_tensor {
    void *data;
    int32_t dtype, ndim;
    const int64_t *shape, *strides;
    uint64_t size_bytes;
};
typedef void aot_body(void *arg, int64_t begin, int64_t end);
typedef void aot_run(void *user, int64_t n, aot_body *body, void *arg);

/* One generated library, through functions that the test writes beside it. */
struct aot_entry {
    int (*load)(void **lib, int device);
    void (*unload)(void *lib);
    int (*call)(void *lib, void *stream, const struct aot_tensor *const *t, const uint64_t *v);
    const char *(*detail)(void), *(*strerror)(int), *(*manifest)(void);
    void (*parallel)(void *lib, aot_run *run, void *user);
    int (*level)(const void *lib);
};

/* What a manifest says of one parameter. */
struct aot_param {
    char *name;
    enum { ARRAY, SCALAR, CONSTANT, TYPE } kind;
    enum kl_elem elem;
    bool argument, optional, varies; /* varies: a constant with a list */
};

/* One build: a kernel with types, constants and optional arrays. */
struct aot_built {
    char *key, *name, *function, *manifest;
    struct aot_param p[PARAMS];
    uint32_t n;
    bool approximate; /* on a GPU */
    const struct aot_entry *e;
    void *lib;
};

struct aot_case {
    const struct kl_case *c;
    const char *name; /* of c */
    unsigned line;
    kiln_kernel *k;
    struct kl_args want, got; /* of the interpreter, of the generated code */
    kl_tool_param *par;
    int64_t grid[3];
    struct aot_built *b;      /* NULL: no launch is expected to come about */
};

struct aot_counts {
    unsigned passed, failed, builds, launches, refused, variant;
};

/* Reads the manifest of b; false: it is not what it must be, which is printed. */
bool aot_manifest(struct aot_built *b, const kiln_kernel *k);
/* The arrays and values for a call, by the arguments of kl_args; v from bound values. */
const kiln_tensor *aot_find(const kiln_arg *arg, size_t n, const char *name);
/* Launches with arguments that are wrong in many ways: the generated code and kl_bind must say the
 * same (launches.c). */
bool aot_launches(struct aot_case *r, const char *path, struct aot_counts *t);

#endif
