/* convert.c - how a tile gets from one layout to another.
 *
 * For each bit of a destination place the map `from` tells which source place bits to change, so
 * that the two hold the same element.  It keeps thread bits where it can: an element is looked
 * for in other registers of the thread first, then in the warp, then in the CTA.  How far it has
 * to go for some bit decides the kind. */
#include "layout/plan.h"

/* Costs in wavefronts of one warp: a trip through shared memory has address arithmetic and
 * latency that no count of accesses shows, and so has a barrier of the CTA. */
enum { COST_TRIP = 16, COST_BARRIER = 16 };

/* dst place -> src place; false if some element lies nowhere in the source. */
static bool find_source(const kl_layout *src, const kl_layout *dst, kl_lin *from)
{
    kl_basis b;
    b.lead = 0;
    memset(from, 0, sizeof *from);
    for (uint32_t p = kl_layout_places(src); p; p &= p - 1)
        kl_basis_add(&b, src->map.v[__builtin_ctz(p)], p & -p);
    for (uint32_t p = kl_layout_places(dst); p; p &= p - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(p), stay = i < KL_LANE0 ? 0 : p & -p, move;
        if (!kl_basis_solve(&b, dst->map.v[i] ^ (stay ? src->map.v[i] : 0), &move))
            return false;
        from->v[i] = stay ^ move;
    }
    return true;
}

/* The place bits that change on the way, registers for registers left out. */
static uint32_t moved_bits(const kl_layout *dst, const kl_lin *from)
{
    uint32_t moved = 0;
    for (uint32_t p = kl_layout_places(dst); p; p &= p - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(p);
        moved |= i < KL_LANE0 ? from->v[i] & ~(kl_place((1u << KL_MAX_REG_BITS) - 1, 0, 0, 0))
                              : from->v[i] ^ (p & -p);
    }
    return moved;
}

static uint32_t shuffle_cost(const kl_conv *c)
{
    uint32_t words = c->bytes > 4 ? 2 : 1;
    return words * (c->shuffle.nshuffle + c->shuffle.nselect / 2);
}

static uint32_t shared_cost(const kl_conv *c)
{
    const kl_shared *s = &c->shared;
    uint32_t waves = s->st.waves * s->st.requests + s->ld.waves * s->ld.requests;
    return COST_TRIP + waves / kl_layout_nwarp(&c->dst) +
           ((s->in_warp ? 0 : COST_BARRIER) << s->rounds);
}

void kl_conv_plan(kl_conv *c, const kl_layout *src, const kl_layout *dst, uint32_t bytes,
                  uint32_t max_bytes, uint32_t flags)
{
    memset(c, 0, sizeof *c);
    c->src = *src;
    c->dst = *dst;
    c->bytes = (uint8_t)bytes;
    c->kind = KL_CONV_BAD;
    if (src->bad || dst->bad || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) ||
        !kl_layout_same_shape(src, dst) ||
        memcmp(src->nbit + 1, dst->nbit + 1, KL_NWHERE - 1) != 0 ||
        !find_source(src, dst, &c->from))
        return;
    uint32_t moved = moved_bits(dst, &c->from);
    bool in_cta = !(moved >> KL_CTA0), by_cta = false;
    for (uint32_t i = KL_CTA0; i < (uint32_t)KL_CTA0 + dst->nbit[KL_IN_CTA]; i++)
        by_cta |= c->from.v[i] != 1u << i;
    c->in_warp = !(moved >> KL_WARP0) && !by_cta;
    if (kl_layout_eq(src, dst)) {
        c->kind = KL_CONV_NONE;
        return;
    }
    if (!moved) {
        c->kind = KL_CONV_RENAME;
        memcpy(c->rename.v, c->from.v, KL_MAX_REG_BITS * sizeof c->rename.v[0]);
        return;
    }
    if (!in_cta) {
        c->kind = KL_CONV_CLUSTER;
        return;
    }
    if (c->in_warp) {
        kl_plan_shuffle(c);
        c->kind = KL_CONV_SHUFFLE;
        c->cost = shuffle_cost(c);
        /* No trip is cheaper than its fixed part and the bytes in and out. */
        uint32_t least = COST_TRIP + (kl_layout_nreg(src) + kl_layout_nreg(dst)) * bytes / 4;
        if (flags & KL_CONV_NO_SHARED || (!(flags & KL_CONV_NO_SHUFFLE) && c->cost <= least))
            return;
    }
    bool fits = kl_plan_shared(c, max_bytes, flags);
    if (!fits && c->in_warp && !(flags & KL_CONV_NO_SHUFFLE))
        return;
    uint32_t cost = fits ? shared_cost(c) : 0;
    if (fits && c->in_warp && !(flags & KL_CONV_NO_SHUFFLE) && c->cost <= cost)
        return;
    c->kind = fits ? KL_CONV_SHARED : KL_CONV_TOO_BIG;
    c->cost = cost;
}

const char *kl_conv_name(const kl_conv *c)
{
    static const char *const name[] = {"none",    "rename",  "shuffle", "shared",
                                       "cluster", "too big", "bad"};
    return name[c->kind];
}

void kl_conv_print(kl_buf *b, const kl_conv *c)
{
    static const char *const swizzle[KL_NSWIZZLE] = {"plain", "padded", "xor", "span"};
    const kl_shared *s = &c->shared;
    kl_puts(b, kl_conv_name(c));
    if (c->kind == KL_CONV_SHUFFLE)
        kl_putf(b, ": %u shuffles, %u selects, %s", c->shuffle.nshuffle, c->shuffle.nselect,
                c->shuffle.bfly ? "butterfly" : "indexed");
    if (c->kind == KL_CONV_SHARED)
        kl_putf(b,
                ": %s, %u bytes x %u rounds, store %u x %u bytes %u/%u wavefronts, load %u x %u "
                "bytes %u/%u wavefronts, %s barrier",
                swizzle[s->swizzle], s->bytes, 1u << s->rounds, s->st.requests,
                (uint32_t)c->bytes << s->st.nvec, s->st.waves, s->st.ideal, s->ld.requests,
                (uint32_t)c->bytes << s->ld.nvec, s->ld.waves, s->ld.ideal,
                s->in_warp ? "warp" : "CTA");
}
