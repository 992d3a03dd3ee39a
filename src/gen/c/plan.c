/* plan.c - what is computed where.
 *
 * A block is walked in order.  Tile operations without effect wait until something needs
 * them in memory or as a result: a root.  Roots are stores, reductions, and puts of values
 * into buffers.  A root becomes part of the open nest if it walks the same space, needs no
 * finished result of that nest, and no memory order forbids it; else the nest is closed and
 * a new one opened.  A root pulls the chain of inlined values that it needs into its nest.
 *
 * So a nest runs where it is closed, later than its roots stand, and an inlined load runs
 * where it is pulled.  Both moves are checked against the writes between.  When an inlined
 * value turns out to need a buffer (it is expensive and pulled by several nests, crosses a
 * loop, is read after a write) it is marked and the plan is made again; marks only grow. */
#include "gen/c/plan.h"
/* ---- scalars ---- */

void kl_c_plan_scalar(struct plan *p, kl_val v)
{
    struct kl_effect eff = kl_effect(p->f, v);
    kl_c_finish_args(p, v);
    if (p->open && kl_conflict(p->f, eff, p->eff))
        kl_c_close_nest(p);
    struct step *s = kl_c_step_new(p, ST_SCALAR, v);
    for (uint32_t i = 0; i < kl_in(p->f, v)->nargs; i++) {
        kl_val a = kl_arg(p->f, v, i);
        if (kl_type_of(p->f, a)->kind == KL_T_TILE && !gv(p, a)->one)
            kl_c_touch(p, s, kl_c_buffer(p, kl_c_strip(p->g, a)), 0, false, false, false);
    }
    kl_push(p->a, p->out, s);
    if (eff.write) {
        struct event e = {gv(p, v)->pos, eff, {0}, 0};
        kl_push(p->a, &p->events, e);
    }
}

/* ---- control flow ---- */

/* Which buffers does computing v read, and all of them element by element? */
static void reads(struct plan *p, kl_val v, const struct map *m, const struct nest *n,
                  struct step *into, kl_map *seen)
{
    if (gv(p, v)->one || !kl_c_first_time(seen, v, m))
        return;
    kl_val u = kl_c_strip(p->g, v);
    if (gv(p, u)->mat) {
        const struct kl_type *t = kl_type_of(p->f, v);
        struct ix lin = kl_c_linear(t->rank, t->dim, m);
        kl_c_touch(p, into, kl_c_buffer(p, u), 0, false, false, kl_c_is_walk(n, &lin));
        return;
    }
    if (kl_in(p->f, v)->op == KL_OP_extract && !kl_c_static_part(p->f, v)) {
        u = kl_c_strip(p->g, kl_arg(p->f, v, 0));
        if (gv(p, u)->mat)
            kl_c_touch(p, into, kl_c_buffer(p, u), 0, false, false, false);
        return;
    }
    if (kl_in(p->f, v)->op == KL_OP_gather) {
        u = kl_c_strip(p->g, kl_arg(p->f, v, 0));
        if (gv(p, u)->mat)
            kl_c_touch(p, into, kl_c_buffer(p, u), 0, false, false, false);
    }
    struct opnd o[C_OPNDS];
    uint32_t k = kl_c_operands(p->g, v, m, o);
    for (uint32_t i = 0; k != UINT32_MAX && i < k; i++)
        reads(p, o[i].v, &o[i].m, n, into, seen);
}

/* Hand the values of a yield to buffers (0: a scalar).  All are read before any is written:
 * what another one still reads goes by way of a buffer of its own. */
static void plan_yield(struct plan *p, kl_val y, const uint32_t *to)
{
    const kl_fn *f = p->f;
    uint32_t n = kl_in(f, y)->nargs;
    struct step *r = kl_new_n(p->a, struct step, n + 1u);
    uint32_t *via = kl_new_n(p->a, uint32_t, n + 1u);
    for (uint32_t k = 0; k < n; k++) {
        kl_val v = kl_arg(f, y, k);
        struct nest walk = {0};
        struct map m = kl_c_walk(kl_type_of(f, v));
        kl_c_space(kl_type_of(f, v), &walk.rank, walk.dim);
        kl_map seen = {.a = p->a};
        if (to[k])
            reads(p, v, &m, &walk, &r[k], &seen);
    }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = 0; j < n && to[k] && !via[k]; j++)
            for (uint32_t i = 0; i < r[j].use.n; i++)
                if (r[j].use.v[i].buf == to[k] && (j != k || !r[j].use.v[i].ident))
                    via[k] = kl_c_buf_new(p->g, (enum kl_elem)p->g->buf.v[to[k]].elem,
                                          p->g->buf.v[to[k]].count);
    for (uint32_t k = 0; k < n; k++)
        if (to[k])
            kl_c_to_buffer(p, kl_arg(f, y, k), via[k] ? via[k] : to[k], gv(p, y)->pos);
    kl_c_close_nest(p);
    for (uint32_t k = 0; k < n; k++)
        if (via[k])
            kl_c_copy(p, via[k], to[k]);
}

