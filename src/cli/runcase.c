/* runcase.c - running the cases of one file.
 *
 * Each case runs in the checked interpreter; what its kernel writes there is compared with what
 * the case expects.  Then all cases that ran are compiled for the device (by default the CPU,
 * through one run of the C compiler), run again, and must give the same bits. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/case.h"

enum state { PENDING, PASSED, FAILED, SKIPPED };

struct one {
    const struct kl_case *c;
    const char **wanted; /* arrays that the case speaks of */
    enum state state;
    struct kl_args interp, cpu;
    kiln_kernel *k; /* on the CPU */
    kiln_spec *spec;
    bool cpu_ready;
};

/* Comments that allow a code. */
struct line {
    char code[6], text[100]; /* text: of a comment that no case needed */
    unsigned line;
};
struct lines {
    struct line *v;
    size_t n;
};

struct file {
    struct kl_tally *t;
    struct lines used, unused;
    const char *path;
    kiln_module *interp, *cpu;
    kiln_module *ref; /* for reference kernels: interp, or unchecked beside the executor */
    struct kl_cases cases;
    struct one *v;
    bool broken; /* it does not compile */
    const char *text;
    size_t len;
};

static bool has_line(const struct lines *l, const struct line *x)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].line == x->line && strcmp(l->v[i].code, x->code) == 0)
            return true;
    return false;
}

static void add_line(struct lines *l, const char *code, const char *text, unsigned line)
{
    struct line x = {.line = line};
    snprintf(x.code, sizeof x.code, "%.5s", code);
    snprintf(x.text, sizeof x.text, "%s", text);
    if (has_line(l, &x))
        return;
    l->v = kl_xgrow(l->v, sizeof *l->v, l->n);
    l->v[l->n++] = x;
}

__attribute__((format(printf, 3, 4))) static bool fail(struct file *f, struct one *r,
                                                       const char *fmt, ...)
{
    va_list ap;
    if (r->state == FAILED)
        return false; /* the first reason is enough */
    r->state = FAILED;
    printf("FAIL %s:%u: %s: ", f->path, r->c->line, r->c->name);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    return false;
}

/* ---- diagnostics ---- */

static bool has_code(const kiln_diags *d, const char *code)
{
    for (size_t i = 0; i < kiln_diags_count(d); i++)
        if (strcmp(kiln_diags_at(d, i)->code, code) == 0)
            return true;
    return false;
}

/* The diagnostic to show: an error before the warnings that may stand in front of it. */
static const kiln_diag *first(const kiln_diags *d)
{
    for (size_t i = 0; i < kiln_diags_count(d); i++)
        if (kiln_diags_at(d, i)->severity == KILN_ERROR)
            return kiln_diags_at(d, i);
    return kiln_diags_at(d, 0);
}

static bool expects(const struct kl_case *c, enum kl_expectkind kind, const char *code)
{
    for (size_t i = 0; i < c->nexpect; i++)
        if (c->expect[i].kind == kind && (!code || strcmp(c->expect[i].name, code) == 0))
            return true;
    return false;
}

static bool fail_diag(struct file *f, struct one *r, const char *where, kiln_status st,
                      const kiln_diags *d)
{
    for (size_t i = 0; i < kiln_diags_count(d); i++) {
        const kiln_diag *g = kiln_diags_at(d, i);
        if (g->severity == KILN_ERROR)
            return fail(f, r, "%s: %s (%s:%u:%u): %s", where, g->code,
                        g->place.file ? g->place.file : "-", g->place.line, g->place.col, g->text);
    }
    return fail(f, r, "%s: %s", where, kiln_status_text(st));
}

/* A call failed, or was expected to.  Sets the state where that settles the case. */
static void settle(struct file *f, struct one *r, kiln_status st, const kiln_diags *d)
{
    const struct kl_case *c = r->c;
    bool error = st && st != KILN_E_BOUNDS;
    if (error && !expects(c, KL_EXPECT_ERROR, NULL)) {
        fail_diag(f, r, "interpreter", st, d);
        return;
    }
    for (size_t i = 0; i < c->nexpect; i++) {
        const struct kl_expect *e = &c->expect[i];
        if (e->kind != KL_EXPECT_ERROR && e->kind != KL_EXPECT_FINDING)
            continue;
        if (!has_code(d, e->name)) {
            const char *what = e->kind == KL_EXPECT_ERROR ? "error" : "finding";
            const kiln_diag *g = first(d);
            fail(f, r, "%s %s was expected, and %s%s%s came", what, e->name, g ? g->code : "none",
                 g ? ": " : "", g ? g->text : "");
            return;
        }
    }
    for (size_t i = 0; !error && i < kiln_diags_count(d); i++) {
        const kiln_diag *g = kiln_diags_at(d, i);
        if (g->severity == KILN_ERROR && !expects(c, KL_EXPECT_FINDING, g->code)) {
            fail(f, r, "unexpected finding %s at %u:%u: %s", g->code, g->place.line, g->place.col,
                 g->text);
            return;
        }
    }
    if (error)
        r->state = PASSED;
}

