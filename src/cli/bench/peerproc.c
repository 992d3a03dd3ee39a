/* peerproc.c - the process of a peer: one JSON object a line, in both directions.
 *
 * The child runs in a process group of its own and is ended with it.  An answer that does not come
 * in time (KL_PEER_ANSWER), that is no JSON, or a closed pipe ends the process, not the benchmark. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/bench/peer.h"

enum { LINE_MOST = 4 << 20 };

/* What a signal handler has to end and to remove.  A peer beyond MOST is only left to itself. */
enum { MOST = 32 };
static struct {
    volatile long pid;
    char *volatile dir;
} running[MOST];

/* The place of a folder, or of none. */
static int place(const char *dir)
{
    int i = 0;
    while (i < MOST && running[i].dir != dir)
        i++;
    return i;
}

static void note(long pid, char *dir)
{
    int at = place(dir);
    at = at < MOST ? at : place(NULL);
    if (at < MOST) {
        running[at].pid = pid;
        running[at].dir = dir;
    }
}

static void forget(const char *dir)
{
    for (int i = 0; i < MOST; i++)
        if (dir && running[i].dir == dir) {
            running[i].dir = NULL;
            running[i].pid = 0;
        }
}

void kl_proc_abandon(void)
{
    for (int i = 0; i < MOST; i++) {
        if (!running[i].dir)
            continue;
        if (running[i].pid > 0)
            kill(-(pid_t)running[i].pid, SIGKILL);
        int fd = open(running[i].dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (int n = 0; fd >= 0 && n < KL_PEER_FILES; n++) {
            char two[] = {(char)('0' + n / 10), (char)('0' + n % 10), '.', 'n', 'p', 'y', 0};
            unlinkat(fd, n < 10 ? two + 1 : two, 0);
        }
        rmdir(running[i].dir);
    }
}

static void child(const char *const *argv, int in, int out, uint32_t threads,
                  const cpu_set_t *cores)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                        "MKL_NUM_THREADS"};
    char n[16];
    snprintf(n, sizeof n, "%u", threads);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        setenv(names[i], n, 1);
    setpgid(0, 0);
    sched_setaffinity(0, sizeof *cores, cores); /* this thread may be pinned to one */
    signal(SIGPIPE, SIG_DFL);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0)
        _exit(126);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

bool kl_proc_start(struct kl_proc *p, const char *const *argv, uint32_t threads, struct kl_msg *m)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    const char *tmp = getenv("TMPDIR");
    signal(SIGPIPE, SIG_IGN); /* a peer that has ended is found by its answer */
    if (!p->dir) {
        p->dir = kl_xprintf("%s/kiln-peer-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
        if (!mkdtemp(p->dir)) {
            kl_msg(m, KL_RC_ENV, "%s: %s", p->dir, strerror(errno));
            free(p->dir);
            p->dir = NULL;
            return false;
        }
        note(0, p->dir); /* before there is a child: its number comes below */
    }
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        return kl_msg(m, KL_RC_ENV, "a pipe: %s", strerror(errno));
    cpu_set_t cores;
    kl_all_cores(&cores, sizeof cores);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child(argv, in[0], out[1], threads, &cores);
    setpgid(pid, pid); /* here too, so that the group exists before it is ended */
    note(pid > 0 ? pid : 0, p->dir);
    close(in[0]);
    close(out[1]);
    p->to = in[1];
    p->from = out[0];
    p->pid = pid > 0 ? pid : 0;
    p->gone = p->stale = false;
    return pid > 0 || kl_msg(m, KL_RC_ENV, "%s: %s", argv[0], strerror(errno));
}

