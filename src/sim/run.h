/* run.h - a launch in progress: warps, the CTA's shared memory, findings, counters.
 *
 * One run belongs to one thread.  Everything is allocated before the first
 * instruction from the run's arena; execution functions report and go on, or
 * set run->stop when nothing sensible can follow. */
#ifndef KL_SIM_RUN_H
#define KL_SIM_RUN_H

#include "base/race.h"
#include "base/sums.h"
#include "sim/module.h"

enum { STACK_MAX = 80, PENDING_MAX = 256, SIM_BARRIERS = 16 };

struct sim_frame {
    uint32_t pc, rpc, mask;
};

/* A copy of cp.async that no wait has completed yet. */
struct sim_pending {
    uint32_t mask; /* lanes whose copy is still open */
    uint32_t ins;
    uint8_t bytes;
    uint8_t take[LANES]; /* bytes read; the rest is zero */
    uint32_t dst[LANES];
    uint64_t src[LANES];
    uint32_t group[LANES]; /* the lane's group; open groups have the lane's present number */
};

/* Waiting: at a barrier of the CTA, of the cluster, for a phase of an mbarrier. */
enum sim_state { WARP_RUN, WARP_BAR, WARP_CLUSTER, WARP_PHASE, WARP_DONE };

struct sim_warp {
    char *bank[NBANK];
    uint32_t *pred, *written;
    struct sim_run *run;
    struct sim_frame stack[STACK_MAX];
    uint32_t sp, id, alive, carry; /* id: in its CTA */
    struct sim_cta *cta, *mem;     /* its own, and that whose shared memory is accessed */
    uint8_t state, bar;
    uint32_t bar_need; /* threads that the barrier waits for; 0: all */
    const struct sim_ins *at; /* the barrier it waits at */
    uint32_t group[LANES]; /* groups of cp.async that each lane committed */
    struct sim_pending *pend;
    uint32_t npend;
    char *local; /* local memory: local_bytes for each lane */
    const struct sim_ins *redb; /* bar.red: the mask of its predicate */
    uint32_t red_mask;
    /* clusters (cluster.c) */
    uint32_t gid, arrives, waits; /* number in the cluster; of barriers of the cluster */
    uint32_t *clock;              /* what of each warp of the cluster came before */
    uint32_t sums;                /* atomic additions of floats so far */
};

/* A CTA that runs: one, or those of a cluster. */
struct sim_cta {
    uint32_t ctaid[3], rank;
    char *smem;
    /* one byte for each byte of shared memory: written at all; who wrote it and who read it
     * since the last barrier (number of the warp + 1, SHADOW_*) */
    uint8_t *init, *wr, *rd;
    uint32_t dirty_lo, dirty_hi; /* part of wr and rd that is not zero */
    uint32_t arrived[SIM_BARRIERS]; /* threads of bar.arrive */
    uint32_t epoch; /* barriers so far */
    struct sim_shared *shared; /* clusters: what cluster.c knows of its shared memory */
};

struct sim_range {
    uint64_t base, size;
    uint32_t index; /* as the host gave it; SIM_NONE: a variable of the module */
    bool writable;
};

/* What an instruction of memory did; indices as instructions. */
struct sim_tally {
    uint64_t warps, lanes, divergent;
    kl_sim_traffic traffic[2]; /* global, shared */
};

struct sim_finding {
    uint32_t ins;
    enum kl_code code;
    uint64_t n;
    const char *text, *who; /* of the first instance */
    uint32_t other;   /* a race: the other access + 1, */
    const char *whom; /* and who makes it */
    const char *help; /* NULL: none */
};

struct sim_run {
    const struct kl_sim *m;
    const struct sim_fn *f;
    const kl_sim_launch *l;
    kl_sim_options opt;
    kl_arena a;
    kl_env env;
    struct sim_range *buf;
    uint32_t nbuf, hint; /* hint: the last one that was right */
    uint32_t nwarp, nthread; /* of a CTA */
    uint32_t ncta;           /* of a cluster; 1: none */
    struct sim_cta *cta;
    struct sim_warp *warp;   /* of all CTAs */
    uint32_t smem_size;
    struct sim_tally *tally;
    uint64_t steps, barriers, cluster_barriers, cta_count;
    struct sim_cluster *cluster;
    KL_VEC(struct sim_finding) finding;
    bool stop, stopped_by_tick;
    /* KL_SIM_GLOBAL (global.c, endless.c) */
    struct sim_global *global; /* NULL: not looked at */
    struct sim_machine *machine;
    uint64_t changes; /* stores that changed memory */
    bool again;       /* the second run, from the last CTA to the first */
};

/* Memory before a run, for another one. */
struct sim_saved {
    uint32_t n;
    char **first;
    uint8_t **value;
};

enum { SHADOW_MANY = 0x7f, SHADOW_STRONG = 0x80 };

