/* explain.h - what `kiln explain` says of one launch, as data: for the command, and for what stands
 * on it.  Internal as tool.h is.
 *
 * Nothing here needs a GPU.  Registers come from ptxas or a driver, where one is asked, and are
 * unknown otherwise: no number is guessed. */
#ifndef KL_EXPLAIN_H
#define KL_EXPLAIN_H

#include "model/gpu.h"
#include "model/model.h"
#include "model/time.h"
#include "sim/sim.h"
#include "tool.h"

/* What num_sms() gives where no GPU is known. */
enum { KL_EXPLAIN_SMS = 100 };

enum kl_regs_from { KL_REGS_NONE, KL_REGS_PTXAS, KL_REGS_DRIVER };

typedef struct kl_regs {
    enum kl_regs_from from; /* NONE: nothing below is known */
    const char *why;        /* NONE: what was tried and failed; NULL: nothing was tried */
    uint32_t registers, spill_stores, spill_loads, stack, barriers;
    uint32_t blocks;        /* an SM, as the driver says; 0: it was not asked */
} kl_regs;

typedef struct kl_explain_opts {
    const char *arch;     /* "sm_90"; NULL: that of the chip, or sm_90 */
    const kl_chip *chip;  /* NULL: none; outlives the result */
    const char *ptxas;    /* absolute path; NULL: it is not asked */
    bool driver;          /* ask the driver where ptxas is not asked or fails */
    bool no_swizzle;
    bool all;             /* every instance of a finding, not the first and a count */
    uint32_t level;       /* of the passes; 0: the context's */
    const uint64_t *base; /* of each argument: where element [0,...,0] of an array lies, modulo 256 */
} kl_explain_opts;

/* A constant or type of the kernel. */
typedef struct kl_explain_const {
    const char *name, *value;
} kl_explain_const;

typedef struct kl_explain_array {
    const char *name;
    uint8_t elem;
    int32_t rank;
    bool given, reads, writes;
    int64_t shape[KL_MAX_DIMS], strides[KL_MAX_DIMS];
    uint64_t bytes; /* of all elements */
} kl_explain_array;

typedef struct kl_explained {
    const char *kernel;
    kiln_place place;        /* of its name */
    uint32_t arch;           /* 90 */
    const char *ptx_version; /* "7.8" */
    const char *ptx;
    size_t nptx;
    kl_ptxinfo info;
    bool no_swizzle;
    bool v16, i32;           /* facts of the launch */
    uint32_t tuned_line;     /* of the entry of the module's tune file that fits; 0: none */
    int64_t grid[3];
    uint64_t programs, ctas;
    kl_explain_const *constant;
    uint32_t nconstant;
    kl_explain_array *array;
    uint32_t narray;

    kl_regs regs;
    const kl_chip *chip;     /* NULL: none is known */
    bool has_sm;             /* the capability has a row of sm.def: of the chip, else of the target */
    kl_sm sm;
    kl_occ_block block;          /* registers 0: not known */
    bool has_occ;            /* registers are known, or do not matter */
    kl_occ occ, simple;
    kl_waves waves;          /* chip and occupancy are known */

    const kl_model *model;
    const kl_model_in *in;
    double bytes;            /* that must move: each byte once */
    double flop;             /* floating-point operations; special functions count 1 */
    double bandwidth, peak;  /* GB/s, TFLOP/s of the chip that bound this kernel; 0: not known */
    const char *peak_of;     /* "fp32", "tensor f16" */
    bool has_roof;
    kl_roof roof;
    bool has_times;
    kl_times times;          /* how long each part of the chip is busy */
    bool memory_bound;       /* memory or L2 cache take longest; where that is not known, the roofline's
                              * word */
    kl_tail tail;            /* what the last wave costs */
    uint64_t under_way;      /* bytes that the loads of a block ask for at once, at most */

    const kl_sim_counts *counts; /* of kl_explain_measure; NULL: not measured */

    kl_alloc al;
    kl_env env;
    kl_arena a; /* all of the above */
} kl_explained;

/* Bind, lower, emit, model; rules K21xx to K27xx become notes in *diags, beside what a launch would
 * warn of.  Arrays need shapes and types; integer ones may have data, which masks and indices depend
 * on.  KILN_E_ARG: the launch is not complete, or wrong. */
