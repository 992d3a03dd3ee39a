/* run.c - `kiln run`: one launch, its outputs, and what was asked about it.
 *
 * Everything that can be wrong with the command line, files and shapes is found before the launch;
 * output files get their names only after it. */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/compare.h"
#include "tool.h"

struct run {
    const struct kl_opts *o;
    struct kl_session s;
    struct kl_assigns as;
    struct kl_args args;
    kiln_kernel *k;
    const char **wanted; /* names of -o, NULL-terminated */
    struct kl_outfile *out;
    size_t nout;
    kiln_spec *spec; /* with --time */
    struct kl_verify verify;
};

/* ---- -o NAME=FILE ---- */

static int read_outputs(struct run *r)
{
    r->wanted = kl_xalloc((r->o->nopt + 1) * sizeof *r->wanted);
    r->out = kl_xalloc((r->o->nopt + 1) * sizeof *r->out);
    for (size_t i = 0; i < r->o->nopt; i++) {
        struct kl_assign a;
        if (r->o->opt[i].id != KL_OPT_output)
            continue;
        if (!kl_assign_split(r->o->opt[i].val, &a))
            return kl_usage(r->o, "-o %s: it must be NAME=FILE", r->o->opt[i].val);
        for (size_t j = 0; j < r->nout; j++)
            if (strcmp(r->wanted[j], a.name) == 0 || strcmp(r->out[j].path, a.value) == 0) {
                free((char *)a.name);
                return kl_usage(r->o, "-o %s: the same array or file twice", r->o->opt[i].val);
            }
        r->wanted[r->nout] = a.name;
        r->out[r->nout++] = (struct kl_outfile){.path = a.value, .fd = -1};
    }
    return 0;
}

static int open_outputs(struct run *r)
{
    struct kl_msg m;
    for (size_t i = 0; i < r->nout; i++) {
        const kiln_param_info *p = kl_param_find(r->k, r->wanted[i], &m);
        if (!p)
            return kl_fail(m.rc, "-o: %s", m.text);
        if (p->kind != KILN_PARAM_ARRAY || !p->writes)
            return kl_fail(KL_RC_USAGE, "-o %s=%s: %s", p->name, r->out[i].path,
                           p->kind == KILN_PARAM_ARRAY ? "the kernel does not write this array"
                                                       : "it is no array");
        if (!kl_outfile_open(&r->out[i], r->out[i].path, &m))
            return kl_fail(m.rc, "%s", m.text);
    }
    return 0;
}

static bool write_array(struct kl_outfile *f, const struct kl_arr *a, struct kl_msg *m)
{
    enum { ROW = 1 << 16 };
    char head[KL_NPY_HEADER];
    uint32_t w = kl_elems[a->elem].bytes;
    size_t n = kl_npy_header(a->elem, a->ndim, a->shape, head);
    if (!kl_outfile_write(f, head, n, m))
        return false;
    if (a->dense)
        return kl_outfile_write(f, a->data, (size_t)(a->count * w), m);
    char *row = kl_xalloc((size_t)ROW * w); /* strided: collected in row-major order */
    bool ok = true;
    for (uint64_t i = 0; i < a->count && ok;) {
        uint64_t k = 0;
        for (; k < ROW && i < a->count; k++, i++)
            memcpy(row + k * w, kl_arr_at(a, i), w);
        ok = kl_outfile_write(f, row, (size_t)(k * w), m);
    }
    free(row);
    return ok;
}

static int write_outputs(struct run *r)
{
    struct kl_msg m;
    char shape[200];
    for (size_t i = 0; i < r->nout; i++) {
        const struct kl_arr *a = kl_args_find(&r->args, r->wanted[i]);
        if (!write_array(&r->out[i], a, &m))
            return kl_fail(m.rc, "%s", m.text);
    }
    for (size_t i = 0; i < r->nout; i++) { /* all are complete: now they get their names */
        const struct kl_arr *a = kl_args_find(&r->args, r->wanted[i]);
        if (!kl_outfile_commit(&r->out[i], &m))
            return kl_fail(m.rc, "%s", m.text);
        printf("%s  %s[%s] -> %s", a->p->name, kl_elems[a->elem].name,
               kl_shape_text(a->ndim, a->shape, shape, sizeof shape), r->out[i].path);
        if (kl_npy_knows(a->elem))
            printf("\n");
        else
            printf(" (as u%u; read it as %s:%s)\n", kl_elems[a->elem].bytes, r->out[i].path,
                   kl_elems[a->elem].name);
    }
    return 0;
}

static bool is_wanted(const struct run *r, const char *name)
{
    for (size_t i = 0; i < r->nout; i++)
        if (strcmp(r->wanted[i], name) == 0)
            return true;
    return false;
}

/* ---- elements that nothing wrote ---- */

