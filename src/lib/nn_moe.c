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

/* The pairs, or -1 where the shapes say nothing. */
static int64_t pairs_of(const kiln_tensor *a, const kiln_tensor *order)
{
    const kiln_tensor *t = order ? order : a;
    return t && t->shape && t->ndim == (order ? 1 : 2) ? t->shape[0] : -1;
}

size_t kiln_nn_moe_gemm_workspace(const kiln_nn *nn, const kiln_tensor *a, const kiln_tensor *b,
                                  const kiln_tensor *order, const kiln_tensor *place)
{
    int64_t pairs = pairs_of(a, order);
    if (!nn || !a || !place || !b || b->ndim != 3 || !b->shape || b->shape[2] < 0 || pairs < 0)
        return 0;
    return aligned((size_t)(pairs * b->shape[2]) * kiln_dtype_size(a->dtype));
}

/* Experts a token, of pairs and tokens. */
static int64_t each(struct nn *c, int64_t pairs, int64_t tokens)
{
    int64_t k = tokens ? pairs / tokens : 1;
    if (!c->st && k * tokens != pairs)
        kl_nn_fail(c, "order has %lld elements, no multiple of the %lld tokens", (long long)pairs,
                   (long long)tokens);
    return k;
}

/* What the product reads. */
static void operands(struct nn *c, const kiln_tensor *a, const kiln_tensor *b,
                     const kiln_tensor *first, const kiln_tensor *order)
{
    kl_nn_need(c, "a", "a", a, 2);
    kl_nn_need(c, "b", "b", b, 3);
    kl_nn_need(c, "first", "first", first, 1);
    if (order)
        kl_nn_need(c, "order", "order", order, 1);
}

kiln_status kiln_nn_moe_gemm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c_,
                             const kiln_tensor *a, const kiln_tensor *b, const kiln_tensor *first,
                             const kiln_tensor *order, const kiln_tensor *weight,
                             const kiln_tensor *place, kiln_nn_activation act, void *work,
                             size_t work_bytes, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_moe_gemm", "moe", diags);
    operands(&c, a, b, first, order);
    kl_nn_need(&c, "c", "c", c_, 2);
    kl_nn_tensor(&c, "weight", weight, 2);
    kl_nn_tensor(&c, "place", place, 2);
    if (!c.st && !weight != !place)
        kl_nn_fail(&c, "weight and place go together, and one of them is NULL");
    if (c.st)
        return kl_nn_end(&c);
    int64_t pairs = pairs_of(a, order), k = order ? each(&c, pairs, a->shape[0]) : 1;
    size_t need = kiln_nn_moe_gemm_workspace(nn, a, b, order, place);
    if (place && kl_nn_count(place, 0, 2) != pairs)
        kl_nn_fail(&c, "place has %lld elements, and there are %lld pairs",
                   (long long)kl_nn_count(place, 0, 2), (long long)pairs);
    else if (!place && c_->shape[0] != pairs)
        kl_nn_fail(&c, "c has %lld rows, and there are %lld pairs", (long long)c_->shape[0],
                   (long long)pairs);
    else if (work_bytes < need || (!work && need))
        kl_nn_fail(&c, "work has %zu bytes, and %zu are needed", work ? work_bytes : 0, need);
    const int64_t rows[2] = {pairs, b->shape[2]};
    kl_nn_next(&c);
    operands(&c, a, b, first, order);
    if (place)
        kl_nn_work(&c, "y", work, need, a->dtype, 2, rows, a);
    else
        kl_nn_need(&c, "c", "y", c_, 2);
    kl_nn_int(&c, "K", k);
    kl_nn_gemm_act(&c, act);
    kl_nn_launch(&c, "moe_gemm");
    if (!place)
        return kl_nn_end(&c);
    kl_nn_next(&c);
    kl_nn_need(&c, "c", "y", c_, 2);
    kl_nn_need(&c, "weight", "weight", weight, 2);
    kl_nn_need(&c, "place", "place", place, 2);
    kl_nn_work(&c, "x", work, need, a->dtype, 2, rows, a);
    kl_nn_launch(&c, "moe_merge");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_moe_gemm_add(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c_,
                                 const kiln_tensor *a, const kiln_tensor *b,
                                 const kiln_tensor *first, const kiln_tensor *order,
                                 const kiln_tensor *weight, int grouped, kiln_nn_activation act,
                                 kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_moe_gemm_add", "moe", diags);
    if (!c.st && !order)
        kl_nn_fail(&c, "order is not given");
    operands(&c, a, b, first, order);
    kl_nn_need(&c, "c", "total", c_, 2);
    kl_nn_flat(&c, "weight", weight);
    if (c.st)
        return kl_nn_end(&c);
    int64_t pairs = order->shape[0], tokens = c_->shape[0], rows = grouped ? pairs : tokens;
    int64_t k = each(&c, pairs, tokens);
    if (a->shape[0] != rows)
        kl_nn_fail(&c, "a has %lld rows, and %s are %lld", (long long)a->shape[0],
                   grouped ? "the pairs" : "the tokens", (long long)rows);
    else if (c_->dtype != kl_nn_acc(a->dtype))
        kl_nn_fail(&c, "c is %s, and sums of %s are %s", kiln_dtype_name(c_->dtype),
                   kiln_dtype_name(a->dtype), kiln_dtype_name(kl_nn_acc(a->dtype)));
    kl_nn_int(&c, "K", k);
    kl_nn_int(&c, "GROUPED", grouped != 0);
    kl_nn_gemm_act(&c, act);
    kl_nn_launch(&c, "moe_gemm");
    return kl_nn_end(&c);
}
