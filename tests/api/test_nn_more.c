/* test_nn_more.c - kiln_nn.h: by index, running sums, order, experts, 8-bit products, against plain C. */
#include "nn.h"

/* An array of integers beside the arrays of f32. */
static kiln_tensor ints(void *data, kiln_dtype t, int ndim, const int64_t *shape)
{
    return (kiln_tensor){.data = data, .dtype = t, .ndim = ndim, .shape = shape};
}
#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

static int draw_int(int n)
{
    int v = (int)((double)(draw() + 1) / 2 * n);
    return v < n ? v : n - 1;
}

/* ---- by index ---- */

static void rows_by_number(void **state)
{
    (void)state;
    enum { R = 7, C = 13, N = 11 };
    EACH_DEVICE
    {
        struct arr *w = IN(2, R, C), *y = OUT(2, N, C), *dw = OUT(2, R, C), *x = IN(2, N, C),
                   *z = OUT(2, R, C), *u = IN(2, R, C), *e = OUT(1, N), *v = OUT(2, R, C);
        int32_t p[N], up[N];
        for (int i = 0; i < N; i++) {
            p[i] = i == 3 ? -1 : i == 5 ? R : draw_int(R);
            up[i] = i * R / N;
        }
        kiln_tensor pt = ints(p, KILN_I32, 1, SHAPE(N)), ut = ints(up, KILN_I32, 1, SHAPE(N));
        kiln_tensor pick = ints(up, KILN_I32, 1, SHAPE(N));
        float before[R * C];
        memcpy(before, u->v, sizeof before);
        GOOD(kiln_nn_embedding(NN, NULL, &y->t, &pt, &w->t, p[0], &d));
        GOOD(kiln_nn_embedding_gradient(NN, NULL, &dw->t, &pt, &x->t, p[0], &d));
        GOOD(kiln_nn_segment_sum(NN, NULL, &z->t, &ut, &x->t, &d));
        GOOD(kiln_nn_pick(NN, NULL, &e->t, &pick, &x->t, &d));
        for (int i = 0; i < N * C; i++) {
            int r = p[i / C];
            NEAR(y->v[i], r < 0 || r >= R || r == p[0] ? 0 : (double)w->v[r * C + i % C], i);
        }
        for (int i = 0; i < N; i++)
            NEAR(e->v[i], (double)x->v[i * C + up[i]], i);
        for (int i = 0; i < R * C; i++) {
            double a = 0, b = 0;
            for (int k = 0; k < N; k++) {
                a += p[k] == i / C && p[k] != p[0] ? (double)x->v[k * C + i % C] : 0;
                b += up[k] == i / C ? (double)x->v[k * C + i % C] : 0;
            }
            NEAR(dw->v[i], a, i);
            NEAR(z->v[i], b, i);
        }
        GOOD(kiln_nn_scatter_add(NN, NULL, &v->t, &ut, &x->t, &d));
        for (int i = 0; i < R * C; i++)
            NEAR(v->v[i], (double)z->v[i], i);
        /* rows out and back */
        int32_t turn[R] = {6, 0, 3, 5, 1, -4, 2};
        kiln_tensor tt = ints(turn, KILN_I32, 1, SHAPE(R));
        GOOD(kiln_nn_take(NN, NULL, &z->t, &tt, &w->t, &d));
        GOOD(kiln_nn_put(NN, NULL, &u->t, &tt, &z->t, &d));
        for (int i = 0; i < R * C; i++)
            assert_true(u->v[i] == (i / C == 4 ? before[i] : w->v[i]));
        guarded(y);
        guarded(dw);
        guarded(z);
        pt.ndim = 0;
        BAD("p has 0 axes", kiln_nn_take(NN, NULL, &z->t, &pt, &w->t, &d));
        BAD("w is not given", kiln_nn_embedding(NN, NULL, &y->t, &ut, NULL, -1, &d));
    }
}

