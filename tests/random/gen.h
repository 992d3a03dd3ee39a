/* gen.h - inside the generator: scopes, shapes, and the expression part. */
#ifndef GEN_H
#define GEN_H

#include "random.h"

struct shape {
    int rank;
    int dim[4];
};

enum { MAX_VARS = 64, MAX_SEEN = 48, MAX_LINES = 400, MAX_FUNCS = 4, MAX_STRUCTS = 2 };

struct var {
    const char *name;
    kiln_dtype t;
    struct shape s;
    bool fixed; /* loop variables and the like: not assigned */
};

/* An expression that was used before, for common subexpressions. */
struct seen {
    const char *text;
    kiln_dtype t;
    struct shape s;
    unsigned nvar; /* variables in scope then */
};

enum func_kind { F_LIFTED, F_AUTO, F_SCALAR, F_REDUCE, F_ROW };

struct func {
    const char *name;
    enum func_kind kind;
    kiln_dtype t; /* of parameters and result; not of F_AUTO */
    unsigned nparam;
};

/* A struct of two scalars and a function that joins two of them. */
struct pair {
    const char *name, *join;
    kiln_dtype t[2];
};

struct gen {
    struct rprog *p;
    struct rng r;
    struct pool *mem;
    struct var var[MAX_VARS];
    unsigned nvar;
    struct seen seen[MAX_SEEN];
    unsigned nseen;
    struct func func[MAX_FUNCS];
    unsigned nfunc;
    struct pair pair[MAX_STRUCTS];
    unsigned npair;
    int budget;       /* operations left */
    int depth;        /* of blocks, for indentation */
    int loops;        /* around this point */
    unsigned serial;  /* of names */
    int R, CB;        /* rows and, on a two-dimensional grid, columns that a program owns */
    bool two, arrays; /* arrays: they are in scope (not in functions) */
    bool rows;        /* there is a function row(array, i) */
    bool bounded[MAX_ARRAYS];  /* extents are unknown: accesses must lie inside */
    bool optional[MAX_ARRAYS];
};

#define SCALAR ((struct shape){0, {0}})

bool same_shape(struct shape a, struct shape b);
int shape_numel(struct shape s);
const char *dims_text(struct gen *g, struct shape s);   /* [4][8] */
const char *commas_text(struct gen *g, struct shape s); /* , 4, 8 */
struct shape random_shape(struct gen *g, int rank);
int random_dim(struct gen *g);
bool is_float(kiln_dtype t);
bool is_compute(kiln_dtype t); /* arithmetic gives this type: i32 u32 i64 f32 f64 */
kiln_dtype random_type(struct gen *g, bool compute);
const char *literal(struct gen *g, kiln_dtype t); /* bare; fits t */

/* An expression of exactly this type and shape, never a bare literal. */
const char *expr(struct gen *g, kiln_dtype t, struct shape s, int depth);
/* One whose type joins t in arithmetic to give t, and whose shape broadcasts to s. */
const char *operand(struct gen *g, kiln_dtype t, struct shape s, int depth);
/* A value of struct p with members of this shape: a literal, or one that is reduced or scanned. */
const char *pair_literal(struct gen *g, const struct pair *p, struct shape s, int depth);
const char *pair_fold(struct gen *g, const struct pair *p, struct shape s, int depth);
/* A section of array a: its text; the shape it has.  own: inside what the program owns. */
const char *access_text(struct gen *g, unsigned a, struct shape *s, bool fixed_shape, bool own);
/* An i64 scalar near 0..n for subscripts. */
const char *index_text(struct gen *g, int64_t n);

/* Subscripts of dimension d of array a that give `count` places (0: one scalar subscript). */
const char *subscript_text(struct gen *g, unsigned a, int d, int count, bool own);

/* index.c */
const char *gather_text(struct gen *g, kiln_dtype t, struct shape s, int depth);
/* An access to distinct places of a written array, and its shape. */
const char *scatter_text(struct gen *g, unsigned a, struct shape *s);

#endif
