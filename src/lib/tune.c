/* tune.c - tuned constants of a module: which hold here, and what a search of them needs.
 *
 * An entry holds for a kernel whose tree is what it was (comments, layout, the other kernels and the
 * tune clauses do not count), and for a device whose name begins as the entry says.  The rest, types
 * and sizes, is decided at each launch (lang/bind.c). */
#include "base/tunefile.h"
#include "gen/c/genc.h"
#include "lang/setup.h"
#include "lib/lib.h"
#include "model/model.h"
#include "model/occupancy.h"
#include "tool.h"

/* ---- names of things ---- */

static const char *device_text(kl_arena *a, const kiln_context *ctx)
{
    switch (ctx->device) {
    case KILN_DEVICE_CUDA:
        return kl_printf(a, "cuda %s %s", ctx->info.arch, kl_tune_device_name(a, ctx->info.name));
    case KILN_DEVICE_SIM: return kl_printf(a, "sim %s", ctx->info.arch);
    case KILN_DEVICE_CPU: return kl_printf(a, "cpu %s", ctx->level);
    default: return "interp";
    }
}

/* The kernel without its tune clauses. */
static const kl_node *untuned(kl_arena *a, const kl_node *kernel)
{
    kl_node *k = kl_new(a, kl_node), *c = kl_new(a, kl_node);
    *k = *kernel;
    *c = *kernel->kid[1];
    k->kid = kl_new_n(a, kl_node *, k->nkid + 1);
    c->kid = kl_new_n(a, kl_node *, c->nkid + 1);
    c->nkid = 0;
    for (uint32_t i = 0; i < k->nkid; i++)
        k->kid[i] = i == 1 ? c : kernel->kid[i];
    for (uint32_t i = 0; i < kernel->kid[1]->nkid; i++)
        if (kernel->kid[1]->kid[i]->kind != KL_N_TUNE)
            c->kid[c->nkid++] = kernel->kid[1]->kid[i];
    return k;
}

/* 16 digits for the kernel and everything in its module that is no other kernel. */
static const char *source_hash(kl_arena *a, const kiln_kernel *k)
{
    const kl_node *root = k->mod->ast->root;
    kl_buf b = {.a = a};
    kl_sha256 h;
    uint8_t id[32];
    char hex[17];
    for (uint32_t i = 0; i < root->nkid; i++)
        if (root->kid[i]->kind != KL_N_KERNEL)
            kl_ast_print_node(&b, root->kid[i]);
    kl_ast_print_node(&b, untuned(a, k->node));
    kl_sha256_init(&h);
    kl_sha256_add(&h, kl_buf_str(&b), b.n);
    kl_sha256_end(&h, id);
    kl_hex(hex, id, 8);
    return kl_strndup(a, hex, 16);
}

/* ---- kiln_module_tune ---- */

struct tuning {
    kiln_module *mod;
    const char *name, *text, *device; /* device: NULL: the context's */
    size_t n;
    kl_tunefile file;
    kl_srcmap map;
    uint32_t src;
    struct kl_tuned *out;
    uint32_t nout;
};

/* Line number `line` of the text. */
static kl_span line_span(const struct tuning *t, uint32_t line)
{
    const struct kl_file *f = &t->map.files.v[t->src];
    uint32_t at = 0, end;
    while (--line && at < f->len)
        at += (uint32_t)strcspn(f->text + at, "\n") + 1;
    at = at < f->len ? at : f->len;
    at += (uint32_t)strspn(f->text + at, " \t");
    end = at + (uint32_t)strcspn(f->text + at, "\n");
    return (kl_span){f->base + at, f->base + end};
}

static void open_text(struct kl_call *c, struct tuning *t)
{
    char *text = kl_strndup(&c->tmp, t->text ? t->text : "", t->n);
    t->map.a = t->file.a = &c->tmp;
    t->src = kl_src_add(&t->map, kl_strndup(&c->tmp, t->name, strlen(t->name)), text,
                        (uint32_t)t->n, false);
    kl_diags_use(c->d, &c->env, &t->map);
}

