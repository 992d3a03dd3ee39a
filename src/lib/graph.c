/* graph.c - recorded graphs: what was queued on a stream, done again by one call.
 *
 * CUDA: the driver captures.  Elsewhere a stream that records keeps a list of operations with their
 * arguments, launches bound, checked and compiled, and a launch of the graph walks it.
 *
 * A recording begins with one stream.  Another takes part when it waits for an event that was
 * recorded in it, and must have been waited for by the first one at the end.  The list is walked
 * in the order of the calls, which obeys all the waiting; whether a stream was forgotten is seen
 * from counts of operations: each stream knows how many of every other one lie before its next. */
#include <stdatomic.h>
#include <stdio.h>

#include "lib/trace.h"

enum op_kind { LAUNCH, COPY, FILL };
struct op {
    struct op *next;
    size_t taken; /* bytes of this block, with what stands behind it */
    enum op_kind kind;
    uint8_t value;
    char *to;
    const char *from;
    size_t bytes;
    struct kl_item it;
};

struct kl_recording {
    kiln_context *ctx;
    _Atomic uint32_t refs; /* the stream that began it, and marks of events, which may die later */
    bool over;
    struct op *first, **last; /* not on CUDA */
    size_t n;
    char names[32]; /* of kernels, for messages */
    uint32_t nstream;
    kiln_stream *stream[KL_RECORD_STREAMS]; /* 0: who began; NULL: freed */
    uint32_t seen[KL_RECORD_STREAMS][KL_RECORD_STREAMS];
};

struct kiln_graph {
    kiln_context *ctx;
    void *exec;       /* CUDA */
    struct op *first; /* others */
    size_t n;
    char label[48];
};

kiln_status kl_graph_refuse(kiln_context *ctx, kiln_diags **diags, const char *fmt, ...)
{
    kl_cudaerr e = {.diag = KL_K1818};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e.text, sizeof e.text, fmt, ap);
    va_end(ap);
    return kl_finish_cuda(ctx, KILN_E_ARG, &e, diags);
}

kiln_status kl_graph_allows(kiln_context *ctx, const kiln_stream *st, const char *fn,
                            kiln_diags **diags)
{
    if (st || !atomic_load_explicit(&ctx->recordings, memory_order_relaxed))
        return KILN_OK;
    return kl_graph_refuse(ctx, diags,
                           "%s: a stream of the context records a graph, and %s would touch it", fn,
                           strcmp(fn, "kiln_sync") == 0 ? "waiting for all streams"
                                                        : "the default stream (NULL)");
}

/* ---- operations ---- */

static void drop_ops(kiln_context *ctx, struct op *o)
{
    while (o) {
        struct op *next = o->next;
        ctx->al.fn(ctx->al.user, o, o->taken, 0);
        o = next;
    }
}

static struct op *add(kiln_stream *st, enum op_kind kind, size_t more)
{
    struct kl_recording *r = st->rec;
    const kl_alloc *al = &r->ctx->al;
    size_t taken = sizeof(struct op) + more;
    struct op *o = al->fn(al->user, NULL, 0, taken);
    if (!o)
        return NULL;
    memset(o, 0, taken);
    o->kind = kind;
    o->taken = taken;
    *r->last = o;
    r->last = &o->next;
    r->n++;
    r->seen[st->member][st->member]++;
    return o;
}

kiln_status kl_record_copy(kiln_stream *st, void *to, const void *from, size_t bytes)
{
    struct op *o = add(st, COPY, 0);
    if (!o)
        return KILN_E_NOMEM;
    o->to = to;
    o->from = from;
    o->bytes = bytes;
    return KILN_OK;
}

kiln_status kl_record_fill(kiln_stream *st, void *to, uint8_t value, size_t bytes)
{
    struct op *o = add(st, FILL, 0);
    if (!o)
        return KILN_E_NOMEM;
    o->to = to;
    o->value = value;
    o->bytes = bytes;
    return KILN_OK;
}

void kl_record_name(kiln_stream *st, const char *name)
{
    struct kl_recording *r = st->rec;
    size_t n = strlen(r->names);
    if (n + 5 < sizeof r->names)
        snprintf(r->names + n, sizeof r->names - n, "%s%s", n ? ", " : "", name);
}

/* Numbers and names of arguments live in the module; shapes and strides went into the bound. */
kiln_status kl_record_launch(kiln_stream *st, const struct kl_item *it)
{
    const kl_bound *b = &it->bound;
    size_t nparam = (b->nparam > it->k->nparam ? b->nparam : it->k->nparam) + 1;
    size_t params = nparam * sizeof *b->param, args = it->n * sizeof *it->args;
    struct op *o = add(st, LAUNCH, params + args);
    if (!o)
        return KILN_E_NOMEM;
    o->it = (struct kl_item){.k = it->k, .n = it->n, .bound = *b, .s = it->s};
    struct kl_boundparam *p = (struct kl_boundparam *)(void *)(o + 1);
    kiln_arg *a = (kiln_arg *)(void *)(p + nparam);
    memcpy(p, b->param, b->nparam * sizeof *p);
    for (size_t i = 0; i < it->n; i++) {
        a[i] = it->args[i];
        for (size_t j = 0; j < it->k->nparam; j++)
            if (strcmp(it->k->param[j].name, it->args[i].name) == 0)
                a[i].name = it->k->param[j].name;
        if (a[i].kind == KILN_ARG_TENSOR)
            a[i].u.tensor.shape = a[i].u.tensor.strides = NULL;
    }
    o->it.bound.param = p;
    o->it.args = a;
    kl_record_name(st, it->k->name);
    return KILN_OK;
}

