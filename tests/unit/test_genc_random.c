/* test_genc_random.c - random functions through the C back end and the interpreter.
 *
 * The functions are sound and defined but otherwise arbitrary: values of many shapes used in
 * many places, loads and stores that overlap, loops that carry and swap tiles.  That is what
 * the planning of nests and the sharing of buffers must get right.
 *
 *     test_genc_random [FUNCTIONS [SEED [CC [LEVEL]]]] */
#define _GNU_SOURCE
#include <math.h>

#include "genc_box.h"

#include "ir/text.h"

enum { BATCH = 40, MOST = 400, SIDE = 40, FLAT = 700 };

struct maker {
    struct gb *x;
    kl_fn *f;
    kl_build b;
    KL_VEC(kl_val) pool; /* values in scope */
    kl_val zero, one;    /* i64 */
    kl_val view[8];
    uint32_t nview, nwritable;
    uint32_t depth, left; /* instructions to go */
    kl_typ shape[3];      /* favourites */
};

static uint32_t pick(struct maker *m, uint32_t n)
{
    return (uint32_t)(gb_rand(m->x) >> 33) % n;
}

static kl_val keep(struct maker *m, kl_val v)
{
    kl_push(&m->x->a, &m->pool, v);
    if (m->left)
        m->left--;
    return v;
}

static const struct kl_type *type(struct maker *m, kl_val v)
{
    return kl_type_of(m->f, v);
}

static struct kl_type the_type(struct maker *m, kl_typ t) /* interning may have moved them */
{
    return m->f->type[t.id];
}

static kl_val num(struct maker *m, int64_t v)
{
    return kl_cst_i64(&m->b, v);
}

static kl_typ random_shape(struct maker *m, enum kl_elem e)
{
    static const uint32_t sizes[] = {1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 32, 33, 64, 65, 100};
    uint32_t k = pick(m, 5);
    if (k < 3 && m->shape[k].id) {
        struct kl_type t = the_type(m, m->shape[k]);
        return kl_tile(m->f, e, t.rank, t.dim);
    }
    uint32_t dim[4] = {1, 1, 1, 1}, rank = pick(m, 20) ? pick(m, 3) + (pick(m, 4) != 0) : 4;
    for (uint32_t d = 0; d < rank; d++) {
        dim[d] = sizes[pick(m, sizeof sizes / sizeof *sizes)];
        while (dim[0] * dim[1] * dim[2] * dim[3] > 1200)
            dim[d] = (dim[d] + 1) / 2;
    }
    kl_typ t = kl_tile(m->f, e, rank, dim);
    if (k < 3)
        m->shape[k] = t;
    return t;
}

/* A value with the shape of t (NULL: any) and element type e: an old one if there is. */
static kl_val value(struct maker *m, const struct kl_type *t, enum kl_elem e);

static kl_val constant(struct maker *m, kl_typ t)
{
    enum kl_elem e = (enum kl_elem)m->f->type[t.id].elem;
    return keep(m, kl_cst(&m->b, t, gb_element(m->x, e, pick(m, 8) == 0)));
}

static kl_val any(struct maker *m)
{
    return m->pool.v[pick(m, m->pool.n)];
}

static kl_val index_value(struct maker *m)
{
    for (int i = 0; i < 3; i++) {
        kl_val v = any(m);
        if (type(m, v)->rank == 0 && type(m, v)->elem == KL_i64 && pick(m, 2))
            return v;
    }
    return num(m, (int64_t)pick(m, 50) - 10);
}

