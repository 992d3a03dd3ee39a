/* occupancy.h - how many blocks of threads fit on a multiprocessor, and what stops more.
 *
 * The rule is the driver's, in integers: warps, registers with their units and sub-partitions, shared
 * memory with what the system reserves, blocks, barriers.  Beside it stands the rule that courses
 * teach, which leaves the units out. */
#ifndef KL_OCCUPANCY_H
#define KL_OCCUPANCY_H

#include "base/mem.h"

typedef struct kl_sm {
    uint32_t cc; /* 90: compute capability 9.0 */
    uint32_t warps, blocks, registers;
    uint32_t shared, shared_default, shared_most, reserved, unit; /* bytes */
    uint32_t barriers;                                            /* 0: no limit */
    uint32_t fp32, fp64, fp16; /* multiply-adds a clock; 0: not known */
} kl_sm;
/* false: no static answer for this capability. */
bool kl_sm_find(uint32_t cc, kl_sm *out);
bool kl_sm_at(size_t i, kl_sm *out); /* rows in order; false past the last */

/* What a block uses. */
typedef struct kl_occ_block {
    uint32_t threads;
    uint32_t registers; /* a thread; 0: none, or not known: they are no limit then */
    uint32_t shared;    /* bytes, static and dynamic */
    uint32_t barriers;
} kl_occ_block;

enum kl_limit {
    KL_LIMIT_WARPS, KL_LIMIT_REGISTERS, KL_LIMIT_SHARED, KL_LIMIT_BLOCKS, KL_LIMIT_BARRIERS,
    KL_NLIMIT
};
enum { KL_REGISTERS_MOST = 255, KL_THREADS_MOST = 1024 };
#define KL_UNLIMITED UINT32_MAX
extern const char *const kl_limit_name[KL_NLIMIT]; /* "warps", ... */

typedef struct kl_occ {
    uint32_t limit[KL_NLIMIT]; /* blocks an SM that each allows; KL_UNLIMITED */
    uint32_t blocks, warps;    /* on an SM; warps of all of them */
    uint32_t warps_block;
    double share;              /* of the warps that an SM can hold: 0 to 1 */
    unsigned limiter;          /* 1 << each limit that equals blocks */
} kl_occ;
void kl_occupancy(const kl_sm *sm, const kl_occ_block *b, kl_occ *out);

/* The simplified rule: registers / (threads * registers a thread), and the other limits, all without
 * units. */
void kl_occupancy_simple(const kl_sm *sm, const kl_occ_block *b, kl_occ *out);

/* Values of one resource, from first to last, with which so many blocks fit. */
typedef struct kl_rung {
    uint32_t first, last, blocks;
} kl_rung;
enum { KL_RUNGS = 64 };
/* All rungs of a resource (KL_LIMIT_WARPS: threads of a block, in whole warps), the other resources
 * as in b, values rising.  Returns how many; a rung with 0 blocks is what does not run. */
uint32_t kl_occ_ladder(const kl_sm *sm, const kl_occ_block *b, enum kl_limit of, kl_rung out[KL_RUNGS]);

#endif
