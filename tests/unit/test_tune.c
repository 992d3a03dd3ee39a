/* test_tune.c - `kiln tune` without times: halving with a clock of the test's own, files, classes,
 * and what a search prunes and refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tunefile.h"
#include "cli/tune/halving.h"
#include "lang/tuned.h"

/* ---- halving ---- */

struct fake {
    double now;
};
struct fake_rival {
    struct fake *f;
    double ms, spread; /* samples are ms, ms + spread, ms - spread, ms, ... */
    size_t fail_at;    /* the sample that fails; 0: none */
    size_t taken;
};

static double fake_now(void *user)
{
    return ((struct fake *)user)->now;
}

static bool fake_take(void *user, size_t n, double *ms, struct kl_msg *m)
{
    struct fake_rival *r = user;
    for (size_t i = 0; i < n; i++) {
        r->taken++;
        if (r->taken == r->fail_at)
            return kl_msg(m, KL_RC_ENV, "it broke");
        ms[i] = r->ms + (r->taken % 3 == 1 ? 0 : r->taken % 3 == 2 ? r->spread : -r->spread);
        r->f->now += ms[i] / 1e3;
    }
    return true;
}

static size_t run(struct fake *f, struct fake_rival *fr, size_t n, double budget,
                  struct kl_halving *h, struct kl_rival *r)
{
    *h = (struct kl_halving){.loop = {.rule = KL_RULE_DEFAULT, .now = fake_now, .user = f},
                             .budget_s = budget};
    for (size_t i = 0; i < n; i++) {
        fr[i].f = f;
        r[i] = (struct kl_rival){.name = "r", .user = &fr[i], .burst = 4, .take = fake_take};
    }
    return kl_halve(h, r, n);
}

static void the_fastest_wins(void **u)
{
    struct fake f = {0};
    struct fake_rival fr[13] = {{0}};
    struct kl_rival r[13];
    struct kl_halving h;
    (void)u;
    for (size_t i = 0; i < 13; i++)
        fr[i].ms = 10 + (double)((i * 5) % 13) * 0.4; /* the default takes 10, number 8 takes 10.4 */
    fr[8].ms = 8;
    fr[0].ms = 12;
    assert_int_equal(run(&f, fr, 13, 100, &h, r), 8);
    assert_false(h.over);
    /* 12 challengers, 6, 3: two short rounds and the last one */
    assert_int_equal(h.rounds, 3);
    size_t in[4] = {0};
    for (size_t i = 0; i < 13; i++)
        in[r[i].rounds]++;
    assert_int_equal(in[1], 6);
    assert_int_equal(in[2], 3);
    assert_int_equal(in[3], 4); /* three and the default */
    assert_int_equal(r[0].rounds, 3);
    assert_true(r[8].stat.n > 50);
    kl_halving_free(r, 13);
}

static void ties_go_to_the_default(void **u)
{
    struct fake f = {0};
    struct fake_rival fr[5] = {{.ms = 10}, {.ms = 10}, {.ms = 9.99}, {.ms = 10}, {.ms = 11}};
    struct kl_rival r[5];
    struct kl_halving h;
    (void)u;
    assert_int_equal(run(&f, fr, 5, 100, &h, r), 0); /* 0.1 % are below what can be told apart */
    kl_halving_free(r, 5);
    /* faster by the median, and not beyond doubt */
    struct fake_rival noisy[2] = {{.ms = 10, .spread = 4}, {.ms = 9.5, .spread = 4}};
    f.now = 0;
    assert_int_equal(run(&f, noisy, 2, 0.3, &h, r), 0);
    assert_true(h.over);
    kl_halving_free(r, 2);
    /* of two that are as fast as each other the first one */
    struct fake_rival twins[3] = {{.ms = 10}, {.ms = 8}, {.ms = 8}};
    f.now = 0;
    assert_int_equal(run(&f, twins, 3, 100, &h, r), 1);
    kl_halving_free(r, 3);
}

/* Intervals that reach down to the best one's keep a rival in, up to three quarters. */
static void doubt_keeps_rivals(void **u)
{
    struct fake f = {0};
    struct fake_rival fr[9] = {{.ms = 20}};
    struct kl_rival r[9];
    struct kl_halving h;
    (void)u;
    for (size_t i = 1; i < 9; i++)
        fr[i] = (struct fake_rival){.ms = 10 + 0.1 * (double)i, .spread = 3};
    run(&f, fr, 9, 1000, &h, r);
    size_t once = 0;
    for (size_t i = 1; i < 9; i++)
        once += r[i].rounds == 1;
    assert_int_equal(once, 2); /* of eight: six go on, not four */
    kl_halving_free(r, 9);
}

