/* parse_decl.c - declarations: variables, parameters, functions, kernels and their clauses.
 *
 * `global`, `optional`, `type`, `stride` and the clauses are words only where they can
 * stand; elsewhere they are names like any other. */
#include "lang/parse.h"

/* ---- words before a type ---- */

static const struct {
    enum kl_tok kind;
    const char *instead;
} foreign[] = {
    {KL_TK_STATIC, "it is not needed: every function is expanded in place"},
    {KL_TK_INLINE, "it is not needed: every function is expanded in place"},
    {KL_TK_EXTERN, "functions of other files come by #include"},
    {KL_TK_VOLATILE, "memory that programs share is accessed by atomics"},
    {KL_TK_RESTRICT, "whether arrays share memory is found at launch"},
};

/* static, volatile …: reported and passed over. */
static bool skip_foreign(kl_parser *p)
{
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (kl_p_at(p, foreign[i].kind)) {
            kl_p_soft(p, KL_K0118, p->tok.span, "there is no `%s`; %s", kl_tok_text[p->tok.kind],
                      foreign[i].instead);
            kl_p_next(p);
            return true;
        }
    return false;
}

/* Whether the token can go on with a declaration behind `global` or `optional`. */
static bool goes_on(const struct kl_token *t)
{
    return t->kind == KL_TK_NAME || t->kind == KL_TK_CONST || t->kind == KL_TK_CONSTEXPR ||
           t->kind == KL_TK_AUTO || t->kind == KL_TK_STRUCT;
}

uint16_t kl_p_qualifiers(kl_parser *p, bool param)
{
    uint16_t flags = 0;
    for (;;) {
        if (kl_p_accept(p, KL_TK_CONST))
            flags |= KL_NF_CONST;
        else if (kl_p_accept(p, KL_TK_CONSTEXPR))
            flags |= KL_NF_CONSTEXPR;
        else if (kl_p_is(&p->tok, "global") && goes_on(kl_p_peek(p, 1)))
            flags |= KL_NF_GLOBAL, kl_p_next(p);
        else if (param && kl_p_is(&p->tok, "optional") && goes_on(kl_p_peek(p, 1)))
            flags |= KL_NF_OPTIONAL, kl_p_next(p);
        else if (!skip_foreign(p))
            return flags;
    }
}

bool kl_p_at_decl(kl_parser *p)
{
    switch (p->tok.kind) {
    case KL_TK_CONST:
    case KL_TK_CONSTEXPR:
    case KL_TK_AUTO:
    case KL_TK_VOID:
    case KL_TK_STRUCT:
    case KL_TK_STATIC:
    case KL_TK_INLINE:
    case KL_TK_EXTERN:
    case KL_TK_VOLATILE:
    case KL_TK_RESTRICT: return true;
    case KL_TK_NAME: break;
    default: return false;
    }
    const struct kl_token *next = kl_p_peek(p, 1);
    if (next->kind == KL_TK_NAME) /* NAME NAME is nothing else */
        return !kl_p_is(next, "and") && !kl_p_is(next, "or");
    if (kl_p_is(&p->tok, "global"))
        return goes_on(next);
    /* `f32 *p`, `f32[4] x`, `f32 = 1`; but f32(x) is a cast in C++ */
    return kl_p_at_type(p, &p->tok) && next->kind != KL_TK_LPAREN &&
           (!kl_p_c_type(p->tok.text, NULL) || next->kind == KL_TK_MUL);
}

/* `*` behind a type: reported.  true: there was one. */
bool kl_p_stars(kl_parser *p, const char *instead)
{
    if (!kl_p_at(p, KL_TK_MUL))
        return false;
    kl_p_soft(p, KL_K0119, p->tok.span, "there are no pointers; %s", instead);
    while (kl_p_accept(p, KL_TK_MUL) || kl_p_accept(p, KL_TK_RESTRICT) ||
           kl_p_accept(p, KL_TK_CONST))
        ;
    return true;
}

/* The name that a declaration gives. */
const char *kl_p_declared_name(kl_parser *p, const char *what, kl_span *at)
{
    *at = p->tok.span;
    if (kl_p_at(p, KL_TK_NAME) && kl_elem_by_name(p->tok.text, (uint32_t)strlen(p->tok.text)))
        kl_p_soft(p, KL_K0129, p->tok.span, "`%s` is an element type and cannot name %s",
                  p->tok.text, what);
    return kl_p_name(p, what);
}

