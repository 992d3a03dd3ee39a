/* decl.c - declarations and assignment. */
#include "lang/stmt.h"

/* ---- declarations ---- */

bool kl_const_value(kl_elab *e, const kl_node *init, const kl_node *type, const char *name, kl_value *out)
{
    kl_value x = kl_rvalue(e, init);
    if (x.kind != KL_V_TILE)
        return false;
    if (!x.konst || x.rank) {
        kl_err(e, KL_K0306, init->span, "the value of the constexpr `%s` must be a constant", name);
        return false;
    }
    if (!(type->kind == KL_N_TYPE && strcmp(type->name, "auto") == 0)) {
        bool ok;
        enum kl_elem el = kl_eval_type(e, type, &ok);
        kl_value t = ok ? kl_move(e, x, el, KL_CONSTINIT, "the value") : kl_bad(init->span);
        if (t.kind != KL_V_TILE)
            return false;
        /* an integer constant stays exact until used; a typed one gives its integer back */
        if (el && kl_is_int(el) && t.known)
            t = kl_int_of(el, t.bits, x.span);
        else if (x.untyped && !x.known && el && kl_is_int(el))
            t = x;
        x = t;
    }
    *out = x;
    return true;
}

static void declare_const(kl_elab *e, const kl_node *v, const kl_node *type)
{
    kl_sym *s = NULL;
    if (v->nkid < 3 || !v->kid[2]) {
        kl_err(e, KL_K0306, v->span, "`%s` is constexpr and needs a value", v->name);
        s = kl_sym_add(e, KL_S_CONST, v->name, v->name_span);
        s->val = kl_bad(v->span);
        return;
    }
    if (v->kid[0]) {
        kl_declare_table(e, v, type);
        return;
    }
    kl_value x = kl_bad(v->span);
    kl_const_value(e, v->kid[2], type, v->name, &x);
    s = kl_sym_add(e, KL_S_CONST, v->name, v->name_span);
    s->val = x;
}

/* A variable of struct type: x is its value, VOID without one. */
static void declare_struct(kl_elab *e, const kl_node *v, const kl_node *type, bool isconst, kl_value x)
{
    bool init = x.kind != KL_V_VOID, ok = x.kind != KL_V_ERR;
    bool each = e->fx && e->fx->lifted && kl_tainted(e->fx, v->name) && kl_assigns(e->fx->fn->kid[2], v->name);
    if (v->kid[0]) {
        kl_err(e, KL_K0223, v->kid[0]->span, "there are no tiles of structs; a struct of scalars holds tiles where "
               "its value does");
        ok = false;
    }
    if (kl_is_struct_type(type)) {
        const kl_sym *tag = kl_struct_need(e, type);
        if (tag && init && ok)
            ok = kl_struct_is(e, &x, tag, kl_printf(e->a, "the value of `%s`", v->name));
        else if (tag && ok)
            x = kl_struct_unset(e, tag, v->span);
        ok &= tag != NULL && x.kind == KL_V_STRUCT;
    }
    if (ok && each) /* holds any element's later */
        x = init ? kl_struct_lift(e, x, e->fx->lift_rank, e->fx->lift_dim)
                 : kl_struct_spread(e, x, e->fx->lift_rank, e->fx->lift_dim);
    ok &= x.kind == KL_V_STRUCT;
    kl_sym *s = kl_sym_add(e, KL_S_VAR, v->name, v->name_span);
    s->isconst = isconst && init;
    if (!ok) {
        s->val = kl_bad(v->span);
        s->var = kl_var_new(e, (kl_val){0}, KL_DEF);
        return;
    }
    s->val = kl_struct_type(e, &x);
    s->var = kl_struct_slots(e, &x, init ? KL_DEF : KL_UNDEF);
    if (init)
        kl_struct_assign(e, s->var, &x);
}

