/* plan.c - a function as steps.
 *
 * Each block becomes an array of steps that hold the addresses of operands and result and
 * whatever the operation needs, so that running one is a call.  Values that are the same in
 * all programs are computed here (constants) or in the prologue. */
#include "gen/interp/run.h"

struct planner {
    struct kl_run *r;
    const kl_fn *f;
    kl_arena *a;
    uint8_t *index; /* of each value: part of an index; NULL: arithmetic is not checked */
    KL_VEC(struct kl_step) prologue;
};

typedef KL_VEC(struct kl_step) step_vec;

static void *place(struct planner *p, kl_val v)
{
    return p->r->place[v.id];
}

static void *arg_place(struct planner *p, kl_val v, uint32_t i)
{
    return p->r->place[kl_arg(p->f, v, i).id];
}

static const struct kl_type *arg_type(struct planner *p, kl_val v, uint32_t i)
{
    return kl_type_of(p->f, kl_arg(p->f, v, i));
}

static uint32_t elem_bytes(const struct kl_type *t)
{
    return kl_elems[t->elem].bytes;
}

static uint64_t product(const struct kl_type *t, uint32_t from, uint32_t to)
{
    uint64_t n = 1;
    for (uint32_t i = from; i < to; i++)
        n *= t->dim[i];
    return n;
}

/* ---- values without operands ---- */

static bool do_program_id(struct kl_run *r, const struct kl_step *s)
{
    *(kl_m_i64 *)s->out = r->pid[s->u.index];
    return true;
}

/* Constants and their like are written to their places now.  false: it needs a step. */
static bool preset(struct planner *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    const struct kl_type *t = kl_type_of(p->f, v);
    void *out = place(p, v);
    uint64_t bits;
    switch (in->op) {
    case KL_OP_const: bits = in->attr.bits; break;
    case KL_OP_param:
        if (in->blk.id != KL_BODY.id || t->kind == KL_T_ARRAY)
            return true;
        bits = kl_canon((enum kl_elem)t->elem, p->r->l->slot[in->attr.index].bits);
        break;
    case KL_OP_num_programs: bits = (uint64_t)p->r->l->grid[in->attr.index]; break;
    case KL_OP_num_sms: bits = (uint64_t)p->r->l->num_sms; break;
    case KL_OP_iota:
        for (uint32_t i = 0; i < t->dim[0]; i++)
            ((kl_m_i32 *)out)[i] = (int32_t)i;
        return true;
    case KL_OP_table:
        for (uint32_t i = 0; i < in->attr.aux.n; i++)
            kl_elem_store((enum kl_elem)t->elem, (char *)out + i * elem_bytes(t),
                          (uint64_t)p->f->aux[in->attr.aux.at + i]);
        return true;
    default: return false;
    }
    char one[8];
    kl_elem_store((enum kl_elem)t->elem, one, bits);
    kl_fill(out, one, elem_bytes(t), kl_numel(t));
    return true;
}

/* ---- accesses ---- */

