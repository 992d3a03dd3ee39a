/* test_rows.c - long rows, which a GPU lays over clusters of CTAs: the same bits from the
 * interpreter, the CPU, and the PTX executor with and without clusters. */
#define _GNU_SOURCE
#include "common.h"

#include "kiln_nn.h"

enum { MOST_DEVICES = 4 };
static struct {
    kiln_context *ctx[MOST_DEVICES];
    const char *name[MOST_DEVICES];
    unsigned n, clusters; /* clusters: number of the device that has them */
} dev;

static int open_all(void **state)
{
    kiln_options o = KILN_OPTIONS_INIT;
    (void)state;
    o.device = KILN_DEVICE_INTERP;
    dev.name[dev.n] = "interpreter";
    dev.ctx[dev.n++] = context(&o);
    o.device = KILN_DEVICE_SIM;
    o.arch = "sm_90";
    dev.clusters = dev.n;
    dev.name[dev.n] = "executor";
    dev.ctx[dev.n++] = context(&o);
    o.arch = "sm_80";
    dev.name[dev.n] = "executor without clusters";
    dev.ctx[dev.n++] = context(&o);
    o = (kiln_options)KILN_OPTIONS_INIT;
    kiln_options_from_env(&o);
    o.device = KILN_DEVICE_CPU;
    o.threads = 2;
    if (kiln_context_create(&o, &dev.ctx[dev.n], NULL) == KILN_OK)
        dev.name[dev.n++] = "CPU";
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < dev.n; i++)
        kiln_context_free(dev.ctx[i]);
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

/* ---- arrays ---- */

/* Roughly normal numbers. */
static void fill_array(void *p, kiln_dtype t, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        float f = -2;
        uint32_t bits;
        for (int k = 0; k < 4; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            f += (float)(seed >> 40) / 16777216.0f;
        }
        f *= 1.7f;
        memcpy(&bits, &f, sizeof bits);
        if (t == KILN_F64)
            ((double *)p)[i] = (double)f * (1 + 1e-9 * (double)(seed >> 50));
        else if (t == KILN_F32)
            ((float *)p)[i] = f;
        else
            ((uint16_t *)p)[i] = (uint16_t)(bits >> 16);
    }
}

struct job {
    kiln_arg arg[8];
    int64_t shape[8][2];
    size_t bytes[8];
    bool out[8];
    unsigned n;
};

static void add_array(struct job *j, const char *name, kiln_dtype t, int64_t rows, int64_t cols,
                      bool out)
{
    unsigned i = j->n++;
    size_t n = (size_t)(rows ? rows : 1) * (size_t)(cols ? cols : 1);
    int64_t *s = j->shape[i];
    j->bytes[i] = n * kiln_dtype_size(t);
    j->out[i] = out;
    s[0] = rows ? rows : cols;
    s[1] = cols;
    j->arg[i] = (kiln_arg){.name = name, .kind = KILN_ARG_TENSOR};
    j->arg[i].u.tensor = (kiln_tensor){
        .data = malloc(j->bytes[i]), .dtype = t, .ndim = rows && cols ? 2 : 1, .shape = s};
    assert_non_null(j->arg[i].u.tensor.data);
    if (!out)
        fill_array(j->arg[i].u.tensor.data, t, n, i + 5);
}

static void add_number(struct job *j, const char *name, int64_t v)
{
    j->arg[j->n] = (kiln_arg){.name = name, .kind = KILN_ARG_INT};
    j->arg[j->n++].u.i = v;
}

