/* builtin_shape.c - built-in functions that make and reshape tiles. */
#include "lang/builtin.h"

static bool dims_from(kl_elab *e, struct kl_args *a, uint32_t first, uint32_t *rank, kl_dim *dim)
{
    bool ok = true;
    *rank = 0;
    for (uint32_t i = first; i < a->n; i++) {
        if (*rank == KL_MAX_RANK) {
            kl_err(e, KL_K0802, a->s, "tiles have at most rank %d", KL_MAX_RANK);
            return false;
        }
        ok &= kl_eval_dim(e, a->pos[i], "a tile size", &dim[(*rank)++]);
    }
    return ok;
}

kl_value kl_shaped(kl_elab *e, kl_value v, enum kl_op op, uint32_t rank, const kl_dim *dim,
                       union kl_attr attr, kl_span s)
{
    kl_value r = kl_rt(e, (enum kl_elem)v.elem, rank, dim, (kl_val){0}, s);
    if (kl_emitting(e)) {
        kl_val x = kl_ir(e, &v);
        e->b.loc = s;
        r.ir = kl_emit(&e->b, op, kl_irtype(e, (enum kl_elem)v.elem, rank, dim), &x, 1, attr);
    }
    return r;
}

kl_value kl_call_range(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_dim d;
    if (!kl_eval_dim(e, a->pos[0], "the size of `range`", &d))
        return kl_bad(a->s);
    kl_value r = kl_rt(e, KL_i32, 1, &d, (kl_val){0}, a->s);
    if (kl_emitting(e))
        r.ir = kl_emit(&e->b, KL_OP_iota, kl_irtype(e, KL_i32, 1, &d), NULL, 0, (union kl_attr){0});
    return r;
}

kl_value kl_call_full(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value v = kl_concrete(e, kl_arg_value(e, a, 0));
    uint32_t rank;
    kl_dim dim[KL_MAX_RANK];
    if (!dims_from(e, a, 1, &rank, dim) || v.kind != KL_V_TILE)
        return kl_bad(a->s);
    if (v.rank) {
        kl_err(e, KL_K0308, v.span, "the value of `full` must be a scalar, not a tile of shape %s",
               kl_dims_text(e, &v));
        return kl_bad(a->s);
    }
    return kl_stretch(e, v, rank, dim);
}

kl_value kl_call_broadcast(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value v = kl_concrete(e, kl_arg_value(e, a, 0));
    uint32_t rank;
    kl_dim dim[KL_MAX_RANK];
    if (!dims_from(e, a, 1, &rank, dim) || v.kind != KL_V_TILE)
        return kl_bad(a->s);
    bool bad = v.rank > rank;
    for (uint32_t i = 0; !bad && i < v.rank; i++)
        bad = v.dim[v.rank - 1 - i].n != 1 && !kl_dim_eq(v.dim[v.rank - 1 - i], dim[rank - 1 - i]);
    if (bad) {
        kl_value t = {.kind = KL_V_TILE, .rank = (uint8_t)rank};
        memcpy(t.dim, dim, rank * sizeof *dim);
        kl_err(e, KL_K0302, a->s, "shape %s does not broadcast to %s", kl_dims_text(e, &v),
               kl_dims_text(e, &t));
        return kl_bad(a->s);
    }
    return kl_stretch(e, v, rank, dim);
}

kl_value kl_call_reshape(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value v = kl_concrete(e, kl_arg_value(e, a, 0));
    uint32_t rank;
    kl_dim dim[KL_MAX_RANK];
    if (!dims_from(e, a, 1, &rank, dim) || v.kind != KL_V_TILE)
        return kl_bad(a->s);
    kl_value t = kl_rt(e, (enum kl_elem)v.elem, rank, dim, (kl_val){0}, a->s);
    if (kl_dims_known(&v) && kl_dims_known(&t)) {
        uint64_t n = 1, m = 1;
        for (uint32_t i = 0; i < v.rank; i++)
            n *= v.dim[i].n;
        for (uint32_t i = 0; i < rank; i++)
            m *= dim[i].n;
        if (n != m) {
            kl_err(e, KL_K0302, a->s, "%s has %llu elements and %s has %llu", kl_dims_text(e, &v),
                   (unsigned long long)n, kl_dims_text(e, &t), (unsigned long long)m);
            return kl_bad(a->s);
        }
    }
    return kl_shaped(e, v, KL_OP_reshape, rank, dim, (union kl_attr){0}, a->s);
}

