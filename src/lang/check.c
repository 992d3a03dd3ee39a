/* check.c - kernels: the first phase of checking, and lowering to IR. */
#include "lang/setup.h"

enum kl_pk kl_param_kind(const kl_node *p)
{
    if (p->kind != KL_N_PARAM)
        return KL_PK_BAD;
    if (p->flags & KL_NF_TYPEPARAM)
        return KL_PK_TYPE;
    if (kl_param_dims(p))
        return KL_PK_ARRAY;
    return p->flags & KL_NF_CONSTEXPR ? KL_PK_CONST : KL_PK_SCALAR;
}

const kl_node *kl_find_kernel(const kl_module_ast *m, const char *name)
{
    for (uint32_t i = 0; i < m->kernels.n; i++)
        if (strcmp(m->kernels.v[i]->name, name) == 0)
            return m->kernels.v[i];
    return NULL;
}

/* ---- parameters ---- */

static void add_type(kl_elab *e, kl_node *p, const struct kl_boundparam *b)
{
    bool ok = true;
    if (p->nkid > 0 && p->kid[0] && !b)
        kl_eval_type(e, p->kid[0], &ok);
    kl_sym *s = kl_sym_add(e, KL_S_TYPE, p->name, p->name_span);
    s->elem = b ? b->elem : 0;
    s->node = p;
    s->param = true;
}

static enum kl_elem declared_elem(kl_elab *e, const kl_node *p, bool *ok)
{
    const kl_node *t = p->kid[0];
    if (t && t->kind == KL_N_TYPE && (strcmp(t->name, "auto") == 0 || strcmp(t->name, "void") == 0)) {
        kl_err(e, KL_K0205, t->span, "a parameter of a kernel has a type of its own, not %s", t->name);
        *ok = false;
        return KL_elem_none;
    }
    if (kl_is_struct_type(t)) {
        kl_err(e, KL_K0223, t->span, "a parameter of a kernel is an array or a scalar, not a struct");
        *ok = false;
        return KL_elem_none;
    }
    return t ? kl_eval_type(e, t, ok) : KL_elem_none;
}

/* The default value, for its own errors. */
static void check_default(kl_elab *e, const kl_node *p, enum kl_elem el)
{
    const kl_node *d = kl_param_default(p);
    if (!d || e->mode != KL_CHECK)
        return;
    kl_value v = kl_rvalue(e, d);
    if (v.kind != KL_V_TILE)
        return;
    v.span = d->span;
    if (v.rank)
        kl_err(e, KL_K0308, d->span, "a default value is a scalar");
    else if (v.untyped || !(p->flags & KL_NF_CONSTEXPR))
        kl_move(e, v, el, KL_CONSTINIT, "the default value");
}

static void add_const(kl_elab *e, kl_node *p, const struct kl_boundparam *b)
{
    bool ok;
    enum kl_elem el = declared_elem(e, p, &ok);
    if (!b)
        check_default(e, p, el);
    kl_sym *s = kl_sym_add(e, KL_S_CONST, p->name, p->name_span);
    s->node = p;
    s->param = true;
    s->val = kl_bad(p->span);
    if (!ok)
        return;
    bool isint = el && kl_is_int(el);
    if (b) {
        s->val = isint ? kl_int_of(el, b->bits, p->span) : kl_typed(el, b->bits, p->span);
        return;
    }
    s->val = kl_int(0, p->span);
    s->val.known = false;
    s->val.sym = kl_symbol(e, "%s", p->name);
    if (!isint)
        s->val.untyped = false, s->val.elem = (uint8_t)el;
}

static void add_scalar(kl_elab *e, kl_node *p, kl_val ir)
{
    bool ok;
    enum kl_elem el = declared_elem(e, p, &ok);
    check_default(e, p, el);
    kl_sym *s = kl_sym_add(e, KL_S_VAR, p->name, p->name_span);
    s->node = p;
    s->param = true;
    s->val = ok ? kl_rt(e, el, 0, NULL, (kl_val){0}, p->span) : kl_bad(p->span);
    s->var = kl_var_new(e, ir, KL_DEF);
    s->isconst = p->flags & KL_NF_CONST;
}

