/* test_passes.c - random functions on tiles, run by the interpreter before and after the
 * passes: the arrays must hold the same.
 *
 * The functions are made directly as IR, so that shapes, parts and reductions come in
 * combinations that the language's own lowering would not make.  A seed gives the same
 * function each time; the message of a failure names it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen/interp/interp.h"
#include "opt/pass.h"

enum { NARR = 8, NSCALAR = 4, MEM = 64, MAXVAL = 200 };

static const enum kl_elem elem[] = {KL_f32, KL_i32, KL_bool, KL_i64};
enum { NELEM = sizeof elem / sizeof elem[0] };

struct shape { uint32_t rank, dim[4]; };
static const struct shape shapes[] = {
    {0, {0}}, {1, {1}}, {1, {4}}, {1, {8}}, {2, {1, 4}}, {2, {4, 1}}, {2, {2, 4}}, {2, {4, 2}},
    {2, {1, 1}}, {3, {2, 1, 4}}, {1, {3}}, {2, {3, 4}},
};
enum { NSHAPE = sizeof shapes / sizeof shapes[0] };

struct gen {
    kl_build b;
    kl_val val[MAXVAL], view[NARR];
    uint32_t n, depth;
};

static uint64_t rng;
static uint32_t rnd(uint32_t n)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng >> 33) % n;
}

static uint64_t random_bits(enum kl_elem e)
{
    static const double v[] = {0, 0, 1, 1, -1, 2, 3, 4, -0.0, 0.5, -2.25, 100, 1e9, -7};
    static const uint32_t odd[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x80000000, 1};
    double d = v[rnd(sizeof v / sizeof v[0])];
    if (e == KL_bool)
        return rnd(2);
    if (e == KL_f32)
        return rnd(6) ? kl_f32_bits((float)d) : odd[rnd(5)];
    return kl_canon(e, rnd(8) ? (uint64_t)(int64_t)d : UINT64_C(0x8000000080000000));
}

static const struct kl_type *type_of(const struct gen *g, kl_val v)
{
    return kl_type_of(g->b.f, v);
}

static kl_val emit(struct gen *g, enum kl_op op, kl_typ t, const kl_val *a, uint32_t n,
                   union kl_attr attr)
{
    return kl_emit(&g->b, op, t, a, n, attr);
}

static const union kl_attr NOATTR = {0};

static kl_typ tile(struct gen *g, enum kl_elem e, uint32_t rank, const uint32_t *dim)
{
    return kl_tile(g->b.f, e, rank, dim);
}

static kl_val any(struct gen *g)
{
    uint32_t back = rnd(2) ? rnd(g->n) : rnd(g->n < 8 ? g->n : 8);
    return g->val[g->n - 1 - back];
}

/* A value of a type: one there is, a stretched one, or a constant. */
static kl_val want(struct gen *g, enum kl_elem e, uint32_t rank, const uint32_t *dim)
{
    kl_typ t = tile(g, e, rank, dim);
    for (uint32_t i = 0; i < 10; i++) {
        kl_val v = any(g);
        const struct kl_type *s = type_of(g, v);
        if (kl_in(g->b.f, v)->type.id == t.id)
            return v;
        if (rank && s->elem == e && s->rank == 0 && rnd(2))
            return kl_bcast(&g->b, v, rank, dim);
        if (s->elem == e && kl_numel(s) == kl_numel(&g->b.f->type[t.id]) && rnd(2))
            return emit(g, KL_OP_reshape, t, &v, 1, NOATTR);
    }
    return kl_cst(&g->b, t, random_bits(e));
}

static kl_val scalar(struct gen *g, enum kl_elem e)
{
    return want(g, e, 0, NULL);
}

/* ---- operations, one function each; 0: does not fit here ---- */

