/* compile.c - fuzz target: any text is compiled, and each of its kernels specialised for small
 * arrays, through all passes, without a crash, a hang or a leak.  Nothing is launched: a kernel
 * may loop for ever. */
#include <stdint.h>
#include <string.h>

#include "kiln.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 64, EXTENT = 4 };

static void specialise(kiln_kernel *k)
{
    static char memory[4096 * 8];
    static const int64_t shape[8] = {EXTENT, EXTENT, EXTENT, EXTENT, 1, 1, 1, 1};
    kiln_arg arg[MOST];
    size_t n = 0, count = kiln_kernel_param_count(k);
    if (count > MOST)
        return;
    memset(arg, 0, sizeof arg);
    for (size_t i = 0; i < count; i++) {
        const kiln_param_info *p = kiln_kernel_param(k, i);
        if (p->kind != KILN_PARAM_ARRAY)
            continue;
        arg[n].name = p->name;
        arg[n].kind = KILN_ARG_TENSOR;
        arg[n].u.tensor = (kiln_tensor){.data = memory, .dtype = p->dtype ? p->dtype : KILN_F32,
                                        .ndim = p->rank, .shape = shape};
        n++;
    }
    kiln_spec *s = NULL;
    kiln_diags *d = NULL;
    kiln_specialize(k, arg, n, &s, &d);
    kiln_spec_free(s);
    kiln_diags_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx = NULL;
    kiln_module *mod = NULL;
    kiln_diags *d = NULL;
    o.device = KILN_DEVICE_INTERP;
    if (kiln_context_create(&o, &ctx, NULL) != KILN_OK)
        return 0;
    kiln_compile(ctx, "fuzz.kiln", (const char *)data, size, &mod, &d);
    char text[256];
    kiln_diags_render(d, 0, text, sizeof text);
    kiln_diags_free(d);
    for (size_t i = 0; i < kiln_module_count(mod); i++)
        specialise(kiln_module_at(mod, i));
    kiln_module_free(mod);
    kiln_context_free(ctx);
    return 0;
}
