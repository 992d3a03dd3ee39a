/* gpu_launch.c - launches on a GPU's stream, or in the executor at once.
 *
 * Arrays in device memory are used where they lie.  Host arrays given to CUDA are copied: those
 * that share memory as one piece, so that a write through one name is seen through the other, and
 * at the same distance from a multiple of 256, so that alignment is that of the host. */
#include "lib/trace.h"
#include "sim/sim.h"

/* ---- memory of a launch ---- */

/* Host memory that arrays of the launch share. */
struct piece {
    const char *lo, *hi, *name; /* name: of the array, or of all that lie there */
    bool written;
    uint64_t taken, at; /* on the device: what was allocated, and where lo lies */
};

static bool is_host(const struct kl_item *it, uint32_t slot)
{
    const struct kl_slotref *r = &it->s->slot[slot];
    const struct kl_boundparam *p = &it->bound.param[r->decl];
    if (r->use != KL_P_ARRAY || !p->given || p->lo >= p->hi)
        return false;
    if (!it->k->mod->ctx->cuda)
        return true;
    const kiln_tensor *t = kl_tensor_of(it, r->decl);
    return t && !(t->flags & KILN_TENSOR_DEVICE);
}

/* The pieces of all host arrays; those that overlap become one. */
static uint32_t pieces(struct kl_call *c, const struct kl_item *it, struct piece **out)
{
    uint32_t n = 0;
    struct piece *v = kl_new_n(&c->tmp, struct piece, it->s->nslot + 1);
    for (uint32_t i = 0; i < it->s->nslot; i++) {
        if (!is_host(it, i))
            continue;
        uint32_t decl = it->s->slot[i].decl;
        const struct kl_boundparam *p = &it->bound.param[decl];
        struct piece s = {.lo = p->lo,
                          .hi = p->hi,
                          .name = it->k->param[decl].name,
                          .written = it->k->param[decl].writes};
        for (uint32_t j = 0; j < n;) {
            struct piece *o = &v[j];
            if (s.hi <= o->lo || o->hi <= s.lo) {
                j++;
                continue;
            }
            s.lo = o->lo < s.lo ? o->lo : s.lo;
            s.hi = o->hi > s.hi ? o->hi : s.hi;
            s.written |= o->written;
            s.name = kl_printf(&c->tmp, "%s, %s", o->name, s.name);
            *o = v[--n];
            j = 0; /* look at all again, as s has grown */
        }
        v[n++] = s;
    }
    *out = v;
    return n;
}

static void drop_pieces(kiln_context *ctx, struct piece *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        kl_cuda_free(ctx->cuda, v[i].taken);
}

static kiln_status upload(struct kl_call *c, kiln_context *ctx, struct piece *v, uint32_t n,
                          void *stream)
{
    kl_cudaerr e = {0};
    kiln_status s = KILN_OK;
    for (uint32_t i = 0; i < n && !s; i++) {
        uint64_t pad = (uintptr_t)v[i].lo % 256, bytes = (uint64_t)(v[i].hi - v[i].lo);
        struct kl_act span;
        kl_act_begin(&span, ctx, KILN_TRACE_MEMORY, "allocate", v[i].name, bytes + pad, NULL);
        s = kl_act_end(&span, kl_cuda_alloc(ctx->cuda, bytes + pad, &v[i].taken, &e));
        v[i].at = v[i].taken + pad;
        if (s)
            break;
        kl_act_begin(&span, ctx, KILN_TRACE_COPY, "upload", v[i].name, bytes, stream);
        struct kl_timed *t = span.t ? kl_timed_begin(&span, KILN_TRACE_COPY, stream) : NULL;
        s = kl_cuda_upload(ctx->cuda, v[i].at, v[i].lo, bytes, stream, &e);
        kl_timed_end(&span, t, stream, !s);
        kl_act_end(&span, s);
    }
    return kl_say_cuda(c, s, &e);
}

