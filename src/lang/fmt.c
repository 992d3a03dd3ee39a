/* fmt.c - sources in the project's form: 4 blanks, 100 columns, Linux braces.
 *
 * Works on the tokens of a source that parses, and on the comments between them.  A walk over
 * statements decides on lines, braces and indentation; fmt_line.c lays out one logical line.
 * Kept as they are: line breaks inside a statement, single blank lines, comments, bodies of
 * functions that stand on one line.  Afterwards the result is read again: tokens, comments and
 * the syntax tree must be the same, else nothing is changed. */
#include "lang/fmt.h"

#include "lang/lang.h"

/* ---- items ---- */

/* Every file that is included is empty: names do not matter here. */
static const char *no_include(void *user, kl_arena *a, const char *from, const char *name,
                              bool system, uint32_t *len, const char **fullname)
{
    (void)user, (void)a, (void)from, (void)system;
    *len = 0;
    *fullname = name;
    return "";
}

struct reader {
    KL_VEC(struct kl_item) v;
    kl_arena *a;
    const char *text, *line; /* the file, the begin of the present line */
    uint32_t nl;
};

static uint32_t column(const struct reader *r, const char *at)
{
    uint32_t w = 0;
    for (const char *s = r->line; s < at; s++)
        w += *s == '\t' ? 8 - w % 8 : ((unsigned char)*s & 0xc0) != 0x80;
    return w;
}

static void add(struct reader *r, const char *s, const char *end, uint8_t tk, bool comment)
{
    struct kl_item t = {.s = s,
                        .n = (uint32_t)(end - s),
                        .tk = tk,
                        .comment = comment,
                        .line = comment && s[1] == '/',
                        .nl = r->nl,
                        .col = column(r, s)};
    kl_push(r->a, &r->v, t);
    r->nl = 0;
    for (; s < end; s++) /* a comment of several lines */
        if (*s == '\n')
            r->line = s + 1;
}

/* Comments and newlines between two tokens. */
static void between(struct reader *r, const char *s, const char *end)
{
    while (s < end) {
        if (*s == '\n') {
            r->nl++;
            r->line = ++s;
        } else if (*s == '/' && end - s > 1 && (s[1] == '/' || s[1] == '*')) {
            const char *stop = s + 2;
            if (s[1] == '/')
                while (stop < end && *stop != '\n')
                    stop++;
            else
                while (stop < end && !(stop[-1] == '/' && stop[-2] == '*' && stop - s > 3))
                    stop++;
            add(r, s, stop, KL_TK_EOF, true);
            s = stop;
        } else {
            s++;
        }
    }
}

/* Parse, and list tokens and comments; the list ends in an EOF token.  NULL: errors in d. */
static kl_module_ast *read(kl_arena *a, const char *name, const char *text, size_t len,
                           kl_diags *d, struct reader *r)
{
    static const kl_includer inc = {no_include, NULL};
    kl_module_ast *m = kl_parse(a, name, text, len, &inc, d);
    kl_lexer l;
    if (d->nerr)
        return NULL;
    kl_lex_init(&l, m, 0, d);
    *r = (struct reader){.a = a, .text = l.text, .line = l.text};
    for (const char *at = l.p;;) {
        struct kl_token t = kl_lex(&l);
        const char *beg = l.text + (t.span.beg - l.base), *end = l.text + (t.span.end - l.base);
        between(r, at, beg);
        add(r, beg, end, t.kind, false);
        at = end;
        if (t.kind == KL_TK_EOF)
            return m;
    }
}

/* ---- statements ---- */

static void body(struct kl_fmt *f, uint32_t indent);
static void statement(struct kl_fmt *f, uint32_t indent);

/* The next token at or behind item i. */
static uint32_t token(const struct kl_fmt *f, uint32_t i)
{
    while (f->item[i].comment)
        i++;
    return i;
}

static uint8_t peek(const struct kl_fmt *f)
{
    return f->item[token(f, f->i)].tk;
}

