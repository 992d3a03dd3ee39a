/* products.c - matrix products, experts, convolutions: one rounding for each term (fma, ascending),
 * times the sum of absolute products. */
#include <math.h>
#include <stddef.h>

#include "errors.h"

static const enum fill kinds[] = {NORMAL, CANCEL, WIDE};
enum { KINDS = sizeof kinds / sizeof *kinds };
#define EACH_KIND for (unsigned k = 0; k < (now.full ? KINDS : 2); k++, fresh())

struct dot {
    real sum, size;
};
static struct dot dot(const struct tens *a, int64_t i, int64_t step, const struct tens *b,
                      int64_t j, int64_t other, int64_t n)
{
    struct dot t = {0, 0};
    for (int64_t k = 0; k < n; k++) {
        real p = a->v[i + k * step] * b->v[j + k * other];
        t.sum += p;
        t.size += fabsl(p);
    }
    return t;
}

static const int shapes[][3] = {{5, 7, 50}, {3, 17, 129}, {40, 33, 300}, {9, 5, 2000}};
#define EACH_CASE                                                                                  \
    for (unsigned s = 0; s < (now.full ? 4 : 2); s++)                                              \
    EACH_KIND

static void matmul(void)
{
    EACH_CASE
    {
        int M = shapes[s][0], N = shapes[s][1], K = shapes[s][2];
        struct tens *a = tens(now.t, kinds[k], 2, M, K), *b = tens(now.t, NORMAL, 2, K, N);
        struct tens *c = tens(now.t, POISON, 2, M, N);
        launch("matmul", "matmul", "BM%i BN%i BK%i c a b", (int64_t)32, (int64_t)32, (int64_t)32, c,
               a, b);
        for (int64_t i = 0; i < c->n; i++) {
            struct dot t = dot(a, i / N * K, 1, b, i % N, N, K);
            item(c, i, t.sum, t.size, K);
        }
    }
}

/* alpha, beta c0, bias, residual: a rounding each, of what is there by then. */
static void gemm(void)
{
    EACH_CASE
    {
        int M = shapes[s][0], N = shapes[s][1], K = shapes[s][2], Z = 2;
        bool turned = k % 2;
        struct tens *a = tens(now.t, kinds[k], 3, Z, M, K), *b = tens(now.t, NORMAL, 3, Z, K, N);
        struct tens *c = tens(now.t, POISON, 3, Z, M, N), *c0 = tens(now.t, NORMAL, 3, Z, M, N);
        struct tens *bias = tens(now.t, NORMAL, 1, N), *res = tens(now.t, NORMAL, 3, Z, M, N);
        int64_t z = (int64_t)K * N, bk = N, bn = 1;
        if (turned) { /* the same memory as [N][K] */
            bk = 1, bn = K;
            b->strides[0] = z, b->strides[1] = bk, b->strides[2] = bn;
            b->t.strides = b->strides;
        }
        kiln_nn_epilogue e = {.bias = &bias->t, .residual = &res->t};
        RUN(kiln_nn_gemm(now.nn, NULL, &c->t, &a->t, &b->t, 0.75, &c0->t, -1.25, &e, &d));
        for (int64_t i = 0; i < c->n; i++) {
            struct dot t = dot(a, i / N * K, 1, b, i / N / M * z + i % N * bn, bk, K);
            real v = 0.75L * t.sum, w = v - 1.25L * c0->v[i], x = w + bias->v[i % N];
            real want = x + res->v[i];
            item(c, i, want, 0.75L * t.size,
                 K + (fabsl(v) + 1.25L * fabsl(c0->v[i]) + fabsl(w) + fabsl(x) + fabsl(want)) /
                         (0.75L * t.size));
        }
    }
}

/* Of tf32: 2^-10 + 2^-22 of the absolute products, of three such products 2^-20, besides the chains of
 * terms that are up to 2^-10 larger. */
static real precise(kiln_nn_precision p, real chain)
{
    real u = ldexpl(1, -24);
    if (p == KILN_NN_TF32)
        return (ldexpl(1, -10) + ldexpl(1, -22)) / u + chain * (1 + ldexpl(1, -10));
    return ldexpl(1, -20) / u + 3 * chain * (1 + ldexpl(1, -10));
}

