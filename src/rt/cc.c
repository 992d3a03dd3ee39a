/* cc.c - the system's C compiler: who it is, and one run of it.
 *
 * The source goes in through standard input and the object comes out in a private folder, which
 * is the child's working folder too; no name of a file is passed in or out. */
#define _GNU_SOURCE
#include "rt/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define OBJECT     "o.so"
#define MAX_OBJECT ((off_t)256 << 20)

/* ---- identity ---- */

static void first_line(char *out, size_t n, const char *text)
{
    size_t k = strcspn(text, "\r\n");
    if (k > n - 1)
        k = n - 1;
    memcpy(out, text, k);
    out[k] = 0;
}

static kiln_status ask_version(kl_cc *cc, uint32_t timeout_ms, char msg[KL_CC_MSG])
{
    char out[1024];
    const char *const argv[] = {cc->path, "--version", NULL};
    kl_child c = {.argv = argv,
                  .in = -1,
                  .cwd = -1,
                  .timeout_ms = timeout_ms,
                  .out = out,
                  .nout = sizeof out};
    if (!kl_child_run(&c))
        snprintf(msg, KL_CC_MSG, "%.200s cannot be started: %s", cc->path, strerror(errno));
    else if (c.timed_out)
        snprintf(msg, KL_CC_MSG, "%.200s --version did not end within %u ms", cc->path,
                 (unsigned)timeout_ms);
    else if ((c.exit_code != 0 && !c.unknown) || out[0] == 0)
        snprintf(msg, KL_CC_MSG, "%.200s --version failed; is it a C compiler?", cc->path);
    else {
        first_line(cc->version, sizeof cc->version, out);
        if (cc->version[0])
            return KILN_OK;
        snprintf(msg, KL_CC_MSG, "%.200s --version prints an empty line", cc->path);
    }
    return KILN_E_TOOLCHAIN;
}

