/* struct.c - structs: a bundle of values with names, of which IR knows nothing.
 *
 * A struct value holds a tile for each member; a variable of struct type is a slot for each
 * member, side by side.  Types and sizes of members are looked up where the struct is
 * declared; a size that has no meaning there is deduced from the values given.  A struct
 * whose members are all declared as scalars may hold tiles of one shape instead: it is then
 * a tile of that struct. */
#include "lang/stmt.h"

enum { MAX_MEMBERS = KL_MAX_FOLD };

/* ---- declarations ---- */

static bool is_auto(const kl_node *type)
{
    return type->kind == KL_N_TYPE && strcmp(type->name, "auto") == 0;
}

/* Member i: its type and its VAR.  false: there are fewer. */
static bool member_at(const kl_node *decl, uint32_t i, const kl_node **type, const kl_node **var)
{
    for (uint32_t d = 0; d < decl->nkid; d++) {
        const kl_node *n = decl->kid[d];
        if (n->kind != KL_N_DECL)
            continue;
        for (uint32_t k = 1; k < n->nkid; k++) {
            if (!n->kid[k] || n->kid[k]->kind != KL_N_VAR || i-- > 0)
                continue;
            *type = n->kid[0], *var = n->kid[k];
            return true;
        }
    }
    return false;
}

static uint32_t member_count(const kl_node *decl)
{
    const kl_node *t, *v;
    uint32_t n = 0;
    while (member_at(decl, n, &t, &v))
        n++;
    return n;
}

/* Declared as a scalar, without sizes and not as auto. */
static bool is_plain(const kl_node *type, const kl_node *var)
{
    return !is_auto(type) && !var->kid[0];
}

static bool lifts(const kl_node *decl)
{
    const kl_node *t, *v;
    for (uint32_t i = 0; member_at(decl, i, &t, &v); i++)
        if (v->kid[0])
            return false;
    return true;
}

static void check_member(kl_elab *e, const kl_node *decl, uint32_t i, const kl_node *type, const kl_node *var)
{
    const kl_node *t, *v;
    for (uint32_t k = 0; k < i && member_at(decl, k, &t, &v); k++)
        if (v->name == var->name) {
            kl_note(kl_err(e, KL_K0202, var->name_span, "the member `%s` is declared twice", var->name),
                    v->name_span, "first declared here");
            return;
        }
    bool ok;
    if (type->kind == KL_N_ERROR)
        return;
    if (kl_is_struct_type(type) || strcmp(type->name, "void") == 0)
        kl_err(e, KL_K0223, type->span, "members of a struct are scalars and tiles");
    else if (!is_auto(type))
        kl_eval_type(e, type, &ok);
    if (var->nkid > 1 && var->kid[1])
        kl_err(e, KL_K0223, var->kid[1]->span, "a member is a tile, which has no strides");
    if (var->nkid > 2 && var->kid[2])
        kl_err(e, KL_K0223, var->kid[2]->span, "a member has no value of its own; a literal gives it one");
    if (is_auto(type) && var->kid[0])
        kl_err(e, KL_K0223, var->kid[0]->span, "`auto` takes shape and type from the value");
    for (uint32_t d = 0; var->kid[0] && d < var->kid[0]->nkid; d++)
        if (!var->kid[0]->kid[d])
            kl_err(e, KL_K0223, var->kid[0]->span, "a member needs a size or a name in each bracket");
    if (var->kid[0] && var->kid[0]->nkid > KL_MAX_RANK)
        kl_err(e, KL_K0802, var->kid[0]->span, "a tile has at most rank %d", KL_MAX_RANK);
}

