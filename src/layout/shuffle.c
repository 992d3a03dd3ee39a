/* shuffle.c - conversions inside a warp: swaps of registers, shuffles, swaps of registers.
 *
 * Lane l needs for its register r the register R(r) + R(l) of lane S(r) + S(l); all four maps are
 * linear.  A shuffle gives each lane one value and takes one value from each lane.  So rounds
 * t are chosen such that in round t lane l fills register t + P(l): the source lane is then
 * S(t) + T(l) with T = S + S P, and if T is invertible each lane is asked once.  Such a P exists
 * whenever the source lanes together hold what the round needs: where S(l) lacks a direction, P
 * adds one that S(r) or a replica in the source has.  What lane m has to provide in round t
 * depends on t and m alone, by a linear G(m).  G and P become swaps, one for each dimension of
 * their image.
 *
 * Where no direction is left (the warp needs less than it holds), two lanes want different
 * registers of one lane.  Then y gets another register bit, and both are sent. */
#include "layout/plan.h"

enum { LANES = KL_LANE_BITS, MAXV = 5 };

static uint32_t regs_of(uint32_t place)
{
    return place & ((1u << KL_LANE0) - 1);
}
static uint32_t thread_of(uint32_t place)
{
    return place >> KL_LANE0;
}

/* The state of the search for P and T. */
struct search {
    const kl_conv *c;
    uint32_t nreg;                      /* destination register bits */
    uint32_t y[KL_MAX_REG_BITS + MAXV]; /* source place of each bit of y */
    uint32_t ny;
    uint32_t twin[LANES]; /* differences of source places that hold the same element */
    uint32_t ntwin;
    uint32_t p[LANES];    /* bits of y for each lane bit */
    uint32_t want[LANES]; /* source place for each lane bit, with P and replicas applied */
};

/* Tags of generators: bit i is y bit i, bit 24 + j is twin[j]. */
enum { TWIN0 = 24 };

static uint32_t place_of(const struct search *s, uint32_t tag)
{
    uint32_t v = 0;
    for (uint32_t i = 0; i < s->ny; i++)
        v ^= tag >> i & 1 ? s->y[i] : 0;
    for (uint32_t j = 0; j < s->ntwin; j++)
        v ^= tag >> (TWIN0 + j) & 1 ? s->twin[j] : 0;
    return v;
}

static void give(struct search *s, uint32_t lane, uint32_t tag)
{
    s->want[lane] ^= place_of(s, tag);
    s->p[lane] ^= tag & ((1u << TWIN0) - 1);
}

static void find_replicas(struct search *s)
{
    const kl_layout *src = &s->c->src;
    kl_basis b;
    b.lead = 0;
    for (uint32_t p = kl_layout_places(src) & ((1u << KL_WARP0) - 1); p; p &= p - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(p), sum;
        if (!kl_basis_add(&b, src->map.v[i], 1u << i) && i >= KL_LANE0) {
            kl_basis_solve(&b, src->map.v[i], &sum);
            s->twin[s->ntwin++] = sum ^ 1u << i;
        }
    }
}

/* Chooses P so that as many lanes as possible ask different lanes. */
static void spread(struct search *s)
{
    kl_basis taken, all, lanes; /* lane parts asked; all generators; their lane parts */
    uint32_t open = 0;
    taken.lead = all.lead = lanes.lead = 0;
    for (uint32_t b = 0; b < LANES; b++) {
        s->want[b] = s->c->from.v[KL_LANE0 + b];
        if (!kl_basis_add(&taken, thread_of(s->want[b]), 1u << b))
            open |= 1u << b;
    }
    if (!open)
        return;
    for (uint32_t i = 0; i < s->ny + s->ntwin; i++) {
        uint32_t tag = 1u << (i < s->ny ? i : TWIN0 + i - s->ny);
        kl_basis_add(&all, place_of(s, tag), tag);
        kl_basis_add(&lanes, thread_of(place_of(s, tag)), tag);
    }
    for (; open; open &= open - 1) {
        uint32_t b = (uint32_t)__builtin_ctz(open), tag, sum, clash;
        /* The lane itself if that is possible, else any new direction. */
        if (kl_basis_solve(&lanes, thread_of(s->want[b]) ^ 1u << b, &tag) &&
            kl_basis_add(&taken, 1u << b, 1u << b)) {
            give(s, b, tag);
            continue;
        }
        uint32_t i = 0, n = s->nreg + s->ntwin;
        for (; i < n; i++) {
            tag = 1u << (i < s->nreg ? i : TWIN0 + i - s->nreg);
            if (kl_basis_add(&taken, thread_of(s->want[b] ^ place_of(s, tag)), 1u << b))
                break;
        }
        if (i < n) {
            give(s, b, tag);
            continue;
        }
        /* Lane b asks the lane that the sum of other lanes asks.  If for another register with
         * another element, move to a round that gives that register, or make one. */
        kl_basis_solve(&taken, thread_of(s->want[b]), &sum);
        clash = s->want[b];
        for (; sum; sum &= sum - 1)
            clash ^= s->want[__builtin_ctz(sum)];
        if (kl_layout_at(&s->c->src, clash) == 0) {
            s->want[b] ^= clash;
            continue;
        }
        if (!kl_basis_solve(&all, clash, &tag)) {
            tag = 1u << s->ny;
            s->y[s->ny++] = clash;
            kl_basis_add(&all, clash, tag);
        }
        give(s, b, tag);
    }
}

