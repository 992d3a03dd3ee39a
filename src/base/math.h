/* math.h - the exact math functions, defined once.
 *
 * The rows of math.def are expanded here to static inline functions kl_<name>_<elem>
 * for the folder and the interpreter, in math.c to the text of the same functions for
 * the C back end.  Both give the same bits if compiled with contraction off.  Only
 * exact libm functions are used: fma, sqrt and trunc. */
#ifndef KL_MATH_H
#define KL_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/elem.h"

/* The functions as C text: pieces to be put one after the other, ended by NULL.  They
 * are `KL_MATH f32 kl_exp_f32(f32 x)` and so on, always inlined, straight-line code that
 * gcc -O3 and clang -O2 vectorise inside a loop.  The text needs before it:
 *   types       f32 f64 u32 u64
 *   f32, f64    kl_fma_T(a, b, c)  kl_sqrt_T(a)  kl_abs_T(a)  kl_trunc_T(a)
 *   u32, u64    kl_umulhi_T(a, b)
 *   same bits   kl_bitcast_u32_f32(a)  kl_bitcast_f32_u32(a)  and for u64 and f64
 * fma must be __builtin_fma and __builtin_fmaf on a machine with fma; bitcast a memcpy
 * or a union.  Flags: -ffp-contract=off -fno-math-errno -fno-trapping-math. */
extern const char *const kl_math_c_text[];

/* The upper half of a product; in 32-bit halves, which compilers make vectors of. */
static inline uint32_t kl_umulhi_u32(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}
static inline uint64_t kl_umulhi_u64(uint64_t a, uint64_t b)
{
    const uint64_t low = 0xffffffff, al = a & low, ah = a >> 32, bl = b & low, bh = b >> 32;
    const uint64_t m = ah * bl + (al * bl >> 32), n = al * bh + (m & low);
    return ah * bh + (m >> 32) + (n >> 32);
}

/* How a row of math.def becomes C. */
/* clang-format off */
#define KL_MT_f32 float
#define KL_MT_f64 double
#define KL_MT_u32 uint32_t
#define KL_MT_u64 uint64_t
#define KL_M_add(t, a, b) a + b
#define KL_M_sub(t, a, b) a - b
#define KL_M_mul(t, a, b) a * b
#define KL_M_div(t, a, b) a / b
#define KL_M_and(t, a, b) a & b
#define KL_M_or(t, a, b) a | b
#define KL_M_xor(t, a, b) a ^ b
#define KL_M_umulhi(t, a, b) kl_umulhi_##t(a, b)
#define KL_M_shl(t, a, b) a << b
#define KL_M_shr(t, a, b) a >> b
#define KL_M_min(t, a, b) a < b ? a : b
#define KL_M_lt(t, a, b) a < b
#define KL_M_gt(t, a, b) a > b
#define KL_M_eq(t, a, b) a == b
#define KL_M_neg(t, a) -a
#define KL_M_abs(t, a) KL_MF_abs_##t(a)
#define KL_M_sqrt(t, a) KL_MF_sqrt_##t(a)
#define KL_M_trunc(t, a) KL_MF_trunc_##t(a)
#define KL_M_fma(t, a, b, c) KL_MF_fma_##t(a, b, c)
#define KL_MF_abs_f32(a) fabsf(a)
#define KL_MF_abs_f64(a) fabs(a)
#define KL_MF_sqrt_f32(a) sqrtf(a)
#define KL_MF_sqrt_f64(a) sqrt(a)
#define KL_MF_trunc_f32(a) truncf(a)
#define KL_MF_trunc_f64(a) trunc(a)
#define KL_MF_fma_f32(a, b, c) fmaf(a, b, c)
#define KL_MF_fma_f64(a, b, c) fma(a, b, c)
#define KL_MF_bc_u32_f32(a) (uint32_t)kl_f32_bits(a)
#define KL_MF_bc_f32_u32(a) kl_bits_f32(a)
#define KL_MF_bc_u64_f64(a) kl_f64_bits(a)
#define KL_MF_bc_f64_u64(a) kl_bits_f64(a)

#define MATH(name, t) static inline KL_MT_##t kl_##name##_##t(KL_MT_##t x) {
#define MATH2(name, t) static inline KL_MT_##t kl_##name##_##t(KL_MT_##t x, KL_MT_##t y) {
#define K(t, v, lit) const KL_MT_##t v = lit;
#define I1(t, v, op, a) const KL_MT_##t v = KL_M_##op(t, a);
#define I2(t, v, op, a, b) const KL_MT_##t v = KL_M_##op(t, a, b);
#define I3(t, v, op, a, b, c) const KL_MT_##t v = KL_M_##op(t, a, b, c);
#define CMP(v, op, t, a, b) const bool v = KL_M_##op(t, a, b);
#define SEL(t, v, c, a, b) const KL_MT_##t v = c ? a : b;
#define BC(t, v, from, a) const KL_MT_##t v = KL_MF_bc_##t##_##from(a);
#define CALL(t, v, fn, a) const KL_MT_##t v = kl_##fn##_##t(a);
#define RET(t, v) return v; }
#include "base/math.def"
/* clang-format on */

#endif
