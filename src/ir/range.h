/* range.h - bounds of f32 values that hold whatever the program is given.
 *
 * Functions and quotients have short forms for the middle of their range.  Where bounds show that
 * a value lies there no test is needed, and no full form.  A kernel gets bounds by fmin(abs(x), c):
 * fmin lets no NaN pass. */
#ifndef KL_RANGE_H
#define KL_RANGE_H

#include "ir/ir.h"

struct kl_range {
    float lo, hi;
    bool nan; /* or it may be a NaN */
};

/* By value; what is not an f32 may be anything. */
struct kl_range *kl_ranges(const kl_fn *f);
bool kl_range_within(struct kl_range x, float lo, float hi); /* and no NaN */
/* The function of math.def that gives what an exp or exp2 gives, for its bounds; NULL: none. */
const char *kl_range_mid(const kl_fn *f, const struct kl_range *r, kl_val v);

#endif
