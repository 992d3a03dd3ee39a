/* safetensors.c - fuzzing of the .safetensors reader: any bytes, read as a file of their length.
 * Each input is also tried as the header alone, with a right length in front and data behind.
 *
 * What is accepted must lie inside the file, byte for byte once; written again it must be
 * accepted with the same meaning. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "cli/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void again(const struct kl_st *s)
{
    struct kl_st t;
    char msg[700];
    uint64_t bytes = 0;
    size_t n;
    for (size_t i = 0; i < s->n; i++) {
        bytes += s->v[i].end - s->v[i].beg;
        if (!s->v[i].elem || s->v[i].ndim > KL_NPY_DIMS)
            return; /* cannot be written */
    }
    char *head = kl_st_header(s->v, s->n, &n);
    require(n % 8 == 0 && kl_st_parse(head, n, n + bytes, &t, msg, sizeof msg) && t.n == s->n);
    for (size_t i = 0; i < s->n; i++)
        require(strcmp(t.v[i].name, s->v[i].name) == 0 && t.v[i].elem == s->v[i].elem &&
                t.v[i].ndim == s->v[i].ndim && t.v[i].beg == s->v[i].beg &&
                t.v[i].end == s->v[i].end &&
                memcmp(t.v[i].shape, s->v[i].shape, sizeof t.v[i].shape) == 0);
    kl_st_free(&t);
    free(head);
}

static void once(const uint8_t *data, size_t len, uint64_t size)
{
    struct kl_st s;
    char msg[700];
    uint64_t all = 0;
    if (!kl_st_parse(data, len, size, &s, msg, sizeof msg)) {
        require(msg[0] != 0 && memchr(msg, 0, sizeof msg));
        return;
    }
    require(s.offset <= size);
    for (size_t i = 0; i < s.n; i++) {
        const struct kl_st_tensor *t = &s.v[i];
        uint64_t count = 1;
        require(t->name && t->beg <= t->end && t->end <= size - s.offset && t->ndim >= 0);
        for (int32_t d = 0; d < t->ndim && t->ndim <= KL_NPY_DIMS; d++) {
            require(t->shape[d] >= 0);
            count *= (uint64_t)t->shape[d];
        }
        if (t->elem && t->ndim <= KL_NPY_DIMS)
            require(count * kl_elems[t->elem].bytes == t->end - t->beg);
        all += t->end - t->beg;
    }
    require(all == size - s.offset);
    again(&s);
    kl_st_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    once(data, size, size);
    uint8_t *file = malloc(size + 8);
    require(file != NULL);
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)((uint64_t)size >> (8 * i));
    if (size)
        memcpy(file + 8, data, size);
    for (uint64_t extra = 0; extra <= 64; extra = extra ? 2 * extra : 8)
        once(file, size + 8, size + 8 + extra);
    free(file);
    return 0;
}
