/* cuda.c - opening the CUDA driver, devices, the context, and errors in words.
 *
 * The library is opened for each kl_cuda and never closed: the driver starts threads and
 * registers exit handlers of its own, and survives no unloading.  dlopen counts, so that this
 * costs nothing but the first time. */
#include "rt/cuda.h"

#include <dlfcn.h>
#include <stdio.h>

kiln_status kl_cuda_fail(kl_cudaerr *e, enum kl_code diag, kiln_status s, const char *fmt, ...)
{
    va_list ap;
    e->diag = diag;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    return s;
}

/* ---- errors ---- */

bool kl_cuda_is_fault(int cu)
{
    static const int faults[] = {KL_CU_ECC, KL_CU_ILLEGAL_ADDRESS, KL_CU_TIMEOUT, KL_CU_ASSERT};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (cu == faults[i])
            return true;
    return cu >= KL_CU_FIRST_FAULT && cu <= KL_CU_LAST_FAULT;
}

static kiln_status describe(const struct kl_cuda_api *api, int cu, const char *call, kl_cudaerr *e)
{
    const char *name = NULL, *text = NULL;
    if (api->GetErrorName && api->GetErrorName(cu, &name))
        name = NULL;
    if (api->GetErrorString && api->GetErrorString(cu, &text))
        text = NULL;
    name = name ? name : "unknown error";
    text = text ? text : "the driver has no text for it";
    e->cu = cu;
    if (cu == KL_CU_OUT_OF_MEMORY)
        return kl_cuda_fail(e, KL_K1814, KILN_E_NOMEM, "%s: %s (%s, %d)", call, text, name, cu);
    if (cu == KL_CU_NO_DEVICE)
        return kl_cuda_fail(e, KL_K1811, KILN_E_DEVICE, "%s: %s (%s, %d)", call, text, name, cu);
    if (kl_cuda_is_fault(cu))
        return kl_cuda_fail(e, KL_K1815, KILN_E_DEVICE,
                            "a kernel failed on the device: %s (%s, %d, noticed by %s)", text, name,
                            cu, call);
    return kl_cuda_fail(e, KL_K1816, KILN_E_DEVICE, "%s: %s (%s, %d)", call, text, name, cu);
}

kiln_status kl_cuda_check(kl_cuda *c, int cu, const char *call, kl_cudaerr *e)
{
    if (!cu)
        return KILN_OK;
    kiln_status s = describe(&c->api, cu, call, e);
    size_t left = 0, total = 0;
    if (cu == KL_CU_OUT_OF_MEMORY && !c->api.MemGetInfo(&left, &total)) {
        size_t n = strlen(e->text);
        snprintf(e->text + n, sizeof e->text - n, "; %zu MiB of %zu MiB are free on %s",
                 left >> 20, total >> 20, c->info.name);
    }
    if (kl_cuda_is_fault(cu))
        kl_cuda_blame(c, e);
    return s;
}

/* ---- the library ---- */

static kiln_status open_library(const char *path, void **lib, struct kl_cuda_api *api,
                                kl_cudaerr *e)
{
    static const struct {
        const char *symbol;
        size_t at;
        int need;
    } entry[] = {
#define CUDA(field, symbol, need, param) {#symbol, offsetof(struct kl_cuda_api, field), need},
#include "rt/cuda.def"
    };
    *e = (kl_cudaerr){0};
    *lib = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!*lib) {
        const char *why = dlerror();
        return kl_cuda_fail(e, KL_K1810, KILN_E_DEVICE,
                            "the CUDA driver cannot be loaded: %s; it comes with NVIDIA's driver",
                            why ? why : "unknown reason");
    }
    for (size_t i = 0; i < sizeof entry / sizeof *entry; i++) {
        void *p = dlsym(*lib, entry[i].symbol);
        if (!p && entry[i].need)
            return kl_cuda_fail(e, KL_K1810, KILN_E_DEVICE,
                                "the CUDA driver lacks %s: it is older than CUDA 11.0",
                                entry[i].symbol);
        memcpy((char *)api + entry[i].at, &p, sizeof p); /* POSIX: functions fit void * */
    }
    int cu = api->Init(0);
    return cu ? (describe(api, cu, "cuInit", e),
                 cu == KL_CU_NO_DEVICE ? (e->diag = KL_K1811) : (e->diag = KL_K1810),
                 KILN_E_DEVICE)
              : KILN_OK;
}

/* ---- devices ---- */

