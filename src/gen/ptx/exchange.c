/* exchange.c - folding over warps and CTAs, through shared memory.
 *
 * All place bits of warps and CTAs that follow one another in the order of the fold are folded
 * together.  If all lanes hold the same, a value a warp is stored and lanes fold.  Else all
 * partials are stored in index order, and threads fold the columns.
 *
 * In a cluster the CTA bits lie below those of the warps, above the lanes: so the halving order
 * has each CTA fold its own warps first, and one column of values a CTA crosses, in one exchange
 * (cluster.c).  Every CTA is sent everything and folds it itself: a second exchange would take
 * longer than 2 to 16 additions. */
#include "gen/ptx/reduce.h"

/* Place bits at[0..n) are folded, in that order.  fold number f counts the values of a column,
 * kept the warps that remain.  If all lanes hold the same, a value a warp is stored, f fastest;
 * else everything, [f][kept][chunk of registers][lane], a chunk at most 16 bytes. */
struct exchange {
    uint32_t at[KL_MAX_WARP_BITS + KL_MAX_CTA_BITS], n, nf, nk, nr, chunk, cols;
    uint32_t es[NCOMP], base[NCOMP], bytes, data; /* data: without what is between components */
    enum cls mem[NCOMP];                          /* as which a value lies there */
    uint32_t which, gone;                         /* gone: warp bits that were folded before */
    bool same_lanes, direct;
    opnd region;
};

static int fold_index(const struct red *r, const struct exchange *x, uint32_t place_bit)
{
    for (uint32_t k = 0; k < x->n; k++)
        if (x->at[k] == place_bit)
            return (int)(r->up ? k : x->n - 1 - k);
    return -1;
}

/* nw: how many warp bits are folded, here or before. */
static struct exchange exchange_of(const struct red *r, const uint32_t *at, uint32_t n, uint32_t nw,
                                   bool pushed)
{
    const struct pgen *g = r->g;
    struct exchange x = {
        .n = n, .nf = 1u << n, .nk = g->warps >> nw, .nr = kl_red_nreg(r), .same_lanes = true};
    memcpy(x.at, at, n * sizeof *at);
    for (uint32_t i = 0; i < KL_LANE_BITS; i++)
        x.same_lanes &= r->l.map.v[KL_LANE0 + i] == 0;
    x.chunk = x.nr;
    for (uint32_t c = 0; c < r->ncomp; c++) {
        x.mem[c] = pushed && r->c[c] == CL_B16 ? CL_B32 : r->c[c];
        x.es[c] = kl_px_bytes(x.mem[c]);
        if (x.chunk * x.es[c] > 16)
            x.chunk = 16 / x.es[c];
    }
    x.cols = x.nk * LANES * x.nr;
    x.direct = x.nf <= 4 || x.cols * x.nf <= g->threads;
    for (uint32_t c = 0; c < r->ncomp; c++) {
        uint32_t own = (x.same_lanes ? x.nf * x.nk * x.nr : x.nf * x.cols) * x.es[c];
        x.base[c] = x.bytes;
        x.data += own;
        x.bytes = (x.bytes + own + 15) & ~15u;
    }
    return x;
}

static opnd to_mem(struct red *r, const struct exchange *x, uint32_t c, opnd v)
{
    return x->mem[c] == r->c[c] ? v : kl_px_as32(r->g, r->c[c], kl_px_inreg(r->g, r->c[c], v));
}

static opnd from_mem(struct red *r, const struct exchange *x, uint32_t c, opnd v)
{
    return x->mem[c] == r->c[c] ? v : kl_px_from32(r->g, r->c[c], v);
}

static opnd plus(struct pgen *g, opnd a, opnd b)
{
    return b ? kl_px_once(g, CL_B32, "add.u32 $, %s, %s", a, b) : a;
}

/* Address of the thread's values of component c; with fold: of its own fold number, else of 0. */
static opnd warp_place(struct red *r, const struct exchange *x, uint32_t c, bool fold)
{
    struct pgen *g = r->g;
    uint32_t weight[10] = {0}, ranks[KL_MAX_CTA_BITS] = {0}, kept = 0, es = x->es[c];
    uint32_t fstride = x->same_lanes ? es : x->cols * es;
    uint32_t kstride = x->same_lanes ? x->nf * x->nr * es : LANES * x->nr * es;
    for (uint32_t i = 0; i < g->wlog2; i++) {
        int f = fold_index(r, x, KL_WARP0 + i);
        if (x->gone >> i & 1)
            continue;
        if (f < 0)
            weight[KL_LANE_BITS + i] = kstride << kept++;
        else if (fold)
            weight[KL_LANE_BITS + i] = fstride << f;
    }
    for (uint32_t i = 0; i < g->clog2 && fold; i++) {
        int f = fold_index(r, x, KL_CTA0 + i);
        ranks[i] = f < 0 ? 0 : fstride << f;
    }
    /* lanes of one value read those of the warps, each its own 2^high of them */
    uint32_t high = r->up && x->n > KL_LANE_BITS ? x->n - KL_LANE_BITS : 0;
    for (uint32_t i = 0; i < KL_LANE_BITS; i++) {
        if (!x->same_lanes)
            weight[i] = x->chunk * es << i;
        else if (!fold && i < x->n)
            weight[i] = es << (i + high);
    }
    opnd far = kl_px_weigh_rank(g, ranks); /* before the rest: arguments have no order in C */
    return plus(g, plus(g, x->region, kl_px_weigh(g, weight)), far);
}

