/* test_faults.c - system calls fail in turn.
 *
 * The functions below stand before those of the C library and can fail at the n-th call.  For
 * each of them and each of its errors, the whole way from a source to a result on the CPU runs
 * with the first call failing, then with the second, until a run makes fewer calls.  Each run
 * must either give the right result or a status and a diagnostic; nothing may be left open or
 * left over, and the run after it, without failures, must work. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln.h"

/* ---- calls that fail ---- */

enum fn {
    OPEN,
    OPENAT,
    READ,
    WRITE,
    CLOSE_,
    PIPE2,
    SPAWN,
    ACTIONS,
    ATTR,
    MEMFD,
    MKDIR,
    MKDIRAT,
    DLOPEN,
    DLSYM,
    FSTAT,
    RENAMEAT,
    UNLINKAT,
    FCNTL,
    READLINK,
    POLL,
    WAITPID,
    FDOPENDIR,
    FSTATAT,
    FUTIMENS,
    LSEEK,
    THREAD,
    NFN
};

static atomic_int armed = -1; /* enum fn; -1: none */
static atomic_long left;      /* calls until the failure */
static atomic_int hit;
static int code;

static bool fails(enum fn f)
{
    if (atomic_load(&armed) != (int)f || atomic_fetch_sub(&left, 1) != 1)
        return false;
    atomic_store(&hit, 1);
    errno = code;
    return true;
}

static void *real(const char *name)
{
    return dlvsym(RTLD_NEXT, name, "GLIBC_2.34") ? dlvsym(RTLD_NEXT, name, "GLIBC_2.34")
                                                 : dlsym(RTLD_NEXT, name);
}

