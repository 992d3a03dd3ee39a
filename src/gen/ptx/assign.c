/* assign.c - where the elements of each tile lie.
 *
 * A shape has one default layout in a function: vectors of the fastest axis lowest, then lanes,
 * warps, and registers on top.  Loads and what starts a chain take it; element-wise operations
 * take their operands'; a reduction leaves the slice, reshape and permute rename bits where that
 * is exact.  Values that go round a loop or leave a branch have the layout of what is carried. */
#include "gen/ptx/ptx.h"

static uint32_t log2_up(uint64_t n)
{
    uint32_t k = 0;
    while ((UINT64_C(1) << k) < n)
        k++;
    return k;
}

static uint32_t bits_of(const struct kl_type *t)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        n += log2_up(t->dim[d]);
    return n;
}

const kl_layout *kl_px_intern(struct pgen *g, const kl_layout *l)
{
    for (uint32_t i = 0; i < g->pool.n; i++)
        if (kl_layout_eq(g->pool.v[i], l) && kl_layout_same_shape(g->pool.v[i], l))
            return g->pool.v[i];
    if (l->bad || kl_layout_nreg(l) > MAX_ELEMS)
        kl_px_unsupported(g, "a tile takes %u registers of each of %u threads; the most is %u",
                          kl_layout_nreg(l), g->threads, MAX_ELEMS);
    kl_layout *c = kl_new(g->a, kl_layout);
    *c = *l;
    kl_push(g->a, &g->pool, (const kl_layout *)c);
    return c;
}

/* ---- the default layout ---- */

/* The log2 of the elements that one access of v may move. */
uint32_t kl_px_access_vec(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_val u = kl_arg(f, v, 0);
    const struct kl_ins *view = kl_in(f, u);
    const struct kl_type *at = kl_type_of(f, u);
    uint32_t last = at->rank - 1;
    if (!at->rank || !g->o->v16 || view->op != KL_OP_view ||
        kl_in(f, kl_arg(f, u, 0))->op != KL_OP_param)
        return 0;
    uint32_t log2 = 4 - (uint32_t)__builtin_ctz(kl_elems[at->elem].bytes);
    const struct kl_ins *off = kl_in(f, kl_arg(f, u, 1));
    const struct kl_ins *str = kl_in(f, kl_arg(f, u, 2 + at->rank + last));
    if (off->op != KL_OP_const || off->attr.bits || str->op != KL_OP_const || str->attr.bits != 1 ||
        f->aux[in->attr.access.at + last] != 1)
        return 0;
    uint32_t a = g->align[kl_arg(f, v, 1 + last).id];
    /* other starts are multiplied by pitches, which are multiples */
    return a < log2 ? a : log2;
}

static const struct kl_type *access_type(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    uint32_t nd = in->attr.access.n;
    return in->op == KL_OP_store ? kl_type_of(f, kl_arg(f, v, 1 + nd)) : kl_type_of(f, v);
}

const kl_layout *kl_px_default(struct pgen *g, const struct kl_type *t)
{
    const kl_fn *f = g->f;
    if (kl_numel(t) == 1)
        return NULL;
    uint32_t vec = 0, bits = bits_of(t), threads = KL_LANE_BITS + g->wlog2 + g->clog2;
    uint32_t spare = bits > threads ? bits - threads : 0;
    bool any = false;
    for (uint32_t i = 1; i < f->nins; i++) {
        const struct kl_ins *in = &f->ins[i];
        kl_val v = {i};
        if (!in->blk.id || (in->op != KL_OP_load && in->op != KL_OP_store) ||
            !kl_same_shape(access_type(f, v), t))
            continue;
        uint32_t k = kl_px_access_vec(g, v);
        vec = k > vec ? k : vec;
        any = true;
    }
    if (!any)
        vec = 2;
    uint32_t last = t->dim[t->rank - 1];
    vec = vec < spare ? vec : spare;
    while (vec && (last & ((1u << vec) - 1)))
        vec--;
    kl_blocking b = {.vec = (uint8_t)vec, .warps = (uint8_t)g->wlog2, .ctas = (uint8_t)g->clog2,
                     .ctas_first = true};
    for (uint32_t d = 0; d < t->rank; d++)
        b.order[d] = (uint8_t)(t->rank - 1 - d);
    kl_layout l = kl_layout_block(t->rank, t->dim, &b);
    return kl_px_intern(g, &l);
}

/* ---- places of threads ---- */

uint32_t kl_px_replicas(const kl_layout *l)
{
    return kl_layout_replicas(l) & ~((1u << KL_LANE0) - 1);
}

