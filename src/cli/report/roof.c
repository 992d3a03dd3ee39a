/* roof.c - rooflines: one for each GPU of the model, with what was measured there, and one for
 * each other device that was measured. */
#include <math.h>
#include <string.h>

#include "cli/report/report.h"

enum { DOTS = 64, LINES = 8, SERIES = 6, LABELS = 10, NAME = 160 };

struct dot {
    double x, y;
    bool measured;
    unsigned series; /* dots of one implementation look alike */
    char name[NAME];
};
struct line { /* y = gbs * x, or y = flat; in GB/s, GFLOP/s */
    double gbs, flat;
    char name[NAME];
};
struct roof {
    char title[NAME];
    struct dot dot[DOTS];
    unsigned ndot, left_out;
    struct line line[LINES];
    unsigned nline;
    char series[SERIES][NAME];
    unsigned nseries;
    double unit; /* of the axis, in GFLOP/s */
};

/* softmax/f32 of a benchmark and softmax of the model are one series. */
static unsigned series_of(struct roof *r, const char *kernel)
{
    size_t n = strcspn(kernel, "/");
    unsigned i = 0;
    n = n < NAME ? n : NAME - 1;
    while (i < r->nseries && (strncmp(r->series[i], kernel, n) != 0 || r->series[i][n]))
        i++;
    if (i == SERIES)
        return SERIES - 1;
    if (i == r->nseries) {
        snprintf(r->series[i], NAME, "%.*s", (int)n, kernel);
        r->nseries++;
    }
    return i;
}

static void add_dot(struct roof *r, double x, double y, bool measured, const char *kernel,
                    const char *shape)
{
    if (!kl_rep_drawable(x) || !kl_rep_drawable(y))
        return;
    if (r->ndot == DOTS) {
        r->left_out++;
        return;
    }
    struct dot *d = &r->dot[r->ndot++];
    *d = (struct dot){.x = x, .y = y, .measured = measured, .series = series_of(r, kernel)};
    snprintf(d->name, NAME, "%.90s%s%.60s", kernel, *shape ? " " : "", shape);
}

static void add_line(struct roof *r, double gbs, double flat, const char *what, const char *label)
{
    char a[32];
    if (!kl_rep_drawable(gbs > 0 ? gbs : flat) || r->nline == LINES)
        return;
    struct line *l = &r->line[r->nline++];
    *l = (struct line){.gbs = gbs, .flat = flat};
    if (gbs > 0)
        snprintf(l->name, NAME, "%s %s GB/s (%s)", what, kl_rep_num(gbs, a), label);
    else
        snprintf(l->name, NAME, "%s %s TFLOP/s (%s)", what, kl_rep_num(flat / 1000, a), label);
}

/* ---- what was measured ---- */

/* The kernel's name of a row ends at the types: softmax/f32. */
static bool row_is(const json_t *row, const char *kernel)
{
    const char *name = kl_jstr(row, "kernel");
    size_t n = strlen(kernel);
    return strncmp(name, kernel, n) == 0 && (!name[n] || name[n] == '/') &&
           !json_is_true(json_object_get(row, "peer"));
}

static bool same_work(const json_t *row, const json_t *kernel)
{
    double a = kl_jnum(row, "bytes"), b = kl_jnum(kernel, "moved_bytes");
    return row_is(row, kl_jstr(kernel, "kernel")) && b > 0 && fabs(a - b) <= 0.01 * b;
}

const json_t *kl_rep_row(const struct kl_rep *r, const json_t *kernel, const char *device)
{
    for (size_t i = 0; i < r->nin; i++) {
        const json_t *o;
        size_t k;
        if (r->in[i].kind == KL_REP_BENCH)
            json_array_foreach (json_object_get(r->in[i].root, "rows"), k, o)
                if (same_work(o, kernel) && kl_jnum(o, "gbs") > 0 &&
                    strncmp(kl_jstr(o, "device"), device, strlen(device)) == 0)
                    return o;
    }
    return NULL;
}

/* Operations of a row: as it says, or as the model has them for the same bytes. */
static double flops_of(const struct kl_rep *r, const json_t *row)
{
    double v = kl_jnum(row, "flops");
    for (size_t i = 0; i < r->nk && !(v > 0); i++)
        if (same_work(row, r->k[i].j))
            v = kl_jnum(r->k[i].j, "flop");
    return v;
}

