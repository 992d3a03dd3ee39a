/* run.h - inside of the model of a kernel: values of a program, and what is counted. */
#ifndef KL_MODEL_RUN_H
#define KL_MODEL_RUN_H

#include "gen/ptx/trace.h"
#include "model/model.h"

/* A value that a mask, an index or a condition depends on. */
struct mval {
    bool needed;
    bool fixed; /* the same in all programs: computed once */
    bool done;  /* fixed, and computed */
    bool known;
    uint32_t n;
    uint64_t *v;     /* canonical bits of each element */
    uint64_t *stage; /* of what a loop carries: the next trip's */
    bool stage_known;
};

/* Different elements of an array that were accessed: a bit for 2^log2 elements. */
struct mtouch {
    uint64_t *bit[2]; /* read, written; made when first used */
    uint64_t asked[2][2]; /* bytes, of each set of programs (mrun.set) */
    uint64_t half[2];     /* elements touched when half of a sample had run */
    uint32_t log2;
    int64_t low;    /* offset of the lowest element from the base, in elements */
    uint64_t span;  /* elements from there */
    bool coarse[2]; /* a run did not fill its last bit */
    bool unknown[2];
};

/* What accesses of the same places cost. */
struct mcost {
    kl_model_traffic t;
    uint32_t worst;
};

/* A record of the trace with what it led to, and the same section's earlier costs. */
struct maccess {
    const kl_ptx_access *rec;
    uint32_t out; /* in model.access */
    uint32_t naxis, axis[KL_MAX_RANK]; /* dimension of the array of each axis of the tile */
    kl_map seen;
    KL_VEC(struct mcost) cost;
    kl_map marked; /* sections whose elements are known as touched */
    KL_VEC(uint64_t) elements; /* of each: how many */
    bool mask_false, inside, wasteful; /* wasteful: the first one named moved more than it has to */
    uint64_t first; /* number of the program of that one */
    uint32_t outside; /* axes along which some element was outside, as bits; 16: the whole section */
    kl_model_traffic t[2]; /* of programs that count once; of those that stand for others */
    uint64_t runs[2], unknown[2];
    const char *why;
    struct maccess *next; /* of the same instruction */
};

/* An exchange whose addresses the program computes: extract, insert, gather. */
struct mshared {
    const kl_ptx_shared *rec;
    kl_model_traffic t[2];
    uint64_t unknown[2];
    uint32_t worst;
    struct mshared *next; /* of the same instruction */
};

struct mrun {
    kl_model *m;
    const kl_model_in *in;
    const kl_fn *f;
    kl_arena *a;
    const kl_ptx_trace *tr;
    struct mval *val;
    struct maccess *access, **at; /* at: by instruction; NULL: none */
    struct mshared *shared, **parts; /* by record; by instruction, NULL: none */
    struct mtouch *touch;         /* by parameter */
    uint64_t *runs[2], *unsure_runs[2]; /* executions of each instruction */
    const char **maybe; /* why an instruction may be executed more often than counted; NULL: no */
    int64_t pid[3];
    uint32_t set;   /* 0 or 1: which of the counters */
    const char *unsure; /* why what is executed now may be executed otherwise; NULL: it is sure */
    uint64_t work, stop; /* stop: where a loop is left */
    bool edge;           /* some section of this program reached past its array */
    uint64_t edges[2];   /* such programs */
    kl_map doubts;  /* (instruction, text) -> index in m->doubt */
    uint64_t *sectors; /* room to tell different ones (access.c) */
    uint32_t room;
    uint64_t *most; /* of integer values that were computed: the largest magnitude */
};

/* Elements that were touched, write: 0 or 1. */
uint64_t kl_model_touched(const struct mtouch *t, uint32_t write);

/* Wrapping arithmetic of places: a kernel may name any. */
static inline int64_t kl_model_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t kl_model_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* ---- eval.c ---- */

/* Which values have to be computed, and room for them. */
void kl_model_slice(struct mrun *r);
/* Computes v, if it is needed. */
void kl_model_eval(struct mrun *r, kl_val v);
static inline bool kl_model_known(const struct mrun *r, kl_val v)
{
    return r->val[v.id].known;
}
static inline int64_t kl_model_int(const struct mrun *r, kl_val v)
{
    return (int64_t)r->val[v.id].v[0];
}
/* Result i of loop or if v; value i that its block (the first: 0) is given. */
kl_val kl_model_result(const kl_fn *f, kl_val v, uint32_t i);
kl_val kl_model_given(const kl_fn *f, kl_val v, uint32_t block, uint32_t i);

/* ---- section.c ---- */

/* An access of one execution: where its section begins and what is inside. */
struct msection {
    uint32_t root;
    bool dead;         /* a scalar subscript is outside: nothing is accessed */
    int64_t off;       /* of the element with all axes at 0, in elements from the root's base */
    int64_t step[KL_MAX_RANK];            /* elements from one to the next along each axis */
    uint32_t lo[KL_MAX_RANK], hi[KL_MAX_RANK]; /* inside */
};

/* false: something that it depends on is not known; *why says what. */
bool kl_model_section(struct mrun *r, kl_val v, struct msection *s, const char **why);
/* Offset in elements of the tile's element with coordinates x, added to by index tiles; false: it is
 * outside. */
bool kl_model_element(struct mrun *r, kl_val v, const struct msection *s, const uint32_t *x,
                      int64_t *off);
/* The elements of an execution of access v become known as accessed.  hash: of the mask. */
void kl_model_touch(struct mrun *r, kl_val v, const struct msection *s, kl_val mask, uint64_t hash);

/* ---- access.c ---- */

void kl_model_access_run(struct mrun *r, kl_val v);
/* An execution of v in coordinates of its array. */
const char *kl_model_where(struct mrun *r, kl_val v);
void kl_model_doubt_at(struct mrun *r, kl_val v, const char *why);
kl_val kl_model_mask(const kl_fn *f, kl_val v); /* 0: none */

/* ---- shared.c ---- */

void kl_model_shared_begin(struct mrun *r);
/* One execution of v, whose parts are not NULL. */
void kl_model_shared_run(struct mrun *r, kl_val v);
void kl_model_shared_end(struct mrun *r);

/* ---- model.c ---- */

void kl_model_sum(kl_model_traffic *to, const kl_model_traffic *t);
kl_model_traffic kl_model_scaled(const struct mrun *r, const kl_model_traffic t[2]);
kiln_place kl_model_place(const struct mrun *r, kl_span loc);
kl_model_line *kl_model_line_of(struct mrun *r, const char *file, uint32_t line);

/* ---- work.c, passes.c, narrow.c: what needs the number of executions only ---- */

/* A tile: scalars are the same in all threads, and are no work to speak of. */
static inline bool kl_model_is_tile(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    return in->blk.id && in->type.id && kl_type_of(f, v)->kind == KL_T_TILE &&
           kl_type_of(f, v)->rank > 0;
}


void kl_model_work_of(struct mrun *r);
void kl_model_instructions(struct mrun *r);
void kl_model_passes_of(struct mrun *r);
void kl_model_dots(struct mrun *r);
void kl_model_narrow_of(struct mrun *r);
/* Executions of v, scaled to all programs. */
uint64_t kl_model_times(const struct mrun *r, kl_val v);
/* n of programs that count once and k of those that stand for others, for all. */
uint64_t kl_model_scale(const struct mrun *r, uint64_t n, uint64_t k);

#endif
