/* run.h - inside of the interpreter: the plan of a function and the state of a run.
 *
 * plan.c turns a function into steps, one per instruction, with the addresses of the
 * values resolved: values lie in one slab, and values that are never live at the same
 * time share their place.  interp.c walks the steps once per program.  Everything is
 * private to one run, so that several threads may run the same function at once. */
#ifndef KL_RUN_H
#define KL_RUN_H

#include <fenv.h>

#include "base/race.h"
#include "base/sums.h"
#include "gen/interp/interp.h"

/* Element types as values lie in memory.  bitcast and reshape read a place under another
 * type than it was written under, so the types may alias. */
#define ELEM(name, code, bytes, kind, ctype, acc, doc)                                             \
    typedef ctype __attribute__((may_alias)) kl_m_##name;
#include "base/elem.def"
typedef uint16_t __attribute__((may_alias)) kl_m_w16; /* moved bits of 2, 4, 8 bytes */
typedef uint32_t __attribute__((may_alias)) kl_m_w32;
typedef uint64_t __attribute__((may_alias)) kl_m_w64;

/* Memory that accesses may touch, counted in elements from the base. */
struct kl_mem {
    char *base;
    int64_t first, last; /* offsets of the first and last whole element; last < first: none */
    uint8_t *shadow;     /* NULL: everything has a value */
    int64_t shadow_at;   /* distance in bytes from base to what shadow[0] tells of */
    const struct kl_race_span *race; /* NULL: races are not looked for here */
};

/* An array value. */
struct kl_view {
    uint32_t root; /* parameter */
    int64_t off;   /* of element [0,...,0] from the root's base, in elements */
    int64_t ext[KL_MAX_DIMS], str[KL_MAX_DIMS];
};

/* The fixed part of a load, store, inside, extract or insert.  Dimensions of the array
 * with more than one element of the tile are axes; the others only shift the place. */
struct kl_access {
    uint32_t ndim, naxis;
    uint32_t axis_dim[KL_MAX_RANK];
    uint32_t axis_tile[KL_MAX_RANK]; /* which of the tile's axes it is */
    uint64_t axis_n[KL_MAX_RANK];
    int64_t step[KL_MAX_DIMS];   /* 0: scalar subscript or index tile */
    bool index[KL_MAX_DIMS];     /* start is a tile */
    const kl_m_i64 *start[KL_MAX_DIMS];
    uint64_t div[KL_MAX_DIMS], mod[KL_MAX_DIMS]; /* element lane / div % mod along the subscript */
    const void *desired;         /* cas: the second value */
    uint8_t how, elem;
    uint32_t bytes; /* of an element */
    bool is_bool;   /* read as 0 or 1 */
    bool guarded;   /* what is outside is chosen away by a select under inside() */
    const char *fill;          /* NULL: zero */
    const kl_m_bool *mask;     /* NULL: all */
    uint8_t *lost;             /* load: lanes that got no element of the array; NULL: not needed */
    struct kl_view tile;       /* extract, insert: the tile as an array, */
    struct kl_mem tile_mem;    /* and its memory */
};

typedef void kl_ew_fn(void *out, const void *a, const void *b, const void *c, size_t n);

struct kl_run;
struct kl_step;
/* false: stop the run. */
typedef bool kl_step_fn(struct kl_run *r, const struct kl_step *s);

/* A copy of a value to the place of a block parameter or result. */
struct kl_move {
    void *to;
    const void *from;
    void *via; /* not NULL: copied here first, as another move of the set writes `from` */
    size_t bytes;
};
struct kl_moves {
    struct kl_move *v;
    uint32_t n;
    bool staged;
};

struct kl_steps { /* a block */
    struct kl_step *step;
    uint32_t n;
    struct kl_moves yield;
};

/* Like dot of rank 2 on operands of the accumulator's type, acc in place. */
typedef void kl_dot_fn(void *acc, const void *a, const void *b, size_t m, size_t n, size_t k);

struct kl_vecblock;

