/* gen.h - what the files of the CPU back end share.
 *
 * plan.c decides what is computed where: it turns the blocks of a function into trees of
 * steps.  A step is a scalar statement, a loop nest, a call of a helper on tiles in scratch,
 * or a control operation that owns further steps.  buf.c lets values share buffers and
 * places them in scratch.  emit.c prints the steps; nest.c and value.c print loop nests.
 *
 * Tiles of one element are C variables.  A larger tile is either inlined where it is used
 * (computed in the loop that needs it) or lies in a buffer, dense and row-major. */
#ifndef KL_GEN_H
#define KL_GEN_H

#include "gen/c/genc.h"
#include "ir/range.h"

/* clang-format off */
enum {
    G_BIG_DIM = 512,  /* a size from here on is a variable of the text */
    G_SPLIT = 256,    /* inner loops from this length on are split into inside and edges */
    G_LANES = 64,     /* accumulators of an order-free reduction (half as many for 8 bytes) */
    G_SHORT_ROW = 256, /* rows up to this length, if at least G_ROWS, are folded side by side */
    G_ROWS = 8,
    G_CHAIN = 200,    /* inlined operations in a row */
    G_RECOMPUTE = 4   /* chains up to this cost are computed again rather than kept */
};
/* clang-format on */

/* ---- the back-end table (cops.c) ---- */

enum c_how {
    C_NONE,   /* no code by itself */
    C_SCALAR, /* a C variable */
    C_INLINE, /* part of a loop body, or a C variable if it has one element */
    C_STEP,   /* a step of its own */
    C_REGION, /* control flow */
};

struct cop {
    uint8_t how, cost;
    const char *itext, *ftext; /* EW rows: $0 $1 $2 operands, $T the element's name */
};
extern const struct cop kl_cops[KL_NOP];

const char *kl_c_type(enum kl_elem e);  /* in memory: bool is u8, f16 is u16 */
const char *kl_c_local(enum kl_elem e); /* of a variable: bool is b1 */
const char *kl_c_const(kl_arena *a, enum kl_elem e, uint64_t bits);
const char *kl_c_neutral(kl_arena *a, uint16_t op, enum kl_elem e); /* of an order-free fold */

/* ---- index maps ---- */

/* Index along one axis of a value, as a function of the loops of a nest: k + sum c[a]*loop a. */
struct ix {
    int64_t c[KL_MAX_RANK], k;
};
/* One index per axis of the value. */
struct map {
    struct ix x[KL_MAX_RANK];
};

struct opnd {
    kl_val v;
    struct map m;
};
enum { C_OPNDS = KL_MAX_DIMS + 4 }; /* most that an instruction reads in a loop */

/* ---- steps ---- */

enum step_kind {
    ST_SCALAR, /* v as C statements */
    ST_NEST,
    ST_TREE, /* v: a reduction in the fixed order or of many short rows */
    ST_ARG,  /* v: argmax, argmin */
    ST_FOLD, /* v: reduce_fn or scan; sub[0]: its block */
    ST_TURN, /* v: a permute that moves the last axis */
    ST_DOT,
    ST_COPY,  /* buffer src to dst, whole; nothing if they came to share memory */
    ST_REGION /* v: for, while, if with sub steps */
};

/* A buffer that a step touches. */
struct touch {
    uint32_t buf, root; /* root: which of a nest's roots */
    bool write;
    bool whole; /* write: nothing of the old value remains */
    bool ident; /* the element of the iteration: nest position p touches element p */
};

enum root_kind {
    R_PUT,   /* src into buffer buf; if v is set, v's own value into its own buffer */
    R_STORE, /* v: a store or insert; an atomic, whose old values go into buf if it has one */
    R_RED    /* v: an order-free reduction of src, into buf if it has more than one element */
};

struct root {
    uint8_t kind, elem; /* elem: of buf */
    kl_val v, src;
    uint32_t buf;
    struct map at; /* index of src in the nest */
    struct map to; /* R_PUT, R_RED: index in buf, which has these axes: */
    uint32_t brank, bdim[KL_MAX_RANK];
};

struct nest {
    uint32_t rank, dim[KL_MAX_RANK];
    KL_VEC(struct root) root;
};

typedef struct steps {
    struct step **v;
    uint32_t n, cap;
} steps;

