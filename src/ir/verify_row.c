/* verify_row.c - does an instruction agree with its row of ops.def? */
#include "ir/verifier.h"

const struct kl_type *kl_vf_arg(struct verifier *c, kl_val v, uint32_t i)
{
    return kl_type_of(c->f, kl_arg(c->f, v, i));
}

bool kl_vf_is_scalar(const struct kl_type *t, enum kl_elem e)
{
    return t->kind == KL_T_TILE && t->rank == 0 && t->elem == e;
}

bool kl_vf_is_num(enum kl_elem e)
{
    return e == KL_i32 || e == KL_u32 || e == KL_i64 || e == KL_u64 || e == KL_f32 || e == KL_f64;
}

static bool in_class(enum kl_cls cls, enum kl_elem e)
{
    switch (cls) {
    case KL_C_NUM: case KL_C_CMP: return kl_vf_is_num(e);
    case KL_C_INT: return kl_vf_is_num(e) && kl_is_int(e);
    case KL_C_FLT: return kl_vf_is_num(e) && kl_is_float(e);
    case KL_C_BIT: return e == KL_bool || (kl_vf_is_num(e) && kl_is_int(e));
    default: return true;
    }
}

static bool check_ew(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_opinfo *row = &kl_ops[in->op];
    const struct kl_type *r = kl_type_of(f, v), *a;
    NEED(in->nargs == row->nargs, "has %u operands, needs %u", in->nargs, row->nargs);
    NEED(r->kind == KL_T_TILE, "has no tile as result");
    for (uint32_t i = 0; i < in->nargs; i++) {
        a = kl_vf_arg(c, v, i);
        NEED(a->kind == KL_T_TILE, "operand %u is not a tile", i);
        NEED(kl_same_shape(a, r), "operand %u is %s, the result %s: the shapes differ", i,
             kl_vf_text(c, a), kl_vf_text(c, r));
    }
    uint32_t first = row->cls == KL_C_SEL ? 1 : 0;
    for (uint32_t i = first + 1; i < in->nargs; i++)
        NEED(kl_vf_arg(c, v, i)->elem == kl_vf_arg(c, v, first)->elem,
             "operands %u and %u are of types %s and %s", first, i,
             kl_elems[kl_vf_arg(c, v, first)->elem].name, kl_elems[kl_vf_arg(c, v, i)->elem].name);
    a = kl_vf_arg(c, v, first);
    NEED(in_class((enum kl_cls)row->cls, (enum kl_elem)a->elem), "does not exist on %s",
         kl_elems[a->elem].name);
    if (row->cls == KL_C_SEL)
        NEED(kl_vf_arg(c, v, 0)->elem == KL_bool, "selects by %s, not bool",
             kl_vf_text(c, kl_vf_arg(c, v, 0)));
    if (row->cls == KL_C_CMP)
        NEED(r->elem == KL_bool, "gives %s, not bool", kl_elems[r->elem].name);
    else if (row->cls != KL_C_CVT)
        NEED(r->elem == a->elem, "gives %s from %s", kl_elems[r->elem].name,
             kl_elems[a->elem].name);
    if (in->op == KL_OP_convert_nan)
        NEED(a->elem == KL_f32 && (r->elem == KL_f8e4m3 || r->elem == KL_f8e5m2),
             "is from f32 to an 8-bit float, not from %s to %s", kl_elems[a->elem].name,
             kl_elems[r->elem].name);
    if (in->op == KL_OP_bitcast)
        NEED(kl_elems[r->elem].bytes == kl_elems[a->elem].bytes, "%s and %s differ in size",
             kl_elems[r->elem].name, kl_elems[a->elem].name);
    return true;
}

/* Operands and kind of result by the row's signature.  Rank gives how many an `I*` takes:
 * the dimensions of the access, or of view's extents and strides. */
