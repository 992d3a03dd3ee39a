/* stats.c - medians, their intervals, the stop rule, and comparing.
 *
 * The interval of a median is Efron's BCa interval: quantiles of resampled medians at places that
 * are moved by the bias z0 (how many of them lie below the sample's median) and by the acceleration
 * a (the skewness of the medians that leave one sample out).  A resample of sorted values needs no
 * sort: how often each place was drawn tells where its median lies.  Of few samples, BCa covers 86 to
 * 94 % where it says 95; there the interval by order statistics, which covers at least that much,
 * widens it. */
#include "cli/bench/stats.h"

#include <math.h>
#include <stdlib.h>

#include "cli/cli.h"

enum { RESAMPLES = 2000, FEW = 50 };

/* ---- order ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void kl_stats_sort(double *v, size_t n)
{
    if (n)
        qsort(v, n, sizeof *v, by_value);
}

double kl_stats_median(const double *v, size_t n)
{
    if (!n)
        return (double)NAN;
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double kl_stats_quantile(const double *v, size_t n, double p)
{
    if (!n)
        return (double)NAN;
    double at = p * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}

double kl_stats_noise(const double *v, size_t n)
{
    double m = kl_stats_median(v, n);
    return n && m > 0 ? (kl_stats_quantile(v, n, 0.75) - kl_stats_quantile(v, n, 0.25)) / 2 / m : 0;
}

/* The samples number n/2 -+ 0.98 sqrt(n) enclose the median with 95 %: the number of samples below
 * it is binomial. */
double kl_stats_error(const double *v, size_t n)
{
    double m = kl_stats_median(v, n);
    if (n < 6 || !(m > 0))
        return (double)INFINITY;
    double half = 0.98 * sqrt((double)n), mid = (double)(n - 1) / 2;
    double lo = fmax(mid - half, 0), hi = fmin(mid + half, (double)(n - 1));
    double last = (double)(n - 1);
    return (kl_stats_quantile(v, n, hi / last) - kl_stats_quantile(v, n, lo / last)) / 2 / m;
}

/* ---- the normal distribution ---- */

double kl_stats_normal(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

/* Bisection, then Newton: no table of coefficients, and fast enough for three calls a series. */
double kl_stats_probit(double p)
{
    double lo = -40, hi = 40, x = 0;
    for (int i = 0; i < 30; i++) {
        x = (lo + hi) / 2;
        if (kl_stats_normal(x) < p)
            lo = x;
        else
            hi = x;
    }
    for (int i = 0; i < 3; i++) {
        double d = exp(-x * x / 2) * 0.39894228040143267794;
        if (d > 0)
            x -= (kl_stats_normal(x) - p) / d;
    }
    return x;
}

/* ---- resampling ---- */

/* splitmix64 */
static uint64_t next(uint64_t *s)
{
    uint64_t z = *s += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* The median of n draws from v; count has room for n. */
static double resample(const double *v, size_t n, uint32_t *count, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++)
        count[i] = 0;
    for (size_t i = 0; i < n; i++)
        count[(size_t)(((next(seed) >> 32) * n) >> 32)]++;
    size_t want = (n - 1) / 2, seen = 0, i = 0;
    while (seen + count[i] <= want)
        seen += count[i++];
    double low = v[i];
    if (n % 2)
        return low;
    if (seen + count[i] > want + 1)
        return low;
    for (i++; !count[i]; i++)
        ;
    return (low + v[i]) / 2;
}

/* The acceleration of the median: a sixth of the skewness of the medians without one sample. */
static double acceleration(const double *v, size_t n)
{
    double sum = 0, square = 0, cube = 0, mean;
    /* Leaving out a sample below the middle, at it, or above it gives one of three medians. */
    double *m = kl_xalloc(n * sizeof *m);
    for (size_t i = 0; i < n; i++) {
        size_t k = n - 1, a = (k - 1) / 2, b = k / 2; /* places in the shorter series */
        m[i] = (v[a + (a >= i)] + v[b + (b >= i)]) / 2;
        sum += m[i];
    }
    mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double d = mean - m[i];
        square += d * d;
        cube += d * d * d;
    }
    free(m);
    return square > 0 ? cube / (6 * pow(square, 1.5)) : 0;
}

/* The place of the lower end by order statistics: how many samples lie below the median is binomial,
 * and fewer than this with 2.5 % at most. */
static size_t below_half(size_t n)
{
    double p = pow(0.5, (double)n), sum = p;
    size_t k = 0;
    while (sum + p * (double)(n - k) / (double)(k + 1) <= 0.025) {
        p *= (double)(n - k) / (double)(k + 1);
        sum += p;
        k++;
    }
    return k;
}

