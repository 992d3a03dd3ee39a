# kiln build: two threads that call functions of one library at once, under ThreadSanitizer where
# there is one; the caller's threads; the example with threads.
which cc >/dev/null || { echo "no C compiler" >&2; exit 77; }
fake=$(dirname "$KILN")/tests/fakecuda
"$KILN" build $SRC/kernels/softmax.kiln:softmax --targets cpu,sm_80 -D BLOCK=64,128 -o softmax || exit
cat >use.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dlfcn.h>
#include "softmax.h"
enum { THREADS = 2, ROUNDS = 6, ROWS = 21, COLS = 100 };
static softmax_lib *lib;
static int device;
static int (*alloc)(uint64_t *, size_t), (*push)(void *), (*up)(uint64_t, const void *, size_t, void *);
static int (*down)(void *, uint64_t, size_t, void *), (*wait)(void);
static void *ctx;
static float want[ROWS][COLS];
/* the caller's threads: two halves */
struct half { kiln_aot_body *body; void *arg; int64_t begin, end; };
static void *half(void *p)
{
    struct half *h = p;
    h->body(h->arg, h->begin, h->end);
    return NULL;
}
static void spread(void *user, int64_t n, kiln_aot_body *body, void *arg)
{
    struct half h = {body, arg, n / 2, n};
    pthread_t t;
    (void)user;
    if (pthread_create(&t, NULL, half, &h))
        abort();
    body(arg, 0, n / 2);
    pthread_join(t, NULL);
}
static float in(int i) { return (float)(i * 37 % 101) / 16; }
static void *work(void *arg)
{
    static const int64_t shape[2] = {ROWS, COLS}, other[2] = {ROWS - 1, COLS};
    float *x = malloc(sizeof want), *y = malloc(sizeof want);
    kiln_aot_tensor tx = {x, KILN_AOT_F32, 2, shape, NULL, 0}, ty = {y, KILN_AOT_F32, 2, shape, NULL, 0};
    intptr_t bad = 0;
    (void)arg;
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = in(i);
    if (device >= 0) {
        uint64_t p, q;
        push(ctx);
        if (alloc(&p, sizeof want) || alloc(&q, sizeof want) || up(p, x, sizeof want, NULL))
            return (void *)1;
        tx.data = (void *)(uintptr_t)p;
        ty.data = (void *)(uintptr_t)q;
    }
    for (int r = 0; r < ROUNDS; r++) {
        bad |= softmax_f32(lib, NULL, &ty, &tx);
        if (device >= 0)
            bad |= down(y, (uint64_t)(uintptr_t)ty.data, sizeof want, NULL) || wait();
        bad |= memcmp(y, want, sizeof want) != 0;
        ty.shape = other; /* what is wrong is said to the thread that did it */
        bad |= softmax_f32(lib, NULL, &ty, &tx) != KILN_AOT_E_SHAPE;
        bad |= !strstr(softmax_detail(), "extent");
        ty.shape = shape;
        memset(y, 0, sizeof want);
    }
    return (void *)bad;
}
int main(int argc, char **argv)
{
    static const int64_t shape[2] = {ROWS, COLS};
    static float x[ROWS][COLS];
    kiln_aot_tensor tx = {x, KILN_AOT_F32, 2, shape, NULL, 0}, ty = {want, KILN_AOT_F32, 2, shape, NULL, 0};
    pthread_t t[THREADS];
    device = argc > 1 ? atoi(argv[1]) : -1;
    for (int i = 0; i < ROWS * COLS; i++)
        x[i / COLS][i % COLS] = in(i);
    if (softmax_load(&lib, SOFTMAX_CPU) || softmax_f32(lib, NULL, &ty, &tx))
        return 1;
    if (device >= 0) {
        void *h = dlopen("libcuda.so.1", RTLD_NOW);
        int (*init)(unsigned), (*retain)(void **, int);
#define GET(v, n) *(void **)&v = dlsym(h, n)
        if (!h)
            return 2;
        GET(alloc, "cuMemAlloc_v2"); GET(up, "cuMemcpyHtoDAsync_v2"); GET(down, "cuMemcpyDtoHAsync_v2");
        GET(push, "cuCtxPushCurrent_v2"); GET(wait, "cuCtxSynchronize");
        GET(init, "cuInit"); GET(retain, "cuDevicePrimaryCtxRetain");
        softmax_unload(lib);
        if (init(0) || retain(&ctx, 0) || softmax_load(&lib, device))
            return 3;
    } else if (argc > 2) {
        softmax_parallel(lib, spread, NULL);
    }
    void *bad, *any = NULL;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, work, NULL))
            return 4;
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], &bad), any = bad ? bad : any;
    softmax_unload(lib);
    puts(any ? "wrong" : "right");
    return 0;
}
C
echo 'int main(void) { return 0; }' >t.c
san=-fsanitize=thread
cc $san t.c -o t 2>/dev/null && ./t 2>/dev/null || san= # none here, or it does not run
cc -std=c11 -O1 -g -DKL_NO_V4 -w $san -I. use.c softmax.c -o use -lpthread || exit
./use -1; ./use -1 spread
[ ! -e "$fake/libcuda.so.1" ] || LD_LIBRARY_PATH=$fake ./use 0
echo "== example"
cc -std=c11 -Wall -Wextra -O1 -DKL_NO_V4 -I. softmax.c "$SRC/examples/aot/threads.c" -o ex -lpthread && ./ex
