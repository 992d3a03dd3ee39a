/* sweep.c - charts of measured rows: rates over a swept number beside peers and ceilings, and
 * bars where nothing was swept. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"

enum { SERIES_MOST = 6, NAME = 96 };

/* A row in a chart. */
struct dot {
    double x, y, lo, hi, copy; /* lo, hi: of the interval; NAN: none */
    int series;
    const json_t *row;
};
struct sweep {
    const char *device;
    char variable[NAME];
    bool flops; /* y is GFLOP/s */
    char name[SERIES_MOST][NAME];
    int nseries, left_out;
    struct dot *v;
    size_t n;
};

/* "n=64 T=f32": the first number's name and value, the rest.  false: nothing was swept. */
static bool split(const char *point, char name[NAME], double *x, char rest[NAME])
{
    char *end;
    const char *eq = strchr(point, '=');
    if (!eq || eq - point >= NAME || strcspn(point, " |#<") < (size_t)(eq - point))
        return false;
    *x = strtod(eq + 1, &end);
    if (end == eq + 1 || (*end && *end != ' ' && *end != ',') || !kl_rep_drawable(*x))
        return false;
    snprintf(name, NAME, "%.*s", (int)(eq - point), point);
    snprintf(rest, NAME, "%.*s", NAME - 1, end + strspn(end, " ,"));
    return true;
}

static int series_of(struct sweep *s, const json_t *row, const char *rest)
{
    char name[NAME];
    const char *setting = kl_jstr(row, "setting");
    snprintf(name, sizeof name, "%.40s%s%.24s%s%.24s", kl_jstr(row, "kernel"), *setting ? " " : "",
             setting, *rest ? " " : "", rest);
    for (int i = 0; i < s->nseries; i++)
        if (strcmp(s->name[i], name) == 0)
            return i;
    if (s->nseries == SERIES_MOST) {
        s->left_out++;
        return -1;
    }
    memcpy(s->name[s->nseries], name, NAME);
    return s->nseries++;
}

static bool same_chart(const struct sweep *s, const json_t *row)
{
    char name[NAME], rest[NAME];
    double x;
    return split(kl_jstr(row, "point"), name, &x, rest) && strcmp(name, s->variable) == 0 &&
           strcmp(kl_jstr(row, "device"), s->device) == 0;
}

/* The interval of the median as rates. */
static void interval(struct dot *d)
{
    const json_t *cold = json_object_get(d->row, "cold"), *ci = json_object_get(cold, "ci");
    double median = kl_jnum(cold, "median");
    double least = json_number_value(json_array_get(ci, 0));
    double most = json_number_value(json_array_get(ci, 1));
    d->lo = d->y * median / most;
    d->hi = d->y * median / least;
    if (!(least > 0 && most >= least && kl_rep_drawable(d->lo) && kl_rep_drawable(d->hi)))
        d->lo = d->hi = (double)NAN;
}

/* The chart that begins with row `at`; n stays 0 if an earlier row began it. */
static void gather(struct sweep *s, const json_t *rows, size_t at)
{
    const json_t *first = json_array_get(rows, at), *o;
    char rest[NAME];
    double x;
    size_t i;
    *s = (struct sweep){.device = kl_jstr(first, "device"), .flops = true};
    if (!split(kl_jstr(first, "point"), s->variable, &x, rest))
        return;
    for (i = 0; i < at; i++)
        if (same_chart(s, json_array_get(rows, i)))
            return;
    json_array_foreach (rows, i, o)
        if (same_chart(s, o) && kl_jnum(o, "gbs") > 0)
            s->flops &= kl_jnum(o, "gflops") > 0;
    json_array_foreach (rows, i, o) {
        double y = kl_jnum(o, s->flops ? "gflops" : "gbs");
        char name[NAME];
        if (!same_chart(s, o) || !kl_rep_drawable(y) || !split(kl_jstr(o, "point"), name, &x, rest))
            continue;
        int k = series_of(s, o, rest);
        if (k < 0)
            continue;
        s->v = kl_xgrow(s->v, sizeof *s->v, s->n);
        double copy = s->flops ? (double)NAN : kl_jnum(o, "copy_gbs");
        struct dot d = {x, y, 0, 0, kl_rep_drawable(copy) ? copy : (double)NAN, k, o};
        interval(&d);
        s->v[s->n++] = d;
    }
}

static int by_x(const void *a, const void *b)
{
    const struct dot *p = a, *q = b;
    return p->x < q->x ? -1 : p->x > q->x ? 1 : p->series - q->series;
}

