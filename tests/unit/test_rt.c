/* test_rt.c - SHA-256, the CPU, the pool, the compiler as a child, loading. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rt/rt.h"

static char root[64];

static int rm_one(const char *p, const struct stat *st, int flag, struct FTW *f)
{
    (void)st, (void)flag, (void)f;
    return remove(p);
}

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/kiln-test-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

/* memfd_create can be made to fail: old kernels, and containers that forbid it */
static int no_memfd;
int memfd_create(const char *name, unsigned flags)
{
    if (no_memfd) {
        errno = ENOSYS;
        return -1;
    }
    return (int)syscall(SYS_memfd_create, name, flags);
}

/* and disks look full */
static int full;
int fstatvfs(int fd, struct statvfs *s)
{
    (void)fd;
    memset(s, 0, sizeof *s);
    s->f_frsize = 4096;
    s->f_bavail = full ? 0 : 1 << 20;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    no_memfd = full = 0;
    return nftw(root, rm_one, 16, FTW_DEPTH | FTW_PHYS);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint32_t open_fds(void)
{
    uint32_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* ---- SHA-256 ---- */

static void sha_is(const char *text, size_t n, size_t step, const char *want)
{
    kl_sha256 s;
    uint8_t out[32];
    char hex[65];
    kl_sha256_init(&s);
    for (size_t i = 0; i < n; i += step)
        kl_sha256_add(&s, text + i, n - i < step ? n - i : step);
    kl_sha256_end(&s, out);
    kl_hex(hex, out, 32);
    assert_string_equal(hex, want);
}

static void sha256_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hex;
    } v[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        for (size_t step = 1; step < 70; step++)
            sha_is(v[i].text, strlen(v[i].text), step, v[i].hex);
    char *a = malloc(1000000);
    assert_non_null(a);
    memset(a, 'a', 1000000);
    static const size_t steps[] = {1000000, 63, 64, 65, 1, 4096};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        sha_is(a, 1000000, steps[i],
               "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(a);
}

/* Every length around the block size, against the same bytes hashed at once by sha256sum's
 * algorithm in another split. */
static void sha256_splits(void **state)
{
    (void)state;
    char text[300];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7);
    for (size_t n = 0; n < sizeof text; n++) {
        kl_sha256 s;
        uint8_t one[32], two[32];
        kl_sha256_init(&s);
        kl_sha256_add(&s, text, n);
        kl_sha256_end(&s, one);
        for (size_t cut = 0; cut <= n; cut += 1 + n / 9) {
            kl_sha256_init(&s);
            kl_sha256_add(&s, text, cut);
            kl_sha256_add(&s, text + cut, n - cut);
            kl_sha256_end(&s, two);
            assert_memory_equal(one, two, 32);
        }
    }
}

/* ---- CPU and pool ---- */

static void cpu(void **state)
{
    (void)state;
    assert_true(kl_cpu_count() >= 1);
    const char *level = kl_cpu_level();
    assert_true(!level || strcmp(level, "x86-64-v3") == 0 || strcmp(level, "x86-64-v4") == 0 ||
                strcmp(level, "aarch64") == 0);
}

enum { PLACES = 100003 };
struct job {
    atomic_uchar *hit;
    atomic_uint threads; /* bit set of those that took part */
    atomic_int bad;
    uint32_t pause_us;
};

static void mark(void *user, uint32_t thread, int64_t begin, int64_t end)
{
    struct job *j = user;
    atomic_fetch_or(&j->threads, 1u << thread % 32);
    if (begin >= end || fegetround() != FE_TONEAREST)
        atomic_fetch_add(&j->bad, 1);
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add_explicit(&j->hit[i], 1, memory_order_relaxed);
    if (j->pause_us) {
        struct timespec t = {0, j->pause_us * 1000L};
        nanosleep(&t, NULL);
    }
}

static void run_marks(kl_pool *p, int64_t n, uint32_t pause_us, uint32_t *threads)
{
    struct job j = {.hit = calloc(PLACES, 1), .pause_us = pause_us};
    assert_non_null(j.hit);
    kl_pool_run(p, n, mark, &j);
    for (int64_t i = 0; i < PLACES; i++)
        if (j.hit[i] != (i < n))
            fail_msg("item %lld ran %d times", (long long)i, j.hit[i]);
    assert_int_equal(j.bad, 0);
    if (threads)
        *threads = j.threads;
    free(j.hit);
}

static void pool_runs_each_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 3, 7, 8, 31, 32, 33, 1000, 65536, PLACES};
    for (uint32_t t = 1; t <= 9; t += 2) {
        kl_pool *p = kl_pool_new(&kl_alloc_libc, t);
        assert_non_null(p);
        assert_int_equal(kl_pool_threads(p), t);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            run_marks(p, counts[i], 0, NULL);
        kl_pool_free(p);
    }
    kl_pool *p = kl_pool_new(&kl_alloc_libc, 0);
    assert_int_equal(kl_pool_threads(p), kl_cpu_count());
    kl_pool_free(p); /* never used */
}

