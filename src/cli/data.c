/* data.c - `kiln data gen|show|cmp`: arrays in files, without a kernel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/safetensors.h"

/* A text from a file, without what could confuse a terminal. */
static void put_text(const char *s, FILE *f)
{
    for (; *s; s++)
        fputc((unsigned char)*s < ' ' || *s == 127 ? '?' : *s, f);
}

/* An array that belongs to no kernel. */
static void name_array(struct kl_arr *r, kiln_param_info *p, const char *name)
{
    *p = (kiln_param_info){.name = name};
    *r = (struct kl_arr){.p = p, .dense = true};
}

/* ---- gen ---- */

/* A generator, a list, or another file. */
static bool make(struct kl_arr *r, const char *text, struct kl_msg *m)
{
    struct kl_value v;
    char what[300], shape[200];
    if (!kl_value_parse(text, &v, m))
        return false;
    if (v.kind == KL_VALUE_TEXT || v.kind == KL_VALUE_ALIAS) {
        kl_value_free(&v);
        return kl_arr_read(r, text, m);
    }
    bool ok = v.elem || kl_msg(m, KL_RC_USAGE, "`%.60s`: say the element type: %s", text,
                               v.kind == KL_VALUE_LIST ? "{...}:f32" : "rand(512x1000,f32)");
    r->elem = v.elem;
    r->ndim = v.ndim;
    memcpy(r->shape, v.shape, sizeof r->shape);
    if (ok && !kl_shape_count(r->ndim, r->shape, kl_elems[r->elem].bytes, &r->count))
        ok = kl_msg(m, KL_RC_ENV, "`%.60s`: so many elements do not fit in memory", text);
    if (ok) {
        snprintf(what, sizeof what, "%s[%s]", kl_elems[r->elem].name,
                 kl_shape_text(r->ndim, r->shape, shape, sizeof shape));
        r->owned = r->data = kl_array_alloc(what, r->count * kl_elems[r->elem].bytes, m);
        ok = r->data && kl_value_fill(&v, r->elem, r->data, r->count, m);
    }
    kl_value_free(&v);
    return ok;
}

static int gen(const struct kl_opts *o)
{
    struct kl_outputs out = {0};
    struct kl_msg m = {0};
    size_t len, n = o->narg > 2 ? o->narg - 2 : 0;
    const char *tensor = NULL, *path = o->narg > 1 ? o->arg[1] : "";
    bool st = kl_st_path(path, &len, &tensor), ok = true;
    if (!n || (!st && n > 1))
        return kl_usage(o, "kiln data gen needs FILE.npy VALUE, or FILE.safetensors NAME=VALUE...");
    if (tensor)
        return kl_usage(o, "kiln data gen %s: the names come with the values: NAME=VALUE", path);
    struct kl_arr *arr = kl_xalloc(n * sizeof *arr);
    kiln_param_info *info = kl_xalloc(n * sizeof *info);
    for (size_t i = 0; i < n && ok; i++) { /* names of tensors may hold dots */
        const char *text = o->arg[2 + i], *eq = st ? strchr(text, '=') : NULL;
        if (st && (!eq || eq == text)) {
            ok = kl_msg(&m, KL_RC_USAGE, "`%s` is not of the form NAME=VALUE", text);
            break;
        }
        char *name = eq ? kl_xstrndup(text, (size_t)(eq - text)) : kl_xstrndup("data", 4);
        char *where = kl_xprintf(st ? "a=%s:%s" : "a=%s", path, name);
        name_array(&arr[i], &info[i], name);
        ok = kl_outputs_add(&out, where, i, &m) && make(&arr[i], eq ? eq + 1 : text, &m);
        out.v[i].arr = &arr[i];
        free(where);
    }
    ok = ok && kl_outputs_open(&out, &m);
    for (size_t i = 0; i < n && ok; i++) { /* shown under its name in the file, if it has one */
        free(out.v[i].name);
        out.v[i].name = kl_xprintf("%s", st ? info[i].name : "");
    }
    ok = ok && kl_outputs_write(&out, stdout, &m);
    for (size_t i = 0; i < n; i++) {
        kl_arr_free(&arr[i]);
        free((char *)info[i].name);
    }
    free(arr);
    free(info);
    kl_outputs_free(&out);
    return ok ? 0 : kl_fail(m.rc, "%s", m.text);
}

