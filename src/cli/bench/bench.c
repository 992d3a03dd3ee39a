/* bench.c - `kiln bench`: the command line, and what comes of it.
 *
 * Everything named by it runs in one process: kernels, settings (-D with several values), devices
 * and peers of a case are measured in turn, so that a busy or hot machine meets all of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/bench/case.h"

/* ---- the command line ---- */

int kl_bench_words(struct kl_bench *b)
{
    const struct kl_opts *o = b->o;
    b->spec = kl_xalloc((o->narg + o->nopt + 1) * sizeof *b->spec);
    for (size_t i = 0; i < o->narg; i++) {
        struct kl_assign a;
        if (!kl_assign_split(o->arg[i], &a)) {
            b->spec[b->nspec++] = o->arg[i];
            continue;
        }
        b->word = kl_xgrow(b->word, sizeof *b->word, b->nword);
        b->word[b->nword++] = a;
    }
    if (!b->nspec)
        return kl_usage(o, "kiln %s needs a file", o->cmd->name);
    for (size_t i = 0; i < o->nopt; i++)
        if (o->opt[i].id == KL_OPT_bench_vs) {
            b->spec[b->nspec++] = o->opt[i].val;
            b->nvs++;
        }
    return 0;
}

int kl_bench_lists(struct kl_bench *b)
{
    struct kl_msg m;
    for (size_t i = 0; i < b->o->nopt; i++) {
        const struct kl_optval *v = &b->o->opt[i];
        bool sweep = v->id == KL_OPT_sweep;
        struct kl_sweep **list = sweep ? &b->sweep : &b->set, one;
        size_t *n = sweep ? &b->nsweep : &b->nset;
        if (!sweep && v->id != KL_OPT_define)
            continue;
        if (!kl_sweep_parse(v->val, &one, &m))
            return kl_fail(KL_RC_USAGE, "%s %s: %s", sweep ? "--sweep" : "-D", v->val, m.text);
        *list = kl_xgrow(*list, sizeof **list, *n);
        (*list)[(*n)++] = one;
    }
    /* the settings of `kiln tune` are candidates, of which it counts all, those of clauses, too */
    bool tune = b->o->cmd->run == kl_cmd_tune;
    if (kl_points(b->sweep, b->nsweep) > 10000 || (kl_points(b->set, b->nset) > 1000 && !tune))
        return kl_fail(KL_RC_USAGE, "so many cases (%zu of sweeps, %zu settings) take days",
                       kl_points(b->sweep, b->nsweep), kl_points(b->set, b->nset));
    return 0;
}

int kl_bench_number(const struct kl_bench *b, enum kl_optid id, const char *name, double least,
                    double most, double *out)
{
    const char *s = kl_opt(b->o, id);
    struct kl_number v;
    size_t n = s ? strlen(s) : 0;
    if (!s)
        return 0;
    if (n > 1 && s[n - 1] == '%')
        n--;
    if (!kl_number_parse(s, n, &v) || !(v.f >= least && v.f <= most))
        return kl_fail(KL_RC_USAGE, "--%s %s: it must be a number from %g to %g", name, s, least,
                       most);
    *out = v.f;
    return 0;
}

static int read_samples(const struct kl_bench *b, size_t *out)
{
    double v = 0;
    int rc = kl_bench_number(b, KL_OPT_samples, "samples", 1, 5000, &v);
    if (!rc && v != floor(v))
        rc = kl_fail(KL_RC_USAGE, "--samples %s: it must be a whole number from 1 to 5000",
                     kl_opt(b->o, KL_OPT_samples));
    *out = (size_t)v;
    return rc;
}

