/* ir.c - the operation table, types and functions.
 *
 * A function owns five arrays that grow: instructions, operands, blocks, auxiliary
 * integers and types.  Entry 0 of each is unused, so that 0 means none.  Types are
 * interned: equal types have equal ids, and comparing ids compares types. */
#include "ir/ir.h"

/* the short names that the flag columns of ops.def use */
enum {
    PURE = KL_F_PURE, COMM = KL_F_COMM, ASSOC = KL_F_ASSOC, IDEM = KL_F_IDEM, READ = KL_F_READ,
    WRITE = KL_F_WRITE, PIN = KL_F_PIN, TERM = KL_F_TERM, REGION = KL_F_REGION, FAST = KL_F_FAST
};

/* NONE is the only expression of four letters: the text of a missing meaning is NULL. */
#define TEXT(x) (sizeof(#x) == sizeof("NONE") ? NULL : #x)

const struct kl_opinfo kl_ops[KL_NOP] = {
    [KL_OP_none] = {.name = "none", .sig = "", .doc = ""},
#define EW(name_, n_, cls_, flags_, iexpr_, fexpr_, doc_)                                          \
    [KL_OP_##name_] = {.name = #name_, .sig = "", .doc = doc_, .iexpr = TEXT(iexpr_),              \
                       .fexpr = TEXT(fexpr_), .flags = (flags_) | KL_F_EW, .cls = KL_C_##cls_,     \
                       .attr = KL_A_NOATTR, .res = KL_R_GIVEN, .nargs = n_},
#define OP(name_, sig_, res_, attr_, flags_, doc_)                                                 \
    [KL_OP_##name_] = {.name = #name_, .sig = sig_, .doc = doc_, .flags = flags_,                  \
                       .attr = KL_A_##attr_, .res = KL_R_##res_},
#include "ir/ops.def"
};

_Static_assert((int)KL_OP_add == 1 && (int)KL_OP_sigmoid + 1 == (int)KL_OP_const,
               "element-wise rows stand first in ops.def");

/* ---- functions ---- */

kl_fn *kl_fn_new(kl_arena *a, const char *name)
{
    kl_fn *f = kl_new(a, kl_fn);
    f->a = a;
    f->name = kl_strndup(a, name, strlen(name));
    f->typemap.a = a;
    f->ins = kl_vec_grow(a, NULL, &f->cins, sizeof *f->ins, 1);
    f->args = kl_vec_grow(a, NULL, &f->cargs, sizeof *f->args, 1);
    f->type = kl_vec_grow(a, NULL, &f->ctype, sizeof *f->type, 1);
    f->blk = kl_vec_grow(a, NULL, &f->cblk, sizeof *f->blk, 2);
    f->nins = f->nargs = f->ntype = 1;
    f->nblk = KL_BODY.id + 1;
    return f;
}

uint32_t kl_param_add(kl_fn *f, struct kl_param p)
{
    if (f->nparam == f->cparam)
        f->param = kl_vec_grow(f->a, f->param, &f->cparam, sizeof *f->param, f->nparam + 1);
    f->param[f->nparam] = p;
    return f->nparam++;
}

kl_blk kl_blk_new(kl_fn *f)
{
    if (f->nblk == f->cblk)
        f->blk = kl_vec_grow(f->a, f->blk, &f->cblk, sizeof *f->blk, f->nblk + 1);
    f->blk[f->nblk] = (struct kl_block){0};
    return (kl_blk){f->nblk++};
}

uint32_t kl_aux_add(kl_fn *f, const int64_t *v, uint32_t n)
{
    uint32_t at = f->naux;
    if (f->naux + n > f->caux)
        f->aux = kl_vec_grow(f->a, f->aux, &f->caux, sizeof *f->aux, f->naux + n);
    if (n)
        memcpy(f->aux + at, v, n * sizeof *v);
    f->naux += n;
    return at;
}

/* ---- types ---- */

static kl_typ intern(kl_fn *f, const struct kl_type *t)
{
    bool isnew;
    uint32_t *at = kl_map_put(&f->typemap, t, sizeof *t, &isnew);
    if (isnew) {
        *at = f->ntype;
        if (f->ntype == f->ctype)
            f->type = kl_vec_grow(f->a, f->type, &f->ctype, sizeof *f->type, f->ntype + 1);
        f->type[f->ntype++] = *t;
    }
    return (kl_typ){*at};
}

kl_typ kl_tile(kl_fn *f, enum kl_elem e, uint32_t rank, const uint32_t *dim)
{
    struct kl_type t = {.kind = KL_T_TILE, .elem = (uint8_t)e, .rank = (uint8_t)rank};
    KL_CHECK(f->a->env, rank <= KL_MAX_RANK);
    for (uint32_t i = 0; i < rank; i++)
        t.dim[i] = dim[i];
    return intern(f, &t);
}

kl_typ kl_scalar(kl_fn *f, enum kl_elem e)
{
    return kl_tile(f, e, 0, NULL);
}

kl_typ kl_array(kl_fn *f, enum kl_elem e, uint32_t rank)
{
    struct kl_type t = {.kind = KL_T_ARRAY, .elem = (uint8_t)e, .rank = (uint8_t)rank};
    KL_CHECK(f->a->env, rank <= KL_MAX_DIMS);
    return intern(f, &t);
}

uint64_t kl_numel(const struct kl_type *t)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}
