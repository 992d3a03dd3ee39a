/* parse_primary.c - operands: literals, names, calls, casts, parentheses, subscripts, members. */
#include "lang/lang.h"
#include "lang/parse.h"

/* ---- texts and sizes ---- */

const char *kl_p_string(kl_parser *p, const char *what)
{
    if (!kl_p_at(p, KL_TK_STRING)) {
        kl_p_fail(p, KL_K0114, p->tok.span, "expected %s in double quotes, found %s", what,
                  kl_p_found(p));
        return NULL;
    }
    const char *s = p->tok.text;
    kl_p_next(p);
    if (!kl_p_at(p, KL_TK_STRING))
        return s;
    kl_buf b = {.a = p->a}; /* adjacent texts are one, as in C */
    kl_puts(&b, s);
    for (; kl_p_at(p, KL_TK_STRING); kl_p_next(p))
        kl_puts(&b, p->tok.text);
    return kl_intern(p->m, kl_buf_str(&b), b.n);
}

/* `[a, b]`: reported, and read as [a][b].  false: there is no comma. */
static bool comma_in_brackets(kl_parser *p)
{
    if (!kl_p_at(p, KL_TK_COMMA) || p->panic)
        return false;
    KL_P_FIX(kl_p_soft(p, KL_K0121, p->tok.span, "each dimension has its own brackets: [a][b]"),
             p->tok.span, "][");
    kl_p_next(p);
    return true;
}

kl_node *kl_p_dims(kl_parser *p)
{
    if (!kl_p_at(p, KL_TK_LBRACK))
        return NULL;
    kl_nodes dim = {0};
    kl_span all = p->tok.span;
    while (kl_p_at(p, KL_TK_LBRACK) && !p->panic) {
        kl_span open = p->tok.span;
        kl_p_next(p);
        if (kl_p_at(p, KL_TK_RBRACK)) {
            kl_push(p->a, &dim, (kl_node *)NULL);
        } else {
            do
                kl_push(p->a, &dim, kl_p_value(p, kl_p_conditional(p)));
            while (comma_in_brackets(p));
        }
        kl_p_close(p, KL_TK_RBRACK, open);
        all = kl_span_join(all, p->prev);
    }
    return kl_p_node(p, KL_N_DIMS, all, dim.v, dim.n);
}

/* ---- primary expressions ---- */

static kl_node *leaf(kl_parser *p, enum kl_node_kind kind)
{
    kl_node *n = kl_p_node(p, kind, p->tok.span, NULL, 0);
    n->name_span = p->tok.span;
    n->name = p->tok.text;
    n->ival = p->tok.ival;
    n->flags = p->tok.f32 ? KL_NF_F32 : 0;
    kl_p_next(p);
    return n;
}

/* `.name = value`, at the dot. */
static kl_node *designator(kl_parser *p, kl_span beg)
{
    kl_span at = p->tok.span;
    const char *name = kl_p_name(p, "the name of an argument");
    if (!name || !kl_p_expect(p, KL_TK_ASSIGN, "behind the name of the argument"))
        return kl_p_error(p, kl_span_join(beg, at));
    kl_node *v = kl_p_type_or_expr(p);
    kl_node *n = kl_p_node(p, KL_N_DESIG, kl_span_join(beg, v->span), &v, 1);
    n->name = name;
    n->name_span = at;
    return n;
}

static kl_node *argument(kl_parser *p)
{
    kl_span beg = p->tok.span;
    if (kl_p_accept(p, KL_TK_DOT))
        return designator(p, beg);
    if (kl_p_at(p, KL_TK_NAME) && kl_p_peek(p, 1)->kind == KL_TK_ASSIGN) {
        KL_P_FIX(kl_p_soft(p, KL_K0122, beg, "an argument by name is written `.%s = value`",
                           kl_p_text(p, beg)),
                 kl_p_before(beg), ".");
        return designator(p, beg);
    }
    if (kl_p_at(p, KL_TK_STRING)) {
        kl_node *n = kl_p_node(p, KL_N_STRING, beg, NULL, 0);
        n->name = kl_p_string(p, "a text");
        n->span = n->name_span = kl_span_join(beg, p->prev);
        return n;
    }
    return kl_p_type_or_expr(p);
}

