/* test_launch.c - the public interface: launches, specialisations, the cache as a host sees it,
 * compilers that fail, threads, and what a host may do to the library. */
#define _GNU_SOURCE
#include "common.h"

/* ---- launching ---- */

static void launch_on(kiln_context *ctx)
{
    static struct data d;
    static const int64_t counts[] = {0, 1, 2, 255, 256, 257, 999, 1000};
    kiln_module *m = compile(ctx, add_text);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        kiln_diags *g = NULL;
        fill(&d, counts[i]);
        kiln_status s = kiln_launch(k, NULL, d.arg, 3, &g);
        show(g);
        assert_int_equal(s, KILN_OK);
        assert_null(g);
        right(&d);
    }
    /* constants and scalars by name */
    fill(&d, 300);
    d.arg[3] = (kiln_arg){.name = "B", .kind = KILN_ARG_INT, .u.i = 100};
    d.arg[4] = (kiln_arg){.name = "n", .kind = KILN_ARG_INT, .u.i = 300};
    assert_int_equal(kiln_launch(k, NULL, d.arg, 5, NULL), KILN_OK);
    right(&d);

    /* the known softmax: [0, 0, ln 2, 0, 0] in a block of 8 */
    float x[5] = {0, 0, 0.69314718f, 0, 0}, y[5];
    int64_t shape[2] = {1, 5};
    kiln_arg a[2] = {{.name = "x", .kind = KILN_ARG_TENSOR},
                     {.name = "y", .kind = KILN_ARG_TENSOR}};
    a[0].u.tensor = (kiln_tensor){x, KILN_F32, 2, shape, NULL, sizeof x, 0};
    a[1].u.tensor = (kiln_tensor){y, KILN_F32, 2, shape, NULL, sizeof y, 0};
    assert_int_equal(kiln_launch(kiln_module_kernel(m, "softmax"), NULL, a, 2, NULL), KILN_OK);
    for (int i = 0; i < 5; i++)
        assert_true(fabsf(y[i] - (i == 2 ? 1.f / 3 : 1.f / 6)) < 1e-7f);

    /* a type parameter, taken from the arrays or given */
    double in[3] = {1, 2, 3}, out[3] = {0};
    int64_t three[1] = {3};
    a[0].u.tensor = (kiln_tensor){in, KILN_F64, 1, three, NULL, 0, 0};
    a[1].u.tensor = (kiln_tensor){out, KILN_F64, 1, three, NULL, 0, 0};
    assert_int_equal(kiln_launch(kiln_module_kernel(m, "scale"), NULL, a, 2, NULL), KILN_OK);
    assert_true(out[2] == 6);

    /* an initial value is set before each launch, also for an empty grid */
    int32_t iy[3] = {1, 2, 3}, ix[3] = {10, 20, 30};
    a[0].u.tensor = (kiln_tensor){ix, KILN_I32, 1, three, NULL, 0, 0};
    a[1].u.tensor = (kiln_tensor){iy, KILN_I32, 1, three, NULL, 0, 0};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kiln_launch(kiln_module_kernel(m, "start"), NULL, a, 2, NULL), KILN_OK);
        assert_int_equal(iy[0], 17);
        assert_int_equal(iy[2], 37);
    }
    kiln_module_free(m);
}

static void launch_interp(void **state)
{
    (void)state;
    kiln_context *ctx = interp();
    launch_on(ctx);
    kiln_context_free(ctx);
}

static void launch_checked(void **state)
{
    (void)state;
    kiln_options o = KILN_OPTIONS_INIT;
    o.device = KILN_DEVICE_INTERP;
    o.checks = KILN_CHECK_ALL;
    kiln_context *ctx = context(&o);
    launch_on(ctx);
    kiln_context_free(ctx);
}

static void launch_cpu(void **state)
{
    (void)state;
    static const char *const ccs[] = {"/usr/bin/gcc", "/usr/bin/clang"};
    for (int i = 0; i < 2; i++)
        if (access(ccs[i], X_OK) == 0) {
            kiln_context *ctx = cpu(ccs[i], NULL);
            launch_on(ctx);
            kiln_context_free(ctx);
        }
}

