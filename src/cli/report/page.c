/* page.c - the page of `kiln report`: head, contents, table of kernels, the parts in order, and
 * the data.  The same inputs give the same bytes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"
#include "explain.h"

static const char *version(char buf[32])
{
    unsigned v = kiln_version();
    snprintf(buf, 32, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
    return buf;
}

/* An earlier report measured on the same device. */
static bool shown_before(const struct kl_rep *r, size_t n, const json_t *device)
{
    const json_t *o;
    size_t k;
    for (size_t i = 0; i < n; i++)
        if (r->in[i].kind == KL_REP_BENCH)
            json_array_foreach (json_object_get(r->in[i].root, "devices"), k, o)
                if (!strcmp(kl_jstr(o, "device"), kl_jstr(device, "device")) &&
                    !strcmp(kl_jstr(o, "name"), kl_jstr(device, "name")))
                    return true;
    return false;
}

/* GPUs of the model and devices that were measured, each once. */
static void devices(FILE *f, const struct kl_rep *r)
{
    const json_t *o;
    size_t k;
    for (size_t i = 0; i < r->nk; i++) {
        const json_t *g = json_object_get(r->k[i].j, "gpu");
        bool seen = !json_is_object(g);
        for (size_t b = 0; b < i; b++)
            seen |=
                strcmp(kl_jstr(json_object_get(r->k[b].j, "gpu"), "name"), kl_jstr(g, "name")) == 0;
        if (!seen)
            kl_html(f, "<div><dt>model of</dt><dd>%s <small>%s</small></dd></div>\n",
                    kl_jstr(g, "name"), kl_jstr(g, "label"));
    }
    for (size_t i = 0; i < r->nin; i++) {
        if (r->in[i].kind != KL_REP_BENCH)
            continue;
        json_array_foreach (json_object_get(r->in[i].root, "devices"), k, o) {
            long long driver = kl_jint(o, "driver");
            if (shown_before(r, i, o))
                continue;
            kl_html(f, "<div><dt>measured on</dt><dd>%s %s", kl_jstr(o, "device"),
                    kl_jstr(o, "name"));
            if (driver > 0)
                kl_html(f, " <small>driver for CUDA %lld.%lld</small>", driver / 1000,
                        driver % 1000 / 10);
            fputs("</dd></div>\n", f);
        }
    }
}

/* Names of the kernels; of one kernel with its GPU. */
static void title_of(const struct kl_rep *r, char *buf, size_t size)
{
    size_t n = 0, shown = 0;
    if (r->title || !r->nk) {
        snprintf(buf, size, "%s", r->title ? r->title : "Kernel report");
        return;
    }
    for (size_t i = 0; i < r->nk && shown < 4; i++, shown++)
        n += (size_t)snprintf(buf + n, size - n, "%s%.60s", i ? ", " : "",
                              kl_jstr(r->k[i].j, "kernel"));
    const char *gpu = kl_jstr(json_object_get(r->k[0].j, "gpu"), "name");
    if (shown < r->nk)
        snprintf(buf + n, size - n, " and %u more", (unsigned)(r->nk - shown));
    else if (r->nk == 1 && *gpu)
        snprintf(buf + n, size - n, " on %.60s", gpu);
}

static void head(FILE *f, const struct kl_rep *r)
{
    char buf[32], title[1024];
    title_of(r, title, sizeof title);
    kl_html(f,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n<title>%s</title>\n"
            "<link rel=\"icon\" href=\"data:,\">\n<style>\n",
            title);
    for (size_t i = 0; kl_report_css[i]; i++)
        fputs(kl_report_css[i], f);
    kl_html(f,
            "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the report</a>\n"
            "<header>\n<h1>%s</h1>\n<dl class=\"meta\">\n",
            title);
    kl_html(f, "<div><dt>kiln</dt><dd>%s <small>build %s</small></dd></div>\n", version(buf),
            kiln_build_id());
    if (r->commit)
        kl_html(f, "<div><dt>commit</dt><dd>%s</dd></div>\n", r->commit);
    if (r->date)
        kl_html(f, "<div><dt>date</dt><dd>%s</dd></div>\n", r->date);
    devices(f, r);
    fputs("</dl>\n</header>\n", f);
}