struct step {
    uint8_t kind;
    kl_val v;
    uint32_t src, dst;
    uint32_t no; /* place in the order of the text */
    struct nest *nest;
    KL_VEC(struct touch) use;
    steps sub[2];
    uint32_t tmp[3]; /* work buffers; dot: a, b, result */
    uint32_t *work;  /* reduce_fn: a work buffer for each tile */
};

/* ---- values and buffers ---- */

struct gval {
    bool live;      /* something needs it */
    bool one;       /* a tile of one element */
    bool mat;       /* lies in a buffer */
    bool turn;      /* a permute done by a transposition in memory */
    uint32_t buf;   /* mat */
    uint32_t pos;   /* place in the program */
    uint32_t depth; /* of the block that holds it */
    uint32_t nuse;
    uint32_t nest;    /* the nest that produces it, if any; compared while that is open */
    bool late;        /* by a helper behind that nest */
    uint32_t pulls;   /* nests that compute it inline, */
    uint32_t seen;    /* the last of them */
    int32_t cost;     /* to compute it inline; -1: not known yet */
    bool loads;       /* doing so reads global memory */
    bool named;       /* one: something but a scalar expression uses it, or more than one */
    const char *text; /* one: a C expression that needs no parentheses; arrays: base pointer */
};

struct gbuf {
    uint8_t elem;
    uint64_t count; /* elements */
    uint32_t same;  /* shares the memory of this buffer; 0: none */
    uint64_t offset;
    const char *name;
};

struct gen {
    const kl_fn *f;
    kl_arena *a;
    struct gval *val;        /* by instruction */
    KL_VEC(struct gbuf) buf; /* [0] unused */
    steps body;
    uint32_t nsteps;
    /* emission */
    kl_buf out;
    uint32_t indent;
    kl_map stems; /* of names: how many there are */
    bool lines;   /* print #line */
    kl_span loc;  /* of what is being printed */
    kl_buf tables;         /* definitions of tiles of constants */
    KL_VEC(uint32_t) tabled; /* instructions that have one */
    KL_VEC(int64_t) extra;
    KL_VEC(int64_t) size; /* sizes that are variables n0, n1, ... */
    const char **pname;   /* names of parameters */
    const struct kl_range *range; /* of values */
};

_Noreturn void kl_c_unsupported(const struct gen *g, const char *what);

/* ---- plan.c, shape.c, buf.c ---- */

/* Plan the whole function: g->val, g->buf, g->body. */
void kl_c_plan(struct gen *g);
/* Let buffers share memory and place them; the bytes needed. */
uint64_t kl_c_place(struct gen *g);
uint32_t kl_c_buf_new(struct gen *g, enum kl_elem e, uint64_t count);
uint32_t kl_c_buf_root(const struct gen *g, uint32_t b); /* the one whose memory it uses */

/* The operand that has the same elements in the same order; 0: none. */
kl_val kl_c_same_bits(const kl_fn *f, kl_val v);
/* v, or what it is another name of: the first that lies in a buffer or is computed. */
kl_val kl_c_strip(const struct gen *g, kl_val v);
/* Is the access's place known to lie inside its tile?  For extract with constant starts. */
bool kl_c_static_part(const kl_fn *f, kl_val v);
/* Operands that an inlined value of more than one element reads in a loop, and their
 * indices.  UINT32_MAX: they are not linear in the loops (a reshape that joins axes). */
uint32_t kl_c_operands(const struct gen *g, kl_val v, const struct map *m, struct opnd out[C_OPNDS]);
/* The index tiles of an access, in order, and their indices. */
uint32_t kl_c_indices(const kl_fn *f, kl_val v, const struct map *m, struct opnd out[C_OPNDS]);
/* Index of a tile in the nest that walks its elements in order. */
struct map kl_c_walk(const struct kl_type *t);
/* The axes of a nest that walks a tile. */
void kl_c_space(const struct kl_type *t, uint32_t *rank, uint32_t dim[KL_MAX_RANK]);
/* Row-major place of an indexed element, as one index. */
struct ix kl_c_linear(uint32_t rank, const uint32_t *dim, const struct map *m);
bool kl_c_const_of(const kl_fn *f, kl_val v, int64_t *out); /* v is a constant integer */
/* Is v a reduction of rows that lie densely, are short and many? */
bool kl_c_short_rows(const kl_fn *f, kl_val v);
uint32_t kl_c_convert_cost(enum kl_elem to, enum kl_elem from);

/* ---- emit.c: lines of text ---- */