/* ---- show ---- */

/* The first rows and columns of the last two dimensions; the others at 0. */
static void corner(const struct kl_arr *a, FILE *f)
{
    enum { ROWS = 6, COLS = 8 };
    int64_t cols = a->ndim ? a->shape[a->ndim - 1] : 1;
    int64_t rows = a->ndim > 1 ? a->shape[a->ndim - 2] : 1;
    char text[ROWS * COLS][32];
    int width[COLS] = {0};
    if (!a->count)
        return;
    int64_t nr = rows < ROWS ? rows : ROWS, nc = cols < COLS ? cols : COLS;
    for (int64_t r = 0; r < nr; r++)
        for (int64_t c = 0; c < nc; c++) {
            char *t = text[r * COLS + c];
            uint64_t bits = kl_elem_load(a->elem, kl_arr_at(a, (uint64_t)(r * cols + c)));
            int n = (int)strlen(kl_elem_text(a->elem, bits, t));
            width[c] = n > width[c] ? n : width[c];
        }
    if (a->ndim > 2) {
        fputs("  ", f);
        for (int32_t d = 0; d < a->ndim - 2; d++)
            fputs("[0]", f);
        fputs("\n", f);
    }
    for (int64_t r = 0; r < nr; r++) {
        for (int64_t c = 0; c < nc; c++)
            fprintf(f, "  %*s", width[c], text[r * COLS + c]);
        fputs(nc < cols ? "  ...\n" : "\n", f);
    }
    if (nr < rows)
        fputs("  ...\n", f);
}

static void statistics(const struct kl_arr *a, FILE *f)
{
    char lo[32], hi[32];
    double sum = 0, least = 0, most = 0;
    uint64_t nan = 0, up = 0, down = 0, n = 0, lob = 0, hib = 0;
    for (uint64_t i = 0; i < a->count; i++) {
        uint64_t bits = kl_elem_load(a->elem, kl_arr_at(a, i));
        double v = kl_elem_double(a->elem, bits);
        if (isnan(v)) {
            nan++;
            continue;
        }
        up += isinf(v) && v > 0;
        down += isinf(v) && v < 0;
        if (!n || v < least)
            least = v, lob = bits;
        if (!n || v > most)
            most = v, hib = bits;
        sum += isinf(v) ? 0 : v;
        n++;
    }
    if (n)
        fprintf(f, "  min %s  max %s", kl_elem_text(a->elem, lob, lo),
                kl_elem_text(a->elem, hib, hi));
    if (n > up + down)
        fprintf(f, "  mean %.6g%s", sum / (double)(n - up - down),
                up + down ? " (of the finite ones)" : "");
    if (kl_is_float(a->elem))
        fprintf(f, "  NaN %llu  inf %llu  -inf %llu", (unsigned long long)nan,
                (unsigned long long)up, (unsigned long long)down);
    if (n || kl_is_float(a->elem))
        fputc('\n', f);
}

static int show_array(const char *text)
{
    struct kl_arr a;
    struct kl_msg m;
    kiln_param_info p;
    char shape[200], strides[200], size[32];
    name_array(&a, &p, "data");
    if (!kl_arr_read(&a, text, &m))
        return kl_fail(m.rc, "%s", m.text);
    put_text(text, stdout);
    printf("  %s[%s]", kl_elems[a.elem].name,
           kl_shape_text(a.ndim, a.shape, shape, sizeof shape));
    if (a.ndim)
        printf("  strides %s", kl_shape_text(a.ndim, a.stride, strides, sizeof strides));
    printf("  %s\n", kl_human_bytes(a.count * kl_elems[a.elem].bytes, size));
    statistics(&a, stdout);
    corner(&a, stdout);
    kl_arr_free(&a);
    return 0;
}

