/* block.c - the forward pass of a transformer block through kiln_nn.h, its arrays on the device:
 *
 *     n = rmsnorm(x)              q, k, v = n Wqkv, head by head
 *     q, k turned (RoPE)          o = causal attention, H heads of q for G heads of k and v
 *     h = x + o Wo                y = h + (SwiGLU of rmsnorm(h) Wup) Wdown
 *
 *     cc -o block examples/block.c -Iinclude -Lbuild -lkiln -lm
 *     LD_LIBRARY_PATH=build ./block [cuda | sim | cpu | interp] [TOKENS HIDDEN]
 *
 * A small block is compared with a plain one in double; then one of TOKENS x HIDDEN is timed, with
 * heads of 64, four of them for each of k and v.  Without a GPU it runs on the CPU.
 *
 * Two things to look at: the product for q, k and v is one batched call whose operands' strides
 * pick columns of the weight and give each head a matrix of its own, as attention wants it; and
 * one step is a kernel of this file, launched between those of the library.
 *
 * install-test: interp */
#include <kiln_nn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Heads side by side again, for the product with Wo. */
static const char source[] =
    "kernel join(i64 H, i64 T, i64 D, f32 y[T][H][D], const f32 x[H][T][D],\n"
    "            constexpr i64 B = pow2ceil(D)) grid(T, H)\n"
    "{\n"
    "    i64 t = program_id(0), h = program_id(1);\n"
    "    y[t][h][0:B] = x[h][t][0:B];\n"
    "}\n";

static const double eps = 1e-5;
static kiln_context *ctx;
static kiln_nn *nn;
static kiln_module *module;

/* Print what the library has to say; give up on an error. */
static void done(kiln_status status, kiln_diags *diags)
{
    size_t n = kiln_diags_render(diags, 0, NULL, 0);
    char *text = malloc(n + 1);
    if (text && n) {
        kiln_diags_render(diags, 0, text, n + 1);
        fputs(text, stderr);
    }
    free(text);
    kiln_diags_free(diags);
    if (status) {
        fprintf(stderr, "%s\n", kiln_status_text(status));
        exit(1);
    }
}
#define CHECK(call)                                                                                \
    do {                                                                                           \
        kiln_diags *diags = NULL;                                                                  \
        kiln_status status = (call);                                                               \
        done(status, diags);                                                                       \
    } while (0)

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void *need(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "block: out of memory\n");
        exit(1);
    }
    return p;
}

/* ---- arrays ---- */

/* tokens; hidden; heads of q, of k and v; a head's length; the MLP's width */
struct size {
    int64_t T, C, H, G, D, F;
};

enum { X, G1, WQKV, COS, SIN, WO, G2, WUP, WDOWN, INPUTS, /* then what is computed */
       N1 = INPUTS, QKV, O, J, HID, N2, UP, ACT, Y, ARRAYS };

struct block {
    struct size s;
    float *host[INPUTS];
    int64_t *place;
    kiln_buffer *dev[ARRAYS], *dev_place;
};

/* Elements of array i. */
static int64_t length(const struct size *s, int i)
{
    int64_t w = (s->H + 2 * s->G) * s->D;
    const int64_t n[ARRAYS] = {
        [X] = s->T * s->C,       [G1] = s->C,         [WQKV] = s->C * w,
        [COS] = s->T * s->D / 2, [SIN] = s->T * s->D / 2, [WO] = s->H * s->D * s->C,
        [G2] = s->C,             [WUP] = s->C * 2 * s->F, [WDOWN] = s->F * s->C,
        [N1] = s->T * s->C,      [QKV] = s->T * w,    [O] = s->T * s->H * s->D,
        [J] = s->T * s->H * s->D, [HID] = s->T * s->C, [N2] = s->T * s->C,
        [UP] = s->T * 2 * s->F,  [ACT] = s->T * s->F, [Y] = s->T * s->C};
    return n[i];
}

/* Numbers in -1 .. 1, the same on every machine. */
static float number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 33) / 1073741824.0 - 1);
}