opnd kl_px_thread(struct pgen *g, const kl_layout *l, uint32_t lo, uint32_t n)
{
    opnd sum = NULL;
    uint32_t nthread = KL_LANE_BITS + g->wlog2;
    for (uint32_t i = 0; i < nthread;) {
        int at = kl_px_bit(l, KL_LANE0 + i);
        if (at < (int)lo || at >= (int)(lo + n)) {
            i++;
            continue;
        }
        uint32_t run = 1; /* thread bits that are consecutive coordinate bits */
        while (i + run < nthread && kl_px_bit(l, KL_LANE0 + i + run) == at + (int)run &&
               at + run < lo + n)
            run++;
        opnd x = i + run == nthread && i == 0 ? g->tid : NULL;
        if (!x && i + run == nthread)
            x = kl_px_once(g, CL_B32, "shr.u32 $, %s, %u", g->tid, i);
        else if (!x) {
            opnd m = i ? kl_px_once(g, CL_B32, "shr.u32 $, %s, %u", g->tid, i) : g->tid;
            x = kl_px_once(g, CL_B32, "and.b32 $, %s, %u", m, (1u << run) - 1);
        }
        if ((uint32_t)at > lo)
            x = kl_px_once(g, CL_B32, "shl.b32 $, %s, %u", x, (uint32_t)at - lo);
        sum = sum ? kl_px_once(g, CL_B32, "or.b32 $, %s, %s", sum, x) : x;
        i += run;
    }
    uint32_t weight[KL_MAX_CTA_BITS] = {0};
    for (uint32_t i = 0; i < g->clog2; i++) {
        int at = kl_px_bit(l, KL_CTA0 + i);
        if (at >= (int)lo && at < (int)(lo + n))
            weight[i] = 1u << ((uint32_t)at - lo);
    }
    opnd x = kl_px_weigh_rank(g, weight);
    return x && sum ? kl_px_once(g, CL_B32, "or.b32 $, %s, %s", sum, x) : x ? x : sum;
}

opnd kl_px_thread_axis(struct pgen *g, const kl_layout *l, uint32_t axis)
{
    return kl_px_thread(g, l, l->off[axis], l->log2[axis]);
}

opnd kl_px_first(struct pgen *g, const kl_layout *l)
{
    uint32_t all = l ? kl_px_replicas(l) : UINT32_MAX;
    uint32_t mask = all >> KL_LANE0 & (g->threads - 1), ctas = kl_place_cta(all) & (g->ctas - 1);
    opnd p = NULL, q = NULL;
    if (mask) {
        opnd m = mask == g->threads - 1 ? g->tid
                                        : kl_px_once(g, CL_B32, "and.b32 $, %s, %u", g->tid, mask);
        p = kl_px_once(g, CL_P, "setp.eq.u32 $, %s, 0", m);
    }
    if (ctas) {
        opnd m = ctas == g->ctas - 1 ? g->rank
                                     : kl_px_once(g, CL_B32, "and.b32 $, %s, %u", g->rank, ctas);
        q = kl_px_once(g, CL_P, "setp.eq.u32 $, %s, 0", m);
    }
    return p && q ? kl_px_once(g, CL_P, "and.pred $, %s, %s", p, q) : p ? p : q;
}

/* ---- choosing ---- */

static const kl_layout *ew(struct pgen *g, kl_val v)
{
    const struct kl_ins *in = kl_in(g->f, v);
    const kl_layout *first = NULL, *d = NULL;
    for (uint32_t i = 0; i < in->nargs; i++) {
        const kl_layout *l = g->lay[kl_arg(g->f, v, i).id];
        if (!l || l == first)
            continue;
        if (!first) {
            first = l;
            continue;
        }
        d = d ? d : kl_px_default(g, kl_type_of(g->f, v));
        if (l == d)
            first = d;
    }
    return first;
}

static void block(struct pgen *g, kl_blk b);

static kl_val yield_arg(const kl_fn *f, kl_blk b, uint32_t i)
{
    return kl_arg(f, kl_last(f, b), i);
}