static kl_val g_ew(struct gen *g)
{
    enum kl_op op = (enum kl_op)(1 + rnd(KL_OP_bitcast - 1));
    const struct kl_opinfo *row = &kl_ops[op];
    const struct shape *s = &shapes[rnd(NSHAPE)];
    enum kl_elem e = elem[rnd(NELEM)], to = elem[rnd(NELEM)];
    if ((row->cls == KL_C_FLT && e != KL_f32) || (row->cls == KL_C_INT && !kl_is_int(e)) ||
        (row->cls == KL_C_BIT && e == KL_f32) ||
        ((row->cls == KL_C_NUM || row->cls == KL_C_CMP) && e == KL_bool))
        return (kl_val){0};
    kl_val a[3];
    if (op == KL_OP_convert_nan) /* and back: the other operations know no 8-bit floats here */
        e = KL_f32, to = rnd(2) ? KL_f8e4m3 : KL_f8e5m2;
    for (uint32_t i = 0; i < row->nargs; i++)
        a[i] = want(g, op == KL_OP_select && i == 0 ? KL_bool : e, s->rank, s->dim);
    kl_typ t = row->cls == KL_C_CVT ? tile(g, to, s->rank, s->dim) : (kl_typ){0};
    kl_val v = emit(g, op, t, a, row->nargs, NOATTR);
    return op == KL_OP_convert_nan ? kl_to(&g->b, KL_f32, v) : v;
}

static kl_val g_broadcast(struct gen *g)
{
    kl_val v = any(g);
    const struct kl_type *t = type_of(g, v);
    const struct shape *s = &shapes[rnd(NSHAPE)];
    if (s->rank < t->rank)
        return (kl_val){0};
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] != 1 && t->dim[i] != s->dim[s->rank - t->rank + i])
            return (kl_val){0};
    return emit(g, KL_OP_broadcast, tile(g, t->elem, s->rank, s->dim), &v, 1, NOATTR);
}

static kl_val g_reshape(struct gen *g)
{
    kl_val v = any(g);
    const struct kl_type *t = type_of(g, v);
    const struct shape *s = &shapes[rnd(NSHAPE)];
    kl_typ r = tile(g, t->elem, s->rank, s->dim);
    if (kl_numel(type_of(g, v)) != kl_numel(&g->b.f->type[r.id]))
        return (kl_val){0};
    return emit(g, KL_OP_reshape, r, &v, 1, NOATTR);
}

static kl_val g_permute(struct gen *g)
{
    kl_val v = any(g);
    struct kl_type t = *type_of(g, v);
    int64_t p[4] = {0, 1, 2, 3};
    uint32_t dim[4];
    for (uint32_t i = t.rank; i > 1; i--) {
        uint32_t k = rnd(i);
        int64_t x = p[i - 1];
        p[i - 1] = p[k], p[k] = x;
    }
    for (uint32_t i = 0; i < t.rank; i++)
        dim[i] = t.dim[p[i]];
    union kl_attr at = {.aux = {.at = kl_aux_add(g->b.f, p, t.rank), .n = t.rank}};
    return emit(g, KL_OP_permute, tile(g, t.elem, t.rank, dim), &v, 1, at);
}

static kl_val g_flip(struct gen *g)
{
    kl_val v = any(g);
    uint32_t rank = type_of(g, v)->rank;
    return rank ? emit(g, KL_OP_flip, (kl_typ){0}, &v, 1, (union kl_attr){.index = rnd(rank)})
                : (kl_val){0};
}

static kl_val g_cat(struct gen *g)
{
    kl_val v[2] = {any(g), {0}};
    struct kl_type t = *type_of(g, v[0]);
    if (!t.rank || kl_numel(&t) > 32)
        return (kl_val){0};
    uint32_t axis = rnd(t.rank);
    v[1] = want(g, t.elem, t.rank, t.dim);
    t.dim[axis] *= 2;
    return emit(g, KL_OP_cat, tile(g, t.elem, t.rank, t.dim), v, 2,
                (union kl_attr){.index = axis});
}

