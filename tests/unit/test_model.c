/* test_model.c - figures of the model that are known, and each rule on a kernel that triggers it and on
 * one that does not.  That its counts are the executor's is tests/explain. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/lib.h"
#include "model/model.h"

/* ---- a model of a launch ---- */

struct arg {
    const char *name;
    kiln_dtype t; /* 0: an integer */
    int64_t v[4]; /* shape, up to 0; or the integer */
    int64_t pitch; /* of rank 2; 0: dense */
};

struct making {
    kiln_kernel *k;
    kiln_arg args[8];
    size_t n;
    bool no_swizzle, plain;
    uint64_t budget, base;
    const kl_note_opts *opts;
    void (*look)(const kl_model *m, const kl_model_in *in, void *user);
    void *user;
    char notes[20000];
};

static kiln_status make(struct kl_call *c, void *arg)
{
    struct making *w = arg;
    kl_bound b;
    if (!kl_bind(&c->tmp, w->k->mod->ast, w->k->node, w->args, w->n, KL_BIND_SHAPES_ONLY, 132, &b, c->d))
        return KILN_E_ARG;
    kl_fn *plain = kl_lower(&c->tmp, w->k->mod->ast, &b, c->d), *f = kl_lower(&c->tmp, w->k->mod->ast, &b, c->d);
    const kl_pipeline p = {.level = 2};
    if (!f)
        return KILN_E_COMPILE;
    kl_run_passes(f, &p, NULL);
    unsigned facts = kl_facts(w->k, &b);
    const kl_ptx_opts po = {.arch = 90, .v16 = (facts & KL_FACT_V16) && !(w->base % 16), .i32 = facts & KL_FACT_I32,
                            .no_swizzle = w->no_swizzle};
    kl_model_param *mp = kl_new_n(&c->tmp, kl_model_param, f->nparam + 1);
    for (uint32_t i = 0; i < f->nparam; i++) {
        const struct kl_boundparam *q = &b.param[f->param[i].decl];
        mp[i] = (kl_model_param){.name = f->param[i].name, .given = q->given, .bits = q->bits, .rank = q->rank,
                                 .base = w->base};
        memcpy(mp[i].ext, q->ext, sizeof mp[i].ext);
        memcpy(mp[i].str, q->str, sizeof mp[i].str);
    }
    const kl_model_in in = {.f = f, .plain = w->plain ? plain : NULL, .ptx = &po, .param = mp, .budget = w->budget,
                            .grid = {b.grid[0], b.grid[1], b.grid[2]}, .num_sms = 132};
    kl_model m;
    kl_model_make(&m, &in);
    kl_model_notes(&m, &in, w->opts, c->d);
    if (w->look)
        w->look(&m, &in, w->user);
    return KILN_OK;
}

static void model(const char *text, const char *kernel, const struct arg *a, struct making *w)
{
    kiln_context *ctx;
    kiln_module *mod;
    kiln_diags *d = NULL;
    struct kl_call c;
    const kiln_options opt = {.size = sizeof opt, .device = KILN_DEVICE_INTERP};
    assert_int_equal(kiln_context_create(&opt, &ctx, NULL), KILN_OK);
    kiln_status s = kiln_compile(ctx, "test.kiln", text, strlen(text), &mod, &d);
    if (s) {
        kiln_diags_render(d, 0, w->notes, sizeof w->notes);
        fail_msg("%s", w->notes);
    }
    w->k = kernel ? kiln_module_kernel(mod, kernel) : kiln_module_at(mod, 0);
    assert_non_null(w->k);
    static int64_t strides[8][2];
    w->n = 0;
    for (; a->name; a++) {
        kiln_arg *g = &w->args[w->n];
        *g = (kiln_arg){.name = a->name, .kind = KILN_ARG_INT};
        g->u.i = a->v[0];
        if (a->t) {
            int32_t nd = 0;
            while (nd < 4 && a->v[nd])
                nd++;
            g->kind = KILN_ARG_TENSOR;
            g->u.tensor = (kiln_tensor){.dtype = a->t, .ndim = nd, .shape = (int64_t *)(uintptr_t)a->v};
            if (a->pitch) {
                strides[w->n][0] = a->pitch, strides[w->n][1] = 1;
                g->u.tensor.strides = strides[w->n];
            }
        }
        w->n++;
    }
    assert_int_equal(kl_call_begin(&c, &ctx->al), KILN_OK);
    s = kl_guarded(&c, &mod->ast->src, make, w);
    s = kl_call_end(&c, s, &d);
    w->notes[0] = 0;
    if (d)
        kiln_diags_render(d, 0, w->notes, sizeof w->notes);
    if (s)
        fail_msg("%s: %s", kiln_status_text(s), w->notes);
    kiln_diags_free(d);
    kiln_module_free(mod);
    kiln_context_free(ctx);
}

