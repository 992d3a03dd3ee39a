/* report_bench.c - reports of `kiln bench` on the page: devices, ceilings, one table for each. */
#include <math.h>
#include <string.h>

#include "cli/report.h"

static void interval(FILE *f, const json_t *ci)
{
    const json_t *lo = json_array_get(ci, 0), *hi = json_array_get(ci, 1);
    char a[32], b[32];
    if (json_is_number(lo) && json_is_number(hi))
        kl_html(f, "<td class=\"n\">%s to %s</td>", kl_rep_ms(json_number_value(lo), a),
                kl_rep_ms(json_number_value(hi), b));
    else
        fputs("<td class=\"n dim\">–</td>", f);
}

static void versus(FILE *f, const json_t *v)
{
    const char *state = kl_jstr(v, "state");
    double ratio = kl_jnum(v, "ratio");
    if (!isfinite(ratio)) {
        fputs("<td class=\"n dim\">–</td>", f);
        return;
    }
    const char *cls = !strcmp(state, "FAST") ? "good" : !strcmp(state, "SLOW") ? "warn" : "dim";
    kl_html(f, "<td class=\"n\">%.2f× <span class=\"%s\">%s</span></td>", ratio, cls, state);
}

static void row(FILE *f, const json_t *r)
{
    char a[32];
    const json_t *cold = json_object_get(r, "cold"), *warm = json_object_get(r, "warm");
    const json_t *first = cold ? cold : warm;
    const char *setting = kl_jstr(r, "setting");
    kl_html(f, "<tr><th scope=\"row\">%s%s%s</th><td>%s</td><td>%s</td><td>%s</td>",
            kl_jstr(r, "kernel"), *setting ? " " : "", setting, kl_jstr(r, "shape"),
            kl_jstr(r, "point"), kl_jstr(r, "device"));
    if (!first) {
        kl_html(f, "<td colspan=\"12\" class=\"%s\">%s: %s</td></tr>\n",
                json_is_true(json_object_get(r, "failed")) ? "bad" : "dim",
                json_is_true(json_object_get(r, "failed")) ? "failed" : "not measured",
                kl_jstr(r, "note"));
        return;
    }
    double ms = kl_jnum(cold, "median"), w = kl_jnum(warm, "median"), ns = kl_jnum(r, "launch_ns");
    kl_html(f, "<td class=\"n\">%s</td>", kl_rep_ms(ms, a));
    interval(f, json_object_get(first, "ci"));
    kl_html_share(f, kl_jnum(first, "noise"));
    kl_html(f, "<td class=\"n\">%lld</td>", kl_jint(first, "samples"));
    kl_html_num(f, kl_jnum(r, "gbs"), "");
    kl_html_share(f, kl_jnum(r, "copy_share"));
    kl_html_share(f, kl_jnum(r, "read_share"));
    kl_html_num(f, kl_jnum(r, "gflops"), "");
    kl_html(f, "<td class=\"n\">%s</td>", kl_rep_ms(w, a));
    kl_html(f, "<td class=\"n\">%s</td>", kl_rep_ms(ns * 1e-6, a));
    versus(f, json_object_get(r, "vs"));
    versus(f, json_object_get(r, "baseline"));
    fputs("</tr>\n", f);
}

static void range(FILE *f, const char *what, const json_t *v)
{
    char a[32], b[32];
    if (json_array_size(v) == 2)
        kl_html(f, ", %s %s to %s GB/s", what,
                kl_rep_num(json_number_value(json_array_get(v, 0)), a),
                kl_rep_num(json_number_value(json_array_get(v, 1)), b));
}

static void device(FILE *f, const json_t *d)
{
    const char *name = kl_jstr(d, "name"), *throttle = kl_jstr(d, "throttle");
    long long sms = kl_jint(d, "multiprocessors"), threads = kl_jint(d, "threads");
    long long driver = kl_jint(d, "driver"), mhz = kl_jint(d, "full_mhz");
    kl_html(f, "<li><b>%s</b>%s%s", kl_jstr(d, "device"), *name ? " " : "", name);
    if (sms > 0)
        kl_html(f, ", %lld multiprocessors", sms);
    else if (threads > 0)
        kl_html(f, ", %lld threads", threads);
    if (driver > 0)
        kl_html(f, ", driver for CUDA %lld.%lld", driver / 1000, driver % 1000 / 10);
    range(f, "measured copy", json_object_get(d, "copy_gbs"));
    range(f, "measured read", json_object_get(d, "read_gbs"));
    if (mhz > 0)
        kl_html(f, ", full clock %lld MHz", mhz);
    if (*throttle)
        kl_html(f, ", <span class=\"warn\">throttled: %s</span>", throttle);
    fputs("</li>\n", f);
}

static void remarks(FILE *f, const json_t *rows, const json_t *notes)
{
    size_t i;
    const json_t *o;
    fputs("<ul class=\"plain dim\">\n", f);
    json_array_foreach (rows, i, o) {
        const char *check = kl_jstr(o, "check");
        bool said = !*check;
        for (size_t k = 0; k < i && !said; k++) {
            const json_t *p = json_array_get(rows, k);
            said = !strcmp(kl_jstr(p, "check"), check) &&
                   !strcmp(kl_jstr(p, "kernel"), kl_jstr(o, "kernel"));
        }
        if (!said)
            kl_html(f, "<li>checked: %s: %s</li>\n", kl_jstr(o, "kernel"), check);
    }
    json_array_foreach (notes, i, o)
        kl_html(f, "<li>note: %s</li>\n", json_string_value(o));
    fputs("</ul>\n", f);
}

void kl_rep_bench(FILE *f, const struct kl_rep_input *in, const char *id)
{
    static const char columns[] = "kernel|shape|at|device|#cold|#95% interval|#noise|#n|#GB/s|#of "
                                  "copy|#of read|#GFLOP/s|#warm|#launch|#vs|#baseline";
    const json_t *rows = json_object_get(in->root, "rows"), *o;
    size_t i;
    kl_html(f, "<section id=\"%s\"><h2>Measured: %s</h2>\n<ul class=\"plain\">\n", id, in->name);
    json_array_foreach (json_object_get(in->root, "devices"), i, o)
        device(f, o);
    kl_html(f,
            "</ul>\n<p class=\"dim\">kiln %s, build %s. Medians; bytes: each array once as it is "
            "read and written; ceilings are measured beside the case.</p>\n",
            kl_jstr(in->root, "kiln"), kl_jstr(in->root, "build"));
    kl_rep_sweeps(f, in->root, id);
    kl_table_begin(f, "", "Measured rows", columns);
    json_array_foreach (rows, i, o)
        row(f, o);
    kl_table_end(f);
    remarks(f, rows, json_object_get(in->root, "notes"));
    fputs("</section>\n", f);
}
