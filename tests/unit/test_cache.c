/* test_cache.c - the object cache: what it refuses, what it survives. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rt/rt.h"

/* ---- failing system calls: these stand before the C library's ---- */

static int fail_write, fail_rename; /* 0: work; n: the n-th call from now fails; -1: all */
static int fail_errno = ENOSPC;

static int fails(int *n)
{
    if (*n < 0 || (*n > 0 && --*n == 0)) {
        errno = fail_errno;
        return 1;
    }
    return 0;
}

ssize_t write(int fd, const void *p, size_t n)
{
    if (fd > 2 && fails(&fail_write))
        return -1;
    return syscall(SYS_write, fd, p, n);
}

int renameat(int a, const char *x, int b, const char *y)
{
    if (fails(&fail_rename))
        return -1;
    return (int)syscall(SYS_renameat2, a, x, b, y, 0);
}

/* ---- helpers ---- */

static char root[64], dir[96];

static int rm_one(const char *p, const struct stat *st, int flag, struct FTW *f)
{
    (void)st, (void)flag, (void)f;
    return remove(p);
}

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/kiln-test-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    snprintf(dir, sizeof dir, "%s/a/cache", root);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fail_write = fail_rename = 0;
    return nftw(root, rm_one, 16, FTW_DEPTH | FTW_PHYS);
}

static kl_cache *open_ok(uint64_t cap)
{
    const char *problem = "unset";
    kl_cache *c = kl_cache_open(&kl_alloc_libc, dir, cap, &problem);
    assert_non_null(c);
    assert_null(problem);
    assert_true(kl_cache_on(c));
    return c;
}

static void open_refused(const char *path, const char *says)
{
    const char *problem = NULL;
    kl_cache *c = kl_cache_open(&kl_alloc_libc, path, 0, &problem);
    uint8_t key[32] = {7};
    void *p;
    size_t n;
    assert_non_null(c);
    assert_non_null(problem);
    assert_non_null(strstr(problem, says));
    assert_false(kl_cache_on(c));
    kl_cache_put(c, key, NULL, "x", 1); /* goes nowhere, harms nothing */
    assert_int_equal(kl_cache_get(c, key, &p, &n), KILN_CACHE_OFF);
    kl_cache_close(c);
}

/* Key number i and its content, which only that key has. */
static void key_of(uint32_t i, uint8_t key[32])
{
    kl_sha256 s;
    kl_sha256_init(&s);
    kl_sha256_add(&s, &i, sizeof i);
    kl_sha256_end(&s, key);
}

static size_t fill(uint32_t i, uint8_t *p, size_t max)
{
    uint8_t key[32];
    key_of(i, key);
    size_t n = 1 + (key[0] | key[1] << 8) % max;
    for (size_t k = 0; k < n; k++)
        p[k] = (uint8_t)(key[k % 32] + k * 31);
    return n;
}

static void put(kl_cache *c, uint32_t i, size_t max)
{
    uint8_t *p = malloc(max), key[32];
    assert_non_null(p);
    key_of(i, key);
    kl_cache_put(c, key, "meta text", p, fill(i, p, max));
    free(p);
}

/* The state; on a hit the content must be right. */
static kiln_cache_state get(kl_cache *c, uint32_t i, size_t max)
{
    uint8_t *want = malloc(max), key[32];
    void *p;
    size_t n;
    assert_non_null(want);
    key_of(i, key);
    kiln_cache_state s = kl_cache_get(c, key, &p, &n);
    if (s == KILN_CACHE_HIT) {
        assert_int_equal(n, fill(i, want, max));
        assert_memory_equal(p, want, n);
        free(p);
    } else {
        assert_null(p);
    }
    free(want);
    return s;
}

static const char *entry_path(uint32_t i)
{
    static char path[256];
    char hex[65];
    uint8_t key[32];
    key_of(i, key);
    kl_hex(hex, key, 32);
    snprintf(path, sizeof path, "%s/%s", dir, hex);
    return path;
}