/* name ( … ), at the parenthesis. */
static kl_node *call(kl_parser *p, const char *name, kl_span at)
{
    kl_span open = p->tok.span;
    kl_nodes arg = {0};
    kl_p_next(p);
    while (!kl_p_at(p, KL_TK_RPAREN) && !p->panic) {
        kl_node *n = argument(p);
        if (n->kind != KL_N_DESIG && arg.n && arg.v[arg.n - 1]->kind == KL_N_DESIG)
            kl_p_soft(p, KL_K0114, n->span, "arguments by position stand before those by name");
        kl_push(p->a, &arg, n);
        if (kl_p_at(p, KL_TK_RPAREN))
            break;
        if (!kl_p_accept(p, KL_TK_COMMA)) {
            /* the end of a line or statement: kl_p_close says what is missing */
            if (!p->tok.bol && !kl_p_at(p, KL_TK_SEMI) && !kl_p_at(p, KL_TK_RBRACE) &&
                !kl_p_at(p, KL_TK_LBRACE) && !kl_p_at(p, KL_TK_RBRACK))
                kl_p_fail(p, KL_K0114, p->tok.span,
                          "expected `,` or `)` behind an argument, found %s", kl_p_found(p));
            break;
        }
        if (kl_p_at(p, KL_TK_RPAREN))
            kl_p_soft(p, KL_K0114, p->prev, "an argument is missing behind this `,`");
    }
    kl_p_close(p, KL_TK_RPAREN, open);
    kl_node *n = kl_p_node(p, KL_N_CALL, kl_span_join(at, p->prev), arg.v, arg.n);
    n->name = name;
    n->name_span = at;
    return n;
}

/* `f32(x)` of C++: the type stood before the parenthesis. */
static kl_node *functional_cast(kl_parser *p, kl_node *type)
{
    kl_span open = p->tok.span;
    struct kl_diag *g = kl_p_soft(p, KL_K0117, type->span, "a cast is written (%s)x", type->name);
    KL_P_FIX(g, type->span, "(%s)", type->name);
    kl_p_next(p);
    kl_node *kid[2] = {type, kl_p_expr(p, KL_P_VALUE)};
    kl_p_close(p, KL_TK_RPAREN, open);
    return kl_p_node(p, KL_N_CAST, kl_span_join(type->span, p->prev), kid, 2);
}

static kl_node *name_or_call(kl_parser *p)
{
    struct kl_token t = p->tok;
    bool called = kl_p_peek(p, 1)->kind == KL_TK_LPAREN, word = false;
    /* a function of the author may be called `half`, but not `int` */
    bool type = kl_p_at_type(p, &t) && (!kl_p_c_type(t.text, &word) || word);
    if (type) {
        kl_node *n = kl_p_type(p);
        return kl_p_at(p, KL_TK_LPAREN) && !p->panic ? functional_cast(p, n) : n;
    }
    if (!called)
        return leaf(p, KL_N_NAME);
    kl_p_next(p);
    return call(p, t.text, t.span);
}

static kl_node *braces(kl_parser *p)
{
    kl_span beg = p->tok.span;
    kl_p_soft(
        p, KL_K0125, beg,
        "of tiles only constexpr ones have an initialiser in braces; fill others with one value, or compute them from "
        "range()");
    kl_p_skip_group(p);
    return kl_p_error(p, kl_span_join(beg, p->prev));
}

/* (struct name){ a, b }, at the brace; also struct name x = { a, b }. */
kl_node *kl_p_literal(kl_parser *p, kl_node *type, kl_span beg)
{
    kl_span open = p->tok.span;
    kl_nodes kid = {0};
    kl_push(p->a, &kid, type);
    kl_p_next(p);
    while (!kl_p_at(p, KL_TK_RBRACE) && !p->panic) {
        kl_push(p->a, &kid, argument(p));
        if (!kl_p_accept(p, KL_TK_COMMA))
            break;
    }
    kl_p_close(p, KL_TK_RBRACE, open);
    kl_node *n = kl_p_node(p, KL_N_LITERAL, kl_span_join(beg, p->prev), kid.v, kid.n);
    n->name = type->name;
    n->name_span = type->span;
    return n;
}

/* Whether an operand may begin here: what tells the cast (T)x from the type (T). */
static bool begins_operand(const kl_parser *p)
{
    switch (p->tok.kind) {
    case KL_TK_COLON:
    case KL_TK_COMMA:
    case KL_TK_SEMI:
    case KL_TK_QUEST:
    case KL_TK_RPAREN:
    case KL_TK_RBRACK:
    case KL_TK_RBRACE: return false;
    default: return true;
    }
}

