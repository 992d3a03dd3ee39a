/* narrow.c - why an access moves fewer than 16 bytes a lane, and how its section lies. */
#include "model/run.h"

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

/* What a start adds to something else, if that is a constant that is no multiple; 0: it is not. */
static int64_t shift_of(const struct mrun *r, kl_val start, uint32_t want)
{
    const struct kl_ins *in = kl_in(r->f, start);
    if (in->op != KL_OP_add && in->op != KL_OP_sub)
        return 0;
    for (uint32_t i = in->op == KL_OP_sub; i < 2; i++) {
        const struct kl_ins *c = kl_in(r->f, kl_arg(r->f, start, i));
        int64_t k = (int64_t)c->attr.bits;
        if (c->op == KL_OP_const && k % (int64_t)want)
            return in->op == KL_OP_sub ? -k : k;
    }
    return 0;
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
        o->shift = shift_of(r, kl_arg(f, v, rank), want);
        if (o->shift)
            o->fact = kl_printf(r->a, "the last section begins %lld %s what may be a multiple of %u",
                                (long long)(o->shift < 0 ? -o->shift : o->shift),
                                o->shift < 0 ? "before" : "behind", want);
        else
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
