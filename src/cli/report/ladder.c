/* ladder.c - occupancy over registers, shared memory and threads, as steps. */
#include <math.h>
#include <string.h>

#include "cli/report/report.h"

struct kind {
    const char *key, *title, *label, *unit_name;
    double unit; /* of the axis */
};

static double share_of(const json_t *rung, double warps, double most)
{
    return 100 * kl_jnum(rung, "blocks") * warps / most;
}

/* A file may say anything: only what can be drawn is. */
static bool sound(const json_t *rungs, double warps, double most)
{
    const json_t *o;
    size_t i;
    bool ok = json_array_size(rungs) > 0 && warps >= 1 && warps <= 64 && most >= 1 && most <= 4096;
    json_array_foreach (rungs, i, o) {
        double from = kl_jnum(o, "from"), to = kl_jnum(o, "to"), blocks = kl_jnum(o, "blocks");
        ok &= from >= 0 && to >= from && to < 1e9 && blocks >= 0 && blocks <= 4096;
    }
    return ok;
}

/* Where the kernel stands on the axis; NAN: not known. */
static double now_at(const json_t *k, const struct kind *t)
{
    const json_t *s = json_object_get(k, "shared");
    if (strcmp(t->key, "registers") == 0)
        return kl_jnum(json_object_get(k, "registers"), "registers");
    if (strcmp(t->key, "shared") == 0)
        return kl_jnum(s, "static_bytes") + kl_jnum(s, "dynamic_bytes");
    return kl_jnum(k, "threads");
}

static void steps(struct kl_plot *p, const json_t *rungs, const struct kind *t, double warps,
                  double most)
{
    const json_t *o;
    size_t i;
    fputs("<path class=\"line s0\" d=\"", p->f);
    double before = (double)NAN;
    json_array_foreach (rungs, i, o) {
        double y = kl_plot_y(p, share_of(o, warps, most));
        double x = kl_plot_x(p, fmax(p->x.lo, kl_jnum(o, "from") / t->unit));
        if (i)
            kl_plot_avoid(p, x - 1, before, x + 1, y);
        before = y;
        kl_html(p->f, "%c%.1f %.1fH%.1f", i ? 'L' : 'M', x, y,
                kl_plot_x(p, fmin(p->x.hi, (kl_jnum(o, "to") + 1) / t->unit)));
        kl_plot_avoid(p, x, y, kl_plot_x(p, fmin(p->x.hi, (kl_jnum(o, "to") + 1) / t->unit)), y);
    }
    fputs("\"/>\n", p->f);
    json_array_foreach (rungs, i, o) { /* how many blocks, where there is room */
        double y = kl_plot_y(p, share_of(o, warps, most));
        double x = kl_plot_x(p, fmax(p->x.lo, kl_jnum(o, "from") / t->unit));
        double to = kl_plot_x(p, fmin(p->x.hi, (kl_jnum(o, "to") + 1) / t->unit));
        bool word = to - x > 60;
        if (to - x < (kl_jint(o, "blocks") > 9 ? 16 : 9))
            continue;
        kl_html(p->f, "<text class=\"tick m\" x=\"%.1f\" y=\"%.1f\">%lld%s</text>", (x + to) / 2,
                y - 4, kl_jint(o, "blocks"),
                !word                        ? ""
                : kl_jint(o, "blocks") == 1 ? " block"
                                             : " blocks");
        kl_plot_avoid(p, (x + to) / 2 - (word ? 24 : 5), y - 8, (x + to) / 2 + (word ? 24 : 5),
                      y - 8);
    }
    fputs("\n", p->f);
}

static void table(FILE *f, const json_t *rungs, const struct kind *t, double warps, double most)
{
    const json_t *o;
    size_t i;
    char a[32], b[32], columns[100];
    snprintf(columns, sizeof columns, "%s|#blocks|#occupancy", t->label);
    kl_figures_begin(f, columns);
    json_array_foreach (rungs, i, o)
        kl_html(f,
                "<tr><th scope=\"row\">%s to %s</th><td class=\"n\">%lld</td><td "
                "class=\"n\">%.1f%%</td></tr>\n",
                kl_rep_num(kl_jnum(o, "from") / t->unit, a),
                kl_rep_num(kl_jnum(o, "to") / t->unit, b), kl_jint(o, "blocks"),
                share_of(o, warps, most));
    kl_figures_end(f);
}

