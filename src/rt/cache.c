/* cache.c - compiled objects on disk.
 *
 * One file an entry, named by the key, written under a temporary name and renamed:
 *
 *     "KILNOBJ\n"  u32 format  u32 sections  key[32]  u64 length of meta, of data
 *     meta (text for people)  data  XXH3-128 of everything before it
 *
 * numbers little-endian.  There are no locks: two writers of one key write the same
 * content, and a reader holds a descriptor.  A reader believes nothing: any difference
 * removes the entry, and the caller compiles again.  Entries leave in the order of their
 * last use (mtime) when the folder holds more than its cap. */
#define _GNU_SOURCE
#include "rt/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    FORMAT = 1,
    SECTIONS = 2,
    HEAD = 64,
    TRAILER = 16,
    NAME = 65,
    STALE_TEMP = 3600 /* seconds after which a temporary name is left over */
};
#define MAGIC       "KILNOBJ\n"
#define MAX_ENTRY   ((uint64_t)256 << 20)
#define DEFAULT_CAP ((uint64_t)256 << 20)

struct kl_cache {
    kl_alloc al;
    int fd; /* -1: off */
    uint64_t cap;
    char problem[256];
};

/* ---- opening ---- */

/* Make the folder and those above it that are missing. */
static bool make_path(const kl_alloc *al, const char *dir)
{
    size_t n = strlen(dir) + 1;
    char *s = al->fn(al->user, NULL, 0, n);
    if (!s)
        return false;
    memcpy(s, dir, n);
    for (char *p = s + (*s != 0); *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(s, 0700);
            *p = '/';
        }
    bool ok = mkdir(s, 0700) == 0 || errno == EEXIST;
    int e = errno;
    al->fn(al->user, s, n, 0);
    errno = e;
    return ok;
}

static void sweep(kl_cache *c, const char *keep);

kl_cache *kl_cache_open(const kl_alloc *al, const char *dir, uint64_t cap, const char **problem)
{
    kl_cache *c = al->fn(al->user, NULL, 0, sizeof *c);
    *problem = NULL;
    if (!c)
        return NULL;
    *c = (kl_cache){.al = *al, .fd = -1, .cap = cap ? cap : DEFAULT_CAP};
    if (!dir)
        return c;
    const char *why = NULL;
    if (!make_path(al, dir))
        why = strerror(errno);
    else
        c->fd = kl_dir_open(AT_FDCWD, dir, &why);
    if (c->fd >= 0 && faccessat(c->fd, ".", W_OK | X_OK, AT_EACCESS) < 0) {
        why = strerror(errno);
        close(c->fd);
        c->fd = -1;
    }
    if (c->fd < 0) {
        snprintf(c->problem, sizeof c->problem, "%.160s: %s", dir, why);
        *problem = c->problem;
    }
    return c;
}

void kl_cache_close(kl_cache *c)
{
    if (!c)
        return;
    if (c->fd >= 0)
        close(c->fd);
    kl_alloc al = c->al;
    al.fn(al.user, c, sizeof *c, 0);
}

bool kl_cache_on(const kl_cache *c)
{
    return c && c->fd >= 0;
}

int kl_cache_fd(const kl_cache *c)
{
    return c ? c->fd : -1;
}

const kl_alloc *kl_cache_alloc(const kl_cache *c)
{
    return &c->al;
}

/* ---- entries ---- */

