/* special.c - special registers: filled for each warp of each CTA before it runs. */
#include "sim/lane.h"

static uint64_t value(const struct sim_warp *w, uint8_t what, uint32_t lane)
{
    const struct sim_run *r = w->run;
    const kl_sim_launch *l = r->l;
    uint32_t t = w->id * LANES + lane;
    switch (what) {
    case SR_TID_X: return t % l->block[0];
    case SR_TID_Y: return t / l->block[0] % l->block[1];
    case SR_TID_Z: return t / l->block[0] / l->block[1];
    case SR_NTID_X: case SR_NTID_Y: case SR_NTID_Z: return l->block[what - SR_NTID_X];
    case SR_CTAID_X: case SR_CTAID_Y: case SR_CTAID_Z: return w->cta->ctaid[what - SR_CTAID_X];
    case SR_NCTAID_X: case SR_NCTAID_Y: case SR_NCTAID_Z: return l->grid[what - SR_NCTAID_X];
    case SR_LANEID: return lane;
    case SR_WARPID: return w->id;
    case SR_NWARPID: return r->nwarp;
    case SR_NSMID: return 1;
    case SR_CLUSTER_RANK: return w->cta->rank;
    case SR_CLUSTER_SIZE: return r->ncta;
    case SR_CLUSTERID_X: case SR_CLUSTERID_Y: case SR_CLUSTERID_Z:
        return w->cta->ctaid[what - SR_CLUSTERID_X] / r->f->pub.cluster[what - SR_CLUSTERID_X];
    case SR_NCLUSTERID_X: case SR_NCLUSTERID_Y: case SR_NCLUSTERID_Z:
        return l->grid[what - SR_NCLUSTERID_X] / r->f->pub.cluster[what - SR_NCLUSTERID_X];
    case SR_CLUSTER_CTAID_X: case SR_CLUSTER_CTAID_Y: case SR_CLUSTER_CTAID_Z:
        return w->cta->ctaid[what - SR_CLUSTER_CTAID_X] % r->f->pub.cluster[what - SR_CLUSTER_CTAID_X];
    case SR_CLUSTER_NCTAID_X: case SR_CLUSTER_NCTAID_Y: case SR_CLUSTER_NCTAID_Z:
        return r->f->pub.cluster[what - SR_CLUSTER_NCTAID_X];
    case SR_MASK_EQ: return 1u << lane;
    case SR_MASK_LT: return (1u << lane) - 1;
    case SR_MASK_LE: return (2u << lane) - 1;
    case SR_MASK_GT: return ~((2u << lane) - 1);
    case SR_MASK_GE: return ~((1u << lane) - 1);
    case SR_DYN_SMEM: return l->dynamic_shared;
    case SR_TOTAL_SMEM: return r->smem_size;
    case SR_CLOCK: case SR_CLOCK64: case SR_TIMER: case SR_TIMER_LO: return r->steps;
    default: return 0;
    }
}

void kl_sim_specials(struct sim_warp *w)
{
    const struct sim_fn *f = w->run->f;
    for (uint32_t k = 0; k < f->nspecial; k++) {
        const struct sim_special *s = &f->special[k];
        struct sim_opnd o = {.off = s->off, .bank = BANK_REG, .size = s->size, .given = 1};
        uint64_t v[LANES];
        for (uint32_t l = 0; l < LANES; l++)
            v[l] = value(w, s->what, l);
        sim_set(w, &o, UINT32_MAX, v);
        w->written[s->reg] = UINT32_MAX;
    }
}
