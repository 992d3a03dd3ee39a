/* elab.h - private to src/lang: the elaborator.
 *
 * One walk over the tree serves three purposes, told apart by e->mode:
 *   CHECK  first phase: types and constants of the kernel may be unknown; no IR
 *   BIND   single expressions over known scalars, for launches; no IR
 *   LOWER  everything is known; IR comes out
 * An unknown constant is symbolic: its text is interned, so that sizes compare as
 * expressions.  What is unknown never causes an error; what is wrong in any case
 * does, in every mode.  An erroneous expression is V_ERR and silences what follows. */
#ifndef KL_ELAB_H
#define KL_ELAB_H

#include "lang/lang.h"

enum { KL_MAX_REGIONS = 200, KL_MAX_NESTED = 3000, KL_MAX_PIPELINE = 4095 };

typedef struct kl_dim {
    uint32_t n;   /* > 0: known */
    uint32_t sym; /* else: symbol, or 0 */
} kl_dim;

enum { KL_V_ERR, KL_V_TILE, KL_V_ARRAY, KL_V_ACCESS, KL_V_VOID, KL_V_STRUCT };

typedef struct kl_value {
    uint8_t kind, elem, rank; /* elem 0: unknown (CHECK) */
    bool konst;               /* known at compile time, if perhaps only to the second phase */
    bool known;               /* konst, and the number is here */
    bool untyped;             /* an integer or decimal that is exact until used */
    bool dec;                 /* untyped decimal: f and d hold it rounded once each */
    bool big;                 /* untyped integer from 2^63 on: i holds the bits of the u64 */
    kl_dim dim[KL_MAX_RANK];
    int64_t i;
    float f;
    double d;
    uint64_t bits;            /* typed and known */
    uint32_t sym;             /* konst and not known: its text */
    kl_val ir;                /* LOWER: set unless konst */
    struct kl_arr *arr;       /* ARRAY, ACCESS */
    struct kl_access *acc;    /* ACCESS */
    struct kl_sval *st;       /* STRUCT */
    kl_span span;
} kl_value;

/* A struct value: a tile for each member. */
struct kl_sval {
    const struct kl_sym *tag; /* NULL: of a built-in function */
    const char *name;
    uint32_t n;
    struct { const char *name; kl_value v; } m[];
};

/* An array: a parameter, or a view declared in the source. */
struct kl_arr {
    const char *name;
    kl_span decl;
    uint8_t elem;
    uint32_t rank;
    bool isconst, given, unbounded;
    kl_val ir;                            /* view */
    kl_value ext[KL_MAX_DIMS], str[KL_MAX_DIMS]; /* i64 scalars */
    kl_node *param;                       /* kernel's PARAM at the root: uses are noted there */
};

/* Subscripts of an array or tile. */
struct kl_access {
    uint32_t n;                    /* as many as dimensions */
    struct {
        kl_value first;            /* i64 scalar, or an index tile */
        int64_t step;              /* 0: scalar subscript or index tile */
        bool index;
        kl_dim count;
    } sub[KL_MAX_DIMS];
    uint8_t rank;                  /* > 0: index tiles without sections, all of this shape */
    kl_dim dim[KL_MAX_RANK];
    bool tile;                     /* of a tile, not of an array */
    bool bad;                      /* counts unknown because of an error */
};

enum { KL_S_VAR, KL_S_CONST, KL_S_TYPE, KL_S_ARRAY, KL_S_FUNC, KL_S_STRUCT };

/* The elements of a constexpr tile in row-major order; v NULL: some are known to the second phase. */
struct kl_table {
    uint32_t n;
    const kl_value *v;
};

typedef struct kl_sym {
    uint8_t kind, elem; /* TYPE: elem, 0 unknown */
    bool used, param, lib, isconst;
    const char *name;
    kl_span decl;
    uint32_t var;         /* VAR: index in e->var; of a struct: of its first member, others follow */
    kl_value val;         /* CONST; VAR: its type and shape */
    const struct kl_table *table; /* CONST: its elements, if it is a tile; val is the type */
    struct kl_arr *arr;
    kl_node *node;        /* FUNC; PARAM of the kernel; STRUCT */
    struct kl_scope *home; /* STRUCT: where its sizes and types are looked up */
    struct kl_sym *next;  /* in its scope */
} kl_sym;