/* WRAP(function, which, failure value, parameters, arguments) */
#define WRAP(ret, fn, which, value, params, args)                                                  \
    ret fn params;                                                                                 \
    ret fn params                                                                                  \
    {                                                                                              \
        static union {                                                                             \
            void *p;                                                                               \
            ret(*f) params;                                                                        \
        } u;                                                                                       \
        if (!u.p)                                                                                  \
            u.p = real(#fn);                                                                       \
        if (fails(which))                                                                          \
            return value;                                                                          \
        return u.f args;                                                                           \
    }

WRAP(ssize_t, read, READ, -1, (int fd, void *p, size_t n), (fd, p, n))
WRAP(ssize_t, write, WRITE, -1, (int fd, const void *p, size_t n), (fd, p, n))
WRAP(int, pipe2, PIPE2, -1, (int p[2], int flags), (p, flags))
WRAP(int, posix_spawn, SPAWN, code,
     (pid_t * pid, const char *path, const posix_spawn_file_actions_t *fa,
      const posix_spawnattr_t *at, char *const argv[], char *const envp[]),
     (pid, path, fa, at, argv, envp))
WRAP(int, posix_spawn_file_actions_init, ACTIONS, code, (posix_spawn_file_actions_t * fa), (fa))
WRAP(int, posix_spawnattr_init, ATTR, code, (posix_spawnattr_t * at), (at))
WRAP(int, memfd_create, MEMFD, -1, (const char *name, unsigned flags), (name, flags))
WRAP(int, mkdir, MKDIR, -1, (const char *path, mode_t mode), (path, mode))
WRAP(int, mkdirat, MKDIRAT, -1, (int at, const char *path, mode_t mode), (at, path, mode))
WRAP(int, fstat, FSTAT, -1, (int fd, struct stat *st), (fd, st))
WRAP(int, renameat, RENAMEAT, -1, (int a, const char *x, int b, const char *y), (a, x, b, y))
WRAP(int, unlinkat, UNLINKAT, -1, (int at, const char *path, int flags), (at, path, flags))
WRAP(ssize_t, readlink, READLINK, -1, (const char *path, char *p, size_t n), (path, p, n))
WRAP(int, poll, POLL, -1, (struct pollfd * p, nfds_t n, int ms), (p, n, ms))
WRAP(pid_t, waitpid, WAITPID, -1, (pid_t pid, int *st, int flags), (pid, st, flags))
WRAP(DIR *, fdopendir, FDOPENDIR, NULL, (int fd), (fd))
WRAP(int, fstatat, FSTATAT, -1, (int at, const char *path, struct stat *st, int flags),
     (at, path, st, flags))
WRAP(int, futimens, FUTIMENS, -1, (int fd, const struct timespec t[2]), (fd, t))
WRAP(off_t, lseek, LSEEK, -1, (int fd, off_t at, int how), (fd, at, how))
WRAP(void *, dlopen, DLOPEN, NULL, (const char *path, int flags), (path, flags))
WRAP(int, pthread_create, THREAD, code,
     (pthread_t * t, const pthread_attr_t *attr, void *(*f)(void *), void *arg), (t, attr, f, arg))

/* a failing close still closes, as it does on Linux */
int close(int fd)
{
    static union {
        void *p;
        int (*f)(int);
    } u;
    if (!u.p)
        u.p = real("close");
    int r = u.f(fd);
    return fails(CLOSE_) ? -1 : r;
}

/* functions with a third argument that may not be there */
#define WRAP_OPEN(fn, which, params, args, last)                                                   \
    int fn params;                                                                                 \
    int fn params                                                                                  \
    {                                                                                              \
        static union {                                                                             \
            void *p;                                                                               \
            int(*f) params;                                                                        \
        } u;                                                                                       \
        va_list ap;                                                                                \
        va_start(ap, last);                                                                        \
        mode_t mode = last & O_CREAT ? va_arg(ap, mode_t) : 0;                                     \
        va_end(ap);                                                                                \
        if (!u.p)                                                                                  \
            u.p = real(#fn);                                                                       \
        if (fails(which))                                                                          \
            return -1;                                                                             \
        return u.f args;                                                                           \
    }
WRAP_OPEN(open, OPEN, (const char *path, int flags, ...), (path, flags, mode), flags)
WRAP_OPEN(openat, OPENAT, (int at, const char *path, int flags, ...), (at, path, flags, mode),
          flags)

int fcntl(int fd, int cmd, ...)
{
    static union {
        void *p;
        int (*f)(int, int, ...);
    } u;
    va_list ap;
    va_start(ap, cmd);
    long arg = va_arg(ap, long);
    va_end(ap);
    if (!u.p)
        u.p = real("fcntl");
    return fails(FCNTL) ? -1 : u.f(fd, cmd, arg);
}

/* ---- the way from a source to a result ---- */

static const char text[] =
    "kernel add(i64 n, f32 y[n], const f32 a[n], constexpr i64 B = 64) grid(cdiv(n, B))\n"
    "{\n    i64 i = program_id(0) * B;\n    y[i:B] = a[i:B] + 1;\n}\n";

static char root[64];
static char compiler[100];
static int automatic;

static kiln_status way(const char *cache, const char *keep)
{
    enum { N = 1000 };
    static float y[N], a[N];
    static const int64_t n[1] = {N};
    kiln_arg g[2] = {{.name = "y", .kind = KILN_ARG_TENSOR},
                     {.name = "a", .kind = KILN_ARG_TENSOR}};
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx = NULL;
    kiln_module *m = NULL;
    kiln_diags *d = NULL;
    kiln_spec *sp = NULL;
    for (int i = 0; i < N; i++)
        a[i] = (float)i, y[i] = -1;
    g[0].u.tensor = (kiln_tensor){y, KILN_F32, 1, n, NULL, 0, 0};
    g[1].u.tensor = (kiln_tensor){a, KILN_F32, 1, n, NULL, 0, 0};
    o.device = automatic ? KILN_DEVICE_AUTO : KILN_DEVICE_CPU;
    o.cc = compiler;
    o.cache_dir = cache;
    o.keep_dir = keep;
    o.threads = 2;
    o.cc_timeout_ms = 20000;
    kiln_status s = kiln_context_create(&o, &ctx, &d);
    if (!s) {
        kiln_diags_free(d);
        d = NULL;
        s = kiln_compile(ctx, "t.kiln", text, sizeof text - 1, &m, &d);
    }
    if (!s) {
        kiln_diags_free(d);
        s = kiln_specialize(kiln_module_at(m, 0), g, 2, &sp, &d);
    }
    if (!s) {
        kiln_diags_free(d);
        s = kiln_launch(kiln_module_at(m, 0), NULL, g, 2, &d);
    }
    if (s && !kiln_diags_count(d))
        fail_msg("%s and nothing said", kiln_status_name(s));
    for (int i = 0; i < N; i++)
        if (y[i] != (s ? -1 : a[i] + 1))
            fail_msg("element %d is %g after %s", i, (double)y[i], kiln_status_name(s));
    kiln_diags_free(d);
    kiln_spec_free(sp);
    kiln_module_free(m);
    kiln_context_free(ctx);
    return s;
}

static uint32_t count(const char *dir, const char *prefix)
{
    uint32_t n = 0;
    DIR *d = opendir(dir);
    if (!d)
        return 0;
    for (struct dirent *e; (e = readdir(d));)
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(d);
    return n;
}

static int rm_one(const char *p, const struct stat *st, int flag, struct FTW *f)
{
    (void)st, (void)flag, (void)f;
    return remove(p);
}

/* There are many runs: a compiler that keeps what it made and answers at once. */
static void quick_compiler(void)
{
    static const char *const names[] = {"/usr/bin/cc", "/usr/bin/gcc", "/usr/bin/clang"};
    const char *cc = NULL;
    for (int i = 0; i < 3 && !cc; i++)
        if (access(names[i], X_OK) == 0)
            cc = names[i];
    if (!cc)
        skip();
    snprintf(compiler, sizeof compiler, "%s/cc", root);
    FILE *f = fopen(compiler, "w");
    assert_non_null(f);
    fprintf(f,
            "#!/bin/sh\n"
            "[ \"$1\" = --version ] && { echo quick 1.0; exit 0; }\n"
            "cat > s.c\n"
            "k=%s/k.$(cksum < s.c | tr ' ' .)\n"
            "[ -e $k ] || { %s \"$@\" < s.c && cp o.so $k; }\n"
            "cp $k o.so\n",
            root, cc);
    fclose(f);
    assert_int_equal(chmod(compiler, 0755), 0);
}

static void each_call_fails(void **state)
{
    (void)state;
    static const struct {
        enum fn f;
        const char *name;
        int code[4];
    } table[] = {
        {OPEN, "open", {EMFILE, EACCES}},
        {OPENAT, "openat", {EMFILE, EACCES, EIO}},
        {READ, "read", {EIO, EINTR}},
        {WRITE, "write", {ENOSPC, EIO, EINTR}},
        {CLOSE_, "close", {EIO}},
        {PIPE2, "pipe2", {EMFILE}},
        {SPAWN, "posix_spawn", {EAGAIN, ENOMEM}},
        {ACTIONS, "file_actions_init", {ENOMEM}},
        {ATTR, "spawnattr_init", {ENOMEM}},
        {MEMFD, "memfd_create", {ENOSYS, EMFILE, EACCES}},
        {MKDIR, "mkdir", {EACCES, ENOSPC}},
        {MKDIRAT, "mkdirat", {EACCES, ENOSPC, EEXIST}},
        {DLOPEN, "dlopen", {ENOMEM}},
        {FSTAT, "fstat", {EIO}},
        {RENAMEAT, "renameat", {ENOSPC, ESTALE, EXDEV}},
        {UNLINKAT, "unlinkat", {EIO}},
        {FCNTL, "fcntl", {EMFILE, EPERM}},
        {READLINK, "readlink", {EACCES}},
        {POLL, "poll", {EINTR, ENOMEM}},
        {WAITPID, "waitpid", {EINTR, ECHILD}},
        {FDOPENDIR, "fdopendir", {ENOMEM}},
        {FSTATAT, "fstatat", {EIO}},
        {FUTIMENS, "futimens", {EACCES}},
        {LSEEK, "lseek", {EIO}},
        {THREAD, "pthread_create", {EAGAIN}},
    };
    enum { COLD, WARM, KEEP };
    char cache[100], keep[100];
    uint32_t runs = 0, absorbed = 0;
    quick_compiler();
    snprintf(cache, sizeof cache, "%s/cache", root);
    snprintf(keep, sizeof keep, "%s/keep", root);
    kiln_status s = way(NULL, NULL);
    if (s == KILN_E_UNSUPPORTED)
        skip();
    assert_int_equal(s, KILN_OK);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int c = 0; c < 4 && table[i].code[c]; c++)
            for (int mode = COLD; mode <= KEEP; mode++)
                for (long n = 1;; n++) {
                    automatic = (int)(n & 1); /* falls back, or says so */
                    if (mode == COLD)
                        nftw(cache, rm_one, 16, FTW_DEPTH | FTW_PHYS);
                    uint32_t fds = count("/proc/self/fd", "");
                    code = table[i].code[c];
                    left = n;
                    hit = 0;
                    atomic_store(&armed, (int)table[i].f);
                    s = mode == KEEP ? way(NULL, keep) : way(cache, NULL);
                    atomic_store(&armed, -1);
                    absorbed += hit && !s;
                    runs++;
                    if (count("/proc/self/fd", "") != fds)
                        fail_msg("%s fails (%s), call %ld: a descriptor is left open",
                                 table[i].name, strerror(code), n);
                    /* where folders cannot be removed, they stay until they are old */
                    if (table[i].f != UNLINKAT && table[i].f != OPENAT && table[i].f != FDOPENDIR &&
                        table[i].f != FSTAT && count(cache, ".tmp.") + count(keep, ".tmp."))
                        fail_msg("%s fails (%s), call %ld: a temporary name is left over",
                                 table[i].name, strerror(code), n);
                    if (!hit) {
                        assert_int_equal(s, KILN_OK);
                        break;
                    }
                }
    print_message("%u runs, %u failures absorbed\n", runs, absorbed);
}

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/kiln-test-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    char mine[40];
    atomic_store(&armed, -1);
    /* folders whose removal was made to fail */
    snprintf(mine, sizeof mine, ".tmp.%ld.", (long)getpid());
    DIR *d = opendir("/tmp");
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, mine, strlen(mine)) == 0) {
            char path[300];
            snprintf(path, sizeof path, "/tmp/%s", e->d_name);
            nftw(path, rm_one, 16, FTW_DEPTH | FTW_PHYS);
        }
    if (d)
        closedir(d);
    return nftw(root, rm_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_call_fails, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