/* ---- recordings ---- */

static void unref(struct kl_recording *r)
{
    if (atomic_fetch_sub(&r->refs, 1) > 1)
        return;
    const kl_alloc al = r->ctx->al;
    drop_ops(r->ctx, r->first);
    al.fn(al.user, r, sizeof *r, 0);
}

/* Nothing is recorded any more; the streams are as before. */
static void finish(struct kl_recording *r)
{
    for (uint32_t i = 0; i < r->nstream; i++)
        if (r->stream[i])
            r->stream[i]->rec = NULL;
    r->over = true;
    atomic_fetch_sub(&r->ctx->recordings, 1);
    unref(r);
}

void kl_record_leave(kiln_stream *st)
{
    struct kl_recording *r = st->rec;
    kl_cudaerr e;
    if (!r)
        return;
    r->stream[st->member] = NULL;
    st->rec = NULL;
    if (st->member)
        return;
    if (r->ctx->cuda)
        kl_cuda_record_end(r->ctx->cuda, st->cu, NULL, NULL, &e);
    finish(r);
}

void kl_mark_drop(struct kl_mark *m)
{
    if (m->rec)
        unref(m->rec);
    m->rec = NULL;
}

void kl_mark_set(struct kl_mark *m, const kiln_stream *st)
{
    m->rec = st->rec;
    m->rec->refs++;
    memcpy(m->seen, m->rec->seen[st->member], sizeof m->seen);
}

kiln_status kl_mark_check(const struct kl_mark *m, const kiln_stream *st, kiln_context *ctx,
                          kiln_diags **diags)
{
    static const char fn[] = "kiln_event_wait";
    struct kl_recording *r = m->rec;
    if (!r)
        return kl_graph_refuse(ctx, diags, "%s: the stream records a graph, and the event was "
                                           "recorded outside of it", fn);
    if (r->over)
        return kl_graph_refuse(ctx, diags, "%s: the event was recorded into a graph, and does not "
                                           "happen", fn);
    if (st->rec && st->rec != r)
        return kl_graph_refuse(ctx, diags, "%s: stream and event belong to different graphs", fn);
    if (!st->rec && r->nstream == KL_RECORD_STREAMS)
        return kl_graph_refuse(ctx, diags, "%s: more than %d streams record one graph", fn,
                               KL_RECORD_STREAMS);
    return KILN_OK;
}

void kl_mark_join(const struct kl_mark *m, kiln_stream *st)
{
    struct kl_recording *r = m->rec;
    if (!st->rec) {
        st->rec = r;
        st->member = r->nstream++;
        r->stream[st->member] = st;
    }
    uint32_t *seen = r->seen[st->member];
    for (uint32_t i = 0; i < KL_RECORD_STREAMS; i++)
        if (m->seen[i] > seen[i])
            seen[i] = m->seen[i];
}

kiln_status kiln_graph_begin(kiln_stream *st, kiln_diags **diags)
{
    kl_cudaerr e = {0};
    if (diags)
        *diags = NULL;
    if (!st)
        return KILN_E_ARG;
    kiln_context *ctx = st->ctx;
    if (st->rec)
        return kl_graph_refuse(ctx, diags, "kiln_graph_begin: the stream records a graph already");
    if (ctx->cuda && !st->cu)
        return kl_wrong(ctx, diags, "kiln_graph_begin: the default stream cannot record");
    if (ctx->cuda && kl_cuda_capturing(ctx->cuda, st->cu))
        return kl_graph_refuse(ctx, diags,
                               "kiln_graph_begin: the stream is being captured by other code");
    struct kl_recording *r = ctx->al.fn(ctx->al.user, NULL, 0, sizeof *r);
    if (!r)
        return KILN_E_NOMEM;
    memset(r, 0, sizeof *r);
    r->ctx = ctx;
    r->refs = 1;
    r->nstream = 1;
    r->last = &r->first;
    r->stream[0] = st;
    atomic_fetch_add(&ctx->recordings, 1); /* before, so that no other thread's wait hits it */
    kiln_status s = ctx->cuda ? kl_cuda_record(ctx->cuda, st->cu, &e) : KILN_OK;
    if (s) {
        finish(r);
        return kl_finish_cuda(ctx, s, &e, diags);
    }
    st->rec = r;
    st->member = 0;
    return KILN_OK;
}

