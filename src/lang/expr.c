/* expr.c - expressions: values, constants, names; the walk over the tree. */
#include "lang/elab.h"

#include <math.h>
#include <stdlib.h>

bool kl_need_tile(kl_elab *e, kl_value *v)
{
    if (v->kind == KL_V_STRUCT) {
        struct kl_diag *g = kl_err(e, KL_K0222, v->span, "a struct %s where one value is wanted", v->st->name);
        if (v->st->n)
            kl_note(g, (kl_span){0, 0}, "name a member, as in `.%s`", v->st->m[0].name);
        *v = kl_bad(v->span);
    }
    return v->kind == KL_V_TILE;
}

kl_value kl_load_if_access(kl_elab *e, kl_value v)
{
    if (v.kind == KL_V_STRUCT) {
        kl_need_tile(e, &v);
        return v;
    }
    if (v.kind == KL_V_ACCESS)
        return kl_load(e, v, NULL, NULL, v.span);
    if (v.kind == KL_V_ARRAY) {
        struct kl_diag *g = kl_err(e, KL_K0307, v.span, "the array `%s` is not a value", v.arr->name);
        kl_note(g, v.arr->decl, "say which part, as in `%s[first:count]`", v.arr->name);
        return kl_bad(v.span);
    }
    if (v.kind == KL_V_VOID) {
        kl_err(e, KL_K0405, v.span, "this function returns nothing, but a value is wanted");
        return kl_bad(v.span);
    }
    return v;
}

kl_value kl_rvalue(kl_elab *e, const kl_node *n)
{
    return kl_load_if_access(e, kl_expr(e, n));
}

kl_value kl_any(kl_elab *e, const kl_node *n)
{
    kl_value v = kl_expr(e, n);
    return v.kind == KL_V_STRUCT ? v : kl_load_if_access(e, v);
}

kl_value kl_rvalue_for(kl_elab *e, const kl_node *n, enum kl_elem el)
{
    e->want = n->kind == KL_N_COND ? (uint8_t)el : 0;
    return kl_any(e, n);
}

kl_value kl_scalar_i64(kl_elab *e, const kl_node *n, const char *what)
{
    return kl_as_i64(e, kl_rvalue(e, n), n, what);
}

kl_value kl_as_i64(kl_elab *e, kl_value v, const kl_node *n, const char *what)
{
    if (v.kind != KL_V_TILE)
        return v;
    if (v.dec) {
        kl_err(e, KL_K0309, n->span, "%s must be an integer, not a decimal", what);
        return kl_bad(n->span);
    }
    if (v.rank) {
        kl_err(e, KL_K0308, n->span, "%s must be a scalar, not a tile of shape %s", what,
               kl_dims_text(e, &v));
        return kl_bad(n->span);
    }
    if (v.untyped)
        return kl_give_type(e, v, KL_i64);
    if (!v.elem)
        return v;
    if (!kl_is_int((enum kl_elem)v.elem) && v.elem != KL_bool) {
        kl_err(e, KL_K0309, n->span, "%s must be an integer, not %s", what, kl_elems[v.elem].name);
        return kl_bad(n->span);
    }
    return kl_cast(e, v, KL_i64);
}

bool kl_eval_dim(kl_elab *e, const kl_node *n, const char *what, kl_dim *out)
{
    *out = (kl_dim){0, 0};
    kl_value v = kl_rvalue(e, n);
    v.span = n->span;
    int64_t k;
    bool known;
    if (!kl_need_const(e, &v, what, &k, &known))
        return false;
    if (!known) {
        out->sym = v.sym;
        return true;
    }
    if (k <= 0 || k > INT32_MAX) {
        kl_err(e, KL_K0310, n->span, "%s must be between 1 and 2147483647, not %lld", what,
               (long long)k);
        return false;
    }
    out->n = (uint32_t)k;
    return true;
}

/* ---- types ---- */

