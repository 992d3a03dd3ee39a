/* reduce.c - folding along an axis.
 *
 * The halving order combines index bits from the highest down; neighbours first, from the lowest
 * up.  A bit that lies in registers is folded there.  One that lies in lanes is folded by a
 * butterfly; as long as a thread has several registers, the two lanes of a pair share the work:
 * each gives away half of its registers, and the lane bit then holds what the register bit held.
 * Bits that lie in warps and CTAs go through shared memory together (exchange.c).  What gives the
 * same result in any order is folded in registers first, then lanes, and one value a warp crosses.
 *
 * Dead places hold a value that changes nothing, exactly: -0 for a float sum.  A reduction by a
 * block has none; there each element carries whether it is live.  A block may fold several tiles
 * at once: each is a component of what is exchanged. */
#include <math.h>

#include "gen/ptx/reduce.h"

static void drop_reg_bit(struct red *r, uint32_t i)
{
    uint32_t n = r->l.nbit[KL_IN_REG];
    for (; i + 1 < n; i++)
        r->l.map.v[i] = r->l.map.v[i + 1];
    r->l.map.v[n - 1] = 0;
    r->l.nbit[KL_IN_REG]--;
}

static uint32_t insert_bit(uint32_t x, uint32_t i, uint32_t b)
{
    uint32_t low = x & ((1u << i) - 1);
    return (x ^ low) << 1 | b << i | low;
}

/* Put what a fold gives in place of r->x. */
static void fold_into(struct red *r, opnd *to[], uint32_t k, const opnd *lo, const opnd *hi)
{
    opnd out[NCOMP];
    r->fold(r, lo, hi, out);
    for (uint32_t c = 0; c < r->ncomp; c++)
        to[c][k] = out[c];
}

void kl_red_new_regs(struct red *r, opnd *to[], uint32_t n)
{
    for (uint32_t c = 0; c < r->ncomp; c++)
        to[c] = kl_new_n(r->g->a, opnd, n);
}

void kl_red_take(struct red *r, opnd *to[])
{
    for (uint32_t c = 0; c < r->ncomp; c++)
        r->x[c] = to[c];
}

static void fold_reg(struct red *r, uint32_t i)
{
    if (!r->dry) {
        opnd *to[NCOMP], lo[NCOMP], hi[NCOMP];
        uint32_t half = kl_red_nreg(r) / 2;
        kl_red_new_regs(r, to, half);
        for (uint32_t k = 0; k < half; k++) {
            for (uint32_t c = 0; c < r->ncomp; c++) {
                lo[c] = r->x[c][insert_bit(k, i, 0)];
                hi[c] = r->x[c][insert_bit(k, i, 1)];
            }
            fold_into(r, to, k, lo, hi);
        }
        kl_red_take(r, to);
    }
    drop_reg_bit(r, i);
}

/* mine and other, of lane and lane ^ (1 << j), in the order that the fold wants. */
void kl_red_fold_pair(struct red *r, opnd *to[], uint32_t k, uint32_t j, const opnd *mine,
                      const opnd *other)
{
    if (!r->ordered) {
        fold_into(r, to, k, mine, other);
        return;
    }
    opnd up = kl_px_lane_bit(r->g, j), lo[NCOMP], hi[NCOMP];
    for (uint32_t c = 0; c < r->ncomp; c++) {
        lo[c] = kl_px_choose(r->g, r->c[c], up, other[c], mine[c]);
        hi[c] = kl_px_choose(r->g, r->c[c], up, mine[c], other[c]);
    }
    fold_into(r, to, k, lo, hi);
}

static bool is_axis_bit(const struct red *r, uint32_t vec)
{
    uint32_t lo = r->l.off[r->axis];
    return vec >> lo & ((1u << r->l.log2[r->axis]) - 1);
}

/* The register bit to share over a lane bit; -1: none. */
static int share_bit(const struct red *r)
{
    int best = -1;
    for (uint32_t i = 0; i < r->l.nbit[KL_IN_REG]; i++) {
        bool axis = is_axis_bit(r, r->l.map.v[i]);
        if (axis ? best < 0 || is_axis_bit(r, r->l.map.v[best]) : r->spread_rows)
            best = (int)i;
    }
    return best;
}