static void gemm_precise(void)
{
    EACH_CASE
    for (int way = KILN_NN_TF32; way <= KILN_NN_TF32X3; way++) {
        int M = shapes[s][0], N = shapes[s][1], K = shapes[s][2];
        kiln_nn_epilogue e = {.precision = (kiln_nn_precision)way};
        struct tens *a = tens(now.t, kinds[k], 2, M, K), *b = tens(now.t, NORMAL, 2, K, N);
        struct tens *c = tens(now.t, POISON, 2, M, N), *f = tens(now.t, POISON, 2, M, N);
        size_t need = kiln_nn_gemm_split_workspace(now.nn, &a->t, &b->t);
        RUN(kiln_nn_gemm(now.nn, NULL, &c->t, &a->t, &b->t, 1, NULL, 0, &e, &d));
        RUN(kiln_nn_gemm_split(now.nn, NULL, &f->t, &a->t, &b->t, &e, workspace(need), need, &d));
        part(way == KILN_NN_TF32 ? "tf32" : "tf32x3");
        for (int64_t i = 0; i < c->n; i++) {
            struct dot t = dot(a, i / N * K, 1, b, i % N, N, K);
            item(c, i, t.sum, t.size, precise(e.precision, K));
            item(f, i, t.sum, t.size, precise(e.precision, K));
        }
    }
}

/* Behind a product: relu is exact and spreads nothing; silu is off by 10 u and no steeper than 1.1. */
static void activate(struct tens *y, int64_t i, real v, kiln_nn_activation act, real scale,
                     real total)
{
    if (act == KILN_NN_RELU) {
        item_of(y, i, fmaxl(v, 0), scale, total);
        return;
    }
    real want = v / (1 + expl(-v));
    item_of(y, i, want, scale, 1.1L * total + (now.exact_math ? 10 : 16) * fabsl(want));
}

static const kiln_nn_activation acts[] = {KILN_NN_RELU, KILN_NN_SILU};

static void gemm_act(void)
{
    EACH_CASE
    for (int q = 0; q < 2; q++) {
        int M = shapes[s][0], N = shapes[s][1], K = shapes[s][2];
        struct tens *a = tens(now.t, kinds[k], 2, M, K), *b = tens(now.t, NORMAL, 2, K, N);
        struct tens *c = tens(now.t, POISON, 2, M, N), *bias = tens(now.t, NORMAL, 1, N);
        kiln_nn_epilogue e = {.bias = &bias->t, .act = acts[q]};
        RUN(kiln_nn_gemm(now.nn, NULL, &c->t, &a->t, &b->t, 1, NULL, 0, &e, &d));
        part(q ? "silu" : "relu");
        for (int64_t i = 0; i < c->n; i++) {
            struct dot t = dot(a, i / N * K, 1, b, i % N, N, K);
            real v = t.sum + bias->v[i % N];
            activate(c, i, v, acts[q], t.size, K * t.size + fabsl(v));
        }
    }
}

static void gemm_split(void)
{
    EACH_CASE
    {
        int M = shapes[s][0], N = shapes[s][1], K = shapes[s][2] * (now.full ? 4 : 1);
        struct tens *a = tens(now.t, kinds[k], 2, M, K), *b = tens(now.t, NORMAL, 2, K, N);
        struct tens *c = tens(now.t, POISON, 2, M, N), *p = tens(now.a, POISON, 3, 4, M, N);
        size_t need = kiln_nn_gemm_split_workspace(now.nn, &a->t, &b->t);
        RUN(kiln_nn_gemm_split(now.nn, NULL, &c->t, &a->t, &b->t, NULL, workspace(need), need, &d));
        struct tens *e = tens(now.t, POISON, 2, M, N);
        launch("gemm", "gemm_split", "parts%i partial a b", (int64_t)4, p, a, b);
        launch("gemm", "gemm_join", "c partial", e, p);
        for (int64_t i = 0; i < c->n; i++) {
            struct dot t = dot(a, i / N * K, 1, b, i % N, N, K);
            item(c, i, t.sum, t.size, K); /* however many parts: more would only be better */
            item(e, i, t.sum, t.size, ceill(ceill(K / 4.0L) / 32) * 32 + 2);
        }
    }
}

