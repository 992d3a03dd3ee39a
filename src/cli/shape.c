/* shape.c - see shape.h. */
#include "cli/shape.h"

#include <ctype.h>
#include <string.h>

bool kl_shape_is(const char *text)
{
    int32_t ndim;
    int64_t shape[KL_DIMS];
    return isdigit((unsigned char)*text) && kl_shape_parse(text, strcspn(text, ":"), &ndim, shape);
}

static bool wrong(const char *name, const char *text, const char *what, struct kl_msg *m)
{
    return kl_msg(m, KL_RC_USAGE,
                  "%s=%.100s: %s; write %s=512x1000:f32, and behind it :strides=1024x1 or :offset=4 "
                  "if it has them",
                  name, text, what, name);
}

bool kl_shape_word(const char *name, const char *text, struct kl_shape *out, struct kl_msg *m)
{
    static const char strides[] = "strides=", offset[] = "offset=";
    const char *p = text + strcspn(text, ":");
    *out = (struct kl_shape){.text = text};
    kl_shape_parse(text, (size_t)(p - text), &out->ndim, out->shape);
    while (*p == ':') {
        const char *s = p + 1;
        size_t n = strcspn(s, ":");
        p = s + n;
        enum kl_elem e = kl_elem_by_name(s, (uint32_t)n);
        int32_t dims;
        int64_t v[KL_DIMS];
        if (e && !out->elem) {
            out->elem = e;
        } else if (n > sizeof strides - 1 && memcmp(s, strides, sizeof strides - 1) == 0 &&
                   !out->strided) {
            if (!kl_shape_parse(s + sizeof strides - 1, n - (sizeof strides - 1), &dims,
                                out->stride))
                return wrong(name, text, "strides are numbers from 0, as in 1024x1", m);
            if (dims != out->ndim)
                return wrong(name, text, "there is one stride for each dimension", m);
            out->strided = true;
        } else if (n > sizeof offset - 1 && memcmp(s, offset, sizeof offset - 1) == 0) {
            if (!kl_shape_parse(s + sizeof offset - 1, n - (sizeof offset - 1), &dims, v) ||
                dims != 1 || v[0] > 1 << 20)
                return wrong(name, text, "an offset is a number of elements, at most 1048576", m);
            out->offset = v[0];
        } else {
            return wrong(name, text, "what stands behind the shape is not understood", m);
        }
    }
    return true;
}

bool kl_shape_span(const struct kl_shape *s, uint32_t elem_bytes, uint64_t *span)
{
    int64_t last = 0, bytes;
    for (int32_t d = 0; d < s->ndim; d++) {
        int64_t far;
        if (!s->shape[d]) {
            *span = 0;
            return true;
        }
        if (__builtin_mul_overflow(s->shape[d] - 1, s->stride[d], &far) ||
            __builtin_add_overflow(last, far, &last))
            return false;
    }
    *span = (uint64_t)last + 1;
    return last < INT64_MAX && !__builtin_mul_overflow(last + 1, (int64_t)elem_bytes, &bytes);
}
