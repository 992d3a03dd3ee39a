/* mbar.c - mbarriers, and the asynchronous stores that they count.  Only in clusters.
 *
 * The bytes of such a store are unreadable until the phase of its mbarrier completes. */
#include "sim/cluster.h"
#include "sim/exec.h"

static struct mbar *mbar_at(struct sim_cta *c, uint32_t at)
{
    struct sim_shared *s = c->shared;
    for (uint32_t k = 0; s && k < s->bar.n; k++)
        if (s->bar.v[k].at == at)
            return &s->bar.v[k];
    return NULL;
}

/* The address of the first lane, in w->mem; UINT32_MAX: it is none (said). */
static uint32_t mbar_address(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                             uint32_t op, int64_t imm)
{
    uint64_t addr[LANES];
    if (!w->run->cluster) {
        kl_sim_report(w, i, KL_K1513, mask, "mbarriers are executed in clusters only");
        w->run->stop = true;
        return UINT32_MAX;
    }
    kl_sim_addresses(w, i, op, imm, addr);
    mask &= -mask;
    mask = kl_sim_aligned(w, i, mask, addr, 8);
    mask = mask ? kl_sim_shared_ok(w, i, mask, addr, 8, true) : 0;
    return mask ? (uint32_t)addr[sim_first(mask)] : UINT32_MAX;
}

static struct mbar *mbar_of(struct sim_warp *w, const struct sim_ins *i, uint32_t mask, uint32_t op,
                            int64_t imm)
{
    uint32_t at = mbar_address(w, i, mask, op, imm);
    struct mbar *b = at == UINT32_MAX ? NULL : mbar_at(w->mem, at);
    if (at != UINT32_MAX && !b)
        kl_sim_report(w, i, KL_K1505, mask,
                      "byte %u of shared memory is no mbarrier: none was made there", at);
    return b;
}

EXEC(mbar_init)
{
    uint64_t count[LANES], addr[LANES];
    uint32_t at = mbar_address(w, i, mask, 0, i->imm),
             n = w->run->cluster ? w->run->cluster->nwarp : 0;
    if (at == UINT32_MAX)
        return;
    sim_get(w, &i->op[1], count);
    struct mbar *b = mbar_at(w->mem, at);
    struct mbar fresh = {.at = at, .count = (uint32_t)count[sim_first(mask)]};
    fresh.pending = fresh.count;
    fresh.next = kl_new_n(&w->run->a, uint32_t, n);
    fresh.seen = kl_new_n(&w->run->a, uint32_t, n);
    if (b)
        *b = fresh;
    else
        kl_push(&w->run->a, &w->mem->shared->bar, fresh);
    EACH_LANE addr[l] = at;
    kl_sim_cluster_written(w, i, mask & -mask, addr, 8, NULL, 0, true);
}

EXEC(mbar_fence)
{
    struct sim_shared *s = w->cta->shared;
    (void)i, (void)mask;
    for (uint32_t k = 0; s && k < s->bar.n; k++)
        s->bar.v[k].fenced = true;
}

/* The phase ends when all have arrived and all bytes have come. */
static void complete(struct sim_cta *c, struct mbar *b, uint32_t nwarp)
{
    if (b->pending || b->tx)
        return;
    for (uint32_t k = 0; k < b->in.n; k++) {
        const struct arrival *a = &b->in.v[k];
        memcpy(c->smem + a->at, a->value, a->bytes);
        memset(c->init + a->at, 1, a->bytes);
    }
    b->in.n = 0;
    b->pending = b->count;
    b->phase++;
    uint32_t *t = b->seen;
    b->seen = b->next;
    b->next = t;
    memset(t, 0, nwarp * sizeof *t);
}

static void mbar_arrives(struct sim_warp *w, const struct sim_ins *i, uint32_t mask, uint64_t bytes)
{
    struct mbar *b = mbar_of(w, i, mask, i->nd, i->imm);
    uint32_t n = (uint32_t)sim_popc(mask);
    if (!b)
        return;
    if (n > b->pending) {
        kl_sim_report(w, i, KL_K1508, mask, "%u arrivals at an mbarrier that waits for %u", n,
                      b->pending);
        w->run->stop = true;
        return;
    }
    sim_tell(w, b->next);
    b->tx += (int64_t)bytes * n;
    b->pending -= n;
    complete(w->mem, b, w->run->cluster->nwarp);
}