static size_t slurp(const char *path, uint8_t *p, size_t max)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(p, 1, max, f);
    fclose(f);
    return n;
}

static void spit(const char *path, const uint8_t *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, n), n);
    close(fd);
}

static uint32_t count_temps(void)
{
    char cmd[256];
    unsigned n = 0;
    snprintf(cmd, sizeof cmd, "find '%s' -name '.tmp.*' | wc -l", dir);
    FILE *f = popen(cmd, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &n), 1);
    pclose(f);
    return n;
}

/* ---- tests ---- */

static void hits_and_misses(void **state)
{
    (void)state;
    kl_cache *c = open_ok(0);
    struct stat st;
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(get(c, 1, 5000), KILN_CACHE_MISS);
    put(c, 1, 5000);
    assert_int_equal(get(c, 1, 5000), KILN_CACHE_HIT);
    assert_int_equal(get(c, 2, 5000), KILN_CACHE_MISS);
    assert_int_equal(stat(entry_path(1), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    put(c, 1, 5000); /* again: replaced, not broken */
    kl_cache_close(c);
    c = open_ok(0); /* and another process would see it */
    assert_int_equal(get(c, 1, 5000), KILN_CACHE_HIT);
    assert_int_equal(count_temps(), 0);
    kl_cache_close(c);
}

static void no_folder(void **state)
{
    (void)state;
    const char *problem = "unset";
    kl_cache *c = kl_cache_open(&kl_alloc_libc, NULL, 0, &problem);
    assert_non_null(c);
    assert_null(problem); /* it was not asked for */
    assert_int_equal(get(c, 1, 10), KILN_CACHE_OFF);
    kl_cache_close(c);
}

/* Every byte of an entry, changed in each of two ways, is noticed, and the entry removed. */
static void flipped_bytes(void **state)
{
    (void)state;
    enum { MAX = 300 };
    uint8_t good[1024], bad[1024];
    kl_cache *c = open_ok(0);
    put(c, 5, MAX);
    const char *path = entry_path(5);
    size_t n = slurp(path, good, sizeof good);
    assert_true(n > 80 && n < sizeof good);
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(bad, good, n);
            bad[i] ^= (uint8_t)(1 << bit);
            spit(path, bad, n);
            assert_int_equal(get(c, 5, MAX), KILN_CACHE_STALE);
            assert_int_equal(access(path, F_OK), -1);
        }
    spit(path, good, n);
    assert_int_equal(get(c, 5, MAX), KILN_CACHE_HIT);
    kl_cache_close(c);
}

static void wrong_lengths(void **state)
{
    (void)state;
    enum { MAX = 300 };
    uint8_t good[2048];
    kl_cache *c = open_ok(0);
    put(c, 6, MAX);
    const char *path = entry_path(6);
    size_t n = slurp(path, good, sizeof good - 16);
    for (size_t i = 0; i < n; i++) {
        spit(path, good, i);
        assert_int_equal(get(c, 6, MAX), KILN_CACHE_STALE);
        assert_int_equal(access(path, F_OK), -1);
    }
    good[n] = 0;
    spit(path, good, n + 1);
    assert_int_equal(get(c, 6, MAX), KILN_CACHE_STALE);
    kl_cache_close(c);
}

/* A good entry of another key under this name. */
static void wrong_key(void **state)
{
    (void)state;
    char from[256];
    kl_cache *c = open_ok(0);
    put(c, 8, 300);
    snprintf(from, sizeof from, "%s", entry_path(8));
    assert_int_equal(rename(from, entry_path(9)), 0);
    assert_int_equal(get(c, 9, 300), KILN_CACHE_STALE);
    kl_cache_close(c);
}

static void planted_entries(void **state)
{
    (void)state;
    char other[160];
    uint8_t buf[1024];
    kl_cache *c = open_ok(0);
    put(c, 10, 300);
    size_t n = slurp(entry_path(10), buf, sizeof buf);
    snprintf(other, sizeof other, "%s/other", root);
    spit(other, buf, n);
    /* a link, even to a good entry */
    unlink(entry_path(10));
    assert_int_equal(symlink(other, entry_path(10)), 0);
    assert_int_equal(get(c, 10, 300), KILN_CACHE_STALE);
    struct stat st;
    assert_int_equal(lstat(entry_path(10), &st), -1);
    assert_int_equal(access(other, F_OK), 0);
    /* writing over a link replaces the link, not what it points at */
    assert_int_equal(symlink(other, entry_path(10)), 0);
    spit(other, (const uint8_t *)"precious", 8);
    put(c, 10, 300);
    assert_int_equal(slurp(other, buf, sizeof buf), 8);
    assert_int_equal(get(c, 10, 300), KILN_CACHE_HIT);
    /* a pipe must not stop us */
    unlink(entry_path(10));
    assert_int_equal(mkfifo(entry_path(10), 0600), 0);
    assert_int_equal(get(c, 10, 300), KILN_CACHE_STALE);
    /* a folder cannot be removed nor replaced; still no harm */
    assert_int_equal(mkdir(entry_path(10), 0700), 0);
    assert_int_equal(get(c, 10, 300), KILN_CACHE_STALE);
    put(c, 10, 300);
    assert_int_equal(get(c, 10, 300), KILN_CACHE_STALE);
    assert_int_equal(count_temps(), 0);
    /* writable by others */
    assert_int_equal(rmdir(entry_path(10)), 0);
    put(c, 10, 300);
    assert_int_equal(chmod(entry_path(10), 0666), 0);
    assert_int_equal(get(c, 10, 300), KILN_CACHE_STALE);
    if (geteuid() == 0) {
        put(c, 10, 300);
        assert_int_equal(chown(entry_path(10), 12345, 12345), 0);
        assert_int_equal(get(c, 10, 300), KILN_CACHE_STALE);
    }
    kl_cache_close(c);
}

static void refused_folders(void **state)
{
    (void)state;
    char path[160], link_[160];
    snprintf(path, sizeof path, "%s/d", root);
    snprintf(link_, sizeof link_, "%s/link", root);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(symlink(path, link_), 0);
    open_refused(link_, "link");
    assert_int_equal(chmod(path, 0777), 0);
    open_refused(path, "others may write");
    assert_int_equal(chmod(path, 0720), 0);
    open_refused(path, "others may write");
    assert_int_equal(chmod(path, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, 12345), 0);
        open_refused(path, "another user");
        assert_int_equal(chown(path, 0, 0), 0);
    }
    snprintf(path, sizeof path, "%s/file", root);
    spit(path, (const uint8_t *)"x", 1);
    open_refused(path, "not a folder");
    snprintf(path, sizeof path, "%s/file/below", root);
    open_refused(path, "");
    open_refused("", "");
    open_refused("/proc/kiln-cache", "");
}

