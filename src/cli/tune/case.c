/* case.c - candidates of `kiln tune`: which there are, which can be left out, code, results. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tune/tune.h"

enum { MOST_CANDIDATES = 4096, MOST_THREADS = 16, MOST_OF_DRIVER = 8 };

const char *const kl_fate_text[KL_NFATE] = {
#define FATE(id, text) text,
#include "cli/fate.def"
};

bool kl_search_end(struct kl_search *s, struct kl_candidate *c, enum kl_fate fate, char *why)
{
    c->fate = fate;
    c->why = why;
    s->count[KL_FATE_alive]--;
    s->count[fate]++;
    return false;
}

char *kl_search_text(const struct kl_search *s, const struct kl_candidate *c)
{
    char *out = kl_xalloc(1);
    for (size_t i = 0; i < s->nvar; i++) {
        if (s->var[i].is_knob && !c->v[i])
            continue; /* as the kernel has it */
        char *more =
            kl_xprintf("%s%s%s=%lld", out, *out ? " " : "", s->var[i].name, (long long)c->v[i]);
        free(out);
        out = more;
    }
    return out;
}

/* ---- what varies ---- */

static void add_var(struct kl_search *s, const kl_tool_var *v, int64_t *own)
{
    s->own = kl_xgrow(s->own, sizeof *s->own, s->nvar);
    s->var = kl_xgrow(s->var, sizeof *s->var, s->nvar);
    s->own[s->nvar] = own;
    s->var[s->nvar++] = *v;
}

/* -D NAME=1,2,3: a variable, in place of the one of the kernel. */
static int add_list(struct kl_search *s, const struct kl_sweep *d, const kl_tool_param *p, size_t n)
{
    struct kl_msg m;
    const kiln_param_info *info = kl_param_find(s->src->k, d->name[0], &m);
    kl_tool_var v = {.name = info ? info->name : "", .n = d->n};
    if (d->nname != 1 || !info || info->kind != KILN_PARAM_CONST ||
        kl_is_float((enum kl_elem)info->dtype))
        return kl_fail(KL_RC_USAGE, "-D %s: only whole numbers that are constants can be tuned",
                       d->name[0]);
    v.is_knob = true;
    for (size_t i = 0; i < n; i++)
        if (strcmp(p[i].name, v.name) == 0) {
            v.is_knob = false;
            v.preset = p[i].ival;
        }
    int64_t *own = kl_xalloc(d->n * sizeof *own);
    v.value = own;
    add_var(s, &v, own);
    for (size_t i = 0; i < d->n; i++) {
        struct kl_number x;
        bool yes = strcmp(d->value[i], "true") == 0;
        if (yes || strcmp(d->value[i], "false") == 0)
            own[i] = yes;
        else if (kl_number_parse(d->value[i], strlen(d->value[i]), &x) && x.is_int)
            own[i] = x.i;
        else
            return kl_fail(KL_RC_USAGE, "-D %s: `%s` is no whole number", d->name[0], d->value[i]);
    }
    return 0;
}

static const struct kl_sweep *defined(const struct kl_bench *b, const char *name)
{
    for (size_t i = 0; i < b->nset; i++)
        for (size_t k = 0; k < b->set[i].nname; k++)
            if (strcmp(b->set[i].name[k], name) == 0)
                return &b->set[i];
    return NULL;
}

static bool given(const struct kl_subject *s, const char *name)
{
    for (size_t i = 0; i < s->as.n; i++)
        if (strcmp(s->as.v[i].name, name) == 0)
            return true;
    return false;
}

/* Elsewhere warps, stages and clusters mean nothing. */
bool kl_search_gpu(const struct kl_search *s)
{
    return s->src->dev->cuda || s->src->dev->kind == KILN_DEVICE_SIM;
}