static void launch_errors(void **state)
{
    (void)state;
    kiln_context *ctx = interp();
    kiln_module *m = compile(ctx, add_text);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    static struct data d;
    static int64_t other[2] = {99, 7}, twice[1] = {2}, negative[1] = {-1};
    for (int i = 0;; i++) {
        size_t n = 4;
        kiln_arg *a = d.arg;
        kiln_stream *stream = NULL;
        fill(&d, 100);
        a[3] = (kiln_arg){.name = "B", .kind = KILN_ARG_INT, .u.i = 32};
        switch (i) {
        case 0: n = 2; break;           /* an array is missing */
        case 1: a[3].name = "Q"; break; /* unknown */
        case 2: a[3].name = "a"; break; /* a number for an array */
        case 3: a[3] = a[0]; break;     /* twice */
        case 4: a[1].u.tensor.dtype = KILN_F64; break;
        case 5: a[1].u.tensor.dtype = KILN_DTYPE_NONE; break;
        case 6: a[1].u.tensor.dtype = (kiln_dtype)99; break;
        case 7:
            a[1].u.tensor.ndim = 2;
            a[1].u.tensor.shape = other;
            break;
        case 8: a[1].u.tensor.ndim = 0; break;
        case 9: a[1].u.tensor.ndim = -1; break;
        case 10: a[1].u.tensor.ndim = 9; break;
        case 11: a[1].u.tensor.shape = other; break; /* shapes disagree */
        case 12: a[1].u.tensor.shape = NULL; break;
        case 13: a[1].u.tensor.shape = negative; break;
        case 14: a[1].u.tensor.data = NULL; break;
        case 15: a[1].u.tensor.size_bytes = 399; break;
        case 16: a[1].u.tensor.strides = twice; break;        /* not dense */
        case 17: a[1].u.tensor.data = (char *)d.a + 1; break; /* misaligned */
        case 18: a[3].u.i = 0; break;                         /* a constant out of range */
        case 19: a[3].u.i = -5; break;
        case 20:
            a[3].kind = KILN_ARG_FLOAT;
            a[3].u.f = 1.5;
            break;
        case 21: a[3].kind = KILN_ARG_TYPE; break;
        case 22: a[3].kind = (kiln_arg_kind)0; break;
        case 23: a[3].kind = (kiln_arg_kind)6; break;
        case 24: a[3].name = NULL; break;
        case 25:
            a[3].name = "n";
            a[3].u.i = 101;
            break; /* disagrees with the shapes */
        case 26: a[1].u.tensor.flags = 0x80; break;
        case 27: stream = (kiln_stream *)(void *)&d; break;
        case 28: a[3].u.i = INT64_MAX; break;
        case 29: {
            static int64_t huge[1] = {INT64_MAX};
            a[0].u.tensor.shape = a[1].u.tensor.shape = a[2].u.tensor.shape = huge;
            break;
        }
        default:
            kiln_module_free(m);
            kiln_context_free(ctx);
            return;
        }
        kiln_diags *g = NULL;
        kiln_status s = kiln_launch(k, stream, a, n, &g);
        if (s != KILN_E_ARG && s != KILN_E_COMPILE) {
            show(g);
            fail_msg("case %d gives %s", i, kiln_status_name(s));
        }
        if (!g || kiln_diags_at(g, 0)->severity != KILN_ERROR || !kiln_diags_at(g, 0)->text[0])
            fail_msg("case %d says nothing", i);
        kiln_diags_free(g);
        untouched(&d);
        /* the same call without a list, and specialise, agree */
        assert_int_equal(kiln_launch(k, stream, a, n, NULL), s);
        kiln_spec *sp = NULL;
        if (!stream)
            assert_int_equal(kiln_specialize(k, a, n, &sp, NULL), s);
        assert_null(sp);
    }
}

