/* sums.h - float atomics: does the order of programs show in the result?
 *
 * Every addition is written down.  At the end those of one element are summed again in other
 * orders that the language allows: programs from the last to the first, the elements of one
 * atomic from the last to the first, but the atomics of a program in their order; and where that
 * gives the same bits, from eight other programs (elements) on, the first ones last. */
#ifndef KL_SUMS_H
#define KL_SUMS_H

#include "base/mem.h"

struct kl_sum {
    uint64_t old, value; /* bits before, and what was added */
    const char *at;
    uint32_t program, seq, lane, site;
    bool wide; /* f64 */
};

struct kl_sums {
    kl_arena *a;
    KL_VEC(struct kl_sum) add;
    bool full; /* too many: the rest is not looked at */
};

struct kl_sum_order { /* of one site */
    uint32_t site, program, other, lane;
    bool wide;
    const char *at;
    uint64_t bits[2], count; /* the first element whose two sums differ; how many there are */
};

void kl_sums_add(struct kl_sums *q, const struct kl_sum *x);
/* Sites at which some element differs, in q->a; *n of them. */
const struct kl_sum_order *kl_sums_orders(struct kl_sums *q, uint32_t *n);

#endif
