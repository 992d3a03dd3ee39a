/* builtin_array.c - built-in functions on arrays and programs. */
#include "lang/builtin.h"

kl_value kl_arg_access(kl_elab *e, struct kl_args *a)
{
    kl_value v = kl_expr(e, a->pos[0]);
    if (v.kind == KL_V_ACCESS || v.kind == KL_V_ERR)
        return v;
    kl_err(e, KL_K0403, a->pos[0]->span, "`%s` takes an access of an array, as in `%s(x[first:count]%s)`",
           a->call->name, a->call->name, strcmp(a->call->name, "load") == 0 ? ", fill" : "");
    return kl_bad(a->s);
}

static bool get_mask(kl_elab *e, struct kl_args *a, kl_value *m, bool *has)
{
    const kl_node *c = a->desig[KL_DG_CACHE];
    if (c && (c->kid[0]->kind != KL_N_NAME || (strcmp(c->kid[0]->name, "evict_first") != 0 &&
                                               strcmp(c->kid[0]->name, "evict_last") != 0))) {
        kl_err(e, KL_K0402, c->span, "`.cache` is evict_first or evict_last");
        return false;
    }
    *has = a->desig[KL_DG_MASK] != NULL;
    if (!*has)
        return true;
    *m = kl_rvalue(e, a->desig[KL_DG_MASK]->kid[0]);
    return m->kind == KL_V_TILE;
}

/* What `.cache` says, put on the access that was just built. */
static void hint(kl_elab *e, const struct kl_args *a, kl_val v)
{
    const kl_node *c = a->desig[KL_DG_CACHE];
    if (!c || !kl_emitting(e) || !v.id)
        return;
    struct kl_ins *in = kl_in(e->f, v);
    if (in->op == KL_OP_load || in->op == KL_OP_store)
        in->attr.access.flags |= strcmp(c->kid[0]->name, "evict_first") ? KL_ACC_EVICT_LAST : KL_ACC_EVICT_FIRST;
}

kl_value kl_call_load(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value acc = kl_arg_access(e, a), fill = {0}, mask = {0};
    bool has;
    if (a->n > 1)
        fill = kl_rvalue_for(e, a->pos[1], (enum kl_elem)acc.elem);
    if (fill.kind == KL_V_STRUCT)
        kl_need_tile(e, &fill);
    if (!get_mask(e, a, &mask, &has) || acc.kind == KL_V_ERR || (a->n > 1 && fill.kind != KL_V_TILE))
        return kl_bad(a->s);
    kl_value r = kl_load(e, acc, a->n > 1 ? &fill : NULL, has ? &mask : NULL, a->s);
    if (r.kind == KL_V_TILE)
        hint(e, a, r.ir);
    return r;
}

kl_value kl_call_store(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value acc = kl_arg_access(e, a), v = kl_rvalue_for(e, a->pos[1], (enum kl_elem)acc.elem), mask = {0};
    bool has;
    kl_value none = {.kind = KL_V_VOID, .span = a->s};
    if (!get_mask(e, a, &mask, &has) || !kl_need_tile(e, &v) || acc.kind == KL_V_ERR) {
        kl_mark_used(e, a->call); /* the value may only be known to the second phase */
        return kl_bad(a->s);
    }
    kl_store(e, acc, v, has ? &mask : NULL, a->s);
    if (kl_emitting(e))
        hint(e, a, kl_last(e->f, e->b.blk));
    return none;
}

kl_value kl_call_inside(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value acc = kl_arg_access(e, a);
    return acc.kind == KL_V_ERR ? kl_bad(a->s) : kl_inside(e, acc, a->s);
}

kl_value kl_call_coord(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value acc = kl_arg_access(e, a), d = kl_arg_value(e, a, 1);
    int64_t k;
    bool known;
    if (acc.kind == KL_V_ERR || !kl_need_const(e, &d, "the dimension", &k, &known))
        return kl_bad(a->s);
    if (!known || k < 0 || k >= acc.acc->n) {
        kl_err(e, KL_K0402, d.span, "dimension %lld of an array of rank %u", (long long)k, acc.acc->n);
        return kl_bad(a->s);
    }
    return kl_coord(e, acc, (uint32_t)k, a->s);
}

kl_value kl_call_given(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value v = a->pos[0]->kind == KL_N_NAME ? kl_expr(e, a->pos[0]) : kl_bad(a->s);
    if (v.kind != KL_V_ARRAY) {
        if (v.kind != KL_V_ERR || a->pos[0]->kind != KL_N_NAME)
            kl_err(e, KL_K0403, a->pos[0]->span, "`given` takes the name of an array");
        return kl_bad(a->s);
    }
    kl_value r = kl_typed(KL_bool, v.arr->given, a->s);
    if (e->mode == KL_CHECK && !e->trial && v.arr->param && v.arr->param->flags & KL_NF_OPTIONAL) {
        r.known = false;
        r.sym = kl_symbol(e, "given(%s)", v.arr->name);
    }
    return r;
}