static kl_val load(struct maker *m, const struct kl_type *t, bool inside)
{
    kl_val view = m->view[pick(m, m->nview)], args[12];
    uint32_t nd = type(m, view)->rank, n = 0, rank = 0, dim[4] = {1, 1, 1, 1}, flags = 0;
    int64_t step[8];
    enum kl_elem e = (enum kl_elem)type(m, view)->elem;
    args[n++] = view;
    for (uint32_t d = 0; d < nd; d++) {
        args[n++] = index_value(m);
        step[d] = pick(m, 4) == 0 ? 0 : pick(m, 6) ? 1 : (int64_t)pick(m, 6) - 3;
        if (t && t->rank <= nd) /* take the shape if the ranks allow */
            step[d] = d < nd - t->rank ? 0 : step[d] ? step[d] : 1;
        if (!step[d])
            continue;
        dim[rank] = t && t->rank <= nd ? t->dim[rank] : 1 + pick(m, nd == 1 ? 300 : 30);
        rank++;
    }
    kl_typ r = kl_tile(m->f, inside ? KL_bool : e, rank, dim);
    struct kl_type shape = m->f->type[r.id];
    if (!inside && pick(m, 3) == 0) {
        flags |= KL_ACC_FILL;
        args[n++] = value(m, &shape, e);
    }
    if (!inside && pick(m, 4) == 0) {
        flags |= KL_ACC_MASK;
        args[n++] = value(m, &shape, KL_bool);
    }
    union kl_attr attr = {.access = {kl_aux_add(m->f, step, nd), (uint16_t)nd, (uint8_t)flags, 0}};
    return keep(m, kl_emit(&m->b, inside ? KL_OP_inside : KL_OP_load, r, args, n, attr));
}

static kl_val reshape(struct maker *m, kl_val v, const uint32_t *dim, uint32_t rank)
{
    kl_typ t = kl_tile(m->f, (enum kl_elem)type(m, v)->elem, rank, dim);
    return keep(m, kl_emit(&m->b, KL_OP_reshape, t, &v, 1, (union kl_attr){0}));
}

/* v stretched or cut to a shape, by whatever fits. */
static kl_val fit(struct maker *m, kl_val v, const struct kl_type *t)
{
    const struct kl_type *a = type(m, v);
    bool can = a->rank <= t->rank;
    for (uint32_t d = 0; can && d < a->rank; d++)
        can = a->dim[d] == 1 || a->dim[d] == t->dim[d + t->rank - a->rank];
    if (can)
        return keep(m, kl_bcast(&m->b, v, t->rank, t->dim));
    if (kl_numel(a) == kl_numel(t))
        return reshape(m, v, t->dim, t->rank);
    return (kl_val){0};
}

static kl_val value(struct maker *m, const struct kl_type *t, enum kl_elem e)
{
    uint32_t from = pick(m, m->pool.n);
    for (uint32_t i = 0; t && i < m->pool.n && pick(m, 60); i++) { /* one of just that type */
        kl_val v = m->pool.v[(from + i) % m->pool.n];
        if (type(m, v)->elem == e && type(m, v)->kind == KL_T_TILE && kl_same_shape(type(m, v), t))
            return v;
    }
    for (int i = 0; i < 12; i++) {
        kl_val v = any(m);
        if (type(m, v)->kind != KL_T_TILE || type(m, v)->elem != e)
            continue;
        if (!t || kl_same_shape(type(m, v), t))
            return v;
        struct kl_type like = *t;
        if (i > 6 && (v = fit(m, v, &like)).id)
            return v;
    }
    struct kl_type like = t ? *t : the_type(m, random_shape(m, e));
    if (pick(m, 2)) {
        kl_val v = load(m, &like, false);
        if (kl_same_shape(type(m, v), &like))
            return type(m, v)->elem == e ? v : keep(m, kl_to(&m->b, e, v));
    }
    return constant(m, kl_tile(m->f, e, like.rank, like.dim));
}

static enum kl_elem number_type(struct maker *m)
{
    static const enum kl_elem e[] = {KL_f32, KL_f32, KL_f32, KL_f32, KL_i32,
                                     KL_i32, KL_i64, KL_u32, KL_f64};
    return e[pick(m, sizeof e / sizeof *e)];
}

