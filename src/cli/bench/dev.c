/* dev.c - a device of `kiln bench`: its context, its ceilings, and an empty cache.
 *
 * The ceilings are what two kernels written in Kiln reach on arrays of four times the cache: one
 * copies, one only reads.  The second one also flushes the cache where a case is too small for
 * copies of its arrays to do so: reading leaves no lines that must be written back later, inside
 * the time of somebody else. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench/bench.h"

#define MIB ((uint64_t)1 << 20)

static const char source[] =
    "#pragma kiln 1\n"
    "kernel copy(i64 n, i32 y[n], const i32 x[n], constexpr i64 BLOCK = 4096)\n"
    "    grid(cdiv(n, BLOCK))\n"
    "{\n"
    "    i64 i = program_id(0) * BLOCK;\n"
    "    y[i:BLOCK] = x[i:BLOCK];\n"
    "}\n"
    "kernel read(i64 n, constexpr i64 BLOCK = 4096, i32 y[cdiv(n, BLOCK)], const i32 x[n])\n"
    "    grid(cdiv(n, BLOCK))\n"
    "{\n"
    "    i64 p = program_id(0);\n"
    "    y[p] = max(x[p * BLOCK:BLOCK]);\n"
    "}\n";

bool kl_bench_why(struct kl_msg *m, const char *what, kiln_status st, kiln_diags *d)
{
    const char *text = kiln_status_text(st);
    for (size_t i = 0; i < kiln_diags_count(d); i++)
        if (kiln_diags_at(d, i)->severity == KILN_ERROR) {
            text = kiln_diags_at(d, i)->text;
            break;
        }
    kl_msg(m, kl_rc_of(st), "%s: %.*s", what, (int)strcspn(text, "\n"), text);
    kiln_diags_free(d);
    return false;
}

/* ---- launches of the two kernels ---- */

enum which { COPY, READ };

static void *address(kiln_buffer *b, uint64_t at)
{
    return (char *)kiln_buffer_data(b) + at;
}

enum { LEAST_BLOCK = 1024, FLUSH_BLOCK = 4096, FEW = 64 };

/* n elements from byte `at` of the large arrays on. */
static bool launch(struct kl_bdev *d, enum which w, uint64_t at, int64_t n, int64_t block,
                   struct kl_msg *m)
{
    kiln_kernel *k = kiln_module_at(d->mod, w);
    int64_t shape = n, parts = (n + block - 1) / block;
    kiln_diags *diags = NULL;
    kiln_arg a[3] = {{.name = "x", .kind = KILN_ARG_TENSOR},
                     {.name = "y", .kind = KILN_ARG_TENSOR},
                     {.name = "BLOCK", .kind = KILN_ARG_INT, .u = {.i = block}}};
    bool few = n <= FEW;
    a[0].u.tensor = (kiln_tensor){.data = address(few ? d->few[0] : d->big[0], at),
                                  .dtype = KILN_I32,
                                  .ndim = 1,
                                  .shape = &shape,
                                  .flags = KILN_TENSOR_DEVICE};
    a[1].u.tensor = a[0].u.tensor;
    a[1].u.tensor.data =
        w == READ && !few ? kiln_buffer_data(d->sums) : address(few ? d->few[1] : d->big[1], at);
    a[1].u.tensor.shape = w == COPY ? &shape : &parts;
    kiln_status st = kiln_launch(k, NULL, a, 3, &diags);
    if (st)
        return kl_bench_why(m, w == COPY ? "the copy kernel" : "the read kernel", st, diags);
    kiln_diags_free(diags);
    return true;
}

/* ---- opening ---- */

/* The last cache of the first core.  sysconf is asked second: on some processors it adds up the
 * caches of all parts of the chip. */
static uint64_t host_cache(void)
{
    uint64_t best = 0;
    for (int i = 0; i < 8; i++) {
        char path[80], text[40] = "", *unit;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        FILE *f = fopen(path, "r");
        if (f && fgets(text, sizeof text, f)) { /* "32768K" */
            uint64_t v = strtoull(text, &unit, 10);
            v <<= *unit == 'K' ? 10 : *unit == 'M' ? 20 : 0;
            best = v > best ? v : best;
        }
        if (f)
            fclose(f);
    }
    long l3 = -1;
#ifdef _SC_LEVEL3_CACHE_SIZE
    l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return best ? best : l3 > 0 ? (uint64_t)l3 : 32 * MIB;
}

