/* expr.c - expressions. */
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

/* ---- untyped arithmetic: exact, in 64 bits with or without a sign ---- */

static kl_value untyped_dec(float f, double d, kl_span s)
{
    kl_value v = kl_int(0, s);
    v.dec = true, v.f = f, v.d = d, v.elem = KL_f32;
    return v;
}

static kl_value untyped_bool(bool b, kl_span s)
{
    return kl_typed(KL_bool, b, s);
}

/* Operands have at most 65 bits with their sign, so that only a product may overflow. */
static bool int_op(int tok, kl_i128 a, kl_i128 b, kl_i128 *r)
{
    switch (tok) {
    case KL_TK_ADD: *r = a + b; return true;
    case KL_TK_SUB: *r = a - b; return true;
    case KL_TK_MUL: return !__builtin_mul_overflow(a, b, r);
    case KL_TK_DIV:
        if (b == 0)
            return false;
        *r = a / b;
        return true;
    case KL_TK_REM:
        if (b == 0)
            return false;
        *r = a % b;
        return true;
    case KL_TK_AND: *r = a & b; return true;
    case KL_TK_OR: *r = a | b; return true;
    case KL_TK_XOR: *r = a ^ b; return true;
    case KL_TK_SHL:
        if (b < 0 || b > 63)
            return false;
        return !__builtin_mul_overflow(a, (kl_i128)1 << b, r);
    case KL_TK_SHR:
        if (b < 0)
            return false;
        *r = a >> (b > 64 ? 64 : b);
        return true;
    default: return false;
    }
}

static kl_value untyped_binary(kl_elab *e, int tok, kl_value a, kl_value b, kl_span op)
{
    kl_span s = kl_span_join(a.span, b.span);
    bool compare = tok == KL_TK_EQ || tok == KL_TK_NE || tok == KL_TK_LT || tok == KL_TK_LE ||
                   tok == KL_TK_GT || tok == KL_TK_GE;
    if (!a.known || !b.known) {
        kl_value r = kl_int(0, s);
        r.known = false;
        r.dec = a.dec || b.dec;
        r.sym = kl_symbol(e, "(%s%s%s)", kl_const_text(e, &a), kl_tok_text[tok], kl_const_text(e, &b));
        if (compare)
            r.untyped = false, r.elem = KL_bool;
        return r;
    }
    if (compare) {
        bool lt, eq;
        if (a.dec || b.dec)
            lt = a.d < b.d, eq = a.d == b.d;
        else
            lt = kl_wide(&a) < kl_wide(&b), eq = kl_wide(&a) == kl_wide(&b);
        bool nan = a.d != a.d || b.d != b.d;
        switch (tok) {
        case KL_TK_EQ: return untyped_bool(eq, s);
        case KL_TK_NE: return untyped_bool(!eq, s);
        case KL_TK_LT: return untyped_bool(lt, s);
        case KL_TK_LE: return untyped_bool(lt || eq, s);
        case KL_TK_GT: return untyped_bool(!nan && !lt && !eq, s);
        default: return untyped_bool(!nan && !lt, s);
        }
    }
    if (a.dec || b.dec) {
        switch (tok) {
        case KL_TK_ADD: return untyped_dec(a.f + b.f, a.d + b.d, s);
        case KL_TK_SUB: return untyped_dec(a.f - b.f, a.d - b.d, s);
        case KL_TK_MUL: return untyped_dec(a.f * b.f, a.d * b.d, s);
        case KL_TK_DIV: return untyped_dec(a.f / b.f, a.d / b.d, s);
        default:
            kl_err(e, KL_K0309, op, "`%s` needs integers, not decimals", kl_tok_text[tok]);
            return kl_bad(s);
        }
    }
    kl_i128 r;
    kl_value v;
    if (!int_op(tok, kl_wide(&a), kl_wide(&b), &r) || !kl_from_wide(r, s, &v)) {
        kl_err(e, KL_K0311, op, "the constant %s %s %s has no value in 64 bits", kl_const_text(e, &a),
               kl_tok_text[tok], kl_const_text(e, &b));
        return kl_bad(s);
    }
    return v;
}

/* ---- operators ---- */

