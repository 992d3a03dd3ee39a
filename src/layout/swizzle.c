/* swizzle.c - conversions through shared memory: where each element lies on the way.
 *
 * An offset is a linear function of coordinates, given by an ordered basis of them: the k-th
 * member lies at 2^k elements.  The first members are directions along which a thread holds
 * registers, so that it moves several elements at once.  What follows decides the banks.  The
 * candidates are row-major order as it is, an order made for both sides at once (`span`, below),
 * row-major with a gap after each row, and with row bits exclusive-ored into bank bits.  For
 * each the wavefronts of a store and of a load are counted lane by lane; the cheapest is taken. */
#include "layout/plan.h"

enum { LINE = 7, MAX_ACCESS = 16 }; /* 32 banks of 4 bytes are 2^7 bytes */

/* A side: its directions, by place bit, and which register bits it may use. */
struct view {
    uint32_t v[KL_PLACE_BITS];
    uint32_t skip;   /* place bits that hold replicas */
    uint32_t rounds; /* register bits that number the rounds */
};

/* What all candidates share. */
struct job {
    const kl_conv *c;
    struct view st, ld;
    kl_basis part; /* what a CTA stores */
    uint32_t elem; /* log2 of the bytes of an element */
    uint32_t n;    /* directions of one round */
    uint32_t max_bytes, nround;
    bool pad_only; /* no candidate but row-major order and that with gaps */
    uint32_t round[KL_MAX_REG_BITS];
};

/* An ordered basis; members known by their offset in elements, directions of rounds by 0. */
struct cand {
    uint32_t base[32], n;
    uint32_t nvec; /* the first of them are vector directions */
    kl_basis b;
    uint8_t swizzle;
    uint32_t shift, mask, to; /* XOR: offset ^= (offset >> shift & mask) << to */
    uint32_t at, gap;         /* PAD: gap bytes more after each 2^at */
};

static struct cand begin(const struct job *j)
{
    struct cand c;
    c.n = c.nvec = 0;
    c.b.lead = 0;
    c.swizzle = KL_SWZ_PLAIN;
    c.shift = c.mask = c.to = c.at = c.gap = 0;
    for (uint32_t i = 0; i < j->nround; i++)
        kl_basis_add(&c.b, j->round[i], 0);
    return c;
}

static bool add(struct cand *c, uint32_t v)
{
    if (c->n >= 32 || !kl_basis_add(&c->b, v, 1u << c->n))
        return false;
    c->base[c->n++] = v;
    return true;
}

static void add_all(struct cand *c, const uint32_t *v, uint32_t n, uint32_t most)
{
    for (uint32_t i = 0; i < n && c->n < most; i++)
        add(c, v[i]);
}

/* The directions of a side: lanes, warps, registers. */
static void add_side(struct cand *c, const struct view *s, uint32_t most)
{
    add_all(c, s->v + KL_LANE0, KL_CTA0 - KL_LANE0, most);
    add_all(c, s->v, KL_LANE0, most);
}

/* Row-major order of what the CTA holds, behind the members that are there. */
static void add_plain(const struct job *j, struct cand *c)
{
    uint32_t coords = kl_layout_coord_bits(&j->c->src);
    for (uint32_t i = 0; i < coords && c->n < j->n; i++)
        if (!kl_basis_reduce(&j->part, 1u << i))
            add(c, 1u << i);
    add_side(c, &j->st, j->n);
}

/* ---- vectors ---- */

/* A register direction of a side that an access may run along. */
static bool is_reg(const struct view *s, uint32_t v)
{
    for (uint32_t i = 0; i < KL_LANE0; i++)
        if (s->v[i] == v && v && !((s->skip | s->rounds) >> i & 1))
            return true;
    return false;
}

/* Vector directions: at most `most`, those of both sides first, then those of one, if given. */
static void add_vec(const struct job *j, struct cand *c, const struct view *more, uint32_t most)
{
    for (uint32_t i = 0; i < KL_LANE0 && c->n < most; i++)
        if (is_reg(&j->st, j->st.v[i]) && is_reg(&j->ld, j->st.v[i]))
            add(c, j->st.v[i]);
    for (uint32_t i = 0; more && i < KL_LANE0 && c->n < most; i++)
        if (is_reg(more, more->v[i]))
            add(c, more->v[i]);
    c->nvec = c->n;
}

/* How many of the first members a side moves at once. */
static uint32_t width(const struct view *s, const struct cand *c)
{
    uint32_t k = 0;
    while (k < c->nvec && is_reg(s, c->base[k]))
        k++;
    return k;
}