static void measured(struct roof *out, const struct kl_rep *r, const json_t *root,
                     const char *device)
{
    const json_t *o;
    size_t i;
    json_array_foreach (json_object_get(root, "rows"), i, o) {
        double flops = flops_of(r, o), bytes = kl_jnum(o, "bytes"), gbs = kl_jnum(o, "gbs");
        if (strcmp(kl_jstr(o, "device"), device) != 0 || !(bytes > 0))
            continue;
        add_dot(out, flops / bytes, gbs * flops / bytes, true, kl_jstr(o, "kernel"),
                kl_jstr(o, "shape"));
    }
}

/* ---- the picture ---- */

static double line_at(const struct roof *r, const struct line *l, double x)
{
    return (l->gbs > 0 ? l->gbs * x : l->flat) / r->unit;
}

/* The highest ceiling by arithmetic and by memory: where lines end. */
static void limits(const struct roof *r, double *flat, double *gbs)
{
    *flat = *gbs = 0;
    for (unsigned i = 0; i < r->nline; i++) {
        *flat = fmax(*flat, r->line[i].flat);
        *gbs = fmax(*gbs, r->line[i].gbs);
    }
}

static void ranges(struct kl_plot *p, struct roof *r)
{
    double flat, gbs, x0 = (double)INFINITY, x1 = 0, y0 = (double)INFINITY, y1 = 0;
    limits(r, &flat, &gbs);
    for (unsigned i = 0; i < r->ndot; i++) {
        x0 = fmin(x0, r->dot[i].x);
        x1 = fmax(x1, r->dot[i].x);
        y0 = fmin(y0, r->dot[i].y);
        y1 = fmax(y1, r->dot[i].y);
    }
    if (flat > 0 && gbs > 0)
        x1 = fmax(x1, 2 * flat / gbs);
    x0 = pow(10, floor(log10(x0 / 2)));
    x1 = pow(10, ceil(log10(x1 * 2)));
    y1 = fmax(y1, flat > 0 ? flat : gbs * x1);
    y0 = fmin(y0, gbs > 0 ? gbs * x0 : y0);
    p->x = (struct kl_axis){x0, x1, true, "FLOP a byte that must move", NULL, 0};
    r->unit = y1 > 5e4 ? 1000 : 1;
    p->y = (struct kl_axis){pow(10, floor(log10(y0))) / r->unit,
                            y1 * 1.8 / r->unit,
                            true,
                            r->unit > 1 ? "TFLOP/s" : "GFLOP/s",
                            NULL,
                            0};
}

/* The ends of a ceiling, on the page. */
static void ends_of(const struct kl_plot *p, const struct roof *r, const struct line *l,
                    double x[2], double y[2])
{
    double flat, gbs;
    limits(r, &flat, &gbs);
    x[0] = p->x.lo;
    x[1] = p->x.hi;
    if (l->gbs > 0 && flat > 0)
        x[1] = fmin(x[1], flat / l->gbs);
    if (l->gbs > 0) {
        x[0] = fmax(x[0], p->y.lo * r->unit / l->gbs);
        x[1] = fmin(x[1], p->y.hi * r->unit / l->gbs);
    } else if (gbs > 0) {
        x[0] = fmax(x[0], l->flat / gbs);
    }
    y[0] = line_at(r, l, x[0]);
    y[1] = line_at(r, l, x[1]);
}

/* The name along the line, without where it is from: the line says it, and the list behind the chart. */
static bool ceiling_name(struct kl_plot *p, const struct roof *r, const struct line *l, bool below)
{
    double x[2], y[2];
    char name[NAME];
    ends_of(p, r, l, x, y);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(l->name, "("), l->name);
    double px[2] = {kl_plot_x(p, x[0]), kl_plot_x(p, x[1])};
    double py[2] = {kl_plot_y(p, y[0]), kl_plot_y(p, y[1])};
    for (unsigned side = 0; side < 2; side++)
        if (kl_plot_along(p, px[0], py[0], px[1], py[1], below == side, name))
            return true;
    return false;
}

static void ceilings(struct kl_plot *p, const struct roof *r)
{
    double x[2], y[2], flat, gbs;
    bool named[LINES] = {false};
    limits(r, &flat, &gbs);
    for (unsigned i = 0; i < r->nline; i++) {
        ends_of(p, r, &r->line[i], x, y);
        kl_plot_line(p, x, y, 2, 9, strstr(r->line[i].name, "measured") != NULL);
    }
    for (unsigned slanted = 0; slanted < 2; slanted++) {
        for (unsigned i = 0; i < r->nline; i++)
            if ((r->line[i].gbs > 0) == slanted)
                named[i] = ceiling_name(p, r, &r->line[i], slanted && r->line[i].gbs < gbs);
        for (unsigned i = 0; i < r->nline; i++) {
            ends_of(p, r, &r->line[i], x, y);
            if ((r->line[i].gbs > 0) == slanted)
                kl_plot_avoid(p, kl_plot_x(p, x[0]), kl_plot_y(p, y[0]), kl_plot_x(p, x[1]),
                              kl_plot_y(p, y[1]));
        }
    }
    for (unsigned i = 0; i < r->nline; i++) {
        ends_of(p, r, &r->line[i], x, y);
        if (!named[i])
            kl_plot_label(p, kl_plot_x(p, x[1]) - 4, kl_plot_y(p, y[1]), 9, r->line[i].name);
    }
}

