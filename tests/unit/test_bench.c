/* test_bench.c - `kiln bench` with a clock and a device of the test's own: the loop, dropped
 * samples, reports, baselines; and its words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/bench/bench.h"
#include "cli/bench/peer.h"

/* ---- a device whose time the test decides ---- */

struct fake {
    double now; /* seconds */
    char order[400]; /* which lane was asked, in turn */
};
struct fake_lane {
    struct fake *f;
    char name;
    double ms, step; /* of a sample; the next one takes so much more */
    double share;    /* of the clock */
    int fail_at;     /* the burst that fails; 0: none */
    int bursts;
};

static double fake_now(void *user)
{
    return ((struct fake *)user)->now;
}

static bool fake_take(void *user, size_t n, double *ms, struct kl_msg *m)
{
    struct fake_lane *l = user;
    size_t at = strlen(l->f->order);
    if (at + 1 < sizeof l->f->order)
        l->f->order[at] = l->name;
    if (++l->bursts == l->fail_at)
        return kl_msg(m, KL_RC_ENV, "lane %c broke", l->name);
    for (size_t i = 0; i < n; i++) {
        ms[i] = l->ms;
        l->f->now += l->ms / 1e3;
        l->ms += l->step;
    }
    return true;
}

static double fake_clock(void *user)
{
    return ((struct fake_lane *)user)->share;
}

static struct kl_lane lane_of(struct fake_lane *l, size_t burst)
{
    return (struct kl_lane){.name = "lane", .user = l, .burst = burst, .take = fake_take,
                            .clock = fake_clock};
}

static struct kl_loop loop_of(struct fake *f)
{
    return (struct kl_loop){.rule = KL_RULE_DEFAULT, .now = fake_now, .user = f};
}

/* ---- the loop ---- */

static void steady(void **u)
{
    struct fake f = {0};
    struct fake_lane a = {.f = &f, .name = 'a', .ms = 10, .share = 1};
    struct kl_lane lane = lane_of(&a, 4);
    struct kl_loop loop = loop_of(&f);
    (void)u;
    kl_loop_run(&loop, &lane, 1);
    assert_int_equal(lane.stop, KL_STOP_PRECISION);
    assert_int_equal(lane.n, 52); /* half a second of 10 ms in bursts of four: 13 bursts */
    assert_int_equal(lane.dropped, 0);
    free(lane.ms);
}

static void never_steady(void **u)
{
    struct fake f = {0};
    struct fake_lane a = {.f = &f, .name = 'a', .ms = 1, .step = 1, .share = -1};
    struct kl_lane lane = lane_of(&a, 1);
    struct kl_loop loop = loop_of(&f);
    (void)u;
    kl_loop_run(&loop, &lane, 1);
    assert_int_equal(lane.stop, KL_STOP_TIME); /* 1 + 2 + ... + 173 ms are 15.05 s */
    assert_int_equal(lane.n, 173);
    assert_true(lane.clock_last < 0);
    for (size_t i = 1; i < lane.n; i++)
        assert_true(lane.ms[i - 1] <= lane.ms[i]);
    free(lane.ms);
}

static void in_turn(void **u)
{
    struct fake f = {0};
    struct fake_lane a = {.f = &f, .name = 'a', .ms = 100, .share = 1};
    struct fake_lane b = {.f = &f, .name = 'b', .ms = 20, .share = 1};
    struct kl_lane lane[2] = {lane_of(&a, 2), lane_of(&b, 2)};
    struct kl_loop loop = loop_of(&f);
    (void)u;
    kl_loop_run(&loop, lane, 2);
    /* a has ten samples after five bursts, b needs half a second: thirteen; a goes on with it */
    assert_string_equal(f.order, "ababababababababababababab");
    assert_int_equal(lane[0].stop, KL_STOP_PRECISION);
    assert_int_equal(lane[1].stop, KL_STOP_PRECISION);
    assert_int_equal(lane[0].n, 26);
    free(lane[0].ms);
    free(lane[1].ms);
}

