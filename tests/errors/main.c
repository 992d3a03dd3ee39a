/* main.c - errors of the library's kernels, measured, beside their bounds.
 *
 * kernel-errors [--device NAME] [--full] [--markdown] [--only KERNEL]
 *
 * A row for each kernel and type: the largest error and that element's bound in the row's unit; the
 * largest ratio of error and bound of all elements; how many elements.  Exits with 1 if an error is
 * above its bound, a kernel of the library has no row, or a row measured nothing.  The last line is
 * `N passed, N failed, N skipped`.  --full: more shapes and kinds of numbers.  ERRORS_SHOW in the
 * environment: each element that fails. */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/elem.h"
#include "errors.h"
#include "lang/ast.h"

struct bench now;

static const struct test *const tables[] = {
    row_tests, norm_tests, sum_tests, element_tests, product_tests, attention_tests, move_tests};
enum { NTABLES = sizeof tables / sizeof *tables };

static struct {
    const char *device, *only;
    bool markdown;
} opt = {"cpu", NULL, false};

/* ---- arrays ---- */

static struct tens *live[64];
static void *rooms[16];
static unsigned nlive, nrooms;
static uint64_t seed;

static void *room(size_t n)
{
    void *p = calloc(n ? n : 1, 1);
    if (!p) {
        fprintf(stderr, "errors: no memory\n");
        exit(4);
    }
    return p;
}

void *workspace(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 256, bytes ? bytes : 1) || nrooms == sizeof rooms / sizeof *rooms)
        exit(4);
    return rooms[nrooms++] = p;
}

void fresh(void)
{
    while (nlive) {
        free(live[--nlive]->t.data);
        free(live[nlive]->v);
        free(live[nlive]);
    }
    while (nrooms)
        free(rooms[--nrooms]);
}

