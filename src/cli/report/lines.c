/* lines.c - the annotated source: what each line asks of memory, and the notes below it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"
#include "explain.h"

struct view {
    FILE *f;
    const json_t *k, *lines, *notes;
    const char *file, *id; /* id of the kernel's section */
    const char *source;    /* NULL: only lines that the report quotes are known */
    bool *shown;           /* notes: each once */
};

static bool in_file(const struct view *v, const json_t *o)
{
    return strcmp(kl_jstr(o, "file"), v->file) == 0;
}

/* A line of the model's list, or of the executor's. */
static const json_t *find_line(const json_t *lines, const char *file, long long line)
{
    const json_t *o;
    size_t i;
    json_array_foreach (lines, i, o)
        if (kl_jint(o, "line") == line && strcmp(kl_jstr(o, "file"), file) == 0)
            return o;
    return NULL;
}

static const json_t *line_at(const struct view *v, long long line)
{
    return find_line(v->lines, v->file, line);
}

/* Text of a line as some access or note quotes it; NULL: none does. */
static const char *quoted(const json_t *list, const char *file, long long line)
{
    const json_t *o;
    size_t i;
    json_array_foreach (list, i, o) {
        const json_t *p = json_object_get(o, "place");
        if (kl_jint(p, "line") == line && strcmp(kl_jstr(p, "file"), file) == 0)
            return kl_jstr(p, "source");
    }
    return NULL;
}

static const char *any_quoted(const struct view *v, const char *file, long long line)
{
    const char *s = quoted(kl_jat(v->k, "model", "accesses"), file, line);
    s = s ? s : quoted(kl_jat(v->k, "model", "shared"), file, line);
    return s ? s : quoted(v->notes, file, line);
}

/* units a request / ideal of a traffic; nothing where there is none. */
static void ratio(FILE *f, const json_t *a, const json_t *b)
{
    double n = kl_jnum(a, "requests") + (b ? kl_jnum(b, "requests") : 0);
    double units = kl_jnum(a, "units") + (b ? kl_jnum(b, "units") : 0);
    double ideal = kl_jnum(a, "ideal") + (b ? kl_jnum(b, "ideal") : 0);
    char x[32], y[32];
    if (!(n > 0)) {
        fputs("<td></td>", f);
        return;
    }
    const char *cls = units >= 2 * ideal ? "bad" : units > 1.33 * ideal ? "warn" : "";
    kl_html(f, "<td class=\"n\"><span class=\"%s\">%s</span><span class=\"dim\">/%s</span></td>",
            cls, kl_rep_num(round(units / n * 100) / 100, x),
            kl_rep_num(round(ideal / n * 100) / 100, y));
}

static void cells(const struct view *v, const json_t *l)
{
    char buf[32];
    if (!l) {
        fputs("<td></td><td></td><td></td><td></td>", v->f);
        return;
    }
    const json_t *load = json_object_get(l, "global_load"),
                 *store = json_object_get(l, "global_store");
    ratio(v->f, load, NULL);
    ratio(v->f, store, json_object_get(l, "atomic"));
    ratio(v->f, json_object_get(l, "shared_load"), json_object_get(l, "shared_store"));
    double bytes = kl_jnum(load, "bytes") + kl_jnum(store, "bytes");
    if (bytes > 0)
        kl_html(v->f, "<td class=\"n\">%s%s</td>",
                json_is_true(json_object_get(l, "exact")) ? "" : "~", kl_explain_bytes(bytes, buf));
    else
        fputs("<td></td>", v->f);
}

static void note(const struct view *v, size_t number)
{
    FILE *f = v->f;
    const json_t *d = json_array_get(v->notes, number), *o;
    size_t i;
    if (v->shown[number])
        return;
    v->shown[number] = true;
    kl_html(f,
            "<tr class=\"note\" id=\"%s-n%u\"><td colspan=\"6\"><p><b class=\"%s\">%s</b> <b>",
            v->id, (unsigned)number, strcmp(kl_jstr(d, "severity"), "note") ? "bad" : "warn",
            kl_jstr(d, "code"));
    kl_html_ticks(f, kl_jstr(d, "text"));
    fputs("</b></p>", f);
    json_array_foreach (json_object_get(d, "notes"), i, o) {
        fputs("<p>", f);
        kl_rep_advice(f, kl_jstr(o, "text"));
        fputs("</p>", f);
    }
    o = json_object_get(d, "fix");
    if (json_is_object(o))
        kl_html(f, "<p>fix: <code>%s</code></p>", kl_jstr(o, "text"));
    fputs("</td></tr>\n", f);
}

