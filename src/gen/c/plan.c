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
#include "gen/c/gen.h"

struct event { /* a write in the current block */
    uint32_t pos;
    struct kl_effect eff;
    kl_val store; /* in a nest: the store; else 0 */
    uint32_t nest;
};

struct plan {
    struct gen *g;
    const kl_fn *f;
    kl_arena *a;
    bool again;
    uint32_t pos, depth;
    steps *out;
    struct step *open;    /* the nest that takes roots */
    uint32_t open_id;
    struct kl_effect eff; /* of the open nest */
    KL_VEC(kl_val) loads; /* pulled by it at the walk of the nest (ident) or otherwise */
    KL_VEC(bool) ident;
    steps after;          /* helpers on what it puts into buffers */
    KL_VEC(struct event) events; /* of the current block from event0 on */
    uint32_t event0;
};

static struct gval *gv(struct plan *p, kl_val v)
{
    return &p->g->val[v.id];
}

static void mark(struct plan *p, kl_val v)
{
    v = kl_c_strip(p->g, v);
    if (gv(p, v)->one || gv(p, v)->mat)
        return;
    gv(p, v)->mat = true;
    p->again = true;
}

/* ---- cost ---- */

static bool unit_stride(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    kl_val view = kl_arg(f, v, 0);
    uint32_t n = in->attr.access.n;
    for (uint32_t d = n; d-- > 0;) {
        int64_t stride, step = f->aux[in->attr.access.at + d];
        if (step)
            return kl_c_const_of(f, kl_arg(f, view, 2 + n + d), &stride) && step * stride == 1;
    }
    return true;
}

/* Of computing v inline, with what it pulls; a buffer costs one load. */
static int32_t cost(struct plan *p, kl_val v)
{
    struct gval *x = gv(p, v);
    const struct kl_ins *in = kl_in(p->f, v);
    if (x->one)
        return 0;
    if (x->mat)
        return 1;
    if (x->cost >= 0)
        return x->cost;
    int32_t c = kl_cops[in->op].cost;
    x->loads = in->op == KL_OP_load;
    if (in->op == KL_OP_convert)
        c = (int32_t)kl_c_convert_cost((enum kl_elem)kl_type_of(p->f, v)->elem,
                                       (enum kl_elem)kl_type_of(p->f, kl_arg(p->f, v, 0))->elem);
    if (in->op == KL_OP_load && !unit_stride(p->f, v))
        c = 8;
    for (uint32_t i = 0; i < in->nargs; i++) {
        kl_val a = kl_arg(p->f, v, i);
        if (kl_type_of(p->f, a)->kind != KL_T_TILE)
            continue;
        c += cost(p, a);
        x->loads |= !gv(p, a)->one && !gv(p, a)->mat && gv(p, a)->loads;
    }
    x->cost = c < 1000 ? c : 1000;
    return x->cost;
}

/* ---- steps and nests ---- */

static struct step *new_step(struct plan *p, enum step_kind kind, kl_val v)
{
    struct step *s = kl_new(p->a, struct step);
    s->kind = (uint8_t)kind;
    s->v = v;
    return s;
}

static void touch(struct plan *p, struct step *s, uint32_t buf, uint32_t root, bool write,
                  bool whole, bool ident)
{
    struct touch t = {buf, root, write, whole, ident};
    kl_push(p->a, &s->use, t);
}

static void close_nest(struct plan *p)
{
    if (!p->open)
        return;
    kl_push(p->a, p->out, p->open);
    for (uint32_t i = 0; i < p->after.n; i++)
        kl_push(p->a, p->out, p->after.v[i]);
    p->open = NULL;
    p->after.n = 0;
}

static bool unfinished(struct plan *p, kl_val v)
{
    return p->open && gv(p, v)->nest == p->open_id;
}