/* Rows with gaps between them; what lies there stays. */
static void rows_apart(void **state)
{
    (void)state;
    enum { R = 5, C = 7, N = 6, FAR = 11 };
    EACH_DEVICE
    {
        struct arr *w = IN(2, R, FAR), *y = OUT(2, N, FAR), *dw = OUT(2, R, FAR),
                   *dy = IN(2, N, FAR), *z = OUT(2, R, FAR), *u = OUT(2, N, FAR);
        struct arr *all[] = {w, y, dw, dy, z, u};
        int64_t far[2] = {FAR, 1};
        int32_t p[N] = {4, 0, 2, 2, -1, 1};
        kiln_tensor pt = ints(p, KILN_I32, 1, SHAPE(N)), pick = ints(p, KILN_I32, 1, SHAPE(R));
        for (int i = 0; i < 6; i++) {
            all[i]->shape[1] = C;
            all[i]->t.strides = far;
        }
        float picked[R];
        kiln_tensor e = ints(picked, KILN_F32, 1, SHAPE(R));
        GOOD(kiln_nn_embedding(NN, NULL, &y->t, &pt, &w->t, -1, &d));
        GOOD(kiln_nn_take(NN, NULL, &u->t, &pt, &w->t, &d));
        GOOD(kiln_nn_embedding_gradient(NN, NULL, &dw->t, &pt, &dy->t, -1, &d));
        GOOD(kiln_nn_scatter_add(NN, NULL, &z->t, &pt, &dy->t, &d));
        GOOD(kiln_nn_pick(NN, NULL, &e, &pick, &w->t, &d));
        for (int i = 0; i < N * FAR; i++) {
            int r = p[i / FAR], c = i % FAR;
            if (c >= C) {
                assert_true(isnan(y->v[i]) && isnan(u->v[i]));
                continue;
            }
            assert_true(y->v[i] == (r < 0 ? 0 : w->v[r * FAR + c]) && u->v[i] == y->v[i]);
        }
        for (int i = 0; i < R * FAR; i++) {
            double a = 0;
            for (int k = 0; k < N; k++)
                a += p[k] == i / FAR ? (double)dy->v[k * FAR + i % FAR] : 0;
            if (i % FAR >= C) {
                assert_true(isnan(dw->v[i]) && isnan(z->v[i]));
                continue;
            }
            NEAR(dw->v[i], a, i);
            NEAR(z->v[i], a, i);
        }
        for (int i = 0; i < R; i++)
            assert_true(picked[i] == (p[i] < 0 ? 0 : w->v[i * FAR + p[i]]));
    }
}

static void counts(void **state)
{
    (void)state;
    enum { N = 1030, B = 6 };
    EACH_DEVICE
    {
        struct arr *x = IN(2, 2, N / 2);
        int32_t k[N], h[B], want[B] = {0}, g[B], wish[B] = {0}, top[B] = {-9, -9, -9, 99, -9, -9};
        for (int i = 0; i < N; i++) {
            k[i] = draw_int(B + 2) - 1;
            if (k[i] >= 0 && k[i] < B)
                want[k[i]]++;
            int b = (int)floor(((double)x->v[i] + 0.75) * 4);
            if (b >= 0 && b < B && fabs((double)x->v[i]) <= 0.75)
                wish[b]++;
        }
        kiln_tensor kt = ints(k, KILN_I32, 1, SHAPE(N)), ht = ints(h, KILN_I32, 1, SHAPE(B));
        kiln_tensor gt = ints(g, KILN_I32, 1, SHAPE(B)), mt = ints(top, KILN_I32, 1, SHAPE(B));
        GOOD(kiln_nn_histogram(NN, NULL, &ht, &kt, &d));
        GOOD(kiln_nn_histogram_floats(NN, NULL, &gt, &x->t, -0.75, 0.75, &d));
        assert_memory_equal(h, want, sizeof h);
        assert_memory_equal(g, wish, sizeof g);
        GOOD(kiln_nn_scatter_max(NN, NULL, &mt, &kt, &kt, &d));
        for (int b = 0; b < B; b++)
            assert_int_equal(top[b], b == 3 ? 99 : b);
        /* of floats: one keeps what it had, NaN wins whatever its sign */
        float most[B + 1] = {-3, 100, -NAN, -0.0f, -INFINITY, -0.5f, 0.25f};
        double better[B + 1];
        struct arr *f = IN(1, N);
        f->v[70] = NAN;
        int32_t to[N];
        for (int b = 0; b <= B; b++)
            better[b] = (double)most[b];
        for (int i = 0; i < N; i++) {
            to[i] = i == 70 ? 4 : k[i] == 4 ? 5 : k[i];
            f->v[i] -= to[i] == 5 ? 1.25f : 0; /* some have negative ones alone */
            double v = (double)f->v[i];
            if (to[i] >= 0 && to[i] < B + 1 && !isnan(better[to[i]]) && !(v <= better[to[i]]))
                better[to[i]] = v;
        }
        kiln_tensor ft = ints(most, KILN_F32, 1, SHAPE(B + 1)),
                    tt = ints(to, KILN_I32, 1, SHAPE(N));
        GOOD(kiln_nn_scatter_max(NN, NULL, &ft, &tt, &f->t, &d));
        for (int b = 0; b <= B; b++)
            NEAR((double)most[b], better[b], b);
        BAD("y is f32 and x is i32", kiln_nn_scatter_max(NN, NULL, &ft, &tt, &kt, &d));
        /* every second one, from the end, in 64 bits */
        int64_t wide[B], second[B] = {0};
        kiln_tensor wt = ints(wide, KILN_I64, 1, SHAPE(B)),
                    half = ints(k + N - 1, KILN_I32, 1, SHAPE(N / 2));
        half.strides = SHAPE(-2);
        for (int i = N - 1; i > 0; i -= 2)
            if (k[i] >= 0 && k[i] < B)
                second[k[i]]++;
        GOOD(kiln_nn_histogram(NN, NULL, &wt, &half, &d));
        assert_memory_equal(wide, second, sizeof wide);
        half.ndim = 2, half.shape = SHAPE(3, 4), half.strides = SHAPE(-9, -2);
        BAD("cannot be walked as one", kiln_nn_histogram(NN, NULL, &wt, &half, &d));
        BAD("interval is empty", kiln_nn_histogram_floats(NN, NULL, &gt, &x->t, 1, 1, &d));
    }
}

