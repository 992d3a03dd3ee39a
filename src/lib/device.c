/* device.c - which GPUs there are, and how much memory. */
#include <stdio.h>
#include <unistd.h>

#include "lib/lib.h"

enum { MOST = 64 };

kiln_status kiln_device_count(int32_t *count)
{
    kl_cudaerr e;
    int n = 0;
    if (!count)
        return KILN_E_ARG;
    if (kl_cuda_list(&kl_alloc_libc, NULL, NULL, 0, &n, &e))
        n = 0;
    *count = n;
    return KILN_OK;
}

/* The name of a target, which is static; "" for 0. */
static const char *arch_name(uint32_t arch)
{
    static const struct {
        uint32_t arch;
        const char *name;
    } all[] = {
#define PTX_TARGET(arch, ...) {arch, "sm_" #arch},
#include "gen/ptx/target.def"
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].arch == arch)
            return all[i].name;
    return "";
}

kiln_device_info kl_info_of(const kl_cudainfo *c, const char *name, const char *arch, int32_t index)
{
    return (kiln_device_info){.name = name,
                              .arch = arch,
                              .index = index,
                              .driver = c->driver,
                              .sms = c->sms,
                              .clock_khz = c->clock_khz,
                              .memory_clock_khz = c->mem_clock_khz,
                              .bus_bits = c->bus_bits,
                              .memory_bytes = c->memory,
                              .l2_bytes = (uint64_t)c->l2_bytes,
                              .shared_bytes = (uint64_t)c->shared_optin};
}

kiln_status kiln_device_at(int32_t index, kiln_device_info *out, char name[128])
{
    kl_cudainfo info[MOST];
    kl_cudaerr e;
    int n;
    if (!out || !name)
        return KILN_E_ARG;
    *out = (kiln_device_info){.name = "", .arch = ""};
    name[0] = 0;
    if (kl_cuda_list(&kl_alloc_libc, NULL, info, MOST, &n, &e) || index < 0 || index >= n ||
        index >= MOST)
        return KILN_E_DEVICE;
    const kl_cudainfo *c = &info[index];
    snprintf(name, 128, "%s", c->name);
    *out = kl_info_of(c, name, arch_name(kl_ptx_target(c->major * 10 + c->minor)), index);
    return KILN_OK;
}

kiln_status kiln_memory_info(kiln_context *ctx, uint64_t *left, uint64_t *total, kiln_diags **diags)
{
    uint64_t l = 0, t = 0;
    kl_cudaerr e = {0};
    kiln_status s = KILN_OK;
    if (diags)
        *diags = NULL;
    if (!ctx)
        return KILN_E_ARG;
    if (ctx->cuda) {
        s = kl_cuda_memory(ctx->cuda, &l, &t, &e);
    } else {
        long page = sysconf(_SC_PAGESIZE), all = sysconf(_SC_PHYS_PAGES);
#ifdef _SC_AVPHYS_PAGES
        long some = sysconf(_SC_AVPHYS_PAGES);
#else
        long some = all;
#endif
        if (page > 0 && all > 0 && some >= 0) {
            l = (uint64_t)some * (uint64_t)page;
            t = (uint64_t)all * (uint64_t)page;
        }
    }
    if (!s && left)
        *left = l;
    if (!s && total)
        *total = t;
    return kl_finish_cuda(ctx, s, &e, diags);
}
