/* elements.c - element by element: activations, their gradients, rotary embedding, sums. */
#include <math.h>
#include <stddef.h>

#include "errors.h"

static const enum fill kinds[] = {NORMAL, SPREAD, WIDE, CANCEL};
enum { KINDS = sizeof kinds / sizeof *kinds };
#define EACH_KIND for (unsigned k = 0; k < (now.full ? KINDS : 3); k++, fresh())
static int length(void)
{
    return now.full ? 5000 : 400;
}

static real sigmoidl(real x)
{
    return 1 / (1 + expl(-x));
}
static const real root2 = 1.41421356237309504880169L, root_pi2 = 0.797884560802865355879892L;

static real value(kiln_nn_activation act, real x)
{
    switch (act) {
    case KILN_NN_RELU: return x > 0 ? x : 0;
    case KILN_NN_SILU: return x * sigmoidl(x);
    case KILN_NN_GELU: return x / 2 * erfcl(-x / root2);
    case KILN_NN_GELU_TANH: return x * sigmoidl(2 * root_pi2 * (x + 0.044715L * x * x * x));
    case KILN_NN_SIGMOID: return sigmoidl(x);
    default: return tanhl(x);
    }
}

static real slope(kiln_nn_activation act, real x)
{
    real s = sigmoidl(x), e = sigmoidl(-x);
    if (act == KILN_NN_RELU)
        return x > 0;
    if (act == KILN_NN_SILU)
        return s + x * s * e;
    if (act == KILN_NN_GELU)
        return erfcl(-x / root2) / 2 + x * expl(-x * x / 2) * root_pi2 / 2;
    if (act == KILN_NN_GELU_TANH) {
        real z = 2 * root_pi2 * (x + 0.044715L * x * x * x);
        return sigmoidl(z) +
               x * sigmoidl(z) * sigmoidl(-z) * 2 * root_pi2 * (1 + 3 * 0.044715L * x * x);
    }
    if (act == KILN_NN_SIGMOID)
        return s * e;
    return 1 - tanhl(x) * tanhl(x);
}

/* What 16-bit types take on a GPU, in u of f32 (docs/math.md): its unit's tanh 2^-11 of the value, the
 * short erfc 2^-15. */
static const real unit_tanh = 8192, short_erfc = 512;

/* docs/math.md: in ulp of f32 or f64, which are up to 2 u of the value.  tanh form: the rounding of
 * the exponent, which grows with it. */
static real act_bound(kiln_nn_activation act, real x)
{
    real fast = now.exact_math ? 0 : 8;
    switch (act) {
    case KILN_NN_RELU: return 0;
    case KILN_NN_SILU:
        return 10 + fast + (now.t == KILN_F64 || fast > 0 ? fabsl(x < 0 ? x : 0) / 2 : 0);
    case KILN_NN_GELU:
        /* 16-bit arguments, a short polynomial: 0.04 ulp of f16, 0.013 of bf16, which may be 2^-10
         * and 2^-7 of the value */
        return now.t == KILN_F64 ? 16 : now.t == KILN_F32 ? 14 : now.t == KILN_F16 ? 656 : 1704;
    case KILN_NN_GELU_TANH: {
        real z = x < 0 ? 2 * root_pi2 * (-x + 0.044715L * -x * x * x) : 0;
        return 8 + fast + 4 * z;
    }
    case KILN_NN_TANH: return fast > 0 ? unit_tanh + 3 : 3;
    default: return 3 + (fast > 0 ? 8 + fabsl(x) : 0);
    }
}

static void activations(void)
{
    static const char *const what[] = {"", "gelu", "gelu_tanh", "relu", "silu", "sigmoid", "tanh"};
    for (int a = KILN_NN_GELU; a <= KILN_NN_TANH; a++)
        EACH_KIND
        {
            kiln_nn_activation act = (kiln_nn_activation)a;
            int n = length();
            struct tens *x = tens(now.t, kinds[k], 1, n), *y = tens(now.t, POISON, 1, n);
            struct tens *g = tens(now.t, NORMAL, 1, n), *z = tens(now.t, POISON, 1, n);
            RUN(kiln_nn_act(now.nn, NULL, act, &y->t, &x->t, NULL, &d));
            RUN(kiln_nn_act(now.nn, NULL, act, &z->t, &x->t, &g->t, &d));
            part(what[a]);
            for (int64_t i = 0; i < n; i++) {
                real want = value(act, x->v[i]), e = act_bound(act, x->v[i]);
                item(y, i, want, fabsl(want), e);
                want *= g->v[i];
                item_lost(z, i, want, fabsl(want), e + 1, g->v[i]);
            }
            x->t.ndim = 2, x->shape[0] = 2, x->shape[1] = n / 2;
            struct tens *h = tens(now.t, POISON, 2, 2, n / 4);
            RUN(kiln_nn_act_halves(now.nn, NULL, act, &h->t, &x->t, &d));
            for (int64_t i = 0; i < h->n; i++) {
                int64_t at = i / (n / 4) * (n / 2) + i % (n / 4);
                real want = value(act, x->v[at]) * x->v[at + n / 4];
                item_lost(h, i, want, fabsl(want), act_bound(act, x->v[at]) + 1, x->v[at + n / 4]);
            }
        }
}

