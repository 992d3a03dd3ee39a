/* ast.h - tokens and the syntax tree.  One node struct; node.def says what the kids are. */
#ifndef KL_AST_H
#define KL_AST_H

#include "base/diag.h"

enum kl_tok {
    KL_TK_EOF, KL_TK_NAME, KL_TK_INT, KL_TK_DECIMAL, KL_TK_STRING, KL_TK_ERROR,
#define TOK(name, text) KL_TK_##name,
#define KEY(name, text) KL_TK_##name,
#include "lang/token.def"
    KL_NTOK
};
extern const char *const kl_tok_text[KL_NTOK];

struct kl_token {
    uint8_t kind;
    bool f32;         /* DECIMAL with suffix f; `1f` is one too */
    bool bol;         /* first on its line */
    kl_span span;
    const char *text; /* NAME: interned; STRING: bytes after escapes; DECIMAL: without suffix */
    uint64_t ival;    /* INT */
};

enum kl_node_kind {
#define NODE(name, doc) KL_N_##name,
#include "lang/node.def"
    KL_NNODE
};
extern const char *const kl_node_name[KL_NNODE];

enum { /* node flags */
    KL_NF_CONST = 1, KL_NF_CONSTEXPR = 2, KL_NF_GLOBAL = 4, KL_NF_OPTIONAL = 8,
    KL_NF_TYPEPARAM = 16, KL_NF_F32 = 32, KL_NF_LIB = 64, KL_NF_STRUCT = 128,
    KL_NF_UNROLL = 256, KL_NF_PIPELINE = 512, KL_NF_PAREN = 1024, /* written in parentheses */
    /* set by kl_check on the PARAMs of kernels */
    KL_NF_READ = 2048, KL_NF_WRITTEN = 4096, KL_NF_USED = 8192,
    KL_NF_DEBUG = 16384 /* the PARAM of debug.h; CALLs that may end the program */
};

typedef struct kl_node {
    uint8_t kind, op; /* op: enum kl_tok */
    uint16_t flags;
    uint32_t nkid;
    struct kl_node **kid;
    kl_span span;      /* all of it */
    kl_span name_span; /* the name, or the operator */
    const char *name;  /* interned in the module: equal names are equal pointers */
    uint64_t ival;
} kl_node;

/* A `//!` comment: the text behind it, without leading blanks. */
struct kl_testline { const char *text; kl_span span; };

/* Read an included file for the compiler.  from is the includer's name; system: <...>.
 * NULL: not found.  The text lives in a. */
typedef struct kl_includer {
    const char *(*read)(void *user, kl_arena *a, const char *from, const char *name, bool system,
                        uint32_t *len, const char **fullname);
    void *user;
} kl_includer;

typedef struct kl_module_ast {
    kl_arena *a;
    kl_srcmap src;
    kl_map names;        /* interning */
    kl_node *root;       /* MODULE */
    KL_VEC(kl_node *) kernels;
    KL_VEC(struct kl_testline) tests;
    const struct kl_tuned *tuned; /* what launches take by themselves (tuned.h); set by the library */
    uint32_t ntuned;
} kl_module_ast;

/* The same pointer for the same bytes. */
const char *kl_intern(kl_module_ast *m, const char *s, size_t n);

/* Parse a source and what it includes.  Errors go to d; the tree is complete as far as
 * it could be parsed, with ERROR nodes in between.  d->src points into the result. */
kl_module_ast *kl_parse(kl_arena *a, const char *name, const char *text, size_t len,
                        const kl_includer *inc, kl_diags *d);
void kl_ast_print(kl_buf *b, const kl_module_ast *m);
void kl_ast_print_node(kl_buf *b, const kl_node *n);

/* lex.c */
typedef struct kl_lexer {
    kl_module_ast *m;
    kl_diags *d;
    const char *text, *p, *end;
    uint32_t base;
    bool bol;
} kl_lexer;
void kl_lex_init(kl_lexer *l, kl_module_ast *m, uint32_t file, kl_diags *d);
struct kl_token kl_lex(kl_lexer *l);

/* Sources embedded in the library: "act.kiln" ...; NULL if there is none. */
const char *kl_embedded(const char *name, uint32_t *len);
const char *kl_embedded_tune(const char *name, uint32_t *len); /* "kernels/gemm.kiln.tune" */
const char *kl_embedded_tune_name(uint32_t i); /* NULL past the end */
const char *kl_embedded_name(uint32_t i); /* NULL past the end */

#endif
