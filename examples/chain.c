/* chain.c - several kernels one after the other: GELU, softmax of each row, sum of each row.
 *
 * Three ways to the same result:
 *   host      each launch takes and gives host arrays; on a GPU they travel each time
 *   device    the input goes to the device once, what lies between the kernels stays there
 *   overlap   as device, in pieces on two streams: while one piece is computed, the next one
 *             arrives and the one before leaves; the host's memory is pinned
 *
 *     cc -o chain examples/chain.c -Iinclude -Lbuild -lkiln
 *     LD_LIBRARY_PATH=build ./chain [cuda | sim | cpu | interp] [ROWS COLS]
 *
 * Without a GPU it runs on the CPU, where the ways differ little.
 *
 * install-test: interp 40 300 */
#include <kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char source[] =
    "#include <act.kiln>\n"
    "kernel act(i64 n, f32 y[n], const f32 x[n], constexpr i64 BLOCK = 1024) grid(cdiv(n, BLOCK))\n"
    "{\n"
    "    i64 i = program_id(0) * BLOCK;\n"
    "    y[i:BLOCK] = gelu(x[i:BLOCK]);\n"
    "}\n"
    "kernel soft(i64 rows, i64 cols, f32 y[rows][cols], const f32 x[rows][cols],\n"
    "            constexpr i64 BLOCK = pow2ceil(cols)) grid(rows)\n"
    "{\n"
    "    i64 r = program_id(0);\n"
    "    auto v = load(x[r][0:BLOCK], -inf);\n"
    "    auto e = exp(v - max(v));\n"
    "    y[r][0:BLOCK] = e / sum(e);\n"
    "}\n"
    "kernel total(i64 rows, i64 cols, f32 s[rows], const f32 x[rows][cols],\n"
    "             constexpr i64 BLOCK = pow2ceil(cols)) grid(rows)\n"
    "{\n"
    "    i64 r = program_id(0);\n"
    "    s[r] = sum(x[r][0:BLOCK]);\n"
    "}\n";

enum { PIECES = 8, STREAMS = 2 };

static kiln_context *ctx;
static kiln_module *module;
static int64_t rows = 4096, cols = 2048;

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

/* Launch `name` with an output and an input of n rows. */
static void launch(const char *name, kiln_stream *stream, void *out, void *in, int64_t n,
                   uint32_t flags)
{
    const int64_t matrix[2] = {n, cols}, line[1] = {n * cols}, each[1] = {n};
    int act = strcmp(name, "act") == 0, total = strcmp(name, "total") == 0;
    kiln_arg args[2] = {{.name = total ? "s" : "y", .kind = KILN_ARG_TENSOR},
                        {.name = "x", .kind = KILN_ARG_TENSOR}};
    kiln_tensor t = {.data = in, .dtype = KILN_F32, .ndim = 2, .shape = matrix, .flags = flags};
    if (act) {
        t.ndim = 1;
        t.shape = line;
    }
    args[1].u.tensor = t;
    t.data = out;
    if (total) {
        t.ndim = 1;
        t.shape = each;
    }
    args[0].u.tensor = t;
    CHECK(kiln_launch(kiln_module_kernel(module, name), stream, args, 2, &diags));
}

static void chain(kiln_stream *stream, float *sums, float *between[2], float *in, int64_t n,
                  uint32_t flags)
{
    launch("act", stream, between[0], in, n, flags);
    launch("soft", stream, between[1], between[0], n, flags);
    launch("total", stream, sums, between[1], n, flags);
}

static kiln_buffer *buffer(int64_t elements)
{
    kiln_buffer *b;
    CHECK(kiln_buffer_alloc(ctx, (size_t)elements * sizeof(float), &b, &diags));
    return b;
}

/* ---- the three ways; the milliseconds of each ---- */

static double by_host(float *sums, float *in, float *tmp[2])
{
    double t = now_ms();
    chain(NULL, sums, tmp, in, rows, 0);
    return now_ms() - t;
}

static double by_device(float *sums, const float *in, kiln_buffer *b[4])
{
    size_t row = (size_t)cols * sizeof(float), n = (size_t)rows;
    float *between[2] = {kiln_buffer_data(b[1]), kiln_buffer_data(b[2])};
    double t = now_ms();
    CHECK(kiln_buffer_upload(b[0], 0, in, n * row, NULL, &diags));
    chain(NULL, kiln_buffer_data(b[3]), between, kiln_buffer_data(b[0]), rows, KILN_TENSOR_DEVICE);
    CHECK(kiln_buffer_download(b[2], 0, sums + rows, n * row, NULL, &diags));
    CHECK(kiln_buffer_download(b[3], 0, sums, n * sizeof(float), NULL, &diags));
    return now_ms() - t;
}

