/* verifier.h - private to verify*.c: checks return false when they find a fault, which is recorded. */
#ifndef KL_VERIFIER_H
#define KL_VERIFIER_H

#include "ir/ir.h"
#include "ir/text.h"

struct verifier {
    const kl_fn *f;
    kl_arena *a;
    const char *msg;
    kl_val where;   /* of msg; 0: no instruction in particular */
    uint8_t *seen;  /* per instruction: SEEN, VISIBLE */
    uint8_t *owned; /* per block */
};

enum { SEEN = 1, VISIBLE = 2 }; /* in a block's list; visible where the walk is */

/* Record the first fault, of instruction v; false, so that callers can return it. */
bool kl_vf_bad(struct verifier *c, kl_val v, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* In a check of instruction v. */
#define NEED(cond, ...)                                                                            \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return kl_vf_bad(c, v, __VA_ARGS__);                                                   \
    } while (0)

const char *kl_vf_text(struct verifier *c, const struct kl_type *t);

/* verify_row.c */
const struct kl_type *kl_vf_arg(struct verifier *c, kl_val v, uint32_t i); /* the type of an operand */
bool kl_vf_is_scalar(const struct kl_type *t, enum kl_elem e);
bool kl_vf_is_num(enum kl_elem e);
bool kl_vf_row(struct verifier *c, kl_val v);

/* verify_access.c */
bool kl_vf_access(struct verifier *c, kl_val v);

/* verify_flow.c */
bool kl_vf_tiles(struct verifier *c, kl_val v); /* all operands are tiles */
bool kl_vf_control(struct verifier *c, kl_val v);
bool kl_vf_fold(struct verifier *c, kl_val v);
bool kl_vf_param(struct verifier *c, kl_val v);
bool kl_vf_result(struct verifier *c, kl_val v);

#endif
