/* build.c - `kiln build`: kernels as one C file and its header. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "tool.h"

enum { MOST = 64 };

/* "dir/softmax.kiln": softmax, of dir/softmax. */
static char *base_of(const char *path)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    const char *from = slash ? slash + 1 : path;
    return kl_xstrndup(from, dot && dot > from ? (size_t)(dot - from) : strlen(from));
}

static bool is_identifier(const char *s)
{
    bool ok = isalpha((unsigned char)*s) || *s == '_';
    for (; *s; s++)
        ok &= isalnum((unsigned char)*s) || *s == '_';
    return ok;
}

/* All files, or none; the last path is NULL unless --manifest names it. */
static int write_all(char *const path[3], char *const text[3])
{
    struct kl_msg m;
    struct kl_outfile f[3];
    int n = 0;
    bool ok = true;
    for (; n < 3 && path[n] && ok; n++)
        ok = kl_outfile_open(&f[n], path[n], &m) && kl_outfile_write(&f[n], text[n], strlen(text[n]), &m);
    for (int i = 0; i < n && ok; i++)
        ok = kl_outfile_commit(&f[i], &m);
    for (int i = 0; i < n; i++)
        kl_outfile_drop(&f[i]);
    return ok ? 0 : kl_fail(m.rc, "%s", m.text);
}

/* -D NAME=VALUES, as pairs in v; the names are allocated. */
static int defines(const struct kl_opts *o, const char *(*v)[2], size_t *n)
{
    for (size_t i = 0; i < o->nopt; i++) {
        if (o->opt[i].id != KL_OPT_define)
            continue;
        const char *eq = strchr(o->opt[i].val, '=');
        if (!eq || eq == o->opt[i].val)
            return kl_usage(o, "-D %s: write NAME=VALUE, such as T=f32,bf16", o->opt[i].val);
        v[*n][0] = kl_xstrndup(o->opt[i].val, (size_t)(eq - o->opt[i].val));
        v[(*n)++][1] = eq + 1;
    }
    return 0;
}

int kl_cmd_build(const struct kl_opts *o)
{
    struct kl_session s;
    kiln_diags *d = NULL;
    char *text[3] = {0}, *path[3] = {0}, *list, *stem = NULL, *name = NULL;
    const char *target[MOST];
    kl_tool_build_opts b = {.target = target};
    if (o->narg != 1)
        return kl_usage(o, o->narg ? "build takes one FILE; types and constants go behind -D"
                                   : "build needs a FILE");
    const char *(*def)[2] = kl_xalloc((o->nopt + 1) * sizeof *def);
    b.define = def;
    const char *given = kl_opt(o, KL_OPT_targets);
    list = kl_xstrndup(given ? given : "cpu", strlen(given ? given : "cpu"));
    int rc = kl_session_open(&s, o, KILN_DEVICE_INTERP, 0, false);
    if (!rc)
        rc = defines(o, def, &b.ndefine);
    char *save = NULL;
    for (char *t = strtok_r(list, ",", &save); t && !rc; t = strtok_r(NULL, ",", &save)) {
        if (b.ntarget == MOST)
            rc = kl_usage(o, "--targets: more than %d", MOST);
        else
            target[b.ntarget++] = t;
    }
    if (!rc && !b.ntarget)
        rc = kl_usage(o, "--targets names nothing to build for");
    if (!rc)
        rc = kl_session_load(&s, o->arg[0]);
    if (!rc && s.want) {
        kiln_kernel *k;
        rc = kl_session_kernel(s.mod, s.path, s.want, &k);
    }
    if (!rc) {
        const char *out = kl_opt(o, KL_OPT_name), *slash = strrchr(s.path, '/');
        stem = out ? kl_xstrndup(out, strlen(out)) : base_of(s.path);
        const char *leaf = strrchr(stem, '/') ? strrchr(stem, '/') + 1 : stem;
        name = kl_xstrndup(leaf, strlen(leaf));
        if (!is_identifier(name))
            rc = kl_usage(o, "-o %s: the name begins all names in the files, so it must be one of C", stem);
        b.name = name;
        b.source = slash ? slash + 1 : s.path;
        b.kernel = s.want;
    }
    if (!rc) {
        kiln_status st = kl_tool_build(s.mod, &b, &text[0], &text[1], &text[2], &d);
        if (st)
            rc = kl_session_fail(&s, st, d);
        else
            kl_show_diags(d, stderr, o->color_err);
    }
    if (!rc) {
        const char *json = kl_opt(o, KL_OPT_manifest);
        path[0] = kl_xprintf("%s.h", stem);
        path[1] = kl_xprintf("%s.c", stem);
        path[2] = json ? kl_xstrndup(json, strlen(json)) : NULL;
        rc = write_all(path, text);
    }
    for (int i = 0; i < 3; i++) {
        kl_tool_free(s.ctx, text[i]);
        free(path[i]);
    }
    for (size_t i = 0; i < b.ndefine; i++)
        free((void *)(uintptr_t)def[i][0]);
    free(def);
    free(list);
    free(stem);
    free(name);
    kl_session_close(&s);
    return rc;
}
