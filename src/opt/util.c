/* util.c - see util.h */
#include "opt/util.h"

struct kl_carry kl_carried(const kl_fn *f, kl_val v)
{
    bool loop = kl_in(f, v)->op == KL_OP_for;
    return (struct kl_carry){.n = kl_nresults(f, v), .first = loop ? 3 : 0, .iv = loop};
}

kl_val kl_param_at(const kl_fn *f, kl_blk b, uint32_t k)
{
    kl_val v = {f->blk[b.id].first};
    while (k-- > 0)
        v.id = kl_in(f, v)->next;
    return v;
}

/* Keep the operands of v from `first` on that are not dropped. */
static void drop_args(kl_fn *f, kl_val v, uint32_t first, uint32_t n, const bool *drop)
{
    struct kl_ins *in = kl_in(f, v);
    uint32_t to = first;
    for (uint32_t i = 0; i < n; i++)
        if (!drop[i])
            f->args[in->args + to++] = f->args[in->args + first + i];
    in->nargs = (uint16_t)to;
}

/* Remove the dropped ones of n consecutive parameters or results; number the rest. */
static void drop_list(kl_fn *f, uint32_t id, uint32_t n, uint32_t base, const bool *drop)
{
    uint32_t k = 0;
    for (uint32_t i = 0, next; i < n; i++, id = next) {
        next = f->ins[id].next;
        if (drop[i])
            kl_remove(f, (kl_val){id});
        else if (f->ins[id].op == KL_OP_param)
            f->ins[id].attr.index = base + k++;
        else
            f->ins[id].attr.result.index = k++;
    }
}

void kl_drop_carried(kl_fn *f, kl_val v, const bool *drop)
{
    struct kl_carry c = kl_carried(f, v);
    kl_blk own[2];
    uint32_t n = kl_blocks(f, v, own);
    uint16_t op = kl_in(f, v)->op;
    drop_list(f, kl_in(f, v)->next, c.n, 0, drop);
    for (uint32_t i = 0; i < n; i++) {
        if (op != KL_OP_if)
            drop_list(f, kl_param_at(f, own[i], c.iv).id, c.n, c.iv, drop);
        if (op != KL_OP_while || i == 1) /* blk[0] of a while yields its condition */
            drop_args(f, kl_last(f, own[i]), 0, c.n, drop);
    }
    if (op != KL_OP_if)
        drop_args(f, v, c.first, c.n, drop);
}

bool kl_const_trips(const kl_fn *f, kl_val v, uint64_t *trips)
{
    for (uint32_t i = 0; i < 3; i++)
        if (!kl_is_const(f, kl_arg(f, v, i)))
            return false;
    int64_t lo = (int64_t)kl_in(f, kl_arg(f, v, 0))->attr.bits;
    int64_t hi = (int64_t)kl_in(f, kl_arg(f, v, 1))->attr.bits;
    int64_t step = (int64_t)kl_in(f, kl_arg(f, v, 2))->attr.bits;
    int64_t max = kl_type_of(f, kl_arg(f, v, 0))->elem == KL_i32 ? INT32_MAX : INT64_MAX;
    if (step <= 0)
        return false;
    *trips = 0;
    if (lo >= hi)
        return true;
    uint64_t n = ((uint64_t)hi - (uint64_t)lo - 1) / (uint64_t)step + 1;
    /* the last increment must stay in the type: lo + n * step <= max */
    if (n > ((uint64_t)max - (uint64_t)lo) / (uint64_t)step)
        return false;
    *trips = n;
    return true;
}

uint32_t kl_block_size(const kl_fn *f, kl_blk b)
{
    uint32_t n = 0;
    kl_each_ins(f, b, v) {
        kl_blk own[2];
        n++;
        for (uint32_t i = kl_blocks(f, v, own); i-- > 0;)
            n += kl_block_size(f, own[i]);
    }
    return n;
}
