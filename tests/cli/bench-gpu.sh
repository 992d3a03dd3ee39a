# `kiln bench` on a GPU: the driver is the one of tests/fakecuda, whose events are always 20 us apart,
# and NVML one that says what the environment tells it to.
fake=$(dirname "$KILN")/tests/fakecuda
[ -e "$fake/libcuda.so.1" ] || { echo "no fake driver is built" >&2; exit 77; }
which cc >/dev/null || { echo "no C compiler" >&2; exit 77; }
unset CUDA_VISIBLE_DEVICES
cat >nvml.c <<'C'
#include <stdlib.h>
#include <string.h>
static unsigned env(const char *name) { const char *s = getenv(name); return s ? (unsigned)atoi(s) : 0; }
int nvmlInit_v2(void) { return env("NVML_FAIL") ? 1 : 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out) { static int it; *out = &it; return i > 1; }
int nvmlDeviceGetHandleByUUID(const char *s, void **out) { static int it; *out = &it; return s[4] != '1'; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { return n < 8 || !strcpy(s, "580.01"); }
int nvmlDeviceGetClockInfo(void *d, unsigned type, unsigned *mhz) { (void)d; *mhz = env("NVML_MHZ"); return type != 1; }
int nvmlDeviceGetMaxClockInfo(void *d, unsigned type, unsigned *mhz) { (void)d; *mhz = 1980; return type != 1; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *r) { (void)d; *r = env("NVML_WHY"); return 0; }
C
mkdir nvml
cc -shared -fPIC nvml.c -o nvml/libnvidia-ml.so.1
cat >k.kiln <<'K'
kernel one(i64 n, type T = f32, T y[n], const T x[n], constexpr i64 B = 256) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B];
}
kernel grow(i64 n, f32 x[n], constexpr i64 B = 256) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    x[i:B] += 1;
}
K
gpu() { LD_LIBRARY_PATH=$fake "$KILN" bench --device cuda --samples 20 --measure cold,warm "$@" 2>&1; }
echo "== rows"
gpu k.kiln:one 'x={n}:f32' --sweep n=1000,100000 --format csv | cut -d, -f1,3-5,7-17
gpu k.kiln:one 'x={n}:f32' --sweep n=1000,100000 | grep ^cold
gpu k.kiln:grow x=50000:f32 --format json | grep -E '"(cold_by|copies|check|median|state|values)"'
gpu k.kiln:one k.kiln:grow x=1000:f32 --measure warm -D B=128,256 --format csv | cut -d, -f1-3,8,23-26
gpu k.kiln:one x=3000:f32 --device cuda,sim --format csv | cut -d, -f1-7,31
gpu k.kiln:one x=15000:f32 --format csv | cut -d, -f1-7,31-32 # 18 copies, of which two run twice
echo "== a baseline"
gpu k.kiln:one x=1000:f32 --save a.json -o none.txt
gpu k.kiln:one x=1000:f32 --baseline a.json --fail-on 1% --format csv | cut -d, -f1,7,27-30
sed 's/"median": 0.0[0-9]*/"median": 0.01/; s/^\( *\)0\.01999*[0-9]*/\10.01/; s/^\( *\)0\.02[0-9]*/\10.01/' a.json >b.json
gpu k.kiln:one x=1000:f32 --baseline b.json --fail-on 1% --format csv | cut -d, -f1,7,27-30
gpu k.kiln:one x=1000:f32 --baseline b.json --fail-on 1% >/dev/null
echo "rc $?"
gpu k.kiln:one x=1000:f32 --baseline b.json --fail-on 120% >/dev/null
echo "rc $?"
echo "== the clock"
clock() { LD_LIBRARY_PATH=$fake:$PWD/nvml NVML_MHZ=$1 NVML_WHY=$2 "$KILN" bench --device cuda \
    --samples 20 --measure warm k.kiln:one x=1000:f32 2>&1 | grep -vE '^(device|kernel|checked|$)' |
    sed -E 's/; a launch.*//; s/[0-9.]+ ns *$/#/'; }
clock 1980 0
clock 1485 36
clock 1484 4
for d in 1 7 0,1 GPU-1234 GPU-99 ''; do
    echo "devices $d: $(export CUDA_VISIBLE_DEVICES=$d; clock 1700 0 | grep -o 'clock .*;')"
done
LD_LIBRARY_PATH=$fake:$PWD/nvml NVML_FAIL=1 "$KILN" bench --device cuda --samples 3 --measure warm \
    k.kiln:one x=1000:f32 | grep -o 'clock unknown; throttling: unknown'
echo "== a library beside it"
cat >peer.c <<'C'
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "kiln_peer.h"
/* A launch of the stand-in's driver would need PTX: two copies and a loop of the host do. */
static int (*get)(int *, int), (*retain)(void **, int), (*push)(void *), (*pop)(void **), (*wait)(void);
static int (*to_host)(void *, uint64_t, size_t, void *), (*to_device)(uint64_t, const void *, size_t, void *);
static void find(void *fn, const char *name)
{
    void *p = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
    memcpy(fn, &p, sizeof p);
}
struct work { uint64_t x, y; int64_t n; float *tmp; };
static void *prepare(const kiln_peer_case *c, char *why, size_t n)
{
    (void)why, (void)n;
    struct work *w = calloc(1, sizeof *w);
    find(&get, "cuDeviceGet");
    find(&retain, "cuDevicePrimaryCtxRetain");
    find(&push, "cuCtxPushCurrent_v2");
    find(&pop, "cuCtxPopCurrent_v2");
    find(&wait, "cuCtxSynchronize");
    find(&to_host, "cuMemcpyDtoHAsync_v2");
    find(&to_device, "cuMemcpyHtoDAsync_v2");
    for (size_t i = 0; i < c->narray; i++)
        *(c->array[i].writes ? &w->y : &w->x) = (uint64_t)(uintptr_t)c->array[i].data;
    w->n = c->array[0].shape[0];
    w->tmp = malloc(w->n * sizeof(float));
    return c->device == KILN_DEVICE_CUDA ? w : NULL;
}
static int run(void *s)
{
    struct work *w = s;
    void *ctx;
    int dev, rc = get(&dev, 0) + retain(&ctx, dev) + push(ctx) + to_host(w->tmp, w->x, w->n * 4, NULL) +
             wait();
    for (int64_t i = 0; i < w->n; i++)
        w->tmp[i] *= 2;
    return rc + to_device(w->y, w->tmp, w->n * 4, NULL) + pop(&ctx);
}
static int fail(void *s) { (void)s; return 700; }
static void drop(void *s) { free(((struct work *)s)->tmp), free(s); }
const kiln_peer *kiln_peer_get(uint32_t abi, size_t i)
{
    static const kiln_peer p[] = {{sizeof *p, "it", "1", prepare, run, drop},
                                  {sizeof *p, "it failing", "1", prepare, fail, drop},
                                  {sizeof *p, "it too", "1", prepare, run, drop}};
    return abi == KILN_PEER_ABI && i < 3 ? &p[i] : NULL;
}
C
cc -O1 -shared -fPIC -I"$SRC/include" peer.c -o peer.so || exit 1
gpu k.kiln:one x=15000:f32 --peer peer.so --format csv | cut -d, -f1,3,5-8,14,15,31- | sed -E 's/for [0-9.e+-]+ of/for # of/'
gpu k.kiln:one x=15000:f32 --peer peer.so --format json |
    grep -E '"(kernel|cold_by|copies|launch_ns)"' | sed -E 's/("launch_ns": )[0-9.]+/\1#/'
