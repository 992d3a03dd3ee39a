/* parse_kernel.c - parameters, clauses, functions, kernels, and whatever else stands outside
 * functions.
 *
 * The words of clauses, `type` and `stride` mean something only where they can stand;
 * elsewhere they are names like any other. */
#include "lang/parse.h"

/* ---- parameters ---- */

/* `type T`, `type T = bf16`. */
static kl_node *type_param(kl_parser *p)
{
    kl_span beg = p->tok.span, at;
    kl_p_next(p);
    const char *name = kl_p_declared_name(p, "a type", &at);
    if (!name)
        return kl_p_error(p, beg);
    kl_node *kid[4] = {0};
    if (kl_p_accept(p, KL_TK_ASSIGN))
        kid[0] = kl_p_type_or_expr(p);
    kl_p_declare(p, name, KL_NAME_TYPE);
    kl_node *n = kl_p_node(p, KL_N_PARAM, kl_span_join(beg, p->prev), kid, 4);
    n->name = name;
    n->name_span = at;
    n->flags = KL_NF_TYPEPARAM;
    return n;
}

/* A parameter's name without a type before it: reported. */
static bool lacks_type(kl_parser *p)
{
    if (!kl_p_at(p, KL_TK_NAME) || kl_p_at_type(p, &p->tok))
        return false;
    switch (kl_p_peek(p, 1)->kind) {
    case KL_TK_COMMA:
    case KL_TK_RPAREN:
    case KL_TK_LBRACK:
    case KL_TK_ASSIGN: break;
    default: return false;
    }
    const char *name = kl_p_text(p, p->tok.span);
    if (p->kernel)
        kl_p_soft(p, KL_K0129, p->tok.span, "the parameter `%s` needs a type before its name",
                  name);
    else
        KL_P_FIX(kl_p_soft(p, KL_K0129, p->tok.span,
                           "the parameter `%s` needs a type; `auto` takes any", name),
                 kl_p_before(p->tok.span), "auto ");
    return true;
}

static kl_node *parameter(kl_parser *p)
{
    if (kl_p_at_type_decl(p))
        return type_param(p);
    kl_span beg = p->tok.span, at;
    uint16_t flags = kl_p_qualifiers(p, true);
    kl_node *type, *early = NULL, *none = NULL;
    bool pointer = false;
    if (lacks_type(p)) {
        type = kl_p_error(p, p->tok.span);
    } else {
        struct kl_token t = p->tok;
        bool named =
            t.kind == KL_TK_NAME && kl_p_peek(p, 1)->kind == KL_TK_NAME && !kl_p_at_type(p, &t);
        if (named && !p->kernel)
            kl_p_declare(p, t.text, KL_NAME_TYPE); /* deduced from the argument */
        type = kl_p_type(p);
        if (named && p->kernel)
            kl_p_declare(p, t.text, KL_NAME_TYPE); /* one message for an undeclared T is enough */
        flags |= kl_p_qualifiers(p, true);
        pointer =
            kl_p_stars(p, "an array is `T name[n]`, or `T name[]` if its extent is not known");
        early = kl_p_misplaced_dims(p);
    }
    if (kl_p_at(p, KL_TK_AND) && kl_p_peek(p, 1)->kind == KL_TK_NAME) {
        kl_p_soft(p, KL_K0119, p->tok.span, "there are no references; arrays are passed by name");
        kl_p_next(p);
    }
    const char *name = kl_p_declared_name(p, "a parameter", &at);
    if (!name)
        return kl_p_error(p, beg);
    kl_p_declare(p, name, KL_NAME_VAR);
    kl_node *dims = kl_p_dims(p);
    if (!dims)
        dims = early;
    if (!dims && pointer)
        dims = kl_p_node(p, KL_N_DIMS, at, &none, 1);
    kl_node *kid[4] = {type, dims, kl_p_strides(p), NULL};
    if (!p->panic && kl_p_accept(p, KL_TK_ASSIGN))
        kid[3] = kl_p_expr(p, KL_P_VALUE);
    kl_node *n = kl_p_node(p, KL_N_PARAM, kl_span_join(beg, p->prev), kid, 4);
    n->name = name;
    n->name_span = at;
    n->flags = flags;
    return n;
}

