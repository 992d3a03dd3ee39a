/* gen.c - filling arrays from generators and lists.
 *
 * Random numbers follow docs/language.md: Philox 4x32-10 by seed and element index, so that an
 * element does not depend on the shape before it.  Logarithm and cosine are computed here from
 * + - * / alone: libm may differ between machines in the last bit, and goldens must not. */
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "cli/value.h"

void kl_philox(uint64_t seed, uint64_t i, uint32_t out[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t c0 = (uint32_t)i, c1 = (uint32_t)(i >> 32), c2 = 0, c3 = 0;
    for (int r = 0; r < 10; r++) {
        uint64_t a = (uint64_t)0xD2511F53 * c0, b = (uint64_t)0xCD9E8D57 * c2;
        uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* ln(u) for u in [2^-24, 1]: u = m * 2^e with m near 1, and ln(m) = 2 artanh((m-1)/(m+1)). */
static double ln_small(double u)
{
    int e;
    double m = frexp(u, &e);
    if (m < 0.70710678118654752)
        m *= 2, e--;
    double s = (m - 1) / (m + 1), q = s * s, sum = 0;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * q + 1.0 / k;
    return e * 0.69314718055994531 + 2 * s * sum;
}

/* cos(2 pi v / 2^24): folded to an angle of at most pi/4, then Taylor. */
static double cos_turn(uint32_t v)
{
    const uint32_t quarter = 1u << 22;
    uint32_t q = v >> 22 & 3, r = v & (quarter - 1);
    bool odd = q & 1; /* the second and fourth quarter run through the sine */
    double sign = q == 1 || q == 2 ? -1 : 1;
    bool swap = r > quarter / 2;
    double x = (swap ? quarter - r : r) * (1.5707963267948966 / quarter), y = x * x, sum = 0;
    if (odd == swap) { /* cosine */
        for (int k = 18; k >= 2; k -= 2)
            sum = (1 + sum) * -y / (k * (k - 1));
        return sign * (1 + sum);
    }
    for (int k = 19; k >= 3; k -= 2)
        sum = (1 + sum) * -y / (k * (k - 1));
    return sign * x * (1 + sum);
}

static double uniform(uint64_t seed, uint64_t i)
{
    uint32_t r[4];
    kl_philox(seed, i, r);
    return (r[0] >> 8) * 0x1p-24;
}

static double normal(uint64_t seed, uint64_t i)
{
    uint32_t r[4];
    kl_philox(seed, i, r);
    return sqrt(-2 * ln_small(((r[0] >> 8) + 1) * 0x1p-24)) * cos_turn(r[1] >> 8);
}

/* Element i of a generator as bits of e. */
static uint64_t element(const struct kl_value *v, enum kl_elem e, uint64_t seed, uint64_t i)
{
    uint32_t r[4];
    uint64_t bits;
    switch (v->gen) {
    case KL_GEN_range: return kl_convert(e, KL_i64, i);
    case KL_GEN_rand: /* stays below 1 in small types, too */
        bits = kl_convert(e, KL_f64, kl_f64_bits(uniform(seed, i)));
        return kl_elem_double(e, bits) < 1 ? bits : bits - 1;
    case KL_GEN_randn: return kl_convert(e, KL_f64, kl_f64_bits(normal(seed, i)));
    case KL_GEN_randint:
        kl_philox(seed, i, r);
        return kl_convert(e, KL_i64, ((uint64_t)r[0] * (uint64_t)v->num[0].i) >> 32);
    default: return 0;
    }
}

static bool fill_list(const struct kl_value *v, enum kl_elem e, char *p, struct kl_msg *m)
{
    for (size_t i = 0; i < v->nitem; i++) {
        uint64_t bits;
        if (!kl_number_fits(&v->item[i], e, &bits))
            return kl_msg(m, KL_RC_USAGE, "`%.60s`: %s does not fit %s", v->text, v->item[i].text,
                          kl_elems[e].name);
        kl_elem_store(e, p + i * kl_elems[e].bytes, bits);
    }
    return true;
}

/* Each element depends on its number alone, so large arrays are filled by several threads. */
enum { FILL_MOST = 32 };
#define FILL_PART ((uint64_t)1 << 20) /* elements worth a thread */

struct fill {
    const struct kl_value *v;
    enum kl_elem e;
    char *p;
    uint64_t seed, from, to;
};

static void *fill_part(void *user)
{
    const struct fill *f = user;
    uint32_t w = kl_elems[f->e].bytes;
    for (uint64_t i = f->from; i < f->to; i++)
        kl_elem_store(f->e, f->p + i * w, element(f->v, f->e, f->seed, i));
    return NULL;
}

static void fill_all(const struct fill *all)
{
    struct fill part[FILL_MOST];
    pthread_t thread[FILL_MOST] = {0};
    bool started[FILL_MOST] = {false};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t n = all->to / FILL_PART + 1;
    n = n > FILL_MOST ? FILL_MOST : n;
    n = cores > 0 && n > (uint64_t)cores ? (uint64_t)cores : n;
    for (uint64_t i = 0; i < n; i++) {
        part[i] = *all;
        part[i].from = all->to / n * i;
        part[i].to = i + 1 == n ? all->to : all->to / n * (i + 1);
        started[i] = i + 1 < n && pthread_create(&thread[i], NULL, fill_part, &part[i]) == 0;
        if (!started[i])
            fill_part(&part[i]);
    }
    for (uint64_t i = 0; i < n; i++)
        if (started[i])
            pthread_join(thread[i], NULL);
}

bool kl_value_fill(const struct kl_value *v, enum kl_elem e, void *data, uint64_t count,
                   struct kl_msg *m)
{
    uint32_t w = kl_elems[e].bytes;
    char *p = data;
    uint64_t bits = 0;
    if (v->kind == KL_VALUE_LIST)
        return fill_list(v, e, p, m);
    if ((v->gen == KL_GEN_rand || v->gen == KL_GEN_randn) && !kl_is_float(e))
        return kl_msg(m, KL_RC_USAGE, "`%.60s`: %s is no float type; randint makes integers",
                      v->text, kl_elems[e].name);
    if (v->gen == KL_GEN_zeros) {
        memset(p, 0, (size_t)(count * w));
        return true;
    }
    if (v->gen == KL_GEN_ones || v->gen == KL_GEN_full) {
        struct kl_number one = {.is_int = true, .i = 1};
        if (!kl_number_fits(v->gen == KL_GEN_full ? &v->num[0] : &one, e, &bits))
            return kl_msg(m, KL_RC_USAGE, "`%.60s`: %s does not fit %s", v->text, v->num[0].text,
                          kl_elems[e].name);
        for (uint64_t i = 0; i < count; i++)
            kl_elem_store(e, p + i * w, bits);
        return true;
    }
    uint32_t at = v->gen == KL_GEN_randint ? 1 : 0;
    uint64_t seed = v->nnum > at ? (uint64_t)v->num[at].i : 0;
    fill_all(&(struct fill){v, e, p, seed, 0, count});
    return true;
}
