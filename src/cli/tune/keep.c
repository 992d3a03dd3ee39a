/* keep.c - the file of `kiln tune`: entries are put in as they are found.
 *
 * Whoever writes reads the file anew under a lock on its folder (the file itself is replaced), so that
 * two searches lose nothing of each other, and a search that is ended keeps what it found before.
 * Where the file cannot be written any more, the entry is printed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/tune/tune.h"

/* -1: no lock is to be had there, and none is needed by whoever is alone. */
static int lock_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? kl_xstrndup(path, (size_t)(slash - path) + 1) : kl_xprintf(".");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        flock(fd, LOCK_EX);
    free(dir);
    return fd;
}

/* The text of a file with these entries put in; *old may be NULL.  0 or an exit code. */
static int merge(struct kl_keep *k, const char *old, size_t n, const kl_tool_tuned *e, size_t ne,
                 char **text)
{
    kiln_diags *d = NULL;
    kiln_status st = kl_tool_tune_text(k->s->mod, k->path, old, n, e, ne, text, &d);
    if (st)
        return kl_session_fail(k->s, st, d);
    kiln_diags_free(d);
    return 0;
}

/* What the file holds now; no file is fine. */
static int read_now(struct kl_keep *k, char **old, size_t *n)
{
    struct kl_msg m;
    *old = NULL;
    *n = 0;
    if (access(k->path, F_OK))
        return 0;
    *old = kl_read_file(k->path, n, &m);
    return *old ? 0 : kl_fail(m.rc, "%s", m.text);
}

int kl_keep_open(struct kl_keep *k, struct kl_session *s, const char *to)
{
    struct kl_outfile f;
    struct kl_msg m;
    struct stat st;
    char *old, *text;
    size_t n;
    *k = (struct kl_keep){.s = s};
    k->path = to ? kl_xprintf("%s", to) : kl_xprintf("%s.tune", s->path);
    if (stat(k->path, &st) == 0 && !S_ISREG(st.st_mode))
        return kl_fail(KL_RC_USAGE,
                       "-o %s: it is no plain file, and entries are kept beside those of before",
                       k->path);
    int rc = read_now(k, &old, &n);
    if (!rc && old && !(rc = merge(k, old, n, NULL, 0, &text)))
        kl_tool_free(s->ctx, text);
    free(old);
    if (!rc && !kl_outfile_open(&f, k->path, &m))
        rc = kl_fail(m.rc, "%s", m.text);
    else if (!rc)
        kl_outfile_drop(&f);
    return rc;
}

/* It was dear: whoever reads this can put it into a file by hand. */
static void print_entry(struct kl_keep *k, const kl_tool_tuned *e)
{
    char *text;
    if (merge(k, NULL, 0, e, 1, &text))
        return;
    printf("what was found, for %s:\n%s", k->path, text);
    fflush(stdout);
    kl_tool_free(k->s->ctx, text);
}

int kl_keep_add(struct kl_keep *k, const kl_tool_tuned *e)
{
    struct kl_outfile f;
    struct kl_msg m = {0};
    char *old, *text = NULL;
    size_t n;
    int lock = lock_folder(k->path);
    int rc = read_now(k, &old, &n);
    if (!rc)
        rc = merge(k, old, n, e, 1, &text);
    free(old);
    if (!rc) {
        bool ok = kl_outfile_open(&f, k->path, &m) && kl_outfile_write(&f, text, strlen(text), &m) &&
                  kl_outfile_commit(&f, &m);
        kl_outfile_drop(&f);
        if (!ok)
            rc = kl_fail(m.rc, "%s", m.text);
    }
    if (text)
        kl_tool_free(k->s->ctx, text);
    if (lock >= 0)
        close(lock);
    if (rc)
        print_entry(k, e);
    k->written += !rc;
    return rc;
}

void kl_keep_close(struct kl_keep *k)
{
    free(k->path);
    *k = (struct kl_keep){0};
}
