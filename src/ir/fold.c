/* fold.c - element-wise operations on constants.
 *
 * The meaning columns of ops.def are expanded once for each element type into a switch;
 * a row's class decides whether it exists there.  The file is compiled with -fwrapv and
 * -ffp-contract=off (Makefile), as the expressions need.  Floats are folded in the
 * default floating-point environment, whatever the host has set. */
#include <fenv.h>

#include "ir/ir.h"
#include "ir/meaning.h"

/* Which classes exist on integers, on bool, on floats: X or nothing. */
#define INT_NUM(x) x
#define INT_INT(x) x
#define INT_BIT(x) x
#define INT_CMP(x) x
#define INT_FLT(x)
#define INT_SEL(x)
#define INT_CVT(x)
#define BOOL_NUM(x)
#define BOOL_INT(x)
#define BOOL_BIT(x) x
#define BOOL_CMP(x)
#define BOOL_FLT(x)
#define BOOL_SEL(x)
#define BOOL_CVT(x)
#define FLT_NUM(x) x
#define FLT_INT(x)
#define FLT_BIT(x)
#define FLT_CMP(x) x
#define FLT_FLT(x) x
#define FLT_SEL(x)
#define FLT_CVT(x)

/* The result's type: that of the operands, or int for a comparison. */
#define SET_NUM(x) r = (elem_type)(x)
#define SET_INT(x) r = (elem_type)(x)
#define SET_BIT(x) r = (elem_type)(x)
#define SET_FLT(x) r = (elem_type)(x)
#define SET_CMP(x) return truth(out, (x))

/* bits <-> C values */
#define GET_int(T, b)    ((T)(b))
#define GET_flt32(T, b)  kl_bits_f32(b)
#define GET_flt64(T, b)  kl_bits_f64(b)
#define BITS_int(r)      ((uint64_t)(int64_t)(r))
#define BITS_uint(r)     ((uint64_t)(r))
#define BITS_flt32(r)    kl_f32_bits(r)
#define BITS_flt64(r)    kl_f64_bits(r)

#define OPERANDS(T, GET)                                                                           \
    typedef T elem_type;                                                                           \
    elem_type a = GET(T, v[0]), b = GET(T, v[1]), c = GET(T, v[2]), r;                             \
    (void)a, (void)b, (void)c

static bool truth(uint64_t *out, bool x)
{
    *out = x;
    return true;
}

static bool fold_bool(enum kl_op op, const uint64_t v[3], uint64_t *out)
{
    OPERANDS(uint8_t, GET_int);
    switch (op) {
#define EW(name, n, cls, flags, iexpr, fexpr, doc)                                                 \
    BOOL_##cls(case KL_OP_##name: SET_##cls(iexpr); break;)
#define OP(name, sig, res, attr, flags, doc)
#include "ir/ops.def"
    default: return false;
    }
    return *out = r, true;
}

static bool fold_i32(enum kl_op op, const uint64_t v[3], uint64_t *out)
{
    OPERANDS(int32_t, GET_int);
    switch (op) {
#define FN(name) kl_##name##_i32
#define EW(name, n, cls, flags, iexpr, fexpr, doc)                                                 \
    INT_##cls(case KL_OP_##name: SET_##cls(iexpr); break;)
#define OP(name, sig, res, attr, flags, doc)
#include "ir/ops.def"
#undef FN
    default: return false;
    }
    return *out = BITS_int(r), true;
}

static bool fold_i64(enum kl_op op, const uint64_t v[3], uint64_t *out)
{
    OPERANDS(int64_t, GET_int);
    switch (op) {
#define FN(name) kl_##name##_i64
#define EW(name, n, cls, flags, iexpr, fexpr, doc)                                                 \
    INT_##cls(case KL_OP_##name: SET_##cls(iexpr); break;)
#define OP(name, sig, res, attr, flags, doc)
#include "ir/ops.def"
#undef FN
    default: return false;
    }
    return *out = BITS_int(r), true;
}

