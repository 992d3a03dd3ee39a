/* test_graph.c - recorded graphs, on the host's devices and on the fake driver; with
 * KILN_TEST_DEVICE=1 on a real one instead, without what only the fake one does. */
#define _GNU_SOURCE
#include "cuda_box.h"
#include "kiln_nn.h"

static const char text[] =
    "kernel scale(i64 n, f32 y[n], const f32 x[n], f32 s, constexpr i64 B = 64) grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] = x[i:B] * s;\n"
    "}\n"
    "kernel plus(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 64) grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] = y[i:B] + x[i:B];\n"
    "}\n"
    "kernel from7(i64 n, f32 y[n] = 7, const f32 x[n], constexpr i64 B = 64) grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] += x[i:B];\n"
    "}\n"
    "kernel small(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 64) grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    auto v = load(x[i:B], 0);\n"
    "    print(\"{}\", i);\n"
    "    assert(v < 100, \"small\");\n"
    "    y[i:B] = v + 1;\n"
    "}\n";

enum { N = 200, BYTES = N * sizeof(float) };
static const int64_t shape[1] = {N};

struct bed {
    kiln_context *c;
    kiln_module *m;
    kiln_stream *s, *s2;
    kiln_buffer *b[4];
    float *in, *out; /* of kiln_host_alloc */
    long prints;
};

static void hear(void *user, const char *s, size_t n, const int64_t program[3])
{
    (void)s, (void)n, (void)program;
    ++*(long *)user;
}

static void make(struct bed *t, kiln_device device)
{
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_diags *g = NULL;
    memset(t, 0, sizeof *t);
    o.device = device;
    o.threads = 2;
    o.checks = KILN_CHECK_ALL;
    o.print = hear;
    o.print_user = &t->prints;
    o.cc = device == KILN_DEVICE_CPU ? system_cc() : NULL;
    kiln_status s = kl_context_create(&o, fake, &t->c, NULL);
    if (s == KILN_E_UNSUPPORTED)
        skip();
    assert_int_equal(s, KILN_OK);
    t->m = compile(t->c, text);
    OK(kiln_stream_create(t->c, &t->s, &g));
    OK(kiln_stream_create(t->c, &t->s2, &g));
    for (int i = 0; i < 4; i++) {
        OK(kiln_buffer_alloc(t->c, BYTES, &t->b[i], &g));
        OK(kiln_buffer_fill(t->b[i], 0, BYTES, 0, NULL, &g));
    }
    void *p, *q;
    OK(kiln_host_alloc(t->c, BYTES, &p, &g));
    OK(kiln_host_alloc(t->c, BYTES, &q, &g));
    t->in = p;
    t->out = q;
    for (int i = 0; i < N; i++) {
        t->in[i] = (float)i * 0.25f;
        t->out[i] = -1;
    }
}

static void end(struct bed *t)
{
    kiln_stream_free(t->s);
    kiln_stream_free(t->s2);
    for (int i = 0; i < 4; i++)
        kiln_buffer_free(t->b[i]);
    kiln_host_free(t->c, t->in);
    kiln_host_free(t->c, t->out);
    kiln_module_free(t->m);
    kiln_context_free(t->c);
}

/* y and x: numbers of buffers. */
static kiln_status run(struct bed *t, const char *kernel, int y, int x, double s, kiln_stream *st,
                       kiln_diags **d)
{
    kiln_arg a[3] = {{.name = "y", .kind = KILN_ARG_TENSOR},
                     {.name = "x", .kind = KILN_ARG_TENSOR},
                     {.name = "s", .kind = KILN_ARG_FLOAT, .u.f = s}};
    int64_t own[1] = {N}; /* gone when the graph is launched, as the rest */
    for (int i = 0; i < 2; i++)
        a[i].u.tensor = (kiln_tensor){.data = kiln_buffer_data(t->b[i ? x : y]),
                                      .dtype = KILN_F32,
                                      .ndim = 1,
                                      .shape = own,
                                      .flags = KILN_TENSOR_DEVICE};
    kiln_status r = kiln_launch(kiln_module_kernel(t->m, kernel), st, a,
                                strcmp(kernel, "scale") == 0 ? 3 : 2, d);
    memset(a, 0x55, sizeof a);
    own[0] = -1;
    return r;
}

