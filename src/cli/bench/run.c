/* run.c - a subject: its arrays, its samples. */
#include "cli/bench/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int kl_source_open(struct kl_source *s, struct kl_bdev *d, const char *spec)
{
    *s = (struct kl_source){.spec = spec, .dev = d, .s = {.o = &d->o, .ctx = d->s.ctx}};
    int rc = kl_session_load(&s->s, spec);
    return rc ? rc : kl_session_kernel(s->s.mod, s->s.path, s->s.want, &s->k);
}

void kl_source_close(struct kl_source *s)
{
    s->s.ctx = NULL; /* the device's */
    kl_session_close(&s->s);
}

/* ---- samples ---- */

static bool launch(void *user, size_t copy, double *host_s, struct kl_msg *m)
{
    return kl_bset_launch(&((struct kl_subject *)user)->sets, copy, host_s, m);
}

static bool restore(void *user, size_t copy, struct kl_msg *m)
{
    return kl_bset_restore(&((struct kl_subject *)user)->sets, copy, m);
}

static size_t copies_of(const struct kl_subject *s)
{
    return s->sets.n ? s->sets.n : 1;
}

static void rest(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    if (seconds > 0)
        nanosleep(&t, NULL);
}

bool kl_subject_take(void *user, size_t n, double *ms, struct kl_msg *m)
{
    struct kl_lane_of *l = user;
    struct kl_subject *s = l->s;
    rest(s->pause_s);
    if (s->peer)
        return kl_peer_time(s->peer, l->warm, n, ms, &s->turn, m);
    s->turn.dev = s->dev;
    s->turn.user = s; /* subjects of a search are copies of one */
    s->turn.launch = launch;
    s->turn.restore = restore;
    s->turn.copies = copies_of(s);
    return kl_take(&s->turn, l->warm, n, ms, m);
}

double kl_subject_clock(void *user)
{
    struct kl_lane_of *l = user;
    kl_watch_look(&l->s->dev->watch);
    double mhz = kl_watch_mhz(&l->s->dev->watch), full = l->s->dev->watch.full_mhz;
    return mhz > 0 && full > 0 ? mhz / full : -1;
}

/* ---- labels ---- */

/* "4096x4096", or "512x256,256x512": shapes of the arrays given, each once; and the type of the
 * first. */
static void label(struct kl_subject *s)
{
    char shape[200], *all = kl_xalloc(1);
    enum kl_elem type = KL_elem_none;
    const char *seen[64];
    size_t nseen = 0;
    for (size_t i = 0; i < s->given; i++) { /* what was made up follows from them */
        const struct kl_arr *a = kl_args_find(&s->args, s->as.v[i].name);
        bool old = !a || a->alias || !a->ndim;
        if (old)
            continue;
        type = type ? type : a->elem;
        kl_shape_text(a->ndim, a->shape, shape, sizeof shape);
        for (size_t k = 0; k < nseen; k++)
            old = old || strcmp(seen[k], shape) == 0;
        if (old || nseen == 64)
            continue;
        seen[nseen++] = kl_xstrndup(shape, strlen(shape));
        char *more = kl_xprintf("%s%s%s", all, *all ? "," : "", shape);
        free(all);
        all = more;
    }
    while (nseen)
        free((char *)seen[--nseen]);
    s->row.shape = all;
    s->row.kernel = type ? kl_xprintf("%s/%s", kiln_kernel_name(s->src->k), kl_elems[type].name)
                         : kl_xprintf("%s", kiln_kernel_name(s->src->k));
}

/* The words of the launch, so that somebody else can do the same. */
static void note_values(struct kl_subject *s)
{
    char *all = kl_xalloc(1);
    for (size_t i = 0; i < s->as.n; i++) {
        char *more = kl_xprintf("%s%s%s=%s", all, *all ? " " : "", s->as.v[i].name,
                                s->as.v[i].value);
        free(all);
        all = more;
    }
    s->row.values = all;
}

/* ---- checking ---- */