static int read_measure(struct kl_bench *b)
{
    static const char *const names[] = {"cold", "warm", "ceilings", "end-to-end"};
    bool *flag[] = {&b->rep.cold, &b->rep.warm, &b->ceilings, &b->rep.end_to_end};
    const char *s = kl_opt(b->o, KL_OPT_measure);
    struct kl_list l;
    int rc = 0;
    if (!kl_words_parse(s ? s : "cold,warm,ceilings", &l))
        return kl_fail(KL_RC_USAGE,
                       "--measure %s: an item is empty; write cold,warm or one of cold, warm, "
                       "ceilings and end-to-end",
                       s);
    for (size_t i = 0; i < l.n && !rc; i++) {
        bool known = false;
        for (size_t k = 0; k < 4; k++)
            if (strcmp(l.v[i], names[k]) == 0)
                known = *flag[k] = true;
        if (!known)
            rc = kl_fail(KL_RC_USAGE, "--measure %s: there is no `%s`; there are cold, warm, ceilings and "
                         "end-to-end",
                         s, l.v[i]);
    }
    kl_list_free(&l);
    if (!rc && !b->rep.cold && !b->rep.warm)
        rc = kl_fail(KL_RC_USAGE, "--measure %s: cold, warm or both must be among them", s);
    return rc;
}

static int read_options(struct kl_bench *b)
{
    const char *format = kl_opt(b->o, KL_OPT_report_as);
    double fail_on = -1;
    b->loop = (struct kl_loop){.rule = KL_RULE_DEFAULT, .now = kl_bench_now, .user = b};
    b->flops = kl_opt(b->o, KL_OPT_flops);
    b->pin = kl_opt_given(b->o, KL_OPT_pin);
    b->tty = isatty(2);
    struct winsize w;
    if (isatty(1) && !kl_opt_given(b->o, KL_OPT_report_to) && ioctl(1, TIOCGWINSZ, &w) == 0)
        b->rep.width = w.ws_col;
    if (format && !kl_format_parse(format, &b->format))
        return kl_usage(b->o, "--format %s: there are text, json, csv and md", format);
    if (kl_opt_given(b->o, KL_OPT_tol) && !kl_opt_given(b->o, KL_OPT_verify))
        return kl_usage(b->o, "--tol needs --verify");
    struct kl_tol tol;
    if (kl_opt_given(b->o, KL_OPT_tol) && !kl_tol_parse(kl_opt(b->o, KL_OPT_tol), &tol))
        return kl_fail(KL_RC_USAGE, "--tol %s: write 2ulp, or a number as 1e-5",
                       kl_opt(b->o, KL_OPT_tol));
    int rc = read_samples(b, &b->loop.rule.fixed);
    if (!rc)
        rc = kl_bench_number(b, KL_OPT_timeout, "timeout", 0.01, 3600, &b->loop.rule.most_s);
    if (!rc)
        rc = kl_bench_number(b, KL_OPT_fail_on, "fail-on", 0, 1000, &fail_on);
    if (!rc)
        rc = read_measure(b);
    if (b->loop.rule.enough_s > b->loop.rule.most_s)
        b->loop.rule.enough_s = b->loop.rule.most_s;
    b->rep.fail_on = fail_on < 0 ? -1 : fail_on / 100;
    if (!rc && fail_on >= 0 && !kl_opt_given(b->o, KL_OPT_baseline) && !b->nvs)
        rc = kl_usage(b->o, "--fail-on needs --baseline or --vs");
    return rc;
}

int kl_bench_devices(struct kl_bench *b)
{
    const char *names = kl_opt(b->o, KL_OPT_devices);
    struct kl_list l;
    int rc = 0;
    if (!kl_words_parse(names ? names : "auto", &l))
        return kl_fail(KL_RC_USAGE,
                       "--device %s: an item is empty; write cpu,cuda or one of auto, interp, cpu, "
                       "cuda, cuda:N and sim",
                       names);
    b->dev = kl_xalloc(l.n * sizeof *b->dev);
    for (size_t i = 0; i < l.n && !rc; i++)
        rc = kl_bdev_open(&b->dev[b->ndev++], b->o, l.v[i], b->pin);
    kl_list_free(&l);
    b->rep.dev = b->dev;
    b->rep.ndev = b->ndev;
    for (size_t i = 0; i < b->ndev && !rc; i++)
        if (b->dev[i].kind == KILN_DEVICE_INTERP && !names)
            kl_warn("kernels are interpreted here; `kiln doctor` says why");
    return rc;
}

