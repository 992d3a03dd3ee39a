/* nn_rows.c - kiln_nn.h: functions of rows: softmax, losses, reductions, norms. */
#include "lib/nn.h"

/* The longest rows that the CPU holds in a tile: see kl_nn_whole; norms: any. */
enum { WHOLE_SOFTMAX = 65536 };

kiln_status kiln_nn_softmax(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *x,
                            kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_softmax", "softmax", diags);
    kl_nn_rows(&c, "y", y);
    kl_nn_rows(&c, "x", x);
    if (c.st)
        return kl_nn_end(&c);
    const kiln_tensor *a = &c.arg[0].u.tensor, *b = &c.arg[1].u.tensor;
    bool dense = kl_nn_dense(a) && kl_nn_dense(b);
    if (dense && b->shape[1] > kl_nn_whole(&c, b, WHOLE_SOFTMAX))
        kl_nn_launch(&c, "softmax_online");
    else
        kl_nn_launch(&c, dense ? "softmax" : "softmax_strided");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_log_softmax(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                const kiln_tensor *x, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_log_softmax", "loss", diags);
    kl_nn_rows(&c, "y", y);
    kl_nn_rows(&c, "x", x);
    const kiln_tensor *a = &c.arg[1].u.tensor;
    bool blocks = !c.st && a->shape[1] > kl_nn_whole(&c, a, WHOLE_SOFTMAX);
    kl_nn_launch(&c, blocks ? "log_softmax_online" : "log_softmax");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_cross_entropy(kiln_nn *nn, kiln_stream *s, const kiln_tensor *loss,
                                  const kiln_tensor *lse, const kiln_tensor *x,
                                  const kiln_tensor *label, double smoothing, int64_t ignore,
                                  kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_cross_entropy", "loss", diags);
    kl_nn_need(&c, "loss", "loss", loss, 1);
    kl_nn_tensor(&c, "lse", lse, 1);
    kl_nn_rows(&c, "x", x);
    kl_nn_need(&c, "label", "label", label, 1);
    kl_nn_float(&c, "smoothing", smoothing);
    kl_nn_int(&c, "ignore", ignore);
    kl_nn_launch(&c, "cross_entropy");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_cross_entropy_backward(kiln_nn *nn, kiln_stream *s, const kiln_tensor *dx,
                                           const kiln_tensor *x, const kiln_tensor *label,
                                           const kiln_tensor *lse, const kiln_tensor *g,
                                           double smoothing, int64_t ignore, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_cross_entropy_backward", "loss", diags);
    kl_nn_rows(&c, "dx", dx);
    kl_nn_rows(&c, "x", x);
    kl_nn_need(&c, "label", "label", label, 1);
    kl_nn_need(&c, "lse", "lse", lse, 1);
    kl_nn_tensor(&c, "g", g, 1);
    kl_nn_float(&c, "smoothing", smoothing);
    kl_nn_int(&c, "ignore", ignore);
    kl_nn_launch(&c, "cross_entropy_backward");
    return kl_nn_end(&c);
}

/* ---- reductions ---- */

/* x as [outer][n][inner], and over how many programs each result is split. */
struct plan {
    int64_t outer, n, inner, parts;
};

static struct plan plan(const kiln_nn *nn, const kiln_tensor *x, int axis)
{
    struct plan p = {kl_nn_count(x, 0, axis), x->shape[axis], kl_nn_count(x, axis + 1, x->ndim), 1};
    int64_t tiles = p.outer * (p.inner == 1 ? 1 : kl_nn_cdiv(p.inner, 64)), wave = kl_nn_wave(nn);
    int64_t each = p.inner == 1 ? 16384 : 512;
    if (tiles > 0 && tiles < wave && p.n > 2 * each)
        p.parts = kl_nn_min(kl_nn_cdiv(wave, tiles), kl_nn_cdiv(p.n, each));
    return p;
}

static bool good_axis(const kiln_tensor *x, int *axis)
{
    if (!x || x->ndim < 1 || x->ndim > NN_RANK || !x->shape)
        return false;
    if (*axis < 0)
        *axis += x->ndim;
    return *axis >= 0 && *axis < x->ndim;
}

static kiln_dtype reduced(kiln_nn_reduce_op op, kiln_dtype t)
{
    return op == KILN_NN_MAX || op == KILN_NN_MIN ? t : kl_nn_acc(t);
}

size_t kiln_nn_reduce_workspace(const kiln_nn *nn, const kiln_tensor *x, int axis)
{
    if (!nn || !good_axis(x, &axis))
        return 0;
    struct plan p = plan(nn, x, axis);
    return p.parts == 1
               ? 0
               : (size_t)(p.parts * p.outer * p.inner) * kiln_dtype_size(kl_nn_acc(x->dtype));
}

kiln_status kiln_nn_reduce(kiln_nn *nn, kiln_stream *s, kiln_nn_reduce_op op, const kiln_tensor *y,
                           const kiln_tensor *x, int axis, void *work, size_t work_bytes,
                           kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_reduce", "reduce", diags);
    if (!c.st && !x)
        kl_nn_fail(&c, "x is not given");
    if (!c.st && !y)
        kl_nn_fail(&c, "y is not given");
    if (!c.st && !good_axis(x, &axis))
        kl_nn_fail(&c, "x has %d axes, and axis %d is none of them (1 to %d axes are possible)",
                   (int)x->ndim, axis, NN_RANK);
    if (!c.st && (op < KILN_NN_SUM || op > KILN_NN_MIN))
        kl_nn_fail(&c, "%d is no operation", (int)op);
    if (!c.st && !kl_nn_dense(x))
        kl_nn_fail(&c, "x must be dense");
    if (!c.st && !kl_nn_dense(y))
        kl_nn_fail(&c, "y must be dense");
    if (c.st)
        return kl_nn_end(&c);
    struct plan p = plan(nn, x, axis);
    if (y->dtype != reduced(op, x->dtype))
        kl_nn_fail(&c, "y is %s, and %s is needed", kiln_dtype_name(y->dtype),
                   kiln_dtype_name(reduced(op, x->dtype)));
    if (kl_nn_count(y, 0, y->ndim) != p.outer * p.inner)
        kl_nn_fail(&c, "y has %lld elements, and the result has %lld",
                   (long long)kl_nn_count(y, 0, y->ndim), (long long)(p.outer * p.inner));
    const int64_t in3[3] = {p.outer, p.n, p.inner}, whole[3] = {1, p.outer, p.inner},
                  parts[3] = {p.parts, p.outer, p.inner},
                  again[3] = {1, p.parts, p.outer * p.inner}, out3[3] = {1, 1, p.outer * p.inner};
    kiln_tensor v = *x, out = *y;
    v.strides = out.strides = NULL;
    bool rows = p.inner == 1;
    int rank = rows ? 2 : 3;
    v.ndim = out.ndim = rank;
    v.shape = in3;
    out.shape = whole;
    kiln_dtype acc = kl_nn_acc(x->dtype);
    kl_nn_need(&c, "x", "x", &v, rank);
    if (p.parts == 1)
        kl_nn_need(&c, "y", "y", &out, rank);
    else
        kl_nn_work(&c, "y", work, work_bytes, acc, rank, parts, x);
    kl_nn_int(&c, "parts", p.parts);
    kl_nn_type(&c, "U", p.parts == 1 ? out.dtype : acc);
    kl_nn_int(&c, "OP", p.parts > 1 && op == KILN_NN_MEAN ? KILN_NN_SUM : (int64_t)op);
    kl_nn_launch(&c, rows ? "reduce_rows" : "reduce_axis");
    if (p.parts > 1) {
        kl_nn_next(&c);
        kl_nn_work(&c, "x", work, work_bytes, acc, 3, again, x);
        out.ndim = 3;
        out.shape = out3;
        kl_nn_need(&c, "y", "y", &out, 3);
        kl_nn_type(&c, "U", out.dtype);
        kl_nn_int(&c, "divide", p.n);
        kl_nn_int(&c, "OP", (int64_t)op);
        kl_nn_launch(&c, "reduce_axis");
    }
    return kl_nn_end(&c);
}

/* ---- norms ---- */

kiln_status kiln_nn_layernorm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                              const kiln_tensor *mean, const kiln_tensor *rstd,
                              const kiln_tensor *x, const kiln_tensor *gamma,
                              const kiln_tensor *beta, double eps, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_layernorm", "layernorm", diags);
    kl_nn_rows(&c, "y", y);
    kl_nn_rows(&c, "x", x);
    kl_nn_tensor(&c, "gamma", gamma, 1);
    kl_nn_tensor(&c, "beta", beta, 1);
    kl_nn_tensor(&c, "mean", mean, 1);
    kl_nn_tensor(&c, "rstd", rstd, 1);
    kl_nn_float(&c, "eps", eps);
    bool blocks = !c.st && c.arg[1].u.tensor.shape[1] > kl_nn_whole(&c, &c.arg[1].u.tensor, INT64_MAX);
    kl_nn_launch(&c, blocks ? "layernorm_looped" : "layernorm");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_rmsnorm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *x,
                            const kiln_tensor *gamma, double eps, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_rmsnorm", "rmsnorm", diags);
    kl_nn_rows(&c, "y", y);
    kl_nn_rows(&c, "x", x);
    kl_nn_tensor(&c, "gamma", gamma, 1);
    kl_nn_float(&c, "eps", eps);
    bool blocks = !c.st && c.arg[1].u.tensor.shape[1] > kl_nn_whole(&c, &c.arg[1].u.tensor, INT64_MAX);
    kl_nn_launch(&c, blocks ? "rmsnorm_looped" : "rmsnorm");
    return kl_nn_end(&c);
}

static int64_t backward_parts(const kiln_nn *nn, const kiln_tensor *x)
{
    int64_t rows = kl_nn_count(x, 0, x->ndim - 1);
    return kl_nn_max(1, kl_nn_min(kl_nn_cdiv(rows, 4), kl_nn_min(kl_nn_wave(nn), 1024)));
}

size_t kiln_nn_norm_backward_workspace(const kiln_nn *nn, const kiln_tensor *x)
{
    if (!nn || !x || x->ndim < 1 || !x->shape)
        return 0;
    return 2 * (size_t)(backward_parts(nn, x) * x->shape[x->ndim - 1]) *
           kiln_dtype_size(kl_nn_acc(x->dtype));
}

kiln_status kiln_nn_norm_backward(kiln_nn *nn, kiln_stream *s, const kiln_tensor *dx,
                                  const kiln_tensor *dgamma, const kiln_tensor *dbeta,
                                  const kiln_tensor *dy, const kiln_tensor *x,
                                  const kiln_tensor *gamma, const kiln_tensor *mean,
                                  const kiln_tensor *rstd, void *work, size_t work_bytes,
                                  kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_norm_backward", "norm_backward", diags);
    kl_nn_rows(&c, "dx", dx);
    kl_nn_rows(&c, "dy", dy);
    kl_nn_rows(&c, "x", x);
    kl_nn_tensor(&c, "gamma", gamma, 1);
    kl_nn_tensor(&c, "mean", mean, 1);
    kl_nn_need(&c, "rstd", "rstd", rstd, 1);
    if (c.st)
        return kl_nn_end(&c);
    kiln_dtype acc = kl_nn_acc(x->dtype);
    const int64_t shape[2] = {backward_parts(nn, x), x->shape[x->ndim - 1]};
    size_t half = (size_t)(shape[0] * shape[1]) * kiln_dtype_size(acc);
    char *second = work ? (char *)work + half : NULL;
    size_t left = work_bytes > half ? work_bytes - half : 0;
    kl_nn_int(&c, "parts", shape[0]);
    if (dgamma)
        kl_nn_work(&c, "pgamma", work, work_bytes, acc, 2, shape, x);
    if (dbeta)
        kl_nn_work(&c, "pbeta", second, left, acc, 2, shape, x);
    kl_nn_launch(&c, "norm_backward");
    for (int i = 0; i < 2; i++) {
        const kiln_tensor *to = i ? dbeta : dgamma;
        if (!to)
            continue;
        kl_nn_next(&c);
        kl_nn_work(&c, "partial", i ? second : work, i ? left : work_bytes, acc, 2, shape, x);
        kl_nn_need(&c, i ? "dbeta" : "dgamma", "s", to, 1);
        kl_nn_launch(&c, "norm_backward_join");
    }
    return kl_nn_end(&c);
}

kiln_status kiln_nn_groupnorm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                              const kiln_tensor *mean, const kiln_tensor *rstd,
                              const kiln_tensor *x, const kiln_tensor *gamma,
                              const kiln_tensor *beta, int64_t groups, double eps,
                              kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_groupnorm", "groupnorm", diags);
    kl_nn_places(&c, "y", y);
    kl_nn_places(&c, "x", x);
    kl_nn_tensor(&c, "gamma", gamma, 1);
    kl_nn_tensor(&c, "beta", beta, 1);
    kl_nn_tensor(&c, "mean", mean, 2);
    kl_nn_tensor(&c, "rstd", rstd, 2);
    kl_nn_int(&c, "groups", groups);
    kl_nn_float(&c, "eps", eps);
    kl_nn_launch(&c, "groupnorm");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_batchnorm_stats(kiln_nn *nn, kiln_stream *s, const kiln_tensor *mean,
                                    const kiln_tensor *var, const kiln_tensor *running_mean,
                                    const kiln_tensor *running_var, const kiln_tensor *x,
                                    double momentum, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_batchnorm_stats", "groupnorm", diags);
    kl_nn_need(&c, "mean", "mean", mean, 1);
    kl_nn_need(&c, "var", "var", var, 1);
    kl_nn_tensor(&c, "running_mean", running_mean, 1);
    kl_nn_tensor(&c, "running_var", running_var, 1);
    kl_nn_places(&c, "x", x);
    kl_nn_float(&c, "momentum", momentum);
    kl_nn_launch(&c, "batchnorm_stats");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_batchnorm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                              const kiln_tensor *x, const kiln_tensor *mean, const kiln_tensor *var,
                              const kiln_tensor *gamma, const kiln_tensor *beta, double eps,
                              kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_batchnorm", "groupnorm", diags);
    kl_nn_places(&c, "y", y);
    kl_nn_places(&c, "x", x);
    kl_nn_need(&c, "mean", "mean", mean, 1);
    kl_nn_need(&c, "var", "var", var, 1);
    kl_nn_tensor(&c, "gamma", gamma, 1);
    kl_nn_tensor(&c, "beta", beta, 1);
    kl_nn_float(&c, "eps", eps);
    kl_nn_launch(&c, "batchnorm");
    return kl_nn_end(&c);
}