static bool check_sig(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_opinfo *row = &kl_ops[in->op];
    const struct kl_type *r = kl_type_of(f, v);
    bool several = row->attr == KL_A_REDFN && in->nargs > 1;
    NEED((row->res != KL_R_NONE && !several) == (in->type.id != 0), "%s",
         in->type.id ? "has a result" : "has no result");
    NEED(!in->type.id || r->kind == (in->op == KL_OP_view ? KL_T_ARRAY : KL_T_TILE) ||
             in->op == KL_OP_param, "has a result of the wrong kind (%s)", kl_vf_text(c, r));
    if (row->res == KL_R_SAME)
        NEED(in->nargs && kl_in(f, kl_arg(f, v, 0))->type.id == in->type.id,
             "has another type than its operand");
    uint32_t i = 0, many = in->op == KL_OP_view          ? 2u * r->rank + 1u
                           : row->attr == KL_A_REDFN ? in->nargs - 1u
                                                     : in->attr.access.n;
    for (const char *s = row->sig; *s; s++) {
        if (*s == '.')
            return true; /* the rest is the row's own */
        if (*s == '*')
            continue;
        uint32_t n = s[1] == '*' ? many : 1;
        for (; n-- > 0; i++) {
            NEED(i < in->nargs, "has %u operands, needs more", in->nargs);
            const struct kl_type *t = kl_vf_arg(c, v, i);
            NEED(t->kind == (*s == 'A' ? KL_T_ARRAY : KL_T_TILE), "operand %u is %s", i,
                 kl_vf_text(c, t));
            bool index = *s == 'I' && row->attr == KL_A_ACCESS && t->elem == KL_i64;
            NEED(*s == 'A' || *s == 'T' || t->rank == 0 || index, "operand %u is %s, not a scalar", i,
                 kl_vf_text(c, t));
            NEED(*s != 'I' || t->elem == KL_i64 || (in->op == KL_OP_for && t->elem == KL_i32),
                 "operand %u is %s, not an i64", i, kl_vf_text(c, t));
            NEED(*s != 'B' || t->elem == KL_bool, "operand %u is %s, not a bool", i,
                 kl_vf_text(c, t));
        }
    }
    NEED(i == in->nargs, "has %u operands, needs %u", in->nargs, i);
    return true;
}

/* ---- tiles ---- */

/* Result like the operand but for one axis of size `size` and element type e. */
static bool check_axis(struct verifier *c, kl_val v, int64_t axis, uint32_t size, enum kl_elem e)
{
    const struct kl_type *a = kl_vf_arg(c, v, 0), *r = kl_type_of(c->f, v);
    NEED(axis >= 0 && axis < a->rank, "has axis %lld on %s", (long long)axis, kl_vf_text(c, a));
    struct kl_type want = *a;
    want.elem = (uint8_t)e;
    want.dim[axis] = size;
    NEED(memcmp(&want, r, sizeof want) == 0, "gives %s, must give %s", kl_vf_text(c, r),
         kl_vf_text(c, &want));
    return true;
}

