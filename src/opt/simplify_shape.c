/* simplify_shape.c - rules on shapes, parts, reductions and accesses.
 *
 * These move elements and change none, or know what comes out because all elements are
 * the same.  Reductions: an axis of one element passes it through (no neutral element is
 * involved), and idempotent operations give back what all elements are. */
#include "opt/simplify.h"

typedef struct kl_simp simp;

static const struct kl_type *type_of(const simp *s, kl_val v)
{
    return kl_type_of(s->f, v);
}

static kl_val const_like(simp *s, kl_val v, uint64_t bits)
{
    return kl_make_const(s, v, kl_in(s->f, v)->type, bits);
}

/* Is v a stretched scalar?  Then that scalar. */
static kl_val stretched(const simp *s, kl_val v)
{
    if (kl_op_of(s, v) != KL_OP_broadcast || type_of(s, kl_op_arg(s, v, 0))->rank != 0)
        return KL_NO;
    return kl_op_arg(s, v, 0);
}

/* ---- shapes ---- */

kl_val kl_rule_shape_const(simp *s, kl_val v)
{
    uint64_t c;
    return kl_const_arg(s, v, 0, &c) ? const_like(s, v, c) : KL_NO;
}

kl_val kl_rule_shape_same(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    return kl_in(s->f, x)->type.id == kl_in(s->f, v)->type.id ? x : KL_NO;
}

/* Does a reshape from `from` to `to` only put axes of size 1 in front? */
static bool adds_leading(const struct kl_type *from, const struct kl_type *to)
{
    if (to->rank < from->rank)
        return false;
    uint32_t lead = to->rank - from->rank;
    for (uint32_t i = 0; i < to->rank; i++)
        if (to->dim[i] != (i < lead ? 1 : from->dim[i - lead]))
            return false;
    return true;
}

kl_val kl_rule_broadcast_chain(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    if (kl_op_of(s, x) == KL_OP_broadcast ||
        (kl_op_of(s, x) == KL_OP_reshape &&
         adds_leading(type_of(s, kl_op_arg(s, x, 0)), type_of(s, x))))
        return kl_make1(s, v, KL_OP_broadcast, kl_op_arg(s, x, 0));
    return KL_NO;
}

kl_val kl_rule_reshape_chain(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    if (kl_op_of(s, x) != KL_OP_reshape)
        return KL_NO;
    return kl_make1(s, v, KL_OP_reshape, kl_op_arg(s, x, 0));
}

kl_val kl_rule_permute_same(simp *s, kl_val v)
{
    const struct kl_type *t = type_of(s, kl_op_arg(s, v, 0));
    const int64_t *p = s->f->aux + kl_in(s->f, v)->attr.aux.at;
    bool same = true;
    int64_t last = -1;
    for (uint32_t i = 0; i < t->rank; i++) {
        same = same && p[i] == i;
        if (t->dim[p[i]] == 1)
            continue;
        if (p[i] < last) /* two axes with elements change places */
            return KL_NO;
        last = p[i];
    }
    return same ? kl_op_arg(s, v, 0) : kl_make1(s, v, KL_OP_reshape, kl_op_arg(s, v, 0));
}

kl_val kl_rule_permute_chain(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    if (kl_op_of(s, x) != KL_OP_permute)
        return KL_NO;
    union kl_attr out = kl_in(s->f, v)->attr, in = kl_in(s->f, x)->attr;
    int64_t p[KL_MAX_RANK];
    for (uint32_t i = 0; i < out.aux.n; i++)
        p[i] = s->f->aux[in.aux.at + (uint32_t)s->f->aux[out.aux.at + i]];
    out.aux.at = kl_aux_add(s->f, p, out.aux.n);
    kl_val a = kl_op_arg(s, x, 0);
    return kl_make(s, v, KL_OP_permute, kl_in(s->f, v)->type, &a, 1, out);
}

kl_val kl_rule_flip_flip(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    int64_t axis = kl_in(s->f, v)->attr.index;
    if (type_of(s, v)->dim[axis] == 1)
        return x;
    if (kl_op_of(s, x) == KL_OP_flip && kl_in(s->f, x)->attr.index == axis)
        return kl_op_arg(s, x, 0);
    return KL_NO;
}

kl_val kl_rule_cat_const(simp *s, kl_val v)
{
    uint64_t c;
    if (!kl_const_arg(s, v, 0, &c) || !kl_is_bits(s->f, kl_op_arg(s, v, 1), c))
        return KL_NO;
    return const_like(s, v, c);
}

/* ---- parts of tiles ---- */

/* Do constant starts keep the access of extract or insert inside the tile? */
static bool part_inside(const simp *s, kl_val v, const struct kl_type *tile)
{
    const struct kl_type *whole = type_of(s, kl_op_arg(s, v, 0));
    const struct kl_ins *in = kl_in(s->f, v);
    uint32_t d = 0;
    for (uint32_t i = 0; i < in->attr.access.n; i++) {
        uint64_t bits;
        int64_t step = s->f->aux[in->attr.access.at + i], dim = whole->dim[i];
        if (!kl_const_arg(s, v, 1 + i, &bits))
            return false;
        int64_t first = (int64_t)bits, n = step ? tile->dim[d++] : 1;
        if (first < 0 || first >= dim || step > INT32_MAX || step < -INT32_MAX)
            return false;
        int64_t last = first + (n - 1) * step;
        if (last < 0 || last >= dim)
            return false;
    }
    return true;
}