static void make(struct block *b, struct size s)
{
    uint64_t state = 1;
    memset(b, 0, sizeof *b);
    b->s = s;
    for (int i = 0; i < INPUTS; i++) {
        int64_t n = length(&s, i);
        int norm = i == G1 || i == G2;
        /* each output of a product is then of the inputs' size */
        double rows = i == WO ? (double)(s.H * s.D) : i == WDOWN ? (double)s.F : (double)s.C;
        float scale = i == X ? 1 : norm ? 0.25f : (float)sqrt(3 / rows);
        b->host[i] = need((size_t)n * sizeof(float));
        for (int64_t e = 0; e < n; e++)
            b->host[i][e] = number(&state) * scale + (norm ? 1 : 0);
    }
    for (int64_t t = 0; t < s.T; t++)
        for (int64_t d = 0; d < s.D / 2; d++) {
            double angle = (double)t * pow(10000, -2 * (double)d / (double)s.D);
            b->host[COS][t * (s.D / 2) + d] = (float)cos(angle);
            b->host[SIN][t * (s.D / 2) + d] = (float)sin(angle);
        }
    /* q and k are turned in one call, head after head: the places of the tokens repeat */
    int64_t turned = (s.H + s.G) * s.T;
    b->place = need((size_t)turned * sizeof *b->place);
    for (int64_t i = 0; i < turned; i++)
        b->place[i] = i % s.T;
    for (int i = 0; i < ARRAYS; i++) {
        size_t bytes = (size_t)length(&s, i) * sizeof(float);
        CHECK(kiln_buffer_alloc(ctx, bytes, &b->dev[i], &diags));
        if (i < INPUTS)
            CHECK(kiln_buffer_upload(b->dev[i], 0, b->host[i], bytes, NULL, &diags));
    }
    size_t bytes = (size_t)turned * sizeof *b->place;
    CHECK(kiln_buffer_alloc(ctx, bytes, &b->dev_place, &diags));
    CHECK(kiln_buffer_upload(b->dev_place, 0, b->place, bytes, NULL, &diags));
}

static void drop(struct block *b)
{
    for (int i = 0; i < ARRAYS; i++)
        kiln_buffer_free(b->dev[i]);
    for (int i = 0; i < INPUTS; i++)
        free(b->host[i]);
    kiln_buffer_free(b->dev_place);
    free(b->place);
}

/* A tensor of up to four axes with the sizes that it points to. */
struct view {
    int64_t shape[4], strides[4];
    kiln_tensor t;
};

/* Array i from element `at` on, dense; an axis of 0 ends the list. */
static const kiln_tensor *view(const struct block *b, struct view *v, int i, int64_t at, int64_t n0,
                               int64_t n1, int64_t n2, int64_t n3)
{
    const int64_t n[4] = {n0, n1, n2, n3};
    int32_t rank = 0;
    while (rank < 4 && n[rank]) {
        v->shape[rank] = n[rank];
        rank++;
    }
    v->t = (kiln_tensor){.data = (float *)kiln_buffer_data(b->dev[i]) + at,
                         .dtype = KILN_F32,
                         .ndim = rank,
                         .shape = v->shape,
                         .flags = KILN_TENSOR_DEVICE};
    return &v->t;
}

/* The same with strides of three axes. */
static const kiln_tensor *strided(struct view *v, int64_t s0, int64_t s1, int64_t s2)
{
    v->strides[0] = s0;
    v->strides[1] = s1;
    v->strides[2] = s2;
    v->t.strides = v->strides;
    return &v->t;
}

/* ---- the block ---- */