/* ---- one launch ---- */

static bool find_kernel(struct file *f, struct one *r, kiln_module *mod, const char *name,
                        kiln_kernel **out)
{
    *out = name ? kiln_module_kernel(mod, name) : kiln_module_at(mod, 0);
    return *out || fail(f, r, "there is no kernel `%s` in this file", name ? name : "");
}

/* Values and outputs for kernel k.  A status goes to *st with its diagnostics. */
static bool prepare(struct file *f, struct one *r, kiln_kernel *k, unsigned flags,
                    struct kl_args *a, kiln_status *st, kiln_diags **d)
{
    struct kl_msg m = {0};
    *st = KILN_OK;
    if (!kl_args_set(a, k, r->c->set.v, r->c->set.n, flags, &m))
        return fail(f, r, "%s", m.text);
    *st = kl_args_outputs(a, r->wanted, 0, d, &m);
    return !*st || !m.rc || fail(f, r, "%s", m.text);
}

/* ---- comparing ---- */

static bool differ(struct file *f, struct one *r, const struct kl_arr *got,
                   const struct kl_arr *want, const struct kl_tol *tol, const char *who,
                   const char *other)
{
    struct kl_cmp c;
    char at[200], g[32], w[32], text[600];
    if (!kl_arr_same_shape(got, want))
        return fail(f, r, "%s is %s%s, %s has %s", got->p->name,
                    kl_shape_text(got->ndim, got->shape, at, sizeof at),
                    got->ndim ? "" : "a scalar", other,
                    kl_shape_text(want->ndim, want->shape, text, sizeof text));
    kl_compare(got, want, tol, &c);
    if (c.ok)
        return true;
    kl_elem_text(got->elem, kl_elem_load(got->elem, kl_arr_at(got, c.worst)), g);
    kl_elem_text(want->elem, kl_elem_load(want->elem, kl_arr_at(want, c.worst)), w);
    kl_index_text(got, c.worst, at, sizeof at);
    if (tol->kind == KL_TOL_EXACT)
        snprintf(text, sizeof text, "%llu of %llu elements differ", (unsigned long long)c.differ,
                 (unsigned long long)c.count);
    else
        kl_cmp_text(&c, got, tol, text, sizeof text);
    return fail(f, r, "%s%s is %s%s, %s %s; %s", got->p->name, at, g, who, other, w, text);
}

/* The value of an expectation as an array of got's type. */
static bool expected_array(struct file *f, struct one *r, const struct kl_expect *e,
                           const struct kl_arr *got, struct kl_arr *out)
{
    struct kl_msg m;
    struct kl_value v;
    *out = (struct kl_arr){.p = got->p, .dense = true, .elem = got->elem};
    if (!kl_value_parse(e->text, &v, &m))
        return fail(f, r, "line %u: %s", e->line, m.text);
    bool ok;
    if (v.kind == KL_VALUE_LIST || v.kind == KL_VALUE_GEN) {
        out->elem = v.elem ? v.elem : got->elem;
        out->ndim = v.ndim;
        memcpy(out->shape, v.shape, sizeof out->shape);
        ok = kl_shape_count(v.ndim, v.shape, kl_elems[out->elem].bytes, &out->count) ||
             kl_msg(&m, KL_RC_USAGE, "the shape is too large");
        out->owned = out->data =
            ok ? kl_array_alloc(e->text, out->count * kl_elems[out->elem].bytes, &m) : NULL;
        ok = out->data && kl_value_fill(&v, out->elem, out->data, out->count, &m);
    } else {
        ok = kl_arr_read(out, e->text, &m);
    }
    kl_value_free(&v);
    return ok || fail(f, r, "line %u: %s", e->line, m.text);
}