void kl_struct_declare(kl_elab *e, const kl_node *n)
{
    const kl_node *t, *v;
    kl_sym *s = kl_sym_add(e, KL_S_STRUCT, n->name, n->name_span);
    s->node = (kl_node *)(uintptr_t)n; /* only read */
    s->home = e->scope;
    s->used = true;
    s->val = kl_bad(n->span);
    uint32_t count = member_count(n);
    for (uint32_t i = 0; e->mode == KL_CHECK && member_at(n, i, &t, &v); i++)
        check_member(e, n, i, t, v);
    if (count == 0)
        kl_err(e, KL_K0223, n->name_span, "`struct %s` has no members", n->name);
    if (count > MAX_MEMBERS)
        kl_err(e, KL_K0802, n->name_span, "a struct has at most %d members", MAX_MEMBERS);
}

kl_sym *kl_struct_need(kl_elab *e, const kl_node *type)
{
    kl_sym *s = kl_tag_find(e, type->name);
    if (s) {
        uint32_t n = member_count(s->node);
        return n && n <= MAX_MEMBERS ? s : NULL; /* said already */
    }
    enum { MAX = 100 };
    const char *names[MAX];
    uint32_t k = 0;
    for (kl_scope *c = e->scope; c; c = c->outer)
        for (kl_sym *t = c->head; t && k < MAX; t = t->next)
            if (t->kind == KL_S_STRUCT)
                names[k++] = t->name;
    const char *near = kl_nearest(type->name, names, k);
    struct kl_diag *g = kl_err(e, KL_K0220, type->name_span, "there is no `struct %s` here", type->name);
    if (near)
        kl_fix(g, type->name_span, "%s", near);
    return NULL;
}

/* ---- values ---- */

static struct kl_sval *sval_new(kl_elab *e, const kl_sym *tag, const char *name, uint32_t n)
{
    struct kl_sval *st = kl_alloc_zero(e->a, sizeof *st + n * sizeof st->m[0]);
    st->tag = tag;
    st->name = name;
    st->n = n;
    return st;
}

static kl_value of_sval(struct kl_sval *st, kl_span s)
{
    return (kl_value){.kind = KL_V_STRUCT, .st = st, .span = s};
}

kl_value kl_struct_with(kl_elab *e, const struct kl_sval *like, const kl_value *m, kl_span s)
{
    struct kl_sval *st = sval_new(e, like->tag, like->name, like->n);
    for (uint32_t i = 0; i < st->n; i++) {
        if (m[i].kind != KL_V_TILE)
            return kl_bad(s);
        st->m[i].name = like->m[i].name;
        st->m[i].v = m[i];
    }
    return of_sval(st, s);
}

/* Names in the sizes of a member that mean nothing yet take what the value has. */
static bool bind_names(kl_elab *e, const kl_node *var, const kl_value *v)
{
    const kl_node *dims = var->kid[0];
    if (!dims || v->rank != dims->nkid)
        return true;
    for (uint32_t d = 0; d < dims->nkid; d++)
        if (dims->kid[d] && dims->kid[d]->kind == KL_N_NAME && !kl_sym_find(e, dims->kid[d]->name) &&
            !kl_bind_size(e, dims->kid[d], kl_dim_value(v->dim[d], v->span), v->span, var->name))
            return false;
    return true;
}

/* Shape of a member's declaration. */
static bool member_dims(kl_elab *e, const kl_node *var, uint32_t *rank, kl_dim *dim)
{
    const kl_node *dims = var->kid[0];
    bool ok = true;
    *rank = 0;
    for (uint32_t d = 0; dims && d < dims->nkid && d < KL_MAX_RANK; d++)
        ok &= dims->kid[d] && kl_eval_dim(e, dims->kid[d], "a tile size", &dim[(*rank)++]);
    return ok && kl_tile_fits(e, *rank, dim, var->span);
}