static bool fail(struct kl_subject *s, const struct kl_msg *m)
{
    s->row.failed = true;
    s->rc = m->rc;
    if (!s->row.note)
        s->row.note = kl_xstrndup(m->text, strlen(m->text));
    return false;
}

/* The same launch elsewhere: by session `other`, which has this context and loads the source. */
static bool run_elsewhere(struct kl_subject *s, kiln_context *ctx, struct kl_args *out,
                          kiln_module **mod, struct kl_msg *m)
{
    kiln_diags *d = NULL;
    const char *wanted[] = {NULL};
    const struct kl_session *src = &s->src->s;
    kiln_status st = kiln_compile(ctx, src->path, src->text, src->len, mod, &d);
    kiln_kernel *k = st ? NULL : kiln_module_kernel(*mod, kiln_kernel_name(s->src->k));
    bool ok = k && kl_args_set(out, k, s->as.v, s->as.n, 0, m);
    if (ok) {
        kiln_diags_free(d);
        d = NULL;
        st = kl_args_outputs(out, wanted, 0, &d, m);
        if (!st)
            st = kiln_launch(k, NULL, out->arg, out->n, &d);
    }
    if (st)
        return kl_bench_why(m, "the reference", st, d);
    kiln_diags_free(d);
    return ok;
}

static bool same_as(struct kl_subject *s, kiln_context *ctx, const char *who, struct kl_msg *m)
{
    struct kl_args ref = {0};
    kiln_module *mod = NULL;
    bool near = s->row.info.approximate != 0, ok = run_elsewhere(s, ctx, &ref, &mod, m);
    const struct kl_tol tol = {near ? KL_TOL_DEFAULT : KL_TOL_EXACT, 0};
    char text[600];
    for (size_t i = 0; i < s->args.narr && ok; i++) {
        const struct kl_arr *got = &s->args.arr[i], *want = kl_args_find(&ref, got->p->name);
        struct kl_cmp c;
        if (!got->p->writes || !want)
            continue;
        if (got->dense && want->dense && kl_arr_same_shape(got, want) &&
            memcmp(got->data, want->data, (size_t)got->count * kl_elems[got->elem].bytes) == 0)
            continue;
        kl_compare(got, want, &tol, &c);
        if (!c.ok) {
            kl_cmp_text(&c, got, &tol, text, sizeof text);
            ok = kl_msg(m, KL_RC_FINDINGS, "%s is not what %s computes: %s", got->p->name, who,
                        text);
        }
    }
    kl_args_free(&ref);
    kiln_module_free(mod);
    if (ok)
        s->row.check = kl_xprintf(near ? "near %s (math(fast))" : "same bits as %s", who);
    return ok;
}

static bool open_quietly(struct kl_session *s, const struct kl_bdev *d, kiln_device kind)
{
    return s->ctx || kl_session_open(s, &d->o, kind, 0, true) == 0;
}

/* What the interpreter does in a second or two: small arrays, or what one thread of the CPU does in
 * this time.  It is up to three hundred times slower. */
enum { INTERP_BYTES = 300 << 10 };
#define INTERP_S 0.02

static bool short_enough(const struct kl_subject *s)
{
    double once =
        s->dev->kind == KILN_DEVICE_CPU ? s->once_s * kiln_context_threads(s->dev->s.ctx) : 1e9;
    return kl_args_bytes(&s->args) <= INTERP_BYTES || once <= INTERP_S;
}