static const struct { uint8_t tok, op, intonly; } binops[] = {
    {KL_TK_ADD, KL_OP_add, 0}, {KL_TK_SUB, KL_OP_sub, 0}, {KL_TK_MUL, KL_OP_mul, 0},
    {KL_TK_DIV, KL_OP_div, 0}, {KL_TK_REM, KL_OP_rem, 1}, {KL_TK_AND, KL_OP_and, 1},
    {KL_TK_OR, KL_OP_or, 1},   {KL_TK_XOR, KL_OP_xor, 1}, {KL_TK_SHL, KL_OP_shl, 1},
    {KL_TK_SHR, KL_OP_shr, 1}, {KL_TK_EQ, KL_OP_eq, 0},   {KL_TK_NE, KL_OP_ne, 0},
    {KL_TK_LT, KL_OP_lt, 0},   {KL_TK_LE, KL_OP_le, 0},   {KL_TK_GT, KL_OP_gt, 0},
    {KL_TK_GE, KL_OP_ge, 0},
};

/* The count of a shift in the type of what is shifted, so that a count too large for it
 * stays too large. */
static kl_value shift_count(kl_elab *e, kl_value c, enum kl_elem to)
{
    if (c.kind != KL_V_TILE || !to)
        return c;
    if (c.untyped) {
        if (!c.known)
            return kl_give_type(e, c, to);
        int64_t w = kl_elems[to].bytes * 8;
        return kl_typed(to, (uint64_t)(c.dec || c.big || c.i < 0 || c.i > w ? w : c.i), c.span);
    }
    c = kl_promote(e, c);
    if (!c.elem || kl_elems[c.elem].bytes <= kl_elems[to].bytes)
        return kl_cast(e, c, to);
    enum kl_elem el = (enum kl_elem)c.elem;
    kl_value w = kl_stretch(e, kl_typed(el, 64, c.span), c.rank, c.dim);
    kl_value z = kl_stretch(e, kl_typed(el, 0, c.span), c.rank, c.dim);
    kl_value low = kl_op2(e, KL_OP_lt, c, w, c.span);
    if (kl_elems[el].kind == KL_KIND_SINT)
        low = kl_op2(e, KL_OP_and, low, kl_op2(e, KL_OP_ge, c, z, c.span), c.span);
    return kl_cast(e, kl_op3(e, KL_OP_select, low, c, w, c.span), to);
}

kl_value kl_binary(kl_elab *e, int tok, kl_value a, kl_value b, kl_span opspan)
{
    kl_span s = kl_span_join(a.span, b.span);
    if (a.kind != KL_V_TILE || b.kind != KL_V_TILE)
        return kl_bad(s);
    if (a.untyped && b.untyped)
        return untyped_binary(e, tok, a, b, opspan);
    uint32_t i = 0;
    while (binops[i].tok != tok)
        i++;
    enum kl_op op = (enum kl_op)binops[i].op;
    if (binops[i].intonly)
        for (int k = 0; k < 2; k++) {
            const kl_value *v = k ? &b : &a;
            if (v->dec || (!v->untyped && kl_is_float((enum kl_elem)v->elem))) {
                kl_err(e, KL_K0309, opspan, "`%s` needs integers, not %s", kl_tok_text[tok],
                       kl_type_text(e, v));
                return kl_bad(s);
            }
        }
    if (op == KL_OP_shl || op == KL_OP_shr) {
        a = kl_promote(e, kl_concrete(e, a));
        b = shift_count(e, b, (enum kl_elem)a.elem);
    } else if ((op == KL_OP_and || op == KL_OP_or || op == KL_OP_xor) && a.elem == KL_bool &&
               b.elem == KL_bool && !a.untyped && !b.untyped) {
        /* stays bool */
    } else if (!kl_unify(e, &a, &b, opspan, kl_tok_text[tok])) {
        return kl_bad(s);
    }
    if (a.kind != KL_V_TILE || b.kind != KL_V_TILE || !kl_broadcast2(e, &a, &b, opspan))
        return kl_bad(s);
    return kl_op2(e, op, a, b, s);
}

