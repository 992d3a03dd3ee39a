/* effects.c - which global arrays an instruction reads and writes.
 *
 * An array value is a parameter or a view of one, at any depth, so each access has one
 * root parameter.  Passes order accesses by these sets.  An atomic access that acquires or
 * releases stays where it is among all of them. */
#include "ir/ir.h"

uint32_t kl_root(const kl_fn *f, kl_val array)
{
    while (kl_in(f, array)->op == KL_OP_view)
        array = kl_arg(f, array, 0);
    return (uint32_t)kl_in(f, array)->attr.index;
}

struct kl_effect kl_effect(const kl_fn *f, kl_val v)
{
    struct kl_effect e = {0, 0};
    uint16_t flags = kl_ops[kl_in(f, v)->op].flags;
    if (flags & (KL_F_READ | KL_F_WRITE)) {
        uint32_t root = kl_root(f, kl_arg(f, v, 0));
        uint64_t bit = UINT64_C(1) << (root < 63 ? root : 63);
        e.read = flags & KL_F_READ ? bit : 0;
        e.write = flags & KL_F_WRITE ? bit : 0;
        if (kl_is_atomic(kl_in(f, v)->op) && KL_HOW_ORDER(kl_in(f, v)->attr.access.how))
            e.read = e.write = UINT64_MAX;
    }
    kl_blk own[2];
    for (uint32_t i = kl_blocks(f, v, own); i-- > 0;)
        kl_each_ins(f, own[i], in) {
            struct kl_effect x = kl_effect(f, in);
            e.read |= x.read;
            e.write |= x.write;
        }
    return e;
}

bool kl_conflict(const kl_fn *f, struct kl_effect a, struct kl_effect b)
{
    if (f->may_alias) /* any two arrays may share elements */
        return (a.write && (b.read | b.write)) || (b.write && a.read);
    return (a.write & (b.read | b.write)) || (b.write & a.read);
}
