/* args.h - arguments of a launch from NAME=VALUE pairs, and the arrays behind them. */
#ifndef KL_ARGS_H
#define KL_ARGS_H

#include "cli/npy.h"
#include "cli/value.h"

/* NAME=VALUE.  define: it came from -D, so the parameter must be a constant, scalar or type. */
struct kl_assign {
    const char *name, *value;
    bool define;
};

struct kl_arr {
    const kiln_param_info *p;
    enum kl_elem elem;
    int32_t ndim;
    int64_t shape[KL_DIMS], stride[KL_DIMS];
    uint64_t count;
    uint64_t span;        /* elements of its memory from data on; 0: count */
    int64_t offset;       /* elements between a multiple of 256 bytes and element [0,...,0] */
    void *data;           /* NULL where only the shape matters */
    bool dense;           /* row-major without gaps */
    bool made;            /* allocated here for the kernel to write, and poisoned */
    const char *alias;    /* the parameter whose memory this is, or NULL */
    bool shared;          /* that one belongs to a kernel before this one */
    struct kl_npyfile file;
    void *owned;
};

/* Arguments of the kernels that run before, the latest first. */
struct kl_earlier {
    const struct kl_args *args;
    const struct kl_earlier *before;
};

struct kl_args {
    kiln_kernel *k;
    const struct kl_earlier *before; /* where @NAME is looked for, too */
    kiln_arg *arg; /* for the calls of kiln.h */
    size_t n;
    struct kl_arr *arr; /* those that have a value or were allocated */
    size_t narr;
};

enum {
    KL_ARGS_SHAPES = 1, /* make no memory: shapes and types are enough */
    KL_ARGS_REFERENCE = 2, /* for a reference kernel: pass over names that it does not have, and
                              let what it writes have memory of its own */
    KL_ARGS_READS = 4, /* allocate what the kernel also reads: for `kiln check` */
    KL_ARGS_WORDS = 8, /* x=8192x4096:f32 is an array, too: see shape.h */
    KL_ARGS_INTEGERS = 16 /* with SHAPES: give memory to integers, which indices are made of */
};

/* Give the parameters of k their values.  On failure *a is empty and m says why. */
bool kl_args_set(struct kl_args *a, kiln_kernel *k, const struct kl_assign *as, size_t n,
                 unsigned flags, struct kl_msg *m);
bool kl_args_set_after(struct kl_args *a, kiln_kernel *k, const struct kl_assign *as, size_t n,
                       unsigned flags, const struct kl_earlier *before, struct kl_msg *m);
/* Allocate and poison what is not given and is only written (optional arrays only if listed in
 * wanted, NULL-terminated).  KILN_OK, or a status with diags or a message in m (m->rc set). */
kiln_status kl_args_outputs(struct kl_args *a, const char *const *wanted, unsigned flags,
                            kiln_diags **diags, struct kl_msg *m);
void kl_args_free(struct kl_args *a);
struct kl_arr *kl_args_find(const struct kl_args *a, const char *name); /* NULL: no value */

/* FILE, FILE:TYPE, FILE.safetensors[:NAME] into r, which keeps r->p. */
bool kl_arr_read(struct kl_arr *r, const char *text, struct kl_msg *m);
void kl_arr_free(struct kl_arr *r);

/* The parameter of that name, or NULL and a message that proposes the nearest. */
const kiln_param_info *kl_param_find(const kiln_kernel *k, const char *name, struct kl_msg *m);

/* Element i in row-major order. */
const void *kl_arr_at(const struct kl_arr *a, uint64_t i);
/* Elements that still hold the poison: never written, or (integers) written with it. */
uint64_t kl_arr_poisoned(const struct kl_arr *a);
void kl_arr_poison(struct kl_arr *a, unsigned pattern); /* pattern 0 or 1 */
char *kl_shape_text(int32_t ndim, const int64_t *shape, char *buf, size_t n); /* "512x1000" */
char *kl_index_text(const struct kl_arr *a, uint64_t i, char *buf, size_t n); /* "[3][17]" */
/* The shortest text that reads back as the same bits. */
char *kl_elem_text(enum kl_elem e, uint64_t bits, char buf[32]);

#endif
