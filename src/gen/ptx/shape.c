/* shape.c - operations that move elements: iota, broadcast, reshape, permute, and what goes
 * through shared memory by coordinates: cat, flip, extract, insert, a reshape that splits axes. */
#include "gen/ptx/ptx.h"

static void set(struct pgen *g, kl_val v, const kl_layout *l, opnd *r)
{
    g->val[v.id] = (struct pval){.l = l, .r = r};
}

static void iota(struct pgen *g, kl_val v)
{
    const kl_layout *l = g->lay[v.id];
    uint32_t n = l ? kl_layout_nreg(l) : 1;
    opnd *r = kl_new_n(g->a, opnd, n);
    opnd t = l ? kl_px_thread_axis(g, l, 0) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = l ? kl_px_coord(l, i) : 0;
        r[i] = !t ? kl_px_int(g, c) : c ? kl_px_once(g, CL_B32, "add.u32 $, %s, %u", t, c) : t;
    }
    set(g, v, l, r);
}

/* The layout of shape t that follows l along its axes from `lead` on. */
static kl_layout project(struct pgen *g, const kl_layout *l, const struct kl_type *t, uint32_t lead)
{
    kl_layout p = kl_layout_blocked(t->rank, t->dim, 0, g->wlog2, t->rank ? t->rank - 1u : 0);
    memset(&p.map, 0, sizeof p.map);
    memcpy(p.nbit, l->nbit, sizeof p.nbit);
    for (uint32_t b = 0; b < KL_PLACE_BITS; b++) {
        int at = kl_px_bit(l, b);
        for (uint32_t d = 0; d < t->rank && at >= 0; d++) {
            uint32_t from = l->off[lead + d];
            if (t->dim[d] > 1 && at >= (int)from && at < (int)(from + l->log2[lead + d]))
                p.map.v[b] = 1u << (p.off[d] + (uint32_t)at - from);
        }
    }
    return p;
}

const kl_layout *kl_px_project(struct pgen *g, const kl_layout *l, const struct kl_type *t, uint32_t lead,
                               uint32_t *kept)
{
    kl_layout p = project(g, l, t, lead), s;
    *kept = 0;
    s = kl_layout_trim(&p, kept);
    return kl_px_intern(g, &s);
}

static void broadcast(struct pgen *g, kl_val v)
{
    kl_val a = kl_arg(g->f, v, 0);
    const kl_layout *l = g->lay[v.id];
    if (!l || !g->val[a.id].l) {
        g->val[v.id] = g->val[a.id];
        return;
    }
    const struct kl_type *from = kl_type_of(g->f, a);
    uint32_t kept;
    struct pval x = kl_px_in(g, a, kl_px_project(g, l, from, (uint32_t)l->rank - from->rank, &kept));
    uint32_t n = kl_layout_nreg(l);
    opnd *r = kl_new_n(g->a, opnd, n);
    for (uint32_t i = 0; i < n; i++)
        r[i] = kl_px_at(&x, kl_extract(i, kept));
    set(g, v, l, r);
}

/* ---- by coordinates, through shared memory ---- */

/* An element of a thread lies at base + sum of coordinate * stride (all in bytes). */
struct strides {
    int64_t s[KL_MAX_RANK], base;
};

opnd kl_px_live(struct pgen *g, const kl_layout *l, uint32_t reg)
{
    opnd p = NULL;
    for (uint32_t d = 0; d < l->rank; d++) {
        if (!(l->dim[d] & (l->dim[d] - 1)))
            continue;
        uint32_t rc = kl_coord_axis(l, kl_px_coord(l, reg), d);
        opnd t = kl_px_thread_axis(g, l, d);
        if (!t)
            t = kl_px_once(g, CL_B32, "mov.u32 $, 0");
        if (rc)
            t = kl_px_once(g, CL_B32, "add.u32 $, %s, %u", t, rc);
        opnd q = kl_px_once(g, CL_P, "setp.lt.u32 $, %s, %u", t, l->dim[d]);
        p = p ? kl_px_once(g, CL_P, "and.pred $, %s, %s", p, q) : q;
    }
    return p;
}