static void declare_var(kl_elab *e, const kl_node *v, const kl_node *type, bool isconst)
{
    const kl_node *dims = v->nkid > 0 ? v->kid[0] : NULL, *init = v->nkid > 2 ? v->kid[2] : NULL;
    bool isauto = type->kind == KL_N_TYPE && strcmp(type->name, "auto") == 0, ok = true;
    if (v->nkid > 1 && v->kid[1])
        kl_err(e, KL_K0317, v->kid[1]->span, "a tile has no strides; `global` declares a view of memory");
    kl_value t = {.kind = KL_V_TILE, .span = v->span};
    if (kl_is_struct_type(type)) {
        declare_struct(e, v, type, isconst, init ? kl_any(e, init) : (kl_value){.kind = KL_V_VOID});
        return;
    }
    if (!isauto)
        t.elem = (uint8_t)kl_eval_type(e, type, &ok);
    kl_value x = init ? kl_rvalue_for(e, init, (enum kl_elem)t.elem) : (kl_value){.kind = KL_V_VOID};
    if (init && init->kind == KL_N_UNARY && init->op == KL_TK_AND)
        ok = false;
    if (isauto && x.kind == KL_V_STRUCT) {
        declare_struct(e, v, type, isconst, x);
        return;
    }
    if (x.kind == KL_V_STRUCT)
        kl_need_tile(e, &x);
    bool each = e->fx && e->fx->lifted && kl_tainted(e->fx, v->name);
    if (isauto) {
        if (!init) {
            kl_err(e, KL_K0206, v->span, "`auto %s` takes its type from a value; give it one", v->name);
            ok = false;
        } else if (dims) {
            kl_err(e, KL_K0206, dims->span, "`auto` takes shape and type from the value");
            ok = false;
        } else {
            x = kl_concrete(e, x);
            if (each && x.kind == KL_V_TILE && kl_assigns(e->fx->fn->kid[2], v->name))
                x = kl_stretch(e, x, e->fx->lift_rank, e->fx->lift_dim); /* holds any element's later */
            t = x;
            t.konst = t.known = t.untyped = false;
        }
    } else {
        if (dims) {
            if (dims->nkid > KL_MAX_RANK) {
                kl_err(e, KL_K0802, dims->span, "a tile has at most rank %d", KL_MAX_RANK);
                ok = false;
            }
            for (uint32_t i = 0; i < dims->nkid && i < KL_MAX_RANK; i++) {
                if (!dims->kid[i]) {
                    kl_err(e, KL_K0306, dims->span, "a tile needs a size in each bracket");
                    ok = false;
                } else if (!kl_eval_dim(e, dims->kid[i], "a tile size", &t.dim[i])) {
                    ok = false;
                }
                t.rank++;
            }
            if (ok && each) {
                kl_err(e, KL_K0302, v->span, "`%s` would be a tile for each element: `%s` has parameters "
                       "declared as scalars and is called with tiles", v->name, e->fx->fn->name);
                ok = false;
            }
            ok = ok && kl_tile_fits(e, t.rank, t.dim, v->span);
        } else if (each) {
            t.rank = e->fx->lift_rank;
            memcpy(t.dim, e->fx->lift_dim, sizeof t.dim);
        }
        if (ok && init) {
            const char *what = kl_printf(e->a, "the value of `%s`", v->name);
            x = kl_move(e, x, (enum kl_elem)t.elem, KL_MOVE, what);
            x = kl_fit(e, x, t.rank, t.dim, what);
        }
    }
    kl_sym *s = kl_sym_add(e, KL_S_VAR, v->name, v->name_span);
    s->isconst = isconst && init;
    if (!ok || (init && x.kind != KL_V_TILE)) {
        s->val = kl_bad(v->span);
        s->var = kl_var_new(e, (kl_val){0}, KL_DEF);
        return;
    }
    s->val = t;
    s->var = init ? kl_var_new(e, kl_ir(e, &x), KL_DEF) : kl_var_new(e, (kl_val){0}, KL_UNDEF);
}

void kl_declare(kl_elab *e, const kl_node *n)
{
    const kl_node *type = n->kid[0];
    for (uint32_t i = 1; i < n->nkid; i++) {
        const kl_node *v = n->kid[i];
        if (!v || v->kind != KL_N_VAR)
            continue;
        if (n->flags & KL_NF_GLOBAL) {
            struct kl_arr *arr = kl_make_view(e, v, type, n->flags);
            kl_sym *s = kl_sym_add(e, KL_S_ARRAY, v->name, v->name_span);
            s->arr = arr;
        } else if (n->flags & KL_NF_CONSTEXPR) {
            declare_const(e, v, type);
        } else if (!e->fx) {
            kl_err(e, KL_K0207, v->span, "a variable outside a kernel or function; write constexpr");
        } else {
            declare_var(e, v, type, n->flags & KL_NF_CONST);
        }
    }
}

/* ---- assignment ---- */

