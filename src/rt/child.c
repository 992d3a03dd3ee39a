/* child.c - run one child process to its end.
 *
 * No shell, no search path, an environment built from nothing, no inherited descriptors, a
 * process group of its own that is killed when the time is over.  Its input is a file, so that
 * no write can raise SIGPIPE in the host; its output comes through one pipe and is bounded.
 * Signal handlers of the host are not touched: the end is seen by polling the pipe, which
 * closes when the last process of the group ends, and by waitpid for those that close
 * their output early or leave it open. */
#define _GNU_SOURCE
#include "rt/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 34)
#define HAVE_CLOSEFROM
#endif
#endif

/* Children that run now, for kl_child_kill_all; 0: free.  One more than there are slots is not
 * an error, it only outlives a signal that ends the host. */
enum { NRUNNING = 64 };
static _Atomic int running[NRUNNING];

static void enter(pid_t pid)
{
    for (int i = 0; i < NRUNNING; i++) {
        int none = 0;
        if (atomic_compare_exchange_strong(&running[i], &none, (int)pid))
            return;
    }
}

static void leave(pid_t pid)
{
    for (int i = 0; i < NRUNNING; i++) {
        int mine = (int)pid;
        if (atomic_compare_exchange_strong(&running[i], &mine, 0))
            return;
    }
}

void kl_child_kill_all(void)
{
    for (int i = 0; i < NRUNNING; i++) {
        int pid = atomic_load(&running[i]);
        if (pid > 0) {
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL); /* it may not have entered its group yet */
        }
    }
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A host may have closed 0, 1 or 2; then ours could lie there and be overwritten in the child. */
static int above_std(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int up = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int e = errno;
    close(fd);
    errno = e;
    return up;
}

/* TMPDIR is the working folder, entered by descriptor: no path that could be changed. */
static const char *const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=.", NULL};

static int file_actions(posix_spawn_file_actions_t *fa, const kl_child *c, int in, int pipe_end)
{
    /* first the folder: its descriptor may be one of 0, 1, 2 */
    int e = c->cwd >= 0 ? posix_spawn_file_actions_addfchdir_np(fa, c->cwd)
                        : posix_spawn_file_actions_addchdir_np(fa, "/");
    if (!e)
        e = in >= 0 ? posix_spawn_file_actions_adddup2(fa, in, 0)
                    : posix_spawn_file_actions_addopen(fa, 0, "/dev/null", O_RDONLY, 0);
    if (!e)
        e = posix_spawn_file_actions_adddup2(fa, pipe_end, 1);
    if (!e)
        e = c->capture_err ? posix_spawn_file_actions_adddup2(fa, pipe_end, 2)
                           : posix_spawn_file_actions_addopen(fa, 2, "/dev/null", O_WRONLY, 0);
#ifdef HAVE_CLOSEFROM
    if (!e) /* the host's own descriptors need not be close-on-exec */
        e = posix_spawn_file_actions_addclosefrom_np(fa, 3);
#endif
    return e;
}

static int spawn(const kl_child *c, int in, int pipe_end, pid_t *pid)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none, all, before;
    int e = posix_spawn_file_actions_init(&fa);
    if (e)
        return e;
    e = posix_spawnattr_init(&at);
    if (e) {
        posix_spawn_file_actions_destroy(&fa);
        return e;
    }
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    e = file_actions(&fa, c, in, pipe_end);
    if (!e)
        e = posix_spawnattr_setflags(&at, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    if (!e)
        e = posix_spawnattr_setpgroup(&at, 0);
    if (!e)
        e = posix_spawnattr_setsigmask(&at, &none);
    if (!e)
        e = posix_spawnattr_setsigdefault(&at, &all);
    if (!e) { /* no handler of this thread between the start and the note of it */
        int masked = pthread_sigmask(SIG_SETMASK, &all, &before);
        e = posix_spawn(pid, c->argv[0], &fa, &at, (char *const *)(uintptr_t)c->argv,
                        (char *const *)(uintptr_t)environment);
        if (!e)
            enter(*pid);
        if (!masked)
            pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&at);
    return e;
}

/* Take what the pipe holds.  false: it is closed at the other end. */
static bool drain(kl_child *c, int fd)
{
    char buf[4096];
    for (;;) {
        ssize_t k = read(fd, buf, sizeof buf);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        if (k == 0)
            return false;
        size_t room = c->nout - 1 - c->have, take = (size_t)k < room ? (size_t)k : room;
        memcpy(c->out + c->have, buf, take);
        c->have += take;
        c->dropped |= take < (size_t)k;
        if (c->dropped)
            return true; /* back to the clock: the writer may never stop */
    }
}

/* Has it ended?  It stays a zombie, so that its number and its group remain ours. */
static bool ended(kl_child *c, pid_t pid)
{
    siginfo_t si = {0};
    while (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0) {
        if (errno == EINTR)
            continue;
        c->unknown = errno == ECHILD; /* SIGCHLD is ignored, or somebody else waited for it */
        return c->unknown;
    }
    return si.si_pid == pid;
}

/* Kill what is left of the group, and take the exit status. */
static void reap(kl_child *c, pid_t pid)
{
    int st;
    pid_t r;
    c->exit_code = -1;
    if (!c->unknown) {
        kill(-pid, SIGKILL);
        if (c->timed_out)
            kill(pid, SIGKILL); /* it may not have entered its group yet */
    }
    leave(pid); /* from here on the number may be another's */
    if (c->unknown)
        return;
    while ((r = waitpid(pid, &st, 0)) < 0 && errno == EINTR)
        ;
    if (r < 0)
        c->unknown = true;
    else if (WIFEXITED(st))
        c->exit_code = WEXITSTATUS(st);
    else if (WIFSIGNALED(st))
        c->signal = WTERMSIG(st);
}

static void follow(kl_child *c, pid_t pid, int fd)
{
    enum { SLICE = 50 };
    int64_t stop = now_ms() + c->timeout_ms;
    bool is_open = true;
    while (is_open || !ended(c, pid)) {
        int64_t left = stop - now_ms();
        if (left <= 0) {
            c->timed_out = true;
            break;
        }
        if (!is_open) { /* the end is a moment away */
            struct timespec half_ms = {0, 500000};
            nanosleep(&half_ms, NULL);
            continue;
        }
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int n = poll(&p, 1, left < SLICE ? (int)left : SLICE);
        if (n > 0)
            is_open = drain(c, fd);
        else if (ended(c, pid))
            break; /* something it started holds the pipe open */
    }
    reap(c, pid);
    drain(c, fd);
}

bool kl_child_run(kl_child *c)
{
    int p[2], in = -1, e;
    pid_t pid = -1;
    c->have = 0;
    c->out[0] = 0;
    c->dropped = c->timed_out = c->unknown = false;
    c->exit_code = c->signal = 0;
    if (pipe2(p, O_CLOEXEC) < 0)
        return false;
    p[0] = above_std(p[0]);
    p[1] = above_std(p[1]);
    if (c->in >= 0)
        in = fcntl(c->in, F_DUPFD_CLOEXEC, 3);
    if (p[0] < 0 || p[1] < 0 || (c->in >= 0 && in < 0) || fcntl(p[0], F_SETFL, O_NONBLOCK) < 0)
        e = errno;
    else
        e = spawn(c, in, p[1], &pid);
    if (in >= 0)
        close(in);
    if (p[1] >= 0)
        close(p[1]);
    if (!e)
        follow(c, pid, p[0]);
    if (p[0] >= 0)
        close(p[0]);
    c->out[c->have] = 0;
    errno = e;
    return e == 0;
}
