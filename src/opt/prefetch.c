/* prefetch.c - `#pragma pipeline(n)`: loads of later trips are begun early.
 *
 * What: in a counted loop marked `pipeline n`, a load of a const array whose place follows from the
 * induction variable is done n - 1 trips before its value is used.  The value goes round the loop:
 * on a GPU in registers, so that n - 1 trips' worth of memory accesses is under way while the
 * present trip computes.
 *
 * How: n - 1 sets of loads stand in front of the loop; in it the loads of trip i + n - 1 come
 * first, what was carried moves up by one, and the oldest stands for the load.  All of it is under
 * the condition that the trip will run, so each element is loaded as often as before and at places
 * that were read before: nothing is guessed, also where extents are unknown.
 *
 *     for %lo, %hi, %s pipeline 2 (%i) { %v = load %x[%i:64]  ...%v... }      becomes
 *     %f = if (lo < hi) { load %x[%lo:64] } else { 0 }
 *     for %lo, %hi, %s carry %f (%i, %v) {
 *         %n = %i + %s
 *         %g = if (n < hi) { load %x[%n:64] } else { 0 }
 *         ...%v...   yield %g
 *     }
 *
 * Must hold: nothing writes the array while the kernel runs (const, no aliasing); the load stands in
 * the loop's own block, so each trip does it; its operands need only pure operations on the induction
 * variable and what is outside.  An induction variable may wrap: a trip runs only if those before it
 * do, so all their conditions are joined.
 *
 * Why not on the CPU: there a load is fused with its use, and the hardware looks ahead by itself.
 * Why not copies to shared memory: that is a matter of the back end's products, not of loops. */
#include "opt/util.h"

enum { MAX_AHEAD = 7, MAX_SLICE = 64 };

struct prefetch {
    kl_fn *f;
    kl_val loop;
    kl_blk blk;
    bool *need;     /* instructions of the block that the loads need, and the loads */
    uint32_t nneed, size; /* size: instructions before the rewriting */
    KL_VEC(kl_val) load;
};

/* Does v follow from the induction variable and what is outside?  Marks what it needs. */
static bool follows(struct prefetch *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    if (in->blk.id != p->blk.id || p->need[v.id])
        return true;
    if (in->op == KL_OP_param)
        return in->attr.index == 0;
    if (in->op == KL_OP_result || kl_ops[in->op].flags & (KL_F_REGION | KL_F_PIN) ||
        !(kl_ops[in->op].flags & KL_F_PURE) || p->nneed >= MAX_SLICE)
        return false;
    for (uint32_t i = 0; i < in->nargs; i++)
        if (!follows(p, kl_arg(f, v, i)))
            return false;
    p->need[v.id] = true;
    p->nneed++;
    return true;
}

static bool can_load_early(struct prefetch *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    if (in->op != KL_OP_load || kl_numel(kl_type_of(f, v)) < 2)
        return false;
    const struct kl_param *array = &f->param[kl_root(f, kl_arg(f, v, 0))];
    if (!array->isconst || array->written)
        return false;
    for (uint32_t i = 0; i < in->nargs; i++)
        if (!follows(p, kl_arg(f, v, i)))
            return false;
    return true;
}

/* All loads as of induction variable iv if cond holds, else zeros, into out. */
static void loads_at(struct prefetch *p, kl_build *b, kl_val iv, kl_val cond, kl_val *map, kl_val *out)
{
    kl_fn *f = p->f;
    kl_blk then = kl_blk_new(f), otherwise = kl_blk_new(f), arm[2] = {then, otherwise};
    kl_build at = {.f = f, .blk = arm[0], .loc = b->loc};
    map[kl_param_at(f, p->blk, 0).id] = iv;
    kl_val *loaded = kl_new_n(f->a, kl_val, p->load.n);
    uint32_t n = 0;
    for (kl_val v = {f->blk[p->blk.id].first}; v.id && n < p->load.n; v.id = kl_in(f, v)->next) {
        if (v.id >= p->size || (!p->need[v.id] && v.id != p->load.v[n].id))
            continue;
        struct kl_ins in = *kl_in(f, v); /* emitting moves the array */
        kl_val *args = kl_new_n(f->a, kl_val, in.nargs + 1u);
        for (uint32_t i = 0; i < in.nargs; i++) {
            kl_val a = kl_arg(f, v, i);
            args[i] = map[a.id].id ? map[a.id] : a;
        }
        at.loc = in.loc;
        kl_val c = kl_emit(&at, (enum kl_op)in.op, in.type, args, in.nargs, in.attr);
        if (p->need[v.id])
            map[v.id] = c;
        if (v.id == p->load.v[n].id)
            loaded[n++] = c;
    }
    KL_CHECK(f->a->env, n == p->load.n);
    kl_emit(&at, KL_OP_yield, (kl_typ){0}, loaded, n, (union kl_attr){0});
    at = (kl_build){.f = f, .blk = arm[1], .loc = b->loc};
    for (uint32_t i = 0; i < n; i++)
        loaded[i] = kl_cst(&at, kl_in(f, p->load.v[i])->type, 0);
    kl_emit(&at, KL_OP_yield, (kl_typ){0}, loaded, n, (union kl_attr){0});
    kl_val choice = kl_emit(b, KL_OP_if, (kl_typ){0}, &cond, 1, (union kl_attr){.blk = {arm[0], arm[1]}});
    for (uint32_t i = 0; i < n; i++)
        out[i] = kl_result(b, choice, i, kl_in(f, p->load.v[i])->type);
}

