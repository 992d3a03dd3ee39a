/* dlpack.c - kiln_dlpack.h: element types and devices by table, the rest by copying fields. */
#include "kiln_dlpack.h"

#include <stddef.h>
#include <stdlib.h>

#include "lib/lib.h"

/* Codes of DLPack: kind and bits. */
static const struct {
    uint8_t code, bits;
    kiln_dtype type;
} types[] = {
    {0, 8, KILN_I8},   {0, 16, KILN_I16},    {0, 32, KILN_I32},    {0, 64, KILN_I64},
    {1, 8, KILN_U8},   {1, 16, KILN_U16},    {1, 32, KILN_U32},    {1, 64, KILN_U64},
    {2, 16, KILN_F16}, {2, 32, KILN_F32},    {2, 64, KILN_F64},    {4, 16, KILN_BF16},
    {6, 8, KILN_BOOL}, {10, 8, KILN_F8E4M3}, {12, 8, KILN_F8E5M2},
};
enum { NTYPE = sizeof types / sizeof *types };

/* The layout is the standard's on 64-bit machines. */
_Static_assert(offsetof(kiln_dl_tensor, ndim) == 16 && offsetof(kiln_dl_tensor, shape) == 24 &&
                   offsetof(kiln_dl_tensor, byte_offset) == 40 && sizeof(kiln_dl_tensor) == 48,
               "DLTensor");
_Static_assert(offsetof(kiln_dl_managed, manager) == 48 && sizeof(kiln_dl_managed) == 64,
               "DLManagedTensor");
_Static_assert(offsetof(kiln_dl_managed_v1, flags) == 24 &&
                   offsetof(kiln_dl_managed_v1, tensor) == 32 && sizeof(kiln_dl_managed_v1) == 80,
               "DLManagedTensorVersioned");

static kiln_status fail(kiln_diags **diags, kiln_status st, const char *text)
{
    struct kl_call c;
    if (kl_call_begin(&c, &kl_alloc_libc))
        return KILN_E_NOMEM;
    kl_say(&c, st == KILN_E_UNSUPPORTED ? KL_K1890 : KL_K1809, st, "DLPack: %s", text);
    return kl_call_end(&c, st, diags);
}

kiln_status kiln_dlpack_view(const kiln_dl_tensor *in, kiln_tensor *out, int32_t *device_id,
                             kiln_diags **diags)
{
    if (diags)
        *diags = NULL;
    if (!in || !out)
        return fail(diags, KILN_E_ARG, "no structure");
    if (in->ndim < 0 || in->ndim > 8)
        return fail(diags, KILN_E_UNSUPPORTED, "more than 8 axes");
    if (in->ndim && !in->shape)
        return fail(diags, KILN_E_ARG, "axes without a shape");
    bool cuda = in->device_type == KILN_DL_CUDA || in->device_type == KILN_DL_CUDA_MANAGED;
    if (!cuda && in->device_type != KILN_DL_CPU && in->device_type != KILN_DL_CUDA_HOST)
        return fail(diags, KILN_E_UNSUPPORTED, "memory that is neither the host's nor CUDA's");
    for (int i = 0; i < NTYPE; i++) {
        if (types[i].code != in->code || types[i].bits != in->bits || in->lanes != 1)
            continue;
        *out = (kiln_tensor){.data = in->data ? (char *)in->data + in->byte_offset : NULL,
                             .dtype = types[i].type,
                             .ndim = in->ndim,
                             .shape = in->shape,
                             .strides = in->strides,
                             .flags = cuda ? KILN_TENSOR_DEVICE : 0};
        if (device_id)
            *device_id = in->device_id;
        return KILN_OK;
    }
    return fail(diags, KILN_E_UNSUPPORTED, "an element type that Kiln does not have");
}

/* What export makes: one block. */
struct exported {
    kiln_dl_managed_v1 m;
    void (*release)(void *user);
    void *user;
    int64_t dims[];
};

static void drop(kiln_dl_managed_v1 *m)
{
    struct exported *e = m ? m->manager : NULL;
    if (!e)
        return;
    void (*release)(void *) = e->release;
    void *user = e->user;
    free(e);
    if (release)
        release(user);
}

kiln_status kiln_dlpack_export(const kiln_tensor *t, int32_t device_type, int32_t device_id,
                               uint64_t flags, void (*release)(void *user), void *user,
                               kiln_dl_managed_v1 **out, kiln_diags **diags)
{
    if (diags)
        *diags = NULL;
    if (out)
        *out = NULL;
    if (!t || !out || t->ndim < 0 || t->ndim > 8 || (t->ndim && !t->shape))
        return fail(diags, KILN_E_ARG, "no tensor, or one whose axes make no sense");
    int k = 0;
    while (k < NTYPE && types[k].type != t->dtype)
        k++;
    if (k == NTYPE)
        return fail(diags, KILN_E_ARG, "an unknown element type");
    size_t n = (size_t)t->ndim;
    struct exported *e = calloc(1, sizeof *e + 2 * n * sizeof *e->dims);
    if (!e)
        return KILN_E_NOMEM;
    e->release = release;
    e->user = user;
    e->m = (kiln_dl_managed_v1){.major = KILN_DL_MAJOR,
                                .minor = KILN_DL_MINOR,
                                .manager = e,
                                .deleter = drop,
                                .flags = flags,
                                .tensor = {.data = t->data,
                                           .device_type = device_type,
                                           .device_id = device_id,
                                           .ndim = t->ndim,
                                           .code = types[k].code,
                                           .bits = types[k].bits,
                                           .lanes = 1,
                                           .shape = n ? e->dims : NULL,
                                           .strides = n ? e->dims + n : NULL}};
    int64_t stride = 1;
    for (size_t d = n; d-- > 0;) {
        e->dims[d] = t->shape[d];
        e->dims[n + d] = t->strides ? t->strides[d] : stride;
        stride *= t->shape[d];
    }
    *out = &e->m;
    return KILN_OK;
}
