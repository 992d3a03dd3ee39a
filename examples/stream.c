/* stream.c - a kernel on the caller's own CUDA stream and memory.
 *
 * A program that works with CUDA has its context, its stream and its device pointers already.  Here
 * they come from the driver, which is opened at run time, so that neither headers nor libraries of
 * CUDA are needed to build; with those of the toolkit, or of the CUDA runtime (cudaStream_t,
 * cudaMalloc), it is the same.  Copies, two launches and the way back are queued on one stream, and
 * the program waits once.
 *
 *     cc -o stream examples/stream.c -Iinclude -Lbuild -lkiln -ldl
 *     LD_LIBRARY_PATH=build ./stream
 *
 * Without a GPU it says so and ends well.  `make tests` builds a stand-in for the driver:
 * LD_LIBRARY_PATH=build:build/tests/fakecuda ./stream */
#include <dlfcn.h>
#include <kiln.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "kernel saxpy(i64 n, f32 a, f32 y[n], const f32 x[n], constexpr i64 BLOCK = 1024)\n"
    "    grid(cdiv(n, BLOCK))\n"
    "{\n"
    "    i64 i = program_id(0) * BLOCK;\n"
    "    y[i:BLOCK] = a * x[i:BLOCK] + y[i:BLOCK];\n"
    "}\n";

enum { N = 1000003 };

/* ---- what of the driver is used here; CUresult and CUdevice are int, handles are pointers ---- */

typedef uint64_t address; /* CUdeviceptr */
static struct {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*device)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*release)(int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream);
    int (*alloc)(address *at, size_t bytes);
    int (*free)(address at);
    int (*to_device)(address to, const void *from, size_t bytes, void *stream);
    int (*to_host)(void *to, address from, size_t bytes, void *stream);
} cu;

static int open_driver(void)
{
    static const char *const symbol[] = {
        "cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDevicePrimaryCtxRetain",
        "cuDevicePrimaryCtxRelease_v2", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2",
        "cuStreamCreate", "cuStreamDestroy_v2", "cuStreamSynchronize", "cuMemAlloc_v2",
        "cuMemFree_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"};
    void *lib = dlopen("libcuda.so.1", RTLD_NOW), *f[sizeof symbol / sizeof *symbol];
    if (!lib)
        return 0;
    for (size_t i = 0; i < sizeof f / sizeof *f; i++)
        if (!(f[i] = dlsym(lib, symbol[i])))
            return 0;
    memcpy(&cu, f, sizeof cu); /* in the same order */
    return 1;
}

static void cuda(int result, const char *what)
{
    if (result) {
        fprintf(stderr, "stream: %s: error %d of the driver\n", what, result);
        exit(1);
    }
}

/* Print what the library has to say; give up on an error. */
static void check(kiln_status status, kiln_diags *diags)
{
    size_t n = kiln_diags_render(diags, 0, NULL, 0);
    char *text = malloc(n + 1);
    if (text && n) {
        kiln_diags_render(diags, 0, text, n + 1);
        fputs(text, stderr);
    }
    free(text);
    kiln_diags_free(diags);
    if (status) {
        fprintf(stderr, "%s\n", kiln_status_text(status));
        exit(1);
    }
}

int main(void)
{
    const int64_t shape[1] = {N};
    const size_t bytes = N * sizeof(float);
    int device, devices = 0;
    void *context, *stream;
    address x, y;
    float *host = malloc(2 * bytes);
    if (!open_driver() || cu.init(0) || cu.count(&devices) || devices < 1) {
        printf("stream: no CUDA device here, nothing was run\n");
        free(host);
        return 0;
    }
    if (!host)
        return 1;

    /* the program's own: device 0's context, a stream, memory */
    cuda(cu.device(&device, 0), "the device");
    cuda(cu.retain(&context, device), "its context");
    cuda(cu.push(context), "its context");
    cuda(cu.stream_create(&stream, 1), "a stream"); /* 1: not in order with the default stream */
    cuda(cu.alloc(&x, bytes), "memory");
    cuda(cu.alloc(&y, bytes), "memory");

    /* Kiln on the same device, with the same stream */
    kiln_options options = KILN_OPTIONS_INIT;
    kiln_context *ctx;
    kiln_module *module;
    kiln_stream *mine;
    kiln_diags *diags;
    check(kiln_options_from_env(&options), NULL);
    options.device = KILN_DEVICE_CUDA;
    options.device_index = 0;
    kiln_status s = kiln_context_create(&options, &ctx, &diags);
    check(s, diags);
    s = kiln_compile(ctx, "stream.c", source, sizeof source - 1, &module, &diags);
    check(s, diags);
    s = kiln_stream_from_cuda(ctx, stream, &mine, &diags);
    check(s, diags);

    for (int i = 0; i < N; i++) {
        host[i] = (float)(i % 1000);
        host[N + i] = 1;
    }
    cuda(cu.to_device(x, host, bytes, stream), "copying");
    cuda(cu.to_device(y, host + N, bytes, stream), "copying");
    kiln_arg args[3] = {{.name = "x", .kind = KILN_ARG_TENSOR},
                        {.name = "y", .kind = KILN_ARG_TENSOR},
                        {.name = "a", .kind = KILN_ARG_FLOAT}};
    kiln_tensor t = {
        .dtype = KILN_F32, .ndim = 1, .shape = shape, .flags = KILN_TENSOR_DEVICE};
    t.data = (void *)(uintptr_t)x;
    args[0].u.tensor = t;
    t.data = (void *)(uintptr_t)y;
    args[1].u.tensor = t;
    for (int turn = 0; turn < 2; turn++) { /* y = 2 x + y, y = 3 x + y */
        args[2].u.f = 2 + turn;
        s = kiln_launch(kiln_module_kernel(module, "saxpy"), mine, args, 3, &diags);
        check(s, diags);
    }
    cuda(cu.to_host(host + N, y, bytes, stream), "copying");
    cuda(cu.stream_wait(stream), "the stream"); /* the only wait */

    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += host[N + i] != 5 * (float)(i % 1000) + 1;
    printf("saxpy twice of %d on %s, on the program's stream: %d wrong\n", N,
           kiln_context_device_info(ctx)->name, wrong);

    kiln_stream_free(mine); /* the CUDA stream stays */
    kiln_module_free(module);
    kiln_context_free(ctx);
    cuda(cu.free(x), "freeing");
    cuda(cu.free(y), "freeing");
    cuda(cu.stream_destroy(stream), "freeing");
    cuda(cu.pop(&context), "freeing");
    cuda(cu.release(device), "freeing");
    free(host);
    return wrong != 0;
}
