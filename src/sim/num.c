/* num.c - see num.h */
#include "sim/num.h"

const struct sim_format kl_sim_f16 = {11, 5, -14, 15}, kl_sim_bf16 = {8, 8, -126, 127},
                        kl_sim_f32 = {24, 8, -126, 127}, kl_sim_f64 = {53, 11, -1022, 1023};

uint64_t kl_sim_round(const struct sim_format *f, bool neg, uint64_t m, int e, bool sticky,
                      int mode)
{
    uint64_t sign = (uint64_t)neg << (f->p - 1 + f->ebits);
    uint64_t inf = ((UINT64_C(1) << f->ebits) - 1) << (f->p - 1);
    if (!m && !sticky)
        return sign;
    if (!m)
        m = 1, e -= 64; /* a little more than nothing: only the rounding mode matters */
    int lz = __builtin_clzll(m);
    m <<= lz;
    int top = e - lz + 63; /* value = 1.xxx * 2^top */
    bool sub = top < f->emin;
    int64_t drop = 64 - f->p + (sub ? (int64_t)f->emin - top : 0);
    uint64_t keep = drop < 64 ? m >> drop : 0;
    uint64_t rest = drop < 64 ? m << (64 - drop) : drop == 64 ? m : 1;
    bool some = rest || sticky, up = false;
    uint64_t half = UINT64_C(1) << 63;
    if (mode == RND_N)
        up = drop <= 64 && (rest > half || (rest == half && (sticky || keep & 1)));
    else if (mode == RND_NA)
        up = drop <= 64 && rest >= half;
    else if (mode == RND_P || mode == RND_M)
        up = some && neg == (mode == RND_M);
    uint64_t bits = keep + up;
    if (!sub)
        bits += (uint64_t)(top - f->emin) << (f->p - 1);
    if (top > f->emax || bits >= inf) {
        bool to_inf =
            mode == RND_N || mode == RND_NA || (mode == RND_P && !neg) || (mode == RND_M && neg);
        bits = to_inf ? inf : inf - 1;
    }
    return sign | bits;
}

uint64_t kl_sim_from_double(const struct sim_format *f, double d, int mode)
{
    uint64_t b = kl_f64_bits(d), m = b & ((UINT64_C(1) << 52) - 1);
    int ex = (int)(b >> 52 & 2047);
    bool neg = b >> 63;
    if (ex == 2047) {
        uint64_t inf = ((UINT64_C(1) << f->ebits) - 1) << (f->p - 1);
        return inf | (uint64_t)neg << (f->p - 1 + f->ebits);
    }
    if (ex)
        m |= UINT64_C(1) << 52;
    return kl_sim_round(f, neg, m, (ex ? ex : 1) - 1075, false, mode);
}

double kl_sim_add_odd(double x, double y)
{
    double s = x + y;
    if (!isfinite(s))
        return s;
    double z = s - x, err = (x - (s - z)) + (y - z);
    if (err == 0)
        return s;
    /* cut towards zero, then set the last bit */
    uint64_t b = kl_f64_bits(s);
    if ((err > 0) != (s > 0))
        b--;
    return kl_bits_f64(b | 1);
}

/* clang-format off */
#define MINMAX(T, SUF, BITS, UNBITS, NF)                                                           \
    T kl_sim_min##SUF(T a, T b, bool nan)                                                          \
    {                                                                                              \
        if (a != a || b != b)                                                                      \
            return nan || (a != a && b != b) ? NF(a + b) : a != a ? b : a;                         \
        return a == b ? UNBITS(BITS(a) | BITS(b)) : a < b ? a : b;                                 \
    }                                                                                              \
    T kl_sim_max##SUF(T a, T b, bool nan)                                                          \
    {                                                                                              \
        if (a != a || b != b)                                                                      \
            return nan || (a != a && b != b) ? NF(a + b) : a != a ? b : a;                         \
        return a == b ? UNBITS(BITS(a) & BITS(b)) : a > b ? a : b;                                 \
    }
MINMAX(float, f, kl_f32_bits, kl_bits_f32, sim_nf)
MINMAX(double, d, kl_f64_bits, kl_bits_f64, sim_nd)
/* clang-format on */

