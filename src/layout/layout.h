/* layout.h - linear layouts: how a tile lies over registers, lanes, warps and CTAs.
 *
 * A layout maps a place (register, lane, warp, CTA) to the coordinates of the element that lies
 * there.  The map is linear over GF(2): each bit of the place toggles a fixed set of coordinate
 * bits, its vector, and the coordinates are the exclusive or of the vectors of the bits that are
 * set.  Sizes are rounded up to powers of two inside; places beyond the true sizes are dead: they
 * hold no element.  A bit whose vector is zero (or the sum of others) makes replicas: several
 * places hold one element.
 *
 * Both sides are words.  A place is packed by kl_place; the fields have fixed positions, so that
 * places of different layouts compare.  A coordinate word holds the last axis in its lowest bits.
 * Layouts are values: no pointers, copied freely.  docs/layouts.md has pictures. */
#ifndef KL_LAYOUT_H
#define KL_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

/* ---- linear maps over GF(2) ---- */

typedef struct kl_lin {
    uint32_t v[32]; /* image of each input bit */
} kl_lin;

static inline uint32_t kl_lin_at(const kl_lin *f, uint32_t x)
{
    uint32_t y = 0;
    for (; x; x &= x - 1)
        y ^= f->v[__builtin_ctz(x)];
    return y;
}
kl_lin kl_lin_compose(const kl_lin *f, const kl_lin *g); /* x -> f(g(x)) */
uint32_t kl_lin_rank(const kl_lin *f);

/* A growing basis that remembers of which inputs each member is the sum. */
typedef struct kl_basis {
    uint32_t vec[32], from[32]; /* at the place of its leading bit */
    uint32_t lead;              /* leading bits present */
} kl_basis;

/* Takes v, known as `tag`; false if v is a sum of earlier ones (the basis stays). */
bool kl_basis_add(kl_basis *b, uint32_t v, uint32_t tag);
/* Writes v as a sum of members: *from is the exclusive or of their tags. */
bool kl_basis_solve(const kl_basis *b, uint32_t v, uint32_t *from);
/* What is left of v when all leading bits of the basis are cleared in it. */
uint32_t kl_basis_reduce(const kl_basis *b, uint32_t v);
static inline uint32_t kl_basis_rank(const kl_basis *b)
{
    return (uint32_t)__builtin_popcount(b->lead);
}

/* ---- places ---- */

enum kl_where { KL_IN_REG, KL_IN_LANE, KL_IN_WARP, KL_IN_CTA, KL_NWHERE };

enum {
    KL_LANE_BITS = 5,
    KL_MAX_REG_BITS = 16,
    KL_MAX_WARP_BITS = 5,
    KL_MAX_CTA_BITS = 4,
    KL_LANE0 = KL_MAX_REG_BITS, /* position of the lowest lane bit in a place word */
    KL_WARP0 = KL_LANE0 + KL_LANE_BITS,
    KL_CTA0 = KL_WARP0 + KL_MAX_WARP_BITS,
    KL_PLACE_BITS = KL_CTA0 + KL_MAX_CTA_BITS,
    KL_LAYOUT_RANK = 4 /* axes of a tile */
};

static inline uint32_t kl_place(uint32_t reg, uint32_t lane, uint32_t warp, uint32_t cta)
{
    return reg | lane << KL_LANE0 | warp << KL_WARP0 | cta << KL_CTA0;
}
static inline uint32_t kl_place_reg(uint32_t p)
{
    return p & ((1u << KL_LANE0) - 1);
}
static inline uint32_t kl_place_lane(uint32_t p)
{
    return p >> KL_LANE0 & 31;
}
static inline uint32_t kl_place_warp(uint32_t p)
{
    return p >> KL_WARP0 & 31;
}
static inline uint32_t kl_place_cta(uint32_t p)
{
    return p >> KL_CTA0;
}
/* Position in a place word of bit i of a field; and which field a position is in. */
static inline uint32_t kl_place_bit(enum kl_where w, uint32_t i)
{
    static const uint8_t first[KL_NWHERE] = {0, KL_LANE0, KL_WARP0, KL_CTA0};
    return first[w] + i;
}
static inline enum kl_where kl_bit_where(uint32_t bit)
{
    return bit < KL_LANE0   ? KL_IN_REG
           : bit < KL_WARP0 ? KL_IN_LANE
           : bit < KL_CTA0  ? KL_IN_WARP
                            : KL_IN_CTA;
}

/* ---- layouts ---- */

typedef struct kl_layout {
    kl_lin map;                   /* place word -> coordinate word */
    uint32_t dim[KL_LAYOUT_RANK]; /* true sizes, at least 1 */
    uint8_t rank;                 /* 0: a scalar */
    uint8_t nbit[KL_NWHERE];      /* bits in use; lanes always 5 */
    uint8_t log2[KL_LAYOUT_RANK]; /* coordinate bits of an axis: its size rounded up */
    uint8_t off[KL_LAYOUT_RANK];  /* where they begin in the coordinate word */
    uint8_t bad;                  /* could not be made: too many registers or coordinates */
} kl_layout;