static void flow(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_blk own[2] = {{0}};
    kl_blocks(f, v, own);
    uint32_t n = kl_nresults(f, v), nfirst = in->op == KL_OP_for ? 3 : 0;
    kl_blk last = in->op == KL_OP_while ? own[1] : own[0];
    const kl_layout **l = kl_new_n(g->a, const kl_layout *, n + 1);
    if (in->op == KL_OP_if) {
        block(g, own[0]);
        block(g, own[1]);
    } else {
        /* what is carried: first as it comes in, then as it goes round */
        for (int pass = 0; pass < 2; pass++) {
            for (uint32_t k = 0; k < (in->op == KL_OP_for ? 1u : 2u); k++) {
                kl_val p = {f->blk[own[k].id].first};
                if (in->op == KL_OP_for)
                    p.id = f->ins[p.id].next; /* behind the induction variable */
                for (uint32_t i = 0; i < n; i++, p.id = f->ins[p.id].next)
                    g->lay[p.id] = pass ? l[i] : g->lay[kl_arg(f, v, nfirst + i).id];
                block(g, own[k]);
            }
            for (uint32_t i = 0; i < n && !pass; i++) {
                const struct kl_type *t = kl_type_of(f, kl_arg(f, v, nfirst + i));
                l[i] = g->lay[yield_arg(f, last, i).id];
                if (!l[i])
                    l[i] = g->lay[kl_arg(f, v, nfirst + i).id];
                if (!l[i])
                    l[i] = kl_px_default(g, t);
            }
        }
    }
    kl_val r = {in->next};
    for (uint32_t i = 0; i < n; i++, r.id = f->ins[r.id].next) {
        if (in->op == KL_OP_if) {
            l[i] = g->lay[yield_arg(f, own[0], i).id];
            if (!l[i])
                l[i] = g->lay[yield_arg(f, own[1], i).id];
            if (!l[i])
                l[i] = kl_px_default(g, kl_type_of(f, r));
        }
        g->lay[r.id] = l[i];
    }
}

static const kl_layout *choose(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, v);
    const kl_layout *a = in->nargs ? g->lay[kl_arg(f, v, 0).id] : NULL;
    kl_layout l;
    if (kl_ops[in->op].flags & KL_F_EW)
        return kl_numel(t) == 1 ? NULL : ew(g, v);
    switch (in->op) {
    case KL_OP_const: return NULL;
    case KL_OP_broadcast: return a ? kl_px_default(g, t) : NULL;
    case KL_OP_reshape:
        if (!a || kl_numel(t) == 1)
            return NULL;
        return kl_layout_reshape(a, t->rank, t->dim, &l) ? kl_px_intern(g, &l)
                                                         : kl_px_default(g, t);
    case KL_OP_permute: {
        uint32_t perm[KL_MAX_RANK];
        if (!a)
            return NULL;
        for (uint32_t d = 0; d < t->rank; d++)
            perm[d] = (uint32_t)f->aux[in->attr.aux.at + d];
        l = kl_layout_permute(a, perm);
        return kl_px_intern(g, &l);
    }
    case KL_OP_reduce:
    case KL_OP_argmax:
    case KL_OP_argmin: return kl_numel(t) == 1 ? NULL : kl_px_reduce_layout(g, v, a);
    case KL_OP_flip: return a;
    case KL_OP_dot: return kl_numel(t) == 1 ? NULL : kl_px_dot_layout(g, t);
    default: return kl_px_default(g, t);
    }
}

/* A fold by a block: its operands come to the layout of the first that has one. */
static void fold(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, kl_px_fold_result(g, v, 0));
    const kl_layout *l = kl_px_fold_layout(g, v, true);
    if (kl_numel(t) == 1)
        l = NULL;
    else if (in->op == KL_OP_reduce_fn)
        l = kl_px_reduce_layout(g, v, l);
    else if (!l)
        l = kl_px_default(g, t);
    for (uint32_t i = 0; i < in->nargs; i++)
        g->lay[kl_px_fold_result(g, v, i).id] = l;
}

/* A store happens where its value lies if that is good: whole default, or a slice. */
static const kl_layout *store_layout(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    kl_val x = kl_arg(f, v, 1 + kl_in(f, v)->attr.access.n);
    const kl_layout *l = g->lay[x.id], *d = kl_px_default(g, kl_type_of(f, x));
    if (!l || l == d)
        return d;
    return kl_px_replicas(l) & ~kl_px_replicas(d) ? l : d;
}

static void block(struct pgen *g, kl_blk b)
{
    kl_each_ins(g->f, b, v) {
        const struct kl_ins *in = kl_in(g->f, v);
        if (in->op == KL_OP_param || in->op == KL_OP_result)
            continue; /* set by who owns the block */
        if (in->op == KL_OP_for || in->op == KL_OP_while || in->op == KL_OP_if)
            flow(g, v);
        else if (kl_is_fold(g->f, v))
            fold(g, v);
        else if (in->op == KL_OP_store || in->op == KL_OP_atomic_store)
            g->lay[v.id] = store_layout(g, v);
        else if (in->type.id && kl_type_of(g->f, v)->kind == KL_T_TILE)
            g->lay[v.id] = choose(g, v);
    }
}

