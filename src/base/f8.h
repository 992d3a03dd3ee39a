/* f8.h - 8-bit floats: between them and f32.
 *
 * f8e4m3 has 4 exponent bits (bias 7) and 3 mantissa bits; the largest number is 448, 0x7f and
 * 0xff are NaN, and there is no infinity.  f8e5m2 is an f16 without its low 8 bits.  To f8 there
 * are two ways: _sat makes what is too large the largest number (infinities too), _nan makes it NaN
 * in f8e4m3 and an infinity in f8e5m2.  Everything is whole-number steps and selections without
 * branches, so that loops are vectorised; the C back end's prelude and the GPU back end write
 * the same steps.  Subnormal f32 must be kept: no flush to zero. */
#ifndef KL_F8_H
#define KL_F8_H

#include "base/elem.h"

/* f rounded to a float with 23 - drop mantissa bits; ABOVE: the bits of the f32 that stands for
 * everything from there on. */
static inline uint8_t kl_f8_round(float f, uint32_t drop, uint32_t bias, uint32_t above)
{
    const uint32_t b = (uint32_t)kl_f32_bits(f), sign = b >> 24 & 0x80, a = b & 0x7fffffff;
    const uint32_t c = a < above ? a : above, unit = (drop - bias + 128) << 23;
    const uint32_t normal =
        (c - ((127 - bias) << 23) + (1u << (drop - 1)) - 1 + (c >> drop & 1)) >> drop;
    /* adding 2^(drop - bias + 1) makes the unit of the sum that of subnormals */
    const uint32_t sub = (uint32_t)kl_f32_bits(kl_bits_f32(c) + kl_bits_f32(unit)) - unit;
    const uint32_t r = c < (128 - bias) << 23 ? sub : normal;
    return (uint8_t)(sign | (a > 0x7f800000 ? 0x7f : r));
}

static inline uint8_t kl_f8e4m3_sat(float f) { return kl_f8_round(f, 20, 7, 0x43e00000); }
static inline uint8_t kl_f8e4m3_nan(float f) { return kl_f8_round(f, 20, 7, 0x43f00000); }
static inline uint8_t kl_f8e5m2_sat(float f) { return kl_f8_round(f, 21, 15, 0x47600000); }
static inline uint8_t kl_f8e5m2_nan(float f) { return kl_f8_round(f, 21, 15, 0x47800000); }

static inline float kl_f32_of_f8e4m3(uint8_t v)
{
    const uint32_t sign = (uint32_t)(v & 0x80) << 24, mag = (uint32_t)(v & 0x7f) << 20;
    /* the exponent is 120 too small: one exact product, right for subnormals too */
    const uint32_t fin = (uint32_t)kl_f32_bits(kl_bits_f32(mag) * 0x1p120f);
    return kl_bits_f32(sign | ((v & 0x7f) == 0x7f ? 0x7fc00000 : fin));
}

static inline float kl_f32_of_f8e5m2(uint8_t v)
{
    const uint32_t sign = (uint32_t)(v & 0x80) << 24, mag = (uint32_t)(v & 0x7f) << 21;
    const uint32_t fin = (uint32_t)kl_f32_bits(kl_bits_f32(mag) * 0x1p112f);
    const uint32_t top = mag | 0x7f800000 | (v & 3 ? 0x400000 : 0); /* infinity; NaN made quiet */
    return kl_bits_f32(sign | ((v & 0x7c) == 0x7c ? top : fin));
}

#endif
