/* access.c - what the instructions that reach memory or a part of a tile have in common. */
#include "ir/ir.h"

const char *const kl_rmw_names[KL_NRMW] = {"add", "min", "max", "and", "or", "xor", "xchg", "cas"};
const char *const kl_order_names[KL_NORDER] = {"relaxed", "acquire", "release", "acq_rel"};
const char *const kl_reach_names[KL_NSCOPE] = {"program", "device", "system"};

uint32_t kl_access_values(const struct kl_ins *in)
{
    switch (in->op) {
    case KL_OP_store: case KL_OP_insert: case KL_OP_atomic_store: return 1;
    case KL_OP_atomic: return KL_HOW_RMW(in->attr.access.how) == KL_RMW_cas ? 2 : 1;
    default: return 0;
    }
}

const struct kl_type *kl_access_tile(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    bool takes = in->op == KL_OP_store || in->op == KL_OP_insert || in->op == KL_OP_atomic_store;
    return takes ? kl_type_of(f, kl_arg(f, v, 1u + in->attr.access.n)) : kl_type_of(f, v);
}

uint32_t kl_access_indices(const kl_fn *f, kl_val v)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < kl_in(f, v)->attr.access.n; d++)
        n += kl_access_index(f, v, d);
    return n;
}

bool kl_access_scattered(const kl_fn *f, kl_val v)
{
    bool any = false;
    for (uint32_t d = 0; d < kl_in(f, v)->attr.access.n; d++) {
        if (kl_access_step(f, v, d))
            return false;
        any |= kl_access_index(f, v, d);
    }
    return any;
}
