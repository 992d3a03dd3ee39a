/* cluster.c - thread-block clusters: the shared memory of other CTAs, barriers of the cluster.
 *
 * Between CTAs no barrier clears a table of who touched what, so races are found by what came
 * before what: each warp has a clock, and knows of each other warp how much of its past it has
 * seen (vector clocks).  Barriers and mbarriers pass this knowledge on.  Each byte remembers its
 * last writer and readers; who touches it must have seen them.  The same knowledge tells whether a
 * CTA may have ended when its memory is touched, whatever the order in which warps run here.
 * Atomics and accesses that are .volatile, .relaxed, .acquire or .release are not looked at. */
#include "sim/cluster.h"
#include "sim/exec.h"

void kl_sim_cluster_open(struct sim_run *r)
{
    struct sim_cluster *k = kl_new(&r->a, struct sim_cluster);
    k->nwarp = r->ncta * r->nwarp;
    k->next = kl_new_n(&r->a, uint32_t, k->nwarp);
    k->seen = kl_new_n(&r->a, uint32_t, k->nwarp);
    for (uint32_t c = 0; c < r->ncta; c++) {
        struct sim_shared *s = kl_new(&r->a, struct sim_shared);
        s->cell = kl_new_n(&r->a, struct cell, r->smem_size + 64);
        s->many = kl_new_n(&r->a, uint32_t *, r->smem_size / 4 + 16);
        s->far = kl_new_n(&r->a, uint32_t, k->nwarp);
        s->far_ins = kl_new_n(&r->a, const struct sim_ins *, k->nwarp);
        r->cta[c].shared = s;
    }
    for (uint32_t w = 0; w < k->nwarp; w++)
        r->warp[w].clock = kl_new_n(&r->a, uint32_t, k->nwarp);
    r->cluster = k;
}

void kl_sim_cluster_begin(struct sim_run *r)
{
    struct sim_cluster *k = r->cluster;
    k->arrived = k->phase = 0;
    k->number++;
    memset(k->next, 0, k->nwarp * sizeof *k->next);
    for (uint32_t c = 0; c < r->ncta; c++) {
        struct sim_shared *s = r->cta[c].shared;
        memset(s->cell, 0, (r->smem_size + 64) * sizeof *s->cell);
        memset(s->far, 0, k->nwarp * sizeof *s->far);
        s->bar.n = 0;
        s->ended = false;
    }
    for (uint32_t w = 0; w < k->nwarp; w++) {
        memset(r->warp[w].clock, 0, k->nwarp * sizeof *r->warp[w].clock);
        r->warp[w].clock[w] = 1;
        r->warp[w].arrives = r->warp[w].waits = 0;
        r->warp[w].mem = r->warp[w].cta;
    }
}

/* ---- what came before what ---- */

static uint32_t now(const struct sim_warp *w)
{
    return w->gid << CLOCK_BITS | w->clock[w->gid];
}

static bool before(const struct sim_warp *w, uint32_t event)
{
    return !event || w->clock[event >> CLOCK_BITS] >= (event & ((1u << CLOCK_BITS) - 1));
}

void kl_sim_cluster_met(struct sim_run *r, const struct sim_cta *c, uint32_t here)
{
    struct sim_cluster *k = r->cluster;
    struct sim_warp *w = &r->warp[c->rank * r->nwarp];
    uint32_t *all = kl_new_n(&r->a, uint32_t, k->nwarp);
    for (uint32_t i = 0; i < r->nwarp; i++)
        if (HAS(here, i))
            sim_tell(&w[i], all);
    for (uint32_t i = 0; i < r->nwarp; i++)
        if (HAS(here, i))
            sim_join(w[i].clock, all, k->nwarp);
}

/* ---- accesses ---- */

static void race(struct sim_warp *w, const struct sim_ins *i, uint32_t lanes, const uint64_t *addr,
                 const char *what, uint32_t event, const char *did)
{
    if (!lanes || !(w->run->opt.checks & KL_SIM_RACES) || kl_sim_known(w, i, KL_K1507, lanes))
        return;
    uint32_t other = event >> CLOCK_BITS, n = w->run->nwarp;
    const char *who = event == MANY_READ
                          ? "other warps"
                          : kl_printf(&w->run->a, "warp %u of CTA %u", other % n, other / n);
    kl_sim_report(
        w, i, KL_K1507, lanes,
        "warp %u of CTA %u of the cluster %s byte %llu of shared memory of CTA %u that %s %s, "
        "and nothing says which comes first",
        w->id, w->cta->rank, what, (unsigned long long)addr[sim_first(lanes)], w->mem->rank, who,
        did);
}

