/* nn_product.c - kiln_nn.h: matrix products, convolution, pooling. */
#include "lib/nn.h"

/* What kernels/gemm.kiln and conv.kiln call their activations. */
static const int8_t gemm_act[] = {
    [KILN_NN_NONE] = 0, [KILN_NN_GELU] = 1,    [KILN_NN_GELU_TANH] = 2, [KILN_NN_RELU] = 3,
    [KILN_NN_SILU] = 4, [KILN_NN_SIGMOID] = 5, [KILN_NN_TANH] = 6};
static const int8_t conv_act[] = {
    [KILN_NN_NONE] = 0, [KILN_NN_GELU] = 3,    [KILN_NN_GELU_TANH] = 4, [KILN_NN_RELU] = 1,
    [KILN_NN_SILU] = 2, [KILN_NN_SIGMOID] = 5, [KILN_NN_TANH] = 6};

static void activation(struct nn *c, const int8_t *of, kiln_nn_activation act)
{
    if ((unsigned)act >= sizeof gemm_act)
        kl_nn_fail(c, "%d is no activation here", (int)act);
    else
        kl_nn_int(c, "ACT", of[act]);
}

static void precision(struct nn *c, kiln_nn_precision p)
{
    if ((unsigned)p > KILN_NN_TF32X3)
        kl_nn_fail(c, "%d is no precision", (int)p);
    else
        kl_nn_int(c, "MODE", p);
}

void kl_nn_gemm_act(struct nn *c, kiln_nn_activation act)
{
    activation(c, gemm_act, act);
}

/* ---- gemm ---- */

/* A matrix, or a batch of them, as [Z][rows][cols], with its strides under the kernel's names. */
static void matrix(struct nn *c, const char *name, const kiln_tensor *t, const char *const axis[3])
{
    if (c->st)
        return;
    if (!t) {
        kl_nn_fail(c, "%s is not given", name);
        return;
    }
    if (t->ndim != 2 && t->ndim != 3) {
        kl_nn_fail(c, "%s has %d axes, and 2 or 3 are needed", name, (int)t->ndim);
        return;
    }
    if (c->ntensor == NN_TENSORS) {
        c->st = KILN_E_INTERNAL;
        return;
    }
    int64_t *shape = c->shape[c->ntensor], *stride = c->stride[c->ntensor];
    c->ntensor++;
    int skip = 3 - t->ndim;
    shape[0] = 1;
    for (int d = 0; d < t->ndim; d++) {
        shape[d + skip] = t->shape[d];
        stride[d + skip] = kl_nn_stride(t, d);
    }
    if (skip)
        stride[0] = shape[1] * shape[2];
    kiln_tensor v = *t;
    v.ndim = 3;
    v.shape = shape;
    v.strides = stride;
    kl_nn_need(c, name, name, &v, 3);
    for (int d = 0; d < 3 && axis; d++)
        kl_nn_int(c, axis[d], stride[d]);
}

kiln_status kiln_nn_gemm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c_, const kiln_tensor *a,
                         const kiln_tensor *b, double alpha, const kiln_tensor *c0, double beta,
                         const kiln_nn_epilogue *e, kiln_diags **diags)
{
    static const char *const cs[] = {"cz", "cm", "cn"}, *const as[] = {"az", "am", "ak"},
                             *const bs[] = {"bz", "bk", "bn"};
    const kiln_nn_epilogue none = {0};
    struct nn c;
    e = e ? e : &none;
    kl_nn_begin(&c, nn, s, "kiln_nn_gemm", "gemm", diags);
    matrix(&c, "c", c_, cs);
    matrix(&c, "a", a, as);
    matrix(&c, "b", b, bs);
    if (c0)
        matrix(&c, "c0", c0, NULL);
    kl_nn_tensor(&c, "bias", e->bias, 1);
    if (e->residual)
        matrix(&c, "residual", e->residual, NULL);
    kl_nn_float(&c, "alpha", alpha);
    kl_nn_float(&c, "beta", beta);
    if (c_)
        kl_nn_type(&c, "U", c_->dtype);
    activation(&c, gemm_act, e->act);
    precision(&c, e->precision);
    kl_nn_launch(&c, "gemm");
    return kl_nn_end(&c);
}