static bool place_members(kl_elab *e, const kl_sym *tag, struct kl_sval *st, bool lifting)
{
    const kl_node *t, *v;
    bool ok = true;
    for (uint32_t i = 0; member_at(tag->node, i, &t, &v); i++) {
        kl_value *m = &st->m[i].v;
        const char *what = kl_printf(e->a, "the member `%s`", v->name);
        st->m[i].name = v->name;
        if (is_auto(t)) {
            *m = kl_concrete(e, *m);
        } else {
            bool good;
            enum kl_elem el = kl_eval_type(e, t, &good);
            kl_span at = m->span;
            *m = good ? kl_move(e, *m, el, KL_MOVE, what) : kl_bad(at);
            m->span = at;
        }
        ok &= m->kind == KL_V_TILE && bind_names(e, v, m);
    }
    for (uint32_t i = 0; ok && member_at(tag->node, i, &t, &v); i++) {
        kl_value *m = &st->m[i].v;
        uint32_t rank;
        kl_dim dim[KL_MAX_RANK];
        if (is_auto(t) || (lifting && !v->kid[0]))
            continue;
        if (!member_dims(e, v, &rank, dim))
            return false;
        *m = kl_fit(e, *m, rank, dim, kl_printf(e->a, "the member `%s`", v->name));
        ok &= m->kind == KL_V_TILE;
    }
    return ok;
}

bool kl_struct_shape(kl_elab *e, const kl_value *v, uint32_t *rank, kl_dim *dim, kl_span at)
{
    const kl_node *t, *var;
    *rank = 0;
    if (v->kind != KL_V_STRUCT || (v->st->tag && !lifts(v->st->tag->node)))
        return false;
    for (uint32_t i = 0; i < v->st->n; i++) {
        bool plain = !v->st->tag || (member_at(v->st->tag->node, i, &t, &var) && is_plain(t, var));
        if (plain && !kl_broadcast_shape(e, rank, dim, &v->st->m[i].v, at))
            return false;
    }
    return true;
}

kl_value kl_struct_lift(kl_elab *e, kl_value v, uint32_t rank, const kl_dim *dim)
{
    const kl_node *t, *var;
    if (v.kind != KL_V_STRUCT || (v.st->tag && !lifts(v.st->tag->node)))
        return v;
    kl_value m[MAX_MEMBERS];
    for (uint32_t i = 0; i < v.st->n; i++) {
        m[i] = v.st->m[i].v;
        if (!v.st->tag || (member_at(v.st->tag->node, i, &t, &var) && is_plain(t, var)))
            m[i] = kl_stretch(e, m[i], rank, dim);
    }
    return kl_struct_with(e, v.st, m, v.span);
}

kl_value kl_struct_build(kl_elab *e, const kl_sym *tag, const kl_value *m, kl_span s)
{
    struct kl_sval *st = sval_new(e, tag, tag->name, member_count(tag->node));
    kl_scope *saved = e->scope;
    uint32_t nvar = e->var.n;
    for (uint32_t i = 0; i < st->n; i++)
        st->m[i].v = m[i];
    kl_scope_push(e, tag->home);
    bool ok = place_members(e, tag, st, lifts(tag->node));
    e->scope = saved;
    e->var.n = nvar;
    kl_value v = of_sval(st, s);
    uint32_t rank;
    kl_dim dim[KL_MAX_RANK];
    if (ok && kl_struct_shape(e, &v, &rank, dim, s) && rank)
        v = kl_struct_lift(e, v, rank, dim);
    else if (ok && lifts(tag->node) && rank)
        ok = false; /* said: the shapes do not broadcast */
    return ok ? v : kl_bad(s);
}

