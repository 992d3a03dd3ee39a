/* test_interp.c - the values of the interpreter against small literal definitions.
 *
 * Every reference here is written another way than the interpreter: element by element,
 * recursively, or in wider arithmetic. */
#include "interp_box.h"

#include "gen/interp/run.h"
#include "ir/meaning.h"

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

/* ---- element by element ---- */

static wide floor_div(wide a, wide b)
{
    wide q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

/* The integer rows in 128 bits; all operations are written from their descriptions. */
static uint64_t ref_int(enum kl_op op, enum kl_elem e, uint64_t av, uint64_t bv)
{
    bool sign = kl_elems[e].kind == KL_KIND_SINT;
    uint32_t w = kl_elems[e].bytes * 8u;
    wide a = sign ? (wide)(int64_t)av : (wide)av, b = sign ? (wide)(int64_t)bv : (wide)bv, r = 0;
    uint64_t count = w == 32 ? bv & 0xffffffff : bv;
    switch (op) {
    case KL_OP_add: r = a + b; break;
    case KL_OP_sub: r = a - b; break;
    case KL_OP_mul: return kl_canon(e, av * bv);
    case KL_OP_div: r = b ? a / b : -1; break;
    case KL_OP_rem: r = b ? a % b : a; break;
    case KL_OP_neg: r = -a; break;
    case KL_OP_abs: r = a < 0 ? -a : a; break;
    case KL_OP_min: r = a < b ? a : b; break;
    case KL_OP_max: r = a > b ? a : b; break;
    case KL_OP_and: return kl_canon(e, av & bv);
    case KL_OP_or: return kl_canon(e, av | bv);
    case KL_OP_xor: return kl_canon(e, av ^ bv);
    case KL_OP_shl: r = count >= w ? 0 : (wide)((uwide)a << count); break;
    case KL_OP_shr: r = count >= w ? (a < 0 ? -1 : 0) : a >> count; break;
    case KL_OP_floordiv: r = b ? floor_div(a, b) : -1; break;
    case KL_OP_floormod: r = b ? a - b * floor_div(a, b) : a; break;
    case KL_OP_cdiv: r = b ? -floor_div(-a, b) : -1; break;
    case KL_OP_pow2ceil:
        for (r = 1; r < a;)
            r *= 2;
        break;
    case KL_OP_umulhi: {
        uwide mask = ((uwide)1 << w) - 1;
        return kl_canon(e, (uint64_t)((((uwide)av & mask) * ((uwide)bv & mask)) >> w));
    }
    case KL_OP_popcount:
        for (uint32_t i = 0; i < w; i++)
            r += av >> i & 1;
        break;
    case KL_OP_clz:
        while (r < w && !(av >> (w - 1 - (uint32_t)r) & 1))
            r++;
        break;
    case KL_OP_ctz:
        while (r < w && !(av >> (uint32_t)r & 1))
            r++;
        break;
    case KL_OP_eq: return a == b;
    case KL_OP_ne: return a != b;
    case KL_OP_lt: return a < b;
    case KL_OP_le: return a <= b;
    case KL_OP_gt: return a > b;
    case KL_OP_ge: return a >= b;
    default: fail_msg("no reference for %s", kl_ops[op].name);
    }
    return kl_canon(e, (uint64_t)r);
}

/* Order of NUMERICS.md without looking at bits: NaN aside, -0 below +0. */
static bool before(double a, double b)
{
    return a < b || (a == 0 && b == 0 && signbit(a) && !signbit(b));
}

#define MATH_ROWS(M)                                                                               \
    M(exp) M(exp2) M(log) M(rsqrt) M(tanh) M(erf) M(erfc) M(sigmoid)                               \
    M(sin) M(cos) M(log2) M(log1p) M(expm1)

/* By subtracting b times the powers of two, from the largest one on; each step is exact. */
static double ref_fmod(double a, double b)
{
    if (isnan(a) || isnan(b) || isinf(a) || b == 0)
        return (double)NAN;
    double r = fabs(a), d = fabs(b);
    for (int k = r < d || isinf(d) ? -1 : ilogb(r) - ilogb(d); k >= 0; k--)
        if (r >= scalbn(d, k))
            r -= scalbn(d, k);
    return copysign(r, a);
}

/* 11 significant bits, by scaling: units of 2^(exponent - 10), of 2^-136 below the normal ones. */
static uint64_t ref_tf32(enum kl_elem e, uint64_t v)
{
    double a = kl_elem_double(e, v);
    if (isnan(a) || isinf(a) || a == 0)
        return v;
    int low = e == KL_f32 ? -126 : -1022, k = ilogb(a) < low ? low : ilogb(a);
    double r = ldexp(round(ldexp(a, 10 - k)), k - 10); /* 2^128, too, becomes infinity */
    return e == KL_f32 ? kl_f32_bits((float)r) : kl_f64_bits(r);
}

static uint64_t ref_flt(enum kl_op op, enum kl_elem e, uint64_t av, uint64_t bv, uint64_t cv)
{
    bool f32 = e == KL_f32;
    double a = kl_elem_double(e, av), b = kl_elem_double(e, bv), r = 0;
    float fa = (float)a, fb = (float)b, fr = 0;
    switch (op) {
    case KL_OP_add: fr = fa + fb, r = a + b; break;
    case KL_OP_sub: fr = fa - fb, r = a - b; break;
    case KL_OP_mul: fr = fa * fb, r = a * b; break;
    case KL_OP_div: fr = fa / fb, r = a / b; break;
    case KL_OP_neg: return av ^ UINT64_C(1) << (f32 ? 31 : 63);
    case KL_OP_abs: return av & ~(UINT64_C(1) << (f32 ? 31 : 63));
    case KL_OP_min: return a != a ? av : b != b ? bv : before(b, a) ? bv : av;
    case KL_OP_max: return a != a ? av : b != b ? bv : before(a, b) ? bv : av;
    case KL_OP_fmin: return a != a ? bv : b != b ? av : before(b, a) ? bv : av;
    case KL_OP_fmax: return a != a ? bv : b != b ? av : before(a, b) ? bv : av;
    case KL_OP_fma:
        fr = fmaf(fa, fb, (float)kl_elem_double(e, cv)), r = fma(a, b, kl_elem_double(e, cv));
        break;
    case KL_OP_sqrt: fr = sqrtf(fa), r = sqrt(a); break;
    case KL_OP_floor: fr = floorf(fa), r = floor(a); break;
    case KL_OP_ceil: fr = ceilf(fa), r = ceil(a); break;
    case KL_OP_trunc: fr = truncf(fa), r = trunc(a); break;
    case KL_OP_rint: fr = rintf(fa), r = rint(a); break;
    case KL_OP_round: fr = roundf(fa), r = round(a); break;
    case KL_OP_tf32: return ref_tf32(e, av);
    case KL_OP_pow: fr = kl_pow_f32(fa, fb), r = kl_pow_f64(a, b); break;
    case KL_OP_fmod: r = ref_fmod(a, b), fr = (float)r; break;
    case KL_OP_copysign: {
        uint64_t top = UINT64_C(1) << (f32 ? 31 : 63);
        return (av & ~top) | (isnan(b) ? 0 : bv & top);
    }
    case KL_OP_eq: return a == b;
    case KL_OP_ne: return !(a == b);
    case KL_OP_lt: return a < b;
    case KL_OP_le: return a <= b;
    case KL_OP_gt: return a > b;
    case KL_OP_ge: return a >= b;
#define M(name)                                                                                    \
    case KL_OP_##name: fr = kl_##name##_f32(fa), r = kl_##name##_f64(a); break;
        MATH_ROWS(M)
#undef M
    default: fail_msg("no reference for %s", kl_ops[op].name);
    }
    return f32 ? kl_f32_bits(fr) : kl_f64_bits(r);
}

static bool row_exists(enum kl_op op, enum kl_elem e)
{
    bool num = e == KL_i32 || e == KL_i64 || e == KL_u32 || e == KL_u64;
    bool flt = e == KL_f32 || e == KL_f64;
    switch (kl_ops[op].cls) {
    case KL_C_NUM:
    case KL_C_CMP: return num || flt;
    case KL_C_INT: return num;
    case KL_C_FLT: return flt;
    case KL_C_BIT: return num || e == KL_bool;
    default: return false;
    }
}

static void one_row(enum kl_op op, enum kl_elem e)
{
    enum { N = 1003 }; /* no multiple of a strip */
    struct box x;
    static uint64_t in[3][N];
    static char mem_in[3][N * 8], out[N * 8];
    box_fn(&x);
    uint32_t n = N, args = kl_ops[op].nargs;
    kl_val v[3], view;
    for (uint32_t k = 0; k < args; k++) {
        for (uint32_t i = 0; i < N; i++) {
            /* all pairs of special values, then random ones */
            in[k][i] = special(e, k == 0 ? i : k == 1 && i < 900 ? i * 7 + i / 46 : rnd() % 60);
            kl_elem_store(e, mem_in[k] + i * kl_elems[e].bytes, in[k][i]);
        }
        view = array(&x, k, e, mem_in[k], N);
        v[k] = get(&x, view, 1, &n);
    }
    kl_val r = kl_emit(&x.b, op, (kl_typ){0}, v, args, (union kl_attr){0});
    enum kl_elem to = (enum kl_elem)kl_type_of(x.f, r)->elem;
    put(&x, array(&x, args, to, out, N), r);
    assert_int_equal(run(&x, 0), KILN_OK);
    for (uint32_t i = 0; i < N; i++) {
        uint64_t got = kl_elem_load(to, out + i * kl_elems[to].bytes), want, fold;
        if (kl_is_float(e))
            want = ref_flt(op, e, in[0][i], in[1][i], in[2][i]);
        else if (e == KL_bool)
            want = op == KL_OP_and  ? in[0][i] && in[1][i]
                   : op == KL_OP_or ? in[0][i] || in[1][i]
                                    : in[0][i] != in[1][i];
        else
            want = ref_int(op, e, in[0][i], in[1][i]);
        uint64_t three[3] = {in[0][i], in[1][i], in[2][i]};
        assert_true(kl_fold(op, to, e, three, &fold));
        if (!same_bits(to, got, want) || !same_bits(to, got, fold))
            fail_msg("%s %s(%llx, %llx, %llx): %llx, reference %llx, folder %llx", kl_ops[op].name,
                     kl_elems[e].name, (unsigned long long)in[0][i], (unsigned long long)in[1][i],
                     (unsigned long long)in[2][i], (unsigned long long)got,
                     (unsigned long long)want, (unsigned long long)fold);
    }
    box_close(&x);
}

static void elementwise(void **state)
{
    (void)state;
    uint32_t rows = 0;
    for (int op = 1; op < KL_OP_const; op++)
        for (int e = 1; e < KL_NELEM; e++)
            if (row_exists((enum kl_op)op, (enum kl_elem)e)) {
                one_row((enum kl_op)op, (enum kl_elem)e);
                rows++;
            }
    assert_true(rows > 150);
}

/* The loops for any processor give what those for this one give. */
static void instruction_sets(void **state)
{
    enum { N = 5001 };
    static double in[3][N], out[2][N]; /* the widest element */
    (void)state;
    for (int op = 1; op < KL_OP_const; op++)
        for (int e = 1; e < KL_NELEM; e++) {
            if (!row_exists((enum kl_op)op, (enum kl_elem)e))
                continue;
            enum kl_elem to = kl_ops[op].cls == KL_C_CMP ? KL_bool : (enum kl_elem)e;
            for (int k = 0; k < 3; k++)
                for (uint32_t i = 0; i < N; i++)
                    kl_elem_store((enum kl_elem)e, (char *)in[k] + i * kl_elems[e].bytes,
                                  special((enum kl_elem)e, 100 + i));
            kl_ew_find((enum kl_op)op, (enum kl_elem)e)(out[0], in[0], in[1], in[2], N);
            kl_ew_base((enum kl_op)op, (enum kl_elem)e)(out[1], in[0], in[1], in[2], N);
            for (uint32_t i = 0; i < N; i++)
                assert_true(same_bits(to, kl_elem_load(to, (char *)out[0] + i * kl_elems[to].bytes),
                                      kl_elem_load(to, (char *)out[1] + i * kl_elems[to].bytes)));
        }
    for (int e = KL_i32; e <= KL_f64; e++) {
        kl_dot_fn *fn = kl_dot_find((enum kl_elem)e), *base = kl_dot_base((enum kl_elem)e);
        if (!fn)
            continue;
        for (int k = 0; k < 3; k++)
            for (uint32_t i = 0; i < N; i++)
                kl_elem_store((enum kl_elem)e, (char *)in[k] + i * kl_elems[e].bytes,
                              special((enum kl_elem)e, 101));
        memcpy(out[0], in[2], sizeof in[2]);
        memcpy(out[1], in[2], sizeof in[2]);
        fn(out[0], in[0], in[1], 37, 45, 70);
        base(out[1], in[0], in[1], 37, 45, 70);
        assert_memory_equal(out[0], out[1], sizeof out[0]);
    }
}

static void selects(void **state)
{
    enum { N = 77 };
    (void)state;
    for (int e = 1; e < KL_NELEM; e++) {
        if (e == KL_f8e4m3 || e == KL_f8e5m2)
            continue;
        struct box x;
        static char m[N], a[N * 8], b[N * 8], out[N * 8];
        uint32_t n = N, w = kl_elems[e].bytes;
        box_fn(&x);
        for (uint32_t i = 0; i < N; i++) {
            m[i] = (char)(below(3) * 5); /* any non-zero byte is true */
            kl_elem_store((enum kl_elem)e, a + i * w, special((enum kl_elem)e, i));
            kl_elem_store((enum kl_elem)e, b + i * w, special((enum kl_elem)e, i + 5));
        }
        kl_val v[3] = {get(&x, array(&x, 0, KL_bool, m, N), 1, &n),
                       get(&x, array(&x, 1, (enum kl_elem)e, a, N), 1, &n),
                       get(&x, array(&x, 2, (enum kl_elem)e, b, N), 1, &n)};
        put(&x, array(&x, 3, (enum kl_elem)e, out, N),
            kl_ew3(&x.b, KL_OP_select, v[0], v[1], v[2]));
        assert_int_equal(run(&x, 0), KILN_OK);
        for (uint32_t i = 0; i < N; i++)
            assert_memory_equal(out + i * w, (m[i] ? a : b) + i * w, w);
        box_close(&x);
    }
}

/* ---- casts ---- */

static void cast(enum kl_elem to, enum kl_elem from, const void *in, void *out, uint32_t n,
                 bool bits)
{
    struct box x;
    box_fn(&x);
    kl_val v = get(&x, array(&x, 0, from, (void *)(uintptr_t)in, n), 1, &n);
    v = kl_emit(&x.b, bits ? KL_OP_bitcast : KL_OP_convert, kl_tile(x.f, to, 1, &n), &v, 1,
                (union kl_attr){0});
    put(&x, array(&x, 1, to, out, n), v);
    assert_int_equal(run(&x, 0), KILN_OK);
    box_close(&x);
}

static void check_cast(enum kl_elem to, enum kl_elem from, const char *in, uint32_t n)
{
    char *out = malloc((size_t)n * 8);
    cast(to, from, in, out, n, false);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t v = kl_elem_load(from, in + (size_t)i * kl_elems[from].bytes);
        uint64_t got = kl_elem_load(to, out + (size_t)i * kl_elems[to].bytes);
        uint64_t want = kl_convert(to, from, v);
        if (!same_bits(to, got, want))
            fail_msg("%s from %s %llx: %llx, must be %llx", kl_elems[to].name, kl_elems[from].name,
                     (unsigned long long)v, (unsigned long long)got, (unsigned long long)want);
    }
    free(out);
}