static void fixed_count(void **u)
{
    struct fake f = {0};
    struct fake_lane a = {.f = &f, .name = 'a', .ms = 1, .step = 1, .share = 1};
    struct kl_lane lane = lane_of(&a, 4);
    struct kl_loop loop = loop_of(&f);
    (void)u;
    loop.rule.fixed = 7;
    kl_loop_run(&loop, &lane, 1);
    assert_int_equal(lane.stop, KL_STOP_COUNT);
    assert_int_equal(lane.n, 7);
    free(lane.ms);
}

static void slow_clock(void **u)
{
    struct fake f = {0};
    struct fake_lane a = {.f = &f, .name = 'a', .ms = 10, .share = 0.74};
    struct fake_lane b = {.f = &f, .name = 'b', .ms = 10, .share = 0.76};
    struct kl_lane lane[2] = {lane_of(&a, 4), lane_of(&b, 4)};
    struct kl_loop loop = loop_of(&f);
    (void)u;
    kl_loop_run(&loop, lane, 2);
    assert_true(lane[0].slow && !lane[1].slow); /* all of them were slow: then they count */
    assert_int_equal(lane[0].n, 52);
    assert_int_equal(lane[0].dropped, 0);
    assert_int_equal(lane[0].stop, KL_STOP_PRECISION);
    assert_int_equal(lane[1].dropped, 0);
    assert_int_equal(lane[1].stop, KL_STOP_PRECISION);
    assert_true(lane[0].clock_first == 0.74 && lane[1].clock_last == 0.76);
    free(lane[0].ms);
    free(lane[1].ms);
}

/* Slow from time to time: those samples are dropped and counted. */
static double sometimes(void *user)
{
    return ((struct fake_lane *)user)->bursts % 4 ? 0.9 : 0.5;
}

static void slow_at_times(void **u)
{
    struct fake f = {0};
    struct fake_lane a = {.f = &f, .name = 'a', .ms = 10};
    struct kl_lane lane[2] = {lane_of(&a, 4), lane_of(&a, 4)};
    struct kl_loop loop = loop_of(&f);
    (void)u;
    lane[0].clock = lane[1].clock = sometimes;
    lane[1].any_clock = true;
    kl_loop_run(&loop, &lane[0], 1);
    assert_int_equal(lane[0].n, 40); /* thirteen bursts, of which three were slow */
    assert_int_equal(lane[0].dropped, 12);
    assert_false(lane[0].slow);
    assert_int_equal(lane[0].stop, KL_STOP_PRECISION);
    kl_loop_run(&loop, &lane[1], 1);
    assert_int_equal(lane[1].n, 52);
    assert_int_equal(lane[1].dropped, 0);
    free(lane[0].ms);
    free(lane[1].ms);
}

static void one_breaks(void **u)
{
    struct fake f = {0};
    struct fake_lane a = {.f = &f, .name = 'a', .ms = 10, .share = 1, .fail_at = 3};
    struct fake_lane b = {.f = &f, .name = 'b', .ms = 10, .share = 1};
    struct kl_lane lane[2] = {lane_of(&a, 4), lane_of(&b, 4)};
    struct kl_loop loop = loop_of(&f);
    (void)u;
    kl_loop_run(&loop, lane, 2);
    assert_int_equal(lane[0].stop, KL_STOP_FAILED);
    assert_string_equal(lane[0].why.text, "lane a broke");
    assert_int_equal(lane[1].stop, KL_STOP_PRECISION);
    free(lane[0].ms);
    free(lane[1].ms);
}

static void copies(void **u)
{
    (void)u;
    assert_int_equal(kl_copies_for(100 << 20, 50 << 20), 2);
    assert_int_equal(kl_copies_for(1 << 20, 16 << 20), 33); /* more than 32 MiB */
    assert_int_equal(kl_copies_for(1 << 10, 16 << 20), 0);  /* flush */
    assert_int_equal(kl_copies_for(0, 1 << 20), 0);
}

/* ---- words ---- */