/* 2e-6 (1 + abs) in f32, which is 34 u; terms cancel near the zeros of the slope. */
static void act_backward(void)
{
    for (int a = KILN_NN_GELU; a <= KILN_NN_TANH; a++)
        EACH_KIND
        {
            kiln_nn_activation act = (kiln_nn_activation)a;
            int n = length();
            struct tens *x = tens(now.t, kinds[k], 1, n), *dx = tens(now.t, POISON, 1, n);
            struct tens *g = tens(now.t, NORMAL, 1, n), *dy = tens(now.t, NORMAL, 1, n);
            struct tens *dg = tens(now.t, POISON, 1, n);
            RUN(kiln_nn_act_backward(now.nn, NULL, act, &dx->t, &dg->t, &dy->t, &x->t, &g->t, &d));
            for (int64_t i = 0; i < n; i++) {
                real s = slope(act, x->v[i]), w = dy->v[i] * g->v[i];
                real t = 0; /* of 1 - t t, and of the cumulative part of gelu's slope */
                if (!now.exact_math && act == KILN_NN_TANH)
                    t = 2 * unit_tanh;
                if (!now.exact_math && act == KILN_NN_GELU)
                    t = short_erfc * erfcl(-x->v[i] / root2) / 2;
                part("");
                item(dx, i, w * s, fabsl(w), 34 * (1 + fabsl(s)) + t);
                real v = dy->v[i] * value(act, x->v[i]);
                part("dgate");
                item_lost(dg, i, v, fabsl(v), act_bound(act, x->v[i]) + 1, dy->v[i]);
            }
        }
}

static void gelus(void)
{
    EACH_KIND
    {
        int n = length();
        struct tens *x = tens(now.t, kinds[k], 1, n), *y = tens(now.t, POISON, 1, n),
                    *z = tens(now.t, POISON, 1, n);
        launch("gelu", "erf_form", "y x", y, x);
        launch("gelu", "tanh_form", "y x", z, x);
        for (int64_t i = 0; i < n; i++) {
            real v = value(KILN_NN_GELU, x->v[i]), w = value(KILN_NN_GELU_TANH, x->v[i]);
            part("erf");
            item(y, i, v, fabsl(v), act_bound(KILN_NN_GELU, x->v[i]));
            part("tanh");
            item(z, i, w, fabsl(w), act_bound(KILN_NN_GELU_TANH, x->v[i]));
        }
    }
}

static void sums(void)
{
    EACH_KIND
    {
        int n = length();
        struct tens *x = tens(now.t, kinds[k], 1, n), *y = tens(now.t, kinds[(k + 1) % 2], 1, n);
        struct tens *z = tens(now.t, POISON, 1, n);
        launch("add", "add", "z x y", z, x, y);
        for (int64_t i = 0; i < n; i++)
            item(z, i, x->v[i] + y->v[i], fabsl(x->v[i] + y->v[i]), 1);
    }
}

static void saxpy(void)
{
    static const char *const name[] = {"saxpy", "saxpy_stride", "saxpy_fma", "saxpy_stride_fma"};
    for (int form = 0; form < 4; form++)
        EACH_KIND
        {
            int n = length();
            double f = 1.37;
            real a = now.a == KILN_F32 ? (real)(float)f : (real)f;
            struct tens *x = tens(now.t, kinds[k], 1, n), *y = tens(now.t, kinds[k], 1, n);
            struct tens *z = tens(now.t, ZERO, 1, n);
            for (int i = 0; i < n; i++)
                tens_set(z, i, y->v[i]);
            launch("saxpy", name[form], "a%f y x", f, z, x);
            part(form < 2 ? "" : "fma");
            for (int64_t i = 0; i < n; i++) {
                real p = a * x->v[i], want = fmal(a, x->v[i], y->v[i]);
                item_of(z, i, want, fabsl(p) + fabsl(y->v[i]),
                        fabsl(want) + (form < 2 ? fabsl(p) : 0));
            }
        }
}

