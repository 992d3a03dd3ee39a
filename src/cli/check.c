/* check.c - `kiln check`: a launch in the interpreter with all checks on. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/case.h"
#include "cli/command.h"
#include "cli/json.h"
#include "tool.h"

static const char *const checks_interp[] = {"bounds", "uninitialised", "stores that meet", NULL};
static const char *const checks_sim[] = {"bounds",   "alignment", "uninitialised registers",
                                         "barriers", "races in shared memory", NULL};

/* ---- text ---- */

static void say_checks(const char *const *checks)
{
    printf(" checks run:");
    for (size_t i = 0; checks[i]; i++)
        printf("%s %s", i ? "," : "", checks[i]);
    printf(".\n");
}

static int finish_text(const struct kl_opts *o, kiln_diags *d, size_t findings,
                       const char *const *checks)
{
    kl_show_diags(d, stdout, o->color);
    printf("%zu finding%s.", findings, findings == 1 ? "" : "s");
    say_checks(checks);
    return findings ? KL_RC_FINDINGS : KL_RC_OK;
}

/* ---- JSON: schema kiln.check/1 ---- */

static int finish_json(kiln_diags *d, const char *file, const char *kernel, const char *state,
                       int rc, const char *const *checks)
{
    json_t *list = json_array(), *names = json_array();
    for (size_t i = 0; i < kiln_diags_count(d); i++)
        json_array_append_new(list, kl_json_diag(kiln_diags_at(d, i)));
    for (size_t i = 0; checks[i]; i++)
        json_array_append_new(names, json_string(checks[i]));
    json_t *j =
        json_pack("{s:s, s:o, s:s?, s:s, s:o, s:o}", "schema", "kiln.check/1", "file",
                  kl_json_text(file), "kernel", kernel, "status", state, "checks", names,
                  "diagnostics", list);
    kiln_diags_free(d);
    char *text = j ? json_dumps(j, JSON_INDENT(1)) : NULL;
    json_decref(j);
    if (!text)
        return kl_fail(KL_RC_ENV, "out of memory");
    puts(text);
    free(text);
    return rc;
}

/* ---- the command ---- */

static bool is_finding(const kiln_diag *d)
{
    /* K12xx to K17xx: what the checker finds */
    return d->code[0] == 'K' && d->code[1] == '1' && d->code[2] >= '2' && d->code[2] <= '7';
}

static void say_no_arguments(const struct kl_session *s)
{
    printf("%s: no errors; to run a kernel, give its arguments\n", s->path);
}

/* A launch without arguments failed for want of one. */
static bool wants_arguments(kiln_status st, const kiln_diags *d, const struct kl_msg *m)
{
    bool missing = false;
    for (size_t i = 0; i < kiln_diags_count(d); i++) {
        const kiln_diag *g = kiln_diags_at(d, i);
        if (g->severity == KILN_ERROR && strcmp(g->code, "K0706") && strcmp(g->code, "K0711"))
            return false;
        missing |= g->severity == KILN_ERROR;
    }
    return st == KILN_E_ARG && (missing || m->rc == KL_RC_USAGE);
}

/* FILE without values: its cases, in the interpreter only. */
static int check_cases(struct kl_session *s)
{
    struct kl_tally t = {.verbose = false};
    t.interp_only = true;
    int rc = kl_cases_run(&t, s->o, s->path);
    if (!rc && t.passed + t.failed == 0) {
        say_no_arguments(s);
    } else if (!rc) {
        printf("%u passed, %u failed.", t.passed, t.failed);
        say_checks(checks_interp);
    }
    kl_tally_close(&t);
    return rc ? rc : t.failed ? KL_RC_FINDINGS : KL_RC_OK;
}

int kl_cmd_check(const struct kl_opts *o)
{
    struct kl_session s = {0};
    struct kl_assigns as;
    struct kl_args args = {0};
    struct kl_msg m = {0};
    kiln_kernel *k = NULL;
    kiln_diags *d = NULL;
    kiln_status st;
    const char *format = kl_opt(o, KL_OPT_format), *dev = kl_opt(o, KL_OPT_device);
    const char *const *checks = checks_interp;
    kiln_device device = KILN_DEVICE_INTERP;
    int32_t index;
    bool bare = false; /* one kernel, no cases, no arguments: it may need none */
    bool json = format && strcmp(format, "json") == 0;
    if (format && !json && strcmp(format, "text") != 0)
        return kl_usage(o, "--format %s: there are text and json", format);
    if (dev && kl_parse_device(dev, &device, &index))
        return KL_RC_USAGE;
    if (device == KILN_DEVICE_AUTO)
        device = KILN_DEVICE_INTERP;
    if (device != KILN_DEVICE_INTERP && device != KILN_DEVICE_SIM)
        return kl_usage(o, "--device %s: only interp and sim have checks", dev);
    if (device == KILN_DEVICE_SIM)
        checks = checks_sim;
    int rc = kl_assigns_read(&as, o);
    if (rc)
        return rc;
    rc = kl_session_open(&s, o, device, KILN_CHECK_ALL, false);
    s.hold = json;
    if (!rc)
        rc = kl_session_load(&s, o->arg[0]);
    if (s.held) {
        rc = finish_json(s.held, s.path, s.want, "error", rc, checks);
        s.held = NULL;
        goto out;
    }
    if (!rc && !as.n && !s.want && !json && device == KILN_DEVICE_INTERP) {
        bare = !kl_tool_test_count(s.mod) && kiln_module_count(s.mod) == 1;
        if (!bare) {
            rc = check_cases(&s);
            goto out;
        }
    }
    if (!rc)
        rc = kl_session_kernel(s.mod, s.path, s.want, &k);
    if (rc)
        goto out;
    if (!kl_args_set(&args, k, as.v, as.n, 0, &m)) {
        rc = kl_fail(m.rc, "%s", m.text);
        goto out;
    }
    st = kl_args_outputs(&args, NULL, KL_ARGS_READS, &d, &m);
    if (!st)
        st = kiln_launch(k, NULL, args.arg, args.n, &d);
    if (bare && wants_arguments(st, d, &m)) {
        kiln_diags_free(d);
        printf("%s: it holds no cases\n", s.path);
        say_no_arguments(&s);
        goto out;
    }
    if (st && m.rc) {
        rc = kl_fail(m.rc, "%s", m.text);
        goto out;
    }
    size_t findings = 0;
    for (size_t i = 0; i < kiln_diags_count(d); i++)
        findings += is_finding(kiln_diags_at(d, i));
    if (st && st != KILN_E_BOUNDS)
        rc = json && st != KILN_E_INTERNAL
                 ? finish_json(d, s.path, kiln_kernel_name(k), "error", kl_rc_of(st),
                               checks)
                 : kl_session_fail(&s, st, d);
    else if (json)
        rc = finish_json(d, s.path, kiln_kernel_name(k), findings ? "findings" : "clean",
                         findings ? KL_RC_FINDINGS : KL_RC_OK, checks);
    else
        rc = finish_text(o, d, findings, checks);
out:
    kl_args_free(&args);
    kl_session_close(&s);
    kl_assigns_free(&as);
    return rc;
}
