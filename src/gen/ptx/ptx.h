/* ptx.h - what the files of the PTX back end share.
 *
 * A tile value is a list of virtual registers, one for each register of its layout
 * (src/layout).  A value that is the same everywhere (a scalar, a constant, a tile of one
 * element, a broadcast scalar) is *splat*: one register or an immediate, no layout.  Operands
 * are strings: a register's name or an immediate. */
#ifndef KL_PTX_H
#define KL_PTX_H

#include "gen/ptx/genptx.h"
#include "ir/range.h"
#include "layout/layout.h"

typedef const char *opnd;

/* Register classes, each with a prefix of names. */
enum cls { CL_P, CL_B16, CL_B32, CL_B64, CL_F32, CL_F64, CL_N };

struct pval {
    const kl_layout *l; /* NULL: splat */
    opnd *r;            /* as many as registers of l; 1 if splat */
};

/* A view, as far as it is known here. */
struct pview {
    uint32_t root;        /* parameter of the function */
    opnd off;             /* elements; NULL: 0 */
    uint32_t ndim;
    kl_val ext[KL_MAX_DIMS], str[KL_MAX_DIMS];
    bool direct;          /* of a parameter: the facts of the launch speak of it */
};

enum { REGIONS = 2, MAX_ELEMS = 512 }; /* shared regions; registers of a tile and thread */

/* What is known of a division: one divisor for all; divisors in the middle of the range, or NaN,
 * of which the short form makes a NaN; dividends are 1. */
struct divide {
    bool one, tame, unit;
};

/* What may be outstanding since the last barrier: see sync.c. */
struct pending {
    uint8_t dirty;        /* regions of shared memory that were read */
    uint8_t far;          /* the same since the last time that all CTAs of the cluster met */
    uint64_t read, write; /* global arrays, bit min(root, 63) */
};

/* One access to memory, for "same layout and section". */
struct accessed {
    kl_val at;            /* the load or store; 0: several */
};

struct pgen {
    const kl_fn *f;
    kl_arena *a;
    const kl_ptx_opts *o;
    kl_ptxinfo *out;
    const char *entry;
    kl_buf pro, body;     /* what is computed once; the programs */
    kl_buf *to;
    kl_buf data;          /* tables, before the entry */
    uint32_t ntable;
    uint32_t nreg[CL_N], nlabel;
    uint32_t warps, wlog2, threads;
    uint32_t ctas, clog2;  /* of a cluster; 1 and 0: none */
    uint32_t each;        /* elements of the largest tile in a thread */
    uint32_t shared_max;  /* of a target's CTA */

    const kl_layout **lay; /* by value: chosen by assign.c; NULL: splat */
    struct pval *val;
    struct pview **view;
    uint8_t *align;        /* log2 of what divides a scalar (align.c) */
    uint8_t *ubits;        /* bits of a scalar that is known to be at least 0; 0: not known */
    struct kl_range *range; /* of f32 values */
    uint32_t *uses;
    KL_VEC(const kl_layout *) pool;
    kl_map cache;          /* texts computed in the prologue */
    KL_VEC(opnd) cached;

    struct pending p;
    KL_VEC(kl_val) since;  /* loads and stores of written arrays since the last barrier */
    uint32_t region_bytes[REGIONS], region_next;
    bool in_block;         /* inside reduce_fn: scalars differ between threads */
    bool folded;           /* a tile was folded */
    bool opened, pushes;   /* clusters: all CTAs are known to run; some data cross */
    bool no_cluster;       /* something crosses that cannot: the text is made again without */
    opnd rank, turns;      /* of the CTA in its cluster; parities of the regions' mbarriers */
    uint32_t nested;       /* loops and branches around what is emitted */
    opnd tid, lane, warp, prog, total, grid[3], sms;
    opnd turn;             /* programs that the CTA has run; NULL: it runs one */
    opnd pid[2], over[2]; /* program ids, and what is left of the index behind them */
    opnd *base;            /* of array parameters */
    opnd smem;
    struct tracer *tracer; /* trace.c; NULL: nobody asks */
    kl_val at;             /* the instruction that is emitted */
    kl_span loc;
    uint32_t line, col, file, loc_beg; /* of the last .loc; the span it was found for */
    bool approximate;                 /* a fast form was put out */
    KL_VEC(const char *) files;       /* .file, from 1 on */
};

