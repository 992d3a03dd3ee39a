/* test_outfile.c - output files that appear whole or not at all, with and without O_TMPFILE. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

/* File systems that know no files without a name. */
static bool no_tmpfile;
int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if (no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static char dir[64], path[128];

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/kiln-out-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/y.npy", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    no_tmpfile = false;
    unlink(path);
    return rmdir(dir); /* fails if anything else is left */
}

static int entries(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static void content(const char *want)
{
    char buf[64] = "";
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, buf, sizeof buf - 1), (ssize_t)strlen(want));
    assert_string_equal(buf, want);
    close(fd);
}

static void both_ways(void **state)
{
    struct kl_msg m;
    (void)state;
    for (int way = 0; way < 2; way++) {
        struct kl_outfile f, g;
        no_tmpfile = way;
        assert_true(kl_outfile_open(&f, path, &m));
        assert_int_equal(entries(), way); /* a hidden name only where it cannot be avoided */
        assert_int_equal(access(path, F_OK), -1);
        assert_true(kl_outfile_write(&f, "one", 3, &m));
        assert_int_equal(access(path, F_OK), -1);
        assert_true(kl_outfile_commit(&f, &m));
        content("one");
        assert_int_equal(entries(), 1);

        /* replacing, and giving up */
        assert_true(kl_outfile_open(&f, path, &m));
        assert_true(kl_outfile_open(&g, path, &m));
        assert_true(kl_outfile_write(&f, "two!", 4, &m) && kl_outfile_write(&g, "bad", 3, &m));
        content("one");
        assert_true(kl_outfile_commit(&f, &m));
        kl_outfile_drop(&g);
        kl_outfile_drop(&f); /* harmless */
        content("two!");
        assert_int_equal(entries(), 1);
        struct stat st;
        mode_t mask = umask(0);
        umask(mask);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
        unlink(path);
    }
}

static void by_signal(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        no_tmpfile = way;
        pid_t pid = fork();
        if (pid == 0) {
            struct kl_outfile f;
            struct kl_msg m;
            kl_outfile_signals();
            if (!kl_outfile_open(&f, path, &m) || entries() != way)
                _exit(1);
            kl_outfile_write(&f, "half", 4, &m);
            raise(SIGTERM);
            _exit(2);
        }
        int st;
        assert_int_equal(waitpid(pid, &st, 0), pid);
        assert_true(WIFSIGNALED(st) && WTERMSIG(st) == SIGTERM);
        assert_int_equal(entries(), 0);
    }
}

static void in_place(void **state)
{
    struct kl_outfile f;
    struct kl_msg m;
    (void)state;
    assert_true(kl_outfile_open(&f, "/dev/full", &m));
    assert_false(kl_outfile_write(&f, "x", 1, &m));
    assert_int_equal(m.rc, KL_RC_ENV);
    assert_non_null(strstr(m.text, "No space left"));
    kl_outfile_drop(&f);
    assert_true(kl_outfile_open(&f, "/dev/null", &m));
    assert_true(kl_outfile_write(&f, "x", 1, &m) && kl_outfile_commit(&f, &m));
    struct stat st;
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

static void refused(void **state)
{
    char deep[200];
    const char *bad[] = {"", dir, deep, "/nowhere/at/all/y.npy", "/tmp/"};
    struct kl_outfile f;
    struct kl_msg m;
    (void)state;
    snprintf(deep, sizeof deep, "%s/none/y.npy", dir);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(kl_outfile_open(&f, bad[i], &m));
        assert_int_equal(m.rc, KL_RC_USAGE);
        kl_outfile_drop(&f);
    }
    assert_int_equal(entries(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(by_signal, setup, teardown),
        cmocka_unit_test_setup_teardown(in_place, setup, teardown),
        cmocka_unit_test_setup_teardown(refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
