/* test_debug.c - assert and print as a host sees them, and the other callbacks of kiln_options. */
#define _GNU_SOURCE
#include "common.h"

static const char text[] =
    "f32 root(f32 v)\n"
    "{\n"
    "    assert(v >= 0, \"not negative\");\n"
    "    return sqrt(v);\n"
    "}\n"
    "kernel twice(i64 n, i64 most, f32 y[n], const f32 x[n]) grid(cdiv(n, 4))\n"
    "{\n"
    "    i64 p = program_id(0);\n"
    "    auto v = load(x[p * 4:4], 0);\n"
    "    y[p * 4:4] = -1;\n"
    "    assert(p < most, \"few programs\");\n"
    "    assert(reshape(v, 2, 2) < 100, \"small\");\n"
    "    y[p * 4:4] = v * 2;\n"
    "}\n"
    "kernel roots(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 4))\n"
    "{\n"
    "    i64 p = program_id(0);\n"
    "    for (i64 i = p * 4; i < p * 4 + 4; i++) {\n"
    "        auto v = root(x[i]);\n"
    "        y[i] = v;\n"
    "    }\n"
    "    if (p >= 0)\n"
    "        y[p * 4] += 100;\n"
    "}\n"
    "kernel say(i64 n, const f32 x[n]) grid(n, 2)\n"
    "{\n"
    "    i64 p = program_id(0), q = program_id(1);\n"
    "    for (i32 i = 0; i < 2; i++)\n"
    "        print(\"{{{}}} {}: {} {}\", i, x[p], q == 1, range(4) + i);\n"
    "}\n"
    "kernel many(i64 n, i32 y[1]) grid(1)\n"
    "{\n"
    "    for (i64 i = 0; i < n; i++)\n"
    "        print(\"{}\", i);\n"
    "    y[0] = 1;\n"
    "}\n";

struct said {
    char line[40][100];
    int64_t program[40][3];
    int n;
};

static void hear(void *user, const char *s, size_t n, const int64_t program[3])
{
    struct said *h = user;
    assert_int_equal(strlen(s), n);
    if (h->n < 40) {
        snprintf(h->line[h->n], sizeof h->line[0], "%s", s);
        memcpy(h->program[h->n], program, sizeof h->program[0]);
    }
    h->n++;
}

static kiln_context *on(kiln_device device, unsigned checks, struct said *h)
{
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx = NULL;
    o.device = device;
    o.checks = checks;
    o.print = h ? hear : NULL;
    o.print_user = h;
    o.cc = device == KILN_DEVICE_CPU ? system_cc() : NULL;
    kiln_status s = kiln_context_create(&o, &ctx, NULL);
    if (s == KILN_E_UNSUPPORTED)
        skip();
    assert_int_equal(s, KILN_OK);
    return ctx;
}

static kiln_arg array(const char *name, void *data, kiln_dtype t, const int64_t *n)
{
    kiln_arg a = {.name = name, .kind = KILN_ARG_TENSOR};
    a.u.tensor = (kiln_tensor){data, t, 1, n, NULL, 0, 0};
    return a;
}

/* A launch that fails an assertion: its place, text and first note. */
static void fails(kiln_kernel *k, const kiln_arg *a, size_t n, uint32_t line, const char *say,
                  const char *where, size_t notes)
{
    kiln_diags *d = NULL;
    assert_int_equal(kiln_launch(k, NULL, a, n, &d), KILN_E_BOUNDS);
    assert_int_equal(kiln_diags_count(d), 1);
    const kiln_diag *g = kiln_diags_at(d, 0);
    assert_string_equal(g->code, "K1702");
    assert_string_equal(g->place.file, "test.kiln");
    assert_int_equal(g->place.line, line);
    assert_int_equal(g->place.col, 5);
    assert_string_equal(g->text, say);
    assert_int_equal(g->nnotes, notes);
    if (where)
        assert_string_equal(g->notes[0].text, where);
    kiln_diags_free(d);
}

