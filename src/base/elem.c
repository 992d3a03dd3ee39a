/* elem.c - see elem.h */
#include "base/elem.h"

#include "base/f8.h"

#include <math.h>
#include <string.h>

#include "kiln.h"

const struct kl_eleminfo kl_elems[KL_NELEM] = {
    [0] = {.name = "none", .doc = ""},
#define ELEM(name_, code_, bytes_, kind_, ctype_, acc_, doc_)                                      \
    [code_] = {.name = #name_, .doc = doc_, .bytes = bytes_, .kind = KL_KIND_##kind_,              \
               .acc = KL_##acc_},
#include "base/elem.def"
};

/* clang-format off */
_Static_assert((int)KL_bool == (int)KILN_BOOL && (int)KL_i8 == (int)KILN_I8 &&
               (int)KL_i16 == (int)KILN_I16 && (int)KL_i32 == (int)KILN_I32 &&
               (int)KL_i64 == (int)KILN_I64 && (int)KL_u8 == (int)KILN_U8 &&
               (int)KL_u16 == (int)KILN_U16 && (int)KL_u32 == (int)KILN_U32 &&
               (int)KL_u64 == (int)KILN_U64 && (int)KL_f16 == (int)KILN_F16 &&
               (int)KL_bf16 == (int)KILN_BF16 && (int)KL_f32 == (int)KILN_F32 &&
               (int)KL_f64 == (int)KILN_F64 && (int)KL_f8e4m3 == (int)KILN_F8E4M3 &&
               (int)KL_f8e5m2 == (int)KILN_F8E5M2, "elem.def and kiln.h must agree");
/* clang-format on */

enum kl_elem kl_elem_by_name(const char *s, uint32_t n)
{
    for (int e = 1; e < KL_NELEM; e++)
        if (strlen(kl_elems[e].name) == n && memcmp(kl_elems[e].name, s, n) == 0)
            return (enum kl_elem)e;
    return KL_elem_none;
}

float kl_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = (h >> 10) & 31, man = h & 0x3ff;
    if (exp == 31) /* inf, NaN: a signalling NaN becomes quiet, as every conversion does */
        return kl_bits_f32(sign | 0x7f800000 | (man ? 0x400000 | (man << 13) : 0));
    if (exp)
        return kl_bits_f32(sign | (exp + 112) << 23 | man << 13);
    float v = (float)man * 0x1p-24f;
    return sign ? -v : v;
}

uint16_t kl_f32_to_f16(float f)
{
    uint32_t b = (uint32_t)kl_f32_bits(f), sign = b >> 16 & 0x8000, a = b & 0x7fffffff;
    if (a > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
    if (a >= 0x477ff000) /* rounds to 65520 or more */
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x38800000) { /* subnormal: adding 0.5 lets the FPU round at 2^-24 */
        uint32_t r = (uint32_t)kl_f32_bits(kl_bits_f32(a) + 0.5f) - 0x3f000000;
        return (uint16_t)(sign | r);
    }
    uint32_t r = a - (112u << 23) + 0xfff + (a >> 13 & 1);
    return (uint16_t)(sign | r >> 13);
}

float kl_bf16_to_f32(uint16_t h)
{
    return kl_bits_f32((uint32_t)h << 16);
}

