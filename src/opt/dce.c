/* dce.c - remove what nothing uses.
 *
 * What: operations whose results reach no store; loads too; loops and branches without a
 * live effect or result; carried values and results that nothing uses.
 *
 * How: mark and sweep.  The seeds are the operations with effects.  Marking a value marks
 * its operands, the operation whose block it stands in (it decides whether the value is
 * computed), and, for a carried value, what goes in and comes round.  Everything is
 * marked at most once.
 *
 * Why not count uses and remove at zero: values that go round a loop use each other.
 *
 *     %5 = for ... carry %0 (%2: i64, %3: f32) {
 *       %4 = add %3, %1 : f32        ; used by the yield, which is used by %3,
 *       yield %4                     ; which is used by %4: counts never reach 0
 *     }                              ; though %5 is not used
 *
 * Must hold: effects stay, in order; control operations keep all their live results in
 * order.  A loop without effects whose results are unused is removed, ends it or not. */
#include "opt/util.h"

struct dce {
    kl_fn *f;
    uint8_t *live;
    KL_VEC(kl_val) work;
};

static void mark(struct dce *d, kl_val v)
{
    if (d->live[v.id])
        return;
    d->live[v.id] = 1;
    kl_push(d->f->a, &d->work, v);
}

static void mark_yield(struct dce *d, kl_blk b, uint32_t k)
{
    mark(d, kl_arg(d->f, kl_last(d->f, b), k));
}

static kl_val result_at(const kl_fn *f, kl_val owner, uint32_t k)
{
    kl_val r = {kl_in(f, owner)->next};
    while (k-- > 0)
        r.id = kl_in(f, r)->next;
    return r;
}

/* Carried value k of a loop is needed: what goes in, what comes round. */
static void mark_carried(struct dce *d, kl_val owner, uint32_t k)
{
    kl_fn *f = d->f;
    struct kl_carry c = kl_carried(f, owner);
    kl_blk own[2];
    uint32_t n = kl_blocks(f, owner, own);
    kl_val r = result_at(f, owner, k);
    if (d->live[r.id] == 2) /* been here */
        return;
    d->live[r.id] = 2;
    for (uint32_t i = 0; i < n; i++)
        mark(d, kl_param_at(f, own[i], c.iv + k));
    mark(d, kl_arg(f, owner, c.first + k));
    mark_yield(d, own[n - 1], k);
    mark(d, owner);
}

static void mark_param(struct dce *d, kl_val v)
{
    const kl_fn *f = d->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_val owner = f->blk[in->blk.id].owner;
    if (!owner.id || kl_is_fold(f, owner))
        return;
    struct kl_carry c = kl_carried(f, owner);
    if (in->attr.index >= c.iv)
        mark_carried(d, owner, (uint32_t)in->attr.index - c.iv);
}

/* v is live: so is what it needs. */
static void visit(struct dce *d, kl_val v)
{
    const kl_fn *f = d->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_val owner = f->blk[in->blk.id].owner;
    uint32_t n = in->nargs;
    if (owner.id)
        mark(d, owner);
    switch (in->op) {
    case KL_OP_param: mark_param(d, v); break;
    case KL_OP_result: {
        kl_val of = in->attr.result.of;
        if (kl_is_fold(f, of)) {
            mark(d, of);
        } else if (kl_in(f, of)->op == KL_OP_if) {
            mark(d, of);
            mark_yield(d, kl_in(f, of)->attr.blk[0], in->attr.result.index);
            mark_yield(d, kl_in(f, of)->attr.blk[1], in->attr.result.index);
        } else {
            mark_carried(d, of, in->attr.result.index);
        }
        break;
    }
    case KL_OP_for: n = 3; break; /* carried ones by themselves */
    case KL_OP_while:
        mark_yield(d, in->attr.blk[0], 0);
        n = 0;
        break;
    case KL_OP_reduce_fn:
    case KL_OP_scan:
        for (uint32_t i = 0; i < in->nargs; i++)
            mark_yield(d, in->attr.redfn.blk, i);
        break;
    default: break;
    }
    for (uint32_t i = 0; i < n; i++)
        mark(d, kl_arg(f, v, i));
}

static bool is_seed(uint16_t op)
{
    uint16_t flags = kl_ops[op].flags;
    return flags & KL_F_WRITE || (flags & KL_F_PIN && !(flags & (KL_F_REGION | KL_F_TERM)) &&
                                  op != KL_OP_param);
}

/* Remove what is not marked from a block; true if anything was. */
static bool sweep(struct dce *d, kl_blk blk)
{
    kl_fn *f = d->f;
    bool changed = false;
    for (uint32_t id = f->blk[blk.id].last, prev; id; id = prev) {
        kl_val v = {id};
        uint16_t op = f->ins[id].op;
        prev = f->ins[id].prev;
        if (op == KL_OP_param || op == KL_OP_yield || op == KL_OP_result)
            continue; /* with their owner */
        kl_blk own[2];
        uint32_t n = kl_blocks(f, v, own), nres = kl_nresults(f, v);
        if (!d->live[id]) {
            while (nres-- > 0)
                kl_remove(f, result_at(f, v, 0));
            kl_remove(f, v);
            changed = true;
            continue;
        }
        if (kl_is_fold(f, v))
            nres = 0; /* each may need all others */
        bool some = false, *drop = nres ? kl_new_n(f->a, bool, nres) : NULL;
        for (uint32_t i = 0; i < nres; i++)
            some |= drop[i] = !d->live[result_at(f, v, i).id];
        if (some)
            kl_drop_carried(f, v, drop);
        changed |= some;
        for (uint32_t i = 0; i < n; i++)
            changed |= sweep(d, own[i]);
    }
    return changed;
}

bool kl_opt_dce(kl_fn *f, const struct kl_target *t)
{
    (void)t;
    struct dce d = {.f = f, .live = kl_new_n(f->a, uint8_t, f->nins)};
    for (uint32_t id = 1; id < f->nins; id++)
        if (f->ins[id].blk.id && is_seed(f->ins[id].op))
            mark(&d, (kl_val){id});
    while (d.work.n)
        visit(&d, d.work.v[--d.work.n]);
    return sweep(&d, KL_BODY);
}
