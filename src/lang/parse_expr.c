/* parse_expr.c - expressions, with C's precedence.
 *
 * Types may stand where they are computed (`sizeof(T) == 2 ? f16 : f32`) and as
 * arguments; everywhere else kl_p_value turns them into an error. */
#include "lang/parse.h"

/* ---- operators ---- */

static kl_node *size_of(kl_parser *p)
{
    kl_span beg = p->tok.span, open;
    kl_p_next(p);
    open = p->tok.span;
    if (!kl_p_at(p, KL_TK_LPAREN) || !(kl_p_at_type(p, kl_p_peek(p, 1)))) {
        kl_p_soft(p, KL_K0124, beg, "`sizeof` takes a type in parentheses, as in sizeof(T)");
        kl_p_unary(p);
        return kl_p_error(p, kl_span_join(beg, p->prev));
    }
    kl_p_next(p);
    kl_node *t = kl_p_type(p);
    bool more = !kl_p_at(p, KL_TK_RPAREN);
    if (more && !p->panic)
        kl_p_fail(p, KL_K0124, p->tok.span, "`sizeof` takes a type alone, as in sizeof(T)");
    kl_p_close(p, KL_TK_RPAREN, open);
    kl_node *n = kl_p_node(p, KL_N_SIZEOF, kl_span_join(beg, p->prev), &t, 1);
    n->name_span = beg;
    return more ? kl_p_error(p, n->span) : n;
}

static kl_node *unary_operator(kl_parser *p)
{
    struct kl_token t = p->tok;
    bool power = kl_p_at(p, KL_TK_MUL) && p->prev.end == t.span.beg &&
                 strcmp(kl_p_text(p, p->prev), "*") == 0;
    kl_p_next(p);
    kl_node *k = kl_p_value(p, kl_p_unary(p));
    kl_span all = kl_span_join(t.span, k->span);
    switch (t.kind) {
    case KL_TK_MUL:
        if (power)
            kl_p_soft(p, KL_K0115, (kl_span){t.span.beg - 1, t.span.end},
                      "`**` is not an operator; write pow(x, y), or x * x");
        else
            kl_p_soft(p, KL_K0119, t.span, "there are no pointers; an element is read by x[i]");
        return kl_p_error(p, all);
    case KL_TK_INC:
    case KL_TK_DEC:
        kl_p_soft(p, KL_K0123, t.span, "`%s` is a statement of its own, not part of an expression",
                  kl_tok_text[t.kind]);
        return kl_p_error(p, all);
    default: break;
    }
    kl_node *n = kl_p_node(p, KL_N_UNARY, all, &k, 1);
    n->op = t.kind;
    n->name_span = t.span;
    return n;
}

kl_node *kl_p_unary(kl_parser *p)
{
    kl_node *n;
    switch (p->tok.kind) {
    case KL_TK_ADD:
    case KL_TK_SUB:
    case KL_TK_NOT:
    case KL_TK_TILDE:
    case KL_TK_AND:
    case KL_TK_MUL:
    case KL_TK_INC:
    case KL_TK_DEC:
    case KL_TK_SIZEOF: break;
    default: return kl_p_postfix(p);
    }
    if (!kl_p_enter(p))
        return kl_p_error(p, p->tok.span);
    n = kl_p_at(p, KL_TK_SIZEOF) ? size_of(p) : unary_operator(p);
    kl_p_leave(p);
    return n;
}

/* C's precedence; 0: no binary operator. */
static int precedence(uint8_t tok)
{
    switch (tok) {
    case KL_TK_OROR: return 1;
    case KL_TK_ANDAND: return 2;
    case KL_TK_OR: return 3;
    case KL_TK_XOR: return 4;
    case KL_TK_AND: return 5;
    case KL_TK_EQ:
    case KL_TK_NE: return 6;
    case KL_TK_LT:
    case KL_TK_GT:
    case KL_TK_LE:
    case KL_TK_GE: return 7;
    case KL_TK_SHL:
    case KL_TK_SHR: return 8;
    case KL_TK_ADD:
    case KL_TK_SUB: return 9;
    case KL_TK_MUL:
    case KL_TK_DIV:
    case KL_TK_REM: return 10;
    default: return 0;
    }
}