/* The CPU last: it may be skipped. */
static const kiln_device devices[] = {KILN_DEVICE_INTERP, KILN_DEVICE_SIM, KILN_DEVICE_CUDA,
                                      KILN_DEVICE_CPU};
/* A test on all devices, one after another. */
#define EACH(name)                                                                                 \
    static void name##_on(kiln_device device);                                                     \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)                              \
            name##_on(devices[i]);                                                                 \
    }                                                                                              \
    static void name##_on(kiln_device device)

/* ---- what it does ---- */

EACH(replay)
{
    struct bed t;
    kiln_diags *d = NULL, *g = NULL;
    kiln_graph *gr;
    make(&t, device);
    OK(kiln_graph_begin(t.s, &g));
    OK(kiln_buffer_upload(t.b[0], 0, t.in, BYTES, t.s, &g));
    OK(run(&t, "scale", 1, 0, 3, t.s, &g));
    OK(kiln_buffer_fill(t.b[2], 4, BYTES - 8, 0, t.s, &g));
    OK(run(&t, "plus", 2, 1, 0, t.s, &g));
    OK(run(&t, "plus", 3, 2, 0, t.s, &g));
    OK(kiln_buffer_copy(t.b[0], 0, t.b[3], 0, BYTES, t.s, &g));
    OK(kiln_buffer_download(t.b[0], 0, t.out, BYTES, t.s, &g));
    OK(kiln_graph_end(t.s, &gr, &g));
    assert_int_equal(kiln_graph_count(gr), 7);
    OK(kiln_sync(t.c, &g));
    for (int i = 0; i < N; i++)
        assert_true(t.out[i] == -1); /* recorded, not done */
    /* b[3] adds up over the launches; b[2] does where the fill leaves it */
    float sum[N] = {0}, first[N] = {0};
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < N; i++)
            t.in[i] = (float)(i * (turn + 1)); /* read when it runs */
        OK(kiln_graph_launch(gr, turn == 1 ? NULL : t.s, &g));
        OK(turn == 1 ? kiln_sync(t.c, &g) : kiln_stream_sync(t.s, &g));
        for (int i = 0; i < N; i++) {
            first[i] = t.in[i] * 3 + (i == 0 || i == N - 1 ? first[i] : 0);
            sum[i] += first[i];
            if (t.out[i] != sum[i])
                fail_msg("element %d is %g, not %g", i, (double)t.out[i], (double)sum[i]);
        }
    }
    /* the stream works as before, in order with the graph */
    OK(kiln_graph_launch(gr, t.s, &g));
    OK(kiln_buffer_fill(t.b[0], 0, BYTES, 0, t.s, &g));
    OK(kiln_buffer_download(t.b[0], 0, t.out, BYTES, t.s, &g));
    OK(kiln_stream_sync(t.s, &g));
    assert_true(t.out[5] == 0);
    kiln_graph_free(gr);
    kiln_graph_free(NULL);
    assert_int_equal(kiln_graph_count(NULL), 0);
    (void)d;
    end(&t);
}

EACH(initial_values)
{
    struct bed t;
    kiln_diags *g = NULL;
    kiln_graph *gr;
    make(&t, device);
    OK(kiln_buffer_upload(t.b[0], 0, t.in, BYTES, NULL, &g));
    OK(kiln_graph_begin(t.s, &g));
    OK(run(&t, "from7", 1, 0, 0, t.s, &g));
    OK(kiln_graph_end(t.s, &gr, &g));
    for (int turn = 0; turn < 2; turn++)
        OK(kiln_graph_launch(gr, t.s, &g));
    OK(kiln_buffer_download(t.b[1], 0, t.out, BYTES, t.s, &g));
    OK(kiln_stream_sync(t.s, &g));
    for (int i = 0; i < N; i++)
        assert_true(t.out[i] == 7 + t.in[i]);
    kiln_graph_free(gr);
    end(&t);
}

