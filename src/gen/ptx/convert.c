/* convert.c - bringing a value to another layout, as src/layout plans it. */
#include "layout/convert.h"

#include "gen/ptx/ptx.h"

/* ---- bits of the thread number ---- */

/* Sum of weight[i] over the bits i of a number of n bits that are set; NULL: 0.  Bits whose weights
 * follow each other go together. */
static opnd weigh(struct pgen *g, opnd number, uint32_t n, const uint32_t *weight)
{
    opnd sum = NULL;
    for (uint32_t i = 0; i < n;) {
        uint32_t run = 1, w = weight[i];
        if (!w) {
            i++;
            continue;
        }
        while (i + run < n && weight[i + run] == w << run)
            run++;
        opnd x = i ? kl_px_once(g, CL_B32, "shr.u32 $, %s, %u", number, i) : number;
        if (i + run < n)
            x = kl_px_once(g, CL_B32, "and.b32 $, %s, %u", x, (1u << run) - 1);
        if (w & (w - 1))
            x = kl_px_once(g, CL_B32, "mul.lo.u32 $, %s, %u", x, w);
        else if (w > 1)
            x = kl_px_once(g, CL_B32, "shl.b32 $, %s, %u", x, (uint32_t)__builtin_ctz(w));
        sum = sum ? kl_px_once(g, CL_B32, "add.u32 $, %s, %s", sum, x) : x;
        i += run;
    }
    return sum;
}

opnd kl_px_weigh(struct pgen *g, const uint32_t *weight)
{
    return weigh(g, g->tid, KL_LANE_BITS + g->wlog2, weight);
}

opnd kl_px_weigh_rank(struct pgen *g, const uint32_t weight[KL_MAX_CTA_BITS])
{
    return weigh(g, g->rank, g->clog2, weight);
}

/* p: the parity of the thread number under a mask. */
static opnd parity(struct pgen *g, uint32_t mask)
{
    opnd m = kl_px_once(g, CL_B32, "and.b32 $, %s, %u", g->tid, mask);
    if (mask & (mask - 1)) {
        m = kl_px_once(g, CL_B32, "popc.b32 $, %s", m);
        m = kl_px_once(g, CL_B32, "and.b32 $, %s, 1", m);
    }
    return kl_px_once(g, CL_P, "setp.ne.u32 $, %s, 0", m);
}

opnd kl_px_lane_bit(struct pgen *g, uint32_t bit)
{
    return parity(g, 1u << bit);
}

static opnd terms(struct pgen *g, const kl_term *t, uint32_t n, const char *join)
{
    opnd sum = NULL;
    for (uint32_t i = 0; i < n; i++) {
        opnd x = kl_px_once(g, CL_B32, "and.b32 $, %s, %u", g->tid, t[i].mask);
        int up = (t[i].mul & (t[i].mul - 1)) ? -1 : __builtin_ctz(t[i].mul);
        if (up >= 0) {
            if (up > t[i].shr)
                x = kl_px_once(g, CL_B32, "shl.b32 $, %s, %d", x, up - t[i].shr);
            else if (up < t[i].shr)
                x = kl_px_once(g, CL_B32, "shr.u32 $, %s, %d", x, t[i].shr - up);
        } else {
            if (t[i].shr)
                x = kl_px_once(g, CL_B32, "shr.u32 $, %s, %u", x, t[i].shr);
            x = kl_px_once(g, CL_B32, "mul.lo.u32 $, %s, %u", x, t[i].mul);
        }
        sum = sum ? kl_px_once(g, CL_B32, "%s $, %s, %s", join, sum, x) : x;
    }
    return sum;
}

/* ---- shuffles ---- */

opnd kl_px_shfl(struct pgen *g, enum cls c, opnd x, bool bfly, opnd lane)
{
    const char *mode = bfly ? "bfly" : "idx";
    if (c == CL_B64 || c == CL_F64) {
        opnd lo = kl_px_reg(g, CL_B32), hi = kl_px_reg(g, CL_B32);
        kl_px(g, "mov.b64 {%s, %s}, %s", lo, hi, kl_px_inreg(g, c, x));
        lo = kl_px_shfl(g, CL_B32, lo, bfly, lane);
        hi = kl_px_shfl(g, CL_B32, hi, bfly, lane);
        return kl_px_set(g, c, "mov.b64 $, {%s, %s}", lo, hi);
    }
    opnd w = kl_px_inreg(g, CL_B32, kl_px_as32(g, c, kl_px_inreg(g, c, x)));
    opnd r = kl_px_set(g, CL_B32, "shfl.sync.%s.b32 $, %s, %s, 31, -1", mode, w, lane);
    return kl_px_from32(g, c, r);
}

