/* fmt.c - `kiln fmt`: sources in the usual form, in place. */
#define _GNU_SOURCE /* realpath */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "tool.h"

/* Replace the file, or what a symbolic link leads to; it keeps its permissions as far as the
 * system lets it. */
static int replace(const char *path, const char *text, size_t n)
{
    struct kl_msg m;
    struct kl_outfile f;
    char *real = realpath(path, NULL);
    bool ok = kl_outfile_open(&f, real ? real : path, &m);
    if (ok) {
        kl_outfile_like(&f, path);
        ok = kl_outfile_write(&f, text, n, &m) && kl_outfile_commit(&f, &m);
    }
    kl_outfile_drop(&f);
    free(real);
    return ok ? 0 : kl_fail(m.rc, "%s", m.text);
}

static int one(struct kl_session *s, const char *path, bool check)
{
    struct kl_msg m;
    kiln_diags *d = NULL;
    bool in = strcmp(path, "-") == 0;
    char *out = NULL;
    size_t n;
    int rc = 0;
    free(s->text);
    s->text = kl_read_file(in ? "/dev/stdin" : path, &s->len, &m);
    if (!s->text)
        return kl_fail(m.rc, "%s", m.text);
    kiln_status st = kl_tool_format(s->ctx, in ? "<stdin>" : path, s->text, s->len, &out, &n,
                                    &d);
    if (st)
        return kl_session_fail(s, st, d);
    kl_show_diags(d, stderr, s->o->color_err);
    bool differs = n != s->len || memcmp(out, s->text, n) != 0;
    if (check && differs) {
        printf("%s\n", in ? "<stdin>" : path);
        rc = KL_RC_FINDINGS;
    } else if (in && !check) {
        fwrite(out, 1, n, stdout);
    } else if (differs) {
        rc = replace(path, out, n);
    }
    kl_tool_free(s->ctx, out);
    return rc;
}

int kl_cmd_fmt(const struct kl_opts *o)
{
    struct kl_session s;
    bool check = kl_opt_given(o, KL_OPT_fmt_check);
    if (!o->narg)
        return kl_usage(o, "kiln fmt needs a file, or - for standard input");
    int rc = kl_session_open(&s, o, KILN_DEVICE_INTERP, 0, true);
    if (rc)
        return rc;
    for (size_t i = 0; i < o->narg; i++) { /* one that does not parse does not stop the others */
        int r = one(&s, o->arg[i], check);
        rc = r > rc ? r : rc;
    }
    kl_session_close(&s);
    return rc;
}