static kl_node *parameters(kl_parser *p)
{
    kl_span open = p->tok.span;
    kl_nodes kid = {0};
    if (!kl_p_expect(p, KL_TK_LPAREN, "before the parameters"))
        return kl_p_error(p, open);
    if (kl_p_at(p, KL_TK_VOID) && kl_p_peek(p, 1)->kind == KL_TK_RPAREN)
        kl_p_next(p); /* (void), as in C */
    while (!kl_p_at(p, KL_TK_RPAREN) && !p->panic) {
        kl_node *n = parameter(p);
        if (n->kind == KL_N_PARAM)
            kl_push(p->a, &kid, n);
        if (p->panic || kl_p_at(p, KL_TK_RPAREN))
            break;
        if (!kl_p_accept(p, KL_TK_COMMA)) {
            if (kl_p_at(p, KL_TK_LBRACE) || kl_p_at(p, KL_TK_RBRACE) || kl_p_at(p, KL_TK_EOF))
                break;
            if (p->tok.bol || kl_p_at(p, KL_TK_SEMI)) {
                KL_P_FIX(kl_p_soft(p, KL_K0112, kl_p_after(p), "missing `,` between parameters"),
                         kl_p_after(p), ",");
                kl_p_accept(p, KL_TK_SEMI);
            } else {
                kl_p_fail(p, KL_K0114, p->tok.span,
                          "expected `,` or `)` behind a parameter, found %s", kl_p_found(p));
            }
        } else if (kl_p_at(p, KL_TK_RPAREN)) {
            kl_p_soft(p, KL_K0114, p->prev, "a parameter is missing behind this `,`");
        }
    }
    kl_p_close(p, KL_TK_RPAREN, open);
    return kl_p_node(p, KL_N_PARAMS, kl_span_join(open, p->prev), kid.v, kid.n);
}

/* ---- clauses of a kernel ---- */

static void values(kl_parser *p, kl_nodes *kid)
{
    do
        kl_push(p->a, kid, kl_p_expr(p, KL_P_VALUE));
    while (!p->panic && kl_p_accept(p, KL_TK_COMMA));
}

static kl_node *grid_clause(kl_parser *p, kl_span word)
{
    kl_nodes kid = {0};
    kl_span open = p->tok.span;
    kl_p_next(p);
    if (!kl_p_at(p, KL_TK_RPAREN))
        values(p, &kid);
    kl_p_close(p, KL_TK_RPAREN, open);
    return kl_p_node(p, KL_N_GRID, kl_span_join(word, p->prev), kid.v, kid.n);
}

static kl_node *tune_clause(kl_parser *p, kl_span word)
{
    kl_nodes var = {0};
    kl_span open = p->tok.span;
    kl_p_next(p);
    do {
        if (var.n && kl_p_at(p, KL_TK_RPAREN))
            break; /* a last `;` */
        kl_nodes val = {0};
        kl_span at = p->tok.span;
        const char *name = kl_p_name(p, "the constant to tune");
        if (!name || !kl_p_expect(p, KL_TK_COLON, "between a constant and its values"))
            break;
        values(p, &val);
        kl_node *n = kl_p_node(p, KL_N_TUNEVAR, kl_span_join(at, p->prev), val.v, val.n);
        n->name = name;
        n->name_span = at;
        kl_push(p->a, &var, n);
    } while (!p->panic && kl_p_accept(p, KL_TK_SEMI));
    kl_p_close(p, KL_TK_RPAREN, open);
    return kl_p_node(p, KL_N_TUNE, kl_span_join(word, p->prev), var.v, var.n);
}

static kl_node *number_clause(kl_parser *p, kl_span word, enum kl_node_kind kind)
{
    kl_span open = p->tok.span;
    kl_p_next(p);
    kl_node *e = kl_p_expr(p, KL_P_VALUE);
    kl_p_close(p, KL_TK_RPAREN, open);
    return kl_p_node(p, kind, kl_span_join(word, p->prev), &e, 1);
}