/* One line, indented. */
void kl_c_line(struct gen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void kl_c_open(struct gen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* { */
void kl_c_close(struct gen *g);                                                            /* } */
void kl_c_lines(struct gen *g, const kl_buf *text); /* several, each ended by a newline */
/* A size as text: a number, or from G_BIG_DIM on a variable. */
const char *kl_c_size(struct gen *g, uint64_t n);
const char *kl_c_temp(struct gen *g, const char *stem); /* a new name: stem and a number */
const char *kl_c_load_temp(struct gen *g, kl_val load); /* after the array */
void kl_c_comment(struct gen *g, kl_span loc);          /* the source line */
void kl_c_steps(struct gen *g, const steps *list);
static inline const char *kl_c_bufname(const struct gen *g, uint32_t b)
{
    return g->buf.v[kl_c_buf_root(g, b)].name;
}

/* ---- fold.c ---- */

void kl_c_fold(struct gen *g, const struct step *s);

/* ---- helper.c: trees, argmax, dot ---- */

void kl_c_helper(struct gen *g, const struct step *s);

/* ---- value.c: values as C expressions, in a nest or alone ---- */

struct acc;
struct site {
    struct gen *g;
    uint32_t rank; /* of the nest; 0: a statement alone */
    const uint32_t *dim;
    kl_buf pre[KL_MAX_RANK + 1]; /* statements before each loop; [rank]: in the innermost */
    const char *iv[KL_MAX_RANK]; /* the loops' variables, i32 */
    const char *at;              /* the innermost one as an index */
    bool checked;                /* the innermost loop runs over places outside */
    bool masks;                  /* a load reads only where a mask says so */
    bool uses_iv;                /* the innermost body uses its variable as a number */
    kl_map memo, count, accs, limits;
    KL_VEC(const char *) text;
    KL_VEC(struct acc *) acc;
};

/* An access of a nest. */
struct acc {
    uint32_t level;      /* how many loops it depends on */
    const char *place;   /* the element */
    const char *inside;  /* condition; NULL: always */
    const char *lo, *hi; /* innermost loop: inside from lo up to hi; NULL: no limit */
    const char *must;    /* condition on an index of the innermost loop; NULL: none */
    bool mixed;          /* further conditions, element by element */
    bool safe;           /* may be read wherever it is inside, whatever the mask says */
};

void kl_c_site(struct site *s, struct gen *g, const struct nest *n);
/* Count what root-level values need, so that a value used once needs no name. */
void kl_c_count(struct site *s, kl_val v, const struct map *m);
void kl_c_count_operands(struct site *s, kl_val v, const struct map *m);
const char *kl_c_value(struct site *s, kl_val v, const struct map *m);
/* v computed here although it has a buffer. */
const char *kl_c_compute(struct site *s, kl_val v, const struct map *m);
/* Remember the element of v's buffer at index m; true: something in the nest reads it. */
bool kl_c_reads_put(struct site *s, kl_val v, const struct map *m);
void kl_c_remember(struct site *s, kl_val v, const struct map *m, const char *text);
/* An access of load, store, inside, extract or insert v. */
const struct acc *kl_c_access(struct site *s, kl_val v, const struct map *m);
/* The condition that has to be tested here; NULL: none. */
const char *kl_c_condition(const struct site *s, const struct acc *acc);
/* How many loops an index depends on. */
uint32_t kl_c_level(const struct kl_type *t, const struct map *m);
/* An atomic v on `place`, with its operands (the second one of cas). */
const char *kl_c_atomic(struct gen *g, kl_val v, const char *place, const char *x, const char *y);
bool kl_c_used(const kl_fn *f, kl_val v); /* is it an operand of anything? */
const char *kl_c_buf_place(struct site *s, uint32_t buf, const struct ix *lin);
const char *kl_c_bare(kl_arena *a, const char *x); /* without parentheses around all of it */
const char *kl_c_convert(kl_arena *a, enum kl_elem to, enum kl_elem from, const char *x);
void kl_c_put(struct site *s, uint32_t level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- nest.c ---- */

void kl_c_nest(struct gen *g, const struct step *s);

/* prelude_*.inc, made by tools/ctext.awk: strings, NULL at the end. */
extern const char *const kl_text_prelude_scalar[], *const kl_text_prelude_access[],
    *const kl_text_prelude_fold[], *const kl_text_prelude_dot[];

#endif
