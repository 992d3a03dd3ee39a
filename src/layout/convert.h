/* convert.h - plans that bring a tile from one layout to another.
 *
 * kl_conv_plan decides how: not at all, by other names for registers, by shuffles inside a warp, or
 * through shared memory; and it says everything an emitter needs.  Dead places take part like
 * others, with values that nobody reads; registers that hold no element in any thread may be
 * skipped on either side. */
#ifndef KL_CONVERT_H
#define KL_CONVERT_H

#include "layout/layout.h"

enum kl_conv_kind {
    KL_CONV_NONE,    /* the same places */
    KL_CONV_RENAME,  /* register r is register kl_lin_at(&rename, r) of the source */
    KL_CONV_SHUFFLE, /* inside each warp */
    KL_CONV_SHARED,  /* through shared memory */
    KL_CONV_CLUSTER, /* elements cross CTAs: no plan is made yet */
    KL_CONV_TOO_BIG, /* more shared memory than allowed, however it is divided */
    KL_CONV_BAD      /* another shape or other numbers of threads, or the source lacks elements */
};

/* ---- shuffles ----
 *
 * Three phases.  x are the source's registers, y what the shuffles give, z the result:
 *   1. for each pre swap:  x[r] <- p ? x[r ^ regs] : x[r],   all r at once
 *   2. for each t:         y[t] <- x[src(t)] of lane (across ^ lane(t))
 *   3. for each post swap: y[t] <- p ? y[t ^ regs] : y[t];   z[r] = y[r]
 * where p is the parity of (thread & mask), thread = lane | warp << 5, and across is a linear
 * function of the thread: the lane itself if `bfly`, so that lane(t) is the mask of a butterfly.
 * kl_shuffle_ops writes the three phases out, without what nobody needs. */

typedef struct kl_swap {
    uint32_t mask; /* bits of the thread number */
    uint32_t regs;
} kl_swap;

enum { KL_MAX_SWAP = 10 };

typedef struct kl_shuffle {
    kl_swap pre[KL_MAX_SWAP], post[KL_MAX_SWAP];
    uint8_t npre, npost;
    uint8_t ybits; /* y has 2^ybits registers: those of the result, and now and then more */
    bool bfly;
    kl_lin src, lane, same;     /* by t; same(t) has the value of t, once for all such */
    kl_lin across;              /* thread -> lane */
    uint32_t nshuffle, nselect; /* upper bounds */
} kl_shuffle;

/* ---- shared memory ----
 *
 * Element with coordinate word c lies at byte offset(c).  Each side is a row of accesses: one for
 * each register that has none of the bits in `vecs` or `skip_regs`.  Element i of the access at
 * register r is the register with bit vec[k] set for each bit k of i, for i below 2^nvec.  The
 * byte address is  base + (thread part ^ flip) + add:  see kl_side_thread and kl_side_reg.  Threads
 * (thread = lane | warp << 5) with a bit of skip_threads set do not take part.  After the loads a
 * register with a bit in skip_regs is the register without it. */

typedef struct kl_side {
    uint32_t bit[KL_PLACE_BITS]; /* byte offset of each place bit */
    uint8_t vec[4], nvec;        /* register bits that are one access, lowest address bit first */
    uint32_t vecs;               /* the same as a mask */
    uint32_t skip_regs;          /* bits of a register: it repeats another */
    uint32_t skip_threads;       /* bits of lane | warp << 5: it repeats another */
    uint8_t round[KL_MAX_REG_BITS]; /* register bit that is bit k of the round's number */
    uint32_t threads;               /* offset bits that the thread part can have, if not additive */
    uint32_t nflip;                 /* different thread parts: address registers */
    uint32_t waves, ideal;          /* wavefronts of one access of a warp, and at best */
    uint32_t requests; /* accesses of all warps in all rounds, dead registers included */
} kl_side;

/* One term of a thread part: ((thread & mask) >> shr) * mul. */
enum { KL_MAX_TERM = 64 };
typedef struct kl_term {
    uint32_t mask, mul;
    uint8_t shr;
} kl_term;

