/* test_f8.c - 8-bit floats on every target against a table that is made by their definition.
 *
 * The reference knows the values of the codes and the places half-way between neighbours, in
 * double, and nothing of the bit steps of base/f8.h.  Checked are all codes to every type, all
 * 16-bit floats to f8, and f32 to f8: a dense sample that holds every place where the result
 * changes, and with KILN_TEST_EXHAUSTIVE=1 all 2^32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elem.h"
#include "kiln.h"

/* ---- the definition ---- */

struct form {
    const char *name;
    kiln_dtype t;
    int mant, bias, last; /* last: code of the largest number */
    bool has_inf;
};
static const struct form forms[] = {
    {"f8e4m3", KILN_F8E4M3, 3, 7, 0x7e, false},
    {"f8e5m2", KILN_F8E5M2, 2, 15, 0x7b, true},
};

/* The value of a code without sign as if every code were a number. */
static double number(const struct form *f, int code)
{
    int e = code >> f->mant, m = code & ((1 << f->mant) - 1);
    return e ? ldexp((1 << f->mant) + m, e - f->bias - f->mant) : ldexp(m, 1 - f->bias - f->mant);
}

static double value_of(const struct form *f, int code)
{
    int mag = code & 0x7f;
    double v = mag <= f->last ? number(f, mag) : f->has_inf && mag == f->last + 1 ? (double)INFINITY : (double)NAN;
    return code & 0x80 ? -v : v;
}

/* edge[k]: the place half-way between codes k and k + 1, the last beyond the largest number. */
static void edges(const struct form *f, double edge[128])
{
    for (int k = 0; k <= f->last; k++)
        edge[k] = (number(f, k) + number(f, k + 1)) / 2;
}

/* -1: a NaN of any kind */
static int want_code(const struct form *f, const double *edge, double x, bool nan)
{
    int sign = signbit(x) ? 0x80 : 0, k = 0, top = f->last;
    double a = fabs(x);
    if (x != x)
        return -1;
    int lo = 0, hi = top + 1; /* the first k with a < edge[k], or a at it and k even */
    while (lo < hi) {
        k = (lo + hi) / 2;
        if (a < edge[k] || (a == edge[k] && k % 2 == 0))
            hi = k;
        else
            lo = k + 1;
    }
    if (lo <= top)
        return sign | lo;
    return !nan ? sign | top : f->has_inf ? sign | (top + 1) : -1;
}

static bool right(const struct form *f, int want, uint8_t got)
{
    double v = value_of(f, got);
    return want < 0 ? v != v : got == want;
}

/* ---- targets ---- */

static const struct target {
    const char *name;
    kiln_device device;
    const char *arch, *cc;
} targets[] = {
    {"interpreter", KILN_DEVICE_INTERP, NULL, NULL},
    {"cpu, gcc", KILN_DEVICE_CPU, NULL, "/usr/bin/gcc"},
    {"cpu, clang", KILN_DEVICE_CPU, NULL, "/usr/bin/clang"},
    {"sim, sm_80", KILN_DEVICE_SIM, "sm_80", NULL},
    {"sim, sm_90", KILN_DEVICE_SIM, "sm_90", NULL},
    {"cuda", KILN_DEVICE_CUDA, NULL, NULL}, /* with KILN_TEST_DEVICE=1 */
};
enum { NTARGET = sizeof targets / sizeof *targets };

static kiln_context *open_target(const struct target *t)
{
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *c = NULL;
    if (t->cc && access(t->cc, X_OK))
        return NULL;
    if (t->device == KILN_DEVICE_CUDA && !getenv("KILN_TEST_DEVICE"))
        return NULL;
    o.device = t->device;
    o.arch = t->arch;
    o.cc = t->cc;
    o.threads = 1;
    assert_int_equal(kiln_context_create(&o, &c, NULL), KILN_OK);
    return c;
}

