/* stmt.c - statements: structured control flow into SSA.
 *
 * Variables are slots in e->var that hold the present SSA value.  An `if` elaborates both
 * sides from a copy of the slots and makes a result of each that differs; a loop carries
 * the slots its body assigns.  break, continue and early return become flags: what follows
 * a statement that may leave is put under `if (!flag)`. */
#include "lang/stmt.h"

/* ---- looking at the tree ---- */

unsigned kl_jumps(const kl_node *n)
{
    if (!n)
        return 0;
    switch (n->kind) {
    case KL_N_BREAK: return KL_HAS_BREAK;
    case KL_N_CONTINUE: return KL_HAS_CONTINUE;
    case KL_N_RETURN: return KL_HAS_RETURN;
    default: break;
    }
    unsigned j = n->kind == KL_N_CALL && n->flags & KL_NF_DEBUG ? KL_HAS_RETURN | KL_HAS_END : 0;
    for (uint32_t i = 0; i < n->nkid; i++)
        j |= kl_jumps(n->kid[i]);
    if (n->kind == KL_N_FOR || n->kind == KL_N_WHILE || n->kind == KL_N_DO)
        j &= KL_HAS_RETURN | KL_HAS_END;
    return j;
}

bool kl_returns(const kl_node *n)
{
    if (!n)
        return false;
    switch (n->kind) {
    case KL_N_RETURN: return true;
    case KL_N_ERROR: return true; /* unknown: no second message */
    case KL_N_IF: return n->nkid > 2 && kl_returns(n->kid[1]) && kl_returns(n->kid[2]);
    case KL_N_BLOCK:
        for (uint32_t i = 0; i < n->nkid; i++)
            if (kl_returns(n->kid[i]))
                return true;
        return false;
    default: return false;
    }
}

const char *kl_assigned_name(const kl_node *n)
{
    if (n->kind != KL_N_ASSIGN && n->kind != KL_N_INCDEC)
        return NULL;
    const kl_node *l = n->kid[0];
    while (l && (l->kind == KL_N_INDEX || l->kind == KL_N_MEMBER))
        l = l->kid[0];
    return l && l->kind == KL_N_NAME ? l->name : NULL;
}

bool kl_assigns(const kl_node *n, const char *name)
{
    if (!n)
        return false;
    if (kl_assigned_name(n) == name)
        return true;
    for (uint32_t i = 0; i < n->nkid; i++)
        if (kl_assigns(n->kid[i], name))
            return true;
    return false;
}

/* What a name in such a part may do to an array. */
static void mark_name(kl_elab *e, const char *name, unsigned flags)
{
    kl_sym *s = kl_sym_find(e, name);
    if (!s)
        return;
    s->used = true;
    if (s->kind != KL_S_ARRAY || !s->arr || !s->arr->param || e->mode != KL_CHECK || e->trial)
        return;
    if (s->arr->isconst)
        flags &= ~(unsigned)KL_NF_WRITTEN;
    s->arr->param->flags |= (uint16_t)flags;
}

static void mark_kids(kl_elab *e, const kl_node *n, uint32_t from)
{
    for (uint32_t i = from; i < n->nkid; i++)
        kl_mark_used(e, n->kid[i]);
}

/* Arguments of a call, and what a view is made of: an array there may be written and read;
 * that of `store` is written; others say nothing of its elements. */
static void mark_operand(kl_elab *e, const kl_node *n, unsigned flags)
{
    if (n && n->kind == KL_N_INDEX) {
        mark_kids(e, n, 1);
        n = n->kid[0];
    }
    if (n && n->kind == KL_N_NAME)
        mark_name(e, n->name, flags);
    else
        kl_mark_used(e, n);
}