static void assert_on(kiln_device device, unsigned checks)
{
    kiln_context *ctx = on(device, checks, NULL);
    kiln_module *m = compile(ctx, text);
    kiln_kernel *k = kiln_module_kernel(m, "twice");
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8];
    int64_t eight = 8;
    kiln_arg a[] = {array("x", x, KILN_F32, &eight), array("y", y, KILN_F32, &eight),
                    {.name = "most", .kind = KILN_ARG_INT, .u.i = 2}};
    assert_int_equal(kiln_kernel_param_count(k), 4); /* what records is not among them */
    assert_null(kiln_kernel_param(k, 4));
    assert_int_equal(kiln_launch(k, NULL, a, 3, NULL), KILN_OK);
    for (int i = 0; i < 8; i++)
        assert_true(y[i] == 2 * x[i]);
    /* a tile: its first element; the program ends there, the other one goes on */
    x[6] = 200, x[7] = 300;
    fails(k, a, 3, 12, "assertion failed: small", "in program 1 of kernel `twice`, first at element [1][0]", 1);
    for (int i = 0; i < 8; i++)
        assert_true(y[i] == (i < 4 ? 2 * x[i] : -1));
    /* a scalar; nothing behind it is recorded */
    a[2].u.i = 1;
    fails(k, a, 3, 11, "assertion failed: few programs", "in program 1 of kernel `twice`", 1);
    a[2].u.i = 0;
    fails(k, a, 3, 11, "assertion failed: few programs", NULL, 2);
    for (int i = 0; i < 8; i++)
        assert_true(y[i] == -1);
    /* nothing is left over */
    a[2].u.i = 2, x[6] = x[7] = 0;
    assert_int_equal(kiln_launch(k, NULL, a, 3, NULL), KILN_OK);
    /* in a function, in a loop: out of all of them */
    float z[8] = {1, 4, 9, 16, 4, -9, 16, 25};
    kiln_arg b[] = {array("x", z, KILN_F32, &eight), array("y", y, KILN_F32, &eight)};
    memset(y, 0, sizeof y);
    fails(kiln_module_kernel(m, "roots"), b, 2, 3, "assertion failed: not negative",
          "in program 1 of kernel `roots`", 1);
    static const float want[8] = {101, 2, 3, 4, 2, 0, 0, 0};
    for (int i = 0; i < 8; i++)
        assert_true(y[i] == want[i]);
    /* the parameter cannot be given */
    b[1].name = "debug_";
    assert_int_equal(kiln_launch(kiln_module_kernel(m, "roots"), NULL, b, 2, NULL), KILN_E_ARG);
    kiln_module_free(m);
    kiln_context_free(ctx);
}

static void print_on(kiln_device device, unsigned checks)
{
    static struct said h;
    memset(&h, 0, sizeof h);
    kiln_context *ctx = on(device, checks, &h);
    kiln_module *m = compile(ctx, text);
    float x[2] = {1.5f, -2};
    int64_t two = 2, one = 1;
    int32_t y[1] = {0};
    kiln_arg a[] = {array("x", x, KILN_F32, &two)};
    assert_int_equal(kiln_launch(kiln_module_kernel(m, "say"), NULL, a, 1, NULL), KILN_OK);
    assert_int_equal(h.n, 8);
    int seen[2][2] = {{0}};
    for (int i = 0; i < 8; i++) { /* programs in any order, those of one in its own */
        char want[100];
        int64_t p = h.program[i][0], q = h.program[i][1];
        assert_true(p >= 0 && p < 2 && q >= 0 && q < 2 && h.program[i][2] == 0);
        int r = seen[p][q]++;
        snprintf(want, sizeof want, "{%d} %s: %s {%d, %d, %d, %d}", r, p ? "-2" : "1.5",
                 q ? "true" : "false", r, r + 1, r + 2, r + 3);
        assert_string_equal(h.line[i], want);
    }
    /* a buffer of 65536 words: 7 a record */
    kiln_arg b[] = {{.name = "n", .kind = KILN_ARG_INT, .u.i = 10000},
                    array("y", y, KILN_I32, &one)};
    h.n = 0;
    assert_int_equal(kiln_launch(kiln_module_kernel(m, "many"), NULL, b, 2, NULL), KILN_OK);
    assert_int_equal(y[0], 1);
    assert_int_equal(h.n, 65536 / 7 + 1);
    assert_string_equal(h.line[39], "39");
    kiln_module_free(m);
    kiln_context_free(ctx);
    ctx = on(device, checks, NULL); /* nobody listens */
    m = compile(ctx, text);
    assert_int_equal(kiln_launch(kiln_module_kernel(m, "say"), NULL, a, 1, NULL), KILN_OK);
    kiln_module_free(m);
    kiln_context_free(ctx);
}

static void assert_interp(void **state)
{
    (void)state;
    assert_on(KILN_DEVICE_INTERP, 0);
    assert_on(KILN_DEVICE_INTERP, KILN_CHECK_ALL);
}

static void assert_cpu(void **state)
{
    (void)state;
    assert_on(KILN_DEVICE_CPU, 0);
}

static void assert_sim(void **state)
{
    (void)state;
    assert_on(KILN_DEVICE_SIM, 0);
}

static void print_interp(void **state)
{
    (void)state;
    print_on(KILN_DEVICE_INTERP, 0);
    print_on(KILN_DEVICE_INTERP, KILN_CHECK_ALL);
}

static void print_cpu(void **state)
{
    (void)state;
    print_on(KILN_DEVICE_CPU, 0);
}

static void print_sim(void **state)
{
    (void)state;
    print_on(KILN_DEVICE_SIM, 0);
}

/* ---- #include from memory ---- */

