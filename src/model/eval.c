/* eval.c - values of a program, as far as masks, indices and conditions need them.
 *
 * First the slice: what these depend on, through loops and branches.  Then, as the programs run,
 * each of its values is computed element by element with the folder of constants, so that the
 * model's values are the interpreter's.  What depends on data that is not there is not known. */
#include "model/run.h"

kl_val kl_model_result(const kl_fn *f, kl_val v, uint32_t i)
{
    kl_val q = {kl_in(f, v)->next};
    while (i--)
        q.id = kl_in(f, q)->next;
    return q;
}

kl_val kl_model_given(const kl_fn *f, kl_val v, uint32_t block, uint32_t i)
{
    kl_blk own[2] = {{0}};
    kl_blocks(f, v, own);
    kl_val q = {f->blk[own[block].id].first};
    i += kl_in(f, v)->op == KL_OP_for; /* behind the induction variable */
    while (i--)
        q.id = kl_in(f, q)->next;
    return q;
}

kl_val kl_model_mask(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    if (!(in->attr.access.flags & KL_ACC_MASK))
        return (kl_val){0};
    return kl_arg(f, v, in->nargs - 1u);
}

/* ---- the slice ---- */

struct slicer {
    struct mrun *r;
    KL_VEC(kl_val) todo;
};

static void want(struct slicer *s, kl_val v)
{
    struct mval *m = &s->r->val[v.id];
    if (!v.id || m->needed || kl_type_of(s->r->f, v)->kind != KL_T_TILE)
        return;
    m->needed = true;
    kl_push(s->r->a, &s->todo, v);
}

static void want_args(struct slicer *s, kl_val v, uint32_t from)
{
    for (uint32_t i = from; i < kl_in(s->r->f, v)->nargs; i++)
        want(s, kl_arg(s->r->f, v, i));
}

/* May the elements of an array be read here?  It has data, and nothing writes it. */
static bool has_data(const struct mrun *r, uint32_t root)
{
    return r->in->param[root].data && !r->f->param[root].written && !r->f->may_alias;
}

/* What value i that v carries, or results in, depends on. */
static void want_carried(struct slicer *s, kl_val v, uint32_t i)
{
    const kl_fn *f = s->r->f;
    kl_blk own[2] = {{0}};
    uint32_t op = kl_in(f, v)->op, n = kl_blocks(f, v, own);
    if (op == KL_OP_if) {
        want(s, kl_model_result(f, v, i));
        for (uint32_t k = 0; k < n; k++)
            want(s, kl_arg(f, kl_last(f, own[k]), i));
    } else if (op == KL_OP_for || op == KL_OP_while) {
        want(s, kl_model_result(f, v, i));
        want(s, kl_arg(f, v, i + (op == KL_OP_for ? 3 : 0)));
        for (uint32_t k = 0; k < n; k++)
            want(s, kl_model_given(f, v, k, i));
        want(s, kl_arg(f, kl_last(f, own[n - 1]), i));
    }
}

static void follow(struct slicer *s, kl_val v)
{
    const kl_fn *f = s->r->f;
    const struct kl_ins *in = kl_in(f, v);
    switch (in->op) {
    case KL_OP_param: {
        kl_val owner = f->blk[in->blk.id].owner;
        if (!owner.id)
            return;
        uint32_t i = (uint32_t)in->attr.index;
        bool loop = kl_in(f, owner)->op == KL_OP_for;
        if (!loop || i)
            want_carried(s, owner, i - loop);
        return;
    }
    case KL_OP_result: want_carried(s, in->attr.result.of, in->attr.result.index); return;
    case KL_OP_load:
        if (has_data(s->r, kl_root(f, kl_arg(f, v, 0))))
            want_args(s, v, 1);
        return;
    case KL_OP_inside: want_args(s, v, 1); return;
    default:
        if (kl_ops[in->op].flags & KL_F_PURE)
            want_args(s, v, 0);
    }
}

static void want_access(struct slicer *s, kl_val v)
{
    const kl_fn *f = s->r->f;
    const struct kl_ins *in = kl_in(f, v);
    for (kl_val u = kl_arg(f, v, 0); kl_in(f, u)->op == KL_OP_view; u = kl_arg(f, u, 0))
        want_args(s, u, 1);
    for (uint32_t d = 0; d < in->attr.access.n; d++)
        want(s, kl_arg(f, v, 1 + d));
    if (in->attr.access.flags & KL_ACC_MASK)
        want(s, kl_model_mask(f, v));
}

