/* explain.c - `kiln explain`: what a GPU would do with a launch, found without one. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/explain/cmd.h"
#include "cli/json.h"

enum format { TEXT, JSON, MARKDOWN };

struct broken {
    const char *name;
    kiln_status st;
    kiln_diags *d;
};

struct explain {
    const struct kl_opts *o;
    struct kl_session s, sim; /* sim: for --measure; ctx NULL until it is needed */
    struct kl_assigns as;
    enum format format;
    bool measure;
    kl_chip chip;
    bool has_chip;
    char chip_text[KL_EXPLAIN_TEXT];
    char *chip_file;          /* contents of --gpu FILE */
    char *ptxas;
    kl_explain_opts opts;
    FILE *f;                  /* text */
    json_t *list;
    unsigned shown;
    struct broken *broken; /* kernels of the file that do not compile */
    size_t nbroken;
    kl_explain_each *each;    /* takes what is found, instead of a page; or NULL */
    void *user;
};

/* ---- options ---- */

static int read_format(struct explain *x)
{
    static const char *const names[] = {"text", "json", "md"};
    const char *s = kl_opt(x->o, KL_OPT_explain_format), *m = kl_opt(x->o, KL_OPT_explain_measure);
    x->measure = m != NULL;
    if (m && strcmp(m, "sim") != 0)
        return kl_usage(x->o, "--measure %s: there is sim", m);
    for (int i = 0; s && i < 3; i++)
        if (strcmp(s, names[i]) == 0) {
            x->format = (enum format)i;
            return 0;
        }
    return s ? kl_usage(x->o, "--format %s: there are text, json and md", s) : 0;
}

static int chip_list(const struct explain *x, const char *name)
{
    char list[300] = "";
    const char *names[32];
    size_t n = 0, used = 0;
    kl_chip c;
    char near[128];
    for (; n < 32 && kl_chip_at(n, &c); n++) {
        names[n] = c.name;
        used += (size_t)snprintf(list + used, sizeof list - used, n ? ", %s" : "%s", c.name);
    }
    (void)x;
    return kl_fail(KL_RC_USAGE,
                   "--gpu %s: there is no such file, and of GPUs there are %s, and `here`%s", name,
                   list, kl_did_you_mean(name, names, n, near));
}

/* --gpu NAME, FILE or here; else what stands for the target. */
static int read_chip(struct explain *x)
{
    const char *name = kl_opt(x->o, KL_OPT_gpu), *arch = kl_opt(x->o, KL_OPT_arch);
    struct kl_msg m;
    size_t chip_len;
    char why[KL_CHIP_WHY];
    if (kl_check_arch(arch))
        return KL_RC_USAGE;
    x->has_chip = true;
    if (!name) {
        uint32_t cc = arch ? (uint32_t)strtoul(arch + 3, NULL, 10) : 90;
        x->has_chip = kl_chip_of_cc(cc, &x->chip);
        return 0;
    }
    if (strcmp(name, "here") == 0) {
        if (!kl_explain_device(&x->chip, x->chip_text))
            return kl_fail(KL_RC_ENV, "--gpu here: there is none: %s", x->chip_text);
    } else if (!kl_chip_find(name, &x->chip)) {
        if (access(name, F_OK))
            return chip_list(x, name);
        x->chip_file = kl_read_file(name, &chip_len, &m);
        if (!x->chip_file)
            return kl_fail(m.rc, "--gpu: %s", m.text);
        if (!kl_chip_parse(x->chip_file, &x->chip, why))
            return kl_fail(KL_RC_USAGE, "--gpu %s: %s", name, why);
    }
    if (arch && strtoul(arch + 3, NULL, 10) > x->chip.cc)
        return kl_fail(KL_RC_USAGE, "--arch %s: %s has compute capability %u.%u and does not run it",
                       arch, x->chip.name, x->chip.cc / 10, x->chip.cc % 10);
    if (!arch && x->chip.cc < 80)
        return kl_fail(KL_RC_USAGE, "%s has compute capability %u.%u; Kiln needs 8.0 or higher",
                       x->chip.name, x->chip.cc / 10, x->chip.cc % 10);
    return 0;
}

/* Tuned constants as a launch on that GPU would take them; without --gpu those of any GPU of the
 * target. */
static int tuned(const struct explain *x, struct kl_session *s, bool quiet)
{
    const char *arch = kl_opt(x->o, KL_OPT_arch), *name = x->has_chip ? x->chip.name : "";
    char target[16];
    snprintf(target, sizeof target, "sm_%u", x->has_chip ? x->chip.cc : 90);
    if (!kl_opt(x->o, KL_OPT_gpu))
        name = "";
    char *device = kl_xprintf("cuda %s%s%s", arch ? arch : target,
                              !*name                               ? ""
                              : strncmp(name, "NVIDIA", 6) == 0 ? " "
                                                                   : " NVIDIA ",
                              name);
    int rc = kl_session_tuned(s, device, quiet);
    free(device);
    return rc;
}

