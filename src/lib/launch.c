/* launch.c - specialise, run, and what a launch would need. */
#include <stdatomic.h>

#include "gen/interp/interp.h"
#include "lib/trace.h"

/* ---- kiln_specialize ---- */

struct kiln_spec {
    kl_alloc al;
    kiln_spec_info info;
};

static kiln_status check_many(struct kl_call *c, kiln_kernel *const *k, const kiln_arg *const *args,
                              const size_t *n, size_t count)
{
    static const char fn[] = "kiln_specialize_many";
    if (count && (!args || !n))
        return kl_say(c, KL_K1809, KILN_E_ARG, "%s: %s is NULL", fn, args ? "n" : "args");
    for (size_t i = 0; i < count; i++) {
        kiln_status s = kl_check_args(c, fn, k[i], args[i], n[i]);
        if (s)
            return s;
        if (k[i]->mod->ctx != k[0]->mod->ctx)
            return kl_say(c, KL_K1809, KILN_E_ARG,
                          "%s: kernels %zu and 0 belong to different "
                          "contexts",
                          fn, i);
    }
    return KILN_OK;
}

static kiln_status make_specs(kiln_context *ctx, const struct kl_item *item, size_t count,
                              kiln_spec **out)
{
    for (size_t i = 0; i < count; i++) {
        kiln_spec *sp = ctx->al.fn(ctx->al.user, NULL, 0, sizeof *sp);
        if (!sp) {
            while (i-- > 0) {
                kiln_spec_free(out[i]);
                out[i] = NULL;
            }
            return KILN_E_NOMEM;
        }
        *sp = (kiln_spec){ctx->al, item[i].s->info};
        memcpy(sp->info.grid, item[i].bound.grid, sizeof sp->info.grid);
        if (item[i].s->gpu)
            sp->info.ctas = kl_gpu_ctas(item[i].s->gpu, item[i].bound.grid);
        out[i] = sp;
    }
    return KILN_OK;
}

kiln_status kiln_specialize_many(kiln_kernel *const *k, const kiln_arg *const *args,
                                 const size_t *n, size_t count, kiln_spec **out, kiln_diags **diags)
{
    struct kl_call c;
    if (diags)
        *diags = NULL;
    for (size_t i = 0; out && i < count; i++)
        out[i] = NULL;
    if (!count)
        return KILN_OK;
    if (!k || !k[0])
        return KILN_E_ARG;
    kiln_context *ctx = k[0]->mod->ctx;
    kiln_status s = kl_call_begin(&c, &ctx->al);
    if (s)
        return s;
    s = check_many(&c, k, args, n, count);
    struct kl_item *item = NULL;
    size_t bytes = count * sizeof *item;
    if (!s && count > SIZE_MAX / sizeof *item)
        s = KILN_E_NOMEM;
    if (!s && !(item = ctx->al.fn(ctx->al.user, NULL, 0, bytes)))
        s = KILN_E_NOMEM;
    if (!s) {
        memset(item, 0, bytes);
        for (size_t i = 0; i < count; i++) {
            item[i].k = k[i];
            item[i].args = args[i];
            item[i].n = n[i];
        }
        s = kl_prepare(&c, item, count);
    }
    if (!s && out)
        s = make_specs(ctx, item, count, out);
    if (item)
        ctx->al.fn(ctx->al.user, item, bytes, 0);
    return kl_call_end(&c, s, diags);
}

kiln_status kiln_specialize(kiln_kernel *k, const kiln_arg *args, size_t n, kiln_spec **out,
                            kiln_diags **diags)
{
    return kiln_specialize_many(&k, &args, &n, 1, out, diags);
}

const kiln_spec_info *kiln_spec_get_info(const kiln_spec *s)
{
    return s ? &s->info : NULL;
}

void kiln_spec_free(kiln_spec *s)
{
    if (!s)
        return;
    kl_alloc al = s->al;
    al.fn(al.user, s, sizeof *s, 0);
}

/* ---- running ---- */

/* What a thread of the pool did in a launch. */
struct kl_busy {
    uint64_t begin_ns, end_ns, programs;
};

struct run {
    kiln_context *ctx;
    const struct kl_special *s;
    const uint64_t *p;          /* code: slots */
    int64_t grid[4];            /* axes, then num_sms */
    kl_launch launch;           /* interpreter */
    struct kl_scratch *scratch; /* a thread */
    struct kl_busy *busy;       /* a thread; NULL: nobody listens */
    struct kl_trace *trace;
    _Atomic int status;         /* kiln_status of the first failure */
};

static void failed(struct run *r, kiln_status s)
{
    int ok = KILN_OK;
    atomic_compare_exchange_strong(&r->status, &ok, (int)s);
}

