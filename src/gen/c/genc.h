/* genc.h - the CPU back end: IR to C.
 *
 * A generated file is the prelude (types, conversions, math, reductions) and one
 * function per kernel:
 *
 *     void NAME(const uint64_t *p, const int64_t *grid, int64_t begin, int64_t end, char *scratch)
 *
 * runs programs begin..end-1 (linear, axis 0 fastest).  p holds one slot per IR parameter
 * (array base or scalar bits), then the extra slots of kl_cinfo; grid the programs along the
 * three axes, then what num_sms gives.  scratch is 64-byte aligned.
 * The object needs memcpy, memmove and memset only.  To give the interpreter's bits it must be
 * compiled with -ffp-contract=off -fwrapv -fno-strict-aliasing; to be fast and free of libm,
 * with -O3 (gcc) or -O2 (clang) -fno-math-errno -fno-trapping-math and fma in the target. */
#ifndef KL_GENC_H
#define KL_GENC_H

#include "ir/ir.h"

typedef struct kl_cinfo {
    uint64_t scratch; /* bytes a thread */
    int64_t *extra;   /* sizes that are variables of the text, so that one object serves many */
    uint32_t nextra;
} kl_cinfo;

/* The file's head: the same for every kernel of this build. */
void kl_c_prelude(kl_buf *b);
/* One kernel.  lines: emit #line to the Kiln source, for --keep.  Raises KILN_E_UNSUPPORTED
 * through f->a->env where the back end has a limit (the caller then interprets). */
void kl_c_emit(kl_buf *b, const kl_fn *f, const char *symbol, bool lines, kl_cinfo *out);

#endif