/* The readers of a byte that w has not seen; 0: none. */
static uint32_t unseen_reader(const struct sim_warp *w, uint32_t at)
{
    const struct sim_shared *s = w->mem->shared;
    uint32_t rd = s->cell[at].rd;
    if (rd != MANY_READ)
        return before(w, rd) ? 0 : rd;
    const uint32_t *v = s->many[at / 4];
    for (uint32_t u = 0; u < w->run->cluster->nwarp; u++)
        if (v[u] > w->clock[u])
            return MANY_READ;
    return 0;
}

static void note_reader(struct sim_warp *w, uint32_t at)
{
    struct sim_shared *s = w->mem->shared;
    struct cell *c = &s->cell[at];
    uint32_t me = now(w);
    if (c->rd != MANY_READ && before(w, c->rd)) {
        c->rd = me;
        return;
    }
    uint32_t **v = &s->many[at / 4];
    uint32_t n = w->run->cluster->nwarp;
    if (!*v)
        *v = kl_new_n(&w->run->a, uint32_t, n + 1);
    if ((*v)[n] != w->run->cluster->number) { /* of another cluster */
        memset(*v, 0, n * sizeof **v);
        (*v)[n] = w->run->cluster->number;
    }
    if (c->rd != MANY_READ && (*v)[c->rd >> CLOCK_BITS] < (c->rd & ((1u << CLOCK_BITS) - 1)))
        (*v)[c->rd >> CLOCK_BITS] = c->rd & ((1u << CLOCK_BITS) - 1);
    (*v)[w->gid] = w->clock[w->gid];
    c->rd = MANY_READ;
}

/* Memory of another CTA is touched: that runs, and still does. */
static void far_access(struct sim_warp *w, const struct sim_ins *i, uint32_t lanes)
{
    struct sim_shared *s = w->mem->shared;
    if (w->mem == w->cta)
        return;
    if (!w->waits)
        kl_sim_report(w, i, KL_K1504, lanes,
                      "shared memory of CTA %u of the cluster, which may not have begun: no "
                      "barrier.cluster.wait came before",
                      w->mem->rank);
    if (s->ended)
        kl_sim_report(w, i, KL_K1504, lanes,
                      "shared memory of CTA %u of the cluster, which has ended", w->mem->rank);
    s->far[w->gid] = w->clock[w->gid];
    s->far_ins[w->gid] = i;
}

void kl_sim_cluster_read(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                         const uint64_t *addr, uint32_t bytes)
{
    struct sim_shared *s = w->mem->shared;
    uint32_t raw = 0, racing = 0, event = 0;
    far_access(w, i, mask);
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = sim_first(m);
        for (uint32_t k = 0; k < bytes; k++) {
            uint32_t at = (uint32_t)addr[l] + k;
            raw |= (uint32_t)!w->mem->init[at] << l;
            if (i->strong)
                continue;
            if (!before(w, s->cell[at].wr))
                racing |= 1u << l, event = s->cell[at].wr;
            note_reader(w, at);
        }
    }
    race(w, i, racing, addr, "reads", event, "wrote");
    if (raw && w->run->opt.checks & KL_SIM_UNINIT)
        kl_sim_report(
            w, i, KL_K1505, raw,
            "byte %llu of shared memory of CTA %u of the cluster is read but was never written, "
            "or what writes it was not waited for",
            (unsigned long long)addr[sim_first(raw)], w->mem->rank);
}

void kl_sim_cluster_written(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                            const uint64_t *addr, uint32_t bytes, const char *value,
                            uint32_t stride, bool done)
{
    struct sim_shared *s = w->mem->shared;
    uint32_t racing = 0, event = 0, me = now(w);
    const char *did = "";
    far_access(w, i, mask);
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = sim_first(m);
        for (uint32_t k = 0; k < bytes; k++) {
            uint32_t at = (uint32_t)addr[l] + k, rd = i->strong ? 0 : unseen_reader(w, at);
            struct cell *c = &s->cell[at];
            bool same = value && w->mem->init[at] && w->mem->smem[at] == value[stride * l + k];
            if (!i->strong && !before(w, c->wr) && !same)
                racing |= 1u << l, event = c->wr, did = "wrote";
            if (rd)
                racing |= 1u << l, event = rd, did = "read";
            if (!i->strong)
                *c = (struct cell){me, 0};
            w->mem->init[at] = done;
        }
    }
    race(w, i, racing, addr, "writes", event, did);
}

void kl_sim_cluster_write(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                          const uint64_t *addr, uint32_t bytes, const char *value, uint32_t stride)
{
    kl_sim_cluster_written(w, i, mask, addr, bytes, value, stride, true);
}