static void failures(void **u)
{
    struct fake f = {0};
    struct fake_rival fr[3] = {{.ms = 10}, {.ms = 5, .fail_at = 2}, {.ms = 8}};
    struct kl_rival r[3];
    struct kl_halving h;
    (void)u;
    assert_int_equal(run(&f, fr, 3, 100, &h, r), 2); /* the fastest one broke */
    assert_true(r[1].failed);
    assert_string_equal(r[1].why.text, "it broke");
    kl_halving_free(r, 3);
    struct fake_rival first[3] = {{.ms = 10, .fail_at = 1}, {.ms = 5}, {.ms = 8}};
    f.now = 0;
    assert_int_equal(run(&f, first, 3, 100, &h, r), 0);
    assert_true(r[0].failed);
    kl_halving_free(r, 3);
    struct fake_rival alone[1] = {{.ms = 10}};
    assert_int_equal(run(&f, alone, 1, 100, &h, r), 0);
    assert_int_equal(h.rounds, 0); /* nothing to compare */
}

static void the_budget(void **u)
{
    struct fake f = {0};
    struct fake_rival fr[40] = {{0}};
    struct kl_rival r[40];
    struct kl_halving h;
    (void)u;
    for (size_t i = 0; i < 40; i++)
        fr[i].ms = 100 + (double)i;
    fr[0].ms = 200;
    assert_int_equal(run(&f, fr, 40, 10, &h, r), 1);
    assert_true(h.over);
    assert_true(f.now < 30); /* the first round is always finished: 40 times 4 samples of 100 ms */
    kl_halving_free(r, 40);
}

/* ---- files ---- */

struct box {
    kl_env env;
    kl_arena a;
    jmp_buf fail;
};

#define BOX(b)                                                                                     \
    struct box b = {.env = {.al = &kl_alloc_libc}};                                                \
    b.a.env = &b.env;                                                                              \
    b.env.fail = &b.fail;                                                                          \
    if (setjmp(b.fail))                                                                            \
        fail_msg("%s", b.env.msg);

static bool parse(struct box *b, const char *text, kl_tunefile *f, uint32_t *line, const char **why)
{
    *f = (kl_tunefile){.a = &b->a};
    return kl_tunefile_parse(f, text, strlen(text), line, why);
}

static const char whole[] =
    "kiln-tune 1\n"
    "# Constants found by `kiln tune`; man 5 kiln-tune explains them.\n"
    "\n"
    "kernel matmul\n"
    "    source 0123456789abcdef\n"
    "    device cpu x86-64-v4\n"
    "    when   M=1024 N=1024 K=512 T=f32\n"
    "    use    BM=64 BN=128\n"
    "    ms     1.25 default 1.5\n"
    "\n"
    "kernel matmul\n"
    "    device cuda sm_90 NVIDIA H200\n"
    "    use    BM=128 warps=8\n"
    "    ms     2.5e-05\n"
    "\n"
    "kernel matmul\n"
    "    device cuda sm_90 NVIDIA H200\n"
    "    when   M>=1024 T=f32\n"
    "    use    BM=64\n"
    "\n"
    "kernel matmul\n"
    "    device cuda sm_90 NVIDIA H200\n"
    "    when   M>=1024 T=f32\n"
    "    with   MODE=-1 warps=4\n"
    "    use    BM=32\n"
    "\n"
    "kernel matmul\n"
    "    device cuda sm_90 NVIDIA H200\n"
    "    when   M=1024 T=f32\n"
    "    use    BM=16\n"
    "\n"
    "kernel softmax\n"
    "    use    default\n";