static bool read_text(struct kl_call *c, struct tuning *t)
{
    uint32_t line;
    const char *why;
    if (kl_tunefile_parse(&t->file, t->text, t->n, &line, &why))
        return true;
    kl_diag(c->d, KL_K1819, line_span(t, line), "%s", why);
    return false;
}

static const kl_node *param_of(const kiln_kernel *k, const char *name, enum kl_pk want)
{
    const kl_node *params = k->node->kid[0];
    for (uint32_t i = 0; i < params->nkid; i++)
        if (strcmp(params->kid[i]->name, name) == 0 && kl_param_kind(params->kid[i]) == want)
            return params->kid[i];
    return NULL;
}

static bool take_constants(struct kl_call *c, struct tuning *t, const kiln_kernel *k,
                           const struct kl_tuneentry *e, const kl_tunepairs *from,
                           struct kl_tunedval *out, uint32_t *n)
{
    for (uint32_t i = 0; i < from->n; i++) {
        const struct kl_tunepair *p = &from->v[i];
        const kl_node *node = param_of(k, p->name, KL_PK_CONST);
        if (!node && kl_knob_of(p->name) < 0) {
            kl_diag(c->d, KL_K1819, line_span(t, e->line), "kernel `%s` has no constant `%s`",
                    k->name, p->name);
            return false;
        }
        out[(*n)++] = (struct kl_tunedval){
            node ? node->name : kl_knob_name[kl_knob_of(p->name)], p->v, false};
    }
    return true;
}

static bool take_entry(struct kl_call *c, struct tuning *t, const kiln_kernel *k,
                       const struct kl_tuneentry *e)
{
    kl_arena *a = &t->mod->a;
    struct kl_tuned *o = &t->out[t->nout];
    *o = (struct kl_tuned){.kernel = k->name,
                           .line = e->line,
                           .when = kl_new_n(a, struct kl_tunedval, e->when.n + 1),
                           .with = kl_new_n(a, struct kl_tunedval, e->with.n + 1),
                           .use = kl_new_n(a, struct kl_tunedval, e->use.n + 1)};
    for (uint32_t i = 0; i < e->when.n; i++) {
        const struct kl_tunepair *p = &e->when.v[i];
        const kl_node *n = param_of(k, p->name, p->type ? KL_PK_TYPE : KL_PK_SCALAR);
        if (!n) {
            kl_diag(c->d, KL_K1819, line_span(t, e->line), "kernel `%s` has no %s `%s`", k->name,
                    p->type ? "type" : "size", p->name);
            return false;
        }
        o->when[o->nwhen++] = (struct kl_tunedval){
            n->name, p->type ? (int64_t)kl_elem_by_name(p->type, (uint32_t)strlen(p->type)) : p->v,
            p->least};
    }
    if (!take_constants(c, t, k, e, &e->with, o->with, &o->nwith) ||
        !take_constants(c, t, k, e, &e->use, o->use, &o->nuse))
        return false;
    t->nout++;
    return true;
}

static kiln_status take(struct kl_call *c, void *arg)
{
    struct tuning *t = arg;
    kiln_module *m = t->mod;
    open_text(c, t);
    if (t->n && !read_text(c, t))
        return KILN_E_ARG;
    const char *own = t->device ? t->device : device_text(&c->tmp, m->ctx);
    t->out = kl_new_n(&m->a, struct kl_tuned, t->file.entry.n + 1);
    for (uint32_t i = 0; i < t->file.entry.n; i++) {
        const struct kl_tuneentry *e = &t->file.entry.v[i];
        const kiln_kernel *k = kiln_module_kernel(m, e->kernel);
        if (!kl_tune_device_fits(e->device, own) &&
            !(t->device && kl_tune_device_fits(own, e->device)))
            continue; /* whatever it says is nobody's concern here */
        if (!k)
            kl_diag(c->d, KL_K1820, line_span(t, e->line), "there is no kernel `%s` any more",
                    e->kernel);
        else if (e->source && strcmp(e->source, source_hash(&c->tmp, k)) != 0)
            kl_diag(c->d, KL_K1820, line_span(t, e->line),
                    "kernel `%s` has changed since it was tuned: this entry is not used", k->name);
        else if (!take_entry(c, t, k, e))
            return KILN_E_ARG;
    }
    return KILN_OK;
}