static opnd thread_address(struct pgen *g, const kl_layout *l, opnd region, const struct strides *s)
{
    uint32_t w[10] = {0};
    for (uint32_t i = 0; i < KL_LANE_BITS + g->wlog2 && l; i++) {
        int at = kl_px_bit(l, KL_LANE0 + i);
        for (uint32_t d = 0; d < l->rank && at >= 0; d++)
            if (at >= l->off[d] && at < l->off[d] + l->log2[d])
                w[i] = (uint32_t)(s->s[d] * (INT64_C(1) << (at - l->off[d])));
    }
    opnd t = kl_px_weigh(g, w);
    return t ? kl_px_once(g, CL_B32, "add.u32 $, %s, %s", region, t) : region;
}

static int64_t reg_offset(const kl_layout *l, uint32_t reg, const struct strides *s)
{
    int64_t off = s->base;
    for (uint32_t d = 0; l && d < l->rank; d++)
        off += s->s[d] * (int64_t)kl_coord_axis(l, kl_px_coord(l, reg), d);
    return off;
}

static opnd both(struct pgen *g, opnd p, opnd q)
{
    return p && q ? kl_px_set(g, CL_P, "and.pred $, %s, %s", p, q) : p ? p : q;
}

static void put(struct pgen *g, const struct pval *v, enum cls c, const kl_layout *l, opnd region,
                const struct strides *s, bool all)
{
    uint32_t n = l ? kl_layout_nreg(l) : 1;
    opnd at = thread_address(g, l, region, s), first = kl_px_first(g, l);
    for (uint32_t i = 0; i < n; i++)
        kl_px_st_shared(g, c, at, reg_offset(l, i, s), kl_px_at(v, i),
                        both(g, first, l && !all ? kl_px_live(g, l, i) : NULL));
}

/* Not dead, or zero. */
opnd kl_px_get_if(struct pgen *g, enum cls c, opnd addr, int64_t off, opnd p)
{
    if (!p)
        return kl_px_ld_shared(g, c, addr, off);
    enum cls m = c == CL_P ? CL_B32 : c;
    opnd r = kl_px_reg(g, m);
    kl_px(g, "mov.%s %s, %s", kl_px_b(m), r, c == CL_F32 ? "0f00000000" : c == CL_F64 ? "0d0000000000000000" : "0");
    kl_px(g, "@%s ld.shared.%s %s, [%s+%lld]", p, kl_px_b(m), r, addr, (long long)off);
    kl_px_trace_shared(g, false, kl_px_bytes(m), addr, off, p);
    return c == CL_P ? kl_px_from32(g, c, r) : r;
}

static struct pval get(struct pgen *g, enum cls c, const kl_layout *l, opnd region,
                       const struct strides *s)
{
    uint32_t n = l ? kl_layout_nreg(l) : 1;
    struct pval v = {.l = l, .r = kl_new_n(g->a, opnd, n)};
    opnd at = thread_address(g, l, region, s);
    for (uint32_t i = 0; i < n; i++)
        v.r[i] = kl_px_get_if(g, c, at, reg_offset(l, i, s), l ? kl_px_live(g, l, i) : NULL);
    return v;
}

static struct strides dense(const struct kl_type *t, uint32_t bytes)
{
    struct strides s = {.base = 0};
    int64_t k = bytes;
    for (uint32_t d = t->rank; d-- > 0; k *= t->dim[d])
        s.s[d] = k;
    return s;
}

/* v and the layout it has, or the default one of a splat. */
static const kl_layout *layout_or_default(struct pgen *g, kl_val v)
{
    const kl_layout *l = g->val[v.id].l;
    return l ? l : kl_px_default(g, kl_type_of(g->f, v));
}

static void through_shared(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, v);
    kl_val a = kl_arg(f, v, 0);
    const struct kl_type *ta = kl_type_of(f, a);
    enum cls c = kl_px_vcls(g, v);
    uint32_t bytes = kl_px_bytes(c), which;
    const kl_layout *l = g->lay[v.id];
    uint64_t size = kl_numel(t) * bytes;
    if (size > g->shared_max)
        kl_px_unsupported(g, "%s of %llu bytes; shared memory has %u", kl_ops[in->op].name,
                          (unsigned long long)size, g->shared_max);
    struct strides to = dense(t, bytes), from = dense(ta, bytes);
    g->no_cluster = true;
    opnd region = kl_px_region(g, (uint32_t)size, &which);
    if (in->op == KL_OP_cat) {
        kl_val b = kl_arg(f, v, 1);
        struct strides second = to;
        second.base = to.s[in->attr.index] * (int64_t)ta->dim[in->attr.index];
        put(g, &g->val[a.id], c, layout_or_default(g, a), region, &to, false);
        put(g, &g->val[b.id], c, layout_or_default(g, b), region, &second, false);
    } else {
        put(g, &g->val[a.id], c, layout_or_default(g, a), region, &from, false);
    }
    kl_px_barrier(g);
    if (in->op == KL_OP_flip) {
        int64_t *s = &to.s[in->attr.index];
        to.base = *s * (int64_t)(t->dim[in->attr.index] - 1);
        *s = -*s;
    }
    g->val[v.id] = get(g, c, l, region, &to);
    kl_px_region_read(g, which);
}

