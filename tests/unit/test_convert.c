/* test_convert.c - plans between layouts, carried out on values and counted by hand.
 *
 * The values are coordinates: after a conversion each live place of the destination must hold its
 * own.  Dead and unwritten places hold junk, which must not reach a live one. */
#define _POSIX_C_SOURCE 200809L
#include "layout_box.h"

#include <time.h>

#define JUNK 0xdead0000u

#define SHAPE(...)                                                                                 \
    (sizeof((uint32_t[]){__VA_ARGS__}) / 4), (uint32_t[])                                          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* What place p of a layout holds: its coordinate word, or junk. */
static uint32_t held(const kl_layout *l, uint32_t p)
{
    uint32_t c = kl_layout_at(l, p);
    return kl_coord_live(l, c) ? c : JUNK + (c & 0xffff);
}

static void expect(const kl_conv *c, uint32_t place, uint32_t got)
{
    uint32_t want = kl_layout_at(&c->dst, place);
    if (kl_coord_live(&c->dst, want) && got != want) {
        struct box *b = box_new();
        kl_buf t = {.a = &b->a};
        kl_conv_print(&t, c);
        print_message("place reg %u lane %u warp %u cta %u: %x, not %x\n%s\n%s\n%s\n",
                      kl_place_reg(place), kl_place_lane(place), kl_place_warp(place),
                      kl_place_cta(place), got, want, text_of(b, &c->src), text_of(b, &c->dst),
                      kl_buf_str(&t));
        fail();
    }
}

static uint32_t parity(uint32_t x)
{
    return (uint32_t)__builtin_popcount(x) & 1;
}

/* ---- shuffles ---- */

enum { YREGS = 1 << 13 };

/* The three phases as convert.h defines them, on one warp. */
static void run_phases(const kl_conv *c, uint32_t warp, uint32_t cta)
{
    static uint32_t x[2][YREGS][32], y[2][YREGS][32];
    const kl_shuffle *h = &c->shuffle;
    uint32_t n = kl_layout_nreg(&c->src), m = 1u << h->ybits, k = 0;
    assert_true(n <= YREGS && m <= YREGS);
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t l = 0; l < 32; l++)
            x[0][r][l] = held(&c->src, kl_place(r, l, warp, cta));
    for (uint32_t i = 0; i < h->npre; i++, k ^= 1)
        for (uint32_t r = 0; r < n; r++)
            for (uint32_t l = 0; l < 32; l++)
                x[k ^ 1][r][l] =
                    x[k][parity((l | warp << 5) & h->pre[i].mask) ? r ^ h->pre[i].regs : r][l];
    for (uint32_t t = 0; t < m; t++)
        for (uint32_t l = 0; l < 32; l++) {
            uint32_t across = h->bfly ? l : kl_lin_at(&h->across, l | warp << 5);
            assert_int_equal(across, kl_lin_at(&h->across, l | warp << 5));
            y[0][t][l] = x[k][kl_lin_at(&h->src, t)][across ^ kl_lin_at(&h->lane, t)];
        }
    for (uint32_t t = 0; t < m; t++)
        for (uint32_t l = 0; l < 32; l++)
            assert_int_equal(y[0][t][l], y[0][kl_lin_at(&h->same, t)][l]);
    k = 0;
    for (uint32_t i = 0; i < h->npost; i++, k ^= 1)
        for (uint32_t r = 0; r < m; r++)
            for (uint32_t l = 0; l < 32; l++)
                y[k ^ 1][r][l] =
                    y[k][parity((l | warp << 5) & h->post[i].mask) ? r ^ h->post[i].regs : r][l];
    for (uint32_t r = 0; r < kl_layout_nreg(&c->dst); r++)
        for (uint32_t l = 0; l < 32; l++)
            expect(c, kl_place(r, l, warp, cta), y[k][r][l]);
}