static void permuted(void **state)
{
    (void)state;
    static const int orders[][4] = {{0, 1, 2, 3}, {0, 3, 1, 2}, {3, 2, 1, 0}, {0, 2, 1, 3}};
    EACH_DEVICE
    for (unsigned k = 0; k < sizeof orders / sizeof *orders; k++) {
        const int e[4] = {3, 5, 2, 7}, *at = orders[k];
        fix.used = 0;
        struct arr *x = IN(4, e[0], e[1], e[2], e[3]),
                   *y = OUT(4, e[at[0]], e[at[1]], e[at[2]], e[at[3]]);
        GOOD(kiln_nn_permute(NN, NULL, &y->t, &x->t, at, &d));
        int i[4], n = 0;
        for (i[0] = 0; i[0] < e[at[0]]; i[0]++)
            for (i[1] = 0; i[1] < e[at[1]]; i[1]++)
                for (i[2] = 0; i[2] < e[at[2]]; i[2]++)
                    for (i[3] = 0; i[3] < e[at[3]]; i[3]++) {
                        int j[4] = {0};
                        for (int b = 0; b < 4; b++)
                            j[at[b]] = i[b];
                        assert_true(y->v[n++] ==
                                    x->v[((j[0] * e[1] + j[1]) * e[2] + j[2]) * e[3] + j[3]]);
                    }
        guarded(y);
        if (k)
            continue;
        /* repeated, backwards, nothing */
        const int64_t repeat[4] = {0, -14, 0, 1};
        kiln_tensor back = x->t;
        back.strides = repeat;
        back.data = x->v + 4 * 14;
        GOOD(kiln_nn_permute(NN, NULL, &y->t, &back, NULL, &d));
        for (int b = 0; b < 3 * 5 * 2 * 7; b++)
            assert_true(y->v[b] == x->v[(4 - b / 14 % 5) * 14 + b % 7]);
        BAD("axis[1] is 0", kiln_nn_permute(NN, NULL, &y->t, &x->t, (const int[]){0, 0, 1, 2}, &d));
        BAD("axis 0 of y has 3",
            kiln_nn_permute(NN, NULL, &y->t, &x->t, (const int[]){1, 0, 2, 3}, &d));
        x->shape[2] = y->shape[2] = 0;
        GOOD(kiln_nn_permute(NN, NULL, &y->t, &x->t, NULL, &d));
    }
}

/* ---- running sums ---- */

static void running(void **state)
{
    (void)state;
    enum { A = 3, B = 70, C = 5, N = 3000 };
    EACH_DEVICE
    {
        for (int axis = 0; axis < 3; axis++)
            for (int back = 0; back < 2; back++) {
                fix.used = 0;
                struct arr *x = IN(3, A, B, C), *y = OUT(3, A, B, C);
                const int e[3] = {A, B, C}, step[3] = {B * C, C, 1};
                GOOD(kiln_nn_cumsum(NN, NULL, &y->t, &x->t, axis - 3, back, &d));
                for (int i = 0; i < A * B * C; i++) {
                    double t = 0;
                    for (int at = i / step[axis] % e[axis], k = back ? at : 0;
                         k < (back ? e[axis] : at + 1); k++)
                        t += (double)x->v[i + (k - at) * step[axis]];
                    NEAR(y->v[i], t, i);
                }
                guarded(y);
            }
        fix.used = 0;
        struct arr *x = IN(1, N), *y = OUT(1, N), *z = OUT(1, N), *u = OUT(2, 2, N / 2);
        size_t need = kiln_nn_prefix_sum_workspace(NN, &x->t);
        assert_true(need && need <= sizeof fix.work);
        GOOD(kiln_nn_prefix_sum(NN, NULL, &y->t, &x->t, fix.work, need, &d));
        BAD("work has", kiln_nn_prefix_sum(NN, NULL, &y->t, &x->t, fix.work, need - 1, &d));
        int64_t first[5] = {0, 1, 1, 1500, N};
        kiln_tensor ft = ints(first, KILN_I64, 1, SHAPE(5));
        GOOD(kiln_nn_segmented_offsets(NN, NULL, &z->t, &x->t, &ft, &d));
        double all = 0, part = 0;
        for (int i = 0; i < N; i++) {
            all += (double)x->v[i];
            part = (i == 1 || i == 1500 ? 0 : part) + (double)x->v[i];
            NEAR(y->v[i], all, i);
            NEAR(z->v[i], part, i);
        }
        static uint8_t head[N];
        kiln_tensor ht = ints(head, KILN_BOOL, 2, SHAPE(2, N / 2));
        for (int i = 0; i < N; i++)
            head[i] = i % 37 == 5;
        x->t.ndim = 2;
        x->shape[0] = 2, x->shape[1] = N / 2;
        GOOD(kiln_nn_segmented_flags(NN, NULL, &u->t, &x->t, &ht, NULL, 0, &d));
        for (int i = 0; i < N; i++) {
            part = (head[i] || i % (N / 2) == 0 ? 0 : part) + (double)x->v[i];
            NEAR(u->v[i], part, i);
        }
        GOOD(kiln_nn_cummax(NN, NULL, &u->t, &x->t, NULL, 0, &d));
        for (int i = 0; i < N; i++) {
            part = i % (N / 2) == 0 ? (double)x->v[i] : fmax(part, (double)x->v[i]);
            assert_true((double)u->v[i] == part);
        }
        /* integers wrap in the type of y */
        int64_t w[3] = {0};
        uint8_t b[3] = {250, 10, 7};
        kiln_tensor wt = ints(w, KILN_I64, 1, SHAPE(3)), bt = ints(b, KILN_U8, 1, SHAPE(3));
        GOOD(kiln_nn_cumsum(NN, NULL, &wt, &bt, 0, 0, &d));
        assert_true(w[0] == 250 && w[1] == 260 && w[2] == 267);
        BAD("sums of u8", kiln_nn_cumsum(NN, NULL, &bt, &bt, 0, 0, &d));
        BAD("axis 1 is none", kiln_nn_cumsum(NN, NULL, &wt, &bt, 1, 0, &d));
    }
}

