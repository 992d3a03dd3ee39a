/* table.c - the numbers of a trace as a table and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/trace/trace.h"

/* Names are at least and at most so wide. */
enum { NARROW = 28, WIDE = 60 };

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

static double share(uint64_t part, uint64_t of)
{
    return of ? (double)part / (double)of : 0.0;
}

/* ---- names ---- */

static bool more(char c)
{
    return (c & 0xc0) == 0x80;
}

static int length(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += !more(*s);
    return n;
}

/* A kernel that ran with several shapes has a row for each, which says so. */
static char *label_of(const struct kl_trace_row *w)
{
    return kl_xprintf("%s%s%s", w->name, w->several && *w->detail ? " " : "",
                      w->several ? w->detail : "");
}

/* Names come from files and may be long; control characters would move the cursor. */
static void put_name(const char *s, int width, FILE *f)
{
    bool cut = length(s) > width;
    int most = cut ? width - 3 : width, n = 0;
    for (; *s && (n < most || more(*s)); s++) {
        n += !more(*s);
        fputc((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s, f);
    }
    fprintf(f, "%s%*s", cut ? "..." : "", most - n, "");
}

static int width_of(const struct kl_trace_rows *t)
{
    int width = NARROW;
    for (size_t i = 0; i < t->n; i++) {
        char *label = label_of(&t->v[i]);
        int n = length(label);
        width = n > width ? n : width;
        free(label);
    }
    return width < WIDE ? width : WIDE;
}

/* ---- the table ---- */

static void put_rows(const struct kl_trace_rows *t, int width, uint64_t whole, bool rate, FILE *f)
{
    char b[4][32];
    for (size_t i = 0; i < t->n; i++) {
        const struct kl_trace_row *w = &t->v[i];
        char *label = label_of(w);
        put_name(label, width, f);
        free(label);
        fprintf(f, " %6zu %10s %10s %10s %10s %6.1f %%", w->n, time_text(w->total, b[0]),
                time_text(w->total / w->n, b[1]), time_text(w->min, b[2]), time_text(w->max, b[3]),
                100 * share(w->total, whole));
        if (rate && w->bytes && w->total)
            fprintf(f, " %8.4g", (double)w->bytes / (double)w->total);
        fputc('\n', f);
    }
}

static void put_work(const struct kl_trace_rows *t, const char *what, const char *often, FILE *f)
{
    int width = width_of(t);
    fprintf(f, "%-*s %6s %10s %10s %10s %10s %8s %8s\n", width, what, often, "total", "mean", "min",
            "max", "share", "GB/s");
    put_rows(t, width, t->total, true, f);
}

static void put_host(const struct kl_trace_sum *s, FILE *f)
{
    char b[32];
    int width = width_of(&s->host);
    fprintf(f, "\n%-*s %6s %10s %10s %10s %10s %8s\n", width, "host", "times", "total", "mean",
            "min", "max", "share");
    put_rows(&s->host, width, s->whole, false, f);
    if (s->whole > s->host.total)
        fprintf(f, "%-*s %6s %10s %43.1f %%\n", width, "else", "",
                time_text(s->whole - s->host.total, b),
                100 * share(s->whole - s->host.total, s->whole));
    fprintf(f, "%-*s %6s %10s\n", width, "all", "", time_text(s->whole, b));
}

void kl_tracer_table(const struct kl_tracer *t, FILE *f)
{
    char a[32], b[32], c[32], size[32];
    struct kl_trace_sum s;
    kl_tracer_sum(t, &s);
    put_work(&s.kernels, s.gpu ? "kernels (by GPU events)" : "kernels", "runs", f);
    if (!s.kernels.n)
        fputs("none ran\n", f);
    if (s.copies.n) {
        fputc('\n', f);
        put_work(&s.copies, "copies", "number", f);
        for (size_t i = 0; i < s.copies.n; i++)
            fprintf(f, "%s%s %s", i ? ", " : "bytes: ", s.copies.v[i].name,
                    kl_human_bytes(s.copies.v[i].bytes, size));
        fputc('\n', f);
    }
    put_host(&s, f);
    if (s.gpu) {
        fprintf(f,
                "\nthe GPU was busy for %s of the %s between its first and last work (%.1f %%)\n"
                "its times stand on the host's clock to %s; lengths are its own, to about 1 us\n",
                time_text(s.busy, a), time_text(s.last - s.first, b),
                100 * share(s.busy, s.last - s.first), time_text(s.error, c));
    }
    kl_trace_sum_free(&s);
}

/* ---- JSON: schema kiln.trace/1, which docs/trace.md describes ---- */

static json_t *rows(const struct kl_trace_rows *t, const char *name, const char *often,
                    uint64_t whole, bool rate)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n; i++) {
        const struct kl_trace_row *w = &t->v[i];
        json_t *o = json_object();
        kl_json_set(o, name, kl_json_text(w->name));
        if (*w->detail)
            kl_json_set(o, "arguments", kl_json_text(w->detail));
        kl_json_set(o, often, kl_json_count(w->n));
        kl_json_set(o, "total_ns", kl_json_count(w->total));
        kl_json_set(o, "mean_ns", kl_json_number((double)w->total / (double)w->n));
        kl_json_set(o, "min_ns", kl_json_count(w->min));
        kl_json_set(o, "max_ns", kl_json_count(w->max));
        kl_json_set(o, "share", kl_json_number(share(w->total, whole)));
        if (rate && w->bytes) {
            kl_json_set(o, "bytes", kl_json_count(w->bytes));
            kl_json_set(o, "gbs", kl_json_above(share(w->bytes, w->total)));
        }
        json_array_append_new(list, o);
    }
    return list;
}

char *kl_tracer_report(const struct kl_tracer *t, const char *path)
{
    json_t *root = json_object(), *gpu = NULL;
    struct kl_trace_sum s;
    kl_tracer_sum(t, &s);
    if (s.gpu) {
        gpu = json_object();
        kl_json_set(gpu, "busy_ns", kl_json_count(s.busy));
        kl_json_set(gpu, "between_ns", kl_json_count(s.last - s.first));
        kl_json_set(gpu, "share", kl_json_number(share(s.busy, s.last - s.first)));
        kl_json_set(gpu, "error_ns", kl_json_count(s.error));
    }
    kl_json_set(root, "schema", json_string("kiln.trace/1"));
    kl_json_set(root, "build", kl_json_text(kiln_build_id()));
    kl_json_set(root, "device", kl_json_some(t->device));
    kl_json_set(root, "timed_by", json_string(s.gpu ? "events" : "clock"));
    kl_json_set(root, "kernels", rows(&s.kernels, "name", "runs", s.kernels.total, true));
    kl_json_set(root, "copies", rows(&s.copies, "name", "number", s.copies.total, true));
    kl_json_set(root, "host", rows(&s.host, "part", "times", s.whole, false));
    kl_json_set(root, "whole_ns", kl_json_count(s.whole));
    kl_json_set(root, "else_ns",
                kl_json_count(s.whole > s.host.total ? s.whole - s.host.total : 0));
    kl_json_set(root, "gpu", gpu);
    kl_json_set(root, "time_line", kl_json_text(path));
    kl_trace_sum_free(&s);
    return kl_json_dump(root, 9);
}
