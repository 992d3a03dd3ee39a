/* range.c - bounds of f32 values that hold whatever the program is given: one walk forward.
 *
 * Rounding is monotone, so the bounds of a step are that step on the bounds.  A fast form may pass
 * them by a few ULP: who asks leaves that room. */
#include <math.h>

#include "ir/range.h"

static const struct kl_range anything = {-INFINITY, INFINITY, true};

static bool finite_range(struct kl_range a)
{
    return a.lo > -INFINITY && a.hi < INFINITY;
}

static bool holds_zero(struct kl_range a)
{
    return a.lo <= 0 && a.hi >= 0;
}

/* The least range with all of n numbers. */
static struct kl_range hull(const float *v, uint32_t n, bool nan)
{
    struct kl_range r = {v[0], v[0], nan};
    for (uint32_t i = 0; i < n; i++) {
        if (isnan(v[i]))
            return anything;
        r.lo = v[i] < r.lo ? v[i] : r.lo;
        r.hi = v[i] > r.hi ? v[i] : r.hi;
    }
    return r;
}

static struct kl_range product(struct kl_range a, struct kl_range b)
{
    bool nan = a.nan || b.nan || (!finite_range(a) && holds_zero(b)) ||
               (!finite_range(b) && holds_zero(a));
    return hull((float[]){a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi}, 4, nan);
}

static struct kl_range sum(struct kl_range a, struct kl_range b)
{
    bool nan = a.nan || b.nan || !(finite_range(a) || finite_range(b));
    return hull((float[]){a.lo + b.lo, a.hi + b.hi}, 2, nan);
}

static struct kl_range fused(struct kl_range a, struct kl_range b, struct kl_range c)
{
    if (!finite_range(a) || !finite_range(b) || !finite_range(c))
        return anything;
    float v[8];
    for (uint32_t i = 0; i < 8; i++)
        v[i] = fmaf(i & 1 ? a.hi : a.lo, i & 2 ? b.hi : b.lo, i & 4 ? c.hi : c.lo);
    return hull(v, 8, a.nan || b.nan || c.nan);
}

static struct kl_range quotient(struct kl_range a, struct kl_range b)
{
    if (!finite_range(a) || !finite_range(b) || holds_zero(b))
        return anything;
    return hull((float[]){a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi}, 4, a.nan || b.nan);
}

/* The smaller or the larger.  losing: a NaN loses, so the other is the result. */
static struct kl_range extreme(struct kl_range a, struct kl_range b, bool least, bool losing)
{
    struct kl_range r = least ? (struct kl_range){fminf(a.lo, b.lo), fminf(a.hi, b.hi), a.nan || b.nan}
                           : (struct kl_range){fmaxf(a.lo, b.lo), fmaxf(a.hi, b.hi), a.nan || b.nan};
    if (!losing || !r.nan)
        return r;
    r.nan = a.nan && b.nan;
    const struct kl_range *alone[2] = {b.nan ? &a : NULL, a.nan ? &b : NULL};
    for (uint32_t i = 0; i < 2; i++)
        if (alone[i]) {
            r.lo = fminf(r.lo, alone[i]->lo);
            r.hi = fmaxf(r.hi, alone[i]->hi);
        }
    return r;
}

/* base^a, in the exact or the fast form: both are right to 2^-16 where they are not tiny. */
static struct kl_range exponential(struct kl_range a, double base)
{
    double lo = pow(base, (double)a.lo) * (1 - 0x1p-16), hi = pow(base, (double)a.hi) * (1 + 0x1p-16);
    return (struct kl_range){lo < 0x1p-120 ? 0 : (float)lo, hi > 0x1p127 ? INFINITY : (float)hi, a.nan};
}

static struct kl_range constant(uint64_t bits)
{
    float v = kl_bits_f32(bits);
    return isnan(v) ? anything : (struct kl_range){v, v, false};
}

static struct kl_range step(enum kl_op op, const struct kl_ins *in, const struct kl_range a[3])
{
    switch (op) {
    case KL_OP_const: return constant(in->attr.bits);
    case KL_OP_broadcast:
    case KL_OP_reshape:
    case KL_OP_permute: return a[0];
    case KL_OP_neg: return (struct kl_range){-a[0].hi, -a[0].lo, a[0].nan};
    case KL_OP_abs: {
        float lo = fabsf(a[0].lo), hi = fabsf(a[0].hi);
        return (struct kl_range){holds_zero(a[0]) ? 0 : fminf(lo, hi), fmaxf(lo, hi), a[0].nan};
    }
    case KL_OP_add: return sum(a[0], a[1]);
    case KL_OP_sub: return sum(a[0], (struct kl_range){-a[1].hi, -a[1].lo, a[1].nan});
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

static void walk(const kl_fn *f, kl_blk b, struct kl_range *r)
{
    kl_each_ins(f, b, v) {
        const struct kl_ins *in = kl_in(f, v);
        kl_blk own[2];
        uint32_t n = kl_blocks(f, v, own);
        for (uint32_t i = 0; i < n; i++)
            walk(f, own[i], r);
        if (!in->type.id || kl_type_of(f, v)->kind != KL_T_TILE || kl_type_of(f, v)->elem != KL_f32)
            continue;
        struct kl_range a[3] = {anything, anything, anything};
        for (uint32_t i = 0; i < in->nargs && i < 3; i++)
            if (kl_type_of(f, kl_arg(f, v, i))->elem == KL_f32)
                a[i] = r[kl_arg(f, v, i).id];
        r[v.id] = step((enum kl_op)in->op, in, a);
    }
}

struct kl_range *kl_ranges(const kl_fn *f)
{
    struct kl_range *r = kl_new_n(f->a, struct kl_range, f->nins);
    for (uint32_t i = 0; i < f->nins; i++)
        r[i] = anything;
    walk(f, KL_BODY, r);
    return r;
}

bool kl_range_within(struct kl_range x, float lo, float hi)
{
    return !x.nan && x.lo >= lo && x.hi <= hi;
}

const char *kl_range_mid(const kl_fn *f, const struct kl_range *r, kl_val v)
{
    enum kl_op op = (enum kl_op)kl_in(f, v)->op;
    float most = op == KL_OP_exp ? 87.0f : op == KL_OP_exp2 ? 125.0f : -1;
    return kl_range_within(r[kl_arg(f, v, 0).id], -most, most) ? op == KL_OP_exp ? "exp_mid" : "exp2_mid"
                                                               : NULL;
}