static opnd choose(struct pgen *g, enum cls c, opnd p, opnd a, opnd b)
{
    return kl_px_ew1(g, KL_OP_select, false,
                     c == CL_P     ? KL_bool
                     : c == CL_B16 ? KL_f16
                     : c == CL_B32 ? KL_i32
                     : c == CL_B64 ? KL_i64
                     : c == CL_F32 ? KL_f32
                                   : KL_f64,
                     KL_i32, p, a, b, 0, false);
}

opnd kl_px_choose(struct pgen *g, enum cls c, opnd p, opnd a, opnd b)
{
    return strcmp(a, b) == 0 ? a : choose(g, c, p, a, b);
}

static void shuffle(struct pgen *g, const kl_conv *c, const struct pval *v, enum cls cl, opnd *out)
{
    kl_shuffle_code code = kl_shuffle_ops(c, g->a);
    uint32_t n = kl_layout_nreg(&c->src), m = kl_layout_nreg(&c->dst);
    opnd *x = kl_new_n(g->a, opnd, n + code.op.n);
    opnd *from = x;
    for (uint32_t i = 0; i < n; i++)
        x[i] = kl_px_at(v, i);
    kl_term t[KL_MAX_TERM];
    uint32_t nt = kl_lin_terms(&c->shuffle.across, KL_LANE_BITS + g->wlog2, t);
    for (uint32_t i = 0; i < code.op.n; i++) {
        const kl_shuffle_op *op = &code.op.v[i];
        if (op->op == KL_SH_SELECT) {
            x[n + i] = kl_px_choose(g, cl, parity(g, op->mask), from[op->b], from[op->a]);
        } else if (op->op == KL_SH_BFLY) {
            x[n + i] = kl_px_shfl(g, cl, from[op->a], true, kl_px_int(g, op->lane));
        } else {
            opnd lane = terms(g, t, nt, "xor.b32");
            lane = !lane     ? kl_px_int(g, op->lane)
                   : op->lane ? kl_px_once(g, CL_B32, "xor.b32 $, %s, %u", lane, op->lane)
                              : lane;
            x[n + i] = kl_px_shfl(g, cl, from[op->a], false, lane);
        }
    }
    for (uint32_t i = 0; i < m; i++)
        out[i] = x[code.result[i] == KL_NOVALUE ? 0 : code.result[i]];
}

/* ---- shared memory ---- */

opnd kl_px_ld_shared(struct pgen *g, enum cls c, opnd addr, int64_t off)
{
    if (c == CL_P) {
        opnd r = kl_px_set(g, CL_B32, "ld.shared.b32 $, [%s+%lld]", addr, (long long)off);
        kl_px_trace_shared(g, false, kl_px_bytes(c), addr, off, NULL);
        return kl_px_set(g, CL_P, "setp.ne.u32 $, %s, 0", r);
    }
    opnd r = kl_px_set(g, c, "ld.shared.%s $, [%s+%lld]", kl_px_b(c), addr, (long long)off);
    kl_px_trace_shared(g, false, kl_px_bytes(c), addr, off, NULL);
    return r;
}

void kl_px_st_shared(struct pgen *g, enum cls c, opnd addr, int64_t off, opnd v, opnd pred)
{
    v = kl_px_inreg(g, c, v);
    if (c == CL_P)
        v = kl_px_as32(g, c, v), c = CL_B32;
    kl_px(g, "%s%s%sst.shared.%s [%s+%lld], %s", pred ? "@" : "", pred ? pred : "", pred ? " " : "",
          kl_px_b(c), addr, (long long)off, v);
    kl_px_trace_shared(g, true, kl_px_bytes(c), addr, off, pred);
}

