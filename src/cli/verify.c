/* verify.c - `kiln run --verify`: outputs against a file or another kernel.
 *
 * A reference kernel runs on the same device with the same words of the command line, read anew,
 * so that arrays updated in place start from their first values. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/compare.h"
#include "cli/safetensors.h"

static bool ends_in(const char *s, size_t n, const char *tail)
{
    size_t t = strlen(tail);
    return n > t && memcmp(s + n - t, tail, t) == 0;
}

static bool listed(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* Whether array p takes part: those of -o, or every written one. */
static bool takes_part(const kiln_param_info *p, const char *const *wanted)
{
    return p->kind == KILN_PARAM_ARRAY && p->writes && (!*wanted || listed(wanted, p->name));
}

/* The output that a file is compared with if the option does not name it. */
static int only_output(kiln_kernel *k, const char *const *wanted, const char *text,
                       const kiln_param_info **out)
{
    size_t found = 0;
    for (size_t i = 0; i < kiln_kernel_param_count(k); i++)
        if (takes_part(kiln_kernel_param(k, i), wanted)) {
            *out = kiln_kernel_param(k, i);
            found++;
        }
    if (found == 1)
        return 0;
    return kl_fail(KL_RC_USAGE, "--verify %s: there are several outputs; say which: NAME=%s", text,
                   text);
}

/* FILE.kiln or FILE.kiln:KERNEL. */
static int open_source(struct kl_verify *v, struct kl_ref *r, const char *text)
{
    struct kl_session other = {.o = v->s->o, .ctx = v->s->ctx};
    int rc = kl_session_load(&other, text);
    if (!rc)
        rc = kl_session_kernel(other.mod, other.path, other.want, &r->kernel);
    r->mod = other.mod;
    other.mod = NULL; /* kept here; the context belongs to the run */
    other.ctx = NULL;
    kl_session_close(&other);
    return rc;
}

static int open_one(struct kl_verify *v, kiln_kernel *k, const char *text,
                    const char *const *wanted)
{
    struct kl_msg m;
    struct kl_assign a;
    v->ref = kl_xgrow(v->ref, sizeof *v->ref, v->n);
    struct kl_ref *r = &v->ref[v->n++];
    *r = (struct kl_ref){0};
    if (access(text, F_OK) && kl_assign_split(text, &a)) {
        r->p = kl_param_find(k, a.name, &m);
        free((char *)a.name);
        if (!r->p)
            return kl_fail(m.rc, "--verify: %s", m.text);
        if (!takes_part(r->p, (const char *const[]){NULL}))
            return kl_fail(KL_RC_USAGE, "--verify %s: the kernel does not write %s", text,
                           r->p->name);
        text = a.value;
    }
    r->label = kl_xstrndup(text, strlen(text));
    size_t n = strcspn(text, ":"), len;
    const char *tensor;
    if (kl_st_path(text, &len, &tensor) || ends_in(text, n, ".npy") ||
        (strchr(text, '/') && !strstr(text, ".kiln"))) {
        int rc = r->p ? 0 : only_output(k, wanted, text, &r->p);
        r->file.p = r->p;
        if (!rc && !kl_arr_read(&r->file, text, &m))
            rc = kl_fail(m.rc, "--verify: %s", m.text);
        return rc;
    }
    if (strstr(text, ".kiln"))
        return open_source(v, r, text);
    return kl_session_kernel(v->s->mod, v->s->path, text, &r->kernel);
}

int kl_verify_open(struct kl_verify *v, struct kl_session *s, kiln_kernel *k,
                   const char *const *wanted)
{
    const char *tol = kl_opt(s->o, KL_OPT_tol);
    *v = (struct kl_verify){.s = s};
    if (tol && !kl_tol_parse(tol, &v->tol))
        return kl_fail(KL_RC_USAGE, "--tol %s: write 2ulp, or a number as 1e-5", tol);
    for (size_t i = 0; i < s->o->nopt; i++) {
        if (s->o->opt[i].id != KL_OPT_verify)
            continue;
        int rc = open_one(v, k, s->o->opt[i].val, wanted);
        if (rc)
            return rc;
    }
    return 0;
}