EACH(nn)
{
    struct bed t;
    kiln_diags *g = NULL;
    kiln_graph *gr;
    kiln_nn *nn;
    kiln_tensor v[2];
    int64_t two[2] = {4, 50};
    make(&t, device);
    for (int i = 0; i < 2; i++)
        v[i] = (kiln_tensor){.data = kiln_buffer_data(t.b[i]),
                             .dtype = KILN_F32,
                             .ndim = 2,
                             .shape = two,
                             .flags = KILN_TENSOR_DEVICE};
    OK(kiln_nn_create(t.c, &nn, &g));
    OK(kiln_graph_begin(t.s, &g));
    OK(kiln_buffer_upload(t.b[0], 0, t.in, BYTES, t.s, &g));
    OK(kiln_nn_softmax(nn, t.s, &v[1], &v[0], &g));
    OK(kiln_buffer_download(t.b[1], 0, t.out, BYTES, t.s, &g));
    OK(kiln_graph_end(t.s, &gr, &g));
    assert_true(t.out[0] == -1);
    OK(kiln_graph_launch(gr, t.s, &g));
    OK(kiln_stream_sync(t.s, &g));
    for (int r = 0; r < 4; r++) {
        float sum = 0;
        for (int i = 0; i < 50; i++)
            sum += t.out[r * 50 + i];
        assert_true(sum > 0.9999f && sum < 1.0001f);
    }
    kiln_graph_free(gr);
    kiln_nn_free(nn);
    end(&t);
}

EACH(empty)
{
    struct bed t;
    kiln_diags *g = NULL;
    kiln_graph *gr;
    make(&t, device);
    OK(kiln_graph_begin(t.s, &g));
    OK(kiln_graph_end(t.s, &gr, &g));
    assert_int_equal(kiln_graph_count(gr), 0);
    OK(kiln_graph_launch(gr, t.s, &g));
    OK(kiln_sync(t.c, &g));
    kiln_graph_free(gr);
    /* thrown away, and forgotten */
    OK(kiln_graph_begin(t.s, &g));
    OK(run(&t, "scale", 1, 0, 3, t.s, &g));
    OK(kiln_graph_end(t.s, NULL, &g));
    OK(kiln_graph_begin(t.s, &g));
    OK(run(&t, "scale", 1, 0, 3, t.s, &g));
    kiln_stream_free(t.s);
    t.s = NULL;
    OK(run(&t, "scale", 1, 0, 3, NULL, &g));
    OK(kiln_sync(t.c, &g));
    end(&t);
}

/* ---- two streams ---- */

