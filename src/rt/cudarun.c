/* cudarun.c - streams, events, launches, and who is to blame.
 *
 * A launch only queues work.  When a kernel faults, the call that notices it is an innocent one.
 * So each launch is noted in a ring, arguments and all, without formatting anything; a call
 * that waits successfully moves the mark up to which launches are known to be good. */
#include "rt/cuda.h"

#include <stdio.h>

#include "base/elem.h"

/* ---- blame ---- */

static void put(kl_cudaerr *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(kl_cudaerr *e, const char *fmt, ...)
{
    size_t n = strlen(e->text);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text + n, sizeof e->text - n, fmt, ap);
    va_end(ap);
}

static void put_launch(kl_cudaerr *e, const struct kl_cuda_launched *r)
{
    put(e, "\n  %s", r->k ? r->k->name : r->name);
    if (r->grid[0])
        put(e, ", grid %lldx%lldx%lld", (long long)r->grid[0], (long long)r->grid[1],
            (long long)r->grid[2]);
    if (!r->k)
        return;
    put(e, ", %u threads a block", r->k->threads);
    if (r->k->cluster > 1)
        put(e, ", %u blocks a cluster", r->k->cluster);
    for (uint32_t i = 0; i < r->nparam && i < r->k->nslot && i < KL_CUDA_SHOWN; i++) {
        const struct kl_cuslot *s = &r->k->slot[i];
        enum kl_elem el = (enum kl_elem)s->elem;
        if (s->array)
            put(e, ", %s=%#llx", s->name, (unsigned long long)r->param[i]);
        else if (kl_is_float(el))
            put(e, ", %s=%g", s->name, kl_elem_double(el, r->param[i]));
        else
            put(e, ", %s=%lld", s->name, (long long)r->param[i]);
    }
    if (r->k->nslot > KL_CUDA_SHOWN)
        put(e, ", ...");
}

void kl_cuda_blame(kl_cuda *c, kl_cudaerr *e)
{
    enum { MOST = 4 };
    pthread_mutex_lock(&c->lock);
    uint64_t open = c->launches - c->settled;
    if (open == 0) {
        put(e, "; no launch of this context was running: other code in the process caused it");
    } else {
        put(e, "; %s", open == 1 ? "it was this launch:" : "it was one of the launches that had "
                                                            "not been waited for, the latest "
                                                            "first:");
        for (uint64_t i = 0; i < open && i < MOST && i < KL_CUDA_RING; i++)
            put_launch(e, &c->ring[(c->launches - 1 - i) % KL_CUDA_RING]);
        if (open > MOST)
            put(e, "\n  and %llu before these", (unsigned long long)(open - MOST));
    }
    put(e, "\nthe device's context is lost for this process");
    pthread_mutex_unlock(&c->lock);
}

void kl_cuda_forget(kl_cuda *c, const kl_cukernel *k)
{
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < KL_CUDA_RING; i++)
        if (c->ring[i].k == k) {
            snprintf(c->ring[i].name, sizeof c->ring[i].name, "%.47s", k->name);
            c->ring[i].k = NULL;
        }
    pthread_mutex_unlock(&c->lock);
}

/* ---- launches ---- */

void kl_cuda_note(kl_cuda *c, const kl_cukernel *k, const char *label, const uint64_t *param,
                  uint32_t nparam, const int64_t grid[3], uint32_t ctas, void *stream)
{
    pthread_mutex_lock(&c->lock);
    struct kl_cuda_launched *r = &c->ring[c->launches++ % KL_CUDA_RING];
    r->k = k;
    memcpy(r->grid, grid, sizeof r->grid);
    r->ctas = ctas;
    r->stream = stream;
    r->nparam = nparam < KL_CUDA_SHOWN ? nparam : KL_CUDA_SHOWN;
    if (r->nparam)
        memcpy(r->param, param, r->nparam * sizeof *param);
    if (label)
        snprintf(r->name, sizeof r->name, "%.47s", label);
    pthread_mutex_unlock(&c->lock);
}

kiln_status kl_cuda_launch(kl_cuda *c, const kl_cukernel *k, const uint64_t *param,
                           uint32_t nparam, const int64_t grid[3], uint32_t ctas, void *stream,
                           bool recorded, kl_cudaerr *e)
{
    enum { MOST = 512 }; /* 4 KiB of parameters, the limit of every architecture */
    void *at[MOST];
    if (nparam > MOST) {
        *e = (kl_cudaerr){0};
        return kl_cuda_fail(e, KL_K1817, KILN_E_UNSUPPORTED,
                            "kernel `%s` has %u parameters, and %d are possible on a GPU", k->name,
                            nparam, MOST);
    }
    for (uint32_t i = 0; i < nparam; i++)
        at[i] = (void *)(uintptr_t)&param[i];
    int in = kl_cuda_enter(c, e);
    if (in < 0)
        return KILN_E_DEVICE;
    int cu = c->api.LaunchKernel(k->fn.function, ctas, 1, 1, k->threads, 1, 1, k->dynamic_shared,
                                 stream, at, NULL);
    if (!cu && !recorded)
        kl_cuda_note(c, k, NULL, param, nparam, grid, ctas, stream);
    kl_cuda_leave(c, in);
    if (!cu)
        return KILN_OK;
    *e = (kl_cudaerr){0};
    return kl_cuda_check(c, cu, "cuLaunchKernel", e);
}

