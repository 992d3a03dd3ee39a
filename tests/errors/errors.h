/* errors.h - measured errors of the library's kernels against their bounds: what the files share.
 *
 * A test runs one kernel on some shapes and kinds of numbers, computes each result again in long
 * double, and hands over each element with its bound, u times a scale times a number of roundings,
 * as docs/kernels.md states it.  u is 2^-24, for f64 2^-53.  To that comes the rounding of the
 * result to a type smaller than the sums'. */
#ifndef ERRORS_H
#define ERRORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln_nn.h"

typedef long double real;

/* ---- arrays: of one case, freed behind it ---- */

enum fill {
    POISON, /* an output */
    ZERO,
    NORMAL,
    UNIFORM, /* 0 .. 1 */
    CANCEL,  /* large numbers, each followed by nearly its negative, a few small ones between */
    WIDE,    /* 2^-20 .. 2^20, either sign; f16: 2^-7 .. 2^7 */
    SPREAD,  /* normal, times 30: exponentials of them differ by all the range has */
    OFFSET,  /* 100 plus normal noise: the variance is small beside the mean */
};
enum { MAX_RANK = 6 };

struct tens {
    kiln_tensor t;
    int64_t shape[MAX_RANK], strides[MAX_RANK];
    int64_t n;
    bool read;
    real *v; /* the elements as they were rounded to the type; of outputs: after read_back */
};
/* fill, number of axes, their lengths as int */
struct tens *tens(kiln_dtype t, enum fill fill, int ndim, ...);
struct tens *ints(kiln_dtype t, int64_t below, int ndim, ...); /* 0 .. below - 1, by chance */
void tens_set(struct tens *x, int64_t i, real v);
void tens_scale(struct tens *x, real by);
void read_back(struct tens *x);
void *workspace(size_t bytes);
double chance(void); /* 0 .. 1 */
void fresh(void);    /* the arrays of this case are done with */

/* ---- the test that runs ---- */

struct bench {
    kiln_nn *nn;
    kiln_dtype t, a;      /* element type, type of sums */
    real u, fast_exp;     /* of a; relative error of exp beside that of its argument, in u */
    real fast_div, rsqrt; /* of a division and of a reciprocal root, in u */
    bool full;            /* all shapes, all kinds of numbers */
    bool exact_math;      /* on the device that runs, for this type */
};
extern struct bench now;

/* The library's function must succeed. */
#define RUN(call)                                                                                  \
    do {                                                                                           \
        kiln_diags *d = NULL;                                                                      \
        kiln_status st_ = (call);                                                                  \
        must(st_, d, #call);                                                                       \
    } while (0)
void must(kiln_status st, kiln_diags *d, const char *what);

/* A kernel of a file by itself: arguments NAME, then `const struct tens *`, for %i int64_t, for %f
 * double: launch("saxpy", "saxpy", "a%f y x", 1.5, y, x). */
void launch(const char *file, const char *kernel, const char *args, ...);

/* Element i of y has the right value `want`, within u scale roundings and the rounding to y's type. */
void item(struct tens *y, int64_t i, real want, real scale, real roundings);
/* The same where the roundings, each times what is rounded, add up to total. */
void item_of(struct tens *y, int64_t i, real want, real scale, real total);
/* The same where what may have underflowed was multiplied by factor. */
void item_lost(struct tens *y, int64_t i, real want, real scale, real roundings, real factor);
/* The same of a result that is exact, or copied. */
void item_exact(struct tens *y, int64_t i, real want);
/* A figure of a whole array, such as a ratio of root mean squares. */
void figure(real measured, real bound);
/* Another row of the table from here on: what is measured of the same kernel besides. */
void part(const char *what);

/* ---- tables ---- */

enum { T_F32 = 1, T_F16 = 2, T_BF16 = 4, T_F64 = 8, T_ALL = 15 };

struct test {
    const char *kernels; /* FILE KERNEL KERNEL ... */
    const char *call;    /* function of kiln_nn.h, or "" */
    const char *unit;    /* of the figures: u times what */
    unsigned types;
    void (*run)(void);
};
extern const struct test row_tests[], norm_tests[], sum_tests[], element_tests[], product_tests[],
    attention_tests[], move_tests[];

/* ---- helpers of bounds ---- */

real ceil_log2(int64_t n); /* roundings of tree(n) */
real ulp(kiln_dtype t, real v);

#endif
