/* race.h - which programs of a launch touched each byte of its arrays.
 *
 * Two accesses race if different programs make them, they touch one byte, at least one writes,
 * they are not both atomic, and nothing orders them.  Programs run one after another here, in any
 * order: what is remembered of a byte is not the last access but, for each place in the source,
 * up to two programs, which is enough to find the same pairs of places in every order.
 *
 * Order between programs comes from atomics only.  A release ends a segment of its program; an
 * acquire that reads a place takes what was released there.  Segments have numbers that grow
 * in the order of the run, and what came before a program is a graph of such segments.  The
 * order that is seen is that of this run: a kernel with such atomics is run twice, forwards
 * and backwards. */
#ifndef KL_RACE_H
#define KL_RACE_H

#include "base/mem.h"

/* What is known of 1 << shift bytes.  w, r, a: sets of accesses that wrote, read, were atomic. */
struct kl_cell {
    uint32_t w, r, a, wlane, rlane, alane, epoch, flags;
};
enum { KL_CELL_WRITES = 1, KL_CELL_READS = 2 }; /* flags: counted in a finding of such a kind */

/* Neighbours that are alike but for their lanes, which count up, need no cells: all is the first. */
enum { KL_RACE_BLOCK = 32 };
struct kl_race_block {
    struct kl_cell all;
    bool open; /* its cells count, and hold something */
};

struct kl_race_span {
    const char *lo, *hi;
    uint32_t shift;
    struct kl_cell *cell; /* NULL: nothing here is written; valid in blocks that are open */
    struct kl_race_block *block;
};

/* Memory of one array of a launch. */
struct kl_race_mem {
    const char *base, *lo, *hi; /* base: of element [0,...,0] */
    uint32_t bytes;             /* of an element */
    bool written, hidden;       /* hidden: not looked at */
};
/* Arrays that overlap are one span.  false: there is too much to look at. */
bool kl_race_spans(kl_arena *a, const struct kl_race_mem *m, uint32_t n,
                   struct kl_race_span **out, uint32_t *nout);
/* Forget all accesses. */
void kl_race_clear(struct kl_race_span *s);
/* The cell of a place, which has one. */
struct kl_cell *kl_race_cell(const struct kl_race_span *s, const char *at);
struct kl_race_span *kl_race_span_of(struct kl_race_span *s, uint32_t n, const char *at);

enum kl_touch { KL_TOUCH_READ, KL_TOUCH_WRITE, KL_TOUCH_ATOMIC_READ, KL_TOUCH_ATOMIC };

/* An access and an earlier one that it races with. */
struct kl_race_hit {
    enum kl_touch now, then;
    uint32_t site, old_site; /* as the caller numbered the places of accesses */
    uint32_t program, old_program, lane, old_lane; /* UINT32_MAX: not known */
    const char *at;
    bool fresh; /* the first of its kind (both write; one reads) at this byte */
};
typedef void kl_race_fn(void *user, const struct kl_race_hit *hit);

struct kl_race_set { /* an access, and the rest of the set; only: program + 1 if all are its own */
    uint32_t up, segment, site, only;
};
struct kl_race_clock { /* two clocks joined, and a segment */
    uint32_t a, b, segment, seen;
};

struct kl_race {
    kl_arena *a;
    kl_race_fn *found;
    void *user; /* the caller may change it at any time */
    uint32_t program, segment, nprogram;
    uint32_t epoch; /* of the program; cells remember it of their last write */
    bool released; /* the segment ends behind this atomic */
    bool synced; /* some atomic acquires or releases: sets are kept whole */
    KL_VEC(uint32_t) owner; /* program of each segment */
    KL_VEC(struct kl_race_set) set;
    kl_map sets;
    struct { uint32_t from, site, segment, to; } cache[8]; /* of with() */
    KL_VEC(struct kl_race_clock) clock;
    kl_map sync; /* clock that was released at an address */
    uint32_t mine, round; /* clock of the program; number of the last table of what came before */
    bool told; /* the table is that of `mine` */
    uint32_t *before, *stamp; /* the table: highest segment of each program; valid if of round */
    KL_VEC(uint32_t) stack;
};

void kl_race_open(struct kl_race *q, kl_arena *a, uint32_t programs, kl_race_fn *found);
/* A program starts; each starts once. */
void kl_race_program(struct kl_race *q, uint32_t program);
/* n accesses of `bytes` bytes, `step` bytes apart, by lanes from `lane` on.  All lie in s. */
void kl_race_touch(struct kl_race *q, const struct kl_race_span *s, const char *at, uint32_t bytes,
                   int64_t step, uint64_t n, enum kl_touch touch, uint32_t site, uint32_t lane);
/* The order that an atomic at this address makes; before it is touched. */
void kl_race_sync(struct kl_race *q, const char *at, bool reads, bool writes, bool acquire,
                  bool release);

/* ---- help, for whoever tells a finding; NULL: none ---- */

/* both: both write; plain: neither is atomic; same: the same value. */
const char *kl_race_help(bool both, bool plain, bool same);
const char *kl_no_value_help(kl_arena *a, const char *array);
extern const char kl_sum_help[], kl_lanes_help[];

#endif
