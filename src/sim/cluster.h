/* cluster.h - what cluster.c and mbar.c share. */
#ifndef KL_SIM_CLUSTER_H
#define KL_SIM_CLUSTER_H

#include "sim/lane.h"

enum { CLOCK_BITS = 22 };
#define MANY_READ UINT32_MAX

/* An event: number of a warp and its clock; 0: none. */
struct cell {
    uint32_t wr, rd; /* rd may be MANY_READ */
};

struct arrival { /* of an asynchronous store */
    uint32_t at;
    uint8_t bytes;
    char value[16];
};

struct mbar {
    uint32_t at, count, pending, phase;
    int64_t tx; /* bytes that are expected and have not come */
    bool fenced;
    uint32_t *next, *seen; /* what the phase in progress, and the last one that ended, pass on */
    KL_VEC(struct arrival) in;
};

struct sim_shared {
    struct cell *cell; /* of each byte */
    uint32_t **many;   /* of each word: clocks of its readers, where there are several; behind
                              * them the number of the cluster they are of */
    uint32_t *far;     /* by warp: its last access from another CTA */
    const struct sim_ins **far_ins;
    KL_VEC(struct mbar) bar;
    bool ended;
};

struct sim_cluster {
    uint32_t nwarp;  /* of the cluster */
    uint32_t number; /* how many began before, and this one */
    uint32_t arrived, phase;
    uint32_t *next, *seen;
};

static inline void sim_join(uint32_t *to, const uint32_t *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = to[i] < from[i] ? from[i] : to[i];
}

/* The warp tells what it has done so far. */
static inline void sim_tell(struct sim_warp *w, uint32_t *to)
{
    sim_join(to, w->clock, w->run->cluster->nwarp);
    if (w->clock[w->gid] < (1u << CLOCK_BITS) - 1)
        w->clock[w->gid]++;
}

/* Lanes of mask write to w->mem; done: the bytes can be read at once. */
void kl_sim_cluster_written(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                            const uint64_t *addr, uint32_t bytes, const char *value,
                            uint32_t stride, bool done);
/* Has the phase ended that the warp waits for? */
bool kl_sim_mbar_passed(const struct sim_warp *w);

#endif