static kl_val g_reduce(struct gen *g)
{
    static const enum kl_op ops[] = {KL_OP_add, KL_OP_mul, KL_OP_min, KL_OP_max, KL_OP_fmin,
                                     KL_OP_fmax, KL_OP_and, KL_OP_or, KL_OP_xor};
    kl_val v = any(g);
    struct kl_type t = *type_of(g, v);
    enum kl_op op = ops[rnd(9)];
    uint8_t cls = kl_ops[op].cls;
    if (!t.rank || (cls == KL_C_NUM && t.elem == KL_bool) ||
        (cls == KL_C_FLT && t.elem != KL_f32) || (cls == KL_C_BIT && t.elem == KL_f32))
        return (kl_val){0};
    union kl_attr at = {.red = {.op = (uint16_t)op, .axis = (uint8_t)rnd(t.rank)}};
    t.dim[at.red.axis] = 1;
    return emit(g, KL_OP_reduce, tile(g, t.elem, t.rank, t.dim), &v, 1, at);
}

static kl_val g_argmax(struct gen *g)
{
    kl_val v = any(g);
    struct kl_type t = *type_of(g, v);
    if (!t.rank || t.elem == KL_bool)
        return (kl_val){0};
    uint32_t axis = rnd(t.rank);
    t.dim[axis] = 1;
    return emit(g, rnd(2) ? KL_OP_argmax : KL_OP_argmin, tile(g, KL_i32, t.rank, t.dim), &v, 1,
                (union kl_attr){.index = axis});
}

static kl_val g_iota(struct gen *g)
{
    uint32_t n = 1u + rnd(2) * (2 + rnd(7));
    return emit(g, KL_OP_iota, tile(g, KL_i32, 1, &n), NULL, 0, NOATTR);
}

static kl_val g_dot(struct gen *g)
{
    static const uint32_t mk[] = {4, 2}, kn[] = {2, 4}, mn[] = {4, 4};
    enum kl_elem e = rnd(2) ? KL_f32 : KL_i32;
    kl_val v[3] = {want(g, e, 2, mk), want(g, e, 2, kn), want(g, e, 2, mn)};
    return emit(g, KL_OP_dot, tile(g, e, 2, mn), v, 3, NOATTR);
}

/* Starts, steps and the tile's shape of an access of `rank` dimensions of these sizes. */
static uint32_t subscripts(struct gen *g, uint32_t rank, const uint32_t *size, kl_val *start,
                           union kl_attr *at, uint32_t *dim)
{
    static const int64_t step[] = {0, 1, 1, 1, 1, 2, -1};
    int64_t st[KL_MAX_DIMS];
    uint32_t d = 0;
    for (uint32_t i = 0; i < rank; i++) {
        st[i] = step[rnd(7)];
        uint32_t n = rnd(3) ? size[i] : 1 + rnd(size[i]);
        if (st[i] && d < 3)
            dim[d++] = n;
        else
            st[i] = 0;
        start[i] = rnd(4) ? kl_cst_i64(&g->b, rnd(3) ? 0 : (int64_t)rnd(6) - 1) : scalar(g, KL_i64);
    }
    *at = (union kl_attr){.access = {.at = kl_aux_add(g->b.f, st, rank), .n = (uint16_t)rank}};
    return d;
}

static kl_val g_extract(struct gen *g)
{
    kl_val v[8] = {any(g)};
    struct kl_type t = *type_of(g, v[0]);
    union kl_attr at;
    uint32_t dim[4], rank = subscripts(g, t.rank, t.dim, v + 1, &at, dim);
    return emit(g, KL_OP_extract, tile(g, t.elem, rank, dim), v, 1 + t.rank, at);
}

static kl_val g_insert(struct gen *g)
{
    kl_val v[8] = {any(g)};
    struct kl_type t = *type_of(g, v[0]);
    union kl_attr at;
    uint32_t dim[4], rank = subscripts(g, t.rank, t.dim, v + 1, &at, dim);
    v[1 + t.rank] = want(g, t.elem, rank, dim);
    kl_val r = emit(g, KL_OP_insert, (kl_typ){0}, v, 2 + t.rank, at);
    if (rnd(2))
        return r;
    v[0] = g->val[g->n++] = r; /* and take it out again */
    return emit(g, KL_OP_extract, tile(g, t.elem, rank, dim), v, 1 + t.rank, at);
}

