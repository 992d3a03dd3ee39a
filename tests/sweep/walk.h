/* walk.h - between the files that name kernels and shapes. */
#ifndef WALK_H
#define WALK_H

#include "sweep.h"

struct walk {
    sink_fn *sink;
    void *user;
    bool full;
    unsigned group;
    uint64_t seed;
};

/* A case with its arrays dense, off by one element on one side or both, in place. */
void sweep_lying(struct walk *w, struct kase *c);
void sweep_more(struct walk *w); /* more.c */

#endif
