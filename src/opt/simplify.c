/* simplify.c - algebraic rules and constant folding.
 *
 * What: the rules of rules.def on instructions and of flow.def on control flow, until
 * none matches.
 *
 * How: one walk in program order.  Every use of a value stands behind its definition, so
 * when an instruction is replaced it is removed at once and later operands are looked up
 * in a map (repl) as the walk reaches them; nothing is searched.  After a rule fired, the
 * walk steps back to the first instruction the rule made.  Walks are repeated while they
 * change something, because a loop's yield is seen after the loop's head.
 *
 * Why not a list of users and a work list: in this IR a use is never in front of its
 * definition, so a walk sees operands in their final form; what needs a second walk is
 * only what goes round a loop.
 *
 *     %2 = mul %0, %1      ; %1 = 1
 *     %3 = add %2, %2      ; becomes add %0, %0: %2 is gone before %3 is looked at
 *
 * Must hold: sound IR before; sound IR after, with the same values bit by bit (NaN
 * payloads aside) and the same accesses, except loads and stores whose mask is false. */
#include "opt/simplify.h"

static kl_rule_fn *const rule[] = {
#define RULE(op, name, doc) kl_rule_##name,
#include "opt/rules.def"
};
static const uint16_t rule_op[] = {
#define RULE(op, name, doc) KL_OP_##op,
#include "opt/rules.def"
};
static kl_flow_fn *const flow[] = {
#define FLOW(op, name, doc) kl_flow_##name,
#include "opt/flow.def"
};
static const uint16_t flow_op[] = {
#define FLOW(op, name, doc) KL_OP_##op,
#include "opt/flow.def"
};
enum { NRULE = sizeof rule / sizeof rule[0], NFLOW = sizeof flow / sizeof flow[0] };
enum { MAX_WALKS = 16 };

kl_val kl_simp_now(const struct kl_simp *s, kl_val v)
{
    while (v.id < s->crepl && s->repl[v.id].id)
        v = s->repl[v.id];
    return v;
}

void kl_simp_replace(struct kl_simp *s, kl_val v, kl_val by)
{
    if (v.id >= s->crepl)
        s->repl = kl_vec_grow(s->f->a, s->repl, &s->crepl, sizeof *s->repl, s->f->nins);
    s->repl[v.id] = by;
    kl_remove(s->f, v);
}

kl_val kl_make(struct kl_simp *s, kl_val v, enum kl_op op, kl_typ type, const kl_val *args,
               uint32_t n, union kl_attr attr)
{
    const struct kl_ins *in = kl_in(s->f, v);
    kl_build b = {.f = s->f, .blk = in->blk, .before = v, .loc = in->loc};
    return kl_emit(&b, op, type, args, n, attr);
}

kl_val kl_make1(struct kl_simp *s, kl_val v, enum kl_op op, kl_val x)
{
    return kl_make(s, v, op, kl_in(s->f, v)->type, &x, 1, (union kl_attr){0});
}

kl_val kl_make2(struct kl_simp *s, kl_val v, enum kl_op op, kl_val x, kl_val y)
{
    kl_val a[2] = {x, y};
    return kl_make(s, v, op, kl_in(s->f, v)->type, a, 2, (union kl_attr){0});
}

kl_val kl_make_const(struct kl_simp *s, kl_val v, kl_typ type, uint64_t bits)
{
    union kl_attr attr = {.bits = kl_canon((enum kl_elem)s->f->type[type.id].elem, bits)};
    return kl_make(s, v, KL_OP_const, type, NULL, 0, attr);
}

/* The first rule that matches; its result as for kl_rule_fn. */
static kl_val try_rules(struct kl_simp *s, kl_val v, const uint8_t first[KL_NOP])
{
    uint16_t op = kl_in(s->f, v)->op;
    if (kl_ops[op].flags & KL_F_EW)
        for (uint32_t i = 0; i < NRULE && rule_op[i] == KL_OP_none; i++) {
            kl_val r = rule[i](s, v);
            if (r.id)
                return r;
        }
    for (uint32_t i = first[op]; i < NRULE; i++)
        if (rule_op[i] == op) {
            kl_val r = rule[i](s, v);
            if (r.id)
                return r;
        }
    return KL_NO;
}

static bool try_flow(struct kl_simp *s, kl_val v)
{
    for (uint32_t i = 0; i < NFLOW; i++)
        if (flow_op[i] == kl_in(s->f, v)->op && flow[i](s, v))
            return true;
    return false;
}

static bool step(struct kl_simp *s, kl_val v, const uint8_t first[KL_NOP])
{
    const struct kl_ins *in = kl_in(s->f, v);
    if (!s->budget)
        return false;
    for (uint32_t i = 0; i < in->nargs; i++) {
        kl_val *a = &s->f->args[in->args + i];
        *a = kl_simp_now(s, *a);
    }
    if (try_flow(s, v))
        return true;
    kl_val r = try_rules(s, v, first);
    if (r.id && r.id != v.id)
        kl_simp_replace(s, v, r);
    return r.id != 0;
}

static void walk(struct kl_simp *s, kl_blk blk, const uint8_t first[KL_NOP])
{
    kl_fn *f = s->f;
    for (uint32_t id = f->blk[blk.id].first; id;) {
        kl_val v = {id};
        uint32_t prev = f->ins[id].prev;
        if (step(s, v, first)) {
            s->changed = true;
            s->budget--;
            id = prev ? f->ins[prev].next : f->blk[blk.id].first;
            continue;
        }
        kl_blk own[2];
        for (uint32_t n = kl_blocks(f, v, own), i = 0; i < n; i++)
            walk(s, own[i], first);
        id = f->ins[id].next;
    }
}

bool kl_opt_simplify(kl_fn *f, const struct kl_target *t)
{
    (void)t;
    struct kl_simp s = {.f = f, .budget = 100 + 32 * f->nins};
    uint8_t first[KL_NOP]; /* the first rule of each operation */
    bool changed = false;
    memset(first, NRULE, sizeof first);
    for (uint32_t i = NRULE; i-- > 0;)
        first[rule_op[i]] = (uint8_t)i;
    for (uint32_t i = 0; i < MAX_WALKS; i++) {
        s.changed = false;
        walk(&s, KL_BODY, first);
        changed |= s.changed;
        if (!s.changed)
            break;
    }
    return changed;
}

_Static_assert(NRULE < 255, "rule numbers are bytes");