static void put_le(uint8_t *p, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get_le(const uint8_t *p, int n)
{
    uint64_t v = 0;
    for (int i = n; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static void make_head(uint8_t head[HEAD], const uint8_t key[32], uint64_t nmeta, uint64_t ndata)
{
    memcpy(head, MAGIC, 8);
    put_le(head + 8, FORMAT, 4);
    put_le(head + 12, SECTIONS, 4);
    memcpy(head + 16, key, 32);
    put_le(head + 48, nmeta, 8);
    put_le(head + 56, ndata, 8);
}

enum verdict { GOOD, REFUSED, NOMEM };

/* Read and check all of an open entry. */
static enum verdict read_entry(kl_cache *c, int fd, const uint8_t key[32], void **data, size_t *n)
{
    struct stat st;
    uint8_t head[HEAD], want[HEAD], sum[TRAILER], chunk[512];
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 022) || st.st_size < HEAD + TRAILER || (uint64_t)st.st_size > MAX_ENTRY)
        return REFUSED;
    if (!kl_read_all(fd, head, HEAD))
        return REFUSED;
    uint64_t nmeta = get_le(head + 48, 8), ndata = get_le(head + 56, 8);
    uint64_t room = (uint64_t)st.st_size - HEAD - TRAILER;
    make_head(want, key, nmeta, ndata);
    if (memcmp(head, want, HEAD) != 0 || nmeta > room || ndata != room - nmeta || ndata == 0)
        return REFUSED;
    char *p = c->al.fn(c->al.user, NULL, 0, (size_t)ndata);
    if (!p)
        return NOMEM;
    XXH3_state_t h;
    XXH3_128bits_reset(&h);
    XXH3_128bits_update(&h, head, HEAD);
    bool ok = true;
    while (ok && nmeta) {
        size_t k = nmeta < sizeof chunk ? (size_t)nmeta : sizeof chunk;
        ok = kl_read_all(fd, chunk, k);
        XXH3_128bits_update(&h, chunk, k);
        nmeta -= k;
    }
    ok = ok && kl_read_all(fd, p, (size_t)ndata) && kl_read_all(fd, sum, TRAILER);
    if (ok) {
        XXH128_canonical_t is;
        XXH3_128bits_update(&h, p, (size_t)ndata);
        XXH128_canonicalFromHash(&is, XXH3_128bits_digest(&h));
        ok = memcmp(is.digest, sum, TRAILER) == 0;
    }
    if (!ok) {
        c->al.fn(c->al.user, p, (size_t)ndata, 0);
        return REFUSED;
    }
    *data = p;
    *n = (size_t)ndata;
    return GOOD;
}

kiln_cache_state kl_cache_get(kl_cache *c, const uint8_t key[32], void **data, size_t *n)
{
    char name[NAME];
    *data = NULL;
    *n = 0;
    if (!kl_cache_on(c))
        return KILN_CACHE_OFF;
    kl_hex(name, key, 32);
    /* without O_NONBLOCK a planted pipe would stop us here */
    int fd = openat(c->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        if (errno != ELOOP && errno != ENXIO && errno != EACCES)
            return KILN_CACHE_MISS;
        unlinkat(c->fd, name, 0);
        return KILN_CACHE_STALE;
    }
    enum verdict v = read_entry(c, fd, key, data, n);
    if (v == GOOD)
        futimens(fd, NULL); /* used now */
    close(fd);
    if (v == REFUSED)
        unlinkat(c->fd, name, 0);
    return v == GOOD ? KILN_CACHE_HIT : v == REFUSED ? KILN_CACHE_STALE : KILN_CACHE_MISS;
}

void kl_cache_put(kl_cache *c, const uint8_t key[32], const char *meta, const void *data, size_t n)
{
    char name[NAME];
    size_t nmeta = meta ? strlen(meta) : 0, size = HEAD + nmeta + n + TRAILER;
    if (!kl_cache_on(c) || n == 0 || n > MAX_ENTRY || size > MAX_ENTRY || size > c->cap)
        return;
    uint8_t *p = c->al.fn(c->al.user, NULL, 0, size);
    if (!p)
        return;
    make_head(p, key, nmeta, n);
    if (nmeta)
        memcpy(p + HEAD, meta, nmeta);
    memcpy(p + HEAD + nmeta, data, n);
    XXH128_canonical_t sum;
    XXH128_canonicalFromHash(&sum, XXH3_128bits(p, size - TRAILER));
    memcpy(p + size - TRAILER, sum.digest, TRAILER);
    kl_hex(name, key, 32);
    bool ok = kl_file_replace(c->fd, name, p, size, 0600);
    c->al.fn(c->al.user, p, size, 0);
    if (ok)
        sweep(c, name);
}

/* ---- room ---- */

struct item {
    char name[NAME];
    struct timespec used;
    uint64_t size;
};

static int by_age(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec)
        return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

static bool is_entry(const char *name)
{
    return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
}

/* Unlink the oldest entries until the rest fits, but not `keep`. */
static void evict(kl_cache *c, struct item *v, size_t n, uint64_t total, const char *keep)
{
    qsort(v, n, sizeof *v, by_age);
    for (size_t i = 0; i < n && total > c->cap; i++)
        if (strcmp(v[i].name, keep) != 0) {
            unlinkat(c->fd, v[i].name, 0);
            total -= v[i].size;
        }
}

/* Look through the folder: remove what crashed writers left, and keep to the cap. */
static void sweep(kl_cache *c, const char *keep)
{
    int fd = openat(c->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct item *v = NULL;
    size_t n = 0, cap = 0;
    uint64_t total = 0;
    time_t now = time(NULL);
    for (struct dirent *e; (e = readdir(dir));) {
        struct stat st;
        bool temp = strncmp(e->d_name, ".tmp.", 5) == 0;
        if ((!temp && !is_entry(e->d_name)) ||
            fstatat(c->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (temp) {
            if (now - st.st_mtime <= STALE_TEMP)
                continue;
            if (S_ISDIR(st.st_mode))
                kl_dir_clear(c->fd, e->d_name);
            else
                unlinkat(c->fd, e->d_name, 0);
            continue;
        }
        if (n == cap) {
            size_t more = cap ? cap * 2 : 64;
            struct item *w = c->al.fn(c->al.user, v, cap * sizeof *v, more * sizeof *v);
            if (!w)
                break; /* the next writer tries again */
            v = w;
            cap = more;
        }
        memcpy(v[n].name, e->d_name, NAME);
        v[n].used = st.st_mtim;
        v[n].size = (uint64_t)st.st_size;
        total += v[n++].size;
    }
    closedir(dir);
    if (v && total > c->cap)
        evict(c, v, n, total, keep);
    if (v)
        c->al.fn(c->al.user, v, cap * sizeof *v, 0);
}
