/* shared.c - one context, module, kernel, specialisation and kernel library for several threads, as
 * kiln.h promises: each of them compiles, specialises, reads, launches, and meets errors while the
 * others do.  A stream and an event go from hand to hand under a lock: the caller's order.  Run
 * under ThreadSanitizer by make check. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kiln_nn.h"
#include "shared.h"

enum { MOST = 64, N = 300 };

static const char text[] =
    "kernel twice(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 64) grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] = x[i:B] * 2;\n"
    "}\n";

struct all {
    kiln_context *ctx;
    kiln_module *mod;
    kiln_nn *nn;
    kiln_stream *stream; /* this and the next two under lock */
    kiln_event *event;
    kiln_buffer *buffer;
    pthread_mutex_t lock;
    pthread_barrier_t start;
    int turns;
};

struct worker {
    struct all *all;
    pthread_t id;
    int number;
    const char *why;
};

static kiln_arg vector(const char *name, void *data, const int64_t *n, uint32_t flags)
{
    kiln_arg a = {.name = name, .kind = KILN_ARG_TENSOR};
    a.u.tensor =
        (kiln_tensor){.data = data, .dtype = KILN_F32, .ndim = 1, .shape = n, .flags = flags};
    return a;
}

/* A launch of either module's kernel on arrays of this thread. */
static const char *twice(kiln_module *m, int number)
{
    float x[N], y[N];
    int64_t n = N - number;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i + number);
    kiln_arg a[2] = {vector("y", y, &n, 0), vector("x", x, &n, 0)};
    if (kiln_launch(kiln_module_kernel(m, "twice"), NULL, a, 2, NULL))
        return "a launch failed";
    for (int64_t i = 0; i < n; i++)
        if (y[i] != 2 * x[i])
            return "a wrong element";
    return NULL;
}

/* Several constants: some threads make the code that others look up. */
static const char *specialise(struct all *s, int number)
{
    kiln_kernel *k = kiln_module_kernel(s->mod, "twice");
    kiln_spec *spec = NULL;
    float x[N], y[N];
    int64_t n = N;
    kiln_arg a[3] = {vector("y", y, &n, 0), vector("x", x, &n, 0), {.name = "B"}};
    a[2].kind = KILN_ARG_INT;
    a[2].u.i = 32 << number % 3;
    if (kiln_specialize(k, a, 3, &spec, NULL))
        return "no specialisation";
    bool good = kiln_spec_get_info(spec)->device != 0 && kiln_kernel_param_count(k) == 4 &&
                strcmp(kiln_kernel_param(k, 1)->name, "y") == 0 && kiln_module_count(s->mod) == 1;
    kiln_spec_free(spec);
    return good ? NULL : "what is known of a kernel";
}

/* The first use compiles the file. */
static const char *library(struct all *s, int number)
{
    float x[2][N], y[2][N];
    int64_t shape[2] = {2, N};
    for (int i = 0; i < 2 * N; i++)
        x[i / N][i % N] = (float)((i * 37 + number) % 101) / 10;
    kiln_tensor tx = {.data = x, .dtype = KILN_F32, .ndim = 2, .shape = shape}, ty = tx;
    ty.data = y;
    if (kiln_nn_softmax(s->nn, NULL, &ty, &tx, NULL))
        return "softmax failed";
    for (int r = 0; r < 2; r++) {
        double sum = 0;
        for (int i = 0; i < N; i++)
            sum += (double)y[r][i];
        if (fabs(sum - 1) > 1e-5)
            return "a softmax is wrong";
    }
    return NULL;
}

static const char *errors(struct all *s, int number)
{
    char said[1000] = "";
    kiln_diags *d = NULL;
    kiln_module *m = NULL;
    char bad[60];
    snprintf(bad, sizeof bad, "kernel k(i64 n) grid(1) { i64 a = unknown%d; }\n", number);
    if (!kiln_compile(s->ctx, "bad.kiln", bad, strlen(bad), &m, &d))
        return "bad source compiles";
    kiln_diags_render(d, 0, said, sizeof said);
    kiln_diags_free(d);
    snprintf(bad, sizeof bad, "unknown%d", number);
    return strstr(said, bad) ? NULL : "the error of another thread";
}

/* One stream, event and buffer, a thread at a time. */
static const char *in_turn(struct all *s, int number)
{
    float x[N], y[N];
    int64_t n = N;
    for (int i = 0; i < N; i++)
        x[i] = (float)(number * i);
    kiln_arg a[2] = {vector("y", kiln_buffer_data(s->buffer), &n, KILN_TENSOR_DEVICE),
                     vector("x", kiln_buffer_data(s->buffer), &n, KILN_TENSOR_DEVICE)};
    if (kiln_buffer_upload(s->buffer, 0, x, sizeof x, s->stream, NULL) ||
        kiln_launch(kiln_module_kernel(s->mod, "twice"), s->stream, a, 2, NULL) ||
        kiln_event_record(s->event, s->stream, NULL) || kiln_event_sync(s->event, NULL) ||
        kiln_buffer_download(s->buffer, 0, y, sizeof y, s->stream, NULL) ||
        kiln_stream_sync(s->stream, NULL))
        return "a call on the stream failed";
    for (int i = 0; i < N; i++)
        if (y[i] != 2 * x[i])
            return "a wrong element of the buffer";
    return NULL;
}

static void *work(void *user)
{
    struct worker *w = user;
    struct all *s = w->all;
    pthread_barrier_wait(&s->start);
    for (int t = 0; t < s->turns && !w->why; t++) {
        kiln_module *own = NULL;
        w->why = library(s, w->number);
        w->why = w->why ? w->why : specialise(s, w->number + t);
        w->why = w->why ? w->why : twice(s->mod, w->number);
        w->why = w->why ? w->why : errors(s, w->number);
        if (!w->why && kiln_compile(s->ctx, "own.kiln", text, sizeof text - 1, &own, NULL))
            w->why = "no module";
        w->why = w->why ? w->why : twice(own, w->number);
        kiln_module_free(own);
        pthread_mutex_lock(&s->lock);
        w->why = w->why ? w->why : in_turn(s, w->number);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

const char *shared_objects(kiln_context *ctx, int threads, int turns)
{
    struct all s = {.ctx = ctx, .turns = turns};
    struct worker w[MOST];
    const char *why = NULL;
    threads = threads < MOST ? threads : MOST;
    pthread_mutex_init(&s.lock, NULL);
    pthread_barrier_init(&s.start, NULL, (unsigned)threads);
    if (kiln_compile(ctx, "shared.kiln", text, sizeof text - 1, &s.mod, NULL) ||
        kiln_nn_create(ctx, &s.nn, NULL) || kiln_stream_create(ctx, &s.stream, NULL) ||
        kiln_event_create(ctx, &s.event, NULL) ||
        kiln_buffer_create(ctx, N * sizeof(float), &s.buffer))
        why = "the objects";
    for (int i = 0; i < threads && !why; i++) {
        w[i] = (struct worker){.all = &s, .number = i};
        if (pthread_create(&w[i].id, NULL, work, &w[i]))
            return "no threads"; /* those that wait at the barrier stay */
    }
    for (int i = 0; i < threads && s.buffer; i++) {
        pthread_join(w[i].id, NULL);
        why = w[i].why ? w[i].why : why;
    }
    kiln_buffer_free(s.buffer);
    kiln_event_free(s.event);
    kiln_stream_free(s.stream);
    kiln_nn_free(s.nn);
    kiln_module_free(s.mod);
    pthread_barrier_destroy(&s.start);
    pthread_mutex_destroy(&s.lock);
    return why;
}