static void gemm_grouped(void)
{
    EACH_CASE
    {
        int M = shapes[s][0], N = shapes[s][1], K = shapes[s][2], E = 3;
        struct tens *a = tens(now.t, kinds[k], 2, M, K), *b = tens(now.t, NORMAL, 3, E, K, N);
        struct tens *c = tens(now.t, POISON, 2, M, N), *first = ints(KILN_I64, 1, 1, E + 1);
        tens_set(first, 2, M / 2), tens_set(first, 1, M / 3), tens_set(first, 3, M);
        RUN(kiln_nn_gemm_grouped(now.nn, NULL, &c->t, &a->t, &b->t, &first->t, KILN_NN_NONE, &d));
        for (int64_t i = 0; i < c->n; i++) {
            int64_t e = i / N < M / 3 ? 0 : i / N < M / 2 ? 1 : 2;
            struct dot t = dot(a, i / N * K, 1, b, e * K * N + i % N, N, K);
            item(c, i, t.sum, t.size, K);
        }
    }
}

/* A weight of 4 bits times its scale is rounded once in f32; scales of 16 bits: not at all. */
static void gemm_w4(void)
{
    EACH_CASE
    {
        int M = shapes[s][0], N = shapes[s][1], group = 32, K = (shapes[s][2] + 31) / 32 * 32;
        struct tens *a = tens(now.t, kinds[k], 2, M, K), *w = ints(KILN_U8, 256, 2, N, K / 2);
        struct tens *scale = tens(now.t, NORMAL, 2, N, K / group),
                    *c = tens(now.t, POISON, 2, M, N);
        RUN(kiln_nn_gemm_w4(now.nn, NULL, &c->t, &a->t, &w->t, &scale->t, NULL, &d));
        for (int64_t i = 0; i < c->n; i++) {
            real sum = 0, size = 0;
            for (int64_t j = 0; j < K; j++) {
                int byte = (int)w->v[(i % N * K + j) / 2], q = j % 2 ? byte >> 4 : byte & 15;
                real p = a->v[i / N * K + j] * scale->v[i % N * (K / group) + j / group] * (q - 8);
                sum += p, size += fabsl(p);
            }
            item(c, i, sum, size, K + 1);
        }
    }
}

/* The integer sum is exact.  With scales: it is rounded to f32, times row, times col; bias. */
static void gemm_i8(void)
{
    EACH_CASE
    {
        int M = shapes[s][0], N = shapes[s][1], K = shapes[s][2];
        kiln_dtype t = k % 2 ? KILN_U8 : KILN_I8;
        struct tens *a = ints(t, 120, 2, M, K), *b = ints(t, 120, 2, K, N);
        for (int64_t i = 0; i < a->n && t == KILN_I8; i++)
            tens_set(a, i, a->v[i] - 60);
        struct tens *row = tens(KILN_F32, NORMAL, 1, M), *col = tens(KILN_F32, NORMAL, 1, N);
        struct tens *bias = tens(now.t, NORMAL, 1, N), *c = tens(now.t, POISON, 2, M, N);
        struct tens *raw = ints(KILN_I32, 2, 2, M, N);
        RUN(kiln_nn_gemm_i8(now.nn, NULL, &c->t, &a->t, &b->t, &row->t, &col->t, &bias->t,
                            KILN_NN_NONE, &d));
        RUN(kiln_nn_gemm_i8(now.nn, NULL, &raw->t, &a->t, &b->t, NULL, NULL, NULL, KILN_NN_NONE,
                            &d));
        for (int64_t i = 0; i < c->n; i++) {
            struct dot q = dot(a, i / N * K, 1, b, i % N, N, K);
            real v = q.sum * row->v[i / N] * col->v[i % N], want = v + bias->v[i % N];
            part("");
            item_of(c, i, want, fabsl(v) + fabsl(bias->v[i % N]), 3 * fabsl(v) + fabsl(want));
            part("integers");
            item_exact(raw, i, q.sum);
        }
    }
}

/* ---- experts ---- */