int kl_bench_sources(struct kl_bench *b)
{
    int rc = 0;
    b->src = kl_xalloc(b->ndev * b->nspec * sizeof *b->src);
    for (size_t d = 0; d < b->ndev; d++)
        for (size_t i = 0; i < b->nspec && !rc; i++)
            rc = kl_source_open(&b->src[b->nsrc++], &b->dev[d], b->spec[i]);
    return rc;
}

static int open_peers(struct kl_bench *b)
{
    struct kl_msg m;
    struct kl_number v;
    const char *limit = getenv("KILN_PEER_TIMEOUT");
    double answer_s = KL_PEER_ANSWER(b->loop.rule.most_s);
    if (limit && *limit) {
        if (!kl_number_parse(limit, strlen(limit), &v) || !(v.f >= 0.1 && v.f <= 1e5))
            return kl_fail(KL_RC_USAGE,
                           "KILN_PEER_TIMEOUT=%s: it must be a number of seconds from 0.1 to 100000",
                           limit);
        answer_s = v.f;
    }
    for (size_t i = 0; i < b->o->nopt; i++)
        if (b->o->opt[i].id == KL_OPT_peer) {
            b->peer = kl_xgrow(b->peer, sizeof *b->peer, b->npeer);
            if (!kl_peer_open(&b->peer[b->npeer++], b->o->opt[i].val, &m))
                return kl_fail(m.rc, "%s", m.text);
            b->peer[b->npeer - 1].answer_s = answer_s;
        }
    return 0;
}

/* A name that no kernel has is a mistake; one that only some have is not. */
int kl_bench_names(const struct kl_bench *b)
{
    struct kl_msg m = {0};
    for (size_t i = 0; i < b->nword + b->nset; i++) {
        const char *name = i < b->nword ? b->word[i].name : b->set[i - b->nword].name[0];
        bool known = false;
        for (size_t k = 0; k < b->nspec && !known; k++)
            known = kl_param_find(b->src[k].k, name, &m) != NULL;
        if (!known)
            return kl_fail(KL_RC_USAGE, "%s", m.text);
    }
    return 0;
}

/* ---- the command ---- */

static void remark_machine(struct kl_bench *b)
{
    const char *core = b->npeer ? getenv("OPENBLAS_CORETYPE") : NULL;
    if (core)
        kl_bench_note(b,
                      kl_xprintf("OPENBLAS_CORETYPE=%.40s is set: OpenBLAS takes the processor for "
                                 "that one",
                                 core));
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    for (size_t i = 0; i < b->ndev; i++)
        if (!b->dev[i].cuda && cores > 0 && b->load > 0.5 * (double)cores)
            kl_bench_note(b,
                          kl_xprintf("CPU: others were at work (load %.1f, %ld cores): what runs "
                                     "in several threads that wait for each other suffers most",
                                     b->load, cores));
    for (size_t i = 0; i < b->ndev; i++) {
        struct kl_watch *w = &b->dev[i].watch;
        if (b->dev[i].cuda)
            kl_watch_throttle(w);
        else if (!*w->governor || !*w->turbo)
            kl_bench_note(b, kl_xprintf("CPU: %s unknown here: the clock may have changed "
                                        "between rows; trust ratios and min more than medians",
                                        *w->governor ? "turbo"
                                        : *w->turbo  ? "governor"
                                                     : "governor and turbo"));
    }
}

static int write_file(struct kl_outfile *f, const char *text)
{
    struct kl_msg m;
    bool ok = kl_outfile_write(f, text, strlen(text), &m) && kl_outfile_commit(f, &m);
    return ok ? 0 : kl_fail(m.rc, "%s", m.text);
}

static int write_reports(struct kl_bench *b, struct kl_outfile *out, struct kl_outfile *save)
{
    char *text = kl_report_text(&b->rep, b->format, false);
    int rc = 0;
    if (out)
        rc = write_file(out, text);
    else
        fputs(text, stdout);
    free(text);
    if (save && !rc) {
        text = kl_report_json(&b->rep, true);
        rc = write_file(save, text);
        free(text);
    }
    return rc;
}

