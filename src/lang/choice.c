/* choice.c - `&&`, `||` and `?:`.  What they may leave out is evaluated in a block of its own, unless
 * that has no effect and costs little. */
#include "lang/elab.h"

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

/* ---- && and || ---- */

/* a && b, a || b.  With a scalar on the left the right side counts only where C would
 * evaluate it: a load there must not become a finding. */
kl_value kl_logical(kl_elab *e, const kl_node *n)
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

/* ---- ?: ---- */

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
        return o.dec && !v.dec && v.known ? kl_decimal(v.f, v.d, n->span) : v;
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

/* Both arms are evaluated: constants, tiles of conditions, and all of the first phase. */
static kl_value of_both(kl_elab *e, const kl_node *n, kl_value c, enum kl_elem want)
{
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

/* A branch.  Conversions belong to the arms: the common type is found on copies, without emission. */
static kl_value of_one(kl_elab *e, const kl_node *n, kl_value c, const kl_blk blk[2], kl_value arm[2],
                       enum kl_elem want)
{
    kl_value ja = arm[0], jb = arm[1];
    e->mode = KL_CHECK;
    e->quiet++; /* what is wrong is said below */
    bool ok = join_arms(e, &ja, &jb, want, n->name_span);
    e->quiet--;
    e->mode = KL_LOWER;
    if (!ok) {
        join_arms(e, &arm[0], &arm[1], want, n->name_span);
        return kl_bad(n->span);
    }
    enum kl_elem el = (enum kl_elem)ja.elem;
    kl_val v[2];
    for (int k = 0; k < 2; k++) {
        kl_blk saved = e->b.blk;
        e->b.blk = blk[k];
        kl_value x = arm[k].untyped ? kl_give_type(e, arm[k], el) : kl_cast(e, arm[k], el);
        x = kl_stretch(e, x, ja.rank, ja.dim);
        v[k] = kl_ir(e, &x);
        e->b.blk = saved;
    }
    e->b.loc = n->span;
    kl_typ t = kl_irtype(e, el, ja.rank, ja.dim);
    kl_val r = kl_emit_if(e, kl_ir(e, &c), blk[0], blk[1], v[0], v[1], t);
    return kl_rt(e, el, ja.rank, ja.dim, r, n->span);
}

kl_value kl_conditional(kl_elab *e, const kl_node *n)
{
    enum kl_elem want = (enum kl_elem)e->want;
    e->want = 0;
    kl_value c = kl_to_bool(e, kl_rvalue(e, n->kid[0]));
    if (c.kind == KL_V_TILE && c.konst && c.known)
        return chosen(e, n, c.bits != 0, want);
    if (!kl_emitting(e) || c.kind != KL_V_TILE || c.rank)
        return of_both(e, n, c, want);
    if (!kl_deeper(e, n->span))
        return kl_bad(n->span);
    kl_blk blk[2];
    kl_value arm[2];
    for (int k = 0; k < 2; k++) {
        kl_blk saved;
        blk[k] = kl_enter_block(e, &saved);
        arm[k] = kl_rvalue_for(e, n->kid[1 + k], want);
        kl_leave_block(e, saved);
    }
    e->regions--;
    uint32_t na = 0, nb = 0;
    bool pure = kl_block_is_pure(e, blk[0], &na) && kl_block_is_pure(e, blk[1], &nb);
    bool structs = arm[0].kind == KL_V_STRUCT && arm[1].kind == KL_V_STRUCT;
    if (structs && !pure)
        return either(e, c, blk[0], blk[1], arm[0], arm[1], n->span);
    if (!structs && (!kl_need_tile(e, &arm[0]) || !kl_need_tile(e, &arm[1])))
        return kl_bad(n->span);
    bool small = (!arm[0].rank && !arm[1].rank) || na + nb <= 2;
    if (!structs && !(pure && small))
        return of_one(e, n, c, blk, arm, want);
    kl_splice_block(e, blk[0]);
    kl_splice_block(e, blk[1]);
    if (structs)
        return kl_struct_select(e, c, arm[0], arm[1], n->span);
    if (!join_arms(e, &arm[0], &arm[1], want, n->name_span))
        return kl_bad(n->span);
    c = kl_stretch(e, c, arm[0].rank, arm[0].dim);
    return kl_op3(e, KL_OP_select, c, arm[0], arm[1], n->span);
}