kl_value kl_literal(kl_elab *e, const kl_node *n)
{
    const kl_node *type = n->kid[0], *t, *v;
    kl_sym *tag = kl_is_struct_type(type) ? kl_struct_need(e, type) : NULL;
    kl_value m[MAX_MEMBERS] = {{0}};
    bool given[MAX_MEMBERS] = {false}, ok = tag != NULL;
    uint32_t count = tag ? member_count(tag->node) : 0, pos = 0;
    for (uint32_t k = 1; k < n->nkid; k++) {
        const kl_node *x = n->kid[k];
        uint32_t i = pos;
        if (x->kind == KL_N_DESIG) {
            for (i = 0; i < count && member_at(tag->node, i, &t, &v) && v->name != x->name;)
                i++;
            if (tag && i == count) {
                kl_note(kl_err(e, KL_K0220, x->name_span, "`struct %s` has no member `%s`", tag->name, x->name),
                        tag->decl, "declared here");
                ok = false;
            }
            x = x->kid[0];
        } else {
            pos++;
        }
        enum kl_elem want = KL_elem_none;
        if (i < count && member_at(tag->node, i, &t, &v) && t->kind == KL_N_TYPE)
            want = kl_elem_by_name(t->name, (uint32_t)strlen(t->name));
        kl_value x_v = kl_rvalue_for(e, x, want);
        x_v.span = x->span;
        ok &= kl_need_tile(e, &x_v);
        if (i >= count)
            continue;
        if (given[i]) {
            kl_err(e, KL_K0221, x->span, "the member `%s` is given twice", v->name);
            ok = false;
        }
        given[i] = true;
        m[i] = x_v;
    }
    if (!tag)
        return kl_bad(n->span);
    uint32_t missing = 0;
    while (missing < count && given[missing])
        missing++;
    if (pos > count || (ok && missing < count)) {
        struct kl_diag *g = NULL;
        if (pos > count)
            g = kl_err(e, KL_K0221, n->span, "`struct %s` has %u member%s, and here are %u values", tag->name,
                       count, count == 1 ? "" : "s", pos);
        else if (member_at(tag->node, missing, &t, &v))
            g = kl_err(e, KL_K0221, n->span, "`struct %s` needs a value for `%s`", tag->name, v->name);
        if (g)
            kl_note(g, tag->decl, "declared here");
        ok = false;
    }
    return ok ? kl_struct_build(e, tag, m, n->span) : kl_bad(n->span);
}

int kl_member_index(kl_elab *e, const struct kl_sval *st, const char *name, kl_span at)
{
    const char *names[MAX_MEMBERS];
    for (uint32_t i = 0; i < st->n; i++) {
        if (strcmp(st->m[i].name, name) == 0)
            return (int)i;
        names[i] = st->m[i].name;
    }
    const char *near = kl_nearest(name, names, st->n);
    struct kl_diag *g = kl_err(e, KL_K0220, at, "`struct %s` has no member `%s`", st->name, name);
    if (near)
        kl_fix(g, at, "%s", near);
    if (st->tag)
        kl_note(g, st->tag->decl, "declared here");
    return -1;
}

/* The variable that a member's base names, if it is one of struct type. */
static kl_sym *struct_var(kl_elab *e, const kl_node *base)
{
    kl_sym *s = base->kind == KL_N_NAME ? kl_sym_find(e, base->name) : NULL;
    return s && s->kind == KL_S_VAR && s->val.kind == KL_V_STRUCT ? s : NULL;
}

kl_value kl_member(kl_elab *e, const kl_node *n)
{
    kl_sym *s = struct_var(e, n->kid[0]);
    if (s) { /* the other members may have no value yet */
        s->used = true;
        int i = kl_member_index(e, s->val.st, n->name, n->name_span);
        if (i < 0)
            return kl_bad(n->span);
        struct kl_varstate *st = &e->var.v[s->var + (uint32_t)i];
        kl_value v = s->val.st->m[i].v;
        if (st->def != KL_DEF) {
            kl_note(kl_err(e, KL_K0313, n->span, "`%s.%s` %s before it has a value", s->name, n->name,
                           st->def == KL_UNDEF ? "is read" : "may be read"),
                    s->decl, "declared here without one");
            st->def = KL_DEF;
        }
        v.span = n->span;
        v.ir = st->ir;
        if (kl_emitting(e) && !v.ir.id)
            v.ir = kl_cst(&e->b, kl_irtype(e, (enum kl_elem)v.elem, v.rank, v.dim), 0);
        return v;
    }
    kl_value b = kl_expr(e, n->kid[0]);
    if (b.kind == KL_V_ERR)
        return kl_bad(n->span);
    if (b.kind != KL_V_STRUCT) {
        kl_err(e, KL_K0220, n->span, "only a struct has members, and this is %s",
               b.kind == KL_V_TILE ? kl_type_text(e, &b) : b.kind == KL_V_VOID ? "no value" : "an array");
        return kl_bad(n->span);
    }
    int i = kl_member_index(e, b.st, n->name, n->name_span);
    if (i < 0)
        return kl_bad(n->span);
    kl_value v = b.st->m[i].v;
    v.span = n->span;
    return v;
}

