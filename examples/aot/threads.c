/* threads.c - a kernel built ahead of time on several threads of the CPU.  Generated code starts
 * none; it calls the function given to softmax_parallel with the number of programs, and that spreads
 * them as the program likes: over a pool, by OpenMP, or as here by a thread a core.
 *
 *     kiln build kernels/softmax.kiln:softmax -D BLOCK=64,128 -o softmax
 *     cc -std=c11 -O2 softmax.c examples/aot/threads.c -I. -o example -lpthread
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "softmax.h"

enum { MOST = 64, ROWS = 1000, COLS = 100 };

struct work {
    kiln_aot_body *body;
    void *arg;
    int64_t n, step;
    atomic_llong next; /* the first program that nobody has taken */
};

static void *take(void *arg)
{
    struct work *w = arg;
    for (;;) {
        int64_t at = atomic_fetch_add(&w->next, w->step);
        if (at >= w->n)
            return NULL;
        w->body(w->arg, at, at + w->step < w->n ? at + w->step : w->n);
    }
}

/* user: how many threads. */
static void run(void *user, int64_t n, kiln_aot_body *body, void *arg)
{
    const long threads = *(const long *)user;
    struct work w = {body, arg, n, n / (threads * 4) + 1, 0};
    pthread_t t[MOST];
    long started = 0;
    while (started < threads - 1 && started * w.step < n &&
           pthread_create(&t[started], NULL, take, &w) == 0)
        started++;
    take(&w); /* the calling thread works, too, and does all if no other could be started */
    while (started > 0)
        pthread_join(t[--started], NULL);
}

int main(void)
{
    static float x[ROWS][COLS], y[ROWS][COLS];
    const int64_t shape[2] = {ROWS, COLS};
    const kiln_aot_tensor tx = {x, KILN_AOT_F32, 2, shape, NULL, sizeof x};
    const kiln_aot_tensor ty = {y, KILN_AOT_F32, 2, shape, NULL, sizeof y};
    long threads = sysconf(_SC_NPROCESSORS_ONLN);
    softmax_lib *lib;
    int s = softmax_load(&lib, SOFTMAX_CPU);
    threads = threads < 1 ? 1 : threads > MOST ? MOST : threads;
    if (!s) {
        softmax_parallel(lib, run, &threads);
        s = softmax_f32(lib, NULL, &ty, &tx);
        softmax_unload(lib);
    }
    if (s) {
        fprintf(stderr, "%s: %s\n", softmax_strerror(s), softmax_detail());
        return 1;
    }
    for (int r = 0; r < ROWS; r++) {
        float sum = 0;
        for (int c = 0; c < COLS; c++)
            sum += y[r][c];
        if (sum < 0.999f || sum > 1.001f)
            return printf("row %d adds up to %g\n", r, (double)sum), 1;
    }
    printf("%d rows, each adds up to 1\n", ROWS);
    return 0;
}
