/* explain.c - see explain.h: one launch through the compiler to PTX, and all that follows from it. */
#include "explain.h"

#include <stdio.h>

#include "lib/explain_rules.h"
#include "lib/lib.h"
#include "rt/ptxas.h"

enum {
    PTXAS_MS = 60000,
    BUDGET = 1 << 21 /* a second or two of scalar loops */
};

struct job {
    kiln_kernel *k;
    const kiln_arg *args;
    size_t n;
    const kl_explain_opts *o;
    kl_explained *e;
    kl_bound bound;
    kl_ptx_opts ptx;
    kl_fn *fn, *plain;
};

/* ---- the launch ---- */

static uint32_t arg_of(const struct job *j, const char *name)
{
    uint32_t i = 0;
    while (i < j->n && strcmp(j->args[i].name, name) != 0)
        i++;
    return i;
}

static uint64_t base_of(const struct job *j, const char *name)
{
    uint32_t i = arg_of(j, name);
    return i < j->n && j->o->base ? j->o->base[i] : 0;
}

static const char *value_text(kl_arena *a, enum kl_elem e, uint64_t bits)
{
    if (e == KL_bool)
        return bits ? "true" : "false";
    if (kl_elems[e].kind == KL_KIND_UINT)
        return kl_printf(a, "%llu", (unsigned long long)bits);
    if (!kl_is_float(e))
        return kl_printf(a, "%lld", (long long)bits);
    return kl_printf(a, "%.9g", kl_elem_double(e, bits));
}

static void describe(struct job *j)
{
    kl_explained *e = j->e;
    kl_arena *a = &e->a;
    const kiln_kernel *k = j->k;
    e->constant = kl_new_n(a, kl_explain_const, k->nparam + 1);
    e->array = kl_new_n(a, kl_explain_array, k->nparam + 1);
    for (size_t i = 0; i < k->nparam; i++) {
        const struct kl_boundparam *p = &j->bound.param[i];
        const kiln_param_info *q = &k->param[i];
        const char *name = kl_strndup(a, q->name, strlen(q->name));
        if (q->kind == KILN_PARAM_TYPE) {
            e->constant[e->nconstant++] = (kl_explain_const){name, kl_elems[p->elem].name};
        } else if (q->kind == KILN_PARAM_CONST) {
            e->constant[e->nconstant++] =
                (kl_explain_const){name, value_text(a, (enum kl_elem)p->elem, p->bits)};
        } else if (q->kind == KILN_PARAM_ARRAY && p->given) {
            kl_explain_array *r = &e->array[e->narray++];
            *r = (kl_explain_array){.name = name,
                                    .elem = p->elem,
                                    .rank = p->rank,
                                    .given = arg_of(j, q->name) < j->n,
                                    .reads = q->reads,
                                    .writes = q->writes,
                                    .bytes = kl_elems[p->elem].bytes};
            memcpy(r->shape, p->ext, sizeof r->shape);
            memcpy(r->strides, p->str, sizeof r->strides);
            for (int32_t d = 0; d < p->rank; d++)
                r->bytes *= (uint64_t)p->ext[d];
        }
    }
}

static const char *version_of(kl_arena *a, const char *ptx)
{
    const char *at = strstr(ptx, ".version ");
    if (!at)
        return "";
    at += 9;
    return kl_strndup(a, at, strcspn(at, " \r\n"));
}

static void model_param(const struct job *j, const struct kl_param *f, kl_model_param *out)
{
    const struct kl_boundparam *p = &j->bound.param[f->decl];
    uint32_t i = arg_of(j, f->name);
    *out = (kl_model_param){.name = f->name, .given = p->given, .bits = p->bits, .rank = p->rank};
    memcpy(out->ext, p->ext, sizeof out->ext);
    memcpy(out->str, p->str, sizeof out->str);
    if (f->use != KL_P_ARRAY)
        return;
    out->base = base_of(j, f->name);
    if (i == j->n || j->args[i].kind != KILN_ARG_TENSOR || !j->args[i].u.tensor.data)
        return;
    const kiln_tensor *t = &j->args[i].u.tensor;
    out->data = out->lo = t->data;
    out->hi = (const char *)t->data + t->size_bytes;
}

