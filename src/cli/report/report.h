/* report.h - between the files of `kiln report`: what goes into the page, and how HTML and SVG are
 * written.
 *
 * Everything in the page comes from JSON, of files or made here; so a page of a file and one of a
 * source differ only in what the file lacks (text of the source, PTX, C, pictures of tiles). */
#ifndef KL_REPORT_H
#define KL_REPORT_H

#include <jansson.h>

#include "cli/cli.h"

/* ---- what is shown ---- */

enum kl_report_kind { KL_REP_EXPLAIN, KL_REP_BENCH, KL_REP_CHECK, KL_REP_TUNE, KL_REP_NKIND };

/* A file, or what a source led to. */
struct kl_rep_input {
    enum kl_report_kind kind;
    char *name;   /* as given */
    char *raw;    /* the text; of JSON without blanks */
    json_t *root; /* tune: an array of its paragraphs */
};

/* A kernel: one object of an explain report, and what only a source has. */
struct kl_rep_kernel {
    json_t *j;
    char *source, *ptx, *c; /* NULL: not known */
    unsigned tuned_line;    /* of the entry of the tune file that it takes; 0: of none */
    const char *tuned;      /* the name of that file; lies in the inputs */
    json_t *tiles;          /* pictures: {"holders": [...], "exchanges": [...]}, or NULL */
};

struct kl_rep {
    const char *title, *date, *commit; /* or NULL */
    struct kl_rep_input *in;
    size_t nin;
    struct kl_rep_kernel *k;
    size_t nk;
    size_t listing;  /* bytes of each PTX and C text that are shown */
    size_t pictures; /* of each of the two kinds that a kernel shows */
};

enum { KL_REP_MOST = 1000000 };

/* Add a file; its schema says what it is. */
bool kl_rep_read(struct kl_rep *r, const char *path, struct kl_msg *m);
/* A file of tuned constants, once only: its name among the inputs, or NULL. */
const char *kl_rep_read_tune(struct kl_rep *r, const char *path, struct kl_msg *m);
/* The same with the text at hand, which has a NUL behind it. */
bool kl_rep_add(struct kl_rep *r, const char *name, const char *text, size_t n, struct kl_msg *m);
/* Explain FILE[:KERNEL] with the values of o, and add its kernels with all that belongs to them. */
int kl_rep_source(struct kl_rep *r, const struct kl_opts *o);
/* The whole page below KL_REP_MOST bytes, listings shortened if they must be. */
char *kl_rep_page(struct kl_rep *r, size_t *n, struct kl_msg *m);
void kl_rep_free(struct kl_rep *r);

/* ---- parts of the page: each in report_NAME.c ---- */

void kl_rep_kernels(FILE *f, const struct kl_rep *r);   /* the first screen; in page.c */
void kl_rep_verdict(FILE *f, const struct kl_rep *r, size_t i);
unsigned kl_rep_roofs(FILE *f, const struct kl_rep *r); /* how many */
void kl_rep_bench(FILE *f, const struct kl_rep_input *in, const char *id);
void kl_rep_sweeps(FILE *f, const json_t *root, const char *id);
void kl_rep_check(FILE *f, const struct kl_rep *r);
void kl_rep_tune(FILE *f, const struct kl_rep *r);
void kl_rep_kernel(FILE *f, const struct kl_rep *r, size_t i);
void kl_rep_source_table(FILE *f, const struct kl_rep_kernel *k, const char *id); /* lines */
void kl_rep_ladder(FILE *f, const json_t *k, const char *id);
void kl_rep_tiles(FILE *f, const json_t *tiles, const char *id, size_t most);

/* "memory", "compute", or "": not known. */
const char *kl_rep_bound(const json_t *kernel);
/* The floor at the rate `from`, in µs, and the rate; NAN: there is none. */
double kl_rep_floor(const json_t *kernel, const char *from, double *gbs);
/* Bytes of the sectors that all requests ask for; NAN: not known. */
double kl_rep_sector_bytes(const json_t *kernel);
/* A text below a note: what to do and what it brings stand out. */
void kl_rep_advice(FILE *f, const char *s);
/* The row of a benchmark that timed this kernel on that many bytes; device: how its name begins. */
const json_t *kl_rep_row(const struct kl_rep *r, const json_t *kernel, const char *device);