static void gap(struct kl_fmt *f, const struct kl_item *t)
{
    if (t->nl > 1 && !f->fresh)
        kl_fmt_blank(f);
    f->fresh = false;
}

/* Comments at the end of the line that was just printed, and those that go on below them. */
static void trailing(struct kl_fmt *f)
{
    bool any = false;
    uint32_t src = 0;
    for (;; f->i++) {
        const struct kl_item *c = &f->item[f->i];
        if (!c->comment)
            return;
        if (c->nl == 0 && f->line.n) {
            kl_fmt_trail(f, c);
            src = c->col;
            any = c->line;
        } else if (any && c->nl == 1 && c->line && c->col == src && c->col > 0) {
            kl_fmt_blank(f);
            kl_fmt_trail(f, c);
        } else {
            return;
        }
    }
}

/* Comments that stand on lines of their own before the token at stop. */
static void comments(struct kl_fmt *f, uint32_t stop, uint32_t indent)
{
    for (; f->i < stop; f->i++) {
        const struct kl_item *c = &f->item[f->i];
        bool inl = !c->line;
        for (uint32_t j = f->i + 1; j <= stop && inl; j++)
            inl = f->item[j].nl == 0 && (j == stop || !f->item[j].line);
        if (inl && f->item[stop].tk != KL_TK_EOF && f->item[stop].tk != KL_TK_RBRACE)
            return; /* in front of the statement, on its line */
        gap(f, c);
        kl_fmt_comment(f, c, indent);
        f->fresh = false;
    }
}

/* Print what comes, up to and with item last, as one logical line. */
static void unit(struct kl_fmt *f, uint32_t last, uint32_t indent, uint32_t hang)
{
    comments(f, token(f, f->i), indent);
    gap(f, &f->item[f->i]);
    kl_fmt_lay(f, f->i, last + 1, indent, hang);
    f->i = last + 1;
    trailing(f);
}

/* The `;` that ends the statement at the cursor. */
static uint32_t semicolon(const struct kl_fmt *f)
{
    uint32_t i = token(f, f->i);
    while (f->item[i].tk != KL_TK_SEMI && f->item[i].tk != KL_TK_EOF)
        i = token(f, (f->item[i].match > i ? f->item[i].match : i) + 1);
    return i;
}

/* The item of a header that its line ends with: the bracket, or the brace behind it. */
static uint32_t header_end(const struct kl_fmt *f, uint32_t close, bool *brace)
{
    uint32_t next = token(f, close + 1);
    *brace = f->item[next].tk == KL_TK_LBRACE;
    return *brace ? next : close;
}

/* Behind a header: a block up to and with what follows its `}`, or one statement.  tail: the
 * last item that stands on the line of the `}`. */
static void controlled(struct kl_fmt *f, bool brace, uint32_t indent)
{
    if (brace)
        body(f, indent + KL_FMT_INDENT);
    else
        statement(f, indent + KL_FMT_INDENT);
}

static void closing(struct kl_fmt *f, uint32_t last, uint32_t indent)
{
    comments(f, token(f, f->i), indent + KL_FMT_INDENT);
    f->fresh = true; /* no blank line before a brace */
    unit(f, last, indent, 0);
}

static void if_statement(struct kl_fmt *f, uint32_t indent)
{
    uint32_t word = token(f, f->i);
    bool brace;
    unit(f, header_end(f, f->item[token(f, word + 1)].match, &brace), indent, KL_FMT_INDENT);
    for (;;) {
        controlled(f, brace, indent);
        uint32_t at = token(f, f->i);
        uint32_t other = brace ? token(f, at + 1) : at; /* at: the } */
        bool more = f->item[other].tk == KL_TK_ELSE;
        if (!more) {
            if (brace)
                closing(f, at, indent);
            return;
        }
        uint32_t next = token(f, other + 1), last = other;
        bool again = f->item[next].tk == KL_TK_IF;
        bool was = brace;
        if (again)
            last = header_end(f, f->item[token(f, next + 1)].match, &brace);
        else
            last = header_end(f, other, &brace);
        if (was)
            closing(f, last, indent);
        else
            unit(f, last, indent, 0);
        if (again)
            continue;
        controlled(f, brace, indent);
        if (brace)
            closing(f, token(f, f->i), indent);
        return;
    }
}