static kl_val elementwise(struct maker *m)
{
    static const uint16_t both[] = {KL_OP_add, KL_OP_sub, KL_OP_mul,
                                    KL_OP_min, KL_OP_max, KL_OP_div};
    static const uint16_t cmp[] = {KL_OP_eq, KL_OP_lt, KL_OP_ge, KL_OP_ne};
    static const uint16_t flt1[] = {KL_OP_neg,  KL_OP_abs,     KL_OP_floor, KL_OP_exp,
                                    KL_OP_tanh, KL_OP_sigmoid, KL_OP_sqrt,  KL_OP_sin,
                                    KL_OP_log2, KL_OP_expm1,   KL_OP_round};
    static const uint16_t flt2[] = {KL_OP_pow, KL_OP_fmod, KL_OP_copysign};
    static const uint16_t int1[] = {KL_OP_popcount, KL_OP_clz, KL_OP_ctz};
    static const uint16_t int2[] = {KL_OP_and, KL_OP_xor, KL_OP_shl, KL_OP_shr, KL_OP_rem, KL_OP_umulhi};
    enum kl_elem e = number_type(m);
    kl_val a = value(m, NULL, e);
    struct kl_type t = *type(m, a);
    switch (pick(m, 7)) {
    case 0: return keep(m, kl_ew2(&m->b, (enum kl_op)cmp[pick(m, 4)], a, value(m, &t, e)));
    case 1: {
        kl_val c = value(m, &t, KL_bool);
        return keep(m, kl_ew3(&m->b, KL_OP_select, c, a, value(m, &t, e)));
    }
    case 2:
        if (kl_is_float(e))
            return pick(m, 4) ? keep(m, kl_ew1(&m->b, (enum kl_op)flt1[pick(m, 11)], a))
                              : keep(m, kl_ew2(&m->b, (enum kl_op)flt2[pick(m, 3)], a, value(m, &t, e)));
        return pick(m, 4) ? keep(m, kl_ew2(&m->b, (enum kl_op)int2[pick(m, 6)], a, value(m, &t, e)))
                          : keep(m, kl_ew1(&m->b, (enum kl_op)int1[pick(m, 3)], a));
    case 3: {
        static const enum kl_elem to[] = {KL_f32,  KL_i32, KL_bf16, KL_f16, KL_i64, KL_bool, KL_u8, KL_f64,
                                          KL_u64,  KL_i8,  KL_i16,  KL_u16, KL_f8e4m3, KL_f8e5m2};
        if (e == KL_f32 && pick(m, 8) == 0) {
            kl_typ t8 = kl_tile(m->f, pick(m, 2) ? KL_f8e4m3 : KL_f8e5m2, t.rank, t.dim);
            kl_val v8 = keep(m, kl_emit(&m->b, KL_OP_convert_nan, t8, &a, 1, (union kl_attr){0}));
            return keep(m, kl_to(&m->b, KL_f32, v8));
        }
        kl_val v = keep(m, kl_to(&m->b, to[pick(m, 14)], a));
        return pick(m, 2) ? keep(m, kl_to(&m->b, KL_f32, v)) : v;
    }
    default: return keep(m, kl_ew2(&m->b, (enum kl_op)both[pick(m, 6)], a, value(m, &t, e)));
    }
}

