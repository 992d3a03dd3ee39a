/* call.c - functions of the source: always expanded in place.
 *
 * A parameter declared as a scalar that gets a tile lifts the expansion: the body is
 * elaborated once with tiles, element by element.  Locals declared scalar become tiles
 * where their value depends on such a parameter; which ones is found first by following
 * names through assignments (`taint`). */
#include "lang/stmt.h"

enum { MAX_DEPTH = 64, MAX_EXPANDED = 20000, MAX_PARAMS = 64 };

/* ---- taint ---- */

bool kl_tainted(const struct kl_fctx *fx, const char *name)
{
    for (uint32_t i = 0; i < fx->taint.n; i++)
        if (fx->taint.v[i] == name)
            return true;
    return false;
}

bool kl_mentions_taint(const struct kl_fctx *fx, const kl_node *n)
{
    if (!n)
        return false;
    if (n->kind == KL_N_NAME && kl_tainted(fx, n->name))
        return true;
    for (uint32_t i = 0; i < n->nkid; i++)
        if (kl_mentions_taint(fx, n->kid[i]))
            return true;
    return false;
}

static bool spread_taint(kl_elab *e, struct kl_fctx *fx, const kl_node *n)
{
    bool changed = false;
    if (!n)
        return false;
    const char *name = NULL;
    if (n->kind == KL_N_VAR && n->nkid > 2 && kl_mentions_taint(fx, n->kid[2]))
        name = n->name;
    if (n->kind == KL_N_ASSIGN && n->kid[0] && n->kid[0]->kind != KL_N_INDEX && kl_mentions_taint(fx, n->kid[1]))
        name = kl_assigned_name(n);
    if (name && !kl_tainted(fx, name)) {
        kl_push(e->a, &fx->taint, name);
        changed = true;
    }
    for (uint32_t i = 0; i < n->nkid; i++)
        changed |= spread_taint(e, fx, n->kid[i]);
    return changed;
}

/* Parameters that the body assigns hold a value of each element from the start. */
static void widen_params(kl_elab *e, struct kl_fctx *fx)
{
    const kl_node *params = fx->fn->kid[1], *body = fx->fn->kid[2];
    while (spread_taint(e, fx, body))
        ;
    for (kl_sym *s = e->scope->head; s; s = s->next) {
        if (s->kind != KL_S_VAR || !kl_tainted(fx, s->name) || !kl_assigns(body, s->name))
            continue;
        bool scalar = false;
        for (uint32_t i = 0; i < params->nkid; i++)
            scalar |= params->kid[i]->name == s->name && !params->kid[i]->kid[1];
        if (s->val.kind == KL_V_STRUCT && s->val.st->tag) {
            kl_value v = kl_struct_read(e, s->var, &s->val, s->decl);
            v = kl_struct_lift(e, v, fx->lift_rank, fx->lift_dim);
            if (v.kind == KL_V_STRUCT) {
                kl_struct_assign(e, s->var, &v);
                s->val = kl_struct_type(e, &v);
            }
        }
        if (s->val.kind != KL_V_TILE)
            continue;
        kl_value v = s->val;
        v.ir = e->var.v[s->var].ir;
        v = scalar ? kl_stretch(e, v, fx->lift_rank, fx->lift_dim) : v;
        if (v.kind != KL_V_TILE)
            continue;
        e->var.v[s->var].ir = v.ir;
        s->val = v;
    }
}

/* ---- parameters ---- */

static bool is_auto(const kl_node *type)
{
    return type && type->kind == KL_N_TYPE && strcmp(type->name, "auto") == 0;
}

/* The element type a parameter asks for; a name still unknown is bound to the argument's. */
static enum kl_elem param_elem(kl_elab *e, const kl_node *type, enum kl_elem arg, bool *ok)
{
    *ok = true;
    if (is_auto(type))
        return arg;
    if ((type->kind == KL_N_TYPE || type->kind == KL_N_NAME) && !kl_sym_find(e, type->name) &&
        !kl_elem_by_name(type->name, (uint32_t)strlen(type->name))) {
        kl_sym *s = kl_sym_add(e, KL_S_TYPE, type->name, type->span);
        s->elem = (uint8_t)arg;
        return arg;
    }
    return kl_eval_type(e, type, ok);
}

