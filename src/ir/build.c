/* build.c - making instructions.
 *
 * kl_emit makes any operation; the others are short forms of it.  Only cheap things
 * are checked here (a row exists, operands exist, their number); everything else is
 * the verifier's.  Unused bytes of an attribute are zero, so that equal instructions
 * have equal attributes. */
#include "ir/ir.h"

/* Link a new or moved instruction into a block, before `before` (0: at the end). */
static void link_in(kl_fn *f, kl_val v, kl_blk blk, uint32_t before)
{
    struct kl_ins *in = kl_in(f, v);
    struct kl_block *b = &f->blk[blk.id];
    uint32_t prev = before ? f->ins[before].prev : b->last;
    in->blk = blk;
    in->prev = prev;
    in->next = before;
    *(prev ? &f->ins[prev].next : &b->first) = v.id;
    *(before ? &f->ins[before].prev : &b->last) = v.id;
}

/* The type that a row gives its result; `given` where the builder decides. */
static kl_typ result_type(kl_fn *f, enum kl_op op, kl_typ given, const kl_val *args)
{
    const struct kl_opinfo *row = &kl_ops[op];
    if (!(row->flags & KL_F_EW)) {
        if (row->res == KL_R_SAME)
            return kl_in(f, args[0])->type;
        if (row->res == KL_R_NONE)
            given.id = 0;
        return given;
    }
    struct kl_type t;
    switch (row->cls) {
    case KL_C_CVT: return given;
    case KL_C_SEL: return kl_in(f, args[1])->type;
    case KL_C_CMP:
        t = *kl_type_of(f, args[0]);
        return kl_tile(f, KL_bool, t.rank, t.dim);
    default: return kl_in(f, args[0])->type;
    }
}

/* Only the member that the row uses, the rest zero. */
static union kl_attr clean_attr(const struct kl_opinfo *row, union kl_attr attr, bool fast)
{
    union kl_attr r;
    memset(&r, 0, sizeof r);
    switch ((enum kl_attrk)row->attr) {
    case KL_A_NOATTR: r.bits = row->flags & KL_F_FAST ? (attr.bits & 1) | fast : 0; break;
    case KL_A_BITS: r.bits = attr.bits; break;
    case KL_A_INDEX: r.index = attr.index; break;
    case KL_A_ACCESS:
        r.access.at = attr.access.at, r.access.n = attr.access.n;
        r.access.flags = attr.access.flags, r.access.how = attr.access.how;
        break;
    case KL_A_AUX: r.aux.at = attr.aux.at, r.aux.n = attr.aux.n; break;
    case KL_A_RED: r.red.op = attr.red.op, r.red.axis = attr.red.axis; break;
    case KL_A_REDFN:
        r.redfn.blk = attr.redfn.blk, r.redfn.axis = attr.redfn.axis;
        r.redfn.commutative = attr.redfn.commutative;
        break;
    case KL_A_LOOP:
        r.loop.blk = attr.loop.blk;
        r.loop.unroll = attr.loop.unroll, r.loop.pipeline = attr.loop.pipeline;
        break;
    case KL_A_BLOCKS: r.blk[0] = attr.blk[0], r.blk[1] = attr.blk[1]; break;
    case KL_A_RESULT: r.result.index = attr.result.index, r.result.of = attr.result.of; break;
    }
    return r;
}

kl_val kl_emit(kl_build *b, enum kl_op op, kl_typ type, const kl_val *args, uint32_t n,
               union kl_attr attr)
{
    kl_fn *f = b->f;
    kl_env *env = f->a->env;
    KL_CHECK(env, op > KL_OP_none && op < KL_NOP && n <= UINT16_MAX && b->blk.id < f->nblk);
    const struct kl_opinfo *row = &kl_ops[op];
    KL_CHECK(env, !(row->flags & KL_F_EW) || n == row->nargs);
    KL_CHECK(env, n > 0 || !(row->res == KL_R_SAME || row->flags & KL_F_EW));
    KL_CHECK(env, args || !(n > 0 || row->res == KL_R_SAME || row->flags & KL_F_EW));
    for (uint32_t i = 0; i < n; i++)
        KL_CHECK(env, args[i].id && args[i].id < f->nins && f->ins[args[i].id].type.id);

    type = result_type(f, op, type, args);
    if (row->attr == KL_A_REDFN && n > 1)
        type.id = 0; /* its results follow */
    else
        KL_CHECK(env, row->res == KL_R_NONE || (type.id && type.id < f->ntype));
    /* integer division has no faster form */
    bool fast = b->fast && row->flags & KL_F_FAST && kl_is_float(f->type[type.id].elem);

    if (f->nins == f->cins)
        f->ins = kl_vec_grow(f->a, f->ins, &f->cins, sizeof *f->ins, f->nins + 1);
    kl_val v = {f->nins++};
    struct kl_ins *in = kl_in(f, v);
    *in = (struct kl_ins){.op = (uint16_t)op, .type = type, .loc = b->loc,
                          .attr = clean_attr(row, attr, fast)};
    kl_set_args(f, v, args, n);