/* A place in one of the arrays, whose views have rank 1 and 2 in turn. */
static uint32_t place(struct gen *g, kl_val *v, union kl_attr *at, enum kl_elem *e, uint32_t *dim)
{
    static const uint32_t size[2][2] = {{8, 0}, {4, 4}};
    uint32_t k = rnd(NARR), rank = type_of(g, g->view[k])->rank;
    v[0] = g->view[k];
    *e = (enum kl_elem)type_of(g, v[0])->elem;
    return subscripts(g, rank, size[rank - 1], v + 1, at, dim);
}

static kl_val mask_for(struct gen *g, uint32_t rank, const uint32_t *dim)
{
    return rnd(4) ? want(g, KL_bool, rank, dim)
                  : kl_cst(&g->b, tile(g, KL_bool, rank, dim), rnd(2));
}

static kl_val g_load(struct gen *g)
{
    kl_val v[8];
    union kl_attr at;
    enum kl_elem e;
    uint32_t dim[4], rank = place(g, v, &at, &e, dim), n = 1u + at.access.n;
    if (rnd(2))
        v[n++] = want(g, e, rank, dim), at.access.flags |= KL_ACC_FILL;
    if (rnd(3) == 0)
        v[n++] = mask_for(g, rank, dim), at.access.flags |= KL_ACC_MASK;
    return emit(g, KL_OP_load, tile(g, e, rank, dim), v, n, at);
}

static kl_val g_inside(struct gen *g)
{
    kl_val v[8];
    union kl_attr at;
    enum kl_elem e;
    uint32_t dim[4], rank = place(g, v, &at, &e, dim);
    return emit(g, KL_OP_inside, tile(g, KL_bool, rank, dim), v, 1u + at.access.n, at);
}

static kl_val g_store(struct gen *g)
{
    kl_val v[8];
    union kl_attr at;
    enum kl_elem e;
    uint32_t dim[4], rank = place(g, v, &at, &e, dim), n = 1u + at.access.n;
    v[n++] = want(g, e, rank, dim);
    if (rnd(3) == 0)
        v[n++] = mask_for(g, rank, dim), at.access.flags |= KL_ACC_MASK;
    emit(g, KL_OP_store, (kl_typ){0}, v, n, at);
    return (kl_val){0};
}

static void block(struct gen *g, uint32_t n);

/* A nested generator for a block; what it can see is what there is now. */
static struct gen *inner(struct gen *g, kl_blk blk)
{
    struct gen *in = malloc(sizeof *in);
    *in = *g;
    in->b = (kl_build){.f = g->b.f, .blk = blk};
    in->depth++;
    return in;
}

static kl_val g_reduce_fn(struct gen *g)
{
    kl_val v = any(g);
    struct kl_type t = *type_of(g, v);
    if (!t.rank || t.elem == KL_bool)
        return (kl_val){0};
    kl_blk blk = kl_blk_new(g->b.f);
    struct gen *in = inner(g, blk);
    kl_typ s = tile(g, t.elem, 0, NULL);
    kl_val p = kl_block_param(&in->b, s), q = kl_block_param(&in->b, s);
    static const enum kl_op ops[] = {KL_OP_add, KL_OP_mul, KL_OP_max, KL_OP_sub};
    kl_val x = kl_ew2(&in->b, ops[rnd(4)], p, rnd(3) ? q : scalar(in, t.elem));
    if (rnd(2))
        x = kl_ew2(&in->b, ops[rnd(4)], x, q);
    emit(in, KL_OP_yield, (kl_typ){0}, &x, 1, NOATTR);
    free(in);
    union kl_attr at = {.redfn = {.blk = blk, .axis = (uint8_t)rnd(t.rank),
                                  .commutative = (uint8_t)rnd(2)}};
    t.dim[at.redfn.axis] = 1;
    return emit(g, KL_OP_reduce_fn, tile(g, t.elem, t.rank, t.dim), &v, 1, at);
}