static void plan_region(struct plan *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t nres = kl_nresults(f, v), skip = in->op == KL_OP_for ? 3 : 0, k = 0;
    uint32_t *buf = kl_new_n(p->a, uint32_t, nres + 1u), *none = kl_new_n(p->a, uint32_t, 2);
    struct step *s = kl_c_step_new(p, ST_REGION, v);
    kl_c_finish_args(p, v);
    /* results share the buffers that loops carry */
    for (uint32_t id = in->next; k < nres; id = f->ins[id].next, k++) {
        struct gval *r = &p->g->val[id];
        const struct kl_type *t = kl_type_of(f, (kl_val){id});
        if (r->one)
            continue;
        buf[k] = r->buf = kl_c_buf_new(p->g, (enum kl_elem)t->elem, kl_numel(t));
        if (in->op != KL_OP_if)
            kl_c_to_buffer(p, kl_arg(f, v, skip + k), buf[k], gv(p, v)->pos);
    }
    kl_c_close_nest(p);
    kl_blk own[2];
    uint32_t nblk = kl_blocks(f, v, own);
    for (uint32_t i = 0; i < nblk; i++) {
        uint32_t j = 0, first = i == 0 && in->op == KL_OP_for;
        kl_each_ins (f, own[i], q) {
            if (kl_in(f, q)->op != KL_OP_param)
                break;
            if (j >= first)
                gv(p, q)->buf = buf[j - first];
            j++;
        }
        bool cond = in->op == KL_OP_while && i == 0;
        kl_c_plan_block(p, own[i], &s->sub[i], cond ? none : buf);
    }
    kl_push(p->a, p->out, s);
    struct event e = {gv(p, v)->pos, kl_effect(f, v), {0}, 0};
    kl_push(p->a, &p->events, e);
}

/* ---- blocks ---- */

static void plan_step(struct plan *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    switch (in->op) {
    case KL_OP_store: {
        kl_val value = kl_arg(p->f, v, 1u + in->attr.access.n);
        struct root r = {.kind = R_STORE, .v = v};
        if (gv(p, value)->one)
            kl_c_plan_scalar(p, v);
        else
            kl_c_add_root(p, r, kl_type_of(p->f, value), gv(p, v)->pos);
        return;
    }
    case KL_OP_atomic:
    case KL_OP_atomic_load:
    case KL_OP_atomic_store: kl_c_plan_atomic(p, v); return;
    case KL_OP_reduce: kl_c_plan_reduce(p, v); return;
    case KL_OP_reduce_fn:
    case KL_OP_scan: kl_c_plan_fold(p, v); return;
    case KL_OP_argmax:
    case KL_OP_argmin: kl_c_fold_step(p, ST_ARG, v, (uint32_t)in->attr.index); return;
    case KL_OP_dot: kl_c_plan_dot(p, v); return;
    case KL_OP_cat: kl_c_plan_cat(p, v); return;
    default: KL_CHECK(p->a->env, in->op == KL_OP_insert); kl_c_plan_insert(p, v);
    }
}

/* Is v nothing but another name or a constant, although its row is a step? */
static bool is_plain(struct plan *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    if (kl_c_same_bits(p->f, v).id)
        return true;
    if (in->op == KL_OP_argmax || in->op == KL_OP_argmin)
        return kl_type_of(p->f, kl_arg(p->f, v, 0))->dim[in->attr.index] == 1;
    return in->op == KL_OP_insert && gv(p, v)->one;
}

