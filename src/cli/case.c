/* case.c - reading the cases that stand in `//!` comments.
 *
 *     //! test NAME
 *     //! kernel NAME
 *     //! input x = {1, 2, 3}          any value of `kiln run`; a list may go on in further lines
 *     //! const B = 8
 *     //! type T = bf16
 *     //! alias y = x
 *     //! output y = {2, 4, 6}         the same bits
 *     //! output y ~ {2, 4, 6} tol 2ulp
 *     //! output y ~ reference KERNEL tol 1e-6
 *     //! error K0123
 *     //! finding K1201
 */
#include "cli/case.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding the comments ---- */

/* The next `//!` comment at or behind *at; strings and other comments are passed over.  The text
 * behind `//!` is [*beg, *end). */
static bool next_comment(const char **at, const char *stop, unsigned *line, const char **beg,
                         const char **end)
{
    const char *p = *at;
    while (p < stop) {
        if (*p == '\n') {
            ++*line;
            p++;
        } else if (*p == '"') {
            for (p++; p < stop && *p != '"' && *p != '\n'; p++)
                p += *p == '\\' && p + 1 < stop;
            p += p < stop && *p == '"';
        } else if (stop - p > 1 && p[0] == '/' && p[1] == '*') {
            for (p += 2; p < stop && !(p[0] == '*' && stop - p > 1 && p[1] == '/'); p++)
                *line += *p == '\n';
            p = stop - p > 1 ? p + 2 : stop;
        } else if (stop - p > 1 && p[0] == '/' && p[1] == '/') {
            const char *nl = memchr(p, '\n', (size_t)(stop - p));
            nl = nl ? nl : stop;
            if (nl - p > 2 && p[2] == '!') {
                *beg = p + 3;
                *end = nl;
                *at = nl;
                return true;
            }
            p = nl;
        } else {
            p++;
        }
    }
    *at = stop;
    return false;
}

/* ---- their words ---- */

struct words {
    const char *p, *end;
};

static void blanks(struct words *w)
{
    while (w->p < w->end && isspace((unsigned char)*w->p))
        w->p++;
    while (w->end > w->p && isspace((unsigned char)w->end[-1]))
        w->end--;
}

/* A name or code; "" if there is none.  Allocated. */
static char *name(struct words *w)
{
    blanks(w);
    const char *s = w->p;
    while (w->p < w->end && (isalnum((unsigned char)*w->p) || *w->p == '_'))
        w->p++;
    return kl_xstrndup(s, (size_t)(w->p - s));
}

static bool mark(struct words *w, char c)
{
    blanks(w);
    if (w->p == w->end || *w->p != c)
        return false;
    w->p++;
    return true;
}

static char *rest(struct words *w)
{
    blanks(w);
    return kl_xstrndup(w->p, (size_t)(w->end - w->p));
}

/* ---- directives ---- */

struct parse {
    struct kl_cases *out;
    struct kl_msg *m;
    unsigned line;
};

static bool bad(struct parse *p, const char *what)
{
    return kl_msg(p->m, KL_RC_USAGE, "line %u: //! %s", p->line, what);
}

static struct kl_case *add_case(struct parse *p, char *called)
{
    p->out->v = kl_xgrow(p->out->v, sizeof *p->out->v, p->out->n);
    struct kl_case *c = &p->out->v[p->out->n++];
    *c = (struct kl_case){.name = called, .line = p->line};
    return c;
}

static struct kl_case *current(struct parse *p)
{
    return p->out->n ? &p->out->v[p->out->n - 1] : add_case(p, kl_xstrndup("case", 4));
}

static struct kl_expect *add_expect(struct parse *p, enum kl_expectkind kind)
{
    struct kl_case *c = current(p);
    c->expect = kl_xgrow(c->expect, sizeof *c->expect, c->nexpect);
    struct kl_expect *e = &c->expect[c->nexpect++];
    *e = (struct kl_expect){.kind = kind, .line = p->line};
    return e;
}

static bool do_test(struct parse *p, struct words *w)
{
    char *called = rest(w);
    if (*called) {
        add_case(p, called);
        return true;
    }
    free(called);
    return bad(p, "test: it needs a name");
}

static bool do_kernel(struct parse *p, struct words *w)
{
    struct kl_case *c = current(p);
    free(c->kernel);
    c->kernel = name(w);
    blanks(w);
    return (*c->kernel && w->p == w->end) || bad(p, "kernel: it needs one name");
}

/* input, const, type and alias differ in how the value is written only. */
static bool set(struct parse *p, struct words *w, bool alias, bool define)
{
    struct kl_case *c = current(p);
    char *called = name(w), *value = NULL;
    bool ok = *called && mark(w, '=');
    if (ok) {
        value = rest(w);
        if (alias) {
            char *at = kl_xprintf("@%s", value);
            free(value);
            value = at;
        }
    }
    if (!ok || !*value || (alias && !value[1])) {
        free(called);
        free(value);
        return bad(p, "it must be of the form NAME = VALUE");
    }
    c->set.v = kl_xgrow(c->set.v, sizeof *c->set.v, c->set.n);
    c->set.v[c->set.n++] = (struct kl_assign){called, value, define};
    return true;
}