uint32_t kl_sim_cluster_part(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                             uint64_t *addr, uint32_t *left)
{
    uint32_t top = (uint32_t)(addr[sim_first(mask)] >> SIM_CTA_SHIFT), part = 0;
    EACH_LANE part |= (uint32_t)(addr[l] >> SIM_CTA_SHIFT == top) << l;
    part &= mask;
    *left = mask & ~part;
    if (top > w->run->ncta) {
        kl_sim_report(w, i, KL_K1504, part, "an address of shared memory in no CTA of the cluster");
        return 0;
    }
    w->mem = top ? &w->run->cta[top - 1] : w->cta;
    EACH_LANE
    if (HAS(part, l))
        addr[l] &= (1u << SIM_CTA_SHIFT) - 1;
    return part;
}

EXEC(mapa)
{
    uint64_t a[LANES], r[LANES];
    uint32_t bad = 0;
    sim_get(w, &i->op[1], a), sim_get(w, &i->op[2], r);
    EACH_LANE
    {
        bad |= (uint32_t)(r[l] >= w->run->ncta || a[l] >> SIM_CTA_SHIFT) << l;
        a[l] |= (r[l] + 1) << SIM_CTA_SHIFT;
    }
    bad &= mask;
    if (bad)
        kl_sim_report(w, i, KL_K1504, bad,
                      "mapa to CTA %llu of a cluster of %u, or of no address of this CTA",
                      (unsigned long long)r[sim_first(bad)], w->run->ncta);
    sim_set(w, &i->op[0], mask, a);
}

/* A CTA has ended: did all who touched its memory do so before? */
void kl_sim_cluster_ended(struct sim_run *r, struct sim_cta *c)
{
    struct sim_shared *s = c->shared;
    struct sim_cluster *k = r->cluster;
    uint32_t *seen = kl_new_n(&r->a, uint32_t, k->nwarp);
    s->ended = true;
    for (uint32_t i = 0; i < r->nwarp; i++)
        sim_join(seen, r->warp[c->rank * r->nwarp + i].clock, k->nwarp);
    for (uint32_t u = 0; u < k->nwarp; u++)
        if (s->far[u] > seen[u])
            kl_sim_report(&r->warp[u], s->far_ins[u], KL_K1504, 1,
                          "shared memory of CTA %u of the cluster, which may have ended before",
                          c->rank);
}

/* ---- barriers of the cluster ---- */

static void arrive(struct sim_warp *w, const struct sim_ins *i, uint32_t mask, bool orders)
{
    struct sim_run *r = w->run;
    struct sim_cluster *k = r->cluster;
    if (mask != w->alive || w->arrives > w->waits) {
        kl_sim_report(w, i, KL_K1508, mask,
                      mask != w->alive
                          ? "a barrier of the cluster that not all lanes of the warp reach together"
                          : "two arrivals at a barrier of the cluster without a wait between");
        r->stop = true;
        return;
    }
    w->arrives++;
    if (!k)
        return; /* a cluster of one */
    if (orders)
        sim_tell(w, k->next);
    if (++k->arrived < k->nwarp)
        return;
    uint32_t *t = k->seen;
    k->seen = k->next;
    k->next = t;
    memset(t, 0, k->nwarp * sizeof *t);
    k->arrived = 0;
    k->phase++;
    r->cluster_barriers++;
}

EXEC(cluster_arrive)
{
    arrive(w, i, mask, true);
}

EXEC(cluster_arrive_relaxed)
{
    arrive(w, i, mask, false);
}

static bool may_pass(const struct sim_warp *w)
{
    return !w->run->cluster || w->run->cluster->phase > w->waits;
}

static void pass(struct sim_warp *w)
{
    if (w->run->cluster)
        sim_join(w->clock, w->run->cluster->seen, w->run->cluster->nwarp);
    w->waits++;
}

EXEC(cluster_wait)
{
    if (mask != w->alive || w->arrives == w->waits) {
        kl_sim_report(w, i, KL_K1508, mask,
                      mask != w->alive
                          ? "a barrier of the cluster that not all lanes of the warp reach together"
                          : "a wait at a barrier of the cluster without an arrival");
        w->run->stop = true;
        return;
    }
    w->at = i;
    if (may_pass(w))
        pass(w);
    else
        w->state = WARP_CLUSTER;
}

/* ---- going on ---- */

bool kl_sim_cluster_release(struct sim_run *r)
{
    bool any = false;
    for (uint32_t k = 0; k < r->cluster->nwarp; k++) {
        struct sim_warp *w = &r->warp[k];
        if (w->state == WARP_CLUSTER && may_pass(w)) {
            pass(w);
            w->state = WARP_RUN;
            any = true;
        } else if (w->state == WARP_PHASE && kl_sim_mbar_passed(w)) {
            w->state = WARP_RUN;
            any = true;
        }
    }
    return any;
}