/* n = 2^k registers of one class, together at most 16 bytes. */
void kl_px_st_shared_n(struct pgen *g, enum cls c, opnd addr, int64_t off, const opnd *v, uint32_t n,
                       opnd pred)
{
    opnd w[16] = {NULL};
    uint32_t width = n * kl_px_bytes(c);
    if (n == 1) {
        kl_px_st_shared(g, c, addr, off, v[0], pred);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        w[i] = kl_px_inreg(g, c, v[i]);
        if (c == CL_P)
            w[i] = kl_px_as32(g, c, w[i]);
    }
    if (c == CL_B16) {
        for (uint32_t i = 0; i < n; i += 2)
            w[i / 2] = kl_px_set(g, CL_B32, "mov.b32 $, {%s, %s}", w[i], w[i + 1]);
        n /= 2;
    }
    const char *t = c == CL_P || c == CL_B16 ? "b32" : kl_px_b(c);
    opnd list = kl_px_list(g, w, n);
    kl_px(g, "%s%s%sst.shared%s.%s [%s+%lld], %s", pred ? "@" : "", pred ? pred : "",
          pred ? " " : "", n == 1 ? "" : n == 2 ? ".v2" : ".v4", t, addr, (long long)off, list);
    kl_px_trace_shared(g, true, width, addr, off, pred);
}

void kl_px_ld_shared_n(struct pgen *g, enum cls c, opnd addr, int64_t off, opnd *v, uint32_t n)
{
    if (n == 1) {
        v[0] = kl_px_ld_shared(g, c, addr, off);
        return;
    }
    enum cls m = c == CL_P || c == CL_B16 ? CL_B32 : c;
    uint32_t k = c == CL_B16 ? n / 2 : n;
    opnd w[4] = {NULL};
    for (uint32_t i = 0; i < k; i++)
        w[i] = kl_px_reg(g, m);
    opnd list = kl_px_list(g, w, k);
    kl_px(g, "ld.shared%s.%s %s, [%s+%lld]", k == 1 ? "" : k == 2 ? ".v2" : ".v4", kl_px_b(m), list,
          addr, (long long)off);
    kl_px_trace_shared(g, false, n * kl_px_bytes(c), addr, off, NULL);
    for (uint32_t i = 0; i < k; i++) {
        if (c == CL_B16) {
            v[2 * i] = kl_px_reg(g, CL_B16), v[2 * i + 1] = kl_px_reg(g, CL_B16);
            kl_px(g, "mov.b32 {%s, %s}, %s", v[2 * i], v[2 * i + 1], w[i]);
        } else {
            v[i] = c == CL_P ? kl_px_from32(g, c, w[i]) : w[i];
        }
    }
}

/* Address of the thread's part, exclusive-ored with flip. */
static opnd side_address(struct pgen *g, const kl_shared *s, const kl_side *side, opnd base,
                         uint32_t flip)
{
    kl_term t[KL_MAX_TERM];
    uint32_t n = kl_side_thread(s, side, t);
    opnd x = terms(g, t, n, s->additive ? "add.u32" : "xor.b32");
    if (flip)
        x = x ? kl_px_once(g, CL_B32, "xor.b32 $, %s, %u", x, flip) : kl_px_int(g, flip);
    return x ? kl_px_once(g, CL_B32, "add.u32 $, %s, %s", base, x) : base;
}

