/* kiln_peer.h - an implementation of somebody else beside a Kiln kernel, in one run of `kiln bench`.
 * C99 and later, valid as C++.
 *
 * A peer is a shared library that exports kiln_peer_get.  `kiln bench --peer ./libpeer.so` starts a
 * process that loads it, asks for each implementation it has, gives each one every case, and takes
 * times in turn with the kernel's: A B A B.  Kiln's clock, or Kiln's events on a GPU, stand around
 * run(); what it computed is compared with what the kernel computed before any time is taken.
 *
 * A peer that is no C: a program that speaks the lines of docs/bench.md.  Nothing here needs
 * libkiln at run time. */
#ifndef KILN_PEER_H
#define KILN_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_PEER_ABI 1

/* An array of a case.  data is an address of the case's device: of the GPU's memory for
 * KILN_DEVICE_CUDA.  strides in elements, never NULL.  reads, writes: what the kernel does. */
typedef struct kiln_peer_array {
    const char *name;
    void *data;
    kiln_dtype dtype;
    int32_t ndim;
    const int64_t *shape, *strides;
    int32_t reads, writes;
} kiln_peer_array;

/* A scalar or constant of the kernel, as a launch would see it. */
typedef struct kiln_peer_scalar {
    const char *name;
    double value;
} kiln_peer_scalar;

typedef struct kiln_peer_case {
    uint32_t size; /* sizeof(kiln_peer_case) of the caller; later versions grow at the end */
    const char *file, *kernel; /* "kernels/softmax.kiln", "softmax" */
    kiln_device device;        /* KILN_DEVICE_CPU or KILN_DEVICE_CUDA */
    int32_t device_index;      /* CUDA: which one, in the driver's order */
    uint32_t threads;          /* of the host; use so many */
    void *stream;              /* CUDA: the CUstream to queue on; NULL: the default one */
    const kiln_peer_array *array;
    size_t narray;
    const kiln_peer_scalar *scalar;
    size_t nscalar;
} kiln_peer_case;

typedef struct kiln_peer {
    uint32_t size;             /* sizeof(kiln_peer) */
    const char *name, *version; /* "openblas", "0.3.21" */
    /* Everything that is not to be timed: handles, descriptions, workspace, packing of constants.
     * NULL: it does not do this case, and why, of n bytes, says so.  One case is prepared several
     * times with other addresses, so that the arrays come from memory and not from a cache.  The case
     * and its lists live during this call; arrays, shapes and strides until drop. */
    void *(*prepare)(const kiln_peer_case *c, char *why, size_t n);
    /* The whole of the computation, once; on a GPU it may be queued.  0, or an error. */
    int (*run)(void *state);
    void (*drop)(void *state);
} kiln_peer;

/* Implementation number i, or NULL past the last one.  abi: KILN_PEER_ABI of the caller; a library
 * that does not know it returns NULL for 0. */
const kiln_peer *kiln_peer_get(uint32_t abi, size_t i);
typedef const kiln_peer *(*kiln_peer_get_fn)(uint32_t abi, size_t i);

#ifdef __cplusplus
}
#endif
#endif