/* Linear functions of thread bits as swaps: one for each dimension of the image. */
static uint32_t factor(const uint32_t *image, uint32_t n, kl_swap *swap)
{
    kl_basis b;
    uint32_t k = 0;
    b.lead = 0;
    for (uint32_t i = 0; i < n; i++)
        if (kl_basis_add(&b, image[i], 1u << k))
            swap[k++] = (kl_swap){0, image[i]};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t tag;
        kl_basis_solve(&b, image[i], &tag);
        for (uint32_t j = 0; j < k; j++)
            swap[j].mask |= tag >> j & 1 ? 1u << i : 0;
    }
    return k;
}

/* How many values phases 1 to 3 make at most, when every register of the result is wanted. */
static void count(kl_shuffle *h, uint32_t nreg)
{
    kl_basis b, pairs;
    uint32_t stay = 0;
    b.lead = 0;
    for (uint32_t i = 0; i < nreg; i++)
        kl_basis_add(&b, 1u << i, 0);
    for (uint32_t i = h->npost; i-- > 0;) {
        h->nselect += 1u << kl_basis_rank(&b);
        kl_basis_add(&b, h->post[i].regs, 0);
    }
    /* Different values of y, and how many of them each lane takes from itself. */
    pairs.lead = b.lead = 0;
    for (uint32_t i = 0; i < h->ybits; i++) {
        kl_basis_add(&pairs, h->src.v[i] | h->lane.v[i] << KL_MAX_REG_BITS, 0);
        kl_basis_add(&b, h->src.v[i], 0);
    }
    if (h->bfly) {
        kl_basis l;
        l.lead = 0;
        for (uint32_t i = 0; i < h->ybits; i++)
            kl_basis_add(&l, h->lane.v[i], 0);
        stay = 1u << (kl_basis_rank(&pairs) - kl_basis_rank(&l));
    }
    h->nshuffle = (1u << kl_basis_rank(&pairs)) - stay;
    for (uint32_t i = h->npre; i-- > 0;) {
        h->nselect += 1u << kl_basis_rank(&b);
        kl_basis_add(&b, h->pre[i].regs, 0);
    }
}