/* Unify one declared size with what the argument has. */
bool kl_bind_size(kl_elab *e, const kl_node *n, kl_value have, kl_span at, const char *pname)
{
    if (n->kind == KL_N_NAME && !kl_sym_find(e, n->name)) {
        kl_sym *s = kl_sym_add(e, have.konst ? KL_S_CONST : KL_S_VAR, n->name, n->span);
        s->used = true;
        s->val = have;
        if (!have.konst)
            s->var = kl_var_new(e, have.ir, KL_DEF);
        return true;
    }
    kl_value want = kl_rvalue(e, n);
    if (want.kind != KL_V_TILE)
        return false;
    if (want.konst && want.known && have.konst && have.known) {
        int64_t w = kl_const_i64(&want), h = kl_const_i64(&have);
        if (w != h) {
            kl_note(kl_err(e, KL_K0406, at, "`%s` wants the size %lld here, and the argument has %lld",
                           pname, (long long)w, (long long)h),
                    n->span, "declared here");
            return false;
        }
    }
    return true;
}

kl_value kl_dim_value(kl_dim d, kl_span s)
{
    kl_value v = kl_int(d.n, s);
    if (!d.n)
        v.known = false, v.sym = d.sym;
    return v;
}

static bool bind_array(kl_elab *e, const kl_node *p, kl_value v)
{
    const kl_node *dims = p->nkid > 1 ? p->kid[1] : NULL;
    if (v.kind != KL_V_ARRAY) {
        if (v.kind != KL_V_ERR)
            kl_note(kl_err(e, KL_K0403, v.span, "`%s` takes an array, by its bare name", p->name),
                    p->name_span, "declared here");
        return false;
    }
    struct kl_arr *arr = kl_new(e->a, struct kl_arr);
    *arr = *v.arr;
    arr->name = v.arr->name;
    bool ok;
    enum kl_elem el = param_elem(e, p->kid[0], (enum kl_elem)arr->elem, &ok);
    if (!ok)
        return false;
    if (el && arr->elem && el != arr->elem) {
        kl_note(kl_err(e, KL_K0301, v.span, "an array of %s where `%s` takes one of %s",
                       kl_elems[arr->elem].name, p->name, kl_elems[el].name),
                p->name_span, "declared here");
        return false;
    }
    if (p->flags & KL_NF_CONST)
        arr->isconst = true;
    else if (arr->isconst) {
        struct kl_diag *g = kl_err(e, KL_K0316, v.span, "`%s` is const, and `%s` may be written",
                                   arr->name, p->name);
        kl_note(g, p->name_span, "declared here; add const");
        return false;
    }
    if (dims && dims->nkid != arr->rank) {
        kl_note(kl_err(e, KL_K0406, v.span, "`%s` has rank %u, and `%s` takes rank %u", arr->name,
                       arr->rank, p->name, dims->nkid),
                p->name_span, "declared here");
        return false;
    }
    for (uint32_t i = 0; dims && i < dims->nkid; i++)
        if (dims->kid[i] && !kl_bind_size(e, dims->kid[i], arr->ext[i], v.span, p->name))
            return false;
    kl_sym *s = kl_sym_add(e, KL_S_ARRAY, p->name, p->name_span);
    s->arr = arr;
    s->used = true;
    return true;
}