static bool say(struct kl_proc *p, const char *s, size_t n)
{
    while (n) {
        ssize_t k = write(p->to, s, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        s += k;
        n -= (size_t)k;
    }
    return true;
}

/* How a peer ended that has closed its output.  It stays to be waited for by kl_proc_end. */
static void ended(struct kl_proc *p, struct kl_msg *m)
{
    siginfo_t i = {0};
    for (int n = 0; n < 50 && p->pid > 0; n++) {
        if (waitid(P_PID, (id_t)p->pid, &i, WEXITED | WNOHANG | WNOWAIT) || i.si_pid)
            break;
        poll(NULL, 0, 10);
    }
    p->gone = true;
    if (!i.si_pid)
        kl_msg(m, KL_RC_ENV, "it has closed its output");
    else if (i.si_code == CLD_EXITED)
        kl_msg(m, KL_RC_ENV, "it has ended with exit status %d%s", i.si_status,
               i.si_status == 127 ? " (it, or what interprets it, was not found)" : "");
    else
        kl_msg(m, KL_RC_ENV, "it has crashed: signal %d, %s", i.si_status,
               strsignal(i.si_status));
}

/* The next line, without its end; NULL: there is none. */
static char *hear(struct kl_proc *p, struct kl_msg *m)
{
    double stop = kl_bench_now(NULL) + p->answer_s;
    for (;;) {
        char *end = p->have ? memchr(p->buf, '\n', p->have) : NULL;
        if (end) {
            size_t n = (size_t)(end - p->buf);
            char *line = kl_xstrndup(p->buf, n);
            p->have -= n + 1;
            memmove(p->buf, end + 1, p->have);
            return line;
        }
        if (p->room - p->have < 4096) {
            char *more = kl_xalloc(2 * p->room + 8192);
            if (p->have)
                memcpy(more, p->buf, p->have);
            free(p->buf);
            p->buf = more;
            p->room = 2 * p->room + 8192;
        }
        struct pollfd f = {.fd = p->from, .events = POLLIN};
        double left = stop - kl_bench_now(NULL);
        int ready = left > 0 ? poll(&f, 1, (int)(left * 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t k = ready > 0 ? read(p->from, p->buf + p->have, p->room - p->have) : -1;
        if (ready == 0) {
            p->gone = true;
            kl_msg(m, KL_RC_ENV, "it has not answered within %g s (KILN_PEER_TIMEOUT; else ten "
                              "times --timeout, or 30)",
                   p->answer_s);
            return NULL;
        }
        if (k <= 0) {
            ended(p, m);
            return NULL;
        }
        if (p->have > LINE_MOST) {
            p->gone = true;
            kl_msg(m, KL_RC_ENV, "it answered a line of more than %d bytes", LINE_MOST);
            return NULL;
        }
        p->have += (size_t)k;
    }
}

/* A terminal shall not obey it. */
static void plain(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || (unsigned char)*s > '~')
            *s = '?';
}

void *kl_proc_ask(struct kl_proc *p, void *question, struct kl_msg *m)
{
    char *text = json_dumps(question, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(question);
    if (!text) {
        kl_msg(m, KL_RC_INTERNAL, "a question that is no JSON");
        return NULL;
    }
    bool ok = say(p, text, strlen(text)) && say(p, "\n", 1);
    free(text);
    char *line = ok ? hear(p, m) : NULL;
    if (!ok)
        ended(p, m);
    if (!line)
        return NULL;
    json_error_t e;
    json_t *answer = json_loads(line, 0, &e);
    if (!json_is_object(answer)) {
        plain(line);
        kl_msg(m, KL_RC_ENV, "it answered no JSON object: %.100s", line);
        json_decref(answer);
        answer = NULL;
        p->gone = true; /* nobody knows what the next line would answer */
    }
    free(line);
    const char *error = json_string_value(json_object_get(answer, "error"));
    if (error) {
        kl_msg(m, KL_RC_ENV, "%.*s", (int)strcspn(error, "\n"), error);
        plain(m->text);
        p->stale = json_is_true(json_object_get(answer, "again"));
        json_decref(answer);
        return NULL;
    }
    return answer;
}

void kl_proc_clear(struct kl_proc *p)
{
    DIR *d = p->dir ? opendir(p->dir) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) /* also what a peer left there */
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    p->files = 0;
}

void kl_proc_stop(struct kl_proc *p)
{
    if (p->pid > 0) {
        if (!p->gone)
            say(p, "{\"do\":\"bye\"}\n", 13);
        close(p->to);
        for (int i = 0; i < 100 && !p->gone && waitpid((pid_t)p->pid, NULL, WNOHANG) == 0; i++)
            poll(NULL, 0, 20);
        kill(-(pid_t)p->pid, SIGKILL); /* it, or what it left behind */
        note(0, p->dir);
        waitpid((pid_t)p->pid, NULL, 0);
        close(p->from);
    }
    free(p->buf);
    p->buf = NULL;
    p->have = p->room = 0;
    p->pid = 0;
    p->to = p->from = -1;
}

void kl_proc_end(struct kl_proc *p)
{
    kl_proc_stop(p);
    kl_proc_clear(p);
    if (p->dir) {
        forget(p->dir);
        rmdir(p->dir);
        free(p->dir);
    }
    *p = (struct kl_proc){.to = -1, .from = -1};
}

bool kl_array_save(const char *path, const struct kl_arr *a, struct kl_msg *m)
{
    char head[KL_NPY_HEADER];
    uint32_t w = kl_elems[a->elem].bytes;
    size_t n = kl_npy_header(a->elem, a->ndim, a->shape, head);
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(head, 1, n, f) == n;
    if (ok && a->dense)
        ok = fwrite(a->data, w, (size_t)a->count, f) == a->count;
    for (uint64_t i = 0; ok && !a->dense && i < a->count; i++)
        ok = fwrite(kl_arr_at(a, i), w, 1, f) == 1;
    if (f && fclose(f))
        ok = false;
    return ok || kl_msg(m, KL_RC_ENV, "cannot write %s", path);
}

bool kl_proc_write_array(struct kl_proc *p, const struct kl_arr *a, const char *same, char **path,
                         struct kl_msg *m)
{
    if (p->files == KL_PEER_FILES)
        return kl_msg(m, KL_RC_USAGE, "more than %d arrays", KL_PEER_FILES);
    *path = kl_xprintf("%s/%d.npy", p->dir, p->files++);
    return (same && link(same, *path) == 0) || kl_array_save(*path, a, m);
}
