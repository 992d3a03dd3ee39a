/* test_stats.c - the statistics of `kiln bench`, against values worked out elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "cli/bench/stats.h"

#define NEAR(a, b, tol) assert_true(fabs((a) - (b)) <= (tol))

static uint64_t state = 1;
/* Uniform in (0, 1): Lehmer's generator. */
static double uniform(void)
{
    state = state * 48271 % 2147483647;
    return (double)state / 2147483647;
}

static void order(void **u)
{
    double v[] = {5, 1, 4, 2, 3}, w[] = {4, 1, 3, 2}, one[] = {7};
    (void)u;
    kl_stats_sort(v, 5);
    kl_stats_sort(w, 4);
    NEAR(kl_stats_median(v, 5), 3, 0);
    NEAR(kl_stats_median(w, 4), 2.5, 0);
    NEAR(kl_stats_median(one, 1), 7, 0);
    assert_true(isnan(kl_stats_median(v, 0)));
    NEAR(kl_stats_quantile(v, 5, 0), 1, 0);
    NEAR(kl_stats_quantile(v, 5, 1), 5, 0);
    NEAR(kl_stats_quantile(v, 5, 0.95), 4.8, 1e-12); /* numpy.quantile([1..5], 0.95) */
    NEAR(kl_stats_noise(v, 5), 1.0 / 3, 1e-12);      /* quartiles 2 and 4 */
}

static void normal(void **u)
{
    static const double table[][2] = {{0, 0.5}, {1, 0.8413447460685429}, {-1.96, 0.0249978951482204},
                                      {3, 0.9986501019683699}};
    (void)u;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        NEAR(kl_stats_normal(table[i][0]), table[i][1], 1e-12);
        NEAR(kl_stats_probit(table[i][1]), table[i][0], 1e-9);
    }
    NEAR(kl_stats_probit(0.975), 1.959963984540054, 1e-12);
    NEAR(kl_stats_probit(1e-6), -4.753424308822899, 1e-9);
}

static void bca_known(void **u)
{
    double flat[20], spread[101], skew[60];
    (void)u;
    for (int i = 0; i < 20; i++)
        flat[i] = 2.5;
    struct kl_interval a = kl_stats_bca(flat, 20);
    NEAR(a.lo, 2.5, 0);
    NEAR(a.hi, 2.5, 0);
    /* 0..100: the median of a resample has a standard deviation of about 5, so 50 -+ 9.8 */
    for (int i = 0; i <= 100; i++)
        spread[i] = i;
    a = kl_stats_bca(spread, 101);
    NEAR(a.lo, 40, 2.5);
    NEAR(a.hi, 60, 2.5);
    /* the same samples, the same interval */
    struct kl_interval b = kl_stats_bca(spread, 101);
    assert_memory_equal(&a, &b, sizeof a);
    /* a long tail to the right: the interval reaches further to the right of the median */
    for (int i = 0; i < 60; i++)
        skew[i] = exp(i / 10.0);
    a = kl_stats_bca(skew, 60);
    double m = kl_stats_median(skew, 60);
    assert_true(a.lo < m && m < a.hi && a.hi - m > m - a.lo);
    assert_true(isnan(kl_stats_bca(skew, 0).lo));
}

/* Of 400 series of 25 samples each from an exponential distribution, 95 % of the intervals should
 * hold the true median; three standard deviations of that count are 3.3 %. */
static void bca_covers(void **u)
{
    double v[25];
    int hits = 0;
    (void)u;
    state = 12345;
    for (int s = 0; s < 400; s++) {
        for (int i = 0; i < 25; i++)
            v[i] = -log(uniform());
        kl_stats_sort(v, 25);
        struct kl_interval a = kl_stats_bca(v, 25);
        hits += a.lo <= 0.6931471805599453 && 0.6931471805599453 <= a.hi;
    }
    assert_in_range(hits, 400 * 0.917, 400 * 0.983);
}

/* Of few samples, too, and of a distribution whose median lies where its density breaks. */
static void few_covers(void **u)
{
    static const int ns[] = {6, 8, 10, 13, 20};
    double v[20];
    (void)u;
    state = 777;
    for (size_t k = 0; k < sizeof ns / sizeof *ns; k++) {
        int hits = 0;
        for (int s = 0; s < 500; s++) {
            for (int i = 0; i < ns[k]; i++)
                v[i] = uniform() < 0.5 ? 10 - uniform() * 0.1 : 10 - 3 * log(uniform());
            kl_stats_sort(v, (size_t)ns[k]);
            struct kl_interval a = kl_stats_bca(v, (size_t)ns[k]);
            hits += a.lo <= 10 && 10 <= a.hi;
        }
        assert_in_range(hits, 500 * 0.935, 500);
    }
    double three[] = {1, 2, 4};
    struct kl_interval a = kl_stats_bca(three, 3); /* their range: there is no such interval */
    assert_true(a.lo == 1 && a.hi == 4);
}

/* median(a) / median(b) of b = 2a is one half, and its interval narrow. */
static void ratio(void **u)
{
    double a[200], b[200];
    (void)u;
    for (int i = 0; i < 200; i++) {
        a[i] = 10 + i * 0.001;
        b[i] = 2 * a[i];
    }
    struct kl_interval r = kl_stats_ratio(a, 200, b, 200);
    assert_true(r.lo < 0.5 && 0.5 < r.hi && r.hi - r.lo < 0.005);
}

