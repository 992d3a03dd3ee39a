/* verdict.c - the first screen of the page: for each kernel what it is, what bounds it, what
 * was measured and checked, and what could be changed. */
#include <math.h>
#include <string.h>

#include "cli/report/report.h"
#include "explain.h"

enum { NOTES = 3, ARRAYS = 6, PEERS = 6 }; /* that a kernel shows here at most */

const char *kl_rep_bound(const json_t *k)
{
    const char *bound = kl_jstr(json_object_get(k, "roofline"), "bound");
    if (!*bound && kl_jnum(k, "flop") <= 0 && kl_jnum(k, "moved_bytes") > 0)
        return "memory";
    return bound;
}

double kl_rep_floor(const json_t *k, const char *from, double *gbs)
{
    const json_t *o;
    size_t i;
    json_array_foreach (json_object_get(k, "floors"), i, o)
        if (strcmp(kl_jstr(o, "from"), from) == 0) {
            *gbs = kl_jnum(o, "gbs");
            return kl_jnum(o, "us");
        }
    return *gbs = (double)NAN;
}

double kl_rep_sector_bytes(const json_t *k)
{
    static const char *const kind[] = {"global_load", "global_store", "atomic"};
    double sum = 0;
    for (size_t i = 0; i < 3; i++) {
        double v = kl_jnum(kl_jat(k, "model", kind[i]), "units");
        sum += v > 0 ? 32 * v : 0;
    }
    return sum > 0 ? sum : (double)NAN;
}

/* ---- sentences ---- */

static void arrays(FILE *f, const json_t *k)
{
    const json_t *list = json_object_get(k, "arrays"), *o, *d;
    size_t i, n, shown = 0;
    fputs("<p class=\"what\"><code>", f);
    json_array_foreach (list, i, o) {
        if (shown == ARRAYS) {
            fputs(", …", f);
            break;
        }
        kl_html(f, "%s%s[", shown++ ? ", " : "", kl_jstr(o, "name"));
        json_array_foreach (json_object_get(o, "shape"), n, d)
            kl_html(f, "%s%lld", n ? "×" : "", (long long)json_integer_value(d));
        kl_html(f, "] %s%s", kl_jstr(o, "type"),
                !json_is_true(json_object_get(o, "written")) ? ""
                : json_is_true(json_object_get(o, "read"))   ? " (in place)"
                                                             : " (out)");
    }
    fputs("</code></p>\n", f);
}

/* The least time that the bound leaves; NAN: no GPU is known. */
static double least_us(const json_t *k, double *gbs, bool *measured)
{
    double us = kl_rep_floor(k, "measured copy", gbs);
    *measured = isfinite(us);
    return *measured
               ? us
               : kl_rep_floor(k, kl_jstr(json_object_get(k, "gpu"), "label"), gbs);
}

static void bound(FILE *f, const json_t *k)
{
    const char *by = kl_rep_bound(k), *gpu = kl_jstr(json_object_get(k, "gpu"), "name");
    char b[32], t[32], g[32];
    double gbs, peak = kl_jnum(json_object_get(k, "roofline"), "attainable_tflops");
    const char *of = kl_jstr(json_object_get(k, "roofline"), "peak_of");
    double flop = kl_jnum(k, "flop");
    bool measured;
    double us = least_us(k, &gbs, &measured);
    kl_explain_bytes(kl_jnum(k, "moved_bytes"), b);
    if (strcmp(by, "compute") == 0 && peak > 0) {
        kl_html(f,
                "<p><b>Bound by arithmetic</b>: %s GFLOP at the %s TFLOP/s of %s on %s take at "
                "least <b>%s</b>. %s must move",
                kl_rep_num(flop * 1e-9, t), kl_rep_num(peak, g), *of ? of : "its units", gpu,
                kl_rep_ms(flop / peak * 1e-9, (char[32]){0}), b);
        if (us > 0)
            kl_html(f, ": %s", kl_rep_ms(us / 1000, t));
        fputs(".</p>\n", f);
    } else if (strcmp(by, "memory") == 0) {
        kl_html(f, "<p><b>Bound by memory</b>: %s must move", b);
        if (flop > 0)
            kl_html(f, ", at %s FLOP a byte", kl_rep_num(flop / kl_jnum(k, "moved_bytes"), t));
        if (us > 0)
            kl_html(f, ". On %s that takes at least <b>%s</b> (%s GB/s, %s)", gpu,
                    kl_rep_ms(us / 1000, t), kl_rep_num(gbs, g),
                    measured ? "as a copy was measured" : "datasheet");
        fputs(".</p>\n", f);
    } else if (kl_jnum(k, "moved_bytes") > 0) {
        kl_html(f, "<p>%s must move. What bounds it is not known without a GPU: "
                   "<code>--gpu</code>.</p>\n",
                b);
    }
}

static bool same_text(const json_t *a, const json_t *b, const char *key)
{
    return strcmp(kl_jstr(a, key), kl_jstr(b, key)) == 0;
}

/* How many times as fast as the peers of the same run, on the same case. */
static void peers(FILE *f, const struct kl_rep *r, const json_t *row, double ms)
{
    unsigned n = 0;
    char t[32];
    for (size_t i = 0; i < r->nin; i++) {
        const json_t *o, *rows = json_object_get(r->in[i].root, "rows");
        size_t k;
        bool own = false;
        json_array_foreach (rows, k, o)
            own |= o == row;
        json_array_foreach (rows, k, o) {
            double other = kl_jnum(json_object_get(o, "cold"), "median");
            if (own && json_is_true(json_object_get(o, "peer")) && other > 0 && n < PEERS &&
                same_text(o, row, "device") && same_text(o, row, "shape") &&
                same_text(o, row, "point"))
                kl_html(f, "%s%s× as fast as %s", n++ ? ", " : "; ", kl_rep_num(other / ms, t),
                        kl_jstr(o, "kernel"));
        }
    }
}