static kl_val shape_op(struct maker *m)
{
    kl_val v = any(m), args[10];
    struct kl_type t = *type(m, v);
    if (t.kind != KL_T_TILE)
        return v;
    union kl_attr attr;
    memset(&attr, 0, sizeof attr);
    uint32_t dim[4], n = 1;
    memcpy(dim, t.dim, sizeof dim);
    args[0] = v;
    switch (pick(m, 8)) {
    case 0: { /* another factorisation */
        uint64_t total = kl_numel(&t);
        uint32_t r = 0;
        for (uint32_t p = 2; p < 50 && r < 3; p++)
            if (total % p == 0 && pick(m, 2)) {
                dim[r++] = p;
                total /= p;
            }
        dim[r++] = (uint32_t)total;
        return reshape(m, v, dim, r);
    }
    case 1: {
        int64_t axes[4] = {0, 1, 2, 3};
        for (uint32_t d = t.rank; d > 1; d--) {
            uint32_t k = pick(m, d);
            int64_t x = axes[k];
            axes[k] = axes[d - 1];
            axes[d - 1] = x;
        }
        for (uint32_t d = 0; d < t.rank; d++)
            dim[d] = t.dim[axes[d]];
        attr.aux.at = kl_aux_add(m->f, axes, t.rank);
        attr.aux.n = (uint16_t)t.rank;
        return keep(m, kl_emit(&m->b, KL_OP_permute,
                               kl_tile(m->f, (enum kl_elem)t.elem, t.rank, dim), args, 1, attr));
    }
    case 2:
        if (!t.rank)
            return v;
        attr.index = pick(m, t.rank);
        return keep(m, kl_emit(&m->b, KL_OP_flip, kl_in(m->f, v)->type, args, 1, attr));
    case 3: {
        if (!t.rank || kl_numel(&t) > 1500)
            return v;
        args[1] = pick(m, 3) ? value(m, &t, (enum kl_elem)t.elem) : v;
        attr.index = pick(m, t.rank);
        dim[attr.index] *= 2;
        return keep(m, kl_emit(&m->b, KL_OP_cat, kl_tile(m->f, (enum kl_elem)t.elem, t.rank, dim),
                               args, 2, attr));
    }
    case 4:
    case 5: { /* extract, insert */
        int64_t step[4];
        uint32_t rank = 0;
        for (uint32_t d = 0; d < t.rank; d++) {
            args[n++] = pick(m, 3) ? num(m, (int64_t)pick(m, t.dim[d])) : index_value(m);
            step[d] = pick(m, 4) == 0 ? 0 : pick(m, 5) ? 1 : (int64_t)pick(m, 5) - 2;
            if (step[d])
                dim[rank++] = 1 + pick(m, t.dim[d]);
        }
        attr.access.at = kl_aux_add(m->f, step, t.rank);
        attr.access.n = (uint16_t)t.rank;
        kl_typ part = kl_tile(m->f, (enum kl_elem)t.elem, rank, dim);
        if (pick(m, 2))
            return keep(m, kl_emit(&m->b, KL_OP_extract, part, args, n, attr));
        struct kl_type p = m->f->type[part.id];
        args[n++] = value(m, &p, (enum kl_elem)t.elem);
        return keep(m, kl_emit(&m->b, KL_OP_insert, kl_in(m->f, v)->type, args, n, attr));
    }
    case 6: { /* stretch */
        uint32_t r = t.rank < 4 ? t.rank + pick(m, 2) : 4;
        for (uint32_t d = 0; d < r; d++) {
            uint32_t own = d + t.rank >= r ? t.dim[d + t.rank - r] : 1;
            dim[d] = own == 1 && kl_numel(&t) < 300 ? 1 + pick(m, 6) : own;
        }
        return keep(m, kl_bcast(&m->b, v, r, dim));
    }
    default: {
        uint32_t len = 1 + pick(m, 90);
        return keep(m, kl_emit(&m->b, KL_OP_iota, kl_tile(m->f, KL_i32, 1, &len), NULL, 0, attr));
    }
    }
}

/* A tile, itself turned round and a tile of truths, folded at once. */
static kl_val several(struct maker *m, kl_val v, enum kl_elem e, const struct kl_type *t, uint32_t axis)
{
    kl_val arg[3] = {v}, p[6], y[3];
    kl_build in = {.f = m->f, .blk = kl_blk_new(m->f)};
    kl_typ s = kl_scalar(m->f, e), b = kl_scalar(m->f, KL_bool);
    struct kl_type one = *t, shape = *t;
    bool scan = pick(m, 2) != 0;
    arg[1] = kl_emit(&m->b, KL_OP_flip, kl_tile(m->f, e, t->rank, shape.dim), &v, 1,
                     (union kl_attr){.index = axis});
    arg[2] = kl_ew2(&m->b, KL_OP_lt, v, arg[1]);
    for (uint32_t i = 0; i < 6; i++)
        p[i] = kl_block_param(&in, i % 3 == 2 ? b : s);
    y[0] = kl_ew3(&in, KL_OP_select, p[5], kl_ew2(&in, KL_OP_sub, p[0], p[4]), p[3]);
    y[1] = pick(m, 2) ? p[3] : kl_ew2(&in, KL_OP_max, p[1], p[4]);
    y[2] = kl_ew2(&in, KL_OP_xor, p[2], p[5]);
    kl_emit(&in, KL_OP_yield, (kl_typ){0}, y, 3, (union kl_attr){0});
    union kl_attr attr = {.redfn = {.blk = in.blk, .axis = (uint8_t)axis}};
    attr.redfn.commutative = !scan && pick(m, 2);
    kl_val of = kl_emit(&m->b, scan ? KL_OP_scan : KL_OP_reduce_fn, (kl_typ){0}, arg, 3, attr), r[3];
    if (!scan)
        one.dim[axis] = 1;
    for (uint32_t i = 0; i < 3; i++)
        r[i] = kl_result(&m->b, of, i, kl_tile(m->f, i == 2 ? KL_bool : e, one.rank, one.dim));
    keep(m, r[2]);
    keep(m, r[1]);
    return keep(m, r[0]);
}

