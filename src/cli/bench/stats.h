/* stats.h - what `kiln bench` says about a series of measured times. */
#ifndef KL_STATS_H
#define KL_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Samples are sorted in increasing order before they are given to these. */
void kl_stats_sort(double *v, size_t n);
double kl_stats_median(const double *v, size_t n);
double kl_stats_quantile(const double *v, size_t n, double p); /* linear between the samples */
/* Half of the distance between the quartiles over the median: spread without the outliers. */
double kl_stats_noise(const double *v, size_t n);
/* Half of the 95 % interval of the median, over the median, by the samples' own order; infinite
 * below six samples.  Cheap: the stop rule asks for it again and again. */
double kl_stats_error(const double *v, size_t n);

double kl_stats_normal(double x); /* the distribution function of the normal distribution */
double kl_stats_probit(double p); /* its inverse; p in (0, 1) */

struct kl_interval {
    double lo, hi;
};
/* The 95 % interval of the median by the bootstrap, bias-corrected and accelerated (BCa).  The
 * resamples come from a fixed seed: the same samples give the same interval.  Below fifty samples,
 * where BCa covers less than it says, the interval by order statistics is in it, too; below six there
 * is none, and this is the range of all samples. */
struct kl_interval kl_stats_bca(const double *v, size_t n);
/* The 95 % interval of median(a) / median(b), both resampled. */
struct kl_interval kl_stats_ratio(const double *a, size_t na, const double *b, size_t nb);

/* ---- when to stop ---- */

enum kl_stop {
    KL_STOP_NOT,       /* go on */
    KL_STOP_PRECISION, /* the median's error is small enough */
    KL_STOP_TIME,      /* it is not, and the time is over */
    KL_STOP_COUNT,     /* so many samples were asked for, or fit */
    KL_STOP_FAILED
};
struct kl_rule {
    size_t fixed; /* stop after just so many; 0: by the rest */
    size_t least, most;
    double enough_s; /* at least so long */
    double most_s;   /* no longer, unless fewer than `least` samples are there */
    double error;    /* of the median, relative: half of its 95 % interval */
};
#define KL_RULE_DEFAULT                                                                            \
    {                                                                                              \
        0, 10, 5000, 0.5, 15.0, 0.005                                                              \
    }
/* n samples were kept, which took `spent` seconds in all. */
enum kl_stop kl_rule_stop(const struct kl_rule *r, const double *sorted, size_t n, double spent);
const char *kl_stop_name(enum kl_stop s); /* "precision", "time", "count", "failed" */

/* ---- comparing ---- */

/* A summary of a series; the samples may be missing (n counts them). */
struct kl_summary_stats {
    double median, min, p95, noise;
    struct kl_interval ci;
    size_t n;
    const double *sample; /* sorted; NULL: not known */
};
/* Sorts the samples, which the summary refers to from then on. */
void kl_stats_summarize(double *v, size_t n, struct kl_summary_stats *out);

enum kl_state { KL_STATE_UNKNOWN, KL_STATE_SAME, KL_STATE_FAST, KL_STATE_SLOW, KL_STATE_AMBG };
/* How `now` stands to `ref`: FAST or SLOW if the intervals of the medians do not touch and the
 * medians are further than `resolution` apart; SAME if the ratio's interval lies within `same` of
 * one; AMBG if it does not, so that the samples decide nothing; UNKNOWN below six samples, which
 * have no 95 % interval. */
enum { KL_STATE_LEAST = 6, KL_STOP_LEAST = 3 };
#define KL_STATE_RESOLUTION  0.002
#define KL_STATE_SAME_WITHIN 0.02
struct kl_versus {
    double ratio; /* time of ref over time of now: above one, now is faster */
    struct kl_interval ci;
    enum kl_state state;
};
struct kl_versus kl_stats_versus(const struct kl_summary_stats *now,
                                 const struct kl_summary_stats *ref);
const char *kl_state_name(enum kl_state s); /* "SAME", ...; "????" */
/* Whether a comparison is a regression of more than `limit` (0.05): SLOW, and by more than that. */
bool kl_versus_regressed(const struct kl_versus *v, double limit);

#endif