static kiln_status download(struct kl_call *c, kiln_context *ctx, const struct piece *v,
                            uint32_t n, void *stream)
{
    kl_cudaerr e = {0};
    kiln_status s = KILN_OK;
    struct kl_act span;
    for (uint32_t i = 0; i < n && !s; i++) {
        size_t bytes = (size_t)(v[i].hi - v[i].lo);
        if (!v[i].written)
            continue;
        kl_act_begin(&span, ctx, KILN_TRACE_COPY, "download", v[i].name, bytes, stream);
        struct kl_timed *t = span.t ? kl_timed_begin(&span, KILN_TRACE_COPY, stream) : NULL;
        s = kl_cuda_download(ctx->cuda, (char *)(uintptr_t)v[i].lo, v[i].at, bytes, stream, &e);
        kl_timed_end(&span, t, stream, !s);
        kl_act_end(&span, s);
    }
    if (!s) {
        kl_act_begin(&span, ctx, KILN_TRACE_WAIT, "stream", NULL, 0, stream);
        s = kl_act_end(&span, kl_cuda_stream_sync(ctx->cuda, stream, &e));
    }
    return kl_say_cuda(c, s, &e);
}

/* An array in memory of another device, which this one does not reach, would end the context. */
static kiln_status check_places(struct kl_call *c, const struct kl_item *it)
{
    kl_cuda *cuda = it->k->mod->ctx->cuda;
    for (uint32_t i = 0; i < it->s->nslot; i++) {
        const struct kl_slotref *r = &it->s->slot[i];
        const struct kl_boundparam *p = &it->bound.param[r->decl];
        if (r->use != KL_P_ARRAY || !p->given || p->lo >= p->hi || is_host(it, i))
            continue;
        int other = kl_cuda_elsewhere(cuda, (uint64_t)(uintptr_t)p->lo);
        if (other >= 0)
            return kl_say(c, KL_K1809, KILN_E_ARG,
                          "kiln_launch: array `%s` lies in memory of CUDA device %d, and the "
                          "kernel belongs to a context of device %d, which cannot reach it",
                          it->k->param[r->decl].name, other, kl_cuda_info(cuda)->ordinal);
    }
    return KILN_OK;
}

/* What an entry takes: bases and scalars, grid, programs, SMs. */
static void fill_params(const struct kl_item *it, const struct piece *v, uint32_t n, uint64_t *p)
{
    const struct kl_special *s = it->s;
    const int64_t *g = it->bound.grid;
    for (uint32_t i = 0; i < s->nslot; i++) {
        const struct kl_boundparam *b = &it->bound.param[s->slot[i].decl];
        p[i] = s->slot[i].use == KL_P_ARRAY ? (uint64_t)(uintptr_t)b->data : b->bits;
        for (uint32_t j = 0; j < n; j++) /* moved to the device */
            if (is_host(it, i) && (const char *)b->lo >= v[j].lo && (const char *)b->hi <= v[j].hi)
                p[i] = v[j].at + (uint64_t)((const char *)b->data - v[j].lo);
    }
    p += s->nslot;
    for (int i = 0; i < 3; i++)
        *p++ = (uint64_t)g[i];
    *p++ = (uint64_t)(g[0] * g[1] * g[2]);
    *p = (uint64_t)kl_num_sms(it->k->mod->ctx);
}

/* ---- launching ---- */

static void *stream_of(const kiln_stream *s)
{
    return s ? s->cu : NULL;
}

uint32_t kl_gpu_ctas(const struct kl_gpu *g, const int64_t grid[3])
{
    uint64_t total = (uint64_t)grid[0] * (uint64_t)grid[1] * (uint64_t)grid[2];
    uint64_t most = g->ctas_most / g->info.cluster; /* programs at a time */
    return (uint32_t)((total < most ? total : most) * g->info.cluster);
}

kiln_status kl_gpu_check(struct kl_call *c, const struct kl_item *it, kiln_stream *stream)
{
    kiln_context *ctx = it->k->mod->ctx;
    if (!ctx->cuda)
        return KILN_OK;
    for (uint32_t i = 0; i < it->s->nslot; i++)
        if (is_host(it, i) &&
            (kl_recording(stream) || kl_cuda_capturing(ctx->cuda, stream_of(stream))))
            return kl_say(c, KL_K1818, KILN_E_ARG,
                          "kiln_launch: the stream is being captured into a graph, and array `%s` "
                          "lies in host memory, from where a launch copies and waits",
                          it->k->param[it->s->slot[i].decl].name);
    return check_places(c, it);
}