static void casts(void **state)
{
    enum { N = 1500, MANY = 1 << 20 };
    (void)state;
    char *in = malloc((size_t)MANY * 8);
    for (int from = 1; from < KL_NELEM; from++)
        for (int to = 1; to < KL_NELEM; to++) {
            for (uint32_t i = 0; i < N; i++)
                kl_elem_store((enum kl_elem)from, in + i * kl_elems[from].bytes,
                              special((enum kl_elem)from, i));
            check_cast((enum kl_elem)to, (enum kl_elem)from, in, N);
        }
    for (uint32_t i = 0; i < 65536; i++)
        ((uint16_t *)(void *)in)[i] = (uint16_t)i;
    check_cast(KL_f32, KL_f16, in, 65536);
    check_cast(KL_f32, KL_bf16, in, 65536);
    check_cast(KL_i32, KL_f16, in, 65536);
    for (uint32_t i = 0; i < MANY; i++) /* every binade, signs, ties */
        ((uint32_t *)(void *)in)[i] = i * 4096u + (uint32_t)below(3) * 2047 + (i & 3);
    check_cast(KL_f16, KL_f32, in, MANY);
    check_cast(KL_bf16, KL_f32, in, MANY);
    check_cast(KL_i32, KL_f32, in, MANY);
    check_cast(KL_u8, KL_f32, in, MANY);
    uint8_t u[4] = {0, 1, 2, 200}, t[4];
    cast(KL_bool, KL_u8, u, t, 4, true);
    assert_memory_equal(t, ((uint8_t[]){0, 1, 1, 1}), 4);
    float f[2] = {1.0f, -0.0f};
    uint32_t w[2];
    cast(KL_u32, KL_f32, f, w, 2, true);
    assert_true(w[0] == 0x3f800000 && w[1] == 0x80000000);
    free(in);
}

