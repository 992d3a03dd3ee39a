/* compare.c - setp, set, selp, slct, testp. */
#include "sim/exec.h"
#include "sim/lane.h"
#include "sim/num.h"

/* Lane l's result is bit l: a conjunction with a table of bits and an or over all, which
 * compilers turn into vector code. */
static const uint32_t bit[LANES] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31,
};

/* clang-format off */
#define CMP(T, suffix, op)                                                                         \
    static uint32_t T##_##suffix(const lane_##T *a, const lane_##T *b)                             \
    {                                                                                              \
        uint32_t r = 0;                                                                            \
        EACH_LANE r |= a[l] op b[l] ? bit[l] : 0;                                                  \
        return r;                                                                                  \
    }
#define ICMP(T)                                                                                    \
    CMP(T, lt, <) CMP(T, eq, ==)                                                                   \
    static uint32_t cmp_##T(int cmp, const char *pa, const char *pb)                               \
    {                                                                                              \
        const lane_##T *a = (const lane_##T *)(const void *)pa;                                    \
        const lane_##T *b = (const lane_##T *)(const void *)pb;                                    \
        switch (cmp) {                                                                             \
        case CMP_EQ: return T##_eq(a, b);                                                          \
        case CMP_NE: return ~T##_eq(a, b);                                                         \
        case CMP_LT: return T##_lt(a, b);                                                          \
        case CMP_LE: return ~T##_lt(b, a);                                                         \
        case CMP_GT: return T##_lt(b, a);                                                          \
        default: return ~T##_lt(a, b);                                                             \
        }                                                                                          \
    }
ICMP(u16) ICMP(s16) ICMP(u32) ICMP(s32) ICMP(u64) ICMP(s64)

#define FCMP(T)                                                                                    \
    CMP(T, lt, <) CMP(T, le, <=) CMP(T, eq, ==)                                                    \
    static uint32_t T##_num(const T *a, const T *b)                                                \
    {                                                                                              \
        uint32_t r = 0, s = 0;                                                                     \
        EACH_LANE r |= a[l] == a[l] ? bit[l] : 0;                                                  \
        EACH_LANE s |= b[l] == b[l] ? bit[l] : 0;                                                  \
        return r & s;                                                                              \
    }                                                                                              \
    static uint32_t cmp_##T(int cmp, const T *a, const T *b)                                       \
    {                                                                                              \
        switch (cmp) {                                                                             \
        case CMP_EQ: return T##_eq(a, b);                                                          \
        case CMP_NE: return ~T##_eq(a, b) & T##_num(a, b);                                         \
        case CMP_LT: return T##_lt(a, b);                                                          \
        case CMP_LE: return T##_le(a, b);                                                          \
        case CMP_GT: return T##_lt(b, a);                                                          \
        case CMP_GE: return T##_le(b, a);                                                          \
        case CMP_EQU: return T##_eq(a, b) | ~T##_num(a, b);                                        \
        case CMP_NEU: return ~T##_eq(a, b);                                                        \
        case CMP_LTU: return ~T##_le(b, a);                                                        \
        case CMP_LEU: return ~T##_lt(b, a);                                                        \
        case CMP_GTU: return ~T##_le(a, b);                                                        \
        case CMP_GEU: return ~T##_lt(a, b);                                                        \
        case CMP_NUM: return T##_num(a, b);                                                        \
        default: return ~T##_num(a, b);                                                            \
        }                                                                                          \
    }
FCMP(f32) FCMP(f64)
/* clang-format on */

/* Operands k and k + 1 of type t as floats of the wider sort. */
static void floats(const struct sim_warp *w, const struct sim_opnd *o, uint8_t t, bool ftz,
                   float v[LANES])
{
    const char *p = sim_ptr(w, o);
    if (t == PT_F32 && !ftz) {
        memcpy(v, p, 4 * LANES);
        return;
    }
    EACH_LANE
    {
        uint16_t h = ((const sim_m16 *)(const void *)p)[l];
        if (t == PT_F32)
            memcpy(&v[l], p + 4 * l, 4);
        else
            v[l] = t == PT_F16 ? kl_f16_to_f32(h) : kl_bf16_to_f32(h);
        float least = t == PT_F16 ? 0x1p-14f : 0x1p-126f;
        if (ftz && v[l] < least && v[l] > -least)
            v[l] = 0;
    }
}

