/* ulp.c - how far the exact math functions are from the true values.
 *
 *   ulp [--sample N] [--threads 1|2] [--only NAME[.f32|.f64]] [--measure]
 *
 * f32: all 2^32 inputs, or each N-th, against libm in double in a stable form, whose own
 * error is below 2^-24 of an f32 ULP.  Functions whose libm takes long meet the f64 function of
 * the same name first, in vectors, and libm where they are farther from that than anything
 * before; the f64 functions have their own test below.  f64: random inputs and the neighbours of the places
 * where the functions change their form, against MPFR.  A NaN must give NaN, the sign of
 * zero counts, and the special values of a table below must come out exactly.
 *
 * bounds.def holds what docs/math.md publishes.  A larger error fails, and so does a
 * published worst input that does not show the published error.  --measure prints rows
 * for that file instead of comparing. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno") /* vectors, as the back end's code */
#endif
#include "ulp.h"

#include "base/math.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024, F64_RANDOM = 4000000, F64_NEAR = 40 };

/* clang-format off */

/* ---- functions and references ---- */

static double ref_sigmoid(double x)
{
    double e = exp(x < 0 ? x : -x);
    return (x < 0 ? e : 1) / (1 + e);
}
static double ref_rsqrt(double x) { return 1 / sqrt(x); }

#define MP(name, call) static void mp_##name(mpfr_t y, mpfr_t x) { call(y, x, MPFR_RNDN); }
MP(exp, mpfr_exp)
MP(exp2, mpfr_exp2)
MP(log, mpfr_log)
MP(tanh, mpfr_tanh)
MP(erf, mpfr_erf)
MP(erfc, mpfr_erfc)
MP(sin, mpfr_sin)
MP(cos, mpfr_cos)
MP(log2, mpfr_log2)
MP(log1p, mpfr_log1p)
MP(expm1, mpfr_expm1)
static void mp_round(mpfr_t y, mpfr_t x) { mpfr_round(y, x); }
static void mp_rsqrt(mpfr_t y, mpfr_t x) /* MPFR's own takes -0 for +0 */
{
    mpfr_sqrt(y, x, MPFR_RNDN);
    mpfr_ui_div(y, 1, y, MPFR_RNDN);
}
static void mp_sigmoid(mpfr_t y, mpfr_t x)
{
    mpfr_neg(y, x, MPFR_RNDN);
    mpfr_exp(y, y, MPFR_RNDN);
    mpfr_add_ui(y, y, 1, MPFR_RNDN);
    mpfr_ui_div(y, 1, y, MPFR_RNDN);
}

/* F(name, libm's double, MPFR, range in which f64 inputs are drawn evenly) */
#define FUNCTIONS(F)                             \
    F(exp,     exp,         mp_exp,     -747, 712)   \
    F(exp2,    exp2,        mp_exp2,    -1077, 1026) \
    F(log,     log,         mp_log,     0, 4)        \
    F(rsqrt,   ref_rsqrt,   mp_rsqrt,   0, 4)        \
    F(tanh,    tanh,        mp_tanh,    -20, 20)     \
    F(erf,     erf,         mp_erf,     -7, 7)       \
    F(erfc,    erfc,        mp_erfc,    -7, 28)      \
    F(sigmoid, ref_sigmoid, mp_sigmoid, -747, 40) \
    F(sin,     sin,         mp_sin,     -100, 100)   \
    F(cos,     cos,         mp_cos,     -100, 100)   \
    F(log2,    log2,        mp_log2,    0, 4)        \
    F(log1p,   log1p,       mp_log1p,   -1, 4)       \
    F(expm1,   expm1,       mp_expm1,   -40, 712)    \
    F(round,   round,       mp_round,   -100, 100)

/* fma as one instruction makes the sweep several times as fast; sweep32 asks for it. */
#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2,fma")))
#define HAVE_WIDE (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#define WIDE
#define HAVE_WIDE 1
#endif