static kl_value unary(kl_elab *e, const kl_node *n)
{
    if (n->op == KL_TK_AND) {
        kl_err(e, KL_K0312, n->span, "`&` makes a view and stands only in the declaration of one");
        return kl_bad(n->span);
    }
    const kl_node *x = n->kid[0];
    kl_value v = kl_rvalue(e, x);
    if (v.kind != KL_V_TILE)
        return v;
    kl_span s = n->span;
    if (n->op == KL_TK_NOT) {
        v = kl_to_bool(e, v);
        if (v.konst && !v.known) {
            v.sym = kl_symbol(e, "!%s", e->syms.v[v.sym]);
            v.span = s;
            return v;
        }
        kl_value t = kl_stretch(e, kl_typed(KL_bool, 1, s), v.rank, v.dim);
        return kl_op2(e, KL_OP_xor, v, t, s);
    }
    if (v.untyped) {
        if (!v.known) {
            v.sym = kl_symbol(e, "%s%s", kl_tok_text[n->op], kl_const_text(e, &v));
            v.span = s;
            return v;
        }
        if (n->op == KL_TK_TILDE) {
            if (v.dec) {
                kl_err(e, KL_K0309, n->name_span, "`~` needs an integer, not a decimal");
                return kl_bad(s);
            }
            if (!v.big)
                return kl_int(~v.i, s);
            kl_err(e, KL_K0311, s, "the constant ~%s has no value in 64 bits", kl_const_text(e, &v));
            return kl_bad(s);
        }
        if (n->op == KL_TK_SUB) {
            if (v.dec)
                return untyped_dec(-v.f, -v.d, s);
            kl_value minus;
            if (kl_from_wide(-kl_wide(&v), s, &minus))
                return minus;
            kl_err(e, KL_K0311, s, "the constant -(%s) has no value in 64 bits", kl_const_text(e, &v));
            return kl_bad(s);
        }
        v.span = s;
        return v;
    }
    v = kl_promote(e, v);
    if (n->op == KL_TK_ADD) {
        v.span = s;
        return v;
    }
    if (n->op == KL_TK_SUB)
        return kl_op1(e, KL_OP_neg, v, s);
    if (kl_is_float((enum kl_elem)v.elem)) {
        kl_err(e, KL_K0309, n->name_span, "`~` needs an integer, not %s", kl_type_text(e, &v));
        return kl_bad(s);
    }
    if (!v.elem)
        return v;
    kl_value ones = kl_stretch(e, kl_typed((enum kl_elem)v.elem, ~(uint64_t)0, s), v.rank, v.dim);
    return kl_op2(e, KL_OP_xor, v, ones, s);
}

/* The two arms of ?: brought to one type and shape (moved values keep storage types).
 * want: the type that two constants are moved to. */
static bool join_arms(kl_elab *e, kl_value *a, kl_value *b, enum kl_elem want, kl_span op)
{
    if (a->kind != KL_V_TILE || b->kind != KL_V_TILE)
        return false;
    if (a->untyped && b->untyped && want)
        *a = kl_give_type(e, *a, want), *b = kl_give_type(e, *b, want);
    else if (a->untyped && b->untyped && (a->dec || b->dec))
        *a = kl_give_type(e, *a, KL_f32), *b = kl_give_type(e, *b, KL_f32);
    else if (a->untyped && !b->untyped)
        *a = kl_give_type(e, *a, (enum kl_elem)b->elem);
    else if (b->untyped && !a->untyped)
        *b = kl_give_type(e, *b, (enum kl_elem)a->elem);
    else if (a->elem != b->elem || a->untyped) {
        if (!kl_unify(e, a, b, op, "?:"))
            return false;
    }
    return a->kind == KL_V_TILE && b->kind == KL_V_TILE && kl_broadcast2(e, a, b, op);
}

kl_val kl_emit_if(kl_elab *e, kl_val cond, kl_blk t, kl_blk f, kl_val tv, kl_val fv, kl_typ ty)
{
    kl_build b = e->b;
    b.blk = t, b.before.id = 0;
    kl_emit(&b, KL_OP_yield, (kl_typ){0}, &tv, 1, (union kl_attr){0});
    b.blk = f;
    kl_emit(&b, KL_OP_yield, (kl_typ){0}, &fv, 1, (union kl_attr){0});
    kl_val op = kl_emit(&e->b, KL_OP_if, (kl_typ){0}, &cond, 1, (union kl_attr){.blk = {t, f}});
    return kl_emit(&e->b, KL_OP_result, ty, NULL, 0,
                   (union kl_attr){.result = {.index = 0, .of = op}});
}