/* The next induction variable, and whether a trip with it runs, given that for the one before. */
static void step(struct prefetch *p, kl_build *b, kl_val *iv, kl_val *runs)
{
    const kl_fn *f = p->f;
    *iv = kl_ew2(b, KL_OP_add, *iv, kl_arg(f, p->loop, 2));
    kl_val here = kl_ew2(b, KL_OP_lt, *iv, kl_arg(f, p->loop, 1));
    *runs = runs->id ? kl_ew2(b, KL_OP_and, *runs, here) : here;
}

static void rewrite(struct prefetch *p, uint32_t ahead)
{
    kl_fn *f = p->f;
    kl_val v = p->loop;
    struct kl_carry c = kl_carried(f, v);
    uint32_t n = p->load.n, all = c.n + n * ahead, size = f->nins;
    kl_val *arg = kl_new_n(f->a, kl_val, all + 3), *yield = kl_new_n(f->a, kl_val, all + 1);
    kl_val *in = kl_new_n(f->a, kl_val, n * ahead), *now = kl_new_n(f->a, kl_val, n);
    for (uint32_t i = 0; i < c.n + 3; i++)
        arg[i] = kl_arg(f, v, i);

    /* in front: trips 0 .. ahead - 1 */
    kl_build b = {.f = f, .blk = kl_in(f, v)->blk, .before = v, .loc = kl_in(f, v)->loc};
    kl_val iv = arg[0], runs = kl_ew2(&b, KL_OP_lt, iv, arg[1]);
    for (uint32_t k = 0; k < ahead; k++) {
        if (k)
            step(p, &b, &iv, &runs);
        loads_at(p, &b, iv, runs, kl_new_n(f->a, kl_val, size), arg + 3 + c.n + k * n);
    }

    /* in the loop: trip + ahead, at the head */
    kl_build head = {.f = f, .blk = p->blk, .loc = b.loc};
    for (uint32_t i = 0; i < n * ahead; i++)
        in[i] = kl_block_param(&head, kl_in(f, arg[3 + c.n + i])->type);
    head.before = (kl_val){kl_in(f, in[n * ahead - 1])->next};
    iv = kl_param_at(f, p->blk, 0);
    runs = (kl_val){0};
    for (uint32_t k = 0; k < ahead; k++)
        step(p, &head, &iv, &runs);
    kl_val *map = kl_new_n(f->a, kl_val, f->nins);
    loads_at(p, &head, iv, runs, map, now);

    kl_val last = kl_last(f, p->blk);
    for (uint32_t i = 0; i < c.n; i++)
        yield[i] = kl_arg(f, last, i);
    for (uint32_t i = 0; i < n * ahead; i++)
        yield[c.n + i] = i + n < n * ahead ? in[i + n] : now[i + n - n * ahead];
    kl_set_args(f, last, yield, all);

    kl_val end = v;
    while (kl_in(f, end)->next && kl_in(f, (kl_val){kl_in(f, end)->next})->op == KL_OP_result)
        end.id = kl_in(f, end)->next;
    kl_build behind = {.f = f, .blk = b.blk, .before = {kl_in(f, end)->next}, .loc = b.loc};
    for (uint32_t i = c.n; i < all; i++)
        kl_result(&behind, v, i, kl_in(f, arg[3 + i])->type);
    kl_set_args(f, v, arg, all + 3);
    kl_in(f, v)->attr.loop.pipeline = 0;

    kl_val *repl = kl_new_n(f->a, kl_val, f->nins);
    for (uint32_t i = 0; i < n; i++)
        repl[p->load.v[i].id] = in[i];
    kl_replace_all(f, repl);
    for (uint32_t i = 0; i < n; i++)
        kl_remove(f, p->load.v[i]);
}

static bool do_loop(kl_fn *f, kl_val loop)
{
    uint32_t ahead = kl_in(f, loop)->attr.loop.pipeline;
    if (ahead < 2)
        return false;
    ahead = ahead - 1 < MAX_AHEAD ? ahead - 1 : MAX_AHEAD;
    struct prefetch p = {.f = f, .loop = loop, .blk = kl_in(f, loop)->attr.loop.blk,
                         .need = kl_new_n(f->a, bool, f->nins), .size = f->nins};
    kl_each_ins(f, p.blk, v)
        if (can_load_early(&p, v))
            kl_push(f->a, &p.load, v);
    if (!p.load.n)
        return false;
    rewrite(&p, ahead);
    return true;
}

static bool walk(kl_fn *f, kl_blk blk)
{
    bool changed = false;
    for (uint32_t id = f->blk[blk.id].first; id; id = f->ins[id].next) {
        kl_val v = {id};
        kl_blk own[2];
        for (uint32_t i = kl_blocks(f, v, own); i-- > 0;)
            changed |= walk(f, own[i]);
        if (f->ins[id].op == KL_OP_for)
            changed |= do_loop(f, v);
    }
    return changed;
}

bool kl_opt_prefetch(kl_fn *f, const struct kl_target *t)
{
    return !f->may_alias && !(t && t->fused) && walk(f, KL_BODY);
}
