/* parse_stmt.c - statements. */
#include "lang/parse.h"

static kl_node *statement(kl_parser *p);

static kl_node *stmt_node(kl_parser *p, enum kl_node_kind kind, kl_span beg, kl_node *const *kid,
                          uint32_t nkid)
{
    kl_node *n = kl_p_node(p, kind, kl_span_join(beg, p->prev), kid, nkid);
    n->name_span = beg;
    return n;
}

kl_node *kl_p_block(kl_parser *p)
{
    kl_span open = p->tok.span;
    kl_nodes kid = {0};
    uint32_t mark = kl_p_mark(p);
    kl_p_next(p);
    while (!kl_p_at(p, KL_TK_RBRACE) && !kl_p_at(p, KL_TK_EOF) && !kl_p_outer(p)) {
        uint32_t beg = p->tok.span.beg;
        kl_push(p->a, &kid, statement(p));
        if (p->panic)
            kl_p_sync(p);
        if (p->tok.span.beg == beg && !kl_p_at(p, KL_TK_RBRACE) && !kl_p_at(p, KL_TK_EOF))
            kl_p_next(p);
    }
    if (!kl_p_accept(p, KL_TK_RBRACE))
        KL_P_NOTE(kl_p_soft(p, KL_K0113, kl_p_after(p), "missing `}`"), open, "for this `{`");
    kl_p_release(p, mark);
    kl_node *n = kl_p_node(p, KL_N_BLOCK, kl_span_join(open, p->prev), kid.v, kid.n);
    n->name_span = open;
    return n;
}

/* ---- simple statements ---- */

static bool begins_expression(const kl_parser *p)
{
    switch (p->tok.kind) {
    case KL_TK_NAME:
    case KL_TK_INT:
    case KL_TK_DECIMAL:
    case KL_TK_STRING:
    case KL_TK_ERROR:
    case KL_TK_LPAREN:
    case KL_TK_ADD:
    case KL_TK_SUB:
    case KL_TK_MUL:
    case KL_TK_AND:
    case KL_TK_NOT:
    case KL_TK_TILDE:
    case KL_TK_SIZEOF:
    case KL_TK_TRUE:
    case KL_TK_FALSE:
    case KL_TK_INF:
    case KL_TK_NAN: return true;
    default: return false;
    }
}

/* Assignment, ++, -- or call, without its `;`. */
static kl_node *simple(kl_parser *p)
{
    kl_span beg = p->tok.span;
    struct kl_token op = p->tok;
    kl_node *n;
    if (kl_p_accept(p, KL_TK_INC) || kl_p_accept(p, KL_TK_DEC)) {
        p->stmt_beg = 0;
        kl_node *left = kl_p_expr(p, KL_P_VALUE);
        n = kl_p_node(p, KL_N_INCDEC, kl_span_join(beg, left->span), &left, 1);
        n->op = op.kind;
        n->name_span = op.span;
        return n;
    }
    p->stmt_beg = beg.beg;
    kl_node *left = kl_p_conditional(p);
    p->stmt_beg = 0;
    op = p->tok;
    if (p->panic)
        return kl_p_error(p, kl_span_join(beg, left->span));
    left = kl_p_value(p, left);
    if (kl_p_is_assign(op.kind)) {
        kl_node *kid[2] = {left, NULL};
        kl_p_next(p);
        kid[1] = kl_p_expr(p, KL_P_VALUE);
        n = kl_p_node(p, KL_N_ASSIGN, kl_span_join(beg, kid[1]->span), kid, 2);
        n->op = op.kind;
        n->name_span = op.span;
        return n;
    }
    if (kl_p_accept(p, KL_TK_INC) || kl_p_accept(p, KL_TK_DEC)) {
        n = kl_p_node(p, KL_N_INCDEC, kl_span_join(beg, op.span), &left, 1);
        n->op = op.kind;
        n->name_span = op.span;
        return n;
    }
    if (kl_p_at(p, KL_TK_SEMI) && left->kind == KL_N_BINARY && left->op == KL_TK_EQ &&
        !(left->flags & KL_NF_PAREN)) {
        KL_P_FIX(kl_p_soft(p, KL_K0131, left->name_span, "`==` compares; an assignment is `=`"),
                 left->name_span, "=");
        left = kl_p_error(p, left->span);
    }
    return kl_p_node(p, KL_N_EXPRSTMT, left->span, &left, 1);
}

