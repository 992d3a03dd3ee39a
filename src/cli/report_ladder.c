/* report_ladder.c - occupancy over registers, shared memory and threads, as steps. */
#include <math.h>
#include <string.h>

#include "cli/report.h"

struct kind {
    const char *key, *title, *label;
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
    struct kl_plot p = {.w = 360, .h = 200, .left = 40, .right = 14, .top = 22, .bottom = 36};
    if (!sound(rungs, warps, most))
        return;
    p.x = (struct kl_axis){0, hi, false, t->label, NULL, 0};
    p.y = (struct kl_axis){0, 100, false, "occupancy, %", NULL, 0};
    snprintf(chart, sizeof chart, "%s-%s", id, t->key);
    kl_html(f, "<figure><figcaption>%s</figcaption>\n", t->title);
    kl_plot_begin(&p, f, chart, t->title,
                  "Steps: how much of a multiprocessor's warps fit. The mark is the kernel. The "
                  "figures stand in the table behind the chart.");
    steps(&p, rungs, t, warps, most);
    double share = kl_jnum(occ, "share") * 100;
    if (now >= 0 && now < 1e9 && share >= 0 && share <= 100) {
        snprintf(tip, sizeof tip, "now: %s, %s%%", kl_rep_num(now / t->unit, a),
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
    fputs("<figure><figcaption>Occupancy over threads a block, all else the same</figcaption>\n",
          f);
    kl_table_begin(f, "", "Occupancy over threads", "#threads|#blocks|#occupancy");
    json_array_foreach (rungs, i, o) {
        double t = kl_jnum(o, "to"), warps = ceil(t / 32);
        kl_html(f,
                "<tr class=\"%s\"><th scope=\"row\" class=\"n\">%lld</th><td "
                "class=\"n\">%lld</td><td class=\"n\">%.1f%%</td></tr>\n",
                t == kl_jnum(k, "threads") ? "hot" : "", kl_jint(o, "to"), kl_jint(o, "blocks"),
                share_of(o, warps, most));
    }
    kl_table_end(f);
    fputs("</figure>\n", f);
}

void kl_rep_ladder(FILE *f, const json_t *k, const char *id)
{
    static const struct kind kinds[] = {
        {"registers", "Occupancy over registers a thread", "registers a thread", 1},
        {"shared", "Occupancy over shared memory a block", "shared memory a block, KiB", 1024}};
    const json_t *l = json_object_get(k, "ladder");
    if (!json_is_object(l) || !json_is_object(json_object_get(k, "occupancy")))
        return;
    fputs("<h3>Occupancy</h3>\n<div class=\"row\">\n", f);
    for (size_t i = 0; i < 2; i++)
        if (json_array_size(json_object_get(l, kinds[i].key)))
            draw(f, k, &kinds[i], json_object_get(l, kinds[i].key), id);
    threads(f, k, json_object_get(l, "threads"));
    fputs("</div>\n", f);
}