/* A name in an extent that is no parameter: what the host gives cannot determine it. */
static bool extents_known(kl_elab *e, const kl_node *p, const kl_node *n)
{
    if (!n)
        return true;
    if (n->kind == KL_N_NAME && !kl_sym_find(e, n->name)) {
        const char *names[64];
        uint32_t k = 0;
        for (kl_sym *s = e->scope->head; s && k < 64; s = s->next)
            if (s->kind == KL_S_VAR || s->kind == KL_S_CONST)
                names[k++] = s->name;
        const char *near = kl_nearest(n->name, names, k);
        struct kl_diag *g = kl_err(e, KL_K0602, n->span, "nothing determines the extent `%s` of `%s`",
                                   n->name, p->name);
        if (near)
            kl_fix(g, n->span, "%s", near);
        else
            kl_fix(g, (kl_span){p->span.beg, p->span.beg}, "i64 %s, ", n->name);
        kl_sym *missing = kl_sym_add(e, KL_S_CONST, n->name, n->span); /* said once */
        missing->val = kl_bad(n->span);
        missing->used = true;
        return false;
    }
    bool ok = true;
    for (uint32_t i = 0; i < n->nkid; i++)
        ok &= extents_known(e, p, n->kid[i]);
    return ok;
}

static void add_array(kl_elab *e, kl_node *p, const struct kl_boundparam *b, kl_val ir)
{
    bool ok;
    struct kl_arr *arr = kl_new(e->a, struct kl_arr);
    arr->name = p->name;
    arr->decl = p->name_span;
    arr->elem = (uint8_t)declared_elem(e, p, &ok);
    arr->isconst = p->flags & KL_NF_CONST;
    arr->given = !b || b->given;
    arr->param = p;
    kl_sym *s = kl_sym_add(e, KL_S_ARRAY, p->name, p->name_span);
    s->node = p;
    s->param = true;
    if (!ok || !extents_known(e, p, kl_param_dims(p)) || !extents_known(e, p, kl_param_strides(p)))
        return;
    kl_array_layout(e, arr, kl_param_dims(p), kl_param_strides(p));
    for (uint32_t i = 0; i < arr->rank; i++)
        if (arr->ext[i].kind != KL_V_TILE || arr->str[i].kind != KL_V_TILE)
            return;
    s->arr = arr;
    if (e->mode == KL_CHECK)
        check_default(e, p, (enum kl_elem)arr->elem);
    if (e->mode == KL_CHECK && kl_param_default(p)) {
        p->flags |= KL_NF_WRITTEN;
        if (arr->isconst)
            kl_err(e, KL_K0316, p->span, "`%s` is const, so it has no initial value", p->name);
    }
    if (!kl_emitting(e) || !arr->given)
        return;
    kl_val args[2 + 2 * KL_MAX_DIMS];
    uint32_t n = 0;
    e->b.loc = p->span;
    args[n++] = ir;
    args[n++] = kl_cst_i64(&e->b, 0);
    for (uint32_t i = 0; i < arr->rank; i++)
        args[n++] = kl_ir(e, &arr->ext[i]);
    for (uint32_t i = 0; i < arr->rank; i++)
        args[n++] = kl_ir(e, &arr->str[i]);
    arr->ir = kl_emit(&e->b, KL_OP_view, kl_array(e->f, (enum kl_elem)arr->elem, arr->rank), args, n,
                      (union kl_attr){0});
}

/* ---- clauses ---- */

static int32_t clause_const(kl_elab *e, const kl_node *n, const char *what)
{
    kl_value v = kl_rvalue(e, n->kid[0]);
    int64_t k;
    bool known;
    v.span = n->kid[0]->span;
    if (!kl_need_const(e, &v, what, &k, &known) || !known)
        return 0;
    if (k < 1 || k > 64) {
        kl_err(e, KL_K0310, n->kid[0]->span, "%s must be between 1 and 64, not %lld", what, (long long)k);
        return 0;
    }
    return (int32_t)k;
}