/* ---- reductions ---- */

/* Element i once all distances >= d have been combined, by the definition of the tree; the
 * element at [o][i][in] of x[outer][n][inner]. */
struct line {
    const char *x;
    uint64_t n, inner, at; /* at: of element 0 */
    enum kl_elem e;
    uint64_t (*f)(enum kl_elem e, uint64_t a, uint64_t b);
};

static uint64_t tree(const struct line *l, uint64_t i, uint64_t d)
{
    if (d >= l->n) /* nothing combined yet */
        return kl_elem_load(l->e, l->x + (l->at + i * l->inner) * kl_elems[l->e].bytes);
    uint64_t left = tree(l, i, 2 * d);
    return i + d < l->n ? l->f(l->e, left, tree(l, i + d, 2 * d)) : left;
}

static uint64_t neighbours(const struct line *l, uint64_t i, uint64_t size)
{
    if (size == 1)
        return kl_elem_load(l->e, l->x + (l->at + i * l->inner) * kl_elems[l->e].bytes);
    uint64_t left = neighbours(l, i, size / 2);
    return i + size / 2 < l->n ? l->f(l->e, left, neighbours(l, i + size / 2, size / 2)) : left;
}

static enum kl_op fold_op;
static uint64_t fold_with(enum kl_elem e, uint64_t a, uint64_t b)
{
    if (e == KL_bool)
        return fold_op == KL_OP_and ? a & b : fold_op == KL_OP_or ? a | b : a ^ b;
    return kl_is_float(e) ? ref_flt(fold_op, e, a, b, 0) : ref_int(fold_op, e, a, b);
}