/* 1 - p is rounded, and the quotient. */
static void dropout(void)
{
    EACH_KIND
    {
        int n = length();
        double p = 0.3;
        struct tens *x = tens(now.t, kinds[k], 1, n), *y = tens(now.t, POISON, 1, n);
        struct tens *dy = tens(now.t, kinds[k], 1, n), *dx = tens(now.t, POISON, 1, n);
        RUN(kiln_nn_dropout(now.nn, NULL, &y->t, &x->t, p, 7, &d));
        launch("dropout", "dropout_backward", "seed%i p%f dx dy", (int64_t)7, p, dx, dy);
        read_back(y);
        real keep = 1 - (real)(float)p;
        for (int64_t i = 0; i < n; i++) {
            bool kept = y->v[i] != 0;
            real want = kept ? x->v[i] / keep : 0, back = kept ? dy->v[i] / keep : 0;
            item(y, i, want, fabsl(want), 2);
            item(dx, i, back, fabsl(back), 2);
        }
    }
}

/* Two products, a sum; with theta the sine and cosine are off by 2^-21 (8 u) in f32, in f64 by the
 * angle's own place 2^-51 (4 u place) and 2 u. */
static void rope(void)
{
    EACH_KIND
    for (int near = 0; near < 2; near++)
        for (int back = 0; back < 2; back++) {
            int T = now.full ? 40 : 5, H = 3, D = now.full ? 80 : 20, R = D - 4, h = R / 2;
            struct tens *x = tens(now.t, kinds[k], 3, T, H, D),
                        *y = tens(now.t, POISON, 3, T, H, D);
            struct tens *z = tens(now.t, POISON, 3, T, H, D);
            struct tens *co = tens(now.a, ZERO, 2, T, h), *si = tens(now.a, ZERO, 2, T, h);
            int64_t begin = 1000;
            for (int t = 0; t < T; t++)
                for (int i = 0; i < h; i++) {
                    tens_set(co, t * h + i, cosl(t * powl(10000, -(real)i / h)));
                    tens_set(si, t * h + i, sinl(t * powl(10000, -(real)i / h)));
                }
            RUN(kiln_nn_rope(now.nn, NULL, &y->t, &x->t, &co->t, &si->t, NULL, near, back, &d));
            RUN(kiln_nn_rope_theta(now.nn, NULL, &z->t, &x->t, R, 10000, NULL, begin, near, back,
                                   &d));
            for (int64_t i = 0; i < y->n; i++) {
                int64_t t = i / D / H, e = i % D;
                if (e >= R) {
                    part("");
                    item(y, i, x->v[i], 0, 0);
                    part("theta");
                    item(z, i, x->v[i], 0, 0);
                    continue;
                }
                int64_t p = near ? e / 2 : e % h;
                bool second = near ? e % 2 : e >= h;
                real other = x->v[i + (second ? -1 : 1) * (near ? 1 : h)];
                real sign = second != (back != 0) ? 1 : -1;
                real c = co->v[t * h + p], s = si->v[t * h + p] * sign;
                real want = x->v[i] * c + other * s, size = fabsl(x->v[i] * c) + fabsl(other * s);
                part("");
                item(y, i, want, size, 2);
                real turn = (t + begin) * powl(10000, -(real)p / h);
                c = cosl(turn), s = sinl(turn) * sign;
                want = x->v[i] * c + other * s;
                size = fabsl(x->v[i]) + fabsl(other);
                part("theta");
                item(z, i, want, size, now.a == KILN_F32 ? 10 : 4 + 4 * (real)(t + begin));
            }
        }
}

const struct test element_tests[] = {
    {"activation act act_mul act_halves", "kiln_nn_act", "u y", T_ALL, activations},
    {"activation act_backward", "kiln_nn_act_backward", "u dy gate", T_ALL, act_backward},
    {"gelu erf_form tanh_form", "kiln_nn_act", "u y", T_ALL, gelus},
    {"add add", "", "u y", T_ALL, sums},
    {"saxpy saxpy saxpy_fma saxpy_stride saxpy_stride_fma", "", "u terms", T_ALL, saxpy},
    {"dropout dropout dropout_backward", "kiln_nn_dropout", "u y", T_F32 | T_F16 | T_BF16, dropout},
    {"rope rope rope_theta", "kiln_nn_rope", "u terms", T_ALL, rope},
    {NULL, NULL, NULL, 0, NULL},
};