static void pool_uses_its_threads(void **state)
{
    (void)state;
    uint32_t threads = 0;
    kl_pool *p = kl_pool_new(&kl_alloc_libc, 3);
    run_marks(p, 48, 2000, &threads);
    assert_int_equal(threads, 7);
    kl_pool_free(p);
}

static void *one_caller(void *arg)
{
    for (int i = 0; i < 50; i++)
        run_marks(arg, 1 + i * 37, 0, NULL);
    return NULL;
}

static void pool_of_several_callers(void **state)
{
    (void)state;
    pthread_t t[6];
    kl_pool *p = kl_pool_new(&kl_alloc_libc, 3);
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&t[i], NULL, one_caller, p), 0);
    for (int i = 0; i < 6; i++)
        pthread_join(t[i], NULL);
    kl_pool_free(p);
}

/* A chunk count near the end of the range must not wrap. */
static void count_only(void *user, uint32_t thread, int64_t begin, int64_t end)
{
    (void)thread;
    atomic_fetch_add((atomic_uint_fast64_t *)user, (uint64_t)(end - begin));
}

static void pool_of_many_items(void **state)
{
    (void)state;
    atomic_uint_fast64_t sum = 0;
    kl_pool *p = kl_pool_new(&kl_alloc_libc, 2);
    kl_pool_run(p, INT64_MAX, count_only, &sum);
    assert_true(sum == INT64_MAX);
    kl_pool_free(p);
}

#if defined(__x86_64__)
static unsigned get_csr(void)
{
    return __builtin_ia32_stmxcsr();
}
static void set_csr(unsigned v)
{
    __builtin_ia32_ldmxcsr(v);
}

static atomic_uint csr_seen;
static void see_csr(void *user, uint32_t thread, int64_t begin, int64_t end)
{
    (void)user, (void)thread, (void)begin, (void)end;
    atomic_fetch_or(&csr_seen, get_csr() & ~0x3fu);
    struct timespec t = {0, 500000};
    nanosleep(&t, NULL);
}

/* A host linked with fast-math flushes denormals, and its new threads inherit that. */
static void pool_floating_point(void **state)
{
    (void)state;
    unsigned old = get_csr();
    set_csr(old | 0x8040 | 0x2000); /* FTZ, DAZ, round down */
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        for (int64_t n = 1; n <= 64; n += 63) {
            csr_seen = 0;
            kl_pool *p = kl_pool_new(&kl_alloc_libc, threads);
            kl_pool_run(p, n, see_csr, NULL);
            kl_pool_free(p);
            assert_int_equal(csr_seen, 0x1f80);
            assert_int_equal(get_csr() & ~0x3fu, (old | 0x8040 | 0x2000) & ~0x3fu);
        }
    }
    set_csr(old);
}
#endif

static void pool_after_fork(void **state)
{
    (void)state;
    uint32_t threads;
    int st;
    kl_pool *p = kl_pool_new(&kl_alloc_libc, 3);
    run_marks(p, 1000, 0, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        bool right = kl_pool_forked(p);
        run_marks(p, 1000, 0, &threads);
        kl_pool_free(p);
        _exit(right && threads == 1 ? 0 : 1);
    }
    assert_false(kl_pool_forked(p));
    assert_int_equal(waitpid(pid, &st, 0), pid);
    assert_int_equal(st, 0);
    run_marks(p, 1000, 0, NULL);
    kl_pool_free(p);
}

/* Workers must not take the host's signals. */
static void block_seen(void *user, uint32_t thread, int64_t begin, int64_t end)
{
    sigset_t s;
    (void)begin, (void)end;
    pthread_sigmask(SIG_SETMASK, NULL, &s);
    if (thread && (!sigismember(&s, SIGTERM) || !sigismember(&s, SIGUSR1)))
        atomic_fetch_add((atomic_int *)user, 1);
    struct timespec t = {0, 500000};
    nanosleep(&t, NULL);
}