static kiln_status launch_cuda(struct kl_call *c, struct kl_item *it, kiln_stream *on)
{
    kiln_context *ctx = it->k->mod->ctx;
    void *stream = stream_of(on);
    const struct kl_gpu *g = it->s->gpu;
    struct piece *v;
    kl_cudaerr e = {0};
    uint64_t *param = kl_new_n(&c->tmp, uint64_t, g->info.nparam);
    uint32_t n = pieces(c, it, &v);
    kiln_status s = upload(c, ctx, v, n, stream);
    if (!s) {
        fill_params(it, v, n, param);
        struct kl_timed *t = it->span ? kl_timed_begin(it->span, KILN_TRACE_KERNEL, stream) : NULL;
        s = kl_say_cuda(c,
                        kl_cuda_launch(ctx->cuda, &g->k, param, g->info.nparam, it->bound.grid,
                                       kl_gpu_ctas(g, it->bound.grid), stream,
                                       kl_recording(on), &e),
                        &e);
        kl_timed_end(it->span, t, stream, !s);
    }
    if (!s && n)
        s = download(c, ctx, v, n, stream);
    drop_pieces(ctx, v, n);
    if (!s && n && it->k->debug)
        s = kl_debug_collect(c, ctx);
    if (!s && !n)
        kl_fast_note(it, param);
    return s;
}

struct simrun {
    struct kl_item *it;
    kl_sim_launch l;
};

static kiln_status run_sim(struct kl_call *c, void *arg)
{
    struct simrun *r = arg;
    unsigned checks = r->it->k->mod->ctx->opt.checks;
    unsigned more = (checks ? KL_SIM_GLOBAL : 0) | (checks & KILN_CHECK_RACES ? KL_SIM_PROGRAMS : 0) |
                    (checks & KILN_CHECK_UNINIT ? KL_SIM_VALUES : 0) |
                    (checks & KILN_CHECK_LOOPS ? KL_SIM_ENDLESS : 0);
    const kl_sim_options o = {.checks = KL_SIM_CHECKS | more,
                              .source = &r->it->k->mod->ast->src};
    return kl_sim_run(r->it->s->gpu->sim, &r->l, &o, r->it->counts, r->it->count_arena, c->d,
                      &c->env);
}

static kl_sim_array *sim_arrays(struct kl_call *c, const struct kl_item *it,
                                const struct kl_slot *slot)
{
    kl_sim_array *v = kl_new_n(&c->tmp, kl_sim_array, it->s->nslot + 1);
    for (uint32_t i = 0; i < it->s->nslot; i++) {
        uint32_t decl = it->s->slot[i].decl;
        const struct kl_boundparam *p = &it->bound.param[decl];
        if (it->s->slot[i].use != KL_P_ARRAY)
            continue;
        v[i] = (kl_sim_array){.name = it->k->param[decl].name, .base = slot[i].base, .lo = slot[i].lo,
                              .hi = slot[i].hi, .elem = p->elem, .rank = p->rank,
                              .written = it->k->param[decl].writes, .hidden = slot[i].hidden,
                              .shadow = slot[i].shadow};
        memcpy(v[i].ext, p->ext, sizeof v[i].ext);
        memcpy(v[i].str, p->str, sizeof v[i].str);
    }
    return v;
}

static kiln_status launch_sim(struct kl_call *c, struct kl_item *it)
{
    const struct kl_gpu *g = it->s->gpu;
    struct piece *v;
    uint32_t n = pieces(c, it, &v);
    uint64_t *param = kl_new_n(&c->tmp, uint64_t, g->info.nparam);
    kl_sim_buffer *buf = kl_new_n(&c->tmp, kl_sim_buffer, n + 1);
    const char **name = kl_new_n(&c->tmp, const char *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        name[i] = v[i].name;
        buf[i] = (kl_sim_buffer){.base = (char *)(uintptr_t)v[i].lo,
                                 .size = (size_t)(v[i].hi - v[i].lo),
                                 .writable = v[i].written};
    }
    fill_params(it, NULL, 0, param);
    unsigned checks = it->k->mod->ctx->opt.checks;
    struct kl_slot *slot = kl_make_slots(c, it);
    if (checks)
        kl_add_shadow(c, it, slot);
    struct simrun r = {it,
                       {.entry = g->info.entry,
                        .grid = {kl_gpu_ctas(g, it->bound.grid), 1, 1},
                        .block = {g->info.threads, 1, 1},
                        .dynamic_shared = g->info.dynamic,
                        .param = param,
                        .param_bytes = g->info.nparam * 8,
                        .buffer = buf,
                        .nbuffer = n,
                        .buffer_name = name,
                        .array = sim_arrays(c, it, slot),
                        .narray = checks ? it->s->nslot : 0}};
    const int64_t *grid = it->bound.grid;
    if (r.l.grid[0] == grid[0] * grid[1] * grid[2] * g->info.cluster)
        memcpy(r.l.programs, grid, sizeof r.l.programs);
    uint32_t before = c->d->list.n;
    bool instead = false;
    kiln_status s = kl_check_source(c, it, slot, &instead), found = s;
    if (s && s != KILN_E_BOUNDS)
        return s;
    uint32_t told = c->d->list.n;
    if (!instead) {
        s = kl_guarded(c, g->src, run_sim, &r);
        kl_drop_told(c, before, told);
        s = s ? s : found;
    }
    if (checks & KILN_CHECK_WRITTEN && (!s || s == KILN_E_BOUNDS))
        kl_find_unwritten(c, it, slot);
    return s;
}