static int binary_of(int assign)
{
    static const uint8_t map[][2] = {
        {KL_TK_ADDEQ, KL_TK_ADD}, {KL_TK_SUBEQ, KL_TK_SUB}, {KL_TK_MULEQ, KL_TK_MUL},
        {KL_TK_DIVEQ, KL_TK_DIV}, {KL_TK_REMEQ, KL_TK_REM}, {KL_TK_ANDEQ, KL_TK_AND},
        {KL_TK_OREQ, KL_TK_OR},   {KL_TK_XOREQ, KL_TK_XOR}, {KL_TK_SHLEQ, KL_TK_SHL},
        {KL_TK_SHREQ, KL_TK_SHR},
    };
    for (size_t i = 0; i < sizeof map / sizeof *map; i++)
        if (map[i][0] == assign)
            return map[i][1];
    return 0;
}

/* a op b in the type of a; b as if reshaped to a's shape. */
static kl_value update(kl_elab *e, const kl_node *n, kl_value cur, kl_value rhs)
{
    if (n->op == KL_TK_ASSIGN)
        return rhs;
    if (cur.kind != KL_V_TILE || rhs.kind != KL_V_TILE)
        return kl_bad(n->span);
    if (!rhs.untyped) /* a constant takes its type first */
        rhs = kl_fit(e, rhs, cur.rank, cur.dim, "the right side");
    int tok = n->kind == KL_N_INCDEC ? (n->op == KL_TK_INC ? KL_TK_ADD : KL_TK_SUB) : binary_of(n->op);
    kl_value r = kl_binary(e, tok, cur, rhs, n->name_span);
    return r.kind == KL_V_TILE ? kl_cast(e, r, (enum kl_elem)cur.elem) : r;
}

static struct kl_access *subscripts_of(kl_elab *e, const kl_value *tile, const kl_node *index)
{
    if (tile->rank)
        return kl_tile_subscripts(e, tile, index);
    kl_err(e, KL_K0315, index->span, "a scalar has no subscripts");
    return NULL;
}

/* What an assignment changes: a variable or a member of one, or some of its elements. */
struct target {
    const kl_node *l;    /* the left side */
    const kl_node *base; /* of it without subscripts */
    kl_sym *s;
    const kl_value *own; /* type and shape */
    uint32_t slot;
    const char *name; /* for messages */
};

static void assign_elements(kl_elab *e, const kl_node *n, const kl_node *r)
{
    const kl_node *l = n->kid[0];
    kl_value acc = kl_expr(e, l);
    kl_value v = kl_rvalue_for(e, r, n->op == KL_TK_ASSIGN ? (enum kl_elem)acc.elem : KL_elem_none);
    if (!kl_need_tile(e, &v) || acc.kind != KL_V_ACCESS) {
        kl_mark_used(e, n); /* the value may only be known to the second phase */
        return;
    }
    if (n->op != KL_TK_ASSIGN)
        v = update(e, n, kl_load(e, acc, NULL, NULL, l->span), v);
    v.span = r->span;
    kl_store(e, acc, v, NULL, n->span);
}

/* May the name be assigned to?  false: reported. */
static bool writable(kl_elab *e, const kl_sym *s, kl_span at)
{
    static const char *const what[] = {"", "a constant", "a type", "an array", "a function", "a struct"};
    if (s->kind != KL_S_VAR) {
        struct kl_diag *g = kl_err(e, KL_K0319, at, "`%s` is %s and cannot be assigned to", s->name,
                                   what[s->kind]);
        kl_note(g, s->decl, "declared here");
        if (s->kind == KL_S_ARRAY)
            kl_note(g, (kl_span){0, 0}, "say which part is written, as in `%s[first:count] = ...`", s->name);
        return false;
    }
    if (s->isconst) {
        kl_note(kl_err(e, KL_K0316, at, "`%s` is const and may not be written", s->name), s->decl,
                "declared const here");
        return false;
    }
    return true;
}

/* The target becomes a member of its struct; false: reported. */
static bool to_member(kl_elab *e, struct target *t, const kl_node *member)
{
    int i = -1;
    if (t->own->kind == KL_V_STRUCT)
        i = kl_member_index(e, t->own->st, member->name, member->name_span);
    else
        kl_err(e, KL_K0220, member->span, "only a struct has members, and `%s` is %s", t->name,
               kl_type_text(e, t->own));
    if (i < 0)
        return false;
    t->own = &t->own->st->m[i].v;
    t->slot += (uint32_t)i;
    t->name = kl_printf(e->a, "%s.%s", t->s->name, member->name);
    t->base = member;
    return true;
}

