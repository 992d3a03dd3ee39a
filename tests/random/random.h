/* random.h - random programs: what generator, runner and reducer share.
 *
 * A program is one kernel of the Kiln language with its arguments.  Whatever it does is
 * defined: each program of the grid writes its own part of the arrays, loops end, and every
 * operation has a value, so that all targets must give the same bits. */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln.h"

/* ---- numbers ---- */

struct rng { uint64_t s; };
uint64_t rng_next(struct rng *r);
unsigned rng_below(struct rng *r, unsigned n); /* 0 .. n-1 */
bool rng_chance(struct rng *r, unsigned percent);

/* ---- memory that lives as long as a program ---- */

struct pool { struct pool_chunk *head; };
void *pool_get(struct pool *p, size_t n);
char *pool_fmt(struct pool *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pool_free(struct pool *p);

/* ---- programs ---- */

enum { MAX_ARRAYS = 8, MAX_SCALARS = 40, MAX_BATCH = 128 };

struct rarray {
    const char *name;
    kiln_dtype t;
    int32_t rank;
    int64_t ext[4], str[4]; /* elements */
    bool written, given;
    int alias; /* index of the array whose memory it shares; -1: its own */
};

struct rscalar { /* what the host gives; deduced ones are not listed */
    const char *name;
    kiln_arg_kind kind;
    int64_t i;
    double f;
    kiln_dtype t;
};

struct rprog {
    uint64_t seed;
    struct pool mem;
    const char **line; /* the source */
    unsigned nline;
    struct rarray array[MAX_ARRAYS];
    unsigned narray;
    struct rscalar scalar[MAX_SCALARS];
    unsigned nscalar;
    bool specials; /* data holds infinities, NaNs, extreme integers */
    bool pairs;    /* the first elements of the arrays are all combinations of those */
    const char *title; /* or NULL: the seed says it */
};

/* gen.c */
void generate(struct rprog *p, uint64_t seed);
/* ops.c: programs of one operation each, index 0, 1, ...; false past the end */
bool one_operation(struct rprog *p, unsigned index);
char *program_text(const char *const *line, unsigned n); /* malloced */

/* ---- runs ---- */

/* Memory of a program's arrays, with guards around each. */
struct rmem {
    unsigned char *base[MAX_ARRAYS]; /* start of the allocation; NULL if shared */
    size_t size[MAX_ARRAYS];         /* bytes without guards */
    void *elem0[MAX_ARRAYS];         /* element [0,...,0] */
    kiln_arg arg[MAX_ARRAYS + MAX_SCALARS];
    unsigned narg;
};
void mem_make(const struct rprog *p, struct rmem *m); /* filled from the seed: always the same */
void mem_free(struct rmem *m);
/* Equal after NaNs are made equal, guards and constants untouched; else says where. */
bool mem_same(const struct rprog *p, const struct rmem *want, const struct rmem *got,
              char *why, size_t nwhy);

enum outcome { O_NONE, O_RUNNING, O_OK, O_REJECTED, O_FAILED, O_DIFFERENT, O_CRASH };

struct result {
    enum outcome outcome;
    char why[1000];
};

enum { USE_CPU = 1, USE_CLANG = 2, USE_SIM = 4, USE_CUDA = 8 };

/* Run programs, compiled together, on all targets; res[i] is kept current so that a crash
 * shows where it was.  clang[i]: with clang as well. */
void run_batch(struct rprog *const *p, char *const *text, unsigned n, const bool *clang,
               unsigned use, struct result *res);
/* The same in a child process, which may crash or hang. */
void run_guarded(struct rprog *const *p, char *const *text, unsigned n, const bool *clang,
                 unsigned use, struct result *res);

/* Shrink the source of a failing program while it still fails in the same way. */
void reduce(struct rprog *p, const struct result *res, bool clang, unsigned use);

#endif
