/* norms.c - layer norm, RMS norm, group and batch norm, and their gradients.
 *
 * Layer norm: the mean is off by M = u (t mean(abs x) + 2 abs(mean)), t the roundings of a sum.  The
 * centred values are off by M, all alike, and by their own rounding; the sum of their squares meets M
 * only squared, since centred values add to 0.  So 1 / sqrt(var + eps) is off, relatively, by
 * S = u (t + 5) / 2 + M^2 / (2 (var + eps)) and the function's own 3 u. */
#include <math.h>
#include <stddef.h>

#include "errors.h"

struct moments {
    real mean, size, var, rstd;
    real m, s; /* errors, in u: of the mean; of rstd, relatively */
};

/* n elements of x: index(k) = from + (k / run) * jump + k % run. */
static struct moments moments(const real *x, int64_t n, int64_t run, int64_t jump, real eps,
                              real sums)
{
    struct moments q = {0, 0, 0, 0, 0, 0};
#define AT(k) x[(k) / run * jump + (k) % run]
    for (int64_t i = 0; i < n; i++) {
        q.mean += AT(i) / n;
        q.size += fabsl(AT(i)) / n;
    }
    for (int64_t i = 0; i < n; i++)
        q.var += (AT(i) - q.mean) * (AT(i) - q.mean) / n;
#undef AT
    q.rstd = 1 / sqrtl(q.var + eps);
    q.m = sums * q.size + 2 * fabsl(q.mean);
    q.s = (sums + 5) / 2 + now.u * q.m * q.m / 2 / (q.var + eps) + now.rsqrt;
    return q;
}

static const enum fill kinds[] = {NORMAL, OFFSET, CANCEL, WIDE};
enum { KINDS = sizeof kinds / sizeof *kinds };
static const int shapes[][2] = {{3, 37}, {2, 300}, {5, 1}, {3, 4096}, {2, 20000}};
#define EACH_CASE                                                                                  \
    for (unsigned s = 0; s < (now.full ? 5 : 2); s++)                                              \
        for (unsigned k = 0; k < (now.full ? KINDS : 3); k++, fresh())

static void layernorm(bool blocks)
{
    EACH_CASE
    {
        int rows = shapes[s][0], cols = shapes[s][1];
        int64_t block = 64;
        double eps = 1e-5;
        struct tens *x = tens(now.t, kinds[k], 2, rows, cols),
                    *y = tens(now.t, POISON, 2, rows, cols);
        struct tens *g = tens(now.t, NORMAL, 1, cols), *b = tens(now.t, NORMAL, 1, cols);
        struct tens *mean = tens(now.a, POISON, 1, rows), *rstd = tens(now.a, POISON, 1, rows);
        if (blocks)
            launch("layernorm", "layernorm_looped", "BLOCK%i y x gamma beta mean rstd", block, y, x,
                   g, b, mean, rstd);
        else
            RUN(kiln_nn_layernorm(now.nn, NULL, &y->t, &mean->t, &rstd->t, &x->t, &g->t, &b->t, eps,
                                  &d));
        real sums = blocks ? ceill((real)cols / block) + ceil_log2(block) : ceil_log2(cols);
        for (int64_t r = 0; r < rows; r++) {
            struct moments q = moments(x->v + r * cols, cols, cols, 0, 1e-5L, sums);
            item_of(mean, r, q.mean, q.size, q.m);
            item(rstd, r, q.rstd, q.rstd, q.s);
            for (int64_t c = 0; c < cols; c++) {
                real n = (x->v[r * cols + c] - q.mean) * q.rstd * g->v[c], want = n + b->v[c];
                item_of(y, r * cols + c, want,
                        fabsl(g->v[c]) * q.rstd * (fabsl(x->v[r * cols + c]) + q.size) +
                            fabsl(b->v[c]),
                        fabsl(g->v[c]) * q.rstd * q.m + fabsl(n) * (q.s + 3) + fabsl(want));
            }
        }
    }
}
static void layernorm_whole(void)
{
    layernorm(false);
}
static void layernorm_blocks(void)
{
    layernorm(true);
}

/* All terms are positive: (t + 3) / 2 of the sum, mean and eps, the function, two products. */
static void rmsnorm(bool blocks)
{
    EACH_CASE
    {
        int rows = shapes[s][0], cols = shapes[s][1];
        int64_t block = 64;
        struct tens *x = tens(now.t, kinds[k], 2, rows, cols),
                    *y = tens(now.t, POISON, 2, rows, cols);
        struct tens *g = tens(now.t, NORMAL, 1, cols);
        if (blocks)
            launch("rmsnorm", "rmsnorm_looped", "BLOCK%i y x gamma", block, y, x, g);
        else
            RUN(kiln_nn_rmsnorm(now.nn, NULL, &y->t, &x->t, &g->t, 1e-6, &d));
        real sums = blocks ? ceill((real)cols / block) + ceil_log2(block) : ceil_log2(cols);
        for (int64_t r = 0; r < rows; r++) {
            real q = 0;
            for (int64_t c = 0; c < cols; c++)
                q += x->v[r * cols + c] * x->v[r * cols + c] / cols;
            for (int64_t c = 0; c < cols; c++) {
                real want = x->v[r * cols + c] / sqrtl(q + 1e-6L) * g->v[c];
                item(y, r * cols + c, want, fabsl(want), (sums + 3) / 2 + now.rsqrt + 2);
            }
        }
    }
}
static void rmsnorm_whole(void)
{
    rmsnorm(false);
}
static void rmsnorm_blocks(void)
{
    rmsnorm(true);
}

