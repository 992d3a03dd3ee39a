/* layout.c - making layouts, and the coordinates of places. */
#include "layout/layout.h"

/* The smallest n with 2^n >= x. */
static uint32_t log2_up(uint32_t x)
{
    return x <= 1 ? 0 : 32u - (uint32_t)__builtin_clz(x - 1);
}

/* A layout of this shape with no bits placed yet. */
static kl_layout begin(uint32_t rank, const uint32_t *dim)
{
    kl_layout l = {0};
    uint32_t bits = 0;
    if (rank > KL_LAYOUT_RANK) {
        l.bad = 1;
        return l;
    }
    l.rank = (uint8_t)rank;
    for (uint32_t d = rank; d-- > 0;) {
        l.dim[d] = dim[d];
        l.bad |= dim[d] == 0 || dim[d] > 1u << 30;
        l.log2[d] = (uint8_t)log2_up(dim[d]);
        l.off[d] = (uint8_t)(bits > 31 ? 31 : bits);
        bits += l.log2[d];
    }
    l.bad |= bits > 31;
    return l;
}

/* What is being placed: the next free bit of each axis and of each field of the place. */
struct filler {
    kl_layout l;
    uint8_t next[KL_LAYOUT_RANK];
};

static void put(struct filler *f, uint32_t where, uint32_t vec)
{
    static const uint8_t most[KL_NWHERE] = {KL_MAX_REG_BITS, KL_LANE_BITS, KL_MAX_WARP_BITS,
                                            KL_MAX_CTA_BITS};
    if (where >= KL_NWHERE || f->l.nbit[where] >= most[where]) {
        f->l.bad = 1;
        return;
    }
    f->l.map.v[kl_place_bit((enum kl_where)where, f->l.nbit[where]++)] = vec;
}

/* Up to n bits of `where` from what is left of axis; returns how many. */
static uint32_t take(struct filler *f, uint32_t where, uint32_t axis, uint32_t n)
{
    uint32_t k = 0;
    for (; k < n && f->next[axis] < f->l.log2[axis] && !f->l.bad; k++)
        put(f, where, 1u << (f->l.off[axis] + f->next[axis]++));
    return k;
}

static void replicate(struct filler *f, uint32_t where, uint32_t n)
{
    while (f->l.nbit[where] < n && !f->l.bad)
        put(f, where, 0);
}

kl_layout kl_layout_block(uint32_t rank, const uint32_t *dim, const kl_blocking *b)
{
    struct filler f = {.l = begin(rank, dim)};
    const uint32_t want[KL_NWHERE] = {0, KL_LANE_BITS, b->warps, b->ctas};
    uint32_t seen = 0;
    for (uint32_t i = 0; i < rank && i < KL_LAYOUT_RANK; i++)
        seen |= b->order[i] < rank ? 1u << b->order[i] : 0;
    if (f.l.bad || seen != (1u << rank) - 1) {
        f.l.bad = 1;
        return f.l;
    }
    if (rank)
        take(&f, KL_IN_REG, b->order[0], b->vec);
    uint32_t at = 0;
    for (uint32_t k = KL_IN_LANE; k < KL_NWHERE; k++) {
        uint32_t w = k != KL_IN_LANE && b->ctas_first ? KL_IN_WARP + KL_IN_CTA - k : k;
        uint32_t left = want[w];
        for (; at < rank; at++) {
            left -= take(&f, w, b->order[at], left);
            if (!left)
                break;
        }
        replicate(&f, w, want[w]);
    }
    for (uint32_t i = 0; i < rank; i++)
        take(&f, KL_IN_REG, b->order[i], 32);
    return f.l;
}

kl_layout kl_layout_blocked(uint32_t rank, const uint32_t *dim, uint32_t vec_log2,
                            uint32_t warps_log2, uint32_t fast)
{
    kl_blocking b = {.vec = (uint8_t)vec_log2, .warps = (uint8_t)warps_log2};
    uint32_t n = 0;
    if (rank && rank <= KL_LAYOUT_RANK)
        b.order[n++] = (uint8_t)fast;
    for (uint32_t d = rank > KL_LAYOUT_RANK ? 0 : rank; d-- > 0;)
        if (d != fast && n < KL_LAYOUT_RANK)
            b.order[n++] = (uint8_t)d;
    return kl_layout_block(rank, dim, &b);
}