static void measured(FILE *f, const struct kl_rep *r, const json_t *k)
{
    const json_t *row = kl_rep_row(r, k, "cuda");
    double ms = kl_jnum(json_object_get(row, "cold"), "median"), gbs, us;
    char t[32];
    bool from_copy;
    if (!(ms > 0))
        return;
    us = least_us(k, &gbs, &from_copy);
    kl_html(f, "<p><b>Measured</b>: %s, cold", kl_rep_ms(ms, t));
    if (us > 0 && strcmp(kl_rep_bound(k), "memory") == 0)
        kl_html(f, ", %.1f%% of the rate of that floor", us / ms / 10);
    peers(f, r, row, ms);
    fputs(".</p>\n", f);
}

static void occupancy(FILE *f, const json_t *k)
{
    const json_t *o = json_object_get(k, "occupancy"), *w = json_object_get(k, "waves"), *by;
    char t[32];
    size_t i;
    if (!json_is_object(o)) {
        if (json_is_object(json_object_get(k, "registers")))
            fputs("<p>Occupancy unknown: the number of registers is not.</p>\n", f);
        return;
    }
    kl_html(f, "<p><b>Occupancy %s%%</b>: %lld block%s of %lld threads on a multiprocessor",
            kl_rep_num(kl_jnum(o, "share") * 100, t), kl_jint(o, "blocks"),
            kl_jint(o, "blocks") == 1 ? "" : "s", kl_jint(k, "threads"));
    json_array_foreach (json_object_get(o, "limited_by"), i, by)
        kl_html(f, "%s%s", i ? ", " : ", limited by ", json_string_value(by));
    double waves = kl_jnum(w, "waves");
    if (waves > 0 && waves < 1)
        kl_html(f, "; the grid fills %s%% of them", kl_rep_num(waves * 100, t));
    else if (waves > 0)
        kl_html(f, "; %s waves", kl_rep_num(waves, t));
    fputs(".</p>\n", f);
}

/* ---- checks of the same kernel ---- */

static const char *base(const char *path)
{
    return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

static void checks(FILE *f, const struct kl_rep *r, const json_t *k)
{
    for (size_t i = 0; i < r->nin; i++) {
        const json_t *j = r->in[i].root;
        bool clean = strcmp(kl_jstr(j, "status"), "clean") == 0;
        unsigned n = (unsigned)json_array_size(json_object_get(j, "diagnostics"));
        if (r->in[i].kind != KL_REP_CHECK ||
            strcmp(kl_jstr(j, "kernel"), kl_jstr(k, "kernel")) != 0 ||
            strcmp(base(kl_jstr(j, "file")), base(kl_jstr(k, "file"))) != 0)
            continue;
        kl_html(f, "<p><b>Checked</b>: <span class=\"%s\">%s</span>", clean ? "good" : "bad",
                kl_jstr(j, "status"));
        if (!clean)
            kl_html(f, ", <a href=\"#check\">%u</a>", n);
        fputs(".</p>\n", f);
    }
}

/* ---- notes ---- */

void kl_rep_advice(FILE *f, const char *s)
{
    static const char *const words[] = {"help: ", "expected gain: "};
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(words[i]);
        if (strncmp(s, words[i], n) == 0) {
            kl_html(f, "<b>%s</b> ", i ? "Gain:" : "Do:");
            s += n;
            break;
        }
    }
    kl_html_ticks(f, s);
}

static void note(FILE *f, const json_t *d, const char *href)
{
    const json_t *p = json_object_get(d, "place"), *o;
    size_t i;
    kl_html(f, "<li><a href=\"#%s\">%s", href, kl_jstr(d, "code"));
    if (kl_jint(p, "line") > 0)
        kl_html(f, ", line %lld", kl_jint(p, "line"));
    fputs("</a> ", f);
    kl_html_ticks(f, kl_jstr(d, "text"));
    json_array_foreach (json_object_get(d, "notes"), i, o) {
        const char *s = kl_jstr(o, "text");
        if (strncmp(s, "help: ", 6) == 0 || strncmp(s, "expected gain: ", 15) == 0) {
            fputs("<br>", f);
            kl_rep_advice(f, s);
        }
    }
    fputs("</li>\n", f);
}

static void notes(FILE *f, const json_t *k, unsigned number)
{
    const json_t *list = json_object_get(k, "notes"), *o;
    size_t i, n = json_array_size(list);
    char href[48];
    if (!json_is_object(json_object_get(k, "model")))
        return;
    if (!n) {
        fputs("<p class=\"good\">No notes: no rule finds anything to change.</p>\n", f);
        return;
    }
    fputs("<ul class=\"todo\">\n", f);
    json_array_foreach (list, i, o) {
        if (i == NOTES)
            break;
        snprintf(href, sizeof href, "k%u-n%u", number, (unsigned)i);
        note(f, o, href);
    }
    if (n > NOTES)
        kl_html(f, "<li><a href=\"#k%u-source\">%u more</a></li>\n", number, (unsigned)(n - NOTES));
    fputs("</ul>\n", f);
}

void kl_rep_verdict(FILE *f, const struct kl_rep *r, size_t i)
{
    const json_t *k = r->k[i].j;
    unsigned number = (unsigned)i + 1;
    kl_html(f, "<li><h3><a href=\"#k%u\">%s</a></h3>\n", number, kl_jstr(k, "kernel"));
    arrays(f, k);
    bound(f, k);
    measured(f, r, k);
    occupancy(f, k);
    checks(f, r, k);
    notes(f, k, number);
    fputs("</li>\n", f);
}
