/* test_tune.c - kiln_module_tune: what launches take from a text, what they do not, and what is
 * said about a text that is wrong or out of date. */
#define _GNU_SOURCE
#include "common.h"

#include "base/tunefile.h"
#include "kiln_nn.h"
#include "lang/ast.h"
#include "tool.h"

static const char source[] =
    "kernel blocks(i64 n, type T = f32, constexpr i64 B = 256, i64 y[cdiv(n, B)], const T x[n])\n"
    "    grid(cdiv(n, B))\n"
    "    tune(B: 128, 256, 512; warps: 2, 4)\n"
    "{\n"
    "    y[program_id(0)] = B;\n"
    "}\n"
    "kernel row(i64 n, i64 y[n], constexpr i64 B = pow2ceil(n))\n"
    "    grid(1)\n"
    "    requires(B >= n, \"B holds the row\")\n"
    "{\n"
    "    y[0:B] = B;\n"
    "}\n";

/* The block that a launch on n elements takes: what y is, and as the shape of y says. */
static int64_t block(kiln_kernel *k, kiln_dtype t, int64_t n, const kiln_arg *more, size_t nmore)
{
    int64_t *y = calloc((size_t)n, 8), shape[8], parts;
    float *x = calloc((size_t)n, 8);
    kiln_dtype dt;
    int32_t nd;
    kiln_diags *d = NULL;
    kiln_arg a[4] = {{.name = "x", .kind = KILN_ARG_TENSOR}};
    a[0].u.tensor = (kiln_tensor){.data = x, .dtype = t, .ndim = 1, .shape = &n};
    for (size_t i = 0; i < nmore; i++)
        a[1 + i] = more[i];
    assert_int_equal(kiln_infer_shape(k, a, 1 + nmore, "y", &dt, &nd, shape, NULL), KILN_OK);
    parts = shape[0];
    a[1 + nmore] = (kiln_arg){.name = "y", .kind = KILN_ARG_TENSOR};
    a[1 + nmore].u.tensor = (kiln_tensor){.data = y, .dtype = KILN_I64, .ndim = 1, .shape = &parts};
    kiln_status s = kiln_launch(k, NULL, a, 2 + nmore, &d);
    show(d);
    assert_int_equal(s, KILN_OK);
    int64_t b = y[0];
    assert_int_equal(parts, (n + b - 1) / b);
    free(x);
    free(y);
    return b;
}

static kiln_status tune(kiln_module *m, const char *text, kiln_diags **d)
{
    return kiln_module_tune(m, "t.tune", text, strlen(text), d);
}

static void taken(void **state)
{
    kiln_context *ctx = interp();
    kiln_module *m = compile(ctx, source);
    kiln_kernel *k = kiln_module_kernel(m, "blocks");
    const kiln_arg given = {.name = "B", .kind = KILN_ARG_INT, .u = {.i = 64}};
    (void)state;
    assert_int_equal(block(k, KILN_F32, 1000, NULL, 0), 256);
    assert_int_equal(tune(m,
                          "kiln-tune 1\n"
                          "kernel blocks\n use B=8\n device cuda\n"
                          "kernel blocks\n use B=128\n device interp\n"
                          "kernel blocks\n use B=512 warps=4\n when n=1024 T=f32\n"
                          "kernel blocks\n use default\n when n=4096\n",
                          NULL),
                     KILN_OK);
    assert_int_equal(block(k, KILN_F32, 1000, NULL, 0), 512); /* the last one that fits */
    assert_int_equal(block(k, KILN_F32, 1024, NULL, 0), 512);
    assert_int_equal(block(k, KILN_F32, 1025, NULL, 0), 128); /* another class */
    assert_int_equal(block(k, KILN_F64, 1000, NULL, 0), 128); /* another type */
    assert_int_equal(block(k, KILN_F32, 4000, NULL, 0), 256); /* the kernel's own */
    assert_int_equal(block(k, KILN_F32, 1000, &given, 1), 64); /* what is given stays */
    assert_int_equal(tune(m, "kiln-tune 1\nkernel blocks\nuse B=32\n", NULL), KILN_OK);
    assert_int_equal(block(k, KILN_F32, 1000, NULL, 0), 32); /* in place of the one before */
    assert_int_equal(kiln_module_tune(m, NULL, NULL, 0, NULL), KILN_OK);
    assert_int_equal(block(k, KILN_F32, 1000, NULL, 0), 256);
    kiln_module_free(m);
    kiln_context_free(ctx);
}

