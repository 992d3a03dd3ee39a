/* cudamod.c - from PTX to a function on the device.
 *
 * The driver's assembler takes tens of milliseconds, loading a finished cubin less than one.
 * So PTX is linked to a cubin, which is kept in the object cache under a key of the text, the
 * device's architecture and the driver's version, and always the cubin is loaded. */
#include "rt/cuda.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOG = 8192 };

static void key_of(const kl_cuda *c, const char *ptx, size_t len, uint8_t key[32])
{
    kl_sha256 h;
    char head[80];
    snprintf(head, sizeof head, "kiln cubin 1, sm_%d%d, driver %d", c->info.major, c->info.minor,
             c->info.driver);
    kl_sha256_init(&h);
    kl_sha256_str(&h, head);
    kl_sha256_add(&h, ptx, len);
    kl_sha256_end(&h, key);
}

/* The number behind a directive: ".version 7.8" -> 78; 0 if there is none. */
static int version_of(const char *ptx)
{
    const char *p = strstr(ptx, ".version");
    int major = 0, minor = 0;
    if (!p || sscanf(p, ".version %d.%d", &major, &minor) != 2)
        return 0;
    return major * 10 + minor;
}

static void target_of(const char *ptx, char out[16])
{
    const char *p = strstr(ptx, ".target");
    out[0] = 0;
    if (p)
        sscanf(p, ".target %15[a-z0-9_]", out);
}

/* The first words of a log, on one line. */
static void append_log(kl_cudaerr *e, const char *log)
{
    size_t n = strlen(e->text);
    if (!*log)
        return;
    n += (size_t)snprintf(e->text + n, sizeof e->text - n, "; it says: ");
    for (bool blank = false; *log && n + 4 < sizeof e->text; log++) {
        bool space = *log == '\n' || *log == ' ' || *log == '\t';
        if (space && blank)
            continue;
        e->text[n++] = space ? ' ' : *log;
        blank = space;
    }
    while (n && e->text[n - 1] == ' ')
        n--;
    e->text[n] = 0;
}

static kiln_status too_old(const kl_cuda *c, const char *ptx, const char *name, kl_cudaerr *e)
{
    int have = kl_cuda_ptx_of_driver(c->info.driver), need = version_of(ptx);
    char target[16];
    target_of(ptx, target);
    return kl_cuda_fail(e, KL_K1812, KILN_E_UNSUPPORTED,
                        "the driver (CUDA %d.%d) supports PTX %d.%d, and kernel `%s` needs %d.%d "
                        "for %s; a newer NVIDIA driver is needed",
                        c->info.driver / 1000, c->info.driver % 1000 / 10, have / 10, have % 10,
                        name, need / 10, need % 10, target);
}

/* Why the assembler refused. */
static kiln_status refused(kl_cuda *c, int cu, const char *ptx, const char *name, const char *log,
                           kl_cudaerr *e)
{
    e->cu = cu;
    switch (cu) {
    case KL_CU_OLD_DRIVER:
        return too_old(c, ptx, name, e);
    case KL_CU_NO_BINARY: {
        char target[16];
        target_of(ptx, target);
        return kl_cuda_fail(e, KL_K1813, KILN_E_UNSUPPORTED,
                            "kernel `%s` is for %s, and %s is sm_%d%d", name, target, c->info.name,
                            c->info.major, c->info.minor);
    }
    case KL_CU_NO_COMPILER:
        return kl_cuda_fail(e, KL_K1813, KILN_E_DEVICE,
                            "the driver lacks its assembler (libnvidia-ptxjitcompiler.so.1), which "
                            "comes with NVIDIA's driver");
    case KL_CU_INVALID_PTX:
    case KL_CU_INVALID_IMAGE:
        kl_cuda_fail(e, KL_K1813, KILN_E_DEVICE,
                     "the driver's assembler (CUDA %d.%d) refuses kernel `%s`",
                     c->info.driver / 1000, c->info.driver % 1000 / 10, name);
        append_log(e, log);
        return KILN_E_DEVICE;
    default: {
        kiln_status s = kl_cuda_check(c, cu, "cuLinkAddData", e);
        append_log(e, log);
        return s;
    }
    }
}

