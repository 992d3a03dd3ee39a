/* nn_running.c - kiln_nn.h: running sums, products, maxima and minima, in segments or not.
 *
 * An axis that fits a tile takes one launch; a longer one three, whose tiles are programs: the last
 * value of each tile, these together, the elements. */
#include "lib/nn.h"

bool kl_nn_along(struct nn *c, const kiln_tensor *x, int *axis)
{
    if (c->st)
        return false;
    if (!x)
        return kl_nn_fail(c, "x is not given");
    if (!kl_nn_axis_of(x, axis))
        return kl_nn_fail(c, "x has %d axes, and axis %d is none of them (1 to 8 are possible)",
                          (int)x->ndim, *axis);
    return true;
}

bool kl_nn_sums(struct nn *c, const kiln_tensor *y, const kiln_tensor *x)
{
    if (c->st)
        return false;
    bool whole = x->dtype <= KILN_U64, wide = x->dtype == KILN_F64;
    bool good = whole ? y->dtype == KILN_I32 || y->dtype == KILN_U32 || y->dtype == KILN_I64 ||
                            y->dtype == KILN_U64
                      : y->dtype == KILN_F64 || (y->dtype == KILN_F32 && !wide);
    return good || kl_nn_fail(c, "y is %s, and sums of %s are %s", kiln_dtype_name(y->dtype),
                              kiln_dtype_name(x->dtype),
                              whole  ? "i32, u32, i64 or u64"
                              : wide ? "f64"
                                     : "f32 or f64");
}

/* The axis as kernels/running.kiln cuts it. */
struct cut {
    int64_t outer, n, inner, tile, parts;
};

static struct cut cut_of(const kiln_tensor *x, int axis)
{
    struct cut c = {.outer = kl_nn_count(x, 0, axis),
                    .n = x->shape[axis],
                    .inner = kl_nn_count(x, axis + 1, x->ndim)};
    int64_t most = c.inner == 1 ? 2048 : 64;
    c.tile = kl_nn_min(kl_nn_pow2(c.n), most);
    c.parts = kl_nn_cdiv(c.n, c.tile);
    return c;
}

/* total and upto, then the flags of the tiles. */
struct rooms {
    size_t values, flags;
};

static struct rooms rooms_of(const struct cut *c)
{
    size_t n = (size_t)(c->outer * c->parts * c->inner);
    return c->parts > 1 ? (struct rooms){(n * 8 + 255) / 256 * 256, n} : (struct rooms){0};
}

size_t kiln_nn_running_workspace(const kiln_nn *nn, const kiln_tensor *x, int axis)
{
    if (!nn || !kl_nn_axis_of(x, &axis))
        return 0;
    const struct cut c = cut_of(x, axis);
    const struct rooms r = rooms_of(&c);
    return 2 * r.values + r.flags;
}

/* The type in which x is folded to y. */
static kiln_dtype inside(kiln_nn_reduce_op op, kiln_dtype x, kiln_dtype y)
{
    if (op == KILN_NN_SUM || op == KILN_NN_PROD)
        return y;
    if (x <= KILN_U64) /* i32 holds all values of the smaller ones */
        return x == KILN_U32 || x == KILN_I64 || x == KILN_U64 ? x : KILN_I32;
    return kl_nn_acc(x);
}

/* The numbers of the operations in kernels/running.kiln. */
static int number(struct nn *c, kiln_nn_reduce_op op)
{
    switch (op) {
    case KILN_NN_SUM: return 0;
    case KILN_NN_PROD: return 1;
    case KILN_NN_MAX: return 2;
    case KILN_NN_MIN: return 3;
    case KILN_NN_MEAN: break;
    }
    kl_nn_fail(c, "op is %d, and SUM, PROD, MAX and MIN are possible", (int)op);
    return 0;
}

/* t (y or head) has the shape of x. */
static bool as_x(struct nn *c, const char *name, const kiln_tensor *t, const kiln_tensor *x)
{
    if (c->st)
        return false;
    if (!t)
        return kl_nn_fail(c, "%s is not given", name);
    if (t->ndim != x->ndim || !t->shape)
        return kl_nn_fail(c, "%s has %d axes and x has %d", name, (int)t->ndim, (int)x->ndim);
    for (int d = 0; d < x->ndim; d++)
        if (t->shape[d] != x->shape[d])
            return kl_nn_fail(c, "axis %d of %s has %lld places, and %lld in x", d, name,
                              (long long)t->shape[d], (long long)x->shape[d]);
    return true;
}