/* ---- the order for both sides ----
 *
 * In one pass a side touches the span X of its vector and of the lanes that go together, at most
 * a line of banks.  It has no conflict if no two elements of X differ by a sum of the directions
 * that lead from line to line.  So these have to form a common complement of both sides' spans A
 * and B, each filled up to a line: with a_i the members of A outside B and b_i those of B outside
 * A, as many, it is the span of a_i + b_i and of whatever A and B leave out.  But a vector's own
 * directions are not paired: the order of elements inside an access would differ by thread.  The
 * b_i that stay alone are conflicts, or another candidate has narrower accesses. */
static void add_span(const struct job *j, struct cand *c)
{
    uint32_t line = LINE - j->elem, k[2];
    const struct view *side[2] = {&j->st, &j->ld};
    uint32_t pair[32], npair = 0, lanes[2];
    if (line > j->n)
        line = j->n;
    k[0] = width(side[0], c);
    k[1] = width(side[1], c);
    if (k[1] > k[0]) {
        uint32_t t = k[0];
        k[0] = k[1], k[1] = t;
        side[0] = &j->ld, side[1] = &j->st;
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t bytes = 1u << (j->elem + k[i]);
        lanes[i] = bytes <= 4 ? 5 : bytes == 8 ? 4 : 3;
    }
    struct cand b = begin(j), ab;
    /* A is the side with the wider access, so all of the vector is in it. */
    add_all(c, side[0]->v + KL_LANE0, lanes[0], line);
    add_all(&b, c->base, k[1], line);
    add_all(&b, side[1]->v + KL_LANE0, lanes[1], line);
    add_all(c, b.base, b.n, line);
    add_side(c, side[0], line);
    add_side(c, &j->st, line);
    add_all(&b, c->base, c->n, line);
    ab = *c;
    for (uint32_t i = 0; i < b.n; i++)
        if (kl_basis_add(&ab.b, b.base[i], 0))
            pair[npair++] = b.base[i];
    for (uint32_t i = c->nvec, m = 0; i < line && m < npair; i++)
        if (kl_basis_add(&b.b, c->base[i], 0))
            pair[m++] ^= c->base[i];
    add_all(c, pair, npair, j->n);
    add_side(c, side[1], j->n);
    add_side(c, &j->st, j->n);
    c->swizzle = KL_SWZ_SPAN;
}

/* ---- trying a candidate ---- */

/* Byte offset of a direction. */
static uint32_t offset(const struct job *j, const struct cand *c, uint32_t v)
{
    uint32_t x;
    kl_basis_solve(&c->b, v, &x);
    if (c->swizzle == KL_SWZ_XOR)
        x ^= (x >> c->shift & c->mask) << c->to;
    x <<= j->elem;
    return c->swizzle == KL_SWZ_PAD ? x + (x >> c->at) * c->gap : x;
}

/* Every direction in use is one member, and no two the same: then adding is as good. */
static bool disjoint(const struct view *s, const struct cand *c)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < KL_PLACE_BITS; i++) {
        uint32_t x;
        if (s->skip >> i & 1 || !s->v[i])
            continue;
        kl_basis_solve(&c->b, s->v[i], &x);
        if (x & (x - 1) || x & seen)
            return false;
        seen |= x;
    }
    return true;
}

static void find_access(const struct job *j, const struct view *s, kl_side *out)
{
    const uint32_t regs = ~(s->skip | s->rounds) & ((1u << KL_LANE0) - 1);
    out->nvec = 0;
    out->vecs = 0;
    for (uint32_t unit = 1u << j->elem; unit < MAX_ACCESS; unit <<= 1) {
        uint32_t at = 0, others = 0;
        while (at < KL_LANE0 && !(regs >> at & 1 && out->bit[at] == unit))
            at++;
        for (uint32_t i = 0; i < KL_PLACE_BITS; i++)
            others |= i == at || s->skip >> i & 1 ? 0 : out->bit[i];
        if (at == KL_LANE0 || others & unit)
            break;
        out->vec[out->nvec++] = (uint8_t)at;
        out->vecs |= 1u << at;
    }
}