static kl_node *math_clause(kl_parser *p, kl_span word)
{
    kl_span open = p->tok.span;
    kl_p_next(p);
    kl_node *cond = NULL;
    const char *name = kl_p_name(p, "`fast`");
    if (name && kl_p_accept(p, KL_TK_COMMA))
        cond = kl_p_expr(p, KL_P_CONDITION);
    kl_p_close(p, KL_TK_RPAREN, open);
    if (!name)
        return kl_p_error(p, word);
    kl_node *n = kl_p_node(p, KL_N_MATH, kl_span_join(word, p->prev), &cond, 1);
    n->name = name;
    return n;
}

static const struct {
    const char *word;
    enum kl_node_kind kind;
} clause_words[] = {
    {"grid", KL_N_GRID},   {"requires", KL_N_REQUIRES}, {"tune", KL_N_TUNE},
    {"warps", KL_N_WARPS}, {"stages", KL_N_STAGES},     {"cluster", KL_N_CLUSTER},
    {"math", KL_N_MATH},
};
enum { NCLAUSE = sizeof clause_words / sizeof *clause_words };

static kl_node *clause(kl_parser *p)
{
    const char *words[NCLAUSE];
    struct kl_token t = p->tok;
    int k = -1;
    for (int i = 0; i < NCLAUSE; i++) {
        words[i] = clause_words[i].word;
        if (strcmp(t.text, words[i]) == 0)
            k = i;
    }
    kl_p_next(p);
    if (k < 0) {
        const char *near = kl_nearest(t.text, words, NCLAUSE);
        struct kl_diag *g = kl_p_soft(p, KL_K0128, t.span,
                                      "`%s` is not a clause of a kernel; there are grid, requires, "
                                      "tune, warps, stages, cluster and math",
                                      kl_p_text(p, t.span));
        if (near)
            KL_P_FIX(g, t.span, "%s", near);
        if (kl_p_at(p, KL_TK_LPAREN))
            kl_p_skip_group(p);
        return NULL;
    }
    enum kl_node_kind kind = clause_words[k].kind;
    if (!kl_p_at(p, KL_TK_LPAREN)) {
        kl_p_fail(p, KL_K0114, p->tok.span, "expected `(` behind `%s`, found %s", t.text,
                  kl_p_found(p));
        return NULL;
    }
    kl_node *n;
    switch (kind) {
    case KL_N_GRID: n = grid_clause(p, t.span); break;
    case KL_N_TUNE: n = tune_clause(p, t.span); break;
    case KL_N_MATH: n = math_clause(p, t.span); break;
    case KL_N_REQUIRES: return kl_p_claim(p, kind, t.span);
    default: n = number_clause(p, t.span, kind); break;
    }
    n->name_span = t.span;
    return n;
}

static kl_node *clauses(kl_parser *p)
{
    kl_nodes kid = {0};
    kl_span beg = p->tok.span;
    while (kl_p_at(p, KL_TK_NAME) && !p->panic && !kl_p_outer(p)) {
        kl_node *n = clause(p);
        if (n && n->kind != KL_N_ERROR)
            kl_push(p->a, &kid, n);
    }
    return kl_p_node(p, KL_N_CLAUSES, kid.n ? kl_span_join(beg, p->prev) : kl_p_before(beg), kid.v,
                     kid.n);
}

/* ---- functions and kernels ---- */

/* Behind an error in the head: on to the body, if there is one. */
static void to_body(kl_parser *p)
{
    while (p->panic && !kl_p_at(p, KL_TK_LBRACE) && !kl_p_at(p, KL_TK_RBRACE) &&
           !kl_p_at(p, KL_TK_SEMI) && !kl_p_at(p, KL_TK_EOF) && !kl_p_outer(p))
        kl_p_next(p);
    if (kl_p_at(p, KL_TK_LBRACE))
        p->panic = false;
}