/* `when n>=` and `with`. */
static void at_least_and_with(void **state)
{
    static const char two[] =
        "kernel two(i64 n, constexpr i64 M = 0, constexpr bool C = M == 0, constexpr i64 B = 256,\n"
        "    i64 y[cdiv(n, B)], const f32 x[n]) grid(cdiv(n, B))\n"
        "{\n"
        "    y[program_id(0)] = B;\n"
        "}\n";
    kiln_context *ctx = interp();
    kiln_module *m = compile(ctx, two);
    kiln_kernel *k = kiln_module_kernel(m, "two");
    kiln_arg mode = {.name = "M", .kind = KILN_ARG_INT};
    (void)state;
    assert_int_equal(tune(m,
                          "kiln-tune 1\n"
                          "kernel two\n when n>=1024\n use B=8\n"
                          "kernel two\n when n>=4096\n use B=16\n"
                          "kernel two\n when n=8192\n use B=32\n"
                          "kernel two\n when n>=1024\n with M=2\n use B=64\n"
                          "kernel two\n when n=256\n with M=0\n use B=128\n"
                          "kernel two\n when n=256\n with M=3 warps=4\n use B=512\n"
                          "kernel two\n when n=128\n with C=0\n use B=2\n",
                          NULL),
                     KILN_OK);
    assert_int_equal(block(k, KILN_F32, 512, NULL, 0), 256); /* below 1024 */
    assert_int_equal(block(k, KILN_F32, 513, NULL, 0), 8);
    assert_int_equal(block(k, KILN_F32, 2049, NULL, 0), 16);
    assert_int_equal(block(k, KILN_F32, 8000, NULL, 0), 32);
    assert_int_equal(block(k, KILN_F32, 9000, NULL, 0), 16);
    assert_int_equal(block(k, KILN_F32, 256, NULL, 0), 128); /* M is 0 by its default */
    mode.u.i = 2;
    assert_int_equal(block(k, KILN_F32, 8000, &mode, 1), 64);
    assert_int_equal(block(k, KILN_F32, 256, &mode, 1), 256);
    mode.u.i = 3;
    assert_int_equal(block(k, KILN_F32, 8000, &mode, 1), 32); /* nothing is said of 3 */
    assert_int_equal(block(k, KILN_F32, 256, &mode, 1), 256); /* warps are not given */
    const kiln_arg both[2] = {mode, {.name = "warps", .kind = KILN_ARG_INT, .u = {.i = 4}}};
    assert_int_equal(block(k, KILN_F32, 256, both, 2), 512);
    assert_int_equal(block(k, KILN_F32, 128, &mode, 1), 2); /* C follows from M */
    assert_int_equal(block(k, KILN_F32, 128, NULL, 0), 256);
    kiln_module_free(m);
    kiln_context_free(ctx);
}

/* An entry stands for a class of sizes, and need not fit all of them. */
static void not_allowed(void **state)
{
    kiln_context *ctx = interp();
    kiln_module *m = compile(ctx, source);
    kiln_kernel *k = kiln_module_kernel(m, "row");
    int64_t n = 70, y[128];
    kiln_arg a = {.name = "y", .kind = KILN_ARG_TENSOR};
    (void)state;
    a.u.tensor = (kiln_tensor){.data = y, .dtype = KILN_I64, .ndim = 1, .shape = &n};
    assert_int_equal(tune(m, "kiln-tune 1\nkernel row\nuse B=64\n", NULL), KILN_OK);
    assert_int_equal(kiln_launch(k, NULL, &a, 1, NULL), KILN_OK);
    assert_int_equal(y[69], 128);
    n = 60;
    assert_int_equal(kiln_launch(k, NULL, &a, 1, NULL), KILN_OK);
    assert_int_equal(y[59], 64);
    kiln_module_free(m);
    kiln_context_free(ctx);
}