/* Scratch of a thread, large enough and aligned; it stays with the context. */
static char *scratch(struct run *r, uint32_t thread)
{
    enum { ALIGN = 64 };
    struct kl_scratch *k = &r->scratch[thread];
    const kl_alloc *al = &r->ctx->al;
    size_t need = (size_t)r->s->scratch + ALIGN;
    if (k->size < need) {
        if (k->mem)
            al->fn(al->user, k->mem, k->size, 0);
        k->mem = al->fn(al->user, NULL, 0, need);
        k->size = k->mem ? need : 0;
        if (!k->mem)
            return NULL;
        k->at = (char *)(((uintptr_t)k->mem + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
    }
    return k->at;
}

static void run_code(void *user, uint32_t thread, int64_t begin, int64_t end)
{
    struct run *r = user;
    char *mem = scratch(r, thread);
    if (mem)
        r->s->code->fn(r->p, r->grid, begin, end, mem);
    else
        failed(r, KILN_E_NOMEM);
}

/* One of the two, with a look at the clock before and after. */
static void run_interp(void *user, uint32_t thread, int64_t begin, int64_t end);
static void run_timed(void *user, uint32_t thread, int64_t begin, int64_t end)
{
    struct run *r = user;
    struct kl_busy *b = &r->busy[thread];
    if (!b->programs)
        b->begin_ns = kl_trace_now(r->trace);
    (r->s->fn ? run_interp : run_code)(user, thread, begin, end);
    b->end_ns = kl_trace_now(r->trace);
    b->programs += (uint64_t)(end - begin);
}

/* How many threads took part; a span for each where that was asked for. */
static uint32_t tell_workers(const struct run *r, const struct kl_item *it, struct kl_act *span)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < kl_pool_threads(r->ctx->pool); i++) {
        const struct kl_busy *b = &r->busy[i];
        if (!b->programs)
            continue;
        n++;
        span->e.programs += b->programs;
        kiln_trace_event e = {.kind = KILN_TRACE_KERNEL,
                              .phase = KILN_TRACE_SPAN,
                              .place = KILN_TRACE_WORKER,
                              .name = it->k->name,
                              .detail = span->detail,
                              .begin_ns = b->begin_ns,
                              .end_ns = b->end_ns,
                              .id = span->e.id,
                              .thread = i,
                              .programs = b->programs};
        if (r->trace->flags & KILN_TRACE_WORKERS)
            kl_trace_tell(r->trace, &e);
    }
    return n;
}

static void run_interp(void *user, uint32_t thread, int64_t begin, int64_t end)
{
    struct run *r = user;
    kl_env env = {.al = &r->ctx->al}; /* it has a guard of its own */
    (void)thread;
    if (atomic_load(&r->status))
        return;
    kiln_status s = kl_interp_range(r->s->fn, &r->launch, begin, end, &env);
    if (s)
        failed(r, s);
}

/* ---- initial values ---- */

/* Fill an array, whatever its strides, with one value. */
static void fill(const struct kl_boundparam *p)
{
    uint8_t one[8];
    size_t size = kl_elems[p->elem].bytes;
    int64_t at[KL_MAX_DIMS] = {0};
    int32_t in = p->rank - 1; /* the innermost dimension */
    kl_elem_store((enum kl_elem)p->elem, one, p->bits);
    bool same = true;
    for (size_t b = 1; b < size; b++)
        same &= one[b] == one[0];
    for (int32_t d = 0; d < p->rank; d++)
        if (p->ext[d] <= 0)
            return;
    int64_t n = p->rank ? p->ext[in] : 1, step = p->rank ? p->str[in] : 1;
    for (;;) {
        char *q = p->data;
        for (int32_t d = 0; d < in; d++)
            q += at[d] * p->str[d] * (int64_t)size;
        if (same && step == 1)
            memset(q, one[0], (size_t)n * size);
        else
            for (int64_t i = 0; i < n; i++)
                memcpy(q + i * step * (int64_t)size, one, size);
        int32_t d = in - 1;
        while (d >= 0 && ++at[d] == p->ext[d])
            at[d--] = 0;
        if (d < 0)
            return;
    }
}

/* Those in memory of the host. */
static void fill_all(const struct kl_item *it)
{
    const kl_bound *b = &it->bound;
    for (uint32_t i = 0; i < b->nparam; i++) {
        if (!b->param[i].init || !b->param[i].given || !b->param[i].data)
            continue;
        const kiln_tensor *t = it->k->mod->ctx->cuda ? kl_tensor_of(it, i) : NULL;
        if (!t || !(t->flags & KILN_TENSOR_DEVICE))
            fill(&b->param[i]);
    }
}

/* ---- kiln_launch ---- */