static bool check(struct kl_subject *s, struct kl_reference *ref, bool verify, struct kl_msg *m)
{
    const char *wanted[] = {NULL};
    if (verify) {
        struct kl_verify v;
        struct kl_msg said = {0};
        int rc = kl_verify_open(&v, &s->src->s, s->src->k, wanted);
        bool opened = !rc;
        v.said = &said;
        if (!rc)
            rc = kl_verify_run(&v, &s->args, &s->as, wanted);
        kl_verify_close(&v);
        if (rc && !opened) { /* that was said at once */
            m->rc = rc;
            m->text[0] = 0;
            return false;
        }
        if (rc)
            return kl_msg(m, rc, "%s", said.text[0] ? said.text : "it could not be verified");
        s->row.check = kl_xprintf("%s", said.text);
        return true;
    }
    if (short_enough(s) && s->dev->kind != KILN_DEVICE_INTERP &&
        open_quietly(&ref->interp, s->dev, KILN_DEVICE_INTERP))
        return same_as(s, ref->interp.ctx, "the interpreter", m);
    if (s->dev->kind == KILN_DEVICE_CUDA && open_quietly(&ref->cpu, s->dev, KILN_DEVICE_CPU))
        return same_as(s, ref->cpu.ctx, "the CPU", m);
    s->row.check = kl_xprintf(s->dev->kind == KILN_DEVICE_INTERP
                                  ? "the interpreter itself"
                                  : "against itself only: too large for the interpreter, and no "
                                    "--verify");
    return true;
}

/* Twice over two patterns: what was not written, or depends on what the memory held, shows. */
static bool run_twice(struct kl_subject *s, struct kl_msg *m)
{
    struct kl_bset *b = &s->sets;
    const struct kl_tol tol = {KL_TOL_DEFAULT, 0};
    double t;
    bool same;
    if (!kl_bset_poison(b, 0, 0xAB, m) || !kl_bset_launch(b, 0, &t, m) || !kl_bset_fetch(b, 0, m) ||
        !kl_bset_restore(b, 0, m) || !kl_bset_poison(b, 0, 0x54, m) ||
        !kl_bset_launch(b, 0, &s->once_s, m))
        return false;
    if (!kl_bset_check(b, 0, &tol, &same, m)) {
        char *text = kl_xprintf("%s", m->text);
        kl_msg(m, KL_RC_FINDINGS, "two runs differ, or elements were never written: %s", text);
        free(text);
        return false;
    }
    if (!same)
        s->row.note = kl_xprintf("the last bits differ from run to run");
    return true;
}

/* ---- making ---- */

/* Arrays that the kernel reads and that nobody gave get random values, if the others say how large
 * they are. */
static bool make_up(struct kl_subject *s, struct kl_msg *m)
{
    struct kl_args a;
    kiln_kernel *k = s->src->k;
    if (!kl_args_set(&a, k, s->as.v, s->as.n, KL_ARGS_SHAPES, m))
        return false;
    for (size_t i = 0; i < kiln_kernel_param_count(k); i++) {
        const kiln_param_info *p = kiln_kernel_param(k, i);
        char shape[200], *word;
        int64_t extent[8];
        int32_t ndim;
        kiln_dtype t = KILN_DTYPE_NONE;
        if (p->kind != KILN_PARAM_ARRAY || !p->reads || p->has_init || p->is_optional ||
            kl_args_find(&a, p->name) ||
            kiln_infer_shape(k, a.arg, a.n, p->name, &t, &ndim, extent, NULL) || !ndim)
            continue;
        kl_shape_text(ndim, extent, shape, sizeof shape);
        char *typed = kl_xprintf("%s:%s", shape, kl_elems[t].name);
        if (kl_random_word(typed, t, 100 + (unsigned)i, &word)) {
            s->as.v = kl_xgrow(s->as.v, sizeof *s->as.v, s->as.n);
            s->as.v[s->as.n++] =
                (struct kl_assign){.name = kl_xstrndup(p->name, strlen(p->name)), .value = word};
        }
        free(typed);
    }
    kl_args_free(&a);
    return true;
}

/* What a user must mend is shown as `kiln run` shows it. */
static bool shown(struct kl_subject *s, kiln_status st, kiln_diags *d, struct kl_msg *m)
{
    if (st != KILN_E_ARG && st != KILN_E_COMPILE)
        return kl_bench_why(m, kiln_kernel_name(s->src->k), st, d);
    m->rc = kl_session_fail(&s->src->s, st, d);
    m->text[0] = 0;
    return false;
}

