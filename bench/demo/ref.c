/* ref.c - the independent reference: plain C in double precision on libm, one row after the
 * other, with nothing of Kiln in it. */
#include <math.h>
#include <pthread.h>

#include "demo.h"

enum { MOST = 256 };

struct sums {
    struct error e;
    double err2, ref2;
};

struct job {
    enum ref_kind kind;
    const float *x, *y;
    size_t cols, from, to; /* rows */
    struct sums s;
};

/* Units in the last place of f32 at a value. */
static double ulp_at(double v)
{
    int e;
    frexp(fabs(v), &e);
    return ldexp(1, e - 24 < -149 ? -149 : e - 24);
}

static void compare(struct sums *s, double ref, double got, size_t at)
{
    if (!isfinite(ref) || !isfinite(got)) {
        s->e.mask += !(ref == got || (isnan(ref) && isnan(got)));
        return;
    }
    double err = fabs(got - ref), ulp = err / ulp_at(ref);
    s->err2 += err * err;
    s->ref2 += ref * ref;
    if (err > s->e.max_abs)
        s->e.max_abs = err;
    if (ulp > s->e.max_ulp) {
        s->e.max_ulp = ulp;
        s->e.worst = at;
    }
}

static void softmax_row(struct job *j, size_t r)
{
    const float *x = j->x + r * j->cols, *y = j->y + r * j->cols;
    double m = -(double)INFINITY, sum = 0;
    for (size_t c = 0; c < j->cols; c++)
        m = (double)x[c] > m ? (double)x[c] : m;
    for (size_t c = 0; c < j->cols; c++)
        sum += exp((double)x[c] - m);
    for (size_t c = 0; c < j->cols; c++)
        compare(&j->s, exp((double)x[c] - m) / sum, (double)y[c], r * j->cols + c);
}

/* x * Phi(x): erfc keeps the digits of the negative tail, where 1 + erf would cancel. */
static double gelu_erf(double x)
{
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}

/* 0.5 x (1 + tanh u) = x / (1 + e^-2u), which does not cancel for negative u. */
static double gelu_tanh(double x)
{
    double u = 0.79788456080286535588 * x * (1 + 0.044715 * x * x);
    return x / (1 + exp(-2 * u));
}

static void gelu_row(struct job *j, size_t r)
{
    double (*f)(double) = j->kind == REF_GELU_ERF ? gelu_erf : gelu_tanh;
    for (size_t i = r * j->cols; i < (r + 1) * j->cols; i++)
        compare(&j->s, f((double)j->x[i]), (double)j->y[i], i);
}

static void *work(void *arg)
{
    struct job *j = arg;
    for (size_t r = j->from; r < j->to; r++)
        if (j->kind == REF_SOFTMAX)
            softmax_row(j, r);
        else
            gelu_row(j, r);
    return NULL;
}

void reference(enum ref_kind kind, const float *x, const float *y, size_t rows, size_t cols,
               unsigned threads, struct error *out)
{
    struct job job[MOST];
    pthread_t id[MOST];
    bool started[MOST] = {false};
    unsigned n = threads < MOST ? threads : MOST;
    for (unsigned i = 0; i < n; i++) {
        job[i] = (struct job){.kind = kind, .x = x, .y = y, .cols = cols,
                              .from = rows * i / n, .to = rows * (i + 1) / n};
        started[i] = i > 0 && pthread_create(&id[i], NULL, work, &job[i]) == 0;
    }
    double err2 = 0, ref2 = 0;
    *out = (struct error){0};
    for (unsigned i = 0; i < n; i++) {
        if (started[i])
            pthread_join(id[i], NULL);
        else
            work(&job[i]);
        const struct sums *s = &job[i].s;
        err2 += s->err2;
        ref2 += s->ref2;
        out->mask += s->e.mask;
        if (s->e.max_abs > out->max_abs)
            out->max_abs = s->e.max_abs;
        if (s->e.max_ulp > out->max_ulp) {
            out->max_ulp = s->e.max_ulp;
            out->worst = s->e.worst;
        }
    }
    out->rms = ref2 > 0 ? sqrt(err2 / ref2) : err2 > 0 ? (double)INFINITY : 0;
}
