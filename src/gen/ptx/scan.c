/* scan.c - scans along an axis, in the order of NUMERICS.
 *
 * Level k combines every element whose index has bit k with the last element of the half before
 * its own: the index without bit k, with all lower bits set.  Levels go from the lowest bit up.
 * Where that element lies depends on where the bits up to k lie.  All in registers: it is another
 * register of the thread.  Some in lanes: a shuffle from one lane.  Some in warps: those threads
 * that hold such elements put them into shared memory, and after a barrier all others that need
 * them read them.  The elements that are read have bit k clear, so that a level changes nothing
 * that it reads.  Dead elements lie behind all others and are never read by one. */
#include "gen/ptx/ptx.h"

struct scan {
    struct pgen *g;
    kl_val v;
    const kl_layout *l;
    uint32_t axis, m, n;     /* tiles; registers */
    enum cls c[KL_MAX_FOLD];
    opnd *x[KL_MAX_FOLD];
    uint32_t regs, threads;  /* place bits of the axis below bit k, as masks of register and thread number */
    uint32_t reg_bit, thread_bit; /* bit k itself; 0: it lies elsewhere */
};

/* Where bit k of the axis lies: its place bit.  Replicas are not looked at. */
static uint32_t place_of(const struct scan *s, uint32_t k)
{
    int at = kl_layout_find_bit(s->l, s->axis, k);
    KL_CHECK(s->g->a->env, at >= 0 && at < KL_CTA0);
    return (uint32_t)at;
}

static void set_bit(const struct scan *s, uint32_t k, uint32_t *reg, uint32_t *thread)
{
    uint32_t at = place_of(s, k);
    if (at < KL_LANE0)
        *reg |= 1u << at;
    else
        *thread |= 1u << (at - KL_LANE0);
}

/* The register with what register i combines with. */
static uint32_t source_reg(const struct scan *s, uint32_t i)
{
    return (i | s->regs) & ~s->reg_bit;
}

/* Predicate: the thread's bit k is set. */
static opnd upper(struct scan *s)
{
    opnd b = kl_px_once(s->g, CL_B32, "and.b32 $, %s, %u", s->g->tid, s->thread_bit);
    return kl_px_once(s->g, CL_P, "setp.ne.u32 $, %s, 0", b);
}

/* ---- the elements before, for registers that share one ---- */

struct source {
    uint32_t reg;
    opnd v[KL_MAX_FOLD];
};

static void by_shuffle(struct scan *s, struct source *from, uint32_t n)
{
    struct pgen *g = s->g;
    opnd lane = kl_px_once(g, CL_B32, "and.b32 $, %s, 31", g->tid);
    if (s->threads)
        lane = kl_px_once(g, CL_B32, "or.b32 $, %s, %u", lane, s->threads);
    if (s->thread_bit)
        lane = kl_px_once(g, CL_B32, "and.b32 $, %s, %u", lane, 31 & ~s->thread_bit);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < s->m; k++)
            from[i].v[k] = kl_px_shfl(g, s->c[k], s->x[k][from[i].reg], false, lane);
}

static void by_shared(struct scan *s, struct source *from, uint32_t n)
{
    struct pgen *g = s->g;
    const uint32_t m = s->m;
    uint32_t weight[10] = {0}, columns = 1, off[KL_MAX_FOLD] = {0}, bytes = 0, which;
    for (uint32_t i = 0; i < KL_LANE_BITS + g->wlog2; i++)
        if (!((s->threads | s->thread_bit) >> i & 1)) {
            weight[i] = columns; /* other threads have columns of their own */
            columns *= 2;
        }
    for (uint32_t k = 0; k < m; k++) {
        off[k] = bytes;
        bytes += (n * columns * kl_px_bytes(s->c[k]) + 15) & ~15u;
    }
    opnd region = kl_px_region(g, bytes, &which), at[KL_MAX_FOLD] = {NULL};
    opnd column = kl_px_weigh(g, weight);
    for (uint32_t k = 0; k < m; k++) {
        at[k] = region;
        if (column) {
            opnd w = kl_px_once(g, CL_B32, "mul.lo.u32 $, %s, %u", column, kl_px_bytes(s->c[k]));
            at[k] = kl_px_once(g, CL_B32, "add.u32 $, %s, %s", region, w);
        }
    }
    /* who holds the elements: lower bits all set, bit k clear */
    opnd mine = kl_px_once(g, CL_B32, "and.b32 $, %s, %u", g->tid, s->threads | s->thread_bit);
    opnd last = kl_px_once(g, CL_P, "setp.eq.u32 $, %s, %u", mine, s->threads);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < m; k++)
            kl_px_st_shared(g, s->c[k], at[k], off[k] + i * columns * kl_px_bytes(s->c[k]), s->x[k][from[i].reg],
                            last);
    kl_px_barrier(g);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < m; k++)
            from[i].v[k] = kl_px_ld_shared(g, s->c[k], at[k], off[k] + i * columns * kl_px_bytes(s->c[k]));
    kl_px_region_read(g, which);
}