/* ptxas in CUDA_HOME, then in an absolute folder of PATH, then where the toolkit installs. */
static char *find_ptxas(void)
{
    const char *home = getenv("CUDA_HOME"), *path = getenv("PATH");
    char *found = home && *home == '/' ? kl_xprintf("%s/bin/ptxas", home) : NULL;
    if (found && access(found, X_OK) == 0)
        return found;
    free(found);
    for (const char *p = path; p && *p;) {
        size_t n = strcspn(p, ":");
        found = *p == '/' ? kl_xprintf("%.*s/ptxas", (int)n, p) : NULL;
        if (found && access(found, X_OK) == 0)
            return found;
        free(found);
        p += n + (p[n] == ':');
    }
    found = kl_xprintf("/usr/local/cuda/bin/ptxas");
    if (access(found, X_OK) == 0)
        return found;
    free(found);
    return NULL;
}

/* --registers: whom to ask. */
static int read_registers(struct explain *x)
{
    const char *s = kl_opt(x->o, KL_OPT_registers);
    bool automatic = !s || strcmp(s, "auto") == 0;
    if (s && *s == '/') {
        x->ptxas = kl_xprintf("%s", s);
        if (access(s, X_OK))
            return kl_fail(KL_RC_ENV, "--registers %s: there is no such program", s);
    } else if (automatic || strcmp(s, "ptxas") == 0) {
        x->ptxas = find_ptxas();
        if (!automatic && !x->ptxas)
            return kl_fail(KL_RC_ENV, "--registers ptxas: it is neither in CUDA_HOME nor in PATH");
    } else if (strcmp(s, "driver") != 0 && strcmp(s, "none") != 0) {
        return kl_usage(x->o, "--registers %s: there are auto, ptxas, driver, none, and the "
                              "absolute path of a ptxas",
                        s);
    }
    x->opts.ptxas = x->ptxas;
    x->opts.driver = automatic || (s && strcmp(s, "driver") == 0);
    return 0;
}

static int read_options(struct explain *x)
{
    int rc = read_format(x);
    if (!rc)
        rc = read_chip(x);
    if (!rc)
        rc = read_registers(x);
    x->opts.arch = kl_opt(x->o, KL_OPT_arch);
    x->opts.chip = x->has_chip ? &x->chip : NULL;
    x->opts.no_swizzle = kl_opt_given(x->o, KL_OPT_no_swizzle);
    x->opts.all = kl_opt_given(x->o, KL_OPT_explain_all);
    return rc;
}

/* ---- one kernel ---- */

static uint64_t *bases(const struct kl_args *a)
{
    uint64_t *base = kl_xalloc((a->n + 1) * sizeof *base);
    for (size_t i = 0; i < a->n; i++) {
        const struct kl_arr *r = kl_args_find(a, a->arg[i].name);
        if (r)
            base[i] = (uint64_t)r->offset * kl_elems[r->elem].bytes % 256;
    }
    return base;
}

/* Steps of warps that the executor is asked to take at most: requests to memory and arithmetic, by
 * the model.  That many take it minutes. */
#define STEPS_MOST 200e6

static int affordable(const char *name, const kl_explained *e)
{
    const kl_model *m = e->model;
    if (!m)
        return 0;
    double steps = (double)m->gload.requests + (double)m->gstore.requests +
                   (double)m->sload.requests + (double)m->sstore.requests +
                   (double)m->atomic.requests + e->flop / 32;
    if (m->cut)
        return kl_fail(KL_RC_USAGE,
                       "--measure sim: %s has a loop that the model does not follow to its end, "
                       "and the executor is slower than the model; choose values with which it "
                       "ends sooner",
                       name);
    if (steps > STEPS_MOST)
        return kl_fail(KL_RC_USAGE,
                       "--measure sim: %s takes %.3g steps of warps, and the executor is asked for "
                       "at most %.3g; choose smaller arrays",
                       name, steps, STEPS_MOST);
    if (isatty(2) && steps > STEPS_MOST / 100)
        fprintf(stderr, "%s: the executor takes %.3g steps of warps (Ctrl-C ends it)\n", name,
                steps);
    return 0;
}