/* Not writable: needs a user whom modes bind. */
static void unwritable_folder(void **state)
{
    (void)state;
    char path[160];
    if (geteuid() != 0)
        skip();
    snprintf(path, sizeof path, "%s/ro", root);
    assert_int_equal(chmod(root, 0755), 0);
    assert_int_equal(mkdir(path, 0500), 0);
    assert_int_equal(chown(path, 12345, 12345), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const char *problem = NULL;
        if (setresuid(12345, 12345, 12345) != 0)
            _exit(1);
        kl_cache *c = kl_cache_open(&kl_alloc_libc, path, 0, &problem);
        _exit(c && problem && !kl_cache_on(c) ? 0 : 2);
    }
    int st;
    assert_int_equal(waitpid(pid, &st, 0), pid);
    assert_int_equal(st, 0);
}

/* The folder is removed while it is open. */
static void folder_goes_away(void **state)
{
    (void)state;
    kl_cache *c = open_ok(0);
    put(c, 1, 100);
    assert_int_equal(unlink(entry_path(1)), 0);
    assert_int_equal(rmdir(dir), 0);
    put(c, 1, 100);
    assert_int_equal(get(c, 1, 100), KILN_CACHE_MISS);
    kl_cache_close(c);
}

static void full_disk_and_failing_rename(void **state)
{
    (void)state;
    static const int codes[] = {ENOSPC, EIO, EDQUOT, ESTALE, EXDEV, EACCES, EROFS};
    kl_cache *c = open_ok(0);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        fail_errno = codes[i];
        fail_write = -1;
        put(c, 1, 100);
        fail_write = 0;
        assert_int_equal(get(c, 1, 100), KILN_CACHE_MISS);
        fail_rename = -1;
        put(c, 1, 100);
        fail_rename = 0;
        assert_int_equal(get(c, 1, 100), KILN_CACHE_MISS);
    }
    fail_errno = EINTR; /* not a failure */
    fail_write = 1;
    put(c, 1, 100);
    assert_int_equal(get(c, 1, 100), KILN_CACHE_HIT);
    assert_int_equal(count_temps(), 0);
    kl_cache_close(c);
}

