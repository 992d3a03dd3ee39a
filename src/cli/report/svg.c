/* svg.c - charts: axes with linear or logarithmic ticks, lines, marks, and labels that look
 * for a free place.  Colours and type come from report.css by class. */
#include <math.h>
#include <string.h>

#include "cli/report/report.h"

static const double LINE = 13, CHAR = 6.6; /* size of a letter of 11 px, roughly */

/* ---- coordinates ---- */

static double place(const struct kl_axis *a, double v, double from, double to)
{
    double lo = a->log ? log10(a->lo) : a->lo, hi = a->log ? log10(a->hi) : a->hi;
    double x = a->log ? log10(v) : v;
    double t = hi > lo ? (x - lo) / (hi - lo) : 0.5;
    return from + (to - from) * (t < 0 ? 0 : t > 1 ? 1 : t);
}

double kl_plot_x(const struct kl_plot *p, double v)
{
    return place(&p->x, v, p->left, p->w - p->right);
}

double kl_plot_y(const struct kl_plot *p, double v)
{
    return place(&p->y, v, p->h - p->bottom, p->top);
}

/* ---- texts that keep clear of each other ---- */

static bool is_free(const struct kl_plot *p, double x0, double y0, double x1, double y1)
{
    if (x0 < p->left || x1 > p->w - 2 || y0 < 2 || y1 > p->h - p->bottom)
        return false;
    for (unsigned i = 0; i < p->nbox; i++)
        if (x0 < p->box[i].x1 && x1 > p->box[i].x0 && y0 < p->box[i].y1 && y1 > p->box[i].y0)
            return false;
    return true;
}

static void take(struct kl_plot *p, double x0, double y0, double x1, double y1)
{
    if (p->nbox == KL_PLOT_BOXES)
        return;
    p->box[p->nbox].x0 = x0;
    p->box[p->nbox].y0 = y0;
    p->box[p->nbox].x1 = x1;
    p->box[p->nbox++].y1 = y1;
}

void kl_plot_avoid(struct kl_plot *p, double x0, double y0, double x1, double y1)
{
    double dx = x1 - x0, dy = y1 - y0, len = sqrt(dx * dx + dy * dy);
    int n = len > 0 ? (int)ceil(len / 24) : 1;
    n = n > 40 ? 40 : n;
    for (int i = 0; i < n; i++) {
        double ax = x0 + dx * i / n, ay = y0 + dy * i / n;
        double bx = x0 + dx * (i + 1) / n, by = y0 + dy * (i + 1) / n;
        take(p, fmin(ax, bx), fmin(ay, by) - 2, fmax(ax, bx), fmax(ay, by) + 2);
    }
}

