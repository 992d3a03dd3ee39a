/* place.h - where the elements of an array lie: dense strides, the bytes that it spans, whether
 * elements or arrays share a place, what a GPU's code may rely on; and from a declared extent back
 * to the name in it.
 *
 * These rules are used by a launch (lang/bind.c, lib/gpu.c), and the text of this file, from the
 * line below on, is part of each file that `kiln build` writes.  So it needs <stdint.h> only, and
 * is C for gcc and clang. */
#ifndef KL_PLACE_H
#define KL_PLACE_H

#include <stdint.h>

/* ---- places of elements ---- */

struct kl_place {
    const void *data; /* element [0,...,0] */
    int rank, elem, size; /* size: bytes of an element */
    const int64_t *ext, *str; /* in elements */
    int64_t lo, hi; /* bytes from data on, by kl_place_span */
};

/* A stride of an array as it was given; strides NULL: dense. */
static inline int64_t kl_place_stride(int rank, const int64_t *shape, const int64_t *strides, int d)
{
    int64_t k = 1;
    if (strides)
        return strides[d];
    for (int i = rank - 1; i > d; i--)
        if (__builtin_mul_overflow(k, shape[i] > 0 ? shape[i] : 1, &k))
            return INT64_MAX;
    return k;
}

/* The strides that no clause declares (bits of declared: those that one does).  0: too large. */
static inline int kl_place_dense(int rank, const int64_t *ext, unsigned declared, int64_t *str)
{
    for (int d = rank - 1; d >= 0; d--) {
        if (declared >> d & 1)
            continue;
        if (d == rank - 1)
            str[d] = 1;
        else if (__builtin_mul_overflow(str[d + 1], ext[d + 1] > 0 ? ext[d + 1] : 1, &str[d]))
            return 0;
    }
    return 1;
}

/* The bytes from the first to the last element; 0: too large. */
static inline int kl_place_span(struct kl_place *a)
{
    int64_t first = 0, last = 0;
    a->lo = a->hi = 0;
    for (int d = 0; d < a->rank; d++)
        if (a->ext[d] == 0)
            return 1;
    for (int d = 0; d < a->rank; d++) {
        int64_t far, all;
        if (__builtin_mul_overflow(a->ext[d] - 1, a->str[d], &far) ||
            __builtin_add_overflow(far < 0 ? first : last, far, far < 0 ? &first : &last) ||
            __builtin_sub_overflow(last, first, &all) || all > INT64_MAX / 16)
            return 0;
    }
    a->lo = first * a->size;
    a->hi = (last + 1) * a->size;
    return 1;
}

static inline int64_t kl_place_abs(int64_t x)
{
    return x < 0 ? (int64_t)(0 - (uint64_t)x) : x; /* of the least one: itself */
}

/* May two elements of one array lie in the same place?  Exact up to rank 2 and for strides that
 * nest.  The array was spanned before, so that nothing here is too large. */
static inline int kl_place_coincides(const struct kl_place *a)
{
    int64_t reach = 0; /* largest offset that smaller strides reach */
    int used[8] = {0}, wide[8], n = 0;
    for (int d = 0; d < a->rank; d++)
        if (a->ext[d] == 0)
            return 0;
        else if (a->ext[d] > 1)
            wide[n++] = d;
    if (n == 2) { /* i * p = j * q for small i and j */
        int64_t p = kl_place_abs(a->str[wide[0]]), q = kl_place_abs(a->str[wide[1]]), g = p, h = q;
        if (!p || !q)
            return 1;
        for (int64_t r; h; h = r) {
            r = g % h;
            g = h;
        }
        return p / g < a->ext[wide[1]] && q / g < a->ext[wide[0]];
    }
    for (int k = 0; k < n; k++) {
        int best = -1;
        int64_t least = 0;
        for (int i = 0; i < n; i++) {
            int64_t s = kl_place_abs(a->str[wide[i]]);
            if (!used[i] && (best < 0 || s < least)) {
                best = i;
                least = s;
            }
        }
        used[best] = 1;
        if (least <= reach)
            return 1;
        reach += least * (a->ext[wide[best]] - 1);
    }
    return 0;
}