struct prog {
    kiln_module *mod;
    kiln_kernel *k;
};

static struct prog compile(kiln_context *c, const char *text)
{
    struct prog p = {0};
    kiln_diags *d = NULL;
    if (kiln_compile(c, "f8.kiln", text, strlen(text), &p.mod, &d) != KILN_OK) {
        char buf[2000];
        kiln_diags_render(d, 0, buf, sizeof buf);
        fail_msg("%s", buf);
    }
    p.k = kiln_module_at(p.mod, 0);
    return p;
}

static void launch(const struct prog *p, size_t narray, const char *const *name, void *const *data,
                   const kiln_dtype *t, int64_t n)
{
    kiln_arg arg[4] = {{0}};
    kiln_diags *d = NULL;
    for (size_t i = 0; i < narray; i++)
        arg[i] = (kiln_arg){.name = name[i], .kind = KILN_ARG_TENSOR,
                            .u.tensor = {.data = data[i], .dtype = t[i], .ndim = 1, .shape = &n}};
    if (kiln_launch(p->k, NULL, arg, narray, &d) != KILN_OK) {
        char buf[2000];
        kiln_diags_render(d, 0, buf, sizeof buf);
        fail_msg("%s", buf);
    }
}

static const char down[] =
    "#pragma kiln 1\n"
    "kernel k(i64 n, type T = f32, f8e4m3 a[n], f8e4m3 b[n], f8e5m2 c[n], f8e5m2 d[n], const T x[n])\n"
    "    grid(cdiv(n, 4096))\n"
    "{\n"
    "    i64 i = program_id(0) * 4096;\n"
    "    auto v = x[i:4096];\n"
    "    a[i:4096] = v;\n"
    "    b[i:4096] = cvt_nan(f8e4m3, v);\n"
    "    c[i:4096] = cvt_sat(f8e5m2, v);\n"
    "    d[i:4096] = cvt_nan(f8e5m2, v);\n"
    "}\n";

/* Elements of type t to both types in both ways. */
static void check_down(const struct target *t, const struct prog *p, kiln_dtype from, void *x,
                       int64_t n, uint8_t *out)
{
    static const char *const name[] = {"x", "a", "b", "c", "d"};
    kiln_arg arg[5] = {{0}};
    kiln_diags *d = NULL;
    static double edge[2][128];
    for (int i = 0; i < 2; i++)
        edges(&forms[i], edge[i]);
    memset(out, 0x55, (size_t)n * 4);
    for (int i = 0; i < 5; i++)
        arg[i] = (kiln_arg){.name = name[i], .kind = KILN_ARG_TENSOR,
                            .u.tensor = {.data = i ? out + (i - 1) * n : x,
                                         .dtype = i == 0 ? from : i < 3 ? KILN_F8E4M3 : KILN_F8E5M2,
                                         .ndim = 1, .shape = &n}};
    if (kiln_launch(p->k, NULL, arg, 5, &d) != KILN_OK) {
        char buf[2000];
        kiln_diags_render(d, 0, buf, sizeof buf);
        fail_msg("%s: %s", t->name, buf);
    }
    size_t es = kiln_dtype_size(from);
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = kl_elem_load((enum kl_elem)from, (char *)x + (size_t)i * es);
        double v = kl_elem_double((enum kl_elem)from, bits);
        for (int k = 0; k < 4; k++) {
            const struct form *f = &forms[k / 2];
            int want = want_code(f, edge[k / 2], v, k % 2);
            if (!right(f, want, out[k * n + i]))
                fail_msg("%s: %s %a to %s%s: %02x, must be %02x", t->name, kiln_dtype_name(from), v,
                         f->name, k % 2 ? ", cvt_nan" : "", out[k * n + i], (unsigned)want);
        }
    }
}

/* ---- the tests ---- */

