/* test_order.c - kiln_nn.h: sorting and the largest of rows of any length, against qsort; running
 * folds over several programs, against plain C. */
#include "nn.h"

static kiln_tensor tensor(void *data, kiln_dtype t, int ndim, const int64_t *shape)
{
    return (kiln_tensor){.data = data, .dtype = t, .ndim = ndim, .shape = shape};
}
#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

static uint64_t bits(void)
{
    static uint64_t s = 88172645463325252u;
    s ^= s << 13;
    s ^= s >> 7;
    return s ^= s << 17;
}

/* ---- values of a type, as numbers ---- */

static const kiln_dtype types[] = {KILN_I8,  KILN_U8,  KILN_I16,    KILN_U16,   KILN_F16,
                                   KILN_I32, KILN_U32, KILN_BF16,   KILN_F32,   KILN_I64,
                                   KILN_U64, KILN_F64, KILN_F8E4M3, KILN_F8E5M2};

static float widened(uint32_t b)
{
    float f;
    memcpy(&f, &b, 4);
    return f;
}

/* Sign, exponent of e bits with bias b, m bits behind it. */
static float small_float(unsigned v, int e, int m, int b, bool all_finite)
{
    unsigned s = v >> (e + m), x = v >> m & ((1u << e) - 1), q = v & ((1u << m) - 1);
    float f = x ? ldexpf((float)(q | 1u << m), (int)x - b - m) : ldexpf((float)q, 1 - b - m);
    if (x == (1u << e) - 1 && (all_finite ? q == (1u << m) - 1 : true))
        f = q ? NAN : INFINITY;
    return s ? -f : f;
}

/* Element `at` as a number, exactly. */
static long double element(kiln_dtype t, const void *p, int64_t at)
{
    const char *c = (const char *)p + at * (int64_t)kiln_dtype_size(t);
    uint16_t h = 0;
    memcpy(&h, c, kiln_dtype_size(t) == 1 ? 1 : 2);
#define GET(T) (long double)*(const T *)(const void *)c
    switch (t) {
    case KILN_I8: return GET(int8_t);
    case KILN_U8: return GET(uint8_t);
    case KILN_I16: return GET(int16_t);
    case KILN_U16: return GET(uint16_t);
    case KILN_I32: return GET(int32_t);
    case KILN_U32: return GET(uint32_t);
    case KILN_I64: return GET(int64_t);
    case KILN_U64: return GET(uint64_t);
    case KILN_F32: return GET(float);
    case KILN_F64: return GET(double);
    case KILN_BF16: return (long double)widened((uint32_t)h << 16);
    case KILN_F16: return (long double)small_float(h, 5, 10, 15, false);
    case KILN_F8E4M3: return (long double)small_float(h & 255, 4, 3, 7, true);
    default: return (long double)small_float(h & 255, 5, 2, 15, false);
    }
#undef GET
}

static struct {
    kiln_dtype t;
    const void *x;
    bool down;
} by; /* what compare() looks at */

static int compare(const void *a, const void *b)
{
    int64_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    long double u = element(by.t, by.x, i), v = element(by.t, by.x, j);
    bool un = u != u, vn = v != v;
    if (un || vn)
        return un != vn ? (un ? 1 : -1) : i < j ? -1 : 1;
    int less = u < v || (u == v && signbit(u) > signbit(v));
    int more = u > v || (u == v && signbit(u) < signbit(v));
    if (less || more)
        return (less != 0) == !by.down ? -1 : 1;
    return i < j ? -1 : 1;
}

/* Noise: any bits, numbers many of which are equal, or a run that is sorted already. */
static void fill(kiln_dtype t, void *x, int64_t n, int kind)
{
    size_t size = kiln_dtype_size(t);
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = bits() >> 8;
        if (kind == 1) /* few bits at either end: specials of floats, and what is equal */
            v = (v & 3) << (8 * size - 2) | (v >> 2 & 1);
        if (kind == 2)
            v = (uint64_t)i;
        memcpy((char *)x + i * (int64_t)size, &v, size);
    }
}

/* The same element: the same bits, or two NaN. */
static void same(kiln_dtype t, const void *a, int64_t i, const void *b, int64_t j)
{
    long double u = element(t, a, i), v = element(t, b, j);
    size_t n = kiln_dtype_size(t);
    if ((u == u || v == v) &&
        memcmp((const char *)a + i * (int64_t)n, (const char *)b + j * (int64_t)n, n)) {
        print_error("%s: element %lld is %Lg, and %Lg is right (device %u)\n", kiln_dtype_name(t),
                    (long long)i, u, v, now);
        fail();
    }
}

