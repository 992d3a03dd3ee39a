/* take.c - samples of a launch, cold and warm.
 *
 * GPU: the device is kept busy while a burst of launches is queued, each between two events,
 * so that the host's part does not show; that part is taken beside it by the host's clock.
 * CPU: the clock stands around each launch.  Cold: the copies of the arrays are used in turn,
 * or the cache is flushed before each launch, outside the events.  Warm: one copy again and
 * again, after a launch that does not count.  What a kernel updates in place is restored
 * before each launch of its copy. */
#include "cli/bench/take.h"

enum { HOST_MOST = 4096 };

void kl_take_note(struct kl_taker *t, double host_s)
{
    if (t->nhost == HOST_MOST)
        return;
    t->host_s = kl_xgrow(t->host_s, sizeof *t->host_s, t->nhost);
    t->host_s[t->nhost++] = host_s;
}

static bool on_gpu(struct kl_taker *t, bool warm, size_t n, double *ms, struct kl_msg *m)
{
    struct kl_bdev *d = t->dev;
    kiln_diags *diags = NULL;
    kiln_status st = KILN_OK;
    size_t copies = warm || !t->copies ? 1 : t->copies, start = warm ? 0 : t->next;
    bool flush = t->flush && !warm, ok = true;
    double host = 0;
    if (warm)
        ok = t->restore(t->user, 0, m) && t->launch(t->user, 0, &host, m);
    else if (!flush)
        for (size_t i = 0; i < n && i < copies && ok; i++)
            ok = t->restore(t->user, (start + i) % copies, m);
    /* a launch and two events take the host less than this */
    double each = t->nhost ? t->host_s[t->nhost / 2] * 1e3 : 0.01;
    ok = ok && (flush || kl_bdev_busy(d, (double)n * (1.5 * each + 0.006), m));
    for (size_t i = 0; i < n && ok && !st; i++) {
        size_t c = (start + i) % copies;
        if (flush || warm)
            ok = t->restore(t->user, c, m);
        if (flush)
            ok = ok && kl_bdev_flush(d, m);
        if (ok)
            st = kiln_event_record(d->ev[2 * i], NULL, &diags);
        ok = ok && (st || t->launch(t->user, c, &host, m));
        if (ok && !st)
            st = kiln_event_record(d->ev[2 * i + 1], NULL, &diags);
        if (ok)
            kl_take_note(t, host);
    }
    if (ok && !st)
        st = kiln_sync(d->s.ctx, &diags);
    for (size_t i = 0; i < n && ok && !st; i++)
        st = kiln_event_elapsed(d->ev[2 * i], d->ev[2 * i + 1], &ms[i], &diags);
    if (!warm)
        t->next = (start + n) % copies;
    return ok && (!st || kl_bench_why(m, "events", st, diags));
}

static bool on_host(struct kl_taker *t, bool warm, size_t n, double *ms, struct kl_msg *m)
{
    size_t copies = warm || !t->copies ? 1 : t->copies;
    double s = 0;
    bool ok = true;
    if (!warm && !t->flush) /* the copies used first are out of the cache again at the end */
        for (size_t i = 0; i < n && i < copies && ok; i++)
            ok = t->restore(t->user, (t->next + i) % copies, m);
    if (warm)
        ok = t->restore(t->user, 0, m) && t->launch(t->user, 0, &s, m);
    for (size_t i = 0; i < n && ok; i++) {
        size_t c = warm ? 0 : t->next;
        if (warm || t->flush)
            ok = t->restore(t->user, c, m);
        if (t->flush && !warm)
            ok = ok && kl_bdev_flush(t->dev, m);
        ok = ok && t->launch(t->user, c, &s, m);
        ms[i] = s * 1e3;
        t->next = warm ? t->next : (t->next + 1) % copies;
    }
    return ok;
}

bool kl_take(struct kl_taker *t, bool warm, size_t n, double *ms, struct kl_msg *m)
{
    return t->dev->cuda ? on_gpu(t, warm, n, ms, m) : on_host(t, warm, n, ms, m);
}