/* One kernel on all devices; the executor must use `cluster` CTAs for a program. */
static void same_bits(const char *path, const char *text, const char *kernel, struct job *j,
                      uint32_t cluster)
{
    char *first[8] = {NULL};
    for (unsigned d = 0; d < dev.n; d++) {
        kiln_module *m = path ? load(dev.ctx[d], path) : compile(dev.ctx[d], text);
        kiln_kernel *k = kiln_module_kernel(m, kernel);
        kiln_diags *g = NULL;
        for (unsigned i = 0; i < j->n; i++)
            if (j->out[i])
                memset(j->arg[i].u.tensor.data, 0x5a, j->bytes[i]);
        kiln_status s = kiln_launch(k, NULL, j->arg, j->n, &g);
        show(g);
        kiln_diags_free(g);
        if (s)
            fail_msg("%s: status %d on %s", kernel, (int)s, dev.name[d]);
        if (d == dev.clusters) {
            kiln_spec *sp = NULL;
            assert_int_equal(kiln_specialize(k, j->arg, j->n, &sp, NULL), KILN_OK);
            const kiln_spec_info *info = kiln_spec_get_info(sp);
            assert_int_equal(info->cluster, cluster);
            assert_int_equal(info->ctas, info->grid[0] * cluster);
            kiln_spec_free(sp);
        }
        for (unsigned i = 0; i < j->n; i++) {
            const char *p = j->arg[i].u.tensor.data;
            if (!j->out[i])
                continue;
            if (d == 0) {
                first[i] = malloc(j->bytes[i]);
                memcpy(first[i], p, j->bytes[i]);
            } else if (memcmp(first[i], p, j->bytes[i]) != 0) {
                size_t at = 0;
                while (first[i][at] == p[at])
                    at++;
                fail_msg("%s, %lld columns of %s: %s differs on %s from byte %zu on", kernel,
                         (long long)j->shape[0][1], kiln_dtype_name(j->arg[0].u.tensor.dtype),
                         j->arg[i].name, dev.name[d], at);
            }
        }
        kiln_module_free(m);
    }
    for (unsigned i = 0; i < j->n; i++) {
        free(first[i]);
        if (j->arg[i].kind == KILN_ARG_TENSOR)
            free(j->arg[i].u.tensor.data);
    }
}

static const struct {
    int64_t cols;
    kiln_dtype t;
    uint32_t cluster;
} rows[] = {
    {16384, KILN_F32, 2},   {20001, KILN_F32, 4},   {65536, KILN_F32, 8},  {65537, KILN_F32, 8},
    {262143, KILN_F32, 16}, {300000, KILN_F32, 16}, {32768, KILN_BF16, 4}, {65537, KILN_BF16, 8},
    {131071, KILN_BF16, 8}, {16384, KILN_F64, 4},   {70001, KILN_F64, 16},
};
enum { NROWS = sizeof rows / sizeof *rows };

static void softmax(void **state)
{
    (void)state;
    for (size_t i = 0; i < NROWS; i++) {
        struct job j = {.n = 0};
        add_array(&j, "y", rows[i].t, 2, rows[i].cols, true);
        add_array(&j, "x", rows[i].t, 2, rows[i].cols, false);
        same_bits("kernels/softmax.kiln", NULL, "softmax", &j, rows[i].cluster);
    }
}

static void norms(void **state)
{
    (void)state;
    for (size_t i = 0; i < NROWS; i++) {
        kiln_dtype t = rows[i].t, acc = t == KILN_BF16 ? KILN_F32 : t;
        struct job j = {.n = 0}, k = {.n = 0};
        add_array(&j, "y", t, 2, rows[i].cols, true);
        add_array(&j, "x", t, 2, rows[i].cols, false);
        add_array(&j, "gamma", t, 0, rows[i].cols, false);
        add_array(&j, "beta", t, 0, rows[i].cols, false);
        add_array(&j, "mean", acc, 0, 2, true);
        add_array(&j, "rstd", acc, 0, 2, true);
        same_bits("kernels/layernorm.kiln", NULL, "layernorm", &j, rows[i].cluster);
        add_array(&k, "y", t, 2, rows[i].cols, true);
        add_array(&k, "x", t, 2, rows[i].cols, false);
        add_array(&k, "gamma", t, 0, rows[i].cols, false);
        same_bits("kernels/rmsnorm.kiln", NULL, "rmsnorm", &k, rows[i].cluster);
    }
}

