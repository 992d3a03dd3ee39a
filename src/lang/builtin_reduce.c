/* builtin_reduce.c - reductions and dot. */
#include "lang/builtin.h"

static kl_value fold_axis(kl_elab *e, enum kl_op op, uint32_t redop, kl_value v, uint32_t axis, kl_span s)
{
    if (kl_in_fold(e, s, "a reduction"))
        return kl_bad(s);
    kl_dim dim[KL_MAX_RANK];
    memcpy(dim, v.dim, sizeof dim);
    dim[axis] = kl_dim_of(1);
    kl_value r = kl_rt(e, op == KL_OP_reduce ? (enum kl_elem)v.elem : KL_i32, v.rank, dim, (kl_val){0}, s);
    if (kl_emitting(e)) {
        union kl_attr attr = {0};
        if (op == KL_OP_reduce)
            attr.red.op = (uint16_t)redop, attr.red.axis = (uint8_t)axis;
        else
            attr.index = axis;
        kl_val x = kl_ir(e, &v);
        e->b.loc = s;
        r.ir = kl_emit(&e->b, op, kl_irtype(e, (enum kl_elem)r.elem, v.rank, dim), &x, 1, attr);
    }
    return r;
}

static kl_value to_scalar(kl_elab *e, kl_value v, kl_span s)
{
    return v.rank ? kl_shaped(e, v, KL_OP_reshape, 0, NULL, (union kl_attr){0}, s) : v;
}

kl_value kl_call_reduce(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value v = kl_arg_value(e, a, 0);
    bool logic = b->op == KL_OP_or || b->op == KL_OP_and;
    v = logic ? kl_to_bool(e, v) : kl_promote(e, kl_concrete(e, v));
    if (v.kind != KL_V_TILE)
        return kl_bad(a->s);
    if ((b->op == KL_OP_fmin || b->op == KL_OP_fmax) && !kl_need_float(e, &v, b->name))
        return kl_bad(a->s);
    if (a->desig[KL_DG_AXIS]) {
        uint32_t axis;
        return kl_get_axis(e, a, &v, -1, &axis) ? fold_axis(e, KL_OP_reduce, b->op, v, axis, a->s) : kl_bad(a->s);
    }
    for (uint32_t i = 0; i < v.rank && v.kind == KL_V_TILE; i++)
        v = fold_axis(e, KL_OP_reduce, b->op, v, i, a->s);
    return to_scalar(e, v, a->s);
}

kl_value kl_call_minmax(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    if (a->n == 1)
        return kl_call_reduce(e, b, a);
    if (a->desig[KL_DG_AXIS]) {
        kl_err(e, KL_K0402, a->desig[KL_DG_AXIS]->span, "`%s` of two values works element by element and has no axis",
               b->name);
        return kl_bad(a->s);
    }
    kl_value x = kl_arg_value(e, a, 0), y = kl_arg_value(e, a, 1);
    if ((b->op == KL_OP_fmin || b->op == KL_OP_fmax) && x.untyped && y.untyped)
        x = kl_give_type(e, x, KL_f32);
    kl_value r = kl_two_args(e, b, x, y, a->s);
    if (r.kind == KL_V_TILE && (b->op == KL_OP_fmin || b->op == KL_OP_fmax) && r.elem &&
        !kl_is_float((enum kl_elem)r.elem)) {
        kl_err(e, KL_K0309, a->s, "`%s` needs floats; use `%s`", b->name, b->name + 1);
        return kl_bad(a->s);
    }
    return r;
}

kl_value kl_call_argmax(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value v = kl_promote(e, kl_concrete(e, kl_arg_value(e, a, 0)));
    uint32_t axis;
    if (v.kind != KL_V_TILE)
        return kl_bad(a->s);
    if (!v.rank) {
        kl_err(e, KL_K0302, a->s, "`%s` needs a tile, not a scalar", b->name);
        return kl_bad(a->s);
    }
    if (a->desig[KL_DG_AXIS])
        return kl_get_axis(e, a, &v, -1, &axis) ? fold_axis(e, (enum kl_op)b->op, 0, v, axis, a->s) : kl_bad(a->s);
    return to_scalar(e, fold_axis(e, (enum kl_op)b->op, 0, kl_flatten(e, v, a->s), 0, a->s), a->s);
}

/* ---- dot ---- */

static enum kl_elem dot_acc(enum kl_elem el)
{
    return (enum kl_elem)kl_elems[el].acc;
}

kl_value kl_call_dot(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value x = kl_concrete(e, kl_arg_value(e, a, 0)), y = kl_concrete(e, kl_arg_value(e, a, 1));
    kl_value c = a->n > 2 ? kl_arg_value(e, a, 2) : kl_int(0, a->s);
    const kl_node *prec = a->desig[KL_DG_PREC];
    if (prec && prec->kid[0]->kind == KL_N_NAME && strcmp(prec->kid[0]->name, "ieee") != 0) {
        kl_err(e, KL_K0801, prec->span, "`.precision` other than ieee is not yet supported");
        return kl_bad(a->s);
    }
    if (x.kind != KL_V_TILE || y.kind != KL_V_TILE || c.kind != KL_V_TILE || kl_in_fold(e, a->s, "`dot`"))
        return kl_bad(a->s);
    if (x.elem && y.elem && x.elem != y.elem) {
        struct kl_diag *g = kl_err(e, KL_K0404, a->s, "`dot` of %s with %s: both must have one type",
                                   kl_elems[x.elem].name, kl_elems[y.elem].name);
        kl_note(g, x.span, "this is %s", kl_type_text(e, &x));
        kl_note(g, y.span, "this is %s", kl_type_text(e, &y));
        return kl_bad(a->s);
    }
    enum kl_elem el = x.elem ? (enum kl_elem)x.elem : (enum kl_elem)y.elem;
    if (el == KL_bool) {
        kl_err(e, KL_K0404, a->s, "`dot` of bool is not defined");
        return kl_bad(a->s);
    }
    uint32_t r = x.rank;
    if (r != y.rank || r < 2 || r > 3 || kl_dim_eq(x.dim[r - 1], y.dim[r - 2]) == 0 ||
        (r == 3 && kl_dim_eq(x.dim[0], y.dim[0]) == 0)) {
        kl_err(e, KL_K0404, a->s, "`dot` of %s with %s: shapes must be [M][K] and [K][N], or both with a "
               "batch axis before", kl_dims_text(e, &x), kl_dims_text(e, &y));
        return kl_bad(a->s);
    }
    kl_dim dim[KL_MAX_RANK];
    memcpy(dim, x.dim, sizeof dim);
    dim[r - 1] = y.dim[r - 1];
    enum kl_elem ae = el ? dot_acc(el) : KL_elem_none;
    c = kl_move(e, c, ae, KL_ARG, "the accumulator");
    c = kl_fit(e, c, r, dim, "the accumulator");
    if (c.kind != KL_V_TILE)
        return kl_bad(a->s);
    kl_value out = kl_rt(e, ae, r, dim, (kl_val){0}, a->s);
    if (kl_emitting(e)) {
        kl_val args[3] = {kl_ir(e, &x), kl_ir(e, &y), kl_ir(e, &c)};
        e->b.loc = a->s;
        out.ir = kl_emit(&e->b, KL_OP_dot, kl_irtype(e, ae, r, dim), args, 3, (union kl_attr){0});
    }
    return out;
}
