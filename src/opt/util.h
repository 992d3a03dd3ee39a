/* util.h - what several passes need. */
#ifndef KL_UTIL_H
#define KL_UTIL_H

#include "ir/ir.h"
#include "opt/pass.h"

/* Is v a constant (of a scalar or of all elements of a tile)? */
static inline bool kl_is_const(const kl_fn *f, kl_val v)
{
    return kl_in(f, v)->op == KL_OP_const;
}
static inline bool kl_is_bits(const kl_fn *f, kl_val v, uint64_t bits)
{
    return kl_is_const(f, v) && kl_in(f, v)->attr.bits == bits;
}

/* Carried values of a for or while, results of an if. */
struct kl_carry {
    uint32_t n, first;  /* how many; the operand that is the first (3 for a for) */
    uint32_t iv;        /* parameters of a block in front of the carried ones */
};
struct kl_carry kl_carried(const kl_fn *f, kl_val v);
/* Parameter k of a block, counted from its head. */
kl_val kl_param_at(const kl_fn *f, kl_blk b, uint32_t k);
/* Forget carried value or result k where drop[k]: operand, parameters, yields, result.
 * No use of the parameters and results may remain. */
void kl_drop_carried(kl_fn *f, kl_val v, const bool *drop);

/* Trips of a for with constant bounds; false if they are not constant, the step is not
 * positive, or the induction variable would wrap. */
bool kl_const_trips(const kl_fn *f, kl_val v, uint64_t *trips);
/* Instructions of a block, nested ones included. */
uint32_t kl_block_size(const kl_fn *f, kl_blk b);

#endif