static void tune(kl_elab *e, const kl_node *n)
{
    for (uint32_t i = 0; i < n->nkid; i++) {
        const kl_node *t = n->kid[i];
        kl_sym *s = kl_sym_find(e, t->name);
        bool ok = (s && s->kind == KL_S_CONST && s->param) || kl_knob_of(t->name) >= 0;
        for (uint32_t j = 0; j < i; j++)
            if (n->kid[j]->name == t->name)
                kl_err(e, KL_K0603, t->name_span, "`%s` is varied twice", t->name);
        if (!ok)
            kl_err(e, KL_K0603, t->name_span.beg ? t->name_span : t->span,
                   "`tune` varies constexpr parameters, warps, stages and cluster; `%s` is none of these",
                   t->name);
        for (uint32_t j = 0; j < t->nkid; j++) {
            kl_value v = kl_rvalue(e, t->kid[j]);
            if (v.kind == KL_V_TILE && !v.konst)
                kl_err(e, KL_K0306, t->kid[j]->span, "a value to try must be a constant");
        }
    }
}

static void clauses(kl_elab *e, const kl_node *list)
{
    kl_fn none = {0}, *f = e->f ? e->f : &none;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < list->nkid; i++) {
        const kl_node *n = list->kid[i];
        if (!n)
            continue;
        if (n->kind != KL_N_REQUIRES && n->kind != KL_N_TUNE && e->mode == KL_CHECK) {
            if (seen >> (n->kind - KL_N_GRID) & 1)
                kl_err(e, KL_K0603, n->span, "this clause stands twice");
            seen |= 1u << (n->kind - KL_N_GRID);
        }
        bool quiet = e->mode == KL_LOWER;
        switch (n->kind) {
        case KL_N_GRID:
            if (!quiet) {
                if (n->nkid < 1 || n->nkid > 3)
                    kl_err(e, KL_K0603, n->span, "a grid has 1 to 3 extents, not %u", n->nkid);
                for (uint32_t k = 0; k < n->nkid; k++)
                    kl_scalar_i64(e, n->kid[k], "an extent of the grid");
            }
            break;
        case KL_N_REQUIRES:
            if (!quiet) {
                kl_value c = kl_to_bool(e, kl_rvalue(e, n->kid[0]));
                if (c.kind == KL_V_TILE && c.rank)
                    kl_err(e, KL_K0308, n->kid[0]->span, "the condition of `requires` must be a scalar");
            }
            break;
        case KL_N_TUNE: tune(e, n); break;
        case KL_N_WARPS: f->warps = clause_const(e, n, "`warps`"); break;
        case KL_N_STAGES: f->stages = clause_const(e, n, "`stages`"); break;
        case KL_N_CLUSTER: f->cluster = clause_const(e, n, "`cluster`"); break;
        case KL_N_MATH: {
            if (!n->name || strcmp(n->name, "fast") != 0)
                kl_err(e, KL_K0603, n->span, "`math` takes `fast`");
            kl_value c = kl_typed(KL_bool, 1, n->span);
            if (n->nkid && n->kid[0])
                c = kl_to_bool(e, kl_rvalue(e, n->kid[0]));
            if (c.kind == KL_V_TILE && !c.konst)
                kl_err(e, KL_K0306, n->span, "the condition of `math` must be a constant");
            if (c.kind == KL_V_TILE && c.konst && c.known && c.bits)
                f->fast = e->b.fast = true;
            break;
        }
        default: break;
        }
    }
}

/* ---- kernels ---- */

static void body(kl_elab *e, kl_node *kernel)
{
    struct kl_fctx fx = {.fn = kernel, .kernel = true, .isvoid = true};
    clauses(e, kernel->kid[1]); /* outside any program */
    e->fx = &fx;
    const kl_node *b = kernel->kid[2];
    unsigned jumps = 0;
    for (uint32_t i = 0; i + 1 < b->nkid; i++)
        jumps |= kl_jumps(b->kid[i]);
    if (b->nkid)
        jumps |= kl_jumps(b->kid[b->nkid - 1]);
    if (jumps & KL_HAS_RETURN) {
        kl_val no = {0};
        if (kl_emitting(e))
            no = kl_cst(&e->b, kl_scalar(e->f, KL_bool), 0);
        fx.ret = kl_var_new(e, no, KL_DEF);
    }
    kl_block(e, b);
    e->fx = NULL;
}

static void warn_unused(kl_elab *e, kl_node *kernel)
{
    static const char *const what[] = {"type", "constant", "scalar", "array", ""};
    kl_node *params = kernel->kid[0];
    for (uint32_t i = 0; i < params->nkid; i++) {
        kl_node *p = params->kid[i];
        if (p->kind != KL_N_PARAM)
            continue;
        kl_sym *s = kl_sym_find(e, p->name);
        if (s && s->node == p && !s->used)
            kl_err(e, KL_K0208, p->name_span, "the %s `%s` is never used", what[kl_param_kind(p)], p->name);
        else
            p->flags |= KL_NF_USED;
    }
}

