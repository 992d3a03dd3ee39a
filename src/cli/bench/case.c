/* case.c - the cases of `kiln bench`: subjects are made, measured in turn, compared, and
 * become rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/case.h"
#include "tool.h"

void kl_bench_note(struct kl_bench *b, char *text)
{
    for (size_t i = 0; i < b->rep.nnote; i++)
        if (strcmp(b->rep.note[i], text) == 0) {
            free(text);
            return;
        }
    b->rep.note = kl_xgrow(b->rep.note, sizeof *b->rep.note, b->rep.nnote);
    b->rep.note[b->rep.nnote++] = text;
}

/* On a terminal: what is done before anything is measured.  NULL: nothing any more. */
static void show_step(const struct kl_bench *b, const char *what, const char *name)
{
    if (b->tty && !what)
        fputs("\r\033[K", stderr);
    if (!b->tty || !what)
        return;
    fprintf(stderr, "\r\033[Kcase %zu of %zu  %s %s", b->rep.cases + 1,
            kl_points(b->sweep, b->nsweep), what, name);
    fflush(stderr);
}

/* ---- making ---- */

static void push_assign(struct kl_assigns *as, const char *name, char *value, bool define)
{
    as->v = kl_xgrow(as->v, sizeof *as->v, as->n);
    as->v[as->n++] = (struct kl_assign){
        .name = kl_xstrndup(name, strlen(name)), .value = value, .define = define};
}

bool kl_case_words(struct kl_bench *b, struct kl_subject *s, const struct kl_point *point,
                   const struct kl_point *set, struct kl_msg *m)
{
    struct kl_msg none;
    for (size_t i = 0; i < b->nword; i++) {
        const kiln_param_info *p = kl_param_find(s->src->k, b->word[i].name, &none);
        char *random, *value = p ? kl_point_expand(point, b->word[i].value, m) : NULL;
        if (!p)
            continue;
        if (!value)
            return false;
        if (p->kind == KILN_PARAM_ARRAY && kl_random_word(value, p->dtype, (unsigned)i, &random)) {
            free(value);
            value = random;
        }
        if (p->kind == KILN_PARAM_ARRAY && p->reads && strncmp(value, "zeros(", 6) == 0)
            kl_bench_note(b, kl_xprintf("%s is all zeros: real values may take longer", p->name));
        push_assign(&s->as, p->name, value, false);
    }
    for (size_t i = 0; i < set->n; i++)
        if (kl_param_find(s->src->k, set->name[i], &none)) {
            char *value = kl_point_expand(point, set->value[i], m);
            if (!value)
                return false;
            push_assign(&s->as, set->name[i], value, true);
        }
    s->given = s->as.n;
    return true;
}

/* "BLOCK=256 T=f16": what has several values, or all of them. */
static char *point_text(const struct kl_point *p, const struct kl_sweep *s, size_t n, bool several)
{
    char *out = kl_xalloc(1);
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < s[i].nname; k++, at++) {
            if (several && s[i].n < 2)
                continue;
            char *more = kl_xprintf("%s%s%s=%s", out, *out ? " " : "", p->name[at], p->value[at]);
            free(out);
            out = more;
        }
    return out;
}

static struct kl_subject *add_subject(struct kl_bench *b, struct kl_source *src,
                                      const struct kl_point *point, const struct kl_point *set)
{
    struct kl_subject *s =
        &b->subject[b->nsubject++]; /* arrays of peers point into it: no growing */
    *s = (struct kl_subject){.dev = src->dev, .src = src};
    s->row.device = kl_xstrndup(src->dev->label, strlen(src->dev->label));
    s->row.point = point_text(point, b->sweep, b->nsweep, false);
    s->row.setting = set ? point_text(set, b->set, b->nset, true) : NULL; /* a peer has none */
    return s;
}

/* A number for --flops: of the sweep, or a parameter as the launch sees it. */
struct names {
    const struct kl_point *point;
    const kl_tool_param *p;
    size_t n;
};