static kl_val reduction(struct maker *m)
{
    kl_val v = any(m);
    for (int i = 0; i < 8 && (type(m, v)->kind != KL_T_TILE || !type(m, v)->rank); i++)
        v = any(m);
    struct kl_type t = *type(m, v);
    if (t.kind != KL_T_TILE || !t.rank)
        return v;
    enum kl_elem e = (enum kl_elem)t.elem;
    if (e != kl_elems[e].acc && e != KL_bool)
        v = keep(m, kl_to(&m->b, e = (enum kl_elem)kl_elems[e].acc, v));
    uint32_t axis = pick(m, t.rank), dim[4];
    memcpy(dim, t.dim, sizeof dim);
    dim[axis] = 1;
    union kl_attr attr;
    memset(&attr, 0, sizeof attr);
    static const uint16_t all[] = {KL_OP_add, KL_OP_max, KL_OP_min, KL_OP_add, KL_OP_mul};
    static const uint16_t flt[] = {KL_OP_fmax, KL_OP_fmin},
                          bit[] = {KL_OP_and, KL_OP_or, KL_OP_xor};
    uint32_t how = pick(m, 9);
    if (e == KL_bool || (how < 2 && !kl_is_float(e)))
        attr.red.op = bit[pick(m, 3)];
    else if (how < 2)
        attr.red.op = flt[pick(m, 2)];
    else
        attr.red.op = all[pick(m, 5)];
    if (how == 8 && e != KL_bool) {
        attr.index = axis;
        return keep(m, kl_emit(&m->b, pick(m, 2) ? KL_OP_argmax : KL_OP_argmin,
                               kl_tile(m->f, KL_i32, t.rank, dim), &v, 1, attr));
    }
    if (how == 6 && e != KL_bool && pick(m, 2))
        return several(m, v, e, &t, axis);
    if (how == 7 && e != KL_bool) { /* by a block */
        kl_build in = {.f = m->f, .blk = kl_blk_new(m->f)};
        kl_typ s = kl_scalar(m->f, e);
        kl_val p = kl_block_param(&in, s), q = kl_block_param(&in, s);
        kl_val y = kl_ew2(&in, KL_OP_sub, p, pick(m, 2) ? kl_ew2(&in, KL_OP_max, q, p) : q);
        kl_emit(&in, KL_OP_yield, (kl_typ){0}, &y, 1, (union kl_attr){0});
        memset(&attr, 0, sizeof attr);
        attr.redfn.blk = in.blk;
        attr.redfn.axis = (uint8_t)axis;
        if (pick(m, 3) == 0)
            return keep(m, kl_emit(&m->b, KL_OP_scan, kl_tile(m->f, e, t.rank, t.dim), &v, 1, attr));
        attr.redfn.commutative = pick(m, 2) != 0;
        return keep(m, kl_emit(&m->b, KL_OP_reduce_fn, kl_tile(m->f, e, t.rank, dim), &v, 1, attr));
    }
    attr.red.axis = (uint8_t)axis;
    return keep(m, kl_emit(&m->b, KL_OP_reduce, kl_tile(m->f, e, t.rank, dim), &v, 1, attr));
}