static void contents(FILE *f, const struct kl_rep *r, bool roofs)
{
    bool check = false, tune = false;
    fputs("<nav aria-label=\"Contents\"><ul>\n", f);
    if (r->nk)
        kl_html(f, "<li><a href=\"#kernels\">%s</a></li>\n", r->nk == 1 ? "In short" : "Kernels");
    fputs(roofs ? "<li><a href=\"#roofline\">Roofline</a></li>\n" : "", f);
    for (size_t i = 0; i < r->nin; i++) {
        check |= r->in[i].kind == KL_REP_CHECK;
        tune |= r->in[i].kind == KL_REP_TUNE;
        if (r->in[i].kind == KL_REP_BENCH)
            kl_html(f, "<li><a href=\"#b%u\">Measured: %s</a></li>\n", (unsigned)i + 1,
                    r->in[i].name);
    }
    fputs(check ? "<li><a href=\"#check\">Checked</a></li>\n" : "", f);
    fputs(tune ? "<li><a href=\"#tune\">Tuned</a></li>\n" : "", f);
    for (size_t i = 0; i < r->nk; i++)
        kl_html(f, "<li><a href=\"#k%u\">%s</a></li>\n", (unsigned)i + 1,
                kl_jstr(r->k[i].j, "kernel"));
    fputs("<li><a href=\"#data\">Data</a></li>\n</ul></nav>\n<main id=\"main\" tabindex=\"-1\">\n",
          f);
}

/* ---- the first screen ---- */

static void ms_cell(FILE *f, double us)
{
    char buf[32];
    kl_html(f, "<td class=\"n\">%s</td>", kl_rep_ms(us / 1000, buf));
}

static double measured_us(const struct kl_rep *r, const json_t *k)
{
    return kl_jnum(json_object_get(kl_rep_row(r, k, "cuda"), "cold"), "median") * 1000;
}

static void kernel_row(FILE *f, const struct kl_rep *r, size_t i, bool times)
{
    const json_t *k = r->k[i].j, *g = json_object_get(k, "gpu");
    size_t notes = json_array_size(json_object_get(k, "notes"));
    double gbs;
    char buf[32];
    kl_html(f, "<tr><th scope=\"row\"><a href=\"#k%u\">%s</a></th><td>%s</td><td>%s</td>",
            (unsigned)i + 1, kl_jstr(k, "kernel"), kl_jstr(g, "name"), kl_jstr(k, "arch"));
    kl_html_num(f, kl_jnum(k, "blocks"), "");
    kl_html_num(f, kl_jnum(k, "threads"), "");
    if (kl_jnum(k, "moved_bytes") >= 0)
        kl_html(f, "<td class=\"n\">%s</td>", kl_explain_bytes(kl_jnum(k, "moved_bytes"), buf));
    else
        fputs("<td class=\"n dim\">–</td>", f);
    kl_html_num(f, kl_jnum(k, "intensity"), "");
    kl_html(f, "<td>%s</td>", kl_rep_bound(k));
    ms_cell(f, kl_rep_floor(k, kl_jstr(g, "label"), &gbs));
    ms_cell(f, kl_rep_floor(k, "measured copy", &gbs));
    if (times)
        ms_cell(f, measured_us(r, k));
    kl_html_num(f, kl_jnum(json_object_get(k, "registers"), "registers"), "");
    kl_html_share(f, kl_jnum(json_object_get(k, "occupancy"), "share"));
    kl_html(f, "<td class=\"n\"><span class=\"%s\">%u</span></td></tr>\n", notes ? "warn" : "dim",
            (unsigned)notes);
}

void kl_rep_kernels(FILE *f, const struct kl_rep *r)
{
    bool times = false;
    if (!r->nk)
        return;
    kl_html(f, "<section id=\"kernels\"><h2>%s</h2>\n<ul class=\"verdict\">\n",
            r->nk == 1 ? "In short" : "Kernels");
    for (size_t i = 0; i < r->nk; i++) {
        times |= measured_us(r, r->k[i].j) > 0;
        kl_rep_verdict(f, r, i);
    }
    fputs("</ul>\n", f);
    if (r->nk == 1) { /* all of it stands in the section of the kernel */
        fputs("</section>\n", f);
        return;
    }
    kl_table_begin(f, "", "Kernels",
                   times ? "kernel|GPU|target|#blocks|#threads|#must move|#FLOP/B|bound|#floor, "
                           "memory|#floor, copy|#measured|#registers|#occupancy|#notes"
                         : "kernel|GPU|target|#blocks|#threads|#must move|#FLOP/B|bound|#floor, "
                           "memory|#floor, copy|#registers|#occupancy|#notes");
    for (size_t i = 0; i < r->nk; i++)
        kernel_row(f, r, i, times);
    kl_table_end(f);
    kl_html(f,
            "<p class=\"dim\">Floors: the bytes that must move, at the datasheet's rate and at that "
            "of a copy measured on such a GPU.%s</p></section>\n",
            times ? " Measured: the cold median of a row of a benchmark that moves the same bytes "
                    "on a GPU."
                  : "");
}

