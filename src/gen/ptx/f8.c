/* f8.c - 8-bit floats: the steps of base/f8.h as PTX.
 *
 * From sm_90 on, cvt converts two at a time; it saturates, and its one NaN is 0x7f.  Older targets
 * and cvt_nan take the same bits by integer steps.  f8e5m2 is the upper half of an f16, which
 * every target converts. */
#include "gen/ptx/ptx.h"

enum { DIRECT = 90 };

bool kl_px_has_f8(const struct pgen *g)
{
    return g->o->arch >= DIRECT;
}

opnd kl_px_f32_of_f8(struct pgen *g, enum kl_elem from, opnd x)
{
    x = kl_px_inreg(g, CL_B32, x);
    if (from == KL_f8e5m2) {
        opnd h = kl_px_set(g, CL_B32, "shl.b32 $, %s, 8", x);
        h = kl_px_set(g, CL_B16, "cvt.u16.u32 $, %s", h);
        return kl_px_set(g, CL_F32, "cvt.f32.f16 $, %s", h);
    }
    if (kl_px_has_f8(g)) {
        opnd h = kl_px_set(g, CL_B16, "cvt.u16.u32 $, %s", x);
        opnd two = kl_px_set(g, CL_B32, "cvt.rn.f16x2.e4m3x2 $, %s", h);
        h = kl_px_set(g, CL_B16, "cvt.u16.u32 $, %s", two);
        return kl_px_set(g, CL_F32, "cvt.f32.f16 $, %s", h);
    }
    opnd m = kl_px_set(g, CL_B32, "and.b32 $, %s, 127", x);
    opnd nan = kl_px_set(g, CL_P, "setp.eq.u32 $, %s, 127", m);
    m = kl_px_set(g, CL_B32, "shl.b32 $, %s, 20", m);
    opnd f = kl_px_set(g, CL_F32, "mov.b32 $, %s", m);
    f = kl_px_set(g, CL_F32, "mul.rn.f32 $, %s, 0f7B800000", f); /* 2^120 */
    m = kl_px_set(g, CL_B32, "mov.b32 $, %s", f);
    m = kl_px_set(g, CL_B32, "selp.b32 $, 2143289344, %s, %s", m, nan);
    opnd sign = kl_px_set(g, CL_B32, "and.b32 $, %s, 128", x);
    sign = kl_px_set(g, CL_B32, "shl.b32 $, %s, 24", sign);
    m = kl_px_set(g, CL_B32, "or.b32 $, %s, %s", m, sign);
    return kl_px_set(g, CL_F32, "mov.b32 $, %s", m);
}

void kl_px_f8_pair(struct pgen *g, enum kl_elem to, opnd lo, opnd hi, opnd out[2])
{
    opnd h = kl_px_set(g, CL_B16, "cvt.rn.satfinite.%s.f32 $, %s, %s",
                       to == KL_f8e4m3 ? "e4m3x2" : "e5m2x2", hi, lo);
    opnd two = kl_px_set(g, CL_B32, "cvt.u32.u16 $, %s", h);
    out[0] = kl_px_set(g, CL_B32, "and.b32 $, %s, 255", two);
    out[1] = kl_px_set(g, CL_B32, "shr.u32 $, %s, 8", two);
}

/* x is in a register. */
opnd kl_px_f8_of_f32(struct pgen *g, enum kl_elem to, bool nan, opnd x)
{
    bool e4 = to == KL_f8e4m3;
    if (!nan && kl_px_has_f8(g)) {
        opnd h = kl_px_set(g, CL_B16, "cvt.rn.satfinite.%s.f32 $, 0f00000000, %s",
                           e4 ? "e4m3x2" : "e5m2x2", x);
        return kl_px_set(g, CL_B32, "cvt.u32.u16 $, %s", h);
    }
    uint32_t drop = e4 ? 20 : 21, bias = e4 ? 7 : 15;
    uint32_t above = e4 ? (nan ? 0x43f00000 : 0x43e00000) : (nan ? 0x47800000 : 0x47600000);
    uint32_t unit = (drop - bias + 128) << 23;
    opnd b = kl_px_set(g, CL_B32, "mov.b32 $, %s", x);
    opnd a = kl_px_set(g, CL_B32, "and.b32 $, %s, 2147483647", b);
    opnd c = kl_px_set(g, CL_B32, "min.u32 $, %s, %u", a, above);
    opnd odd = kl_px_set(g, CL_B32, "bfe.u32 $, %s, %u, 1", c, drop);
    opnd n = kl_px_set(g, CL_B32, "add.u32 $, %s, %s", c, odd);
    n = kl_px_set(g, CL_B32, "sub.u32 $, %s, %u", n, ((127 - bias) << 23) - (1u << (drop - 1)) + 1);
    n = kl_px_set(g, CL_B32, "shr.u32 $, %s, %u", n, drop);
    opnd f = kl_px_set(g, CL_F32, "mov.b32 $, %s", c);
    f = kl_px_set(g, CL_F32, "add.rn.f32 $, %s, 0f%08X", f, unit);
    opnd s = kl_px_set(g, CL_B32, "mov.b32 $, %s", f);
    s = kl_px_set(g, CL_B32, "sub.u32 $, %s, %u", s, unit);
    opnd small = kl_px_set(g, CL_P, "setp.lt.u32 $, %s, %u", c, (128 - bias) << 23);
    opnd r = kl_px_set(g, CL_B32, "selp.b32 $, %s, %s, %s", s, n, small);
    opnd bad = kl_px_set(g, CL_P, "setp.gt.u32 $, %s, 2139095040", a);
    r = kl_px_set(g, CL_B32, "selp.b32 $, 127, %s, %s", r, bad);
    opnd sign = kl_px_set(g, CL_B32, "shr.u32 $, %s, 24", b);
    sign = kl_px_set(g, CL_B32, "and.b32 $, %s, 128", sign);
    return kl_px_set(g, CL_B32, "or.b32 $, %s, %s", r, sign);
}