static uint16_t minmaxh(uint16_t a, uint16_t b, bool nan, bool bf, bool max)
{
    float x = bf ? kl_bf16_to_f32(a) : kl_f16_to_f32(a);
    float y = bf ? kl_bf16_to_f32(b) : kl_f16_to_f32(b);
    if (x != x || y != y)
        return nan || (x != x && y != y) ? 0x7fff : x != x ? b : a;
    if (x == y) /* the same number, or zeros of two signs */
        return max ? a & b : a | b;
    return (x < y) == max ? b : a;
}
uint16_t kl_sim_minh(uint16_t a, uint16_t b, bool nan, bool bf)
{
    return minmaxh(a, b, nan, bf, false);
}
uint16_t kl_sim_maxh(uint16_t a, uint16_t b, bool nan, bool bf)
{
    return minmaxh(a, b, nan, bf, true);
}

uint32_t kl_sim_prmt(uint32_t a, uint32_t b, uint32_t c, uint32_t mode)
{
    uint64_t both = (uint64_t)b << 32 | a;
    uint32_t r = 0, n = c & 3;
    if (mode == PRMT_NONE && !(c & 0x8888)) {
        for (uint32_t k = 0; k < 4; k++)
            r |= ((uint32_t)(both >> (8 * (c >> (4 * k) & 7))) & 255) << (8 * k);
        return r;
    }
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t sel = 0;
        switch (mode) {
        case PRMT_NONE: sel = c >> (4 * k) & 15; break;
        case PRMT_F4E: sel = n + k; break;
        case PRMT_B4E: sel = (n - k) & 7; break;
        case PRMT_RC8: sel = n; break;
        case PRMT_ECL: sel = k > n ? k : n; break;
        case PRMT_ECR: sel = k < n ? k : n; break;
        default: sel = (n & 1) * 2 + (k & 1); break;
        }
        uint32_t byte = (uint32_t)(both >> (8 * (sel & 7))) & 255;
        if (mode == PRMT_NONE && sel & 8) /* the byte's sign, eight times */
            byte = byte & 128 ? 255 : 0;
        r |= byte << (8 * k);
    }
    return r;
}

uint64_t kl_sim_bfe(uint64_t a, uint32_t pos, uint32_t len, int width, bool sign)
{
    pos &= 255, len &= 255;
    uint32_t top = (uint32_t)width - 1;
    bool fill = false;
    if (sign && len)
        fill = a >> (pos + len - 1 < top ? pos + len - 1 : top) & 1;
    uint64_t r = pos <= top ? a >> pos : 0, bits = pos <= top ? top + 1 - pos : 0;
    if (len < bits)
        bits = len;
    uint64_t low = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    return (r & low) | (fill ? ~low : 0);
}

uint64_t kl_sim_bfi(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, int width)
{
    pos &= 255, len &= 255;
    if (pos >= (uint32_t)width || !len)
        return b;
    uint64_t low = len >= 64 ? UINT64_MAX : (UINT64_C(1) << len) - 1;
    return (b & ~(low << pos)) | (a & low) << pos;
}

uint32_t kl_sim_bfind(uint64_t a, int width, bool sign, bool shift)
{
    if (sign && a >> (width - 1) & 1)
        a = ~a;
    if (width == 32)
        a &= UINT32_MAX;
    if (!a)
        return UINT32_MAX;
    uint32_t bit = 63u - (uint32_t)__builtin_clzll(a);
    return shift ? (uint32_t)width - 1 - bit : bit;
}

uint64_t kl_sim_mulhi_u64(uint64_t a, uint64_t b)
{
    uint64_t al = a & UINT32_MAX, ah = a >> 32, bl = b & UINT32_MAX, bh = b >> 32;
    uint64_t mid = ah * bl + (al * bl >> 32), mid2 = al * bh + (mid & UINT32_MAX);
    return ah * bh + (mid >> 32) + (mid2 >> 32);
}

int64_t kl_sim_mulhi_s64(int64_t a, int64_t b)
{
    uint64_t r = kl_sim_mulhi_u64((uint64_t)a, (uint64_t)b);
    r -= a < 0 ? (uint64_t)b : 0;
    r -= b < 0 ? (uint64_t)a : 0;
    return (int64_t)r;
}

uint64_t kl_sim_brev(uint64_t a, int width)
{
    uint64_t r = 0;
    for (int k = 0; k < width; k++)
        r |= (a >> k & 1) << (width - 1 - k);
    return r;
}

int32_t kl_sim_sat32(int64_t v)
{
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}
