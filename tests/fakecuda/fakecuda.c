/* fakecuda.c - a CUDA driver for tests: libcuda-fake.so.
 *
 * It exports the entry points of src/rt/cuda.def and executes PTX with src/sim, so that the whole
 * path of the library is tested where there is no GPU.  It is stricter than a real driver:
 *
 *   - work is queued and done only when something waits for it, each stream as far as it must, so
 *     that a missing wait or memory freed too early shows;
 *   - device memory cannot be touched by the host: its pages are locked but while work is done;
 *   - calls without a current context fail; what is not freed is counted;
 *   - a capture is spoilt by what the driver forbids meanwhile, and a graph runs in the order that
 *     its dependencies allow and is furthest from the order of the calls.
 *
 * Environment: FAKECUDA_DEVICES, FAKECUDA_NAME (of each), FAKECUDA_DRIVER (12080), FAKECUDA_CC (90),
 * FAKECUDA_MEMORY (bytes), FAKECUDA_NORUN (launches do nothing), FAKECUDA_VERBOSE (findings to standard error),
 * FAKECUDA_CLOCK (events have the time of day, not a count of operations),
 * FAKECUDA_FAIL=SYMBOL:N:CODE (the N-th call fails; `*` is any but the popping of a context).
 * Hooks: fakecuda.h. */
#define _GNU_SOURCE
#include "fakecuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "rt/cuda.h"
#include "sim/sim.h"

#define EXPORT __attribute__((visibility("default")))
#define CUDA(field, symbol, need, param) EXPORT int symbol param;
#include "rt/cuda.def"

enum {
    OK = 0, INVALID_CONTEXT = 201, ILLEGAL_STATE = 401, CAPTURE = 900, SPOILT = 901, UNMATCHED = 903,
    UNJOINED = 904, ISOLATION = 905, IMPLICIT = 906, CAPTURED_EVENT = 907, WRONG_THREAD = 908,
    MAX_DEVICES = 8, STACK = 16
};
enum { GLOBAL, THREAD_LOCAL, RELAXED };

struct device {
    int ordinal, retained;
    size_t used;
};
struct memory {
    struct memory *next;
    struct device *dev; /* NULL: pinned memory of the host */
    char *at;
    size_t size, mapped;
};
struct module {
    int refs;
    kl_env env;
    kl_arena a;
    kl_srcmap src;
    kl_sim *sim;
};
struct function {
    struct function *next;
    struct module *mod;
    const kl_sim_entry *entry;
    int dynamic, large_cluster; /* opted in */
};
struct before { /* nodes of a graph that must have run */
    size_t *v, n;
};
struct stream {
    struct stream *next;
    unsigned flags;
    struct capture *cap;
    struct before last;
};
struct event {
    struct event *next;
    uint64_t seq;
    double ms;
    bool done, captured;
    struct capture *cap; /* NULL: it has ended, or there was none */
    struct before last;
};
enum kind { LAUNCH, COPY, FILL, RECORD, WAIT, GRAPH };
struct op {
    struct op *next;
    enum kind kind;
    uint64_t seq;
    struct stream *stream;
    bool running;
    struct device *dev; /* of a launch: it touches no other's memory */
    struct function *f;
    unsigned grid[3], block[3], shared;
    uint64_t *param;
    char *to;
    const char *from;
    size_t bytes, pitch, width, height;
    unsigned value, size;
    struct event *event;
    struct graph *graph; /* instantiated */
};
struct node {
    struct op op;
    struct before before;
};
struct graph { /* of a capture, of the caller, or instantiated */
    struct graph *next;
    struct node *node;
    size_t n;
};
struct capture {
    struct capture *next;
    struct stream *origin;
    struct graph *graph;
    int mode;
    pthread_t thread;
    bool spoilt;
};

static struct {
    pthread_mutex_t lock;
    bool ready;
    int devices, driver, cc, code, norun, verbose, timed, sticky, live_modules;
    struct stream *streams;
    struct event *events;
    size_t memory;
    struct device dev[MAX_DEVICES];
    struct memory *mem;
    struct function *functions;
    struct capture *captures;
    struct graph *graphs;
    struct op *first, **last;
    uint64_t seq;
    char fail[64];
    long fail_at, ncalls, launches;
    double clock;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &g.first};

static _Thread_local struct device *stack[STACK];
static _Thread_local int depth, thread_mode;

static struct count {
    const char *name;
    long n;
} counts[] = {
#define CUDA(field, symbol, need, param) {#symbol, 0},
#include "rt/cuda.def"
};

static long number(const char *name, long other)
{
    const char *s = getenv(name);
    return s && *s ? strtol(s, NULL, 0) : other;
}

/* ---- each call ---- */

static void settings(void)
{
    if (g.ready)
        return;
    g.ready = true;
    g.devices = (int)number("FAKECUDA_DEVICES", 1);
    g.driver = (int)number("FAKECUDA_DRIVER", 12080);
    g.cc = (int)number("FAKECUDA_CC", 90);
    g.memory = (size_t)number("FAKECUDA_MEMORY", 1L << 30);
    g.norun = (int)number("FAKECUDA_NORUN", 0);
    g.verbose = (int)number("FAKECUDA_VERBOSE", 0);
    g.timed = (int)number("FAKECUDA_CLOCK", 0);
    for (int i = 0; i < MAX_DEVICES; i++)
        g.dev[i].ordinal = i;
    const char *f = getenv("FAKECUDA_FAIL");
    if (f && sscanf(f, "%63[A-Za-z0-9_]:%ld:%d", g.fail, &g.fail_at, &g.code) != 3)
        g.fail[0] = 0;
}

