/* outfile.c - output files that appear whole or not at all.
 *
 * The file is made without a name (O_TMPFILE) where the file system can, so that even a killed
 * process leaves nothing; else under a temporary name beside the target, which a handler removes
 * when a signal ends the process.  kl_outfile_commit gives it its name by rename.  Opening happens
 * before a kernel runs, so that a path that cannot be written is found first. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names that a signal handler has to remove.  A slot is NULL, or a path that stays valid. */
enum { MOST = 64 };
static char *volatile pending[MOST];

static void remove_pending(void)
{
    for (int i = 0; i < MOST; i++)
        if (pending[i])
            unlink(pending[i]);
}

static void on_signal(int sig)
{
    kl_tool_kill_children(); /* they have process groups of their own */
    kl_proc_abandon();       /* so have these */
    remove_pending();
    signal(sig, SIG_DFL);
    raise(sig);
}

void kl_outfile_signals(void)
{
    static const int sigs[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGXFSZ};
    for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++) {
        struct sigaction old, sa = {.sa_handler = on_signal};
        sigemptyset(&sa.sa_mask);
        if (sigaction(sigs[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(sigs[i], &sa, NULL); /* nohup's SIG_IGN stays */
    }
    atexit(remove_pending); /* for exits where memory has run out */
}

static void remember(char *path)
{
    for (int i = 0; i < MOST; i++)
        if (!pending[i]) {
            pending[i] = path;
            return;
        }
}

static void forget(const char *path)
{
    for (int i = 0; i < MOST; i++)
        if (pending[i] == path)
            pending[i] = NULL;
}

/* A free name beside path, made by try (0: made; -1 with EEXIST: taken). */
static char *fresh_name(const char *path, int (*make)(const char *name, void *user), void *user)
{
    const char *slash = strrchr(path, '/');
    int dir = slash ? (int)(slash - path) + 1 : 0;
    for (unsigned i = 0; i < 1000; i++) {
        char *name = kl_xprintf("%.*s.%.40s.%ld-%u.tmp", dir, path, path + dir, (long)getpid(), i);
        remember(name); /* before it exists, so that no signal falls between */
        if (make(name, user) == 0)
            return name;
        int err = errno;
        forget(name);
        free(name);
        errno = err;
        if (err != EEXIST)
            break;
    }
    return NULL;
}

static int make_open(const char *name, void *user)
{
    struct kl_outfile *f = user;
    f->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    return f->fd < 0 ? -1 : 0;
}

static int make_link(const char *name, void *user)
{
    struct kl_outfile *f = user;
    char fd[64];
    snprintf(fd, sizeof fd, "/proc/self/fd/%d", f->fd);
    return linkat(AT_FDCWD, fd, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static bool fail_open(const char *path, struct kl_msg *m)
{
    return kl_msg(m, KL_RC_USAGE, "cannot write %s: %s", path, strerror(errno));
}

bool kl_outfile_open(struct kl_outfile *f, const char *path, struct kl_msg *m)
{
    struct stat st;
    *f = (struct kl_outfile){.path = path, .fd = -1};
    const char *slash = strrchr(path, '/');
    if (!*path || (slash && !slash[1]))
        return kl_msg(m, KL_RC_USAGE, "cannot write `%s`: it names no file", path);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        /* rename would replace the device itself */
        f->direct = true;
        f->fd = open(path, O_WRONLY | O_CLOEXEC);
        return f->fd >= 0 || fail_open(path, m);
    }
    /* A file that may not be written is not replaced either, though its folder would allow it. */
    if (access(path, F_OK) == 0 && access(path, W_OK))
        return fail_open(path, m);
    char *dir = slash ? kl_xstrndup(path, (size_t)(slash - path) + 1) : kl_xstrndup(".", 1);
    if (access("/proc/self/fd", X_OK) == 0) /* what gives it a name later */
        f->fd = open(dir, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    free(dir);
    if (f->fd >= 0)
        return true;
    f->tmp = fresh_name(path, make_open, f);
    f->linked = f->tmp != NULL;
    return f->tmp || fail_open(path, m);
}

void kl_outfile_like(struct kl_outfile *f, const char *path)
{
    struct stat st;
    if (!f->direct && stat(path, &st) == 0)
        (void)!fchmod(f->fd, st.st_mode & 0777); /* a new file's own permissions will do, too */
}

bool kl_outfile_write(struct kl_outfile *f, const void *p, size_t n, struct kl_msg *m)
{
    const char *s = p;
    while (n) {
        ssize_t k = write(f->fd, s, n < (1u << 30) ? n : 1u << 30);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return kl_msg(m, KL_RC_ENV, "cannot write %s: %s", f->path,
                          strerror(k ? errno : ENOSPC));
        s += k;
        n -= (size_t)k;
    }
    return true;
}

bool kl_outfile_commit(struct kl_outfile *f, struct kl_msg *m)
{
    if (!f->direct && !f->tmp) {
        f->tmp = fresh_name(f->path, make_link, f);
        if (!f->tmp)
            return kl_msg(m, KL_RC_ENV, "cannot write %s: %s", f->path, strerror(errno));
        f->linked = true;
    }
    int fd = f->fd;
    f->fd = -1;
    if (close(fd)) /* some file systems report a full disk here */
        return kl_msg(m, KL_RC_ENV, "cannot write %s: %s", f->path, strerror(errno));
    if (!f->direct && rename(f->tmp, f->path))
        return kl_msg(m, KL_RC_ENV, "cannot write %s: %s", f->path, strerror(errno));
    f->linked = false;
    kl_outfile_drop(f);
    return true;
}

void kl_outfile_drop(struct kl_outfile *f)
{
    if (f->fd >= 0)
        close(f->fd);
    if (f->linked)
        unlink(f->tmp);
    if (f->tmp)
        forget(f->tmp);
    free(f->tmp);
    *f = (struct kl_outfile){.path = f->path, .fd = -1};
}