static void round_trip(void **u)
{
    kl_tunefile f;
    uint32_t line;
    const char *why = "";
    (void)u;
    BOX(b)
    assert_true(parse(&b, whole, &f, &line, &why));
    assert_int_equal(f.entry.n, 6);
    assert_string_equal(f.entry.v[1].device, "cuda sm_90 NVIDIA H200");
    assert_int_equal(f.entry.v[0].when.v[2].v, 512);
    assert_string_equal(f.entry.v[0].when.v[3].type, "f32");
    assert_true(f.entry.v[0].of_ms > 1.4999 && f.entry.v[0].of_ms < 1.5001);
    assert_int_equal(f.entry.v[5].use.n, 0);
    assert_true(f.entry.v[2].when.v[0].least && !f.entry.v[4].when.v[0].least);
    assert_int_equal(f.entry.v[3].with.v[0].v, -1);
    kl_buf out = {.a = &b.a};
    kl_tunefile_print(&out, &f);
    assert_string_equal(kl_buf_str(&out), whole);
    /* by hand: other blanks, remarks, another order; the text that comes of it is the same */
    static const char messy[] = "# mine\n\nkiln-tune 1 # so\r\nkernel softmax\nuse default\n"
                                "kernel matmul\ndevice cuda sm_90 NVIDIA H200\nuse BM=16\nwhen M=1024 T=f32\n"
                                "kernel matmul\ndevice cuda sm_90 NVIDIA H200\nwith MODE=-1 warps=4\nuse BM=32\n"
                                "when M>=1024 T=f32\nkernel matmul\nwhen M>=1024 T=f32\nuse BM=64\n"
                                "device cuda sm_90 NVIDIA H200\n"
                                "kernel matmul\n\tuse BM=128   warps=8\ndevice cuda   sm_90 NVIDIA H200\n"
                                "ms 0.000025\nkernel matmul\nuse BM=64 BN=128 # good\nms 1.25 default 1.5\n"
                                "when M=1024 N=1024 K=512 T=f32\nsource 0123456789abcdef\n"
                                "device cpu x86-64-v4";
    assert_true(parse(&b, messy, &f, &line, &why));
    out.n = 0;
    kl_tunefile_print(&out, &f);
    assert_string_equal(kl_buf_str(&out), whole);
    kl_arena_free(&b.a);
}

static void put(void **u)
{
    kl_tunefile f;
    uint32_t line;
    const char *why = "";
    (void)u;
    BOX(b)
    assert_true(parse(&b, whole, &f, &line, &why));
    struct kl_tuneentry e = f.entry.v[0];
    e.ms = 0.5;
    e.use.n = 0;
    kl_tunefile_put(&f, &e); /* the same kernel, device and sizes */
    assert_int_equal(f.entry.n, 6);
    assert_true(f.entry.v[0].ms < 1);
    struct kl_tunepair other[4];
    memcpy(other, e.when.v, sizeof other);
    other[0].v = 2048;
    e.when.v = other;
    kl_tunefile_put(&f, &e);
    assert_int_equal(f.entry.n, 7);
    assert_int_equal(f.entry.v[1].when.v[0].v, 2048); /* behind its kernel and device */
    struct kl_tunepair above[4];
    memcpy(above, other, sizeof above);
    above[0].least = true;
    e.when.v = above;
    kl_tunefile_put(&f, &e); /* for other sizes: another entry */
    assert_int_equal(f.entry.n, 8);
    struct kl_tunepair mode = {.name = "MODE", .v = 1};
    e.with.v = &mode;
    e.with.n = 1;
    kl_tunefile_put(&f, &e); /* for another constant */
    kl_tunefile_put(&f, &e);
    assert_int_equal(f.entry.n, 9);
    kl_arena_free(&b.a);
}