static void moe_route(void)
{
    EACH_KIND
    for (int norm = 0; norm < 2; norm++) {
        int T = now.full ? 40 : 5, E = now.full ? 64 : 16, K = 3;
        struct tens *x = tens(now.t, k == 1 ? SPREAD : NORMAL, 2, T, E);
        struct tens *w = tens(now.a, POISON, 2, T, K), *e = ints(KILN_I32, 1, 2, T, K);
        RUN(kiln_nn_moe_route(now.nn, NULL, &w->t, &e->t, &x->t, norm, &d));
        read_back(e);
        for (int64_t t = 0; t < T; t++) {
            const real *v = x->v + t * E;
            real top = -INFINITY, sum = 0, far = 0, chosen = 0, near = 0;
            for (int i = 0; i < E; i++)
                top = fmaxl(top, v[i]);
            for (int i = 0; i < E; i++)
                sum += expl(v[i] - top), far += expl(v[i] - top) * (top - v[i]);
            for (int j = 0; j < K; j++) {
                real z = v[(int)e->v[t * K + j]];
                chosen += expl(z - top), near += expl(z - top) * (top - z);
            }
            far = norm ? near / chosen : far / sum;
            for (int j = 0; j < K; j++) {
                real z = v[(int)e->v[t * K + j]] - top, want = expl(z) / (norm ? chosen : sum);
                part("");
                item(w, t * K + j, want, want,
                     far - z + ceil_log2(norm ? K : E) + 2 * now.fast_exp + now.fast_div);
            }
            part("choice");
            for (int j = 0; j < K; j++) { /* the j-th largest, the lower number first */
                int at = (int)e->v[t * K + j], before = 0;
                for (int i = 0; i < E; i++)
                    before += v[i] > v[at] || (v[i] == v[at] && i < at);
                item_exact(e, t * K + j, before == j ? at : -1);
            }
        }
    }
}

static void moe_block(void)
{
    EACH_KIND
    {
        int T = now.full ? 50 : 9, E = 4, K = 2, C = now.full ? 130 : 20, N = 11, P = T * K;
        struct tens *x = tens(now.t, kinds[k], 2, T, C), *b = tens(now.t, NORMAL, 3, E, C, N);
        struct tens *e = ints(KILN_I32, E, 2, T, K), *w = tens(now.a, UNIFORM, 2, T, K);
        struct tens *first = ints(KILN_I64, 1, 1, E + 1), *order = ints(KILN_I32, 1, 1, P);
        struct tens *place = ints(KILN_I32, 1, 2, T, K), *h = tens(now.t, POISON, 2, P, N);
        size_t need = kiln_nn_moe_group_workspace(now.nn, &e->t, E);
        RUN(kiln_nn_moe_group(now.nn, NULL, &first->t, &order->t, &place->t, &e->t, workspace(need),
                              need, &d));
        need = kiln_nn_moe_gemm_workspace(now.nn, &x->t, &b->t, &order->t, NULL);
        RUN(kiln_nn_moe_gemm(now.nn, NULL, &h->t, &x->t, &b->t, &first->t, &order->t, NULL, NULL,
                             KILN_NN_NONE, workspace(need), need, &d));
        read_back(first), read_back(order), read_back(place);
        int at = 0;
        part("groups");
        for (int i = 0; i < E; i++) {
            item_exact(first, i, at);
            for (int p = 0; p < P; p++)
                if (e->v[p] == i) {
                    item_exact(order, at, p);
                    item_exact(place, p, at);
                    at++;
                }
        }
        part("");
        for (int64_t i = 0; i < h->n; i++) {
            int p = (int)order->v[i / N];
            struct dot t = dot(x, p / K * C, 1, b, (int64_t)e->v[p] * C * N + i % N, N, C);
            item(h, i, t.sum, t.size, C);
        }
        struct tens *copy = tens(now.t, POISON, 2, P, C), *g = tens(now.t, POISON, 2, P, N);
        launch("moe", "moe_gather", "K%i y order x", (int64_t)K, copy, order, x);
        RUN(kiln_nn_moe_gemm(now.nn, NULL, &g->t, &copy->t, &b->t, &first->t, NULL, NULL, NULL,
                             KILN_NN_SILU, NULL, 0, &d));
        part("moe_gather");
        for (int64_t i = 0; i < copy->n; i++)
            item_exact(copy, i, x->v[(int64_t)order->v[i / C] / K * C + i % C]);
        part("silu");
        for (int64_t i = 0; i < g->n; i++) {
            int p = (int)order->v[i / N];
            struct dot t = dot(x, p / K * C, 1, b, (int64_t)e->v[p] * C * N + i % N, N, C);
            activate(g, i, t.sum, KILN_NN_SILU, t.size, C * t.size);
        }
        /* rows that are there already, rounded to T as they are: what merges them */
        struct tens *y = tens(now.t, POISON, 2, T, N), *z = tens(now.t, POISON, 2, T, N);
        need = kiln_nn_moe_gemm_workspace(now.nn, &copy->t, &b->t, NULL, &place->t);
        RUN(kiln_nn_moe_gemm(now.nn, NULL, &z->t, &copy->t, &b->t, &first->t, NULL, &w->t,
                             &place->t, KILN_NN_NONE, workspace(need), need, &d));
        launch("moe", "moe_merge", "y weight place x", y, w, place, h);
        part("moe_merge");
        for (int64_t i = 0; i < y->n; i++) {
            real sum = 0, size = 0;
            for (int j = 0; j < K; j++) {
                int64_t from = (int64_t)place->v[i / N * K + j] * N + i % N;
                sum += w->v[i / N * K + j] * h->v[from];
                size += fabsl(w->v[i / N * K + j] * h->v[from]);
            }
            item(y, i, sum, size, K);
            item(z, i, sum, size, K);
        }
        part("");
    }
}

