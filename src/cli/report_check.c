/* report_check.c - findings of `kiln check` and constants of `kiln tune` on the page. */
#include <math.h>
#include <string.h>

#include "cli/report.h"

static void finding(FILE *f, const json_t *d)
{
    const json_t *p = json_object_get(d, "place"), *o;
    size_t i;
    const char *severity = kl_jstr(d, "severity");
    bool quiet = json_is_true(json_object_get(d, "suppressed"));
    kl_html(f, "<li><b class=\"%s\">%s %s</b> %s%s",
            quiet                            ? "dim"
            : strcmp(severity, "error") == 0 ? "bad"
                                             : "warn",
            severity, kl_jstr(d, "code"), kl_jstr(d, "text"),
            quiet ? " (a comment in the source allows it)" : "");
    if (json_is_object(p))
        kl_html(f, "<br><span class=\"dim\">%s:%lld</span> <code>%s</code>", kl_jstr(p, "file"),
                kl_jint(p, "line"), kl_jstr(p, "source") + strspn(kl_jstr(p, "source"), " \t"));
    json_array_foreach (json_object_get(d, "notes"), i, o)
        kl_html(f, "<br>%s", kl_jstr(o, "text"));
    fputs("</li>\n", f);
}

static void check(FILE *f, const json_t *j)
{
    const json_t *list = json_object_get(j, "diagnostics"), *o;
    size_t i, n = json_array_size(list);
    bool clean = strcmp(kl_jstr(j, "status"), "clean") == 0;
    kl_html(f, "<p><b>%s</b>%s%s: <span class=\"%s\">%s</span>, %u diagnostic%s",
            kl_jstr(j, "file"), *kl_jstr(j, "kernel") ? ", kernel " : "", kl_jstr(j, "kernel"),
            clean ? "good" : "bad", kl_jstr(j, "status"), (unsigned)n, n == 1 ? "" : "s");
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
    fputs("<ul class=\"plain\">\n", f);
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

/* Paragraphs of a tune file: every key that its lines have. */
void kl_rep_tune(FILE *f, const struct kl_rep *r)
{
    static const char *const keys[] = {"device", "when", "use", "ms"};
    if (!any(r, KL_REP_TUNE))
        return;
    fputs("<section id=\"tune\"><h2>Tuned</h2>\n", f);
    kl_table_begin(f, "", "Tuned constants", "kernel|device|shapes and types|chosen|ms");
    for (size_t i = 0; i < r->nin; i++) {
        const json_t *o;
        size_t k;
        if (r->in[i].kind != KL_REP_TUNE)
            continue;
        json_array_foreach (r->in[i].root, k, o) {
            kl_html(f, "<tr><th scope=\"row\">%s</th>", kl_jstr(o, "kernel"));
            for (size_t c = 0; c < 4; c++)
                kl_html(f, "<td>%s</td>", kl_jstr(o, keys[c]));
            fputs("</tr>\n", f);
        }
    }
    kl_table_end(f);
    fputs("</section>\n", f);
}
