/* static.c - what follows from the IR and from how often each instruction is executed: work, passes,
 * products, why accesses are narrow. */
#include <stdio.h>

#include "model/run.h"

/* ---- work ---- */

static bool is_special(enum kl_op op)
{
    switch (op) {
    case KL_OP_sqrt:
    case KL_OP_exp:
    case KL_OP_exp2:
    case KL_OP_log:
    case KL_OP_rsqrt:
    case KL_OP_tanh:
    case KL_OP_erf:
    case KL_OP_erfc:
    case KL_OP_sin:
    case KL_OP_cos:
    case KL_OP_log2:
    case KL_OP_log1p:
    case KL_OP_expm1:
    case KL_OP_pow:
    case KL_OP_fmod:
    case KL_OP_sigmoid: return true;
    default: return false;
    }
}

/* Operations that compute nothing: bits move, or types change. */
static bool is_free(enum kl_op op)
{
    return op == KL_OP_select || op == KL_OP_convert || op == KL_OP_convert_nan ||
           op == KL_OP_bitcast || op == KL_OP_neg || op == KL_OP_abs || op == KL_OP_copysign;
}

static void count(kl_model_work *w, enum kl_elem e, uint64_t n)
{
    if (e == KL_f64)
        w->fp64 += n;
    else if (e == KL_f32)
        w->fp32 += n;
    else if (kl_is_float(e))
        w->fp16 += n;
    else if (e != KL_bool)
        w->integer += n;
}

/* A tile: scalars are the same in all threads, and are no work to speak of. */
static bool is_tile(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    return in->blk.id && in->type.id && kl_type_of(f, v)->kind == KL_T_TILE &&
           kl_type_of(f, v)->rank > 0;
}

static uint64_t numel(const kl_fn *f, kl_val v)
{
    return kl_numel(kl_type_of(f, v));
}

/* Operations of one run of the block of a fold. */
static void count_block(const kl_fn *f, kl_blk b, uint64_t times, kl_model_work *w)
{
    kl_each_ins (f, b, v) {
        const struct kl_ins *in = kl_in(f, v);
        kl_blk own[2];
        for (uint32_t i = 0, n = kl_blocks(f, v, own); i < n; i++)
            count_block(f, own[i], times, w);
        if (!(kl_ops[in->op].flags & KL_F_EW) || is_free((enum kl_op)in->op))
            continue;
        if (is_special((enum kl_op)in->op))
            w->special += times;
        else
            count(w, (enum kl_elem)kl_type_of(f, kl_arg(f, v, 0))->elem,
                  times * (in->op == KL_OP_fma ? 2 : 1));
    }
}

void kl_model_work_of(struct mrun *r)
{
    const kl_fn *f = r->f;
    kl_model_work *w = &r->m->work;
    for (uint32_t i = 1; i < f->nins; i++) {
        kl_val v = {i};
        const struct kl_ins *in = kl_in(f, v);
        uint64_t times = in->blk.id ? kl_model_times(r, v) : 0;
        if (!times)
            continue;
        enum kl_op op = (enum kl_op)in->op;
        if (kl_is_fold(f, v)) {
            uint64_t n = numel(f, kl_arg(f, v, 0));
            const struct kl_type *t = kl_type_of(f, kl_arg(f, v, 0));
            if (op == KL_OP_reduce_fn)
                n -= n / t->dim[in->attr.redfn.axis];
            count_block(f, in->attr.redfn.blk, times * n, w);
            continue;
        }
        if (!is_tile(f, v))
            continue;
        enum kl_elem e = (enum kl_elem)kl_type_of(f, in->nargs ? kl_arg(f, v, 0) : v)->elem;
        uint64_t n = numel(f, v);
        if (kl_ops[op].flags & KL_F_EW) {
            if (is_special(op))
                w->special += times * n;
            else if (!is_free(op))
                count(w, e, times * n * (op == KL_OP_fma ? 2 : 1));
        } else if (op == KL_OP_reduce || op == KL_OP_argmax || op == KL_OP_argmin) {
            count(w, e, times * (numel(f, kl_arg(f, v, 0)) - n));
        } else if (op == KL_OP_dot) {
            const struct kl_type *a = kl_type_of(f, kl_arg(f, v, 0));
            uint64_t k = 2 * times * n * a->dim[a->rank - 1];
            count(w, (enum kl_elem)kl_type_of(f, v)->elem, k);
            w->dot += k;
        }
    }
}

