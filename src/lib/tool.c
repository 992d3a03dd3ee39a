/* tool.c - see tool.h. */
#include "tool.h"

#include <stdio.h>

#include "gen/c/genc.h"
#include "lib/lib.h"
#include "rt/file.h"

/* ---- stages as text ---- */

struct emitting {
    kiln_module *mod;
    kiln_kernel *k;
    const kiln_arg *args;
    size_t n;
    const kl_tool_emit_opts *o;
    kl_bound bound;
    kl_arena ir;
    kl_buf out;
};

static kiln_status emit(struct kl_call *c, void *arg)
{
    struct emitting *e = arg;
    kiln_context *ctx = e->mod->ctx;
    const kl_tool_emit_opts *o = e->o;
    if (strcmp(o->stage, "ast") == 0) {
        kl_ast_print(&e->out, e->mod->ast);
        return KILN_OK;
    }
    if (!kl_bind(&c->tmp, e->mod->ast, e->k->node, e->args, e->n, KL_BIND_SHAPES_ONLY,
                 kl_num_sms(ctx), &e->bound, c->d))
        return KILN_E_ARG;
    kl_fn *f = kl_lower(&c->tmp, e->mod->ast, &e->bound, c->d);
    if (!f)
        return KILN_E_COMPILE;
    uint32_t level = o->level ? o->level : ctx->opt.opt_level ? ctx->opt.opt_level : 2;
    bool ir = strcmp(o->stage, "ir") == 0;
    const kl_pipeline p = {.level = level,
                           .check = o->check != 0,
                           .skip = o->skip,
                           .stop_after = o->stop_after,
                           .print_after = ir ? o->print_after : NULL,
                           .out = &e->out};
    const struct kl_target target = {.fused = strcmp(o->stage, "c") == 0};
    kl_run_passes(f, &p, &target);
    if (ir) {
        kl_ir_print(&e->out, f);
    } else if (strcmp(o->stage, "ptx") == 0) {
        kl_ptx_opts po = {.arch = 90, .lines = o->lines != 0};
        kl_ptxinfo info;
        unsigned facts = kl_facts(e->k, &e->bound);
        if (o->arch)
            kl_ptx_parse_arch(o->arch, &po.arch);
        po.v16 = facts & KL_FACT_V16;
        po.i32 = facts & KL_FACT_I32;
        kl_buf body = {.a = e->out.a};
        kl_ptx_emit(&body, f, &po, &info);
        kl_ptx_prelude(&e->out, f, &po, info.cluster > 1);
        kl_buf_put(&e->out, body.s, body.n);
    } else {
        kl_cinfo info = {0};
        kl_c_emit(&e->out, f, e->k->name, o->lines != 0, &info);
    }
    return KILN_OK;
}

/* A copy outside the call's arena, with its size in front of it. */
kiln_status kl_tool_hand_over(kiln_context *ctx, kl_buf *b, char **text)
{
    size_t n = b->n + 1 + sizeof(size_t);
    char *p = ctx->al.fn(ctx->al.user, NULL, 0, n);
    if (!p)
        return KILN_E_NOMEM;
    memcpy(p, &n, sizeof n);
    p += sizeof n;
    if (b->n)
        memcpy(p, b->s, b->n);
    p[b->n] = 0;
    *text = p;
    return KILN_OK;
}

void kl_tool_free(kiln_context *ctx, char *text)
{
    size_t n;
    if (!text)
        return;
    text -= sizeof n;
    memcpy(&n, text, sizeof n);
    ctx->al.fn(ctx->al.user, text, n, 0);
}

