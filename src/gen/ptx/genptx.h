/* genptx.h - the GPU back end: IR to PTX.
 *
 * A text is the prelude (version, target) and one entry per kernel:
 *
 *     .entry NAME(arrays and scalars in the order of the IR's parameters, grid extents 0 to 2,
 *                 programs in all, SMs of the device)
 *
 * Each parameter is eight bytes: the address of element [0,...,0] of an array, or a scalar in
 * its canonical 64 bits.  A program is run by a CTA, or a cluster of `cluster` CTAs.  The launch
 * has min(programs, grid_limit / cluster) * cluster CTAs in x; cluster number c of n runs programs
 * c, c + n, ... (linear, axis 0 fastest).  Under the fact i32 n is all programs, so that none runs a
 * second one: nothing lives across programs, and ids have 32 bits. */
#ifndef KL_GENPTX_H
#define KL_GENPTX_H

#include "ir/ir.h"

enum { KL_PTX_PROGRAM_BITS = 27 }; /* clusters have up to 16 CTAs, grids less than 2^31 */

typedef struct kl_ptx_opts {
    uint32_t arch;      /* 80, 86, 89, 90, 100, 120: a row of target.def */
    /* Facts of the launch (LANGUAGE 7).  v16: of every array the base, the innermost extent and all
     * strides but the innermost are multiples of 16 bytes, and the innermost stride is 1.  i32:
     * every byte offset inside the extents is below 2^31, and there are less than 2^KL_PTX_PROGRAM_BITS
     * programs, which all have a CTA (or cluster) of their own. */
    bool v16, i32;
    uint32_t cluster;   /* most CTAs of a cluster; 0: as many as the target takes */
    bool exact;         /* fast forms are computed exactly: for the executor */
    bool lines;         /* .loc lines to the Kiln source */
    uint32_t first_file; /* of its .file numbers; 0: 1.  Kernels of one text have numbers apart */
    const char *symbol; /* name of the entry; NULL: kiln_ and the function's name */
    bool no_swizzle;    /* changes of layout use row-major offsets, to see what that costs */
    struct kl_ptx_trace *trace; /* what is emitted, for the model (trace.h); NULL: nobody asks */
} kl_ptx_opts;

typedef struct kl_ptxinfo {
    const char *entry;
    uint32_t threads;     /* of a CTA */
    uint32_t shared;      /* bytes, declared in the text */
    uint32_t dynamic;     /* bytes, to be given at launch (opt-in above 48 KB) */
    uint32_t nparam;      /* of the entry, eight bytes each: f->nparam + 5 */
    uint32_t cluster;     /* CTAs of a cluster, which the text declares; 1: none */
    uint64_t grid_limit;  /* most CTAs in x */
    bool approximate;     /* a fast form on the device's units: bits of its own */
} kl_ptxinfo;

/* The text's head.  clusters: some kernel has info.cluster above 1. */
void kl_ptx_prelude(kl_buf *b, const kl_fn *f, const kl_ptx_opts *o, bool clusters);
/* One kernel.  Raises KILN_E_UNSUPPORTED through f->a->env where a limit of the target or of
 * the back end is met, with the numbers. */
void kl_ptx_emit(kl_buf *b, const kl_fn *f, const kl_ptx_opts *o, kl_ptxinfo *out);

#endif