/* The instruction needs its operands finished: scalars, and tiles in buffers. */
static void finish_args(struct plan *p, kl_val v)
{
    for (uint32_t i = 0; i < kl_in(p->f, v)->nargs; i++) {
        kl_val a = kl_arg(p->f, v, i);
        if (kl_type_of(p->f, a)->kind == KL_T_TILE && unfinished(p, kl_c_strip(p->g, a)))
            close_nest(p);
    }
}

static uint32_t buffer(struct plan *p, kl_val v)
{
    struct gval *x = gv(p, v);
    const struct kl_type *t = kl_type_of(p->f, v);
    if (!x->buf)
        x->buf = kl_c_buf_new(p->g, (enum kl_elem)t->elem, kl_numel(t));
    return x->buf;
}

/* ---- pulling ---- */

struct pull {
    struct plan *p;
    struct nest *n;
    struct step *s;
    uint32_t root; /* index of the root that pulls */
    bool dry;      /* only ask whether the open nest can take it */
    kl_map seen;   /* what this root has pulled */
};

/* The first time that the pulled v is met at index m? */
static bool first_time(kl_map *seen, kl_val v, const struct map *m)
{
    struct {
        uint64_t id;
        struct map m;
    } key = {v.id, *m};
    bool isnew;
    kl_map_put(seen, &key, sizeof key, &isnew);
    return isnew;
}

static bool is_walk(const struct nest *n, const struct ix *lin)
{
    int64_t pitch = 1;
    for (uint32_t a = n->rank; a-- > 0; pitch *= n->dim[a])
        if (lin->c[a] != pitch)
            return false;
    return lin->k == 0;
}

/* Do a load and a store name the same places, element by element? */
static bool same_place(const kl_fn *f, kl_val load, kl_val store)
{
    const struct kl_ins *l = kl_in(f, load), *s = kl_in(f, store);
    uint32_t n = l->attr.access.n;
    if (s->op != KL_OP_store || n != s->attr.access.n)
        return false;
    for (uint32_t i = 0; i <= n; i++) {
        kl_val a = kl_arg(f, load, i), b = kl_arg(f, store, i);
        int64_t x, y;
        if (a.id != b.id && !(kl_c_const_of(f, a, &x) && kl_c_const_of(f, b, &y) && x == y))
            return false;
    }
    for (uint32_t d = 0; d < n; d++)
        if (f->aux[l->attr.access.at + d] != f->aux[s->attr.access.at + d])
            return false;
    return kl_same_shape(kl_type_of(f, load), kl_type_of(f, kl_arg(f, store, n + 1)));
}

static bool loaded_ident(struct plan *p, kl_val load)
{
    for (uint32_t i = 0; i < p->loads.n; i++)
        if (p->loads.v[i].id == load.id && p->ident.v[i])
            return true;
    return false;
}

/* A load that root c pulls: has anything written there since? */
static bool check_load(struct pull *c, kl_val v, bool ident)
{
    struct plan *p = c->p;
    struct kl_effect eff = kl_effect(p->f, v);
    for (uint32_t i = p->event0; i < p->events.n; i++) {
        const struct event *e = &p->events.v[i];
        if (!kl_conflict(p->f, eff, e->eff))
            continue;
        bool here = p->open && e->nest == p->open_id;
        if (e->pos < gv(p, v)->pos) { /* reads what that wrote */
            if (c->dry && here)
                return false;
        } else if (here && same_place(p->f, v, e->store) && loaded_ident(p, v)) {
            continue; /* read in the same round of the nest, before */
        } else if (!c->dry) {
            mark(p, v);
        }
    }
    if (!c->dry) {
        kl_push(p->a, &p->loads, v);
        kl_push(p->a, &p->ident, ident);
        p->eff.read |= eff.read;
    }
    return true;
}

