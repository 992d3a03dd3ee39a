/* test_tool.c - what the command line uses beyond kiln.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tool.h"

static const char text[] =
    "//! test one\n"
    "//!   input x = {1, 2}\n"
    "kernel twice(i64 n, f32 y[n], const f32 x[n], f32 s = 0.5, constexpr i64 B = 4 * 2)\n"
    "    grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] = x[i:B] * (s + s) * 2;\n"
    "}\n";

static kiln_context *ctx;
static kiln_module *mod;
static kiln_kernel *k;
static const int64_t shape[1] = {10};
static kiln_arg arg[1];

static int setup(void **state)
{
    kiln_options o = KILN_OPTIONS_INIT;
    (void)state;
    o.device = KILN_DEVICE_INTERP;
    if (kiln_context_create(&o, &ctx, NULL) ||
        kiln_compile(ctx, "t.kiln", text, sizeof text - 1, &mod, NULL))
        return -1;
    k = kiln_module_at(mod, 0);
    arg[0] = (kiln_arg){.name = "x", .kind = KILN_ARG_TENSOR};
    arg[0].u.tensor = (kiln_tensor){NULL, KILN_F32, 1, shape, NULL, 0, 0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kiln_module_free(mod);
    kiln_context_free(ctx);
    return 0;
}

/* Shapes are enough: no memory is given. */
static void stages(void **state)
{
    static float x[10];
    static const struct {
        const char *stage, *has;
    } table[] = {{"ast", "twice"}, {"ir", "program_id"}, {"c", "void twice("}};
    (void)state;
    arg[0].u.tensor.data = x;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char *out = NULL;
        kiln_diags *d = NULL;
        kl_tool_emit_opts o = {.stage = table[i].stage, .check = 1};
        assert_int_equal(kl_tool_emit(mod, i ? k : NULL, arg, i ? 1 : 0, &o, &out, &d), KILN_OK);
        assert_null(d);
        if (!strstr(out, table[i].has))
            fail_msg("%s lacks %s:\n%s", table[i].stage, table[i].has, out);
        kl_tool_free(ctx, out);
    }
}

static void pass_options(void **state)
{
    static const char *const skip_all[] = {"simplify", "cse", "licm", "unroll", NULL};
    static const char *const unknown[] = {"nonsense", NULL};
    (void)state;
    for (size_t i = 0; kl_tool_pass_name(i); i++) {
        char *out = NULL;
        kl_tool_emit_opts o = {.stage = "ir", .print_after = kl_tool_pass_name(i), .check = 1};
        assert_int_equal(kl_tool_emit(mod, k, arg, 1, &o, &out, NULL), KILN_OK);
        kl_tool_free(ctx, out);
        o = (kl_tool_emit_opts){.stage = "ir", .stop_after = kl_tool_pass_name(i), .check = 1};
        assert_int_equal(kl_tool_emit(mod, k, arg, 1, &o, &out, NULL), KILN_OK);
        kl_tool_free(ctx, out);
        assert_true(strlen(kl_tool_pass_doc(i)) > 0);
    }
    const kl_tool_emit_opts bad[] = {
        {.stage = "ir", .skip = unknown},
        {.stage = "ir", .stop_after = "nonsense"},
        {.stage = "ir", .print_after = "nonsense"},
        {.stage = "nonsense"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *out = NULL;
        kiln_diags *d = NULL;
        assert_int_equal(kl_tool_emit(mod, k, arg, 1, &bad[i], &out, &d), KILN_E_ARG);
        assert_null(out);
        assert_int_equal(kiln_diags_count(d), 1);
        kiln_diags_free(d);
    }
    kl_tool_emit_opts o = {.stage = "ir", .skip = skip_all, .check = 1};
    char *out = NULL;
    assert_int_equal(kl_tool_emit(mod, k, arg, 1, &o, &out, NULL), KILN_OK);
    kl_tool_free(ctx, out);
}

static void resolved(void **state)
{
    kl_tool_param p[5] = {{0}};
    int64_t grid[3];
    (void)state;
    assert_int_equal(kiln_kernel_param_count(k), 5);
    assert_int_equal(kl_tool_resolve(k, arg, 1, p, grid, NULL), KILN_OK);
    assert_string_equal(p[0].name, "n");
    assert_int_equal(p[0].ival, 10);
    assert_false(p[1].given);
    assert_int_equal(p[1].ndim, 1);
    assert_int_equal(p[1].shape[0], 10);
    assert_int_equal(p[1].dtype, KILN_F32);
    assert_true(p[2].given);
    assert_int_equal(p[2].strides[0], 1);
    assert_true(p[3].is_float && p[3].fval == 0.5);
    assert_int_equal(p[4].kind, KILN_PARAM_CONST);
    assert_int_equal(p[4].ival, 8);
    assert_int_equal(grid[0], 2);
    kiln_diags *d = NULL;
    assert_int_equal(kl_tool_resolve(k, NULL, 0, p, grid, &d), KILN_E_ARG);
    assert_int_equal(kiln_diags_count(d), 1);
    kiln_diags_free(d);
}

static void cases(void **state)
{
    kiln_place at;
    (void)state;
    assert_int_equal(kl_tool_test_count(mod), 2);
    assert_string_equal(kl_tool_test_line(mod, 0, NULL), "test one");
    assert_string_equal(kl_tool_test_line(mod, 1, &at), "input x = {1, 2}");
    assert_string_equal(at.file, "t.kiln");
    assert_int_equal(at.line, 2);
    assert_null(kl_tool_test_line(mod, 2, &at));
    assert_int_equal(kl_tool_test_count(NULL), 0);
}

static void lists(void **state)
{
    const char *title, *page, *code, *last = "";
    size_t n = 0;
    (void)state;
    for (size_t i = 0; (code = kl_tool_diag_code(i, &title, &page)); i++, n++) {
        if (strcmp(last, code) >= 0)
            fail_msg("%s stands behind %s", code, last);
        if (!*title || !strstr(page, "bad:") || !strstr(page, "good:"))
            fail_msg("%s: the page needs a title, a bad and a good example", code);
        assert_ptr_equal(kiln_diag_page(code), page);
        last = code;
    }
    assert_true(n > 10);
    int found = 0;
    for (size_t i = 0; kl_tool_embedded_name(i); i++)
        found += strcmp(kl_tool_embedded_name(i), "act.kiln") == 0;
    assert_int_equal(found, 1);
    assert_null(kl_tool_embedded_name(1000));
    assert_null(kl_tool_cc_version(ctx));
    assert_null(kl_tool_cc_problem(ctx));
    char *ops = NULL;
    assert_int_equal(kl_tool_ops_markdown(ctx, &ops), KILN_OK);
    assert_non_null(strstr(ops, "fma"));
    kl_tool_free(ctx, ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages), cmocka_unit_test(pass_options), cmocka_unit_test(resolved),
        cmocka_unit_test(cases),  cmocka_unit_test(lists),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