static int show_list(const char *text, const struct kl_st *s)
{
    put_text(text, stdout);
    printf("  %zu tensor%s\n", s->n, s->n == 1 ? "" : "s");
    for (size_t i = 0; i < s->n; i++) {
        const struct kl_st_tensor *t = &s->v[i];
        char shape[200], size[32];
        fputs("  ", stdout);
        put_text(t->name, stdout);
        if (t->elem)
            printf("  %s", kl_elems[t->elem].name);
        else
            fputs("  ", stdout), put_text(t->type, stdout);
        if (t->ndim <= KL_NPY_DIMS)
            printf("[%s]", kl_shape_text(t->ndim, t->shape, shape, sizeof shape));
        else
            printf("[%d dimensions]", t->ndim);
        printf("  %s\n", kl_human_bytes(t->end - t->beg, size));
    }
    for (size_t i = 0; i < s->nmeta; i++) {
        fputs("  metadata ", stdout);
        put_text(s->meta[2 * i], stdout);
        fputs(": ", stdout);
        put_text(s->meta[2 * i + 1], stdout);
        fputc('\n', stdout);
    }
    return 0;
}

/* The tensors of FILE.safetensors without a name; false: it is something else, or *rc is set. */
static bool whole_file(const char *text, struct kl_st *s, int *rc)
{
    size_t len;
    const char *name;
    char why[700];
    if (!kl_st_path(text, &len, &name) || name)
        return false;
    char *path = kl_xstrndup(text, len);
    bool ok = kl_st_list(path, s, why, sizeof why);
    if (!ok)
        *rc = kl_fail(KL_RC_USAGE, "cannot read %s: %s", path, why);
    free(path);
    return ok;
}

static int show(const struct kl_opts *o)
{
    int rc = 0;
    if (o->narg < 2)
        return kl_usage(o, "kiln data show needs a file");
    for (size_t i = 1; i < o->narg && !rc; i++) {
        struct kl_st s;
        if (whole_file(o->arg[i], &s, &rc)) {
            rc = show_list(o->arg[i], &s);
            kl_st_free(&s);
        } else if (!rc) {
            rc = show_array(o->arg[i]);
        }
    }
    return rc;
}

/* ---- cmp ---- */

static void report(const struct kl_arr *a, const struct kl_arr *b, const struct kl_tol *tol,
                   const struct kl_cmp *c)
{
    char where[200], x[32], y[32];
    printf("  max abs %.3g, max ULP %.3g, RMS ratio %.3g, NaN/inf masks %s\n", c->max_abs,
           c->max_ulp, c->rms, c->masks ? "differ" : "equal");
    if (tol->kind == KL_TOL_EXACT)
        printf("  %llu of %llu elements differ\n", (unsigned long long)c->differ,
               (unsigned long long)c->count);
    else
        printf("  %llu of %llu elements differ, %llu beyond %g%s\n", (unsigned long long)c->differ,
               (unsigned long long)c->count, (unsigned long long)c->beyond, tol->v,
               tol->kind == KL_TOL_ULP ? " ULP" : "");
    for (uint32_t i = 0; i < c->nfirst; i++) {
        uint64_t at = c->first[i];
        printf("  %s  %s  %s\n", a->ndim ? kl_index_text(a, at, where, sizeof where) : "the scalar",
               kl_elem_text(a->elem, kl_elem_load(a->elem, kl_arr_at(a, at)), x),
               kl_elem_text(b->elem, kl_elem_load(b->elem, kl_arr_at(b, at)), y));
    }
}