/* Must an operand be kept rather than computed for each place that reads it? */
static bool repeats(struct pull *c, kl_val v, const struct map *m)
{
    struct plan *p = c->p;
    int32_t depth = -1;
    bool used[KL_MAX_RANK] = {false};
    for (uint32_t d = 0; d < kl_type_of(p->f, v)->rank; d++)
        for (uint32_t a = 0; a < c->n->rank; a++)
            if (m->x[d].c[a]) {
                used[a] = true;
                depth = (int32_t)a > depth ? (int32_t)a : depth;
            }
    for (int32_t a = 0; a < depth; a++)
        if (!used[a])
            return cost(p, v) > 2;
    return false;
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

static bool pull(struct pull *c, kl_val v, const struct map *m);

static bool pull_operands(struct pull *c, kl_val v, const struct map *m)
{
    struct plan *p = c->p;
    const struct kl_ins *in = kl_in(p->f, v);
    struct opnd o[4];
    uint32_t n = kl_c_operands(p->g, v, m, o);
    for (uint32_t i = 0; i < in->nargs; i++) { /* subscripts, extents */
        kl_val a = kl_arg(p->f, v, i);
        if (kl_type_of(p->f, a)->kind == KL_T_TILE && gv(p, a)->one && unfinished(p, a))
            return false;
    }
    if (in->op == KL_OP_load) {
        struct map w = kl_c_walk(kl_type_of(p->f, v));
        uint32_t r, dim[KL_MAX_RANK];
        kl_c_space(kl_type_of(p->f, v), &r, dim);
        bool ident = r == c->n->rank && !memcmp(dim, c->n->dim, sizeof dim) &&
                     !memcmp(&w, m, sizeof w);
        if (!check_load(c, v, ident))
            return false;
    }
    if (n == UINT32_MAX) { /* joins axes: through memory */
        if (!c->dry)
            mark(p, kl_arg(p->f, v, 0));
        return true;
    }
    if (in->op == KL_OP_extract && !kl_c_static_part(p->f, v)) {
        kl_val u = kl_c_strip(p->g, kl_arg(p->f, v, 0));
        if (unfinished(p, u))
            return false;
        if (!c->dry && gv(p, u)->mat)
            touch(p, c->s, buffer(p, u), c->root, false, false, false);
        return true;
    }
    for (uint32_t i = 0; i < n; i++) {
        kl_val a = o[i].v;
        if (!c->dry && !gv(p, a)->one) {
            if (in->op == KL_OP_broadcast && repeats(c, a, &o[i].m))
                mark(p, a);
            if (in->op == KL_OP_permute && moves_last_axis(p->f, v) && cost(p, a) > 0 &&
                !(kl_in(p->f, a)->op == KL_OP_load && !unit_stride(p->f, a)))
                mark(p, a);
        }
        if (!pull(c, a, &o[i].m))
            return false;
    }
    return true;
}

/* Make root c's nest compute v at index m; false (only if dry): it cannot in the open nest. */
static bool pull(struct pull *c, kl_val v, const struct map *m)
{
    struct plan *p = c->p;
    if (gv(p, v)->one)
        return !unfinished(p, v);
    kl_val u = kl_c_strip(p->g, v);
    if (gv(p, u)->mat) {
        const struct kl_type *t = kl_type_of(p->f, v);
        struct ix lin = kl_c_linear(t->rank, t->dim, m);
        bool ident = is_walk(c->n, &lin);
        if (unfinished(p, u) && !ident)
            return false;
        if (!c->dry)
            touch(p, c->s, buffer(p, u), c->root, false, false, ident);
        return true;
    }
    if (!first_time(&c->seen, v, m))
        return true;
    if (!c->dry) {
        struct gval *x = gv(p, v);
        if (x->seen != p->open_id) {
            x->seen = p->open_id;
            x->pulls++;
        }
        if (x->depth < p->depth && (cost(p, v) > 2 || x->loads))
            mark(p, v); /* would be computed in each round of a loop */
    }
    return pull_operands(c, v, m);
}

/* ---- roots ---- */

/* All that root r reads in the nest. */
static bool pull_root(struct pull *c, const struct root *r)
{
    struct plan *p = c->p;
    if (r->kind == R_PUT && r->v.id)
        return pull_operands(c, r->v, &r->at);
    if (r->kind == R_STORE) {
        const struct kl_ins *in = kl_in(p->f, r->v);
        for (uint32_t k = 0; k < in->nargs; k++) {
            kl_val a = kl_arg(p->f, r->v, k);
            if (kl_type_of(p->f, a)->kind != KL_T_TILE || (in->op == KL_OP_insert && k == 0))
                continue;
            if (!pull(c, a, &r->at))
                return false;
        }
        return true;
    }
    return pull(c, r->src, &r->at);
}

/* May a store join the open nest, whose accesses stand before it? */
static bool store_fits(struct plan *p, kl_val v)
{
    struct kl_effect eff = kl_effect(p->f, v);
    if (kl_conflict(p->f, eff, (struct kl_effect){0, p->eff.write}))
        return false;
    for (uint32_t i = 0; i < p->loads.n; i++)
        if (kl_conflict(p->f, eff, kl_effect(p->f, p->loads.v[i])) &&
            !(p->ident.v[i] && same_place(p->f, p->loads.v[i], v)))
            return false;
    return true;
}

static bool put_fits(struct plan *p, uint32_t buf)
{
    for (uint32_t i = 0; i < p->open->use.n; i++) {
        const struct touch *t = &p->open->use.v[i];
        if (t->buf == buf && (t->write || !t->ident))
            return false;
    }
    return true;
}

static bool fits(struct plan *p, const struct root *r, uint32_t rank, const uint32_t *dim)
{
    const struct nest *n = p->open ? p->open->nest : NULL;
    if (!n || n->rank != rank || memcmp(n->dim, dim, sizeof n->dim) != 0)
        return false;
    if (r->kind == R_STORE && kl_in(p->f, r->v)->op == KL_OP_insert)
        return false;
    if (r->kind == R_STORE && !store_fits(p, r->v))
        return false;
    if (r->buf && !put_fits(p, r->buf))
        return false;
    struct pull c = {p, p->open->nest, p->open, n->root.n, true, {.a = p->a}};
    return pull_root(&c, r);
}

static void add_root(struct plan *p, struct root r, const struct kl_type *space, uint32_t pos)
{
    uint32_t rank, dim[KL_MAX_RANK];
    kl_c_space(space, &rank, dim);
    r.at = kl_c_walk(space);
    if (!fits(p, &r, rank, dim)) {
        close_nest(p);
        p->open = new_step(p, ST_NEST, (kl_val){0});
        p->open->nest = kl_new(p->a, struct nest);
        p->open->nest->rank = rank;
        memcpy(p->open->nest->dim, dim, sizeof dim);
        p->open_id++;
        p->eff = (struct kl_effect){0, 0};
        p->loads.n = p->ident.n = 0;
    }
    struct nest *n = p->open->nest;
    struct pull c = {p, n, p->open, n->root.n, false, {.a = p->a}};
    uint32_t own = p->loads.n;
    pull_root(&c, &r);
    if (r.kind == R_STORE && kl_in(p->f, r.v)->op == KL_OP_store) {
        struct kl_effect eff = kl_effect(p->f, r.v);
        for (uint32_t i = own; i < p->loads.n; i++) /* an overlapping update in place */
            if (kl_conflict(p->f, eff, kl_effect(p->f, p->loads.v[i])) &&
                !(p->ident.v[i] && same_place(p->f, p->loads.v[i], r.v)))
                mark(p, p->loads.v[i]);
        p->eff.write |= eff.write;
        struct event e = {pos, eff, r.v, p->open_id};
        kl_push(p->a, &p->events, e);
    }
    if (r.buf) {
        struct ix lin = kl_c_linear(r.brank, r.bdim, &r.to);
        touch(p, p->open, r.buf, n->root.n, true, r.kind != R_STORE,
              r.kind == R_PUT && is_walk(n, &lin));
    }
    kl_push(p->a, &n->root, r);
    if (r.v.id)
        gv(p, r.v)->nest = p->open_id;
}

/* Value src to a buffer, at the place of its own elements. */
static void put(struct plan *p, kl_val v, kl_val src, uint32_t buf, uint32_t pos)
{
    const struct kl_type *t = kl_type_of(p->f, src);
    struct root r = {.kind = R_PUT, .v = v, .src = src, .buf = buf, .brank = t->rank,
                     .elem = p->g->buf.v[buf].elem, .to = kl_c_walk(t)};
    memcpy(r.bdim, t->dim, sizeof r.bdim);
    add_root(p, r, t, pos);
}

static void copy(struct plan *p, uint32_t src, uint32_t dst)
{
    struct step *s = new_step(p, ST_COPY, (kl_val){0});
    s->src = src;
    s->dst = dst;
    touch(p, s, src, 0, false, false, true);
    touch(p, s, dst, 0, true, true, true);
    kl_push(p->a, p->out, s);
}

/* v to a buffer of its type: copied if it lies in one, else computed there. */
static void place(struct plan *p, kl_val v, uint32_t buf, uint32_t pos)
{
    kl_val u = kl_c_strip(p->g, v);
    if (!gv(p, u)->mat) {
        put(p, (kl_val){0}, v, buf, pos);
        return;
    }
    close_nest(p); /* it may read or write either buffer */
    if (buffer(p, u) != buf)
        copy(p, buffer(p, u), buf);
}

/* ---- helpers on tiles in memory ---- */

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

/* A step that folds an axis of its operand's buffer. */
static void fold_step(struct plan *p, enum step_kind kind, kl_val v, uint32_t axis)
{
    kl_val a = kl_arg(p->f, v, 0), u = kl_c_strip(p->g, a);
    const struct kl_type *t = kl_type_of(p->f, a);
    uint64_t n = t->dim[axis], inner = inner_of(t, axis), half = pow2_above(n) / 2, room;
    struct step *s = new_step(p, kind, v);
    if (kind == ST_ARG)
        room = inner > 1 ? inner : 0;
    else if (kind == ST_FOLD)
        room = (kl_in(p->f, v)->attr.redfn.commutative ? half : (n + 1) / 2) * inner;
    else
        room = inner > 1 ? half * inner : half / 4;
    touch(p, s, buffer(p, u), 0, false, false, false);
    if (room) {
        s->tmp[0] = kl_c_buf_new(p->g, (enum kl_elem)t->elem, room);
        touch(p, s, s->tmp[0], 0, true, true, false);
    }
    if (!gv(p, v)->one)
        touch(p, s, buffer(p, v), 0, true, true, false);
    if (unfinished(p, u)) {
        kl_push(p->a, &p->after, s);
        gv(p, v)->nest = p->open_id;
    } else {
        kl_push(p->a, p->out, s);
    }
}

static void plan_reduce(struct plan *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    kl_val a = kl_arg(p->f, v, 0);
    const struct kl_type *t = kl_type_of(p->f, a);
    bool fixed = kl_is_float((enum kl_elem)t->elem) &&
                 (in->attr.red.op == KL_OP_add || in->attr.red.op == KL_OP_mul);
    if (fixed) {
        fold_step(p, ST_TREE, v, in->attr.red.axis);
        return;
    }
    struct root r = {.kind = R_RED, .v = v, .src = a, .elem = t->elem};
    if (!gv(p, v)->one) {
        r.buf = buffer(p, v);
        r.brank = t->rank;
        memcpy(r.bdim, kl_type_of(p->f, v)->dim, sizeof r.bdim);
        r.to = kl_c_walk(t);
        r.to.x[in->attr.red.axis] = (struct ix){0};
    }
    add_root(p, r, t, gv(p, v)->pos);
}

/* A buffer with v as elements of e. */
static uint32_t operand_buffer(struct plan *p, kl_val v, enum kl_elem e, uint32_t pos)
{
    kl_val u = kl_c_strip(p->g, v);
    const struct kl_type *t = kl_type_of(p->f, v);
    if (gv(p, u)->mat && kl_type_of(p->f, u)->elem == e)
        return buffer(p, u);
    uint32_t b = kl_c_buf_new(p->g, e, kl_numel(t));
    if (!gv(p, v)->one)
        put(p, (kl_val){0}, v, b, pos);
    return b;
}

static void plan_dot(struct plan *p, kl_val v)
{
    const struct kl_type *t = kl_type_of(p->f, v);
    enum kl_elem e = (enum kl_elem)t->elem;
    uint32_t pos = gv(p, v)->pos;
    struct step *s = new_step(p, ST_DOT, v);
    finish_args(p, v);
    for (uint32_t i = 0; i < 2; i++)
        s->tmp[i] = operand_buffer(p, kl_arg(p->f, v, i), e, pos);
    s->tmp[2] = gv(p, v)->one ? kl_c_buf_new(p->g, e, 1) : buffer(p, v);
    if (!gv(p, v)->one)
        place(p, kl_arg(p->f, v, 2), s->tmp[2], pos);
    close_nest(p);
    for (uint32_t i = 0; i < 2; i++) { /* a single element is written by the step */
        bool one = gv(p, kl_arg(p->f, v, i))->one;
        touch(p, s, s->tmp[i], 0, one, one, false);
    }
    touch(p, s, s->tmp[2], 0, false, false, false);
    touch(p, s, s->tmp[2], 0, true, gv(p, v)->one, false);
    kl_push(p->a, p->out, s);
}

static void plan_cat(struct plan *p, kl_val v)
{
    const struct kl_type *t = kl_type_of(p->f, v);
    uint32_t axis = (uint32_t)kl_in(p->f, v)->attr.index, b = buffer(p, v);
    int64_t at = 0;
    for (uint32_t i = 0; i < 2; i++) {
        kl_val a = kl_arg(p->f, v, i);
        const struct kl_type *from = kl_type_of(p->f, a);
        struct root r = {.kind = R_PUT, .src = a, .buf = b, .elem = t->elem, .brank = t->rank,
                         .to = kl_c_walk(from)};
        memcpy(r.bdim, t->dim, sizeof r.bdim);
        r.to.x[axis].k = at;
        close_nest(p);
        add_root(p, r, from, gv(p, v)->pos);
        p->open->use.v[p->open->use.n - 1].whole = i == 0;
        at += from->dim[axis];
    }
    close_nest(p);
}

static void plan_insert(struct plan *p, kl_val v)
{
    kl_val value = kl_arg(p->f, v, 1u + kl_in(p->f, v)->attr.access.n);
    struct root r = {.kind = R_STORE, .v = v, .buf = buffer(p, v),
                     .elem = kl_type_of(p->f, v)->elem};
    finish_args(p, v);
    place(p, kl_arg(p->f, v, 0), r.buf, gv(p, v)->pos);
    close_nest(p);
    add_root(p, r, kl_type_of(p->f, value), gv(p, v)->pos);
    close_nest(p);
}

/* ---- scalars ---- */

static void plan_scalar(struct plan *p, kl_val v)
{
    struct kl_effect eff = kl_effect(p->f, v);
    finish_args(p, v);
    if (p->open && kl_conflict(p->f, eff, p->eff))
        close_nest(p);
    struct step *s = new_step(p, ST_SCALAR, v);
    for (uint32_t i = 0; i < kl_in(p->f, v)->nargs; i++) {
        kl_val a = kl_arg(p->f, v, i);
        if (kl_type_of(p->f, a)->kind == KL_T_TILE && !gv(p, a)->one)
            touch(p, s, buffer(p, kl_c_strip(p->g, a)), 0, false, false, false);
    }
    kl_push(p->a, p->out, s);
    if (eff.write) {
        struct event e = {gv(p, v)->pos, eff, {0}, 0};
        kl_push(p->a, &p->events, e);
    }
}

/* ---- control flow ---- */

static void plan_block(struct plan *p, kl_blk blk, steps *out, const uint32_t *yield_to);

/* Which buffers does computing v read, and all of them element by element? */
static void reads(struct plan *p, kl_val v, const struct map *m, const struct nest *n,
                  struct step *into, kl_map *seen)
{
    if (gv(p, v)->one || !first_time(seen, v, m))
        return;
    kl_val u = kl_c_strip(p->g, v);
    if (gv(p, u)->mat) {
        const struct kl_type *t = kl_type_of(p->f, v);
        struct ix lin = kl_c_linear(t->rank, t->dim, m);
        touch(p, into, buffer(p, u), 0, false, false, is_walk(n, &lin));
        return;
    }
    if (kl_in(p->f, v)->op == KL_OP_extract && !kl_c_static_part(p->f, v)) {
        u = kl_c_strip(p->g, kl_arg(p->f, v, 0));
        if (gv(p, u)->mat)
            touch(p, into, buffer(p, u), 0, false, false, false);
        return;
    }
    struct opnd o[4];
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
            place(p, kl_arg(f, y, k), via[k] ? via[k] : to[k], gv(p, y)->pos);
    close_nest(p);
    for (uint32_t k = 0; k < n; k++)
        if (via[k])
            copy(p, via[k], to[k]);
}

static void plan_region(struct plan *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t nres = kl_nresults(f, v), skip = in->op == KL_OP_for ? 3 : 0, k = 0;
    uint32_t *buf = kl_new_n(p->a, uint32_t, nres + 1u), *none = kl_new_n(p->a, uint32_t, 2);
    struct step *s = new_step(p, ST_REGION, v);
    finish_args(p, v);
    /* results share the buffers that loops carry */
    for (uint32_t id = in->next; k < nres; id = f->ins[id].next, k++) {
        struct gval *r = &p->g->val[id];
        const struct kl_type *t = kl_type_of(f, (kl_val){id});
        if (r->one)
            continue;
        buf[k] = r->buf = kl_c_buf_new(p->g, (enum kl_elem)t->elem, kl_numel(t));
        if (in->op != KL_OP_if)
            place(p, kl_arg(f, v, skip + k), buf[k], gv(p, v)->pos);
    }
    close_nest(p);
    kl_blk own[2];
    uint32_t nblk = kl_blocks(f, v, own);
    for (uint32_t i = 0; i < nblk; i++) {
        uint32_t j = 0, first = i == 0 && in->op == KL_OP_for;
        kl_each_ins(f, own[i], q) {
            if (kl_in(f, q)->op != KL_OP_param)
                break;
            if (j >= first)
                gv(p, q)->buf = buf[j - first];
            j++;
        }
        bool cond = in->op == KL_OP_while && i == 0;
        plan_block(p, own[i], &s->sub[i], cond ? none : buf);
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
            plan_scalar(p, v);
        else
            add_root(p, r, kl_type_of(p->f, value), gv(p, v)->pos);
        return;
    }
    case KL_OP_reduce: plan_reduce(p, v); return;
    case KL_OP_reduce_fn: {
        static const uint32_t none[1] = {0};
        close_nest(p); /* the block may use what it computes */
        fold_step(p, ST_FOLD, v, in->attr.redfn.axis);
        plan_block(p, in->attr.redfn.blk, &p->out->v[p->out->n - 1]->sub[0], none);
        return;
    }
    case KL_OP_argmax: case KL_OP_argmin: fold_step(p, ST_ARG, v, (uint32_t)in->attr.index); return;
    case KL_OP_dot: plan_dot(p, v); return;
    case KL_OP_cat: plan_cat(p, v); return;
    case KL_OP_insert: plan_insert(p, v); return;
    default: KL_CHECK(p->a->env, !"an operation without a step");
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

static void plan_block(struct plan *p, kl_blk blk, steps *out, const uint32_t *yield_to)
{
    const kl_fn *f = p->f;
    steps *outer = p->out;
    uint32_t event0 = p->event0;
    p->out = out;
    p->event0 = p->events.n;
    p->depth++;
    kl_each_ins(f, blk, v) {
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
            plan_scalar(p, v);
        else if (x->mat)
            put(p, v, v, buffer(p, v), x->pos);
    }
    close_nest(p);
    p->events.n = p->event0;
    p->event0 = event0;
    p->depth--;
    p->out = outer;
}

/* ---- what is live, what must lie in memory ---- */

static void need(struct plan *p, kl_val v)
{
    gv(p, v)->nuse++;
    if (gv(p, v)->live)
        return;
    gv(p, v)->live = true;
    const struct kl_ins *in = kl_in(p->f, v);
    for (uint32_t i = 0; i < in->nargs; i++)
        need(p, kl_arg(p->f, v, i));
    kl_blk own[2];
    for (uint32_t n = kl_blocks(p->f, v, own), i = 0; i < n; i++) {
        kl_val y = kl_last(p->f, own[i]);
        if (y.id && !gv(p, y)->live)
            need(p, y);
    }
}

static void find_live(struct plan *p, kl_blk blk)
{
    kl_each_ins(p->f, blk, v) {
        const struct kl_ins *in = kl_in(p->f, v);
        kl_blk own[2];
        uint32_t n = kl_blocks(p->f, v, own);
        if ((kl_ops[in->op].flags & KL_F_WRITE) || (n && in->op != KL_OP_reduce_fn))
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

/* Operations whose results lie in buffers, and operands that must. */
static void demand(struct plan *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    struct gval *x = gv(p, v);
    if (!in->blk.id || !x->live || !in->type.id || kl_type_of(p->f, v)->kind != KL_T_TILE)
        return;
    bool step = kl_cops[in->op].how == C_STEP && !is_plain(p, v);
    if (step || in->op == KL_OP_param || in->op == KL_OP_result)
        x->mat = !x->one;
    bool fixed = in->op == KL_OP_reduce &&
                 (in->attr.red.op == KL_OP_add || in->attr.red.op == KL_OP_mul) &&
                 kl_is_float((enum kl_elem)kl_type_of(p->f, v)->elem);
    if (step && (fixed || in->op == KL_OP_reduce_fn || in->op == KL_OP_argmax ||
                 in->op == KL_OP_argmin))
        mark(p, kl_arg(p->f, v, 0));
    if (in->op == KL_OP_extract && !kl_c_static_part(p->f, v))
        mark(p, kl_arg(p->f, v, 0));
    if (in->op == KL_OP_extract && x->one)
        mark(p, kl_arg(p->f, v, 0));
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
        if (x->pulls < 2 || cost(p, v) <= G_RECOMPUTE)
            continue;
        for (uint32_t i = 0; i < kl_in(f, v)->nargs; i++)
            covered[kl_arg(f, v, i).id] = 1;
    }
    for (uint32_t id = 1; id < f->nins; id++) {
        kl_val v = {id};
        if (p->g->val[id].pulls >= 2 && cost(p, v) > G_RECOMPUTE && !covered[id])
            mark(p, v);
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
        demand(&p, (kl_val){id});
    for (p.again = true; p.again;) {
        p = (struct plan){.g = g, .f = f, .a = g->a};
        g->buf.n = 0;
        kl_push(g->a, &g->buf, (struct gbuf){0});
        g->body = (steps){0};
        for (uint32_t id = 1; id < f->nins; id++) {
            struct gval *x = &g->val[id];
            x->buf = x->nest = x->pulls = x->seen = 0;
            x->cost = -1;
        }
        plan_block(&p, KL_BODY, &g->body, NULL);
        if (!p.again)
            keep_shared(&p);
    }
}
