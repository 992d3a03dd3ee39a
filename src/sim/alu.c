/* alu.c - plain operations of ptx.def, lane by lane, and the table of all rows. */
#include <fenv.h>

#include "sim/exec.h"
#include "sim/lane.h"
#include "sim/num.h"

static inline uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb)
{
    for (int k = 0; k < 32; k += 8) {
        int32_t x = sa ? (int8_t)(a >> k) : (int32_t)(a >> k & 255);
        int32_t y = sb ? (int8_t)(b >> k) : (int32_t)(b >> k & 255);
        c += (uint32_t)(x * y);
    }
    return c;
}

/* 16-bit floats: op_h1 of one f16, op_h2 of a pair, op_b1 and op_b2 of bf16.  The operands are
 * widened to double, where e is exact or rounded to odd. */
/* clang-format off */
#define HALF1(op, s, wide, narrow, e)                                                              \
    static uint16_t op##_##s##1(uint16_t a)                                                        \
    {                                                                                              \
        double x = wide(a);                                                                        \
        return narrow(e);                                                                          \
    }                                                                                              \
    static uint32_t op##_##s##2(uint32_t a)                                                        \
    {                                                                                              \
        return (uint32_t)op##_##s##1((uint16_t)(a >> 16)) << 16 | op##_##s##1((uint16_t)a);        \
    }
#define HALF2(op, s, wide, narrow, e)                                                              \
    static uint16_t op##_##s##1(uint16_t a, uint16_t b)                                            \
    {                                                                                              \
        double x = wide(a), y = wide(b);                                                           \
        return narrow(e);                                                                          \
    }                                                                                              \
    static uint32_t op##_##s##2(uint32_t a, uint32_t b)                                            \
    {                                                                                              \
        return (uint32_t)op##_##s##1((uint16_t)(a >> 16), (uint16_t)(b >> 16)) << 16 |             \
               op##_##s##1((uint16_t)a, (uint16_t)b);                                              \
    }
#define HALF3(op, s, wide, narrow, e)                                                              \
    static uint16_t op##_##s##1(uint16_t a, uint16_t b, uint16_t c)                                \
    {                                                                                              \
        double x = wide(a), y = wide(b), z = wide(c);                                              \
        return narrow(e);                                                                          \
    }                                                                                              \
    static uint32_t op##_##s##2(uint32_t a, uint32_t b, uint32_t c)                                \
    {                                                                                              \
        return (uint32_t)op##_##s##1((uint16_t)(a >> 16), (uint16_t)(b >> 16),                     \
                                     (uint16_t)(c >> 16)) << 16 |                                  \
               op##_##s##1((uint16_t)a, (uint16_t)b, (uint16_t)c);                                 \
    }
#define BOTH(H, op, e) H(op, h, sim_h, sim_to_h, e) H(op, b, sim_b, sim_to_b, e)
BOTH(HALF2, add, kl_sim_add_odd(x, y))
BOTH(HALF2, sub, kl_sim_add_odd(x, -y))
BOTH(HALF2, mul, x * y)
BOTH(HALF3, fma, sim_fma_odd(x, y, z))
BOTH(HALF1, ex2, exp2(x))
BOTH(HALF1, tanh, tanh(x))

/* ---- one function a row ---- */
#define P1(id, opt, kind, D, A, expr) EACH_RESULT(p_##id, D, A, expr)
#define P2(id, opt, kind, D, A, B, expr)                                                           \
    static void p_##id(struct sim_warp *w, const struct sim_ins *i, uint32_t mask)                 \
    {                                                                                              \
        const lane_##A *pa = (const lane_##A *)(const void *)sim_ptr(w, &i->op[1]);                \
        const lane_##B *pb = (const lane_##B *)(const void *)sim_ptr(w, &i->op[2]);                \
        D r[LANES];                                                                                \
        EACH_LANE                                                                                  \
        {                                                                                          \
            const A a = pa[l];                                                                     \
            const B b = pb[l];                                                                     \
            r[l] = (D)(expr);                                                                      \
        }                                                                                          \
        sim_put_##D(sim_ptr(w, &i->op[0]), r, mask);                                               \
    }