static int find_vars(struct kl_search *s, const struct kl_args *a)
{
    kiln_diags *d = NULL;
    kiln_status st = kl_tool_space_get(s->src->k, a->arg, a->n, kl_opt(s->b->o, KL_OPT_above),
                                       &s->space, &d);
    if (st)
        return kl_session_fail(&s->src->s, st, d);
    kiln_diags_free(d);
    size_t n = kiln_kernel_param_count(s->src->k);
    kl_tool_param *p = kl_xalloc((n + 1) * sizeof *p);
    int rc = 0;
    st = kl_tool_resolve(s->src->k, a->arg, a->n, p, NULL, &d);
    if (st)
        rc = kl_session_fail(&s->src->s, st, d);
    for (size_t i = 0; i < s->space->nvar && !rc; i++) {
        const kl_tool_var *v = &s->space->var[i];
        if (!defined(s->b, v->name) && !given(&s->base, v->name) && (kl_search_gpu(s) || !v->is_knob))
            add_var(s, v, NULL);
    }
    for (size_t i = 0; i < s->b->nset && !rc; i++)
        if (s->b->set[i].n > 1)
            rc = add_list(s, &s->b->set[i], p, n);
    free(p);
    if (!rc && !s->nvar && !s->space->nvar)
        rc = kl_fail(KL_RC_USAGE,
                     "kernel %s has nothing to tune: it needs a clause as tune(BLOCK: 256, 512), "
                     "or -D BLOCK=256,512",
                     kiln_kernel_name(s->src->k));
    return rc;
}

/* ---- candidates ---- */

static bool is_default(const struct kl_search *s, const int64_t *v)
{
    for (size_t i = 0; i < s->nvar; i++)
        if (v[i] != s->var[i].preset)
            return false;
    return true;
}

static int make_candidates(struct kl_search *s)
{
    size_t all = 1;
    for (size_t i = 0; i < s->nvar; i++)
        if (__builtin_mul_overflow(all, s->var[i].n, &all) || all > MOST_CANDIDATES)
            return kl_fail(KL_RC_USAGE,
                           "more than %d candidates; fix some of the constants with -D NAME=VALUE",
                           MOST_CANDIDATES);
    s->c = kl_xalloc((all + 1) * sizeof *s->c);
    for (size_t i = 0; i <= all; i++) {
        int64_t *v = kl_xalloc(s->nvar * sizeof *v);
        size_t at = i - 1; /* the last variable changes fastest */
        for (size_t k = s->nvar; k-- > 0;) {
            v[k] = i ? s->var[k].value[at % s->var[k].n] : s->var[k].preset;
            at /= s->var[k].n;
        }
        if (i && is_default(s, v))
            free(v);
        else
            s->c[s->n++].v = v;
    }
    s->count[KL_FATE_alive] = s->n;
    return 0;
}

static void push(struct kl_subject *b, const char *name, char *value)
{
    b->as.v = kl_xgrow(b->as.v, sizeof *b->as.v, b->as.n);
    b->as.v[b->as.n++] =
        (struct kl_assign){.name = kl_xstrndup(name, strlen(name)), .value = value, .define = true};
}

static char *preset_text(const struct kl_search *s, const kl_tool_var *v)
{
    struct kl_msg m;
    const kiln_param_info *p = kl_param_find(s->src->k, v->name, &m);
    if (p && p->dtype == KILN_BOOL)
        return kl_xprintf(v->preset ? "true" : "false");
    return kl_xprintf("%lld", (long long)v->preset);
}

/* The setting of -D names with one value; the others vary. */
static void fixed(const struct kl_bench *b, struct kl_point *out)
{
    *out = (struct kl_point){0};
    out->name = kl_xalloc((b->nset + 1) * sizeof *out->name);
    out->value = kl_xalloc((b->nset + 1) * sizeof *out->value);
    for (size_t i = 0; i < b->nset; i++)
        if (b->set[i].n == 1 && b->set[i].nname == 1) {
            out->name[out->n] = b->set[i].name[0];
            out->value[out->n++] = b->set[i].value[0];
        }
}

int kl_search_open(struct kl_search *s, const struct kl_point *point)
{
    struct kl_msg m = {0};
    struct kl_args a;
    struct kl_point set;
    s->base = (struct kl_subject){.dev = s->src->dev, .src = s->src};
    fixed(s->b, &set);
    bool ok = kl_case_words(s->b, &s->base, point, &set, &m);
    kl_point_free(&set);
    if (!ok || !kl_args_set(&a, s->src->k, s->base.as.v, s->base.as.n, KL_ARGS_SHAPES, &m))
        return kl_fail(m.rc, "%s", m.text);
    int rc = find_vars(s, &a);
    kl_args_free(&a);
    if (!rc)
        rc = make_candidates(s);
    /* from here on each constant that varies is an argument, so that candidates differ in numbers */
    for (size_t i = 0; i < s->nvar && !rc; i++)
        push(&s->base, s->var[i].name, preset_text(s, &s->var[i]));
    return rc;
}