static void mistakes(void **u)
{
    static const struct {
        const char *text;
        uint32_t line;
        const char *why;
    } bad[] = {
        {"", 1, "the first line must be `kiln-tune 1`"},
        {"\n# nothing\n", 2, "the first line must be `kiln-tune 1`"},
        {"kernel a\n", 1, "the first line must be `kiln-tune 1`"},
        {"kiln-tune 2\n", 1, "version 2"},
        {"kiln-tune 1\nuse A=1\n", 2, "stands before the first `kernel`"},
        {"kiln-tune 1\nkernel\n", 2, "followed by its name"},
        {"kiln-tune 1\nkernel a-b\n", 2, "followed by its name"},
        {"kiln-tune 1\nkernel a b\n", 2, "`b` is too much here"},
        {"kiln-tune 1\nkernel a\n", 2, "`a` has no `use`"},
        {"kiln-tune 1\nkernel a\n\nkernel b\nuse X=1\n", 4, "`a` in line 2 has no `use`"},
        {"kiln-tune 1\nkernel a\nuse\n", 3, "`default`"},
        {"kiln-tune 1\nkernel a\nuse A 256\n", 3, "`A` is not NAME=VALUE"},
        {"kiln-tune 1\nkernel a\nuse A=x\n", 3, "a whole number"},
        {"kiln-tune 1\nkernel a\nuse A=1.5\n", 3, "a whole number"},
        {"kiln-tune 1\nkernel a\nuse A=99999999999999999999\n", 3, "a whole number"},
        {"kiln-tune 1\nkernel a\nuse A=1 A=2\n", 3, "`A` stands twice"},
        {"kiln-tune 1\nkernel a\nuse A=1\nuse A=2\n", 4, "`use` stands twice"},
        {"kiln-tune 1\nkernel a\nuses A=1\n", 3, "did you mean `use`?"},
        {"kiln-tune 1\nkernel a\nwhen n=1000\n", 3, "write n=1024"},
        {"kiln-tune 1\nkernel a\nwhen n=-1\n", 3, "powers of two"},
        {"kiln-tune 1\nkernel a\nwhen T=f31\n", 3, "an element type"},
        {"kiln-tune 1\nkernel a\nwhen n>=1000\n", 3, "write n>=1024"},
        {"kiln-tune 1\nkernel a\nwhen T>=f32\n", 3, ">= is for sizes"},
        {"kiln-tune 1\nkernel a\nwhen >=8\n", 3, "is not NAME=VALUE"},
        {"kiln-tune 1\nkernel a\nwith A>=8\n", 3, "is not NAME=VALUE"},
        {"kiln-tune 1\nkernel a\nwith A=f32\n", 3, "a whole number"},
        {"kiln-tune 1\nkernel a\nsource 123\n", 3, "16 digits"},
        {"kiln-tune 1\nkernel a\nsource 0123456789abcdeg\n", 3, "16 digits"},
        {"kiln-tune 1\nkernel a\ndevice\n", 3, "`device`"},
        {"kiln-tune 1\nkernel a\nms 0\n", 3, "ms 1.25"},
        {"kiln-tune 1\nkernel a\nms 1 of 2\n", 3, "ms 1.25"},
    };
    (void)u;
    BOX(b)
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kl_tunefile f;
        uint32_t line = 0;
        const char *why = "";
        assert_false(parse(&b, bad[i].text, &f, &line, &why));
        if (line != bad[i].line || !strstr(why, bad[i].why))
            fail_msg("%s: line %u, %s", bad[i].text, line, why);
    }
    static const char nul[] = "kiln-tune 1\nker\0nel a\n";
    kl_tunefile f = {.a = &b.a};
    uint32_t line;
    const char *why;
    assert_false(kl_tunefile_parse(&f, nul, sizeof nul - 1, &line, &why));
    assert_int_equal(line, 2);
    kl_arena_free(&b.a);
}

static void devices_and_classes(void **u)
{
    (void)u;
    assert_true(kl_tune_device_fits("", "cpu x86-64-v4"));
    assert_true(kl_tune_device_fits("cpu", "cpu x86-64-v4"));
    assert_true(kl_tune_device_fits("cpu x86-64-v4", "cpu x86-64-v4"));
    assert_false(kl_tune_device_fits("cpu x86-64-v", "cpu x86-64-v4"));
    assert_false(kl_tune_device_fits("cuda", "cpu x86-64-v4"));
    assert_false(kl_tune_device_fits("cpu x86-64-v4 more", "cpu x86-64-v4"));
    static const char *const names[][2] = {
        {"NVIDIA H200", "NVIDIA H200"},   {"  two  blanks\t", "two blanks"}, {"A #2", "A _2"},
        {"a\nuse B=1\x7f", "a use B=1_"}, {"", ""},                          {"G\xc3\xbc", "G\xc3\xbc"}};
    BOX(b)
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[200];
        kl_tunefile f;
        uint32_t line;
        const char *why = "", *name = kl_tune_device_name(&b.a, names[i][0]);
        assert_string_equal(name, names[i][1]);
        snprintf(text, sizeof text, "kiln-tune 1\nkernel a\ndevice cuda %s\nuse default\n", name);
        assert_true(parse(&b, text, &f, &line, &why)); /* it comes back as it went */
        assert_string_equal(f.entry.v[0].device + (*name ? 5 : 4), name);
        kl_arena_free(&b.a);
    }
    static const int64_t is[][2] = {{-5, 0}, {0, 0}, {1, 1}, {2, 2}, {3, 4}, {1000, 1024}, {1024, 1024},
                                    {1025, 2048}, {INT64_MAX, INT64_C(1) << 62}};
    for (size_t i = 0; i < sizeof is / sizeof *is; i++)
        assert_int_equal(kl_size_class(is[i][0]), is[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_wins), cmocka_unit_test(ties_go_to_the_default),
        cmocka_unit_test(doubt_keeps_rivals), cmocka_unit_test(failures),
        cmocka_unit_test(the_budget), cmocka_unit_test(round_trip), cmocka_unit_test(put),
        cmocka_unit_test(mistakes), cmocka_unit_test(devices_and_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
