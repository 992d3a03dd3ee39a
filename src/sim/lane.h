/* lane.h - access to the 32 values of an operand.
 *
 * Registers change type freely, so the pointers may alias.  Results are computed
 * for all 32 lanes and merged under the mask: the loops have a constant length
 * and no branches, which lets the compiler vectorise them.  What inactive lanes
 * compute is thrown away, so it must not trap. */
#ifndef KL_SIM_LANE_H
#define KL_SIM_LANE_H

#include <math.h>

#include "sim/run.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

typedef uint16_t __attribute__((may_alias)) sim_m16;
typedef uint32_t __attribute__((may_alias)) sim_m32;
typedef uint64_t __attribute__((may_alias)) sim_m64;
typedef u16 __attribute__((may_alias)) lane_u16;
typedef s16 __attribute__((may_alias)) lane_s16;
typedef u32 __attribute__((may_alias)) lane_u32;
typedef s32 __attribute__((may_alias)) lane_s32;
typedef u64 __attribute__((may_alias)) lane_u64;
typedef s64 __attribute__((may_alias)) lane_s64;
typedef f32 __attribute__((may_alias)) lane_f32;
typedef f64 __attribute__((may_alias)) lane_f64;

static inline char *sim_ptr(const struct sim_warp *w, const struct sim_opnd *o)
{
    return w->bank[o->bank] + o->off;
}

#define EACH_LANE for (int l = 0; l < LANES; l++)
#define HAS(m, l) ((m) >> (l)&1)

static inline void sim_put16(char *to, const void *from, uint32_t m)
{
    if (m == UINT32_MAX) {
        memcpy(to, from, 2 * LANES);
        return;
    }
    sim_m16 *d = (sim_m16 *)(void *)to;
    const sim_m16 *s = from;
    EACH_LANE d[l] = HAS(m, l) ? s[l] : d[l];
}
static inline void sim_put32(char *to, const void *from, uint32_t m)
{
    if (m == UINT32_MAX) {
        memcpy(to, from, 4 * LANES);
        return;
    }
    sim_m32 *d = (sim_m32 *)(void *)to;
    const sim_m32 *s = from;
    EACH_LANE d[l] = HAS(m, l) ? s[l] : d[l];
}
static inline void sim_put64(char *to, const void *from, uint32_t m)
{
    if (m == UINT32_MAX) {
        memcpy(to, from, 8 * LANES);
        return;
    }
    sim_m64 *d = (sim_m64 *)(void *)to;
    const sim_m64 *s = from;
    EACH_LANE d[l] = HAS(m, l) ? s[l] : d[l];
}
#define sim_put_u16 sim_put16
#define sim_put_s16 sim_put16
#define sim_put_u32 sim_put32
#define sim_put_s32 sim_put32
#define sim_put_f32 sim_put32
#define sim_put_u64 sim_put64
#define sim_put_s64 sim_put64
#define sim_put_f64 sim_put64

/* Any operand as 64-bit values, zero-extended; and back, truncated. */
static inline void sim_get(const struct sim_warp *w, const struct sim_opnd *o, uint64_t v[LANES])
{
    const char *p = sim_ptr(w, o);
    if (o->size == 8)
        memcpy(v, p, 8 * LANES);
    else if (o->size == 4)
        EACH_LANE v[l] = ((const sim_m32 *)(const void *)p)[l];
    else
        EACH_LANE v[l] = ((const sim_m16 *)(const void *)p)[l];
}
static inline void sim_set(struct sim_warp *w, const struct sim_opnd *o, uint32_t m,
                           const uint64_t v[LANES])
{
    char *p = sim_ptr(w, o);
    if (o->size == 8) {
        sim_put64(p, v, m);
    } else if (o->size == 4) {
        uint32_t t[LANES];
        EACH_LANE t[l] = (uint32_t)v[l];
        sim_put32(p, t, m);
    } else {
        uint16_t t[LANES];
        EACH_LANE t[l] = (uint16_t)v[l];
        sim_put16(p, t, m);
    }
}

static inline uint32_t sim_getp(const struct sim_warp *w, const struct sim_opnd *o)
{
    return w->pred[o->off] ^ (o->neg ? UINT32_MAX : 0);
}
static inline void sim_setp(struct sim_warp *w, const struct sim_opnd *o, uint32_t m, uint32_t v)
{
    w->pred[o->off] = (w->pred[o->off] & ~m) | (v & m);
}

/* A function that gives each lane expr of its a, of type A, as type D. */
#define EACH_RESULT(name, D, A, expr)                                                              \
    static void name(struct sim_warp *w, const struct sim_ins *i, uint32_t mask)                   \
    {                                                                                              \
        const lane_##A *pa = (const lane_##A *)(const void *)sim_ptr(w, &i->op[1]);                \
        D r[LANES];                                                                                \
        EACH_LANE                                                                                  \
        {                                                                                          \
            const A a = pa[l];                                                                     \
            r[l] = (D)(expr);                                                                      \
        }                                                                                          \
        sim_put_##D(sim_ptr(w, &i->op[0]), r, mask);                                               \
    }

#endif
