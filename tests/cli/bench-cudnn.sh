# bench/peers/cudnn.c against a stand-in for cuDNN, which computes on the host by the plain definition
# and knows f32 alone, on the stand-in for the driver: what the adapter says of shapes, steps, padding
# and groups must give the kernels' results.  And the adapters build without a warning or a header.
fake=$(dirname "$KILN")/tests/fakecuda
[ -e "$fake/libcuda.so.1" ] || { echo "no fake driver is built" >&2; exit 77; }
which cc >/dev/null || { echo "no C compiler" >&2; exit 77; }
for p in cublas cudnn; do # each without its library's headers
    cc -Wall -Wextra -Werror -shared -fPIC -I"$SRC/include" "$SRC/bench/peers/$p.c" -o $p.so -ldl || exit 1
done
cat >fake.c <<'C'
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
int cuMemcpyDtoHAsync_v2(void *, uint64_t, size_t, void *);
int cuMemcpyHtoDAsync_v2(uint64_t, const void *, size_t, void *);
int cuCtxSynchronize(void);
enum { BAD = 2000, UNSUPPORTED = 3000 };
struct tensor { int type, n[4], s[4]; };
struct other { int v[9]; double beta; };
#define MAKE(name, type) \
    int cudnnCreate##name(void **d) { *d = calloc(1, sizeof(type)); return 0; } \
    int cudnnDestroy##name(void *d) { free(d); return 0; }
MAKE(TensorDescriptor, struct tensor)
MAKE(FilterDescriptor, struct tensor)
MAKE(ActivationDescriptor, struct other)
MAKE(PoolingDescriptor, struct other)
MAKE(ConvolutionDescriptor, struct other)
size_t cudnnGetVersion(void) { return 91907; }
const char *cudnnGetErrorString(int st) { return st == UNSUPPORTED ? "UNSUPPORTED" : "BAD"; }
int cudnnCreate(void **h) { *h = malloc(1); return 0; }
int cudnnDestroy(void *h) { free(h); return 0; }
int cudnnSetStream(void *h, void *s) { return !h || s ? BAD : 0; }
int cudnnSetTensor4dDescriptorEx(void *d, int type, int n, int c, int h, int w, int sn, int sc, int sh, int sw)
{
    *(struct tensor *)d = (struct tensor){type, {n, c, h, w}, {sn, sc, sh, sw}};
    return type ? UNSUPPORTED : 0;
}
int cudnnSetFilter4dDescriptor(void *d, int type, int format, int k, int c, int h, int w)
{
    *(struct tensor *)d = (struct tensor){type, {k, c, h, w}, {c * h * w, h * w, w, 1}};
    return format ? BAD : 0;
}
int cudnnSetActivationDescriptor(void *d, int mode, int nan, double coef)
{
    ((struct other *)d)->v[0] = mode;
    return nan != 1 || coef != 0 ? BAD : 0;
}
int cudnnSetActivationDescriptorSwishBeta(void *d, double beta) { ((struct other *)d)->beta = beta; return 0; }
int cudnnSetPooling2dDescriptor(void *d, int mode, int nan, int a, int b, int e, int f, int g, int h)
{
    *(struct other *)d = (struct other){{mode, a, b, e, f, g, h}};
    return nan != 1 ? BAD : 0;
}
int cudnnSetConvolution2dDescriptor(void *d, int ph, int pw, int sh, int sw, int dh, int dw, int mode, int type)
{
    *(struct other *)d = (struct other){{ph, pw, sh, sw, dh, dw, 1, -1}};
    return mode != 1 || type ? BAD : 0;
}
int cudnnSetConvolutionGroupCount(void *d, int n) { ((struct other *)d)->v[6] = n; return 0; }
int cudnnSetConvolutionMathType(void *d, int m) { ((struct other *)d)->v[7] = m; return 0; }