kl_value kl_call_size(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value v = kl_expr(e, a->pos[0]), d = kl_arg_value(e, a, 1);
    int64_t k;
    bool known;
    if (v.kind == KL_V_ACCESS || v.kind == KL_V_STRUCT)
        v = kl_load_if_access(e, v);
    uint32_t rank = v.kind == KL_V_ARRAY ? v.arr->rank : v.rank;
    if (v.kind == KL_V_ERR || !kl_need_const(e, &d, "the dimension", &k, &known))
        return kl_bad(a->s);
    if (!known || k < 0 || k >= rank) {
        kl_err(e, KL_K0402, d.span, "dimension %lld of rank %u", (long long)k, rank);
        return kl_bad(a->s);
    }
    if (v.kind == KL_V_ARRAY && v.arr->unbounded) {
        kl_note(kl_err(e, KL_K0402, a->s, "the extent of `%s` is not known", v.arr->name), v.arr->decl,
                "declared here without one");
        return kl_bad(a->s);
    }
    if (v.kind == KL_V_ARRAY)
        return v.arr->ext[k];
    kl_value r = kl_int(v.dim[k].n, a->s);
    if (!v.dim[k].n)
        r.known = false, r.sym = v.dim[k].sym;
    return r;
}

kl_value kl_call_rank(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value v = kl_expr(e, a->pos[0]);
    if (v.kind == KL_V_ARRAY)
        return kl_int(v.arr->rank, a->s);
    v = kl_load_if_access(e, v);
    return v.kind == KL_V_TILE ? kl_int(v.rank, a->s) : kl_bad(a->s);
}

kl_value kl_call_program(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    int64_t k = 0;
    bool known = true;
    if (a->n) {
        kl_value d = kl_arg_value(e, a, 0);
        if (!kl_need_const(e, &d, "the grid axis", &k, &known))
            return kl_bad(a->s);
        if (!known || k < 0 || k > 2) {
            kl_err(e, KL_K0402, d.span, "the grid axis is 0, 1 or 2, not %lld", (long long)k);
            return kl_bad(a->s);
        }
    }
    if (e->mode == KL_BIND) {
        if (b->op == KL_OP_num_sms)
            return kl_typed(KL_i64, (uint64_t)e->num_sms, a->s);
        kl_err(e, KL_K0403, a->s, "`%s` has no value outside a program", b->name);
        return kl_bad(a->s);
    }
    if (!e->fx && b->op != KL_OP_num_sms) {
        kl_err(e, KL_K0403, a->s, "`%s` has no value outside a program", b->name);
        return kl_bad(a->s);
    }
    kl_value r = kl_rt(e, KL_i64, 0, NULL, (kl_val){0}, a->s);
    if (kl_emitting(e)) {
        e->b.loc = a->s;
        r.ir = kl_emit(&e->b, (enum kl_op)b->op, kl_scalar(e->f, KL_i64), NULL, 0,
                       (union kl_attr){.index = k});
    }
    return r;
}

kl_value kl_call_bitcast(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    bool ok;
    enum kl_elem el = kl_eval_type(e, a->pos[0], &ok);
    kl_value v = kl_concrete(e, kl_arg_value(e, a, 1));
    if (!ok || v.kind != KL_V_TILE)
        return kl_bad(a->s);
    if (el && v.elem && (kl_elems[el].bytes != kl_elems[v.elem].bytes || el == KL_bool || v.elem == KL_bool)) {
        kl_err(e, KL_K0403, a->s, "`bitcast` of %s to %s: the sizes differ or one is bool",
               kl_elems[v.elem].name, kl_elems[el].name);
        return kl_bad(a->s);
    }
    if (v.konst && v.known && el) /* canonical bits of one type are those of the other after canon */
        return kl_typed(el, v.bits, a->s);
    kl_value r = v;
    r.elem = (uint8_t)el;
    r.span = a->s;
    if (kl_emitting(e)) {
        kl_val x = kl_ir(e, &v);
        r.ir = kl_emit(&e->b, KL_OP_bitcast, kl_irtype(e, el, v.rank, v.dim), &x, 1, (union kl_attr){0});
    }
    return r;
}

/* cvt_sat(T, x), cvt_nan(T, x): to an 8-bit float, by way of f32. */
kl_value kl_call_cvt(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    bool ok;
    enum kl_elem el = kl_eval_type(e, a->pos[0], &ok);
    kl_value v = kl_concrete(e, kl_arg_value(e, a, 1));
    if (!ok || v.kind != KL_V_TILE)
        return kl_bad(a->s);
    if (el && el != KL_f8e4m3 && el != KL_f8e5m2) {
        kl_note(kl_err(e, KL_K0403, a->pos[0]->span, "`%s` gives an 8-bit float, not %s", b->name,
                       kl_elems[el].name),
                (kl_span){0, 0}, "for other types write a cast: (%s)", kl_elems[el].name);
        return kl_bad(a->s);
    }
    if (b->op == KL_OP_convert_nan)
        v = kl_cast(e, v, KL_f32); /* the same type, too: nothing that is finite is too large */
    if (b->op == KL_OP_convert || !el || !v.elem) {
        v = kl_cast(e, v, el);
        v.span = a->s;
        return v;
    }
    if (v.konst && v.known)
        return kl_typed(el, kl_convert_nan(el, v.bits), a->s);
    kl_value r = v;
    r.elem = (uint8_t)el;
    r.span = a->s;
    if (kl_emitting(e)) {
        kl_val x = kl_ir(e, &v);
        e->b.loc = a->s;
        r.ir = kl_emit(&e->b, KL_OP_convert_nan, kl_irtype(e, el, v.rank, v.dim), &x, 1,
                       (union kl_attr){0});
    }
    return r;
}