static void loop(struct kl_fmt *f, uint32_t indent)
{
    bool brace;
    uint32_t word = token(f, f->i);
    unit(f, header_end(f, f->item[token(f, word + 1)].match, &brace), indent, KL_FMT_INDENT);
    controlled(f, brace, indent);
    if (brace)
        closing(f, token(f, f->i), indent);
}

static void do_loop(struct kl_fmt *f, uint32_t indent)
{
    bool brace;
    unit(f, header_end(f, token(f, f->i), &brace), indent, KL_FMT_INDENT);
    controlled(f, brace, indent);
    uint32_t at = token(f, f->i), from = f->i;
    f->i = brace ? at + 1 : at;
    uint32_t last = semicolon(f);
    f->i = from;
    if (brace)
        closing(f, last, indent);
    else
        unit(f, last, indent, KL_FMT_INDENT);
}

/* Whether the block that opens at item o stands on one line in the source, and is short. */
static bool one_line(const struct kl_fmt *f, uint32_t beg, uint32_t o, uint32_t last,
                     uint32_t indent)
{
    for (uint32_t i = beg + 1; i <= last; i++)
        if (f->item[i].nl || f->item[i].comment ||
            (f->item[i].tk == KL_TK_LBRACE && i != o && f->item[i].role != KL_ROLE_VALUE))
            return false;
    return indent + kl_fmt_width(f, beg, last + 1) <= KL_FMT_WIDTH;
}

static void struct_decl(struct kl_fmt *f, uint32_t indent)
{
    uint32_t beg = token(f, f->i), o = token(f, token(f, beg + 1) + 1);
    uint32_t last = semicolon(f);
    if (one_line(f, beg, o, last, indent)) {
        unit(f, last, indent, KL_FMT_INDENT);
        return;
    }
    unit(f, o, indent, KL_FMT_INDENT);
    body(f, indent + KL_FMT_INDENT);
    closing(f, semicolon(f), indent);
}

static bool at_struct_decl(const struct kl_fmt *f)
{
    uint32_t i = token(f, f->i);
    if (f->item[i].tk != KL_TK_STRUCT)
        return false;
    i = token(f, i + 1);
    return f->item[i].tk == KL_TK_NAME && f->item[token(f, i + 1)].tk == KL_TK_LBRACE;
}

static void statement(struct kl_fmt *f, uint32_t indent)
{
    while (peek(f) == KL_TK_HASH) { /* in the first column where the author put it there */
        uint32_t hash = token(f, f->i);
        unit(f, hash, f->item[hash].col ? indent : 0, 0);
    }
    uint32_t at = token(f, f->i);
    switch (f->item[at].tk) {
    case KL_TK_LBRACE:
        unit(f, at, indent, 0);
        body(f, indent + KL_FMT_INDENT);
        closing(f, token(f, f->i), indent);
        return;
    case KL_TK_IF: if_statement(f, indent); return;
    case KL_TK_FOR:
    case KL_TK_WHILE: loop(f, indent); return;
    case KL_TK_DO: do_loop(f, indent); return;
    case KL_TK_EOF:
    case KL_TK_RBRACE: return; /* a pragma that nothing follows */
    default: break;
    }
    if (at_struct_decl(f))
        struct_decl(f, indent);
    else
        unit(f, semicolon(f), indent, KL_FMT_INDENT);
}

/* Statements up to the `}` that ends the block. */
static void body(struct kl_fmt *f, uint32_t indent)
{
    f->fresh = true;
    while (peek(f) != KL_TK_RBRACE && peek(f) != KL_TK_EOF)
        statement(f, indent);
}

/* ---- the file ---- */

/* Each clause of a kernel stands on a line of its own. */
static void clauses(struct kl_fmt *f, uint32_t beg, uint32_t last)
{
    for (uint32_t i = beg, before = beg; i <= last;) {
        if (f->item[i].tk == KL_TK_NAME && f->item[before].tk == KL_TK_RPAREN && !f->item[i].nl)
            f->item[i].nl = 1;
        before = f->item[i].match > i ? f->item[i].match : i;
        i = token(f, before + 1);
    }
}