/* Finite numbers that a float parameter does not hold; infinity and what rounds to 0 are held. */
static void float_range(void **state)
{
    static const char text[] = "kernel f(f32 y[1], f16 h = 1, bf16 b = 1, f32 e = 1)\n"
                               "    grid(1)\n"
                               "{\n"
                               "    y[0] = (f32)h + (f32)b + e;\n"
                               "}\n";
    static const struct {
        const char *name;
        bool whole;
        int64_t i;
        double f;
        kiln_status want;
    } cases[] = {
        {"h", true, 65504, 0, KILN_OK},
        {"h", true, 65519, 0, KILN_OK}, /* rounds down */
        {"h", true, 65520, 0, KILN_E_ARG},
        {"h", true, 70000, 0, KILN_E_ARG},
        {"h", true, -70000, 0, KILN_E_ARG},
        {"h", false, 0, 70000, KILN_E_ARG},
        {"h", false, 0, (double)INFINITY, KILN_OK},
        {"h", false, 0, (double)NAN, KILN_OK},
        {"h", false, 0, 1e-60, KILN_OK},
        {"b", true, INT64_MAX, 0, KILN_OK},
        {"b", false, 0, 3.4e38, KILN_E_ARG},
        {"e", true, INT64_MIN, 0, KILN_OK},
        {"e", false, 0, 1e60, KILN_E_ARG},
        {"e", false, 0, -1e60, KILN_E_ARG},
        {"e", false, 0, 3e38, KILN_OK},
    };
    (void)state;
    kiln_context *ctx = interp();
    kiln_module *m = compile(ctx, text);
    float y[1] = {0};
    int64_t one[1] = {1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln_diags *g = NULL;
        kiln_arg a[2] = {{.name = "y", .kind = KILN_ARG_TENSOR}, {.name = cases[i].name}};
        a[0].u.tensor = (kiln_tensor){y, KILN_F32, 1, one, NULL, sizeof y, 0};
        a[1].kind = cases[i].whole ? KILN_ARG_INT : KILN_ARG_FLOAT;
        if (cases[i].whole)
            a[1].u.i = cases[i].i;
        else
            a[1].u.f = cases[i].f;
        kiln_status s = kiln_launch(kiln_module_kernel(m, "f"), NULL, a, 2, &g);
        if (s != cases[i].want)
            fail_msg("case %zu gives %s", i, kiln_status_name(s));
        if (s)
            assert_string_equal(kiln_diags_at(g, 0)->code, "K0705");
        kiln_diags_free(g);
    }
    kiln_module_free(m);
    kiln_context_free(ctx);
}

/* Integers as unsigned numbers, and the small types. */
static void integer_range(void **state)
{
    static const char text[] =
        "kernel f(f64 y[1], u64 u = 0, i64 i = 0, i8 s = 0, u16 h = 0, f8e4m3 e = 0,\n"
        "         f8e5m2 g = 0, constexpr u64 C = 1)\n"
        "    grid(1)\n"
        "{\n"
        "    y[0] = (f64)(u / C) + (f64)i + (f64)s + (f64)h + (f64)e + (f64)g;\n"
        "}\n";
    static const struct {
        const char *name;
        kiln_arg_kind kind;
        uint64_t u;
        double f;
        kiln_status want;
        double y;
    } cases[] = {
        {"u", KILN_ARG_UINT, UINT64_MAX, 0, KILN_OK, 0x1p64},
        {"u", KILN_ARG_INT, (uint64_t)-1, 0, KILN_E_ARG, 0},
        {"u", KILN_ARG_INT, INT64_MAX, 0, KILN_OK, 0x1p63},
        {"i", KILN_ARG_UINT, UINT64_MAX, 0, KILN_E_ARG, 0},
        {"i", KILN_ARG_UINT, 5, 0, KILN_OK, 5},
        {"C", KILN_ARG_UINT, UINT64_MAX, 0, KILN_OK, 0},
        {"s", KILN_ARG_INT, (uint64_t)-128, 0, KILN_OK, -128},
        {"s", KILN_ARG_INT, 128, 0, KILN_E_ARG, 0},
        {"s", KILN_ARG_UINT, 127, 0, KILN_OK, 127},
        {"h", KILN_ARG_INT, 65535, 0, KILN_OK, 65535},
        {"h", KILN_ARG_INT, 65536, 0, KILN_E_ARG, 0},
        {"h", KILN_ARG_INT, (uint64_t)-1, 0, KILN_E_ARG, 0},
        {"e", KILN_ARG_INT, 448, 0, KILN_OK, 448},
        {"e", KILN_ARG_INT, 465, 0, KILN_E_ARG, 0},
        {"e", KILN_ARG_FLOAT, 0, 464, KILN_OK, 448},
        {"e", KILN_ARG_FLOAT, 0, 464.5, KILN_E_ARG, 0},
        {"e", KILN_ARG_FLOAT, 0, (double)INFINITY, KILN_E_ARG, 0},
        {"g", KILN_ARG_FLOAT, 0, (double)INFINITY, KILN_OK, (double)INFINITY},
        {"g", KILN_ARG_FLOAT, 0, 61440, KILN_E_ARG, 0},
        {"g", KILN_ARG_UINT, UINT64_MAX, 0, KILN_E_ARG, 0},
    };
    (void)state;
    kiln_context *ctx = interp();
    kiln_module *m = compile(ctx, text);
    double y[1] = {0};
    int64_t one[1] = {1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln_diags *g = NULL;
        kiln_arg a[2] = {{.name = "y", .kind = KILN_ARG_TENSOR}, {.name = cases[i].name}};
        a[0].u.tensor = (kiln_tensor){y, KILN_F64, 1, one, NULL, sizeof y, 0};
        a[1].kind = cases[i].kind;
        if (cases[i].kind == KILN_ARG_FLOAT)
            a[1].u.f = cases[i].f;
        else
            a[1].u.u = cases[i].u;
        kiln_status s = kiln_launch(kiln_module_kernel(m, "f"), NULL, a, 2, &g);
        if (s != cases[i].want || (!s && !(y[0] == cases[i].y)))
            fail_msg("case %zu gives %s, %g", i, kiln_status_name(s), y[0]);
        if (s)
            assert_string_equal(kiln_diags_at(g, 0)->code, "K0705");
        kiln_diags_free(g);
    }
    kiln_module_free(m);
    kiln_context_free(ctx);
}