static void data(FILE *f, const struct kl_rep *r)
{
    static const char *const kind[] = {"explain", "bench", "check", "tune"};
    fputs("<section id=\"data\"><h2>Data</h2>\n<p class=\"dim\">The reports that this page was "
          "made of lie in it as elements <code>script type=\"application/json\"</code>:</p>\n<ul "
          "class=\"plain\">\n",
          f);
    for (size_t i = 0; i < r->nin; i++)
        kl_html(f, "<li>data-%u: %s, %s, %u bytes</li>\n", (unsigned)i + 1, r->in[i].name,
                kind[r->in[i].kind], (unsigned)strlen(r->in[i].raw));
    fputs("</ul></section>\n</main>\n", f);
    for (size_t i = 0; i < r->nin; i++) {
        kl_html(f, "<script type=\"application/json\" id=\"data-%u\">", (unsigned)i + 1);
        kl_html_json(f, r->in[i].raw);
        fputs("</script>\n", f);
    }
    fputs("</body>\n</html>\n", f);
}

/* The section, or nothing where no kernel has a place between bytes and operations. */
static char *rooflines(const struct kl_rep *r)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return NULL;
    fputs("<section id=\"roofline\"><h2>Roofline</h2>\n<div class=\"row\">\n", f);
    unsigned drawn = kl_rep_roofs(f, r);
    fputs("</div></section>\n", f);
    if (!fclose(f) && drawn)
        return text;
    free(text);
    return NULL;
}

static void page(FILE *f, const struct kl_rep *r)
{
    char id[32], *roofs = rooflines(r);
    head(f, r);
    contents(f, r, roofs != NULL);
    kl_rep_kernels(f, r);
    fputs(roofs ? roofs : "", f);
    free(roofs);
    for (size_t i = 0; i < r->nin; i++)
        if (r->in[i].kind == KL_REP_BENCH) {
            snprintf(id, sizeof id, "b%u", (unsigned)i + 1);
            kl_rep_bench(f, &r->in[i], id);
        }
    kl_rep_check(f, r);
    kl_rep_tune(f, r);
    for (size_t i = 0; i < r->nk; i++)
        kl_rep_kernel(f, r, i);
    data(f, r);
}

/* Listings are shortened first, then there are fewer pictures, then no listings. */
enum { LITTLE = 8192, PICTURES = 6 };

char *kl_rep_page(struct kl_rep *r, size_t *n, struct kl_msg *m)
{
    r->listing = 1 << 20;
    r->pictures = PICTURES;
    for (;;) {
        char *text = NULL;
        FILE *f = open_memstream(&text, n);
        if (!f) {
            kl_msg(m, KL_RC_ENV, "out of memory");
            return NULL;
        }
        page(f, r);
        if (fclose(f) || !text) {
            free(text);
            kl_msg(m, KL_RC_ENV, "out of memory");
            return NULL;
        }
        if (*n < KL_REP_MOST)
            return text;
        free(text);
        if (r->listing > LITTLE || (!r->pictures && r->listing)) {
            r->listing /= 2;
        } else if (r->pictures) {
            r->pictures--;
        } else {
            size_t data_bytes = 0;
            for (size_t i = 0; i < r->nin; i++)
                data_bytes += strlen(r->in[i].raw);
            kl_msg(m, KL_RC_USAGE,
                   "the page would have %zu bytes without PTX, C and pictures, of them %zu of JSON; "
                   "at most %d are allowed: give fewer files or kernels, and `kiln bench --format "
                   "json` rather than --save, which keeps all samples",
                   *n, data_bytes, KL_REP_MOST);
            return NULL;
        }
    }
}