static bool check_reference(struct file *f, struct one *r, const struct kl_expect *e,
                            const struct kl_arr *got)
{
    kiln_kernel *k;
    struct kl_args a = {0};
    kiln_diags *d = NULL;
    kiln_status st;
    bool ok = find_kernel(f, r, f->ref, e->text, &k) &&
              prepare(f, r, k, KL_ARGS_REFERENCE, &a, &st, &d);
    if (ok && !st)
        st = kiln_launch(k, NULL, a.arg, a.n, &d);
    if (ok && st)
        ok = fail_diag(f, r, e->text, st, d);
    kiln_diags_free(d);
    const struct kl_arr *ref = ok ? kl_args_find(&a, e->name) : NULL;
    struct kl_msg m;
    bool named = kl_param_find(k, e->name, &m) != NULL;
    if (ok && !ref && named)
        ok = fail(f, r, "line %u: %s has `%s`, but reads it, so that there is none without a value",
                  e->line, e->text, e->name);
    for (size_t i = 0; ok && !ref && i < a.narr; i++) /* its only output may be called otherwise */
        if (a.arr[i].p->writes)
            ref = &a.arr[i];
    if (ok)
        ok = ref ? differ(f, r, got, ref, &e->tol, "", e->text)
                 : fail(f, r, "line %u: %s writes no array", e->line, e->text);
    kl_args_free(&a);
    return ok;
}