static kl_node *simple_statement(kl_parser *p)
{
    kl_span beg = p->tok.span;
    if (!begins_expression(p) && !kl_p_at(p, KL_TK_INC) && !kl_p_at(p, KL_TK_DEC)) {
        if (kl_p_at(p, KL_TK_RPAREN) || kl_p_at(p, KL_TK_RBRACK))
            kl_p_fail(p, KL_K0113, beg, "nothing is open that this `%s` closes",
                      kl_tok_text[p->tok.kind]);
        else
            kl_p_fail(p, KL_K0114, beg, "expected a statement, found %s", kl_p_found(p));
        kl_p_next(p);
        return kl_p_error(p, beg);
    }
    if (kl_p_at(p, KL_TK_NAME) && kl_p_peek(p, 1)->kind == KL_TK_COLON) {
        kl_p_soft(p, KL_K0118, beg, "there are no labels and no goto");
        kl_p_next(p);
        kl_p_next(p);
        return kl_p_error(p, beg);
    }
    kl_node *n = simple(p);
    kl_p_semi(p, n->kind == KL_N_ASSIGN ? "an assignment" : "a statement");
    if (n->kind != KL_N_ERROR)
        n->span = kl_span_join(n->span, p->prev);
    return n;
}

/* ---- control ---- */

/* ( condition ) */
static kl_node *condition(kl_parser *p, const char *word)
{
    kl_span open = p->tok.span;
    bool paren = kl_p_accept(p, KL_TK_LPAREN);
    if (!paren)
        KL_P_FIX(kl_p_soft(p, KL_K0113, kl_p_before(open),
                           "the condition of `%s` stands in parentheses", word),
                 kl_p_before(open), "(");
    kl_node *n = kl_p_expr(p, KL_P_CONDITION);
    if (paren)
        kl_p_close(p, KL_TK_RPAREN, open);
    else
        kl_p_accept(p, KL_TK_RPAREN);
    return n;
}

/* The statement that a condition or a loop governs. */
static kl_node *governed(kl_parser *p)
{
    if (p->panic && !kl_p_at(p, KL_TK_LBRACE))
        return kl_p_error(p, p->tok.span);
    p->panic = false;
    if (kl_p_at_decl(p) && !kl_p_at(p, KL_TK_ERROR))
        kl_p_soft(p, KL_K0127, p->tok.span,
                  "a declaration alone is lost at once; put it into a block { ... }");
    uint32_t mark = kl_p_mark(p);
    kl_node *n = statement(p);
    kl_p_release(p, mark);
    return n;
}

static kl_node *if_statement(kl_parser *p)
{
    kl_span beg = p->tok.span;
    kl_node *kid[3] = {0};
    kl_p_next(p);
    kid[0] = condition(p, "if");
    kid[1] = governed(p);
    if (!p->panic && (kl_p_is(&p->tok, "elif") || kl_p_is(&p->tok, "elseif"))) {
        KL_P_FIX(kl_p_soft(p, KL_K0115, p->tok.span, "`%s` is written `else if`", p->tok.text),
                 p->tok.span, "else if");
        kid[2] = if_statement(p);
    } else if (!p->panic && kl_p_accept(p, KL_TK_ELSE)) {
        kid[2] = governed(p);
    }
    return stmt_node(p, KL_N_IF, beg, kid, 3);
}

/* Behind an error in the head of a `for`: on to its body. */
static void to_for_body(kl_parser *p)
{
    uint32_t depth = 0;
    for (; p->panic; kl_p_next(p)) {
        if (kl_p_at(p, KL_TK_EOF) || kl_p_at(p, KL_TK_LBRACE) || kl_p_at(p, KL_TK_RBRACE) ||
            kl_p_outer(p))
            return;
        if (kl_p_at(p, KL_TK_LPAREN))
            depth++;
        else if (kl_p_at(p, KL_TK_RPAREN) && depth-- == 0) {
            kl_p_next(p);
            p->panic = false;
            return;
        }
    }
}