static uint64_t pow2_above(uint64_t n)
{
    uint64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static void check_lines(const char *in, const char *out, enum kl_elem e, uint64_t outer, uint64_t n,
                        uint64_t inner, bool halving,
                        uint64_t (*f)(enum kl_elem, uint64_t, uint64_t))
{
    for (uint64_t o = 0; o < outer; o++)
        for (uint64_t k = 0; k < inner; k++) {
            struct line l = {in, n, inner, o * n * inner + k, e, f};
            uint64_t want = halving ? tree(&l, 0, 1) : neighbours(&l, 0, pow2_above(n));
            uint64_t got = kl_elem_load(e, out + (o * inner + k) * kl_elems[e].bytes);
            if (!same_bits(e, got, want))
                fail_msg("%s %s [%u][%u][%u], halving %d: %llx, must be %llx", kl_ops[fold_op].name,
                         kl_elems[e].name, (unsigned)outer, (unsigned)n, (unsigned)inner, halving,
                         (unsigned long long)got, (unsigned long long)want);
        }
}

/* Shape [outer][n][inner] without the axes of size 1 in half of the cases. */
static kl_typ fold_shape(struct box *x, enum kl_elem e, uint32_t outer, uint32_t n, uint32_t inner,
                         uint32_t *axis)
{
    uint32_t dim[3] = {outer, n, inner}, from = outer == 1 && below(2),
             to = inner == 1 && below(2) ? 2 : 3;
    *axis = 1 - from;
    return kl_tile(x->f, e, to - from, dim + from);
}

static void one_reduce(enum kl_op op, enum kl_elem e, uint32_t outer, uint32_t n, uint32_t inner)
{
    struct box x;
    uint32_t axis, total = outer * n * inner, w = kl_elems[e].bytes;
    char *in = malloc((size_t)total * w), *out = malloc((size_t)outer * inner * w);
    for (uint32_t i = 0; i < total; i++)
        kl_elem_store(e, in + i * w, special(e, 200 + below(200) * (below(50) ? 1 : 0)));
    box_fn(&x);
    kl_typ shape = fold_shape(&x, e, outer, n, inner, &axis);
    struct kl_type t = x.f->type[shape.id];
    kl_val v = get(&x, array(&x, 0, e, in, total), t.rank, t.dim);
    t.dim[axis] = 1;
    union kl_attr attr = {.red = {.op = (uint16_t)op, .axis = (uint8_t)axis}};
    v = kl_emit(&x.b, KL_OP_reduce, kl_tile(x.f, e, t.rank, t.dim), &v, 1, attr);
    put(&x, array(&x, 1, e, out, outer * inner), v);
    assert_int_equal(run(&x, 0), KILN_OK);
    fold_op = op;
    check_lines(in, out, e, outer, n, inner, true, fold_with);
    box_close(&x);
    free(in);
    free(out);
}

static void reductions(void **state)
{
    static const uint32_t odd[] = {100, 127, 128, 129, 255, 1000, 1023, 1025, 4097};
    static const enum kl_op ops[] = {KL_OP_mul, KL_OP_min, KL_OP_max, KL_OP_fmin, KL_OP_fmax,
                                     KL_OP_and, KL_OP_or,  KL_OP_xor, KL_OP_add};
    (void)state;
    for (uint32_t n = 1; n <= 70; n++) {
        one_reduce(KL_OP_add, KL_f32, 1, n, 1);
        one_reduce(KL_OP_add, KL_f32, 1 + (uint32_t)below(4), n, 1 + (uint32_t)below(5));
        one_reduce(KL_OP_add, KL_f64, 1 + (uint32_t)below(4), n, 1 + (uint32_t)below(5));
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
            for (int e = 1; e < KL_NELEM; e++)
                if (row_exists(ops[i], (enum kl_elem)e) && below(3) == 0)
                    one_reduce(ops[i], (enum kl_elem)e, 1 + (uint32_t)below(3), n,
                               1 + (uint32_t)below(3));
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        one_reduce(KL_OP_add, KL_f32, 1, odd[i], 1);
        one_reduce(KL_OP_add, KL_f32, 2, odd[i], 3);
        one_reduce(KL_OP_max, KL_f64, 3, odd[i], 1);
        one_reduce(KL_OP_add, KL_f32, 9 + (uint32_t)below(90), 1 + odd[i] % 40, 1); /* short rows */
    }
}

/* -0 passes through where it has no partner. */
static void pass_through(void **state)
{
    struct box x;
    float in[3] = {-0.0f, -0.0f, -0.0f}, out = 1;
    (void)state;
    box_text(&x, "fn t(%0: array<f32,1> x, %1: array<f32,1> y written) {\n"
                 "%z = const 0 : i64\n%o = const 1 : i64\n%n = const 3 : i64\n"
                 "%x = view %0, %z [%n] stride [%o] : array<f32,1>\n"
                 "%y = view %1, %z [%o] stride [%o] : array<f32,1>\n"
                 "%v = load %x[%z:3] : f32[3]\n%s = reduce add %v axis 0 : f32[1]\n"
                 "store %y[%z:1], %s\n}\n");
    mem(&x, 0, in, sizeof in);
    mem(&x, 1, &out, sizeof out);
    assert_int_equal(run(&x, 0), KILN_OK);
    assert_true(out == 0 && signbit(out));
    box_close(&x);
}

/* 3a - b in wrapping integers: neither commutative nor associative, so that it tells the
 * order.  kind 1: through an if; 2: through a loop, which does not run on vectors. */
static uint64_t three_a_minus_b(enum kl_elem e, uint64_t a, uint64_t b)
{
    return kl_canon(e, 3 * a - b);
}

static uint64_t scaled(enum kl_elem e, uint64_t a, uint64_t b)
{
    return kl_canon(e, a > b ? 11 * a - b : 11 * b + a);
}

static kl_val fn_if(struct box *x, kl_build *b, kl_val p, kl_val q, kl_val k)
{
    union kl_attr attr = {.blk = {kl_blk_new(x->f), kl_blk_new(x->f)}};
    kl_val c = kl_ew2(b, KL_OP_gt, p, q);
    kl_build yes = {.f = x->f, .blk = attr.blk[0]}, no = {.f = x->f, .blk = attr.blk[1]};
    kl_val v = kl_ew2(&yes, KL_OP_sub, kl_ew2(&yes, KL_OP_mul, p, k), q);
    kl_emit(&yes, KL_OP_yield, (kl_typ){0}, &v, 1, (union kl_attr){0});
    v = kl_ew2(&no, KL_OP_add, kl_ew2(&no, KL_OP_mul, q, k), p);
    kl_emit(&no, KL_OP_yield, (kl_typ){0}, &v, 1, (union kl_attr){0});
    kl_val i = kl_emit(b, KL_OP_if, (kl_typ){0}, &c, 1, attr);
    return kl_result(b, i, 0, kl_in(x->f, p)->type);
}

static kl_val fn_loop(struct box *x, kl_build *b, kl_val p, kl_val q)
{
    union kl_attr attr = {.loop = {.blk = kl_blk_new(x->f)}};
    kl_build in = {.f = x->f, .blk = attr.loop.blk};
    kl_block_param(&in, kl_scalar(x->f, KL_i64));
    kl_val sum = kl_block_param(&in, kl_in(x->f, p)->type);
    kl_val v = kl_ew2(&in, KL_OP_add, sum, p);
    kl_emit(&in, KL_OP_yield, (kl_typ){0}, &v, 1, (union kl_attr){0});
    kl_val args[4] = {kl_cst_i64(b, 0), kl_cst_i64(b, 3), kl_cst_i64(b, 1),
                      kl_ew1(b, KL_OP_neg, q)};
    kl_val l = kl_emit(b, KL_OP_for, (kl_typ){0}, args, 4, attr);
    return kl_result(b, l, 0, kl_in(x->f, p)->type);
}

static void one_reduce_fn(uint32_t outer, uint32_t n, uint32_t inner, bool halving, int kind)
{
    struct box x;
    uint32_t axis, total = outer * n * inner;
    uint32_t *in = malloc(total * 4u), *out = malloc((size_t)outer * inner * 4);
    for (uint32_t i = 0; i < total; i++)
        in[i] = (uint32_t)rnd();
    box_fn(&x);
    kl_typ shape = fold_shape(&x, KL_u32, outer, n, inner, &axis);
    struct kl_type t = x.f->type[shape.id];
    kl_val from = array(&x, 0, KL_u32, in, total), to = array(&x, 1, KL_u32, out, outer * inner);
    kl_val v = get(&x, from, t.rank, t.dim), k = kl_cst(&x.b, kl_scalar(x.f, KL_u32), 11);
    t.dim[axis] = 1;
    union kl_attr attr = {
        .redfn = {.axis = (uint8_t)axis, .commutative = halving, .blk = kl_blk_new(x.f)}};
    kl_build b = {.f = x.f, .blk = attr.redfn.blk};
    kl_val p = kl_block_param(&b, kl_scalar(x.f, KL_u32)), r;
    kl_val q = kl_block_param(&b, kl_scalar(x.f, KL_u32));
    if (kind == 0)
        r = kl_ew2(&b, KL_OP_sub, kl_ew2(&b, KL_OP_mul, p, kl_cst(&b, kl_scalar(x.f, KL_u32), 3)),
                   q);
    else
        r = kind == 1 ? fn_if(&x, &b, p, q, k) : fn_loop(&x, &b, p, q);
    kl_emit(&b, KL_OP_yield, (kl_typ){0}, &r, 1, (union kl_attr){0});
    v = kl_emit(&x.b, KL_OP_reduce_fn, kl_tile(x.f, KL_u32, t.rank, t.dim), &v, 1, attr);
    put(&x, to, v);
    assert_int_equal(run(&x, 0), KILN_OK);
    check_lines((char *)in, (char *)out, KL_u32, outer, n, inner, halving,
                kind == 1 ? scaled : three_a_minus_b);
    box_close(&x);
    free(in);
    free(out);
}

static void reductions_by_function(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 70; n++)
        for (int kind = 0; kind < 3; kind++) {
            one_reduce_fn(1, n, 1, n & 1, kind);
            one_reduce_fn(1 + (uint32_t)below(4), n, 1 + (uint32_t)below(4), true, kind);
            one_reduce_fn(1 + (uint32_t)below(4), n, 1 + (uint32_t)below(4), false, kind);
        }
    one_reduce_fn(3, 5000, 1, true, 0);
    one_reduce_fn(3, 5001, 2, false, 1);
}

