/* test_api.c - the public interface: tables, options, compiling, reflection; what each function
 * takes and refuses. */
#define _GNU_SOURCE
#include "common.h"

#include <sys/auxv.h>

/* ---- the small things ---- */

static void tables(void **state)
{
    (void)state;
    assert_int_equal(kiln_version(), KILN_VERSION);
    assert_true(strlen(kiln_build_id()) > 0);
#define X(name, num, text)                                                                         \
    assert_int_equal(KILN_##name, num);                                                            \
    assert_string_equal(kiln_status_name(KILN_##name), "KILN_" #name);                             \
    assert_string_equal(kiln_status_text(KILN_##name), text);
    KILN_STATUS_MAP(X)
#undef X
    static const int odd[] = {1, -10, 1000, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        assert_non_null(kiln_status_name((kiln_status)odd[i]));
        assert_non_null(kiln_status_text((kiln_status)odd[i]));
    }
    static const struct {
        kiln_dtype t;
        const char *name;
        size_t size;
    } types[] = {
        {KILN_DTYPE_NONE, "none", 0}, {KILN_BOOL, "bool", 1},      {KILN_I8, "i8", 1},
        {KILN_I16, "i16", 2},         {KILN_I32, "i32", 4},        {KILN_I64, "i64", 8},
        {KILN_U8, "u8", 1},           {KILN_U16, "u16", 2},        {KILN_U32, "u32", 4},
        {KILN_U64, "u64", 8},         {KILN_F16, "f16", 2},        {KILN_BF16, "bf16", 2},
        {KILN_F32, "f32", 4},         {KILN_F64, "f64", 8},        {KILN_F8E4M3, "f8e4m3", 1},
        {KILN_F8E5M2, "f8e5m2", 1},   {(kiln_dtype)16, "none", 0}, {(kiln_dtype)-1, "none", 0},
        {(kiln_dtype)1000, "none", 0}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        assert_string_equal(kiln_dtype_name(types[i].t), types[i].name);
        assert_int_equal(kiln_dtype_size(types[i].t), types[i].size);
    }
}

/* Sizes and numbers that programs built today rely on. */
static void binary_interface(void **state)
{
    (void)state;
    assert_int_equal(sizeof(kiln_options), 144);
    assert_int_equal(offsetof(kiln_options, cc), 16);
    assert_int_equal(offsetof(kiln_options, cc_timeout_ms), 48);
    assert_int_equal(offsetof(kiln_options, alloc), 56);
    assert_int_equal(offsetof(kiln_options, cache_cap), 72);
    assert_int_equal(offsetof(kiln_options, device_index), 80);
    assert_int_equal(offsetof(kiln_options, arch), 88);
    assert_int_equal(sizeof(kiln_tensor), 48);
    assert_int_equal(sizeof(kiln_arg), 64);
    assert_int_equal(sizeof(kiln_param_info), 64);
    assert_int_equal(sizeof(kiln_spec_info), 96);
    assert_int_equal(offsetof(kiln_spec_info, cta_threads), 64);
    assert_int_equal(sizeof(kiln_device_info), 64);
    assert_int_equal(KILN_DEVICE_CPU, 2);
    assert_int_equal(KILN_DEVICE_CUDA, 3);
    assert_int_equal(KILN_DEVICE_SIM, 4);
    assert_int_equal(KILN_TENSOR_DEVICE, 2);
    assert_int_equal(KILN_PARAM_TYPE, 4);
    assert_int_equal(KILN_CACHE_STALE, 3);
}

static void nulls(void **state)
{
    (void)state;
    kiln_context *ctx = interp(), *c2;
    kiln_module *m = compile(ctx, add_text), *m2;
    kiln_kernel *k = kiln_module_kernel(m, "add");
    kiln_buffer *b;
    kiln_spec *sp;
    kiln_diags *d;
    int64_t shape[8];
    const kiln_arg *noargs = NULL;
    size_t one = 1;

    assert_int_equal(kiln_options_from_env(NULL), KILN_E_ARG);
    assert_int_equal(kiln_context_create(NULL, NULL, NULL), KILN_E_ARG);
    assert_int_equal(kiln_context_create(NULL, &c2, NULL), KILN_OK); /* defaults */
    assert_int_equal(kiln_context_device(c2), KILN_DEVICE_INTERP);
    kiln_context_free(c2);
    kiln_context_free(NULL);
    assert_int_equal(kiln_context_device(NULL), KILN_DEVICE_AUTO);
    assert_int_equal(kiln_context_threads(NULL), 0);
    assert_null(kiln_context_cache_problem(NULL));
    assert_int_equal(kiln_sync(NULL, NULL), KILN_E_ARG);
    assert_int_equal(kiln_sync(ctx, NULL), KILN_OK);

    m2 = m;
    assert_int_equal(kiln_compile(NULL, "x", "", 0, &m2, NULL), KILN_E_ARG);
    assert_null(m2);
    assert_int_equal(kiln_compile(ctx, "x", "", 0, NULL, NULL), KILN_E_ARG);
    assert_int_equal(kiln_compile(ctx, "x", NULL, 5, &m2, &d), KILN_E_ARG);
    assert_int_equal(kiln_diags_count(d), 1);
    kiln_diags_free(d);
    assert_int_equal(kiln_compile(ctx, NULL, NULL, 0, &m2, NULL), KILN_OK); /* empty */
    assert_int_equal(kiln_module_count(m2), 0);
    assert_null(kiln_module_at(m2, 0));
    kiln_module_free(m2);
    kiln_module_free(NULL);

    assert_int_equal(kiln_module_count(NULL), 0);
    assert_null(kiln_module_at(NULL, 0));
    assert_null(kiln_module_at(m, 4));
    assert_null(kiln_module_kernel(NULL, "add"));
    assert_null(kiln_module_kernel(m, NULL));
    assert_null(kiln_module_kernel(m, "ad"));
    assert_null(kiln_kernel_name(NULL));
    assert_int_equal(kiln_kernel_param_count(NULL), 0);
    assert_null(kiln_kernel_param(NULL, 0));
    assert_null(kiln_kernel_param(k, 5));

    assert_int_equal(kiln_launch(NULL, NULL, NULL, 0, NULL), KILN_E_ARG);
    assert_int_equal(kiln_launch(k, NULL, NULL, 3, &d), KILN_E_ARG);
    assert_non_null(d);
    kiln_diags_free(d);
    assert_int_equal(kiln_specialize(NULL, NULL, 0, &sp, NULL), KILN_E_ARG);
    assert_null(sp);
    assert_int_equal(kiln_specialize_many(NULL, NULL, NULL, 0, NULL, NULL), KILN_OK);
    assert_int_equal(kiln_specialize_many(NULL, &noargs, &one, 1, &sp, NULL), KILN_E_ARG);
    assert_int_equal(kiln_specialize_many(&k, NULL, &one, 1, &sp, NULL), KILN_E_ARG);
    assert_int_equal(kiln_specialize_many(&k, &noargs, NULL, 1, &sp, NULL), KILN_E_ARG);
    assert_null(kiln_spec_get_info(NULL));
    kiln_spec_free(NULL);
    assert_int_equal(kiln_infer_shape(NULL, NULL, 0, "y", NULL, NULL, shape, NULL), KILN_E_ARG);
    assert_int_equal(kiln_infer_shape(k, NULL, 0, NULL, NULL, NULL, shape, NULL), KILN_E_ARG);
    assert_int_equal(kiln_infer_shape(k, NULL, 0, "n", NULL, NULL, shape, NULL), KILN_E_ARG);

    assert_int_equal(kiln_buffer_create(NULL, 1, &b), KILN_E_ARG);
    assert_null(b);
    assert_int_equal(kiln_buffer_create(ctx, 1, NULL), KILN_E_ARG);
    assert_null(kiln_buffer_data(NULL));
    assert_int_equal(kiln_buffer_size(NULL), 0);
    kiln_buffer_free(NULL);

    assert_int_equal(kiln_diags_count(NULL), 0);
    assert_null(kiln_diags_at(NULL, 0));
    assert_int_equal(kiln_diags_render(NULL, 0, NULL, 0), 0);
    kiln_diags_free(NULL);
    assert_null(kiln_diag_page(NULL));
    assert_null(kiln_diag_page("K9999"));
    assert_non_null(kiln_diag_page("K1802"));
    kiln_module_free(m);
    kiln_context_free(ctx);
}

static void buffers(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 100000};
    kiln_context *ctx = interp();
    kiln_buffer *b;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(kiln_buffer_create(ctx, sizes[i], &b), KILN_OK);
        assert_int_equal(kiln_buffer_size(b), sizes[i]);
        assert_int_equal((uintptr_t)kiln_buffer_data(b) % 64, 0);
        memset(kiln_buffer_data(b), 5, sizes[i]);
        kiln_buffer_free(b);
    }
    assert_int_equal(kiln_buffer_create(ctx, SIZE_MAX, &b), KILN_E_NOMEM);
    kiln_diags *d = NULL;
    assert_int_equal(kiln_buffer_alloc(ctx, SIZE_MAX, &b, &d), KILN_E_NOMEM);
    assert_null(b);
    assert_non_null(strstr(kiln_diags_at(d, 0)->text, "no host memory"));
    kiln_diags_free(d);
    assert_int_equal(kiln_buffer_alloc(ctx, 10, NULL, &d), KILN_E_ARG);
    assert_string_equal(kiln_diags_at(d, 0)->code, "K1809");
    kiln_diags_free(d);
    assert_int_equal(kiln_buffer_alloc(NULL, 10, &b, &d), KILN_E_ARG);
    assert_null(d);
    assert_null(b);
    kiln_context_free(ctx);
}

/* ---- options ---- */

static kiln_status try_options(const void *o, const char *code)
{
    kiln_context *ctx = NULL;
    kiln_diags *d = NULL;
    kiln_status s = kiln_context_create(o, &ctx, &d);
    if (code) {
        assert_int_equal(kiln_diags_count(d), 1);
        assert_string_equal(kiln_diags_at(d, 0)->code, code);
    } else {
        assert_null(d);
    }
    assert_true(s ? !ctx : !!ctx);
    kiln_diags_free(d);
    kiln_context_free(ctx);
    return s;
}

static void options(void **state)
{
    (void)state;
    const kiln_options init = KILN_OPTIONS_INIT;
    kiln_options o = init;
    assert_int_equal(try_options(&o, NULL), KILN_OK);
    o.size = 0; /* forgotten */
    assert_int_equal(try_options(&o, "K1809"), KILN_E_ARG);
    o.size = 8; /* an old caller */
    assert_int_equal(try_options(&o, NULL), KILN_OK);
    o.size = 80; /* of version 0.1.0 before there were GPUs */
    assert_int_equal(try_options(&o, NULL), KILN_OK);
    struct {
        kiln_options o;
        uint64_t more[2];
    } longer = {.o = init};
    longer.o.size = sizeof longer; /* a newer one */
    assert_int_equal(try_options(&longer, NULL), KILN_OK);
    longer.more[1] = 1; /* that wants what we lack */
    assert_int_equal(try_options(&longer, "K1809"), KILN_E_ARG);

    o = init, o.device = (kiln_device)5;
    assert_int_equal(try_options(&o, "K1809"), KILN_E_ARG);
    o = init, o.device = (kiln_device)-1;
    assert_int_equal(try_options(&o, "K1809"), KILN_E_ARG);
    o = init, o.opt_level = 3;
    assert_int_equal(try_options(&o, "K1809"), KILN_E_ARG);
    o = init, o.threads = 5000;
    assert_int_equal(try_options(&o, "K1809"), KILN_E_ARG);
    o = init, o.checks = KILN_CHECK_ALL + 1;
    assert_int_equal(try_options(&o, "K1809"), KILN_E_ARG);
    o = init, o.cc = "gcc";
    assert_int_equal(try_options(&o, "K1809"), KILN_E_ARG);
    o = init, o.device = KILN_DEVICE_CPU; /* without a compiler */
    kiln_status s = try_options(&o, "K1802");
    assert_int_equal(s, KILN_E_TOOLCHAIN);
    o.cc = "/nonexistent/cc";
    assert_int_equal(try_options(&o, "K1802"), KILN_E_TOOLCHAIN);
    o.device = KILN_DEVICE_AUTO; /* says so, and interprets */
    assert_int_equal(try_options(&o, "K1803"), KILN_OK);
    o = init, o.cache_dir = "/proc/nowhere";
    assert_int_equal(try_options(&o, "K1801"), KILN_OK);
    o = init, o.threads = 3;
    kiln_context *ctx = context(&o);
    assert_int_equal(kiln_context_threads(ctx), 3);
    kiln_context_free(ctx);
}

static void options_are_copied(void **state)
{
    (void)state;
    char dir[100], cc[100];
    char *include[2] = {dir, NULL};
    kiln_options o = KILN_OPTIONS_INIT;
    snprintf(dir, sizeof dir, "%s/c", root);
    snprintf(cc, sizeof cc, "%s", system_cc());
    o.cc = cc;
    o.cache_dir = dir;
    o.keep_dir = dir;
    o.include_dirs = (const char *const *)include;
    kiln_context *ctx = context(&o);
    memset(dir, 'x', sizeof dir - 1);
    memset(cc, 'x', sizeof cc - 1);
    include[0] = NULL;
    kiln_module *m = compile(ctx, add_text);
    static struct data d;
    fill(&d, 100);
    assert_int_equal(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, NULL), KILN_OK);
    right(&d);
    kiln_module_free(m);
    kiln_context_free(ctx);
}

static int env_set(void)
{
    kiln_options o = KILN_OPTIONS_INIT;
    setenv("KILN_CC", "/opt/cc", 1);
    setenv("KILN_CACHE_DIR", "/x/cache", 1);
    setenv("KILN_KEEP", "/x/keep", 1);
    setenv("KILN_THREADS", "5", 1);
    CHECK(kiln_options_from_env(&o) == KILN_OK);
    setenv("KILN_CC", "/changed", 1);
    unsetenv("KILN_KEEP");
    CHECK(strcmp(o.cc, "/opt/cc") == 0 && strcmp(o.cache_dir, "/x/cache") == 0);
    CHECK(strcmp(o.keep_dir, "/x/keep") == 0 && o.threads == 5);
    /* what the caller has set stays */
    kiln_options p = KILN_OPTIONS_INIT;
    p.cc = "/mine", p.cache_dir = "/my/cache", p.keep_dir = "/my/keep", p.threads = 2;
    CHECK(kiln_options_from_env(&p) == KILN_OK);
    CHECK(strcmp(p.cc, "/mine") == 0 && strcmp(p.cache_dir, "/my/cache") == 0);
    CHECK(strcmp(p.keep_dir, "/my/keep") == 0 && p.threads == 2);
    return 0;
}

static int env_defaults(void)
{
    kiln_options o = KILN_OPTIONS_INIT;
    unsetenv("KILN_CC");
    unsetenv("KILN_CACHE_DIR");
    unsetenv("KILN_KEEP");
    unsetenv("KILN_THREADS");
    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", "/home/me", 1);
    CHECK(kiln_options_from_env(&o) == KILN_OK);
    CHECK(strcmp(o.cache_dir, "/home/me/.cache/kiln") == 0);
    CHECK(!o.cc || strncmp(o.cc, "/usr/bin/", 9) == 0);
    CHECK(!o.keep_dir && !o.threads);
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    o = (kiln_options)KILN_OPTIONS_INIT;
    CHECK(kiln_options_from_env(&o) == KILN_OK && strcmp(o.cache_dir, "/xdg/kiln") == 0);
    /* never /tmp, never the working folder */
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    o = (kiln_options)KILN_OPTIONS_INIT;
    CHECK(kiln_options_from_env(&o) == KILN_OK && !o.cache_dir);
    setenv("HOME", "here", 1);
    CHECK(kiln_options_from_env(&o) == KILN_OK && !o.cache_dir);
    return 0;
}

static int env_off(void)
{
    kiln_options o = KILN_OPTIONS_INIT;
    setenv("KILN_CC", "", 1);
    setenv("KILN_CACHE_DIR", "", 1);
    setenv("KILN_KEEP", "", 1);
    setenv("HOME", "/home/me", 1);
    CHECK(kiln_options_from_env(&o) == KILN_OK && !o.cc && !o.cache_dir && !o.keep_dir);
    static const char *const bad[] = {"0", "-1", "x", "4097", "3x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("KILN_THREADS", bad[i], 1);
        CHECK(kiln_options_from_env(&o) == KILN_E_ARG);
    }
    /* an older caller's struct is not written past its end */
    struct {
        kiln_options o;
    } old;
    memset(&old, 0x5a, sizeof old);
    old.o.size = offsetof(kiln_options, cc);
    old.o.threads = 0;
    setenv("KILN_THREADS", "7", 1);
    CHECK(kiln_options_from_env(&old.o) == KILN_OK && old.o.threads == 7);
    CHECK(((unsigned char *)&old.o)[offsetof(kiln_options, cc)] == 0x5a);
    old.o.size = 4;
    CHECK(kiln_options_from_env(&old.o) == KILN_E_ARG);
    return 0;
}

static void environment(void **state)
{
    (void)state;
    assert_int_equal(in_child(env_set), 0);
    assert_int_equal(in_child(env_defaults), 0);
    assert_int_equal(in_child(env_off), 0);
}

/* A program that runs with the rights of another: the environment is an attacker's. */
static int secure_child(void)
{
    kiln_options o = KILN_OPTIONS_INIT;
    if (kiln_options_from_env(&o) != KILN_OK)
        return 3;
    return (o.cc && strncmp(o.cc, "/usr/bin/", 9) != 0) || o.cache_dir || o.keep_dir || o.threads
               ? 2
               : 0;
}

static void setuid_program(void **state)
{
    (void)state;
    char path[100], cmd[300];
    int st;
#ifdef __has_feature /* clang's word for it */
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
    skip(); /* the leak checker cannot trace a set-user-id program */
#endif
    if (geteuid() != 0)
        skip();
    snprintf(path, sizeof path, "%s/me", root);
    snprintf(cmd, sizeof cmd, "cp /proc/%ld/exe %s", (long)getpid(), path);
    if (system(cmd) != 0 || chown(path, 12345, 12345) != 0 || chmod(path, 04755) != 0 ||
        chmod(root, 0755) != 0)
        skip();
    pid_t pid = fork();
    if (pid == 0) {
        static const char *const env[] = {"KILN_CC=/evil/cc",
                                          "KILN_CACHE_DIR=/evil",
                                          "KILN_KEEP=/evil",
                                          "KILN_THREADS=3",
                                          "HOME=/evil",
                                          "XDG_CACHE_HOME=/evil",
                                          NULL};
        if (setresuid(23456, 23456, 23456) != 0)
            _exit(9);
        execle(path, path, "--secure", (char *)NULL, (char *const *)(uintptr_t)env);
        _exit(9);
    }
    assert_int_equal(waitpid(pid, &st, 0), pid);
    if (WIFEXITED(st) && (WEXITSTATUS(st) == 9 || WEXITSTATUS(st) == 8 || WEXITSTATUS(st) == 127))
        skip(); /* set-user-id programs, or this one, cannot run here */
    assert_int_equal(st, 0);
}

/* ---- compiling ---- */

static void compile_errors(void **state)
{
    (void)state;
    kiln_context *ctx = interp();
    kiln_module *m;
    kiln_diags *d = NULL;
    static const char bad[] = "kernel k(i64 n, f32 y[n]) grid(n)\n{\n    y[0] = zz;\n}\n";
    assert_int_equal(kiln_compile(ctx, "bad.kiln", bad, sizeof bad - 1, &m, &d), KILN_E_COMPILE);
    assert_null(m);
    assert_int_equal(kiln_diags_count(d), 1);
    const kiln_diag *g = kiln_diags_at(d, 0);
    assert_int_equal(g->severity, KILN_ERROR);
    assert_int_equal(g->code[0], 'K');
    assert_string_equal(g->place.file, "bad.kiln");
    assert_int_equal(g->place.line, 3);
    assert_int_equal(g->place.col, 12);
    assert_int_equal(g->place.end_col, 14);
    assert_string_equal(g->place.text, "    y[0] = zz;");
    assert_non_null(kiln_diag_page(g->code));
    assert_null(kiln_diags_at(d, 1));
    /* snprintf's rule */
    char small[10], text[4096];
    size_t need = kiln_diags_render(d, 0, NULL, 0);
    assert_int_equal(kiln_diags_render(d, 0, text, sizeof text), need);
    assert_int_equal(strlen(text), need);
    assert_int_equal(kiln_diags_render(d, 0, small, sizeof small), need);
    assert_int_equal(strlen(small), 9);
    assert_true(kiln_diags_render(d, 1, NULL, 0) > need);
    /* the list outlives context and source */
    kiln_context_free(ctx);
    assert_string_equal(kiln_diags_at(d, 0)->place.text, "    y[0] = zz;");
    kiln_diags_free(d);
    ctx = interp();
    assert_int_equal(kiln_compile(ctx, "bad.kiln", bad, sizeof bad - 1, &m, NULL), KILN_E_COMPILE);
    /* bytes that are no text */
    char junk[512];
    for (size_t i = 0; i < sizeof junk; i++)
        junk[i] = (char)(i * 37 + i / 7);
    assert_int_equal(kiln_compile(ctx, "junk", junk, sizeof junk, &m, NULL), KILN_E_COMPILE);
    kiln_context_free(ctx);
}

static void includes(void **state)
{
    (void)state;
    char path[128], main_[128];
    const char *inc[2] = {root, NULL};
    kiln_module *m;
    kiln_options o = KILN_OPTIONS_INIT;
    o.device = KILN_DEVICE_INTERP;
    snprintf(path, sizeof path, "%s/more.kiln", root);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "f32 twice(f32 x)\n{\n    return 2 * x;\n}\n");
    fclose(f);
    static const char text[] = "#include \"more.kiln\"\n#include <act.kiln>\n"
                               "kernel k(i64 n, f32 y[n], const f32 x[n]) grid(n)\n{\n"
                               "    i64 i = program_id(0);\n    y[i] = relu(twice(x[i]));\n}\n";
    /* files are read only where an option says so */
    kiln_context *ctx = context(&o);
    assert_int_equal(kiln_compile(ctx, "m.kiln", text, sizeof text - 1, &m, NULL), KILN_E_COMPILE);
    kiln_context_free(ctx);
    o.include_dirs = inc;
    ctx = context(&o);
    assert_int_equal(kiln_compile(ctx, "m.kiln", text, sizeof text - 1, &m, NULL), KILN_OK);
    kiln_module_free(m);
    kiln_context_free(ctx);
    inc[0] = NULL; /* beside the file that includes */
    snprintf(main_, sizeof main_, "%s/m.kiln", root);
    ctx = context(&o);
    assert_int_equal(kiln_compile(ctx, main_, text, sizeof text - 1, &m, NULL), KILN_OK);
    kiln_module_free(m);
    assert_int_equal(kiln_compile(ctx, "m.kiln", text, sizeof text - 1, &m, NULL), KILN_E_COMPILE);
    kiln_context_free(ctx);
}

static void reflection(void **state)
{
    (void)state;
    kiln_context *ctx = interp();
    kiln_module *m = compile(ctx, add_text);
    assert_int_equal(kiln_module_count(m), 4);
    assert_string_equal(kiln_kernel_name(kiln_module_at(m, 1)), "softmax");
    const kiln_kernel *k = kiln_module_kernel(m, "scale");
    assert_ptr_equal(k, kiln_module_at(m, 2));
    assert_int_equal(kiln_kernel_param_count(k), 6);
    const kiln_param_info *n = kiln_kernel_param(k, 0), *t = kiln_kernel_param(k, 1),
                          *y = kiln_kernel_param(k, 2), *x = kiln_kernel_param(k, 3),
                          *s = kiln_kernel_param(k, 4), *b = kiln_kernel_param(k, 5);
    assert_string_equal(n->name, "n");
    assert_int_equal(n->kind, KILN_PARAM_SCALAR);
    assert_int_equal(n->dtype, KILN_I64);
    assert_false(n->has_default);
    assert_int_equal(t->kind, KILN_PARAM_TYPE);
    assert_true(t->has_default);
    assert_int_equal(y->kind, KILN_PARAM_ARRAY);
    assert_int_equal(y->rank, 1);
    assert_int_equal(y->dtype, KILN_DTYPE_NONE);
    assert_string_equal(y->type_name, "T");
    assert_true(y->writes && !y->reads && !y->is_const);
    assert_true(x->reads && !x->writes && x->is_const);
    assert_int_equal(s->dtype, KILN_F32);
    assert_true(s->has_default);
    assert_int_equal(b->kind, KILN_PARAM_CONST);
    assert_true(kiln_kernel_param(kiln_module_kernel(m, "start"), 1)->has_init);
    kiln_module_free(m);
    kiln_context_free(ctx);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--secure") == 0)
        return getauxval(AT_SECURE) ? secure_child() : 8;
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(tables),         T(binary_interface),   T(nulls),       T(buffers),
        T(options),        T(options_are_copied), T(environment), T(setuid_program),
        T(compile_errors), T(includes),           T(reflection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
