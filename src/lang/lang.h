/* lang.h - from the syntax tree to IR: checking, binding of arguments, lowering. */
#ifndef KL_LANG_H
#define KL_LANG_H

#include "base/place.h"
#include "ir/ir.h"
#include "lang/ast.h"
#include "lang/tuned.h"

/* First phase of checking: everything that does not need types and constants still
 * unknown.  Also fills the uses of each parameter (reflection).  Errors go to d. */
void kl_check(kl_module_ast *m, kl_diags *d);

/* What to write in place of a name of CUDA, Triton, NumPy or C (foreign.def); NULL: it is none. */
const char *kl_foreign(const char *name);

/* What a launch knows of one parameter of the kernel, in declaration order. */
struct kl_boundparam {
    bool given;           /* arrays: passed by the host; others: always true after kl_bind */
    uint8_t elem;         /* element type; of a type parameter: its value */
    int32_t rank;
    int64_t ext[KL_MAX_DIMS], str[KL_MAX_DIMS]; /* arrays: as declared, in elements */
    void *data;           /* element [0,...,0] */
    const void *lo, *hi;  /* the memory that may be touched */
    bool init;            /* arrays: filled with bits before the launch */
    uint64_t bits;        /* scalars, constants, initial values: canonical for elem */
};

/* For the rules of base/place.h; not yet spanned. */
static inline struct kl_place kl_place_of(const struct kl_boundparam *b)
{
    return (struct kl_place){b->data, b->rank, b->elem, kl_elems[b->elem].bytes, b->ext, b->str, 0, 0};
}

typedef struct kl_bound {
    const kl_node *kernel;
    struct kl_boundparam *param; /* as many as the kernel declares */
    uint32_t nparam;
    int64_t grid[3];
    bool may_alias; /* a const array shares an element with a written one */
    bool empty;     /* an extent of the grid is 0: nothing runs */
    int32_t knob[KL_NKNOB]; /* warps, stages, cluster given by the launch; 0: as the kernel says */
    bool tuned;     /* something came from an entry of m->tuned */
    uint32_t tuned_line; /* of the entry that fits, though it may change nothing; 0: none does */
} kl_bound;

/* A constant that the library's own functions choose: as KILN_ARG_INT, but behind what was tuned. */
enum { KL_ARG_PREFER = 0x40 };

enum {
    KL_BIND_SHAPES_ONLY = 1, /* memory is not looked at, and arrays that are not given count as
                                given unless optional: for kiln_infer_shape and for emission */
    KL_BIND_UNTUNED = 2      /* m->tuned is not looked at */
};

/* Match arguments by name, deduce, check, compute extents and grid (LANGUAGE 7).  Constants that
 * args leave out come from the last entry of m->tuned that fits, as long as the kernel's
 * requirements allow it, else they have their defaults.  false: errors in d.  num_sms: what num_sms() gives. */
bool kl_bind(kl_arena *a, const kl_module_ast *m, const kl_node *kernel, const kiln_arg *args,
             size_t n, unsigned flags, int64_t num_sms, kl_bound *out, kl_diags *d);

/* The same without m->tuned; and what the tune clauses vary, for a launch with these arguments. */
bool kl_bind_space(kl_arena *a, const kl_module_ast *m, const kl_node *kernel, const kiln_arg *args,
                   size_t n, int64_t num_sms, kl_bound *out, kl_space *space, kl_diags *d);

/* Bytes that identify the specialisation: types, constants, given, aliasing. */
void kl_bound_key(kl_buf *b, const kl_bound *bd);

/* How a launch finds a scalar or constant: the extent or stride of an array, and steps from there
 * (kl_place_back). */
struct kl_source {
    uint16_t array, param;
    uint8_t dim, nstep;
    bool stride;
    struct kl_back step[KL_BACK_STEPS];
};
typedef KL_VEC(struct kl_source) kl_sources;

/* What can be bound without a launch: types, constants given or with a default that needs no
 * scalar.  args: types and constants.  open: NULL, or constants whose default does not count.
 * known: as many as parameters, zeroed; which types, constants and initial values have a value.
 * Arrays count as given unless optional.  src: NULL, or the ways in which the rest may be deduced,
 * in the order of kl_bind. */
bool kl_bind_build(kl_arena *a, const kl_module_ast *m, const kl_node *kernel, const kiln_arg *args,
                   size_t n, const bool *open, kl_bound *out, bool *known, kl_sources *src, kl_diags *d);

/* The clauses of a kernel as a function (clauses.c).  Its parameters are those of the kernel with
 * these constants and given arrays, behind them an array of i64 that takes, for each given array,
 * the extents and the strides that are declared, then the grid, then each requirement as 0 or 1.
 * defaults: instead, with the constants marked in it as scalars and without arrays, their defaults
 * in order. */
kl_fn *kl_lower_clauses(kl_arena *a, const kl_module_ast *m, const kl_bound *bd,
                        const bool *defaults, kl_diags *d);

/* Second phase: check with everything known and produce IR.  NULL: errors in d. */
kl_fn *kl_lower(kl_arena *a, const kl_module_ast *m, const kl_bound *bd, kl_diags *d);

/* Reflection of a kernel, in a. */
kiln_param_info *kl_reflect(kl_arena *a, const kl_module_ast *m, const kl_node *kernel);
const kl_node *kl_find_kernel(const kl_module_ast *m, const char *name);

/* The source in the project's form (fmt.c).  false: it does not parse; errors in d.  Raises
 * KILN_E_INTERNAL, with nothing in out to be used, should tokens, comments or tree differ. */
bool kl_format(kl_arena *a, const char *name, const char *text, size_t len, kl_buf *out,
               kl_diags *d);

#endif
