/* shadow.c - who wrote and read each byte of shared memory since the last barrier.
 *
 * A race is a write and another access of one byte by two warps with no barrier
 * between, unless both write the same value.  Lanes of one warp are in program order.
 * Accesses that are .volatile, .relaxed, .acquire or .release, and atomics, do not
 * race with each other.  A barrier of a part of the CTA clears everything, so
 * that races between such parts can be missed, but nothing is reported wrongly. */
#include "sim/lane.h"

/* Bytes are looked at four at a time where all are alike, which is the usual case. */
static uint32_t word_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static void dirty(struct sim_cta *c, uint64_t addr, uint32_t bytes)
{
    if (addr < c->dirty_lo)
        c->dirty_lo = (uint32_t)addr;
    if (addr + bytes > c->dirty_hi)
        c->dirty_hi = (uint32_t)addr + bytes;
}

static bool foreign(uint8_t who, uint8_t me)
{
    return who && (who & 0x3f) != me;
}

static void uninit(struct sim_warp *w, const struct sim_ins *i, uint32_t lanes,
                   const uint64_t *addr)
{
    kl_sim_report(w, i, KL_K1505, lanes,
                  "byte %llu of shared memory is read but was never written, or a cp.async that "
                  "writes it was not waited for",
                  (unsigned long long)addr[sim_first(lanes)]);
}

static void race(struct sim_warp *w, const struct sim_ins *i, uint32_t lanes, const uint64_t *addr,
                 const char *what)
{
    if (kl_sim_known(w, i, KL_K1507, lanes))
        return;
    const struct sim_cta *c = w->mem;
    uint64_t at = addr[sim_first(lanes)];
    uint8_t who = c->wr[at] & 0x3f;
    if (!who || who == w->id + 1u)
        who = c->rd[at];
    const char *other = who && who != SHADOW_MANY && who != w->id + 1u
                            ? kl_printf(&w->run->a, "warp %u", who - 1u)
                            : "another warp";
    kl_sim_report(w, i, KL_K1507, lanes,
                  "warp %u %s byte %llu of shared memory that %s %s since "
                  "the last barrier",
                  w->id, what, (unsigned long long)at, other,
                  (c->wr[at] & 0x3f) ? "wrote" : "read");
}

void kl_sim_shadow_read(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                        const uint64_t *addr, uint32_t bytes)
{
    struct sim_run *r = w->run;
    struct sim_cta *c = w->mem;
    if (r->ncta > 1) {
        kl_sim_cluster_read(w, i, mask, addr, bytes);
        return;
    }
    uint8_t me = (uint8_t)(w->id + 1);
    uint32_t raw = 0, racing = 0, all = me * 0x01010101u;
    bool races = r->opt.checks & KL_SIM_RACES;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = sim_first(m);
        uint64_t a = addr[l];
        dirty(c, a, bytes);
        for (uint32_t k = 0; k < bytes;) {
            if (bytes - k >= 4 && word_at(c->init + a + k) == 0x01010101 &&
                (word_at(c->wr + a + k) == 0 || word_at(c->wr + a + k) == all) &&
                (word_at(c->rd + a + k) == 0 || word_at(c->rd + a + k) == all)) {
                if (!i->strong)
                    memcpy(c->rd + a + k, &all, 4);
                k += 4;
                continue;
            }
            uint8_t wr = c->wr[a + k], *rd = &c->rd[a + k];
            raw |= (uint32_t)!c->init[a + k] << l;
            if (foreign(wr, me) && !(i->strong && wr & SHADOW_STRONG))
                racing |= 1u << l;
            if (!i->strong)
                *rd = *rd == 0 || *rd == me ? me : SHADOW_MANY;
            k++;
        }
    }
    if (raw && r->opt.checks & KL_SIM_UNINIT)
        uninit(w, i, raw, addr);
    if (racing && races)
        race(w, i, racing, addr, "reads");
}

