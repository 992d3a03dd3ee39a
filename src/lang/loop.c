/* loop.c - loops into structured IR: which slots they carry, counted ones, conditions. */
#include "lang/stmt.h"

struct carried {
    KL_VEC(uint32_t) var;
};

static void carry(kl_elab *e, struct carried *c, uint32_t var)
{
    if (!var || (kl_emitting(e) && !e->var.v[var].ir.id))
        return;
    for (uint32_t i = 0; i < c->var.n; i++)
        if (c->var.v[i] == var)
            return;
    kl_push(e->a, &c->var, var);
}

static void carry_assigned(kl_elab *e, struct carried *c, const kl_node *n)
{
    if (!n)
        return;
    const char *name = kl_assigned_name(n);
    kl_sym *s = name ? kl_sym_find(e, name) : NULL;
    for (uint32_t i = 0; s && s->kind == KL_S_VAR && i < kl_nslots(&s->val); i++)
        carry(e, c, s->var + i);
    for (uint32_t i = 0; i < n->nkid; i++)
        carry_assigned(e, c, n->kid[i]);
}

/* A do loop may give a variable its first value, which the condition reads: a carried slot
 * needs some value before. */
static void give_zeros(kl_elab *e, const kl_node *n)
{
    if (!n || !kl_emitting(e))
        return;
    const char *name = kl_assigned_name(n);
    kl_sym *s = name ? kl_sym_find(e, name) : NULL;
    for (uint32_t i = 0; s && s->kind == KL_S_VAR && i < kl_nslots(&s->val); i++) {
        const kl_value *t = s->val.kind == KL_V_STRUCT ? &s->val.st->m[i].v : &s->val;
        if (t->kind == KL_V_TILE && !e->var.v[s->var + i].ir.id)
            e->var.v[s->var + i].ir = kl_cst(&e->b, kl_irtype(e, (enum kl_elem)t->elem, t->rank, t->dim), 0);
    }
    for (uint32_t i = 0; i < n->nkid; i++)
        give_zeros(e, n->kid[i]);
}

static void carry_flags(kl_elab *e, struct carried *c, const struct kl_loopctx *l, unsigned jumps)
{
    carry(e, c, l->brk);
    if (!(jumps & KL_HAS_RETURN))
        return;
    carry(e, c, e->fx->ret);
    for (uint32_t i = 0; i < e->fx->nret; i++)
        carry(e, c, e->fx->retval + i);
    for (const struct kl_loopctx *o = l->up; o; o = o->up)
        carry(e, c, o->brk), carry(e, c, o->skip);
    for (const struct kl_fctx *fx = e->fx->up; fx && jumps & KL_HAS_END; fx = fx->up) {
        carry(e, c, fx->ret);
        for (const struct kl_loopctx *o = fx->loop; o; o = o->up)
            carry(e, c, o->brk), carry(e, c, o->skip);
    }
}

static uint32_t flag_new(kl_elab *e, uint64_t value)
{
    kl_val v = {0};
    if (kl_emitting(e))
        v = kl_cst(&e->b, kl_scalar(e->f, KL_bool), value);
    return kl_var_new(e, v, KL_DEF);
}

static void loop_flags(kl_elab *e, struct kl_loopctx *l, unsigned jumps)
{
    l->up = e->fx->loop;
    if (jumps)
        l->skip = flag_new(e, 0);
    if (jumps & (KL_HAS_BREAK | KL_HAS_RETURN))
        l->brk = flag_new(e, 0);
}

/* Slots as block parameters, at the head of the present block. */
static void enter_params(kl_elab *e, const struct carried *c)
{
    for (uint32_t i = 0; i < c->var.n; i++) {
        struct kl_varstate *v = &e->var.v[c->var.v[i]];
        v->ir = kl_block_param(&e->b, kl_in(e->f, v->ir)->type);
    }
}

static void gather(kl_elab *e, const struct carried *c, kl_val *out)
{
    for (uint32_t i = 0; i < c->var.n; i++)
        out[i] = e->var.v[c->var.v[i]].ir;
}

