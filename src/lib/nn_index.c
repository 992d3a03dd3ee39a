/* nn_index.c - kiln_nn.h: rows and elements by index, counts, axes in another order. */
#include "lib/nn.h"

/* ---- rows of a table ---- */

/* Numbers of rows of any shape, rows of y (one a number) and of a table. */
static void by_number(struct nn *c, const char *one, const kiln_tensor *y, const char *numbers,
                      const kiln_tensor *idx, const char *table, const kiln_tensor *w)
{
    kl_nn_rows(c, one, y);
    kl_nn_flat(c, numbers, idx);
    kl_nn_need(c, table, table, w, 2);
}

kiln_status kiln_nn_embedding(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                              const kiln_tensor *idx, const kiln_tensor *w, int64_t padding,
                              kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_embedding", "embedding", diags);
    by_number(&c, "y", y, "idx", idx, "w", w);
    kl_nn_int(&c, "padding", padding);
    kl_nn_launch(&c, "embedding");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_embedding_gradient(kiln_nn *nn, kiln_stream *s, const kiln_tensor *dw,
                                       const kiln_tensor *idx, const kiln_tensor *dy,
                                       int64_t padding, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_embedding_gradient", "embedding", diags);
    by_number(&c, "dy", dy, "idx", idx, "dw", dw);
    kl_nn_int(&c, "padding", padding);
    kl_nn_launch(&c, "embedding_gradient");
    return kl_nn_end(&c);
}

/* The functions of index.kiln that take y, p and x, of the given axes. */
static kiln_status index_call(kiln_nn *nn, kiln_stream *s, const char *what, const char *kernel,
                              const kiln_tensor *y, int yrank, const kiln_tensor *p,
                              const kiln_tensor *x, int xrank, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, what, "index", diags);
    kl_nn_need(&c, "y", "y", y, yrank);
    kl_nn_need(&c, "p", "p", p, 1);
    kl_nn_need(&c, "x", "x", x, xrank);
    kl_nn_launch(&c, kernel);
    return kl_nn_end(&c);
}

kiln_status kiln_nn_take(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *p,
                         const kiln_tensor *x, kiln_diags **diags)
{
    return index_call(nn, s, "kiln_nn_take", "take", y, 2, p, x, 2, diags);
}

kiln_status kiln_nn_put(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *p,
                        const kiln_tensor *x, kiln_diags **diags)
{
    return index_call(nn, s, "kiln_nn_put", "put", y, 2, p, x, 2, diags);
}

kiln_status kiln_nn_scatter_add(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                const kiln_tensor *p, const kiln_tensor *x, kiln_diags **diags)
{
    return index_call(nn, s, "kiln_nn_scatter_add", "scatter_add", y, 2, p, x, 2, diags);
}

kiln_status kiln_nn_segment_sum(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                const kiln_tensor *p, const kiln_tensor *x, kiln_diags **diags)
{
    return index_call(nn, s, "kiln_nn_segment_sum", "segment_sum", y, 2, p, x, 2, diags);
}

/* y seen as integers of its width. */
static kiln_tensor bits_of(const kiln_tensor *y, bool sign)
{
    kiln_tensor t = *y;
    t.dtype = y->dtype == KILN_F64 ? (sign ? KILN_I64 : KILN_U64) : sign ? KILN_I32 : KILN_U32;
    return t;
}