static void fold_lane(struct red *r, uint32_t j)
{
    struct pgen *g = r->g;
    int s = share_bit(r);
    opnd *to[NCOMP], mine[NCOMP], other[NCOMP];
    if (s >= 0) {
        if (!r->dry) {
            uint32_t half = kl_red_nreg(r) / 2;
            opnd up = kl_px_lane_bit(g, j), mask = kl_px_int(g, 1 << j);
            kl_red_new_regs(r, to, half);
            for (uint32_t k = 0; k < half; k++) {
                for (uint32_t c = 0; c < r->ncomp; c++) {
                    opnd a = r->x[c][insert_bit(k, (uint32_t)s, 0)];
                    opnd b = r->x[c][insert_bit(k, (uint32_t)s, 1)];
                    opnd give = kl_px_choose(g, r->c[c], up, a, b);
                    mine[c] = kl_px_choose(g, r->c[c], up, b, a);
                    other[c] = kl_px_shfl(g, r->c[c], give, true, mask);
                }
                kl_red_fold_pair(r, to, k, j, mine, other);
            }
            kl_red_take(r, to);
        }
        r->l.map.v[KL_LANE0 + j] = r->l.map.v[s];
        drop_reg_bit(r, (uint32_t)s);
        return;
    }
    if (!r->dry) {
        uint32_t n = kl_red_nreg(r);
        opnd mask = kl_px_int(g, 1 << j);
        kl_red_new_regs(r, to, n);
        for (uint32_t k = 0; k < n; k++) {
            for (uint32_t c = 0; c < r->ncomp; c++) {
                mine[c] = r->x[c][k];
                other[c] = kl_px_shfl(g, r->c[c], mine[c], true, mask);
            }
            kl_red_fold_pair(r, to, k, j, mine, other);
        }
        kl_red_take(r, to);
    }
    r->l.map.v[KL_LANE0 + j] = 0;
}

void kl_red_fold_list(struct red *r, opnd *v, uint32_t n)
{
    while (n > 1) {
        uint32_t h = n / 2;
        for (uint32_t f = 0; f < h; f++) {
            uint32_t a = r->up ? 2 * f : f, b = r->up ? 2 * f + 1 : f + h;
            opnd out[NCOMP];
            r->fold(r, v + a * r->ncomp, v + b * r->ncomp, out);
            memcpy(v + f * r->ncomp, out, r->ncomp * sizeof *out);
        }
        n = h;
    }
}

/* Where coordinate bit k of the axis lies. */
static int place_of(const struct red *r, uint32_t k)
{
    return kl_layout_find_bit(&r->l, r->axis, k);
}

static void fold_bit(struct red *r, int at)
{
    if (at < KL_LANE0)
        fold_reg(r, (uint32_t)at);
    else
        fold_lane(r, (uint32_t)at - KL_LANE0);
}

static void run(struct red *r)
{
    uint32_t bits = r->l.log2[r->axis];
    bool done[32] = {false};
    for (int pass = 0; pass < 2 && r->any_order; pass++)
        for (uint32_t k = bits; k-- > 0;) {
            int at = place_of(r, k);
            if (done[k] || at < 0 || (pass == 0 ? at >= KL_LANE0 : at >= KL_WARP0))
                continue;
            fold_bit(r, at);
            done[k] = true;
        }
    for (uint32_t i = 0; i < bits;) {
        uint32_t k = r->up ? i : bits - 1 - i;
        int at = place_of(r, k);
        if (done[k] || at < 0) {
            i++;
            continue;
        }
        if (at < KL_WARP0) {
            fold_bit(r, at);
            i++;
            continue;
        }
        uint32_t w[KL_MAX_WARP_BITS + KL_MAX_CTA_BITS], n = 0;
        while (i < bits) {
            k = r->up ? i : bits - 1 - i;
            at = place_of(r, k);
            if (!done[k] && at < KL_WARP0)
                break;
            if (!done[k])
                w[n++] = (uint32_t)at;
            i++;
        }
        kl_red_exchange(r, w, n);
    }
}

/* ---- what is folded ---- */

static void fold_op(struct red *r, const opnd *lo, const opnd *hi, opnd *out)
{
    out[0] = kl_px_ew1(r->g, r->op, false, r->e, r->e, lo[0], hi[0], NULL, 0, false);
}

static void fold_arg(struct red *r, const opnd *lo, const opnd *hi, opnd *out)
{
    struct pgen *g = r->g;
    const char *t = r->c[0] == CL_B64 ? "s64" : "s32";
    opnd less = kl_px_set(g, CL_P, "setp.lt.u32 $, %s, %s", hi[1], lo[1]);
    opnd tie = kl_px_set(g, CL_P, "setp.eq.and.%s $, %s, %s, %s", t, hi[0], lo[0], less);
    opnd p = kl_px_set(g, CL_P, "setp.gt.or.%s $, %s, %s, %s", t, hi[0], lo[0], tie);
    out[0] = kl_px_choose(g, r->c[0], p, hi[0], lo[0]);
    out[1] = kl_px_choose(g, CL_B32, p, hi[1], lo[1]);
}

