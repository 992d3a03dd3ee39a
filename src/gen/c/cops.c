/* cops.c - the back-end table, and how types and constants are written in C. */
#include "gen/c/gen.h"

const struct cop kl_cops[KL_NOP] = {
#define CEW(name, cost_, i, f) [KL_OP_##name] = {C_INLINE, cost_, i, f},
#define COP(name, how_, cost_) [KL_OP_##name] = {C_##how_, cost_, NULL, NULL},
#include "gen/c/cops.def"
};

/* Element types: in memory and of a variable. */
/* clang-format off */
static const struct {
    const char *mem, *local;
} types[KL_NELEM] = {
    [KL_bool] = {"u8", "b1"},  [KL_i8] = {"i8", "i8"},     [KL_i16] = {"i16", "i16"},
    [KL_i32] = {"i32", "i32"}, [KL_i64] = {"i64", "i64"},  [KL_u8] = {"u8", "u8"},
    [KL_u16] = {"u16", "u16"}, [KL_u32] = {"u32", "u32"},  [KL_u64] = {"u64", "u64"},
    [KL_f16] = {"u16", "u16"}, [KL_bf16] = {"u16", "u16"}, [KL_f32] = {"f32", "f32"},
    [KL_f64] = {"f64", "f64"},  [KL_f8e4m3] = {"u8", "u8"}, [KL_f8e5m2] = {"u8", "u8"},
};
/* clang-format on */

const char *kl_c_type(enum kl_elem e)
{
    return types[e].mem;
}

const char *kl_c_local(enum kl_elem e)
{
    return types[e].local;
}

/* A finite double exactly: small multiples of 1/8 in decimal, others in hexadecimal.  Written
 * by hand, as printf follows the locale. */
static const char *float_text(kl_arena *a, double x, const char *suffix)
{
    uint64_t bits = kl_f64_bits(x), man = bits & ((UINT64_C(1) << 52) - 1);
    int exp = (int)(bits >> 52 & 2047) - 1023, digits = 13;
    bool neg = bits >> 63;
    double m = neg ? -x : x;
    const char *s;
    if (m < 1e6 && m * 8 == (double)(uint64_t)(m * 8)) {
        uint64_t eighths = (uint64_t)(m * 8);
        static const char *const part[] = {"0", "125", "25", "375", "5", "625", "75", "875"};
        s = kl_printf(a, "%llu.%s%s", (unsigned long long)(eighths / 8), part[eighths % 8], suffix);
    } else {
        int lead = exp != -1023;
        exp += !lead;
        for (; digits > 1 && !(man & 15); digits--)
            man >>= 4;
        s = kl_printf(a, "0x%d.%0*llxp%d%s", lead, digits, (unsigned long long)man, exp, suffix);
    }
    return neg ? kl_printf(a, "(-%s)", s) : s;
}

const char *kl_c_const(kl_arena *a, enum kl_elem e, uint64_t bits)
{
    switch (e) {
    case KL_f32: {
        double d = (double)kl_bits_f32(bits);
        if (d != d)
            return kl_printf(a, "kl_bitcast_f32_u32(0x%xu)", (unsigned)bits);
        if (d - d != 0)
            return d < 0 ? "(-KL_INF32)" : "KL_INF32";
        return float_text(a, d, "f");
    }
    case KL_f64: {
        double d = kl_bits_f64(bits);
        if (d != d)
            return kl_printf(a, "kl_bitcast_f64_u64(0x%llxull)", (unsigned long long)bits);
        if (d - d != 0)
            return d < 0 ? "(-KL_INF64)" : "KL_INF64";
        return float_text(a, d, "");
    }
    case KL_i64:
        if (bits == (uint64_t)INT64_MIN)
            return "(-0x7fffffffffffffffll - 1)";
        if ((int64_t)bits >= INT32_MIN && (int64_t)bits <= INT32_MAX) /* beside an i64 */
            return kl_printf(a, (int64_t)bits < 0 ? "(%lld)" : "%lld", (long long)bits);
        return kl_printf(a, (int64_t)bits < 0 ? "(%lldll)" : "%lldll", (long long)bits);
    case KL_i32:
        if ((int64_t)bits == INT32_MIN)
            return "(-0x7fffffff - 1)";
        return kl_printf(a, (int64_t)bits < 0 ? "(%d)" : "%d", (int)(int64_t)bits);
    case KL_u64: return kl_printf(a, "%lluull", (unsigned long long)bits);
    case KL_u32: return kl_printf(a, "%uu", (unsigned)bits);
    case KL_f16:
    case KL_bf16: return kl_printf(a, "0x%04x", (unsigned)bits);
    case KL_f8e4m3:
    case KL_f8e5m2: return kl_printf(a, "0x%02x", (unsigned)bits);
    default: return kl_printf(a, (int64_t)bits < 0 ? "(%d)" : "%d", (int)(int64_t)bits);
    }
}

const char *kl_c_neutral(kl_arena *a, uint16_t op, enum kl_elem e)
{
    static const struct {
        uint64_t lo, hi;
    } range[KL_NELEM] = {
        [KL_i32] = {(uint64_t)(int64_t)INT32_MIN, INT32_MAX},
        [KL_i64] = {(uint64_t)INT64_MIN, INT64_MAX},
        [KL_u32] = {0, UINT32_MAX},
        [KL_u64] = {0, UINT64_MAX},
        [KL_f32] = {0xff800000, 0x7f800000},
        [KL_f64] = {0xfff0000000000000, 0x7ff0000000000000},
    };
    switch (op) {
    case KL_OP_max: return kl_c_const(a, e, range[e].lo);
    case KL_OP_min: return kl_c_const(a, e, range[e].hi);
    case KL_OP_fmax:
    case KL_OP_fmin: /* a NaN loses against everything */
        return kl_c_const(a, e, e == KL_f32 ? 0x7fc00000 : 0x7ff8000000000000);
    case KL_OP_mul: return kl_c_const(a, e, 1);
    case KL_OP_and: return e == KL_bool ? "1" : kl_c_const(a, e, kl_canon(e, UINT64_MAX));
    default: return kl_c_const(a, e, 0);
    }
}