/* `stride(s0, s1)` behind the extents. */
kl_node *kl_p_strides(kl_parser *p)
{
    if (!kl_p_is(&p->tok, "stride") || kl_p_peek(p, 1)->kind != KL_TK_LPAREN)
        return NULL;
    kl_span beg = p->tok.span;
    kl_nodes s = {0};
    kl_p_next(p);
    kl_span open = p->tok.span;
    kl_p_next(p);
    do
        kl_push(p->a, &s, kl_p_expr(p, KL_P_VALUE));
    while (!p->panic && kl_p_accept(p, KL_TK_COMMA));
    kl_p_close(p, KL_TK_RPAREN, open);
    kl_node *n = kl_p_node(p, KL_N_STRIDES, kl_span_join(beg, p->prev), s.v, s.n);
    n->name_span = beg;
    return n;
}

/* ---- variables ---- */

/* Sizes behind the type, as in `f32[4] x`: reported, and taken behind the name. */
kl_node *kl_p_misplaced_dims(kl_parser *p)
{
    if (!kl_p_at(p, KL_TK_LBRACK) || p->panic)
        return NULL;
    kl_span beg = p->tok.span;
    kl_node *dims = kl_p_dims(p);
    kl_p_soft(p, KL_K0129, kl_span_join(beg, p->prev),
              "sizes stand behind the name, as in `f32 x[4]`");
    return dims;
}

/* { 1, 2 } or {{1, 2}, {3, 4}}: the elements of a constexpr tile, at the brace. */
static kl_node *elements(kl_parser *p)
{
    kl_span open = p->tok.span;
    kl_nodes kid = {0};
    if (!kl_p_enter(p))
        return kl_p_error(p, open);
    kl_p_next(p);
    while (!kl_p_at(p, KL_TK_RBRACE) && !p->panic) {
        kl_push(p->a, &kid, kl_p_at(p, KL_TK_LBRACE) ? elements(p) : kl_p_expr(p, KL_P_VALUE));
        if (!kl_p_accept(p, KL_TK_COMMA))
            break;
    }
    kl_p_close(p, KL_TK_RBRACE, open);
    kl_p_leave(p);
    return kl_p_node(p, KL_N_BRACES, kl_span_join(open, p->prev), kid.v, kid.n);
}

/* What stands behind the `=`: braces are the elements of a constexpr tile, or a struct's members. */
static kl_node *initialiser(kl_parser *p, kl_node *type, const kl_node *dims, bool constant)
{
    if (!kl_p_at(p, KL_TK_LBRACE))
        return kl_p_expr(p, KL_P_VALUE);
    if (type && type->flags & KL_NF_STRUCT && !dims)
        return kl_p_literal(p, type, p->tok.span);
    return constant && dims ? elements(p) : kl_p_expr(p, KL_P_VALUE);
}

static kl_node *variable(kl_parser *p, kl_node *type, kl_node *dims, bool constant)
{
    kl_span at;
    const char *name = kl_p_declared_name(p, "a variable", &at);
    if (!name)
        return NULL;
    kl_p_declare(p, name, KL_NAME_VAR);
    kl_node *own = kl_p_dims(p);
    kl_node *kid[3] = {own ? own : dims, kl_p_strides(p), NULL};
    if (!p->panic && kl_p_accept(p, KL_TK_ASSIGN))
        kid[2] = initialiser(p, type, kid[0], constant);
    kl_node *n = kl_p_node(p, KL_N_VAR, kl_span_join(at, p->prev), kid, 3);
    n->name = name;
    n->name_span = at;
    return n;
}

/* The variables of a declaration behind its type. */
kl_node *kl_p_variables(kl_parser *p, kl_span beg, uint16_t flags, kl_node *type, bool semi)
{
    kl_nodes kid = {0};
    kl_push(p->a, &kid, type);
    kl_p_stars(p, "an array inside a function is `global T name[n] = &x[i];`");
    kl_node *dims = kl_p_misplaced_dims(p);
    do {
        kl_node *v = variable(p, type, dims, flags & KL_NF_CONSTEXPR);
        if (v)
            kl_push(p->a, &kid, v);
    } while (!p->panic && kl_p_accept(p, KL_TK_COMMA));
    if (semi)
        kl_p_semi(p, "a declaration");
    kl_node *n = kl_p_node(p, KL_N_DECL, kl_span_join(beg, p->prev), kid.v, kid.n);
    n->flags = flags;
    n->name_span = type->span;
    return n;
}

