/* parse.c - the parser's ground: tokens with lookahead, errors and recovery, nodes, and
 * scopes of type names. */
#include "lang/parse.h"

/* ---- tokens ---- */

static struct kl_token fetch(kl_parser *p)
{
    if (!p->dead && p->d->nerr >= KL_MAX_ERRORS)
        p->dead = true;
    if (p->dead) {
        uint32_t at = p->lex.base + (uint32_t)(p->lex.p - p->lex.text);
        return (struct kl_token){.kind = KL_TK_EOF, .bol = true, .span = {at, at}};
    }
    return kl_lex(&p->lex);
}

void kl_p_next(kl_parser *p)
{
    p->prev = p->tok.span;
    if (p->nlook) {
        p->tok = p->look[0];
        p->nlook--;
        memmove(&p->look[0], &p->look[1], sizeof p->look[0] * p->nlook);
    } else {
        p->tok = fetch(p);
    }
    if (p->dead)
        p->tok.kind = KL_TK_EOF;
}

const struct kl_token *kl_p_peek(kl_parser *p, uint32_t i)
{
    while (p->nlook < i)
        p->look[p->nlook++] = fetch(p);
    return &p->look[i - 1];
}

bool kl_p_accept(kl_parser *p, enum kl_tok kind)
{
    if (!kl_p_at(p, kind))
        return false;
    kl_p_next(p);
    return true;
}

/* ---- messages ---- */

static struct kl_diag *report(kl_parser *p, enum kl_code code, kl_span span, const char *fmt,
                              va_list ap) __attribute__((format(printf, 4, 0)));
static struct kl_diag *report(kl_parser *p, enum kl_code code, kl_span span, const char *fmt,
                              va_list ap)
{
    /* behind an error of the lexer the parser has nothing to add */
    if (p->panic || p->dead || kl_p_at(p, KL_TK_ERROR))
        return NULL;
    struct kl_diag *g = kl_diag(p->d, code, span, "%s", kl_vprintf(p->a, fmt, ap));
    return g == p->d->sink ? NULL : g;
}

struct kl_diag *kl_p_soft(kl_parser *p, enum kl_code code, kl_span span, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct kl_diag *g = report(p, code, span, fmt, ap);
    va_end(ap);
    return g;
}

struct kl_diag *kl_p_fail(kl_parser *p, enum kl_code code, kl_span span, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct kl_diag *g = report(p, code, span, fmt, ap);
    va_end(ap);
    p->panic = true;
    return g;
}

const char *kl_p_text(kl_parser *p, kl_span s)
{
    const struct kl_file *f = kl_src_file(&p->m->src, s.beg);
    uint32_t n = s.end - s.beg, max = 48;
    if (!f || s.end < s.beg)
        return "";
    const char *t = f->text + (s.beg - f->base);
    for (uint32_t i = 0; i < n && i <= max; i++)
        if (t[i] == '\n' || t[i] == '\r')
            max = i; /* a message is one line */
    if (n <= max)
        return kl_strndup(p->a, t, n);
    while (max > 0 && (t[max] & 0xc0) == 0x80)
        max--; /* not inside a character */
    return kl_printf(p->a, "%.*s...", (int)max, t);
}

const char *kl_p_found(kl_parser *p)
{
    switch (p->tok.kind) {
    case KL_TK_EOF: return "the end of the file";
    case KL_TK_HASH: return "a directive";
    case KL_TK_STRING: return "a text";
    default: return kl_printf(p->a, "`%s`", kl_p_text(p, p->tok.span));
    }
}

bool kl_p_expect(kl_parser *p, enum kl_tok kind, const char *where)
{
    if (kl_p_accept(p, kind))
        return true;
    kl_p_fail(p, KL_K0114, p->tok.span, "expected `%s` %s, found %s", kl_tok_text[kind], where,
              kl_p_found(p));
    return false;
}

const char *kl_p_name(kl_parser *p, const char *what)
{
    if (kl_p_at(p, KL_TK_NAME)) {
        const char *name = p->tok.text;
        kl_p_next(p);
        return name;
    }
    if (p->tok.kind >= KL_TK_AUTO)
        kl_p_fail(p, KL_K0114, p->tok.span, "expected %s, but `%s` is a reserved word", what,
                  kl_tok_text[p->tok.kind]);
    else
        kl_p_fail(p, KL_K0114, p->tok.span, "expected %s, found %s", what, kl_p_found(p));
    return NULL;
}

