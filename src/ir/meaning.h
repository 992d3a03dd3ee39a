/* meaning.h - the functions that the meaning expressions of ops.def name.
 *
 * FN(name) in ops.def is kl_<name>_<elem>.  Here are those that are a few exact
 * steps (NUMERICS.md: integer division, shifts, order of floats); exp, log and
 * their like come from base/math.h.  Nothing traps and nothing is undefined: signed
 * arithmetic that may wrap goes through the unsigned type.  The folder and the
 * interpreter include this file, and the C back end's prelude must agree with it. */
#ifndef KL_MEANING_H
#define KL_MEANING_H

#include <math.h>

#include "base/elem.h"
#include "base/math.h"

/* clang-format off */

/* Signed integers.  Division by 0 gives all ones and the dividend as remainder;
 * MIN / -1 wraps to MIN with remainder 0.  cdiv, floordiv and floormod adjust the
 * truncated quotient and remainder by the signs. */
#define KL_MEANING_SIGNED(elem, T, U, BITS)                                                        \
    static inline T kl_div_##elem(T a, T b)                                                        \
    {                                                                                              \
        return b == 0 ? (T)-1 : b == -1 ? (T)((U)0 - (U)a) : (T)(a / b);                           \
    }                                                                                              \
    static inline T kl_rem_##elem(T a, T b)                                                        \
    {                                                                                              \
        return b == 0 ? a : b == -1 ? (T)0 : (T)(a % b);                                           \
    }                                                                                              \
    static inline T kl_cdiv_##elem(T a, T b)                                                       \
    {                                                                                              \
        T q = kl_div_##elem(a, b), r = kl_rem_##elem(a, b);                                        \
        return b != 0 && r != 0 && (r < 0) == (b < 0) ? (T)(q + 1) : q;                            \
    }                                                                                              \
    static inline T kl_floordiv_##elem(T a, T b)                                                   \
    {                                                                                              \
        T q = kl_div_##elem(a, b), r = kl_rem_##elem(a, b);                                        \
        return b != 0 && r != 0 && (r < 0) != (b < 0) ? (T)(q - 1) : q;                            \
    }                                                                                              \
    static inline T kl_floormod_##elem(T a, T b)                                                   \
    {                                                                                              \
        T r = kl_rem_##elem(a, b);                                                                 \
        return b != 0 && r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;                            \
    }                                                                                              \
    static inline T kl_abs_##elem(T a)                                                             \
    {                                                                                              \
        return a < 0 ? (T)((U)0 - (U)a) : a;                                                       \
    }                                                                                              \
    static inline T kl_shl_##elem(T a, T b)                                                        \
    {                                                                                              \
        return (U)b >= BITS ? (T)0 : (T)((U)a << (U)b);                                            \
    }                                                                                              \
    static inline T kl_shr_##elem(T a, T b)                                                        \
    {                                                                                              \
        U n = (U)b >= BITS ? (U)(BITS - 1) : (U)b;                                                 \
        return a < 0 ? (T) ~((U)~a >> n) : (T)((U)a >> n); /* sign fill, in defined steps */       \
    }                                                                                              \
    static inline T kl_pow2ceil_##elem(T a)                                                        \
    {                                                                                              \
        U p = 1;                                                                                   \
        while (a > 1 && p < (U)a)                                                                  \
            p = (U)(p << 1);                                                                       \
        return (T)p; /* above the largest power of two of T: wraps to MIN */                       \
    }

#define KL_MEANING_UNSIGNED(elem, T, BITS)                                                         \
    static inline T kl_div_##elem(T a, T b)                                                        \
    {                                                                                              \
        return b == 0 ? (T)-1 : (T)(a / b);                                                        \
    }                                                                                              \
    static inline T kl_rem_##elem(T a, T b)                                                        \
    {                                                                                              \
        return b == 0 ? a : (T)(a % b);                                                            \
    }                                                                                              \
    static inline T kl_cdiv_##elem(T a, T b)                                                       \
    {                                                                                              \
        return b == 0 ? (T)-1 : (T)(a / b + (a % b != 0));                                         \
    }                                                                                              \
    static inline T kl_floordiv_##elem(T a, T b)                                                   \
    {                                                                                              \
        return kl_div_##elem(a, b);                                                                \
    }                                                                                              \
    static inline T kl_floormod_##elem(T a, T b)                                                   \
    {                                                                                              \
        return kl_rem_##elem(a, b);                                                                \
    }                                                                                              \
    static inline T kl_abs_##elem(T a)                                                             \
    {                                                                                              \
        return a;                                                                                  \
    }                                                                                              \
    static inline T kl_shl_##elem(T a, T b)                                                        \
    {                                                                                              \
        return b >= BITS ? (T)0 : (T)(a << b);                                                     \
    }                                                                                              \
    static inline T kl_shr_##elem(T a, T b)                                                        \
    {                                                                                              \
        return b >= BITS ? (T)0 : (T)(a >> b);                                                     \
    }                                                                                              \
    static inline T kl_pow2ceil_##elem(T a)                                                        \
    {                                                                                              \
        T p = 1;                                                                                   \
        while (p < a && p != 0)                                                                    \
            p = (T)(p << 1);                                                                       \
        return p; /* above the largest power of two of T: wraps to 0 */                            \
    }