static inline uint32_t kl_layout_nreg(const kl_layout *l)
{
    return 1u << l->nbit[KL_IN_REG];
}
static inline uint32_t kl_layout_nwarp(const kl_layout *l)
{
    return 1u << l->nbit[KL_IN_WARP];
}
static inline uint32_t kl_layout_ncta(const kl_layout *l)
{
    return 1u << l->nbit[KL_IN_CTA];
}
/* All bits of a place word that are in use, and all bits of a coordinate word. */
uint32_t kl_layout_places(const kl_layout *l);
static inline uint32_t kl_layout_coord_bits(const kl_layout *l)
{
    return l->rank ? (uint32_t)l->off[0] + l->log2[0] : 0;
}

static inline uint32_t kl_layout_at(const kl_layout *l, uint32_t place)
{
    return kl_lin_at(&l->map, place);
}
static inline uint32_t kl_coord_axis(const kl_layout *l, uint32_t coord, uint32_t axis)
{
    return coord >> l->off[axis] & ((1u << l->log2[axis]) - 1);
}
static inline bool kl_coord_live(const kl_layout *l, uint32_t coord)
{
    for (uint32_t d = 0; d < l->rank; d++)
        if (kl_coord_axis(l, coord, d) >= l->dim[d])
            return false;
    return true;
}
/* Coordinates of a place, one for each axis; false: the place is dead. */
bool kl_layout_coords(const kl_layout *l, uint32_t place, uint32_t x[KL_LAYOUT_RANK]);
uint32_t kl_coord_pack(const kl_layout *l, const uint32_t *x);

/* ---- constructors ---- */

/* From the lowest index bit of the fastest axis upward: 2^vec elements in registers, lanes,
 * warps, CTAs, and register repeats on top.  Where an axis ends the next one goes on: the axes
 * follow `fast` from the last to the first.  Lanes, warps and CTAs left over hold replicas.  The
 * vector never leaves the fast axis. */
kl_layout kl_layout_blocked(uint32_t rank, const uint32_t *dim, uint32_t vec_log2,
                            uint32_t warps_log2, uint32_t fast);

typedef struct kl_blocking {
    uint8_t vec, warps, ctas;      /* each log2 */
    bool ctas_first;               /* CTAs before warps: see reduce.c of the GPU back end */
    uint8_t order[KL_LAYOUT_RANK]; /* axes, the fastest first */
} kl_blocking;
kl_layout kl_layout_block(uint32_t rank, const uint32_t *dim, const kl_blocking *b);

/* A run of bits: the next n bits of `where` take the next n coordinate bits of `axis`; axis
 * KL_REPLICATE: they hold replicas. */
enum { KL_REPLICATE = 0xff };
typedef struct kl_run {
    uint8_t where, axis, n;
} kl_run;
/* Any layout whose vectors are unit bits, e.g. a fragment of an mma.  Bits past the end of an
 * axis become replicas; coordinate bits that no run names become registers on top, the last axis
 * first; lanes, warps and CTAs up to the counts given are filled with replicas. */
kl_layout kl_layout_runs(uint32_t rank, const uint32_t *dim, const kl_run *run, uint32_t nrun,
                         uint32_t warps_log2, uint32_t ctas_log2);
/* Every place holds the one element. */
kl_layout kl_layout_scalar(uint32_t warps_log2, uint32_t ctas_log2);

/* ---- relabelling: no data moves, only the names of coordinates change ---- */

/* Axis becomes size 1 and its bits zero: where the result of a reduction lies when every place
 * that took part has it.  Registers keep their numbers; kl_layout_trim drops the replicas. */
kl_layout kl_layout_slice(const kl_layout *l, uint32_t axis);
/* Without the register bits that hold replicas (are sums of lower register bits).  Register r of
 * the result is register kl_deposit(r, *kept) of the operand; kept may be NULL. */
kl_layout kl_layout_trim(const kl_layout *l, uint32_t *kept);
/* Axis d of the result is axis perm[d] of the operand. */
kl_layout kl_layout_permute(const kl_layout *l, const uint32_t *perm);
/* Row-major order under another shape.  False, with *out untouched, where it is not linear: an
 * axis that is split or joined, other than the slowest of its group, is not a power of two. */
bool kl_layout_reshape(const kl_layout *l, uint32_t rank, const uint32_t *dim, kl_layout *out);
/* Axis of size 1 becomes n, every place holding the same value: its bits are new registers on
 * top, so register r holds what register r & (nreg - 1) of the operand holds.  With `spread`
 * lanes, then warps, that hold replicas take the lowest bits of the axis first. */
