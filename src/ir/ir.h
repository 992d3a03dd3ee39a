/* ir.h - the tile IR: typed SSA over tiles with structured control flow.
 *
 * A function is one program of a launch.  Instructions lie in one array; a value
 * is the index of the instruction that defines it.  for, while, if and reduce_fn
 * own blocks; a block's parameters are `param` instructions at its head; results
 * of a control operation are `result` instructions right behind it.  A value is
 * visible in its block behind its definition, and in blocks nested there.
 * reduce_fn and scan of several tiles have results in the same way.
 * docs/ir.md is the reference, ops.def the list of operations. */
#ifndef KL_IR_H
#define KL_IR_H

#include "base/diag.h"
#include "base/elem.h"

/* Handles.  Zero is none.  Distinct struct types: mixing them does not compile. */
typedef struct { uint32_t id; } kl_val; /* the instruction that defines it */
typedef struct { uint32_t id; } kl_blk;
typedef struct { uint32_t id; } kl_typ; /* interned in the function */

enum { KL_MAX_RANK = 4, KL_MAX_DIMS = 8 }; /* of tiles; of arrays */
enum { KL_MAX_FOLD = 16 };                 /* tiles that one reduce_fn or scan folds */

enum kl_type_kind { KL_T_NONE, KL_T_TILE, KL_T_ARRAY };

struct kl_type {
    uint8_t kind, elem, rank, pad;
    uint32_t dim[KL_MAX_RANK]; /* tiles; unused ones are 0 */
    /* arrays have element type and rank (up to KL_MAX_DIMS); extents are values */
};

enum kl_op {
    KL_OP_none,
#define EW(name, n, cls, flags, iexpr, fexpr, doc) KL_OP_##name,
#define OP(name, sig, res, attr, flags, doc) KL_OP_##name,
#include "ir/ops.def"
    KL_NOP
};

enum { /* operation flags */
    KL_F_PURE = 1, KL_F_COMM = 2, KL_F_ASSOC = 4, KL_F_IDEM = 8, KL_F_READ = 16,
    KL_F_WRITE = 32, KL_F_PIN = 64, KL_F_TERM = 128, KL_F_REGION = 256, KL_F_FAST = 512,
    KL_F_EW = 1024
};
enum kl_cls { KL_C_NONE, KL_C_NUM, KL_C_INT, KL_C_FLT, KL_C_BIT, KL_C_CMP, KL_C_SEL, KL_C_CVT };
enum kl_attrk {
    KL_A_NOATTR, KL_A_BITS, KL_A_INDEX, KL_A_ACCESS, KL_A_AUX, KL_A_RED, KL_A_REDFN, KL_A_LOOP,
    KL_A_BLOCKS, KL_A_RESULT
};
enum kl_resk { KL_R_NONE, KL_R_GIVEN, KL_R_SAME };

struct kl_opinfo {
    const char *name, *sig, *doc, *iexpr, *fexpr;
    uint16_t flags;
    uint8_t cls, attr, res, nargs; /* nargs of EW rows */
};
extern const struct kl_opinfo kl_ops[KL_NOP];

/* What reduce folds with: rows of ops.def that are associative.  any is or, all is and. */
/* red.op is one of KL_OP_add, mul, min, max, fmin, fmax, and, or, xor. */

/* access.flags: which optional operands follow; what a cache is told of a load or store. */
enum { KL_ACC_FILL = 1, KL_ACC_MASK = 2, KL_ACC_EVICT_FIRST = 4, KL_ACC_EVICT_LAST = 8,
       KL_ACC_EVICT = KL_ACC_EVICT_FIRST | KL_ACC_EVICT_LAST };

/* A subscript may be a tile of i64; its step is 0, as that of a scalar.  Beside sections stands one
 * such tile, of rank 1, and its axis takes the place of a section's.  Without sections all of them,
 * and the tile of the access, have one shape. */

/* access.how of atomics. */
enum kl_rmw { KL_RMW_add, KL_RMW_min, KL_RMW_max, KL_RMW_and, KL_RMW_or, KL_RMW_xor, KL_RMW_xchg,
              KL_RMW_cas, KL_NRMW };
enum kl_order { KL_RELAXED, KL_ACQUIRE, KL_RELEASE, KL_ACQ_REL, KL_NORDER };
enum kl_reach { KL_SC_PROGRAM, KL_SC_DEVICE, KL_SC_SYSTEM, KL_NSCOPE };
extern const char *const kl_rmw_names[KL_NRMW], *const kl_order_names[KL_NORDER],
    *const kl_reach_names[KL_NSCOPE];
#define KL_HOW(rmw, order, scope) ((uint8_t)((rmw) | (order) << 4 | (scope) << 6))
#define KL_HOW_RMW(how) ((how) & 15u)
#define KL_HOW_ORDER(how) ((how) >> 4 & 3u)
#define KL_HOW_SCOPE(how) ((how) >> 6 & 3u)

