/* convert.c - cvt in all its forms, cvta and isspacep.
 *
 * Every number of a PTX type is m * 2^e with a 64-bit m, so that one rounding
 * function serves all pairs.  The frequent conversions have rows of their own. */
#include "sim/exec.h"
#include "sim/lane.h"
#include "sim/num.h"

struct number {
    uint64_t m;
    int e;
    bool neg, nan, inf;
};

static const struct sim_format *format_of(uint8_t t)
{
    static const struct sim_format tf32 = {11, 8, -126, 127};
    switch (t) {
    case PT_F16: return &kl_sim_f16;
    case PT_BF16: return &kl_sim_bf16;
    case PT_F32: return &kl_sim_f32;
    case PT_TF32: return &tf32;
    default: return &kl_sim_f64;
    }
}

static struct number from_double(double d)
{
    uint64_t b = kl_f64_bits(d), m = b & ((UINT64_C(1) << 52) - 1);
    int ex = (int)(b >> 52 & 2047);
    struct number x = {.neg = b >> 63, .nan = ex == 2047 && m, .inf = ex == 2047 && !m};
    x.m = ex ? m | UINT64_C(1) << 52 : m;
    x.e = (ex ? ex : 1) - 1075;
    return x;
}

/* The value in a register of type t. */
static struct number number_of(uint8_t t, uint64_t bits)
{
    switch (kl_sim_types[t].cls == TC_FLT ? t : PT_NONE) {
    case PT_F16: return from_double(sim_h((uint16_t)bits));
    case PT_BF16: return from_double(sim_b((uint16_t)bits));
    case PT_F32: return from_double((double)kl_bits_f32(bits));
    case PT_F64: return from_double(kl_bits_f64(bits));
    default: break;
    }
    int width = kl_sim_types[t].size * 8;
    bool sign = kl_sim_types[t].cls == TC_SINT;
    uint64_t v = bits << (64 - width);
    v = sign ? (uint64_t)((int64_t)v >> (64 - width)) : v >> (64 - width);
    bool neg = sign && (int64_t)v < 0;
    return (struct number){.m = neg ? 0 - v : v, .neg = neg};
}

/* |x| rounded to an integer; *big if it does not fit 64 bits. */
static uint64_t to_integer(const struct number *x, int mode, bool *big)
{
    *big = false;
    if (x->e >= 0) {
        *big = x->m && (x->e > 63 || x->m >> (63 - x->e) >> 1);
        return *big ? 0 : x->m << x->e;
    }
    int drop = -x->e;
    uint64_t keep = drop < 64 ? x->m >> drop : 0;
    uint64_t rest = drop < 64 ? x->m << (64 - drop) : drop == 64 ? x->m : x->m != 0;
    uint64_t half = UINT64_C(1) << 63;
    bool up = false;
    if (mode == RND_N)
        up = drop <= 64 && (rest > half || (rest == half && keep & 1));
    else if (mode == RND_P || mode == RND_M)
        up = rest && x->neg == (mode == RND_M);
    return keep + up;
}

static uint64_t nan_of(uint8_t t)
{
    return t == PT_F16 || t == PT_BF16 ? 0x7fff
           : t == PT_F64               ? UINT64_C(0x7ff8000000000000)
                                       : 0x7fffffff;
}

static uint64_t inf_of(uint8_t t, bool neg)
{
    uint64_t v = t == PT_F16    ? 0x7c00
                 : t == PT_BF16 ? 0x7f80
                 : t == PT_F64  ? UINT64_C(0x7ff0000000000000)
                                : 0x7f800000;
    return v | (uint64_t)neg << (kl_sim_types[t].size * 8 - 1);
}

/* Clamped to the range of t; with NaN as PTX says. */
static uint64_t clamp_int(uint8_t t, uint8_t from, const struct number *x, uint64_t v, bool big)
{
    int width = kl_sim_types[t].size * 8;
    bool sign = kl_sim_types[t].cls == TC_SINT;
    if (x->nan)
        return from == PT_F64 || width == 64 ? UINT64_C(1) << (width - 1) : 0;
    uint64_t max = UINT64_MAX >> (64 - width + sign), min = sign ? max + 1 : 0;
    big |= x->inf;
    if (x->neg)
        return big || v > min ? 0 - min : 0 - v;
    return big || v > max ? max : v;
}

static uint64_t flush16_32(uint8_t t, uint64_t bits)
{
    if (t == PT_F32 && (bits & 0x7f800000) == 0)
        return bits & 0x80000000;
    return bits;
}

/* [0, 1] with NaN to 0; relu: negative to +0 */
static uint64_t clamp_flt(const struct sim_ins *i, uint64_t bits)
{
    uint8_t t = i->type;
    struct number x = number_of(t == PT_TF32 ? PT_F32 : t, bits);
    if (i->sat) {
        if (x.nan || x.neg)
            return 0;
        uint64_t one = t == PT_F16    ? 0x3c00
                       : t == PT_BF16 ? 0x3f80
                       : t == PT_F64  ? UINT64_C(0x3ff0000000000000)
                                      : 0x3f800000;
        return bits > one ? one : bits; /* positive floats order as integers */
    }
    if (i->relu && x.neg && !x.nan)
        return 0;
    if (i->satfinite && x.inf)
        return inf_of(t, x.neg) - 1;
    return bits;
}