void kl_c_plan_block(struct plan *p, kl_blk blk, steps *out, const uint32_t *yield_to)
{
    const kl_fn *f = p->f;
    steps *outer = p->out;
    uint32_t event0 = p->event0;
    p->out = out;
    p->event0 = p->events.n;
    p->depth++;
    kl_each_ins (f, blk, v) {
        struct gval *x = gv(p, v);
        x->pos = ++p->pos;
        x->depth = p->depth;
        uint8_t how = kl_cops[kl_in(f, v)->op].how;
        if (kl_in(f, v)->op == KL_OP_yield)
            plan_yield(p, v, yield_to);
        if (!x->live || how == C_NONE)
            continue;
        if (how == C_STEP && is_plain(p, v))
            how = C_INLINE;
        if (how == C_REGION)
            plan_region(p, v);
        else if (how == C_STEP)
            plan_step(p, v);
        else if (how == C_SCALAR || x->one)
            kl_c_plan_scalar(p, v);
        else if (x->turn)
            kl_c_plan_turn(p, v);
        else if (x->mat)
            kl_c_put_value(p, v, v, kl_c_buffer(p, v), x->pos);
    }
    kl_c_close_nest(p);
    p->events.n = p->event0;
    p->event0 = event0;
    p->depth--;
    p->out = outer;
}

/* ---- what is live, what must lie in memory ---- */

/* v and all that it needs; by a list, as chains may be long. */
static void need(struct plan *p, kl_val v)
{
    KL_VEC(kl_val) todo = {0};
    kl_push(p->a, &todo, v);
    while (todo.n) {
        v = todo.v[--todo.n];
        gv(p, v)->nuse++;
        if (gv(p, v)->live)
            continue;
        gv(p, v)->live = true;
        for (uint32_t i = 0; i < kl_in(p->f, v)->nargs; i++)
            kl_push(p->a, &todo, kl_arg(p->f, v, i));
        kl_blk own[2];
        for (uint32_t n = kl_blocks(p->f, v, own), i = 0; i < n; i++) {
            kl_val y = kl_last(p->f, own[i]);
            if (y.id && !gv(p, y)->live)
                kl_push(p->a, &todo, y);
        }
    }
}

static void find_live(struct plan *p, kl_blk blk)
{
    kl_each_ins (p->f, blk, v) {
        const struct kl_ins *in = kl_in(p->f, v);
        kl_blk own[2];
        uint32_t n = kl_blocks(p->f, v, own);
        if ((kl_ops[in->op].flags & KL_F_WRITE) || (n && !(kl_is_fold(p->f, v) && in->type.id)))
            if (!gv(p, v)->live)
                need(p, v);
        for (uint32_t i = 0; i < n; i++)
            find_live(p, own[i]);
    }
}

static void classify(struct plan *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    const struct kl_type *t = kl_type_of(p->f, v);
    struct gval *x = gv(p, v);
    if (in->blk.id && in->type.id) {
        if (!kl_c_type((enum kl_elem)t->elem))
            kl_c_unsupported(p->g, kl_elems[t->elem].name);
        if (t->kind == KL_T_TILE && kl_numel(t) > INT32_MAX / 8)
            kl_c_unsupported(p->g, "a tile of more than 2^28 elements");
        x->one = t->kind == KL_T_TILE && kl_numel(t) == 1;
    }
}

static bool moves_last_axis(const kl_fn *f, kl_val v)
{
    const struct kl_type *t = kl_type_of(f, v);
    for (uint32_t d = t->rank; d-- > 0;)
        if (t->dim[d] > 1) {
            const struct kl_type *from = kl_type_of(f, kl_arg(f, v, 0));
            for (int64_t s = f->aux[kl_in(f, v)->attr.aux.at + d] + 1; s < from->rank; s++)
                if (from->dim[s] > 1)
                    return true;
            return false;
        }
    return false;
}

/* A permute that is worth a transposition in memory: the last axis moves, and the elements
 * are not better read in the new order right away. */
static bool turns(struct plan *p, kl_val v)
{
    kl_val a = kl_c_strip(p->g, kl_arg(p->f, v, 0));
    const struct kl_type *t = kl_type_of(p->f, v);
    if (kl_in(p->f, v)->op != KL_OP_permute || kl_numel(t) < 64 || !moves_last_axis(p->f, v))
        return false;
    if (kl_in(p->f, a)->op == KL_OP_load && !gv(p, a)->mat)
        return kl_c_unit_stride(p->f, a);
    gv(p, a)->cost = -1;
    return gv(p, a)->mat || kl_c_cost(p, a) > 0;
}