/* The straight-line code. */
static void run_code(const kl_conv *c, uint32_t warp, uint32_t cta)
{
    struct box *b = box_new();
    kl_shuffle_code code = kl_shuffle_ops(c, &b->a);
    uint32_t n = kl_layout_nreg(&c->src), shuffles = 0, selects = 0;
    uint32_t(*v)[32] = calloc(n + code.op.n, sizeof *v);
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t l = 0; l < 32; l++)
            v[r][l] = held(&c->src, kl_place(r, l, warp, cta));
    for (uint32_t i = 0; i < code.op.n; i++) {
        kl_shuffle_op *o = &code.op.v[i];
        assert_true(o->a < n + i && o->b < n + i);
        for (uint32_t l = 0; l < 32; l++) {
            uint32_t thread = l | warp << 5;
            if (o->op == KL_SH_SELECT)
                v[n + i][l] = v[parity(thread & o->mask) ? o->b : o->a][l];
            else if (o->op == KL_SH_BFLY)
                v[n + i][l] = v[o->a][l ^ o->lane];
            else
                v[n + i][l] = v[o->a][kl_lin_at(&c->shuffle.across, thread) ^ o->lane];
        }
        selects += o->op == KL_SH_SELECT;
        shuffles += o->op != KL_SH_SELECT;
    }
    assert_true(shuffles <= c->shuffle.nshuffle);
    assert_true(selects <= c->shuffle.nselect);
    for (uint32_t r = 0; r < kl_layout_nreg(&c->dst); r++)
        for (uint32_t l = 0; l < 32; l++)
            if (code.result[r] != KL_NOVALUE)
                expect(c, kl_place(r, l, warp, cta), v[code.result[r]][l]);
            else
                assert_false(
                    kl_coord_live(&c->dst, kl_layout_at(&c->dst, kl_place(r, l, warp, cta))));
    free(v);
    box_free(b);
}

/* ---- shared memory ---- */

struct cell {
    uint32_t value, writer, used;
};

static uint32_t sum_terms(const kl_shared *s, const kl_term *t, uint32_t n, uint32_t thread)
{
    uint32_t x = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t y = ((thread & t[i].mask) >> t[i].shr) * t[i].mul;
        x = s->additive ? x + y : x ^ y;
    }
    return x;
}

/* One side, one round, one CTA: checks addresses and counts, and calls for each element. */
static void run_side(const kl_conv *c, bool store, uint32_t round, uint32_t cta, struct cell *mem,
                     uint32_t *got, uint64_t *requests)
{
    const kl_shared *s = &c->shared;
    const kl_side *d = store ? &s->st : &s->ld;
    const kl_layout *l = store ? &c->src : &c->dst;
    uint32_t width = (uint32_t)c->bytes << d->nvec, at_cta = 0;
    kl_term term[KL_MAX_TERM];
    uint32_t nterm = kl_side_thread(s, d, term);
    for (uint32_t i = 0; i < l->nbit[KL_IN_CTA]; i++)
        at_cta ^= cta >> i & 1 ? d->bit[KL_CTA0 + i] : 0;
    for (uint32_t r = 0; r < kl_layout_nreg(l); r++) {
        uint32_t flip, plus;
        if (r & (d->vecs | d->skip_regs) || !kl_side_in_round(s, d, r, round))
            continue;
        kl_side_reg(s, d, r, &flip, &plus);
        for (uint32_t warp = 0; warp < kl_layout_nwarp(l); warp++) {
            uint32_t addr[32] = {0}, active = 0;
            for (uint32_t lane = 0; lane < 32; lane++) {
                uint32_t thread = lane | warp << 5;
                if (thread & d->skip_threads)
                    continue;
                uint32_t part = sum_terms(s, term, nterm, thread);
                part = s->additive ? part + at_cta : part ^ at_cta;
                assert_true(s->additive || !(part & ~d->threads));
                uint32_t a = (part ^ flip) + plus;
                assert_int_equal(a, kl_side_at(s, d, kl_place(r, lane, warp, cta)));
                assert_int_equal(a % width, 0);
                assert_true(a + width <= s->bytes);
                active |= 1u << lane;
                addr[lane] = a;
                for (uint32_t i = 0; i < 1u << d->nvec; i++) {
                    uint32_t er = r, p, e = (a + i * c->bytes) / c->bytes;
                    for (uint32_t k = 0; k < d->nvec; k++)
                        er |= (i >> k & 1) << d->vec[k];
                    p = kl_place(er, lane, warp, cta);
                    if (store) {
                        assert_int_equal(mem[e].used, 0); /* each element once */
                        mem[e] = (struct cell){held(l, p), warp, 1};
                    } else {
                        uint32_t want = kl_layout_at(l, p);
                        if (kl_coord_live(l, want))
                            assert_int_equal(mem[e].used, 1);
                        got[er << 10 | warp << 5 | lane] = mem[e].value;
                        if (s->in_warp && kl_coord_live(l, want))
                            assert_int_equal(mem[e].writer, warp);
                    }
                }
            }
            kl_count k = kl_wavefronts(addr, active, width);
            if (!active)
                continue;
            assert_int_equal(k.units, d->waves);
            assert_int_equal(k.ideal, d->ideal);
            *requests += 1;
        }
    }
}

