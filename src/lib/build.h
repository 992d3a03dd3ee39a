/* build.h - private to kiln build (build*.c): what one call gathers, and what one function of the
 * generated file is.  Everything raises; kl_tool_build is the guard. */
#ifndef KL_BUILD_H
#define KL_BUILD_H

#include "lang/setup.h"
#include "lib/lib.h"
#include "tool.h"

enum { /* parameters and slots: as in aot_launch.inc */
    MAX_VALUES = 64, /* of one list */
    MAX_VARIANTS = 1024,
    MAX_PARAMS = 48,
    MAX_SLOTS = 512,
    MAX_OPTIONAL = 3
};

/* A -D option: the values of a type or constant, or whether an optional array is given. */
struct def {
    const char *name;
    uint32_t n;
    bool list; /* more than one value was asked for */
    bool fixed; /* "256!": whatever the shapes, as if every launch gave it */
    bool used;
    kiln_arg v[MAX_VALUES];
};

struct text {
    const char *s, *name;
    size_t n;
    bool v4; /* C: wanted for x86-64-v4, too */
};
typedef KL_VEC(struct text) texts;

struct build {
    struct kl_call *c;
    kl_arena *a;
    kiln_module *mod;
    const kl_tool_build_opts *o;
    struct def *def;              /* o->ndefine of them */
    const char *upper;            /* the name of the files in capitals */
    texts code, ptx, extra;       /* kernels in C and PTX; their numbers of struct kl_cpu */
    kl_buf tables, wrap, protos, manifest;
    KL_VEC(const char *) names;   /* of functions */
    uint32_t nfn, cpu;            /* functions so far; 1: for the CPU, too */
};

/* A kernel with types: one function of the file. */
struct function {
    struct build *b;
    kiln_kernel *k;
    const kl_node *params;
    kl_bound bound;
    bool *known;
    kl_sources src;
    const char *name;      /* in C */
    kiln_arg *args;        /* types, fixed constants; behind them those of the variant */
    uint32_t nargs;
    uint32_t con[MAX_PARAMS], ncon; /* parameters: constants with a list */
    bool isc[MAX_PARAMS];  /* is one of them */
    bool isarg[MAX_PARAMS]; /* a scalar or constant that the caller gives */
    uint32_t opt[MAX_OPTIONAL], nopt; /* optional arrays that may be given */
    bool approximate;      /* some text for a GPU has bits of its own */
    uint32_t fixed;        /* by position among the arrays: optional ones that are always given */
};

/* build.c */
void kl_build_fail(struct build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));

/* build_def.c */
void kl_build_read_def(struct build *b, struct def *d, const char *text);
struct def *kl_build_def(struct build *b, const char *name); /* NULL: there is none */

/* build_function.c */
enum kl_pk kl_build_kind(const struct function *f, uint32_t i);
bool kl_build_deduced(const struct function *f, uint32_t i); /* do shapes give it at every launch? */
/* One kernel with one choice of types: at[i] of the values of type parameter i. */
void kl_build_function(struct build *b, kiln_kernel *k, const uint32_t *at);

/* build_variant.c: all variants of a function; the kernel's clauses, as fields of struct kl_cpu. */
void kl_build_variants(struct function *f);
const char *kl_build_clauses(struct build *b, const kl_bound *bd, const bool *open);

/* build_table.c */
const char *kl_build_c_name(struct build *b, const char *s); /* a name for C and C++ */
const char *kl_build_quoted(struct build *b, const char *s);
void kl_build_defaults(struct function *f);
void kl_build_params(struct function *f);
void kl_build_wrapper(struct function *f);

/* build_file.c */
void kl_build_put_header(struct build *b, kl_buf *out);
void kl_build_put_source(struct build *b, kl_buf *out);

/* aot_*.inc and base/place.h, made by tools/ctext.awk: what every generated file contains, in pieces,
 * NULL at the end. */
extern const char *const kl_text_aot_header[], *const kl_text_place[], *const kl_text_aot_launch[],
    *const kl_text_aot_device[], *const kl_text_aot_run[];

#endif
