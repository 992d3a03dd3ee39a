/* sums.c - reductions, running sums, sums by index: roundings on the longest path to a result, times
 * the sum of absolute values. */
#include <math.h>
#include <stddef.h>

#include "errors.h"

static const enum fill kinds[] = {NORMAL, CANCEL, WIDE, OFFSET};
enum { KINDS = sizeof kinds / sizeof *kinds };
#define EACH_KIND for (unsigned k = 0; k < (now.full ? KINDS : 3); k++, fresh())

static real roundings(int64_t n, int64_t block)
{
    return ceill((real)n / block) - 1 + ceil_log2(block);
}

static int64_t pow2(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* Element r of y: sum of n elements from x + from, step apart. */
static void check_sum(struct tens *y, int64_t r, const struct tens *x, int64_t from, int64_t n,
                      int64_t step, real divide, real count)
{
    real t = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        t += x->v[from + i * step];
        size += fabsl(x->v[from + i * step]);
    }
    item(y, r, t / divide, size / divide, count);
}

/* Both kernels; long axes in parts, which add place by place again. */
static void reduce(void)
{
    static const int ext[][3] = {{3, 50, 1}, {2, 40, 7}, {1, 5000, 1}, {4, 3000, 1}, {2, 2000, 5}};
    for (unsigned s = 0; s < (now.full ? 5 : 3); s++)
        EACH_KIND
        {
            int outer = ext[s][0], n = ext[s][1], inner = ext[s][2];
            struct tens *x = tens(now.t, kinds[k], 3, outer, n, inner);
            struct tens *y = tens(now.a, POISON, 2, outer, inner),
                        *m = tens(now.a, POISON, 2, outer, inner);
            struct tens *top = tens(now.t, POISON, 2, outer, inner);
            size_t need = kiln_nn_reduce_workspace(now.nn, &x->t, 1);
            void *work = workspace(need);
            RUN(kiln_nn_reduce(now.nn, NULL, KILN_NN_SUM, &y->t, &x->t, 1, work, need, &d));
            RUN(kiln_nn_reduce(now.nn, NULL, KILN_NN_MEAN, &m->t, &x->t, 1, work, need, &d));
            RUN(kiln_nn_reduce(now.nn, NULL, KILN_NN_MAX, &top->t, &x->t, 1, work, need, &d));
            /* whatever the parts: a block a step, the tree, and the same over parts */
            real c = inner == 1 ? roundings(n, pow2(n < 2048 ? n : 2048))
                                : roundings(n, pow2(n < 32 ? n : 32));
            c += need ? 1 + ceil_log2(32) : 0;
            for (int64_t i = 0; i < outer * inner; i++) {
                int64_t from = i / inner * n * inner + i % inner;
                part("");
                check_sum(y, i, x, from, n, inner, 1, c);
                check_sum(m, i, x, from, n, inner, n, c + 1);
                part("largest");
                real want = -INFINITY;
                for (int64_t j = 0; j < n; j++)
                    want = fmaxl(want, x->v[from + j * inner]);
                item_exact(top, i, want);
            }
        }
}

static void rowsum(void)
{
    static const int ext[][2] = {{3, 37}, {2, 1000}, {5, 5000}};
    for (unsigned s = 0; s < (now.full ? 3 : 2); s++)
        EACH_KIND
        {
            int rows = ext[s][0], cols = ext[s][1], parts = 3;
            int64_t block = 64;
            struct tens *x = tens(now.t, kinds[k], 2, rows, cols),
                        *y = tens(now.a, POISON, 1, rows);
            struct tens *part_ = tens(now.a, POISON, 2, rows, parts),
                        *z = tens(now.a, POISON, 1, rows);
            struct tens *w = tens(now.a, POISON, 1, rows);
            launch("rowsum", "rowsum", "BLOCK%i s x", block, y, x);
            launch("rowsum", "rowsum_parts", "BLOCK%i partial x", block, part_, x);
            launch("rowsum", "rowsum_join", "s partial", z, part_);
            launch("rowsum", "rowsum_short", "ROWS%i s x", (int64_t)4, w, x);
            for (int64_t r = 0; r < rows; r++) {
                check_sum(y, r, x, r * cols, cols, 1, 1, roundings(cols, block));
                check_sum(z, r, x, r * cols, cols, 1, 1,
                          roundings((cols + parts - 1) / parts + block, block) + 2);
                check_sum(w, r, x, r * cols, cols, 1, 1, ceil_log2(cols));
            }
        }
}