static const char *serve(void *user, const char *from, const char *name, size_t *length)
{
    static const char one[] = "#include \"two.kiln\"\nf32 one(f32 x) { return two(x) + 1; }\n",
                      two[] = "f32 two(f32 x) { return x * 2; }\n";
    int *calls = user;
    (*calls)++;
    const char *s = !strcmp(name, "one.kiln") ? one : !strcmp(name, "two.kiln") ? two : NULL;
    assert_string_equal(from, s == two ? "one.kiln" : "test.kiln");
    *length = s ? strlen(s) : 0;
    return s;
}

static void include_memory(void **state)
{
    int calls = 0;
    kiln_options o = KILN_OPTIONS_INIT;
    (void)state;
    o.device = KILN_DEVICE_INTERP;
    o.include = serve;
    o.include_user = &calls;
    kiln_context *ctx = context(&o);
    kiln_module *m = compile(ctx, "#include \"one.kiln\"\n"
                                  "kernel k(f32 y[1]) grid(1) { y[0] = one(3); }\n");
    float y = 0;
    int64_t one = 1;
    kiln_arg a[] = {array("y", &y, KILN_F32, &one)};
    assert_int_equal(kiln_launch(kiln_module_at(m, 0), NULL, a, 1, NULL), KILN_OK);
    assert_true(y == 7);
    assert_int_equal(calls, 2);
    kiln_module_free(m);
    static const char absent[] = "#include \"three.kiln\"\n";
    assert_int_equal(kiln_compile(ctx, "test.kiln", absent, sizeof absent - 1, &m, NULL),
                     KILN_E_COMPILE);
    kiln_context_free(ctx);
}

/* ---- the log ---- */

struct log {
    char line[8][500];
    int n;
};

static void write_log(void *user, const char *s, size_t n)
{
    struct log *l = user;
    assert_int_equal(strlen(s), n);
    if (l->n < 8)
        snprintf(l->line[l->n], sizeof l->line[0], "%s", s);
    l->n++;
}

/* A source, a specialisation with its times; a launch like it is silent; the cache, then. */
static void log_lines(void **state)
{
    static const char *const cache[] = {"cache miss", "cache hit"};
    char dir[100];
    (void)state;
    snprintf(dir, sizeof dir, "%s/log", root);
    for (int turn = 0; turn < 2; turn++) {
        struct log l = {.n = 0};
        kiln_options o = KILN_OPTIONS_INIT;
        kiln_context *ctx = NULL;
        o.device = KILN_DEVICE_CPU;
        o.cc = system_cc();
        o.cache_dir = dir;
        o.log = write_log;
        o.log_user = &l;
        kiln_status s = kiln_context_create(&o, &ctx, NULL);
        if (s == KILN_E_UNSUPPORTED)
            skip();
        assert_int_equal(s, KILN_OK);
        kiln_module *m = compile(ctx, add_text);
        static struct data d;
        fill(&d, 300);
        for (int i = 0; i < 2; i++)
            assert_int_equal(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, NULL),
                             KILN_OK);
        assert_int_equal(l.n, 2);
        assert_non_null(strstr(l.line[0], "source test.kiln: "));
        assert_non_null(strstr(l.line[0], " 4 kernels"));
        assert_non_null(strstr(l.line[1], "kernel `add` ["));
        assert_non_null(strstr(l.line[1], " for CPU: front end "));
        assert_non_null(strstr(l.line[1], cache[turn]));
        kiln_module_free(m);
        kiln_context_free(ctx);
    }
}

/* ---- devices ---- */

static void devices(void **state)
{
    int32_t n = -1;
    kiln_device_info info;
    char name[128];
    uint64_t left = 0, total = 0;
    (void)state;
    assert_int_equal(kiln_device_count(NULL), KILN_E_ARG);
    assert_int_equal(kiln_device_count(&n), KILN_OK);
    assert_true(n >= 0);
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(kiln_device_at(i, &info, name), KILN_OK);
        assert_int_equal(info.index, i);
        assert_ptr_equal(info.name, name);
        assert_true(info.sms > 0 && info.memory_bytes > 0);
    }
    assert_int_equal(kiln_device_at(n, &info, name), KILN_E_DEVICE);
    assert_int_equal(kiln_device_at(-1, &info, name), KILN_E_DEVICE);
    assert_int_equal(kiln_device_at(0, NULL, name), KILN_E_ARG);
    kiln_context *ctx = interp();
    assert_int_equal(kiln_memory_info(ctx, &left, &total, NULL), KILN_OK);
    assert_true(total > 0 && left <= total);
    assert_int_equal(kiln_memory_info(ctx, NULL, NULL, NULL), KILN_OK);
    assert_int_equal(kiln_memory_info(NULL, &left, &total, NULL), KILN_E_ARG);
    kiln_context_free(ctx);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(assert_interp), cmocka_unit_test(assert_cpu),
        cmocka_unit_test(assert_sim),    cmocka_unit_test(print_interp),
        cmocka_unit_test(print_cpu),     cmocka_unit_test(print_sim),
        cmocka_unit_test(include_memory), cmocka_unit_test(log_lines),
        cmocka_unit_test(devices),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