/* Count the call; 0, or what it is told to fail with. */
static int begin(const char *name, bool context)
{
    pthread_mutex_lock(&g.lock);
    settings();
    g.ncalls++;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (strcmp(counts[i].name, name) == 0)
            counts[i].n++;
    bool any = strcmp(g.fail, "*") == 0 && strcmp(name, "cuCtxPopCurrent_v2") != 0 &&
               strcmp(name, "cuThreadExchangeStreamCaptureMode") != 0;
    if ((any || strcmp(g.fail, name) == 0) && g.fail_at > 0 && --g.fail_at == 0)
        return g.code;
    if (context && !depth)
        return INVALID_CONTEXT;
    return context ? g.sticky : 0;
}
static int end(int r)
{
    pthread_mutex_unlock(&g.lock);
    return r;
}
#define BEGIN(context)                                                                             \
    do {                                                                                           \
        int r_ = begin(__func__, context);                                                         \
        if (r_)                                                                                    \
            return end(r_);                                                                        \
    } while (0)

/* ---- doing queued work ---- */

static void lock_pages(int prot)
{
    for (struct memory *m = g.mem; m; m = m->next)
        if (m->dev)
            mprotect(m->at, m->mapped, prot);
}

static kiln_status guarded_run(const struct op *o, const kl_sim_launch *l, kl_diags *d,
                               kl_env *env)
{
    const kl_sim_options opt = {.checks = KL_SIM_CHECKS};
    jmp_buf here;
    env->fail = &here;
    if (setjmp(here))
        return env->status;
    kl_diags_use(d, env, &o->f->mod->src);
    return kl_sim_run(o->f->mod->sim, l, &opt, NULL, NULL, d, env);
}

static void launch(const struct op *o)
{
    uint32_t n = 0;
    kl_env env = {.al = &kl_alloc_libc};
    kl_diags *d = kl_diags_new(&kl_alloc_libc);
    for (struct memory *m = g.mem; m; m = m->next)
        n++;
    kl_sim_buffer *b = calloc(n + 1, sizeof *b);
    n = 0;
    for (struct memory *m = g.mem; m; m = m->next)
        if (!m->dev || m->dev == o->dev)
            b[n++] = (kl_sim_buffer){m->at, m->size, true};
    const kl_sim_launch l = {.entry = o->f->entry->name,
                             .grid = {o->grid[0], o->grid[1], o->grid[2]},
                             .block = {o->block[0], o->block[1], o->block[2]},
                             .dynamic_shared = o->shared,
                             .param = o->param,
                             .param_bytes = o->f->entry->param_bytes,
                             .buffer = b,
                             .nbuffer = n};
    if (guarded_run(o, &l, d, &env))
        g.sticky = KL_CU_ILLEGAL_ADDRESS;
    if (g.verbose) {
        char text[4000];
        kiln_diags_render(d, 0, text, sizeof text);
        fputs(text, stderr);
    }
    kl_diags_use(d, NULL, NULL);
    kiln_diags_free(d);
    free(b);
    g.launches++;
}

static void fill(const struct op *o)
{
    for (size_t y = 0; y < o->height; y++)
        for (size_t x = 0; x < o->width; x++)
            memcpy(o->to + y * o->pitch + x * o->size, &o->value, o->size);
}

static bool on_device(const void *p, size_t n)
{
    for (struct memory *m = g.mem; m; m = m->next)
        if (m->dev && (const char *)p >= m->at && (const char *)p + n <= m->at + m->size)
            return true;
    return false;
}

static void execute(const struct op *o);

