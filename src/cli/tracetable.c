/* tracetable.c - what a trace says in numbers: kernels, copies, and where the time of the host
 * went. */
#include <stdlib.h>
#include <string.h>

#include "cli/trace.h"

struct row {
    const char *name;
    size_t n;
    uint64_t total, min, max, bytes, programs;
    uint32_t threads;
};
struct rows {
    struct row *v;
    size_t n;
};

static void count(struct rows *t, const char *name, const struct kl_traced *r, uint64_t ns)
{
    size_t i = 0;
    while (i < t->n && strcmp(t->v[i].name, name) != 0)
        i++;
    if (i == t->n) {
        t->v = kl_xgrow(t->v, sizeof *t->v, t->n);
        t->v[t->n++] = (struct row){.name = name, .min = UINT64_MAX};
    }
    struct row *w = &t->v[i];
    w->n++;
    w->total += ns;
    w->min = ns < w->min ? ns : w->min;
    w->max = ns > w->max ? ns : w->max;
    w->bytes += r->bytes;
    w->programs += r->programs;
    w->threads = r->threads > w->threads ? r->threads : w->threads;
}

static int longer(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    return strcmp(x->name, y->name);
}

static uint64_t finish(struct rows *t)
{
    uint64_t total = 0;
    if (t->n)
        qsort(t->v, t->n, sizeof *t->v, longer);
    for (size_t i = 0; i < t->n; i++)
        total += t->v[i].total;
    return total;
}

/* "12.34 us", ten characters wide. */
static const char *time_text(uint64_t ns, char buf[32])
{
    static const char *const unit[] = {"ns", "us", "ms", "s"};
    double v = (double)ns;
    int u = 0;
    while (v >= 999.95 && u < 3) {
        v /= 1000;
        u++;
    }
    snprintf(buf, 32, u ? v < 9.9995 ? "%.3f %s" : v < 99.995 ? "%.2f %s" : "%.1f %s" : "%.0f %s",
             v, unit[u]);
    return buf;
}

static double percent(uint64_t part, uint64_t of)
{
    return of ? 100.0 * (double)part / (double)of : 0.0;
}

/* Names come from files and may be long; control characters would move the cursor. */
static void put_name(const char *s, int width, FILE *f)
{
    int n = 0;
    for (; *s && n < width; s++, n += (*s & 0xc0) != 0x80)
        fputc((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s, f);
    while ((*s & 0xc0) == 0x80)
        fputc(*s++, f);
    fprintf(f, "%*s", width - n, "");
}

static void put_rows(const struct rows *t, uint64_t total, bool rate, FILE *f)
{
    char b[4][32];
    for (size_t i = 0; i < t->n; i++) {
        const struct row *w = &t->v[i];
        put_name(w->name, 28, f);
        fprintf(f, " %6zu %10s %10s %10s %10s %6.1f %%", w->n, time_text(w->total, b[0]),
                time_text(w->total / w->n, b[1]), time_text(w->min, b[2]), time_text(w->max, b[3]),
                percent(w->total, total));
        if (rate && w->bytes && w->total)
            fprintf(f, " %8.4g", (double)w->bytes / (double)w->total);
        fputc('\n', f);
    }
}

/* ---- the parts ---- */

static bool on_gpu(const struct kl_tracer *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].place == KILN_TRACE_DEVICE)
            return true;
    return false;
}

/* Where the work itself is seen: on the device if there is one. */
static bool is_work(const struct kl_traced *r, bool gpu)
{
    return r->place == (gpu ? KILN_TRACE_DEVICE : KILN_TRACE_HOST) &&
           !(r->flags & KILN_TRACE_RECORDED);
}

static void put_kernels(const struct kl_tracer *t, bool gpu, FILE *f)
{
    struct rows rows = {0};
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].kind == KILN_TRACE_KERNEL && is_work(&t->v[i], gpu))
            count(&rows, t->v[i].name, &t->v[i], t->v[i].end - t->v[i].begin);
    uint64_t total = finish(&rows);
    fprintf(f, "%-28s %6s %10s %10s %10s %10s %8s %8s\n",
            gpu ? "kernels (by GPU events)" : "kernels", "runs", "total", "mean", "min", "max",
            "share", "GB/s");
    put_rows(&rows, total, true, f);
    if (!rows.n)
        fputs("none ran\n", f);
    free(rows.v);
}

