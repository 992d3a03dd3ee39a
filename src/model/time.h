/* time.h - how long a launch keeps each part of a GPU busy, and what less of one would save.
 *
 * Each part is taken at the rate that it has when it never waits: no kernel is faster than the part
 * that takes longest, and one whose parts never work at the same time takes their sum.  What a remedy
 * saves lies between what these two say. */
#ifndef KL_MODEL_TIME_H
#define KL_MODEL_TIME_H

#include "model/gpu.h"
#include "model/model.h"

enum kl_busy { KL_BUSY_MEMORY, KL_BUSY_L2, KL_BUSY_SHARED, KL_BUSY_ISSUE, KL_NBUSY };
extern const char *const kl_busy_name[KL_NBUSY];

typedef struct kl_times {
    double us[KL_NBUSY];
} kl_times;

/* bytes: that must move.  false: clock or bandwidth are not known, or counts are too low. */
bool kl_times_of(const kl_model *m, const kl_chip *c, double bytes, kl_times *out);
double kl_times_most(const kl_times *t, enum kl_busy *which);

/* Shares of the time, least and most, that go when the parts are busy as in `then` instead. */
void kl_times_saved(const kl_times *now, const kl_times *then, double *least, double *most);
/* The same in words. */
const char *kl_times_text(kl_arena *a, const kl_times *now, const kl_times *then);

/* What a last wave that is not full costs, as a share of the time.  Where memory bounds, its blocks
 * share the bandwidth among fewer and are held back only by their latency: rest x bytes of a block /
 * min(bandwidth, rest x loads under way / latency without load).  Where arithmetic does: the busiest
 * multiprocessor's blocks against the mean.  block_bytes, under_way: of a block; 0: not known. */
typedef struct kl_tail {
    bool known;
    double gain;        /* expected */
    double last_us, ideal_us; /* memory: of the last wave, and its share of a busy memory; else 0 */
} kl_tail;
void kl_tail_of(const kl_waves *w, const kl_chip *c, bool memory, double block_bytes,
                double under_way, kl_tail *out);

#endif
