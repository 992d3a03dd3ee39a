/* plan.h - state of planning, shared by plan.c (blocks), pull.c (nests) and tiles.c (helpers). */
#ifndef KL_PLAN_H
#define KL_PLAN_H

#include "gen/c/gen.h"

struct event { /* a write in the current block */
    uint32_t pos;
    struct kl_effect eff;
    kl_val store; /* in a nest: the store; else 0 */
    uint32_t nest;
};

struct plan {
    struct gen *g;
    const kl_fn *f;
    kl_arena *a;
    bool again;
    uint32_t pos, depth;
    steps *out;
    struct step *open; /* the nest that takes roots */
    uint32_t open_id;
    struct kl_effect eff; /* of the open nest */
    KL_VEC(kl_val) loads; /* pulled by it at the walk of the nest (ident) or otherwise */
    KL_VEC(bool) ident;
    steps after;                 /* helpers on what it puts into buffers */
    KL_VEC(struct event) events; /* of the current block from event0 on */
    uint32_t event0;
};
static inline struct gval *gv(const struct plan *p, kl_val v)
{
    return &p->g->val[v.id];
}

/* ---- pull.c ---- */

/* v, or what it is another name of, needs a buffer: the plan is made again. */
void kl_c_mark(struct plan *p, kl_val v);
bool kl_c_unit_stride(const kl_fn *f, kl_val load);
/* Of computing v inline, with what it pulls; a buffer costs one load.  Sets gval.loads. */
int32_t kl_c_cost(struct plan *p, kl_val v);
uint32_t kl_c_buffer(struct plan *p, kl_val v); /* of a value that lies in one */
struct step *kl_c_step_new(struct plan *p, enum step_kind kind, kl_val v);
void kl_c_touch(struct plan *p, struct step *s, uint32_t buf, uint32_t root, bool write, bool whole,
                bool ident);
void kl_c_close_nest(struct plan *p);
/* Is v a result of the open nest, or of a helper behind it? */
bool kl_c_unfinished(struct plan *p, kl_val v);
/* The instruction needs its operands finished: scalars, and tiles in buffers. */
void kl_c_finish_args(struct plan *p, kl_val v);
/* The first time that v is met at index m? */
bool kl_c_first_time(kl_map *seen, kl_val v, const struct map *m);
/* Does place `lin` follow the walk of the nest? */
bool kl_c_is_walk(const struct nest *n, const struct ix *lin);
/* A root that walks the tile `space` joins the open nest or opens one. */
void kl_c_add_root(struct plan *p, struct root r, const struct kl_type *space, uint32_t pos);
/* Value src to a buffer, at the place of its own elements; v: it is v's own. */
void kl_c_put_value(struct plan *p, kl_val v, kl_val src, uint32_t buf, uint32_t pos);
void kl_c_copy(struct plan *p, uint32_t src, uint32_t dst);
/* v to a buffer of its type: copied if it lies in one, else computed there. */
void kl_c_to_buffer(struct plan *p, kl_val v, uint32_t buf, uint32_t pos);

/* ---- plan.c ---- */

/* The steps of a block; yield_to: the buffers for what it yields (0: a scalar). */
void kl_c_plan_block(struct plan *p, kl_blk blk, steps *out, const uint32_t *yield_to);

/* ---- fold.c ---- */

void kl_c_plan_fold(struct plan *p, kl_val v);

/* ---- tiles.c ---- */

/* A step that folds an axis of its operand's buffer. */
void kl_c_fold_step(struct plan *p, enum step_kind kind, kl_val v, uint32_t axis);
/* Does a reduction take its operand from memory? */
bool kl_c_folds_memory(const kl_fn *f, kl_val v);
void kl_c_plan_reduce(struct plan *p, kl_val v);
void kl_c_plan_dot(struct plan *p, kl_val v);
void kl_c_plan_turn(struct plan *p, kl_val v);
void kl_c_plan_cat(struct plan *p, kl_val v);
void kl_c_plan_insert(struct plan *p, kl_val v);

/* ---- plan.c, atomic.c ---- */

void kl_c_plan_scalar(struct plan *p, kl_val v);
void kl_c_plan_atomic(struct plan *p, kl_val v);

#endif
