/* halving.c - rounds of samples; who goes on; who wins.
 *
 * Behind a round the challengers stand in the order of their medians.  The better half goes on.  Of
 * the others those go on, too, whose 95 % interval reaches down to that of the best one, but never
 * more than three quarters in all, so that rounds come to an end, and only while half of the time is
 * left.  Each round measures anew. */
#include "cli/tune/halving.h"

#include <math.h>
#include <stdlib.h>

struct run {
    struct kl_halving *h;
    struct kl_rival *r;
    size_t *alive; /* numbers of rivals; [0] is 0; the challengers behind it in order */
    size_t n;
    double start;
};

static double left(const struct run *w)
{
    double s = w->h->budget_s - (w->h->loop.now(w->h->loop.user) - w->start);
    return s > 0 ? s : 0;
}

static void measure(struct run *w, const struct kl_rule *rule)
{
    struct kl_lane *lane = kl_xalloc((w->n + 1) * sizeof *lane);
    struct kl_loop loop = w->h->loop;
    loop.rule = *rule;
    if (w->h->round)
        w->h->round(w->h->user, w->h->rounds, w->n);
    for (size_t i = 0; i < w->n; i++) {
        const struct kl_rival *r = &w->r[w->alive[i]];
        lane[i] = (struct kl_lane){.name = r->name,
                                   .user = r->user,
                                   .burst = r->burst > rule->most ? rule->most : r->burst,
                                   .take = r->take,
                                   .clock = r->clock,
                                   .any_clock = r->any_clock};
    }
    kl_loop_run(&loop, lane, w->n);
    for (size_t i = 0; i < w->n; i++) {
        struct kl_rival *r = &w->r[w->alive[i]];
        free(r->sample);
        r->sample = lane[i].ms;
        r->rounds++;
        r->failed = lane[i].stop == KL_STOP_FAILED || !lane[i].n;
        r->why = lane[i].why;
        kl_stats_summarize(r->sample, lane[i].n, &r->stat);
        w->h->over |= lane[i].stop == KL_STOP_TIME && rule->error > 0;
    }
    free(lane);
    w->h->rounds++;
}

static bool before(const struct run *w, size_t a, size_t b)
{
    double x = w->r[a].stat.median, y = w->r[b].stat.median;
    return x < y || (!(y < x) && a < b);
}

/* Failed ones leave; the challengers get into order. */
static void sort(struct run *w)
{
    size_t n = 1;
    for (size_t i = 1; i < w->n; i++) {
        size_t one = w->alive[i], at = n;
        if (w->r[one].failed)
            continue;
        for (; at > 1 && before(w, one, w->alive[at - 1]); at--)
            w->alive[at] = w->alive[at - 1];
        w->alive[at] = one;
        n++;
    }
    w->n = n;
}

static void halve(struct run *w)
{
    size_t n = w->n - 1, keep = (n + 1) / 2, most = n - (n + 3) / 4;
    double best = n ? w->r[w->alive[1]].stat.ci.hi : 0;
    bool time = left(w) > w->h->budget_s / 2;
    for (size_t i = keep; i < n && keep < most && time; i++)
        if (w->r[w->alive[1 + i]].stat.ci.lo <= best)
            w->alive[1 + keep++] = w->alive[1 + i];
    w->n = 1 + keep;
}

/* When the time was over after a few samples: all of one are below all of the other. */
static bool apart(const struct kl_summary_stats *now, const struct kl_summary_stats *ref)
{
    return now->n >= KL_STOP_LEAST && ref->n >= KL_STOP_LEAST &&
           now->ci.hi * (1 + KL_STATE_RESOLUTION) < ref->ci.lo;
}

static size_t winner(const struct run *w)
{
    const struct kl_summary_stats *ref = &w->r[0].stat;
    for (size_t i = 1; i < w->n; i++) {
        const struct kl_summary_stats *s = &w->r[w->alive[i]].stat;
        struct kl_versus v = kl_stats_versus(s, ref);
        if (v.state == KL_STATE_FAST || (v.state == KL_STATE_UNKNOWN && apart(s, ref)))
            return w->alive[i];
    }
    return 0;
}

size_t kl_halve(struct kl_halving *h, struct kl_rival *r, size_t n)
{
    struct run w = {.h = h, .r = r, .n = n, .start = h->loop.now(h->loop.user)};
    size_t samples = KL_HALVING_FIRST, best = 0;
    w.alive = kl_xalloc((n + 1) * sizeof *w.alive);
    for (size_t i = 0; i < n; i++)
        w.alive[i] = i;
    h->rounds = 0;
    h->over = false;
    bool more = n > 1, measured = false;
    while (more && w.n - 1 > KL_HALVING_FINAL) {
        const struct kl_rule few = {0, KL_STOP_LEAST, samples, 1e9, left(&w) / 2 / (double)w.n, 0};
        measure(&w, &few);
        measured = true;
        if (r[0].failed)
            break;
        sort(&w);
        halve(&w);
        samples = samples < KL_HALVING_MOST ? 2 * samples : samples;
        h->over = !(left(&w) > 0);
        more = !h->over;
    }
    if (more && !r[0].failed && w.n > 1) {
        struct kl_rule last = h->loop.rule;
        double most = left(&w) / (double)w.n;
        last.most_s = fmin(last.most_s, most);
        last.enough_s = fmin(last.enough_s, most);
        measure(&w, &last);
        measured = true;
        sort(&w);
    }
    if (measured && !r[0].failed)
        best = winner(&w);
    free(w.alive);
    return best;
}

void kl_halving_free(struct kl_rival *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(r[i].sample);
}