kiln_status kl_tool_emit(kiln_module *mod, kiln_kernel *k, const kiln_arg *args, size_t n,
                         const kl_tool_emit_opts *opts, char **text, kiln_diags **diags)
{
    struct kl_call c;
    if (diags)
        *diags = NULL;
    *text = NULL;
    kiln_status s = kl_call_begin(&c, &mod->ctx->al);
    if (s)
        return s;
    struct emitting e = {.mod = mod, .k = k, .args = args, .n = n, .o = opts, .out = {.a = &c.tmp}};
    bool ast = strcmp(opts->stage, "ast") == 0;
    uint32_t arch;
    if (opts->arch && !kl_ptx_parse_arch(opts->arch, &arch))
        s = kl_say(&c, KL_K1809, KILN_E_ARG, "kl_tool_emit: there is no target `%s`", opts->arch);
    else if (!ast && strcmp(opts->stage, "ir") != 0 && strcmp(opts->stage, "c") != 0 &&
             strcmp(opts->stage, "ptx") != 0)
        s = kl_say(&c, KL_K1809, KILN_E_ARG, "kl_tool_emit: there is no stage `%s`", opts->stage);
    if (!s && !ast)
        s = kl_check_args(&c, "kl_tool_emit", k, args, n);
    if (!s)
        s = kl_guarded(&c, &mod->ast->src, emit, &e);
    if (!s)
        s = kl_tool_hand_over(mod->ctx, &e.out, text);
    return kl_call_end(&c, s, diags);
}

struct formatting {
    const char *name, *text;
    size_t length;
    kl_buf out;
};

static kiln_status format(struct kl_call *c, void *arg)
{
    struct formatting *f = arg;
    return kl_format(&c->tmp, f->name, f->text, f->length, &f->out, c->d) ? KILN_OK
                                                                          : KILN_E_COMPILE;
}

kiln_status kl_tool_format(kiln_context *ctx, const char *name, const char *text, size_t length,
                           char **out, size_t *n, kiln_diags **diags)
{
    struct kl_call c;
    if (diags)
        *diags = NULL;
    *out = NULL;
    *n = 0;
    kiln_status s = kl_call_begin(&c, &ctx->al);
    if (s)
        return s;
    struct formatting f = {name, text, length, {.a = &c.tmp}};
    s = kl_guarded(&c, NULL, format, &f);
    if (!s)
        s = kl_tool_hand_over(ctx, &f.out, out);
    *n = *out ? f.out.n : 0;
    return kl_call_end(&c, s, diags);
}

static kiln_status print_ops(struct kl_call *c, void *arg)
{
    (void)c;
    kl_ops_markdown(arg);
    return KILN_OK;
}

kiln_status kl_tool_ops_markdown(kiln_context *ctx, char **text)
{
    struct kl_call c;
    *text = NULL;
    kiln_status s = kl_call_begin(&c, &ctx->al);
    if (s)
        return s;
    kl_buf out = {.a = &c.tmp};
    s = kl_guarded(&c, NULL, print_ops, &out);
    if (!s)
        s = kl_tool_hand_over(ctx, &out, text);
    return kl_call_end(&c, s, NULL);
}

/* ---- a resolved launch ---- */

kiln_status kl_tool_resolve(kiln_kernel *k, const kiln_arg *args, size_t n, kl_tool_param *out,
                            int64_t grid[3], kiln_diags **diags)
{
    struct kl_call c;
    if (diags)
        *diags = NULL;
    kiln_status s = kl_call_begin(&c, &k->mod->ctx->al);
    if (s)
        return s;
    kl_bound bound = {0};
    s = kl_bind_shapes(&c, "kl_tool_resolve", k, args, n, &bound);
    for (size_t i = 0; !s && i < k->nparam; i++) {
        const struct kl_boundparam *p = &bound.param[i];
        kl_tool_param *o = &out[i];
        *o = (kl_tool_param){
            .name = k->param[i].name, .kind = k->param[i].kind, .dtype = (kiln_dtype)p->elem};
        for (size_t j = 0; j < n; j++)
            o->given |= strcmp(args[j].name, o->name) == 0;
        if (o->kind == KILN_PARAM_ARRAY) {
            o->ndim = p->rank;
            memcpy(o->shape, p->ext, sizeof o->shape);
            memcpy(o->strides, p->str, sizeof o->strides);
        } else if (o->kind != KILN_PARAM_TYPE && p->elem) {
            enum kl_elem e = (enum kl_elem)p->elem;
            o->is_float = kl_is_float(e);
            o->fval = kl_elem_double(e, p->bits);
            o->ival = o->is_float ? 0 : (int64_t)p->bits;
        }
    }
    if (!s && grid)
        memcpy(grid, bound.grid, sizeof bound.grid);
    return kl_call_end(&c, s, diags);
}