static void run_graph(const struct graph *gr)
{
    bool *done = calloc(gr->n + 1, sizeof *done);
    for (size_t left = gr->n; left; left--) {
        size_t i = gr->n;
        for (bool ready = false; !ready;) { /* the last one that is */
            const struct node *n = &gr->node[--i];
            ready = !done[i];
            for (size_t j = 0; j < n->before.n; j++)
                ready &= done[n->before.v[j]];
        }
        execute(&gr->node[i].op);
        done[i] = true;
    }
    free(done);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void execute(const struct op *o)
{
    if (g.sticky)
        return;
    g.clock += 0.01;
    switch (o->kind) {
    case LAUNCH: launch(o); break;
    case COPY: memcpy(o->to, o->from, o->bytes); break;
    case FILL: fill(o); break;
    case RECORD:
        if (o->event->seq == o->seq) {
            o->event->done = true;
            o->event->ms = g.timed ? now_ms() : g.clock;
        }
        break;
    case WAIT: break;
    case GRAPH: run_graph(o->graph); break;
    }
}

static struct op *op_of(uint64_t seq)
{
    struct op *o = g.first;
    while (o && o->seq != seq)
        o = o->next;
    return o;
}

/* Do an operation, and before it what it must wait for.  The default stream waits for all
 * streams, and they for it. */
static void run(struct op *o)
{
    if (o->running)
        return;
    o->running = true;
    for (struct op *p = g.first; p && p != o;) {
        bool needed = !p->running && (p->stream == o->stream || !p->stream || !o->stream);
        if (needed) {
            run(p); /* frees it, and perhaps others: begin again */
            p = g.first;
        } else {
            p = p->next;
        }
    }
    if (o->kind == WAIT && o->value) {
        struct op *r = op_of(o->pitch);
        if (r)
            run(r);
    }
    execute(o);
    struct op **p = &g.first;
    while (*p != o)
        p = &(*p)->next;
    *p = o->next;
    if (g.last == &o->next)
        g.last = p;
    free(o->param);
    free(o);
}

static int run_stream(struct stream *s, bool all)
{
    lock_pages(PROT_READ | PROT_WRITE);
    for (struct op *o = g.first; o;) {
        if (all || o->stream == s || (!s && o->stream)) {
            run(o);
            o = g.first;
        } else {
            o = o->next;
        }
    }
    lock_pages(PROT_NONE);
    return g.sticky;
}

/* ---- captures ---- */

static void unite(struct before *to, const struct before *more)
{
    to->v = realloc(to->v, (to->n + more->n + 1) * sizeof *to->v);
    for (size_t i = 0; i < more->n; i++) {
        bool has = false;
        for (size_t j = 0; j < to->n; j++)
            has |= to->v[j] == more->v[i];
        if (!has)
            to->v[to->n++] = more->v[i];
    }
}
static void become(struct before *to, const struct before *from)
{
    to->n = 0;
    unite(to, from);
}

static struct graph *new_graph(void)
{
    struct graph *gr = calloc(1, sizeof *gr);
    gr->next = g.graphs;
    g.graphs = gr;
    return gr;
}
static int drop_graph(struct graph *gr)
{
    struct graph **p = &g.graphs;
    while (*p && *p != gr)
        p = &(*p)->next;
    if (!*p)
        return KL_CU_INVALID_VALUE;
    *p = gr->next;
    for (size_t i = 0; i < gr->n; i++) {
        free(gr->node[i].op.param);
        free(gr->node[i].before.v);
    }
    free(gr->node);
    free(gr);
    return OK;
}
static size_t param_size(const struct op *o)
{
    return o->param ? o->f->entry->param_bytes + 8 : 0;
}
static void add_node(struct graph *gr, struct op o, const struct before *before)
{
    gr->node = realloc(gr->node, (gr->n + 1) * sizeof *gr->node);
    gr->node[gr->n] = (struct node){.op = o};
    unite(&gr->node[gr->n++].before, before);
}

static int spoil(struct capture *c, int code)
{
    c->spoilt = true;
    return code;
}
/* Something that a capture forbids to all streams that wait for it: code, or OK. */
static int spoil_streams(bool also_apart, int code)
{
    int r = OK;
    for (struct stream *s = g.streams; s; s = s->next)
        if (s->cap && (also_apart || !(s->flags & KL_CU_STREAM_APART)))
            r = spoil(s->cap, code);
    return r;
}
/* A call that no capture sees, as an allocation. */
static int unsafe(void)
{
    int r = OK;
    for (struct capture *c = g.captures; c; c = c->next) {
        bool mine = pthread_equal(c->thread, pthread_self());
        if (thread_mode != RELAXED && ((mine && c->mode != RELAXED) ||
                                       (!mine && c->mode == GLOBAL && thread_mode == GLOBAL)))
            r = spoil(c, CAPTURE);
    }
    return r;
}

static int begin_capture(struct stream *s, int mode)
{
    if (!s)
        return CAPTURE;
    if (s->cap)
        return ILLEGAL_STATE;
    struct capture *c = calloc(1, sizeof *c);
    *c = (struct capture){g.captures, s, new_graph(), mode, pthread_self(), false};
    g.captures = s->cap = c;
    s->last.n = 0;
    return OK;
}

/* Everything lies before the end of the stream that began. */
static bool joined(const struct graph *gr, const struct before *end)
{
    bool *seen = calloc(gr->n + 1, sizeof *seen), all = true;
    for (size_t i = 0; i < end->n; i++)
        seen[end->v[i]] = true;
    for (size_t i = gr->n; i-- > 0;) {
        all &= seen[i];
        for (size_t j = 0; j < gr->node[i].before.n; j++)
            seen[gr->node[i].before.v[j]] |= seen[i];
    }
    free(seen);
    return all;
}

static int end_capture(struct stream *s, struct graph **out)
{
    struct capture *c = s ? s->cap : NULL, **p = &g.captures;
    *out = NULL;
    if (!c)
        return ILLEGAL_STATE;
    if (c->origin != s)
        return spoil(c, UNMATCHED);
    if (c->mode != RELAXED && !pthread_equal(c->thread, pthread_self()))
        return WRONG_THREAD;
    int r = c->spoilt ? SPOILT : joined(c->graph, &s->last) ? OK : UNJOINED;
    for (struct stream *o = g.streams; o; o = o->next)
        if (o->cap == c)
            o->cap = NULL;
    for (struct event *e = g.events; e; e = e->next)
        if (e->cap == c)
            e->cap = NULL;
    if (r)
        drop_graph(c->graph);
    else
        *out = c->graph;
    while (*p != c)
        p = &(*p)->next;
    *p = c->next;
    free(c);
    return r;
}

/* An operation on a stream that is captured: it is recorded, not run. */
static int record(struct op o)
{
    struct stream *s = o.stream;
    struct capture *c = s->cap;
    struct event *e = o.event;
    if (c->spoilt) {
        free(o.param);
        return SPOILT;
    }
    if (o.kind == RECORD) {
        e->captured = true;
        e->cap = c;
        become(&e->last, &s->last);
    } else if (o.kind == WAIT) {
        if (e->captured ? e->cap != c : e->seq != 0)
            return spoil(c, ISOLATION);
        unite(&s->last, &e->last);
    } else {
        const struct before me = {&(size_t){c->graph->n}, 1};
        add_node(c->graph, o, &s->last);
        become(&s->last, &me);
    }
    return OK;
}

static int queue(struct op o)
{
    if (o.stream && !o.stream->cap && o.kind == WAIT && o.event->captured) {
        if (!o.event->cap)
            return CAPTURED_EVENT;
        o.stream->cap = o.event->cap; /* the capture goes on there, too */
        o.stream->last.n = 0;
    }
    if (o.stream && o.stream->cap)
        return record(o);
    int bad = o.stream ? OK : spoil_streams(false, IMPLICIT);
    if (bad) {
        free(o.param);
        return bad;
    }
    struct op *p = malloc(sizeof *p);
    *p = o;
    p->seq = ++g.seq;
    p->next = NULL;
    if (p->kind == RECORD) {
        p->event->seq = p->seq;
        p->event->done = p->event->captured = false;
    }
    *g.last = p;
    g.last = &p->next;
    return OK;
}

/* ---- hooks ---- */

EXPORT void fakecuda_fail(const char *symbol, long nth, int code)
{
    pthread_mutex_lock(&g.lock);
    settings();
    snprintf(g.fail, sizeof g.fail, "%s", symbol ? symbol : "");
    g.fail_at = nth;
    g.code = code;
    pthread_mutex_unlock(&g.lock);
}
EXPORT long fakecuda_calls(const char *symbol)
{
    for (size_t i = 0; symbol && i < sizeof counts / sizeof *counts; i++)
        if (strcmp(counts[i].name, symbol) == 0)
            return counts[i].n;
    return g.ncalls;
}
/* FAKECUDA_REPORT=PREFIX: how often the functions whose names begin so were called. */
__attribute__((destructor)) static void report(void)
{
    const char *prefix = getenv("FAKECUDA_REPORT");
    for (size_t i = 0; prefix && i < sizeof counts / sizeof *counts; i++)
        if (counts[i].n && strncmp(counts[i].name, prefix, strlen(prefix)) == 0)
            fprintf(stderr, "%s %ld\n", counts[i].name, counts[i].n);
}
EXPORT long fakecuda_live(void)
{
    long n = g.live_modules;
    for (struct stream *s = g.streams; s; s = s->next)
        n++;
    for (struct event *e = g.events; e; e = e->next)
        n++;
    for (struct memory *m = g.mem; m; m = m->next)
        n++;
    for (struct graph *gr = g.graphs; gr; gr = gr->next)
        n++;
    for (struct capture *c = g.captures; c; c = c->next)
        n++;
    for (int i = 0; i < MAX_DEVICES; i++)
        n += g.dev[i].retained;
    return n;
}
EXPORT void fakecuda_set(int devices, int driver, int cc, size_t memory)
{
    settings();
    g.devices = devices;
    g.driver = driver;
    g.cc = cc;
    g.memory = memory;
    g.sticky = 0;
    while (g.first) {
        struct op *o = g.first;
        g.first = o->next;
        free(o->param);
        free(o);
    }
    g.last = &g.first;
}
EXPORT void fakecuda_forget(void)
{
    for (int i = 0; i < MAX_DEVICES; i++)
        g.dev[i].retained = 0;
    g.live_modules = 0;
    while (g.captures) {
        struct capture *c = g.captures;
        g.captures = c->next;
        free(c);
    }
    while (g.graphs)
        drop_graph(g.graphs);
    while (g.streams) {
        struct stream *s = g.streams;
        g.streams = s->next;
        free(s->last.v);
        free(s);
    }
    while (g.events) {
        struct event *e = g.events;
        g.events = e->next;
        free(e->last.v);
        free(e);
    }
    while (g.mem) {
        struct memory *m = g.mem;
        g.mem = m->next;
        if (m->dev) {
            m->dev->used -= m->size;
            munmap(m->at, m->mapped);
        } else {
            free(m->at);
        }
        free(m);
    }
}
EXPORT void fakecuda_norun(int on)
{
    settings();
    g.norun = on;
}
EXPORT long fakecuda_launches(void)
{
    return g.launches;
}
EXPORT void fakecuda_capture(void *stream, int on)
{
    struct graph *gr;
    pthread_mutex_lock(&g.lock);
    if (on)
        begin_capture(stream, GLOBAL);
    else if (!end_capture(stream, &gr))
        drop_graph(gr);
    pthread_mutex_unlock(&g.lock);
}
EXPORT int fakecuda_depth(void)
{
    return depth;
}

/* ---- the driver: start, devices, contexts ---- */

/* cuda.def has what the library calls; code of kiln build calls these, too. */
EXPORT int cuCtxGetDevice(int *device);
EXPORT int cuMemsetD16Async(uint64_t at, unsigned short value, size_t n, void *stream);
EXPORT int cuMemsetD32Async(uint64_t at, unsigned value, size_t n, void *stream);

int cuInit(unsigned flags)
{
    (void)flags;
    BEGIN(false);
    return end(g.devices ? OK : KL_CU_NO_DEVICE);
}
int cuDriverGetVersion(int *version)
{
    BEGIN(false);
    *version = g.driver;
    return end(OK);
}
static const struct {
    int code;
    const char *name, *text;
} errors[] = {{0, "CUDA_SUCCESS", "no error"},
              {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
              {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
              {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
              {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
              {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available"},
              {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
              {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "unsupported toolchain"},
              {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
              {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested"},
              {401, "CUDA_ERROR_ILLEGAL_STATE", "not in this state"},
              {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted when capturing"},
              {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture failed earlier"},
              {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "it did not begin on this stream"},
              {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "a stream was not waited for"},
              {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "a wait for work outside the capture"},
              {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "the legacy stream waits for a capture"},
              {907, "CUDA_ERROR_CAPTURED_EVENT", "the event was captured"},
              {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "another thread captures"},
              {999, "CUDA_ERROR_UNKNOWN", "unknown error"}};
int cuGetErrorName(int code, const char **text)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) {
            *text = errors[i].name;
            return OK;
        }
    *text = NULL;
    return KL_CU_INVALID_VALUE;
}
int cuGetErrorString(int code, const char **text)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) {
            *text = errors[i].text;
            return OK;
        }
    *text = NULL;
    return KL_CU_INVALID_VALUE;
}
int cuDeviceGetCount(int *count)
{
    BEGIN(false);
    *count = g.devices;
    return end(OK);
}
int cuDeviceGet(int *device, int ordinal)
{
    BEGIN(false);
    *device = ordinal;
    return end(ordinal >= 0 && ordinal < g.devices ? OK : 101);
}
int cuDeviceGetName(char *name, int size, int device)
{
    BEGIN(false);
    const char *as = getenv("FAKECUDA_NAME");
    if (as)
        snprintf(name, (size_t)size, "%s", as);
    else
        snprintf(name, (size_t)size, "Fake GPU %d", device);
    return end(OK);
}
int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    BEGIN(false);
    *bytes = g.memory;
    return end(OK);
}
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    BEGIN(false);
    switch (attribute) {
    case KL_CU_DEV_MAJOR: *value = g.cc / 10; break;
    case KL_CU_DEV_MINOR: *value = g.cc % 10; break;
    case KL_CU_DEV_SMS: *value = 4; break;
    case KL_CU_DEV_THREADS: *value = 1024; break;
    case KL_CU_DEV_GRID_X: *value = INT32_MAX; break;
    case KL_CU_DEV_SHARED: *value = 49152; break;
    case KL_CU_DEV_SHARED_OPTIN: *value = 232448; break;
    case KL_CU_DEV_L2: *value = 1 << 20; break;
    default: return end(KL_CU_INVALID_VALUE);
    }
    return end(OK);
}
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    BEGIN(false);
    g.dev[device].retained++;
    *context = &g.dev[device];
    return end(OK);
}
int cuDevicePrimaryCtxRelease_v2(int device)
{
    BEGIN(false);
    g.dev[device].retained--;
    return end(OK);
}
int cuCtxPushCurrent_v2(void *context)
{
    BEGIN(false);
    if (depth == STACK)
        return end(KL_CU_INVALID_VALUE);
    stack[depth++] = context;
    return end(OK);
}
int cuCtxPopCurrent_v2(void **context)
{
    BEGIN(true);
    *context = stack[--depth];
    return end(OK);
}
int cuCtxGetCurrent(void **context)
{
    *context = depth ? stack[depth - 1] : NULL;
    return OK;
}
int cuCtxGetDevice(int *device)
{
    BEGIN(true);
    *device = (int)(stack[depth - 1] - g.dev);
    return end(OK);
}
int cuCtxSynchronize(void)
{
    BEGIN(true);
    int r = spoil_streams(true, CAPTURE);
    return end(r ? r : run_stream(NULL, true));
}

/* ---- code ---- */

struct link {
    char *text;
    size_t n;
    char *log;
    size_t nlog;
};

static int version_of(const char *ptx)
{
    int major = 0, minor = 0;
    const char *p = strstr(ptx, ".version");
    return p && sscanf(p, ".version %d.%d", &major, &minor) == 2 ? major * 10 + minor : 0;
}

static kl_sim *guarded_parse(struct module *m, kl_diags *d, const char *text, size_t n)
{
    jmp_buf here;
    m->env.fail = &here;
    if (setjmp(here))
        return NULL;
    kl_diags_use(d, &m->env, &m->src);
    kl_src_add(&m->src, "jit", kl_strndup(&m->a, text, n), (uint32_t)n, false);
    return kl_sim_parse(&m->a, &m->src, 0, d);
}

/* NULL with the diagnostics in log. */
static struct module *parse(const char *text, size_t n, char *log, size_t nlog)
{
    struct module *m = calloc(1, sizeof *m);
    kl_diags *d = kl_diags_new(&kl_alloc_libc);
    m->env.al = &kl_alloc_libc;
    m->a.env = &m->env;
    m->src.a = &m->a;
    m->sim = guarded_parse(m, d, text, n);
    m->env.fail = NULL;
    if (log && nlog)
        kiln_diags_render(d, 0, log, nlog);
    kl_diags_use(d, NULL, NULL);
    kiln_diags_free(d);
    if (m->sim)
        return m;
    kl_arena_free(&m->a);
    free(m);
    return NULL;
}

int cuLinkCreate_v2(unsigned n, int *option, void **value, void **state)
{
    BEGIN(true);
    struct link *l = calloc(1, sizeof *l);
    for (unsigned i = 0; i < n; i++) {
        if (option[i] == KL_CU_JIT_ERROR)
            l->log = value[i];
        if (option[i] == KL_CU_JIT_ERROR_SIZE)
            l->nlog = (size_t)(uintptr_t)value[i];
    }
    *state = l;
    return end(OK);
}
int cuLinkAddData_v2(void *state, int type, void *data, size_t size, const char *name, unsigned n,
                     int *option, void **value)
{
    struct link *l = state;
    int target = 0;
    (void)name, (void)n, (void)option, (void)value;
    BEGIN(true);
    if (type != KL_CU_INPUT_PTX || !size || ((char *)data)[size - 1])
        return end(KL_CU_INVALID_VALUE);
    if (version_of(data) > kl_cuda_ptx_of_driver(g.driver))
        return end(KL_CU_OLD_DRIVER);
    const char *t = strstr(data, ".target");
    if (t && sscanf(t, ".target sm_%d", &target) == 1 && target > g.cc)
        return end(KL_CU_NO_BINARY);
    struct module *m = parse(data, size - 1, l->log, l->nlog);
    if (!m)
        return end(KL_CU_INVALID_PTX);
    kl_arena_free(&m->a);
    free(m);
    l->text = malloc(size + 8);
    memcpy(l->text, "FAKEBIN ", 8);
    memcpy(l->text + 8, data, size);
    l->n = size + 8;
    return end(OK);
}
int cuLinkComplete(void *state, void **cubin, size_t *size)
{
    struct link *l = state;
    BEGIN(true);
    *cubin = l->text;
    *size = l->n;
    return end(OK);
}
int cuLinkDestroy(void *state)
{
    struct link *l = state;
    pthread_mutex_lock(&g.lock);
    if (l->text)
        memset(l->text, 0x55, l->n); /* the image dies with the state */
    free(l->text);
    free(l);
    return end(OK);
}
int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *option, void **value)
{
    (void)n, (void)option, (void)value;
    BEGIN(true);
    const char *p = image;
    int target = 0, bad = unsafe();
    if (bad)
        return end(bad);
    if (strncmp(p, ".version", 8) == 0) { /* PTX: assembled first */
        const char *t = strstr(p, ".target");
        if (version_of(p) > kl_cuda_ptx_of_driver(g.driver))
            return end(KL_CU_OLD_DRIVER);
        if (t && sscanf(t, ".target sm_%d", &target) == 1 && target > g.cc)
            return end(KL_CU_NO_BINARY);
    } else if (strncmp(p, "FAKEBIN ", 8) != 0) {
        return end(KL_CU_INVALID_IMAGE);
    } else {
        p += 8;
    }
    struct module *m = parse(p, strlen(p), NULL, 0);
    if (!m)
        return end(KL_CU_INVALID_IMAGE);
    g.live_modules++;
    *module = m;
    return end(OK);
}
int cuModuleUnload(void *module)
{
    struct module *m = module;
    BEGIN(true);
    int bad = unsafe();
    if (bad)
        return end(bad);
    run_stream(NULL, true);
    for (struct function **p = &g.functions; *p;) {
        struct function *f = *p;
        if (f->mod == m) {
            *p = f->next;
            free(f);
        } else {
            p = &f->next;
        }
    }
    kl_arena_free(&m->a);
    free(m);
    g.live_modules--;
    return end(OK);
}
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    struct module *m = module;
    BEGIN(true);
    const kl_sim_entry *e = kl_sim_find(m->sim, name);
    if (!e)
        return end(500);
    struct function *f = calloc(1, sizeof *f);
    *f = (struct function){.next = g.functions, .mod = m, .entry = e};
    g.functions = f;
    *function = f;
    return end(OK);
}
int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    const struct function *f = function;
    BEGIN(true);
    switch (attribute) {
    case KL_CU_FN_THREADS: *value = 1024; break;
    case KL_CU_FN_SHARED: *value = (int)f->entry->shared_bytes; break;
    case KL_CU_FN_LOCAL: *value = 0; break;
    case KL_CU_FN_REGISTERS:
        *value = f->entry->registers < 255 ? (int)f->entry->registers : 255;
        break;
    default: return end(KL_CU_INVALID_VALUE);
    }
    return end(OK);
}
int cuFuncSetAttribute(void *function, int attribute, int value)
{
    struct function *f = function;
    BEGIN(true);
    if (attribute == KL_CU_FN_LARGE_CLUSTER)
        f->large_cluster = value;
    else if (attribute == KL_CU_FN_DYNAMIC)
        f->dynamic = value;
    else
        return end(KL_CU_INVALID_VALUE);
    return end(OK);
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                size_t dynamic_shared)
{
    (void)function, (void)dynamic_shared;
    BEGIN(true);
    *blocks = threads ? 2048 / threads : 0;
    return end(OK);
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **param, void **extra)
{
    struct function *f = function;
    if (g.norun && !g.fail_at)
        return OK; /* to measure what the caller costs */
    BEGIN(true);
    if (extra || !gx || !gy || !gz || bx * by * bz > 1024)
        return end(KL_CU_INVALID_VALUE);
    uint32_t cluster = f->entry->cluster[0] * f->entry->cluster[1] * f->entry->cluster[2];
    if (cluster > 8 && !f->large_cluster)
        return end(KL_CU_INVALID_VALUE);
    if (shared && f->entry->shared_bytes + shared > 49152 && shared > (unsigned)f->dynamic)
        return end(KL_CU_INVALID_VALUE);
    if (g.norun)
        return end(OK);
    struct op o = {.kind = LAUNCH,
                   .stream = stream,
                   .dev = stack[depth - 1],
                   .f = f,
                   .grid = {gx, gy, gz},
                   .block = {bx, by, bz},
                   .shared = shared,
                   .param = calloc(1, f->entry->param_bytes + 8)};
    for (uint32_t i = 0; i < f->entry->nparam; i++)
        memcpy((char *)o.param + f->entry->param[i].offset, param[i], f->entry->param[i].size);
    return end(queue(o));
}

/* ---- memory ---- */

int cuMemGetInfo_v2(size_t *left, size_t *total)
{
    BEGIN(true);
    *total = g.memory;
    *left = g.memory - stack[depth - 1]->used;
    return end(OK);
}
int cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
    BEGIN(true);
    struct device *dev = stack[depth - 1];
    int bad = unsafe();
    if (bad)
        return end(bad);
    if (!bytes)
        return end(KL_CU_INVALID_VALUE);
    if (bytes > g.memory - dev->used)
        return end(KL_CU_OUT_OF_MEMORY);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = (bytes + page - 1) / page * page;
    char *p = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return end(KL_CU_OUT_OF_MEMORY);
    struct memory *m = calloc(1, sizeof *m);
    *m = (struct memory){g.mem, dev, p, bytes, mapped};
    mprotect(p, mapped, PROT_READ | PROT_WRITE);
    memset(p, 0xa5, bytes); /* nothing begins as zero */
    mprotect(p, mapped, PROT_NONE);
    g.mem = m;
    dev->used += bytes;
    *at = (uint64_t)(uintptr_t)p;
    return end(OK);
}
int cuPointerGetAttribute(void *value, int attribute, uint64_t at)
{
    BEGIN(true);
    const struct memory *m = g.mem;
    while (m && (at < (uint64_t)(uintptr_t)m->at || at >= (uint64_t)(uintptr_t)m->at + m->size))
        m = m->next;
    if (!m)
        return end(KL_CU_INVALID_VALUE);
    switch (attribute) {
    case KL_CU_PTR_TYPE: *(unsigned *)value = m->dev ? KL_CU_ON_DEVICE : 1; break;
    case KL_CU_PTR_ORDINAL: *(int *)value = m->dev ? m->dev->ordinal : 0; break;
    case KL_CU_PTR_REACHED:
        if (m->dev && m->dev != stack[depth - 1])
            return end(KL_CU_INVALID_VALUE);
        *(uint64_t *)value = at;
        break;
    default: return end(KL_CU_INVALID_VALUE);
    }
    return end(OK);
}
static int drop(char *at, bool host)
{
    struct memory **p = &g.mem;
    while (*p && ((*p)->at != at || ((*p)->dev == NULL) != host))
        p = &(*p)->next;
    struct memory *m = *p;
    if (!m)
        return KL_CU_INVALID_VALUE;
    run_stream(NULL, true); /* freeing waits */
    *p = m->next;
    if (m->dev)
        m->dev->used -= m->size;
    if (m->dev)
        munmap(m->at, m->mapped);
    else
        free(m->at);
    free(m);
    return OK;
}
int cuMemFree_v2(uint64_t at)
{
    BEGIN(true);
    int bad = unsafe();
    if (bad)
        return end(bad);
    return end(drop((char *)(uintptr_t)at, false));
}
int cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    (void)flags;
    BEGIN(true);
    int bad = unsafe();
    if (bad)
        return end(bad);
    struct memory *m = calloc(1, sizeof *m);
    void *p = NULL;
    if (posix_memalign(&p, 4096, bytes))
        return end(KL_CU_OUT_OF_MEMORY);
    *m = (struct memory){g.mem, NULL, p, bytes, 0};
    g.mem = m;
    *at = p;
    return end(OK);
}
int cuMemFreeHost(void *at)
{
    BEGIN(true);
    int bad = unsafe();
    if (bad)
        return end(bad);
    return end(drop(at, true));
}
static int copy(void *to, const void *from, size_t n, void *stream, bool to_dev, bool from_dev)
{
    if (on_device(to, n) != to_dev || on_device(from, n) != from_dev)
        return end(KL_CU_INVALID_VALUE);
    return end(queue(
        (struct op){.kind = COPY, .stream = stream, .to = to, .from = from, .bytes = n}));
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    BEGIN(true);
    return copy((char *)(uintptr_t)to, from, bytes, stream, true, false);
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    BEGIN(true);
    return copy(to, (char *)(uintptr_t)from, bytes, stream, false, true);
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    BEGIN(true);
    return copy((char *)(uintptr_t)to, (char *)(uintptr_t)from, bytes, stream, true, true);
}
static int memset2d(uint64_t at, size_t pitch, unsigned value, unsigned size, size_t width,
                    size_t height, void *stream)
{
    char *to = (char *)(uintptr_t)at;
    if (!width || !height || pitch < width * size || at % size || pitch % size ||
        !on_device(to, (height - 1) * pitch + width * size))
        return end(KL_CU_INVALID_VALUE);
    return end(queue((struct op){.kind = FILL,
                                 .stream = stream,
                                 .to = to,
                                 .pitch = pitch,
                                 .value = value,
                                 .size = size,
                                 .width = width,
                                 .height = height}));
}
int cuMemsetD8Async(uint64_t at, unsigned char value, size_t n, void *stream)
{
    BEGIN(true);
    return memset2d(at, n, value, 1, n, 1, stream);
}
int cuMemsetD16Async(uint64_t at, unsigned short value, size_t n, void *stream)
{
    BEGIN(true);
    return memset2d(at, n * 2, value, 2, n, 1, stream);
}
int cuMemsetD32Async(uint64_t at, unsigned value, size_t n, void *stream)
{
    BEGIN(true);
    return memset2d(at, n * 4, value, 4, n, 1, stream);
}
int cuMemsetD2D8Async(uint64_t at, size_t pitch, unsigned char value, size_t width, size_t height,
                      void *stream)
{
    BEGIN(true);
    return memset2d(at, pitch, value, 1, width, height, stream);
}
int cuMemsetD2D16Async(uint64_t at, size_t pitch, unsigned short value, size_t width,
                       size_t height, void *stream)
{
    BEGIN(true);
    return memset2d(at, pitch, value, 2, width, height, stream);
}
int cuMemsetD2D32Async(uint64_t at, size_t pitch, unsigned value, size_t width, size_t height,
                       void *stream)
{
    BEGIN(true);
    return memset2d(at, pitch, value, 4, width, height, stream);
}

