/* emit.c - `kiln emit`: the stages of a compile as text. */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "tool.h"

int kl_cmd_emit(const struct kl_opts *o)
{
    static const char *const stages[] = {"ast", "ir", "c", "ptx"};
    struct kl_session s;
    struct kl_assigns as = {0};
    struct kl_args args = {0};
    struct kl_msg m = {0};
    kiln_kernel *k = NULL;
    kiln_diags *d = NULL;
    kiln_status st = KILN_OK;
    char *text = NULL;
    const char *stage = kl_opt(o, KL_OPT_stage);
    stage = stage ? stage : "ir";
    bool known = false;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        known |= strcmp(stage, stages[i]) == 0;
    if (!known)
        return kl_usage(o, "--stage %s: there are ast, ir, c and ptx", stage);
    int rc = kl_assigns_read(&as, o);
    if (rc)
        return rc;
    /* no child process: nothing is compiled to an object */
    rc = kl_session_open(&s, o, KILN_DEVICE_INTERP, 0, false);
    if (!rc)
        rc = kl_session_load(&s, o->arg[0]);
    bool ast = strcmp(stage, "ast") == 0;
    if (!rc && (!ast || s.want))
        rc = kl_session_kernel(s.mod, s.path, s.want, &k);
    if (rc)
        goto out;

    const char **skip = kl_xalloc((o->nopt + 1) * sizeof *skip);
    size_t n = 0;
    for (size_t i = 0; i < o->nopt; i++)
        if (o->opt[i].id == KL_OPT_skip)
            skip[n++] = o->opt[i].val;
    kl_tool_emit_opts opts = {.stage = stage,
                              .print_after = kl_opt(o, KL_OPT_print_after),
                              .skip = n ? skip : NULL,
                              .level = s.opt.opt_level,
                              .stop_after = kl_opt(o, KL_OPT_stop_after),
                              .arch = kl_opt(o, KL_OPT_arch),
                              .check = 1};
    /* what is not given gets its shape from the rest, in the library */
    if (!ast && !kl_args_set(&args, k, as.v, as.n, KL_ARGS_SHAPES | KL_ARGS_WORDS, &m))
        rc = kl_fail(m.rc, "%s", m.text);
    if (!rc) {
        st = kl_tool_emit(s.mod, k, args.arg, args.n, &opts, &text, &d);
        if (st)
            rc = kl_session_fail(&s, st, d);
        else
            kl_show_diags(d, stderr, o->color_err);
    }
    free(skip);
    if (text)
        fputs(text, stdout);
    kl_tool_free(s.ctx, text);
out:
    kl_args_free(&args);
    kl_session_close(&s);
    kl_assigns_free(&as);
    return rc;
}
