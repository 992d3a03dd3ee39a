/* cudnn.c - cuDNN 8 or 9 as a peer of `kiln bench` on a GPU: softmax, activations, pooling,
 * convolutions in one and two dimensions.
 *
 *     cc -O2 -shared -fPIC -Iinclude bench/peers/cudnn.c -o cudnn.so -ldl
 *
 * The library is opened at run time (libcudnn.so.9, .8, or what KILN_CUDNN names: PyTorch brings
 * one), so neither its headers nor a toolkit is needed to build this.  Convolutions take the fastest
 * algorithm that cuDNN finds by trying them, with at most 512 MiB of workspace (or as many as
 * KILN_CUDNN_WORKSPACE says).  f32 products are
 * exact ones, and a second implementation lets cuDNN use tf32; sums of f16 and bf16 are in f32. */
#include <dlfcn.h>
#include <stdlib.h>

#include "find.h"

/* Numbers of cudnn_graph_v9.h, cudnn_ops_v9.h and cudnn_cnn_v9.h; the same in version 8. */
enum { DATA_FLOAT = 0, DATA_DOUBLE = 1, DATA_HALF = 2, DATA_BFLOAT16 = 9 };
enum { TENSOR_NCHW = 0 };
enum { SOFTMAX_ACCURATE = 1, MODE_INSTANCE = 0, MODE_CHANNEL = 1 };
enum { ACT_SIGMOID = 0, ACT_RELU = 1, ACT_TANH = 2, ACT_SWISH = 6 };
enum { POOL_MAX = 0, POOL_MEAN_ALL = 1, POOL_MEAN_INSIDE = 2 };
enum { PROPAGATE_NAN = 1 };
enum { CROSS_CORRELATION = 1 };
enum { MATH_DEFAULT = 0, MATH_FMA = 3 };
enum { ALGORITHMS = 8, WORKSPACE_MIB = 512 };

/* cudnnConvolutionFwdAlgoPerf_t */
struct perf {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
};

/* Functions of libcudnn, and what they take.  Handles and descriptors are pointers. */
#define FUNCTIONS(F)                                                                               \
    F(Create, (void **handle))                                                                     \
    F(Destroy, (void *handle))                                                                     \
    F(SetStream, (void *handle, void *stream))                                                     \
    F(CreateTensorDescriptor, (void **d))                                                          \
    F(DestroyTensorDescriptor, (void *d))                                                          \
    F(SetTensor4dDescriptorEx,                                                                     \
      (void *d, int type, int n, int c, int h, int w, int sn, int sc, int sh, int sw))             \
    F(SoftmaxForward, (void *handle, int algorithm, int mode, const void *alpha, void *xd,         \
                       const void *x, const void *beta, void *yd, void *y))                        \
    F(CreateActivationDescriptor, (void **d))                                                      \
    F(DestroyActivationDescriptor, (void *d))                                                      \
    F(SetActivationDescriptor, (void *d, int mode, int nan, double coef))                          \
    F(SetActivationDescriptorSwishBeta, (void *d, double beta))                                    \
    F(ActivationForward, (void *handle, void *d, const void *alpha, void *xd, const void *x,       \
                          const void *beta, void *yd, void *y))                                    \
    F(CreatePoolingDescriptor, (void **d))                                                         \
    F(DestroyPoolingDescriptor, (void *d))                                                         \
    F(SetPooling2dDescriptor,                                                                      \
      (void *d, int mode, int nan, int wh, int ww, int ph, int pw, int sh, int sw))                \
    F(PoolingForward, (void *handle, void *d, const void *alpha, void *xd, const void *x,          \
                       const void *beta, void *yd, void *y))                                       \
    F(CreateFilterDescriptor, (void **d))                                                          \
    F(DestroyFilterDescriptor, (void *d))                                                          \
    F(SetFilter4dDescriptor, (void *d, int type, int format, int k, int c, int h, int w))          \
    F(CreateConvolutionDescriptor, (void **d))                                                     \
    F(DestroyConvolutionDescriptor, (void *d))                                                     \
    F(SetConvolution2dDescriptor,                                                                  \
      (void *d, int ph, int pw, int sh, int sw, int dh, int dw, int mode, int type))               \
    F(SetConvolutionGroupCount, (void *d, int groups))                                             \
    F(SetConvolutionMathType, (void *d, int math))                                                 \
    F(FindConvolutionForwardAlgorithmEx,                                                           \
      (void *handle, void *xd, const void *x, void *wd, const void *w, void *cd, void *yd,         \
       void *y, int asked, int *got, struct perf *perf, void *space, size_t bytes))                \
    F(ConvolutionForward,                                                                          \
      (void *handle, const void *alpha, void *xd, const void *x, void *wd, const void *w,          \
       void *cd, int algorithm, void *space, size_t bytes, const void *beta, void *yd, void *y))
