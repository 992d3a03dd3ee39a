/* report_tile.c - pictures of tiles: which lane and register holds an element, and which bank of
 * shared memory its word lies in.  The JSON is made by report_source.c. */
#include <string.h>

#include "cli/report.h"

enum { CELL_W = 33, CELL_H = 18, HEAD = 40, TOP = 20 };

static long long at(const json_t *grid, size_t row, size_t col)
{
    return (long long)json_integer_value(json_array_get(json_array_get(grid, row), col));
}

static void open_svg(FILE *f, const json_t *o, const char *id, const char *title, const char *desc)
{
    long long rows = kl_jint(o, "rows"), cols = kl_jint(o, "cols");
    long long w = HEAD + CELL_W * cols + 2, h = TOP + CELL_H * rows + 2;
    bool wrapped = json_is_true(json_object_get(o, "wrapped"));
    kl_html(
        f,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"%s\"><svg class=\"tile\" "
        "viewBox=\"0 0 %lld %lld\" width=\"%lld\" height=\"%lld\" role=\"img\" "
        "aria-labelledby=\"%s-t %s-d\"><title id=\"%s-t\">%s</title><desc id=\"%s-d\">%s</desc>\n",
        title, w, h, w, h, id, id, id, title, id, desc);
    for (long long c = 0; c < cols; c++)
        kl_html(f, "<text class=\"tick m\" x=\"%lld\" y=\"14\">%s%lld</text>",
                HEAD + CELL_W * c + CELL_W / 2, wrapped ? "+" : "", c);
    for (long long r = 0; r < rows; r++)
        kl_html(f, "<text class=\"tick e\" x=\"%d\" y=\"%lld\">%lld</text>", HEAD - 6,
                TOP + CELL_H * r + 13, wrapped ? r * cols : r);
    fputs("\n", f);
}

/* A frame around all cells and the lines between them, in one path. */
static void grid(FILE *f, long long rows, long long cols)
{
    fputs("<path class=\"cells\" d=\"", f);
    for (long long r = 0; r <= rows; r++)
        kl_html(f, "M%d %lldh%lld", HEAD, TOP + CELL_H * r, CELL_W * cols);
    for (long long c = 0; c <= cols; c++)
        kl_html(f, "M%lld %dv%lld", HEAD + CELL_W * c, TOP, CELL_H * rows);
    fputs("\"/>\n", f);
}

static void fill(FILE *f, size_t row, size_t col, const char *cls)
{
    kl_html(f, "<path class=\"%s\" d=\"M%u %uh%dv%dh-%dZ\"/>", cls, (unsigned)(HEAD + CELL_W * col),
            (unsigned)(TOP + CELL_H * row), CELL_W, CELL_H, CELL_W);
}

static void shape_text(const json_t *o, char *buf, size_t n)
{
    const json_t *d;
    size_t i, used = 0;
    buf[0] = 0;
    json_array_foreach (json_object_get(o, "dim"), i, d)
        if (used < n)
            used +=
                (size_t)snprintf(buf + used, n - used, "[%lld]", (long long)json_integer_value(d));
}

static void where(FILE *f, const json_t *o)
{
    const json_t *p = json_object_get(o, "place");
    if (json_is_object(p))
        kl_html(f, "line %lld: <code>%s</code>", kl_jint(p, "line"),
                kl_jstr(p, "source") + strspn(kl_jstr(p, "source"), " \t"));
}

static void holders(FILE *f, const json_t *o, const char *id)
{
    const json_t *reg = json_object_get(o, "reg"), *lane = json_object_get(o, "lane");
    const json_t *warp = json_object_get(o, "warp"), *cta = json_object_get(o, "cta");
    size_t rows = (size_t)kl_jint(o, "rows"), cols = (size_t)kl_jint(o, "cols");
    long long vec = kl_jint(o, "vec");
    char title[300], shape[64];
    shape_text(o, shape, sizeof shape);
    snprintf(title, sizeof title, "%s of %.80s, tile %s: lane.register of each element",
             kl_jstr(o, "kind"), kl_jstr(o, "array"), shape);
    kl_html(f, "<figure><figcaption>%s<br>", title);
    where(f, o);
    fputs("</figcaption>\n", f);
    open_svg(f, o, id, title,
             "Each cell is an element: its lane, and the register in it. Tinted: what the first "
             "request of warp 0 moves; strong: lane 0.");
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++) {
            bool first = at(warp, r, c) == 0 && at(cta, r, c) == 0;
            if (at(reg, r, c) >= 0 && first && at(reg, r, c) < vec)
                fill(f, r, c, at(lane, r, c) ? "on" : "own");
        }
    grid(f, (long long)rows, (long long)cols);
    fputs("<g class=\"cell\">", f);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++) {
            if (at(reg, r, c) < 0)
                continue;
            bool other = at(warp, r, c) != 0 || at(cta, r, c) != 0;
            kl_html(f, "<text class=\"%s\" x=\"%u\" y=\"%u\">%lld.%lld</text>", other ? "dim" : "",
                    (unsigned)(HEAD + CELL_W * c + CELL_W / 2), (unsigned)(TOP + CELL_H * r + 13),
                    at(lane, r, c), at(reg, r, c));
        }
    kl_html(
        f,
        "</g></svg></div>\n<p class=\"dim\"><code>%s</code>%s. Grey: other warps.</p></figure>\n",
        kl_jstr(o, "layout"),
        json_is_true(json_object_get(o, "copies")) ? "; others hold copies" : "");
}

