/* unroll.c - unroll counted loops with constant bounds.
 *
 * What: a loop of few trips and a small body becomes its trips one after the other, with
 * the induction variable a constant in each.  `unroll 1` asks for that whatever the size
 * (up to a limit); `unroll n` for n trips in one, and the rest behind.  Loops whose trips
 * are not constant stay, with their mark, for the back end.
 *
 * How: inner loops first, so that sizes are known.  A copy maps the block's parameters to
 * what the trip before handed on; the block's yield gives what the next one gets.
 *
 *     %3 = for 0, 2, 1 carry %0 (%1: i64, %2: f32) { %4 = add %2, %9  yield %4 }
 *     becomes  %5 = add %0, %9   %6 = add %5, %9    and %6 stands for %3
 *
 * Why not leave it to the C compiler: tiles have compile-time sizes, so constants for the
 * induction variable often turn an index, a mask or a branch into nothing, which only the
 * passes here can see.
 *
 * Must hold: the same operations in the same order; the size of the function stays in
 * proportion (MAX_SIZE for each loop). */
#include "opt/util.h"

enum {
    AUTO_SIZE = 64,  /* trips * instructions that are unrolled without being asked */
    AUTO_TRIPS = 4,  /* or so few trips, */
    AUTO_MOST = 256, /* if no more instructions than this come out */
    MAX_SIZE = 4096  /* the most that is unrolled on request */
};

struct unroll {
    kl_fn *f;
    kl_val *map;  /* for kl_clone_block */
    kl_val *repl; /* what stands for a result of a loop that is gone */
    uint32_t cmap, nrepl;
    bool changed;
};

/* Copy the block of loop v before it: iv is the induction variable, val[] what is carried
 * in and then out. */
static void one_trip(struct unroll *u, kl_val v, kl_val before, kl_val iv, kl_val *val)
{
    kl_fn *f = u->f;
    kl_blk blk = kl_in(f, v)->attr.loop.blk;
    struct kl_carry c = kl_carried(f, v);
    if (u->cmap < f->nins)
        u->map = kl_vec_grow(f->a, u->map, &u->cmap, sizeof *u->map, f->nins);
    kl_val p = kl_param_at(f, blk, 0);
    u->map[p.id] = iv;
    for (uint32_t i = 0; i < c.n; i++) {
        p.id = kl_in(f, p)->next;
        u->map[p.id] = val[i];
    }
    kl_build b = {.f = f, .blk = kl_in(f, before)->blk, .before = before,
                  .loc = kl_in(f, v)->loc};
    kl_clone_block(&b, blk, u->map, val);
}

/* A constant of the induction variable's type before an instruction. */
static kl_val iv_const(struct unroll *u, kl_val v, kl_val before, int64_t x)
{
    kl_fn *f = u->f;
    kl_build b = {.f = f, .blk = kl_in(f, before)->blk, .before = before,
                  .loc = kl_in(f, v)->loc};
    return kl_cst(&b, kl_in(f, kl_arg(f, v, 0))->type, (uint64_t)x);
}

/* n trips in one: a new loop of trips / n trips before v, whose results go to val. */
static void partly(struct unroll *u, kl_val v, uint32_t n, uint64_t trips, kl_val *val)
{
    kl_fn *f = u->f;
    struct kl_carry c = kl_carried(f, v);
    struct kl_ins in = *kl_in(f, v);
    int64_t lo = (int64_t)kl_in(f, kl_arg(f, v, 0))->attr.bits;
    int64_t step = (int64_t)kl_in(f, kl_arg(f, v, 2))->attr.bits;
    kl_val *arg = kl_new_n(f->a, kl_val, c.n + 3), *now = kl_new_n(f->a, kl_val, c.n + 1);
    arg[0] = kl_arg(f, v, 0);
    arg[1] = iv_const(u, v, v, lo + (int64_t)(trips / n * n) * step);
    arg[2] = iv_const(u, v, v, n * step);
    for (uint32_t i = 0; i < c.n; i++)
        arg[3 + i] = val[i];

    kl_blk blk = kl_blk_new(f);
    kl_build inner = {.f = f, .blk = blk, .loc = in.loc};
    kl_val iv = kl_block_param(&inner, kl_in(f, arg[0])->type);
    for (uint32_t i = 0; i < c.n; i++)
        now[i] = kl_block_param(&inner, kl_in(f, val[i])->type);
    kl_build outer = {.f = f, .blk = in.blk, .before = v, .loc = in.loc};
    union kl_attr attr = {.loop = {.blk = blk}};
    kl_val loop = kl_emit(&outer, KL_OP_for, (kl_typ){0}, arg, c.n + 3, attr);
    kl_val yield = kl_emit(&inner, KL_OP_yield, (kl_typ){0}, NULL, 0, (union kl_attr){0});
    for (uint32_t k = 0; k < n; k++) {
        kl_val at = iv;
        if (k > 0) {
            kl_val ofs = iv_const(u, v, yield, (int64_t)k * step), two[2] = {iv, ofs};
            kl_build b = {.f = f, .blk = blk, .before = yield, .loc = in.loc};
            at = kl_emit(&b, KL_OP_add, (kl_typ){0}, two, 2, (union kl_attr){0});
        }
        one_trip(u, v, yield, at, now);
    }
    kl_set_args(f, yield, now, c.n);
    for (uint32_t i = 0; i < c.n; i++)
        val[i] = kl_result(&outer, loop, i, kl_in(f, val[i])->type);
}

