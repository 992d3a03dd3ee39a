/* onednn.c - oneDNN 2 (Debian's libdnnl) as a peer of `kiln bench`: softmax, GELU, layernorm,
 * sums of rows, products of matrices.
 *
 *     cc -O2 -shared -fPIC -fopenmp -Iinclude bench/peers/onednn.c -o onednn.so -ldnnl */
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>

#include "find.h"

#if DNNL_VERSION_MAJOR != 2
#error "this adapter is written for oneDNN 2: the descriptors of version 3 are other ones"
#endif

enum { MOST = 6 };

struct work {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arg[MOST];
    int n;
};

static dnnl_data_type_t type_of(kiln_dtype t)
{
    return t == KILN_F32    ? dnnl_f32
           : t == KILN_BF16 ? dnnl_bf16
           : t == KILN_F16  ? dnnl_f16
                            : dnnl_data_type_undef;
}

static int describe(const kiln_peer_array *a, int rank, dnnl_memory_desc_t *out)
{
    dnnl_dims_t dims = {0}, strides = {0};
    for (int d = 0; d < rank; d++) { /* fewer dimensions: ones behind */
        dims[d] = d < a->ndim ? a->shape[d] : 1;
        strides[d] = d < a->ndim ? a->strides[d] : 1;
    }
    return type_of(a->dtype) && dnnl_memory_desc_init_by_strides(out, rank, dims, type_of(a->dtype),
                                                                 strides) == dnnl_success;
}

static int bind(struct work *w, int id, const dnnl_memory_desc_t *d, void *data)
{
    w->arg[w->n].arg = id;
    return dnnl_memory_create(&w->arg[w->n++].memory, d, w->engine, data) == dnnl_success;
}

static int finish(struct work *w, const void *desc)
{
    dnnl_primitive_desc_t pd;
    if (dnnl_primitive_desc_create(&pd, desc, NULL, w->engine, NULL) != dnnl_success)
        return 0;
    int ok = dnnl_primitive_create(&w->primitive, pd) == dnnl_success;
    dnnl_primitive_desc_destroy(pd);
    return ok;
}

/* ---- the operations; each describes and binds ---- */

static int softmax(struct work *w, const kiln_peer_array *x, const kiln_peer_array *y)
{
    dnnl_memory_desc_t s, d;
    dnnl_softmax_v2_desc_t op;
    return describe(x, x->ndim, &s) && describe(y, y->ndim, &d) &&
           !dnnl_softmax_v2_forward_desc_init(&op, dnnl_forward_inference, dnnl_softmax_accurate,
                                              &s, &d, x->ndim - 1) &&
           finish(w, &op) && bind(w, DNNL_ARG_SRC, &s, x->data) &&
           bind(w, DNNL_ARG_DST, &d, y->data);
}

static int gelu(struct work *w, const kiln_peer_array *x, const kiln_peer_array *y,
                dnnl_alg_kind_t form)
{
    dnnl_memory_desc_t s, d;
    dnnl_eltwise_desc_t op;
    return describe(x, x->ndim, &s) && describe(y, y->ndim, &d) &&
           !dnnl_eltwise_forward_desc_init(&op, dnnl_forward_inference, form, &s, 0, 0) &&
           finish(w, &op) && bind(w, DNNL_ARG_SRC, &s, x->data) &&
           bind(w, DNNL_ARG_DST, &d, y->data);
}

static int layernorm(struct work *w, const kiln_peer_case *c, const kiln_peer_array *x,
                     const kiln_peer_array *y)
{
    dnnl_memory_desc_t s, d, g;
    dnnl_layer_normalization_desc_t op;
    const kiln_peer_array *gamma = array_of(c, "gamma"), *beta = array_of(c, "beta");
    unsigned flags = (gamma ? dnnl_use_scale : 0u) | (beta ? dnnl_use_shift : 0u);
    return (!gamma || gamma->dtype == KILN_F32) && (!beta || beta->dtype == KILN_F32) &&
           describe(x, x->ndim, &s) && describe(y, y->ndim, &d) &&
           !dnnl_layer_normalization_forward_desc_init(&op, dnnl_forward_inference, &s, NULL,
                                                       (float)scalar_of(c, "eps", 1e-5), flags) &&
           finish(w, &op) && bind(w, DNNL_ARG_SRC, &s, x->data) &&
           bind(w, DNNL_ARG_DST, &d, y->data) &&
           (!gamma || (describe(gamma, 1, &g) && bind(w, DNNL_ARG_SCALE, &g, gamma->data))) &&
           (!beta || (describe(beta, 1, &g) && bind(w, DNNL_ARG_SHIFT, &g, beta->data)));
}

