/* algebra.c - inverse, replicas, comparison, and what is where. */
#include "layout/layout.h"

bool kl_layout_same_shape(const kl_layout *a, const kl_layout *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (a->dim[d] != b->dim[d])
            return false;
    return true;
}

bool kl_layout_eq(const kl_layout *a, const kl_layout *b)
{
    if (!kl_layout_same_shape(a, b) || memcmp(a->nbit, b->nbit, sizeof a->nbit) != 0 ||
        a->bad != b->bad)
        return false;
    return memcmp(a->map.v, b->map.v, KL_PLACE_BITS * sizeof a->map.v[0]) == 0;
}

bool kl_layout_is_unit(const kl_layout *l)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < KL_PLACE_BITS; i++) {
        uint32_t v = l->map.v[i];
        if (v & (v - 1) || v & seen)
            return false;
        seen |= v;
    }
    return true;
}

/* All vectors, each known by its place bit; returns the bits that are sums of lower ones. */
static uint32_t gather(const kl_layout *l, kl_basis *b)
{
    uint32_t dependent = 0;
    b->lead = 0;
    for (uint32_t p = kl_layout_places(l); p; p &= p - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(p);
        if (!kl_basis_add(b, l->map.v[i], 1u << i))
            dependent |= 1u << i;
    }
    return dependent;
}

uint32_t kl_layout_replicas(const kl_layout *l)
{
    kl_basis b;
    return gather(l, &b);
}

uint32_t kl_layout_rank(const kl_layout *l)
{
    kl_basis b;
    gather(l, &b);
    return kl_basis_rank(&b);
}

bool kl_layout_is_injective(const kl_layout *l)
{
    return kl_layout_replicas(l) == 0;
}

bool kl_layout_is_surjective(const kl_layout *l)
{
    return kl_layout_rank(l) == kl_layout_coord_bits(l);
}

bool kl_layout_inverse(const kl_layout *l, kl_lin *inv)
{
    kl_basis b;
    uint32_t n = kl_layout_coord_bits(l);
    gather(l, &b);
    if (kl_basis_rank(&b) != n)
        return false;
    memset(inv, 0, sizeof *inv);
    for (uint32_t j = 0; j < n; j++)
        kl_basis_solve(&b, 1u << j, &inv->v[j]);
    return true;
}

int kl_layout_find_bit(const kl_layout *l, uint32_t axis, uint32_t k)
{
    if (k >= l->log2[axis])
        return -1;
    for (uint32_t i = 0; i < KL_PLACE_BITS; i++)
        if (l->map.v[i] == 1u << (l->off[axis] + k))
            return (int)i;
    return -1;
}

uint32_t kl_layout_vec(const kl_layout *l, uint32_t axis)
{
    uint32_t n = 0;
    while (n < l->nbit[KL_IN_REG] && n < l->log2[axis] && l->map.v[n] == 1u << (l->off[axis] + n))
        n++;
    return n;
}

bool kl_layout_renaming(const kl_layout *src, const kl_layout *dst, kl_lin *map)
{
    kl_basis b;
    kl_lin m = {{0}};
    b.lead = 0;
    if (!kl_layout_same_shape(src, dst) || memcmp(src->nbit + 1, dst->nbit + 1, KL_NWHERE - 1) != 0)
        return false;
    for (uint32_t i = KL_LANE0; i < KL_PLACE_BITS; i++)
        if (src->map.v[i] != dst->map.v[i])
            return false;
    for (uint32_t i = 0; i < src->nbit[KL_IN_REG]; i++)
        kl_basis_add(&b, src->map.v[i], 1u << i);
    for (uint32_t i = 0; i < dst->nbit[KL_IN_REG]; i++)
        if (!kl_basis_solve(&b, dst->map.v[i], &m.v[i]))
            return false;
    *map = m;
    return true;
}
