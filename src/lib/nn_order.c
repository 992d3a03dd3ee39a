/* nn_order.c - kiln_nn.h: running sums, places of extremes, sorting. */
#include "lib/nn.h"

/* ---- running sums ---- */

kiln_status kiln_nn_cumsum(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *x,
                           int axis, int reverse, kiln_diags **diags)
{
    static const char *const ys[] = {"yo", "ys", "yi"}, *const xs[] = {"xo", "xs", "xi"};
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_cumsum", "scan", diags);
    if (!kl_nn_along(&c, x, &axis))
        return kl_nn_end(&c);
    if (!y)
        kl_nn_fail(&c, "y is not given");
    else if (y->ndim != x->ndim)
        kl_nn_fail(&c, "y has %d axes and x has %d", (int)y->ndim, (int)x->ndim);
    else
        kl_nn_sums(&c, y, x);
    if (!c.st && !reverse && axis == x->ndim - 1 && kl_nn_dense(x) && kl_nn_dense(y)) {
        kl_nn_rows(&c, "y", y);
        kl_nn_rows(&c, "x", x);
        kl_nn_launch(&c, "cumsum_rows");
        return kl_nn_end(&c);
    }
    kl_nn_axis(&c, "y", y, axis, reverse != 0, ys);
    kl_nn_axis(&c, "x", x, axis, reverse != 0, xs);
    kl_nn_launch(&c, "cumsum_axis");
    return kl_nn_end(&c);
}

enum { PREFIX_BLOCK = 1024 }; /* of prefix_totals and prefix_sum */

static size_t prefix_half(int64_t n)
{
    size_t bytes = (size_t)kl_nn_cdiv(n, PREFIX_BLOCK) * 8;
    return (bytes + 255) / 256 * 256;
}

size_t kiln_nn_prefix_sum_workspace(const kiln_nn *nn, const kiln_tensor *x)
{
    if (!nn || !x || (x->ndim && !x->shape))
        return 0;
    return 2 * prefix_half(kl_nn_count(x, 0, x->ndim)); /* room for the widest sums */
}

kiln_status kiln_nn_prefix_sum(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                               const kiln_tensor *x, void *work, size_t work_bytes,
                               kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_prefix_sum", "scan", diags);
    kl_nn_flat(&c, "y", y);
    kl_nn_flat(&c, "x", x);
    if (c.st)
        return kl_nn_end(&c);
    int64_t n = kl_nn_count(x, 0, x->ndim), parts = kl_nn_cdiv(n, PREFIX_BLOCK);
    kiln_dtype t = y->dtype;
    size_t half = prefix_half(n);
    if (!kl_nn_sums(&c, y, x))
        return kl_nn_end(&c);
    if (kl_nn_count(y, 0, y->ndim) != n)
        kl_nn_fail(&c, "y has %lld elements, and x has %lld", (long long)kl_nn_count(y, 0, y->ndim),
                   (long long)n);
    else if (work_bytes < 2 * half || (!work && half))
        kl_nn_fail(&c, "work has %zu bytes, and %zu are needed", work ? work_bytes : 0, 2 * half);
    if (c.st || n == 0)
        return kl_nn_end(&c);
    char *before = (char *)work + half;
    kl_nn_next(&c);
    kl_nn_flat(&c, "x", x);
    kl_nn_work(&c, "total", work, half, t, 1, &parts, x);
    kl_nn_launch(&c, "prefix_totals");
    kl_nn_next(&c);
    kl_nn_work(&c, "total", work, half, t, 1, &parts, x);
    kl_nn_work(&c, "before", before, half, t, 1, &parts, x);
    kl_nn_launch(&c, "prefix_before");
    kl_nn_next(&c);
    kl_nn_flat(&c, "y", y);
    kl_nn_flat(&c, "x", x);
    kl_nn_work(&c, "before", before, half, t, 1, &parts, x);
    kl_nn_launch(&c, "prefix_sum");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_segmented_offsets(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                      const kiln_tensor *x, const kiln_tensor *first,
                                      kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_segmented_offsets", "scan", diags);
    kl_nn_need(&c, "y", "y", y, 1);
    kl_nn_need(&c, "x", "x", x, 1);
    kl_nn_need(&c, "first", "first", first, 1);
    kl_nn_launch(&c, "segmented_offsets");
    return kl_nn_end(&c);
}

/* ---- places of extremes ---- */

/* t, whose elements are x's without the axis, as [outer][inner]. */
static void without(struct nn *c, const char *name, const kiln_tensor *t, const int64_t *shape)
{
    if (c->st || !t)
        return;
    if (t->ndim < 0 || t->ndim > 8 || (t->ndim && !t->shape)) {
        kl_nn_fail(c, "%s has %d axes; 0 to 8 are possible", name, (int)t->ndim);
        return;
    }
    if (!kl_nn_dense(t)) {
        kl_nn_fail(c, "%s must be dense", name);
        return;
    }
    int64_t n = kl_nn_count(t, 0, t->ndim);
    if (n != shape[0] * shape[1]) {
        kl_nn_fail(c, "%s has %lld elements, and the result has %lld", name, (long long)n,
                   (long long)(shape[0] * shape[1]));
        return;
    }
    kiln_tensor v = *t;
    v.ndim = 2;
    v.shape = shape;
    v.strides = NULL;
    kl_nn_need(c, name, name, &v, 2);
}

kiln_status kiln_nn_argmax(kiln_nn *nn, kiln_stream *s, const kiln_tensor *place,
                           const kiln_tensor *v, const kiln_tensor *x, int axis, int least,
                           kiln_diags **diags)
{
    static const char *const xs[] = {"xo", "xs", "xi"};
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_argmax", "argreduce", diags);
    if (!kl_nn_along(&c, x, &axis))
        return kl_nn_end(&c);
    const int64_t shape[2] = {kl_nn_count(x, 0, axis), kl_nn_count(x, axis + 1, x->ndim)};
    if (!place)
        kl_nn_fail(&c, "place is not given");
    without(&c, "place", place, shape);
    without(&c, "v", v, shape);
    kl_nn_axis(&c, "x", x, axis, false, xs);
    kl_nn_int(&c, "LEAST", least != 0);
    kl_nn_launch(&c, "argreduce");
    return kl_nn_end(&c);
}