enum kl_elem kl_eval_type(kl_elab *e, const kl_node *n, bool *ok)
{
    *ok = true;
    if (kl_is_struct_type(n)) {
        kl_err(e, KL_K0222, n->span, "an element type is wanted, not `struct %s`", n->name);
        *ok = false;
        return KL_elem_none;
    }
    switch (n->kind) {
    case KL_N_NAME:
    case KL_N_TYPE: {
        kl_sym *s = kl_sym_find(e, n->name);
        if (s && s->kind == KL_S_TYPE) {
            s->used = true;
            return (enum kl_elem)s->elem;
        }
        enum kl_elem el = kl_elem_by_name(n->name, (uint32_t)strlen(n->name));
        if (el)
            return el;
        *ok = false;
        const char *names[KL_NELEM];
        uint32_t k = 0;
        for (int t = 1; t < KL_NELEM; t++)
            names[k++] = kl_elems[t].name;
        const char *near = kl_nearest(n->name, names, k);
        struct kl_diag *g = kl_err(e, KL_K0204, n->span, "`%s` is not a type", n->name);
        if (near)
            kl_fix(g, n->span, "%s", near);
        return KL_elem_none;
    }
    case KL_N_CALL:
        if (strcmp(n->name, "acc") == 0 && n->nkid == 1) {
            enum kl_elem el = kl_eval_type(e, n->kid[0], ok);
            return *ok && el ? (enum kl_elem)kl_elems[el].acc : KL_elem_none;
        }
        break;
    case KL_N_COND: {
        kl_value c = kl_to_bool(e, kl_rvalue(e, n->kid[0]));
        if (c.kind == KL_V_ERR) {
            *ok = false;
            return KL_elem_none;
        }
        if (!c.konst) {
            kl_err(e, KL_K0306, n->kid[0]->span, "a type is chosen by a constant condition only");
            *ok = false;
            return KL_elem_none;
        }
        if (!c.known)
            return KL_elem_none;
        return kl_eval_type(e, n->kid[c.bits ? 1 : 2], ok);
    }
    default: break;
    }
    if (n->kind != KL_N_ERROR)
        kl_err(e, KL_K0204, n->span, "this is not a type");
    *ok = false;
    return KL_elem_none;
}

/* ---- expressions ---- */

static kl_value name(kl_elab *e, const kl_node *n)
{
    kl_sym *s = kl_sym_need(e, n);
    if (!s)
        return kl_bad(n->span);
    kl_value v;
    switch (s->kind) {
    case KL_S_VAR: {
        struct kl_varstate *st = &e->var.v[s->var];
        v = s->val;
        v.span = n->span;
        if (v.kind == KL_V_ERR)
            return v;
        if (v.kind == KL_V_STRUCT) {
            for (uint32_t i = 0; i < v.st->n; i++, st++) {
                if (st->def == KL_DEF)
                    continue;
                kl_note(kl_err(e, KL_K0313, n->span, "`%s.%s` %s before it has a value", n->name,
                               v.st->m[i].name, st->def == KL_UNDEF ? "is read" : "may be read"),
                        s->decl, "declared here without one");
                st->def = KL_DEF;
            }
            return kl_struct_read(e, s->var, &v, n->span);
        }
        if (st->def != KL_DEF) {
            kl_note(kl_err(e, KL_K0313, n->span,
                           st->def == KL_UNDEF ? "`%s` is read before it has a value"
                                               : "`%s` may be read before it has a value",
                           n->name),
                    s->decl, "declared here without one");
            st->def = KL_DEF; /* once is enough */
        }
        v.ir = st->ir;
        if (kl_emitting(e) && !v.ir.id) /* an error, or behind a jump: any value will do */
            v.ir = kl_cst(&e->b, kl_irtype(e, (enum kl_elem)v.elem, v.rank, v.dim), 0);
        return v;
    }
    case KL_S_CONST:
        if (s->table)
            return kl_table_value(e, s, n->span);
        v = s->val;
        v.span = n->span;
        return v;
    case KL_S_ARRAY:
        if (!s->arr)
            return kl_bad(n->span);
        v = (kl_value){.kind = KL_V_ARRAY, .elem = s->arr->elem, .arr = s->arr, .span = n->span};
        return v;
    case KL_S_TYPE:
        kl_err(e, KL_K0205, n->span, "`%s` is a type, and a value is wanted", n->name);
        return kl_bad(n->span);
    default:
        kl_note(kl_err(e, KL_K0205, n->span, "`%s` is a function; call it: `%s(...)`", n->name, n->name),
                s->decl, "declared here");
        return kl_bad(n->span);
    }
}

