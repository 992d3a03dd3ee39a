/* test_kernels.c - the kernels of kernels/ on arrays that are not dense: leading dimensions,
 * transposed and reversed arrays, parts of larger ones.  Through kiln.h only, on the interpreter
 * and on the CPU, against plain C in double precision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln.h"

struct fixture {
    kiln_context *ctx[2];
    unsigned n;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    kiln_options o = KILN_OPTIONS_INIT;
    if (!f)
        return -1;
    o.device = KILN_DEVICE_INTERP;
    o.checks = KILN_CHECK_ALL;
    assert_int_equal(kiln_context_create(&o, &f->ctx[f->n++], NULL), KILN_OK);
    o = (kiln_options)KILN_OPTIONS_INIT;
    kiln_options_from_env(&o);
    o.device = KILN_DEVICE_CPU;
    o.threads = 2;
    if (o.cc && kiln_context_create(&o, &f->ctx[f->n], NULL) == KILN_OK)
        f->n++;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < f->n; i++)
        kiln_context_free(f->ctx[i]);
    free(f);
    return 0;
}

static kiln_module *load(kiln_context *ctx, const char *path)
{
    static char text[1 << 18];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    kiln_module *m = NULL;
    assert_int_equal(kiln_compile(ctx, path, text, n, &m, NULL), KILN_OK);
    return m;
}

/* A matrix in memory: rows x cols with any strides, values from a fixed sequence. */
struct matrix {
    float mem[4096];
    int64_t shape[2], strides[2];
    float *at0;
};

static void matrix_make(struct matrix *m, int64_t rows, int64_t cols, int64_t rs, int64_t cs,
                        unsigned seed)
{
    for (size_t i = 0; i < 4096; i++) {
        seed = seed * 1664525u + 1013904223u;
        m->mem[i] = (float)((int)(seed >> 20) - 2048) / 700.0f;
    }
    m->shape[0] = rows;
    m->shape[1] = cols;
    m->strides[0] = rs;
    m->strides[1] = cs;
    m->at0 = m->mem + 100 + (rs < 0 ? -rs * (rows - 1) : 0) + (cs < 0 ? -cs * (cols - 1) : 0);
}

static float *cell(const struct matrix *m, int64_t r, int64_t c)
{
    return (float *)m->at0 + r * m->strides[0] + c * m->strides[1];
}

static kiln_arg array(const char *name, const struct matrix *m)
{
    kiln_arg a = {.name = name, .kind = KILN_ARG_TENSOR};
    a.u.tensor = (kiln_tensor){.data = m->at0, .dtype = KILN_F32, .ndim = 2, .shape = m->shape,
                               .strides = m->strides};
    return a;
}

static void launch(kiln_module *mod, const char *name, const kiln_arg *args, size_t n)
{
    kiln_diags *d = NULL;
    kiln_kernel *k = kiln_module_kernel(mod, name);
    assert_non_null(k);
    kiln_status s = kiln_launch(k, NULL, args, n, &d);
    if (s != KILN_OK) {
        static char text[4000];
        kiln_diags_render(d, 0, text, sizeof text);
        print_error("%s\n", text);
    }
    kiln_diags_free(d);
    assert_int_equal(s, KILN_OK);
}

/* Nothing but the matrix's own cells may have changed. */
static void assert_rest_untouched(const struct matrix *now, const struct matrix *before)
{
    static char inside[4096];
    memset(inside, 0, sizeof inside);
    for (int64_t r = 0; r < now->shape[0]; r++)
        for (int64_t c = 0; c < now->shape[1]; c++)
            inside[cell(now, r, c) - now->mem] = 1;
    for (size_t i = 0; i < 4096; i++)
        if (!inside[i])
            assert_memory_equal(&now->mem[i], &before->mem[i], sizeof(float));
}

