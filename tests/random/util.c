/* util.c - random numbers (splitmix64), memory of a program, text. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->s += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

unsigned rng_below(struct rng *r, unsigned n)
{
    return (unsigned)((rng_next(r) >> 32) * n >> 32);
}

bool rng_chance(struct rng *r, unsigned percent)
{
    return rng_below(r, 100) < percent;
}

struct pool_chunk {
    struct pool_chunk *next;
    size_t n, cap;
    max_align_t data[];
};

void *pool_get(struct pool *p, size_t n)
{
    n = (n + 15) & ~(size_t)15;
    if (!p->head || p->head->cap - p->head->n < n) {
        size_t cap = n > 65536 ? n : 65536;
        struct pool_chunk *c = calloc(1, sizeof *c + cap);
        if (!c) {
            fputs("out of memory\n", stderr);
            exit(4);
        }
        c->cap = cap;
        c->next = p->head;
        p->head = c;
    }
    void *at = (char *)p->head->data + p->head->n;
    p->head->n += n;
    return at;
}

char *pool_fmt(struct pool *p, const char *fmt, ...)
{
    va_list ap, aq;
    va_start(ap, fmt);
    va_copy(aq, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *s = pool_get(p, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, fmt, aq);
    va_end(aq);
    va_end(ap);
    return s;
}

void pool_free(struct pool *p)
{
    while (p->head) {
        struct pool_chunk *c = p->head;
        p->head = c->next;
        free(c);
    }
}

char *program_text(const char *const *line, unsigned n)
{
    size_t len = 1;
    for (unsigned i = 0; i < n; i++)
        len += strlen(line[i]) + 1;
    char *s = malloc(len), *p = s;
    if (!s) {
        fputs("out of memory\n", stderr);
        exit(4);
    }
    for (unsigned i = 0; i < n; i++) {
        size_t k = strlen(line[i]);
        memcpy(p, line[i], k);
        p += k;
        *p++ = '\n';
    }
    *p = 0;
    return s;
}