static void side(struct pgen *g, const kl_conv *c, bool store, opnd base, enum cls cl, uint32_t round,
                 const struct pval *v, opnd *out)
{
    const kl_shared *s = &c->shared;
    const kl_side *x = store ? &s->st : &s->ld;
    uint32_t n = kl_layout_nreg(store ? &c->src : &c->dst), each = 1u << x->nvec;
    opnd pred = NULL;
    uint32_t skip = x->skip_threads >> KL_LANE0;
    /* places to thread numbers: lanes and warps follow one another in both */
    if (skip & (g->threads - 1) && store) {
        opnd m = kl_px_once(g, CL_B32, "and.b32 $, %s, %u", g->tid, skip & (g->threads - 1));
        pred = kl_px_once(g, CL_P, "setp.eq.u32 $, %s, 0", m);
    }
    for (uint32_t r = 0; r < n; r++) {
        if (r & (x->vecs | x->skip_regs) || !kl_side_in_round(s, x, r, round))
            continue;
        uint32_t flip, add;
        kl_side_reg(s, x, r, &flip, &add);
        opnd at = side_address(g, s, x, base, flip), e[16];
        if (store) {
            for (uint32_t i = 0; i < each; i++)
                e[i] = kl_px_at(v, r + kl_deposit(i, x->vecs));
            /* in the order of vec[] */
            opnd o[16];
            for (uint32_t i = 0; i < each; i++) {
                uint32_t reg = r;
                for (uint32_t k = 0; k < x->nvec; k++)
                    reg |= (i >> k & 1) << x->vec[k];
                o[i] = kl_px_at(v, reg);
            }
            kl_px_st_shared_n(g, cl, at, add, o, each, pred);
            continue;
        }
        kl_px_ld_shared_n(g, cl, at, add, e, each);
        for (uint32_t i = 0; i < each; i++) {
            uint32_t reg = r;
            for (uint32_t k = 0; k < x->nvec; k++)
                reg |= (i >> k & 1) << x->vec[k];
            out[reg] = e[i];
        }
    }
}

static void shared(struct pgen *g, const kl_conv *c, const struct pval *v, enum cls cl, opnd *out)
{
    const kl_shared *s = &c->shared;
    uint32_t rounds = 1u << s->rounds, m = kl_layout_nreg(&c->dst), which;
    opnd base = kl_px_region(g, (s->bytes + 127) & ~127u, &which);
    kl_px_trace_plan(g, c, g->shared_max / 2);
    for (uint32_t k = 0; k < rounds; k++) {
        if (k)
            kl_px_barrier(g);
        side(g, c, true, base, cl, k, v, NULL);
        if (s->in_warp)
            kl_px(g, "bar.warp.sync -1");
        else
            kl_px_barrier(g);
        side(g, c, false, base, cl, k, NULL, out);
        kl_px_region_read(g, which);
    }
    kl_px_trace_plan(g, NULL, 0);
    /* registers that were not loaded hold nothing, or repeat others */
    for (uint32_t i = 0; i < m; i++)
        if (!out[i]) {
            uint32_t base_reg = i & ~s->ld.skip_regs;
            out[i] = out[base_reg] ? out[base_reg] : out[0];
        }
}

struct pval kl_px_to(struct pgen *g, const struct pval *v, enum cls cl, const kl_layout *l)
{
    if (!v->l || v->l == l)
        return *v;
    kl_conv *c = kl_new(g->a, kl_conv);
    kl_conv_plan(c, v->l, l, kl_px_bytes(cl), g->shared_max / 2,
                 (g->in_block ? KL_CONV_NO_SHARED : 0) | (g->o->no_swizzle ? KL_CONV_NO_SWIZZLE : 0));
    uint32_t m = kl_layout_nreg(l);
    struct pval out = {.l = l, .r = kl_new_n(g->a, opnd, m)};
    bool stays = c->kind != KL_CONV_CLUSTER;
    for (uint32_t i = 0; i < g->clog2; i++)
        stays &= c->from.v[KL_CTA0 + i] == 1u << (KL_CTA0 + i);
    if (g->clog2 && !stays) { /* only reductions cross CTAs */
        g->no_cluster = true;
        for (uint32_t i = 0; i < m; i++)
            out.r[i] = kl_px_at(v, 0);
        return out;
    }
    switch ((enum kl_conv_kind)c->kind) {
    case KL_CONV_NONE:
        for (uint32_t i = 0; i < m; i++)
            out.r[i] = kl_px_at(v, i);
        break;
    case KL_CONV_RENAME:
        for (uint32_t i = 0; i < m; i++)
            out.r[i] = kl_px_at(v, kl_lin_at(&c->rename, i));
        break;
    case KL_CONV_SHUFFLE: shuffle(g, c, v, cl, out.r); break;
    case KL_CONV_SHARED: shared(g, c, v, cl, out.r); break;
    case KL_CONV_TOO_BIG:
        kl_px_unsupported(g, "a change of layout needs more than %u bytes of shared memory",
                          g->shared_max / 2);
    case KL_CONV_CLUSTER:
    case KL_CONV_BAD: kl_raise(g->a->env, KILN_E_INTERNAL, "no way from one layout to another");
    }
    return out;
}
