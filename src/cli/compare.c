/* compare.c - how far an array is from a reference (docs/numerics.md, tolerances), and summaries.
 *
 * Differences are taken in double.  A unit in the last place is that of the array's own type at
 * the reference's magnitude, so that a double reference gives fractions of a unit. */
#include "cli/compare.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Digits, least exponent, and the RMS ratio that counts as right, by type. */
static const struct {
    int digits, emin;
    double rms;
} floats[KL_NELEM] = {
    [KL_f16] = {11, -14, 1e-3},    [KL_bf16] = {8, -126, 5e-3}, [KL_f32] = {24, -126, 1e-6},
    [KL_f64] = {53, -1022, 1e-14}, [KL_f8e4m3] = {4, -6, 5e-2}, [KL_f8e5m2] = {3, -14, 1e-1},
};

bool kl_tol_parse(const char *s, struct kl_tol *out)
{
    size_t n = strlen(s);
    struct kl_number v;
    bool ulp = n > 3 && (strcmp(s + n - 3, "ulp") == 0 || strcmp(s + n - 3, "ULP") == 0);
    if (!kl_number_parse(s, ulp ? n - 3 : n, &v) || !(v.f >= 0) || isinf(v.f))
        return false;
    *out = (struct kl_tol){ulp ? KL_TOL_ULP : KL_TOL_REL, v.f};
    return true;
}

bool kl_arr_same_shape(const struct kl_arr *a, const struct kl_arr *b)
{
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static double unit(enum kl_elem e, double at)
{
    if (!kl_is_float(e))
        return 1;
    int x = at == 0 ? floats[e].emin : ilogb(at);
    if (x < floats[e].emin)
        x = floats[e].emin;
    return ldexp(1, x - floats[e].digits + 1);
}

static int mask(double v)
{
    return isnan(v) ? 1 : isinf(v) ? (v > 0 ? 2 : 3) : 0;
}

static double at(const struct kl_arr *a, uint64_t i, uint64_t *bits)
{
    const void *p =
        a->dense ? (const char *)a->data + i * kl_elems[a->elem].bytes : kl_arr_at(a, i);
    *bits = kl_elem_load(a->elem, p);
    return kl_elem_double(a->elem, *bits);
}

/* ---- parts ---- */

/* Large arrays are compared in parts of this many elements, by several threads; the parts are put
 * together in order, so that the result does not depend on how many there are. */
#define PART ((uint64_t)1 << 20)
enum { THREADS = 32 };

struct part {
    struct kl_cmp c;
    double e2, r2, far;  /* sums of squares; the largest error before the first bad element */
    double sum;          /* of the reference's squares, with how many */
    uint64_t n;
};
struct job {
    const struct kl_arr *got, *ref;
    const struct kl_tol *tol;
    double scale;
    bool scaling; /* only the reference's RMS is wanted */
    struct part *part;
    uint64_t parts, next; /* next: by an atomic counter */
};

static void measure(const struct job *j, struct part *p, uint64_t from, uint64_t to)
{
    uint64_t bits;
    for (uint64_t i = from; i < to; i++) {
        double v = at(j->ref, i, &bits);
        if (!mask(v))
            p->sum += v * v, p->n++;
    }
}

static void compare(const struct job *j, struct part *p, uint64_t from, uint64_t to)
{
    const struct kl_arr *got = j->got, *ref = j->ref;
    const struct kl_tol *tol = j->tol;
    struct kl_cmp *c = &p->c;
    bool flt = kl_is_float(got->elem);
    p->far = -1;
    for (uint64_t i = from; i < to; i++) {
        uint64_t gb, rb;
        double g = at(got, i, &gb), r = at(ref, i, &rb);
        int gm = mask(g), rm = mask(r);
        bool same = got->elem == ref->elem ? gb == rb || (gm == 1 && rm == 1)
                                           : g == r || (gm == 1 && rm == 1);
        double err = gm || rm ? 0 : fabs(g - r), ulp = err == 0 ? 0 : err / unit(got->elem, r);
        bool bad = gm != rm;
        c->differ += !same;
        c->masks += gm != rm;
        if (!gm && !rm) {
            p->e2 += err * err;
            p->r2 += r * r;
        }
        c->max_abs = err > c->max_abs ? err : c->max_abs;
        c->max_ulp = ulp > c->max_ulp ? ulp : c->max_ulp;
        switch (tol->kind) {
        case KL_TOL_EXACT: bad = !same; break;
        case KL_TOL_ULP: bad |= ulp > tol->v; break;
        case KL_TOL_REL: bad |= err > tol->v * fmax(fabs(r), j->scale); break;
        case KL_TOL_DEFAULT: bad |= !flt && !same; break;
        }
        if (bad && c->nfirst < KL_CMP_FIRST)
            c->first[c->nfirst++] = i;
        if (bad ? !c->beyond : !c->beyond && err > p->far)
            c->worst = i, p->far = err;
        c->beyond += bad;
    }
}

static void *work(void *user)
{
    struct job *j = user;
    for (;;) {
        uint64_t k = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED), from = k * PART;
        if (k >= j->parts)
            return NULL;
        uint64_t to = from + PART < j->ref->count ? from + PART : j->ref->count;
        if (j->scaling)
            measure(j, &j->part[k], from, to);
        else
            compare(j, &j->part[k], from, to);
    }
}

