/* model.h - what a GPU would do for one launch of one kernel, found without one.
 *
 * The input is the optimised IR with a launch: shapes, strides, scalars, grid.  The GPU back end
 * emits the kernel and leaves a trace (gen/ptx/trace.h): for each access to memory its layout, its
 * vector and what masks it, for each exchange through shared memory the wavefronts.  The model then
 * runs the programs on scalars alone: loops take their trips, branches their way, and each access
 * adds the sectors that its lanes touch.  Values of tiles are computed only where a mask, an index
 * or a condition needs them.  What depends on data that is not there is said (doubts), never
 * guessed.
 *
 * Counts are those of the PTX executor (sim/sim.h): a request is an instruction of a warp with an
 * active lane, units are 32-byte sectors of global or wavefronts of shared memory.  The model knows
 * addresses and no caches: what it counts is what is asked of the second-level cache at most. */
#ifndef KL_MODEL_H
#define KL_MODEL_H

#include "base/diag.h"
#include "gen/ptx/genptx.h"
#include "ir/ir.h"

/* ---- in ---- */

/* A parameter of the IR function. */
typedef struct kl_model_param {
    const char *name;
    bool given;    /* arrays: passed */
    uint64_t bits; /* scalars, canonical */
    /* arrays */
    int32_t rank;
    int64_t ext[KL_MAX_DIMS], str[KL_MAX_DIMS]; /* as bound, in elements; rank 0: one element */
    uint64_t base;       /* address of element [0,...,0]; 0: a multiple of 256 */
    const void *data;    /* element [0,...,0] in memory that may be read; NULL: values are unknown */
    const void *lo, *hi; /* of data */
} kl_model_param;

struct mrun;

typedef struct kl_model_in {
    const kl_fn *f;              /* optimised; its arena takes what the model holds */
    const kl_fn *plain;          /* as lowered, for what passes removed; may be NULL */
    const kl_ptx_opts *ptx;      /* as for kl_ptx_emit; lines are on whatever it says */
    const kl_model_param *param; /* as many as f->nparam */
    int64_t grid[3], num_sms;
    uint64_t budget; /* work before programs are sampled, a unit is about a request; 0: 2^25 */
} kl_model_in;

/* ---- out ---- */

typedef struct kl_model_traffic {
    uint64_t requests; /* instructions of warps */
    uint64_t lanes;    /* active lanes of these */
    uint64_t bytes;    /* asked for by active lanes */
    uint64_t units;    /* sectors of 32 bytes; wavefronts */
    uint64_t ideal;    /* units that the bytes need at least */
    uint64_t apart;    /* loads of arrays: different sectors of each execution by a block, which are
                        * what passes its L1 cache if that has the rest; others: as units */
} kl_model_traffic;

enum kl_model_dir { KL_MODEL_LOAD, KL_MODEL_STORE, KL_MODEL_ATOMIC };

/* Why an access moves fewer than 16 bytes a lane. */
enum kl_model_narrow {
    KL_NARROW_NOT,      /* it moves 16 */
    KL_NARROW_SCALAR,   /* it is one element */
    KL_NARROW_STRIDED,  /* neighbours of the last axis do not lie side by side */
    KL_NARROW_FACTS,    /* a base, extent or pitch is no multiple of 16 bytes: fact names it */
    KL_NARROW_VIEW,     /* of an array that the kernel makes: nothing is known of its base */
    KL_NARROW_START,    /* where a section begins is not known to be a multiple */
    KL_NARROW_MASK,     /* a mask or an index is taken element by element */
    KL_NARROW_SMALL,    /* the tile has too few elements for the threads */
    KL_NARROW_LAYOUT,   /* the layout has no run of neighbours in a thread */
    KL_NARROW_STRIDE    /* the last stride is a value of the launch, though it is 1 */
};

/* One load, store or atomic of an array in the IR. */
typedef struct kl_model_access {
    kl_val at;
    kl_span loc;
    kiln_place place;
    uint8_t dir;    /* enum kl_model_dir */
    uint8_t elem;   /* enum kl_elem */
    uint8_t vec;    /* elements of one lane's access */
    uint8_t width;  /* bytes of one lane's access */
    uint8_t narrow; /* enum kl_model_narrow */
    const char *fact; /* FACTS, START, STRIDE: what has to hold, and does not */
    int64_t shift;  /* START: constant elements behind what may be a multiple; 0: that is not why */
    uint32_t param; /* which array */
    const char *name;
    bool contiguous;    /* neighbours along the tile's last axis lie side by side */
    int64_t lane_bytes; /* from lane 0 to lane 1; 0: the same element, or not constant */
    int64_t pitch;      /* bytes from row to row of the section; 0: one row */
    bool masked;        /* it has a mask operand */
    bool mask_true;     /* which was true wherever the section lies inside, in every program */
    bool outside;       /* some elements of the section lay outside the extents */
    bool empty;         /* no element was ever inside */
    bool exact;         /* every execution was counted; else why */
    const char *why;
    uint64_t runs;      /* executions by programs */
    uint64_t unknown;   /* of them, those that are not counted */
    uint32_t worst;     /* units of the worst request */
    const char *first;  /* the first execution that moved more than its bytes need, or else the first:
                         * "program (0, 1): x[0:64][5]"; NULL: none is known */
    kl_model_traffic t;
} kl_model_access;