static bool look_up(void *user, const char *name, size_t n, double *out)
{
    const struct names *a = user;
    struct kl_number v;
    for (size_t i = 0; i < a->point->n; i++)
        if (strlen(a->point->name[i]) == n && memcmp(a->point->name[i], name, n) == 0 &&
            kl_number_parse(a->point->value[i], strlen(a->point->value[i]), &v)) {
            *out = v.f;
            return true;
        }
    for (size_t i = 0; i < a->n; i++)
        if (a->p[i].kind != KILN_PARAM_ARRAY && a->p[i].kind != KILN_PARAM_TYPE &&
            strlen(a->p[i].name) == n && memcmp(a->p[i].name, name, n) == 0) {
            *out = a->p[i].is_float ? a->p[i].fval : (double)a->p[i].ival;
            return true;
        }
    return false;
}

static int count_flops(struct kl_bench *b, struct kl_subject *s, const struct kl_point *point)
{
    size_t n = kiln_kernel_param_count(s->src->k);
    kl_tool_param *p = kl_xalloc((n + 1) * sizeof *p);
    int64_t grid[3];
    struct kl_msg m = {0};
    if (kl_tool_resolve(s->src->k, s->args.arg, s->args.n, p, grid, NULL))
        n = 0;
    struct names names = {point, p, n};
    char list[300] = "";
    size_t used = 0;
    bool ok = kl_number_expr(b->flops, strlen(b->flops), look_up, &names, &s->row.flops, &m);
    for (size_t i = 0; i < n && used < sizeof list; i++)
        if (p[i].kind == KILN_PARAM_SCALAR || p[i].kind == KILN_PARAM_CONST)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                                     p[i].name);
    free(p);
    return ok ? 0
              : kl_fail(KL_RC_USAGE, "--flops %s: %s (%s has %s)", b->flops, m.text,
                        kiln_kernel_name(s->src->k), list);
}

/* Kernels, settings and devices of one point.  An exit code where the user must mend something. */
static int make_kernels(struct kl_bench *b, const struct kl_point *point)
{
    size_t nset = kl_points(b->set, b->nset);
    for (size_t k = 0; k < b->nsrc; k++)
        for (size_t i = 0; i < nset; i++) {
            struct kl_point set;
            struct kl_msg m = {0};
            kl_point_at(b->set, b->nset, i, &set);
            struct kl_subject *s = add_subject(b, &b->src[k], point, &set);
            bool ok = kl_case_words(b, s, point, &set, &m);
            kl_point_free(&set);
            if (!ok)
                return kl_fail(m.rc, "%s", m.text);
            show_step(b, "preparing and checking", kiln_kernel_name(b->src[k].k));
            bool made = kl_subject_make(s, &b->ref, kl_opt_given(b->o, KL_OPT_verify));
            show_step(b, NULL, NULL);
            if (made) {
                int rc = b->flops ? count_flops(b, s, point) : 0;
                if (rc)
                    return rc;
                continue;
            }
            if (s->rc == KL_RC_FINDINGS)
                continue;
            if (s->row.note && *s->row.note && s->rc == KL_RC_USAGE)
                return kl_fail(s->rc, "%s", s->row.note);
            if (s->rc == KL_RC_USAGE || s->rc == KL_RC_INTERNAL)
                return s->rc;
        }
    return 0;
}

static void left_out(struct kl_bench *b, size_t of, const struct kl_point *point,
                     const struct kl_peer *p, const struct kl_msg *why)
{
    struct kl_subject *s = add_subject(b, b->subject[of].src, point, NULL);
    s->row.peer = true;
    s->row.failed = s->row.broken = why->rc == KL_RC_ENV;
    s->row.skipped = !s->row.failed;
    s->row.kernel = kl_xprintf("%s", p->name ? p->name : p->path);
    s->row.shape = kl_xprintf("%s", b->subject[of].row.shape);
    s->row.note = kl_xprintf("%s", why->text);
}

static void one_peer(struct kl_bench *b, size_t of, const struct kl_point *point,
                     struct kl_peerrun *run)
{
    struct kl_msg m = {0};
    double error;
    struct kl_subject *s = add_subject(b, b->subject[of].src, point, NULL);
    const struct kl_subject *k = &b->subject[of];
    s->peer = kl_xalloc(sizeof *s->peer);
    *s->peer = *run;
    s->row.peer = true;
    s->row.kernel = kl_xprintf("%s", run->name);
    s->row.shape = kl_xprintf("%s", k->row.shape);
    s->row.bytes = k->row.bytes;
    bool ok = kl_peer_check(s->peer, &k->args, &error, &m);
    s->row.copies = s->peer->copies;
    s->row.cold_by = s->peer->flush ? "flush" : s->peer->copies ? "copies" : "peer";
    if (ok) {
        s->row.check = kl_xprintf("the kernel's result but for %.1e of its RMS", error);
        return;
    }
    s->row.skipped = m.rc == KL_RC_OK;
    s->row.failed = !s->row.skipped;
    s->row.broken = m.rc == KL_RC_ENV;
    s->row.note = kl_xprintf("%s", m.text);
}

