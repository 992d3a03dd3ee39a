/* tune.c - `kiln tune`: the command line, what is said, and the file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tune/tune.h"

struct tune {
    struct kl_bench b;
    double budget;
    bool dry, verbose;
    struct kl_keep keep;
    struct kl_guard guard;
    double limit;
};

static int read_options(struct tune *t)
{
    struct kl_bench *b = &t->b;
    b->loop = (struct kl_loop){.rule = KL_RULE_DEFAULT, .now = kl_bench_now, .user = b};
    b->pin = kl_opt_given(b->o, KL_OPT_pin);
    b->tty = isatty(2);
    t->dry = kl_opt_given(b->o, KL_OPT_dry_run);
    t->verbose = kl_opt_given(b->o, KL_OPT_tune_verbose);
    t->budget = 60;
    t->limit = 60;
    if (kl_opt_given(b->o, KL_OPT_tol) && !kl_opt_given(b->o, KL_OPT_verify))
        return kl_usage(b->o, "--tol needs --verify");
    if (b->nspec > 1)
        return kl_usage(b->o, "kiln tune takes one kernel at a time, and there is %s, too",
                        b->spec[1]);
    int rc = kl_bench_number(b, KL_OPT_budget, "budget", 0.01, 86400, &t->budget);
    return rc ? rc : kl_bench_number(b, KL_OPT_limit, "limit", 0.01, 86400, &t->limit);
}

/* ---- what is said ---- */

static void show_fates(const struct kl_search *s, const char *head)
{
    size_t out = 0;
    for (int f = KL_FATE_alive + 1; f < KL_NFATE; f++)
        out += s->count[f];
    printf("  %s%zu candidate%s with the default", head, s->n, s->n == 1 ? "" : "s");
    for (int f = KL_FATE_alive + 1; f < KL_NFATE; f++)
        if (s->count[f])
            printf("%s%zu %s", out ? ": " : ", ", s->count[f], kl_fate_text[f]), out = 0;
    printf("; %zu left\n", s->count[KL_FATE_alive]);
}

static void list(const struct kl_search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct kl_candidate *c = &s->c[i];
        char *text = kl_search_text(s, c), buf[32];
        const struct kl_rival *r = NULL;
        for (size_t k = 0; k < s->nrival; k++)
            r = s->of_rival[k] == i && s->rival[k].rounds ? &s->rival[k] : r;
        printf("    %-40s ", i == 0 ? "(default)" : *text ? text : "(as the kernel says)");
        if (c->fate != KL_FATE_alive)
            printf("%s%s%s\n", kl_fate_text[c->fate], c->why ? ": " : "", c->why ? c->why : "");
        else if (r && r->failed)
            printf("failed: %s\n", r->why.text);
        else if (r)
            printf("%s after %zu round%s%s\n", kl_time_text(r->stat.median, buf), r->rounds,
                   r->rounds == 1 ? "" : "s",
                   i == 0         ? ", the default"
                   : c->same_bits ? ""
                                  : ", other bits");
        else
            printf("left\n");
        free(text);
    }
}

static const struct kl_rival *rival_of(const struct kl_search *s, size_t candidate)
{
    for (size_t k = 0; k < s->nrival; k++)
        if (s->of_rival[k] == candidate)
            return &s->rival[k];
    return NULL;
}

/* A wrong result is a mistake of the kernel, or of Kiln: it is told, whoever won. */
static void warn_wrong(const struct kl_search *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->c[i].fate == KL_FATE_wrong) {
            char *text = kl_search_text(s, &s->c[i]);
            fflush(stdout);
            kl_warn("kernel %s is wrong with %s: %s", kiln_kernel_name(s->src->k), text,
                    s->c[i].why);
            free(text);
        }
}

static void show_winner(const struct kl_search *s)
{
    const struct kl_rival *first = rival_of(s, 0), *best = rival_of(s, s->winner);
    char buf[32], *text = kl_search_text(s, &s->c[s->winner]);
    if (!s->halving.rounds) {
        printf("  tuned    the default stays: nothing else is left\n");
        free(text);
        warn_wrong(s);
        return;
    }
    printf("  pruned in %.2f s; %zu compiled and checked in %.2f s by %zu thread%s\n", s->prune_s,
           s->code_n, s->code_s, s->code_threads, s->code_threads == 1 ? "" : "s");
    printf("  measured in %zu round%s, %.1f s%s\n", s->halving.rounds,
           s->halving.rounds == 1 ? "" : "s", s->seconds,
           s->halving.over ? "; the time was up before all was known well: see --budget" : "");
    printf("  default  %s\n", kl_time_text(first->stat.median, buf));
    if (!s->winner) {
        printf("  tuned    the default stays: nothing is faster beyond doubt\n");
    } else {
        struct kl_versus v = kl_stats_versus(&best->stat, &first->stat);
        printf("  tuned    %s, %.3fx (%.3f..%.3f)  %s%s\n", kl_time_text(best->stat.median, buf),
               v.ratio, v.ci.lo, v.ci.hi, text,
               s->c[s->winner].same_bits ? "" : "  (last bits differ from the default's)");
    }
    free(text);
    warn_wrong(s);
}