/* A fold of two tiles at once, or a scan of one. */
static kl_val g_folds(struct gen *g)
{
    kl_val v = any(g), two[2] = {v, v}, p[4], y[2];
    struct kl_type t = *type_of(g, v);
    if (!t.rank || t.elem == KL_bool)
        return (kl_val){0};
    uint32_t m = 1 + (uint32_t)rnd(2);
    enum kl_op op = m == 1 || rnd(2) ? KL_OP_scan : KL_OP_reduce_fn;
    kl_blk blk = kl_blk_new(g->b.f);
    struct gen *in = inner(g, blk);
    for (uint32_t i = 0; i < 2 * m; i++)
        p[i] = kl_block_param(&in->b, tile(g, t.elem, 0, NULL));
    for (uint32_t i = 0; i < m; i++)
        y[i] = kl_ew2(&in->b, rnd(2) ? KL_OP_add : KL_OP_sub, p[rnd(2 * m)], rnd(3) ? p[m + i] : scalar(in, t.elem));
    emit(in, KL_OP_yield, (kl_typ){0}, y, m, NOATTR);
    free(in);
    union kl_attr at = {.redfn = {.blk = blk, .axis = (uint8_t)rnd(t.rank),
                                  .commutative = op == KL_OP_reduce_fn && rnd(2)}};
    struct kl_type to = t;
    if (op == KL_OP_reduce_fn)
        to.dim[at.redfn.axis] = 1;
    kl_typ type = tile(g, t.elem, to.rank, to.dim);
    kl_val of = emit(g, op, m == 1 ? type : (kl_typ){0}, two, m, at);
    if (m == 1)
        return of;
    y[0] = kl_result(&g->b, of, 0, type);
    y[1] = kl_result(&g->b, of, 1, type);
    return y[rnd(2)];
}

/* for, while (counting down) or if, with two carried tiles. */
static kl_val g_control(struct gen *g)
{
    kl_fn *f = g->b.f;
    if (g->depth > 2 || g->n > MAXVAL - 40)
        return (kl_val){0};
    enum kl_op op = rnd(3) == 0 ? KL_OP_while : rnd(2) ? KL_OP_for : KL_OP_if;
    kl_blk own[2] = {kl_blk_new(f), {0}};
    kl_val arg[5];
    uint32_t n = 0, first = 0;
    if (op == KL_OP_for) {
        arg[n++] = kl_cst_i64(&g->b, (int64_t)rnd(4) - 2);
        arg[n++] = rnd(3) ? kl_cst_i64(&g->b, (int64_t)rnd(6) - 1) : g->val[rnd(2)];
        arg[n++] = kl_cst_i64(&g->b, 1 + rnd(3));
        first = 3;
    } else if (op == KL_OP_while) {
        arg[n++] = kl_cst_i64(&g->b, rnd(4));
        own[1] = kl_blk_new(f);
        first = 1;
    } else {
        arg[n++] = scalar(g, KL_bool);
        own[1] = kl_blk_new(f);
    }
    kl_typ t[2];
    for (uint32_t i = 0; i < 2; i++) {
        kl_val v = any(g);
        t[i] = kl_in(f, v)->type;
        if (op != KL_OP_if)
            arg[n++] = v;
    }
    union kl_attr at = {.blk = {own[0], own[1]}};
    if (op == KL_OP_for)
        at = (union kl_attr){.loop = {.blk = own[0], .unroll = rnd(3) & 3, .pipeline = rnd(3) & 3}};
    kl_val v = emit(g, op, (kl_typ){0}, arg, n, at);
    for (uint32_t i = 0; i < (op == KL_OP_for ? 1u : 2u); i++) {
        struct gen *in = inner(g, own[i]);
        kl_val y[3], count = {0};
        uint32_t k = 0;
        if (op != KL_OP_if) {
            count = kl_block_param(&in->b, kl_scalar(f, KL_i64));
            in->val[in->n++] = count;
            for (uint32_t c = 0; c < 2; c++)
                in->val[in->n++] = kl_block_param(&in->b, t[c]);
        }
        block(in, rnd(8));
        if (op == KL_OP_while && i == 0) {
            y[k++] = kl_ew2(&in->b, KL_OP_gt, count, kl_cst_i64(&in->b, 0));
        } else {
            if (op == KL_OP_while)
                y[k++] = kl_ew2(&in->b, KL_OP_sub, count, kl_cst_i64(&in->b, 1));
            for (uint32_t c = 0; c < 2; c++) {
                const struct kl_type ty = f->type[t[c].id];
                y[k++] = want(in, ty.elem, ty.rank, ty.dim);
            }
        }
        emit(in, KL_OP_yield, (kl_typ){0}, y, k, NOATTR);
        free(in);
    }
    if (first == 1)
        g->val[g->n++] = kl_result(&g->b, v, 0, kl_scalar(f, KL_i64));
    g->val[g->n++] = kl_result(&g->b, v, first == 1, t[0]);
    return kl_result(&g->b, v, 1 + (first == 1), t[1]);
}