static kl_val product(struct maker *m)
{
    static const enum kl_elem in[] = {KL_f32, KL_f32, KL_bf16, KL_f64, KL_i32, KL_u8, KL_i8, KL_u16, KL_u64,
                                     KL_f8e4m3, KL_f8e5m2};
    static const uint32_t sizes[] = {1, 2, 3, 7, 8, 9, 16, 17, 33};
    enum kl_elem e = in[pick(m, 11)], acc = (enum kl_elem)kl_elems[e].acc;
    uint32_t M = sizes[pick(m, 9)], N = sizes[pick(m, 9)], K = sizes[pick(m, 9)],
             B = 1 + pick(m, 3);
    uint32_t rank = pick(m, 4) ? 2 : 3, at = rank == 2;
    uint32_t da[3] = {B, M, K}, db[3] = {B, K, N}, dc[3] = {B, M, N};
    struct kl_type ta = the_type(m, kl_tile(m->f, e, rank, da + at));
    struct kl_type tb = the_type(m, kl_tile(m->f, e, rank, db + at));
    kl_typ t = kl_tile(m->f, acc, rank, dc + at);
    struct kl_type tc = m->f->type[t.id];
    kl_val args[3];
    args[0] = value(m, &ta, e);
    args[1] = value(m, &tb, e);
    args[2] = value(m, &tc, acc);
    return keep(m, kl_emit(&m->b, KL_OP_dot, t, args, 3, (union kl_attr){0}));
}

static void store(struct maker *m)
{
    kl_val view = m->view[pick(m, m->nwritable)], args[12];
    uint32_t nd = type(m, view)->rank, n = 0, rank = 0, dim[4] = {1, 1, 1, 1};
    int64_t step[8];
    enum kl_elem e = (enum kl_elem)type(m, view)->elem;
    args[n++] = view;
    kl_val v = value(m, NULL, e); /* of a rank that fits, else reshaped */
    struct kl_type t = *type(m, v);
    bool use = t.rank <= nd;
    for (uint32_t d = 0; d < nd; d++) {
        args[n++] = index_value(m);
        step[d] = use ? d >= nd - t.rank : d == nd - 1;
        if (step[d] && pick(m, 8) == 0)
            step[d] = pick(m, 2) ? 2 : -1;
        if (step[d])
            dim[rank] = use ? t.dim[rank] : (uint32_t)kl_numel(&t), rank++;
    }
    if (!use)
        v = reshape(m, v, dim, rank);
    args[n++] = v;
    t = *type(m, v);
    union kl_attr attr = {.access = {kl_aux_add(m->f, step, nd), (uint16_t)nd, 0, 0}};
    if (pick(m, 5) == 0) {
        attr.access.flags = KL_ACC_MASK;
        args[n++] = value(m, &t, KL_bool);
    }
    kl_emit(&m->b, KL_OP_store, (kl_typ){0}, args, n, attr);
    if (m->left)
        m->left--;
}

static void block(struct maker *m, uint32_t count);

static void yield(struct maker *m, const kl_val *v, uint32_t n)
{
    kl_emit(&m->b, KL_OP_yield, (kl_typ){0}, v, n, (union kl_attr){0});
}

/* Values of the types of like, for a yield; sometimes the same ones in another order. */
static void like_these(struct maker *m, const kl_val *like, uint32_t n, kl_val *out)
{
    for (uint32_t i = 0; i < n; i++) {
        struct kl_type t = *type(m, like[i]);
        out[i] = value(m, &t, (enum kl_elem)t.elem);
    }
}

