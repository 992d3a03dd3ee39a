/* parse.h - what the files of the parser share: tokens with lookahead, errors and
 * recovery, known type names.
 *
 * Errors.  A soft error is reported and parsing goes on as if the right thing had
 * been written.  A failure puts the parser in panic: nothing more is reported and
 * every loop ends, until kl_p_close finds the bracket or kl_p_sync the statement at
 * which parsing resumes.  What could not be parsed is an ERROR node. */
#ifndef KL_PARSE_H
#define KL_PARSE_H

#include "base/elem.h"
#include "lang/ast.h"

enum {
    KL_P_DEPTH = 200,   /* nested brackets, operators and blocks */
    KL_P_HEIGHT = 1000, /* height of the tree: a + b + c + … grows it as well */
    KL_P_FILES = 64     /* includes inside includes */
};

enum kl_namekind { KL_NAME_NONE, KL_NAME_TYPE, KL_NAME_VAR };

struct kl_undo {
    const char *name;
    uint32_t was;
};

typedef KL_VEC(kl_node *) kl_nodes;

typedef struct kl_parser {
    kl_module_ast *m;
    kl_arena *a;
    kl_diags *d;
    const kl_includer *inc;
    kl_lexer lex;
    struct kl_token tok, look[3];
    uint32_t nlook;
    kl_span prev;     /* the token before tok */
    bool panic;       /* after a failure, until parsing resumes */
    bool dead;        /* nothing more is read */
    bool kernel;      /* inside a kernel's parameters */
    uint32_t depth, nfile;
    uint32_t stmt_beg; /* where the statement begins in which ++ may stand */
    kl_map scope;      /* interned name (the pointer) -> enum kl_namekind */
    KL_VEC(struct kl_undo) undo;
} kl_parser;

/* ---- parse.c: tokens, errors, recovery ---- */

void kl_p_next(kl_parser *p);
const struct kl_token *kl_p_peek(kl_parser *p, uint32_t i); /* i = 1: the token behind tok */
bool kl_p_accept(kl_parser *p, enum kl_tok kind);
static inline bool kl_p_at(const kl_parser *p, enum kl_tok kind)
{
    return p->tok.kind == kind;
}
static inline bool kl_p_is(const struct kl_token *t, const char *word)
{
    return t->kind == KL_TK_NAME && strcmp(t->text, word) == 0;
}

