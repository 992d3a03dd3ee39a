/* builtin_ew.c - built-in functions that work element by element. */
#include "lang/builtin.h"

bool kl_need_float(kl_elab *e, kl_value *v, const char *name)
{
    if (v->kind != KL_V_TILE)
        return false;
    if (v->untyped)
        *v = kl_give_type(e, *v, KL_f32);
    *v = kl_promote(e, *v);
    if (v->kind != KL_V_TILE)
        return false;
    if (v->elem && !kl_is_float((enum kl_elem)v->elem)) {
        kl_note(kl_err(e, KL_K0309, v->span, "`%s` needs a float, not %s", name, kl_type_text(e, v)),
                (kl_span){0, 0}, "cast it, as in `%s((f32)x)`", name);
        return false;
    }
    return true;
}

static bool need_int(kl_elab *e, kl_value *v, const char *name)
{
    if (v->kind != KL_V_TILE)
        return false;
    if (v->dec || (!v->untyped && v->elem && !kl_is_int((enum kl_elem)v->elem) && v->elem != KL_bool)) {
        kl_err(e, KL_K0309, v->span, "`%s` needs an integer, not %s", name, kl_type_text(e, v));
        return false;
    }
    return true;
}

kl_value kl_call_math1(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value v = kl_arg_value(e, a, 0);
    if (!kl_need_float(e, &v, b->name))
        return kl_bad(a->s);
    bool fast = e->b.fast;
    e->b.fast |= b->fast;
    v = kl_op1(e, (enum kl_op)b->op, v, a->s);
    e->b.fast = fast;
    return v;
}

kl_value kl_call_rcp(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value v = kl_arg_value(e, a, 0);
    if (!kl_need_float(e, &v, b->name))
        return kl_bad(a->s);
    kl_value one = v.elem ? kl_typed((enum kl_elem)v.elem, v.elem == KL_f64 ? kl_f64_bits(1) : kl_f32_bits(1), a->s)
                          : kl_give_type(e, kl_int(1, a->s), KL_elem_none);
    bool fast = e->b.fast;
    e->b.fast = true;
    v = kl_op2(e, KL_OP_div, kl_stretch(e, one, v.rank, v.dim), v, a->s);
    e->b.fast = fast;
    return v;
}

kl_value kl_call_abs(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value v = kl_promote(e, kl_concrete(e, kl_arg_value(e, a, 0)));
    return v.kind == KL_V_TILE ? kl_op1(e, (enum kl_op)b->op, v, a->s) : kl_bad(a->s);
}

/* Two untyped integers: exact.  Returns false if that is not what they are. */
static bool untyped_pair(kl_elab *e, const struct kl_builtin *b, kl_value *x, kl_value *y, kl_span s,
                         kl_value *out)
{
    if (x->kind != KL_V_TILE || y->kind != KL_V_TILE || !x->untyped || !y->untyped || x->dec || y->dec)
        return false;
    *out = kl_int(0, s);
    if (!x->known || !y->known) {
        out->known = false;
        out->sym = kl_symbol(e, "%s(%s,%s)", b->name, kl_const_text(e, x), kl_const_text(e, y));
        return true;
    }
    kl_i128 m = kl_wide(x), n = kl_wide(y), r;
    if (n == 0 && b->op != KL_OP_min && b->op != KL_OP_max) {
        kl_err(e, KL_K0311, s, "the constant %s(%s, 0) has no value", b->name, kl_const_text(e, x));
        *out = kl_bad(s);
        return true;
    }
    switch (b->op) {
    case KL_OP_min: r = m < n ? m : n; break;
    case KL_OP_max: r = m > n ? m : n; break;
    case KL_OP_cdiv: r = m / n + (m % n != 0 && (m % n < 0) == (n < 0)); break;
    case KL_OP_floordiv: r = m / n - (m % n != 0 && (m % n < 0) != (n < 0)); break;
    case KL_OP_floormod: r = m % n + (m % n != 0 && (m % n < 0) != (n < 0) ? n : 0); break;
    default: return false;
    }
    if (kl_from_wide(r, s, out))
        return true;
    kl_err(e, KL_K0311, s, "the constant %s(%s, %s) has no value in 64 bits", b->name, kl_const_text(e, x),
           kl_const_text(e, y));
    *out = kl_bad(s);
    return true;
}

kl_value kl_two_args(kl_elab *e, const struct kl_builtin *b, kl_value x, kl_value y, kl_span s)
{
    kl_value r;
    if (untyped_pair(e, b, &x, &y, s, &r))
        return r;
    if (!kl_unify(e, &x, &y, s, b->name) || !kl_broadcast2(e, &x, &y, s))
        return kl_bad(s);
    return kl_op2(e, (enum kl_op)b->op, x, y, s);
}

kl_value kl_call_int2(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value x = kl_arg_value(e, a, 0), y = kl_arg_value(e, a, 1);
    bool first = need_int(e, &x, b->name), second = need_int(e, &y, b->name);
    if (!first || !second)
        return kl_bad(a->s);
    if (b->op == KL_OP_umulhi && x.untyped && y.untyped) /* it needs a width */
        x = kl_concrete(e, x), y = kl_concrete(e, y);
    return kl_two_args(e, b, x, y, a->s);
}