/* The same kernel in the executor, with memory. */
static int measure(struct explain *x, const char *name, kl_explained *e)
{
    struct kl_args args = {0};
    struct kl_msg m = {0};
    kiln_diags *d = NULL;
    kiln_kernel *k = NULL;
    kiln_status st;
    int rc = affordable(name, e);
    if (rc)
        return rc;
    if (!x->sim.ctx) {
        uint32_t sms = x->has_chip ? x->chip.sms : KL_EXPLAIN_SMS;
        char arch[16];
        rc = kl_session_open_sms(&x->sim, x->o, KILN_DEVICE_SIM, 0, true, sms < 4096 ? sms : 4096);
        if (!rc && !x->opts.arch) { /* the target of the GPU */
            kiln_options opt = x->sim.opt;
            snprintf(arch, sizeof arch, "sm_%u", e->arch);
            opt.arch = arch;
            kiln_context_free(x->sim.ctx);
            x->sim.ctx = NULL;
            st = kiln_context_create(&opt, &x->sim.ctx, &d);
            if (st)
                return kl_session_fail(&x->sim, st, d);
            kiln_diags_free(d);
            d = NULL;
        }
        if (!rc)
            rc = kl_session_load(&x->sim, x->o->arg[0]);
        if (!rc)
            rc = tuned(x, &x->sim, true);
        if (rc)
            return rc;
    }
    k = kiln_module_kernel(x->sim.mod, name);
    if (!kl_args_set(&args, k, x->as.v, x->as.n, KL_ARGS_WORDS, &m))
        return kl_fail(m.rc, "%s", m.text);
    st = kl_args_outputs(&args, NULL, KL_ARGS_READS, &d, &m);
    if (st && m.rc)
        rc = kl_fail(m.rc, "%s", m.text);
    if (!st)
        st = kl_explain_measure(e, k, args.arg, args.n, &d);
    if (st && !rc)
        rc = kl_session_fail(&x->sim, st, d);
    else
        kiln_diags_free(d);
    kl_args_free(&args);
    return rc;
}

static int show(struct explain *x, const struct kl_args *args, kl_explained *e, kiln_diags *notes)
{
    int rc = x->measure ? measure(x, e->kernel, e) : 0;
    if (rc)
        return rc;
    if (x->each) {
        rc = x->each(x->user, &x->s, args, e, notes);
    } else if (x->format == JSON) {
        json_array_append_new(x->list, kl_explain_json(e, notes));
    } else {
        struct kl_page p = {.e = e,
                            .notes = notes,
                            .path = x->s.path,
                            .text = x->s.text,
                            .markdown = x->format == MARKDOWN,
                            .color = x->o->color && !kl_opt_given(x->o, KL_OPT_explain_output) &&
                                     x->format == TEXT,
                            .f = x->f};
        if (x->shown)
            fputc('\n', x->f);
        kl_page_print(&p);
    }
    x->shown++;
    return rc;
}

/* why: NULL, or where to keep the reason if the launch is not complete; else that is an error. */
static int one(struct explain *x, kiln_kernel *k, char **why)
{
    struct kl_args args = {0};
    struct kl_msg m = {0};
    kiln_diags *d = NULL;
    kl_explained *e = NULL;
    if (!kl_args_set(&args, k, x->as.v, x->as.n,
                     KL_ARGS_SHAPES | KL_ARGS_WORDS | KL_ARGS_INTEGERS, &m)) {
        if (!why || m.rc != KL_RC_USAGE)
            return kl_fail(m.rc, "%s", m.text);
        *why = kl_xprintf("%s", m.text);
        return 0;
    }
    uint64_t *base = bases(&args);
    x->opts.base = base;
    kiln_status st = kl_explain(k, args.arg, args.n, &x->opts, &e, &d);
    free(base);
    int rc = 0;
    if (st == KILN_E_ARG && why) {
        const char *text = kiln_diags_count(d) ? kiln_diags_at(d, 0)->text : kiln_status_text(st);
        *why = kl_xprintf("%s", text);
    } else if ((st == KILN_E_COMPILE || st == KILN_E_UNSUPPORTED) && why) {
        x->broken = kl_xgrow(x->broken, sizeof *x->broken, x->nbroken);
        x->broken[x->nbroken++] = (struct broken){kiln_kernel_name(k), st, d};
        d = NULL;
    } else if (st) {
        rc = kl_session_fail(&x->s, st, d);
        d = NULL;
    } else {
        rc = show(x, &args, e, d);
    }
    kiln_diags_free(d);
    kl_explain_free(e);
    kl_args_free(&args);
    return rc;
}

/* ---- all of a file ---- */

static int all(struct explain *x)
{
    size_t n = kiln_module_count(x->s.mod);
    struct {
        const char *name;
        char *why;
    } *left = kl_xalloc((n + 1) * sizeof *left);
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        kiln_kernel *k = kiln_module_at(x->s.mod, i);
        left[i].name = kiln_kernel_name(k);
        rc = one(x, k, &left[i].why);
    }
    if (!rc && !x->shown && !x->nbroken) {
        rc = kl_fail(KL_RC_USAGE, "no kernel of %s can be launched with these values; choose one with "
                                  "%s:KERNEL",
                     x->s.path, x->s.path);
        for (size_t i = 0; i < n; i++)
            fprintf(stderr, "  %s: %s\n", left[i].name, left[i].why ? left[i].why : "");
    }
    for (size_t i = 0; i < n; i++)
        free(left[i].why);
    free(left);
    return rc;
}