static unsigned letters(const char *s)
{
    unsigned n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

void kl_plot_label(struct kl_plot *p, double x, double y, int series, const char *text)
{
    double w = CHAR * letters(text);
    for (int i = 0; i < 160; i++) { /* right, left, above, below; then farther away */
        int round = i / 8;
        double far = 8 + 9 * round, x0, y0;
        static const double dx[] = {1, -1, 0, 0, 1, 1, -1, -1}, dy[] = {0, 0, -1, 1, -1, 1, -1, 1};
        double sx = dx[i % 8], sy = dy[i % 8];
        x0 = x + sx * far - (sx < 0 ? w : sx > 0 ? 0 : w / 2);
        y0 = y + sy * (far + LINE / 2) - LINE / 2;
        if (!is_free(p, x0, y0, x0 + w, y0 + LINE))
            continue;
        take(p, x0, y0, x0 + w, y0 + LINE);
        if (far > 20) /* a line leads there */
            kl_html(p->f, "<path class=\"lead\" d=\"M%.1f %.1fL%.1f %.1f\"/>", x, y,
                    sx > 0   ? x0 - 2
                    : sx < 0 ? x0 + w + 2
                             : x0 + w / 2,
                    sy > 0   ? y0
                    : sy < 0 ? y0 + LINE
                             : y0 + LINE / 2);
        kl_html(p->f, "<text class=\"l%d\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", series, x0, y0 + 10,
                text);
        return;
    }
    /* no place at all: the table behind the chart has it */
}

/* A text along the line from (x0, y0) to (x1, y1), above or below it, where nothing else stands. */
bool kl_plot_along(struct kl_plot *p, double x0, double y0, double x1, double y1, bool above,
                   const char *text)
{
    double dx = x1 - x0, dy = y1 - y0, len = sqrt(dx * dx + dy * dy), w = CHAR * letters(text);
    if (!(len > w + 8))
        return false;
    dx /= len;
    dy /= len;
    double off = above ? -5 : 14; /* of the base line, across */
    double ax = x0 - dy * off, ay = y0 + dx * off, mid = above ? -9 : 10;
    enum { TRIES = 24, STEP = 8 };
    for (int i = 0; i < TRIES; i++) { /* from the far end, which most points keep away from */
        double from = len - w - 4 - (len - w - 8) * i / TRIES;
        bool ok = true;
        for (int pass = 0; pass < 2 && ok; pass++)
            for (int k = 0; k * STEP <= w; k++) {
                double at = k * STEP;
                double cx = x0 + dx * (from + at) - dy * mid, cy = y0 + dy * (from + at) + dx * mid;
                if (pass)
                    take(p, cx - 6, cy - 6, cx + 6, cy + 6);
                else
                    ok &= is_free(p, cx - 6, cy - 6, cx + 6, cy + 6);
            }
        if (!ok)
            continue;
        ax += dx * from;
        ay += dy * from;
        kl_html(p->f,
                "<text class=\"l9\" transform=\"translate(%.1f %.1f) rotate(%.1f)\">%s</text>\n", ax,
                ay, atan2(dy, dx) * 57.29577951308232, text);
        return true;
    }
    return false;
}

/* At most `room` characters; the table behind a chart has the whole of it. */
void kl_plot_cut(char *out, size_t size, const char *text, unsigned room)
{
    unsigned n = letters(text);
    size_t bytes = 0;
    for (unsigned k = 0; n > room ? k + 1 < room : text[bytes] != 0; k++)
        do
            bytes++;
        while (((unsigned char)text[bytes] & 0xc0) == 0x80);
    bytes = bytes < size - 8 ? bytes : size - 8;
    snprintf(out, size, "%.*s%s", (int)bytes, text, n > room ? "…" : "");
}

void kl_plot_end_name(struct kl_plot *p, double x, double y, double at, int series,
                      const char *text)
{
    double left = p->w - p->right + 14;
    char name[256];
    kl_plot_cut(name, sizeof name, text, (unsigned)((p->right - 14) / CHAR));
    kl_html(p->f, "<path class=\"lead s%d\" d=\"M%.1f %.1fL%.1f %.1fH%.1f\"/>", series, x + 6, y,
            left - 5, at, left - 2);
    kl_html(p->f, "<text class=\"l%d\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", series, left, at + 4,
            name);
}

/* ---- axes ---- */

/* Large round numbers by their first digits. */
static const char *tick_text(double v, char buf[32])
{
    if (v < 1e4)
        return kl_rep_num(v, buf);
    snprintf(buf, 32,
             v < 1e6   ? "%.3gk"
             : v < 1e9 ? "%.3gM"
                       : "%.3gG",
             v / (v < 1e6   ? 1e3
                  : v < 1e9 ? 1e6
                            : 1e9));
    return buf;
}

/* Values that were measured at are said exactly. */
static const char *value_text(const struct kl_axis *a, double v, char buf[32])
{
    return a->n ? kl_rep_num(v, buf) : tick_text(v, buf);
}

static void tick_x(struct kl_plot *p, double v, bool named)
{
    char buf[32];
    double x = kl_plot_x(p, v);
    kl_html(p->f, "<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>", named ? "grid" : "grid minor", x,
            p->top, p->h - p->bottom);
    if (named)
        kl_html(p->f, "<text class=\"tick m\" x=\"%.1f\" y=\"%.1f\">%s</text>", x,
                p->h - p->bottom + 14, value_text(&p->x, v, buf));
}

static void tick_y(struct kl_plot *p, double v, bool named)
{
    char buf[32];
    double y = kl_plot_y(p, v);
    kl_html(p->f, "<path class=\"%s\" d=\"M%.1f %.1fH%.1f\"/>", named ? "grid" : "grid minor",
            p->left, y, p->w - p->right);
    if (named)
        kl_html(p->f, "<text class=\"tick e\" x=\"%.1f\" y=\"%.1f\">%s</text>", p->left - 6, y + 4,
                value_text(&p->y, v, buf));
}

static void ticks(struct kl_plot *p, const struct kl_axis *a,
                  void (*tick)(struct kl_plot *, double, bool))
{
    if (a->n) {
        double end = -1e9;
        for (size_t i = 0; i < a->n; i++) {
            char buf[32];
            bool across = a == &p->x;
            double x = place(a, a->at[i], 0, across ? p->w - p->left - p->right : p->h);
            double half = across ? CHAR * letters(value_text(a, a->at[i], buf)) / 2 : LINE / 2;
            bool named = x - half >= end + 6;
            tick(p, a->at[i], named);
            end = named ? x + half : end;
        }
        return;
    }
    if (a->log) {
        double decades = log10(a->hi / a->lo);
        for (int e = (int)floor(log10(a->lo)); e <= (int)ceil(log10(a->hi)); e++)
            for (int m = 1; m < 10; m++) {
                double v = m * pow(10, e);
                if (v < a->lo * 0.9999 || v > a->hi * 1.0001)
                    continue;
                bool few = decades < 2.5;
                if (m == 1 || (few && (m == 2 || m == 5)))
                    tick(p, v, true);
                else if (decades < 6)
                    tick(p, v, false);
            }
        return;
    }
    if (!(a->hi > a->lo))
        return;
    double step = pow(10, floor(log10((a->hi - a->lo) / 4)));
    step *= (a->hi - a->lo) / step > 10 ? (a->hi - a->lo) / step > 20 ? 5 : 2 : 1;
    double first = ceil(a->lo / step);
    for (int i = 0; (first + i) * step <= a->hi * 1.0001; i++)
        tick(p, (first + i) * step, true);
}

void kl_plot_begin(struct kl_plot *p, FILE *f, const char *id, const char *title, const char *desc)
{
    p->f = f;
    p->nbox = 0;
    kl_html(f, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"%s\">", title);
    kl_html(f,
            "<svg class=\"chart\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
            "role=\"img\" aria-labelledby=\"%s-t %s-d\"><title id=\"%s-t\">%s</title><desc "
            "id=\"%s-d\">%s</desc>\n",
            p->w, p->h, p->w, p->h, id, id, id, title, id, desc);
    ticks(p, &p->x, tick_x);
    ticks(p, &p->y, tick_y);
    kl_html(f, "\n<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>", p->left, p->top,
            p->h - p->bottom, p->w - p->right);
    kl_html(f, "<text class=\"tick m\" x=\"%.1f\" y=\"%.1f\">%s</text>",
            (p->left + p->w - p->right) / 2, p->h - 4, p->x.label);
    kl_html(f, "<text class=\"tick\" x=\"2\" y=\"11\">%s</text>\n", p->y.label);
    take(p, 0, 0, 2 + CHAR * letters(p->y.label), 14);
}

/* ---- lines and marks ---- */

void kl_plot_line(struct kl_plot *p, const double *x, const double *y, size_t n, int series,
                  bool dashed)
{
    kl_html(p->f, "<path class=\"line s%d%s\" d=\"", series, dashed ? " dash" : "");
    for (size_t i = 0; i < n; i++)
        kl_html(p->f, "%c%.1f %.1f", i ? 'L' : 'M', kl_plot_x(p, x[i]), kl_plot_y(p, y[i]));
    fputs("\"/>\n", p->f);
}

void kl_plot_whisker(struct kl_plot *p, double x, double lo, double hi, int series)
{
    double px = kl_plot_x(p, x), y0 = kl_plot_y(p, lo), y1 = kl_plot_y(p, hi);
    kl_html(p->f, "<path class=\"whisker s%d\" d=\"M%.1f %.1fh6m-3 0V%.1fm-3 0h6\"/>\n", series,
            px - 3, y0, y1);
}

void kl_plot_mark(struct kl_plot *p, double x, double y, int series, bool hollow, const char *tip)
{
    static const char *const shape[] = {"M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",
                                        "M-4-4H4V4H-4Z",
                                        "M0-5L5 4H-5Z",
                                        "M0-5L5 0L0 5L-5 0Z",
                                        "M0 5L5-4H-5Z",
                                        "M-5-2H-2V-5H2V-2H5V2H2V5H-2V2H-5Z"};
    double px = kl_plot_x(p, x), py = kl_plot_y(p, y);
    kl_html(p->f, "<path class=\"mark s%d%s\" transform=\"translate(%.1f %.1f)\" d=\"%s\">", series,
            hollow ? " hollow" : "", px, py, shape[series % 6]);
    kl_html(p->f, "<title>%s</title></path>\n", tip);
    take(p, px - 6, py - 6, px + 6, py + 6);
}

/* The place of a mark that comes later. */
void kl_plot_reserve(struct kl_plot *p, double x, double y)
{
    double px = kl_plot_x(p, x), py = kl_plot_y(p, y);
    take(p, px - 6, py - 6, px + 6, py + 6);
}

void kl_plot_end(struct kl_plot *p)
{
    fputs("</svg></div>\n", p->f);
}
