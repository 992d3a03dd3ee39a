/* verify_access.c - loads, stores, atomics, sections of tiles: subscripts, fill, mask, sizes. */
#include "ir/verifier.h"

/* Index tiles of an access: one of rank 1 beside sections, or all of the shape of the tile.
 * sections becomes the rank that the access has. */
static bool check_index(struct verifier *c, kl_val v, const struct kl_type *tile, uint32_t *sections)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t indices = kl_access_indices(f, v), axis = 0;
    bool scattered = kl_access_scattered(f, v);
    if (!indices)
        return true;
    NEED(in->op != KL_OP_extract && in->op != KL_OP_insert, "has an index tile on a tile");
    NEED(scattered || indices == 1, "has %u index tiles beside sections", indices);
    for (uint32_t d = 0; d < in->attr.access.n; d++) {
        const struct kl_type *t = kl_vf_arg(c, v, 1 + d);
        bool index = kl_access_index(f, v, d), section = kl_access_step(f, v, d) != 0;
        NEED(!index || !section, "has a tile as start of a section");
        if (index && scattered)
            NEED(kl_same_shape(t, tile), "has an index %s for a tile %s", kl_vf_text(c, t),
                 kl_vf_text(c, tile));
        else if (index)
            NEED(t->rank == 1 && axis < tile->rank && t->dim[0] == tile->dim[axis],
                 "has an index %s for axis %u of a tile %s", kl_vf_text(c, t), axis,
                 kl_vf_text(c, tile));
        axis += index || section;
    }
    *sections = scattered ? tile->rank : *sections + indices;
    return true;
}

static bool check_atomic(struct verifier *c, kl_val v, const struct kl_type *base)
{
    const struct kl_ins *in = kl_in(c->f, v);
    enum kl_elem e = (enum kl_elem)base->elem;
    uint32_t how = in->attr.access.how, rmw = KL_HOW_RMW(how), order = KL_HOW_ORDER(how);
    NEED(rmw < KL_NRMW && KL_HOW_SCOPE(how) < KL_NSCOPE, "does what no atomic does");
    NEED(kl_vf_is_num(e), "does not exist on %s", kl_elems[e].name);
    NEED(in->op != KL_OP_atomic || rmw == KL_RMW_add || kl_is_int(e), "%s does not exist on %s",
         kl_rmw_names[rmw], kl_elems[e].name);
    NEED(in->op != KL_OP_atomic_load || order <= KL_ACQUIRE, "%s: a load", kl_order_names[order]);
    NEED(in->op != KL_OP_atomic_store || order == KL_RELAXED || order == KL_RELEASE, "%s: a store",
         kl_order_names[order]);
    return true;
}

/* The access of load, store, inside, extract, insert and atomics: one start and step a dimension, and
 * one axis of the tile for each section. */
bool kl_vf_access(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t n = in->attr.access.n, sections = 0, k = 1 + n;
    const struct kl_type *base = kl_vf_arg(c, v, 0), *tile;
    NEED(in->attr.access.at + n <= f->naux, "has steps outside the pool");
    NEED(n == base->rank, "has %u subscripts on %s", n, kl_vf_text(c, base));
    if (base->kind == KL_T_ARRAY)
        NEED(kl_in(f, kl_arg(f, v, 0))->op == KL_OP_view,
             "reaches a parameter without a view, which has no extents");
    for (uint32_t i = 0; i < n; i++)
        sections += f->aux[in->attr.access.at + i] != 0;
    uint32_t takes = kl_access_values(in);
    uint32_t flags = in->attr.access.flags, allowed = 0;
    if (in->op == KL_OP_load)
        allowed = KL_ACC_FILL | KL_ACC_MASK | KL_ACC_EVICT;
    else if (in->op == KL_OP_store)
        allowed = KL_ACC_MASK | KL_ACC_EVICT;
    else if (kl_is_atomic(in->op))
        allowed = KL_ACC_MASK;
    NEED(!(flags & ~allowed), "has a fill or mask that it cannot have");
    NEED((flags & KL_ACC_EVICT) != KL_ACC_EVICT, "has two hints");
    uint32_t extra = takes + !!(flags & KL_ACC_FILL) + !!(flags & KL_ACC_MASK);
    NEED(in->nargs == k + extra, "has %u operands, needs %u", in->nargs, k + extra);
    for (uint32_t i = k; i < in->nargs; i++)
        NEED(kl_vf_arg(c, v, i)->kind == KL_T_TILE, "operand %u is not a tile", i);
    tile = kl_access_tile(f, v);
    if (!check_index(c, v, tile, &sections))
        return false;
    NEED(tile->rank == sections, "has %u sections for a tile %s", sections, kl_vf_text(c, tile));
    for (uint32_t i = 0; i < takes; i++, k++)
        NEED(kl_vf_arg(c, v, k) == tile, "takes %s for a tile %s", kl_vf_text(c, kl_vf_arg(c, v, k)),
             kl_vf_text(c, tile));
    if (kl_is_atomic(in->op) && !check_atomic(c, v, base))
        return false;
    if (in->op == KL_OP_inside)
        NEED(tile->elem == KL_bool, "gives %s, not bool", kl_vf_text(c, tile));
    else
        NEED(tile->elem == base->elem, "moves %s between %s elements", kl_vf_text(c, tile),
             kl_elems[base->elem].name);
    if (flags & KL_ACC_FILL) {
        const struct kl_type *t = kl_vf_arg(c, v, k++);
        NEED(t == tile, "has a fill of type %s for a tile %s", kl_vf_text(c, t), kl_vf_text(c, tile));
    }
    if (flags & KL_ACC_MASK) {
        const struct kl_type *t = kl_vf_arg(c, v, k++);
        NEED(t->elem == KL_bool && kl_same_shape(t, tile), "has a mask of type %s for a tile %s",
             kl_vf_text(c, t), kl_vf_text(c, tile));
    }
    return true;
}
