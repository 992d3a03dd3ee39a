/* gather.c - accesses with index tiles, and gather of a tile.
 *
 * An index tile is brought to the layout of the access: its own if it has the access's shape, the
 * slice along its axis if it stands beside sections.  Then each register of the access has its
 * index in the same thread, and adds index * stride to its address; a section beside it still moves
 * vectors. */
#include <stdlib.h>

#include "gen/ptx/ptx.h"

struct one_index {
    kl_val ext, str;
    struct pval x;
    bool slice;
    uint32_t kept;
    opnd extent, pitch; /* in bytes; computed where they are first needed */
    opnd *in, *off; /* by register of x: predicate, bytes; NULL: not computed yet */
};

struct pindex {
    const kl_layout *l;
    uint32_t n, bytes;
    struct one_index d[KL_MAX_DIMS];
    bool dead; /* some axis is no power of two */
};

static bool const_of(const struct pgen *g, kl_val v, int64_t *k)
{
    const struct kl_ins *in = kl_in(g->f, v);
    *k = (int64_t)in->attr.bits;
    return in->op == KL_OP_const;
}

struct pindex *kl_px_indices(struct pgen *g, kl_val v, const kl_layout *l, const struct pview *w,
                             uint32_t bytes)
{
    const kl_fn *f = g->f;
    struct pindex *x = kl_new(g->a, struct pindex);
    bool scattered = kl_access_scattered(f, v);
    uint32_t axis = 0;
    x->l = l;
    x->bytes = bytes;
    for (uint32_t d = 0; d < w->ndim; d++) {
        if (!kl_access_index(f, v, d)) {
            axis += kl_access_step(f, v, d) != 0;
            continue;
        }
        kl_val t = kl_arg(f, v, 1 + d);
        struct one_index *i = &x->d[x->n++];
        i->ext = w->ext[d], i->str = w->str[d];
        const kl_layout *own = l;
        if (!scattered) {
            i->slice = true;
            own = kl_px_project(g, l, kl_type_of(f, t), axis++, &i->kept);
        }
        i->x = kl_px_in(g, t, own);
        uint32_t n = i->x.l ? kl_layout_nreg(i->x.l) : 1;
        i->in = kl_new_n(g->a, opnd, n);
        i->off = kl_new_n(g->a, opnd, n);
        for (uint32_t k = 0; k < kl_type_of(f, t)->rank; k++)
            x->dead |= (kl_type_of(f, t)->dim[k] & (kl_type_of(f, t)->dim[k] - 1)) != 0;
    }
    return x;
}

/* The register of an index for a register of the access. */
static uint32_t index_reg(const struct one_index *i, uint32_t reg)
{
    return !i->x.l ? 0 : i->slice ? kl_extract(reg, i->kept) : reg;
}

static opnd both(struct pgen *g, opnd p, opnd q)
{
    return p && q ? kl_px_set(g, CL_P, "and.pred $, %s, %s", p, q) : p ? p : q;
}

opnd kl_px_index_in(struct pgen *g, struct pindex *x, uint32_t reg)
{
    opnd p = x->dead ? kl_px_live(g, x->l, reg) : NULL;
    for (uint32_t k = 0; k < x->n; k++) {
        struct one_index *i = &x->d[k];
        uint32_t r = index_reg(i, reg);
        int64_t e;
        bool fixed = const_of(g, i->ext, &e);
        if (fixed && e == INT64_MAX)
            continue;
        if (!i->in[r]) {
            opnd at = kl_px_inreg(g, CL_B64, kl_px_at(&i->x, r));
            if (!i->extent)
                i->extent = fixed ? kl_px_int(g, e < 0 ? 0 : e)
                                  : kl_px_set(g, CL_B64, "max.s64 $, %s, 0", kl_px_scalar(g, i->ext));
            i->in[r] = kl_px_set(g, CL_P, "setp.lt.u64 $, %s, %s", at, i->extent);
        }
        p = both(g, p, i->in[r]);
    }
    return p;
}

