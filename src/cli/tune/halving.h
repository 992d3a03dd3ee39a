/* halving.h - which of many rivals is the fastest, without measuring all of them well.
 *
 * Successive halving: every rival gets a few samples; the better half goes on, and gets twice as
 * many; until so few are left that each can be known well.  Rival 0 is what there is without
 * tuning: it takes part in every round, and another one wins only if it is faster beyond doubt. */
#ifndef KL_HALVING_H
#define KL_HALVING_H

#include "cli/bench/loop.h"

struct kl_rival {
    const char *name;
    void *user;
    size_t burst;
    bool (*take)(void *user, size_t n, double *ms, struct kl_msg *m);
    double (*clock)(void *user);
    bool any_clock;
    /* what came of it */
    struct kl_summary_stats stat; /* of its last round */
    double *sample;               /* what stat refers to; freed by kl_halving_free */
    size_t rounds;                /* in which it took part */
    bool failed;
    struct kl_msg why;
};

enum { KL_HALVING_FIRST = 4, KL_HALVING_MOST = 64, KL_HALVING_FINAL = 3 };

struct kl_halving {
    struct kl_loop loop; /* the clock; its rule is that of the last round */
    double budget_s;     /* for all rounds; the first one is always finished */
    void (*round)(void *user, size_t number, size_t rivals);
    void *user;
    /* what came of it */
    size_t rounds;
    bool over; /* the time was up before the last round had ended by its rule */
};

/* The number of the winner.  0 as well if the first rival failed. */
size_t kl_halve(struct kl_halving *h, struct kl_rival *r, size_t n);
void kl_halving_free(struct kl_rival *r, size_t n);

#endif
