/* util.c - messages, memory and text files for the commands. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"

/* ---- messages ---- */

bool kl_msg(struct kl_msg *m, int rc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(m->text, sizeof m->text, fmt, ap);
    va_end(ap);
    m->rc = rc;
    return false;
}

/* Standard output first, so that a terminal shows the lines in the order they were made. */
__attribute__((format(printf, 2, 0))) static void say(const char *before, const char *fmt,
                                                      va_list ap)
{
    fflush(stdout);
    fputs(before, stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

int kl_fail(int rc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("kiln: error: ", fmt, ap);
    va_end(ap);
    return rc;
}

int kl_usage(const struct kl_opts *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("kiln: error: ", fmt, ap);
    va_end(ap);
    if (o->cmd)
        fprintf(stderr, "`kiln %s --help` shows how it is used\n", o->cmd->name);
    else
        fputs("`kiln --help` lists the commands\n", stderr);
    return KL_RC_USAGE;
}

void kl_warn(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("kiln: warning: ", fmt, ap);
    va_end(ap);
}

const char *kl_did_you_mean(const char *name, const char *const *names, size_t n, char buf[128])
{
    const char *near = kl_nearest(name, names, (uint32_t)n);
    buf[0] = 0;
    if (near)
        snprintf(buf, 128, "; did you mean `%.80s`?", near);
    return buf;
}

int kl_rc_of(kiln_status s)
{
    switch (s) {
    case KILN_OK: return KL_RC_OK;
    case KILN_E_BOUNDS: return KL_RC_FINDINGS;
    case KILN_E_ARG:
    case KILN_E_COMPILE:
    case KILN_E_UNSUPPORTED: return KL_RC_USAGE;
    case KILN_E_NOMEM:
    case KILN_E_DEVICE:
    case KILN_E_TOOLCHAIN:
    case KILN_E_IO: return KL_RC_ENV;
    case KILN_E_INTERNAL: break;
    }
    return KL_RC_INTERNAL;
}

/* ---- memory ---- */

static void *need(void *p)
{
    if (!p) {
        kl_fail(KL_RC_ENV, "out of memory");
        exit(KL_RC_ENV);
    }
    return p;
}

void *kl_xalloc(size_t n)
{
    return need(calloc(1, n ? n : 1));
}

void *kl_xgrow(void *p, size_t elem, size_t n)
{
    if (n & (n - 1)) /* room was made at the last power of two */
        return p;
    if (n > SIZE_MAX / elem / 2)
        need(NULL);
    return need(realloc(p, (n ? n * 2 : 1) * elem));
}

char *kl_xprintf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = kl_xalloc((size_t)(n < 0 ? 0 : n) + 1);
    va_start(ap, fmt);
    vsnprintf(s, (size_t)(n < 0 ? 0 : n) + 1, fmt, ap);
    va_end(ap);
    return s;
}

char *kl_xstrndup(const char *s, size_t n)
{
    char *r = kl_xalloc(n + 1);
    memcpy(r, s, n);
    return r;
}

const char *kl_human_bytes(uint64_t n, char buf[32])
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)n;
    int u = 0;
    while (v >= 1024 && u < 6)
        v /= 1024, u++;
    snprintf(buf, 32, u ? "%.1f %s" : "%.0f %s", v, unit[u]);
    return buf;
}

/* A number behind `key` in a small text file, or UINT64_MAX. */
static uint64_t number_in(const char *path, const char *key)
{
    char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return UINT64_MAX;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return UINT64_MAX;
    text[n] = 0;
    const char *at = strstr(text, key);
    if (!at)
        return UINT64_MAX;
    char *end;
    errno = 0;
    at += strlen(key);
    uint64_t v = strtoull(at, &end, 10);
    return end == at || errno ? UINT64_MAX : v; /* "max": no limit */
}

/* What can be allocated without pushing the machine or its control group out of memory. */
static uint64_t memory_left(void)
{
    uint64_t kb = number_in("/proc/meminfo", "MemAvailable:");
    uint64_t left = kb > UINT64_MAX / 1024 ? UINT64_MAX : kb * 1024;
    uint64_t max = number_in("/sys/fs/cgroup/memory.max", "");
    uint64_t used = number_in("/sys/fs/cgroup/memory.current", "");
    if (max != UINT64_MAX && used != UINT64_MAX) {
        uint64_t group = max > used ? max - used : 0;
        left = group < left ? group : left;
    }
    return left;
}

void *kl_array_alloc(const char *what, uint64_t bytes, struct kl_msg *m)
{
    char a[32], b[32];
    void *p = NULL;
    uint64_t left = bytes > 1 << 20 ? memory_left() : UINT64_MAX;
    if (bytes > left) {
        kl_msg(m, KL_RC_ENV, "%s needs %s of memory; %s are available", what,
               kl_human_bytes(bytes, a), kl_human_bytes(left, b));
        return NULL;
    }
    if (bytes > SIZE_MAX - 64 || posix_memalign(&p, 64, (size_t)bytes + (bytes == 0))) {
        kl_msg(m, KL_RC_ENV, "%s needs %s of memory, which the system refuses", what,
               kl_human_bytes(bytes, a));
        return NULL;
    }
    return p;
}

/* ---- text files ---- */

/* The source that was meant by a name without, or with a misspelt, ending: "; there is x.kiln". */
static void near_file(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    size_t n = dot && dot > (slash ? slash : path) ? (size_t)(dot - path) : strlen(path);
    char *name = kl_xalloc(n + 6);
    memcpy(name, path, n);
    memcpy(name + n, ".kiln", 6);
    *out = 0;
    if (n && access(name, F_OK) == 0)
        snprintf(out, size, "; there is %s", name);
    free(name);
}

char *kl_read_file(const char *path, size_t *len, struct kl_msg *m)
{
    enum { MOST = 64 << 20 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *text = NULL;
    size_t n = 0;
    if (fd < 0 || fstat(fd, &st)) {
        char near[300];
        int why = errno;
        near_file(path, near, sizeof near);
        kl_msg(m, KL_RC_USAGE, "cannot read %s: %s%s", path, strerror(why), near);
        goto out;
    }
    if (S_ISDIR(st.st_mode)) {
        kl_msg(m, KL_RC_USAGE, "cannot read %s: it is a directory", path);
        goto out;
    }
    for (size_t cap = 1 << 16;; cap *= 2) {
        char *more = realloc(text, cap + 1);
        ssize_t k = -1;
        if (!more || cap > MOST) {
            free(more ? more : text);
            text = NULL;
            kl_msg(m, more ? KL_RC_USAGE : KL_RC_ENV, "cannot read %s: %s", path,
                   more ? "it is larger than 64 MiB" : "out of memory");
            goto out;
        }
        text = more;
        while (n < cap && (k = read(fd, text + n, cap - n)) > 0)
            n += (size_t)k;
        if (n < cap && k < 0) {
            kl_msg(m, KL_RC_USAGE, "cannot read %s: %s", path, strerror(errno));
            free(text);
            text = NULL;
            goto out;
        }
        if (n < cap)
            break;
    }
    text[n] = 0;
    *len = n;
out:
    if (fd >= 0)
        close(fd);
    return text;
}
