/* kt_lang.c - front-end cases.
 *
 * tests/lang/NAME.kiln with NAME.ast (the tree as text) and, for each line
 * `//! specialize [KERNEL] name=value ...`, the IR that lowering gives, in NAME.ir.  The IR is
 * also sent through all passes in checked mode, which must not fail.
 *
 * tests/diag/NAME.kiln: lines `//! error K0123 LINE:COL` and `//! warning ...` say which
 * diagnostics come out, in order, and no others; NAME.out holds them as rendered.  Lines
 * `//! specialize`, `//! launch` and `//! check` (with the interpreter's checks) go on from
 * compiling.  NAME.kir is IR text with `; error K0901 LINE:COL`. */
#include "kt.h"

#include <stdio.h>
#include <stdlib.h>

#include "lang/lang.h"
#include "opt/pass.h"

/* `#include "file"` in cases of tests/lang: from the folder inc beside them. */
static const char *read_include(void *user, kl_arena *a, const char *from, const char *name,
                                bool system, uint32_t *len, const char **fullname)
{
    (void)user, (void)from;
    *fullname = kl_strndup(a, name, strlen(name));
    if (system)
        return kl_embedded(name, len);
    char *path = kt_strf("tests/lang/inc/%s", name);
    size_t n;
    char *s = kt_read(path, &n), *copy = s ? kl_strndup(a, s, n) : NULL;
    free(path);
    free(s);
    *len = copy ? (uint32_t)n : 0;
    return copy;
}

struct lang_case {
    const char *name, *base, *text;
    size_t len;
    kl_module_ast *m;
    char *ast, *ir; /* results, malloced: they outlive the arena */
};

static void lower_one(struct kt_path *p, struct lang_case *c, kl_buf *out, const char *line)
{
    struct kt_args args;
    char err[200];
    if (!kt_args_parse(&args, line, err)) {
        kt_args_free(&args);
        kl_raise(&p->env, KILN_E_ARG, "%s", err);
    }
    const kl_node *k = args.kernel    ? kl_find_kernel(c->m, args.kernel)
                       : c->m->kernels.n ? c->m->kernels.v[0]
                                         : NULL;
    kl_bound bound;
    kl_fn *f = NULL;
    if (k && kl_bind(&p->a, c->m, k, args.v, args.n, 0, 2, &bound, p->d))
        f = kl_lower(&p->a, c->m, &bound, p->d);
    kt_args_free(&args);
    if (!f)
        kl_raise(&p->env, KILN_E_COMPILE, "no IR for `%s`", line);
    kl_putf(out, "; specialize %s\n", line);
    kl_ir_print(out, f);
    const char *bad = kl_ir_verify(f, &p->a);
    if (bad)
        kl_raise(&p->env, KILN_E_INTERNAL, "lowering gave unsound IR: %s", bad);
    kl_pipeline pipe = {.level = 2, .check = true};
    kl_run_passes(f, &pipe, NULL);
}

static void run_lang(struct kt_path *p, void *user)
{
    static const char *const keys[] = {"specialize", NULL};
    struct lang_case *c = user;
    kl_includer inc = {read_include, NULL};
    c->m = kl_parse(&p->a, c->base, c->text, c->len, &inc, p->d);
    kl_buf ast = {.a = &p->a}, ir = {.a = &p->a};
    kl_ast_print(&ast, c->m);
    c->ast = kt_strf("%s", kl_buf_str(&ast));
    if (!p->d->nerr)
        kl_check(c->m, p->d);
    unsigned which;
    const char *at = c->text;
    for (char *line; !p->d->nerr && (line = kt_directive(&at, keys, &which));) {
        char *copy = kl_strndup(&p->a, line, strlen(line));
        free(line);
        lower_one(p, c, &ir, copy);
    }
    c->ir = kt_strf("%s", kl_buf_str(&ir));
}

static char *with_suffix(const char *path, const char *suffix)
{
    return kt_strf("%.*s%s", (int)(strrchr(path, '.') - path), path, suffix);
}