static size_t count(const struct tensor *t) { return (size_t)t->n[0] * t->n[1] * t->n[2] * t->n[3]; }
static float *get(const struct tensor *t, const void *at)
{
    float *p = malloc(count(t) * 4 + 4);
    return cuMemcpyDtoHAsync_v2(p, (uint64_t)at, count(t) * 4, 0) || cuCtxSynchronize() ? abort(), p : p;
}
static int put(const struct tensor *t, void *at, float *p)
{
    return cuMemcpyHtoDAsync_v2((uint64_t)at, p, count(t) * 4, 0) || cuCtxSynchronize();
}
static int units(const void *a, const void *b) { return *(const float *)a != 1 || *(const float *)b != 0; }
#define AT(p, t, a, b, c, d) (p)[(a) * (t)->s[0] + (b) * (t)->s[1] + (c) * (t)->s[2] + (d) * (t)->s[3]]

int cudnnSoftmaxForward(void *h, int how, int mode, const void *one, void *xd, const void *x, const void *zero, void *yd, void *y)
{
    struct tensor *t = xd;
    float *in = get(t, x), *out = get(yd, y);
    int spots = t->n[2] * t->n[3], per = mode ? t->n[1] : t->n[1] * spots;
    if (!h || how != 1 || units(one, zero))
        return BAD;
    for (int n = 0; n < t->n[0]; n++)
        for (int s = 0; s < (mode ? spots : 1); s++) {
            double most = -INFINITY, sum = 0;
            float *p = in + n * t->s[0] + s, *q = out + n * t->s[0] + s;
            int step = mode ? spots : 1;
            for (int i = 0; i < per; i++) most = fmax(most, p[i * step]);
            for (int i = 0; i < per; i++) sum += exp(p[i * step] - most);
            for (int i = 0; i < per; i++) q[i * step] = exp(p[i * step] - most) / sum;
        }
    return put(yd, y, out);
}
int cudnnActivationForward(void *h, void *d, const void *one, void *xd, const void *x, const void *zero, void *yd, void *y)
{
    float *p = get(xd, x);
    int mode = ((struct other *)d)->v[0];
    double beta = ((struct other *)d)->beta;
    for (size_t i = 0; i < count(xd); i++)
        p[i] = mode == 0 ? 1 / (1 + exp(-p[i])) : mode == 1 ? fmax(p[i], 0) : mode == 2 ? tanh(p[i])
             : mode == 6 ? p[i] / (1 + exp(-beta * p[i])) : NAN;
    return !h || units(one, zero) ? BAD : put(yd, y, p);
}
int cudnnPoolingForward(void *h, void *d, const void *one, void *xd, const void *x, const void *zero, void *yd, void *y)
{
    int *v = ((struct other *)d)->v;
    struct tensor *a = xd, *b = yd;
    float *in = get(a, x), *out = get(b, y);
    for (int n = 0; n < b->n[0]; n++) for (int c = 0; c < b->n[1]; c++)
    for (int i = 0; i < b->n[2]; i++) for (int j = 0; j < b->n[3]; j++) {
        double t = v[0] ? 0 : -INFINITY;
        int m = 0;
        for (int r = i * v[5] - v[3]; r < i * v[5] - v[3] + v[1]; r++)
            for (int s = j * v[6] - v[4]; s < j * v[6] - v[4] + v[2]; s++)
                if (r >= 0 && s >= 0 && r < a->n[2] && s < a->n[3]) {
                    double e = AT(in, a, n, c, r, s);
                    t = v[0] ? t + e : fmax(t, e);
                    m++;
                }
        AT(out, b, n, c, i, j) = v[0] == 1 ? t / (v[1] * v[2]) : v[0] == 2 ? t / m : t;
    }
    return !h || units(one, zero) ? BAD : put(yd, y, out);
}
int cudnnConvolutionForward(void *h, const void *one, void *xd, const void *x, void *wd, const void *w, void *cd, int how,
                            void *space, size_t bytes, const void *zero, void *yd, void *y)
{
    int *v = ((struct other *)cd)->v;
    struct tensor *a = xd, *f = wd, *b = yd;
    float *in = get(a, x), *k = get(f, w), *out = get(b, y);
    if (!h || units(one, zero) || how != 5 || bytes != 4096 || !space || (v[7] != 3 && v[7] != 1))
        return BAD;
    for (int n = 0; n < b->n[0]; n++) for (int o = 0; o < b->n[1]; o++)
    for (int i = 0; i < b->n[2]; i++) for (int j = 0; j < b->n[3]; j++) {
        double t = 0;
        int first = o / (b->n[1] / v[6]) * f->n[1];
        for (int c = 0; c < f->n[1]; c++) for (int p = 0; p < f->n[2]; p++) for (int q = 0; q < f->n[3]; q++) {
            int r = i * v[2] - v[0] + p * v[4], s = j * v[3] - v[1] + q * v[5];
            if (r >= 0 && s >= 0 && r < a->n[2] && s < a->n[3])
                t += (double)AT(in, a, n, first + c, r, s) * AT(k, f, o, c, p, q);
        }
        AT(out, b, n, o, i, j) = t;
    }
    return put(yd, y, out);
}
struct perf { int how, status; float time; size_t memory; int determinism, math, reserved[3]; };
int cudnnFindConvolutionForwardAlgorithmEx(void *h, void *xd, const void *x, void *wd, const void *w, void *cd, void *yd,
                                           void *y, int asked, int *got, struct perf *p, void *space, size_t bytes)
{
    *got = 2; /* the first one does not fit */
    p[0] = (struct perf){7, UNSUPPORTED, 0, 0, 0, 0, {0}};
    p[1] = (struct perf){5, 0, 1, 4096, 0, ((struct other *)cd)->v[7] == 3 ? 3 : 1, {0}};
    return !h || !x || !w || !y || !xd || !wd || !yd || asked != 8 || !space || bytes < 4096 ? BAD : 0;
}
C
cc -O1 -shared -fPIC fake.c -o libcudnn-fake.so "$fake/libcuda.so.1" -lm || exit 1
export KILN_CUDNN_WORKSPACE=1 KILN_CUDNN=$PWD/libcudnn-fake.so LD_LIBRARY_PATH="$fake" # found by both
unset CUDA_VISIBLE_DEVICES
b() {
    echo "== $*"
    f=$1
    shift
    "$KILN" bench --device cuda "$SRC/kernels/$f" "$@" --peer ./cudnn.so --samples 2 --measure cold --format csv 2>&1 |
        sed -n '/^cudnn/p; /error/p' | sed -E 's/^([^,]*),.*,(cold|failed|skipped),.*,(.*|".*),([^,]*|".*")$/\1 \2 \3 \4/
            s/for [0-9.e+-]+ of/for # of/'
}
b softmax.kiln:softmax x=5x70:f32
b softmax.kiln:softmax_columns x=20x33:f32
b softmax.kiln:softmax x=5x70:bf16
for act in 0 1 2 5; do b activation.kiln:act x=300:f32 -D ACT=$act; done
b pool.kiln:pool x=2x3x9x14:f32 -D KH=3 -D KW=2 -D SH=2 -D SW=3 PH=1
b pool.kiln:pool x=2x3x9x14:f32 -D KH=3 -D KW=2 -D MEAN=true PH=1 PW=1
b pool.kiln:pool x=2x3x9x14:f32 -D KH=3 -D MEAN=true -D INCLUDE=false PH=1 PW=1
b pool.kiln:pool x=2x3x9x14:f32 DH=2
b conv.kiln:conv2d x=2x4x9x12:f32 w=6x4x3x2:f32 PH=1 -D SW=2
b conv.kiln:conv2d x=1x4x9x12:f32 w=6x2x3x3:f32 groups=2 PH=2 PW=1 DH=2 -D SH=2
b conv.kiln:conv1d x=2x4x30:f32 w=6x4x3:f32 P=2 D=2 -D S=3
b rowsum.kiln:rowsum x=5x70:f32