static void make_peers(struct kl_bench *b, const struct kl_point *point)
{
    size_t kernels = b->nsubject;
    for (size_t d = 0; d < b->ndev; d++) {
        const struct kl_peer *asked = NULL;
        size_t of = 0;
        while (of < kernels && (b->subject[of].dev != &b->dev[d] || b->subject[of].row.failed))
            of++;
        for (size_t i = 0; i < b->npeer && of < kernels; i++) {
            struct kl_peerrun run[KL_PEER_IMPLS];
            struct kl_msg m = {0};
            size_t n = 0;
            show_step(b, "asking", b->peer[i].path);
            if (kl_peer_hello(&b->peer[i], &b->dev[d], &m))
                n = kl_peer_case(&b->peer[i], &b->dev[d], &b->subject[of].args,
                                 b->subject[of].src->s.path, asked, run, &m);
            asked = !asked && b->peer[i].question ? &b->peer[i] : asked;
            if (!n)
                left_out(b, of, point, &b->peer[i], &m);
            for (size_t k = 0; k < n; k++) {
                show_step(b, "checking", run[k].name);
                one_peer(b, of, point, &run[k]);
            }
        }
    }
    for (size_t i = 0; i < b->nsubject && b->npeer; i++) /* threads of OpenMP spin */
        b->subject[i].pause_s = b->subject[i].dev->kind == KILN_DEVICE_CPU ? 0.06 : 0;
}

/* ---- measuring a case ---- */

static void show_progress(void *user, const struct kl_lane *l, double error)
{
    struct kl_bench *b = user;
    double t = kl_bench_now(NULL);
    if (t - b->progress_s < 0.1)
        return;
    b->progress_s = t;
    fprintf(stderr, "\r\033[Kcase %zu of %zu  %s: %zu samples", b->rep.cases + 1,
            kl_points(b->sweep, b->nsweep), l->name, l->n);
    if (isfinite(error))
        fprintf(stderr, ", median known to %.2f%%", error * 100);
    fflush(stderr);
}

static size_t burst_of(const struct kl_subject *s, bool warm)
{
    size_t n = s->dev->cuda ? KL_BURST : s->pause_s > 0 ? 6 : 4;
    if (!s->peer && s->sets.updates && !warm && !s->turn.flush && n > s->sets.n)
        n = s->sets.n; /* each copy is restored once a burst */
    return n;
}

/* Whether the kernels of a device are measured with an empty cache rather than over copies. */
static bool flushes(const struct kl_bench *b, const struct kl_bdev *d)
{
    for (size_t i = 0; i < b->nsubject; i++)
        if (b->subject[i].dev == d && !b->subject[i].peer && !b->subject[i].row.failed)
            return b->subject[i].turn.flush;
    return false;
}

