/* parse.h - the state of parsing PTX: lex.c reads words, parse.c directives, decode.c
 * instructions. */
#ifndef KL_SIM_PARSE_H
#define KL_SIM_PARSE_H

#include "sim/module.h"

enum sim_declkind { DECL_REG, DECL_RANGE, DECL_PARAM, DECL_SHARED, DECL_LOCAL, DECL_VAR,
                    DECL_SPECIAL, DECL_LABEL };

struct sim_decl {
    uint8_t kind, type, special;
    bool dynamic; /* extern shared memory without a size */
    uint32_t fn;  /* shared: function in which `at` holds, + 1 */
    uint32_t at;  /* register number; offset of memory; instruction of a label; variable */
    uint32_t size, align; /* memory: bytes.  A range: its length is size */
    uint32_t off;         /* register: bytes in the bank, or number of the predicate */
};

struct sim_fix { /* a branch whose label may come later */
    uint32_t ins, scope;
    const char *name;
    uint32_t len;
};
struct sim_dynfix { /* dynamic shared memory: its place is known at the end of the function */
    uint32_t ins;   /* SIM_NONE: a constant */
    uint32_t cst, size;
    int64_t add;
};

struct sim_parser {
    kl_arena *a;
    kl_srcmap *src;
    kl_diags *d;
    const char *text, *p, *end;
    uint32_t base; /* offset of text in the map */
    struct kl_sim *m;
    kl_map names, consts, forms; /* forms: instruction text to decoded words */
    KL_VEC(struct sim_decl) decl;
    KL_VEC(uint32_t) parent; /* of scopes */
    uint32_t scope;
    KL_VEC(struct sim_loc) loc;
    KL_VEC(const char *) file;
    KL_VEC(struct sim_fn) fn;
    KL_VEC(struct sim_var) var;
    KL_VEC(struct sim_form) form;
    kl_buf cst;
    /* the function being read */
    struct sim_fn *f;
    KL_VEC(struct sim_ins) ins;
    KL_VEC(struct sim_opnd) opnd;
    KL_VEC(struct sim_special) special;
    KL_VEC(struct sim_fix) fix;
    KL_VEC(struct sim_dynfix) dynfix;
    uint32_t shared_at, local_at, dyn_align;
    uint32_t guard_reg; /* number of the guard for the check of written registers */
};

/* What the words of an instruction say. */
struct sim_form {
    uint32_t row; /* SIM_NONE: no such form */
    struct sim_ins proto;
    bool policy; /* one more operand at the end, a cache policy */
};

enum { PTX_MAX_NAME = 250 };

/* lex.c */
bool kl_sp_letter(char c);
bool kl_sp_digit(char c);
void kl_sp_skip(struct sim_parser *s); /* blanks and comments */
bool kl_sp_char(struct sim_parser *s, char c); /* skips and takes c if it is next */
uint32_t kl_sp_name(struct sim_parser *s, const char **name); /* 0: no name here */
kl_span kl_sp_span(const struct sim_parser *s, const char *from, const char *to);
void kl_sp_error(struct sim_parser *s, enum kl_code code, const char *from, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* An integer or a float as bits of `size` bytes; false if none is here. */
bool kl_sp_number(struct sim_parser *s, uint32_t size, bool flt, uint64_t *bits);

/* names in scopes; index into decl or SIM_NONE */
uint32_t kl_sp_find(struct sim_parser *s, uint32_t scope, const char *name, uint32_t len);
uint32_t kl_sp_declare(struct sim_parser *s, const char *name, uint32_t len, struct sim_decl x);

/* declare.c */
bool kl_sp_is(const char *w, uint32_t n, const char *text);
/* The word behind a dot: letters, digits and underscores; its length with the dot, or 0. */
uint32_t kl_sp_directive(struct sim_parser *s, const char **name);
bool kl_sp_integer(struct sim_parser *s, uint64_t max, uint64_t *v);
/* Type words and attributes before a name: .align 16 .b8, .u64 .ptr .global .align 4 */
bool kl_sp_typed(struct sim_parser *s, uint8_t *type, uint32_t *align);
/* name[2][3]; count: elements, 0 for [] */
bool kl_sp_declarator(struct sim_parser *s, const char **name, uint32_t *len, uint64_t *count,
                       uint64_t max);
bool kl_sp_new_name(struct sim_parser *s, const char *name, uint32_t len, struct sim_decl x);
bool kl_sp_reg(struct sim_parser *s);
bool kl_sp_shared(struct sim_parser *s, bool ext);
bool kl_sp_local(struct sim_parser *s);
bool kl_sp_variable(struct sim_parser *s, bool ext);

/* words.c */
void kl_sp_form(struct sim_form *f, const char *s, uint32_t n);

/* decode.c: one instruction at s->p, after its guard; false after an error */
bool kl_sp_instruction(struct sim_parser *s, const char *from, uint32_t guard, bool guardneg);
/* The register number of a declaration (allocates storage on first use). */
bool kl_sp_register(struct sim_parser *s, struct sim_opnd *o, const char *name, uint32_t len);
uint32_t kl_sp_shared_at(struct sim_parser *s, struct sim_decl *x);

#endif
