/* test_math.c - math.def in its two forms: the inline functions and the C text.
 *
 * The text is compiled with each compiler that is there, vectorised, and must give the bits
 * of the inline functions; its loops must hold vector instructions.  Hashes of the results
 * pin the bits: they are part of the language.  How accurate the functions are is the
 * business of tests/ulp. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/math.h"

enum { N = 1 << 14, BATCHES32 = 64, BATCHES64 = 24 };

/* pow as a function of one argument. */
static inline float kl_powx_f32(float x)
{
    return kl_pow_f32(x, 3 - x * 0.25f);
}
static inline double kl_powx_f64(double x)
{
    return kl_pow_f64(x, 3 - x * 0.25);
}
static const char powx[] =
    "static inline f32 kl_powx_f32(f32 x) { return kl_pow_f32(x, 3 - x * 0.25f); }\n"
    "static inline f64 kl_powx_f64(f64 x) { return kl_pow_f64(x, 3 - x * 0.25); }\n";

/* clang-format off */
/* F(name, hash of f32 results, hash of f64 results) */
#define FUNCTIONS(F)                                     \
    F(exp,     0x550db312a23db54d, 0x6b7577644f42cfec)   \
    F(exp2,    0x0077d04612060b80, 0x35dcaade3f411783)   \
    F(log,     0xfa67ff170bf0090c, 0x4258d1ccf751f648)   \
    F(rsqrt,   0x1e33c1a9e98cfd4f, 0x0a153fff9c00f0e5)   \
    F(tanh,    0xe6d9809d13fd044f, 0x4f0d738bbb9f39ca)   \
    F(erf,     0xaaafeb46a776e3c5, 0x0df66abf1178938a)   \
    F(erfc,    0xc70b8211c267aea7, 0x3b3493528c6b6e94)   \
    F(sigmoid, 0xb2797970cfd66cba, 0xdf05c78db539687e)   \
    F(sin,     0x136a13806fd9890c, 0xdbfd9972b6769d2e)   \
    F(cos,     0xdf8f5f73e8835b59, 0x52efdf91e64e0373)   \
    F(log2,    0xd2ffb9b3abae7016, 0x508d5c760a97400b)   \
    F(log1p,   0x4a2d21c5b056213a, 0x223ea99b7cd791c2)   \
    F(expm1,   0x0ffffea41e567627, 0x7e141c7f5bd6021c)   \
    F(powx,    0xc412f311ce641adf, 0x2cce066a6a3a6aac)   \
    F(round,   0x2e690c91794350de, 0xbe1c505efdf4d177)   \
    F(tf32,    0xdba816105c754000, 0xbe8fd40000000000)

#define F(name, h32, h64)                                                                    \
    static void inline32_##name(const float *x, float *y)                                    \
    {                                                                                        \
        for (int i = 0; i < N; i++)                                                          \
            y[i] = kl_##name##_f32(x[i]);                                                    \
    }                                                                                        \
    static void inline64_##name(const double *x, double *y)                                  \
    {                                                                                        \
        for (int i = 0; i < N; i++)                                                          \
            y[i] = kl_##name##_f64(x[i]);                                                    \
    }
FUNCTIONS(F)
#undef F

static const struct func {
    const char *name;
    void (*f32)(const float *, float *);
    void (*f64)(const double *, double *);
    uint64_t h32, h64;
} funcs[] = {
#define F(name, h32, h64) {#name, inline32_##name, inline64_##name, h32, h64},
    FUNCTIONS(F)
#undef F
};
enum { NFUNCS = sizeof funcs / sizeof *funcs };

