/* test_explain.c - kl_explain on every kernel of the library: it answers, within its own rules, and some
 * of them say the same twice. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../library.h"
#include "explain.h"

#ifdef __SANITIZE_ADDRESS__
enum { EVERY = 6 }; /* of all kernels: they take long there */
#else
enum { EVERY = 1 };
#endif

static void consistent(const char *name, const kl_explained *e)
{
    const kl_model *m = e->model;
    uint64_t gload = 0, lines = 0;
    if (!m)
        fail_msg("%s: no model", name);
    assert_int_equal(e->regs.from, KL_REGS_NONE);
    assert_null(e->regs.why);
    assert_true(e->has_sm && e->sm.cc == 90);
    assert_int_equal(e->ctas % e->info.cluster, 0);
    assert_true(e->info.threads >= 32 && e->info.threads <= 1024);
    assert_int_equal(e->block.shared, e->info.shared + e->info.dynamic);
    assert_true(e->info.shared + e->info.dynamic <= e->sm.shared_most);
    for (uint32_t i = 0; i < m->access.n; i++)
        if (m->access.v[i].dir == KL_MODEL_LOAD)
            gload += m->access.v[i].t.requests;
    for (uint32_t i = 0; i < m->line.n; i++)
        lines += m->line.v[i].gload.requests;
    if (gload != m->gload.requests || lines != m->gload.requests)
        fail_msg("%s: loads %llu, lines %llu, all %llu", name, (unsigned long long)gload,
                 (unsigned long long)lines, (unsigned long long)m->gload.requests);
    /* each byte at most once, and no more than the arrays have */
    double most = 0;
    for (uint32_t i = 0; i < e->narray; i++)
        most += (double)e->array[i].bytes * (e->array[i].reads + e->array[i].writes);
    if (e->bytes > most || (e->bytes <= 0 && m->exact))
        fail_msg("%s: %.0f bytes move, and arrays have %.0f", name, e->bytes, most);
    /* what other numbers of registers would give, in order */
    kl_rung r[KL_RUNGS];
    uint32_t n = kl_occ_ladder(&e->sm, &e->block, KL_LIMIT_REGISTERS, r);
    assert_true(n > 0 && r[0].first == 1 && r[n - 1].last == KL_REGISTERS_MOST);
    for (uint32_t i = 1; i < n; i++)
        assert_true(r[i].blocks < r[i - 1].blocks);
    if (e->has_occ && e->waves.slots)
        assert_true(e->waves.efficiency > 0 && e->waves.efficiency <= 1);
}

/* A sum over what a second run must say, too. */
static double digest(const kl_explained *e)
{
    const kl_model *m = e->model;
    return e->bytes + e->flop * 3 + (double)m->gload.units * 5 + (double)m->gstore.units * 7 +
           (double)m->sload.units * 11 + (double)m->sstore.units * 13 + (double)m->barriers;
}

static void library(void **state)
{
    static char text[1 << 17];
    static const kiln_dtype types[] = {KILN_F32, KILN_BF16};
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx;
    kl_chip chip;
    unsigned n = 0;
    (void)state;
    o.device = KILN_DEVICE_INTERP;
    assert_true(kl_chip_find("H200", &chip));
    assert_int_equal(kiln_context_create(&o, &ctx, NULL), KILN_OK);
    for (size_t i = 0; i < 2 * LIB_ROWS; i++) {
        const struct lib_row *r = &lib_rows[i / 2];
        char path[200], label[60], name[200];
        struct lib_args a;
        kiln_module *m;
        double said[2] = {0};
        int turns = i < 20 ? 2 : 1;
        if (i / 2 % EVERY)
            continue;
        /* one type of each, as they alternate */
        if (r->types == 3 ? i % 2 != i / 2 % 2 : !(r->types & 1 << i % 2))
            continue;
        snprintf(path, sizeof path, "kernels/%s.kiln", r->file);
        lib_label(r, types[i % 2], label, sizeof label);
        snprintf(name, sizeof name, "%s %s", r->kernel, label);
        FILE *f = fopen(path, "rb");
        if (!f)
            fail_msg("no %s; run this from the root of the tree", path);
        size_t len = fread(text, 1, sizeof text, f);
        fclose(f);
        assert_int_equal(kiln_compile(ctx, path, text, len, &m, NULL), KILN_OK);
        lib_arguments(r, types[i % 2], &a, 0);
        for (int turn = 0; turn < turns; turn++) {
            const kl_explain_opts eo = {.chip = &chip};
            kl_explained *e;
            kiln_diags *d;
            kiln_status s =
                kl_explain(kiln_module_kernel(m, r->kernel), a.arg, a.n, &eo, &e, &d);
            if (s)
                fail_msg("%s: %s", name, kiln_diags_count(d) ? kiln_diags_at(d, 0)->text
                                                             : kiln_status_text(s));
            consistent(name, e);
            said[turn] = digest(e);
            kl_explain_free(e);
            kiln_diags_free(d);
        }
        if (turns == 2 && said[0] != said[1])
            fail_msg("%s: two runs differ", name);
        kiln_module_free(m);
        n++;
    }
    kiln_context_free(ctx);
    print_message("%u kernels\n", n);
}