static void one_series(struct kl_plot *p, const struct sweep *s, int k)
{
    double *x = kl_xalloc((s->n + 1) * sizeof *x), *y = kl_xalloc((s->n + 1) * sizeof *y);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].series == k || (k < 0 && s->v[i].copy > 0 && (!n || x[n - 1] < s->v[i].x))) {
            x[n] = s->v[i].x;
            y[n++] = k < 0 ? s->v[i].copy : s->v[i].y;
        }
    if (n)
        kl_plot_line(p, x, y, n, k < 0 ? 9 : k, k < 0);
    for (size_t i = 0; i < s->n && k >= 0; i++)
        if (s->v[i].series == k && s->v[i].hi > s->v[i].lo)
            kl_plot_whisker(p, s->v[i].x, s->v[i].lo, s->v[i].hi, k);
    for (size_t i = 0; i < n && k >= 0; i++) {
        char tip[300], a[32], b[32];
        snprintf(tip, sizeof tip, "%s, %s = %s: %s %s", s->name[k], s->variable,
                 kl_rep_num(x[i], a), kl_rep_num(y[i], b), s->flops ? "GFLOP/s" : "GB/s");
        kl_plot_mark(p, x[i], y[i], k, false, tip);
    }
    free(x);
    free(y);
}

/* Names in a column at the right, each as high as its line ends, and none on another one. */
static void label_series(struct kl_plot *p, const struct sweep *s)
{
    struct {
        double x, y, at;
        const char *name;
        int series;
    } v[SERIES_MOST + 1], t;
    enum { HIGH = 14 };
    int n = 0;
    for (int k = -1; k < s->nseries; k++)
        for (size_t i = s->n; i-- > 0;)
            if (k < 0 ? s->v[i].copy > 0 : s->v[i].series == k) {
                v[n].x = kl_plot_x(p, s->v[i].x);
                v[n].y = v[n].at = kl_plot_y(p, k < 0 ? s->v[i].copy : s->v[i].y);
                v[n].name = k < 0 ? "copy (measured)" : s->name[k];
                v[n++].series = k < 0 ? 9 : k;
                break;
            }
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && v[k].y < v[k - 1].y; k--) {
            t = v[k];
            v[k] = v[k - 1];
            v[k - 1] = t;
        }
    for (int i = 0; i < n; i++) /* downwards, then up from the bottom */
        v[i].at = i && v[i].at < v[i - 1].at + HIGH ? v[i - 1].at + HIGH : v[i].at;
    double least = p->h - p->bottom;
    for (int i = n; i-- > 0;) {
        v[i].at = fmin(v[i].at, least);
        least = v[i].at - HIGH;
    }
    for (int i = 0; i < n; i++)
        kl_plot_end_name(p, v[i].x, v[i].y, v[i].at, v[i].series, v[i].name);
}

static void data(FILE *f, const struct sweep *s)
{
    const char *unit = s->flops ? "GFLOP/s" : "GB/s";
    char columns[NAME + 60];
    snprintf(columns, sizeof columns, "#%s|kernel|#%s|#copy, GB/s", s->variable, unit);
    kl_figures_begin(f, columns);
    for (size_t i = 0; i < s->n; i++) {
        kl_html(f, "<tr>");
        kl_html_num(f, s->v[i].x, "");
        kl_html(f, "<th scope=\"row\">%s</th>", s->name[s->v[i].series]);
        kl_html_num(f, s->v[i].y, "");
        kl_html_num(f, s->v[i].copy, "");
        fputs("</tr>\n", f);
    }
    kl_figures_end(f);
}

static void draw(FILE *f, struct sweep *s, const char *id, unsigned number)
{
    double top = 0, least = (double)INFINITY, lo = (double)INFINITY, hi = 0;
    char chart[64], title[300];
    qsort(s->v, s->n, sizeof *s->v, by_x);
    for (size_t i = 0; i < s->n; i++) {
        top = fmax(top, fmax(s->v[i].y, s->v[i].copy > 0 ? s->v[i].copy : 0));
        top = s->v[i].hi > 0 ? fmax(top, s->v[i].hi) : top;
        least = fmin(least, s->v[i].lo > 0 ? s->v[i].lo : s->v[i].y);
        lo = fmin(lo, s->v[i].x);
        hi = fmax(hi, s->v[i].x);
    }
    bool wide = top / least > 30;
    double edge = pow(hi / lo, 0.03); /* so that no mark lies on the axis */
    struct kl_plot p = {.w = 580, .h = 280, .left = 52, .right = 140, .top = 20, .bottom = 38};
    double *at = kl_xalloc((s->n + 1) * sizeof *at);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!n || at[n - 1] < s->v[i].x)
            at[n++] = s->v[i].x;
    p.x = (struct kl_axis){lo / edge, hi * edge, true, s->variable, at, n};
    p.y = (struct kl_axis){wide ? least * 0.8 : 0,
                           top * (wide ? 1.3 : 1.08),
                           wide,
                           s->flops ? "GFLOP/s" : "GB/s",
                           NULL,
                           0};
    snprintf(chart, sizeof chart, "%s-s%u", id, number);
    snprintf(title, sizeof title, "%.60s: %s over %s on %.60s", s->name[0],
             s->flops ? "GFLOP/s" : "GB/s", s->variable, s->device);
    kl_html(f,
            "<figure><figcaption>%s. <span class=\"dim\">Higher is better; bars: 95%% interval of "
            "the median.</span></figcaption>\n",
            title);
    kl_plot_begin(&p, f, chart, title,
                  "Each line is a kernel or a peer, each bar the 95 % interval of a median; a dashed "
                  "line is the measured copy. The "
                  "figures stand in the table behind the chart.");
    for (int k = -1; k < s->nseries; k++)
        one_series(&p, s, k);
    label_series(&p, s);
    kl_plot_end(&p);
    free(at);
    data(f, s);
    if (s->left_out)
        kl_html(f, "<p class=\"dim\">%d more rows are in the table only.</p>", s->left_out);
    fputs("</figure>\n", f);
}

