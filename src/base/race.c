/* race.c - see race.h.
 *
 * Sets are chains that share their tails and are found again by what they hold, so that the
 * elements of a row have one set between them and a cell stays small. */
#include "base/race.h"

enum {
    MOST = 2, /* programs that are remembered for one place, where nothing is ordered */
    MOST_CELLS = 1 << 26 /* 2 GiB */
};

void kl_race_open(struct kl_race *q, kl_arena *a, uint32_t programs, kl_race_fn *found)
{
    *q = (struct kl_race){.a = a, .found = found, .nprogram = programs};
    q->sets.a = q->sync.a = a;
    kl_push(a, &q->owner, UINT32_MAX); /* 0: none, in each of these */
    kl_push(a, &q->set, ((struct kl_race_set){0}));
    kl_push(a, &q->clock, ((struct kl_race_clock){0}));
}

static void next_segment(struct kl_race *q)
{
    q->released = false;
    q->segment = q->owner.n;
    kl_push(q->a, &q->owner, q->program);
}

void kl_race_program(struct kl_race *q, uint32_t program)
{
    q->program = program;
    q->mine = 0;
    q->told = false;
    next_segment(q);
}

/* ---- memory ---- */

struct kl_race_span *kl_race_span_of(struct kl_race_span *s, uint32_t n, const char *at)
{
    for (uint32_t j = 0; j < n; j++)
        if (at >= s[j].lo && at < s[j].hi)
            return &s[j];
    return NULL;
}

static bool looked_at(const struct kl_race_mem *m)
{
    return !m->hidden && m->base && m->lo < m->hi;
}

static size_t blocks(const struct kl_race_span *s)
{
    return ((size_t)(s->hi - s->lo) >> s->shift) / KL_RACE_BLOCK + 1;
}

bool kl_race_spans(kl_arena *a, const struct kl_race_mem *m, uint32_t n,
                   struct kl_race_span **out, uint32_t *nout)
{
    struct kl_race_span *v = kl_new_n(a, struct kl_race_span, n + 1);
    uint32_t ns = 0;
    size_t cells = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct kl_race_span s = {.lo = m[i].lo, .hi = m[i].hi};
        for (uint32_t j = 0; looked_at(&m[i]) && j < ns;) {
            if (s.hi <= v[j].lo || v[j].hi <= s.lo) {
                j++;
                continue;
            }
            s.lo = s.lo < v[j].lo ? s.lo : v[j].lo;
            s.hi = s.hi > v[j].hi ? s.hi : v[j].hi;
            v[j] = v[--ns];
            j = 0;
        }
        if (looked_at(&m[i]))
            v[ns++] = s;
    }
    bool *written = kl_new_n(a, bool, ns + 1);
    for (uint32_t j = 0; j < ns; j++)
        v[j].shift = 3;
    for (uint32_t i = 0; i < n; i++) { /* a unit divides every array's place and element */
        struct kl_race_span *s = looked_at(&m[i]) ? kl_race_span_of(v, ns, m[i].lo) : NULL;
        if (!s)
            continue;
        written[s - v] |= m[i].written;
        uint64_t at = (uint64_t)((uintptr_t)m[i].base - (uintptr_t)s->lo) | m[i].bytes;
        while (s->shift && at & ((1u << s->shift) - 1))
            s->shift--;
    }
    for (uint32_t j = 0; j < ns; j++)
        if (written[j])
            cells += ((size_t)(v[j].hi - v[j].lo) >> v[j].shift) + 1;
    *out = v, *nout = ns;
    if (cells > MOST_CELLS)
        return false;
    for (uint32_t j = 0; j < ns; j++) {
        size_t nb = blocks(&v[j]);
        if (!written[j])
            continue;
        v[j].cell = kl_alloc_any(a, nb * KL_RACE_BLOCK * sizeof *v[j].cell);
        v[j].block = kl_new_n(a, struct kl_race_block, nb);
    }
    return true;
}

void kl_race_clear(struct kl_race_span *s)
{
    memset(s->block, 0, blocks(s) * sizeof *s->block);
}

