/* kiln_dlpack.h - arrays to and from other libraries through DLPack 1.x.  C99 and later, C++.
 *
 * The structures have the layout of DLPack's dlpack.h (github.com/dmlc/dlpack, version 1.1; the
 * C ABI is the standard's) under names of their own, so that both headers may be included: a
 * DLManagedTensorVersioned * may be cast to kiln_dl_managed_v1 * and back.
 *
 *     kiln_tensor t;
 *     kiln_dlpack_view(&m->tensor, &t, NULL, &diags);   // t borrows m's shape and memory
 *     ... launch ...
 *     m->deleter(m);                                 // when the device is done with it
 *
 * A producer in Python hands a capsule "dltensor_versioned" (or the older "dltensor") out of
 * __dlpack__(stream=...); order between its stream and Kiln's is the caller's part, as there. */
#ifndef KILN_DLPACK_H
#define KILN_DLPACK_H

#include "kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KILN_DL_MAJOR = 1, KILN_DL_MINOR = 1 };
enum { KILN_DL_CPU = 1, KILN_DL_CUDA = 2, KILN_DL_CUDA_HOST = 3, KILN_DL_CUDA_MANAGED = 13 };
enum { KILN_DL_READ_ONLY = 1, KILN_DL_IS_COPIED = 2 };

typedef struct kiln_dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits; /* of the element type: kind and width */
    uint16_t lanes;
    int64_t *shape, *strides; /* in elements; strides NULL: dense */
    uint64_t byte_offset;
} kiln_dl_tensor;

/* "dltensor", before 1.0 */
typedef struct kiln_dl_managed {
    kiln_dl_tensor tensor;
    void *manager;
    void (*deleter)(struct kiln_dl_managed *self);
} kiln_dl_managed;

/* "dltensor_versioned" */
typedef struct kiln_dl_managed_v1 {
    uint32_t major, minor; /* another major: call the deleter, read nothing else */
    void *manager;
    void (*deleter)(struct kiln_dl_managed_v1 *self);
    uint64_t flags;
    kiln_dl_tensor tensor;
} kiln_dl_managed_v1;

/* What *out is told of *in; nothing is copied, and shape and strides stay in's.  Memory of CUDA
 * devices gets KILN_TENSOR_DEVICE; *device_id (NULL: not wanted) is the device's number.
 * KILN_E_UNSUPPORTED: an element type, lanes or device that Kiln does not have; KILN_E_ARG: the
 * structure makes no sense.  Thread-safe. */
KILN_API kiln_status kiln_dlpack_view(const kiln_dl_tensor *in, kiln_tensor *out,
                                      int32_t *device_id, kiln_diags **diags);
/* The other way: a structure that says what t says, with a copy of its shape and strides, to be
 * freed by its deleter, which calls release(user) (NULL: nothing) last.  t's memory must live till
 * then.  device_type, device_id: as t's memory has them; flags: KILN_DL_*.  strides are always set
 * where ndim > 0. */
KILN_API kiln_status kiln_dlpack_export(const kiln_tensor *t, int32_t device_type,
                                        int32_t device_id, uint64_t flags,
                                        void (*release)(void *user), void *user,
                                        kiln_dl_managed_v1 **out, kiln_diags **diags);

#ifdef __cplusplus
}
#endif
#endif