static bool ten(void *user, const char *name, size_t n, double *out)
{
    (void)user;
    *out = 10;
    return n == 1 && *name == 'n';
}

static void expressions(void **u)
{
    static const struct {
        const char *s;
        double want;
    } good[] = {{"2*n*n", 200}, {"n + 1", 11}, {"2*(n-1)/3", 6}, {"1e3", 1000}, {"n-1-1", 8}};
    static const char *const bad[] = {"", "2*", "m", "(n", "n n", "n/0", "2**n"};
    struct kl_msg m;
    double v;
    (void)u;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(kl_number_expr(good[i].s, strlen(good[i].s), ten, NULL, &v, &m));
        assert_true(v == good[i].want);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(kl_number_expr(bad[i], strlen(bad[i]), ten, NULL, &v, &m));
}

static void lists(void **u)
{
    static const struct {
        const char *s, *want;
    } table[] = {{"1,2,f32", "1 2 f32 "}, {"1024:8192:*2", "1024 2048 4096 8192 "},
                 {"256:1000:+256", "256 512 768 "}, {"1:3:+1,9", "1 2 3 9 "},
                 {"rand(8,f32),{1, 2}", "rand(8,f32) {1, 2} "}, {"", NULL}, {"1,,2", NULL},
                 {"8:1:*2", NULL}, {"1:8:*1", NULL}, {"0:8:*2", NULL}};
    (void)u;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct kl_list l;
        struct kl_msg m;
        char text[200] = "";
        bool ok = kl_list_parse(table[i].s, &l, &m);
        assert_int_equal(ok, table[i].want != NULL);
        for (size_t k = 0; ok && k < l.n; k++)
            strcat(strcat(text, l.v[k]), " ");
        if (ok)
            assert_string_equal(text, table[i].want);
        kl_list_free(&l);
    }
}

