/* passes.c - the same computation as separate passes.
 *
 * A pass is one operation on tiles, as a library of array operations would run it: it reads each
 * operand from memory and writes its result there.  What such a library does without a pass counts
 * nothing: names of the same elements (reshape, broadcast, permute), conversions of type (done
 * where the value is read), constants, numbers of places, and conditions that depend on no data.  An
 * operand that an access loads is read from its array, each byte once; what a loop carries stays where
 * it is until the loop ends. */
#include "ir/pad.h"
#include "model/run.h"

struct passes {
    const struct mrun *r;
    bool *data;    /* depends on an element of an array */
    bool *carried; /* by a loop, or handed to one */
};

static kl_val see_through(const kl_fn *f, kl_val v)
{
    for (;;) {
        switch (kl_in(f, v)->op) {
        case KL_OP_broadcast:
        case KL_OP_reshape:
        case KL_OP_permute:
        case KL_OP_flip:
        case KL_OP_convert:
        case KL_OP_tf32:
        case KL_OP_bitcast: v = kl_arg(f, v, 0); break;
        default: return v;
        }
    }
}

static bool is_pass(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    if (in->blk.id && kl_is_fold(f, v))
        return true;
    if (in->blk.id && (in->op == KL_OP_reduce || in->op == KL_OP_argmax || in->op == KL_OP_argmin))
        return true;
    if (!kl_model_is_tile(f, v))
        return false;
    switch (in->op) {
    case KL_OP_dot:
    case KL_OP_gather:
    case KL_OP_cat: return true;
    case KL_OP_convert:
    case KL_OP_tf32:
    case KL_OP_bitcast: return false;
    default: return (kl_ops[in->op].flags & KL_F_EW) != 0;
    }
}

/* The fold of what a loop has added up, element by element: one pass with the loop's. */
static bool ends_loop(const kl_fn *f, kl_val v)
{
    uint32_t op = kl_in(f, v)->op;
    if (op != KL_OP_reduce && op != KL_OP_argmax && op != KL_OP_argmin)
        return false;
    kl_val a = see_through(f, kl_arg(f, v, 0));
    if (kl_in(f, a)->op != KL_OP_result)
        return false;
    op = kl_in(f, kl_in(f, a)->attr.result.of)->op;
    return op == KL_OP_for || op == KL_OP_while;
}

static void find_carried(struct passes *p, kl_blk b)
{
    const kl_fn *f = p->r->f;
    kl_each_ins (f, b, v) {
        kl_blk own[2];
        uint32_t n = kl_blocks(f, v, own);
        if (kl_is_fold(f, v))
            continue; /* its block is part of the pass */
        for (uint32_t i = 0; i < n; i++) {
            find_carried(p, own[i]);
            kl_val y = kl_last(f, own[i]);
            for (uint32_t k = 0; y.id && k < kl_in(f, y)->nargs && kl_in(f, v)->op != KL_OP_if; k++)
                p->carried[kl_arg(f, y, k).id] = true;
        }
    }
}

/* Of the elements of a shape, the share that accesses of that shape have inside. */
static double share_of(const struct mrun *r, const struct kl_type *t)
{
    for (uint32_t i = 0; i < r->tr->access.n; i++) {
        const struct maccess *a = &r->access[i];
        const kl_model_access *o = &r->m->access.v[a->out];
        uint64_t all = o->runs * kl_numel(t);
        if (!kl_same_shape(kl_access_tile(r->f, a->rec->at), t) || !all || o->unknown || o->masked)
            continue;
        /* replicas that load count once */
        uint64_t copies =
            a->rec->l ? kl_layout_threads_places(a->rec->l) / kl_layout_total(a->rec->l) : 1;
        copies = a->rec->once ? 1 : copies;
        double s =
            (double)o->t.bytes / (double)copies / (double)kl_elems[o->elem].bytes / (double)all;
        return s < 1 ? s : 1;
    }
    return 1;
}

static double elements(const struct passes *p, kl_val v, uint64_t times)
{
    const struct kl_type *t = kl_type_of(p->r->f, v);
    return (double)times * (double)kl_numel(t) * share_of(p->r, t);
}