static kl_value permuted(kl_elab *e, kl_value v, const int64_t *p, kl_span s)
{
    kl_dim dim[KL_MAX_RANK];
    for (uint32_t i = 0; i < v.rank; i++)
        dim[i] = v.dim[p[i]];
    union kl_attr attr = {0};
    if (kl_emitting(e)) {
        attr.aux.at = kl_aux_add(e->f, p, v.rank);
        attr.aux.n = v.rank;
    }
    return kl_shaped(e, v, KL_OP_permute, v.rank, dim, attr, s);
}

kl_value kl_call_trans(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value v = kl_concrete(e, kl_arg_value(e, a, 0));
    if (v.kind != KL_V_TILE)
        return kl_bad(a->s);
    if (v.rank == 1) {
        kl_dim dim[2] = {v.dim[0], kl_dim_of(1)};
        return kl_shaped(e, v, KL_OP_reshape, 2, dim, (union kl_attr){0}, a->s);
    }
    if (v.rank != 2) {
        kl_err(e, KL_K0302, a->s, "`trans` takes rank 1 or 2, not %s; use `permute`", kl_dims_text(e, &v));
        return kl_bad(a->s);
    }
    return permuted(e, v, (int64_t[2]){1, 0}, a->s);
}

kl_value kl_call_permute(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value v = kl_concrete(e, kl_arg_value(e, a, 0));
    int64_t p[KL_MAX_RANK] = {0};
    uint32_t seen = 0;
    if (v.kind != KL_V_TILE)
        return kl_bad(a->s);
    if (a->n - 1 != v.rank) {
        kl_err(e, KL_K0401, a->s, "`permute` of a tile of shape %s needs %u axes, not %u",
               kl_dims_text(e, &v), v.rank, a->n - 1);
        return kl_bad(a->s);
    }
    for (uint32_t i = 0; i < v.rank; i++) {
        kl_value x = kl_arg_value(e, a, i + 1);
        bool known;
        if (!kl_need_const(e, &x, "an axis", &p[i], &known))
            return kl_bad(a->s);
        if (!known || p[i] < 0 || p[i] >= v.rank || seen >> p[i] & 1) {
            kl_err(e, KL_K0402, x.span, "the axes of `permute` are 0 to %d, each once", v.rank - 1);
            return kl_bad(a->s);
        }
        seen |= 1u << p[i];
    }
    return permuted(e, v, p, a->s);
}

/* The axis given by .axis; def: when left out (-1: it must be given). */
bool kl_get_axis(kl_elab *e, struct kl_args *a, const kl_value *v, int def, uint32_t *axis)
{
    const kl_node *n = a->desig[KL_DG_AXIS];
    if (!n) {
        if (def < 0) {
            kl_err(e, KL_K0402, a->s, "`%s` of a tile of rank %u needs `.axis = ...`", a->call->name, v->rank);
            return false;
        }
        *axis = (uint32_t)def;
        return true;
    }
    kl_value x = kl_rvalue(e, n->kid[0]);
    int64_t k;
    bool known;
    x.span = n->span;
    if (!kl_need_const(e, &x, "the axis", &k, &known))
        return false;
    if (!known)
        k = 0;
    if (k < 0 || k >= v->rank) {
        kl_err(e, KL_K0402, n->span, "axis %lld of a tile of rank %u", (long long)k, v->rank);
        return false;
    }
    *axis = (uint32_t)k;
    return true;
}