/* Both return NULL if the message is suppressed. */
struct kl_diag *kl_p_soft(kl_parser *p, enum kl_code code, kl_span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
struct kl_diag *kl_p_fail(kl_parser *p, enum kl_code code, kl_span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Notes and fixes of a message that may be suppressed. */
#define KL_P_FIX(g, ...)                                                                           \
    do {                                                                                           \
        struct kl_diag *g_ = (g);                                                                  \
        if (g_)                                                                                    \
            kl_fix(g_, __VA_ARGS__);                                                               \
    } while (0)
#define KL_P_NOTE(g, ...)                                                                          \
    do {                                                                                           \
        struct kl_diag *g_ = (g);                                                                  \
        if (g_)                                                                                    \
            kl_note(g_, __VA_ARGS__);                                                              \
    } while (0)

/* The current token for a message: "`x`", "the end of the file". */
const char *kl_p_found(kl_parser *p);
/* Source text of a span, shortened for a message. */
const char *kl_p_text(kl_parser *p, kl_span s);

static inline kl_span kl_p_after(const kl_parser *p)
{
    return (kl_span){p->prev.end, p->prev.end};
}
static inline kl_span kl_p_before(kl_span s)
{
    return (kl_span){s.beg, s.beg};
}

/* Take `kind`, or fail with "expected KIND WHERE, found X". */
bool kl_p_expect(kl_parser *p, enum kl_tok kind, const char *where);
/* Take a name; NULL after a failure. */
const char *kl_p_name(kl_parser *p, const char *what);
/* Take the bracket that closes `open`.  In panic: skip to it and resume. */
bool kl_p_close(kl_parser *p, enum kl_tok kind, kl_span open);
/* Take the `;` of a statement. */
void kl_p_semi(kl_parser *p, const char *after);
/* Resume behind the next `;`, or at the next `}`. */
void kl_p_sync(kl_parser *p);
/* Skip a balanced (…), […] or {…} at which the parser stands. */
void kl_p_skip_group(kl_parser *p);
/* The token begins a declaration at the left margin that can only stand outside functions:
 * a `}` is missing before it. */
bool kl_p_outer(kl_parser *p);
/* Bounds the recursion: false after a failure; kl_p_leave undoes a true one. */
bool kl_p_enter(kl_parser *p);
static inline void kl_p_leave(kl_parser *p)
{
    p->depth--;
}

kl_node *kl_p_node(kl_parser *p, enum kl_node_kind kind, kl_span span, kl_node *const *kid,
                   uint32_t nkid);
kl_node *kl_p_error(kl_parser *p, kl_span span);

/* Names of types and variables, by block. */
enum kl_namekind kl_p_lookup(const kl_parser *p, const char *name);
void kl_p_declare(kl_parser *p, const char *name, enum kl_namekind kind);
static inline uint32_t kl_p_mark(const kl_parser *p)
{
    return p->undo.n;
}
void kl_p_release(kl_parser *p, uint32_t mark);

/* ---- parse_file.c ---- */

/* A directive inside a function: `#pragma unroll` gives flag and value. */
bool kl_p_loop_pragma(kl_parser *p, uint16_t *flag, uint64_t *val);

/* ---- parse_expr.c ---- */

enum kl_p_want { KL_P_VALUE, KL_P_CONDITION }; /* CONDITION: a `=` was meant as `==` */
kl_node *kl_p_expr(kl_parser *p, enum kl_p_want want);
kl_node *kl_p_conditional(kl_parser *p);  /* up to an assignment; may be of types */
kl_node *kl_p_type_or_expr(kl_parser *p); /* an expression, or an expression of types */
kl_node *kl_p_unary(kl_parser *p);
/* Report a type where a value must stand. */
kl_node *kl_p_value(kl_parser *p, kl_node *n);
bool kl_p_is_assign(uint8_t tok);

/* ---- parse_primary.c ---- */

kl_node *kl_p_postfix(kl_parser *p);
/* A text, adjacent ones joined; NULL after a failure. */
const char *kl_p_string(kl_parser *p, const char *what);
/* [e0][e1]... behind a declared name; NULL if there is none. */
kl_node *kl_p_dims(kl_parser *p);

/* ---- parse_type.c ---- */

/* C's name of a type: the Kiln name, or NULL.  word: it is a reserved word of C. */
const char *kl_p_c_type(const char *name, bool *word);
/* The token is a type's name here (element type, known type name, C's name of one). */
bool kl_p_at_type(kl_parser *p, const struct kl_token *t);
kl_node *kl_p_type(kl_parser *p);

/* ---- parse_decl.c ---- */

bool kl_p_at_decl(kl_parser *p);
/* A declaration inside a function, with its `;` if semi. */
kl_node *kl_p_local(kl_parser *p, bool semi);
/* const, constexpr, global, and optional if param: their flags. */
uint16_t kl_p_qualifiers(kl_parser *p, bool param);
/* `*` behind a type: reported.  true: there was one. */
bool kl_p_stars(kl_parser *p, const char *instead);
/* The name that a declaration gives; NULL after a failure. */
const char *kl_p_declared_name(kl_parser *p, const char *what, kl_span *at);
/* `stride(s0, s1)` behind the extents, or NULL. */
kl_node *kl_p_strides(kl_parser *p);
/* Sizes behind the type, as in `f32[4] x`: reported.  NULL: there are none. */
kl_node *kl_p_misplaced_dims(kl_parser *p);
/* The variables of a declaration behind its type. */
kl_node *kl_p_variables(kl_parser *p, kl_span beg, uint16_t flags, kl_node *type, bool semi);
bool kl_p_at_type_decl(kl_parser *p);
kl_node *kl_p_type_decl(kl_parser *p);
bool kl_p_at_struct_decl(kl_parser *p);
kl_node *kl_p_struct_decl(kl_parser *p);
kl_node *kl_p_static_assert(kl_parser *p);
/* ( condition, "text" ) of requires and static_assert, behind the word. */
kl_node *kl_p_literal(kl_parser *p, kl_node *type, kl_span beg); /* of a struct, at the brace */
kl_node *kl_p_claim(kl_parser *p, enum kl_node_kind kind, kl_span word);

/* ---- parse_kernel.c ---- */

/* A declaration outside functions; NULL if nothing comes of it. */
kl_node *kl_p_outer_decl(kl_parser *p);

/* ---- parse_stmt.c ---- */

kl_node *kl_p_block(kl_parser *p);

#endif