/* ---- pictures of tiles ---- */

static kl_explained *explained(kiln_context *ctx, kiln_module **m, const char *text,
                               bool no_swizzle)
{
    static kl_chip chip;
    static const int64_t shape[] = {256, 256}, strides[] = {256, 1};
    kiln_arg a = {.name = "x", .kind = KILN_ARG_TENSOR};
    kl_explained *e;
    assert_true(kl_chip_find("H200", &chip));
    assert_int_equal(kiln_compile(ctx, "k.kiln", text, strlen(text), m, NULL), KILN_OK);
    a.u.tensor = (kiln_tensor){.dtype = KILN_F32, .ndim = 2, .shape = shape, .strides = strides};
    const kl_explain_opts o = {.chip = &chip, .no_swizzle = no_swizzle};
    assert_int_equal(kl_explain(kiln_module_at(*m, 0), &a, 1, &o, &e, NULL), KILN_OK);
    return e;
}

/* No two elements lie in one place, and lane 0 begins the row with as many as one access has. */
static void apart(const kl_tile_holders *h)
{
    const kl_tile_corner *c = &h->corner;
    uint64_t seen[KL_TILE_SIDE * KL_TILE_SIDE];
    for (uint32_t i = 0; i < c->rows * c->cols; i++) {
        uint32_t r = i / c->cols, k = i % c->cols;
        seen[i] = (uint64_t)h->reg[r][k] << 32 | (uint64_t)h->lane[r][k] << 16 |
                  (uint64_t)h->warp[r][k] << 8 | h->cta[r][k];
        for (uint32_t j = 0; j < i; j++)
            assert_true(seen[j] != seen[i]);
    }
    for (uint32_t i = 0; i < h->vec; i++)
        assert_true(h->reg[0][i] == i && h->lane[0][i] == 0 && h->warp[0][i] == 0);
}

/* Of what the first store of warp 0 writes, as far as the picture shows it: elements of one bank. */
static uint32_t busiest(const kl_tile_exchange *x, const kl_tile_banks *b)
{
    uint32_t n[32] = {0}, most = 0;
    for (uint32_t r = 0; r < x->corner.rows; r++)
        for (uint32_t c = 0; c < x->corner.cols; c++)
            if (b->first[r][c] & 1)
                n[b->word[r][c] % 32]++;
    for (uint32_t i = 0; i < 32; i++)
        most = n[i] > most ? n[i] : most;
    return most;
}

static void tiles(void **state)
{
    static const char text[] = "kernel t(i64 M, i64 N, f32 y[N][M], const f32 x[M][N])\n"
                               "    grid(cdiv(N, 64), cdiv(M, 64))\n{\n"
                               "    i64 n = program_id(0) * 64, m = program_id(1) * 64;\n"
                               "    y[n:64][m:64] = trans(x[m:64][n:64]);\n}\n";
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx;
    kiln_module *m;
    (void)state;
    o.device = KILN_DEVICE_INTERP;
    assert_int_equal(kiln_context_create(&o, &ctx, NULL), KILN_OK);
    for (int plain = 0; plain < 2; plain++) {
        kl_explained *e = explained(ctx, &m, text, plain);
        uint32_t n = 0;
        for (const kl_tile_holders *h; (h = kl_explain_holders(e, n)); n++) {
            assert_true(h->corner.rows == 16 && h->corner.cols == 16 && h->corner.rank == 2);
            assert_int_equal(h->place.line, 5);
            apart(h);
        }
        assert_true(n >= 1);
        assert_string_equal(kl_explain_holders(e, 0)->kind, "load");
        const kl_tile_exchange *x = kl_explain_exchange(e, 0);
        assert_non_null(x);
        assert_null(kl_explain_exchange(e, 1));
        assert_int_equal(x->bytes, 4);
        assert_true(x->way[0].possible && x->way[2].possible);
        assert_true(x->way[plain ? 0 : 2].chosen && !x->way[plain ? 2 : 0].chosen);
        for (uint32_t r = 0; r < 16; r++) /* four of a column are one access; these by rows */
            for (uint32_t c = 0; c < 16; c++)
                assert_int_equal(x->way[0].word[r][c], (r / 4 * 64 + c) * 4 + r % 4);
        assert_true(x->way[0].store + x->way[0].load > x->way[2].store + x->way[2].load);
        assert_true(busiest(x, &x->way[0]) > busiest(x, &x->way[2]));
        kl_explain_free(e);
        kiln_module_free(m);
    }
    kiln_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(library), cmocka_unit_test(tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
