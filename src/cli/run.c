/* run.c - `kiln run`: launches, their outputs, and what was asked about them.
 *
 * A command line holds one kernel, or several with --then between them; each has its own words and
 * its own -o and -D.  Everything that can be wrong with the command line, files and shapes is found
 * before the first launch; output files get their names only after the last one. */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/compare.h"
#include "cli/output.h"
#include "cli/trace/trace.h"
#include "tool.h"

/* One kernel of the command line. */
struct stage {
    const char *spec; /* FILE:KERNEL */
    struct kl_part part;
    struct kl_session s; /* the context is that of the first stage */
    struct kl_assigns as;
    struct kl_args args;
    struct kl_earlier link; /* of the next stage: what stands before it */
    kiln_kernel *k;
    const char **wanted; /* names of -o, NULL-terminated */
    kiln_spec *time;     /* with --time */
};

struct run {
    const struct kl_opts *o;
    struct stage *st;
    size_t n;
    struct kl_outputs out;
    struct kl_verify verify; /* of the last stage */
    struct kl_tracer *trace; /* kiln trace; or NULL */
    size_t repeat;
};

/* ---- the command line ---- */

/* Cut the command line at each --then. */
static int read_stages(struct run *r)
{
    const struct kl_opts *o = r->o;
    r->st = kl_xalloc((o->nopt + 1) * sizeof *r->st);
    if (!o->narg || (o->nopt && o->opt[0].id == KL_OPT_then && !o->opt[0].at))
        return kl_usage(o, "kiln %s needs a file", o->cmd->name);
    r->st[0].spec = o->arg[0];
    r->st[0].part = (struct kl_part){.arg0 = 1};
    r->n = 1;
    for (size_t i = 0; i < o->nopt; i++) {
        struct kl_part *p = &r->st[r->n - 1].part;
        if (o->opt[i].id != KL_OPT_then)
            continue;
        if (o->opt[i].at < p->arg0)
            return kl_usage(o, "kiln %s needs a file before --then", o->cmd->name);
        p->arg1 = o->opt[i].at;
        p->opt1 = i;
        r->st[r->n++] = (struct stage){
            .spec = o->opt[i].val, .part = {.arg0 = o->opt[i].at, .opt0 = i + 1}};
    }
    r->st[r->n - 1].part.arg1 = o->narg;
    r->st[r->n - 1].part.opt1 = o->nopt;
    return 0;
}

static int read_words(struct run *r)
{
    struct kl_msg m;
    for (size_t i = 0; i < r->n; i++) {
        struct stage *s = &r->st[i];
        size_t n = 0;
        int rc = kl_assigns_read_part(&s->as, r->o, &s->part);
        if (rc)
            return rc;
        for (size_t k = s->part.opt0; k < s->part.opt1; k++)
            if (r->o->opt[k].id == KL_OPT_output &&
                !kl_outputs_add(&r->out, r->o->opt[k].val, i, &m))
                return kl_usage(r->o, "%s", m.text);
        s->wanted = kl_xalloc((r->out.n + 1) * sizeof *s->wanted);
        for (size_t k = 0; k < r->out.n; k++)
            if (r->out.v[k].stage == i)
                s->wanted[n++] = r->out.v[k].name;
    }
    return 0;
}

/* With no compiler named the library says nothing, as a host may want it so.  Here somebody waits
 * for a kernel that runs a hundred times slower. */
static void say_interpreted(const struct run *r, kiln_device device)
{
    const char *cc = getenv("KILN_CC");
    if (device != KILN_DEVICE_AUTO || r->st[0].s.opt.cc || !kl_tool_cpu_level() ||
        kiln_context_device(r->st[0].s.ctx) != KILN_DEVICE_INTERP)
        return;
    fprintf(stderr, "%swarning[K1803]%s: kernels are interpreted: %s\n",
            r->o->color_err ? "\033[1;35m" : "", r->o->color_err ? "\033[0m" : "",
            cc && !*cc ? "the compiler is turned off (KILN_CC is empty)"
                       : "no C compiler was found; on Debian: apt install gcc (or clang)");
}

static int listen(struct run *r)
{
    struct kl_session *s = &r->st[0].s;
    kiln_diags *d = NULL;
    uint32_t flags = KILN_TRACE_DEVICE_TIMES;
    flags |= kl_opt_given(r->o, KL_OPT_workers) ? (uint32_t)KILN_TRACE_WORKERS : 0;
    r->trace->device = kiln_context_device_info(s->ctx)->name;
    kiln_status st = kiln_context_trace(s->ctx, flags, kl_tracer_hear, r->trace, &d);
    return st ? kl_session_fail(s, st, d) : 0;
}