static uint32_t reg_place(const struct exchange *x, uint32_t c, uint32_t k)
{
    return x->base[c] + (x->same_lanes ? k * x->nf * x->es[c] : k * LANES * x->es[c]);
}

static void store_partials(struct red *r, const struct exchange *x)
{
    struct pgen *g = r->g;
    for (uint32_t c = 0; c < r->ncomp; c++) {
        opnd at = warp_place(r, x, c, true), v[16];
        if (x->same_lanes) {
            opnd lane = kl_px_once(g, CL_B32, "and.b32 $, %s, 31", g->tid);
            opnd first = kl_px_once(g, CL_P, "setp.eq.u32 $, %s, 0", lane);
            for (uint32_t k = 0; k < x->nr; k++)
                kl_px_st_shared(g, x->mem[c], at, reg_place(x, c, k), to_mem(r, x, c, r->x[c][k]),
                                first);
            continue;
        }
        for (uint32_t k = 0; k < x->nr; k += x->chunk) {
            for (uint32_t i = 0; i < x->chunk; i++)
                v[i] = to_mem(r, x, c, r->x[c][k + i]);
            kl_px_st_shared_n(g, x->mem[c], at, reg_place(x, c, k), v, x->chunk, NULL);
        }
    }
}

/* All lanes hold the same: lane f reads the value of fold number f, and lanes fold.  Where there
 * are more values than lanes, each reads several: those that are folded first. */
static void fold_by_lanes(struct red *r, const struct exchange *x)
{
    struct pgen *g = r->g;
    uint32_t lanes = x->n < KL_LANE_BITS ? x->n : KL_LANE_BITS, each = x->nf >> lanes;
    opnd *to[NCOMP], mine[NCOMP], other[NCOMP], *list = kl_new_n(g->a, opnd, each * r->ncomp),
                                                at[NCOMP];
    kl_red_new_regs(r, to, x->nr);
    for (uint32_t c = 0; c < r->ncomp; c++)
        at[c] = warp_place(r, x, c, false);
    for (uint32_t k = 0; k < x->nr; k++) {
        for (uint32_t c = 0; c < r->ncomp; c++)
            for (uint32_t i = 0; i < each; i++)
                list[i * r->ncomp + c] = from_mem(
                    r, x, c,
                    kl_px_ld_shared(g, x->mem[c], at[c],
                                    reg_place(x, c, k) + i * (r->up ? 1 : LANES) * x->es[c]));
        kl_red_fold_list(r, list, each);
        for (uint32_t c = 0; c < r->ncomp; c++)
            to[c][k] = list[c];
    }
    kl_red_take(r, to);
    for (uint32_t i = 0; i < lanes; i++) {
        uint32_t j = r->up ? i : lanes - 1 - i;
        opnd mask = kl_px_int(g, 1 << j);
        kl_red_new_regs(r, to, x->nr);
        for (uint32_t k = 0; k < x->nr; k++) {
            for (uint32_t c = 0; c < r->ncomp; c++) {
                mine[c] = r->x[c][k];
                other[c] = kl_px_shfl(g, r->c[c], mine[c], true, mask);
            }
            kl_red_fold_pair(r, to, k, j, mine, other);
        }
        kl_red_take(r, to);
    }
}

/* ---- pushes ---- */

/* Number j of the CTAs that fold together with this one: itself is 0. */
static opnd partner(struct red *r, uint32_t mask, uint32_t j)
{
    uint32_t by = kl_deposit(j, mask);
    return by ? kl_px_set(r->g, CL_B32, "xor.b32 $, %s, %u", r->g->rank, by) : r->g->rank;
}