static bool bind_const(kl_elab *e, const kl_node *p, kl_value v)
{
    if (!kl_need_tile(e, &v))
        return false;
    if (!v.konst) {
        kl_note(kl_err(e, KL_K0306, v.span, "`%s` is constexpr and needs a constant", p->name),
                p->name_span, "declared here");
        return false;
    }
    bool ok;
    enum kl_elem el = param_elem(e, p->kid[0], (enum kl_elem)v.elem, &ok);
    if (!ok)
        return false;
    if (!is_auto(p->kid[0])) {
        kl_value t = kl_move(e, v, el, KL_CONSTINIT, "the argument");
        if (t.kind != KL_V_TILE)
            return false;
        if (!(v.untyped && !v.dec && el && kl_is_int(el)))
            v = t;
    }
    kl_sym *s = kl_sym_add(e, KL_S_CONST, p->name, p->name_span);
    s->val = v;
    s->used = true;
    return true;
}

static bool join_lift(kl_elab *e, struct kl_fctx *fx, const kl_value *v, const char *name)
{
    if (!kl_broadcast_shape(e, &(uint32_t){fx->lift_rank}, fx->lift_dim, v, fx->call))
        return false;
    if (v->rank > fx->lift_rank)
        fx->lift_rank = v->rank;
    fx->lifted = true;
    kl_push(e->a, &fx->taint, name);
    return true;
}

/* A struct of scalars that is given with tiles lifts, as a scalar does. */
static bool bind_struct(kl_elab *e, struct kl_fctx *fx, const kl_node *p, kl_value v)
{
    if (v.kind != KL_V_STRUCT)
        v = kl_load_if_access(e, v);
    if (v.kind == KL_V_ERR)
        return false;
    if (!is_auto(p->kid[0])) {
        const kl_sym *tag = kl_struct_need(e, p->kid[0]);
        kl_value all = {.kind = KL_V_TILE};
        uint32_t rank = 0;
        if (!tag || !kl_struct_is(e, &v, tag, kl_printf(e->a, "the argument for `%s`", p->name)))
            return false;
        if (p->nkid > 1 && p->kid[1]) {
            kl_err(e, KL_K0223, p->kid[1]->span, "there are no arrays or tiles of structs");
            return false;
        }
        if (kl_struct_shape(e, &v, &rank, all.dim, v.span) && rank) {
            all.rank = (uint8_t)rank;
            if (!join_lift(e, fx, &all, p->name))
                return false;
        }
    }
    kl_sym *s = kl_sym_add(e, KL_S_VAR, p->name, p->name_span);
    s->used = true;
    s->isconst = p->flags & KL_NF_CONST;
    s->val = kl_struct_type(e, &v);
    s->var = kl_struct_slots(e, &v, KL_DEF);
    kl_struct_assign(e, s->var, &v);
    return true;
}

static bool bind_value(kl_elab *e, struct kl_fctx *fx, const kl_node *p, kl_value v)
{
    const kl_node *dims = p->nkid > 1 ? p->kid[1] : NULL;
    if (kl_is_struct_type(p->kid[0]) || (v.kind == KL_V_STRUCT && is_auto(p->kid[0])))
        return bind_struct(e, fx, p, v);
    v = kl_load_if_access(e, v);
    if (v.kind != KL_V_TILE)
        return false;
    bool ok;
    if (is_auto(p->kid[0])) {
        v = kl_concrete(e, v);
    } else {
        kl_value c = v.untyped ? kl_concrete(e, v) : v;
        enum kl_elem el = param_elem(e, p->kid[0], (enum kl_elem)c.elem, &ok);
        if (!ok)
            return false;
        v = kl_move(e, v, el, KL_ARG, "the argument");
    }
    if (v.kind != KL_V_TILE)
        return false;
    if (dims) {
        if (dims->nkid != v.rank) {
            kl_note(kl_err(e, KL_K0406, v.span, "`%s` takes a tile of rank %u, not %s", p->name,
                           dims->nkid, kl_dims_text(e, &v)),
                    p->name_span, "declared here");
            return false;
        }
        for (uint32_t i = 0; i < dims->nkid; i++)
            if (dims->kid[i] && !kl_bind_size(e, dims->kid[i], kl_dim_value(v.dim[i], v.span), v.span, p->name))
                return false;
    } else if (!is_auto(p->kid[0]) && v.rank) {
        if (!join_lift(e, fx, &v, p->name))
            return false;
    }
    kl_sym *s = kl_sym_add(e, KL_S_VAR, p->name, p->name_span);
    s->used = true;
    s->isconst = p->flags & KL_NF_CONST;
    s->val = v;
    s->var = kl_var_new(e, kl_emitting(e) ? kl_ir(e, &v) : (kl_val){0}, KL_DEF);
    if (v.konst) /* a variable may be assigned: it is no constant */
        s->val.konst = s->val.known = false;
    return true;
}