static int64_t split_parts(const kiln_nn *nn, int64_t m, int64_t n, int64_t k)
{
    int64_t tiles = kl_nn_max(1, kl_nn_cdiv(m, 64) * kl_nn_cdiv(n, 64));
    return kl_nn_max(1, kl_nn_min(kl_nn_wave(nn) / tiles, kl_nn_cdiv(k, 128)));
}

static bool matrices(const kiln_tensor *a, const kiln_tensor *b)
{
    return a && b && a->ndim == 2 && b->ndim == 2 && a->shape && b->shape;
}

size_t kiln_nn_gemm_split_workspace(const kiln_nn *nn, const kiln_tensor *a, const kiln_tensor *b)
{
    if (!nn || !matrices(a, b))
        return 0;
    int64_t m = a->shape[0], n = b->shape[1];
    return (size_t)(split_parts(nn, m, n, a->shape[1]) * m * n) *
           kiln_dtype_size(kl_nn_acc(a->dtype));
}

kiln_status kiln_nn_gemm_split(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c_,
                               const kiln_tensor *a, const kiln_tensor *b,
                               const kiln_nn_epilogue *e, void *work, size_t work_bytes,
                               kiln_diags **diags)
{
    const kiln_nn_epilogue none = {0};
    struct nn c;
    e = e ? e : &none;
    kl_nn_begin(&c, nn, s, "kiln_nn_gemm_split", "gemm", diags);
    if (!c.st && !matrices(a, b))
        kl_nn_fail(&c, "a and b must have two axes each");
    if (!c.st && e->residual)
        kl_nn_fail(&c, "a residual is not possible here");
    if (c.st)
        return kl_nn_end(&c);
    int64_t m = a->shape[0], n = b->shape[1], parts = split_parts(nn, m, n, a->shape[1]);
    const int64_t shape[3] = {parts, m, n};
    kl_nn_need(&c, "a", "a", a, 2);
    kl_nn_need(&c, "b", "b", b, 2);
    kl_nn_int(&c, "parts", parts);
    precision(&c, e->precision);
    kl_nn_work(&c, "partial", work, work_bytes, kl_nn_acc(a->dtype), 3, shape, a);
    kl_nn_launch(&c, "gemm_split");
    kl_nn_next(&c);
    kl_nn_work(&c, "partial", work, work_bytes, kl_nn_acc(a->dtype), 3, shape, a);
    kl_nn_need(&c, "c", "c", c_, 2);
    kl_nn_tensor(&c, "bias", e->bias, 1);
    activation(&c, gemm_act, e->act);
    kl_nn_launch(&c, "gemm_join");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_gemm_grouped(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c_,
                                 const kiln_tensor *a, const kiln_tensor *b,
                                 const kiln_tensor *first, kiln_nn_activation act,
                                 kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_gemm_grouped", "gemm", diags);
    kl_nn_need(&c, "c", "c", c_, 2);
    kl_nn_need(&c, "a", "a", a, 2);
    kl_nn_need(&c, "b", "b", b, 3);
    kl_nn_need(&c, "first", "first", first, 1);
    activation(&c, gemm_act, act);
    kl_nn_launch(&c, "gemm_grouped");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_gemm_i8(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c_,
                            const kiln_tensor *a, const kiln_tensor *b, const kiln_tensor *row,
                            const kiln_tensor *col, const kiln_tensor *bias, kiln_nn_activation act,
                            kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_gemm_i8", "gemm_i8", diags);
    kl_nn_need(&c, "c", "c", c_, 2);
    kl_nn_need(&c, "a", "a", a, 2);
    kl_nn_need(&c, "b", "b", b, 2);
    if (c.st)
        return kl_nn_end(&c);
    bool whole = c_->dtype == KILN_I32;
    if (a->dtype != KILN_I8 && a->dtype != KILN_U8)
        kl_nn_fail(&c, "a is %s, and i8 or u8 is needed", kiln_dtype_name(a->dtype));
    if (whole && (row || col || bias || act != KILN_NN_NONE))
        kl_nn_fail(&c, "c is i32: no scales, bias or activation are possible");
    kl_nn_int(&c, "am", kl_nn_stride(a, 0));
    kl_nn_int(&c, "ak", kl_nn_stride(a, 1));
    kl_nn_int(&c, "bk", kl_nn_stride(b, 0));
    kl_nn_int(&c, "bn", kl_nn_stride(b, 1));
    if (!whole) {
        kl_nn_tensor(&c, "row", row, 1);
        kl_nn_tensor(&c, "col", col, 1);
        kl_nn_tensor(&c, "bias", bias, 1);
        activation(&c, gemm_act, act);
    }
    kl_nn_launch(&c, whole ? "gemm_i8" : "gemm_i8_scaled");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_gemm_w4(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c_,
                            const kiln_tensor *a, const kiln_tensor *w, const kiln_tensor *scale,
                            const kiln_nn_epilogue *e, kiln_diags **diags)
{
    const kiln_nn_epilogue none = {0};
    struct nn c;
    e = e ? e : &none;
    kl_nn_begin(&c, nn, s, "kiln_nn_gemm_w4", "gemm", diags);
    kl_nn_need(&c, "c", "c", c_, 2);
    kl_nn_need(&c, "a", "a", a, 2);
    kl_nn_need(&c, "w", "w", w, 2);
    kl_nn_need(&c, "scale", "scale", scale, 2);
    kl_nn_tensor(&c, "bias", e->bias, 1);
    if (!c.st && e->residual)
        kl_nn_fail(&c, "a residual is not possible here");
    if (!c.st && (scale->shape[1] < 1 || a->shape[1] % scale->shape[1]))
        kl_nn_fail(&c, "scale has %lld groups, which do not divide the %lld weights of a row",
                   (long long)scale->shape[1], (long long)a->shape[1]);
    if (!c.st)
        kl_nn_int(&c, "GROUP", a->shape[1] / scale->shape[1]);
    activation(&c, gemm_act, e->act);
    kl_nn_launch(&c, "gemm_w4");
    return kl_nn_end(&c);
}

/* ---- convolution ---- */

static int64_t or_one(int64_t v)
{
    return v ? v : 1;
}

/* y says how many results there are along an axis, so that it is checked here. */
static void conv_extent(struct nn *c, const char *what, int64_t have, int64_t in, int64_t taps,
                        const kiln_nn_conv *p, int d)
{
    int64_t step = or_one(p->stride[d]);
    if (c->st || step < 1)
        return; /* the launch says so */
    int64_t room = in + 2 * p->pad[d] - or_one(p->dilation[d]) * (taps - 1) - 1;
    int64_t want = room < 0 ? 0 : room / step + 1;
    if (have != want)
        kl_nn_fail(c, "%s of y is %lld, and %lld follows from x, w, stride, pad and dilation", what,
                   (long long)have, (long long)want);
}

/* Small tiles for few channels: depthwise has one of each. */
static void conv_common(struct nn *c, const kiln_tensor *x, const kiln_tensor *w,
                        const kiln_nn_conv *p)
{
    int64_t groups = or_one(p->groups);
    kl_nn_int(c, "groups", groups);
    kl_nn_tensor(c, "bias", p->bias, 1);
    activation(c, conv_act, p->act);
    if (c->st || groups < 1 || !x || !w)
        return;
    kl_nn_prefer(c, "BO", kl_nn_min(32, kl_nn_pow2(kl_nn_max(1, w->shape[0] / groups))));
    kl_nn_prefer(c, "BC", kl_nn_min(16, kl_nn_pow2(kl_nn_max(1, w->shape[1]))));
}

kiln_status kiln_nn_conv2d(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *x,
                           const kiln_tensor *w, const kiln_nn_conv *p, kiln_diags **diags)
{
    static const char *const xs[] = {"xn", "xc", "xh", "xw"},
                             *const ys[] = {"yn", "yc", "yh", "yw"},
                             *const ws[] = {"wo", "wc", "wh", "ww"};
    const kiln_nn_conv none = {0};
    struct nn c;
    p = p ? p : &none;
    kl_nn_begin(&c, nn, s, "kiln_nn_conv2d", "conv", diags);
    kl_nn_need(&c, "y", "y", y, 4);
    kl_nn_need(&c, "x", "x", x, 4);
    kl_nn_need(&c, "w", "w", w, 4);
    for (int d = 0; d < 4 && !c.st; d++) {
        kl_nn_int(&c, xs[d], kl_nn_stride(x, d));
        kl_nn_int(&c, ys[d], kl_nn_stride(y, d));
        kl_nn_int(&c, ws[d], kl_nn_stride(w, d));
    }
    kl_nn_int(&c, "SH", or_one(p->stride[0]));
    kl_nn_int(&c, "SW", or_one(p->stride[1]));
    kl_nn_int(&c, "PH", p->pad[0]);
    kl_nn_int(&c, "PW", p->pad[1]);
    kl_nn_int(&c, "DH", or_one(p->dilation[0]));
    kl_nn_int(&c, "DW", or_one(p->dilation[1]));
    conv_common(&c, x, w, p);
    if (!c.st) {
        conv_extent(&c, "OH", y->shape[2], x->shape[2], w->shape[2], p, 0);
        conv_extent(&c, "OW", y->shape[3], x->shape[3], w->shape[3], p, 1);
    }
    kl_nn_launch(&c, "conv2d");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_conv1d(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *x,
                           const kiln_tensor *w, const kiln_nn_conv *p, kiln_diags **diags)
{
    static const char *const xs[] = {"xn", "xc", "xl"}, *const ys[] = {"yn", "yc", "yl"},
                             *const ws[] = {"wo", "wc", "wl"};
    const kiln_nn_conv none = {0};
    struct nn c;
    p = p ? p : &none;
    kl_nn_begin(&c, nn, s, "kiln_nn_conv1d", "conv", diags);
    kl_nn_need(&c, "y", "y", y, 3);
    kl_nn_need(&c, "x", "x", x, 3);
    kl_nn_need(&c, "w", "w", w, 3);
    for (int d = 0; d < 3 && !c.st; d++) {
        kl_nn_int(&c, xs[d], kl_nn_stride(x, d));
        kl_nn_int(&c, ys[d], kl_nn_stride(y, d));
        kl_nn_int(&c, ws[d], kl_nn_stride(w, d));
    }
    kl_nn_int(&c, "S", or_one(p->stride[0]));
    kl_nn_int(&c, "P", p->pad[0]);
    kl_nn_int(&c, "D", or_one(p->dilation[0]));
    conv_common(&c, x, w, p);
    if (!c.st)
        conv_extent(&c, "OL", y->shape[2], x->shape[2], w->shape[2], p, 0);
    kl_nn_launch(&c, "conv1d");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_pool(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *x,
                         const kiln_nn_pool_params *p, kiln_diags **diags)
{
    static const char *const xs[] = {"xn", "xc", "xh"}, *const ys[] = {"yn", "yc", "yh"};
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_pool", "pool", diags);
    if (!c.st && !p)
        kl_nn_fail(&c, "the windows are not given");
    kl_nn_need(&c, "y", "y", y, 4);
    kl_nn_need(&c, "x", "x", x, 4);
    if (c.st)
        return kl_nn_end(&c);
    for (int d = 0; d < 2; d++) {
        int64_t step = p->stride[d] ? p->stride[d] : p->window[d];
        kiln_nn_conv as = {.stride = {step, step},
                           .pad = {p->pad[d], p->pad[d]},
                           .dilation = {p->dilation[d], p->dilation[d]}};
        conv_extent(&c, d ? "OW" : "OH", y->shape[2 + d], x->shape[2 + d], p->window[d], &as, 0);
    }
    for (int d = 0; d < 3; d++) {
        kl_nn_int(&c, xs[d], kl_nn_stride(x, d));
        kl_nn_int(&c, ys[d], kl_nn_stride(y, d));
    }
    kl_nn_int(&c, "XW", x->shape[3] > 1 ? kl_nn_stride(x, 3) : 1);
    kl_nn_int(&c, "YW", y->shape[3] > 1 ? kl_nn_stride(y, 3) : 1);
    kl_nn_int(&c, "DH", or_one(p->dilation[0]));
    kl_nn_int(&c, "DW", or_one(p->dilation[1]));
    kl_nn_int(&c, "KH", p->window[0]);
    kl_nn_int(&c, "KW", p->window[1]);
    kl_nn_int(&c, "SH", p->stride[0] ? p->stride[0] : p->window[0]);
    kl_nn_int(&c, "SW", p->stride[1] ? p->stride[1] : p->window[1]);
    kl_nn_int(&c, "PH", p->pad[0]);
    kl_nn_int(&c, "PW", p->pad[1]);
    kl_nn_int(&c, "MEAN", p->mean != 0);
    kl_nn_int(&c, "INCLUDE", !p->inside_only);
    kl_nn_prefer(&c, "BW", kl_nn_min(128, kl_nn_pow2(kl_nn_max(1, y->shape[3]))));
    kl_nn_launch(&c, "pool");
    return kl_nn_end(&c);
}
