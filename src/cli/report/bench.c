/* bench.c - reports of `kiln bench` on the page: devices, ceilings, one table for each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"

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
    char a[32];
    if (!isfinite(ratio)) {
        fputs("<td class=\"n dim\">–</td>", f);
        return;
    }
    const char *cls = !strcmp(state, "FAST") ? "good" : !strcmp(state, "SLOW") ? "warn" : "dim";
    kl_html(f, "<td class=\"n\">%s× <span class=\"%s\">%s</span></td>", kl_rep_num(ratio, a), cls,
            state);
}

/* Columns of which some row says something; the others are left out. */
enum col { AT, DEVICE, CI, NOISE, N, GBS, COPY, READ, GFLOPS, WARM, LAUNCH, VS, BASELINE, COLS };

static bool says(const json_t *r, enum col c)
{
    const json_t *cold = json_object_get(r, "cold"), *warm = json_object_get(r, "warm");
    const json_t *first = cold ? cold : warm;
    switch (c) {
    case AT: return *kl_jstr(r, "point");
    case CI: return json_array_size(json_object_get(first, "ci")) == 2;
    case NOISE: return isfinite(kl_jnum(first, "noise"));
    case N: return kl_jint(first, "samples") > 0;
    case GBS: return isfinite(kl_jnum(r, "gbs"));
    case COPY: return isfinite(kl_jnum(r, "copy_share"));
    case READ: return isfinite(kl_jnum(r, "read_share"));
    case GFLOPS: return isfinite(kl_jnum(r, "gflops"));
    case WARM: return isfinite(kl_jnum(warm, "median"));
    case LAUNCH: return isfinite(kl_jnum(r, "launch_ns"));
    case VS: return isfinite(kl_jnum(json_object_get(r, "vs"), "ratio"));
    case BASELINE: return isfinite(kl_jnum(json_object_get(r, "baseline"), "ratio"));
    default: return true;
    }
}

static void cell(FILE *f, const json_t *r, enum col c)
{
    char a[32];
    const json_t *cold = json_object_get(r, "cold"), *warm = json_object_get(r, "warm");
    const json_t *first = cold ? cold : warm;
    switch (c) {
    case AT: kl_html(f, "<td>%s</td>", kl_jstr(r, "point")); break;
    case DEVICE: kl_html(f, "<td>%s</td>", kl_jstr(r, "device")); break;
    case CI: interval(f, json_object_get(first, "ci")); break;
    case NOISE: kl_html_share(f, kl_jnum(first, "noise")); break;
    case N: kl_html(f, "<td class=\"n\">%lld</td>", kl_jint(first, "samples")); break;
    case GBS: kl_html_num(f, kl_jnum(r, "gbs"), ""); break;
    case COPY: kl_html_share(f, kl_jnum(r, "copy_share")); break;
    case READ: kl_html_share(f, kl_jnum(r, "read_share")); break;
    case GFLOPS: kl_html_num(f, kl_jnum(r, "gflops"), ""); break;
    case WARM: kl_html(f, "<td class=\"n\">%s</td>", kl_rep_ms(kl_jnum(warm, "median"), a)); break;
    case LAUNCH:
        kl_html(f, "<td class=\"n\">%s</td>", kl_rep_ms(kl_jnum(r, "launch_ns") * 1e-6, a));
        break;
    case VS: versus(f, json_object_get(r, "vs")); break;
    default: versus(f, json_object_get(r, "baseline"));
    }
}

static void row(FILE *f, const json_t *r, const bool *shown)
{
    char a[32];
    const json_t *cold = json_object_get(r, "cold"), *warm = json_object_get(r, "warm");
    const char *setting = kl_jstr(r, "setting");
    bool measured = json_is_object(cold) || json_is_object(warm);
    int left = 1;
    kl_html(f, "<tr><th scope=\"row\">%s%s%s</th><td>%s</td>", kl_jstr(r, "kernel"),
            *setting ? " " : "", setting, kl_jstr(r, "shape"));
    for (int c = 0; c < COLS; c++) {
        if (c == CI && measured)
            kl_html(f, "<td class=\"n\">%s</td>", kl_rep_ms(kl_jnum(cold, "median"), a));
        if (shown[c] && (measured || c <= DEVICE))
            cell(f, r, (enum col)c);
        else
            left += shown[c];
    }
    if (!measured)
        kl_html(f, "<td colspan=\"%d\" class=\"%s\">%s: %s</td>", left,
                json_is_true(json_object_get(r, "failed")) ? "bad" : "dim",
                json_is_true(json_object_get(r, "failed")) ? "failed" : "not measured",
                kl_jstr(r, "note"));
    fputs("</tr>\n", f);
}

