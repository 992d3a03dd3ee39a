/* fmod.c - the floating-point remainder, with a loop for each element.
 *
 * With mantissas ma, mb and exponents ea >= eb, abs(x) mod abs(y) is (ma 2^(ea - eb) mod mb) 2^eb:
 * as many bits of the exponents' difference at a time as fit above a mantissa (8, of f64 11), in
 * integers, so that it is exact.  One or two rounds where the quotient is small. */
#include "gen/ptx/ptx.h"

/* How many bits x has above its mantissa field, at least 1; and the mantissa with its hidden bit. */
static void take_apart(struct pgen *g, const char *n, enum cls c, uint32_t m, opnd x, opnd *exp,
                       opnd *man)
{
    const char *hidden = kl_px_fmt(g, "%llu", 1ull << m);
    opnd e = kl_px_set(g, c, "shr.u%s $, %s, %u", n, x, m);
    *exp = kl_px_set(g, c, "max.u%s $, %s, 1", n, e);
    opnd f = kl_px_set(g, c, "and.b%s $, %s, %llu", n, x, (1ull << m) - 1);
    opnd sub = kl_px_set(g, CL_P, "setp.eq.u%s $, %s, 0", n, e);
    opnd h = kl_px_set(g, c, "selp.b%s $, 0, %s, %s", n, hidden, sub);
    *man = kl_px_set(g, c, "or.b%s $, %s, %s", n, f, h);
}

static opnd as_count(struct pgen *g, bool w, opnd x)
{
    return w ? kl_px_set(g, CL_B32, "cvt.u32.u64 $, %s", x) : x;
}

opnd kl_px_fmod(struct pgen *g, enum kl_elem e, opnd x, opnd y)
{
    bool w = e == KL_f64;
    const char *n = w ? "64" : "32";
    enum cls c = w ? CL_B64 : CL_B32;
    uint32_t m = w ? 52 : 23, room = w ? 11 : 8;
    unsigned long long top = 1ull << (w ? 63 : 31), inf = top - (1ull << m);
    opnd xb = kl_px_set(g, c, "mov.b%s $, %s", n, kl_px_inreg(g, kl_px_cls(e), x));
    opnd yb = kl_px_set(g, c, "mov.b%s $, %s", n, kl_px_inreg(g, kl_px_cls(e), y));
    opnd a = kl_px_set(g, c, "and.b%s $, %s, %llu", n, xb, top - 1);
    opnd b = kl_px_set(g, c, "and.b%s $, %s, %llu", n, yb, top - 1);
    opnd sign = kl_px_set(g, c, "and.b%s $, %s, %llu", n, xb, top);
    opnd out = kl_px_set(g, c, "mov.b%s $, %s", n, xb);
    uint32_t done = kl_px_new_label(g), nan = kl_px_new_label(g), loop = kl_px_new_label(g),
             end = kl_px_new_label(g);
    /* infinite or NaN x, NaN y, y = 0 */
    opnd p = kl_px_set(g, CL_P, "setp.ge.u%s $, %s, %llu", n, a, inf);
    p = kl_px_set(g, CL_P, "setp.gt.or.u%s $, %s, %llu, %s", n, b, inf, p);
    p = kl_px_set(g, CL_P, "setp.eq.or.u%s $, %s, 0, %s", n, b, p);
    kl_px(g, "@%s bra $L%u", p, nan);
    kl_px(g, "@%s bra $L%u", kl_px_set(g, CL_P, "setp.lt.u%s $, %s, %s", n, a, b), done);

    opnd ea, eb, ma, mb;
    take_apart(g, n, c, m, a, &ea, &ma);
    take_apart(g, n, c, m, b, &eb, &mb);
    opnd r = kl_px_set(g, c, "rem.u%s $, %s, %s", n, ma, mb);
    opnd d = kl_px_set(g, c, "sub.u%s $, %s, %s", n, ea, eb);
    kl_px_label(g, loop);
    p = kl_px_set(g, CL_P, "setp.eq.u%s $, %s, 0", n, d);
    p = kl_px_set(g, CL_P, "setp.eq.or.u%s $, %s, 0, %s", n, r, p);
    kl_px(g, "@%s bra $L%u", p, end);
    opnd k = kl_px_set(g, c, "min.u%s $, %s, %u", n, d, room);
    kl_px(g, "sub.u%s %s, %s, %s", n, d, d, k);
    opnd s = kl_px_set(g, c, "shl.b%s $, %s, %s", n, r, as_count(g, w, k));
    kl_px(g, "rem.u%s %s, %s, %s", n, r, s, mb);
    kl_px(g, "bra $L%u", loop);
    kl_px_label(g, end);
    kl_px(g, "mov.b%s %s, %s", n, out, sign);
    kl_px(g, "@%s bra $L%u", kl_px_set(g, CL_P, "setp.eq.u%s $, %s, 0", n, r), done);

    /* as a float: shifted up as far as the exponent goes; the hidden bit adds one to it */
    opnd z = kl_px_set(g, CL_B32, "clz.b%s $, %s", n, r);
    z = kl_px_set(g, CL_B32, "sub.u32 $, %s, %u", z, room);
    eb = kl_px_set(g, CL_B32, "sub.u32 $, %s, 1", as_count(g, w, eb));
    z = kl_px_set(g, CL_B32, "min.u32 $, %s, %s", z, eb);
    opnd field = kl_px_set(g, CL_B32, "sub.u32 $, %s, %s", eb, z);
    if (w)
        field = kl_px_set(g, c, "cvt.u64.u32 $, %s", field);
    field = kl_px_set(g, c, "shl.b%s $, %s, %u", n, field, m);
    r = kl_px_set(g, c, "shl.b%s $, %s, %s", n, r, z);
    r = kl_px_set(g, c, "add.u%s $, %s, %s", n, r, field);
    kl_px(g, "or.b%s %s, %s, %s", n, out, r, sign);
    kl_px(g, "bra $L%u", done);
    kl_px_label(g, nan);
    kl_px(g, "mov.b%s %s, %llu", n, out, inf | 1ull << (m - 1));
    kl_px_label(g, done);
    return kl_px_set(g, kl_px_cls(e), "mov.b%s $, %s", n, out);
}
