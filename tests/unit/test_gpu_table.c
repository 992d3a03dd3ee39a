/* test_gpu_table.c - the table of GPUs, descriptions from a file, waves, rooflines, floors. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/time.h"

static void near(double a, double b, double share)
{
    if (fabs(a - b) > share * fabs(b))
        fail_msg("%g is not %g", a, b);
}

/* Peaks by the formula against the datasheets' own figures, in TFLOP/s. */
static void peaks(void **state)
{
    static const struct {
        const char *name;
        double fp32, fp64, fp16;
    } want[] = {{"H200", 67, 34, 134},  {"H100", 67, 34, 134},   {"A100", 19.5, 9.7, 78},
                {"L40S", 91.6, 1.4, 91.6}, {"RTX4090", 82.6, 1.29, 82.6}, {"B200", 75, 37.5, 150}};
    kl_chip c;
    size_t n = 0;
    (void)state;
    while (kl_chip_at(n, &c)) {
        kl_sm sm;
        assert_true(n < sizeof want / sizeof *want);
        assert_string_equal(c.name, want[n].name);
        assert_true(kl_sm_find(c.cc, &sm));
        near(kl_chip_peak(&c, KL_PEAK_FP32), want[n].fp32, 0.005);
        near(kl_chip_peak(&c, KL_PEAK_FP64), want[n].fp64, 0.03);
        near(kl_chip_peak(&c, KL_PEAK_FP16), want[n].fp16, 0.005);
        assert_true(c.memory > 0 && c.l2 > 0 && c.t16 > 0 && c.source);
        assert_true(c.copy < c.memory && c.read < c.memory && (c.copy > 0) == (c.measured != NULL));
        n++;
    }
    assert_int_equal(n, sizeof want / sizeof *want);
    assert_true(kl_chip_find("rtx4090", &c));
    assert_false(kl_chip_find("H20", &c));
    assert_true(kl_chip_of_cc(90, &c));
    assert_string_equal(c.name, "H200");
    assert_false(kl_chip_of_cc(86, &c));
}

/* The measured figures are those of the results' page. */
static void measured(void **state)
{
    char line[1000];
    double copy = 0, most = 0;
    kl_chip c;
    (void)state;
    assert_true(kl_chip_find("H200", &c));
    FILE *f = fopen(c.measured, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        double v[5];
        char name[100], size[100], type[20];
        if (sscanf(line, "| %99s %99s %19s | %lf | %lf | %lf | %lf | %lf", name, size, type, &v[0],
                   &v[1], &v[2], &v[3], &v[4]) != 8)
            continue;
        if (strcmp(type, "f32") == 0 && strcmp(size, "268435456") == 0)
            copy = v[4] > copy ? v[4] : copy;
        if (strcmp(name, "rowsum") == 0 && strcmp(type, "f32") == 0)
            for (int i = 0; i < 4; i++)
                most = v[i] > most ? v[i] : most;
    }
    fclose(f);
    assert_true(c.copy == copy);
    assert_true(c.read == most);
}

static void descriptions(void **state)
{
    static const char good[] = "# a card\nname = Card 7  # its name\ncc = 8.9\n\nsms=60\nclock = 2000\n"
                               "memory = 500.5\nl2 = 32\nt16 = 100\ncopy = 450\nlatency = 650\nunloaded = 400\n"
                               "l2_read = 2000\nsource = its box";
    static const struct {
        const char *text, *why;
    } bad[] = {{"", "cc is missing"},
               {"cc = 9.0\n", "sms is missing"},
               {"cc = 9.05\n", "line 1: cc = 9.05: it is written as 9.0"},
               {"cc = 9.0\nsms\n", "line 2: write `key = value`"},
               {"\nsms = 1.5", "line 2: sms = 1.5: it must be a whole number from 1 to 10000"},
               {"sms = -1", "line 1: sms = -1: it must be a whole number from 1 to 10000"},
               {"clock = fast", "line 1: clock = fast: it must be a number from 1 to 100000"},
               {"memory = nan", "line 1: memory = nan: it must be a number from 0.001 to 1e+06"},
               {"cores = 5", "line 1: there is no key `cores`; there are name, cc, sms, clock, "
                             "memory, l2, t16, t32, t8, copy, read, latency, unloaded, l2_read and source"}};
    char text[400], why[KL_CHIP_WHY];
    kl_chip c;
    (void)state;
    strcpy(text, good);
    assert_true(kl_chip_parse(text, &c, why));
    assert_string_equal(c.name, "Card 7");
    assert_string_equal(c.measured, "its box");
    assert_int_equal(c.cc, 89);
    assert_int_equal(c.sms, 60);
    assert_true(c.memory == 500.5 && c.l2 == 32 && c.t16 == 100 && c.copy == 450 && c.t32 == 0);
    assert_true(c.latency == 650 && c.unloaded == 400 && c.l2_read == 2000);
    near(kl_chip_peak(&c, KL_PEAK_FP32), 60 * 128 * 2 * 2e9 * 1e-12, 1e-9);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        strcpy(text, bad[i].text);
        assert_false(kl_chip_parse(text, &c, why));
        assert_string_equal(why, bad[i].why);
    }
}

