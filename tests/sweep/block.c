/* block.c - the memory of a case: where arrays lie, what is in it, and comparing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/elem.h"
#include "sweep.h"

enum { GUARD = 256 };

static uint64_t next(uint64_t *s)
{
    uint64_t z = *s += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- values ---- */

static double uniform(uint64_t *s)
{
    return (double)(next(s) >> 11) * 0x1p-53;
}

/* Mostly ordinary numbers; what is special comes in some rows only, so that sums over the others
 * stay finite. */
static uint64_t value(uint64_t *s, enum kl_elem t, unsigned kind)
{
    static const double odd[] = {(double)NAN,       (double)INFINITY, (double)-INFINITY, -0.0,
                                 0.0,               1e-40,            -1e-42,            6e-8,
                                 3e38,              -3e38,            65504,             10.06,
                                 1e-310,            88.8,             -104};
    static const int64_t whole[] = {0, -1, 1, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 255};
    uint64_t r = next(s);
    if (t == KL_bool)
        return r & 1;
    if (!kl_is_float(t))
        return kl_canon(t, r % 16 == 0 ? (uint64_t)whole[r / 16 % 8] : r >> 7);
    double x = (uniform(s) + uniform(s) + uniform(s) + uniform(s) - 2) * 1.7;
    switch (kind) {
    case 0: x = r % 8 ? x : odd[r / 8 % 15]; break;         /* anything */
    case 1: x = r % 4 ? x * 1e-40 : -0.0; break;            /* subnormals of f32 */
    case 2: x = r % 4 ? (double)-INFINITY : x; break;       /* mostly masked */
    case 3: x = x * 30; break;
    case 4: x = (double)-INFINITY; break;
    default: break;
    }
    return kl_convert(t, KL_f64, kl_f64_bits(x));
}

/* ---- where arrays lie ---- */

static kiln_dtype acc(kiln_dtype t)
{
    switch (t) {
    case KILN_F16:
    case KILN_BF16: return KILN_F32;
    case KILN_U8: return KILN_I32;
    default: return t;
    }
}

static void lay(const struct kase *c, struct block *b, struct laid *l)
{
    enum place p = l->a->written ? c->out : c->in;
    int64_t es = (int64_t)kiln_dtype_size(l->t), lo = 0, hi = 0;
    l->ndim = (int32_t)strlen(l->a->dims);
    for (int32_t d = 0; d < l->ndim; d++)
        l->ext[d] = c->size[(unsigned char)l->a->dims[d]];
    if (l->ndim == 1) {
        l->str[0] = p == MIRRORED ? -1 : p == SPREAD ? 2 : 1;
    } else if (l->ndim > 2) {
        l->str[l->ndim - 1] = 1;
        for (int32_t d = l->ndim - 1; d-- > 0;)
            l->str[d] = l->str[d + 1] * (l->ext[d + 1] ? l->ext[d + 1] : 1);
    } else {
        int64_t m = l->ext[0] ? l->ext[0] : 1, n = l->ext[1] ? l->ext[1] : 1;
        int64_t wide = p == PITCH ? n + 3 : p == PITCH16 ? (n * es + 31) / 16 * 16 / es : n;
        l->str[0] = p == TURNED ? 1 : p == UPWARDS ? -wide : p == SPREAD ? 2 * n + 1 : wide;
        l->str[1] = p == TURNED ? m : p == MIRRORED ? -1 : p == SPREAD ? 2 : 1;
    }
    bool empty = false;
    for (int32_t d = 0; d < l->ndim; d++) {
        empty |= l->ext[d] == 0;
        *(l->str[d] < 0 ? &lo : &hi) += (l->ext[d] - 1) * l->str[d];
    }
    if (empty)
        lo = 0, hi = -1;
    l->lo = (b->size + GUARD + 255) / 256 * 256 + (p == OFF ? (size_t)es : 0);
    l->at = l->lo + (size_t)(-lo * es);
    l->bytes = (size_t)((hi - lo + 1) * es);
    b->size = l->lo + l->bytes;
}

static size_t place_of(const struct laid *l, const int64_t at[4])
{
    int64_t off = 0;
    for (int32_t d = 0; d < l->ndim; d++)
        off += at[d] * l->str[d];
    return l->at + (size_t)(off * (int64_t)kiln_dtype_size(l->t));
}

/* The next index in row-major order; false past the last. */
static bool step(const struct laid *l, int64_t at[4])
{
    for (int32_t d = l->ndim; d-- > 0;) {
        if (++at[d] < l->ext[d])
            return true;
        at[d] = 0;
    }
    return false;
}

static bool is_empty(const struct laid *l)
{
    for (int32_t d = 0; d < l->ndim; d++)
        if (l->ext[d] == 0)
            return true;
    return false;
}