kiln_status kiln_nn_scatter_max(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                const kiln_tensor *p, const kiln_tensor *x, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_scatter_max", "index", diags);
    kl_nn_need(&c, "y", "y", y, 1);
    kl_nn_need(&c, "p", "p", p, 1);
    kl_nn_need(&c, "x", "x", x, 1);
    if (!c.st && y->dtype != x->dtype)
        kl_nn_fail(&c, "y is %s and x is %s: both are of one type", kiln_dtype_name(y->dtype),
                   kiln_dtype_name(x->dtype));
    if (c.st || (x->dtype != KILN_F32 && x->dtype != KILN_F64)) {
        kl_nn_launch(&c, "scatter_max");
        return kl_nn_end(&c);
    }
    const kiln_tensor whole = bits_of(y, true), same = bits_of(y, false);
    if (!kl_nn_dense(y))
        kl_nn_fail(&c, "y must be dense");
    kl_nn_next(&c);
    kl_nn_need(&c, "y", "y", y, 1);
    kl_nn_launch(&c, "settle");
    kl_nn_next(&c);
    kl_nn_need(&c, "y", "y", &whole, 1);
    kl_nn_need(&c, "y", "same", &same, 1);
    kl_nn_need(&c, "p", "p", p, 1);
    kl_nn_need(&c, "x", "x", x, 1);
    kl_nn_launch(&c, "scatter_max_floats");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_pick(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *p,
                         const kiln_tensor *x, kiln_diags **diags)
{
    return index_call(nn, s, "kiln_nn_pick", "pick", y, 1, p, x, 2, diags);
}

/* ---- counts ---- */

kiln_status kiln_nn_histogram(kiln_nn *nn, kiln_stream *s, const kiln_tensor *h,
                              const kiln_tensor *x, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_histogram", "histogram", diags);
    kl_nn_need(&c, "h", "h", h, 1);
    kl_nn_line(&c, "x", x, "XS");
    kl_nn_launch(&c, "histogram");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_histogram_floats(kiln_nn *nn, kiln_stream *s, const kiln_tensor *h,
                                     const kiln_tensor *x, double lo, double hi, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_histogram_floats", "histogram", diags);
    kl_nn_need(&c, "h", "h", h, 1);
    kl_nn_line(&c, "x", x, "XS");
    kl_nn_float(&c, "lo", lo);
    kl_nn_float(&c, "hi", hi);
    kl_nn_launch(&c, "histogram_floats");
    return kl_nn_end(&c);
}

/* ---- axes in another order ---- */

struct axis {
    int64_t n, ys, xs;
};

static int64_t size_of(int64_t v)
{
    return v < 0 ? -v : v;
}

/* Axes of 1 dropped, sorted by y's strides, those that follow each other in both arrays made one.
 * Order does not matter to a copy.  Returns how many are left. */
static int simplify(struct axis *a, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (a[i].n == 1)
            continue;
        struct axis t = a[i];
        int at = kept++;
        for (; at > 0 && size_of(a[at - 1].ys) < size_of(t.ys); at--)
            a[at] = a[at - 1];
        a[at] = t;
    }
    int out = 0;
    for (int i = 0; i < kept; i++)
        if (out && a[out - 1].ys == a[i].ys * a[i].n && a[out - 1].xs == a[i].xs * a[i].n)
            a[out - 1] = (struct axis){a[out - 1].n * a[i].n, a[i].ys, a[i].xs};
        else
            a[out++] = a[i];
    return out;
}

/* The axes of a copy, outermost first; 0 < n <= 6.  false: the shapes disagree, which is said. */
static bool match(struct nn *c, const kiln_tensor *y, const kiln_tensor *x, const int *axis,
                  struct axis *a, bool *empty)
{
    unsigned seen = 0;
    for (int d = 0; d < y->ndim; d++) {
        int from = axis ? axis[d] : d;
        if (from < 0 || from >= x->ndim || (seen >> from & 1))
            return kl_nn_fail(c, "axis[%d] is %d, and axis must hold each of 0 to %d once", d, from,
                              (int)x->ndim - 1);
        seen |= 1U << from;
        if (y->shape[d] != x->shape[from])
            return kl_nn_fail(c, "axis %d of y has %lld elements, and axis %d of x has %lld", d,
                              (long long)y->shape[d], from, (long long)x->shape[from]);
        a[d] = (struct axis){y->shape[d], kl_nn_stride(y, d), kl_nn_stride(x, from)};
        *empty |= a[d].n == 0;
    }
    return true;
}

kiln_status kiln_nn_permute(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *x,
                            const int *axis, kiln_diags **diags)
{
    static const char *const yname[] = {"y0", "y1", "y2", "y3", "y4", "y5"}, *const xname[] = {
                                                                                 "x0", "x1", "x2",
                                                                                 "x3", "x4", "x5"};
    struct nn c;
    struct axis a[NN_RANK], b[NN_RANK];
    bool empty = false;
    kl_nn_begin(&c, nn, s, "kiln_nn_permute", "permute", diags);
    if (!c.st && !y)
        kl_nn_fail(&c, "y is not given");
    if (!c.st && !x)
        kl_nn_fail(&c, "x is not given");
    if (!c.st && (y->ndim < 0 || y->ndim > NN_RANK || y->ndim != x->ndim))
        kl_nn_fail(&c, "y has %d axes and x %d; the same number up to %d is needed", (int)y->ndim,
                   (int)x->ndim, NN_RANK);
    if (!c.st) /* they are looked at before they are used */
        kl_nn_need(&c, "y", "y", y, y->ndim);
    if (!c.st)
        kl_nn_need(&c, "x", "x", x, x->ndim);
    if (!c.st && y->dtype != x->dtype)
        kl_nn_fail(&c, "y is %s and x is %s", kiln_dtype_name(y->dtype), kiln_dtype_name(x->dtype));
    if (c.st || !match(&c, y, x, axis, a, &empty) || empty)
        return kl_nn_end(&c);
    kl_nn_next(&c);
    int n = simplify(a, y->ndim), near = n - 1;
    for (int d = 0; d < n; d++)
        if (size_of(a[d].xs) == 1 && size_of(a[near].xs) != 1)
            near = d;
    bool swap = n >= 2 && near != n - 1;
    if (swap) { /* x's neighbours to the last axis but one */
        struct axis t = a[near];
        for (int d = near; d < n - 2; d++)
            a[d] = a[d + 1];
        a[n - 2] = t;
    }
    for (int d = 0; d < NN_RANK; d++)
        b[d] = d < NN_RANK - n ? (struct axis){1, 1, 1} : a[d - (NN_RANK - n)];
    int64_t shape[2][NN_RANK], stride[2][NN_RANK];
    for (int d = 0; d < NN_RANK; d++) {
        int e = swap && d >= 4 ? 9 - d : d; /* x has its last two axes the other way about */
        shape[0][d] = b[d].n, stride[0][d] = b[d].ys;
        shape[1][e] = b[d].n, stride[1][e] = b[d].xs;
        kl_nn_int(&c, yname[d], b[d].ys);
        kl_nn_int(&c, xname[d], b[d].xs);
    }
    for (int i = 0; i < 2; i++) {
        kiln_tensor v = i ? *x : *y;
        v.ndim = NN_RANK;
        v.shape = shape[i];
        v.strides = stride[i];
        kl_nn_need(&c, i ? "x" : "y", i ? "x" : "y", &v, NN_RANK);
    }
    kl_nn_launch(&c, swap ? "permute_swap" : "permute");
    return kl_nn_end(&c);
}