void kl_px_spread(struct pgen *g, struct pval *v, enum cls c, const struct kl_type *t)
{
    uint32_t bytes = kl_px_bytes(c), which;
    struct strides s = dense(t, bytes);
    opnd region = kl_px_region(g, (uint32_t)kl_numel(t) * bytes, &which);
    put(g, v, c, v->l, region, &s, false);
    kl_px_barrier(g);
    *v = get(g, c, v->l, region, &s);
    kl_px_region_read(g, which);
}

opnd kl_px_put_tile(struct pgen *g, kl_val v, uint32_t *which)
{
    const struct kl_type *t = kl_type_of(g->f, v);
    enum cls c = kl_px_vcls(g, v);
    uint64_t size = kl_numel(t) * kl_px_bytes(c);
    if (size > g->shared_max)
        kl_px_unsupported(g, "gather from %llu bytes; shared memory has %u", (unsigned long long)size,
                          g->shared_max);
    struct strides s = dense(t, kl_px_bytes(c));
    opnd region = kl_px_region(g, (uint32_t)size, which);
    put(g, &g->val[v.id], c, layout_or_default(g, v), region, &s, false);
    return region;
}

/* ---- extract, insert ---- */

/* Where the element of register i of a part lies in the whole tile: address and predicate. */
struct part {
    const kl_layout *l;
    uint32_t nd, axis[KL_MAX_RANK]; /* axis of the part, or none for scalar subscripts */
    int64_t step[KL_MAX_RANK], s[KL_MAX_RANK];
    uint32_t dim[KL_MAX_RANK];
    opnd at[KL_MAX_RANK];           /* b64: index of the thread's register 0 */
};
enum { NO_AXIS = 9 };

static struct part part_of(struct pgen *g, kl_val v, const kl_layout *l, const struct kl_type *whole,
                           uint32_t bytes)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    struct strides s = dense(whole, bytes);
    struct part p = {.l = l, .nd = whole->rank};
    uint32_t axis = 0;
    for (uint32_t d = 0; d < whole->rank; d++) {
        p.step[d] = f->aux[in->attr.access.at + d];
        p.axis[d] = p.step[d] ? axis++ : NO_AXIS;
        p.s[d] = s.s[d];
        p.dim[d] = whole->dim[d];
        p.at[d] = kl_px_inreg(g, CL_B64, kl_px_scalar(g, kl_arg(f, v, 1 + d)));
        opnd t = l && p.step[d] ? kl_px_thread_axis(g, l, p.axis[d]) : NULL;
        if (t) {
            opnd w = kl_px_once(g, CL_B64, "cvt.u64.u32 $, %s", t);
            p.at[d] = kl_px_set(g, CL_B64, "mad.lo.s64 $, %s, %lld, %s", w, (long long)p.step[d], p.at[d]);
        }
    }
    return p;
}

static opnd part_place(struct pgen *g, const struct part *p, opnd region, uint32_t reg, opnd *inside)
{
    opnd at = region, q = p->l ? kl_px_live(g, p->l, reg) : NULL;
    for (uint32_t d = 0; d < p->nd; d++) {
        uint32_t rc = p->l && p->step[d] ? kl_coord_axis(p->l, kl_px_coord(p->l, reg), p->axis[d]) : 0;
        opnd i = rc ? kl_px_set(g, CL_B64, "add.s64 $, %s, %lld", p->at[d], (long long)(p->step[d] * (int64_t)rc))
                    : p->at[d];
        q = both(g, kl_px_set(g, CL_P, "setp.lt.u64 $, %s, %u", i, p->dim[d]), q);
        opnd w = kl_px_set(g, CL_B32, "cvt.u32.u64 $, %s", i);
        at = kl_px_set(g, CL_B32, "mad.lo.u32 $, %s, %lld, %s", w, (long long)p->s[d], at);
    }
    *inside = q;
    return at;
}