struct launching {
    struct kl_item *it;
    kiln_stream *stream;
};

static kiln_status launch(struct kl_call *c, void *arg)
{
    struct launching *l = arg;
    return l->it->k->mod->ctx->cuda ? launch_cuda(c, l->it, l->stream) : launch_sim(c, l->it);
}

kiln_status kl_gpu_launch(struct kl_call *c, struct kl_item *it, kiln_stream *stream)
{
    struct launching l = {it, stream};
    return kl_guarded(c, &it->k->mod->ast->src, launch, &l);
}

/* ---- initial values in device memory ---- */

static kiln_status fill_one(kl_cuda *cu, const struct kl_boundparam *p, void *stream,
                            kl_cudaerr *e)
{
    uint32_t size = kl_elems[p->elem].bytes;
    int64_t at[KL_MAX_DIMS] = {0}, n = 1, dense = 1;
    int32_t outer = p->rank; /* dimensions that are walked; the rest is one run */
    for (int32_t d = 0; d < p->rank; d++)
        if (p->ext[d] == 0)
            return KILN_OK;
    while (outer > 0 && p->str[outer - 1] == dense) {
        outer--;
        n *= p->ext[outer];
        dense *= p->ext[outer];
    }
    int64_t step = size;
    if (outer == p->rank && p->rank) { /* not dense at all: runs along the last dimension */
        outer--;
        n = p->ext[outer];
        step = p->str[outer] * (int64_t)size;
    }
    for (;;) {
        uint64_t q = (uint64_t)(uintptr_t)p->data;
        for (int32_t d = 0; d < outer; d++)
            q += (uint64_t)(at[d] * p->str[d] * (int64_t)size);
        kiln_status s = kl_cuda_fill(cu, q, (uint64_t)n, step, size, p->bits, stream, e);
        if (s)
            return s;
        int32_t d = outer - 1;
        while (d >= 0 && ++at[d] == p->ext[d])
            at[d--] = 0;
        if (d < 0)
            return KILN_OK;
    }
}

static kiln_status fill_traced(kiln_context *ctx, const struct kl_boundparam *p, const char *name,
                               void *stream, kl_cudaerr *e)
{
    uint64_t bytes = kl_elems[p->elem].bytes;
    struct kl_act span;
    for (int32_t d = 0; d < p->rank; d++)
        bytes *= (uint64_t)p->ext[d];
    kl_act_begin(&span, ctx, KILN_TRACE_FILL, "fill", name, bytes, stream);
    struct kl_timed *t = span.t ? kl_timed_begin(&span, KILN_TRACE_FILL, stream) : NULL;
    kiln_status s = fill_one(ctx->cuda, p, stream, e);
    kl_timed_end(&span, t, stream, !s);
    return kl_act_end(&span, s);
}

kiln_status kl_gpu_fill(struct kl_call *c, const struct kl_item *it, kiln_stream *stream)
{
    kiln_context *ctx = it->k->mod->ctx;
    kl_cudaerr e = {0};
    kiln_status s = KILN_OK;
    for (uint32_t i = 0; i < it->bound.nparam && !s && ctx->cuda; i++) {
        const struct kl_boundparam *p = &it->bound.param[i];
        if (!p->init || !p->given || !p->data)
            continue;
        const kiln_tensor *t = kl_tensor_of(it, i);
        if (t && t->flags & KILN_TENSOR_DEVICE)
            s = fill_traced(ctx, p, it->k->param[i].name, stream_of(stream), &e);
    }
    return kl_say_cuda(c, s, &e);
}