static void knobs(void **state)
{
    const kiln_options opt = {.size = sizeof opt, .device = KILN_DEVICE_SIM};
    kiln_context *ctx;
    int64_t n = 2048, parts = 8, *y = calloc(8, 8);
    float *x = calloc(2048, 4);
    kiln_spec *s;
    kiln_diags *d = NULL;
    kiln_arg a[3] = {{.name = "x", .kind = KILN_ARG_TENSOR}, {.name = "y", .kind = KILN_ARG_TENSOR},
                     {.name = "warps", .kind = KILN_ARG_INT, .u = {.i = 8}}};
    (void)state;
    assert_int_equal(kiln_context_create(&opt, &ctx, NULL), KILN_OK);
    kiln_module *m = compile(ctx, source);
    kiln_kernel *k = kiln_module_kernel(m, "blocks");
    a[0].u.tensor = (kiln_tensor){.data = x, .dtype = KILN_F32, .ndim = 1, .shape = &n};
    a[1].u.tensor = (kiln_tensor){.data = y, .dtype = KILN_I64, .ndim = 1, .shape = &parts};
    assert_int_equal(kiln_specialize(k, a, 3, &s, NULL), KILN_OK);
    assert_int_equal(kiln_spec_get_info(s)->cta_threads, 256);
    kiln_spec_free(s);
    assert_int_equal(tune(m, "kiln-tune 1\nkernel blocks\nuse warps=4\ndevice sim sm_90\n", NULL), KILN_OK);
    assert_int_equal(kiln_specialize(k, a, 2, &s, NULL), KILN_OK);
    assert_int_equal(kiln_spec_get_info(s)->cta_threads, 128);
    kiln_spec_free(s);
    assert_int_equal(kiln_specialize(k, a, 3, &s, NULL), KILN_OK); /* given */
    assert_int_equal(kiln_spec_get_info(s)->cta_threads, 256);
    kiln_spec_free(s);
    a[2].u.i = 65;
    assert_int_equal(kiln_specialize(k, a, 3, &s, &d), KILN_E_ARG);
    assert_string_equal(kiln_diags_at(d, 0)->code, "K0705");
    kiln_diags_free(d);
    kiln_module_free(m);
    kiln_context_free(ctx);
    free(x);
    free(y);
}

static void expect(kiln_module *m, const char *text, kiln_status st, const char *code, uint32_t line,
                   const char *word)
{
    kiln_diags *d = NULL;
    assert_int_equal(tune(m, text, &d), st);
    assert_int_equal(kiln_diags_count(d), 1);
    const kiln_diag *g = kiln_diags_at(d, 0);
    assert_string_equal(g->code, code);
    assert_string_equal(g->place.file, "t.tune");
    assert_int_equal(g->place.line, line);
    if (!strstr(g->text, word))
        fail_msg("%s", g->text);
    kiln_diags_free(d);
}

static void mistakes(void **state)
{
    kiln_context *ctx = interp();
    kiln_module *m = compile(ctx, source);
    kiln_kernel *k = kiln_module_kernel(m, "blocks");
    kiln_diags *d = NULL;
    (void)state;
    assert_int_equal(tune(m, "kiln-tune 1\nkernel blocks\nuse B=32\n", NULL), KILN_OK);
    expect(m, "kiln-tune 1\nkernel blocks\nuse B 32\n", KILN_E_ARG, "K1819", 3, "NAME=VALUE");
    expect(m, "kiln-tune 1\nkernel blocks\nuse C=32\n", KILN_E_ARG, "K1819", 2, "no constant `C`");
    expect(m, "kiln-tune 1\nkernel blocks\nwith C=32\nuse B=1\n", KILN_E_ARG, "K1819", 2, "no constant `C`");
    expect(m, "kiln-tune 1\nkernel blocks\nuse n=32\n", KILN_E_ARG, "K1819", 2, "no constant `n`");
    expect(m, "kiln-tune 1\n\nkernel blocks\nwhen m=32\nuse B=1\n", KILN_E_ARG, "K1819", 3, "no size `m`");
    expect(m, "kiln-tune 1\nkernel blocks\nwhen U=f32\nuse B=1\n", KILN_E_ARG, "K1819", 2, "no type `U`");
    assert_int_equal(block(k, KILN_F32, 1000, NULL, 0), 32); /* the one before still holds */
    expect(m, "kiln-tune 1\nkernel gone\nuse B=32\n", KILN_OK, "K1820", 2, "no kernel `gone`");
    expect(m, "kiln-tune 1\nkernel blocks\nsource 0123456789abcdef\nuse B=32\n", KILN_OK, "K1820", 2,
           "has changed");
    assert_int_equal(block(k, KILN_F32, 1000, NULL, 0), 256);
    assert_int_equal(kiln_module_tune(NULL, "t", "", 0, NULL), KILN_E_ARG);
    assert_int_equal(kiln_module_tune(m, "t", NULL, 3, &d), KILN_E_ARG);
    assert_string_equal(kiln_diags_at(d, 0)->code, "K1809");
    kiln_diags_free(d);
    kiln_module_free(m);
    kiln_context_free(ctx);
}