static void model(struct job *j, int64_t sms)
{
    kl_explained *e = j->e;
    kl_arena *a = &e->a;
    kl_model_in *in = kl_new(a, kl_model_in);
    kl_model *m = kl_new(a, kl_model);
    kl_model_param *p = kl_new_n(a, kl_model_param, j->fn->nparam + 1);
    kl_ptx_opts *o = kl_new(a, kl_ptx_opts);
    *o = j->ptx;
    for (uint32_t i = 0; i < j->fn->nparam; i++)
        model_param(j, &j->fn->param[i], &p[i]);
    *in = (kl_model_in){.f = j->fn,
                        .plain = j->plain,
                        .ptx = o,
                        .param = p,
                        .grid = {e->grid[0], e->grid[1], e->grid[2]},
                        .num_sms = sms,
                        .budget = BUDGET};
    kl_model_make(m, in);
    e->model = m;
    e->in = in;
}

static kiln_status compile(struct kl_call *c, void *arg)
{
    struct job *j = arg;
    kl_explained *e = j->e;
    const kiln_module *m = j->k->mod;
    kl_arena *a = &e->a;
    int64_t sms = e->chip ? (int64_t)e->chip->sms : KL_EXPLAIN_SMS;
    if (!kl_bind(a, m->ast, j->k->node, j->args, j->n, KL_BIND_SHAPES_ONLY, sms, &j->bound, c->d))
        return KILN_E_ARG;
    j->plain = kl_lower(a, m->ast, &j->bound, c->d);
    j->fn = j->plain ? kl_lower(a, m->ast, &j->bound, c->d) : NULL;
    if (!j->fn)
        return KILN_E_COMPILE;
    uint32_t level = j->o->level ? j->o->level : m->ctx->opt.opt_level;
    const kl_pipeline p = {.level = level ? level : 2};
    kl_run_passes(j->fn, &p, NULL);
    /* what the facts of the launch see of addresses */
    for (uint32_t i = 0; i < j->k->nparam; i++)
        if (j->k->param[i].kind == KILN_PARAM_ARRAY)
            j->bound.param[i].data = (void *)(uintptr_t)base_of(j, j->k->param[i].name);
    unsigned facts = kl_facts(j->k, &j->bound);
    e->v16 = (facts & KL_FACT_V16) != 0;
    e->i32 = (facts & KL_FACT_I32) != 0;
    j->ptx = (kl_ptx_opts){.arch = e->arch,
                           .v16 = e->v16,
                           .i32 = e->i32,
                           .no_swizzle = e->no_swizzle,
                           .lines = true};
    kl_buf body = {.a = a}, text = {.a = a};
    kl_ptx_emit(&body, j->fn, &j->ptx, &e->info);
    kl_ptx_prelude(&text, j->fn, &j->ptx, e->info.cluster > 1);
    kl_buf_put(&text, body.s, body.n);
    e->ptx = kl_buf_str(&text);
    e->nptx = text.n;
    e->ptx_version = version_of(a, e->ptx);
    e->kernel = kl_strndup(a, j->k->name, strlen(j->k->name));
    e->place = kl_src_place(&m->ast->src, a, j->k->node->name_span);
    memcpy(e->grid, j->bound.grid, sizeof e->grid);
    e->tuned_line = j->bound.tuned_line;
    e->programs = (uint64_t)e->grid[0] * (uint64_t)e->grid[1] * (uint64_t)e->grid[2];
    uint64_t most = e->info.grid_limit / e->info.cluster;
    e->ctas = (e->programs < most ? e->programs : most) * e->info.cluster;
    e->under_way = kl_explain_under_way(j->fn) / e->info.cluster;
    describe(j);
    if (!j->bound.empty)
        model(j, sms);
    return KILN_OK;
}

/* ---- registers ---- */

static const char *keep_text(kl_explained *e, const char *s)
{
    return kl_printf(&e->a, "%s", s);
}