/* Piece p works on rows of its own in every buffer, so that streams do not meet. */
static double by_overlap(float *sums, const float *in, kiln_buffer *b[4], kiln_stream *s[STREAMS],
                         kiln_event *ev[2], double *device_ms)
{
    size_t row = (size_t)cols * sizeof(float);
    double t = now_ms();
    CHECK(kiln_event_record(ev[0], NULL, &diags));
    for (int64_t p = 0; p < PIECES; p++) {
        int64_t r0 = rows * p / PIECES, n = rows * (p + 1) / PIECES - r0;
        size_t at = (size_t)r0 * row, bytes = (size_t)n * row;
        kiln_stream *st = s[p % STREAMS];
        float *base[4];
        if (!n)
            continue;
        for (int i = 0; i < 4; i++)
            base[i] = (float *)kiln_buffer_data(b[i]) + (i == 3 ? r0 : r0 * cols);
        CHECK(kiln_buffer_upload(b[0], at, in + r0 * cols, bytes, st, &diags));
        chain(st, base[3], base + 1, base[0], n, KILN_TENSOR_DEVICE);
        CHECK(kiln_buffer_download(b[2], at, sums + rows + r0 * cols, bytes, st, &diags));
        CHECK(kiln_buffer_download(b[3], (size_t)r0 * sizeof(float), sums + r0,
                                   (size_t)n * sizeof(float), st, &diags));
    }
    CHECK(kiln_event_record(ev[1], NULL, &diags)); /* the default stream waits for both */
    CHECK(kiln_event_sync(ev[1], &diags));
    t = now_ms() - t;
    CHECK(kiln_event_elapsed(ev[0], ev[1], device_ms, &diags));
    return t;
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
    done(kiln_options_from_env(&o), NULL);
    o.device = KILN_DEVICE_CUDA;
    for (size_t i = 0; want && i < sizeof devices / sizeof *devices; i++)
        if (strcmp(want, devices[i].name) == 0)
            o.device = devices[i].device;
    kiln_status s = kiln_context_create(&o, &ctx, &diags);
    if (s == KILN_E_DEVICE && !want) { /* no GPU here: whatever the host has */
        kiln_diags_free(diags);
        o.device = KILN_DEVICE_AUTO;
        s = kiln_context_create(&o, &ctx, &diags);
    }
    done(s, diags);
}

int main(int argc, char **argv)
{
    static const char *const where[] = {"", "the interpreter", "the CPU", "", "the PTX executor"};
    kiln_stream *s[STREAMS];
    kiln_event *ev[2];
    kiln_buffer *b[4];
    void *pinned[2], *plain;
    double best[3] = {1e30, 1e30, 1e30}, device_ms = 0, least_device = 1e30, err = 0;
    open_context(argc > 1 ? argv[1] : NULL);
    if (argc > 3) {
        rows = strtoll(argv[2], NULL, 10);
        cols = strtoll(argv[3], NULL, 10);
    }
    if (rows < 1 || cols < 1 || rows > 1 << 20 || cols > 16384) {
        fprintf(stderr, "chain: 1 to 2^20 rows of 1 to 16384 columns\n");
        return 2;
    }
    size_t n = (size_t)(rows * cols), size = n * sizeof(float), out = size + (size_t)rows * 4;
    CHECK(kiln_compile(ctx, "chain.kiln", source, sizeof source - 1, &module, &diags));
    /* in: what goes to the device; out: sums, then the softmax */
    CHECK(kiln_host_alloc(ctx, size, &pinned[0], &diags));
    CHECK(kiln_host_alloc(ctx, out, &pinned[1], &diags));
    plain = malloc(2 * size + out);
    if (!plain)
        return 1;
    float *in = pinned[0], *sums = pinned[1], *tmp[2] = {plain, (float *)plain + n};
    float *want = tmp[1] + n;
    for (size_t i = 0; i < n; i++)
        in[i] = (float)(i * 2654435761u % 4096) / 512 - 4;
    for (int i = 0; i < STREAMS; i++)
        CHECK(kiln_stream_create(ctx, &s[i], &diags));
    for (int i = 0; i < 2; i++)
        CHECK(kiln_event_create(ctx, &ev[i], &diags));
    for (int i = 0; i < 4; i++)
        b[i] = buffer(i == 3 ? rows : rows * cols);

    for (int turn = 0; turn < 3; turn++) { /* the first one also compiles; the best time counts */
        double t = by_host(want, in, tmp);
        best[0] = t < best[0] ? t : best[0];
        memset(sums, 0, out);
        t = by_device(sums, in, b);
        best[1] = t < best[1] ? t : best[1];
        for (int64_t r = 0; r < rows; r++)
            err += sums[r] != want[r];
        err += memcmp(sums + rows, tmp[1], size) != 0;
        memset(sums, 0, out);
        t = by_overlap(sums, in, b, s, ev, &device_ms);
        best[2] = t < best[2] ? t : best[2];
        least_device = device_ms < least_device ? device_ms : least_device;
        for (int64_t r = 0; r < rows; r++)
            err += sums[r] != want[r];
        err += memcmp(sums + rows, tmp[1], size) != 0;
    }
    kiln_device d = kiln_context_device(ctx);
    printf("%lld x %lld on %s\n", (long long)rows, (long long)cols,
           d == KILN_DEVICE_CUDA ? kiln_context_device_info(ctx)->name : where[d]);
    printf("host      %10.3f ms   arrays travel for each kernel\n", best[0]);
    printf("device    %10.3f ms   arrays between the kernels stay\n", best[1]);
    printf("overlap   %10.3f ms   %d pieces on %d streams (%.3f ms between two events)\n", best[2],
           PIECES, STREAMS, least_device);
    printf("%s\n", err == 0 ? "all ways give the same bits" : "THE WAYS DIFFER");

    for (int i = 0; i < 4; i++)
        kiln_buffer_free(b[i]);
    for (int i = 0; i < 2; i++)
        kiln_event_free(ev[i]);
    for (int i = 0; i < STREAMS; i++)
        kiln_stream_free(s[i]);
    kiln_host_free(ctx, pinned[0]);
    kiln_host_free(ctx, pinned[1]);
    free(plain);
    kiln_module_free(module);
    kiln_context_free(ctx);
    return err == 0 ? 0 : 1;
}