/* Operations whose results lie in buffers, and operands that must. */
static void demand(struct plan *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    struct gval *x = gv(p, v);
    if (in->blk.id && x->live && in->op == KL_OP_reduce_fn && !is_plain(p, v))
        for (uint32_t i = 0; i < in->nargs; i++)
            kl_c_mark(p, kl_arg(p->f, v, i));
    if (!in->blk.id || !x->live || !in->type.id || kl_type_of(p->f, v)->kind != KL_T_TILE)
        return;
    bool step = kl_cops[in->op].how == C_STEP && !is_plain(p, v);
    if (step || in->op == KL_OP_param || in->op == KL_OP_result)
        x->mat = !x->one;
    bool folds = in->op == KL_OP_reduce && kl_c_folds_memory(p->f, v);
    if (step &&
        (folds || in->op == KL_OP_argmax || in->op == KL_OP_argmin))
        kl_c_mark(p, kl_arg(p->f, v, 0));
    if (in->op == KL_OP_extract && !kl_c_static_part(p->f, v))
        kl_c_mark(p, kl_arg(p->f, v, 0));
    if ((in->op == KL_OP_extract && x->one) || in->op == KL_OP_gather)
        kl_c_mark(p, kl_arg(p->f, v, 0));
    if (turns(p, v)) {
        kl_c_mark(p, kl_arg(p->f, v, 0));
        x->mat = x->turn = true;
    }
}

/* A chain of inlined values is computed by recursion here and is one long loop body for the
 * C compiler: cut it now and then. */
static void cut_chains(struct plan *p, kl_blk blk, uint32_t *length)
{
    kl_each_ins (p->f, blk, v) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < kl_in(p->f, v)->nargs; i++) {
            kl_val a = kl_arg(p->f, v, i);
            if (!gv(p, a)->one && !gv(p, a)->mat && length[a.id] > n)
                n = length[a.id];
        }
        length[v.id] = n + 1;
        if (length[v.id] % G_CHAIN == 0 && gv(p, v)->live && kl_in(p->f, v)->type.id &&
            kl_type_of(p->f, v)->kind == KL_T_TILE && kl_cops[kl_in(p->f, v)->op].how == C_INLINE)
            kl_c_mark(p, v);
        kl_blk own[2];
        for (uint32_t k = kl_blocks(p->f, v, own), i = 0; i < k; i++)
            cut_chains(p, own[i], length);
    }
}

/* Values that several nests computed and that are not cheap: keep them; of a chain the end
 * only, as the rest is then computed once. */
static void keep_shared(struct plan *p)
{
    const kl_fn *f = p->f;
    uint8_t *covered = kl_new_n(p->a, uint8_t, f->nins);
    for (uint32_t id = 1; id < f->nins; id++) {
        kl_val v = {id};
        struct gval *x = &p->g->val[id];
        if (x->pulls < 2 || kl_c_cost(p, v) <= G_RECOMPUTE)
            continue;
        for (uint32_t i = 0; i < kl_in(f, v)->nargs; i++)
            covered[kl_arg(f, v, i).id] = 1;
    }
    for (uint32_t id = 1; id < f->nins; id++) {
        kl_val v = {id};
        if (p->g->val[id].pulls >= 2 && kl_c_cost(p, v) > G_RECOMPUTE && !covered[id])
            kl_c_mark(p, v);
    }
}

void kl_c_plan(struct gen *g)
{
    const kl_fn *f = g->f;
    struct plan p = {.g = g, .f = f, .a = g->a};
    for (uint32_t id = 1; id < f->nins; id++)
        classify(&p, (kl_val){id});
    find_live(&p, KL_BODY);
    for (uint32_t id = 1; id < f->nins; id++)
        g->val[id].cost = -1;
    for (uint32_t id = 1; id < f->nins; id++)
        demand(&p, (kl_val){id});
    cut_chains(&p, KL_BODY, kl_new_n(g->a, uint32_t, f->nins));
    for (p.again = true; p.again;) {
        p = (struct plan){.g = g, .f = f, .a = g->a};
        g->buf.n = 0;
        kl_push(g->a, &g->buf, (struct gbuf){0});
        g->body = (steps){0};
        for (uint32_t id = 1; id < f->nins; id++) {
            struct gval *x = &g->val[id];
            x->buf = x->nest = x->pulls = x->seen = 0;
            x->late = false;
            x->cost = -1;
        }
        kl_c_plan_block(&p, KL_BODY, &g->body, NULL);
        if (!p.again)
            keep_shared(&p);
    }
}