static void try_side(const struct job *j, const struct cand *c, const kl_layout *l,
                     const struct view *s, kl_side *out)
{
    const bool pad = c->swizzle == KL_SWZ_PAD;
    uint32_t addr[32], active = 0;
    kl_basis flips;
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < KL_PLACE_BITS; i++)
        out->bit[i] = s->v[i] ? offset(j, c, s->v[i]) : 0;
    out->skip_regs = kl_place_reg(s->skip);
    out->skip_threads = s->skip >> KL_LANE0;
    find_access(j, s, out);
    addr[0] = 0;
    for (uint32_t i = 1; i < 32; i++) {
        uint32_t low = (uint32_t)__builtin_ctz(i), rest = addr[i & (i - 1)];
        addr[i] = pad ? rest + out->bit[KL_LANE0 + low] : rest ^ out->bit[KL_LANE0 + low];
    }
    for (uint32_t i = 0; i < 32; i++)
        active |= (i & out->skip_threads) ? 0 : 1u << i;
    kl_count k = kl_wavefronts(addr, active, 1u << (j->elem + out->nvec));
    out->waves = (uint32_t)k.units;
    out->ideal = (uint32_t)k.ideal;
    uint32_t bits = (uint32_t)l->nbit[KL_IN_REG] + l->nbit[KL_IN_WARP] - out->nvec;
    bits -= (uint32_t)__builtin_popcount(out->skip_regs | (out->skip_threads & ~31u) << KL_LANE0);
    out->requests = 1u << bits;
    for (uint32_t i = KL_LANE0; i < KL_PLACE_BITS; i++)
        out->threads |= s->skip >> i & 1 ? 0 : out->bit[i];
    flips.lead = 0;
    for (uint32_t i = 0; i < KL_LANE0 && !pad; i++)
        if (!((s->skip | out->vecs) >> i & 1))
            kl_basis_add(&flips, out->bit[i] & out->threads, 0);
    out->nflip = 1u << kl_basis_rank(&flips);
}

static uint64_t total_waves(const kl_shared *s)
{
    return (uint64_t)s->st.waves * s->st.requests + (uint64_t)s->ld.waves * s->ld.requests;
}

/* Wavefronts first, then accesses, address registers, bytes. */
static bool better(const kl_shared *a, const kl_shared *b)
{
    uint64_t wa = total_waves(a), wb = total_waves(b);
    if (wa != wb)
        return wa < wb;
    if (a->st.requests + a->ld.requests != b->st.requests + b->ld.requests)
        return a->st.requests + a->ld.requests < b->st.requests + b->ld.requests;
    if (a->st.nflip + a->ld.nflip != b->st.nflip + b->ld.nflip)
        return a->st.nflip + a->ld.nflip < b->st.nflip + b->ld.nflip;
    return a->bytes < b->bytes;
}

/* Keeps the candidate if it is the best so far; true: none is better with the same vectors. */
static bool try_cand(const struct job *j, struct cand *c, kl_shared *best)
{
    kl_shared s;
    bool pad = c->swizzle == KL_SWZ_PAD;
    s.bytes = 1u << (j->n + j->elem);
    s.bytes += pad ? (s.bytes >> c->at) * c->gap : 0;
    if (s.bytes > j->max_bytes)
        return false;
    try_side(j, c, &j->c->src, &j->st, &s.st);
    if (best->bytes && (uint64_t)s.st.waves * s.st.requests > total_waves(best))
        return false;
    try_side(j, c, &j->c->dst, &j->ld, &s.ld);
    s.swizzle = c->swizzle;
    s.additive = pad;
    bool perfect = s.st.waves == s.st.ideal && s.ld.waves == s.ld.ideal && s.st.nflip == 1 &&
                   s.ld.nflip == 1 && s.st.nvec >= width(&j->st, c) &&
                   s.ld.nvec >= width(&j->ld, c);
    if (best->bytes && !better(&s, best))
        return perfect;
    /* Directions that no CTA holds have no offset. */
    uint32_t coords = kl_layout_coord_bits(&j->c->src);
    struct cand full = *c;
    for (uint32_t i = 0; i < coords; i++)
        kl_basis_add(&full.b, 1u << i, 0);
    memset(&s.offset, 0, sizeof s.offset);
    for (uint32_t i = 0; i < coords; i++)
        s.offset.v[i] = offset(j, &full, 1u << i);
    *best = s;
    return perfect;
}

