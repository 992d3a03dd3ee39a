/* trace.h - what the GPU back end tells of the memory accesses that it emits: for the model of a
 * kernel (src/model).
 *
 * For an access to an array: where the elements of its tile lie and how many of them move at once.
 * Which are inside, and where the section begins, is in the IR.  For shared memory: what one
 * execution costs, counted lane by lane, since addresses there mostly are functions of the thread
 * alone.  Each record says for which instruction of the IR it stands; a program executes it as
 * often as that one.  What is emitted behind the body of a block (carried values) stands for the
 * block's yield. */
#ifndef KL_PTX_TRACE_H
#define KL_PTX_TRACE_H

#include "ir/ir.h"
#include "layout/convert.h"

typedef struct kl_ptx_access {
    kl_val at;
    const kl_layout *l; /* NULL: one element, which every thread accesses */
    uint8_t vec;        /* log2 of the elements of one access */
    uint8_t may;        /* the same as far as facts and divisors go, whatever the layout */
    bool once;          /* by the first of the threads that share an element */
    const char *file;   /* of the last .loc */
    uint32_t line;
} kl_ptx_access;

typedef struct kl_ptx_shared {
    kl_val at;
    const char *file;
    uint32_t line, plan; /* plan: which change of layout, from 1 on; 0: something else */
    bool store;
    bool push;     /* a store into shared memory of the cluster's other blocks (st.async) */
    bool known;    /* no: addresses are computed by the program, and nothing below is counted */
    bool part;     /* not known: the elements of extract, insert or gather at `at`, ... */
    const kl_layout *l; /* ... one access for each register of this (NULL: one element) */
    uint8_t width; /* bytes of a lane's access */
    uint32_t worst;
    /* of one execution, by all warps of the program */
    uint64_t requests, lanes, units, ideal;
} kl_ptx_shared;

enum { KL_PTX_PLAIN, KL_PTX_PADDED, KL_PTX_SWIZZLED, KL_PTX_NHOW };

/* A change of layout through shared memory: what its two sides take in the different ways. */
typedef struct kl_ptx_plan {
    kl_val at;
    uint64_t st[KL_PTX_NHOW], ld[KL_PTX_NHOW];
    const kl_conv *way[KL_PTX_NHOW]; /* NULL: not possible that way */
    uint8_t chosen;
} kl_ptx_plan;

/* A tile of constants, which lies in memory from a multiple of 32 bytes on: what one execution reads of
 * it, by all warps of the program. */
typedef struct kl_ptx_table {
    kl_val at;
    const char *file;
    uint32_t line;
    uint64_t requests, lanes, bytes, units, ideal;
} kl_ptx_table;

typedef struct kl_ptx_barrier {
    kl_val at;
    uint32_t n;
} kl_ptx_barrier;

typedef struct kl_ptx_trace {
    KL_VEC(kl_ptx_access) access;
    KL_VEC(kl_ptx_shared) shared;
    KL_VEC(kl_ptx_plan) plan;
    KL_VEC(kl_ptx_table) table;
    KL_VEC(kl_ptx_barrier) barrier;
    uint64_t *steps;      /* by instruction of the IR: PTX of one execution that a warp executes at least */
    uint32_t warps, ctas; /* of a program */
} kl_ptx_trace;

#endif
