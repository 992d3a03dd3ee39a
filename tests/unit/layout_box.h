/* layout_box.h - random shapes and layouts for the tests of src/layout. */
#ifndef LAYOUT_BOX_H
#define LAYOUT_BOX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "layout/convert.h"

static uint32_t rnd_state = 1;

static inline uint32_t rnd(uint32_t n) /* 0 ... n-1 */
{
    rnd_state ^= rnd_state << 13;
    rnd_state ^= rnd_state >> 17;
    rnd_state ^= rnd_state << 5;
    return rnd_state % n;
}

/* A guarded arena and a text. */
struct box {
    jmp_buf jb;
    kl_env env;
    kl_arena a;
};

static inline struct box *box_new(void)
{
    struct box *b = calloc(1, sizeof *b);
    b->env.al = &kl_alloc_libc;
    b->env.fail = &b->jb;
    b->a.env = &b->env;
    return b;
}

static inline void box_free(struct box *b)
{
    kl_arena_free(&b->a);
    free(b);
}

static inline const char *text_of(struct box *b, const kl_layout *l)
{
    kl_buf t = {.a = &b->a};
    kl_layout_print(&t, l);
    return kl_buf_str(&t);
}

/* A shape of up to 2^maxbits places, with sizes that are often not powers of two. */
static inline uint32_t random_shape(uint32_t *dim, uint32_t maxbits)
{
    static const uint32_t odd[] = {1, 2, 3, 5, 7, 8, 12, 16, 31, 33, 64, 100, 128, 257, 1000, 1024};
    uint32_t rank = rnd(5), bits = 0;
    for (uint32_t d = 0; d < rank; d++) {
        do {
            dim[d] = odd[rnd(sizeof odd / sizeof *odd)];
        } while (rnd(3) && dim[d] > 64);
        uint32_t b = 0;
        while (1u << b < dim[d])
            b++;
        if (bits + b > maxbits)
            dim[d] = 1;
        else
            bits += b;
    }
    return rank;
}

/* All coordinate bits dealt over registers, lanes, warps and CTAs at random; some lanes, warps
 * and registers hold replicas.  With `mix` vectors become sums.  Every element lies somewhere,
 * unless `holes`. */
static inline kl_layout random_layout(uint32_t rank, const uint32_t *dim, uint32_t warps,
                                      uint32_t ctas, bool mix, bool holes)
{
    kl_layout l = kl_layout_blocked(rank, dim, rnd(4), warps, rank ? rnd(rank) : 0);
    uint32_t n = kl_layout_coord_bits(&l), bits[32], threads = 5 + warps;
    if (l.bad || rnd(3) == 0) {
        l = kl_layout_blocked(rank, dim, rnd(4), warps, rank ? rnd(rank) : 0);
        for (uint32_t i = 0; i < ctas && i < l.nbit[KL_IN_REG]; i++) { /* registers to CTAs */
            uint32_t top = --l.nbit[KL_IN_REG];
            l.map.v[KL_CTA0 + i] = l.map.v[top];
            l.map.v[top] = 0;
        }
        l.nbit[KL_IN_CTA] = (uint8_t)ctas;
        return l;
    }
    for (uint32_t i = 0; i < n; i++)
        bits[i] = 1u << i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = rnd(i), t = bits[k];
        bits[k] = bits[i - 1];
        bits[i - 1] = t;
    }
    for (uint32_t s = 0; mix && s < 6 && n > 1; s++) {
        uint32_t a = rnd(n), b = rnd(n);
        if (a != b)
            bits[a] ^= bits[b];
    }
    memset(&l.map, 0, sizeof l.map);
    l.nbit[KL_IN_CTA] = (uint8_t)ctas;
    uint32_t left = n, regs = 0;
    for (uint32_t i = 0; i < threads + ctas; i++) {
        uint32_t at = i < threads ? KL_LANE0 + i : KL_CTA0 + i - threads;
        if (left && rnd(5))
            l.map.v[at] = bits[--left];
        else if (mix && n && rnd(3) == 0)
            l.map.v[at] = bits[rnd(n)];
    }
    if (holes && left)
        left = rnd(left + 1);
    while (left || (rnd(8) == 0 && regs < 8))
        l.map.v[regs++] = left && rnd(8) ? bits[--left] : mix && n && rnd(2) ? bits[rnd(n)] : 0;
    l.nbit[KL_IN_REG] = (uint8_t)regs;
    l.bad = regs > KL_MAX_REG_BITS;
    return l;
}

/* All places of a mask, 0 first: for (p = 0;;) { ... if (!next_place(&p, mask)) break; } */
static inline bool next_place(uint32_t *p, uint32_t mask)
{
    *p = (*p - mask) & mask;
    return *p != 0;
}

#endif