static void try_vectors(const struct job *j, const struct cand *vec, kl_shared *best)
{
    const kl_layout *l = &j->c->src;
    uint32_t line = LINE - j->elem, row = l->rank ? l->log2[l->rank - 1] + j->elem : 0;
    struct cand plain = *vec, c;
    add_plain(j, &plain);
    if (try_cand(j, &plain, best) || j->n <= line)
        return;
    c = *vec;
    add_span(j, &c);
    if (!j->pad_only && try_cand(j, &c, best))
        return;
    c = plain;
    c.swizzle = KL_SWZ_PAD;
    bool pads = disjoint(&j->st, &c) && disjoint(&j->ld, &c);
    for (uint32_t at = LINE; pads && at < j->n + j->elem; at = at < row ? row : 32)
        for (uint32_t gap = j->elem > 2 ? 8 : 4; gap <= 1u << (j->elem + vec->n); gap *= 4) {
            c.at = at;
            c.gap = gap;
            if (try_cand(j, &c, best))
                return;
        }
    if (j->pad_only)
        return;
    c.swizzle = KL_SWZ_XOR;
    c.shift = line;
    c.to = vec->n;
    c.mask = (1u << (line - vec->n)) - 1;
    try_cand(j, &c, best);
}

/* ---- setting up ---- */

static void make_views(const kl_conv *c, struct job *j)
{
    const kl_layout *s = &c->src, *d = &c->dst;
    j->part.lead = 0;
    memcpy(j->st.v, s->map.v, sizeof j->st.v);
    memcpy(j->ld.v, d->map.v, sizeof j->ld.v);
    for (uint32_t p = kl_layout_places(s) & ((1u << KL_CTA0) - 1); p; p &= p - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(p);
        if (!kl_basis_add(&j->part, s->map.v[i], 1u << i))
            j->st.skip |= 1u << i;
    }
    for (uint32_t i = 0; i < d->nbit[KL_IN_REG]; i++)
        j->ld.skip |= d->map.v[i] ? 0 : 1u << i;
    /* A CTA loads what it stored itself, so only the difference of its two parts counts. */
    for (uint32_t i = KL_CTA0; i < KL_PLACE_BITS; i++) {
        j->ld.v[i] ^= j->st.v[i];
        j->st.v[i] = 0;
    }
}

/* Does the side, without its register bit i, still span what the other side's rest needs? */
static bool splits(const struct job *j, uint32_t i, uint32_t k)
{
    kl_basis b;
    b.lead = 0;
    for (uint32_t p = 0; p < KL_CTA0; p++)
        if (p != i && !((j->st.skip | j->st.rounds) >> p & 1))
            kl_basis_add(&b, j->st.v[p], 0);
    if (!kl_basis_reduce(&b, j->st.v[i]))
        return false;
    for (uint32_t p = 0; p < KL_PLACE_BITS; p++)
        if (p != k && !(j->ld.rounds >> p & 1) && kl_basis_reduce(&b, j->ld.v[p]))
            return false;
    return true;
}

/* Register directions of both sides, from the highest, until a round fits. */
static bool divide(struct job *j)
{
    for (uint32_t i = KL_LANE0; i-- > 0 && 1u << (j->n + j->elem) > j->max_bytes;) {
        uint32_t v = j->st.v[i], k = KL_LANE0;
        if (!v || j->st.skip >> i & 1)
            continue;
        while (k-- > 0 && (j->ld.v[k] != v || (j->ld.skip | j->ld.rounds) >> k & 1))
            ;
        if (k >= KL_LANE0 || !splits(j, i, k))
            continue;
        j->st.rounds |= 1u << i;
        j->ld.rounds |= 1u << k;
        j->round[j->nround++] = v;
        j->n--;
    }
    return 1u << (j->n + j->elem) <= j->max_bytes;
}

/* Each element is read by the warp that stores it. */
static bool within_warps(const kl_conv *c, const struct job *j)
{
    uint32_t moved = 0, from;
    for (uint32_t p = kl_layout_places(&c->dst); p; p &= p - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(p);
        kl_basis_solve(&j->part, j->ld.v[i], &from);
        moved |= from ^ (kl_bit_where(i) == KL_IN_WARP ? 1u << i : 0);
    }
    return !(moved & kl_place(0, 0, 31, 0));
}

