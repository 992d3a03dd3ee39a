/* buffer.c - memory of the context's device; host memory in this version. */
#include "lib/lib.h"

enum { ALIGN = 64 };

struct kiln_buffer {
    kl_alloc al;
    size_t size, taken;
    char *at;
};

kiln_status kiln_buffer_create(kiln_context *ctx, size_t bytes, kiln_buffer **out)
{
    if (!out)
        return KILN_E_ARG;
    *out = NULL;
    if (!ctx)
        return KILN_E_ARG;
    if (bytes > SIZE_MAX / 2)
        return KILN_E_NOMEM;
    size_t taken = sizeof(kiln_buffer) + bytes + ALIGN;
    kiln_buffer *b = ctx->al.fn(ctx->al.user, NULL, 0, taken);
    if (!b)
        return KILN_E_NOMEM;
    uintptr_t p = ((uintptr_t)(b + 1) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
    *b = (kiln_buffer){ctx->al, bytes, taken, (char *)p};
    *out = b;
    return KILN_OK;
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
    kl_alloc al = b->al;
    al.fn(al.user, b, b->taken, 0);
}