/* ---- scans ---- */

typedef uint64_t fold_fn_type(enum kl_elem, uint64_t, uint64_t);

/* The definition, by recursion: the last element of scanning x[0 .. n). */
static uint64_t last_of_scan(const uint32_t *x, uint32_t n, uint32_t step, fold_fn_type *f)
{
    uint32_t half = 1;
    if (n == 1)
        return x[0];
    while (half * 2 < n)
        half *= 2;
    uint64_t left = last_of_scan(x, half, step, f);
    return f(KL_u32, left, last_of_scan(x + (size_t)half * step, n - half, step, f));
}

/* For element i of a line of n: the left halves that hold a part of 0 .. i, from the top.  The
 * total of such a half is the last element of its own scan. */
static uint64_t element_of_scan(const uint32_t *x, uint32_t i, uint32_t n, uint32_t step, fold_fn_type *f)
{
    uint32_t half = 1;
    if (n == 1)
        return x[0];
    while (half * 2 < n)
        half *= 2;
    if (i < half)
        return element_of_scan(x, i, half, step, f);
    uint64_t right = element_of_scan(x + (size_t)half * step, i - half, n - half, step, f);
    return f(KL_u32, last_of_scan(x, half, step, f), right);
}

/* With several tiles the second goes the other way round: 3b - a, 3a - b. */
static void one_scan(uint32_t outer, uint32_t n, uint32_t inner, int kind, bool two)
{
    struct box x;
    uint32_t axis, total = outer * n * inner;
    uint32_t *in = malloc(total * 4u), *out = malloc(total * 4u), *other = malloc(total * 4u);
    for (uint32_t i = 0; i < total; i++)
        in[i] = (uint32_t)rnd();
    box_fn(&x);
    kl_typ shape = fold_shape(&x, KL_u32, outer, n, inner, &axis), s = kl_scalar(x.f, KL_u32);
    struct kl_type t = x.f->type[shape.id];
    kl_val from = array(&x, 0, KL_u32, in, total), to = array(&x, 1, KL_u32, out, total);
    kl_val to2 = two ? array(&x, 2, KL_u32, other, total) : (kl_val){0};
    kl_val v[2] = {get(&x, from, t.rank, t.dim)}, k = kl_cst(&x.b, s, 11), p[4], r[2];
    union kl_attr attr = {.redfn = {.axis = (uint8_t)axis, .blk = kl_blk_new(x.f)}};
    kl_build b = {.f = x.f, .blk = attr.redfn.blk};
    uint32_t m = two ? 2 : 1;
    v[1] = v[0];
    for (uint32_t i = 0; i < 2 * m; i++)
        p[i] = kl_block_param(&b, s);
    for (uint32_t i = 0; i < m; i++) {
        kl_val a = p[i], c = p[m + i];
        if (kind == 0)
            r[i] = kl_ew2(&b, KL_OP_sub, kl_ew2(&b, KL_OP_mul, a, kl_cst(&b, s, 3)), c);
        else
            r[i] = kind == 1 ? fn_if(&x, &b, a, c, k) : fn_loop(&x, &b, a, c);
    }
    if (two) /* each result needs all four */
        r[1] = kl_ew2(&b, KL_OP_sub, kl_ew2(&b, KL_OP_add, r[1], r[0]), r[0]);
    kl_emit(&b, KL_OP_yield, (kl_typ){0}, r, m, (union kl_attr){0});
    kl_val o = kl_emit(&x.b, KL_OP_scan, shape, v, m, attr);
    kl_val o2 = {0};
    if (two) {
        kl_val of = o;
        o = kl_result(&x.b, of, 0, shape);
        o2 = kl_result(&x.b, of, 1, shape);
    }
    put(&x, to, o);
    if (two)
        put(&x, to2, o2);
    assert_int_equal(run(&x, 0), KILN_OK);
    for (uint32_t i = 0; i < outer; i++)
        for (uint32_t j = 0; j < n; j++)
            for (uint32_t c = 0; c < inner; c++) {
                uint64_t want = element_of_scan(in + (size_t)i * n * inner + c, j, n, inner,
                                                kind == 1 ? scaled : three_a_minus_b);
                assert_int_equal(out[((size_t)i * n + j) * inner + c], want);
                if (two)
                    assert_int_equal(other[((size_t)i * n + j) * inner + c], want);
            }
    box_close(&x);
    free(in);
    free(out);
    free(other);
}