static const kl_m_i64 **scalars(struct planner *p, kl_val v, uint32_t from, uint32_t n)
{
    const kl_m_i64 **x = kl_new_n(p->a, const kl_m_i64 *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        x[i] = arg_place(p, v, from + i);
    return x;
}

static void plan_view(struct planner *p, kl_val v, struct kl_step *s)
{
    const kl_fn *f = p->f;
    uint32_t n = kl_type_of(f, v)->rank;
    kl_val parent = kl_arg(f, v, 0);
    s->u.view.root = kl_root(f, v);
    s->u.view.ndim = n;
    s->u.view.parent = place(p, parent); /* a parameter has no place */
    s->u.view.parent_ndim = kl_type_of(f, parent)->rank;
    s->u.view.off = arg_place(p, v, 1);
    s->u.view.ext = scalars(p, v, 2, n);
    s->u.view.str = scalars(p, v, 2 + n, n);
    KL_CHECK(p->a->env, kl_type_of(f, v)->elem == f->param[s->u.view.root].elem);
}

static bool is_inside(const kl_fn *f, kl_val v, uint32_t depth)
{
    uint16_t op = kl_in(f, v)->op;
    if (op == KL_OP_and && depth)
        return is_inside(f, kl_arg(f, v, 0), depth - 1) || is_inside(f, kl_arg(f, v, 1), depth - 1);
    return op == KL_OP_inside || (op == KL_OP_broadcast && is_inside(f, kl_arg(f, v, 0), depth));
}

/* `inside(a) ? a : x` on tiles reads all of a; what lies outside is no finding. */
enum { BARE = 1, UNDER_INSIDE = 2 };

static void find_uses(struct planner *p)
{
    const kl_fn *f = p->f;
    p->r->uses = kl_new_n(p->a, uint8_t, f->nins);
    for (uint32_t id = 1; id < f->nins; id++) {
        const struct kl_ins *in = &f->ins[id];
        for (uint32_t i = 0; in->blk.id && i < in->nargs; i++) {
            bool under =
                in->op == KL_OP_select && i == 1 && is_inside(f, kl_arg(f, (kl_val){id}, 0), 4);
            p->r->uses[kl_arg(f, (kl_val){id}, i).id] |= under ? UNDER_INSIDE : BARE;
        }
    }
}

static void plan_access(struct planner *p, kl_val v, struct kl_step *s)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    struct kl_access *ac = kl_new(p->a, struct kl_access);
    uint32_t n = in->attr.access.n, k = n + 1, axis = 0;
    uint32_t takes = kl_access_values(in);
    bool scattered = kl_access_scattered(f, v), each = kl_is_atomic(in->op);
    const struct kl_type *base = arg_type(p, v, 0), *tile = kl_access_tile(f, v);
    s->u.access = ac;
    s->n = kl_numel(tile);
    if (takes)
        s->in[1] = arg_place(p, v, k++);
    if (takes > 1)
        ac->desired = arg_place(p, v, k++);
    ac->ndim = n;
    ac->bytes = elem_bytes(base);
    ac->is_bool = base->elem == KL_bool;
    ac->lost = in->op == KL_OP_load && p->r->lost ? p->r->lost[v.id] : NULL;
    ac->guarded = in->op == KL_OP_load && p->r->uses && p->r->uses[v.id] == UNDER_INSIDE;
    for (uint32_t d = 0; d < n; d++) {
        ac->start[d] = arg_place(p, v, 1 + d);
        ac->step[d] = f->aux[in->attr.access.at + d];
        ac->div[d] = ac->mod[d] = 1;
        ac->index[d] = kl_access_index(f, v, d);
        each |= ac->index[d];
        if (ac->index[d] && scattered)
            ac->mod[d] = s->n;
        if ((!ac->step[d] && !ac->index[d]) || scattered)
            continue;
        KL_CHECK(p->a->env, axis < tile->rank);
        ac->mod[d] = tile->dim[axis];
        ac->div[d] = product(tile, axis + 1, tile->rank);
        if (tile->dim[axis] > 1) {
            ac->axis_dim[ac->naxis] = d;
            ac->axis_tile[ac->naxis] = axis;
            ac->axis_n[ac->naxis++] = tile->dim[axis];
        }
        axis++;
    }
    KL_CHECK(p->a->env, scattered || axis == tile->rank);
    ac->how = in->attr.access.how;
    ac->elem = base->elem;
    if (each)
        s->exec = in->op == KL_OP_load    ? kl_do_load_each
                  : in->op == KL_OP_store ? kl_do_store_each
                  : in->op == KL_OP_inside ? kl_do_inside_each
                                           : kl_do_atomic;
    if (in->attr.access.flags & KL_ACC_FILL)
        ac->fill = arg_place(p, v, k++);
    if (in->attr.access.flags & KL_ACC_MASK)
        ac->mask = arg_place(p, v, k++);
    if (base->kind == KL_T_TILE) { /* extract, insert */
        int64_t str = 1;
        for (uint32_t d = n; d-- > 0; str *= base->dim[d]) {
            ac->tile.ext[d] = base->dim[d];
            ac->tile.str[d] = str;
        }
        ac->tile.root = UINT32_MAX;
        ac->tile_mem.base = in->op == KL_OP_insert ? s->out : arg_place(p, v, 0);
        ac->tile_mem.last = (int64_t)kl_numel(base) - 1;
        s->in[0] = arg_place(p, v, 0);
    }
}

