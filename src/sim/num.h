/* num.h - arithmetic of PTX types that C lacks: NaNs as a device makes them, 16-bit floats
 * with one rounding, integers with the results a device gives. */
#ifndef KL_SIM_NUM_H
#define KL_SIM_NUM_H

#include <math.h>

#include "base/elem.h"
#include "sim/module.h"

struct sim_format {
    int p, ebits, emin, emax; /* bits with the hidden one; of the exponent; normal exponents */
};
extern const struct sim_format kl_sim_f16, kl_sim_bf16, kl_sim_f32, kl_sim_f64;

/* m * 2^e (sticky: and a little more) rounded once; the encoding without NaN. */
uint64_t kl_sim_round(const struct sim_format *f, bool neg, uint64_t m, int e, bool sticky,
                      int mode);
uint64_t kl_sim_from_double(const struct sim_format *f, double d, int mode); /* no NaN */
/* x + y with the last bit set if the sum is not exact: rounding it again is right. */
double kl_sim_add_odd(double x, double y);

static inline float sim_nf(float x) /* arithmetic makes one NaN only */
{
    return x == x ? x : kl_bits_f32(0x7fffffff);
}
static inline double sim_nd(double x)
{
    return x == x ? x : kl_bits_f64(UINT64_C(0x7ff8000000000000));
}

/* 16-bit floats in registers */
static inline double sim_h(uint16_t h)
{
    return (double)kl_f16_to_f32(h);
}
static inline double sim_b(uint16_t h)
{
    return (double)kl_bf16_to_f32(h);
}
static inline uint16_t sim_to_h(double d)
{
    return d != d ? 0x7fff : (uint16_t)kl_sim_from_double(&kl_sim_f16, d, RND_N);
}
static inline uint16_t sim_to_b(double d)
{
    return d != d ? 0x7fff : (uint16_t)kl_sim_from_double(&kl_sim_bf16, d, RND_N);
}
static inline double sim_fma_odd(double a, double b, double c)
{
    return kl_sim_add_odd(a * b, c); /* products of 16-bit floats are exact */
}

/* minimum and maximum: -0 < +0; a NaN loses, or wins with .NaN */
float kl_sim_minf(float a, float b, bool nan);
float kl_sim_maxf(float a, float b, bool nan);
double kl_sim_mind(double a, double b, bool nan);
double kl_sim_maxd(double a, double b, bool nan);
uint16_t kl_sim_minh(uint16_t a, uint16_t b, bool nan, bool bf);
uint16_t kl_sim_maxh(uint16_t a, uint16_t b, bool nan, bool bf);

uint32_t kl_sim_prmt(uint32_t a, uint32_t b, uint32_t c, uint32_t mode);
uint64_t kl_sim_bfe(uint64_t a, uint32_t pos, uint32_t len, int width, bool sign);
uint64_t kl_sim_bfi(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, int width);
uint32_t kl_sim_bfind(uint64_t a, int width, bool sign, bool shift);
uint64_t kl_sim_mulhi_u64(uint64_t a, uint64_t b);
int64_t kl_sim_mulhi_s64(int64_t a, int64_t b);
uint64_t kl_sim_brev(uint64_t a, int width);
int32_t kl_sim_sat32(int64_t v);

#endif
