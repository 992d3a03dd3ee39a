/* interp.h - the interpreter: the definition of the IR, with checks. */
#ifndef KL_INTERP_H
#define KL_INTERP_H

#include "gen/launch.h"

/* Run all programs in order (axis 0 fastest).  checks: KILN_CHECK_* bits; findings go to d,
 * one per source place with a count and the first instance (program, lane, coordinates).
 * No access ever leaves [lo, hi), whatever the kernel does.  Returns KILN_OK,
 * KILN_E_BOUNDS if there were findings, or KILN_E_NOMEM.  tick, if not NULL, is called
 * now and then; false stops the run with KILN_E_UNSUPPORTED. */
kiln_status kl_interp_run(const kl_fn *f, const kl_launch *l, unsigned checks, kl_diags *d,
                          kl_env *env, bool (*tick)(void *), void *tick_user);

/* Programs [begin, end) only, for tests and for running on several threads without checks. */
kiln_status kl_interp_range(const kl_fn *f, const kl_launch *l, int64_t begin, int64_t end,
                            kl_env *env);

#endif