static struct kl_cell *open_block(const struct kl_race_span *s, size_t k)
{
    struct kl_race_block *b = &s->block[k];
    struct kl_cell *c = &s->cell[k * KL_RACE_BLOCK];
    if (b->open)
        return c;
    b->open = true;
    for (uint32_t i = 0; i < KL_RACE_BLOCK; i++) {
        c[i] = b->all;
        c[i].wlane += i, c[i].rlane += i;
    }
    return c;
}

struct kl_cell *kl_race_cell(const struct kl_race_span *s, const char *at)
{
    size_t i = (size_t)(at - s->lo) >> s->shift;
    return open_block(s, i / KL_RACE_BLOCK) + i % KL_RACE_BLOCK;
}

/* ---- what came before ---- */

static uint32_t add_clock(struct kl_race *q, uint32_t a, uint32_t b, uint32_t segment)
{
    if (!segment && (!a || !b || a == b))
        return a ? a : b;
    struct kl_race_clock c = {a, b, segment, 0};
    kl_push(q->a, &q->clock, c);
    return q->clock.n - 1;
}

/* Add what a clock has to the table.  Each node is visited once for a program. */
static void extend(struct kl_race *q, uint32_t clock)
{
    q->stack.n = 0;
    kl_push(q->a, &q->stack, clock);
    while (q->stack.n) {
        struct kl_race_clock *c = &q->clock.v[q->stack.v[--q->stack.n]];
        if (c->seen == q->round)
            continue;
        c->seen = q->round;
        uint32_t a = c->a, b = c->b, p = q->owner.v[c->segment];
        if (c->segment && (q->stamp[p] != q->round || q->before[p] < c->segment)) {
            q->stamp[p] = q->round;
            q->before[p] = c->segment;
        }
        if (a)
            kl_push(q->a, &q->stack, a);
        if (b)
            kl_push(q->a, &q->stack, b);
    }
}

static void tell(struct kl_race *q)
{
    if (!q->before) {
        q->before = kl_new_n(q->a, uint32_t, q->nprogram + 1);
        q->stamp = kl_new_n(q->a, uint32_t, q->nprogram + 1);
    }
    q->round++;
    q->told = true;
    extend(q, q->mine);
}

static bool ordered(struct kl_race *q, uint32_t segment)
{
    uint32_t p = q->owner.v[segment];
    if (p == q->program)
        return true;
    if (!q->mine)
        return false;
    if (!q->told)
        tell(q);
    return q->stamp[p] == q->round && q->before[p] >= segment;
}

void kl_race_sync(struct kl_race *q, const char *at, bool reads, bool writes, bool acquire,
                  bool release)
{
    bool isnew;
    uintptr_t key = (uintptr_t)at;
    if (!q->synced)
        return;
    if (q->released)
        next_segment(q);
    uint32_t *x = kl_map_put(&q->sync, &key, sizeof key, &isnew), there = isnew ? 0 : *x;
    if (reads && acquire && there) {
        q->mine = add_clock(q, q->mine, there, 0);
        if (q->told)
            extend(q, there);
    }
    if (writes && release) {
        uint32_t mine = add_clock(q, q->mine, 0, q->segment);
        /* what changes a place goes on with what was released there; a store does not */
        *x = reads ? add_clock(q, mine, there, 0) : mine;
        q->released = true; /* the atomic itself still belongs to what it releases */
    } else {
        *x = writes && !reads ? 0 : there;
    }
}

/* ---- sets ---- */

static uint32_t make_set(struct kl_race *q, uint32_t up, uint32_t segment, uint32_t site)
{
    uint32_t key[3] = {up, segment, site}, p = q->owner.v[segment] + 1;
    bool isnew;
    uint32_t *x = kl_map_put(&q->sets, key, sizeof key, &isnew);
    if (isnew) {
        uint32_t only = !up || q->set.v[up].only == p ? p : 0;
        *x = q->set.n;
        kl_push(q->a, &q->set, ((struct kl_race_set){up, segment, site, only}));
    }
    return *x;
}