/* ---- shapes and reductions ---- */

static void plan_axis(struct planner *p, kl_val v, struct kl_step *s, uint32_t axis)
{
    const struct kl_type *t = arg_type(p, v, 0);
    s->u.ax.outer = product(t, 0, axis);
    s->u.ax.n = t->dim[axis];
    s->u.ax.inner = product(t, axis + 1, t->rank);
    s->u.ax.bytes = elem_bytes(t);
    s->u.ax.elem = t->elem;
}

/* Strides of the operand along the axes of the result; neighbours that walk as one join. */
static void plan_map(struct planner *p, kl_val v, struct kl_step *s)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *from = arg_type(p, v, 0), *to = kl_type_of(f, v);
    uint64_t str[KL_MAX_RANK], at = 1;
    for (uint32_t i = from->rank; i-- > 0; at *= from->dim[i])
        str[i] = at;
    uint32_t lead = to->rank - from->rank, n = 0;
    s->u.map.bytes = elem_bytes(to);
    for (uint32_t i = 0; i < to->rank; i++) {
        uint64_t x;
        if (in->op == KL_OP_permute)
            x = str[f->aux[in->attr.aux.at + i]];
        else
            x = i < lead || from->dim[i - lead] == 1 ? 0 : str[i - lead];
        if (to->dim[i] == 1)
            continue;
        uint64_t *dim = s->u.map.dim, *st = s->u.map.str;
        if (n && st[n - 1] == x * to->dim[i]) {
            dim[n - 1] *= to->dim[i];
            st[n - 1] = x;
        } else {
            dim[n] = to->dim[i];
            st[n++] = x;
        }
    }
    s->u.map.rank = n;
}

static void plan_dot(struct planner *p, kl_val v, struct kl_step *s)
{
    const struct kl_type *a = arg_type(p, v, 0), *acc = kl_type_of(p->f, v);
    uint32_t r = acc->rank;
    s->u.dot.batch = product(acc, 0, r - 2);
    s->u.dot.m = acc->dim[r - 2];
    s->u.dot.n = acc->dim[r - 1];
    s->u.dot.k = a->dim[r - 1];
    s->u.dot.bytes = elem_bytes(acc);
    s->u.dot.from_bytes = elem_bytes(a);
    s->u.dot.run = kl_dot_find((enum kl_elem)acc->elem);
    if (a->elem != acc->elem) {
        s->u.dot.widen = kl_convert_find((enum kl_elem)acc->elem, (enum kl_elem)a->elem);
        KL_CHECK(p->a->env, s->u.dot.widen);
    }
    KL_CHECK(p->a->env, s->u.dot.run);
}

/* ---- control flow ---- */

static struct kl_steps *plan_block(struct planner *p, kl_blk blk);

static void add_move(struct planner *p, struct kl_moves *m, kl_val to, kl_val from)
{
    const struct kl_type *t = kl_type_of(p->f, to);
    if (place(p, to) == place(p, from))
        return;
    m->v[m->n++] =
        (struct kl_move){place(p, to), place(p, from), NULL, kl_numel(t) * elem_bytes(t)};
}

/* A move whose source another one writes goes by way of a place of its own. */
static void stage_moves(struct planner *p, struct kl_moves *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t j = 0; j < m->n && !m->v[i].via; j++)
            if (m->v[j].to == m->v[i].from)
                m->v[i].via = kl_alloc_zero(p->a, m->v[i].bytes), m->staged = true;
}

