/* stream.c - streams, events, waiting.
 *
 * On the host's devices everything has ended when a call returns.  Streams and events exist there
 * too, so that a program need not know where it runs: an event keeps the time of day. */
#include <time.h>

#include "lib/trace.h"

struct kiln_event {
    kiln_context *ctx;
    void *cu;
    double ms; /* host */
    bool recorded;
    struct kl_mark mark; /* of the latest record, if that is in a graph */
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Frame of a call that may fail in the driver. */
static kiln_status finish(kiln_context *ctx, kiln_status s, const kl_cudaerr *e, kiln_diags **out)
{
    struct kl_call c;
    if (!s || !out || !e->diag)
        return s;
    if (kl_call_begin(&c, &ctx->al))
        return s;
    return kl_call_end(&c, kl_say_cuda(&c, s, e), out);
}

kiln_status kl_wrong(kiln_context *ctx, kiln_diags **out, const char *text)
{
    kl_cudaerr e = {.diag = KL_K1809};
    size_t n = strlen(text);
    memcpy(e.text, text, n < sizeof e.text ? n + 1 : sizeof e.text - 1);
    return finish(ctx, KILN_E_ARG, &e, out);
}

kiln_status kl_finish_cuda(kiln_context *ctx, kiln_status s, const kl_cudaerr *e, kiln_diags **out)
{
    return finish(ctx, s, e, out);
}

/* ---- streams ---- */

static kiln_status new_stream(kiln_context *ctx, kiln_stream **out, kiln_diags **diags)
{
    if (diags)
        *diags = NULL;
    if (out)
        *out = NULL;
    if (!ctx || !out)
        return KILN_E_ARG;
    kiln_stream *s = ctx->al.fn(ctx->al.user, NULL, 0, sizeof *s);
    if (!s)
        return KILN_E_NOMEM;
    *s = (kiln_stream){.ctx = ctx};
    *out = s;
    return KILN_OK;
}

kiln_status kiln_stream_create(kiln_context *ctx, kiln_stream **out, kiln_diags **diags)
{
    kl_cudaerr e = {0};
    kiln_status s = new_stream(ctx, out, diags);
    if (s || !ctx->cuda)
        return s;
    s = kl_cuda_stream_new(ctx->cuda, &(*out)->cu, &e);
    (*out)->own = !s;
    if (s) {
        kiln_stream_free(*out);
        *out = NULL;
    }
    return finish(ctx, s, &e, diags);
}

kiln_status kiln_stream_from_cuda(kiln_context *ctx, void *custream, kiln_stream **out,
                                  kiln_diags **diags)
{
    kiln_status s = new_stream(ctx, out, diags);
    if (s)
        return s;
    if (!ctx->cuda) {
        kiln_stream_free(*out);
        *out = NULL;
        return kl_wrong(ctx, diags, "kiln_stream_from_cuda: the context's device is not CUDA");
    }
    (*out)->cu = custream;
    return KILN_OK;
}

void *kiln_stream_cuda(const kiln_stream *s)
{
    return s ? s->cu : NULL;
}

kiln_status kiln_stream_sync(kiln_stream *s, kiln_diags **diags)
{
    kl_cudaerr e = {0};
    if (diags)
        *diags = NULL;
    if (!s)
        return KILN_E_ARG;
    if (s->rec)
        return kl_graph_refuse(s->ctx, diags,
                               "kiln_stream_sync: the stream records a graph, and nothing runs");
    if (!s->ctx->cuda)
        return KILN_OK;
    struct kl_act span;
    kl_act_begin(&span, s->ctx, KILN_TRACE_WAIT, "kiln_stream_sync", NULL, 0, s->cu);
    kiln_status st = kl_act_end(&span, kl_cuda_stream_sync(s->ctx->cuda, s->cu, &e));
    st = finish(s->ctx, st, &e, diags);
    return kl_debug_sync(s->ctx, st, diags);
}

void kiln_stream_free(kiln_stream *s)
{
    if (!s)
        return;
    kiln_context *ctx = s->ctx;
    kl_record_leave(s);
    if (s->own)
        kl_cuda_stream_free(ctx->cuda, s->cu);
    ctx->al.fn(ctx->al.user, s, sizeof *s, 0);
}

kiln_status kiln_sync(kiln_context *ctx, kiln_diags **diags)
{
    kl_cudaerr e = {0};
    if (diags)
        *diags = NULL;
    if (!ctx)
        return KILN_E_ARG;
    kiln_status s = kl_graph_allows(ctx, NULL, "kiln_sync", diags);
    if (s || !ctx->cuda)
        return s;
    struct kl_act span;
    kl_act_begin(&span, ctx, KILN_TRACE_WAIT, "kiln_sync", NULL, 0, NULL);
    s = kl_act_end(&span, kl_cuda_sync(ctx->cuda, &e));
    if (span.t)
        kl_trace_flush(span.t);
    return kl_debug_sync(ctx, finish(ctx, s, &e, diags), diags);
}

/* ---- events ---- */

kiln_status kiln_event_create(kiln_context *ctx, kiln_event **out, kiln_diags **diags)
{
    kl_cudaerr e = {0};
    if (diags)
        *diags = NULL;
    if (out)
        *out = NULL;
    if (!ctx || !out)
        return KILN_E_ARG;
    kiln_event *v = ctx->al.fn(ctx->al.user, NULL, 0, sizeof *v);
    if (!v)
        return KILN_E_NOMEM;
    *v = (kiln_event){.ctx = ctx};
    kiln_status s = ctx->cuda ? kl_cuda_event_new(ctx->cuda, &v->cu, &e) : KILN_OK;
    if (s)
        ctx->al.fn(ctx->al.user, v, sizeof *v, 0);
    else
        *out = v;
    return finish(ctx, s, &e, diags);
}

/* The stream of an event's call, or what is wrong with it. */
static kiln_status pair(const kiln_event *v, const kiln_stream *st, kiln_diags **diags)
{
    if (diags)
        *diags = NULL;
    if (!v)
        return KILN_E_ARG;
    return st && st->ctx != v->ctx
               ? kl_wrong(v->ctx, diags, "kiln_event: event and stream of different contexts")
               : KILN_OK;
}

kiln_status kiln_event_record(kiln_event *v, kiln_stream *st, kiln_diags **diags)
{
    kl_cudaerr e = {0};
    kiln_status s = pair(v, st, diags);
    if (!s)
        s = kl_graph_allows(v->ctx, st, "kiln_event_record", diags);
    if (s)
        return s;
    v->ms = now_ms();
    if (v->ctx->cuda)
        s = kl_cuda_event_record(v->ctx->cuda, v->cu, st ? st->cu : NULL, &e);
    if (s)
        return finish(v->ctx, s, &e, diags);
    v->recorded = !kl_recording(st); /* in a graph it has no time of its own */
    kl_mark_drop(&v->mark);
    if (!v->recorded)
        kl_mark_set(&v->mark, st);
    return KILN_OK;
}

kiln_status kiln_event_wait(kiln_event *v, kiln_stream *st, kiln_diags **diags)
{
    kl_cudaerr e = {0};
    kiln_status s = pair(v, st, diags);
    if (!s)
        s = kl_graph_allows(v->ctx, st, "kiln_event_wait", diags);
    if (!s && (v->mark.rec || (v->recorded && kl_recording(st))))
        s = kl_mark_check(&v->mark, st, v->ctx, diags);
    if (s || (!v->recorded && !v->mark.rec))
        return s; /* an event that nobody recorded: nothing to wait for */
    if (v->ctx->cuda)
        s = kl_cuda_event_wait(v->ctx->cuda, st ? st->cu : NULL, v->cu, &e);
    if (!s && v->mark.rec)
        kl_mark_join(&v->mark, st);
    return finish(v->ctx, s, &e, diags);
}

kiln_status kiln_event_sync(kiln_event *v, kiln_diags **diags)
{
    kl_cudaerr e = {0};
    kiln_status s = pair(v, NULL, diags);
    if (s)
        return s;
    if (v->mark.rec)
        return kl_graph_refuse(v->ctx, diags, "kiln_event_sync: the event was recorded into a "
                                              "graph, and does not happen");
    if (v->ctx->cuda) {
        struct kl_act span;
        kl_act_begin(&span, v->ctx, KILN_TRACE_WAIT, "kiln_event_sync", NULL, 0, NULL);
        s = kl_act_end(&span, kl_cuda_event_sync(v->ctx->cuda, v->cu, &e));
    }
    return finish(v->ctx, s, &e, diags);
}

kiln_status kiln_event_elapsed(kiln_event *from, kiln_event *to, double *ms, kiln_diags **diags)
{
    kl_cudaerr e = {0};
    float f = 0;
    kiln_status s = pair(from, NULL, diags);
    if (s || !to || !ms)
        return KILN_E_ARG;
    if (from->ctx != to->ctx || !from->recorded || !to->recorded)
        return kl_wrong(from->ctx, diags,
                        from->ctx != to->ctx
                            ? "kiln_event_elapsed: the events belong to different contexts"
                            : "kiln_event_elapsed: an event was never recorded");
    if (!from->ctx->cuda) {
        *ms = to->ms - from->ms;
        return KILN_OK;
    }
    s = kl_cuda_event_elapsed(from->ctx->cuda, from->cu, to->cu, &f, &e);
    if (!s)
        *ms = (double)f;
    return finish(from->ctx, s, &e, diags);
}

void kiln_event_free(kiln_event *v)
{
    if (!v)
        return;
    kiln_context *ctx = v->ctx;
    kl_mark_drop(&v->mark);
    if (v->cu)
        kl_cuda_event_free(ctx->cuda, v->cu);
    ctx->al.fn(ctx->al.user, v, sizeof *v, 0);
}
