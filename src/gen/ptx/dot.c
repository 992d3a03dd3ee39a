/* dot.c - matrix products on CUDA cores, k ascending.
 *
 * Both operands go to shared memory, whole or in slices of k; a thread owns a small block of the
 * result, and in each step of a loop over k reads the rows and columns that it needs. */
#include "gen/ptx/ptx.h"

static uint32_t log2_up(uint32_t n)
{
    uint32_t k = 0;
    while ((1u << k) < n)
        k++;
    return k;
}

/* Four neighbours of a row in registers, lanes over rows and columns, warps over rows. */
const kl_layout *kl_px_dot_layout(struct pgen *g, const struct kl_type *t)
{
    uint32_t m = t->rank - 2u, n = t->rank - 1u, left[KL_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++)
        left[d] = log2_up(t->dim[d]);
    kl_run run[16];
    uint32_t k = 0, threads = KL_LANE_BITS + g->wlog2, total = 0, lane = KL_LANE_BITS, warp = g->wlog2;
    for (uint32_t d = 0; d < t->rank; d++)
        total += left[d];
    uint32_t spare = total > threads ? total - threads : 0;
    uint32_t v = left[n] < 2 ? left[n] : 2;
    v = v < spare ? v : spare;
    run[k++] = (kl_run){KL_IN_REG, (uint8_t)n, (uint8_t)v};
    left[n] -= v;
#define TAKE(where, ax, most, have)                                                                \
    do {                                                                                           \
        uint32_t q = left[ax] < (most) ? left[ax] : (most);                                        \
        q = q < (have) ? q : (have);                                                               \
        if (q)                                                                                     \
            run[k++] = (kl_run){where, (uint8_t)(ax), (uint8_t)q};                                 \
        left[ax] -= q;                                                                             \
        have -= q;                                                                                 \
    } while (0)
    TAKE(KL_IN_LANE, n, 3u, lane);
    TAKE(KL_IN_LANE, m, 5u, lane);
    TAKE(KL_IN_LANE, n, 5u, lane);
    if (m)
        TAKE(KL_IN_LANE, 0, 5u, lane);
    TAKE(KL_IN_WARP, m, 5u, warp);
    TAKE(KL_IN_WARP, n, 5u, warp);
    if (m)
        TAKE(KL_IN_WARP, 0, 5u, warp);
#undef TAKE
    kl_layout l = kl_layout_runs(t->rank, t->dim, run, k, g->wlog2, g->clog2);
    return kl_px_intern(g, &l);
}

/* Bytes from one coordinate to the next of an operand in shared memory. */
struct operand {
    kl_val v;
    enum kl_elem e;
    enum cls c;
    uint32_t bytes, rank, kaxis, slice; /* slice: log2 of the k that lie there at a time */
    uint32_t s[KL_MAX_RANK];
};

static uint32_t place(struct pgen *g, struct operand *o, kl_val v, uint32_t kaxis, uint32_t slice,
                      uint32_t pad)
{
    const struct kl_type *t = kl_type_of(g->f, v);
    *o = (struct operand){.v = v, .e = (enum kl_elem)t->elem, .rank = t->rank,
                          .kaxis = kaxis, .slice = slice};
    o->c = kl_px_cls(o->e);
    o->bytes = kl_px_bytes(o->c);
    uint32_t k = o->bytes;
    for (uint32_t d = t->rank; d-- > 0;) {
        o->s[d] = k;
        k <<= d == kaxis ? slice : log2_up(t->dim[d]);
        if (d + 1 == t->rank)
            k += pad * o->bytes;
    }
    return (k + 15) & ~15u;
}

