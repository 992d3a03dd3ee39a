/* launch.c - what a launch costs the host, beside the driver's own call.
 *
 * A kernel with 19 arguments (9 arrays, 10 scalars) is launched by kiln_launch with arrays in
 * device memory, and a kernel with 19 parameters by cuLaunchKernel, in turn, in bursts that the
 * queue of the device holds.  Then a graph of such a burst against the burst: what the call costs the
 * host, and both until the device has done them.  One line of JSON for each figure: nanoseconds a
 * launch.
 *
 *     launch [--device N]      bursts: the median of their means, and the least */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kiln.h"

enum { NARG = 19, NARRAY = 9, BURST = 200, TURNS = 60, N = 256 };

static const char kernel[] =
    "kernel many(i64 n, f32 y[n], const f32 a0[n], const f32 a1[n], const f32 a2[n],\n"
    "            const f32 a3[n], const f32 a4[n], const f32 a5[n], const f32 a6[n],\n"
    "            const f32 a7[n], f32 s0, f32 s1, f32 s2, f32 s3, f32 s4, f32 s5, f32 s6, f32 s7,\n"
    "            f32 s8, f32 s9, constexpr i64 B = 256) grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] = a0[i:B] * s0 + a1[i:B] * s1 + a2[i:B] * s2 + a3[i:B] * s3 + a4[i:B] * s4\n"
    "           + a5[i:B] * s5 + a6[i:B] * s6 + a7[i:B] * s7 + s8 * s9;\n"
    "}\n";

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void must(kiln_status s, kiln_diags *d, const char *what)
{
    char text[4000] = "";
    if (!s) {
        kiln_diags_free(d);
        return;
    }
    kiln_diags_render(d, 0, text, sizeof text);
    fprintf(stderr, "%s: %s\n%s", what, kiln_status_text(s), text);
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *peer, double *v, double raw)
{
    qsort(v, TURNS, sizeof *v, by_value);
    printf("{\"bench\": \"launch\", \"arguments\": %d, \"peer\": \"%s\", \"median_ns\": %.1f, "
           "\"least_ns\": %.1f",
           NARG, peer, v[TURNS / 2], v[0]);
    if (raw > 0)
        printf(", \"ratio\": %.3f", v[TURNS / 2] / raw);
    puts("}");
}

/* ---- the driver's own call ---- */

typedef int launch_fn(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, void *stream, void **param, void **extra);

struct raw {
    launch_fn *launch;
    void *f;
    uint64_t value[NARG];
    void *param[NARG];
};

static void *symbol(void *lib, const char *name)
{
    void *p = dlsym(lib, name);
    if (!p) {
        fprintf(stderr, "libcuda lacks %s\n", name);
        exit(1);
    }
    return p;
}

static void check(int cu, const char *what)
{
    if (cu) {
        fprintf(stderr, "%s: CUDA error %d\n", what, cu);
        exit(1);
    }
}

/* A kernel of 19 parameters that does nothing; in the context that Kiln uses, made current. */
static void open_raw(struct raw *r, int device)
{
    static char ptx[4000];
    size_t n = (size_t)snprintf(ptx, sizeof ptx,
                                ".version 7.0\n.target sm_80\n.address_size 64\n"
                                ".visible .entry raw(");
    for (int i = 0; i < NARG; i++)
        n += (size_t)snprintf(ptx + n, sizeof ptx - n, "%s.param .u64 p%d", i ? ", " : "", i);
    snprintf(ptx + n, sizeof ptx - n, ")\n{\n    ret;\n}\n");
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    union {
        void *p;
        int (*retain)(void **, int);
        int (*set)(void *);
        int (*create)(unsigned, int *, void **, void **);
        int (*add)(void *, int, void *, size_t, const char *, unsigned, int *, void **);
        int (*complete)(void *, void **, size_t *);
        int (*load)(void **, const void *, unsigned, int *, void **);
        int (*get)(void **, void *, const char *);
        launch_fn *launch;
    } u;
    void *ctx, *state, *cubin, *module;
    size_t size;
    u.p = symbol(lib, "cuDevicePrimaryCtxRetain");
    check(u.retain(&ctx, device), "cuDevicePrimaryCtxRetain");
    u.p = symbol(lib, "cuCtxPushCurrent_v2");
    check(u.set(ctx), "cuCtxPushCurrent");
    u.p = symbol(lib, "cuLinkCreate_v2");
    check(u.create(0, NULL, NULL, &state), "cuLinkCreate");
    u.p = symbol(lib, "cuLinkAddData_v2");
    check(u.add(state, 1, ptx, strlen(ptx) + 1, "raw", 0, NULL, NULL), "cuLinkAddData");
    u.p = symbol(lib, "cuLinkComplete");
    check(u.complete(state, &cubin, &size), "cuLinkComplete");
    u.p = symbol(lib, "cuModuleLoadDataEx");
    check(u.load(&module, cubin, 0, NULL, NULL), "cuModuleLoadDataEx");
    u.p = symbol(lib, "cuModuleGetFunction");
    check(u.get(&r->f, module, "raw"), "cuModuleGetFunction");
    u.p = symbol(lib, "cuLaunchKernel");
    r->launch = u.launch;
    for (int i = 0; i < NARG; i++)
        r->param[i] = &r->value[i];
}

/* ---- a graph of a burst ---- */

