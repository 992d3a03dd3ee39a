/* time.c - `kiln run --time`.
 *
 * The first launch was the warm-up.  Then launches are repeated for half a second and ten times at
 * least, but no longer than ten seconds where three have been made; arrays that the kernel updates
 * in place change on the way, which changes no time.  Bytes are counted once for each array that
 * the kernel reads and once for each that it writes. */
#include <stdlib.h>
#include <time.h>

#include "cli/command.h"

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int kl_time(struct kl_session *s, const struct kl_args *run, const kiln_spec_info *info)
{
    enum { LEAST = 3, USUAL = 10, MOST = 100000, ENOUGH_MS = 500, LONG_MS = 10000 };
    static const char *const device[] = {"auto", "interpreter", "CPU"};
    static const char *const cache[] = {"off", "hit", "miss", "stale"};
    double *ms = kl_xalloc(sizeof *ms * MOST), start = now_ms();
    uint64_t bytes = 0;
    size_t n = 0;
    while (n < LEAST || (n < MOST && now_ms() - start < (n < USUAL ? LONG_MS : ENOUGH_MS))) {
        double t = now_ms();
        kiln_diags *d = NULL;
        kiln_status st = kiln_launch(run->k, NULL, run->arg, run->n, &d);
        ms[n++] = now_ms() - t;
        if (st) {
            free(ms);
            return kl_session_fail(s, st, d);
        }
        kiln_diags_free(d);
    }
    for (size_t i = 0; i < run->narr; i++) {
        const struct kl_arr *a = &run->arr[i];
        bytes += a->count * kl_elems[a->elem].bytes *
                 ((a->p->reads != 0) + (unsigned)(a->p->writes != 0));
    }
    qsort(ms, n, sizeof *ms, by_value);
    double median = n % 2 ? ms[n / 2] : (ms[n / 2 - 1] + ms[n / 2]) / 2;
    char size[32];
    uint32_t threads = kiln_context_threads(s->ctx);
    printf("time (measured): median %.4g ms, min %.4g ms of %zu launches, %s, %u thread%s\n",
           median, ms[0], n, device[info->device], threads, threads == 1 ? "" : "s");
    printf("traffic: %s, each array once as it is read and written: %.3g GB/s at the median\n",
           kl_human_bytes(bytes, size), median > 0 ? (double)bytes / (median * 1e6) : 0.0);
    printf("compile (measured): front end %.3g ms, C compiler %.4g ms, load %.3g ms, cache %s\n",
           info->front_ms, info->cc_ms, info->load_ms, cache[info->cache]);
    free(ms);
    return 0;
}