/* below: of indices; 0: numbers of any kind, or ordinary ones only. */
static void fill(const struct laid *l, unsigned char *start, uint64_t *seed, int64_t below,
                 bool plain)
{
    int64_t at[4] = {0}, i = 0, run = l->ndim > 1 ? l->ext[l->ndim - 1] : 32;
    unsigned kind = 9;
    if (is_empty(l))
        return;
    do {
        if (i++ % run == 0)
            kind = plain ? 9 : (unsigned)(next(seed) % 12);
        if (l->a->below) {
            uint64_t v = l->a->elem == '<' ? (uint64_t)((i - 1) * below / (l->ext[0] - 1))
                                           : next(seed) % (uint64_t)(below ? below : 1);
            kl_elem_store((enum kl_elem)l->t, start + place_of(l, at), v);
            continue;
        }
        kl_elem_store((enum kl_elem)l->t, start + place_of(l, at),
                      value(seed, (enum kl_elem)l->t, kind));
    } while (step(l, at));
}

void block_make(const struct kase *c, struct block *b)
{
    uint64_t seed = c->seed * 0x2545f4914f6cdd1du;
    *b = (struct block){.size = 0};
    for (unsigned i = 0, opt = 0; i < MAX_ARRAYS && c->k->array[i].name; i++) {
        struct laid *l = &b->v[b->n++];
        l->a = &c->k->array[i];
        l->t = l->a->elem == 'T' ? c->t : l->a->elem == 'A' ? acc(c->t)
             : l->a->elem == 'l' || l->a->elem == '<' ? KILN_I64
             : l->a->elem == 'w' ? KILN_I32 : l->a->elem == 'u' ? KILN_U8 : KILN_F32;
        l->given = !l->a->optional || !(c->skip >> opt & 1);
        opt += l->a->optional;
        l->alias = -1;
        if (l->given)
            lay(c, b, l);
    }
    for (unsigned i = 0; c->in_place && i < b->n; i++)
        if (strcmp(b->v[i].a->name, c->k->same) == 0) {
            b->v[0].lo = b->v[i].lo;
            b->v[0].at = b->v[i].at;
            b->v[0].alias = (int)i;
        }
    b->size += GUARD;
    b->start = malloc(b->size);
    if (!b->start) {
        fputs("out of memory\n", stderr);
        exit(4);
    }
    for (size_t i = 0; i < b->size; i++) /* guards and gaps; no two places alike */
        b->start[i] = (unsigned char)(i * 167 + (i >> 8) * 13 + 0x5a);
    for (unsigned i = 0; i < b->n; i++) {
        const struct laid *l = &b->v[i];
        if (l->given && l->a->read)
            fill(l, b->start, &seed, c->size[(unsigned char)l->a->below],
                 c->k->tail == 2 && !c->exact && kiln_dtype_size(c->t) == 2);
    }
}

void block_free(struct block *b)
{
    free(b->start);
    *b = (struct block){.size = 0};
}

unsigned block_args(const struct kase *c, const struct block *b, unsigned char *base,
                    kiln_arg arg[MAX_ARGS], char kind)
{
    unsigned n = 0;
    for (unsigned i = 0; i < b->n; i++) {
        const struct laid *l = &b->v[i];
        if (!l->given)
            continue;
        arg[n] = (kiln_arg){.name = l->a->name, .kind = KILN_ARG_TENSOR};
        arg[n++].u.tensor = (kiln_tensor){.data = base + l->at,
                                          .dtype = l->t,
                                          .ndim = l->ndim,
                                          .shape = l->ext,
                                          .strides = l->str,
                                          .flags = kind == 'd' ? KILN_TENSOR_DEVICE : 0};
    }
    for (unsigned i = 0; i < MAX_CONST && c->given[i].name; i++) {
        arg[n] = (kiln_arg){.name = c->given[i].name, .kind = KILN_ARG_INT};
        arg[n++].u.i = c->given[i].v;
    }
    if (c->k->scalar) {
        arg[n] = (kiln_arg){.name = c->k->scalar, .kind = KILN_ARG_FLOAT};
        arg[n++].u.f = 1.375;
    }
    return n;
}

/* ---- comparing ---- */

/* The largest finite number that a floating-point array holds. */
static double most_of(const struct laid *l, const unsigned char *start)
{
    int64_t at[4] = {0};
    double most = 0;
    do {
        double v = fabs(kl_elem_double((enum kl_elem)l->t,
                                       kl_elem_load((enum kl_elem)l->t, start + place_of(l, at))));
        most = v > most && v < (double)INFINITY ? v : most;
    } while (step(l, at));
    return most;
}

