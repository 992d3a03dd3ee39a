/* tune.c - `kiln tune`: the command line, what is said, and the file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/tune.h"

struct tune {
    struct kl_bench b;
    double budget;
    bool dry, verbose;
    char *path; /* of the file */
    char *old;  /* what it holds now */
    size_t nold;
    struct kl_search *s; /* one a point and device; kept until the file is written */
    size_t n;
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
    if (kl_opt_given(b->o, KL_OPT_tol) && !kl_opt_given(b->o, KL_OPT_verify))
        return kl_usage(b->o, "--tol needs --verify");
    if (b->nspec > 1)
        return kl_usage(b->o, "kiln tune takes one kernel at a time, and there is %s, too",
                        b->spec[1]);
    return kl_bench_number(b, KL_OPT_budget, "budget", 0.01, 86400, &t->budget);
}

/* The file of before; none is fine. */
static int read_old(struct tune *t)
{
    const char *to = kl_opt(t->b.o, KL_OPT_tune_to);
    struct kl_msg m;
    t->path = to ? kl_xprintf("%s", to) : kl_xprintf("%s.tune", t->b.src[0].s.path);
    if (access(t->path, F_OK))
        return 0;
    struct stat st;
    if (stat(t->path, &st) == 0 && !S_ISREG(st.st_mode))
        return kl_fail(KL_RC_USAGE,
                       "-o %s: it is no plain file, and entries are kept beside those of before",
                       t->path);
    t->old = kl_read_file(t->path, &t->nold, &m);
    return t->old ? 0 : kl_fail(m.rc, "%s", m.text);
}

/* ---- what is said ---- */

static void show_fates(const struct kl_search *s, const char *head)
{
    size_t out = 0;
    for (int f = KL_FATE_alive + 1; f < KL_NFATE; f++)
        out += s->count[f];
    printf("  %s%zu candidates with the default", head, s->n);
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
    kl_search_prune(s);
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
    rc = kl_search_prepare(s);
    if (rc)
        return rc;
    s->halving.round = show_round;
    s->halving.user = t;
    kl_search_measure(s, t->budget);
    if (t->b.tty)
        fputs("\r\033[K", stderr);
    if (s->why.text[0])
        return kl_fail(s->why.rc, "the default: %s", s->why.text);
    show_fates(s, "");
    if (t->verbose)
        list(s);
    show_winner(s);
    return 0;
}

static int all(struct tune *t)
{
    size_t points = kl_points(t->b.sweep, t->b.nsweep);
    int rc = 0;
    t->s = kl_xalloc((points * t->b.nsrc + 1) * sizeof *t->s);
    for (size_t i = 0; i < points && !rc; i++)
        for (size_t k = 0; k < t->b.nsrc && !rc; k++) {
            struct kl_point point;
            struct kl_search *s = &t->s[t->n++];
            *s = (struct kl_search){.b = &t->b, .src = &t->b.src[k]};
            kl_point_at(t->b.sweep, t->b.nsweep, i, &point);
            rc = search(t, s, &point);
            kl_point_free(&point);
            if (rc) {
                kl_search_close(s);
                t->n--;
                continue;
            }
            kl_subject_free(&s->base); /* its arrays are large; the rest is needed for the file */
            s->base.sets = (struct kl_bset){0};
            s->base.have_args = false;
            s->base.as = (struct kl_assigns){0};
            s->base.peer = NULL;
            s->base.host_s = NULL;
        }
    return rc;
}

/* ---- the file ---- */

static int write_file(struct tune *t)
{
    kl_tool_tuned *e = kl_xalloc((t->n + 1) * sizeof *e);
    kiln_diags *d = NULL;
    char *text;
    struct kl_msg m;
    for (size_t i = 0; i < t->n; i++) {
        const struct kl_search *s = &t->s[i];
        const struct kl_rival *first = rival_of(s, 0), *best = rival_of(s, s->winner);
        e[i] = (kl_tool_tuned){.k = s->src->k,
                               .space = s->space,
                               .var = s->var,
                               .nvar = s->nvar,
                               .use = s->winner ? s->c[s->winner].v : NULL,
                               .ms = best ? best->stat.median : 0,
                               .of_ms = first ? first->stat.median : 0};
    }
    kiln_status st =
        kl_tool_tune_text(t->b.src[0].s.mod, t->path, t->old, t->nold, e, t->n, &text, &d);
    int rc = st ? kl_session_fail(&t->b.src[0].s, st, d) : 0;
    if (!st)
        kiln_diags_free(d);
    free(e);
    if (rc)
        return rc;
    struct kl_outfile f;
    bool ok = kl_outfile_open(&f, t->path, &m) && kl_outfile_write(&f, text, strlen(text), &m) &&
              kl_outfile_commit(&f, &m);
    kl_outfile_drop(&f);
    kl_tool_free(t->b.src[0].s.ctx, text);
    if (!ok)
        return kl_fail(m.rc, "%s", m.text);
    printf("%s: %zu entr%s written\n", t->path, t->n, t->n == 1 ? "y" : "ies");
    return 0;
}

/* A file that is wrong is told before anything is measured. */
static int check_old(struct tune *t)
{
    char *text;
    kiln_diags *d = NULL;
    kiln_status st =
        t->old ? kl_tool_tune_text(t->b.src[0].s.mod, t->path, t->old, t->nold, NULL, 0, &text, &d)
               : KILN_OK;
    if (st)
        return kl_session_fail(&t->b.src[0].s, st, d);
    kiln_diags_free(d);
    if (t->old)
        kl_tool_free(t->b.src[0].s.ctx, text);
    return 0;
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
        rc = read_old(t);
    if (!rc && !t->dry)
        rc = check_old(t);
    if (!rc)
        rc = all(t);
    if (t->n && !t->dry) { /* what was found before an error is kept */
        int one = write_file(t);
        rc = rc ? rc : one;
    }
    return rc;
}

int kl_cmd_tune(const struct kl_opts *o)
{
    struct tune t = {.b = {.o = o, .rep.fail_on = -1}};
    int rc = run(&t);
    for (size_t i = 0; i < t.n; i++)
        kl_search_close(&t.s[i]);
    free(t.s);
    free(t.path);
    free(t.old);
    kl_bench_close(&t.b);
    return rc;
}