bool kl_p_enter(kl_parser *p)
{
    if (p->depth >= KL_P_DEPTH) {
        kl_p_fail(p, KL_K0126, p->tok.span, "nested more than %d deep", KL_P_DEPTH);
        p->dead = true; /* whatever follows would only repeat it */
        p->tok.kind = KL_TK_EOF;
        return false;
    }
    p->depth++;
    return true;
}

/* ---- recovery ---- */

bool kl_p_outer(kl_parser *p)
{
    if (!p->tok.bol)
        return false;
    if (kl_p_at(p, KL_TK_KERNEL))
        return true;
    uint32_t off = p->tok.span.beg - p->lex.base;
    if (off > 0 && p->lex.text[off - 1] != '\n')
        return false;
    if (!kl_p_at(p, KL_TK_VOID) && !kl_p_at(p, KL_TK_AUTO) && !kl_p_at(p, KL_TK_NAME))
        return false;
    return kl_p_peek(p, 1)->kind == KL_TK_NAME && kl_p_peek(p, 2)->kind == KL_TK_LPAREN;
}

void kl_p_skip_group(kl_parser *p)
{
    uint32_t depth = 0;
    do {
        if (kl_p_at(p, KL_TK_EOF) || kl_p_outer(p))
            return;
        if (kl_p_at(p, KL_TK_LPAREN) || kl_p_at(p, KL_TK_LBRACK) || kl_p_at(p, KL_TK_LBRACE))
            depth++;
        if (kl_p_at(p, KL_TK_RPAREN) || kl_p_at(p, KL_TK_RBRACK) || kl_p_at(p, KL_TK_RBRACE))
            depth--;
        kl_p_next(p);
    } while (depth);
}

bool kl_p_close(kl_parser *p, enum kl_tok kind, kl_span open)
{
    if (!p->panic) {
        if (kl_p_accept(p, kind))
            return true;
        bool ends = p->tok.bol || kl_p_at(p, KL_TK_SEMI) || kl_p_at(p, KL_TK_LBRACE) ||
                    kl_p_at(p, KL_TK_RBRACE) || kl_p_at(p, KL_TK_RPAREN) ||
                    kl_p_at(p, KL_TK_RBRACK) ||
                    (kind == KL_TK_RBRACK && kl_p_is_assign(p->tok.kind));
        if (ends) { /* surely just left out */
            struct kl_diag *g =
                kl_p_soft(p, KL_K0113, kl_p_after(p), "missing `%s`", kl_tok_text[kind]);
            KL_P_NOTE(g, open, "for this `%s`", kl_p_text(p, open));
            KL_P_FIX(g, kl_p_after(p), "%s", kl_tok_text[kind]);
            return true;
        }
        KL_P_NOTE(kl_p_fail(p, KL_K0114, p->tok.span, "expected `%s`, found %s", kl_tok_text[kind],
                            kl_p_found(p)),
                  open, "for this `%s`", kl_p_text(p, open));
    }
    uint32_t depth = 0;
    for (;; kl_p_next(p)) {
        switch (p->tok.kind) {
        case KL_TK_EOF:
        case KL_TK_SEMI:
        case KL_TK_LBRACE:
        case KL_TK_RBRACE: return false;
        case KL_TK_LPAREN:
        case KL_TK_LBRACK: depth++; break;
        case KL_TK_RPAREN:
        case KL_TK_RBRACK:
            if (depth == 0) {
                if (!kl_p_at(p, kind))
                    return false;
                kl_p_next(p);
                p->panic = false;
                return true;
            }
            depth--;
            break;
        default:
            if (kl_p_outer(p))
                return false;
        }
    }
}

/* A statement or a block ends before this token, whatever was left out. */
static bool begins_statement(const kl_parser *p)
{
    switch (p->tok.kind) {
    case KL_TK_RBRACE:
    case KL_TK_EOF:
    case KL_TK_RETURN:
    case KL_TK_IF:
    case KL_TK_ELSE:
    case KL_TK_FOR:
    case KL_TK_WHILE:
    case KL_TK_DO:
    case KL_TK_BREAK:
    case KL_TK_CONTINUE:
    case KL_TK_CONST:
    case KL_TK_CONSTEXPR:
    case KL_TK_HASH: return true;
    default: return p->tok.bol;
    }
}

