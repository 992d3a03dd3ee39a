/* test_nn.c - kiln_nn.h and kiln_dlpack.h: each function on odd shapes against plain C in double
 * precision, on the interpreter, the CPU and the executor; what it refuses; its workspace. */
#include "nn.h"

#include "kiln_dlpack.h"

/* ---- rows ---- */

static void rows(void **state)
{
    (void)state;
    EACH_DEVICE
    {
        struct arr *x = IN(3, 2, 3, 37), *y = OUT(3, 2, 3, 37), *z = OUT(3, 2, 3, 37);
        GOOD(kiln_nn_softmax(NN, NULL, &y->t, &x->t, &d));
        GOOD(kiln_nn_log_softmax(NN, NULL, &z->t, &x->t, &d));
        for (int r = 0; r < 6; r++) {
            double s = 0;
            for (int c = 0; c < 37; c++)
                s += exp((double)x->v[r * 37 + c]);
            for (int c = 0; c < 37; c++) {
                NEAR(y->v[r * 37 + c], exp((double)x->v[r * 37 + c]) / s, r * 37 + c);
                NEAR(z->v[r * 37 + c], (double)x->v[r * 37 + c] - log(s), r * 37 + c);
            }
        }
        guarded(y);
        /* a transposed view: columns of x as rows */
        struct arr *u = OUT(2, 37, 6);
        x->t.ndim = u->t.ndim = 2;
        x->shape[0] = 37, x->shape[1] = 6;
        x->stride[0] = 1, x->stride[1] = 37;
        x->t.strides = x->stride;
        GOOD(kiln_nn_softmax(NN, NULL, &u->t, &x->t, &d));
        for (int c = 0; c < 37; c++) {
            double s = 0;
            for (int r = 0; r < 6; r++)
                s += exp((double)x->v[r * 37 + c]);
            for (int r = 0; r < 6; r++)
                NEAR(u->v[c * 6 + r], exp((double)x->v[r * 37 + c]) / s, c * 6 + r);
        }
        BAD("y is not given", kiln_nn_softmax(NN, NULL, NULL, &x->t, &d));
        x->t.ndim = 3; /* [2][3][37] with axes that do not follow each other */
        x->shape[0] = 2, x->shape[1] = 3, x->shape[2] = 30;
        x->stride[0] = 37, x->stride[1] = 74, x->stride[2] = 1;
        BAD("cannot be walked as one", kiln_nn_softmax(NN, NULL, &y->t, &x->t, &d));
    }
}

static void losses(void **state)
{
    (void)state;
    EACH_DEVICE
    {
        struct arr *x = IN(2, 5, 19), *dx = OUT(2, 5, 19), *loss = OUT(1, 5), *lse = OUT(1, 5),
                   *g = IN(1, 5);
        int64_t label[5] = {0, 18, 7, -100, 3}, n = 5;
        kiln_tensor l = {.data = label, .dtype = KILN_I64, .ndim = 1, .shape = &n};
        GOOD(kiln_nn_cross_entropy(NN, NULL, &loss->t, &lse->t, &x->t, &l, 0.25, -100, &d));
        GOOD(kiln_nn_cross_entropy_backward(NN, NULL, &dx->t, &x->t, &l, &lse->t, &g->t, 0.25, -100,
                                            &d));
        for (int r = 0; r < 5; r++) {
            const float *v = x->v + r * 19;
            double s = 0, all = 0;
            for (int c = 0; c < 19; c++) {
                s += exp((double)v[c]);
                all += (double)v[c];
            }
            bool skip = label[r] == -100;
            NEAR(lse->v[r], log(s), r);
            NEAR(loss->v[r], skip ? 0 : log(s) - 0.75 * (double)v[label[r]] - 0.25 * all / 19, r);
            for (int c = 0; c < 19; c++)
                NEAR(dx->v[r * 19 + c],
                     skip ? 0
                          : (double)g->v[r] *
                                (exp((double)v[c]) / s - 0.25 / 19 - (c == label[r] ? 0.75 : 0)),
                     r * 19 + c);
        }
    }
}