/* The default's arguments with the constants of a candidate. */
kiln_arg *kl_search_args(const struct kl_search *s, const kiln_arg *from, size_t n, size_t copies,
                         const int64_t *v)
{
    kiln_arg *out = kl_xalloc((n * copies + 1) * sizeof *out);
    memcpy(out, from, n * copies * sizeof *out);
    for (size_t i = 0; i < n * copies; i++)
        for (size_t k = 0; k < s->nvar; k++)
            if (out[i].kind != KILN_ARG_TENSOR && strcmp(out[i].name, s->var[k].name) == 0) {
                out[i].kind = KILN_ARG_INT;
                out[i].u.i = v[k];
            }
    return out;
}

/* ---- code ---- */

char *kl_search_said(kiln_status st, kiln_diags *d)
{
    struct kl_msg m;
    kl_bench_why(&m, "it", st, d);
    return kl_xprintf("%s", m.text + 4);
}

/* Several threads, each with a part of the candidates and one run of the compiler. */
struct batch {
    struct kl_search *s;
    size_t *which, n;
    pthread_t thread;
    bool started;
};

static bool specialize(struct kl_search *s, const size_t *which, size_t n, char **why)
{
    kiln_kernel **k = kl_xalloc(n * sizeof *k);
    const kiln_arg **arg = kl_xalloc(n * sizeof *arg);
    size_t *count = kl_xalloc(n * sizeof *count);
    kiln_spec **spec = kl_xalloc(n * sizeof *spec);
    kiln_diags *d = NULL;
    for (size_t i = 0; i < n; i++) {
        k[i] = s->src->k;
        arg[i] = s->c[which[i]].arg;
        count[i] = s->base.args.n;
    }
    kiln_status st = kiln_specialize_many(k, arg, count, n, spec, &d);
    for (size_t i = 0; i < n && !st; i++) {
        s->c[which[i]].info = *kiln_spec_get_info(spec[i]);
        kiln_spec_free(spec[i]);
    }
    *why = st ? kl_search_said(st, d) : NULL;
    if (!st)
        kiln_diags_free(d);
    free(k);
    free(arg);
    free(count);
    free(spec);
    return !st;
}

static void *run_batch(void *user)
{
    struct batch *b = user;
    char *why;
    if (b->n && specialize(b->s, b->which, b->n, &why))
        return NULL;
    if (b->n)
        free(why);
    for (size_t i = 0; i < b->n; i++) { /* one of them is to blame */
        struct kl_candidate *c = &b->s->c[b->which[i]];
        if (!specialize(b->s, &b->which[i], 1, &why)) {
            c->fate = KL_FATE_failed; /* counted by the caller: threads must not share a number */
            c->why = why;
        }
    }
    return NULL;
}

static void compile(struct kl_search *s)
{
    size_t threads = kiln_context_threads(s->src->dev->s.ctx), n = 0;
    struct batch batch[MOST_THREADS] = {{0}};
    threads = threads > MOST_THREADS ? MOST_THREADS : threads ? threads : 1;
    threads = s->src->dev->cuda && threads > MOST_OF_DRIVER ? MOST_OF_DRIVER : threads;
    for (size_t t = 0; t < threads; t++)
        batch[t] = (struct batch){.s = s, .which = kl_xalloc((s->n + 1) * sizeof(size_t))};
    for (size_t i = 1; i < s->n; i++)
        if (s->c[i].fate == KL_FATE_alive && !s->c[i].done) {
            struct batch *b = &batch[n++ % threads];
            b->which[b->n++] = i;
        }
    s->code_n += n;
    s->code_threads = threads < n ? threads : n;
    for (size_t t = 0; t < threads; t++) {
        batch[t].started = t + 1 < threads && batch[t].n &&
                           pthread_create(&batch[t].thread, NULL, run_batch, &batch[t]) == 0;
        if (!batch[t].started)
            run_batch(&batch[t]);
    }
    for (size_t t = 0; t < threads; t++) {
        if (batch[t].started)
            pthread_join(batch[t].thread, NULL);
        free(batch[t].which);
    }
    for (size_t i = 1; i < s->n; i++)
        if (s->c[i].fate == KL_FATE_failed && !s->c[i].done)
            kl_search_end(s, &s->c[i], KL_FATE_failed, s->c[i].why);
}

