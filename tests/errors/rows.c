/* rows.c - softmax and losses.
 *
 * exp(x - m): the difference is rounded, which is abs(x - m) u of the result; the function adds
 * E = 1.8 u.  All terms of the sum are positive, so its relative error is the mean of theirs,
 * weighted by the terms themselves, and one u for each rounding on the way to the sum. */
#include <math.h>
#include <stddef.h>

#include "errors.h"

/* One row: x[i * step], i < n. */
struct soft {
    real top, sum, far; /* far: mean of abs(x - top), weighted with the softmax */
};

static struct soft soft(const real *x, int64_t n, int64_t step)
{
    struct soft s = {-INFINITY, 0, 0};
    for (int64_t i = 0; i < n; i++)
        s.top = fmaxl(s.top, x[i * step]);
    for (int64_t i = 0; i < n; i++) {
        real e = expl(x[i * step] - s.top);
        s.sum += e;
        s.far += e * (s.top - x[i * step]);
    }
    s.far /= s.sum;
    return s;
}

static void check_softmax(struct tens *y, const struct tens *x, int64_t rows, int64_t n,
                          int64_t row_step, int64_t step, real sums)
{
    for (int64_t r = 0; r < rows; r++) {
        struct soft s = soft(x->v + r * row_step, n, step);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = r * row_step + i * step;
            real want = expl(x->v[at] - s.top) / s.sum;
            item(y, at, want, want,
                 s.top - x->v[at] + s.far + 2 * now.fast_exp + sums + now.fast_div);
        }
    }
}

/* Blocks in order: each rounds the product with the factor of the rise and the sum, and the factor.
 * The rises of the maximum add up to at most what the first one lacked of the last. */
static real online(const struct tens *x, int64_t r, int64_t cols, int64_t block, real top)
{
    real first = -INFINITY, blocks = ceill((real)cols / block);
    for (int64_t i = 0; i < (cols < block ? cols : block); i++)
        first = fmaxl(first, x->v[r * cols + i]);
    return ceil_log2(block) + (blocks - 1) * (2 + now.fast_exp) + (top - first);
}

static const enum fill kinds[] = {NORMAL, SPREAD, OFFSET, CANCEL};
enum { KINDS = sizeof kinds / sizeof *kinds };
static const int shapes[][2] = {{3, 37}, {2, 300}, {5, 1}, {3, 4096}, {2, 20000}};
#define EACH_CASE                                                                                  \
    for (unsigned s = 0; s < (now.full ? 5 : 2); s++)                                              \
        for (unsigned k = 0; k < (now.full ? KINDS : 2); k++, fresh())

static void softmax_whole(void)
{
    EACH_CASE
    {
        int rows = shapes[s][0], cols = shapes[s][1];
        struct tens *x = tens(now.t, kinds[k], 2, rows, cols),
                    *y = tens(now.t, POISON, 2, rows, cols);
        RUN(kiln_nn_softmax(now.nn, NULL, &y->t, &x->t, &d));
        check_softmax(y, x, rows, cols, cols, 1, ceil_log2(cols));
    }
}

static void softmax_other(void)
{
    EACH_CASE
    {
        int rows = shapes[s][0], cols = shapes[s][1];
        struct tens *x = tens(now.t, kinds[k], 2, rows, cols),
                    *y = tens(now.t, POISON, 2, rows, cols);
        launch("softmax", "softmax_strided", "y x", y, x);
        check_softmax(y, x, rows, cols, cols, 1, ceil_log2(cols));
        if (cols <= 4096) {
            struct tens *z = tens(now.t, POISON, 2, rows, cols);
            launch("softmax", "softmax_columns", "y x", z, x);
            check_softmax(z, x, cols, rows, 1, cols, ceil_log2(rows));
        }
    }
}

static void softmax_blocks(void)
{
    EACH_CASE
    {
        int rows = shapes[s][0], cols = shapes[s][1];
        int64_t block = 64;
        struct tens *x = tens(now.t, kinds[k], 2, rows, cols),
                    *y = tens(now.t, POISON, 2, rows, cols);
        launch("softmax", "softmax_online", "BLOCK%i y x", block, y, x);
        for (int64_t r = 0; r < rows; r++) {
            struct soft q = soft(x->v + r * cols, cols, 1);
            real sums = online(x, r, cols, block, q.top);
            for (int64_t i = r * cols; i < (r + 1) * cols; i++) {
                real want = expl(x->v[i] - q.top) / q.sum;
                item(y, i, want, want,
                     q.top - x->v[i] + q.far + 2 * now.fast_exp + sums + now.fast_div);
            }
        }
    }
}

/* Pairs: each of the log2(n) joins rounds two factors, two products and the sum; the differences of
 * maxima on the way up add to at most those of the elements from the top. */
static void softmax_pairs(void)
{
    EACH_CASE
    {
        int rows = shapes[s][0], cols = shapes[s][1];
        struct tens *x = tens(now.t, kinds[k], 2, rows, cols),
                    *y = tens(now.t, POISON, 2, rows, cols);
        launch("softmax", "softmax_pairs", "y x", y, x);
        check_softmax(y, x, rows, cols, cols, 1, ceil_log2(cols) * (2 + now.fast_exp));
    }
}

/* d - log(sum): the rounding of d, the sum's relative error as it stands, the logarithm, the
 * difference. */
