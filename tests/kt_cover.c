/* kt_cover.c - what must be covered: each diagnostic has a case and a page with a bad and a
 * good example, each operation appears in a test, docs/ops.md is what ops.def says. */
#include "kt.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/ir.h"

/* All text of the files below dir that end in suffix. */
static void slurp(char **all, const char *dir, const char *suffix)
{
    struct kt_list l = kt_files(dir, suffix);
    for (size_t i = 0; i < l.n; i++) {
        char *s = kt_read(l.v[i], NULL), *t = kt_strf("%s\n%s", *all, s ? s : "");
        free(s);
        free(*all);
        *all = t;
    }
    kt_list_free(&l);
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p += n) {
        bool before = p == text || !(isalnum((unsigned char)p[-1]) || p[-1] == '_');
        bool after = !(isalnum((unsigned char)p[n]) || p[n] == '_');
        if (before && after)
            return true;
    }
    return false;
}

/* Codes that no case can raise, and why. */
static const struct {
    const char *code, *why;
} no_case[] = {
    {"K0801", "all of the language that parses is there; for parts to come"},
    {"K1305", "needs arrays of more than 67,108,864 elements"},
    {"K1804", "needs a processor that lacks AVX2 and FMA"},
    {"K1807", "the CPU back end has no limit that a source of this version reaches"},
    {"K1817", "the back end keeps within its target's limits; only a smaller device meets it"},
    {"K1899", "an internal error is always a bug"},
};

static const char *excused(const char *code)
{
    for (size_t i = 0; i < sizeof no_case / sizeof *no_case; i++)
        if (strcmp(no_case[i].code, code) == 0)
            return no_case[i].why;
    return NULL;
}

static void diagnostics(void)
{
    char *all = kt_strf("%s", "");
    static const struct { const char *dir, *suffix; } where[] = {
        {"tests/diag", ".kiln"}, {"tests/diag", ".kir"}, {"tests/cli", ".err"},
        {"tests/cli", ".out"},   {"tests/api", ".c"},    {"tests/unit", ".c"},
    };
    for (size_t i = 0; i < sizeof where / sizeof *where; i++)
        slurp(&all, where[i].dir, where[i].suffix);
    for (unsigned c = 1; c < KL_NDIAG; c++) {
        const struct kl_diaginfo *d = &kl_diaginfos[c];
        char *name = kt_strf("cover: diagnostic %s", d->code);
        if (!kt_wanted(name))
            ;
        else if (!has_word(all, d->code) && excused(d->code))
            kt_skip(name, "%s", excused(d->code));
        else if (!has_word(all, d->code))
            kt_fail(name, "no case in tests/diag, tests/cli, tests/api or tests/unit");
        else if (!d->page || !strstr(d->page, "bad:") || !strstr(d->page, "good:"))
            kt_fail(name, "its page lacks a bad or a good example");
        else
            kt_pass(name);
        free(name);
    }
    free(all);
}

static void operations(void)
{
    char *all = kt_strf("%s", "");
    slurp(&all, "tests", ".ir");
    slurp(&all, "tests", ".kir");
    for (unsigned o = 1; o < KL_NOP; o++) {
        char *name = kt_strf("cover: operation %s", kl_ops[o].name);
        if (!kt_wanted(name))
            ;
        else if (o != KL_OP_param && !has_word(all, kl_ops[o].name)) /* heads are parameters */
            kt_fail(name, "in no .kir or .ir file below tests");
        else
            kt_pass(name);
        free(name);
    }
    free(all);
}

static void markdown(struct kt_path *p, void *user)
{
    kl_buf b = {.a = &p->a};
    kl_ops_markdown(&b);
    *(char **)user = kt_strf("%s", kl_buf_str(&b));
}

void kt_run_cover(void)
{
    diagnostics();
    operations();
    if (!kt_wanted("docs/ops.md"))
        return;
    struct kt_path p;
    char *text = NULL;
    kt_path_open(&p);
    if (!kt_path_run(&p, markdown, &text))
        kt_fail("docs/ops.md", "%s", p.env.msg);
    else if (kt_golden("docs/ops.md", "docs/ops.md", text, strlen(text)))
        kt_pass("docs/ops.md");
    free(text);
    kt_path_close(&p);
}
