/* nn_sort.c - kiln_nn.h: rows of any length in order, and their largest elements.
 *
 * A row that fits a tile takes one launch.  Longer ones are sorted tile by tile, then merged by two,
 * from one half of the workspace into the other; the last merge writes where the caller wants it.  The
 * K largest are those of the largest of each tile, until one tile is left; where K is no small part of
 * a tile, the row is sorted downwards and the last merge makes K elements alone. */
#include "lib/nn.h"

enum { TILE = 4096, FEW = TILE / 4 }; /* as kernels/sort.kiln; K of which tiles leave little */

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* One half of the workspace: values, then places. */
struct half {
    size_t values, places;
};

static struct half half_of(int64_t n, kiln_dtype t)
{
    return (struct half){aligned((size_t)n * kiln_dtype_size(t)), aligned((size_t)n * 4)};
}

static size_t total(struct half h)
{
    return h.values + h.places;
}

static bool usable(const kiln_tensor *x)
{
    return x && x->ndim >= 1 && x->ndim <= 8 && x->shape;
}

size_t kiln_nn_sort_workspace(const kiln_nn *nn, const kiln_tensor *x)
{
    if (!nn || !usable(x) || x->shape[x->ndim - 1] <= TILE)
        return 0;
    size_t one = total(half_of(kl_nn_count(x, 0, x->ndim), x->dtype));
    return x->shape[x->ndim - 1] > 2 * TILE ? 2 * one : one;
}

size_t kiln_nn_topk_workspace(const kiln_nn *nn, const kiln_tensor *x, int64_t k)
{
    if (!nn || !usable(x) || k < 1 || x->shape[x->ndim - 1] <= TILE)
        return 0;
    if (k > FEW)
        return kiln_nn_sort_workspace(nn, x);
    int64_t rows = kl_nn_count(x, 0, x->ndim - 1), left = x->shape[x->ndim - 1];
    size_t bytes = 0;
    for (int i = 0; i < 2 && left > TILE; i++) {
        left = kl_nn_cdiv(left, TILE) * k;
        bytes += total(half_of(rows * left, x->dtype));
    }
    return bytes;
}

/* What both functions ask of x and of the workspace. */
static bool rows_of(struct nn *c, const kiln_tensor *x, size_t need, const void *work,
                    size_t work_bytes)
{
    if (c->st)
        return false;
    if (x->dtype == KILN_BOOL)
        return kl_nn_fail(c, "x is bool, and numbers can be put in order");
    if (x->shape[x->ndim - 1] > INT32_MAX)
        return kl_nn_fail(c, "a row has %lld elements, and places are i32: at most %d are possible",
                          (long long)x->shape[x->ndim - 1], INT32_MAX);
    if (work_bytes < need || (!work && need))
        return kl_nn_fail(c, "work has %zu bytes, and %zu are needed", work ? work_bytes : 0, need);
    return true;
}

/* t (or NULL) has the rows and the type of x, so that nothing is launched before it is refused. */
static bool fits(struct nn *c, const kiln_tensor *t, const char *name, const kiln_tensor *x,
                 int64_t cols)
{
    if (c->st || !t)
        return !c->st;
    int64_t rows = kl_nn_count(x, 0, x->ndim - 1), mine = kl_nn_count(t, 0, t->ndim - 1);
    kiln_dtype want = name[0] == 'p' ? KILN_I32 : x->dtype;
    if (t->dtype != want)
        return kl_nn_fail(c, "%s is %s, and must be %s", name, kiln_dtype_name(t->dtype),
                          kiln_dtype_name(want));
    if (mine != rows || t->shape[t->ndim - 1] != cols)
        return kl_nn_fail(c, "%s is [%lld][%lld], and [%lld][%lld] is needed", name,
                          (long long)mine, (long long)t->shape[t->ndim - 1], (long long)rows,
                          (long long)cols);
    return true;
}

/* The arrays of one half, under the names of the kernel's values and places. */
static void array(struct nn *c, const char *v, const char *p, char *at, struct half h,
                  const int64_t *shape, const kiln_tensor *x)
{
    kl_nn_work(c, v, at, h.values, x->dtype, 2, shape, x);
    if (p)
        kl_nn_work(c, p, at + h.values, h.places, KILN_I32, 2, shape, x);
}

static void launch(struct nn *c, const char *kernel, int64_t tile)
{
    kl_nn_int(c, "TILE", tile);
    kl_nn_int(c, "TURN", !kl_nn_gpu(c));
    kl_nn_launch(c, kernel);
}