static void run_shared(const kl_conv *c)
{
    const kl_shared *s = &c->shared;
    uint32_t nreg = kl_layout_nreg(&c->dst);
    struct cell *mem = calloc(s->bytes, sizeof *mem);
    uint32_t *got = calloc((size_t)nreg << 10, sizeof *got);
    for (uint32_t cta = 0; cta < kl_layout_ncta(&c->dst); cta++) {
        uint64_t st = 0, ld = 0;
        for (uint32_t round = 0; round < 1u << s->rounds; round++) {
            memset(mem, 0, s->bytes * sizeof *mem);
            run_side(c, true, round, cta, mem, got, &st);
            run_side(c, false, round, cta, mem, got, &ld);
        }
        assert_int_equal(st, s->st.requests);
        assert_int_equal(ld, s->ld.requests);
        for (uint32_t r = 0; r < nreg; r++)
            for (uint32_t t = 0; t < 32 * kl_layout_nwarp(&c->dst); t++)
                expect(c, kl_place(r, t & 31, t >> 5, cta), got[(r & ~s->ld.skip_regs) << 10 | t]);
    }
    /* offset() of a coordinate is where the store of CTA 0 puts it. */
    for (uint32_t p = 0, m = kl_layout_places(&c->src) & ((1u << KL_CTA0) - 1);;) {
        uint32_t x = 0;
        for (uint32_t w = kl_layout_at(&c->src, p); w; w &= w - 1) {
            uint32_t o = s->offset.v[__builtin_ctz(w)];
            x = s->additive ? x + o : x ^ o;
        }
        if (!(p & (s->st.skip_regs | s->st.skip_threads << KL_LANE0)))
            assert_int_equal(x, kl_side_at(s, &s->st, p));
        if (!next_place(&p, m))
            break;
    }
    free(mem);
    free(got);
}

static void run(const kl_conv *c)
{
    uint32_t warps = kl_layout_nwarp(&c->dst), ctas = kl_layout_ncta(&c->dst);
    switch ((enum kl_conv_kind)c->kind) {
    case KL_CONV_NONE: assert_true(kl_layout_eq(&c->src, &c->dst)); break;
    case KL_CONV_RENAME:
        for (uint32_t p = 0, m = kl_layout_places(&c->dst);;) {
            uint32_t r = kl_lin_at(&c->rename, kl_place_reg(p));
            assert_true(r < kl_layout_nreg(&c->src));
            expect(c, p, held(&c->src, (p & ~0xffffu) | r));
            if (!next_place(&p, m))
                break;
        }
        break;
    case KL_CONV_SHUFFLE:
        for (uint32_t w = 0; w < warps; w++)
            for (uint32_t cta = 0; cta < ctas; cta++) {
                run_phases(c, w, cta);
                run_code(c, w, cta);
            }
        break;
    case KL_CONV_SHARED: run_shared(c); break;
    default: break;
    }
}

/* The map to source places, by definition. */
static void check_from(const kl_conv *c)
{
    for (uint32_t p = 0, m = kl_layout_places(&c->dst);;) {
        uint32_t q = kl_lin_at(&c->from, p);
        assert_int_equal(kl_layout_at(&c->src, q), kl_layout_at(&c->dst, p));
        if (!next_place(&p, m))
            break;
    }
}

