/* moves.c - results that are exact: orders, places, counts, copies. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "errors.h"

#define EACH_KIND for (unsigned k = 0; k < (now.full ? 3 : 2); k++, fresh())
static const enum fill kinds[] = {NORMAL, WIDE, CANCEL};

/* The places of a row in order, equal ones by place. */
static const real *sorted_row;
static bool sorted_down;
static int compare(const void *a, const void *b)
{
    int i = *(const int *)a, j = *(const int *)b;
    real v = sorted_row[i], w = sorted_row[j];
    if (v != w)
        return (v < w) != sorted_down ? -1 : 1;
    return i < j ? -1 : i > j;
}

static void check_order(struct tens *v, struct tens *p, const struct tens *x, int r, int n,
                        bool down)
{
    int cols = (int)x->shape[1], *at = malloc((size_t)cols * sizeof *at);
    if (!at)
        exit(4);
    for (int i = 0; i < cols; i++)
        at[i] = i;
    sorted_row = x->v + (int64_t)r * cols;
    sorted_down = down;
    qsort(at, (size_t)cols, sizeof *at, compare);
    for (int i = 0; i < n; i++) {
        if (v)
            item_exact(v, (int64_t)r * n + i, sorted_row[at[i]]);
        if (p)
            item_exact(p, (int64_t)r * n + i, at[i]);
    }
    free(at);
}

/* Rows in one tile. */
static void order(void)
{
    EACH_KIND
    {
        int R = 3, C = now.full ? 200 : 23, K = 4;
        struct tens *x = tens(now.t, kinds[k], 2, R, C), *v = tens(now.t, POISON, 2, R, K),
                    *y = tens(now.t, POISON, 2, R, C);
        struct tens *p = ints(KILN_I32, 1, 2, R, K), *q = ints(KILN_I32, 1, 2, R, C),
                    *z = ints(KILN_I32, 1, 2, R, C);
        struct tens *top = tens(KILN_F32, POISON, 1, R), *at = ints(KILN_I32, 1, 1, R);
        launch("topk", "topk_rows", "K%i v place x", (int64_t)K, v, p, x);
        launch("topk", "sort_rows", "y place x", y, q, x);
        launch("topk", "argsort_rows", "place x", z, x);
        if (now.t != KILN_F64)
            launch("topk", "argmax_rows", "v place x", top, at, x);
        for (int r = 0; r < R; r++) {
            check_order(y, q, x, r, C, false);
            check_order(NULL, z, x, r, C, false);
            check_order(v, p, x, r, K, true);
            if (now.t != KILN_F64)
                check_order(top, at, x, r, 1, true);
        }
    }
}

/* Rows of any length: the library's own plan, and the kernels with small tiles. */
static void sorted(void)
{
    EACH_KIND
    for (int big = 0; big < (now.full ? 2 : 1); big++) {
        int R = 2, C = big ? 9000 : now.full ? 200 : 23, K = 4, many = big ? 1500 : 9;
        int64_t tile = now.full ? 64 : 8;
        struct tens *x = tens(now.t, kinds[k], 2, R, C), *y = tens(now.t, POISON, 2, R, C),
                    *q = ints(KILN_I32, 1, 2, R, C);
        if (k == 1) /* many that are equal */
            for (int64_t i = 0; i < x->n; i++)
                tens_set(x, i, floorl(chance() * 9) - 4);
        struct tens *v = tens(now.t, POISON, 2, R, K), *p = ints(KILN_I32, 1, 2, R, K);
        struct tens *w = tens(now.t, POISON, 2, R, many), *o = ints(KILN_I32, 1, 2, R, many);
        size_t need = kiln_nn_sort_workspace(now.nn, &x->t);
        RUN(kiln_nn_sort(now.nn, NULL, &y->t, &q->t, &x->t, workspace(need), need, &d));
        need = kiln_nn_topk_workspace(now.nn, &x->t, K);
        RUN(kiln_nn_topk(now.nn, NULL, &v->t, &p->t, &x->t, workspace(need), need, &d));
        need = kiln_nn_topk_workspace(now.nn, &x->t, many);
        RUN(kiln_nn_topk(now.nn, NULL, &w->t, &o->t, &x->t, workspace(need), need, &d));
        part("");
        for (int r = 0; r < R; r++) {
            check_order(y, q, x, r, C, false);
            check_order(v, p, x, r, K, true);
            check_order(w, o, x, r, many, true);
        }
        if (big)
            continue;
        part("small tiles");
        for (int64_t down = 0; down < 2; down++) {
            struct tens *a = tens(now.t, POISON, 2, R, C), *i = ints(KILN_I32, 1, 2, R, C);
            launch("sort", "sort_tiles", "TILE%i DOWN%i y place x", tile, down, a, i, x);
            for (int64_t run = tile; run < C; run *= 2) {
                struct tens *b = tens(now.t, POISON, 2, R, C), *j = ints(KILN_I32, 1, 2, R, C);
                launch("sort", "sort_merge", "TILE%i DOWN%i run%i y place x from", tile, down, run,
                       b, j, a, i);
                a = b, i = j;
            }
            for (int r = 0; r < R; r++)
                check_order(a, i, x, r, C, down);
        }
        int parts = (C + (int)tile - 1) / (int)tile, left = parts * K;
        struct tens *a = tens(now.t, POISON, 2, R, left), *i = ints(KILN_I32, 1, 2, R, left);
        struct tens *b = tens(now.t, POISON, 2, R, K), *j = ints(KILN_I32, 1, 2, R, K);
        launch("sort", "topk_tiles", "TILE%i K%i v place x", tile, (int64_t)K, a, i, x);
        launch("sort", "topk_tiles", "K%i v place x from", (int64_t)K, b, j, a, i);
        for (int r = 0; r < R; r++)
            check_order(b, j, x, r, K, true);
    }
}