static void check_kernel(kl_module_ast *m, kl_node *kernel, kl_diags *d)
{
    kl_elab el, *e = &el;
    kl_elab_init(e, KL_CHECK, m->a, m, d);
    kl_scope_push(e, NULL);
    kl_node *params = kernel->kid[0];
    kl_debug_mark(e, kernel);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < params->nkid; i++) {
            kl_node *p = params->kid[i];
            enum kl_pk k = kl_param_kind(p);
            if (k != KL_PK_ARRAY && p->kind == KL_N_PARAM && p->flags & KL_NF_OPTIONAL && !pass)
                kl_err(e, KL_K0603, p->span, "only arrays are optional; give `%s` a default value", p->name);
            if (pass == 0 && k == KL_PK_TYPE)
                add_type(e, p, NULL);
            else if (pass == 0 && k == KL_PK_CONST)
                add_const(e, p, NULL);
            else if (pass == 0 && k == KL_PK_SCALAR)
                add_scalar(e, p, (kl_val){0});
            else if (pass == 1 && k == KL_PK_ARRAY)
                add_array(e, p, NULL, (kl_val){0});
        }
    kl_scope_push(e, NULL);
    body(e, kernel);
    kl_scope_pop(e);
    if (!d->nerr) /* a use may be lost in what did not parse */
        warn_unused(e, kernel);
}

/* What the parameters of a function cannot be, whether it is called or not. */
static void check_function(const kl_node *fn, kl_diags *d)
{
    const kl_node *params = fn->kid[1];
    for (uint32_t i = 0; i < params->nkid; i++) {
        const kl_node *p = params->kid[i];
        if (p->kind != KL_N_PARAM)
            continue;
        if (p->flags & KL_NF_TYPEPARAM)
            kl_diag(d, KL_K0603, p->span, "a function has no type parameters; a name that is not declared "
                    "in the type of a parameter is deduced from the argument");
        else if (p->flags & KL_NF_OPTIONAL)
            kl_diag(d, KL_K0603, p->span, "only arrays of a kernel are optional; give `%s` a default value",
                    p->name);
        else if (kl_param_strides(p))
            kl_diag(d, KL_K0317, p->kid[2]->span, "a parameter of a function has the strides of the argument");
        else if (p->flags & KL_NF_GLOBAL && !kl_param_dims(p))
            kl_diag(d, KL_K0317, p->span, "an array has extents, as in `global f32 %s[n]`", p->name);
    }
}