struct kl_step {
    kl_ew_fn *ew;     /* element by element: out, in, n are all it needs */
    kl_step_fn *exec; /* else */
    void *out;
    const void *in[3];
    size_t n; /* elements of the result (of the value for store, of the operand for reduce) */
    kl_val val;
    union {
        struct kl_access *access;
        struct { /* the operand seen as [outer][n][inner]; cat: the other as [outer][n2][inner] */
            uint64_t outer, n, n2, inner;
            kl_ew_fn *fold; /* reduce */
            uint32_t bytes;
            uint8_t elem;
        } ax;
        struct { /* integer arithmetic that is checked */
            kl_ew_fn *ew;
            const struct kl_excuse *excuse; /* of a division */
            struct kl_later *later;         /* of what a loop carries */
            uint16_t op;
            uint8_t elem;
        } arith;
        struct {
            uint32_t rank, bytes;
            uint64_t dim[KL_MAX_RANK]; /* of the result */
            uint64_t str[KL_MAX_RANK]; /* of the operand along the result's axes, in elements */
        } map; /* broadcast, permute */
        struct {
            uint64_t batch, m, n, k;
            uint32_t bytes;     /* of an element of the accumulator */
            kl_ew_fn *widen;    /* NULL: the operands have its type */
            kl_dot_fn *run;
            uint32_t from_bytes;
        } dot;
        struct {
            struct kl_steps *blk[2];
            struct kl_moves start; /* operands to the first round's parameters */
            const void *cond;      /* while: what blk[0] yields */
            void *iv;              /* for: place of the induction variable */
            struct kl_carried *carried; /* while, when loops are checked */
            bool narrow;           /* for: it is an i32, else i64 */
        } region;
        struct kl_fold *fold;
        const struct kl_laters *laters;
        struct {
            uint32_t root, ndim, parent_ndim;
            const struct kl_view *parent; /* NULL: the parameter itself */
            const kl_m_i64 *off, *const *ext, *const *str;
        } view;
        int64_t index;
    } u;
};

/* A fold by a block: m tiles seen as [outer][n][inner]. */
struct kl_fold {
    struct kl_steps *blk;
    struct kl_vecblock *vec; /* the same block on vectors; NULL: it has loops */
    uint64_t outer, n, inner;
    bool tree, scan;
    uint32_t m;
    struct kl_folded {
        const char *in;
        char *out;
        void *param[2]; /* places of the block's parameters and of what it yields */
        const void *result;
        char *work[3]; /* levels in turn; pairs laid side by side */
        uint32_t bytes;
    } v[KL_MAX_FOLD];
};

/* A block of element-wise steps that runs on vectors of at most KL_VEC_LEN elements. */
enum { KL_VEC_LEN = 1024 };
struct kl_vecblock {
    struct kl_step *step; /* places of KL_VEC_LEN elements */
    uint32_t n;
    void *param[2][KL_MAX_FOLD];
    const void *result[KL_MAX_FOLD];
    struct kl_move *splat; /* values from outside: bytes of one element; spread when entered */
    uint32_t nsplat;
};

/* One source place that did something to report: how often, and the first time. */
struct kl_finding {
    enum kl_code code;
    kl_val val;
    kl_span loc;
    uint32_t root; /* parameter; UINT32_MAX: a tile */
    uint64_t count;         /* elements */
    int64_t programs, last; /* how many programs, and the last one counted */
    int64_t program;        /* the first: its program, its element of the tile, where that is */
    uint64_t lane;
    int64_t at[KL_MAX_DIMS], ext[KL_MAX_DIMS];
    int64_t off;                  /* in elements from the root's base */
    int64_t span[2], outer[2];    /* a view: offsets that it and its parent cover */
    bool again;                   /* found in the second run only */
    bool waits;                   /* a loop: it waits for another program */
    uint64_t bits[2];             /* values of a race, of two orders; operands */
    /* races: the other access, its program and lane (UINT64_MAX: not known) */
    kl_val other;
    int64_t other_program;
    uint64_t other_lane;
    enum kl_touch touch, other_touch;
    uint64_t elements;            /* of the array */
};

enum { KL_TEMP_A, KL_TEMP_B, KL_TEMP_C, KL_NTEMP };