/* Whether two kernels have the same errors, as of a function that both call. */
static bool same_errors(const kiln_diags *a, const kiln_diags *b)
{
    size_t n = kiln_diags_count(a);
    if (n != kiln_diags_count(b))
        return false;
    for (size_t i = 0; i < n; i++) {
        const kiln_diag *p = kiln_diags_at(a, i), *q = kiln_diags_at(b, i);
        if (strcmp(p->code, q->code) != 0 || strcmp(p->text, q->text) != 0 ||
            p->place.line != q->place.line || p->place.col != q->place.col)
            return false;
    }
    return true;
}

/* Behind what was found of the others. */
static int tell_broken(struct explain *x)
{
    int rc = 0;
    fflush(stdout);
    for (size_t i = 0; i < x->nbroken; i++) {
        struct broken *b = &x->broken[i];
        if (!b->name)
            continue;
        char *names = kl_xprintf("%s", b->name);
        for (size_t k = i + 1; k < x->nbroken; k++)
            if (same_errors(b->d, x->broken[k].d)) {
                char *more = kl_xprintf("%s, %s", names, x->broken[k].name);
                free(names);
                names = more;
                x->broken[k].name = NULL;
            }
        rc = kl_fail(kl_rc_of(b->st), "not explained: %s of %s", names, x->s.path);
        free(names);
        kl_session_fail(&x->s, b->st, b->d);
        b->d = NULL;
    }
    return rc;
}

static int put_out(struct explain *x, const char *text, size_t n)
{
    const char *path = kl_opt(x->o, KL_OPT_explain_output);
    struct kl_outfile f;
    struct kl_msg m;
    if (!path) {
        fwrite(text, 1, n, stdout);
        return 0;
    }
    if (!kl_outfile_open(&f, path, &m))
        return kl_fail(m.rc, "-o: %s", m.text);
    bool ok = kl_outfile_write(&f, text, n, &m) && kl_outfile_commit(&f, &m);
    kl_outfile_drop(&f);
    return ok ? 0 : kl_fail(m.rc, "-o: %s", m.text);
}

static int finish_json(struct explain *x)
{
    json_t *j = json_pack("{s:s, s:O}", "schema", "kiln.explain/1", "kernels", x->list);
    char *text = kl_json_dump(j, 7);
    if (!text)
        return kl_fail(KL_RC_ENV, "out of memory");
    fprintf(x->f, "%s\n", text);
    free(text);
    return 0;
}

static int run(struct explain *x)
{
    kiln_kernel *k = NULL;
    int rc = read_options(x);
    if (!rc)
        rc = kl_assigns_read(&x->as, x->o);
    if (!rc)
        rc = kl_session_open(&x->s, x->o, KILN_DEVICE_INTERP, 0, false);
    if (!rc)
        rc = kl_session_load(&x->s, x->o->arg[0]);
    if (!rc)
        rc = tuned(x, &x->s, false);
    if (rc)
        return rc;
    if (!x->s.want && kiln_module_count(x->s.mod) > 1)
        rc = all(x);
    else {
        rc = kl_session_kernel(x->s.mod, x->s.path, x->s.want, &k);
        if (!rc)
            rc = one(x, k, NULL);
    }
    return !rc && x->format == JSON ? finish_json(x) : rc;
}

static void close_all(struct explain *x)
{
    for (size_t i = 0; i < x->nbroken; i++)
        kiln_diags_free(x->broken[i].d);
    free(x->broken);
    json_decref(x->list);
    kl_session_close(&x->sim);
    kl_session_close(&x->s);
    kl_assigns_free(&x->as);
    free(x->chip_file);
    free(x->ptxas);
}

int kl_cmd_explain(const struct kl_opts *o)
{
    struct explain x = {.o = o};
    char *text = NULL;
    size_t n = 0;
    x.f = open_memstream(&text, &n);
    x.list = json_array();
    if (!x.f || !x.list)
        return kl_fail(KL_RC_ENV, "out of memory");
    int rc = run(&x);
    fclose(x.f);
    if (!rc && (x.shown || !x.nbroken))
        rc = put_out(&x, text, n);
    if (!rc)
        rc = tell_broken(&x);
    free(text);
    close_all(&x);
    return rc;
}

int kl_explain_source(const struct kl_opts *o, kl_explain_each *each, void *user)
{
    struct explain x = {.o = o, .each = each, .user = user};
    int rc = run(&x);
    if (!rc)
        rc = tell_broken(&x);
    close_all(&x);
    return rc;
}