static void measure(struct kl_bench *b)
{
    struct kl_lane *lane = kl_xalloc((2 * b->nsubject + 2 * b->ndev + 1) * sizeof *lane);
    struct kl_lane_of *of = kl_xalloc((2 * b->nsubject + 1) * sizeof *of);
    size_t n = 0, all;
    double ms[KL_BURST];
    for (int w = 0; w < 2; w++)
        for (size_t i = 0; i < b->nsubject; i++) {
            struct kl_subject *s = &b->subject[i];
            if (s->row.failed || s->row.skipped || !(w ? b->rep.warm : b->rep.cold))
                continue;
            of[n] = (struct kl_lane_of){s, w};
            lane[n] = (struct kl_lane){.name = s->row.kernel,
                                       .user = &of[n],
                                       .burst = burst_of(s, w),
                                       .take = kl_subject_take,
                                       .clock = kl_subject_clock,
                                       /* the highest clock of a CPU is that of one core alone */
                                       .any_clock = !s->dev->cuda};
            if (!kl_subject_take(&of[n], lane[n].burst < 2 ? 1 : 2, ms, &lane[n].why))
                lane[n].stop = KL_STOP_FAILED; /* it is not even warm */
            s->turn.nhost = 0;
            n++;
        }
    all = n; /* behind them the ceilings, so that these see the same machine */
    for (size_t i = 0; i < b->ndev && b->ceilings && n && of[0].s->row.bytes; i++)
        for (int k = 0; k < 2; k++) {
            kl_ceiling_size(&b->dev[i].ceiling[k], of[0].s->row.bytes,
                            b->rep.cold && flushes(b, &b->dev[i]));
            lane[all++] = (struct kl_lane){.name = k ? "read" : "copy",
                                           .user = &b->dev[i].ceiling[k],
                                           .burst = burst_of(of[0].s, true),
                                           .take = kl_ceiling_take,
                                           .follows = true};
        }
    if (b->tty)
        b->loop.progress = show_progress;
    kl_loop_run(&b->loop, lane, all);
    for (size_t i = n; i < all; i++) {
        kl_ceiling_set(lane[i].user, lane[i].ms, lane[i].n);
        free(lane[i].ms);
    }
    if (b->tty)
        fputs("\r\033[K", stderr);
    for (size_t i = 0; i < n; i++) {
        struct kl_row *r = &of[i].s->row;
        int w = of[i].warm;
        r->has[w] = lane[i].n > 0;
        r->stop[w] = lane[i].stop;
        r->dropped[w] = lane[i].dropped;
        r->sample[w] = lane[i].ms;
        kl_stats_summarize(lane[i].ms, lane[i].n, &r->stat[w]);
        if (!w || !r->has[0]) {
            r->clock[0] = lane[i].clock_first;
            r->clock[1] = lane[i].clock_last;
        }
        if (lane[i].slow && !r->note)
            r->note = kl_xprintf("the clock stayed below 75%%, at %.1f%%: every sample counts",
                                 lane[i].clock_last * 100);
        if (lane[i].stop == KL_STOP_FAILED || !lane[i].n) {
            r->failed = true;
            r->broken = r->peer && lane[i].why.rc == KL_RC_ENV;
            free(r->note);
            r->note = kl_xprintf("%s", lane[i].why.text);
        }
    }
    free(lane);
    free(of);
}

static void rates(struct kl_subject *s)
{
    struct kl_row *r = &s->row;
    const struct kl_summary_stats *t = &r->stat[r->has[0] ? 0 : 1];
    r->gbs = (double)r->bytes / (t->median * 1e6);
    r->gflops = r->flops / (t->median * 1e6);
    r->copy_gbs = s->dev->ceiling[0].gbs;
    r->read_gbs = s->dev->ceiling[1].gbs;
    r->of_copy = r->copy_gbs > 0 ? r->gbs / r->copy_gbs : 0;
    r->of_read = r->read_gbs > 0 ? r->gbs / r->read_gbs : 0;
    if (s->dev->cuda && s->turn.nhost) {
        kl_stats_sort(s->turn.host_s, s->turn.nhost);
        r->launch_ns = kl_stats_median(s->turn.host_s, s->turn.nhost) * 1e9;
    }
}

/* What the others are compared with: the first --vs kernel of the same device and setting, else the
 * first subject of all. */
static const struct kl_subject *reference_of(const struct kl_bench *b, const struct kl_subject *s)
{
    if (!b->nvs)
        return b->nsubject > 1 ? &b->subject[0] : NULL;
    const struct kl_subject *any = NULL;
    for (size_t i = 0; i < b->nsubject; i++) {
        const struct kl_subject *c = &b->subject[i];
        size_t spec = (size_t)(c->src - b->src) % b->nspec;
        if (c->row.peer || c->dev != s->dev || spec < b->nspec - b->nvs)
            continue;
        if (!s->row.setting || strcmp(c->row.setting, s->row.setting) == 0)
            return c;
        any = any ? any : c;
    }
    return any;
}