/* What the yield of `blk` hands to the carried parameters of a loop or the results of an if. */
static struct kl_moves plan_yield(struct planner *p, kl_blk blk, kl_val owner)
{
    const kl_fn *f = p->f;
    kl_val y = kl_last(f, blk);
    struct kl_moves m = {.v = kl_new_n(p->a, struct kl_move, kl_in(f, y)->nargs + 1u)};
    uint32_t res = kl_in(f, owner)->next;
    for (uint32_t i = 0; i < kl_in(f, y)->nargs; i++, res = f->ins[res].next)
        add_move(p, &m, (kl_val){res}, kl_arg(f, y, i));
    stage_moves(p, &m);
    return m;
}

static void plan_loop(struct planner *p, kl_val v, struct kl_step *s)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t skip = in->op == KL_OP_for ? 3 : 0, n = in->nargs - skip;
    struct kl_moves *m = &s->u.region.start;
    m->v = kl_new_n(p->a, struct kl_move, n + 1);
    for (uint32_t i = 0; i < n; i++)
        add_move(p, m, kl_loop_carried(f, v, i), kl_arg(f, v, skip + i));
    kl_blk own[2];
    uint32_t nblk = kl_blocks(f, v, own);
    for (uint32_t i = 0; i < nblk; i++)
        s->u.region.blk[i] = plan_block(p, own[i]);
    s->u.region.blk[nblk - 1]->yield = plan_yield(p, own[nblk - 1], v);
    if (in->op == KL_OP_for) {
        for (uint32_t i = 0; i < 3; i++)
            s->in[i] = arg_place(p, v, i);
        s->u.region.iv = p->r->place[f->blk[own[0].id].first];
        s->u.region.narrow = arg_type(p, v, 0)->elem == KL_i32;
    } else {
        s->u.region.cond = arg_place(p, kl_last(f, own[0]), 0);
        if (p->r->checks & KILN_CHECK_LOOPS) {
            s->u.region.carried = kl_carried_of(p->r, v);
            s->exec = kl_do_while_checked;
        }
    }
}

static void plan_if(struct planner *p, kl_val v, struct kl_step *s)
{
    kl_blk own[2];
    kl_blocks(p->f, v, own);
    s->u.region.cond = arg_place(p, v, 0);
    for (uint32_t i = 0; i < 2; i++) {
        s->u.region.blk[i] = plan_block(p, own[i]);
        s->u.region.blk[i]->yield = plan_yield(p, own[i], v);
    }
}

/* ---- steps ---- */

static kl_ew_fn *find_ew(struct planner *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    enum kl_elem to = (enum kl_elem)kl_type_of(p->f, v)->elem;
    enum kl_elem from = (enum kl_elem)arg_type(p, v, in->op == KL_OP_select)->elem;
    kl_ew_fn *fn;
    if (in->op == KL_OP_convert)
        fn = kl_convert_find(to, from);
    else if (in->op == KL_OP_convert_nan)
        fn = kl_convert_nan_find(to);
    else if (in->op == KL_OP_bitcast) /* to bool; others are the operand under another name */
        fn = kl_convert_find(KL_bool, KL_u8);
    else
        fn = kl_ew_find((enum kl_op)in->op, from);
    KL_CHECK(p->a->env, fn);
    return fn;
}

static void plan_fold(struct planner *p, kl_val v, struct kl_step *s);

typedef void plan_fn(struct planner *p, kl_val v, struct kl_step *s);

static void plan_index_axis(struct planner *p, kl_val v, struct kl_step *s)
{
    plan_axis(p, v, s, (uint32_t)kl_in(p->f, v)->attr.index);
    s->n = kl_numel(arg_type(p, v, 0));
}