static void region(struct maker *m)
{
    kl_val args[8], out[8];
    uint32_t n = pick(m, 4), how = pick(m, 3), mark, inside = 2 + pick(m, 8);
    kl_build outer = m->b;
    union kl_attr attr;
    memset(&attr, 0, sizeof attr);
    for (uint32_t i = 0; i < n; i++) {
        args[3 + i] = i && pick(m, 3) ? args[2 + i] : any(m);
        struct kl_type t = *type(m, args[3 + i]);
        if (i && pick(m, 2)) /* two of a type may swap */
            args[3 + i] = value(m, &t, (enum kl_elem)t.elem);
    }
    m->depth++;
    mark = m->pool.n;
    kl_val v;
    if (how == 0) { /* for */
        args[0] = num(m, 0);
        args[1] = num(m, (int64_t)pick(m, 4));
        args[2] = m->one;
        m->b.blk = attr.loop.blk = kl_blk_new(m->f);
        keep(m, kl_block_param(&m->b, kl_scalar(m->f, KL_i64)));
        for (uint32_t i = 0; i < n; i++)
            keep(m, kl_block_param(&m->b, kl_in(m->f, args[3 + i])->type));
        block(m, inside);
        like_these(m, args + 3, n, out);
        yield(m, out, n);
        m->b = outer;
        v = kl_emit(&m->b, KL_OP_for, (kl_typ){0}, args, 3 + n, attr);
    } else if (how == 1) { /* while: at most three rounds */
        args[2] = m->zero;
        attr.blk[0] = kl_blk_new(m->f);
        attr.blk[1] = kl_blk_new(m->f);
        n++;
        for (int i = 0; i < 2; i++) {
            m->b.blk = attr.blk[i];
            kl_val count = {0};
            m->pool.n = mark;
            for (uint32_t k = 0; k < n; k++) {
                kl_val p = keep(m, kl_block_param(&m->b, kl_in(m->f, args[2 + k])->type));
                count = k ? count : p;
            }
            block(m, i ? inside : 2);
            if (i == 0) {
                struct kl_type t = the_type(m, kl_scalar(m->f, KL_bool));
                out[0] = kl_ew2(&m->b, KL_OP_lt, count, num(m, 3));
                out[0] = kl_ew2(&m->b, KL_OP_and, out[0], value(m, &t, KL_bool));
                yield(m, out, 1);
            } else {
                like_these(m, args + 3, n - 1, out + 1);
                out[0] = kl_ew2(&m->b, KL_OP_add, count, m->one);
                yield(m, out, n);
            }
        }
        m->b = outer;
        v = kl_emit(&m->b, KL_OP_while, (kl_typ){0}, args + 2, n, attr);
        memmove(args + 3, args + 2, n * sizeof *args);
    } else {
        struct kl_type t = the_type(m, kl_scalar(m->f, KL_bool));
        args[0] = value(m, &t, KL_bool);
        mark = m->pool.n;
        for (int i = 0; i < 2; i++) {
            m->pool.n = mark;
            m->b.blk = attr.blk[i] = kl_blk_new(m->f);
            block(m, inside / 2);
            like_these(m, args + 3, n, out);
            yield(m, out, n);
        }
        m->b = outer;
        v = kl_emit(&m->b, KL_OP_if, (kl_typ){0}, args, 1, attr);
    }
    m->depth--;
    m->pool.n = mark;
    for (uint32_t i = 0; i < n; i++)
        keep(m, kl_result(&m->b, v, i, kl_in(m->f, args[3 + i])->type));
}

static void block(struct maker *m, uint32_t count)
{
    for (uint32_t i = 0; i < count && m->left; i++) {
        uint32_t what = pick(m, 100);
        if (what < 15)
            load(m, NULL, false);
        else if (what < 18)
            load(m, NULL, true);
        else if (what < 30)
            store(m);
        else if (what < 62)
            elementwise(m);
        else if (what < 77)
            shape_op(m);
        else if (what < 89)
            reduction(m);
        else if (what < 93)
            product(m);
        else if (m->depth < 3)
            region(m);
    }
}