void kl_plan_shuffle(kl_conv *c)
{
    struct search s = {.c = c, .nreg = c->dst.nbit[KL_IN_REG]};
    kl_shuffle *h = &c->shuffle;
    kl_basis asked, pairs;
    uint32_t g[KL_MAX_SWAP] = {0}, warps = c->dst.nbit[KL_IN_WARP];
    memset(h, 0, sizeof *h);
    s.ny = s.nreg;
    memcpy(s.y, c->from.v, s.nreg * sizeof s.y[0]);
    find_replicas(&s);
    spread(&s);
    /* G on what lanes ask; nothing asks the rest, so that is free. */
    asked.lead = 0;
    h->bfly = true;
    for (uint32_t b = 0; b < LANES; b++) {
        h->across.v[b] = thread_of(s.want[b]);
        h->bfly &= h->across.v[b] == 1u << b;
        kl_basis_add(&asked, h->across.v[b], regs_of(s.want[b]));
    }
    for (uint32_t b = 0; b < LANES; b++)
        kl_basis_add(&asked, 1u << b, 0);
    for (uint32_t b = 0; b < LANES; b++)
        kl_basis_solve(&asked, 1u << b, &g[b]);
    for (uint32_t w = 0; w < warps; w++) {
        uint32_t v = c->from.v[KL_WARP0 + w], lane = thread_of(v) & 31, by;
        kl_basis_solve(&asked, lane, &by);
        h->across.v[LANES + w] = lane;
        h->bfly &= lane == 0;
        g[LANES + w] = regs_of(v) ^ by;
    }
    h->npre = (uint8_t)factor(g, LANES + warps, h->pre);
    h->npost = (uint8_t)factor(s.p, LANES, h->post);
    h->ybits = (uint8_t)s.ny;
    pairs.lead = 0;
    for (uint32_t i = 0; i < s.ny; i++) {
        uint32_t lane = thread_of(s.y[i]) & 31, by;
        kl_basis_solve(&asked, lane, &by);
        h->src.v[i] = regs_of(s.y[i]) ^ by;
        h->lane.v[i] = lane;
        uint32_t pair = h->src.v[i] | lane << KL_MAX_REG_BITS;
        if (kl_basis_add(&pairs, pair, 1u << i))
            h->same.v[i] = 1u << i;
        else
            kl_basis_solve(&pairs, pair, &h->same.v[i]);
    }
    count(h, s.nreg);
}

/* ---- straight-line code ---- */

struct writer {
    const kl_conv *c;
    kl_arena *a;
    kl_shuffle_code *out;
    uint32_t **memo;      /* by stage and register: 0 unknown, 1 no value, value + 2 */
    uint32_t nsrc, stage; /* stage: of the shuffles */
};

static uint32_t add_op(struct writer *w, kl_shuffle_op op)
{
    kl_push(w->a, &w->out->op, op);
    return w->nsrc + w->out->op.n - 1;
}

/* The value of register r behind stage k: 0 the source, then pre swaps, shuffles, post swaps. */
static uint32_t value(struct writer *w, uint32_t k, uint32_t r)
{
    const kl_shuffle *h = &w->c->shuffle;
    uint32_t v;
    if (k == w->stage)
        r = kl_lin_at(&h->same, r);
    if (w->memo[k][r])
        return w->memo[k][r] == 1 ? KL_NOVALUE : w->memo[k][r] - 2;
    if (k == 0) {
        v = kl_layout_bound(&w->c->src, r).all == KL_DEAD ? KL_NOVALUE : r;
    } else if (k == w->stage) {
        uint32_t lane = kl_lin_at(&h->lane, r);
        v = value(w, k - 1, kl_lin_at(&h->src, r));
        if (v != KL_NOVALUE && !(h->bfly && lane == 0))
            v = add_op(w, (kl_shuffle_op){h->bfly ? KL_SH_BFLY : KL_SH_IDX, v, v, 0, lane});
    } else {
        const kl_swap *s = k < w->stage ? &h->pre[k - 1] : &h->post[k - w->stage - 1];
        uint32_t x = value(w, k - 1, r), y = value(w, k - 1, r ^ s->regs);
        /* A dead register is wanted by no live place: the other one will do. */
        v = x == KL_NOVALUE ? y : x;
        if (x != y && x != KL_NOVALUE && y != KL_NOVALUE)
            v = add_op(w, (kl_shuffle_op){KL_SH_SELECT, x, y, s->mask, 0});
    }
    w->memo[k][r] = v == KL_NOVALUE ? 1 : v + 2;
    return v;
}

kl_shuffle_code kl_shuffle_ops(const kl_conv *c, kl_arena *a)
{
    const kl_shuffle *h = &c->shuffle;
    kl_shuffle_code out = {0};
    uint32_t last = (uint32_t)h->npre + 1 + h->npost, nreg = kl_layout_nreg(&c->dst);
    struct writer w = {c, a, &out, NULL, kl_layout_nreg(&c->src), (uint32_t)h->npre + 1};
    w.memo = kl_new_n(a, uint32_t *, last + 1);
    for (uint32_t k = 0; k <= last; k++)
        w.memo[k] = kl_new_n(a, uint32_t, k < w.stage ? w.nsrc : 1u << h->ybits);
    out.result = kl_new_n(a, uint32_t, nreg);
    for (uint32_t r = 0; r < nreg; r++)
        out.result[r] =
            kl_layout_bound(&c->dst, r).all == KL_DEAD ? KL_NOVALUE : value(&w, last, r);
    return out;
}