static void infer_shape(void **state)
{
    (void)state;
    kiln_context *ctx = interp();
    kiln_module *m = compile(ctx, add_text);
    static struct data d;
    fill(&d, 123);
    kiln_dtype t = KILN_DTYPE_NONE;
    int32_t nd = 0;
    int64_t shape[8] = {0};
    assert_int_equal(
        kiln_infer_shape(kiln_module_kernel(m, "add"), d.arg + 1, 2, "y", &t, &nd, shape, NULL),
        KILN_OK);
    assert_int_equal(t, KILN_F32);
    assert_int_equal(nd, 1);
    assert_int_equal(shape[0], 123);
    assert_int_equal(
        kiln_infer_shape(kiln_module_kernel(m, "add"), d.arg + 1, 2, "y", NULL, NULL, NULL, NULL),
        KILN_OK);
    kiln_diags *g = NULL; /* nothing determines n */
    assert_int_equal(
        kiln_infer_shape(kiln_module_kernel(m, "add"), NULL, 0, "y", &t, &nd, shape, &g),
        KILN_E_ARG);
    assert_int_equal(kiln_diags_count(g), 1);
    kiln_diags_free(g);
    kiln_module_free(m);
    kiln_context_free(ctx);
}

/* The checker: an element that nothing wrote. */
static void uninitialised(void **state)
{
    (void)state;
    static struct data d;
    for (unsigned checks = 0; checks <= KILN_CHECK_ALL; checks++) {
        kiln_options o = KILN_OPTIONS_INIT;
        o.device = KILN_DEVICE_INTERP;
        o.checks = checks;
        kiln_context *ctx = context(&o);
        kiln_module *m = compile(ctx, add_text);
        kiln_diags *g = NULL;
        fill(&d, 100);
        d.arg[0].u.tensor.flags = d.arg[2].u.tensor.flags = KILN_TENSOR_UNINIT;
        kiln_status s = kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, &g);
        if (checks & KILN_CHECK_UNINIT) {
            assert_int_equal(s, KILN_E_BOUNDS);
            assert_int_equal(kiln_diags_count(g), 1);
            assert_int_equal(strncmp(kiln_diags_at(g, 0)->code, "K14", 3), 0);
        } else {
            assert_int_equal(s, KILN_OK);
            assert_null(g);
        }
        kiln_diags_free(g);
        /* two names for one memory: what is written through one is there for the other */
        fill(&d, 100);
        d.arg[0].u.tensor.flags = KILN_TENSOR_UNINIT;
        d.arg[1].u.tensor.data = d.y;
        assert_int_equal(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, NULL),
                         checks & KILN_CHECK_UNINIT ? KILN_E_BOUNDS : KILN_OK);
        kiln_module_free(m);
        kiln_context_free(ctx);
    }
}

