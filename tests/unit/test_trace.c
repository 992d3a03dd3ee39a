/* test_trace.c - what a listener hears of a context: on the host's devices with a clock that counts
 * its readings, on the fake driver, and how two clocks are brought together. */
#define _GNU_SOURCE
#include "cuda_box.h"
#include "lib/trace.h"

enum { MOST = 40000 };

struct heard {
    pthread_mutex_t lock;
    size_t n;
    struct rec {
        kiln_trace_event e;
        char name[64], detail[KL_TRACE_DETAIL];
    } v[MOST];
};
static struct heard all;

static void hear(void *user, const kiln_trace_event *e)
{
    struct heard *h = user;
    pthread_mutex_lock(&h->lock);
    assert_true(h->n < MOST);
    struct rec *r = &h->v[h->n++];
    r->e = *e;
    snprintf(r->name, sizeof r->name, "%s", e->name);
    snprintf(r->detail, sizeof r->detail, "%s", e->detail);
    pthread_mutex_unlock(&h->lock);
}

static uint64_t tick(void *user)
{
    return __atomic_add_fetch((uint64_t *)user, 1000, __ATOMIC_SEQ_CST);
}

static struct heard *listen(kiln_context *c, uint32_t flags)
{
    kiln_diags *g = NULL;
    all.n = 0;
    pthread_mutex_init(&all.lock, NULL);
    OK(kiln_context_trace(c, flags, hear, &all, &g));
    return &all;
}

/* BEGIN and END are like brackets on each thread, and say the same; times never go back. */
static void nested(const struct heard *h)
{
    enum { THREADS = 16, DEEP = 16 };
    struct {
        uint64_t id, at;
        size_t n, open[DEEP];
    } t[THREADS] = {0};
    size_t threads = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct rec *r = &h->v[i];
        size_t k = 0;
        assert_int_equal(r->e.size, sizeof r->e);
        if (r->e.phase == KILN_TRACE_SPAN) {
            assert_true(r->e.end_ns >= r->e.begin_ns);
            continue;
        }
        assert_int_equal(r->e.place, KILN_TRACE_HOST);
        while (k < threads && t[k].id != r->e.thread)
            k++;
        if (k == threads) {
            assert_true(threads < THREADS);
            t[threads++].id = r->e.thread;
        }
        uint64_t now = r->e.phase == KILN_TRACE_BEGIN ? r->e.begin_ns : r->e.end_ns;
        assert_true(now >= t[k].at);
        t[k].at = now;
        if (r->e.phase == KILN_TRACE_BEGIN) {
            assert_int_equal(r->e.end_ns, 0);
            t[k].open[t[k].n++] = i;
            continue;
        }
        assert_true(t[k].n > 0);
        const struct rec *b = &h->v[t[k].open[--t[k].n]];
        assert_int_equal(b->e.kind, r->e.kind);
        assert_int_equal(b->e.begin_ns, r->e.begin_ns);
        assert_int_equal(b->e.id, r->e.id);
        assert_string_equal(b->name, r->name);
    }
    for (size_t k = 0; k < threads; k++)
        assert_int_equal(t[k].n, 0);
}

/* "launch(bind kernel)" */
static const char *story(const struct heard *h, size_t from)
{
    static char text[2000];
    const kiln_trace_event *last = NULL;
    size_t n = 0;
    text[0] = 0;
    for (size_t i = from; i < h->n; i++) {
        const kiln_trace_event *e = &h->v[i].e;
        if (e->phase == KILN_TRACE_SPAN)
            continue;
        if (e->phase == KILN_TRACE_BEGIN)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s",
                                  !last ? "" : last->phase == KILN_TRACE_BEGIN ? "(" : " ",
                                  kiln_trace_kind_name(e->kind));
        else if (last && last->phase == KILN_TRACE_END)
            n += (size_t)snprintf(text + n, sizeof text - n, ")");
        last = e;
    }
    return text;
}

static const struct rec *nth(const struct heard *h, kiln_trace_kind kind, kiln_trace_phase phase,
                             kiln_trace_place place, size_t which)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].e.kind == kind && h->v[i].e.phase == phase && h->v[i].e.place == place &&
            which-- == 0)
            return &h->v[i];
    return NULL;
}
static size_t count(const struct heard *h, kiln_trace_kind kind, kiln_trace_place place)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        n += h->v[i].e.kind == kind && h->v[i].e.place == place &&
             h->v[i].e.phase != KILN_TRACE_BEGIN;
    return n;
}