/* What goes through shared memory for one IR operation on one line: one side of an exchange. */
typedef struct kl_model_shared {
    kl_val at;
    kl_span loc;
    kiln_place place;
    bool store, exact;
    bool push;        /* into other blocks of the cluster */
    const char *why;  /* not exact */
    uint8_t width;    /* bytes of a lane's access */
    uint64_t runs, unknown;
    uint32_t worst;   /* wavefronts of the worst request */
    kl_model_traffic t;
    /* Changes of layout that are planned: wavefronts of this side, scaled like t, as row-major, with
     * a padded pitch, and with the swizzle; 0: there is no choice here. */
    uint64_t plain, padded, swizzled;
    const char *chosen; /* "plain", "padded", "swizzled" or NULL */
} kl_model_shared;

typedef struct kl_model_line {
    const char *file; /* NULL: code without a place */
    uint32_t line;
    kl_model_traffic gload, gstore, sload, sstore, atomic, push;
    bool exact;
} kl_model_line;

typedef struct kl_model_array {
    const char *name;
    uint32_t param;
    uint8_t elem;
    uint64_t whole;        /* bytes of all elements inside the extents */
    uint64_t read, written; /* bytes asked for: loads (and atomics), stores (and atomics) */
    uint64_t unique_read, unique_written; /* different bytes of these */
    uint64_t lines;        /* where there are atomics: different lines of 128 bytes that are written;
                            * of a sample, those that it wrote */
    bool exact;            /* of the four */
    double reuse;          /* read / unique_read; 0: not read */
} kl_model_array;

/* Work of all programs, padding of tiles included.  An fma counts 2, a function 1 special. */
typedef struct kl_model_work {
    uint64_t fp16, fp32, fp64; /* additions, products, quotients, comparisons: of the type */
    uint64_t special;          /* exp, log, tanh, sqrt ...: one a value */
    uint64_t integer;          /* of tiles */
    uint64_t dot;              /* of the above, those of products of matrices */
    /* instructions of lanes that these take at least, an fma being one; of them, those of f64 */
    uint64_t steps, steps64;
} kl_model_work;

/* The same computation with each operation of tiles as a pass of its own: operands are read from
 * memory and the result is written there. */
typedef struct kl_model_passes {
    uint32_t n;             /* passes; 0: the kernel only copies */
    uint64_t read, written; /* bytes */
    uint64_t fused;         /* what the kernel moves, each byte once */
    double ratio;           /* (read + written) / fused */
} kl_model_passes;

typedef struct kl_model_dot {
    kl_val at;
    kl_span loc;
    kiln_place place;
    uint32_t m, n, k;
    uint8_t elem, acc;
    bool tensor;      /* on tensor cores */
    const char *miss; /* else: what of types or sizes is in the way; NULL: nothing is */
} kl_model_dot;

/* Something that the model does not know, once a place. */
typedef struct kl_model_doubt {
    kl_span loc;
    kiln_place place;
    const char *text;
    uint64_t count; /* executions */
} kl_model_doubt;

typedef struct kl_model {
    kl_ptxinfo info;            /* threads, shared memory, cluster */
    uint64_t programs, counted; /* counted < programs: an even sample, and counts are scaled */
    bool exact;                 /* nothing sampled, no doubts that touch counts */
    bool cut;                   /* a loop was left before its end: counts are too low */
    KL_VEC(kl_model_access) access;
    KL_VEC(kl_model_shared) shared;
    KL_VEC(kl_model_line) line;   /* by file and line */
    KL_VEC(kl_model_array) array; /* those given */
    KL_VEC(kl_model_dot) dot;
    KL_VEC(kl_model_doubt) doubt;
    kl_model_traffic gload, gstore, sload, sstore, atomic;
    kl_model_traffic push; /* stores into shared memory of other blocks of a cluster */
    kl_model_work work;
    kl_model_passes passes;
    uint64_t moved;   /* each byte once: unique_read + unique_written over arrays */
    double intensity; /* floating-point operations (special ones count 1) a byte moved */
    uint64_t instructions; /* of warps: PTX without copies of registers and what is done once a block,
                            * by the shortest way through each operation */
    uint64_t barriers; /* of CTAs */
    uint64_t edges;    /* programs in which a section reaches past its array: these check elements */
    const struct mrun *run; /* what the rules look at besides */
} kl_model;

/* Everything the model holds lies in the arena of in->f.  Raises as kl_ptx_emit does. */
void kl_model_make(kl_model *m, const kl_model_in *in);

/* Rules K21xx, K22xx, K25xx to K27xx: one note a source place with cause, help and gain.  in is what
 * made m; o may be NULL. */
typedef struct kl_note_opts {
    const struct kl_times *times; /* of the parts of the GPU (model/time.h); NULL: not known */
    bool all;                     /* every instance of a finding, not the first and a count */
} kl_note_opts;
void kl_model_notes(const kl_model *m, const kl_model_in *in, const kl_note_opts *o, kl_diags *d);

#endif