/* Rows of x in order, and the K largest, both ways of asking. */
static void ordered(kiln_dtype t, int64_t rows, int64_t cols, int64_t k, int kind)
{
    size_t size = kiln_dtype_size(t), n = (size_t)(rows * cols);
    const int64_t full[] = {rows, cols}, few[] = {rows, k};
    char *x = malloc(n * size + 8), *y = malloc(n * size + 8), *v = malloc(n * size + 8);
    int32_t *p = malloc(n * 4 + 4), *q = malloc(n * 4 + 4), *want = malloc(n * 4 + 4);
    kiln_tensor xt = tensor(x, t, 2, full), yt = tensor(y, t, 2, full), vt = tensor(v, t, 2, few),
                pt = tensor(p, KILN_I32, 2, full), qt = tensor(q, KILN_I32, 2, few);
    size_t room = kiln_nn_sort_workspace(NN, &xt), more = kiln_nn_topk_workspace(NN, &xt, k);
    char *work = malloc((room > more ? room : more) + 1);
    fill(t, x, rows * cols, kind);
    memset(y, 85, n * size);
    memset(p, 85, n * 4);
    GOOD(kiln_nn_sort(NN, NULL, &yt, &pt, &xt, work, room, &d));
    for (int down = 0; down < 2; down++) {
        if (down)
            GOOD(kiln_nn_topk(NN, NULL, &vt, &qt, &xt, work, more, &d));
        for (int64_t r = 0; r < rows; r++) {
            by.t = t, by.x = x + (size_t)(r * cols) * size, by.down = down;
            for (int64_t c = 0; c < cols; c++)
                want[c] = (int32_t)c;
            qsort(want, (size_t)cols, 4, compare);
            for (int64_t c = 0; c < (down ? k : cols); c++) {
                int64_t at = r * (down ? k : cols) + c;
                assert_int_equal(down ? q[at] : p[at], want[c]);
                same(t, down ? v : y, at, by.x, want[c]);
            }
        }
    }
    /* values alone, in place */
    memcpy(v, x, n * size);
    vt = tensor(v, t, 2, full);
    GOOD(kiln_nn_sort(NN, NULL, &vt, NULL, &vt, work, room, &d));
    for (int64_t i = 0; i < rows * cols; i++)
        same(t, v, i, y, i);
    free(x), free(y), free(v), free(p), free(q), free(want), free(work);
}

static bool on_cpu(void)
{
    return kiln_context_device(fix.ctx[now]) == KILN_DEVICE_CPU;
}

static bool interpreted(void)
{
    return kiln_context_device(fix.ctx[now]) == KILN_DEVICE_INTERP;
}

static void each_type(void **state)
{
    (void)state;
    EACH_DEVICE
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
        if (on_cpu())
            continue; /* the C compiler takes its time; kernels/sort.kiln has cases of these types */
        ordered(types[i], 3, 67, 9, i % 2);
        if (interpreted() || i % 3 == 1)
            ordered(types[i], 1, 4096 + 33, 5, (i + 1) % 2);
    }
}

static void lengths(void **state)
{
    (void)state;
    static const struct {
        int rows, cols, k;
        bool cpu;
    } sizes[] = {{1, 1, 1, false},        {5, 1, 1, false},       {7, 2, 2, false},
                 {2, 3, 1, false},        {9, 64, 9, false},      {1, 4095, 4095, false},
                 {1, 4096, 1, false},     {3, 4097, 9, true},     {1, 8193, 8193, false},
                 {2, 12289, 1100, false}, {1, 30011, 1024, false}};
    EACH_DEVICE
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (on_cpu() ? sizes[i].cpu : interpreted() || sizes[i].cols < 20000)
            ordered(KILN_F32, sizes[i].rows, sizes[i].cols, sizes[i].k, (int)i % 3);
}