/* ---- order ---- */

static void ordered(void **state)
{
    (void)state;
    enum { R = 4, C = 19, K = 5 };
    EACH_DEVICE
    {
        struct arr *x = IN(2, R, C), *v = OUT(2, R, K), *y = OUT(2, R, C), *m = OUT(1, C);
        int32_t place[R * K], at[R * C], col[C];
        kiln_tensor pt = ints(place, KILN_I32, 2, SHAPE(R, K)),
                    at_ = ints(at, KILN_I32, 2, SHAPE(R, C)), ct = ints(col, KILN_I32, 1, SHAPE(C)),
                    none = ints(at, KILN_I32, 1, SHAPE(R));
        for (int i = 0; i < R * C; i++)
            x->v[i] = rintf(x->v[i] * 6) + 0.0f; /* many that are equal */
        x->v[C + 3] = NAN;
        GOOD(kiln_nn_topk(NN, NULL, &v->t, &pt, &x->t, NULL, 0, &d));
        GOOD(kiln_nn_sort(NN, NULL, &y->t, &at_, &x->t, NULL, 0, &d));
        for (int r = 0; r < R; r++) {
            const float *row = x->v + r * C;
            for (int c = 0; c < C; c++) { /* how many come before c, either way */
                int below = 0, above = 0;
                for (int k = 0; k < C; k++) {
                    bool a = isnan(row[k]), b = isnan(row[c]);
                    below += a != b ? b
                             : a    ? k < c
                                    : row[k] < row[c] || (row[k] == row[c] && k < c);
                    above += a != b ? b
                             : a    ? k < c
                                    : row[k] > row[c] || (row[k] == row[c] && k < c);
                }
                assert_int_equal(at[r * C + below], c);
                NEAR(y->v[r * C + below], (double)row[c], c);
                if (above < K) {
                    assert_int_equal(place[r * K + above], c);
                    NEAR(v->v[r * K + above], (double)row[c], c);
                }
            }
        }
        for (int least = 0; least < 2; least++) {
            GOOD(kiln_nn_argmax(NN, NULL, &ct, &m->t, &x->t, 0, least, &d));
            for (int c = 0; c < C; c++) {
                int best = 0;
                for (int r = 1; r < R; r++) {
                    float a = x->v[r * C + c], b = x->v[best * C + c];
                    best = !isnan(b) && (isnan(a) || (least ? a < b : a > b)) ? r : best;
                }
                assert_int_equal(col[c], best);
                NEAR(m->v[c], (double)x->v[best * C + c], c);
            }
        }
        GOOD(kiln_nn_argmax(NN, NULL, &none, NULL, &x->t, -1, 0, &d));
        assert_int_equal(at[1], 3);
        BAD("place has 19", kiln_nn_argmax(NN, NULL, &ct, NULL, &x->t, 1, 0, &d));
        BAD("neither y nor place", kiln_nn_sort(NN, NULL, NULL, NULL, &x->t, NULL, 0, &d));
        v->shape[1] = pt.ndim = 2;
        v->shape[1] = 20;
        BAD("20 of 19", kiln_nn_topk(NN, NULL, &v->t, &pt, &x->t, NULL, 0, &d));
    }
}