static kl_node *body(kl_parser *p, const char *what)
{
    to_body(p);
    kl_span at = p->tok.span;
    if (kl_p_at(p, KL_TK_LBRACE))
        return kl_p_block(p);
    if (kl_p_at(p, KL_TK_SEMI)) {
        kl_p_soft(p, KL_K0127, at, "a %s needs its body here; it may be used before it is declared",
                  what);
        kl_p_next(p);
    } else {
        kl_p_fail(p, KL_K0114, at, "expected `{` and the body of the %s, found %s", what,
                  kl_p_found(p));
    }
    return kl_p_error(p, at);
}

/* At the name of the kernel. */
static kl_node *kernel(kl_parser *p, kl_span beg)
{
    kl_span at = p->tok.span;
    uint32_t mark = kl_p_mark(p);
    if (kl_p_at(p, KL_TK_VOID)) {
        kl_p_soft(p, KL_K0127, at, "a kernel has no result, so `void` is left out");
        kl_p_next(p);
        at = p->tok.span;
    }
    const char *name = kl_p_name(p, "the kernel's name");
    kl_node *kid[3];
    p->kernel = true;
    kid[0] = p->panic ? kl_p_error(p, at) : parameters(p);
    p->kernel = false;
    kid[1] = clauses(p);
    kid[2] = body(p, "kernel");
    kl_p_release(p, mark);
    if (!name || kid[0]->kind != KL_N_PARAMS || kid[1]->kind != KL_N_CLAUSES ||
        kid[2]->kind != KL_N_BLOCK)
        return kl_p_error(p, kl_span_join(beg, p->prev));
    kl_node *n = kl_p_node(p, KL_N_KERNEL, kl_span_join(beg, p->prev), kid, 3);
    n->name = name;
    n->name_span = at;
    return n;
}

/* At the `(` behind result type and name. */
static kl_node *function(kl_parser *p, kl_span beg, kl_node *type, const char *name, kl_span at,
                         uint32_t mark)
{
    kl_node *kid[3] = {type, parameters(p), NULL};
    if (type->kind == KL_N_TYPE && !p->panic && !(type->flags & KL_NF_STRUCT)) {
        /* `T f(T x)`: only now is it known that T is a type */
        const char *t = type->name;
        bool known = strcmp(t, "auto") == 0 || strcmp(t, "void") == 0 ||
                     kl_elem_by_name(t, (uint32_t)strlen(t)) || kl_p_lookup(p, t) == KL_NAME_TYPE;
        if (!known) {
            kl_p_soft(p, KL_K0204, type->span, "unknown type `%s`; no parameter has it either",
                      kl_p_text(p, type->span));
            kid[0] = kl_p_error(p, type->span);
        }
    }
    kid[2] = body(p, "function");
    kl_p_release(p, mark);
    if (kid[1]->kind != KL_N_PARAMS || kid[2]->kind != KL_N_BLOCK)
        return kl_p_error(p, kl_span_join(beg, p->prev));
    kl_node *n = kl_p_node(p, KL_N_FUNC, kl_span_join(beg, p->prev), kid, 3);
    n->name = name;
    n->name_span = at;
    return n;
}

/* A misspelt `kernel name(`, or the word of CUDA or OpenCL, where a result type would stand. */
static bool almost_kernel(kl_parser *p)
{
    static const char *const word[] = {"kernel"};
    if (kl_p_is(&p->tok, "__global__") || kl_p_is(&p->tok, "__kernel"))
        return true;
    if (!kl_p_at(p, KL_TK_NAME) || kl_p_at_type(p, &p->tok) ||
        kl_p_peek(p, 1)->kind != KL_TK_NAME || kl_p_peek(p, 2)->kind != KL_TK_LPAREN)
        return false;
    return kl_nearest(p->tok.text, word, 1) != NULL;
}

/* Behind something that cannot stand outside functions: on to what can, so that the rest of
 * a body whose `}` came too early is one error. */