/* Each thread sends its partials, or each warp its value, to all CTAs that fold together. */
static void push_partials(struct red *r, const struct exchange *x, uint32_t mask)
{
    struct pgen *g = r->g;
    uint32_t nc = (uint32_t)__builtin_popcount(mask);
    for (uint32_t c = 0; c < r->ncomp; c++) {
        opnd at = warp_place(r, x, c, true);
        if (x->same_lanes) { /* a lane for each CTA */
            uint32_t weight[10] = {0};
            for (uint32_t i = 0; i < nc; i++)
                weight[i] = kl_deposit(1u << i, mask);
            opnd lane = kl_px_once(g, CL_B32, "and.b32 $, %s, 31", g->tid);
            opnd some = kl_px_once(g, CL_P, "setp.lt.u32 $, %s, %u", lane, 1u << nc);
            opnd cta = kl_px_once(g, CL_B32, "xor.b32 $, %s, %s", kl_px_weigh(g, weight), g->rank);
            for (uint32_t k = 0; k < x->nr; k++)
                kl_px_push(g, r->c[c], x->which, at, cta, reg_place(x, c, k), &r->x[c][k], 1, some);
            continue;
        }
        for (uint32_t j = 0; j < 1u << nc; j++)
            for (uint32_t k = 0; k < x->nr; k += x->chunk)
                kl_px_push(g, r->c[c], x->which, at, partner(r, mask, j), reg_place(x, c, k),
                           &r->x[c][k], x->chunk, NULL);
    }
}

/* As many threads as there are columns fold one each.  They put the result in place of fold 0,
 * or send it to the CTAs of mask, where it has a place in y. */
static void fold_columns(struct red *r, const struct exchange *x, const struct exchange *y,
                         uint32_t mask)
{
    struct pgen *g = r->g;
    uint32_t rounds = x->cols > g->threads ? x->cols / g->threads : 1, skip = 0;
    opnd *list = kl_new_n(g->a, opnd, x->nf * r->ncomp), at[NCOMP];
    if (x->cols < g->threads) {
        skip = kl_px_new_label(g);
        opnd out = kl_px_once(g, CL_P, "setp.ge.u32 $, %s, %u", g->tid, x->cols);
        kl_px(g, "@%s bra $L%u", out, skip);
        kl_px_trace_skip(g, out);
    }
    for (uint32_t i = 0; i < rounds; i++) {
        for (uint32_t c = 0; c < r->ncomp; c++) {
            opnd t = kl_px_once(g, CL_B32, "shl.b32 $, %s, %u", g->tid,
                                (uint32_t)__builtin_ctz(x->es[c]));
            at[c] = kl_px_once(g, CL_B32, "add.u32 $, %s, %s", x->region, t);
            for (uint32_t f = 0; f < x->nf; f++)
                list[f * r->ncomp + c] = from_mem(
                    r, x, c,
                    kl_px_ld_shared(g, x->mem[c], at[c],
                                    x->base[c] + (f * x->cols + i * g->threads) * x->es[c]));
        }
        kl_red_fold_list(r, list, x->nf);
        for (uint32_t c = 0; c < r->ncomp; c++) {
            uint32_t off = i * g->threads * x->es[c];
            if (!y) {
                kl_px_st_shared(g, x->mem[c], at[c], x->base[c] + off, to_mem(r, x, c, list[c]),
                                NULL);
                continue;
            }
            uint32_t ranks[KL_MAX_CTA_BITS] = {0};
            for (uint32_t b = 0; b < g->clog2; b++) {
                int f = fold_index(r, y, KL_CTA0 + b);
                ranks[b] = f < 0 ? 0 : y->cols * y->es[c] << f;
            }
            opnd t = kl_px_once(g, CL_B32, "shl.b32 $, %s, %u", g->tid,
                                (uint32_t)__builtin_ctz(y->es[c]));
            opnd far = kl_px_weigh_rank(g, ranks);
            opnd to = plus(g, plus(g, y->region, t), far);
            for (uint32_t j = 0; j < y->nf; j++)
                kl_px_push(g, r->c[c], y->which, to, partner(r, mask, j), y->base[c] + off,
                           &list[c], 1, NULL);
        }
    }
    if (skip) {
        kl_px_label(g, skip);
        kl_px_trace_skip(g, NULL);
    }
    if (!y)
        kl_px_barrier(g);
}