void kl_px_fold_block(struct pgen *g, kl_val v, const opnd *lo, const opnd *hi, opnd *out)
{
    const kl_fn *f = g->f;
    kl_blk b = kl_in(f, v)->attr.redfn.blk;
    uint32_t m = kl_in(f, v)->nargs;
    kl_val p = {f->blk[b.id].first};
    for (uint32_t i = 0; i < 2 * m; i++, p.id = kl_in(f, p)->next) {
        struct pval a = {.r = kl_new_n(g->a, opnd, 1)};
        a.r[0] = i < m ? lo[i] : hi[i - m];
        g->val[p.id] = a;
    }
    bool was = g->in_block;
    g->in_block = true;
    kl_px_block(g, b);
    g->in_block = was;
    for (uint32_t i = 0; i < m; i++)
        out[i] = kl_px_scalar(g, kl_arg(f, kl_last(f, b), i));
}

static void fold_block(struct red *r, const opnd *lo, const opnd *hi, opnd *out)
{
    struct pgen *g = r->g;
    uint32_t m = kl_in(g->f, r->v)->nargs;
    kl_px_fold_block(g, r->v, lo, hi, out);
    if (r->ncomp > m) { /* dead elements pass the others through */
        opnd live = kl_px_set(g, CL_P, "setp.ne.s32 $, %s, 0", hi[m]);
        for (uint32_t i = 0; i < m; i++)
            out[i] = kl_px_choose(g, r->c[i], live, out[i], lo[i]);
        out[m] = lo[m];
    }
}

/* Predicate: register i's place on the axis is an element. */
static opnd live(struct red *r, const kl_layout *l, uint32_t i, uint32_t n)
{
    struct pgen *g = r->g;
    uint32_t rc = kl_coord_axis(l, kl_px_coord(l, i), r->axis);
    opnd t = kl_px_thread_axis(g, l, r->axis);
    if (!t)
        t = kl_px_once(g, CL_B32, "mov.u32 $, 0");
    if (rc)
        t = kl_px_once(g, CL_B32, "add.u32 $, %s, %u", t, rc);
    return kl_px_once(g, CL_P, "setp.lt.u32 $, %s, %u", t, n);
}

static uint64_t neutral(enum kl_op op, enum kl_elem e)
{
    bool f = kl_is_float(e), sign = kl_elems[e].kind == KL_KIND_SINT, w = kl_elems[e].bytes == 8;
    uint64_t inf = w ? kl_f64_bits((double)INFINITY) : kl_f32_bits(INFINITY);
    uint64_t minus = w ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    switch (op) {
    case KL_OP_add: return f ? minus : 0;
    case KL_OP_mul: return f ? (w ? kl_f64_bits(1.0) : kl_f32_bits(1.0f)) : 1;
    case KL_OP_fmin:
    case KL_OP_fmax: return w ? UINT64_C(0x7ff8000000000000) : 0x7fc00000;
    case KL_OP_max: return f ? inf | minus : kl_canon(e, sign ? minus : 0);
    case KL_OP_min: return f ? inf : kl_canon(e, sign ? ~minus : UINT64_MAX);
    case KL_OP_and: return kl_canon(e, e == KL_bool ? 1 : UINT64_MAX);
    default: return 0;
    }
}

/* Keys of argmax and argmin: integers in the order of NUMERICS, NaN the greatest. */
static opnd arg_key(struct red *r, bool min, opnd x)
{
    struct pgen *g = r->g;
    bool w = kl_elems[r->e].bytes == 8, f = kl_is_float(r->e);
    enum cls c = w ? CL_B64 : CL_B32;
    const char *b = w ? "b64" : "b32", *s = w ? "s64" : "s32";
    opnd v = kl_px_inreg(g, kl_px_cls(r->e), x), k = v;
    if (f) {
        k = kl_px_set(g, c, "mov.%s $, %s", b, v);
        opnd sg = kl_px_set(g, c, "shr.%s $, %s, %d", s, k, w ? 63 : 31);
        sg = kl_px_set(g, c, "and.%s $, %s, %s", b, sg, w ? "0x7FFFFFFFFFFFFFFF" : "2147483647");
        k = kl_px_set(g, c, "xor.%s $, %s, %s", b, k, sg);
    } else if (kl_elems[r->e].kind == KL_KIND_UINT) {
        k = kl_px_set(g, c, "xor.%s $, %s, %s", b, k, w ? "0x8000000000000000" : "-2147483648");
    }
    if (min)
        k = kl_px_set(g, c, "not.%s $, %s", b, k);
    if (f) {
        opnd nan = kl_px_set(g, CL_P, "setp.nan.%s $, %s, %s", w ? "f64" : "f32", v, v);
        k = kl_px_set(g, c, "selp.%s $, %s, %s, %s", b, w ? "0x7FFFFFFFFFFFFFFF" : "2147483647", k, nan);
    }
    return k;
}