struct keeping {
    kl_explained *e;
    const char *text;
};

static kiln_status keep_why(struct kl_call *c, void *arg)
{
    struct keeping *k = arg;
    (void)c;
    k->e->regs.why = keep_text(k->e, k->text);
    return KILN_OK;
}

static void failed(struct kl_call *c, kl_explained *e, const char *text)
{
    struct keeping k = {e, text};
    kl_guarded(c, NULL, keep_why, &k);
}

static void ask_ptxas(struct kl_call *c, struct job *j)
{
    kl_explained *e = j->e;
    char msg[KL_CC_MSG];
    kl_ptxas p;
    uint32_t cc = e->chip ? e->chip->cc : e->arch;
    if (kl_ptxas_run(j->k->mod->ctx->cache, j->o->ptxas, e->ptx, e->nptx, cc, e->info.entry,
                     PTXAS_MS, &p, msg)) {
        failed(c, e, msg);
        return;
    }
    e->regs = (kl_regs){.from = KL_REGS_PTXAS,
                        .registers = p.registers,
                        .spill_stores = p.spill_stores,
                        .spill_loads = p.spill_loads,
                        .stack = p.stack,
                        .barriers = p.barriers};
}

static kiln_status from_driver(kl_cuda *cu, struct job *j, kl_cudaerr *err)
{
    kl_explained *e = j->e;
    const kl_cudainfo *d = kl_cuda_info(cu);
    kiln_context *ctx = j->k->mod->ctx;
    void *cubin = NULL;
    size_t size = 0;
    kiln_cache_state state;
    kl_cufn fn = {0};
    uint32_t cc = (uint32_t)(d->major * 10 + d->minor);
    if (cc != (e->chip ? e->chip->cc : e->arch))
        return kl_cuda_fail(err, KL_K1811, KILN_E_DEVICE,
                            "the device here is of compute capability %d.%d", d->major, d->minor);
    const kl_cuentry entry = {e->info.entry, e->info.threads, e->info.dynamic, e->info.cluster};
    kiln_status s = kl_cuda_assemble(cu, ctx->cache, e->ptx, e->nptx, e->kernel, &cubin, &size,
                                     &state, err);
    if (!s)
        s = kl_cuda_load(cu, cubin, &entry, 1, &fn, err);
    if (cubin)
        cu->al.fn(cu->al.user, cubin, size, 0);
    if (s)
        return s;
    e->regs = (kl_regs){.from = KL_REGS_DRIVER,
                        .registers = fn.registers,
                        .stack = fn.local,
                        .spill_stores = fn.local,
                        .spill_loads = fn.local,
                        .blocks = fn.blocks > 0 ? (uint32_t)fn.blocks : 0};
    kl_cuda_unload(cu, &fn);
    return KILN_OK;
}

static void ask_driver(struct kl_call *c, struct job *j)
{
    kl_cuda *cu;
    kl_cudaerr err = {0};
    kiln_status s = kl_cuda_open(&j->k->mod->ctx->al, NULL, 0, &cu, &err);
    if (!s) {
        s = from_driver(cu, j, &err);
        kl_cuda_close(cu);
    }
    if (s && !j->e->regs.why)
        failed(c, j->e, err.text);
}

/* ---- what follows ---- */

static void occupancy(kl_explained *e)
{
    kl_occ least, most;
    e->has_sm = kl_sm_find(e->chip ? e->chip->cc : e->arch, &e->sm);
    e->block = (kl_occ_block){.threads = e->info.threads,
                          .registers = e->regs.registers,
                          .shared = e->info.shared + e->info.dynamic,
                          .barriers = e->regs.from == KL_REGS_PTXAS ? e->regs.barriers : 1};
    if (!e->has_sm)
        return;
    e->has_occ = e->regs.from != KL_REGS_NONE;
    if (!e->has_occ) { /* where any number gives the same, it need not be known */
        kl_occ_block b = e->block;
        b.registers = 1;
        kl_occupancy(&e->sm, &b, &least);
        b.registers = KL_REGISTERS_MOST;
        kl_occupancy(&e->sm, &b, &most);
        e->has_occ = least.blocks == most.blocks;
    }
    kl_occupancy(&e->sm, &e->block, &e->occ);
    kl_occupancy_simple(&e->sm, &e->block, &e->simple);
    if (e->chip && e->has_occ)
        kl_waves_of(e->ctas, e->chip->sms, e->occ.blocks, &e->waves);
}