typedef struct kl_scope {
    struct kl_scope *up;
    bool body; /* of a kernel or function: parameters are not declared again in it */
    kl_sym *head;
    struct kl_scope *outer; /* where lookups go on; up, but for a function's scope */
} kl_scope;

enum { KL_DEF, KL_UNDEF, KL_MAYBE };
struct kl_varstate {
    kl_val ir;
    uint8_t def;
};

struct kl_saved {
    struct kl_varstate *v;
    uint32_t cap;
};

struct kl_said {
    kl_span span;
    int code;
};

struct kl_loopctx {
    struct kl_loopctx *up;
    uint32_t brk, skip; /* variables (bool), 0: not needed */
};

/* One expansion of a function, or the kernel. */
struct kl_fctx {
    struct kl_fctx *up;
    const kl_node *fn;
    kl_span call;
    struct kl_loopctx *loop;
    uint32_t ret;      /* variable: has returned; 0: no early return */
    uint32_t retval;   /* variable; 0: none yet; of a struct: the first of its members' */
    uint32_t nret;     /* slots of retval */
    bool has_value;    /* a return gave a value */
    bool kernel, isvoid, lifted;
    uint8_t lift_rank;
    kl_dim lift_dim[KL_MAX_RANK];
    KL_VEC(const char *) taint; /* lifted: names whose value varies by element */
    uint8_t ret_elem;           /* declared; 0: auto, or a struct: */
    const kl_sym *ret_struct;
    kl_value ret_type;          /* type and shape of the result once known */
    kl_value result;
    uint32_t depth;
};

typedef struct kl_elab {
    enum { KL_CHECK, KL_BIND, KL_LOWER } mode;
    kl_arena *a;
    const kl_module_ast *m;
    kl_diags *d;
    kl_scope *scope, *file;
    KL_VEC(struct kl_varstate) var; /* [0] unused */
    KL_VEC(const char *) syms;      /* text of symbols; [0] unused */
    kl_map symmap;
    struct kl_fctx *fx;
    kl_fn *f;
    kl_build b;
    kl_val debug;      /* LOWER: view of the array of debug.h */
    int64_t num_sms;   /* BIND */
    uint32_t expanded; /* functions expanded so far: a limit against explosion */
    uint32_t quiet;    /* > 0: report nothing */
    bool trial;        /* CHECK within LOWER, to learn a type: leaves no trace in the tree */
    uint8_t want;      /* type that the `?:` about to be evaluated is moved to; 0: none */
    uint32_t nested;   /* expressions and statements open at once: a limit for the stack */
    uint32_t regions;  /* branches and loops open at once: a limit for IR */
    KL_VEC(struct kl_saved) pool; /* of copies of var, for reuse */
    uint32_t saved;    /* those in use */
    bool gave_up;      /* a limit was passed: what is wrong from here on follows from that */
    const kl_sym *folding; /* the function that a reduction or scan is expanding */
    KL_VEC(struct kl_said) said; /* a function expanded often is wrong once */
} kl_elab;