static void set_age(uint32_t i, time_t sec)
{
    struct timespec t[2] = {{.tv_sec = sec}, {.tv_sec = sec}};
    assert_int_equal(utimensat(AT_FDCWD, entry_path(i), t, 0), 0);
}

/* The cap holds; what was used last stays. */
static void eviction(void **state)
{
    (void)state;
    enum { N = 40, SIZE = 1000, CAP = 20 * 1200 };
    uint8_t data[SIZE] = {1}, key[32];
    kl_cache *c = open_ok(CAP);
    for (uint32_t i = 0; i < N; i++) {
        key_of(i, key);
        kl_cache_put(c, key, NULL, data, SIZE);
        if (i < 20)
            set_age(i, 1000000 + i);
        if (i == 19) { /* entry 3 is used: its time is now */
            void *p;
            size_t n;
            key_of(3, key);
            assert_int_equal(kl_cache_get(c, key, &p, &n), KILN_CACHE_HIT);
            free(p);
        }
    }
    uint64_t total = 0;
    uint32_t left = 0;
    for (uint32_t i = 0; i < N; i++) {
        struct stat st;
        if (stat(entry_path(i), &st) == 0) {
            total += (uint64_t)st.st_size;
            left++;
        }
    }
    assert_true(total <= CAP);
    assert_int_equal(left, CAP / (SIZE + 80));
    assert_int_equal(access(entry_path(3), F_OK), 0);
    assert_int_equal(access(entry_path(0), F_OK), -1);
    assert_int_equal(access(entry_path(N - 1), F_OK), 0);
    /* an entry larger than the cap is not written at all */
    uint8_t *big = calloc(1, CAP + 1);
    assert_non_null(big);
    key_of(100, key);
    kl_cache_put(c, key, NULL, big, CAP + 1);
    free(big);
    assert_int_equal(access(entry_path(100), F_OK), -1);
    kl_cache_close(c);
}