union kl_attr {
    uint64_t bits;                                     /* const, canonical; FAST rows: 1 = fast */
    int64_t index;                                     /* param, program_id, cat, flip, arg* */
    struct { uint32_t at; uint16_t n; uint8_t flags, how; } access; /* fn->aux[at..at+n): steps */
    struct { uint32_t at; uint16_t n; uint16_t pad; } aux;
    struct { uint16_t op; uint8_t axis, pad; } red;
    struct { kl_blk blk; uint8_t axis, commutative; } redfn;
    struct { kl_blk blk; uint32_t unroll : 20, pipeline : 12; } loop; /* unroll: 0 default, 1 all, n */
    kl_blk blk[2];                                     /* while, if */
    struct { uint32_t index; kl_val of; } result;
};

struct kl_ins {
    uint16_t op, nargs;
    kl_typ type;          /* 0: no result */
    uint32_t args;        /* first operand in fn->args */
    kl_span loc;          /* source range; {0, 0}: none */
    uint32_t prev, next;  /* within blk; 0 ends */
    kl_blk blk;           /* 0: deleted or not yet placed */
    uint32_t mark;        /* scratch for the running pass */
    union kl_attr attr;
};
_Static_assert(sizeof(struct kl_ins) == 48, "keep an instruction at 48 bytes");

struct kl_block {
    uint32_t first, last; /* instructions; 0: empty */
    kl_val owner;         /* the operation that owns it; 0: the body */
    uint32_t nparam;
};

enum kl_param_use { KL_P_SCALAR, KL_P_ARRAY };

/* Parameters are what a launch passes: the base of each array, and scalars.  Extents
 * and strides are not passed: the body computes them from scalars into views. */
struct kl_param {
    const char *name;
    uint8_t use, elem, rank;
    uint16_t decl; /* position in the kernel's parameter list */
    bool written, isconst; /* arrays: some store may reach it; declared const */
};

typedef struct kl_fn {
    const char *name;
    kl_arena *a;
    const kl_srcmap *src;       /* for messages; may be NULL */
    struct kl_param *param;     uint32_t nparam, cparam;
    struct kl_ins *ins;         uint32_t nins, cins;   /* [0] unused; ids are stable */
    kl_val *args;               uint32_t nargs, cargs; /* operand pool; [0] unused */
    struct kl_block *blk;       uint32_t nblk, cblk;   /* [0] unused; [1] is the body */
    int64_t *aux;               uint32_t naux, caux;
    struct kl_type *type;       uint32_t ntype, ctype; /* [0] unused */
    kl_map typemap;
    bool may_alias;             /* const arrays may overlap written ones (in place) */
    bool fast;                  /* math(fast): FAST rows were marked */
    int32_t warps, stages, cluster; /* GPU defaults; 0: none given */
} kl_fn;

static const kl_blk KL_BODY = {1};

/* ---- construction (ir.c, build.c) ---- */

kl_fn *kl_fn_new(kl_arena *a, const char *name);
kl_typ kl_tile(kl_fn *f, enum kl_elem e, uint32_t rank, const uint32_t *dim);
kl_typ kl_scalar(kl_fn *f, enum kl_elem e);
kl_typ kl_array(kl_fn *f, enum kl_elem e, uint32_t rank);
uint32_t kl_param_add(kl_fn *f, struct kl_param p); /* its index */
kl_blk kl_blk_new(kl_fn *f);

static inline struct kl_ins *kl_in(const kl_fn *f, kl_val v) { return &f->ins[v.id]; }
static inline const struct kl_type *kl_type_of(const kl_fn *f, kl_val v)
{
    return &f->type[f->ins[v.id].type.id];
}
static inline kl_val kl_arg(const kl_fn *f, kl_val v, uint32_t i)
{
    return f->args[f->ins[v.id].args + i];
}
uint64_t kl_numel(const struct kl_type *t); /* elements of a tile */
static inline bool kl_same_shape(const struct kl_type *a, const struct kl_type *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, sizeof a->dim) == 0;
}

/* A builder appends to a block, or inserts before an instruction of it. */
typedef struct kl_build {
    kl_fn *f;
    kl_blk blk;
    kl_val before; /* 0: at the end */
    kl_span loc;   /* given to what is built */
    bool fast;     /* FAST rows are built as fast */
} kl_build;

/* Any operation; operands are copied.  type is ignored where the row gives it. */
kl_val kl_emit(kl_build *b, enum kl_op op, kl_typ type, const kl_val *args, uint32_t n,
               union kl_attr attr);
kl_val kl_ew1(kl_build *b, enum kl_op op, kl_val x);            /* NUM INT FLT BIT rows */
kl_val kl_ew2(kl_build *b, enum kl_op op, kl_val x, kl_val y);  /* and CMP */
kl_val kl_ew3(kl_build *b, enum kl_op op, kl_val x, kl_val y, kl_val z); /* fma, select */
kl_val kl_to(kl_build *b, enum kl_elem e, kl_val x);            /* convert; x itself if same */
kl_val kl_cst(kl_build *b, kl_typ type, uint64_t bits);         /* const */
kl_val kl_cst_i64(kl_build *b, int64_t v);
kl_val kl_bcast(kl_build *b, kl_val x, uint32_t rank, const uint32_t *dim); /* x itself if same */
kl_val kl_block_param(kl_build *b, kl_typ type);                /* next parameter of b->blk */
/* Result `index` of the for, while or if `of`.  A control operation has all its results, in
 * order, right behind it. */
