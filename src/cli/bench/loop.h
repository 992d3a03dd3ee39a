/* loop.h - measuring several things in turn until each is known well enough.
 *
 * A lane is one thing that is measured.  The loop goes from lane to lane (A B C A B C), takes a
 * burst of samples of each, and ends when every lane has ended by the rule; lanes that are done go
 * on for as long as another one needs samples, so that all of them saw the same machine.  It knows
 * neither kernels nor clocks: tests give it a device of their own. */
#ifndef KL_BENCHLOOP_H
#define KL_BENCHLOOP_H

#include "cli/cli.h"
#include "cli/bench/stats.h"

#define KL_CLOCK_LEAST 0.75 /* share of the full clock below which samples do not count */

struct kl_lane {
    const char *name;
    void *user;
    size_t burst; /* samples at once */
    /* Take n samples, in milliseconds.  false: a message, and the lane ends. */
    bool (*take)(void *user, size_t n, double *ms, struct kl_msg *m);
    /* Share of the full clock just now, or negative: unknown.  NULL: unknown. */
    double (*clock)(void *user);

    bool any_clock; /* a slow clock is no reason to drop a sample */
    bool follows;   /* measured for as long as the other lanes need */

    double *ms; /* the samples that count; unsorted while the loop runs, sorted behind it */
    size_t n, dropped;
    bool slow;                      /* the clock stayed low: in the end every sample counted */
    double *kept;                   /* dropped ones, until it is known whether there are others */
    double spent;                   /* seconds */
    double clock_first, clock_last; /* shares; negative: unknown */
    enum kl_stop stop;
    struct kl_msg why; /* of KL_STOP_FAILED */
};

struct kl_loop {
    struct kl_rule rule;
    double (*now)(void *user); /* seconds */
    void *user;
    void (*progress)(void *user, const struct kl_lane *l, double error); /* or NULL */
};
void kl_loop_run(const struct kl_loop *loop, struct kl_lane *lane, size_t n);

#endif