static const char *a_struct(kl_elab *e, const kl_value *v)
{
    return v->kind == KL_V_STRUCT ? kl_printf(e->a, "a struct %s", v->st->name)
           : v->kind == KL_V_TILE ? kl_type_text(e, v)
                                  : "no value";
}

bool kl_struct_is(kl_elab *e, const kl_value *v, const kl_sym *tag, const char *what)
{
    if (v->kind == KL_V_ERR)
        return false;
    if (v->kind == KL_V_STRUCT && v->st->tag && v->st->tag->node == tag->node)
        return true;
    kl_note(kl_err(e, KL_K0222, v->span, "%s is %s and not a struct %s", what, a_struct(e, v), tag->name), tag->decl,
            "declared here");
    return false;
}

kl_value kl_struct_fit(kl_elab *e, kl_value v, const kl_value *like, const char *what)
{
    if (v.kind == KL_V_ERR)
        return v;
    bool same = v.kind == KL_V_STRUCT && v.st->n == like->st->n &&
                (v.st->tag && like->st->tag ? v.st->tag->node == like->st->tag->node
                                            : v.st->tag == like->st->tag && v.st->name == like->st->name);
    if (!same) {
        kl_err(e, KL_K0222, v.span, "%s is %s and not a struct %s", what, a_struct(e, &v), like->st->name);
        return kl_bad(v.span);
    }
    kl_value m[MAX_MEMBERS];
    for (uint32_t i = 0; i < v.st->n; i++) {
        const kl_value *t = &like->st->m[i].v;
        const char *of = kl_printf(e->a, "the member `%s` of %s", v.st->m[i].name, what);
        m[i] = v.st->m[i].v;
        m[i].span = v.span;
        m[i] = kl_move(e, m[i], (enum kl_elem)t->elem, KL_MOVE, of);
        m[i] = kl_fit(e, m[i], t->rank, t->dim, of);
    }
    return kl_struct_with(e, v.st, m, v.span);
}

kl_value kl_struct_type(kl_elab *e, const kl_value *v)
{
    kl_value m[MAX_MEMBERS];
    for (uint32_t i = 0; i < v->st->n; i++) {
        m[i] = kl_concrete(e, v->st->m[i].v);
        m[i].konst = m[i].known = m[i].untyped = false;
        m[i].ir.id = 0;
    }
    return kl_struct_with(e, v->st, m, v->span);
}

kl_value kl_struct_spread(kl_elab *e, kl_value v, uint32_t rank, const kl_dim *dim)
{
    if (v.kind != KL_V_STRUCT || !lifts(v.st->tag->node))
        return v;
    kl_value m[MAX_MEMBERS];
    for (uint32_t i = 0; i < v.st->n; i++) {
        m[i] = v.st->m[i].v;
        m[i].rank = (uint8_t)rank;
        memcpy(m[i].dim, dim, sizeof m[i].dim);
    }
    return kl_struct_with(e, v.st, m, v.span);
}

