/* builtin_reduce.c - reductions and dot. */
#include "lang/builtin.h"

#include <math.h>

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

enum { IEEE, TF32, TF32X3 };

/* How f32 operands are multiplied.  Those of 8 and 16 bits are tf32 numbers as they are. */
static bool get_precision(kl_elab *e, const kl_node *d, enum kl_elem el, uint32_t *out)
{
    static const char *const words[] = {"ieee", "tf32", "tf32x3"};
    *out = IEEE;
    if (!kl_get_word(e, d, words, 3, out))
        return false;
    if (*out == IEEE || !el || el == KL_f32)
        return true;
    if (!kl_is_float(el) || el == KL_f64) {
        kl_err(e, KL_K0404, d->span, "`.precision = %s` of %s: it is for f32, and changes nothing for smaller floats",
               words[*out], kl_elems[el].name);
        return false;
    }
    *out = IEEE;
    return true;
}

static kl_val plain_dot(kl_elab *e, kl_val x, kl_val y, kl_val acc)
{
    kl_val args[3] = {x, y, acc};
    return kl_emit(&e->b, KL_OP_dot, kl_in(e->f, acc)->type, args, 3, (union kl_attr){0});
}

/* x = high + low + an error of 2^-22 abs(x); near is high, or 0 where that is not finite: a low
 * part is multiplied by it, so that inf and NaN come in once, through the product of high parts. */
struct parts { kl_val high, low, near; };

static struct parts split(kl_elab *e, kl_val x)
{
    kl_build *b = &e->b;
    kl_typ t = kl_in(e->f, x)->type;
    kl_val zero = kl_cst(b, t, 0), high = kl_ew1(b, KL_OP_tf32, x);
    kl_val inf = kl_cst(b, t, kl_f32_bits(INFINITY));
    kl_val finite = kl_ew2(b, KL_OP_lt, kl_ew1(b, KL_OP_abs, high), inf);
    kl_val rest = kl_ew1(b, KL_OP_tf32, kl_ew2(b, KL_OP_sub, x, high));
    kl_val low = kl_ew3(b, KL_OP_select, finite, rest, zero);
    kl_val near = kl_ew3(b, KL_OP_select, finite, high, zero);
    return (struct parts){high, low, near};
}

/* Products of tf32 numbers in the order of dot; of three, the small ones first. */
static kl_val dot_by(kl_elab *e, uint32_t precision, kl_val x, kl_val y, kl_val acc)
{
    if (precision == IEEE)
        return plain_dot(e, x, y, acc);
    if (precision == TF32) {
        y = kl_ew1(&e->b, KL_OP_tf32, y);
        x = kl_ew1(&e->b, KL_OP_tf32, x);
        return plain_dot(e, x, y, acc);
    }
    struct parts a = split(e, x), b = split(e, y);
    acc = plain_dot(e, a.low, b.near, acc);
    acc = plain_dot(e, a.near, b.low, acc);
    return plain_dot(e, a.high, b.high, acc);
}

kl_value kl_call_dot(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value x = kl_concrete(e, kl_arg_value(e, a, 0)), y = kl_concrete(e, kl_arg_value(e, a, 1));
    kl_value c = a->n > 2 ? kl_arg_value(e, a, 2) : kl_int(0, a->s);
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
    uint32_t precision;
    if (!get_precision(e, a->desig[KL_DG_PREC], el, &precision))
        return kl_bad(a->s);
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
        kl_val left = kl_ir(e, &x), right = kl_ir(e, &y), acc = kl_ir(e, &c);
        e->b.loc = a->s;
        out.ir = dot_by(e, precision, left, right, acc);
    }
    return out;
}