/* A million and three, where qsort would take longer than all the rest. */
static void a_million(void **state)
{
    (void)state;
    enum { N = 1000003, K = 9 };
    EACH_DEVICE
    {
        if (!on_cpu())
            continue;
        float *x = malloc(N * 4), *y = malloc(N * 4), v[K];
        int32_t *p = malloc(N * 4), q[K];
        char *seen = calloc(N, 1);
        kiln_tensor xt = tensor(x, KILN_F32, 1, SHAPE(N)), yt = tensor(y, KILN_F32, 1, SHAPE(N)),
                    pt = tensor(p, KILN_I32, 1, SHAPE(N)), vt = tensor(v, KILN_F32, 1, SHAPE(K)),
                    qt = tensor(q, KILN_I32, 1, SHAPE(K));
        size_t need = kiln_nn_sort_workspace(NN, &xt), more = kiln_nn_topk_workspace(NN, &xt, K);
        char *work = malloc(need > more ? need : more);
        fill(KILN_F32, x, N, 0);
        GOOD(kiln_nn_sort(NN, NULL, &yt, &pt, &xt, work, need, &d));
        GOOD(kiln_nn_topk(NN, NULL, &vt, &qt, &xt, work, more, &d));
        by.t = KILN_F32, by.x = x, by.down = false;
        for (int i = 0; i < N; i++) {
            assert_true(p[i] >= 0 && p[i] < N && !seen[p[i]]);
            seen[p[i]] = 1;
            same(KILN_F32, y, i, x, p[i]);
            assert_true(i == 0 || compare(p + i - 1, p + i) < 0);
        }
        by.down = true; /* K in their order, and K - 1 of all before the last one */
        int before = 0;
        for (int32_t i = 0; i < N; i++)
            before += i != q[K - 1] && compare(&i, q + K - 1) < 0;
        assert_int_equal(before, K - 1);
        for (int i = 0; i < K; i++) {
            same(KILN_F32, v, i, x, q[i]);
            assert_true(i == 0 || compare(q + i - 1, q + i) < 0);
        }
        free(x), free(y), free(p), free(seen), free(work);
    }
}

/* Columns of an array as rows, results backwards and with gaps; a row of a tile and a longer one. */
static void strides(void **state)
{
    (void)state;
    static const int lengths_[] = {61, 4100};
    enum { R = 2, MUCH = 4100 };
    static float x[MUCH * R], y[MUCH * R * 3];
    static int32_t p[MUCH * R], q[R * 3], want[MUCH];
    float v[R * 3];
    EACH_DEVICE
    for (int i = 0; i < 2; i++) {
        if (on_cpu())
            continue;
        int n = lengths_[i];
        kiln_tensor xt = tensor(x, KILN_F32, 2, SHAPE(R, n)),
                    yt = tensor(y, KILN_F32, 2, SHAPE(R, n)),
                    pt = tensor(p, KILN_I32, 2, SHAPE(R, n)),
                    vt = tensor(v, KILN_F32, 2, SHAPE(R, 3)),
                    qt = tensor(q, KILN_I32, 2, SHAPE(R, 3));
        for (int k = 0; k < n * R; k++)
            x[k] = rintf(draw() * 40) + 0.0f;
        xt.strides = SHAPE(1, R);
        yt.strides = SHAPE(3 * n, -3);
        yt.data = y + 3 * (n - 1);
        pt.strides = SHAPE(1, R);
        vt.strides = SHAPE(1, R);
        for (int k = 0; k < n * R * 3; k++)
            y[k] = 1e9f;
        size_t need = kiln_nn_sort_workspace(NN, &xt), more = kiln_nn_topk_workspace(NN, &xt, 3);
        assert_true(need + more <= sizeof fix.work);
        GOOD(kiln_nn_sort(NN, NULL, &yt, &pt, &xt, fix.work, need, &d));
        GOOD(kiln_nn_topk(NN, NULL, &vt, &qt, &xt, fix.work, more, &d));
        for (int r = 0; r < R; r++) {
            by.t = KILN_F32, by.x = fix.work, by.down = false;
            for (int c = 0; c < n; c++)
                fix.work[c] = x[c * R + r], want[c] = c;
            qsort(want, (size_t)n, 4, compare);
            for (int c = 0; c < n; c++) {
                assert_int_equal(p[c * R + r], want[c]);
                assert_true(y[3 * (n - 1) + 3 * n * r - 3 * c] == fix.work[want[c]]);
            }
            by.down = true;
            qsort(want, (size_t)n, 4, compare);
            for (int c = 0; c < 3; c++) {
                assert_int_equal(q[r * 3 + c], want[c]);
                assert_true(v[c * R + r] == fix.work[want[c]]);
            }
        }
        for (int k = 0; k < n * R * 3; k++)
            assert_true(k % 3 == 0 || y[k] == 1e9f);
        if (need)
            BAD("work has", kiln_nn_sort(NN, NULL, &yt, &pt, &xt, fix.work, need - 1, &d));
    }
}

