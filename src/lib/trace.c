/* trace.c - what a context does, told to a function: listeners, spans, the text of a launch. */
#define _GNU_SOURCE
#include "lib/trace.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const struct {
    kiln_trace_kind k;
    const char *text;
} kinds[] = {
#define KILN_X(name, num, text) {KILN_TRACE_##name, text},
    KILN_TRACE_MAP(KILN_X)
#undef KILN_X
};

const char *kiln_trace_kind_name(kiln_trace_kind k)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].k == k)
            return kinds[i].text;
    return "?";
}

uint64_t kl_trace_now(const struct kl_trace *t)
{
    struct timespec now;
    if (t->ctx->now)
        return t->ctx->now(t->ctx->now_user);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t kl_trace_thread(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

void kl_trace_tell(struct kl_trace *t, kiln_trace_event *e)
{
    e->size = sizeof *e;
    t->fn(t->user, e);
}

/* ---- spans ---- */

static bool has_id(kiln_trace_kind k)
{
    return k == KILN_TRACE_LAUNCH || k == KILN_TRACE_KERNEL || k == KILN_TRACE_COPY ||
           k == KILN_TRACE_FILL;
}

/* Everything but the time, and the text if it is already in its place. */
static void prepare(struct kl_act *s, kiln_trace_kind kind, const char *name, uint64_t bytes,
                    void *stream)
{
    s->e = (kiln_trace_event){.kind = kind,
                              .phase = KILN_TRACE_BEGIN,
                              .place = KILN_TRACE_HOST,
                              .name = name,
                              .detail = s->detail,
                              .id = has_id(kind) ? atomic_fetch_add(&s->t->ids, 1) + 1 : 0,
                              .thread = kl_trace_thread(),
                              .stream = kl_trace_stream(s->t, stream),
                              .bytes = bytes};
}

static void begin(struct kl_act *s)
{
    s->e.begin_ns = kl_trace_now(s->t);
    kl_trace_tell(s->t, &s->e);
}

void kl_act_open(struct kl_act *s, kiln_trace_kind kind, const char *name, const char *detail,
                  uint64_t bytes, void *stream)
{
    snprintf(s->detail, sizeof s->detail, "%s", detail ? detail : "");
    prepare(s, kind, name, bytes, stream);
    begin(s);
}

void kl_act_close(struct kl_act *s, kiln_status st)
{
    s->e.end_ns = kl_trace_now(s->t);
    s->e.phase = KILN_TRACE_END;
    s->e.status = st;
    kl_trace_tell(s->t, &s->e);
}

/* ---- the text of a launch ---- */

static void put(char *text, size_t *n, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void put(char *text, size_t *n, const char *fmt, ...)
{
    va_list ap;
    if (*n + 1 >= KL_TRACE_DETAIL)
        return;
    va_start(ap, fmt);
    int m = vsnprintf(text + *n, KL_TRACE_DETAIL - *n, fmt, ap);
    va_end(ap);
    *n = m < 0 || *n + (size_t)m >= KL_TRACE_DETAIL ? KL_TRACE_DETAIL - 1 : *n + (size_t)m;
}

static uint64_t put_tensor(char *text, size_t *n, const kiln_tensor *t, const int64_t *shape,
                           const kiln_param_info *p)
{
    uint64_t count = 1;
    for (int32_t d = 0; d < t->ndim && shape; d++) {
        put(text, n, d ? "x%lld" : "%lld", (long long)shape[d]);
        count *= shape[d] > 0 ? (uint64_t)shape[d] : 0;
    }
    put(text, n, t->ndim ? ":%s" : "%s", kiln_dtype_name(t->dtype));
    if (!shape && t->ndim)
        return 0;
    return count * kiln_dtype_size(t->dtype) *
           (p ? (unsigned)(p->reads != 0) + (unsigned)(p->writes != 0) : 0u);
}

/* The arguments come from outside and have not been checked when a launch begins. */
static uint64_t describe(const struct kl_item *it, bool bound, char *text)
{
    uint64_t bytes = 0;
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < it->n && it->args; i++) {
        const kiln_arg *a = &it->args[i];
        size_t decl = 0;
        if (!a->name)
            continue;
        while (decl < it->k->nparam && strcmp(it->k->param[decl].name, a->name) != 0)
            decl++;
        bool known = decl < it->k->nparam;
        put(text, &n, n ? " %s=" : "%s=", a->name);
        if (a->kind == KILN_ARG_TENSOR && a->u.tensor.ndim >= 0 && a->u.tensor.ndim <= KL_MAX_DIMS)
            bytes += put_tensor(text, &n, &a->u.tensor,
                                bound && known ? it->bound.param[decl].ext : a->u.tensor.shape,
                                known ? &it->k->param[decl] : NULL);
        else if (a->kind == KILN_ARG_INT || (int)a->kind == KL_ARG_PREFER)
            put(text, &n, "%lld", (long long)a->u.i);
        else if (a->kind == KILN_ARG_UINT)
            put(text, &n, "%llu", (unsigned long long)a->u.u);
        else if (a->kind == KILN_ARG_FLOAT)
            put(text, &n, "%g", a->u.f);
        else if (a->kind == KILN_ARG_TYPE)
            put(text, &n, "%s", kiln_dtype_name(a->u.type));
    }
    if (n + 1 == KL_TRACE_DETAIL) /* it may go on */
        memcpy(text + n - 3, "...", 3);
    return bytes;
}

void kl_act_launch(struct kl_act *s, kiln_context *ctx, kiln_trace_kind kind,
                    const struct kl_item *it, bool bound, void *stream)
{
    if (!(s->t = kl_tracing(ctx)))
        return;
    uint64_t bytes = describe(it, bound, s->detail);
    prepare(s, kind, it->k->name, bytes, stream);
    if (kind == KILN_TRACE_KERNEL && it->span)
        s->e.id = it->span->e.id; /* of the host's call */
    begin(s);
}

/* ---- listeners ---- */

static void drop(kiln_context *ctx, struct kl_trace *t)
{
    kl_trace_rest(t);
    if (t->stream)
        ctx->al.fn(ctx->al.user, t->stream, t->nstream * sizeof *t->stream, 0);
    pthread_mutex_destroy(&t->flush);
    pthread_mutex_destroy(&t->lock);
    ctx->al.fn(ctx->al.user, t, sizeof *t, 0);
}

void kl_trace_free(kiln_context *ctx)
{
    struct kl_trace *t = atomic_exchange(&ctx->trace, NULL);
    if (t)
        kl_trace_stop(t);
    for (struct kl_trace *next; ctx->traces; ctx->traces = next) {
        next = ctx->traces->next;
        drop(ctx, ctx->traces);
    }
}

kiln_status kiln_context_trace(kiln_context *ctx, uint32_t flags,
                               void (*fn)(void *user, const kiln_trace_event *e), void *user,
                               kiln_diags **diags)
{
    if (diags)
        *diags = NULL;
    if (!ctx)
        return KILN_E_ARG;
    if (flags & ~(uint32_t)(KILN_TRACE_DEVICE_TIMES | KILN_TRACE_WORKERS))
        return kl_wrong(ctx, diags, "kiln_context_trace: unknown flags");
    if (ctx->cuda && atomic_load_explicit(&ctx->recordings, memory_order_relaxed))
        return kl_graph_refuse(ctx, diags, "kiln_context_trace: a stream of the context records a "
                                           "graph, and device times would touch it");
    struct kl_trace *t = NULL;
    if (fn) {
        t = ctx->al.fn(ctx->al.user, NULL, 0, sizeof *t);
        if (!t)
            return KILN_E_NOMEM;
        memset(t, 0, sizeof *t);
        t->ctx = ctx;
        t->flags = flags;
        t->fn = fn;
        t->user = user;
        t->last = &t->first;
        pthread_mutex_init(&t->flush, NULL);
        pthread_mutex_init(&t->lock, NULL);
    }
    struct kl_trace *old = atomic_exchange(&ctx->trace, NULL);
    if (old)
        kl_trace_stop(old);
    if (!t)
        return KILN_OK;
    pthread_mutex_lock(&ctx->lock);
    t->next = ctx->traces;
    ctx->traces = t;
    pthread_mutex_unlock(&ctx->lock);
    kl_trace_start(t);
    atomic_store_explicit(&ctx->trace, t, memory_order_release);
    return KILN_OK;
}