static void set_slots(kl_elab *e, const struct carried *c, const kl_val *v)
{
    for (uint32_t i = 0; i < c->var.n; i++)
        e->var.v[c->var.v[i]].ir = v[i];
}

/* After a loop: carried slots hold results, others what they held before. */
static void leave_loop(kl_elab *e, const struct carried *c, const struct kl_varstate *before, uint32_t n,
                       kl_val op, const kl_val *init)
{
    e->var.n = n;
    for (uint32_t i = 1; i < n; i++) {
        struct kl_varstate now = e->var.v[i];
        e->var.v[i] = before[i];
        if (before[i].def != KL_DEF && now.def == KL_DEF)
            e->var.v[i].def = KL_MAYBE;
    }
    for (uint32_t i = 0; op.id && i < c->var.n; i++)
        e->var.v[c->var.v[i]].ir =
            kl_emit(&e->b, KL_OP_result, kl_in(e->f, init[i])->type, NULL, 0,
                    (union kl_attr){.result = {.index = i, .of = op}});
}

static void run_step(kl_elab *e, const void *user)
{
    kl_stmt(e, user);
}

static void loop_body(kl_elab *e, struct kl_loopctx *l, const kl_node *body, const kl_node *step)
{
    if (l->skip && kl_emitting(e))
        e->var.v[l->skip].ir = kl_cst(&e->b, kl_scalar(e->f, KL_bool), 0);
    e->fx->loop = l;
    kl_scope_push(e, NULL);
    kl_stmt(e, body);
    kl_scope_pop(e);
    e->fx->loop = l->up;
    if (step && l->brk)
        kl_branch(e, kl_flag_is_clear(e, l->brk, step->span), run_step, NULL, step);
    else if (step)
        kl_stmt(e, step);
}

/* The condition of a loop in its own block: !brk && (first || cond). */
static kl_val loop_condition(kl_elab *e, const kl_node *n, const char *what, uint32_t brk, uint32_t first,
                             bool *ok)
{
    kl_value c = kl_typed(KL_bool, 1, e->b.loc);
    if (!kl_emitting(e)) {
        *ok = !n || kl_condition(e, n, what, &c);
        return (kl_val){0};
    }
    kl_blk saved, blk = kl_enter_block(e, &saved);
    *ok = !n || kl_condition(e, n, what, &c);
    kl_val v = *ok ? kl_ir(e, &c) : kl_cst(&e->b, kl_scalar(e->f, KL_bool), 0);
    bool pure = kl_block_is_pure(e, blk, NULL);
    kl_leave_block(e, saved);
    kl_typ tb = kl_scalar(e->f, KL_bool);

    kl_val nobrk = {0}, fst = {0};
    if (brk) {
        kl_value clear = kl_flag_is_clear(e, brk, e->b.loc);
        nobrk = kl_ir(e, &clear);
    }
    if (first)
        fst = e->var.v[first].ir;

    if (pure) {
        kl_splice_block(e, blk);
        if (fst.id)
            v = kl_ew2(&e->b, KL_OP_or, fst, v);
        return nobrk.id ? kl_ew2(&e->b, KL_OP_and, nobrk, v) : v;
    }
    if (fst.id) {
        kl_blk yes = kl_enter_block(e, &saved);
        kl_val one = kl_cst(&e->b, tb, 1);
        kl_leave_block(e, saved);
        if (nobrk.id) { /* the or goes inside the and: build it in a block of its own */
            kl_blk in = kl_enter_block(e, &saved);
            v = kl_emit_if(e, fst, yes, blk, one, v, tb);
            kl_leave_block(e, saved);
            blk = in;
        } else {
            return kl_emit_if(e, fst, yes, blk, one, v, tb);
        }
    }
    if (nobrk.id) {
        kl_blk no = kl_enter_block(e, &saved);
        kl_val zero = kl_cst(&e->b, tb, 0);
        kl_leave_block(e, saved);
        return kl_emit_if(e, nobrk, blk, no, v, zero, tb);
    }
    kl_splice_block(e, blk); /* always evaluated: loads may stand in the condition's block */
    return v;
}

