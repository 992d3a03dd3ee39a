/* simplify_ew.c - rules on element-wise operations.
 *
 * Exact for all inputs: integers wrap; of floats only what IEEE arithmetic gives bit by
 * bit, signed zeros and infinities included.  x + 0.0 is not x (for -0.0), x * 0.0 is
 * not 0, x - x is not 0. */
#include "opt/simplify.h"

typedef struct kl_simp simp;

/* The bits of a small number in an element type; -0.0 is 0 among integers. */
static uint64_t lit(enum kl_elem e, double d)
{
    if (kl_is_float(e))
        return kl_convert(e, KL_f64, kl_f64_bits(d));
    return kl_canon(e, (uint64_t)(int64_t)d);
}

static bool is_lit(const simp *s, kl_val v, uint32_t i, double d)
{
    kl_val a = kl_op_arg(s, v, i);
    return kl_is_bits(s->f, a, lit(kl_elem_of(s, a), d));
}

static bool ints(const simp *s, kl_val v)
{
    return kl_is_int(kl_elem_of(s, kl_op_arg(s, v, 0)));
}

static uint32_t width(enum kl_elem e)
{
    return kl_elems[e].bytes * 8u;
}

/* Smallest and largest value of an integer type. */
static void ends(enum kl_elem e, uint64_t *lo, uint64_t *hi)
{
    bool sign = kl_elems[e].kind == KL_KIND_SINT;
    uint64_t top = UINT64_C(1) << (width(e) - 1);
    *lo = sign ? kl_canon(e, top) : 0;
    *hi = sign ? top - 1 : kl_canon(e, UINT64_MAX);
}

/* n if bits are 2^n with n >= 1, positive in its type; else 0. */
static uint32_t log2_of(enum kl_elem e, uint64_t bits)
{
    uint32_t n = 0;
    if (kl_elems[e].kind == KL_KIND_SINT && (int64_t)bits <= 0)
        return 0;
    if (bits == 0 || (bits & (bits - 1)) != 0)
        return 0;
    while (bits >>= 1)
        n++;
    return n;
}

/* x op (c op2 d) for v = (x op c) op d with constants c, d. */
static kl_val chain(simp *s, kl_val v, enum kl_op op)
{
    kl_val in = kl_op_arg(s, v, 0);
    uint64_t b[3] = {0, 0, 0}, r;
    if (kl_op_of(s, in) != op || !kl_const_arg(s, v, 1, &b[1]) || !kl_const_arg(s, in, 1, &b[0]))
        return KL_NO;
    if (!kl_fold(op, kl_elem_of(s, v), kl_elem_of(s, v), b, &r))
        return KL_NO;
    kl_val c = kl_make_const(s, v, kl_in(s->f, v)->type, r);
    return kl_make2(s, v, op, kl_op_arg(s, in, 0), c);
}

/* ---- every operation ---- */

kl_val kl_rule_fold(simp *s, kl_val v)
{
    const struct kl_ins *in = kl_in(s->f, v);
    uint64_t b[3] = {0, 0, 0}, r;
    for (uint32_t i = 0; i < in->nargs; i++)
        if (!kl_const_arg(s, v, i, &b[i]))
            return KL_NO;
    uint32_t from = in->op == KL_OP_select ? 1 : 0;
    if (!kl_fold((enum kl_op)in->op, kl_elem_of(s, v), kl_elem_of(s, kl_op_arg(s, v, from)), b, &r))
        return KL_NO;
    return kl_make_const(s, v, in->type, r);
}