static void forward(const struct block *b, kiln_stream *stream)
{
    const int64_t T = b->s.T, C = b->s.C, H = b->s.H, G = b->s.G, D = b->s.D, F = b->s.F;
    const int64_t Z = H + 2 * G, head = T * D;
    const kiln_nn_attn causal = {.causal = 1};
    struct view y, x, w, r, p;

    CHECK(kiln_nn_rmsnorm(nn, stream, view(b, &y, N1, 0, T, C, 0, 0),
                          view(b, &x, X, 0, T, C, 0, 0), view(b, &w, G1, 0, C, 0, 0, 0), eps,
                          &diags));
    /* Z products: a is the same for all (stride 0), b is columns z D .. of Wqkv */
    view(b, &x, N1, 0, Z, T, C, 0);
    view(b, &w, WQKV, 0, Z, C, D, 0);
    CHECK(kiln_nn_gemm(nn, stream, view(b, &y, QKV, 0, Z, T, D, 0), strided(&x, 0, C, 1),
                       strided(&w, D, Z * D, 1), 1, NULL, 0, NULL, &diags));
    view(b, &p, X, 0, (H + G) * T, 0, 0, 0);
    p.t.data = kiln_buffer_data(b->dev_place);
    p.t.dtype = KILN_I64;
    view(b, &y, QKV, 0, (H + G) * T, 1, D, 0); /* in place */
    CHECK(kiln_nn_rope(nn, stream, &y.t, &y.t, view(b, &x, COS, 0, T, D / 2, 0, 0),
                       view(b, &w, SIN, 0, T, D / 2, 0, 0), &p.t, 0, 0, &diags));
    CHECK(kiln_nn_attention(nn, stream, view(b, &y, O, 0, 1, H, T, D), NULL,
                            view(b, &x, QKV, 0, 1, H, T, D),
                            view(b, &w, QKV, H * head, 1, G, T, D),
                            view(b, &r, QKV, (H + G) * head, 1, G, T, D), &causal, &diags));
    kiln_arg args[2] = {{.name = "y", .kind = KILN_ARG_TENSOR},
                        {.name = "x", .kind = KILN_ARG_TENSOR}};
    args[0].u.tensor = *view(b, &y, J, 0, T, H, D, 0);
    args[1].u.tensor = *view(b, &x, O, 0, H, T, D, 0);
    CHECK(kiln_launch(kiln_module_kernel(module, "join"), stream, args, 2, &diags));

    kiln_nn_epilogue plus = {.residual = view(b, &r, X, 0, T, C, 0, 0)};
    CHECK(kiln_nn_gemm(nn, stream, view(b, &y, HID, 0, T, C, 0, 0),
                       view(b, &x, J, 0, T, H * D, 0, 0), view(b, &w, WO, 0, H * D, C, 0, 0), 1,
                       NULL, 0, &plus, &diags));
    CHECK(kiln_nn_rmsnorm(nn, stream, view(b, &y, N2, 0, T, C, 0, 0),
                          view(b, &x, HID, 0, T, C, 0, 0), view(b, &w, G2, 0, C, 0, 0, 0), eps,
                          &diags));
    CHECK(kiln_nn_gemm(nn, stream, view(b, &y, UP, 0, T, 2 * F, 0, 0),
                       view(b, &x, N2, 0, T, C, 0, 0), view(b, &w, WUP, 0, C, 2 * F, 0, 0), 1, NULL,
                       0, NULL, &diags));
    CHECK(kiln_nn_act_halves(nn, stream, KILN_NN_SILU, view(b, &y, ACT, 0, T, F, 0, 0),
                             view(b, &x, UP, 0, T, 2 * F, 0, 0), &diags));
    plus.residual = view(b, &r, HID, 0, T, C, 0, 0);
    CHECK(kiln_nn_gemm(nn, stream, view(b, &y, Y, 0, T, C, 0, 0),
                       view(b, &x, ACT, 0, T, F, 0, 0), view(b, &w, WDOWN, 0, F, C, 0, 0), 1, NULL,
                       0, &plus, &diags));
}

/* ---- the same in double, as plain as it gets ---- */

static void norm(double *y, const double *x, const float *gain, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t c = 0; c < cols; c++)
            sum += x[r * cols + c] * x[r * cols + c];
        for (int64_t c = 0; c < cols; c++)
            y[r * cols + c] = x[r * cols + c] / sqrt(sum / (double)cols + eps) * (double)gain[c];
    }
}