static void order_refused(void **state)
{
    (void)state;
    EACH_DEVICE
    {
        static uint8_t b[9000];
        static int32_t p[9000];
        kiln_tensor x = tensor(b, KILN_U8, 2, SHAPE(2, 4500)),
                    pt = tensor(p, KILN_I32, 2, SHAPE(2, 4500)),
                    k = tensor(b, KILN_U8, 2, SHAPE(2, 5000)),
                    f = tensor(b, KILN_BOOL, 1, SHAPE(9)),
                    none = tensor(b, KILN_U8, 2, SHAPE(0, 4500)),
                    empty = tensor(b, KILN_U8, 2, SHAPE(3, 0)),
                    nop = tensor(p, KILN_I32, 2, SHAPE(0, 4500)),
                    emp = tensor(p, KILN_I32, 2, SHAPE(3, 0));
        size_t need = kiln_nn_sort_workspace(NN, &x);
        assert_true(need >= 9000 * 5 && need <= sizeof fix.work);
        BAD("needed", kiln_nn_sort(NN, NULL, NULL, &pt, &x, NULL, 0, &d));
        BAD("y is i32, and must be u8", kiln_nn_sort(NN, NULL, &pt, &pt, &x, fix.work, need, &d));
        BAD("y is [2][5000]", kiln_nn_sort(NN, NULL, &k, NULL, &x, fix.work, need, &d));
        BAD("x is bool", kiln_nn_sort(NN, NULL, &f, NULL, &f, NULL, 0, &d));
        BAD("5000 of 4500", kiln_nn_topk(NN, NULL, &k, &pt, &x, fix.work, need, &d));
        BAD("place is u8", kiln_nn_topk(NN, NULL, &x, &x, &x, fix.work, need, &d));
        BAD("neither y nor place", kiln_nn_sort(NN, NULL, NULL, NULL, &x, fix.work, need, &d));
        GOOD(kiln_nn_sort(NN, NULL, &none, &nop, &none, fix.work, sizeof fix.work, &d));
        GOOD(kiln_nn_sort(NN, NULL, &empty, &emp, &empty, NULL, 0, &d));
    }
}

/* ---- running folds ---- */

static double fold(kiln_nn_reduce_op op, double a, double b)
{
    switch (op) {
    case KILN_NN_PROD: return a * b;
    case KILN_NN_MAX: return isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
    case KILN_NN_MIN: return isnan(a) || isnan(b) ? (double)NAN : fmin(a, b);
    default: return a + b;
    }
}

/* Axes of a tile and longer, each way, with flags and without. */
static void running(void **state)
{
    (void)state;
    static const kiln_nn_reduce_op ops[] = {KILN_NN_SUM, KILN_NN_PROD, KILN_NN_MAX, KILN_NN_MIN};
    static const struct {
        int a, n, b;
    } shapes[] = {{3, 70, 5}, {1, 4095, 1}, {2, 1, 3}, {2, 61, 1}, {1, 129, 31}};
    static uint8_t head[MOST];
    EACH_DEVICE
    for (unsigned i = 0; i < 5; i++)
        for (unsigned o = 0; o < 4; o++) {
            if (on_cpu() && i * 4 + o != 2 && i * 4 + o != 4 && i * 4 + o != 17)
                continue; /* what differs there compiles again */
            fix.used = 0;
            int n = shapes[i].n, b = shapes[i].b, all = shapes[i].a * n * b;
            bool back = i % 2, flags = (i + o) % 2 == 0;
            struct arr *x = IN(3, shapes[i].a, n, b), *y = OUT(3, shapes[i].a, n, b);
            kiln_tensor h = tensor(head, KILN_BOOL, 3, x->shape);
            for (int k = 0; k < all; k++) {
                head[k] = draw() > 0.99f;
                if (ops[o] == KILN_NN_PROD)
                    x->v[k] = 1 + x->v[k] / 64;
            }
            if (i == 1)
                x->v[all / 3] = NAN;
            size_t need = kiln_nn_running_workspace(NN, &x->t, 1);
            assert_true((need > 0) == (n > (b == 1 ? 2048 : 64)));
            assert_true(need <= sizeof fix.work);
            GOOD(kiln_nn_running(NN, NULL, ops[o], &y->t, &x->t, flags ? &h : NULL, -2, back,
                                 fix.work, need, &d));
            if (need)
                BAD("work has", kiln_nn_running(NN, NULL, ops[o], &y->t, &x->t, NULL, 1, back,
                                                fix.work, need - 1, &d));
            for (int line = 0; line < all / n; line++) {
                int at = line / b * n * b + line % b + (back ? (n - 1) * b : 0);
                double s = 0;
                for (int k = 0; k < n; k++, at += back ? -b : b) {
                    double v = (double)x->v[at];
                    s = k == 0 || (flags && head[at]) ? v : fold(ops[o], s, v);
                    NEAR(y->v[at], s, at);
                }
            }
            guarded(y);
        }
}