kl_val kl_rule_const_right(simp *s, kl_val v)
{
    struct kl_ins *in = kl_in(s->f, v);
    bool compare = in->op == KL_OP_lt || in->op == KL_OP_le || in->op == KL_OP_gt ||
                   in->op == KL_OP_ge;
    if (!(kl_ops[in->op].flags & KL_F_COMM) && !compare && in->op != KL_OP_fma)
        return KL_NO;
    kl_val *a = s->f->args + in->args, t = a[0];
    if (!kl_is_const(s->f, a[0]) || kl_is_const(s->f, a[1]))
        return KL_NO;
    a[0] = a[1];
    a[1] = t;
    if (compare)
        in->op = in->op == KL_OP_lt   ? KL_OP_gt
                 : in->op == KL_OP_gt ? KL_OP_lt
                 : in->op == KL_OP_le ? KL_OP_ge
                                      : KL_OP_le;
    return v;
}

kl_val kl_rule_of_broadcast(simp *s, kl_val v)
{
    kl_fn *f = s->f;
    struct kl_ins in = *kl_in(f, v);
    const struct kl_type *small = NULL;
    for (uint32_t i = 0; i < in.nargs; i++) {
        kl_val a = kl_op_arg(s, v, i);
        if (kl_op_of(s, a) == KL_OP_broadcast) {
            const struct kl_type *t = kl_type_of(f, kl_op_arg(s, a, 0));
            if (small && !kl_same_shape(small, t))
                return KL_NO;
            small = t;
        } else if (!kl_is_const(f, a)) {
            return KL_NO;
        }
    }
    if (!small)
        return KL_NO;
    struct kl_type shape = *small;
    kl_val arg[3] = {{0}, {0}, {0}};
    for (uint32_t i = 0; i < in.nargs; i++) {
        kl_val a = kl_op_arg(s, v, i);
        kl_typ t = kl_tile(f, kl_elem_of(s, a), shape.rank, shape.dim);
        arg[i] = kl_is_const(f, a) ? kl_make_const(s, v, t, kl_in(f, a)->attr.bits)
                                   : kl_op_arg(s, a, 0);
    }
    kl_typ t = kl_tile(f, kl_elem_of(s, v), shape.rank, shape.dim);
    kl_val r = kl_make(s, v, (enum kl_op)in.op, t, arg, in.nargs, in.attr);
    return kl_make1(s, v, KL_OP_broadcast, r);
}

/* ---- sums ---- */

kl_val kl_rule_add_zero(simp *s, kl_val v)
{
    return is_lit(s, v, 1, -0.0) ? kl_op_arg(s, v, 0) : KL_NO;
}

kl_val kl_rule_add_chain(simp *s, kl_val v)
{
    return ints(s, v) ? chain(s, v, KL_OP_add) : KL_NO;
}

kl_val kl_rule_add_neg(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0), y = kl_op_arg(s, v, 1);
    if (kl_op_of(s, y) == KL_OP_neg)
        return kl_make2(s, v, KL_OP_sub, x, kl_op_arg(s, y, 0));
    if (kl_op_of(s, x) == KL_OP_neg && !kl_is_const(s->f, y))
        return kl_make2(s, v, KL_OP_sub, y, kl_op_arg(s, x, 0));
    return KL_NO;
}

kl_val kl_rule_add_cancel(simp *s, kl_val v)
{
    for (uint32_t i = 0; ints(s, v) && i < 2; i++) {
        kl_val d = kl_op_arg(s, v, i), y = kl_op_arg(s, v, 1 - i);
        if (kl_op_of(s, d) == KL_OP_sub && kl_op_arg(s, d, 1).id == y.id)
            return kl_op_arg(s, d, 0);
    }
    return KL_NO;
}

kl_val kl_rule_sub_self(simp *s, kl_val v)
{
    if (!ints(s, v) || kl_op_arg(s, v, 0).id != kl_op_arg(s, v, 1).id)
        return KL_NO;
    return kl_make_const(s, v, kl_in(s->f, v)->type, 0);
}

kl_val kl_rule_zero_sub(simp *s, kl_val v)
{
    return is_lit(s, v, 0, -0.0) ? kl_make1(s, v, KL_OP_neg, kl_op_arg(s, v, 1)) : KL_NO;
}

