/* elementwise.c - loops over whole tiles for the element-wise rows of ops.def, and dot.
 *
 * Each row becomes one loop for each element type that it exists on, with the row's own
 * expression in it.  A loop runs in strips of a constant length: compilers vectorise those
 * at -O2, which they do not do with an unknown count.  On x86-64 every loop exists twice,
 * for any processor and for those with AVX2 and FMA; both give the same bits, but a fused
 * multiply-add without the instruction is a call that takes a hundred times as long. */
#if defined(__GNUC__) && !defined(__clang__)
/* Nobody looks at floating-point exceptions or errno; else gcc keeps branches for them. */
#pragma GCC optimize("no-trapping-math", "no-math-errno")
#endif
#include "gen/interp/run.h"
#include "gen/interp/strip.h"

#include "ir/meaning.h"

#if defined(__GNUC__)
#define FLATTEN __attribute__((flatten)) /* math functions take the instruction set of the loop */
#else
#define FLATTEN
#endif

#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)
#define CAT3(a, b, c) CAT(CAT(a, b), c)

/* The functions behind the expressions. */
#define FN(name) CAT3(kl, name, E)

/* ROW picks the meaning of a row on a kind, or nothing where there is no such row. */
#define ROW(name, n, cls, flags, iexpr, fexpr, doc) CAT(KIND, cls)(name, n, iexpr, fexpr)
#define NO_ROW(name, sig, res, attr, flags, doc)
#define NONE_HERE(name, n, i, f)
#define WITH_INT(name, n, i, f) LOOP##n(name, T, i)
#define WITH_FLT(name, n, i, f) LOOP##n(name, T, f)
#define INT_NUM WITH_INT
#define INT_INT WITH_INT
#define INT_BIT WITH_INT
#define INT_FLT NONE_HERE
#define INT_CMP(name, n, i, f) LOOP##n(name, kl_m_bool, i)
#define INT_SEL NONE_HERE
#define INT_CVT NONE_HERE
#define FLT_NUM WITH_FLT
#define FLT_INT NONE_HERE
#define FLT_BIT NONE_HERE
#define FLT_FLT WITH_FLT
#define FLT_CMP(name, n, i, f) LOOP##n(name, kl_m_bool, f)
#define FLT_SEL NONE_HERE
#define FLT_CVT NONE_HERE
#define BIT_NUM NONE_HERE
#define BIT_INT NONE_HERE
#define BIT_BIT WITH_INT
#define BIT_FLT NONE_HERE
#define BIT_CMP NONE_HERE
#define BIT_SEL NONE_HERE
#define BIT_CVT NONE_HERE

/* restrict on parameters, as compilers heed it only there */
#define HEAD(name)                                                                                 \
    TARGET FLATTEN static void CAT3(ew_##name, E, SET)(                                            \
        void *restrict out, const void *restrict va, const void *restrict vb,                      \
        const void *restrict vc, size_t n)

/* ---- the loops ---- */

#define LOOP1(name, R, expr)                                                                       \
    HEAD(name)                                                                                     \
    {                                                                                              \
        R *o = out;                                                                                \
        const T *pa = va;                                                                          \
        (void)vb, (void)vc;                                                                        \
        EACH(const T a = pa[j]; o[j] = (R)(expr);)                                                 \
    }
#define LOOP2(name, R, expr)                                                                       \
    HEAD(name)                                                                                     \
    {                                                                                              \
        R *o = out;                                                                                \
        const T *pa = va, *pb = vb;                                                                \
        (void)vc;                                                                                  \
        EACH(const T a = pa[j], b = pb[j]; o[j] = (R)(expr);)                                      \
    }
#define LOOP3(name, R, expr)                                                                       \
    HEAD(name)                                                                                     \
    {                                                                                              \
        R *o = out;                                                                                \
        const T *pa = va, *pb = vb, *pc = vc;                                                      \
        EACH(const T a = pa[j], b = pb[j], c = pc[j]; o[j] = (R)(expr);)                           \
    }

/* acc[m][n] = fma(a[m][k], b[k][n], acc[m][n]), k ascending for each element.  Four steps of
 * k at a time, so that acc is read and written a quarter as often; the order is the same. */