/* Does a broadcast need the result again in every place? */
static bool broadcast_again(struct pgen *g, kl_val v, int depth)
{
    const kl_fn *f = g->f;
    if (depth > 8)
        return true;
    for (uint32_t i = 1; i < f->nins; i++) {
        const struct kl_ins *in = &f->ins[i];
        bool uses = false;
        for (uint32_t k = 0; k < in->nargs && in->blk.id; k++)
            uses |= f->args[in->args + k].id == v.id;
        if (!uses || in->op == KL_OP_store)
            continue;
        if (!(kl_ops[in->op].flags & KL_F_EW) && in->op != KL_OP_reshape)
            return true;
        if (broadcast_again(g, (kl_val){i}, depth + 1))
            return true;
    }
    return false;
}

static void begin(struct pgen *g, struct red *r, kl_val v, const kl_layout *in)
{
    const kl_fn *f = g->f;
    const struct kl_ins *x = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, kl_arg(f, v, 0));
    *r = (struct red){.g = g, .v = v, .ncomp = 1, .e = (enum kl_elem)t->elem};
    r->c[0] = kl_px_cls(r->e);
    r->l = *in;
    switch (x->op) {
    case KL_OP_reduce:
        r->axis = x->attr.red.axis;
        r->op = (enum kl_op)x->attr.red.op;
        r->fold = fold_op;
        r->any_order = !kl_is_float(r->e) || (kl_ops[r->op].flags & KL_F_IDEM);
        break;
    case KL_OP_reduce_fn:
        r->axis = x->attr.redfn.axis;
        r->fold = fold_block;
        r->ordered = true;
        r->up = !x->attr.redfn.commutative;
        for (r->ncomp = 0; r->ncomp < x->nargs; r->ncomp++)
            r->c[r->ncomp] = kl_px_vcls(g, kl_arg(f, v, r->ncomp));
        if (t->dim[r->axis] & (t->dim[r->axis] - 1))
            r->c[r->ncomp++] = CL_B32;
        break;
    default:
        r->axis = (uint32_t)x->attr.index;
        r->fold = fold_arg;
        r->any_order = true;
        r->ncomp = 2;
        r->c[0] = kl_elems[r->e].bytes == 8 ? CL_B64 : CL_B32;
        r->c[1] = CL_B32;
        break;
    }
    r->spread_rows = !broadcast_again(g, v, 0);
    for (uint32_t i = 0, id = x->next; x->op == KL_OP_reduce_fn && x->nargs > 1 && i < x->nargs;
         i++, id = f->ins[id].next)
        r->spread_rows &= !broadcast_again(g, (kl_val){id}, 0);
}

static const kl_layout *end_layout(struct pgen *g, const struct red *r, uint32_t *kept)
{
    kl_layout s = kl_layout_slice(&r->l, r->axis);
    kl_layout t = kl_layout_trim(&s, kept);
    return kl_px_intern(g, &t);
}

const kl_layout *kl_px_reduce_layout(struct pgen *g, kl_val v, const kl_layout *in)
{
    struct red r;
    if (!in)
        in = kl_px_default(g, kl_type_of(g->f, kl_arg(g->f, v, 0)));
    if (!in)
        return NULL;
    begin(g, &r, v, in);
    r.dry = true;
    run(&r);
    return end_layout(g, &r, NULL);
}

/* A reduced component: registers of r under the layout that is left of it. */
static void give(struct red *r, kl_val v, uint32_t c)
{
    struct pgen *g = r->g;
    uint32_t kept = 0;
    const kl_layout *out = end_layout(g, r, &kept);
    if (kl_numel(kl_type_of(g->f, v)) == 1) {
        g->val[v.id] = (struct pval){.r = r->x[c]};
        return;
    }
    uint32_t m = kl_layout_nreg(out);
    struct pval y = {.l = out, .r = kl_new_n(g->a, opnd, m)};
    for (uint32_t i = 0; i < m; i++)
        y.r[i] = r->x[c][kl_deposit(i, kept)];
    g->val[v.id] = y;
    if (g->lay[v.id] && g->lay[v.id] != out)
        g->val[v.id] = kl_px_to(g, &y, r->c[c], g->lay[v.id]);
}

