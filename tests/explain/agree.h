/* agree.h - what the two files of model-agree share. */
#ifndef AGREE_H
#define AGREE_H

#include <stdbool.h>

#include "kiln.h"

struct options {
    long most;
    unsigned arch;
    bool no_swizzle, verbose, notes;
};

struct totals {
    unsigned long passed, failed, skipped, lines, unsure;
};

/* Model and execute one launch and compare them.  *bad: they differ, which was printed; *left: there
 * is nothing to compare. */
kiln_status agree_run(const struct options *o, struct totals *t, kiln_kernel *k,
                      const kiln_arg *args, size_t n, const char *what, bool *bad, bool *left,
                      kiln_diags **diags);

/* n random programs from seed on. */
void agree_random(const struct options *o, struct totals *t, kiln_context *ctx, unsigned long n,
                  unsigned long seed);

#endif
