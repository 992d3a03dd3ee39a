/* pad.c - the check for folds over padding: which loads reached past their arrays, before which folds.
 *
 * Each load leaves behind along which axes its last execution got no element of the array.  A fold
 * that is executed takes that down of the loads that it is made of.  Whether the value that they
 * read there is neutral in the fold follows from the IR (ir/pad.h), when all programs have run. */
#include "gen/interp/run.h"
#include "ir/pad.h"

struct folded {
    kl_val v;
    uint32_t n;
    uint32_t *load;
    uint8_t *seen; /* axes, as bits, of each */
};

struct kl_padding {
    uint8_t *now;   /* of each load: axes, as bits */
    uint8_t *asked; /* is it one that some fold is made of? */
    bool *data;
    void *work;
    KL_VEC(struct folded *) fold;
    struct folded **of; /* by instruction; NULL: none */
};

/* ---- before the run ---- */

static bool is_fold_op(uint16_t op)
{
    return op == KL_OP_reduce || op == KL_OP_argmax || op == KL_OP_argmin || op == KL_OP_dot;
}

/* Loads that a value is made of. */
static void trace(const kl_fn *f, kl_val v, uint8_t *seen, struct folded *x)
{
    const struct kl_ins *in = kl_in(f, v);
    if (seen[v.id] || kl_type_of(f, v)->kind != KL_T_TILE)
        return;
    seen[v.id] = 1;
    if (in->op == KL_OP_load) {
        if (kl_type_of(f, v)->rank)
            x->load[x->n++] = v.id;
        return;
    }
    if (in->op == KL_OP_result && kl_in(f, in->attr.result.of)->op != KL_OP_if) {
        kl_val of = in->attr.result.of; /* of a loop: what a round makes */
        kl_blk own[2];
        uint32_t n = kl_is_fold(f, of) ? 0 : kl_blocks(f, of, own);
        if (n)
            trace(f, kl_arg(f, kl_last(f, own[n - 1]), in->attr.result.index), seen, x);
        return;
    }
    if (kl_ops[in->op].attr == KL_A_ACCESS && in->op != KL_OP_inside)
        return;
    for (uint32_t i = 0; i < in->nargs && in->op != KL_OP_inside; i++)
        trace(f, kl_arg(f, v, i), seen, x);
}

/* One that goes lane by lane lists what it loses. */
static void note_load(struct kl_run *r, struct kl_padding *q, uint32_t id)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = &f->ins[id];
    bool lanes = in->attr.access.flags & KL_ACC_MASK;
    for (uint32_t d = 0; d < in->attr.access.n; d++)
        lanes |= kl_access_index(f, (kl_val){id}, d);
    q->asked[id] = 1;
    if (!lanes)
        return;
    if (!r->lost)
        r->lost = kl_new_n(r->a, uint8_t *, f->nins);
    if (!r->lost[id])
        r->lost[id] = kl_new_n(r->a, uint8_t, kl_numel(kl_type_of(f, (kl_val){id})));
}

void kl_padding_open(struct kl_run *r)
{
    const kl_fn *f = r->f;
    uint8_t *seen = kl_new_n(r->a, uint8_t, f->nins);
    uint32_t *load = kl_new_n(r->a, uint32_t, f->nins);
    struct kl_padding *q = kl_new(r->a, struct kl_padding);
    q->now = kl_new_n(r->a, uint8_t, f->nins);
    q->asked = kl_new_n(r->a, uint8_t, f->nins);
    q->of = kl_new_n(r->a, struct folded *, f->nins);
    for (uint32_t id = 1; id < f->nins; id++) {
        kl_val v = {id};
        if (!f->ins[id].blk.id || !is_fold_op(f->ins[id].op))
            continue;
        struct folded x = {.v = v, .load = load};
        memset(seen, 0, f->nins);
        for (uint32_t i = 0; i < f->ins[id].nargs; i++)
            trace(f, kl_arg(f, v, i), seen, &x);
        if (!x.n)
            continue;
        struct folded *y = kl_new(r->a, struct folded);
        *y = (struct folded){.v = v, .n = x.n, .load = kl_new_n(r->a, uint32_t, x.n),
                             .seen = kl_new_n(r->a, uint8_t, x.n)};
        memcpy(y->load, load, x.n * sizeof *load);
        for (uint32_t i = 0; i < x.n; i++)
            note_load(r, q, load[i]);
        kl_push(r->a, &q->fold, y);
        q->of[id] = y;
    }
    if (q->fold.n)
        r->padding = q;
}