static int load(struct run *r, kiln_device device)
{
    kl_tracer_step(r->trace, "open the device");
    int rc = kl_session_open(&r->st[0].s, r->o, device, 0, false);
    kl_tracer_done(r->trace);
    if (!rc)
        say_interpreted(r, device);
    if (!rc && r->trace)
        rc = listen(r);
    for (size_t i = 0; i < r->n && !rc; i++) {
        struct stage *s = &r->st[i];
        s->s.o = r->o;
        s->s.ctx = r->st[0].s.ctx;
        rc = kl_session_load(&s->s, s->spec);
        if (!rc)
            rc = kl_session_tuned(&s->s, NULL, i && strcmp(s->s.path, s[-1].s.path) == 0);
        if (!rc)
            rc = kl_session_kernel(s->s.mod, s->s.path, s->s.want, &s->k);
    }
    return rc;
}

static int open_outputs(struct run *r)
{
    struct kl_msg m;
    for (size_t i = 0; i < r->out.n; i++) {
        const struct kl_output *w = &r->out.v[i];
        const char *path = r->out.file[w->file].path;
        const kiln_param_info *p = kl_param_find(r->st[w->stage].k, w->name, &m);
        if (!p)
            return kl_fail(m.rc, "-o: %s", m.text);
        if (p->kind != KILN_PARAM_ARRAY || !p->writes)
            return kl_fail(KL_RC_USAGE, "-o %s=%s: %s", p->name, path,
                           p->kind == KILN_PARAM_ARRAY ? "the kernel does not write this array"
                                                       : "it is no array");
    }
    return kl_outputs_open(&r->out, &m) ? 0 : kl_fail(m.rc, "%s", m.text);
}

static int write_outputs(struct run *r)
{
    struct kl_msg m;
    for (size_t i = 0; i < r->out.n; i++)
        r->out.v[i].arr = kl_args_find(&r->st[r->out.v[i].stage].args, r->out.v[i].name);
    return kl_outputs_write(&r->out, stdout, &m) ? 0 : kl_fail(m.rc, "%s", m.text);
}

/* ---- elements that nothing wrote ---- */

/* Integers and 8-bit floats may be written with the very value of the poison.  If a second run
 * has the same inputs, it tells: elements that follow the second pattern were not written.  Beside
 * other kernels (*sure is false) it has not. */
static uint64_t confirm(struct stage *r, struct kl_arr *a, bool *sure)
{
    uint64_t n = 0;
    uint32_t w = kl_elems[a->elem].bytes;
    kiln_diags *d = NULL;
    for (size_t i = 0; i < r->args.narr; i++) {
        const struct kl_arr *b = &r->args.arr[i];
        *sure &= !b->alias && (b->made || b->p->has_init || !b->p->writes);
    }
    char *first = *sure ? malloc((size_t)(a->count * w) + 1) : NULL;
    if (!first) {
        *sure = false;
        return kl_arr_poisoned(a);
    }
    memcpy(first, a->data, (size_t)(a->count * w));
    kl_arr_poison(a, 1);
    if (kiln_launch(r->k, NULL, r->args.arg, r->args.n, &d) == KILN_OK)
        for (uint64_t i = 0; i < a->count; i++)
            n += memcmp(first + i * w, (char *)a->data + i * w, w) != 0;
    kiln_diags_free(d);
    memcpy(a->data, first, (size_t)(a->count * w));
    free(first);
    return n;
}

static void report_unwritten(struct stage *r, bool alone)
{
    for (size_t i = 0; i < r->args.narr; i++) {
        struct kl_arr *a = &r->args.arr[i];
        bool sure = alone;
        uint64_t n = a->made ? kl_arr_poisoned(a) : 0;
        if (n && (!kl_is_float(a->elem) || kl_elems[a->elem].bytes == 1) && a->elem != KL_bool)
            n = confirm(r, a, &sure);
        if (n)
            kl_warn("%s: %s%llu of %llu elements were never written", a->p->name,
                    sure ? "" : "up to ", (unsigned long long)n, (unsigned long long)a->count);
    }
}

/* ---- the launches ---- */

/* Values of stage i, from the command line and from the stages before. */
static int give(struct run *r, size_t i)
{
    struct kl_msg m;
    struct stage *s = &r->st[i], *last = i ? s - 1 : NULL;
    if (last)
        s->link = (struct kl_earlier){&last->args, i > 1 ? &last->link : NULL};
    if (kl_args_set_after(&s->args, s->k, s->as.v, s->as.n, 0, last ? &s->link : NULL, &m))
        return 0;
    return kl_fail(m.rc, "%s", m.text);
}

/* Memory for what it writes; code, if it is to be timed. */
static int prepare(struct run *r, struct stage *s)
{
    struct kl_msg m = {0};
    kiln_diags *d = NULL;
    kiln_status st = kl_args_outputs(&s->args, s->wanted, 0, &d, &m);
    if (st && m.rc)
        return kl_fail(m.rc, "%s", m.text);
    for (size_t i = 0; !st && s->wanted[i]; i++)
        if (!kl_args_find(&s->args, s->wanted[i]))
            return kl_fail(KL_RC_USAGE, "-o %s: the kernel also reads %s, so it must be given",
                           s->wanted[i], s->wanted[i]);
    if (!st && kl_opt_given(r->o, KL_OPT_time))
        st = kiln_specialize(s->k, s->args.arg, s->args.n, &s->time, &d);
    if (st)
        return kl_session_fail(&s->s, st, d);
    kiln_diags_free(d); /* warnings come again with the launch */
    return 0;
}

