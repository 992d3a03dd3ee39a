/* plan.h - the parts of kl_conv_plan; private to src/layout. */
#ifndef KL_LAYOUT_PLAN_H
#define KL_LAYOUT_PLAN_H

#include "layout/convert.h"

/* c->from moves nothing out of a warp.  Fills c->shuffle. */
void kl_plan_shuffle(kl_conv *c);
/* c->from moves nothing out of a CTA.  Fills c->shared; false if max_bytes does not suffice.  Of
 * the flags (enum kl_conv_flags) it minds those of swizzles. */
bool kl_plan_shared(kl_conv *c, uint32_t max_bytes, uint32_t flags);

#endif
