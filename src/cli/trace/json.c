/* json.c - a trace as JSON: the Trace Event Format of Chrome, which Perfetto reads.
 *
 * Complete events ("X") for what began and ended, in microseconds with three decimals, so that
 * nothing is lost of nanoseconds and spans nest as they did; metadata ("M") for the names of
 * processes and threads; a flow ("s", "f") from each call of the host to what it made run on the
 * device; a counter ("C") of the bytes in buffers.  Process 1 is the host with its threads, 2 the GPU
 * with a thread for each stream, 3 the threads of the library that ran programs.
 *
 * Perfetto takes thread 0 of a process, and one with the number of the process, for its main
 * thread: it would lay two streams onto one track.  So only the main thread of the host has such a
 * number; streams count from 2000 and threads that run programs from 3000.  Perfetto also colours,
 * finds and sums spans by name, so neither a call of the host nor the part of a thread is named like
 * the kernel. */
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/trace/trace.h"

enum { HOST = 1, GPU = 2, WORKERS = 3, APART = 1000 };

/* ---- where a span belongs ---- */

static uint64_t origin(const struct kl_tracer *t)
{
    return t->n && t->v[0].begin < t->begin ? t->v[0].begin : t->begin;
}

static unsigned pid_of(const struct kl_traced *r)
{
    return r->place == KILN_TRACE_DEVICE ? GPU : r->place == KILN_TRACE_WORKER ? WORKERS : HOST;
}

static uint64_t tid_of(const struct kl_tracer *t, const struct kl_traced *r)
{
    if (r->place == KILN_TRACE_DEVICE)
        return GPU * APART + r->stream;
    if (r->place == KILN_TRACE_WORKER)
        return WORKERS * APART + r->thread;
    return r->thread == t->thread ? HOST : r->thread;
}

static bool is_step(kiln_trace_kind k)
{
    return k >= KILN_TRACE_BIND && k <= KILN_TRACE_LOAD;
}

static const char *category(const struct kl_traced *r)
{
    return r->kind ? kiln_trace_kind_name(r->kind) : "command";
}

/* ---- spans ---- */

static void arg_string(struct kl_jsonwrite *w, const char *name, const char *s)
{
    if (!*s)
        return;
    kl_jsonwrite_key(w, name);
    kl_jsonwrite_string(w, s);
}

static void arg_count(struct kl_jsonwrite *w, const char *name, uint64_t v)
{
    if (!v)
        return;
    kl_jsonwrite_key(w, name);
    kl_jsonwrite_count(w, v);
}

static void put_args(struct kl_jsonwrite *w, const struct kl_traced *r)
{
    static const char *const cache[] = {"", "hit", "miss", "stale"};
    bool launch = r->kind == KILN_TRACE_LAUNCH || r->kind == KILN_TRACE_KERNEL;
    kl_jsonwrite_key(w, "args");
    kl_jsonwrite_open(w, '{');
    if (is_step(r->kind))
        arg_string(w, "kernel", r->name);
    if (r->kind == KILN_TRACE_SOURCE)
        arg_string(w, "file", r->name);
    arg_string(w, launch ? "arguments" : "detail", r->detail);
    arg_count(w, "bytes", r->bytes);
    if (r->bytes && r->end > r->begin &&
        (r->kind == KILN_TRACE_KERNEL || r->kind == KILN_TRACE_COPY ||
         r->kind == KILN_TRACE_FILL)) {
        kl_jsonwrite_key(w, "GB_per_s");
        kl_jsonwrite_real(w, (double)r->bytes / (double)(r->end - r->begin), 4);
    }
    arg_count(w, "threads", r->threads);
    arg_count(w, "programs", r->programs);
    arg_string(w, "cache", cache[r->cache & 3]);
    arg_count(w, "error_ns", r->error);
    arg_count(w, "id", r->id);
    if (r->flags & KILN_TRACE_RECORDED)
        arg_string(w, "graph", "recorded, not run");
    if (r->status)
        arg_string(w, "status", kiln_status_name(r->status));
    kl_jsonwrite_close(w, '}');
}

/* An event of a line of its own; the caller closes it. */
static void put_head(struct kl_jsonwrite *w, const char *ph, unsigned pid, uint64_t tid)
{
    kl_jsonwrite_line(w);
    kl_jsonwrite_open(w, '{');
    kl_jsonwrite_key(w, "ph");
    kl_jsonwrite_string(w, ph);
    kl_jsonwrite_key(w, "pid");
    kl_jsonwrite_count(w, pid);
    kl_jsonwrite_key(w, "tid");
    kl_jsonwrite_count(w, tid);
}

