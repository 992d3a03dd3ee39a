/* cudamem.c - memory of the device and pinned memory of the host, copies, fills. */
#include "rt/cuda.h"

#include <stdio.h>

/* What a capture does not see and need not know: it is allowed while one is going on. */
int kl_cuda_relax(kl_cuda *c)
{
    int mode = KL_CU_CAPTURE_RELAXED;
    return c->api.ThreadCaptureMode && !c->api.ThreadCaptureMode(&mode) ? mode : -1;
}

void kl_cuda_restore(kl_cuda *c, int mode)
{
    if (mode >= 0)
        c->api.ThreadCaptureMode(&mode);
}

kiln_status kl_cuda_alloc(kl_cuda *c, size_t bytes, uint64_t *at, kl_cudaerr *e)
{
    *at = 0;
    *e = (kl_cudaerr){0};
    int in = kl_cuda_enter(c, e);
    if (in < 0)
        return KILN_E_DEVICE;
    int mode = kl_cuda_relax(c);
    kiln_status s = kl_cuda_check(c, c->api.MemAlloc(at, bytes ? bytes : 1), /* it refuses 0 */
                                  "cuMemAlloc", e);
    kl_cuda_restore(c, mode);
    kl_cuda_leave(c, in);
    return s;
}

kiln_status kl_cuda_alloc_zero(kl_cuda *c, size_t bytes, uint64_t *at, kl_cudaerr *e)
{
    void *stream = NULL;
    kiln_status s = kl_cuda_alloc(c, bytes, at, e);
    int in = s ? -1 : kl_cuda_enter(c, e);
    if (in < 0)
        return s ? s : KILN_E_DEVICE;
    int mode = kl_cuda_relax(c);
    s = kl_cuda_check(c, c->api.StreamCreate(&stream, KL_CU_STREAM_APART), "cuStreamCreate", e);
    if (!s) {
        s = kl_cuda_check(c, c->api.MemsetD8(*at, 0, bytes, stream), "cuMemset", e);
        if (!s)
            s = kl_cuda_check(c, c->api.StreamSynchronize(stream), "cuStreamSynchronize", e);
        c->api.StreamDestroy(stream);
    }
    if (s) {
        c->api.MemFree(*at);
        *at = 0;
    }
    kl_cuda_restore(c, mode);
    kl_cuda_leave(c, in);
    return s;
}

void kl_cuda_free(kl_cuda *c, uint64_t at)
{
    int in = at ? kl_cuda_enter(c, NULL) : -1;
    if (in < 0)
        return;
    int mode = kl_cuda_relax(c);
    c->api.MemFree(at);
    kl_cuda_restore(c, mode);
    kl_cuda_leave(c, in);
}

int kl_cuda_elsewhere(kl_cuda *c, uint64_t at)
{
    unsigned type = 0;
    int ordinal = -1, in = c->info.count > 1 && c->api.PointerGet ? kl_cuda_enter(c, NULL) : -1;
    uint64_t reached;
    if (in < 0)
        return -1;
    bool other = c->api.PointerGet(&reached, KL_CU_PTR_REACHED, at) != 0 &&
                 c->api.PointerGet(&type, KL_CU_PTR_TYPE, at) == 0 && type == KL_CU_ON_DEVICE &&
                 c->api.PointerGet(&ordinal, KL_CU_PTR_ORDINAL, at) == 0 &&
                 ordinal != c->info.ordinal;
    kl_cuda_leave(c, in);
    return other ? ordinal : -1;
}

kiln_status kl_cuda_host_alloc(kl_cuda *c, size_t bytes, void **at, kl_cudaerr *e)
{
    *at = NULL;
    *e = (kl_cudaerr){0};
    int in = kl_cuda_enter(c, e);
    if (in < 0)
        return KILN_E_DEVICE;
    int mode = kl_cuda_relax(c);
    kiln_status s = kl_cuda_check(
        c, c->api.MemHostAlloc(at, bytes ? bytes : 1, KL_CU_HOST_PORTABLE), "cuMemHostAlloc", e);
    kl_cuda_restore(c, mode);
    kl_cuda_leave(c, in);
    return s;
}

