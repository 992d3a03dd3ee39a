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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(library)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