kiln_status kl_tool_tune(kiln_module *mod, const char *name, const char *text, size_t length,
                         const char *device, kiln_diags **diags)
{
    enum { MOST = 16 << 20 };
    struct kl_call c;
    if (diags)
        *diags = NULL;
    if (!mod)
        return KILN_E_ARG;
    kiln_status s = kl_call_begin(&c, &mod->ctx->al);
    if (s)
        return s;
    struct tuning t = {
        .mod = mod, .name = name ? name : "<tune>", .text = text, .device = device, .n = length};
    if ((!text && length) || length > MOST)
        s = kl_say(&c, KL_K1809, KILN_E_ARG,
                   text ? "kiln_module_tune: a text of %zu bytes"
                        : "kiln_module_tune: text is NULL, of %zu bytes",
                   length);
    mod->a.env = &c.env;
    if (!s)
        s = kl_guarded(&c, NULL, take, &t);
    mod->a.env = &mod->env;
    kl_diags_use(c.d, &c.env, NULL);
    if (!s) {
        mod->ast->tuned = t.out;
        mod->ast->ntuned = t.nout;
        for (size_t i = 0; i < mod->nkernel; i++) { /* recent launches may be of other constants */
            pthread_mutex_lock(&mod->kernel[i].lock);
            kl_fast_free(&mod->kernel[i]);
            mod->kernel[i].nfast = 0;
            pthread_mutex_unlock(&mod->kernel[i].lock);
        }
        kl_log(mod->ctx, "tuned constants %s: %u of %u entries can be used", t.name, t.nout,
               t.file.entry.n);
    }
    return kl_call_end(&c, s, diags);
}

kiln_status kiln_module_tune(kiln_module *mod, const char *name, const char *text, size_t length,
                             kiln_diags **diags)
{
    return kl_tool_tune(mod, name, text, length, NULL, diags);
}

size_t kl_tool_tuned_count(const kiln_module *mod)
{
    return mod ? mod->ast->ntuned : 0;
}

/* ---- the space of a launch ---- */

struct space {
    kl_tool_space pub; /* first */
    const kiln_kernel *k;
    kl_alloc al;
    kl_env env;
    kl_arena a;
    kl_tunepairs when, with;
};

struct asking {
    kiln_kernel *k;
    const kiln_arg *args;
    size_t n;
    const char *above;
    struct space *s;
};

static void pairs_text(kl_buf *b, const kl_tunepairs *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        kl_putf(b, "%s%s%s=", b->n ? " " : "", w->v[i].name, w->v[i].least ? ">" : "");
        if (w->v[i].type)
            kl_puts(b, w->v[i].type);
        else
            kl_putf(b, "%lld", (long long)w->v[i].v);
    }
}

static const char *when_text(struct space *s)
{
    kl_buf b = {.a = &s->a};
    pairs_text(&b, &s->when);
    if (s->with.n)
        kl_puts(&b, " with");
    pairs_text(&b, &s->with);
    return kl_buf_str(&b);
}

/* The sizes named, with commas between them, or `all`: the entry is to hold above their classes, too. */
static bool above(struct kl_call *c, const struct asking *q)
{
    struct space *s = q->s;
    for (const char *from = q->above; from && *from;) {
        size_t n = strcspn(from, ",");
        bool all = n == 3 && strncmp(from, "all", n) == 0, any = all;
        for (uint32_t i = 0; i < s->when.n; i++)
            if (!s->when.v[i].type && (all || (strlen(s->when.v[i].name) == n &&
                                               strncmp(s->when.v[i].name, from, n) == 0)))
                s->when.v[i].least = any = true;
        if (!any) {
            kl_say(c, KL_K1809, KILN_E_ARG, "kernel `%s` has no size `%.*s`: its entries are for %s",
                   q->k->name, (int)n, from, when_text(s));
            return false;
        }
        from += n + (from[n] == ',');
    }
    return true;
}