/* An argument or default value of a parameter: `?:` of constants takes its type. */
static kl_value expr_for(kl_elab *e, const kl_node *n, const kl_node *p)
{
    const kl_node *t = p->kind == KL_N_PARAM ? p->kid[0] : NULL;
    bool plain = t && t->kind == KL_N_TYPE && !kl_is_struct_type(t);
    enum kl_elem el = plain ? kl_elem_by_name(t->name, (uint32_t)strlen(t->name)) : KL_elem_none;
    e->want = n->kind == KL_N_COND ? (uint8_t)el : 0;
    return kl_expr(e, n);
}

/* ---- expansion ---- */

static bool recursion(kl_elab *e, kl_sym *fn, kl_span at)
{
    uint32_t depth = 0;
    for (struct kl_fctx *fx = e->fx; fx; fx = fx->up, depth++)
        if (fx->fn == fn->node) {
            struct kl_diag *g = kl_err(e, KL_K0501, at, "`%s` calls itself; functions are expanded in "
                                       "place, so recursion has no end", fn->name);
            kl_note(g, fn->decl, "declared here");
            return true;
        }
    if (depth > MAX_DEPTH || ++e->expanded > MAX_EXPANDED) {
        kl_limit(e, at, depth > MAX_DEPTH ? "functions are nested deeper than 64 calls"
                                          : "more than 20000 calls were expanded", NULL);
        return true;
    }
    return false;
}

/* A single return at the end needs no flags. */
static bool returns_early(const kl_node *body)
{
    unsigned jumps = 0;
    for (uint32_t i = 0; i < body->nkid; i++)
        if (i + 1 < body->nkid || body->kid[i]->kind != KL_N_RETURN)
            jumps |= kl_jumps(body->kid[i]);
    return jumps & KL_HAS_RETURN;
}

/* Elaborate the body; parameters are bound already. */
static kl_value run_body(kl_elab *e, struct kl_fctx *fx, kl_sym *fn)
{
    const kl_node *body = fn->node->kid[2], *type = fn->node->kid[0];
    bool ok = true;
    fx->isvoid = type->kind == KL_N_TYPE && strcmp(type->name, "void") == 0;
    if (kl_is_struct_type(type)) {
        fx->ret_struct = kl_struct_need(e, type);
        ok = fx->ret_struct != NULL;
    } else if (!fx->isvoid && !is_auto(type)) {
        fx->ret_elem = (uint8_t)kl_eval_type(e, type, &ok);
    }
    if (!ok)
        return kl_bad(fx->call);
    if (!fx->isvoid && !kl_returns(body)) {
        kl_span end = {body->span.end ? body->span.end - 1 : 0, body->span.end};
        kl_note(kl_err(e, KL_K0504, end, "`%s` may end without returning a value", fn->name),
                fn->decl, "declared here");
        return kl_bad(fx->call);
    }
    if (returns_early(body)) {
        kl_val no = {0};
        if (kl_emitting(e))
            no = kl_cst(&e->b, kl_scalar(e->f, KL_bool), 0);
        fx->ret = kl_var_new(e, no, KL_DEF);
        fx->retval = kl_var_new(e, (kl_val){0}, KL_UNDEF);
        fx->nret = kl_nslots(&fx->ret_type);
        for (uint32_t i = 1; i < fx->nret; i++)
            kl_var_new(e, (kl_val){0}, KL_UNDEF);
        for (uint32_t i = 0; kl_emitting(e) && fx->ret_type.kind == KL_V_STRUCT && i < fx->ret_type.st->n; i++) {
            const kl_value *t = &fx->ret_type.st->m[i].v;
            e->var.v[fx->retval + i].ir =
                kl_cst(&e->b, kl_irtype(e, (enum kl_elem)t->elem, t->rank, t->dim), 0);
        }
        if (kl_emitting(e) && fx->ret_type.kind == KL_V_TILE) {
            const kl_value *t = &fx->ret_type;
            e->var.v[fx->retval].ir =
                kl_cst(&e->b, kl_irtype(e, (enum kl_elem)t->elem, t->rank, t->dim), 0);
        }
    }
    kl_block(e, body);
    kl_value v = fx->result;
    if (fx->isvoid)
        return (kl_value){.kind = KL_V_VOID, .span = fx->call};
    if (fx->ret && fx->has_value && fx->ret_type.kind == KL_V_STRUCT) {
        v = kl_emitting(e) ? kl_struct_read(e, fx->retval, &fx->ret_type, fx->call) : fx->ret_type;
    } else if (fx->ret && fx->has_value) {
        v = fx->ret_type;
        v.ir = e->var.v[fx->retval].ir;
    }
    return fx->has_value ? v : kl_bad(fx->call);
}