kl_layout kl_layout_expand(const kl_layout *l, uint32_t axis, uint32_t n, bool spread);
/* Flipping an axis is not linear: on a power of two it adds a constant to the place, element x
 * lies where n-1-x did, which is place ^ *by.  False on any other size, or where no place bit
 * reaches the axis. */
bool kl_layout_flip(const kl_layout *l, uint32_t axis, uint32_t *by);

/* Bits of x at the positions set in mask, from the lowest; and the reverse. */
uint32_t kl_deposit(uint32_t x, uint32_t mask);
uint32_t kl_extract(uint32_t x, uint32_t mask);

/* ---- algebra ---- */

bool kl_layout_eq(const kl_layout *a, const kl_layout *b);
bool kl_layout_same_shape(const kl_layout *a, const kl_layout *b);
/* Every vector has at most one bit, and no two bits of a place share one. */
bool kl_layout_is_unit(const kl_layout *l);
bool kl_layout_is_injective(const kl_layout *l);  /* no replicas */
bool kl_layout_is_surjective(const kl_layout *l); /* every coordinate lies somewhere */
uint32_t kl_layout_rank(const kl_layout *l);
/* Place bits that make replicas: each is a sum of lower bits (or zero).  With these bits 0 a
 * place is the canonical one of its element. */
uint32_t kl_layout_replicas(const kl_layout *l);
/* Coordinate word -> canonical place.  False if some coordinate lies nowhere. */
bool kl_layout_inverse(const kl_layout *l, kl_lin *inv);
/* The place bit whose vector is exactly bit k of axis; -1 if there is none. */
int kl_layout_find_bit(const kl_layout *l, uint32_t axis, uint32_t k);
/* How many low register bits are, in order, the low bits of axis: 2^n neighbours that one
 * access can move. */
uint32_t kl_layout_vec(const kl_layout *l, uint32_t axis);
/* For each register of dst the register of src with the same element in every thread: src
 * register kl_lin_at(map, r).  False where threads differ. */
bool kl_layout_renaming(const kl_layout *src, const kl_layout *dst, kl_lin *map);

/* Elements of the tile; places inside the rounded tile; places of all threads. */
uint64_t kl_layout_live(const kl_layout *l);
uint64_t kl_layout_total(const kl_layout *l);
uint64_t kl_layout_threads_places(const kl_layout *l);

/* One line, e.g. "[4][64] reg j0 j1 i0 i1 | lane j2 j3 j4 j5 i2 | warp 0 0". */
void kl_layout_print(kl_buf *b, const kl_layout *l);

/* ---- dead places ---- */

enum kl_live { KL_DEAD, KL_LIVE, KL_DEPENDS };

/* Is register reg live?  An axis is checked as  (thread ^ flip) + add < dim,  where thread is the
 * axis's coordinate of the thread's register 0 (kl_layout_at(l, place without register)).  When
 * flip is 0 that is  thread < bound. */
typedef struct kl_reg_bound {
    uint8_t all;                  /* enum kl_live over all lanes, warps, CTAs */
    uint8_t axis[KL_LAYOUT_RANK]; /* the same for each axis alone */
    uint32_t flip[KL_LAYOUT_RANK], add[KL_LAYOUT_RANK];
    uint32_t bound[KL_LAYOUT_RANK]; /* dim - add, 0 if add is not below dim */
} kl_reg_bound;
kl_reg_bound kl_layout_bound(const kl_layout *l, uint32_t reg);

/* ---- counting (bank.c) ---- */

/* What one warp instruction costs in units of the hardware, and what it would at best. */
typedef struct kl_count {
    uint64_t requests, units, ideal;
} kl_count;

/* Distinct 32-byte sectors that the active lanes' accesses of `bytes` touch; ideal is the bytes
 * asked for over 32.  Lanes not in `active` are not read. */
kl_count kl_sectors(const uint64_t addr[32], uint32_t active, uint32_t bytes);
/* Passes of shared memory: lanes go in groups of 32 (up to 4 bytes), 16 (8) or 8 (16); a group
 * takes as many as the busiest of 32 banks has distinct 4-byte words. */
kl_count kl_wavefronts(const uint32_t addr[32], uint32_t active, uint32_t bytes);

/* A global access of a whole tile: element x lies at base + sum of x[d] * stride[d] bytes, and
 * the lowest vec_log2 register bits are one access.  Dead lanes are inactive; so are lanes that
 * hold replicas if `once` (a store).  Sums over registers, warps and CTAs; requests without an
 * active lane are not made.  most: the units of the worst request, may be NULL. */
kl_count kl_layout_sectors(const kl_layout *l, uint64_t base, const int64_t *stride, uint32_t bytes,
                           uint32_t vec_log2, bool once, uint32_t *most);

#endif