static void plan_cat(struct planner *p, kl_val v, struct kl_step *s)
{
    plan_index_axis(p, v, s);
    s->u.ax.n2 = arg_type(p, v, 1)->dim[kl_in(p->f, v)->attr.index];
}

static void plan_gather(struct planner *p, kl_val v, struct kl_step *s)
{
    plan_axis(p, v, s, (uint32_t)kl_in(p->f, v)->attr.index);
    s->u.ax.n2 = kl_type_of(p->f, v)->dim[kl_in(p->f, v)->attr.index];
}

static void plan_reduce(struct planner *p, kl_val v, struct kl_step *s)
{
    const struct kl_ins *in = kl_in(p->f, v);
    plan_axis(p, v, s, in->attr.red.axis);
    s->n = kl_numel(arg_type(p, v, 0));
    s->u.ax.fold = kl_ew_find((enum kl_op)in->attr.red.op, (enum kl_elem)s->u.ax.elem);
    KL_CHECK(p->a->env, s->u.ax.fold);
}

static void plan_program_id(struct planner *p, kl_val v, struct kl_step *s)
{
    s->u.index = kl_in(p->f, v)->attr.index;
}

/* What each operation that is not element by element needs, and what runs it. */
static const struct {
    plan_fn *plan;
    kl_step_fn *exec;
} table[KL_NOP] = {
    [KL_OP_program_id] = {plan_program_id, do_program_id},
    [KL_OP_view] = {plan_view, kl_do_view},
    [KL_OP_load] = {plan_access, kl_do_load},
    [KL_OP_store] = {plan_access, kl_do_store},
    [KL_OP_inside] = {plan_access, kl_do_inside},
    [KL_OP_atomic] = {plan_access, kl_do_atomic},
    [KL_OP_atomic_load] = {plan_access, kl_do_atomic},
    [KL_OP_atomic_store] = {plan_access, kl_do_atomic},
    [KL_OP_gather] = {plan_gather, kl_do_gather},
    [KL_OP_extract] = {plan_access, kl_do_extract},
    [KL_OP_insert] = {plan_access, kl_do_insert},
    [KL_OP_broadcast] = {plan_map, kl_do_map},
    [KL_OP_permute] = {plan_map, kl_do_map},
    [KL_OP_cat] = {plan_cat, kl_do_cat},
    [KL_OP_flip] = {plan_index_axis, kl_do_flip},
    [KL_OP_reduce] = {plan_reduce, kl_do_reduce},
    [KL_OP_reduce_fn] = {plan_fold, kl_do_fold},
    [KL_OP_scan] = {plan_fold, kl_do_fold},
    [KL_OP_argmax] = {plan_index_axis, kl_do_argmax},
    [KL_OP_argmin] = {plan_index_axis, kl_do_argmin},
    [KL_OP_dot] = {plan_dot, kl_do_dot},
    [KL_OP_for] = {plan_loop, kl_do_for},
    [KL_OP_while] = {plan_loop, kl_do_while},
    [KL_OP_if] = {plan_if, kl_do_if},
};

static struct kl_step plan_step(struct planner *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    struct kl_step s = {.out = place(p, v), .val = v};
    if (in->type.id && kl_type_of(f, v)->kind == KL_T_TILE)
        s.n = kl_numel(kl_type_of(f, v));
    for (uint32_t i = 0; i < 3 && i < in->nargs; i++)
        s.in[i] = arg_place(p, v, i);
    if (kl_ops[in->op].flags & KL_F_EW) {
        s.ew = find_ew(p, v);
        if (p->index)
            kl_check_arith(p->r, v, p->index[v.id], &s);
        return s;
    }
    KL_CHECK(p->a->env, table[in->op].exec);
    s.exec = table[in->op].exec;
    table[in->op].plan(p, v, &s);
    return s;
}