EACH(fork_and_join)
{
    struct bed t;
    kiln_diags *g = NULL;
    kiln_graph *gr;
    kiln_event *e, *f;
    make(&t, device);
    OK(kiln_event_create(t.c, &e, &g));
    OK(kiln_event_create(t.c, &f, &g));
    OK(kiln_graph_begin(t.s, &g));
    OK(kiln_buffer_upload(t.b[0], 0, t.in, BYTES, t.s, &g));
    OK(kiln_event_record(e, t.s, &g));
    OK(kiln_event_wait(e, t.s2, &g));
    OK(run(&t, "scale", 1, 0, 2, t.s, &g));
    OK(run(&t, "scale", 2, 0, 5, t.s2, &g));
    OK(run(&t, "scale", 3, 2, 2, t.s2, &g));
    OK(kiln_event_record(f, t.s2, &g));
    OK(kiln_event_wait(f, t.s, &g));
    OK(run(&t, "plus", 1, 3, 0, t.s, &g));
    OK(kiln_buffer_download(t.b[1], 0, t.out, BYTES, t.s, &g));
    OK(kiln_graph_end(t.s, &gr, &g));
    /* the second stream works as before */
    OK(kiln_stream_sync(t.s2, &g));
    OK(kiln_graph_launch(gr, t.s2, &g));
    OK(kiln_stream_sync(t.s2, &g));
    for (int i = 0; i < N; i++)
        assert_true(t.out[i] == t.in[i] * 12);
    /* an event of a graph does not happen */
    assert_int_equal(kiln_event_sync(f, &g), KILN_E_ARG);
    said(g, "K1818", "kiln_event_sync", NULL);
    assert_int_equal(kiln_event_wait(f, t.s, &g), KILN_E_ARG);
    said(g, "K1818", "kiln_event_wait", NULL);
    g = NULL;
    OK(kiln_event_record(f, t.s, &g));
    OK(kiln_event_sync(f, &g));
    /* without the join there is no graph, and the streams are free again */
    kiln_graph *none = gr;
    OK(kiln_graph_begin(t.s, &g));
    OK(run(&t, "scale", 1, 0, 2, t.s, &g));
    OK(kiln_event_record(e, t.s, &g));
    OK(kiln_event_wait(e, t.s2, &g));
    OK(run(&t, "scale", 2, 0, 5, t.s2, &g));
    assert_int_not_equal(kiln_graph_end(t.s, &none, &g), KILN_OK);
    said(g, device == KILN_DEVICE_CUDA ? "K1816" : "K1818",
         device == KILN_DEVICE_CUDA ? "UNJOINED" : "another stream", NULL);
    assert_null(none);
    g = NULL;
    OK(run(&t, "scale", 2, 0, 5, t.s2, &g));
    OK(kiln_stream_sync(t.s2, &g));
    OK(kiln_sync(t.c, &g));
    kiln_event_free(e); /* after its recording */
    kiln_event_free(f);
    kiln_graph_free(gr);
    end(&t);
}

/* ---- what it refuses ---- */

/* Refused with this code, and these words. */
#define NO(call, code, a, b)                                                                       \
    do {                                                                                           \
        assert_int_equal(call, KILN_E_ARG);                                                        \
        said(g, code, a, b);                                                                       \
        g = NULL;                                                                                  \
    } while (0)