void kl_check(kl_module_ast *m, kl_diags *d)
{
    uint32_t errors = d->nerr;
    { /* file scope: functions and constants, once */
        kl_elab e;
        kl_elab_init(&e, KL_CHECK, m->a, m, d);
    }
    for (uint32_t i = 0; i < m->root->nkid; i++)
        if (m->root->kid[i]->kind == KL_N_FUNC)
            check_function(m->root->kid[i], d);
    for (uint32_t i = 0; i < m->kernels.n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (m->kernels.v[i]->name == m->kernels.v[k]->name)
                kl_note(kl_diag(d, KL_K0202, m->kernels.v[i]->name_span, "the kernel `%s` is defined twice",
                                m->kernels.v[i]->name),
                        m->kernels.v[k]->name_span, "first defined here");
    if (d->nerr != errors)
        return;
    for (uint32_t i = 0; i < m->kernels.n; i++)
        check_kernel(m, m->kernels.v[i], d);
    if (d->nerr == errors)
        kl_debug_finish(m);
}

kl_fn *kl_lower(kl_arena *a, const kl_module_ast *m, const kl_bound *bd, kl_diags *d)
{
    kl_elab el, *e = &el;
    uint32_t errors = d->nerr;
    kl_node *kernel = (kl_node *)(uintptr_t)bd->kernel; /* flags are written by kl_check only */
    kl_node *params = kernel->kid[0];
    kl_fn *f = kl_fn_new(a, kernel->name);
    f->src = &m->src;
    f->may_alias = bd->may_alias;
    kl_elab_init(e, KL_LOWER, a, m, d);
    e->f = f;
    e->b = (kl_build){.f = f, .blk = KL_BODY};
    kl_val *ir = kl_new_n(a, kl_val, params->nkid + 1);
    for (uint32_t i = 0; i < params->nkid; i++) {
        const kl_node *p = params->kid[i];
        const struct kl_boundparam *b = &bd->param[i];
        enum kl_pk k = kl_param_kind(p);
        if (k != KL_PK_SCALAR && !(k == KL_PK_ARRAY && b->given))
            continue;
        bool isarr = k == KL_PK_ARRAY;
        kl_param_add(f, (struct kl_param){.name = p->name, .use = isarr ? KL_P_ARRAY : KL_P_SCALAR,
                                          .elem = b->elem, .rank = (uint8_t)b->rank,
                                          .decl = (uint16_t)i, .isconst = isarr && p->flags & KL_NF_CONST,
                                          .written = isarr && p->flags & KL_NF_WRITTEN});
        e->b.loc = p->span;
        ir[i] = kl_block_param(&e->b, isarr ? kl_array(f, (enum kl_elem)b->elem, (uint32_t)b->rank)
                                            : kl_scalar(f, (enum kl_elem)b->elem));
    }
    kl_scope_push(e, NULL);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < params->nkid; i++) {
            kl_node *p = params->kid[i];
            const struct kl_boundparam *b = &bd->param[i];
            enum kl_pk k = kl_param_kind(p);
            if (pass == 0 && k == KL_PK_TYPE)
                add_type(e, p, b);
            else if (pass == 0 && k == KL_PK_CONST)
                add_const(e, p, b);
            else if (pass == 0 && k == KL_PK_SCALAR)
                add_scalar(e, p, ir[i]);
            else if (pass == 1 && p->flags & KL_NF_DEBUG)
                kl_debug_open(e, ir[i], (uint32_t)b->ext[0]);
            else if (pass == 1 && k == KL_PK_ARRAY)
                add_array(e, p, b, ir[i]);
        }
    kl_scope_push(e, NULL);
    body(e, kernel);
    int32_t *const knob[KL_NKNOB] = {&f->warps, &f->stages, &f->cluster};
    for (int k = 0; k < KL_NKNOB; k++)
        *knob[k] = bd->knob[k] ? bd->knob[k] : *knob[k];
    return d->nerr == errors ? f : NULL;
}

/* ---- reflection ---- */

kiln_param_info *kl_reflect(kl_arena *a, const kl_module_ast *m, const kl_node *kernel)
{
    const kl_node *params = kernel->kid[0];
    kiln_param_info *out = kl_new_n(a, kiln_param_info, params->nkid + 1);
    static const kiln_param_kind kind[] = {KILN_PARAM_TYPE, KILN_PARAM_CONST, KILN_PARAM_SCALAR,
                                           KILN_PARAM_ARRAY, KILN_PARAM_SCALAR};
    for (uint32_t i = 0; i < params->nkid; i++) {
        const kl_node *p = params->kid[i];
        kiln_param_info *o = &out[i];
        enum kl_pk k = kl_param_kind(p);
        o->name = p->name ? p->name : "?";
        o->kind = kind[k];
        const kl_node *t = p->nkid ? p->kid[0] : NULL;
        o->type_name = k == KL_PK_TYPE ? "type" : t && t->name ? t->name : "?";
        if (k != KL_PK_TYPE)
            o->dtype = (kiln_dtype)kl_elem_by_name(o->type_name, (uint32_t)strlen(o->type_name));
        o->rank = k == KL_PK_ARRAY ? (int32_t)kl_param_dims(p)->nkid : 0;
        o->is_const = !!(p->flags & KL_NF_CONST);
        o->is_optional = !!(p->flags & KL_NF_OPTIONAL);
        o->has_default = k == KL_PK_TYPE ? t != NULL : k != KL_PK_ARRAY && kl_param_default(p);
        o->has_init = k == KL_PK_ARRAY && kl_param_default(p);
        o->reads = k == KL_PK_ARRAY && p->flags & KL_NF_READ;
        o->writes = k == KL_PK_ARRAY && p->flags & KL_NF_WRITTEN;
        const struct kl_file *f = kl_src_file(&m->src, p->span.beg);
        o->decl = f ? kl_strndup(a, f->text + (p->span.beg - f->base), p->span.end - p->span.beg) : "";
    }
    return out;
}