/* Integers and narrow floats over several tiles, in place; what is refused. */
static void running_types(void **state)
{
    (void)state;
    enum { N = 5000 };
    EACH_DEVICE
    {
        static uint16_t b[N], c[N];
        static int64_t w[N];
        static uint8_t u[N];
        kiln_tensor bt = tensor(b, KILN_BF16, 1, SHAPE(N)), ct = tensor(c, KILN_BF16, 1, SHAPE(N)),
                    wt = tensor(w, KILN_I64, 1, SHAPE(N)), ut = tensor(u, KILN_U8, 1, SHAPE(N)),
                    short_ = tensor(w, KILN_I64, 1, SHAPE(N - 1)),
                    f = tensor(u, KILN_F8E5M2, 1, SHAPE(N));
        size_t need = kiln_nn_running_workspace(NN, &bt, 0);
        for (int i = 0; i < N; i++) {
            uint32_t v;
            float x = draw() * (float)i;
            memcpy(&v, &x, 4);
            b[i] = (uint16_t)(v >> 16);
            u[i] = (uint8_t)bits();
        }
        GOOD(kiln_nn_cummax(NN, NULL, &ct, &bt, fix.work, need, &d));
        if (!on_cpu())
            GOOD(kiln_nn_running(NN, NULL, KILN_NN_SUM, &wt, &ut, NULL, 0, 1, fix.work, need, &d));
        int64_t t = 0;
        float top = -INFINITY;
        for (int i = 0; i < N; i++) {
            top = fmaxf(top, widened((uint32_t)b[i] << 16));
            assert_true(widened((uint32_t)c[i] << 16) == top);
            assert_true(on_cpu() || w[N - 1 - i] == (t += u[N - 1 - i]));
        }
        if (!on_cpu()) {
            int64_t least = INT64_MAX;
            for (int i = 0; i < N; i++)
                w[i] = (int64_t)(bits() >> 1) - i;
            memcpy(fix.work + 9000, w, sizeof w);
            GOOD(kiln_nn_running(NN, NULL, KILN_NN_MIN, &wt, &wt, NULL, 0, 0, fix.work, need, &d));
            for (int i = 0; i < N; i++) {
                int64_t v;
                memcpy(&v, (char *)(fix.work + 9000) + 8 * i, 8);
                least = v < least ? v : least;
                assert_true(w[i] == least);
            }
        }
        BAD("op is 2", kiln_nn_running(NN, NULL, KILN_NN_MEAN, &wt, &ut, NULL, 0, 0, NULL, 0, &d));
        BAD("y is bf16", kiln_nn_running(NN, NULL, KILN_NN_SUM, &ct, &bt, NULL, 0, 0, NULL, 0, &d));
        BAD("y is i64", kiln_nn_running(NN, NULL, KILN_NN_MAX, &wt, &ut, NULL, 0, 0, NULL, 0, &d));
        BAD("axis 0 of y has 4999",
            kiln_nn_running(NN, NULL, KILN_NN_SUM, &short_, &ut, NULL, 0, 0, NULL, 0, &d));
        BAD("x is f8e5m2", kiln_nn_running(NN, NULL, KILN_NN_MAX, &f, &f, NULL, 0, 0, NULL, 0, &d));
        BAD("head is u8", kiln_nn_running(NN, NULL, KILN_NN_SUM, &wt, &ut, &ut, 0, 0, NULL, 0, &d));
        BAD("head is not", kiln_nn_segmented_flags(NN, NULL, &wt, &ut, NULL, NULL, 0, &d));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type),     cmocka_unit_test(lengths),
        cmocka_unit_test(a_million),     cmocka_unit_test(strides),
        cmocka_unit_test(order_refused), cmocka_unit_test(running),
        cmocka_unit_test(running_types),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