/* What the C back end's prelude provides. */
static const char prelude[] =
    "typedef float f32; typedef double f64; typedef unsigned u32; typedef unsigned long long u64;\n"
    "#define P(T, U, S) \\\n"
    "static inline T kl_fma_##T(T a, T b, T c) { return __builtin_fma##S(a, b, c); } \\\n"
    "static inline T kl_abs_##T(T a) { return __builtin_fabs##S(a); } \\\n"
    "static inline T kl_sqrt_##T(T a) { return __builtin_sqrt##S(a); } \\\n"
    "static inline T kl_trunc_##T(T a) { return __builtin_trunc##S(a); } \\\n"
    "static inline U kl_bitcast_##U##_##T(T a) { union { T f; U u; } x = {a}; return x.u; } \\\n"
    "static inline T kl_bitcast_##T##_##U(U a) { union { U u; T f; } x = {a}; return x.f; }\n"
    "P(f32, u32, f)\nP(f64, u64, )\n"
    "static inline u32 kl_umulhi_u32(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }\n"
    "static inline u64 kl_umulhi_u64(u64 a, u64 b)\n"
    "{\n"
    "    const u64 low = 0xffffffff, al = a & low, ah = a >> 32, bl = b & low, bh = b >> 32;\n"
    "    const u64 m = ah * bl + (al * bl >> 32), n = al * bh + (m & low);\n"
    "    return ah * bh + (m >> 32) + (n >> 32);\n"
    "}\n";

static const struct build {
    const char *cc, *level, *march, *reg;
} builds[] = {
    {"gcc", "-O3", "x86-64-v4", "%zmm"}, {"gcc", "-O3", "x86-64-v3", "%ymm"},
    {"clang", "-O2", "x86-64-v4", "%zmm"}, {"clang", "-O2", "x86-64-v3", "%ymm"},
};
/* clang-format on */
static const char flags[] = "-ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv "
                            "-fno-strict-aliasing -mprefer-vector-width=512";

static uint64_t next_random(uint64_t *s)
{
    uint64_t z = *s += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Half any bits, half within [-32, 32), where the functions are not flat; then specials. */
static void fill(uint64_t seed, float *x, double *d)
{
    static const double specials[] = {0,      -0.0,    0x1p-149, -0x1p-149,         0x1p-126,
                                      1,      -1,      0x1p127,  88.72283905206835, -103.97,
                                      709.78, -745.13, 0x1p-1074};
    for (int i = 0; i < N; i++) {
        uint64_t b = next_random(&seed);
        double v = (double)(int64_t)b * 0x1p-58;
        x[i] = i & 1 ? (float)v : kl_bits_f32(b);
        d[i] = i & 1 ? v : kl_bits_f64(b);
    }
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        d[i] = specials[i];
        x[i] = (float)specials[i];
    }
    x[20] = (float)INFINITY, x[21] = -x[20], x[22] = (float)NAN, x[23] = -x[22];
    d[20] = (double)INFINITY, d[21] = -d[20], d[22] = (double)NAN, d[23] = -d[22];
    x[24] = kl_bits_f32(0x7f800001), x[25] = kl_bits_f32(0xffffffff);
}

/* A NaN that arithmetic made has no promised sign or payload. */
static uint64_t canon32(float v)
{
    return isnan(v) ? 0x7fc00000 : kl_f32_bits(v);
}
static uint64_t canon64(double v)
{
    return isnan(v) ? UINT64_C(0x7ff8) << 48 : kl_f64_bits(v);
}

static float x32[N], y32[N], z32[N];
static double x64[N], y64[N], z64[N];

static void bits_are_pinned(void **state)
{
    (void)state;
    int bad = 0;
    fill(1, x32, x64);
    for (int k = 0; k < NFUNCS; k++) {
        uint64_t h32 = 0, h64 = 0;
        funcs[k].f32(x32, y32);
        funcs[k].f64(x64, y64);
        for (int i = 0; i < N; i++) {
            h32 = (h32 ^ canon32(y32[i])) * UINT64_C(0x100000001b3);
            h64 = (h64 ^ canon64(y64[i])) * UINT64_C(0x100000001b3);
        }
        if (h32 != funcs[k].h32 || h64 != funcs[k].h64) {
            print_error("    F(%s, 0x%016llx, 0x%016llx)\n", funcs[k].name, (unsigned long long)h32,
                        (unsigned long long)h64);
            bad++;
        }
    }
    if (bad)
        fail_msg("%d functions give other bits than before (see the rows above)", bad);
}