static kl_node *binary(kl_parser *p, int least)
{
    kl_node *n = kl_p_unary(p);
    for (int prec; !p->panic && (prec = precedence(p->tok.kind)) >= least;) {
        struct kl_token op = p->tok;
        kl_p_next(p);
        kl_node *kid[2] = {kl_p_value(p, n), NULL};
        kid[1] = kl_p_value(p, binary(p, prec + 1));
        n = kl_p_node(p, KL_N_BINARY, kl_span_join(kid[0]->span, kid[1]->span), kid, 2);
        n->op = op.kind;
        n->name_span = op.span;
    }
    return n;
}

static bool is_type(const kl_node *n)
{
    return n->kind == KL_N_TYPE || (n->kind == KL_N_COND && is_type(n->kid[1]));
}

kl_node *kl_p_conditional(kl_parser *p)
{
    if (!kl_p_enter(p))
        return kl_p_error(p, p->tok.span);
    kl_node *n = binary(p, 1);
    if (kl_p_at(p, KL_TK_QUEST) && !p->panic) {
        kl_node *kid[3] = {kl_p_value(p, n), NULL, NULL};
        kl_span quest = p->tok.span;
        kl_p_next(p);
        kid[1] = kl_p_conditional(p);
        if (kl_p_expect(p, KL_TK_COLON, "of `?:`"))
            kid[2] = kl_p_conditional(p);
        else
            kid[2] = kl_p_error(p, p->tok.span);
        if (is_type(kid[1]) != is_type(kid[2]) && kid[1]->kind != KL_N_ERROR &&
            kid[2]->kind != KL_N_ERROR) { /* one is a value: then both must be */
            kid[1] = kl_p_value(p, kid[1]);
            kid[2] = kl_p_value(p, kid[2]);
        }
        n = kl_p_node(p, KL_N_COND, kl_span_join(kid[0]->span, kid[2]->span), kid, 3);
        n->name_span = quest;
    }
    kl_p_leave(p);
    return n;
}

kl_node *kl_p_value(kl_parser *p, kl_node *n)
{
    if (!is_type(n))
        return n;
    const char *t = kl_p_text(p, n->span);
    kl_p_soft(p, KL_K0205, n->span, "`%s` is a type, and a value must stand here", t);
    return kl_p_error(p, n->span);
}

bool kl_p_is_assign(uint8_t tok)
{
    return tok == KL_TK_ASSIGN || (tok >= KL_TK_ADDEQ && tok <= KL_TK_XOREQ) ||
           tok == KL_TK_SHLEQ || tok == KL_TK_SHREQ;
}

/* An assignment inside an expression: reported, and `=` read as `==`. */
static kl_node *assignment_inside(kl_parser *p, kl_node *left, enum kl_p_want want)
{
    struct kl_token t = p->tok;
    struct kl_diag *g;
    if (t.kind == KL_TK_ASSIGN && want == KL_P_CONDITION) {
        g = kl_p_soft(p, KL_K0122, t.span, "a condition compares with `==`");
        KL_P_FIX(g, t.span, "==");
    } else {
        kl_p_soft(p, KL_K0122, t.span, "`%s` is a statement of its own, not part of an expression",
                  kl_tok_text[t.kind]);
    }
    kl_p_next(p);
    kl_node *kid[2] = {left, kl_p_value(p, kl_p_conditional(p))};
    kl_span all = kl_span_join(left->span, kid[1]->span);
    if (want != KL_P_CONDITION)
        return kl_p_error(p, all);
    kl_node *n = kl_p_node(p, KL_N_BINARY, all, kid, 2);
    n->op = KL_TK_EQ;
    n->name_span = t.span;
    return n;
}

kl_node *kl_p_type_or_expr(kl_parser *p)
{
    kl_node *n = kl_p_conditional(p);
    while (!p->panic && kl_p_is_assign(p->tok.kind))
        n = assignment_inside(p, kl_p_value(p, n), KL_P_VALUE);
    return n;
}

kl_node *kl_p_expr(kl_parser *p, enum kl_p_want want)
{
    kl_node *n = kl_p_value(p, kl_p_conditional(p));
    while (!p->panic && kl_p_is_assign(p->tok.kind))
        n = assignment_inside(p, n, want);
    return n;
}
