/* gpu.c - specialisations and launches on a GPU, or on the executor that stands for one.
 *
 * CUDA: PTX, assembled by the driver or taken from the cache, loaded, launched on a stream.
 * SIM: the same PTX, parsed and run on host memory at once.
 *
 * Arrays in device memory are used where they lie.  Host arrays given to CUDA are copied: those
 * that share memory as one piece, so that a write through one name is seen through the other, and
 * at the same distance from a multiple of 256, so that alignment is that of the host. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "lib/trace.h"
#include "rt/file.h"
#include "sim/sim.h"

enum {
    EXTRA = 5,     /* what an entry takes behind the IR's parameters: see genptx.h */
    FILES = 64,    /* numbers for the sources of each kernel in a text */
    TOGETHER = 128 /* kernels of one text at most */
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

kiln_status kl_say_cuda(struct kl_call *c, kiln_status s, const kl_cudaerr *e)
{
    return s && e->diag ? kl_say(c, e->diag, s, "%s", e->text) : s;
}

/* ---- targets ---- */

static const uint32_t targets[] = {
#define PTX_TARGET(arch, ...) arch,
#include "gen/ptx/target.def"
};

uint32_t kl_ptx_target(int capability)
{
    uint32_t best = 0;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if ((int)targets[i] <= capability && targets[i] > best)
            best = targets[i];
    return best;
}

bool kl_ptx_parse_arch(const char *name, uint32_t *arch)
{
    uint32_t v = 0;
    if (strncmp(name, "sm_", 3) != 0)
        return false;
    for (const char *p = name + 3; *p; p++) {
        if (*p < '0' || *p > '9' || v > 1000)
            return false;
        v = v * 10 + (uint32_t)(*p - '0');
    }
    *arch = v;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (targets[i] == v)
            return true;
    return false;
}

/* ---- facts ---- */

unsigned kl_facts(const kiln_kernel *k, const kl_bound *b)
{
    unsigned f = KL_FACT_V16 | KL_FACT_I32;
    for (uint32_t i = 0; i < b->nparam; i++) {
        const struct kl_boundparam *p = &b->param[i];
        if (k->param[i].kind != KILN_PARAM_ARRAY || !p->given)
            continue;
        const struct kl_place at = kl_place_of(p);
        if (!kl_place_v16(&at))
            f &= ~(unsigned)KL_FACT_V16;
        if (!kl_place_i32(&at))
            f &= ~(unsigned)KL_FACT_I32;
    }
    return f;
}

const kiln_tensor *kl_tensor_of(const struct kl_item *it, uint32_t decl)
{
    for (size_t i = 0; i < it->n; i++)
        if (it->args[i].kind == KILN_ARG_TENSOR &&
            strcmp(it->args[i].name, it->k->param[decl].name) == 0)
            return &it->args[i].u.tensor;
    return NULL;
}

/* ---- making code ---- */

