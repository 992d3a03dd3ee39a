/* mem.h - allocation: arenas, growable vectors, text buffers, interned strings.
 *
 * The compile path allocates from arenas and raises on failure: kl_raise jumps
 * to the guard of the API entry (kl_env.fail), which frees the arenas.  So no
 * code between holds anything that an arena does not own. */
#ifndef KL_MEM_H
#define KL_MEM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kiln.h"

/* One function as in Lua: size 0 frees; NULL on failure, old block untouched. */
typedef struct kl_alloc {
    void *(*fn)(void *user, void *ptr, size_t old, size_t size);
    void *user;
} kl_alloc;

extern const kl_alloc kl_alloc_libc;

/* What one API call needs: where memory comes from and where failure goes. */
typedef struct kl_env {
    const kl_alloc *al;
    jmp_buf *fail;
    kiln_status status;
    char msg[256];
} kl_env;

/* Leave the compile path with a status; env->fail must be set. */
_Noreturn void kl_raise(kl_env *env, kiln_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A broken invariant: raises KILN_E_INTERNAL with file and line. */
#define KL_CHECK(env, cond)                                                                        \
    ((cond) ? (void)0                                                                              \
            : kl_raise((env), KILN_E_INTERNAL, "internal error at %s:%d: %s", __FILE__, __LINE__,  \
                       #cond))

/* Blocks that die together.  Not thread-safe.  A zeroed arena with env set is ready. */
typedef struct kl_arena {
    kl_env *env;
    struct kl_chunk *head;
    size_t total; /* bytes taken from the allocator */
} kl_arena;

void *kl_alloc_zero(kl_arena *a, size_t size) /* zeroed, 16-byte aligned; raises KILN_E_NOMEM */
    __attribute__((returns_nonnull));
void *kl_alloc_any(kl_arena *a, size_t size) /* the same, but not zeroed */
    __attribute__((returns_nonnull));
void kl_arena_free(kl_arena *a);
char *kl_strndup(kl_arena *a, const char *s, size_t n);
char *kl_printf(kl_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *kl_vprintf(kl_arena *a, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

#define kl_new(a, T) ((T *)kl_alloc_zero((a), sizeof(T)))
#define kl_new_n(a, T, n) ((T *)kl_alloc_zero((a), sizeof(T) * (size_t)(n)))

/* Vector of T in an arena.  Growing moves it: hold indices, not pointers. */
#define KL_VEC(T)                                                                                  \
    struct {                                                                                       \
        T *v;                                                                                      \
        uint32_t n, cap;                                                                           \
    }
#define kl_push(a, vec, item)                                                                      \
    ((vec)->n == (vec)->cap ? ((vec)->v = kl_vec_grow((a), (vec)->v, &(vec)->cap,                  \
                                                      sizeof *(vec)->v, (vec)->n + 1u))            \
                            : (vec)->v,                                                            \
     (vec)->v[(vec)->n++] = (item))
void *kl_vec_grow(kl_arena *a, void *old, uint32_t *cap, size_t elem, uint32_t need);

/* Growable text; always ends in NUL. */
typedef struct kl_buf {
    kl_arena *a;
    char *s;
    size_t n, cap;
} kl_buf;
void kl_buf_put(kl_buf *b, const char *s, size_t n);
void kl_puts(kl_buf *b, const char *s);
void kl_putf(kl_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *kl_buf_str(kl_buf *b); /* never NULL */

/* Map from a byte string to a 32-bit number; insertion order is kept in keys. */
typedef struct kl_map {
    kl_arena *a;
    struct kl_map_slot {
        const void *key;
        uint32_t len, hash, val, used;
    } *slot;
    uint32_t n, cap;
} kl_map;
uint32_t *kl_map_get(const kl_map *m, const void *key, size_t len);    /* NULL if absent */
uint32_t *kl_map_put(kl_map *m, const void *key, size_t len, bool *isnew); /* copies the key */

uint32_t kl_hash(const void *p, size_t n);

#endif