static char *kernel_file(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *s = calloc(1, 1 << 16);
    assert_true(fread(s, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    return s;
}

/* ---- figures ---- */

static void keep(const kl_model *m, const kl_model_in *in, void *user)
{
    (void)in;
    *(kl_model *)user = *m; /* its lists die with the call; the tests copy what they need */
}

/* MISSION B2: five passes of a softmax of 1024 x 1024 f32 move 32.016 MiB, the fused one 8 MiB. */
static void passes(void **state)
{
    (void)state;
    char *text = kernel_file("kernels/softmax.kiln");
    static const int64_t n[] = {1024, 4096, 512};
    for (size_t i = 0; i < 3; i++) {
        kl_model m;
        struct making w = {.look = keep, .user = &m};
        const struct arg a[] = {{"x", KILN_F32, {n[i], n[i]}, 0}, {0}};
        model(text, "softmax", a, &w);
        const uint64_t sq = (uint64_t)(n[i] * n[i]);
        assert_int_equal(m.passes.n, 5);
        assert_int_equal(m.passes.read + m.passes.written, 4 * (8 * sq + 4 * (uint64_t)n[i]));
        assert_int_equal(m.passes.fused, 8 * sq);
        assert_int_equal(m.moved, 8 * sq);
        const double off = m.passes.ratio - (4 + 2.0 / (double)n[i]);
        assert_true(off < 1e-9 && off > -1e-9);
        assert_true(m.exact);
        /* max, minus, exp, sum, over: five operations an element, less the first of each fold */
        assert_int_equal(m.work.fp32, 4 * sq - 2 * (uint64_t)n[i]);
        assert_int_equal(m.work.special, sq);
        assert_int_equal(m.gload.units, sq / 8);
        assert_int_equal(m.gload.units, m.gload.ideal);
        assert_int_equal(m.gload.requests, sq / 128);
        assert_int_equal(m.gstore.units, sq / 8);
    }
    free(text);
}

/* A sum by a loop is one pass, whatever it adds up in; so the kernel moves what the pass does. */
static void looped(void **state)
{
    (void)state;
    char *text = kernel_file("tests/explain/bad/small.kiln");
    const struct arg a[] = {{"x", KILN_F32, {64, 10000}, 0}, {0}};
    kl_model m;
    struct making w = {.look = keep, .user = &m};
    model(text, "small", a, &w);
    assert_int_equal(m.passes.n, 1);
    assert_int_equal(m.passes.read, 64 * 10000 * 4);
    assert_int_equal(m.passes.written, 64 * 4);
    assert_int_equal(m.moved, 64 * 10000 * 4 + 64 * 4);
    assert_int_equal(m.edges, 64); /* the last block of each row hangs over */
    free(text);
}

/* Where bounds depend on data that is not given, the model says so. */
static void unknown(void **state)
{
    (void)state;
    kl_model m;
    struct making w = {.look = keep, .user = &m};
    const struct arg a[] = {{"x", KILN_F32, {64}, 0}, {"at", KILN_I32, {64}, 0}, {0}};
    model("kernel k(i64 n, f32 y[n], const f32 x[n], const i32 at[n]) grid(n)\n"
          "{ i64 p = program_id(0); f32 s = 0; for (i64 i = 0; i < at[p]; i++) s += x[i]; y[p] = s; }",
          NULL, a, &w);
    assert_false(m.exact);
    assert_int_equal(m.doubt.n, 1);
    assert_int_equal(m.programs, 64);
}

/* Trips and places out of tables are no data; what is read of tables counts as loads: each of 3
 * programs reads both with all lanes, and each of 5 trips a line of x. */
static void tables(void **state)
{
    (void)state;
    kl_model m;
    struct making w = {.look = keep, .user = &m};
    const struct arg a[] = {{"x", KILN_F32, {128}, 0}, {0}};
    model("constexpr i64 at_[4] = {5, 0, 2, 9}; constexpr i64 trips[3] = {2, 0, 3};\n"
          "kernel k(i64 n, f32 y[3][32], const f32 x[n]) grid(3) warps(1)\n"
          "{ i64 p = program_id(0); f32 t[32] = 0;\n"
          "  for (i64 i = 0; i < trips[p]; i++) t += x[8 * at_[i]:32];\n"
          "  y[p][:] = t; }",
          NULL, a, &w);
    assert_true(m.exact);
    assert_int_equal(m.doubt.n, 0);
    assert_int_equal(m.array.n, 2);
    assert_int_equal(m.gload.bytes, 3 * 2 * 32 * 8 + 5 * 32 * 4);
    assert_int_equal(m.gload.requests, 3 * 2 + 5);
}

/* Rounding to tf32 is no operation and no pass: the product alone is. */
static void rounded(void **state)
{
    (void)state;
    kl_model m;
    struct making w = {.look = keep, .user = &m};
    const struct arg a[] = {{"a", KILN_F32, {64, 32}, 0}, {"b", KILN_F32, {32, 64}, 0}, {0}};
    model("kernel k(i64 M, i64 N, i64 K, f32 c[M][N], const f32 a[M][K], const f32 b[K][N]) grid(1)\n"
          "{ c[0:64][0:64] = dot(a[0:64][0:32], b[0:32][0:64], .precision = tf32); }",
          NULL, a, &w);
    assert_int_equal(m.passes.n, 1);
    assert_int_equal(m.work.fp32, 2 * 64 * 64 * 32);
    assert_int_equal(m.work.dot, 2 * 64 * 64 * 32);
}

struct reuse {
    double a, b;
    uint64_t moved, flops, dot;
    bool exact;
};

static void keep_reuse(const kl_model *m, const kl_model_in *in, void *user)
{
    struct reuse *r = user;
    (void)in;
    for (uint32_t i = 0; i < m->array.n; i++) {
        if (strcmp(m->array.v[i].name, "a") == 0)
            r->a = m->array.v[i].reuse;
        if (strcmp(m->array.v[i].name, "b") == 0)
            r->b = m->array.v[i].reuse;
    }
    r->moved = m->moved;
    r->flops = m->work.fp32;
    r->dot = m->work.dot;
    r->exact = m->exact;
}

/* A tile of c reads a row of tiles of a and a column of those of b: a is read N / BN times. */
static void matmul(void **state)
{
    (void)state;
    char *text = kernel_file("kernels/matmul.kiln");
    struct reuse r = {0};
    struct making w = {.look = keep_reuse, .user = &r};
    const struct arg a[] = {{"a", KILN_F32, {512, 256}, 0}, {"b", KILN_F32, {256, 1024}, 0},
                            {"BM", 0, {64}, 0}, {"BN", 0, {128}, 0}, {"BK", 0, {32}, 0}, {0}};
    model(text, "matmul", a, &w);
    assert_true(r.a > 7.999 && r.a < 8.001);
    assert_true(r.b > 7.999 && r.b < 8.001);
    assert_int_equal(r.moved, 4 * (512 * 256 + 256 * 1024 + 512 * 1024));
    assert_int_equal(r.dot, 2 * 512 * 1024 * 256);
    assert_true(r.exact);
    free(text);
}

/* A sample of the programs, scaled, is near the whole. */
static void sampled(void **state)
{
    (void)state;
    char *text = kernel_file("kernels/softmax.kiln");
    const struct arg a[] = {{"x", KILN_F32, {5000, 1000}, 0}, {0}};
    kl_model whole, some;
    struct making w = {.look = keep, .user = &whole}, v = {.look = keep, .user = &some, .budget = 5000};
    model(text, "softmax", a, &w);
    model(text, "softmax", a, &v);
    assert_true(whole.exact && whole.counted == 5000);
    assert_true(!some.exact && some.counted < 5000 && some.counted >= 64);
    double q = (double)some.gload.units / (double)whole.gload.units;
    assert_true(q > 0.99 && q < 1.01);
    q = (double)some.moved / (double)whole.moved;
    assert_true(q > 0.99 && q < 1.01);
    free(text);
}

/* What another way through shared memory would take is what it takes when it is compiled so. */
struct ways {
    uint64_t units, plain, padded, swizzled;
};

static void keep_ways(const kl_model *m, const kl_model_in *in, void *user)
{
    struct ways *w = user;
    (void)in;
    for (uint32_t i = 0; i < m->shared.n; i++) {
        w->units += m->shared.v[i].t.units;
        w->plain += m->shared.v[i].plain;
        w->padded += m->shared.v[i].padded;
        w->swizzled += m->shared.v[i].swizzled;
    }
}

static void other_ways(void **state)
{
    (void)state;
    char *text = kernel_file("tests/explain/bad/conflict.kiln");
    const struct arg a[] = {{"x", KILN_F32, {256, 512}, 0}, {0}};
    struct ways with = {0}, without = {0};
    struct making w = {.look = keep_ways, .user = &with}, v = {.look = keep_ways, .user = &without, .no_swizzle = true};
    model(text, NULL, a, &w);
    model(text, NULL, a, &v);
    assert_int_equal(with.units, with.swizzled);
    assert_int_equal(with.plain, without.units);
    assert_int_equal(without.plain, without.units);
    assert_int_equal(without.swizzled, with.units);
    assert_true(with.padded > with.swizzled && with.padded < with.plain);
    /* each element is stored and loaded once, 128 bytes a wavefront */
    assert_int_equal(with.units, 2 * 256 * 512 * 4 / 128);
    free(text);
}

/* ---- rules ---- */

struct rule {
    const char *code, *file, *kernel, *text; /* file, or text */
    struct arg a[6];
    bool no_swizzle, hit;
    uint64_t base;
};

static const struct rule rules[] = {
    {"K2101", "tests/explain/bad/strided.kiln", "columns", NULL, {{"x", KILN_F32, {1024, 512}, 0}}, 0, true, 0},
    {"K2101", "tests/explain/bad/strided.kiln", "columns_good", NULL, {{"x", KILN_F32, {1024, 512}, 0}}, 0, false, 0},
    {"K2101", "bench/gpu/advice.kiln", "stencil", NULL, {{"x", KILN_F32, {256, 256}, 0}}, 0, false, 0},
    {"K2101", NULL, NULL, /* half of each sector is not used */
     "kernel k(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 2048)) { i64 i = program_id(0) * 1024;\n"
     "y[i:1024] = x[2 * i:1024:2]; }",
     {{"x", KILN_F32, {8192}, 0}}, 0, true, 0},
    {"K2101", NULL, NULL, /* all of each sector is used, by requests of the same block */
     "kernel k(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 1024)) { i64 i = program_id(0) * 1024;\n"
     "y[i:1024] = x[n - 1 - i:1024:-1]; }",
     {{"x", KILN_F32, {8192}, 0}}, 0, false, 0},
    {"K2101", NULL, NULL, /* stores pass the L1 cache */
     "kernel k(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 1024)) { i64 i = program_id(0) * 1024;\n"
     "y[n - 1 - i:1024:-1] = x[i:1024]; }",
     {{"x", KILN_F32, {8192}, 0}}, 0, true, 0},
    {"K2102", "tests/explain/bad/rows.kiln", "rows", NULL, {{"x", KILN_F32, {64, 1001}, 0}}, 0, true, 0},
    {"K2102", "tests/explain/bad/rows.kiln", "rows", NULL, {{"x", KILN_F32, {64, 1024}, 0}}, 0, false, 0},
    {"K2102", "tests/explain/bad/rows.kiln", "rows", NULL, {{"x", KILN_F32, {64, 1024}, 0}}, 0, true, 4},
    {"K2102", NULL, NULL, "kernel k(i64 n, i64 s, f32 y[n], const f32 x[n]) grid(1) { y[s:1024] = x[s:1024]; }",
     {{"x", KILN_F32, {4096}, 0}, {"s", 0, {3}, 0}}, 0, true, 0},
    {"K2102", NULL, NULL, "kernel k(i64 n, i64 s, f32 y[n], const f32 x[n]) grid(1) { y[s*4:1024] = x[s*4:1024]; }",
     {{"x", KILN_F32, {4096}, 0}, {"s", 0, {3}, 0}}, 0, false, 0},
    {"K2102", "kernels/softmax.kiln", "softmax_strided", NULL, {{"x", KILN_F32, {64, 1024}, 0}}, 0, true, 0},
    {"K2103", "tests/explain/bad/rows.kiln", "rows", NULL, {{"x", KILN_F32, {64, 1001}, 0}}, 0, true, 0},
    {"K2103", "tests/explain/bad/rows.kiln", "rows_good", NULL,
     {{"x", KILN_F32, {64, 1001}, 1008}, {"y", KILN_F32, {64, 1001}, 1008}}, 0, false, 0},
    {"K2203", "tests/explain/bad/conflict.kiln", NULL, NULL, {{"x", KILN_F32, {256, 256}, 0}}, true, true, 0},
    {"K2203", "tests/explain/bad/conflict.kiln", NULL, NULL, {{"x", KILN_F32, {256, 256}, 0}}, false, false, 0},
    {"K2501", "kernels/matmul.kiln", "matmul", NULL,
     {{"a", KILN_F32, {128, 128}, 0}, {"b", KILN_F32, {128, 128}, 0}}, 0, true, 0},
    {"K2501", "kernels/matmul.kiln", "matmul", NULL,
     {{"a", KILN_F16, {128, 128}, 0}, {"b", KILN_F16, {128, 128}, 0}}, 0, false, 0},
    {"K2501", "kernels/matmul.kiln", "matmul", NULL,
     {{"a", KILN_F16, {128, 128}, 0}, {"b", KILN_F16, {128, 128}, 0}, {"BM", 0, {8}, 0}}, 0, true, 0},
    {"K2502", NULL, NULL,
     "kernel k(i64 n, i64 m, f32 y[n], const f32 x[n]) grid(1)\n"
     "{ f32 s = 0; for (i64 i = 0; i < n; i++) s += x[i % m]; y[0] = s; }",
     {{"x", KILN_F32, {100}, 0}, {"m", 0, {7}, 0}}, 0, true, 0},
    {"K2502", NULL, NULL,
     "kernel k(i64 n, i64 m, f32 y[n], const f32 x[n]) grid(1)\n"
     "{ i64 q = n / m; f32 s = 0; for (i64 i = 0; i < n; i++) s += x[i / 8] * q; y[0] = s; }",
     {{"x", KILN_F32, {100}, 0}, {"m", 0, {7}, 0}}, 0, false, 0},
    {"K2503", NULL, NULL,
     "kernel k(i64 n, f32 y[n], const f32 x[n]) grid(1)\n"
     "{ f32 s[64] = 0; for (i64 i = 0; i < n; i += 64) s += x[(i64)range(64) * 3 + i]; y[0] = sum(s); }",
     {{"x", KILN_F32, {1000}, 0}}, 0, true, 0},
    {"K2503", NULL, NULL,
     "kernel k(i64 n, f32 y[n], const f32 x[n]) grid(1)\n"
     "{ f32 s[64] = 0; for (i64 i = 0; i < n; i += 64) s += x[i:64]; y[0] = sum(s); }",
     {{"x", KILN_F32, {1000}, 0}}, 0, false, 0},
    {"K2601", NULL, NULL,
     "kernel k(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 128))\n"
     "{ i64 i = program_id(0) * 128; store(y[i:128], 2 * x[i:128], .mask = i + range(128) < n); }",
     {{"x", KILN_F32, {1000}, 0}}, 0, true, 0},
    {"K2601", NULL, NULL,
     "kernel k(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 128))\n"
     "{ i64 i = program_id(0) * 128; store(y[i:128], 2 * x[i:128], .mask = i + range(128) < n - 5); }",
     {{"x", KILN_F32, {1000}, 0}}, 0, false, 0},
    {"K2602", NULL, NULL,
     "kernel k(i64 n, f32 y[n], const f32 x[n]) grid(1) { auto v = x[0:64]; auto w = x[64:64]; y[0:64] = v; }",
     {{"x", KILN_F32, {1000}, 0}}, 0, true, 0},
    {"K2602", NULL, NULL,
     "kernel k(i64 n, f32 y[n], const f32 x[n]) grid(1) { auto v = x[n:64]; y[0:64] = v; }",
     {{"x", KILN_F32, {1000}, 0}}, 0, true, 0},
    {"K2602", NULL, NULL,
     "kernel k(i64 n, f32 y[n], const f32 x[n]) grid(1) { auto v = x[0:64]; auto w = x[64:64]; y[0:64] = v + w; }",
     {{"x", KILN_F32, {1000}, 0}}, 0, false, 0},
    {"K2701", "tests/explain/bad/divergence.kiln", "divergence", NULL,
     {{"x", KILN_I32, {64, 64}, 0}}, 0, true, 0},
    {"K2701", "tests/explain/bad/divergence.kiln", "divergence_good", NULL,
     {{"x", KILN_I32, {64, 64}, 0}}, 0, false, 0},
    {"K2702", NULL, NULL,
     "kernel k(i64 n, i64 m, f32 y[n], const f32 x[n][m], constexpr i64 B = pow2ceil(m)) grid(n)\n"
     "{ i64 r = program_id(0); y[r] = max(x[r][0:B]); }",
     {{"x", KILN_F32, {8, 1000}, 0}}, 0, true, 0},
    {"K2702", NULL, NULL,
     "kernel k(i64 n, i64 m, f32 y[n], const f32 x[n][m], constexpr i64 B = pow2ceil(m)) grid(n)\n"
     "{ i64 r = program_id(0); y[r] = sum(exp(x[r][0:B])); }",
     {{"x", KILN_F32, {8, 1000}, 0}}, 0, true, 0},
    {"K2702", NULL, NULL,
     "kernel k(i64 n, i64 m, f32 y[n], const f32 x[n][m], constexpr i64 B = pow2ceil(m)) grid(n)\n"
     "{ i64 r = program_id(0); auto v = x[r][0:B]; auto d = v - sum(v) / m; y[r] = sum(d * d); }",
     {{"x", KILN_F32, {8, 1000}, 0}}, 0, true, 0},
    {"K2702", NULL, NULL,
     "kernel k(i64 n, i64 m, f32 y[n], const f32 x[n][m], constexpr i64 B = pow2ceil(m)) grid(n)\n"
     "{ i64 r = program_id(0); auto v = x[r][0:B]; auto d = inside(x[r][0:B]) ? v - sum(v) / m : 0;\n"
     "  y[r] = sum(d * d); }",
     {{"x", KILN_F32, {8, 1000}, 0}}, 0, false, 0},
    {"K2702", NULL, NULL, /* no padding in this launch */
     "kernel k(i64 n, i64 m, f32 y[n], const f32 x[n][m], constexpr i64 B = pow2ceil(m)) grid(n)\n"
     "{ i64 r = program_id(0); y[r] = max(x[r][0:B]); }",
     {{"x", KILN_F32, {8, 1024}, 0}}, 0, false, 0},
    {"K2702", "kernels/softmax.kiln", "softmax", NULL, {{"x", KILN_F32, {8, 1000}, 0}}, 0, false, 0},
    {"K2702", "kernels/matmul.kiln", "matmul", NULL,
     {{"a", KILN_F32, {100, 100}, 0}, {"b", KILN_F32, {100, 100}, 0}}, 0, false, 0},
};

static void each_rule(void **state)
{
    (void)state;
    bool show = getenv("KILN_SHOW") != NULL;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *r = &rules[i];
        struct making *w = calloc(1, sizeof *w);
        w->no_swizzle = r->no_swizzle;
        w->plain = true;
        w->base = r->base;
        char *file = r->file ? kernel_file(r->file) : NULL;
        model(file ? file : r->text, r->kernel, r->a, w);
        if (show)
            printf("---- %zu %s %s\n%s", i, r->code, r->hit ? "hit" : "none", w->notes);
        if ((strstr(w->notes, r->code) != NULL) != r->hit)
            fail_msg("rule %s, row %zu (%s): %s\n%s", r->code, i, r->file ? r->file : r->text,
                     r->hit ? "not said" : "said", w->notes);
        free(file);
        free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes),
        cmocka_unit_test(looped),
        cmocka_unit_test(unknown),
        cmocka_unit_test(tables),
        cmocka_unit_test(rounded),
        cmocka_unit_test(matmul),
        cmocka_unit_test(sampled),
        cmocka_unit_test(other_ways),
        cmocka_unit_test(each_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