/* a && b, a || b.  With a scalar on the left the right side counts only where C would
 * evaluate it: a load there must not become a finding. */
static kl_value logical(kl_elab *e, const kl_node *n)
{
    bool isand = n->op == KL_TK_ANDAND;
    kl_value a = kl_to_bool(e, kl_rvalue(e, n->kid[0]));
    if (a.kind != KL_V_TILE) {
        kl_rvalue(e, n->kid[1]);
        return kl_bad(n->span);
    }
    if (a.konst && a.known && !a.bits == isand) {
        kl_mark_used(e, n->kid[1]);
        return kl_typed(KL_bool, a.bits, n->span);
    }
    if (!kl_emitting(e) || a.rank || a.konst) {
        kl_value b = kl_to_bool(e, kl_rvalue(e, n->kid[1]));
        if (b.kind != KL_V_TILE)
            return kl_bad(n->span);
        if (a.konst && a.known)
            return b;
        if (a.konst && b.konst && !(b.known && a.known)) {
            a.sym = kl_symbol(e, "(%s%s%s)", kl_const_text(e, &a), kl_tok_text[n->op],
                              kl_const_text(e, &b));
            a.known = false;
            a.span = n->span;
            return a;
        }
        if (!kl_broadcast2(e, &a, &b, n->name_span))
            return kl_bad(n->span);
        return kl_op2(e, isand ? KL_OP_and : KL_OP_or, a, b, n->span);
    }
    if (!kl_deeper(e, n->span))
        return kl_bad(n->span);
    kl_blk saved, blk = kl_enter_block(e, &saved);
    kl_value b = kl_to_bool(e, kl_rvalue(e, n->kid[1]));
    e->regions--;
    if (b.kind == KL_V_TILE && (b.rank || kl_block_is_pure(e, blk, NULL))) {
        kl_leave_block(e, saved);
        kl_splice_block(e, blk); /* a tile beside a scalar: both sides are evaluated */
        if (!kl_broadcast2(e, &a, &b, n->name_span))
            return kl_bad(n->span);
        return kl_op2(e, isand ? KL_OP_and : KL_OP_or, a, b, n->span);
    }
    if (b.kind != KL_V_TILE) {
        kl_leave_block(e, saved);
        return kl_bad(n->span);
    }
    kl_val bv = kl_ir(e, &b);
    kl_leave_block(e, saved);
    kl_blk other = kl_enter_block(e, &saved);
    kl_val c = kl_cst(&e->b, kl_scalar(e->f, KL_bool), !isand);
    kl_leave_block(e, saved);
    e->b.loc = n->span;
    kl_typ t = kl_scalar(e->f, KL_bool);
    kl_val av = kl_ir(e, &a);
    kl_val r = isand ? kl_emit_if(e, av, blk, other, bv, c, t) : kl_emit_if(e, av, other, blk, c, bv, t);
    return kl_rt(e, KL_bool, 0, NULL, r, n->span);
}

/* An arm that a constant condition drops, for its type and shape alone: no IR, no messages. */
static kl_value dropped(kl_elab *e, const kl_node *n, enum kl_elem want)
{
    uint32_t nvar = e->var.n;
    struct kl_varstate *state = kl_new_n(e->a, struct kl_varstate, nvar);
    memcpy(state, e->var.v, nvar * sizeof *state);
    bool lower = e->mode == KL_LOWER, trial = e->trial;
    if (lower)
        e->mode = KL_CHECK, e->trial = true;
    e->quiet++;
    kl_value v = kl_rvalue_for(e, n, want);
    e->quiet--;
    if (lower)
        e->mode = KL_LOWER, e->trial = trial;
    memcpy(e->var.v, state, nvar * sizeof *state);
    e->var.n = nvar;
    return v;
}