/* ---- gradients ---- */

static void backward(void)
{
    EACH_CASE
    {
        int rows = shapes[s][0] + 4, cols = shapes[s][1] > 4096 ? 4096 : shapes[s][1];
        bool layer = k % 2 == 0;
        struct tens *x = tens(now.t, kinds[k], 2, rows, cols),
                    *dy = tens(now.t, NORMAL, 2, rows, cols);
        struct tens *dx = tens(now.t, POISON, 2, rows, cols), *g = tens(now.t, NORMAL, 1, cols);
        struct tens *dg = tens(now.t, POISON, 1, cols), *db = tens(now.t, POISON, 1, cols);
        struct tens *mean = tens(now.a, ZERO, 1, rows), *rstd = tens(now.a, ZERO, 1, rows);
        for (int64_t r = 0; r < rows; r++) {
            struct moments q = moments(x->v + r * cols, cols, cols, 0, 1e-5L, 0);
            tens_set(mean, r, q.mean);
            tens_set(rstd, r, q.rstd);
        }
        size_t need = kiln_nn_norm_backward_workspace(now.nn, &x->t);
        RUN(kiln_nn_norm_backward(now.nn, NULL, &dx->t, &dg->t, &db->t, &dy->t, &x->t, &g->t,
                                  layer ? &mean->t : NULL, &rstd->t, workspace(need), need, &d));
        real t = ceil_log2(cols);
        for (int64_t r = 0; r < rows; r++) {
            real h = 0, hn = 0, sh = 0, shn = 0;
#define N(c) ((x->v[r * cols + (c)] - (layer ? mean->v[r] : 0)) * rstd->v[r])
#define H(c) (dy->v[r * cols + (c)] * g->v[c])
            for (int64_t c = 0; c < cols; c++) {
                h += H(c) / cols;
                hn += H(c) * N(c) / cols;
                sh += fabsl(H(c)) / cols;
                shn += fabsl(H(c) * N(c)) / cols;
            }
            if (!layer)
                h = sh = 0;
            for (int64_t c = 0; c < cols; c++) {
                real n = N(c), v = H(c), a = v - n * hn, want = rstd->v[r] * (a - h);
                /* h: 1; n: 2; h n: 4; the sums t, their quotients 1 */
                real e = fabsl(v) + fabsl(n) * (shn * (t + 4) + fabsl(hn) * 4) + fabsl(a) +
                         sh * (t + 1) + fabsl(h) + 2 * fabsl(a - h);
                real terms = fabsl(v) + fabsl(n) * shn + sh;
                item_of(dx, r * cols + c, want, rstd->v[r] * terms, rstd->v[r] * e);
            }
        }
        part("dgamma, dbeta");
        for (int64_t c = 0; c < cols; c++) {
            real sg = 0, sb = 0, ag = 0, ab = 0;
            for (int64_t r = 0; r < rows; r++) {
                real v = dy->v[r * cols + c];
                sg += v * N(c), ag += fabsl(v * N(c));
                sb += v, ab += fabsl(v);
            }
            /* at most rows roundings in a part and between parts */
            item(dg, c, sg, ag, rows + 3);
            item(db, c, sb, ab, rows);
        }
#undef N
#undef H
        part("");
    }
}

/* ---- channels ---- */

static void groupnorm(void)
{
    static const int ext[][4] = {{2, 6, 35, 3}, {1, 4, 300, 4}, {3, 8, 1500, 2}, {2, 5, 1, 1}};
    for (unsigned s = 0; s < (now.full ? 4 : 2); s++)
        for (unsigned k = 0; k < (now.full ? KINDS : 3); k++, fresh()) {
            int N = ext[s][0], C = ext[s][1], L = ext[s][2], groups = ext[s][3], each = C / groups;
            struct tens *x = tens(now.t, kinds[k], 3, N, C, L),
                        *y = tens(now.t, POISON, 3, N, C, L);
            struct tens *g = tens(now.t, NORMAL, 1, C), *b = tens(now.t, NORMAL, 1, C);
            struct tens *mean = tens(now.a, POISON, 2, N, groups),
                        *rstd = tens(now.a, POISON, 2, N, groups);
            RUN(kiln_nn_groupnorm(now.nn, NULL, &y->t, &mean->t, &rstd->t, &x->t, &g->t, &b->t,
                                  groups, 1e-5, &d));
            int64_t block = L < 1024 ? L : 1024;
            real sums = each * ceill((real)L / block) + ceil_log2(block);
            for (int64_t p = 0; p < N * groups; p++) {
                struct moments q = moments(x->v + p * each * L, each * L, each * L, 0, 1e-5L, sums);
                item_of(mean, p, q.mean, q.size, q.m);
                item(rstd, p, q.rstd, q.rstd, q.s);
                for (int64_t i = p * each * L; i < (p + 1) * each * L; i++) {
                    real ga = g->v[i / L % C], n = (x->v[i] - q.mean) * q.rstd * ga;
                    real want = n + b->v[i / L % C];
                    item_of(y, i, want,
                            fabsl(ga) * q.rstd * (fabsl(x->v[i]) + q.size) + fabsl(want - n),
                            fabsl(ga) * q.rstd * q.m + fabsl(n) * (q.s + 3) + fabsl(want));
                }
            }
        }
}

