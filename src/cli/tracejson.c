/* tracejson.c - a trace as JSON: the Trace Event Format of Chrome, which Perfetto reads.
 *
 * Complete events ("X") for what began and ended, in microseconds with three decimals, so that
 * nothing is lost of nanoseconds and spans nest as they did; metadata ("M") for the names of
 * processes and threads; a flow ("s", "f") from each call of the host to what it made run on the
 * device.  Process 1 is the host with its threads, 2 the GPU with a thread for each stream, 3 the
 * threads of the library that ran programs. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/trace.h"

enum { HOST = 1, GPU = 2, WORKERS = 3 };

struct text {
    char *s;
    size_t n, cap;
};

static void put(struct text *b, const char *s, size_t n)
{
    if (b->n + n + 1 > b->cap) {
        size_t cap = (b->n + n + 1) * 2;
        char *grown = kl_xalloc(cap);
        if (b->n)
            memcpy(grown, b->s, b->n);
        free(b->s);
        b->s = grown;
        b->cap = cap;
    }
    memcpy(b->s + b->n, s, n);
    b->n += n;
    b->s[b->n] = 0;
}

static void putf(struct text *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void putf(struct text *b, const char *fmt, ...)
{
    char s[200];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(s, sizeof s, fmt, ap);
    va_end(ap);
    put(b, s, n < 0 ? 0 : (size_t)n < sizeof s ? (size_t)n : sizeof s - 1);
}

/* Bytes of the UTF-8 character at s, which ends in NUL; 0: it is none. */
static size_t utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3
               : s[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool odd = n > 2 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
                         (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f));
    return odd ? 0 : n;
}

/* A string with its quotes.  What is no UTF-8 (file names may hold anything) becomes U+FFFD. */
static void put_string(struct text *b, const char *s)
{
    put(b, "\"", 1);
    while (*s) {
        size_t n = utf8(s);
        if (*s == '"' || *s == '\\')
            putf(b, "\\%c", *s);
        else if ((unsigned char)*s < 0x20 || *s == 0x7f)
            putf(b, "\\u%04x", (unsigned)*s);
        else if (n)
            put(b, s, n);
        else
            put(b, "\xef\xbf\xbd", 3);
        s += n ? n : 1;
    }
    put(b, "\"", 1);
}