/* Running sums: place i of a block of P is reached by at most log2(P) additions; each block before
 * adds one. */
static void check_scan(struct tens *y, const struct tens *x, int64_t from, int64_t n, int64_t step,
                       real block, bool reverse, real more)
{
    real t = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = from + (reverse ? n - 1 - i : i) * step;
        t += x->v[at];
        size += fabsl(x->v[at]);
        item(y, at, t, size, ceil_log2((int64_t)block) + floorl(i / block) + more);
    }
}

static void running(void)
{
    static const int ext[][2] = {{3, 37}, {2, 700}, {1, 9000}};
    for (unsigned s = 0; s < (now.full ? 3 : 2); s++)
        EACH_KIND
        {
            int rows = ext[s][0], cols = ext[s][1];
            struct tens *x = tens(now.t, kinds[k], 2, rows, cols);
            struct tens *y[6];
            for (int i = 0; i < 6; i++)
                y[i] = tens(now.a, POISON, 2, rows, cols);
            launch("scan", "cumsum_rows", "BLOCK%i y x", (int64_t)64, y[0], x);
            RUN(kiln_nn_cumsum(now.nn, NULL, &y[1]->t, &x->t, 1, 1, &d));
            RUN(kiln_nn_cumsum(now.nn, NULL, &y[2]->t, &x->t, 0, 0, &d));
            RUN(kiln_nn_cumsum(now.nn, NULL, &y[3]->t, &x->t, 0, 1, &d));
            RUN(kiln_nn_cumsum(now.nn, NULL, &y[4]->t, &x->t, 1, 0, &d));
            for (int64_t r = 0; r < rows; r++) {
                check_scan(y[0], x, r * cols, cols, 1, 64, false, 0);
                check_scan(y[1], x, r * cols, cols, 1, pow2(cols < 2048 ? cols : 2048), true, 0);
                check_scan(y[4], x, r * cols, cols, 1, pow2(cols < 2048 ? cols : 2048), false, 0);
            }
            for (int64_t c = 0; c < cols; c++) {
                check_scan(y[2], x, c, rows, cols, pow2(rows), false, 0);
                check_scan(y[3], x, c, rows, cols, pow2(rows), true, 0);
            }
            /* all elements: blocks of 1024, their totals scanned, one addition more */
            size_t need = kiln_nn_prefix_sum_workspace(now.nn, &x->t);
            x->t.ndim = y[5]->t.ndim = 1;
            x->shape[0] = y[5]->shape[0] = x->n;
            RUN(kiln_nn_prefix_sum(now.nn, NULL, &y[5]->t, &x->t, workspace(need), need, &d));
            part("prefix_sum");
            check_scan(y[5], x, 0, x->n, 1, 1024, false, 1 + 2 * ceil_log2(1 + x->n / 1024));
            part("");
        }
}

/* kernels/running.kiln: the tree in a tile, that of the tiles, what joins both.  A product counts each
 * of its factors instead: it is off by each rounding whatever their order is. */
static real along(int64_t i, int64_t n, int64_t inner)
{
    int64_t most = inner == 1 ? 2048 : 64, tile = pow2(n < most ? n : most);
    int64_t parts = (n + tile - 1) / tile;
    if (parts == 1)
        return ceil_log2(tile);
    return ceil_log2(tile) + 1 + ceil_log2(parts < most ? parts : most) + floorl(i / tile / most);
}

struct fold {
    kiln_nn_reduce_op op;
    const char *name;
};

static real folded(kiln_nn_reduce_op op, real a, real b)
{
    return op == KILN_NN_SUM    ? a + b
           : op == KILN_NN_PROD ? a * b
           : op == KILN_NN_MAX  ? fmaxl(a, b)
                                : fminl(a, b);
}

/* One line: n places from `from`, step apart; head or NULL. */
static void check_fold(struct tens *y, const struct tens *x, const struct tens *head,
                       kiln_nn_reduce_op op, int64_t from, int64_t n, int64_t step, bool reverse)
{
    real t = 0, size = 0, factors = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = from + (reverse ? n - 1 - i : i) * step;
        bool anew = i == 0 || (head && ((const unsigned char *)head->t.data)[at]);
        t = anew ? x->v[at] : folded(op, t, x->v[at]);
        size = anew ? fabsl(x->v[at]) : size + fabsl(x->v[at]);
        factors = anew ? 0 : factors + 1;
        if (op == KILN_NN_SUM)
            item(y, at, t, size, along(i, n, step));
        else if (op == KILN_NN_PROD)
            item(y, at, t, fabsl(t), factors);
        else
            item_exact(y, at, t);
    }
}