void kl_sim_shadow_write(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                         const uint64_t *addr, uint32_t bytes, const char *value, uint32_t stride)
{
    struct sim_run *r = w->run;
    struct sim_cta *c = w->mem;
    if (r->ncta > 1) {
        kl_sim_cluster_write(w, i, mask, addr, bytes, value, stride);
        return;
    }
    uint8_t me = (uint8_t)(w->id + 1), mark = (uint8_t)(me | (i->strong ? SHADOW_STRONG : 0));
    uint32_t racing = 0, all = me * 0x01010101u;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = sim_first(m);
        uint64_t a = addr[l];
        dirty(c, a, bytes);
        for (uint32_t k = 0; k < bytes; k++) {
            if (bytes - k >= 4 && (word_at(c->wr + a + k) == 0 || word_at(c->wr + a + k) == all) &&
                (word_at(c->rd + a + k) == 0 || word_at(c->rd + a + k) == all)) {
                k += 3;
                continue;
            }
            uint8_t wr = c->wr[a + k], rd = c->rd[a + k];
            bool same = value && c->init[a + k] && c->smem[a + k] == value[stride * l + k];
            if (foreign(wr, me) && !same && !(i->strong && wr & SHADOW_STRONG))
                racing |= 1u << l;
            if (rd && rd != me)
                racing |= 1u << l;
        }
    }
    if (racing && r->opt.checks & KL_SIM_RACES)
        race(w, i, racing, addr, "writes");
    for (uint32_t m = mask; m; m &= m - 1) {
        uint64_t a = addr[sim_first(m)];
        memset(c->wr + a, mark, bytes);
        memset(c->init + a, 1, bytes);
    }
}

bool kl_sim_shadow_row(struct sim_warp *w, const struct sim_ins *i, uint32_t addr, uint32_t n,
                       bool write)
{
    struct sim_cta *c = w->mem;
    const uint8_t *wr = c->wr + addr, *rd = c->rd + addr, *init = c->init + addr;
    uint8_t me = (uint8_t)(w->id + 1), bad = 0;
    if (i->strong || w->run->ncta > 1)
        return false;
    for (uint32_t k = 0; k < n; k++)
        bad |= (uint8_t)((wr[k] != 0) & (wr[k] != me)) | (uint8_t)((rd[k] != 0) & (rd[k] != me));
    for (uint32_t k = 0; k < n && !write; k++)
        bad |= init[k] ^ 1;
    if (bad)
        return false;
    dirty(c, addr, n);
    memset(write ? c->wr + addr : c->rd + addr, me, n);
    if (write)
        memset(c->init + addr, 1, n);
    return true;
}

void kl_sim_shadow_atomic(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                          const uint64_t *addr, uint32_t bytes)
{
    struct sim_run *r = w->run;
    struct sim_cta *c = w->mem;
    uint8_t me = (uint8_t)(w->id + 1);
    uint32_t raw = 0, racing = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = sim_first(m);
        uint64_t a = addr[l];
        dirty(c, a, bytes);
        for (uint32_t k = 0; k < bytes; k++) {
            uint8_t wr = c->wr[a + k], rd = c->rd[a + k];
            raw |= (uint32_t)!c->init[a + k] << l;
            if ((foreign(wr, me) && !(wr & SHADOW_STRONG)) || (rd && rd != me))
                racing |= 1u << l;
        }
    }
    if (raw && r->opt.checks & KL_SIM_UNINIT)
        uninit(w, i, raw, addr);
    if (racing && r->opt.checks & KL_SIM_RACES)
        race(w, i, racing, addr, "changes");
    for (uint32_t m = mask; m; m &= m - 1) {
        uint64_t a = addr[sim_first(m)];
        memset(c->wr + a, me | SHADOW_STRONG, bytes);
        memset(c->init + a, 1, bytes);
    }
}

void kl_sim_shadow_pending(struct sim_warp *w, uint32_t addr, uint32_t bytes, bool done)
{
    struct sim_cta *c = w->mem;
    memset(c->init + addr, done, bytes);
    memset(c->wr + addr, (int)w->id + 1, bytes);
    dirty(c, addr, bytes);
}

void kl_sim_shadow_barrier(struct sim_cta *c)
{
    if (c->dirty_hi > c->dirty_lo) {
        memset(c->wr + c->dirty_lo, 0, c->dirty_hi - c->dirty_lo);
        memset(c->rd + c->dirty_lo, 0, c->dirty_hi - c->dirty_lo);
    }
    c->dirty_lo = UINT32_MAX;
    c->dirty_hi = 0;
}
