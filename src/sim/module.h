/* module.h - a parsed PTX module: what the parser makes and the executor runs.
 *
 * Registers lie lane by lane: register r of a warp is an array of 32 values at
 * bank[BANK_REG] + off.  Constants are arrays of 32 equal values in the module's
 * own bank, so that an operand is always bank + offset.  Predicates are masks. */
#ifndef KL_SIM_MODULE_H
#define KL_SIM_MODULE_H

#include "sim/sim.h"

#define SIM_NONE UINT32_MAX
enum { LANES = 32, MAX_OPND = 24, SIM_CLUSTER = 16 /* most CTAs of a cluster */ };

enum sim_type {
    PT_NONE, PT_PRED, PT_B8, PT_B16, PT_B32, PT_B64, PT_U8, PT_U16, PT_U32, PT_U64, PT_S8, PT_S16,
    PT_S32, PT_S64, PT_F16, PT_BF16, PT_F16X2, PT_BF16X2, PT_F32, PT_F64, PT_TF32, PT_E4M3X2,
    PT_E5M2X2, PT_NTYPE
};
enum sim_class { TC_NONE, TC_PRED, TC_BITS, TC_UINT, TC_SINT, TC_FLT };
struct sim_typeinfo {
    const char *name;
    uint8_t size, cls; /* bytes; 0 for a predicate */
};
extern const struct sim_typeinfo kl_sim_types[PT_NTYPE];

enum { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_EQU, CMP_NEU, CMP_LTU, CMP_LEU,
       CMP_GTU, CMP_GEU, CMP_NUM, CMP_NAN };
enum { BOOL_NONE, BOOL_AND, BOOL_OR, BOOL_XOR };
enum { RND_N, RND_Z, RND_M, RND_P, RND_NA };
enum { ORD_WEAK, ORD_STRONG, ORD_ACQUIRE, ORD_RELEASE, ORD_ACQ_REL };
enum { PRMT_NONE, PRMT_F4E, PRMT_B4E, PRMT_RC8, PRMT_ECL, PRMT_ECR, PRMT_RC16 };
enum { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
enum { BANK_REG, BANK_CONST, BANK_TMP, NBANK };
enum sim_space { SP_GENERIC, SP_GLOBAL, SP_SHARED, SP_PARAM, SP_LOCAL, SP_CONST };

/* Generic addresses: windows far above any pointer of a host. */
#define SIM_SHARED_WINDOW (UINT64_C(1) << 56)
#define SIM_LOCAL_WINDOW (UINT64_C(1) << 57)
#define SIM_WINDOW_MASK (UINT64_C(3) << 56)
/* shared::cluster addresses: own memory as it is, that of CTA number r from (r + 1) << 24 on. */
enum { SIM_CTA_SHIFT = 24 };

struct sim_warp;
struct sim_ins;
typedef void sim_exec(struct sim_warp *w, const struct sim_ins *i, uint32_t mask);

struct sim_opnd {
    uint32_t off;  /* bytes in its bank; a predicate: its number */
    uint32_t reg;  /* number for the check of written registers; SIM_NONE: a constant */
    uint8_t bank, size; /* size: bytes a lane, 0 for a predicate */
    uint8_t neg;   /* predicate with ! */
    uint8_t given; /* 0: an optional operand that is not there */
};

struct sim_ins {
    sim_exec *fn, *inner; /* inner: what fn wraps */
    const struct sim_opnd *op; /* destinations, then sources */
    uint8_t nd, ns, kind, vec;
    uint8_t type, type2; /* type words in order */
    uint8_t cmp, boolop, round, iround, mode;
    bool has_round, has_iround, ftz, sat, nan, relu, satfinite, strong, is_branch;
    uint8_t order; /* ORD_*: what it says of memory */
    bool in_cta;   /* .cta: the order is that of one CTA */
    bool cluster; /* the space is shared::cluster */
    bool predneg, lazy; /* lazy: the function checks itself whether its sources are written */
    uint32_t pred, pred_reg; /* number of the guard, or SIM_NONE */
    uint8_t space; /* enum sim_space */
    uint32_t first_op; /* while parsing: index of op */
    int64_t imm, imm2; /* address offsets */
    int64_t lut;       /* integer operand */
    uint32_t target, rpc; /* of a branch; rpc: where its lanes meet again */
    uint32_t loc; /* 0: none */
    uint32_t row; /* of ptx.def */
    kl_span span;
};

struct sim_loc {
    uint32_t file, line, col;
};

/* A special register is filled once a warp, before the first instruction. */
struct sim_special {
    uint32_t off, reg;
    uint8_t what, size; /* enum in special.def */
};

enum sim_specials {
    SR_NONE,
#define SREG(text, name, size) SR_##name,
#include "sim/sreg.def"
    SR_N
};

struct sim_fn {
    kl_sim_entry pub;
    struct sim_ins *ins;
    uint32_t nins;
    uint32_t reg_bytes, nreg, npred;
    struct sim_special *special;
    uint32_t nspecial;
    uint32_t dynamic_at; /* where dynamic shared memory begins */
    uint32_t req[3];     /* .reqntid */
    uint32_t local_bytes, local_pitch; /* local memory of a thread; from lane to lane */
};

struct sim_var { /* .const and initialised .global variables */
    char *data;
    uint32_t size;
};

struct kl_sim {
    kl_srcmap *src;
    const struct sim_fn *fn;
    uint32_t nfn;
    const char *cst; /* the bank of constants */
    const char **file; /* names of .file by number */
    uint32_t nfile;
    const struct sim_loc *loc;
    uint32_t nloc;
    const struct sim_var *var;
    uint32_t nvar;
};

/* rows of ptx.def */
struct sim_row {
    const char *id;  /* the words of the form, joined by '_' */
    const char *opt; /* classes of further words */
    const char *sig; /* operands; see decode.c */
    sim_exec *fn;
    uint8_t kind;
    bool plain; /* an expression lane by lane */
};
extern const struct sim_row kl_sim_rows[];
extern const uint32_t kl_sim_nrows;

/* cfg.c: where the lanes of each divergent branch meet again */
void kl_sim_reconverge(kl_arena *a, struct sim_fn *f);

#endif