KL_MEANING_SIGNED(i32, int32_t, uint32_t, 32)
KL_MEANING_SIGNED(i64, int64_t, uint64_t, 64)
KL_MEANING_UNSIGNED(u32, uint32_t, 32)
KL_MEANING_UNSIGNED(u64, uint64_t, 64)

/* Bits.  Signed operands are read as unsigned. */
#define KL_MEANING_BITS(elem, T, U, BITS, SUF)                                                     \
    static inline T kl_popcount_##elem(T a)                                                        \
    {                                                                                              \
        return (T)__builtin_popcount##SUF((U)a);                                                   \
    }                                                                                              \
    static inline T kl_clz_##elem(T a)                                                             \
    {                                                                                              \
        return a == 0 ? (T)BITS : (T)__builtin_clz##SUF((U)a);                                     \
    }                                                                                              \
    static inline T kl_ctz_##elem(T a)                                                             \
    {                                                                                              \
        return a == 0 ? (T)BITS : (T)__builtin_ctz##SUF((U)a);                                     \
    }

KL_MEANING_BITS(i32, int32_t, uint32_t, 32, )
KL_MEANING_BITS(i64, int64_t, uint64_t, 64, ll)
KL_MEANING_BITS(u32, uint32_t, uint32_t, 32, )
KL_MEANING_BITS(u64, uint64_t, uint64_t, 64, ll)
static inline int32_t kl_umulhi_i32(int32_t a, int32_t b)
{
    return (int32_t)kl_umulhi_u32((uint32_t)a, (uint32_t)b);
}
static inline int64_t kl_umulhi_i64(int64_t a, int64_t b)
{
    return (int64_t)kl_umulhi_u64((uint64_t)a, (uint64_t)b);
}

/* Floats.  min and max: a NaN wins and -0 < +0.  fmin and fmax: a NaN loses.  libm's
 * own fmin and fmax are not used: they differ between libraries on signed zeros.
 * SUF is libm's suffix; sqrt and fma are rounded correctly by every IEEE libm, and fmod is
 * exact. */
#define KL_MEANING_FLOAT(elem, T, SUF, SIGN)                                                       \
    static inline T kl_abs_##elem(T a)                                                             \
    {                                                                                              \
        return (T)kl_bits_##elem(kl_##elem##_bits(a) & ~(SIGN));                                   \
    }                                                                                              \
    static inline bool kl_less_##elem(T a, T b) /* no NaN; -0 < +0 */                              \
    {                                                                                              \
        uint64_t sa = kl_##elem##_bits(a) & (SIGN), sb = kl_##elem##_bits(b) & (SIGN);             \
        return a < b || (a == b && sa > sb);                                                       \
    }                                                                                              \
    static inline T kl_min_##elem(T a, T b)                                                        \
    {                                                                                              \
        return a != a ? a : b != b ? b : kl_less_##elem(b, a) ? b : a;                             \
    }                                                                                              \
    static inline T kl_max_##elem(T a, T b)                                                        \
    {                                                                                              \
        return a != a ? a : b != b ? b : kl_less_##elem(a, b) ? b : a;                             \
    }                                                                                              \
    static inline T kl_fmin_##elem(T a, T b)                                                       \
    {                                                                                              \
        return a != a ? b : b != b ? a : kl_less_##elem(b, a) ? b : a;                             \
    }                                                                                              \
    static inline T kl_fmax_##elem(T a, T b)                                                       \
    {                                                                                              \
        return a != a ? b : b != b ? a : kl_less_##elem(a, b) ? b : a;                             \
    }                                                                                              \
    static inline T kl_fma_##elem(T a, T b, T c)                                                   \
    {                                                                                              \
        return fma##SUF(a, b, c);                                                                  \
    }                                                                                              \
    static inline T kl_sqrt_##elem(T a)                                                            \
    {                                                                                              \
        return sqrt##SUF(a);                                                                       \
    }                                                                                              \
    static inline T kl_floor_##elem(T a)                                                           \
    {                                                                                              \
        return floor##SUF(a);                                                                      \
    }                                                                                              \
    static inline T kl_ceil_##elem(T a)                                                            \
    {                                                                                              \
        return ceil##SUF(a);                                                                       \
    }                                                                                              \
    static inline T kl_trunc_##elem(T a)                                                           \
    {                                                                                              \
        return trunc##SUF(a);                                                                      \
    }                                                                                              \
    static inline T kl_fmod_##elem(T a, T b)                                                       \
    {                                                                                              \
        return fmod##SUF(a, b);                                                                    \
    }                                                                                              \
    static inline T kl_copysign_##elem(T a, T b)                                                   \
    {                                                                                              \
        uint64_t sign = b != b ? 0 : kl_##elem##_bits(b) & (SIGN);                                 \
        return (T)kl_bits_##elem((kl_##elem##_bits(a) & ~(SIGN)) | sign);                          \
    }                                                                                              \
    static inline T kl_rint_##elem(T a) /* rounding mode: to nearest */                            \
    {                                                                                              \
        return rint##SUF(a);                                                                       \
    }

KL_MEANING_FLOAT(f32, float, f, UINT64_C(1) << 31)
KL_MEANING_FLOAT(f64, double, , UINT64_C(1) << 63)

/* clang-format on */

#endif
