/* kernel.c - the section of one kernel: what it needs, what it moves, notes, listings. */
#include <math.h>
#include <string.h>

#include "cli/report/report.h"
#include "explain.h"

static void pair(FILE *f, const char *name, const char *value, const char *from)
{
    kl_html(f, "<div><dt>%s</dt><dd>%s", name, value);
    if (*from)
        kl_html(f, " <small>%s</small>", from);
    fputs("</dd></div>\n", f);
}

static void figure(FILE *f, const char *name, double v, const char *unit, const char *from)
{
    char buf[32], text[64];
    if (!isfinite(v))
        return;
    snprintf(text, sizeof text, "%s%s", kl_rep_num(v, buf), unit);
    pair(f, name, text, from);
}

static void bytes(FILE *f, const char *name, double v, const char *from)
{
    char buf[32];
    if (isfinite(v))
        pair(f, name, kl_explain_bytes(v, buf), from);
}

/* "at most 56: 9 blocks": the next rung that lets more blocks in. */
static void step_up(FILE *f, const json_t *k)
{
    const json_t *rungs = kl_jat(k, "ladder", "registers"), *o;
    double have = kl_jnum(json_object_get(k, "registers"), "registers");
    size_t i;
    char text[80] = "";
    json_array_foreach (rungs, i, o)
        if (kl_jnum(o, "to") < have)
            snprintf(text, sizeof text, "at most %lld registers: %lld blocks", kl_jint(o, "to"),
                     kl_jint(o, "blocks"));
    if (*text)
        pair(f, "next step up", text, "");
}

static void occupancy(FILE *f, const json_t *k)
{
    const json_t *o = json_object_get(k, "occupancy"), *w = json_object_get(k, "waves"), *by;
    char text[200], a[32];
    size_t i, n;
    if (!json_is_object(o)) {
        pair(f, "occupancy", "unknown: no registers", "");
        return;
    }
    snprintf(text, sizeof text, "%s%%: %lld block%s, %lld of %lld warps",
             kl_rep_num(kl_jnum(o, "share") * 100, a), kl_jint(o, "blocks"),
             kl_jint(o, "blocks") == 1 ? "" : "s", kl_jint(o, "warps"), kl_jint(o, "warps_most"));
    pair(f, "occupancy", text, "");
    n = 0;
    json_array_foreach (json_object_get(o, "limited_by"), i, by)
        if (n < 120 && json_string_value(by))
            n += (size_t)snprintf(text + n, 80, "%s%.60s", n ? ", " : "", json_string_value(by));
    if (n)
        pair(f, "limited by", text, "");
    step_up(f, k);
    if (json_is_object(w)) {
        snprintf(text, sizeof text, "%s of %lld blocks", kl_rep_num(kl_jnum(w, "waves"), a),
                 kl_jint(w, "blocks_per_wave"));
        pair(f, "waves", text, "");
        if (kl_jint(w, "full") > 0)
            figure(f, "tail costs at most", kl_jnum(w, "tail_most") * 100, "%", "");
    }
}

static void registers(FILE *f, const json_t *k)
{
    const json_t *r = json_object_get(k, "registers");
    const char *from = kl_jstr(r, "from");
    if (*from) {
        figure(f, "registers a thread", kl_jnum(r, "registers"), "", from);
        double spill = kl_jnum(r, "spill_store_bytes") + kl_jnum(r, "spill_load_bytes");
        if (spill > 0)
            figure(f, "spilled a thread", spill, " B stored and loaded", "");
        else
            pair(f, "spilled", "nothing", "");
    } else {
        pair(f, "registers", "unknown", kl_jstr(r, "why"));
    }
}

static void floors(FILE *f, const json_t *k)
{
    const json_t *o;
    size_t i;
    json_array_foreach (json_object_get(k, "floors"), i, o) {
        char ms[32], from[120], name[80], g[32];
        snprintf(name, sizeof name, "floor, %.40s", kl_jstr(o, "from"));
        snprintf(from, sizeof from, "at %s GB/s", kl_rep_num(kl_jnum(o, "gbs"), g));
        pair(f, name, kl_rep_ms(kl_jnum(o, "us") / 1000, ms), from);
    }
}

static void group(FILE *f, const char *name)
{
    kl_html(f, "<div><h3>%s</h3><dl>\n", name);
}

static void end_group(FILE *f)
{
    fputs("</dl></div>\n", f);
}