static void put_copies(const struct kl_tracer *t, bool gpu, FILE *f)
{
    char size[32];
    struct rows rows = {0};
    for (size_t i = 0; i < t->n; i++)
        if ((t->v[i].kind == KILN_TRACE_COPY || t->v[i].kind == KILN_TRACE_FILL) &&
            is_work(&t->v[i], gpu))
            count(&rows, t->v[i].name, &t->v[i], t->v[i].end - t->v[i].begin);
    uint64_t total = finish(&rows);
    if (rows.n)
        fprintf(f, "\n%-28s %6s %10s %10s %10s %10s %8s %8s\n", "copies", "number", "total", "mean",
                "min", "max", "share", "GB/s");
    put_rows(&rows, total, true, f);
    for (size_t i = 0; i < rows.n; i++)
        fprintf(f, "%s%s %s", i ? ", " : "bytes: ", rows.v[i].name,
                kl_human_bytes(rows.v[i].bytes, size));
    if (rows.n)
        fputc('\n', f);
    free(rows.v);
}

/* What the host did, each part without what lies inside of it. */
static const char *part_of(const struct kl_traced *r)
{
    static const char *const part[] = {
        [KILN_TRACE_SOURCE] = "compile: read the source",
        [KILN_TRACE_BIND] = "launch: check arguments",
        [KILN_TRACE_LOWER] = "compile: lower to IR",
        [KILN_TRACE_PASSES] = "compile: passes",
        [KILN_TRACE_EMIT] = "compile: emit C or PTX",
        [KILN_TRACE_CACHE] = "compile: cache",
        [KILN_TRACE_COMPILER] = "compile: compiler, assembler",
        [KILN_TRACE_LOAD] = "compile: load",
        [KILN_TRACE_LAUNCH] = "launch: the call",
        [KILN_TRACE_KERNEL] = "run kernels",
        [KILN_TRACE_COPY] = "copy: the calls",
        [KILN_TRACE_FILL] = "copy: the calls",
        [KILN_TRACE_WAIT] = "wait for the device",
        [KILN_TRACE_MEMORY] = "device memory",
        [KILN_TRACE_CLOCK] = "compare the clocks",
    };
    bool known = r->kind > 0 && (size_t)r->kind < sizeof part / sizeof *part && part[r->kind];
    return known ? part[r->kind] : r->kind ? kiln_trace_kind_name(r->kind) : r->name;
}

static void put_host(const struct kl_tracer *t, FILE *f)
{
    struct rows rows = {0};
    char b[32];
    uint64_t whole = t->end - t->begin;
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].place == KILN_TRACE_HOST)
            count(&rows, part_of(&t->v[i]), &t->v[i], t->v[i].self);
    uint64_t total = finish(&rows);
    fprintf(f, "\n%-28s %6s %10s %10s %10s %10s %8s\n", "host", "times", "total", "mean", "min",
            "max", "share");
    put_rows(&rows, whole, false, f);
    if (whole > total)
        fprintf(f, "%-28s %6s %10s %43.1f %%\n", "else", "", time_text(whole - total, b),
                percent(whole - total, whole));
    fprintf(f, "%-28s %6s %10s\n", "all", "", time_text(whole, b));
    free(rows.v);
}

/* The part of the time between its first and last work in which the GPU did something.  Spans are
 * in the order in which they began. */
static void put_device(const struct kl_tracer *t, FILE *f)
{
    char a[32], b[32], c[32];
    uint64_t busy = 0, first = 0, last = 0, error = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct kl_traced *r = &t->v[i];
        if (r->place != KILN_TRACE_DEVICE)
            continue;
        if (!first)
            first = last = r->begin;
        uint64_t from = r->begin > last ? r->begin : last;
        busy += r->end > from ? r->end - from : 0;
        last = r->end > last ? r->end : last;
        error = r->error > error ? r->error : error;
    }
    fprintf(f, "\nthe GPU was busy for %s of the %s between its first and last work (%.1f %%)\n",
            time_text(busy, a), time_text(last - first, b), percent(busy, last - first));
    fprintf(f, "its times stand on the host's clock to %s; lengths are its own, to about 1 us\n",
            time_text(error, c));
}

void kl_tracer_table(const struct kl_tracer *t, FILE *f)
{
    bool gpu = on_gpu(t);
    put_kernels(t, gpu, f);
    put_copies(t, gpu, f);
    put_host(t, f);
    if (gpu)
        put_device(t, f);
}