double chance(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static double normal(void)
{
    double r = sqrt(-2 * log(1 - chance()));
    return r * cos(6.283185307179586 * chance());
}

static size_t bytes_of(kiln_dtype t)
{
    return kl_elems[t].bytes;
}

/* Rounds to the type, and says what became of it. */
void tens_set(struct tens *x, int64_t i, real v)
{
    enum kl_elem e = (enum kl_elem)x->t.dtype;
    uint64_t bits;
    if (kl_is_float(e))
        bits = kl_convert(e, KL_f64, kl_f64_bits((double)v));
    else
        bits = kl_convert(e, KL_i64, (uint64_t)(int64_t)v);
    kl_elem_store(e, (char *)x->t.data + (size_t)i * bytes_of(x->t.dtype), bits);
    x->v[i] = kl_is_float(e) ? (real)kl_elem_double(e, bits) : v;
}

void tens_scale(struct tens *x, real by)
{
    for (int64_t i = 0; i < x->n; i++)
        tens_set(x, i, x->v[i] * by);
}

void read_back(struct tens *x)
{
    enum kl_elem e = (enum kl_elem)x->t.dtype;
    x->read = true;
    for (int64_t i = 0; i < x->n; i++)
        x->v[i] = (real)kl_elem_double(
            e, kl_elem_load(e, (char *)x->t.data + (size_t)i * bytes_of(x->t.dtype)));
}

static real drawn(kiln_dtype t, enum fill fill, int64_t i, real before)
{
    int span = t == KILN_F16 ? 7 : 20;
    switch (fill) {
    case POISON: return NAN;
    case ZERO: return 0;
    case NORMAL: return normal();
    case UNIFORM: return chance();
    case CANCEL:
        return i % 5 == 4 ? normal() : i % 2 ? -before * (1 + 0.001 * normal()) : 1000 * normal();
    case WIDE: return (chance() < 0.5 ? -1 : 1) * exp2((2 * chance() - 1) * span);
    case SPREAD: return 30 * normal();
    default: return 100 + normal();
    }
}

static struct tens *shaped(kiln_dtype t, int ndim, va_list ap)
{
    struct tens *x = room(sizeof *x);
    x->n = 1;
    for (int d = 0; d < ndim; d++)
        x->n *= x->shape[d] = va_arg(ap, int);
    x->v = room((size_t)x->n * sizeof *x->v);
    x->t = (kiln_tensor){
        .data = room((size_t)x->n * bytes_of(t)), .dtype = t, .ndim = ndim, .shape = x->shape};
    if (nlive == sizeof live / sizeof *live)
        exit(4);
    return live[nlive++] = x;
}

struct tens *tens(kiln_dtype t, enum fill fill, int ndim, ...)
{
    va_list ap;
    va_start(ap, ndim);
    struct tens *x = shaped(t, ndim, ap);
    va_end(ap);
    for (int64_t i = 0; i < x->n; i++)
        tens_set(x, i,
                 kl_is_float((enum kl_elem)t) ? drawn(t, fill, i, i ? x->v[i - 1] : 1)
                 : fill == ZERO               ? 0
                                              : -1);
    return x;
}

struct tens *ints(kiln_dtype t, int64_t below, int ndim, ...)
{
    va_list ap;
    va_start(ap, ndim);
    struct tens *x = shaped(t, ndim, ap);
    va_end(ap);
    for (int64_t i = 0; i < x->n; i++)
        tens_set(x, i, floor(chance() * (double)below));
    return x;
}

/* ---- calls ---- */

void must(kiln_status st, kiln_diags *d, const char *what)
{
    char text[4000] = "";
    kiln_diags_render(d, 0, text, sizeof text);
    kiln_diags_free(d);
    if (!st)
        return;
    fprintf(stderr, "errors: %s: %s\n%s\n", what, kiln_status_name(st), text);
    exit(2);
}

void launch(const char *file, const char *kernel, const char *args, ...)
{
    kiln_module *m = NULL;
    RUN(kiln_nn_module(now.nn, file, &m, &d));
    kiln_arg a[24];
    char name[24][24];
    size_t n = 0;
    va_list ap;
    va_start(ap, args);
    for (const char *s = args; *s; n++) {
        size_t len = strcspn(s, " %");
        if (n == 24 || len >= sizeof name[0])
            exit(4);
        memcpy(name[n], s, len);
        name[n][len] = 0;
        a[n] = (kiln_arg){.name = name[n], .kind = KILN_ARG_TENSOR};
        s += len;
        if (s[0] == '%') {
            if (s[1] == 'f') {
                a[n].kind = KILN_ARG_FLOAT;
                a[n].u.f = va_arg(ap, double);
            } else {
                a[n].kind = KILN_ARG_INT;
                a[n].u.i = va_arg(ap, int64_t);
            }
            s += 2;
        } else {
            a[n].u.tensor = va_arg(ap, const struct tens *)->t;
        }
        s += *s == ' ';
    }
    va_end(ap);
    RUN(kiln_launch(kiln_module_kernel(m, kernel), NULL, a, n, &d));
}

/* ---- rows ---- */

enum { MAX_PARTS = 8 };
static const struct test *current;
static struct row {
    const char *part;
    real ratio;        /* of error and bound, the largest of all elements */
    real error, bound; /* of the element whose error is the largest */
    uint64_t elements;
    bool figures, exact, narrow;
} rows[MAX_PARTS], *row;
static unsigned nrows, passed, failed;

void part(const char *what)
{
    for (row = rows; row < rows + nrows; row++)
        if (strcmp(row->part, what) == 0)
            return;
    if (nrows == MAX_PARTS)
        exit(4);
    *row = (struct row){.part = what};
    nrows++;
}

static void print_row(const struct row *r)
{
    bool good = r->elements && r->ratio <= 1;
    size_t file = strcspn(current->kernels, " ");
    char error[40], bound[40], unit[80];
    snprintf(unit, sizeof unit, "%s", r->exact ? "exact" : r->narrow ? "ulp" : current->unit);
    snprintf(error, sizeof error, r->figures ? "%.2Le" : "%.3Lf", r->error);
    snprintf(bound, sizeof bound, r->figures ? "%.2Le" : "%.3Lf", r->bound);
    if (r->exact) {
        snprintf(error, sizeof error, "%s", r->ratio > 0 ? "differs" : "0");
        snprintf(bound, sizeof bound, "0");
    }
    printf(opt.markdown ? "| `%.*s` | %s%s%s | %s | %s | %s | %s | %.2Lf | %llu |%s\n"
                        : "%.*s: %s%s%s %s [%s] error %s bound %s ratio %.2Lf of %llu%s\n",
           (int)file, current->kernels, current->kernels + file + 1, *r->part ? ": " : "", r->part,
           kiln_dtype_name(now.t), unit, error, bound, r->ratio, (unsigned long long)r->elements,
           good ? "" : "  FAIL");
    fflush(stdout);
    if (good)
        passed++;
    else
        failed++;
}

real ceil_log2(int64_t n)
{
    real d = 0;
    for (int64_t p = 1; p < n; p *= 2)
        d++;
    return d;
}

static const struct {
    kiln_dtype t;
    int digits, least; /* bits of the significand; exponent of the smallest subnormal */
} format[] = {
    {KILN_F32, 24, -149}, {KILN_F16, 11, -24}, {KILN_BF16, 8, -133}, {KILN_F64, 53, -1074}};

real ulp(kiln_dtype t, real v)
{
    unsigned i = 0;
    while (i < 3 && format[i].t != t)
        i++;
    int e = v == 0 ? format[i].least : ilogbl(fabsl(v)) - format[i].digits + 1;
    return ldexpl(1, e > format[i].least ? e : format[i].least);
}

/* A type smaller than the sums': half an ulp of the rounded number, which may be the next binade's. */
static real rounding(const struct tens *y, real want, real bound)
{
    return y->t.dtype == now.a ? 0 : ulp(y->t.dtype, fabsl(want) + bound) / 2;
}

/* shown: the element may be the one that stands in the table, if its error is the largest. */
static void count(real err, real bound, real unit, bool shown)
{
    real ratio = bound > 0 ? err / bound : err > 0 ? INFINITY : 0;
    row->elements++;
    if (isnan(ratio))
        ratio = INFINITY;
    row->ratio = fmaxl(row->ratio, ratio);
    if (!shown || err / unit < row->error)
        return;
    row->error = err / unit;
    row->bound = bound / unit;
}

void item(struct tens *y, int64_t i, real want, real scale, real roundings)
{
    item_lost(y, i, want, scale, roundings, 0);
}

void item_lost(struct tens *y, int64_t i, real want, real scale, real roundings, real factor)
{
    static const real largest[] = {FLT_MAX, 65504, 3.3895e38L, DBL_MAX};
    unsigned k = 0;
    while (k < 3 && format[k].t != y->t.dtype)
        k++;
    if (!y->read)
        read_back(y);
    if (!isfinite(want) || fabsl(want) > largest[k])
        return;
    /* what underflows is off by the smallest number, whatever the scale is */
    real tiny = now.exact_math ? ulp(now.a, 0) : ldexpl(1, -126);
    tiny *= (roundings + 1) * (1 + fabsl(factor));
    real least = now.u * scale * roundings, bound = least + tiny, err = fabsl(y->v[i] - want);
    row->narrow = y->t.dtype != now.a;
    bound += rounding(y, want, bound);
    if (getenv("ERRORS_SHOW") && !(err <= bound))
        printf(
            "  %lld: %.9Lg, right is %.9Lg, off by %.3Lg, bound %.3Lg of which %.3Lg roundings\n",
            (long long)i, y->v[i], want, err, bound, roundings);
    count(err, bound,
          row->narrow ? ulp(y->t.dtype, want)
          : scale > 0 ? now.u * scale
                      : tiny,
          tiny < least / 16 && (!row->narrow || least <= 8 * ulp(y->t.dtype, want)));
}

void item_of(struct tens *y, int64_t i, real want, real scale, real total)
{
    item(y, i, want, scale > 0 ? scale : 1, total / (scale > 0 ? scale : 1));
}

void item_exact(struct tens *y, int64_t i, real want)
{
    if (!y->read)
        read_back(y);
    row->exact = true;
    count(y->v[i] == want || (isnan(y->v[i]) && isnan(want)) ? 0 : 1, 0, 1, true);
}

void figure(real measured, real bound)
{
    row->figures = true;
    count(measured, bound, 1, true);
}

/* ---- every kernel has a test ---- */

static bool names(const struct test *t, const char *file, const char *kernel)
{
    size_t nf = strlen(file), n = strlen(kernel);
    if (strncmp(t->kernels, file, nf) != 0 || t->kernels[nf] != ' ')
        return false;
    for (const char *s = t->kernels + nf; (s = strstr(s + 1, kernel));)
        if (s[-1] == ' ' && (s[n] == ' ' || !s[n]))
            return true;
    return false;
}

static bool in_a_row(const char *file, const char *kernel)
{
    bool found = strstr(kernel, "reference") != NULL;
    for (unsigned j = 0; j < NTABLES; j++)
        for (const struct test *o = tables[j]; o->run; o++)
            found |= names(o, file, kernel);
    return found;
}

/* All files of the library, also those that no row names. */
static void complete(void)
{
    const char *path;
    for (uint32_t i = 0; (path = kl_embedded_name(i)); i++) {
        char name[40];
        kiln_module *m = NULL;
        if (sscanf(path, "kernels/%39[^.].kiln", name) != 1)
            continue;
        RUN(kiln_nn_module(now.nn, name, &m, &d));
        for (size_t k = 0; k < kiln_module_count(m); k++) {
            const char *kernel = kiln_kernel_name(kiln_module_at(m, k));
            if (in_a_row(name, kernel))
                continue;
            printf("FAIL %s: kernel %s is in no row\n", name, kernel);
            failed++;
        }
    }
}

/* ---- driver ---- */

static void set_type(kiln_dtype t)
{
    bool gpu = strncmp(opt.device, "cuda", 4) == 0, fast = gpu && kl_elems[t].bytes < 4;
    now.t = t;
    now.a = t == KILN_F64 ? KILN_F64 : KILN_F32;
    now.u = t == KILN_F64 ? ldexpl(1, -53) : ldexpl(1, -24);
    now.exact_math = !fast;
    /* docs/math.md: 0.9 ulp; the unit of a GPU 2^-22 and 2^-24 of the argument, which the bounds
     * count for its rounding: twice then */
    now.fast_exp = fast ? 4 : 1.8L;
    now.fast_div = fast ? 4 : 1;
    now.rsqrt = fast ? 4 : 3;
}

static void run(const struct test *t)
{
    static const struct {
        unsigned bit;
        kiln_dtype t;
    } types[] = {{T_F32, KILN_F32}, {T_F16, KILN_F16}, {T_BF16, KILN_BF16}, {T_F64, KILN_F64}};
    for (unsigned i = 0; i < 4; i++) {
        if (!(t->types & types[i].bit))
            continue;
        set_type(types[i].t);
        current = t;
        nrows = 0;
        seed = 1;
        part("");
        t->run();
        fresh();
        for (unsigned k = 0; k < nrows; k++)
            if (rows[k].elements || nrows == 1)
                print_row(&rows[k]);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--full") == 0)
            now.full = true;
        else if (strcmp(argv[i], "--markdown") == 0)
            opt.markdown = true;
        else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            opt.device = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            opt.only = argv[++i];
        else {
            fputs("kernel-errors [--device NAME] [--full] [--markdown] [--only KERNEL]\n", stderr);
            return 2;
        }
    }
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx = NULL;
    kiln_options_from_env(&o);
    static const struct {
        const char *name;
        kiln_device device;
    } devices[] = {{"interp", KILN_DEVICE_INTERP},
                   {"cpu", KILN_DEVICE_CPU},
                   {"sim", KILN_DEVICE_SIM},
                   {"cuda", KILN_DEVICE_CUDA}};
    unsigned dev = 0;
    while (dev < 4 && strcmp(devices[dev].name, opt.device) != 0)
        dev++;
    if (dev == 4) {
        fprintf(stderr, "errors: no device `%s`\n", opt.device);
        return 2;
    }
    o.device = devices[dev].device;
    RUN(kiln_context_create(&o, &ctx, &d));
    RUN(kiln_nn_create(ctx, &now.nn, &d));
    if (opt.markdown)
        printf(
            "# Errors of the kernels and their bounds\n\n"
            "`kernel-errors --device %s%s --markdown` makes this page. Each element of each result is\n"
            "compared with long double and with its own bound ([kernels.md](../../docs/kernels.md)).\n"
            "u is 2^-24, for f64 2^-53. Error: the largest in the row's unit, and that element's\n"
            "bound. Ratio: the largest of error and bound over all elements. 16-bit results are\n"
            "rounded once more, which is half an ulp of error and bound.\n\n"
            "| file | kernels | type | unit | error | bound | ratio | elements |\n"
            "|---|---|---|---|---|---|---|---|\n",
            opt.device, now.full ? " --full" : "");
    for (unsigned i = 0; i < NTABLES; i++)
        for (const struct test *t = tables[i]; t->run; t++)
            if (!opt.only || strstr(t->kernels, opt.only))
                run(t);
    if (!opt.only)
        complete();
    kiln_nn_free(now.nn);
    kiln_context_free(ctx);
    printf("%s%u passed, %u failed, 0 skipped\n", opt.markdown ? "\n" : "", passed, failed);
    return failed ? 1 : 0;
}