/* With a folder for kept files: the text, under a name of its own. */
static void keep(struct kl_call *c, const kiln_context *ctx, const struct kl_item *it)
{
    uint8_t id[32];
    char hex[17], name[160];
    kl_sha256 h;
    if (!ctx->opt.keep_dir)
        return;
    kl_sha256_init(&h);
    kl_sha256_add(&h, it->ptx, it->nptx);
    kl_sha256_end(&h, id);
    kl_hex(hex, id, 8);
    snprintf(name, sizeof name, "%.100s-%s.ptx", it->k->name, hex);
    int dir = open(ctx->opt.keep_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = dir >= 0 && kl_file_replace(dir, name, it->ptx, it->nptx, 0644);
    if (dir >= 0)
        close(dir);
    if (!ok)
        kl_say(c, KL_K1808, KILN_OK, "generated code cannot be written to %s", ctx->opt.keep_dir);
}

/* Print the PTX of a function; the slots of a launch. */
kiln_status kl_gpu_print(struct kl_call *c, struct kl_item *it)
{
    struct kl_special *s = it->s;
    const kiln_context *ctx = it->k->mod->ctx;
    kl_arena *a = ctx->cuda ? &c->tmp : &s->a; /* the executor keeps its text */
    kl_buf b = {.a = a};
    const kl_ptx_opts o = {.arch = ctx->arch,
                           .v16 = it->facts & KL_FACT_V16,
                           .i32 = it->facts & KL_FACT_I32,
                           .exact = !ctx->cuda,
                           .no_swizzle = it->no_swizzle,
                           .lines = true,
                           .first_file = it->part * FILES + 1,
                           .symbol = it->part ? kl_printf(a, "kiln_%u_%s", it->part, it->k->name)
                                              : NULL};
    struct kl_gpu *g = kl_new(&s->a, struct kl_gpu);
    kl_buf body = {.a = a};
    kl_ptx_emit(&body, s->fn, &o, &g->info);
    kl_ptx_prelude(&b, s->fn, &o, g->info.cluster > 1);
    it->body = b.n;
    kl_buf_put(&b, body.s, body.n);
    g->info.entry = kl_strndup(&s->a, g->info.entry, strlen(g->info.entry));
    KL_CHECK(&c->env, g->info.nparam == s->nslot + EXTRA);
    struct kl_cuslot *slot = kl_new_n(&s->a, struct kl_cuslot, s->nslot + 1);
    for (uint32_t i = 0; i < s->nslot; i++)
        slot[i] = (struct kl_cuslot){.name = it->k->param[s->slot[i].decl].name,
                                     .elem = s->fn->param[i].elem,
                                     .array = s->slot[i].use == KL_P_ARRAY};
    g->k = (kl_cukernel){.name = it->k->name,
                         .slot = slot,
                         .nslot = s->nslot,
                         .threads = g->info.threads,
                         .cluster = g->info.cluster,
                         .dynamic_shared = g->info.dynamic};
    g->ctas_most = ctx->cuda ? (uint64_t)kl_cuda_info(ctx->cuda)->grid_x : INT32_MAX;
    if (g->info.grid_limit && g->info.grid_limit < g->ctas_most)
        g->ctas_most = g->info.grid_limit;
    s->gpu = g;
    s->info.cta_threads = g->info.threads;
    s->info.cluster = g->info.cluster;
    s->info.shared_bytes = g->info.shared + g->info.dynamic;
    it->ptx = kl_buf_str(&b);
    it->nptx = b.n;
    s->info.approximate = g->info.approximate;
    s->fn = NULL; /* the IR has served */
    return KILN_OK;
}

static kiln_status parse(struct kl_call *c, void *arg)
{
    struct kl_item *it = arg;
    struct kl_special *s = it->s;
    s->gpu->sim = kl_sim_parse(&s->a, s->gpu->src, 0, c->d);
    return s->gpu->sim ? KILN_OK : KILN_E_INTERNAL;
}

static kiln_status make_source(struct kl_call *c, void *arg)
{
    struct kl_item *it = arg;
    struct kl_special *s = it->s;
    const char *name = kl_printf(&s->a, "%s.ptx", it->k->name);
    (void)c;
    s->gpu->src = kl_new(&s->a, kl_srcmap);
    s->gpu->src->a = &s->a;
    kl_src_add(s->gpu->src, name, it->ptx, (uint32_t)it->nptx, false);
    return KILN_OK;
}

static kiln_status make_sim(struct kl_call *c, struct kl_item *it)
{
    kiln_status s = kl_guarded(c, NULL, make_source, it);
    return s ? s : kl_guarded(c, it->s->gpu->src, parse, it);
}

/* Assemble and load one text with the code of n items. */
static kiln_status load(struct kl_call *c, struct kl_item **v, size_t n, const char *ptx,
                        size_t len, kl_cudaerr *e)
{
    kiln_context *ctx = v[0]->k->mod->ctx;
    kl_cuentry entry[TOGETHER];
    kl_cufn fn[TOGETHER];
    void *cubin = NULL;
    size_t size = 0;
    kiln_cache_state state;
    kl_cache *cache = ctx->cache;
    (void)c;
    for (size_t i = 0; i < n; i++) {
        const kl_ptxinfo *f = &v[i]->s->gpu->info;
        entry[i] = (kl_cuentry){f->entry, f->threads, f->dynamic, f->cluster};
    }
    for (int turn = 0;; turn++) {
        double t0 = now_ms();
        struct kl_act span;
        kl_act_begin(&span, ctx, KILN_TRACE_COMPILER, v[0]->k->name, ctx->archname, len, NULL);
        kiln_status s = kl_cuda_assemble(ctx->cuda, cache, ptx, len, v[0]->k->name, &cubin, &size,
                                         &state, e);
        kl_act_cache(&span, state);
        kl_act_end(&span, s);
        double t1 = now_ms();
        if (s)
            return s;
        kl_act_begin(&span, ctx, KILN_TRACE_LOAD, v[0]->k->name, NULL, size, NULL);
        s = kl_act_end(&span, kl_cuda_load(ctx->cuda, cubin, entry, n, fn, e));
        double t2 = now_ms();
        ctx->al.fn(ctx->al.user, cubin, size, 0);
        /* a remembered cubin that does not load is as good as none */
        if (s && turn == 0 && state == KILN_CACHE_HIT && e->cu == KL_CU_INVALID_IMAGE) {
            cache = NULL;
            continue;
        }
        for (size_t i = 0; i < n && !s; i++) {
            struct kl_special *sp = v[i]->s;
            sp->gpu->k.fn = fn[i];
            sp->info.cache = state;
            sp->info.cc_ms = t1 - t0;
            sp->info.load_ms = t2 - t1;
            sp->info.registers = fn[i].registers;
            sp->info.local_bytes = fn[i].local;
            sp->info.shared_bytes = fn[i].shared + entry[i].dynamic_shared;
            sp->info.ctas_per_sm = (uint32_t)fn[i].blocks;
        }
        return s;
    }
}

static kiln_status make_cuda(struct kl_call *c, struct kl_item *it)
{
    kl_cudaerr e = {0};
    return kl_say_cuda(c, load(c, &it, 1, it->ptx, it->nptx, &e), &e);
}

kiln_status kl_gpu_make(struct kl_call *c, struct kl_item *it)
{
    keep(c, it->k->mod->ctx, it);
    return it->k->mod->ctx->cuda ? make_cuda(c, it) : make_sim(c, it);
}

struct joining {
    struct kl_item **v;
    size_t n;
    kl_cudaerr e;
};

/* One text for all of them: one head, which speaks of clusters if one of them does, and each
 * one's body. */
static kiln_status join(struct kl_call *c, void *arg)
{
    struct joining *j = arg;
    kl_buf b = {.a = &c->tmp};
    const struct kl_item *head = j->v[0];
    for (size_t i = 1; i < j->n; i++)
        if (j->v[i]->s->gpu->info.cluster > 1)
            head = j->v[i];
    kl_buf_put(&b, head->ptx, head->body);
    for (size_t i = 0; i < j->n; i++)
        kl_buf_put(&b, j->v[i]->ptx + j->v[i]->body, j->v[i]->nptx - j->v[i]->body);
    return load(c, j->v, j->n, kl_buf_str(&b), b.n, &j->e);
}

/* Several kernels through one run of the driver's assembler.  Where that fails, one by one, so
 * that the message names the kernel. */
kiln_status kl_gpu_make_many(struct kl_call *c, struct kl_item *item, size_t n)
{
    struct kl_item *v[TOGETHER];
    kiln_status s = KILN_OK;
    for (size_t i = 0; i < n && !s;) {
        struct joining j = {.v = v};
        for (; i < n && j.n < TOGETHER; i++)
            if (item[i].fresh && item[i].ptx)
                v[j.n++] = &item[i];
        if (j.n > 1) {
            for (size_t k = 0; k < j.n; k++)
                keep(c, item[0].k->mod->ctx, v[k]);
            if (!kl_guarded(c, NULL, join, &j))
                continue;
        }
        for (size_t k = 0; k < j.n && !s; k++)
            s = kl_gpu_make(c, v[k]);
    }
    return s;
}

void kl_gpu_free(kiln_context *ctx, struct kl_special *s)
{
    if (!s->gpu || !ctx->cuda)
        return;
    kl_cuda_forget(ctx->cuda, &s->gpu->k);
    kl_cuda_unload(ctx->cuda, &s->gpu->k.fn);
}

uint32_t kl_gpu_ctas(const struct kl_gpu *g, const int64_t grid[3])
{
    uint64_t total = (uint64_t)grid[0] * (uint64_t)grid[1] * (uint64_t)grid[2];
    uint64_t most = g->ctas_most / g->info.cluster; /* programs at a time */
    return (uint32_t)((total < most ? total : most) * g->info.cluster);
}

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
