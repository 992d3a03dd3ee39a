/* shape.c - how operations move indices.
 *
 * An inlined value is computed at an index that is linear in the loops of a nest.  Its
 * operands are computed at indices that follow from the operation: broadcast drops axes,
 * permute reorders them, flip mirrors one, a reshape that splits axes joins the indices. */
#include "gen/c/gen.h"

static const struct ix ZERO_IX;

bool kl_c_const_of(const kl_fn *f, kl_val v, int64_t *out)
{
    const struct kl_ins *in = kl_in(f, v);
    if (in->op != KL_OP_const)
        return false;
    *out = (int64_t)in->attr.bits;
    return true;
}

kl_val kl_c_same_bits(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *to = kl_type_of(f, v);
    const kl_val none = {0};
    if (!in->nargs || !in->type.id || to->kind != KL_T_TILE)
        return none;
    kl_val a = kl_arg(f, v, 0);
    const struct kl_type *from = kl_type_of(f, a);
    switch (in->op) {
    case KL_OP_reshape: return a;
    case KL_OP_convert: return from->elem == to->elem ? a : none;
    case KL_OP_broadcast: return kl_numel(from) == kl_numel(to) ? a : none;
    case KL_OP_reduce: return from->dim[in->attr.red.axis] == 1 ? a : none;
    case KL_OP_reduce_fn:
    case KL_OP_scan: return in->nargs == 1 && from->dim[in->attr.redfn.axis] == 1 ? a : none;
    case KL_OP_flip: return from->dim[in->attr.index] == 1 ? a : none;
    case KL_OP_permute: {
        int64_t last = -1; /* the axes that count keep their order */
        for (uint32_t d = 0; d < to->rank; d++) {
            int64_t s = f->aux[in->attr.aux.at + d];
            if (to->dim[d] == 1)
                continue;
            if (s < last)
                return none;
            last = s;
        }
        return a;
    }
    default: return none;
    }
}

kl_val kl_c_strip(const struct gen *g, kl_val v)
{
    for (;;) {
        if (g->val[v.id].mat)
            return v;
        kl_val a = kl_c_same_bits(g->f, v);
        if (!a.id)
            return v;
        v = a;
    }
}

bool kl_c_static_part(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *base = kl_type_of(f, kl_arg(f, v, 0)), *t = kl_type_of(f, v);
    for (uint32_t d = 0, axis = 0; d < in->attr.access.n; d++) {
        int64_t start, step = f->aux[in->attr.access.at + d];
        if (!kl_c_const_of(f, kl_arg(f, v, 1 + d), &start))
            return false;
        int64_t n = step ? (int64_t)t->dim[axis++] - 1 : 0, dim = base->dim[d];
        if (start < 0 || start >= dim || step < -dim || step > dim || start + step * n < 0 ||
            start + step * n >= dim)
            return false;
    }
    return true;
}

void kl_c_space(const struct kl_type *t, uint32_t *rank, uint32_t dim[KL_MAX_RANK])
{
    *rank = 0;
    for (uint32_t d = 0; d < KL_MAX_RANK; d++)
        dim[d] = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->dim[d] > 1)
            dim[(*rank)++] = t->dim[d];
}

struct map kl_c_walk(const struct kl_type *t)
{
    struct map m = {0};
    for (uint32_t d = 0, a = 0; d < t->rank; d++)
        if (t->dim[d] > 1)
            m.x[d].c[a++] = 1;
    return m;
}

static void add_ix(struct ix *to, const struct ix *x, int64_t times)
{
    for (uint32_t a = 0; a < KL_MAX_RANK; a++)
        to->c[a] += x->c[a] * times;
    to->k += x->k * times;
}

struct ix kl_c_linear(uint32_t rank, const uint32_t *dim, const struct map *m)
{
    struct ix r = ZERO_IX;
    int64_t pitch = 1;
    for (uint32_t d = rank; d-- > 0; pitch *= dim[d])
        add_ix(&r, &m->x[d], pitch);
    return r;
}

/* Index of a reshape's operand: each of its axes must be a run of axes of the result. */
static bool reshape_map(const struct kl_type *from, const struct kl_type *to, const struct map *m,
                        struct map *out)
{
    uint32_t t = to->rank;
    *out = (struct map){0};
    for (uint32_t d = from->rank; d-- > 0;) {
        uint64_t size = 1;
        while (size < from->dim[d] && t > 0) {
            t--;
            add_ix(&out->x[d], &m->x[t], (int64_t)size);
            size *= to->dim[t];
        }
        if (size != from->dim[d])
            return false;
    }
    return true;
}