/* Every kind of exchange, one after the other, some of them in loops and branches; an array is
 * read after it was written, by other CTAs too. */
static const char many_text[] =
    "f32 last(f32 a, f32 b) { return a * 0.5 + b; }\n"
    "kernel many(i64 cols, i64 trips, f32 s[8], i32 at[2], f32 y[cols], const f32 x[cols],\n"
    "            constexpr i64 BLOCK = pow2ceil(cols))\n"
    "    grid(1)\n"
    "    CLAUSES\n"
    "{\n"
    "    auto v = x[0:BLOCK];\n"
    "    f32 a = sum(v);\n"
    "    f32 b = max(load(x[0:BLOCK], -inf));\n"
    "    for (i64 i = 0; i < trips; i++) {\n"
    "        a = a * 0.5 + sum(v * b);\n"
    "        if (a > b)\n"
    "            b += min(v);\n"
    "    }\n"
    "    s[0] = a;\n"
    "    s[1] = b;\n"
    "    s[2] = s[0] + 1;\n"
    "    s[3] = reduce(v, last, .commutative = true);\n"
    "    s[4] = reduce(v, last);\n"
    "    s[5] = prod(1 + v * 0.001);\n"
    "    at[0] = argmax(v);\n"
    "    at[1] = sum((i32)(v * 100));\n"
    "    y[0:BLOCK] = v + s[2];\n"
    "    auto w = y[1:BLOCK];\n"
    "    y[0:BLOCK] = w * 2;\n"
    "    s[6] = sum(y[0:BLOCK]);\n"
    "}\n";

static void mixed(void **state)
{
    (void)state;
    static const struct {
        const char *clauses;
        int64_t cols;
        uint32_t cluster;
    } how[] = {
        {"warps(1) cluster(2)", 1000, 2},
        {"warps(2) cluster(4)", 4097, 4},
        {"warps(8) cluster(8)", 20000, 8},
        {"warps(4) cluster(16)", 30001, 16},
        {"cluster(3)", 5000, 2},
        {"cluster(64)", 70000, 16},
        {"warps(1) cluster(16)", 3, 16},
        {"cluster(1)", 40000, 1},
        {"", 40000, 8},
    };
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        char text[4096];
        const char *at = strstr(many_text, "CLAUSES");
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - many_text), many_text, how[i].clauses,
                 at + strlen("CLAUSES"));
        struct job j = {.n = 0};
        add_array(&j, "x", KILN_F32, 0, how[i].cols, false);
        add_array(&j, "s", KILN_F32, 0, 8, true);
        add_array(&j, "at", KILN_I32, 0, 2, true);
        add_array(&j, "y", KILN_F32, 0, how[i].cols, true);
        add_number(&j, "trips", 3);
        same_bits(NULL, text, "many", &j, how[i].cluster);
    }
}