kiln_status kl_cc_probe(kl_cc *cc, const char *path, kl_cache *c, uint32_t timeout_ms,
                        char msg[KL_CC_MSG])
{
    struct stat st;
    kl_sha256 h;
    uint8_t key[32];
    void *known = NULL;
    size_t n = 0;
    *cc = (kl_cc){.path = path};
    msg[0] = 0;
    if (path[0] != '/') {
        snprintf(msg, KL_CC_MSG, "the C compiler must be an absolute path, not `%.200s`", path);
        return KILN_E_ARG;
    }
    const char *why = NULL;
    if (stat(path, &st) < 0 || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
        why = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        why = "not a program";
    if (why) {
        snprintf(msg, KL_CC_MSG, "%.200s: %s", path, why);
        return KILN_E_TOOLCHAIN;
    }
    /* what a change of the compiler must change; the answer of --version costs 20 to 100 ms */
    int64_t facts[] = {st.st_size,        st.st_mtim.tv_sec,  st.st_mtim.tv_nsec,
                       st.st_ctim.tv_sec, st.st_ctim.tv_nsec, (int64_t)st.st_ino,
                       (int64_t)st.st_dev};
    kl_sha256_init(&h);
    kl_sha256_str(&h, "cc --version");
    kl_sha256_str(&h, path);
    kl_sha256_add(&h, facts, sizeof facts);
    kl_sha256 id = h;
    kl_sha256_end(&h, key);
    const kl_alloc *al = kl_cache_alloc(c);
    if (kl_cache_get(c, key, &known, &n) == KILN_CACHE_HIT && n < sizeof cc->version) {
        memcpy(cc->version, known, n);
    } else {
        kiln_status s = ask_version(cc, timeout_ms, msg);
        if (s)
            return s;
        kl_cache_put(c, key, path, cc->version, strlen(cc->version));
    }
    if (known)
        al->fn(al->user, known, n, 0);
    kl_sha256_str(&id, cc->version);
    kl_sha256_end(&id, cc->id);
    cc->is_clang = strstr(cc->version, "clang") != NULL;
    return KILN_OK;
}

/* ---- flags ---- */

/* for whom: any compiler, gcc, clang; and on which machine */
enum { ANY = 0, GCC = 1, CLANG = 2 };
/* clang-format off */
static const struct { uint8_t who; bool x86; const char *flag; } flags[] = {
    {ANY, 0, "-std=gnu11"},
    {ANY, 0, "-w"}, /* what is quoted on failure shall be the error */
    {ANY, 0, "-nostdinc"},
    {ANY, 0, "-fPIC"},
    {ANY, 0, "-shared"},
    /* no start files, no libraries: the host has memcpy already, and headers and libraries of
     * the C library need not be installed */
    {ANY, 0, "-nostdlib"},
    {ANY, 0, "-fvisibility=hidden"},
    {GCC, 0, "-O3"},
    {CLANG, 0, "-O2"},
    /* what the language means: no contraction, wrapping integers, any aliasing */
    {ANY, 0, "-ffp-contract=off"},
    {ANY, 0, "-fwrapv"},
    {ANY, 0, "-fno-strict-aliasing"},
    /* nobody reads errno or the exception flags */
    {ANY, 0, "-fno-math-errno"},
    {ANY, 0, "-fno-trapping-math"},
    /* some systems turn it on, and then the object needs more than memcpy and its kin */
    {ANY, 0, "-fno-stack-protector"},
    {ANY, 1, "-mprefer-vector-width=512"},
};
/* clang-format on */

void kl_cc_flags(const kl_cc *cc, const char *level, bool debug, const char *flag[KL_CC_FLAGS])
{
    static const struct {
        const char *level, *flag;
    } march[] = {
        {"x86-64-v3", "-march=x86-64-v3"},
        {"x86-64-v4", "-march=x86-64-v4"},
    };
    uint32_t n = 0;
    bool x86 = strncmp(level, "x86", 3) == 0;
    for (uint32_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if ((!flags[i].x86 || x86) &&
            (flags[i].who == ANY || flags[i].who == (cc->is_clang ? CLANG : GCC)))
            flag[n++] = flags[i].flag;
    for (uint32_t i = 0; i < sizeof march / sizeof *march; i++)
        if (strcmp(level, march[i].level) == 0)
            flag[n++] = march[i].flag;
    if (debug)
        flag[n++] = "-g";
    flag[n] = NULL;
}

/* ---- one run ---- */

/* The source as a file at its beginning, in memory if the system has that. */
static int source_file(const kl_privdir *d, const char *text, size_t len)
{
    int fd = memfd_create("kiln source", MFD_CLOEXEC);
    if (fd < 0) {
        fd = openat(d->fd, "i.c", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0)
            unlinkat(d->fd, "i.c", 0);
    }
    if (fd >= 0 && (!kl_write_all(fd, text, len) || lseek(fd, 0, SEEK_SET) != 0)) {
        int e = errno;
        close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

static bool take_object(const kl_alloc *al, const kl_privdir *d, void **so, size_t *n,
                        kiln_status *s)
{
    struct stat st;
    int fd = openat(d->fd, OBJECT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
              st.st_size > 0 && st.st_size <= MAX_OBJECT;
    if (ok) {
        *n = (size_t)st.st_size;
        *so = al->fn(al->user, NULL, 0, *n);
        if (!*so)
            *s = KILN_E_NOMEM;
        ok = *so && kl_read_all(fd, *so, *n);
        if (*so && !ok) {
            al->fn(al->user, *so, *n, 0);
            *so = NULL;
        }
    }
    close(fd);
    return ok;
}

static void keep_file(const kl_cc_job *j, const char *ext, const void *p, size_t n, bool *kept)
{
    char name[256];
    int dir = open(j->keep, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(name, sizeof name, "%.240s.%s", j->keep_name, ext);
    if (dir < 0 || strchr(name, '/') || !kl_file_replace(dir, name, p, n, 0644))
        *kept = false;
    if (dir >= 0)
        close(dir);
}

/* Write behind what is there; cut what does not fit. */
static void add(char *msg, const char *s)
{
    size_t n = strlen(msg);
    snprintf(msg + n, KL_CC_MSG - n, "%s", s);
}

static void explain(const kl_cc_job *j, const kl_child *c, const char *const *argv, bool kept,
                    char msg[KL_CC_MSG])
{
    char how[96];
    if (c->timed_out)
        snprintf(how, sizeof how, "did not end within %u ms and was stopped", j->timeout_ms);
    else if (c->signal)
        snprintf(how, sizeof how, "was ended by signal %d", c->signal);
    else if (c->exit_code > 0)
        snprintf(how, sizeof how, "ended with status %d", c->exit_code);
    else
        snprintf(how, sizeof how, "made no object");
    snprintf(msg, KL_CC_MSG, "generated C did not compile: %.200s %s", argv[0], how);
    add(msg, "\nreproduce: ");
    for (uint32_t i = 0; argv[i] && strcmp(argv[i], "-") != 0; i++) {
        add(msg, argv[i]);
        add(msg, " ");
    }
    if (j->keep && kept) {
        add(msg, j->keep);
        add(msg, "/");
        add(msg, j->keep_name);
        add(msg, ".c");
    } else {
        add(msg, "FILE.c");
    }
    if (c->have) {
        add(msg, "\n");
        add(msg, c->out);
    }
}

/* On a full disk the object cannot be written next to the cache; memory may still have room. */
static bool disk_full(const kl_privdir *d)
{
    struct statvfs s;
    return fstatvfs(d->fd, &s) == 0 && (uint64_t)s.f_bavail * s.f_frsize < (1u << 20);
}

static kiln_status run_in(const kl_alloc *al, const kl_cc_job *j, kl_privdir *d, bool kept,
                          void **so, size_t *so_len, bool *full, char msg[KL_CC_MSG])
{
    const char *argv[KL_CC_FLAGS + 8];
    char out[1024];
    kiln_status s = KILN_E_TOOLCHAIN;
    argv[0] = j->cc->path;
    kl_cc_flags(j->cc, j->level, j->debug, argv + 1);
    uint32_t n = 1;
    while (argv[n])
        n++;
    static const char *const tail[] = {"-o", OBJECT, "-x", "c", "-", NULL};
    memcpy(argv + n, tail, sizeof tail);
    int in = source_file(d, j->text, j->len);
    if (in < 0) {
        snprintf(msg, KL_CC_MSG, "cannot store the source for the C compiler: %s", strerror(errno));
        return KILN_E_TOOLCHAIN;
    }
    kl_child c = {.argv = argv,
                  .in = in,
                  .cwd = d->fd,
                  .capture_err = true,
                  .timeout_ms = j->timeout_ms,
                  .out = out,
                  .nout = sizeof out};
    bool ran = kl_child_run(&c);
    if (!ran)
        snprintf(msg, KL_CC_MSG, "%.200s cannot be started: %s", argv[0], strerror(errno));
    close(in);
    if (!ran)
        return s;
    if (!c.timed_out && (c.exit_code == 0 || c.unknown) && take_object(al, d, so, so_len, &s))
        return KILN_OK;
    if (s == KILN_E_TOOLCHAIN) {
        *full = !c.timed_out && disk_full(d);
        explain(j, &c, argv, kept, msg);
    }
    return s;
}

kiln_status kl_cc_run(const kl_alloc *al, const kl_cc_job *j, void **so, size_t *so_len, bool *kept,
                      char msg[KL_CC_MSG])
{
    kiln_status s = KILN_E_TOOLCHAIN;
    *so = NULL;
    *so_len = 0;
    *kept = j->keep != NULL;
    msg[0] = 0;
    if (j->keep) {
        mkdir(j->keep, 0777);
        keep_file(j, "c", j->text, j->len, kept);
    }
    for (const kl_cache *where = j->cache;; where = NULL) {
        kl_privdir d;
        bool full = false;
        if (!kl_privdir_make(&d, where)) {
            snprintf(msg, KL_CC_MSG, "no private folder can be made in /tmp: %s", strerror(errno));
            return s;
        }
        s = run_in(al, j, &d, *kept, so, so_len, &full, msg);
        bool again = full && !d.own_base;
        kl_privdir_remove(&d);
        if (!again)
            break;
    }
    if (!s && *kept)
        keep_file(j, "so", *so, *so_len, kept);
    return s;
}