/* ( … ): a cast, or an expression in parentheses. */
static kl_node *parenthesis(kl_parser *p)
{
    kl_span open = p->tok.span;
    kl_p_next(p);
    bool type = kl_p_at(p, KL_TK_STRUCT) || kl_p_at(p, KL_TK_VOID) || kl_p_at(p, KL_TK_AUTO);
    if (kl_p_at_type(p, &p->tok)) {
        enum kl_tok next = kl_p_peek(p, 1)->kind;
        type = next == KL_TK_RPAREN || (next == KL_TK_NAME && kl_p_c_type(p->tok.text, NULL)) ||
               (next == KL_TK_MUL &&
                (kl_p_peek(p, 2)->kind == KL_TK_RPAREN || kl_p_peek(p, 2)->kind == KL_TK_MUL));
    }
    if (!type) {
        kl_node *n = kl_p_type_or_expr(p);
        if (kl_p_at(p, KL_TK_COMMA) && !p->panic)
            kl_p_fail(p, KL_K0120, p->tok.span, "there is no comma operator");
        if (!kl_p_close(p, KL_TK_RPAREN, open))
            return kl_p_error(p, kl_span_join(open, p->prev));
        n->span = kl_span_join(open, p->prev);
        n->flags |= KL_NF_PAREN;
        return n;
    }
    kl_node *t = kl_p_type(p);
    if (kl_p_at(p, KL_TK_MUL)) {
        kl_p_soft(p, KL_K0119, p->tok.span, "there are no pointers, and no casts to one");
        while (kl_p_accept(p, KL_TK_MUL))
            ;
        t = kl_p_error(p, t->span);
    }
    if (!kl_p_close(p, KL_TK_RPAREN, open))
        return kl_p_error(p, kl_span_join(open, p->prev));
    if (kl_p_at(p, KL_TK_LBRACE)) {
        if (!(t->flags & KL_NF_STRUCT))
            return braces(p);
        return kl_p_literal(p, t, open);
    }
    if (!begins_operand(p)) {
        t->span = kl_span_join(open, p->prev);
        t->flags |= KL_NF_PAREN;
        return t;
    }
    if (!kl_p_enter(p))
        return kl_p_error(p, open);
    kl_node *kid[2] = {t, kl_p_value(p, kl_p_unary(p))};
    kl_p_leave(p);
    if (t->kind == KL_N_ERROR)
        return kl_p_error(p, kl_span_join(open, kid[1]->span));
    kl_node *n = kl_p_node(p, KL_N_CAST, kl_span_join(open, kid[1]->span), kid, 2);
    n->name_span = t->span;
    return n;
}

static kl_node *primary(kl_parser *p)
{
    struct kl_token t = p->tok;
    kl_node *n;
    switch (t.kind) {
    case KL_TK_NAME: return name_or_call(p);
    case KL_TK_INT: return leaf(p, KL_N_INT);
    case KL_TK_DECIMAL: return leaf(p, KL_N_DECIMAL);
    case KL_TK_INF:
    case KL_TK_NAN:
        n = leaf(p, t.kind == KL_TK_INF ? KL_N_INFLIT : KL_N_NANLIT);
        n->name = NULL;
        return n;
    case KL_TK_TRUE:
    case KL_TK_FALSE:
        n = leaf(p, KL_N_BOOL);
        n->name = NULL;
        n->ival = t.kind == KL_TK_TRUE;
        return n;
    case KL_TK_LPAREN: return parenthesis(p);
    case KL_TK_LBRACE: return braces(p);
    case KL_TK_STRING:
        kl_p_soft(p, KL_K0205, t.span, "a text can only be the argument of a call");
        kl_p_next(p);
        return kl_p_error(p, t.span);
    case KL_TK_ERROR: p->panic = true; return kl_p_error(p, t.span);
    default: break;
    }
    if (t.kind >= KL_TK_AUTO)
        kl_p_fail(p, KL_K0114, t.span, "expected an expression, but `%s` is a reserved word",
                  kl_tok_text[t.kind]);
    else if (t.kind == KL_TK_SEMI || t.bol || t.kind == KL_TK_EOF)
        kl_p_fail(p, KL_K0114, p->prev, "an expression must follow this `%s`",
                  kl_p_text(p, p->prev));
    else
        kl_p_fail(p, KL_K0114, t.span, "expected an expression, found %s", kl_p_found(p));
    return kl_p_error(p, t.span);
}

/* ---- postfix ---- */