static bool check_outputs(struct file *f, struct one *r, const struct kl_args *a)
{
    for (size_t i = 0; i < r->c->nexpect; i++) {
        const struct kl_expect *e = &r->c->expect[i];
        if (e->kind != KL_EXPECT_VALUE && e->kind != KL_EXPECT_REFERENCE)
            continue;
        const struct kl_arr *got = kl_args_find(a, e->name);
        if (!got)
            return fail(f, r, "line %u: there is no array `%s`", e->line, e->name);
        struct kl_arr want = {0};
        bool ok = e->kind == KL_EXPECT_REFERENCE
                      ? check_reference(f, r, e, got)
                      : expected_array(f, r, e, got, &want) &&
                            differ(f, r, got, &want, &e->tol, "", "expected");
        kl_arr_free(&want);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- the two halves ---- */

/* kiln check: warnings are shown; comments that allow something count as unused only if no case
 * used them. */
static void note_findings(struct file *f, const struct one *r, const kiln_diags *d)
{
    struct kl_found sum = {0};
    kl_found_add(&sum, d);
    f->t->found.suppressed += sum.suppressed;
    for (size_t i = 0; i < kiln_diags_count(d); i++) {
        const kiln_diag *g = kiln_diags_at(d, i);
        bool unused = strcmp(g->code, "K1299") == 0, used = g->severity == KILN_NOTE;
        if (!kl_is_finding(g))
            continue;
        if (used)
            g->nnotes ? add_line(&f->used, g->code, "", g->notes[g->nnotes - 1].place.line) : (void)0;
        else if (unused)
            add_line(&f->unused, g->text, g->text, g->place.line);
        else if (g->severity == KILN_WARNING && !expects(r->c, KL_EXPECT_FINDING, g->code)) {
            f->t->found.warnings++;
            printf("%s:%u:%u: warning[%s]: %s (%s)\n", g->place.file, g->place.line, g->place.col,
                   g->code, g->text, r->c->name);
        } else if (g->severity == KILN_ERROR && !expects(r->c, KL_EXPECT_FINDING, g->code)) {
            f->t->found.errors++;
        }
    }
}

static void say_unused(struct file *f)
{
    for (size_t i = 0; i < f->unused.n; i++) {
        const struct line *u = &f->unused.v[i];
        if (has_line(&f->used, u))
            continue;
        f->t->found.warnings++;
        printf("%s:%u: warning[K1299]: %s\n", f->path, u->line, u->text);
    }
    free(f->used.v);
    free(f->unused.v);
}

static void run_interp(struct file *f, struct one *r)
{
    kiln_kernel *k;
    kiln_diags *d = NULL;
    kiln_status st;
    if (!find_kernel(f, r, f->interp, r->c->kernel, &k) ||
        !prepare(f, r, k, 0, &r->interp, &st, &d))
        return;
    if (!st)
        st = kiln_launch(k, NULL, r->interp.arg, r->interp.n, &d);
    settle(f, r, st, d);
    if (f->t->checking)
        note_findings(f, r, d);
    kiln_diags_free(d);
    if (r->state == PENDING)
        check_outputs(f, r, &r->interp);
}

/* One run of the C compiler for all cases.  false: some would be interpreted, because what was
 * generated for one of them did not compile. */
static bool specialize_all(struct file *f)
{
    size_t n = 0;
    kiln_kernel **k = kl_xalloc(f->cases.n * sizeof *k);
    const kiln_arg **args = kl_xalloc(f->cases.n * sizeof *args);
    size_t *nargs = kl_xalloc(f->cases.n * sizeof *nargs);
    kiln_spec **spec = kl_xalloc(f->cases.n * sizeof *spec);
    kiln_diags *d = NULL;
    for (size_t i = 0; i < f->cases.n; i++)
        if (f->v[i].cpu_ready) {
            k[n] = f->v[i].k;
            args[n] = f->v[i].cpu.arg;
            nargs[n++] = f->v[i].cpu.n;
        }
    bool ok = n && !kiln_specialize_many(k, args, nargs, n, spec, &d), all = true;
    for (size_t i = n = 0; ok && i < f->cases.n; i++)
        if (f->v[i].cpu_ready) {
            f->v[i].spec = spec[n++];
            all &= kiln_spec_get_info(f->v[i].spec)->device != KILN_DEVICE_INTERP;
        }
    kiln_diags_free(d);
    free(k);
    free(args);
    free(nargs);
    free(spec);
    return all;
}

static void launch_cpu(struct file *f, struct one *r)
{
    const struct kl_tol exact = {KL_TOL_EXACT, 0};
    kiln_diags *d = NULL;
    kiln_status st = KILN_OK;
    if (!r->spec)
        st = kiln_specialize(r->k, r->cpu.arg, r->cpu.n, &r->spec, &d);
    if (r->spec && kiln_spec_get_info(r->spec)->device == KILN_DEVICE_INTERP) {
        /* the C compiler or the code generator failed, and the library falls back */
        const kiln_diag *g = first(d);
        fail(f, r, "it is interpreted there, too%s%.*s", g ? ": " : "",
             g ? (int)strcspn(g->text, "\n") : 0, g ? g->text : "");
    }
    if (!st && r->state == PENDING)
        st = kiln_launch(r->k, NULL, r->cpu.arg, r->cpu.n, &d);
    if (st)
        fail_diag(f, r, kl_device_text(kiln_context_device(f->t->cpu.ctx)), st, d);
    kiln_diags_free(d);
    char who[64];
    snprintf(who, sizeof who, " %s", kl_device_text(kiln_context_device(f->t->cpu.ctx)));
    if (r->state == PENDING && kiln_spec_get_info(r->spec)->approximate) {
        /* the bits are the device's own: within the case's tolerance, then */
        check_outputs(f, r, &r->cpu);
        return;
    }
    for (size_t j = 0; r->state == PENDING && j < r->cpu.narr; j++)
        if (r->cpu.arr[j].p->writes)
            differ(f, r, &r->cpu.arr[j], &r->interp.arr[j], &exact, who,
                   "in the interpreter");
}

/* Compile the module and get the arguments of all cases ready. */
static bool open_cpu(struct file *f)
{
    kiln_diags *d = NULL;
    kiln_status st = kiln_compile(f->t->cpu.ctx, f->path, f->text, f->len, &f->cpu, &d);
    kiln_diags_free(d);
    for (size_t i = 0; !st && i < f->cases.n; i++) {
        struct one *r = &f->v[i];
        kiln_status bound;
        d = NULL;
        if (r->state == PENDING && find_kernel(f, r, f->cpu, r->c->kernel, &r->k) &&
            prepare(f, r, r->k, 0, &r->cpu, &bound, &d)) {
            r->cpu_ready = !bound;
            if (bound)
                fail_diag(f, r, kl_device_text(kiln_context_device(f->t->cpu.ctx)), bound, d);
        }
        kiln_diags_free(d);
    }
    return !st;
}

static void close_cpu(struct file *f)
{
    for (size_t i = 0; i < f->cases.n; i++) {
        kl_args_free(&f->v[i].cpu);
        kiln_spec_free(f->v[i].spec);
        f->v[i].spec = NULL;
    }
    kiln_module_free(f->cpu);
    f->cpu = NULL;
}

static void run_cpu(struct file *f)
{
    if (!open_cpu(f))
        return;
    if (!specialize_all(f)) { /* again, one by one, to see which of them it is */
        close_cpu(f);
        if (!open_cpu(f))
            return;
    }
    for (size_t i = 0; i < f->cases.n; i++)
        if (f->v[i].cpu_ready)
            launch_cpu(f, &f->v[i]);
}

/* ---- a file ---- */

static int open_contexts(struct kl_tally *t, const struct kl_opts *o)
{
    int rc = 0;
    bool on_gpu = t->device == KILN_DEVICE_CUDA || t->device == KILN_DEVICE_SIM;
    if (!t->interp.ctx)
        rc = kl_session_open(&t->interp, o, t->on_sim ? KILN_DEVICE_SIM : KILN_DEVICE_INTERP,
                             KILN_CHECK_ALL, false);
    if (!rc && t->on_sim && !t->plain.ctx)
        rc = kl_session_open(&t->plain, o, KILN_DEVICE_INTERP, 0, true);
    if (!rc && !t->interp_only && !t->cpu.o) {
        rc = kl_session_open(&t->cpu, o, on_gpu ? t->device : KILN_DEVICE_AUTO, 0, false);
        if (!rc && kiln_context_device(t->cpu.ctx) == KILN_DEVICE_INTERP)
            kl_session_close(&t->cpu);
    }
    return rc;
}

/* A source that does not compile passes the cases that expect just that. */
static void not_compiled(struct file *f, kiln_status st, const kiln_diags *d)
{
    f->broken = true;
    if (!f->cases.n) {
        const kiln_diag *g = first(d);
        printf("FAIL %s: it does not compile: %s%s%s\n", f->path, g ? g->code : "", g ? ": " : "",
               g ? g->text : kiln_status_text(st));
        f->t->failed++;
    }
    for (size_t i = 0; i < f->cases.n; i++)
        settle(f, &f->v[i], st, d);
}

static void count(struct file *f)
{
    if (!f->cases.n && !f->broken)
        printf("%s: it holds no cases\n", f->path);
    for (size_t i = 0; i < f->cases.n; i++) {
        struct one *r = &f->v[i];
        if (r->state == PENDING)
            r->state = f->t->interp_only || r->cpu_ready ? PASSED : SKIPPED;
        f->t->passed += r->state == PASSED;
        f->t->failed += r->state == FAILED;
        f->t->skipped += r->state == SKIPPED;
        if (!r->c->nexpect && r->state != FAILED && !f->t->interp_only)
            printf("warning: %s:%u: %s: it has no output, error or finding line, so it only "
                   "compares the interpreter with the device\n",
                   f->path, r->c->line, r->c->name);
        if (f->t->verbose && r->state != FAILED)
            printf("%s %s:%u: %s\n", r->state == PASSED ? "ok  " : "skip", f->path, r->c->line,
                   r->c->name);
    }
}

int kl_cases_run(struct kl_tally *t, const struct kl_opts *o, const char *path)
{
    struct file f = {.t = t, .path = path};
    struct kl_msg m;
    size_t len;
    kiln_diags *d = NULL;
    char *text = kl_read_file(path, &len, &m);
    if (!text)
        return kl_fail(m.rc, "%s", m.text);
    if (!kl_cases_read(text, len, &f.cases, &m)) {
        free(text);
        return kl_fail(m.rc, "%s: %s", path, m.text);
    }
    f.text = text;
    f.len = len;
    int rc = open_contexts(t, o);
    f.v = kl_xalloc((f.cases.n + 1) * sizeof *f.v);
    for (size_t i = 0; i < f.cases.n; i++) {
        const struct kl_case *c = &f.cases.v[i];
        size_t n = 0;
        f.v[i].c = c;
        f.v[i].wanted = kl_xalloc((c->nexpect + 1) * sizeof *f.v[i].wanted);
        for (size_t j = 0; j < c->nexpect; j++)
            if (c->expect[j].kind == KL_EXPECT_VALUE || c->expect[j].kind == KL_EXPECT_REFERENCE)
                f.v[i].wanted[n++] = c->expect[j].name;
    }
    if (!rc) {
        kiln_status st = kiln_compile(t->interp.ctx, path, text, len, &f.interp, &d);
        f.ref = f.interp;
        if (!st && t->on_sim)
            st = kiln_compile(t->plain.ctx, path, text, len, &f.ref, NULL);
        if (st)
            not_compiled(&f, st, d);
        for (size_t i = 0; !st && i < f.cases.n; i++)
            run_interp(&f, &f.v[i]);
        say_unused(&f);
        if (!st && t->cpu.ctx)
            run_cpu(&f);
        count(&f);
    }
    kiln_diags_free(d);
    close_cpu(&f);
    for (size_t i = 0; i < f.cases.n; i++) {
        kl_args_free(&f.v[i].interp);
        free(f.v[i].wanted);
    }
    free(f.v);
    kl_cases_free(&f.cases);
    if (f.ref != f.interp)
        kiln_module_free(f.ref);
    kiln_module_free(f.interp);
    free(text);
    return rc;
}

void kl_tally_close(struct kl_tally *t)
{
    kl_session_close(&t->interp);
    kl_session_close(&t->plain);
    kl_session_close(&t->cpu);
}
