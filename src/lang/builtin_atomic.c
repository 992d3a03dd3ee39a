/* builtin_atomic.c - atomics on an access.
 *
 * atomic_add(x[t], v) and its like: one operation of IR, whose value is what the elements were.
 * Their order and scope are words, as those of .cache are. */
#include "lang/builtin.h"

/* What exists on which elements, and which orders it may have. */
static bool exists(kl_elab *e, const struct kl_builtin *b, const struct kl_args *a, const kl_value *acc,
                   uint32_t order)
{
    bool load = b->op == KL_AT_LOAD, store = b->op == KL_AT_STORE;
    if ((load && order > KL_ACQUIRE) || (store && order != KL_RELAXED && order != KL_RELEASE)) {
        kl_err(e, KL_K0407, a->desig[KL_DG_ORDER]->span, "`%s` is relaxed or %s, not %s", b->name,
               load ? "acquire" : "release", kl_order_names[order]);
        return false;
    }
    enum kl_elem el = (enum kl_elem)acc->elem;
    bool wide = kl_elems[el].bytes >= 4, floats = load || store || b->op == KL_RMW_add;
    if (!el || (wide && (kl_is_int(el) || (floats && kl_is_float(el)))))
        return true;
    kl_note(kl_err(e, KL_K0407, acc->span, "`%s` does not exist on %s", b->name, kl_elems[el].name),
            acc->arr->decl, "declared here");
    return false;
}

/* An operand, of the elements' type and of the access's shape. */
static bool operand(kl_elab *e, struct kl_args *a, uint32_t i, const kl_value *acc, uint32_t rank,
                    const kl_dim *dim, const char *what, kl_value *out)
{
    kl_value v = kl_rvalue_for(e, a->pos[i], (enum kl_elem)acc->elem);
    v.span = a->pos[i]->span;
    if (v.kind == KL_V_TILE)
        v = kl_move(e, v, (enum kl_elem)acc->elem, KL_MOVE, what);
    *out = kl_fit(e, v, rank, dim, what);
    return out->kind == KL_V_TILE;
}

static bool may_write(kl_elab *e, const struct kl_builtin *b, const kl_value *acc)
{
    struct kl_arr *arr = acc->arr;
    bool load = b->op == KL_AT_LOAD, store = b->op == KL_AT_STORE;
    if (arr->param && e->mode == KL_CHECK && !e->trial)
        arr->param->flags |= (uint16_t)((store ? 0 : KL_NF_READ) | (load ? 0 : KL_NF_WRITTEN));
    if (load || !arr->isconst)
        return true;
    kl_note(kl_err(e, KL_K0316, acc->span, "`%s` is const and may not be written", arr->name), arr->decl,
            "declared const here");
    return false;
}

kl_value kl_call_atomic(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    bool load = b->op == KL_AT_LOAD, store = b->op == KL_AT_STORE, ok;
    kl_value acc = kl_arg_access(e, a), v[2] = {{0}}, mask = {0};
    uint32_t rank, order = KL_RELAXED, scope = KL_SC_DEVICE;
    kl_dim dim[KL_MAX_RANK];
    if (acc.kind == KL_V_ERR)
        return acc;
    kl_access_shape(acc.acc, &rank, dim);
    ok = may_write(e, b, &acc) && kl_array_usable(e, acc.arr, a->s);
    ok &= kl_get_word(e, a->desig[KL_DG_ORDER], kl_order_names, KL_NORDER, &order);
    ok &= kl_get_word(e, a->desig[KL_DG_SCOPE], kl_reach_names, KL_NSCOPE, &scope);
    ok = ok && exists(e, b, a, &acc, order);
    if (!e->fx) {
        kl_err(e, KL_K0403, a->s, "`%s` has no elements outside a program", acc.arr->name);
        return kl_bad(a->s);
    }
    for (uint32_t i = 1; i < a->n; i++)
        ok &= operand(e, a, i, &acc, rank, dim,
                      a->n == 2 ? "the operand" : i == 1 ? "the value expected" : "the value desired",
                      &v[i - 1]);
    if (a->desig[KL_DG_MASK]) {
        mask = kl_rvalue(e, a->desig[KL_DG_MASK]->kid[0]);
        if (mask.kind == KL_V_TILE)
            mask = kl_fit(e, kl_to_bool(e, mask), rank, dim, "the mask");
        ok &= mask.kind == KL_V_TILE;
    }
    if (!ok)
        return kl_bad(a->s);
    enum kl_elem el = (enum kl_elem)acc.elem;
    kl_value r = kl_rt(e, el, rank, dim, (kl_val){0}, a->s), none = {.kind = KL_V_VOID, .span = a->s};
    if (kl_emitting(e)) {
        kl_val args[KL_MAX_DIMS + 4];
        union kl_attr attr = {0};
        args[0] = acc.arr->ir;
        uint32_t n = 1 + kl_access_starts(e, acc.acc, args + 1, &attr);
        for (uint32_t i = 1; i < a->n; i++)
            args[n++] = kl_ir(e, &v[i - 1]);
        if (a->desig[KL_DG_MASK])
            args[n++] = kl_ir(e, &mask), attr.access.flags |= KL_ACC_MASK;
        attr.access.how = KL_HOW(load || store ? 0 : b->op, order, scope);
        e->b.loc = a->s;
        enum kl_op op = load ? KL_OP_atomic_load : store ? KL_OP_atomic_store : KL_OP_atomic;
        r.ir = kl_emit(&e->b, op, store ? (kl_typ){0} : kl_irtype(e, el, rank, dim), args, n, attr);
    }
    return store ? none : r;
}
