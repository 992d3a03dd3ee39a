/* verify.c - is the IR sound?
 *
 * Three walks: the lists of each block are intact; each instruction agrees with its row
 * of ops.def (verify_row.c, verify_access.c, verify_flow.c); each operand is visible where it is
 * used.  Visibility is a walk down the blocks that marks values when they are defined and unmarks a
 * block's values when it ends, so everything is linear.  The first fault is reported, with the
 * instruction's id and name. */
#include "ir/verifier.h"

bool kl_vf_bad(struct verifier *c, kl_val v, const char *fmt, ...)
{
    if (c->msg)
        return false;
    c->where = v.id < c->f->nins ? v : (kl_val){0};
    va_list ap;
    va_start(ap, fmt);
    const char *what = kl_vprintf(c->a, fmt, ap);
    va_end(ap);
    if (v.id && v.id < c->f->nins) {
        uint16_t op = kl_in(c->f, v)->op;
        c->msg = kl_printf(c->a, "%s (instruction %u): %s",
                           op < KL_NOP ? kl_ops[op].name : "unknown operation", v.id, what);
    } else {
        c->msg = what;
    }
    return false;
}

const char *kl_vf_text(struct verifier *c, const struct kl_type *t)
{
    kl_buf b = {.a = c->a};
    kl_put_type(&b, t);
    return kl_buf_str(&b);
}

/* ---- lists ---- */

static bool check_list(struct verifier *c, kl_blk blk, uint32_t depth)
{
    const kl_fn *f = c->f;
    const struct kl_block *b = &f->blk[blk.id];
    uint32_t prev = 0, nparam = 0;
    if (depth > 256)
        return kl_vf_bad(c, b->owner, "blocks are nested more than 256 deep");
    for (uint32_t id = b->first; id; prev = id, id = f->ins[id].next) {
        kl_val v = {id};
        if (id >= f->nins)
            return kl_vf_bad(c, (kl_val){0}, "block %u lists instruction %u, which does not exist",
                       blk.id, id);
        const struct kl_ins *in = &f->ins[id];
        NEED(!(c->seen[id] & SEEN), "stands in more than one place");
        c->seen[id] |= SEEN;
        NEED(in->op > KL_OP_none && in->op < KL_NOP, "number %u", in->op);
        NEED(in->blk.id == blk.id, "stands in block %u but names block %u", blk.id, in->blk.id);
        NEED(in->prev == prev, "is not linked back to its predecessor");
        NEED(in->type.id < f->ntype, "has a type that does not exist");
        NEED(!in->nargs || (in->args && in->args + in->nargs <= f->nargs),
             "has operands outside the pool");
        nparam += in->op == KL_OP_param;
        kl_blk own[2];
        for (uint32_t n = kl_blocks(f, v, own), i = 0; i < n; i++) {
            NEED(own[i].id > KL_BODY.id && own[i].id < f->nblk,
                 "owns block %u, which does not exist", own[i].id);
            NEED(!c->owned[own[i].id], "owns block %u, which something else owns", own[i].id);
            c->owned[own[i].id] = 1;
            NEED(f->blk[own[i].id].owner.id == id, "is not the owner that block %u names",
                 own[i].id);
            if (!check_list(c, own[i], depth + 1))
                return false;
        }
    }
    if (b->last != prev)
        return kl_vf_bad(c, (kl_val){prev}, "is last in block %u, which names %u", blk.id, b->last);
    if (b->nparam != nparam)
        return kl_vf_bad(c, b->owner, "block %u counts %u parameters and has %u", blk.id, b->nparam,
                   nparam);
    return true;
}

/* ---- visibility ---- */

/* Tiles have sizes and element types that this version knows. */
static bool check_type(struct verifier *c, kl_val v, const struct kl_type *t)
{
    NEED(t->kind == KL_T_TILE || t->kind == KL_T_ARRAY, "has a type of unknown kind");
    NEED(t->elem > KL_elem_none && t->elem < KL_NELEM, "has an unknown element type");
    for (uint32_t i = 0; i < t->rank && t->kind == KL_T_TILE; i++)
        NEED(t->dim[i] > 0, "has a tile type with an axis of size 0");
    return true;
}

static bool check_block(struct verifier *c, kl_blk blk)
{
    const kl_fn *f = c->f;
    kl_each_ins(f, blk, v) {
        const struct kl_ins *in = kl_in(f, v);
        for (uint32_t i = 0; i < in->nargs; i++) {
            kl_val a = kl_arg(f, v, i);
            NEED(a.id && a.id < f->nins && f->ins[a.id].type.id, "operand %u is no value", i);
            NEED(c->seen[a.id] & VISIBLE, "operand %u (%s, instruction %u) is not visible here", i,
                 kl_ops[f->ins[a.id].op < KL_NOP ? f->ins[a.id].op : 0].name, a.id);
        }
        if (in->type.id && !check_type(c, v, kl_type_of(f, v)))
            return false;
        kl_blk own[2];
        for (uint32_t n = kl_blocks(f, v, own), i = 0; i < n; i++)
            if (!check_block(c, own[i]))
                return false;
        if (!kl_vf_row(c, v))
            return false;
        c->seen[v.id] |= VISIBLE;
    }
    kl_each_ins(f, blk, v)
        c->seen[v.id] = SEEN;
    return true;
}

static void verify(struct verifier *c)
{
    const kl_fn *f = c->f;
    if (!check_list(c, KL_BODY, 0))
        return;
    for (uint32_t id = 1; id < f->nins; id++)
        if (f->ins[id].blk.id && !c->seen[id]) {
            kl_vf_bad(c, (kl_val){id}, "stands in no block's list");
            return;
        }
    if (f->blk[KL_BODY.id].nparam != f->nparam)
        kl_vf_bad(c, (kl_val){0}, "the body has %u parameters, the function %u",
            f->blk[KL_BODY.id].nparam, f->nparam);
    else
        check_block(c, KL_BODY);
}

const char *kl_ir_verify_at(const kl_fn *f, kl_arena *a, kl_val *where)
{
    struct verifier c = {.f = f, .a = a, .seen = kl_new_n(a, uint8_t, f->nins),
                         .owned = kl_new_n(a, uint8_t, f->nblk)};
    verify(&c);
    *where = c.where;
    return c.msg;
}

const char *kl_ir_verify(const kl_fn *f, kl_arena *a)
{
    kl_val where;
    return kl_ir_verify_at(f, a, &where);
}
