/* tracegpu.c - when work ran on the device, and what that means on the clock of the host.
 *
 * Each launch, copy and fill is queued between two events of the driver, on its own stream, and the
 * events are read when somebody waits.  To move them to the host's clock, the device is asked for
 * its time on a stream apart from all others, with the host's clock read before and after: the
 * device's moment lies between the two.  That is done when the trace begins and whenever events are
 * read.  If one distance between the clocks fits both comparisons it is used, and lengths stay
 * exactly what the device measured; otherwise the clocks ran at different rates, and what lies
 * between is interpolated. */
#include <stdio.h>

#include "lib/trace.h"

enum { TRIES = 5, RESOLUTION_NS = 500 }; /* of the driver's events */

struct kl_timed {
    struct kl_timed *next;
    void *from, *to;
    kiln_trace_kind kind;
    uint64_t id, stream, bytes;
    char name[KL_TRACE_NAME], detail[KL_TRACE_DETAIL];
};

/* ---- clocks ---- */

static double max(double a, double b)
{
    return a > b ? a : b;
}

void kl_clock_map(const struct kl_clockpoint *a, const struct kl_clockpoint *b,
                  struct kl_clockmap *m)
{
    double span = b->dev - a->dev;
    double lo = 0, hi = (double)(a->t1 - a->t0); /* host - base at a->dev */
    double blo = (double)(b->t0 - a->t0), bhi = (double)(b->t1 - a->t0);
    *m = (struct kl_clockmap){.base = a->t0, .dev = a->dev};
    double from = max(lo, blo - span), to = -max(-hi, -(bhi - span));
    double coarse = RESOLUTION_NS + max(span, 0) * 6e-8; /* a float holds the distance */
    if (from <= to + 2 * RESOLUTION_NS) {
        m->at = (from + to) / 2;
        m->error = max(to - from, 0) / 2 + coarse;
        return;
    }
    m->at = (lo + hi) / 2;
    m->slope = span > 0 ? ((blo + bhi) / 2 - m->at) / span - 1 : 0;
    m->error = max(hi - lo, bhi - blo) / 2 + coarse;
}

uint64_t kl_clock_host(const struct kl_clockmap *m, double dev)
{
    double ns = (dev - m->dev) * (1 + m->slope) + m->at;
    return ns < 0 && -ns > (double)m->base ? 0 : m->base + (uint64_t)(int64_t)ns;
}

/* Ask the device for its time; the closest of some tries. */
static bool compare(struct kl_trace *t, struct kl_clock *out)
{
    kl_cuda *cu = t->ctx->cuda;
    kl_cudaerr e = {0};
    void *other = NULL;
    *out = (struct kl_clock){0};
    bool ok = !kl_cuda_event_new(cu, &out->event, &e) && !kl_cuda_event_new(cu, &other, &e);
    for (int i = 0; i < TRIES && ok; i++) {
        uint64_t t0 = kl_trace_now(t);
        ok = !kl_cuda_event_record(cu, other, t->apart, &e) && !kl_cuda_event_sync(cu, other, &e);
        uint64_t t1 = kl_trace_now(t);
        if (ok && (i == 0 || t1 - t0 < out->t1 - out->t0)) {
            void *was = out->event;
            *out = (struct kl_clock){other, t0, t1};
            other = was;
        }
    }
    if (other)
        kl_cuda_event_free(cu, other);
    if (!ok && out->event) {
        kl_cuda_event_free(cu, out->event);
        out->event = NULL;
    }
    return ok;
}

/* ---- what is timed ---- */

static void free_timed(struct kl_trace *t, struct kl_timed *p)
{
    const kl_alloc *al = &t->ctx->al;
    for (struct kl_timed *next; p; p = next) {
        next = p->next;
        if (p->from)
            kl_cuda_event_free(t->ctx->cuda, p->from);
        if (p->to)
            kl_cuda_event_free(t->ctx->cuda, p->to);
        al->fn(al->user, p, sizeof *p, 0);
    }
}