static bool is_given(const struct asking *q, const char *name)
{
    for (size_t i = 0; i < q->n; i++)
        if (strcmp(q->args[i].name, name) == 0)
            return true;
    return false;
}

static kiln_status find_space(struct kl_call *c, void *arg)
{
    struct asking *q = arg;
    struct space *s = q->s;
    kl_arena *a = &s->a;
    const kiln_module *m = q->k->mod;
    const kl_node *params = q->k->node->kid[0];
    kl_bound bd;
    kl_space sp;
    if (!kl_bind_space(a, m->ast, q->k->node, q->args, q->n, kl_num_sms(m->ctx), &bd, &sp, c->d))
        return KILN_E_ARG;
    for (uint32_t p = 0; p < bd.nparam; p++) {
        struct kl_tunepair w = {.name = params->kid[p]->name};
        if (kl_param_kind(params->kid[p]) == KL_PK_TYPE)
            w.type = kl_elems[bd.param[p].elem].name;
        else if (kl_is_size(q->k->node, p))
            w.v = kl_size_class((int64_t)bd.param[p].bits);
        else
            continue;
        kl_push(a, &s->when, w);
    }
    for (uint32_t p = 0; p < bd.nparam; p++) { /* what is given: nothing was found for others */
        enum kl_elem el = (enum kl_elem)bd.param[p].elem;
        const struct kl_tunepair w = {.name = params->kid[p]->name,
                                      .v = (int64_t)bd.param[p].bits};
        if (kl_param_kind(params->kid[p]) == KL_PK_CONST && is_given(q, w.name) &&
            (kl_is_int(el) || el == KL_bool))
            kl_push(a, &s->with, w);
    }
    for (int k = 0; k < KL_NKNOB; k++)
        if (is_given(q, kl_knob_name[k])) {
            const struct kl_tunepair w = {.name = kl_knob_name[k], .v = bd.knob[k]};
            kl_push(a, &s->with, w);
        }
    if (!above(c, q))
        return KILN_E_ARG;
    s->pub = (kl_tool_space){.device = device_text(a, m->ctx),
                             .source = source_hash(a, q->k),
                             .when = when_text(s),
                             .var = kl_new_n(a, kl_tool_var, sp.nvar + 1),
                             .nvar = sp.nvar};
    for (uint32_t i = 0; i < sp.nvar; i++)
        s->pub.var[i] = (kl_tool_var){sp.var[i].name, sp.var[i].v, sp.var[i].n, sp.var[i].preset,
                                      sp.var[i].knob};
    return KILN_OK;
}

kiln_status kl_tool_space_get(kiln_kernel *k, const kiln_arg *args, size_t n, const char *above,
                              kl_tool_space **out, kiln_diags **diags)
{
    struct kl_call c;
    kiln_context *ctx = k->mod->ctx;
    if (diags)
        *diags = NULL;
    *out = NULL;
    kiln_status st = kl_call_begin(&c, &ctx->al);
    if (st)
        return st;
    struct space *s = ctx->al.fn(ctx->al.user, NULL, 0, sizeof *s);
    if (!s)
        return kl_call_end(&c, KILN_E_NOMEM, diags);
    memset(s, 0, sizeof *s);
    s->k = k;
    s->al = ctx->al;
    s->a.env = &c.env;
    struct asking q = {k, args, n, above, s};
    st = kl_check_args(&c, "kl_tool_space_get", k, args, n);
    if (!st)
        st = kl_guarded(&c, &k->mod->ast->src, find_space, &q);
    s->env.al = &s->al;
    s->a.env = &s->env;
    if (st) {
        kl_tool_space_free(&s->pub);
        s = NULL;
    }
    *out = s ? &s->pub : NULL;
    return kl_call_end(&c, st, diags);
}

void kl_tool_space_free(kl_tool_space *pub)
{
    struct space *s = (struct space *)pub;
    if (!s)
        return;
    kl_alloc al = s->al;
    kl_arena_free(&s->a);
    al.fn(al.user, s, sizeof *s, 0);
}