static bool check_shape(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *r = kl_type_of(f, v), *a = in->nargs ? kl_vf_arg(c, v, 0) : r;
    NEED(r->elem == a->elem, "changes the element type");
    switch (in->op) {
    case KL_OP_broadcast:
        NEED(r->rank >= a->rank, "from %s to %s lowers the rank", kl_vf_text(c, a),
             kl_vf_text(c, r));
        for (uint32_t i = 0, lead = r->rank - a->rank; i < a->rank; i++)
            NEED(a->dim[i] == 1 || a->dim[i] == r->dim[lead + i], "from %s to %s: axis %u",
                 kl_vf_text(c, a), kl_vf_text(c, r), i);
        return true;
    case KL_OP_reshape:
        NEED(kl_numel(a) == kl_numel(r), "from %s to %s: the numbers of elements differ",
             kl_vf_text(c, a), kl_vf_text(c, r));
        return true;
    case KL_OP_permute: {
        uint32_t used = 0;
        NEED(in->attr.aux.at + in->attr.aux.n <= f->naux, "has axes outside the pool");
        NEED(in->attr.aux.n == a->rank && r->rank == a->rank, "names %u axes of %s",
             in->attr.aux.n, kl_vf_text(c, a));
        for (uint32_t i = 0; i < a->rank; i++) {
            int64_t p = f->aux[in->attr.aux.at + i];
            NEED(p >= 0 && p < a->rank && !(used >> p & 1), "axes are no permutation");
            used |= 1u << p;
            NEED(r->dim[i] == a->dim[p], "gives %s from %s", kl_vf_text(c, r), kl_vf_text(c, a));
        }
        return true;
    }
    default: { /* cat */
        const struct kl_type *b = kl_vf_arg(c, v, 1);
        int64_t x = in->attr.index;
        NEED(x >= 0 && x < a->rank && b->rank == a->rank, "has axis %lld on %s and %s",
             (long long)x, kl_vf_text(c, a), kl_vf_text(c, b));
        struct kl_type like = *b;
        like.dim[x] = a->dim[x];
        NEED(memcmp(&like, a, sizeof like) == 0, "joins %s and %s", kl_vf_text(c, a),
             kl_vf_text(c, b));
        return check_axis(c, v, x, a->dim[x] + b->dim[x], (enum kl_elem)a->elem);
    }
    }
}

static bool check_table(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *r = kl_type_of(f, v);
    NEED(in->attr.aux.at + in->attr.aux.n <= f->naux, "has elements outside the pool");
    NEED(r->rank && kl_numel(r) == in->attr.aux.n, "gives %s from %u constants", kl_vf_text(c, r), in->attr.aux.n);
    for (uint32_t i = 0; i < in->attr.aux.n; i++) {
        uint64_t bits = (uint64_t)f->aux[in->attr.aux.at + i];
        NEED(kl_canon((enum kl_elem)r->elem, bits) == bits, "has bits that are not a %s", kl_elems[r->elem].name);
    }
    return true;
}

static bool check_dot(struct verifier *c, kl_val v)
{
    const struct kl_type *a = kl_vf_arg(c, v, 0), *b = kl_vf_arg(c, v, 1), *acc = kl_vf_arg(c, v, 2);
    uint32_t r = a->rank;
    NEED((r == 2 || r == 3) && b->rank == r && acc->rank == r, "multiplies %s by %s onto %s",
         kl_vf_text(c, a), kl_vf_text(c, b), kl_vf_text(c, acc));
    NEED(a->elem == b->elem, "multiplies %s by %s", kl_vf_text(c, a), kl_vf_text(c, b));
    NEED(a->elem != KL_bool && acc->elem == kl_elems[a->elem].acc,
         "accumulates %s in %s", kl_elems[a->elem].name, kl_elems[acc->elem].name);
    NEED((r == 2 || (a->dim[0] == b->dim[0] && a->dim[0] == acc->dim[0])) &&
             a->dim[r - 1] == b->dim[r - 2] && acc->dim[r - 2] == a->dim[r - 2] &&
             acc->dim[r - 1] == b->dim[r - 1],
         "multiplies %s by %s onto %s", kl_vf_text(c, a), kl_vf_text(c, b), kl_vf_text(c, acc));
    NEED(kl_type_of(c->f, v) == acc, "gives %s, must give %s", kl_vf_text(c, kl_type_of(c->f, v)),
         kl_vf_text(c, acc));
    return true;
}

static bool reduces_by(uint16_t op, enum kl_elem e)
{
    switch (op) {
    case KL_OP_add: case KL_OP_mul: case KL_OP_min: case KL_OP_max:
    case KL_OP_fmin: case KL_OP_fmax: case KL_OP_and: case KL_OP_or: case KL_OP_xor:
        return in_class((enum kl_cls)kl_ops[op].cls, e);
    default: return false;
    }
}

/* ---- by operation ---- */

