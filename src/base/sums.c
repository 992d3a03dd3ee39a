/* sums.c - see sums.h. */
#include "base/sums.h"

#include <stdlib.h>

#include "base/elem.h"

enum {
    MOST = 1 << 22,
    TRIES = 8, /* orders beside the opposite one */
};

void kl_sums_add(struct kl_sums *q, const struct kl_sum *x)
{
    if (q->add.n >= MOST)
        q->full = true;
    else
        kl_push(q->a, &q->add, *x);
}

static int forwards(const void *p, const void *q)
{
    const struct kl_sum *x = p, *y = q;
    if (x->program != y->program)
        return x->program < y->program ? -1 : 1;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return x->lane < y->lane ? -1 : x->lane > y->lane;
}

/* Additions of one element together, each group forwards; they come that way, mostly.  end: behind
 * each of *ngroup groups. */
static struct kl_sum *grouped(struct kl_sums *q, uint32_t **end, uint32_t *ngroup)
{
    uint32_t n = q->add.n, groups = 0, sum = 0;
    const struct kl_sum *x = q->add.v;
    kl_map map = {.a = q->a};
    uint32_t *of = kl_alloc_any(q->a, (n + 1u) * sizeof *of);
    KL_VEC(uint32_t) at = {0};
    for (uint32_t i = 0; i < n; i++) {
        bool isnew;
        uint32_t *g = kl_map_put(&map, &x[i].at, sizeof x[i].at, &isnew);
        if (isnew) {
            *g = groups++;
            kl_push(q->a, &at, 0);
        }
        of[i] = *g;
        at.v[*g]++;
    }
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t count = at.v[g];
        at.v[g] = sum;
        sum += count;
    }
    struct kl_sum *y = kl_alloc_any(q->a, (n + 1u) * sizeof *y);
    for (uint32_t i = 0; i < n; i++)
        y[at.v[of[i]]++] = x[i];
    for (uint32_t g = 0, i = 0; g < groups; i = at.v[g++]) {
        bool sorted = true;
        for (uint32_t k = i + 1; k < at.v[g] && sorted; k++)
            sorted = forwards(&y[k - 1], &y[k]) <= 0;
        if (!sorted)
            qsort(y + i, at.v[g] - i, sizeof *y, forwards);
    }
    *end = at.v, *ngroup = groups;
    return y;
}

/* A group with its programs, and the lanes of each atomic, the other way round. */
static void turn(const struct kl_sum *x, uint32_t n, struct kl_sum *to)
{
    for (uint32_t e = n, b; e > 0; e = b) {
        for (b = e - 1; b > 0 && x[b - 1].program == x[e - 1].program; b--)
            continue;
        for (uint32_t i = b, k; i < e; i = k) {
            for (k = i + 1; k < e && x[k].seq == x[i].seq; k++)
                continue;
            for (uint32_t j = k; j > i; j--)
                *to++ = x[j - 1];
        }
    }
}

/* A group from another program on, the first ones last; so the lanes of each atomic. */
static void rotate(const struct kl_sum *x, uint32_t n, uint32_t turn_by, struct kl_sum *to)
{
    uint32_t first = (uint32_t)((uint64_t)n * turn_by / (TRIES + 1));
    while (first > 0 && first < n && x[first - 1].program == x[first].program)
        first++;
    for (uint32_t done = 0, i = first % n, k; done < n; done += k - i, i = k % n) {
        for (k = i + 1; k < n && x[k].seq == x[i].seq && x[k].program == x[i].program; k++)
            continue;
        uint32_t lanes = k - i, by = (uint32_t)((uint64_t)lanes * turn_by / (TRIES + 1));
        for (uint32_t j = 0; j < lanes; j++)
            *to++ = x[i + (j + by) % lanes];
    }
}

static uint64_t sum(const struct kl_sum *x, uint32_t n, uint64_t bits)
{
    for (uint32_t i = 0; i < n; i++)
        if (x[i].wide)
            bits = kl_f64_bits(kl_bits_f64(bits) + kl_bits_f64(x[i].value));
        else
            bits = kl_f32_bits(kl_bits_f32((uint32_t)bits) + kl_bits_f32((uint32_t)x[i].value));
    return bits;
}

static bool is_nan(uint64_t bits, bool wide)
{
    double v = wide ? kl_bits_f64(bits) : (double)kl_bits_f32((uint32_t)bits);
    return v != v;
}

const struct kl_sum_order *kl_sums_orders(struct kl_sums *q, uint32_t *nout)
{
    KL_VEC(struct kl_sum_order) out = {0};
    uint32_t *end, groups, most = 0;
    struct kl_sum *x = grouped(q, &end, &groups), *y;
    for (uint32_t g = 0; g < groups; g++)
        most = end[g] - (g ? end[g - 1] : 0) > most ? end[g] - (g ? end[g - 1] : 0) : most;
    y = kl_alloc_any(q->a, (most + 1u) * sizeof *y);
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t i = g ? end[g - 1] : 0, e = end[g];
        turn(x + i, e - i, y);
        uint64_t a = sum(x + i, e - i, x[i].old), b = sum(y, e - i, x[i].old);
        for (uint32_t by = 1; by <= TRIES && a == b && e - i > 2; by++) {
            rotate(x + i, e - i, by, y);
            b = sum(y, e - i, x[i].old);
        }
        if (e - i < 2 || a == b || (is_nan(a, x[i].wide) && is_nan(b, x[i].wide)))
            continue;
        struct kl_sum_order *o = NULL;
        for (uint32_t k = 0; k < out.n && !o; k++)
            if (out.v[k].site == x[e - 1].site)
                o = &out.v[k];
        if (!o) {
            struct kl_sum_order one = {x[e - 1].site, x[i].program, x[e - 1].program, x[e - 1].lane,
                                       x[i].wide, x[i].at, {a, b}, 0};
            kl_push(q->a, &out, one);
            o = &out.v[out.n - 1];
        }
        o->count++;
    }
    *nout = out.n;
    return out.v;
}