/* ---- loads ---- */

/* Axes along which the section reaches past the extents. */
static uint8_t from_rows(const struct kl_walk *w)
{
    const struct kl_access *ac = w->ac;
    uint8_t axes = 0;
    for (uint32_t k = 0; !w->dead && k < w->naxis; k++) { /* axes that were joined lie inside */
        uint32_t i = 0;
        while (ac->axis_dim[i] != w->dim[k])
            i++;
        if (w->wild[k] || w->lo[k] > 0 || w->hi[k] < w->n[k])
            axes |= (uint8_t)(1u << ac->axis_tile[i]);
    }
    return axes;
}

/* Axes along which some line of the tile has both elements that are there and such that are not. */
static uint8_t from_lanes(const struct kl_type *t, const uint8_t *lost)
{
    uint64_t all = kl_numel(t), inner = all;
    uint8_t axes = 0;
    if (!memchr(lost, 1, all))
        return 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        inner /= t->dim[d];
        for (uint64_t i = inner; i < all && !(axes >> d & 1); i++)
            axes |= (uint8_t)((i / inner % t->dim[d] && lost[i] != lost[i - inner]) << d);
    }
    return axes;
}

/* A load that was made: the access has a list of what it lost, or none has been lost but by rows. */
void kl_padding_load(const struct kl_walk *w)
{
    uint32_t id = w->s->val.id;
    struct kl_padding *q = w->r->padding;
    if (q->asked[id])
        q->now[id] = w->ac->lost ? from_lanes(kl_type_of(w->r->f, w->s->val), w->ac->lost)
                                 : from_rows(w);
}

/* ---- folds ---- */

static bool do_note(struct kl_run *r, const struct kl_step *s)
{
    struct folded *x = r->padding->of[s->val.id];
    bool any = false, isnew;
    for (uint32_t i = 0; i < x->n; i++) {
        any |= r->padding->now[x->load[i]] != 0;
        x->seen[i] |= r->padding->now[x->load[i]];
    }
    if (any)
        kl_found(r, s, KL_K2702, UINT32_MAX, 0, &isnew);
    return true;
}

/* The step to be run before v; false: none. */
bool kl_padding_step(struct kl_run *r, kl_val v, struct kl_step *s)
{
    if (!r->padding || !r->padding->of[v.id])
        return false;
    *s = (struct kl_step){.exec = do_note, .val = v};
    return true;
}

/* ---- telling ---- */

enum { MOST_COPIES = 64 }; /* of a fold; they are alike */

struct told {
    const struct kl_run *r;
    const struct kl_finding *g;
    kl_diags *d;
};

static void as_warning(void *user, struct kl_diag *e)
{
    const struct told *t = user;
    t->d->nwarn++;
    e->pub.severity = KILN_WARNING;
    kl_tell_where(t->r, t->g, e, false);
}

/* Of the folds of one place (unrolling makes many) the first to which padding matters. */
void kl_tell_padding(struct kl_run *r, const struct kl_finding *g, kl_diags *d)
{
    const kl_fn *f = r->f;
    struct kl_padding *q = r->padding;
    struct told t = {r, g, d};
    uint8_t *out = kl_new_n(r->a, uint8_t, f->nins);
    if (!q->data)
        q->data = kl_data_of(r->a, f);
    kl_pad_in in = {.f = f, .a = r->a, .out = out, .data = q->data, .work = q->work};
    uint32_t most = MOST_COPIES;
    for (uint32_t i = 0, before = d->list.n; i < q->fold.n && most && d->list.n == before; i++) {
        const struct folded *x = q->fold.v[i];
        kl_span at = kl_in(f, x->v)->loc;
        if (at.beg != g->loc.beg || at.end != g->loc.end)
            continue;
        memset(out, 0, f->nins);
        for (uint32_t k = 0; k < x->n; k++)
            out[x->load[k]] = x->seen[k];
        bool any = false;
        for (uint32_t k = 0; k < x->n; k++)
            any |= x->seen[k] != 0;
        if (!any)
            continue;
        most--;
        in.only = x->v;
        kl_pad_notes(&in, d, as_warning, &t);
        q->work = in.work;
    }
}
