/* test_value.c - values of the command line: numbers, shapes, lists, generators, comparing. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare.h"

static void numbers(void **state)
{
    static const struct { const char *text; enum kl_elem e; int ok; uint64_t bits; } cases[] = {
        {"3", KL_i32, 1, 3}, {"-3", KL_i32, 1, (uint64_t)-3}, {" 7 ", KL_i64, 1, 7},
        {"0x10", KL_i32, 1, 16}, {"1e6", KL_i64, 1, 1000000}, {"0.5", KL_i32, 0, 0},
        {"2147483648", KL_i32, 0, 0}, {"4294967295", KL_u32, 1, 4294967295u},
        {"-1", KL_u32, 0, 0}, {"256", KL_u8, 0, 0}, {"true", KL_bool, 1, 1}, {"2", KL_bool, 0, 0},
        {"1e30", KL_i64, 0, 0}, {"-9223372036854775808", KL_i64, 1, (uint64_t)INT64_MIN},
        {"9223372036854775808", KL_i64, 0, 0}, {"18446744073709551615", KL_u64, 1, UINT64_MAX},
        {"0xffffffffffffffff", KL_u64, 1, UINT64_MAX}, {"18446744073709551616", KL_u64, -1, 0},
        {"1e19", KL_u64, 1, UINT64_C(10000000000000000000)}, {"-1", KL_u64, 0, 0},
        {"18446744073709551615", KL_f32, 1, 0x5f800000}, {"18446744073709551615", KL_bool, 0, 0},
        {"-129", KL_i8, 0, 0}, {"-128", KL_i8, 1, (uint64_t)-128}, {"65536", KL_u16, 0, 0},
        {"-32768", KL_i16, 1, (uint64_t)-32768}, {"448", KL_f8e4m3, 1, 0x7e}, {"1.1", KL_f8e4m3, 1, 0x39},
        {"464.0", KL_f8e4m3, 1, 0x7e}, {"465.0", KL_f8e4m3, 1, 0x7f}, {"inf", KL_f8e5m2, 1, 0x7c},
        {"57344", KL_f8e5m2, 1, 0x7b}, {"1e5", KL_f8e5m2, 1, 0x7c},
        /* just above a tie of f8e4m3: rounding to f32 first would lose what is above */
        {"1.0625000001", KL_f8e4m3, 1, 0x39}, {"1.0625", KL_f8e4m3, 1, 0x38},
        {"0.1", KL_f32, 1, 0x3dcccccd},
        {"1.5f", KL_f32, 1, 0x3fc00000}, {"inf", KL_f32, 1, 0x7f800000},
        {"-inf", KL_f16, 1, 0xfc00}, {"nan", KL_f32, 1, 0x7fc00000}, {"-0.0", KL_f32, 1, 0x80000000},
        {"1e40", KL_f32, 1, 0x7f800000}, {"3", KL_bf16, 1, 0x4040}, {"0x1.8p1", KL_f64, 1,
        0x4008000000000000}, {"0.1", KL_f64, 1, 0x3fb999999999999a},
        /* a decimal just above a tie of f16: rounding to f32 first would lose what is above */
        {"1.00048828125000000001", KL_f16, 1, 0x3c00}, {"1.000488281250001", KL_f16, 1, 0x3c01},
        {"1.00048828125", KL_f16, 1, 0x3c00}, {"1.00390625000001", KL_bf16, 1, 0x3f81},
        {"", KL_i32, -1, 0}, {"x", KL_i32, -1, 0}, {"1x", KL_i32, -1, 0}, {"0x", KL_i32, -1, 0},
        {"infinity", KL_f32, -1, 0}, {"--1", KL_i32, -1, 0}, {"1 2", KL_i32, -1, 0},
        {"nan(3)", KL_f32, -1, 0}, {"1e", KL_f32, -1, 0}, {".", KL_f32, -1, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kl_number v;
        uint64_t bits = 0;
        int ok = !kl_number_parse(cases[i].text, strlen(cases[i].text), &v) ? -1
                 : kl_number_bits(&v, cases[i].e, &bits);
        if (ok != cases[i].ok || (ok == 1 && bits != cases[i].bits))
            fail_msg("%s as %s: %d, %llx", cases[i].text, kl_elems[cases[i].e].name, ok,
                     (unsigned long long)bits);
    }
}