void kl_p_semi(kl_parser *p, const char *after)
{
    if (p->panic || kl_p_accept(p, KL_TK_SEMI))
        return;
    if (kl_p_at(p, KL_TK_ERROR)) {
        p->panic = true;
    } else if (kl_p_at(p, KL_TK_COMMA)) {
        KL_P_FIX(
            kl_p_soft(p, KL_K0120, p->tok.span, "there is no comma operator; write two statements"),
            p->tok.span, ";");
        kl_p_next(p);
    } else if (begins_statement(p)) {
        KL_P_FIX(kl_p_soft(p, KL_K0112, kl_p_after(p), "missing `;` after %s", after),
                 kl_p_after(p), ";");
    } else if (kl_p_is(&p->tok, "and") || kl_p_is(&p->tok, "or")) {
        const char *op = kl_p_is(&p->tok, "and") ? "&&" : "||";
        KL_P_FIX(kl_p_fail(p, KL_K0115, p->tok.span, "`%s` is not an operator; write `%s`",
                           p->tok.text, op),
                 p->tok.span, "%s", op);
    } else if (kl_p_at(p, KL_TK_RPAREN) || kl_p_at(p, KL_TK_RBRACK)) {
        kl_p_fail(p, KL_K0113, p->tok.span, "nothing is open that this `%s` closes",
                  kl_tok_text[p->tok.kind]);
    } else {
        kl_p_fail(p, KL_K0114, p->tok.span, "expected `;` after %s, found %s", after,
                  kl_p_found(p));
    }
}

void kl_p_sync(kl_parser *p)
{
    uint32_t depth = 0;
    while (!kl_p_at(p, KL_TK_EOF) && !kl_p_outer(p)) {
        bool stop = false;
        if (kl_p_at(p, KL_TK_RBRACE) && depth == 0)
            break;
        if (kl_p_at(p, KL_TK_LBRACE))
            depth++;
        else if (kl_p_at(p, KL_TK_RBRACE))
            stop = --depth == 0;
        else if (kl_p_at(p, KL_TK_SEMI))
            stop = depth == 0;
        kl_p_next(p);
        if (stop)
            break;
    }
    p->panic = false;
}

/* ---- nodes ---- */

/* The height stands behind the node: it bounds the recursion of whoever walks the tree. */
struct tall {
    kl_node n;
    uint32_t height;
};

kl_node *kl_p_node(kl_parser *p, enum kl_node_kind kind, kl_span span, kl_node *const *kid,
                   uint32_t nkid)
{
    struct tall *t = kl_new(p->a, struct tall);
    t->n.kind = (uint8_t)kind;
    t->n.span = span;
    t->n.nkid = nkid;
    if (nkid)
        t->n.kid = kl_new_n(p->a, kl_node *, nkid);
    for (uint32_t i = 0; i < nkid; i++) {
        t->n.kid[i] = kid[i];
        if (kid[i] && ((struct tall *)kid[i])->height > t->height)
            t->height = ((struct tall *)kid[i])->height;
    }
    if (++t->height > KL_P_HEIGHT && kind != KL_N_MODULE) {
        kl_p_fail(p, KL_K0126, span, "more than %d operators and statements hang on each other",
                  KL_P_HEIGHT);
        p->dead = true;
        p->tok.kind = KL_TK_EOF;
        return kl_p_error(p, span);
    }
    return &t->n;
}

kl_node *kl_p_error(kl_parser *p, kl_span span)
{
    return kl_p_node(p, KL_N_ERROR, span, NULL, 0);
}

/* ---- names ---- */

enum kl_namekind kl_p_lookup(const kl_parser *p, const char *name)
{
    const uint32_t *v = kl_map_get(&p->scope, &name, sizeof name);
    return v ? (enum kl_namekind) * v : KL_NAME_NONE;
}

void kl_p_declare(kl_parser *p, const char *name, enum kl_namekind kind)
{
    uint32_t *v = kl_map_put(&p->scope, &name, sizeof name, NULL);
    struct kl_undo u = {name, *v};
    *v = kind;
    kl_push(p->a, &p->undo, u);
}

void kl_p_release(kl_parser *p, uint32_t mark)
{
    while (p->undo.n > mark) {
        struct kl_undo u = p->undo.v[--p->undo.n];
        *kl_map_put(&p->scope, &u.name, sizeof u.name, NULL) = u.was;
    }
}