static bool do_input(struct parse *p, struct words *w)
{
    return set(p, w, false, false);
}

static bool do_define(struct parse *p, struct words *w)
{
    return set(p, w, false, true);
}

static bool do_alias(struct parse *p, struct words *w)
{
    return set(p, w, true, false);
}

static bool do_output(struct parse *p, struct words *w)
{
    struct kl_expect *e = add_expect(p, KL_EXPECT_VALUE);
    e->name = name(w);
    if (mark(w, '='))
        e->tol.kind = KL_TOL_EXACT;
    else if (!mark(w, '~'))
        return bad(p, "output: write NAME = VALUE, or NAME ~ VALUE tol T");
    blanks(w);
    /* `tol T` is the last word but one; values hold no such word */
    for (const char *t = w->end; e->tol.kind != KL_TOL_EXACT && t > w->p; t--)
        if (isspace((unsigned char)t[-1]) && w->end - t > 4 && strncmp(t, "tol ", 4) == 0) {
            char *text = kl_xstrndup(t + 4, (size_t)(w->end - t - 4));
            bool ok = kl_tol_parse(text, &e->tol);
            free(text);
            if (!ok)
                return bad(p, "output: the tolerance must be as 2ulp or 1e-6");
            w->end = t;
            break;
        }
    blanks(w);
    if (w->end - w->p > 10 && strncmp(w->p, "reference ", 10) == 0) {
        w->p += 10;
        e->kind = KL_EXPECT_REFERENCE;
    }
    e->text = rest(w);
    return (*e->name && *e->text) || bad(p, "output: a name or a value is missing");
}

static bool code(struct parse *p, struct words *w, enum kl_expectkind kind)
{
    struct kl_expect *e = add_expect(p, kind);
    e->name = name(w);
    blanks(w);
    return (strlen(e->name) == 5 && e->name[0] == 'K' && w->p == w->end) ||
           bad(p, "error and finding need a code as K0123");
}

static bool do_error(struct parse *p, struct words *w)
{
    return code(p, w, KL_EXPECT_ERROR);
}

static bool do_finding(struct parse *p, struct words *w)
{
    return code(p, w, KL_EXPECT_FINDING);
}

static const struct {
    const char *word;
    bool (*run)(struct parse *p, struct words *w);
} directives[] = {
    {"test", do_test},     {"kernel", do_kernel}, {"input", do_input},
    {"const", do_define},  {"type", do_define},   {"alias", do_alias},
    {"output", do_output}, {"error", do_error},   {"finding", do_finding},
};
enum { NDIR = sizeof directives / sizeof *directives };

static bool directive(struct parse *p, const char *text)
{
    struct words w = {text, text + strlen(text)};
    const char *words[NDIR];
    char near[128], what[300];
    char *word = name(&w);
    for (int i = 0; i < NDIR; i++) {
        words[i] = directives[i].word;
        if (strcmp(word, words[i]) == 0) {
            free(word);
            return directives[i].run(p, &w);
        }
    }
    snprintf(what, sizeof what, "`%.60s` is not known%s", word,
             kl_did_you_mean(word, words, NDIR, near));
    free(word);
    return bad(p, what);
}

/* How many more `{` than `}`. */
static int depth(const char *s)
{
    int d = 0;
    for (; *s; s++)
        d += (*s == '{') - (*s == '}');
    return d;
}

bool kl_cases_read(const char *text, size_t len, struct kl_cases *out, struct kl_msg *m)
{
    const char *at = text, *beg, *end;
    unsigned line = 1;
    struct parse p = {.out = out, .m = m};
    *out = (struct kl_cases){0};
    while (next_comment(&at, text + len, &line, &beg, &end)) {
        char *all = kl_xstrndup(beg, (size_t)(end - beg));
        p.line = line;
        while (depth(all) > 0 && next_comment(&at, text + len, &line, &beg, &end)) {
            char *more = kl_xprintf("%s %.*s", all, (int)(end - beg), beg);
            free(all);
            all = more;
        }
        bool ok = !all[strspn(all, " \t\r")] || directive(&p, all);
        free(all);
        if (!ok) {
            kl_cases_free(out);
            return false;
        }
    }
    return true;
}

void kl_cases_free(struct kl_cases *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct kl_case *k = &c->v[i];
        for (size_t j = 0; j < k->set.n; j++)
            free((char *)k->set.v[j].value);
        kl_assigns_free(&k->set);
        for (size_t j = 0; j < k->nexpect; j++) {
            free(k->expect[j].name);
            free(k->expect[j].text);
        }
        free(k->expect);
        free(k->kernel);
        free(k->name);
    }
    free(c->v);
    *c = (struct kl_cases){0};
}