/* ---- passes ----
 *
 * A pass is one operation on tiles, as a library of array operations would run it: it reads each
 * operand from memory and writes its result there.  What such a library does without a pass counts
 * nothing: names of the same elements (reshape, broadcast, permute), conversions of type (done
 * where the value is read), constants, numbers of places, and conditions that depend on no data.  An
 * operand that an access loads is read from its array, each byte once; what a loop carries stays where
 * it is until the loop ends. */

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
    if (!is_tile(f, v))
        return false;
    switch (in->op) {
    case KL_OP_dot:
    case KL_OP_gather:
    case KL_OP_cat: return true;
    case KL_OP_convert:
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

static bool depends(struct passes *p, kl_val v)
{
    const kl_fn *f = p->r->f;
    const struct kl_ins *in = kl_in(f, v);
    if (in->op == KL_OP_load || in->op == KL_OP_atomic || in->op == KL_OP_atomic_load)
        return kl_numel(kl_type_of(f, v)) > 1;
    if (in->op == KL_OP_result || (in->op == KL_OP_param && f->blk[in->blk.id].owner.id))
        return in->type.id && kl_type_of(f, v)->rank > 0;
    for (uint32_t i = 0; i < in->nargs; i++)
        if (p->data[kl_arg(f, v, i).id])
            return true;
    return false;
}

static void find_data(struct passes *p, kl_blk b)
{
    const kl_fn *f = p->r->f;
    kl_each_ins (f, b, v) {
        kl_blk own[2];
        uint32_t n = kl_blocks(f, v, own);
        p->data[v.id] = depends(p, v);
        if (kl_is_fold(f, v))
            continue; /* its block is part of the pass */
        for (uint32_t i = 0; i < n; i++) {
            find_data(p, own[i]);
            kl_val y = kl_last(f, own[i]);
            for (uint32_t k = 0; y.id && k < kl_in(f, y)->nargs && kl_in(f, v)->op != KL_OP_if; k++)
                p->carried[kl_arg(f, y, k).id] = true;
        }
    }
}

bool *kl_model_data(const struct mrun *r)
{
    struct passes p = {.r = r,
                       .data = kl_new_n(r->a, bool, r->f->nins),
                       .carried = kl_new_n(r->a, bool, r->f->nins)};
    find_data(&p, KL_BODY);
    return p.data;
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
        .r = r, .data = kl_new_n(r->a, bool, f->nins), .carried = kl_new_n(r->a, bool, f->nins)};
    kl_model_passes *out = &r->m->passes;
    double read = 0, written = 0;
    find_data(&p, KL_BODY);
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
        if (!in->blk.id || in->op != KL_OP_result || !is_tile(f, v) ||
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

/* ---- products ---- */

void kl_model_dots(struct mrun *r)
{
    const kl_fn *f = r->f;
    for (uint32_t i = 1; i < f->nins; i++) {
        kl_val v = {i};
        const struct kl_ins *in = kl_in(f, v);
        if (!in->blk.id || in->op != KL_OP_dot || !kl_model_times(r, v))
            continue;
        const struct kl_type *t = kl_type_of(f, v), *a = kl_type_of(f, kl_arg(f, v, 0));
        kl_model_dot d = {.at = v,
                          .loc = in->loc,
                          .m = t->dim[t->rank - 2],
                          .n = t->dim[t->rank - 1],
                          .k = a->dim[a->rank - 1],
                          .elem = a->elem,
                          .acc = t->elem};
        d.place = f->src && in->loc.beg ? kl_src_place(f->src, r->a, in->loc) : (kiln_place){0};
        uint32_t es = kl_elems[a->elem].bytes, kstep = es ? 32 / es : 1;
        const char *type = kl_elems[a->elem].name;
        if (a->elem == KL_f64 || a->elem == KL_f32)
            d.miss = kl_printf(
                r->a,
                "operands are %s, which tensor cores would round; f16, bf16, 8-bit floats and "
                "i8 have a form there",
                type);
        else if (es > 2 || (kl_is_int((enum kl_elem)a->elem) && es != 1))
            d.miss = kl_printf(r->a, "operands are %s, for which tensor cores have no form", type);
        else if (d.m % 16)
            d.miss = kl_printf(r->a, "the tile has %u rows, no multiple of 16", d.m);
        else if (d.n % 8)
            d.miss = kl_printf(r->a, "the tile has %u columns, no multiple of 8", d.n);
        else if (d.k % kstep)
            d.miss = kl_printf(r->a, "the tile's inner size is %u, no multiple of %u (of %s)", d.k,
                               kstep, type);
        kl_push(r->a, &r->m->dot, d);
    }
}

/* ---- narrow accesses ---- */

/* What breaks the fact v16, in words of the launch; NULL: it holds. */
static const char *broken_fact(const struct mrun *r, uint32_t first)
{
    for (uint32_t k = 0; k <= r->f->nparam; k++) { /* the access's own array first */
        uint32_t i = k ? k - 1 : first;
        const kl_model_param *p = &r->in->param[i];
        if (r->f->param[i].use != KL_P_ARRAY || !p->given || (k && i == first))
            continue;
        int64_t es = kl_elems[r->f->param[i].elem].bytes, n = 16 / es;
        int32_t in = p->rank - 1;
        if (p->base % 16)
            return kl_printf(
                r->a, "the address of `%s` has to be a multiple of 16 bytes, and is %llu further",
                p->name, (unsigned long long)(p->base % 16));
        if (in < 0)
            continue;
        if (p->str[in] != 1)
            return kl_printf(r->a, "the last stride of `%s` has to be 1, and is %lld", p->name,
                             (long long)p->str[in]);
        if (p->ext[in] * es % 16)
            return kl_printf(r->a,
                             "the last extent of `%s` has to be a multiple of %lld, and is %lld",
                             p->name, (long long)n, (long long)p->ext[in]);
        for (int32_t d = 0; d < in; d++)
            if (p->ext[d] > 1 && p->str[d] * es % 16)
                return kl_printf(
                    r->a, "the pitch of `%s` has to be a multiple of %lld elements, and is %lld",
                    p->name, (long long)n, (long long)p->str[d]);
    }
    return NULL;
}

static enum kl_model_narrow narrow(struct mrun *r, const struct maccess *a, kl_model_access *o)
{
    const kl_fn *f = r->f;
    kl_val v = a->rec->at, u = kl_arg(f, v, 0);
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_access_tile(f, v);
    uint32_t rank = kl_type_of(f, u)->rank;
    if (o->width == 16)
        return KL_NARROW_NOT;
    if (!a->rec->l || kl_numel(t) == 1 || !rank)
        return KL_NARROW_SCALAR;
    if (!o->contiguous)
        return KL_NARROW_STRIDED;
    if (kl_model_mask(f, v).id || o->dir == KL_MODEL_ATOMIC || kl_is_atomic(in->op))
        return KL_NARROW_MASK;
    if (!r->in->ptx->v16) {
        o->fact = broken_fact(r, o->param);
        return KL_NARROW_FACTS;
    }
    const struct kl_ins *off = kl_in(f, kl_arg(f, u, 1));
    if (kl_in(f, kl_arg(f, u, 0))->op != KL_OP_param || off->op != KL_OP_const || off->attr.bits)
        return KL_NARROW_VIEW;
    if (kl_in(f, kl_arg(f, u, 1 + 2 * rank))->op != KL_OP_const) {
        o->fact = kl_printf(
            r->a, "the last stride of `%s` is a value of the launch; it has to be 1 in the source",
            o->name);
        return KL_NARROW_STRIDE;
    }
    uint64_t places = UINT64_C(32) * r->tr->warps * r->tr->ctas;
    uint32_t want = 16u / kl_elems[o->elem].bytes;
    if (1u << a->rec->may < want) {
        o->fact = kl_printf(
            r->a, "the start of the last section has to be known as a multiple of %u", want);
        return KL_NARROW_START;
    }
    if (kl_numel(t) < places * want || t->dim[t->rank - 1] % want)
        return KL_NARROW_SMALL;
    return KL_NARROW_LAYOUT;
}

/* Bytes between neighbours of the last axis, and between rows; from the strides of the launch. */
static void strides_of(struct mrun *r, const struct maccess *a, kl_model_access *o)
{
    const kl_fn *f = r->f;
    kl_val v = a->rec->at, u = kl_arg(f, v, 0);
    const struct kl_type *t = kl_access_tile(f, v);
    int64_t es = kl_elems[o->elem].bytes, step[KL_MAX_RANK] = {0};
    uint32_t rank = kl_type_of(f, u)->rank, axis = 0;
    if (kl_access_indices(f, v))
        return;
    for (uint32_t d = 0; d < rank && axis < KL_MAX_RANK; d++) {
        int64_t s = kl_access_step(f, v, d);
        kl_val str = kl_arg(f, u, 2 + rank + d);
        if (!s)
            continue;
        if (!r->val[str.id].known)
            return;
        step[axis++] = s * kl_model_int(r, str) * es;
    }
    if (!t->rank)
        return;
    uint32_t in = t->rank - 1u;
    o->contiguous = step[in] == es && t->dim[in] > 1;
    for (uint32_t d = in; d-- > 0;)
        if (t->dim[d] > 1 && !o->pitch)
            o->pitch = step[d];
    if (!a->rec->l)
        return;
    uint32_t w = kl_layout_at(a->rec->l, kl_place(0, 1, 0, 0));
    for (uint32_t d = 0; d < t->rank; d++)
        o->lane_bytes += step[d] * (int64_t)kl_coord_axis(a->rec->l, w, d);
}

void kl_model_narrow_of(struct mrun *r)
{
    for (uint32_t i = 0; i < r->tr->access.n; i++) {
        struct maccess *a = &r->access[i];
        kl_model_access *o = &r->m->access.v[a->out];
        strides_of(r, a, o);
        o->narrow = (uint8_t)narrow(r, a, o);
    }
}
