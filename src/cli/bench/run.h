/* run.h - a subject of a case: a kernel with its settings on a device, or a peer beside it. */
#ifndef KL_BENCHRUN_H
#define KL_BENCHRUN_H

#include "cli/bench/take.h"
#include "cli/bench/peer.h"

/* A source on a device, for all cases. */
struct kl_source {
    const char *spec;
    struct kl_bdev *dev;
    struct kl_session s; /* the context is the device's */
    kiln_kernel *k;
};
int kl_source_open(struct kl_source *s, struct kl_bdev *d, const char *spec);
void kl_source_close(struct kl_source *s);

/* What results are compared with, if the command line names nothing. */
struct kl_reference {
    struct kl_session interp, cpu; /* opened when first needed */
    bool tried_cpu;
};

struct kl_subject {
    struct kl_bdev *dev;
    struct kl_source *src;
    struct kl_assigns as; /* expanded; the values are owned, too */
    struct kl_args args;
    bool have_args;
    struct kl_bset sets;
    struct kl_taker turn;    /* of a peer: only what its launches take the host */
    struct kl_peerrun *peer; /* NULL: the kernel */
    double pause_s;
    double once_s; /* a launch, by the host's clock */
    int rc;        /* of what failed */
    size_t given;  /* of as: by the command line */
    struct kl_row row;
};
/* Arguments, arrays on the device, the first launch, the check.  false: row.note says why. */
bool kl_subject_make(struct kl_subject *s, struct kl_reference *ref, bool verify);
void kl_subject_free(struct kl_subject *s);
/* For lanes: user is a struct kl_lane_of. */
struct kl_lane_of {
    struct kl_subject *s;
    bool warm;
};
bool kl_subject_take(void *user, size_t n, double *ms, struct kl_msg *m);
double kl_subject_clock(void *user);
/* What the copies hold after the measurement. */
bool kl_subject_after(struct kl_subject *s, struct kl_msg *m);

#endif