/* ---- element by element ---- */

static void element_wise(void **state)
{
    (void)state;
    enum { T = 5, H = 3, D = 10 };
    EACH_DEVICE
    {
        struct arr *x = IN(1, 1500), *y = OUT(1, 1500), *g = IN(1, 1500), *dx = OUT(1, 1500),
                   *dg = OUT(1, 1500), *dy = IN(1, 1500);
        GOOD(kiln_nn_dropout(NN, NULL, &y->t, &x->t, 0.25, 99, &d));
        GOOD(kiln_nn_dropout(NN, NULL, &dx->t, &dy->t, 0.25, 99, &d));
        int kept = 0;
        for (int i = 0; i < 1500; i++) {
            bool k = y->v[i] != 0;
            kept += k;
            NEAR(y->v[i], k ? (double)x->v[i] / 0.75 : 0, i);
            NEAR(dx->v[i], k ? (double)dy->v[i] / 0.75 : 0, i);
        }
        assert_true(kept > 1050 && kept < 1200);
        BAD("p is 1", kiln_nn_dropout(NN, NULL, &y->t, &x->t, 1, 99, &d));
        GOOD(
            kiln_nn_act_backward(NN, NULL, KILN_NN_SILU, &dx->t, &dg->t, &dy->t, &x->t, &g->t, &d));
        for (int i = 0; i < 1500; i++) {
            double v = (double)x->v[i], s = 1 / (1 + exp(-v));
            NEAR(dx->v[i], (double)dy->v[i] * (double)g->v[i] * (s + v * s * (1 - s)), i);
            NEAR(dg->v[i], (double)dy->v[i] * v * s, i);
        }
        BAD("gate is not",
            kiln_nn_act_backward(NN, NULL, KILN_NN_SILU, &dx->t, &dg->t, &dy->t, &x->t, NULL, &d));
        fix.used = 0;
        x = IN(3, T, H, D), y = OUT(3, T, H, D);
        GOOD(kiln_nn_rope_theta(NN, NULL, &y->t, &x->t, 8, 1000, NULL, 7, 0, 0, &d));
        for (int i = 0; i < T * H * D; i++) {
            int e = i % D, pair = e % 4;
            double turn = (7 + i / (H * D)) * pow(1000, -pair / 4.0);
            double other = e < 8 ? (double)x->v[e < 4 ? i + 4 : i - 4] * (e < 4 ? -1 : 1) : 0;
            NEAR(y->v[i], e < 8 ? (double)x->v[i] * cos(turn) + other * sin(turn) : (double)x->v[i],
                 i);
        }
        BAD("even number", kiln_nn_rope_theta(NN, NULL, &y->t, &x->t, 12, 1e4, NULL, 0, 0, 0, &d));
    }
}

/* ---- products of integers, experts ---- */

static void bytes(void **state)
{
    (void)state;
    enum { M = 5, N = 7, K = 45 };
    EACH_DEVICE
    {
        int8_t a[M * K], b[N * K]; /* b is transposed */
        int32_t c[M * N];
        struct arr *row = IN(1, M), *col = IN(1, N), *bias = IN(1, N), *f = OUT(2, M, N);
        for (int i = 0; i < M * K; i++)
            a[i] = (int8_t)(draw_int(256) - 128);
        for (int i = 0; i < N * K; i++)
            b[i] = (int8_t)(draw_int(256) - 128);
        kiln_tensor at = ints(a, KILN_I8, 2, SHAPE(M, K)), bt = ints(b, KILN_I8, 2, SHAPE(K, N)),
                    ct = ints(c, KILN_I32, 2, SHAPE(M, N));
        bt.strides = SHAPE(1, K);
        GOOD(kiln_nn_gemm_i8(NN, NULL, &ct, &at, &bt, NULL, NULL, NULL, KILN_NN_NONE, &d));
        GOOD(kiln_nn_gemm_i8(NN, NULL, &f->t, &at, &bt, &row->t, &col->t, &bias->t, KILN_NN_RELU,
                             &d));
        for (int i = 0; i < M * N; i++) {
            int t = 0;
            for (int k = 0; k < K; k++)
                t += a[i / N * K + k] * b[i % N * K + k];
            assert_int_equal(c[i], t);
            NEAR(
                f->v[i],
                fmax(0, t * (double)row->v[i / N] * (double)col->v[i % N] + (double)bias->v[i % N]),
                i);
        }
        BAD("c is i32",
            kiln_nn_gemm_i8(NN, NULL, &ct, &at, &bt, &row->t, NULL, NULL, KILN_NN_NONE, &d));
    }
}