/* Each check by its own bit, on both devices; a comment makes a note of a finding. */
static void checks_one_by_one(void **state)
{
    (void)state;
    static const struct {
        unsigned bit;
        const char *code, *text;
    } rows[] = {
        {KILN_CHECK_RACES, "K1301", "y[0] = 1;"},
        {KILN_CHECK_RACES, NULL, "y[program_id(0)] = 1;"},
        {KILN_CHECK_LOOPS, "K1701", "i32 k = 0; while (k < 1) { k = k * n; } y[program_id(0)] = k;"},
        {KILN_CHECK_ARITH, "K1607", "y[program_id(0)] = 7 / n;"},
        {KILN_CHECK_WRITTEN, "K1403", "if (program_id(0) == 0) y[0] = 1;"},
        {KILN_CHECK_PADDING, "K2702", "y[program_id(0)] = max(y[2:4]);"},
        {KILN_CHECK_PADDING, NULL, "y[program_id(0)] = sum(y[2:4]);"},
        {KILN_CHECK_BOUNDS, "K1202", "y[program_id(0)] = 1; y[program_id(0) + 2] = 1;"},
        {KILN_CHECK_RACES, "allowed K1301", "y[0] = 1; // kiln: allow K1301 all the same"},
    };
    static const kiln_device devices[] = {KILN_DEVICE_INTERP, KILN_DEVICE_SIM};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int dev = 0; dev < 2; dev++)
            for (unsigned bit = 1; bit <= KILN_CHECK_ALL; bit *= 2) {
                char text[300];
                int32_t y[2] = {0, 0};
                int64_t shape[1] = {2};
                bool allowed = rows[i].code && rows[i].code[0] == 'a';
                bool warning = rows[i].bit == KILN_CHECK_WRITTEN || rows[i].bit == KILN_CHECK_PADDING;
                bool loops = rows[i].bit == KILN_CHECK_LOOPS;
                bool found = rows[i].code && bit == rows[i].bit;
                if (loops && bit != rows[i].bit)
                    continue; /* it would not end */
                snprintf(text, sizeof text, "kernel k(i32 n, i32 y[2]) grid(2)\n{\n    %s\n}\n",
                         rows[i].text);
                kiln_options o = KILN_OPTIONS_INIT;
                o.device = devices[dev];
                o.checks = bit;
                kiln_context *ctx = context(&o);
                kiln_module *m = compile(ctx, text);
                kiln_diags *g = NULL;
                kiln_arg a[2] = {{.name = "n", .kind = KILN_ARG_INT},
                                 {.name = "y", .kind = KILN_ARG_TENSOR}};
                a[1].u.tensor = (kiln_tensor){y, KILN_I32, 1, shape, NULL, 0, KILN_TENSOR_UNINIT};
                kiln_status s = kiln_launch(kiln_module_kernel(m, "k"), NULL, a, 2, &g);
                assert_int_equal(s, found && !allowed && !warning ? KILN_E_BOUNDS : KILN_OK);
                size_t n = 0;
                for (size_t k = 0; k < kiln_diags_count(g); k++) {
                    const kiln_diag *x = kiln_diags_at(g, k);
                    assert_string_not_equal(x->code, "K1299");
                    if (!rows[i].code || strcmp(x->code, strchr(rows[i].code, 'K')) != 0)
                        continue;
                    n++;
                    assert_int_equal(x->place.line, rows[i].bit == KILN_CHECK_WRITTEN ? 1 : 3);
                    if (strcmp(x->code, "K1301") == 0)
                        assert_int_equal(x->severity, allowed ? KILN_NOTE : KILN_ERROR);
                }
                assert_int_equal(n, found);
                kiln_diags_free(g);
                kiln_module_free(m);
                kiln_context_free(ctx);
            }
}

/* ---- specialisations, cache ---- */

/* A compiler that counts its runs. */
static const char *counting_cc(void)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/cc", root);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n[ \"$1\" = --version ] || echo run >> %s/runs\nexec %s \"$@\"\n", root,
            system_cc());
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

static int runs(void)
{
    char path[100];
    struct stat st;
    snprintf(path, sizeof path, "%s/runs", root);
    return stat(path, &st) == 0 ? (int)(st.st_size / 4) : 0;
}

static kiln_cache_state state_of(kiln_kernel *k, struct data *d)
{
    kiln_spec *sp = NULL;
    assert_int_equal(kiln_specialize(k, d->arg, 3, &sp, NULL), KILN_OK);
    const kiln_spec_info *i = kiln_spec_get_info(sp);
    assert_int_equal(i->device, KILN_DEVICE_CPU);
    assert_int_equal(i->grid[1], 1);
    kiln_cache_state c = i->cache;
    assert_true(i->front_ms > 0);
    assert_true((c == KILN_CACHE_HIT) == (i->cc_ms == 0));
    kiln_spec_free(sp);
    return c;
}

static void each_entry(const char *dir, void (*f)(const char *path))
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (strlen(e->d_name) == 64) {
            char path[400];
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
            f(path);
        }
    closedir(d);
}