static void pool_signals(void **state)
{
    (void)state;
    atomic_int bad = 0;
    sigset_t before, after;
    kl_pool *p = kl_pool_new(&kl_alloc_libc, 2);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    kl_pool_run(p, 32, block_seen, &bad);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    kl_pool_free(p);
    assert_int_equal(bad, 0);
    assert_int_equal(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}

/* ---- the compiler ---- */

static const char *system_cc(void)
{
    static const char *const names[] = {"/usr/bin/cc", "/usr/bin/gcc", "/usr/bin/clang"};
    for (size_t i = 0; i < 3; i++)
        if (access(names[i], X_OK) == 0)
            return names[i];
    skip();
    return NULL;
}

static kl_cache *cache_at(const char *name)
{
    static char path[128];
    const char *problem;
    snprintf(path, sizeof path, "%s/%s", root, name);
    kl_cache *c = kl_cache_open(&kl_alloc_libc, path, 0, &problem);
    assert_non_null(c);
    assert_null(problem);
    return c;
}

static kl_cache *no_cache(void)
{
    const char *problem;
    kl_cache *c = kl_cache_open(&kl_alloc_libc, NULL, 0, &problem);
    assert_non_null(c);
    return c;
}

static const char *script(const char *name, const char *body)
{
    static char path[4][128];
    static int which;
    char *p = path[which++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", root, name);
    FILE *f = fopen(p, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", body);
    fclose(f);
    assert_int_equal(chmod(p, 0755), 0);
    return p;
}

static uint32_t files_in(const char *dir)
{
    uint32_t n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void key_for(uint8_t key[32], int seed)
{
    for (int i = 0; i < 32; i++)
        key[i] = (uint8_t)(seed * 37 + i * 11);
}

/* The text of a kernel that adds `term` to what p[0] points at. */
static void kernel_text(char *out, size_t n, const uint8_t key[32], int term)
{
    char hex[65], bytes[32 * 4 + 1];
    kl_hex(hex, key, 32);
    for (int i = 0; i < 32; i++)
        snprintf(bytes + 4 * i, 5, "%3d,", key[i]);
    hex[16] = 0;
    size_t at = strlen(out);
    snprintf(out + at, n - at,
             "#define PUB __attribute__((visibility(\"default\")))\n"
             "PUB const unsigned char kiln_key_%s[32] = {%s};\n"
             "PUB void k_%s(const unsigned long *p, const long *g, long b, long e, char *s)\n"
             "{ (void)g; (void)s; for (long i = b; i < e; i++) ((int *)p[0])[i] += %d; }\n"
             "#undef PUB\n",
             hex, bytes, hex, term);
}

static void cc_probe(void **state)
{
    (void)state;
    char msg[KL_CC_MSG];
    kl_cc cc, again;
    kl_cache *c = cache_at("c");
    const char *path = system_cc();
    assert_int_equal(kl_cc_probe(&cc, path, c, 20000, msg), KILN_OK);
    assert_true(strlen(cc.version) > 3);
    double t = now();
    assert_int_equal(kl_cc_probe(&again, path, c, 20000, msg), KILN_OK);
    t = now() - t;
    assert_string_equal(cc.version, again.version);
    assert_memory_equal(cc.id, again.id, 32);
    assert_int_equal(cc.is_clang, again.is_clang);
    assert_true(t < 0.01); /* remembered: no process */
    kl_cache_close(c);
}

/* A changed compiler is asked again. */
static void cc_probe_sees_changes(void **state)
{
    (void)state;
    char msg[KL_CC_MSG];
    kl_cc a, b;
    kl_cache *c = cache_at("c");
    const char *p = script("cc1", "echo one clang 1.0");
    assert_int_equal(kl_cc_probe(&a, p, c, 20000, msg), KILN_OK);
    assert_string_equal(a.version, "one clang 1.0");
    assert_true(a.is_clang);
    p = script("cc1", "echo two 1.0; echo more");
    assert_int_equal(kl_cc_probe(&b, p, c, 20000, msg), KILN_OK);
    assert_string_equal(b.version, "two 1.0");
    assert_false(b.is_clang);
    assert_memory_not_equal(a.id, b.id, 32);
    kl_cache_close(c);
}

static void cc_probe_refuses(void **state)
{
    (void)state;
    char msg[KL_CC_MSG];
    kl_cc cc;
    kl_cache *c = no_cache();
    static const char *const relative[] = {"cc", "./cc", "", "bin/cc", "../usr/bin/cc"};
    for (size_t i = 0; i < sizeof relative / sizeof *relative; i++) {
        assert_int_equal(kl_cc_probe(&cc, relative[i], c, 1000, msg), KILN_E_ARG);
        assert_non_null(strstr(msg, "absolute"));
    }
    static const char *const bad[] = {"/nonexistent/cc", "/tmp", "/etc/passwd", "/dev/null"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(kl_cc_probe(&cc, bad[i], c, 1000, msg), KILN_E_TOOLCHAIN);
        assert_non_null(strstr(msg, bad[i]));
    }
    const char *p = script("fails", "exit 3");
    assert_int_equal(kl_cc_probe(&cc, p, c, 1000, msg), KILN_E_TOOLCHAIN);
    p = script("silent", "exit 0");
    assert_int_equal(kl_cc_probe(&cc, p, c, 1000, msg), KILN_E_TOOLCHAIN);
    p = script("sleeps", "sleep 100");
    double t = now();
    assert_int_equal(kl_cc_probe(&cc, p, c, 200, msg), KILN_E_TOOLCHAIN);
    assert_true(now() - t < 5);
    assert_non_null(strstr(msg, "200 ms"));
    p = script("garbage", "head -c 100000 /dev/zero; echo; echo");
    assert_int_equal(kl_cc_probe(&cc, p, c, 5000, msg), KILN_E_TOOLCHAIN);
    kl_cache_close(c);
}

struct built {
    void *so;
    size_t n;
    bool kept;
    char msg[KL_CC_MSG];
};

static kiln_status build(struct built *b, const char *path, kl_cache *c, const char *text,
                         const char *keep, uint32_t timeout)
{
    kl_cc cc = {.path = path};
    char msg[KL_CC_MSG];
    if (strncmp(path, "/usr/", 5) == 0)
        assert_int_equal(kl_cc_probe(&cc, path, c, 20000, msg), KILN_OK);
    const char *level = kl_cpu_level();
    kl_cc_job j = {.cc = &cc,
                   .cache = c,
                   .text = text,
                   .len = strlen(text),
                   .level = level ? level : "",
                   .keep = keep,
                   .keep_name = "kern",
                   .timeout_ms = timeout};
    return kl_cc_run(&kl_alloc_libc, &j, &b->so, &b->n, &b->kept, b->msg);
}

/* Run the kernel of an object and see what it adds. */
static int adds(const kl_object *o, const uint8_t key[32])
{
    int v[4] = {0};
    uint64_t p[1] = {(uint64_t)(uintptr_t)v};
    int64_t grid[4] = {4, 1, 1, 1};
    kl_kernel_fn *fn = kl_object_kernel(o, key);
    assert_non_null(fn);
    fn(p, grid, 1, 3, NULL);
    assert_int_equal(v[0], 0);
    assert_int_equal(v[3], 0);
    assert_int_equal(v[1], v[2]);
    return v[1];
}

static void compile_and_load(const char *path, kl_cache *c)
{
    char text[2048] = "", msg[512];
    uint8_t key[32], other[32];
    struct built b;
    kl_object *o;
    key_for(key, 1);
    key_for(other, 2);
    kernel_text(text, sizeof text, key, 5);
    kiln_status s = build(&b, path, c, text, NULL, 60000);
    if (s)
        print_message("%s\n", b.msg);
    assert_int_equal(s, KILN_OK);
    assert_int_equal(kl_object_load(&kl_alloc_libc, b.so, b.n, c, NULL, key, &o, msg), KILN_OK);
    assert_int_equal(adds(o, key), 5);
    assert_null(kl_object_kernel(o, other));
    kl_object_free(o);
    /* another key is refused, also one with the same first 64 bits */
    assert_int_equal(kl_object_load(&kl_alloc_libc, b.so, b.n, c, NULL, other, &o, msg),
                     KILN_E_TOOLCHAIN);
    assert_null(o);
    key[20] ^= 1;
    assert_int_equal(kl_object_load(&kl_alloc_libc, b.so, b.n, c, NULL, key, &o, msg),
                     KILN_E_TOOLCHAIN);
    assert_non_null(strstr(msg, "not the one"));
    key[20] ^= 1;
    /* torn objects do not load, wherever they end */
    for (size_t n = 0; n < b.n; n += n < 400 || n > b.n - 100 ? 1 : 61) {
        assert_int_equal(kl_object_load(&kl_alloc_libc, b.so, n, c, NULL, key, &o, msg),
                         KILN_E_TOOLCHAIN);
        assert_null(o);
    }
    free(b.so);
}

static void cc_compiles(void **state)
{
    (void)state;
    static const char *const paths[] = {"/usr/bin/cc", "/usr/bin/gcc", "/usr/bin/clang"};
    uint32_t done = 0;
    for (size_t i = 0; i < 3; i++)
        if (access(paths[i], X_OK) == 0) {
            kl_cache *c = i ? no_cache() : cache_at("c");
            uint32_t before = open_fds();
            compile_and_load(paths[i], c);
            assert_int_equal(open_fds(), before);
            no_memfd = 1;
            compile_and_load(paths[i], c);
            no_memfd = 0;
            kl_cache_close(c);
            done++;
        }
    if (!done)
        skip();
}

/* Two objects at once, loaded from descriptors whose numbers may repeat. */
static void objects_are_separate(void **state)
{
    (void)state;
    const char *path = system_cc();
    kl_cache *c = no_cache();
    struct built b[3];
    uint8_t key[4][32];
    char msg[512];
    for (int i = 0; i < 3; i++) {
        char text[4096] = "";
        key_for(key[i], i);
        kernel_text(text, sizeof text, key[i], 10 + i);
        if (i == 2) { /* two kernels in one */
            key_for(key[3], 3);
            kernel_text(text, sizeof text, key[3], 13);
        }
        assert_int_equal(build(&b[i], path, c, text, NULL, 60000), KILN_OK);
    }
    for (int mode = 0; mode < 2; mode++) {
        kl_object *o[3];
        no_memfd = mode;
        for (int i = 0; i < 3; i++)
            assert_int_equal(
                kl_object_load(&kl_alloc_libc, b[i].so, b[i].n, c, NULL, key[i], &o[i], msg),
                KILN_OK);
        for (int i = 0; i < 3; i++)
            assert_int_equal(adds(o[i], key[i]), 10 + i);
        assert_int_equal(adds(o[2], key[3]), 13);
        /* close one and load another: it may get the same descriptor */
        kl_object_free(o[0]);
        assert_int_equal(
            kl_object_load(&kl_alloc_libc, b[2].so, b[2].n, c, NULL, key[3], &o[0], msg), KILN_OK);
        assert_int_equal(adds(o[0], key[3]), 13);
        for (int i = 0; i < 3; i++)
            kl_object_free(o[i]);
        /* in turn, always through the same number */
        for (int i = 0; i < 6; i++) {
            int w = i % 3;
            assert_int_equal(
                kl_object_load(&kl_alloc_libc, b[w].so, b[w].n, c, NULL, key[w], &o[0], msg),
                KILN_OK);
            assert_int_equal(adds(o[0], key[w]), 10 + w);
            kl_object_free(o[0]);
        }
    }
    no_memfd = 0;
    for (int i = 0; i < 3; i++)
        free(b[i].so);
    kl_cache_close(c);
}

/* The object is a library of its own: it needs memcpy, memmove, memset and nothing more. */
static void object_needs_nothing(void **state)
{
    (void)state;
    struct built b;
    char cmd[300], line[256];
    kl_cache *c = no_cache();
    if (access("/usr/bin/nm", X_OK) != 0)
        skip();
    const char *text = "void *memcpy(void *, const void *, unsigned long);\n"
                       "__attribute__((visibility(\"default\"))) float f(float a, char *d)\n"
                       "{ char big[4000]; memcpy(big, d, 4000); memcpy(d + 4000, big, 4000);\n"
                       "return __builtin_fmaf(a, a, a) + __builtin_sqrtf(a); }\n";
    assert_int_equal(build(&b, system_cc(), c, text, NULL, 60000), KILN_OK);
    snprintf(cmd, sizeof cmd, "%s/x.so", root);
    int fd = open(cmd, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, b.so, b.n), b.n);
    close(fd);
    snprintf(cmd, sizeof cmd, "nm -D --undefined-only %s/x.so", root);
    FILE *f = popen(cmd, "r");
    while (fgets(line, sizeof line, f))
        if (strstr(line, " U ") && !strstr(line, "mem"))
            fail_msg("needs %s", line);
    pclose(f);
    free(b.so);
    kl_cache_close(c);
}

/* Whatever the parent's environment and descriptors are, the child sees its own. */
static void environment_is_clean(void **state)
{
    (void)state;
    char dump[160], body[1024], got[4096] = "";
    struct built b;
    kl_cache *c = cache_at("c");
    snprintf(dump, sizeof dump, "%s/dump", root);
    snprintf(body, sizeof body,
             "{ env; echo FDS $(ls /proc/$$/fd | tr '\\n' ' '); pwd; stat -c %%a .;"
             " cat /proc/self/status | grep SigBlk; cat; } > %s; exit 1",
             dump);
    const char *p = script("spy", body);
    int leak = open("/etc/passwd", O_RDONLY); /* the host does not use O_CLOEXEC */
    leak = dup2(leak, 77);
    sigset_t s, old;
    sigfillset(&s);
    pthread_sigmask(SIG_SETMASK, &s, &old);
    assert_int_equal(build(&b, p, c, "the source", NULL, 20000), KILN_E_TOOLCHAIN);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    close(leak);
    FILE *f = fopen(dump, "r");
    assert_non_null(f);
    size_t n = fread(got, 1, sizeof got - 1, f);
    got[n] = 0;
    fclose(f);
    assert_null(strstr(got, "LD_"));
    assert_null(strstr(got, "CPATH"));
    assert_null(strstr(got, "COMPILER_PATH"));
    assert_null(strstr(got, "GCC_"));
    assert_null(strstr(got, "HOME="));
    assert_non_null(strstr(got, "PATH=/usr/bin:/bin\n"));
    assert_non_null(strstr(got, "LC_ALL=C\n"));
    assert_non_null(strstr(got, "TMPDIR="));
    assert_null(strstr(got, " 77 "));
    assert_non_null(strstr(got, "\n700\n"));
    assert_non_null(strstr(got, "SigBlk:\t0000000000000000"));
    assert_non_null(strstr(got, "the source"));
    /* the working folder lay in the cache folder, and is gone */
    assert_non_null(strstr(got, "/c/.tmp."));
    snprintf(dump, sizeof dump, "%s/c", root);
    assert_int_equal(files_in(dump), 0);
    kl_cache_close(c);
}

/* The measured hijacks: PATH, CPATH, COMPILER_PATH, GCC_EXEC_PREFIX and their like. */
static void hostile_environment(void **state)
{
    (void)state;
    char evil[160], touched[160], as[160], h[200], body[400];
    const char *path = system_cc();
    kl_cache *c = no_cache();
    snprintf(evil, sizeof evil, "%s/evil", root);
    snprintf(touched, sizeof touched, "%s/touched", root);
    assert_int_equal(mkdir(evil, 0755), 0);
    snprintf(body, sizeof body, "touch %s; exit 1", touched);
    static const char *const tools[] = {"cc", "gcc", "as", "ld", "cc1", "collect2", "clang"};
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        snprintf(as, sizeof as, "evil/%s", tools[i]);
        script(as, body);
    }
    snprintf(h, sizeof h, "%s/math.h", evil);
    FILE *f = fopen(h, "w");
    assert_non_null(f);
    fprintf(f, "#error hijacked\n");
    fclose(f);
    static const char *const vars[] = {"PATH",
                                       "CPATH",
                                       "C_INCLUDE_PATH",
                                       "COMPILER_PATH",
                                       "GCC_EXEC_PREFIX",
                                       "LIBRARY_PATH",
                                       "TMPDIR",
                                       "LD_LIBRARY_PATH",
                                       "CCC_OVERRIDE_OPTIONS",
                                       "COLLECT_GCC_OPTIONS",
                                       "DEPENDENCIES_OUTPUT"};
    enum { N = sizeof vars / sizeof *vars };
    char *old[N];
    for (int i = 0; i < N; i++) {
        const char *v = getenv(vars[i]);
        old[i] = v ? strdup(v) : NULL;
        char val[200];
        snprintf(val, sizeof val, "%s/", evil);
        setenv(vars[i], strcmp(vars[i], "CCC_OVERRIDE_OPTIONS") ? val : "# +-fbogus-flag", 1);
    }
    compile_and_load(path, c);
    for (int i = 0; i < N; i++) {
        if (old[i])
            setenv(vars[i], old[i], 1);
        else
            unsetenv(vars[i]);
        free(old[i]);
    }
    assert_int_equal(access(touched, F_OK), -1);
    kl_cache_close(c);
}

static void bad_compilers(void **state)
{
    (void)state;
    struct built b;
    kl_cache *c = cache_at("c");
    uint32_t before = open_fds();

    /* never ends, with helpers that hold the pipe: the whole group is stopped */
    const char *p = script("slow", "sleep 300 & sleep 300");
    double t = now();
    assert_int_equal(build(&b, p, c, "x", NULL, 300), KILN_E_TOOLCHAIN);
    assert_true(now() - t < 5);
    assert_non_null(strstr(b.msg, "300 ms"));
    assert_null(b.so);

    /* ends, but leaves something that holds the pipe */
    p = script("daemon", "sleep 300 & exit 0");
    t = now();
    assert_int_equal(build(&b, p, c, "x", NULL, 20000), KILN_E_TOOLCHAIN);
    assert_true(now() - t < 5);

    /* closes its output and goes on */
    p = script("closes", "exec >&- 2>&-; sleep 300");
    t = now();
    assert_int_equal(build(&b, p, c, "x", NULL, 300), KILN_E_TOOLCHAIN);
    assert_true(now() - t < 5);

    /* talks without end, or a lot */
    p = script("talks", "yes");
    t = now();
    assert_int_equal(build(&b, p, c, "x", NULL, 300), KILN_E_TOOLCHAIN);
    assert_true(now() - t < 5);
    p = script("ten_mb", "echo first words >&2; head -c 10000000 /dev/zero | tr '\\0' 'x' >&2;"
                         " exit 1");
    assert_int_equal(build(&b, p, c, "x", NULL, 20000), KILN_E_TOOLCHAIN);
    assert_non_null(strstr(b.msg, "first words"));
    assert_non_null(strstr(b.msg, "status 1"));
    assert_non_null(strstr(b.msg, "reproduce: "));
    assert_true(strlen(b.msg) < KL_CC_MSG);

    /* says all is well and made nothing, an empty file, a link, a folder, a pipe */
    static const char *const nothing[] = {"exit 0", ": > o.so", "ln -s /etc/passwd o.so",
                                          "mkdir o.so", "mkfifo o.so"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        p = script("nothing", nothing[i]);
        assert_int_equal(build(&b, p, c, "x", NULL, 20000), KILN_E_TOOLCHAIN);
        assert_null(b.so);
        assert_non_null(strstr(b.msg, "made no object"));
    }

    /* dies by a signal; is not there any more; is no program */
    p = script("dies", "kill -9 $$");
    assert_int_equal(build(&b, p, c, "x", NULL, 20000), KILN_E_TOOLCHAIN);
    assert_non_null(strstr(b.msg, "signal 9"));
    unlink(p);
    assert_int_equal(build(&b, p, c, "x", NULL, 20000), KILN_E_TOOLCHAIN);
    assert_non_null(strstr(b.msg, "cannot be started"));

    /* does not read its input, though it is large: no SIGPIPE, no hang */
    char *big = malloc(4 << 20);
    assert_non_null(big);
    memset(big, ' ', 4 << 20);
    big[(4 << 20) - 1] = 0;
    p = script("deaf", "exit 1");
    assert_int_equal(build(&b, p, c, big, NULL, 20000), KILN_E_TOOLCHAIN);
    free(big);

    assert_int_equal(open_fds(), before);
    char dir[128];
    snprintf(dir, sizeof dir, "%s/c", root);
    assert_int_equal(files_in(dir), 0);
    kl_cache_close(c);
}

/* The compiler cannot write beside the cache: it gets another place. */
static void full_disk(void **state)
{
    (void)state;
    struct built b;
    char body[200];
    kl_cache *c = cache_at("c");
    snprintf(body, sizeof body, "case $PWD in */c/*) exit 1;; esac; cp %s/any o.so", root);
    const char *p = script("picky", body);
    script("any", "an object");
    full = 0;
    assert_int_equal(build(&b, p, c, "x", NULL, 20000), KILN_E_TOOLCHAIN);
    full = 1;
    assert_int_equal(build(&b, p, c, "x", NULL, 20000), KILN_OK);
    free(b.so);
    kl_cache_close(c);
}

static void source_errors_are_quoted(void **state)
{
    (void)state;
    struct built b;
    kl_cache *c = no_cache();
    assert_int_equal(build(&b, system_cc(), c, "int f( {\n", NULL, 20000), KILN_E_TOOLCHAIN);
    assert_non_null(strstr(b.msg, "did not compile"));
    assert_non_null(strstr(b.msg, "error:"));
    assert_non_null(strstr(b.msg, "-ffp-contract=off"));
    /* nothing may be included: the object depends on the text alone */
    assert_int_equal(build(&b, system_cc(), c, "#include <math.h>\n", NULL, 20000),
                     KILN_E_TOOLCHAIN);
    kl_cache_close(c);
}

static void keeps_files(void **state)
{
    (void)state;
    struct built b;
    struct stat st;
    char dir[128], path[200];
    kl_cache *c = no_cache();
    snprintf(dir, sizeof dir, "%s/keep", root);
    assert_int_equal(build(&b, system_cc(), c, "int f(void) { return 1; }\n", dir, 60000), KILN_OK);
    assert_true(b.kept);
    snprintf(path, sizeof path, "%s/kern.c", dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, strlen("int f(void) { return 1; }\n"));
    snprintf(path, sizeof path, "%s/kern.so", dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, b.n);
    assert_int_equal(files_in(dir), 2);
    free(b.so);
    /* the reproducer is there when it is needed most */
    assert_int_equal(build(&b, system_cc(), c, "int f( {\n", dir, 60000), KILN_E_TOOLCHAIN);
    snprintf(path, sizeof path, "%s/kern.c", dir);
    assert_non_null(strstr(b.msg, path));
    /* a folder that cannot be made does not stop the compile */
    assert_int_equal(build(&b, system_cc(), c, "int f(void) { return 1; }\n", "/proc/x", 60000),
                     KILN_OK);
    assert_false(b.kept);
    free(b.so);
    kl_cache_close(c);
}

/* The kept file is loaded by name, so that a debugger finds it, but only if it is the same. */
static void loads_kept_file(void **state)
{
    (void)state;
    struct built b;
    uint8_t key[32];
    char text[2048] = "", dir[128], path[200], msg[512], maps[200], line[512];
    kl_object *o;
    kl_cache *c = no_cache();
    key_for(key, 9);
    kernel_text(text, sizeof text, key, 3);
    snprintf(dir, sizeof dir, "%s/keep", root);
    snprintf(path, sizeof path, "%s/kern.so", dir);
    assert_int_equal(build(&b, system_cc(), c, text, dir, 60000), KILN_OK);
    for (int tampered = 0; tampered < 2; tampered++) {
        if (tampered)
            assert_int_equal(chmod(path, 0666), 0);
        assert_int_equal(kl_object_load(&kl_alloc_libc, b.so, b.n, c, path, key, &o, msg), KILN_OK);
        assert_int_equal(adds(o, key), 3);
        bool by_name = false;
        FILE *f = fopen("/proc/self/maps", "r");
        snprintf(maps, sizeof maps, "%s/kern.so", dir);
        while (fgets(line, sizeof line, f))
            by_name |= strstr(line, maps) != NULL;
        fclose(f);
        assert_int_equal(by_name, !tampered);
        kl_object_free(o);
    }
    free(b.so);
    kl_cache_close(c);
}

/* The host ignores SIGCHLD, so that no exit status can be had. */
static void host_that_ignores_sigchld(void **state)
{
    (void)state;
    int st;
    const char *path = system_cc();
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        signal(SIGCHLD, SIG_IGN);
        kl_cache *c = no_cache();
        compile_and_load(path, c);
        struct built b;
        bool ok = build(&b, path, c, "int f( {\n", NULL, 20000) == KILN_E_TOOLCHAIN;
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &st, 0), pid);
    assert_int_equal(st, 0);
}

/* A host without standard descriptors. */
static void host_with_closed_stdio(void **state)
{
    (void)state;
    int st;
    const char *path = system_cc();
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        close(0);
        close(1);
        close(2);
        kl_cache *c = no_cache();
        compile_and_load(path, c);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &st, 0), pid);
    assert_int_equal(st, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(sha256_vectors),
        T(sha256_splits),
        T(cpu),
        T(pool_runs_each_once),
        T(pool_uses_its_threads),
        T(pool_of_several_callers),
        T(pool_of_many_items),
#if defined(__x86_64__)
        T(pool_floating_point),
#endif
        T(pool_after_fork),
        T(pool_signals),
        T(cc_probe),
        T(cc_probe_sees_changes),
        T(cc_probe_refuses),
        T(cc_compiles),
        T(objects_are_separate),
        T(object_needs_nothing),
        T(environment_is_clean),
        T(hostile_environment),
        T(bad_compilers),
        T(full_disk),
        T(source_errors_are_quoted),
        T(keeps_files),
        T(loads_kept_file),
        T(host_that_ignores_sigchld),
        T(host_with_closed_stdio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