static void graph(kiln_context *ctx, kiln_kernel *k, const kiln_arg *arg, double raw)
{
    static double host[TURNS], all[TURNS], burst[TURNS];
    kiln_stream *st;
    kiln_graph *g;
    kiln_diags *d = NULL;
    kiln_status s = kiln_stream_create(ctx, &st, &d);
    must(s, d, "kiln_stream_create");
    d = NULL;
    s = kiln_graph_begin(st, &d);
    must(s, d, "kiln_graph_begin");
    for (int i = 0; i < BURST; i++) {
        d = NULL;
        s = kiln_launch(k, st, arg, NARG, &d);
        must(s, d, "kiln_launch");
    }
    d = NULL;
    s = kiln_graph_end(st, &g, &d);
    must(s, d, "kiln_graph_end");
    for (int t = -5; t < TURNS; t++) {
        double at[5];
        at[0] = now_ns();
        d = NULL;
        s = kiln_graph_launch(g, st, &d);
        at[1] = now_ns();
        must(s, d, "kiln_graph_launch");
        s = kiln_stream_sync(st, &d);
        at[2] = now_ns();
        must(s, d, "kiln_stream_sync");
        at[3] = now_ns();
        for (int i = 0; i < BURST; i++) {
            d = NULL;
            s = kiln_launch(k, st, arg, NARG, &d);
            if (s)
                must(s, d, "kiln_launch");
        }
        s = kiln_stream_sync(st, &d);
        at[4] = now_ns();
        must(s, d, "kiln_stream_sync");
        if (t < 0)
            continue;
        host[t] = (at[1] - at[0]) / BURST;
        all[t] = (at[2] - at[0]) / BURST;
        burst[t] = (at[4] - at[3]) / BURST;
    }
    report("kiln_graph_launch of 200, a kernel", host, raw);
    report("200 times kiln_launch, until done", burst, 0);
    report("kiln_graph_launch of 200, until done, against them", all, burst[TURNS / 2]);
    kiln_graph_free(g);
    kiln_stream_free(st);
}

/* ---- the measurement ---- */

int main(int argc, char **argv)
{
    static const char *const names[NARG] = {"y",  "a0", "a1", "a2", "a3", "a4", "a5",
                                            "a6", "a7", "s0", "s1", "s2", "s3", "s4",
                                            "s5", "s6", "s7", "s8", "s9"};
    static double kiln_ns[TURNS], raw_ns[TURNS], moved_ns[TURNS];
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx;
    kiln_module *m;
    kiln_buffer *buf;
    kiln_diags *d = NULL;
    kiln_arg arg[2][NARG];
    const int64_t shape[1] = {N};
    struct raw raw = {0};
    o.device = KILN_DEVICE_CUDA;
    if (argc == 3 && strcmp(argv[1], "--device") == 0)
        o.device_index = atoi(argv[2]);
    kiln_status s = kiln_context_create(&o, &ctx, &d);
    must(s, d, "kiln_context_create");
    d = NULL;
    s = kiln_compile(ctx, "many.kiln", kernel, sizeof kernel - 1, &m, &d);
    must(s, d, "kiln_compile");
    must(kiln_buffer_create(ctx, (NARRAY + 1) * N * sizeof(float), &buf), NULL, "buffer");
    kiln_kernel *k = kiln_module_at(m, 0);
    memset(arg, 0, sizeof arg);
    for (int v = 0; v < 2; v++)
        for (int i = 0; i < NARG; i++) {
            arg[v][i].name = names[i];
            if (i < NARRAY) {
                float *at = (float *)kiln_buffer_data(buf) + N * (v && !i ? NARRAY : i);
                arg[v][i].kind = KILN_ARG_TENSOR;
                arg[v][i].u.tensor =
                    (kiln_tensor){.data = at,
                                  .dtype = KILN_F32,
                                  .ndim = 1,
                                  .shape = shape,
                                  .flags = KILN_TENSOR_DEVICE};
            } else {
                arg[v][i].kind = KILN_ARG_FLOAT;
                arg[v][i].u.f = 0.5 + i;
            }
        }
    open_raw(&raw, o.device_index);
    for (int t = -5; t < TURNS; t++) { /* the first ones warm up */
        double at[4];
        at[0] = now_ns();
        for (int i = 0; i < BURST; i++)
            check(raw.launch(raw.f, 1, 1, 1, 128, 1, 1, 0, NULL, raw.param, NULL), "launch");
        at[1] = now_ns();
        d = NULL;
        s = kiln_sync(ctx, &d);
        must(s, d, "kiln_sync");
        double from = now_ns();
        for (int i = 0; i < BURST; i++) {
            d = NULL;
            s = kiln_launch(k, NULL, arg[0], NARG, &d);
            if (s)
                must(s, d, "kiln_launch");
        }
        at[2] = now_ns() - from;
        kiln_sync(ctx, NULL);
        from = now_ns();
        for (int i = 0; i < BURST; i++) { /* with another address each time */
            d = NULL;
            s = kiln_launch(k, NULL, arg[i & 1], NARG, &d);
            if (s)
                must(s, d, "kiln_launch");
        }
        at[3] = now_ns() - from;
        kiln_sync(ctx, NULL);
        if (t < 0)
            continue;
        raw_ns[t] = (at[1] - at[0]) / BURST;
        kiln_ns[t] = at[2] / BURST;
        moved_ns[t] = at[3] / BURST;
    }
    report("cuLaunchKernel", raw_ns, 0);
    report("kiln_launch", kiln_ns, raw_ns[TURNS / 2]);
    report("kiln_launch, other addresses", moved_ns, raw_ns[TURNS / 2]);
    graph(ctx, k, arg[0], raw_ns[TURNS / 2]);
    kiln_buffer_free(buf);
    kiln_module_free(m);
    kiln_context_free(ctx);
    return 0;
}