/* ---- warps and CTAs ---- */

/* Columns from which a row lies over a cluster. */
enum { ROW_OF_CLUSTER = 16384 };

/* Is a tile folded?  wide: one of 8-byte elements. */
static bool folds(const kl_fn *f, bool *wide)
{
    bool any = false;
    for (uint32_t i = 1; i < f->nins; i++) {
        const struct kl_ins *in = &f->ins[i];
        if (!in->blk.id || (in->op != KL_OP_reduce && !kl_is_fold(f, (kl_val){i}) &&
                            in->op != KL_OP_argmax && in->op != KL_OP_argmin))
            continue;
        any = true;
        *wide |= kl_elems[kl_type_of(f, kl_arg(f, (kl_val){i}, 0))->elem].bytes == 8;
    }
    return any;
}

/* A function that takes many steps, even in its fast form. */
static bool is_math(enum kl_op op)
{
    uint32_t flags = kl_ops[op].flags;
    if (op == KL_OP_log1p || op == KL_OP_expm1)
        return true;
    return (flags & KL_F_EW) && (flags & KL_F_FAST) && op != KL_OP_div && op != KL_OP_rsqrt &&
           op != KL_OP_sqrt;
}

uint32_t kl_px_steps(const struct pgen *g)
{
    uint32_t steps = 0;
    for (uint32_t i = 1; i < g->f->nins; i++) {
        const struct kl_ins *in = &g->f->ins[i];
        enum kl_op op = (enum kl_op)in->op;
        if (!in->blk.id || !is_math(op) || (in->attr.bits && !g->o->exact) ||
            kl_numel(kl_type_of(g->f, (kl_val){i})) == 1 || kl_px_is_brief(g, (kl_val){i}))
            continue;
        if (op == KL_OP_erf || op == KL_OP_erfc || op == KL_OP_sin || op == KL_OP_cos || op == KL_OP_pow)
            return 2;
        steps = 1;
    }
    return steps;
}

bool kl_px_has_math(const kl_fn *f)
{
    for (uint32_t i = 1; i < f->nins; i++)
        if (f->ins[i].blk.id && is_math((enum kl_op)f->ins[i].op) &&
            kl_numel(kl_type_of(f, (kl_val){i})) > 1)
            return true;
    return false;
}

/* Is every tile of more than one element one long axis of `most` places (rounded up)?  Then a
 * reduction leaves one value, and nothing else crosses threads. */
static bool one_long_axis(const kl_fn *f, uint64_t most)
{
    for (uint32_t i = 1; i < f->nins; i++) {
        const struct kl_ins *in = &f->ins[i];
        if (!in->blk.id || !in->type.id || in->op == KL_OP_const)
            continue;
        const struct kl_type *t = &f->type[in->type.id];
        if (t->kind != KL_T_TILE || kl_numel(t) == 1)
            continue;
        uint32_t axes = 0;
        for (uint32_t d = 0; d < t->rank; d++)
            axes += t->dim[d] > 1;
        if (axes != 1 || UINT64_C(1) << bits_of(t) != most)
            return false;
    }
    return true;
}

/* Does some operation reach elements of other threads in a way that does not know of clusters?  What
 * is listed here does; operations that are new have to be added. */
static bool crosses(const kl_fn *f)
{
    for (uint32_t i = 1; i < f->nins; i++) {
        kl_val v = {i};
        const struct kl_ins *in = &f->ins[i];
        if (!in->blk.id || kl_ops[in->op].flags & KL_F_EW)
            continue;
        switch (in->op) {
        case KL_OP_load:
        case KL_OP_store:
        case KL_OP_inside:
            for (uint32_t d = 0; d < in->attr.access.n; d++)
                if (kl_access_index(f, v, d))
                    return true;
            break;
        case KL_OP_const:
        case KL_OP_param:
        case KL_OP_program_id:
        case KL_OP_num_programs:
        case KL_OP_num_sms:
        case KL_OP_iota:
        case KL_OP_table:
        case KL_OP_view:
        case KL_OP_broadcast:
        case KL_OP_reshape: /* shape.c and convert.c tell where these do cross */
        case KL_OP_permute:
        case KL_OP_reduce:
        case KL_OP_reduce_fn:
        case KL_OP_argmax:
        case KL_OP_argmin:
        case KL_OP_for:
        case KL_OP_while:
        case KL_OP_if:
        case KL_OP_result:
        case KL_OP_yield: break;
        default: return true;
        }
    }
    return false;
}