/* Added by atomics: the product with the weight, and an addition for each expert in any order. */
static void moe_add(void)
{
    EACH_KIND
    for (int q = 0; q < 2; q++) {
        int T = now.full ? 50 : 9, E = 4, K = 2, C = now.full ? 130 : 20, N = 11, P = T * K;
        struct tens *x = tens(now.t, kinds[k], 2, T, C), *b = tens(now.t, NORMAL, 3, E, C, N);
        struct tens *e = ints(KILN_I32, E, 2, T, K), *w = tens(now.a, UNIFORM, 2, T, K);
        struct tens *first = ints(KILN_I64, 1, 1, E + 1), *order = ints(KILN_I32, 1, 1, P);
        struct tens *place = ints(KILN_I32, 1, 2, T, K), *copy = tens(now.t, POISON, 2, P, C);
        struct tens *y = tens(now.a, POISON, 2, T, N), *z = tens(now.a, POISON, 2, T, N);
        size_t need = kiln_nn_moe_group_workspace(now.nn, &e->t, E);
        RUN(kiln_nn_moe_group(now.nn, NULL, &first->t, &order->t, &place->t, &e->t, workspace(need),
                              need, &d));
        launch("moe", "moe_gather", "K%i y order x", (int64_t)K, copy, order, x);
        RUN(kiln_nn_moe_gemm_add(now.nn, NULL, &y->t, &x->t, &b->t, &first->t, &order->t, &w->t, 0,
                                 q ? KILN_NN_RELU : KILN_NN_NONE, &d));
        RUN(kiln_nn_moe_gemm_add(now.nn, NULL, &z->t, &copy->t, &b->t, &first->t, &order->t, &w->t,
                                 1, q ? KILN_NN_RELU : KILN_NN_NONE, &d));
        for (int64_t i = 0; i < y->n; i++) {
            real sum = 0, size = 0;
            for (int j = 0; j < K; j++) {
                int64_t p = i / N * K + j;
                struct dot t = dot(x, i / N * C, 1, b, (int64_t)e->v[p] * C * N + i % N, N, C);
                sum += w->v[p] * (q ? fmaxl(t.sum, 0) : t.sum);
                size += w->v[p] * t.size;
            }
            item(y, i, sum, size, C + 1 + K);
            item(z, i, sum, size, C + 1 + K);
        }
    }
}

/* ---- convolution ---- */