static void damage(const char *path)
{
    int fd = open(path, O_RDWR);
    char c;
    off_t at = lseek(fd, 0, SEEK_END) / 2;
    assert_int_equal(pread(fd, &c, 1, at), 1);
    c ^= 4;
    assert_int_equal(pwrite(fd, &c, 1, at), 1);
    close(fd);
}

static void cache_states(void **state)
{
    (void)state;
    char dir[100];
    static struct data d;
    const char *cc = counting_cc();
    snprintf(dir, sizeof dir, "%s/cache", root);
    static const struct {
        bool cache, damage;
        kiln_cache_state want;
        int runs;
    } steps[] = {
        {false, false, KILN_CACHE_OFF, 1}, {true, false, KILN_CACHE_MISS, 2},
        {true, false, KILN_CACHE_HIT, 2},  {true, true, KILN_CACHE_STALE, 3},
        {true, false, KILN_CACHE_HIT, 3},  {false, false, KILN_CACHE_OFF, 4},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i].damage)
            each_entry(dir, damage);
        kiln_context *ctx = cpu(cc, steps[i].cache ? dir : NULL);
        kiln_module *m = compile(ctx, add_text);
        kiln_kernel *k = kiln_module_kernel(m, "add");
        fill(&d, 500);
        assert_int_equal(state_of(k, &d), steps[i].want);
        assert_int_equal(runs(), steps[i].runs);
        assert_int_equal(kiln_launch(k, NULL, d.arg, 3, NULL), KILN_OK);
        right(&d);
        fill(&d, 77); /* another size, the same code */
        assert_int_equal(kiln_launch(k, NULL, d.arg, 3, NULL), KILN_OK);
        right(&d);
        assert_int_equal(runs(), steps[i].runs);
        kiln_module_free(m);
        kiln_context_free(ctx);
    }
}

/* Several kernels and sizes through one run of the compiler; each is found again alone. */
static void specialize_many(void **state)
{
    (void)state;
    char dir[100];
    static struct data d[4];
    const char *cc = counting_cc();
    snprintf(dir, sizeof dir, "%s/cache", root);
    for (int round = 0; round < 2; round++) {
        kiln_context *ctx = cpu(cc, dir);
        kiln_module *m = compile(ctx, add_text), *m2 = compile(ctx, add_text);
        kiln_kernel *k[5];
        const kiln_arg *args[5];
        size_t n[5];
        kiln_spec *sp[5];
        for (int i = 0; i < 4; i++) {
            fill(&d[i], 100 + i);
            d[i].arg[3] = (kiln_arg){.name = "B", .kind = KILN_ARG_INT, .u.i = 8 << i};
            k[i] = kiln_module_kernel(i == 3 ? m2 : m, "add");
            args[i] = d[i].arg;
            n[i] = 4;
        }
        k[4] = k[0]; /* the same twice */
        args[4] = args[0];
        n[4] = 4;
        kiln_diags *g = NULL;
        kiln_status s = kiln_specialize_many(k, args, n, 5, sp, &g);
        show(g);
        assert_int_equal(s, KILN_OK);
        assert_int_equal(runs(), 1);
        for (int i = 0; i < 5; i++) {
            const kiln_spec_info *info = kiln_spec_get_info(sp[i]);
            assert_int_equal(info->cache, round ? KILN_CACHE_HIT : KILN_CACHE_MISS);
            kiln_spec_free(sp[i]);
        }
        for (int i = 0; i < 4; i++) {
            assert_int_equal(kiln_launch(k[i], NULL, d[i].arg, 4, NULL), KILN_OK);
            right(&d[i]);
        }
        assert_int_equal(runs(), 1);
        /* one bad among them: none is made */
        n[2] = 1;
        assert_int_equal(kiln_specialize_many(k, args, n, 5, sp, NULL), KILN_E_ARG);
        for (int i = 0; i < 5; i++)
            assert_null(sp[i]);
        kiln_module_free(m);
        kiln_module_free(m2);
        kiln_context_free(ctx);
    }
}

/* A second launch neither compiles nor looks anything up on disk. */
static void launches_are_cheap(void **state)
{
    (void)state;
    static struct data d;
    kiln_context *ctx = cpu(NULL, NULL);
    kiln_module *m = compile(ctx, add_text);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    fill(&d, 10);
    assert_int_equal(kiln_launch(k, NULL, d.arg, 3, NULL), KILN_OK);
    struct timespec a, b;
    enum { N = 2000 };
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < N; i++)
        kiln_launch(k, NULL, d.arg, 3, NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double us = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 1e3 / N;
    print_message("a launch takes %.1f us\n", us);
    assert_true(us < 1000);
    kiln_module_free(m);
    kiln_context_free(ctx);
}