static void compare(struct kl_bench *b, struct kl_subject *s)
{
    struct kl_row *r = &s->row;
    const struct kl_subject *ref = reference_of(b, s);
    int w = r->has[0] ? 0 : 1;
    bool bad = false;
    if (ref && ref != s && !ref->row.failed && ref->row.has[w]) {
        r->vs = kl_stats_versus(&r->stat[w], &ref->row.stat[w]);
        r->has_vs = true;
        bad = b->nvs && !r->peer && kl_versus_regressed(&r->vs, b->rep.fail_on);
    }
    if (b->base.root) {
        struct kl_summary_stats old;
        double *samples;
        r->has_base = kl_baseline_find(&b->base, r, w, &old, &samples);
        char *doubt = r->has_base ? kl_baseline_doubt(&b->base, r, s->dev) : NULL;
        if (doubt)
            kl_bench_note(b, doubt);
        if (r->has_base)
            r->base = kl_stats_versus(&r->stat[w], &old);
        else if (!r->peer) {
            b->rep.unmatched++;
            kl_bench_note(b, kl_xprintf("%s%s%s %s on %s is not in %s", r->kernel,
                                        *r->setting ? " " : "", r->setting, r->shape, r->device,
                                        b->base.path));
        }
        bad |= r->has_base && !r->peer && kl_versus_regressed(&r->base, b->rep.fail_on);
        free(samples);
    }
    b->rep.regressed += bad && b->rep.fail_on >= 0;
}

static void finish_case(struct kl_bench *b)
{
    for (size_t i = 0; i < b->nsubject; i++) {
        struct kl_subject *s = &b->subject[i];
        struct kl_msg m = {0};
        if (s->row.failed || s->row.skipped)
            continue;
        if (!kl_subject_after(s, &m)) {
            s->row.failed = true;
            free(s->row.note);
            s->row.note = kl_xprintf("after the measurement: %s", m.text);
            continue;
        }
        if (s->peer) /* the same work */
            s->row.flops = b->subject[0].row.flops;
        rates(s);
        if (b->rep.end_to_end && !s->peer &&
            !kl_e2e_run(s->dev, &s->src->s, &s->args, &s->row.e2e, &m))
            kl_bench_note(b, kl_xprintf("%s: %s", s->row.kernel, m.text));
    }
    for (size_t i = 0; i < b->nsubject; i++)
        if (!b->subject[i].row.failed && !b->subject[i].row.skipped)
            compare(b, &b->subject[i]);
}

/* Rows outlive their subjects. */
void kl_case_end(struct kl_bench *b)
{
    for (size_t i = 0; i < b->nsubject; i++) {
        b->rep.row = kl_xgrow(b->rep.row, sizeof *b->rep.row, b->rep.nrow);
        b->rep.row[b->rep.nrow++] = b->subject[i].row;
        b->rep.failed += b->subject[i].row.failed;
        b->rep.broken += b->subject[i].row.broken;
    }
    while (b->nsubject)
        kl_subject_free(&b->subject[--b->nsubject]);
    free(b->subject);
    b->subject = NULL;
}

/* Behind the first case's own checks, so that a wrong word is told at once. */
static int ceilings(struct kl_bench *b)
{
    struct kl_msg m = {0};
    struct kl_rule rule = b->loop.rule;
    rule.enough_s = fmin(rule.enough_s, 0.2); /* only which of them is the fastest */
    rule.most_s = fmin(rule.most_s, 0.5);
    for (size_t i = 0; i < b->ndev && b->ceilings; i++)
        if (!b->dev[i].ceiling[0].d && !kl_bdev_ceilings(&b->dev[i], &rule, &m))
            return kl_fail(m.rc, "%s", m.text);
    return 0;
}

int kl_case_run(struct kl_bench *b, size_t i)
{
    struct kl_point point;
    kl_point_at(b->sweep, b->nsweep, i, &point);
    b->subject =
        kl_xalloc((b->nsrc * kl_points(b->set, b->nset) + b->ndev * b->npeer * KL_PEER_IMPLS + 1) *
                  sizeof *b->subject);
    int rc = make_kernels(b, &point);
    if (!rc)
        rc = ceilings(b);
    if (!rc) {
        make_peers(b, &point);
        measure(b);
        finish_case(b);
    }
    if (!b->rep.vs_name && b->nsubject > 1 && !rc) {
        const struct kl_subject *ref = reference_of(b, &b->subject[0]);
        if (ref)
            b->rep.vs_name = b->nvs ? b->spec[b->nspec - b->nvs] : "the first";
    }
    kl_case_end(b);
    kl_point_free(&point);
    b->rep.cases++;
    return rc;
}