kl_value kl_struct_unset(kl_elab *e, const kl_sym *tag, kl_span s)
{
    struct kl_sval *st = sval_new(e, tag, tag->name, member_count(tag->node));
    const kl_node *t, *v;
    kl_scope *saved = e->scope;
    bool ok = true;
    kl_scope_push(e, tag->home);
    for (uint32_t i = 0; ok && member_at(tag->node, i, &t, &v); i++) {
        kl_value *m = &st->m[i].v;
        uint32_t rank = 0;
        bool good = true, deduced = is_auto(t);
        for (uint32_t d = 0; v->kid[0] && d < v->kid[0]->nkid; d++) {
            const kl_node *x = v->kid[0]->kid[d];
            deduced |= x && x->kind == KL_N_NAME && !kl_sym_find(e, x->name);
        }
        if (deduced) {
            struct kl_diag *g = kl_err(e, KL_K0206, s, "the member `%s` of `struct %s` takes its %s from a value; "
                                       "give one", v->name, tag->name, is_auto(t) ? "type" : "size");
            kl_note(g, v->name_span, "declared here");
            ok = false;
            break;
        }
        enum kl_elem el = kl_eval_type(e, t, &good);
        ok &= good && member_dims(e, v, &rank, m->dim);
        m->kind = KL_V_TILE, m->elem = (uint8_t)el, m->rank = (uint8_t)rank, m->span = s;
        st->m[i].name = v->name;
    }
    e->scope = saved;
    return ok ? of_sval(st, s) : kl_bad(s);
}

/* ---- slots ---- */

uint32_t kl_struct_slots(kl_elab *e, const kl_value *v, int def)
{
    uint32_t first = e->var.n;
    for (uint32_t i = 0; i < v->st->n; i++)
        kl_var_new(e, (kl_val){0}, def);
    return first;
}

void kl_struct_assign(kl_elab *e, uint32_t slot, const kl_value *v)
{
    for (uint32_t i = 0; i < v->st->n; i++) {
        e->var.v[slot + i].ir = kl_ir(e, &v->st->m[i].v);
        e->var.v[slot + i].def = KL_DEF;
    }
}

kl_value kl_struct_read(kl_elab *e, uint32_t slot, const kl_value *type, kl_span s)
{
    struct kl_sval *st = sval_new(e, type->st->tag, type->st->name, type->st->n);
    for (uint32_t i = 0; i < st->n; i++) {
        kl_value *m = &st->m[i].v;
        st->m[i] = type->st->m[i];
        m->span = s;
        m->ir = e->var.v[slot + i].ir;
        if (kl_emitting(e) && !m->ir.id) /* an error, or behind a jump: any value will do */
            m->ir = kl_cst(&e->b, kl_irtype(e, (enum kl_elem)m->elem, m->rank, m->dim), 0);
    }
    return of_sval(st, s);
}

/* ---- ?: ---- */

kl_value kl_struct_select(kl_elab *e, kl_value c, kl_value a, kl_value b, kl_span s)
{
    if (a.kind == KL_V_ERR || b.kind == KL_V_ERR)
        return kl_bad(s);
    if (a.kind != KL_V_STRUCT) {
        kl_value t = a;
        a = b, b = t; /* of which one is a struct: kl_struct_fit says what is wrong */
    }
    kl_value m[MAX_MEMBERS];
    if (b.kind != KL_V_STRUCT || b.st->n != a.st->n)
        return kl_struct_fit(e, b, &a, "the other side of `?:`");
    uint32_t rank = 0;
    kl_dim dim[KL_MAX_RANK];
    for (uint32_t i = 0; i < a.st->n; i++) { /* b as a, but for shapes that broadcast */
        kl_value x = a.st->m[i].v, y = b.st->m[i].v;
        if (!kl_broadcast2(e, &x, &y, s))
            return kl_bad(s);
        m[i] = x;
    }
    a = kl_struct_with(e, a.st, m, a.span);
    b = a.kind == KL_V_STRUCT ? kl_struct_fit(e, b, &a, "the other side of `?:`") : a;
    if (b.kind != KL_V_STRUCT)
        return kl_bad(s);
    for (uint32_t i = 0; i < a.st->n; i++) {
        kl_value x = kl_concrete(e, a.st->m[i].v), y = kl_concrete(e, b.st->m[i].v), p = c;
        if (!kl_broadcast2(e, &p, &x, s))
            return kl_bad(s);
        rank = x.rank;
        memcpy(dim, x.dim, sizeof dim);
        y = kl_stretch(e, y, rank, dim);
        m[i] = kl_op3(e, KL_OP_select, p, x, y, s);
    }
    return kl_struct_with(e, a.st, m, s);
}