/* Functions of libcuda, for the workspace. */
#define DRIVER(F)                                                                                  \
    F(DeviceGet, (int *device, int ordinal))                                                       \
    F(DevicePrimaryCtxRetain, (void **context, int device))                                        \
    F(CtxPushCurrent_v2, (void *context))                                                          \
    F(CtxPopCurrent_v2, (void **context))                                                          \
    F(MemAlloc_v2, (unsigned long long *at, size_t bytes))                                         \
    F(MemFree_v2, (unsigned long long at))

/* What all copies of a case share: the handle, the workspace, the algorithms that were found.  The
 * process is the peer's own, with one thread and one stream. */
static struct {
    void *lib, *driver;
    const char *(*text)(int status);
    size_t (*version)(void);
#define F(name, arguments) int(*name) arguments;
    FUNCTIONS(F)
    DRIVER(F)
#undef F
    int users, entered; /* entered: the context is on the thread's stack */
    void *handle;
    unsigned long long space; /* an address of the GPU */
    size_t bytes;             /* there */
    struct {
        int known, algorithm, math;
        size_t bytes;
    } found[2]; /* exact, tf32 */
} g;

static int find(void *lib, const char *prefix, const char *name, void *fn, size_t size, char *why,
                size_t n)
{
    char full[80];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    void *p = dlsym(lib, full);
    memcpy(fn, &p, size);
    if (!p)
        snprintf(why, n, "there is no %s", full);
    return p != NULL;
}

