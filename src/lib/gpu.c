/* gpu.c - specialisations for a GPU, or for the executor that stands for one.
 *
 * CUDA: PTX, assembled by the driver or taken from the cache, and loaded.  SIM: the same PTX, parsed. */
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
    if (b->grid[0] * b->grid[1] * b->grid[2] >> KL_PTX_PROGRAM_BITS)
        f &= ~(unsigned)KL_FACT_I32;
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