/* y = x w (+ plus) */
static void product(double *y, const double *x, const float *w, const double *plus, int64_t m,
                    int64_t k, int64_t n)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = plus ? plus[i * n + j] : 0;
            for (int64_t e = 0; e < k; e++)
                sum += x[i * k + e] * (double)w[e * n + j];
            y[i * n + j] = sum;
        }
}

/* The head at v of each token, width columns apart, turned by the token's angles. */
static void turn(const struct block *b, double *v, int64_t width)
{
    int64_t half = b->s.D / 2;
    for (int64_t t = 0; t < b->s.T; t++)
        for (int64_t d = 0; d < half; d++) {
            double c = (double)b->host[COS][t * half + d], s = (double)b->host[SIN][t * half + d];
            double *lo = &v[t * width + d], *hi = lo + half, was = *lo;
            *lo = was * c - *hi * s;
            *hi = *hi * c + was * s;
        }
}

/* One head of causal attention; o, q, k, v are of token 0, their tokens ow and w apart. */
static void attend(double *o, const double *q, const double *k, const double *v, int64_t tokens,
                   int64_t D, int64_t ow, int64_t w)
{
    double *p = need((size_t)tokens * sizeof *p);
    for (int64_t i = 0; i < tokens; i++) {
        double top = -HUGE_VAL, sum = 0;
        for (int64_t j = 0; j <= i; j++) {
            p[j] = 0;
            for (int64_t d = 0; d < D; d++)
                p[j] += q[i * w + d] * k[j * w + d];
            p[j] /= sqrt((double)D);
            top = fmax(top, p[j]);
        }
        for (int64_t j = 0; j <= i; j++)
            sum += p[j] = exp(p[j] - top);
        for (int64_t d = 0; d < D; d++) {
            o[i * ow + d] = 0;
            for (int64_t j = 0; j <= i; j++)
                o[i * ow + d] += p[j] / sum * v[j * w + d];
        }
    }
    free(p);
}

/* The largest difference of the device's result from the reference. */
static double error(const struct block *b)
{
    const struct size *s = &b->s;
    double *a[ARRAYS], *x = need((size_t)length(s, X) * sizeof *x), worst = 0;
    int64_t w = (s->H + 2 * s->G) * s->D, wide = s->H * s->D;
    for (int i = 0; i < ARRAYS; i++)
        a[i] = i < INPUTS ? NULL : need((size_t)length(s, i) * sizeof(double));
    for (int64_t i = 0; i < length(s, X); i++)
        x[i] = (double)b->host[X][i];
    norm(a[N1], x, b->host[G1], s->T, s->C);
    product(a[QKV], a[N1], b->host[WQKV], NULL, s->T, s->C, w);
    for (int64_t h = 0; h < s->H + s->G; h++)
        turn(b, a[QKV] + h * s->D, w);
    for (int64_t h = 0; h < s->H; h++) {
        int64_t g = h / (s->H / s->G);
        attend(a[J] + h * s->D, a[QKV] + h * s->D, a[QKV] + (s->H + g) * s->D,
               a[QKV] + (s->H + s->G + g) * s->D, s->T, s->D, wide, w);
    }
    product(a[HID], a[J], b->host[WO], x, s->T, wide, s->C);
    norm(a[N2], a[HID], b->host[G2], s->T, s->C);
    product(a[UP], a[N2], b->host[WUP], NULL, s->T, s->C, 2 * s->F);
    for (int64_t t = 0; t < s->T; t++)
        for (int64_t f = 0; f < s->F; f++) {
            double u = a[UP][t * 2 * s->F + f];
            a[ACT][t * s->F + f] = u / (1 + exp(-u)) * a[UP][t * 2 * s->F + s->F + f];
        }
    product(a[Y], a[ACT], b->host[WDOWN], a[HID], s->T, s->F, s->C);

    size_t n = (size_t)length(s, Y);
    float *got = need(n * sizeof *got);
    CHECK(kiln_buffer_download(b->dev[Y], 0, got, n * sizeof *got, NULL, &diags));
    for (size_t i = 0; i < n; i++) {
        double e = fabs((double)got[i] - a[Y][i]);
        worst = e <= worst ? worst : e; /* a NaN stays */
    }
    free(got);
    free(x);
    for (int i = INPUTS; i < ARRAYS; i++)
        free(a[i]);
    return worst;
}

