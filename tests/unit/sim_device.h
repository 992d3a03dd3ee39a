/* sim_device.h - the same entries on a real GPU: how the executor is compared with a device.
 *
 * Only when KILN_TEST_DEVICE is set.  The texts went through the executor and ptxas before. */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct device {
    bool good;
    void *module;
    uint64_t mem[4];
    size_t bytes;
    int (*load)(void **, const void *);
    int (*unload)(void *);
    int (*function)(void **, void *, const char *);
    int (*upload)(uint64_t, const void *, size_t);
    int (*download)(void *, uint64_t, size_t);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
    int (*sync)(void);
};

static inline void *device_symbol(void *lib, const char *name)
{
    void *p = dlsym(lib, name);
    if (!p)
        fprintf(stderr, "libcuda has no %s\n", name);
    return p;
}

/* Four arrays of `bytes`; false without a device. */
static inline bool device_open(struct device *g, size_t bytes)
{
    memset(g, 0, sizeof *g);
    void *lib = getenv("KILN_TEST_DEVICE") ? dlopen("libcuda.so.1", RTLD_NOW) : NULL;
    if (!lib)
        return false;
    int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int), (*current)(void *);
    int (*alloc)(uint64_t *, size_t);
    const struct { void *to; const char *name; } t[] = {
        {&init, "cuInit"}, {&get, "cuDeviceGet"}, {&retain, "cuDevicePrimaryCtxRetain"},
        {&current, "cuCtxSetCurrent"}, {&alloc, "cuMemAlloc_v2"}, {&g->load, "cuModuleLoadData"},
        {&g->unload, "cuModuleUnload"}, {&g->function, "cuModuleGetFunction"},
        {&g->upload, "cuMemcpyHtoD_v2"}, {&g->download, "cuMemcpyDtoH_v2"},
        {&g->launch, "cuLaunchKernel"}, {&g->sync, "cuCtxSynchronize"},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        void *p = device_symbol(lib, t[k].name);
        if (!p)
            return false;
        memcpy(t[k].to, &p, sizeof p);
    }
    int dev;
    void *ctx;
    if (init(0) || get(&dev, 0) || retain(&ctx, dev) || current(ctx))
        return false;
    for (int k = 0; k < 4; k++)
        if (alloc(&g->mem[k], bytes))
            return false;
    g->bytes = bytes;
    return true;
}

static inline bool device_module(struct device *g, const char *text)
{
    if (g->module)
        g->unload(g->module);
    g->module = NULL;
    return g->bytes && g->load(&g->module, text) == 0;
}

/* Runs an entry on the arrays a, b, c into d. */
static inline bool device_run(struct device *g, const char *entry, const void *const in[3],
                              void *out, unsigned grid, unsigned block)
{
    void *f, *args[4];
    if (!g->module || g->function(&f, g->module, entry))
        return false;
    for (int k = 0; k < 4; k++)
        args[k] = &g->mem[k];
    for (int k = 0; k < 3; k++)
        if (g->upload(g->mem[k], in[k], g->bytes))
            return false;
    return g->launch(f, grid, 1, 1, block, 1, 1, 0, NULL, args, NULL) == 0 && g->sync() == 0 &&
           g->download(out, g->mem[3], g->bytes) == 0;
}

#endif
