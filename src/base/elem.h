/* elem.h - element types and conversions between them. */
#ifndef KL_ELEM_H
#define KL_ELEM_H

#include <stdbool.h>
#include <stdint.h>

enum kl_elem {
    KL_elem_none = 0,
#define ELEM(name, code, bytes, kind, ctype, acc, doc) KL_##name = code,
#include "base/elem.def"
    KL_NELEM = 16
};

enum kl_kind { KL_KIND_NONE, KL_KIND_BOOL, KL_KIND_SINT, KL_KIND_UINT, KL_KIND_FLT };

struct kl_eleminfo {
    const char *name, *doc;
    uint8_t bytes, kind, acc; /* acc: enum kl_elem of the promoted type */
};
extern const struct kl_eleminfo kl_elems[KL_NELEM];

/* Element type by its Kiln name; KL_elem_none if there is none. */
enum kl_elem kl_elem_by_name(const char *s, uint32_t n);

static inline bool kl_is_float(enum kl_elem e) { return kl_elems[e].kind == KL_KIND_FLT; }
static inline bool kl_is_int(enum kl_elem e)
{
    return kl_elems[e].kind == KL_KIND_SINT || kl_elems[e].kind == KL_KIND_UINT;
}

/* Storage conversions; round to nearest even; NaN stays a quiet NaN with its sign.  8-bit floats:
 * f8.h. */
float kl_f16_to_f32(uint16_t h);
uint16_t kl_f32_to_f16(float f);
float kl_bf16_to_f32(uint16_t h);
uint16_t kl_f32_to_bf16(float f);

/* A scalar of any element type travels as 64 bits: integers sign- or zero-
 * extended, bool 0 or 1, floats as their own bits in the low part. */

/* The language's cast (LANGUAGE: Conversion): saturating float to integer with
 * NaN to 0, wrapping integer to integer, everything to a 16- or 8-bit float via
 * f32.  What is too large for an 8-bit float becomes its largest number. */
uint64_t kl_convert(enum kl_elem to, enum kl_elem from, uint64_t bits);
/* cvt_nan: an f32 to an 8-bit float; what is too large becomes NaN (f8e4m3) or infinity (f8e5m2). */
uint64_t kl_convert_nan(enum kl_elem to, uint64_t f32_bits);
/* A number by its text, as double and rounded to f32, as the float type e: rounded once, and to
 * an infinity where that is its value.  false: e does not hold it. */
bool kl_float_number(enum kl_elem e, float f, double d, uint64_t *bits);

static inline float kl_bits_f32(uint64_t b)
{
    union { uint32_t u; float f; } x = {(uint32_t)b};
    return x.f;
}
static inline uint64_t kl_f32_bits(float f)
{
    union { float f; uint32_t u; } x = {f};
    return x.u;
}
static inline double kl_bits_f64(uint64_t b)
{
    union { uint64_t u; double f; } x = {b};
    return x.f;
}
static inline uint64_t kl_f64_bits(double f)
{
    union { double f; uint64_t u; } x = {f};
    return x.u;
}

/* Bits truncated and extended to the canonical form of elem. */
uint64_t kl_canon(enum kl_elem e, uint64_t bits);
/* One element at p as bits, and back. */
uint64_t kl_elem_load(enum kl_elem e, const void *p);
void kl_elem_store(enum kl_elem e, void *p, uint64_t bits);
/* The value as a double (integers may round); for printing and comparing. */
double kl_elem_double(enum kl_elem e, uint64_t bits);

#endif