void kl_mark_used(kl_elab *e, const kl_node *n)
{
    if (!n)
        return;
    const char *target = kl_assigned_name(n);
    if (target) {
        kl_sym *s = kl_sym_find(e, target);
        for (uint32_t i = 0; s && s->kind == KL_S_VAR && i < kl_nslots(&s->val); i++)
            if (s->var + i < e->var.n && e->mode == KL_CHECK && !e->trial)
                e->var.v[s->var + i].def = KL_DEF; /* perhaps: the second phase will know */
        mark_operand(e, n->kid[0], KL_NF_WRITTEN | (n->op == KL_TK_ASSIGN ? 0 : KL_NF_READ));
        mark_kids(e, n, 1);
        return;
    }
    switch (n->kind) {
    case KL_N_NAME:
    case KL_N_TYPE: mark_name(e, n->name, KL_NF_READ); break;
    case KL_N_CALL: {
        kl_sym *fn = kl_sym_find(e, n->name);
        static const char *const about[] = {"given", "size", "inside", "coord"};
        unsigned flags = KL_NF_READ | KL_NF_WRITTEN;
        uint32_t first = 0;
        if (!fn || fn->kind != KL_S_FUNC) {
            if (strncmp(n->name, "atomic_", 7) != 0)
                flags = KL_NF_READ;
            if (strcmp(n->name, "atomic_load") == 0)
                flags = KL_NF_READ;
            if (strcmp(n->name, "store") == 0 || strcmp(n->name, "atomic_store") == 0)
                flags = KL_NF_WRITTEN;
            for (int i = 0; i < 4; i++)
                flags = strcmp(n->name, about[i]) == 0 ? 0 : flags;
            if (n->nkid)
                mark_operand(e, n->kid[0], flags);
            first = 1;
        }
        for (uint32_t i = first; i < n->nkid; i++) {
            const kl_node *x = n->kid[i]->kind == KL_N_DESIG ? n->kid[i]->kid[0] : n->kid[i];
            if (x->kind == KL_N_NAME && !first)
                mark_name(e, x->name, flags);
            else
                kl_mark_used(e, x);
        }
        break;
    }
    case KL_N_UNARY:
        if (n->op == KL_TK_AND)
            mark_operand(e, n->kid[0], KL_NF_READ | KL_NF_WRITTEN);
        else
            mark_kids(e, n, 0);
        break;
    default: mark_kids(e, n, 0);
    }
}

/* ---- blocks of IR ---- */

kl_blk kl_enter_block(kl_elab *e, kl_blk *saved)
{
    *saved = e->b.blk;
    e->b.blk = kl_blk_new(e->f);
    return e->b.blk;
}

void kl_leave_block(kl_elab *e, kl_blk saved)
{
    e->b.blk = saved;
}

bool kl_block_is_pure(kl_elab *e, kl_blk b, uint32_t *count)
{
    bool pure = true;
    kl_each_ins(e->f, b, v)
    {
        const struct kl_ins *in = kl_in(e->f, v);
        if (in->op == KL_OP_param)
            continue;
        if (!(kl_ops[in->op].flags & KL_F_PURE))
            pure = false;
        if (count)
            *count += in->op != KL_OP_const;
    }
    return pure;
}

bool kl_block_uses_memory(kl_elab *e, kl_blk b)
{
    kl_each_ins(e->f, b, v)
    {
        kl_blk in[2];
        if (kl_ops[kl_in(e->f, v)->op].flags & (KL_F_READ | KL_F_WRITE))
            return true;
        for (uint32_t i = kl_blocks(e->f, v, in); i-- > 0;)
            if (kl_block_uses_memory(e, in[i]))
                return true;
    }
    return false;
}

void kl_splice_block(kl_elab *e, kl_blk b)
{
    for (uint32_t v = e->f->blk[b.id].first, next; v; v = next) {
        next = e->f->ins[v].next;
        kl_move_end(e->f, (kl_val){v}, e->b.blk);
    }
}

/* ---- branches ---- */

struct kl_varstate *kl_save_vars(kl_elab *e, uint32_t n)
{
    if (e->saved == e->pool.n)
        kl_push(e->a, &e->pool, ((struct kl_saved){NULL, 0}));
    struct kl_saved *s = &e->pool.v[e->saved++];
    if (s->cap < n) {
        s->cap = 2 * n;
        s->v = kl_new_n(e->a, struct kl_varstate, s->cap);
    }
    memcpy(s->v, e->var.v, n * sizeof *s->v);
    return s->v;
}

/* The value of a slot at the end of a block; zero where the block has none (it left). */
static kl_val value_or_zero(kl_elab *e, kl_blk b, kl_val v, kl_typ t)
{
    if (v.id)
        return v;
    kl_build at = e->b;
    at.blk = b;
    return kl_cst(&at, t, 0);
}

/* Code behind a jump does not run: nothing there is undefined. */
static void after_jump(kl_elab *e)
{
    for (uint32_t i = 1; i < e->var.n; i++)
        e->var.v[i].def = KL_DEF;
}