uint64_t kl_trace_stream(struct kl_trace *t, void *stream)
{
    const kl_alloc *al = &t->ctx->al;
    size_t i = 0, size = sizeof *t->stream;
    if (!stream)
        return 0;
    pthread_mutex_lock(&t->lock);
    while (i < t->nstream && t->stream[i] != stream)
        i++;
    if (i == t->nstream) {
        void **v = al->fn(al->user, t->stream, i * size, (i + 1) * size);
        if (v) {
            t->stream = v;
            v[t->nstream++] = stream;
        }
    }
    pthread_mutex_unlock(&t->lock);
    return i + 1;
}

/* One with events; NULL: there is no memory, or the driver has none. */
static struct kl_timed *take(struct kl_trace *t)
{
    const kl_alloc *al = &t->ctx->al;
    kl_cudaerr e = {0};
    pthread_mutex_lock(&t->lock);
    struct kl_timed *p = t->idle;
    if (p)
        t->idle = p->next;
    pthread_mutex_unlock(&t->lock);
    if (p || !(p = al->fn(al->user, NULL, 0, sizeof *p)))
        return p;
    p->next = NULL;
    p->from = p->to = NULL;
    if (!kl_cuda_event_new(t->ctx->cuda, &p->from, &e) &&
        !kl_cuda_event_new(t->ctx->cuda, &p->to, &e))
        return p;
    free_timed(t, p);
    return NULL;
}

static void give_back(struct kl_trace *t, struct kl_timed *p)
{
    pthread_mutex_lock(&t->lock);
    p->next = t->idle;
    t->idle = p;
    pthread_mutex_unlock(&t->lock);
}

struct kl_timed *kl_timed_begin(const struct kl_act *s, kiln_trace_kind kind, void *stream)
{
    struct kl_trace *t = s->t;
    kl_cudaerr e = {0};
    if (!t || !t->apart || kl_cuda_capturing(t->ctx->cuda, stream))
        return NULL;
    pthread_mutex_lock(&t->lock);
    bool full = t->n >= KL_TRACE_MOST;
    pthread_mutex_unlock(&t->lock);
    if (full)
        kl_trace_flush(t);
    struct kl_timed *p = take(t);
    if (!p)
        return NULL;
    p->kind = kind;
    p->id = s->e.id;
    p->stream = s->e.stream;
    p->bytes = s->e.bytes;
    snprintf(p->name, sizeof p->name, "%s", s->e.name);
    memcpy(p->detail, s->detail, sizeof p->detail);
    if (!kl_cuda_event_record(t->ctx->cuda, p->from, stream, &e))
        return p;
    give_back(t, p);
    return NULL;
}

void kl_timed_end(const struct kl_act *s, struct kl_timed *p, void *stream, bool ok)
{
    kl_cudaerr e = {0};
    if (!p)
        return;
    struct kl_trace *t = s->t;
    if (!ok || kl_cuda_event_record(t->ctx->cuda, p->to, stream, &e)) {
        give_back(t, p);
        return;
    }
    p->next = NULL;
    pthread_mutex_lock(&t->lock);
    *t->last = p;
    t->last = &p->next;
    t->n++;
    pthread_mutex_unlock(&t->lock);
}

/* ---- telling it ---- */

static bool elapsed(kl_cuda *cu, void *from, void *to, double *ns)
{
    kl_cudaerr e = {0};
    float ms = 0;
    if (kl_cuda_event_sync(cu, to, &e) || kl_cuda_event_elapsed(cu, from, to, &ms, &e))
        return false;
    *ns = (double)ms * 1e6;
    return true;
}

static void tell_clock(struct kl_trace *t, const struct kl_clock *c, const struct kl_clockmap *m)
{
    char text[120];
    if (m->slope < 0 || m->slope > 0)
        snprintf(text, sizeof text, "known to %.2f us; the device's clock runs %.3g of a million %s",
                 m->error * 1e-3, (m->slope < 0 ? -m->slope : m->slope) * 1e6,
                 m->slope > 0 ? "slower" : "faster");
    else
        snprintf(text, sizeof text, "known to %.2f us; both run at one rate", m->error * 1e-3);
    kiln_trace_event e = {.kind = KILN_TRACE_CLOCK,
                          .phase = KILN_TRACE_SPAN,
                          .place = KILN_TRACE_HOST,
                          .name = "clocks compared",
                          .detail = text,
                          .begin_ns = c->t0,
                          .end_ns = c->t1,
                          .thread = kl_trace_thread(),
                          .error_ns = (uint64_t)m->error};
    kl_trace_tell(t, &e);
}