/* ---- HTML (html.c) ---- */

/* As fprintf, with %s escaped for text and attributes.  %s takes no width. */
void kl_html(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void kl_html_text(FILE *f, const char *s, size_t n);
/* Text in which `x` is code. */
void kl_html_ticks(FILE *f, const char *s);
/* JSON inside <script>: no `<` remains, and it means the same. */
void kl_html_json(FILE *f, const char *s);

/* A table that scrolls by itself: "#line|source" has a column of numbers and one of text. */
void kl_table_begin(FILE *f, const char *cls, const char *label, const char *columns);
void kl_table_end(FILE *f);
/* The same behind a chart, folded in. */
void kl_figures_begin(FILE *f, const char *columns);
void kl_figures_end(FILE *f);

/* A cell with a figure: <td class=n>; NAN and negative: a dash. */
void kl_html_num(FILE *f, double v, const char *unit);
void kl_html_share(FILE *f, double v); /* the same in percent */
/* Three significant digits with a unit in steps of 1000: "1.25 ms" of milliseconds. */
const char *kl_rep_ms(double ms, char buf[32]);
const char *kl_rep_num(double v, char buf[32]); /* "12,345", "0.0132" */

/* ---- JSON (html.c) ---- */

double kl_jnum(const json_t *o, const char *key);    /* NAN: none */
long long kl_jint(const json_t *o, const char *key); /* 0: none, or far too large */
bool kl_rep_drawable(double v); /* positive, and of a size that a chart can show */
const char *kl_jstr(const json_t *o, const char *key); /* "": none */
/* kl_jat(o, "model", "global_load"): NULL where one is missing. */
const json_t *kl_jat(const json_t *o, const char *a, const char *b);

/* ---- charts (svg.c) ---- */

struct kl_axis {
    double lo, hi;
    bool log;
    const char *label;
    const double *at; /* ticks there, n of them in order, instead of round numbers */
    size_t n;
};

/* Boxes of texts that are there already: a new one looks for a free place. */
enum { KL_PLOT_BOXES = 512 };
struct kl_plot {
    FILE *f;
    struct kl_axis x, y;
    double w, h, left, right, top, bottom;
    struct {
        double x0, y0, x1, y1;
    } box[KL_PLOT_BOXES];
    unsigned nbox;
};

/* <svg> with title and description, axes and ticks.  id must be unique in the page. */
void kl_plot_begin(struct kl_plot *p, FILE *f, const char *id, const char *title, const char *desc);
double kl_plot_x(const struct kl_plot *p, double v);
double kl_plot_y(const struct kl_plot *p, double v);
void kl_plot_line(struct kl_plot *p, const double *x, const double *y, size_t n, int series,
                  bool dashed);
void kl_plot_whisker(struct kl_plot *p, double x, double lo, double hi, int series);
/* A mark; shapes follow the series, so that colour is not needed to tell them apart. */
void kl_plot_mark(struct kl_plot *p, double x, double y, int series, bool hollow, const char *tip);
void kl_plot_reserve(struct kl_plot *p, double x, double y); /* a mark will stand there */
void kl_plot_label(struct kl_plot *p, double x, double y, int series, const char *text);
/* A text along a line, above or below it.  false: there is no place. */
bool kl_plot_along(struct kl_plot *p, double x0, double y0, double x1, double y1, bool above,
                   const char *text);
void kl_plot_cut(char *out, size_t size, const char *text, unsigned room);
/* The name of a line that ends at (x, y), in the right margin at height `at`. */
void kl_plot_end_name(struct kl_plot *p, double x, double y, double at, int series,
                      const char *text);
/* Keep labels away from a line that runs between two points. */
void kl_plot_avoid(struct kl_plot *p, double x0, double y0, double x1, double y1);
void kl_plot_end(struct kl_plot *p);

extern const char *const kl_report_css[];

#endif
