/* builtin_fold.c - reduce(x, f), scan(x, f), cumsum, cumprod: folds by a function of the source.
 *
 * The block of the operation is the function expanded on two scalars, or on two structs of
 * scalars when x is a struct of tiles. */
#include "lang/builtin.h"

bool kl_in_fold(kl_elab *e, kl_span s, const char *what)
{
    if (!e->folding)
        return false;
    struct kl_diag *g = kl_err(e, KL_K0420, s, "%s in a function that combines two elements", what);
    kl_note(g, e->folding->decl, "`%s` is used by a reduction or scan: it neither loads, stores, prints nor reduces",
            e->folding->name);
    return true;
}

/* What is folded: one tile, or the members of a struct. */
struct folded {
    kl_value whole; /* STRUCT: names of the members */
    kl_value v[KL_MAX_FOLD];
    uint32_t n;
};

static kl_value whole(kl_elab *e, const struct folded *x, kl_span s)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (x->v[i].kind != KL_V_TILE)
            return kl_bad(s);
    return x->whole.kind == KL_V_STRUCT ? kl_struct_with(e, x->whole.st, x->v, s) : x->v[0];
}

/* The first argument, its members brought to one shape. */
static bool take(kl_elab *e, const kl_node *n, struct folded *x)
{
    x->whole = kl_any(e, n);
    x->n = 1;
    if (x->whole.kind == KL_V_TILE) {
        x->v[0] = kl_promote(e, kl_concrete(e, x->whole));
        return x->v[0].kind == KL_V_TILE;
    }
    if (x->whole.kind != KL_V_STRUCT)
        return false;
    uint32_t rank = 0;
    kl_dim dim[KL_MAX_RANK];
    x->n = x->whole.st->n;
    for (uint32_t i = 0; i < x->n; i++) {
        x->v[i] = kl_concrete(e, x->whole.st->m[i].v);
        if (!kl_broadcast_shape(e, &rank, dim, &x->v[i], n->span))
            return false;
    }
    for (uint32_t i = 0; i < x->n; i++) {
        x->v[i] = kl_stretch(e, x->v[i], rank, dim);
        if (x->v[i].kind != KL_V_TILE)
            return false;
    }
    return true;
}

/* ---- the block ---- */

/* A scalar for each tile: what one side of the function gets, as parameters of the block. */
static kl_value side(kl_elab *e, const struct folded *x, bool params, kl_span s)
{
    struct folded p = *x;
    for (uint32_t i = 0; i < x->n; i++) {
        p.v[i] = kl_rt(e, (enum kl_elem)x->v[i].elem, 0, NULL, (kl_val){0}, s);
        if (params && kl_emitting(e))
            p.v[i].ir = kl_block_param(&e->b, kl_scalar(e->f, (enum kl_elem)x->v[i].elem));
    }
    return whole(e, &p, s);
}

static bool has_tiles(kl_elab *e, kl_blk b)
{
    kl_each_ins (e->f, b, v) {
        const struct kl_ins *in = kl_in(e->f, v);
        kl_blk own[2];
        if (in->type.id && kl_type_of(e->f, v)->rank)
            return true;
        for (uint32_t i = kl_blocks(e->f, v, own); i-- > 0;)
            if (has_tiles(e, own[i]))
                return true;
    }
    return false;
}

/* What the function gives, as values of the types that were folded. */
static bool outcome(kl_elab *e, const struct folded *x, const kl_sym *fn, kl_value r, kl_value *out, kl_span s)
{
    if (x->whole.kind == KL_V_STRUCT) {
        kl_value like = side(e, x, false, s);
        r.span = s;
        r = like.kind == KL_V_STRUCT ? kl_struct_fit(e, r, &like, "the value of the function") : like;
        for (uint32_t i = 0; r.kind == KL_V_STRUCT && i < x->n; i++)
            out[i] = r.st->m[i].v;
        return r.kind == KL_V_STRUCT;
    }
    r = kl_load_if_access(e, r);
    if (r.kind == KL_V_TILE && r.rank) {
        kl_err(e, KL_K0302, s, "`%s` must return a scalar to fold with, not %s", fn->name, kl_dims_text(e, &r));
        return false;
    }
    out[0] = kl_move(e, r, (enum kl_elem)x->v[0].elem, KL_MOVE, "the value of the function");
    return out[0].kind == KL_V_TILE;
}