/* ---- elab.c: errors, scopes, symbols ---- */
struct kl_diag *kl_err(kl_elab *e, enum kl_code code, kl_span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A limit against explosion: reported once, and nothing else after it. */
void kl_limit(kl_elab *e, kl_span span, const char *text, const char *note);
kl_value kl_bad(kl_span span);
/* One branch or loop deeper.  false: reported, and nothing to undo. */
bool kl_deeper(kl_elab *e, kl_span span);
void kl_elab_init(kl_elab *e, int mode, kl_arena *a, const kl_module_ast *m, kl_diags *d);
void kl_scope_push(kl_elab *e, kl_scope *outer); /* NULL: the present scope */
void kl_scope_pop(kl_elab *e);
kl_sym *kl_sym_add(kl_elab *e, int kind, const char *name, kl_span decl); /* reports redefinition */
kl_sym *kl_sym_find(kl_elab *e, const char *name);
kl_sym *kl_tag_find(kl_elab *e, const char *name); /* a struct */
kl_sym *kl_sym_need(kl_elab *e, const kl_node *n); /* reports unknown names, proposes the nearest */
uint32_t kl_symbol(kl_elab *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *kl_const_text(kl_elab *e, const kl_value *v);
const char *kl_dims_text(kl_elab *e, const kl_value *v); /* "[16][8]"; "a scalar" */
const char *kl_type_text(kl_elab *e, const kl_value *v);  /* "f32[16][8]" */
uint32_t kl_var_new(kl_elab *e, kl_val ir, int def);
static inline bool kl_emitting(const kl_elab *e) { return e->mode == KL_LOWER; }

/* ---- value.c: constants, conversion, promotion, shapes ---- */
kl_value kl_int(int64_t i, kl_span span);
kl_value kl_uint(uint64_t i, kl_span s);
/* The untyped integer that a typed one holds. */
kl_value kl_int_of(enum kl_elem el, uint64_t bits, kl_span s);
/* A known integer constant, within an i64: what is larger becomes INT64_MAX. */
int64_t kl_const_i64(const kl_value *v);
/* ... in full. */
__extension__ typedef __int128 kl_i128;
kl_i128 kl_wide(const kl_value *v);
/* false: no integer of 64 bits, signed or unsigned. */
bool kl_from_wide(kl_i128 w, kl_span s, kl_value *out);                      /* untyped constant */
kl_value kl_typed(enum kl_elem el, uint64_t bits, kl_span s);   /* typed constant */
kl_value kl_rt(kl_elab *e, enum kl_elem el, uint32_t rank, const kl_dim *dim, kl_val ir, kl_span s);
kl_dim kl_dim_of(uint32_t n);
/* Is a tile of this shape within the limit of elements?  false: reported. */
bool kl_tile_fits(kl_elab *e, uint32_t rank, const kl_dim *dim, kl_span s);
/* Same size?  1 yes, 0 no, -1 unknown. */
int kl_dim_eq(kl_dim a, kl_dim b);
bool kl_dims_known(const kl_value *v);
kl_typ kl_irtype(kl_elab *e, enum kl_elem el, uint32_t rank, const kl_dim *dim);
kl_val kl_ir(kl_elab *e, const kl_value *v); /* the IR value; constants are built */
/* An untyped constant becomes one of type el; an error if it does not fit. */
kl_value kl_give_type(kl_elab *e, kl_value v, enum kl_elem el);
kl_value kl_concrete(kl_elab *e, kl_value v);              /* untyped: i32, i64 or f32 */
kl_value kl_promote(kl_elab *e, kl_value v);               /* storage types to their acc type */
kl_value kl_cast(kl_elab *e, kl_value v, enum kl_elem el); /* explicit */
enum { KL_MOVE, KL_ARG, KL_CONSTINIT };
/* Implicit conversion of a moved value; what: "x", for messages. */
kl_value kl_move(kl_elab *e, kl_value v, enum kl_elem el, int how, const char *what);
kl_value kl_to_bool(kl_elab *e, kl_value v);
/* Both to one promoted type.  false: reported. */
bool kl_unify(kl_elab *e, kl_value *a, kl_value *b, kl_span op, const char *opname);
/* Both to one shape.  false: reported. */
bool kl_broadcast2(kl_elab *e, kl_value *a, kl_value *b, kl_span op);
bool kl_broadcast_shape(kl_elab *e, uint32_t *rank, kl_dim *dim, const kl_value *v, kl_span op);
/* v to exactly this shape: as if reshaped when equal apart from axes of size 1, else broadcast. */
kl_value kl_fit(kl_elab *e, kl_value v, uint32_t rank, const kl_dim *dim, const char *what);
kl_value kl_stretch(kl_elab *e, kl_value v, uint32_t rank, const kl_dim *dim); /* broadcast; known good */
/* An EW operation on operands of one type and shape; folds constants. */
kl_value kl_op1(kl_elab *e, enum kl_op op, kl_value a, kl_span s);
kl_value kl_op2(kl_elab *e, enum kl_op op, kl_value a, kl_value b, kl_span s);
kl_value kl_op3(kl_elab *e, enum kl_op op, kl_value a, kl_value b, kl_value c, kl_span s);
/* A constant integer of an expression; false: reported. */
bool kl_need_const(kl_elab *e, const kl_value *v, const char *what, int64_t *out, bool *known);

/* ---- debug.c ---- */
/* Note what a kernel uses and which calls may end the program, before it is checked; then, behind
 * all checks, add the parameter.  Lowering gives its view. */
void kl_debug_mark(kl_elab *e, kl_node *kernel);
void kl_debug_finish(const kl_module_ast *m);
void kl_debug_open(kl_elab *e, kl_val array, uint32_t words);

/* ---- expr.c ---- */
kl_value kl_expr(kl_elab *e, const kl_node *n);       /* any value; ARRAY and ACCESS stay */
kl_value kl_rvalue(kl_elab *e, const kl_node *n);     /* a tile: accesses are loaded */
kl_value kl_any(kl_elab *e, const kl_node *n);        /* a tile or a struct */
kl_value kl_rvalue_for(kl_elab *e, const kl_node *n, enum kl_elem el); /* either, to be moved to el */
/* v, a struct or anything else, as a tile; false: reported */
bool kl_need_tile(kl_elab *e, kl_value *v);
kl_value kl_load_if_access(kl_elab *e, kl_value v);
kl_value kl_scalar_i64(kl_elab *e, const kl_node *n, const char *what);
kl_value kl_as_i64(kl_elab *e, kl_value v, const kl_node *n, const char *what);
enum kl_elem kl_eval_type(kl_elab *e, const kl_node *n, bool *ok); /* 0 with ok: unknown */
bool kl_eval_dim(kl_elab *e, const kl_node *n, const char *what, kl_dim *out);

/* ---- operator.c ---- */
kl_value kl_decimal(float f, double d, kl_span s); /* a constant without a type: rounded both ways */
kl_value kl_binary(kl_elab *e, int tok, kl_value a, kl_value b, kl_span op);
kl_value kl_unary(kl_elab *e, const kl_node *n);

/* ---- choice.c ---- */
kl_value kl_logical(kl_elab *e, const kl_node *n);     /* && and || */
kl_value kl_conditional(kl_elab *e, const kl_node *n); /* ?: */
/* if c, with a value from each block (yields are added here) */
kl_val kl_emit_if(kl_elab *e, kl_val cond, kl_blk t, kl_blk f, kl_val tv, kl_val fv, kl_typ type);

/* ---- struct.c ---- */
static inline bool kl_is_struct_type(const kl_node *n) { return n && n->kind == KL_N_TYPE && n->flags & KL_NF_STRUCT; }
void kl_struct_declare(kl_elab *e, const kl_node *n);
kl_sym *kl_struct_need(kl_elab *e, const kl_node *type); /* NULL: reported */
kl_value kl_literal(kl_elab *e, const kl_node *n);
kl_value kl_member(kl_elab *e, const kl_node *n);
/* Index of a member; -1: reported at `at`. */
int kl_member_index(kl_elab *e, const struct kl_sval *st, const char *name, kl_span at);
/* A struct of one of the language's types from a value for each member. */
kl_value kl_struct_build(kl_elab *e, const kl_sym *tag, const kl_value *m, kl_span s);
/* The same struct with other values: m is copied. */
kl_value kl_struct_with(kl_elab *e, const struct kl_sval *st, const kl_value *m, kl_span s);
/* Is v of the struct `tag` (of the one that `like` is)?  false: reported. */
bool kl_struct_is(kl_elab *e, const kl_value *v, const kl_sym *tag, const char *what);
/* v with the types and shapes of `like`. */
kl_value kl_struct_fit(kl_elab *e, kl_value v, const kl_value *like, const char *what);
/* Members that are declared as scalars, to a shape. */
kl_value kl_struct_lift(kl_elab *e, kl_value v, uint32_t rank, const kl_dim *dim);
/* Does the struct lift: are its members declared as scalars?  With it, their common shape. */
bool kl_struct_shape(kl_elab *e, const kl_value *v, uint32_t *rank, kl_dim *dim, kl_span at);
kl_value kl_struct_type(kl_elab *e, const kl_value *v); /* types and shapes only */
kl_value kl_struct_unset(kl_elab *e, const kl_sym *tag, kl_span s); /* of a declaration without a value */
/* The same of a type: members that are declared as scalars have the shape. */
kl_value kl_struct_spread(kl_elab *e, kl_value v, uint32_t rank, const kl_dim *dim);
uint32_t kl_struct_slots(kl_elab *e, const kl_value *v, int def); /* new slots; the first */
void kl_struct_assign(kl_elab *e, uint32_t slot, const kl_value *v);
/* What the slots hold, with types from `type`. */
kl_value kl_struct_read(kl_elab *e, uint32_t slot, const kl_value *type, kl_span s);
kl_value kl_struct_select(kl_elab *e, kl_value c, kl_value a, kl_value b, kl_span s);
static inline uint32_t kl_nslots(const kl_value *v) { return v->kind == KL_V_STRUCT ? v->st->n : 1; }

/* ---- table.c: constexpr tiles ---- */
/* The symbol if n names one; it counts as used. */
const kl_sym *kl_table_named(kl_elab *e, const kl_node *n);
kl_value kl_table_value(kl_elab *e, const kl_sym *s, kl_span span);
/* The constant at constant subscripts that lie inside; false: they are not that. */
bool kl_table_element(kl_elab *e, const kl_sym *s, const struct kl_access *acc, kl_span span, kl_value *out);

/* ---- access.c ---- */
kl_value kl_index(kl_elab *e, const kl_node *n);
kl_value kl_load(kl_elab *e, kl_value acc, const kl_value *fill, const kl_value *mask, kl_span s);
void kl_store(kl_elab *e, kl_value acc, kl_value v, const kl_value *mask, kl_span s);
/* For IR: what stands for the subscripts, and whether the array was given; false: reported. */
uint32_t kl_access_starts(kl_elab *e, const struct kl_access *acc, kl_val *args, union kl_attr *attr);
bool kl_array_usable(kl_elab *e, const struct kl_arr *arr, kl_span s);
kl_value kl_inside(kl_elab *e, kl_value acc, kl_span s);
kl_value kl_coord(kl_elab *e, kl_value acc, uint32_t d, kl_span s);
/* Part of a tile at subscripts found before, and the tile with that part replaced. */
struct kl_access *kl_tile_subscripts(kl_elab *e, const kl_value *t, const kl_node *n);
kl_value kl_tile_part(kl_elab *e, kl_value t, const struct kl_access *acc, kl_span s);
kl_value kl_tile_replace(kl_elab *e, kl_value t, const struct kl_access *acc, kl_value v, kl_span s);
struct kl_arr *kl_make_view(kl_elab *e, const kl_node *var, const kl_node *type, unsigned flags);
/* Extents and strides of a declaration (PARAM or VAR) into arr; strides dense if not written. */
void kl_array_layout(kl_elab *e, struct kl_arr *arr, const kl_node *dims, const kl_node *strides);
void kl_access_shape(const struct kl_access *acc, uint32_t *rank, kl_dim *dim);

/* ---- builtin.c, call.c ---- */
kl_value kl_call(kl_elab *e, const kl_node *n);
bool kl_is_builtin(const char *name);
uint32_t kl_builtin_names(const char **out, uint32_t max);
/* Expand a function on values (arg[i] from kid i of call, or n values without a call). */
kl_value kl_expand(kl_elab *e, kl_sym *fn, const kl_node *call);
kl_value kl_expand_values(kl_elab *e, kl_sym *fn, const kl_value *arg, uint32_t n, kl_span s);
/* In a lifted expansion: is the name's value, or part of the expression, one per element? */
bool kl_tainted(const struct kl_fctx *fx, const char *name);
bool kl_mentions_taint(const struct kl_fctx *fx, const kl_node *n);

bool kl_bind_size(kl_elab *e, const kl_node *n, kl_value have, kl_span at, const char *pname);
kl_value kl_dim_value(kl_dim d, kl_span s);
/* Inside the function of a reduction or scan, which may not do this: true, and reported. */
bool kl_in_fold(kl_elab *e, kl_span s, const char *what);

/* ---- stmt.c ---- */
void kl_stmt(kl_elab *e, const kl_node *n);
void kl_block(kl_elab *e, const kl_node *n); /* opens a scope */
/* What a statement contains, by looking at the tree. */
enum { KL_HAS_BREAK = 1, KL_HAS_CONTINUE = 2, KL_HAS_RETURN = 4,
       KL_HAS_END = 8 /* may end the program: with HAS_RETURN */ };
unsigned kl_jumps(const kl_node *n);
bool kl_returns(const kl_node *n); /* every path through it ends in a return */
/* Marks names in a part that is not elaborated as used. */
void kl_mark_used(kl_elab *e, const kl_node *n);
/* Run body in a fresh block; pure: its instructions may be moved out. */
kl_blk kl_enter_block(kl_elab *e, kl_blk *saved);
void kl_leave_block(kl_elab *e, kl_blk saved);
bool kl_block_is_pure(kl_elab *e, kl_blk b, uint32_t *count);
void kl_splice_block(kl_elab *e, kl_blk b);
bool kl_block_uses_memory(kl_elab *e, kl_blk b); /* also in what it owns */

#endif
