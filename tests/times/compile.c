/* compile.c - how long code takes to make: source to PTX for every library kernel, in this
 * process, and PTX to cubin by the driver.
 *
 *     compile-times [--device N | --no-device] [--keep DIR] [--turns N]
 *
 * One line of JSON for each kernel and type, medians of N turns (7).  source_ms: kiln_compile of
 * the whole file, and one kernel to PTX; source_cpu_ms: the same in time of the processor;
 * parse_ms: the first part.  driver_ms, load_ms: what the runtime spends in the driver's assembler
 * and in loading, with no cache of Kiln or of the driver.  DIR receives the texts, for ptxas
 * alone.  Run it in the folder that holds kernels/; bench/gpu/host.py puts peers beside it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../library.h"
#include "tool.h"

enum { MOST = 50 };

static struct {
    kiln_context *host, *device; /* device NULL: no driver */
    const char *keep, *arch;
    int turns;
} opt = {NULL, NULL, NULL, "sm_90", 7};

static double now_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v)
{
    qsort(v, (size_t)opt.turns, sizeof *v, by_value);
    return v[opt.turns / 2];
}

static int failed(const struct lib_row *r, const char *what, kiln_status s, kiln_diags *d)
{
    char text[600] = "";
    kiln_diags_render(d, 0, text, sizeof text);
    for (char *p = text; *p; p++)
        if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ')
            *p = ' ';
    printf("{\"bench\": \"compile\", \"kernel\": \"%s\", \"error\": \"%s: %s: %s\"}\n", r->kernel,
           what, kiln_status_text(s), text);
    kiln_diags_free(d);
    return 0;
}

static void keep(const struct lib_row *r, const char *label, const char *text)
{
    char path[600];
    if (!opt.keep)
        return;
    snprintf(path, sizeof path, "%s/%s-%s.ptx", opt.keep, r->kernel, label);
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    fputs(text, f);
    fclose(f);
}

static int one(const struct lib_row *r, kiln_dtype t)
{
    static char text[1 << 16];
    char path[200], label[100];
    double parse[MOST], source[MOST], cpu[MOST], driver[MOST], load[MOST];
    struct lib_args a;
    size_t bytes = 0;
    kiln_spec_info info = {.registers = 0};
    snprintf(path, sizeof path, "kernels/%s.kiln", r->file);
    lib_label(r, t, label, sizeof label);
    FILE *f = fopen(path, "rb");
    size_t len = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    if (!len)
        return failed(r, path, KILN_E_IO, NULL);
    lib_arguments(r, t, &a, 0);
    for (int i = -1; i < opt.turns; i++) { /* the first warms up */
        kiln_diags *d = NULL;
        kiln_module *m;
        char *ptx;
        const kl_tool_emit_opts e = {.stage = "ptx", .lines = 1, .arch = opt.arch};
        double c0 = now_ms(CLOCK_THREAD_CPUTIME_ID), t0 = now_ms(CLOCK_MONOTONIC);
        kiln_status s = kiln_compile(opt.host, path, text, len, &m, &d);
        double t1 = now_ms(CLOCK_MONOTONIC);
        if (s)
            return failed(r, "kiln_compile", s, d);
        kiln_diags_free(d);
        s = kl_tool_emit(m, kiln_module_kernel(m, r->kernel), a.arg, a.n, &e, &ptx, &d);
        double t2 = now_ms(CLOCK_MONOTONIC), c2 = now_ms(CLOCK_THREAD_CPUTIME_ID);
        if (s)
            return failed(r, "to PTX", s, d);
        kiln_diags_free(d);
        if (i < 0)
            keep(r, label, ptx);
        bytes = strlen(ptx);
        kl_tool_free(opt.host, ptx);
        kiln_module_free(m);
        if (i >= 0) {
            parse[i] = t1 - t0;
            source[i] = t2 - t0;
            cpu[i] = c2 - c0;
        }
    }
    lib_arguments(r, t, &a, 1);
    for (int i = 0; i < opt.turns && opt.device; i++) {
        kiln_diags *d = NULL;
        kiln_module *m;
        kiln_spec *spec;
        kiln_status s = kiln_compile(opt.device, path, text, len, &m, &d);
        if (s)
            return failed(r, "kiln_compile", s, d);
        kiln_diags_free(d);
        s = kiln_specialize(kiln_module_kernel(m, r->kernel), a.arg, a.n, &spec, &d);
        if (s)
            return failed(r, "kiln_specialize", s, d);
        kiln_diags_free(d);
        info = *kiln_spec_get_info(spec);
        driver[i] = info.cc_ms;
        load[i] = info.load_ms;
        kiln_spec_free(spec);
        kiln_module_free(m);
    }
    printf("{\"bench\": \"compile\", \"kernel\": \"%s\", \"label\": \"%s\", \"ptx_bytes\": %zu, "
           "\"parse_ms\": %.4f, \"source_ms\": %.4f, \"source_cpu_ms\": %.4f",
           r->kernel, label, bytes, median(parse), median(source), median(cpu));
    if (opt.device)
        printf(", \"driver_ms\": %.3f, \"load_ms\": %.3f, \"registers\": %u, \"spill_bytes\": %u",
               median(driver), median(load), info.registers, info.local_bytes);
    puts("}");
    fflush(stdout);
    return 1;
}

int main(int argc, char **argv)
{
    static const kiln_dtype types[] = {KILN_F32, KILN_BF16};
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_diags *d = NULL;
    int device = 0, ok = 1;
    for (int i = 1; i < argc; i++) {
        const char *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--no-device") == 0) {
            device = -1;
        } else if (v && strcmp(argv[i], "--device") == 0) {
            device = atoi(argv[++i]);
        } else if (v && strcmp(argv[i], "--keep") == 0) {
            opt.keep = argv[++i];
        } else if (v && strcmp(argv[i], "--turns") == 0) {
            opt.turns = atoi(argv[++i]);
        } else {
            fputs("usage: compile-times [--device N | --no-device] [--keep DIR] [--turns N]\n",
                  stderr);
            return 2;
        }
    }
    if (opt.turns < 1 || opt.turns > MOST)
        opt.turns = 7;
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    o.device = KILN_DEVICE_INTERP;
    kiln_status s = kiln_context_create(&o, &opt.host, NULL);
    if (!s && device >= 0) {
        o.device = KILN_DEVICE_CUDA;
        o.device_index = device;
        s = kiln_context_create(&o, &opt.device, &d);
    }
    if (s) {
        char text[2000] = "";
        kiln_diags_render(d, 0, text, sizeof text);
        fprintf(stderr, "%s\n%s", kiln_status_text(s), text);
        return 1;
    }
    if (opt.device)
        opt.arch = kiln_context_device_info(opt.device)->arch;
    for (int i = 0; i < LIB_ROWS; i++)
        for (int t = 0; t < 2; t++)
            if (lib_rows[i].types & 1 << t)
                ok &= one(&lib_rows[i], types[t]);
    kiln_context_free(opt.device);
    kiln_context_free(opt.host);
    return !ok;
}
