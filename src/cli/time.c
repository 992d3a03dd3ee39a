/* time.c - `kiln run --time`.
 *
 * The first launch was the warm-up.  Then launches are repeated for half a second and ten times at
 * least, but no longer than ten seconds where three have been made; arrays that the kernel updates
 * in place change on the way, which changes no time.  Bytes are counted once for each array that
 * the kernel reads and once for each that it writes.
 *
 * On a GPU the arrays are copied to the device first, and the time is that between two events
 * around each launch, so neither copies nor the host's part count.  Arrays smaller than the L2
 * cache stay in it between launches: the output says so. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"

enum { LEAST = 3, USUAL = 10, MOST = 100000, ENOUGH_MS = 500, LONG_MS = 10000 };

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

/* ---- arrays on the device ---- */

struct moved {
    kiln_arg *arg;
    kiln_buffer **buf; /* as many as there are arrays */
    kiln_event *ev[2];
};

static kiln_status move(struct kl_session *s, const struct kl_args *run, struct moved *m,
                        kiln_diags **d)
{
    kiln_status st = kiln_event_create(s->ctx, &m->ev[0], d);
    if (!st)
        st = kiln_event_create(s->ctx, &m->ev[1], d);
    m->buf = kl_xalloc((run->n + 1) * sizeof *m->buf);
    m->arg = kl_xalloc((run->n + 1) * sizeof *m->arg);
    memcpy(m->arg, run->arg, run->n * sizeof *m->arg);
    for (size_t i = 0; i < run->n && !st; i++) {
        kiln_arg *a = &m->arg[i];
        size_t same = i;
        if (a->kind != KILN_ARG_TENSOR || !a->u.tensor.data)
            continue;
        for (size_t j = 0; j < i; j++) /* one array under two names */
            if (run->arg[j].kind == KILN_ARG_TENSOR && same == i &&
                run->arg[j].u.tensor.data == a->u.tensor.data)
                same = j;
        const struct kl_arr *r = kl_args_find(run, a->name);
        int64_t last = 0;
        for (int32_t k = 0; r && k < r->ndim; k++)
            last += r->count ? (r->shape[k] - 1) * r->stride[k] : 0;
        size_t bytes = r && r->count ? (size_t)(last + 1) * kl_elems[r->elem].bytes : 0;
        if (same == i) {
            st = kiln_buffer_create(s->ctx, bytes, &m->buf[i]);
            if (!st)
                st = kiln_buffer_upload(m->buf[i], 0, a->u.tensor.data, bytes, NULL, d);
        }
        a->u.tensor.data = kiln_buffer_data(m->buf[same]);
        a->u.tensor.size_bytes = 0;
        a->u.tensor.flags = KILN_TENSOR_DEVICE;
    }
    return st;
}

static void drop(const struct kl_args *run, struct moved *m)
{
    for (size_t i = 0; m->buf && i < run->n; i++)
        kiln_buffer_free(m->buf[i]);
    kiln_event_free(m->ev[0]);
    kiln_event_free(m->ev[1]);
    free(m->buf);
    free(m->arg);
}

/* One launch; its milliseconds. */
static kiln_status once(struct kl_session *s, const struct kl_args *run, const struct moved *m,
                        double *ms, kiln_diags **d)
{
    (void)s;
    if (!m->arg) {
        double t = now_ms();
        kiln_status st = kiln_launch(run->k, NULL, run->arg, run->n, d);
        *ms = now_ms() - t;
        return st;
    }
    kiln_status st = kiln_event_record(m->ev[0], NULL, d);
    if (!st)
        st = kiln_launch(run->k, NULL, m->arg, run->n, d);
    if (!st)
        st = kiln_event_record(m->ev[1], NULL, d);
    if (!st)
        st = kiln_event_sync(m->ev[1], d);
    return st ? st : kiln_event_elapsed(m->ev[0], m->ev[1], ms, d);
}

/* ---- the report ---- */

static void report(struct kl_session *s, const struct kl_args *run, const kiln_spec_info *info,
                   double *ms, size_t n)
{
    static const char *const device[] = {"auto", "interpreter", "CPU", "GPU", "PTX executor"};
    static const char *const cache[] = {"off", "hit", "miss", "stale"};
    uint64_t bytes = 0;
    char size[32];
    bool cuda = info->device == KILN_DEVICE_CUDA;
    const kiln_device_info *dev = kiln_context_device_info(s->ctx);
    for (size_t i = 0; i < run->narr; i++) {
        const struct kl_arr *a = &run->arr[i];
        bytes += a->count * kl_elems[a->elem].bytes *
                 ((a->p->reads != 0) + (unsigned)(a->p->writes != 0));
    }
    qsort(ms, n, sizeof *ms, by_value);
    double median = n % 2 ? ms[n / 2] : (ms[n / 2 - 1] + ms[n / 2]) / 2;
    uint32_t threads = kiln_context_threads(s->ctx);
    printf("time (measured): median %.4g ms, min %.4g ms of %zu launches, ", median, ms[0], n);
    if (cuda)
        printf("%s, by events\n", dev->name);
    else
        printf("%s, %u thread%s\n", device[info->device], threads, threads == 1 ? "" : "s");
    printf("traffic: %s, each array once as it is read and written: %.3g GB/s at the median%s\n",
           kl_human_bytes(bytes, size), median > 0 ? (double)bytes / (median * 1e6) : 0.0,
           cuda && bytes < 2 * dev->l2_bytes ? " (much of it stays in the L2 cache)" : "");
    printf("compile (measured): front end %.3g ms, %s %.4g ms, load %.3g ms, cache %s\n",
           info->front_ms, cuda ? "assembler" : "C compiler", info->cc_ms, info->load_ms,
           cache[info->cache]);
    if (cuda)
        printf("code: %u threads a block, %u registers, %u bytes of spills, %u bytes of shared "
               "memory, %u blocks fit a multiprocessor\n",
               info->cta_threads, info->registers, info->local_bytes, info->shared_bytes,
               info->ctas_per_sm);
}

int kl_time(struct kl_session *s, const struct kl_args *run, const kiln_spec_info *info)
{
    double *ms = kl_xalloc(sizeof *ms * MOST), start;
    struct moved m = {0};
    kiln_diags *d = NULL;
    kiln_status st = KILN_OK;
    size_t n = 0;
    if (info->device == KILN_DEVICE_CUDA)
        st = move(s, run, &m, &d);
    if (!st && m.arg)
        st = once(s, run, &m, ms, &d); /* the arrays have new addresses: warm-up */
    for (start = now_ms();
         !st &&
         (n < LEAST || (n < MOST && now_ms() - start < (n < USUAL ? LONG_MS : ENOUGH_MS)));) {
        kiln_diags_free(d);
        d = NULL;
        st = once(s, run, &m, &ms[n++], &d);
    }
    int rc = 0;
    if (st) {
        rc = kl_session_fail(s, st, d);
    } else {
        kiln_diags_free(d);
        report(s, run, info, ms, n);
    }
    drop(run, &m);
    free(ms);
    return rc;
}