EACH(refusals)
{
    struct bed t;
    kiln_diags *g = NULL;
    kiln_graph *gr, *other;
    kiln_event *e, *f;
    make(&t, device);
    OK(kiln_event_create(t.c, &e, &g));
    OK(kiln_event_create(t.c, &f, &g));
    OK(kiln_event_record(e, t.s2, &g));
    OK(kiln_graph_begin(t.s2, &g));
    OK(kiln_graph_end(t.s2, &other, &g));
    assert_int_equal(kiln_graph_begin(NULL, &g), KILN_E_ARG);
    assert_int_equal(kiln_graph_end(NULL, &gr, &g), KILN_E_ARG);
    assert_int_equal(kiln_graph_launch(NULL, t.s, &g), KILN_E_ARG);
    NO(kiln_graph_end(t.s, &gr, &g), "K1809", "does not record", NULL);
    OK(kiln_graph_begin(t.s, &g));
    NO(kiln_graph_begin(t.s, &g), "K1818", "already", NULL);
    NO(kiln_sync(t.c, &g), "K1818", "kiln_sync", "all streams");
    NO(kiln_stream_sync(t.s, &g), "K1818", "kiln_stream_sync", NULL);
    NO(run(&t, "scale", 1, 0, 2, NULL, &g), "K1818", "kiln_launch", "default stream");
    NO(kiln_buffer_upload(t.b[0], 0, t.in, BYTES, NULL, &g), "K1818", "kiln_buffer_upload", NULL);
    NO(kiln_buffer_download(t.b[0], 0, t.in, BYTES, NULL, &g), "K1818", "download", NULL);
    NO(kiln_buffer_copy(t.b[0], 0, t.b[1], 0, 4, NULL, &g), "K1818", "kiln_buffer_copy", NULL);
    NO(kiln_buffer_fill(t.b[0], 0, 4, 0, NULL, &g), "K1818", "kiln_buffer_fill", NULL);
    NO(kiln_event_record(f, NULL, &g), "K1818", "kiln_event_record", NULL);
    NO(kiln_event_wait(f, NULL, &g), "K1818", "kiln_event_wait", NULL);
    NO(kiln_event_wait(e, t.s, &g), "K1818", "kiln_event_wait", "outside");
    NO(kiln_graph_launch(other, NULL, &g), "K1818", "kiln_graph_launch", "default");
    NO(kiln_graph_launch(other, t.s, &g), "K1818", "kiln_graph_launch", "no other");
    if (device == KILN_DEVICE_CUDA) {
        kiln_arg a[2] = {{.name = "y", .kind = KILN_ARG_TENSOR},
                         {.name = "x", .kind = KILN_ARG_TENSOR}};
        for (int i = 0; i < 2; i++)
            a[i].u.tensor = (kiln_tensor){.data = i ? (void *)t.in : kiln_buffer_data(t.b[1]),
                                          .dtype = KILN_F32,
                                          .ndim = 1,
                                          .shape = shape,
                                          .flags = i ? 0 : KILN_TENSOR_DEVICE};
        NO(kiln_launch(kiln_module_kernel(t.m, "from7"), t.s, a, 2, &g), "K1818", "array `x`",
           "host memory");
        OK(kiln_stream_sync(t.s2, &g)); /* others are not concerned */
        OK(kiln_event_sync(e, &g));
    }
    assert_int_equal(run(&t, "none", 1, 0, 2, t.s, &g), KILN_E_ARG);
    assert_int_equal(kiln_buffer_fill(t.b[0], 0, BYTES + 1, 0, t.s, &g), KILN_E_ARG);
    said(g, "K1809", "kiln_buffer_fill", NULL);
    g = NULL;
    /* an event that nobody recorded; another stream; memory that comes and goes meanwhile */
    OK(kiln_event_wait(f, t.s, &g));
    OK(kiln_event_record(f, t.s, &g));
    OK(kiln_event_wait(f, t.s2, &g));
    NO(kiln_graph_end(t.s2, &gr, &g), "K1809", "another stream", NULL);
    NO(kiln_event_sync(f, &g), "K1818", "kiln_event_sync", NULL);
    kiln_buffer *b;
    OK(kiln_buffer_alloc(t.c, 100, &b, &g));
    kiln_buffer_free(b);
    /* nothing of this hurt the recording */
    OK(run(&t, "scale", 1, 0, 2, t.s, &g));
    OK(kiln_graph_end(t.s, &gr, &g));
    assert_int_equal(kiln_graph_count(gr), 1);
    OK(kiln_buffer_upload(t.b[0], 0, t.in, BYTES, NULL, &g));
    OK(kiln_graph_launch(gr, NULL, &g));
    OK(kiln_buffer_download(t.b[1], 0, t.out, BYTES, NULL, &g));
    for (int i = 0; i < N; i++)
        assert_true(t.out[i] == t.in[i] * 2);
    kiln_event_free(e);
    kiln_event_free(f);
    kiln_graph_free(gr);
    kiln_graph_free(other);
    end(&t);
}

static void contexts(void **state)
{
    struct bed t, u;
    kiln_diags *g = NULL;
    kiln_graph *gr;
    (void)state;
    make(&t, KILN_DEVICE_INTERP);
    make(&u, KILN_DEVICE_INTERP);
    OK(kiln_graph_begin(t.s, &g));
    OK(kiln_sync(u.c, &g)); /* another context is not concerned */
    assert_int_equal(run(&u, "scale", 1, 0, 2, t.s, &g), KILN_E_ARG);
    said(g, "K1809", "another context", NULL);
    g = NULL;
    OK(kiln_graph_end(t.s, &gr, &g));
    NO(kiln_graph_launch(gr, u.s, &g), "K1809", "different contexts", NULL);
    kiln_graph_free(gr);
    end(&u);
    end(&t);
}

