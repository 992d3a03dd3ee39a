/* openblas.c - OpenBLAS as a peer of `kiln bench`: products of matrices, transposition.
 *
 *     cc -O2 -shared -fPIC -Iinclude bench/peers/openblas.c -o openblas.so -lopenblas */
#include <cblas.h>
#include <stdlib.h>

#include "find.h"

struct work {
    int kind; /* 0 sgemm, 1 dgemm, 2 somatcopy, 3 domatcopy */
    const void *a, *b;
    void *c;
    int m, n, k, lda, ldb, ldc;
};

static int fits(int64_t v)
{
    return v > 0 && v <= 0x7fffffff;
}

static int product(const kiln_peer_case *c, struct work *w, char *why, size_t n)
{
    const kiln_peer_array *a = array_of(c, "a"), *b = array_of(c, "b"), *y = array_of(c, "c");
    if (!is_product(c, why, n))
        return 0;
    if (a->dtype != KILN_F32 && a->dtype != KILN_F64) {
        snprintf(why, n, "openblas has no products of %s",
                 a->dtype == KILN_BF16 ? "bf16" : "this type");
        return 0;
    }
    if (!fits(a->strides[0]) || !fits(b->strides[0]) || !fits(y->strides[0]) || !fits(y->shape[0]))
        return 0;
    *w = (struct work){.kind = a->dtype == KILN_F64,
                       .a = a->data,
                       .b = b->data,
                       .c = y->data,
                       .m = (int)y->shape[0],
                       .n = (int)y->shape[1],
                       .k = (int)a->shape[1],
                       .lda = (int)a->strides[0],
                       .ldb = (int)b->strides[0],
                       .ldc = (int)y->strides[0]};
    return 1;
}

static int transposition(const kiln_peer_case *c, struct work *w, char *why, size_t n)
{
    const kiln_peer_array *x = array_of(c, "x"), *y = array_of(c, "y");
    if (!x || !y || x->ndim != 2 || !is_dense(x) || !is_dense(y) ||
        (x->dtype != KILN_F32 && x->dtype != KILN_F64) || !fits(x->shape[0]) ||
        !fits(x->shape[1])) {
        snprintf(why, n, "not this type or shape");
        return 0;
    }
    *w = (struct work){.kind = 2 + (x->dtype == KILN_F64),
                       .a = x->data,
                       .c = y->data,
                       .m = (int)x->shape[0],
                       .n = (int)x->shape[1]};
    return 1;
}

static void *prepare(const kiln_peer_case *c, char *why, size_t n)
{
    struct work w;
    int ok = 0;
    snprintf(why, n, "it does not do this kernel");
    if (c->device != KILN_DEVICE_CPU)
        snprintf(why, n, "openblas runs on the CPU");
    else if (strcmp(c->kernel, "matmul") == 0)
        ok = product(c, &w, why, n);
    else if (strcmp(c->kernel, "transpose") == 0)
        ok = transposition(c, &w, why, n);
    struct work *out = ok ? malloc(sizeof *out) : NULL;
    if (!out)
        return NULL;
    openblas_set_num_threads((int)c->threads);
    *out = w;
    return out;
}

static int run(void *state)
{
    const struct work *w = state;
    switch (w->kind) {
    case 0:
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, w->m, w->n, w->k, 1, w->a, w->lda,
                    w->b, w->ldb, 0, w->c, w->ldc);
        return 0;
    case 1:
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, w->m, w->n, w->k, 1, w->a, w->lda,
                    w->b, w->ldb, 0, w->c, w->ldc);
        return 0;
    case 2:
        cblas_somatcopy(CblasRowMajor, CblasTrans, w->m, w->n, 1, w->a, w->n, w->c, w->m);
        return 0;
    default:
        cblas_domatcopy(CblasRowMajor, CblasTrans, w->m, w->n, 1, w->a, w->n, w->c, w->m);
        return 0;
    }
}

const kiln_peer *kiln_peer_get(uint32_t abi, size_t i)
{
    static const kiln_peer peer = {sizeof peer, "openblas", "", prepare, run, free};
    return abi == KILN_PEER_ABI && i == 0 ? &peer : NULL;
}