/* ---- cases, lists ---- */

size_t kl_tool_test_count(const kiln_module *mod)
{
    return mod ? mod->ast->tests.n : 0;
}

const char *kl_tool_test_line(const kiln_module *mod, size_t i, kiln_place *place)
{
    if (!mod || i >= mod->ast->tests.n)
        return NULL;
    const struct kl_testline *t = &mod->ast->tests.v[i];
    if (place) {
        /* without a copy of the line: that would need memory */
        const struct kl_file *f = kl_src_file(&mod->ast->src, t->span.beg);
        *place = (kiln_place){0};
        if (f) {
            uint32_t at = t->span.beg - f->base;
            place->file = f->name;
            place->line = place->col = 1;
            for (uint32_t k = 0; k < at && k < f->len; k++) {
                place->col++;
                if (f->text[k] == '\n')
                    place->line++, place->col = 1;
            }
            place->end_col = place->col + (t->span.end - t->span.beg);
        }
    }
    return t->text;
}

const char *kl_tool_pass_name(size_t i)
{
    return i < kl_npasses ? kl_passes[i].name : NULL;
}

const char *kl_tool_pass_doc(size_t i)
{
    return i < kl_npasses ? kl_passes[i].doc : NULL;
}

const char *kl_tool_arch_name(size_t i)
{
    static const char *const name[] = {
#define PTX_TARGET(arch, ...) "sm_" #arch,
#include "gen/ptx/target.def"
    };
    return i < sizeof name / sizeof *name ? name[i] : NULL;
}

const char *kl_tool_embedded_name(size_t i)
{
    return i < UINT32_MAX ? kl_embedded_name((uint32_t)i) : NULL;
}

const char *kl_tool_diag_code(size_t i, const char **title, const char **page)
{
    if (i + 1 >= KL_NDIAG)
        return NULL;
    const struct kl_diaginfo *d = &kl_diaginfos[i + 1];
    if (title)
        *title = d->title;
    if (page)
        *page = d->page;
    return d->code;
}

/* ---- doctor ---- */

const char *kl_tool_cpu_level(void)
{
    return kl_cpu_level();
}

const char *kl_tool_cc_version(const kiln_context *ctx)
{
    return ctx->cc.path ? ctx->cc.version : NULL;
}

int kl_tool_cuda_device(size_t i, kiln_device_info *out, char *text, size_t n)
{
    enum { MOST = 64 };
    kl_cudainfo info[MOST];
    kl_cudaerr e;
    int count;
    if (n)
        text[0] = 0;
    if (kl_cuda_list(&kl_alloc_libc, NULL, info, MOST, &count, &e)) {
        snprintf(text, n, "%s", e.text);
        return -1;
    }
    if (count == 0)
        snprintf(text, n, "the driver sees no device");
    if (i >= (size_t)count || i >= MOST)
        return count ? 0 : -1;
    const kl_cudainfo *c = &info[i];
    snprintf(text, n, "%s", c->name);
    *out = kl_info_of(c, text, "", (int32_t)i);
    return 1;
}

const char *kl_tool_cc_problem(const kiln_context *ctx)
{
    return ctx->cc_problem;
}

void kl_tool_kill_children(void)
{
    kl_child_kill_all();
}

void kl_tool_drop_notes(kiln_diags *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; d && i < d->list.n; i++)
        if (d->list.v[i]->pub.severity != KILN_NOTE)
            d->list.v[n++] = d->list.v[i];
    if (d)
        d->list.n = n;
}