/* What crashed writers left is removed once it is old; what others own there is not. */
static void left_overs(void **state)
{
    (void)state;
    char old[200], young[200], olddir[200], inside[256], foreign[200];
    struct timespec t[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    kl_cache *c = open_ok(0);
    snprintf(old, sizeof old, "%s/.tmp.99999.0123456789abcdef", dir);
    snprintf(young, sizeof young, "%s/.tmp.99999.1123456789abcdef", dir);
    snprintf(olddir, sizeof olddir, "%s/.tmp.99999.2123456789abcdef", dir);
    snprintf(inside, sizeof inside, "%s/o.so", olddir);
    snprintf(foreign, sizeof foreign, "%s/README", dir);
    spit(old, (const uint8_t *)"x", 1);
    spit(young, (const uint8_t *)"x", 1);
    spit(foreign, (const uint8_t *)"x", 1);
    assert_int_equal(mkdir(olddir, 0700), 0);
    spit(inside, (const uint8_t *)"x", 1);
    assert_int_equal(utimensat(AT_FDCWD, old, t, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, olddir, t, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, foreign, t, 0), 0);
    put(c, 1, 100);
    assert_int_equal(access(old, F_OK), -1);
    assert_int_equal(access(olddir, F_OK), -1);
    assert_int_equal(access(young, F_OK), 0);
    assert_int_equal(access(foreign, F_OK), 0);
    kl_cache_close(c);
}

/* Processes write and read the same keys; some are killed in between.  Nobody ever sees an
 * entry that is not whole. */
static void killed_writers(void **state)
{
    (void)state;
    const char *scale = getenv("KILN_TEST_SCALE");
    uint32_t times = scale ? (uint32_t)atoi(scale) : 1;
    enum { PROCS = 8, KEYS = 200, MAX = 20000 };
    kl_cache_close(open_ok(0));
    for (uint32_t round = 0; round < times; round++) {
        pid_t pid[PROCS];
        for (uint32_t p = 0; p < PROCS; p++) {
            pid[p] = fork();
            assert_true(pid[p] >= 0);
            if (pid[p])
                continue;
            const char *problem;
            kl_cache *c = kl_cache_open(&kl_alloc_libc, dir, 64 << 20, &problem);
            uint32_t x = p * 7919 + round;
            for (uint32_t i = 0; c && i < 3 * KEYS; i++) {
                x = x * 1664525 + 1013904223;
                uint32_t k = (x >> 8) % KEYS;
                kiln_cache_state s = get(c, k, MAX);
                if (s == KILN_CACHE_STALE)
                    _exit(1);
                if (s == KILN_CACHE_MISS)
                    put(c, k, MAX);
                if (i % 16 == 0)
                    unlink(entry_path(k)); /* so that writing goes on */
            }
            _exit(c ? 0 : 2);
        }
        for (uint32_t p = 0; p < PROCS; p++) {
            int st;
            if (p % 2) {
                struct timespec t = {0, (long)(1 + (p * 5 + round) % 23) * 1000000};
                nanosleep(&t, NULL);
                kill(pid[p], SIGKILL);
            }
            assert_int_equal(waitpid(pid[p], &st, 0), pid[p]);
            assert_true(st == 0 || (p % 2 && WIFSIGNALED(st)));
        }
    }
    kl_cache *c = open_ok(0);
    for (uint32_t k = 0; k < KEYS; k++) {
        kiln_cache_state s = get(c, k, MAX);
        assert_true(s == KILN_CACHE_HIT || s == KILN_CACHE_MISS);
    }
    kl_cache_close(c);
}

/* No memory: nothing is stored or found, nothing breaks. */
static int allow;
static void *failing(void *user, void *p, size_t old, size_t size)
{
    if (size && allow-- <= 0)
        return NULL;
    return kl_alloc_libc.fn(user, p, old, size);
}

static void no_memory(void **state)
{
    (void)state;
    const kl_alloc al = {failing, NULL};
    uint8_t key[32];
    void *p;
    size_t n;
    for (int i = 0; i < 12; i++) {
        const char *problem;
        allow = i;
        kl_cache *c = kl_cache_open(&al, dir, 0, &problem);
        if (!c)
            continue;
        key_of(1, key);
        kl_cache_put(c, key, NULL, "abc", 3);
        if (kl_cache_get(c, key, &p, &n) == KILN_CACHE_HIT)
            al.fn(NULL, p, n, 0);
        kl_cache_close(c);
    }
    assert_true(allow > 0); /* the last round had enough */
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(hits_and_misses),  T(no_folder),
        T(flipped_bytes),    T(wrong_lengths),
        T(wrong_key),        T(planted_entries),
        T(refused_folders),  T(unwritable_folder),
        T(folder_goes_away), T(full_disk_and_failing_rename),
        T(eviction),         T(left_overs),
        T(killed_writers),   T(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