static void put_us(struct kl_jsonwrite *w, const char *key, uint64_t ns)
{
    kl_jsonwrite_key(w, key);
    kl_jsonwrite_thousandths(w, ns);
}

static void put_named(struct kl_jsonwrite *w, const char *cat)
{
    kl_jsonwrite_key(w, "cat");
    kl_jsonwrite_string(w, cat);
    kl_jsonwrite_key(w, "name");
}

/* called: of the host, with something on the device that it made run. */
static void put_span(struct kl_jsonwrite *w, const struct kl_tracer *t, const struct kl_traced *r,
                     bool called)
{
    bool kind_is_name = is_step(r->kind) || r->kind == KILN_TRACE_SOURCE;
    put_head(w, "X", pid_of(r), tid_of(t, r));
    put_us(w, "ts", r->begin - origin(t));
    put_us(w, "dur", r->end - r->begin);
    put_named(w, category(r));
    kl_jsonwrite_strings(w, r->kind == KILN_TRACE_LAUNCH ? "launch " : "",
                         kind_is_name ? category(r) : r->name,
                         called && r->kind != KILN_TRACE_LAUNCH ? " (call)"
                         : r->place == KILN_TRACE_WORKER        ? " (worker)"
                                                                : "");
    put_args(w, r);
    kl_jsonwrite_close(w, '}');
}

/* ---- flows ---- */

static int by_id(const void *a, const void *b)
{
    const struct kl_traced *x = *(const struct kl_traced *const *)a,
                           *y = *(const struct kl_traced *const *)b;
    return x->id != y->id ? (x->id < y->id ? -1 : 1) : (int)x->place - (int)y->place;
}

/* Pairs of a call of the host and what ran on the device, one after the other; *n: of pointers.
 * called[i]: span i is such a call. */
static const struct kl_traced **pair_up(const struct kl_tracer *t, bool *called, size_t *n)
{
    const struct kl_traced **v = kl_xalloc((t->n + 1) * sizeof *v);
    size_t all = 0;
    *n = 0;
    for (size_t i = 0; i < t->n; i++) {
        called[i] = false;
        if (t->v[i].id && t->v[i].place != KILN_TRACE_WORKER)
            v[all++] = &t->v[i];
    }
    if (all)
        qsort(v, all, sizeof *v, by_id);
    for (size_t i = 0; i + 1 < all; i++) {
        if (v[i]->id != v[i + 1]->id || v[i]->place != KILN_TRACE_HOST ||
            v[i + 1]->place != KILN_TRACE_DEVICE)
            continue;
        called[v[i] - t->v] = true;
        v[(*n)++] = v[i];
        v[(*n)++] = v[i + 1];
        i++;
    }
    return v;
}

static void put_end(struct kl_jsonwrite *w, const struct kl_tracer *t, const struct kl_traced *r,
                    const char *ph)
{
    put_head(w, ph, pid_of(r), tid_of(t, r));
    put_us(w, "ts", r->begin - origin(t));
    put_named(w, "flow");
    kl_jsonwrite_string(w, "queued");
    kl_jsonwrite_key(w, "id");
    kl_jsonwrite_count(w, r->id);
    if (*ph == 'f')
        arg_string(w, "bp", "e");
    kl_jsonwrite_close(w, '}');
}

/* ---- memory ---- */

/* Bytes in buffers on the GPU, each time that they change.  Spans are in the order in which they
 * began, and a buffer is there when its call ends. */
static void put_memory(struct kl_jsonwrite *w, const struct kl_tracer *t)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct kl_traced *r = &t->v[i];
        bool more = strcmp(r->name, "kiln_buffer_alloc") == 0;
        if (r->kind != KILN_TRACE_MEMORY || r->status ||
            (!more && strcmp(r->name, "kiln_buffer_free") != 0))
            continue;
        bytes = more ? bytes + r->bytes : bytes > r->bytes ? bytes - r->bytes : 0;
        put_head(w, "C", GPU, GPU * APART);
        put_us(w, "ts", (more ? r->end : r->begin) - origin(t));
        kl_jsonwrite_key(w, "name");
        kl_jsonwrite_string(w, "buffers");
        kl_jsonwrite_key(w, "args");
        kl_jsonwrite_open(w, '{');
        kl_jsonwrite_key(w, "bytes");
        kl_jsonwrite_count(w, bytes);
        kl_jsonwrite_close(w, '}');
        kl_jsonwrite_close(w, '}');
    }
}