static void leading_dimensions(void **state)
{
    static const struct {
        int64_t m, n, k, ldc, lda, ldb;
    } t[] = {{5, 7, 9, 7, 9, 7}, {5, 7, 9, 20, 11, 13}, {17, 33, 20, 40, 31, 35}, {1, 1, 1, 3, 4, 5}};
    struct fixture *f = *state;
    for (unsigned x = 0; x < f->n; x++) {
        kiln_module *mod = load(f->ctx[x], "kernels/matmul.kiln");
        for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
            static struct matrix a, b, c, before;
            matrix_make(&a, t[i].m, t[i].k, t[i].lda, 1, 1);
            matrix_make(&b, t[i].k, t[i].n, t[i].ldb, 1, 2);
            matrix_make(&c, t[i].m, t[i].n, t[i].ldc, 1, 3);
            before = c;
            kiln_arg args[6] = {array("a", &a), array("b", &b), array("c", &c)};
            for (unsigned j = 0; j < 3; j++) {
                static const char *const names[] = {"BM", "BN", "BK"};
                args[3 + j] = (kiln_arg){.name = names[j], .kind = KILN_ARG_INT, .u = {.i = 8}};
            }
            launch(mod, "matmul", args, 6);
            for (int64_t r = 0; r < t[i].m; r++)
                for (int64_t q = 0; q < t[i].n; q++) {
                    double want = 0, size = 0;
                    for (int64_t k = 0; k < t[i].k; k++) {
                        want += (double)*cell(&a, r, k) * (double)*cell(&b, k, q);
                        size += fabs((double)*cell(&a, r, k) * (double)*cell(&b, k, q));
                    }
                    assert_true(fabs((double)*cell(&c, r, q) - want) <=
                                (double)t[i].k * 6e-8 * size + 1e-30);
                }
            assert_rest_untouched(&c, &before);
        }
        kiln_module_free(mod);
    }
}

static void strided_softmax(void **state)
{
    static const struct {
        int64_t rows, cols, yr, yc, xr, xc;
    } t[] = {
        {5, 9, 9, 1, 9, 1},     /* dense */
        {5, 9, 1, 5, 9, 1},     /* written as columns */
        {5, 9, 12, 1, 1, 6},    /* read as columns */
        {5, 9, -9, 1, -11, 1},  /* rows from below */
        {5, 9, 9, 1, 30, -3},   /* columns backwards, every third */
        {4, 33, 40, 1, 0, 1},   /* one row read for all */
    };
    struct fixture *f = *state;
    for (unsigned x = 0; x < f->n; x++) {
        kiln_module *mod = load(f->ctx[x], "kernels/softmax.kiln");
        for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
            static struct matrix in, out, before;
            matrix_make(&in, t[i].rows, t[i].cols, t[i].xr, t[i].xc, 7);
            matrix_make(&out, t[i].rows, t[i].cols, t[i].yr, t[i].yc, 8);
            before = out;
            kiln_arg args[] = {array("y", &out), array("x", &in)};
            launch(mod, "softmax_strided", args, 2);
            for (int64_t r = 0; r < t[i].rows; r++) {
                double m = -HUGE_VAL, sum = 0;
                for (int64_t c = 0; c < t[i].cols; c++)
                    m = fmax(m, (double)*cell(&in, r, c));
                for (int64_t c = 0; c < t[i].cols; c++)
                    sum += exp((double)*cell(&in, r, c) - m);
                for (int64_t c = 0; c < t[i].cols; c++) {
                    double want = exp((double)*cell(&in, r, c) - m) / sum;
                    assert_true(fabs((double)*cell(&out, r, c) - want) <= 2e-6 * want);
                }
            }
            assert_rest_untouched(&out, &before);
        }
        kiln_module_free(mod);
    }
}