static void draw(FILE *f, const json_t *k, const struct kind *t, const json_t *rungs,
                 const char *id)
{
    const json_t *occ = json_object_get(k, "occupancy");
    double warps = kl_jnum(k, "warps"), most = kl_jnum(occ, "warps_most"), now = now_at(k, t);
    double hi = kl_jnum(json_array_get(rungs, json_array_size(rungs) - 1), "to") / t->unit;
    char chart[64], tip[120], a[32], b[32];
    static const double percent[] = {0, 25, 50, 75, 100};
    double at[9];
    struct kl_plot p = {.w = 375, .h = 220, .left = 40, .right = 14, .top = 32, .bottom = 36};
    if (!sound(rungs, warps, most))
        return;
    for (int i = 0; i < 9; i++)
        at[i] = 32 * i;
    p.x = (struct kl_axis){0, hi, false, t->label, NULL, 0};
    if (hi >= 128 && hi < 288) {
        p.x.at = at;
        p.x.n = 1 + (size_t)((hi + 1) / 32);
        p.x.hi = fmax(hi, at[p.x.n - 1]);
    }
    p.y = (struct kl_axis){0, 100, false, "occupancy, %", percent, 5};
    snprintf(chart, sizeof chart, "%s-%s", id, t->key);
    kl_html(f, "<figure><figcaption>%s</figcaption>\n", t->title);
    kl_plot_begin(&p, f, chart, t->title,
                  "Steps: how much of a multiprocessor's warps fit, and in how many blocks. The mark is "
                  "the kernel. The "
                  "figures stand in the table behind the chart.");
    steps(&p, rungs, t, warps, most);
    double share = kl_jnum(occ, "share") * 100;
    if (now >= 0 && now < 1e9 && share >= 0 && share <= 100) {
        snprintf(tip, sizeof tip, "now %s%s: %s%%", kl_rep_num(now / t->unit, a), t->unit_name,
                 kl_rep_num(share, b));
        kl_plot_mark(&p, now / t->unit, share, 1, false, tip);
        kl_plot_label(&p, kl_plot_x(&p, now / t->unit), kl_plot_y(&p, share), 1, tip);
    }
    kl_plot_end(&p);
    table(f, rungs, t, warps, most);
    fputs("</figure>\n", f);
}

/* Another number of threads is another number of warps: a table is clearer than steps. */
static void threads(FILE *f, const json_t *k, const json_t *rungs)
{
    double most = kl_jnum(json_object_get(k, "occupancy"), "warps_most");
    const json_t *o;
    size_t i;
    if (!sound(rungs, 1, most))
        return;
    fputs("<figure><figcaption>Occupancy over threads a block</figcaption>\n",
          f);
    kl_table_begin(f, "", "Occupancy over threads", "#threads|#blocks|#occupancy|now");
    json_array_foreach (rungs, i, o) {
        double from = kl_jnum(o, "from"), to = kl_jnum(o, "to"), now = kl_jnum(k, "threads");
        bool is = now >= from && now <= to, none = kl_jint(o, "blocks") < 1;
        kl_html(f, "<tr class=\"%s\"><th scope=\"row\" class=\"n\">", is ? "hot" : "");
        if (from < to)
            kl_html(f, "%lld to ", kl_jint(o, "from"));
        kl_html(f, "%lld</th><td class=\"n\">%lld</td><td class=\"n\">", kl_jint(o, "to"),
                kl_jint(o, "blocks"));
        if (from < to && !none)
            kl_html(f, "%.1f%% to ", share_of(o, ceil(from / 32), most));
        kl_html(f, "%.1f%%</td><td class=\"dim\">", share_of(o, ceil(to / 32), most));
        if (is)
            kl_html(f, "%lld: %.1f%%", kl_jint(k, "threads"),
                    share_of(o, ceil(now / 32), most));
        else if (none)
            fputs("does not fit", f);
        fputs("</td></tr>\n", f);
    }
    kl_table_end(f);
    fputs("</figure>\n", f);
}

void kl_rep_ladder(FILE *f, const json_t *k, const char *id)
{
    static const struct kind kinds[] = {
        {"registers", "Occupancy over registers a thread", "registers a thread", "", 1},
        {"shared", "Occupancy over shared memory a block", "shared memory a block, KiB", " KiB",
         1024}};
    const json_t *l = json_object_get(k, "ladder");
    if (!json_is_object(l) || !json_is_object(json_object_get(k, "occupancy")))
        return;
    fputs("<h3>Occupancy</h3>\n<p class=\"dim\">How many blocks fit on a multiprocessor, and the share "
          "of its warps that they are: what would change it, all else the same. The mark is the "
          "kernel as it is.</p>\n<div class=\"row three\">\n",
          f);
    for (size_t i = 0; i < 2; i++)
        if (json_array_size(json_object_get(l, kinds[i].key)))
            draw(f, k, &kinds[i], json_object_get(l, kinds[i].key), id);
    threads(f, k, json_object_get(l, "threads"));
    fputs("</div>\n", f);
}
