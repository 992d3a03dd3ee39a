/* gdn.c - Gated DeltaNet in chunks against the recurrence, on the CPU: RMS ratios of o and of the final
 * state for several shapes and kinds of gates and keys.
 *
 * A line a case: the ratio rms(a - b) / rms(b) for f32 chunks against f32 token by token, and for both
 * against f64 token by token.  The exit status is 1 if a ratio of chunks to f64 is above 1e-4. */
#define _GNU_SOURCE
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kiln_nn.h"

enum { O, Q, K, V, G, BETA, HT, ARRAYS };
enum how { CHUNK, TOKENS, EXACT, HOWS };

struct array {
    int64_t shape[4], n;
    int ndim;
    float *f;
    double *d;
};

static struct array a[ARRAYS];
static float *of[HOWS - 1], *hf[HOWS - 1];

static uint64_t noise;

static double uniform(void)
{
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    return (double)(noise >> 11) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

static void *room(size_t n, size_t one)
{
    void *p = calloc(n, one);
    if (!p)
        exit(3);
    return p;
}

static void shape(int which, int ndim, int64_t s0, int64_t s1, int64_t s2, int64_t s3)
{
    struct array *x = &a[which];
    *x = (struct array){.shape = {s0, s1, s2, s3}, .ndim = ndim, .n = 1};
    for (int i = 0; i < ndim; i++)
        x->n *= x->shape[i];
    x->f = room((size_t)x->n, sizeof(float));
    x->d = room((size_t)x->n, sizeof(double));
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double ratio(const float *x, const double *y, const float *z, int64_t n)
{
    double over = 0, under = 0;
    for (int64_t i = 0; i < n; i++) {
        double right = y ? y[i] : (double)z[i];
        over += ((double)x[i] - right) * ((double)x[i] - right);
        under += right * right;
    }
    return sqrt(over / under);
}

static double run(kiln_nn *nn, enum how how, int64_t b)
{
    kiln_tensor t[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
        void *data = how == EXACT ? (void *)a[i].d
                     : i == O     ? (void *)of[how]
                     : i == HT    ? (void *)hf[how]
                                  : (void *)a[i].f;
        t[i] = (kiln_tensor){.data = data,
                             .dtype = how == EXACT ? KILN_F64 : KILN_F32,
                             .ndim = a[i].ndim,
                             .shape = a[i].shape};
    }
    kiln_nn_gdn p = {.sequences = b, .ht = &t[HT], .norm = 1, .recurrent = how != CHUNK};
    kiln_diags *d = NULL;
    double from = seconds();
    if (kiln_nn_gated_deltanet(nn, NULL, &t[O], &t[Q], &t[K], &t[V], &t[G], &t[BETA], &p, &d)) {
        char text[2000];
        kiln_diags_render(d, 0, text, sizeof text);
        fprintf(stderr, "%s\n", text);
        exit(2);
    }
    kiln_diags_free(d);
    return seconds() - from;
}

/* kind: 0 strong decay, 1 none, 2 none and keys that are nearly one direction */
static bool one(kiln_nn *nn, const int64_t *s, int kind)
{
    static const char *const name[] = {"strong decay", "no decay", "correlated keys"};
    int64_t b = s[0], len = s[1], h = s[2], hv = s[3], d = s[4], n = b * len;
    noise = 1;
    shape(Q, 3, n, h, d, 0);
    shape(K, 3, n, h, d, 0);
    shape(V, 3, n, hv, d, 0);
    shape(O, 3, n, hv, d, 0);
    shape(G, 2, n, hv, 0, 0);
    shape(BETA, 2, n, hv, 0, 0);
    shape(HT, 4, b, hv, d, d);
    for (int i = 0; i < HOWS - 1; i++) {
        of[i] = room((size_t)a[O].n, sizeof(float));
        hf[i] = room((size_t)a[HT].n, sizeof(float));
    }
    double *common = room((size_t)(h * d), sizeof(double));
    for (int64_t i = 0; i < h * d; i++)
        common[i] = normal();
    for (int i = Q; i <= BETA; i++)
        for (int64_t j = 0; j < a[i].n; j++) {
            double v = i == G ? (kind ? 0 : -8 * uniform()) : i == BETA ? uniform() : normal();
            if (i == K && kind == 2)
                v = common[j % (h * d)] + 0.1 * v;
            a[i].f[j] = (float)v;
            a[i].d[j] = (double)a[i].f[j];
        }
    double t[HOWS];
    for (int i = 0; i < HOWS; i++)
        t[i] = run(nn, (enum how)i, b);
    double worst =
        fmax(ratio(of[CHUNK], a[O].d, NULL, a[O].n), ratio(hf[CHUNK], a[HT].d, NULL, a[HT].n));
    printf("(%lld, %lld, %lld, %lld, %lld) %-15s  o %.2e  S %.2e | to f64: chunks o %.2e S %.2e, "
           "tokens o %.2e S %.2e | s %.2f %.2f %.2f\n",
           (long long)b, (long long)len, (long long)h, (long long)hv, (long long)d, name[kind],
           ratio(of[CHUNK], NULL, of[TOKENS], a[O].n), ratio(hf[CHUNK], NULL, hf[TOKENS], a[HT].n),
           ratio(of[CHUNK], a[O].d, NULL, a[O].n), ratio(hf[CHUNK], a[HT].d, NULL, a[HT].n),
           ratio(of[TOKENS], a[O].d, NULL, a[O].n), ratio(hf[TOKENS], a[HT].d, NULL, a[HT].n),
           t[CHUNK], t[TOKENS], t[EXACT]);
    fflush(stdout);
    for (int i = 0; i < ARRAYS; i++) {
        free(a[i].f);
        free(a[i].d);
    }
    for (int i = 0; i < HOWS - 1; i++) {
        free(of[i]);
        free(hf[i]);
    }
    free(common);
    return worst <= 1e-4;
}

int main(void)
{
    static const int64_t shapes[][5] = {{2, 75, 4, 4, 64},
                                        {2, 500, 3, 3, 60},
                                        {2, 1000, 2, 8, 128},
                                        {4, 1024, 4, 4, 128},
                                        {1, 4096, 4, 16, 128}};
    kiln_options opt = KILN_OPTIONS_INIT;
    kiln_context *ctx = NULL;
    kiln_nn *nn = NULL;
    kiln_options_from_env(&opt);
    opt.device = KILN_DEVICE_CPU;
    if (kiln_context_create(&opt, &ctx, NULL) || kiln_nn_create(ctx, &nn, NULL))
        return 2;
    bool good = true;
    for (int i = 0; i < 5; i++)
        for (int kind = 0; kind < 3; kind++)
            good &= one(nn, shapes[i], kind);
    kiln_nn_free(nn);
    kiln_context_free(ctx);
    return good ? 0 : 1;
}