static void shapes(void **state)
{
    static const struct { const char *text; int ndim; int64_t shape[4]; } cases[] = {
        {"4", 1, {4}}, {"512x1000", 2, {512, 1000}}, {"0x3x1", 3, {0, 3, 1}},
        {"9223372036854775807", 1, {INT64_MAX}}, {"", -1, {0}}, {"x", -1, {0}}, {"4x", -1, {0}},
        {"-1", -1, {0}}, {"4*5", -1, {0}}, {"9223372036854775808", -1, {0}},
        {"1x1x1x1x1x1x1x1x1", -1, {0}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t ndim;
        int64_t s[KL_DIMS];
        bool ok = kl_shape_parse(cases[i].text, strlen(cases[i].text), &ndim, s);
        assert_int_equal(ok ? ndim : -1, cases[i].ndim);
        for (int d = 0; ok && d < ndim; d++)
            assert_int_equal(s[d], cases[i].shape[d]);
    }
    uint64_t n;
    int64_t big[2] = {INT64_MAX / 2, 4}, edge[1] = {INT64_MAX / 4};
    assert_false(kl_shape_count(2, big, 1, &n));
    assert_true(kl_shape_count(1, edge, 4, &n));
    assert_false(kl_shape_count(1, edge, 8, &n));
}

static void values(void **state)
{
    static const struct { const char *text, *want; } cases[] = {
        /* kind, type, shape, count of numbers or elements; or the message */
        {"a.npy", "text"}, {"3.5", "text"}, {"@x", "alias x"}, {"@", "! needs the name"},
        {"rand(4x8,f32,7)", "gen f32 4x8 1"}, {"rand(4)", "gen none 4 0"},
        {"rand(4, f16 )", "gen f16 4 0"}, {"full(2,i32,5)", "gen i32 2 1"},
        {"full(2,5)", "gen none 2 1"}, {"full(2)", "! needs a value"},
        {"zeros(3,f32,1)", "! `1` is unexpected"}, {"rand(4x,f32)", "! no shape"},
        {"rand(4,f33)", "! no type `f33`"}, {"rand(4,float16)", "! write f16"},
        {"rand(4", "! `)` is missing"},
        {"rand(4,f32,-1)", "! seed"}, {"rand(4,f32,1.5)", "! seed"},
        {"randint(4,i32,10,3)", "gen i32 4 2"}, {"randint(4,i32,0)", "! limit"},
        {"rnad(4)", "text"}, {"{1,2,3}", "list none 3 3"}, {"{{1,2},{3,4}}", "list none 2x2 4"},
        {"{ {1, 2}, {3, 4}, }:f16", "list f16 2x2 4"}, {"{}", "list none 0 0"},
        {"{{},{}}", "list none 2x0 0"}, {"{{1},{2,3}}", "! rows differ"},
        {"{{1},2}", "! side by side"}, {"{1,{2}}", "! side by side"}, {"{{},1}", "! side by side"},
        {"{1,2", "! `}` is missing"}, {"{1;2}", "! is no number"}, {"{1,2}x", "! text after"},
        {"{1}:f99", "! no element type"}, {"{{{{{{{{{1}}}}}}}}}", "! too many levels"},
        {"{{1}{2}}", "! `,` is missing"}, {"{,}", "! is no number"}, {"{", "! is no number"},
    };
    static const char *const kind[] = {"text", "alias", "gen", "list"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kl_value v;
        struct kl_msg m = {0};
        char got[400], shape[100];
        if (!kl_value_parse(cases[i].text, &v, &m)) {
            if (cases[i].want[0] != '!' || !strstr(m.text, cases[i].want + 2))
                fail_msg("%s: %s", cases[i].text, m.text);
            continue;
        }
        if (v.kind == KL_VALUE_TEXT)
            snprintf(got, sizeof got, "text");
        else if (v.kind == KL_VALUE_ALIAS)
            snprintf(got, sizeof got, "alias %s", v.text);
        else
            snprintf(got, sizeof got, "%s %s %s %u", kind[v.kind], kl_elems[v.elem].name,
                     kl_shape_text(v.ndim, v.shape, shape, sizeof shape),
                     v.kind == KL_VALUE_LIST ? (unsigned)v.nitem : v.nnum);
        assert_string_equal(got, cases[i].want);
        kl_value_free(&v);
    }
}

/* The known answers of Philox 4x32-10 that its authors published. */
static void philox(void **state)
{
    uint32_t r[4];
    (void)state;
    kl_philox(0, 0, r);
    assert_int_equal(r[0], 0x6627e8d5);
    assert_int_equal(r[1], 0xe169c58d);
    assert_int_equal(r[2], 0xbc57ac4c);
    assert_int_equal(r[3], 0x9b00dbd8);
}

static void filled(void **state)
{
    enum { N = 20000 };
    struct kl_value v;
    struct kl_msg m;
    float *x = malloc(N * sizeof *x);
    uint16_t *h = malloc(N * sizeof *h);
    double *d = malloc(N * sizeof *d);
    double sum = 0, square = 0;
    (void)state;
    assert_true(kl_value_parse("rand(20000,f32)", &v, &m));
    assert_true(kl_value_fill(&v, KL_f32, x, N, &m));
    assert_true(x[0] == (float)(0x6627e8d5 >> 8) * 0x1p-24f);
    for (int i = 0; i < N; i++) {
        assert_true(x[i] >= 0 && x[i] < 1);
        sum += (double)x[i];
    }
    assert_true(fabs(sum / N - 0.5) < 0.01);
    assert_true(kl_value_fill(&v, KL_bf16, h, N, &m));
    for (int i = 0; i < N; i++)
        assert_true(h[i] < 0x3f80);
    assert_false(kl_value_fill(&v, KL_i32, x, N, &m));

    assert_true(kl_value_parse("randn(20000,f32,3)", &v, &m));
    assert_true(kl_value_fill(&v, KL_f64, d, N, &m));
    sum = 0;
    for (int i = 0; i < N; i++) {
        sum += d[i];
        square += d[i] * d[i];
        uint32_t r[4]; /* against libm */
        kl_philox(3, (uint64_t)i, r);
        double want = sqrt(-2 * log(((r[0] >> 8) + 1) * 0x1p-24)) *
                      cos(6.283185307179586 * ((r[1] >> 8) * 0x1p-24));
        assert_true(fabs(d[i] - want) < 4e-15);
    }
    assert_true(fabs(sum / N) < 0.03 && fabs(square / N - 1) < 0.04);

    int32_t k[16];
    assert_true(kl_value_parse("randint(16,i32,3)", &v, &m));
    assert_true(kl_value_fill(&v, KL_i32, k, 16, &m));
    for (int i = 0; i < 16; i++)
        assert_true(k[i] >= 0 && k[i] < 3);
    assert_true(kl_value_parse("range(16)", &v, &m));
    assert_true(kl_value_fill(&v, KL_i32, k, 16, &m));
    assert_true(k[0] == 0 && k[15] == 15);
    assert_true(kl_value_parse("full(4,-2.5)", &v, &m));
    assert_true(kl_value_fill(&v, KL_f32, x, 4, &m));
    assert_true(x[3] == -2.5f);
    assert_false(kl_value_fill(&v, KL_i32, k, 4, &m));
    free(x);
    free(h);
    free(d);
}

static void texts(void **state)
{
    static const struct { enum kl_elem e; uint64_t bits; const char *want; } cases[] = {
        {KL_f32, 0x3dcccccd, "0.1"}, {KL_f32, 0x3eaaaaab, "0.33333334"}, {KL_bf16, 0x3eab, "0.334"},
        {KL_f16, 0x3555, "0.3333"}, {KL_f64, 0x3fb999999999999a, "0.1"}, {KL_i32, (uint64_t)-5, "-5"},
        {KL_u32, 4294967295u, "4294967295"}, {KL_bool, 1, "true"}, {KL_f32, 0x7f800000, "inf"},
        {KL_f32, 0xff800000, "-inf"}, {KL_f32, 0xffc00000, "nan"}, {KL_f32, 0x80000000, "-0"},
        {KL_f32, 0x00000001, "1e-45"}, {KL_f32, 0x7f7fffff, "3.4028235e+38"},
    };
    char buf[32];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(kl_elem_text(cases[i].e, cases[i].bits, buf), cases[i].want);
}

static const kiln_param_info y_info = {.name = "y", .kind = KILN_PARAM_ARRAY, .writes = 1};

static struct kl_arr array(enum kl_elem e, int64_t n, void *data)
{
    return (struct kl_arr){.p = &y_info, .elem = e, .ndim = 1, .shape = {n}, .stride = {1},
                           .count = (uint64_t)n, .data = data, .dense = true};
}

/* Several threads fill a large array: each element is still that of its number. */
static void filled_in_parts(void **state)
{
    enum { N = (3 << 20) + 5 };
    struct kl_value v;
    struct kl_msg m;
    float *x = malloc(N * sizeof *x);
    (void)state;
    assert_non_null(x);
    assert_true(kl_value_parse("rand(3145733,f32,9)", &v, &m));
    assert_true(kl_value_fill(&v, KL_f32, x, N, &m));
    for (uint64_t i = 0; i < N; i += i < 1000 || i > N - 100 ? 1 : 997) {
        uint32_t r[4];
        kl_philox(9, i, r);
        assert_true(x[i] == (float)(r[0] >> 8) / 16777216.0f);
    }
    kl_value_free(&v);
    free(x);
}

static void compared(void **state)
{
    float got[4] = {1, 2, 3, 4}, ref[4] = {1, 2, 3, 4};
    double wide[4] = {1, 2, 3, 4.0000001};
    struct kl_arr a = array(KL_f32, 4, got), b = array(KL_f32, 4, ref), w = array(KL_f64, 4, wide);
    struct kl_tol dflt = {0}, exact = {KL_TOL_EXACT, 0}, ulp1 = {KL_TOL_ULP, 1}, rel;
    struct kl_cmp c;
    (void)state;
    kl_compare(&a, &b, &dflt, &c);
    assert_true(c.ok && c.differ == 0);
    ref[2] = nextafterf(3, 4);
    kl_compare(&a, &b, &exact, &c);
    assert_true(!c.ok && c.differ == 1 && c.worst == 2 && c.max_ulp == 1);
    kl_compare(&a, &b, &ulp1, &c);
    assert_true(c.ok);
    kl_compare(&a, &b, &dflt, &c);
    assert_true(c.ok && c.rms < 1e-6 && c.rms > 0);
    kl_compare(&a, &w, &ulp1, &c); /* a double reference gives a fraction of a unit */
    assert_true(c.ok && c.max_ulp > 0.2 && c.max_ulp < 0.3);
    ref[2] = 3;
    got[1] = (float)NAN;
    kl_compare(&a, &b, &dflt, &c);
    assert_true(!c.ok && c.masks == 1 && c.worst == 1);
    ref[1] = kl_bits_f32(0xffc00123); /* any NaN for any NaN */
    kl_compare(&a, &b, &exact, &c);
    assert_true(c.ok);
    ref[1] = -(float)INFINITY;
    got[1] = (float)INFINITY;
    kl_compare(&a, &b, &dflt, &c);
    assert_true(!c.ok && c.masks == 1);
    /* an output of zeros passes no tolerance, however small the values are */
    float zero[4] = {0}, small[4] = {1e-7f, 2e-7f, 1e-7f, 3e-7f};
    struct kl_arr z = array(KL_f32, 4, zero), s = array(KL_f32, 4, small);
    assert_true(kl_tol_parse("1e-2", &rel) && rel.kind == KL_TOL_REL);
    kl_compare(&z, &s, &rel, &c);
    assert_true(!c.ok && c.beyond == 4);
    int32_t i1[2] = {1, 2}, i2[2] = {1, 3};
    struct kl_arr p = array(KL_i32, 2, i1), q = array(KL_i32, 2, i2);
    kl_compare(&p, &q, &dflt, &c);
    assert_true(!c.ok && c.differ == 1 && c.worst == 1);
    assert_true(kl_tol_parse("2ulp", &rel) && rel.kind == KL_TOL_ULP);
    assert_true(rel.v == 2);
    assert_false(kl_tol_parse("ulp", &rel) || kl_tol_parse("-1", &rel) || kl_tol_parse("", &rel) ||
                 kl_tol_parse("nan", &rel) || kl_tol_parse("inf", &rel));
}

/* Large arrays are compared in parts: what is first, worst and counted crosses them. */
static void compared_in_parts(void **state)
{
    enum { N = (5 << 19) + 3 };
    float *got = malloc(N * sizeof *got), *ref = malloc(N * sizeof *ref);
    struct kl_arr a = array(KL_f32, N, got), b = array(KL_f32, N, ref);
    struct kl_tol dflt = {0}, exact = {KL_TOL_EXACT, 0}, rel = {KL_TOL_REL, 0.5};
    struct kl_cmp c;
    (void)state;
    assert_true(got && ref);
    for (size_t i = 0; i < N; i++)
        got[i] = ref[i] = i % 2 ? 1 : -1;
    kl_compare(&a, &b, &exact, &c);
    assert_true(c.ok && c.count == N && c.differ == 0 && c.rms == 0);
    got[1 << 20] = -3;           /* the first element of the second part */
    got[N - 1] = ref[N - 1] + 5; /* the last one */
    kl_compare(&a, &b, &dflt, &c);
    assert_true(c.differ == 2 && c.worst == N - 1 && c.max_abs == 5 && !c.ok);
    assert_true(fabs(c.rms - sqrt((4 + 25) / (double)N)) < 1e-12);
    kl_compare(&a, &b, &rel, &c);
    assert_true(c.beyond == 2 && c.worst == 1 << 20 && c.nfirst == 2);
    assert_true(c.first[0] == 1 << 20 && c.first[1] == N - 1);
    free(got);
    free(ref);
}

static void poisoned(void **state)
{
    (void)state;
    for (int e = 1; e < KL_NELEM; e++) {
        char buf[64];
        struct kl_arr a = array((enum kl_elem)e, 5, buf);
        kl_arr_poison(&a, 0);
        assert_int_equal(kl_arr_poisoned(&a), 5);
        kl_elem_store((enum kl_elem)e, buf, 1);
        assert_int_equal(kl_arr_poisoned(&a), 4);
        kl_arr_poison(&a, 1);
        assert_int_equal(kl_arr_poisoned(&a), 0);
        if (kl_is_float((enum kl_elem)e) && e != KL_f8e4m3 && e != KL_f8e5m2) {
            double v = kl_elem_double((enum kl_elem)e, kl_elem_load((enum kl_elem)e, buf));
            assert_true(v != v);
        }
    }
}

/* Column-major: elements in row-major order. */
static void strided(void **state)
{
    float x[6] = {0, 1, 2, 3, 4, 5};
    struct kl_arr a = {.p = &y_info, .elem = KL_f32, .ndim = 2, .shape = {2, 3}, .stride = {1, 2},
                       .count = 6, .data = x};
    static const float want[6] = {0, 2, 4, 1, 3, 5};
    char at[32];
    (void)state;
    for (uint64_t i = 0; i < 6; i++)
        assert_true(*(const float *)kl_arr_at(&a, i) == want[i]);
    assert_string_equal(kl_index_text(&a, 5, at, sizeof at), "[1][2]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),  cmocka_unit_test(shapes),   cmocka_unit_test(values),
        cmocka_unit_test(philox),   cmocka_unit_test(filled),   cmocka_unit_test(texts),
        cmocka_unit_test(filled_in_parts),
        cmocka_unit_test(compared_in_parts),
        cmocka_unit_test(compared), cmocka_unit_test(poisoned), cmocka_unit_test(strided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
