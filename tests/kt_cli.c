/* kt_cli.c - command-line cases: tests/cli/NAME.sh with NAME.out, NAME.err and NAME.rc.
 *
 * The script runs under /bin/sh in a fresh folder, which is also its HOME, with KILN (the
 * command) and SRC (the source tree) in its environment and little else.  A golden that is not
 * there stands for no output, or status 0.  A script may end with status 77 to be skipped;
 * its standard error then says why. */
#define _GNU_SOURCE
#include "kt.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 120 };

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *f)
{
    (void)st, (void)kind, (void)f;
    return remove(path);
}

static void child(const char *src, const char *script, const char *dir)
{
    char *env[8];
    unsigned n = 0;
    env[n++] = kt_strf("KILN=%s", kt.kiln);
    env[n++] = kt_strf("SRC=%s", src);
    env[n++] = kt_strf("HOME=%s", dir);
    env[n++] = kt_strf("PATH=/usr/local/bin:/usr/bin:/bin");
    env[n++] = kt_strf("LC_ALL=C");
    env[n] = NULL;
    char *full = kt_join(src, script);
    int out = open(".out", O_WRONLY | O_CREAT | O_TRUNC, 0600), null = open("/dev/null", O_RDONLY);
    int err = open(".err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (out < 0 || err < 0 || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
        dup2(err, 2) < 0)
        _exit(126);
    setpgid(0, 0);
    alarm(LIMIT_S);
    execle("/bin/sh", "sh", full, (char *)NULL, env);
    _exit(127);
}

/* Exit status, or 1000 + signal. */
static int run(const char *script, const char *dir)
{
    char *src = realpath(kt.root, NULL);
    fflush(stdout);
    pid_t pid = src ? fork() : -1;
    if (pid == 0) {
        if (chdir(dir) != 0)
            _exit(126);
        child(src, script, dir);
    }
    free(src);
    if (pid < 0)
        return -1;
    int st = 0;
    while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
        continue;
    kill(-pid, SIGKILL); /* what the script left running */
    return WIFEXITED(st) ? WEXITSTATUS(st) : 1000 + WTERMSIG(st);
}

/* The golden at stem.suffix against text; an absent golden is `absent`. */
static bool compare(const char *name, const char *stem, const char *suffix, const char *text,
                    size_t n, const char *absent)
{
    char *path = kt_strf("%s%s", stem, suffix);
    size_t nwant = 0;
    char *want = kt_read(path, &nwant);
    bool ok = true;
    if (kt.update && !want && strcmp(text, absent) == 0)
        ;
    else if (kt.update)
        ok = kt_golden(name, path, text, n);
    else
        ok = kt_same(name, path, want ? want : absent, want ? nwant : strlen(absent), text, n);
    free(want);
    free(path);
    return ok;
}

static void one(const char *path)
{
    char dir[] = "/tmp/kt.XXXXXX";
    if (!mkdtemp(dir)) {
        kt_fail(path, "cannot make a folder: %s", strerror(errno));
        return;
    }
    char *stem = kt_strf("%.*s", (int)(strlen(path) - 3), path);
    int rc = run(path, dir);
    char *of = kt_join(dir, ".out"), *ef = kt_join(dir, ".err"), *code = kt_strf("%d\n", rc);
    size_t no = 0, ne = 0;
    char *out = kt_read(of, &no), *err = kt_read(ef, &ne);
    if (!out || !err) {
        kt_fail(path, "the script did not start");
    } else if (rc == 77) {
        kt_skip(path, "%.*s", (int)strcspn(err, "\n"), err);
    } else {
        bool ok = compare(path, stem, ".rc", code, strlen(code), "0\n");
        ok = compare(path, stem, ".out", out, no, "") && ok;
        ok = compare(path, stem, ".err", err, ne, "") && ok;
        if (ok)
            kt_pass(path);
    }
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(of);
    free(ef);
    free(code);
    free(out);
    free(err);
    free(stem);
}

void kt_run_cli(void)
{
    struct kt_list l = kt_files("tests/cli", ".sh");
    for (size_t i = 0; i < l.n; i++) {
        if (!kt_wanted(l.v[i]))
            continue;
        if (!kt.kiln)
            kt_skip(l.v[i], "no --kiln");
        else
            one(l.v[i]);
    }
    kt_list_free(&l);
}