/* ---- results ---- */

static bool only_knobs(const struct kl_search *s, const struct kl_candidate *c)
{
    for (size_t i = 0; i < s->nvar; i++)
        if (!s->var[i].is_knob && c->v[i] != s->var[i].preset)
            return false;
    return true;
}

/* Once over restored and poisoned arrays, against what the default computed. */
static bool same_result(struct kl_search *s, struct kl_candidate *c)
{
    const struct kl_tol tol = {KL_TOL_DEFAULT, 0};
    struct kl_msg m = {0};
    double t;
    struct kl_bset *b = &c->s.sets;
    if (!kl_bset_restore(b, 0, &m) || !kl_bset_poison(b, 0, 0x54, &m) ||
        !kl_bset_launch(b, 0, &t, &m))
        return kl_search_end(s, c, KL_FATE_broken, kl_xprintf("%s", m.text));
    if (!kl_bset_check_all(b, 0, &tol, &c->same_bits, &m))
        return kl_search_end(s, c, m.rc == KL_RC_FINDINGS ? KL_FATE_wrong : KL_FATE_broken,
                   kl_xprintf("%s", m.text));
    if (!c->same_bits && only_knobs(s, c) && !c->info.approximate && !s->base.row.note)
        return kl_search_end(s, c, KL_FATE_wrong,
                   kl_xprintf("warps and clusters must not change bits, and here they do"));
    return true;
}

static bool verify(struct kl_search *s, struct kl_candidate *c)
{
    char *text = kl_search_text(s, c);
    kl_guard_begin(s->guard, kl_xprintf("kernel %s with %s", kiln_kernel_name(s->src->k), text));
    bool ok = same_result(s, c);
    kl_guard_end(s->guard);
    free(text);
    return ok;
}

/* A launch that failed may have taken the device with it: then nothing can be said of the others. */
static bool still_works(struct kl_search *s, const struct kl_candidate *c)
{
    struct kl_msg m;
    double t;
    kiln_diags *d = NULL;
    if (!s->src->dev->cuda || c->fate != KL_FATE_broken)
        return true;
    bool ok = kl_bset_launch(&s->c[0].s.sets, 0, &t, &m) &&
              kiln_sync(s->src->dev->s.ctx, &d) == KILN_OK;
    kiln_diags_free(d);
    if (!ok) {
        char *text = kl_search_text(s, c);
        s->rc = kl_fail(KL_RC_FINDINGS,
                        "kernel %s with %s took the device with it: %s; leave these values out with "
                        "-D NAME=LIST",
                        kiln_kernel_name(s->src->k), text, c->why);
        free(text);
    }
    return ok;
}

static void take_arrays(struct kl_search *s, struct kl_candidate *c)
{
    const struct kl_bset *b = &s->base.sets;
    c->arg = kl_search_args(s, b->arg, s->base.args.n, b->n, c->v);
    c->s = (struct kl_subject){.dev = s->base.dev,
                               .src = s->src,
                               .sets = *b,
                               .turn.flush = s->base.turn.flush,
                               .once_s = s->base.once_s};
    c->s.sets.arg = c->arg;
    c->of = (struct kl_lane_of){&c->s, false};
}

/* Code and results of what is still to be looked at. */
static void check(struct kl_search *s)
{
    const kiln_spec_info *first = &s->c[0].info;
    for (size_t i = 1; i < s->n; i++)
        if (s->c[i].fate == KL_FATE_alive && !s->c[i].done)
            take_arrays(s, &s->c[i]);
    compile(s);
    for (size_t i = 1; i < s->n; i++) {
        struct kl_candidate *c = &s->c[i];
        bool now = c->fate == KL_FATE_alive && !c->done;
        c->done = c->done || now || c->fate == KL_FATE_failed;
        if (!now)
            continue;
        if (c->info.device != first->device)
            kl_search_end(s, c, KL_FATE_failed, kl_xprintf("it would be interpreted"));
        else if (c->info.local_bytes > first->local_bytes)
            kl_search_end(s, c, KL_FATE_spills,
                kl_xprintf("%u bytes a thread are kept in memory", c->info.local_bytes));
        else if (!verify(s, c) && !still_works(s, c))
            return;
    }
}

