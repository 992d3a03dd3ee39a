/* take.h - samples of something that is launched over copies of its arrays: a kernel, or a
 * library of others in its own process. */
#ifndef KL_BENCHTAKE_H
#define KL_BENCHTAKE_H

#include "cli/bench/bench.h"

struct kl_taker {
    struct kl_bdev *dev;
    void *user;
    /* The computation over a copy, queued on a GPU; what that took the host. */
    bool (*launch)(void *user, size_t copy, double *host_s, struct kl_msg *m);
    /* What is updated in place gets its first values, outside the time. */
    bool (*restore)(void *user, size_t copy, struct kl_msg *m);
    size_t copies, next; /* next: which one comes */
    bool flush;          /* the cache is flushed before each cold launch instead */
    double *host_s;      /* of the launches on a GPU; to be freed */
    size_t nhost;
};
/* n cold or warm times in milliseconds, at most KL_BURST on a GPU. */
bool kl_take(struct kl_taker *t, bool warm, size_t n, double *ms, struct kl_msg *m);
void kl_take_note(struct kl_taker *t, double host_s);

#endif
