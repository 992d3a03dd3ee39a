/* trace.h - telling a function what a context does: see kiln_context_trace in kiln.h.
 *
 * A kl_act is a piece of work of the calling thread.  With nobody listening, beginning and ending
 * one is a test of a pointer.  Spans are ended where a call returns a status, so they stand around
 * kl_guarded and never inside of what may raise. */
#ifndef KL_TRACE_H
#define KL_TRACE_H

#include <stdatomic.h>

#include "lib/lib.h"

enum { KL_TRACE_DETAIL = 256, KL_TRACE_NAME = 96, KL_TRACE_MOST = 4096 };

struct kl_timed;

/* Who listens.  It stays as it is until the context dies, so a span may keep a pointer to it. */
struct kl_trace {
    struct kl_trace *next; /* older ones of the context */
    kiln_context *ctx;
    uint32_t flags;
    void (*fn)(void *user, const kiln_trace_event *e);
    void *user;
    _Atomic uint64_t ids;

    /* CUDA (tracegpu.c) */
    void *_Atomic apart; /* a stream of its own, to ask the device for its time; NULL: no times */
    struct kl_clock {
        void *event;
        uint64_t t0, t1;
    } base;
    pthread_mutex_t flush; /* one at a time reports */
    pthread_mutex_t lock;  /* guards what follows */
    struct kl_timed *first, **last;
    struct kl_timed *idle; /* with events to be used again */
    size_t n;
    void **stream; /* by number - 1 */
    size_t nstream;
};

struct kl_act {
    struct kl_trace *t; /* NULL: nobody listens, and the rest is undefined */
    kiln_trace_event e;
    char detail[KL_TRACE_DETAIL];
};

static inline struct kl_trace *kl_tracing(kiln_context *ctx)
{
    return atomic_load_explicit(&ctx->trace, memory_order_acquire);
}

/* detail may be NULL.  stream: the driver's. */
void kl_act_open(struct kl_act *s, kiln_trace_kind kind, const char *name, const char *detail,
                  uint64_t bytes, void *stream);
void kl_act_close(struct kl_act *s, kiln_status st);
static inline void kl_act_begin(struct kl_act *s, kiln_context *ctx, kiln_trace_kind kind,
                                 const char *name, const char *detail, uint64_t bytes,
                                 void *stream)
{
    if ((s->t = kl_tracing(ctx)))
        kl_act_open(s, kind, name, detail, bytes, stream);
}
/* Returns st. */
static inline kiln_status kl_act_end(struct kl_act *s, kiln_status st)
{
    if (s->t)
        kl_act_close(s, st);
    return st;
}
/* What is known only at the end. */
static inline void kl_act_cache(struct kl_act *s, kiln_cache_state cache)
{
    if (s->t)
        s->e.cache = cache;
}

/* A launch: types and shapes of its arguments, and the bytes of its arrays.  The bound is used
 * where it is given: it also knows what was deduced. */
void kl_act_launch(struct kl_act *s, kiln_context *ctx, kiln_trace_kind kind,
                    const struct kl_item *it, bool bound, void *stream);
/* A SPAN of another place. */
void kl_trace_tell(struct kl_trace *t, kiln_trace_event *e);
uint64_t kl_trace_now(const struct kl_trace *t);
uint64_t kl_trace_thread(void); /* the system's number of this one */

/* ---- device times (tracegpu.c) ---- */

/* Around what queues work for a span: kind is that of the work.  NULL: it is not timed.  ok: it was
 * queued. */
struct kl_timed *kl_timed_begin(const struct kl_act *s, kiln_trace_kind kind, void *stream);
void kl_timed_end(const struct kl_act *s, struct kl_timed *t, void *stream, bool ok);

uint64_t kl_trace_stream(struct kl_trace *t, void *stream); /* its number */
void kl_trace_start(struct kl_trace *t);
/* Tell what has been timed so far; waits for it. */
void kl_trace_flush(struct kl_trace *t);
void kl_trace_stop(struct kl_trace *t);
/* What calls that were under way then have left. */
void kl_trace_rest(struct kl_trace *t);
/* All of the context's: flush the present one, free every one. */
void kl_trace_free(kiln_context *ctx);

/* Two comparisons of the clocks: at a time dev of the device, in ns, the host's clock stood
 * between t0 and t1. */
struct kl_clockpoint {
    double dev;
    uint64_t t0, t1;
};
struct kl_clockmap {
    uint64_t base;         /* host */
    double dev, at, slope; /* host - base = (device - dev) * (1 + slope) + at */
    double error;          /* ns */
};
void kl_clock_map(const struct kl_clockpoint *a, const struct kl_clockpoint *b,
                  struct kl_clockmap *m);
uint64_t kl_clock_host(const struct kl_clockmap *m, double dev);

#endif