static void sweeps(void **u)
{
    struct kl_sweep s[2], none;
    struct kl_point p;
    struct kl_msg m;
    (void)u;
    assert_true(kl_sweep_parse("rows,cols=8x16,32x64", &s[0], &m));
    assert_true(kl_sweep_parse("T=f32,bf16", &s[1], &m));
    assert_int_equal(kl_points(s, 2), 4);
    kl_point_at(s, 2, 3, &p);
    static const struct {
        const char *word, *want;
    } table[] = {{"rand({rows}x{cols},{T})", "rand(32x64,bf16)"}, {"{rows*cols/2}x3:f32", "1024x3:f32"},
                 {"{1, 2}", "{1, 2}"}, {"{{1, 2}, {3, 4}}:f16", "{{1, 2}, {3, 4}}:f16"},
                 {"x.npy", "x.npy"}, {"{rows/64}", "0.5"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char *got = kl_point_expand(&p, table[i].word, &m);
        assert_string_equal(got, table[i].want);
        free(got);
    }
    assert_null(kl_point_expand(&p, "{rows*T}", &m));
    kl_point_free(&p);
    kl_point_at(s, 2, 1, &p);
    char *first = kl_point_expand(&p, "{rows} {T}", &m);
    assert_string_equal(first, "8 bf16"); /* the first sweep changes slowest */
    free(first);
    kl_point_free(&p);
    kl_sweep_free(&s[0]);
    kl_sweep_free(&s[1]);
    assert_false(kl_sweep_parse("rows", &none, &m));
    assert_false(kl_sweep_parse("2=3", &none, &m));
    assert_false(kl_sweep_parse("a,b=1x2,3", &none, &m));
    assert_false(kl_sweep_parse("a,b=1x2x3", &none, &m));
}

static void shape_words(void **u)
{
    char *w;
    (void)u;
    assert_true(kl_random_word("4x8:f16", KILN_DTYPE_NONE, 3, &w));
    assert_string_equal(w, "randn(4x8,f16,3)");
    free(w);
    assert_true(kl_random_word("4", KILN_I32, 0, &w));
    assert_string_equal(w, "randint(4,100,0)");
    free(w);
    assert_false(kl_random_word("x.npy:f32", KILN_F32, 0, &w));
    assert_false(kl_random_word("4x8:nothing", KILN_F32, 0, &w));
    assert_false(kl_random_word("rand(4,f32)", KILN_F32, 0, &w));
}

/* ---- reports ---- */

static struct kl_row make_row(const char *kernel, double ms, size_t n)
{
    struct kl_row r = {.cold_by = "copies", .copies = 3, .bytes = 1000000, .clock = {-1, -1}};
    r.kernel = kl_xprintf("%s", kernel);
    r.setting = kl_xprintf("%s", "BLOCK=256");
    r.shape = kl_xprintf("%s", "64x64");
    r.point = kl_xprintf("%s", "");
    r.device = kl_xprintf("%s", "cpu");
    r.check = kl_xprintf("%s", "same bits, \"all\" of them");
    r.sample[0] = kl_xalloc(n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        r.sample[0][i] = ms * (1 + 1e-4 * (double)i);
    kl_stats_summarize(r.sample[0], n, &r.stat[0]);
    r.has[0] = true;
    r.stop[0] = KL_STOP_PRECISION;
    r.gbs = 1;
    return r;
}

static void formats(void **u)
{
    struct kl_row r[3] = {make_row("softmax/f32", 1, 20), make_row("softmax/bf16", 2, 20),
                          make_row("torch", 3, 20)};
    struct kl_report p = {.row = r, .nrow = 3, .cold = true, .cases = 1, .fail_on = -1,
                          .vs_name = "the first"};
    json_error_t e;
    (void)u;
    r[1].vs = kl_stats_versus(&r[1].stat[0], &r[0].stat[0]);
    r[1].has_vs = true;
    r[2].peer = r[2].skipped = true;
    r[2].note = kl_xprintf("%s", "no torch, here");
    char *text = kl_report_text(&p, KL_FORMAT_TEXT, false);
    assert_non_null(strstr(text, "softmax/bf16 BLOCK=256  64x64  2.00 ms"));
    assert_non_null(strstr(text, "0.50x [0.50, 0.50] SLOW\n"));
    assert_non_null(strstr(text, "left out: no torch, here\n"));
    assert_null(strstr(text, "GFLOP")); /* nobody counted them */
    free(text);
    text = kl_report_text(&p, KL_FORMAT_MD, false);
    assert_non_null(strstr(text, "|:--|:--|--:|"));
    free(text);
    text = kl_report_text(&p, KL_FORMAT_CSV, false);
    assert_non_null(strstr(text, "\nsoftmax/f32,BLOCK=256,64x64,,cpu,0,cold,1.00095,"));
    assert_non_null(strstr(text, ",\"same bits, \"\"all\"\" of them\","));
    assert_non_null(strstr(text, ",1,skipped,,"));
    size_t commas[4] = {0}, line = 0; /* outside quotes: as many in each line */
    bool quoted = false;
    for (const char *c = text; *c && line < 4; c++) {
        quoted ^= *c == '"';
        commas[line] += *c == ',' && !quoted;
        line += *c == '\n';
    }
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(commas[i], commas[0]);
    free(text);
    text = kl_report_text(&p, KL_FORMAT_JSON, true);
    json_t *root = json_loads(text, 0, &e), *rows = json_object_get(root, "rows");
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "kiln.bench/1");
    assert_int_equal(json_array_size(rows), 3);
    json_t *cold = json_object_get(json_array_get(rows, 0), "cold");
    assert_int_equal(json_array_size(json_object_get(cold, "sorted")), 20);
    json_decref(root);
    free(text);
    for (int i = 0; i < 3; i++)
        kl_row_free(&r[i]);
}

static void baseline(void **u)
{
    struct kl_row old = make_row("softmax/f32", 1, 40), now = make_row("softmax/f32", 1.2, 40);
    struct kl_row other = make_row("gelu/f32", 1, 40);
    struct kl_report p = {.row = &old, .nrow = 1, .cold = true, .fail_on = -1};
    struct kl_baseline b;
    struct kl_summary_stats s;
    struct kl_msg m;
    double *samples;
    char path[] = "/tmp/kiln-baseline-XXXXXX";
    (void)u;
    for (int with = 0; with < 2; with++) {
        char *text = kl_report_text(&p, KL_FORMAT_JSON, with != 0);
        int fd = with ? -1 : mkstemp(path);
        FILE *f = with ? fopen(path, "w") : fdopen(fd, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
        free(text);
        assert_true(kl_baseline_open(&b, path, &m));
        assert_true(kl_baseline_find(&b, &now, 0, &s, &samples));
        assert_int_equal(samples != NULL, with);
        struct kl_versus v = kl_stats_versus(&now.stat[0], &s);
        assert_int_equal(v.state, KL_STATE_SLOW);
        assert_true(fabs(v.ratio - 1 / 1.2) < 1e-6);
        assert_true(kl_versus_regressed(&v, 0.15) && !kl_versus_regressed(&v, 0.25));
        free(samples);
        assert_false(kl_baseline_find(&b, &other, 0, &s, &samples));
        assert_false(kl_baseline_find(&b, &now, 1, &s, &samples)); /* no warm one */
        kl_baseline_close(&b);
    }
    FILE *f = fopen(path, "w");
    fputs("{\"schema\": \"other\"}", f);
    fclose(f);
    assert_false(kl_baseline_open(&b, path, &m));
    f = fopen(path, "w");
    fputs("{\"schema\": ", f);
    fclose(f);
    assert_false(kl_baseline_open(&b, path, &m));
    unlink(path);
    assert_false(kl_baseline_open(&b, path, &m));
    kl_row_free(&old);
    kl_row_free(&now);
    kl_row_free(&other);
}

/* A program that never answers is given up in time. */
static void hanging_peer(void **u)
{
    struct kl_proc p = {.to = -1, .from = -1};
    struct kl_msg m = {0};
    char path[] = "/tmp/kiln-peer-test-XXXXXX";
    FILE *f = fdopen(mkstemp(path), "w");
    (void)u;
    assert_non_null(f);
    fputs("#!/bin/sh\nexec sleep 60\n", f);
    assert_int_equal(fchmod(fileno(f), 0700), 0);
    fclose(f);
    assert_true(kl_proc_start(&p, (const char *[]){path, NULL}, 1, &m));
    p.answer_s = 0.1;
    double t = kl_bench_now(NULL);
    assert_null(kl_proc_ask(&p, json_pack("{s:s}", "do", "hello"), &m));
    assert_true(p.gone && m.rc == KL_RC_ENV);
    assert_non_null(strstr(m.text, "has not answered within 0.1 s"));
    kl_proc_end(&p);
    assert_true(kl_bench_now(NULL) - t < 20);
    unlink(path);
    assert_true(fabs(KL_PEER_ANSWER(0.1) - 30) < 1e-9 && fabs(KL_PEER_ANSWER(15.0) - 150) < 1e-9);
}

static void times(void **u)
{
    static const struct {
        double ms;
        const char *want;
    } table[] = {{1e-6, "1 ns"}, {0.00235, "2.35 us"}, {0.0661, "66.1 us"}, {0.4, "400 us"},
                 {1.234, "1.23 ms"}, {45.67, "45.7 ms"}, {150, "150 ms"}, {2500, "2.50 s"}};
    char b[32];
    (void)u;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_string_equal(kl_time_text(table[i].ms, b), table[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady),      cmocka_unit_test(never_steady), cmocka_unit_test(in_turn),
        cmocka_unit_test(fixed_count), cmocka_unit_test(slow_clock),   cmocka_unit_test(one_breaks),
        cmocka_unit_test(slow_at_times),
        cmocka_unit_test(copies),      cmocka_unit_test(expressions),  cmocka_unit_test(lists),
        cmocka_unit_test(sweeps),      cmocka_unit_test(shape_words),  cmocka_unit_test(formats),
        cmocka_unit_test(baseline),    cmocka_unit_test(times),
        cmocka_unit_test(hanging_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
