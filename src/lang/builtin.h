/* builtin.h - private to src/lang: what the files of built-in functions share. */
#ifndef KL_BUILTIN_H
#define KL_BUILTIN_H

#include "lang/elab.h"

enum { KL_MAX_ARGS = 10 };

/* Designators that calls of built-ins may have. */
enum { KL_DG_AXIS, KL_DG_MASK, KL_DG_CACHE, KL_DG_COMM, KL_DG_PREC, KL_DG_REVERSE, KL_DG_ORDER,
       KL_DG_SCOPE, KL_NDESIG };

/* The arguments of a call, sorted into positions and designators. */
struct kl_args {
    const kl_node *call;
    const kl_node *pos[KL_MAX_ARGS];
    uint32_t n;
    const kl_node *desig[KL_NDESIG];
    kl_span s;
};

struct kl_builtin;
typedef kl_value kl_builtin_fn(kl_elab *e, const struct kl_builtin *b, struct kl_args *a);

struct kl_builtin {
    const char *name;
    kl_builtin_fn *fn;
    uint16_t op;      /* enum kl_op, where the handler serves several */
    uint8_t min, max; /* positional arguments */
    uint16_t desig;   /* bit KL_DG_... of each designator allowed */
    bool fast;        /* the form with a bounded error */
};

static inline kl_value kl_arg_value(kl_elab *e, struct kl_args *a, uint32_t i)
{
    return kl_rvalue(e, a->pos[i]);
}

/* The word given for a designator (builtin.c); out keeps what it is without one.  false: reported. */
bool kl_get_word(kl_elab *e, const kl_node *d, const char *const *words, uint32_t n, uint32_t *out);

/* builtin_ew.c */
kl_builtin_fn kl_call_math2, kl_call_bits;
kl_builtin_fn kl_call_math1, kl_call_rcp, kl_call_abs, kl_call_int2, kl_call_pow2ceil, kl_call_fma, kl_call_isnan;
/* v as a float (promoted); false: reported */
bool kl_need_float(kl_elab *e, kl_value *v, const char *name);
/* a function of two numbers, element by element; exact on untyped integers */
kl_value kl_two_args(kl_elab *e, const struct kl_builtin *b, kl_value x, kl_value y, kl_span s);

/* builtin_shape.c */
kl_builtin_fn kl_call_range, kl_call_full, kl_call_broadcast, kl_call_reshape, kl_call_trans, kl_call_permute,
    kl_call_cat, kl_call_flip;
kl_builtin_fn kl_call_gather;
/* The axis given by .axis; def: when left out (-1: it must be given).  false: reported. */
bool kl_get_axis(kl_elab *e, struct kl_args *a, const kl_value *v, int def, uint32_t *axis);
kl_value kl_shaped(kl_elab *e, kl_value v, enum kl_op op, uint32_t rank, const kl_dim *dim,
                   union kl_attr attr, kl_span s);
kl_value kl_flatten(kl_elab *e, kl_value v, kl_span s);

/* builtin_reduce.c */
kl_builtin_fn kl_call_reduce, kl_call_minmax, kl_call_argmax, kl_call_dot;

/* builtin_fold.c */
kl_builtin_fn kl_call_reduce_fn, kl_call_scan;

/* debug.c */
kl_builtin_fn kl_call_assert, kl_call_print;

/* builtin_random.c */
kl_builtin_fn kl_call_philox;

/* builtin_array.c */
kl_builtin_fn kl_call_load, kl_call_store, kl_call_inside, kl_call_coord, kl_call_given, kl_call_size,
    kl_call_rank, kl_call_program, kl_call_bitcast, kl_call_cvt;

/* The access that is the first argument; false: reported.  (builtin_array.c) */
kl_value kl_arg_access(kl_elab *e, struct kl_args *a);

/* builtin_atomic.c; op: what it does, enum kl_rmw or one of these. */
enum { KL_AT_LOAD = 32, KL_AT_STORE };
kl_builtin_fn kl_call_atomic;

#endif