/* Functions of two floats. */
kl_value kl_call_math2(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value x = kl_arg_value(e, a, 0), y = kl_arg_value(e, a, 1);
    if (x.untyped && y.untyped)
        x = kl_give_type(e, x, KL_f32);
    if (!kl_unify(e, &x, &y, a->s, b->name) || !kl_need_float(e, &x, b->name) ||
        !kl_need_float(e, &y, b->name) || !kl_broadcast2(e, &x, &y, a->s))
        return kl_bad(a->s);
    bool fast = e->b.fast;
    e->b.fast |= b->fast;
    x = kl_op2(e, (enum kl_op)b->op, x, y, a->s);
    e->b.fast = fast;
    return x;
}

/* Counts of bits, in the width of the promoted type. */
kl_value kl_call_bits(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value v = kl_arg_value(e, a, 0);
    if (!need_int(e, &v, b->name))
        return kl_bad(a->s);
    v = kl_promote(e, kl_concrete(e, v));
    return v.kind == KL_V_TILE ? kl_op1(e, (enum kl_op)b->op, v, a->s) : kl_bad(a->s);
}

kl_value kl_call_pow2ceil(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value v = kl_arg_value(e, a, 0);
    if (!need_int(e, &v, b->name))
        return kl_bad(a->s);
    if (!v.untyped) {
        v = kl_promote(e, v);
        return v.konst && !v.known ? v : kl_op1(e, KL_OP_pow2ceil, v, a->s);
    }
    if (!v.known) {
        v.sym = kl_symbol(e, "pow2ceil(%s)", kl_const_text(e, &v));
        return v;
    }
    kl_i128 r = 1;
    while (r < kl_wide(&v))
        r *= 2;
    kl_value out;
    if (kl_from_wide(r, a->s, &out))
        return out;
    kl_err(e, KL_K0311, a->s, "the constant pow2ceil(%s) has no value in 64 bits", kl_const_text(e, &v));
    return kl_bad(a->s);
}

kl_value kl_call_fma(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value x = kl_arg_value(e, a, 0), y = kl_arg_value(e, a, 1), z = kl_arg_value(e, a, 2);
    kl_span s = a->s;
    /* the common type of three: by pairs, twice round; constants take that of the others */
    kl_value *v[3] = {&x, &y, &z};
    if (x.untyped && y.untyped && z.untyped && (b->op == KL_OP_fma || x.dec || y.dec || z.dec))
        x = kl_give_type(e, x, KL_f32);
    for (int i = 0; i < 2; i++)
        if (v[0]->untyped) {
            kl_value *first = v[0];
            v[0] = v[1], v[1] = v[2], v[2] = first;
        }
    if (v[1]->untyped) {
        kl_value *last = v[1];
        v[1] = v[2], v[2] = last;
    }
    for (int i = 0; i < 4; i++)
        if (!kl_unify(e, v[0], v[i % 2 + 1], s, b->name))
            return kl_bad(a->s);
    if (b->op == KL_OP_fma && (!kl_need_float(e, &x, b->name) || !kl_need_float(e, &y, b->name) ||
                               !kl_need_float(e, &z, b->name)))
        return kl_bad(a->s);
    uint32_t rank = x.rank;
    kl_dim dim[KL_MAX_RANK];
    memcpy(dim, x.dim, sizeof dim);
    if (!kl_broadcast_shape(e, &rank, dim, &y, s) || !kl_broadcast_shape(e, &rank, dim, &z, s))
        return kl_bad(a->s);
    x = kl_stretch(e, x, rank, dim), y = kl_stretch(e, y, rank, dim), z = kl_stretch(e, z, rank, dim);
    if (b->op == KL_OP_fma)
        return kl_op3(e, KL_OP_fma, x, y, z, s);
    return kl_op2(e, KL_OP_min, kl_op2(e, KL_OP_max, x, y, s), z, s); /* clamp(x, lo, hi) */
}

kl_value kl_call_isnan(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value v = kl_arg_value(e, a, 0);
    if (!kl_need_float(e, &v, b->name))
        return kl_bad(a->s);
    if (strcmp(b->name, "isnan") == 0)
        return kl_op2(e, KL_OP_ne, v, v, a->s);
    if (!v.elem) {
        v.elem = KL_bool;
        return v;
    }
    kl_value inf = kl_give_type(e, kl_int(0, a->s), (enum kl_elem)v.elem);
    inf.bits = v.elem == KL_f64 ? 0x7ff0000000000000u : 0x7f800000u;
    inf = kl_stretch(e, inf, v.rank, v.dim);
    v = kl_op1(e, KL_OP_abs, v, a->s);
    return kl_op2(e, strcmp(b->name, "isinf") == 0 ? KL_OP_eq : KL_OP_lt, v, inf, a->s);
}
