/* operator.c - unary and binary operators, of constants without a type and of typed values. */
#include "lang/elab.h"

/* ---- untyped arithmetic: exact, in 64 bits with or without a sign ---- */

kl_value kl_decimal(float f, double d, kl_span s)
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
        case KL_TK_ADD: return kl_decimal(a.f + b.f, a.d + b.d, s);
        case KL_TK_SUB: return kl_decimal(a.f - b.f, a.d - b.d, s);
        case KL_TK_MUL: return kl_decimal(a.f * b.f, a.d * b.d, s);
        case KL_TK_DIV: return kl_decimal(a.f / b.f, a.d / b.d, s);
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

kl_value kl_unary(kl_elab *e, const kl_node *n)
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
                return kl_decimal(-v.f, -v.d, s);
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
