/* check.c - `kiln check`: a launch with all checks on, in the interpreter or as PTX. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/case.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/sarif.h"
#include "tool.h"

/* What runs on each device, and what only the other one can see. */
#define OF_BOTH                                                                                    \
    "bounds", "padding", "races", "stores that meet", "float order", "uninitialised", "unwritten", \
        "overflow", "division", "loops"
#define OF_SIM "memory", "alignment", "barriers", "shared memory"
static const char *const checks_interp[] = {OF_BOTH, NULL};
static const char *const checks_sim[] = {OF_BOTH, OF_SIM, NULL};
static const char *const not_interp[] = {OF_SIM, NULL};
static const char *const not_sim[] = {NULL};

static const char *const *checks_of(kiln_device d)
{
    return d == KILN_DEVICE_SIM ? checks_sim : checks_interp;
}

/* ---- text ---- */

static void say_list(const char *what, const char *const *v)
{
    printf("%s", what);
    for (size_t i = 0; v[i]; i++)
        printf("%s %s", i ? "," : "", v[i]);
}

static int exit_code(const struct kl_found *f)
{
    return f->errors ? KL_RC_FINDINGS : KL_RC_OK;
}

/* The last line: "1 error, 2 warnings, 1 suppressed. checks run: ... exit 1" */
static void say_summary(const struct kl_found *f, kiln_device d, int rc)
{
    printf("%u error%s, %u warning%s, %u suppressed.", f->errors, f->errors == 1 ? "" : "s",
           f->warnings, f->warnings == 1 ? "" : "s", f->suppressed);
    say_list(" checks run:", checks_of(d));
    printf(". exit %d\n", rc);
}

bool kl_is_finding(const kiln_diag *d)
{
    if (strcmp(d->code, "K2702") == 0) /* padding: `kiln explain` has it, too */
        return true;
    /* K12xx to K17xx: what the checker finds */
    return d->code[0] == 'K' && d->code[1] == '1' && d->code[2] >= '2' && d->code[2] <= '7';
}

void kl_found_add(struct kl_found *f, const kiln_diags *d)
{
    for (size_t i = 0; i < kiln_diags_count(d); i++) {
        const kiln_diag *g = kiln_diags_at(d, i);
        f->errors += g->severity == KILN_ERROR;
        f->warnings += g->severity == KILN_WARNING;
        f->suppressed += g->severity == KILN_NOTE && kl_is_finding(g);
    }
}

static int finish_text(const struct kl_opts *o, kiln_diags *d, const struct kl_found *f,
                       kiln_device device)
{
    if (!kl_opt_given(o, KL_OPT_all))
        kl_tool_drop_notes(d);
    kl_show_diags(d, stdout, o->color);
    say_summary(f, device, exit_code(f));
    return exit_code(f);
}

/* ---- JSON: schema kiln.check/1; SARIF ---- */

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_SARIF };

static json_t *json_list(const char *const *v)
{
    json_t *j = json_array();
    for (size_t i = 0; v[i]; i++)
        json_array_append_new(j, json_string(v[i]));
    return j;
}

static int put_json(json_t *j, int rc)
{
    char *text = kl_json_dump(j, 0);
    if (!text)
        return kl_fail(KL_RC_ENV, "out of memory");
    puts(text);
    free(text);
    return rc;
}

static int finish_json(kiln_diags *d, const char *file, const char *kernel, const char *state,
                       int rc, kiln_device device, enum format format)
{
    if (format == FORMAT_SARIF) {
        json_t *log = kl_sarif(d, strcmp(state, "error") != 0, rc);
        kiln_diags_free(d);
        return put_json(log, rc);
    }
    json_t *list = json_array();
    struct kl_found f = {0};
    kl_found_add(&f, d);
    for (size_t i = 0; i < kiln_diags_count(d); i++) {
        const kiln_diag *g = kiln_diags_at(d, i);
        json_t *x = kl_json_diag(g);
        if (x)
            json_object_set_new(x, "suppressed",
                                json_boolean(kl_is_finding(g) && g->severity == KILN_NOTE));
        json_array_append_new(list, x);
    }
    json_t *j = json_pack(
        "{s:s, s:o, s:s?, s:s, s:s, s:o, s:o, s:i, s:i, s:i, s:i, s:o}", "schema", "kiln.check/1",
        "file", kl_json_text(file), "kernel", kernel, "device",
        device == KILN_DEVICE_SIM ? "sim" : "interp", "status", state, "checks",
        json_list(checks_of(device)), "not_run",
        json_list(device == KILN_DEVICE_SIM ? not_sim : not_interp), "errors", (int)f.errors,
        "warnings", (int)f.warnings, "suppressed", (int)f.suppressed, "exit", rc, "diagnostics", list);
    kiln_diags_free(d);
    return put_json(j, rc);
}