static kiln_status link_ptx(kl_cuda *c, const char *ptx, size_t len, const char *name,
                            void **cubin, size_t *size, kl_cudaerr *e)
{
    /* both logs in one block: they must live until the state is destroyed */
    char *log = c->al.fn(c->al.user, NULL, 0, 2 * LOG);
    if (!log)
        return KILN_E_NOMEM;
    memset(log, 0, 2 * LOG);
    int option[] = {KL_CU_JIT_INFO, KL_CU_JIT_INFO_SIZE, KL_CU_JIT_ERROR, KL_CU_JIT_ERROR_SIZE,
                    KL_CU_JIT_LINES};
    void *value[] = {log, (void *)(uintptr_t)LOG, log + LOG, (void *)(uintptr_t)LOG,
                     (void *)(uintptr_t)1};
    void *state = NULL, *image = NULL;
    size_t n = 0;
    kiln_status s = KILN_OK;
    int cu = c->api.LinkCreate(sizeof option / sizeof *option, option, value, &state);
    if (cu) {
        s = kl_cuda_check(c, cu, "cuLinkCreate", e);
    } else {
        /* the length includes the NUL, as the driver wants it of texts */
        cu = c->api.LinkAddData(state, KL_CU_INPUT_PTX, (void *)(uintptr_t)ptx, len + 1, name, 0,
                                NULL, NULL);
        if (!cu)
            cu = c->api.LinkComplete(state, &image, &n);
        log[LOG - 1] = log[2 * LOG - 1] = 0;
        if (cu)
            s = refused(c, cu, ptx, name, log + LOG, e);
    }
    if (!s) {
        void *copy = image ? c->al.fn(c->al.user, NULL, 0, n) : NULL;
        if (copy)
            memcpy(copy, image, n); /* the driver's copy dies with the state */
        else
            s = KILN_E_NOMEM;
        *cubin = copy;
        *size = n;
    }
    if (state)
        c->api.LinkDestroy(state);
    c->al.fn(c->al.user, log, 2 * LOG, 0);
    return s;
}

kiln_status kl_cuda_assemble(kl_cuda *c, kl_cache *cache, const char *ptx, size_t len,
                             const char *name, void **cubin, size_t *size,
                             kiln_cache_state *state, kl_cudaerr *e)
{
    uint8_t key[32];
    *e = (kl_cudaerr){0};
    *cubin = NULL;
    key_of(c, ptx, len, key);
    *state = cache ? kl_cache_get(cache, key, cubin, size) : KILN_CACHE_OFF;
    if (*state == KILN_CACHE_HIT)
        return KILN_OK;
    *cubin = NULL;
    if (version_of(ptx) > kl_cuda_ptx_of_driver(c->info.driver))
        return too_old(c, ptx, name, e);
    int in = kl_cuda_enter(c, e);
    if (in < 0)
        return KILN_E_DEVICE;
    int mode = kl_cuda_relax(c);
    kiln_status s = link_ptx(c, ptx, len, name, cubin, size, e);
    kl_cuda_restore(c, mode);
    kl_cuda_leave(c, in);
    if (!s && cache) {
        char meta[300];
        snprintf(meta, sizeof meta, "kernel %.100s\ncubin sm_%d%d, %.100s, driver %d\n", name,
                 c->info.major, c->info.minor, c->info.name, c->info.driver);
        kl_cache_put(cache, key, meta, *cubin, *size);
    }
    return s;
}

/* ---- loading ---- */