void kl_cuda_host_free(kl_cuda *c, void *at)
{
    int in = at ? kl_cuda_enter(c, NULL) : -1;
    if (in < 0)
        return;
    int mode = kl_cuda_relax(c);
    c->api.MemFreeHost(at);
    kl_cuda_restore(c, mode);
    kl_cuda_leave(c, in);
}

kiln_status kl_cuda_upload(kl_cuda *c, uint64_t to, const void *from, size_t n, void *stream,
                           kl_cudaerr *e)
{
    KL_CUDA_CALL(c, e, MemcpyHtoD, to, from, n, stream);
}

kiln_status kl_cuda_download(kl_cuda *c, void *to, uint64_t from, size_t n, void *stream,
                             kl_cudaerr *e)
{
    KL_CUDA_CALL(c, e, MemcpyDtoH, to, from, n, stream);
}

kiln_status kl_cuda_copy(kl_cuda *c, uint64_t to, uint64_t from, size_t n, void *stream,
                         kl_cudaerr *e)
{
    KL_CUDA_CALL(c, e, MemcpyDtoD, to, from, n, stream);
}

/* The driver fills 1, 2 or 4 bytes at a pitch; 8 bytes are two halves. */
static int fill(kl_cuda *c, uint64_t at, uint64_t n, uint64_t step, uint32_t size, uint64_t bits,
                void *stream)
{
    const struct kl_cuda_api *api = &c->api;
    bool dense = step == size;
    uint64_t low = bits & 0xff, same = low * UINT64_C(0x0101010101010101);
    if (dense && size < 8)
        same &= (UINT64_C(1) << 8 * size) - 1;
    if (dense && bits == same)
        return api->MemsetD8(at, (unsigned char)low, n * size, stream);
    size_t width = dense && size < 8 ? n : 1, height = width == n ? 1 : n;
    switch (size) {
    case 1:
        return api->MemsetD2D8(at, step * width, (unsigned char)bits, width, height, stream);
    case 2:
        return api->MemsetD2D16(at, step * width, (unsigned short)bits, width, height, stream);
    case 4:
        return api->MemsetD2D32(at, step * width, (unsigned)bits, width, height, stream);
    default: {
        int cu = api->MemsetD2D32(at, step, (unsigned)bits, 1, n, stream);
        return cu ? cu : api->MemsetD2D32(at + 4, step, (unsigned)(bits >> 32), 1, n, stream);
    }
    }
}

kiln_status kl_cuda_fill(kl_cuda *c, uint64_t at, uint64_t n, int64_t step, uint32_t size,
                         uint64_t bits, void *stream, kl_cudaerr *e)
{
    *e = (kl_cudaerr){0};
    if (!n)
        return KILN_OK;
    if (step < 0) { /* the same places, from the lowest address on */
        at -= (n - 1) * (uint64_t)-step;
        step = -step;
    }
    if (step == 0 || n == 1) {
        n = 1;
        step = size;
    }
    int in = kl_cuda_enter(c, e);
    if (in < 0)
        return KILN_E_DEVICE;
    kiln_status s = kl_cuda_check(c, fill(c, at, n, (uint64_t)step, size, bits, stream),
                                  "cuMemset", e);
    kl_cuda_leave(c, in);
    return s;
}

kiln_status kl_cuda_memory(kl_cuda *c, uint64_t *left, uint64_t *total, kl_cudaerr *e)
{
    size_t l = 0, t = 0;
    int pushed = kl_cuda_enter(c, e);
    if (pushed < 0)
        return KILN_E_DEVICE;
    kiln_status s = kl_cuda_check(c, c->api.MemGetInfo(&l, &t), "cuMemGetInfo", e);
    kl_cuda_leave(c, pushed);
    *left = l;
    *total = t;
    return s;
}