/* ---- names ---- */

static void put_meta(struct kl_jsonwrite *w, unsigned pid, uint64_t tid, const char *what,
                     const char *arg, const char *text)
{
    put_head(w, "M", pid, tid);
    kl_jsonwrite_key(w, "name");
    kl_jsonwrite_string(w, what);
    kl_jsonwrite_key(w, "args");
    kl_jsonwrite_open(w, '{');
    kl_jsonwrite_key(w, arg);
    if (text)
        kl_jsonwrite_string(w, text);
    else /* an order: that of the numbers */
        kl_jsonwrite_count(w, tid ? tid : pid);
    kl_jsonwrite_close(w, '}');
    kl_jsonwrite_close(w, '}');
}

static void put_track(struct kl_jsonwrite *w, const struct kl_tracer *t, const struct kl_traced *r)
{
    char name[64];
    uint64_t tid = tid_of(t, r);
    if (r->place == KILN_TRACE_DEVICE)
        snprintf(name, sizeof name, r->stream ? "stream %llu" : "default stream",
                 (unsigned long long)r->stream);
    else if (r->place == KILN_TRACE_WORKER)
        snprintf(name, sizeof name, "worker %llu", (unsigned long long)r->thread);
    else
        snprintf(name, sizeof name, tid == HOST ? "main" : "thread %llu", (unsigned long long)tid);
    put_meta(w, pid_of(r), tid, "thread_name", "name", name);
    put_meta(w, pid_of(r), tid, "thread_sort_index", "sort_index", NULL);
}

/* Each process and thread the first time that it is met. */
static void put_names(struct kl_jsonwrite *w, const struct kl_tracer *t)
{
    bool process[4] = {false};
    for (size_t i = 0; i < t->n; i++) {
        const struct kl_traced *r = &t->v[i];
        unsigned pid = pid_of(r);
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++)
            seen = pid_of(&t->v[j]) == pid && tid_of(t, &t->v[j]) == tid_of(t, r);
        if (seen)
            continue;
        if (!process[pid]) {
            put_meta(w, pid, 0, "process_name", "name",
                     pid == HOST      ? "host"
                     : pid == WORKERS ? "threads that run programs"
                     : t->device && *t->device ? t->device
                                               : "device");
            put_meta(w, pid, 0, "process_sort_index", "sort_index", NULL);
            process[pid] = true;
        }
        put_track(w, t, r);
    }
}

char *kl_tracer_json(const struct kl_tracer *t, size_t *n)
{
    struct kl_jsonwrite w = {0};
    uint64_t error = 0;
    size_t npair;
    bool *called = kl_xalloc(t->n + 1);
    const struct kl_traced **pair = pair_up(t, called, &npair);
    for (size_t i = 0; i < t->n; i++)
        error = t->v[i].place == KILN_TRACE_DEVICE && t->v[i].error > error ? t->v[i].error : error;
    kl_jsonwrite_open(&w, '{');
    kl_jsonwrite_key(&w, "displayTimeUnit");
    kl_jsonwrite_string(&w, "ns");
    kl_jsonwrite_key(&w, "otherData");
    kl_jsonwrite_open(&w, '{');
    arg_string(&w, "producer", "kiln");
    arg_string(&w, "build", kiln_build_id());
    kl_jsonwrite_key(&w, "device_time_error_ns");
    kl_jsonwrite_count(&w, error);
    kl_jsonwrite_close(&w, '}');
    kl_jsonwrite_line(&w);
    kl_jsonwrite_key(&w, "traceEvents");
    kl_jsonwrite_open(&w, '[');
    put_meta(&w, HOST, 0, "process_labels", "labels", "kiln trace");
    put_names(&w, t);
    for (size_t i = 0; i < t->n; i++)
        put_span(&w, t, &t->v[i], called[i]);
    if (npair) /* with a GPU */
        put_memory(&w, t);
    for (size_t i = 0; i < npair; i++)
        put_end(&w, t, pair[i], i % 2 ? "f" : "s");
    kl_jsonwrite_line(&w);
    kl_jsonwrite_close(&w, ']');
    kl_jsonwrite_close(&w, '}');
    free(pair);
    free(called);
    return kl_jsonwrite_text(&w, n);
}