/* The set with this segment and place. */
static uint32_t with(struct kl_race *q, uint32_t set, uint32_t site)
{
    uint32_t slot = (set * 5 + site) % (sizeof q->cache / sizeof *q->cache);
    if (q->cache[slot].from == set && q->cache[slot].site == site &&
        q->cache[slot].segment == q->segment)
        return q->cache[slot].to;
    uint32_t same = 0, to = 0;
    for (uint32_t i = set; i && !to; i = q->set.v[i].up) {
        const struct kl_race_set *s = &q->set.v[i];
        if (q->synced && s->segment != q->segment)
            break; /* those of this segment stand first */
        if (s->site != site)
            continue;
        same++;
        if (s->segment == q->segment || (same == MOST && !q->synced))
            to = set;
    }
    if (!to)
        to = make_set(q, set, q->segment, site);
    q->cache[slot].from = set, q->cache[slot].site = site;
    q->cache[slot].segment = q->segment, q->cache[slot].to = to;
    return to;
}

static bool alone(const struct kl_race *q, uint32_t set)
{
    return !set || q->set.v[set].only == q->program + 1;
}

/* ---- accesses ---- */

struct access {
    const char *at;
    enum kl_touch touch;
    uint32_t site, lane;
};

/* true: all of the set came before. */
static bool against(struct kl_race *q, struct kl_cell *c, uint32_t set, enum kl_touch then,
                    uint32_t old_lane, const struct access *x)
{
    bool all = true;
    uint32_t bit = then == KL_TOUCH_READ || x->touch == KL_TOUCH_READ ||
                           x->touch == KL_TOUCH_ATOMIC_READ || then == KL_TOUCH_ATOMIC_READ
                       ? KL_CELL_READS
                       : KL_CELL_WRITES;
    for (uint32_t i = set; i; i = q->set.v[i].up) {
        const struct kl_race_set *s = &q->set.v[i];
        if (ordered(q, s->segment))
            continue;
        all = false;
        struct kl_race_hit hit = {.now = x->touch, .then = then, .site = x->site,
                                  .old_site = s->site, .program = q->program,
                                  .old_program = q->owner.v[s->segment], .lane = x->lane,
                                  .old_lane = i == set ? old_lane : UINT32_MAX, .at = x->at,
                                  .fresh = !(c->flags & bit)};
        c->flags |= bit;
        q->found(q->user, &hit);
    }
    return all;
}

/* Sites of atomics are even for those that only read, odd for others, in sets. */
static uint32_t atomic_site(uint32_t site, bool writes)
{
    return site << 1 | writes;
}

static bool against_atomics(struct kl_race *q, struct kl_cell *c, const struct access *x)
{
    bool all = true, reads = x->touch == KL_TOUCH_READ;
    for (uint32_t i = c->a; i; i = q->set.v[i].up) {
        const struct kl_race_set s = q->set.v[i];
        bool wrote = s.site & 1;
        if (ordered(q, s.segment) || (reads && !wrote))
            continue;
        all = false;
        uint32_t bit = reads || !wrote ? KL_CELL_READS : KL_CELL_WRITES;
        struct kl_race_hit hit = {.now = x->touch,
                                  .then = wrote ? KL_TOUCH_ATOMIC : KL_TOUCH_ATOMIC_READ,
                                  .site = x->site, .old_site = s.site >> 1, .program = q->program,
                                  .old_program = q->owner.v[s.segment], .lane = x->lane,
                                  .old_lane = i == c->a ? c->alane : UINT32_MAX, .at = x->at,
                                  .fresh = !(c->flags & bit)};
        c->flags |= bit;
        q->found(q->user, &hit);
    }
    return all;
}

