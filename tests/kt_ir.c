/* kt_ir.c - cases on IR text.
 *
 * tests/opt/PASS/NAME.kir: `; passes: a,b`, a function, `; ---`, and the function that the
 * passes should give.  tests/gen/c/NAME.kir with NAME.c: what the C back end emits.  Every
 * input is also printed and read back, which must give the same text. */
#include "kt.h"

#include <stdio.h>
#include <stdlib.h>

#include "gen/c/genc.h"
#include "opt/pass.h"

struct ir_case {
    const char *base, *text;
    size_t len;
    const char *passes[17]; /* NULL-terminated; empty: none */
    bool gen;
    char *out; /* malloced */
};

static kl_fn *read_ir(struct kt_path *p, const char *base, const char *text, size_t len)
{
    kl_srcmap *src = kl_new(&p->a, kl_srcmap);
    src->a = &p->a;
    uint32_t file = kl_src_add(src, base, text, (uint32_t)len, false);
    kl_diags_use(p->d, &p->env, src);
    kl_fn *f = kl_ir_read(&p->a, src, file, p->d);
    const char *bad = kl_ir_verify(f, &p->a);
    if (bad)
        kl_raise(&p->env, KILN_E_ARG, "the input is not sound: %s", bad);
    return f;
}

static const char *print_ir(struct kt_path *p, const kl_fn *f)
{
    kl_buf b = {.a = &p->a};
    kl_ir_print(&b, f);
    return kl_buf_str(&b);
}

static void run_ir(struct kt_path *p, void *user)
{
    struct ir_case *c = user;
    kl_fn *f = read_ir(p, c->base, c->text, c->len);
    const char *once = print_ir(p, f);
    const char *twice = print_ir(p, read_ir(p, c->base, once, strlen(once)));
    if (strcmp(once, twice) != 0)
        kl_raise(&p->env, KILN_E_INTERNAL, "printing and reading back changes the text");
    if (c->passes[0]) {
        kl_pipeline pipe = {.pass = c->passes, .level = 2, .check = true};
        kl_run_passes(f, &pipe, NULL);
    }
    if (c->gen) {
        kl_buf b = {.a = &p->a};
        kl_cinfo info = {0};
        kl_c_emit(&b, f, f->name, false, &info);
        c->out = kt_strf("%s", kl_buf_str(&b));
    } else {
        c->out = kt_strf("%s", print_ir(p, f));
    }
}

static bool run_case(const char *path, struct ir_case *c)
{
    struct kt_path p;
    kt_path_open(&p);
    bool ok = kt_path_run(&p, run_ir, c);
    if (!ok) {
        size_t n = kiln_diags_render(p.d, 0, NULL, 0);
        char *r = kt_alloc(n + 1);
        kiln_diags_render(p.d, 0, r, n + 1);
        kt_fail(path, "%s\n%s", p.env.msg, r);
        free(r);
    }
    kt_path_close(&p);
    return ok;
}

/* Splits `; passes: a,b` of the head in place. */
static bool passes_of(char *head, struct ir_case *c)
{
    static const char key[] = "; passes:";
    if (strncmp(head, key, sizeof key - 1) != 0)
        return false;
    char *p = head + sizeof key - 1, *e = p + strcspn(p, "\n");
    *e = 0;
    unsigned n = 0;
    for (char *w = strtok(p, ", "); w && n < 16; w = strtok(NULL, ", "))
        c->passes[n++] = w;
    return n > 0;
}

static void one_opt(const char *path)
{
    static const char sep[] = "\n; ---\n";
    size_t len;
    char *text = kt_read(path, &len), *cut = strstr(text, sep);
    char *head = kt_strf("%s", text);
    struct ir_case c = {.base = strrchr(path, '/') + 1, .text = text};
    c.len = cut ? (size_t)(cut - text) + 1 : len;
    if (!passes_of(head, &c)) {
        kt_fail(path, "the first line is not `; passes: NAME,...`");
    } else if (!cut && !kt.update) {
        kt_fail(path, "no line `; ---`");
    } else if (run_case(path, &c)) {
        const char *want = cut ? cut + sizeof sep - 1 : "";
        if (kt.update && strcmp(want, c.out) != 0) {
            size_t keep = c.len;
            while (keep && text[keep - 1] == '\n')
                keep--;
            char *fresh = kt_strf("%.*s%s%s", (int)keep, text, sep, c.out);
            if (kt_write(path, fresh, strlen(fresh)))
                kt_pass(path);
            else
                kt_fail(path, "cannot update");
            free(fresh);
        } else if (kt_same(path, "result", want, strlen(want), c.out, strlen(c.out))) {
            kt_pass(path);
        }
    }
    free(c.out);
    free(head);
    free(text);
}

void kt_run_opt(void)
{
    struct kt_list l = kt_files("tests/opt", ".kir");
    for (size_t i = 0; i < l.n; i++)
        if (kt_wanted(l.v[i]))
            one_opt(l.v[i]);
    kt_list_free(&l);
}

void kt_run_gen(void)
{
    struct kt_list l = kt_files("tests/gen/c", ".kir");
    for (size_t i = 0; i < l.n; i++) {
        if (!kt_wanted(l.v[i]))
            continue;
        const char *path = l.v[i];
        struct ir_case c = {.base = strrchr(path, '/') + 1, .gen = true};
        char *text = kt_read(path, &c.len), *head = kt_strf("%s", text);
        c.text = text;
        passes_of(head, &c);
        char *out = kt_strf("%.*s.c", (int)(strrchr(path, '.') - path), path);
        if (run_case(path, &c) && kt_golden(path, out, c.out, strlen(c.out)))
            kt_pass(path);
        free(out);
        free(c.out);
        free(head);
        free(text);
    }
    kt_list_free(&l);
}
