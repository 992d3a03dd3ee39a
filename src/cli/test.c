/* test.c - `kiln test`: the cases of files and folders. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/case.h"

struct paths {
    char **v;
    size_t n;
};

static void add(struct paths *p, char *path)
{
    p->v = kl_xgrow(p->v, sizeof *p->v, p->n);
    p->v[p->n++] = path;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The .kiln files below a folder, sorted, so that the order does not depend on the disk. */
static int walk(struct paths *out, const char *dir, int depth)
{
    DIR *d = depth < 32 ? opendir(dir) : NULL;
    if (!d)
        return kl_fail(KL_RC_USAGE, "cannot read %s: %s", dir,
                       depth < 32 ? strerror(errno) : "too many levels of folders");
    struct paths here = {0};
    int rc = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.')
            add(&here,
                kl_xprintf("%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", e->d_name));
    closedir(d);
    if (here.n)
        qsort(here.v, here.n, sizeof *here.v, by_name);
    for (size_t i = 0; i < here.n; i++) {
        struct stat st;
        size_t len = strlen(here.v[i]);
        bool ok = lstat(here.v[i], &st) == 0;
        if (ok && S_ISDIR(st.st_mode) && !rc)
            rc = walk(out, here.v[i], depth + 1);
        if (ok && !S_ISDIR(st.st_mode) && len > 5 && strcmp(here.v[i] + len - 5, ".kiln") == 0)
            add(out, here.v[i]);
        else
            free(here.v[i]);
    }
    free(here.v);
    return rc;
}

int kl_cmd_test(const struct kl_opts *o)
{
    struct kl_tally t = {.verbose = kl_opt_given(o, KL_OPT_verbose)};
    struct paths p = {0};
    kiln_device device = KILN_DEVICE_AUTO;
    int32_t index;
    const char *dev = kl_opt(o, KL_OPT_device);
    int rc = 0;
    if (!o->narg)
        return kl_usage(o, "kiln test needs a file or a folder");
    if (dev && kl_parse_device(dev, &device, &index))
        return KL_RC_USAGE;
    t.interp_only = device == KILN_DEVICE_INTERP;
    t.device = device;
    for (size_t i = 0; i < o->narg && !rc; i++) {
        struct stat st;
        if (stat(o->arg[i], &st))
            rc = kl_fail(KL_RC_USAGE, "cannot read %s: %s", o->arg[i], strerror(errno));
        else if (S_ISDIR(st.st_mode))
            rc = walk(&p, o->arg[i], 0);
        else
            add(&p, kl_xstrndup(o->arg[i], strlen(o->arg[i])));
    }
    for (size_t i = 0; i < p.n && !rc; i++)
        rc = kl_cases_run(&t, o, p.v[i]);
    if (!rc) {
        if (t.skipped)
            printf("skipped: no C compiler, or a CPU without code for it (`kiln doctor`); the "
                   "interpreter's half passed\n");
        printf("%u passed, %u failed, %u skipped\n", t.passed, t.failed, t.skipped);
        rc = t.failed                                 ? KL_RC_FINDINGS
             : device == KILN_DEVICE_CPU && t.skipped ? KL_RC_ENV
                                                      : KL_RC_OK;
    }
    kl_tally_close(&t);
    for (size_t i = 0; i < p.n; i++)
        free(p.v[i]);
    free(p.v);
    return rc;
}