static int compare(const struct kl_verify *v, const struct kl_arr *got, const struct kl_arr *ref,
                   const char *label)
{
    char a[200], b[200], text[600];
    struct kl_cmp c;
    if (!kl_arr_same_shape(got, ref))
        return kl_fail(KL_RC_USAGE, "--verify: %s is %s, but in %s it is %s", got->p->name,
                       kl_shape_text(got->ndim, got->shape, a, sizeof a), label,
                       kl_shape_text(ref->ndim, ref->shape, b, sizeof b));
    kl_compare(got, ref, &v->tol, &c);
    kl_cmp_text(&c, got, &v->tol, text, sizeof text);
    if (v->said)
        kl_msg(v->said, KL_RC_OK, "%s against %s: %s", got->p->name, label, text);
    else
        printf("verify %s against %s: %s: %s\n", got->p->name, label, c.ok ? "ok" : "FAILED", text);
    return c.ok ? KL_RC_OK : KL_RC_FINDINGS;
}

/* The output of the reference kernel that stands for `name`: of the same name, or the only one. */
static const struct kl_arr *counterpart(const struct kl_args *ref, const char *name)
{
    const struct kl_arr *same = kl_args_find(ref, name), *only = NULL;
    size_t n = 0;
    for (size_t i = 0; i < ref->narr; i++)
        if (ref->arr[i].p->writes)
            only = &ref->arr[i], n++;
    return same && same->p->writes ? same : n == 1 ? only : NULL;
}

static int run_kernel(struct kl_verify *v, const struct kl_ref *r, const struct kl_args *run,
                      const struct kl_assigns *as, const char *const *wanted)
{
    struct kl_args args;
    struct kl_msg m = {0};
    kiln_diags *d = NULL;
    int rc = 0;
    for (size_t i = 0; i < run->narr; i++)
        if (run->arr[i].shared && run->arr[i].p->writes)
            return kl_fail(KL_RC_USAGE,
                           "--verify %s: %s was changed in place, and the reference would need it "
                           "as it was",
                           r->label, run->arr[i].p->name);
    if (!kl_args_set_after(&args, r->kernel, as->v, as->n, KL_ARGS_REFERENCE, run->before, &m))
        return kl_fail(m.rc, "--verify %s: %s", r->label, m.text);
    kiln_status st = kl_args_outputs(&args, wanted, 0, &d, &m);
    if (!st)
        st = kiln_launch(r->kernel, NULL, args.arg, args.n, &d);
    if (st)
        rc = m.rc ? kl_fail(m.rc, "--verify %s: %s", r->label, m.text)
                  : kl_session_fail(v->s, st, d);
    else
        kiln_diags_free(d);
    for (size_t i = 0; i < run->narr && rc <= KL_RC_FINDINGS; i++) {
        const struct kl_arr *got = &run->arr[i];
        if (!takes_part(got->p, wanted) || (r->p && r->p != got->p))
            continue;
        const struct kl_arr *ref = counterpart(&args, got->p->name);
        int one =
            ref ? compare(v, got, ref, r->label)
                : kl_fail(KL_RC_USAGE, "--verify: %s has no output `%s`", r->label, got->p->name);
        rc = one > rc ? one : rc;
    }
    kl_args_free(&args);
    return rc;
}

int kl_verify_run(struct kl_verify *v, const struct kl_args *run, const struct kl_assigns *as,
                  const char *const *wanted)
{
    int rc = 0;
    for (size_t i = 0; i < v->n && rc <= KL_RC_FINDINGS; i++) {
        struct kl_ref *r = &v->ref[i];
        int one = r->kernel ? run_kernel(v, r, run, as, wanted)
                            : compare(v, kl_args_find(run, r->p->name), &r->file, r->label);
        rc = one > rc ? one : rc;
    }
    return rc;
}

void kl_verify_close(struct kl_verify *v)
{
    for (size_t i = 0; i < v->n; i++) {
        kl_arr_free(&v->ref[i].file);
        kiln_module_free(v->ref[i].mod);
        free(v->ref[i].label);
    }
    free(v->ref);
    *v = (struct kl_verify){0};
}