static struct kl_steps *plan_block(struct planner *p, kl_blk blk)
{
    const kl_fn *f = p->f;
    step_vec steps = {0};
    kl_each_ins(f, blk, v) {
        uint16_t op = kl_in(f, v)->op;
        if (op == KL_OP_result || op == KL_OP_yield || p->r->fixed[v.id] == 2 ||
            (op == KL_OP_param && blk.id != KL_BODY.id) || preset(p, v))
            continue;
        struct kl_step s, before;
        if (kl_padding_step(p->r, v, &before))
            kl_push(p->a, &steps, before);
        if (kl_later_step(p->r, v, &before))
            kl_push(p->a, &steps, before);
        s = plan_step(p, v);
        if (p->r->fixed[v.id])
            kl_push(p->a, &p->prologue, s);
        else
            kl_push(p->a, &steps, s);
    }
    struct kl_steps *c = kl_new(p->a, struct kl_steps);
    c->step = steps.v;
    c->n = steps.n;
    return c;
}

void kl_plan(struct kl_run *r)
{
    struct planner p = {.r = r, .f = r->f, .a = r->a};
    kl_place_values(r);
    if (r->checks)
        find_uses(&p);
    if (r->checks & KILN_CHECK_ARITH) {
        p.index = kl_new_n(p.a, uint8_t, r->f->nins);
        kl_mark_arith(r, p.index);
    }
    if (r->checks & KILN_CHECK_PADDING)
        kl_padding_open(r);
    r->body = *plan_block(&p, KL_BODY);
    r->prologue = (struct kl_steps){.step = p.prologue.v, .n = p.prologue.n};
}

/* ---- the block of a fold on vectors ---- */

/* A block without loops becomes steps on vectors: an if runs both sides and selects, which
 * is right as nothing here has an effect or traps. */
struct vec {
    struct planner *p;
    void **place; /* of KL_VEC_LEN elements; NULL: not seen yet */
    step_vec steps;
    KL_VEC(struct kl_move) splat;
};

static void *vec_new(struct vec *c, kl_val v)
{
    return c->place[v.id] =
               kl_alloc_zero(c->p->a, (size_t)KL_VEC_LEN * elem_bytes(kl_type_of(c->p->f, v)));
}

/* Where an operand lies; one from outside the block is spread when the block is entered. */
static void *vec_place(struct vec *c, kl_val v)
{
    if (!c->place[v.id]) {
        struct kl_move m = {vec_new(c, v), place(c->p, v), NULL,
                            elem_bytes(kl_type_of(c->p->f, v))};
        kl_push(c->p->a, &c->splat, m);
    }
    return c->place[v.id];
}

static bool can_vec(const kl_fn *f, kl_blk blk)
{
    kl_each_ins(f, blk, v) {
        const struct kl_ins *in = kl_in(f, v);
        if (in->type.id && kl_type_of(f, v)->rank)
            return false;
        if (in->op == KL_OP_if) {
            if (!can_vec(f, in->attr.blk[0]) || !can_vec(f, in->attr.blk[1]))
                return false;
        } else if (!(kl_ops[in->op].flags & KL_F_EW) && in->op != KL_OP_const &&
                   in->op != KL_OP_param && in->op != KL_OP_yield && in->op != KL_OP_result &&
                   in->op != KL_OP_num_programs && in->op != KL_OP_num_sms) {
            return false;
        }
    }
    return true;
}

static void vec_block(struct vec *c, kl_blk blk);

static void vec_if(struct vec *c, kl_val v)
{
    const kl_fn *f = c->p->f;
    const struct kl_ins *in = kl_in(f, v);
    vec_block(c, in->attr.blk[0]);
    vec_block(c, in->attr.blk[1]);
    kl_val yes = kl_last(f, in->attr.blk[0]), no = kl_last(f, in->attr.blk[1]);
    uint32_t res = in->next;
    for (uint32_t i = 0; i < kl_in(f, yes)->nargs; i++, res = f->ins[res].next) {
        struct kl_step s = {.val = {res}};
        s.ew = kl_ew_find(KL_OP_select, (enum kl_elem)kl_type_of(f, (kl_val){res})->elem);
        s.in[0] = vec_place(c, kl_arg(f, v, 0));
        s.in[1] = vec_place(c, kl_arg(f, yes, i));
        s.in[2] = vec_place(c, kl_arg(f, no, i));
        s.out = vec_new(c, (kl_val){res});
        kl_push(c->p->a, &c->steps, s);
    }
}