struct kl_run {
    const kl_fn *f;
    const kl_launch *l;
    kl_arena *a;
    struct kl_mem *mem; /* one per parameter */
    int64_t program;   /* linear */
    int64_t pid[3];
    uint8_t *uses;  /* of each value, when checking: see plan.c */
    void **place;   /* of each value; NULL: it has none (array parameters) */
    uint8_t *fixed; /* of each value: 1 the same in all programs, computed once; 2 the same
                       bits at the same place as its operand: nothing to do */
    struct kl_steps prologue, body;
    struct { void *p; size_t n; } temp[KL_NTEMP];
    unsigned checks;
    KL_VEC(struct kl_finding) found;
    bool (*tick)(void *);
    void *tick_user;
    int64_t fuel; /* element-operations until the next tick */
    bool stopped;
    /* checks (race.c, endless.c) */
    struct kl_race *race;       /* NULL: not looked for */
    struct kl_race_span *span;
    uint32_t nspan, *site;      /* site: the value that stands for all of one place in the source */
    struct kl_sums *sums;
    uint8_t **lost;             /* of a load in a divisor, or one for `padding`: lanes that got no element */
    struct kl_later **later;    /* of arithmetic whose overflow is told where it is used; or NULL */
    struct kl_padding *padding; /* NULL: not looked for */
    uint32_t seq;               /* atomics so far */
    uint64_t changes;           /* stores and atomics that changed memory */
    uint64_t spent;             /* element-operations so far */
    bool unseen;                /* too much memory to look for races */
    bool again;                 /* the second run: what the first found is not counted */
    bool endless;               /* this program stopped in a loop */
    bool wild;                  /* ... that gave no sign of an end: the run stops */
};

/* place.c: fill r->place and r->fixed. */
void kl_place_values(struct kl_run *r);
/* The parameter of a loop's (first) block that carries result k. */
kl_val kl_loop_carried(const kl_fn *f, kl_val loop, uint32_t k);
/* plan.c */
void kl_plan(struct kl_run *r);

/* interp.c */
bool kl_run_steps(struct kl_run *r, const struct kl_steps *c);
/* A place of at least n bytes that stays until the next call with the same k. */
void *kl_temp(struct kl_run *r, uint32_t k, size_t n);
/* Account for n element-operations; false: the run is to stop. */
bool kl_spend(struct kl_run *r, uint64_t n);

/* elementwise.c: NULL: no such row.  elem: of the operands (of b for select). */
kl_ew_fn *kl_ew_find(enum kl_op op, enum kl_elem elem);
kl_dot_fn *kl_dot_find(enum kl_elem acc);
/* The forms for any processor, which the tests compare with those for this one. */
kl_ew_fn *kl_ew_base(enum kl_op op, enum kl_elem elem);
kl_dot_fn *kl_dot_base(enum kl_elem acc);
/* convert.c: the language's cast, and cvt_nan of f32. */
kl_ew_fn *kl_convert_find(enum kl_elem to, enum kl_elem from);
kl_ew_fn *kl_convert_nan_find(enum kl_elem to);

/* One function per operation that is not element by element: memory.c, shape.c (map is
 * broadcast and permute), reduce.c, dot.c, interp.c. */
kl_step_fn kl_do_view, kl_do_load, kl_do_store, kl_do_inside, kl_do_extract, kl_do_insert;
kl_step_fn kl_do_map, kl_do_cat, kl_do_flip;
/* gather.c: accesses element by element, with index tiles or atomic; gather of a tile */
kl_step_fn kl_do_load_each, kl_do_store_each, kl_do_inside_each, kl_do_atomic, kl_do_gather;
kl_step_fn kl_do_reduce, kl_do_fold, kl_do_argmax, kl_do_argmin;
kl_step_fn kl_do_dot;
kl_step_fn kl_do_for, kl_do_while, kl_do_if;
/* shape.c: n copies; n elements that lie str elements apart; out[r][c] = in[c*str + r] */
void kl_fill(void *out, const void *one, uint32_t bytes, size_t n);
void kl_copy_strided(char *out, const char *in, size_t n, size_t str, uint32_t bytes);
void kl_transpose(char *out, const char *in, size_t rows, size_t cols, size_t str, uint32_t bytes);

/* memory.c, used by findings.c: one access in progress. */
struct kl_walk {
    const struct kl_access *ac;
    const struct kl_view *view;
    const struct kl_mem *mem;
    char *tile;     /* what is read into or written from */
    int64_t off;    /* of the element with all axes at 0 */
    bool dead;      /* a dimension that is no axis is outside: no element is inside */
    uint32_t naxis; /* axes left after joining those that lie densely one in the other */
    uint64_t n[KL_MAX_RANK], lo[KL_MAX_RANK], hi[KL_MAX_RANK]; /* [lo, hi): inside */
    int64_t es[KL_MAX_RANK]; /* offset from one element to the next */
    bool wild[KL_MAX_RANK];  /* the index wraps: inside is tested one by one */
    uint32_t dim[KL_MAX_RANK];
    struct kl_run *r;
    const struct kl_step *s;
    bool write;
    void *user; /* of a row function */
};
/* A row: n elements of the tile from `lane` on, the first at offset off; those in [a, b) are
 * inside the extents. */