/* The units that most of the arithmetic runs on. */
static void choose_peak(kl_explained *e)
{
    const kl_chip *c = e->chip;
    const kl_model_work *w = &e->model->work;
    const kl_model_dot *dot = NULL;
    for (uint32_t i = 0; i < e->model->dot.n; i++)
        if (e->model->dot.v[i].tensor)
            dot = &e->model->dot.v[i];
    if (dot && (double)w->dot > e->flop / 2) {
        uint32_t bytes = kl_elems[dot->elem].bytes;
        e->peak = bytes == 1 ? c->t8 : bytes == 2 ? c->t16 : c->t32;
        e->peak_of = bytes == 1 ? "tensor 8-bit" : bytes == 2 ? "tensor 16-bit" : "tensor tf32";
    } else if ((double)w->fp64 > e->flop / 2) {
        e->peak = kl_chip_peak(c, KL_PEAK_FP64);
        e->peak_of = "fp64";
    } else {
        e->peak = kl_chip_peak(c, KL_PEAK_FP32);
        e->peak_of = "fp32";
    }
}

static void roof(kl_explained *e)
{
    const kl_model *m = e->model;
    for (uint32_t i = 0; i < e->narray && !m && e->programs; i++)
        e->bytes += (double)e->array[i].bytes * (e->array[i].reads + e->array[i].writes);
    if (!m)
        return;
    e->bytes = (double)m->moved;
    e->flop = (double)m->work.fp16 + (double)m->work.fp32 + (double)m->work.fp64 +
              (double)m->work.special;
    if (!e->chip)
        return;
    choose_peak(e);
    e->bandwidth = e->chip->memory;
    e->has_roof = e->flop > 0 && !m->cut && kl_roof_of(e->flop, e->bytes, e->bandwidth, e->peak, &e->roof);
}

static void times(kl_explained *e)
{
    if (!e->chip)
        return;
    enum kl_busy longest;
    if (e->model)
        e->has_times = kl_times_of(e->model, e->chip, e->bytes, &e->times);
    kl_times_most(&e->times, &longest);
    e->memory_bound = e->has_times ? longest == KL_BUSY_MEMORY || longest == KL_BUSY_L2
                                   : !e->has_roof || e->roof.memory;
    if (e->has_occ && e->ctas && !(e->model && e->model->cut))
        kl_tail_of(&e->waves, e->chip, e->memory_bound, e->bytes / (double)e->ctas,
                   (double)e->under_way, &e->tail);
}

static kiln_status finish(struct kl_call *c, void *arg)
{
    struct job *j = arg;
    occupancy(j->e);
    roof(j->e);
    times(j->e);
    const kl_note_opts o = {.times = j->e->has_times ? &j->e->times : NULL, .all = j->o->all};
    if (j->e->model)
        kl_model_notes(j->e->model, j->e->in, &o, c->d);
    kl_explain_rules(j->e, j->k->node->name_span, c->d);
    return KILN_OK;
}

static kiln_status explain(struct kl_call *c, struct job *j)
{
    kl_explained *e = j->e;
    kiln_status s = kl_guarded(c, &j->k->mod->ast->src, compile, j);
    if (!s && j->o->ptxas)
        ask_ptxas(c, j);
    if (!s && e->regs.from == KL_REGS_NONE && j->o->driver)
        ask_driver(c, j);
    return s ? s : kl_guarded(c, &j->k->mod->ast->src, finish, j);
}

static bool target_of(const kl_explain_opts *o, uint32_t *arch)
{
    if (o->arch)
        return kl_ptx_parse_arch(o->arch, arch);
    *arch = o->chip ? kl_ptx_target((int)o->chip->cc) : 90;
    return *arch != 0;
}