enum kl_swizzle { KL_SWZ_PLAIN, KL_SWZ_PAD, KL_SWZ_XOR, KL_SWZ_SPAN, KL_NSWIZZLE };

typedef struct kl_shared {
    kl_side st, ld;
    kl_lin offset;   /* coordinate word -> byte offset inside a round, by bits */
    uint8_t swizzle; /* enum kl_swizzle */
    bool additive;   /* offsets of bits are added (padding); otherwise they are exclusive-ored */
    bool in_warp;    /* each warp reads what it wrote: a warp barrier is enough */
    uint8_t rounds;  /* log2; the same memory is used again, with barriers between */
    uint32_t bytes;  /* shared memory of one round, to be aligned to 128 */
} kl_shared;

typedef struct kl_conv {
    uint8_t kind;  /* enum kl_conv_kind */
    uint8_t bytes; /* of an element */
    bool in_warp;  /* no element leaves its warp */
    kl_layout src, dst;
    kl_lin from; /* destination place -> a source place that holds the same element */
    kl_lin rename;
    kl_shuffle shuffle;
    kl_shared shared;
    uint32_t cost; /* of one warp, in wavefronts: how kinds are compared */
} kl_conv;

enum kl_conv_flags {
    KL_CONV_NO_SHUFFLE = 1, /* shared memory instead */
    KL_CONV_NO_SHARED = 2,  /* shuffles whenever no element leaves its warp */
    KL_CONV_NO_SWIZZLE = 4, /* row-major offsets as they are, to see what they cost */
    KL_CONV_PAD_ONLY = 8    /* these, or with gaps */
};

/* Elements of 1, 2, 4 or 8 bytes; shared memory up to max_bytes a round. */
void kl_conv_plan(kl_conv *c, const kl_layout *src, const kl_layout *dst, uint32_t bytes,
                  uint32_t max_bytes, uint32_t flags);

/* A shuffle plan as straight-line code.  Values are numbered: 0 ... nreg-1 are the source's
 * registers, op i makes value nreg + i. */
enum kl_shop { KL_SH_SELECT, KL_SH_BFLY, KL_SH_IDX };
#define KL_NOVALUE 0xffffffffu
typedef struct kl_shuffle_op {
    uint8_t op;
    uint32_t a, b; /* SELECT: p ? b : a.  Others: a of lane (across ^ lane) */
    uint32_t mask; /* SELECT: p is the parity of thread & mask */
    uint32_t lane;
} kl_shuffle_op;
typedef struct kl_shuffle_code {
    KL_VEC(kl_shuffle_op) op;
    uint32_t *result; /* value of each register of dst; KL_NOVALUE: dead in every thread */
} kl_shuffle_code;
kl_shuffle_code kl_shuffle_ops(const kl_conv *c, kl_arena *a);

/* Terms of the thread part; they are added or exclusive-ored as `additive` says.  The number of
 * the CTA is not part of the thread: in a cluster the load side's bit[KL_CTA0 + i] come in. */
uint32_t kl_side_thread(const kl_shared *s, const kl_side *side, kl_term term[KL_MAX_TERM]);
/* The part of register r: flip, 0 when additive, and what is added. */
void kl_side_reg(const kl_shared *s, const kl_side *side, uint32_t r, uint32_t *flip,
                 uint32_t *plus);
/* The whole offset of a place, for those who want no closed form. */
uint32_t kl_side_at(const kl_shared *s, const kl_side *side, uint32_t place);
/* The registers of round k: r takes part if this is true. */
bool kl_side_in_round(const kl_shared *s, const kl_side *side, uint32_t r, uint32_t k);

/* Terms of any linear function of thread bits, to be exclusive-ored (`across`). */
uint32_t kl_lin_terms(const kl_lin *f, uint32_t nbit, kl_term term[KL_MAX_TERM]);

const char *kl_conv_name(const kl_conv *c);
/* One line: kind, steps, bytes, wavefronts. */
void kl_conv_print(kl_buf *b, const kl_conv *c);

#endif