static kl_value expression(kl_elab *e, const kl_node *n)
{
    kl_value v;
    switch (n->kind) {
    case KL_N_INT:
        if (n->flags & KL_NF_F32)
            return kl_typed(KL_f32, kl_f32_bits((float)n->ival), n->span);
        return kl_uint(n->ival, n->span);
    case KL_N_DECIMAL:
        v = kl_decimal(strtof(n->name, NULL), strtod(n->name, NULL), n->span);
        return n->flags & KL_NF_F32 ? kl_typed(KL_f32, kl_f32_bits(v.f), n->span) : v;
    case KL_N_BOOL: return kl_typed(KL_bool, n->ival, n->span);
    case KL_N_INFLIT: return kl_decimal((float)INFINITY, (double)INFINITY, n->span);
    case KL_N_NANLIT: return kl_decimal((float)NAN, (double)NAN, n->span);
    case KL_N_NAME: return name(e, n);
    case KL_N_UNARY: return kl_unary(e, n);
    case KL_N_BINARY: {
        if (n->op == KL_TK_ANDAND || n->op == KL_TK_OROR)
            return kl_logical(e, n);
        kl_value a = kl_rvalue(e, n->kid[0]);
        kl_value b = kl_rvalue(e, n->kid[1]);
        v = kl_binary(e, n->op, a, b, n->name_span);
        v.span = n->span;
        return v;
    }
    case KL_N_COND: return kl_conditional(e, n);
    case KL_N_CAST: {
        bool ok;
        enum kl_elem el = kl_eval_type(e, n->kid[0], &ok);
        v = kl_rvalue(e, n->kid[1]);
        if (!ok || v.kind != KL_V_TILE)
            return kl_bad(n->span);
        if (!el && v.untyped)
            v = kl_give_type(e, v, KL_elem_none);
        v = el || !kl_emitting(e) ? kl_cast(e, v, el) : v;
        v.span = n->span;
        return v;
    }
    case KL_N_SIZEOF: {
        bool ok;
        enum kl_elem el = kl_eval_type(e, n->kid[0], &ok);
        if (!ok)
            return kl_bad(n->span);
        v = kl_int(el ? kl_elems[el].bytes : 0, n->span);
        if (!el) {
            v.known = false;
            v.sym = kl_symbol(e, "sizeof(%s)", n->kid[0]->name ? n->kid[0]->name : "?");
        }
        return v;
    }
    case KL_N_CALL: return kl_call(e, n);
    case KL_N_INDEX: return kl_index(e, n);
    case KL_N_TYPE:
        kl_err(e, KL_K0205, n->span, "`%s` is a type, and a value is wanted", n->name);
        return kl_bad(n->span);
    case KL_N_STRING:
        kl_err(e, KL_K0205, n->span, "a text is not a value");
        return kl_bad(n->span);
    case KL_N_MEMBER: return kl_member(e, n);
    case KL_N_LITERAL: return kl_literal(e, n);
    case KL_N_SECTION:
    case KL_N_ALL:
        kl_err(e, KL_K0205, n->span, "a section stands only in the brackets of an access");
        return kl_bad(n->span);
    default: return kl_bad(n->span); /* ERROR: said already */
    }
}

kl_value kl_expr(kl_elab *e, const kl_node *n)
{
    if (e->nested >= KL_MAX_NESTED) {
        kl_limit(e, n->span, "statements, functions and operators are nested too deep", NULL);
        return kl_bad(n->span);
    }
    e->nested++;
    kl_value v = expression(e, n);
    e->nested--;
    return v;
}