uint32_t kl_c_indices(const kl_fn *f, kl_val v, const struct map *m, struct opnd out[C_OPNDS])
{
    bool scattered = kl_access_scattered(f, v);
    uint32_t n = 0, axis = 0;
    for (uint32_t d = 0; d < kl_in(f, v)->attr.access.n; d++) {
        bool index = kl_access_index(f, v, d);
        if (index) {
            out[n].v = kl_arg(f, v, 1 + d);
            if (scattered)
                out[n].m = *m;
            else
                out[n].m = (struct map){.x[0] = m->x[axis]};
            n++;
        }
        axis += index || kl_access_step(f, v, d) != 0;
    }
    return n;
}

/* Index tiles, values, fill, mask. */
static uint32_t access_operands(const kl_fn *f, kl_val v, const struct map *m, struct opnd out[C_OPNDS])
{
    const struct kl_ins *in = kl_in(f, v);
    uint32_t n = kl_c_indices(f, v, m, out);
    for (uint32_t k = 1u + in->attr.access.n; k < in->nargs; k++)
        out[n++] = (struct opnd){kl_arg(f, v, k), *m};
    return n;
}

uint32_t kl_c_operands(const struct gen *g, kl_val v, const struct map *m, struct opnd out[C_OPNDS])
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *to = kl_type_of(f, v), *from;
    if (kl_ops[in->op].flags & KL_F_EW) {
        for (uint32_t i = 0; i < in->nargs; i++)
            out[i] = (struct opnd){kl_arg(f, v, i), *m};
        return in->nargs;
    }
    if (in->op == KL_OP_load || in->op == KL_OP_store || in->op == KL_OP_inside || kl_is_atomic(in->op))
        return access_operands(f, v, m, out);
    if (in->op == KL_OP_gather) { /* the other one is read from its buffer */
        out[0] = (struct opnd){kl_arg(f, v, 1), *m};
        return 1;
    }
    if (!in->nargs || in->op == KL_OP_argmax || in->op == KL_OP_argmin)
        return 0; /* argmax of an axis of size 1 is 0 */
    out[0].v = kl_arg(f, v, 0);
    memset(&out[0].m, 0, sizeof out[0].m);
    from = kl_type_of(f, out[0].v);
    struct map *o = &out[0].m;
    switch (in->op) {
    case KL_OP_broadcast:
        for (uint32_t d = 0; d < from->rank; d++)
            o->x[d] = from->dim[d] == 1 ? ZERO_IX : m->x[d + to->rank - from->rank];
        return 1;
    case KL_OP_permute:
        for (uint32_t d = 0; d < to->rank; d++)
            o->x[f->aux[in->attr.aux.at + d]] = m->x[d];
        return 1;
    case KL_OP_flip:
        *o = *m;
        o->x[in->attr.index] = ZERO_IX;
        add_ix(&o->x[in->attr.index], &m->x[in->attr.index], -1);
        o->x[in->attr.index].k += (int64_t)to->dim[in->attr.index] - 1;
        return 1;
    case KL_OP_extract:
        if (!kl_c_static_part(f, v))
            return 0; /* an access to the operand's buffer */
        for (uint32_t d = 0, axis = 0; d < in->attr.access.n; d++) {
            int64_t start = 0, step = f->aux[in->attr.access.at + d];
            kl_c_const_of(f, kl_arg(f, v, 1 + d), &start);
            o->x[d].k = start;
            if (step)
                add_ix(&o->x[d], &m->x[axis++], step);
        }
        return 1;
    default: /* a reshape and its like */ return reshape_map(from, to, m, o) ? 1 : UINT32_MAX;
    }
}

bool kl_c_short_rows(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, kl_arg(f, v, 0));
    uint32_t axis = in->attr.red.axis, n = t->dim[axis], bytes = kl_elems[t->elem].bytes;
    for (uint32_t d = axis + 1; d < t->rank; d++)
        if (t->dim[d] > 1)
            return false;
    return n > 1 && n <= G_SHORT_ROW && kl_numel(t) / n >= G_ROWS && (bytes == 4 || bytes == 8);
}

uint32_t kl_c_convert_cost(enum kl_elem to, enum kl_elem from)
{
    static const uint8_t of[KL_NELEM] = {[KL_f16] = 6, [KL_bf16] = 1, [KL_f8e4m3] = 5, [KL_f8e5m2] = 6},
                         into[KL_NELEM] = {[KL_f16] = 8, [KL_bf16] = 5, [KL_f8e4m3] = 8, [KL_f8e5m2] = 8};
    uint32_t c = of[from] + (into[to] ? into[to] : 1);
    if (kl_is_float(from) && !kl_is_float(to) && to != KL_bool)
        c += 5;
    return c;
}