static void block(struct gen *g, uint32_t n)
{
    static kl_val (*const make[])(struct gen *) = {
        g_ew, g_ew, g_ew, g_ew, g_ew, g_ew, g_broadcast, g_broadcast, g_reshape, g_reshape,
        g_permute, g_permute, g_flip, g_cat, g_reduce, g_reduce, g_argmax, g_iota, g_dot,
        g_extract, g_insert, g_load, g_load, g_store, g_store, g_inside, g_reduce_fn, g_folds, g_control,
        g_control,
    };
    for (uint32_t i = 0; i < n && g->n < MAXVAL - 8; i++) {
        kl_val v = make[rnd(sizeof make / sizeof make[0])](g);
        if (v.id && kl_numel(type_of(g, v)) <= 64)
            g->val[g->n++] = v;
    }
}

/* Arrays (even ones const in name only), then scalars: two i64, an f32, a bool. */
static kl_fn *random_fn(kl_arena *a, bool alias)
{
    static const enum kl_elem sc[NSCALAR] = {KL_i64, KL_i64, KL_f32, KL_bool};
    struct gen *g = calloc(1, sizeof *g);
    kl_fn *f = kl_fn_new(a, "random");
    f->may_alias = alias;
    g->b = (kl_build){.f = f, .blk = KL_BODY};
    kl_val arr[NARR];
    for (uint32_t i = 0; i < NARR; i++) {
        struct kl_param p = {"a", KL_P_ARRAY, (uint8_t)elem[i / 2], 1, (uint16_t)i, true, false};
        kl_param_add(f, p);
        arr[i] = kl_block_param(&g->b, kl_array(f, elem[i / 2], 1));
    }
    for (uint32_t i = 0; i < NSCALAR; i++) {
        uint16_t decl = (uint16_t)(NARR + i);
        struct kl_param p = {"s", KL_P_SCALAR, (uint8_t)sc[i], 0, decl, false, false};
        kl_param_add(f, p);
        g->val[g->n++] = kl_block_param(&g->b, kl_scalar(f, sc[i]));
    }
    for (uint32_t i = 0; i < NARR; i++) { /* extents: a constant, or a scalar of 0 to 7 */
        kl_val zero = kl_cst_i64(&g->b, 0), one = kl_cst_i64(&g->b, 1);
        kl_val e0 = rnd(2) ? kl_cst_i64(&g->b, 4) : g->val[0], e1 = rnd(2) ? e0 : g->val[1];
        kl_val seven = kl_cst_i64(&g->b, 8);
        kl_val v1[] = {arr[i], one, e0, one}, v2[] = {arr[i], zero, e0, e1, seven, one};
        uint32_t rank = 1 + i % 2;
        g->view[i] = kl_emit(&g->b, KL_OP_view, kl_array(f, elem[i / 2], rank),
                             rank == 1 ? v1 : v2, rank == 1 ? 4 : 6, NOATTR);
    }
    g->val[g->n++] = emit(g, KL_OP_program_id, kl_scalar(f, KL_i64), NULL, 0, NOATTR);
    block(g, 60);
    for (uint32_t i = 0; i < 6; i++)
        g_store(g);
    free(g);
    return f;
}