static void experts(void **state)
{
    (void)state;
    enum { T = 23, E = 5, K = 2, D = 9, F = 12, P = T * K };
    EACH_DEVICE
    {
        struct arr *logit = IN(2, T, E), *weight = OUT(2, T, K), *x = IN(2, T, D),
                   *up = IN(3, E, D, F), *down = IN(3, E, F, D), *h = OUT(2, P, F),
                   *y = OUT(2, T, D), *add = OUT(2, T, D), *mix = OUT(2, T, F);
        int32_t expert[P], order[P], place[P];
        int64_t first[E + 1];
        kiln_tensor et = ints(expert, KILN_I32, 2, SHAPE(T, K)),
                    ot = ints(order, KILN_I32, 1, SHAPE(P)),
                    pt = ints(place, KILN_I32, 2, SHAPE(T, K)),
                    ft = ints(first, KILN_I64, 1, SHAPE(E + 1));
        GOOD(kiln_nn_moe_route(NN, NULL, &weight->t, &et, &logit->t, 1, &d));
        for (int t = 0; t < T; t++) {
            const float *l = logit->v + t * E;
            double all = 0;
            for (int j = 0; j < K; j++)
                all += exp((double)l[expert[t * K + j]]);
            for (int j = 0; j < K; j++) {
                int above = 0;
                for (int e = 0; e < E; e++)
                    above += l[e] > l[expert[t * K + j]];
                assert_int_equal(above, j);
                NEAR(weight->v[t * K + j], exp((double)l[expert[t * K + j]]) / all, t);
            }
        }
        expert[5] = -1; /* dropped */
        size_t need = kiln_nn_moe_group_workspace(NN, &et, E);
        assert_true(need && need <= sizeof fix.work);
        GOOD(kiln_nn_moe_group(NN, NULL, &ft, &ot, &pt, &et, fix.work, need, &d));
        BAD("work has", kiln_nn_moe_group(NN, NULL, &ft, &ot, &pt, &et, fix.work, need - 1, &d));
        int n = 0;
        for (int e = 0; e < E; e++) {
            assert_int_equal(first[e], n);
            for (int p = 0; p < P; p++)
                if (expert[p] == e) {
                    assert_int_equal(order[n], p);
                    assert_int_equal(place[p], n++);
                }
        }
        assert_true(first[E] == P - 1 && order[P - 1] == -1 && place[5] == -1);
        assert_int_equal(kiln_nn_moe_gemm_workspace(NN, &x->t, &up->t, &ot, NULL), 0);
        GOOD(kiln_nn_moe_gemm(NN, NULL, &h->t, &x->t, &up->t, &ft, &ot, NULL, NULL, KILN_NN_RELU,
                              NULL, 0, &d));
        need = kiln_nn_moe_gemm_workspace(NN, &h->t, &down->t, NULL, &pt);
        memset(h->v + (P - 1) * F, 0, F * sizeof *h->v); /* of the dropped pair: not computed */
        GOOD(kiln_nn_moe_gemm(NN, NULL, &y->t, &h->t, &down->t, &ft, NULL, &weight->t, &pt,
                              KILN_NN_NONE, fix.work, need, &d));
        GOOD(kiln_nn_moe_gemm_add(NN, NULL, &add->t, &h->t, &down->t, &ft, &ot, &weight->t, 1,
                                  KILN_NN_NONE, &d));
        /* gathered and added in one: act(x up) weight */
        GOOD(kiln_nn_moe_gemm_add(NN, NULL, &mix->t, &x->t, &up->t, &ft, &ot, &weight->t, 0,
                                  KILN_NN_RELU, &d));
        for (int t = 0; t < T; t++) {
            double sum[D] = {0};
            for (int f = 0; f < F; f++) {
                double v = 0;
                for (int j = 0; j < K; j++)
                    if (expert[t * K + j] >= 0)
                        v += (double)weight->v[t * K + j] * (double)h->v[place[t * K + j] * F + f];
                NEAR(mix->v[t * F + f], v, t * F + f);
            }
            for (int j = 0; j < K; j++) {
                int e = expert[t * K + j];
                for (int f = 0; f < F && e >= 0; f++) {
                    double v = 0;
                    for (int i = 0; i < D; i++)
                        v += (double)x->v[t * D + i] * (double)up->v[(e * D + i) * F + f];
                    NEAR(h->v[place[t * K + j] * F + f], fmax(v, 0), f);
                    for (int i = 0; i < D; i++)
                        sum[i] += (double)weight->v[t * K + j] * fmax(v, 0) *
                                  (double)down->v[(e * F + f) * D + i];
                }
            }
            for (int i = 0; i < D; i++)
                NEAR(y->v[t * D + i], sum[i], t * D + i);
            for (int i = 0; i < D; i++)
                NEAR(add->v[t * D + i], sum[i], t * D + i);
        }
        guarded(y);
        guarded(add);
        BAD("the pairs are", kiln_nn_moe_gemm_add(NN, NULL, &add->t, &x->t, &up->t, &ft, &ot,
                                                  &weight->t, 1, KILN_NN_NONE, &d));
        BAD("order is not", kiln_nn_moe_gemm_add(NN, NULL, &add->t, &x->t, &up->t, &ft, NULL,
                                                 &weight->t, 0, KILN_NN_NONE, &d));
        BAD("work has", kiln_nn_moe_gemm(NN, NULL, &y->t, &h->t, &down->t, &ft, NULL, &weight->t,
                                         &pt, KILN_NN_NONE, fix.work, need - 1, &d));
        BAD("go together", kiln_nn_moe_gemm(NN, NULL, &y->t, &h->t, &down->t, &ft, NULL, NULL, &pt,
                                            KILN_NN_NONE, fix.work, need, &d));
        BAD("6 of 5 experts", (weight->shape[1] = 6, et.shape = SHAPE(T, 6),
                               kiln_nn_moe_route(NN, NULL, &weight->t, &et, &logit->t, 1, &d)));
    }
}