static void one_lang(const char *path)
{
    struct lang_case c = {.name = path, .base = strrchr(path, '/') + 1};
    char *text = kt_read(path, &c.len);
    c.text = text;
    struct kt_path p;
    kt_path_open(&p);
    bool ok = kt_path_run(&p, run_lang, &c);
    if (!ok || p.d->nerr) {
        size_t n = kiln_diags_render(p.d, 0, NULL, 0);
        char *r = kt_alloc(n + 1);
        kiln_diags_render(p.d, 0, r, n + 1);
        kt_fail(path, "%s\n%s", ok ? "errors in a good source" : p.env.msg, r);
        free(r);
    } else {
        char *ast = with_suffix(path, ".ast"), *ir = with_suffix(path, ".ir");
        ok = kt_golden(path, ast, c.ast, strlen(c.ast));
        if (c.ir[0])
            ok = kt_golden(path, ir, c.ir, strlen(c.ir)) && ok;
        if (ok)
            kt_pass(path);
        free(ast);
        free(ir);
    }
    kt_path_close(&p);
    free(c.ast);
    free(c.ir);
    free(text);
}

void kt_run_lang(void)
{
    struct kt_list l = kt_files("tests/lang", ".kiln");
    for (size_t i = 0; i < l.n; i++)
        if (!strstr(l.v[i], "/inc/") && kt_wanted(l.v[i]))
            one_lang(l.v[i]);
    kt_list_free(&l);
}

/* ---- diagnostics ---- */

/* Text gathered from several lists; malloced. */
struct gathered {
    char *rendered, *found; /* found: `error K0123 4:7` a line */
};

static void append(char **s, const char *more)
{
    char *t = kt_strf("%s%s", *s, more);
    free(*s);
    *s = t;
}

static void gather(struct gathered *g, const kiln_diags *d)
{
    static const char *const severity[] = {"note", "warning", "error"};
    for (size_t i = 0; i < kiln_diags_count(d); i++) {
        const kiln_diag *x = kiln_diags_at(d, i);
        char *line = x->place.file ? kt_strf("%s %s %u:%u\n", severity[x->severity], x->code,
                                             x->place.line, x->place.col)
                                   : kt_strf("%s %s\n", severity[x->severity], x->code);
        append(&g->found, line);
        free(line);
    }
    size_t n = kiln_diags_render(d, 0, NULL, 0);
    char *r = kt_alloc(n + 1);
    kiln_diags_render(d, 0, r, n + 1);
    append(&g->rendered, r);
    free(r);
}

static char *expected(const char *text, const char *mark)
{
    char *want = kt_strf("%s", "");
    for (const char *p = text; *p;) {
        const char *e = strchr(p, '\n');
        if (!e)
            e = p + strlen(p);
        size_t n = strlen(mark);
        if (strncmp(p, mark, n) == 0 &&
            (strncmp(p + n, "error ", 6) == 0 || strncmp(p + n, "warning ", 8) == 0)) {
            char *line = kt_strf("%.*s\n", (int)(e - p - (ptrdiff_t)n), p + n);
            append(&want, line);
            free(line);
        }
        p = *e ? e + 1 : e;
    }
    return want;
}

static bool second_phase(const char *path, kiln_module *mod, const char *text, struct gathered *g)
{
    static const char *const keys[] = {"specialize", "launch", "check", NULL};
    unsigned which;
    const char *at = text;
    for (char *line; (line = kt_directive(&at, keys, &which));) {
        struct kt_args args;
        char err[200] = "";
        bool ok = kt_args_parse(&args, line, err);
        kiln_kernel *k = !ok           ? NULL
                         : args.kernel ? kiln_module_kernel(mod, args.kernel)
                                       : kiln_module_at(mod, 0);
        if (ok && !k)
            snprintf(err, sizeof err, "no such kernel");
        kiln_diags *d = NULL;
        kiln_spec *s = NULL;
        if (k && which == 0)
            kiln_specialize(k, args.v, args.n, &s, &d);
        else if (k)
            kiln_launch(k, NULL, args.v, args.n, &d);
        gather(g, d);
        kiln_spec_free(s);
        kiln_diags_free(d);
        kt_args_free(&args);
        free(line);
        if (err[0]) {
            kt_fail(path, "%s", err);
            return false;
        }
    }
    return true;
}

