/* tracer.c - collecting what a context tells, and putting it in order. */
#define _GNU_SOURCE
#include "cli/trace/trace.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t kl_tracer_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- collecting ---- */

void kl_tracer_init(struct kl_tracer *t)
{
    *t = (struct kl_tracer){.thread = (uint64_t)syscall(SYS_gettid), .begin = kl_tracer_now()};
    pthread_mutex_init(&t->lock, NULL);
}

void kl_tracer_free(struct kl_tracer *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->v[i].name);
        free(t->v[i].detail);
    }
    free(t->v);
    free(t->name);
    pthread_mutex_destroy(&t->lock);
}

static void add(struct kl_tracer *t, struct kl_traced r, const char *name, const char *detail)
{
    r.name = kl_xstrndup(name, strlen(name));
    r.detail = kl_xstrndup(detail, strlen(detail));
    pthread_mutex_lock(&t->lock);
    r.nth = t->n;
    t->v = kl_xgrow(t->v, sizeof *t->v, t->n);
    t->v[t->n++] = r;
    pthread_mutex_unlock(&t->lock);
}

void kl_tracer_hear(void *tracer, const kiln_trace_event *e)
{
    if (kl_nvtx_on())
        kl_nvtx_hear(NULL, e);
    if (e->phase == KILN_TRACE_BEGIN)
        return;
    add(tracer,
        (struct kl_traced){.kind = e->kind,
                           .place = e->place,
                           .begin = e->begin_ns,
                           .end = e->end_ns,
                           .id = e->id,
                           .thread = e->thread,
                           .stream = e->stream,
                           .bytes = e->bytes,
                           .error = e->error_ns,
                           .programs = e->programs,
                           .threads = e->threads,
                           .flags = e->flags,
                           .cache = e->cache,
                           .status = e->status},
        e->name, e->detail);
}

void kl_tracer_step(struct kl_tracer *t, const char *name)
{
    if (!t || t->nopen == sizeof t->open / sizeof *t->open)
        return;
    t->opened[t->nopen] = name;
    t->open[t->nopen++] = kl_tracer_now();
}

void kl_tracer_done(struct kl_tracer *t)
{
    if (!t || !t->nopen)
        return;
    t->nopen--;
    add(t,
        (struct kl_traced){.place = KILN_TRACE_HOST,
                           .begin = t->open[t->nopen],
                           .end = kl_tracer_now(),
                           .thread = t->thread},
        t->opened[t->nopen], "");
}

/* ---- order ---- */

static int earlier(const void *a, const void *b)
{
    const struct kl_traced *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return x->nth > y->nth ? -1 : x->nth < y->nth; /* what lies around is told last */
}

void kl_tracer_order(struct kl_tracer *t)
{
    if (t->n)
        qsort(t->v, t->n, sizeof *t->v, earlier);
    for (size_t i = 0; i < t->n; i++)
        t->v[i].self = t->v[i].end - t->v[i].begin;
    size_t *open = kl_xalloc((t->n + 1) * sizeof *open);
    for (size_t i = 0; i < t->n; i++) { /* once for the spans of each thread */
        const struct kl_traced *first = &t->v[i];
        size_t depth = 0;
        bool seen = first->place != KILN_TRACE_HOST;
        for (size_t j = 0; j < i && !seen; j++)
            seen = t->v[j].place == KILN_TRACE_HOST && t->v[j].thread == first->thread;
        for (size_t j = i; j < t->n && !seen; j++) {
            const struct kl_traced *r = &t->v[j];
            if (r->place != KILN_TRACE_HOST || r->thread != first->thread)
                continue;
            while (depth && t->v[open[depth - 1]].end < r->end)
                depth--;
            if (depth)
                t->v[open[depth - 1]].self -= r->end - r->begin;
            open[depth++] = j;
        }
    }
    free(open);
}