/* Integers may be written with the very value of the poison.  If a second run has the same
 * inputs, it tells: elements that follow the second pattern were not written. */
static uint64_t confirm(struct run *r, struct kl_arr *a, bool *sure)
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

static void report_unwritten(struct run *r)
{
    for (size_t i = 0; i < r->args.narr; i++) {
        struct kl_arr *a = &r->args.arr[i];
        bool sure = true;
        uint64_t n = a->made ? kl_arr_poisoned(a) : 0;
        if (n && !kl_is_float(a->elem) && a->elem != KL_bool)
            n = confirm(r, a, &sure);
        if (n)
            kl_warn("%s: %s%llu of %llu elements were never written", a->p->name,
                    sure ? "" : "up to ", (unsigned long long)n, (unsigned long long)a->count);
    }
}

/* ---- the command ---- */

static int launch(struct run *r)
{
    struct kl_msg m = {0};
    kiln_diags *d = NULL;
    kiln_status st;
    if (!kl_args_set(&r->args, r->k, r->as.v, r->as.n, 0, &m))
        return kl_fail(m.rc, "%s", m.text);
    int rc = open_outputs(r);
    if (!rc)
        rc = kl_verify_open(&r->verify, &r->s, r->k, r->wanted);
    if (rc)
        return rc;
    st = kl_args_outputs(&r->args, r->wanted, 0, &d, &m);
    if (st && m.rc)
        return kl_fail(m.rc, "%s", m.text);
    for (size_t i = 0; !st && i < r->nout; i++)
        if (!kl_args_find(&r->args, r->wanted[i]))
            return kl_fail(KL_RC_USAGE, "-o %s=%s: the kernel also reads %s, so it must be given",
                           r->wanted[i], r->out[i].path, r->wanted[i]);
    if (!st && kl_opt_given(r->o, KL_OPT_time)) {
        st = kiln_specialize(r->k, r->args.arg, r->args.n, &r->spec, &d);
        if (!st) { /* its warnings come again with the launch */
            kiln_diags_free(d);
            d = NULL;
        }
    }
    if (!st)
        st = kiln_launch(r->k, NULL, r->args.arg, r->args.n, &d);
    if (st)
        return kl_session_fail(&r->s, st, d);
    kl_show_diags(d, stderr, r->o->color_err);
    return 0;
}

/* With no compiler named the library says nothing, as a host may want it so.  Here somebody waits
 * for a kernel that runs a hundred times slower. */
static void say_interpreted(const struct run *r, kiln_device device)
{
    const char *cc = getenv("KILN_CC");
    if (device != KILN_DEVICE_AUTO || r->s.opt.cc || !kl_tool_cpu_level() ||
        kiln_context_device(r->s.ctx) != KILN_DEVICE_INTERP)
        return;
    fprintf(stderr, "%swarning[K1803]%s: kernels are interpreted: %s\n",
            r->o->color_err ? "\033[1;35m" : "", r->o->color_err ? "\033[0m" : "",
            cc && !*cc ? "the compiler is turned off (KILN_CC is empty)"
                       : "no C compiler was found; on Debian: apt install gcc (or clang)");
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
    int rc = kl_assigns_read(&r->as, r->o);
    if (!rc)
        rc = read_outputs(r);
    if (!rc)
        rc = kl_session_open(&r->s, r->o, device, 0, false);
    if (!rc)
        say_interpreted(r, device);
    if (!rc)
        rc = kl_session_load(&r->s, r->o->arg[0]);
    if (!rc)
        rc = kl_session_kernel(r->s.mod, r->s.path, r->s.want, &r->k);
    if (rc)
        return rc;
    rc = launch(r);
    if (rc)
        return rc;
    report_unwritten(r);
    rc = write_outputs(r);
    if (rc)
        return rc;
    for (size_t i = 0; i < r->args.narr; i++)
        if (r->args.arr[i].p->writes && !is_wanted(r, r->args.arr[i].p->name))
            kl_summary(&r->args.arr[i], stdout);
    rc = kl_verify_run(&r->verify, &r->args, &r->as, r->wanted);
    if (r->spec && rc <= KL_RC_FINDINGS) {
        int timed = kl_time(&r->s, &r->args, kiln_spec_get_info(r->spec));
        rc = timed ? timed : rc;
    }
    return rc;
}

int kl_cmd_run(const struct kl_opts *o)
{
    struct run r = {.o = o};
    int rc = run(&r);
    for (size_t i = 0; i < r.nout; i++) {
        kl_outfile_drop(&r.out[i]);
        free((char *)r.wanted[i]);
    }
    free(r.out);
    free(r.wanted);
    kl_verify_close(&r.verify);
    kiln_spec_free(r.spec);
    kl_args_free(&r.args);
    kl_session_close(&r.s);
    kl_assigns_free(&r.as);
    return rc;
}