static void banks(FILE *f, const json_t *x, const json_t *o, const char *id)
{
    const json_t *word = json_object_get(o, "word"), *first = json_object_get(o, "first");
    size_t rows = (size_t)kl_jint(x, "rows"), cols = (size_t)kl_jint(x, "cols");
    char title[200];
    bool chosen = json_is_true(json_object_get(o, "chosen"));
    snprintf(title, sizeof title, "%.40s%s: banks of shared memory", kl_jstr(o, "name"),
             chosen ? " (chosen)" : "");
    kl_html(f,
            "<figure><figcaption><b>%s</b>: %lld wavefronts to store, %lld to load, %lld "
            "bytes</figcaption>\n",
            title, kl_jint(o, "store"), kl_jint(o, "load"), kl_jint(o, "bytes"));
    open_svg(f, x, id, title,
             "Each cell is an element: the bank that its word lies in, 0 to 31. Tinted: what the "
             "first load of warp 0 reads; framed: what its first store writes.");
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            if (at(first, r, c) & 2)
                fill(f, r, c, "on");
    grid(f, (long long)rows, (long long)cols);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            if (at(first, r, c) & 1)
                fill(f, r, c, "frame");
    fputs("<g class=\"cell\">", f);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            if (at(word, r, c) >= 0)
                kl_html(f, "<text x=\"%u\" y=\"%u\">%lld</text>",
                        (unsigned)(HEAD + CELL_W * c + CELL_W / 2),
                        (unsigned)(TOP + CELL_H * r + 13), at(word, r, c) % 32);
    fputs("</g></svg></div></figure>\n", f);
}

static void exchange(FILE *f, const json_t *o, const char *id)
{
    const json_t *way;
    size_t i;
    char shape[64], part[120];
    shape_text(o, shape, sizeof shape);
    kl_html(f, "<h4>Through shared memory: tile %s of %lld-byte elements</h4>\n<p class=\"dim\">",
            shape, kl_jint(o, "bytes"));
    where(f, o);
    kl_html(f, "<br>from <code>%s</code><br>to <code>%s</code></p>\n<div class=\"row\">\n",
            kl_jstr(o, "from"), kl_jstr(o, "to"));
    json_array_foreach (json_object_get(o, "ways"), i, way) {
        snprintf(part, sizeof part, "%s-%u", id, (unsigned)i);
        banks(f, o, way, part);
    }
    fputs("</div>\n<p class=\"dim\">Tinted: what the first load of warp 0 reads. Framed: what its "
          "first store writes. The corner of the tile is shown; equal numbers among tinted cells "
          "of one group of lanes are conflicts.</p>\n",
          f);
}

void kl_rep_tiles(FILE *f, const json_t *tiles, const char *id)
{
    const json_t *h = json_object_get(tiles, "holders"), *x = json_object_get(tiles, "exchanges"),
                 *o;
    char part[100];
    size_t i;
    if (!json_array_size(h) && !json_array_size(x))
        return;
    fputs("<h3>Where elements lie</h3>\n<div class=\"row\">\n", f);
    json_array_foreach (h, i, o) {
        snprintf(part, sizeof part, "%s-h%u", id, (unsigned)i);
        holders(f, o, part);
    }
    fputs("</div>\n", f);
    json_array_foreach (x, i, o) {
        snprintf(part, sizeof part, "%s-x%u", id, (unsigned)i);
        exchange(f, o, part);
    }
}