static int open_library(char *why, size_t n)
{
    static const char *const names[] = {"libcudnn.so.9", "libcudnn.so.8"};
    const char *own = getenv("KILN_CUDNN");
    if (g.lib)
        return 1;
    void *lib = own && *own ? dlopen(own, RTLD_NOW) : NULL;
    for (size_t i = 0; i < 2 && !lib; i++)
        lib = dlopen(names[i], RTLD_NOW);
    if (!lib) {
        snprintf(why, n, "%s", dlerror());
        return 0;
    }
#define F(name, arguments)                                                                         \
    if (!find(lib, "cudnn", #name, &g.name, sizeof g.name, why, n))                                \
        return 0;
    FUNCTIONS(F)
#undef F
    if (!find(lib, "cudnn", "GetErrorString", &g.text, sizeof g.text, why, n) ||
        !find(lib, "cudnn", "GetVersion", &g.version, sizeof g.version, why, n))
        return 0;
    g.lib = lib;
    return 1;
}

static int open_driver(char *why, size_t n)
{
    if (g.driver)
        return 1;
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) {
        snprintf(why, n, "%s", dlerror());
        return 0;
    }
#define F(name, arguments)                                                                         \
    if (!find(lib, "cu", #name, &g.name, sizeof g.name, why, n))                                   \
        return 0;
    DRIVER(F)
#undef F
    g.driver = lib;
    return 1;
}

static int said(int status, const char *what, char *why, size_t n)
{
    if (status)
        snprintf(why, n, "cudnn%s: %s (%d)", what, g.text(status), status);
    return status == 0;
}

/* The first user makes the handle in the device's primary context, which is Kiln's, too. */
static int enter(const kiln_peer_case *c, char *why, size_t n)
{
    int device;
    void *context;
    if (g.users++)
        return 1;
    if (!open_library(why, n) || !open_driver(why, n))
        return 0;
    if (g.DeviceGet(&device, c->device_index) || g.DevicePrimaryCtxRetain(&context, device) ||
        g.CtxPushCurrent_v2(context)) {
        snprintf(why, n, "the driver gives no context");
        return 0;
    }
    g.entered = 1;
    return said(g.Create(&g.handle), "Create", why, n) &&
           said(g.SetStream(g.handle, c->stream), "SetStream", why, n);
}

static void leave(void)
{
    void *context;
    if (--g.users)
        return;
    if (g.handle)
        g.Destroy(g.handle);
    if (g.space)
        g.MemFree_v2(g.space);
    if (g.entered)
        g.CtxPopCurrent_v2(&context);
    g.entered = 0;
    g.handle = NULL;
    g.space = 0;
    memset(g.found, 0, sizeof g.found);
}

/* ---- one copy of a case ---- */

struct work {
    int (*run)(struct work *w);
    const char *what;                  /* the function that it calls */
    void *xd, *yd, *wd, *cd, *ad, *pd; /* descriptors; NULL: none */
    const void *x, *w;
    void *y;
    int f64, mode, tf32;
    char text[2][8]; /* one and zero, as f32 or f64 */
};

static const void *number(struct work *w, int value)
{
    float f = (float)value;
    double d = value;
    memcpy(w->text[value], w->f64 ? (void *)&d : &f, w->f64 ? sizeof d : sizeof f);
    return w->text[value];
}

static int type_of(kiln_dtype t)
{
    return t == KILN_F32    ? DATA_FLOAT
           : t == KILN_F64  ? DATA_DOUBLE
           : t == KILN_F16  ? DATA_HALF
           : t == KILN_BF16 ? DATA_BFLOAT16
                            : -1;
}

/* A dense array of one to four axes as four: `front` says where its first one stands. */
static int describe(const kiln_peer_array *a, const int at[4], void **d, char *why, size_t n)
{
    int64_t shape[4] = {1, 1, 1, 1}, all = 1;
    for (int32_t i = 0; i < a->ndim && i < 4; i++)
        shape[at[i]] = a->shape[i];
    for (int i = 0; i < 4; i++)
        all *= shape[i];
    if (type_of(a->dtype) < 0 || a->ndim > 4 || !is_dense(a) || all > INT32_MAX) {
        snprintf(why, n, "not this type, or more than 2^31 elements");
        return 0;
    }
    int s[4] = {(int)shape[0], (int)shape[1], (int)shape[2], (int)shape[3]};
    return said(g.CreateTensorDescriptor(d), "CreateTensorDescriptor", why, n) &&
           said(g.SetTensor4dDescriptorEx(*d, type_of(a->dtype), s[0], s[1], s[2], s[3],
                                          s[1] * s[2] * s[3], s[2] * s[3], s[3], 1),
                "SetTensor4dDescriptorEx", why, n);
}

static int run_softmax(struct work *w)
{
    return g.SoftmaxForward(g.handle, SOFTMAX_ACCURATE, w->mode, number(w, 1), w->xd, w->x,
                            number(w, 0), w->yd, w->y);
}

static int softmax(struct work *w, const kiln_peer_array *x, const kiln_peer_array *y, int columns,
                   char *why, size_t n)
{
    static const int rows[] = {0, 1, 2, 3}, cols[] = {1, 3, 0, 2};
    w->run = run_softmax;
    w->what = "SoftmaxForward";
    w->mode = columns ? MODE_CHANNEL : MODE_INSTANCE;
    return x->ndim == 2 && describe(x, columns ? cols : rows, &w->xd, why, n) &&
           describe(y, columns ? cols : rows, &w->yd, why, n);
}

static int run_activation(struct work *w)
{
    return g.ActivationForward(g.handle, w->ad, number(w, 1), w->xd, w->x, number(w, 0), w->yd,
                               w->y);
}

static int activation(struct work *w, const kiln_peer_case *c, const kiln_peer_array *x,
                      const kiln_peer_array *y, char *why, size_t n)
{
    static const int mode[] = {ACT_RELU, ACT_SWISH, -1, -1, ACT_SIGMOID, ACT_TANH};
    static const int last[] = {3, 0, 1, 2};
    int act = (int)scalar_of(c, "ACT", -1);
    if (act < 0 || act > 5 || mode[act] < 0) {
        snprintf(why, n, "cudnnActivationForward has no GELU");
        return 0;
    }
    w->run = run_activation;
    w->what = "ActivationForward";
    return x->ndim == 1 && describe(x, last, &w->xd, why, n) && describe(y, last, &w->yd, why, n) &&
           said(g.CreateActivationDescriptor(&w->ad), "CreateActivationDescriptor", why, n) &&
           said(g.SetActivationDescriptor(w->ad, mode[act], PROPAGATE_NAN, 0),
                "SetActivationDescriptor", why, n) &&
           (mode[act] != ACT_SWISH || said(g.SetActivationDescriptorSwishBeta(w->ad, 1),
                                           "SetActivationDescriptorSwishBeta", why, n));
}

static int run_pool(struct work *w)
{
    return g.PoolingForward(g.handle, w->pd, number(w, 1), w->xd, w->x, number(w, 0), w->yd, w->y);
}

static int whole(const kiln_peer_case *c, const char *name, int otherwise)
{
    return (int)scalar_of(c, name, otherwise);
}

static int pool(struct work *w, const kiln_peer_case *c, const kiln_peer_array *x,
                const kiln_peer_array *y, char *why, size_t n)
{
    static const int same[] = {0, 1, 2, 3};
    int mode = !whole(c, "MEAN", 0)     ? POOL_MAX
               : whole(c, "INCLUDE", 1) ? POOL_MEAN_ALL
                                        : POOL_MEAN_INSIDE;
    if (whole(c, "DH", 1) != 1 || whole(c, "DW", 1) != 1) {
        snprintf(why, n, "cudnnPoolingForward has no dilation");
        return 0;
    }
    w->run = run_pool;
    w->what = "PoolingForward";
    return x->ndim == 4 && describe(x, same, &w->xd, why, n) && describe(y, same, &w->yd, why, n) &&
           said(g.CreatePoolingDescriptor(&w->pd), "CreatePoolingDescriptor", why, n) &&
           said(g.SetPooling2dDescriptor(w->pd, mode, PROPAGATE_NAN, whole(c, "KH", 2),
                                         whole(c, "KW", 2), whole(c, "PH", 0), whole(c, "PW", 0),
                                         whole(c, "SH", 2), whole(c, "SW", 2)),
                "SetPooling2dDescriptor", why, n);
}

static int run_convolution(struct work *w)
{
    return g.ConvolutionForward(g.handle, number(w, 1), w->xd, w->x, w->wd, w->w, w->cd,
                                g.found[w->tf32].algorithm, (void *)(uintptr_t)g.space,
                                g.found[w->tf32].bytes, number(w, 0), w->yd, w->y);
}

/* The fastest algorithm by trial, once a case.  Exact f32 keeps its math; elsewhere cuDNN says which
 * one the algorithm wants. */
static int choose(struct work *w, int exact, char *why, size_t n)
{
    struct perf p[ALGORITHMS];
    const char *own = getenv("KILN_CUDNN_WORKSPACE");
    long mib = own ? strtol(own, NULL, 10) : 0;
    int got = 0;
    g.bytes = (size_t)(mib > 0 ? mib : WORKSPACE_MIB) << 20;
    if (!g.space && g.MemAlloc_v2(&g.space, g.bytes)) {
        snprintf(why, n, "no memory for a workspace");
        return 0;
    }
    if (!g.found[w->tf32].known) {
        int st = g.FindConvolutionForwardAlgorithmEx(g.handle, w->xd, w->x, w->wd, w->w, w->cd,
                                                     w->yd, w->y, ALGORITHMS, &got, p,
                                                     (void *)(uintptr_t)g.space, g.bytes);
        if (!said(st, "FindConvolutionForwardAlgorithmEx", why, n))
            return 0;
        int i = 0;
        while (i < got && (p[i].status || p[i].memory > g.bytes))
            i++;
        if (i == got) {
            snprintf(why, n, "no algorithm of cuDNN does this");
            return 0;
        }
        g.found[w->tf32].known = 1;
        g.found[w->tf32].algorithm = p[i].algorithm;
        g.found[w->tf32].math = p[i].math;
        g.found[w->tf32].bytes = p[i].memory;
    }
    return exact || said(g.SetConvolutionMathType(w->cd, g.found[w->tf32].math),
                         "SetConvolutionMathType", why, n);
}

/* One axis is that of rows with a single row. */
static int convolution(struct work *w, const kiln_peer_case *c, const kiln_peer_array *x,
                       const kiln_peer_array *y, int flat, char *why, size_t n)
{
    static const int two[] = {0, 1, 2, 3}, one[] = {0, 1, 3, 2};
    const kiln_peer_array *f = array_of(c, "w");
    const int *at = flat ? one : two;
    int rank = flat ? 3 : 4, size[4] = {1, 1, 1, 1}, exact = 0;
    if (!f || f->ndim != rank || x->ndim != rank || array_of(c, "bias") ||
        whole(c, "ACT", 0) != 0) {
        snprintf(why, n, "this adapter has neither bias nor activation");
        return 0;
    }
    for (int i = 0; i < rank; i++)
        size[at[i]] = (int)f->shape[i];
    if (f->dtype != x->dtype || !is_dense(f)) {
        snprintf(why, n, "types that differ");
        return 0;
    }
    exact = x->dtype == KILN_F32 && !w->tf32;
    w->run = run_convolution;
    w->what = "ConvolutionForward";
    w->w = f->data;
    return describe(x, at, &w->xd, why, n) && describe(y, at, &w->yd, why, n) &&
           said(g.CreateFilterDescriptor(&w->wd), "CreateFilterDescriptor", why, n) &&
           said(g.SetFilter4dDescriptor(w->wd, type_of(f->dtype), TENSOR_NCHW, size[0], size[1],
                                        size[2], size[3]),
                "SetFilter4dDescriptor", why, n) &&
           said(g.CreateConvolutionDescriptor(&w->cd), "CreateConvolutionDescriptor", why, n) &&
           said(g.SetConvolution2dDescriptor(
                    w->cd, flat ? 0 : whole(c, "PH", 0), whole(c, flat ? "P" : "PW", 0),
                    flat ? 1 : whole(c, "SH", 1), whole(c, flat ? "S" : "SW", 1),
                    flat ? 1 : whole(c, "DH", 1), whole(c, flat ? "D" : "DW", 1), CROSS_CORRELATION,
                    w->f64 ? DATA_DOUBLE : DATA_FLOAT),
                "SetConvolution2dDescriptor", why, n) &&
           said(g.SetConvolutionGroupCount(w->cd, whole(c, "groups", 1)),
                "SetConvolutionGroupCount", why, n) &&
           said(g.SetConvolutionMathType(w->cd, exact ? MATH_FMA : MATH_DEFAULT),
                "SetConvolutionMathType", why, n) &&
           choose(w, exact, why, n);
}

/* ---- the peer ---- */

static void drop(void *state)
{
    struct work *w = state;
    if (w->xd)
        g.DestroyTensorDescriptor(w->xd);
    if (w->yd)
        g.DestroyTensorDescriptor(w->yd);
    if (w->wd)
        g.DestroyFilterDescriptor(w->wd);
    if (w->cd)
        g.DestroyConvolutionDescriptor(w->cd);
    if (w->ad)
        g.DestroyActivationDescriptor(w->ad);
    if (w->pd)
        g.DestroyPoolingDescriptor(w->pd);
    free(w);
    leave();
}

static int run(void *state)
{
    struct work *w = state;
    return w->run(w);
}

static int make(struct work *w, const kiln_peer_case *c, char *why, size_t n)
{
    const char *k = c->kernel;
    const kiln_peer_array *x = array_of(c, "x"), *y = array_of(c, "y");
    int flat = strcmp(k, "conv1d") == 0, convolves = flat || strcmp(k, "conv2d") == 0;
    if (!x || !y || x->dtype != y->dtype)
        return 0;
    if (w->tf32 && (!convolves || x->dtype != KILN_F32)) {
        snprintf(why, n, "tf32 is for convolutions of f32");
        return 0;
    }
    w->x = x->data;
    w->y = y->data;
    w->f64 = x->dtype == KILN_F64;
    if (convolves)
        return convolution(w, c, x, y, flat, why, n);
    if (strcmp(k, "softmax") == 0 || strcmp(k, "softmax_online") == 0)
        return softmax(w, x, y, 0, why, n);
    if (strcmp(k, "softmax_columns") == 0)
        return softmax(w, x, y, 1, why, n);
    if (strcmp(k, "act") == 0)
        return activation(w, c, x, y, why, n);
    if (strcmp(k, "pool") == 0)
        return pool(w, c, x, y, why, n);
    return 0;
}

static void *prepare(const kiln_peer_case *c, int tf32, char *why, size_t n)
{
    snprintf(why, n, "it does not do this kernel");
    if (c->device != KILN_DEVICE_CUDA) {
        snprintf(why, n, "cudnn runs on a GPU");
        return NULL;
    }
    struct work *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->tf32 = tf32;
    /* what cuDNN does not support shows at the first run */
    if (enter(c, why, n) && make(w, c, why, n) && said(run(w), w->what, why, n))
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

const kiln_peer *kiln_peer_get(uint32_t abi, size_t i)
{
    static char version[40], why[200];
    static const kiln_peer peer[2] = {
        {sizeof(kiln_peer), "cudnn", version, prepare_exact, run, drop},
        {sizeof(kiln_peer), "cudnn tf32", version, prepare_tf32, run, drop}};
    if (!*version && open_library(why, sizeof why)) {
        unsigned v = (unsigned)g.version(), step = v >= 10000 ? 10000 : 1000; /* 91900, or 8907 */
        snprintf(version, sizeof version, "%u.%u.%u", v / step, v % step / 100, v % 100);
    }
    return abi == KILN_PEER_ABI && i < 2 ? &peer[i] : NULL;
}