static uint64_t convert(const struct sim_ins *i, uint64_t bits)
{
    uint8_t to = i->type, from = i->type2;
    if (i->ftz)
        bits = flush16_32(from, bits);
    struct number x = number_of(from, bits);
    bool big;
    if (kl_sim_types[to].cls != TC_FLT) {
        bool flt = kl_sim_types[from].cls == TC_FLT;
        uint64_t v = to_integer(&x, i->iround, &big);
        if (flt || i->sat)
            return clamp_int(to, from, &x, v, big);
        return x.neg ? 0 - v : v;
    }
    if (x.nan)
        return clamp_flt(i, nan_of(to));
    if (x.inf)
        return clamp_flt(i, inf_of(to, x.neg));
    if (i->has_iround) {
        uint64_t v = to_integer(&x, i->iround, &big);
        if (!big)
            x.m = v, x.e = 0;
    }
    uint64_t r = kl_sim_round(format_of(to), x.neg, x.m, x.e, false, i->round);
    if (to == PT_TF32) /* the low bits of an f32 are zero */
        r = (r & 0x3ffff) << 13 | (uint64_t)x.neg << 31;
    if (i->ftz)
        r = flush16_32(to, r);
    return clamp_flt(i, r);
}

EXEC(cvt)
{
    uint64_t v[LANES];
    sim_get(w, &i->op[1], v);
    int width = kl_sim_types[i->type].size * 8;
    bool sign = kl_sim_types[i->type].cls == TC_SINT;
    EACH_LANE
    if (HAS(mask, l)) {
        /* a larger register gets the value extended as its type says */
        uint64_t r = convert(i, v[l]) << (64 - width);
        v[l] = sign ? (uint64_t)((int64_t)r >> (64 - width)) : r >> (64 - width);
    }
    sim_set(w, &i->op[0], mask, v);
}

/* ---- the frequent pairs, without the detour over number ---- */

static s32 trunc32(f32 a) /* NaN is 0; the limits are floats */
{
    return a >= 0x1p31f ? INT32_MAX : a >= -0x1p31f ? (s32)a : a == a ? INT32_MIN : 0;
}
static u32 truncu(f32 a)
{
    return a >= 0x1p32f ? UINT32_MAX : a > -1 ? (u32)(s64)a : 0;
}

/* clang-format off */
#define PAIRS(X)                                                                                   \
    X(F32, F16, -1, f32, u16, sim_nf(kl_f16_to_f32(a)))                                            \
    X(F32, BF16, -1, f32, u16, sim_nf(kl_bf16_to_f32(a)))                                          \
    X(BF16, F32, RND_N, u16, f32, a != a ? 0x7fff : kl_f32_to_bf16(a))                             \
    X(F16, F32, RND_N, u16, f32, a != a ? 0x7fff : kl_f32_to_f16(a))                               \
    X(F32, S32, RND_N, f32, s32, a) X(F32, U32, RND_N, f32, u32, a)                                \
    X(F32, S64, RND_N, f32, s64, a) X(F64, S32, RND_N, f64, s32, a)                                \
    X(F64, F32, -1, f64, f32, sim_nd((f64)a)) X(F32, F64, RND_N, f32, f64, sim_nf((f32)a))         \
    X(S32, F32, RND_Z, s32, f32, trunc32(a)) X(U32, F32, RND_Z, u32, f32, truncu(a))               \
    X(U64, U32, -1, u64, u32, a) X(S64, S32, -1, s64, s32, a) X(U32, U64, -1, u32, u64, a)         \
    X(S32, S64, -1, u32, u64, a) X(U32, S64, -1, u32, u64, a) X(U64, S32, -1, s64, s32, a)         \
    X(S64, U32, -1, u64, u32, a) X(U32, U16, -1, u32, u16, a) X(S32, S16, -1, s32, s16, a)         \
    X(U16, U32, -1, u16, u32, a) X(S16, S32, -1, u16, u32, a) X(S32, U16, -1, u32, u16, a)
#define X(to, from, mode, D, A, expr) EACH_RESULT(cvt_##to##_##from, D, A, expr)
PAIRS(X)
#undef X
static const struct { uint8_t to, from; int mode; sim_exec *fn; } pairs[] = {
#define X(to, from, mode, D, A, expr) {PT_##to, PT_##from, mode, cvt_##to##_##from},
    PAIRS(X)
#undef X
};
/* clang-format on */

sim_exec *kl_sim_fast_cvt(const struct sim_ins *i, const struct sim_opnd *o)
{
    int mode = i->has_round ? i->round : i->has_iround ? i->iround : -1;
    if (i->ftz || i->sat || i->relu || i->satfinite || !o[0].given ||
        o[0].size != kl_sim_types[i->type].size || o[1].size != kl_sim_types[i->type2].size)
        return i->fn;
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        if (pairs[k].to == i->type && pairs[k].from == i->type2 && pairs[k].mode == mode)
            return pairs[k].fn;
    return i->fn;
}