/* Stores slice number `part` of an operand. */
static void put(struct pgen *g, struct operand *o, opnd base, uint32_t off, uint32_t part)
{
    const struct pval *x = &g->val[o->v.id];
    const kl_layout *l = x->l ? x->l : kl_px_default(g, kl_type_of(g->f, o->v));
    uint32_t w[10] = {0}, threads = 0, regs = 0; /* bits of k beyond the slice, by who has them */
    for (uint32_t i = 0; l && i < KL_LANE0 + KL_LANE_BITS + g->wlog2; i++) {
        int at = kl_px_bit(l, i);
        for (uint32_t d = 0; d < l->rank && at >= 0; d++) {
            if (at < l->off[d] || at >= l->off[d] + l->log2[d])
                continue;
            uint32_t k = (uint32_t)at - l->off[d];
            if (d == o->kaxis && k >= o->slice)
                *(i < KL_LANE0 ? &regs : &threads) |= 1u << k;
            else if (i >= KL_LANE0)
                w[i - KL_LANE0] = o->s[d] << k;
        }
    }
    opnd t = kl_px_weigh(g, w), first = kl_px_first(g, l);
    t = t ? kl_px_once(g, CL_B32, "add.u32 $, %s, %s", base, t) : base;
    uint32_t from = part << o->slice;
    if (threads) {
        opnd k = kl_px_thread_axis(g, l, o->kaxis);
        k = kl_px_once(g, CL_B32, "and.b32 $, %s, %u", k, threads);
        k = kl_px_once(g, CL_P, "setp.eq.u32 $, %s, %u", k, from & threads);
        first = first ? kl_px_once(g, CL_P, "and.pred $, %s, %s", first, k) : k;
    }
    for (uint32_t i = 0; i < (l ? kl_layout_nreg(l) : 1); i++) {
        uint32_t at = off, mine = 0;
        for (uint32_t d = 0; l && d < l->rank; d++) {
            uint32_t c = kl_coord_axis(l, kl_px_coord(l, i), d);
            if (d == o->kaxis)
                mine = c, c &= (1u << o->slice) - 1;
            at += o->s[d] * c;
        }
        if ((mine & regs) == (from & regs))
            kl_px_st_shared(g, o->c, t, at, kl_px_at(x, i), first);
    }
}

/* The thread's address in an operand that follows axes of the result; axis[d] is the result's axis
 * of the operand's axis d, -1 for k. */
static opnd follow(struct pgen *g, const struct operand *o, const kl_layout *l, const int *axis,
                   opnd base)
{
    uint32_t w[10] = {0};
    for (uint32_t i = 0; l && i < KL_LANE_BITS + g->wlog2; i++) {
        int at = kl_px_bit(l, KL_LANE0 + i);
        for (uint32_t d = 0; d < o->rank && at >= 0; d++)
            if (axis[d] >= 0 && at >= l->off[axis[d]] && at < l->off[axis[d]] + l->log2[axis[d]])
                w[i] = o->s[d] << (at - l->off[axis[d]]);
    }
    opnd t = kl_px_weigh(g, w);
    return t ? kl_px_once(g, CL_B32, "add.u32 $, %s, %s", base, t) : base;
}

static uint32_t reg_off(const struct operand *o, const kl_layout *l, const int *axis, uint32_t reg)
{
    uint32_t at = 0;
    for (uint32_t d = 0; l && d < o->rank; d++)
        if (axis[d] >= 0)
            at += o->s[d] * kl_coord_axis(l, kl_px_coord(l, reg), (uint32_t)axis[d]);
    return at;
}

