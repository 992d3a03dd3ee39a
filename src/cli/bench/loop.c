/* loop.c - bursts of samples in turn, the stop rule, and what a slow clock spoils. */
#include "cli/bench/loop.h"

#include <stdlib.h>
#include <string.h>

enum { BURST_MOST = 64 };

struct work {
    const struct kl_loop *loop;
    double *sorted; /* a copy, for the rule */
    size_t room;
};

/* The rule looks at sorted samples; the lane's stay in the order they came. */
static void judge(struct work *w, struct kl_lane *l)
{
    if (w->room < l->n) {
        w->room = 2 * l->n;
        free(w->sorted);
        w->sorted = kl_xalloc(w->room * sizeof *w->sorted);
    }
    if (l->ms && w->sorted)
        memcpy(w->sorted, l->ms, l->n * sizeof *l->ms);
    kl_stats_sort(w->sorted, l->n);
    if (w->loop->progress)
        w->loop->progress(w->loop->user, l, kl_stats_error(w->sorted, l->n));
    enum kl_stop s = kl_rule_stop(&w->loop->rule, w->sorted, l->n, l->spent);
    if (s)
        l->stop = s;
}

static void count(const struct kl_rule *r, struct kl_lane *l, const double *ms, size_t n)
{
    size_t most = r->fixed && r->fixed < r->most ? r->fixed : r->most;
    for (size_t i = 0; i < n && l->n < most; i++) {
        l->ms = kl_xgrow(l->ms, sizeof *l->ms, l->n);
        l->ms[l->n++] = ms[i];
    }
}

/* A slow clock spoils samples, unless it is slow all the time: a chip that is always held back by
 * its power is as fast as it gets. */
enum { SLOW_LEAST = 48 };

static void drop(const struct kl_rule *r, struct kl_lane *l, const double *ms, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        l->kept = kl_xgrow(l->kept, sizeof *l->kept, l->dropped);
        l->kept[l->dropped++] = ms[i];
    }
    if (l->dropped < SLOW_LEAST || l->dropped <= 4 * l->n)
        return;
    l->slow = true;
    count(r, l, l->kept, l->dropped);
    l->dropped = 0;
}

static void burst(struct work *w, struct kl_lane *l)
{
    const struct kl_rule *r = &w->loop->rule;
    size_t n = l->burst < 1 ? 1 : l->burst > BURST_MOST ? BURST_MOST : l->burst;
    double ms[BURST_MOST];
    if (r->fixed && r->fixed > l->n && n > r->fixed - l->n)
        n = r->fixed - l->n;
    double start = w->loop->now(w->loop->user);
    if (!l->take(l->user, n, ms, &l->why)) {
        l->stop = KL_STOP_FAILED;
        return;
    }
    l->spent += w->loop->now(w->loop->user) - start;
    double share = l->clock ? l->clock(l->user) : -1;
    if (l->clock_first < 0)
        l->clock_first = share;
    l->clock_last = share;
    if (share >= 0 && share < KL_CLOCK_LEAST && !l->slow && !l->any_clock)
        drop(r, l, ms, n);
    else
        count(r, l, ms, n);
    if (!l->stop || l->stop == KL_STOP_PRECISION)
        judge(w, l);
}

static bool going_on(const struct kl_lane *lane, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!lane[i].stop && !lane[i].follows)
            return true;
    return false;
}

void kl_loop_run(const struct kl_loop *loop, struct kl_lane *lane, size_t n)
{
    struct work w = {.loop = loop};
    for (size_t i = 0; i < n; i++)
        lane[i].clock_first = lane[i].clock_last = -1;
    while (going_on(lane, n))
        for (size_t i = 0; i < n; i++) {
            /* a count that was asked for is exact; time that is over does not come back */
            bool over = lane[i].stop == KL_STOP_FAILED || lane[i].stop == KL_STOP_COUNT ||
                        lane[i].stop == KL_STOP_TIME;
            if (!over)
                burst(&w, &lane[i]);
        }
    for (size_t i = 0; i < n; i++) {
        kl_stats_sort(lane[i].ms, lane[i].n);
        free(lane[i].kept);
        lane[i].kept = NULL;
    }
    free(w.sorted);
}
