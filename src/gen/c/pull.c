/* pull.c - nests: which roots share one, what they pull into it, what that costs.
 *
 * A root is asked twice.  First without effect: can the open nest take it?  It cannot if the
 * shapes differ, if it needs a finished result of that nest, or if memory order forbids it.
 * Then for good, in the open nest or a new one: reads and writes are recorded, and values that
 * turn out to need a buffer are marked. */
#include "gen/c/plan.h"

void kl_c_mark(struct plan *p, kl_val v)
{
    v = kl_c_strip(p->g, v);
    if (gv(p, v)->one || gv(p, v)->mat)
        return;
    gv(p, v)->mat = true;
    p->again = true;
}
/* ---- cost ---- */

bool kl_c_unit_stride(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    kl_val view = kl_arg(f, v, 0);
    uint32_t n = in->attr.access.n;
    for (uint32_t d = n; d-- > 0;) {
        int64_t stride, step = f->aux[in->attr.access.at + d];
        if (kl_access_index(f, v, d))
            return false;
        if (step)
            return kl_c_const_of(f, kl_arg(f, view, 2 + n + d), &stride) && step * stride == 1;
    }
    return true;
}

/* Reading a long row again is cheap, as it is in the cache by then.  Short rows that lie apart
 * may share a set of the cache, and elements that lie apart cost a load each. */
static int32_t load_cost(const kl_fn *f, kl_val v)
{
    uint32_t rank, dim[KL_MAX_RANK];
    kl_c_space(kl_type_of(f, v), &rank, dim);
    if (!kl_c_unit_stride(f, v))
        return 8;
    return rank > 1 && dim[rank - 1] < G_SPLIT ? G_RECOMPUTE + 1 : 1;
}

/* Of computing v inline, with what it pulls; a buffer costs one load. */
int32_t kl_c_cost(struct plan *p, kl_val v)
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
    if (in->op == KL_OP_load)
        c = load_cost(p->f, v);
    for (uint32_t i = 0; i < in->nargs; i++) {
        kl_val a = kl_arg(p->f, v, i);
        if (kl_type_of(p->f, a)->kind != KL_T_TILE)
            continue;
        c += kl_c_cost(p, a);
        x->loads |= !gv(p, a)->one && !gv(p, a)->mat && gv(p, a)->loads;
    }
    x->cost = c < 1000 ? c : 1000;
    return x->cost;
}
/* ---- steps and nests ---- */

struct step *kl_c_step_new(struct plan *p, enum step_kind kind, kl_val v)
{
    struct step *s = kl_new(p->a, struct step);
    s->kind = (uint8_t)kind;
    s->v = v;
    return s;
}

void kl_c_touch(struct plan *p, struct step *s, uint32_t buf, uint32_t root, bool write, bool whole,
                bool ident)
{
    struct touch t = {buf, root, write, whole, ident};
    kl_push(p->a, &s->use, t);
}

void kl_c_close_nest(struct plan *p)
{
    if (!p->open)
        return;
    kl_push(p->a, p->out, p->open);
    for (uint32_t i = 0; i < p->after.n; i++)
        kl_push(p->a, p->out, p->after.v[i]);
    p->open = NULL;
    p->after.n = 0;
}

bool kl_c_unfinished(struct plan *p, kl_val v)
{
    return p->open && gv(p, v)->nest == p->open_id;
}

/* The instruction needs its operands finished: scalars, and tiles in buffers. */
void kl_c_finish_args(struct plan *p, kl_val v)
{
    for (uint32_t i = 0; i < kl_in(p->f, v)->nargs; i++) {
        kl_val a = kl_arg(p->f, v, i);
        if (kl_type_of(p->f, a)->kind == KL_T_TILE && kl_c_unfinished(p, kl_c_strip(p->g, a)))
            kl_c_close_nest(p);
    }
}

uint32_t kl_c_buffer(struct plan *p, kl_val v)
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
bool kl_c_first_time(kl_map *seen, kl_val v, const struct map *m)
{
    struct {
        uint64_t id;
        struct map m;
    } key = {v.id, *m};
    bool isnew;
    kl_map_put(seen, &key, sizeof key, &isnew);
    return isnew;
}

bool kl_c_is_walk(const struct nest *n, const struct ix *lin)
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
    if (kl_access_indices(f, load)) /* two elements may be one place */
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
            kl_c_mark(p, v);
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
            return kl_c_cost(p, v) > 2;
    return false;
}

static bool pull(struct pull *c, kl_val v, const struct map *m);

