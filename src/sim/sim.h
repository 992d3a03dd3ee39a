/* sim.h - runs PTX on the CPU, warp by warp, with checks and exact counts.
 *
 * The tests of the GPU back end run here where there is no GPU, and `explain`
 * takes its counts from here.  A module is parsed once and read-only then, so
 * several threads may run it.  Host pointers serve as device addresses: the
 * host registers the memory that a kernel may touch, and no access ever leaves
 * it, whatever the text says.
 *
 * Values are those of a device except for what a device approximates
 * (ex2.approx, lg2.approx, sin, cos, tanh, rsqrt, rcp.approx, div.approx ...):
 * here they are the nearest value.  CTAs, or clusters of them, run one after another; the warps of
 * one are interleaved at barriers only, lanes reconverge at immediate post-dominators. */
#ifndef KL_SIM_H
#define KL_SIM_H

#include "base/diag.h"

typedef struct kl_sim kl_sim;

/* Parses PTX text (file `file` of src, which must outlive the module) into a module owned by
 * a.  NULL after errors, which are in d.  Raises through a->env when memory runs out. */
kl_sim *kl_sim_parse(kl_arena *a, kl_srcmap *src, uint32_t file, kl_diags *d);

/* ---- what a module holds ---- */

typedef struct kl_sim_param {
    const char *name;
    uint32_t offset, size, align; /* in the parameter bytes of a launch */
} kl_sim_param;

typedef struct kl_sim_entry {
    const char *name;
    const kl_sim_param *param;
    uint32_t nparam, param_bytes;
    uint32_t shared_bytes; /* static shared memory */
    uint32_t max_threads;  /* of .reqntid or .maxntid; 0 if neither is given */
    uint32_t cluster[3];   /* of .reqnctapercluster; 1, 1, 1 if it is not given */
    uint32_t registers;    /* virtual registers that the text uses */
} kl_sim_entry;

const kl_sim_entry *kl_sim_find(const kl_sim *m, const char *name); /* NULL if absent */
const kl_sim_entry *kl_sim_at(const kl_sim *m, uint32_t i);         /* NULL past the last */

/* ---- running ---- */

typedef struct kl_sim_buffer {
    void *base;
    size_t size;
    bool writable;
} kl_sim_buffer;

/* An array that a host's caller knows of, for the checks of global memory and what they say. */
typedef struct kl_sim_array {
    const char *name;
    const void *base, *lo, *hi; /* base: of element [0,...,0]; lo, hi: as a buffer */
    uint8_t elem;               /* enum kl_elem */
    int32_t rank;
    int64_t ext[8], str[8];
    bool written, hidden;       /* hidden: not looked at */
    uint8_t *shadow;            /* from lo to hi: 1 = the byte has a value; NULL: all have */
} kl_sim_array;

typedef struct kl_sim_launch {
    const char *entry;
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared; /* bytes */
    const void *param;
    uint32_t param_bytes;
    const kl_sim_buffer *buffer; /* any order; they may overlap: writable where one of them is */
    uint32_t nbuffer;
    const char *const *buffer_name; /* of each buffer, for messages; NULL: numbers */
    int64_t programs[3]; /* how messages name CTAs, or clusters; 0, 0, 0: by one number */
    const kl_sim_array *array; /* for KL_SIM_GLOBAL */
    uint32_t narray;
} kl_sim_launch;

enum {
    KL_SIM_UNINIT = 1, /* reads of registers and shared memory that nothing wrote */
    KL_SIM_RACES = 2,  /* shared memory between two barriers */
    KL_SIM_CHECKS = 3,
    KL_SIM_GLOBAL = 4,    /* what is found is told of arrays, and at the source that .loc names; */
    KL_SIM_PROGRAMS = 8,  /* races between CTAs (those of a cluster are one), sums of floats */
    KL_SIM_VALUES = 16,   /* elements that nothing wrote */
    KL_SIM_ENDLESS = 32   /* loops that do not end; each of these with KL_SIM_GLOBAL */
    /* Bounds, alignment, barriers and shuffles are always checked. */
};

typedef struct kl_sim_options {
    unsigned checks;   /* KL_SIM_* */
    bool reverse;      /* run the warps of a CTA from the last to the first */
    uint64_t budget;   /* warp instructions before the run is given up; 0: 2^40 */
    bool (*tick)(void *user); /* called now and then; false stops the run; NULL is fine */
    void *tick_user;
    const kl_srcmap *source; /* KL_SIM_GLOBAL: the files that .loc names; NULL: PTX only */
} kl_sim_options;

/* ---- counts ---- */

#define KL_SIM_KINDS(X)                                                                            \
    X(LDG, "global load")                                                                          \
    X(STG, "global store")                                                                         \
    X(LDS, "shared load")                                                                          \
    X(STS, "shared store")                                                                         \
    X(FP32, "fp32")                                                                                \
    X(FP64, "fp64")                                                                                \
    X(FP16, "fp16")                                                                                \
    X(INT, "integer")                                                                              \
    X(SFU, "special function")                                                                     \
    X(CVT, "conversion")                                                                           \
    X(CTRL, "control")                                                                             \
    X(BAR, "barrier")                                                                              \
    X(SHFL, "shuffle")                                                                             \
    X(ATOM, "atomic")                                                                              \
    X(ASYNC, "async copy")                                                                         \
    X(OTHER, "other")

enum kl_sim_kind {
#define X(name, text) KL_SIM_##name,
    KL_SIM_KINDS(X)
#undef X
        KL_SIM_NKIND
};
extern const char *const kl_sim_kind_text[KL_SIM_NKIND];

/* Requests are warp instructions with at least one active lane.  parts are 32-byte sectors of
 * global memory or wavefronts of shared memory (layout.h); ideal is what the bytes need at
 * least.  Atomics of global memory are counted by themselves, those of shared memory not. */
typedef struct kl_sim_traffic {
    uint64_t requests, bytes, parts, ideal;
} kl_sim_traffic;

typedef struct kl_sim_line {
    const char *file; /* NULL: before the first .loc */
    uint32_t line;
    uint64_t instructions, lanes, divergent;
    kl_sim_traffic gload, gstore, sload, sstore, push, atomic;
} kl_sim_line;

typedef struct kl_sim_counts {
    uint64_t instructions[KL_SIM_NKIND]; /* of warps */
    uint64_t lanes[KL_SIM_NKIND];        /* the same times active lanes */
    kl_sim_traffic gload, gstore, sload, sstore, atomic;
    kl_sim_traffic push; /* st.async: into shared memory of other CTAs, whose banks count each alone */
    uint64_t branches, divergent; /* conditional branches of warps; those that split one */
    uint64_t barriers;            /* completed, of CTAs */
    uint64_t cluster_barriers;    /* completed, of clusters */
    uint64_t ctas, warps;
    const kl_sim_line *line; /* by file and line; in the arena given to kl_sim_run */
    uint32_t nline;
} kl_sim_counts;

/* Runs one launch.  out may be NULL; its lines are allocated from out_arena (NULL: no lines).
 * Findings go to d, one for an instruction and a cause, with a count and the first instance.
 * KILN_E_BOUNDS if there were any, KILN_E_ARG for a launch that does not fit the entry (said
 * in d), KILN_E_UNSUPPORTED if tick said stop, KILN_E_NOMEM.  Does not raise. */
kiln_status kl_sim_run(const kl_sim *m, const kl_sim_launch *l, const kl_sim_options *opt,
                       kl_sim_counts *out, kl_arena *out_arena, kl_diags *d, kl_env *env);

#endif
