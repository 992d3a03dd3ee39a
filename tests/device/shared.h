/* shared.h - of shared.c. */
#ifndef SHARED_H
#define SHARED_H

#include "kiln.h"

/* What several threads may use at once, used by that many at once.  NULL, or what went wrong. */
const char *shared_objects(kiln_context *ctx, int threads, int turns);

#endif
