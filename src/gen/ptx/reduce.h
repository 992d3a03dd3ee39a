/* reduce.h - a reduction in progress: what reduce.c and exchange.c share. */
#ifndef KL_PTX_REDUCE_H
#define KL_PTX_REDUCE_H

#include "gen/ptx/ptx.h"

enum { NCOMP = KL_MAX_FOLD + 1, LANES = 32 };

struct red {
    struct pgen *g;
    bool dry; /* only the layout */
    kl_val v;
    uint32_t axis, ncomp;
    enum cls c[NCOMP];
    opnd *x[NCOMP];
    kl_layout l;        /* coordinates stay those of the operand */
    bool any_order, up; /* up: lowest bit first */
    bool ordered;       /* the left operand must be the lower index */
    bool spread_rows;   /* other axes may end up spread over lanes */
    void (*fold)(struct red *, const opnd *lo, const opnd *hi, opnd *out);
    enum kl_op op;
    enum kl_elem e;
};

static inline uint32_t kl_red_nreg(const struct red *r)
{
    return kl_layout_nreg(&r->l);
}

void kl_red_new_regs(struct red *r, opnd *to[], uint32_t n);
void kl_red_take(struct red *r, opnd *to[]);
/* What mine and other, of lane and lane ^ (1 << j), give, into register k of to. */
void kl_red_fold_pair(struct red *r, opnd *to[], uint32_t k, uint32_t j, const opnd *mine,
                      const opnd *other);
/* Fold n columns (each ncomp values) held at v[f * ncomp], f = 0 .. n-1, as a tree.  up: as
 * neighbours first, where bit 0 of f is the lowest index bit. */
void kl_red_fold_list(struct red *r, opnd *v, uint32_t n);
/* Folds place bits at[0..n), of warps and CTAs, in that order (exchange.c). */
void kl_red_exchange(struct red *r, const uint32_t *at, uint32_t n);

#endif