/* A value that is computed once: from constants and what the launch is given. */
static bool is_fixed(const struct mrun *r, kl_val v)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    if (in->op == KL_OP_const || in->op == KL_OP_iota || in->op == KL_OP_num_programs ||
        in->op == KL_OP_num_sms)
        return true;
    if (in->op == KL_OP_param)
        return !f->blk[in->blk.id].owner.id;
    if (!(kl_ops[in->op].flags & KL_F_PURE) || in->op == KL_OP_program_id ||
        in->op == KL_OP_result || in->op == KL_OP_inside)
        return false;
    for (uint32_t i = 0; i < in->nargs; i++)
        if (!r->val[kl_arg(f, v, i).id].fixed)
            return false;
    return true;
}

static void make_fixed(struct mrun *r, kl_blk b)
{
    kl_each_ins (r->f, b, v) {
        kl_blk own[2];
        r->val[v.id].fixed = is_fixed(r, v);
        for (uint32_t i = 0, n = kl_blocks(r->f, v, own); i < n; i++)
            make_fixed(r, own[i]);
    }
}

void kl_model_slice(struct mrun *r)
{
    const kl_fn *f = r->f;
    struct slicer s = {.r = r};
    for (uint32_t i = 1; i < f->nins; i++) {
        kl_val v = {i};
        const struct kl_ins *in = kl_in(f, v);
        if (!in->blk.id)
            continue;
        if (in->op == KL_OP_load || in->op == KL_OP_store || in->op == KL_OP_inside ||
            kl_is_atomic(in->op))
            want_access(&s, v);
        else if (r->parts[i])
            for (uint32_t k = 0; k < (in->op == KL_OP_gather ? 1u : in->attr.access.n); k++)
                want(&s, kl_arg(f, v, 1 + k));
        else if (in->op == KL_OP_for)
            for (uint32_t k = 0; k < 3; k++)
                want(&s, kl_arg(f, v, k));
        else if (in->op == KL_OP_if)
            want(&s, kl_arg(f, v, 0));
        else if (in->op == KL_OP_while)
            want(&s, kl_arg(f, kl_last(f, in->attr.blk[0]), 0));
    }
    for (uint32_t i = 0; i < s.todo.n; i++)
        follow(&s, s.todo.v[i]);
    make_fixed(r, KL_BODY);
    for (uint32_t i = 0; i < s.todo.n; i++) {
        struct mval *m = &r->val[s.todo.v[i].id];
        m->n = (uint32_t)kl_numel(kl_type_of(f, s.todo.v[i]));
        m->v = kl_new_n(r->a, uint64_t, m->n);
    }
}

/* ---- values ---- */

/* Coordinates of element i of a tile, row-major. */
static void coordinates(const struct kl_type *t, uint32_t i, uint32_t x[KL_MAX_RANK])
{
    for (uint32_t d = t->rank; d-- > 0; i /= t->dim[d])
        x[d] = i % t->dim[d];
}

static uint32_t number(const struct kl_type *t, const uint32_t *x)
{
    uint32_t i = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        i = i * t->dim[d] + x[d];
    return i;
}

static bool load(struct mrun *r, kl_val v, struct mval *out)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, v);
    struct msection s;
    const char *why;
    kl_val mask = kl_model_mask(f, v), fill = {0};
    if (in->attr.access.flags & KL_ACC_FILL)
        fill = kl_arg(f, v, 1u + in->attr.access.n);
    if (!kl_model_section(r, v, &s, &why) || !has_data(r, s.root) ||
        (mask.id && !kl_model_known(r, mask)) || (fill.id && !kl_model_known(r, fill)))
        return false;
    const kl_model_param *p = &r->in->param[s.root];
    uint32_t bytes = kl_elems[t->elem].bytes;
    for (uint32_t i = 0; i < out->n; i++) {
        uint32_t x[KL_MAX_RANK] = {0};
        int64_t off;
        coordinates(t, i, x);
        out->v[i] = fill.id ? r->val[fill.id].v[i] : 0;
        if ((mask.id && !r->val[mask.id].v[i]) || !kl_model_element(r, v, &s, x, &off))
            continue;
        uintptr_t at = (uintptr_t)p->data + (uintptr_t)off * bytes;
        if (at < (uintptr_t)p->lo || at > (uintptr_t)p->hi || (uintptr_t)p->hi - at < bytes)
            return false;
        out->v[i] = kl_elem_load((enum kl_elem)t->elem, (const void *)at);
        if (t->elem == KL_bool)
            out->v[i] = out->v[i] != 0;
    }
    return true;
}