/* ---- what a candidate would need ---- */

struct needing {
    kiln_kernel *k;
    const kiln_arg *args;
    size_t n;
    bool count;
    kl_tool_need *out;
};

static uint64_t widest(const kl_fn *f)
{
    uint64_t most = 1;
    for (uint32_t i = 1; i < f->nins; i++) {
        const struct kl_type *t = &f->type[f->ins[i].type.id];
        uint64_t n = t->kind == KL_T_TILE ? kl_numel(t) : 1;
        most = n > most ? n : most;
    }
    return most;
}

/* Blocks of a multiprocessor by all but registers, which nobody knows yet. */
static void fit(uint32_t cc, kl_tool_need *o)
{
    const kl_occ_block b = {.threads = o->threads, .shared = o->shared_bytes};
    kl_sm sm;
    kl_occ occ;
    if (!kl_sm_find(cc, &sm))
        return;
    kl_occupancy(&sm, &b, &occ);
    o->blocks = occ.blocks;
    o->warps = occ.warps;
    o->shared_most = sm.shared_most;
}

static void text_of(const struct needing *q, const kl_bound *bd, const kl_fn *f, kl_buf *b)
{
    const kiln_context *ctx = q->k->mod->ctx;
    kl_tool_need *o = q->out;
    if (kl_on_gpu(ctx)) {
        unsigned facts = kl_facts(q->k, bd);
        const kl_ptx_opts po = {.arch = ctx->arch,
                                .v16 = facts & KL_FACT_V16,
                                .i32 = facts & KL_FACT_I32,
                                .exact = !ctx->cuda};
        kl_ptxinfo info;
        kl_ptx_emit(b, f, &po, &info);
        o->threads = info.threads;
        o->shared_bytes = info.shared + info.dynamic;
        o->cluster = info.cluster;
        fit(ctx->arch, o);
    } else {
        kl_cinfo info = {0};
        kl_c_emit(b, f, "KILN_KERNEL", false, &info);
        o->scratch_bytes = info.scratch;
        for (uint32_t i = 0; i < info.nextra; i++)
            kl_putf(b, "/* %lld */", (long long)info.extra[i]);
    }
}

/* What a launch would move and compute; programs are sampled. */
static void count(struct kl_call *c, const struct needing *q, const kl_bound *bd, const kl_fn *f)
{
    const kiln_context *ctx = q->k->mod->ctx;
    unsigned facts = kl_facts(q->k, bd);
    const kl_ptx_opts po = {
        .arch = ctx->arch, .v16 = facts & KL_FACT_V16, .i32 = facts & KL_FACT_I32};
    kl_model_param *mp = kl_new_n(&c->tmp, kl_model_param, f->nparam + 1);
    for (uint32_t i = 0; i < f->nparam; i++) {
        const struct kl_boundparam *b = &bd->param[f->param[i].decl];
        mp[i] = (kl_model_param){
            .name = f->param[i].name, .given = b->given, .bits = b->bits, .rank = b->rank};
        memcpy(mp[i].ext, b->ext, sizeof mp[i].ext);
        memcpy(mp[i].str, b->str, sizeof mp[i].str);
    }
    const kl_model_in in = {.f = f,
                            .ptx = &po,
                            .param = mp,
                            .grid = {bd->grid[0], bd->grid[1], bd->grid[2]},
                            .num_sms = kl_num_sms(ctx),
                            .budget = 1 << 18};
    kl_model m;
    kl_model_make(&m, &in);
    q->out->counted = m.doubt.n == 0;
    q->out->sectors = m.gload.units + m.gstore.units + m.atomic.units;
    q->out->wavefronts = m.sload.units + m.sstore.units;
    q->out->work = m.work.fp16 + m.work.fp32 + 2 * m.work.fp64 + m.work.special + m.work.integer;
}