/* ---- levels ---- */

static void level(struct scan *s)
{
    struct pgen *g = s->g;
    const uint32_t m = s->m;
    uint32_t n = 0, all = s->threads | s->thread_bit;
    struct source *from = kl_new_n(g->a, struct source, s->n);
    uint32_t *index = kl_new_n(g->a, uint32_t, s->n);
    opnd *to = kl_new_n(g->a, opnd, m * s->n), up = s->thread_bit ? upper(s) : NULL;
    for (uint32_t i = 0; i < s->n; i++) { /* which are needed, each once */
        if (s->reg_bit && !(i & s->reg_bit))
            continue;
        uint32_t j = 0;
        while (j < n && from[j].reg != source_reg(s, i))
            j++;
        if (j == n)
            from[n++].reg = source_reg(s, i);
        index[i] = j;
    }
    if (all >> KL_LANE_BITS)
        by_shared(s, from, n);
    else if (all)
        by_shuffle(s, from, n);
    for (uint32_t k = 0; k < m; k++) {
        memcpy(&to[k * s->n], s->x[k], s->n * sizeof *to);
        for (uint32_t j = 0; j < n && !all; j++)
            from[j].v[k] = s->x[k][from[j].reg];
    }
    for (uint32_t i = 0; i < s->n; i++) {
        opnd hi[KL_MAX_FOLD], out[KL_MAX_FOLD];
        if (s->reg_bit && !(i & s->reg_bit))
            continue;
        for (uint32_t k = 0; k < m; k++)
            hi[k] = s->x[k][i];
        kl_px_fold_block(g, s->v, from[index[i]].v, hi, out);
        for (uint32_t k = 0; k < m; k++)
            to[k * s->n + i] = up ? kl_px_choose(g, s->c[k], up, out[k], hi[k]) : out[k];
    }
    for (uint32_t k = 0; k < m; k++)
        s->x[k] = &to[k * s->n];
}

void kl_px_scan(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, kl_arg(f, v, 0));
    struct scan s = {.g = g, .v = v, .axis = in->attr.redfn.axis, .m = in->nargs};
    s.l = kl_px_fold_layout(g, v, false);
    if (!s.l || !kl_layout_is_unit(s.l))
        s.l = kl_px_default(g, t);
    if (!s.l || t->dim[s.axis] == 1) { /* nothing to combine */
        for (uint32_t k = 0; k < s.m; k++)
            g->val[kl_px_fold_result(g, v, k).id] = g->val[kl_arg(f, v, k).id];
        return;
    }
    s.n = kl_layout_nreg(s.l);
    for (uint32_t k = 0; k < s.m; k++) {
        struct pval x = kl_px_in(g, kl_arg(f, v, k), s.l);
        s.c[k] = kl_px_vcls(g, kl_arg(f, v, k));
        s.x[k] = kl_new_n(g->a, opnd, s.n);
        for (uint32_t i = 0; i < s.n; i++)
            s.x[k][i] = kl_px_at(&x, i);
    }
    for (uint32_t k = 0; k < s.l->log2[s.axis]; k++) {
        s.reg_bit = s.thread_bit = 0;
        set_bit(&s, k, &s.reg_bit, &s.thread_bit);
        level(&s);
        s.regs |= s.reg_bit;
        s.threads |= s.thread_bit;
    }
    for (uint32_t k = 0; k < s.m; k++) {
        kl_val r = kl_px_fold_result(g, v, k);
        struct pval y = {.l = s.l, .r = s.x[k]};
        g->val[r.id] = y;
        if (g->lay[r.id] && g->lay[r.id] != s.l)
            g->val[r.id] = kl_px_to(g, &y, s.c[k], g->lay[r.id]);
    }
}