/* Every code to every type. */
static void codes(void **state)
{
    (void)state;
    uint8_t in[256];
    for (int i = 0; i < 256; i++)
        in[i] = (uint8_t)i;
    for (int ti = 0; ti < NTARGET; ti++) {
        kiln_context *c = open_target(&targets[ti]);
        if (!c)
            continue;
        struct prog p = compile(c, "#pragma kiln 1\n"
                                   "kernel k(type T = f32, type U = f32, U y[256], const T x[256])\n"
                                   "    grid(1)\n{\n    y[0:256] = (U)x[0:256];\n}\n");
        for (int fi = 0; fi < 2; fi++)
            for (int to = 1; to < KL_NELEM; to++) {
                const struct form *f = &forms[fi];
                enum kl_elem e = (enum kl_elem)to;
                uint64_t y[256];
                static const char *const name[] = {"x", "y"};
                launch(&p, 2, name, (void *const[]){in, y}, (kiln_dtype[]){f->t, (kiln_dtype)to}, 256);
                for (int i = 0; i < 256; i++) {
                    double v = value_of(f, i), got;
                    uint64_t g = kl_elem_load(e, (char *)y + (size_t)i * kl_elems[to].bytes);
                    bool ok;
                    got = kl_elem_double(e, g);
                    if (kl_elems[to].bytes == 1 && kl_is_float(e)) {
                        double edge[128];
                        const struct form *o = &forms[to == KL_f8e5m2];
                        edges(o, edge);
                        ok = o == f ? g == (uint64_t)i || v != v : right(o, want_code(o, edge, v, false), (uint8_t)g);
                    } else if (kl_is_float(e)) { /* all hold every value */
                        ok = v != v ? got != got : got == v && !signbit(got) == !signbit(v);
                    } else if (e == KL_bool) {
                        ok = g == (v != 0);
                    } else {
                        int bits = kl_elems[to].bytes * 8;
                        bool sign = kl_elems[to].kind == KL_KIND_SINT;
                        double lo = sign ? -ldexp(1, bits - 1) : 0, hi = ldexp(1, bits - sign);
                        uint64_t want = v != v   ? 0
                                        : v >= hi ? (UINT64_MAX >> (64 - bits)) >> sign
                                        : v <= lo ? (uint64_t)(int64_t)lo
                                                  : (uint64_t)(int64_t)v;
                        ok = g == kl_canon(e, want);
                    }
                    if (!ok)
                        fail_msg("%s: %s %02x (%a) to %s: %a (%llx)", targets[ti].name, f->name, i, v,
                                 kl_elems[to].name, got, (unsigned long long)g);
                }
            }
        kiln_module_free(p.mod);
        kiln_context_free(c);
    }
}

/* All values of the 16-bit floats. */
static void halves(void **state)
{
    (void)state;
    enum { N = 65536 };
    uint16_t *x = malloc(N * sizeof *x);
    uint8_t *out = malloc(N * 4);
    for (int i = 0; i < N; i++)
        x[i] = (uint16_t)i;
    for (int ti = 0; ti < NTARGET; ti++) {
        kiln_context *c = open_target(&targets[ti]);
        if (!c)
            continue;
        struct prog p = compile(c, down);
        check_down(&targets[ti], &p, KILN_F16, x, N, out);
        check_down(&targets[ti], &p, KILN_BF16, x, N, out);
        kiln_module_free(p.mod);
        kiln_context_free(c);
    }
    free(x);
    free(out);
}