/* Each thread reads its columns, nf values of each if they are not yet folded. */
static void read_back(struct red *r, const struct exchange *x, uint32_t nf)
{
    struct pgen *g = r->g;
    opnd *to[NCOMP], *list = kl_new_n(g->a, opnd, nf * r->ncomp);
    opnd **all = kl_new_n(g->a, opnd *, nf * r->ncomp);
    kl_red_new_regs(r, to, x->nr);
    for (uint32_t f = 0; f < nf; f++)
        for (uint32_t c = 0; c < r->ncomp; c++) {
            opnd at = warp_place(r, x, c, false), *p = kl_new_n(g->a, opnd, x->nr);
            all[f * r->ncomp + c] = p;
            for (uint32_t k = 0; k < x->nr; k += x->chunk)
                kl_px_ld_shared_n(g, x->mem[c], at, reg_place(x, c, k) + f * x->cols * x->es[c],
                                  p + k, x->chunk);
            for (uint32_t k = 0; k < x->nr; k++)
                p[k] = from_mem(r, x, c, p[k]);
        }
    for (uint32_t k = 0; k < x->nr; k++) {
        for (uint32_t i = 0; i < nf * r->ncomp; i++)
            list[i] = all[i][k];
        kl_red_fold_list(r, list, nf);
        for (uint32_t c = 0; c < r->ncomp; c++)
            to[c][k] = list[c];
    }
    kl_red_take(r, to);
}

/* ---- the two ways ---- */

static void in_cta(struct red *r, const uint32_t *at, uint32_t n)
{
    struct pgen *g = r->g;
    struct exchange x = exchange_of(r, at, n, n, false);
    x.region = kl_px_region(g, x.bytes, &x.which);
    store_partials(r, &x);
    kl_px_barrier(g);
    if (x.same_lanes) {
        fold_by_lanes(r, &x);
    } else {
        if (!x.direct)
            fold_columns(r, &x, NULL, 0);
        read_back(r, &x, x.direct ? x.nf : 1);
    }
    kl_px_region_read(g, x.which);
}

static void in_cluster(struct red *r, const uint32_t *at, uint32_t n, uint32_t nw)
{
    enum {
        MOST_READ = 16,
        MOST_HELD = 8
    }; /* values of a column, of all columns, that each
                                              * thread reads */
    struct pgen *g = r->g;
    uint32_t mask = 0;
    bool warps_first = true;
    for (uint32_t i = 0; i < n; i++) {
        mask |= at[i] < KL_CTA0 ? 0 : 1u << (at[i] - KL_CTA0);
        warps_first &= at[i] >= KL_CTA0 || i < nw;
    }
    struct exchange all = exchange_of(r, at, n, nw, true), y = all;
    bool two = !all.same_lanes && nw && (warps_first || r->any_order) && all.nf > 4;
    if (!all.same_lanes && !two && all.nf > MOST_READ) {
        uint32_t nc = n - nw; /* neighbours first: the CTAs come before the warps */
        if (at[nc - 1] < KL_CTA0 || nc > 4) {
            g->no_cluster = true;
            return;
        }
        in_cluster(r, at, nc, 0);
        in_cta(r, at + nc, nw);
        return;
    }
    if (two) { /* fold the warps here, then the CTAs */
        uint32_t own[KL_MAX_WARP_BITS], far[KL_MAX_CTA_BITS], a = 0, b = 0;
        for (uint32_t i = 0; i < n; i++)
            *(at[i] < KL_CTA0 ? &own[a++] : &far[b++]) = at[i];
        struct exchange x = exchange_of(r, own, nw, nw, true);
        y = exchange_of(r, far, n - nw, nw, true);
        for (uint32_t i = 0; i < nw; i++)
            y.gone |= 1u << (own[i] - KL_WARP0);
        y.region = kl_px_push_region(g, y.bytes + x.bytes, &y.which);
        x.region = kl_px_once(g, CL_B32, "add.u32 $, %s, %u", y.region, y.bytes);
        kl_px_push_expect(g, y.which, y.data);
        store_partials(r, &x);
        kl_px_barrier(g);
        fold_columns(r, &x, &y, mask);
    } else {
        y.region = kl_px_push_region(g, y.bytes, &y.which);
        kl_px_push_expect(g, y.which, y.data);
        push_partials(r, &y, mask);
    }
    kl_px_push_wait(g, y.which);
    /* every thread of these CTAs has come as far as its CTA's pushes */
    if (mask == g->ctas - 1)
        g->p.far = 0, g->p.dirty &= 0x80;
    if (y.same_lanes) {
        fold_by_lanes(r, &y);
    } else if (y.nf * y.nr > MOST_HELD) {
        fold_columns(r, &y, NULL, 0);
        read_back(r, &y, 1);
    } else {
        read_back(r, &y, y.nf);
    }
    kl_px_region_read(g, y.which);
}

void kl_red_exchange(struct red *r, const uint32_t *at, uint32_t n)
{
    uint32_t nw = 0;
    for (uint32_t i = 0; i < n; i++)
        nw += at[i] < KL_CTA0;
    if (!r->dry && nw == n)
        in_cta(r, at, n);
    else if (!r->dry)
        in_cluster(r, at, n, nw);
    for (uint32_t k = 0; k < n; k++)
        r->l.map.v[at[k]] = 0;
}