/* How far elements have to move, found by looking at all places. */
static enum kl_where must_move(const kl_layout *s, const kl_layout *d)
{
    enum kl_where far = KL_IN_REG;
    uint32_t ms = kl_layout_places(s), md = kl_layout_places(d);
    static uint8_t where[4][1 << 14]; /* for one thread: coordinates in it, its warp, its CTA */
    for (uint32_t t = 0, mt = md & ~0xffffu;;) {
        memset(where, 0, sizeof where);
        for (uint32_t p = 0;;) {
            uint32_t x = kl_layout_at(s, p), diff = (p ^ t) >> KL_LANE0;
            where[!diff           ? KL_IN_REG
                  : !(diff >> 5)  ? KL_IN_LANE
                  : !(diff >> 10) ? KL_IN_WARP
                                  : KL_IN_CTA][x] = 1;
            if (!next_place(&p, ms))
                break;
        }
        for (uint32_t r = 0; r < kl_layout_nreg(d); r++) {
            uint32_t x = kl_layout_at(d, t | r), w = KL_IN_REG;
            while (w < KL_IN_CTA && !where[w][x])
                w++;
            far = w > far ? (enum kl_where)w : far;
        }
        if (!next_place(&t, mt))
            break;
    }
    return far;
}

static void random_conversions(uint32_t rounds, uint32_t bits, bool ctas, uint32_t *seen)
{
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t dim[4], rank = random_shape(dim, bits), warps = rnd(5), nc = ctas ? rnd(3) : 0;
        bool mix = rnd(3) == 0;
        kl_layout s = random_layout(rank, dim, warps, nc, mix, rnd(9) == 0);
        kl_layout d = random_layout(rank, dim, warps, nc, mix, rnd(4) == 0);
        if (rnd(3) == 0) { /* stay near: change registers and lanes only */
            d = s;
            for (uint32_t i = 0; i < 4; i++) {
                uint32_t a = rnd(KL_WARP0), b = rnd(KL_WARP0), m = kl_layout_places(&d), t;
                if (!(m >> a & 1) || !(m >> b & 1) || a == b)
                    continue;
                t = d.map.v[a];
                d.map.v[a] = d.map.v[b];
                d.map.v[b] = rnd(4) ? t : rnd(2) ? t ^ d.map.v[a] : 0;
            }
        }
        if (rnd(12) == 0)
            s = d;
        if (s.bad || d.bad || s.nbit[0] > 10 || d.nbit[0] > 10)
            continue;
        kl_conv c;
        static const uint32_t limits[] = {256, 4096, 1 << 20, 1 << 20};
        static const uint32_t flags[] = {
            0, 0, 0, KL_CONV_NO_SHUFFLE, KL_CONV_NO_SHARED, KL_CONV_NO_SWIZZLE};
        uint32_t flag = flags[rnd(6)];
        kl_conv_plan(&c, &s, &d, 1u << rnd(4), limits[rnd(4)], flag);
        if (c.kind != KL_CONV_BAD) {
            check_from(&c);
            if (round % 8 == 0) {
                enum kl_where far = must_move(&s, &d);
                if (c.kind == KL_CONV_CLUSTER)
                    assert_int_equal(far, KL_IN_CTA);
                if (c.kind == KL_CONV_SHUFFLE)
                    assert_true(far <= KL_IN_LANE);
                if (c.kind == KL_CONV_RENAME || c.kind == KL_CONV_NONE)
                    assert_int_equal(far, KL_IN_REG);
                if (far == KL_IN_CTA)
                    assert_int_equal(c.kind, KL_CONV_CLUSTER);
                if (c.in_warp)
                    assert_true(far <= KL_IN_LANE);
            }
        } else {
            kl_lin inv;
            assert_false(kl_layout_inverse(&s, &inv));
        }
        run(&c);
        seen[c.kind]++;
        if (c.kind == KL_CONV_SHARED) {
            seen[8 + c.shared.swizzle]++;
            seen[12] += c.shared.rounds > 0;
            seen[13] += c.shared.in_warp;
        }
        if (c.kind == KL_CONV_SHUFFLE) {
            seen[14] += c.shuffle.ybits > d.nbit[KL_IN_REG];
            seen[15] += c.shuffle.bfly;
        }
    }
}

static void conversions(void **state)
{
    (void)state;
    uint32_t seen[16] = {0};
    random_conversions(6000, 9, false, seen);
    random_conversions(1500, 12, true, seen);
    print_message("none %u rename %u shuffle %u shared %u cluster %u too big %u bad %u | plain %u "
                  "pad %u xor %u span %u | rounds %u in warp %u | more y %u butterfly %u\n",
                  seen[0], seen[1], seen[2], seen[3], seen[4], seen[5], seen[6], seen[8], seen[9],
                  seen[10], seen[11], seen[12], seen[13], seen[14], seen[15]);
    for (uint32_t k = 0; k < 7; k++)
        assert_true(seen[k] > 10);
    assert_true(seen[8] && seen[9] && seen[11] && seen[12] && seen[13] && seen[14] && seen[15]);
}

