/* reader.h - private to read*.c: IR text while it is read.  The first fault raises. */
#ifndef KL_READER_H
#define KL_READER_H

#include "ir/ir.h"
#include "ir/text.h"

enum tok { T_EOF, T_VAL, T_WORD, T_NUM, T_PUNCT };

struct reader {
    kl_fn *f;
    kl_arena *a;
    kl_diags *d;
    const char *text, *p, *end;
    uint32_t base; /* offset of text[0] in the source map */
    kl_map names;  /* of values, to their numbers */
    enum tok kind;
    const char *s; /* the token, of n characters */
    uint32_t n;
    uint32_t depth; /* of blocks */
};

struct vals { KL_VEC(kl_val) v; };
struct name { const char *s; uint32_t n; };
struct names { KL_VEC(struct name) v; };

/* ---- read_token.c ---- */

/* K0901 at the present token. */
_Noreturn void kl_rd_fail(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void kl_rd_next(struct reader *r);
bool kl_rd_is(const struct reader *r, const char *s);
bool kl_rd_accept(struct reader *r, const char *s); /* the next token follows if it is s */
void kl_rd_expect(struct reader *r, const char *s);
bool kl_rd_parse_u64(const char *s, uint32_t n, uint64_t *out);
int64_t kl_rd_int(struct reader *r);
uint32_t kl_rd_u32(struct reader *r, uint32_t max);
/* The bits of a constant written as s; false: it is none of that type. */
bool kl_rd_const(const char *s, uint32_t n, enum kl_elem e, uint64_t *out);

/* ---- read.c ---- */

kl_typ kl_rd_type(struct reader *r);
kl_val kl_rd_val(struct reader *r);
void kl_rd_vals(struct reader *r, struct vals *list); /* one or more, behind those of the list */
void kl_rd_define(struct reader *r, struct name at, kl_val v);

/* ---- read_ins.c ---- */

void kl_rd_stmts(struct reader *r, kl_build *b); /* until something else stands there */

#endif
