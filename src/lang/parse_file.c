/* parse_file.c - directives, included files, and the walk over what stands outside functions. */
#include "lang/parse.h"

/* ---- directives ---- */

/* A lexer over what stands behind the # of the current token. */
static kl_lexer inside(const kl_parser *p)
{
    kl_lexer l = p->lex;
    l.p = l.text + (p->tok.span.beg - l.base) + 1;
    l.end = l.text + (p->tok.span.end - l.base);
    l.bol = false;
    return l;
}

static const struct {
    const char *word, *instead;
} no_macros[] = {
    {"define", "write `constexpr i64 NAME = value;` or a function"},
    {"undef", "a name keeps its meaning to the end of its block"},
    {"if", "an `if` on constants keeps one branch"},
    {"ifdef", "an `if` on constants keeps one branch"},
    {"ifndef", "each file is read once anyway"},
    {"elif", "an `if` on constants keeps one branch"},
    {"else", "an `if` on constants keeps one branch"},
    {"endif", "an `if` on constants keeps one branch"},
    {"error", "write `static_assert(condition, \"text\");`"},
    {"import", "write `#include \"file.kiln\"`"},
};

/* Any directive that is neither include nor pragma. */
static void unknown_directive(kl_parser *p, const struct kl_token *w)
{
    kl_span all = p->tok.span;
    const char *word = w->text ? w->text : "";
    for (size_t i = 0; w->text && i < sizeof no_macros / sizeof *no_macros; i++)
        if (strcmp(word, no_macros[i].word) == 0) {
            struct kl_diag *g =
                kl_p_soft(p, KL_K0108, all, "there is no `#%s` and there are no macros; %s", word,
                          no_macros[i].instead);
            kl_lexer l = inside(p);
            struct kl_token t[4];
            for (int k = 0; k < 4 && g; k++)
                t[k] = kl_lex(&l);
            if (g && i == 0 && t[1].kind == KL_TK_NAME && t[2].kind == KL_TK_INT &&
                t[3].kind == KL_TK_EOF)
                kl_fix(g, all, "constexpr i64 %s = %s;", t[1].text, kl_p_text(p, t[2].span));
            return;
        }
    static const char *const known[] = {"include", "pragma"};
    const char *near = w->text ? kl_nearest(word, known, 2) : NULL;
    struct kl_diag *g = kl_p_soft(p, KL_K0108, w->text ? w->span : all,
                                  "unknown directive%s%.40s; there are #include and #pragma",
                                  *word ? " #" : "", word);
    if (near)
        KL_P_FIX(g, w->span, "%s", near);
}

/* `n`, `(n)` or nothing behind a pragma.  1: there is one; 0: none; -1: reported. */
static int pragma_number(kl_parser *p, kl_lexer *l, const char *what, uint64_t *val)
{
    struct kl_token t = kl_lex(l);
    bool paren = t.kind == KL_TK_LPAREN;
    kl_span at = t.span;
    int got = 0;
    if (paren)
        t = kl_lex(l);
    if (t.kind == KL_TK_INT) {
        *val = t.ival;
        got = 1;
        t = kl_lex(l);
    }
    if (paren && got && t.kind == KL_TK_RPAREN)
        t = kl_lex(l);
    else if (paren)
        got = -1;
    if (got >= 0 && t.kind == KL_TK_EOF)
        return got;
    kl_p_soft(p, KL_K0109,
              kl_span_join(at, p->tok.span.end > at.beg ? (kl_span){at.beg, p->tok.span.end} : at),
              "`#pragma %s` takes an integer literal", what);
    return -1;
}