kiln_status kl_explain(kiln_kernel *k, const kiln_arg *args, size_t n, const kl_explain_opts *o,
                       kl_explained **out, kiln_diags **diags)
{
    struct kl_call c;
    if (diags)
        *diags = NULL;
    *out = NULL;
    const kl_alloc *al = &k->mod->ctx->al;
    kiln_status s = kl_call_begin(&c, al);
    if (s)
        return s;
    kl_explained *e = al->fn(al->user, NULL, 0, sizeof *e);
    if (!e)
        return kl_call_end(&c, KILN_E_NOMEM, diags);
    memset(e, 0, sizeof *e);
    e->al = *al;
    e->env.al = &e->al;
    e->a.env = &c.env;
    e->chip = o->chip;
    e->no_swizzle = o->no_swizzle;
    struct job j = {.k = k, .args = args, .n = n, .o = o, .e = e};
    s = kl_check_args(&c, "kl_explain", k, args, n);
    if (!s && !target_of(o, &e->arch))
        s = kl_say(&c, KL_K1809, KILN_E_ARG, "kl_explain: there is no target for this GPU");
    if (!s)
        s = explain(&c, &j);
    e->a.env = &e->env;
    if (s)
        kl_explain_free(e);
    else
        *out = e;
    return kl_call_end(&c, s, diags);
}

void kl_explain_free(kl_explained *e)
{
    if (!e)
        return;
    kl_alloc al = e->al;
    kl_arena_free(&e->a);
    al.fn(al.user, e, sizeof *e, 0);
}

/* ---- measuring ---- */

static kiln_status take_counts(struct kl_call *c, void *arg)
{
    kl_explained *e = arg;
    (void)c;
    e->counts = kl_new(&e->a, kl_sim_counts);
    return KILN_OK;
}

kiln_status kl_explain_measure(kl_explained *e, kiln_kernel *k, const kiln_arg *args, size_t n,
                               kiln_diags **diags)
{
    struct kl_call c;
    if (diags)
        *diags = NULL;
    kiln_status s = kl_call_begin(&c, &k->mod->ctx->al);
    if (s)
        return s;
    e->a.env = &c.env;
    s = kl_check_args(&c, "kl_explain_measure", k, args, n);
    if (!s)
        s = kl_guarded(&c, NULL, take_counts, e);
    struct kl_item it = {.k = k,
                         .args = args,
                         .n = n,
                         .no_swizzle = e->no_swizzle,
                         .counts = (kl_sim_counts *)(uintptr_t)e->counts,
                         .count_arena = &e->a};
    if (!s)
        s = kl_launch_item(&c, &it, NULL);
    if (s)
        e->counts = NULL;
    e->a.env = &e->env;
    return kl_call_end(&c, s, diags);
}

/* ---- the device of this machine ---- */

bool kl_explain_device(kl_chip *out, char text[KL_EXPLAIN_TEXT])
{
    kl_cudainfo d;
    kl_cudaerr e;
    int n = 0;
    if (kl_cuda_list(&kl_alloc_libc, NULL, &d, 1, &n, &e) || n < 1) {
        snprintf(text, KL_EXPLAIN_TEXT, "%s", n < 1 && e.text[0] ? e.text : "the driver sees no device");
        return false;
    }
    snprintf(text, KL_EXPLAIN_TEXT, "%s", d.name);
    kl_chip row;
    bool known = false;
    for (size_t i = 0; !known && kl_chip_at(i, &row); i++)
        known = strstr(d.name, row.name) != NULL;
    *out = (kl_chip){.source = "the driver's attributes", .label = "driver"};
    if (known)
        *out = row;
    out->name = text;
    out->cc = (uint32_t)(d.major * 10 + d.minor);
    out->sms = (uint32_t)d.sms;
    out->clock = d.clock_khz * 1e-3;
    out->l2 = d.l2_bytes / (1024.0 * 1024);
    if (!known) /* two transfers a clock */
        out->memory = 2.0 * d.mem_clock_khz * 1e-6 * d.bus_bits / 8;
    return true;
}