static kl_node *for_statement(kl_parser *p, uint16_t flag, uint64_t val)
{
    kl_span beg = p->tok.span, open;
    kl_node *kid[4] = {0};
    uint32_t mark = kl_p_mark(p);
    kl_p_next(p);
    open = p->tok.span;
    if (kl_p_expect(p, KL_TK_LPAREN, "behind `for`")) {
        if (!kl_p_at(p, KL_TK_SEMI))
            kid[0] = kl_p_at_decl(p) ? kl_p_local(p, false) : simple(p);
        if (!p->panic && kl_p_at(p, KL_TK_COMMA))
            kl_p_fail(p, KL_K0120, p->tok.span,
                      "there is no comma operator; start the second variable before the loop");
        if (!p->panic)
            kl_p_expect(p, KL_TK_SEMI, "between the parts of `for`");
        if (!p->panic && !kl_p_at(p, KL_TK_SEMI))
            kid[1] = kl_p_expr(p, KL_P_CONDITION);
        if (!p->panic)
            kl_p_expect(p, KL_TK_SEMI, "between the parts of `for`");
        if (!p->panic && !kl_p_at(p, KL_TK_RPAREN))
            kid[2] = simple(p);
        if (!p->panic && kl_p_at(p, KL_TK_COMMA))
            kl_p_fail(p, KL_K0120, p->tok.span,
                      "there is no comma operator; put the second step into the body");
        if (!p->panic)
            kl_p_close(p, KL_TK_RPAREN, open);
    }
    to_for_body(p);
    kid[3] = governed(p);
    kl_p_release(p, mark);
    kl_node *n = stmt_node(p, KL_N_FOR, beg, kid, 4);
    n->flags |= n->kind == KL_N_FOR ? flag : 0;
    n->ival = val;
    return n;
}

static kl_node *while_statement(kl_parser *p)
{
    kl_span beg = p->tok.span;
    kl_node *kid[2];
    kl_p_next(p);
    kid[0] = condition(p, "while");
    kid[1] = governed(p);
    return stmt_node(p, KL_N_WHILE, beg, kid, 2);
}

static kl_node *do_statement(kl_parser *p)
{
    kl_span beg = p->tok.span;
    kl_node *kid[2];
    kl_p_next(p);
    kid[0] = governed(p);
    if (p->panic)
        kl_p_sync(p);
    if (!kl_p_expect(p, KL_TK_WHILE, "behind the body of `do`"))
        return kl_p_error(p, beg);
    kid[1] = condition(p, "while");
    kl_p_semi(p, "`do` and `while`");
    return stmt_node(p, KL_N_DO, beg, kid, 2);
}

static kl_node *return_statement(kl_parser *p)
{
    kl_span beg = p->tok.span;
    kl_p_next(p);
    kl_node *v = NULL;
    if (!kl_p_at(p, KL_TK_SEMI) && !kl_p_at(p, KL_TK_RBRACE) &&
        !(p->tok.bol && !begins_expression(p)))
        v = kl_p_expr(p, KL_P_VALUE);
    kl_p_semi(p, "`return`");
    return stmt_node(p, KL_N_RETURN, beg, &v, 1);
}

static kl_node *jump(kl_parser *p)
{
    kl_span beg = p->tok.span;
    bool brk = kl_p_at(p, KL_TK_BREAK);
    kl_p_next(p);
    kl_p_semi(p, brk ? "`break`" : "`continue`");
    return stmt_node(p, brk ? KL_N_BREAK : KL_N_CONTINUE, beg, NULL, 0);
}

/* #pragma unroll and pipeline, at the directive; what follows must be a `for`. */
static kl_node *with_pragma(kl_parser *p)
{
    kl_span first = {0, 0};
    uint16_t flag = 0;
    uint64_t val = 0;
    bool good = true;
    while (kl_p_at(p, KL_TK_HASH)) {
        kl_span at = p->tok.span;
        uint16_t f = 0;
        uint64_t v = 0;
        good = kl_p_loop_pragma(p, &f, &v) && good;
        if (f && first.beg) {
            KL_P_NOTE(kl_p_soft(p, KL_K0109, at, "a loop takes one pragma"), first,
                      "the first is here");
        } else if (f) {
            first = at;
            flag = f;
            val = v;
        }
    }
    if (kl_p_at(p, KL_TK_FOR)) {
        if (!kl_p_enter(p))
            return kl_p_error(p, p->tok.span);
        kl_node *n = for_statement(p, good ? flag : 0, good ? val : 0);
        kl_p_leave(p);
        return n;
    }
    if (flag)
        kl_p_soft(p, KL_K0109, first, "this pragma stands before a `for`, and before nothing else");
    if (kl_p_at(p, KL_TK_RBRACE) || kl_p_at(p, KL_TK_EOF) || kl_p_outer(p))
        return kl_p_node(p, KL_N_EMPTY, kl_p_after(p), NULL, 0);
    return statement(p);
}

