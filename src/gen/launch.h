/* launch.h - what runs a function needs: the same for the interpreter and the CPU. */
#ifndef KL_LAUNCH_H
#define KL_LAUNCH_H

#include "ir/ir.h"

/* One parameter of the IR function. */
struct kl_slot {
    void *base;          /* arrays: element [0,...,0] */
    const void *lo, *hi; /* memory that may be touched */
    uint64_t bits;       /* scalars */
    uint8_t *shadow;     /* one byte per byte from lo to hi: 1 = has a value; NULL: all have */
    bool hidden;         /* not the kernel's own: what assert and print write to */
};

typedef struct kl_launch {
    const struct kl_slot *slot; /* as many as f->nparam */
    int64_t grid[3];            /* each > 0; the product below 2^63 */
    int64_t num_sms;
} kl_launch;

#endif