uint32_t kl_px_file(const struct pgen *g, uint32_t i); /* the number of files.v[i] in the text */
_Noreturn void kl_px_unsupported(struct pgen *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- text (text.c) ---- */

void kl_px(struct pgen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void kl_px_label(struct pgen *g, uint32_t label);
static inline uint32_t kl_px_new_label(struct pgen *g) { return g->nlabel++; }
opnd kl_px_reg(struct pgen *g, enum cls c);
opnd kl_px_fmt(struct pgen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
enum cls kl_px_cls(enum kl_elem e);
const char *kl_px_b(enum cls c);        /* b16 b32 b64 f32 f64 pred */
opnd kl_px_imm(struct pgen *g, enum kl_elem e, uint64_t bits);
opnd kl_px_int(struct pgen *g, int64_t v);
opnd kl_px_list(struct pgen *g, const opnd *v, uint32_t n);
/* v in a register: an immediate is moved to one. */
opnd kl_px_inreg(struct pgen *g, enum cls c, opnd v);
bool kl_px_isreg(opnd v);
opnd kl_px_as32(struct pgen *g, enum cls c, opnd v); /* the same bits in b32 (not of 64) */
opnd kl_px_from32(struct pgen *g, enum cls c, opnd v);
/* A new register set by fmt, whose first %s is its name. */
opnd kl_px_set(struct pgen *g, enum cls c, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, in the prologue, once for each text. */
opnd kl_px_once(struct pgen *g, enum cls c, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- layouts (assign.c) ---- */

void kl_px_assign(struct pgen *g);
/* Exact functions of tiles that may need their full form: 0 none, 1 short ones, 2 erf and longer
 * ones. */
uint32_t kl_px_steps(const struct pgen *g);
bool kl_px_has_math(const kl_fn *f); /* functions of tiles, in any form */
/* Registers of a thread that tiles hold at once, roughly (pressure.c). */
uint32_t kl_px_pressure(struct pgen *g);
const kl_layout *kl_px_intern(struct pgen *g, const kl_layout *l);
const kl_layout *kl_px_default(struct pgen *g, const struct kl_type *t);
uint32_t kl_px_access_vec(struct pgen *g, kl_val v);
/* Coordinate bit of a place bit; -1: none (replicas). */
static inline int kl_px_bit(const kl_layout *l, uint32_t place)
{
    uint32_t v = l->map.v[place];
    return v ? __builtin_ctz(v) : -1;
}
/* Coordinate word of a register, with lane and warp 0. */
static inline uint32_t kl_px_coord(const kl_layout *l, uint32_t reg)
{
    return kl_lin_at(&l->map, reg);
}
/* The part of coordinate bits [lo, lo + n) that comes from lane and warp, as a b32 register that
 * is computed once; NULL if it is 0. */
opnd kl_px_thread(struct pgen *g, const kl_layout *l, uint32_t lo, uint32_t n);
opnd kl_px_thread_axis(struct pgen *g, const kl_layout *l, uint32_t axis);
/* Predicate: this thread is the first of those that hold the same elements; NULL: all are. */
opnd kl_px_first(struct pgen *g, const kl_layout *l);
/* Place bits of lanes, warps and CTAs that hold replicas. */
uint32_t kl_px_replicas(const kl_layout *l);

/* ---- values ---- */

static inline opnd kl_px_at(const struct pval *v, uint32_t i) { return v->l ? v->r[i] : v->r[0]; }
struct pval kl_px_new(struct pgen *g, const kl_layout *l, enum cls c);
/* v under layout l (convert.c); l NULL is not allowed unless v is splat. */
struct pval kl_px_to(struct pgen *g, const struct pval *v, enum cls c, const kl_layout *l);
struct pval kl_px_in(struct pgen *g, kl_val v, const kl_layout *l);
opnd kl_px_scalar(struct pgen *g, kl_val v); /* a splat value */
enum cls kl_px_vcls(const struct pgen *g, kl_val v);

/* ---- operations ---- */

void kl_px_block(struct pgen *g, kl_blk b);
void kl_px_ins(struct pgen *g, kl_val v);
void kl_px_ew(struct pgen *g, kl_val v);
/* One EW operation on one element. */
opnd kl_px_ew1(struct pgen *g, enum kl_op op, bool fast, enum kl_elem e, enum kl_elem to, opnd a,
               opnd b, opnd c, uint64_t bconst, bool isconst);
/* f8.c: 8-bit floats lie in b32, zero-extended. */
opnd kl_px_f32_of_f8(struct pgen *g, enum kl_elem from, opnd x);
opnd kl_px_f8_of_f32(struct pgen *g, enum kl_elem to, bool nan, opnd x);
void kl_px_f8_pair(struct pgen *g, enum kl_elem to, opnd lo, opnd hi, opnd out[2]);
bool kl_px_has_f8(const struct pgen *g);
opnd kl_px_bitcast(struct pgen *g, enum kl_elem to, enum kl_elem from, opnd x);
extern const char *const kl_px_where[KL_NOP];
const char *const *kl_px_texts(enum kl_op op);
void kl_px_convert_n(struct pgen *g, enum kl_elem to, enum kl_elem from, const opnd *in, opnd *out,
                     uint32_t n);
/* y: the second argument, or NULL. */
opnd kl_px_math(struct pgen *g, const char *fn, enum kl_elem e, opnd x, opnd y);
opnd kl_px_fmod(struct pgen *g, enum kl_elem e, opnd x, opnd y);
opnd kl_px_within(struct pgen *g, const opnd *x, uint32_t n, float lo, float hi, bool is_signed);
opnd kl_px_short_rcp(struct pgen *g, opnd y);
opnd kl_px_short_div(struct pgen *g, opnd x, opnd y, opnd *rec);
void kl_px_guarded_div(struct pgen *g, const opnd *x, const opnd *y, struct divide how, opnd *r,
                       uint32_t n);
/* Does a function of a tile have its short form without a test? */
bool kl_px_is_brief(const struct pgen *g, kl_val v);
void kl_px_math_n(struct pgen *g, kl_val v, enum kl_elem e, const opnd *in, opnd *out, uint32_t n);
struct divide kl_px_divide(const struct pgen *g, kl_val v, bool one);
void kl_px_load(struct pgen *g, kl_val v);
void kl_px_store(struct pgen *g, kl_val v);
void kl_px_inside(struct pgen *g, kl_val v);
/* Where each register of an access lies, and when that may be touched (NULL: always).  Layouts of
 * index tiles are changed here, so what orders memory comes behind. */
struct pplace {
    opnd p, addr;
    int64_t off;
};
void kl_px_places(struct pgen *g, kl_val v, const kl_layout *l, struct pplace *out);
/* A scalar that one thread has, for all. */
opnd kl_px_read_once(struct pgen *g, enum kl_elem e, opnd x);
/* gather.c */
struct pindex;
struct pindex *kl_px_indices(struct pgen *g, kl_val v, const kl_layout *l, const struct pview *w,
                             uint32_t bytes);
opnd kl_px_index_in(struct pgen *g, struct pindex *x, uint32_t reg);
opnd kl_px_index_at(struct pgen *g, struct pindex *x, uint32_t reg, opnd at);
void kl_px_gather(struct pgen *g, kl_val v);
void kl_px_atomic(struct pgen *g, kl_val v); /* atomic.c */
void kl_px_view(struct pgen *g, kl_val v);
void kl_px_reduce(struct pgen *g, kl_val v);
const kl_layout *kl_px_reduce_layout(struct pgen *g, kl_val v, const kl_layout *in);
/* The block of a fold on operands lo and hi, one for each tile. */
void kl_px_fold_block(struct pgen *g, kl_val v, const opnd *lo, const opnd *hi, opnd *out);
kl_val kl_px_fold_result(const struct pgen *g, kl_val v, uint32_t k);
const kl_layout *kl_px_fold_layout(const struct pgen *g, kl_val v, bool chosen);
void kl_px_scan(struct pgen *g, kl_val v);
void kl_px_shape(struct pgen *g, kl_val v);
/* v, which the first thread of those that share an element has, for all of them. */
void kl_px_spread(struct pgen *g, struct pval *v, enum cls c, const struct kl_type *t);
/* The layout of shape t that follows l along its axes from `lead` on; register i of l has the
 * element of register kl_extract(i, *kept). */
const kl_layout *kl_px_project(struct pgen *g, const kl_layout *l, const struct kl_type *t,
                               uint32_t lead, uint32_t *kept);
/* Tile v in shared memory, dense; its layout or the default one.  The caller passes the barrier. */
opnd kl_px_put_tile(struct pgen *g, kl_val v, uint32_t *which);
opnd kl_px_get_if(struct pgen *g, enum cls c, opnd addr, int64_t off, opnd p); /* else zero */
opnd kl_px_live(struct pgen *g, const kl_layout *l, uint32_t reg); /* NULL: in every thread */
void kl_px_table(struct pgen *g, kl_val v); /* table.c */
void kl_px_dot(struct pgen *g, kl_val v);
const kl_layout *kl_px_dot_layout(struct pgen *g, const struct kl_type *t);
void kl_px_flow(struct pgen *g, kl_val v);
void kl_px_align(struct pgen *g);

/* ---- shared memory and barriers (sync.c) ---- */

void kl_px_barrier(struct pgen *g);
/* Base address (b32) of region k. */
opnd kl_px_region_base(struct pgen *g, uint32_t k);
/* Base address (b32) of a region of at least `bytes`, free to be written. */
opnd kl_px_region(struct pgen *g, uint32_t bytes, uint32_t *which);
static inline void kl_px_region_read(struct pgen *g, uint32_t which)
{
    g->p.dirty |= (uint8_t)(1u << which);
    g->p.far |= (uint8_t)(1u << which);
}
/* Before an access of a written array (or one that may alias one). */
void kl_px_order(struct pgen *g, kl_val access);
/* Access v reads or writes which arrays. */
struct pending kl_px_enter_loop(struct pgen *g);
void kl_px_end_loop(struct pgen *g, const struct pending *head);

/* ---- between the CTAs of a cluster (cluster.c) ---- */

enum { MBARRIERS = 16 }; /* bytes before the regions of a cluster's CTA */

/* How many CTAs a cluster may have on the target. */
uint32_t kl_px_cluster_most(const struct pgen *g);
/* All CTAs meet; what each wrote to global memory is seen by all. */
void kl_px_cluster_barrier(struct pgen *g);
/* From here on all CTAs run: their shared memory may be written. */
void kl_px_cluster_open(struct pgen *g);
/* Sum of weight[i] over the bits i of the CTA's rank that are set; NULL: 0. */
opnd kl_px_weigh_rank(struct pgen *g, const uint32_t weight[KL_MAX_CTA_BITS]);
/* A region that any CTA may write; `bytes` of it will arrive from all of them.  Between this
 * and kl_px_push_wait, which ends when they have arrived, stand the pushes. */
opnd kl_px_push_region(struct pgen *g, uint32_t bytes, uint32_t *which);
void kl_px_push_expect(struct pgen *g, uint32_t which, uint32_t bytes);
void kl_px_push_wait(struct pgen *g, uint32_t which);
/* v[0..n) (together 4, 8 or 16 bytes) to `at` + off, an address of this CTA, in CTA number cta. */
void kl_px_push(struct pgen *g, enum cls c, uint32_t which, opnd at, opnd cta, int64_t off,
                const opnd *v, uint32_t n, opnd pred);
uint32_t kl_px_push_bytes(enum cls c);

/* ---- the trace (trace.c); nothing happens without one ---- */

void kl_px_trace_begin(struct pgen *g); /* threads are known */
void kl_px_trace_zero(struct pgen *g, opnd name);
/* Register r was defined by text; text was put out. */
void kl_px_trace_define(struct pgen *g, opnd r, const char *text);
void kl_px_trace_write(struct pgen *g, const char *text);
void kl_px_trace_label(struct pgen *g, uint32_t label);
void kl_px_trace_access(struct pgen *g, kl_val v, const kl_layout *l, uint32_t vec, bool once);
void kl_px_trace_table(struct pgen *g, kl_val v, const kl_layout *l, uint32_t bytes);
void kl_px_trace_shared(struct pgen *g, bool store, uint32_t width, opnd addr, int64_t off, opnd pred);
/* width bytes a lane to address at of the CTA that cta names. */
void kl_px_trace_push(struct pgen *g, uint32_t width, opnd at, opnd cta, int64_t off, opnd pred);
void kl_px_trace_barrier(struct pgen *g);
/* What follows is executed so many times, the address `stride` bytes further each time. */
void kl_px_trace_repeat(struct pgen *g, uint32_t times, uint32_t stride);
/* What follows accesses elements of a part of a tile (or, of gather, elements that an index names), one
 * for each register of l.  part false: no more. */
void kl_px_trace_part(struct pgen *g, bool part, const kl_layout *l);
/* Threads in which p is true jump over what follows; NULL: all are back. */
void kl_px_trace_skip(struct pgen *g, opnd p);
struct kl_conv;
/* A change of layout through shared memory begins; NULL: it ends. */
void kl_px_trace_plan(struct pgen *g, const struct kl_conv *c, uint32_t max_bytes);

/* ---- between threads (convert.c) ---- */

opnd kl_px_weigh(struct pgen *g, const uint32_t *weight);
opnd kl_px_lane_bit(struct pgen *g, uint32_t bit);
opnd kl_px_shfl(struct pgen *g, enum cls c, opnd x, bool bfly, opnd lane);
opnd kl_px_choose(struct pgen *g, enum cls c, opnd p, opnd a, opnd b); /* p ? a : b */
void kl_px_st_shared_n(struct pgen *g, enum cls c, opnd addr, int64_t off, const opnd *v, uint32_t n,
                       opnd pred);
void kl_px_ld_shared_n(struct pgen *g, enum cls c, opnd addr, int64_t off, opnd *v, uint32_t n);
opnd kl_px_ld_shared(struct pgen *g, enum cls c, opnd addr, int64_t off);
void kl_px_st_shared(struct pgen *g, enum cls c, opnd addr, int64_t off, opnd v, opnd pred);
uint32_t kl_px_bytes(enum cls c); /* in shared memory; a predicate is a byte */

#endif
