/* cublas.c - cuBLAS as a peer of `kiln bench` on a GPU: products of matrices.
 *
 *     cc -O2 -shared -fPIC -Iinclude bench/peers/cublas.c -o cublas.so -ldl
 *
 * The library is opened at run time (libcublas.so.13, .12, .11, or what KILN_CUBLAS names: PyTorch
 * brings one), so no toolkit is needed to build this.  Sums are in f32 (f64 for f64); f32 products
 * are exact ones, and a second implementation uses tf32. */
#include <dlfcn.h>
#include <stdlib.h>

#include "find.h"

/* Numbers of cublas_api.h and library_types.h, which never change. */
enum { OP_N = 0, R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_TF32 = 77, GEMM_DEFAULT = -1 };

typedef int create_fn(void **handle);
typedef int destroy_fn(void *handle);
typedef int stream_fn(void *handle, void *stream);
typedef int gemm_fn(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
                    const void *a, int at, int lda, const void *b, int bt, int ldb,
                    const void *beta, void *c, int ct, int ldc, int compute, int algorithm);

typedef int property_fn(int which, int *value);

struct work {
    const void *a, *b;
    void *c;
    int m, n, k, lda, ldb, ldc, type, compute;
};

/* What all copies share: making a handle takes a tenth of a second.  The process is the peer's own,
 * with one thread and one stream. */
static struct {
    void *lib, *handle;
    create_fn *create;
    destroy_fn *destroy;
    stream_fn *stream;
    gemm_fn *gemm;
    property_fn *property;
    int users;
} g;

static void *find(void *lib, const char *name, void *fn)
{
    void *p = dlsym(lib, name);
    memcpy(fn, &p, sizeof p);
    return p;
}

static int open_library(char *why, size_t n)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
    const char *own = getenv("KILN_CUBLAS");
    if (g.lib)
        return 1;
    void *lib = own && *own ? dlopen(own, RTLD_NOW) : NULL;
    for (size_t i = 0; i < 3 && !lib; i++)
        lib = dlopen(names[i], RTLD_NOW);
    if (!lib) {
        snprintf(why, n, "%s", dlerror());
        return 0;
    }
    if (!find(lib, "cublasCreate_v2", &g.create) || !find(lib, "cublasDestroy_v2", &g.destroy) ||
        !find(lib, "cublasSetStream_v2", &g.stream) || !find(lib, "cublasGemmEx", &g.gemm) ||
        !find(lib, "cublasGetProperty", &g.property)) {
        snprintf(why, n, "libcublas lacks a function");
        return 0;
    }
    g.lib = lib;
    return 1;
}

static void drop(void *state)
{
    free(state);
    if (--g.users || !g.handle)
        return;
    g.destroy(g.handle);
    g.handle = NULL;
}

static int start(const kiln_peer_case *c, char *why, size_t n)
{
    if (g.users++)
        return 1;
    if (!open_library(why, n))
        return 0;
    int st = g.create(&g.handle);
    if (!st)
        st = g.stream(g.handle, c->stream);
    if (st)
        snprintf(why, n, "cublasCreate: status %d", st);
    return st == 0;
}

static void *prepare(const kiln_peer_case *c, int tf32, char *why, size_t n)
{
    const kiln_peer_array *a = array_of(c, "a"), *b = array_of(c, "b"), *y = array_of(c, "c");
    if (c->device != KILN_DEVICE_CUDA) {
        snprintf(why, n, "cublas runs on a GPU");
        return NULL;
    }
    if (c->device_index != 0) { /* it would need the run-time library to choose another one */
        snprintf(why, n, "this adapter uses the first GPU only");
        return NULL;
    }
    if (!is_product(c, why, n))
        return NULL;
    int type = a->dtype == KILN_F32    ? R_32F
               : a->dtype == KILN_F64  ? R_64F
               : a->dtype == KILN_F16  ? R_16F
               : a->dtype == KILN_BF16 ? R_16BF
                                       : -1;
    if (type < 0 || (tf32 && type != R_32F)) {
        snprintf(why, n, tf32 ? "tf32 is for f32" : "not this type");
        return NULL;
    }
    struct work *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    *w = (struct work){.a = a->data,
                       .b = b->data,
                       .c = y->data,
                       .m = (int)y->shape[0],
                       .n = (int)y->shape[1],
                       .k = (int)a->shape[1],
                       .lda = (int)a->strides[0],
                       .ldb = (int)b->strides[0],
                       .ldc = (int)y->strides[0],
                       .type = type,
                       .compute = type == R_64F ? COMPUTE_64F
                                  : tf32        ? COMPUTE_TF32
                                                : COMPUTE_32F};
    if (start(c, why, n))
        return w;
    drop(w);
    return NULL;
}

static void *prepare_exact(const kiln_peer_case *c, char *why, size_t n)
{
    return prepare(c, 0, why, n);
}

static void *prepare_tf32(const kiln_peer_case *c, char *why, size_t n)
{
    return prepare(c, 1, why, n);
}

/* Row-major c = a b is column-major c' = b' a'. */
static int run(void *state)
{
    const struct work *w = state;
    const float one = 1, zero = 0;
    const double one64 = 1, zero64 = 0;
    int f64 = w->type == R_64F;
    return g.gemm(g.handle, OP_N, OP_N, w->n, w->m, w->k, f64 ? (const void *)&one64 : &one, w->b,
                  w->type, w->ldb, w->a, w->type, w->lda, f64 ? (const void *)&zero64 : &zero, w->c,
                  w->type, w->ldc, w->compute, GEMM_DEFAULT);
}

const kiln_peer *kiln_peer_get(uint32_t abi, size_t i)
{
    static char version[40], why[200];
    static const kiln_peer peer[2] = {
        {sizeof(kiln_peer), "cublas", version, prepare_exact, run, drop},
        {sizeof(kiln_peer), "cublas tf32", version, prepare_tf32, run, drop}};
    int v[3] = {0};
    if (!*version && open_library(why, sizeof why)) {
        for (int k = 0; k < 3; k++)
            g.property(k, &v[k]);
        snprintf(version, sizeof version, "%d.%d.%d", v[0], v[1], v[2]);
    }
    return abi == KILN_PEER_ABI && i < 2 ? &peer[i] : NULL;
}