static kiln_status attributes(kl_cuda *c, const char *entry, uint32_t threads, uint32_t dynamic,
                              uint32_t cluster, kl_cufn *f, kl_cudaerr *e)
{
    enum { PORTABLE = 8 };
    int v[4] = {0};
    static const int which[4] = {KL_CU_FN_REGISTERS, KL_CU_FN_LOCAL, KL_CU_FN_SHARED,
                                 KL_CU_FN_THREADS};
    for (int i = 0; i < 4; i++) {
        int cu = c->api.FuncGetAttribute(&v[i], which[i], f->function);
        if (cu)
            return kl_cuda_check(c, cu, "cuFuncGetAttribute", e);
    }
    f->registers = (uint32_t)v[0];
    f->local = (uint32_t)v[1];
    f->shared = (uint32_t)v[2];
    f->max_threads = (uint32_t)v[3];
    uint64_t shared = (uint64_t)f->shared + dynamic;
    if (shared > (uint64_t)c->info.shared_optin)
        return kl_cuda_fail(e, KL_K1817, KILN_E_UNSUPPORTED,
                            "kernel `%s` needs %llu bytes of shared memory a block, and %s has "
                            "%d; smaller tiles need less",
                            entry, (unsigned long long)shared, c->info.name,
                            c->info.shared_optin);
    if (threads > f->max_threads)
        return kl_cuda_fail(e, KL_K1817, KILN_E_UNSUPPORTED,
                            "kernel `%s` runs with %u threads a block, and with its %u registers "
                            "%s can run %u",
                            entry, threads, f->registers, c->info.name, f->max_threads);
    if (dynamic && shared > (uint64_t)c->info.shared) {
        int cu = c->api.FuncSetAttribute(f->function, KL_CU_FN_DYNAMIC, (int)dynamic);
        if (cu)
            return kl_cuda_check(c, cu, "cuFuncSetAttribute", e);
    }
    if (cluster > PORTABLE) {
        int cu = c->api.FuncSetAttribute(f->function, KL_CU_FN_LARGE_CLUSTER, 1);
        if (cu)
            return kl_cuda_check(c, cu, "cuFuncSetAttribute", e);
    }
    if (c->api.Occupancy && c->api.Occupancy(&f->blocks, f->function, (int)threads, dynamic))
        f->blocks = 0;
    return KILN_OK;
}

struct kl_curefs {
    atomic_size_t n;
};

/* All entries of the loaded module, which they share. */
static kiln_status look_up(kl_cuda *c, void *module, const kl_cuentry *entry, size_t n,
                           kl_cufn *out, kl_cudaerr *e)
{
    struct kl_curefs *refs = NULL;
    if (n > 1) {
        refs = c->al.fn(c->al.user, NULL, 0, sizeof *refs);
        if (!refs)
            return KILN_E_NOMEM;
        atomic_init(&refs->n, n);
    }
    kiln_status s = KILN_OK;
    for (size_t i = 0; i < n && !s; i++) {
        int cu = c->api.ModuleGetFunction(&out[i].function, module, entry[i].name);
        s = kl_cuda_check(c, cu, "cuModuleGetFunction", e);
        if (!s)
            s = attributes(c, entry[i].name, entry[i].threads, entry[i].dynamic_shared,
                           entry[i].cluster, &out[i], e);
    }
    for (size_t i = 0; i < n && !s; i++) {
        out[i].module = module;
        out[i].refs = refs;
    }
    if (s && refs)
        c->al.fn(c->al.user, refs, sizeof *refs, 0);
    return s;
}

kiln_status kl_cuda_load(kl_cuda *c, const void *cubin, const kl_cuentry *entry, size_t n,
                         kl_cufn *out, kl_cudaerr *e)
{
    void *module;
    *e = (kl_cudaerr){0};
    memset(out, 0, n * sizeof *out);
    int in = kl_cuda_enter(c, e);
    if (in < 0)
        return KILN_E_DEVICE;
    int mode = kl_cuda_relax(c);
    int cu = c->api.ModuleLoadDataEx(&module, cubin, 0, NULL, NULL);
    kiln_status s = kl_cuda_check(c, cu, "cuModuleLoadDataEx", e);
    if (!s) {
        s = look_up(c, module, entry, n, out, e);
        if (s) {
            c->api.ModuleUnload(module);
            memset(out, 0, n * sizeof *out);
        }
    }
    kl_cuda_restore(c, mode);
    kl_cuda_leave(c, in);
    return s;
}

void kl_cuda_unload(kl_cuda *c, kl_cufn *f)
{
    bool last = true;
    if (!f->module)
        return;
    if (f->refs) {
        last = atomic_fetch_sub(&f->refs->n, 1) == 1;
        if (last)
            c->al.fn(c->al.user, f->refs, sizeof *f->refs, 0);
    }
    int in = last ? kl_cuda_enter(c, NULL) : -1;
    if (in >= 0) {
        int mode = kl_cuda_relax(c);
        c->api.ModuleUnload(f->module);
        kl_cuda_restore(c, mode);
        kl_cuda_leave(c, in);
    }
    *f = (kl_cufn){0};
}