    uint32_t before = b->before.id;
    if (op == KL_OP_param) { /* parameters stand at the head of their block, in order */
        uint32_t k = f->blk[b->blk.id].nparam++;
        in->attr.index = k;
        before = f->blk[b->blk.id].first;
        while (k-- && before)
            before = f->ins[before].next;
    }
    link_in(f, v, b->blk, before);

    kl_blk own[2];
    for (uint32_t i = kl_blocks(f, v, own); i-- > 0;) {
        KL_CHECK(env, own[i].id > KL_BODY.id && own[i].id < f->nblk);
        f->blk[own[i].id].owner = v;
    }
    return v;
}

kl_val kl_ew1(kl_build *b, enum kl_op op, kl_val x)
{
    return kl_emit(b, op, (kl_typ){0}, &x, 1, (union kl_attr){0});
}

kl_val kl_ew2(kl_build *b, enum kl_op op, kl_val x, kl_val y)
{
    kl_val v[2] = {x, y};
    return kl_emit(b, op, (kl_typ){0}, v, 2, (union kl_attr){0});
}

kl_val kl_ew3(kl_build *b, enum kl_op op, kl_val x, kl_val y, kl_val z)
{
    kl_val v[3] = {x, y, z};
    return kl_emit(b, op, (kl_typ){0}, v, 3, (union kl_attr){0});
}

kl_val kl_to(kl_build *b, enum kl_elem e, kl_val x)
{
    struct kl_type t = *kl_type_of(b->f, x);
    if (t.elem == e)
        return x;
    return kl_emit(b, KL_OP_convert, kl_tile(b->f, e, t.rank, t.dim), &x, 1, (union kl_attr){0});
}

kl_val kl_cst(kl_build *b, kl_typ type, uint64_t bits)
{
    union kl_attr attr = {.bits = kl_canon(b->f->type[type.id].elem, bits)};
    return kl_emit(b, KL_OP_const, type, NULL, 0, attr);
}

kl_val kl_cst_i64(kl_build *b, int64_t v)
{
    return kl_cst(b, kl_scalar(b->f, KL_i64), (uint64_t)v);
}

kl_val kl_bcast(kl_build *b, kl_val x, uint32_t rank, const uint32_t *dim)
{
    kl_typ t = kl_tile(b->f, kl_type_of(b->f, x)->elem, rank, dim);
    if (kl_in(b->f, x)->type.id == t.id)
        return x;
    return kl_emit(b, KL_OP_broadcast, t, &x, 1, (union kl_attr){0});
}

kl_val kl_block_param(kl_build *b, kl_typ type)
{
    return kl_emit(b, KL_OP_param, type, NULL, 0, (union kl_attr){0});
}

kl_val kl_result(kl_build *b, kl_val of, uint32_t index, kl_typ type)
{
    union kl_attr attr = {.result = {.index = index, .of = of}};
    return kl_emit(b, KL_OP_result, type, NULL, 0, attr);
}

/* ---- moving and removing ---- */

static void unlink_ins(kl_fn *f, kl_val v)
{
    struct kl_ins *in = kl_in(f, v);
    struct kl_block *b = &f->blk[in->blk.id];
    *(in->prev ? &f->ins[in->prev].next : &b->first) = in->next;
    *(in->next ? &f->ins[in->next].prev : &b->last) = in->prev;
    if (in->op == KL_OP_param)
        b->nparam--;
    in->prev = in->next = 0;
    in->blk = (kl_blk){0};
}

void kl_remove(kl_fn *f, kl_val v)
{
    kl_blk own[2];
    for (uint32_t i = kl_blocks(f, v, own); i-- > 0;) {
        while (f->blk[own[i].id].last)
            kl_remove(f, kl_last(f, own[i]));
        f->blk[own[i].id].owner = (kl_val){0};
    }
    unlink_ins(f, v);
}

void kl_move_before(kl_fn *f, kl_val v, kl_val before)
{
    if (v.id == before.id)
        return;
    unlink_ins(f, v);
    link_in(f, v, kl_in(f, before)->blk, before.id);
}

void kl_move_end(kl_fn *f, kl_val v, kl_blk b)
{
    unlink_ins(f, v);
    link_in(f, v, b, 0);
}

void kl_splice_before(kl_fn *f, kl_blk from, kl_val before)
{
    for (uint32_t id = f->blk[from.id].first, next; id; id = next) {
        next = f->ins[id].next;
        if (f->ins[id].op != KL_OP_param && f->ins[id].op != KL_OP_yield)
            kl_move_before(f, (kl_val){id}, before);
    }
}

void kl_set_args(kl_fn *f, kl_val v, const kl_val *args, uint32_t n)
{
    struct kl_ins *in = kl_in(f, v);
    if (n > in->nargs) { /* args may lie in the pool itself: hold the distance, not the pointer */
        bool inside = args >= f->args && args < f->args + f->nargs;
        size_t off = inside ? (size_t)(args - f->args) : 0;
        if (f->nargs + n > f->cargs)
            f->args = kl_vec_grow(f->a, f->args, &f->cargs, sizeof *f->args, f->nargs + n);
        args = inside ? f->args + off : args;
        in->args = f->nargs;
        f->nargs += n;
    }
    if (n)
        memmove(f->args + in->args, args, n * sizeof *args);
    in->nargs = (uint16_t)n;
}