/* fn(x f32, h bf16, i i32, y f32 written, z i32 written) with views of them of rank 1 and 2. */
static kl_fn *make(struct gb *x, uint32_t size)
{
    static const struct {
        const char *name;
        enum kl_elem e;
        uint32_t rank;
        bool written;
    } arrays[] = {{"y", KL_f32, 1, true},   {"z", KL_i32, 2, true},   {"w", KL_f32, 2, true},
                  {"x", KL_f32, 1, false},  {"h", KL_bf16, 1, false}, {"i", KL_i32, 1, false},
                  {"b", KL_bool, 1, false}, {"m", KL_f32, 2, false}};
    struct maker m = {.x = x, .f = kl_fn_new(&x->a, "f"), .left = size};
    m.b = (kl_build){.f = m.f, .blk = KL_BODY};
    kl_val p[8];
    m.f->may_alias = pick(&m, 6) == 0;
    for (uint32_t k = 0; k < 8; k++) {
        struct kl_param q = {.name = arrays[k].name,
                             .use = KL_P_ARRAY,
                             .elem = (uint8_t)arrays[k].e,
                             .rank = (uint8_t)arrays[k].rank,
                             .decl = (uint16_t)k,
                             .written = arrays[k].written,
                             .isconst = !arrays[k].written};
        kl_param_add(m.f, q);
        p[k] = kl_emit(&m.b, KL_OP_param, kl_array(m.f, arrays[k].e, arrays[k].rank), NULL, 0,
                       (union kl_attr){.index = k});
    }
    m.zero = keep(&m, num(&m, 0));
    m.one = keep(&m, num(&m, 1));
    keep(&m, kl_emit(&m.b, KL_OP_program_id, kl_scalar(m.f, KL_i64), NULL, 0,
                     (union kl_attr){.index = 0}));
    for (uint32_t k = 0; k < 8; k++) {
        kl_val side = num(&m, SIDE), flat = num(&m, FLAT);
        bool turned = arrays[k].rank == 2 && pick(&m, 5) == 0;
        kl_val one[] = {p[k], m.zero, flat, m.one};
        kl_val two[] = {p[k], m.one, side, side, turned ? m.one : side, turned ? side : m.one};
        m.view[m.nview++] = kl_emit(&m.b, KL_OP_view, kl_array(m.f, arrays[k].e, arrays[k].rank),
                                    arrays[k].rank == 1 ? one : two, arrays[k].rank == 1 ? 4 : 6,
                                    (union kl_attr){0});
    }
    m.nwritable = 3;
    while (m.left)
        block(&m, m.left);
    store(&m);
    store(&m);
    return m.f;
}

/* The text of a function that fails, to be run again. */
static void show(struct gb *x, uint32_t k)
{
    kl_buf b = {.a = &x->a};
    kl_ir_print(&b, x->fn.v[k].f);
    FILE *f = fopen("genc-random-failed.kir", "w");
    if (!f)
        return;
    fprintf(f, "; run grid=2\n%s", kl_buf_str(&b));
    fclose(f);
    print_error("the function is in genc-random-failed.kir\n");
}

static unsigned count = 80, seed = 1;
static const char *cc = "gcc", *level;

static void random_functions(void **state)
{
    (void)state;
    static struct gb x;
    static unsigned done;
    for (done = 0; done < count;) {
        gb_open(&x);
        x.seed = (uint64_t)seed * 1000003 + done;
        if (setjmp(gb_raised))
            fail_msg("seed %u, function %u raised: %s", seed, done, x.env.msg);
        for (uint32_t i = 0; i < BATCH; i++) {
            kl_fn *f = make(&x, 8 + (uint32_t)(gb_rand(&x) % 50));
            const char *bad = kl_ir_verify(f, &x.a);
            if (bad) {
                kl_buf b = {.a = &x.a};
                kl_ir_print(&b, f);
                fputs(kl_buf_str(&b), stderr);
            }
            if (bad)
                fail_msg("seed %u, function %u of the batch from %u: %s", seed, i, done, bad);
            gb_add(&x, f, kl_printf(&x.a, "seed %u function %u", seed, done + i));
        }
        assert_true(gb_compile(&x, cc, level ? level : gb_level()));
        for (uint32_t i = 0; i < BATCH; i++) {
            static const int64_t grid[3] = {2, 1, 1};
            if (!gb_run(&x, i, grid, NULL, false) || !gb_run(&x, i, grid, NULL, true)) {
                show(&x, i);
                fail();
            }
        }
        gb_close(&x);
        done += BATCH;
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_functions)};
    count = argc > 1 ? (unsigned)atoi(argv[1]) : count;
    seed = argc > 2 ? (unsigned)atoi(argv[2]) : seed;
    cc = argc > 3 ? argv[3] : cc;
    level = argc > 4 ? argv[4] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