kl_val kl_rule_sub_const(simp *s, kl_val v)
{
    uint64_t c;
    if (is_lit(s, v, 1, 0.0))
        return kl_op_arg(s, v, 0);
    if (!ints(s, v) || !kl_const_arg(s, v, 1, &c))
        return KL_NO;
    kl_val minus = kl_make_const(s, v, kl_in(s->f, v)->type, 0 - c);
    return kl_make2(s, v, KL_OP_add, kl_op_arg(s, v, 0), minus);
}

kl_val kl_rule_sub_neg(simp *s, kl_val v)
{
    kl_val y = kl_op_arg(s, v, 1);
    if (kl_op_of(s, y) != KL_OP_neg)
        return KL_NO;
    return kl_make2(s, v, KL_OP_add, kl_op_arg(s, v, 0), kl_op_arg(s, y, 0));
}

kl_val kl_rule_sub_cancel(simp *s, kl_val v)
{
    kl_val sum = kl_op_arg(s, v, 0), y = kl_op_arg(s, v, 1);
    for (uint32_t i = 0; ints(s, v) && kl_op_of(s, sum) == KL_OP_add && i < 2; i++)
        if (kl_op_arg(s, sum, i).id == y.id)
            return kl_op_arg(s, sum, 1 - i);
    return KL_NO;
}

/* ---- products and quotients ---- */

kl_val kl_rule_mul_const(simp *s, kl_val v)
{
    if (is_lit(s, v, 1, 1))
        return kl_op_arg(s, v, 0);
    if (ints(s, v) && is_lit(s, v, 1, 0))
        return kl_op_arg(s, v, 1);
    if (is_lit(s, v, 1, -1))
        return kl_make1(s, v, KL_OP_neg, kl_op_arg(s, v, 0));
    return KL_NO;
}

kl_val kl_rule_mul_chain(simp *s, kl_val v)
{
    return ints(s, v) ? chain(s, v, KL_OP_mul) : KL_NO;
}

kl_val kl_rule_div_one(simp *s, kl_val v)
{
    return is_lit(s, v, 1, 1) ? kl_op_arg(s, v, 0) : KL_NO;
}

/* 1/c if c is a power of two whose reciprocal is a normal number: x / c and x * (1/c)
 * round the same exact value. */
static bool reciprocal(enum kl_elem e, uint64_t c, uint64_t *out)
{
    uint32_t mbits = e == KL_f32 ? 23 : 52, top = e == KL_f32 ? 254 : 2046;
    uint64_t exp = c >> mbits & (top + 1), man = c & ((UINT64_C(1) << mbits) - 1);
    if (man || exp == 0 || exp >= top)
        return false;
    *out = (c & UINT64_C(1) << (e == KL_f32 ? 31 : 63)) | (top - exp) << mbits;
    return true;
}

kl_val kl_rule_div_pow2(simp *s, kl_val v)
{
    enum kl_elem e = kl_elem_of(s, v);
    kl_typ type = kl_in(s->f, v)->type;
    uint64_t c, r;
    if (!kl_const_arg(s, v, 1, &c))
        return KL_NO;
    if (kl_is_float(e) && reciprocal(e, c, &r))
        return kl_make2(s, v, KL_OP_mul, kl_op_arg(s, v, 0), kl_make_const(s, v, type, r));
    if (kl_elems[e].kind == KL_KIND_UINT && log2_of(e, c))
        return kl_make2(s, v, KL_OP_shr, kl_op_arg(s, v, 0),
                        kl_make_const(s, v, type, log2_of(e, c)));
    return KL_NO;
}

kl_val kl_rule_floordiv_pow2(simp *s, kl_val v)
{
    uint64_t c;
    uint32_t n = kl_const_arg(s, v, 1, &c) ? log2_of(kl_elem_of(s, v), c) : 0;
    if (!n)
        return KL_NO;
    return kl_make2(s, v, KL_OP_shr, kl_op_arg(s, v, 0),
                    kl_make_const(s, v, kl_in(s->f, v)->type, n));
}