/* Rows that no sweep holds, as bars against the measured copy. */
static void bars(FILE *f, const json_t *rows, const bool *done, const char *id)
{
    const json_t *o;
    size_t i, n = 0;
    double top = 0;
    json_array_foreach (rows, i, o)
        if (!done[i] && kl_jnum(o, "gbs") > 0) {
            n++;
            top = fmax(top, fmax(kl_jnum(o, "gbs"), kl_jnum(o, "copy_gbs")));
        }
    if (!n)
        return;
    double h = 20.0 * (double)n + 24, y = 20;
    kl_html(f,
            "<figure><figcaption>GB/s, cold. <span class=\"dim\">Thin: 95%% interval of the median; "
            "long tick: the copy measured beside it; grey bars: peers.</span></figcaption>\n"
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Rates as bars\"><svg "
            "class=\"chart\" viewBox=\"0 0 580 %.0f\" width=\"580\" height=\"%.0f\" role=\"img\" "
            "aria-labelledby=\"%s-b-t %s-b-d\"><title id=\"%s-b-t\">Rates in GB/s</title><desc "
            "id=\"%s-b-d\">A bar for each row of the table below.</desc>\n",
            h, h, id, id, id, id);
    json_array_foreach (rows, i, o) {
        double v = kl_jnum(o, "gbs"), copy = kl_jnum(o, "copy_gbs");
        char whole[300], name[256], a[32];
        struct dot d = {.y = v, .row = o};
        if (done[i] || !(v > 0))
            continue;
        snprintf(whole, sizeof whole, "%.120s%s%.60s%s%.60s", kl_jstr(o, "kernel"),
                 *kl_jstr(o, "setting") ? " " : "", kl_jstr(o, "setting"),
                 *kl_jstr(o, "shape") ? " " : "", kl_jstr(o, "shape"));
        kl_plot_cut(name, sizeof name, whole, 37);
        interval(&d);
        kl_html(f, "<text class=\"tick e ink\" x=\"296\" y=\"%.1f\">%s</text>", y + 4,
                kl_rep_num(v, a));
        kl_html(f,
                "<text class=\"tick e ink\" x=\"250\" y=\"%.1f\">%s</text><path class=\"bar%s\" "
                "d=\"M304 %.1fh%.1fv13h%.1fZ\"/>",
                y + 4, name, json_is_true(json_object_get(o, "peer")) ? " peer" : "", y - 6.5,
                260 * v / top, -260 * v / top);
        if (d.hi > d.lo && d.hi <= 1.2 * top)
            kl_html(f, "<path class=\"whisker ends\" d=\"M%.1f %.1fv6m0 -3H%.1fm0 -3v6\"/>",
                    304 + 260 * d.lo / top, y - 3, 304 + 260 * d.hi / top);
        if (copy > 0)
            kl_html(f, "<path class=\"line s9\" d=\"M%.1f %.1fv19\"/>", 304 + 260 * copy / top,
                    y - 9.5);
        fputs("\n", f);
        y += 20;
    }
    fputs("</svg></div></figure>\n", f);
}

void kl_rep_sweeps(FILE *f, const json_t *root, const char *id)
{
    const json_t *rows = json_object_get(root, "rows");
    size_t n = json_array_size(rows);
    bool *done = kl_xalloc((n + 1) * sizeof *done);
    unsigned number = 0;
    fputs("<div class=\"row\">\n", f);
    for (size_t i = 0; i < n; i++) {
        struct sweep s;
        bool many = false;
        gather(&s, rows, i);
        for (size_t k = 1; k < s.n; k++)
            many |= s.v[k].x != s.v[0].x;
        if (many) {
            for (size_t k = 0; k < n; k++)
                done[k] |= same_chart(&s, json_array_get(rows, k));
            draw(f, &s, id, number++);
        }
        free(s.v);
    }
    bars(f, rows, done, id);
    fputs("</div>\n", f);
    free(done);
}
