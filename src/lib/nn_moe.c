/* nn_moe.c - kiln_nn.h: mixture of experts. */
#include "lib/nn.h"

kiln_status kiln_nn_moe_route(kiln_nn *nn, kiln_stream *s, const kiln_tensor *weight,
                              const kiln_tensor *expert, const kiln_tensor *logit, int normalise,
                              kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_moe_route", "moe", diags);
    kl_nn_need(&c, "weight", "weight", weight, 2);
    kl_nn_need(&c, "expert", "expert", expert, 2);
    kl_nn_need(&c, "logit", "logit", logit, 2);
    if (c.st)
        return kl_nn_end(&c);
    int64_t k = expert->shape[1], e = logit->shape[1];
    if (k < 1 || k > e || e > 8192)
        kl_nn_fail(&c, "%lld of %lld experts are asked for: 1 to all of at most 8192 are possible",
                   (long long)k, (long long)e);
    kl_nn_int(&c, "K", k);
    kl_nn_int(&c, "NORM", normalise != 0);
    kl_nn_launch(&c, "moe_route");
    return kl_nn_end(&c);
}

/* ---- pairs by expert ---- */

/* The blocks of pairs that are counted by themselves, as moe.kiln cuts them. */
static int64_t blocks(int64_t pairs, int64_t experts)
{
    return kl_nn_cdiv(pairs, kl_nn_max(16, 8192 / kl_nn_pow2(experts)));
}

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static size_t counts(int64_t pairs, int64_t experts)
{
    return aligned((size_t)(blocks(pairs, experts) * experts) * 4);
}

size_t kiln_nn_moe_group_workspace(const kiln_nn *nn, const kiln_tensor *expert, int64_t experts)
{
    if (!nn || !expert || (expert->ndim && !expert->shape) || experts < 1 || experts > 8192)
        return 0;
    return 2 * counts(kl_nn_count(expert, 0, expert->ndim), experts);
}

kiln_status kiln_nn_moe_group(kiln_nn *nn, kiln_stream *s, const kiln_tensor *first,
                              const kiln_tensor *order, const kiln_tensor *place,
                              const kiln_tensor *expert, void *work, size_t work_bytes,
                              kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_moe_group", "moe", diags);
    kl_nn_need(&c, "first", "first", first, 1);
    kl_nn_need(&c, "order", "order", order, 1);
    kl_nn_flat(&c, "place", place);
    kl_nn_flat(&c, "expert", expert);
    if (c.st)
        return kl_nn_end(&c);
    int64_t e = first->shape[0] - 1, n = kl_nn_count(expert, 0, expert->ndim);
    if (e < 1 || e > 8192) {
        kl_nn_fail(&c, "first has %lld elements, and 2 to 8193 are possible", (long long)(e + 1));
        return kl_nn_end(&c);
    }
    size_t half = counts(n, e);
    if (work_bytes < 2 * half || (!work && half)) {
        kl_nn_fail(&c, "work has %zu bytes, and %zu are needed", work ? work_bytes : 0, 2 * half);
        return kl_nn_end(&c);
    }
    const int64_t shape[2] = {blocks(n, e), e};
    char *before = half ? (char *)work + half : NULL;
    kl_nn_next(&c);
    kl_nn_flat(&c, "expert", expert);
    kl_nn_work(&c, "count", work, half, KILN_I32, 2, shape, expert);
    kl_nn_launch(&c, "moe_count");
    kl_nn_next(&c);
    kl_nn_need(&c, "first", "first", first, 1);
    kl_nn_work(&c, "count", work, half, KILN_I32, 2, shape, expert);
    kl_nn_work(&c, "before", before, half, KILN_I32, 2, shape, expert);
    kl_nn_launch(&c, "moe_offsets");
    kl_nn_next(&c);
    kl_nn_need(&c, "order", "order", order, 1);
    kl_nn_flat(&c, "place", place);
    kl_nn_flat(&c, "expert", expert);
    kl_nn_need(&c, "first", "first", first, 1);
    kl_nn_work(&c, "before", before, half, KILN_I32, 2, shape, expert);
    kl_nn_launch(&c, "moe_place");
    return kl_nn_end(&c);
}

/* ---- the experts' products ---- */

/* What is gathered before the product and merged behind it, in bytes. */
struct rooms {
    int64_t pairs;
    size_t in, out;
};