static void run_parts(struct job *j)
{
    pthread_t thread[THREADS];
    size_t started = 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t n = j->parts < THREADS ? j->parts : THREADS;
    j->next = 0;
    while (started + 1 < n && (long)started + 1 < cores &&
           pthread_create(&thread[started], NULL, work, j) == 0)
        started++;
    work(j);
    while (started)
        pthread_join(thread[--started], NULL);
}

/* p behind what m has. */
static void join(struct part *m, const struct part *p)
{
    struct kl_cmp *c = &m->c;
    const struct kl_cmp *d = &p->c;
    if (!c->beyond && (d->beyond || p->far > m->far)) {
        c->worst = d->worst;
        m->far = p->far;
    }
    for (uint32_t i = 0; i < d->nfirst && c->nfirst < KL_CMP_FIRST; i++)
        c->first[c->nfirst++] = d->first[i];
    c->differ += d->differ;
    c->masks += d->masks;
    c->beyond += d->beyond;
    c->max_abs = fmax(c->max_abs, d->max_abs);
    c->max_ulp = fmax(c->max_ulp, d->max_ulp);
    m->e2 += p->e2;
    m->r2 += p->r2;
    m->sum += p->sum;
    m->n += p->n;
}

static struct part all_parts(struct job *j)
{
    struct part all = {.far = -1};
    j->parts = (j->ref->count + PART - 1) / PART;
    j->part = kl_xalloc((j->parts + 1) * sizeof *j->part);
    run_parts(j);
    for (uint64_t k = 0; k < j->parts; k++)
        join(&all, &j->part[k]);
    free(j->part);
    return all;
}

void kl_compare(const struct kl_arr *got, const struct kl_arr *ref, const struct kl_tol *tol,
                struct kl_cmp *c)
{
    struct job j = {.got = got, .ref = ref, .tol = tol};
    if (tol->kind == KL_TOL_REL) {
        j.scaling = true;
        struct part rms = all_parts(&j);
        j.scale = rms.n ? sqrt(rms.sum / (double)rms.n) : 0;
        j.scaling = false;
    }
    struct part all = all_parts(&j);
    *c = all.c;
    c->count = got->count;
    c->limit = tol->v;
    c->rms = all.e2 == 0 ? 0 : all.r2 == 0 ? (double)INFINITY : sqrt(all.e2 / all.r2);
    c->ok = c->beyond == 0;
    if (tol->kind == KL_TOL_DEFAULT && kl_is_float(got->elem)) {
        c->limit = floats[got->elem].rms;
        c->ok &= c->rms <= c->limit;
    }
}

void kl_cmp_text(const struct kl_cmp *c, const struct kl_arr *got, const struct kl_tol *tol,
                 char *buf, size_t n)
{
    char where[200], limit[120] = "";
    bool rms = tol->kind == KL_TOL_DEFAULT && kl_is_float(got->elem);
    if (!c->differ) {
        snprintf(buf, n, "equal in all %llu elements", (unsigned long long)c->count);
        return;
    }
    if (rms)
        snprintf(limit, sizeof limit, " (limit %g)", c->limit);
    else if (c->beyond)
        snprintf(limit, sizeof limit, ", %llu of %llu elements beyond %g%s",
                 (unsigned long long)c->beyond, (unsigned long long)c->count, c->limit,
                 tol->kind == KL_TOL_ULP ? " ULP" : "");
    snprintf(buf, n, "max abs %.3g, max ULP %.3g, RMS ratio %.3g%s, NaN/inf masks %s, %s at %s",
             c->max_abs, c->max_ulp, c->rms, limit, c->masks ? "differ" : "equal",
             c->beyond ? "first" : "largest",
             got->ndim ? kl_index_text(got, c->worst, where, sizeof where) : "the scalar");
}

void kl_summary(const struct kl_arr *a, FILE *f)
{
    enum { FIRST = 8 };
    char shape[200], t[32], lo[32], hi[32];
    double sum = 0, least = 0, most = 0;
    uint64_t nan = 0, n = 0, bits, lob = 0, hib = 0;
    for (uint64_t i = 0; i < a->count; i++) {
        double v = at(a, i, &bits);
        if (isnan(v)) {
            nan++;
            continue;
        }
        if (!n || v < least)
            least = v, lob = bits;
        if (!n || v > most)
            most = v, hib = bits;
        sum += v;
        n++;
    }
    fprintf(f, "%s  %s[%s]", a->p->name, kl_elems[a->elem].name,
            kl_shape_text(a->ndim, a->shape, shape, sizeof shape));
    if (n)
        fprintf(f, "  min %s  max %s", kl_elem_text(a->elem, lob, lo),
                kl_elem_text(a->elem, hib, hi));
    if (n && !isnan(sum)) /* inf beside -inf has no mean */
        fprintf(f, "  mean %.6g", sum / (double)n);
    if (kl_is_float(a->elem))
        fprintf(f, "  NaN %llu", (unsigned long long)nan);
    fputs(a->count ? "\n  " : "\n", f);
    for (uint64_t i = 0; i < a->count && i < FIRST; i++) {
        at(a, i, &bits);
        fprintf(f, i ? ", %s" : "%s", kl_elem_text(a->elem, bits, t));
    }
    if (a->count)
        fputs(a->count > FIRST ? ", ...\n" : "\n", f);
}