/* One subscript: an expression, first:count[:step], or a lone colon. */
static kl_node *subscript(kl_parser *p)
{
    kl_node *kid[3] = {0};
    kl_span beg = p->tok.span;
    if (kl_p_at(p, KL_TK_COLON)) {
        enum kl_tok next = kl_p_peek(p, 1)->kind;
        if (next == KL_TK_RBRACK || next == KL_TK_COMMA) {
            kl_p_next(p);
            return kl_p_node(p, KL_N_ALL, beg, NULL, 0);
        }
        struct kl_diag *g =
            kl_p_soft(p, KL_K0130, beg, "a section is first:count or first:count:step");
        if (next != KL_TK_COLON)
            KL_P_FIX(g, kl_p_before(beg), "0");
        kid[0] = kl_p_error(p, beg);
    } else {
        kid[0] = kl_p_value(p, kl_p_conditional(p)); /* at `=` a `]` is missing */
        if (!kl_p_at(p, KL_TK_COLON) || p->panic)
            return kid[0];
    }
    kl_span colon = p->tok.span;
    kl_p_next(p);
    if (kl_p_at(p, KL_TK_RBRACK) || kl_p_at(p, KL_TK_COMMA) || kl_p_at(p, KL_TK_COLON)) {
        if (kid[0]->kind != KL_N_ERROR)
            kl_p_soft(p, KL_K0130, colon, "a section is first:count; how many elements is missing");
        kid[1] = kl_p_error(p, colon);
    } else {
        kid[1] = kl_p_value(p, kl_p_conditional(p));
    }
    if (kl_p_at(p, KL_TK_COLON) && !p->panic) {
        kl_p_next(p);
        kid[2] = kl_p_value(p, kl_p_conditional(p));
    }
    kl_node *n = kl_p_node(p, KL_N_SECTION, kl_span_join(beg, p->prev), kid, 3);
    n->name_span = colon;
    return n;
}

/* All of base[a][b]… in one node. */
static kl_node *index_of(kl_parser *p, kl_node *base)
{
    kl_nodes kid = {0};
    kl_span first = p->tok.span;
    kl_push(p->a, &kid, kl_p_value(p, base));
    while (kl_p_at(p, KL_TK_LBRACK) && !p->panic) {
        kl_span open = p->tok.span;
        kl_p_next(p);
        if (kl_p_at(p, KL_TK_RBRACK)) {
            kl_p_soft(p, KL_K0130, kl_span_join(open, p->tok.span),
                      "a subscript is missing; [:] is the whole dimension");
            kl_push(p->a, &kid, kl_p_error(p, open));
        } else {
            do
                kl_push(p->a, &kid, subscript(p));
            while (comma_in_brackets(p));
        }
        kl_p_close(p, KL_TK_RBRACK, open);
    }
    kl_node *n = kl_p_node(p, KL_N_INDEX, kl_span_join(base->span, p->prev), kid.v, kid.n);
    n->name_span = kl_span_join(first, p->prev);
    return n;
}

/* `(` behind something that is no name: x.sum(), np.exp(x), f(x)(y). */
static void called(kl_parser *p, const kl_node *n)
{
    if (n->kind != KL_N_MEMBER) {
        kl_p_fail(p, KL_K0114, p->tok.span, "only a name can be called");
        return;
    }
    const kl_node *of = n->kid[0];
    const char *hint = of->kind == KL_N_NAME ? kl_foreign(of->name) : NULL;
    struct kl_diag *g =
        hint ? kl_p_fail(p, KL_K0114, n->span, "only a name can be called: there is no `%s`", of->name)
             : kl_p_fail(p, KL_K0114, n->span, "only a name can be called: values have no functions of "
                                               "their own");
    if (g && hint)
        kl_note(g, (kl_span){0, 0}, "%s", hint);
    else if (g)
        kl_note(g, (kl_span){0, 0}, "write %s(%s)", n->name, kl_p_text(p, of->span));
}

kl_node *kl_p_postfix(kl_parser *p)
{
    kl_node *n = primary(p);
    while (!p->panic) {
        if (kl_p_at(p, KL_TK_LBRACK)) {
            n = index_of(p, n);
        } else if (kl_p_at(p, KL_TK_DOT) || kl_p_at(p, KL_TK_ARROW)) {
            bool arrow = kl_p_at(p, KL_TK_ARROW);
            if (arrow)
                KL_P_FIX(kl_p_soft(p, KL_K0119, p->tok.span,
                                   "there are no pointers; a member is `.name`"),
                         p->tok.span, ".");
            kl_p_next(p);
            kl_span at = p->tok.span;
            const char *name = kl_p_name(p, "the name of a member");
            if (!name)
                return kl_p_error(p, n->span);
            n = kl_p_value(p, n);
            n = kl_p_node(p, KL_N_MEMBER, kl_span_join(n->span, at), &n, 1);
            n->name = name;
            n->name_span = at;
            if (arrow)
                n = kl_p_error(p, n->span);
        } else if (kl_p_at(p, KL_TK_LPAREN)) {
            called(p, n);
            return kl_p_error(p, n->span);
        } else if ((kl_p_at(p, KL_TK_INC) || kl_p_at(p, KL_TK_DEC)) && n->span.beg != p->stmt_beg) {
            kl_p_soft(p, KL_K0123, p->tok.span,
                      "`%s` is a statement of its own, not part of an expression",
                      kl_tok_text[p->tok.kind]);
            kl_p_next(p);
            n = kl_p_error(p, kl_span_join(n->span, p->prev));
        } else {
            break;
        }
    }
    return n;
}