static void scans(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 70; n++)
        for (int kind = 0; kind < 3; kind++) {
            one_scan(1, n, 1, kind, n & 1);
            one_scan(1 + (uint32_t)below(4), n, 1 + (uint32_t)below(4), kind, below(2));
        }
    one_scan(3, 1500, 1, 0, false);
    one_scan(2, 1025, 2, 1, true);
}

/* The place of the extreme, by looking at every pair. */
static void one_arg(enum kl_elem e, uint32_t outer, uint32_t n, uint32_t inner, bool min)
{
    struct box x;
    uint32_t axis, total = outer * n * inner, w = kl_elems[e].bytes;
    char *in = malloc((size_t)total * w);
    int32_t *out = malloc((size_t)outer * inner * 4);
    for (uint32_t i = 0; i < total; i++)
        kl_elem_store(e, in + i * w, special(e, below(below(2) ? 8 : 60)));
    box_fn(&x);
    kl_typ shape = fold_shape(&x, e, outer, n, inner, &axis);
    struct kl_type t = x.f->type[shape.id];
    kl_val v = get(&x, array(&x, 0, e, in, total), t.rank, t.dim);
    t.dim[axis] = 1;
    v = kl_emit(&x.b, min ? KL_OP_argmin : KL_OP_argmax, kl_tile(x.f, KL_i32, t.rank, t.dim), &v, 1,
                (union kl_attr){.index = axis});
    put(&x, array(&x, 1, KL_i32, out, outer * inner), v);
    assert_int_equal(run(&x, 0), KILN_OK);
    for (uint32_t o = 0; o < outer; o++)
        for (uint32_t k = 0; k < inner; k++) {
            uint64_t val[80];
            uint32_t want = n;
            for (uint32_t i = 0; i < n; i++)
                val[i] = kl_elem_load(e, in + (o * n * inner + i * inner + k) * w);
            for (uint32_t i = 0; i < n && want == n; i++) { /* the first that nothing beats */
                bool beaten = false;
                for (uint32_t j = 0; j < n; j++) {
                    double a = kl_elem_double(e, val[i]), b = kl_elem_double(e, val[j]);
                    if (kl_is_float(e))
                        beaten |= a == a && (b != b || (min ? before(b, a) : before(a, b)));
                    else
                        beaten |= ref_int(min ? KL_OP_lt : KL_OP_gt, e, val[j], val[i]) != 0;
                }
                want = beaten ? n : i;
            }
            assert_int_equal(out[o * inner + k], want);
        }
    box_close(&x);
    free(in);
    free(out);
}