/* At the condition of a do loop, and behind it, what the body gave a value has one, unless
 * the body may have been left before. */
static void after_body(kl_elab *e, const struct kl_varstate *before, uint32_t n, unsigned jumps)
{
    for (uint32_t i = 1; i < n && jumps & (KL_HAS_BREAK | KL_HAS_CONTINUE); i++)
        if (before[i].def != KL_DEF && e->var.v[i].def == KL_DEF)
            e->var.v[i].def = KL_MAYBE;
}

static uint8_t *save_defs(kl_elab *e, uint32_t n)
{
    uint8_t *def = kl_new_n(e->a, uint8_t, n);
    for (uint32_t i = 0; i < n; i++)
        def[i] = e->var.v[i].def;
    return def;
}

static void restore_defs(kl_elab *e, const uint8_t *def, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        e->var.v[i].def = def[i];
}

void kl_while_loop(kl_elab *e, const kl_node *cond, const kl_node *step, const kl_node *body,
                       const char *what, bool isdo, kl_span loc)
{
    unsigned jumps = kl_jumps(body);
    struct kl_loopctx l = {0};
    loop_flags(e, &l, jumps);
    uint32_t first = isdo ? flag_new(e, 1) : 0;
    struct carried c = {0};
    if (isdo)
        give_zeros(e, body);
    carry_assigned(e, &c, body);
    carry_assigned(e, &c, step);
    carry_flags(e, &c, &l, jumps);
    carry(e, &c, first);
    uint32_t n = e->var.n;
    struct kl_varstate *before = kl_save_vars(e, n);
    bool ok;
    if (!kl_emitting(e)) {
        if (!isdo)
            loop_condition(e, cond, what, 0, 0, &ok);
        loop_body(e, &l, body, step);
        if (isdo) {
            after_body(e, before, n, jumps);
            loop_condition(e, cond, what, 0, 0, &ok);
        }
        uint8_t *def = save_defs(e, n);
        leave_loop(e, &c, before, n, (kl_val){0}, NULL);
        if (isdo)
            restore_defs(e, def, n);
        return;
    }
    kl_val *init = kl_new_n(e->a, kl_val, c.var.n + 1), *out = kl_new_n(e->a, kl_val, c.var.n + 1);
    kl_blk saved, cb = {0}, bb = {0};
    gather(e, &c, init);
    /* the condition of a do loop knows what the body has given a value: the body comes first */
    for (int part = 0; part < 2; part++) {
        set_slots(e, &c, init);
        if ((part == 0) == isdo) {
            bb = kl_enter_block(e, &saved);
            enter_params(e, &c);
            loop_body(e, &l, body, step);
            if (first)
                e->var.v[first].ir = kl_cst(&e->b, kl_scalar(e->f, KL_bool), 0);
            gather(e, &c, out);
            kl_emit(&e->b, KL_OP_yield, (kl_typ){0}, out, c.var.n, (union kl_attr){0});
            if (isdo)
                after_body(e, before, n, jumps);
        } else {
            cb = kl_enter_block(e, &saved);
            enter_params(e, &c);
            e->b.loc = loc;
            kl_val v = loop_condition(e, cond, what, l.brk, first, &ok);
            kl_emit(&e->b, KL_OP_yield, (kl_typ){0}, &v, 1, (union kl_attr){0});
        }
        kl_leave_block(e, saved);
    }
    uint8_t *def = save_defs(e, n);
    e->b.loc = loc;
    kl_val op = kl_emit(&e->b, KL_OP_while, (kl_typ){0}, init, c.var.n, (union kl_attr){.blk = {cb, bb}});
    leave_loop(e, &c, before, n, op, init);
    if (isdo)
        restore_defs(e, def, n);
}