kl_val kl_rule_floormod_pow2(simp *s, kl_val v)
{
    uint64_t c;
    if (!kl_const_arg(s, v, 1, &c) || (c != 1 && !log2_of(kl_elem_of(s, v), c)))
        return KL_NO;
    return kl_make2(s, v, KL_OP_and, kl_op_arg(s, v, 0),
                    kl_make_const(s, v, kl_in(s->f, v)->type, c - 1));
}

kl_val kl_rule_rem_const(simp *s, kl_val v)
{
    if (is_lit(s, v, 1, 1))
        return kl_make_const(s, v, kl_in(s->f, v)->type, 0);
    return kl_elems[kl_elem_of(s, v)].kind == KL_KIND_UINT ? kl_rule_floormod_pow2(s, v) : KL_NO;
}

kl_val kl_rule_neg_neg(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    if (kl_op_of(s, x) == KL_OP_neg)
        return kl_op_arg(s, x, 0);
    if (kl_op_of(s, x) == KL_OP_sub && ints(s, v))
        return kl_make2(s, v, KL_OP_sub, kl_op_arg(s, x, 1), kl_op_arg(s, x, 0));
    return KL_NO;
}

kl_val kl_rule_abs_abs(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    if (kl_op_of(s, x) == KL_OP_abs || kl_elems[kl_elem_of(s, v)].kind == KL_KIND_UINT)
        return x;
    if (kl_op_of(s, x) == KL_OP_neg)
        return kl_make1(s, v, KL_OP_abs, kl_op_arg(s, x, 0));
    return KL_NO;
}

kl_val kl_rule_fma_const(simp *s, kl_val v)
{
    if (is_lit(s, v, 2, -0.0))
        return kl_make2(s, v, KL_OP_mul, kl_op_arg(s, v, 0), kl_op_arg(s, v, 1));
    if (is_lit(s, v, 1, 1))
        return kl_make2(s, v, KL_OP_add, kl_op_arg(s, v, 0), kl_op_arg(s, v, 2));
    return KL_NO;
}

kl_val kl_rule_round_round(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    switch (kl_op_of(s, x)) {
    case KL_OP_floor: case KL_OP_ceil: case KL_OP_trunc: case KL_OP_rint: return x;
    default: return KL_NO;
    }
}

/* ---- minimum, maximum, bits, shifts ---- */

kl_val kl_rule_idem(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    return x.id == kl_op_arg(s, v, 1).id ? x : KL_NO;
}

kl_val kl_rule_limit(simp *s, kl_val v)
{
    enum kl_elem e = kl_elem_of(s, v);
    bool max = kl_op_of(s, v) == KL_OP_max;
    uint64_t c, lo, hi;
    if (!kl_const_arg(s, v, 1, &c))
        return KL_NO;
    if (kl_is_float(e)) { /* a NaN in x wins either way */
        double inf = kl_bits_f64(UINT64_C(0x7ff) << 52);
        return c == lit(e, max ? -inf : inf) ? kl_op_arg(s, v, 0) : KL_NO;
    }
    ends(e, &lo, &hi);
    if (c == (max ? lo : hi))
        return kl_op_arg(s, v, 0);
    return c == (max ? hi : lo) ? kl_op_arg(s, v, 1) : KL_NO;
}

kl_val kl_rule_xor_self(simp *s, kl_val v)
{
    if (kl_op_arg(s, v, 0).id != kl_op_arg(s, v, 1).id)
        return KL_NO;
    return kl_make_const(s, v, kl_in(s->f, v)->type, 0);
}