static bool inside(struct mrun *r, kl_val v, struct mval *out)
{
    const struct kl_type *t = kl_type_of(r->f, v);
    struct msection s;
    const char *why;
    if (!kl_model_section(r, v, &s, &why))
        return false;
    for (uint32_t i = 0; i < out->n; i++) {
        uint32_t x[KL_MAX_RANK] = {0};
        int64_t off;
        coordinates(t, i, x);
        out->v[i] = kl_model_element(r, v, &s, x, &off);
    }
    return true;
}

static bool elementwise(struct mrun *r, kl_val v, struct mval *out)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t of = in->op == KL_OP_select ? 1 : 0;
    enum kl_elem e = (enum kl_elem)kl_type_of(f, kl_arg(f, v, of))->elem;
    const struct mval *a[3] = {NULL};
    for (uint32_t i = 0; i < in->nargs && i < 3; i++) {
        a[i] = &r->val[kl_arg(f, v, i).id];
        if (!a[i]->known)
            return false;
    }
    for (uint32_t i = 0; i < out->n; i++) {
        uint64_t x[3] = {0};
        for (uint32_t k = 0; k < in->nargs && k < 3; k++)
            x[k] = a[k]->v[i];
        if (!kl_fold((enum kl_op)in->op, (enum kl_elem)kl_type_of(f, v)->elem, e, x, &out->v[i]))
            return false;
    }
    return true;
}

/* Element x of the result comes from which element of operand 0. */
static bool moved(struct mrun *r, kl_val v, struct mval *out)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, v), *from = kl_type_of(f, kl_arg(f, v, 0));
    const struct mval *a = &r->val[kl_arg(f, v, 0).id];
    if (!a->known)
        return false;
    for (uint32_t i = 0; i < out->n; i++) {
        uint32_t x[KL_MAX_RANK] = {0}, y[KL_MAX_RANK] = {0};
        if (in->op == KL_OP_reshape) {
            out->v[i] = a->v[i];
            continue;
        }
        coordinates(t, i, x);
        for (uint32_t d = 0; d < from->rank; d++) {
            if (in->op == KL_OP_broadcast)
                y[d] = from->dim[d] == 1 ? 0 : x[t->rank - from->rank + d];
            else if (in->op == KL_OP_flip)
                y[d] = d == (uint32_t)in->attr.index ? t->dim[d] - 1 - x[d] : x[d];
        }
        for (uint32_t d = 0; in->op == KL_OP_permute && d < t->rank; d++)
            y[f->aux[in->attr.aux.at + d]] = x[d];
        out->v[i] = a->v[number(from, y)];
    }
    return true;
}

static bool cat(struct mrun *r, kl_val v, struct mval *out)
{
    const kl_fn *f = r->f;
    const struct kl_type *t = kl_type_of(f, v), *ta = kl_type_of(f, kl_arg(f, v, 0));
    const struct kl_type *tb = kl_type_of(f, kl_arg(f, v, 1));
    const struct mval *a = &r->val[kl_arg(f, v, 0).id], *b = &r->val[kl_arg(f, v, 1).id];
    uint32_t axis = (uint32_t)kl_in(f, v)->attr.index;
    if (!a->known || !b->known)
        return false;
    for (uint32_t i = 0; i < out->n; i++) {
        uint32_t x[KL_MAX_RANK] = {0};
        coordinates(t, i, x);
        bool first = x[axis] < ta->dim[axis];
        if (!first)
            x[axis] -= ta->dim[axis];
        out->v[i] = first ? a->v[number(ta, x)] : b->v[number(tb, x)];
    }
    return true;
}

/* Any order will do: only integers are folded. */
static bool reduce(struct mrun *r, kl_val v, struct mval *out)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_val av = kl_arg(f, v, 0);
    const struct kl_type *t = kl_type_of(f, v), *from = kl_type_of(f, av);
    const struct mval *a = &r->val[av.id];
    if (!a->known || kl_is_float((enum kl_elem)t->elem))
        return false;
    bool *seen = kl_new_n(r->a, bool, out->n);
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t x[KL_MAX_RANK] = {0};
        coordinates(from, i, x);
        x[in->attr.red.axis] = 0;
        uint32_t o = number(t, x);
        uint64_t args[3] = {out->v[o], a->v[i], 0};
        if (!seen[o])
            out->v[o] = a->v[i];
        else if (!kl_fold((enum kl_op)in->attr.red.op, (enum kl_elem)t->elem,
                          (enum kl_elem)from->elem, args, &out->v[o]))
            return false;
        seen[o] = true;
    }
    return true;
}