static void arguments(void **state)
{
    static const enum kl_elem es[] = {KL_i32, KL_i64, KL_u32, KL_u64, KL_f32, KL_f64};
    (void)state;
    for (size_t i = 0; i < sizeof es / sizeof *es; i++)
        for (uint32_t n = 1; n <= 70; n += 1 + n / 8) {
            one_arg(es[i], 1, n, 1, n & 1);
            one_arg(es[i], 1 + (uint32_t)below(3), n, 1 + (uint32_t)below(3), false);
            one_arg(es[i], 1 + (uint32_t)below(3), n, 1 + (uint32_t)below(3), true);
        }
}

/* ---- dot ---- */

static void one_dot(enum kl_elem e, uint32_t batch, uint32_t m, uint32_t n, uint32_t k)
{
    struct box x;
    enum kl_elem acc = (enum kl_elem)kl_elems[e].acc;
    uint32_t w = kl_elems[e].bytes, aw = kl_elems[acc].bytes, rank = batch ? 3 : 2;
    uint32_t nb = batch ? batch : 1;
    char *a = malloc((size_t)nb * m * k * w), *b = malloc((size_t)nb * k * n * w);
    char *c = malloc((size_t)nb * m * n * aw), *out = malloc((size_t)nb * m * n * aw);
    for (uint32_t i = 0; i < nb * m * k; i++)
        kl_elem_store(e, a + i * w, special(e, below(40) ? 300 : below(60)));
    for (uint32_t i = 0; i < nb * k * n; i++)
        kl_elem_store(e, b + i * w, special(e, below(40) ? 301 : below(60)));
    for (uint32_t i = 0; i < nb * m * n; i++)
        kl_elem_store(acc, c + i * aw, special(acc, 301));
    box_fn(&x);
    uint32_t da[3] = {nb, m, k}, db[3] = {nb, k, n}, dc[3] = {nb, m, n}, skip = 3 - rank;
    kl_val v[3] = {get(&x, array(&x, 0, e, a, nb * m * k), rank, da + skip),
                   get(&x, array(&x, 1, e, b, nb * k * n), rank, db + skip),
                   get(&x, array(&x, 2, acc, c, nb * m * n), rank, dc + skip)};
    kl_val r =
        kl_emit(&x.b, KL_OP_dot, kl_tile(x.f, acc, rank, dc + skip), v, 3, (union kl_attr){0});
    put(&x, array(&x, 3, acc, out, nb * m * n), r);
    assert_int_equal(run(&x, 0), KILN_OK);
    for (uint32_t z = 0; z < nb; z++)
        for (uint32_t i = 0; i < m; i++)
            for (uint32_t j = 0; j < n; j++) {
                uint32_t at = (z * m + i) * n + j;
                uint64_t s = kl_elem_load(acc, c + at * aw), got = kl_elem_load(acc, out + at * aw);
                for (uint32_t t = 0; t < k; t++) {
                    uint64_t p = kl_convert(acc, e, kl_elem_load(e, a + ((z * m + i) * k + t) * w));
                    uint64_t q = kl_convert(acc, e, kl_elem_load(e, b + ((z * k + t) * n + j) * w));
                    s = kl_is_float(acc) ? ref_flt(KL_OP_fma, acc, p, q, s)
                                         : kl_canon(acc, p * q + s);
                }
                if (!same_bits(acc, got, s))
                    fail_msg("dot %s %ux%ux%ux%u [%u][%u][%u]: %llx, must be %llx",
                             kl_elems[e].name, nb, m, n, k, z, i, j, (unsigned long long)got,
                             (unsigned long long)s);
            }
    box_close(&x);
    free(a), free(b), free(c), free(out);
}

