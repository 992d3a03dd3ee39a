/* tile.c - pictures of tiles: which lane and register holds an element, and which bank of
 * shared memory its word lies in.  The JSON is made by source.c. */
#include <string.h>

#include "cli/report/report.h"

enum { CELL_W = 30, CELL_H = 18, HEAD = 32, TOP = 20, RIGHT = 60 };
enum { BANK_W = 14, BANK_HEAD = 76, BANKS = 32, GROUPS = 4 };

static long long at(const json_t *grid, size_t row, size_t col)
{
    return (long long)json_integer_value(json_array_get(json_array_get(grid, row), col));
}

static void begin_svg(FILE *f, long long w, long long h, const char *id, const char *title,
                      const char *desc)
{
    kl_html(
        f,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"%s\"><svg class=\"tile\" "
        "viewBox=\"0 0 %lld %lld\" width=\"%lld\" height=\"%lld\" role=\"img\" "
        "aria-labelledby=\"%s-t %s-d\"><title id=\"%s-t\">%s</title><desc id=\"%s-d\">%s</desc>\n",
        title, w, h, w, h, id, id, id, title, id, desc);
}

/* The corner of a tile, with the coordinates of its elements. */
static void open_svg(FILE *f, const json_t *o, const char *id, const char *title, const char *desc,
                     int right)
{
    long long rows = kl_jint(o, "rows"), cols = kl_jint(o, "cols");
    bool wrapped = json_is_true(json_object_get(o, "wrapped"));
    begin_svg(f, HEAD + CELL_W * cols + 2 + right, TOP + CELL_H * rows + 2, id, title, desc);
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

/* Cells of a row from column `from` to before column `to`. */
static void fill(FILE *f, size_t row, size_t from, size_t to, const char *cls)
{
    unsigned w = (unsigned)(CELL_W * (to - from));
    kl_html(f, "<path class=\"%s\" d=\"M%u %uh%uv%dh-%uZ\"/>", cls, (unsigned)(HEAD + CELL_W * from),
            (unsigned)(TOP + CELL_H * row), w, CELL_H, w);
}

/* The text of a cell begins. */
static void cell(FILE *f, size_t row, size_t col)
{
    kl_html(f, "<text x=\"%u\" y=\"%u\">", (unsigned)(HEAD + CELL_W * col + CELL_W / 2),
            (unsigned)(TOP + CELL_H * row + 13));
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

/* ---- who holds an element ---- */

struct held {
    const json_t *reg, *lane, *warp, *cta;
    size_t rows, cols;
    long long vec;
};

static bool same_warp(const struct held *h, size_t r, size_t c, size_t r2, size_t c2)
{
    return at(h->warp, r, c) == at(h->warp, r2, c2) && at(h->cta, r, c) == at(h->cta, r2, c2);
}

/* Strong lines where another warp begins, and its number beside rows that are of one warp. */
static void warps(FILE *f, const struct held *h)
{
    fputs("<path class=\"other\" d=\"", f);
    for (size_t r = 0; r < h->rows; r++)
        for (size_t c = 0; c < h->cols; c++) {
            if (r && !same_warp(h, r, c, r - 1, c))
                kl_html(f, "M%u %uh%d", (unsigned)(HEAD + CELL_W * c), (unsigned)(TOP + CELL_H * r),
                        CELL_W);
            if (c && !same_warp(h, r, c, r, c - 1))
                kl_html(f, "M%u %uv%d", (unsigned)(HEAD + CELL_W * c), (unsigned)(TOP + CELL_H * r),
                        CELL_H);
        }
    fputs("\"/>", f);
    for (size_t r = 0; r < h->rows; r++) {
        bool one = true;
        for (size_t c = 1; c < h->cols; c++)
            one &= same_warp(h, r, 0, r, c);
        if (!one || (r && same_warp(h, r, 0, r - 1, 0)))
            continue;
        kl_html(f, "<text class=\"tick\" x=\"%u\" y=\"%u\">", (unsigned)(HEAD + CELL_W * h->cols + 6),
                (unsigned)(TOP + CELL_H * r + 13));
        if (at(h->cta, r, 0))
            kl_html(f, "block %lld, ", at(h->cta, r, 0));
        kl_html(f, "warp %lld</text>", at(h->warp, r, 0));
    }
    fputs("\n", f);
}

/* By the first request of warp 0: 1, by its lane 0: 2. */
static int moved(const struct held *h, size_t r, size_t c)
{
    if (at(h->reg, r, c) < 0 || at(h->reg, r, c) >= h->vec || at(h->warp, r, c) ||
        at(h->cta, r, c))
        return 0;
    return at(h->lane, r, c) ? 1 : 2;
}

static void held_by(FILE *f, const struct held *h)
{
    for (size_t r = 0; r < h->rows; r++)
        for (size_t c = 0, to; c < h->cols; c = to) {
            int how = moved(h, r, c);
            for (to = c + 1; to < h->cols && moved(h, r, to) == how;)
                to++;
            if (how)
                fill(f, r, c, to, how > 1 ? "own" : "on");
        }
    grid(f, (long long)h->rows, (long long)h->cols);
    warps(f, h);
    for (int others = 0; others < 2; others++) {
        fputs(others ? "<g class=\"cell others\">" : "<g class=\"cell\">", f);
        for (size_t r = 0; r < h->rows; r++)
            for (size_t c = 0; c < h->cols; c++) {
                bool other = at(h->warp, r, c) != 0 || at(h->cta, r, c) != 0;
                if (at(h->reg, r, c) < 0 || other != others)
                    continue;
                cell(f, r, c);
                kl_html(f, "%lld.%lld</text>", at(h->lane, r, c), at(h->reg, r, c));
            }
        fputs("</g>", f);
    }
    fputs("</svg></div>\n", f);
}

static void holders(FILE *f, const json_t *o, const char *id)
{
    struct held h = {json_object_get(o, "reg"), json_object_get(o, "lane"),
                     json_object_get(o, "warp"), json_object_get(o, "cta"),
                     (size_t)kl_jint(o, "rows"), (size_t)kl_jint(o, "cols"),
                     kl_jint(o, "vec")};
    char title[300], shape[64];
    shape_text(o, shape, sizeof shape);
    snprintf(title, sizeof title, "%s of %.80s, tile %s: who holds each element",
             kl_jstr(o, "kind"), kl_jstr(o, "array"), shape);
    kl_html(f, "<figure><figcaption>%s<br>", title);
    where(f, o);
    fputs("</figcaption>\n", f);
    open_svg(f, o, id, title,
             "Each cell is an element: its lane, and the register in it. Tinted: what the first "
             "request of warp 0 moves; strong: lane 0.",
             RIGHT);
    held_by(f, &h);
    kl_html(f, "<p class=\"dim\">%lld element%s a lane and request. <code>%s</code>%s</p></figure>\n", h.vec,
            h.vec == 1 ? "" : "s", kl_jstr(o, "layout"),
            json_is_true(json_object_get(o, "copies")) ? "; others hold copies" : "");
}

/* ---- banks ---- */

static void corner(FILE *f, const json_t *x, const json_t *o, const char *id, const char *title)
{
    const json_t *word = json_object_get(o, "word"), *first = json_object_get(o, "first");
    size_t rows = (size_t)kl_jint(x, "rows"), cols = (size_t)kl_jint(x, "cols");
    open_svg(f, x, id, title,
             "Each cell is an element: the bank that its word lies in, 0 to 31. Tinted: what the "
             "first load of warp 0 reads; framed: what its first store writes.",
             0);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0, to; c < cols; c = to) {
            for (to = c; to < cols && at(first, r, to) & 2;)
                to++;
            if (to > c)
                fill(f, r, c, to, "on");
            to += to == c;
        }
    grid(f, (long long)rows, (long long)cols);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            if (at(first, r, c) & 1)
                fill(f, r, c, c + 1, "frame");
    fputs("<g class=\"cell\">", f);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            if (at(word, r, c) >= 0) {
                cell(f, r, c);
                kl_html(f, "%lld</text>", at(word, r, c) % BANKS);
            }
    fputs("</g></svg></div>\n", f);
}

static long long busiest(const json_t *group)
{
    const json_t *o;
    size_t i;
    long long most = 0;
    json_array_foreach (group, i, o)
        most = json_integer_value(o) > most ? (long long)json_integer_value(o) : most;
    return most;
}

/* How often the first access of warp 0 wants each bank: a row for each group of lanes. */
static void wanted(FILE *f, const json_t *q, const char *what, const char *id)
{
    const json_t *groups = json_object_get(q, "groups"), *g;
    size_t n = json_array_size(groups), i;
    long long waves = kl_jint(q, "waves"), ideal = kl_jint(q, "ideal");
    char title[160];
    if (!n || n > GROUPS)
        return;
    snprintf(title, sizeof title, "First %s of warp 0, %lld bytes a lane", what,
             kl_jint(q, "bytes"));
    kl_html(f, "<p class=\"req\">%s: <b class=\"%s\">%lld wavefront%s</b>, %lld at best</p>\n", title,
            waves > ideal ? "bad" : "good", waves, waves == 1 ? "" : "s", ideal);
    begin_svg(f, BANK_HEAD + BANK_W * BANKS + 40, TOP + CELL_H * (long long)n + 2, id, title,
              "A column for each bank of shared memory, a row for each group of lanes that goes "
              "together: how many different words they want of the bank. The largest of a row is "
              "its number of wavefronts.");
    for (unsigned b = 0; b < BANKS; b += 2)
        kl_html(f, "<text class=\"tick m\" x=\"%.1f\" y=\"14\">%u</text>",
                BANK_HEAD + BANK_W * (b + 0.5), b);
    json_array_foreach (groups, i, g) {
        unsigned y = (unsigned)(TOP + CELL_H * i);
        long long most = busiest(g);
        kl_html(f, "<text class=\"tick e\" x=\"%d\" y=\"%u\">lanes %u–%u</text>", BANK_HEAD - 5, y + 13,
                (unsigned)(32 / n * i), (unsigned)(32 / n * (i + 1)) - 1);
        for (unsigned b = 0; b < BANKS && b < json_array_size(g); b++) {
            long long v = (long long)json_integer_value(json_array_get(g, b));
            if (v > 0)
                kl_html(f, "<path class=\"%s\" d=\"M%u %uh%dv%dh-%dZ\"/>",
                        v > 1 && v == most ? "own" : "on", BANK_HEAD + BANK_W * b, y, BANK_W,
                        CELL_H, BANK_W);
        }
        kl_html(f, "<path class=\"cells\" d=\"M%d %uh%dv%dh-%dZ", BANK_HEAD, y, BANK_W * BANKS, CELL_H,
                BANK_W * BANKS);
        for (unsigned b = 1; b < BANKS; b++)
            kl_html(f, "M%u %uv%d", BANK_HEAD + BANK_W * b, y, CELL_H);
        fputs("\"/><g class=\"cell\">", f);
        for (unsigned b = 0; b < BANKS && b < json_array_size(g); b++) {
            long long v = (long long)json_integer_value(json_array_get(g, b));
            if (v > 0)
                kl_html(f, "<text x=\"%.1f\" y=\"%u\">%lld</text>", BANK_HEAD + BANK_W * (b + 0.5),
                        y + 13, v);
        }
        kl_html(f, "</g><text class=\"%s\" x=\"%d\" y=\"%u\">→ %lld</text>\n",
                most > 1 ? "" : "dim", BANK_HEAD + BANK_W * BANKS + 6, y + 13, most);
    }
    fputs("</svg></div>\n", f);
}

static void banks(FILE *f, const json_t *x, const json_t *o, const char *id)
{
    char title[200], part[140];
    bool chosen = json_is_true(json_object_get(o, "chosen"));
    snprintf(title, sizeof title, "%.40s%s: banks of shared memory", kl_jstr(o, "name"),
             chosen ? " (chosen)" : "");
    kl_html(f,
            "<figure><figcaption><b>%s</b>: %lld wavefronts to store, %lld to load, %lld "
            "bytes</figcaption>\n",
            title, kl_jint(o, "store"), kl_jint(o, "load"), kl_jint(o, "bytes"));
    corner(f, x, o, id, title);
    snprintf(part, sizeof part, "%s-st", id);
    wanted(f, json_object_get(o, "first_store"), "store", part);
    snprintf(part, sizeof part, "%s-ld", id);
    wanted(f, json_object_get(o, "first_load"), "load", part);
    fputs("</figure>\n", f);
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
    fputs("</div>\n", f);
}

static void swatch(FILE *f, const char *cls, const char *text)
{
    kl_html(f, "<li><span class=\"sw %s\"></span>%s</li>\n", cls, text);
}

void kl_rep_tiles(FILE *f, const json_t *tiles, const char *id, size_t most)
{
    const json_t *h = json_object_get(tiles, "holders"), *x = json_object_get(tiles, "exchanges"),
                 *o;
    char part[100];
    size_t i;
    size_t held = json_array_size(h), all = held + json_array_size(x), left = 0;
    if (!all)
        return;
    fputs("<h3>Where elements lie</h3>\n", f);
    if (held) {
        fputs("<p class=\"dim\">The corner of each tile, an element a cell: <b>5.2</b> lies in "
              "register 2 of lane 5. Numbers at the edges are coordinates in the tile.</p>\n<ul "
              "class=\"legend\">\n",
              f);
        swatch(f, "own", "lane 0 of warp 0, first request");
        swatch(f, "on", "other lanes of that request");
        swatch(f, "", "later requests; grey numbers: other warps, behind a strong line");
        fputs("</ul>\n<div class=\"row\">\n", f);
    }
    json_array_foreach (h, i, o) {
        if (i >= most) {
            left++;
            continue;
        }
        snprintf(part, sizeof part, "%s-h%u", id, (unsigned)i);
        holders(f, o, part);
    }
    fputs(held ? "</div>\n" : "", f);
    if (json_array_size(x)) {
        fputs("<h3>Banks of shared memory</h3>\n<p class=\"dim\">Where layouts differ, a tile goes "
              "through shared memory. First the corner of the tile: in which of the 32 banks each "
              "element lies. Below, for the first store and the first load of warp 0, how many "
              "different words the lanes that go together want of each bank (8 lanes of 16 bytes, "
              "16 of 8, 32 of 4). A bank gives one word at a time: the largest number of a row is "
              "how many wavefronts it takes, and where all are 1 there is no conflict.</p>\n<ul "
              "class=\"legend\">\n",
              f);
        swatch(f, "on", "the first load reads it");
        swatch(f, "framed", "the first store writes it");
        swatch(f, "own", "the busiest bank of a group");
        fputs("</ul>\n", f);
    }
    json_array_foreach (x, i, o) {
        if (i >= most) {
            left++;
            continue;
        }
        snprintf(part, sizeof part, "%s-x%u", id, (unsigned)i);
        exchange(f, o, part);
    }
    if (left)
        kl_html(f,
                "<p class=\"warn\">%u of %u pictures are left out, so that the page stays below %d "
                "bytes.</p>\n",
                (unsigned)left, (unsigned)all, KL_REP_MOST);
}
