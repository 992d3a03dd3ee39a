/* tiles.c - planning of operations on whole tiles in memory: reductions that do not run inside a
 * nest, transpositions, matrix products, cat and insert. */
#include "gen/c/plan.h"

static uint64_t pow2_above(uint64_t n)
{
    uint64_t q = 1;
    while (q < n)
        q *= 2;
    return q;
}

static uint64_t inner_of(const struct kl_type *t, uint32_t axis)
{
    uint64_t n = 1;
    for (uint32_t d = axis + 1; d < t->rank; d++)
        n *= t->dim[d];
    return n;
}

/* A helper on the buffer of u: behind the open nest if that writes it. */
static void run_after(struct plan *p, struct step *s, kl_val u)
{
    if (!kl_c_unfinished(p, u)) {
        kl_push(p->a, p->out, s);
        return;
    }
    kl_push(p->a, &p->after, s);
    gv(p, s->v)->nest = p->open_id;
    gv(p, s->v)->late = true;
}

/* A step that folds an axis of its operand's buffer. */
void kl_c_fold_step(struct plan *p, enum step_kind kind, kl_val v, uint32_t axis)
{
    kl_val a = kl_arg(p->f, v, 0), u = kl_c_strip(p->g, a);
    const struct kl_type *t = kl_type_of(p->f, a);
    uint64_t n = t->dim[axis], inner = inner_of(t, axis), half = pow2_above(n) / 2, room;
    struct step *s = kl_c_step_new(p, kind, v);
    if (kind == ST_ARG)
        room = inner > 1 ? inner : 0;
    else if (kind == ST_TREE && kl_c_short_rows(p->f, v))
        room = 0;
    else
        room = inner > 1 ? half * inner : half / 4;
    kl_c_touch(p, s, kl_c_buffer(p, u), 0, false, false, false);
    if (room) {
        s->tmp[0] = kl_c_buf_new(p->g, (enum kl_elem)t->elem, room);
        kl_c_touch(p, s, s->tmp[0], 0, true, true, false);
    }
    if (!gv(p, v)->one)
        kl_c_touch(p, s, kl_c_buffer(p, v), 0, true, true, false);
    run_after(p, s, u);
}

/* Does a reduction take its operand from memory? */
bool kl_c_folds_memory(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    bool fixed = kl_is_float((enum kl_elem)kl_type_of(f, v)->elem) &&
                 (in->attr.red.op == KL_OP_add || in->attr.red.op == KL_OP_mul);
    return fixed || kl_c_short_rows(f, v);
}

void kl_c_plan_reduce(struct plan *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    kl_val a = kl_arg(p->f, v, 0);
    const struct kl_type *t = kl_type_of(p->f, a);
    if (kl_c_folds_memory(p->f, v)) {
        kl_c_fold_step(p, ST_TREE, v, in->attr.red.axis);
        return;
    }
    struct root r = {.kind = R_RED, .v = v, .src = a, .elem = t->elem};
    if (!gv(p, v)->one) {
        r.buf = kl_c_buffer(p, v);
        r.brank = t->rank;
        memcpy(r.bdim, kl_type_of(p->f, v)->dim, sizeof r.bdim);
        r.to = kl_c_walk(t);
        r.to.x[in->attr.red.axis] = (struct ix){0};
    }
    kl_c_add_root(p, r, t, gv(p, v)->pos);
}

/* A buffer with v as elements of e. */
static uint32_t operand_buffer(struct plan *p, kl_val v, enum kl_elem e, uint32_t pos)
{
    kl_val u = kl_c_strip(p->g, v);
    const struct kl_type *t = kl_type_of(p->f, v);
    if (gv(p, u)->mat && kl_type_of(p->f, u)->elem == e)
        return kl_c_buffer(p, u);
    uint32_t b = kl_c_buf_new(p->g, e, kl_numel(t));
    if (!gv(p, v)->one)
        kl_c_put_value(p, (kl_val){0}, v, b, pos);
    return b;
}

void kl_c_plan_dot(struct plan *p, kl_val v)
{
    const struct kl_type *t = kl_type_of(p->f, v);
    enum kl_elem e = (enum kl_elem)t->elem;
    uint32_t pos = gv(p, v)->pos;
    struct step *s = kl_c_step_new(p, ST_DOT, v);
    kl_c_finish_args(p, v);
    for (uint32_t i = 0; i < 2; i++)
        s->tmp[i] = operand_buffer(p, kl_arg(p->f, v, i), e, pos);
    s->tmp[2] = gv(p, v)->one ? kl_c_buf_new(p->g, e, 1) : kl_c_buffer(p, v);
    if (!gv(p, v)->one)
        kl_c_to_buffer(p, kl_arg(p->f, v, 2), s->tmp[2], pos);
    kl_c_close_nest(p);
    for (uint32_t i = 0; i < 2; i++) { /* a single element is written by the step */
        bool one = gv(p, kl_arg(p->f, v, i))->one;
        kl_c_touch(p, s, s->tmp[i], 0, one, one, false);
    }
    kl_c_touch(p, s, s->tmp[2], 0, false, false, false);
    kl_c_touch(p, s, s->tmp[2], 0, true, gv(p, v)->one, false);
    kl_push(p->a, p->out, s);
}

void kl_c_plan_turn(struct plan *p, kl_val v)
{
    struct step *s = kl_c_step_new(p, ST_TURN, v);
    kl_val u = kl_c_strip(p->g, kl_arg(p->f, v, 0));
    kl_c_touch(p, s, kl_c_buffer(p, u), 0, false, false, false);
    kl_c_touch(p, s, kl_c_buffer(p, v), 0, true, true, false);
    run_after(p, s, u);
}

void kl_c_plan_cat(struct plan *p, kl_val v)
{
    const struct kl_type *t = kl_type_of(p->f, v);
    uint32_t axis = (uint32_t)kl_in(p->f, v)->attr.index, b = kl_c_buffer(p, v);
    int64_t at = 0;
    for (uint32_t i = 0; i < 2; i++) {
        kl_val a = kl_arg(p->f, v, i);
        const struct kl_type *from = kl_type_of(p->f, a);
        struct root r = {.kind = R_PUT,
                         .src = a,
                         .buf = b,
                         .elem = t->elem,
                         .brank = t->rank,
                         .to = kl_c_walk(from)};
        memcpy(r.bdim, t->dim, sizeof r.bdim);
        r.to.x[axis].k = at;
        kl_c_close_nest(p);
        kl_c_add_root(p, r, from, gv(p, v)->pos);
        p->open->use.v[p->open->use.n - 1].whole = i == 0;
        at += from->dim[axis];
    }
    kl_c_close_nest(p);
}

void kl_c_plan_insert(struct plan *p, kl_val v)
{
    kl_val value = kl_arg(p->f, v, 1u + kl_in(p->f, v)->attr.access.n);
    struct root r = {
        .kind = R_STORE, .v = v, .buf = kl_c_buffer(p, v), .elem = kl_type_of(p->f, v)->elem};
    kl_c_finish_args(p, v);
    kl_c_to_buffer(p, kl_arg(p->f, v, 0), r.buf, gv(p, v)->pos);
    kl_c_close_nest(p);
    kl_c_add_root(p, r, kl_type_of(p->f, value), gv(p, v)->pos);
    kl_c_close_nest(p);
}