/* A kernel or a function, or a declaration that ends in `;`. */
static void declaration(struct kl_fmt *f)
{
    uint32_t beg = token(f, f->i), i = beg, before = beg;
    while (f->item[i].tk != KL_TK_SEMI && f->item[i].tk != KL_TK_EOF &&
           !(f->item[i].tk == KL_TK_LBRACE && f->item[i].role != KL_ROLE_VALUE)) {
        before = i;
        if (f->item[i].match > i)
            before = f->item[i].match;
        i = token(f, before + 1);
    }
    if (f->item[i].tk != KL_TK_LBRACE) {
        unit(f, i, 0, KL_FMT_INDENT);
        return;
    }
    uint32_t close = f->item[i].match;
    if (one_line(f, beg, i, close, 0)) {
        unit(f, close, 0, KL_FMT_INDENT);
        return;
    }
    if (f->item[beg].tk == KL_TK_KERNEL)
        clauses(f, beg, before);
    unit(f, before, 0, KL_FMT_INDENT);
    f->fresh = true;
    unit(f, i, 0, 0);
    body(f, KL_FMT_INDENT);
    closing(f, token(f, f->i), 0);
}

static void file(struct kl_fmt *f)
{
    f->fresh = true;
    while (peek(f) != KL_TK_EOF)
        if (peek(f) == KL_TK_HASH)
            unit(f, token(f, f->i), 0, 0);
        else if (at_struct_decl(f))
            struct_decl(f, 0);
        else
            declaration(f);
    comments(f, token(f, f->i), 0);
}

/* ---- the same tokens, comments, tree ---- */

/* Comments may change in blanks at the beginning and end of their lines. */
static bool same_comment(const struct kl_item *a, const struct kl_item *b)
{
    const char *p = a->s, *q = b->s, *pe = p + a->n, *qe = q + b->n;
    for (;;) {
        const char *s = p, *t = q;
        while (p < pe && (*p == ' ' || *p == '\t' || *p == '\r'))
            p++;
        while (q < qe && (*q == ' ' || *q == '\t' || *q == '\r'))
            q++;
        bool edge = s == a->s || s[-1] == '\n' || p == pe || *p == '\n';
        if (!edge && (p - s != q - t || memcmp(s, t, (size_t)(p - s)) != 0))
            return false;
        if (p == pe || q == qe)
            return p == pe && q == qe;
        if (*p++ != *q++)
            return false;
    }
}

static bool same(const struct reader *x, const struct reader *y)
{
    if (x->v.n != y->v.n)
        return false;
    for (uint32_t i = 0; i < x->v.n; i++) {
        const struct kl_item *a = &x->v.v[i], *b = &y->v.v[i];
        if (a->comment != b->comment || a->tk != b->tk)
            return false;
        if (a->comment ? !same_comment(a, b) : a->n != b->n || memcmp(a->s, b->s, a->n) != 0)
            return false;
    }
    return true;
}

bool kl_format(kl_arena *a, const char *name, const char *text, size_t len, kl_buf *out,
               kl_diags *d)
{
    struct reader r, again;
    kl_buf before = {.a = a}, after = {.a = a};
    const kl_module_ast *m = read(a, name, text, len, d, &r);
    if (!m)
        return false;
    struct kl_fmt f = {.a = a, .item = r.v.v, .n = r.v.n};
    kl_fmt_roles(&f);
    file(&f);
    KL_CHECK(a->env, f.i + 1 == f.n);
    kl_fmt_text(&f, out);
    kl_ast_print(&before, m);
    m = read(a, name, kl_buf_str(out), out->n, d, &again);
    KL_CHECK(a->env, m && same(&r, &again));
    kl_ast_print(&after, m);
    KL_CHECK(a->env, before.n == after.n && memcmp(before.s, after.s, before.n) == 0);
    return true;
}
