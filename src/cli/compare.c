/* compare.c - how far an array is from a reference (docs/numerics.md, tolerances), and summaries.
 *
 * Differences are taken in double.  A unit in the last place is that of the array's own type at
 * the reference's magnitude, so that a double reference gives fractions of a unit. */
#include "cli/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    *bits = kl_elem_load(a->elem, kl_arr_at(a, i));
    return kl_elem_double(a->elem, *bits);
}

static double rms_of(const struct kl_arr *a)
{
    double sum = 0;
    uint64_t n = 0, bits;
    for (uint64_t i = 0; i < a->count; i++) {
        double v = at(a, i, &bits);
        if (!mask(v))
            sum += v * v, n++;
    }
    return n ? sqrt(sum / (double)n) : 0;
}

void kl_compare(const struct kl_arr *got, const struct kl_arr *ref, const struct kl_tol *tol,
                struct kl_cmp *c)
{
    double e2 = 0, r2 = 0, far = -1;
    double scale = tol->kind == KL_TOL_REL ? rms_of(ref) : 0;
    bool flt = kl_is_float(got->elem);
    *c = (struct kl_cmp){.count = got->count, .limit = tol->v};
    for (uint64_t i = 0; i < got->count; i++) {
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
            e2 += err * err;
            r2 += r * r;
        }
        c->max_abs = err > c->max_abs ? err : c->max_abs;
        c->max_ulp = ulp > c->max_ulp ? ulp : c->max_ulp;
        switch (tol->kind) {
        case KL_TOL_EXACT: bad = !same; break;
        case KL_TOL_ULP: bad |= ulp > tol->v; break;
        case KL_TOL_REL: bad |= err > tol->v * fmax(fabs(r), scale); break;
        case KL_TOL_DEFAULT: bad |= !flt && !same; break;
        }
        if (bad && c->nfirst < KL_CMP_FIRST)
            c->first[c->nfirst++] = i;
        if (bad ? !c->beyond : !c->beyond && err > far)
            c->worst = i, far = err;
        c->beyond += bad;
    }
    c->rms = e2 == 0 ? 0 : r2 == 0 ? (double)INFINITY : sqrt(e2 / r2);
    c->ok = c->beyond == 0;
    if (tol->kind == KL_TOL_DEFAULT && flt) {
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