static void tell(struct kl_trace *t, const struct kl_timed *p, const struct kl_clockmap *m)
{
    double from, to;
    if (!elapsed(t->ctx->cuda, t->base.event, p->to, &to) ||
        !elapsed(t->ctx->cuda, t->base.event, p->from, &from))
        return;
    kiln_trace_event e = {.kind = p->kind,
                          .phase = KILN_TRACE_SPAN,
                          .place = KILN_TRACE_DEVICE,
                          .name = p->name,
                          .detail = p->detail,
                          .begin_ns = kl_clock_host(m, from),
                          .end_ns = kl_clock_host(m, to),
                          .id = p->id,
                          .stream = p->stream,
                          .bytes = p->bytes,
                          .error_ns = (uint64_t)m->error};
    kl_trace_tell(t, &e);
}

void kl_trace_flush(struct kl_trace *t)
{
    struct kl_clock now;
    struct kl_clockmap m;
    double span = 0;
    kl_cuda *cu = t->ctx->cuda;
    pthread_mutex_lock(&t->flush);
    if (!t->apart) {
        pthread_mutex_unlock(&t->flush);
        return;
    }
    pthread_mutex_lock(&t->lock);
    struct kl_timed *list = t->first;
    t->first = NULL;
    t->last = &t->first;
    t->n = 0;
    pthread_mutex_unlock(&t->lock);
    kl_cudaerr e = {0};
    for (struct kl_timed *p = list; p; p = p->next)
        kl_cuda_event_sync(cu, p->to, &e); /* before the clocks are compared */
    bool ok = compare(t, &now) && elapsed(cu, t->base.event, now.event, &span);
    if (ok) {
        kl_clock_map(&(struct kl_clockpoint){0, t->base.t0, t->base.t1},
                     &(struct kl_clockpoint){span, now.t0, now.t1}, &m);
        tell_clock(t, &now, &m);
    }
    for (struct kl_timed *p = list, *next; p; p = next) {
        next = p->next;
        if (ok)
            tell(t, p, &m);
        give_back(t, p);
    }
    if (ok) {
        kl_cuda_event_free(cu, t->base.event);
        t->base = now;
    } else if (now.event) {
        kl_cuda_event_free(cu, now.event);
    }
    pthread_mutex_unlock(&t->flush);
}

void kl_trace_start(struct kl_trace *t)
{
    kl_cudaerr e = {0};
    void *apart;
    if (!t->ctx->cuda || !(t->flags & KILN_TRACE_DEVICE_TIMES) ||
        kl_cuda_stream_apart(t->ctx->cuda, &apart, &e))
        return;
    t->apart = apart;
    if (compare(t, &t->base))
        return;
    t->apart = NULL;
    kl_cuda_stream_free(t->ctx->cuda, apart);
}

void kl_trace_rest(struct kl_trace *t)
{
    pthread_mutex_lock(&t->lock);
    free_timed(t, t->first);
    free_timed(t, t->idle);
    t->first = t->idle = NULL;
    t->last = &t->first;
    t->n = 0;
    pthread_mutex_unlock(&t->lock);
}

void kl_trace_stop(struct kl_trace *t)
{
    kl_trace_flush(t);
    pthread_mutex_lock(&t->flush);
    void *apart = atomic_exchange(&t->apart, NULL);
    if (apart) {
        kl_cuda_event_free(t->ctx->cuda, t->base.event);
        kl_cuda_stream_free(t->ctx->cuda, apart);
    }
    pthread_mutex_unlock(&t->flush);
    kl_trace_rest(t);
}