kl_layout kl_layout_runs(uint32_t rank, const uint32_t *dim, const kl_run *run, uint32_t nrun,
                         uint32_t warps_log2, uint32_t ctas_log2)
{
    struct filler f = {.l = begin(rank, dim)};
    for (uint32_t i = 0; i < nrun && !f.l.bad; i++) {
        uint32_t got = 0;
        if (run[i].axis != KL_REPLICATE && run[i].axis >= rank) {
            f.l.bad = 1;
            break;
        }
        if (run[i].axis != KL_REPLICATE)
            got = take(&f, run[i].where, run[i].axis, run[i].n);
        for (; got < run[i].n; got++)
            put(&f, run[i].where, 0);
    }
    for (uint32_t d = f.l.rank; d-- > 0;)
        take(&f, KL_IN_REG, d, 32);
    replicate(&f, KL_IN_LANE, KL_LANE_BITS);
    replicate(&f, KL_IN_WARP, warps_log2);
    replicate(&f, KL_IN_CTA, ctas_log2);
    return f.l;
}

kl_layout kl_layout_scalar(uint32_t warps_log2, uint32_t ctas_log2)
{
    static const uint32_t none[1] = {1};
    return kl_layout_runs(0, none, NULL, 0, warps_log2, ctas_log2);
}

uint32_t kl_layout_places(const kl_layout *l)
{
    uint32_t m = 0;
    for (uint32_t w = 0; w < KL_NWHERE; w++)
        m |= ((1u << l->nbit[w]) - 1) << kl_place_bit((enum kl_where)w, 0);
    return m;
}

bool kl_layout_coords(const kl_layout *l, uint32_t place, uint32_t x[KL_LAYOUT_RANK])
{
    uint32_t c = kl_layout_at(l, place);
    bool live = true;
    for (uint32_t d = 0; d < l->rank; d++) {
        x[d] = kl_coord_axis(l, c, d);
        live &= x[d] < l->dim[d];
    }
    return live;
}

uint32_t kl_coord_pack(const kl_layout *l, const uint32_t *x)
{
    uint32_t c = 0;
    for (uint32_t d = 0; d < l->rank; d++)
        c |= x[d] << l->off[d];
    return c;
}

uint64_t kl_layout_live(const kl_layout *l)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < l->rank; d++)
        n *= l->dim[d];
    return n;
}

uint64_t kl_layout_total(const kl_layout *l)
{
    return (uint64_t)1 << kl_layout_coord_bits(l);
}

uint64_t kl_layout_threads_places(const kl_layout *l)
{
    return (uint64_t)1 << __builtin_popcount(kl_layout_places(l));
}

/* "j3", or "i1+j0" for a vector of several bits, or "0" for replicas. */
static void print_vec(kl_buf *b, const kl_layout *l, uint32_t v)
{
    const char *plus = "";
    if (!v)
        kl_puts(b, "0");
    for (uint32_t d = 0; d < l->rank; d++)
        for (uint32_t x = kl_coord_axis(l, v, d), k = 0; x; x >>= 1, k++)
            if (x & 1) {
                kl_putf(b, "%s%c%u", plus, "ijkl"[d], k);
                plus = "+";
            }
}

void kl_layout_print(kl_buf *b, const kl_layout *l)
{
    static const char *const name[KL_NWHERE] = {"reg", "lane", "warp", "cta"};
    const char *bar = "";
    for (uint32_t d = 0; d < l->rank; d++)
        kl_putf(b, "[%u]", l->dim[d]);
    if (l->bad) {
        kl_puts(b, " bad");
        return;
    }
    for (uint32_t w = 0; w < KL_NWHERE; w++) {
        if (!l->nbit[w])
            continue;
        kl_putf(b, "%s%s%s", *bar || l->rank ? " " : "", bar, name[w]);
        for (uint32_t i = 0; i < l->nbit[w]; i++) {
            kl_puts(b, " ");
            print_vec(b, l, l->map.v[kl_place_bit((enum kl_where)w, i)]);
        }
        bar = "| ";
    }
}