/* Notes whose place is that line of that file; line 0: those of other files or of none. */
static void notes_at(const struct view *v, const char *file, long long line)
{
    const json_t *o;
    size_t i;
    json_array_foreach (v->notes, i, o) {
        const json_t *p = json_object_get(o, "place");
        if (kl_jint(p, "line") == line && strcmp(kl_jstr(p, "file"), file) == 0)
            note(v, i);
    }
}

/* What the executor counted on a line of the model, with --measure sim. */
static void measured(const struct view *v, const char *file, long long line)
{
    const json_t *o = find_line(kl_jat(v->k, "executor", "lines"), file, line);
    if (!o)
        return;
    fputs("<tr class=\"hot\"><th scope=\"row\" class=\"n\">sim</th>", v->f);
    ratio(v->f, json_object_get(o, "global_load"), NULL);
    ratio(v->f, json_object_get(o, "global_store"), NULL);
    ratio(v->f, json_object_get(o, "shared_load"), json_object_get(o, "shared_store"));
    fputs("<td></td><td class=\"src dim\">counted by the PTX executor</td></tr>\n", v->f);
}

/* The text of a line: comments in grey, and what notes point at underlined. */
static void text(const struct view *v, const char *file, long long line, const char *s, size_t n)
{
    enum { POINTED = 1, COMMENT = 2 };
    static const char *const cls[] = {"", "at", "dim", "at dim"};
    unsigned char *look = kl_xalloc(n + 1), *at = look;
    const json_t *o;
    size_t i;
    memset(look, 0, n + 1);
    json_array_foreach (v->notes, i, o) {
        const json_t *p = json_object_get(o, "place");
        long long from = kl_jint(p, "column"), to = kl_jint(p, "end_column");
        if (kl_jint(p, "line") == line && strcmp(kl_jstr(p, "file"), file) == 0)
            for (long long c = from < 1 ? 1 : from; c < to && c <= (long long)n; c++)
                look[c - 1] |= POINTED;
    }
    for (i = 0; i + 1 < n && !(s[i] == '/' && s[i + 1] == '/'); i++)
        continue;
    for (i = i + 1 < n ? i : n; i < n; i++)
        look[i] |= COMMENT;
    for (i = 1; i < n; i++) /* characters stay whole */
        if (((unsigned char)s[i] & 0xc0) == 0x80)
            look[i] = look[i - 1];
    for (size_t k; n > 0; s += k, at += k, n -= k) {
        for (k = 1; k < n && at[k] == at[0]; k++)
            continue;
        if (at[0])
            kl_html(v->f, "<span class=\"%s\">", cls[at[0]]);
        kl_html_text(v->f, s, k);
        fputs(at[0] ? "</span>" : "", v->f);
    }
    free(look);
}

static void row(const struct view *v, const char *file, long long line, const char *s, size_t n,
                const json_t *l)
{
    kl_html(v->f, "<tr class=\"%s\"><th scope=\"row\" class=\"n\">%lld</th>", l ? "hot" : "", line);
    cells(v, l);
    fputs("<td class=\"src\">", v->f);
    text(v, file, line, s, n);
    fputs("</td></tr>\n", v->f);
    if (l)
        measured(v, file, line);
    notes_at(v, file, line);
}

/* The last line that has to be seen: of an access or a note, or the brace that closes the kernel. */
static long long last_line(const struct view *v)
{
    long long last = kl_jint(v->k, "line");
    const json_t *o;
    size_t i;
    json_array_foreach (v->lines, i, o)
        if (in_file(v, o) && kl_jint(o, "line") > last)
            last = kl_jint(o, "line");
    json_array_foreach (v->notes, i, o) {
        const json_t *p = json_object_get(o, "place");
        if (in_file(v, p) && kl_jint(p, "line") > last)
            last = kl_jint(p, "line");
    }
    return last;
}

static void from_source(const struct view *v)
{
    long long first = kl_jint(v->k, "line"), last = last_line(v), line = 1;
    bool closed = false;
    for (const char *s = v->source; *s; line++) {
        size_t n = strcspn(s, "\n");
        const json_t *l = line_at(v, line);
        bool body = line >= first && !(closed && line > last);
        if (body || l)
            row(v, v->file, line, s, n, l);
        closed |= line >= first && *s == '}';
        s += n + (s[n] == '\n');
    }
}