/* Many blocks of pairs, which are counted by themselves. */
static void many_pairs(void **state)
{
    (void)state;
    enum { P = 3001, E = 37 };
    static int32_t expert[P], order[P], place[P];
    static int64_t first[E + 1];
    EACH_DEVICE
    {
        kiln_tensor et = ints(expert, KILN_I32, 1, SHAPE(P)),
                    ot = ints(order, KILN_I32, 1, SHAPE(P)),
                    pt = ints(place, KILN_I32, 1, SHAPE(P)),
                    ft = ints(first, KILN_I64, 1, SHAPE(E + 1));
        for (int p = 0; p < P; p++)
            expert[p] = p % 101 == 7 ? E : draw_int(E - 1); /* dropped; the last expert has none */
        size_t need = kiln_nn_moe_group_workspace(NN, &et, E);
        assert_true(need && need <= sizeof fix.work);
        GOOD(kiln_nn_moe_group(NN, NULL, &ft, &ot, &pt, &et, fix.work, need, &d));
        int n = 0;
        for (int e = 0; e < E; e++) {
            assert_int_equal(first[e], n);
            for (int p = 0; p < P; p++)
                if (expert[p] == e) {
                    assert_int_equal(order[n], p);
                    assert_int_equal(place[p], n++);
                }
        }
        assert_int_equal(first[E], n);
        for (int p = 0; p < P; p++)
            assert_true(expert[p] < E || place[p] == -1);
        for (; n < P; n++)
            assert_int_equal(order[n], -1);
    }
}

/* ---- wide strides, nothing ---- */

/* a's elements twice as far apart, rows three more: NaN lies between. */
static struct arr *spread(const struct arr *a)
{
    assert_true(fix.used < ARRAYS);
    struct arr *b = &fix.a[fix.used++];
    int64_t n = 1, step = 2;
    b->t = a->t;
    b->t.data = b->v;
    b->t.shape = b->shape;
    b->t.strides = b->stride;
    for (int d = a->t.ndim - 1; d >= 0; d--) {
        b->shape[d] = a->t.shape[d];
        b->stride[d] = step;
        step = step * b->shape[d] + (d == a->t.ndim - 1 ? 3 : 0);
        n *= b->shape[d];
    }
    assert_true(step <= MOST);
    for (int64_t i = 0; i < MOST; i++)
        b->v[i] = NAN;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, rest = i;
        for (int d = a->t.ndim - 1; d >= 0; d--) {
            at += rest % b->shape[d] * b->stride[d];
            rest /= b->shape[d];
        }
        b->v[at] = a->v[i];
    }
    return b;
}

/* b, spread, holds what a does, and NaN where it has no element. */
static void alike(const struct arr *a, const struct arr *b)
{
    static float want[MOST];
    struct arr *c = spread(a);
    memcpy(want, c->v, sizeof want);
    fix.used--;
    for (int i = 0; i < MOST; i++)
        assert_true(want[i] == b->v[i] || (isnan(want[i]) && isnan(b->v[i])));
}