/* All points where there are few, else the highest of each series. */
static void dot_names(struct kl_plot *p, const struct roof *r)
{
    for (unsigned i = 0; i < r->ndot; i++) {
        const struct dot *d = &r->dot[i];
        bool named = true;
        for (unsigned k = 0; k < r->ndot && r->ndot > LABELS; k++)
            named &= r->dot[k].series != d->series || r->dot[k].measured != d->measured ||
                     r->dot[k].y < d->y || (r->dot[k].y <= d->y && k >= i);
        if (named)
            kl_plot_label(p, kl_plot_x(p, d->x), kl_plot_y(p, d->y / r->unit), (int)d->series,
                          d->name);
    }
}

static void table(FILE *f, const struct roof *r)
{
    char a[32], b[32];
    kl_figures_begin(f, "point|from|#FLOP/B|#GFLOP/s");
    for (unsigned i = 0; i < r->ndot; i++)
        kl_html(f,
                "<tr><th scope=\"row\">%s</th><td>%s</td><td class=\"n\">%s</td><td "
                "class=\"n\">%s</td></tr>\n",
                r->dot[i].name, r->dot[i].measured ? "measured" : "model: at most",
                kl_rep_num(r->dot[i].x, a), kl_rep_num(r->dot[i].y, b));
    kl_table_end(f);
    fputs("<ul class=\"plain\">\n", f);
    for (unsigned i = 0; i < r->nline; i++)
        kl_html(f, "<li>%s</li>\n", r->line[i].name);
    fputs("</ul></details>\n", f);
}

/* What there is of hollow and filled marks and of lines. */
static void key(FILE *f, const struct roof *r)
{
    bool filled = false, hollow = false, dashed = false, full = false;
    for (unsigned i = 0; i < r->ndot; i++) {
        filled |= r->dot[i].measured;
        hollow |= !r->dot[i].measured;
    }
    for (unsigned i = 0; i < r->nline; i++) {
        bool measured = strstr(r->line[i].name, "measured") != NULL;
        dashed |= measured;
        full |= !measured;
    }
    kl_html(f, "<p class=\"dim key\">%s%s%s%s Shape and colour: the kernel.</p>\n",
            hollow ? "Hollow: the most that the model allows. " : "",
            filled ? "Filled: measured, cold. " : "", full ? "Full lines: datasheet. " : "",
            dashed ? "Dashed: measured." : "");
}

static void draw(FILE *f, struct roof *r, unsigned *number)
{
    struct kl_plot p = {.w = 580, .h = 340, .left = 52, .right = 20, .top = 20, .bottom = 38};
    char id[32];
    if (!r->ndot || !r->nline)
        return;
    snprintf(id, sizeof id, "roof%u", (*number)++);
    ranges(&p, r);
    kl_html(f, "<figure><figcaption>%s</figcaption>\n", r->title);
    kl_plot_begin(
        &p, f, id, r->title,
        "Operations a second over operations a byte, both on logarithmic scales. Slanted lines are "
        "memory, level ones arithmetic. The figures stand in the table behind the chart.");
    for (unsigned i = 0; i < r->ndot; i++)
        kl_plot_reserve(&p, r->dot[i].x, r->dot[i].y / r->unit);
    ceilings(&p, r);
    for (unsigned i = 0; i < r->ndot; i++) {
        char tip[NAME + 80], a[32], b[32];
        snprintf(tip, sizeof tip, "%s: %s FLOP/B, %s GFLOP/s (%s)", r->dot[i].name,
                 kl_rep_num(r->dot[i].x, a), kl_rep_num(r->dot[i].y, b),
                 r->dot[i].measured ? "measured" : "model: at most");
        kl_plot_mark(&p, r->dot[i].x, r->dot[i].y / r->unit, (int)r->dot[i].series,
                     !r->dot[i].measured, tip);
    }
    dot_names(&p, r);
    kl_plot_end(&p);
    key(f, r);
    table(f, r);
    if (r->left_out)
        kl_html(f, "<p class=\"dim\">%u more points are left out.</p>", r->left_out);
    fputs("</figure>\n", f);
}

/* ---- which there are ---- */