void kl_branch(kl_elab *e, kl_value cond, kl_body_fn *then, kl_body_fn *other, const void *user)
{
    if (!kl_deeper(e, cond.span)) {
        after_jump(e);
        return;
    }
    uint32_t n = e->var.n, mark = e->saved;
    struct kl_varstate *before = kl_save_vars(e, n), *a, *b;
    kl_blk saved = {0}, tb = {0}, fb = {0};
    kl_span loc = cond.span;
    bool emit = kl_emitting(e);
    if (emit)
        tb = kl_enter_block(e, &saved);
    if (then)
        then(e, user);
    e->var.n = n;
    a = kl_save_vars(e, n);
    memcpy(e->var.v, before, n * sizeof *before);
    if (emit) {
        kl_leave_block(e, saved);
        fb = kl_enter_block(e, &saved);
    }
    if (other)
        other(e, user);
    e->var.n = n;
    b = kl_save_vars(e, n);
    if (emit)
        kl_leave_block(e, saved);
    e->regions--;

    KL_VEC(kl_val) yt = {0}, yf = {0};
    for (uint32_t i = 1; i < n; i++) {
        struct kl_varstate *v = &e->var.v[i];
        v->def = a[i].def == b[i].def ? a[i].def : KL_MAYBE;
        if (!emit || a[i].ir.id == b[i].ir.id)
            continue;
        kl_typ t = kl_in(e->f, a[i].ir.id ? a[i].ir : b[i].ir)->type;
        kl_push(e->a, &yt, value_or_zero(e, tb, a[i].ir, t));
        kl_push(e->a, &yf, value_or_zero(e, fb, b[i].ir, t));
    }
    e->saved = mark;
    if (!emit || (!yt.n && !e->f->blk[tb.id].first && !e->f->blk[fb.id].first))
        return;
    kl_val c = kl_ir(e, &cond);
    kl_build at = e->b;
    at.loc = loc;
    at.blk = tb;
    kl_emit(&at, KL_OP_yield, (kl_typ){0}, yt.v, yt.n, (union kl_attr){0});
    at.blk = fb;
    kl_emit(&at, KL_OP_yield, (kl_typ){0}, yf.v, yf.n, (union kl_attr){0});
    e->b.loc = loc;
    kl_val op = kl_emit(&e->b, KL_OP_if, (kl_typ){0}, &c, 1, (union kl_attr){.blk = {tb, fb}});
    uint32_t k = 0;
    for (uint32_t i = 1; i < n; i++)
        if (a[i].ir.id != b[i].ir.id) {
            kl_typ t = kl_in(e->f, yt.v[k])->type;
            e->var.v[i].ir = kl_emit(&e->b, KL_OP_result, t, NULL, 0,
                                     (union kl_attr){.result = {.index = k, .of = op}});
            k++;
        }
}

kl_value kl_flag_is_clear(kl_elab *e, uint32_t var, kl_span s)
{
    kl_value v = kl_rt(e, KL_bool, 0, NULL, e->var.v[var].ir, s);
    return kl_op2(e, KL_OP_xor, v, kl_typed(KL_bool, 1, s), s);
}

void kl_set_flag(kl_elab *e, uint32_t var)
{
    if (var && kl_emitting(e))
        e->var.v[var].ir = kl_cst(&e->b, kl_scalar(e->f, KL_bool), 1);
}

struct seq {
    const kl_node *block;
    uint32_t from;
};

static void sequence(kl_elab *e, const kl_node *block, uint32_t from);

static void rest(kl_elab *e, const void *user)
{
    const struct seq *s = user;
    sequence(e, s->block, s->from);
}

static void sequence(kl_elab *e, const kl_node *block, uint32_t from)
{
    for (uint32_t i = from; i < block->nkid; i++) {
        const kl_node *n = block->kid[i];
        if (!n)
            continue;
        kl_stmt(e, n);
        unsigned j = kl_jumps(n);
        if (!j || i + 1 == block->nkid)
            continue;
        if (n->kind == KL_N_BREAK || n->kind == KL_N_CONTINUE || n->kind == KL_N_RETURN) {
            for (i++; i < block->nkid; i++)
                kl_mark_used(e, block->kid[i]);
            return;
        }
        uint32_t guard = e->fx && e->fx->loop ? e->fx->loop->skip : e->fx ? e->fx->ret : 0;
        if (!guard)
            continue;
        struct seq s = {block, i + 1};
        kl_branch(e, kl_flag_is_clear(e, guard, n->span), rest, NULL, &s);
        return;
    }
}

void kl_block(kl_elab *e, const kl_node *n)
{
    kl_scope_push(e, NULL);
    e->scope->body = e->fx && e->fx->fn->kid[2] == n;
    sequence(e, n, 0);
    kl_scope_pop(e);
}

/* ---- if ---- */

static void if_then(kl_elab *e, const void *user)
{
    const kl_node *n = user;
    kl_scope_push(e, NULL);
    kl_stmt(e, n->kid[1]);
    kl_scope_pop(e);
}

