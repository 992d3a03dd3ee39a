/* mem.c - see mem.h */
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

static void *libc_alloc(void *user, void *ptr, size_t old, size_t size)
{
    (void)user, (void)old;
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, size);
}

const kl_alloc kl_alloc_libc = {libc_alloc, NULL};

void kl_raise(kl_env *env, kiln_status status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(env->msg, sizeof env->msg, fmt, ap);
    va_end(ap);
    env->status = status;
    longjmp(*env->fail, 1);
}

struct kl_chunk {
    struct kl_chunk *next;
    size_t cap, used; /* bytes behind the header */
};

/* The debug build starts small, so that every path that grows is taken. */
#ifdef KL_DEBUG
enum { CHUNK = 256, VEC0 = 1, BUF0 = 8, MAP0 = 2 };
#else
enum { CHUNK = 16384, VEC0 = 8, BUF0 = 256, MAP0 = 16 };
#endif

void *kl_alloc_any(kl_arena *a, size_t size)
{
    const size_t head = (sizeof(struct kl_chunk) + 15) & ~(size_t)15;
    if (size > SIZE_MAX / 2)
        kl_raise(a->env, KILN_E_NOMEM, "out of memory (%zu bytes asked for)", size);
    size = (size + 15) & ~(size_t)15;
    struct kl_chunk *c = a->head;
    if (!c || c->cap - c->used < size) {
        size_t cap = size > CHUNK ? size : CHUNK;
        c = a->env->al->fn(a->env->al->user, NULL, 0, head + cap);
        if (!c)
            kl_raise(a->env, KILN_E_NOMEM, "out of memory (%zu bytes asked for)", size);
        c->cap = cap, c->used = 0;
        a->total += head + cap;
        /* a large block goes behind the head, so that the head's room stays in use */
        if (a->head && size > CHUNK)
            c->next = a->head->next, a->head->next = c;
        else
            c->next = a->head, a->head = c;
    }
    void *p = (char *)c + head + c->used;
    c->used += size;
    return p;
}

void *kl_alloc_zero(kl_arena *a, size_t size)
{
    return memset(kl_alloc_any(a, size), 0, size);
}

void kl_arena_free(kl_arena *a)
{
    const size_t head = (sizeof(struct kl_chunk) + 15) & ~(size_t)15;
    for (struct kl_chunk *c = a->head, *next; c; c = next) {
        next = c->next;
        a->env->al->fn(a->env->al->user, c, head + c->cap, 0);
    }
    a->head = NULL;
    a->total = 0;
}

char *kl_strndup(kl_arena *a, const char *s, size_t n)
{
    char *p = kl_alloc_zero(a, n + 1);
    if (n)
        memcpy(p, s, n);
    return p;
}

char *kl_vprintf(kl_arena *a, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *p = kl_alloc_zero(a, (size_t)(n < 0 ? 0 : n) + 1);
    if (n > 0)
        vsnprintf(p, (size_t)n + 1, fmt, ap);
    return p;
}

char *kl_printf(kl_arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = kl_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}

void *kl_vec_grow(kl_arena *a, void *old, uint32_t *cap, size_t elem, uint32_t need)
{
    uint32_t n = *cap ? *cap : VEC0;
    while (n < need) {
        if (n > UINT32_MAX / 2)
            kl_raise(a->env, KILN_E_NOMEM, "out of memory (a table of %u entries)", need);
        n *= 2;
    }
    void *p = kl_alloc_zero(a, elem * n);
    if (*cap)
        memcpy(p, old, elem * *cap);
    *cap = n;
    return p;
}

static void buf_room(kl_buf *b, size_t n)
{
    if (b->cap - b->n > n)
        return;
    size_t cap = b->cap ? b->cap : BUF0;
    while (cap - b->n <= n)
        cap *= 2;
    char *s = kl_alloc_zero(b->a, cap);
    if (b->n)
        memcpy(s, b->s, b->n);
    b->s = s;
    b->cap = cap;
}

void kl_buf_put(kl_buf *b, const char *s, size_t n)
{
    buf_room(b, n);
    if (n)
        memcpy(b->s + b->n, s, n);
    b->n += n;
    b->s[b->n] = 0;
}

void kl_puts(kl_buf *b, const char *s)
{
    kl_buf_put(b, s, strlen(s));
}

void kl_putf(kl_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n > 0) {
        buf_room(b, (size_t)n);
        vsnprintf(b->s + b->n, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

const char *kl_buf_str(kl_buf *b)
{
    buf_room(b, 0);
    return b->s;
}

uint32_t kl_hash(const void *p, size_t n)
{
    /* FNV-1a: the tables are small, and the order never depends on the hash */
    const unsigned char *s = p;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * 16777619u;
    return h;
}

static struct kl_map_slot *map_find(struct kl_map_slot *slot, uint32_t cap, const void *key,
                                    uint32_t len, uint32_t hash)
{
    for (uint32_t i = hash & (cap - 1);; i = (i + 1) & (cap - 1)) {
        struct kl_map_slot *s = &slot[i];
        if (!s->used)
            return s;
        if (s->hash == hash && s->len == len && (len == 0 || memcmp(s->key, key, len) == 0))
            return s;
    }
}

uint32_t *kl_map_get(const kl_map *m, const void *key, size_t len)
{
    if (!m->cap)
        return NULL;
    struct kl_map_slot *s = map_find(m->slot, m->cap, key, (uint32_t)len, kl_hash(key, len));
    return s->used ? &s->val : NULL;
}

uint32_t *kl_map_put(kl_map *m, const void *key, size_t len, bool *isnew)
{
    if ((m->n + 1) * 4 > m->cap * 3) {
        uint32_t cap = m->cap ? m->cap * 2 : MAP0;
        struct kl_map_slot *slot = kl_new_n(m->a, struct kl_map_slot, cap);
        for (uint32_t i = 0; i < m->cap; i++)
            if (m->slot[i].used)
                *map_find(slot, cap, m->slot[i].key, m->slot[i].len, m->slot[i].hash) = m->slot[i];
        m->slot = slot;
        m->cap = cap;
    }
    uint32_t hash = kl_hash(key, len);
    struct kl_map_slot *s = map_find(m->slot, m->cap, key, (uint32_t)len, hash);
    if (isnew)
        *isnew = !s->used;
    if (!s->used) {
        *s = (struct kl_map_slot){kl_strndup(m->a, key, len), (uint32_t)len, hash, 0, 1};
        m->n++;
    }
    return &s->val;
}