struct launching {
    struct kl_item *it;
    struct kl_act span;
};

static kiln_status launch(struct kl_call *c, void *arg)
{
    struct launching *l = arg;
    struct kl_item *it = l->it;
    const struct kl_special *s = it->s;
    kiln_context *ctx = it->k->mod->ctx;
    const int64_t *g = it->bound.grid;
    struct kl_scratch own = {0};
    struct kl_slot *slot = kl_make_slots(c, it);
    struct run r = {.ctx = ctx, .s = s, .scratch = ctx->scratch};
    r.launch = (kl_launch){
        .slot = slot, .grid = {g[0], g[1], g[2]}, .num_sms = kl_num_sms(ctx)};
    memcpy(r.grid, g, 3 * sizeof *g);
    r.grid[3] = r.launch.num_sms;
    if (s->fn && ctx->opt.checks) {
        if (ctx->opt.checks & (KILN_CHECK_UNINIT | KILN_CHECK_WRITTEN))
            kl_add_shadow(c, it, slot);
        kiln_status st =
            kl_interp_run(s->fn, &r.launch, ctx->opt.checks, c->d, &c->env, NULL, NULL);
        if (ctx->opt.checks & KILN_CHECK_WRITTEN && (!st || st == KILN_E_BOUNDS))
            kl_find_unwritten(c, it, slot);
        return st;
    }
    uint64_t *p = kl_new_n(&c->tmp, uint64_t, s->nslot + s->nextra + 1);
    for (uint32_t i = 0; i < s->nslot; i++)
        p[i] = s->slot[i].use == KL_P_ARRAY ? (uint64_t)(uintptr_t)slot[i].base : slot[i].bits;
    for (uint32_t i = 0; i < s->nextra; i++)
        p[s->nslot + i] = (uint64_t)s->extra[i];
    r.p = p;
    if (l->span.t) {
        r.trace = l->span.t;
        r.busy = kl_new_n(&c->tmp, struct kl_busy, kl_pool_threads(ctx->pool));
    }
    /* nothing raises from here on: threads of the pool use this frame */
    bool forked = kl_pool_forked(ctx->pool);
    if (forked)
        r.scratch = &own; /* nothing keeps threads of a forked process apart */
    kl_pool_run(ctx->pool, g[0] * g[1] * g[2],
                r.busy ? run_timed : s->fn ? run_interp : run_code, &r);
    if (r.busy)
        l->span.e.threads = tell_workers(&r, it, &l->span);
    if (own.mem)
        ctx->al.fn(ctx->al.user, own.mem, own.size, 0);
    return (kiln_status)atomic_load(&r.status);
}

kiln_status kl_launch_prepared(struct kl_call *c, struct kl_item *it, kiln_stream *stream)
{
    kiln_context *ctx = it->k->mod->ctx;
    uint64_t *words = NULL;
    kiln_status s = kl_gpu_check(c, it, stream);
    if (s)
        return s;
    fill_all(it);
    if (kl_on_gpu(ctx))
        s = kl_gpu_fill(c, it, stream);
    if (!s && !it->bound.empty)
        s = kl_debug_begin(c, it, &words);
    if (!s && !it->bound.empty && ctx->cuda) {
        s = kl_gpu_launch(c, it, stream);
    } else if (!s && !it->bound.empty) {
        struct launching l; /* the most of it is for a listener */
        l.it = it;
        kl_act_launch(&l.span, ctx, KILN_TRACE_KERNEL, it, true, NULL);
        s = kl_on_gpu(ctx) ? kl_gpu_launch(c, it, stream)
                           : kl_guarded(c, &it->k->mod->ast->src, launch, &l);
        kl_act_end(&l.span, s);
    }
    if (ctx->opt.checks && !ctx->cuda && !it->bound.empty && (!s || s == KILN_E_BOUNDS))
        s = kl_allow(c, it, s);
    return words ? kl_debug_end(c, it, words, s) : s;
}

kiln_status kl_launch_item(struct kl_call *c, struct kl_item *it, kiln_stream *stream)
{
    kiln_status s = kl_prepare(c, it, 1);
    return s ? s : kl_launch_prepared(c, it, stream);
}

/* A launch like an earlier one, by a context that somebody listens to. */
static bool fast_traced(kiln_kernel *k, void *stream, const kiln_arg *args, size_t n,
                        const struct kl_act *span)
{
    struct kl_timed *t = kl_timed_begin(span, KILN_TRACE_KERNEL, stream);
    bool done = kl_fast_launch(k, stream, args, n);
    kl_timed_end(span, t, stream, done);
    return done;
}

