/* cfg.c - where the lanes of a divergent branch meet again.
 *
 * That is the immediate post-dominator of the branch in the graph of basic blocks.
 * Early ends would move it to the end of the function for every branch around them,
 * so they are left out:
 *
 *     if (a) { if (b) return; x(); }      the lanes meet at y, not at the end;
 *     y();                                those that returned are gone
 *
 * Left out are edges to blocks that only end the thread, as long as their source
 * reaches the end without them, and edges from where the main end can be reached to
 * where it cannot.  The main end is the one that most blocks reach.
 *
 * Post-dominators by the iterative algorithm of Cooper, Harvey and Kennedy. */
#include "sim/exec.h"

struct block {
    uint32_t first, last; /* instructions */
    uint32_t succ[2];     /* SIM_NONE: none; n: the end */
    bool pruned[2];
    uint32_t order, ipdom; /* number in post-order of the reversed graph; SIM_NONE: not reached */
};

struct graph {
    struct block *b;
    uint32_t n; /* blocks; number n is the end */
    uint32_t *pred_at, *pred; /* predecessors: of block k at pred[pred_at[k]] .. */
};

static bool ends(const struct sim_ins *i)
{
    return (i->fn == kl_sim_x_exit || i->fn == kl_sim_x_trap) && i->pred == SIM_NONE;
}

static void add_edges(struct sim_fn *f, struct graph *g, const uint32_t *block_of)
{
    for (uint32_t k = 0; k < g->n; k++) {
        struct block *b = &g->b[k];
        const struct sim_ins *i = &f->ins[b->last];
        uint32_t next = b->last + 1 < f->nins ? block_of[b->last + 1] : g->n;
        b->succ[0] = b->succ[1] = SIM_NONE;
        if (ends(i)) {
            b->succ[0] = g->n;
        } else if (i->is_branch) {
            b->succ[0] = i->target < f->nins ? block_of[i->target] : g->n;
            if (i->pred != SIM_NONE && next != b->succ[0])
                b->succ[1] = next;
        } else {
            b->succ[0] = next;
        }
    }
}

/* Predecessor lists over edges that are not pruned. */
static void predecessors(kl_arena *a, struct graph *g)
{
    g->pred_at = kl_new_n(a, uint32_t, g->n + 2);
    g->pred = kl_new_n(a, uint32_t, 2 * (size_t)g->n + 1);
    for (uint32_t k = 0; k < g->n; k++)
        for (int e = 0; e < 2; e++)
            if (g->b[k].succ[e] != SIM_NONE && !g->b[k].pruned[e])
                g->pred_at[g->b[k].succ[e] + 1]++;
    for (uint32_t k = 0; k <= g->n; k++)
        g->pred_at[k + 1] += g->pred_at[k];
    uint32_t *at = kl_new_n(a, uint32_t, g->n + 1);
    for (uint32_t k = 0; k < g->n; k++)
        for (int e = 0; e < 2; e++)
            if (g->b[k].succ[e] != SIM_NONE && !g->b[k].pruned[e]) {
                uint32_t to = g->b[k].succ[e];
                g->pred[g->pred_at[to] + at[to]++] = k;
            }
}

/* Post-order of the reversed graph from the end; returns the blocks in it. */
static uint32_t number(kl_arena *a, struct graph *g, uint32_t *list)
{
    uint32_t *stack = kl_new_n(a, uint32_t, g->n + 2), *edge = kl_new_n(a, uint32_t, g->n + 2);
    bool *seen = kl_new_n(a, bool, g->n + 2);
    uint32_t sp = 0, count = 0;
    for (uint32_t k = 0; k < g->n; k++)
        g->b[k].order = SIM_NONE;
    stack[sp] = g->n, edge[sp++] = 0;
    seen[g->n] = true;
    while (sp) {
        uint32_t k = stack[sp - 1];
        if (g->pred_at[k] + edge[sp - 1] < g->pred_at[k + 1]) {
            uint32_t p = g->pred[g->pred_at[k] + edge[sp - 1]++];
            if (!seen[p])
                seen[p] = true, stack[sp] = p, edge[sp++] = 0;
            continue;
        }
        if (k < g->n)
            g->b[k].order = count;
        list[count++] = k;
        sp--;
    }
    return count;
}

static uint32_t order_of(const struct graph *g, uint32_t k, uint32_t last)
{
    return k == g->n ? last : g->b[k].order;
}