/* Does the access take each element of the whole tile, in order? */
static bool part_whole(const simp *s, kl_val v, const struct kl_type *tile)
{
    const struct kl_type *whole = type_of(s, kl_op_arg(s, v, 0));
    const struct kl_ins *in = kl_in(s->f, v);
    uint32_t d = 0;
    for (uint32_t i = 0; i < in->attr.access.n; i++) {
        int64_t step = s->f->aux[in->attr.access.at + i];
        uint32_t n = step ? tile->dim[d++] : 1;
        if (!kl_is_bits(s->f, kl_op_arg(s, v, 1 + i), 0) || n != whole->dim[i] ||
            (step != 1 && n != 1))
            return false;
    }
    return true;
}

static bool same_access(const simp *s, kl_val a, kl_val b)
{
    const struct kl_ins *x = kl_in(s->f, a), *y = kl_in(s->f, b);
    uint32_t n = x->attr.access.n;
    if (n != y->attr.access.n || memcmp(s->f->aux + x->attr.access.at,
                                        s->f->aux + y->attr.access.at, n * sizeof *s->f->aux) != 0)
        return false;
    for (uint32_t i = 1; i <= n; i++) { /* the same start, or equal constants */
        uint64_t bits;
        kl_val p = kl_op_arg(s, a, i), q = kl_op_arg(s, b, i);
        if (p.id != q.id && !(kl_const_arg(s, a, i, &bits) && kl_is_bits(s->f, q, bits)))
            return false;
    }
    return true;
}

static kl_val value_of_insert(const simp *s, kl_val v)
{
    return kl_op_arg(s, v, 1u + kl_in(s->f, v)->attr.access.n);
}

kl_val kl_rule_splat(simp *s, kl_val v)
{
    kl_val x = stretched(s, kl_op_arg(s, v, 0));
    if (!x.id)
        return KL_NO;
    if (kl_op_of(s, v) == KL_OP_extract && !part_inside(s, v, type_of(s, v)))
        return KL_NO;
    return kl_make1(s, v, KL_OP_broadcast, x);
}

kl_val kl_rule_extract_whole(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    if (!part_whole(s, v, type_of(s, v)))
        return KL_NO;
    if (kl_in(s->f, x)->type.id == kl_in(s->f, v)->type.id)
        return x;
    return kl_make1(s, v, KL_OP_reshape, x);
}

kl_val kl_rule_extract_const(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    uint64_t c;
    if (kl_const_arg(s, v, 0, &c)) /* not outside, even of zeros: that is a finding */
        return part_inside(s, v, type_of(s, v)) ? const_like(s, v, c) : KL_NO;
    if (kl_op_of(s, x) == KL_OP_insert && same_access(s, v, x) &&
        part_inside(s, v, type_of(s, v)) &&
        kl_in(s->f, value_of_insert(s, x))->type.id == kl_in(s->f, v)->type.id)
        return value_of_insert(s, x);
    return KL_NO;
}

/* A table of v's type, or a constant if all elements are equal. */
static kl_val table_like(simp *s, kl_val v, const int64_t *bits, uint32_t n)
{
    uint32_t same = 1;
    while (same < n && bits[same] == bits[0])
        same++;
    if (same == n)
        return const_like(s, v, (uint64_t)bits[0]);
    union kl_attr attr = {.aux = {.at = kl_aux_add(s->f, bits, n), .n = (uint16_t)n}};
    return kl_make(s, v, KL_OP_table, kl_in(s->f, v)->type, NULL, 0, attr);
}

kl_val kl_rule_extract_table(simp *s, kl_val v)
{
    const struct kl_type *part = type_of(s, v), *whole = type_of(s, kl_op_arg(s, v, 0));
    const struct kl_ins *in = kl_in(s->f, v), *x = kl_in(s->f, kl_op_arg(s, v, 0));
    if (x->op != KL_OP_table || !part_inside(s, v, part))
        return KL_NO;
    uint32_t n = (uint32_t)kl_numel(part), at[KL_MAX_RANK] = {0};
    int64_t *bits = kl_new_n(s->f->a, int64_t, n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t place = 0;
        uint32_t d = 0;
        for (uint32_t k = 0; k < in->attr.access.n; k++) {
            uint64_t first;
            int64_t step = s->f->aux[in->attr.access.at + k];
            kl_const_arg(s, v, 1 + k, &first);
            place = place * whole->dim[k] + (int64_t)first + (step ? step * at[d++] : 0);
        }
        bits[i] = s->f->aux[x->attr.aux.at + (uint64_t)place];
        for (uint32_t k = part->rank; k-- > 0 && ++at[k] == part->dim[k];)
            at[k] = 0;
    }
    return table_like(s, v, bits, n);
}