static const json_t *gpu_of(const struct kl_rep *r, size_t i)
{
    const json_t *g = json_object_get(r->k[i].j, "gpu");
    return json_is_object(g) ? g : NULL;
}

static void gpu_lines(struct roof *out, const json_t *g)
{
    static const struct {
        const char *key, *name;
    } peak[] = {{"fp32_tflops", "FP32"}, {"tensor16_tflops", "tensor 16-bit"}};
    const char *label = kl_jstr(g, "label");
    add_line(out, kl_jnum(g, "memory_gbs"), 0, "memory", label);
    add_line(out, kl_jnum(g, "copy_gbs"), 0, "copy", "measured");
    for (size_t i = 0; i < 2; i++)
        add_line(out, 0, kl_jnum(g, peak[i].key) * 1000, peak[i].name, label);
}

static void gpu_roof(FILE *f, const struct kl_rep *r, size_t first, unsigned *number)
{
    struct roof out = {.nline = 0};
    const json_t *g = gpu_of(r, first), *o;
    const char *gpu = kl_jstr(g, "name");
    size_t k;
    for (size_t i = 0; i < first; i++)
        if (gpu_of(r, i) && strcmp(kl_jstr(gpu_of(r, i), "name"), gpu) == 0)
            return;
    snprintf(out.title, NAME, "Roofline of %s", gpu);
    gpu_lines(&out, g);
    for (size_t i = first; i < r->nk; i++) {
        const json_t *j = r->k[i].j;
        if (gpu_of(r, i) && strcmp(kl_jstr(gpu_of(r, i), "name"), gpu) == 0)
            add_dot(&out, kl_jnum(j, "intensity"),
                    kl_jnum(json_object_get(j, "roofline"), "attainable_tflops") * 1000, false,
                    kl_jstr(j, "kernel"), "");
    }
    for (size_t i = 0; i < r->nin; i++)
        if (r->in[i].kind == KL_REP_BENCH)
            json_array_foreach (json_object_get(r->in[i].root, "devices"), k, o)
                if (strstr(kl_jstr(o, "name"), gpu))
                    measured(&out, r, r->in[i].root, kl_jstr(o, "device"));
    draw(f, &out, number);
}

static bool drawn_above(const struct kl_rep *r, const json_t *device)
{
    for (size_t i = 0; i < r->nk; i++)
        if (gpu_of(r, i) && *kl_jstr(gpu_of(r, i), "name") &&
            strstr(kl_jstr(device, "name"), kl_jstr(gpu_of(r, i), "name")))
            return true;
    return false;
}

static bool same_device(const json_t *a, const json_t *b)
{
    return strcmp(kl_jstr(a, "device"), kl_jstr(b, "device")) == 0 &&
           strcmp(kl_jstr(a, "name"), kl_jstr(b, "name")) == 0;
}

/* What the reports from `first` on measured on that device; nothing if an earlier one has it, too. */
static void device_roof(FILE *f, const struct kl_rep *r, size_t first, const json_t *d,
                        unsigned *number)
{
    struct roof out = {.nline = 0};
    double most[2] = {0, 0};
    const json_t *o;
    size_t k;
    for (size_t i = 0; i < r->nin; i++)
        if (r->in[i].kind == KL_REP_BENCH)
            json_array_foreach (json_object_get(r->in[i].root, "devices"), k, o) {
                if (!same_device(o, d))
                    continue;
                if (i < first)
                    return;
                most[0] = fmax(
                    most[0], json_number_value(json_array_get(json_object_get(o, "copy_gbs"), 1)));
                most[1] = fmax(
                    most[1], json_number_value(json_array_get(json_object_get(o, "read_gbs"), 1)));
                measured(&out, r, r->in[i].root, kl_jstr(d, "device"));
            }
    snprintf(out.title, NAME, "Roofline of %s%s%s: measured ceilings of memory",
             kl_jstr(d, "device"), *kl_jstr(d, "name") ? " " : "", kl_jstr(d, "name"));
    add_line(&out, most[0], 0, "copy", "measured, the most");
    add_line(&out, most[1], 0, "read", "measured, the most");
    draw(f, &out, number);
}

unsigned kl_rep_roofs(FILE *f, const struct kl_rep *r)
{
    unsigned number = 0;
    const json_t *d;
    size_t k;
    for (size_t i = 0; i < r->nk; i++)
        if (gpu_of(r, i))
            gpu_roof(f, r, i, &number);
    for (size_t i = 0; i < r->nin; i++)
        if (r->in[i].kind == KL_REP_BENCH)
            json_array_foreach (json_object_get(r->in[i].root, "devices"), k, d)
                if (!drawn_above(r, d))
                    device_roof(f, r, i, d, &number);
    return number;
}