kl_val kl_rule_bit_const(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0), c = kl_op_arg(s, v, 1);
    enum kl_op op = kl_op_of(s, v);
    if (kl_is_bits(s->f, c, 0))
        return op == KL_OP_and ? c : x;
    if (op != KL_OP_xor && kl_is_bits(s->f, c, kl_canon(kl_elem_of(s, v), UINT64_MAX)))
        return op == KL_OP_and ? x : c;
    return KL_NO;
}

kl_val kl_rule_bit_chain(simp *s, kl_val v)
{
    return chain(s, v, kl_op_of(s, v));
}

kl_val kl_rule_not_compare(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    enum kl_op op;
    if (kl_elem_of(s, v) != KL_bool || !kl_is_bits(s->f, kl_op_arg(s, v, 1), 1) ||
        kl_ops[kl_op_of(s, x)].cls != KL_C_CMP)
        return KL_NO;
    switch (kl_op_of(s, x)) {
    case KL_OP_eq: op = KL_OP_ne; break;
    case KL_OP_ne: op = KL_OP_eq; break;
    case KL_OP_lt: op = KL_OP_ge; break;
    case KL_OP_le: op = KL_OP_gt; break;
    case KL_OP_gt: op = KL_OP_le; break;
    default: op = KL_OP_lt; break;
    }
    if (op != KL_OP_eq && op != KL_OP_ne && !ints(s, x)) /* both are false with a NaN */
        return KL_NO;
    return kl_make2(s, v, op, kl_op_arg(s, x, 0), kl_op_arg(s, x, 1));
}

kl_val kl_rule_shift_const(simp *s, kl_val v)
{
    enum kl_elem e = kl_elem_of(s, v);
    kl_typ type = kl_in(s->f, v)->type;
    kl_val x = kl_op_arg(s, v, 0);
    uint64_t c;
    if (kl_is_bits(s->f, x, 0))
        return x;
    if (!kl_const_arg(s, v, 1, &c))
        return KL_NO;
    if (c == 0)
        return x;
    c = width(e) == 32 ? (uint32_t)c : c;
    if (c < width(e))
        return KL_NO;
    if (kl_op_of(s, v) == KL_OP_shl || kl_elems[e].kind == KL_KIND_UINT)
        return kl_make_const(s, v, type, 0);
    return kl_make2(s, v, KL_OP_shr, x, kl_make_const(s, v, type, width(e) - 1));
}

/* ---- comparisons and choice ---- */

static kl_val truth(simp *s, kl_val v, bool t)
{
    return kl_make_const(s, v, kl_in(s->f, v)->type, t);
}

kl_val kl_rule_compare_self(simp *s, kl_val v)
{
    enum kl_op op = kl_op_of(s, v);
    if (kl_op_arg(s, v, 0).id != kl_op_arg(s, v, 1).id)
        return KL_NO;
    if (op == KL_OP_lt || op == KL_OP_gt)
        return truth(s, v, false);
    return ints(s, v) ? truth(s, v, op != KL_OP_ne) : KL_NO;
}

kl_val kl_rule_compare_limit(simp *s, kl_val v)
{
    uint64_t c, lo, hi;
    if (!ints(s, v) || !kl_const_arg(s, v, 1, &c))
        return KL_NO;
    ends(kl_elem_of(s, kl_op_arg(s, v, 0)), &lo, &hi);
    switch (kl_op_of(s, v)) {
    case KL_OP_lt: return c == lo ? truth(s, v, false) : KL_NO;
    case KL_OP_ge: return c == lo ? truth(s, v, true) : KL_NO;
    case KL_OP_gt: return c == hi ? truth(s, v, false) : KL_NO;
    default: return c == hi ? truth(s, v, true) : KL_NO;
    }
}

kl_val kl_rule_select_same(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 1), y = kl_op_arg(s, v, 2);
    uint64_t c;
    if (kl_const_arg(s, v, 0, &c))
        return c ? x : y;
    if (x.id == y.id)
        return x;
    return kl_const_arg(s, v, 1, &c) && kl_is_bits(s->f, y, c) ? x : KL_NO;
}