/* Rows, and columns from the end. */
static void folds(void)
{
    static const int ext[][2] = {{3, 37}, {150, 3}, {2, 3000}, {700, 20}, {1, 9000}};
    static const struct fold ops[] = {{KILN_NN_SUM, ""},
                                      {KILN_NN_PROD, "products"},
                                      {KILN_NN_MAX, "largest"},
                                      {KILN_NN_MIN, "least"}};
    for (unsigned s = 0; s < (now.full ? 5 : 3); s++)
        EACH_KIND
    for (unsigned o = 0; o < 4; o++)
        for (int flags = 0; flags < 2; flags++, fresh()) {
            int rows = ext[s][0], cols = ext[s][1];
            const kiln_nn_reduce_op op = ops[o].op;
            bool add = op == KILN_NN_SUM || op == KILN_NN_PROD;
            if (!now.full && k > 1 && !add)
                continue;
            struct tens *x = tens(now.t, op == KILN_NN_PROD ? UNIFORM : kinds[k], 2, rows, cols);
            struct tens *y = tens(add ? now.a : now.t, POISON, 2, rows, cols),
                        *z = tens(add ? now.a : now.t, POISON, 2, rows, cols);
            struct tens *head = flags ? tens(KILN_BOOL, ZERO, 2, rows, cols) : NULL;
            for (int64_t i = 0; head && i < head->n; i++)
                ((unsigned char *)head->t.data)[i] = chance() < 0.05;
            for (int64_t i = 0; op == KILN_NN_PROD && i < x->n; i++) /* neither 0 nor inf */
                tens_set(x, i, (i % 3 ? 1 : -1) * (0.9L + 0.2L * x->v[i]));
            size_t need = kiln_nn_running_workspace(now.nn, &x->t, -1),
                   more = kiln_nn_running_workspace(now.nn, &x->t, 0);
            RUN(kiln_nn_running(now.nn, NULL, op, &y->t, &x->t, head ? &head->t : NULL, -1, 0,
                                workspace(need), need, &d));
            RUN(kiln_nn_running(now.nn, NULL, op, &z->t, &x->t, head ? &head->t : NULL, 0, 1,
                                workspace(more), more, &d));
            part(ops[o].name);
            for (int r = 0; r < rows; r++)
                check_fold(y, x, head, op, (int64_t)r * cols, cols, 1, false);
            for (int c = 0; c < cols; c++)
                check_fold(z, x, head, op, c, rows, cols, true);
        }
}

static void segments(void)
{
    static const int ext[][2] = {{3, 37}, {2, 700}, {2, 3000}};
    for (unsigned s = 0; s < (now.full ? 3 : 2); s++)
        EACH_KIND
        {
            int rows = ext[s][0], cols = ext[s][1];
            struct tens *u = tens(now.t, kinds[k], 2, rows, cols),
                        *w = tens(now.a, POISON, 2, rows, cols),
                        *z = tens(now.t, POISON, 2, rows, cols);
            struct tens *head = tens(KILN_BOOL, ZERO, 2, rows, cols);
            for (int64_t i = 0; i < head->n; i++)
                ((unsigned char *)head->t.data)[i] = chance() < 0.05;
            size_t need = kiln_nn_running_workspace(now.nn, &u->t, -1);
            void *work = workspace(need);
            RUN(kiln_nn_segmented_flags(now.nn, NULL, &w->t, &u->t, &head->t, work, need, &d));
            RUN(kiln_nn_cummax(now.nn, NULL, &z->t, &u->t, work, need, &d));
            for (int r = 0; r < rows; r++) {
                part("by flags");
                check_fold(w, u, head, KILN_NN_SUM, (int64_t)r * cols, cols, 1, false);
                part("cummax");
                check_fold(z, u, NULL, KILN_NN_MAX, (int64_t)r * cols, cols, 1, false);
            }
            part("");
            struct tens *x = tens(now.t, kinds[k], 1, rows * cols),
                        *y = tens(now.a, POISON, 1, rows * cols);
            struct tens *first = ints(KILN_I64, 1, 1, 5);
            for (int i = 1; i < 5; i++)
                tens_set(first, i, i == 4 ? (real)x->n : floorl(i * x->n / 4.5L));
            RUN(kiln_nn_segmented_offsets(now.nn, NULL, &y->t, &x->t, &first->t, &d));
            for (int i = 0; i < 4; i++)
                check_scan(y, x, (int64_t)first->v[i], (int64_t)(first->v[i + 1] - first->v[i]), 1,
                           1024, false, 0);
        }
}

