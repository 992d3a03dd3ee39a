/* shape.h - arrays written by shape alone, for commands that need no elements:
 *
 *     8192x4096:f32    8192x4096    4096:bf16:strides=2    8192x4096:f32:strides=5000x1:offset=4
 *
 * Strides and offset are in elements. */
#ifndef KL_SHAPE_H
#define KL_SHAPE_H

#include "cli/value.h"

struct kl_shape {
    const char *text;
    enum kl_elem elem; /* none: not said */
    int32_t ndim;
    int64_t shape[KL_DIMS], stride[KL_DIMS];
    bool strided;
    int64_t offset;
};
bool kl_shape_is(const char *text); /* whether it is meant as one: it begins as a shape does */
/* name: of the parameter, for messages. */
bool kl_shape_word(const char *name, const char *text, struct kl_shape *out, struct kl_msg *m);
/* Elements from the first to the last; false if their bytes do not fit. */
bool kl_shape_span(const struct kl_shape *s, uint32_t elem_bytes, uint64_t *span);

#endif