/* Random bits, repeated: no hardware that compresses or sees equal lines gets an easier task. */
static bool fill(struct kl_bdev *d, struct kl_msg *m)
{
    enum { PART = 1 << 20 };
    uint32_t *host = kl_xalloc(PART);
    kiln_diags *diags = NULL;
    kiln_status st = KILN_OK;
    for (uint32_t i = 0; i < PART / 16; i++)
        kl_philox(3, i, host + 4 * (size_t)i);
    for (uint64_t at = 0; at < d->ceiling_bytes && !st; at += PART) {
        uint64_t n = d->ceiling_bytes - at < PART ? d->ceiling_bytes - at : PART;
        for (int k = 0; k < 2 && !st; k++)
            st = kiln_buffer_upload(d->big[k], (size_t)at, host, (size_t)n, NULL, &diags);
    }
    free(host);
    return !st || kl_bench_why(m, "filling an array", st, diags);
}

/* The large arrays, when they are first needed. */
static bool need_arrays(struct kl_bdev *d, struct kl_msg *m)
{
    kiln_diags *diags = NULL;
    uint64_t left = 0;
    if (d->sums)
        return true;
    d->ceiling_bytes = 4 * d->cache_bytes;
    kiln_memory_info(d->s.ctx, &left, NULL, NULL);
    if (left && d->ceiling_bytes > left / 8)
        d->ceiling_bytes = left / 8;
    d->ceiling_bytes -= d->ceiling_bytes % 65536;
    d->ceiling_bytes += d->ceiling_bytes ? 0 : 65536;
    kiln_status st = KILN_OK;
    for (int i = 0; i < 2 && !st; i++)
        st = kiln_buffer_alloc(d->s.ctx, (size_t)d->ceiling_bytes, &d->big[i], &diags);
    if (!st)
        st =
            kiln_buffer_alloc(d->s.ctx, (size_t)(d->ceiling_bytes / LEAST_BLOCK), &d->sums, &diags);
    return st ? kl_bench_why(m, "preparing the device", st, diags) : fill(d, m);
}

bool kl_bdev_flush(struct kl_bdev *d, struct kl_msg *m)
{
    if (!need_arrays(d, m))
        return false;
    uint64_t bytes = 2 * d->cache_bytes < d->ceiling_bytes ? 2 * d->cache_bytes : d->ceiling_bytes;
    return launch(d, READ, 0, (int64_t)(bytes / 4), FLUSH_BLOCK, m);
}

static kiln_status plug(struct kl_bdev *d, kiln_diags **diags)
{
    return kiln_buffer_copy(d->big[1], 0, d->big[0], 0, (size_t)(d->ceiling_bytes / 4), NULL,
                            diags);
}

/* What one plug takes; the second one counts. */
static bool time_plug(struct kl_bdev *d, struct kl_msg *m)
{
    kiln_diags *diags = NULL;
    kiln_status st = KILN_OK;
    for (int i = 0; i < 2 && !st; i++) {
        st = kiln_event_record(d->ev[0], NULL, &diags);
        if (!st)
            st = plug(d, &diags);
        if (!st)
            st = kiln_event_record(d->ev[1], NULL, &diags);
        if (!st)
            st = kiln_event_sync(d->ev[1], &diags);
        if (!st)
            st = kiln_event_elapsed(d->ev[0], d->ev[1], &d->plug_ms, &diags);
    }
    d->plug_ms = d->plug_ms > 1e-3 ? d->plug_ms : 1e-3;
    return !st || kl_bench_why(m, "a copy on the device", st, diags);
}

bool kl_bdev_busy(struct kl_bdev *d, double ms, struct kl_msg *m)
{
    if (!need_arrays(d, m) || (!(d->plug_ms > 0) && !time_plug(d, m)))
        return false;
    for (int n = (int)(ms / d->plug_ms) + 1; n > 0; n--) {
        kiln_diags *diags = NULL;
        kiln_status st = plug(d, &diags);
        if (st)
            return kl_bench_why(m, "a copy on the device", st, diags);
        kiln_diags_free(diags);
    }
    return true;
}