static void extract_insert(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    bool insert = in->op == KL_OP_insert;
    kl_val a = kl_arg(f, v, 0);
    const struct kl_type *whole = kl_type_of(f, a);
    enum cls c = kl_px_vcls(g, v);
    uint32_t bytes = kl_px_bytes(c), which;
    uint64_t size = kl_numel(whole) * bytes;
    if (size > g->shared_max)
        kl_px_unsupported(g, "%s of %llu bytes; shared memory has %u", kl_ops[in->op].name,
                          (unsigned long long)size, g->shared_max);
    g->no_cluster = true;
    opnd region = kl_px_region(g, (uint32_t)size, &which);
    struct strides s = dense(whole, bytes);
    put(g, &g->val[a.id], c, layout_or_default(g, a), region, &s, false);
    kl_px_barrier(g);
    if (insert) {
        kl_val x = kl_arg(f, v, in->nargs - 1);
        const kl_layout *l = layout_or_default(g, x);
        struct part p = part_of(g, v, l, whole, bytes);
        opnd first = kl_px_first(g, l);
        kl_px_trace_part(g, true, l);
        for (uint32_t i = 0; i < (l ? kl_layout_nreg(l) : 1); i++) {
            opnd in_it, at = part_place(g, &p, region, i, &in_it);
            kl_px_st_shared(g, c, at, 0, kl_px_at(&g->val[x.id], i), both(g, in_it, first));
        }
        kl_px_trace_part(g, false, NULL);
        kl_px_barrier(g);
        g->val[v.id] = get(g, c, g->lay[v.id], region, &s);
    } else {
        const kl_layout *l = g->lay[v.id];
        uint32_t n = l ? kl_layout_nreg(l) : 1;
        struct part p = part_of(g, v, l, whole, bytes);
        opnd *r = kl_new_n(g->a, opnd, n);
        kl_px_trace_part(g, true, l);
        for (uint32_t i = 0; i < n; i++) {
            opnd in_it, at = part_place(g, &p, region, i, &in_it);
            r[i] = kl_px_get_if(g, c, at, 0, in_it);
        }
        kl_px_trace_part(g, false, NULL);
        set(g, v, l, r);
    }
    kl_px_region_read(g, which);
}

/* An axis of a power of two, in registers and lanes: element x lies at the place of x with some
 * bits turned. */
static bool mirror(struct pgen *g, kl_val v)
{
    const struct pval *x = &g->val[kl_arg(g->f, v, 0).id];
    uint32_t by, n = kl_layout_nreg(x->l);
    if (g->lay[v.id] != x->l || !kl_layout_flip(x->l, (uint32_t)kl_in(g->f, v)->attr.index, &by) || by >> KL_WARP0)
        return false;
    opnd *r = kl_new_n(g->a, opnd, n), lane = kl_px_int(g, kl_place_lane(by));
    for (uint32_t i = 0; i < n; i++) {
        r[i] = x->r[i ^ kl_place_reg(by)];
        if (kl_place_lane(by))
            r[i] = kl_px_shfl(g, kl_px_vcls(g, v), r[i], true, lane);
    }
    set(g, v, x->l, r);
    return true;
}

void kl_px_shape(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, v);
    kl_val a = in->nargs ? kl_arg(f, v, 0) : (kl_val){0};
    const struct pval *x = &g->val[a.id];
    kl_layout l;
    switch (in->op) {
    case KL_OP_iota: iota(g, v); return;
    case KL_OP_broadcast: broadcast(g, v); return;
    case KL_OP_reshape:
        if (!x->l || kl_layout_reshape(x->l, t->rank, t->dim, &l)) {
            set(g, v, x->l ? kl_px_intern(g, &l) : NULL, x->r);
            return;
        }
        through_shared(g, v);
        return;
    case KL_OP_permute:
        if (!x->l) {
            set(g, v, NULL, x->r);
        } else {
            uint32_t perm[KL_MAX_RANK];
            for (uint32_t d = 0; d < t->rank; d++)
                perm[d] = (uint32_t)f->aux[in->attr.aux.at + d];
            l = kl_layout_permute(x->l, perm);
            set(g, v, kl_px_intern(g, &l), x->r);
        }
        return;
    case KL_OP_flip:
        if (!x->l)
            set(g, v, NULL, x->r);
        else if (!mirror(g, v))
            through_shared(g, v);
        return;
    case KL_OP_cat: through_shared(g, v); return;
    case KL_OP_gather: kl_px_gather(g, v); return;
    default: extract_insert(g, v); return;
    }
}