static void one(struct kl_race *q, struct kl_cell *c, const struct access *x)
{
    bool all = true;
    switch (x->touch) {
    case KL_TOUCH_READ:
        if (!alone(q, c->w))
            against(q, c, c->w, KL_TOUCH_WRITE, c->wlane, x);
        if (!alone(q, c->a))
            against_atomics(q, c, x);
        c->r = with(q, c->r, x->site);
        c->rlane = x->lane;
        break;
    case KL_TOUCH_WRITE:
        if (!(c->w | c->r | c->a)) { /* most are like this */
            c->w = with(q, 0, x->site);
            c->wlane = x->lane;
            c->epoch = q->epoch;
            break;
        }
        if (!alone(q, c->w))
            all &= against(q, c, c->w, KL_TOUCH_WRITE, c->wlane, x);
        if (!alone(q, c->r))
            all &= against(q, c, c->r, KL_TOUCH_READ, c->rlane, x);
        if (!alone(q, c->a))
            all &= against_atomics(q, c, x);
        if (all && q->synced) /* whoever comes behind this comes behind all of them */
            c->w = c->r = c->a = 0;
        c->w = with(q, c->w, x->site);
        c->wlane = x->lane;
        c->epoch = q->epoch;
        break;
    default:
        if (!alone(q, c->w))
            against(q, c, c->w, KL_TOUCH_WRITE, c->wlane, x);
        if (x->touch == KL_TOUCH_ATOMIC && !alone(q, c->r))
            against(q, c, c->r, KL_TOUCH_READ, c->rlane, x);
        c->a = with(q, c->a, atomic_site(x->site, x->touch == KL_TOUCH_ATOMIC));
        c->alane = x->lane;
        break;
    }
}

/* All of a block by one access, where what is known of it came from this program.  false: look at
 * its cells. */
static bool whole(struct kl_race *q, struct kl_race_block *b, enum kl_touch touch, uint32_t site,
                  uint32_t lane)
{
    struct kl_cell *c = &b->all;
    if (b->open || c->a || !alone(q, c->w) || (touch == KL_TOUCH_WRITE && !alone(q, c->r)))
        return false;
    if (touch == KL_TOUCH_READ) {
        c->r = with(q, c->r, site);
        c->rlane = lane;
        return true;
    }
    if (q->synced)
        c->w = c->r = 0;
    c->w = with(q, c->w, site);
    c->wlane = lane;
    c->epoch = q->epoch;
    return true;
}

void kl_race_touch(struct kl_race *q, const struct kl_race_span *s, const char *at, uint32_t bytes,
                   int64_t step, uint64_t n, enum kl_touch touch, uint32_t site, uint32_t lane)
{
    uint32_t unit = 1u << s->shift;
    if (q->released && touch < KL_TOUCH_ATOMIC_READ)
        next_segment(q);
    if (!s->cell)
        return;
    bool dense = step == bytes && bytes == unit && touch < KL_TOUCH_ATOMIC_READ;
    for (uint64_t i = 0; i < n;) {
        size_t u = (size_t)(at - s->lo) >> s->shift;
        struct access x = {at, touch, site, lane + (uint32_t)i};
        if (dense && u % KL_RACE_BLOCK == 0 && n - i >= KL_RACE_BLOCK &&
            whole(q, &s->block[u / KL_RACE_BLOCK], touch, site, x.lane)) {
            i += KL_RACE_BLOCK, at += (int64_t)KL_RACE_BLOCK * bytes;
            continue;
        }
        for (uint32_t k = 0; k < bytes; k += unit) {
            x.at = at + k;
            one(q, kl_race_cell(s, x.at), &x);
        }
        i++, at += step;
    }
}

/* ---- help ---- */

const char *kl_race_help(bool both, bool plain, bool same)
{
    if (!both)
        return "read another array, make it two launches, or hand over by an atomic: release "
               "behind the write, acquire before the read";
    return plain && same ? "both write the same value here, which no device promises to survive; let one "
                           "program write it, or use atomic_store"
                         : NULL;
}

const char *kl_no_value_help(kl_arena *a, const char *array)
{
    return kl_printf(a, "help: declare it with one, as in `%s[n] = 0`, or give one: %s='zeros(...)'", array,
                     array);
}

const char kl_sum_help[] = "a sum in one program, or of integers, has the same bits in every run";
const char kl_lanes_help[] = "sum(...) before one addition, or a sum of integers, has the same bits in every run";