/* ---- running ---- */

struct memory { uint64_t a[NARR][MEM]; };

static void run(const kl_fn *f, struct memory *m, bool alias, const uint64_t *scalars, kl_env *env)
{
    struct kl_slot slot[NARR + NSCALAR] = {{0}};
    for (uint32_t i = 0; i < NARR; i++) {
        uint64_t *at = m->a[alias ? i & ~1u : i]; /* pairs of one type share their memory */
        slot[i] = (struct kl_slot){.base = at, .lo = at, .hi = at + MEM};
    }
    for (uint32_t i = 0; i < NSCALAR; i++)
        slot[NARR + i].bits = scalars[i];
    kl_launch l = {.slot = slot, .grid = {2, 1, 1}, .num_sms = 1};
    assert_int_equal(kl_interp_range(f, &l, 0, 2, env), KILN_OK);
}

static void fill(struct memory *m)
{
    memset(m, 0, sizeof *m);
    for (uint32_t i = 0; i < NARR; i++) {
        enum kl_elem e = elem[i / 2];
        for (uint32_t k = 0; k < sizeof m->a[i] / kl_elems[e].bytes; k++)
            kl_elem_store(e, (char *)m->a[i] + k * kl_elems[e].bytes, random_bits(e));
    }
}

static void same(uint32_t seed)
{
    jmp_buf jb;
    kl_env env = {.al = &kl_alloc_libc, .fail = &jb};
    kl_arena a = {.env = &env};
    rng = seed;
    if (setjmp(jb))
        fail_msg("seed %u: %s", seed, env.msg);
    bool alias = rnd(3) == 0;
    kl_fn *f = random_fn(&a, alias);
    kl_srcmap src = {.a = &a};
    kl_diags *d = kl_diags_new(&kl_alloc_libc);
    kl_diags_use(d, &env, &src);
    kl_buf text = {.a = &a};
    kl_ir_print(&text, f);
    uint32_t file = kl_src_add(&src, "random", kl_buf_str(&text), (uint32_t)text.n, false);
    kl_fn *g = kl_ir_read(&a, &src, file, d);
    kl_pipeline p = {.level = 2, .check = true};
    kl_run_passes(g, &p, NULL);
    for (uint32_t round = 0; round < 4; round++) {
        struct memory before, x, y;
        uint64_t scalars[NSCALAR] = {rnd(6), rnd(6), random_bits(KL_f32), rnd(2)};
        fill(&before);
        x = y = before;
        run(f, &x, alias, scalars, &env);
        run(g, &y, alias, scalars, &env);
        for (uint32_t i = 0; i < NARR; i++)
            for (uint32_t k = 0; k < sizeof x.a[i] / kl_elems[elem[i / 2]].bytes; k++) {
                enum kl_elem e = elem[i / 2];
                size_t at = k * kl_elems[e].bytes;
                uint64_t u = kl_elem_load(e, (char *)x.a[i] + at);
                uint64_t v = kl_elem_load(e, (char *)y.a[i] + at);
                double du = kl_elem_double(e, u), dv = kl_elem_double(e, v);
                if (u == v || (e == KL_f32 && du != du && dv != dv))
                    continue;
                kl_buf after = {.a = &a};
                kl_ir_print(&after, g);
                fprintf(stderr, "%s---\n%s---\n", kl_buf_str(&text), kl_buf_str(&after));
                fail_msg("seed %u, array %u, element %u: %llx before, %llx after", seed, i, k,
                         (unsigned long long)u, (unsigned long long)v);
            }
    }
    kiln_diags_free(d);
    kl_arena_free(&a);
}

static void test_random_tiles(void **state)
{
    (void)state;
    const char *from = getenv("SEED"), *count = getenv("COUNT");
    uint32_t first = from ? (uint32_t)atoi(from) : 1, n = count ? (uint32_t)atoi(count) : 400;
    for (uint32_t seed = first; seed < first + n; seed++)
        same(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
