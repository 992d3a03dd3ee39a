/* range.c - bounds of f32 values that hold whatever the program is given.
 *
 * One walk forward over the IR.  Functions and quotients have short forms for the middle of their
 * range (math.c, guard.c); where the bounds show that a value lies there no test of the elements
 * is needed, and no full form behind it.  A kernel gets such bounds by fmin(abs(x), c): fmin lets
 * no NaN pass.  Rounding is monotone, so the bounds of a step are that step on the bounds. */
#include <math.h>

#include "gen/ptx/ptx.h"

static const struct range anything = {-INFINITY, INFINITY, true};

static bool finite_range(struct range a)
{
    return a.lo > -INFINITY && a.hi < INFINITY;
}

static bool holds_zero(struct range a)
{
    return a.lo <= 0 && a.hi >= 0;
}

/* The least range with all of n numbers. */
static struct range hull(const float *v, uint32_t n, bool nan)
{
    struct range r = {v[0], v[0], nan};
    for (uint32_t i = 0; i < n; i++) {
        if (isnan(v[i]))
            return anything;
        r.lo = v[i] < r.lo ? v[i] : r.lo;
        r.hi = v[i] > r.hi ? v[i] : r.hi;
    }
    return r;
}

static struct range product(struct range a, struct range b)
{
    bool nan = a.nan || b.nan || (!finite_range(a) && holds_zero(b)) ||
               (!finite_range(b) && holds_zero(a));
    return hull((float[]){a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi}, 4, nan);
}

static struct range sum(struct range a, struct range b)
{
    bool nan = a.nan || b.nan || !(finite_range(a) || finite_range(b));
    return hull((float[]){a.lo + b.lo, a.hi + b.hi}, 2, nan);
}

static struct range fused(struct range a, struct range b, struct range c)
{
    if (!finite_range(a) || !finite_range(b) || !finite_range(c))
        return anything;
    float v[8];
    for (uint32_t i = 0; i < 8; i++)
        v[i] = fmaf(i & 1 ? a.hi : a.lo, i & 2 ? b.hi : b.lo, i & 4 ? c.hi : c.lo);
    return hull(v, 8, a.nan || b.nan || c.nan);
}

static struct range quotient(struct range a, struct range b)
{
    if (!finite_range(a) || !finite_range(b) || holds_zero(b))
        return anything;
    return hull((float[]){a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi}, 4, a.nan || b.nan);
}

/* The smaller or the larger.  losing: a NaN loses, so the other is the result. */
static struct range extreme(struct range a, struct range b, bool least, bool losing)
{
    struct range r = least ? (struct range){fminf(a.lo, b.lo), fminf(a.hi, b.hi), a.nan || b.nan}
                           : (struct range){fmaxf(a.lo, b.lo), fmaxf(a.hi, b.hi), a.nan || b.nan};
    if (!losing || !r.nan)
        return r;
    r.nan = a.nan && b.nan;
    const struct range *alone[2] = {b.nan ? &a : NULL, a.nan ? &b : NULL};
    for (uint32_t i = 0; i < 2; i++)
        if (alone[i]) {
            r.lo = fminf(r.lo, alone[i]->lo);
            r.hi = fmaxf(r.hi, alone[i]->hi);
        }
    return r;
}

/* base^a, in the exact or the fast form: both are right to 2^-16 where they are not tiny. */
static struct range exponential(struct range a, double base)
{
    double lo = pow(base, (double)a.lo) * (1 - 0x1p-16), hi = pow(base, (double)a.hi) * (1 + 0x1p-16);
    return (struct range){lo < 0x1p-120 ? 0 : (float)lo, hi > 0x1p127 ? INFINITY : (float)hi, a.nan};
}

static struct range constant(uint64_t bits)
{
    float v = kl_bits_f32(bits);
    return isnan(v) ? anything : (struct range){v, v, false};
}

static struct range step(enum kl_op op, const struct kl_ins *in, const struct range a[3])
{
    switch (op) {
    case KL_OP_const: return constant(in->attr.bits);
    case KL_OP_broadcast:
    case KL_OP_reshape:
    case KL_OP_permute: return a[0];
    case KL_OP_neg: return (struct range){-a[0].hi, -a[0].lo, a[0].nan};
    case KL_OP_abs: {
        float lo = fabsf(a[0].lo), hi = fabsf(a[0].hi);
        return (struct range){holds_zero(a[0]) ? 0 : fminf(lo, hi), fmaxf(lo, hi), a[0].nan};
    }
    case KL_OP_add: return sum(a[0], a[1]);
    case KL_OP_sub: return sum(a[0], (struct range){-a[1].hi, -a[1].lo, a[1].nan});
    case KL_OP_mul: return product(a[0], a[1]);
    case KL_OP_div: return quotient(a[0], a[1]);
    case KL_OP_fma: return fused(a[0], a[1], a[2]);
    case KL_OP_min:
    case KL_OP_max: return extreme(a[0], a[1], op == KL_OP_min, false);
    case KL_OP_fmin:
    case KL_OP_fmax: return extreme(a[0], a[1], op == KL_OP_fmin, true);
    case KL_OP_exp: return exponential(a[0], 2.718281828459045);
    case KL_OP_exp2: return exponential(a[0], 2);
    default: return anything;
    }
}

static void walk(struct pgen *g, kl_blk b)
{
    const kl_fn *f = g->f;
    kl_each_ins(f, b, v) {
        const struct kl_ins *in = kl_in(f, v);
        kl_blk own[2];
        uint32_t n = kl_blocks(f, v, own);
        for (uint32_t i = 0; i < n; i++)
            walk(g, own[i]);
        if (!in->type.id || kl_type_of(f, v)->kind != KL_T_TILE || kl_type_of(f, v)->elem != KL_f32)
            continue;
        struct range a[3] = {anything, anything, anything};
        for (uint32_t i = 0; i < in->nargs && i < 3; i++)
            if (kl_type_of(f, kl_arg(f, v, i))->elem == KL_f32)
                a[i] = g->range[kl_arg(f, v, i).id];
        g->range[v.id] = step((enum kl_op)in->op, in, a);
    }
}

void kl_px_range(struct pgen *g)
{
    g->range = kl_new_n(g->a, struct range, g->f->nins);
    for (uint32_t i = 0; i < g->f->nins; i++)
        g->range[i] = anything;
    walk(g, KL_BODY);
}

/* Divisors in the middle of the range: see kl_px_short_div. */
struct divide kl_px_divide(const struct pgen *g, kl_val v, bool one)
{
    struct range x = g->range[kl_arg(g->f, v, 0).id], y = g->range[kl_arg(g->f, v, 1).id];
    bool tame = (y.lo >= 0x1p-31f && y.hi <= 0x1p32f) || (y.hi <= -0x1p-31f && y.lo >= -0x1p32f);
    return (struct divide){one, tame, x.lo == 1 && x.hi == 1 && !x.nan};
}