static void special_values(void **state)
{
    (void)state;
    assert_true(kl_exp_f32(0) == 1 && kl_exp_f64(-0.0) == 1);
    assert_true(kl_exp_f32(-(float)INFINITY) == 0 && isinf(kl_exp_f32(89)));
    assert_true(kl_exp_f32(-103) > 0 && kl_exp_f64(-745) > 0);
    assert_true(kl_log_f32(0) == -(float)INFINITY && isnan(kl_log_f32(-1)));
    assert_true(kl_log_f64(1) == 0 && isnan(kl_log_f64((double)NAN)));
    assert_true(signbit(kl_tanh_f32(-0.0f)) && signbit(kl_erf_f64(-0.0)));
    assert_true(kl_tanh_f32((float)INFINITY) == 1 && kl_erf_f32(-5) == -1);
    assert_true(kl_erfc_f32(-(float)INFINITY) == 2 && kl_erfc_f32(10) > 0);
    assert_true(kl_sigmoid_f32(-100) > 0 && kl_sigmoid_f32(-1000) == 0);
    assert_true(signbit(kl_sin_f32(-0.0f)) && isnan(kl_cos_f64((double)INFINITY)));
    assert_true(kl_log2_f32(0x1p-149f) == -149 && kl_log2_f64(0x1p1000) == 1000);
    assert_true(signbit(kl_log1p_f32(-0.0f)) && kl_log1p_f64(-1) == -(double)INFINITY);
    assert_true(signbit(kl_expm1_f64(-0.0)) && kl_expm1_f32(-(float)INFINITY) == -1);
    assert_true(kl_pow_f32((float)NAN, 0) == 1 && kl_pow_f64(-2, 3) == -8);
    assert_true(kl_tf32_f32(0x1.002p0f) == 0x1.004p0f && kl_tf32_f32(-0x1.ffep0f) == -2);
    assert_true(kl_tf32_f32(0x1.fffp127f) == INFINITY && isnan(kl_tf32_f32(kl_bits_f32(0xffffffff))));
    assert_true(kl_round_f32(0x1.fffffep-2f) == 0 && kl_round_f64(-2.5) == -3);
    assert_true(kl_rsqrt_f32(-0.0f) == -(float)INFINITY && kl_rsqrt_f64(4) == 0.5);
}

/* exp and exp2 have forms for the middle of their range. */
static void middle_gives_the_same_bits(void **state)
{
    (void)state;
    for (uint64_t b = 0; b < UINT64_C(1) << 32; b += 211) {
        float x = kl_bits_f32(b), a = fabsf(x);
        if (a <= 87 && kl_f32_bits(kl_exp_mid_f32(x)) != kl_f32_bits(kl_exp_f32(x)))
            fail_msg("exp(%a) differs", (double)x);
        if (a <= 125 && kl_f32_bits(kl_exp2_mid_f32(x)) != kl_f32_bits(kl_exp2_f32(x)))
            fail_msg("exp2(%a) differs", (double)x);
    }
}

/* ---- the text ---- */

static char dir[64];

static bool have(const char *cc)
{
    char cmd[64];
    snprintf(cmd, sizeof cmd, "command -v %s >/dev/null 2>&1", cc);
    return system(cmd) == 0;
}

/* dir/m.c: the text, and a loop over each function. */
static void write_source(void)
{
    char path[96];
    snprintf(path, sizeof path, "%s/m.c", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(prelude, f);
    for (const char *const *p = kl_math_c_text; *p; p++)
        fputs(*p, f);
    for (int k = 0; k < 2; k++)
        fprintf(f, "f32 kl_use_%s(f32 x)\n{\n    return kl_%s_mid_f32(x);\n}\n", funcs[k].name, funcs[k].name);
    fputs(powx, f);
    for (int k = 0; k < NFUNCS; k++)
        for (int w = 32; w <= 64; w += 32)
            fprintf(f,
                    "void loop_%s_f%d(const f%d *restrict x, f%d *restrict y)\n{\n"
                    "    for (int i = 0; i < %d; i++)\n        y[i] = kl_%s_f%d(x[i]);\n}\n",
                    funcs[k].name, w, w, w, N, funcs[k].name, w);
    assert_int_equal(fclose(f), 0);
}

static void compile(const struct build *b, const char *how, const char *out)
{
    char cmd[512];
    snprintf(cmd, sizeof cmd,
             "%s -std=c11 -Wall -Wextra -Werror %s -march=%s %s %s -o %s/%s %s/m.c", b->cc,
             b->level, b->march, flags, how, dir, out, dir);
    if (system(cmd) != 0)
        fail_msg("failed: %s", cmd);
}

/* Each loop holds packed arithmetic on whole registers, and calls nothing. */
static void check_assembly(const struct build *b)
{
    char path[96], line[512], name[64] = "";
    int packed = 0, loops = 0, bad = 0;
    snprintf(path, sizeof path, "%s/m.s", dir);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (!strncmp(line, "loop_", 5)) {
            snprintf(name, sizeof name, "%.*s", (int)strcspn(line, ":"), line);
            packed = 0;
        } else if (*name && strstr(line, b->reg) &&
                   (strstr(line, "fmadd") || strstr(line, "sqrtp") || strstr(line, "vrnd") ||
                    strstr(line, "roundp") || strstr(line, "padd"))) {
            packed++;
        } else if (*name && strstr(line, "\tcall")) {
            print_error("%s %s %s: %s", b->cc, b->march, name, line);
            bad++;
        } else if (*name && strstr(line, ".size")) {
            loops++;
            if (packed < 1) {
                print_error("%s %s: %s is not vectorised\n", b->cc, b->march, name);
                bad++;
            }
            *name = 0;
        }
    }
    fclose(f);
    assert_int_equal(loops, 2 * NFUNCS);
    assert_int_equal(bad, 0);
}