static bool pull_operands(struct pull *c, kl_val v, const struct map *m)
{
    struct plan *p = c->p;
    const struct kl_ins *in = kl_in(p->f, v);
    struct opnd o[C_OPNDS];
    uint32_t n = kl_c_operands(p->g, v, m, o);
    for (uint32_t i = 0; i < in->nargs; i++) { /* subscripts, extents */
        kl_val a = kl_arg(p->f, v, i);
        if (kl_type_of(p->f, a)->kind == KL_T_TILE && gv(p, a)->one && kl_c_unfinished(p, a))
            return false;
    }
    if (in->op == KL_OP_load) {
        struct map w = kl_c_walk(kl_type_of(p->f, v));
        uint32_t r, dim[KL_MAX_RANK];
        kl_c_space(kl_type_of(p->f, v), &r, dim);
        bool ident =
            r == c->n->rank && !memcmp(dim, c->n->dim, sizeof dim) && !memcmp(&w, m, sizeof w);
        if (!check_load(c, v, ident))
            return false;
    }
    if (n == UINT32_MAX) { /* joins axes: through memory */
        if (!c->dry)
            kl_c_mark(p, kl_arg(p->f, v, 0));
        return true;
    }
    if (in->op == KL_OP_extract && !kl_c_static_part(p->f, v)) {
        kl_val u = kl_c_strip(p->g, kl_arg(p->f, v, 0));
        if (kl_c_unfinished(p, u))
            return false;
        if (!c->dry && gv(p, u)->mat)
            kl_c_touch(p, c->s, kl_c_buffer(p, u), c->root, false, false, false);
        return true;
    }
    if (in->op == KL_OP_gather) {
        kl_val u = kl_c_strip(p->g, kl_arg(p->f, v, 0));
        if (kl_c_unfinished(p, u))
            return false;
        if (!c->dry && gv(p, u)->mat)
            kl_c_touch(p, c->s, kl_c_buffer(p, u), c->root, false, false, false);
    }
    for (uint32_t i = 0; i < n; i++) {
        kl_val a = o[i].v;
        if (!c->dry && !gv(p, a)->one) {
            if (in->op == KL_OP_broadcast && repeats(c, a, &o[i].m))
                kl_c_mark(p, a);
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
        return !kl_c_unfinished(p, v);
    kl_val u = kl_c_strip(p->g, v);
    if (gv(p, u)->mat) {
        const struct kl_type *t = kl_type_of(p->f, v);
        struct ix lin = kl_c_linear(t->rank, t->dim, m);
        bool ident = kl_c_is_walk(c->n, &lin);
        if (kl_c_unfinished(p, u) && (!ident || gv(p, u)->late))
            return false;
        if (!c->dry)
            kl_c_touch(p, c->s, kl_c_buffer(p, u), c->root, false, false, ident);
        return true;
    }
    if (!kl_c_first_time(&c->seen, v, m))
        return true;
    if (!c->dry) {
        struct gval *x = gv(p, v);
        if (x->seen != p->open_id) {
            x->seen = p->open_id;
            x->pulls++;
        }
        if (x->depth < p->depth && (kl_c_cost(p, v) > 2 || x->loads))
            kl_c_mark(p, v); /* would be computed in each round of a loop */
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
    if (r->kind == R_STORE && kl_in(p->f, r->v)->op != KL_OP_insert)
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

void kl_c_add_root(struct plan *p, struct root r, const struct kl_type *space, uint32_t pos)
{
    uint32_t rank, dim[KL_MAX_RANK];
    kl_c_space(space, &rank, dim);
    r.at = kl_c_walk(space);
    if (!fits(p, &r, rank, dim)) {
        kl_c_close_nest(p);
        p->open = kl_c_step_new(p, ST_NEST, (kl_val){0});
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
    if (r.kind == R_STORE && kl_in(p->f, r.v)->op != KL_OP_insert) {
        struct kl_effect eff = kl_effect(p->f, r.v);
        for (uint32_t i = own; i < p->loads.n; i++) /* an overlapping update in place */
            if (kl_conflict(p->f, eff, kl_effect(p->f, p->loads.v[i])) &&
                !(p->ident.v[i] && same_place(p->f, p->loads.v[i], r.v)))
                kl_c_mark(p, p->loads.v[i]);
        p->eff.write |= eff.write;
        struct event e = {pos, eff, r.v, p->open_id};
        kl_push(p->a, &p->events, e);
    }
    if (r.buf) {
        struct ix lin = kl_c_linear(r.brank, r.bdim, &r.to);
        kl_c_touch(p, p->open, r.buf, n->root.n, true,
                   r.kind != R_STORE || kl_is_atomic(kl_in(p->f, r.v)->op),
                   r.kind == R_PUT && kl_c_is_walk(n, &lin));
    }
    kl_push(p->a, &n->root, r);
    if (r.v.id)
        gv(p, r.v)->nest = p->open_id;
}

/* Value src to a buffer, at the place of its own elements. */
void kl_c_put_value(struct plan *p, kl_val v, kl_val src, uint32_t buf, uint32_t pos)
{
    const struct kl_type *t = kl_type_of(p->f, src);
    struct root r = {.kind = R_PUT,
                     .v = v,
                     .src = src,
                     .buf = buf,
                     .brank = t->rank,
                     .elem = p->g->buf.v[buf].elem,
                     .to = kl_c_walk(t)};
    memcpy(r.bdim, t->dim, sizeof r.bdim);
    kl_c_add_root(p, r, t, pos);
}

void kl_c_copy(struct plan *p, uint32_t src, uint32_t dst)
{
    struct step *s = kl_c_step_new(p, ST_COPY, (kl_val){0});
    s->src = src;
    s->dst = dst;
    kl_c_touch(p, s, src, 0, false, false, true);
    kl_c_touch(p, s, dst, 0, true, true, true);
    kl_push(p->a, p->out, s);
}

/* v to a buffer of its type: copied if it lies in one, else computed there. */
void kl_c_to_buffer(struct plan *p, kl_val v, uint32_t buf, uint32_t pos)
{
    kl_val u = kl_c_strip(p->g, v);
    if (!gv(p, u)->mat) {
        kl_c_put_value(p, (kl_val){0}, v, buf, pos);
        return;
    }
    kl_c_close_nest(p); /* it may read or write either buffer */
    if (kl_c_buffer(p, u) != buf)
        kl_c_copy(p, kl_c_buffer(p, u), buf);
}