static bool make(struct kl_bdev *d, struct kl_msg *m)
{
    kiln_diags *diags = NULL;
    kiln_status st = KILN_OK;
    if (d->kind == KILN_DEVICE_INTERP || d->kind == KILN_DEVICE_SIM)
        d->cache_bytes = 16 << 10; /* nobody asks for the bandwidth of an interpreter */
    static const int32_t zero[FEW]; /* what nobody wrote must not be read, by a calibration neither */
    for (int i = 0; i < 2 && !st; i++) {
        st = kiln_buffer_alloc(d->s.ctx, sizeof zero, &d->few[i], &diags);
        if (!st)
            st = kiln_buffer_upload(d->few[i], 0, zero, sizeof zero, NULL, &diags);
    }
    for (int i = 0; i < 2 * KL_BURST && !st && d->cuda; i++)
        st = kiln_event_create(d->s.ctx, &d->ev[i], &diags);
    if (!st)
        st = kiln_compile(d->s.ctx, "ceilings", source, sizeof source - 1, &d->mod, &diags);
    return !st || kl_bench_why(m, "preparing the device", st, diags);
}

/* The least time of a launch that copies next to nothing. */
static bool calibrate(struct kl_bdev *d, struct kl_msg *m)
{
    kiln_diags *diags = NULL;
    double best = 1e9;
    for (int i = 0; i < 200; i++) {
        double t = kl_bench_now(NULL);
        if (!launch(d, COPY, 0, FEW, LEAST_BLOCK, m))
            return false;
        t = kl_bench_now(NULL) - t;
        best = t < best ? t : best;
        if (best > 1e-3 && i > 3)
            break;
    }
    d->empty_ns = best * 1e9;
    kiln_status st = kiln_sync(d->s.ctx, &diags);
    return !st || kl_bench_why(m, "a small launch", st, diags);
}

int kl_bdev_open(struct kl_bdev *d, const struct kl_opts *o, const char *name, bool pin)
{
    kiln_device kind;
    struct kl_msg m = {0};
    *d = (struct kl_bdev){.name = kl_xstrndup(name, strlen(name)), .o = *o};
    d->opt = d->o.opt = kl_xalloc((o->nopt + 1) * sizeof *d->opt);
    memcpy(d->opt, o->opt, o->nopt * sizeof *d->opt);
    for (size_t i = 0; i < o->nopt; i++) /* kl_session_open looks there for the number of a GPU */
        if (d->opt[i].id == KL_OPT_devices) {
            d->opt[i].id = KL_OPT_device;
            d->opt[i].val = d->name;
        }
    int32_t index = 0;
    int rc = kl_parse_device(name, &kind, &index);
    if (rc)
        return rc;
    double t = kl_bench_now(NULL);
    rc = kl_session_open(&d->s, &d->o, kind, 0, false);
    d->start_ms = (kl_bench_now(NULL) - t) * 1e3;
    if (rc)
        return rc;
    d->kind = kiln_context_device(d->s.ctx);
    d->label = strcmp(name, "auto") != 0 ? d->name : d->kind == KILN_DEVICE_CPU ? "cpu" : "interp";
    d->cuda = d->kind == KILN_DEVICE_CUDA;
    d->cache_bytes = d->cuda ? kiln_context_device_info(d->s.ctx)->l2_bytes : host_cache();
    d->cache_name = d->cuda ? "L2 cache" : "last-level cache";
    kl_watch_open(&d->watch, d->kind, index);
    if (!make(d, &m) || !calibrate(d, &m))
        return kl_fail(m.rc, "%s", m.text);
    if (pin && !d->cuda)
        kl_pin_threads();
    return 0;
}

void kl_bdev_close(struct kl_bdev *d)
{
    for (int i = 0; i < 2 * KL_BURST; i++)
        kiln_event_free(d->ev[i]);
    for (int i = 0; i < 2; i++) {
        kiln_buffer_free(d->big[i]);
        kiln_buffer_free(d->few[i]);
    }
    kiln_buffer_free(d->sums);
    kiln_module_free(d->mod);
    kl_watch_close(&d->watch);
    kl_session_close(&d->s);
    free(d->opt);
    free(d->name);
}

/* ---- the ceilings ---- */

static kiln_status once(struct kl_ceiling *c, kiln_diags **diags, struct kl_msg *m)
{
    struct kl_bdev *d = c->d;
    /* a flush reads the first half of the arrays */
    uint64_t first = c->flush ? d->ceiling_bytes / 2 / 256 * 256 : 0, at = c->next + first;
    c->next = at + 2 * c->bytes > d->ceiling_bytes ? 0 : c->next + c->bytes;
    if (!c->block)
        return kiln_buffer_copy(d->big[1], (size_t)at, d->big[0], (size_t)at, (size_t)c->bytes,
                                NULL, diags);
    return launch(d, c->reads ? READ : COPY, at, (int64_t)(c->bytes / 4), c->block, m)
               ? KILN_OK
               : KILN_E_DEVICE;
}

