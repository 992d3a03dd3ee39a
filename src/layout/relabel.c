/* relabel.c - layouts of the same data under other coordinates. */
#include "layout/layout.h"

/* Bits of an axis in the coordinate word. */
static uint32_t axis_mask(const kl_layout *l, uint32_t axis)
{
    return ((1u << l->log2[axis]) - 1) << l->off[axis];
}

/* The offsets of the axes, from their sizes. */
static void place_axes(kl_layout *l)
{
    uint32_t bits = 0;
    for (uint32_t d = l->rank; d-- > 0;) {
        l->off[d] = (uint8_t)bits;
        bits += l->log2[d];
    }
}

kl_layout kl_layout_slice(const kl_layout *l, uint32_t axis)
{
    kl_layout s = *l;
    uint32_t keep = ~axis_mask(l, axis);
    s.dim[axis] = 1;
    s.log2[axis] = 0;
    place_axes(&s);
    for (uint32_t i = 0; i < KL_PLACE_BITS; i++)
        s.map.v[i] = kl_extract(l->map.v[i], keep);
    return s;
}

kl_layout kl_layout_trim(const kl_layout *l, uint32_t *kept)
{
    kl_layout t = *l;
    uint32_t n = 0, mask = 0;
    kl_basis b;
    b.lead = 0;
    for (uint32_t i = 0; i < KL_MAX_REG_BITS; i++) {
        t.map.v[i] = 0;
        if (i < l->nbit[KL_IN_REG] && kl_basis_add(&b, l->map.v[i], 0)) {
            t.map.v[n++] = l->map.v[i];
            mask |= 1u << i;
        }
    }
    t.nbit[KL_IN_REG] = (uint8_t)n;
    if (kept)
        *kept = mask;
    return t;
}

kl_layout kl_layout_permute(const kl_layout *l, const uint32_t *perm)
{
    kl_layout p = *l;
    for (uint32_t d = 0; d < l->rank; d++) {
        p.dim[d] = l->dim[perm[d]];
        p.log2[d] = l->log2[perm[d]];
    }
    place_axes(&p);
    for (uint32_t i = 0; i < KL_PLACE_BITS; i++) {
        uint32_t v = 0;
        for (uint32_t d = 0; d < l->rank; d++)
            v |= kl_coord_axis(l, l->map.v[i], perm[d]) << p.off[d];
        p.map.v[i] = v;
    }
    return p;
}

static bool pow2(uint32_t x)
{
    return (x & (x - 1)) == 0;
}

/* Row-major index bits are the coordinate word itself as long as only the slowest axis of what
 * is split or joined is rounded up.  Then the map stays and the axes are cut anew. */
bool kl_layout_reshape(const kl_layout *l, uint32_t rank, const uint32_t *dim, kl_layout *out)
{
    kl_layout r = *l;
    uint64_t have = 1, want = 1;
    if (rank > KL_LAYOUT_RANK)
        return false;
    for (uint32_t d = 0; d < l->rank; d++)
        have *= l->dim[d];
    for (uint32_t d = 0; d < rank; d++)
        want *= dim[d];
    if (have != want || !want)
        return false;
    /* Groups of equal products, from the fastest axis on. */
    uint32_t i = l->rank, j = rank;
    while (i || j) {
        uint64_t a = 1, b = 1;
        uint32_t na = 0, nb = 0, lasta = 1, lastb = 1; /* axes above 1 in the group, its slowest */
        bool odd = false;                              /* a faster axis is not a power of two */
        do {
            if (a <= b && i) {
                uint32_t x = l->dim[--i];
                if (x == 1)
                    continue;
                odd |= na && !pow2(lasta);
                a *= lasta = x;
                na++;
            } else if (j) {
                uint32_t x = dim[--j];
                if (x == 1)
                    continue;
                odd |= nb && !pow2(lastb);
                b *= lastb = x;
                nb++;
            } else {
                return false;
            }
        } while (a != b);
        if (odd)
            return false;
    }
    r.rank = (uint8_t)rank;
    for (uint32_t d = 0; d < KL_LAYOUT_RANK; d++) {
        r.dim[d] = d < rank ? dim[d] : 0;
        r.off[d] = r.log2[d] = 0;
        for (uint32_t n = d < rank ? dim[d] : 1; 1u << r.log2[d] < n;)
            r.log2[d]++;
    }
    place_axes(&r);
    *out = r;
    return true;
}

kl_layout kl_layout_expand(const kl_layout *l, uint32_t axis, uint32_t n, bool spread)
{
    kl_layout e = *l;
    uint32_t used = kl_layout_places(l), k = 0, bits = 0;
    while (1u << bits < n && bits < 31)
        bits++;
    e.bad |= n == 0 || l->dim[axis] != 1 || kl_layout_coord_bits(l) + bits > 31;
    if (e.bad)
        return e;
    e.dim[axis] = n;
    e.log2[axis] = (uint8_t)bits;
    place_axes(&e);
    uint32_t keep = ~axis_mask(&e, axis);
    for (uint32_t i = 0; i < KL_PLACE_BITS; i++)
        e.map.v[i] = kl_deposit(l->map.v[i], keep);
    for (uint32_t i = KL_LANE0; spread && i < KL_CTA0 && k < bits; i++)
        if (used >> i & 1 && !l->map.v[i])
            e.map.v[i] = 1u << (e.off[axis] + k++);
    for (; k < bits; k++) {
        if (e.nbit[KL_IN_REG] == KL_MAX_REG_BITS) {
            e.bad = 1;
            break;
        }
        e.map.v[e.nbit[KL_IN_REG]++] = 1u << (e.off[axis] + k);
    }
    return e;
}

bool kl_layout_flip(const kl_layout *l, uint32_t axis, uint32_t *by)
{
    kl_basis b;
    b.lead = 0;
    for (uint32_t i = 0; i < KL_PLACE_BITS; i++)
        kl_basis_add(&b, l->map.v[i], 1u << i);
    return pow2(l->dim[axis]) && kl_basis_solve(&b, axis_mask(l, axis), by);
}