#define P3(id, opt, kind, D, A, B, C, expr)                                                        \
    static void p_##id(struct sim_warp *w, const struct sim_ins *i, uint32_t mask)                 \
    {                                                                                              \
        const lane_##A *pa = (const lane_##A *)(const void *)sim_ptr(w, &i->op[1]);                \
        const lane_##B *pb = (const lane_##B *)(const void *)sim_ptr(w, &i->op[2]);                \
        const lane_##C *pc = (const lane_##C *)(const void *)sim_ptr(w, &i->op[3]);                \
        D r[LANES];                                                                                \
        EACH_LANE                                                                                  \
        {                                                                                          \
            const A a = pa[l];                                                                     \
            const B b = pb[l];                                                                     \
            const C c = pc[l];                                                                     \
            r[l] = (D)(expr);                                                                      \
        }                                                                                          \
        sim_put_##D(sim_ptr(w, &i->op[0]), r, mask);                                               \
    }
#define PX(id, opt, kind, sig, fn)
#include "sim/ptx.def"

#define N_u16 "2"
#define N_s16 "2"
#define N_u32 "4"
#define N_s32 "4"
#define N_f32 "4"
#define N_u64 "8"
#define N_s64 "8"
#define N_f64 "8"
const struct sim_row kl_sim_rows[] = {
#define P1(id, opt, kind, D, A, expr)                                                              \
    {#id, opt, "w" N_##D ",r" N_##A, p_##id, KL_SIM_##kind, true},
#define P2(id, opt, kind, D, A, B, expr)                                                           \
    {#id, opt, "w" N_##D ",r" N_##A ",r" N_##B, p_##id, KL_SIM_##kind, true},
#define P3(id, opt, kind, D, A, B, C, expr)                                                        \
    {#id, opt, "w" N_##D ",r" N_##A ",r" N_##B ",r" N_##C, p_##id, KL_SIM_##kind, true},
#define PX(id, opt, kind, sig, fn) {#id, opt, sig, kl_sim_##fn, KL_SIM_##kind, false},
#include "sim/ptx.def"
};
/* clang-format on */
const uint32_t kl_sim_nrows = sizeof kl_sim_rows / sizeof *kl_sim_rows;

/* ---- .ftz, .sat and roundings around a plain operation ---- */

static void flush(char *p, uint8_t type, uint32_t mask)
{
    sim_m16 *h = (sim_m16 *)(void *)p;
    sim_m32 *f = (sim_m32 *)(void *)p;
    if (type == PT_F16 || type == PT_F16X2) {
        int n = type == PT_F16 ? 1 : 2;
        for (int k = 0; k < n * LANES; k++)
            if (HAS(mask, k / n) && (h[k] & 0x7c00) == 0)
                h[k] &= 0x8000;
    } else if (type == PT_F32) {
        EACH_LANE
        if (HAS(mask, l) && (f[l] & 0x7f800000) == 0)
            f[l] &= 0x80000000;
    }
}

static void saturate(char *p, uint8_t type, uint32_t mask)
{
    sim_m16 *h = (sim_m16 *)(void *)p;
    lane_f32 *f = (lane_f32 *)(void *)p;
    if (type == PT_F32) {
        EACH_LANE
        if (HAS(mask, l))
            f[l] = f[l] > 0 ? f[l] < 1 ? f[l] : 1 : 0; /* NaN and -0 become +0 */
    } else {
        int n = type == PT_F16 ? 1 : 2;
        for (int k = 0; k < n * LANES; k++)
            if (HAS(mask, k / n))
                h[k] = h[k] & 0x8000 || h[k] > 0x7c00 ? 0 : h[k] > 0x3c00 ? 0x3c00 : h[k];
    }
}

EXEC(adjusted)
{
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
    struct sim_ins t = *i;
    struct sim_opnd op[4];
    for (int k = 0; k < i->nd + i->ns && k < 4; k++) {
        op[k] = i->op[k];
        if (k == 0 || !i->ftz)
            continue;
        /* flush copies of the sources */
        op[k].bank = BANK_TMP;
        op[k].off = (uint32_t)k * 8 * LANES;
        memcpy(sim_ptr(w, &op[k]), sim_ptr(w, &i->op[k]), (size_t)op[k].size * LANES);
        flush(sim_ptr(w, &op[k]), i->type, UINT32_MAX);
    }
    t.op = op;
    bool rounds = i->has_round && i->round != RND_N;
    if (rounds)
        fesetround(modes[i->round]);
    i->inner(w, &t, mask);
    if (rounds)
        fesetround(FE_TONEAREST);
    if (i->ftz)
        flush(sim_ptr(w, &op[0]), i->type, mask);
    if (i->sat)
        saturate(sim_ptr(w, &op[0]), i->type, mask);
}

/* ---- integer operations with more than three operands or a mode ---- */

EXEC(bfi)
{
    uint64_t a[LANES], b[LANES], pos[LANES], len[LANES], r[LANES];
    int width = i->op[0].size * 8;
    sim_get(w, &i->op[1], a), sim_get(w, &i->op[2], b);
    sim_get(w, &i->op[3], pos), sim_get(w, &i->op[4], len);
    EACH_LANE r[l] = kl_sim_bfi(a[l], b[l], (uint32_t)pos[l], (uint32_t)len[l], width);
    sim_set(w, &i->op[0], mask, r);
}

EXEC(bfind)
{
    uint64_t a[LANES], r[LANES];
    int width = i->op[1].size * 8;
    bool sign = i->type == PT_S32 || i->type == PT_S64;
    sim_get(w, &i->op[1], a);
    EACH_LANE r[l] = kl_sim_bfind(a[l], width, sign, i->mode == 7);
    sim_set(w, &i->op[0], mask, r);
}

EXEC(prmt)
{
    uint64_t a[LANES], b[LANES], c[LANES], r[LANES];
    sim_get(w, &i->op[1], a), sim_get(w, &i->op[2], b), sim_get(w, &i->op[3], c);
    EACH_LANE r[l] = kl_sim_prmt((uint32_t)a[l], (uint32_t)b[l], (uint32_t)c[l], i->mode);
    sim_set(w, &i->op[0], mask, r);
}

EXEC(lop3)
{
    const sim_m32 *a = (const sim_m32 *)(const void *)sim_ptr(w, &i->op[1]);
    const sim_m32 *b = (const sim_m32 *)(const void *)sim_ptr(w, &i->op[2]);
    const sim_m32 *c = (const sim_m32 *)(const void *)sim_ptr(w, &i->op[3]);
    uint32_t r[LANES] = {0};
    for (uint32_t k = 0; k < 8; k++) { /* minterm by minterm, each over all lanes */
        if (!(i->lut >> k & 1))
            continue;
        uint32_t na = k & 4 ? 0 : UINT32_MAX, nb = k & 2 ? 0 : UINT32_MAX;
        uint32_t nc = k & 1 ? 0 : UINT32_MAX;
        EACH_LANE r[l] |= (a[l] ^ na) & (b[l] ^ nb) & (c[l] ^ nc);
    }
    sim_put32(sim_ptr(w, &i->op[0]), r, mask);
}

/* add.cc, addc and the like: the carry of each lane is a bit of w->carry. */
static void carry(struct sim_warp *w, const struct sim_ins *i, uint32_t mask, const uint64_t *a,
                  const uint64_t *b, bool sub)
{
    uint64_t r[LANES];
    uint32_t out = 0;
    bool wide = i->op[0].size == 8;
    EACH_LANE
    {
        uint64_t y = sub ? ~b[l] : b[l];
        /* a borrow is kept as such: a - b - borrow = a + ~b + (1 - borrow) */
        uint64_t in = i->mode & 1 ? HAS(w->carry, l) : 0, one = sub ? 1 - in : in;
        uint64_t c;
        if (wide) {
            uint64_t s = a[l] + y;
            c = s < y;
            r[l] = s + one;
            c |= r[l] < one;
        } else {
            r[l] = (uint64_t)(uint32_t)a[l] + (uint32_t)y + one;
            c = r[l] >> 32;
        }
        out |= (uint32_t)(sub ? !c : c) << l;
    }
    sim_set(w, &i->op[0], mask, r);
    if (i->mode & 2)
        w->carry = (w->carry & ~mask) | (out & mask);
}

EXEC(carry_add)
{
    uint64_t a[LANES], b[LANES];
    sim_get(w, &i->op[1], a), sim_get(w, &i->op[2], b);
    carry(w, i, mask, a, b, false);
}

EXEC(carry_sub)
{
    uint64_t a[LANES], b[LANES];
    sim_get(w, &i->op[1], a), sim_get(w, &i->op[2], b);
    carry(w, i, mask, a, b, true);
}

EXEC(carry_mad)
{
    uint64_t a[LANES], b[LANES], c[LANES];
    bool sign = i->type == PT_S32 || i->type == PT_S64, wide = i->op[0].size == 8;
    sim_get(w, &i->op[1], a), sim_get(w, &i->op[2], b), sim_get(w, &i->op[3], c);
    EACH_LANE
    {
        if (!(i->mode & 4))
            a[l] *= b[l];
        else if (wide)
            a[l] = sign ? (uint64_t)kl_sim_mulhi_s64((int64_t)a[l], (int64_t)b[l])
                        : kl_sim_mulhi_u64(a[l], b[l]);
        else
            a[l] =
                sign ? (uint64_t)((int64_t)(int32_t)a[l] * (int32_t)b[l]) >> 32 : a[l] * b[l] >> 32;
    }
    carry(w, i, mask, a, c, false);
}

/* ---- predicates ---- */

EXEC(and_pred)
{
    sim_setp(w, &i->op[0], mask, sim_getp(w, &i->op[1]) & sim_getp(w, &i->op[2]));
}
EXEC(or_pred)
{
    sim_setp(w, &i->op[0], mask, sim_getp(w, &i->op[1]) | sim_getp(w, &i->op[2]));
}
EXEC(xor_pred)
{
    sim_setp(w, &i->op[0], mask, sim_getp(w, &i->op[1]) ^ sim_getp(w, &i->op[2]));
}
EXEC(not_pred)
{
    sim_setp(w, &i->op[0], mask, ~sim_getp(w, &i->op[1]));
}
EXEC(mov_pred)
{
    sim_setp(w, &i->op[0], mask, sim_getp(w, &i->op[1]));
}

/* ---- moves ---- */

EXEC(mov)
{
    char *d = sim_ptr(w, &i->op[0]);
    const char *s = sim_ptr(w, &i->op[1]);
    uint64_t t[LANES]; /* source and destination may be the same */
    memcpy(t, s, (size_t)i->op[0].size * LANES);
    if (i->op[0].size == 4)
        sim_put32(d, t, mask);
    else if (i->op[0].size == 8)
        sim_put64(d, t, mask);
    else
        sim_put16(d, t, mask);
}

EXEC(clock)
{
    uint64_t r[LANES], t = w->run->steps;
    EACH_LANE r[l] = i->imm == SR_CLOCK_HI ? t >> 32 : t;
    sim_set(w, &i->op[0], mask, r);
}

EXEC(pack)
{
    uint64_t r[LANES] = {0}, v[LANES];
    int part = i->op[0].size * 8 / i->ns;
    for (int k = 0; k < i->ns; k++) {
        sim_get(w, &i->op[1 + k], v);
        EACH_LANE r[l] |= v[l] << (k * part);
    }
    sim_set(w, &i->op[0], mask, r);
}

EXEC(unpack)
{
    uint64_t v[LANES], r[LANES];
    int part = i->op[i->nd].size * 8 / i->nd;
    sim_get(w, &i->op[i->nd], v);
    for (int k = 0; k < i->nd; k++) {
        EACH_LANE r[l] = v[l] >> (k * part);
        if (i->op[k].given)
            sim_set(w, &i->op[k], mask, r);
    }
}

/* ---- minimum and maximum of floats ---- */

EXEC(minmax_f32)
{
    float a[LANES], b[LANES], r[LANES];
    memcpy(a, sim_ptr(w, &i->op[1]), sizeof a);
    memcpy(b, sim_ptr(w, &i->op[2]), sizeof b);
    if (i->ftz)
        flush((char *)a, PT_F32, mask), flush((char *)b, PT_F32, mask);
    if (i->mode)
        EACH_LANE r[l] = kl_sim_maxf(a[l], b[l], i->nan);
    else
        EACH_LANE r[l] = kl_sim_minf(a[l], b[l], i->nan);
    sim_put32(sim_ptr(w, &i->op[0]), r, mask);
}

EXEC(minmax_h)
{
    uint64_t a[LANES], b[LANES], r[LANES];
    bool bf = i->type == PT_BF16 || i->type == PT_BF16X2;
    sim_get(w, &i->op[1], a), sim_get(w, &i->op[2], b);
    EACH_LANE
    {
        r[l] = 0;
        for (int h = 0; h < i->op[0].size * 8; h += 16) {
            uint16_t x = (uint16_t)(a[l] >> h), y = (uint16_t)(b[l] >> h);
            if (i->ftz && !bf)
                x = x & 0x7c00 ? x : x & 0x8000, y = y & 0x7c00 ? y : y & 0x8000;
            uint16_t v = i->mode ? kl_sim_maxh(x, y, i->nan, bf) : kl_sim_minh(x, y, i->nan, bf);
            r[l] |= (uint64_t)v << h;
        }
    }
    sim_set(w, &i->op[0], mask, r);
}

EXEC(policy) /* a cache policy: any value */
{
    uint64_t r[LANES] = {0};
    sim_set(w, &i->op[0], mask, r);
}

EXEC(nop)
{
    (void)w, (void)i, (void)mask;
}