bool kl_p_loop_pragma(kl_parser *p, uint16_t *flag, uint64_t *val)
{
    kl_lexer l = inside(p);
    struct kl_token dir = kl_lex(&l), w = {0};
    bool good = false;
    if (kl_p_is(&dir, "include")) {
        kl_p_soft(p, KL_K0110, p->tok.span, "#include stands outside functions");
    } else if (!kl_p_is(&dir, "pragma")) {
        unknown_directive(p, &dir);
    } else {
        w = kl_lex(&l);
        bool unroll = kl_p_is(&w, "unroll"), pipe = kl_p_is(&w, "pipeline");
        if (unroll || pipe) {
            int n = pragma_number(p, &l, unroll ? "unroll" : "pipeline", val);
            if (n == 0 && pipe)
                kl_p_soft(p, KL_K0109, p->tok.span,
                          "`#pragma pipeline(n)` needs its number of stages");
            else if (n > 0 && (*val == 0 || *val > 1 << 16))
                kl_p_soft(p, KL_K0109, p->tok.span, "the number must be between 1 and 65536");
            else
                good = n >= 0;
            *flag = unroll ? KL_NF_UNROLL : KL_NF_PIPELINE;
        } else {
            static const char *const known[] = {"unroll", "pipeline"};
            const char *near = w.kind == KL_TK_NAME ? kl_nearest(w.text, known, 2) : NULL;
            struct kl_diag *g =
                kl_p_soft(p, KL_K0109, w.kind == KL_TK_NAME ? w.span : p->tok.span,
                          "unknown pragma; before a loop there are unroll and pipeline");
            if (near)
                KL_P_FIX(g, w.span, "%s", near);
        }
    }
    kl_p_next(p);
    return good;
}

/* ---- files ---- */

static void parse_file(kl_parser *p, uint32_t file, kl_nodes *out);

/* The same text is the same file: that makes each file come once, under whatever name. */
static bool already_read(const kl_parser *p, const char *text, uint32_t len)
{
    for (uint32_t i = 0; i < p->m->src.files.n; i++) {
        const struct kl_file *f = &p->m->src.files.v[i];
        if (f->len == len && memcmp(f->text, text, len) == 0)
            return true;
    }
    return false;
}

/* The file name of an include at q, in quotes or angle brackets; NULL if it is malformed. */
static const char *include_name(kl_parser *p, const kl_lexer *l, bool *system, kl_span *at)
{
    const char *q = l->p;
    while (q < l->end && (*q == ' ' || *q == '\t'))
        q++;
    const char *stop = NULL, *beg = q + 1;
    if (q < l->end && (*q == '"' || *q == '<'))
        stop = memchr(beg, *q == '<' ? '>' : '"', (size_t)(l->end - beg));
    if (!stop || stop == beg || stop + 1 != l->end || memchr(beg, 0, (size_t)(stop - beg)))
        return NULL;
    *system = *q == '<';
    *at = (kl_span){l->base + (uint32_t)(q - l->text), l->base + (uint32_t)(stop + 1 - l->text)};
    return kl_intern(p->m, beg, (size_t)(stop - beg));
}

static void include(kl_parser *p, kl_lexer *l, kl_nodes *out)
{
    bool system = false;
    kl_span at, all = p->tok.span;
    const char *name = include_name(p, l, &system, &at);
    if (!name) {
        kl_p_soft(p, KL_K0110, all, "#include needs one file name: \"name.kiln\" or <name.kiln>");
        kl_p_next(p);
        return;
    }
    kl_node *n = kl_p_node(p, KL_N_INCLUDE, all, NULL, 0);
    n->name = name;
    n->name_span = at;
    n->flags = system ? KL_NF_LIB : 0;
    kl_push(p->a, out, n);

    const char *from = kl_src_file(&p->m->src, all.beg)->name;
    uint32_t len = 0;
    const char *text = system ? kl_embedded(name, &len) : NULL, *full = name;
    bool lib = text != NULL;
    if (lib)
        full = kl_printf(p->a, "<%s>", name);
    else if (p->inc && p->inc->read)
        text = p->inc->read(p->inc->user, p->a, from, name, system, &len, &full);
    if (!text) {
        if (system)
            kl_p_soft(p, KL_K0111, at, "<%s> is not a file of the library", name);
        else if (p->inc && p->inc->read)
            kl_p_soft(p, KL_K0111, at,
                      "\"%s\" was found neither beside %s nor in the include folders", name, from);
        else
            kl_p_soft(p, KL_K0111, at, "\"%s\" cannot be read: no include folders are given", name);
    } else if (p->nfile >= KL_P_FILES) {
        kl_p_soft(p, KL_K0126, all, "files include each other more than %d deep", KL_P_FILES);
    } else if (!already_read(p, text, len)) {
        uint32_t file = kl_src_add(&p->m->src, full, text, len, lib);
        kl_parser outer = *p; /* the reading position; all else goes on */
        p->nlook = 0;
        p->nfile++;
        parse_file(p, file, out);
        p->nfile--;
        p->lex = outer.lex;
        p->tok = outer.tok;
        p->prev = outer.prev;
        p->nlook = outer.nlook;
        memcpy(p->look, outer.look, sizeof p->look);
    }
    kl_p_next(p);
}