kl_value kl_call_cat(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value x = kl_arg_value(e, a, 0), y = kl_arg_value(e, a, 1);
    if (x.kind == KL_V_TILE && y.kind == KL_V_TILE) {
        if (x.untyped && !y.untyped)
            x = kl_give_type(e, x, (enum kl_elem)y.elem);
        if (y.untyped && !x.untyped)
            y = kl_give_type(e, y, (enum kl_elem)x.elem);
        x = kl_concrete(e, x), y = kl_concrete(e, y);
        if (x.elem != y.elem && !kl_unify(e, &x, &y, a->s, "cat"))
            return kl_bad(a->s);
    }
    if (x.kind != KL_V_TILE || y.kind != KL_V_TILE)
        return kl_bad(a->s);
    uint32_t axis;
    if (x.rank != y.rank || !x.rank) {
        kl_err(e, KL_K0302, a->s, "`cat` joins tiles of one rank, not %s and %s", kl_dims_text(e, &x),
               kl_dims_text(e, &y));
        return kl_bad(a->s);
    }
    if (!kl_get_axis(e, a, &x, x.rank == 1 ? 0 : -1, &axis))
        return kl_bad(a->s);
    kl_dim dim[KL_MAX_RANK];
    for (uint32_t i = 0; i < x.rank; i++) {
        dim[i] = x.dim[i];
        if (i == axis)
            dim[i] = x.dim[i].n && y.dim[i].n ? kl_dim_of(x.dim[i].n + y.dim[i].n) : (kl_dim){0, 0};
        else if (kl_dim_eq(x.dim[i], y.dim[i]) == 0) {
            kl_err(e, KL_K0302, a->s, "shapes %s and %s do not join along axis %u", kl_dims_text(e, &x),
                   kl_dims_text(e, &y), axis);
            return kl_bad(a->s);
        }
    }
    kl_value r = kl_rt(e, (enum kl_elem)x.elem, x.rank, dim, (kl_val){0}, a->s);
    if (kl_emitting(e)) {
        kl_val first = kl_ir(e, &x), second = kl_ir(e, &y), args[2] = {first, second};
        e->b.loc = a->s;
        r.ir = kl_emit(&e->b, KL_OP_cat, kl_irtype(e, (enum kl_elem)x.elem, x.rank, dim), args, 2,
                       (union kl_attr){.index = axis});
    }
    return r;
}

kl_value kl_call_flip(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value v = kl_concrete(e, kl_arg_value(e, a, 0));
    uint32_t axis;
    if (v.kind != KL_V_TILE)
        return kl_bad(a->s);
    if (!v.rank) {
        kl_err(e, KL_K0302, a->s, "`flip` needs a tile, not a scalar");
        return kl_bad(a->s);
    }
    if (!kl_get_axis(e, a, &v, v.rank == 1 ? 0 : -1, &axis))
        return kl_bad(a->s);
    return kl_shaped(e, v, KL_OP_flip, v.rank, v.dim, (union kl_attr){.index = axis}, a->s);
}

kl_value kl_flatten(kl_elab *e, kl_value v, kl_span s)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < v.rank; i++)
        n *= v.dim[i].n;
    kl_dim d = n && n <= INT32_MAX ? kl_dim_of((uint32_t)n) : (kl_dim){0, 0};
    return v.rank == 1 ? v : kl_shaped(e, v, KL_OP_reshape, 1, &d, (union kl_attr){0}, s);
}

/* Elements of a tile by their numbers along one axis. */
kl_value kl_call_gather(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value x = kl_concrete(e, kl_arg_value(e, a, 0)), i = kl_arg_value(e, a, 1);
    uint32_t axis;
    if (x.kind != KL_V_TILE || i.kind != KL_V_TILE)
        return kl_bad(a->s);
    if (!x.rank || !i.rank || x.rank != i.rank) {
        kl_err(e, KL_K0302, a->s, "`gather` takes two tiles of one rank, not %s and %s", kl_dims_text(e, &x),
               kl_dims_text(e, &i));
        return kl_bad(a->s);
    }
    if (i.dec || (!i.untyped && i.elem && !kl_is_int((enum kl_elem)i.elem))) {
        kl_err(e, KL_K0309, a->pos[1]->span, "the index of `gather` must be an integer tile, not %s",
               i.dec ? "a decimal" : kl_elems[i.elem].name);
        return kl_bad(a->s);
    }
    if (!kl_get_axis(e, a, &x, x.rank == 1 ? 0 : -1, &axis))
        return kl_bad(a->s);
    for (uint32_t d = 0; d < x.rank; d++)
        if (d != axis && kl_dim_eq(x.dim[d], i.dim[d]) == 0) {
            kl_err(e, KL_K0302, a->s, "`gather` along axis %u from %s by an index %s: the other axes differ",
                   axis, kl_dims_text(e, &x), kl_dims_text(e, &i));
            return kl_bad(a->s);
        }
    i = i.untyped ? kl_give_type(e, i, KL_i64) : kl_cast(e, i, KL_i64);
    kl_value r = kl_rt(e, (enum kl_elem)x.elem, i.rank, i.dim, (kl_val){0}, a->s);
    if (kl_emitting(e)) {
        kl_val from = kl_ir(e, &x), at = kl_ir(e, &i), args[2] = {from, at};
        e->b.loc = a->s;
        r.ir = kl_emit(&e->b, KL_OP_gather, kl_irtype(e, (enum kl_elem)x.elem, i.rank, i.dim), args, 2,
                       (union kl_attr){.index = axis});
    }
    return r;
}