static void reductions(void **state)
{
    (void)state;
    static const int shapes[][3] = {
        {3, 5, 7}, {1, 4000, 1}, {2, 1500, 1}, {1, 1400, 2}, {60, 1, 9}};
    EACH_DEVICE
    for (unsigned k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (int axis = -3; axis < 3; axis++)
            for (int op = KILN_NN_SUM; op <= KILN_NN_MIN; op++) {
                const int *e = shapes[k];
                int at = axis < 0 ? axis + 3 : axis;
                fix.used = 0;
                struct arr *x = IN(3, e[0], e[1], e[2]);
                int outer = at > 0 ? e[0] * (at > 1 ? e[1] : 1) : 1, len = e[at];
                int inner = at < 2 ? e[2] * (at < 1 ? e[1] : 1) : 1;
                struct arr *y = OUT(1, outer * inner);
                size_t need = kiln_nn_reduce_workspace(NN, &x->t, axis);
                assert_true(need <= sizeof fix.work);
                GOOD(kiln_nn_reduce(NN, NULL, (kiln_nn_reduce_op)op, &y->t, &x->t, axis, fix.work,
                                    need, &d));
                if (need)
                    BAD("work has", kiln_nn_reduce(NN, NULL, (kiln_nn_reduce_op)op, &y->t, &x->t,
                                                   axis, fix.work, need - 1, &d));
                for (int o = 0; o < outer; o++)
                    for (int i = 0; i < inner; i++) {
                        double t = op == KILN_NN_MAX ? -INFINITY : op == KILN_NN_MIN ? INFINITY : 0;
                        for (int n = 0; n < len; n++) {
                            double v = (double)x->v[(o * len + n) * inner + i];
                            t = op == KILN_NN_MAX   ? fmax(t, v)
                                : op == KILN_NN_MIN ? fmin(t, v)
                                                    : t + v;
                        }
                        near(y->v[o * inner + i], op == KILN_NN_MEAN ? t / len : t, 2e-5, "y", o);
                    }
            }
    now = 0;
    struct arr *x = IN(1, 5), *y = OUT(1, 2);
    BAD("axis 1 is none", kiln_nn_reduce(NN, NULL, KILN_NN_SUM, &y->t, &x->t, 1, NULL, 0, &d));
    BAD("y has 2 elements", kiln_nn_reduce(NN, NULL, KILN_NN_SUM, &y->t, &x->t, 0, NULL, 0, &d));
    fix.used = 0;
}

/* ---- norms ---- */

static void norms(void **state)
{
    (void)state;
    enum { R = 7, C = 45 };
    EACH_DEVICE
    {
        struct arr *x = IN(2, R, C), *y = OUT(2, R, C), *g = IN(1, C), *b = IN(1, C),
                   *mean = OUT(1, R), *rstd = OUT(1, R), *dy = IN(2, R, C), *dx = OUT(2, R, C),
                   *dg = OUT(1, C), *db = OUT(1, C), *z = OUT(2, R, C);
        double sg[C] = {0}, sb[C] = {0};
        GOOD(kiln_nn_layernorm(NN, NULL, &y->t, &mean->t, &rstd->t, &x->t, &g->t, &b->t, 1e-5, &d));
        GOOD(kiln_nn_rmsnorm(NN, NULL, &z->t, &x->t, NULL, 1e-6, &d));
        size_t need = kiln_nn_norm_backward_workspace(NN, &x->t);
        assert_true(need && need <= sizeof fix.work);
        GOOD(kiln_nn_norm_backward(NN, NULL, &dx->t, &dg->t, &db->t, &dy->t, &x->t, &g->t, &mean->t,
                                   &rstd->t, fix.work, need, &d));
        for (int r = 0; r < R; r++) {
            const float *v = x->v + r * C, *w = dy->v + r * C;
            double m = 0, q = 0, s2 = 0, a = 0, h = 0;
            for (int c = 0; c < C; c++)
                m += (double)v[c] / C, s2 += (double)v[c] * (double)v[c] / C;
            for (int c = 0; c < C; c++)
                q += ((double)v[c] - m) * ((double)v[c] - m) / C;
            double s = 1 / sqrt(q + 1e-5);
            NEAR(mean->v[r], m, r);
            NEAR(rstd->v[r], s, r);
            for (int c = 0; c < C; c++) {
                double n = ((double)v[c] - m) * s, t = (double)w[c] * (double)g->v[c];
                a += t / C, h += t * n / C;
                sg[c] += (double)w[c] * n, sb[c] += (double)w[c];
                NEAR(y->v[r * C + c], n * (double)g->v[c] + (double)b->v[c], r * C + c);
                NEAR(z->v[r * C + c], (double)v[c] / sqrt(s2 + 1e-6), r * C + c);
            }
            for (int c = 0; c < C; c++)
                NEAR(dx->v[r * C + c],
                     s * ((double)w[c] * (double)g->v[c] - a - ((double)v[c] - m) * s * h),
                     r * C + c);
        }
        for (int c = 0; c < C; c++) {
            NEAR(dg->v[c], sg[c], c);
            NEAR(db->v[c], sb[c], c);
        }
        BAD("work has", kiln_nn_norm_backward(NN, NULL, &dx->t, &dg->t, &db->t, &dy->t, &x->t, NULL,
                                              &mean->t, &rstd->t, fix.work, need / 2, &d));
    }
}

static void channel_norms(void **state)
{
    (void)state;
    enum { N = 2, C = 6, L = 35 };
    EACH_DEVICE
    {
        struct arr *x = IN(4, N, C, 5, 7), *y = OUT(4, N, C, 5, 7), *z = OUT(4, N, C, 5, 7),
                   *g = IN(1, C), *b = IN(1, C), *mean = OUT(1, C), *var = OUT(1, C);
        GOOD(kiln_nn_groupnorm(NN, NULL, &y->t, NULL, NULL, &x->t, &g->t, &b->t, 3, 1e-5, &d));
        GOOD(kiln_nn_batchnorm_stats(NN, NULL, &mean->t, &var->t, NULL, NULL, &x->t, 0.1, &d));
        GOOD(kiln_nn_batchnorm(NN, NULL, &z->t, &x->t, &mean->t, &var->t, &g->t, NULL, 1e-5, &d));
        for (int n = 0; n < N; n++)
            for (int k = 0; k < 3; k++) {
                const float *v = x->v + (n * C + 2 * k) * L;
                double m = 0, q = 0;
                for (int i = 0; i < 2 * L; i++)
                    m += (double)v[i] / (2 * L);
                for (int i = 0; i < 2 * L; i++)
                    q += ((double)v[i] - m) * ((double)v[i] - m) / (2 * L);
                for (int i = 0; i < 2 * L; i++) {
                    int c = 2 * k + i / L;
                    NEAR(y->v[(n * C + 2 * k) * L + i],
                         ((double)v[i] - m) / sqrt(q + 1e-5) * (double)g->v[c] + (double)b->v[c],
                         i);
                }
            }
        for (int c = 0; c < C; c++) {
            double m = 0, q = 0;
            for (int i = 0; i < N * L; i++)
                m += (double)x->v[(i / L * C + c) * L + i % L] / (N * L);
            for (int i = 0; i < N * L; i++) {
                double t = (double)x->v[(i / L * C + c) * L + i % L] - m;
                q += t * t / (N * L);
            }
            NEAR(mean->v[c], m, c);
            NEAR(var->v[c], q, c);
            NEAR(z->v[c * L], ((double)x->v[c * L] - m) / sqrt(q + 1e-5) * (double)g->v[c], c);
        }
        BAD("multiple of groups",
            kiln_nn_groupnorm(NN, NULL, &y->t, NULL, NULL, &x->t, NULL, NULL, 4, 1e-5, &d));
    }
}

/* ---- element by element ---- */

static double act_of(kiln_nn_activation a, double x)
{
    switch (a) {
    case KILN_NN_GELU: return x * erfc(-x * sqrt(0.5)) / 2;
    case KILN_NN_GELU_TANH: return x / (1 + exp(-1.5957691216057308 * x * (1 + 0.044715 * x * x)));
    case KILN_NN_RELU: return fmax(x, 0);
    case KILN_NN_SILU: return x / (1 + exp(-x));
    case KILN_NN_SIGMOID: return 1 / (1 + exp(-x));
    case KILN_NN_TANH: return tanh(x);
    case KILN_NN_NONE: break;
    }
    return x;
}

static void maps(void **state)
{
    (void)state;
    EACH_DEVICE
    {
        struct arr *x = IN(2, 9, 46), *g = IN(2, 9, 46), *y = OUT(2, 9, 46), *h = OUT(2, 9, 23),
                   *t = OUT(2, 46, 9);
        for (int a = KILN_NN_GELU; a <= KILN_NN_TANH; a++) {
            GOOD(kiln_nn_act(NN, NULL, (kiln_nn_activation)a, &y->t, &x->t, a & 1 ? &g->t : NULL,
                             &d));
            GOOD(kiln_nn_act_halves(NN, NULL, (kiln_nn_activation)a, &h->t, &x->t, &d));
            for (int i = 0; i < 9 * 46; i++)
                NEAR(y->v[i],
                     act_of((kiln_nn_activation)a, (double)x->v[i]) * (a & 1 ? (double)g->v[i] : 1),
                     i);
            for (int i = 0; i < 9 * 23; i++)
                NEAR(h->v[i],
                     act_of((kiln_nn_activation)a, (double)x->v[i / 23 * 46 + i % 23]) *
                         (double)x->v[i / 23 * 46 + 23 + i % 23],
                     i);
        }
        guarded(h);
        GOOD(kiln_nn_transpose(NN, NULL, &t->t, &x->t, &d));
        for (int i = 0; i < 9 * 46; i++)
            assert_true(t->v[i % 46 * 9 + i / 46] == x->v[i]);
        BAD("no activation", kiln_nn_act(NN, NULL, KILN_NN_NONE, &y->t, &x->t, NULL, &d));
    }
}

static void turning(void **state)
{
    (void)state;
    EACH_DEVICE
    for (int near_ = 0; near_ < 2; near_++) {
        fix.used = 0;
        struct arr *x = IN(3, 4, 3, 10), *y = OUT(3, 4, 3, 10), *c = IN(2, 9, 4), *s = IN(2, 9, 4),
                   *z = OUT(3, 4, 3, 10);
        int32_t place[4] = {3, 0, 8, 8};
        int64_t four = 4;
        kiln_tensor p = {.data = place, .dtype = KILN_I32, .ndim = 1, .shape = &four};
        GOOD(kiln_nn_rope(NN, NULL, &y->t, &x->t, &c->t, &s->t, &p, near_, 0, &d));
        GOOD(kiln_nn_rope(NN, NULL, &z->t, &x->t, &c->t, &s->t, &p, near_, 1, &d));
        for (int t = 0; t < 4; t++)
            for (int h = 0; h < 3; h++) {
                const float *v = x->v + (t * 3 + h) * 10, *o = y->v + (t * 3 + h) * 10;
                for (int i = 0; i < 4; i++) {
                    int a = near_ ? 2 * i : i, b = near_ ? 2 * i + 1 : i + 4;
                    double co = (double)c->v[place[t] * 4 + i], si = (double)s->v[place[t] * 4 + i];
                    NEAR(o[a], (double)v[a] * co - (double)v[b] * si, i);
                    NEAR(o[b], (double)v[b] * co + (double)v[a] * si, i);
                    NEAR(z->v[(t * 3 + h) * 10 + a], (double)v[a] * co + (double)v[b] * si, i);
                }
                assert_true(o[8] == v[8] && o[9] == v[9]);
            }
    }
}

/* ---- products ---- */

static void products(void **state)
{
    (void)state;
    enum { Z = 2, M = 11, N = 13, K = 29 };
    EACH_DEVICE
    for (int flip = 0; flip < 2; flip++) {
        fix.used = 0;
        struct arr *a = IN(3, Z, M, K), *b = IN(3, Z, K, N), *c = OUT(3, Z, M, N), *bias = IN(1, N),
                   *r = IN(3, Z, M, N), *c0 = IN(3, Z, M, N);
        kiln_nn_epilogue e = {.bias = &bias->t, .residual = &r->t, .act = KILN_NN_SILU};
        int64_t as[3] = {M * K, 1, M};
        if (flip) /* a as it lies transposed */
            a->t.strides = as;
        GOOD(kiln_nn_gemm(NN, NULL, &c->t, &a->t, &b->t, 0.5, &c0->t, -2, &e, &d));
        for (int z = 0; z < Z; z++)
            for (int m = 0; m < M; m++)
                for (int n = 0; n < N; n++) {
                    double t = 0;
                    for (int k = 0; k < K; k++)
                        t += (double)a->v[z * M * K + (flip ? k * M + m : m * K + k)] *
                             (double)b->v[(z * K + k) * N + n];
                    int i = (z * M + m) * N + n;
                    t = t * 0.5 - 2 * (double)c0->v[i] + (double)bias->v[n];
                    NEAR(c->v[i], act_of(KILN_NN_SILU, t) + (double)r->v[i], i);
                }
        guarded(c);
        /* products of tf32: within their bound, and not those of f32 */
        struct arr *c3 = OUT(3, Z, M, N), *c1 = OUT(3, Z, M, N), *f = OUT(3, Z, M, N);
        kiln_nn_epilogue one = {.precision = KILN_NN_TF32}, three = {.precision = KILN_NN_TF32X3};
        GOOD(kiln_nn_gemm(NN, NULL, &f->t, &a->t, &b->t, 1, NULL, 0, NULL, &d));
        GOOD(kiln_nn_gemm(NN, NULL, &c1->t, &a->t, &b->t, 1, NULL, 0, &one, &d));
        GOOD(kiln_nn_gemm(NN, NULL, &c3->t, &a->t, &b->t, 1, NULL, 0, &three, &d));
        int off = 0;
        for (int i = 0; i < Z * M * N; i++) {
            double size = 0;
            for (int k = 0; k < K; k++)
                size += fabs((double)a->v[i / M / N * M * K + (flip ? k * M + i / N % M : i / N % M * K + k)] *
                             (double)b->v[(i / M / N * K + k) * N + i % N]);
            double e1 = fabs((double)c1->v[i] - (double)f->v[i]), e3 = fabs((double)c3->v[i] - (double)f->v[i]);
            assert_true(e1 <= 0x1p-9 * size && e3 <= 0x1p-18 * size);
            off += e1 > 0x1p-16 * size;
        }
        assert_true(off > Z * M * N / 2);
        one.precision = (kiln_nn_precision)3;
        BAD("3 is no precision", kiln_nn_gemm(NN, NULL, &f->t, &a->t, &b->t, 1, NULL, 0, &one, &d));
        BAD("b has 1 axes",
            (b->t.ndim = 1, kiln_nn_gemm(NN, NULL, &c->t, &a->t, &b->t, 1, NULL, 0, NULL, &d)));
    }
}

static void more_products(void **state)
{
    (void)state;
    EACH_DEVICE
    {
        struct arr *a = IN(2, 7, 400), *b = IN(2, 400, 5), *c = OUT(2, 7, 5), *bias = IN(1, 5);
        kiln_nn_epilogue e = {.bias = &bias->t, .act = KILN_NN_RELU};
        size_t need = kiln_nn_gemm_split_workspace(NN, &a->t, &b->t);
        assert_true(need && need <= sizeof fix.work);
        GOOD(kiln_nn_gemm_split(NN, NULL, &c->t, &a->t, &b->t, &e, fix.work, need, &d));
        for (int i = 0; i < 35; i++) {
            double t = (double)bias->v[i % 5];
            for (int k = 0; k < 400; k++)
                t += (double)a->v[i / 5 * 400 + k] * (double)b->v[k * 5 + i % 5];
            NEAR(c->v[i], fmax(t, 0), i);
        }
        fix.used = 0;
        a = IN(2, 20, 9), b = IN(3, 3, 9, 6), c = OUT(2, 20, 6);
        int64_t first[4] = {0, 13, 13, 20}, four = 4;
        kiln_tensor f = {.data = first, .dtype = KILN_I64, .ndim = 1, .shape = &four};
        GOOD(kiln_nn_gemm_grouped(NN, NULL, &c->t, &a->t, &b->t, &f, KILN_NN_NONE, &d));
        for (int i = 0; i < 120; i++) {
            double t = 0;
            int g = i / 6 < 13 ? 0 : 2;
            for (int k = 0; k < 9; k++)
                t += (double)a->v[i / 6 * 9 + k] * (double)b->v[(g * 9 + k) * 6 + i % 6];
            NEAR(c->v[i], t, i);
        }
        fix.used = 0;
        a = IN(2, 3, 64), c = OUT(2, 3, 10);
        struct arr *scale = IN(2, 10, 2);
        uint8_t w[10 * 32];
        int64_t ws[2] = {10, 32};
        for (int i = 0; i < 320; i++)
            w[i] = (uint8_t)(i * 37 + 11);
        kiln_tensor q = {.data = w, .dtype = KILN_U8, .ndim = 2, .shape = ws};
        GOOD(kiln_nn_gemm_w4(NN, NULL, &c->t, &a->t, &q, &scale->t, NULL, &d));
        for (int i = 0; i < 30; i++) {
            double t = 0;
            int n = i % 10;
            for (int k = 0; k < 64; k++) {
                int v = w[n * 32 + k / 2];
                v = (k & 1 ? v >> 4 : v & 15) - 8;
                t += (double)a->v[i / 10 * 64 + k] * v * (double)scale->v[n * 2 + k / 32];
            }
            NEAR(c->v[i], t, i);
        }
    }
}

static void convolutions(void **state)
{
    (void)state;
    EACH_DEVICE
    for (int last = 0; last < 2; last++) { /* channels first, channels last */
        enum { N = 2, C = 4, H = 9, W = 8, O = 6, KH = 3, KW = 2, OH = 5, OW = 8 };
        fix.used = 0;
        struct arr *x = IN(4, N, C, H, W), *w = IN(4, O, C / 2, KH, KW), *y = OUT(4, N, O, OH, OW),
                   *bias = IN(1, O);
        int64_t xs[4] = {C * H * W, 1, W * C, C}, ws[4] = {2 * KH * KW, 1, KW * 2, 2};
        kiln_nn_conv p = {.stride = {2, 1},
                          .pad = {1, 1},
                          .dilation = {1, 2},
                          .groups = 2,
                          .bias = &bias->t,
                          .act = last ? KILN_NN_SIGMOID : KILN_NN_GELU};
        if (last)
            x->t.strides = xs, w->t.strides = ws;
        GOOD(kiln_nn_conv2d(NN, NULL, &y->t, &x->t, &w->t, &p, &d));
        for (int i = 0; i < N * O * OH * OW; i++) {
            int n = i / (O * OH * OW), o = i / (OH * OW) % O, r = i / OW % OH, c = i % OW;
            double t = (double)bias->v[o];
            for (int k = 0; k < 2 * KH * KW; k++) {
                int ch = k / (KH * KW), a = k / KW % KH, b = k % KW;
                int row = r * 2 - 1 + a, col = c - 1 + b * 2, in = o / 3 * 2 + ch;
                if (row < 0 || row >= H || col < 0 || col >= W)
                    continue;
                int64_t at = last ? n * C * H * W + (row * W + col) * C + in
                                  : ((n * C + in) * H + row) * W + col;
                int tap =
                    last ? ((o * KH + a) * KW + b) * 2 + ch : ((o * 2 + ch) * KH + a) * KW + b;
                t += (double)x->v[at] * (double)w->v[tap];
            }
            NEAR(y->v[i], act_of(p.act, t), i);
        }
        BAD("OH", (y->shape[2] = 4, kiln_nn_conv2d(NN, NULL, &y->t, &x->t, &w->t, &p, &d)));
        fix.used = 0;
        x = IN(3, 2, 3, 40), w = IN(3, 3, 1, 4), y = OUT(3, 2, 3, 43);
        kiln_nn_conv causal = {.pad = {3, 0}, .groups = 3};
        GOOD(kiln_nn_conv1d(NN, NULL, &y->t, &x->t, &w->t, &causal, &d));
        for (int i = 0; i < 2 * 3 * 43; i++) {
            double t = 0;
            for (int k = 0; k < 4; k++) {
                int col = i % 43 - 3 + k;
                if (col >= 0 && col < 40)
                    t += (double)x->v[i / 43 * 40 + col] * (double)w->v[i / 43 % 3 * 4 + k];
            }
            NEAR(y->v[i], t, i);
        }
        fix.used = 0;
        int ow = last ? 2 : 3, far = last ? 2 : 1;
        int64_t ps[4] = {3 * 7 * 9, 1, 9 * 3, 3}, qs[4] = {3 * 4 * 2, 1, 2 * 3, 3};
        x = IN(4, 2, 3, 7, 9), y = OUT(4, 2, 3, 4, ow);
        kiln_nn_pool_params q = {.window = {2, 3},
                                 .pad = {1, 0},
                                 .mean = last,
                                 .inside_only = 1,
                                 .dilation = {0, last ? 2 : 0}};
        if (last)
            x->t.strides = ps, y->t.strides = qs;
        GOOD(kiln_nn_pool(NN, NULL, &y->t, &x->t, &q, &d));
        for (int i = 0; i < 6 * 4 * ow; i++) {
            int r = i / ow % 4, c = i / ow / 4;
            double t = last ? 0 : -INFINITY, n = 0;
            for (int k = 0; k < 6; k++) {
                int row = r * 2 - 1 + k / 3, col = i % ow * 3 + k % 3 * far;
                if (row < 0 || row >= 7)
                    continue;
                double v = (double)x->v[last ? ((c / 3 * 7 + row) * 9 + col) * 3 + c % 3
                                             : (c * 7 + row) * 9 + col];
                t = last ? t + v : fmax(t, v);
                n++;
            }
            NEAR(y->v[last ? ((c / 3 * 4 + r) * 2 + i % ow) * 3 + c % 3 : i], last ? t / n : t, i);
        }
        guarded(y);
        BAD("OW", (q.dilation[1] = 4, kiln_nn_pool(NN, NULL, &y->t, &x->t, &q, &d)));
    }
}

/* ---- attention ---- */

static void attention(void **state)
{
    (void)state;
    enum { B = 2, H = 4, G = 2, L = 9, S = 21, D = 6 };
    EACH_DEVICE
    for (int causal = 0; causal < 2; causal++) {
        fix.used = 0;
        struct arr *q = IN(4, B, H, L, D), *k = IN(4, B, G, S, D), *v = IN(4, B, G, S, D),
                   *o = OUT(4, B, H, L, D), *lse = OUT(3, B, H, L), *slope = IN(1, H);
        kiln_nn_attn p = {.causal = causal, .window = causal ? 5 : 0, .slopes = &slope->t};
        GOOD(kiln_nn_attention(NN, NULL, &o->t, &lse->t, &q->t, &k->t, &v->t, &p, &d));
        for (int i = 0; i < B * H * L; i++) {
            int b = i / (H * L), h = i / L % H, g = h / 2, place = i % L + S - L;
            double l = 0, t[D] = {0};
            for (int j = 0; j < S; j++) {
                double s = 0;
                if (causal && (j > place || j <= place - 5))
                    continue;
                for (int e = 0; e < D; e++)
                    s += (double)q->v[i * D + e] * (double)k->v[((b * G + g) * S + j) * D + e];
                s = exp(s / sqrt(D) + (double)slope->v[h] * (j - place));
                l += s;
                for (int e = 0; e < D; e++)
                    t[e] += s * (double)v->v[((b * G + g) * S + j) * D + e];
            }
            NEAR(lse->v[i], log(l), i);
            for (int e = 0; e < D; e++)
                NEAR(o->v[i * D + e], t[e] / l, i * D + e);
        }
        BAD("H must be a multiple",
            (k->shape[1] = v->shape[1] = 3, k->shape[2] = v->shape[2] = 14,
             kiln_nn_attention(NN, NULL, &o->t, NULL, &q->t, &k->t, &v->t, NULL, &d)));
    }
}

static void decoding(void **state)
{
    (void)state;
    enum { B = 3, H = 6, G = 2, D = 5, PAGE = 4, MORE = 3 };
    EACH_DEVICE
    for (int paged = 0; paged < 2; paged++) {
        fix.used = 0;
        struct arr *q = IN(3, B, H, D), *o = OUT(3, B, H, D);
        struct arr *k = paged ? IN(4, 9, PAGE, G, D) : IN(4, B, PAGE * MORE, G, D);
        struct arr *v = paged ? IN(4, 9, PAGE, G, D) : IN(4, B, PAGE * MORE, G, D);
        int32_t len[B] = {11, 0, 4}, table[B][MORE] = {{8, 1, 3}, {0, 0, 0}, {5, 0, 0}};
        int64_t nb = B, ts[2] = {B, MORE};
        kiln_tensor lt = {.data = len, .dtype = KILN_I32, .ndim = 1, .shape = &nb};
        kiln_tensor tt = {.data = table, .dtype = KILN_I32, .ndim = 2, .shape = ts};
        size_t need = kiln_nn_decode_workspace(NN, &q->t, &k->t);
        assert_true(need && need <= sizeof fix.work);
        GOOD(kiln_nn_decode(NN, NULL, &o->t, &q->t, &k->t, &v->t, &lt, paged ? &tt : NULL, 0,
                            fix.work, need, &d));
        BAD("work has", kiln_nn_decode(NN, NULL, &o->t, &q->t, &k->t, &v->t, &lt,
                                       paged ? &tt : NULL, 0, fix.work, need - 1, &d));
        for (int i = 0; i < B * H; i++) {
            int b = i / H, g = i % H / 3;
            double l = 0, t[D] = {0};
            for (int j = 0; j < len[b]; j++) {
                int row = paged ? table[b][j / PAGE] * PAGE + j % PAGE : b * PAGE * MORE + j;
                double s = 0;
                for (int e = 0; e < D; e++)
                    s += (double)q->v[i * D + e] * (double)k->v[(row * G + g) * D + e];
                s = exp(s / sqrt(D));
                l += s;
                for (int e = 0; e < D; e++)
                    t[e] += s * (double)v->v[(row * G + g) * D + e];
            }
            for (int e = 0; e < D; e++)
                NEAR(o->v[i * D + e], l == 0 ? 0 : t[e] / l, i * D + e);
        }
    }
}

static void delta(void **state)
{
    (void)state;
    enum { T = 70, H = 1, HV = 2, K = 5, V = 3 };
    EACH_DEVICE
    for (int how = 0; how < 3; how++) { /* recurrent, chunks, chunks of ragged sequences */
        fix.used = 0;
        struct arr *q = IN(3, T, H, K), *k = IN(3, T, H, K), *v = IN(3, T, HV, V),
                   *g = IN(2, T, HV), *beta = IN(2, T, HV), *o = OUT(3, T, HV, V),
                   *h0 = IN(4, 2, HV, K, V), *ht = OUT(4, 2, HV, K, V);
        int64_t cu[3] = {0, 23, T}, three = 3;
        kiln_tensor ct = {.data = cu, .dtype = KILN_I64, .ndim = 1, .shape = &three};
        if (how != 2)
            cu[1] = T / 2;
        for (int i = 0; i < T * HV; i++) {
            g->v[i] = -fabsf(g->v[i]);
            beta->v[i] = fabsf(beta->v[i]);
        }
        kiln_nn_gdn p = {.sequences = 2,
                         .cu = how == 2 ? &ct : NULL,
                         .h0 = &h0->t,
                         .ht = &ht->t,
                         .norm = 1,
                         .recurrent = how == 0};
        GOOD(kiln_nn_gated_deltanet(NN, NULL, &o->t, &q->t, &k->t, &v->t, &g->t, &beta->t, &p, &d));
        for (int n = 0; n < 2; n++)
            for (int h = 0; h < HV; h++) {
                double S[K][V], kk[K], qq[K];
                for (int i = 0; i < K * V; i++)
                    S[i / V][i % V] = (double)h0->v[(n * HV + h) * K * V + i];
                for (int64_t t = cu[n]; t < cu[n + 1]; t++) {
                    double lk = 1e-6, lq = 1e-6, decay = exp((double)g->v[t * HV + h]);
                    for (int i = 0; i < K; i++) {
                        kk[i] = (double)k->v[t * K + i], qq[i] = (double)q->v[t * K + i];
                        lk += kk[i] * kk[i], lq += qq[i] * qq[i];
                    }
                    for (int c = 0; c < V; c++) {
                        double u = (double)v->v[(t * HV + h) * V + c], out = 0;
                        for (int i = 0; i < K; i++) {
                            S[i][c] *= decay;
                            u -= S[i][c] * kk[i] / sqrt(lk);
                        }
                        u *= (double)beta->v[t * HV + h];
                        for (int i = 0; i < K; i++) {
                            S[i][c] += kk[i] / sqrt(lk) * u;
                            out += S[i][c] * qq[i] / sqrt(lq);
                        }
                        near(o->v[(t * HV + h) * V + c], out / sqrt(K), 1e-5, "o", t);
                    }
                }
                for (int i = 0; i < K * V; i++)
                    NEAR(ht->v[(n * HV + h) * K * V + i], S[i / V][i % V], i);
            }
    }
}

/* ---- what is refused, DLPack ---- */

static void refused(void **state)
{
    (void)state;
    now = 0;
    kiln_diags *diags = NULL;
    kiln_module *m = NULL;
    struct arr *x = IN(2, 3, 4), *y = OUT(2, 3, 4);
    assert_int_equal(kiln_nn_create(NULL, &(kiln_nn *){NULL}, NULL), KILN_E_ARG);
    assert_int_equal(kiln_nn_create(fix.ctx[0], NULL, NULL), KILN_E_ARG);
    kiln_nn_free(NULL);
    assert_int_equal(kiln_nn_softmax(NULL, NULL, &y->t, &x->t, &diags), KILN_E_ARG);
    assert_int_equal(kiln_nn_module(NN, "nothing", &m, &diags), KILN_E_ARG);
    assert_int_equal(kiln_nn_module(NN, "softmax", &m, &diags), KILN_OK);
    assert_non_null(kiln_module_kernel(m, "softmax_online"));
    y->shape[1] = 5;
    BAD("y", kiln_nn_softmax(NN, NULL, &y->t, &x->t, &d));
    y->shape[1] = -1;
    BAD("negative", kiln_nn_softmax(NN, NULL, &y->t, &x->t, &d));
    y->shape[1] = 4;
    y->t.dtype = KILN_F64;
    BAD("f64", kiln_nn_softmax(NN, NULL, &y->t, &x->t, &d));
    fix.used = 0;
}

static int released;

static void release(void *user)
{
    released += *(int *)user;
}

static void dlpack(void **state)
{
    (void)state;
    float v[6] = {1, 2, 3, 4, 5, 6};
    int64_t shape[2] = {2, 3}, stride[2] = {1, 2};
    int seven = 7;
    kiln_tensor t = {.data = v, .dtype = KILN_F32, .ndim = 2, .shape = shape}, back;
    kiln_dl_managed_v1 *m = NULL;
    kiln_diags *d = NULL;
    assert_int_equal(
        kiln_dlpack_export(&t, KILN_DL_CPU, 0, KILN_DL_READ_ONLY, release, &seven, &m, &d),
        KILN_OK);
    assert_int_equal(m->major, 1);
    assert_true(m->flags == KILN_DL_READ_ONLY && m->tensor.strides[0] == 3 &&
                m->tensor.strides[1] == 1 && m->tensor.code == 2 && m->tensor.bits == 32 &&
                m->tensor.lanes == 1 && m->tensor.data == v);
    shape[0] = 99; /* a copy is kept */
    assert_int_equal(kiln_dlpack_view(&m->tensor, &back, NULL, &d), KILN_OK);
    assert_true(back.data == v && back.dtype == KILN_F32 && back.ndim == 2 && back.shape[0] == 2);
    m->deleter(m);
    assert_int_equal(released, 7);
    t.strides = stride;
    shape[0] = 2;
    for (int k = KILN_BOOL; k <= KILN_F8E5M2; k++) { /* every type there and back */
        t.dtype = (kiln_dtype)k;
        assert_int_equal(kiln_dlpack_export(&t, KILN_DL_CUDA, 3, 0, NULL, NULL, &m, &d), KILN_OK);
        int32_t id = 0;
        m->tensor.byte_offset = 8;
        assert_int_equal(kiln_dlpack_view(&m->tensor, &back, &id, &d), KILN_OK);
        assert_true(back.dtype == t.dtype && id == 3 && back.flags == KILN_TENSOR_DEVICE &&
                    back.strides[1] == 2 && (char *)back.data == (char *)v + 8);
        m->tensor.lanes = 2;
        assert_int_equal(kiln_dlpack_view(&m->tensor, &back, NULL, NULL), KILN_E_UNSUPPORTED);
        m->deleter(m);
    }
    assert_int_equal(kiln_dlpack_export(&t, KILN_DL_CPU, 0, 0, NULL, NULL, &m, &d), KILN_OK);
    m->tensor.code = 5; /* complex */
    assert_int_equal(kiln_dlpack_view(&m->tensor, &back, NULL, &d), KILN_E_UNSUPPORTED);
    assert_int_equal(kiln_diags_count(d), 1);
    kiln_diags_free(d);
    m->tensor.code = 2;
    m->tensor.device_type = 10; /* ROCm */
    assert_int_equal(kiln_dlpack_view(&m->tensor, &back, NULL, NULL), KILN_E_UNSUPPORTED);
    m->tensor.device_type = KILN_DL_CPU;
    m->tensor.ndim = 9;
    assert_int_equal(kiln_dlpack_view(&m->tensor, &back, NULL, NULL), KILN_E_UNSUPPORTED);
    m->deleter(m);
    assert_int_equal(kiln_dlpack_view(NULL, &back, NULL, NULL), KILN_E_ARG);
    assert_int_equal(kiln_dlpack_export(NULL, 1, 0, 0, NULL, NULL, &m, NULL), KILN_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),          cmocka_unit_test(losses),
        cmocka_unit_test(reductions),    cmocka_unit_test(norms),
        cmocka_unit_test(channel_norms), cmocka_unit_test(maps),
        cmocka_unit_test(turning),       cmocka_unit_test(products),
        cmocka_unit_test(more_products), cmocka_unit_test(convolutions),
        cmocka_unit_test(attention),     cmocka_unit_test(decoding),
        cmocka_unit_test(delta),         cmocka_unit_test(refused),
        cmocka_unit_test(dlpack),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