/* Is the row all that is loaded whole, in elements of 8 or 16 bits? */
static bool narrow_row(const kl_fn *f, uint64_t most)
{
    uint32_t loads = 0;
    for (uint32_t i = 1; i < f->nins; i++) {
        const struct kl_ins *in = &f->ins[i];
        if (!in->blk.id || in->op != KL_OP_load)
            continue;
        const struct kl_type *t = kl_type_of(f, (kl_val){i});
        if (kl_numel(t) == 1)
            continue;
        if (kl_elems[t->elem].bytes > 2 || UINT64_C(1) << bits_of(t) != most)
            return false;
        loads++;
    }
    return loads == 1;
}

/* log2 of the CTAs of a cluster.
 *
 * A thread holds 32 elements of a row (16 of wider ones) in 64 registers, so that 1024 threads
 * have an SM: 128 KiB of f32.  A row of 32768 would have an SM for itself, so that nothing is
 * loaded while it is reduced, and a longer one does not fit at all.  Over a cluster of smaller
 * CTAs, each SM holds parts of several rows: of four (256 threads a CTA) up to 65536 columns, of
 * two (512) up to 131072 with a cluster of 8, which every device takes, and 262144 with 16; else
 * of one.
 *
 * 16-bit elements need twice as many in flight for the same bytes: 64 a thread in CTAs of 128
 * threads (96 registers), 128 where clusters of 8 end.  Measured on an H200, share of a copy: rows
 * of 16384 0.96 against 0.91 in one CTA, 32768 0.95 against 0.87 with 32 a thread, 131072 0.88
 * against 0.73.  Norms, which hold their parameters as well, gain nothing by it. */
static uint32_t choose_cluster(struct pgen *g, uint64_t most, uint64_t few, uint64_t many,
                               bool folded)
{
    const kl_fn *f = g->f;
    uint32_t top = kl_px_cluster_most(g), c = 0;
    if (!top || g->no_cluster || crosses(f))
        return 0;
    if (f->cluster > 0) {
        while ((2u << c) <= (uint32_t)f->cluster && (2u << c) <= top)
            c++;
        return c;
    }
    if (!folded || f->warps > 0 || most < ROW_OF_CLUSTER || !one_long_axis(f, most))
        return 0;
    while (few << c < most && (2u << c) <= (top < 8 ? top : 8))
        c++;
    if (many << c < most && (2u << c) <= top)
        c++;
    return c;
}

static void choose_warps(struct pgen *g)
{
    const kl_fn *f = g->f;
    uint64_t most = 1;
    bool wide = false;
    for (uint32_t i = 1; i < f->nins; i++) {
        const struct kl_ins *in = &f->ins[i];
        if (!in->blk.id || !in->type.id || in->op == KL_OP_const)
            continue;
        const struct kl_type *t = &f->type[in->type.id];
        uint64_t n = t->kind == KL_T_TILE ? UINT64_C(1) << bits_of(t) : 1;
        most = n > most ? n : most;
    }
    uint32_t w = 0;
    bool folded = folds(f, &wide);
    bool narrow = folded && narrow_row(f, most);
    uint32_t held = wide ? 16 : 32; /* of a row, by a thread */
    g->clog2 = narrow ? choose_cluster(g, most, 128 * 64, 128 * 128, folded)
                      : choose_cluster(g, most, 256 * held, 512 * held, folded);
    g->ctas = 1u << g->clog2;
    most = most >> g->clog2 ? most >> g->clog2 : 1; /* of a CTA */
    if (f->warps > 0) {
        while ((2u << w) <= (uint32_t)f->warps && w < 5)
            w++;
    } else {
        /* Where tiles are folded, a thread holds 32 elements (128 bytes of wider ones): most of
         * the work is done in registers, few warps exchange, and a row of 1024 needs no barrier.
         * Else 8 or 16, so that many warps hide the latency; where functions are computed 16, to
         * which the addresses add little. */
        uint64_t each = most >= 8192 ? 32 : most >= 1024 ? 8 : 4;
        if (most >= 2048 && most < 8192)
            each = 16;
        if (folded && narrow && g->clog2)
            each = most <= 128 * 64 ? 64 : 128;
        else if (folded)
            each = held;
        else if (most >= 1024 && kl_px_has_math(f) && (most < 8192 || kl_px_steps(g)))
            each = 16;
        while (w < 5 && (UINT64_C(32) << w) * each < most)
            w++;
    }
    g->wlog2 = w;
    g->warps = 1u << w;
    g->threads = 32u << w;
    g->each = (uint32_t)(most / g->threads);
}

void kl_px_assign(struct pgen *g)
{
    g->lay = kl_new_n(g->a, const kl_layout *, g->f->nins);
    choose_warps(g);
    block(g, KL_BODY);
}