/* The arm that a constant condition keeps, with the type and shape that ?: has. */
static kl_value chosen(kl_elab *e, const kl_node *n, bool first, enum kl_elem want)
{
    kl_value v = kl_rvalue_for(e, n->kid[first ? 1 : 2], want);
    kl_mark_used(e, n->kid[first ? 2 : 1]);
    if (v.kind != KL_V_TILE)
        return v;
    kl_value o = dropped(e, n->kid[first ? 2 : 1], want), jv = v;
    v.span = n->span;
    if (o.kind != KL_V_TILE)
        return v;
    if (v.untyped && o.untyped)
        return o.dec && !v.dec && v.known ? untyped_dec(v.f, v.d, n->span) : v;
    bool lower = e->mode == KL_LOWER;
    if (lower)
        e->mode = KL_CHECK;
    e->quiet++;
    bool ok = first ? join_arms(e, &jv, &o, want, n->name_span) : join_arms(e, &o, &jv, want, n->name_span);
    e->quiet--;
    if (lower)
        e->mode = KL_LOWER;
    if (!ok)
        return v;
    enum kl_elem el = (enum kl_elem)jv.elem;
    v = v.untyped ? kl_give_type(e, v, el) : kl_cast(e, v, el);
    return kl_stretch(e, v, jv.rank, jv.dim);
}

/* One of two structs whose computation reads or writes memory: a branch. */
static kl_value either(kl_elab *e, kl_value c, kl_blk ta, kl_blk fb, kl_value a, kl_value b, kl_span s)
{
    e->mode = KL_CHECK; /* the types alone */
    kl_value t = kl_struct_select(e, c, a, b, s);
    e->mode = KL_LOWER;
    if (t.kind != KL_V_STRUCT)
        return kl_bad(s);
    kl_blk saved = e->b.blk;
    for (int k = 0; k < 2; k++) {
        e->b.blk = k ? fb : ta;
        kl_value x = kl_struct_fit(e, k ? b : a, &t, "one side of `?:`");
        if (x.kind != KL_V_STRUCT)
            return kl_bad(s);
        kl_val *y = kl_new_n(e->a, kl_val, x.st->n + 1);
        for (uint32_t i = 0; i < x.st->n; i++)
            y[i] = kl_ir(e, &x.st->m[i].v);
        kl_emit(&e->b, KL_OP_yield, (kl_typ){0}, y, x.st->n, (union kl_attr){0});
    }
    e->b.blk = saved;
    e->b.loc = s;
    kl_val cv = kl_ir(e, &c);
    kl_val op = kl_emit(&e->b, KL_OP_if, (kl_typ){0}, &cv, 1, (union kl_attr){.blk = {ta, fb}});
    for (uint32_t i = 0; i < t.st->n; i++) {
        kl_value *m = &t.st->m[i].v;
        m->ir = kl_result(&e->b, op, i, kl_irtype(e, (enum kl_elem)m->elem, m->rank, m->dim));
    }
    return t;
}