/* By index: as many roundings as a row has terms, in any order. */
static void by_index(int which)
{
    EACH_KIND
    {
        int n = now.full ? 500 : 100, rows = 13, cols = 11;
        struct tens *x = tens(now.t, kinds[k], 2, n, cols), *y = tens(now.a, ZERO, 2, rows, cols);
        struct tens *p = ints(KILN_I32, rows, 1, n);
        if (which == 1)
            for (int i = 0; i < n; i++)
                tens_set(p, i, floorl((real)i * rows / n));
        if (which == 0)
            RUN(kiln_nn_scatter_add(now.nn, NULL, &y->t, &p->t, &x->t, &d));
        else if (which == 1)
            RUN(kiln_nn_segment_sum(now.nn, NULL, &y->t, &p->t, &x->t, &d));
        else
            RUN(kiln_nn_embedding_gradient(now.nn, NULL, &y->t, &p->t, &x->t, -1, &d));
        for (int64_t i = 0; i < y->n; i++) {
            real t = 0, size = 0, terms = 0;
            for (int64_t j = 0; j < n; j++)
                if (p->v[j] == i / cols) {
                    t += x->v[j * cols + i % cols];
                    size += fabsl(x->v[j * cols + i % cols]);
                    terms++;
                }
            item(y, i, t, size, terms);
        }
    }
}
static void scatter_add(void)
{
    by_index(0);
}
static void segment_sum(void)
{
    by_index(1);
}
static void embedding_gradient(void)
{
    by_index(2);
}

/* Windows: as many roundings as places, and the quotient. */
static void pool(void)
{
    EACH_KIND
    {
        int N = 2, C = 3, H = 13, W = now.full ? 150 : 17;
        struct tens *x = tens(now.t, kinds[k], 4, N, C, H, W),
                    *y = tens(now.t, POISON, 4, N, C, (H - 1) / 2 + 1, (W - 1) / 2 + 1);
        kiln_nn_pool_params p = {.window = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .mean = 1};
        for (int inside = 0; inside < 2; inside++) {
            p.inside_only = inside;
            RUN(kiln_nn_pool(now.nn, NULL, &y->t, &x->t, &p, &d));
            read_back(y);
            int OH = (int)y->shape[2], OW = (int)y->shape[3];
            for (int64_t i = 0; i < y->n; i++) {
                real t = 0, size = 0, places = 0;
                for (int a = 0; a < 3; a++)
                    for (int b = 0; b < 3; b++) {
                        int64_t r = i / OW % OH * 2 - 1 + a, c = i % OW * 2 - 1 + b;
                        if (r < 0 || r >= H || c < 0 || c >= W)
                            continue;
                        real v = x->v[(i / OW / OH * H + r) * W + c];
                        t += v, size += fabsl(v), places++;
                    }
                real by = inside ? places : 9;
                item(y, i, t / by, size / by, 9);
            }
        }
        struct tens *z = tens(now.t, POISON, 2, N, C), *all = tens(now.t, kinds[k], 3, N, C, H * W);
        launch("pool", "mean_all", "BLOCK%i y x", (int64_t)64, z, all);
        part("mean_all");
        for (int64_t i = 0; i < z->n; i++)
            check_sum(z, i, all, i * H * W, H * W, 1, H * W, roundings(H * W, 64) + 1);
        part("");
    }
}

const struct test sum_tests[] = {
    {"reduce reduce_rows reduce_axis", "kiln_nn_reduce", "u sum", T_ALL, reduce},
    {"rowsum rowsum rowsum_parts rowsum_join rowsum_short", "", "u sum", T_ALL, rowsum},
    {"scan cumsum_rows cumsum_axis prefix_totals prefix_before prefix_sum", "kiln_nn_cumsum",
     "u sum", T_ALL, running},
    {"scan segmented_offsets", "kiln_nn_segmented_offsets", "u sum", T_ALL, segments},
    {"running run_totals run_before run_along", "kiln_nn_running", "u sum", T_ALL, folds},
    {"index scatter_add", "kiln_nn_scatter_add", "u sum", T_ALL, scatter_add},
    {"index segment_sum", "kiln_nn_segment_sum", "u sum", T_ALL, segment_sum},
    {"embedding embedding_gradient", "kiln_nn_embedding_gradient", "u sum", T_ALL,
     embedding_gradient},
    {"pool pool mean_all", "kiln_nn_pool", "u mean", T_ALL, pool},
    {NULL, NULL, NULL, 0, NULL},
};