/* The block of the operation; false: reported. */
static bool block_of(kl_elab *e, const struct folded *x, kl_sym *fn, enum kl_op op, kl_blk *blk, kl_span s)
{
    kl_blk saved = {0};
    bool emit = kl_emitting(e);
    if (emit)
        *blk = kl_enter_block(e, &saved);
    kl_value p[2], out[KL_MAX_FOLD];
    bool ok;
    p[0] = side(e, x, true, s), p[1] = side(e, x, true, s);
    if (fn) {
        const kl_sym *outer = e->folding;
        e->folding = fn;
        fn->used = true;
        kl_value r = kl_expand_values(e, fn, p, 2, s);
        e->folding = outer;
        ok = r.kind != KL_V_ERR && outcome(e, x, fn, r, out, s);
    } else {
        out[0] = kl_op2(e, op, p[0], p[1], s);
        ok = out[0].kind == KL_V_TILE;
    }
    if (!emit)
        return ok;
    kl_val y[KL_MAX_FOLD];
    for (uint32_t i = 0; ok && i < x->n; i++)
        y[i] = kl_ir(e, &out[i]);
    bool tiles = has_tiles(e, *blk), memory = kl_block_uses_memory(e, *blk);
    if (ok)
        kl_emit(&e->b, KL_OP_yield, (kl_typ){0}, y, x->n, (union kl_attr){0});
    kl_leave_block(e, saved);
    if (ok && (tiles || memory)) {
        struct kl_diag *g = kl_err(e, KL_K0420, s, "`%s` %s, so one cannot fold with it", fn ? fn->name : "?",
                                   memory ? "reads or writes arrays" : "computes with tiles");
        kl_note(g, fn ? fn->decl : s, "it combines two elements: scalars, or structs of them");
        return false;
    }
    return ok;
}

/* One reduction or scan along an axis; x becomes its result. */
static bool fold(kl_elab *e, struct folded *x, kl_sym *fn, enum kl_op op, uint32_t axis, bool comm, bool scan,
                 kl_span s)
{
    kl_blk blk = {0};
    kl_val arg[KL_MAX_FOLD], ir = {0};
    uint32_t rank = x->v[0].rank;
    kl_dim dim[KL_MAX_RANK];
    if (kl_emitting(e) && x->v[0].dim[axis].n == 1) /* nothing to combine, and no block without an owner */
        return true;
    if (!block_of(e, x, fn, op, &blk, s))
        return false;
    memcpy(dim, x->v[0].dim, sizeof dim);
    if (!scan)
        dim[axis] = kl_dim_of(1);
    enum kl_op what = scan ? KL_OP_scan : KL_OP_reduce_fn;
    if (kl_emitting(e)) {
        for (uint32_t i = 0; i < x->n; i++)
            arg[i] = kl_ir(e, &x->v[i]);
        e->b.loc = s;
        kl_typ t = {0};
        if (x->n == 1)
            t = kl_irtype(e, (enum kl_elem)x->v[0].elem, rank, dim);
        ir = kl_emit(&e->b, what, t, arg, x->n,
                     (union kl_attr){.redfn = {.blk = blk, .axis = (uint8_t)axis, .commutative = comm && !scan}});
    }
    for (uint32_t i = 0; i < x->n; i++) {
        enum kl_elem el = (enum kl_elem)x->v[i].elem;
        kl_val r = ir;
        if (kl_emitting(e) && x->n > 1)
            r = kl_result(&e->b, ir, i, kl_irtype(e, el, rank, dim));
        x->v[i] = kl_rt(e, el, rank, dim, r, s);
    }
    return true;
}

/* ---- calls ---- */