#define F(name, ref, mp, lo, hi)                                       \
    WIDE static void wide32_##name(const float *x, float *y)           \
    {                                                                  \
        for (int i = 0; i < BLOCK; i++)                                \
            y[i] = kl_##name##_f32(x[i]);                              \
    }                                                                  \
    static void block32_##name(const float *x, float *y)               \
    {                                                                  \
        for (int i = 0; i < BLOCK; i++)                                \
            y[i] = kl_##name##_f32(x[i]);                              \
    }                                                                  \
    WIDE static void twin_##name(const float *x, double *r)            \
    {                                                                  \
        for (int i = 0; i < BLOCK; i++)                                \
            r[i] = kl_##name##_f64((double)x[i]);                      \
    }                                                                  \
    static double one32_##name(double x) { return (double)kl_##name##_f32((float)x); } \
    static double one64_##name(double x) { return kl_##name##_f64(x); }
FUNCTIONS(F)
#undef F

static const struct func {
    const char *name;
    void (*block)(const float *, float *), (*wide)(const float *, float *);
    void (*twin)(const float *, double *);
    double (*f32)(double), (*f64)(double), (*ref)(double);
    void (*mp)(mpfr_t, mpfr_t);
    double lo, hi;
} funcs[] = {
#define F(name, ref, mp, lo, hi) \
    {#name, block32_##name, wide32_##name, twin_##name, one32_##name, one64_##name, ref, mp, lo, hi},
    FUNCTIONS(F)
#undef F
};

static const struct bound {
    const char *name, *elem;
    double ulp, at;
} bounds[] = {
#define BOUND2(name, elem, ulp, x, y)
#define BOUND(name, elem, ulp, at) {#name, #elem, ulp, at},
#include "bounds.def"
};

/* Exact results in both types, where x and y exist in both. */
static const struct special { const char *name; double x, y; } specials[] = {
#define INF ((double)INFINITY)
#define NOT ((double)NAN)
    {"exp", -0.0, 1}, {"exp", 0.0, 1}, {"exp", -INF, 0}, {"exp", INF, INF}, {"exp", NOT, NOT},
    {"exp", 710, INF}, {"exp", 1e30, INF}, {"exp", -746, 0}, {"exp", -1e30, 0},
    {"exp2", -0.0, 1}, {"exp2", 1, 2}, {"exp2", -1, 0.5}, {"exp2", 127, 0x1p127},
    {"exp2", -126, 0x1p-126}, {"exp2", -149, 0x1p-149}, {"exp2", -1e30, 0}, {"exp2", 1e30, INF},
    {"exp2", 1024, INF}, {"exp2", -INF, 0}, {"exp2", INF, INF}, {"exp2", NOT, NOT},
    {"log", 1, 0}, {"log", 0.0, -INF}, {"log", -0.0, -INF}, {"log", -1, NOT}, {"log", -INF, NOT},
    {"log", -0x1p-140, NOT}, {"log", INF, INF}, {"log", NOT, NOT},
    {"rsqrt", 4, 0.5}, {"rsqrt", 0.0, INF}, {"rsqrt", -0.0, -INF}, {"rsqrt", -1, NOT},
    {"rsqrt", INF, 0}, {"rsqrt", NOT, NOT},
    {"tanh", 0.0, 0.0}, {"tanh", -0.0, -0.0}, {"tanh", 0x1p-140, 0x1p-140}, {"tanh", 20, 1},
    {"tanh", -20, -1}, {"tanh", INF, 1}, {"tanh", -INF, -1}, {"tanh", NOT, NOT},
    {"erf", 0.0, 0.0}, {"erf", -0.0, -0.0}, {"erf", 7, 1}, {"erf", -7, -1}, {"erf", INF, 1},
    {"erf", -INF, -1}, {"erf", NOT, NOT}, {"erf", 1e30, 1},
    {"erfc", 0.0, 1}, {"erfc", -0.0, 1}, {"erfc", 28, 0}, {"erfc", 1e30, 0}, {"erfc", -7, 2},
    {"erfc", -1e30, 2}, {"erfc", INF, 0}, {"erfc", -INF, 2}, {"erfc", NOT, NOT},
    {"sigmoid", 0.0, 0.5}, {"sigmoid", -0.0, 0.5}, {"sigmoid", 40, 1}, {"sigmoid", -747, 0},
    {"sigmoid", 1e30, 1}, {"sigmoid", -1e30, 0}, {"sigmoid", INF, 1}, {"sigmoid", -INF, 0},
    {"sigmoid", NOT, NOT},
    {"sin", 0.0, 0.0}, {"sin", -0.0, -0.0}, {"sin", INF, NOT}, {"sin", -INF, NOT}, {"sin", NOT, NOT},
    {"sin", 0x1p-140, 0x1p-140}, {"sin", -0x1p-149, -0x1p-149},
    {"cos", 0.0, 1}, {"cos", -0.0, 1}, {"cos", INF, NOT}, {"cos", -INF, NOT}, {"cos", NOT, NOT},
    {"cos", 0x1p-149, 1},
    {"log2", 1, 0}, {"log2", 8, 3}, {"log2", 0x1p-149, -149}, {"log2", 0x1p-126, -126},
    {"log2", 0x1p127, 127}, {"log2", 0.5, -1}, {"log2", 0.0, -INF}, {"log2", -0.0, -INF},
    {"log2", -1, NOT}, {"log2", -INF, NOT}, {"log2", INF, INF}, {"log2", NOT, NOT},
    {"log1p", 0.0, 0.0}, {"log1p", -0.0, -0.0}, {"log1p", -1, -INF}, {"log1p", -2, NOT},
    {"log1p", -INF, NOT}, {"log1p", INF, INF}, {"log1p", NOT, NOT}, {"log1p", 0x1p-149, 0x1p-149},
    {"log1p", -0x1p-149, -0x1p-149},
    {"expm1", 0.0, 0.0}, {"expm1", -0.0, -0.0}, {"expm1", -INF, -1}, {"expm1", INF, INF},
    {"expm1", -1e30, -1}, {"expm1", 1e30, INF}, {"expm1", 710, INF}, {"expm1", NOT, NOT},
    {"expm1", 0x1p-149, 0x1p-149}, {"expm1", -0x1p-149, -0x1p-149},
    {"round", 0.5, 1}, {"round", -0.5, -1}, {"round", 2.5, 3}, {"round", 0x1.fffffep-2, 0},
    {"round", -0x1p-149, -0.0}, {"round", -0.0, -0.0}, {"round", INF, INF}, {"round", -INF, -INF},
    {"round", 0x1.fffffep22, 0x1p23}, {"round", 0x1.000002p23, 0x1.000002p23}, {"round", NOT, NOT},
};

/* Places where some function changes its form, clamps, or has an edge of its range. */
static const double near64[] = {
    0.0, 0x1p-1022, 0x1p-1074, 0.5, 0x1.6a09e667f3bcdp-1, 1, 0x1.6a09e667f3bcdp+0, 2, 19.0615, 19.5,
    20, 5.92, 6, 26.5432, 27.226, 27.5, 36.7368, 37, 708.3964, 709.782712893384, 710, 744.4400719,
    745.1332191, 746, 1022, 1023, 1024, 1074, 1075, 1076, 0.34657359027997264, 1.0397207708399179,
    0x1p-28, 0x1p-54, 0x1p1023,
    /* multiples of pi/2, nearby and far, the one that a double comes nearest to among them */
    0x1.921fb54442d18p+0, 0x1.921fb54442d18p+1, 0x1.2d97c7f3321d2p+2, 0x1.921fb54442d18p+20,
    0x1.6ac5b262ca1ffp+849, 0x1p25, 1e22, 0x1.fffffffffffffp+1023, 0.7853981633974483, 0x1p52, 0x1p53,
};
/* clang-format on */

struct worst {
    double err, at;
};

static void note(struct worst *w, double err, double at)
{
    if (err > w->err)
        *w = (struct worst){err, at};
}

/* ---- f32 ---- */

/* Infinity counts as 2^128, the next number if the format went on. */
double err32(float y, double ref)
{
    if (isnan(y) || isnan(ref))
        return isnan(y) && isnan(ref) ? 0 : (double)INFINITY;
    if (!signbit(y) != !signbit(ref))
        return (double)INFINITY;
    double v = isinf(y) ? 0x1p128 : fabs((double)y);
    double r = fmin(fabs(ref), 0x1p128);
    int e = (int)(kl_f64_bits(r) >> 52) - 1023;
    e = (e < -126 ? -126 : e > 127 ? 127 : e) - 23;
    return fabs(v - r) * kl_bits_f64((uint64_t)(1023 - e) << 52);
}

/* Odd and even functions: a negative x must give the bits of -x, but for the sign of an odd one;
 * what is known of the one half then holds for the other, without the reference's time. */
enum parity { NEITHER, EVEN, ODD };

static enum parity parity_of(const char *name)
{
    return !strcmp(name, "cos") ? EVEN : !strcmp(name, "sin") || !strcmp(name, "round") ? ODD : NEITHER;
}

static void mirrored(const float *x, const float *y, void (*block)(const float *, float *), enum parity p,
                     struct worst *w)
{
    float m[BLOCK], z[BLOCK];
    for (int k = 0; k < BLOCK; k++)
        m[k] = -x[k];
    block(m, z);
    for (int k = 0; k < BLOCK; k++) {
        bool same = isnan(y[k]) ? isnan(z[k]) : kl_f32_bits(p == ODD ? -z[k] : z[k]) == kl_f32_bits(y[k]);
        if (!same)
            *w = (struct worst){(double)INFINITY, (double)x[k]};
    }
}

/* err32 of a block, without branches: the largest. */
WIDE static double farthest(const float *y, const double *ref)
{
    double err[BLOCK], most[16] = {0}, worst = 0;
    for (int k = 0; k < BLOCK; k++) {
        const double v = (double)y[k], r = ref[k], top = 0x1p128;
        const double a0 = fabs(v), b0 = fabs(r), a = a0 > top ? top : a0, b = b0 > top ? top : b0;
        const uint64_t vb = kl_f64_bits(v), rb = kl_f64_bits(r), f = kl_f64_bits(b) >> 52;
        const uint64_t lo = f < 1023 - 126 ? 1023 - 126 : f, e = lo > 1023 + 127 ? 1023 + 127 : lo;
        const double d = fabs(a - b) * kl_bits_f64((1023 + 1023 + 23 - e) << 52);
        const double same = (vb ^ rb) >> 63 ? (double)INFINITY : d;
        const double one = (v != v) != (r != r) ? (double)INFINITY : same;
        err[k] = ((v != v) & (r != r)) ? 0 : one;
    }
    for (int k = 0; k < BLOCK; k += 16)
        for (int l = 0; l < 16; l++)
            most[l] = err[k + l] > most[l] ? err[k + l] : most[l];
    for (int l = 0; l < 16; l++)
        worst = most[l] > worst ? most[l] : worst;
    return worst;
}

static bool slow_in_libm(const char *name)
{
    static const char *const names[] = {"sin", "cos", "log2", "log1p", "expm1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return HAVE_WIDE;
    return false;
}

struct job {
    const struct func *f;
    uint64_t begin, end, step;
    struct worst w;
};

static void *sweep32(void *arg)
{
    struct job *j = arg;
    float x[BLOCK], y[BLOCK];
    double r[BLOCK];
    enum parity parity = parity_of(j->f->name);
    bool slow = slow_in_libm(j->f->name);
    void (*block)(const float *, float *) = HAVE_WIDE ? j->f->wide : j->f->block;
    for (uint64_t i = j->begin; i < j->end; i += j->step * BLOCK) {
        for (uint64_t k = 0; k < BLOCK; k++) {
            uint64_t b = i + k * j->step;
            x[k] = kl_bits_f32(b < j->end ? b : j->begin);
        }
        block(x, y);
        if (i >> 31 && parity != NEITHER) {
            mirrored(x, y, block, parity, &j->w);
            continue;
        }
        if (slow) {
            j->f->twin(x, r);
            if (!(farthest(y, r) > j->w.err - 0x1p-10))
                continue;
        }
        for (int k = 0; k < BLOCK; k++) {
            double err = err32(y[k], j->f->ref((double)x[k]));
            if (err > j->w.err)
                j->w = (struct worst){err, (double)x[k]};
        }
    }
    return NULL;
}

static struct worst check32(const struct func *f, uint64_t step, int threads)
{
    struct job j[2] = {{f, 0, UINT64_C(1) << 31, step, {-1, 0}},
                       {f, UINT64_C(1) << 31, UINT64_C(1) << 32, step, {-1, 0}}};
    pthread_t t;
    bool par = threads > 1 && pthread_create(&t, NULL, sweep32, &j[1]) == 0;
    sweep32(&j[0]);
    if (par)
        pthread_join(t, NULL);
    else
        sweep32(&j[1]);
    return j[0].w.err >= j[1].w.err ? j[0].w : j[1].w;
}

/* ---- f64 ---- */

double err64_of(double y, mpfr_t ref)
{
    static _Thread_local mpfr_t my;
    static _Thread_local bool ready;
    if (!ready) {
        mpfr_init2(my, 120);
        ready = true;
    }
    if (isnan(y) || mpfr_nan_p(ref))
        return isnan(y) && mpfr_nan_p(ref) ? 0 : (double)INFINITY;
    if (!signbit(y) != !mpfr_signbit(ref))
        return (double)INFINITY;
    int e = mpfr_zero_p(ref) ? -1022 : mpfr_inf_p(ref) ? 1024 : (int)mpfr_get_exp(ref) - 1;
    if (e > 1023 || isinf(y)) { /* infinity counts as 2^1024 */
        if (isinf(y) && e > 1023)
            return 0;
        e = 1023;
        if (mpfr_inf_p(ref))
            mpfr_set_ui_2exp(ref, 1, 1024, MPFR_RNDN);
    }
    mpfr_set_d(my, y, MPFR_RNDN);
    if (isinf(y))
        mpfr_set_si_2exp(my, y < 0 ? -1 : 1, 1024, MPFR_RNDN);
    mpfr_sub(my, my, ref, MPFR_RNDN);
    mpfr_mul_2si(my, my, 52 - (e < -1022 ? -1022 : e), MPFR_RNDN);
    return fabs(mpfr_get_d(my, MPFR_RNDN));
}

static double err64(const struct func *f, double x, double y)
{
    static _Thread_local mpfr_t mx, ref;
    static _Thread_local bool ready;
    if (!ready) {
        mpfr_inits2(120, mx, ref, (mpfr_ptr)0);
        ready = true;
    }
    mpfr_set_d(mx, x, MPFR_RNDN);
    f->mp(ref, mx);
    return err64_of(y, ref);
}

uint64_t next_random(uint64_t *s)
{
    uint64_t z = *s += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static struct worst check64(const struct func *f, int count)
{
    struct worst w = {-1, 0};
    uint64_t seed = 20240229;
    for (int i = 0; i < count; i++) {
        uint64_t b = next_random(&seed);
        double u = (double)(b >> 11) * 0x1p-53, x = f->lo + (f->hi - f->lo) * u;
        if (i % 4 == 1) /* any exponent in which the function is not trivial */
            x = kl_bits_f64((b & UINT64_C(0x800fffffffffffff)) |
                            (uint64_t)(1023 - 60 + (int)(u * 72)) << 52);
        if (i % 64 == 8) /* beside multiples of pi/2 */
            x = (double)(int64_t)(b >> (20 + b % 40)) * 1.5707963267948966;
        if (i % 4 == 3) /* any bits; half of them near 1, where most have their worst case */
            x = i % 8 == 3 ? kl_bits_f64(b) : 4 * u - 2;
        note(&w, err64(f, x, f->f64(x)), x);
    }
    for (size_t k = 0; k < sizeof near64 / sizeof *near64; k++)
        for (int s = 0; s < 2; s++) {
            double x = s ? -near64[k] : near64[k], lo = x, hi = x;
            for (int i = 0; i < F64_NEAR; i++) {
                note(&w, err64(f, lo, f->f64(lo)), lo);
                note(&w, err64(f, hi, f->f64(hi)), hi);
                lo = nextafter(lo, -(double)INFINITY);
                hi = nextafter(hi, (double)INFINITY);
            }
        }
    return w;
}

/* ---- driver ---- */

static int passes, fails;

static void check_special(const struct func *f, bool wide)
{
    int before = fails;
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        const struct special *s = &specials[i];
        if (strcmp(s->name, f->name) != 0)
            continue;
        double y = wide ? f->f64(s->x) : f->f32(s->x);
        bool same = isnan(s->y) ? isnan(y) : kl_f64_bits(y) == kl_f64_bits(s->y);
        if (!same) {
            printf("FAIL %s %s(%g) is %a, not %a\n", wide ? "f64" : "f32", f->name, s->x, y, s->y);
            fails++;
        }
    }
    passes += fails == before;
}

static void judge(const struct func *f, const char *elem, struct worst w, bool measure)
{
    if (measure) {
        printf("BOUND(%s, %s, %.3f, %a)\n", f->name, elem, ceil(w.err * 1000) / 1000, w.at);
        fflush(stdout);
        return;
    }
    const struct bound *b = NULL;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (!strcmp(bounds[i].name, f->name) && !strcmp(bounds[i].elem, elem))
            b = &bounds[i];
    bool wide = elem[1] == '6';
    double at = !b     ? 0
                : wide ? err64(f, b->at, f->f64(b->at))
                       : err32((float)f->f32(b->at), f->ref((double)(float)b->at));
    bool ok = b && w.err <= b->ulp && at <= b->ulp && at > b->ulp - 0.002;
    printf("%s %-7s %s  max %.3f ULP at %-24a published %.3f, which %a shows as %.3f\n",
           ok ? "ok  " : "FAIL", f->name, elem, w.err, w.at, b ? b->ulp : 0.0, b ? b->at : 0.0, at);
    fflush(stdout);
    passes += ok;
    fails += !ok;
}

int main(int argc, char **argv)
{
    uint64_t step = 1;
    int threads = 1;
    const char *only = "";
    bool measure = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--sample") && i + 1 < argc)
            step = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
            threads = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else if (!strcmp(argv[i], "--measure"))
            measure = true;
        else
            step = 0;
    }
    if (step == 0 || step > UINT64_C(1) << 24) {
        fprintf(stderr, "usage: ulp [--sample N] [--threads 1|2] [--only NAME[.f32|.f64]] "
                        "[--measure]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof funcs / sizeof *funcs; i++)
        for (int wide = 0; wide < 2; wide++) {
            char name[32];
            const struct func *f = &funcs[i];
            snprintf(name, sizeof name, "%s.f%d", f->name, wide ? 64 : 32);
            size_t n = strcspn(only, ".");
            if (*only && (strncmp(name, only, strlen(only)) != 0 || strcspn(name, ".") != n))
                continue;
            check_special(f, wide);
            judge(f, wide ? "f64" : "f32",
                  wide ? check64(f, (int)(F64_RANDOM / step > 20000 ? F64_RANDOM / step : 20000))
                       : check32(f, step, threads),
                  measure);
        }
    for (int wide = 0; wide < 2; wide++)
        if (!*only || strcmp(only, "pow") == 0 || strcmp(only, wide ? "pow.f64" : "pow.f32") == 0) {
            bool ok = check_pow(step, wide, measure);
            passes += ok;
            fails += !ok;
        }
    mpfr_free_cache();
    if (!measure)
        printf("%d passed, %d failed, 0 skipped\n", passes, fails);
    return fails != 0;
}
