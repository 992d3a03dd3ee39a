/* licm.c - move what does not change out of loops.
 *
 * What: an operation without effect whose operands are all defined outside the loop moves
 * in front of it; so does a load if nothing in the loop may write its array and the loop
 * surely runs (a load outside the extents is defined, but a finding of the checker, and
 * a loop that runs no trip must not cause one).
 *
 * How: inner loops first, then their parents, so that a value goes out as far as it can.
 * An instruction stands directly in the loop's block or deeper; only those directly in it
 * move (a branch in the loop may not be taken).  A value is defined in the loop exactly
 * if it stands in the loop's own blocks, since what is visible stands here or further out.
 *
 * Must hold: order of effects; an operation that may not be executed is not moved in
 * front of the loop, except that pure ones never trap and may run for nothing.
 *
 *     for ... { %5 = broadcast %1 : f32[64]      ; moves: %1 is outside
 *               %6 = mul %5, %4 : f32[64] }      ; stays: %4 is the loop's */
#include "opt/util.h"

static bool licm_block(kl_fn *f, kl_blk blk);

/* Does anything in a block (nested ones included) use a value of block `in`? */
static bool block_uses(const kl_fn *f, kl_blk blk, kl_blk in)
{
    kl_each_ins(f, blk, v) {
        kl_blk own[2];
        for (uint32_t i = 0; i < kl_in(f, v)->nargs; i++)
            if (kl_in(f, kl_arg(f, v, i))->blk.id == in.id)
                return true;
        for (uint32_t i = kl_blocks(f, v, own); i-- > 0;)
            if (block_uses(f, own[i], in))
                return true;
    }
    return false;
}

static bool invariant(const kl_fn *f, kl_val v, kl_blk loop)
{
    kl_blk own[2];
    for (uint32_t i = 0; i < kl_in(f, v)->nargs; i++)
        if (kl_in(f, kl_arg(f, v, i))->blk.id == loop.id)
            return false;
    for (uint32_t i = kl_blocks(f, v, own); i-- > 0;)
        if (block_uses(f, own[i], loop))
            return false;
    return true;
}

/* Move what can from a block of `loop`.  runs: the block is executed at least once. */
static bool hoist(kl_fn *f, kl_val loop, kl_blk blk, bool runs)
{
    struct kl_effect in_loop = kl_effect(f, loop);
    bool changed = false;
    for (uint32_t id = f->blk[blk.id].first, next; id; id = next) {
        kl_val v = {id};
        uint16_t op = f->ins[id].op, flags = kl_ops[op].flags;
        next = f->ins[id].next;
        if (op == KL_OP_result || flags & KL_F_PIN || !(flags & (KL_F_PURE | KL_F_READ)) ||
            !f->ins[id].type.id) /* several results stay behind their operation */
            continue;
        if (flags & KL_F_READ && (!runs || kl_conflict(f, kl_effect(f, v), in_loop)))
            continue;
        if (!invariant(f, v, blk))
            continue;
        kl_move_before(f, v, loop);
        changed = true;
    }
    return changed;
}

static bool licm_block(kl_fn *f, kl_blk blk)
{
    bool changed = false;
    for (uint32_t id = f->blk[blk.id].first; id; id = f->ins[id].next) {
        kl_val v = {id};
        kl_blk own[2];
        uint32_t n = kl_blocks(f, v, own);
        uint64_t trips = 0;
        for (uint32_t i = 0; i < n; i++)
            changed |= licm_block(f, own[i]);
        if (f->ins[id].op == KL_OP_for) {
            bool runs = kl_const_trips(f, v, &trips) && trips > 0;
            changed |= hoist(f, v, own[0], runs);
        } else if (f->ins[id].op == KL_OP_while) {
            changed |= hoist(f, v, own[0], true); /* the condition is always computed */
            changed |= hoist(f, v, own[1], false);
        }
    }
    return changed;
}

bool kl_opt_licm(kl_fn *f, const struct kl_target *t)
{
    (void)t;
    return licm_block(f, KL_BODY);
}