kl_val kl_rule_select_bool(simp *s, kl_val v)
{
    kl_val c = kl_op_arg(s, v, 0), x = kl_op_arg(s, v, 1), y = kl_op_arg(s, v, 2);
    if (kl_elem_of(s, v) != KL_bool)
        return KL_NO;
    if (kl_is_bits(s->f, x, 1) && kl_is_bits(s->f, y, 0))
        return c;
    if (kl_is_bits(s->f, x, 0) && kl_is_bits(s->f, y, 1))
        return kl_make2(s, v, KL_OP_xor, c, y);
    return KL_NO;
}

kl_val kl_rule_select_not(simp *s, kl_val v)
{
    kl_val c = kl_op_arg(s, v, 0);
    if (kl_op_of(s, c) != KL_OP_xor || !kl_is_bits(s->f, kl_op_arg(s, c, 1), 1))
        return KL_NO;
    kl_val a[3] = {kl_op_arg(s, c, 0), kl_op_arg(s, v, 2), kl_op_arg(s, v, 1)};
    kl_set_args(s->f, v, a, 3);
    return v;
}

/* ---- conversions ---- */

kl_val kl_rule_convert_same(simp *s, kl_val v)
{
    kl_val x = kl_op_arg(s, v, 0);
    return kl_in(s->f, x)->type.id == kl_in(s->f, v)->type.id ? x : KL_NO;
}

/* Bits that hold a value: of an integer without its sign, of a float its mantissa. */
static uint32_t precision(enum kl_elem e)
{
    switch (e) {
    case KL_bool: return 1;
    case KL_f16: return 11;
    case KL_bf16: return 8;
    case KL_f8e4m3: return 4;
    case KL_f8e5m2: return 3;
    case KL_f32: return 24;
    case KL_f64: return 53;
    default: return width(e) - (kl_elems[e].kind == KL_KIND_SINT);
    }
}

/* Does `to` hold every value of `from`, so that (to) loses nothing? */
static bool holds(enum kl_elem to, enum kl_elem from)
{
    uint8_t t = kl_elems[to].kind, f = kl_elems[from].kind;
    if (f == KL_KIND_FLT) /* two types of one size hold different values */
        return t == KL_KIND_FLT && (to == from || kl_elems[to].bytes > kl_elems[from].bytes);
    if (to == KL_bool)
        return from == KL_bool;
    if (t == KL_KIND_UINT && f == KL_KIND_SINT)
        return false;
    return precision(to) >= precision(from);
}

kl_val kl_rule_convert_chain(simp *s, kl_val v)
{
    kl_val b = kl_op_arg(s, v, 0);
    if (kl_op_of(s, b) != KL_OP_convert)
        return KL_NO;
    kl_val a = kl_op_arg(s, b, 0);
    enum kl_elem ta = kl_elem_of(s, a), tb = kl_elem_of(s, b), tc = kl_elem_of(s, v);
    bool wraps = kl_is_int(ta) && kl_is_int(tb) && kl_is_int(tc) && width(tb) >= width(tc);
    if (!wraps && !holds(tb, ta))
        return KL_NO;
    if (kl_is_float(tb) && !kl_is_float(ta) && kl_is_int(tc) && !holds(tc, ta))
        return KL_NO; /* from a float it saturates, from an integer it wraps */
    if (ta == KL_f8e5m2 && tc == ta)
        return KL_NO; /* an infinity comes back as the largest number */
    return ta == tc ? a : kl_make1(s, v, KL_OP_convert, a);
}

kl_val kl_rule_bitcast_chain(simp *s, kl_val v)
{
    kl_val b = kl_op_arg(s, v, 0);
    if (kl_op_of(s, b) != KL_OP_bitcast || kl_elem_of(s, b) == KL_bool) /* bool keeps one bit */
        return KL_NO;
    return kl_make1(s, v, KL_OP_bitcast, kl_op_arg(s, b, 0));
}