/* Every pair of blocked layouts of awkward shapes, 1 to 16 warps. */
static void blocked_pairs(void **state)
{
    (void)state;
    static const uint32_t shape[][4] = {{5, 5, 5, 1},   {1, 1000, 1, 1}, {3, 7, 1, 2},
                                        {33, 65, 1, 1}, {64, 64, 1, 1},  {1, 1, 1, 1}};
    for (uint32_t s = 0; s < sizeof shape / sizeof *shape; s++)
        for (uint32_t warps = 0; warps <= 4; warps++)
            for (uint32_t k = 0; k < 16 * 16; k += 1 + rnd(3)) {
                uint32_t a = k % 16, b = k / 16;
                kl_layout src = kl_layout_blocked(4, shape[s], a & 3, warps, a >> 2);
                kl_layout dst = kl_layout_blocked(4, shape[s], b & 3, warps, b >> 2);
                kl_conv c;
                kl_conv_plan(&c, &src, &dst, 1u << k % 4, 1 << 16, 0);
                assert_true(c.kind <= KL_CONV_SHARED);
                check_from(&c);
                run(&c);
            }
}

static uint64_t waves(const kl_shared *s)
{
    return (uint64_t)s->st.waves * s->st.requests + (uint64_t)s->ld.waves * s->ld.requests;
}

/* The choice is never worse than row-major order as it is, nor, where lanes hold different
 * elements of at least 4 bytes, than single elements without any conflict. */
static void choice(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 4000; round++) {
        uint32_t dim[4], rank = random_shape(dim, 13), warps = rnd(5), bytes = 1u << rnd(4);
        kl_layout s = random_layout(rank, dim, warps, 0, false, false);
        kl_layout d = random_layout(rank, dim, warps, 0, false, false);
        kl_conv c, plain;
        if (s.bad || d.bad)
            continue;
        kl_conv_plan(&c, &s, &d, bytes, 1 << 20, KL_CONV_NO_SHUFFLE);
        kl_conv_plan(&plain, &s, &d, bytes, 1 << 20, KL_CONV_NO_SHUFFLE | KL_CONV_NO_SWIZZLE);
        assert_int_equal(c.kind, plain.kind);
        if (c.kind != KL_CONV_SHARED)
            continue;
        assert_true(waves(&c.shared) <= waves(&plain.shared));
        assert_int_equal(plain.shared.swizzle, KL_SWZ_PLAIN);
        if (bytes >= 4 && kl_layout_is_injective(&s) && kl_layout_is_injective(&d)) {
            uint64_t regs = (uint64_t)kl_layout_nreg(&s) + kl_layout_nreg(&d);
            assert_true(waves(&c.shared) <= (regs << warps) * (bytes / 4));
        }
    }
}

static void says(kl_layout s, kl_layout d, uint32_t bytes, uint32_t flags, const char *want)
{
    struct box *b = box_new();
    kl_buf t = {.a = &b->a};
    kl_conv c;
    kl_conv_plan(&c, &s, &d, bytes, 48 << 10, flags);
    kl_conv_print(&t, &c);
    assert_string_equal(kl_buf_str(&t), want);
    run(&c);
    box_free(b);
}