/* A slot that holds the result needs its type before the first return.  Of `auto` a trial
 * run without IR finds it. */
static void find_result(kl_elab *e, struct kl_fctx *fx, kl_sym *fn)
{
    const kl_node *type = fn->node->kid[0];
    fx->ret_type.kind = KL_V_ERR;
    if (type->kind == KL_N_TYPE && strcmp(type->name, "void") == 0)
        return;
    if (!is_auto(type) && !kl_is_struct_type(type)) {
        bool ok;
        e->quiet++; /* run_body says it */
        enum kl_elem el = kl_eval_type(e, type, &ok);
        e->quiet--;
        if (ok)
            fx->ret_type = kl_rt(e, el, fx->lifted ? fx->lift_rank : 0, fx->lift_dim, (kl_val){0}, fx->call);
        return;
    }
    struct kl_fctx keep = *fx;
    kl_scope *scope = e->scope;
    kl_sym *head = scope->head;
    uint32_t nvar = e->var.n, expanded = e->expanded, mark = e->saved;
    struct kl_varstate *state = kl_save_vars(e, nvar);
    e->mode = KL_CHECK;
    e->quiet++;
    e->trial = true;
    run_body(e, fx, fn);
    e->trial = false;
    e->quiet--;
    e->mode = KL_LOWER;
    kl_value found = fx->ret_type;
    bool has = fx->has_value;
    *fx = keep;
    if (has)
        fx->ret_type = found;
    e->scope = scope, scope->head = head;
    memcpy(e->var.v, state, nvar * sizeof *state);
    e->var.n = nvar;
    e->expanded = expanded;
    e->saved = mark;
}

static kl_value expand(kl_elab *e, kl_sym *fn, kl_value *arg, kl_span s)
{
    const kl_node *params = fn->node->kid[1];
    if (recursion(e, fn, s))
        return kl_bad(s);
    kl_scope *saved = e->scope;
    uint32_t vars = e->var.n;
    struct kl_fctx *fx = kl_new(e->a, struct kl_fctx);
    fx->up = e->fx;
    fx->fn = fn->node;
    fx->call = s;
    bool ok = true;
    kl_scope *home = fn->lib ? e->file->up : e->file;
    kl_scope_push(e, home);
    for (uint32_t i = 0; i < params->nkid; i++) {
        const kl_node *p = params->kid[i];
        if (p->kind != KL_N_PARAM || !p->kid[0]) {
            ok = false; /* said already */
            continue;
        }
        if (arg[i].kind == KL_V_VOID) { /* not given: the default, in terms of earlier ones */
            e->fx = fx;
            arg[i] = expr_for(e, p->kid[3], p);
            e->fx = fx->up;
        }
        if (p->flags & KL_NF_GLOBAL)
            ok &= bind_array(e, p, arg[i]);
        else if (p->flags & KL_NF_CONSTEXPR)
            ok &= bind_const(e, p, arg[i]);
        else
            ok &= bind_value(e, fx, p, arg[i]);
    }
    kl_value r = kl_bad(s);
    if (ok) {
        e->fx = fx;
        if (fx->lifted)
            widen_params(e, fx);
        kl_scope_push(e, NULL);
        if (kl_emitting(e) && returns_early(fn->node->kid[2]))
            find_result(e, fx, fn);
        r = run_body(e, fx, fn);
    }
    e->fx = fx->up;
    e->scope = saved;
    e->var.n = vars > e->var.n ? e->var.n : vars;
    r.span = s;
    return r;
}