static void put_us(struct text *b, uint64_t ns)
{
    putf(b, "%llu.%03u", (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
}

/* ---- where a span belongs ---- */

static uint64_t origin(const struct kl_tracer *t)
{
    return t->n && t->v[0].begin < t->begin ? t->v[0].begin : t->begin;
}

static unsigned pid_of(const struct kl_traced *r)
{
    return r->place == KILN_TRACE_DEVICE ? GPU : r->place == KILN_TRACE_WORKER ? WORKERS : HOST;
}

static uint64_t tid_of(const struct kl_traced *r)
{
    if (r->place == KILN_TRACE_DEVICE)
        return r->stream + 1;
    if (r->place == KILN_TRACE_WORKER)
        return r->thread + 1;
    return r->thread;
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

static void arg_name(struct text *b, const char *name, bool *first)
{
    put(b, *first ? "" : ",", *first ? 0 : 1);
    putf(b, "\"%s\":", name);
    *first = false;
}
static void arg_string(struct text *b, const char *name, const char *s, bool *first)
{
    if (!*s)
        return;
    arg_name(b, name, first);
    put_string(b, s);
}
static void arg_number(struct text *b, const char *name, uint64_t v, bool *first)
{
    if (!v)
        return;
    arg_name(b, name, first);
    putf(b, "%llu", (unsigned long long)v);
}

static void put_args(struct text *b, const struct kl_traced *r)
{
    static const char *const cache[] = {"", "hit", "miss", "stale"};
    bool first = true;
    put(b, "{", 1);
    if (is_step(r->kind))
        arg_string(b, "kernel", r->name, &first);
    arg_string(b, r->kind == KILN_TRACE_LAUNCH || r->kind == KILN_TRACE_KERNEL ? "arguments"
                                                                               : "detail",
               r->detail, &first);
    arg_number(b, "bytes", r->bytes, &first);
    if (r->bytes && r->end > r->begin &&
        (r->kind == KILN_TRACE_KERNEL || r->kind == KILN_TRACE_COPY || r->kind == KILN_TRACE_FILL)) {
        arg_name(b, "GB_per_s", &first);
        putf(b, "%.4g", (double)r->bytes / (double)(r->end - r->begin));
    }
    arg_number(b, "threads", r->threads, &first);
    arg_number(b, "programs", r->programs, &first);
    arg_string(b, "cache", cache[r->cache & 3], &first);
    arg_number(b, "error_ns", r->error, &first);
    arg_number(b, "id", r->id, &first);
    if (r->flags & KILN_TRACE_RECORDED)
        arg_string(b, "graph", "recorded, not run", &first);
    if (r->status)
        arg_string(b, "status", kiln_status_name(r->status), &first);
    put(b, "}", 1);
}

static void put_head(struct text *b, const char *ph, unsigned pid, uint64_t tid)
{
    putf(b, ",\n{\"ph\":\"%s\",\"pid\":%u,\"tid\":%llu", ph, pid, (unsigned long long)tid);
}

static void put_span(struct text *b, const struct kl_tracer *t, const struct kl_traced *r)
{
    put_head(b, "X", pid_of(r), tid_of(r));
    put(b, ",\"ts\":", 6);
    put_us(b, r->begin - origin(t));
    put(b, ",\"dur\":", 7);
    put_us(b, r->end - r->begin);
    putf(b, ",\"cat\":\"%s\",\"name\":", category(r));
    put_string(b, is_step(r->kind) ? category(r) : r->name);
    put(b, ",\"args\":", 8);
    put_args(b, r);
    put(b, "}", 1);
}

/* ---- flows ---- */

static int by_id(const void *a, const void *b)
{
    const struct kl_traced *x = *(const struct kl_traced *const *)a,
                           *y = *(const struct kl_traced *const *)b;
    return x->id != y->id ? (x->id < y->id ? -1 : 1) : (int)x->place - (int)y->place;
}

static void put_end(struct text *b, const struct kl_tracer *t, const struct kl_traced *r,
                    const char *ph, uint64_t id)
{
    put_head(b, ph, pid_of(r), tid_of(r));
    put(b, ",\"ts\":", 6);
    put_us(b, r->begin - origin(t));
    putf(b, ",\"cat\":\"flow\",\"name\":\"queued\",\"id\":%llu%s}", (unsigned long long)id,
         *ph == 'f' ? ",\"bp\":\"e\"" : "");
}

/* From the call of the host to what ran on the device. */
static void put_flows(struct text *b, const struct kl_tracer *t)
{
    const struct kl_traced **v = kl_xalloc((t->n + 1) * sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].id && t->v[i].place != KILN_TRACE_WORKER)
            v[n++] = &t->v[i];
    if (n)
        qsort(v, n, sizeof *v, by_id);
    for (size_t i = 0; i + 1 < n; i++)
        if (v[i]->id == v[i + 1]->id && v[i]->place == KILN_TRACE_HOST &&
            v[i + 1]->place == KILN_TRACE_DEVICE) {
            put_end(b, t, v[i], "s", v[i]->id);
            put_end(b, t, v[i + 1], "f", v[i]->id);
        }
    free(v);
}

/* ---- names ---- */

static void put_name(struct text *b, const char *what, unsigned pid, uint64_t tid,
                     const char *name)
{
    put_head(b, "M", pid, tid);
    putf(b, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    put_string(b, name);
    put(b, "}}", 2);
}

/* Each process and thread the first time that it is met. */
static void put_names(struct text *b, const struct kl_tracer *t)
{
    bool process[4] = {false};
    for (size_t i = 0; i < t->n; i++) {
        const struct kl_traced *r = &t->v[i];
        unsigned pid = pid_of(r);
        uint64_t tid = tid_of(r);
        char name[64];
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++)
            seen = pid_of(&t->v[j]) == pid && tid_of(&t->v[j]) == tid;
        if (seen)
            continue;
        if (!process[pid]) {
            put_name(b, "process_name", pid, 0,
                     pid == HOST      ? "host"
                     : pid == WORKERS ? "threads that run programs"
                     : t->device && *t->device ? t->device
                                               : "device");
            put_head(b, "M", pid, 0);
            putf(b, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%u}}", pid);
            process[pid] = true;
        }
        if (pid == GPU)
            snprintf(name, sizeof name, r->stream ? "stream %llu" : "default stream",
                     (unsigned long long)r->stream);
        else if (pid == WORKERS)
            snprintf(name, sizeof name, "worker %llu", (unsigned long long)r->thread);
        else
            snprintf(name, sizeof name, tid == t->thread ? "main" : "thread %llu",
                     (unsigned long long)tid);
        put_name(b, "thread_name", pid, tid, name);
    }
}

char *kl_tracer_json(const struct kl_tracer *t, size_t *n)
{
    struct text b = {0};
    uint64_t error = 0;
    for (size_t i = 0; i < t->n; i++)
        error = t->v[i].place == KILN_TRACE_DEVICE && t->v[i].error > error ? t->v[i].error : error;
    putf(&b, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":");
    put_string(&b, "kiln");
    put(&b, ",\"build\":", 9);
    put_string(&b, kiln_build_id());
    putf(&b, ",\"device_time_error_ns\":%llu},\n\"traceEvents\":[\n", (unsigned long long)error);
    putf(&b, "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"process_labels\",\"args\":{\"labels\":"
             "\"kiln trace\"}}", HOST);
    put_names(&b, t);
    for (size_t i = 0; i < t->n; i++)
        put_span(&b, t, &t->v[i]);
    put_flows(&b, t);
    put(&b, "\n]}\n", 4);
    *n = b.n;
    return b.s;
}