static bool check_other(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *r = kl_type_of(f, v);
    switch (in->op) {
    case KL_OP_const:
        NEED(kl_canon((enum kl_elem)r->elem, in->attr.bits) == in->attr.bits,
             "has bits that are not a %s", kl_elems[r->elem].name);
        return true;
    case KL_OP_table: return check_table(c, v);
    case KL_OP_param: return kl_vf_param(c, v);
    case KL_OP_program_id: case KL_OP_num_programs:
        NEED(in->attr.index >= 0 && in->attr.index < 3, "axis %lld", (long long)in->attr.index);
        NEED(kl_vf_is_scalar(r, KL_i64), "gives %s, not i64", kl_vf_text(c, r));
        return true;
    case KL_OP_num_sms:
        NEED(kl_vf_is_scalar(r, KL_i64), "gives %s, not i64", kl_vf_text(c, r));
        return true;
    case KL_OP_iota:
        NEED(r->elem == KL_i32 && r->rank == 1, "gives %s, not i32[n]", kl_vf_text(c, r));
        return true;
    case KL_OP_view:
        NEED(r->rank >= 1 && r->elem == kl_vf_arg(c, v, 0)->elem, "gives %s", kl_vf_text(c, r));
        return true;
    case KL_OP_load: case KL_OP_store: case KL_OP_inside: case KL_OP_extract: case KL_OP_insert:
    case KL_OP_atomic: case KL_OP_atomic_load: case KL_OP_atomic_store:
        return kl_vf_access(c, v);
    case KL_OP_gather: {
        const struct kl_type *a = kl_vf_arg(c, v, 0), *i = kl_vf_arg(c, v, 1);
        int64_t x = in->attr.index;
        NEED(i->elem == KL_i64 && kl_same_shape(i, r), "gives %s by an index %s", kl_vf_text(c, r),
             kl_vf_text(c, i));
        NEED(a->elem == r->elem && a->rank == r->rank && x >= 0 && x < r->rank,
             "gives %s from axis %lld of %s", kl_vf_text(c, r), (long long)x, kl_vf_text(c, a));
        for (uint32_t d = 0; d < r->rank; d++)
            NEED(d == x || a->dim[d] == r->dim[d], "gives %s from %s: axis %u", kl_vf_text(c, r),
                 kl_vf_text(c, a), d);
        return true;
    }
    case KL_OP_broadcast: case KL_OP_reshape: case KL_OP_permute: case KL_OP_cat:
        return check_shape(c, v);
    case KL_OP_flip:
        NEED(in->attr.index >= 0 && in->attr.index < r->rank, "has axis %lld on %s",
             (long long)in->attr.index, kl_vf_text(c, r));
        return true;
    case KL_OP_reduce:
        NEED(reduces_by(in->attr.red.op, (enum kl_elem)r->elem), "cannot fold %s by %s",
             kl_vf_text(c, kl_vf_arg(c, v, 0)),
             in->attr.red.op < KL_NOP ? kl_ops[in->attr.red.op].name : "?");
        return check_axis(c, v, in->attr.red.axis, 1, (enum kl_elem)kl_vf_arg(c, v, 0)->elem);
    case KL_OP_reduce_fn: case KL_OP_scan: return kl_vf_fold(c, v);
    case KL_OP_argmax: case KL_OP_argmin:
        NEED(kl_vf_is_num((enum kl_elem)kl_vf_arg(c, v, 0)->elem), "does not exist on %s",
             kl_vf_text(c, kl_vf_arg(c, v, 0)));
        return check_axis(c, v, in->attr.index, 1, KL_i32);
    case KL_OP_dot: return check_dot(c, v);
    case KL_OP_for: case KL_OP_while: case KL_OP_if: return kl_vf_control(c, v);
    case KL_OP_result: return kl_vf_result(c, v);
    case KL_OP_yield:
        NEED(in->blk.id != KL_BODY.id, "ends the body, which ends without");
        NEED(!in->next, "does not end its block");
        return kl_vf_tiles(c, v);
    default: return true;
    }
}

bool kl_vf_row(struct verifier *c, kl_val v)
{
    if (kl_ops[kl_in(c->f, v)->op].flags & KL_F_EW)
        return check_ew(c, v);
    return check_sig(c, v) && check_other(c, v);
}
