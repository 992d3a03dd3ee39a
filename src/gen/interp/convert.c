/* convert.c - loops of the language's cast, one for each pair of element types, and of cvt_nan.
 *
 * They give what kl_convert gives, which the tests compare.  The 16-bit floats have their
 * own forms here: whole-number steps and selections without branches, so that the loops
 * are vectorised. */
#include "base/f8.h"
#include "gen/interp/run.h"
#include "gen/interp/strip.h"

/* ---- 16-bit floats ---- */

static inline float f32_of_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, mag = (uint32_t)(h & 0x7fff) << 13;
    /* the exponent is 112 too small: one exact product, right for subnormals too */
    uint32_t fin = (uint32_t)kl_f32_bits(kl_bits_f32(mag) * 0x1p112f);
    uint32_t top = mag | 0x7f800000 | (mag & 0x7fffff ? 0x400000 : 0); /* inf; NaN made quiet */
    return kl_bits_f32(sign | ((h & 0x7c00) == 0x7c00 ? top : fin));
}

static inline uint16_t f16_of_f32(float f)
{
    uint32_t b = (uint32_t)kl_f32_bits(f), sign = b >> 16 & 0x8000, a = b & 0x7fffffff;
    uint32_t normal = (a - (112u << 23) + 0xfff + (a >> 13 & 1)) >> 13;
    /* adding 0.5 makes the unit of the sum the 2^-24 of subnormals */
    uint32_t sub = (uint32_t)kl_f32_bits(kl_bits_f32(a) + 0.5f) - 0x3f000000;
    uint32_t nan = 0x7e00 | (a >> 13 & 0x3ff);
    uint32_t r = a < 0x38800000 ? sub : normal;
    r = a >= 0x477ff000 ? 0x7c00 : r; /* rounds to 65520 or more */
    r = a > 0x7f800000 ? nan : r;
    return (uint16_t)(sign | r);
}

static inline float f32_of_bf16(uint16_t h)
{
    return kl_bits_f32((uint32_t)h << 16);
}

static inline uint16_t bf16_of_f32(float f)
{
    uint32_t b = (uint32_t)kl_f32_bits(f);
    uint32_t round = (b + 0x7fff + (b >> 16 & 1)) >> 16, nan = b >> 16 | 0x40;
    return (uint16_t)((b & 0x7fffffff) > 0x7f800000 ? nan : round);
}

/* ---- the loops ---- */