/* ---- assert and print ---- */

EACH(debug)
{
    struct bed t;
    kiln_diags *g = NULL;
    kiln_graph *gr;
    bool host = device != KILN_DEVICE_CUDA;
    make(&t, device);
    OK(kiln_buffer_upload(t.b[0], 0, t.in, BYTES, NULL, &g));
    OK(kiln_graph_begin(t.s, &g)); /* its first launch: memory is needed on the device */
    OK(run(&t, "small", 1, 0, 0, t.s, &g));
    OK(kiln_graph_end(t.s, &gr, &g));
    assert_int_equal(t.prints, 0);
    for (int turn = 0; turn < 2; turn++)
        OK(kiln_graph_launch(gr, t.s, &g));
    OK(kiln_stream_sync(t.s, &g));
    assert_int_equal(t.prints, 2 * 4);
    float big = 1e6f;
    OK(kiln_buffer_upload(t.b[0], 4 * 70, &big, 4, NULL, &g));
    kiln_status s = kiln_graph_launch(gr, t.s, &g);
    if (!host) {
        OK(s);
        /* another stream is waited for while one records: the report comes later */
        OK(kiln_graph_begin(t.s2, &g));
        OK(kiln_stream_sync(t.s, &g));
        OK(kiln_graph_end(t.s2, NULL, &g));
        s = kiln_sync(t.c, &g);
    }
    assert_int_equal(s, KILN_E_BOUNDS);
    said(g, "K1702", "small", NULL);
    g = NULL;
    OK(kiln_buffer_upload(t.b[0], 0, t.in, BYTES, NULL, &g));
    OK(kiln_graph_launch(gr, t.s, &g));
    OK(kiln_sync(t.c, &g));
    OK(kiln_buffer_download(t.b[1], 0, t.out, BYTES, NULL, &g));
    for (int i = 0; i < N; i++)
        assert_true(t.out[i] == t.in[i] + 1);
    assert_int_equal(t.prints, 4 * 4);
    kiln_graph_free(gr);
    end(&t);
}

/* ---- captures by other code ---- */

/* The driver's own calls, in the mode that forbids most. */
static void foreign(void **state)
{
    struct bed t;
    kiln_diags *g = NULL;
    kiln_stream *s;
    kiln_buffer *b;
    void *cu = NULL, *graph = NULL, *exec = NULL, *current;
    (void)state;
    make(&t, KILN_DEVICE_CUDA);
    const struct kl_cuda_api *api = kl_cuda_calls(t.c->cuda);
    api->CtxPush(t.c->cuda->ctx);
    assert_int_equal(api->StreamCreate(&cu, 0), 0);
    OK(kiln_stream_from_cuda(t.c, cu, &s, &g));
    OK(kiln_buffer_upload(t.b[0], 0, t.in, BYTES, NULL, &g));
    for (int mode = 0; mode < 3; mode++) {
        assert_int_equal(api->StreamBeginCapture(cu, mode), 0);
        NO(kiln_graph_begin(s, &g), "K1818", "other code", NULL);
        /* the first launches: compiled, loaded, with memory for the assertion */
        OK(run(&t, mode ? "plus" : "scale", 1, 0, 2, s, &g));
        OK(run(&t, "small", 2, 1, 0, s, &g));
        OK(kiln_buffer_alloc(t.c, 100, &b, &g));
        kiln_buffer_free(b);
        assert_int_equal(api->StreamEndCapture(cu, &graph), 0);
        assert_int_equal(api->GraphInstantiate(&exec, graph, NULL, NULL, 0), 0);
        assert_int_equal(api->GraphDestroy(graph), 0);
        long before = t.prints;
        assert_int_equal(api->GraphLaunch(exec, cu), 0);
        OK(kiln_stream_sync(s, &g));
        assert_int_equal(t.prints, before + 4);
        float big = 200, back = t.in[2];
        OK(kiln_buffer_upload(t.b[0], 8, &big, 4, NULL, &g));
        assert_int_equal(api->GraphLaunch(exec, cu), 0);
        assert_int_equal(kiln_sync(t.c, &g), KILN_E_BOUNDS);
        said(g, "K1702", "small", NULL);
        g = NULL;
        OK(kiln_buffer_upload(t.b[0], 8, &back, 4, NULL, &g));
        OK(kiln_buffer_fill(t.b[1], 0, BYTES, 0, NULL, &g));
        assert_int_equal(api->GraphExecDestroy(exec), 0);
    }
    /* Kiln's own recording on the caller's stream */
    kiln_graph *gr;
    OK(kiln_graph_begin(s, &g));
    OK(run(&t, "scale", 1, 0, 2, s, &g));
    OK(kiln_graph_end(s, &gr, &g));
    OK(kiln_graph_launch(gr, s, &g));
    OK(kiln_buffer_download(t.b[1], 0, t.out, BYTES, s, &g));
    OK(kiln_stream_sync(s, &g));
    for (int i = 0; i < N; i++)
        assert_true(t.out[i] == t.in[i] * 2);
    kiln_graph_free(gr);
    kiln_stream_free(s);
    kiln_stream *null_stream;
    OK(kiln_stream_from_cuda(t.c, NULL, &null_stream, &g));
    NO(kiln_graph_begin(null_stream, &g), "K1809", "default stream", NULL);
    kiln_stream_free(null_stream);
    api->StreamDestroy(cu);
    api->CtxPop(&current);
    end(&t);
}

