/* guard.c - tests of the range of a thread's elements, and division behind one.
 *
 * Functions and quotients have a short form for the middle of their range.  Where all elements of
 * a thread lie there it gives the same bits; the test is made once for all of them, and the full
 * form stands behind a branch.  Where the bounds of the values are known (ir/range.h) there is neither. */
#include "gen/ptx/ptx.h"

static opnd f32(struct pgen *g, float v)
{
    return kl_px_imm(g, KL_f32, kl_f32_bits(v));
}

/* Predicate: lo <= abs(x) <= hi for all x (of x itself if is_signed); false with a NaN. */
opnd kl_px_within(struct pgen *g, const opnd *x, uint32_t n, float lo, float hi, bool is_signed)
{
    opnd most = "", least = "";
    for (uint32_t i = 0; i < n; i++) {
        opnd a = kl_px_inreg(g, CL_F32, x[i]);
        if (!is_signed)
            a = kl_px_set(g, CL_F32, "abs.f32 $, %s", a);
        most = i ? kl_px_set(g, CL_F32, "max.NaN.f32 $, %s, %s", most, a) : a;
        if (lo > 0)
            least = i ? kl_px_set(g, CL_F32, "min.NaN.f32 $, %s, %s", least, a) : a;
    }
    opnd p = kl_px_set(g, CL_P, "setp.le.f32 $, %s, %s", most, f32(g, hi));
    return lo > 0 ? kl_px_set(g, CL_P, "setp.ge.and.f32 $, %s, %s, %s", least, f32(g, lo), p) : p;
}

/* Predicate: some x lies outside 2^[-63, 64), whatever its sign.  bits - (64 << 23) has bit 30 clear exactly
 * if the exponent field is one of the 128 from 64 on; so zeros, subnormals, infinities and NaN are
 * outside; zeros: +0 is not. */
static opnd outside(struct pgen *g, const opnd *x, uint32_t n, bool zeros)
{
    opnd acc = "";
    for (uint32_t i = 0; i < n; i++) {
        opnd b = kl_px_set(g, CL_B32, "mov.b32 $, %s", kl_px_inreg(g, CL_F32, x[i]));
        if (zeros) {
            opnd z = kl_px_set(g, CL_P, "setp.eq.u32 $, %s, 0", b);
            b = kl_px_set(g, CL_B32, "selp.b32 $, %u, %s, %s", 64u << 23, b, z);
        }
        b = kl_px_set(g, CL_B32, "sub.s32 $, %s, %u", b, 64u << 23);
        acc = i ? kl_px_set(g, CL_B32, "or.b32 $, %s, %s", acc, b) : b;
    }
    acc = kl_px_set(g, CL_B32, "and.b32 $, %s, 1073741824", acc);
    return kl_px_set(g, CL_P, "setp.ne.u32 $, %s, 0", acc);
}

/* Division in the middle of the range: a reciprocal that is right to a bit, then two corrections
 * of the quotient.  Divisors within 2^[-31, 32], dividends within 2^[-90, 64]: no step underflows.
 * rec, if not NULL, keeps what depends on the divisor alone: its negative and its reciprocal. */
opnd kl_px_short_div(struct pgen *g, opnd x, opnd y, opnd *rec)
{
    opnd own[2] = {NULL, NULL}, *k = rec ? rec : own;
    x = kl_px_inreg(g, CL_F32, x);
    if (!k[0]) {
        opnd d = kl_px_inreg(g, CL_F32, y);
        k[0] = kl_px_set(g, CL_F32, "neg.f32 $, %s", d);
        k[1] = kl_px_set(g, CL_F32, "rcp.approx.ftz.f32 $, %s", d);
        opnd e = kl_px_set(g, CL_F32, "fma.rn.f32 $, %s, %s, 0f3F800000", k[0], k[1]);
        k[1] = kl_px_set(g, CL_F32, "fma.rn.f32 $, %s, %s, %s", k[1], e, k[1]);
    }
    opnd q = kl_px_set(g, CL_F32, "mul.rn.f32 $, %s, %s", x, k[1]);
    for (int i = 0; i < 2; i++) {
        opnd d = kl_px_set(g, CL_F32, "fma.rn.f32 $, %s, %s, %s", k[0], q, x);
        q = kl_px_set(g, CL_F32, "fma.rn.f32 $, %s, %s, %s", d, k[1], q);
    }
    return q;
}