static void waves(void **state)
{
    kl_waves w;
    (void)state;
    kl_waves_of(160, 148, 1, &w); /* two waves, 12 blocks in the second */
    assert_int_equal(w.whole, 1);
    assert_int_equal(w.rest, 12);
    near(w.efficiency, 160.0 / 296, 1e-9);
    near(w.tail, 0.5, 1e-9);
    kl_waves_of(3225, 132, 8, &w);
    near(w.waves, 3.054, 1e-3);
    kl_waves_of(1024, 26, 12, &w);
    near(w.waves, 3.282, 1e-3);
    kl_waves_of(8192, 132, 8, &w);
    assert_int_equal(w.slots, 1056);
    near(w.waves, 7.7576, 1e-4);
    assert_true(w.tail == 0.125);
    kl_waves_of(2112, 132, 8, &w); /* exactly two: no tail */
    assert_true(w.tail == 0 && w.efficiency == 1 && w.rest == 0);
    kl_waves_of(5, 132, 0, &w);
    assert_true(w.slots == 0 && w.waves == 0);
}

static void roofs(void **state)
{
    kl_roof r;
    (void)state;
    assert_true(kl_roof_of(4e9, 1e9, 4800, 67, &r));
    assert_true(r.memory && r.intensity == 4);
    near(r.ridge, 13.958, 1e-3);
    near(r.most, 19.2, 1e-9);
    assert_true(kl_roof_of(100e9, 1e9, 4800, 67, &r));
    assert_true(!r.memory && r.most == 67);
    assert_false(kl_roof_of(1, 0, 4800, 67, &r));
    assert_false(kl_roof_of(1, 1, 0, 67, &r));
    near(kl_floor_us(268435456, 4800), 55.92, 1e-3);
    near(kl_floor_us(268435456, 4300), 62.43, 1e-3);
    kl_chip c;
    assert_true(kl_chip_find("H200", &c));
    c.latency = 0;
    c.copy = 0;
    near(kl_bytes_under_way(&c), 29091, 1e-3);
    c.latency = 600; /* measured: then it counts */
    near(kl_bytes_under_way(&c), 21818, 1e-3);
    c.copy = 4400; /* so does the rate */
    near(kl_bytes_under_way(&c), 20000, 1e-3);
    near(kl_unloaded(&c), 391, 1e-9);
    c.unloaded = 0;
    near(kl_unloaded(&c), 360, 1e-9);
    c.l2_read = 0; /* 132 ports of 64 bytes at 1.98 GHz */
    near(kl_l2_rate(&c), 16727, 1e-3);
    c.l2_read = 6000;
    near(kl_l2_rate(&c), 6000, 1e-9);
}

/* What the last wave costs, on an H200. */
static void tails(void **state)
{
    kl_chip c;
    kl_waves w;
    kl_tail t;
    (void)state;
    assert_true(kl_chip_find("H200", &c));
    c.copy = 4000; /* whatever was measured */
    c.unloaded = 800;
    /* arithmetic: 280 blocks, two a multiprocessor: 16 of them get a third */
    kl_waves_of(280, 132, 2, &w);
    kl_tail_of(&w, &c, false, 65536, 32768, &t);
    assert_true(t.known && t.last_us == 0);
    near(t.gain, 1 - 280.0 / 132 / 3, 1e-12);
    /* memory: 16 blocks with 32 KiB under way carry 655 GB/s, 264 would carry more than there is */
    kl_tail_of(&w, &c, true, 65536, 32768, &t);
    double last = 16 * 65536 / (16 * 32768 / 800.0) * 1e-3, full = 264 * 65536 / 4e6;
    near(t.last_us, last, 1e-9);
    near(t.ideal_us, 16 * 65536 / 4e6, 1e-9);
    near(t.gain, (last - 16 * 65536 / 4e6) / (full + last), 1e-9);
    assert_true(t.gain < w.tail);
    /* blocks that have more under way than memory can carry share it: nothing is lost */
    kl_tail_of(&w, &c, true, 65536, 1 << 20, &t);
    assert_true(t.known && t.gain == 0);
    /* blocks of which even a full wave keeps memory waiting: as long alone as among others */
    kl_waves_of(264 + 16, 132, 2, &w);
    kl_tail_of(&w, &c, true, 65536, 64, &t);
    near(t.gain, 1 - w.waves / 2, 1e-9);
    /* no loads, or no last wave: nothing is said */
    kl_tail_of(&w, &c, true, 65536, 0, &t);
    assert_false(t.known);
    kl_waves_of(264, 132, 2, &w);
    kl_tail_of(&w, &c, false, 65536, 64, &t);
    assert_false(t.known);
}

/* Between full overlap and none. */
static void saved(void **state)
{
    double least, most;
    kl_times now = {{100, 40, 120, 0}}, then = now;
    (void)state;
    then.us[KL_BUSY_SHARED] = 15;
    kl_times_saved(&now, &then, &least, &most);
    near(least, 1 - 100.0 / 120, 1e-9);
    near(most, 105.0 / 260, 1e-9);
    then = now; /* a part that is not the longest: at best nothing */
    then.us[KL_BUSY_L2] = 0;
    kl_times_saved(&now, &then, &least, &most);
    assert_true(least == 0);
    near(most, 40.0 / 260, 1e-9);
    enum kl_busy which;
    near(kl_times_most(&now, &which), 120, 1e-9);
    assert_int_equal(which, KL_BUSY_SHARED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(peaks), cmocka_unit_test(measured),
                                       cmocka_unit_test(descriptions), cmocka_unit_test(waves),
                                       cmocka_unit_test(roofs), cmocka_unit_test(tails),
                                       cmocka_unit_test(saved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