static void if_else(kl_elab *e, const void *user)
{
    const kl_node *n = user;
    if (n->nkid < 3 || !n->kid[2])
        return;
    kl_scope_push(e, NULL);
    kl_stmt(e, n->kid[2]);
    kl_scope_pop(e);
}

/* A condition as a bool scalar; false: reported. */
bool kl_condition(kl_elab *e, const kl_node *n, const char *of, kl_value *out)
{
    kl_value c = kl_to_bool(e, kl_rvalue(e, n));
    *out = c;
    if (c.kind != KL_V_TILE)
        return false;
    if (c.rank) {
        struct kl_diag *g = kl_err(e, KL_K0502, n->span, "the condition of `%s` is a tile of shape %s, and "
                                   "must be a scalar", of, kl_dims_text(e, &c));
        kl_note(g, (kl_span){0, 0},
                "choose element by element with `c ? a : b`, or reduce it with any() or all()");
        return false;
    }
    out->span = n->span;
    return true;
}

static void do_if(kl_elab *e, const kl_node *n)
{
    kl_value c;
    if (!kl_condition(e, n->kid[0], "if", &c)) {
        kl_mark_used(e, n->kid[1]);
        kl_mark_used(e, n->nkid > 2 ? n->kid[2] : NULL);
        return;
    }
    if (c.konst) {
        if (c.known && c.bits)
            if_then(e, n);
        else if (c.known)
            if_else(e, n);
        if (!c.known || c.bits)
            kl_mark_used(e, n->nkid > 2 ? n->kid[2] : NULL);
        if (!c.known || !c.bits)
            kl_mark_used(e, n->kid[1]);
        return;
    }
    kl_branch(e, c, if_then, if_else, n);
}

/* ---- return ---- */

static kl_value returned(kl_elab *e, struct kl_fctx *fx, kl_value v)
{
    if (v.kind == KL_V_STRUCT || fx->ret_struct) {
        if (fx->ret_elem) {
            kl_need_tile(e, &v);
            return v;
        }
        if (fx->ret_struct && !kl_struct_is(e, &v, fx->ret_struct, "the value returned"))
            return kl_bad(v.span);
        if (fx->ret_struct && fx->lifted)
            v = kl_struct_lift(e, v, fx->lift_rank, fx->lift_dim);
        if (v.kind == KL_V_STRUCT && fx->ret_type.kind == KL_V_STRUCT && (fx->has_value || fx->ret))
            v = kl_struct_fit(e, v, &fx->ret_type, "the value returned");
        return v;
    }
    bool later = fx->ret_type.kind == KL_V_TILE && !fx->ret_type.untyped && (fx->has_value || fx->ret);
    if (fx->ret_elem)
        v = kl_move(e, v, (enum kl_elem)fx->ret_elem, KL_MOVE, "the value returned");
    else if (!later) /* a later constant takes the type of the first return */
        v = v.kind == KL_V_TILE && v.untyped && v.konst && !fx->ret ? v : kl_concrete(e, v);
    if (v.kind != KL_V_TILE)
        return v;
    if (fx->ret_elem && fx->lifted) /* of each element, if it does not depend on one, too */
        return kl_fit(e, v, fx->lift_rank, fx->lift_dim, "the value returned");
    if (fx->ret_elem && v.rank) {
        kl_err(e, KL_K0302, v.span, "`%s` returns a scalar, and this has shape %s", fx->fn->name,
               kl_dims_text(e, &v));
        return kl_bad(v.span);
    }
    if (fx->ret_type.kind == KL_V_TILE && (fx->has_value || fx->ret)) { /* as the first return */
        v = kl_move(e, v, (enum kl_elem)fx->ret_type.elem, KL_MOVE, "the value returned");
        v = kl_fit(e, v, fx->ret_type.rank, fx->ret_type.dim, "the value returned");
    }
    return v;
}