/* What comes with the library is for GPUs alone, is understood, and found for these kernels. */
static void shipped(void **state)
{
    kiln_context *ctx = interp();
    const char *name;
    (void)state;
    for (uint32_t i = 0; (name = kl_embedded_tune_name(i)); i++) {
        char file[100];
        uint32_t len, ntext, line;
        const char *why = "", *tuned = kl_embedded_tune(name, &len), *text;
        kl_env env = {.al = &kl_alloc_libc};
        kl_arena a = {.env = &env};
        kl_tunefile f = {.a = &a};
        kiln_module *m;
        kiln_diags *d = NULL;
        snprintf(file, sizeof file, "%.*s", (int)(strlen(name) - strlen(".tune")), name);
        text = kl_embedded(file, &ntext);
        assert_non_null(text);
        assert_int_equal(kiln_compile(ctx, file, text, ntext, &m, NULL), KILN_OK);
        if (!kl_tunefile_parse(&f, tuned, len, &line, &why))
            fail_msg("%s:%u: %s", name, line, why);
        for (uint32_t k = 0; k < f.entry.n; k++)
            if (strncmp(f.entry.v[k].device, "cuda sm_", 8) != 0 || !f.entry.v[k].source)
                fail_msg("%s:%u: an entry needs `device cuda sm_..` and `source`", name,
                         f.entry.v[k].line);
        for (uint32_t k = 0; k < f.entry.n; k++) { /* each of its devices takes its own */
            assert_int_equal(kl_tool_tune(m, name, tuned, len, f.entry.v[k].device, &d), KILN_OK);
            if (kiln_diags_count(d))
                fail_msg("%s: %s", name, kiln_diags_at(d, 0)->text);
            kiln_diags_free(d);
            assert_true(kl_tool_tuned_count(m) > 0);
        }
        assert_int_equal(kiln_module_tune(m, name, tuned, len, NULL), KILN_OK);
        assert_int_equal(kl_tool_tuned_count(m), 0); /* none is for the interpreter */
        kl_arena_free(&a);
        kiln_module_free(m);
    }
    kiln_context_free(ctx);
}

static void programs(void *user, const kiln_trace_event *e)
{
    if (e->kind == KILN_TRACE_KERNEL && e->programs)
        *(uint64_t *)user = e->programs;
}