EXEC(cvt_pair)
{
    uint64_t a[LANES], b[LANES];
    struct sim_ins t = *i;
    t.type = i->type == PT_F16X2 ? PT_F16 : PT_BF16;
    t.type2 = PT_F32;
    sim_get(w, &i->op[1], a), sim_get(w, &i->op[2], b);
    EACH_LANE
    if (HAS(mask, l))
        a[l] = convert(&t, a[l]) << 16 | convert(&t, b[l]);
    sim_set(w, &i->op[0], mask, a);
}

/* ---- 8-bit floats: e4m3 has no infinity and one NaN, e5m2 is an f16 cut short ---- */

static uint8_t to_f8(double d, bool e4, bool relu)
{
    if (d != d)
        return 0x7f;
    if (relu && d < 0)
        d = 0;
    bool neg = signbit(d);
    double a = fabs(d), max = e4 ? 448 : 57344, least = e4 ? 0x1p-6 : 0x1p-14;
    int p = e4 ? 4 : 3;
    if (a >= max) /* .satfinite is the only form */
        return (uint8_t)(neg << 7 | (e4 ? 0x7e : 0x7b));
    /* a multiple of the unit in the last place, ties to even, exact in double */
    int ex;
    frexp(a < least ? least : a, &ex);
    double ulp = ldexp(1, ex - p), q = nearbyint(a / ulp) * ulp;
    if (q >= max)
        return (uint8_t)(neg << 7 | (e4 ? 0x7e : 0x7b));
    int bias = e4 ? 7 : 15;
    if (q < least)
        return (uint8_t)(neg << 7 | (int)(q / ldexp(least, 1 - p)));
    double f = frexp(q, &ex);
    return (uint8_t)(neg << 7 | (ex - 1 + bias) << (p - 1) |
                     ((int)(f * ldexp(1, p)) & ((1 << (p - 1)) - 1)));
}

static double from_f8(uint8_t v, bool e4)
{
    if (!e4)
        return sim_h((uint16_t)(v << 8));
    int ex = v >> 3 & 15, m = v & 7;
    double d = (v & 0x7f) == 0x7f ? (double)NAN : ex ? ldexp(8 + m, ex - 10) : ldexp(m, -9);
    return v & 0x80 ? -d : d;
}

EXEC(cvt_f8)
{
    uint64_t a[LANES], b[LANES];
    bool e4 = i->type == PT_E4M3X2, pair = i->type2 == PT_F16X2;
    sim_get(w, &i->op[1], a);
    if (pair)
        EACH_LANE b[l] = a[l] & 0xffff, a[l] = a[l] >> 16;
    else
        sim_get(w, &i->op[2], b);
    EACH_LANE
    {
        double x = pair ? sim_h((uint16_t)a[l]) : (double)kl_bits_f32(a[l]);
        double y = pair ? sim_h((uint16_t)b[l]) : (double)kl_bits_f32(b[l]);
        a[l] = (uint64_t)to_f8(x, e4, i->relu) << 8 | to_f8(y, e4, i->relu);
    }
    sim_set(w, &i->op[0], mask, a);
}

EXEC(cvt_from_f8)
{
    uint64_t a[LANES];
    bool e4 = i->type2 == PT_E4M3X2;
    sim_get(w, &i->op[1], a);
    EACH_LANE
    {
        double x = from_f8((uint8_t)(a[l] >> 8), e4), y = from_f8((uint8_t)a[l], e4);
        x = i->relu && x < 0 ? 0 : x, y = i->relu && y < 0 ? 0 : y;
        a[l] = (uint64_t)sim_to_h(x) << 16 | sim_to_h(y);
    }
    sim_set(w, &i->op[0], mask, a);
}

/* ---- addresses ---- */

EXEC(cvta)
{
    uint64_t v[LANES];
    uint64_t window = i->space == SP_SHARED  ? SIM_SHARED_WINDOW
                      : i->space == SP_LOCAL ? SIM_LOCAL_WINDOW
                                             : 0;
    sim_get(w, &i->op[1], v);
    EACH_LANE v[l] = i->mode ? v[l] - window : v[l] + window;
    sim_set(w, &i->op[0], mask, v);
}

EXEC(isspacep)
{
    uint64_t v[LANES];
    uint32_t r = 0;
    sim_get(w, &i->op[1], v);
    EACH_LANE
    {
        uint64_t win = v[l] & SIM_WINDOW_MASK;
        uint8_t space = win == SIM_SHARED_WINDOW  ? SP_SHARED
                        : win == SIM_LOCAL_WINDOW ? SP_LOCAL
                                                  : SP_GLOBAL;
        r |= (uint32_t)(space == i->space) << l;
    }
    sim_setp(w, &i->op[0], mask, r);
}