static void wide_strides(void **state)
{
    (void)state;
    EACH_DEVICE
    {
        struct arr *a = IN(2, 17, 13), *b = IN(2, 13, 11), *c = OUT(2, 17, 11), *as = spread(a),
                   *bs = spread(b), *cs = spread(c);
        GOOD(kiln_nn_gemm(NN, NULL, &c->t, &a->t, &b->t, 1, NULL, 0, NULL, &d));
        GOOD(kiln_nn_gemm(NN, NULL, &cs->t, &as->t, &bs->t, 1, NULL, 0, NULL, &d));
        alike(c, cs);
        fix.used = 0;
        struct arr *x = IN(3, 3, 19, 7), *y = OUT(3, 3, 19, 7), *xs = spread(x), *ys = spread(y);
        GOOD(kiln_nn_permute(NN, NULL, &ys->t, &x->t, NULL, &d));
        alike(x, ys);
        GOOD(kiln_nn_permute(NN, NULL, &y->t, &xs->t, NULL, &d));
        assert_memory_equal(y->v, x->v, 3 * 19 * 7 * sizeof *x->v);
        struct arr *m = OUT(2, 3, 7);
        int32_t place[21], same[21];
        kiln_tensor pt = ints(place, KILN_I32, 2, SHAPE(3, 7)),
                    st = ints(same, KILN_I32, 2, SHAPE(3, 7));
        GOOD(kiln_nn_argmax(NN, NULL, &pt, &m->t, &x->t, 1, 0, &d));
        GOOD(kiln_nn_argmax(NN, NULL, &st, NULL, &xs->t, 1, 0, &d));
        assert_memory_equal(place, same, sizeof place);
        fix.used = 0;
        x = IN(2, 9, 31), y = OUT(2, 9, 31), xs = spread(x), ys = spread(y);
        for (int axis = 0; axis < 2; axis++) { /* in blocks of either axis: the same bits */
            GOOD(kiln_nn_cumsum(NN, NULL, &y->t, &x->t, axis, 1, &d));
            GOOD(kiln_nn_cumsum(NN, NULL, &ys->t, &xs->t, axis, 1, &d));
            alike(y, ys);
        }
        fix.used = 0;
        x = IN(3, 2, 4, 15), y = OUT(3, 2, 4, 15), xs = spread(x), ys = spread(y);
        GOOD(kiln_nn_groupnorm(NN, NULL, &y->t, NULL, NULL, &x->t, NULL, NULL, 2, 1e-5, &d));
        GOOD(kiln_nn_groupnorm(NN, NULL, &ys->t, NULL, NULL, &xs->t, NULL, NULL, 2, 1e-5, &d));
        alike(y, ys);
    }
}

static void nothing(void **state)
{
    (void)state;
    EACH_DEVICE
    {
        struct arr *no = IN(2, 0, 5), *out = OUT(2, 0, 5), *logit = IN(2, 0, 4), *w = OUT(2, 0, 2),
                   *rows = OUT(2, 3, 5), *line = IN(1, 0), *b = IN(3, 4, 5, 5);
        int32_t none[1] = {77}, h[3] = {5, 5, 5};
        int64_t first[5] = {9, 9, 9, 9, 9};
        kiln_tensor p = ints(none, KILN_I32, 1, SHAPE(0)),
                    pairs = ints(none, KILN_I32, 2, SHAPE(0, 2)),
                    ht = ints(h, KILN_I32, 1, SHAPE(3)), ft = ints(first, KILN_I64, 1, SHAPE(5)),
                    wide = ints(none, KILN_I32, 2, SHAPE(0, 5));
        GOOD(kiln_nn_embedding(NN, NULL, &out->t, &p, &rows->t, -1, &d));
        GOOD(kiln_nn_embedding_gradient(NN, NULL, &rows->t, &p, &no->t, -1, &d));
        for (int i = 0; i < 15; i++)
            assert_true(rows->v[i] == 0);
        guarded(rows);
        GOOD(kiln_nn_histogram(NN, NULL, &ht, &p, &d));
        assert_true(h[0] == 0 && h[1] == 0 && h[2] == 0);
        GOOD(kiln_nn_cumsum(NN, NULL, &out->t, &no->t, 0, 1, &d));
        GOOD(kiln_nn_cumsum(NN, NULL, &out->t, &no->t, 1, 0, &d));
        GOOD(kiln_nn_prefix_sum(NN, NULL, &line->t, &line->t, NULL, 0, &d));
        GOOD(kiln_nn_sort(NN, NULL, &out->t, &wide, &no->t, NULL, 0, &d));
        GOOD(kiln_nn_topk(NN, NULL, &w->t, &pairs, &logit->t, NULL, 0, &d));
        GOOD(kiln_nn_dropout(NN, NULL, &out->t, &no->t, 0.5, 1, &d));
        GOOD(kiln_nn_moe_route(NN, NULL, &w->t, &pairs, &logit->t, 0, &d));
        assert_int_equal(kiln_nn_moe_group_workspace(NN, &pairs, 4), 0);
        GOOD(kiln_nn_moe_group(NN, NULL, &ft, &p, &pairs, &pairs, NULL, 0, &d));
        for (int e = 0; e < 5; e++)
            assert_true(first[e] == 0);
        GOOD(kiln_nn_moe_gemm(NN, NULL, &out->t, &no->t, &b->t, &ft, NULL, &w->t, &pairs,
                              KILN_NN_NONE, NULL, 0, &d));
        assert_int_equal(none[0], 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_by_number), cmocka_unit_test(rows_apart),
        cmocka_unit_test(counts),         cmocka_unit_test(permuted),
        cmocka_unit_test(running),        cmocka_unit_test(ordered),
        cmocka_unit_test(element_wise),   cmocka_unit_test(bytes),
        cmocka_unit_test(experts),        cmocka_unit_test(wide_strides),
        cmocka_unit_test(nothing),        cmocka_unit_test(many_pairs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