/* ---- compilers that fail ---- */

static const char *script(const char *body)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/badcc", root);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n[ \"$1\" = --version ] && { echo fake 1.0; exit 0; }\n%s\n", body);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

static void failing_compiler(void **state)
{
    (void)state;
    static struct data d;
    static const char *const bodies[] = {"echo my words >&2; exit 1", "exit 0",
                                         "echo not an object > o.so", "sleep 100"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        for (int automatic = 0; automatic < 2; automatic++) {
            kiln_options o = KILN_OPTIONS_INIT;
            o.device = automatic ? KILN_DEVICE_AUTO : KILN_DEVICE_CPU;
            o.cc = script(bodies[i]);
            o.cc_timeout_ms = 400;
            kiln_context *ctx = NULL;
            kiln_status s = kiln_context_create(&o, &ctx, NULL);
            if (s == KILN_E_UNSUPPORTED)
                skip();
            assert_int_equal(s, KILN_OK);
            kiln_module *m = compile(ctx, add_text);
            kiln_diags *g = NULL;
            fill(&d, 100);
            s = kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, &g);
            assert_int_equal(kiln_diags_count(g), 1);
            if (automatic) { /* says so, and interprets */
                assert_int_equal(s, KILN_OK);
                assert_string_equal(kiln_diags_at(g, 0)->code, "K1806");
                right(&d);
            } else {
                assert_int_equal(s, KILN_E_TOOLCHAIN);
                assert_string_equal(kiln_diags_at(g, 0)->code, "K1805");
                untouched(&d);
            }
            if (i == 0)
                assert_non_null(strstr(kiln_diags_at(g, 0)->text, "my words"));
            kiln_diags_free(g);
            kiln_module_free(m);
            kiln_context_free(ctx);
        }
}

static void keeps_files(void **state)
{
    (void)state;
    static struct data d;
    char dir[100], cmd[300];
    unsigned nc = 0, nso = 0;
    kiln_options o = KILN_OPTIONS_INIT;
    snprintf(dir, sizeof dir, "%s/keep", root);
    o.device = KILN_DEVICE_CPU;
    o.cc = system_cc();
    o.keep_dir = dir;
    kiln_context *ctx = NULL;
    kiln_status s = kiln_context_create(&o, &ctx, NULL);
    if (s == KILN_E_UNSUPPORTED)
        skip();
    assert_int_equal(s, KILN_OK);
    kiln_module *m = compile(ctx, add_text);
    fill(&d, 100);
    assert_int_equal(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, NULL), KILN_OK);
    right(&d);
    snprintf(cmd, sizeof cmd, "ls %s/add-*.c | wc -l; ls %s/add-*.so | wc -l", dir, dir);
    FILE *f = popen(cmd, "r");
    assert_int_equal(fscanf(f, "%u %u", &nc, &nso), 2);
    pclose(f);
    assert_int_equal(nc, 1);
    assert_int_equal(nso, 1);
    kiln_module_free(m);
    kiln_context_free(ctx);
}

/* ---- threads ---- */

struct worker {
    kiln_context *ctx;
    kiln_kernel *shared;
    unsigned seed;
    int failed;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    struct data *d = malloc(sizeof *d);
    for (int i = 0; i < 12 && !w->failed; i++) {
        w->seed = w->seed * 1664525 + 1013904223;
        kiln_module *own = NULL;
        kiln_kernel *k = w->shared;
        if (w->seed >> 20 & 1) {
            w->failed |= kiln_compile(w->ctx, "t", add_text, strlen(add_text), &own, NULL) != 0;
            k = kiln_module_kernel(own, "add");
        }
        fill(d, 1 + (int64_t)(w->seed >> 8) % MAXN);
        d->arg[3] =
            (kiln_arg){.name = "B", .kind = KILN_ARG_INT, .u.i = 1 << (4 + (w->seed >> 24) % 3)};
        kiln_spec *sp = NULL;
        if (w->seed >> 21 & 1)
            w->failed |= kiln_specialize(k, d->arg, 4, &sp, NULL) != 0;
        w->failed |= kiln_launch(k, NULL, d->arg, 4, NULL) != 0;
        for (int j = 0; j < d->n[0]; j++)
            w->failed |= d->y[j] != d->a[j] + d->b[j];
        kiln_spec_free(sp);
        kiln_module_free(own);
    }
    free(d);
    return NULL;
}