EXEC(mbar_arrive)
{
    mbar_arrives(w, i, mask, 0);
}

EXEC(mbar_expect)
{
    uint64_t bytes[LANES];
    sim_get(w, &i->op[i->nd + 1], bytes);
    mbar_arrives(w, i, mask, bytes[sim_first(mask)]);
}

/* A device may give up for a while and say false; here the warp waits. */
EXEC(mbar_wait)
{
    uint64_t parity[LANES];
    struct mbar *b = mbar_of(w, i, mask, 1, i->imm);
    sim_get(w, &i->op[2], parity);
    w->at = i;
    if (b && (b->phase & 1) == (parity[sim_first(mask)] & 1)) {
        struct sim_tally *t = &w->run->tally[sim_index(w, i)];
        w->stack[w->sp].pc--; /* once more when the phase has ended */
        w->state = WARP_PHASE;
        t->warps--;
        t->lanes -= (uint32_t)sim_popc(mask);
        return;
    }
    if (b)
        sim_join(w->clock, b->seen, w->run->cluster->nwarp);
    sim_setp(w, &i->op[0], mask, UINT32_MAX);
}

EXEC(st_async)
{
    struct sim_run *r = w->run;
    uint64_t addr[LANES], bar[LANES], v[LANES];
    uint32_t size = kl_sim_types[i->type].size, bytes = size * i->vec;
    _Alignas(16) char value[LANES][16];
    if (!r->cluster) {
        kl_sim_report(w, i, KL_K1513, mask, "st.async is executed in clusters only");
        r->stop = true;
        return;
    }
    kl_sim_addresses(w, i, 0, i->imm, addr);
    kl_sim_addresses(w, i, 1u + i->vec, i->imm2, bar);
    for (uint32_t k = 0; k < i->vec; k++) {
        sim_get(w, &i->op[1 + k], v);
        EACH_LANE memcpy(value[l] + size * k, &v[l], size);
    }
    bool first = true;
    for (uint32_t left = mask; left;) {
        uint32_t part = kl_sim_cluster_part(w, i, left, addr, &left);
        part = part ? kl_sim_aligned(w, i, part, addr, bytes) : 0;
        part = part ? kl_sim_shared_ok(w, i, part, addr, bytes, true) : 0;
        if (part) {
            kl_sim_count_push(w, i, first, part, addr, bytes);
            kl_sim_cluster_written(w, i, part, addr, bytes, NULL, 0, false);
            first = false;
        }
        for (; part; part &= part - 1) {
            uint32_t l = sim_first(part), top = (uint32_t)(bar[l] >> SIM_CTA_SHIFT);
            struct sim_cta *home = !top ? w->cta : top <= r->ncta ? &r->cta[top - 1] : NULL;
            struct mbar *b = home && home == w->mem
                                 ? mbar_at(home, (uint32_t)bar[l] & ((1u << SIM_CTA_SHIFT) - 1))
                                 : NULL;
            if (!b || !b->fenced) {
                kl_sim_report(
                    w, i, KL_K1505, 1u << l,
                    b ? "the mbarrier was not fenced when it was made (fence.mbarrier_init)"
                      : "no mbarrier in the CTA that the bytes go to");
                continue;
            }
            struct arrival a = {.at = (uint32_t)addr[l], .bytes = (uint8_t)bytes};
            memcpy(a.value, value[l], bytes);
            kl_push(&r->a, &b->in, a);
            sim_join(b->next, w->clock, r->cluster->nwarp);
            b->tx -= bytes;
            complete(w->mem, b, r->cluster->nwarp);
        }
    }
    w->mem = w->cta;
    if (w->clock[w->gid] < (1u << CLOCK_BITS) - 1)
        w->clock[w->gid]++;
}

bool kl_sim_mbar_passed(const struct sim_warp *w)
{
    const struct sim_ins *i = w->at;
    uint64_t addr[LANES], parity[LANES];
    uint32_t l = sim_first(w->stack[w->sp].mask);
    kl_sim_addresses(w, i, 1, i->imm, addr);
    sim_get(w, &i->op[2], parity);
    const struct mbar *b = mbar_at(w->cta, (uint32_t)addr[l]);
    return !b || (b->phase & 1) != (parity[l] & 1);
}