/* ---- the host's devices ---- */

static void steps_of_a_launch(kiln_context *c, const char *first, uint32_t threads)
{
    kiln_diags *g = NULL;
    uint64_t clock = 5000;
    struct data d;
    c->now = tick;
    c->now_user = &clock;
    struct heard *h = listen(c, KILN_TRACE_WORKERS);
    kiln_module *m = compile(c, add_text);
    assert_string_equal(story(h, 0), "source");
    assert_string_equal(h->v[0].name, "test.kiln");
    assert_int_equal(h->v[0].e.begin_ns, 6000);
    assert_int_equal(h->v[1].e.end_ns, 7000);
    fill(&d, MAXN);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    OK(kiln_launch(k, NULL, d.arg, 3, &g));
    right(&d);
    assert_string_equal(story(h, 2), first);
    size_t mark = h->n;
    OK(kiln_launch(k, NULL, d.arg, 3, &g));
    assert_string_equal(story(h, mark), "launch(bind kernel)");
    nested(h);
    const struct rec *l = nth(h, KILN_TRACE_LAUNCH, KILN_TRACE_END, KILN_TRACE_HOST, 1);
    const struct rec *r = nth(h, KILN_TRACE_KERNEL, KILN_TRACE_END, KILN_TRACE_HOST, 1);
    assert_string_equal(r->name, "add");
    assert_string_equal(l->detail, "y=1000:f32 a=1000:f32 b=1000:f32");
    assert_string_equal(r->detail, "y=1000:f32 a=1000:f32 b=1000:f32");
    assert_int_equal(r->e.id, l->e.id);
    assert_int_not_equal(r->e.id, 0);
    assert_int_equal(r->e.bytes, 3 * 4 * MAXN);
    assert_int_equal(r->e.status, KILN_OK);
    if (threads) {
        uint64_t programs = 0;
        assert_int_equal(r->e.programs, 4);
        assert_true(r->e.threads >= 1 && r->e.threads <= threads);
        for (size_t i = mark; i < h->n; i++)
            if (h->v[i].e.place == KILN_TRACE_WORKER) {
                programs += h->v[i].e.programs;
                assert_int_equal(h->v[i].e.id, l->e.id);
                assert_true(h->v[i].e.begin_ns > r->e.begin_ns && h->v[i].e.end_ns < r->e.end_ns);
            }
        assert_int_equal(programs, 4);
    }
    /* what fails ends as well */
    mark = h->n;
    assert_int_equal(kiln_launch(k, NULL, d.arg, 2, NULL), KILN_E_ARG);
    assert_string_equal(story(h, mark), "launch(bind)");
    assert_int_equal(h->v[h->n - 1].e.status, KILN_E_ARG);
    assert_int_equal(kiln_compile(c, "bad", "kernel", 6, &(kiln_module *){NULL}, NULL),
                     KILN_E_COMPILE);
    nested(h);
    /* and nobody is told when nobody listens */
    OK(kiln_context_trace(c, 0, NULL, NULL, &g));
    mark = h->n;
    uint64_t stood = clock;
    OK(kiln_launch(k, NULL, d.arg, 3, &g));
    assert_int_equal(h->n, mark);
    assert_int_equal(clock, stood);
    kiln_module_free(m);
    kiln_context_free(c);
}

static void interpreter(void **state)
{
    (void)state;
    steps_of_a_launch(interp(), "launch(bind lower passes kernel)", 4096);
}

static void processor(void **state)
{
    char cache[100];
    snprintf(cache, sizeof cache, "%s/cache", root);
    const char *miss = "launch(bind lower passes emit cache compiler load cache kernel)";
    (void)state;
    steps_of_a_launch(cpu(NULL, cache), miss, 4096);
    const struct rec *r = nth(&all, KILN_TRACE_CACHE, KILN_TRACE_END, KILN_TRACE_HOST, 0);
    assert_int_equal(r->e.cache, KILN_CACHE_MISS);
    steps_of_a_launch(cpu(NULL, cache), "launch(bind lower passes emit cache load kernel)", 4096);
}

static void executor(void **state)
{
    kiln_options o = KILN_OPTIONS_INIT;
    (void)state;
    o.device = KILN_DEVICE_SIM;
    steps_of_a_launch(context(&o), "launch(bind lower passes emit kernel)", 0);
}