/* Rows of more than a tile.  y, place: what is wanted of it, or NULL. */
static void merged(struct nn *c, const kiln_tensor *y, const kiln_tensor *place,
                   const kiln_tensor *x, bool down, char *work)
{
    int64_t cols = x->shape[x->ndim - 1];
    const int64_t shape[2] = {kl_nn_count(x, 0, x->ndim - 1), cols};
    const struct half h = half_of(shape[0] * cols, x->dtype);
    char *from = work, *to = work + total(h);
    kl_nn_next(c);
    kl_nn_rows(c, "x", x);
    array(c, "y", place ? "place" : NULL, from, h, shape, x);
    kl_nn_int(c, "DOWN", down);
    launch(c, "sort_tiles", TILE);
    for (int64_t run = TILE; run < cols && !c->st; run *= 2) {
        kl_nn_next(c);
        array(c, "x", place ? "from" : NULL, from, h, shape, x);
        if (run < cols - run) {
            array(c, "y", place ? "place" : NULL, to, h, shape, x);
        } else {
            if (y)
                kl_nn_rows(c, "y", y);
            if (place)
                kl_nn_rows(c, "place", place);
        }
        kl_nn_int(c, "run", run);
        kl_nn_int(c, "DOWN", down);
        launch(c, "sort_merge", TILE);
        char *other = from;
        from = to;
        to = other;
    }
}

kiln_status kiln_nn_sort(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                         const kiln_tensor *place, const kiln_tensor *x, void *work,
                         size_t work_bytes, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_sort", "sort", diags);
    kl_nn_rows(&c, "x", x);
    if (y)
        kl_nn_rows(&c, "y", y);
    if (place)
        kl_nn_rows(&c, "place", place);
    if (!c.st && !y && !place)
        kl_nn_fail(&c, "neither y nor place is given");
    if (!rows_of(&c, x, kiln_nn_sort_workspace(nn, x), work, work_bytes) ||
        !fits(&c, y, "y", x, x->shape[x->ndim - 1]) ||
        !fits(&c, place, "place", x, x->shape[x->ndim - 1]))
        return kl_nn_end(&c);
    if (x->shape[x->ndim - 1] <= TILE)
        launch(&c, "sort_tiles", kl_nn_pow2(x->shape[x->ndim - 1]));
    else
        merged(&c, y, place, x, false, work);
    return kl_nn_end(&c);
}

kiln_status kiln_nn_topk(kiln_nn *nn, kiln_stream *s, const kiln_tensor *v,
                         const kiln_tensor *place, const kiln_tensor *x, void *work,
                         size_t work_bytes, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_topk", "sort", diags);
    kl_nn_rows(&c, "v", v);
    kl_nn_rows(&c, "place", place);
    kl_nn_rows(&c, "x", x);
    if (c.st)
        return kl_nn_end(&c);
    int64_t k = v->shape[v->ndim - 1], cols = x->shape[x->ndim - 1];
    int64_t rows = kl_nn_count(x, 0, x->ndim - 1), left = cols;
    if (k < 1 || k > cols)
        kl_nn_fail(&c, "%lld of %lld elements are asked for: 1 to all of them can be", (long long)k,
                   (long long)cols);
    if (!rows_of(&c, x, kiln_nn_topk_workspace(nn, x, k), work, work_bytes) ||
        !fits(&c, v, "v", x, k) || !fits(&c, place, "place", x, k))
        return kl_nn_end(&c);
    if (cols > TILE && k > FEW) {
        merged(&c, v, place, x, true, work);
        return kl_nn_end(&c);
    }
    char *from = NULL, *to = work, *other = NULL;
    struct half h = {0};
    while (left > TILE && !c.st) {
        const int64_t in[2] = {rows, left}, out[2] = {rows, kl_nn_cdiv(left, TILE) * k};
        const struct half g = half_of(rows * out[1], x->dtype);
        kl_nn_next(&c);
        if (from)
            array(&c, "x", "from", from, h, in, x);
        else
            kl_nn_rows(&c, "x", x);
        array(&c, "v", "place", to, g, out, x);
        kl_nn_int(&c, "K", k);
        launch(&c, "topk_tiles", TILE);
        other = from ? from : to + total(g);
        from = to;
        to = other;
        left = out[1];
        h = g;
    }
    const int64_t in[2] = {rows, left};
    kl_nn_next(&c);
    kl_nn_rows(&c, "v", v);
    kl_nn_rows(&c, "place", place);
    if (from)
        array(&c, "x", "from", from, h, in, x);
    else
        kl_nn_rows(&c, "x", x);
    kl_nn_int(&c, "K", k);
    launch(&c, "topk_tiles", kl_nn_pow2(left));
    return kl_nn_end(&c);
}