static void golden(void **state)
{
    (void)state;
    /* Transposition with a square of 4 x 4 in each thread: 16 bytes on both sides. */
    static const kl_run rows[] = {{KL_IN_REG, 1, 2},
                                  {KL_IN_REG, 0, 2},
                                  {KL_IN_LANE, 1, 4},
                                  {KL_IN_LANE, 0, 1},
                                  {KL_IN_WARP, 0, 2}};
    static const kl_run cols[] = {{KL_IN_REG, 0, 2},
                                  {KL_IN_REG, 1, 2},
                                  {KL_IN_LANE, 0, 4},
                                  {KL_IN_LANE, 1, 1},
                                  {KL_IN_WARP, 1, 2}};
    says(kl_layout_runs(SHAPE(64, 64), rows, 5, 2, 0), kl_layout_runs(SHAPE(64, 64), cols, 5, 2, 0),
         4, 0,
         "shared: span, 16384 bytes x 1 rounds, store 32 x 16 bytes 4/4 wavefronts, load 32 x 16 "
         "bytes 4/4 wavefronts, CTA barrier");
    /* The textbook case, and what it costs without a swizzle. */
    kl_layout r = kl_layout_blocked(SHAPE(32, 32), 0, 0, 1),
              c = kl_layout_blocked(SHAPE(32, 32), 0, 0, 0);
    says(r, c, 4, KL_CONV_NO_SHUFFLE,
         "shared: padded, 4608 bytes x 1 rounds, store 32 x 4 bytes 1/1 wavefronts, load 8 x 16 "
         "bytes 4/4 wavefronts, warp barrier");
    says(
        r, c, 4, KL_CONV_NO_SHUFFLE | KL_CONV_NO_SWIZZLE,
        "shared: plain, 4096 bytes x 1 rounds, store 32 x 4 bytes 1/1 wavefronts, load 8 x 16 bytes "
        "32/4 wavefronts, warp barrier");
    /* Four elements a lane to eight, in one warp: nothing but shuffles. */
    says(kl_layout_blocked(SHAPE(256), 2, 0, 0), kl_layout_blocked(SHAPE(256), 3, 0, 0), 4, 0,
         "shuffle: 8 shuffles, 16 selects, indexed");
    /* A reduced row seen by the threads of the tile. */
    kl_layout tile = kl_layout_blocked(SHAPE(64, 64), 2, 2, 1), row = kl_layout_slice(&tile, 0);
    says(row, kl_layout_trim(&row, NULL), 4, 0, "rename");
    says(row, row, 4, 0, "none");
    says(row, tile, 4, 0, "bad");
    says(kl_layout_blocked(SHAPE(256, 256), 0, 2, 1), kl_layout_blocked(SHAPE(256, 256), 0, 2, 0),
         8, 0, "too big");
}

static void bad_input(void **state)
{
    (void)state;
    kl_layout a = kl_layout_blocked(SHAPE(64), 0, 1, 0), b = kl_layout_blocked(SHAPE(64), 0, 2, 0);
    kl_layout few = kl_layout_blocked(SHAPE(64), 0, 1, 0),
              no = kl_layout_blocked(SHAPE(0), 0, 1, 0);
    kl_conv c;
    few.map.v[KL_LANE0] = 0;
    kl_conv_plan(&c, &a, &b, 4, 1 << 16, 0);
    assert_int_equal(c.kind, KL_CONV_BAD); /* other numbers of warps */
    kl_conv_plan(&c, &few, &a, 4, 1 << 16, 0);
    assert_int_equal(c.kind, KL_CONV_BAD); /* elements that the source lacks */
    kl_conv_plan(&c, &a, &few, 4, 1 << 16, 0);
    assert_int_not_equal(c.kind, KL_CONV_BAD); /* the destination may lack some */
    kl_conv_plan(&c, &a, &a, 3, 1 << 16, 0);
    assert_int_equal(c.kind, KL_CONV_BAD);
    kl_conv_plan(&c, &no, &no, 4, 1 << 16, 0);
    assert_int_equal(c.kind, KL_CONV_BAD);
}

/* Plans are made for each operation of each compile: microseconds.  The limit is loose, for
 * machines with other work; the figure is printed. */
static void speed(void **state)
{
    (void)state;
    kl_layout s = kl_layout_blocked(SHAPE(64, 64), 2, 2, 1);
    kl_layout d = kl_layout_blocked(SHAPE(64, 64), 2, 2, 0);
    struct timespec t0, t1;
    kl_conv c;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
    for (uint32_t i = 0; i < 200; i++)
        kl_conv_plan(&c, &s, &d, 4, 1 << 16, 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    double us =
        ((double)(t1.tv_sec - t0.tv_sec) * 1e6 + (double)(t1.tv_nsec - t0.tv_nsec) / 1e3) / 200;
    print_message("%.1f us a plan\n", us);
    assert_true(us < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversions), cmocka_unit_test(blocked_pairs), cmocka_unit_test(choice),
        cmocka_unit_test(golden),      cmocka_unit_test(bad_input),     cmocka_unit_test(speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