static kl_value conditional(kl_elab *e, const kl_node *n)
{
    enum kl_elem want = (enum kl_elem)e->want;
    e->want = 0;
    kl_value c = kl_to_bool(e, kl_rvalue(e, n->kid[0]));
    if (c.kind == KL_V_TILE && c.konst && c.known)
        return chosen(e, n, c.bits != 0, want);
    if (!kl_emitting(e) || c.kind != KL_V_TILE || c.rank) {
        kl_value a = kl_rvalue_for(e, n->kid[1], want), b = kl_rvalue_for(e, n->kid[2], want);
        if (c.kind != KL_V_TILE)
            return kl_bad(n->span);
        if (a.kind == KL_V_STRUCT || b.kind == KL_V_STRUCT)
            return kl_struct_select(e, c, a, b, n->span);
        if (c.konst && a.untyped && b.untyped && a.kind == KL_V_TILE && b.kind == KL_V_TILE) {
            kl_value r = kl_int(0, n->span); /* a symbolic choice of constants is a constant */
            r.known = false;
            r.dec = a.dec || b.dec;
            r.sym = kl_symbol(e, "(%s?%s:%s)", kl_const_text(e, &c), kl_const_text(e, &a),
                              kl_const_text(e, &b));
            return r;
        }
        if (!join_arms(e, &a, &b, want, n->name_span) || !kl_broadcast2(e, &c, &a, n->name_span))
            return kl_bad(n->span);
        b = kl_stretch(e, b, a.rank, a.dim);
        return kl_op3(e, KL_OP_select, c, a, b, n->span);
    }
    if (!kl_deeper(e, n->span))
        return kl_bad(n->span);
    kl_blk saved, ta, fb;
    uint32_t na = 0, nb = 0;
    ta = kl_enter_block(e, &saved);
    kl_value a = kl_rvalue_for(e, n->kid[1], want);
    kl_leave_block(e, saved);
    fb = kl_enter_block(e, &saved);
    kl_value b = kl_rvalue_for(e, n->kid[2], want);
    kl_leave_block(e, saved);
    e->regions--;
    bool pure = kl_block_is_pure(e, ta, &na) && kl_block_is_pure(e, fb, &nb);
    if (a.kind == KL_V_STRUCT && b.kind == KL_V_STRUCT) {
        if (!pure)
            return either(e, c, ta, fb, a, b, n->span);
        kl_splice_block(e, ta);
        kl_splice_block(e, fb);
        return kl_struct_select(e, c, a, b, n->span);
    }
    if (!kl_need_tile(e, &a) || !kl_need_tile(e, &b))
        return kl_bad(n->span);
    bool small = (!a.rank && !b.rank) || na + nb <= 2;
    if (pure && small) {
        kl_splice_block(e, ta);
        kl_splice_block(e, fb);
        if (!join_arms(e, &a, &b, want, n->name_span))
            return kl_bad(n->span);
        kl_value cc = kl_stretch(e, c, a.rank, a.dim);
        return kl_op3(e, KL_OP_select, cc, a, b, n->span);
    }
    /* conversions belong to the arms: find the common type on copies without emission */
    kl_value ja = a, jb = b;
    e->mode = KL_CHECK;
    e->quiet++; /* what is wrong is said below */
    bool ok = join_arms(e, &ja, &jb, want, n->name_span);
    e->quiet--;
    e->mode = KL_LOWER;
    if (!ok) {
        join_arms(e, &a, &b, want, n->name_span);
        return kl_bad(n->span);
    }
    enum kl_elem el = (enum kl_elem)ja.elem;
    kl_val v[2];
    for (int k = 0; k < 2; k++) {
        saved = e->b.blk;
        e->b.blk = k ? fb : ta;
        kl_value x = k ? b : a;
        x = x.untyped ? kl_give_type(e, x, el) : kl_cast(e, x, el);
        x = kl_stretch(e, x, ja.rank, ja.dim);
        v[k] = kl_ir(e, &x);
        e->b.blk = saved;
    }
    e->b.loc = n->span;
    kl_typ t = kl_irtype(e, el, ja.rank, ja.dim);
    kl_val r = kl_emit_if(e, kl_ir(e, &c), ta, fb, v[0], v[1], t);
    return kl_rt(e, el, ja.rank, ja.dim, r, n->span);
}

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
        v = untyped_dec(strtof(n->name, NULL), strtod(n->name, NULL), n->span);
        return n->flags & KL_NF_F32 ? kl_typed(KL_f32, kl_f32_bits(v.f), n->span) : v;
    case KL_N_BOOL: return kl_typed(KL_bool, n->ival, n->span);
    case KL_N_INFLIT: return untyped_dec((float)INFINITY, (double)INFINITY, n->span);
    case KL_N_NANLIT: return untyped_dec((float)NAN, (double)NAN, n->span);
    case KL_N_NAME: return name(e, n);
    case KL_N_UNARY: return unary(e, n);
    case KL_N_BINARY: {
        if (n->op == KL_TK_ANDAND || n->op == KL_TK_OROR)
            return logical(e, n);
        kl_value a = kl_rvalue(e, n->kid[0]);
        kl_value b = kl_rvalue(e, n->kid[1]);
        v = kl_binary(e, n->op, a, b, n->name_span);
        v.span = n->span;
        return v;
    }
    case KL_N_COND: return conditional(e, n);
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