static int launch(struct run *r)
{
    kiln_diags *d = NULL;
    size_t failed;
    struct stage *last = &r->st[r->n - 1];
    kl_tracer_step(r->trace, "make the arrays");
    int rc = give(r, 0);
    if (!rc)
        rc = open_outputs(r);
    if (!rc)
        rc = kl_verify_open(&r->verify, &last->s, last->k, last->wanted);
    if (!rc)
        rc = prepare(r, &r->st[0]);
    for (size_t i = 1; i < r->n && !rc; i++) {
        rc = give(r, i);
        if (!rc)
            rc = prepare(r, &r->st[i]);
    }
    kl_tracer_done(r->trace);
    if (rc)
        return rc;
    struct kl_args **run = kl_xalloc(r->n * sizeof *run);
    for (size_t i = 0; i < r->n; i++)
        run[i] = &r->st[i].args;
    kiln_status st = kl_chain_launch(&r->st[0].s, run, r->n, r->repeat, &failed, &d);
    free(run);
    return st ? kl_session_fail(&r->st[failed].s, st, d) : 0;
}

/* ---- the command ---- */

/* Whether a later kernel works on the memory of an array. */
static bool goes_on(const struct run *r, size_t stage, const struct kl_arr *a)
{
    for (size_t i = stage + 1; i < r->n; i++)
        for (size_t k = 0; k < r->st[i].args.narr; k++)
            if (r->st[i].args.arr[k].data == a->data)
                return true;
    return false;
}

static void summaries(struct run *r)
{
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->st[i].args.narr; k++) {
            const struct kl_arr *a = &r->st[i].args.arr[k];
            if (a->p->writes && !kl_outputs_wants(&r->out, i, a->p->name) && !goes_on(r, i, a))
                kl_summary(a, stdout);
        }
}

static int run(struct run *r)
{
    kiln_device device = KILN_DEVICE_AUTO;
    int32_t index;
    const char *dev = kl_opt(r->o, KL_OPT_device);
    if (dev && kl_parse_device(dev, &device, &index))
        return KL_RC_USAGE;
    if (kl_opt_given(r->o, KL_OPT_tol) && !kl_opt_given(r->o, KL_OPT_verify))
        return kl_usage(r->o, "--tol needs --verify");
    int rc = read_stages(r);
    if (!rc)
        rc = read_words(r);
    if (!rc)
        rc = load(r, device);
    if (!rc)
        rc = launch(r);
    if (rc || r->trace)
        return rc;
    for (size_t i = 0; i < r->n; i++)
        report_unwritten(&r->st[i], r->n == 1);
    rc = write_outputs(r);
    if (rc)
        return rc;
    summaries(r);
    struct stage *last = &r->st[r->n - 1];
    rc = kl_verify_run(&r->verify, &last->args, &last->as, last->wanted);
    for (size_t i = 0; i < r->n && rc <= KL_RC_FINDINGS; i++) {
        struct stage *s = &r->st[i];
        if (!s->time)
            continue;
        if (r->n > 1)
            printf("%s:\n", kiln_kernel_name(s->k));
        int timed = kl_time(&s->s, &s->args, kiln_spec_get_info(s->time));
        rc = timed ? timed : rc;
    }
    return rc;
}

static void close_all(struct run *r)
{
    kl_outputs_free(&r->out);
    kl_verify_close(&r->verify);
    for (size_t i = r->n; i-- > 0;) { /* the first one owns the context */
        struct stage *s = &r->st[i];
        kiln_spec_free(s->time);
        kl_args_free(&s->args);
        kl_assigns_free(&s->as);
        free(s->wanted);
        if (i)
            s->s.ctx = NULL;
        kl_session_close(&s->s);
    }
    free(r->st);
}

int kl_run_traced(const struct kl_opts *o, struct kl_tracer *t, size_t repeat)
{
    struct run r = {.o = o, .trace = t, .repeat = repeat};
    int rc = run(&r);
    kiln_context *ctx = r.n ? r.st[0].s.ctx : NULL;
    if (ctx)
        kiln_context_trace(ctx, 0, NULL, NULL, NULL); /* tells what the device did */
    if (!rc && t->device)
        t->device = t->name = kl_xstrndup(t->device, strlen(t->device)); /* outlives the context */
    close_all(&r);
    return rc;
}

int kl_cmd_run(const struct kl_opts *o)
{
    struct run r = {.o = o, .repeat = 1};
    int rc = run(&r);
    close_all(&r);
    return rc;
}
