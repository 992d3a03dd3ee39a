/* ptxas.h - what NVIDIA's assembler says of a kernel: registers, spills, shared memory.
 *
 * It is run as a child process, as the C compiler is, and only when its path is given.  What it
 * assembles is thrown away. */
#ifndef KL_PTXAS_H
#define KL_PTXAS_H

#include "rt/rt.h"

typedef struct kl_ptxas {
    uint32_t registers, spill_stores, spill_loads, stack, barriers, shared; /* bytes */
} kl_ptxas;

/* Assemble for compute capability cc (90) and read what -v says of the entry.  path: absolute.
 * KILN_E_TOOLCHAIN: msg says why not. */
kiln_status kl_ptxas_run(kl_cache *c, const char *path, const char *ptx, size_t n, uint32_t cc,
                         const char *entry, uint32_t timeout_ms, kl_ptxas *out,
                         char msg[KL_CC_MSG]);
/* The text of -v.  false: the entry is not there. */
bool kl_ptxas_read(const char *text, const char *entry, kl_ptxas *out);

#endif