/* ---- failures ---- */

static void old_driver(void **state)
{
    struct bed t;
    kiln_diags *g = NULL;
    (void)state;
    make(&t, KILN_DEVICE_CUDA);
    struct kl_cuda_api *api = &t.c->cuda->api;
    int (*launch)(void *, void *) = api->GraphLaunch;
    api->GraphLaunch = NULL;
    assert_int_equal(kiln_graph_begin(t.s, &g), KILN_E_UNSUPPORTED);
    said(g, "K1890", "no graphs", NULL);
    g = NULL;
    OK(kiln_sync(t.c, &g)); /* nothing records */
    api->GraphLaunch = launch;
    end(&t);
}

static void fault(void **state)
{
    struct bed t;
    kiln_diags *g = NULL;
    kiln_graph *gr;
    (void)state;
    make(&t, KILN_DEVICE_CUDA);
    OK(kiln_graph_begin(t.s, &g));
    OK(run(&t, "scale", 1, 0, 2, t.s, &g));
    OK(run(&t, "plus", 1, 0, 2, t.s, &g));
    OK(kiln_graph_end(t.s, &gr, &g));
    OK(kiln_graph_launch(gr, t.s, &g));
    hook.inject("cuStreamSynchronize", 1, 700);
    assert_int_equal(kiln_stream_sync(t.s, &g), KILN_E_DEVICE);
    said(g, "K1815", "a graph of 2: scale, plus", "ILLEGAL_ADDRESS");
    kiln_graph_free(gr);
    end(&t);
}