static void show_step(const struct tune *t, const char *what, size_t n)
{
    if (!t->b.tty)
        return;
    fprintf(stderr, "\r\033[K");
    if (n)
        fprintf(stderr, "%s %zu candidates", what, n);
    fflush(stderr);
}

static void show_round(void *user, size_t number, size_t rivals)
{
    const struct tune *t = user;
    if (!t->b.tty)
        return;
    fprintf(stderr, "\r\033[Kround %zu: %zu candidates", number + 1, rivals);
    fflush(stderr);
}

/* ---- a search ---- */

static int search(struct tune *t, struct kl_search *s, const struct kl_point *point)
{
    int rc = kl_search_open(s, point);
    if (rc)
        return rc;
    show_step(t, "looking at", s->n);
    kl_search_prune(s);
    show_step(t, "", 0);
    if (s->c[0].fate != KL_FATE_alive)
        return kl_fail(KL_RC_USAGE, "the default cannot be launched: %s",
                       s->c[0].why ? s->c[0].why : kl_fate_text[s->c[0].fate]);
    printf("%s on %s: %s\n", kiln_kernel_name(s->src->k), s->space->device, s->space->when);
    if (t->dry) {
        show_fates(s, "");
        if (t->verbose)
            list(s);
        return 0;
    }
    if (s->count[KL_FATE_alive] < 2) { /* nothing to compare */
        show_fates(s, "");
        if (t->verbose)
            list(s);
        show_winner(s);
        return 0;
    }
    show_step(t, "compiling and checking", s->count[KL_FATE_alive]);
    rc = kl_search_prepare(s);
    show_step(t, "", 0);
    if (rc)
        return rc;
    s->halving.round = show_round;
    s->halving.user = t;
    kl_search_measure(s, t->budget);
    show_step(t, "", 0);
    if (s->why.text[0])
        return kl_fail(s->why.rc, "the default: %s", s->why.text);
    show_fates(s, "");
    if (t->verbose)
        list(s);
    show_winner(s);
    return 0;
}

static int keep(struct tune *t, const struct kl_search *s)
{
    const struct kl_rival *first = rival_of(s, 0), *best = rival_of(s, s->winner);
    const kl_tool_tuned e = {.k = s->src->k,
                             .space = s->space,
                             .var = s->var,
                             .nvar = s->nvar,
                             .use = s->winner ? s->c[s->winner].v : NULL,
                             .ms = best ? best->stat.median : 0,
                             .of_ms = first ? first->stat.median : 0};
    return kl_keep_add(&t->keep, &e);
}

static int all(struct tune *t)
{
    size_t points = kl_points(t->b.sweep, t->b.nsweep);
    int rc = 0;
    for (size_t i = 0; i < points && !rc; i++)
        for (size_t k = 0; k < t->b.nsrc && !rc; k++) {
            struct kl_point point;
            struct kl_search s = {.b = &t->b, .src = &t->b.src[k], .guard = &t->guard};
            kl_point_at(t->b.sweep, t->b.nsweep, i, &point);
            rc = search(t, &s, &point);
            kl_point_free(&point);
            if (!rc && !t->dry)
                rc = keep(t, &s); /* now: whatever becomes of the next one */
            fflush(stdout);
            kl_search_close(&s);
        }
    return rc;
}

/* ---- the command ---- */

static int can_measure(const struct tune *t)
{
    for (size_t i = 0; i < t->b.ndev && !t->dry; i++)
        if (t->b.dev[i].kind != KILN_DEVICE_CPU && !t->b.dev[i].cuda)
            return kl_fail(t->b.dev[i].kind == KILN_DEVICE_SIM ? KL_RC_USAGE : KL_RC_ENV,
                           "times of %s mean nothing: tune on cpu or cuda, or pass --dry-run",
                           t->b.dev[i].kind == KILN_DEVICE_SIM ? "the PTX executor"
                                                               : "the interpreter");
    return 0;
}

static int run(struct tune *t)
{
    int rc = kl_bench_words(&t->b);
    if (!rc)
        rc = kl_bench_lists(&t->b);
    if (!rc)
        rc = read_options(t);
    if (!rc)
        rc = kl_bench_devices(&t->b);
    if (!rc)
        rc = can_measure(t);
    if (!rc)
        rc = kl_bench_sources(&t->b);
    if (!rc)
        rc = kl_bench_names(&t->b);
    if (!rc && !t->dry)
        rc = kl_keep_open(&t->keep, &t->b.src[0].s, kl_opt(t->b.o, KL_OPT_tune_to));
    if (!rc) {
        kl_guard_open(&t->guard, t->limit);
        rc = all(t);
        kl_guard_close(&t->guard);
    }
    if (t->keep.written)
        printf("%s: %zu entr%s written\n", t->keep.path, t->keep.written,
               t->keep.written == 1 ? "y" : "ies");
    return rc;
}

int kl_cmd_tune(const struct kl_opts *o)
{
    struct tune t = {.b = {.o = o, .rep.fail_on = -1}};
    int rc = run(&t);
    kl_keep_close(&t.keep);
    kl_bench_close(&t.b);
    return rc;
}