/* `#pragma kiln 1` and loop pragmas that stand astray. */
static void outer_pragma(kl_parser *p, kl_lexer *l, bool first)
{
    struct kl_token w = kl_lex(l);
    uint64_t version = 0;
    if (kl_p_is(&w, "kiln")) {
        int n = pragma_number(p, l, "kiln", &version);
        if (n == 0)
            kl_p_soft(p, KL_K0109, p->tok.span, "`#pragma kiln 1` names the version");
        else if (n > 0 && version != 1)
            kl_p_soft(p, KL_K0109, p->tok.span,
                      "version %llu of the language is not known; this is version 1",
                      (unsigned long long)version);
        else if (n > 0 && !first)
            kl_p_soft(p, KL_K0109, p->tok.span, "`#pragma kiln` stands before all declarations");
    } else if (kl_p_is(&w, "unroll") || kl_p_is(&w, "pipeline")) {
        kl_p_soft(p, KL_K0109, p->tok.span, "`#pragma %s` stands before a `for`", w.text);
    } else if (kl_p_is(&w, "once")) {
        kl_p_soft(p, KL_K0109, p->tok.span, "`#pragma once` is not needed: each file is read once");
    } else {
        kl_p_soft(p, KL_K0109, w.kind == KL_TK_NAME ? w.span : p->tok.span,
                  "unknown pragma; there are kiln, unroll and pipeline");
    }
    kl_p_next(p);
}

static void parse_file(kl_parser *p, uint32_t file, kl_nodes *out)
{
    kl_lex_init(&p->lex, p->m, file, p->d);
    kl_p_next(p);
    bool first = true;
    while (!kl_p_at(p, KL_TK_EOF)) {
        uint32_t beg = p->tok.span.beg;
        if (kl_p_at(p, KL_TK_HASH)) {
            kl_lexer l = inside(p);
            struct kl_token w = kl_lex(&l);
            if (kl_p_is(&w, "include")) {
                include(p, &l, out);
            } else if (kl_p_is(&w, "pragma")) {
                outer_pragma(p, &l, first);
            } else {
                unknown_directive(p, &w);
                kl_p_next(p);
            }
        } else if (!kl_p_accept(p, KL_TK_SEMI)) {
            kl_node *n = kl_p_outer_decl(p);
            if (n)
                kl_push(p->a, out, n);
            if (n && n->kind == KL_N_KERNEL)
                kl_push(p->a, &p->m->kernels, n);
            if (p->panic)
                kl_p_sync(p);
            if (p->tok.span.beg == beg && !kl_p_at(p, KL_TK_EOF))
                kl_p_next(p); /* whatever it is, it was reported */
        }
        first = false;
    }
}

kl_module_ast *kl_parse(kl_arena *a, const char *name, const char *text, size_t len,
                        const kl_includer *inc, kl_diags *d)
{
    kl_module_ast *m = kl_new(a, kl_module_ast);
    m->a = m->src.a = m->names.a = a;
    d->src = &m->src;
    if (len > UINT32_MAX / 2)
        kl_raise(a->env, KILN_E_UNSUPPORTED, "a source of more than 2 GiB");
    kl_parser p = {.m = m, .a = a, .d = d, .inc = inc, .scope = {.a = a}};
    uint32_t file = kl_src_add(&m->src, kl_strndup(a, name, strlen(name)), kl_strndup(a, text, len),
                               (uint32_t)len, false);
    kl_nodes decl = {0};
    parse_file(&p, file, &decl);
    kl_span all = {m->src.files.v[0].base, m->src.files.v[0].base + (uint32_t)len};
    m->root = kl_p_node(&p, KL_N_MODULE, all, decl.v, decl.n);
    return m;
}
