/* watch.c - a candidate of `kiln tune` that does not end.
 *
 * A kernel that runs cannot be stopped, on no device: the process has to go.  So a thread looks at the
 * clock while a candidate runs for the first time, says which one it is, and ends the process.  What
 * was found for other shapes is in the file by then. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/tune/tune.h"

static void give_up(const struct kl_guard *g)
{
    fflush(stdout);
    kl_fail(KL_RC_FINDINGS,
            "%s has not ended after %g s, and a kernel that runs cannot be stopped: leave these "
            "values out with -D NAME=LIST, or wait longer with --limit SECONDS",
            g->what, g->limit_s);
    _exit(KL_RC_FINDINGS);
}

static void *look(void *user)
{
    struct kl_guard *g = user;
    pthread_mutex_lock(&g->lock);
    while (!g->end) {
        if (!g->what)
            pthread_cond_wait(&g->change, &g->lock);
        else if (pthread_cond_timedwait(&g->change, &g->lock, &g->until) == ETIMEDOUT && g->what)
            give_up(g);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

void kl_guard_open(struct kl_guard *g, double limit_s)
{
    pthread_condattr_t a;
    *g = (struct kl_guard){.limit_s = limit_s};
    pthread_mutex_init(&g->lock, NULL);
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&g->change, &a);
    pthread_condattr_destroy(&a);
    g->open = pthread_create(&g->thread, NULL, look, g) == 0;
}

static void set(struct kl_guard *g, char *what, bool end)
{
    if (!g->open)
        free(what);
    if (!g->open)
        return;
    pthread_mutex_lock(&g->lock);
    free(g->what);
    g->what = what;
    g->end = end;
    clock_gettime(CLOCK_MONOTONIC, &g->until);
    g->until.tv_sec += (time_t)g->limit_s;
    g->until.tv_nsec += (long)((g->limit_s - (double)(time_t)g->limit_s) * 1e9);
    if (g->until.tv_nsec >= 1000000000) {
        g->until.tv_nsec -= 1000000000;
        g->until.tv_sec++;
    }
    pthread_cond_signal(&g->change);
    pthread_mutex_unlock(&g->lock);
}

void kl_guard_begin(struct kl_guard *g, char *what)
{
    set(g, what, false);
}

void kl_guard_end(struct kl_guard *g)
{
    set(g, NULL, false);
}

void kl_guard_close(struct kl_guard *g)
{
    if (!g->open)
        return;
    set(g, NULL, true);
    pthread_join(g->thread, NULL);
    pthread_cond_destroy(&g->change);
    pthread_mutex_destroy(&g->lock);
    *g = (struct kl_guard){0};
}
