/* check.c - findings of `kiln check` and constants of `kiln tune` on the page. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"

static void finding(FILE *f, const json_t *d)
{
    const json_t *p = json_object_get(d, "place"), *o;
    size_t i;
    const char *severity = kl_jstr(d, "severity");
    bool quiet = json_is_true(json_object_get(d, "suppressed"));
    kl_html(f, "<li><b class=\"%s\">%s %s</b> <b>",
            quiet                            ? "dim"
            : strcmp(severity, "error") == 0 ? "bad"
                                             : "warn",
            severity, kl_jstr(d, "code"));
    kl_html_ticks(f, kl_jstr(d, "text"));
    fputs(quiet ? "</b> (a comment in the source allows it)" : "</b>", f);
    if (json_is_object(p))
        kl_html(f, "<br><span class=\"dim\">%s:%lld</span> <code>%s</code>", kl_jstr(p, "file"),
                kl_jint(p, "line"), kl_jstr(p, "source") + strspn(kl_jstr(p, "source"), " \t"));
    json_array_foreach (json_object_get(d, "notes"), i, o) {
        fputs("<br>", f);
        kl_rep_advice(f, kl_jstr(o, "text"));
    }
    fputs("</li>\n", f);
}

static void check(FILE *f, const json_t *j)
{
    const json_t *list = json_object_get(j, "diagnostics"), *o;
    size_t i, n = json_array_size(list);
    bool clean = strcmp(kl_jstr(j, "status"), "clean") == 0;
    kl_html(f, "<p><b>%s</b>%s%s: <b class=\"%s\">%s</b>", kl_jstr(j, "file"),
            *kl_jstr(j, "kernel") ? ", kernel " : "", kl_jstr(j, "kernel"), clean ? "good" : "bad",
            kl_jstr(j, "status"));
    if (n)
        kl_html(f, ", %u diagnostic%s", (unsigned)n, n == 1 ? "" : "s");
    const char *device = kl_jstr(j, "device");
    if (*device)
        kl_html(f, "; on %s", strcmp(device, "sim") ? "the interpreter" : "the PTX executor");
    json_array_foreach (json_object_get(j, "checks"), i, o)
        kl_html(f, "%s%s", i ? ", " : ". Checked: ", json_string_value(o));
    json_array_foreach (json_object_get(j, "not_run"), i, o)
        kl_html(f, "%s%s", i ? ", " : ". Not checked: ", json_string_value(o));
    fputs(".</p>\n", f);
    if (!n)
        return;
    fputs("<ul class=\"todo\">\n", f);
    json_array_foreach (list, i, o)
        finding(f, o);
    fputs("</ul>\n", f);
}

static bool any(const struct kl_rep *r, enum kl_report_kind kind)
{
    for (size_t i = 0; i < r->nin; i++)
        if (r->in[i].kind == kind)
            return true;
    return false;
}

void kl_rep_check(FILE *f, const struct kl_rep *r)
{
    if (!any(r, KL_REP_CHECK))
        return;
    fputs("<section id=\"check\"><h2>Checked</h2>\n", f);
    for (size_t i = 0; i < r->nin; i++)
        if (r->in[i].kind == KL_REP_CHECK)
            check(f, r->in[i].root);
    fputs("</section>\n", f);
}

/* ---- tuned constants ---- */

/* "0.2513 default 0.3127" as times and their ratio. */
static void times(FILE *f, const char *ms)
{
    char *end, a[32];
    double v = strtod(ms, &end), other = (double)NAN;
    if (strncmp(end, " default ", 9) == 0)
        other = strtod(end + 9, NULL);
    if (end == ms || !(v > 0 && v < 1e9)) {
        kl_html(f, "<td class=\"n dim\">–</td><td class=\"n dim\">–</td><td class=\"n dim\">–</td>");
        return;
    }
    kl_html(f, "<td class=\"n\">%s</td>", kl_rep_ms(v, a));
    kl_html(f, "<td class=\"n\">%s</td>", kl_rep_ms(other, a));
    kl_html_num(f, other < 1e9 ? other / v : (double)NAN, "×");
}

/* Kernels of the page that take the entry. */
static unsigned users(FILE *f, const struct kl_rep *r, const char *name, long long line)
{
    unsigned n = 0;
    for (size_t i = 0; i < r->nk; i++) {
        const struct kl_rep_kernel *k = &r->k[i];
        if (!k->tuned || k->tuned_line != line || strcmp(k->tuned, name) != 0)
            continue;
        if (f)
            kl_html(f, "%s<a href=\"#k%u\">%s</a>", n ? ", " : "", (unsigned)i + 1,
                    kl_jstr(k->j, "kernel"));
        n++;
    }
    return n;
}

static void tuned_rows(FILE *f, const struct kl_rep *r, const struct kl_rep_input *in)
{
    static const char *const keys[] = {"device", "when", "use"};
    const json_t *o;
    size_t k;
    json_array_foreach (in->root, k, o) {
        long long line = kl_jint(o, "line");
        bool used = users(NULL, r, in->name, line) > 0;
        kl_html(f, "<tr class=\"%s\"><th scope=\"row\">%s</th>", used ? "hot" : "",
                kl_jstr(o, "kernel"));
        for (size_t c = 0; c < 3; c++)
            kl_html(f, "<td>%s</td>", *kl_jstr(o, keys[c]) ? kl_jstr(o, keys[c]) : "any");
        times(f, kl_jstr(o, "ms"));
        fputs(used ? "<td><b class=\"good\">used by</b> " : "<td>", f);
        users(f, r, in->name, line);
        kl_html(f, "</td><td class=\"dim\">%s:%lld</td></tr>\n", in->name, line);
    }
}

/* Entries of tune files, with those marked that the kernels of the page take. */
void kl_rep_tune(FILE *f, const struct kl_rep *r)
{
    if (!any(r, KL_REP_TUNE))
        return;
    fputs("<section id=\"tune\"><h2>Tuned</h2>\n<p class=\"dim\">Constants that kiln tune found. Of the "
          "entries that fit a launch (kernel, device, types, classes of sizes) the last one is "
          "taken; it counts where the launch gives no value.</p>\n",
          f);
    kl_table_begin(f, "", "Tuned constants",
                   "kernel|device|shapes and types|chosen|#time|#default|#faster|on this page|entry");
    for (size_t i = 0; i < r->nin; i++)
        if (r->in[i].kind == KL_REP_TUNE)
            tuned_rows(f, r, &r->in[i]);
    kl_table_end(f);
    fputs("</section>\n", f);
}
