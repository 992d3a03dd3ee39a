/* rt.h - what runs on the host: C compiler, object cache, loading, threads, SHA-256.
 *
 * The run-time path returns statuses and cleans up by itself; it never raises. */
#ifndef KL_RT_H
#define KL_RT_H

#include "base/diag.h"

/* ---- SHA-256 (FIPS 180-4) ---- */
typedef struct kl_sha256 { uint32_t h[8]; uint64_t len; uint8_t buf[64]; } kl_sha256;
void kl_sha256_init(kl_sha256 *s);
void kl_sha256_add(kl_sha256 *s, const void *p, size_t n);
void kl_sha256_str(kl_sha256 *s, const char *str); /* with its length: strings stay apart */
void kl_sha256_end(kl_sha256 *s, uint8_t out[32]);
void kl_hex(char *out, const uint8_t *p, size_t n); /* 2n digits and a NUL */

/* ---- cache (RUNTIME 4.2) ---- */
typedef struct kl_cache kl_cache;
/* dir NULL or unusable: an object that holds nothing on disk; *problem (owned by the cache)
 * says why it is off, and is NULL if it works or dir is NULL.  NULL: no memory.  The
 * functions may be called from several threads. */
kl_cache *kl_cache_open(const kl_alloc *al, const char *dir, uint64_t cap, const char **problem);
void kl_cache_close(kl_cache *c); /* NULL is fine */
bool kl_cache_on(const kl_cache *c);
/* The payload of the entry, in memory of al (the caller frees it with size *n).  HIT, MISS,
 * STALE: there was one and it was refused and removed; OFF. */
kiln_cache_state kl_cache_get(kl_cache *c, const uint8_t key[32], void **data, size_t *n);
/* Best effort: failing to store is not an error.  meta: text for people, or NULL. */
void kl_cache_put(kl_cache *c, const uint8_t key[32], const char *meta, const void *data,
                  size_t n);

/* ---- the C compiler as a child process (RUNTIME 4.3) ---- */
enum { KL_CC_MSG = 2048, KL_CC_FLAGS = 40 };

typedef struct kl_cc {
    const char *path;      /* absolute; borrowed */
    char version[256];     /* first line of --version */
    uint8_t id[32];        /* hash of path, size, times, inode, version: part of cache keys */
    bool is_clang;
} kl_cc;
/* Identify; --version is remembered in the cache by path, size, mtime, ctime, inode.
 * KILN_E_ARG: not an absolute path.  KILN_E_TOOLCHAIN: not there, or not a C compiler. */
kiln_status kl_cc_probe(kl_cc *cc, const char *path, kl_cache *c, uint32_t timeout_ms,
                        char msg[KL_CC_MSG]);
/* The flags of a compile, NULL-terminated; part of cache keys.  level: kl_cpu_level(), or "". */
void kl_cc_flags(const kl_cc *cc, const char *level, bool debug, const char *flag[KL_CC_FLAGS]);

typedef struct kl_cc_job {
    const kl_cc *cc;
    kl_cache *cache;       /* its folder holds the temporary one; may be off */
    const char *text;
    size_t len;
    const char *level;
    bool debug;
    const char *keep;      /* folder for NAME.c and NAME.so, or NULL */
    const char *keep_name; /* no '/' */
    uint32_t timeout_ms;
} kl_cc_job;
/* Compile to a shared object in memory (al).  On failure msg says why and quotes the
 * compiler.  A folder `keep` that cannot be written is not an error; *kept tells. */
kiln_status kl_cc_run(const kl_alloc *al, const kl_cc_job *job, void **so, size_t *so_len,
                      bool *kept, char msg[KL_CC_MSG]);

/* ---- loading ---- */

/* An object holds any number of kernels.  A kernel with the key K exports
 *     k_<first 16 hex digits of K>             the function
 *     kiln_key_<first 16 hex digits of K>[32]  K itself
 * so that neither a wrong file nor a wrong name can pass for it. */
typedef struct kl_object kl_object;
/* Load from sealed memory, which stays open until kl_object_free; from a file in a private
 * folder where the system has no such memory.  kept: NULL, or the path of a file with the same
 * bytes to load instead, so that a debugger finds it; it must be the user's alone. */
kiln_status kl_object_load(const kl_alloc *al, const void *so, size_t n, kl_cache *c,
                           const char *kept, const uint8_t key[32], kl_object **out,
                           char msg[512]);
typedef void kl_kernel_fn(const uint64_t *p, const int64_t *grid, int64_t begin, int64_t end,
                          char *scratch);
/* NULL: the object has no kernel with this key. */
kl_kernel_fn *kl_object_kernel(const kl_object *o, const uint8_t key[32]);
void kl_object_free(kl_object *o); /* NULL is fine */

/* ---- thread pool ---- */
typedef struct kl_pool kl_pool;
typedef void kl_pool_fn(void *user, uint32_t thread, int64_t begin, int64_t end);
kl_pool *kl_pool_new(const kl_alloc *al, uint32_t threads); /* NULL: no memory */
void kl_pool_free(kl_pool *p); /* NULL is fine */
/* Run fn over [0, n) in chunks on all threads (the caller is thread 0); returns when all is
 * done.  Threads are started by the first call that has work for them.  Calls from several
 * threads wait for each other.  The floating-point environment of each thread is the
 * default one inside fn and restored after.  In a process forked from the one that made
 * the pool, fn runs on the caller alone. */
void kl_pool_run(kl_pool *p, int64_t n, kl_pool_fn *fn, void *user);
uint32_t kl_pool_threads(const kl_pool *p);
bool kl_pool_forked(const kl_pool *p); /* this process did not make it */
uint32_t kl_cpu_count(void);   /* cores the process may use (affinity) */
const char *kl_cpu_level(void); /* "x86-64-v4", "x86-64-v3", "aarch64", or NULL: interpret */

#endif
