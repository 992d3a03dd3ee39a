/* async.c - cp.async: copies from global to shared memory that a later wait completes.
 *
 * The bytes move when the wait says so and not before, so that a read without it
 * finds memory that nothing wrote.  Groups are counted for each lane. */
#include "sim/exec.h"
#include "sim/lane.h"

static void complete(struct sim_warp *w, struct sim_pending *p, uint32_t lanes)
{
    struct sim_cta *c = w->cta;
    for (uint32_t m = lanes; m; m &= m - 1) {
        uint32_t l = sim_first(m);
        char *to = c->smem + p->dst[l];
        memset(to, 0, p->bytes);
        memcpy(to, (const void *)(uintptr_t)p->src[l], p->take[l]);
        w->run->changes++;
        kl_sim_shadow_pending(w, p->dst[l], p->bytes, true);
    }
    p->mask &= ~lanes;
}

static void compact(struct sim_warp *w)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < w->npend; k++)
        if (w->pend[k].mask) {
            if (n != k)
                w->pend[n] = w->pend[k];
            n++;
        }
    w->npend = n;
}

EXEC(cp_async)
{
    uint32_t bytes = (uint32_t)i->lut;
    uint64_t dst[LANES], src[LANES], take[LANES];
    kl_sim_addresses(w, i, 0, i->imm, dst);
    kl_sim_addresses(w, i, 1, i->imm2, src);
    EACH_LANE take[l] = bytes;
    if (i->op[2].given)
        sim_get(w, &i->op[2], take);
    EACH_LANE take[l] = take[l] < bytes ? take[l] : bytes;
    mask = kl_sim_aligned(w, i, mask, dst, bytes);
    mask = mask ? kl_sim_shared_ok(w, i, mask, dst, bytes, true) : 0;
    uint32_t reads = 0;
    EACH_LANE reads |= (uint32_t)(take[l] != 0) << l;
    reads &= mask;
    if (reads) { /* lanes that read nothing may have any address */
        uint32_t good = kl_sim_aligned(w, i, reads, src, bytes);
        uint32_t in = 0;
        for (uint32_t n = 1; n <= bytes && good; n++) { /* by size read: few differ */
            uint32_t m = 0;
            EACH_LANE m |= (uint32_t)(take[l] == n) << l;
            m &= good;
            if (m)
                in |= kl_sim_global_ok(w, i, m, src, n, false);
        }
        if (in)
            kl_sim_count_access(w, i, false, in, src, bytes);
        for (uint32_t m = w->run->global ? in : 0; m; m &= m - 1) { /* each with its own size */
            uint32_t l = sim_first(m);
            kl_sim_global_touch(w, i, 1u << l, src, (uint32_t)take[l], false, NULL, 0);
        }
        mask &= ~(reads & ~in);
    }
    if (!mask)
        return;
    kl_sim_count_access(w, i, true, mask, dst, bytes);
    kl_sim_shadow_write(w, i, mask, dst, bytes, NULL, 0);
    if (w->npend == PENDING_MAX) { /* a wait that comes never */
        complete(w, &w->pend[0], w->pend[0].mask);
        compact(w);
    }
    struct sim_pending *p = &w->pend[w->npend++];
    p->mask = mask;
    p->bytes = (uint8_t)bytes;
    EACH_LANE
    {
        p->take[l] = (uint8_t)take[l];
        p->dst[l] = (uint32_t)dst[l];
        p->src[l] = src[l];
        p->group[l] = w->group[l];
        if (HAS(mask, l))
            kl_sim_shadow_pending(w, p->dst[l], bytes, false);
    }
}

EXEC(commit)
{
    (void)i;
    EACH_LANE w->group[l] += HAS(mask, l);
}

static void wait(struct sim_warp *w, uint32_t mask, uint32_t open)
{
    for (uint32_t k = 0; k < w->npend; k++) {
        struct sim_pending *p = &w->pend[k];
        uint32_t done = 0;
        EACH_LANE done |= (uint32_t)((uint64_t)p->group[l] + open < w->group[l]) << l;
        complete(w, p, done & mask & p->mask);
    }
    compact(w);
}

EXEC(wait_group)
{
    wait(w, mask, (uint32_t)i->lut);
}

EXEC(wait_all)
{
    (void)i;
    EACH_LANE w->group[l] += HAS(mask, l);
    wait(w, mask, 0);
}

void kl_sim_async_finish(struct sim_warp *w)
{
    for (uint32_t k = 0; k < w->npend; k++)
        complete(w, &w->pend[k], w->pend[k].mask);
    w->npend = 0;
}