static kiln_status launch_call(kiln_kernel *k, kiln_stream *stream, const kiln_arg *args, size_t n,
                               struct kl_act *span, kiln_diags **diags)
{
    struct kl_call c;
    kiln_context *ctx = k->mod->ctx;
    bool foreign = stream && stream->ctx != ctx, recording = kl_recording(stream);
    kiln_status s = kl_graph_allows(ctx, stream, "kiln_launch", diags);
    if (s)
        return s;
    if (ctx->cuda && !foreign && !recording) {
        void *cu = kiln_stream_cuda(stream);
        if (span ? fast_traced(k, cu, args, n, span) : kl_fast_launch(k, cu, args, n))
            return KILN_OK;
    }
    if (span && recording)
        span->e.flags |= KILN_TRACE_RECORDED;
    s = kl_call_begin(&c, &ctx->al);
    if (s)
        return s;
    struct kl_item it = {.k = k, .args = args, .n = n, .span = span};
    if (foreign)
        s = kl_say(&c, KL_K1809, KILN_E_ARG,
                   "kiln_launch: the stream belongs to another context than the kernel");
    if (!s)
        s = kl_check_args(&c, "kiln_launch", k, args, n);
    if (!s)
        s = kl_prepare(&c, &it, 1);
    if (!s && recording && !ctx->cuda)
        s = kl_record_launch(stream, &it);
    else if (!s)
        s = kl_launch_prepared(&c, &it, stream);
    if (!s && recording && ctx->cuda)
        kl_record_name(stream, k->name);
    return kl_call_end(&c, s, diags);
}

static kiln_status launch_traced(kiln_kernel *k, kiln_stream *stream, const kiln_arg *args,
                                 size_t n, kiln_diags **diags)
{
    const struct kl_item it = {.k = k, .args = args, .n = n};
    struct kl_act span;
    kl_act_launch(&span, k->mod->ctx, KILN_TRACE_LAUNCH, &it, false, kiln_stream_cuda(stream));
    kiln_status s = launch_call(k, stream, args, n, span.t ? &span : NULL, diags);
    return kl_act_end(&span, s);
}

kiln_status kiln_launch(kiln_kernel *k, kiln_stream *stream, const kiln_arg *args, size_t n,
                        kiln_diags **diags)
{
    if (diags)
        *diags = NULL;
    if (!k)
        return KILN_E_ARG;
    return kl_tracing(k->mod->ctx) ? launch_traced(k, stream, args, n, diags)
                                   : launch_call(k, stream, args, n, NULL, diags);
}

/* ---- kiln_infer_shape ---- */

struct asking {
    kiln_kernel *k;
    const kiln_arg *args;
    size_t n;
    kl_bound *bound;
};

static kiln_status ask(struct kl_call *c, void *arg)
{
    struct asking *q = arg;
    kiln_module *m = q->k->mod;
    return kl_bind(&c->tmp, m->ast, q->k->node, q->args, q->n, KL_BIND_SHAPES_ONLY,
                   kl_num_sms(m->ctx), q->bound, c->d)
               ? KILN_OK
               : KILN_E_ARG;
}

kiln_status kl_bind_shapes(struct kl_call *c, const char *fn, kiln_kernel *k, const kiln_arg *args,
                           size_t n, kl_bound *out)
{
    struct asking q = {k, args, n, out};
    kiln_status s = kl_check_args(c, fn, k, args, n);
    return s ? s : kl_guarded(c, &k->mod->ast->src, ask, &q);
}

kiln_status kiln_infer_shape(kiln_kernel *k, const kiln_arg *args, size_t n, const char *name,
                             kiln_dtype *dtype, int32_t *ndim, int64_t shape[8], kiln_diags **diags)
{
    struct kl_call c;
    size_t i = 0;
    if (diags)
        *diags = NULL;
    if (!k)
        return KILN_E_ARG;
    kiln_status s = kl_call_begin(&c, &k->mod->ctx->al);
    if (s)
        return s;
    kl_bound bound = {0};
    while (name && i < k->nparam && strcmp(k->param[i].name, name) != 0)
        i++;
    if (!name || i == k->nparam || k->param[i].kind != KILN_PARAM_ARRAY)
        s = kl_say(&c, KL_K1809, KILN_E_ARG, "kiln_infer_shape: kernel `%s` has no array `%s`",
                   k->name, name ? name : "(null)");
    if (!s)
        s = kl_bind_shapes(&c, "kiln_infer_shape", k, args, n, &bound);
    if (!s) {
        const struct kl_boundparam *p = &bound.param[i];
        if (dtype)
            *dtype = (kiln_dtype)p->elem;
        if (ndim)
            *ndim = p->rank;
        for (int32_t d = 0; shape && d < p->rank; d++)
            shape[d] = p->ext[d];
    }
    return kl_call_end(&c, s, diags);
}