static void vec_block(struct vec *c, kl_blk blk)
{
    const kl_fn *f = c->p->f;
    kl_each_ins(f, blk, v) {
        const struct kl_ins *in = kl_in(f, v);
        if (in->op == KL_OP_if) {
            vec_if(c, v);
        } else if (kl_ops[in->op].flags & KL_F_EW) {
            struct kl_step s = {.val = v};
            for (uint32_t i = 0; i < in->nargs; i++)
                s.in[i] = vec_place(c, kl_arg(f, v, i));
            if (c->p->r->fixed[v.id] == 2) { /* another name */
                c->place[v.id] = c->place[kl_arg(f, v, 0).id];
                continue;
            }
            s.ew = find_ew(c->p, v);
            s.out = vec_new(c, v);
            kl_push(c->p->a, &c->steps, s);
        }
    }
}

static void plan_fold(struct planner *p, kl_val v, struct kl_step *s)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_blk blk = in->attr.redfn.blk;
    kl_val y = kl_last(f, blk), param[2 * KL_MAX_FOLD];
    struct kl_fold *d = kl_new(p->a, struct kl_fold);
    struct kl_step ax = {0};
    uint32_t i = 0, result = in->nargs > 1 ? in->next : v.id;
    plan_axis(p, v, &ax, in->attr.redfn.axis);
    s->n = kl_numel(arg_type(p, v, 0));
    s->u.fold = d;
    d->outer = ax.u.ax.outer, d->n = ax.u.ax.n, d->inner = ax.u.ax.inner;
    d->m = in->nargs;
    d->scan = in->op == KL_OP_scan;
    d->tree = in->attr.redfn.commutative;
    d->blk = plan_block(p, blk);
    kl_each_ins (f, blk, q)
        if (i < 2 * d->m)
            param[i++] = q;
    bool level = !d->scan && !d->tree; /* how large the first level is */
    uint64_t some = d->tree ? kl_half_of(d->n) : (d->n + 1) / 2;
    for (uint32_t k = 0; k < d->m; k++, result = f->ins[result].next) {
        struct kl_folded *x = &d->v[k];
        x->bytes = elem_bytes(arg_type(p, v, k));
        x->in = arg_place(p, v, k);
        x->out = place(p, (kl_val){result});
        x->param[0] = place(p, param[k]);
        x->param[1] = place(p, param[d->m + k]);
        x->result = arg_place(p, y, k);
        uint64_t all = d->outer * d->inner * x->bytes;
        for (uint32_t w = 0; w < 2 && !d->scan; w++)
            x->work[w] = kl_alloc_zero(p->a, all * some);
        if (d->scan || level)
            x->work[2] = kl_alloc_zero(p->a, 3 * all * (d->n / 2) + 1);
    }
    if (!can_vec(f, blk))
        return;
    struct vec c = {.p = p, .place = kl_new_n(p->a, void *, f->nins)};
    struct kl_vecblock *vec = kl_new(p->a, struct kl_vecblock);
    for (uint32_t k = 0; k < d->m; k++)
        for (uint32_t side = 0; side < 2; side++)
            vec->param[side][k] = vec_new(&c, param[side * d->m + k]);
    vec_block(&c, blk);
    for (uint32_t k = 0; k < d->m; k++)
        vec->result[k] = vec_place(&c, kl_arg(f, y, k));
    vec->step = c.steps.v, vec->n = c.steps.n;
    vec->splat = c.splat.v, vec->nsplat = c.splat.n;
    d->vec = vec;
}