static void argreduce(void)
{
    EACH_KIND
    for (int least = 0; least < 2; least++) {
        int A = 2, N = now.full ? 300 : 19, C = 5;
        struct tens *x = tens(now.t, kinds[k], 3, A, N, C), *v = tens(now.t, POISON, 2, A, C),
                    *p = ints(KILN_I32, 1, 2, A, C);
        RUN(kiln_nn_argmax(now.nn, NULL, &p->t, &v->t, &x->t, 1, least, &d));
        for (int i = 0; i < A * C; i++) {
            const real *w = x->v + i / C * N * C + i % C;
            int best = 0;
            for (int j = 1; j < N; j++)
                if (least ? w[j * C] < w[best * C] : w[j * C] > w[best * C])
                    best = j;
            item_exact(p, i, best);
            item_exact(v, i, w[best * C]);
        }
    }
}

static void histogram(void)
{
    EACH_KIND
    {
        int n = now.full ? 3000 : 300, bins = 16;
        struct tens *x = tens(now.t, UNIFORM, 1, n), *h = ints(KILN_I32, 1, 1, bins),
                    *y = ints(KILN_I32, 1, 1, bins);
        struct tens *w = ints(KILN_I32, bins + 2, 1, n);
        RUN(kiln_nn_histogram(now.nn, NULL, &h->t, &w->t, &d));
        RUN(kiln_nn_histogram_floats(now.nn, NULL, &y->t, &x->t, 0, 1, &d));
        for (int b = 0; b < bins;
             b++) { /* borders are numbers of the type: none is near one by rounding */
            int c = 0, f = 0;
            for (int i = 0; i < n; i++) {
                c += w->v[i] == b;
                f += floorl(x->v[i] * bins) == b || (b == bins - 1 && x->v[i] == 1);
            }
            item_exact(h, b, c);
            item_exact(y, b, f);
        }
    }
}

static void moved(void)
{
    EACH_KIND
    {
        int A = 3, B = now.full ? 70 : 7, C = 11;
        struct tens *x = tens(now.t, kinds[k], 3, A, B, C), *y = tens(now.t, POISON, 3, C, A, B),
                    *z = tens(now.t, POISON, 3, B, A, C);
        static const int to_y[] = {2, 0, 1}, to_z[] = {1, 0, 2};
        RUN(kiln_nn_permute(now.nn, NULL, &y->t, &x->t, to_y, &d));
        RUN(kiln_nn_permute(now.nn, NULL, &z->t, &x->t, to_z, &d));
        for (int i = 0; i < (int)x->n; i++) {
            int c = i % C, b = i / C % B, a = i / C / B;
            item_exact(y, (c * A + a) * B + b, x->v[i]);
            item_exact(z, (b * A + a) * C + c, x->v[i]);
        }
    }
}

static void transposed(void)
{
    EACH_KIND
    {
        int M = now.full ? 150 : 9, N = 70;
        struct tens *x = tens(now.t, kinds[k], 2, M, N), *y = tens(now.t, POISON, 2, N, M);
        RUN(kiln_nn_transpose(now.nn, NULL, &y->t, &x->t, &d));
        for (int i = 0; i < M * N; i++)
            item_exact(y, i % N * M + i / N, x->v[i]);
    }
}