/* Whether an earlier source is of the same file and device. */
static bool said_before(const struct kl_bench *b, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (b->src[j].dev == b->src[i].dev && strcmp(b->src[j].s.path, b->src[i].s.path) == 0)
            return true;
    return false;
}

static int run(struct kl_bench *b, struct kl_outfile *out, struct kl_outfile *save)
{
    struct kl_msg m = {0};
    const char *base = kl_opt(b->o, KL_OPT_baseline);
    const char *to = kl_opt(b->o, KL_OPT_report_to), *keep = kl_opt(b->o, KL_OPT_save);
    b->load = kl_machine_load();
    int rc = kl_bench_words(b);
    if (!rc)
        rc = kl_bench_lists(b);
    if (!rc)
        rc = read_options(b);
    if (!rc && base && !kl_baseline_open(&b->base, base, &m))
        rc = kl_fail(m.rc, "%s", m.text);
    b->rep.base_name = base;
    if (!rc && to && !kl_outfile_open(out, to, &m)) /* before minutes are spent */
        rc = kl_fail(m.rc, "%s", m.text);
    if (!rc && keep && !kl_outfile_open(save, keep, &m))
        rc = kl_fail(m.rc, "%s", m.text);
    if (!rc)
        rc = open_peers(b);
    if (!rc)
        rc = kl_bench_devices(b);
    if (!rc)
        rc = kl_bench_sources(b);
    for (size_t i = 0; i < b->nsrc && !rc; i++)
        rc = kl_session_tuned(&b->src[i].s, NULL, said_before(b, i));
    if (!rc)
        rc = kl_bench_names(b);
    for (size_t i = 0; i < kl_points(b->sweep, b->nsweep) && !rc; i++)
        rc = kl_case_run(b, i);
    b->rep.peer = b->peer;
    b->rep.npeer = b->npeer;
    if (rc)
        return rc;
    remark_machine(b);
    rc = write_reports(b, to ? out : NULL, keep ? save : NULL);
    if (rc)
        return rc;
    /* a limit that was not looked at is not kept */
    bool unmatched = b->rep.fail_on >= 0 && b->rep.unmatched;
    if (b->rep.failed > b->rep.broken || b->rep.regressed || unmatched)
        return KL_RC_FINDINGS;
    return b->rep.broken ? KL_RC_ENV : KL_RC_OK;
}

void kl_bench_close(struct kl_bench *b)
{
    kl_case_end(b);
    for (size_t i = 0; i < b->rep.nrow; i++)
        kl_row_free(&b->rep.row[i]);
    free(b->rep.row);
    for (size_t i = 0; i < b->rep.nnote; i++)
        free(b->rep.note[i]);
    free(b->rep.note);
    for (size_t i = 0; i < b->npeer; i++)
        kl_peer_close(&b->peer[i]);
    free(b->peer);
    kl_session_close(&b->ref.interp);
    kl_session_close(&b->ref.cpu);
    for (size_t i = 0; i < b->nsrc; i++)
        kl_source_close(&b->src[i]);
    free(b->src);
    for (size_t i = 0; i < b->ndev; i++)
        kl_bdev_close(&b->dev[i]);
    free(b->dev);
    for (size_t i = 0; i < b->nsweep; i++)
        kl_sweep_free(&b->sweep[i]);
    for (size_t i = 0; i < b->nset; i++)
        kl_sweep_free(&b->set[i]);
    for (size_t i = 0; i < b->nword; i++)
        free((char *)b->word[i].name);
    free(b->sweep);
    free(b->set);
    free(b->word);
    free(b->spec);
    kl_baseline_close(&b->base);
}

int kl_cmd_bench(const struct kl_opts *o)
{
    struct kl_bench b = {.o = o, .rep.fail_on = -1};
    struct kl_outfile out = {.fd = -1}, save = {.fd = -1};
    int rc = run(&b, &out, &save);
    kl_outfile_drop(&out);
    kl_outfile_drop(&save);
    kl_bench_close(&b);
    return rc;
}