static void threads_on(kiln_context *ctx)
{
    enum { N = 16 };
    pthread_t t[N];
    struct worker w[N];
    kiln_module *m = compile(ctx, add_text);
    for (unsigned i = 0; i < N; i++) {
        w[i] = (struct worker){ctx, kiln_module_kernel(m, "add"), i * 77 + 1, 0};
        assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < N; i++)
        assert_int_equal(w[i].failed, 0);
    kiln_module_free(m);
}

static void threads_interp(void **state)
{
    (void)state;
    kiln_context *ctx = interp();
    threads_on(ctx);
    kiln_context_free(ctx);
}

static void threads_cpu(void **state)
{
    (void)state;
    char dir[100];
    const char *cc = counting_cc();
    snprintf(dir, sizeof dir, "%s/cache", root);
    kiln_context *ctx = cpu(cc, dir);
    threads_on(ctx);
    assert_true(runs() <= 3); /* each of the three texts once, whoever came first */
    kiln_context_free(ctx);
}

/* ---- what the host may do to us ---- */

static int launch_in_child(void)
{
    static struct data d;
    kiln_options o = KILN_OPTIONS_INIT;
    o.device = KILN_DEVICE_INTERP;
    o.threads = 3;
    kiln_context *ctx = NULL;
    kiln_module *m = NULL;
    alarm(30);
    CHECK(kiln_context_create(&o, &ctx, NULL) == KILN_OK);
    CHECK(kiln_compile(ctx, "t", add_text, strlen(add_text), &m, NULL) == KILN_OK);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    fill(&d, 1000);
    CHECK(kiln_launch(k, NULL, d.arg, 3, NULL) == KILN_OK); /* starts the threads */
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        fill(&d, 999);
        kiln_status s = kiln_launch(k, NULL, d.arg, 3, NULL);
        bool ok = s == KILN_OK && d.y[998] == d.a[998] + d.b[998];
        kiln_module_free(m);
        kiln_context_free(ctx);
        _exit(ok ? 0 : 1);
    }
    int st = -1;
    CHECK(waitpid(pid, &st, 0) == pid && st == 0);
    kiln_module_free(m);
    kiln_context_free(ctx);
    return 0;
}

static void forked_host(void **state)
{
    (void)state;
    assert_int_equal(in_child(launch_in_child), 0);
}

/* The caller's rounding mode neither changes results nor is changed. */
static void rounding_mode(void **state)
{
    (void)state;
    static const char text[] =
        "kernel third(i64 n, f32 y[n], f32 d = 3, constexpr f32 c = 1.0 / 3.0) grid(n)\n"
        "{\n    y[program_id(0)] = 1 / d + c;\n}\n";
    float y[2] = {0};
    int64_t two[1] = {2};
    kiln_arg a = {.name = "y", .kind = KILN_ARG_TENSOR};
    kiln_context *ctx[2] = {interp(), cpu(NULL, NULL)};
    a.u.tensor = (kiln_tensor){y, KILN_F32, 1, two, NULL, 0, 0};
    for (int dev = 0; dev < 2; dev++) {
        float want = 0;
        for (int mode = 0; mode < 2; mode++) {
            fesetround(mode ? FE_UPWARD : FE_TONEAREST);
            kiln_module *m = NULL;
            kiln_status s = kiln_compile(ctx[dev], "t", text, sizeof text - 1, &m, NULL);
            kiln_status l = s ? s : kiln_launch(kiln_module_at(m, 0), NULL, &a, 1, NULL);
            int after = fegetround();
            fesetround(FE_TONEAREST);
            assert_int_equal(s, KILN_OK);
            assert_int_equal(l, KILN_OK);
            assert_int_equal(after, mode ? FE_UPWARD : FE_TONEAREST);
            if (!mode)
                want = y[1];
            assert_true(y[1] == want && y[0] == want);
            kiln_module_free(m);
        }
        kiln_context_free(ctx[dev]);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(launch_interp),      T(launch_checked),   T(launch_cpu),    T(launch_errors),
        T(infer_shape),        T(uninitialised), T(checks_one_by_one),    T(cache_states),  T(specialize_many),
        T(float_range),
        T(integer_range),
        T(launches_are_cheap), T(failing_compiler), T(keeps_files),   T(threads_interp),
        T(threads_cpu),        T(forked_host),      T(rounding_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