/* f32: around every place where a result changes, and many others. */
static void singles(void **state)
{
    (void)state;
    enum { N = 1 << 17 };
    uint32_t *x = malloc(N * sizeof *x);
    uint8_t *out = malloc((size_t)N * 4);
    uint32_t n = 0;
    for (int fi = 0; fi < 2; fi++) {
        double edge[128];
        edges(&forms[fi], edge);
        for (int k = 0; k <= forms[fi].last; k++)
            for (int d = -40; d <= 40; d++)
                for (int s = 0; s < 2; s++)
                    x[n++] = ((uint32_t)kl_f32_bits((float)edge[k]) + (uint32_t)d) ^ (uint32_t)s << 31;
    }
    assert_true(n < N / 2);
    for (uint32_t i = 0; n < N; i++) /* every exponent */
        x[n++] = i * 66049u + (i & 3);
    for (int ti = 0; ti < NTARGET; ti++) {
        kiln_context *c = open_target(&targets[ti]);
        if (!c)
            continue;
        struct prog p = compile(c, down);
        check_down(&targets[ti], &p, KILN_F32, x, N, out);
        kiln_module_free(p.mod);
        kiln_context_free(c);
    }
    free(x);
    free(out);
}

/* All 2^32 where that is asked for, else some blocks of them; the executor would take hours. */
static void all_singles(void **state)
{
    (void)state;
    enum { N = 1 << 22 };
    uint64_t step = getenv("KILN_TEST_EXHAUSTIVE") ? 1 : 149;
    uint32_t *x = malloc(N * sizeof *x);
    uint8_t *out = malloc((size_t)N * 4);
    for (int ti = 0; ti < NTARGET; ti++) {
        if (targets[ti].device == KILN_DEVICE_SIM)
            continue;
        kiln_context *c = open_target(&targets[ti]);
        if (!c)
            continue;
        struct prog p = compile(c, down);
        static const char *const name[] = {"x", "a", "b", "c", "d"};
        double edge[2][128];
        uint32_t at[2][128]; /* the last input that gives code k, as bits */
        for (int i = 0; i < 2; i++) {
            edges(&forms[i], edge[i]);
            for (int k = 0; k <= forms[i].last; k++)
                at[i][k] = (uint32_t)kl_f32_bits((float)edge[i][k]) - (k % 2 != 0);
        }
        for (uint64_t first = 0; first >> 32 == 0; first += N * step) {
            kiln_arg arg[5] = {{0}};
            int64_t n = N;
            for (uint32_t i = 0; i < N; i++)
                x[i] = (uint32_t)first + i;
            for (int i = 0; i < 5; i++)
                arg[i] = (kiln_arg){.name = name[i], .kind = KILN_ARG_TENSOR,
                                    .u.tensor = {.data = i ? out + (size_t)(i - 1) * N : (void *)x,
                                                 .dtype = i == 0  ? KILN_F32
                                                          : i < 3 ? KILN_F8E4M3
                                                                  : KILN_F8E5M2,
                                                 .ndim = 1, .shape = &n}};
            assert_int_equal(kiln_launch(p.k, NULL, arg, 5, NULL), KILN_OK);
            for (int k = 0; k < 4; k++) {
                const struct form *f = &forms[k / 2];
                const uint8_t *y = out + (size_t)k * N;
                int code = 0;
                for (uint32_t i = 0; i < N; i++) {
                    uint32_t a = x[i] & 0x7fffffff;
                    int sign = x[i] >> 31 ? 0x80 : 0, want;
                    while (code <= f->last && a > at[k / 2][code])
                        code++;
                    want = a > 0x7f800000      ? -1
                           : code <= f->last   ? sign | code
                           : k % 2 == 0        ? sign | f->last
                           : f->has_inf        ? sign | (f->last + 1)
                                               : -1;
                    if (!right(f, want, y[i]))
                        fail_msg("%s: %08x to %s%s: %02x, must be %02x", targets[ti].name, x[i], f->name,
                                 k % 2 ? ", cvt_nan" : "", y[i], (unsigned)want);
                }
            }
        }
        if (step == 1)
            print_message("%s: 4 x 2^32 conversions\n", targets[ti].name);
        kiln_module_free(p.mod);
        kiln_context_free(c);
    }
    free(x);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes),
        cmocka_unit_test(halves),
        cmocka_unit_test(singles),
        cmocka_unit_test(all_singles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
