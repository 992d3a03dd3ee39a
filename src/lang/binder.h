/* binder.h - private to bind*.c: the state of one binding, and its steps in their order.
 *
 * A step that finds a fault reports it and clears `ok`; those behind it are then left out. */
#ifndef KL_BINDER_H
#define KL_BINDER_H

#include "lang/setup.h"

struct binder {
    kl_elab e;
    const kl_node *params;
    uint32_t n;                /* parameters: the length of each array below */
    struct kl_boundparam *b;
    const kiln_arg **arg;      /* given by the host, or NULL */
    bool *known;               /* scalars, constants, types */
    const char **from;         /* "x": the array a scalar was deduced from */
    kl_sym **sym;
    kl_diags *d;
    kl_bound *out;
    unsigned flags;            /* KL_BIND_.. */
    bool ok;
};

/* ---- bind.c ---- */

/* An error at a node, or at none (NULL); notes may be added to it. */
struct kl_diag *kl_bind_problem(struct binder *s, enum kl_code code, const kl_node *at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
const char *kl_bind_shape_text(struct binder *s, uint32_t rank, const int64_t *ext); /* "2x3", "()" */
/* The value of an expression; without one: reported, false. */
bool kl_bind_i64(struct binder *s, const kl_node *n, const char *what, int64_t *out);
/* A binder of a kernel's parameters with what the host gives; out->param and known are for all of them. */
void kl_bind_begin(struct binder *s, kl_arena *a, const kl_module_ast *m, const kl_node *kernel,
                   const kiln_arg *args, size_t n, kl_bound *out, bool *known, kl_diags *d);
/* Parameters as symbols, then their element types. */
void kl_bind_declare(struct binder *s);

/* ---- bind_args.c ---- */

bool kl_bind_preferred(const kiln_arg *a); /* a constant that stands behind what was tuned */
void kl_bind_match(struct binder *s, const kiln_arg *args, size_t n);
void kl_bind_set(struct binder *s, uint32_t p); /* b[p] holds the value: it is known from here on */
bool kl_bind_fits(enum kl_elem el, kl_i128 v);
bool kl_bind_number(struct binder *s, uint32_t p, const kiln_arg *a);
bool kl_bind_tensor(struct binder *s, uint32_t p); /* are its type, rank and extents possible ones? */
void kl_bind_types(struct binder *s);
void kl_bind_declared_types(struct binder *s);

/* ---- bind_deduce.c ---- */

/* Which unknown parameter does an expression depend on?  -1 none, -2 several. */
int kl_bind_unknown(struct binder *s, const kl_node *n);
/* The steps from the value of an expression back to the unknown name in it.  false: there are none, or
 * the other sides are not known. */
bool kl_bind_steps(struct binder *s, const kl_node *n, struct kl_source *o);
int64_t kl_bind_stride(const kiln_tensor *t, uint32_t d);
void kl_bind_deduce(struct binder *s);

/* ---- bind_tune.c ---- */

void kl_bind_tuned(struct binder *s, const kl_module_ast *m, const kl_node *kernel);
void kl_bind_fill_space(struct binder *s, const kl_node *clauses, kl_space *out);

/* ---- bind_array.c ---- */

void kl_bind_arrays(struct binder *s);
void kl_bind_aliases(struct binder *s, kl_bound *out);

#endif
