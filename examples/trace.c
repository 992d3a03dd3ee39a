/* trace.c - when did what happen: three kernels in pieces on two streams, and their time line as a
 * file for https://ui.perfetto.dev.
 *
 *     cc -o trace examples/trace.c -Iinclude -Lbuild -lkiln
 *     LD_LIBRARY_PATH=build ./trace [cuda | sim | cpu | interp] [FILE]
 *
 * FILE: trace.json.  Without a GPU it runs on the CPU: one track, and no arrows.
 *
 * install-test: interp /dev/null */
#include <kiln.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "kernel scale(i64 n, f32 y[n], const f32 x[n], f32 by, constexpr i64 B = 256)\n"
    "    grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] = x[i:B] * by;\n"
    "}\n"
    "kernel square(i64 n, f32 y[n], constexpr i64 B = 256) grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] = y[i:B] * y[i:B];\n"
    "}\n"
    "kernel total(i64 n, f32 s[1], const f32 y[n], constexpr i64 B = pow2ceil(n)) grid(1)\n"
    "{\n"
    "    s[0] = sum(y[0:B]);\n"
    "}\n";

enum { PIECES = 6, STREAMS = 2, N = 4096 };

/* Print what there is to say, with caret and fix; leave if a call failed. */
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

/* ---- listening ---- */

struct span {
    kiln_trace_event e; /* its strings are the two below */
    char name[64], detail[128];
};
static struct {
    pthread_mutex_t lock; /* any thread that uses the context may tell, several at once */
    struct span *v;
    size_t n, room;
} all = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0};

/* The event and its strings are gone when this returns, so they are copied. */
static void hear(void *user, const kiln_trace_event *e)
{
    (void)user;
    if (e->phase == KILN_TRACE_BEGIN)
        return; /* its END has both times */
    pthread_mutex_lock(&all.lock);
    if (all.n == all.room) {
        size_t room = all.room ? 2 * all.room : 256;
        struct span *more = realloc(all.v, room * sizeof *more);
        if (!more)
            abort();
        all.v = more;
        all.room = room;
    }
    struct span *s = &all.v[all.n++];
    s->e = *e;
    snprintf(s->name, sizeof s->name, "%s", e->name);
    snprintf(s->detail, sizeof s->detail, "%s", e->detail);
    pthread_mutex_unlock(&all.lock);
}

/* ---- the file ---- */