/* `steps` steps of k on what lies in shared memory. */
static void multiply(struct pgen *g, const struct operand o[2], const kl_layout *l,
                     int axis[2][KL_MAX_RANK], opnd region, uint32_t second, uint32_t steps,
                     struct pval *r, enum kl_elem e)
{
    uint32_t n = l ? kl_layout_nreg(l) : 1, rank = o[0].rank;
    enum cls c = kl_px_cls(e);
    opnd at[2], *x[2];
    for (int k = 0; k < 2; k++)
        at[k] = kl_px_set(g, CL_B32, "add.u32 $, %s, %u", follow(g, &o[k], l, axis[k], region),
                          k ? second : 0);
    opnd left = kl_px_set(g, CL_B32, "mov.u32 $, %u", steps);
    uint32_t top = kl_px_new_label(g);
    kl_px_label(g, top);
    for (int k = 0; k < 2; k++) {
        uint32_t *off = kl_new_n(g->a, uint32_t, n);
        x[k] = kl_new_n(g->a, opnd, n);
        kl_px_trace_repeat(g, steps, o[k].s[k ? rank - 2 : rank - 1]);
        for (uint32_t i = 0; i < n; i++) {
            off[i] = reg_off(&o[k], l, axis[k], i);
            for (uint32_t j = 0; j < i && !x[k][i]; j++)
                if (off[j] == off[i])
                    x[k][i] = x[k][j];
            if (x[k][i])
                continue;
            opnd raw = kl_px_ld_shared(g, o[k].c, at[k], off[i]), wide;
            kl_px_convert_n(g, e, o[k].e, &raw, &wide, 1);
            x[k][i] = wide;
        }
    }
    kl_px_trace_repeat(g, 1, 0);
    const char *op = c == CL_F32   ? "fma.rn.f32"
                     : c == CL_F64 ? "fma.rn.f64"
                     : c == CL_B64 ? "mad.lo.s64"
                                   : "mad.lo.s32";
    kl_px_trace_repeat(g, steps, 0);
    for (uint32_t i = 0; i < n; i++)
        kl_px(g, "%s %s, %s, %s, %s", op, r->r[i], x[0][i], x[1][i], r->r[i]);
    kl_px(g, "add.u32 %s, %s, %u", at[0], at[0], o[0].s[rank - 1]);
    kl_px(g, "add.u32 %s, %s, %u", at[1], at[1], o[1].s[rank - 2]);
    kl_px(g, "sub.u32 %s, %s, 1", left, left);
    opnd more = kl_px_set(g, CL_P, "setp.ne.u32 $, %s, 0", left);
    kl_px(g, "@%s bra.uni $L%u", more, top);
    kl_px_trace_repeat(g, 1, 0);
}

void kl_px_dot(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_type *t = kl_type_of(f, v);
    const kl_layout *l = g->lay[v.id];
    enum kl_elem e = (enum kl_elem)t->elem;
    enum cls c = kl_px_cls(e);
    struct operand o[2];
    uint32_t rank = t->rank, size[2], which;
    uint32_t depth = kl_type_of(f, kl_arg(f, v, 0))->dim[rank - 1];
    int axis[2][KL_MAX_RANK] = {{0}};
    g->no_cluster = true;
    for (uint32_t d = 0; d < rank; d++)
        axis[0][d] = d == rank - 1 ? -1 : (int)d, axis[1][d] = d == rank - 2 ? -1 : (int)d;
    struct pval acc = kl_px_in(g, kl_arg(f, v, 2), l);
    uint32_t slice = log2_up(depth);
    for (;; slice--) { /* as much of k at a time as there is room for */
        size[0] = place(g, &o[0], kl_arg(f, v, 0), rank - 1, slice, 1);
        size[1] = place(g, &o[1], kl_arg(f, v, 1), rank - 2, slice, 0);
        if (size[0] + size[1] <= g->shared_max || slice == 0)
            break;
    }
    if (size[0] + size[1] > g->shared_max)
        kl_px_unsupported(g, "dot needs %u bytes of shared memory; a CTA has %u", size[0] + size[1],
                          g->shared_max);
    opnd region = kl_px_region(g, size[0] + size[1], &which);
    uint32_t n = l ? kl_layout_nreg(l) : 1;
    struct pval r = kl_px_new(g, l, c);
    for (uint32_t i = 0; i < n; i++)
        kl_px(g, "mov.%s %s, %s", kl_px_b(c), r.r[i], kl_px_at(&acc, i));
    for (uint32_t part = 0; part << slice < depth; part++) {
        uint32_t steps = depth - (part << slice);
        if (part)
            kl_px_barrier(g);
        put(g, &o[0], region, 0, part);
        put(g, &o[1], region, size[0], part);
        kl_px_barrier(g);
        multiply(g, o, l, axis, region, size[0], steps < 1u << slice ? steps : 1u << slice, &r, e);
    }
    kl_px_region_read(g, which);
    g->val[v.id] = r;
}