/* What was left out in favour of one that then fell out, a wrong one at that, gets its turn. */
static bool revive(struct kl_search *s)
{
    bool any = false;
    for (size_t i = 1; i < s->n; i++) {
        struct kl_candidate *c = &s->c[i];
        enum kl_fate by = s->c[c->by].fate;
        if (c->fate != KL_FATE_dominated || by == KL_FATE_alive || by == KL_FATE_dominated)
            continue;
        s->count[KL_FATE_dominated]--;
        s->count[KL_FATE_alive]++;
        c->fate = KL_FATE_alive;
        free(c->why);
        c->why = NULL;
        any = true;
    }
    return any;
}

int kl_search_prepare(struct kl_search *s)
{
    struct kl_candidate *c = s->c;
    if (!kl_subject_make(&s->base, &s->b->ref, kl_opt_given(s->b->o, KL_OPT_verify))) {
        int rc = s->base.rc ? s->base.rc : KL_RC_ENV;
        return s->base.row.note && *s->base.row.note
                   ? kl_fail(rc, "the default: %s", s->base.row.note)
                   : rc;
    }
    take_arrays(s, &c[0]);
    c[0].info = s->base.row.info;
    c[0].done = true;
    double start = kl_bench_now(NULL);
    do
        check(s);
    while (!s->rc && revive(s));
    s->code_s = kl_bench_now(NULL) - start;
    return s->rc;
}

/* ---- times ---- */

void kl_search_measure(struct kl_search *s, double budget_s)
{
    struct kl_msg m = {0};
    double start = kl_bench_now(NULL), ms[KL_BURST];
    size_t copies = s->base.sets.n;
    s->rival = kl_xalloc((s->n + 1) * sizeof *s->rival);
    s->of_rival = kl_xalloc((s->n + 1) * sizeof *s->of_rival);
    for (size_t i = 0; i < s->n; i++) {
        struct kl_candidate *c = &s->c[i];
        if (c->fate != KL_FATE_alive)
            continue;
        bool cuda = s->src->dev->cuda;
        size_t burst = cuda ? KL_BURST : 4;
        if (s->base.sets.updates && !c->s.turn.flush && burst > copies)
            burst = copies; /* each copy is restored once a burst */
        struct kl_rival *r = &s->rival[s->nrival];
        *r = (struct kl_rival){.name = kiln_kernel_name(s->src->k),
                               .user = &c->of,
                               .burst = burst,
                               .take = kl_subject_take,
                               .clock = kl_subject_clock,
                               .any_clock = !cuda};
        if (!kl_subject_take(&c->of, 1, ms, &m)) { /* it is not even warm */
            kl_search_end(s, c, KL_FATE_broken, kl_xprintf("%s", m.text));
            continue;
        }
        c->s.turn.nhost = 0;
        s->of_rival[s->nrival++] = i;
    }
    if (!s->nrival || s->of_rival[0] != 0) {
        s->why = m;
        return;
    }
    s->halving.loop = s->b->loop;
    s->halving.budget_s = budget_s;
    for (;;) {
        size_t best = kl_halve(&s->halving, s->rival, s->nrival);
        s->winner = s->of_rival[best];
        if (!best || verify(s, &s->c[s->winner]))
            break;
        kl_halving_free(&s->rival[best], 1); /* right at first, wrong under way */
        s->nrival--;
        memmove(&s->rival[best], &s->rival[best + 1], (s->nrival - best) * sizeof *s->rival);
        memmove(&s->of_rival[best], &s->of_rival[best + 1],
                (s->nrival - best) * sizeof *s->of_rival);
    }
    if (s->rival[0].failed)
        s->why = s->rival[0].why;
    s->seconds = kl_bench_now(NULL) - start;
}

void kl_search_close(struct kl_search *s)
{
    kl_halving_free(s->rival, s->nrival);
    for (size_t i = 0; i < s->n; i++) {
        free(s->c[i].v);
        free(s->c[i].why);
        free(s->c[i].arg);
        free(s->c[i].s.turn.host_s);
    }
    for (size_t i = 0; i < s->nvar; i++)
        free(s->own[i]);
    kl_subject_free(&s->base);
    kl_row_free(&s->base.row);
    kl_tool_space_free(s->space);
    free(s->own);
    free(s->param);
    free(s->var);
    free(s->c);
    free(s->rival);
    free(s->of_rival);
    *s = (struct kl_search){0};
}