static void host_copies_and_graphs(void **state)
{
    kiln_context *c = interp();
    kiln_diags *g = NULL;
    kiln_buffer *a, *b;
    kiln_stream *s;
    kiln_graph *graph;
    char text[64] = "x";
    (void)state;
    OK(kiln_buffer_alloc(c, 64, &a, &g));
    OK(kiln_buffer_alloc(c, 64, &b, &g));
    OK(kiln_stream_create(c, &s, &g));
    struct heard *h = listen(c, 0);
    OK(kiln_buffer_upload(a, 0, text, 64, NULL, &g));
    OK(kiln_buffer_copy(b, 0, a, 0, 32, NULL, &g));
    OK(kiln_buffer_fill(b, 0, 8, 1, NULL, &g));
    OK(kiln_buffer_download(b, 0, text, 16, NULL, &g));
    assert_string_equal(story(h, 0), "copy copy fill copy");
    static const char *const name[] = {"upload", "copy", "fill", "download"};
    static const uint64_t bytes[] = {64, 32, 8, 16};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(h->v[2 * i + 1].name, name[i]);
        assert_int_equal(h->v[2 * i + 1].e.bytes, bytes[i]);
    }
    size_t mark = h->n;
    OK(kiln_graph_begin(s, &g));
    OK(kiln_buffer_copy(b, 0, a, 0, 32, s, &g));
    OK(kiln_graph_end(s, &graph, &g));
    assert_int_equal(h->v[h->n - 1].e.flags, KILN_TRACE_RECORDED);
    OK(kiln_graph_launch(graph, NULL, &g));
    assert_string_equal(story(h, mark), "copy launch(copy)");
    nested(h);
    kiln_graph_free(graph);
    kiln_stream_free(s);
    kiln_buffer_free(a);
    kiln_buffer_free(b);
    kiln_context_free(c);
}

struct worker {
    kiln_kernel *k;
    struct data d;
};
static void *launches(void *arg)
{
    struct worker *w = arg;
    for (int i = 0; i < 20; i++)
        if (kiln_launch(w->k, NULL, w->d.arg, 3, NULL))
            return arg;
    return NULL;
}