static bool specialize(struct kl_subject *s, struct kl_msg *m)
{
    kiln_diags *d = NULL;
    kiln_spec *spec = NULL;
    kiln_status st = kiln_specialize(s->src->k, s->args.arg, s->args.n, &spec, &d);
    if (st)
        return shown(s, st, d, m);
    kiln_diags_free(d);
    s->row.info = *kiln_spec_get_info(spec);
    kiln_spec_free(spec);
    if (s->row.info.device == KILN_DEVICE_INTERP && s->dev->kind == KILN_DEVICE_CPU)
        return kl_msg(m, KL_RC_ENV, "it would be interpreted: the C compiler failed");
    return true;
}

static bool arguments(struct kl_subject *s, struct kl_msg *m)
{
    const char *wanted[] = {NULL};
    kiln_diags *d = NULL;
    if (!make_up(s, m) || !kl_args_set(&s->args, s->src->k, s->as.v, s->as.n, 0, m))
        return false;
    s->have_args = true;
    label(s);
    note_values(s);
    kiln_status st = kl_args_outputs(&s->args, wanted, 0, &d, m);
    if (st && m->rc) {
        kiln_diags_free(d);
        return false;
    }
    if (st)
        return shown(s, st, d, m);
    kiln_diags_free(d);
    return true;
}

bool kl_subject_make(struct kl_subject *s, struct kl_reference *ref, bool verify)
{
    struct kl_msg m = {0};
    if (!arguments(s, &m)) {
        if (!s->row.kernel)
            s->row.kernel = kl_xprintf("%s", kiln_kernel_name(s->src->k));
        return fail(s, &m);
    }
    uint64_t bytes = kl_args_bytes(&s->args);
    /* the last cache of a CPU keeps what others threw out, in no strict order: twice as much */
    size_t copies = kl_copies_for(bytes, (s->dev->cuda ? 1 : 2) * s->dev->cache_bytes);
    uint64_t left = 0;
    kiln_memory_info(s->dev->s.ctx, &left, NULL, NULL);
    while (copies > 2 && left && copies * bytes > left / 2)
        copies--; /* then the arrays are far larger than the cache anyway */
    s->turn.flush = copies == 0;
    s->row.copies = s->turn.flush ? 1 : copies;
    s->row.cold_by = s->turn.flush ? "flush" : "copies";
    s->row.bytes = kl_args_traffic(&s->args);
    if (!specialize(s, &m) ||
        !kl_bset_make(&s->sets, s->dev, s->src->k, &s->args, s->row.copies, &m) ||
        !run_twice(s, &m) || !check(s, ref, verify, &m))
        return fail(s, &m);
    for (size_t c = 0; c < s->sets.n; c++)
        if (!kl_bset_poison(&s->sets, c, 0xAB, &m) || !kl_bset_restore(&s->sets, c, &m))
            return fail(s, &m);
    return true;
}

bool kl_subject_after(struct kl_subject *s, struct kl_msg *m)
{
    const struct kl_tol tol = {KL_TOL_DEFAULT, 0};
    bool same = true;
    kiln_diags *d = NULL;
    kiln_status st = kiln_sync(s->dev->s.ctx, &d);
    if (st)
        return kl_bench_why(m, "the launches", st, d);
    if (s->peer)
        return true;
    /* the first copy and the last one used; a copy that never ran would still be poisoned */
    size_t copies = copies_of(s), last = (s->turn.next + copies - 1) % copies;
    return (s->row.has[1] && !s->row.has[0]) ? kl_bset_check(&s->sets, 0, &tol, &same, m)
                                             : kl_bset_check(&s->sets, last, &tol, &same, m);
}

void kl_subject_free(struct kl_subject *s)
{
    if (s->peer)
        kl_peer_drop(s->peer);
    free(s->peer);
    if (s->sets.dev)
        kl_bset_free(&s->sets);
    if (s->have_args)
        kl_args_free(&s->args);
    for (size_t i = 0; i < s->as.n; i++)
        free((char *)s->as.v[i].value);
    kl_assigns_free(&s->as);
    free(s->turn.host_s);
}