uint16_t kl_f32_to_bf16(float f)
{
    uint32_t b = (uint32_t)kl_f32_bits(f);
    if ((b & 0x7fffffff) > 0x7f800000) /* adding the rounding term would turn it into -0 */
        return (uint16_t)(b >> 16 | 0x40);
    return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

uint64_t kl_canon(enum kl_elem e, uint64_t b)
{
    switch (e) {
    case KL_bool: return (b & 0xff) != 0;
    case KL_i8: return (uint64_t)(int64_t)(int8_t)b;
    case KL_i16: return (uint64_t)(int64_t)(int16_t)b;
    case KL_i32: return (uint64_t)(int64_t)(int32_t)b;
    case KL_u8: case KL_f8e4m3: case KL_f8e5m2: return b & 0xff;
    case KL_u16: case KL_f16: case KL_bf16: return b & 0xffff;
    case KL_u32: case KL_f32: return b & 0xffffffff;
    default: return b;
    }
}

uint64_t kl_elem_load(enum kl_elem e, const void *p)
{
    uint64_t b = 0;
    memcpy(&b, p, kl_elems[e].bytes); /* little-endian hosts only; checked at build */
    return kl_canon(e, b);
}

void kl_elem_store(enum kl_elem e, void *p, uint64_t bits)
{
    memcpy(p, &bits, kl_elems[e].bytes);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "Kiln assumes a little-endian host");

static uint64_t from_int(enum kl_elem to, bool neg, uint64_t v)
{
    /* f32 from a 64-bit integer must round once: not through double */
    switch (to) {
    case KL_f64: return kl_f64_bits(neg ? (double)(int64_t)v : (double)v);
    case KL_f32: return kl_f32_bits(neg ? (float)(int64_t)v : (float)v);
    case KL_f16: return kl_f32_to_f16(neg ? (float)(int64_t)v : (float)v);
    case KL_bf16: return kl_f32_to_bf16(neg ? (float)(int64_t)v : (float)v);
    case KL_f8e4m3: return kl_f8e4m3_sat(neg ? (float)(int64_t)v : (float)v);
    case KL_f8e5m2: return kl_f8e5m2_sat(neg ? (float)(int64_t)v : (float)v);
    case KL_bool: return v != 0;
    default: return kl_canon(to, v);
    }
}

static uint64_t from_double(enum kl_elem to, double d)
{
    static const struct { double lo, hi; } lim[KL_NELEM] = {
        [KL_i8] = {-128, 127}, [KL_i16] = {-32768, 32767},
        [KL_i32] = {-2147483648.0, 2147483647.0}, [KL_i64] = {-0x1p63, 0x1p63},
        [KL_u8] = {0, 255}, [KL_u16] = {0, 65535}, [KL_u32] = {0, 4294967295.0},
        [KL_u64] = {0, 0x1p64},
    };
    switch (to) {
    case KL_bool: return d != 0;
    case KL_f64: return kl_f64_bits(d);
    case KL_f32: return kl_f32_bits((float)d);
    case KL_f16: return kl_f32_to_f16((float)d);
    case KL_bf16: return kl_f32_to_bf16((float)d);
    case KL_f8e4m3: return kl_f8e4m3_sat((float)d);
    case KL_f8e5m2: return kl_f8e5m2_sat((float)d);
    case KL_i64:
        return d != d ? 0 : d >= lim[to].hi ? INT64_MAX : d <= lim[to].lo ? (uint64_t)INT64_MIN
                                                                          : (uint64_t)(int64_t)d;
    case KL_u64: return d != d || d <= 0 ? 0 : d >= lim[to].hi ? UINT64_MAX : (uint64_t)d;
    default:
        if (d != d)
            return 0;
        d = d < lim[to].lo ? lim[to].lo : d > lim[to].hi ? lim[to].hi : d;
        return (uint64_t)(int64_t)d;
    }
}

uint64_t kl_convert(enum kl_elem to, enum kl_elem from, uint64_t bits)
{
    if (to == from)
        return kl_canon(to, bits);
    switch (kl_elems[from].kind) {
    case KL_KIND_BOOL: case KL_KIND_UINT: return from_int(to, false, bits);
    case KL_KIND_SINT: return from_int(to, (int64_t)bits < 0, bits);
    default: return from_double(to, kl_elem_double(from, bits));
    }
}

uint64_t kl_convert_nan(enum kl_elem to, uint64_t f32_bits)
{
    float f = kl_bits_f32(f32_bits);
    return to == KL_f8e4m3 ? kl_f8e4m3_nan(f) : kl_f8e5m2_nan(f);
}

bool kl_float_number(enum kl_elem e, float f, double d, uint64_t *bits)
{
    bool f8 = kl_elems[e].bytes == 1;
    if (e == KL_f64) {
        *bits = kl_f64_bits(d);
        return true;
    }
    uint32_t b = (uint32_t)kl_f32_bits(f);
    if (e != KL_f32 && (double)f != d && d == d && isfinite(f)) {
        /* smaller types go through f32, which must not round first: an inexact one is made odd */
        b = (b - (fabs((double)f) > fabs(d))) | 1;
    }
    *bits = f8 ? kl_convert_nan(e, b) : kl_convert(e, KL_f32, b);
    double back = kl_elem_double(e, *bits);
    return isnan(d) || (isinf(d) ? isinf(back) : isfinite(back));
}

double kl_elem_double(enum kl_elem e, uint64_t bits)
{
    switch (e) {
    case KL_f16: return (double)kl_f16_to_f32((uint16_t)bits);
    case KL_bf16: return (double)kl_bf16_to_f32((uint16_t)bits);
    case KL_f8e4m3: return (double)kl_f32_of_f8e4m3((uint8_t)bits);
    case KL_f8e5m2: return (double)kl_f32_of_f8e5m2((uint8_t)bits);
    case KL_f32: return (double)kl_bits_f32(bits);
    case KL_f64: return kl_bits_f64(bits);
    case KL_u64: return (double)bits;
    default: return (double)(int64_t)bits;
    }
}
