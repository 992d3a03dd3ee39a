/* warp.c - one warp: the stack of divergent parts, branches, ends, arrivals at barriers.
 *
 * The top of the stack runs.  A branch that splits its lanes leaves them waiting at
 * the place where they meet again (cfg.c) and runs the parts one after the other; a
 * part that arrives there is popped.  A part that already ends at that place is cut
 * down instead, so that loops do not grow the stack. */
#include "sim/exec.h"
#include "sim/lane.h"

static struct sim_frame *top(struct sim_warp *w)
{
    return &w->stack[w->sp];
}

static void push(struct sim_warp *w, uint32_t pc, uint32_t rpc, uint32_t mask)
{
    if (mask && pc != rpc) /* lanes that are there already just wait */
        w->stack[++w->sp] = (struct sim_frame){pc, rpc, mask};
}

EXEC(bra)
{
    struct sim_frame *t = top(w);
    struct sim_run *r = w->run;
    uint32_t rest = t->mask & ~mask, next = t->pc; /* pc is behind the branch already */
    if (!rest) {
        t->pc = i->target;
        return;
    }
    r->tally[sim_index(w, i)].divergent++;
    if (i->target == next)
        return;
    if (w->sp + 3 >= STACK_MAX) { /* parts of at least one lane each: cannot happen */
        kl_sim_report(w, i, KL_K1508, mask, "the warp has diverged too deeply");
        r->stop = true;
        return;
    }
    if (i->rpc == t->rpc && i->rpc != SIM_NONE) {
        w->sp--; /* what lies below covers these lanes and waits at the same place */
    } else if (i->rpc == SIM_NONE) {
        w->sp--; /* they never meet again */
    } else {
        t->pc = i->rpc;
    }
    push(w, next, i->rpc, rest);
    push(w, i->target, i->rpc, mask);
}

/* Lanes end: they leave every part of the stack. */
static void leave(struct sim_warp *w, uint32_t lanes)
{
    w->alive &= ~lanes;
    uint32_t n = 0;
    for (uint32_t k = 1; k <= w->sp; k++) {
        w->stack[k].mask &= ~lanes;
        if (w->stack[k].mask)
            w->stack[++n] = w->stack[k];
    }
    w->sp = n;
    if (!w->alive) {
        w->state = WARP_DONE;
        kl_sim_async_finish(w);
    }
}

EXEC(exit)
{
    (void)i;
    leave(w, mask);
}

EXEC(trap)
{
    kl_sim_report(w, i, KL_K1513, mask, "trap");
    w->run->stop = true;
}

/* ---- barriers: the warp stops here, run.c lets it go on ---- */

static bool arrive(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                   const struct sim_opnd *id, const struct sim_opnd *count)
{
    uint64_t v[LANES];
    if (mask != w->alive) {
        kl_sim_report(w, i, KL_K1508, mask,
                      "a barrier that only %d of the %d lanes of warp %u "
                      "reach together",
                      sim_popc(mask), sim_popc(w->alive), w->id);
        w->run->stop = true;
        return false;
    }
    sim_get(w, id, v);
    uint64_t bar = v[sim_first(mask)], need = 0;
    if (count->given) {
        sim_get(w, count, v);
        need = v[sim_first(mask)];
    }
    if (bar >= SIM_BARRIERS || need % LANES || need > w->run->nwarp * (uint64_t)LANES ||
        (count->given && !need)) {
        kl_sim_report(w, i, KL_K1508, mask,
                      "barrier %u for %u threads: there are 16 barriers, "
                      "for whole warps of the CTA",
                      (uint32_t)bar, (uint32_t)need);
        w->run->stop = true;
        return false;
    }
    w->bar = (uint8_t)bar;
    w->bar_need = (uint32_t)need;
    w->at = i;
    w->redb = NULL;
    return true;
}

EXEC(bar)
{
    if (arrive(w, i, mask, &i->op[0], &i->op[1]))
        w->state = WARP_BAR;
}

EXEC(bar_arrive)
{
    if (arrive(w, i, mask, &i->op[0], &i->op[1]))
        w->cta->arrived[w->bar] += LANES;
}

EXEC(bar_red)
{
    if (!arrive(w, i, mask, &i->op[1], &i->op[2]))
        return;
    w->state = WARP_BAR;
    w->redb = i;
    w->red_mask = sim_getp(w, &i->op[3]) & mask;
}

/* ---- the loop ---- */

static void unwritten(struct sim_warp *w, const struct sim_ins *i, uint32_t mask)
{
    for (int k = i->nd; k < i->nd + i->ns; k++) {
        const struct sim_opnd *o = &i->op[k];
        if (!o->given || o->reg == SIM_NONE)
            continue;
        uint32_t bad = mask & ~w->written[o->reg];
        if (bad)
            kl_sim_report(w, i, KL_K1506, bad, "operand %d is a register that was never written",
                          k + 1);
    }
}

static bool stopped(struct sim_run *r, struct sim_warp *w, const struct sim_ins *i)
{
    if (r->steps >= r->opt.budget) {
        kl_sim_report(w, i, KL_K1511, w->alive, "still running after %llu instructions of warps",
                      (unsigned long long)r->steps);
        r->stop = true;
    } else if (r->opt.tick && !r->opt.tick(r->opt.tick_user)) {
        r->stop = r->stopped_by_tick = true;
    }
    return r->stop;
}

void kl_sim_warp_run(struct sim_warp *w, uint32_t turn)
{
    struct sim_run *r = w->run;
    const struct sim_fn *f = r->f;
    bool check = r->opt.checks & KL_SIM_UNINIT;
    for (uint32_t n = 0; n < turn && w->state == WARP_RUN; n++) {
        struct sim_frame *t = top(w);
        while (t->pc == t->rpc)
            t = &w->stack[--w->sp];
        if (t->pc >= f->nins) { /* the end of the body is an exit */
            leave(w, t->mask);
            continue;
        }
        uint32_t pc = t->pc++, mask = t->mask;
        const struct sim_ins *i = &f->ins[pc];
        if ((++r->steps & 0xffff) == 0 || r->steps >= r->opt.budget)
            if (stopped(r, w, i))
                return;
        if (i->pred != SIM_NONE) {
            if (check && mask & ~w->written[i->pred_reg])
                kl_sim_report(w, i, KL_K1506, mask & ~w->written[i->pred_reg],
                              "the guard is a predicate that was never written");
            mask &= w->pred[i->pred] ^ (i->predneg ? UINT32_MAX : 0);
        }
        struct sim_tally *c = &r->tally[pc];
        c->warps++;
        if (!mask)
            continue;
        c->lanes += (uint32_t)sim_popc(mask);
        if (check && !i->lazy)
            unwritten(w, i, mask);
        i->fn(w, i, mask);
        for (int k = 0; k < i->nd; k++)
            if (i->op[k].given)
                w->written[i->op[k].reg] |= mask;
        if (r->stop)
            return;
    }
}
