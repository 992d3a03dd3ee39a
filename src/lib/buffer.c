/* buffer.c - memory of the context's device, copies, pinned memory.
 *
 * On the host's devices a buffer is host memory and a copy is done at once. */
#include "lib/trace.h"

#include <stdio.h>

enum { ALIGN = 64 };

struct kiln_buffer {
    kiln_context *ctx;
    size_t size, taken; /* taken: of the host block that this is the head of */
    void *at;
};

kiln_status kiln_buffer_alloc(kiln_context *ctx, size_t bytes, kiln_buffer **out,
                              kiln_diags **diags)
{
    kl_cudaerr e = {0};
    if (diags)
        *diags = NULL;
    if (out)
        *out = NULL;
    if (!ctx)
        return KILN_E_ARG;
    if (!out)
        return kl_wrong(ctx, diags, "kiln_buffer_alloc: out is NULL");
    size_t taken = sizeof(kiln_buffer) + (ctx->cuda || bytes > SIZE_MAX / 2 ? 0 : bytes + ALIGN);
    kiln_buffer *b = bytes > SIZE_MAX / 2 ? NULL : ctx->al.fn(ctx->al.user, NULL, 0, taken);
    if (!b) {
        kl_cuda_fail(&e, KL_K1814, KILN_E_NOMEM, "kiln_buffer_alloc: there is no host memory for "
                     "%zu bytes", ctx->cuda ? taken : bytes);
        return kl_finish_cuda(ctx, KILN_E_NOMEM, &e, diags);
    }
    uintptr_t p = ((uintptr_t)(b + 1) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
    *b = (kiln_buffer){ctx, bytes, taken, (void *)p};
    if (ctx->cuda) {
        uint64_t at;
        struct kl_act span;
        kl_act_begin(&span, ctx, KILN_TRACE_MEMORY, "kiln_buffer_alloc", NULL, bytes, NULL);
        kiln_status s = kl_act_end(&span, kl_cuda_alloc(ctx->cuda, bytes, &at, &e));
        if (s) {
            ctx->al.fn(ctx->al.user, b, taken, 0);
            return kl_finish_cuda(ctx, s, &e, diags);
        }
        b->at = (void *)(uintptr_t)at;
    }
    *out = b;
    return KILN_OK;
}

kiln_status kiln_buffer_create(kiln_context *ctx, size_t bytes, kiln_buffer **out)
{
    return kiln_buffer_alloc(ctx, bytes, out, NULL);
}

void *kiln_buffer_data(kiln_buffer *b)
{
    return b ? b->at : NULL;
}

size_t kiln_buffer_size(const kiln_buffer *b)
{
    return b ? b->size : 0;
}

void kiln_buffer_free(kiln_buffer *b)
{
    if (!b)
        return;
    kiln_context *ctx = b->ctx;
    if (ctx->cuda) {
        struct kl_act span;
        kl_act_begin(&span, ctx, KILN_TRACE_MEMORY, "kiln_buffer_free", NULL, b->size, NULL);
        kl_cuda_free(ctx->cuda, (uint64_t)(uintptr_t)b->at);
        kl_act_end(&span, KILN_OK);
    }
    ctx->al.fn(ctx->al.user, b, b->taken, 0);
}

/* ---- copies ---- */

static kiln_status check(const char *fn, const kiln_buffer *b, size_t offset, size_t bytes,
                         const kiln_stream *st, kiln_diags **diags)
{
    char text[256];
    if (diags)
        *diags = NULL;
    if (!b)
        return KILN_E_ARG;
    if (offset <= b->size && bytes <= b->size - offset && (!st || st->ctx == b->ctx))
        return kl_graph_allows(b->ctx, st, fn, diags);
    if (st && st->ctx != b->ctx)
        snprintf(text, sizeof text, "%s: buffer and stream belong to different contexts", fn);
    else
        snprintf(text, sizeof text, "%s: bytes %zu to %zu of a buffer of %zu", fn, offset,
                 offset + bytes, b->size);
    return kl_wrong(b->ctx, diags, text);
}

enum copy { UPLOAD, DOWNLOAD, COPY, FILL };

/* On the host's devices: now, or when the graph is launched. */
static kiln_status on_host(enum copy what, kiln_stream *st, void *to, const void *from,
                           uint8_t value, size_t bytes)
{
    if (kl_recording(st))
        return what == FILL ? kl_record_fill(st, to, value, bytes)
                            : kl_record_copy(st, to, from, bytes);
    if (what == FILL)
        memset(to, value, bytes);
    else
        memmove(to, from, bytes);
    return KILN_OK;
}

static uint64_t number(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static kiln_status on_cuda(kl_cuda *cu, enum copy what, void *stream, void *to, const void *from,
                           uint8_t value, size_t bytes, kl_cudaerr *e)
{
    switch (what) {
    case UPLOAD: return kl_cuda_upload(cu, number(to), from, bytes, stream, e);
    case DOWNLOAD: return kl_cuda_download(cu, to, number(from), bytes, stream, e);
    case COPY: return kl_cuda_copy(cu, number(to), number(from), bytes, stream, e);
    case FILL: break;
    }
    return kl_cuda_fill(cu, number(to), bytes, 1, 1, value, stream, e);
}

/* Without a stream, an upload or a download has been made when the call returns. */
static kiln_status work(kiln_context *ctx, enum copy what, kiln_stream *st, void *to,
                        const void *from, uint8_t value, size_t bytes, kiln_diags **diags)
{
    static const char *const name[] = {"upload", "download", "copy", "fill"};
    kl_cudaerr e = {0};
    void *stream = kiln_stream_cuda(st);
    struct kl_act span;
    kiln_status s;
    kl_act_begin(&span, ctx, what == FILL ? KILN_TRACE_FILL : KILN_TRACE_COPY, name[what], NULL,
                  bytes, stream);
    if (span.t && kl_recording(st))
        span.e.flags |= KILN_TRACE_RECORDED;
    if (ctx->cuda) {
        struct kl_timed *t = span.t ? kl_timed_begin(&span, span.e.kind, stream) : NULL;
        s = on_cuda(ctx->cuda, what, stream, to, from, value, bytes, &e);
        kl_timed_end(&span, t, stream, !s);
        if (!s && !st && (what == UPLOAD || what == DOWNLOAD))
            s = kl_cuda_stream_sync(ctx->cuda, NULL, &e);
    } else {
        s = on_host(what, st, to, from, value, bytes);
    }
    return kl_finish_cuda(ctx, kl_act_end(&span, s), &e, diags);
}

static void *place(const kiln_buffer *b, size_t offset)
{
    return (char *)b->at + offset;
}

kiln_status kiln_buffer_upload(kiln_buffer *to, size_t offset, const void *from, size_t bytes,
                               kiln_stream *st, kiln_diags **diags)
{
    kiln_status s = check("kiln_buffer_upload", to, offset, bytes, st, diags);
    if (s || !bytes)
        return s;
    if (!from)
        return kl_wrong(to->ctx, diags, "kiln_buffer_upload: from is NULL");
    return work(to->ctx, UPLOAD, st, place(to, offset), from, 0, bytes, diags);
}

kiln_status kiln_buffer_download(kiln_buffer *from, size_t offset, void *to, size_t bytes,
                                 kiln_stream *st, kiln_diags **diags)
{
    kiln_status s = check("kiln_buffer_download", from, offset, bytes, st, diags);
    if (s || !bytes)
        return s;
    if (!to)
        return kl_wrong(from->ctx, diags, "kiln_buffer_download: to is NULL");
    return work(from->ctx, DOWNLOAD, st, to, place(from, offset), 0, bytes, diags);
}

kiln_status kiln_buffer_copy(kiln_buffer *to, size_t to_offset, kiln_buffer *from,
                             size_t from_offset, size_t bytes, kiln_stream *st,
                             kiln_diags **diags)
{
    kiln_status s = check("kiln_buffer_copy", to, to_offset, bytes, st, diags);
    if (!s)
        s = check("kiln_buffer_copy", from, from_offset, bytes, st, diags);
    if (s || !bytes)
        return s;
    if (to->ctx != from->ctx)
        return kl_wrong(to->ctx, diags, "kiln_buffer_copy: buffers of different contexts");
    return work(to->ctx, COPY, st, place(to, to_offset), place(from, from_offset), 0, bytes,
                diags);
}

kiln_status kiln_buffer_fill(kiln_buffer *to, size_t offset, size_t bytes, uint8_t value,
                             kiln_stream *st, kiln_diags **diags)
{
    kiln_status s = check("kiln_buffer_fill", to, offset, bytes, st, diags);
    if (s || !bytes)
        return s;
    return work(to->ctx, FILL, st, place(to, offset), NULL, value, bytes, diags);
}

/* ---- pinned memory ---- */

struct head { /* in front of memory of the host's devices */
    size_t taken;
    void *block;
};

kiln_status kiln_host_alloc(kiln_context *ctx, size_t bytes, void **out, kiln_diags **diags)
{
    kl_cudaerr e = {0};
    if (diags)
        *diags = NULL;
    if (out)
        *out = NULL;
    if (!ctx || !out)
        return KILN_E_ARG;
    if (ctx->cuda) {
        struct kl_act span;
        kl_act_begin(&span, ctx, KILN_TRACE_MEMORY, "kiln_host_alloc", NULL, bytes, NULL);
        kiln_status s = kl_act_end(&span, kl_cuda_host_alloc(ctx->cuda, bytes, out, &e));
        return kl_finish_cuda(ctx, s, &e, diags);
    }
    if (bytes > SIZE_MAX / 2)
        return KILN_E_NOMEM;
    size_t taken = bytes + sizeof(struct head) + ALIGN;
    char *block = ctx->al.fn(ctx->al.user, NULL, 0, taken);
    if (!block)
        return KILN_E_NOMEM;
    uintptr_t p = ((uintptr_t)block + sizeof(struct head) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
    struct head h = {taken, block};
    memcpy((char *)p - sizeof h, &h, sizeof h);
    *out = (void *)p;
    return KILN_OK;
}

void kiln_host_free(kiln_context *ctx, void *p)
{
    struct head h;
    if (!p || !ctx)
        return;
    if (ctx->cuda) {
        kl_cuda_host_free(ctx->cuda, p);
        return;
    }
    memcpy(&h, (char *)p - sizeof h, sizeof h);
    ctx->al.fn(ctx->al.user, h.block, h.taken, 0);
}