kl_val kl_result(kl_build *b, kl_val of, uint32_t index, kl_typ type);
uint32_t kl_aux_add(kl_fn *f, const int64_t *v, uint32_t n);

/* ---- surgery ---- */

void kl_remove(kl_fn *f, kl_val v);               /* unlink; no use may remain */
void kl_move_before(kl_fn *f, kl_val v, kl_val before);
void kl_move_end(kl_fn *f, kl_val v, kl_blk b);   /* append */
/* Replace uses in the whole function: repl[id] is the new value or 0. */
void kl_replace_all(kl_fn *f, const kl_val *repl);
void kl_set_args(kl_fn *f, kl_val v, const kl_val *args, uint32_t n);
/* Blocks an operation owns; returns how many (0..2). */
uint32_t kl_blocks(const kl_fn *f, kl_val v, kl_blk out[2]);
/* Copy the instructions of a block to b, operands mapped through map, which has an entry for
 * each instruction that exists before the call (0: the value itself; of the block's
 * parameters set by the caller) and takes the copies.  The yield is not copied; its mapped
 * operands go to out. */
void kl_clone_block(kl_build *b, kl_blk from, kl_val *map, kl_val *out);

/* Move the instructions of a block, except its parameters and its yield, before `before`. */
void kl_splice_before(kl_fn *f, kl_blk from, kl_val before);
/* The last instruction of a block; 0 if it is empty.  Of a block with an owner: its yield. */
static inline kl_val kl_last(const kl_fn *f, kl_blk b)
{
    kl_val v = {f->blk[b.id].last};
    return v;
}
/* How often each value is an operand: nins entries in a. */
uint32_t *kl_use_counts(const kl_fn *f, kl_arena *a);
/* How many results a for, while, if or fold of several tiles has. */
uint32_t kl_nresults(const kl_fn *f, kl_val v);
/* A reduce_fn or scan; those of several tiles have results, others are values themselves. */
static inline bool kl_is_fold(const kl_fn *f, kl_val v)
{
    return kl_ops[kl_in(f, v)->op].attr == KL_A_REDFN;
}

#define kl_each_ins(f, b, v)                                                                       \
    for (kl_val v = {(f)->blk[(b).id].first}; v.id; v.id = (f)->ins[v.id].next)

/* ---- facts (effects.c, range.c) ---- */

/* The parameter that an array value is a view of. */
uint32_t kl_root(const kl_fn *f, kl_val array);
/* Global arrays that an instruction (with what it owns) may read and write: bit
 * min(root, 63).  Aliasing under may_alias is the caller's: see kl_conflict. */
struct kl_effect { uint64_t read, write; };
struct kl_effect kl_effect(const kl_fn *f, kl_val v);
/* May the two be reordered?  true: they touch the same memory and one writes. */
bool kl_conflict(const kl_fn *f, struct kl_effect a, struct kl_effect b);

/* ---- accesses (access.c) ---- */

/* What an instruction with an access takes: operands behind the subscripts, before fill and mask. */
uint32_t kl_access_values(const struct kl_ins *in);
/* The type of the tile that an access moves. */
const struct kl_type *kl_access_tile(const kl_fn *f, kl_val v);
static inline int64_t kl_access_step(const kl_fn *f, kl_val v, uint32_t d)
{
    return f->aux[f->ins[v.id].attr.access.at + d];
}
/* Is the subscript of a dimension an index tile? */
static inline bool kl_access_index(const kl_fn *f, kl_val v, uint32_t d)
{
    return kl_type_of(f, kl_arg(f, v, 1 + d))->rank > 0;
}
/* How many of them are. */
uint32_t kl_access_indices(const kl_fn *f, kl_val v);
/* Do they stand without sections, each of the tile's own shape? */
bool kl_access_scattered(const kl_fn *f, kl_val v);
static inline bool kl_is_atomic(uint16_t op)
{
    return op == KL_OP_atomic || op == KL_OP_atomic_load || op == KL_OP_atomic_store;
}

/* ---- text (print.c, read.c), checking (verify.c), folding (fold.c) ---- */

void kl_ir_print(kl_buf *b, const kl_fn *f);
/* One function from text; raises KILN_E_COMPILE through a->env after adding K0901 to d. */
kl_fn *kl_ir_read(kl_arena *a, const kl_srcmap *src, uint32_t file, kl_diags *d);
/* NULL if sound, else what is wrong and where, in a. */
const char *kl_ir_verify(const kl_fn *f, kl_arena *a);
/* Value of an EW row on constants (bits canonical for elem of the operands, `to` for
 * CVT rows and the result).  false: no meaning there. */
bool kl_fold(enum kl_op op, enum kl_elem to, enum kl_elem elem, const uint64_t v[3],
             uint64_t *out);
/* docs/ops.md. */
void kl_ops_markdown(kl_buf *b);

#endif