static void log_softmax(bool blocks)
{
    EACH_CASE
    {
        int rows = shapes[s][0], cols = shapes[s][1];
        int64_t block = 64;
        struct tens *x = tens(now.t, kinds[k], 2, rows, cols),
                    *y = tens(now.t, POISON, 2, rows, cols);
        if (blocks)
            launch("loss", "log_softmax_online", "BLOCK%i y x", block, y, x);
        else
            RUN(kiln_nn_log_softmax(now.nn, NULL, &y->t, &x->t, &d));
        for (int64_t r = 0; r < rows; r++) {
            struct soft q = soft(x->v + r * cols, cols, 1);
            real l = logl(q.sum);
            real sums = blocks ? online(x, r, cols, block, q.top) : ceil_log2(cols);
            real common = q.far + now.fast_exp + sums + (now.exact_math ? 1.8L * l : 4 + 5 * l);
            for (int64_t i = r * cols; i < (r + 1) * cols; i++) {
                real want = x->v[i] - q.top - l;
                item_of(y, i, want, 1 + fabsl(want), q.top - x->v[i] + common + fabsl(want));
            }
        }
    }
}
static void log_softmax_whole(void)
{
    log_softmax(false);
}
static void log_softmax_blocks(void)
{
    log_softmax(true);
}

static void cross_entropy(void)
{
    EACH_CASE
    {
        int rows = shapes[s][0], cols = shapes[s][1];
        real w = k % 2 ? 0 : 0.125L;
        struct tens *x = tens(now.t, kinds[k], 2, rows, cols);
        struct tens *loss = tens(now.a, POISON, 1, rows), *lse = tens(now.a, POISON, 1, rows);
        struct tens *label = ints(KILN_I64, cols, 1, rows);
        RUN(kiln_nn_cross_entropy(now.nn, NULL, &loss->t, &lse->t, &x->t, &label->t, (double)w,
                                  -100, &d));
        for (int64_t r = 0; r < rows; r++) {
            const real *v = x->v + r * cols;
            struct soft q = soft(v, cols, 1);
            real l = logl(q.sum), hit = v[(int64_t)label->v[r]], all = 0, size = 0;
            for (int64_t i = 0; i < cols; i++) {
                all += v[i] / cols;
                size += fabsl(v[i]) / cols;
            }
            real blocks = ceill((real)cols / 4096), tree = ceil_log2(cols < 4096 ? cols : 4096);
            real sums =
                tree + (blocks - 1) * (2 + now.fast_exp) + (blocks > 1 ? 2 * q.far + 10 : 0);
            real e = q.far + now.fast_exp + sums + (now.exact_math ? 1.8L * l : 4 + 5 * l) +
                     fabsl(q.top + l);
            real size_ = 1 + fabsl(q.top) + l;
            item_of(lse, r, q.top + l, size_, e);
            real want = q.top + l - (1 - w) * hit - w * all;
            e += 3 * fabsl((1 - w) * hit) + w * size * (tree + blocks + 2) +
                 fabsl(q.top + l - (1 - w) * hit) + fabsl(want);
            item_of(loss, r, want, size_ + fabsl(hit) + w * size, e);
        }
    }
}

static void cross_entropy_backward(void)
{
    EACH_CASE
    {
        int rows = shapes[s][0], cols = shapes[s][1];
        real w = k % 2 ? 0 : 0.125L;
        struct tens *x = tens(now.t, kinds[k], 2, rows, cols),
                    *dx = tens(now.t, POISON, 2, rows, cols);
        struct tens *lse = tens(now.a, ZERO, 1, rows), *g = tens(now.a, NORMAL, 1, rows);
        struct tens *label = ints(KILN_I64, cols, 1, rows);
        for (int64_t r = 0; r < rows; r++) {
            struct soft q = soft(x->v + r * cols, cols, 1);
            tens_set(lse, r, q.top + logl(q.sum));
        }
        RUN(kiln_nn_cross_entropy_backward(now.nn, NULL, &dx->t, &x->t, &label->t, &lse->t, &g->t,
                                           (double)w, -100, &d));
        for (int64_t i = 0; i < dx->n; i++) {
            int64_t r = i / cols;
            real z = x->v[i] - lse->v[r], p = expl(z), hit = i % cols == label->v[r] ? 1 - w : 0;
            real want = g->v[r] * (p - w / cols - hit);
            real e = p * (fabsl(z) + now.fast_exp + 1) + (w / cols + hit) * 3 +
                     fabsl(p - w / cols) + 2 * fabsl(p - w / cols - hit);
            item_lost(dx, i, want, fabsl(g->v[r]), e, 2 * g->v[r]);
        }
    }
}

const struct test row_tests[] = {
    {"softmax softmax", "kiln_nn_softmax", "u y", T_ALL, softmax_whole},
    {"softmax softmax_strided softmax_columns", "", "u y", T_ALL, softmax_other},
    {"softmax softmax_online", "kiln_nn_softmax", "u y", T_ALL, softmax_blocks},
    {"softmax softmax_pairs", "", "u y", T_F32 | T_F16 | T_BF16, softmax_pairs},
    {"loss log_softmax", "kiln_nn_log_softmax", "u (1 + abs(y))", T_ALL, log_softmax_whole},
    {"loss log_softmax_online", "kiln_nn_log_softmax", "u (1 + abs(y))", T_ALL, log_softmax_blocks},
    {"loss cross_entropy", "kiln_nn_cross_entropy", "u terms", T_ALL, cross_entropy},
    {"loss cross_entropy_backward", "kiln_nn_cross_entropy_backward", "u g", T_ALL,
     cross_entropy_backward},
    {NULL, NULL, NULL, 0, NULL},
};