/* ---- the program ---- */

static void open_context(const char *want)
{
    static const struct {
        const char *name;
        kiln_device device;
    } devices[] = {{"cuda", KILN_DEVICE_CUDA}, {"sim", KILN_DEVICE_SIM}, {"cpu", KILN_DEVICE_CPU},
                   {"interp", KILN_DEVICE_INTERP}};
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_diags *diags;
    size_t i = 0, n = sizeof devices / sizeof *devices;
    while (want && i < n && strcmp(want, devices[i].name) != 0)
        i++;
    if (want && i == n) {
        fprintf(stderr, "block: %s is not cuda, sim, cpu or interp\n", want);
        exit(2);
    }
    done(kiln_options_from_env(&o), NULL);
    o.device = devices[i].device;
    kiln_status s = kiln_context_create(&o, &ctx, &diags);
    if (s == KILN_E_DEVICE && !want) { /* no GPU here: whatever the host has */
        kiln_diags_free(diags);
        o.device = KILN_DEVICE_AUTO;
        s = kiln_context_create(&o, &ctx, &diags);
    }
    done(s, diags);
}

/* Milliseconds of the best of some passes, the first of which compiles and does not count. */
static double timed(const struct block *b, int passes)
{
    double best = 1e30;
    for (int i = 0; i <= passes; i++) {
        double t = now_ms();
        forward(b, NULL);
        CHECK(kiln_sync(ctx, &diags));
        t = now_ms() - t;
        if (i && t < best)
            best = t;
    }
    return best;
}

int main(int argc, char **argv)
{
    static const char *const where[] = {"", "the interpreter", "the CPU", "", "the PTX executor"};
    const struct size small = {.T = 40, .C = 64, .H = 4, .G = 2, .D = 16, .F = 96};
    struct block b;
    open_context(argc > 1 ? argv[1] : NULL);
    CHECK(kiln_nn_create(ctx, &nn, &diags));
    CHECK(kiln_compile(ctx, "block.c", source, sizeof source - 1, &module, &diags));
    kiln_device d = kiln_context_device(ctx);
    printf("on %s\n", d == KILN_DEVICE_CUDA ? kiln_context_device_info(ctx)->name : where[d]);

    make(&b, small);
    double ms = timed(&b, 1), worst = error(&b);
    printf("%5lld tokens of %5lld: %10.3f ms, largest error %.1e\n", (long long)small.T,
           (long long)small.C, ms, worst);
    drop(&b);
    if (argc > 3) {
        struct size s = {.T = strtoll(argv[2], NULL, 10), .C = strtoll(argv[3], NULL, 10), .D = 64};
        if (s.T < 1 || s.T > 1 << 16 || s.C < 256 || s.C > 1 << 14 || s.C % 256) {
            fprintf(stderr, "block: 1 to 65536 tokens, a multiple of 256 up to 16384 hidden\n");
            return 2;
        }
        s.H = s.C / s.D;
        s.G = s.H / 4;
        s.F = s.C / 256 * 688; /* about 8/3 */
        make(&b, s);
        ms = timed(&b, 3);
        double w = (double)(s.H + 2 * s.G) * (double)s.D;
        double flops = 2.0 * (double)s.T * (double)s.C *
                           (w + (double)s.C + 3 * (double)s.F) +
                       2.0 * (double)s.T * (double)s.T * (double)s.C; /* causal: half of it */
        printf("%5lld tokens of %5lld: %10.3f ms, %.3f TFLOP/s\n", (long long)s.T, (long long)s.C,
               ms, flops / ms * 1e-9);
        drop(&b);
    }
    kiln_module_free(module);
    kiln_nn_free(nn);
    kiln_context_free(ctx);
    return worst < 1e-5 ? 0 : 1;
}
