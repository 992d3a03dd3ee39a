/* program.h - running the programs of a launch on scalars. */
#ifndef KL_MODEL_PROGRAM_H
#define KL_MODEL_PROGRAM_H

#include "model/run.h"

/* Runs all programs, or where that is more work than the budget a sample with the first and the last
 * one; those two are counted in set 0, the others in set 1. */
void kl_model_programs(struct mrun *r, uint64_t budget);

#endif