kl_value kl_expand_values(kl_elab *e, kl_sym *fn, const kl_value *arg, uint32_t n, kl_span s)
{
    kl_value v[MAX_PARAMS];
    const kl_node *params = fn->node->kid[1];
    if (params->nkid != n) {
        kl_note(kl_err(e, KL_K0401, s, "`%s` takes %u argument%s, and here it gets %u", fn->name,
                       params->nkid, params->nkid == 1 ? "" : "s", n),
                fn->decl, "declared here");
        return kl_bad(s);
    }
    memcpy(v, arg, n * sizeof *v);
    return expand(e, fn, v, s);
}

kl_value kl_expand(kl_elab *e, kl_sym *fn, const kl_node *call)
{
    const kl_node *params = fn->node->kid[1];
    kl_value arg[MAX_PARAMS];
    uint32_t pos = 0;
    bool bad = false;
    fn->used = true;
    if (params->nkid > MAX_PARAMS) {
        kl_err(e, KL_K0802, params->span, "a function has at most %d parameters", MAX_PARAMS);
        return kl_bad(call->span);
    }
    for (uint32_t i = 0; i < params->nkid; i++)
        arg[i] = (kl_value){.kind = KL_V_VOID};
    for (uint32_t k = 0; k < call->nkid; k++) {
        const kl_node *n = call->kid[k];
        uint32_t i = pos;
        if (n->kind == KL_N_DESIG) {
            i = 0;
            while (i < params->nkid && params->kid[i]->name != n->name)
                i++;
            if (i == params->nkid) {
                kl_note(kl_err(e, KL_K0402, n->span, "`%s` has no parameter `%s`", fn->name, n->name),
                        fn->decl, "declared here");
                bad = true;
                continue;
            }
            if (arg[i].kind != KL_V_VOID) {
                kl_err(e, KL_K0402, n->span, "`%s` is given twice", n->name);
                bad = true;
                continue;
            }
            n = n->kid[0];
        } else {
            pos++;
        }
        if (i >= params->nkid) {
            continue;
        }
        arg[i] = expr_for(e, n, params->kid[i]);
        if (arg[i].kind == KL_V_VOID) {
            kl_load_if_access(e, arg[i]);
            arg[i] = kl_bad(n->span);
        }
        bad |= arg[i].kind == KL_V_ERR;
        arg[i].span = n->span;
    }
    if (pos > params->nkid) {
        kl_note(kl_err(e, KL_K0401, call->span, "`%s` takes %u argument%s, not %u", fn->name, params->nkid,
                       params->nkid == 1 ? "" : "s", pos),
                fn->decl, "declared here");
        return kl_bad(call->span);
    }
    for (uint32_t i = 0; i < params->nkid && !bad; i++)
        if (arg[i].kind == KL_V_VOID && !(params->kid[i]->nkid > 3 && params->kid[i]->kid[3])) {
            kl_note(kl_err(e, KL_K0401, call->span, "`%s` needs an argument for `%s`", fn->name,
                           params->kid[i]->name),
                    params->kid[i]->name_span, "declared here");
            return kl_bad(call->span);
        }
    return bad ? kl_bad(call->span) : expand(e, fn, arg, call->span);
}