/* What a function of kiln_nn.h would choose by itself stands behind what was tuned. */
static void chosen_by_nn(void **state)
{
    static float q[64 * 16], k[64 * 16], v[64 * 16], o[64 * 16], first[64 * 16];
    const int64_t shape[4] = {1, 1, 64, 16};
    kiln_tensor t[4] = {{.data = o}, {.data = q}, {.data = k}, {.data = v}};
    kiln_options opt = KILN_OPTIONS_INIT;
    kiln_context *ctx = NULL;
    kiln_module *m;
    kiln_nn *nn;
    uint64_t n = 0;
    (void)state;
    for (int i = 0; i < 64 * 16; i++) {
        q[i] = (float)(i * 37 % 101) / 50 - 1;
        k[i] = (float)(i * 53 % 97) / 50 - 1;
        v[i] = (float)(i * 29 % 103) / 50 - 1;
    }
    for (int i = 0; i < 4; i++) {
        t[i].dtype = KILN_F32;
        t[i].ndim = 4;
        t[i].shape = shape;
    }
    kiln_options_from_env(&opt);
    opt.device = KILN_DEVICE_CPU;
    if (!opt.cc || kiln_context_create(&opt, &ctx, NULL) != KILN_OK)
        skip();
    assert_int_equal(kiln_nn_create(ctx, &nn, NULL), KILN_OK);
    assert_int_equal(kiln_context_trace(ctx, 0, programs, &n, NULL), KILN_OK);
    static const struct {
        const char *text;
        uint64_t programs;
    } as[] = {{"", 1},
              {"kiln-tune 1\nkernel attention\nwhen L=64\nuse BM=16\n", 4},
              {"kiln-tune 1\nkernel attention\nwhen L=64\nuse BM=8 BN=32\n", 8},
              {"kiln-tune 1\nkernel attention\nwhen L=64\nwith CAUSAL=1\nuse BM=8\n", 1},
              {"", 1}};
    for (size_t i = 0; i < sizeof as / sizeof *as; i++) {
        assert_int_equal(kiln_nn_module(nn, "attention", &m, NULL), KILN_OK);
        assert_int_equal(kiln_module_tune(m, "t", as[i].text, strlen(as[i].text), NULL), KILN_OK);
        assert_int_equal(kiln_nn_attention(nn, NULL, &t[0], NULL, &t[1], &t[2], &t[3], NULL, NULL),
                         KILN_OK);
        assert_int_equal(n, as[i].programs);
        if (i == 0)
            memcpy(first, o, sizeof o);
        for (int j = 0; j < 64 * 16; j++) /* other blocks, other last bits */
            if (!(fabsf(o[j] - first[j]) < 1e-5f))
                fail_msg("%s: element %d is %g, not %g", as[i].text, j, (double)o[j], (double)first[j]);
        memset(o, 0xff, sizeof o);
    }
    kiln_nn_free(nn);
    kiln_context_free(ctx);
}

/* On the GPU that it was found for, kiln_nn.h takes what comes with the library. */
static void library_rows(void **state)
{
    kiln_options opt = KILN_OPTIONS_INIT;
    kiln_context *ctx;
    kiln_module *m;
    kiln_nn *nn;
    const char *name;
    (void)state;
    opt.device = KILN_DEVICE_CUDA;
    if (kiln_context_create(&opt, &ctx, NULL) != KILN_OK)
        skip();
    assert_int_equal(kiln_nn_create(ctx, &nn, NULL), KILN_OK);
    for (uint32_t i = 0; (name = kl_embedded_tune_name(i)); i++) {
        uint32_t len, line;
        size_t some = 0;
        const char *own = kiln_context_device_info(ctx)->name, *text, *why;
        char file[100], device[200];
        kl_env env = {.al = &kl_alloc_libc};
        kl_arena a = {.env = &env};
        kl_tunefile f = {.a = &a};
        snprintf(file, sizeof file, "%.*s",
                 (int)(strlen(name) - strlen("kernels/") - strlen(".kiln.tune")), name + 8);
        snprintf(device, sizeof device, "cuda %s %s", kiln_context_device_info(ctx)->arch, own);
        text = kl_embedded_tune(name, &len);
        assert_true(kl_tunefile_parse(&f, text, len, &line, &why));
        for (uint32_t k = 0; k < f.entry.n; k++)
            some += kl_tune_device_fits(f.entry.v[k].device, device);
        assert_int_equal(kiln_nn_module(nn, file, &m, NULL), KILN_OK);
        assert_int_equal(kl_tool_tuned_count(m), some);
        printf("%s on %s: %s\n", file, own, some ? "tuned" : "as the kernels say");
        kl_arena_free(&a);
    }
    kiln_nn_free(nn);
    kiln_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken),    cmocka_unit_test(at_least_and_with), cmocka_unit_test(not_allowed),
        cmocka_unit_test(knobs),    cmocka_unit_test(mistakes),          cmocka_unit_test(shipped),
        cmocka_unit_test(chosen_by_nn), cmocka_unit_test(library_rows)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