static int by_line(const void *a, const void *b)
{
    const long long *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Without the source: each line that is quoted or has notes. */
static void from_quotes(const struct view *v)
{
    size_t n = 0, i;
    const json_t *o;
    long long *line =
        kl_xalloc((json_array_size(v->lines) + json_array_size(v->notes) + 1) * sizeof *line);
    json_array_foreach (v->lines, i, o)
        if (in_file(v, o))
            line[n++] = kl_jint(o, "line");
    json_array_foreach (v->notes, i, o)
        if (in_file(v, json_object_get(o, "place")))
            line[n++] = kl_jint(json_object_get(o, "place"), "line");
    qsort(line, n, sizeof *line, by_line);
    for (i = 0; i < n; i++) {
        const char *s = any_quoted(v, v->file, line[i]);
        if (i && line[i] == line[i - 1])
            continue;
        row(v, v->file, line[i], s ? s : "", s ? strlen(s) : 0, line_at(v, line[i]));
    }
    free(line);
}

/* Lines of files that the kernel includes. */
static void other_files(const struct view *v)
{
    const json_t *o;
    size_t i;
    json_array_foreach (v->lines, i, o) {
        const char *file = kl_jstr(o, "file");
        long long line = kl_jint(o, "line");
        if (!*file || in_file(v, o))
            continue;
        const char *s = any_quoted(v, file, line);
        kl_html(v->f, "<tr class=\"hot\"><th scope=\"row\" class=\"n\">%s:%lld</th>", file, line);
        cells(v, o);
        kl_html(v->f, "<td class=\"src\">%s</td></tr>\n", s ? s : "");
        notes_at(v, file, line);
    }
}

static bool same_traffic(const json_t *a, const json_t *b)
{
    return kl_jint(a, "requests") == kl_jint(b, "requests") &&
           kl_jint(a, "units") == kl_jint(b, "units");
}

/* What the executor counted against what the model says, line by line. */
static void agreement(FILE *f, const struct view *v)
{
    static const char *const kind[] = {"global_load", "global_store", "shared_load",
                                       "shared_store"};
    const json_t *lines = kl_jat(v->k, "executor", "lines"), *o;
    size_t i;
    unsigned other = 0;
    json_array_foreach (lines, i, o) {
        const json_t *m = find_line(v->lines, kl_jstr(o, "file"), kl_jint(o, "line"));
        bool same = true;
        for (size_t k = 0; k < 4; k++)
            same &= same_traffic(json_object_get(m, kind[k]), json_object_get(o, kind[k]));
        other += !same;
    }
    if (!i)
        return;
    if (other)
        kl_html(f, " <span class=\"warn\">The PTX executor counted otherwise on %u of %u lines.</span>",
                other, (unsigned)i);
    else
        fputs(" <span class=\"good\">The PTX executor counted the same requests, sectors and "
              "wavefronts on each line.</span>",
              f);
}

void kl_rep_source_table(FILE *f, const struct kl_rep_kernel *k, const char *id)
{
    struct view v = {.f = f,
                     .k = k->j,
                     .lines = kl_jat(k->j, "model", "lines"),
                     .notes = json_object_get(k->j, "notes"),
                     .file = kl_jstr(k->j, "file"),
                     .id = id,
                     .source = k->source};
    size_t n = json_array_size(v.notes);
    v.shown = kl_xalloc(n + 1);
    memset(v.shown, 0, n + 1);
    kl_html(f, "<h3 id=\"%s-source\">Source</h3>\n<p class=\"dim\">", id);
    if (n)
        kl_html(f, "%u note%s. ", (unsigned)n, n == 1 ? "" : "s");
    kl_html(f,
            "Each figure is of one "
            "request, the access of a warp: as it is / at best. Loads and stores: sectors of 32 "
            "bytes; shared memory: wavefronts. Bytes: all that the lines ask for.%s",
            k->source ? "" : " The source is not in the report: lines that it quotes.");
    agreement(f, &v);
    fputs("</p>\n", f);
    kl_table_begin(f, "code", "Annotated source", "#line|#loads|#stores|#shared|#bytes|source");
    if (k->source)
        from_source(&v);
    else
        from_quotes(&v);
    other_files(&v);
    for (size_t i = 0; i < n; i++) /* those that no row has shown */
        note(&v, i);
    kl_table_end(f);
    free(v.shown);
}