static void skip_to_outer(kl_parser *p)
{
    while (!kl_p_at(p, KL_TK_EOF)) {
        if (kl_p_at(p, KL_TK_RBRACE)) {
            kl_p_next(p);
            break;
        }
        if (kl_p_at(p, KL_TK_LBRACE))
            kl_p_skip_group(p);
        else
            kl_p_next(p);
        uint32_t off = p->tok.span.beg - p->lex.base;
        bool margin = p->tok.bol && (off == 0 || p->lex.text[off - 1] == '\n');
        if (kl_p_outer(p) || kl_p_at(p, KL_TK_HASH) ||
            (margin && (kl_p_at_decl(p) || kl_p_at(p, KL_TK_STRUCT))))
            break;
    }
    p->panic = false;
}

/* typedef, enum, union outside functions. */
static kl_node *foreign_decl(kl_parser *p)
{
    kl_span beg = p->tok.span;
    kl_p_fail(p, KL_K0118, beg,
              kl_p_at(p, KL_TK_TYPEDEF) ? "there is no typedef; a type's name is `type A = f32;`"
              : kl_p_at(p, KL_TK_ENUM)
                  ? "there is no enum; constants are `constexpr i64 NAME = value;`"
                  : "there is no union; bitcast(T, x) gives the bits of x another type");
    return kl_p_error(p, beg);
}

kl_node *kl_p_outer_decl(kl_parser *p)
{
    kl_span beg = p->tok.span;
    if (kl_p_accept(p, KL_TK_KERNEL))
        return kernel(p, beg);
    if (kl_p_at(p, KL_TK_TYPEDEF) || kl_p_at(p, KL_TK_ENUM) || kl_p_at(p, KL_TK_UNION))
        return foreign_decl(p);
    if (kl_p_is(&p->tok, "static_assert") && kl_p_peek(p, 1)->kind == KL_TK_LPAREN)
        return kl_p_static_assert(p);
    if (kl_p_at_struct_decl(p))
        return kl_p_struct_decl(p);
    if (kl_p_at_type_decl(p) && kl_p_peek(p, 2)->kind == KL_TK_ASSIGN)
        return kl_p_type_decl(p);
    if (almost_kernel(p)) {
        KL_P_FIX(kl_p_soft(p, KL_K0204, beg, "unknown type `%s`; did you mean `kernel`?",
                           kl_p_text(p, beg)),
                 beg, "kernel");
        kl_p_next(p);
        return kernel(p, beg);
    }
    if (kl_p_at(p, KL_TK_RBRACE)) {
        kl_p_soft(p, KL_K0113, beg, "nothing is open that this `}` closes");
        kl_p_next(p);
        return NULL;
    }
    if (!kl_p_at_decl(p)) {
        kl_p_fail(p, KL_K0127, beg, "expected a kernel, a function or a constant, found %s",
                  kl_p_found(p));
        skip_to_outer(p);
        return kl_p_error(p, beg);
    }

    uint16_t flags = kl_p_qualifiers(p, false);
    uint32_t mark = kl_p_mark(p);
    kl_node *type;
    if (kl_p_at(p, KL_TK_NAME) && kl_p_peek(p, 1)->kind == KL_TK_NAME &&
        kl_p_peek(p, 2)->kind == KL_TK_LPAREN && !kl_p_at_type(p, &p->tok)) {
        type = kl_p_node(p, KL_N_TYPE, p->tok.span, NULL, 0); /* a type that a parameter brings */
        type->name = p->tok.text;
        type->name_span = p->tok.span;
        kl_p_next(p);
    } else {
        type = kl_p_type(p);
    }
    if (p->panic)
        return kl_p_error(p, beg);
    kl_span at = p->tok.span;
    if (kl_p_at(p, KL_TK_NAME) && kl_p_peek(p, 1)->kind == KL_TK_LPAREN) {
        const char *name = kl_p_declared_name(p, "a function", &at);
        return function(p, beg, type, name, at, mark);
    }
    return kl_p_variables(p, beg, flags, type, true);
}
