/* trace.c - `kiln trace`: the launches of `kiln run` with a listener, which becomes a file and a
 * table. */
#include "cli/trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static int count_of(const struct kl_opts *o, size_t *n)
{
    const char *s = kl_opt(o, KL_OPT_repeat);
    char *end;
    *n = 1;
    if (!s)
        return 0;
    errno = 0;
    unsigned long v = *s >= '0' && *s <= '9' ? strtoul(s, &end, 10) : 0;
    if (!v || v > 1000000 || errno || *end)
        return kl_fail(KL_RC_USAGE, "--repeat %s: it must be a number from 1 to 1000000", s);
    *n = v;
    return 0;
}

static int write_trace(struct kl_tracer *t, struct kl_outfile *f)
{
    struct kl_msg m;
    size_t n;
    char *text = kl_tracer_json(t, &n);
    bool ok = kl_outfile_write(f, text, n, &m) && kl_outfile_commit(f, &m);
    free(text);
    return ok ? 0 : kl_fail(m.rc, "%s", m.text);
}

static int format_of(const struct kl_opts *o, bool *json)
{
    const char *s = kl_opt(o, KL_OPT_trace_format);
    *json = s && strcmp(s, "json") == 0;
    return s && !*json && strcmp(s, "text") != 0
               ? kl_usage(o, "--format %s: there are text and json", s)
               : 0;
}

static int show(const struct kl_tracer *t, const char *path, bool json)
{
    char *text = NULL;
    if (!json) {
        kl_tracer_table(t, stdout);
        if (path)
            printf("\n%s: %zu spans; open it at https://ui.perfetto.dev or chrome://tracing\n",
                   path, t->n);
    } else if ((text = kl_tracer_report(t, path))) {
        puts(text);
    }
    free(text);
    return json && !text ? kl_fail(KL_RC_ENV, "out of memory") : 0;
}

int kl_cmd_trace(const struct kl_opts *o)
{
    const char *path = kl_opt(o, KL_OPT_trace_file);
    struct kl_outfile f = {.fd = -1};
    struct kl_tracer t;
    struct kl_msg m;
    size_t repeat;
    bool json;
    int rc = count_of(o, &repeat);
    if (rc || (rc = format_of(o, &json)))
        return rc;
    if (path && !kl_outfile_open(&f, path, &m))
        return kl_fail(m.rc, "%s", m.text);
    kl_tracer_init(&t);
    rc = kl_run_traced(o, &t, repeat);
    t.end = kl_tracer_now();
    kl_tracer_order(&t);
    if (!rc && path)
        rc = write_trace(&t, &f);
    if (!rc)
        rc = show(&t, path, json);
    kl_outfile_drop(&f);
    kl_tracer_free(&t);
    return rc;
}
