/* sums.c - see sums.h. */
#include "base/sums.h"

#include <stdlib.h>

#include "base/elem.h"

enum { MOST = 1 << 22 };

void kl_sums_add(struct kl_sums *q, const struct kl_sum *x)
{
    if (q->add.n >= MOST)
        q->full = true;
    else
        kl_push(q->a, &q->add, *x);
}

static int compare(const struct kl_sum *x, const struct kl_sum *y, int turn)
{
    if (x->at != y->at)
        return (uintptr_t)x->at < (uintptr_t)y->at ? -1 : 1;
    if (x->program != y->program)
        return x->program < y->program ? -turn : turn;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return x->lane < y->lane ? -turn : x->lane > y->lane ? turn : 0;
}

static int forwards(const void *x, const void *y)
{
    return compare(x, y, 1);
}

static int backwards(const void *x, const void *y)
{
    return compare(x, y, -1);
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
    struct kl_sum *x = q->add.v, *y = kl_new_n(q->a, struct kl_sum, q->add.n + 1u);
    uint32_t n = q->add.n;
    if (n)
        memcpy(y, x, n * sizeof *x);
    if (n) {
        qsort(x, n, sizeof *x, forwards);
        qsort(y, n, sizeof *y, backwards);
    }
    for (uint32_t i = 0, e; i < n; i = e) {
        for (e = i + 1; e < n && x[e].at == x[i].at; e++)
            continue;
        uint64_t a = sum(x + i, e - i, x[i].old), b = sum(y + i, e - i, x[i].old);
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