/* 1 / y for y as above.  From a reciprocal within one ULP of the true value one step gives the
 * nearest number, unless the fraction of y is all ones and the reciprocal was rounded down; the
 * assembler's own 1 / y relies on the same steps.  tests/run/reciprocal.kiln tries every fraction. */
opnd kl_px_short_rcp(struct pgen *g, opnd y)
{
    opnd d = kl_px_inreg(g, CL_F32, y), nd = kl_px_set(g, CL_F32, "neg.f32 $, %s", d);
    opnd q = kl_px_set(g, CL_F32, "rcp.approx.ftz.f32 $, %s", d);
    opnd e = kl_px_set(g, CL_F32, "fma.rn.f32 $, %s, %s, 0f3F800000", nd, q);
    return kl_px_set(g, CL_F32, "fma.rn.f32 $, %s, %s, %s", q, e, q);
}

static void brief(struct pgen *g, const opnd *x, const opnd *y, struct divide how, opnd *r, uint32_t n)
{
    opnd rec[2] = {NULL, NULL};
    for (uint32_t i = 0; i < n; i++) {
        r[i] = kl_px_reg(g, CL_F32);
        kl_px(g, "mov.f32 %s, %s", r[i],
              how.unit ? kl_px_short_rcp(g, y[i]) : kl_px_short_div(g, x[i], y[i], how.one ? rec : NULL));
    }
}

void kl_px_guarded_div(struct pgen *g, const opnd *x, const opnd *y, struct divide how, opnd *r,
                       uint32_t n)
{
    if (how.unit && how.tame) {
        brief(g, x, y, how, r, n);
        return;
    }
    opnd bad = how.unit ? NULL : outside(g, x, n, false);
    opnd mid = how.tame ? NULL : kl_px_within(g, y, how.one ? 1 : n, 0x1p-31f, 0x1p32f, false);
    uint32_t slow = kl_px_new_label(g), done = kl_px_new_label(g), mids = kl_px_new_label(g);
    if (bad) {
        opnd ok = kl_px_set(g, CL_P, "not.pred $, %s", bad);
        if (mid)
            ok = kl_px_set(g, CL_P, "and.pred $, %s, %s", mid, ok);
        /* a dividend of +0, as padding gives, comes out right too */
        ok = kl_px_set(g, CL_P, "vote.sync.all.pred $, %s, -1", ok);
        kl_px(g, "@%s bra $L%u", ok, mids);
        bad = outside(g, x, n, true);
    }
    if (mid)
        kl_px(g, "@!%s bra $L%u", mid, slow);
    if (bad)
        kl_px(g, "@%s bra $L%u", bad, slow);
    kl_px_label(g, mids);
    brief(g, x, y, how, r, n);
    kl_px(g, "bra $L%u", done);
    kl_px_label(g, slow);
    for (uint32_t i = 0; i < n; i++)
        kl_px(g, "div.rn.f32 %s, %s, %s", r[i], x[i], y[how.one ? 0 : i]);
    kl_px_label(g, done);
}

/* Divisors in the middle of the range: see kl_px_short_div. */
struct divide kl_px_divide(const struct pgen *g, kl_val v, bool one)
{
    struct kl_range x = g->range[kl_arg(g->f, v, 0).id], y = g->range[kl_arg(g->f, v, 1).id];
    y.nan = false; /* of a NaN the short form makes a NaN */
    bool tame = kl_range_within(y, 0x1p-31f, 0x1p32f) || kl_range_within(y, -0x1p32f, -0x1p-31f);
    return (struct divide){one, tame, kl_range_within(x, 1, 1)};
}
