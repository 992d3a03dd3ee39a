/* moves.c - results that are exact: orders, places, counts, copies. */
#include <math.h>
#include <stddef.h>

#include "errors.h"

#define EACH_KIND for (unsigned k = 0; k < (now.full ? 3 : 2); k++, fresh())
static const enum fill kinds[] = {NORMAL, WIDE, CANCEL};

static int before(const real *v, int n, int at, bool largest)
{
    int c = 0;
    for (int i = 0; i < n; i++)
        c += largest ? v[i] > v[at] || (v[i] == v[at] && i < at)
                     : v[i] < v[at] || (v[i] == v[at] && i < at);
    return c;
}

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
        RUN(kiln_nn_topk(now.nn, NULL, &v->t, &p->t, &x->t, &d));
        RUN(kiln_nn_sort(now.nn, NULL, &y->t, &q->t, &x->t, &d));
        launch("topk", "argsort_rows", "place x", z, x);
        if (now.t != KILN_F64)
            launch("topk", "argmax_rows", "v place x", top, at, x);
        for (int r = 0; r < R; r++)
            for (int i = 0; i < C; i++) {
                const real *row = x->v + r * C;
                int up = before(row, C, i, false), down = before(row, C, i, true);
                item_exact(y, r * C + up, row[i]);
                item_exact(q, r * C + up, i);
                item_exact(z, r * C + up, i);
                if (down < K) {
                    item_exact(v, r * K + down, row[i]);
                    item_exact(p, r * K + down, i);
                }
                if (down == 0 && now.t != KILN_F64) {
                    item_exact(top, r, row[i]);
                    item_exact(at, r, i);
                }
            }
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
    {"topk topk_rows argsort_rows sort_rows argmax_rows", "kiln_nn_topk", "", T_ALL, order},
    {"argreduce argreduce", "kiln_nn_argmax", "", T_ALL, argreduce},
    {"histogram histogram histogram_floats", "kiln_nn_histogram", "", T_ALL, histogram},
    {"permute permute permute_swap", "kiln_nn_permute", "", T_ALL, moved},
    {"transpose transpose", "kiln_nn_transpose", "", T_ALL, transposed},
    {"index take put scatter_max pick", "kiln_nn_take", "", T_ALL, indexed},
    {"embedding embedding", "kiln_nn_embedding", "", T_ALL, embedding},
    {"add places", "", "", T_F32, places},
    {NULL, NULL, NULL, 0, NULL},
};
