/* sweep.h - the shape sweep: what its files share.
 *
 * A case is one launch of a library kernel: types, sizes, constants, and where its arrays lie.
 * All its arrays lie in one block of memory with guards between them; the interpreter and the
 * device begin with the same block and must end with the same one, to the last byte. */
#ifndef SWEEP_H
#define SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln.h"

enum { MAX_ARRAYS = 8, MAX_CONST = 10, MAX_ARGS = MAX_ARRAYS + MAX_CONST + 4 };

/* ---- kernels (table.c) ---- */

struct array {
    const char *name, *dims; /* dims: a letter of struct kase's sizes each */
    char elem;               /* T: the case's type; A: what it is summed in; l: i64; w: i32; u: u8;
                                f: f32; <: i64, ascending from 0 to the size below */
    bool written, read, optional;
    char below; /* values are indices below this size */
};

struct kern {
    const char *file, *kernel;
    struct array array[MAX_ARRAYS];
    const char *same; /* what the first array may share memory with; NULL: nothing */
    bool moves;       /* NaNs keep their bits */
    const char *scalar; /* a floating scalar, 1.37; or NULL */
    int tail; /* bounds of approximate results: 1: by the row's spread; 2: by the largest element,
                 on ordinary numbers */
};

/* Where an array lies. */
enum place {
    DENSE,    /* row-major, aligned */
    OFF,      /* row-major, one element past an aligned place */
    PITCH,    /* rows three elements further apart than they are long */
    PITCH16,  /* rows apart by a multiple of 16 bytes, and more than they are long */
    UPWARDS,  /* the last row first */
    MIRRORED, /* the last column first */
    TURNED,   /* columns together: transposed */
    SPREAD,   /* two elements apart */
    NPLACE
};
extern const char *const place_name[NPLACE];

struct kase {
    const struct kern *k;
    kiln_dtype t;
    int64_t size[128]; /* by letter */
    struct {
        const char *name;
        int64_t v;
    } given[MAX_CONST]; /* integer arguments; name NULL ends */
    enum place out, in; /* of written arrays, of others */
    bool in_place, exact; /* exact: without math(fast) */
    unsigned skip;        /* optional arrays left out, a bit each in their order */
    uint64_t seed;
};

/* Gives every case to sink, in an order in which those with common code follow each other; group
 * counts up with each such run. */
typedef void sink_fn(void *user, const struct kase *c, unsigned group);
void enumerate(bool full, sink_fn *sink, void *user);
void describe(const struct kase *c, char *buf, size_t n);

/* ---- memory (block.c) ---- */

struct laid {
    const struct array *a;
    kiln_dtype t;
    int32_t ndim;
    int64_t ext[4], str[4];
    size_t lo, at, bytes; /* in the block: first byte, element [0,...], bytes it spans */
    bool given;
    int alias; /* index of the array whose memory it is; -1: its own */
};

struct block {
    struct laid v[MAX_ARRAYS];
    unsigned n;
    size_t size;
    unsigned char *start; /* its bytes before a launch */
};

void block_make(const struct kase *c, struct block *b);
void block_free(struct block *b);
/* The arguments of a launch whose arrays lie in memory at base; how many. */
unsigned block_args(const struct kase *c, const struct block *b, unsigned char *base,
                    kiln_arg arg[MAX_ARGS], char kind);
/* Same bytes after NaNs are made equal.  loose: elements of written arrays within the bound of
 * approximate functions.  Otherwise why says where. */
bool block_same(const struct kase *c, const struct block *b, unsigned char *want,
                unsigned char *got, bool loose, char *why, size_t n);

#endif
