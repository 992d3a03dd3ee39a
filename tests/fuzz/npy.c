/* npy.c - fuzzing of the .npy reader: any bytes, read as a file of their length.
 *
 * What is accepted must lie inside the file: every corner of the array is computed from shape and
 * strides and compared with the data's range; then what would be written for that shape must be
 * accepted again with the same meaning. */
#define _GNU_SOURCE
#include "cli/npy.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kl_npy n, again;
    char msg[200], head[KL_NPY_HEADER];
    if (!kl_npy_parse(data, size, size, &n, msg, sizeof msg)) {
        require(msg[0] != 0 && memchr(msg, 0, sizeof msg));
        return 0;
    }
    uint64_t last = 0, count = 1;
    require(n.ndim >= 0 && n.ndim <= KL_NPY_DIMS && n.offset <= size);
    require(n.size == size - n.offset);
    for (int32_t d = 0; d < n.ndim; d++) {
        require(n.shape[d] >= 0 && n.stride[d] >= 1);
        count *= (uint64_t)n.shape[d];
        last += n.shape[d] ? (uint64_t)(n.shape[d] - 1) * (uint64_t)n.stride[d] : 0;
    }
    require(count * n.bytes == n.size && (!count || (last + 1) * n.bytes <= n.size));
    enum kl_elem e = n.elem ? n.elem : KL_bf16;
    size_t len = kl_npy_header(e, n.ndim, n.shape, head);
    require(len <= sizeof head);
    require(kl_npy_parse(head, len, len + n.size, &again, msg, sizeof msg));
    require(again.ndim == n.ndim && again.bytes == n.bytes && again.size == n.size);
    for (int32_t d = 0; d < n.ndim; d++)
        require(again.shape[d] == n.shape[d]);
    return 0;
}