static void rows_of(FILE *f, const json_t *root)
{
    static const char *const head[] = {"at",       "device",  "#95% interval", "#noise", "#n",
                                       "#GB/s",    "#of copy", "#of read",     "#GFLOP/s", "#warm",
                                       "#launch", "#vs",      "#baseline"};
    const json_t *rows = json_object_get(root, "rows"), *o;
    bool shown[COLS] = {false}, above = false;
    char columns[300] = "kernel|shape";
    size_t i, n = strlen(columns);
    json_array_foreach (rows, i, o)
        for (int c = 0; c < COLS; c++)
            shown[c] |= says(o, (enum col)c);
    for (int c = 0; c < COLS; c++) {
        if (c == CI) /* the median stands before its interval */
            n += (size_t)snprintf(columns + n, sizeof columns - n, "|#cold");
        if (shown[c] && c == VS)
            n += (size_t)snprintf(columns + n, sizeof columns - n, "|#against %.40s",
                                  *kl_jstr(root, "vs") ? kl_jstr(root, "vs") : "the first");
        else if (shown[c])
            n += (size_t)snprintf(columns + n, sizeof columns - n, "|%s", head[c]);
    }
    kl_table_begin(f, "", "Measured rows", columns);
    json_array_foreach (rows, i, o) {
        row(f, o, shown);
        above |= kl_jnum(o, "copy_share") > 1 || kl_jnum(o, "read_share") > 1;
    }
    kl_table_end(f);
    kl_html(f, "<p class=\"dim\">Cold, warm: medians over n samples, with the arrays out of and in "
               "the cache. Noise: half of the distance of the quartiles, over the median.%s%s</p>\n",
            above ? " Above 100 %: faster than what was measured beside it: arrays that stay in a "
                    "cache, or other work on the machine."
                  : "",
            shown[VS] || shown[BASELINE]
                ? " ×: how many times as fast as what it is compared with; SAME: within 2 %, FAST and "
                  "SLOW: the intervals do not touch, AMBG: not decided."
                : "");
}

static void range(FILE *f, const char *what, const json_t *v)
{
    char a[32], b[32];
    if (json_array_size(v) != 2)
        return;
    kl_rep_num(json_number_value(json_array_get(v, 0)), a);
    kl_rep_num(json_number_value(json_array_get(v, 1)), b);
    bool one = strcmp(a, b) == 0;
    kl_html(f, ", %s %s%s%s GB/s", what, a, one ? "" : " to ", one ? "" : b);
}

static void peers(FILE *f, const json_t *list)
{
    const json_t *o;
    size_t i;
    json_array_foreach (list, i, o) {
        const char *version = kl_jstr(o, "version");
        fputs(i ? ", " : "<li>peers: ", f);
        kl_html(f, "%s %s", kl_jstr(o, "name"), *version ? version : "(it names no version)");
    }
    if (json_array_size(list))
        fputs("</li>\n", f);
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

/* Whether two texts differ in no more than numbers, and which number of the first one comes first. */
static bool alike(const char *a, const char *b, double *number)
{
    *number = 0;
    for (bool seen = false;;) {
        bool da = *a >= '0' && *a <= '9', db = *b >= '0' && *b <= '9';
        if (da && db) {
            char *ea, *eb;
            double v = strtod(a, &ea);
            strtod(b, &eb);
            *number = seen ? *number : v;
            seen = true;
            a = ea;
            b = eb;
        } else if (*a != *b) {
            return false;
        } else if (!*a) {
            return true;
        } else {
            a++;
            b++;
        }
    }
}

/* How results were verified: of a kernel's rows whose texts differ in numbers only, that with the
 * largest difference. */
static void verified(FILE *f, const json_t *rows)
{
    size_t i, k;
    const json_t *o, *p;
    json_array_foreach (rows, i, o) {
        const char *check = kl_jstr(o, "check");
        double mine, other;
        bool worst = *check;
        unsigned same = 0;
        json_array_foreach (rows, k, p) {
            const char *text = kl_jstr(p, "check");
            if (strcmp(kl_jstr(p, "kernel"), kl_jstr(o, "kernel")) != 0 ||
                !alike(check, text, &mine) || !alike(text, check, &other))
                continue;
            same++;
            worst &= other < mine || (other <= mine && k >= i);
        }
        alike(check, check, &mine);
        if (worst)
            kl_html(f, "<li>checked: %s: %s%s</li>\n", kl_jstr(o, "kernel"), check,
                    same > 1 && mine > 0 ? ", at most" : "");
    }
}

static void remarks(FILE *f, const json_t *rows, const json_t *notes)
{
    size_t i;
    const json_t *o;
    fputs("<ul class=\"plain dim\">\n", f);
    verified(f, rows);
    json_array_foreach (notes, i, o)
        kl_html(f, "<li>note: %s</li>\n", json_string_value(o));
    fputs("</ul>\n", f);
}

void kl_rep_bench(FILE *f, const struct kl_rep_input *in, const char *id)
{
    const json_t *rows = json_object_get(in->root, "rows"), *o;
    size_t i;
    kl_html(f, "<section id=\"%s\"><h2>Measured: %s</h2>\n<ul class=\"plain\">\n", id, in->name);
    json_array_foreach (json_object_get(in->root, "devices"), i, o)
        device(f, o);
    peers(f, json_object_get(in->root, "peers"));
    kl_html(f,
            "</ul>\n<p class=\"dim\">kiln %s, build %s. GB/s: the bytes of each array that is read or "
            "written, counted once, over the cold median; copy and read: what such kernels "
            "reached beside each case.</p>\n",
            kl_jstr(in->root, "kiln"), kl_jstr(in->root, "build"));
    kl_rep_sweeps(f, in->root, id);
    rows_of(f, in->root);
    remarks(f, rows, json_object_get(in->root, "notes"));
    fputs("</section>\n", f);
}
