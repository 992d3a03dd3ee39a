/* pow.c - how far pow is from the true values, on pairs.
 *
 * Pairs of any bits seldom have a finite result, so most exponents are chosen for the base: such
 * that the result lies anywhere in the range (also where it is subnormal or overflows), within
 * 2^-20..2^20, or near 1; bases are of any size, or near 1.  The cases of C's Annex F are compared with
 * the system's pow on all pairs of special values. */
#include "ulp.h"

#include "base/math.h"

#include <stdio.h>
#include <stdlib.h>

enum { F32_PAIRS = 40000000, F64_PAIRS = 4000000, LEAST = 200000 };

static const struct bound {
    bool wide;
    double ulp, x, y;
} bounds[] = {
#define BOUND(name, elem, ulp, at)
#define BOUND2(name, elem, ulp, x, y) {#elem[1] == '6', ulp, x, y},
#include "bounds.def"
};

static double err(bool wide, double x, double y)
{
    static mpfr_t mx, my, ref;
    static bool ready;
    if (!wide)
        return err32(kl_pow_f32((float)x, (float)y), pow((double)(float)x, (double)(float)y));
    if (!ready) {
        mpfr_inits2(53, mx, my, (mpfr_ptr)0);
        mpfr_init2(ref, 120);
        ready = true;
    }
    mpfr_set_d(mx, x, MPFR_RNDN);
    mpfr_set_d(my, y, MPFR_RNDN);
    mpfr_pow(ref, mx, my, MPFR_RNDN);
    return err64_of(kl_pow_f64(x, y), ref);
}

static double any_bits(bool wide, uint64_t r)
{
    return wide ? kl_bits_f64(r) : (double)kl_bits_f32(r >> 32);
}

static void draw(bool wide, uint64_t i, uint64_t *seed, double *x, double *y)
{
    static const double range[4] = {0, 160, 20, 1};
    uint64_t a = next_random(seed), b = next_random(seed);
    double u = (double)(int64_t)b * 0x1p-63;
    *x = any_bits(wide, a);
    *y = any_bits(wide, b);
    if (i % 4 == 0)
        return;
    *x = fabs(*x);
    if (i & 4)
        *x = 1 + (double)(int64_t)a * (i & 8 ? 0x1p-64 : 0x1p-74);
    double scale = i % 4 == 1 && wide ? 1100 : range[i % 4];
    *y = u * scale / log2(*x);
    if (!wide)
        *x = (double)(float)*x, *y = (double)(float)*y;
}

static bool special_pairs(bool wide)
{
    static const double v[] = {0.0, -0.0, 0.5, -0.5, 1, -1, 2, -2, 3, -3, 1.5, -1.5, 0x1p24, -0x1p24, 0x1.000002p24,
                               0x1.fffffep23, -0x1.fffffep23, 0x1p53, -0x1p52 - 1, 0x1p-149, -0x1p-149, 0x1p-126,
                               0x1p-1074, 0x1p1023, 0x1.fffffep127, 0x1.fffffep-1, 0x1.000002p0,
                               (double)INFINITY, -(double)INFINITY, (double)NAN, 10, 0.1, 127, 128, -150, 1024, -1075};
    enum { N = sizeof v / sizeof *v };
    int bad = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double e = err(wide, v[i], v[j]);
            bad += !(e <= 2);
            if (!(e <= 2))
                printf("FAIL f%d pow(%a, %a): %g ULP\n", wide ? 64 : 32, v[i], v[j], e);
        }
    for (int n = -149; n < 128; n++)
        if (kl_pow_f32(2, (float)n) != ldexpf(1, n) || kl_pow_f64(2, n) != ldexp(1, n))
            printf("FAIL pow(2, %d) is not exact\n", n), bad++;
    return !bad;
}

bool check_pow(uint64_t step, bool wide, bool measure)
{
    uint64_t n = (wide ? F64_PAIRS : F32_PAIRS) / step, seed = 7;
    double worst = -1, wx = 0, wy = 0;
    if (n < LEAST)
        n = LEAST;
    for (uint64_t i = 0; i < n; i++) {
        double x, y;
        draw(wide, i, &seed, &x, &y);
        double e = err(wide, x, y);
        if (e > worst)
            worst = e, wx = x, wy = y;
    }
    if (measure) {
        printf("BOUND2(pow, f%d, %.3f, %a, %a)\n", wide ? 64 : 32, ceil(worst * 1000) / 1000, wx, wy);
        return true;
    }
    bool ok = false;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const struct bound *b = &bounds[i];
        if (b->wide != wide)
            continue;
        double at = err(wide, b->x, b->y);
        ok = worst <= b->ulp && at <= b->ulp && at > b->ulp - 0.002;
        printf("%s pow     f%d  max %.3f ULP at %a %a  published %.3f, shown as %.3f\n", ok ? "ok  " : "FAIL",
               wide ? 64 : 32, worst, wx, wy, b->ulp, at);
    }
    return special_pairs(wide) && ok;
}