static void one_diag(const char *path)
{
    size_t len;
    char *text = kt_read(path, &len), *want = expected(text, "//! ");
    char *inc = kt_join(kt.root, "tests/diag/inc");
    const char *dirs[] = {inc, NULL};
    struct gathered g = {kt_strf("%s", ""), kt_strf("%s", "")};
    kiln_options opt = KILN_OPTIONS_INIT;
    opt.device = KILN_DEVICE_INTERP;
    opt.include_dirs = dirs;
    opt.checks = strstr(text, "\n//! check") || strncmp(text, "//! check", 9) == 0
                     ? KILN_CHECK_ALL
                     : 0;
    kiln_context *ctx = NULL;
    kiln_module *mod = NULL;
    kiln_diags *d = NULL;
    bool ok = true;
    if (kiln_context_create(&opt, &ctx, NULL) != KILN_OK) {
        kt_fail(path, "no context");
        ok = false;
    } else {
        kiln_status s = kiln_compile(ctx, strrchr(path, '/') + 1, text, len, &mod, &d);
        gather(&g, d);
        kiln_diags_free(d);
        if (s == KILN_OK)
            ok = second_phase(path, mod, text, &g);
    }
    if (ok)
        ok = kt_same(path, "list of diagnostics", want, strlen(want), g.found, strlen(g.found));
    if (ok && !want[0]) {
        kt_fail(path, "no `//! error` line");
        ok = false;
    }
    char *out = with_suffix(path, ".out");
    if (ok && kt_golden(path, out, g.rendered, strlen(g.rendered)))
        kt_pass(path);
    free(out);
    kiln_module_free(mod);
    kiln_context_free(ctx);
    free(g.rendered);
    free(g.found);
    free(want);
    free(inc);
    free(text);
}

struct kir_case {
    const char *base, *text;
    size_t len;
};

static void run_kir(struct kt_path *p, void *user)
{
    struct kir_case *c = user;
    kl_srcmap *src = kl_new(&p->a, kl_srcmap);
    src->a = &p->a;
    uint32_t file = kl_src_add(src, c->base, c->text, (uint32_t)c->len, false);
    kl_diags_use(p->d, &p->env, src);
    kl_ir_read(&p->a, src, file, p->d);
}

static void one_kir_diag(const char *path)
{
    struct kir_case c = {.base = strrchr(path, '/') + 1};
    char *text = kt_read(path, &c.len), *want = expected(text, "; ");
    struct gathered g = {kt_strf("%s", ""), kt_strf("%s", "")};
    c.text = text;
    struct kt_path p;
    kt_path_open(&p);
    kt_path_run(&p, run_kir, &c);
    gather(&g, p.d);
    kt_path_close(&p);
    char *out = with_suffix(path, ".out");
    if (kt_same(path, "list of diagnostics", want, strlen(want), g.found, strlen(g.found)) &&
        kt_golden(path, out, g.rendered, strlen(g.rendered)))
        kt_pass(path);
    free(out);
    free(g.rendered);
    free(g.found);
    free(want);
    free(text);
}

void kt_run_diag(void)
{
    struct kt_list l = kt_files("tests/diag", ".kiln"), k = kt_files("tests/diag", ".kir");
    for (size_t i = 0; i < l.n; i++)
        if (!strstr(l.v[i], "/inc/") && kt_wanted(l.v[i]))
            one_diag(l.v[i]);
    for (size_t i = 0; i < k.n; i++)
        if (kt_wanted(k.v[i]))
            one_kir_diag(k.v[i]);
    kt_list_free(&l);
    kt_list_free(&k);
}