#define LOOP(to, from, expr)                                                                       \
    static void to##_from_##from(void *restrict out, const void *restrict in, const void *b,       \
                                 const void *c, size_t n)                                          \
    {                                                                                              \
        t_##to *o = out;                                                                           \
        const t_##from *p = in;                                                                    \
        (void)b, (void)c;                                                                          \
        EACH(const t_##from x = p[j]; o[j] = (t_##to)(expr);)                                      \
    }
/* bool is a macro, so that the names here say truth */
typedef kl_m_bool t_truth;
typedef kl_m_i8 t_i8;
typedef kl_m_i16 t_i16;
typedef kl_m_i32 t_i32;
typedef kl_m_i64 t_i64;
typedef kl_m_u8 t_u8;
typedef kl_m_u16 t_u16;
typedef kl_m_u32 t_u32;
typedef kl_m_u64 t_u64;
typedef kl_m_f16 t_f16;
typedef kl_m_bf16 t_bf16;
typedef kl_m_f8e4m3 t_f8e4m3;
typedef kl_m_f8e5m2 t_f8e5m2;
typedef kl_m_f32 t_f32;
typedef kl_m_f64 t_f64;

#define KL_truth KL_bool
#define INTS(X, from)                                                                              \
    X(i8, from, INT8_MIN, INT8_MAX, 0x1p7) X(i16, from, INT16_MIN, INT16_MAX, 0x1p15)              \
    X(i32, from, INT32_MIN, INT32_MAX, 0x1p31) X(i64, from, INT64_MIN, INT64_MAX, 0x1p63)          \
    X(u8, from, 0, UINT8_MAX, 0x1p8) X(u16, from, 0, UINT16_MAX, 0x1p16)                           \
    X(u32, from, 0, UINT32_MAX, 0x1p32) X(u64, from, 0, UINT64_MAX, 0x1p64)

/* From an integer: wraps; to a float once rounded, to a smaller one through f32. */
#define WRAP(to, from, lo, hi, end) LOOP(to, from, x)
#define F8(from, expr)                                                                             \
    LOOP(f8e4m3, from, kl_f8e4m3_sat(expr))                                                        \
    LOOP(f8e5m2, from, kl_f8e5m2_sat(expr))
#define FROM_INT(from)                                                                             \
    INTS(WRAP, from)                                                                               \
    LOOP(truth, from, x != 0)                                                                      \
    LOOP(f16, from, f16_of_f32((float)x))                                                          \
    LOOP(bf16, from, bf16_of_f32((float)x))                                                        \
    F8(from, (float)x)                                                                             \
    LOOP(f32, from, x)                                                                             \
    LOOP(f64, from, x)

/* From a float: towards zero, saturating, NaN to 0.  `end` is the first value above. */
#define SATURATE_(to, from, w, W, lo, hi, end)                                                     \
    LOOP(to, from, w != w ? 0 : w >= (W)end ? (t_##to)hi : w <= (W)lo ? (t_##to)lo : (t_##to)w)
#define SAT_f16(to, from, lo, hi, end) SATURATE_(to, from, f32_of_f16(x), float, lo, hi, end)
#define SAT_bf16(to, from, lo, hi, end) SATURATE_(to, from, f32_of_bf16(x), float, lo, hi, end)
#define SAT_f8e4m3(to, from, lo, hi, end)                                                          \
    SATURATE_(to, from, kl_f32_of_f8e4m3(x), float, lo, hi, end)
#define SAT_f8e5m2(to, from, lo, hi, end)                                                          \
    SATURATE_(to, from, kl_f32_of_f8e5m2(x), float, lo, hi, end)
#define SAT_f32(to, from, lo, hi, end) SATURATE_(to, from, x, float, lo, hi, end)
#define SAT_f64(to, from, lo, hi, end) SATURATE_(to, from, x, double, lo, hi, end)

FROM_INT(truth)
FROM_INT(i8)
FROM_INT(i16)
FROM_INT(i32)
FROM_INT(i64)
FROM_INT(u8)
FROM_INT(u16)
FROM_INT(u32)
FROM_INT(u64)

INTS(SAT_f16, f16)
LOOP(truth, f16, (x & 0x7fff) != 0)
LOOP(f16, f16, x)
LOOP(bf16, f16, bf16_of_f32(f32_of_f16(x)))
F8(f16, f32_of_f16(x))
LOOP(f32, f16, f32_of_f16(x))
LOOP(f64, f16, (double)f32_of_f16(x))

INTS(SAT_bf16, bf16)
LOOP(truth, bf16, (x & 0x7fff) != 0)
LOOP(f16, bf16, f16_of_f32(f32_of_bf16(x)))
LOOP(bf16, bf16, x)
F8(bf16, f32_of_bf16(x))
LOOP(f32, bf16, f32_of_bf16(x))
LOOP(f64, bf16, (double)f32_of_bf16(x))

INTS(SAT_f32, f32)
LOOP(truth, f32, x != 0)
LOOP(f16, f32, f16_of_f32(x))
LOOP(bf16, f32, bf16_of_f32(x))
F8(f32, x)
LOOP(f32, f32, x)
LOOP(f64, f32, (double)x)

INTS(SAT_f64, f64)
LOOP(truth, f64, x != 0)
LOOP(f16, f64, f16_of_f32((float)x))
LOOP(bf16, f64, bf16_of_f32((float)x))
F8(f64, (float)x)
LOOP(f32, f64, x)
LOOP(f64, f64, x)

INTS(SAT_f8e4m3, f8e4m3)
LOOP(truth, f8e4m3, (x & 0x7f) != 0)
LOOP(f16, f8e4m3, f16_of_f32(kl_f32_of_f8e4m3(x)))
LOOP(bf16, f8e4m3, bf16_of_f32(kl_f32_of_f8e4m3(x)))
LOOP(f8e4m3, f8e4m3, x)
LOOP(f8e5m2, f8e4m3, kl_f8e5m2_sat(kl_f32_of_f8e4m3(x)))
LOOP(f32, f8e4m3, kl_f32_of_f8e4m3(x))
LOOP(f64, f8e4m3, (double)kl_f32_of_f8e4m3(x))

INTS(SAT_f8e5m2, f8e5m2)
LOOP(truth, f8e5m2, (x & 0x7f) != 0)
LOOP(f16, f8e5m2, f16_of_f32(kl_f32_of_f8e5m2(x)))
LOOP(bf16, f8e5m2, bf16_of_f32(kl_f32_of_f8e5m2(x)))
LOOP(f8e5m2, f8e5m2, x)
LOOP(f8e4m3, f8e5m2, kl_f8e4m3_sat(kl_f32_of_f8e5m2(x)))
LOOP(f32, f8e5m2, kl_f32_of_f8e5m2(x))
LOOP(f64, f8e5m2, (double)kl_f32_of_f8e5m2(x))

#define ROW(from)                                                                                  \
    [KL_##from] = {                                                                                \
        [KL_bool] = truth_from_##from, [KL_i8] = i8_from_##from,   [KL_i16] = i16_from_##from,     \
        [KL_i32] = i32_from_##from,    [KL_i64] = i64_from_##from, [KL_u8] = u8_from_##from,       \
        [KL_u16] = u16_from_##from,    [KL_u32] = u32_from_##from, [KL_u64] = u64_from_##from,     \
        [KL_f16] = f16_from_##from,    [KL_bf16] = bf16_from_##from, [KL_f32] = f32_from_##from,   \
        [KL_f64] = f64_from_##from,    [KL_f8e4m3] = f8e4m3_from_##from,                           \
        [KL_f8e5m2] = f8e5m2_from_##from,                                                          \
    },

static kl_ew_fn *const table[KL_NELEM][KL_NELEM] = {
    /* clang-format off */
    ROW(truth) ROW(i8) ROW(i16) ROW(i32) ROW(i64) ROW(u8) ROW(u16) ROW(u32) ROW(u64)
    ROW(f16) ROW(bf16) ROW(f32) ROW(f64) ROW(f8e4m3) ROW(f8e5m2)
    /* clang-format on */
};

#define NAN_LOOP(to)                                                                               \
    static void nan_##to(void *restrict out, const void *restrict in, const void *b,               \
                         const void *c, size_t n)                                                  \
    {                                                                                              \
        t_##to *o = out;                                                                           \
        const t_f32 *p = in;                                                                       \
        (void)b, (void)c;                                                                          \
        EACH(o[j] = kl_##to##_nan(p[j]);)                                                          \
    }
NAN_LOOP(f8e4m3)
NAN_LOOP(f8e5m2)

kl_ew_fn *kl_convert_nan_find(enum kl_elem to)
{
    return to == KL_f8e4m3 ? nan_f8e4m3 : nan_f8e5m2;
}

kl_ew_fn *kl_convert_find(enum kl_elem to, enum kl_elem from)
{
    return table[from][to];
}