bool kl_ceiling_take(void *user, size_t n, double *ms, struct kl_msg *m)
{
    struct kl_ceiling *c = user;
    struct kl_bdev *d = c->d;
    kiln_diags *diags = NULL;
    kiln_status st = KILN_OK;
    m->text[0] = 0;
    if (d->cuda && !c->flush && !kl_bdev_busy(d, 0.02 * (double)n, m))
        return false;
    for (size_t i = 0; i < n && !st; i++) {
        if (c->flush && !kl_bdev_flush(d, m))
            return false;
        double t = kl_bench_now(NULL);
        if (d->cuda)
            st = kiln_event_record(d->ev[2 * i], NULL, &diags);
        if (!st)
            st = once(c, &diags, m);
        if (d->cuda && !st)
            st = kiln_event_record(d->ev[2 * i + 1], NULL, &diags);
        ms[i] = (kl_bench_now(NULL) - t) * 1e3;
    }
    if (d->cuda && !st)
        st = kiln_sync(d->s.ctx, &diags);
    for (size_t i = 0; i < n && d->cuda && !st; i++)
        st = kiln_event_elapsed(d->ev[2 * i], d->ev[2 * i + 1], &ms[i], &diags);
    if (st && m->text[0])
        return false; /* the launch has said it */
    return !st || kl_bench_why(m, "the ceiling", st, diags);
}

void kl_ceiling_size(struct kl_ceiling *c, uint64_t traffic, bool flush)
{
    uint64_t bytes = traffic / (c->reads ? 1 : 2) / 256 * 256,
             most = c->d->ceiling_bytes / (flush ? 2 : 1);
    const uint64_t least = (uint64_t)FEW * 8;
    const struct kl_bdev *d = c->d;
    uint64_t units = d->cuda ? (uint64_t)kiln_context_device_info(d->s.ctx)->sms
                             : kiln_context_threads(d->s.ctx);
    c->bytes = bytes < least ? least : bytes > most ? most : bytes;
    c->block = c->best;
    if (c->block && c->bytes / 4 / (uint64_t)c->block < 4 * units) /* too few programs for all */
        c->block = d->cuda ? 1024 : 4096;
    c->flush = flush;
    c->next = 0;
}

void kl_ceiling_set(struct kl_ceiling *c, const double *sorted, size_t n)
{
    if (!n)
        return;
    c->gbs = (double)c->bytes * (c->reads ? 1 : 2) / (kl_stats_median(sorted, n) * 1e6);
    c->least = c->least > 0 && c->least < c->gbs ? c->least : c->gbs;
    c->most = c->most > c->gbs ? c->most : c->gbs;
}

bool kl_bdev_ceilings(struct kl_bdev *d, const struct kl_rule *rule, struct kl_msg *m)
{
    struct kl_ceiling c[] = {{.d = d, .block = d->cuda ? 1024 : 16384},
                             {.d = d, .block = 4096},
                             {.d = d, .block = d->cuda ? 1024 : 16384, .reads = true},
                             {.d = d, .block = 4096, .reads = true},
                             {.d = d}}; /* the CPU's own copy has one thread only */
    size_t n = d->cuda ? 5 : 4;
    struct kl_lane lane[5] = {{0}};
    struct kl_loop loop = {.rule = *rule, .now = kl_bench_now};
    double ms[KL_BURST], best[2] = {0};
    bool ok = need_arrays(d, m);
    for (size_t i = 0; i < n && ok; i++) {
        c[i].bytes = d->ceiling_bytes;
        lane[i] =
            (struct kl_lane){.user = &c[i], .burst = d->cuda ? 8 : 2, .take = kl_ceiling_take};
        ok = kl_ceiling_take(&c[i], 2, ms, m);
    }
    if (ok)
        kl_loop_run(&loop, lane, n);
    for (size_t i = 0; i < n && ok; i++) {
        double median = kl_stats_median(lane[i].ms, lane[i].n);
        int k = c[i].reads;
        ok = lane[i].stop != KL_STOP_FAILED;
        if (!ok) {
            *m = lane[i].why;
        } else if (!(best[k] > 0) || median < best[k]) {
            best[k] = median;
            d->ceiling[k] = c[i];
            d->ceiling[k].best = c[i].block;
        }
    }
    for (size_t i = 0; i < n; i++)
        free(lane[i].ms);
    return ok;
}
