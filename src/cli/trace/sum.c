/* sum.c - what a trace says in numbers: kernels, copies, where the time of the host went, and
 * how long the GPU worked. */
#include <stdlib.h>
#include <string.h>

#include "cli/trace/trace.h"

static void count(struct kl_trace_rows *t, const char *name, const char *detail,
                  const struct kl_traced *r, uint64_t ns)
{
    size_t i = 0;
    while (i < t->n && (strcmp(t->v[i].name, name) != 0 || strcmp(t->v[i].detail, detail) != 0))
        i++;
    if (i == t->n) {
        t->v = kl_xgrow(t->v, sizeof *t->v, t->n);
        t->v[t->n++] = (struct kl_trace_row){.name = name, .detail = detail, .min = UINT64_MAX};
    }
    struct kl_trace_row *w = &t->v[i];
    w->n++;
    w->total += ns;
    w->min = ns < w->min ? ns : w->min;
    w->max = ns > w->max ? ns : w->max;
    w->bytes += r->bytes;
}

static int longer(const void *a, const void *b)
{
    const struct kl_trace_row *x = a, *y = b;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    int c = strcmp(x->name, y->name);
    return c ? c : strcmp(x->detail, y->detail);
}

static void finish(struct kl_trace_rows *t)
{
    if (t->n)
        qsort(t->v, t->n, sizeof *t->v, longer);
    for (size_t i = 0; i < t->n; i++) {
        t->total += t->v[i].total;
        for (size_t j = 0; j < t->n; j++)
            t->v[i].several |= i != j && strcmp(t->v[i].name, t->v[j].name) == 0;
    }
}

/* What the host did, each part without what lies inside of it. */
static const char *part_of(const struct kl_traced *r)
{
    static const char *const part[] = {
        [KILN_TRACE_SOURCE] = "compile: read the source",
        [KILN_TRACE_BIND] = "launch: check arguments",
        [KILN_TRACE_LOWER] = "compile: lower to IR",
        [KILN_TRACE_PASSES] = "compile: passes",
        [KILN_TRACE_EMIT] = "compile: emit C or PTX",
        [KILN_TRACE_CACHE] = "compile: cache",
        [KILN_TRACE_COMPILER] = "compile: compiler, assembler",
        [KILN_TRACE_LOAD] = "compile: load",
        [KILN_TRACE_LAUNCH] = "launch: the call",
        [KILN_TRACE_KERNEL] = "run kernels",
        [KILN_TRACE_COPY] = "copy: the calls",
        [KILN_TRACE_FILL] = "copy: the calls",
        [KILN_TRACE_WAIT] = "wait for the device",
        [KILN_TRACE_MEMORY] = "device memory",
        [KILN_TRACE_CLOCK] = "compare the clocks",
    };
    bool known = r->kind > 0 && (size_t)r->kind < sizeof part / sizeof *part && part[r->kind];
    return known ? part[r->kind] : r->kind ? kiln_trace_kind_name(r->kind) : r->name;
}

/* Spans are in the order in which they began. */
static void on_device(struct kl_trace_sum *s, const struct kl_traced *r)
{
    if (!s->gpu)
        s->first = s->last = r->begin;
    s->gpu = true;
    uint64_t from = r->begin > s->last ? r->begin : s->last;
    s->busy += r->end > from ? r->end - from : 0;
    s->last = r->end > s->last ? r->end : s->last;
    s->error = r->error > s->error ? r->error : s->error;
}

void kl_tracer_sum(const struct kl_tracer *t, struct kl_trace_sum *s)
{
    *s = (struct kl_trace_sum){.whole = t->end - t->begin};
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].place == KILN_TRACE_DEVICE)
            on_device(s, &t->v[i]);
    /* the work itself is seen on the device if there is one */
    kiln_trace_place work = s->gpu ? KILN_TRACE_DEVICE : KILN_TRACE_HOST;
    for (size_t i = 0; i < t->n; i++) {
        const struct kl_traced *r = &t->v[i];
        if (r->place == KILN_TRACE_HOST)
            count(&s->host, part_of(r), "", r, r->self);
        if (r->place != work || r->flags & KILN_TRACE_RECORDED)
            continue;
        if (r->kind == KILN_TRACE_KERNEL)
            count(&s->kernels, r->name, r->detail, r, r->end - r->begin);
        else if (r->kind == KILN_TRACE_COPY || r->kind == KILN_TRACE_FILL)
            count(&s->copies, r->name, "", r, r->end - r->begin);
    }
    finish(&s->kernels);
    finish(&s->copies);
    finish(&s->host);
}

void kl_trace_sum_free(struct kl_trace_sum *s)
{
    free(s->kernels.v);
    free(s->copies.v);
    free(s->host.v);
}