static kiln_status read_info(const struct kl_cuda_api *api, int ordinal, kl_cudainfo *i,
                             int *device, kl_cudaerr *e)
{
    const struct {
        int number, *to;
        bool need;
    } attr[] = {
        {KL_CU_DEV_MAJOR, &i->major, true},       {KL_CU_DEV_MINOR, &i->minor, true},
        {KL_CU_DEV_SMS, &i->sms, true},           {KL_CU_DEV_THREADS, &i->threads, true},
        {KL_CU_DEV_GRID_X, &i->grid_x, true},     {KL_CU_DEV_SHARED, &i->shared, true},
        {KL_CU_DEV_SHARED_OPTIN, &i->shared_optin, true},
        {KL_CU_DEV_CLOCK, &i->clock_khz, false},  {KL_CU_DEV_MEM_CLOCK, &i->mem_clock_khz, false},
        {KL_CU_DEV_BUS, &i->bus_bits, false},     {KL_CU_DEV_L2, &i->l2_bytes, false},
        {KL_CU_DEV_SM_THREADS, &i->sm_threads, false},
        {KL_CU_DEV_SM_SHARED, &i->sm_shared, false},
        {KL_CU_DEV_SM_REGISTERS, &i->sm_registers, false},
    };
    size_t bytes = 0;
    *i = (kl_cudainfo){.ordinal = ordinal};
    int cu = api->DriverGetVersion(&i->driver);
    if (!cu)
        cu = api->DeviceGetCount(&i->count);
    if (cu)
        return describe(api, cu, "cuDeviceGetCount", e);
    if (i->count == 0)
        return kl_cuda_fail(e, KL_K1811, KILN_E_DEVICE, "the CUDA driver sees no device");
    if (ordinal < 0 || ordinal >= i->count)
        return kl_cuda_fail(e, KL_K1811, KILN_E_DEVICE,
                            "there is no CUDA device %d: the driver sees %d (0 to %d)", ordinal,
                            i->count, i->count - 1);
    cu = api->DeviceGet(device, ordinal);
    if (!cu)
        cu = api->DeviceGetName(i->name, sizeof i->name, *device);
    if (!cu)
        cu = api->DeviceTotalMem(&bytes, *device);
    i->memory = bytes;
    for (size_t k = 0; k < sizeof attr / sizeof *attr && !cu; k++) {
        cu = api->DeviceGetAttribute(attr[k].to, attr[k].number, *device);
        if (cu && !attr[k].need) {
            *attr[k].to = 0;
            cu = 0;
        }
    }
    return cu ? describe(api, cu, "cuDeviceGetAttribute", e) : KILN_OK;
}

kiln_status kl_cuda_list(const kl_alloc *al, const char *lib, kl_cudainfo *info, int room, int *n,
                         kl_cudaerr *e)
{
    struct kl_cuda_api api = {0};
    void *handle;
    int device;
    (void)al;
    *n = 0;
    kiln_status s = open_library(lib, &handle, &api, e);
    if (s)
        return s;
    int cu = api.DeviceGetCount(n);
    if (cu)
        return describe(&api, cu, "cuDeviceGetCount", e);
    for (int i = 0; i < *n && i < room && !s; i++)
        s = read_info(&api, i, &info[i], &device, e);
    return s;
}

kiln_status kl_cuda_open(const kl_alloc *al, const char *lib, int index, kl_cuda **out,
                         kl_cudaerr *e)
{
    *e = (kl_cudaerr){0};
    *out = NULL;
    kl_cuda *c = al->fn(al->user, NULL, 0, sizeof *c);
    if (!c)
        return KILN_E_NOMEM;
    memset(c, 0, sizeof *c);
    c->al = *al;
    pthread_mutex_init(&c->lock, NULL);
    kiln_status s = open_library(lib, &c->lib, &c->api, e);
    if (!s)
        s = read_info(&c->api, index, &c->info, &c->device, e);
    if (!s && c->info.major < 8)
        s = kl_cuda_fail(e, KL_K1811, KILN_E_UNSUPPORTED,
                         "%s has compute capability %d.%d; Kiln needs 8.0 or higher", c->info.name,
                         c->info.major, c->info.minor);
    if (!s) {
        int cu = c->api.CtxRetain(&c->ctx, c->device);
        if (cu) {
            s = describe(&c->api, cu, "cuDevicePrimaryCtxRetain", e);
            c->ctx = NULL;
        }
    }
    if (s) {
        kl_cuda_close(c);
        return s;
    }
    *out = c;
    return KILN_OK;
}

void kl_cuda_close(kl_cuda *c)
{
    if (!c)
        return;
    if (c->ctx)
        c->api.CtxRelease(c->device);
    pthread_mutex_destroy(&c->lock);
    kl_alloc al = c->al;
    al.fn(al.user, c, sizeof *c, 0);
}

const kl_cudainfo *kl_cuda_info(const kl_cuda *c)
{
    return &c->info;
}

const struct kl_cuda_api *kl_cuda_calls(const kl_cuda *c)
{
    return &c->api;
}

/* ---- the context ---- */

int kl_cuda_enter(kl_cuda *c, kl_cudaerr *e)
{
    void *now = NULL;
    if (!c->api.CtxGetCurrent(&now) && now == c->ctx)
        return 0; /* it is current, as with every host that uses the runtime API: no push */
    int cu = c->api.CtxPush(c->ctx);
    if (!cu)
        return 1;
    if (e)
        kl_cuda_check(c, cu, "cuCtxPushCurrent", e);
    return -1;
}

void kl_cuda_leave(kl_cuda *c, int pushed)
{
    void *old;
    if (pushed > 0)
        c->api.CtxPop(&old);
}

int kl_cuda_ptx_of_driver(int driver)
{
    int major = driver / 1000, minor = driver % 1000 / 10;
    if (major == 11)
        return 70 + (minor > 8 ? 8 : minor);
    if (major == 12)
        return 80 + (minor <= 5 ? minor : minor - 1); /* 12.6 brought no new version */
    return major >= 13 ? 90 + (major - 13) * 10 + (minor > 9 ? 9 : minor) : 0;
}