/* By begin; what lies around comes before what lies inside. */
static int earlier(const void *a, const void *b)
{
    const kiln_trace_event *x = &((const struct span *)a)->e, *y = &((const struct span *)b)->e;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

static void put_text(FILE *f, const char *before, const char *s)
{
    fprintf(f, "\"%s", before);
    for (; *s; s++)
        if (*s == '"' || *s == '\\' || (unsigned char)*s < 0x20)
            fprintf(f, "\\u%04x", (unsigned)*s);
        else
            putc(*s, f);
    putc('"', f);
}

/* Process 1 is the host, 2 the GPU with a track for each stream.  Perfetto takes a track 0, and one
 * with the number of its process, for a main thread, so streams count from 2000. */
static void put_head(FILE *f, const char *ph, const kiln_trace_event *e)
{
    static int first = 1;
    fprintf(f, "%s{\"ph\":\"%s\",\"pid\":%d,\"tid\":%llu", first ? "" : ",\n", ph, (int)e->place,
            (unsigned long long)(e->place == KILN_TRACE_DEVICE ? 2000 + e->stream : e->thread));
    first = 0;
}

static void put_name(FILE *f, const char *what, const kiln_trace_event *e, const char *name)
{
    put_head(f, "M", e);
    fprintf(f, ",\"name\":\"%s\",\"args\":{\"name\":\"%s\"}}", what, name);
}

/* The same track as one before? */
static int seen(size_t i)
{
    const kiln_trace_event *e = &all.v[i].e;
    for (size_t j = 0; j < i; j++)
        if (all.v[j].e.place == e->place && all.v[j].e.thread == e->thread &&
            all.v[j].e.stream * (e->place == KILN_TRACE_DEVICE) ==
                e->stream * (e->place == KILN_TRACE_DEVICE))
            return 1;
    return 0;
}

static void put_flow(FILE *f, const char *ph, const kiln_trace_event *e, uint64_t zero)
{
    put_head(f, ph, e);
    fprintf(f, ",\"ts\":%.3f,\"cat\":\"flow\",\"name\":\"queued\",\"id\":%llu%s}",
            (double)(e->begin_ns - zero) * 1e-3, (unsigned long long)e->id,
            *ph == 'f' ? ",\"bp\":\"e\"" : "");
}

static void put_span(FILE *f, const struct span *s, uint64_t zero)
{
    const kiln_trace_event *e = &s->e;
    put_head(f, "X", e);
    fprintf(f, ",\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":",
            (double)(e->begin_ns - zero) * 1e-3, (double)(e->end_ns - e->begin_ns) * 1e-3,
            kiln_trace_kind_name(e->kind));
    /* what is found and summed by its name shall be one thing: kernels, or calls */
    put_text(f, e->kind == KILN_TRACE_LAUNCH                                  ? "launch "
                : e->place == KILN_TRACE_HOST && e->kind != KILN_TRACE_KERNEL ? "call "
                                                                              : "", s->name);
    fprintf(f, ",\"args\":{\"id\":%llu,\"bytes\":%llu,\"detail\":", (unsigned long long)e->id,
            (unsigned long long)e->bytes);
    put_text(f, "", s->detail);
    fprintf(f, "}}");
}

static int write_time_line(const char *path, const char *device)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return 0;
    qsort(all.v, all.n, sizeof *all.v, earlier);
    uint64_t zero = all.n ? all.v[0].e.begin_ns : 0;
    char name[32];
    fprintf(f, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    for (size_t i = 0; i < all.n; i++) {
        const kiln_trace_event *e = &all.v[i].e;
        int gpu = e->place == KILN_TRACE_DEVICE;
        if (seen(i))
            continue;
        put_name(f, "process_name", e, gpu ? device : "host");
        snprintf(name, sizeof name, "stream %llu", (unsigned long long)e->stream);
        put_name(f, "thread_name", e, !gpu ? "thread" : e->stream ? name : "default stream");
    }
    for (size_t i = 0; i < all.n; i++)
        put_span(f, &all.v[i], zero);
    /* an arrow from each call to what it made run on the GPU: both have its id */
    for (size_t i = 0; i < all.n; i++)
        for (size_t j = 0; j < all.n && all.v[i].e.place == KILN_TRACE_DEVICE; j++)
            if (all.v[j].e.place == KILN_TRACE_HOST && all.v[j].e.id == all.v[i].e.id) {
                put_flow(f, "s", &all.v[j].e, zero);
                put_flow(f, "f", &all.v[i].e, zero);
            }
    fprintf(f, "\n]}\n");
    return !fclose(f);
}

/* How often each kernel ran and how long. */
static void print_kernels(void)
{
    int gpu = 0;
    for (size_t i = 0; i < all.n; i++)
        gpu |= all.v[i].e.place == KILN_TRACE_DEVICE;
    printf("%-10s %6s %12s %12s\n", "kernel", "runs", "total", "mean");
    static const char *const kernel[] = {"scale", "square", "total"};
    for (int k = 0; k < 3; k++) {
        double us = 0;
        int runs = 0;
        for (size_t i = 0; i < all.n; i++) {
            const kiln_trace_event *e = &all.v[i].e;
            if (e->kind != KILN_TRACE_KERNEL || strcmp(all.v[i].name, kernel[k]) != 0 ||
                e->place != (gpu ? KILN_TRACE_DEVICE : KILN_TRACE_HOST))
                continue;
            us += (double)(e->end_ns - e->begin_ns) * 1e-3;
            runs++;
        }
        printf("%-10s %6d %9.1f us %9.1f us\n", kernel[k], runs, us, runs ? us / runs : 0);
    }
}

/* ---- the program ---- */

static kiln_arg array(const char *name, void *data, const int64_t *n)
{
    kiln_arg a = {.name = name, .kind = KILN_ARG_TENSOR};
    kiln_tensor t = {.data = data, .dtype = KILN_F32, .ndim = 1, .shape = n,
                     .flags = KILN_TENSOR_DEVICE};
    a.u.tensor = t;
    return a;
}

int main(int argc, char **argv)
{
    static const char *const word[] = {"cuda", "sim", "cpu", "interp"};
    static const kiln_device device[] = {KILN_DEVICE_CUDA, KILN_DEVICE_SIM, KILN_DEVICE_CPU,
                                         KILN_DEVICE_INTERP};
    const char *path = argc > 2 ? argv[2] : "trace.json";
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx;
    kiln_module *module;
    kiln_stream *stream[STREAMS];
    kiln_buffer *x, *y, *s;
    float in[N], out[PIECES];
    const int64_t n = N / PIECES, one = 1;

    done(kiln_options_from_env(&o), NULL);
    for (int i = 0; i < 4; i++)
        if (argc > 1 && strcmp(argv[1], word[i]) == 0)
            o.device = device[i];
    CHECK(kiln_context_create(&o, &ctx, &diags));
    /* from here on: also the source, and each step of its compilation */
    CHECK(kiln_context_trace(ctx, KILN_TRACE_DEVICE_TIMES, hear, NULL, &diags));

    CHECK(kiln_compile(ctx, "trace.kiln", source, sizeof source - 1, &module, &diags));
    for (int i = 0; i < N; i++)
        in[i] = (float)(i % 7);
    for (int i = 0; i < STREAMS; i++)
        CHECK(kiln_stream_create(ctx, &stream[i], &diags));
    CHECK(kiln_buffer_alloc(ctx, sizeof in, &x, &diags));
    CHECK(kiln_buffer_alloc(ctx, sizeof in, &y, &diags));
    CHECK(kiln_buffer_alloc(ctx, sizeof out, &s, &diags));
    for (int p = 0; p < PIECES; p++) {
        kiln_stream *st = stream[p % STREAMS];
        size_t at = (size_t)(p * n) * sizeof(float);
        kiln_arg a[3] = {array("y", (char *)kiln_buffer_data(y) + at, &n),
                         array("x", (char *)kiln_buffer_data(x) + at, &n)};
        a[2].name = "by";
        a[2].kind = KILN_ARG_FLOAT;
        a[2].u.f = 0.5;
        CHECK(kiln_buffer_upload(x, at, (char *)in + at, (size_t)n * sizeof(float), st, &diags));
        CHECK(kiln_launch(kiln_module_kernel(module, "scale"), st, a, 3, &diags));
        CHECK(kiln_launch(kiln_module_kernel(module, "square"), st, a, 1, &diags));
        a[1] = array("s", (float *)kiln_buffer_data(s) + p, &one);
        CHECK(kiln_launch(kiln_module_kernel(module, "total"), st, a, 2, &diags));
        at = (size_t)p * sizeof(float);
        CHECK(kiln_buffer_download(s, at, out + p, sizeof(float), st, &diags));
    }
    CHECK(kiln_sync(ctx, &diags)); /* tells what the device did */
    CHECK(kiln_context_trace(ctx, 0, NULL, NULL, &diags));

    print_kernels();
    float sum = 0, want = 0;
    for (int p = 0; p < PIECES; p++)
        sum += out[p];
    for (int i = 0; i < PIECES * (int)n; i++)
        want += in[i] * in[i] / 4;
    printf("sum %g, as it should be %g\n", (double)sum, (double)want);
    if (!write_time_line(path, kiln_context_device_info(ctx)->name)) {
        perror(path);
        return 1;
    }
    printf("%s: %zu spans; open it at https://ui.perfetto.dev\n", path, all.n);
    free(all.v);
    for (int i = 0; i < STREAMS; i++)
        kiln_stream_free(stream[i]);
    kiln_buffer_free(x);
    kiln_buffer_free(y);
    kiln_buffer_free(s);
    kiln_module_free(module);
    kiln_context_free(ctx);
    return sum == want ? 0 : 1;
}