/* Rows and columns of a tile over a cluster; and what cannot be made with one. */
static void tiles(void **state)
{
    (void)state;
    static const char text[] =
        "kernel both(i64 n, f32 r[n], f32 c[64], i32 m[64], const f32 x[n][64], constexpr i64 N = 256)\n"
        "    grid(1)\n    warps(4)\n    cluster(4)\n"
        "{\n"
        "    auto v = x[0:N][0:64];\n"
        "    r[0:N] = sum(v, .axis = 1);\n"
        "    c[0:64] = sum(v, .axis = 0);\n"
        "    m[0:64] = argmax(v, .axis = 0);\n"
        "}\n"
        "kernel turned(i64 n, f32 y[n], const f32 x[n], constexpr i64 N = 4096)\n"
        "    grid(1)\n    cluster(4)\n"
        "{\n"
        "    y[0:N] = flip(x[0:N]) + sum(x[0:N]);\n"
        "}\n"
        "kernel running(i64 n, f32 y[n], const f32 x[n], constexpr i64 N = 4096)\n"
        "    grid(1)\n    cluster(4)\n"
        "{\n"
        "    y[0:N] = cumsum(x[0:N]) + max(x[0:N]);\n"
        "}\n"
        "kernel picked(i64 n, f32 y[n], i32 count[1], const f32 x[n], constexpr i64 N = 4096)\n"
        "    grid(1)\n    cluster(4)\n"
        "{\n"
        "    y[0:N] = x[range(N) * 7 % N] + sum(x[0:N]);\n"
        "    atomic_add(count[0], 3);\n"
        "}\n";
    struct job j = {.n = 0}, k = {.n = 0}, r = {.n = 0}, p = {.n = 0};
    add_array(&j, "x", KILN_F32, 250, 64, false);
    add_array(&j, "r", KILN_F32, 0, 250, true);
    add_array(&j, "c", KILN_F32, 0, 64, true);
    add_array(&j, "m", KILN_I32, 0, 64, true);
    same_bits(NULL, text, "both", &j, 4);
    add_array(&k, "y", KILN_F32, 0, 4096, true);
    add_array(&k, "x", KILN_F32, 0, 4096, false);
    same_bits(NULL, text, "turned", &k, 1);
    add_array(&r, "y", KILN_F32, 0, 4096, true);
    add_array(&r, "x", KILN_F32, 0, 4096, false);
    same_bits(NULL, text, "running", &r, 1);
    add_array(&p, "y", KILN_F32, 0, 4096, true);
    add_array(&p, "count", KILN_I32, 0, 1, true);
    add_array(&p, "x", KILN_F32, 0, 4096, false);
    same_bits(NULL, text, "picked", &p, 1);
}

/* What the functions of kiln_nn.h launch for a row: whole where the device holds it, else in blocks. */
static void library(void **state)
{
    (void)state;
    enum { COLS = 40000, NFORM = 3 };
    static const char *const file[NFORM] = {"softmax", "layernorm", "rmsnorm"};
    static const char *const form[NFORM][2] = {{"softmax", "softmax_online"},
                                               {"layernorm", "layernorm_looped"},
                                               {"rmsnorm", "rmsnorm_looped"}};
    static float y[COLS], z[COLS];
    for (unsigned d = 0; d < dev.n; d++) {
        kiln_nn *nn = NULL;
        struct job j = {.n = 0};
        assert_int_equal(kiln_nn_create(dev.ctx[d], &nn, NULL), KILN_OK);
        add_array(&j, "x", KILN_F32, 1, COLS, false);
        add_array(&j, "y", KILN_F32, 1, COLS, true);
        kiln_tensor *x = &j.arg[0].u.tensor, *t = &j.arg[1].u.tensor;
        free(t->data);
        for (int f = 0; f < NFORM; f++) {
            kiln_module *m = NULL;
            t->data = y;
            assert_int_equal(f == 0   ? kiln_nn_softmax(nn, NULL, t, x, NULL)
                             : f == 1 ? kiln_nn_layernorm(nn, NULL, t, NULL, NULL, x, NULL, NULL,
                                                          1e-5, NULL)
                                      : kiln_nn_rmsnorm(nn, NULL, t, x, NULL, 1e-6, NULL),
                             KILN_OK);
            t->data = z;
            bool blocks = strcmp(dev.name[d], "executor without clusters") == 0;
            assert_int_equal(kiln_nn_module(nn, file[f], &m, NULL), KILN_OK);
            kiln_kernel *k = kiln_module_kernel(m, form[f][blocks]);
            assert_int_equal(kiln_launch(k, NULL, j.arg, j.n, NULL), KILN_OK);
            assert_memory_equal(y, z, sizeof y);
        }
        free(x->data);
        kiln_nn_free(nn);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed),
        cmocka_unit_test(tiles),
        cmocka_unit_test(softmax),
        cmocka_unit_test(norms),
        cmocka_unit_test(library),
    };
    return cmocka_run_group_tests_name("rows", tests, open_all, close_all);
}