/* Bytes of an index; under the fact i32 what is inside fits 31 bits, and else nothing is touched. */
static opnd offset(struct pgen *g, struct one_index *i, opnd at, uint32_t bytes)
{
    int64_t k;
    bool narrow = g->o->i32;
    if (!i->pitch && const_of(g, i->str, &k)) {
        k *= (int64_t)bytes;
        i->pitch = kl_px_int(g, k);
        narrow &= k <= INT32_MAX && k >= INT32_MIN;
    } else if (!i->pitch) {
        i->pitch = kl_px_set(g, CL_B64, "mul.lo.s64 $, %s, %u", kl_px_scalar(g, i->str), bytes);
        if (narrow)
            i->pitch = kl_px_set(g, CL_B32, "cvt.u32.u64 $, %s", i->pitch);
    } else if (!kl_px_isreg(i->pitch)) {
        k = strtoll(i->pitch, NULL, 10);
        narrow &= k <= INT32_MAX && k >= INT32_MIN;
    }
    at = kl_px_inreg(g, CL_B64, at);
    if (!narrow)
        return kl_px_set(g, CL_B64, "mul.lo.s64 $, %s, %s", at, i->pitch);
    opnd low = kl_px_set(g, CL_B32, "cvt.u32.u64 $, %s", at);
    return kl_px_set(g, CL_B64, "mul.wide.s32 $, %s, %s", low, i->pitch);
}

opnd kl_px_index_at(struct pgen *g, struct pindex *x, uint32_t reg, opnd at)
{
    for (uint32_t k = 0; k < x->n; k++) {
        struct one_index *i = &x->d[k];
        uint32_t r = index_reg(i, reg);
        if (!i->off[r])
            i->off[r] = offset(g, i, kl_px_at(&i->x, r), x->bytes);
        at = kl_px_set(g, CL_B64, "add.s64 $, %s, %s", at, i->off[r]);
    }
    return at;
}

/* ---- gather of a tile ---- */

/* Through shared memory: the tile lies there dense, and each thread takes what its indices name. */
void kl_px_gather(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    kl_val a = kl_arg(f, v, 0), iv = kl_arg(f, v, 1);
    const struct kl_type *t = kl_type_of(f, a);
    const kl_layout *l = g->lay[v.id];
    uint32_t axis = (uint32_t)kl_in(f, v)->attr.index, n = l ? kl_layout_nreg(l) : 1, which;
    enum cls c = kl_px_vcls(g, v);
    struct pval index = kl_px_in(g, iv, l);
    opnd region = kl_px_put_tile(g, a, &which);
    kl_px_barrier(g);
    uint32_t pitch[KL_MAX_RANK], p = kl_px_bytes(c);
    for (uint32_t d = t->rank; d-- > 0; p *= t->dim[d])
        pitch[d] = p;
    opnd thread = NULL; /* what the other axes add */
    for (uint32_t d = 0; l && d < t->rank; d++) {
        opnd w = d == axis ? NULL : kl_px_thread_axis(g, l, d);
        if (!w)
            continue;
        w = kl_px_once(g, CL_B32, "mul.lo.u32 $, %s, %u", w, pitch[d]);
        thread = thread ? kl_px_once(g, CL_B32, "add.u32 $, %s, %s", thread, w) : w;
    }
    opnd base = thread ? kl_px_set(g, CL_B32, "add.u32 $, %s, %s", region, thread) : region;
    opnd *r = kl_new_n(g->a, opnd, n);
    kl_px_trace_part(g, true, l);
    for (uint32_t i = 0; i < n; i++) {
        int64_t off = 0;
        for (uint32_t d = 0; l && d < t->rank; d++)
            if (d != axis)
                off += (int64_t)pitch[d] * kl_coord_axis(l, kl_px_coord(l, i), d);
        opnd at = kl_px_inreg(g, CL_B64, kl_px_at(&index, i));
        opnd in = kl_px_set(g, CL_P, "setp.lt.u64 $, %s, %u", at, t->dim[axis]);
        opnd low = kl_px_set(g, CL_B32, "cvt.u32.u64 $, %s", at);
        opnd addr = kl_px_set(g, CL_B32, "mad.lo.u32 $, %s, %u, %s", low, pitch[axis], base);
        r[i] = kl_px_get_if(g, c, addr, off, both(g, in, l ? kl_px_live(g, l, i) : NULL));
    }
    kl_px_trace_part(g, false, NULL);
    kl_px_region_read(g, which);
    g->val[v.id] = (struct pval){.l = l, .r = r};
}