static void do_return(kl_elab *e, const kl_node *n)
{
    struct kl_fctx *fx = e->fx;
    const kl_node *x = n->nkid ? n->kid[0] : NULL;
    if (fx->kernel || fx->isvoid) {
        if (x)
            kl_err(e, KL_K0505, x->span, "`%s` returns nothing", fx->fn->name);
    } else if (!x) {
        kl_err(e, KL_K0505, n->span, "`%s` returns a value; give one", fx->fn->name);
    } else {
        kl_value v = returned(e, fx, kl_rvalue_for(e, x, (enum kl_elem)fx->ret_elem));
        if (v.kind == KL_V_TILE && fx->ret_type.kind == KL_V_STRUCT && fx->has_value) {
            kl_err(e, KL_K0222, v.span, "`%s` returns a struct %s elsewhere, and here one value", fx->fn->name,
                   fx->ret_type.st->name);
        } else if (v.kind == KL_V_TILE || v.kind == KL_V_STRUCT) {
            if (!fx->has_value && v.kind == KL_V_STRUCT) {
                fx->ret_type = kl_struct_type(e, &v);
            } else if (!fx->has_value) {
                fx->ret_type = v;
                fx->ret_type.konst = fx->ret_type.known = fx->ret_type.untyped = false;
            }
            fx->has_value = true;
            fx->result = v;
            if (fx->ret && v.kind == KL_V_STRUCT) {
                if (fx->nret == v.st->n) /* as found before the body is lowered */
                    kl_struct_assign(e, fx->retval, &v);
            } else if (fx->ret) {
                e->var.v[fx->retval].ir = kl_ir(e, &v);
                e->var.v[fx->retval].def = KL_DEF;
            }
        }
    }
    kl_set_flag(e, fx->ret);
    for (struct kl_loopctx *l = fx->loop; l; l = l->up)
        kl_set_flag(e, l->brk), kl_set_flag(e, l->skip);
    after_jump(e);
}

static void do_assert(kl_elab *e, const kl_node *n)
{
    kl_value c;
    if (!kl_condition(e, n->kid[0], "static_assert", &c))
        return;
    if (!c.konst) {
        kl_err(e, KL_K0306, n->kid[0]->span, "the condition of static_assert must be a constant");
        return;
    }
    if (c.known && !c.bits)
        kl_err(e, KL_K0605, n->span, "static_assert: %s", n->name ? n->name : "the condition is false");
}

/* An atomic may stand alone: its value is what was there before. */
static bool acts(kl_elab *e, const kl_node *n)
{
    const kl_sym *s = n->kind == KL_N_CALL ? kl_sym_find(e, n->name) : NULL;
    return n->kind == KL_N_CALL && strncmp(n->name, "atomic_", 7) == 0 && kl_is_builtin(n->name) &&
           !(s && s->kind == KL_S_FUNC);
}

static void statement(kl_elab *e, const kl_node *n)
{
    uint32_t mark;
    e->b.loc = n->span;
    switch (n->kind) {
    case KL_N_BLOCK: kl_block(e, n); break;
    case KL_N_DECL: kl_declare(e, n); break;
    case KL_N_TYPEDECL: {
        bool ok;
        enum kl_elem el = kl_eval_type(e, n->kid[0], &ok);
        kl_sym *s = kl_sym_add(e, KL_S_TYPE, n->name, n->name_span);
        s->elem = (uint8_t)el;
        s->used = true;
        break;
    }
    case KL_N_STRUCT: kl_struct_declare(e, n); break;
    case KL_N_ASSIGN:
    case KL_N_INCDEC: kl_assign(e, n); break;
    case KL_N_EXPRSTMT: {
        kl_value v = kl_expr(e, n->kid[0]);
        if (v.kind != KL_V_VOID && v.kind != KL_V_ERR && !acts(e, n->kid[0]))
            kl_err(e, KL_K0506, n->span, "the value of this statement is not used");
        break;
    }
    case KL_N_IF: do_if(e, n); break;
    case KL_N_FOR:
    case KL_N_WHILE:
    case KL_N_DO:
        if (!kl_deeper(e, n->span))
            break;
        mark = e->saved;
        if (n->kind == KL_N_FOR)
            kl_for(e, n);
        else if (n->kind == KL_N_WHILE)
            kl_while_loop(e, n->kid[0], NULL, n->kid[1], "while", false, n->span);
        else
            kl_while_loop(e, n->kid[1], NULL, n->kid[0], "do", true, n->span);
        e->regions--;
        e->saved = mark;
        break;
    case KL_N_BREAK:
    case KL_N_CONTINUE:
        if (!e->fx->loop) {
            kl_err(e, KL_K0507, n->span, "`%s` outside a loop", n->kind == KL_N_BREAK ? "break" : "continue");
            break;
        }
        if (n->kind == KL_N_BREAK)
            kl_set_flag(e, e->fx->loop->brk);
        kl_set_flag(e, e->fx->loop->skip);
        after_jump(e);
        break;
    case KL_N_RETURN: do_return(e, n); break;
    case KL_N_SASSERT: do_assert(e, n); break;
    default: break; /* EMPTY; ERROR: said already */
    }
}

void kl_stmt(kl_elab *e, const kl_node *n)
{
    if (!n)
        return;
    if (e->nested >= KL_MAX_NESTED) {
        kl_limit(e, n->span, "statements, functions and operators are nested too deep", NULL);
        return;
    }
    e->nested++;
    statement(e, n);
    e->nested--;
}
