/* find.h - what the peers in C share: arrays and scalars of a case by their names. */
#ifndef KILN_PEER_FIND_H
#define KILN_PEER_FIND_H

#include <stdio.h>
#include <string.h>

#include "kiln_peer.h"

static inline const kiln_peer_array *array_of(const kiln_peer_case *c, const char *name)
{
    for (size_t i = 0; i < c->narray; i++)
        if (strcmp(c->array[i].name, name) == 0)
            return &c->array[i];
    return NULL;
}

static inline double scalar_of(const kiln_peer_case *c, const char *name, double otherwise)
{
    for (size_t i = 0; i < c->nscalar; i++)
        if (strcmp(c->scalar[i].name, name) == 0)
            return c->scalar[i].value;
    return otherwise;
}

static inline int is_dense(const kiln_peer_array *a)
{
    int64_t step = 1;
    for (int32_t d = a->ndim; d-- > 0; step *= a->shape[d])
        if (a->shape[d] != 1 && a->strides[d] != step)
            return 0;
    return 1;
}

/* c = a b of one type, without bias and activation; else why. */
static inline int is_product(const kiln_peer_case *c, char *why, size_t n)
{
    const kiln_peer_array *a = array_of(c, "a"), *b = array_of(c, "b"), *y = array_of(c, "c");
    if (!a || !b || !y || a->ndim != 2 || b->ndim != 2 || y->ndim != 2 || array_of(c, "bias") ||
        scalar_of(c, "ACT", 0) != 0) {
        snprintf(why, n, "it does not do this kernel");
        return 0;
    }
    if (a->dtype != b->dtype || a->dtype != y->dtype || a->strides[1] != 1 || b->strides[1] != 1 ||
        y->strides[1] != 1) {
        snprintf(why, n, "types that differ, or rows that are not dense");
        return 0;
    }
    return 1;
}

#endif