/* `type A = acc(T);`, at the word. */
kl_node *kl_p_type_decl(kl_parser *p)
{
    kl_span beg = p->tok.span, at;
    kl_p_next(p);
    const char *name = kl_p_declared_name(p, "a type", &at);
    if (!name || !kl_p_expect(p, KL_TK_ASSIGN, "behind the name of a type"))
        return kl_p_error(p, beg);
    kl_node *v = kl_p_type_or_expr(p);
    kl_p_declare(p, name, KL_NAME_TYPE);
    kl_p_semi(p, "a declaration");
    kl_node *n = kl_p_node(p, KL_N_TYPEDECL, kl_span_join(beg, p->prev), &v, 1);
    n->name = name;
    n->name_span = at;
    return n;
}

/* A member's declaration in the braces of a struct. */
static kl_node *members(kl_parser *p)
{
    kl_span beg = p->tok.span;
    uint16_t flags = kl_p_qualifiers(p, false);
    kl_node *type = kl_p_type(p);
    if (p->panic)
        return kl_p_error(p, beg);
    return kl_p_variables(p, beg, flags, type, true);
}

/* `struct name { … };`, at the word. */
kl_node *kl_p_struct_decl(kl_parser *p)
{
    kl_span beg = p->tok.span, at;
    kl_nodes kid = {0};
    kl_p_next(p);
    at = p->tok.span;
    const char *name = kl_p_name(p, "the struct's name");
    if (!name) {
        kl_p_skip_group(p);
        return kl_p_error(p, beg);
    }
    kl_span open = p->tok.span;
    kl_p_next(p);
    uint32_t mark = kl_p_mark(p); /* members are no variables */
    while (!kl_p_at(p, KL_TK_RBRACE) && !kl_p_at(p, KL_TK_EOF) && !p->panic && !kl_p_outer(p))
        kl_push(p->a, &kid, members(p));
    kl_p_release(p, mark);
    kl_p_close(p, KL_TK_RBRACE, open);
    kl_p_semi(p, "a struct");
    kl_node *n = kl_p_node(p, KL_N_STRUCT, kl_span_join(beg, p->prev), kid.v, kid.n);
    n->name = name;
    n->name_span = at;
    return n;
}

bool kl_p_at_struct_decl(kl_parser *p)
{
    if (!kl_p_at(p, KL_TK_STRUCT))
        return false;
    return kl_p_peek(p, 1)->kind == KL_TK_LBRACE || kl_p_peek(p, 2)->kind == KL_TK_LBRACE;
}

bool kl_p_at_type_decl(kl_parser *p)
{
    return kl_p_is(&p->tok, "type") && kl_p_peek(p, 1)->kind == KL_TK_NAME &&
           kl_p_lookup(p, p->tok.text) != KL_NAME_TYPE;
}

kl_node *kl_p_local(kl_parser *p, bool semi)
{
    if (kl_p_at_struct_decl(p))
        return kl_p_struct_decl(p);
    if (kl_p_at_type_decl(p))
        return kl_p_type_decl(p);
    kl_span beg = p->tok.span;
    uint16_t flags = kl_p_qualifiers(p, false);
    kl_node *type = kl_p_type(p);
    flags |= kl_p_qualifiers(p, false);
    if (p->panic)
        return kl_p_error(p, beg);
    if (kl_p_at(p, KL_TK_NAME) && kl_p_peek(p, 1)->kind == KL_TK_LPAREN) {
        kl_p_fail(p, KL_K0127, p->tok.span,
                  "a function stands outside others; is a `}` missing before it?");
        return kl_p_error(p, beg);
    }
    return kl_p_variables(p, beg, flags, type, semi);
}

kl_node *kl_p_claim(kl_parser *p, enum kl_node_kind kind, kl_span word)
{
    kl_span open = p->tok.span;
    if (!kl_p_expect(p, KL_TK_LPAREN, "behind the word"))
        return kl_p_error(p, word);
    kl_node *cond = kl_p_expr(p, KL_P_CONDITION);
    const char *text = NULL;
    if (!p->panic && kl_p_at(p, KL_TK_RPAREN))
        kl_p_soft(p, KL_K0114, p->tok.span,
                  "a text that says what must hold is missing: %s(condition, \"text\")",
                  kl_p_text(p, word));
    else if (!p->panic && kl_p_expect(p, KL_TK_COMMA, "behind the condition"))
        text = kl_p_string(p, "a text");
    kl_p_close(p, KL_TK_RPAREN, open);
    kl_node *n = kl_p_node(p, kind, kl_span_join(word, p->prev), &cond, 1);
    n->name = text ? text : kl_intern(p->m, "", 0);
    n->name_span = word;
    return n;
}

kl_node *kl_p_static_assert(kl_parser *p)
{
    kl_span word = p->tok.span;
    kl_p_next(p);
    kl_node *n = kl_p_claim(p, KL_N_SASSERT, word);
    kl_p_semi(p, "static_assert");
    return n;
}