/* Bytes of reading value v, `times` executions of the pass. */
static double read_cost(struct passes *p, kl_val v, uint64_t times)
{
    const kl_fn *f = p->r->f;
    v = see_through(f, v);
    const struct kl_ins *in = kl_in(f, v);
    if (!p->data[v.id] || kl_type_of(f, v)->kind != KL_T_TILE)
        return 0;
    if (in->op == KL_OP_param) /* carried by a loop */
        return 0;
    double bytes = elements(p, v, times) * kl_elems[kl_type_of(f, v)->elem].bytes;
    if (in->op == KL_OP_load) {
        uint32_t root = kl_root(f, kl_arg(f, v, 0));
        for (uint32_t i = 0; i < p->r->m->array.n; i++) {
            const kl_model_array *a = &p->r->m->array.v[i];
            if (a->param == root && a->unique_read && (double)a->unique_read < bytes)
                bytes = (double)a->unique_read;
        }
    }
    return bytes;
}

/* A result that is only converted lies in memory as what it becomes. */
static uint32_t bytes_written(const kl_fn *f, kl_val v)
{
    uint32_t bytes = kl_elems[kl_type_of(f, v)->elem].bytes, least = 0;
    for (uint32_t i = 1; i < f->nins; i++)
        for (uint32_t k = 0; f->ins[i].blk.id && k < f->ins[i].nargs; k++)
            if (kl_arg(f, (kl_val){i}, k).id == v.id) {
                uint32_t to = f->ins[i].op == KL_OP_convert
                                  ? kl_elems[kl_type_of(f, (kl_val){i})->elem].bytes
                                  : bytes;
                least = to > least ? to : least;
            }
    return least && least < bytes ? least : bytes;
}

/* Is what a loop leaves used by nothing but such folds? */
static bool only_ends(const kl_fn *f, kl_val v)
{
    bool any = false;
    for (uint32_t i = 1; i < f->nins; i++)
        for (uint32_t k = 0; f->ins[i].blk.id && k < f->ins[i].nargs; k++)
            if (kl_arg(f, (kl_val){i}, k).id == v.id) {
                if (!ends_loop(f, (kl_val){i}))
                    return false;
                any = true;
            }
    return any;
}

void kl_model_passes_of(struct mrun *r)
{
    const kl_fn *f = r->f;
    struct passes p = {
        .r = r, .data = kl_data_of(r->a, f), .carried = kl_new_n(r->a, bool, f->nins)};
    kl_model_passes *out = &r->m->passes;
    double read = 0, written = 0;
    find_carried(&p, KL_BODY);
    for (uint32_t i = 1; i < f->nins; i++) {
        kl_val v = {i};
        const struct kl_ins *in = kl_in(f, v);
        uint64_t times = in->blk.id ? kl_model_times(r, v) : 0;
        if (!times || !is_pass(f, v) || !p.data[v.id])
            continue;
        bool ends = ends_loop(f, v);
        out->n += !ends;
        for (uint32_t k = 0; k < in->nargs && !ends; k++) {
            bool again = false;
            for (uint32_t j = 0; j < k; j++)
                again |= see_through(f, kl_arg(f, v, j)).id == see_through(f, kl_arg(f, v, k)).id;
            read += again ? 0 : read_cost(&p, kl_arg(f, v, k), times);
        }
        uint32_t nres = kl_is_fold(f, v) && in->nargs > 1 ? in->nargs : 1;
        for (uint32_t k = 0; k < nres; k++) {
            kl_val res = nres > 1 ? kl_model_result(f, v, k) : v;
            if (!p.carried[res.id])
                written += elements(&p, res, times) * bytes_written(f, res);
        }
    }
    for (uint32_t i = 1; i < f->nins; i++) { /* what loops leave behind is written once */
        kl_val v = {i};
        const struct kl_ins *in = kl_in(f, v);
        if (!in->blk.id || in->op != KL_OP_result || !kl_model_is_tile(f, v) ||
            kl_is_fold(f, in->attr.result.of) || kl_in(f, in->attr.result.of)->op == KL_OP_if ||
            only_ends(f, v))
            continue;
        written += elements(&p, v, kl_model_times(r, v)) * bytes_written(f, v);
    }
    out->fused = r->m->moved;
    if (!out->n) {
        out->read = out->fused;
        out->ratio = 1;
        return;
    }
    out->read = (uint64_t)(read + 0.5);
    out->written = (uint64_t)(written + 0.5);
    out->ratio = out->fused ? (read + written) / (double)out->fused : 0;
}