static void postdominators(struct graph *g, const uint32_t *list, uint32_t count)
{
    for (uint32_t k = 0; k < g->n; k++)
        g->b[k].ipdom = SIM_NONE;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t c = count - 1; c-- > 0;) { /* the end comes last in list */
            struct block *b = &g->b[list[c]];
            uint32_t best = SIM_NONE;
            for (int e = 0; e < 2; e++) {
                uint32_t s = b->succ[e];
                if (s == SIM_NONE || b->pruned[e])
                    continue;
                if (s != g->n && g->b[s].ipdom == SIM_NONE)
                    continue;
                uint32_t x = s, y = best;
                while (y != SIM_NONE && x != y) {
                    uint32_t ox = order_of(g, x, count), oy = order_of(g, y, count);
                    if (ox < oy)
                        x = g->b[x].ipdom;
                    else
                        y = g->b[y].ipdom;
                }
                best = x;
            }
            if (best != SIM_NONE && b->ipdom != best)
                b->ipdom = best, changed = true;
        }
    }
}

/* Edges to blocks of one instruction, the end. */
static void prune_ends(kl_arena *a, struct sim_fn *f, struct graph *g, uint32_t *list)
{
    for (uint32_t k = 0; k < g->n; k++)
        for (int e = 0; e < 2; e++) {
            uint32_t s = g->b[k].succ[e];
            g->b[k].pruned[e] = g->b[k].succ[1] != SIM_NONE && s < g->n &&
                                g->b[s].first == g->b[s].last && ends(&f->ins[g->b[s].first]);
        }
    predecessors(a, g);
    number(a, g, list);
    for (uint32_t k = 0; k < g->n; k++)
        if (g->b[k].order == SIM_NONE)
            g->b[k].pruned[0] = g->b[k].pruned[1] = false;
}

/* Marks in seen what reaches block m; returns how many. */
static uint32_t reach(const struct graph *g, uint32_t m, bool *seen, uint32_t *stack)
{
    uint32_t sp = 0, count = 0;
    memset(seen, 0, g->n);
    stack[sp++] = m;
    seen[m] = true;
    while (sp) {
        uint32_t k = stack[--sp];
        count++;
        for (uint32_t p = g->pred_at[k]; p < g->pred_at[k + 1]; p++)
            if (!seen[g->pred[p]])
                seen[g->pred[p]] = true, stack[sp++] = g->pred[p];
    }
    return count;
}

static void prune_others(kl_arena *a, struct graph *g)
{
    enum { MAX_ENDS = 64 }; /* of so many ends the first are looked at */
    bool *seen = kl_new_n(a, bool, g->n + 1);
    uint32_t *stack = kl_new_n(a, uint32_t, g->n + 1), best = SIM_NONE, most = 0, ends_seen = 0;
    predecessors(a, g);
    for (uint32_t k = g->n; k-- > 0 && ends_seen < MAX_ENDS;) {
        if (g->b[k].succ[0] != g->n && g->b[k].succ[1] != g->n)
            continue;
        ends_seen++;
        uint32_t n = reach(g, k, seen, stack);
        if (n > most)
            most = n, best = k;
    }
    if (best == SIM_NONE)
        return;
    reach(g, best, seen, stack);
    for (uint32_t k = 0; k < g->n; k++)
        for (int e = 0; e < 2 && seen[k]; e++) {
            uint32_t s = g->b[k].succ[e];
            if (g->b[k].succ[1] != SIM_NONE && s < g->n && !seen[s])
                g->b[k].pruned[e] = true;
        }
}

void kl_sim_reconverge(kl_arena *a, struct sim_fn *f)
{
    if (!f->nins)
        return;
    bool *leader = kl_new_n(a, bool, f->nins + 1);
    leader[0] = true;
    for (uint32_t k = 0; k < f->nins; k++) {
        if (f->ins[k].is_branch && f->ins[k].target < f->nins)
            leader[f->ins[k].target] = true;
        if (f->ins[k].is_branch || ends(&f->ins[k]))
            leader[k + 1] = true;
    }
    struct graph g = {0};
    uint32_t *block_of = kl_new_n(a, uint32_t, f->nins);
    for (uint32_t k = 0; k < f->nins; k++) {
        g.n += leader[k];
        block_of[k] = g.n - 1;
    }
    g.b = kl_new_n(a, struct block, g.n);
    for (uint32_t k = f->nins; k-- > 0;) {
        struct block *b = &g.b[block_of[k]];
        if (k + 1 == f->nins || block_of[k + 1] != block_of[k])
            b->last = k;
        b->first = k;
    }
    add_edges(f, &g, block_of);
    uint32_t *list = kl_new_n(a, uint32_t, g.n + 1);
    prune_ends(a, f, &g, list);
    prune_others(a, &g);
    predecessors(a, &g);
    uint32_t count = number(a, &g, list);
    postdominators(&g, list, count);
    for (uint32_t k = 0; k < g.n; k++) {
        struct sim_ins *i = &f->ins[g.b[k].last];
        if (i->is_branch)
            i->rpc = g.b[k].ipdom < g.n ? g.b[g.b[k].ipdom].first : SIM_NONE;
    }
}