kl_val kl_rule_reshape_table(simp *s, kl_val v)
{
    const struct kl_ins *x = kl_in(s->f, kl_op_arg(s, v, 0));
    if (x->op != KL_OP_table)
        return KL_NO;
    uint32_t n = x->attr.aux.n;
    int64_t *bits = kl_new_n(s->f->a, int64_t, n); /* the pool may move */
    memcpy(bits, s->f->aux + x->attr.aux.at, n * sizeof *bits);
    return table_like(s, v, bits, n);
}

kl_val kl_rule_insert_whole(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0), part = value_of_insert(s, v);
    uint64_t c;
    if (kl_const_arg(s, v, 0, &c) && kl_is_bits(s->f, part, c) &&
        part_inside(s, v, type_of(s, part)))
        return x;
    if (!part_whole(s, v, type_of(s, part)))
        return KL_NO;
    if (kl_in(s->f, part)->type.id == kl_in(s->f, v)->type.id)
        return part;
    return kl_make1(s, v, KL_OP_reshape, part);
}

kl_val kl_rule_iota_one(simp *s, kl_val v)
{
    return type_of(s, v)->dim[0] == 1 ? const_like(s, v, 0) : KL_NO;
}

/* ---- reductions ---- */

static uint32_t axis_of(const simp *s, kl_val v)
{
    const struct kl_ins *in = kl_in(s->f, v);
    switch (in->op) {
    case KL_OP_reduce: return in->attr.red.axis;
    case KL_OP_reduce_fn:
    case KL_OP_scan: return in->attr.redfn.axis;
    default: return (uint32_t)in->attr.index;
    }
}

kl_val kl_rule_reduce_one(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    if (!kl_in(s->f, v)->type.id)
        return KL_NO; /* several tiles */
    return type_of(s, x)->dim[axis_of(s, v)] == 1 ? x : KL_NO;
}

kl_val kl_rule_reduce_const(simp *s, kl_val v)
{
    enum kl_elem e = kl_elem_of(s, v);
    uint16_t op = kl_in(s->f, v)->attr.red.op;
    uint64_t c, n = type_of(s, kl_op_arg(s, v, 0))->dim[axis_of(s, v)];
    if (!kl_const_arg(s, v, 0, &c))
        return KL_NO;
    if (kl_ops[op].flags & KL_F_IDEM)
        return const_like(s, v, c);
    if (op == KL_OP_xor)
        return const_like(s, v, n % 2 ? c : 0);
    if (op == KL_OP_add && kl_is_int(e))
        return const_like(s, v, kl_canon(e, c * n));
    return KL_NO;
}

kl_val kl_rule_reduce_stretched(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    if (!(kl_ops[kl_in(s->f, v)->attr.red.op].flags & KL_F_IDEM) ||
        kl_op_of(s, x) != KL_OP_broadcast)
        return KL_NO;
    kl_val from = kl_op_arg(s, x, 0);
    uint32_t lead = type_of(s, x)->rank - type_of(s, from)->rank, axis = axis_of(s, v);
    if (axis >= lead && type_of(s, from)->dim[axis - lead] != 1)
        return KL_NO;
    return kl_make1(s, v, KL_OP_broadcast, from);
}

kl_val kl_rule_arg_one(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0); /* ties take the lower place */
    if (!kl_is_const(s->f, x) && type_of(s, x)->dim[axis_of(s, v)] != 1)
        return KL_NO;
    return const_like(s, v, 0);
}

/* ---- accesses ---- */

kl_val kl_rule_load_nothing(simp *s, kl_val v)
{
    const struct kl_ins *in = kl_in(s->f, v);
    if (!(in->attr.access.flags & KL_ACC_MASK) ||
        !kl_is_bits(s->f, kl_op_arg(s, v, in->nargs - 1u), 0))
        return KL_NO;
    if (in->attr.access.flags & KL_ACC_FILL)
        return kl_op_arg(s, v, in->nargs - 2u);
    return const_like(s, v, 0);
}

kl_val kl_rule_inside_const(simp *s, kl_val v)
{
    const struct kl_ins *in = kl_in(s->f, v);
    kl_val view = kl_op_arg(s, v, 0);
    uint32_t d = 0;
    if (kl_access_indices(s->f, v))
        return KL_NO;
    for (uint32_t i = 0; i < in->attr.access.n; i++) {
        const int64_t limit = INT64_C(1) << 60; /* so that nothing below wraps */
        uint64_t start, extent;
        int64_t step = s->f->aux[in->attr.access.at + i];
        int64_t n = step ? type_of(s, v)->dim[d++] : 1;
        if (!kl_const_arg(s, v, 1 + i, &start) || !kl_const_arg(s, view, 2 + i, &extent) ||
            (int64_t)start < 0 || (int64_t)start > limit || step > INT32_MAX / 8 ||
            step < -INT32_MAX / 8)
            return KL_NO;
        int64_t last = (int64_t)start + (n - 1) * step;
        if ((int64_t)start >= (int64_t)extent || last < 0 || last >= (int64_t)extent)
            return KL_NO;
    }
    return const_like(s, v, 1);
}