static void conv(void)
{
    EACH_KIND
    for (int depthwise = 0; depthwise < 2; depthwise++) {
        int N = 2, C = now.full ? 24 : 6, O = depthwise ? C : 5, H = 9, W = now.full ? 40 : 11;
        int groups = depthwise ? C : 1, each = C / groups, KH = 3, KW = 2;
        int OH = (H + 2 - KH) / 2 + 1, OW = W + 2 - 2 * (KW - 1);
        struct tens *x = tens(now.t, kinds[k], 4, N, C, H, W),
                    *w = tens(now.t, NORMAL, 4, O, each, KH, KW);
        struct tens *bias = tens(now.t, NORMAL, 1, O), *y = tens(now.t, POISON, 4, N, O, OH, OW);
        kiln_nn_conv p = {.stride = {2, 1},
                          .pad = {1, 1},
                          .dilation = {1, 2},
                          .groups = groups,
                          .bias = &bias->t};
        RUN(kiln_nn_conv2d(now.nn, NULL, &y->t, &x->t, &w->t, &p, &d));
        for (int64_t i = 0; i < y->n; i++) {
            int64_t col = i % OW, r = i / OW % OH, o = i / OW / OH % O, n = i / OW / OH / O;
            real sum = 0, size = 0;
            for (int c = 0; c < each; c++)
                for (int a = 0; a < KH; a++)
                    for (int b = 0; b < KW; b++) {
                        int64_t u = r * 2 - 1 + a, v = col - 1 + b * 2;
                        if (u < 0 || u >= H || v < 0 || v >= W)
                            continue;
                        int64_t from = o / (O / groups) * each + c;
                        real q = x->v[((n * C + from) * H + u) * W + v] *
                                 w->v[((o * each + c) * KH + a) * KW + b];
                        sum += q, size += fabsl(q);
                    }
            real want = sum + bias->v[o];
            item_of(y, i, want, size + fabsl(bias->v[o]), each * KH * KW * size + fabsl(want));
        }
        int L = H * W, OL = L - 2;
        x->t.ndim = 3, x->shape[2] = L;
        struct tens *f = tens(now.t, NORMAL, 3, O, each, 3), *z = tens(now.t, POISON, 3, N, O, OL);
        kiln_nn_conv q = {.groups = groups, .bias = &bias->t};
        RUN(kiln_nn_conv1d(now.nn, NULL, &z->t, &x->t, &f->t, &q, &d));
        struct tens *act = tens(now.t, POISON, 3, N, O, OL);
        q.act = acts[depthwise];
        RUN(kiln_nn_conv1d(now.nn, NULL, &act->t, &x->t, &f->t, &q, &d));
        for (int64_t i = 0; i < z->n; i++) {
            int64_t at = i % OL, o = i / OL % O, n = i / OL / O;
            real sum = 0, size = 0;
            for (int c = 0; c < each; c++)
                for (int b = 0; b < 3; b++) {
                    real g = x->v[(n * C + o / (O / groups) * each + c) * L + at + b] *
                             f->v[(o * each + c) * 3 + b];
                    sum += g, size += fabsl(g);
                }
            real want = sum + bias->v[o];
            item_of(z, i, want, size + fabsl(bias->v[o]), each * 3 * size + fabsl(want));
            part(depthwise ? "silu" : "relu");
            activate(act, i, want, acts[depthwise], size + fabsl(bias->v[o]),
                     each * 3 * size + fabsl(want));
            part("");
        }
    }
}

const struct test product_tests[] = {
    {"matmul matmul", "", "u sum", T_ALL, matmul},
    {"gemm gemm", "kiln_nn_gemm", "u sum", T_ALL, gemm},
    {"gemm gemm", "kiln_nn_gemm", "u sum", T_ALL, gemm_act},
    {"gemm gemm gemm_split gemm_join", "kiln_nn_gemm", "u sum", T_F32, gemm_precise},
    {"gemm gemm_split gemm_join", "kiln_nn_gemm_split", "u sum", T_ALL, gemm_split},
    {"gemm gemm_grouped", "kiln_nn_gemm_grouped", "u sum", T_ALL, gemm_grouped},
    {"gemm gemm_w4", "kiln_nn_gemm_w4", "u sum", T_ALL, gemm_w4},
    {"gemm_i8 gemm_i8 gemm_i8_scaled", "kiln_nn_gemm_i8", "u terms", T_F32 | T_F16 | T_BF16,
     gemm_i8},
    {"moe moe_route", "kiln_nn_moe_route", "u w", T_ALL, moe_route},
    {"moe moe_count moe_offsets moe_place moe_gemm moe_gather moe_merge", "kiln_nn_moe_gemm",
     "u sum", T_ALL, moe_block},
    {"moe moe_gemm", "kiln_nn_moe_gemm_add", "u sum", T_ALL, moe_add},
    {"conv conv2d conv1d", "kiln_nn_conv2d", "u sum", T_ALL, conv},
    {NULL, NULL, NULL, 0, NULL},
};