static bool flag(kl_elab *e, const kl_node *n, bool *out)
{
    *out = false;
    if (!n)
        return true;
    kl_value v = kl_to_bool(e, kl_rvalue(e, n->kid[0]));
    if (v.kind != KL_V_TILE)
        return false;
    if (!v.konst) {
        kl_err(e, KL_K0306, n->span, "`.%s` must be a constant", n->name);
        return false;
    }
    *out = v.known && v.bits;
    return true;
}

/* The function, by its name. */
static kl_sym *function(kl_elab *e, struct kl_args *a)
{
    const kl_node *n = a->pos[1];
    kl_sym *fn = n->kind == KL_N_NAME ? kl_sym_find(e, n->name) : NULL;
    if (fn && fn->kind == KL_S_FUNC)
        return fn;
    struct kl_diag *g = kl_err(e, KL_K0403, n->span, "`%s` takes the name of a function of two values", a->call->name);
    if (n->kind == KL_N_NAME && !fn && kl_is_builtin(n->name))
        kl_note(g, (kl_span){0, 0}, "a built-in function is wrapped in one, or has a reduction of its own");
    return NULL;
}

static kl_value to_scalars(kl_elab *e, struct folded *x, kl_span s)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (x->v[i].rank)
            x->v[i] = kl_shaped(e, x->v[i], KL_OP_reshape, 0, NULL, (union kl_attr){0}, s);
    return whole(e, x, s);
}

kl_value kl_call_reduce_fn(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    struct folded x;
    bool comm, ok = !kl_in_fold(e, a->s, "a reduction");
    ok &= take(e, a->pos[0], &x);
    kl_sym *fn = function(e, a);
    if (!flag(e, a->desig[KL_DG_COMM], &comm) || !fn || !ok)
        return kl_bad(a->s);
    uint32_t axis = 0, rank = x.v[0].rank;
    if (a->desig[KL_DG_AXIS]) {
        if (!kl_get_axis(e, a, &x.v[0], -1, &axis) || !fold(e, &x, fn, KL_OP_none, axis, comm, false, a->s))
            return kl_bad(a->s);
        return whole(e, &x, a->s);
    }
    if (!comm && rank) {
        for (uint32_t i = 0; i < x.n; i++)
            x.v[i] = kl_flatten(e, x.v[i], a->s);
        ok = fold(e, &x, fn, KL_OP_none, 0, false, false, a->s);
    }
    for (uint32_t i = 0; comm && ok && i < rank; i++)
        ok = fold(e, &x, fn, KL_OP_none, i, true, false, a->s);
    return ok ? to_scalars(e, &x, a->s) : kl_bad(a->s);
}

static void turn(kl_elab *e, struct folded *x, uint32_t axis, kl_span s)
{
    for (uint32_t i = 0; i < x->n; i++)
        x->v[i] = kl_shaped(e, x->v[i], KL_OP_flip, x->v[i].rank, x->v[i].dim, (union kl_attr){.index = axis}, s);
}

/* cumsum, cumprod (b->op) and scan. */
kl_value kl_call_scan(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    struct folded x;
    bool reverse, ok = !kl_in_fold(e, a->s, "a scan");
    ok &= take(e, a->pos[0], &x);
    kl_sym *fn = b->op ? NULL : function(e, a);
    if (!flag(e, a->desig[KL_DG_REVERSE], &reverse) || (!fn && !b->op) || !ok)
        return kl_bad(a->s);
    if (b->op && x.whole.kind == KL_V_STRUCT) {
        kl_need_tile(e, &x.whole);
        return kl_bad(a->s);
    }
    uint32_t axis, rank = x.v[0].rank;
    if (!rank) {
        kl_err(e, KL_K0302, a->s, "`%s` needs a tile, not a scalar", a->call->name);
        return kl_bad(a->s);
    }
    if (!kl_get_axis(e, a, &x.v[0], rank == 1 ? 0 : -1, &axis))
        return kl_bad(a->s);
    if (reverse)
        turn(e, &x, axis, a->s);
    if (!fold(e, &x, fn, (enum kl_op)b->op, axis, false, true, a->s))
        return kl_bad(a->s);
    if (reverse)
        turn(e, &x, axis, a->s);
    return whole(e, &x, a->s);
}