/* ---- waiting ---- */

/* Launches up to `seen` have ended.  Waiting for one stream says so of the others only if it is
 * the stream of all that are open. */
static void settle(kl_cuda *c, uint64_t seen, bool all, void *stream)
{
    pthread_mutex_lock(&c->lock);
    while (c->settled < seen) {
        const struct kl_cuda_launched *r = &c->ring[c->settled % KL_CUDA_RING];
        bool kept = c->launches - c->settled <= KL_CUDA_RING;
        if (!all && kept && r->stream != stream)
            break;
        c->settled++;
    }
    pthread_mutex_unlock(&c->lock);
}

static kiln_status wait_for(kl_cuda *c, bool all, void *stream, kl_cudaerr *e)
{
    *e = (kl_cudaerr){0};
    int in = kl_cuda_enter(c, e);
    if (in < 0)
        return KILN_E_DEVICE;
    pthread_mutex_lock(&c->lock);
    uint64_t seen = c->launches;
    pthread_mutex_unlock(&c->lock);
    int cu = all ? c->api.CtxSynchronize() : c->api.StreamSynchronize(stream);
    kiln_status s =
        kl_cuda_check(c, cu, all ? "cuCtxSynchronize" : "cuStreamSynchronize", e);
    kl_cuda_leave(c, in);
    if (!s)
        settle(c, seen, all, stream);
    return s;
}

kiln_status kl_cuda_stream_sync(kl_cuda *c, void *stream, kl_cudaerr *e)
{
    return wait_for(c, false, stream, e);
}

kiln_status kl_cuda_sync(kl_cuda *c, kl_cudaerr *e)
{
    return wait_for(c, true, NULL, e);
}

bool kl_cuda_capturing(kl_cuda *c, void *stream)
{
    int state = 0;
    int in = c->api.StreamIsCapturing ? kl_cuda_enter(c, NULL) : -1;
    if (in < 0)
        return false;
    bool on = c->api.StreamIsCapturing(stream, &state) == 0 && state != 0;
    kl_cuda_leave(c, in);
    return on;
}

/* ---- streams and events ---- */

kiln_status kl_cuda_stream_new(kl_cuda *c, void **stream, kl_cudaerr *e)
{
    *stream = NULL;
    KL_CUDA_CALL(c, e, StreamCreate, stream, 0); /* 0: in order with the default stream */
}

kiln_status kl_cuda_stream_apart(kl_cuda *c, void **stream, kl_cudaerr *e)
{
    *stream = NULL;
    KL_CUDA_CALL(c, e, StreamCreate, stream, KL_CU_STREAM_APART);
}

void kl_cuda_stream_free(kl_cuda *c, void *stream)
{
    int in = kl_cuda_enter(c, NULL);
    if (in < 0)
        return;
    c->api.StreamDestroy(stream);
    kl_cuda_leave(c, in);
}

kiln_status kl_cuda_event_new(kl_cuda *c, void **event, kl_cudaerr *e)
{
    *event = NULL;
    KL_CUDA_CALL(c, e, EventCreate, event, 0);
}

void kl_cuda_event_free(kl_cuda *c, void *event)
{
    int in = kl_cuda_enter(c, NULL);
    if (in < 0)
        return;
    c->api.EventDestroy(event);
    kl_cuda_leave(c, in);
}

kiln_status kl_cuda_event_record(kl_cuda *c, void *event, void *stream, kl_cudaerr *e)
{
    KL_CUDA_CALL(c, e, EventRecord, event, stream);
}

kiln_status kl_cuda_event_wait(kl_cuda *c, void *stream, void *event, kl_cudaerr *e)
{
    KL_CUDA_CALL(c, e, StreamWaitEvent, stream, event, 0);
}

kiln_status kl_cuda_event_sync(kl_cuda *c, void *event, kl_cudaerr *e)
{
    KL_CUDA_CALL(c, e, EventSynchronize, event);
}

kiln_status kl_cuda_event_elapsed(kl_cuda *c, void *from, void *to, float *ms, kl_cudaerr *e)
{
    KL_CUDA_CALL(c, e, EventElapsedTime, ms, from, to);
}