/* Everything that other streams recorded lies before the end of the first one. */
static bool joined(const struct kl_recording *r)
{
    for (uint32_t i = 1; i < r->nstream; i++)
        if (r->seen[0][i] < r->seen[i][i])
            return false;
    return true;
}

static void label(kiln_graph *g, const char *names)
{
    snprintf(g->label, sizeof g->label, "a graph of %zu%s%.31s", g->n, *names ? ": " : "", names);
}

kiln_status kiln_graph_end(kiln_stream *st, kiln_graph **out, kiln_diags **diags)
{
    kl_cudaerr e = {0};
    kiln_status s = KILN_OK;
    kiln_graph *g = NULL;
    if (diags)
        *diags = NULL;
    if (out)
        *out = NULL;
    if (!st)
        return KILN_E_ARG;
    kiln_context *ctx = st->ctx;
    struct kl_recording *r = st->rec;
    if (!r || st->member)
        return kl_wrong(ctx, diags, r ? "kiln_graph_end: the recording began with another stream"
                                      : "kiln_graph_end: the stream does not record");
    if (out && !(g = ctx->al.fn(ctx->al.user, NULL, 0, sizeof *g)))
        s = KILN_E_NOMEM;
    if (g)
        *g = (kiln_graph){.ctx = ctx, .n = r->n};
    if (ctx->cuda) {
        kiln_status t = kl_cuda_record_end(ctx->cuda, st->cu, g ? &g->exec : NULL,
                                           g ? &g->n : NULL, &e);
        s = s ? s : t;
    } else if (g && !joined(r)) {
        kl_cuda_fail(&e, KL_K1818, KILN_E_ARG,
                     "kiln_graph_end: another stream recorded operations that the first one did "
                     "not wait for with kiln_event_wait");
        s = KILN_E_ARG;
    }
    if (g && !s) {
        label(g, r->names);
        g->first = r->first;
        r->first = NULL;
        *out = g;
    } else if (g) {
        ctx->al.fn(ctx->al.user, g, sizeof *g, 0);
    }
    finish(r);
    return kl_finish_cuda(ctx, s, &e, diags);
}

/* ---- graphs ---- */

static kiln_status walk(kiln_graph *g, kiln_diags **diags)
{
    struct kl_call c;
    kiln_status s = kl_call_begin(&c, &g->ctx->al);
    if (s)
        return s;
    for (struct op *o = g->first; o && !s; o = o->next) {
        struct kl_act span;
        if (o->kind != LAUNCH)
            kl_act_begin(&span, g->ctx, o->kind == COPY ? KILN_TRACE_COPY : KILN_TRACE_FILL,
                          o->kind == COPY ? "copy" : "fill", NULL, o->bytes, NULL);
        switch (o->kind) {
        case COPY:
            memmove(o->to, o->from, o->bytes);
            kl_act_end(&span, KILN_OK);
            break;
        case FILL:
            memset(o->to, o->value, o->bytes);
            kl_act_end(&span, KILN_OK);
            break;
        case LAUNCH:
            s = kl_launch_prepared(&c, &o->it, NULL);
            kl_arena_free(&c.tmp);
            break;
        }
    }
    return kl_call_end(&c, s, diags);
}

kiln_status kiln_graph_launch(kiln_graph *g, kiln_stream *st, kiln_diags **diags)
{
    kl_cudaerr e = {0};
    if (diags)
        *diags = NULL;
    if (!g)
        return KILN_E_ARG;
    kiln_context *ctx = g->ctx;
    kiln_status s = kl_graph_allows(ctx, st, "kiln_graph_launch", diags);
    if (s)
        return s;
    if (st && st->ctx != ctx)
        return kl_wrong(ctx, diags, "kiln_graph_launch: graph and stream of different contexts");
    if (kl_recording(st))
        return kl_graph_refuse(ctx, diags, "kiln_graph_launch: the stream records a graph, and a "
                                           "graph holds no other one");
    void *cu = kiln_stream_cuda(st);
    struct kl_act span;
    kl_act_begin(&span, ctx, KILN_TRACE_LAUNCH, g->label, NULL, 0, cu);
    if (!ctx->cuda)
        return kl_act_end(&span, walk(g, diags));
    struct kl_timed *t = span.t ? kl_timed_begin(&span, KILN_TRACE_KERNEL, cu) : NULL;
    s = kl_cuda_graph_launch(ctx->cuda, g->exec, g->label, cu, &e);
    kl_timed_end(&span, t, cu, !s);
    return kl_finish_cuda(ctx, kl_act_end(&span, s), &e, diags);
}

size_t kiln_graph_count(const kiln_graph *g)
{
    return g ? g->n : 0;
}

void kiln_graph_free(kiln_graph *g)
{
    if (!g)
        return;
    kiln_context *ctx = g->ctx;
    if (ctx->cuda)
        kl_cuda_graph_free(ctx->cuda, g->exec);
    drop_ops(ctx, g->first);
    ctx->al.fn(ctx->al.user, g, sizeof *g, 0);
}