bool kl_plan_shared(kl_conv *c, uint32_t max_bytes, uint32_t flags)
{
    const bool swizzle = !(flags & KL_CONV_NO_SWIZZLE);
    struct job j = {.c = c, .max_bytes = max_bytes, .pad_only = (flags & KL_CONV_PAD_ONLY) != 0};
    kl_shared *best = &c->shared;
    memset(best, 0, sizeof *best);
    make_views(c, &j);
    j.elem = (uint32_t)__builtin_ctz(c->bytes);
    j.n = kl_basis_rank(&j.part);
    if (j.n + j.elem > 30 || !divide(&j))
        return false;
    /* Vectors as wide as can be; narrower ones only while there are conflicts. */
    const struct view *more[3] = {NULL, &j.st, &j.ld};
    uint32_t seen[12][4], len[12] = {0}, n = 0;
    for (uint32_t most = 4 - j.elem;; most--) {
        for (uint32_t i = 0; i < 3; i++) {
            struct cand vec = begin(&j);
            bool again = false;
            add_vec(&j, &vec, more[i], most);
            for (uint32_t k = 0; k < n; k++)
                again |= len[k] == vec.n && !memcmp(seen[k], vec.base, vec.n * sizeof vec.base[0]);
            if (again || n == 12)
                continue;
            memcpy(seen[n], vec.base, sizeof seen[n]);
            len[n++] = vec.n;
            if (swizzle) {
                try_vectors(&j, &vec, best);
            } else {
                add_plain(&j, &vec);
                try_cand(&j, &vec, best);
            }
        }
        if (!most || !swizzle ||
            (best->st.waves == best->st.ideal && best->ld.waves == best->ld.ideal))
            break;
    }
    best->in_warp = within_warps(c, &j);
    best->rounds = (uint8_t)j.nround;
    for (uint32_t k = 0, s = j.st.rounds, d; k < j.nround; k++) {
        /* In the order of round[]: highest source bit first. */
        uint32_t i = 31u - (uint32_t)__builtin_clz(s);
        s ^= 1u << i;
        best->st.round[k] = (uint8_t)i;
        for (d = 0; d < KL_LANE0; d++)
            if (j.ld.rounds >> d & 1 && j.ld.v[d] == j.st.v[i])
                best->ld.round[k] = (uint8_t)d;
    }
    return true;
}

/* ---- for emitters ---- */

uint32_t kl_side_at(const kl_shared *s, const kl_side *side, uint32_t place)
{
    uint32_t x = 0;
    for (uint32_t p = place; p; p &= p - 1) {
        uint32_t b = side->bit[__builtin_ctz(p)];
        x = s->additive ? x + b : x ^ b;
    }
    return x;
}

void kl_side_reg(const kl_shared *s, const kl_side *side, uint32_t r, uint32_t *flip,
                 uint32_t *plus)
{
    uint32_t x = kl_side_at(s, side, kl_place(r, 0, 0, 0));
    *flip = s->additive ? 0 : x & side->threads;
    *plus = x ^ *flip;
}

bool kl_side_in_round(const kl_shared *s, const kl_side *side, uint32_t r, uint32_t k)
{
    for (uint32_t i = 0; i < s->rounds; i++)
        if ((r >> side->round[i] & 1) != (k >> i & 1))
            return false;
    return true;
}

/* Bits that go the same way, left or right, make one term. */
uint32_t kl_lin_terms(const kl_lin *f, uint32_t nbit, kl_term term[KL_MAX_TERM])
{
    uint32_t n = 0;
    for (int by = -31; by < 32; by++) {
        uint32_t mask = 0;
        for (uint32_t i = 0; i < nbit; i++) {
            int to = (int)i + by;
            if (to >= 0 && to < 32 && f->v[i] >> to & 1)
                mask |= 1u << i;
        }
        if (mask)
            term[n++] = (kl_term){mask, by > 0 ? 1u << by : 1, (uint8_t)(by < 0 ? -by : 0)};
    }
    return n;
}

uint32_t kl_side_thread(const kl_shared *s, const kl_side *side, kl_term term[KL_MAX_TERM])
{
    const uint32_t nbit = KL_CTA0 - KL_LANE0;
    kl_lin f = {{0}};
    uint32_t n = 0;
    for (uint32_t i = 0; i < nbit; i++)
        f.v[i] = side->skip_threads >> i & 1 ? 0 : side->bit[KL_LANE0 + i];
    if (!s->additive)
        return kl_lin_terms(&f, nbit, term);
    /* Runs of bits that double: one multiplication each. */
    for (uint32_t i = 0, k; i < nbit; i = k) {
        for (k = i + 1; k < nbit && f.v[k] == f.v[i] << (k - i); k++)
            ;
        if (f.v[i])
            term[n++] = (kl_term){((1u << (k - i)) - 1) << i, f.v[i], (uint8_t)i};
    }
    return n;
}