static bool rooms(const kiln_tensor *a, const kiln_tensor *b, const kiln_tensor *order,
                  const kiln_tensor *place, struct rooms *r)
{
    if (!a || !b || a->ndim != 2 || b->ndim != 3 || !a->shape || !b->shape ||
        (order && (order->ndim != 1 || !order->shape)) ||
        (place && (place->ndim != 2 || !place->shape)))
        return false;
    size_t one = kiln_dtype_size(a->dtype);
    r->pairs = order ? order->shape[0] : a->shape[0];
    r->in = order ? aligned((size_t)(r->pairs * a->shape[1]) * one) : 0;
    r->out = place ? aligned((size_t)(r->pairs * b->shape[2]) * one) : 0;
    return r->pairs >= 0 && a->shape[1] >= 0 && b->shape[2] >= 0;
}

size_t kiln_nn_moe_gemm_workspace(const kiln_nn *nn, const kiln_tensor *a, const kiln_tensor *b,
                                  const kiln_tensor *order, const kiln_tensor *place)
{
    struct rooms r;
    return nn && rooms(a, b, order, place, &r) ? r.in + r.out : 0;
}

kiln_status kiln_nn_moe_gemm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c_,
                             const kiln_tensor *a, const kiln_tensor *b, const kiln_tensor *first,
                             const kiln_tensor *order, const kiln_tensor *weight,
                             const kiln_tensor *place, kiln_nn_activation act, void *work,
                             size_t work_bytes, kiln_diags **diags)
{
    struct nn c;
    struct rooms r;
    kl_nn_begin(&c, nn, s, "kiln_nn_moe_gemm", "moe", diags);
    kl_nn_need(&c, "c", "c", c_, 2);
    kl_nn_need(&c, "a", "a", a, 2);
    kl_nn_need(&c, "b", "b", b, 3);
    kl_nn_need(&c, "first", "first", first, 1);
    kl_nn_tensor(&c, "order", order, 1);
    kl_nn_tensor(&c, "weight", weight, 2);
    kl_nn_tensor(&c, "place", place, 2);
    if (!c.st && !weight != !place)
        kl_nn_fail(&c, "weight and place go together, and one of them is NULL");
    if (c.st || !rooms(a, b, order, place, &r))
        return kl_nn_end(&c);
    int64_t k = order && a->shape[0] ? r.pairs / a->shape[0] : 1;
    if (order && k * a->shape[0] != r.pairs)
        kl_nn_fail(&c, "order has %lld elements, no multiple of the %lld rows of a",
                   (long long)r.pairs, (long long)a->shape[0]);
    else if (place && kl_nn_count(place, 0, 2) != r.pairs)
        kl_nn_fail(&c, "place has %lld elements, and there are %lld pairs",
                   (long long)kl_nn_count(place, 0, 2), (long long)r.pairs);
    else if (!place && c_->shape[0] != r.pairs)
        kl_nn_fail(&c, "c has %lld rows, and there are %lld pairs", (long long)c_->shape[0],
                   (long long)r.pairs);
    else if (work_bytes < r.in + r.out || (!work && r.in + r.out))
        kl_nn_fail(&c, "work has %zu bytes, and %zu are needed", work ? work_bytes : 0,
                   r.in + r.out);
    if (c.st)
        return kl_nn_end(&c);
    const int64_t in[2] = {r.pairs, a->shape[1]}, out[2] = {r.pairs, b->shape[2]};
    char *merged = r.out ? (char *)work + r.in : NULL;
    kl_nn_next(&c);
    if (order) {
        kl_nn_work(&c, "y", work, r.in, a->dtype, 2, in, a);
        kl_nn_need(&c, "order", "order", order, 1);
        kl_nn_need(&c, "a", "x", a, 2);
        kl_nn_int(&c, "K", k);
        kl_nn_launch(&c, "moe_gather");
        kl_nn_next(&c);
    }
    kl_nn_file(&c, "gemm");
    if (order)
        kl_nn_work(&c, "a", work, r.in, a->dtype, 2, in, a);
    else
        kl_nn_need(&c, "a", "a", a, 2);
    if (place)
        kl_nn_work(&c, "c", merged, r.out, a->dtype, 2, out, a);
    else
        kl_nn_need(&c, "c", "c", c_, 2);
    kl_nn_need(&c, "b", "b", b, 3);
    kl_nn_need(&c, "first", "first", first, 1);
    kl_nn_gemm_act(&c, act);
    kl_nn_launch(&c, "gemm_grouped");
    if (!place)
        return kl_nn_end(&c);
    kl_nn_next(&c);
    kl_nn_file(&c, "moe");
    kl_nn_need(&c, "c", "y", c_, 2);
    kl_nn_need(&c, "weight", "weight", weight, 2);
    kl_nn_need(&c, "place", "place", place, 2);
    kl_nn_work(&c, "x", merged, r.out, a->dtype, 2, out, a);
    kl_nn_launch(&c, "moe_merge");
    return kl_nn_end(&c);
}
