/* compare.h - how far an array is from a reference, and short summaries. */
#ifndef KL_COMPARE_H
#define KL_COMPARE_H

#include "cli/args.h"

enum kl_tolkind {
    KL_TOL_DEFAULT, /* floats: NaN and inf masks equal, RMS ratio by type; others: equal */
    KL_TOL_EXACT,   /* the same bits, any NaN for any NaN */
    KL_TOL_ULP,     /* each element within v units in the last place of the array's type */
    KL_TOL_REL      /* each element within v * max(|reference|, RMS of the reference) */
};
struct kl_tol {
    enum kl_tolkind kind;
    double v;
};
bool kl_tol_parse(const char *s, struct kl_tol *out); /* "2ulp", "1e-5", "0" */

enum { KL_CMP_FIRST = 5 };
struct kl_cmp {
    uint64_t count;
    uint64_t differ;     /* elements whose bits differ (values, if the types differ) */
    uint64_t masks;      /* elements where NaN, inf or -inf stands against something else */
    double max_abs;      /* over the finite ones */
    double max_ulp;      /* in units of the array's type at the reference */
    double rms;          /* RMS of the error over RMS of the reference; inf if that is 0 */
    double limit;        /* of the tolerance, in its own unit */
    uint64_t beyond;     /* elements outside an elementwise tolerance */
    uint64_t worst;      /* the first element beyond, else the one with the largest error */
    uint32_t nfirst;
    uint64_t first[KL_CMP_FIRST]; /* the first elements beyond */
    bool ok;
};
/* Shapes must be equal.  Types may differ: the reference is then not rounded first. */
void kl_compare(const struct kl_arr *got, const struct kl_arr *ref, const struct kl_tol *tol,
                struct kl_cmp *c);
bool kl_arr_same_shape(const struct kl_arr *a, const struct kl_arr *b);
/* One line about the result, without a newline. */
void kl_cmp_text(const struct kl_cmp *c, const struct kl_arr *got, const struct kl_tol *tol,
                 char *buf, size_t n);
/* Type, shape, extremes, mean, NaN count and the first few values of an array. */
void kl_summary(const struct kl_arr *a, FILE *f);

#endif