static int sums(struct work *w, const kiln_peer_array *x, const kiln_peer_array *y)
{
    dnnl_memory_desc_t s, d;
    dnnl_reduction_desc_t op;
    return describe(x, 2, &s) && describe(y, 2, &d) &&
           !dnnl_reduction_desc_init(&op, dnnl_reduction_sum, &s, &d, 0, 0) && finish(w, &op) &&
           bind(w, DNNL_ARG_SRC, &s, x->data) && bind(w, DNNL_ARG_DST, &d, y->data);
}

static int product(struct work *w, const kiln_peer_case *c, char *why, size_t n)
{
    dnnl_memory_desc_t a, b, d;
    dnnl_matmul_desc_t op;
    const kiln_peer_array *x = array_of(c, "a"), *v = array_of(c, "b"), *y = array_of(c, "c");
    return is_product(c, why, n) && describe(x, 2, &a) && describe(v, 2, &b) &&
           describe(y, 2, &d) && !dnnl_matmul_desc_init(&op, &a, &b, NULL, &d) && finish(w, &op) &&
           bind(w, DNNL_ARG_SRC, &a, x->data) && bind(w, DNNL_ARG_WEIGHTS, &b, v->data) &&
           bind(w, DNNL_ARG_DST, &d, y->data);
}

static int choose(struct work *w, const kiln_peer_case *c, char *why, size_t n)
{
    const char *k = c->kernel;
    const kiln_peer_array *x = array_of(c, "x"), *y = array_of(c, "y"), *s = array_of(c, "s");
    if (strcmp(k, "matmul") == 0)
        return product(w, c, why, n);
    if (x && s && (strcmp(k, "rowsum") == 0 || strcmp(k, "rowsum_short") == 0))
        return sums(w, x, s);
    if (!x || !y)
        return 0;
    if (strcmp(k, "softmax") == 0 || strcmp(k, "softmax_online") == 0)
        return softmax(w, x, y);
    if (strcmp(k, "erf_form") == 0)
        return gelu(w, x, y, dnnl_eltwise_gelu_erf);
    if (strcmp(k, "tanh_form") == 0)
        return gelu(w, x, y, dnnl_eltwise_gelu_tanh);
    if (strcmp(k, "layernorm") == 0 || strcmp(k, "layernorm_looped") == 0)
        return layernorm(w, c, x, y);
    return 0;
}

/* ---- the peer ---- */

static void drop(void *state)
{
    struct work *w = state;
    for (int i = 0; i < w->n; i++)
        dnnl_memory_destroy(w->arg[i].memory);
    if (w->primitive)
        dnnl_primitive_destroy(w->primitive);
    if (w->stream)
        dnnl_stream_destroy(w->stream);
    if (w->engine)
        dnnl_engine_destroy(w->engine);
    free(w);
}

static void *prepare(const kiln_peer_case *c, char *why, size_t n)
{
    struct work *w = calloc(1, sizeof *w);
    snprintf(why, n, "it does not do this kernel or type");
    if (!w)
        return NULL;
    if (c->device == KILN_DEVICE_CPU) {
        omp_set_num_threads((int)c->threads);
        if (!dnnl_engine_create(&w->engine, dnnl_cpu, 0) &&
            !dnnl_stream_create(&w->stream, w->engine, dnnl_stream_default_flags) &&
            choose(w, c, why, n))
            return w;
    } else {
        snprintf(why, n, "this adapter runs on the CPU");
    }
    drop(w);
    return NULL;
}

static int run(void *state)
{
    struct work *w = state;
    dnnl_status_t st = dnnl_primitive_execute(w->primitive, w->stream, w->n, w->arg);
    return st ? (int)st : (int)dnnl_stream_wait(w->stream);
}

const kiln_peer *kiln_peer_get(uint32_t abi, size_t i)
{
    static const kiln_peer peer = {sizeof peer, "onednn", "2", prepare, run, drop};
    return abi == KILN_PEER_ABI && i == 0 ? &peer : NULL;
}
