/* bound.c - which registers of a layout hold elements: always, never, or by thread.
 *
 * Over all threads an axis's coordinate of one register runs through a coset of a linear space,
 * whose least and greatest members follow from a basis.  Both ends inside (outside) the true
 * size: always live (dead). */
#include "layout/layout.h"

/* The least member of base + space: clear every leading bit.  The greatest: set them. */
static void coset_ends(const kl_basis *s, uint32_t base, uint32_t *least, uint32_t *most)
{
    uint32_t lo = base, hi = base;
    for (uint32_t rest = s->lead; rest;) {
        uint32_t top = 31u - (uint32_t)__builtin_clz(rest);
        if (lo >> top & 1)
            lo ^= s->vec[top];
        if (!(hi >> top & 1))
            hi ^= s->vec[top];
        rest ^= 1u << top;
    }
    *least = lo;
    *most = hi;
}

kl_reg_bound kl_layout_bound(const kl_layout *l, uint32_t reg)
{
    kl_reg_bound b = {.all = KL_LIVE};
    uint32_t at = kl_layout_at(l, kl_place(reg, 0, 0, 0));
    for (uint32_t d = 0; d < l->rank; d++) {
        uint32_t base = kl_coord_axis(l, at, d), thread = 0, least, most;
        kl_basis s;
        s.lead = 0;
        for (uint32_t i = KL_LANE0; i < KL_PLACE_BITS; i++) {
            uint32_t v = kl_coord_axis(l, l->map.v[i], d);
            thread |= v;
            kl_basis_add(&s, v, 0);
        }
        coset_ends(&s, base, &least, &most);
        b.axis[d] = most < l->dim[d] ? KL_LIVE : least >= l->dim[d] ? KL_DEAD : KL_DEPENDS;
        b.flip[d] = base & thread;
        b.add[d] = base & ~thread;
        b.bound[d] = b.add[d] < l->dim[d] ? l->dim[d] - b.add[d] : 0;
        if (b.axis[d] == KL_DEAD)
            b.all = KL_DEAD;
        else if (b.axis[d] == KL_DEPENDS && b.all == KL_LIVE)
            b.all = KL_DEPENDS;
    }
    return b;
}