static void dots(void **state)
{
    (void)state;
    for (int e = KL_i8; e <= KL_f64; e++)
        for (int i = 0; i < 12; i++)
            one_dot((enum kl_elem)e, (uint32_t)below(3), 1 + (uint32_t)below(i < 9 ? 9 : 40),
                    1 + (uint32_t)below(i < 9 ? 9 : 70), 1 + (uint32_t)below(i < 9 ? 9 : 50));
}

/* ---- shapes ---- */

static uint64_t ravel(const struct kl_type *t, const uint64_t at[4])
{
    uint64_t lane = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        lane = lane * t->dim[i] + at[i];
    return lane;
}

static void one_shape(enum kl_op op, enum kl_elem e)
{
    struct box x;
    struct kl_type a = {.kind = KL_T_TILE, .elem = (uint8_t)e, .rank = (uint8_t)below(5)}, r, b;
    uint32_t most = below(8) ? 6 : 40, w = kl_elems[e].bytes, axis = 0, lead = 0;
    int64_t perm[4] = {0, 1, 2, 3};
    if (op == KL_OP_cat || op == KL_OP_flip)
        a.rank = (uint8_t)(1 + below(4));
    for (uint32_t i = 0; i < a.rank; i++)
        a.dim[i] = below(4) ? 1 + (uint32_t)below(most) : 1;
    r = b = a;
    if (a.rank)
        axis = (uint32_t)below(a.rank);
    if (op == KL_OP_cat) {
        b.dim[axis] = 1 + (uint32_t)below(6);
        r.dim[axis] = a.dim[axis] + b.dim[axis];
    } else if (op == KL_OP_permute) {
        for (uint32_t i = a.rank; i-- > 1;) {
            uint32_t j = (uint32_t)below(i + 1);
            int64_t t = perm[i];
            perm[i] = perm[j], perm[j] = t;
        }
        for (uint32_t i = 0; i < a.rank; i++)
            r.dim[i] = a.dim[perm[i]];
    } else if (op == KL_OP_broadcast) {
        lead = (uint32_t)below(5u - a.rank);
        r.rank = (uint8_t)(a.rank + lead);
        for (uint32_t i = r.rank; i-- > 0;)
            r.dim[i] = i >= lead && a.dim[i - lead] != 1 ? a.dim[i - lead] : 1 + (uint32_t)below(6);
    }
    uint64_t na = kl_numel(&a), nb = kl_numel(&b), nr = kl_numel(&r);
    char *ma = malloc(na * w), *mb = malloc(nb * w), *out = malloc(nr * w);
    for (uint64_t i = 0; i < na; i++)
        kl_elem_store(e, ma + i * w, kl_canon(e, rnd()));
    for (uint64_t i = 0; i < nb; i++)
        kl_elem_store(e, mb + i * w, kl_canon(e, rnd()));
    box_fn(&x);
    kl_val v[2] = {get(&x, array(&x, 0, e, ma, na), a.rank, a.dim),
                   get(&x, array(&x, 1, e, mb, nb), b.rank, b.dim)};
    union kl_attr attr = {.index = axis};
    if (op == KL_OP_permute) {
        attr = (union kl_attr){0};
        attr.aux.at = kl_aux_add(x.f, perm, a.rank);
        attr.aux.n = a.rank;
    }
    kl_val got = kl_emit(&x.b, op, kl_tile(x.f, e, r.rank, r.dim), v, op == KL_OP_cat ? 2 : 1,
                         op == KL_OP_broadcast ? (union kl_attr){0} : attr);
    put(&x, array(&x, 2, e, out, nr), got);
    assert_int_equal(run(&x, 0), KILN_OK);
    for (uint64_t lane = 0; lane < nr; lane++) {
        uint64_t at[4] = {0}, from[4] = {0};
        const char *src = ma;
        const struct kl_type *t = &a;
        unravel(&r, lane, at);
        for (uint32_t i = 0; i < 4; i++)
            from[i] = at[i];
        if (op == KL_OP_cat && at[axis] >= a.dim[axis])
            src = mb, t = &b, from[axis] -= a.dim[axis];
        if (op == KL_OP_flip)
            from[axis] = a.dim[axis] - 1 - at[axis];
        for (uint32_t i = 0; op == KL_OP_permute && i < a.rank; i++)
            from[perm[i]] = at[i];
        for (uint32_t i = 0; op == KL_OP_broadcast && i < a.rank; i++)
            from[i] = a.dim[i] == 1 ? 0 : at[i + lead];
        assert_memory_equal(out + lane * w, src + ravel(t, from) * w, w);
    }
    box_close(&x);
    free(ma), free(mb), free(out);
}

static void shapes(void **state)
{
    static const enum kl_op ops[] = {KL_OP_permute, KL_OP_broadcast, KL_OP_cat, KL_OP_flip};
    static const enum kl_elem es[] = {KL_i8, KL_bf16, KL_f32, KL_u64};
    (void)state;
    for (int i = 0; i < 100; i++)
        for (int k = 0; k < 16; k++)
            one_shape(ops[k & 3], es[k >> 2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise),
        cmocka_unit_test(instruction_sets),
        cmocka_unit_test(selects),
        cmocka_unit_test(casts),
        cmocka_unit_test(reductions),
        cmocka_unit_test(pass_through),
        cmocka_unit_test(reductions_by_function),
        cmocka_unit_test(scans),
        cmocka_unit_test(arguments),
        cmocka_unit_test(dots),
        cmocka_unit_test(shapes),
    };
    BOX_GUARD
    return cmocka_run_group_tests(tests, NULL, NULL);
}