/* A dense parameter refuses what is not dense, and nothing runs. */
static void dense_is_demanded(void **state)
{
    struct fixture *f = *state;
    for (unsigned x = 0; x < f->n; x++) {
        kiln_module *mod = load(f->ctx[x], "kernels/softmax.kiln");
        static struct matrix in, out, before;
        matrix_make(&in, 5, 9, 12, 1, 1);
        matrix_make(&out, 5, 9, 9, 1, 2);
        before = out;
        kiln_arg args[] = {array("y", &out), array("x", &in)};
        kiln_diags *d = NULL;
        assert_int_equal(kiln_launch(kiln_module_kernel(mod, "softmax"), NULL, args, 2, &d),
                         KILN_E_ARG);
        assert_int_equal(kiln_diags_count(d), 1);
        assert_string_equal(kiln_diags_at(d, 0)->code, "K0708");
        assert_memory_equal(&out, &before, sizeof out);
        kiln_diags_free(d);
        kiln_module_free(mod);
    }
}

/* Rows of 10 are summed in two stages: parts of long rows, then the parts. */
static void two_stages(void **state)
{
    struct fixture *f = *state;
    for (unsigned x = 0; x < f->n; x++) {
        kiln_module *mod = load(f->ctx[x], "kernels/rowsum.kiln");
        static float in[3][1000], part[3][4], s[3];
        int64_t is[] = {3, 1000}, ps[] = {3, 4}, ss[] = {3};
        double want[3] = {0};
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 1000; c++) {
                in[r][c] = (float)((r + 1) * (c % 17) - 20);
                want[r] += (double)in[r][c];
            }
        kiln_arg a[] = {{.name = "x", .kind = KILN_ARG_TENSOR},
                        {.name = "partial", .kind = KILN_ARG_TENSOR},
                        {.name = "BLOCK", .kind = KILN_ARG_INT, .u = {.i = 64}}};
        a[0].u.tensor = (kiln_tensor){.data = in, .dtype = KILN_F32, .ndim = 2, .shape = is};
        a[1].u.tensor = (kiln_tensor){.data = part, .dtype = KILN_F32, .ndim = 2, .shape = ps};
        launch(mod, "rowsum_parts", a, 3);
        kiln_arg b[] = {a[1], {.name = "s", .kind = KILN_ARG_TENSOR}};
        b[1].u.tensor = (kiln_tensor){.data = s, .dtype = KILN_F32, .ndim = 1, .shape = ss};
        launch(mod, "rowsum_join", b, 2);
        for (int r = 0; r < 3; r++)
            assert_true((double)s[r] == want[r]); /* small integers: exact */
        kiln_module_free(mod);
    }
}

/* A folder for generated code that cannot be written to is a warning. */
static void keep_folder(void **state)
{
    struct fixture *f = *state;
    if (f->n < 2)
        skip();
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_options_from_env(&o);
    o.device = KILN_DEVICE_CPU;
    o.keep_dir = "/dev/null/nowhere";
    kiln_context *ctx = NULL;
    assert_int_equal(kiln_context_create(&o, &ctx, NULL), KILN_OK);
    kiln_module *mod = load(ctx, "kernels/add.kiln");
    float x[4] = {1, 2, 3, 4}, z[4] = {0};
    int64_t shape[] = {4};
    kiln_arg a[3] = {{.name = "z", .kind = KILN_ARG_TENSOR}};
    a[0].u.tensor = (kiln_tensor){.data = z, .dtype = KILN_F32, .ndim = 1, .shape = shape};
    a[1] = a[2] = a[0];
    a[1].name = "x";
    a[2].name = "y";
    a[1].u.tensor.data = a[2].u.tensor.data = x;
    kiln_diags *d = NULL;
    assert_int_equal(kiln_launch(kiln_module_kernel(mod, "add"), NULL, a, 3, &d), KILN_OK);
    assert_int_equal(kiln_diags_count(d), 1);
    assert_string_equal(kiln_diags_at(d, 0)->code, "K1808");
    assert_true(z[3] == 8);
    kiln_diags_free(d);
    kiln_module_free(mod);
    kiln_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leading_dimensions),
        cmocka_unit_test(strided_softmax),
        cmocka_unit_test(dense_is_demanded),
        cmocka_unit_test(two_stages),
        cmocka_unit_test(keep_folder),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