struct kl_interval kl_stats_bca(const double *v, size_t n)
{
    if (!n)
        return (struct kl_interval){(double)NAN, (double)NAN};
    if (n < KL_STATE_LEAST || v[0] == v[n - 1])
        return (struct kl_interval){v[0], v[n - 1]};
    double *boot = kl_xalloc(RESAMPLES * sizeof *boot), m = kl_stats_median(v, n), below = 0;
    uint32_t *count = kl_xalloc(n * sizeof *count);
    uint64_t seed = 1;
    for (int i = 0; i < RESAMPLES; i++) {
        boot[i] = resample(v, n, count, &seed);
        below += boot[i] < m ? 1.0 : boot[i] == m ? 0.5 : 0.0;
    }
    kl_stats_sort(boot, RESAMPLES);
    double share = fmin(fmax(below / RESAMPLES, 1.0 / RESAMPLES), 1 - 1.0 / RESAMPLES);
    double z0 = kl_stats_probit(share), a = acceleration(v, n), q[2];
    for (int i = 0; i < 2; i++) {
        double z = z0 + (i ? 1.959963984540054 : -1.959963984540054);
        q[i] = kl_stats_quantile(boot, RESAMPLES, kl_stats_normal(z0 + z / (1 - a * z)));
    }
    free(count);
    free(boot);
    if (n < FEW) {
        size_t k = below_half(n);
        q[0] = fmin(q[0], v[k]);
        q[1] = fmax(q[1], v[n - 1 - k]);
    }
    return (struct kl_interval){q[0], q[1]};
}

struct kl_interval kl_stats_ratio(const double *a, size_t na, const double *b, size_t nb)
{
    if (!na || !nb)
        return (struct kl_interval){(double)NAN, (double)NAN};
    double *boot = kl_xalloc(RESAMPLES * sizeof *boot);
    uint32_t *count = kl_xalloc((na > nb ? na : nb) * sizeof *count);
    uint64_t seed = 2;
    for (int i = 0; i < RESAMPLES; i++) {
        double x = resample(a, na, count, &seed);
        boot[i] = x / resample(b, nb, count, &seed);
    }
    kl_stats_sort(boot, RESAMPLES);
    struct kl_interval r = {kl_stats_quantile(boot, RESAMPLES, 0.025),
                            kl_stats_quantile(boot, RESAMPLES, 0.975)};
    free(count);
    free(boot);
    return r;
}

/* ---- when to stop ---- */

enum kl_stop kl_rule_stop(const struct kl_rule *r, const double *sorted, size_t n, double spent)
{
    if (r->fixed)
        return n >= r->fixed ? KL_STOP_COUNT : KL_STOP_NOT;
    if (n >= r->most)
        return KL_STOP_COUNT;
    if (n < r->least)
        return spent >= 4 * r->most_s && n >= KL_STOP_LEAST ? KL_STOP_TIME : KL_STOP_NOT;
    if (spent >= r->enough_s && kl_stats_error(sorted, n) <= r->error)
        return KL_STOP_PRECISION;
    return spent >= r->most_s ? KL_STOP_TIME : KL_STOP_NOT;
}

const char *kl_stop_name(enum kl_stop s)
{
    static const char *const name[] = {"not", "precision", "time", "count", "failed"};
    return name[s];
}

/* ---- comparing ---- */

void kl_stats_summarize(double *v, size_t n, struct kl_summary_stats *out)
{
    kl_stats_sort(v, n);
    *out = (struct kl_summary_stats){.median = kl_stats_median(v, n),
                                     .min = kl_stats_quantile(v, n, 0),
                                     .p95 = kl_stats_quantile(v, n, 0.95),
                                     .noise = kl_stats_noise(v, n),
                                     .ci = kl_stats_bca(v, n),
                                     .n = n,
                                     .sample = v};
}

struct kl_versus kl_stats_versus(const struct kl_summary_stats *now,
                                 const struct kl_summary_stats *ref)
{
    struct kl_versus v = {.ratio = (double)NAN, .ci = {(double)NAN, (double)NAN}};
    if (!now->n || !ref->n || !(now->median > 0) || !(ref->median > 0))
        return v;
    v.ratio = ref->median / now->median;
    if (now->sample && ref->sample)
        v.ci = kl_stats_ratio(ref->sample, ref->n, now->sample, now->n);
    else /* the widest that both intervals allow */
        v.ci = (struct kl_interval){ref->ci.lo / now->ci.hi, ref->ci.hi / now->ci.lo};
    bool apart = now->ci.hi < ref->ci.lo || now->ci.lo > ref->ci.hi;
    bool near = apart ? fabs(v.ratio - 1) <= KL_STATE_RESOLUTION
                      : v.ci.lo >= 1 - KL_STATE_SAME_WITHIN && v.ci.hi <= 1 + KL_STATE_SAME_WITHIN;
    if (now->n < KL_STATE_LEAST || ref->n < KL_STATE_LEAST)
        v.state = KL_STATE_UNKNOWN;
    else if (near)
        v.state = KL_STATE_SAME;
    else if (apart)
        v.state = v.ratio > 1 ? KL_STATE_FAST : KL_STATE_SLOW;
    else
        v.state = KL_STATE_AMBG;
    return v;
}

const char *kl_state_name(enum kl_state s)
{
    static const char *const name[] = {"????", "SAME", "FAST", "SLOW", "AMBG"};
    return name[s];
}

bool kl_versus_regressed(const struct kl_versus *v, double limit)
{
    return v->state == KL_STATE_SLOW && v->ratio * (1 + limit) < 1;
}