/* Elements of a tile at places that are known; 0 outside. */
static bool extract(struct mrun *r, kl_val v, struct mval *out)
{
    const kl_fn *f = r->f;
    kl_val av = kl_arg(f, v, 0);
    const struct kl_type *t = kl_type_of(f, v), *from = kl_type_of(f, av);
    const struct mval *a = &r->val[av.id];
    if (!a->known)
        return false;
    for (uint32_t d = 0; d < from->rank; d++)
        if (!kl_model_known(r, kl_arg(f, v, 1 + d)))
            return false;
    for (uint32_t i = 0; i < out->n; i++) {
        uint32_t x[KL_MAX_RANK] = {0}, y[KL_MAX_RANK] = {0}, axis = 0;
        bool in = true;
        coordinates(t, i, x);
        for (uint32_t d = 0; d < from->rank; d++) {
            int64_t step = kl_access_step(f, v, d), p = kl_model_int(r, kl_arg(f, v, 1 + d));
            p = kl_model_add(p, step ? kl_model_mul(step, x[axis++]) : 0);
            in &= p >= 0 && p < from->dim[d];
            y[d] = (uint32_t)p;
        }
        out->v[i] = in ? a->v[number(from, y)] : 0;
    }
    return true;
}

static bool table(struct mrun *r, kl_val v, struct mval *out)
{
    const kl_fn *f = r->f;
    const enum kl_elem e = (enum kl_elem)kl_type_of(f, v)->elem;
    for (uint32_t i = 0; i < out->n; i++)
        out->v[i] = kl_canon(e, (uint64_t)f->aux[kl_in(f, v)->attr.aux.at + i]);
    return true;
}

static bool one(uint64_t x, struct mval *out)
{
    for (uint32_t i = 0; i < out->n; i++)
        out->v[i] = x;
    return true;
}

static bool compute(struct mrun *r, kl_val v, struct mval *out)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    if (kl_ops[in->op].flags & KL_F_EW)
        return elementwise(r, v, out);
    switch (in->op) {
    case KL_OP_const: return one(in->attr.bits, out);
    case KL_OP_param: return one(r->in->param[in->attr.index].bits, out);
    case KL_OP_program_id: return one((uint64_t)r->pid[in->attr.index], out);
    case KL_OP_num_programs: return one((uint64_t)r->in->grid[in->attr.index], out);
    case KL_OP_num_sms: return r->in->num_sms > 0 && one((uint64_t)r->in->num_sms, out);
    case KL_OP_iota:
        for (uint32_t i = 0; i < out->n; i++)
            out->v[i] = i;
        return true;
    case KL_OP_broadcast:
    case KL_OP_reshape:
    case KL_OP_permute:
    case KL_OP_flip: return moved(r, v, out);
    case KL_OP_cat: return cat(r, v, out);
    case KL_OP_reduce: return reduce(r, v, out);
    case KL_OP_load: return load(r, v, out);
    case KL_OP_inside: return inside(r, v, out);
    case KL_OP_extract: return extract(r, v, out);
    case KL_OP_table: return table(r, v, out);
    default: return false; /* folds by a block and so on */
    }
}

void kl_model_eval(struct mrun *r, kl_val v)
{
    struct mval *m = &r->val[v.id];
    const struct kl_ins *in = kl_in(r->f, v);
    /* what loops and branches hand over is set by them */
    if (!m->needed || m->done || in->op == KL_OP_result ||
        (in->op == KL_OP_param && r->f->blk[in->blk.id].owner.id))
        return;
    r->work += 1 + m->n / 8;
    m->known = compute(r, v, m);
    m->done = m->fixed;
    if (m->known && r->most)
        for (uint32_t i = 0; i < m->n; i++) {
            uint64_t x = (int64_t)m->v[i] < 0 ? 0 - m->v[i] : m->v[i];
            r->most[v.id] = x > r->most[v.id] ? x : r->most[v.id];
        }
}