static void indexed(void)
{
    EACH_KIND
    {
        int n = 12, R = 15, C = 7;
        struct tens *x = tens(now.t, kinds[k], 2, R, C), *y = tens(now.t, POISON, 2, n, C),
                    *z = tens(now.t, ZERO, 2, R, C);
        struct tens *p = ints(KILN_I32, R, 1, n), *w = tens(now.t, POISON, 1, n),
                    *c = ints(KILN_I32, C, 1, n);
        struct tens *top = ints(KILN_I32, 1, 1, R), *m = ints(KILN_I32, 99, 1, n),
                    *own = ints(KILN_I32, 1, 1, n);
        RUN(kiln_nn_take(now.nn, NULL, &y->t, &p->t, &x->t, &d));
        for (int i = 0; i < n; i++) /* each row once */
            tens_set(own, i, (i * 4 + 2) % R);
        RUN(kiln_nn_put(now.nn, NULL, &z->t, &own->t, &y->t, &d));
        struct tens *rows_ = tens(now.t, kinds[k], 2, n, C);
        RUN(kiln_nn_pick(now.nn, NULL, &w->t, &c->t, &rows_->t, &d));
        RUN(kiln_nn_scatter_max(now.nn, NULL, &top->t, &p->t, &m->t, &d));
        for (int i = 0; i < n * C; i++) {
            real v = x->v[(int)p->v[i / C] * C + i % C];
            item_exact(y, i, v);
            item_exact(z, (int)own->v[i / C] * C + i % C, v);
        }
        for (int i = 0; i < n; i++)
            item_exact(w, i, rows_->v[i * C + (int)c->v[i]]);
        for (int r = 0; r < R; r++) {
            real best = 0;
            for (int i = 0; i < n; i++)
                best = p->v[i] == r ? fmaxl(best, m->v[i]) : best;
            item_exact(top, r, best);
        }
        if (now.t != KILN_F32 && now.t != KILN_F64)
            continue;
        struct tens *most = tens(now.t, NORMAL, 1, R), *was = tens(now.t, ZERO, 1, R);
        for (int r = 0; r < R; r++)
            tens_set(was, r, most->v[r]);
        RUN(kiln_nn_scatter_max(now.nn, NULL, &most->t, &p->t, &w->t, &d));
        for (int r = 0; r < R; r++) {
            real best = was->v[r];
            for (int i = 0; i < n; i++)
                best = p->v[i] == r ? fmaxl(best, w->v[i]) : best;
            item_exact(most, r, best);
        }
    }
}

static void embedding(void)
{
    EACH_KIND
    {
        int n = 20, R = 9, C = now.full ? 300 : 13;
        struct tens *w = tens(now.t, kinds[k], 2, R, C), *y = tens(now.t, POISON, 2, n, C),
                    *i_ = ints(KILN_I64, R, 1, n);
        RUN(kiln_nn_embedding(now.nn, NULL, &y->t, &i_->t, &w->t, 3, &d));
        for (int i = 0; i < n * C; i++)
            item_exact(y, i, i_->v[i / C] == 3 ? 0 : w->v[(int)i_->v[i / C] * C + i % C]);
    }
}

static void places(void)
{
    int n = 10;
    struct tens *x = tens(KILN_F32, NORMAL, 1, n), *p = ints(KILN_I64, 1, 2, 3, 4);
    launch("add", "places", "x place", x, p);
    for (int i = 0; i < 12; i++)
        item_exact(p, i, i < n ? i : -1);
}

const struct test move_tests[] = {
    {"topk topk_rows argsort_rows sort_rows argmax_rows", "", "", T_ALL, order},
    {"sort sort_tiles sort_merge topk_tiles", "kiln_nn_sort", "", T_ALL, sorted},
    {"argreduce argreduce", "kiln_nn_argmax", "", T_ALL, argreduce},
    {"histogram histogram histogram_floats", "kiln_nn_histogram", "", T_ALL, histogram},
    {"permute permute permute_swap", "kiln_nn_permute", "", T_ALL, moved},
    {"transpose transpose", "kiln_nn_transpose", "", T_ALL, transposed},
    {"index take put scatter_max scatter_max_floats settle pick", "kiln_nn_take", "", T_ALL,
     indexed},
    {"embedding embedding", "kiln_nn_embedding", "", T_ALL, embedding},
    {"add places", "", "", T_F32, places},
    {NULL, NULL, NULL, 0, NULL},
};