/* ---- the command ---- */

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

/* FILE without values: its cases. */
static int check_cases(struct kl_session *s, kiln_device device)
{
    struct kl_tally t = {.verbose = kl_opt_given(s->o, KL_OPT_all), .interp_only = true};
    t.checking = true;
    t.on_sim = device == KILN_DEVICE_SIM;
    int rc = kl_cases_run(&t, s->o, s->path);
    if (!rc && t.passed + t.failed == 0) {
        say_no_arguments(s);
    } else if (!rc) {
        rc = t.failed || t.found.errors ? KL_RC_FINDINGS : KL_RC_OK;
        printf("%u passed, %u failed; ", t.passed, t.failed);
        say_summary(&t.found, device, rc);
    }
    kl_tally_close(&t);
    return rc;
}

static int check(const struct kl_opts *o)
{
    struct kl_session s = {0};
    struct kl_assigns as;
    struct kl_args args = {0};
    struct kl_msg m = {0};
    kiln_kernel *k = NULL;
    kiln_diags *d = NULL;
    kiln_status st;
    const char *format = kl_opt(o, KL_OPT_format), *dev = kl_opt(o, KL_OPT_device);
    kiln_device device = KILN_DEVICE_INTERP;
    int32_t index;
    bool bare = false; /* one kernel, no cases, no arguments: it may need none */
    enum format as_json = !format || strcmp(format, "text") == 0 ? FORMAT_TEXT
                          : strcmp(format, "json") == 0          ? FORMAT_JSON
                                                                 : FORMAT_SARIF;
    bool json = as_json != FORMAT_TEXT;
    if (as_json == FORMAT_SARIF && strcmp(format, "sarif") != 0)
        return kl_usage(o, "--format %s: there are text, json and sarif", format);
    if (dev && kl_parse_device(dev, &device, &index))
        return KL_RC_USAGE;
    if (device == KILN_DEVICE_AUTO)
        device = KILN_DEVICE_INTERP;
    if (device != KILN_DEVICE_INTERP && device != KILN_DEVICE_SIM)
        return kl_usage(o, "--device %s: only interp and sim have checks", dev);
    int rc = kl_assigns_read(&as, o);
    if (rc)
        return rc;
    rc = kl_session_open(&s, o, device, KILN_CHECK_ALL, false);
    s.hold = json;
    if (!rc)
        rc = kl_session_load(&s, o->arg[0]);
    if (s.held) {
        rc = finish_json(s.held, s.path, s.want, "error", rc, device, as_json);
        s.held = NULL;
        goto out;
    }
    if (!rc && !as.n && !s.want && !json) {
        bare = !kl_tool_test_count(s.mod) && kiln_module_count(s.mod) == 1;
        if (!bare) {
            rc = check_cases(&s, device);
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
    struct kl_found f = {0};
    kl_found_add(&f, d);
    if (st && st != KILN_E_BOUNDS)
        rc = json && st != KILN_E_INTERNAL
                 ? finish_json(d, s.path, kiln_kernel_name(k), "error", kl_rc_of(st), device,
                               as_json)
                 : kl_session_fail(&s, st, d);
    else if (json)
        rc = finish_json(d, s.path, kiln_kernel_name(k), f.errors + f.warnings ? "findings" : "clean",
                         exit_code(&f), device, as_json);
    else
        rc = finish_text(o, d, &f, device);
out:
    kl_args_free(&args);
    kl_session_close(&s);
    kl_assigns_free(&as);
    return rc;
}

/* With -o standard output is that file while the command runs; where it printed nothing, as for a
 * bad command line, there is none. */
int kl_cmd_check(const struct kl_opts *o)
{
    const char *path = kl_opt(o, KL_OPT_check_output);
    struct kl_opts plain = *o;
    struct kl_outfile f;
    struct kl_msg m;
    if (!path)
        return check(o);
    plain.color = false;
    if (!kl_outfile_open(&f, path, &m))
        return kl_fail(m.rc, "-o: %s", m.text);
    fflush(stdout);
    int before = dup(STDOUT_FILENO);
    bool ok = before >= 0 && dup2(f.fd, STDOUT_FILENO) >= 0;
    int rc = ok ? check(&plain) : kl_fail(KL_RC_ENV, "-o %s: %s", path, strerror(errno));
    bool wrote = fflush(stdout) == 0 && !ferror(stdout);
    if (before >= 0) {
        dup2(before, STDOUT_FILENO);
        close(before);
    }
    if (ok && !wrote)
        rc = kl_fail(KL_RC_ENV, "-o %s: it cannot be written", path);
    else if (ok && (f.direct || lseek(f.fd, 0, SEEK_CUR) > 0) && !kl_outfile_commit(&f, &m))
        rc = kl_fail(m.rc, "-o: %s", m.text);
    kl_outfile_drop(&f);
    return rc;
}