/* How many trips go into one: 0 leave it, UINT32_MAX all. */
static uint32_t plan(const kl_fn *f, kl_val v, uint64_t trips)
{
    uint32_t ask = kl_in(f, v)->attr.loop.unroll;
    uint64_t size = kl_block_size(f, kl_in(f, v)->attr.loop.blk);
    if (trips > MAX_SIZE)
        return ask > 1 && ask * size <= MAX_SIZE ? ask : 0;
    if (ask > 1 && ask < trips)
        return ask * size <= MAX_SIZE ? ask : 0;
    if (ask)
        return trips * size <= MAX_SIZE ? UINT32_MAX : 0;
    bool small = trips * size <= AUTO_SIZE || (trips <= AUTO_TRIPS && trips * size <= AUTO_MOST);
    return small ? UINT32_MAX : 0;
}

static void unroll_loop(struct unroll *u, kl_val v)
{
    kl_fn *f = u->f;
    struct kl_carry c = kl_carried(f, v);
    uint64_t trips;
    uint32_t n = kl_const_trips(f, v, &trips) ? plan(f, v, trips) : 0;
    if (!n)
        return;
    u->changed = true;
    int64_t lo = (int64_t)kl_in(f, kl_arg(f, v, 0))->attr.bits;
    int64_t step = (int64_t)kl_in(f, kl_arg(f, v, 2))->attr.bits;
    kl_val *val = kl_new_n(f->a, kl_val, c.n + 1);
    for (uint32_t i = 0; i < c.n; i++)
        val[i] = kl_arg(f, v, 3 + i);
    uint64_t done = 0;
    if (n != UINT32_MAX) {
        partly(u, v, n, trips, val);
        done = trips / n * n;
    }
    for (; done < trips; done++)
        one_trip(u, v, v, iv_const(u, v, v, lo + (int64_t)done * step), val);

    for (uint32_t i = 0; i < c.n; i++) { /* uses stand behind and are met later */
        kl_val r = {kl_in(f, v)->next};
        u->repl[r.id] = val[i];
        kl_remove(f, r);
    }
    kl_remove(f, v);
}

static void walk(struct unroll *u, kl_blk blk)
{
    kl_fn *f = u->f;
    for (uint32_t id = f->blk[blk.id].first, next; id; id = next) {
        kl_val v = {id};
        kl_blk own[2];
        for (uint32_t i = 0; i < f->ins[id].nargs; i++) {
            kl_val *a = &f->args[f->ins[id].args + i];
            while (a->id < u->nrepl && u->repl[a->id].id)
                *a = u->repl[a->id];
        }
        for (uint32_t n = kl_blocks(f, v, own), i = 0; i < n; i++)
            walk(u, own[i]);
        next = f->ins[id].next;
        while (next && f->ins[next].op == KL_OP_result) /* they go with a loop */
            next = f->ins[next].next;
        if (f->ins[id].op == KL_OP_for)
            unroll_loop(u, v);
    }
}

bool kl_opt_unroll(kl_fn *f, const struct kl_target *t)
{
    (void)t;
    struct unroll u = {.f = f, .map = kl_new_n(f->a, kl_val, f->nins), .cmap = f->nins,
                       .repl = kl_new_n(f->a, kl_val, f->nins), .nrepl = f->nins};
    walk(&u, KL_BODY);
    return u.changed;
}
