/* endless.c - loops that do not end.
 *
 * Between two turns a CTA, or a cluster, is its registers, where its warps are, and memory.  If
 * all that is as it was some turns before, the same will follow for ever.  The state is compared
 * with a copy that is renewed at each power of two (Brent). */
#include "sim/lane.h"

enum { FIRST = 8 };

struct sim_machine {
    char *copy;
    size_t size;
    uint64_t turns, renew, changes;
};

static size_t state_of(const struct sim_run *r, char *to, bool compare)
{
    size_t at = 0;
    for (uint32_t k = 0; k < r->ncta * r->nwarp; k++) {
        const struct sim_warp *w = &r->warp[k];
        const struct sim_frame *top = &w->stack[w->sp];
        uint32_t here[5] = {w->sp, top->pc, top->mask, w->state, w->npend};
        const void *part[3] = {here, w->bank[BANK_REG], w->pred};
        size_t size[3] = {sizeof here, r->f->reg_bytes, r->f->npred * sizeof *w->pred};
        for (int p = 0; p < 3; at += size[p++]) {
            if (to && compare && memcmp(to + at, part[p], size[p]) != 0)
                return 0;
            if (to && !compare)
                memcpy(to + at, part[p], size[p]);
        }
    }
    return at;
}

void kl_sim_endless_begin(struct sim_run *r)
{
    if (!r->machine) {
        r->machine = kl_new(&r->a, struct sim_machine);
        r->machine->size = state_of(r, NULL, false);
        r->machine->copy = kl_alloc_zero(&r->a, r->machine->size + 1);
    }
    r->machine->turns = 0;
    r->machine->renew = FIRST;
}

/* The head of the smallest loop around pc: its first instruction with a place in the source. */
static uint32_t loop_around(const struct sim_fn *f, uint32_t pc)
{
    pc = pc < f->nins ? pc : f->nins - 1;
    uint32_t best = pc, last = pc, size = UINT32_MAX;
    for (uint32_t k = pc; k < f->nins; k++)
        if (f->ins[k].is_branch && f->ins[k].target <= pc && k - f->ins[k].target < size)
            best = f->ins[k].target, last = k, size = k - best;
    while (best < last && !f->ins[best].loc)
        best++;
    return best;
}

/* After a turn of all warps: false: they go round for ever, which is said. */
bool kl_sim_endless_turn(struct sim_run *r)
{
    struct sim_machine *s = r->machine;
    if (++s->turns < FIRST)
        return true;
    if (s->turns == s->renew) {
        state_of(r, s->copy, false);
        s->changes = r->changes;
        s->renew *= 2;
        return true;
    }
    if (s->changes != r->changes || !state_of(r, s->copy, true))
        return true;
    for (uint32_t k = 0; k < r->ncta * r->nwarp; k++) {
        struct sim_warp *w = &r->warp[k];
        if (w->state == WARP_DONE)
            continue;
        uint32_t pc = loop_around(r->f, w->stack[w->sp].pc);
        if (!kl_sim_known(w, &r->f->ins[pc], KL_K1701, w->alive))
            kl_sim_report(w, &r->f->ins[pc], KL_K1701, w->alive,
                          r->again ? "this loop does not end: it waits for another program (found with "
                                     "the programs run from the last to the first)"
                                   : "this loop does not end");
        break;
    }
    return false;
}