/* Result k of a fold: the instruction itself, or what stands behind it. */
kl_val kl_px_fold_result(const struct pgen *g, kl_val v, uint32_t k)
{
    const kl_fn *f = g->f;
    if (kl_in(f, v)->nargs == 1)
        return v;
    v.id = kl_in(f, v)->next;
    while (k-- > 0)
        v.id = kl_in(f, v)->next;
    return v;
}

/* The layout that the operands of a fold are brought to; NULL: all are splat. */
const kl_layout *kl_px_fold_layout(const struct pgen *g, kl_val v, bool chosen)
{
    const kl_layout *l = NULL;
    for (uint32_t i = 0; i < kl_in(g->f, v)->nargs && !l; i++) {
        kl_val a = kl_arg(g->f, v, i);
        l = chosen ? g->lay[a.id] : g->val[a.id].l;
    }
    return l;
}

/* Several tiles, or one, by a block. */
static void reduce_fn(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_type *t = kl_type_of(f, kl_arg(f, v, 0));
    uint32_t m = kl_in(f, v)->nargs;
    const kl_layout *l = kl_px_fold_layout(g, v, false);
    struct red r;
    if (!l)
        l = kl_px_default(g, t);
    if (!l) { /* one element */
        for (uint32_t k = 0; k < m; k++)
            g->val[kl_px_fold_result(g, v, k).id] = g->val[kl_arg(f, v, k).id];
        return;
    }
    begin(g, &r, v, l);
    uint32_t n = kl_layout_nreg(l), size = t->dim[r.axis];
    for (uint32_t c = 0; c < r.ncomp; c++)
        r.x[c] = kl_new_n(g->a, opnd, n);
    for (uint32_t k = 0; k < m; k++) {
        struct pval x = kl_px_in(g, kl_arg(f, v, k), l);
        for (uint32_t i = 0; i < n; i++)
            r.x[k][i] = kl_px_at(&x, i);
    }
    for (uint32_t i = 0; i < n && r.ncomp > m; i++)
        r.x[m][i] = kl_px_once(g, CL_B32, "selp.b32 $, 1, 0, %s", live(&r, l, i, size));
    run(&r);
    for (uint32_t k = 0; k < m; k++)
        give(&r, kl_px_fold_result(g, v, k), k);
}

void kl_px_reduce(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    if (in->op == KL_OP_reduce_fn) {
        reduce_fn(g, v);
        return;
    }
    kl_val a = kl_arg(f, v, 0);
    const struct kl_type *t = kl_type_of(f, a);
    struct pval x = g->val[a.id];
    struct red r;
    const kl_layout *l = x.l ? x.l : kl_px_default(g, t);
    if (!l) { /* one element */
        if (in->op == KL_OP_argmax || in->op == KL_OP_argmin) {
            x.r = kl_new_n(g->a, opnd, 1);
            x.r[0] = "0";
        }
        g->val[v.id] = x;
        return;
    }
    begin(g, &r, v, l);
    g->folded = true;
    uint32_t n = kl_layout_nreg(l), size = t->dim[r.axis];
    bool dead = size & (size - 1), arg = r.fold == fold_arg;
    for (uint32_t c = 0; c < r.ncomp; c++)
        r.x[c] = kl_new_n(g->a, opnd, n);
    for (uint32_t i = 0; i < n; i++) {
        opnd e = kl_px_at(&x, i);
        opnd p = dead ? live(&r, l, i, size) : NULL;
        if (arg) {
            e = arg_key(&r, in->op == KL_OP_argmin, e);
            if (p)
                e = kl_px_choose(g, r.c[0], p, e, r.c[0] == CL_B64 ? "0x8000000000000000" : "-2147483648");
            uint32_t rc = kl_coord_axis(l, kl_px_coord(l, i), r.axis);
            opnd th = kl_px_thread_axis(g, l, r.axis);
            r.x[1][i] = !th ? kl_px_inreg(g, CL_B32, kl_px_int(g, rc))
                        : rc ? kl_px_once(g, CL_B32, "add.u32 $, %s, %u", th, rc)
                             : th;
        } else if (p) {
            e = kl_px_choose(g, r.c[0], p, e, kl_px_imm(g, r.e, neutral(r.op, r.e)));
        }
        r.x[0][i] = e;
    }
    run(&r);
    give(&r, v, arg ? 1 : 0);
}
