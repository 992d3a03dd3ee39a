/* report.c - `kiln report`: one HTML file of what explain, bench, check and tune found. */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/report/report.h"

static bool ends(const char *s, const char *with)
{
    size_t n = strlen(s), k = strlen(with);
    return n >= k && strcmp(s + n - k, with) == 0;
}

static bool is_value(const char *s)
{
    struct kl_assign a;
    bool is = kl_assign_split(s, &a);
    if (is)
        free((char *)a.name);
    return is;
}

static bool is_report(const char *s)
{
    return ends(s, ".json") || ends(s, ".tune");
}

/* FILE[:KERNEL] and the values behind it, as `kiln explain` would get them.  A -D that stands behind
 * another file belongs to that one. */
static int from_source(struct kl_rep *r, const struct kl_opts *o, size_t at, size_t *end)
{
    struct kl_opts part = *o;
    part.opt = kl_xalloc((o->nopt + 1) * sizeof *part.opt);
    part.nopt = 0;
    *end = at + 1;
    while (*end < o->narg && is_value(o->arg[*end]))
        ++*end;
    for (size_t i = 0; i < o->nopt; i++) {
        size_t behind = o->opt[i].at;
        bool here = (behind > at && behind <= *end) || behind == 0;
        if (o->opt[i].id != KL_OPT_define || here)
            part.opt[part.nopt++] = o->opt[i];
    }
    part.arg = o->arg + at;
    part.narg = *end - at;
    int rc = kl_rep_source(r, &part);
    free(part.opt);
    return rc;
}

static int read_all(struct kl_rep *r, const struct kl_opts *o)
{
    struct kl_msg m;
    int rc = 0;
    for (size_t i = 0, end; i < o->narg && !rc; i = end) {
        end = i + 1;
        if (is_report(o->arg[i]))
            rc = kl_rep_read(r, o->arg[i], &m) ? 0 : kl_fail(m.rc, "%s", m.text);
        else if (is_value(o->arg[i]))
            rc = kl_usage(o, "`%s` stands behind no source file", o->arg[i]);
        else
            rc = from_source(r, o, i, &end);
    }
    for (size_t i = 0; i < o->nopt && !rc; i++)
        if (o->opt[i].id == KL_OPT_report_bench)
            rc = kl_rep_read(r, o->opt[i].val, &m) ? 0 : kl_fail(m.rc, "--bench: %s", m.text);
    return rc;
}

static int put_out(struct kl_rep *r, const char *path)
{
    struct kl_outfile f;
    struct kl_msg m;
    size_t n;
    char *text = kl_rep_page(r, &n, &m);
    if (!text)
        return kl_fail(m.rc, "%s", m.text);
    int rc = 0;
    if (!path) {
        fwrite(text, 1, n, stdout);
    } else if (!kl_outfile_open(&f, path, &m)) {
        rc = kl_fail(m.rc, "-o: %s", m.text);
    } else {
        bool ok = kl_outfile_write(&f, text, n, &m) && kl_outfile_commit(&f, &m);
        kl_outfile_drop(&f);
        rc = ok ? 0 : kl_fail(m.rc, "-o: %s", m.text);
    }
    free(text);
    if (!rc && path && r->listing < 1 << 20)
        kl_warn("PTX and C are shortened%s, so that %s stays below %d bytes",
                r->pictures < 6 ? " and pictures left out" : "", path, KL_REP_MOST);
    return rc;
}

int kl_cmd_report(const struct kl_opts *o)
{
    struct kl_rep r = {.title = kl_opt(o, KL_OPT_report_title),
                       .date = kl_opt(o, KL_OPT_report_date),
                       .commit = kl_opt(o, KL_OPT_report_commit)};
    if (!o->narg && !kl_opt_given(o, KL_OPT_report_bench))
        return kl_usage(
            o, "kiln report needs a source with values, or JSON of explain, bench or check");
    int rc = read_all(&r, o);
    if (!rc)
        rc = put_out(&r, kl_opt(o, KL_OPT_report_output));
    kl_rep_free(&r);
    return rc;
}