/* Do two arrays share an element?  Exact for equal pitches of rank 2, else by ranges. */
static inline int kl_place_overlap(const struct kl_place *a, const struct kl_place *b)
{
    intptr_t x = (intptr_t)a->data, y = (intptr_t)b->data;
    if (a->lo == a->hi || b->lo == b->hi || x + a->hi <= y + b->lo || y + b->hi <= x + a->lo)
        return 0;
    if (a->rank != 2 || b->rank != 2 || a->elem != b->elem || a->str[0] != b->str[0] ||
        a->str[1] != 1 || b->str[1] != 1 || a->str[0] < a->ext[1] || a->str[0] < b->ext[1] ||
        (y - x) % a->size)
        return 1;
    /* rows of one pitch: the columns meet, in the same row or the next */
    int64_t delta = (y - x) / a->size, pitch = a->str[0];
    int64_t row = delta >= 0 ? delta / pitch : -((-delta + pitch - 1) / pitch);
    int64_t col = delta - row * pitch; /* b begins at (row, col) of a's grid */
    for (int k = 0; k < 2; k++, row++, col -= pitch)
        if (row < a->ext[0] && row + b->ext[0] > 0 && col < a->ext[1] && col + b->ext[1] > 0)
            return 1;
    return 0;
}

/* ---- facts for a GPU's code ---- */

/* Base, extent of the last dimension and pitches are multiples of 16 bytes. */
static inline int kl_place_v16(const struct kl_place *a)
{
    int in = a->rank - 1;
    if ((uintptr_t)a->data % 16)
        return 0;
    if (in < 0)
        return 1;
    if (a->str[in] != 1 || a->ext[in] * a->size % 16)
        return 0;
    for (int d = 0; d < in; d++)
        if (a->ext[d] > 1 && a->str[d] * a->size % 16)
            return 0;
    return 1;
}

/* Every offset inside the extents, in bytes, lies within 31 bits. */
static inline int kl_place_i32(const struct kl_place *a)
{
    int64_t reach = a->size;
    for (int d = 0; d < a->rank; d++) {
        int64_t far;
        if (a->ext[d] == 0)
            return 1;
        if (__builtin_mul_overflow(a->ext[d] - 1, kl_place_abs(a->str[d]), &far) || far > INT32_MAX)
            return 0;
        reach += far * a->size;
        if (reach > INT32_MAX)
            return 0;
    }
    return 1;
}

/* ---- deduction ---- */

/* How an extent or stride was made of a name, from the outside in.  '+' adds k, '-' subtracts it,
 * 'r' is k minus, 'n' negates, '*' multiplies by k, '/' divides by it. */
enum { KL_BACK_STEPS = 16 };
struct kl_back {
    char op;
    int64_t k;
};

/* The value of the name from that of the extent; 0: there is none. */
static inline int kl_place_back(const struct kl_back *step, int n, int64_t *v)
{
    for (int i = 0; i < n; i++) {
        int64_t k = step[i].k;
        switch (step[i].op) {
        case 'n':
            if (__builtin_sub_overflow((int64_t)0, *v, v))
                return 0;
            break;
        case '+':
            if (__builtin_sub_overflow(*v, k, v))
                return 0;
            break;
        case '-':
            if (__builtin_add_overflow(*v, k, v))
                return 0;
            break;
        case 'r':
            if (__builtin_sub_overflow(k, *v, v))
                return 0;
            break;
        case '*':
            if (k == 0 || k == -1 || *v % k)
                return 0;
            *v /= k;
            break;
        default:
            if (__builtin_mul_overflow(*v, k, v))
                return 0;
            break;
        }
    }
    return 1;
}

#endif