/* report.c: one finding for an instruction and a code.  lanes of w are concerned. */
void kl_sim_report(struct sim_warp *w, const struct sim_ins *i, enum kl_code code, uint32_t lanes,
                   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Counts one that was reported already, so that its text need not be made again. */
bool kl_sim_known(struct sim_warp *w, const struct sim_ins *i, enum kl_code code, uint32_t lanes);
void kl_sim_findings(struct sim_run *r, kl_diags *d);

/* memory.c */
void kl_sim_addresses(const struct sim_warp *w, const struct sim_ins *i, uint32_t op, int64_t imm,
                      uint64_t addr[LANES]);
/* Each: lanes of mask that pass; the others are reported. */
uint32_t kl_sim_global_ok(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                          const uint64_t *addr, uint32_t bytes, bool write);
uint32_t kl_sim_shared_ok(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                          const uint64_t *addr, uint32_t bytes, bool write);
uint32_t kl_sim_aligned(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                        const uint64_t *addr, uint32_t bytes);
/* Lanes of mask that lie in the memory space of the first one, with offsets in its window. */
uint32_t kl_sim_one_space(uint32_t mask, uint64_t *addr, uint8_t *space);

/* shadow.c: shared memory that is read and written */
void kl_sim_shadow_read(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                        const uint64_t *addr, uint32_t bytes);
/* value: what each lane is about to write, `stride` bytes apart */
void kl_sim_shadow_write(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                         const uint64_t *addr, uint32_t bytes, const char *value, uint32_t stride);
/* n consecutive bytes of the whole warp: true and noted if there is nothing to report */
bool kl_sim_shadow_row(struct sim_warp *w, const struct sim_ins *i, uint32_t addr, uint32_t n,
                       bool write);
void kl_sim_shadow_atomic(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                          const uint64_t *addr, uint32_t bytes);
/* cp.async: pending makes the bytes unreadable, until it is done */
void kl_sim_shadow_pending(struct sim_warp *w, uint32_t addr, uint32_t bytes, bool done);
void kl_sim_shadow_barrier(struct sim_cta *c);

/* cluster.c: shared memory that all CTAs of a cluster may touch.  The same as in shadow.c, by
 * what came before what. */
void kl_sim_cluster_open(struct sim_run *r);
void kl_sim_cluster_begin(struct sim_run *r); /* before its CTAs run */
void kl_sim_cluster_read(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                         const uint64_t *addr, uint32_t bytes);
void kl_sim_cluster_write(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                          const uint64_t *addr, uint32_t bytes, const char *value, uint32_t stride);
/* The warps of a CTA whose bit is set in `here` met at a barrier. */
void kl_sim_cluster_met(struct sim_run *r, const struct sim_cta *c, uint32_t here);
/* Lets the warps go on that a barrier of the cluster or an mbarrier held up. */
bool kl_sim_cluster_release(struct sim_run *r);
void kl_sim_cluster_ended(struct sim_run *r, struct sim_cta *c);
/* shared::cluster addresses: lanes of mask that lie in the CTA of the first one, which becomes
 * w->mem, with offsets in its memory.  0: none (said); *left are the others. */
uint32_t kl_sim_cluster_part(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                             uint64_t *addr, uint32_t *left);

/* global.c: between CTAs.  Accesses that are in bounds, before they are made; addr: of the host */
void kl_sim_global_open(struct sim_run *r);
void kl_sim_global_program(struct sim_run *r, uint64_t program);
bool kl_sim_global_synced(const struct sim_run *r); /* do atomics order programs? */
void kl_sim_global_save(struct sim_run *r, struct sim_saved *v);
void kl_sim_global_swap(struct sim_run *r, struct sim_saved *v);
/* value: what is stored, `stride` bytes from lane to lane */
void kl_sim_global_touch(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                         const uint64_t *addr, uint32_t bytes, bool write, const char *value,
                         uint32_t stride);
void kl_sim_global_row(struct sim_warp *w, const struct sim_ins *i, const uint64_t *addr,
                       uint32_t bytes);
void kl_sim_global_atomic(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                          const uint64_t *addr, uint32_t bytes);
void kl_sim_global_sum(struct sim_warp *w, const struct sim_ins *i, uint32_t lane, const char *at,
                       uint64_t old, uint64_t value);
void kl_sim_global_orders(struct sim_run *r);
bool kl_sim_global_unseen(const struct sim_run *r); /* too much memory to look for races */
uint32_t kl_sim_site(const struct sim_run *r, uint32_t ins); /* one for all of a line */
const char *kl_sim_element(struct sim_run *r, const char *at); /* NULL: of no array */
/* "3", or "(3, 0)" of a grid of rank 2. */
const char *kl_sim_program(struct sim_run *r, uint64_t p);
const char *kl_sim_outside(struct sim_run *r, uint64_t addr);  /* NULL: far from every array */

/* endless.c */
void kl_sim_endless_begin(struct sim_run *r);
bool kl_sim_endless_turn(struct sim_run *r);

/* count.c */
void kl_sim_count_access(struct sim_warp *w, const struct sim_ins *i, bool shared, uint32_t mask,
                         const uint64_t *addr, uint32_t bytes);
/* Lanes of a st.async that write to one CTA, whose addresses are; first: of the CTAs that it writes to. */
void kl_sim_count_push(struct sim_warp *w, const struct sim_ins *i, bool first, uint32_t mask,
                       const uint64_t *addr, uint32_t bytes);
void kl_sim_counts_sum(struct sim_run *r, kl_sim_counts *out, kl_arena *a);

/* async.c: the copies that are still open when the thread ends */
void kl_sim_async_finish(struct sim_warp *w);

/* special.c */
void kl_sim_specials(struct sim_warp *w);

/* warp.c: runs until the warp waits at a barrier, ends or has used its turn */
void kl_sim_warp_run(struct sim_warp *w, uint32_t turn);

static inline uint32_t sim_index(const struct sim_warp *w, const struct sim_ins *i)
{
    return (uint32_t)(i - w->run->f->ins);
}
static inline int sim_popc(uint32_t m)
{
    return __builtin_popcount(m);
}
static inline uint32_t sim_first(uint32_t m)
{
    return (uint32_t)__builtin_ctz(m);
}

#endif