/* C's statements that are not in the language: their extent is skipped. */
static kl_node *foreign_statement(kl_parser *p)
{
    kl_span beg = p->tok.span;
    switch (p->tok.kind) {
    case KL_TK_GOTO:
        kl_p_fail(p, KL_K0118, beg,
                  "there is no goto; loops have break and continue, functions return");
        break;
    case KL_TK_SWITCH:
        kl_p_soft(p, KL_K0118, beg, "there is no switch; write `if` and `else if`");
        kl_p_next(p);
        if (kl_p_at(p, KL_TK_LPAREN))
            kl_p_skip_group(p);
        if (kl_p_at(p, KL_TK_LBRACE))
            kl_p_skip_group(p);
        break;
    case KL_TK_CASE:
    case KL_TK_DEFAULT:
        kl_p_soft(p, KL_K0118, beg, "there is no switch and no `%s`", kl_tok_text[p->tok.kind]);
        while (!kl_p_at(p, KL_TK_COLON) && !kl_p_at(p, KL_TK_SEMI) && !kl_p_at(p, KL_TK_EOF) &&
               !kl_p_at(p, KL_TK_RBRACE) && !kl_p_outer(p))
            kl_p_next(p);
        kl_p_accept(p, KL_TK_COLON);
        break;
    case KL_TK_ELSE:
        kl_p_soft(p, KL_K0114, beg, "this `else` belongs to no `if`");
        kl_p_next(p);
        break;
    case KL_TK_TYPEDEF:
        kl_p_fail(p, KL_K0118, beg, "there is no typedef; a type's name is `type A = f32;`");
        break;
    default: /* enum and union, with their braces */
        kl_p_soft(p, KL_K0118, beg,
                  kl_p_at(p, KL_TK_ENUM)
                      ? "there is no enum; constants are `constexpr i64 NAME = value;`"
                      : "there is no union; bitcast(T, x) gives the bits of x another type");
        kl_p_next(p);
        kl_p_accept(p, KL_TK_NAME);
        if (kl_p_at(p, KL_TK_LBRACE))
            kl_p_skip_group(p);
        p->panic = true; /* on to the `;` */
        break;
    }
    return kl_p_error(p, beg);
}

static kl_node *one_statement(kl_parser *p)
{
    kl_span beg = p->tok.span;
    switch (p->tok.kind) {
    case KL_TK_LBRACE: return kl_p_block(p);
    case KL_TK_SEMI: kl_p_next(p); return stmt_node(p, KL_N_EMPTY, beg, NULL, 0);
    case KL_TK_IF: return if_statement(p);
    case KL_TK_FOR: return for_statement(p, 0, 0);
    case KL_TK_WHILE: return while_statement(p);
    case KL_TK_DO: return do_statement(p);
    case KL_TK_RETURN: return return_statement(p);
    case KL_TK_BREAK:
    case KL_TK_CONTINUE: return jump(p);
    case KL_TK_GOTO:
    case KL_TK_SWITCH:
    case KL_TK_CASE:
    case KL_TK_DEFAULT:
    case KL_TK_ELSE:
    case KL_TK_TYPEDEF:
    case KL_TK_ENUM:
    case KL_TK_UNION: return foreign_statement(p);
    default: break;
    }
    if (kl_p_is(&p->tok, "static_assert") && kl_p_peek(p, 1)->kind == KL_TK_LPAREN)
        return kl_p_static_assert(p);
    if (kl_p_at_decl(p))
        return kl_p_local(p, true);
    return simple_statement(p);
}

static kl_node *statement(kl_parser *p)
{
    if (kl_p_at(p, KL_TK_HASH))
        return with_pragma(p);
    if (!kl_p_enter(p))
        return kl_p_error(p, p->tok.span);
    kl_node *n = one_statement(p);
    kl_p_leave(p);
    return n;
}