static void run(struct nn *c, kiln_nn_reduce_op op, const kiln_tensor *y, const kiln_tensor *x,
                const kiln_tensor *head, int axis, bool back, char *work, size_t work_bytes)
{
    static const char *const ys[] = {"yo", "ys", "yi"}, *const xs[] = {"xo", "xs", "xi"},
                             *const hs[] = {"ho", "hs", "hi"};
    int op_number = number(c, op);
    if (!kl_nn_along(c, x, &axis) || !as_x(c, "y", y, x) || (head && !as_x(c, "head", head, x)))
        return;
    bool add = op == KILN_NN_SUM || op == KILN_NN_PROD;
    if (x->dtype == KILN_BOOL || x->dtype == KILN_F8E4M3 || x->dtype == KILN_F8E5M2)
        kl_nn_fail(c, "x is %s, and integers, f16, bf16, f32 and f64 are possible",
                   kiln_dtype_name(x->dtype));
    else if (add)
        kl_nn_sums(c, y, x);
    else if (y->dtype != x->dtype)
        kl_nn_fail(c, "y is %s and x is %s: of maxima and minima both are of one type",
                   kiln_dtype_name(y->dtype), kiln_dtype_name(x->dtype));
    if (!c->st && head && head->dtype != KILN_BOOL)
        kl_nn_fail(c, "head is %s, and must be bool", kiln_dtype_name(head->dtype));
    if (c->st)
        return;
    const struct cut k = cut_of(x, axis);
    const struct rooms r = rooms_of(&k);
    const kiln_dtype t = inside(op, x->dtype, y->dtype);
    const int64_t shape[3] = {k.outer, k.parts, k.inner};
    size_t need = 2 * r.values + r.flags;
    char *upto = work ? work + r.values : NULL, *flags = work ? upto + r.values : NULL;
    if (work_bytes < need || (!work && need)) {
        kl_nn_fail(c, "work has %zu bytes, and %zu are needed", work ? work_bytes : 0, need);
        return;
    }
    if (k.parts > 1) {
        kl_nn_axis(c, "x", x, axis, back, xs);
        kl_nn_work(c, "total", work, r.values, t, 3, shape, x);
        if (head) {
            kl_nn_axis(c, "head", head, axis, back, hs);
            kl_nn_work(c, "any_", flags, r.flags, KILN_BOOL, 3, shape, x);
        }
        kl_nn_int(c, "OP", op_number);
        kl_nn_int(c, "BN", k.tile);
        kl_nn_launch(c, "run_totals");
        kl_nn_next(c);
        kl_nn_work(c, "total", work, r.values, t, 3, shape, x);
        kl_nn_work(c, "upto", upto, r.values, t, 3, shape, x);
        if (head)
            kl_nn_work(c, "any_", flags, r.flags, KILN_BOOL, 3, shape, x);
        kl_nn_int(c, "OP", op_number);
        kl_nn_launch(c, "run_before");
        kl_nn_next(c);
        kl_nn_work(c, "upto", upto, r.values, t, 3, shape, x);
    }
    kl_nn_axis(c, "y", y, axis, back, ys);
    kl_nn_axis(c, "x", x, axis, back, xs);
    if (head)
        kl_nn_axis(c, "head", head, axis, back, hs);
    kl_nn_type(c, "A", t);
    kl_nn_int(c, "OP", op_number);
    kl_nn_int(c, "BN", k.tile);
    kl_nn_launch(c, "run_along");
}

kiln_status kiln_nn_running(kiln_nn *nn, kiln_stream *s, kiln_nn_reduce_op op, const kiln_tensor *y,
                            const kiln_tensor *x, const kiln_tensor *head, int axis, int reverse,
                            void *work, size_t work_bytes, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_running", "running", diags);
    run(&c, op, y, x, head, axis, reverse != 0, work, work_bytes);
    return kl_nn_end(&c);
}

kiln_status kiln_nn_segmented_flags(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                    const kiln_tensor *x, const kiln_tensor *head, void *work,
                                    size_t work_bytes, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_segmented_flags", "running", diags);
    if (!head)
        kl_nn_fail(&c, "head is not given");
    run(&c, KILN_NN_SUM, y, x, head, -1, false, work, work_bytes);
    return kl_nn_end(&c);
}

kiln_status kiln_nn_cummax(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *x,
                           void *work, size_t work_bytes, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_cummax", "running", diags);
    run(&c, KILN_NN_MAX, y, x, NULL, -1, false, work, work_bytes);
    return kl_nn_end(&c);
}