#define DOT(E_, T_, STEP)                                                                          \
    TARGET static void CAT3(dot, E_, SET)(void *vacc, const void *va, const void *vb, size_t m,    \
                                          size_t n, size_t k)                                      \
    {                                                                                              \
        const T_ *pa = va;                                                                         \
        for (size_t row = 0; row < m; row++, pa += k) {                                            \
            T_ *restrict o = (T_ *)vacc + row * n;                                                 \
            size_t t = 0;                                                                          \
            for (; t + 4 <= k; t += 4) {                                                           \
                const T_ *restrict b0 = (const T_ *)vb + t * n, *restrict b1 = b0 + n,             \
                                   *restrict b2 = b1 + n, *restrict b3 = b2 + n;                   \
                const T_ a0 = pa[t], a1 = pa[t + 1], a2 = pa[t + 2], a3 = pa[t + 3];               \
                EACH(o[j] = STEP(a3, b3[j], STEP(a2, b2[j], STEP(a1, b1[j],                        \
                                                                 STEP(a0, b0[j], o[j]))));)        \
            }                                                                                      \
            for (; t < k; t++) {                                                                   \
                const T_ *restrict b0 = (const T_ *)vb + t * n;                                    \
                const T_ a0 = pa[t];                                                               \
                EACH(o[j] = STEP(a0, b0[j], o[j]);)                                                \
            }                                                                                      \
        }                                                                                          \
    }
#define STEP_INT(a, b, c) ((a) * (b) + (c))

#define SET base
#define TARGET
#include "elementwise.inc"
DOT(f32, kl_m_f32, kl_fma_f32)
DOT(f64, kl_m_f64, kl_fma_f64)
DOT(u32, kl_m_u32, STEP_INT)
DOT(u64, kl_m_u64, STEP_INT)
#undef SET
#undef TARGET

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_FMA_SET
#define SET v3
#define TARGET __attribute__((target("avx2,fma")))
#include "elementwise.inc"
DOT(f32, kl_m_f32, kl_fma_f32)
DOT(f64, kl_m_f64, kl_fma_f64)
DOT(u32, kl_m_u32, STEP_INT)
DOT(u64, kl_m_u64, STEP_INT)
#undef SET
#undef TARGET
#endif

/* ---- the table ---- */

#undef LOOP1
#undef LOOP2
#undef LOOP3
#define KL_truth KL_bool
#define LIST(name) [KL_OP_##name][CAT(KL, E)] = CAT3(ew_##name, E, SET),
#define LOOP1(name, R, expr) LIST(name)
#define LOOP2(name, R, expr) LIST(name)
#define LOOP3(name, R, expr) LIST(name)

typedef kl_ew_fn *ew_table[KL_NOP][KL_NELEM];
static const ew_table table_base = {
#define SET base
#include "elementwise.inc"
#undef SET
};
#ifdef HAVE_FMA_SET
static const ew_table table_v3 = {
#define SET v3
#include "elementwise.inc"
#undef SET
};
#endif

static bool have_v3(void)
{
#ifdef HAVE_FMA_SET
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

/* select moves bits, so that it goes by size. */
#define SELECT(W)                                                                                  \
    static void select_##W(void *restrict out, const void *restrict va, const void *restrict vb,   \
                           const void *restrict vc, size_t n)                                      \
    {                                                                                              \
        kl_m_##W *o = out;                                                                         \
        const kl_m_bool *a = va;                                                                   \
        const kl_m_##W *b = vb, *c = vc;                                                           \
        EACH(const kl_m_##W x = b[j], y = c[j]; o[j] = a[j] ? x : y;)                              \
    }
SELECT(u8)
SELECT(w16)
SELECT(w32)
SELECT(w64)

kl_ew_fn *kl_ew_base(enum kl_op op, enum kl_elem elem)
{
    return table_base[op][elem];
}

kl_ew_fn *kl_ew_find(enum kl_op op, enum kl_elem elem)
{
    if (op == KL_OP_select) {
        switch (kl_elems[elem].bytes) {
        case 1: return select_u8;
        case 2: return select_w16;
        case 4: return select_w32;
        default: return select_w64;
        }
    }
#ifdef HAVE_FMA_SET
    if (have_v3())
        return table_v3[op][elem];
#endif
    return kl_ew_base(op, elem);
}

/* Signed products wrap as unsigned ones do. */
#define DOTS(SET)                                                                                  \
    {                                                                                              \
        [KL_f32] = CAT(dot_f32, SET), [KL_f64] = CAT(dot_f64, SET), [KL_i32] = CAT(dot_u32, SET),  \
        [KL_u32] = CAT(dot_u32, SET), [KL_i64] = CAT(dot_u64, SET), [KL_u64] = CAT(dot_u64, SET),  \
    }

kl_dot_fn *kl_dot_base(enum kl_elem acc)
{
    static kl_dot_fn *const table[KL_NELEM] = DOTS(base);
    return table[acc];
}

kl_dot_fn *kl_dot_find(enum kl_elem acc)
{
#ifdef HAVE_FMA_SET
    static kl_dot_fn *const table[KL_NELEM] = DOTS(v3);
    if (have_v3())
        return table[acc];
#endif
    return kl_dot_base(acc);
}