static int compare(const struct kl_arr *a, const struct kl_arr *b, const struct kl_tol *tol)
{
    char x[200], y[200];
    struct kl_cmp c;
    if (!kl_arr_same_shape(a, b)) {
        printf("shapes differ: %s and %s\n", kl_shape_text(a->ndim, a->shape, x, sizeof x),
               kl_shape_text(b->ndim, b->shape, y, sizeof y));
        return KL_RC_FINDINGS;
    }
    kl_compare(a, b, tol, &c);
    bool types = a->elem != b->elem, ok = c.ok && !(types && tol->kind == KL_TOL_EXACT);
    if (types)
        printf("types differ: %s and %s; ", kl_elems[a->elem].name, kl_elems[b->elem].name);
    if (!c.differ)
        printf("equal in all %llu elements\n", (unsigned long long)c.count);
    else
        printf("%s\n", ok ? "within the tolerance" : "different");
    if (c.differ)
        report(a, b, tol, &c);
    return ok ? KL_RC_OK : KL_RC_FINDINGS;
}

/* label: what is printed before the result, or NULL. */
static int compare_files(const char *x, const char *y, const char *label, const struct kl_tol *tol)
{
    struct kl_arr a, b;
    kiln_param_info p, q;
    struct kl_msg m;
    int rc;
    name_array(&a, &p, "data");
    name_array(&b, &q, "data");
    if (!kl_arr_read(&a, x, &m) || !kl_arr_read(&b, y, &m)) {
        rc = kl_fail(m.rc, "%s", m.text);
    } else {
        if (label) {
            put_text(label, stdout);
            fputs(": ", stdout);
        }
        rc = compare(&a, &b, tol);
    }
    kl_arr_free(&a);
    kl_arr_free(&b);
    return rc;
}

static bool holds(const struct kl_st *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].name, name) == 0)
            return true;
    return false;
}

static int only_in(const struct kl_st *s, const struct kl_st *other, const char *path)
{
    int rc = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!holds(other, s->v[i].name)) {
            put_text(s->v[i].name, stdout);
            printf(": only in %s\n", path);
            rc = KL_RC_FINDINGS;
        }
    return rc;
}

/* Each tensor with the one of the same name. */
static int compare_all(const char *x, const struct kl_st *s, const char *y, const struct kl_st *t,
                       const struct kl_tol *tol)
{
    int rc = only_in(s, t, x), other = only_in(t, s, y);
    rc = other > rc ? other : rc;
    for (size_t i = 0; i < s->n && rc <= KL_RC_FINDINGS; i++) {
        if (!holds(t, s->v[i].name))
            continue;
        const char *name = s->v[i].name;
        char *a = kl_xprintf("%s:%s", x, name), *b = kl_xprintf("%s:%s", y, name);
        int one = compare_files(a, b, name, tol);
        rc = one > rc ? one : rc;
        free(a);
        free(b);
    }
    return rc;
}

static int cmp(const struct kl_opts *o)
{
    struct kl_tol tol = {.kind = KL_TOL_EXACT};
    const char *text = kl_opt(o, KL_OPT_tol);
    struct kl_st s, t;
    int rc = 0;
    if (o->narg != 3)
        return kl_usage(o, "kiln data cmp needs two files");
    if (text && !kl_tol_parse(text, &tol))
        return kl_fail(KL_RC_USAGE, "--tol %s: write 2ulp, or a number as 1e-5", text);
    bool first = whole_file(o->arg[1], &s, &rc), second = !rc && whole_file(o->arg[2], &t, &rc);
    if (!rc && first && second && (s.n != 1 || t.n != 1))
        rc = compare_all(o->arg[1], &s, o->arg[2], &t, &tol);
    else if (!rc)
        rc = compare_files(o->arg[1], o->arg[2], NULL, &tol);
    if (first)
        kl_st_free(&s);
    if (second)
        kl_st_free(&t);
    return rc;
}

int kl_cmd_data(const struct kl_opts *o)
{
    static const struct {
        const char *name;
        int (*run)(const struct kl_opts *o);
    } actions[] = {{"gen", gen}, {"show", show}, {"cmp", cmp}};
    for (size_t i = 0; o->narg && i < sizeof actions / sizeof *actions; i++)
        if (strcmp(o->arg[0], actions[i].name) == 0)
            return actions[i].run(o);
    return o->narg ? kl_usage(o, "kiln data has no `%s`; there are gen, show and cmp", o->arg[0])
                   : kl_usage(o, "kiln data needs one of gen, show and cmp");
}