static uint32_t compare(const struct sim_warp *w, const struct sim_ins *i, uint8_t t,
                        const struct sim_opnd *a, const struct sim_opnd *b)
{
    int cmp = i->cmp - 1;
    const char *pa = sim_ptr(w, a), *pb = sim_ptr(w, b);
    switch (t) {
    case PT_U16: case PT_B16: return cmp_u16(cmp, pa, pb);
    case PT_S16: return cmp_s16(cmp, pa, pb);
    case PT_U32: case PT_B32: return cmp_u32(cmp, pa, pb);
    case PT_S32: return cmp_s32(cmp, pa, pb);
    case PT_U64: case PT_B64: return cmp_u64(cmp, pa, pb);
    case PT_S64: return cmp_s64(cmp, pa, pb);
    case PT_F64: {
        double x[LANES], y[LANES];
        memcpy(x, pa, sizeof x);
        memcpy(y, pb, sizeof y);
        return cmp_f64(cmp, x, y);
    }
    default: {
        float x[LANES], y[LANES];
        floats(w, a, t, i->ftz, x);
        floats(w, b, t, i->ftz, y);
        return cmp_f32(cmp, x, y);
    }
    }
}

static uint32_t combine(uint8_t op, uint32_t v, uint32_t c)
{
    return op == BOOL_AND ? v & c : op == BOOL_OR ? v | c : op == BOOL_XOR ? v ^ c : v;
}

EXEC(setp)
{
    uint32_t v = compare(w, i, i->type, &i->op[2], &i->op[3]);
    uint32_t c = i->op[4].given ? sim_getp(w, &i->op[4]) : 0;
    sim_setp(w, &i->op[0], mask, combine(i->boolop, v, c));
    if (i->op[1].given)
        sim_setp(w, &i->op[1], mask, combine(i->boolop, ~v, c));
}

EXEC(set)
{
    uint32_t v = compare(w, i, i->type2, &i->op[1], &i->op[2]);
    v = combine(i->boolop, v, i->op[3].given ? sim_getp(w, &i->op[3]) : 0);
    uint64_t r[LANES], yes = i->type == PT_F32 ? 0x3f800000u : UINT32_MAX;
    if (i->type == PT_F64)
        yes = UINT64_C(0x3ff0000000000000);
    EACH_LANE r[l] = HAS(v, l) ? yes : 0;
    sim_set(w, &i->op[0], mask, r);
}

EXEC(selp)
{
    uint32_t p = sim_getp(w, &i->op[3]);
    if (w->run->opt.checks & KL_SIM_UNINIT) {
        /* only the value taken must have been written */
        const struct sim_opnd *a = &i->op[1], *b = &i->op[2], *c = &i->op[3];
        uint32_t bad = mask & ~w->written[c->reg];
        if (a->reg != SIM_NONE)
            bad |= mask & p & ~w->written[a->reg];
        if (b->reg != SIM_NONE)
            bad |= mask & ~p & ~w->written[b->reg];
        if (bad)
            kl_sim_report(w, i, KL_K1506, bad, "the value selected was never written");
    }
    const struct sim_opnd *d = &i->op[0];
    char *to = sim_ptr(w, d);
    const char *b = sim_ptr(w, &i->op[2]);
    uint64_t t[LANES];
    memcpy(t, sim_ptr(w, &i->op[1]), (size_t)d->size * LANES);
    if (d->size == 4)
        sim_put32((char *)t, b, ~p), sim_put32(to, t, mask);
    else if (d->size == 8)
        sim_put64((char *)t, b, ~p), sim_put64(to, t, mask);
    else
        sim_put16((char *)t, b, ~p), sim_put16(to, t, mask);
}

EXEC(slct)
{
    uint64_t a[LANES], b[LANES], c[LANES];
    sim_get(w, &i->op[1], a), sim_get(w, &i->op[2], b), sim_get(w, &i->op[3], c);
    EACH_LANE
    {
        /* -0 is not below zero, a NaN takes the second */
        bool first = i->type2 == PT_F32 ? kl_bits_f32(c[l]) >= 0 : (int32_t)c[l] >= 0;
        if (i->type2 == PT_F32 && i->ftz && (c[l] & 0x7f800000) == 0)
            first = true;
        a[l] = first ? a[l] : b[l];
    }
    sim_set(w, &i->op[0], mask, a);
}

EXEC(testp)
{
    uint64_t a[LANES];
    uint32_t r = 0;
    sim_get(w, &i->op[1], a);
    EACH_LANE
    {
        double d = i->type == PT_F32 ? (double)kl_bits_f32(a[l]) : kl_bits_f64(a[l]);
        double least = i->type == PT_F32 ? 0x1p-126 : 0x1p-1022;
        bool small = fabs(d) < least, v;
        switch (i->mode) {
        case 0: v = isfinite(d); break;
        case 1: v = isinf(d); break;
        case 2: v = d == d; break;
        case 3: v = d != d; break;
        case 4: v = isfinite(d) && !small; break;
        default: v = small && d != 0; break;
        }
        r |= (uint32_t)v << l;
    }
    sim_setp(w, &i->op[0], mask, r);
}