kiln_status kl_explain(kiln_kernel *k, const kiln_arg *args, size_t n, const kl_explain_opts *o,
                       kl_explained **out, kiln_diags **diags);
void kl_explain_free(kl_explained *e); /* NULL is fine */
/* Run the launch in the PTX executor and keep its counts.  k: the same kernel in a context of
 * KILN_DEVICE_SIM; args with data, which the kernel changes. */
kiln_status kl_explain_measure(kl_explained *e, kiln_kernel *k, const kiln_arg *args, size_t n,
                               kiln_diags **diags);

/* ---- pictures of tiles (explain_tile.c) ---- */

enum { KL_TILE_SIDE = 16, KL_TILE_WAYS = 3 };
#define KL_TILE_NOBODY 0xffffffffu

/* The corner of a tile that a picture shows: elements [..., row, column] with all other coordinates
 * 0.  A tile of one axis is wrapped: row r begins with element r * cols. */
typedef struct kl_tile_corner {
    uint32_t rank, dim[4], rows, cols;
    bool wrapped;
} kl_tile_corner;

/* Who holds the elements of a tile that an access to an array moves. */
typedef struct kl_tile_holders {
    kl_tile_corner corner;
    kiln_place place;
    const char *kind, *array; /* "load", "store", "atomic" */
    const char *layout;       /* as docs/layouts.md prints it */
    uint32_t vec;             /* elements of one lane's access */
    bool copies;              /* other places hold the same element, too */
    uint32_t reg[KL_TILE_SIDE][KL_TILE_SIDE]; /* KL_TILE_NOBODY: no place holds it */
    uint8_t lane[KL_TILE_SIDE][KL_TILE_SIDE], warp[KL_TILE_SIDE][KL_TILE_SIDE],
        cta[KL_TILE_SIDE][KL_TILE_SIDE];
} kl_tile_holders;

/* The first access of warp 0 to shared memory.  Lanes go together in groups: 32 of 4 bytes, 16 of 8,
 * 8 of 16; each group takes as many wavefronts as the busiest bank has words that it wants. */
enum { KL_TILE_GROUPS = 4, KL_TILE_BANKS = 32 };
typedef struct kl_tile_request {
    uint32_t bytes, groups, waves, ideal; /* bytes: of a lane */
    uint8_t words[KL_TILE_GROUPS][KL_TILE_BANKS];
} kl_tile_request;

/* A change of layout through shared memory, in one of the ways to place elements. */
typedef struct kl_tile_banks {
    bool possible, chosen;
    const char *name;      /* "row-major", "padded", "swizzled" */
    uint32_t bytes;        /* of shared memory, one round */
    uint64_t store, load;  /* wavefronts of one execution, all warps */
    uint32_t word[KL_TILE_SIDE][KL_TILE_SIDE]; /* 4-byte word that the element begins in */
    uint8_t first[KL_TILE_SIDE][KL_TILE_SIDE]; /* 1: by the first store of warp 0; 2: first load */
    kl_tile_request st, ld;
} kl_tile_banks;

typedef struct kl_tile_exchange {
    kl_tile_corner corner;
    kiln_place place;
    uint32_t bytes; /* of an element */
    const char *from, *to; /* layouts */
    kl_tile_banks way[KL_TILE_WAYS];
} kl_tile_exchange;

/* Number i of what the kernel does, in the order of the code; NULL past the end, or without memory.
 * Those that look like an earlier one are left out.  The result lives as long as e. */
const kl_tile_holders *kl_explain_holders(kl_explained *e, uint32_t i);
const kl_tile_exchange *kl_explain_exchange(kl_explained *e, uint32_t i);

/* The first NVIDIA GPU, with the rates that gpu.def has for its name.  false: text says why not.  The
 * strings of *out lie in text. */
enum { KL_EXPLAIN_TEXT = 2048 };
bool kl_explain_device(kl_chip *out, char text[KL_EXPLAIN_TEXT]);

const char *kl_explain_bytes(double n, char buf[32]); /* "4.1 KiB" */

#endif