typedef void kl_row_fn(struct kl_walk *w, uint64_t lane, uint64_t n, int64_t off, uint64_t a,
                       uint64_t b);
void kl_walk_begin(struct kl_walk *w);
void kl_walk_rows(struct kl_walk *w, kl_row_fn *row);
/* Where the element of a lane lies along each dimension of the array. */
void kl_coordinates(const struct kl_access *ac, uint64_t lane, int64_t *at);
/* Whether offsets off + [a, b)*es all lie in the memory. */
bool kl_run_fits(const struct kl_mem *m, int64_t off, int64_t es, uint64_t a, uint64_t b);

/* findings.c, tell.c */
/* The record of this place and code; *isnew: the caller fills in the first instance. */
struct kl_finding *kl_found(struct kl_run *r, const struct kl_step *s, enum kl_code code,
                            uint32_t root, uint64_t lane, bool *isnew);
const char *kl_program_text(const struct kl_run *r, int64_t p);
const char *kl_subscripts(kl_arena *a, const int64_t *x, uint32_t n);
void kl_tell_where(const struct kl_run *r, const struct kl_finding *g, struct kl_diag *e,
                   bool lanes);
/* The same for an access that goes element by element. */
void kl_check_each(struct kl_walk *w);
void kl_found_gather(struct kl_run *r, const struct kl_step *s, uint64_t lane, int64_t at);
void kl_check_access(struct kl_walk *w); /* before the access; marks what a store will write */
void kl_check_view(struct kl_run *r, const struct kl_step *s);
void kl_report(struct kl_run *r, kl_diags *d);

/* race.c: between programs */
void kl_races_open(struct kl_run *r);
/* The elements [a, b) of a row, as in kl_row_fn. */
void kl_race_row(struct kl_walk *w, uint64_t lane, int64_t off, uint64_t a, uint64_t b);
void kl_race_one(struct kl_walk *w, uint64_t lane, int64_t off);
/* An atomic addition of floats is about to be made. */
void kl_note_sum(struct kl_walk *w, uint64_t lane, const char *at, uint64_t old, uint64_t value);
void kl_find_orders(struct kl_run *r);
void kl_tell_race(struct kl_run *r, const struct kl_finding *g, kl_diags *d);
void kl_tell_order(struct kl_run *r, const struct kl_finding *g, kl_diags *d);

/* arith.c: give a step checks of its integer arithmetic, if it needs some */
void kl_mark_arith(struct kl_run *r, uint8_t *index);
void kl_check_arith(struct kl_run *r, kl_val v, bool index, struct kl_step *s);
void kl_tell_arith(struct kl_run *r, const struct kl_finding *g, kl_diags *d);

/* A step before v: tells what wrapped, or forgets it where a loop begins; false: none. */
bool kl_later_step(struct kl_run *r, kl_val v, struct kl_step *s);

/* pad.c: folds over padding */
void kl_padding_open(struct kl_run *r); /* before kl_plan's walk */
void kl_padding_load(const struct kl_walk *w);
bool kl_padding_step(struct kl_run *r, kl_val v, struct kl_step *s);
void kl_tell_padding(struct kl_run *r, const struct kl_finding *g, kl_diags *d);

/* endless.c: loops */
struct kl_carried {
    struct { const char *at; size_t bytes; } *v;
    uint32_t n;
    char *copy; /* of all of them, one behind the other */
};
struct kl_carried *kl_carried_of(struct kl_run *r, kl_val loop);
kl_step_fn kl_do_while_checked;
/* A for loop whose variable wrapped: it goes on for ever. */
bool kl_found_wrap(struct kl_run *r, const struct kl_step *s);
void kl_tell_loop(struct kl_run *r, const struct kl_finding *g, kl_diags *d);
/* interp.c */
void kl_run_moves(const struct kl_moves *m);

/* Half of n rounded up to a power of two; 1 for n <= 2. */
static inline uint64_t kl_half_of(uint64_t n)
{
    uint64_t h = 1;
    while (h * 2 < n)
        h *= 2;
    return h;
}

/* Wrapping arithmetic of places. */
static inline int64_t kl_wadd(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t kl_wmul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

/* The extents rule; INT64_MAX is no bound. */
static inline bool kl_in_extent(int64_t i, int64_t ext)
{
    return ext == INT64_MAX || (uint64_t)i < (uint64_t)(ext < 0 ? 0 : ext);
}

#endif