/* Each call of the driver fails in turn: no graph, or the right result. */
static void each_call_fails(void **state)
{
    static const int codes[] = {2, 901};
    struct bed t;
    kiln_diags *g = NULL;
    (void)state;
    make(&t, KILN_DEVICE_CUDA);
    OK(kiln_buffer_upload(t.b[0], 0, t.in, BYTES, NULL, &g));
    for (int k = 0; k < 2; k++)
        for (long n = 1;; n++) {
            kiln_graph *gr = NULL;
            bool recorded = false;
            long before = hook.calls(NULL);
            hook.inject("*", n, codes[k]);
            kiln_status s = kiln_graph_begin(t.s, NULL);
            if (!s) {
                s = run(&t, "scale", 1, 0, 2, t.s, NULL);
                recorded = !s;
                kiln_status r = kiln_graph_end(t.s, &gr, NULL);
                s = s ? s : r;
                assert_true((r == KILN_OK) == (gr != NULL));
            }
            if (gr)
                s = s ? s : kiln_graph_launch(gr, t.s, NULL);
            if (!s)
                s = kiln_stream_sync(t.s, NULL);
            bool reached = hook.calls(NULL) - before >= n;
            hook.inject(NULL, 0, 0);
            assert_int_equal(hook.depth(), 0);
            assert_true(!s || s == KILN_E_DEVICE || s == KILN_E_NOMEM);
            if (!s) {
                assert_true(recorded);
                OK(kiln_buffer_download(t.b[1], 0, t.out, BYTES, NULL, &g));
                for (int i = 0; i < N; i++)
                    assert_true(t.out[i] == t.in[i] * 2);
            }
            kiln_graph_free(gr);
            if (kl_cuda_capturing(t.c->cuda, kiln_stream_cuda(t.s)))
                hook.capture(kiln_stream_cuda(t.s), 0); /* its context could not be made current */
            OK(kiln_buffer_fill(t.b[1], 0, BYTES, 0, NULL, &g));
            OK(kiln_sync(t.c, &g)); /* no recording is left */
            if (!reached) {
                assert_int_equal(s, KILN_OK);
                assert_true(n > 8);
                break;
            }
        }
    end(&t);
    assert_int_equal(hook.live(), 2); /* cuGraphDestroy failed once for each code */
    hook.forget();
}

/* ---- threads ---- */

struct worker {
    struct bed *t;
    kiln_stream *s;
    int y, turns, bad;
};

static void *work(void *user)
{
    struct worker *w = user;
    for (int i = 0; i < w->turns && !w->bad; i++) {
        kiln_graph *gr = NULL;
        kiln_status s = kiln_graph_begin(w->s, NULL);
        if (!s)
            s = run(w->t, "scale", w->y, 0, 2 + i, w->s, NULL);
        if (!s)
            s = run(w->t, "plus", w->y, 0, 0, w->s, NULL);
        if (!s)
            s = kiln_graph_end(w->s, &gr, NULL);
        for (int k = 0; k < 3 && !s; k++)
            s = kiln_graph_launch(gr, w->s, NULL);
        if (!s)
            s = kiln_stream_sync(w->s, NULL);
        w->bad = s;
        kiln_graph_free(gr);
    }
    return NULL;
}

/* Each thread records and launches graphs of its own, with kernels of one module. */
EACH(threads)
{
    struct bed t;
    kiln_diags *g = NULL;
    pthread_t id[2];
    make(&t, device);
    OK(kiln_buffer_upload(t.b[0], 0, t.in, BYTES, NULL, &g));
    struct worker w[2] = {{&t, t.s, 1, 6, 0}, {&t, t.s2, 2, 6, 0}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&id[i], NULL, work, &w[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(id[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(w[i].bad, 0);
        OK(kiln_buffer_download(t.b[1 + i], 0, t.out, BYTES, NULL, &g));
        for (int k = 0; k < N; k++)
            assert_true(t.out[k] == t.in[k] * 8);
    }
    end(&t);
}

static int real(void **state)
{
    strcpy(fake, "libcuda.so.1");
    return setup(state);
}

int main(void)
{
#define DEVICE_TESTS(T)                                                                            \
    T(replay), T(initial_values), T(nn), T(empty), T(fork_and_join), T(refusals), T(debug),        \
        T(foreign), T(old_driver), T(threads)
#define T(f) cmocka_unit_test_setup_teardown(f, fresh, clean)
#define R(f) cmocka_unit_test(f)
    const struct CMUnitTest tests[] = {DEVICE_TESTS(T), T(contexts), T(fault), T(each_call_fails)};
    const struct CMUnitTest on_device[] = {DEVICE_TESTS(R)};
    if (getenv("KILN_TEST_DEVICE"))
        return cmocka_run_group_tests(on_device, real, teardown);
    return cmocka_run_group_tests(tests, find_fake, teardown);
}