static kiln_status find_need(struct kl_call *c, void *arg)
{
    struct needing *q = arg;
    const kiln_module *m = q->k->mod;
    kl_buf b = {.a = &c->tmp};
    kl_bound bd;
    kl_sha256 h;
    if (!kl_bind(&c->tmp, m->ast, q->k->node, q->args, q->n, KL_BIND_SHAPES_ONLY,
                 kl_num_sms(m->ctx), &bd, c->d))
        return KILN_E_ARG;
    kl_fn *f = kl_lower(&c->tmp, m->ast, &bd, c->d);
    if (!f)
        return KILN_E_COMPILE;
    const kl_pipeline p = {.level = m->ctx->opt.opt_level ? m->ctx->opt.opt_level : 2};
    kl_run_passes(f, &p, NULL);
    text_of(q, &bd, f, &b);
    q->out->widest = widest(f);
    if (q->count && kl_on_gpu(m->ctx) && !bd.empty) {
        kl_fn *other = kl_lower(&c->tmp, m->ast, &bd, c->d);
        kl_run_passes(other, &p, NULL);
        count(c, q, &bd, other);
    }
    memcpy(q->out->grid, bd.grid, sizeof bd.grid);
    kl_sha256_init(&h);
    kl_sha256_add(&h, kl_buf_str(&b), b.n);
    kl_sha256_add(&h, bd.grid, sizeof bd.grid);
    kl_sha256_end(&h, q->out->code);
    return KILN_OK;
}

kiln_status kl_tool_need_get(kiln_kernel *k, const kiln_arg *args, size_t n, int count,
                             kl_tool_need *out, kiln_diags **diags)
{
    struct kl_call c;
    if (diags)
        *diags = NULL;
    memset(out, 0, sizeof *out);
    kiln_status s = kl_call_begin(&c, &k->mod->ctx->al);
    if (s)
        return s;
    struct needing q = {k, args, n, count != 0, out};
    s = kl_check_args(&c, "kl_tool_need_get", k, args, n);
    if (!s)
        s = kl_guarded(&c, &k->mod->ast->src, find_need, &q);
    return kl_call_end(&c, s, diags);
}

/* ---- writing the file ---- */

struct writing {
    struct tuning t;
    const kl_tool_tuned *e;
    size_t ne;
    kl_buf out;
};

static kiln_status write_text(struct kl_call *c, void *arg)
{
    struct writing *w = arg;
    kl_tunefile *f = &w->t.file;
    w->out.a = &c->tmp;
    open_text(c, &w->t);
    if (w->t.n && !read_text(c, &w->t))
        return KILN_E_ARG;
    for (size_t i = 0; i < w->ne; i++) {
        const kl_tool_tuned *e = &w->e[i];
        const struct space *s = (const struct space *)e->space;
        struct kl_tuneentry one = {.kernel = e->k->name,
                                   .source = s->pub.source,
                                   .device = s->pub.device,
                                   .when = s->when,
                                   .with = s->with,
                                   .ms = e->ms,
                                   .of_ms = e->of_ms};
        for (size_t j = 0; e->use && j < e->nvar; j++)
            if (e->use[j] || !e->var[j].is_knob) {
                const struct kl_tunepair p = {.name = e->var[j].name, .v = e->use[j]};
                kl_push(&c->tmp, &one.use, p);
            }
        kl_tunefile_put(f, &one);
    }
    kl_tunefile_print(&w->out, f);
    return KILN_OK;
}

kiln_status kl_tool_tune_text(kiln_module *mod, const char *name, const char *old, size_t n,
                              const kl_tool_tuned *e, size_t ne, char **text, kiln_diags **diags)
{
    struct kl_call c;
    if (diags)
        *diags = NULL;
    *text = NULL;
    kiln_status s = kl_call_begin(&c, &mod->ctx->al);
    if (s)
        return s;
    struct writing w = {.t = {.mod = mod, .name = name, .text = old, .n = n}, .e = e, .ne = ne};
    s = kl_guarded(&c, NULL, write_text, &w);
    kl_diags_use(c.d, &c.env, NULL);
    if (!s)
        s = kl_tool_hand_over(mod->ctx, &w.out, text);
    return kl_call_end(&c, s, diags);
}