/* ---- streams and events ---- */

int cuStreamCreate(void **stream, unsigned flags)
{
    BEGIN(true);
    struct stream *s = calloc(1, sizeof *s);
    s->flags = flags;
    s->next = g.streams;
    g.streams = s;
    *stream = s;
    return end(OK);
}
int cuStreamDestroy_v2(void *stream)
{
    BEGIN(true);
    run_stream(stream, false);
    struct stream **p = &g.streams;
    while (*p && *p != stream)
        p = &(*p)->next;
    if (!*p)
        return end(KL_CU_INVALID_VALUE);
    struct stream *s = stream;
    if (s->cap && s->cap->origin == s) {
        struct graph *gr;
        end_capture(s, &gr);
        if (gr)
            drop_graph(gr);
    } else if (s->cap) {
        spoil(s->cap, OK);
    }
    *p = (*p)->next;
    free(s->last.v);
    free(s);
    return end(OK);
}
int cuStreamSynchronize(void *stream)
{
    struct stream *s = stream;
    BEGIN(true);
    int r = s && s->cap ? spoil(s->cap, CAPTURE) : s ? OK : spoil_streams(false, IMPLICIT);
    return end(r ? r : run_stream(s, false));
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    struct event *e = event;
    (void)flags;
    BEGIN(true);
    return end(queue((struct op){.kind = WAIT,
                                 .stream = stream,
                                 .event = e,
                                 .value = e->seq && !e->done,
                                 .pitch = e->seq}));
}
int cuStreamIsCapturing(void *stream, int *state)
{
    BEGIN(true);
    *state = stream && ((struct stream *)stream)->cap;
    return end(OK);
}
int cuStreamBeginCapture_v2(void *stream, int mode)
{
    BEGIN(true);
    return end(begin_capture(stream, mode));
}
int cuStreamEndCapture(void *stream, void **graph)
{
    struct graph *gr;
    BEGIN(true);
    int r = end_capture(stream, &gr);
    *graph = gr;
    return end(r);
}
int cuThreadExchangeStreamCaptureMode(int *mode)
{
    BEGIN(false);
    int old = thread_mode;
    if (*mode < GLOBAL || *mode > RELAXED)
        return end(KL_CU_INVALID_VALUE);
    thread_mode = *mode;
    *mode = old;
    return end(OK);
}
int cuGraphInstantiate_v2(void **exec, void *graph, void **node, char *log, size_t size)
{
    const struct graph *from = graph;
    (void)node, (void)log, (void)size;
    BEGIN(true);
    struct graph *gr = new_graph();
    for (size_t i = 0; i < from->n; i++) {
        struct op o = from->node[i].op;
        size_t n = param_size(&o);
        if (n)
            o.param = memcpy(malloc(n), o.param, n);
        add_node(gr, o, &from->node[i].before);
    }
    *exec = gr;
    return end(OK);
}
int cuGraphGetNodes(void *graph, void **node, size_t *n)
{
    BEGIN(true);
    if (node)
        return end(KL_CU_INVALID_VALUE);
    *n = ((const struct graph *)graph)->n;
    return end(OK);
}
int cuGraphLaunch(void *exec, void *stream)
{
    struct stream *s = stream;
    if (g.norun && !g.fail_at)
        return OK;
    BEGIN(true);
    if (s && s->cap)
        return end(spoil(s->cap, CAPTURE));
    return end(queue((struct op){.kind = GRAPH, .stream = stream, .graph = exec}));
}
int cuGraphExecDestroy(void *exec)
{
    BEGIN(true);
    run_stream(NULL, true); /* what is queued is still done */
    return end(drop_graph(exec));
}
int cuGraphDestroy(void *graph)
{
    BEGIN(true);
    return end(drop_graph(graph));
}
int cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    BEGIN(true);
    struct event *e = calloc(1, sizeof *e);
    e->next = g.events;
    g.events = e;
    *event = e;
    return end(OK);
}
int cuEventRecord(void *event, void *stream)
{
    BEGIN(true);
    return end(queue((struct op){.kind = RECORD, .stream = stream, .event = event}));
}
int cuEventSynchronize(void *event)
{
    struct event *e = event;
    BEGIN(true);
    if (e->captured)
        return end(e->cap ? spoil(e->cap, CAPTURED_EVENT) : CAPTURED_EVENT);
    lock_pages(PROT_READ | PROT_WRITE);
    struct op *o = e->done ? NULL : op_of(e->seq);
    if (o)
        run(o);
    lock_pages(PROT_NONE);
    return end(g.sticky);
}
int cuEventElapsedTime(float *ms, void *from, void *to)
{
    const struct event *a = from, *b = to;
    BEGIN(true);
    if (!a->done || !b->done)
        return end(600);
    *ms = (float)(b->ms - a->ms);
    return end(OK);
}
int cuEventDestroy_v2(void *event)
{
    BEGIN(true);
    run_stream(NULL, true);
    struct event **p = &g.events;
    while (*p && *p != event)
        p = &(*p)->next;
    if (!*p)
        return end(KL_CU_INVALID_VALUE);
    *p = (*p)->next;
    free(((struct event *)event)->last.v);
    free(event);
    return end(OK);
}