static bool mentions(const kl_node *n, enum kl_node_kind kind)
{
    if (!n)
        return false;
    if (n->kind == kind)
        return true;
    for (uint32_t i = 0; i < n->nkid; i++)
        if (mentions(n->kid[i], kind))
            return true;
    return false;
}

static bool stable(kl_elab *e, const kl_node *n, const kl_node *body)
{
    if (!n)
        return true;
    if (n->kind == KL_N_NAME && kl_assigns(body, n->name))
        return false;
    if (n->kind == KL_N_CALL) {
        kl_sym *s = kl_sym_find(e, n->name);
        if (s && s->kind == KL_S_FUNC)
            return false;
    }
    for (uint32_t i = 0; i < n->nkid; i++)
        if (!stable(e, n->kid[i], body))
            return false;
    return true;
}

/* A for that the IR can count: its variable is declared here, is changed by the step
 * alone, and the bound does not change.  Gives the step's amount; later: the second phase knows it. */
static bool counted(kl_elab *e, const kl_node *n, int64_t *step, bool *later)
{
    const kl_node *init = n->kid[0], *cond = n->kid[1], *inc = n->kid[2], *body = n->kid[3];
    if (!init || init->kind != KL_N_DECL || init->nkid != 2 || !cond || cond->kind != KL_N_BINARY ||
        cond->op != KL_TK_LT || cond->kid[0]->kind != KL_N_NAME || !inc)
        return false;
    const kl_node *var = init->kid[1];
    if (!var || var->kind != KL_N_VAR || (var->nkid > 0 && var->kid[0]) ||
        cond->kid[0]->name != var->name || kl_assigns(body, var->name) ||
        (kl_jumps(body) & (KL_HAS_BREAK | KL_HAS_RETURN)) || !stable(e, cond->kid[1], body) ||
        mentions(cond->kid[1], KL_N_INDEX) || kl_assigned_name(inc) != var->name)
        return false;
    *step = 1;
    if (inc->kind == KL_N_INCDEC)
        return inc->op == KL_TK_INC && inc->kid[0]->kind == KL_N_NAME;
    if (inc->op != KL_TK_ADDEQ || inc->kid[0]->kind != KL_N_NAME)
        return false;
    e->quiet++;
    kl_value v = inc->kid[1]->kind == KL_N_ERROR || mentions(inc->kid[1], KL_N_INDEX) ||
                         !stable(e, inc->kid[1], body)
                     ? kl_bad(inc->span)
                     : kl_rvalue(e, inc->kid[1]);
    e->quiet--;
    *later = v.kind == KL_V_TILE && v.konst && !v.known && !v.rank;
    if (v.kind != KL_V_TILE || !v.konst || !v.known || v.dec || v.rank)
        return false;
    *step = kl_wide(&v) > INT64_MAX ? 0 : kl_const_i64(&v);
    return *step > 0;
}

