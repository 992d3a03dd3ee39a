/* simplify.h - between the files of the simplify pass. */
#ifndef KL_SIMPLIFY_H
#define KL_SIMPLIFY_H

#include "opt/util.h"

struct kl_simp {
    kl_fn *f;
    kl_val *repl;   /* what replaced a removed value */
    uint32_t crepl;
    bool changed;
    uint32_t budget; /* applications left: rules end by themselves, this makes sure */
};

/* A rule returns 0: no match; v: v was changed in place; else what replaces v.  New
 * instructions go before v. */
typedef kl_val kl_rule_fn(struct kl_simp *s, kl_val v);
#define RULE(op, name, doc) kl_rule_fn kl_rule_##name;
#include "opt/rules.def"

/* A rule on control flow: true if it changed something.  It may remove v. */
typedef bool kl_flow_fn(struct kl_simp *s, kl_val v);
#define FLOW(op, name, doc) kl_flow_fn kl_flow_##name;
#include "opt/flow.def"

/* What stands for v by now. */
kl_val kl_simp_now(const struct kl_simp *s, kl_val v);
/* Uses of v become uses of by; v is removed. */
void kl_simp_replace(struct kl_simp *s, kl_val v, kl_val by);

/* Short forms for rules.  Operand i; is operand i a constant, and its bits; an operation
 * before v, with v's place in the source. */
static inline kl_val kl_op_arg(const struct kl_simp *s, kl_val v, uint32_t i)
{
    return kl_arg(s->f, v, i);
}
static inline enum kl_op kl_op_of(const struct kl_simp *s, kl_val v)
{
    return (enum kl_op)kl_in(s->f, v)->op;
}
static inline enum kl_elem kl_elem_of(const struct kl_simp *s, kl_val v)
{
    return (enum kl_elem)kl_type_of(s->f, v)->elem;
}
static inline bool kl_const_arg(const struct kl_simp *s, kl_val v, uint32_t i, uint64_t *bits)
{
    kl_val a = kl_arg(s->f, v, i);
    *bits = kl_in(s->f, a)->attr.bits;
    return kl_is_const(s->f, a);
}
kl_val kl_make(struct kl_simp *s, kl_val v, enum kl_op op, kl_typ type, const kl_val *args,
               uint32_t n, union kl_attr attr);
kl_val kl_make1(struct kl_simp *s, kl_val v, enum kl_op op, kl_val x);
kl_val kl_make2(struct kl_simp *s, kl_val v, enum kl_op op, kl_val x, kl_val y);
kl_val kl_make_const(struct kl_simp *s, kl_val v, kl_typ type, uint64_t bits);

static const kl_val KL_NO = {0};

#endif