static bool is_nan(kiln_dtype t, const unsigned char *p)
{
    return kl_is_float((enum kl_elem)t) &&
           isnan(kl_elem_double((enum kl_elem)t, kl_elem_load((enum kl_elem)t, p)));
}

static double unit(kiln_dtype t, double at)
{
    int digits = t == KILN_F16 ? 11 : t == KILN_BF16 ? 8 : t == KILN_F32 ? 24 : 53;
    int least = t == KILN_F16 ? -14 : t == KILN_F64 ? -1022 : -126;
    int x = at == 0 ? least : ilogb(at);
    return ldexp(1, (x < least ? least : x) - digits + 1);
}

/* For a normalised row an error of the mean, relative to the largest element, shows in all
 * elements times 1/sigma. */
static double spread(const struct block *b, int64_t row)
{
    const struct laid *x = &b->v[1];
    double most = 0, sum = 0, q = 0;
    int64_t at[4] = {row, 0};
    for (int pass = 0; pass < 2; pass++)
        for (at[1] = 0; at[1] < x->ext[1]; at[1]++) {
            double v = kl_elem_double((enum kl_elem)x->t,
                                      kl_elem_load((enum kl_elem)x->t, b->start + place_of(x, at)));
            if (!pass) {
                sum += v;
                most = fmax(most, fabs(v));
            } else {
                double d = v - sum / (double)x->ext[1];
                q += d * d;
            }
        }
    double gamma = 1;
    for (unsigned i = 2; i < b->n; i++)
        if (b->v[i].given && b->v[i].a->read)
            gamma = 16; /* no factor is larger but the odd ones, which make the row so */
    double s = most / sqrt(q / (double)x->ext[1] + 1e-5) * gamma;
    return s < 1e30 ? s : 0;
}

static bool close_to(const struct kase *c, const struct block *b, const struct laid *l,
                     const int64_t at[4], double most, double w, double g)
{
    if (isnan(w) || isnan(g) || isinf(w) || isinf(g))
        return (isnan(w) && isnan(g)) || w == g;
    /* exp_fast gives 0 for what is below 2^-126, and GELU multiplies that by x */
    double bound = (l->a->elem == 'A' ? 8 : 1) * unit(l->t, w) + 0x1p-122;
    if (c->k->tail == 2)
        bound += 0x1p-12 * most;
    if (c->k->tail == 1 && fabs(w - g) > bound)
        bound += spread(b, at[0]) * (0x1p-20 + unit(l->t, 1));
    return fabs(w - g) <= bound;
}

bool block_same(const struct kase *c, const struct block *b, unsigned char *want,
                unsigned char *got, bool loose, char *why, size_t n)
{
    double most = 0;
    if (memcmp(want, got, b->size) == 0)
        return true;
    for (unsigned i = 0; i < b->n && loose; i++) /* of what goes in and comes out */
        if (b->v[i].given && kl_is_float((enum kl_elem)b->v[i].t) && !is_empty(&b->v[i]))
            most = fmax(most, most_of(&b->v[i], b->v[i].a->written ? want : b->start));
    for (unsigned i = 0; i < b->n; i++) {
        const struct laid *l = &b->v[i];
        enum kl_elem t = (enum kl_elem)l->t;
        int64_t at[4] = {0};
        if (!l->given || !l->a->written || is_empty(l))
            continue;
        do {
            size_t p = place_of(l, at), es = kiln_dtype_size(l->t);
            if (memcmp(want + p, got + p, es) == 0)
                continue;
            double w = kl_elem_double(t, kl_elem_load(t, want + p)),
                   g = kl_elem_double(t, kl_elem_load(t, got + p));
            bool nans = !c->k->moves && is_nan(l->t, want + p) && is_nan(l->t, got + p);
            if (!nans && !(loose && close_to(c, b, l, at, most, w, g))) {
                snprintf(why, n, "%s[%lld][%lld] is %.9g (0x%llx), not %.9g (0x%llx)", l->a->name,
                         (long long)at[0], (long long)at[1], g,
                         (unsigned long long)kl_elem_load(t, got + p), w,
                         (unsigned long long)kl_elem_load(t, want + p));
                return false;
            }
            memcpy(got + p, want + p, es);
        } while (step(l, at));
    }
    if (memcmp(want, got, b->size) == 0)
        return true;
    size_t at = 0;
    while (want[at] == got[at])
        at++;
    const char *near = "the end";
    long long off = 0;
    for (unsigned i = 0; i < b->n; i++)
        if (b->v[i].given) {
            long long d = (long long)at - (long long)b->v[i].lo;
            if (i == 0 || llabs(d) < llabs(off))
                near = b->v[i].a->name, off = d;
        }
    snprintf(why, n, "byte %lld from the start of %s, which is no element to write, became %02x",
             off, near, got[at]);
    return false;
}
