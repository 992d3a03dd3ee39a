/* fmt.h - what the files of the formatter share (fmt.c, fmt_line.c). */
#ifndef KL_FMT_H
#define KL_FMT_H

#include "lang/ast.h"

enum { KL_FMT_WIDTH = 100, KL_FMT_INDENT = 4 };

/* A token or a comment, in the order of the source. */
struct kl_item {
    const char *s;
    uint32_t n;
    uint8_t tk;       /* enum kl_tok; of a comment KL_TK_EOF */
    bool comment, line; /* line: a // comment */
    uint32_t nl;      /* newlines between the item before and this one */
    uint32_t col;     /* in the source, from 0 */
    uint8_t role;     /* set by kl_fmt_roles */
    uint32_t match;   /* of a bracket: its partner */
};

enum kl_role {
    KL_ROLE_NONE,
    KL_ROLE_UNARY,   /* an operator before its operand */
    KL_ROLE_BINARY,
    KL_ROLE_CAST,    /* the ) of a cast */
    KL_ROLE_SECTION, /* the : of a section */
    KL_ROLE_LABEL,   /* the : behind a name, as in tune() */
    KL_ROLE_VALUE    /* the { or } of a value */
};

/* A line of the result.  A comment at its end is placed when the lines around are known. */
struct kl_fmtline {
    const char *code; /* with its indentation; "": nothing before the comment */
    uint32_t ncode, width;
    const char *cmt; /* NULL: none */
    uint32_t ncmt;
    uint32_t col; /* where the comment wants to be */
};

struct kl_fmt {
    kl_arena *a;
    struct kl_item *item;
    uint32_t n, i; /* i: the next item to print */
    KL_VEC(struct kl_fmtline) line;
    bool fresh;        /* a blank line may not come next: begin of file or block */
    bool cmt_follows;  /* the item before was a comment at the end of a line, or continues one */
    uint32_t cmt_src;  /* that comment's column in the source, and */
    int32_t cmt_shift; /* how far its line moved */
    const char **type; /* names that stand for types, for spacing */
    uint32_t ntype;
};

/* What each bracket, colon and operator is. */
void kl_fmt_roles(struct kl_fmt *f);
/* Print items [beg, end) as one logical line; what is broken off goes `hang` columns further
 * than the indentation if nothing better is known. */
void kl_fmt_lay(struct kl_fmt *f, uint32_t beg, uint32_t end, uint32_t indent, uint32_t hang);
/* The width of items [beg, end) on one line without comments and breaks. */
uint32_t kl_fmt_width(const struct kl_fmt *f, uint32_t beg, uint32_t end);
void kl_fmt_blank(struct kl_fmt *f);
/* A comment of its own, its first line at the column. */
void kl_fmt_comment(struct kl_fmt *f, const struct kl_item *c, uint32_t column);
/* A comment at the end of the last line. */
void kl_fmt_trail(struct kl_fmt *f, const struct kl_item *c);
/* All lines as text. */
void kl_fmt_text(struct kl_fmt *f, kl_buf *out);
uint32_t kl_fmt_columns(const char *s, size_t n);

#endif