static void launch(FILE *f, const json_t *k)
{
    const json_t *g = json_object_get(k, "gpu"), *grid = json_object_get(k, "grid"), *o;
    char text[200], a[32];
    size_t i, n = 0;
    group(f, "Launch");
    snprintf(text, sizeof text, "%s × %lld threads", kl_rep_num(kl_jnum(k, "blocks"), a),
             kl_jint(k, "threads"));
    pair(f, "blocks", text, "");
    text[0] = 0;
    json_array_foreach (grid, i, o)
        if (n < 120 && (!i || json_integer_value(o) != 1))
            n += (size_t)snprintf(text + n, 40, "%s%lld", i ? " × " : "",
                                  (long long)json_integer_value(o));
    if (n)
        pair(f, "grid of programs", text, "");
    if (kl_jint(k, "cluster") > 1)
        figure(f, "blocks a cluster", kl_jnum(k, "cluster"), "", "");
    if (json_is_object(g)) {
        snprintf(text, sizeof text, "%.60s, %lld multiprocessors", kl_jstr(g, "name"),
                 kl_jint(g, "sms"));
        pair(f, "GPU", text, kl_jstr(g, "label"));
    }
    snprintf(text, sizeof text, "%.40s, PTX %.20s", kl_jstr(k, "arch"), kl_jstr(k, "ptx"));
    pair(f, "target", text, "");
    end_group(f);
}

static void traffic(FILE *f, const json_t *k)
{
    double moved = kl_jnum(k, "moved_bytes"), asked = kl_rep_sector_bytes(k);
    char text[64], a[32];
    group(f, "Traffic and work");
    bytes(f, "must move", moved, "each byte once");
    if (asked > 0 && moved > 0) {
        snprintf(text, sizeof text, "in sectors, before caches: %s×", kl_rep_num(asked / moved, a));
        bytes(f, "asked for", asked, text);
    }
    figure(f, "as separate passes", kl_jnum(kl_jat(k, "model", "passes"), "ratio"), "× the bytes",
           "traffic, not speed");
    if (kl_jnum(k, "flop") > 0) {
        figure(f, "work", kl_jnum(k, "flop") * 1e-6, " MFLOP", "");
        figure(f, "intensity", kl_jnum(k, "intensity"), " FLOP/B", "");
    } else {
        pair(f, "work", "no floating-point arithmetic", "");
    }
    end_group(f);
}

static void limits(FILE *f, const struct kl_rep *r, const json_t *k)
{
    const json_t *row = kl_rep_row(r, k, "cuda");
    double peak = kl_jnum(json_object_get(k, "roofline"), "attainable_tflops");
    char a[32], b[32], from[64];
    const char *bound = kl_rep_bound(k);
    group(f, "Limits");
    if (*bound)
        pair(f, "bound by", bound, "");
    floors(f, k);
    if (peak > 0 && kl_jnum(k, "flop") > 0 && strcmp(bound, "compute") == 0) {
        snprintf(from, sizeof from, "at %s TFLOP/s", kl_rep_num(peak, b));
        pair(f, "floor, arithmetic", kl_rep_ms(kl_jnum(k, "flop") / peak * 1e-9, a), from);
    }
    if (row) {
        double ms = kl_jnum(json_object_get(row, "cold"), "median");
        pair(f, "measured, cold", kl_rep_ms(ms, a), kl_jstr(row, "device"));
    }
    end_group(f);
}

static void card(FILE *f, const struct kl_rep *r, const json_t *k)
{
    fputs("<div class=\"card\">\n", f);
    launch(f, k);
    traffic(f, k);
    limits(f, r, k);
    group(f, "Resources and occupancy");
    registers(f, k);
    bytes(f, "shared memory a block",
          kl_jnum(json_object_get(k, "shared"), "static_bytes") +
              kl_jnum(json_object_get(k, "shared"), "dynamic_bytes"),
          "");
    occupancy(f, k);
    end_group(f);
    fputs("</div>\n", f);
}

/* ---- arrays ---- */

static void shape(FILE *f, const json_t *v)
{
    size_t i;
    const json_t *o;
    json_array_foreach (v, i, o)
        kl_html(f, "%s%lld", i ? "×" : "", (long long)json_integer_value(o));
}

static const json_t *named(const json_t *list, const char *name)
{
    const json_t *o;
    size_t i;
    json_array_foreach (list, i, o)
        if (strcmp(kl_jstr(o, "name"), name) == 0)
            return o;
    return NULL;
}

static void size_cell(FILE *f, double v)
{
    char buf[32];
    if (isfinite(v) && v > 0)
        kl_html(f, "<td class=\"n\">%s</td>", kl_explain_bytes(v, buf));
    else
        fputs("<td class=\"n dim\">–</td>", f);
}