static void text_is_vectorised(void **state)
{
    (void)state;
#if defined(__x86_64__)
    int ran = 0;
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        if (!have(builds[i].cc))
            continue;
        compile(&builds[i], "-S", "m.s");
        check_assembly(&builds[i]);
        ran++;
    }
    if (!ran)
        skip(); /* neither gcc nor clang */
#else
    skip();
#endif
}

static void compare(const struct build *b, void *so)
{
    for (int k = 0; k < NFUNCS; k++) {
        char name[48];
        void (*f32)(const float *, float *);
        void (*f64)(const double *, double *);
        snprintf(name, sizeof name, "loop_%s_f32", funcs[k].name);
        *(void **)&f32 = dlsym(so, name);
        snprintf(name, sizeof name, "loop_%s_f64", funcs[k].name);
        *(void **)&f64 = dlsym(so, name);
        assert_true(f32 && f64);
        for (int r = 0; r < BATCHES32; r++) {
            fill((uint64_t)r * 7919 + (uint64_t)k, x32, x64);
            funcs[k].f32(x32, y32);
            f32(x32, z32);
            for (int i = 0; i < N; i++)
                if (canon32(y32[i]) != canon32(z32[i]))
                    fail_msg("%s %s: %s(%a) is %a inline, %a in text", b->cc, b->march,
                             funcs[k].name, (double)x32[i], (double)y32[i], (double)z32[i]);
            if (r >= BATCHES64)
                continue;
            funcs[k].f64(x64, y64);
            f64(x64, z64);
            for (int i = 0; i < N; i++)
                if (canon64(y64[i]) != canon64(z64[i]))
                    fail_msg("%s %s: %s(%a) is %a inline, %a in text", b->cc, b->march,
                             funcs[k].name, x64[i], y64[i], z64[i]);
        }
    }
}

static void text_gives_the_same_bits(void **state)
{
    (void)state;
#if defined(__x86_64__)
    int ran = 0;
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        char path[96];
        bool v4 = !strcmp(builds[i].march, "x86-64-v4");
        bool runs = v4 ? __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                             __builtin_cpu_supports("avx512vl") &&
                             __builtin_cpu_supports("avx512bw")
                       : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        if (!runs || !have(builds[i].cc))
            continue;
        compile(&builds[i], "-shared -fPIC", "m.so");
        snprintf(path, sizeof path, "%s/m.so", dir);
        void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(so);
        compare(&builds[i], so);
        dlclose(so);
        remove(path);
        ran++;
    }
    if (!ran)
        skip(); /* no compiler, or a machine without fma */
#else
    skip();
#endif
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/kiln-math-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    write_source();
    return 0;
}

static int teardown(void **state)
{
    static const char *const names[] = {"m.c", "m.s", "m.so"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        remove(path);
    }
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_values),
        cmocka_unit_test(bits_are_pinned),
        cmocka_unit_test(middle_gives_the_same_bits),
        cmocka_unit_test(text_is_vectorised),
        cmocka_unit_test(text_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