static void eight_threads(kiln_context *c)
{
    enum { N = 8 };
    static struct worker w[N];
    pthread_t t[N];
    kiln_module *m = compile(c, add_text);
    struct heard *h = listen(c, KILN_TRACE_WORKERS);
    for (int i = 0; i < N; i++) {
        fill(&w[i].d, 100 + i);
        w[i].k = kiln_module_kernel(m, "add");
        assert_int_equal(pthread_create(&t[i], NULL, launches, &w[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        assert_null(bad);
        right(&w[i].d);
    }
    nested(h);
    assert_int_equal(count(h, KILN_TRACE_LAUNCH, KILN_TRACE_HOST), N * 20);
    assert_int_equal(count(h, KILN_TRACE_KERNEL, KILN_TRACE_HOST), N * 20);
    kiln_module_free(m);
    kiln_context_free(c);
}

static void several_threads(void **state)
{
    char cache[100];
    (void)state;
    snprintf(cache, sizeof cache, "%s/cache", root);
    eight_threads(interp());
    eight_threads(cpu(NULL, cache));
}

/* The text of a launch with more arguments than it has room for says that it goes on. */
static void many_arguments(void **state)
{
    enum { N = 12 };
    static char text[2000], name[N][40];
    size_t n = 0;
    float y[4] = {0};
    const int64_t four[1] = {4};
    kiln_arg arg[N + 1] = {{.name = "y",
                            .kind = KILN_ARG_TENSOR,
                            .u.tensor = {.data = y, .dtype = KILN_F32, .ndim = 1, .shape = four}}};
    kiln_context *c = interp();
    kiln_diags *g = NULL;
    (void)state;
    n += (size_t)snprintf(text, sizeof text, "kernel k(f32 y[4]");
    for (int i = 0; i < N; i++) {
        snprintf(name[i], sizeof name[i], "a_number_with_a_long_name_%d", i);
        n += (size_t)snprintf(text + n, sizeof text - n, ", f32 %s", name[i]);
        arg[i + 1] = (kiln_arg){.name = name[i], .kind = KILN_ARG_FLOAT, .u.f = i};
    }
    n += (size_t)snprintf(text + n, sizeof text - n, ") grid(1)\n{\n    y[0] = 0");
    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " + %s", name[i]);
    snprintf(text + n, sizeof text - n, ";\n}\n");
    kiln_module *m = compile(c, text);
    struct heard *h = listen(c, 0);
    OK(kiln_launch(kiln_module_kernel(m, "k"), NULL, arg, N + 1, &g));
    assert_true(y[0] == 66);
    const char *detail = nth(h, KILN_TRACE_KERNEL, KILN_TRACE_END, KILN_TRACE_HOST, 0)->detail;
    assert_int_equal(strlen(detail), KL_TRACE_DETAIL - 1);
    assert_string_equal(detail + KL_TRACE_DETAIL - 4, "...");
    assert_memory_equal(detail, "y=4:f32 a_number_with_a_long_name_0=0 ", 38);
    kiln_module_free(m);
    kiln_context_free(c);
}

static void wrong_use(void **state)
{
    kiln_context *c = interp();
    kiln_diags *g = NULL;
    (void)state;
    assert_int_equal(kiln_context_trace(NULL, 0, hear, &all, NULL), KILN_E_ARG);
    assert_int_equal(kiln_context_trace(c, 64, hear, &all, &g), KILN_E_ARG);
    said(g, "K1809", "unknown flags", NULL);
    assert_string_equal(kiln_trace_kind_name(KILN_TRACE_COMPILER), "compiler");
    assert_string_equal(kiln_trace_kind_name((kiln_trace_kind)99), "?");
    /* one listener after the other */
    listen(c, 0);
    listen(c, KILN_TRACE_WORKERS | KILN_TRACE_DEVICE_TIMES);
    kiln_context_free(c);
}

/* ---- two clocks ---- */

static void clocks_together(void **state)
{
    struct kl_clockmap m;
    (void)state;
    /* the first comparison leaves 4 us open, the second 2, and both agree on [101, 102] us */
    kl_clock_map(&(struct kl_clockpoint){0, 1000100000, 1000104000},
                 &(struct kl_clockpoint){1e6, 1001100000 - 1000, 1001100000 + 2000}, &m);
    assert_true(m.slope == 0);
    assert_int_equal(kl_clock_host(&m, 0), 1000101000);
    assert_int_equal(kl_clock_host(&m, 5e5), 1000601000);
    assert_true(m.error >= 1500 && m.error < 1600);
    /* a millisecond of the device is 1.0001 of the host: no one distance fits 10 s */
    kl_clock_map(&(struct kl_clockpoint){0, 1000, 3000},
                 &(struct kl_clockpoint){1e10, 10001001000, 10001003000}, &m);
    assert_true(m.slope > 0.99e-4 && m.slope < 1.01e-4);
    assert_int_equal(kl_clock_host(&m, 0), 2000);
    assert_true(llabs((int64_t)kl_clock_host(&m, 1e10) - INT64_C(10001002000)) <= 2);
    assert_true(m.error >= 1500 && m.error < 2200);
    /* no time between them */
    kl_clock_map(&(struct kl_clockpoint){0, 100, 200}, &(struct kl_clockpoint){0, 9000, 9100}, &m);
    assert_true(m.slope == 0);
}

/* ---- CUDA ---- */

/* Spans of a stream follow each other. */
static void in_order(const struct heard *h)
{
    for (size_t i = 0; i < h->n; i++)
        for (size_t j = i + 1; j < h->n; j++) {
            const kiln_trace_event *a = &h->v[i].e, *b = &h->v[j].e;
            if (a->place == KILN_TRACE_DEVICE && b->place == KILN_TRACE_DEVICE &&
                a->stream == b->stream)
                assert_true(a->end_ns <= b->begin_ns);
        }
}

static void device_times(void **state)
{
    kiln_context *c = cuda();
    kiln_diags *g = NULL;
    kiln_stream *s;
    static struct on_device v;
    (void)state;
    struct heard *h = listen(c, KILN_TRACE_DEVICE_TIMES);
    OK(kiln_stream_create(c, &s, &g));
    kiln_module *m = compile(c, add_text);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    to_device(c, &v, 500);
    for (int i = 0; i < 3; i++)
        OK(kiln_launch(k, i == 2 ? s : NULL, v.d.arg, 3, &g));
    from_device(&v);
    assert_int_equal(count(h, KILN_TRACE_KERNEL, KILN_TRACE_DEVICE), 0); /* not yet known */
    OK(kiln_sync(c, &g));
    v.d.n[0] = 500;
    right(&v.d);
    nested(h);
    in_order(h);
    assert_int_equal(count(h, KILN_TRACE_KERNEL, KILN_TRACE_DEVICE), 3);
    assert_int_equal(count(h, KILN_TRACE_COPY, KILN_TRACE_DEVICE), 4);
    assert_int_equal(count(h, KILN_TRACE_COPY, KILN_TRACE_HOST), 4);
    assert_int_equal(count(h, KILN_TRACE_CLOCK, KILN_TRACE_HOST), 1);
    for (size_t i = 0; i < 3; i++) {
        const struct rec *l = nth(h, KILN_TRACE_LAUNCH, KILN_TRACE_END, KILN_TRACE_HOST, i);
        const struct rec *d = nth(h, KILN_TRACE_KERNEL, KILN_TRACE_SPAN, KILN_TRACE_DEVICE, i);
        assert_int_equal(l->e.id, d->e.id);
        assert_string_equal(d->name, "add");
        assert_string_equal(d->detail, "y=500:f32 a=500:f32 b=500:f32");
        assert_int_equal(d->e.bytes, 3 * 4 * 500);
        assert_int_equal(d->e.stream, i == 2 ? 1 : 0);
        assert_int_equal(l->e.stream, d->e.stream);
        assert_true(d->e.error_ns > 0);
    }
    /* the second and third launches were like the first: nothing was bound */
    assert_int_equal(count(h, KILN_TRACE_BIND, KILN_TRACE_HOST), 1);
    kiln_stream_free(s);
    drop_device(&v);
    kiln_module_free(m);
    kiln_context_free(c); /* with the listener */
}

/* Host arrays: what a launch does with them is seen, with their names. */
static void arrays_of_the_host(void **state)
{
    kiln_context *c = cuda();
    kiln_diags *g = NULL;
    struct data d;
    (void)state;
    kiln_module *m = compile(c, add_text);
    fill(&d, 500);
    struct heard *h = listen(c, KILN_TRACE_DEVICE_TIMES);
    OK(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, &g));
    OK(kiln_context_trace(c, 0, NULL, NULL, &g));
    right(&d);
    assert_string_equal(story(h, 0), "launch(bind lower passes emit compiler load memory copy "
                                     "memory copy memory copy copy wait)");
    assert_int_equal(count(h, KILN_TRACE_COPY, KILN_TRACE_DEVICE), 4);
    assert_string_equal(nth(h, KILN_TRACE_COPY, KILN_TRACE_SPAN, KILN_TRACE_DEVICE, 3)->name,
                        "download");
    nested(h);
    in_order(h);
    kiln_module_free(m);
    kiln_context_free(c);
}

/* Nobody asks for device times: no event is made. */
static void costs_nothing(void **state)
{
    kiln_context *c = cuda();
    kiln_diags *g = NULL;
    static struct on_device v;
    long before = hook.calls("cuEventRecord");
    (void)state;
    kiln_module *m = compile(c, add_text);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    to_device(c, &v, 500);
    OK(kiln_launch(k, NULL, v.d.arg, 3, &g));
    long calls = hook.calls(NULL);
    OK(kiln_launch(k, NULL, v.d.arg, 3, &g));
    long each = hook.calls(NULL) - calls;
    struct heard *h = listen(c, 0);
    calls = hook.calls(NULL);
    OK(kiln_launch(k, NULL, v.d.arg, 3, &g));
    assert_int_equal(hook.calls(NULL) - calls, each);
    OK(kiln_sync(c, &g));
    assert_string_equal(story(h, 0), "launch wait");
    assert_int_equal(hook.calls("cuEventRecord"), before);
    drop_device(&v);
    kiln_module_free(m);
    kiln_context_free(c);
}

static void graphs(void **state)
{
    kiln_context *c = cuda();
    kiln_diags *g = NULL;
    kiln_stream *s;
    kiln_graph *graph;
    static struct on_device v;
    (void)state;
    kiln_module *m = compile(c, add_text);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    OK(kiln_stream_create(c, &s, &g));
    to_device(c, &v, 500);
    struct heard *h = listen(c, KILN_TRACE_DEVICE_TIMES);
    OK(kiln_graph_begin(s, &g));
    OK(kiln_launch(k, s, v.d.arg, 3, &g));
    OK(kiln_launch(k, s, v.d.arg, 3, &g));
    assert_int_equal(kiln_context_trace(c, 0, NULL, NULL, &g), KILN_E_ARG);
    said(g, "K1818", "kiln_context_trace", NULL);
    g = NULL;
    OK(kiln_graph_end(s, &graph, &g));
    assert_int_equal(kiln_graph_count(graph), 2); /* no events among them */
    OK(kiln_graph_launch(graph, s, &g));
    OK(kiln_sync(c, &g));
    assert_int_equal(nth(h, KILN_TRACE_LAUNCH, KILN_TRACE_END, KILN_TRACE_HOST, 0)->e.flags,
                     KILN_TRACE_RECORDED);
    assert_int_equal(count(h, KILN_TRACE_KERNEL, KILN_TRACE_DEVICE), 1);
    const struct rec *r = nth(h, KILN_TRACE_KERNEL, KILN_TRACE_SPAN, KILN_TRACE_DEVICE, 0);
    assert_string_equal(r->name, "a graph of 2: add, add");
    assert_int_equal(r->e.id,
                     nth(h, KILN_TRACE_LAUNCH, KILN_TRACE_END, KILN_TRACE_HOST, 2)->e.id);
    nested(h);
    kiln_graph_free(graph);
    kiln_stream_free(s);
    drop_device(&v);
    kiln_module_free(m);
    kiln_context_free(c);
}

/* More than are kept: a launch tells them, and every one is told once. */
static void many(void **state)
{
    kiln_context *c = cuda();
    kiln_diags *g = NULL;
    static struct on_device v;
    (void)state;
    kiln_module *m = compile(c, add_text);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    to_device(c, &v, 500);
    hook.norun(1);
    struct heard *h = listen(c, KILN_TRACE_DEVICE_TIMES);
    for (int i = 0; i < KL_TRACE_MOST + 10; i++)
        OK(kiln_launch(k, NULL, v.d.arg, 3, &g));
    assert_int_equal(count(h, KILN_TRACE_KERNEL, KILN_TRACE_DEVICE), KL_TRACE_MOST);
    OK(kiln_sync(c, &g));
    assert_int_equal(count(h, KILN_TRACE_KERNEL, KILN_TRACE_DEVICE), KL_TRACE_MOST + 10);
    assert_int_equal(count(h, KILN_TRACE_CLOCK, KILN_TRACE_HOST), 2);
    drop_device(&v);
    kiln_module_free(m);
    kiln_context_free(c);
}

/* Whatever the driver refuses, launches go on, and nothing is left behind. */
static void driver_fails(void **state)
{
    static const char *const call[] = {"cuEventCreate", "cuEventRecord", "cuEventSynchronize",
                                       "cuEventElapsedTime", "cuStreamCreate"};
    (void)state;
    for (size_t i = 0; i < 5; i++)
        for (long n = 1; n < 20; n++) {
            kiln_context *c = cuda();
            kiln_diags *g = NULL;
            static struct on_device v;
            kiln_module *m = compile(c, add_text);
            kiln_kernel *k = kiln_module_kernel(m, "add");
            to_device(c, &v, 500);
            hook.inject(call[i], n, KL_CU_INVALID_VALUE);
            struct heard *h = listen(c, KILN_TRACE_DEVICE_TIMES);
            for (int j = 0; j < 3; j++)
                OK(kiln_launch(k, NULL, v.d.arg, 3, &g));
            OK(kiln_sync(c, &g));
            OK(kiln_context_trace(c, 0, NULL, NULL, &g));
            nested(h);
            assert_true(count(h, KILN_TRACE_KERNEL, KILN_TRACE_DEVICE) <= 3);
            hook.inject(NULL, 0, 0);
            from_device(&v);
            v.d.n[0] = 500;
            right(&v.d);
            drop_device(&v);
            kiln_module_free(m);
            kiln_context_free(c);
            assert_int_equal(hook.live(), 0);
        }
}

/* Listeners come and go while others launch: no launch fails, and nothing is left behind. */
static void comes_and_goes(void **state)
{
    enum { N = 2 };
    static struct worker w[N];
    static struct on_device v[N];
    kiln_context *c = cuda();
    kiln_diags *g = NULL;
    pthread_t t[N];
    (void)state;
    kiln_module *m = compile(c, add_text);
    for (int i = 0; i < N; i++) {
        to_device(c, &v[i], 200);
        w[i].d = v[i].d;
        for (int k = 0; k < 3; k++)
            w[i].d.arg[k].u.tensor.shape = w[i].d.n;
        w[i].k = kiln_module_kernel(m, "add");
        assert_int_equal(pthread_create(&t[i], NULL, launches, &w[i]), 0);
    }
    for (int i = 0; i < 20; i++) {
        OK(kiln_context_trace(c, KILN_TRACE_DEVICE_TIMES, hear, &all, &g));
        OK(kiln_context_trace(c, 0, NULL, NULL, &g));
    }
    for (int i = 0; i < N; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
    OK(kiln_sync(c, &g));
    for (int i = 0; i < N; i++) {
        from_device(&v[i]);
        v[i].d.n[0] = 200;
        right(&v[i].d);
        drop_device(&v[i]);
    }
    kiln_module_free(m);
    kiln_context_free(c);
}

/* Eight threads with streams of their own; half of them wait for all, so that one tells what others
 * queue.  Everything is told once, by the id of its launch. */
struct streamer {
    kiln_context *c;
    kiln_kernel *k;
    struct on_device *v;
    int number;
};
static void *on_own_stream(void *arg)
{
    struct streamer *w = arg;
    kiln_stream *s;
    if (kiln_stream_create(w->c, &s, NULL))
        return arg;
    for (int i = 0; i < 20; i++)
        if (kiln_launch(w->k, s, w->v->d.arg, 3, NULL) ||
            (i % 4 == 3 && (w->number % 2 ? kiln_sync(w->c, NULL) : kiln_stream_sync(s, NULL))))
            return arg;
    kiln_stream_free(s);
    return NULL;
}

static void threads_and_streams(void **state)
{
    enum { N = 8 };
    static struct streamer w[N];
    static struct on_device v[N];
    static size_t told[100000];
    kiln_context *c = cuda();
    kiln_diags *g = NULL;
    pthread_t t[N];
    (void)state;
    kiln_module *m = compile(c, add_text);
    for (int i = 0; i < N; i++)
        to_device(c, &v[i], 200);
    struct heard *h = listen(c, KILN_TRACE_DEVICE_TIMES);
    for (int i = 0; i < N; i++) {
        w[i] = (struct streamer){c, kiln_module_kernel(m, "add"), &v[i], i};
        assert_int_equal(pthread_create(&t[i], NULL, on_own_stream, &w[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
    OK(kiln_context_trace(c, 0, NULL, NULL, &g));
    assert_int_equal(count(h, KILN_TRACE_LAUNCH, KILN_TRACE_HOST), N * 20);
    assert_int_equal(count(h, KILN_TRACE_KERNEL, KILN_TRACE_DEVICE), N * 20);
    nested(h);
    memset(told, 0, sizeof told);
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].e.kind == KILN_TRACE_KERNEL && h->v[i].e.place == KILN_TRACE_DEVICE) {
            assert_true(h->v[i].e.id < 100000 && h->v[i].e.stream >= 1 && h->v[i].e.stream <= N);
            assert_int_equal(told[h->v[i].e.id]++, 0);
        }
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].e.kind == KILN_TRACE_LAUNCH && h->v[i].e.phase == KILN_TRACE_END)
            assert_int_equal(told[h->v[i].e.id], 1);
    for (int i = 0; i < N; i++) {
        from_device(&v[i]);
        v[i].d.n[0] = 200;
        right(&v[i].d);
        drop_device(&v[i]);
    }
    kiln_module_free(m);
    kiln_context_free(c);
    assert_int_equal(hook.live(), 0);
}

int main(void)
{
#define CUDA_TEST(f) cmocka_unit_test_setup_teardown(f, fresh, clean)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interpreter),  cmocka_unit_test(processor),
        cmocka_unit_test(executor),     cmocka_unit_test(host_copies_and_graphs),
        cmocka_unit_test(several_threads), cmocka_unit_test(wrong_use),
        cmocka_unit_test(many_arguments),
        cmocka_unit_test(clocks_together), CUDA_TEST(device_times),
        CUDA_TEST(arrays_of_the_host),  CUDA_TEST(costs_nothing),
        CUDA_TEST(graphs),              CUDA_TEST(many),
        CUDA_TEST(driver_fails),        CUDA_TEST(comes_and_goes),
        CUDA_TEST(threads_and_streams),
    };
    return cmocka_run_group_tests(tests, find_fake, teardown);
}