static void count_loop(kl_elab *e, const kl_node *n, kl_sym *var, int64_t step)
{
    const kl_node *body = n->kid[3];
    kl_value hi = kl_rvalue(e, n->kid[1]->kid[1]);
    if (hi.kind == KL_V_TILE && hi.rank) {
        kl_value c;
        kl_condition(e, n->kid[1], "for", &c);
        return;
    }
    enum kl_elem own = (enum kl_elem)var->val.elem;
    kl_value lo = var->val;
    lo.ir = e->var.v[var->var].ir;
    if (!kl_unify(e, &lo, &hi, n->kid[1]->name_span, "<"))
        return;
    unsigned jumps = kl_jumps(body);
    struct kl_loopctx l = {0};
    loop_flags(e, &l, jumps);
    struct carried c = {0};
    carry_assigned(e, &c, body);
    carry_flags(e, &c, &l, jumps);
    uint32_t nv = e->var.n;
    struct kl_varstate *before = kl_save_vars(e, nv);
    if (!kl_emitting(e)) {
        loop_body(e, &l, body, NULL);
        leave_loop(e, &c, before, nv, (kl_val){0}, NULL);
        return;
    }
    enum kl_elem el = (enum kl_elem)lo.elem;
    kl_val *args = kl_new_n(e->a, kl_val, c.var.n + 3), *out = kl_new_n(e->a, kl_val, c.var.n + 1);
    args[0] = kl_ir(e, &lo), args[1] = kl_ir(e, &hi);
    args[2] = kl_cst(&e->b, kl_scalar(e->f, el), (uint64_t)step);
    gather(e, &c, args + 3);
    kl_blk saved, bb = kl_enter_block(e, &saved);
    kl_val iv = kl_block_param(&e->b, kl_scalar(e->f, el));
    enter_params(e, &c);
    e->var.v[var->var].ir = kl_to(&e->b, own, iv);
    loop_body(e, &l, body, NULL);
    gather(e, &c, out);
    kl_emit(&e->b, KL_OP_yield, (kl_typ){0}, out, c.var.n, (union kl_attr){0});
    kl_leave_block(e, saved);
    uint32_t unroll = n->flags & KL_NF_UNROLL ? (n->ival ? (uint32_t)n->ival : 1) : 0;
    uint64_t pipeline = n->flags & KL_NF_PIPELINE ? n->ival : 0;
    pipeline = pipeline < KL_MAX_PIPELINE ? pipeline : KL_MAX_PIPELINE;
    union kl_attr attr = {.loop = {.blk = bb, .unroll = unroll & 0xfffffu, .pipeline = pipeline & 0xfffu}};
    e->b.loc = n->span;
    kl_val op = kl_emit(&e->b, KL_OP_for, (kl_typ){0}, args, c.var.n + 3, attr);
    leave_loop(e, &c, before, nv, op, args + 3);
}

void kl_for(kl_elab *e, const kl_node *n)
{
    int64_t step = 0;
    kl_scope_push(e, NULL);
    uint32_t nvar = e->var.n;
    if (n->kid[0])
        kl_stmt(e, n->kid[0]);
    kl_sym *var = n->kid[0] && n->kid[0]->kind == KL_N_DECL && n->kid[0]->nkid > 1 && n->kid[0]->kid[1]
                      ? kl_sym_find(e, n->kid[0]->kid[1]->name)
                      : NULL;
    bool typed = var && var->kind == KL_S_VAR && !var->val.rank && e->var.v[var->var].def == KL_DEF &&
                 (var->val.elem == KL_i32 || var->val.elem == KL_i64);
    bool later = var && var->kind == KL_S_VAR && !var->val.elem; /* whether it is counted */
    if (typed && counted(e, n, &step, &later)) {
        int mode = e->mode; /* the bound must be a signed integer: look without emitting */
        bool trial = e->trial;
        e->trial |= mode == KL_LOWER;
        e->mode = KL_CHECK;
        e->quiet++;
        kl_value hi = kl_rvalue(e, n->kid[1]->kid[1]);
        e->quiet--;
        e->trial = trial;
        e->mode = mode == KL_LOWER ? KL_LOWER : KL_CHECK;
        later = hi.kind != KL_V_TILE || (!hi.elem && !hi.untyped);
        if (hi.kind == KL_V_TILE && !hi.dec &&
            (hi.untyped || (kl_is_int((enum kl_elem)hi.elem) &&
                            kl_elems[kl_elems[hi.elem].acc].kind == KL_KIND_SINT))) {
            kl_sym_find(e, var->name)->used = true;
            count_loop(e, n, var, step);
            kl_scope_pop(e);
            e->var.n = nvar;
            return;
        }
    }
    if (n->flags & (KL_NF_UNROLL | KL_NF_PIPELINE) && e->mode == KL_CHECK && !e->trial && !later)
        kl_err(e, KL_K0209, n->name_span, "this loop is not counted, so `#pragma %s` has no effect on it",
               n->flags & KL_NF_UNROLL ? "unroll" : "pipeline");
    kl_while_loop(e, n->kid[1], n->kid[2], n->kid[3], "for", false, n->span);
    kl_scope_pop(e);
    e->var.n = nvar;
}