static void arrays(FILE *f, const json_t *k)
{
    const json_t *traffic = kl_jat(k, "model", "arrays"), *o;
    size_t i;
    kl_table_begin(f, "", "Arrays", "array|type and shape|#size|#read|#written|#each byte read");
    json_array_foreach (json_object_get(k, "arrays"), i, o) {
        const json_t *t = named(traffic, kl_jstr(o, "name"));
        double reuse = kl_jnum(t, "reuse");
        kl_html(f, "<tr><th scope=\"row\">%s</th><td>%s[", kl_jstr(o, "name"), kl_jstr(o, "type"));
        shape(f, json_object_get(o, "shape"));
        fputs("]</td>", f);
        size_cell(f, kl_jnum(o, "bytes"));
        size_cell(f, kl_jnum(t, "read_bytes"));
        size_cell(f, kl_jnum(t, "written_bytes"));
        kl_html_num(f, reuse, "×");
        fputs("</tr>\n", f);
    }
    kl_table_end(f);
}

/* ---- notes without a line, doubts ---- */

static void doubts(FILE *f, const json_t *k)
{
    const json_t *list = kl_jat(k, "model", "unknown"), *o;
    size_t i;
    if (!json_array_size(list))
        return;
    fputs("<h3>Unknown</h3><ul class=\"plain\">\n", f);
    json_array_foreach (list, i, o)
        kl_html(f, "<li>line %lld: %s <span class=\"dim\">(%s times)</span></li>\n",
                kl_jint(o, "line"), kl_jstr(o, "text"),
                kl_rep_num(kl_jnum(o, "count"), (char[32]){0}));
    fputs("</ul>\n", f);
}

/* ---- listings ---- */

static size_t lines_in(const char *s, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += s[i] == '\n';
    return k;
}

static void listing(FILE *f, const char *what, const char *how, const char *s, size_t most)
{
    size_t n = s ? strlen(s) : 0, shown = n;
    if (!n)
        return;
    if (shown > most) {
        shown = most;
        while (shown && s[shown - 1] != '\n')
            shown--;
    }
    unsigned all = (unsigned)lines_in(s, n), left = all - (unsigned)lines_in(s, shown);
    kl_html(f,
            "<details class=\"code\"><summary>%s, %u lines%s</summary>\n"
            "<pre tabindex=\"0\" role=\"group\" aria-label=\"%s\">",
            what, all, shown < n ? ", shortened" : "", what);
    kl_html_text(f, s, shown);
    fputs("</pre>\n", f);
    if (shown < n)
        kl_html(f,
                "<p class=\"warn\">%u of %u lines are left out, so that the page stays below %d "
                "bytes. <code>kiln emit --stage %s</code> prints all of them.</p>\n",
                left, all, KL_REP_MOST, how);
    fputs("</details>\n", f);
}

static void constants(FILE *f, const struct kl_rep_kernel *kernel)
{
    const json_t *k = kernel->j;
    const json_t *facts = json_object_get(k, "facts");
    json_t *o;
    const char *name;
    kl_html(f, "<p class=\"dim\">%s:%lld", kl_jstr(k, "file"), kl_jint(k, "line"));
    json_object_foreach (json_object_get(k, "constants"), name, o)
        kl_html(f, ", %s = %s", name, json_string_value(o));
    if (kernel->tuned)
        kl_html(f, "; tuned constants of <a href=\"#tune\">%s:%u</a>", kernel->tuned,
                kernel->tuned_line);
    if (json_is_true(json_object_get(facts, "v16")))
        fputs("; rows and starts are multiples of 16 bytes", f);
    if (json_is_true(json_object_get(facts, "i32")))
        fputs("; offsets have 32 bits", f);
    if (json_is_false(json_object_get(k, "swizzle")))
        fputs("; <span class=\"warn\">compiled with --no-swizzle</span>", f);
    if (json_is_false(kl_jat(k, "model", "exact")))
        fputs("; <span class=\"warn\">not exact</span>: some of it depends on data", f);
    fputs("</p>\n", f);
}

void kl_rep_kernel(FILE *f, const struct kl_rep *r, size_t i)
{
    const struct kl_rep_kernel *k = &r->k[i];
    char id[32];
    snprintf(id, sizeof id, "k%u", (unsigned)i + 1);
    kl_html(f, "<section id=\"%s\"><h2>%s</h2>\n", id, kl_jstr(k->j, "kernel"));
    constants(f, k);
    card(f, r, k->j);
    arrays(f, k->j);
    kl_rep_source_table(f, k, id);
    doubts(f, k->j);
    kl_rep_ladder(f, k->j, id);
    if (k->tiles)
        kl_rep_tiles(f, k->tiles, id, r->pictures);
    listing(f, "PTX", "ptx", k->ptx, r->listing);
    listing(f, "C for the CPU", "c", k->c, r->listing);
    fputs("</section>\n", f);
}