static void error(void **u)
{
    double v[100], w[5] = {1, 1, 1, 1, 1};
    (void)u;
    for (int i = 0; i < 100; i++)
        v[i] = 100 + i; /* samples 39.7 to 59.3 of 0..99: half of 19.6 over 149.5 */
    NEAR(kl_stats_error(v, 100), 9.8 / 149.5, 1e-9);
    assert_true(isinf(kl_stats_error(w, 5)));
}

static void rule(void **u)
{
    struct kl_rule r = KL_RULE_DEFAULT, fixed = KL_RULE_DEFAULT;
    double even[6000], wild[100];
    (void)u;
    fixed.fixed = 7;
    for (int i = 0; i < 6000; i++)
        even[i] = 1;
    for (int i = 0; i < 100; i++)
        wild[i] = 1 + i;
    assert_int_equal(kl_rule_stop(&r, even, 9, 1), KL_STOP_NOT);       /* too few */
    assert_int_equal(kl_rule_stop(&r, even, 10, 0.49), KL_STOP_NOT);   /* too short */
    assert_int_equal(kl_rule_stop(&r, even, 10, 0.5), KL_STOP_PRECISION);
    assert_int_equal(kl_rule_stop(&r, wild, 100, 14.9), KL_STOP_NOT);
    assert_int_equal(kl_rule_stop(&r, wild, 100, 15), KL_STOP_TIME);
    assert_int_equal(kl_rule_stop(&r, wild, 9, 15), KL_STOP_NOT);      /* ten, even if it is slow */
    assert_int_equal(kl_rule_stop(&r, wild, 9, 60), KL_STOP_TIME);     /* but not for ever */
    assert_int_equal(kl_rule_stop(&r, even, 5000, 0.1), KL_STOP_COUNT);
    assert_int_equal(kl_rule_stop(&fixed, even, 6, 99), KL_STOP_NOT);
    assert_int_equal(kl_rule_stop(&fixed, even, 7, 0), KL_STOP_COUNT);
    assert_string_equal(kl_stop_name(KL_STOP_PRECISION), "precision");
}

/* n samples around m, as far as +-spread. */
static struct kl_summary_stats around(double *v, size_t n, double m, double spread)
{
    struct kl_summary_stats s;
    for (size_t i = 0; i < n; i++)
        v[i] = m + spread * (2.0 * (double)i / (double)(n - 1) - 1);
    kl_stats_summarize(v, n, &s);
    return s;
}

static void states(void **u)
{
    static double a[101], b[101];
    static const struct {
        double now, ref, spread;
        size_t n;
        enum kl_state want;
    } table[] = {
        {1, 1, 0.001, 101, KL_STATE_SAME},     {1, 1.1, 0.01, 101, KL_STATE_FAST},
        {1.1, 1, 0.01, 101, KL_STATE_SLOW},    {1, 1.02, 0.5, 101, KL_STATE_AMBG},
        {1, 1.001, 0.0001, 101, KL_STATE_SAME}, /* apart, but by less than 0.2 % */
        {1, 2, 0.1, 2, KL_STATE_UNKNOWN},
    };
    (void)u;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct kl_summary_stats now = around(a, table[i].n, table[i].now, table[i].spread);
        struct kl_summary_stats ref = around(b, table[i].n, table[i].ref, table[i].spread);
        struct kl_versus v = kl_stats_versus(&now, &ref);
        assert_string_equal(kl_state_name(v.state), kl_state_name(table[i].want));
        NEAR(v.ratio, table[i].ref / table[i].now, 1e-9);
        if (table[i].n > 2)
            assert_true(v.ci.lo <= v.ratio && v.ratio <= v.ci.hi);
        /* without samples, by the intervals alone */
        ref.sample = NULL;
        struct kl_versus w = kl_stats_versus(&now, &ref);
        assert_true(w.state == v.state || w.state == KL_STATE_AMBG);
        if (table[i].n > 2)
            assert_true(w.ci.lo <= w.ratio && w.ratio <= w.ci.hi);
    }
}

static void regressed(void **u)
{
    struct kl_versus slow = {0.9, {0.89, 0.91}, KL_STATE_SLOW}, fast = {1.2, {1.1, 1.3}, KL_STATE_FAST};
    struct kl_versus unsure = {0.8, {0.5, 1.1}, KL_STATE_AMBG};
    (void)u;
    assert_true(kl_versus_regressed(&slow, 0.05));   /* 11 % slower */
    assert_true(kl_versus_regressed(&slow, 0.11));
    assert_false(kl_versus_regressed(&slow, 0.12));
    assert_false(kl_versus_regressed(&fast, 0));
    assert_false(kl_versus_regressed(&unsure, 0.05));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order),  cmocka_unit_test(normal), cmocka_unit_test(bca_known),
        cmocka_unit_test(bca_covers), cmocka_unit_test(few_covers), cmocka_unit_test(ratio),
        cmocka_unit_test(error),
        cmocka_unit_test(rule),   cmocka_unit_test(states), cmocka_unit_test(regressed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