static void assign_struct(kl_elab *e, const kl_node *n, const struct target *t, const kl_node *r)
{
    if (t->l->kind == KL_N_INDEX || n->op != KL_TK_ASSIGN) {
        kl_err(e, KL_K0222, t->l->span, "`%s` is a struct %s; name a member", t->s->name, t->own->st->name);
        kl_any(e, r);
        return;
    }
    kl_value x = kl_any(e, r);
    x.span = r->span;
    x = kl_struct_fit(e, x, t->own, kl_printf(e->a, "the value assigned to `%s`", t->s->name));
    if (x.kind == KL_V_STRUCT)
        kl_struct_assign(e, t->slot, &x);
    for (uint32_t i = 0; i < t->own->st->n; i++)
        e->var.v[t->slot + i].def = KL_DEF;
}

/* The tile that the variable holds afterwards, before it takes the variable's type. */
static kl_value assigned(kl_elab *e, const kl_node *n, const struct target *t, const kl_node *r)
{
    bool used = t->s->used, part = t->l->kind == KL_N_INDEX, plain = n->op == KL_TK_ASSIGN;
    if (!part && plain)
        return kl_rvalue_for(e, r, (enum kl_elem)t->own->elem);
    kl_value cur = kl_expr(e, t->base); /* reports reading what has no value */
    t->s->used = used;
    if (!part)
        return update(e, n, cur, kl_rvalue(e, r));
    struct kl_access *acc = cur.kind == KL_V_TILE ? subscripts_of(e, &cur, t->l) : NULL;
    kl_value v = kl_rvalue_for(e, r, plain ? (enum kl_elem)cur.elem : KL_elem_none);
    if (acc && !plain)
        v = update(e, n, kl_tile_part(e, cur, acc, t->l->span), v);
    v.span = r->span;
    return acc && v.kind == KL_V_TILE ? kl_tile_replace(e, cur, acc, v, t->l->span) : kl_bad(t->l->span);
}

static void assign_tile(kl_elab *e, const kl_node *n, const struct target *t, const kl_node *r)
{
    kl_value v = assigned(e, n, t, r);
    if (v.kind == KL_V_STRUCT) {
        v.span = r->span;
        kl_need_tile(e, &v);
    }
    if (t->own->kind == KL_V_TILE && v.kind == KL_V_TILE) {
        if (t->l->kind != KL_N_INDEX) {
            const char *what = kl_printf(e->a, "the value assigned to `%s`", t->name);
            v.span = r->span;
            v = kl_move(e, v, (enum kl_elem)t->own->elem, KL_MOVE, what);
            v = kl_fit(e, v, t->own->rank, t->own->dim, what);
        }
        if (v.kind == KL_V_TILE)
            e->var.v[t->slot].ir = kl_ir(e, &v);
    }
    e->var.v[t->slot].def = KL_DEF;
}

void kl_assign(kl_elab *e, const kl_node *n)
{
    kl_node one = {.kind = KL_N_INT, .ival = 1, .span = n->span};
    const kl_node *l = n->kid[0], *r = n->kind == KL_N_INCDEC ? &one : n->kid[1];
    const kl_node *base = l->kind == KL_N_INDEX ? l->kid[0] : l;
    const kl_node *member = base->kind == KL_N_MEMBER && base->kid[0]->kind == KL_N_NAME ? base : NULL;
    if (member)
        base = base->kid[0];
    if (base->kind != KL_N_NAME) {
        if (base->kind != KL_N_ERROR)
            kl_err(e, KL_K0319, l->span, "this cannot be assigned to");
        kl_rvalue(e, r);
        return;
    }
    struct target t = {.l = l, .base = base, .s = kl_sym_find(e, base->name), .name = base->name};
    if (t.s && t.s->kind == KL_S_ARRAY && l->kind == KL_N_INDEX && !member) {
        assign_elements(e, n, r);
        return;
    }
    if (!t.s)
        kl_sym_need(e, base); /* reports that there is none */
    if (!t.s || !writable(e, t.s, l->span)) {
        kl_rvalue(e, r);
        return;
    }
    t.own = &t.s->val;
    t.slot = t.s->var;
    if (member && t.own->kind != KL_V_ERR && !to_member(e, &t, member)) {
        kl_any(e, r);
        return;
    }
    if (t.own->kind == KL_V_STRUCT)
        assign_struct(e, n, &t, r);
    else
        assign_tile(e, n, &t, r);
}