static bool fold_u32(enum kl_op op, const uint64_t v[3], uint64_t *out)
{
    OPERANDS(uint32_t, GET_int);
    switch (op) {
#define FN(name) kl_##name##_u32
#define EW(name, n, cls, flags, iexpr, fexpr, doc)                                                 \
    INT_##cls(case KL_OP_##name: SET_##cls(iexpr); break;)
#define OP(name, sig, res, attr, flags, doc)
#include "ir/ops.def"
#undef FN
    default: return false;
    }
    return *out = BITS_uint(r), true;
}

static bool fold_u64(enum kl_op op, const uint64_t v[3], uint64_t *out)
{
    OPERANDS(uint64_t, GET_int);
    switch (op) {
#define FN(name) kl_##name##_u64
#define EW(name, n, cls, flags, iexpr, fexpr, doc)                                                 \
    INT_##cls(case KL_OP_##name: SET_##cls(iexpr); break;)
#define OP(name, sig, res, attr, flags, doc)
#include "ir/ops.def"
#undef FN
    default: return false;
    }
    return *out = BITS_uint(r), true;
}

static bool fold_f32(enum kl_op op, const uint64_t v[3], uint64_t *out)
{
    OPERANDS(float, GET_flt32);
    switch (op) {
#define FN(name) kl_##name##_f32
#define EW(name, n, cls, flags, iexpr, fexpr, doc)                                                 \
    FLT_##cls(case KL_OP_##name: SET_##cls(fexpr); break;)
#define OP(name, sig, res, attr, flags, doc)
#include "ir/ops.def"
#undef FN
    default: return false;
    }
    return *out = BITS_flt32(r), true;
}

static bool fold_f64(enum kl_op op, const uint64_t v[3], uint64_t *out)
{
    OPERANDS(double, GET_flt64);
    switch (op) {
#define FN(name) kl_##name##_f64
#define EW(name, n, cls, flags, iexpr, fexpr, doc)                                                 \
    FLT_##cls(case KL_OP_##name: SET_##cls(fexpr); break;)
#define OP(name, sig, res, attr, flags, doc)
#include "ir/ops.def"
#undef FN
    default: return false;
    }
    return *out = BITS_flt64(r), true;
}

/* Raw bits of the type, without sign extension, and back. */
static bool fold_bitcast(enum kl_elem to, enum kl_elem from, uint64_t bits, uint64_t *out)
{
    if (kl_elems[to].bytes != kl_elems[from].bytes)
        return false;
    *out = kl_canon(to, bits);
    return true;
}

static bool fold(enum kl_op op, enum kl_elem to, enum kl_elem elem, const uint64_t v[3],
                 uint64_t *out)
{
    switch (op) {
    case KL_OP_select: return *out = v[0] ? v[1] : v[2], true;
    case KL_OP_convert: return *out = kl_convert(to, elem, v[0]), true;
    case KL_OP_convert_nan: return *out = kl_convert_nan(to, v[0]), true;
    case KL_OP_bitcast: return fold_bitcast(to, elem, v[0], out);
    default: break;
    }
    switch (elem) {
    case KL_bool: return fold_bool(op, v, out);
    case KL_i32: return fold_i32(op, v, out);
    case KL_i64: return fold_i64(op, v, out);
    case KL_u32: return fold_u32(op, v, out);
    case KL_u64: return fold_u64(op, v, out);
    case KL_f32: return fold_f32(op, v, out);
    case KL_f64: return fold_f64(op, v, out);
    default: return false; /* storage types */
    }
}

bool kl_fold(enum kl_op op, enum kl_elem to, enum kl_elem elem, const uint64_t v[3], uint64_t *out)
{
    if (!kl_is_float(elem) && !kl_is_float(to))
        return fold(op, to, elem, v, out);
    fenv_t env;
    fegetenv(&env);
    fesetenv(FE_DFL_ENV);
    bool ok = fold(op, to, elem, v, out);
    fesetenv(&env);
    return ok;
}