static void batchnorm(void)
{
    static const int ext[][3] = {{3, 5, 35}, {2, 4, 300}, {2, 3, 2500}, {7, 2, 1}};
    for (unsigned s = 0; s < (now.full ? 4 : 2); s++)
        for (unsigned k = 0; k < (now.full ? KINDS : 3); k++, fresh()) {
            int N = ext[s][0], C = ext[s][1], L = ext[s][2];
            struct tens *x = tens(now.t, kinds[k], 3, N, C, L),
                        *y = tens(now.t, POISON, 3, N, C, L);
            struct tens *g = tens(now.t, NORMAL, 1, C), *b = tens(now.t, NORMAL, 1, C);
            struct tens *mean = tens(now.a, POISON, 1, C), *var = tens(now.a, POISON, 1, C);
            struct tens *rm = tens(now.a, NORMAL, 1, C), *rv = tens(now.a, UNIFORM, 1, C);
            real om[8], ov[8];
            for (int c = 0; c < C; c++)
                om[c] = rm->v[c], ov[c] = rv->v[c];
            RUN(kiln_nn_batchnorm_stats(now.nn, NULL, &mean->t, &var->t, &rm->t, &rv->t, &x->t,
                                        0.125, &d));
            int64_t block = L < 1024 ? L : 1024, n = (int64_t)N * L;
            real sums = N * ceill((real)L / block) + ceil_log2(block);
            part("statistics");
            for (int64_t c = 0; c < C; c++) {
                struct moments q = moments(x->v + c * L, n, L, (int64_t)C * L, 0, sums);
                real v = q.var * (sums + 4) + now.u * q.m * q.m, f = (real)n / (n - 1);
                item_of(mean, c, q.mean, q.size, q.m);
                item_of(var, c, q.var, q.var, v);
                real want = om[c] + 0.125L * (q.mean - om[c]);
                item_of(rm, c, want, fabsl(om[c]) + q.size,
                        0.125L * (q.m + 2 * fabsl(q.mean - om[c])) + fabsl(want));
                want = ov[c] + 0.125L * (q.var * f - ov[c]);
                item_of(rv, c, want, ov[c] + q.var * f,
                        0.125L * (v * f + q.var * f + 2 * fabsl(q.var * f - ov[c])) + fabsl(want));
            }
            part("");
            read_back(mean);
            read_back(var);
            RUN(kiln_nn_batchnorm(now.nn, NULL, &y->t, &x->t, &mean->t, &var->t, &g->t, &b->t, 1e-5,
                                  &d));
            for (int64_t i = 0; i < y->n; i++) {
                int64_t c = i / L % C;
                real v = (x->v[i] - mean->v[c]) / sqrtl(var->v[c] + 1e-5L) * g->v[c];
                real want = v + b->v[c];
                /* var + eps: half; the function; gamma; the difference, the product; the sum */
                item_of(y, i, want, fabsl(v) + fabsl(b->v[c]),
                        fabsl(v) * (now.rsqrt + 4) + fabsl(want));
            }
        }
}

const struct test norm_tests[] = {
    {"layernorm layernorm", "kiln_nn_layernorm", "u terms", T_ALL, layernorm_whole},
    {"layernorm layernorm_looped", "kiln_nn_layernorm", "u terms", T_ALL, layernorm_blocks},
    {"rmsnorm rmsnorm", "kiln_nn_rmsnorm", "u y", T_ALL, rmsnorm_whole},
    {"rmsnorm rmsnorm_looped", "kiln_nn_rmsnorm", "u y", T_ALL, rmsnorm_blocks},
    {"norm_backward norm_backward norm_backward_join", "kiln_nn_norm_backward", "u terms", T_ALL,
     backward},
    {"groupnorm groupnorm", "kiln_nn_groupnorm", "u terms", T_ALL, groupnorm},
    {"groupnorm batchnorm_stats batchnorm", "kiln_nn_batchnorm", "u terms", T_ALL, batchnorm},
    {NULL, NULL, NULL, 0, NULL},
};
