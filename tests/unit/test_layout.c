/* test_layout.c - linear layouts against enumeration: coordinates, relabelling, inverses, dead
 * places, sectors and wavefronts. */
#include "layout_box.h"

enum { ROUNDS = 3000 };

/* ---- maps ---- */

static void linear_maps(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        kl_lin f, g;
        kl_basis b;
        uint32_t n = 1 + rnd(8), span = 0, rank = 0;
        b.lead = 0;
        memset(&f, 0, sizeof f);
        for (uint32_t i = 0; i < 32; i++)
            g.v[i] = rnd(256);
        for (uint32_t i = 0; i < n; i++) {
            f.v[i] = rnd(256);
            kl_basis_add(&b, f.v[i], 1u << i);
        }
        uint8_t seen[256] = {0};
        for (uint32_t x = 0; x < 1u << n; x++)
            span += !seen[kl_lin_at(&f, x)]++;
        while (1u << rank < span)
            rank++;
        assert_int_equal(kl_lin_rank(&f), rank);
        assert_int_equal(kl_basis_rank(&b), rank);
        for (uint32_t y = 0; y < 256; y++) {
            uint32_t from;
            assert_int_equal(kl_basis_solve(&b, y, &from), seen[y] != 0);
            assert_int_equal(kl_basis_reduce(&b, y) == 0, seen[y] != 0);
            if (seen[y])
                assert_int_equal(kl_lin_at(&f, from), y);
        }
        kl_lin h = kl_lin_compose(&f, &g);
        uint32_t x = rnd(1u << 30);
        assert_int_equal(kl_lin_at(&h, x), kl_lin_at(&f, kl_lin_at(&g, x)));
        uint32_t mask = rnd(1u << 30), low = kl_extract(x, mask);
        assert_int_equal(kl_deposit(low, mask), x & mask);
        assert_true(low < 1ull << __builtin_popcount(mask));
    }
}

static void linear_terms(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        kl_lin f = {{0}};
        kl_term t[KL_MAX_TERM];
        for (uint32_t i = 0; i < 10; i++)
            f.v[i] = rnd(2) ? 1u << rnd(30) : rnd(1u << 20);
        uint32_t n = kl_lin_terms(&f, 10, t);
        for (uint32_t x = 0; x < 1024; x += 1 + rnd(9)) {
            uint32_t y = 0;
            for (uint32_t i = 0; i < n; i++)
                y ^= ((x & t[i].mask) >> t[i].shr) * t[i].mul;
            assert_int_equal(y, kl_lin_at(&f, x));
        }
    }
}

/* ---- constructors ---- */

#define SHAPE(...)                                                                                 \
    (sizeof((uint32_t[]){__VA_ARGS__}) / 4), (uint32_t[])                                          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void says(struct box *b, kl_layout l, const char *want)
{
    assert_string_equal(text_of(b, &l), want);
}

static void blocked(void **state)
{
    (void)state;
    struct box *b = box_new();
    says(b, kl_layout_blocked(SHAPE(1024), 2, 2, 0),
         "[1024] reg i0 i1 i9 | lane i2 i3 i4 i5 i6 | warp i7 i8");
    says(b, kl_layout_blocked(SHAPE(4, 64), 2, 1, 1),
         "[4][64] reg j0 j1 | lane j2 j3 j4 j5 i0 | warp i1");
    says(b, kl_layout_blocked(SHAPE(16, 64), 2, 2, 0),
         "[16][64] reg i0 i1 j5 | lane i2 i3 j0 j1 j2 | warp j3 j4");
    says(b, kl_layout_blocked(SHAPE(3), 0, 1, 0), "[3] lane i0 i1 0 0 0 | warp 0");
    says(b, kl_layout_blocked(SHAPE(5, 5, 5), 1, 1, 2),
         "[5][5][5] reg k0 i1 i2 | lane k1 k2 j0 j1 j2 | warp i0");
    says(b, kl_layout_scalar(1, 0), "lane 0 0 0 0 0 | warp 0");
    kl_blocking how = {.vec = 2, .warps = 1, .ctas = 1, .order = {1, 0}};
    says(b, kl_layout_block(SHAPE(2, 1024), &how),
         "[2][1024] reg j0 j1 j9 i0 | lane j2 j3 j4 j5 j6 | warp j7 | cta j8");
    how.ctas_first = true;
    says(b, kl_layout_block(SHAPE(2, 1024), &how),
         "[2][1024] reg j0 j1 j9 i0 | lane j2 j3 j4 j5 j6 | warp j8 | cta j7");
    how = (kl_blocking){.vec = 2, .warps = 3, .ctas = 2, .ctas_first = true};
    says(b, kl_layout_block(SHAPE(65000), &how),
         "[65000] reg i0 i1 i12 i13 i14 i15 | lane i2 i3 i4 i5 i6 | warp i9 i10 i11 | cta i7 i8");
    says(b, kl_layout_block(SHAPE(200), &how),
         "[200] reg i0 i1 | lane i2 i3 i4 i5 i6 | warp 0 0 0 | cta i7 0");
    assert_true(kl_layout_blocked(SHAPE(1 << 20, 1 << 12), 2, 2, 1).bad);
    assert_true(kl_layout_blocked(SHAPE(1 << 27), 2, 5, 0).bad);
    assert_true(kl_layout_blocked(SHAPE(0), 2, 5, 0).bad);
    kl_blocking twice = {.order = {1, 1}};
    assert_true(kl_layout_block(SHAPE(2, 2), &twice).bad);
    box_free(b);
}

/* The same with CTAs, above the warps or below them. */
static void cta_order(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 400; round++) {
        uint32_t dim[4], rank = random_shape(dim, 14);
        kl_blocking how = {.vec = (uint8_t)rnd(3), .warps = (uint8_t)rnd(4), .ctas = (uint8_t)rnd(5),
                           .ctas_first = rnd(2)};
        for (uint32_t d = 0; d < rank; d++)
            how.order[d] = (uint8_t)(rank - 1 - d);
        kl_layout l = kl_layout_block(rank, dim, &how);
        if (l.bad || !rank)
            continue;
        assert_int_equal(kl_layout_ncta(&l), 1u << how.ctas);
        uint32_t vec = how.vec < l.log2[rank - 1] ? how.vec : l.log2[rank - 1];
        for (uint32_t i = 0; i < kl_layout_total(&l); i++) { /* row-major, sizes rounded up */
            uint32_t y[4], at = i >> vec, first = how.ctas_first ? how.ctas : how.warps;
            uint32_t second = how.ctas_first ? how.warps : how.ctas;
            uint32_t lane = at & 31, a = at >> 5 & ((1u << first) - 1);
            uint32_t b = at >> (5 + first) & ((1u << second) - 1);
            uint32_t reg = at >> (5 + first + second) << vec | (i & ((1u << vec) - 1));
            kl_layout_coords(&l, kl_place(reg, lane, how.ctas_first ? b : a, how.ctas_first ? a : b), y);
            assert_int_equal(kl_coord_pack(&l, y), i);
        }
    }
}

/* The order that the constructor promises, counted out: the i-th element along the fast axis, then
 * the others, lies at the i-th place of (vector, lanes, warps, further registers). */
static void blocked_order(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 400; round++) {
        uint32_t dim[4], rank = random_shape(dim, 12), vec = rnd(4), warps = rnd(5);
        uint32_t fast = rank ? rnd(rank) : 0, order[4] = {fast}, n = 1;
        kl_layout l = kl_layout_blocked(rank, dim, vec, warps, fast);
        if (l.bad || !rank)
            continue;
        for (uint32_t d = rank; d-- > 0;)
            if (d != fast)
                order[n++] = d;
        if (vec > l.log2[fast])
            vec = l.log2[fast];
        for (uint32_t i = 0; i < kl_layout_total(&l); i++) {
            uint32_t x[4] = {0}, rest = i, y[4] = {0};
            for (uint32_t k = 0; k < rank; k++) {
                x[order[k]] = rest & ((1u << l.log2[order[k]]) - 1);
                rest >>= l.log2[order[k]];
            }
            uint32_t thread = i >> vec & ((32u << warps) - 1);
            uint32_t reg = (i & ((1u << vec) - 1)) | i >> (vec + 5 + warps) << vec;
            bool live = kl_layout_coords(&l, kl_place(reg, thread & 31, thread >> 5, 0), y);
            for (uint32_t d = 0; d < rank; d++)
                assert_int_equal(x[d], y[d]);
            bool want = true;
            for (uint32_t d = 0; d < rank; d++)
                want &= x[d] < dim[d];
            assert_int_equal(live, want);
        }
    }
}

/* Fragments of mma.m16n8k16, from the formulas of the PTX manual. */
static void fragments(void **state)
{
    (void)state;
    static const kl_run acc[] = {
        {KL_IN_REG, 1, 1}, {KL_IN_LANE, 1, 2}, {KL_IN_LANE, 0, 3}, {KL_IN_REG, 0, 1}};
    static const kl_run opa[] = {{KL_IN_REG, 1, 1},
                                 {KL_IN_LANE, 1, 2},
                                 {KL_IN_LANE, 0, 3},
                                 {KL_IN_REG, 0, 1},
                                 {KL_IN_REG, 1, 1}};
    static const kl_run opb[] = {
        {KL_IN_REG, 0, 1}, {KL_IN_LANE, 0, 2}, {KL_IN_LANE, 1, 3}, {KL_IN_REG, 0, 1}};
    kl_layout c = kl_layout_runs(SHAPE(16, 8), acc, 4, 0, 0);
    kl_layout a = kl_layout_runs(SHAPE(16, 16), opa, 5, 0, 0);
    kl_layout b = kl_layout_runs(SHAPE(16, 8), opb, 4, 0, 0);
    for (uint32_t lane = 0; lane < 32; lane++)
        for (uint32_t i = 0; i < 8; i++) {
            uint32_t group = lane >> 2, in = lane & 3, x[4];
            if (i < 4) {
                kl_layout_coords(&c, kl_place(i, lane, 0, 0), x);
                assert_int_equal(x[0], i < 2 ? group : group + 8);
                assert_int_equal(x[1], in * 2 + (i & 1));
                kl_layout_coords(&b, kl_place(i, lane, 0, 0), x);
                assert_int_equal(x[0], in * 2 + (i & 1) + (i >= 2 ? 8 : 0));
                assert_int_equal(x[1], group);
            }
            kl_layout_coords(&a, kl_place(i, lane, 0, 0), x);
            assert_int_equal(x[0], i < 2 || (i >= 4 && i < 6) ? group : group + 8);
            assert_int_equal(x[1], in * 2 + (i & 1) + (i >= 4 ? 8 : 0));
        }
    assert_int_equal(kl_layout_nreg(&a), 8);
    assert_true(kl_layout_is_unit(&a) && kl_layout_is_injective(&a));
    /* A 64 x 32 tile of them on four warps; the last axis's rest lies in registers. */
    kl_run tile[6] = {{KL_IN_WARP, 0, 2}};
    memcpy(tile, acc, sizeof acc);
    tile[4] = (kl_run){KL_IN_WARP, 0, 2};
    kl_layout t = kl_layout_runs(SHAPE(64, 32), tile, 5, 2, 0);
    struct box *x = box_new();
    assert_string_equal(text_of(x, &t),
                        "[64][32] reg j0 i3 j3 j4 | lane j1 j2 i0 i1 i2 | warp i4 i5");
    box_free(x);
    static const kl_run wrong[] = {{KL_IN_LANE, 2, 1}}, many[] = {{KL_IN_LANE, 0, 6}};
    assert_true(kl_layout_runs(SHAPE(64, 32), wrong, 1, 0, 0).bad);
    assert_true(kl_layout_runs(SHAPE(64, 32), many, 1, 0, 0).bad);
}

/* ---- relabelling ---- */

/* Row-major number of an element. */
static uint64_t flat(const kl_layout *l, const uint32_t *x)
{
    uint64_t n = 0;
    for (uint32_t d = 0; d < l->rank; d++)
        n = n * l->dim[d] + x[d];
    return n;
}

static bool can_reshape(uint32_t r, const uint32_t *a, uint32_t s, const uint32_t *b)
{
    /* Linear if the map of row-major numbers agrees on every element and on every dead place:
     * tried by brute force on coordinate words. */
    kl_layout x = kl_layout_runs(r, a, NULL, 0, 0, 0), y = kl_layout_runs(s, b, NULL, 0, 0, 0);
    if (kl_layout_coord_bits(&x) != kl_layout_coord_bits(&y))
        return false;
    for (uint32_t c = 0; c < kl_layout_total(&x); c++) {
        uint32_t p[4], q[4];
        for (uint32_t d = 0; d < r; d++)
            p[d] = kl_coord_axis(&x, c, d);
        for (uint32_t d = 0; d < s; d++)
            q[d] = kl_coord_axis(&y, c, d);
        bool live = kl_coord_live(&x, c);
        if (live != kl_coord_live(&y, c) || (live && flat(&x, p) != flat(&y, q)))
            return false;
    }
    return true;
}

static void reshape(void **state)
{
    (void)state;
    uint32_t linear = 0, not_linear = 0;
    for (uint32_t round = 0; round < 4 * ROUNDS; round++) {
        /* Two random factorings of one number. */
        static const uint32_t nums[] = {1,  6,   8,   12,  24,  60,   64,
                                        96, 100, 128, 240, 256, 1000, 1024};
        uint32_t n = nums[rnd(sizeof nums / sizeof *nums)], dim[2][4], rank[2];
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t rest = n;
            rank[k] = n == 1 ? rnd(5) : 1 + rnd(4);
            for (uint32_t d = 0; d < rank[k]; d++) {
                uint32_t f = d + 1 == rank[k] ? rest : 1 + rnd(rest);
                while (rest % f)
                    f--;
                dim[k][d] = f;
                rest /= f;
            }
        }
        kl_layout l = random_layout(rank[0], dim[0], rnd(3), 0, rnd(2), false), r;
        if (l.bad)
            continue;
        bool ok = kl_layout_reshape(&l, rank[1], dim[1], &r);
        assert_int_equal(ok, can_reshape(rank[0], dim[0], rank[1], dim[1]));
        linear += ok;
        not_linear += !ok;
        for (uint32_t p = 0, m = kl_layout_places(&l); ok;) {
            uint32_t x[4], y[4];
            bool live = kl_layout_coords(&l, p, x);
            assert_int_equal(kl_layout_coords(&r, p, y), live);
            if (live)
                assert_int_equal(flat(&l, x), flat(&r, y));
            if (!next_place(&p, m))
                break;
        }
    }
    assert_true(linear > 100 && not_linear > 100);
    kl_layout l = kl_layout_blocked(SHAPE(5, 6), 0, 0, 1), keep = l;
    assert_false(kl_layout_reshape(&l, 1, (uint32_t[]){30}, &l));
    assert_true(kl_layout_eq(&l, &keep));
    assert_false(kl_layout_reshape(&l, 1, (uint32_t[]){31}, &l));
}

static void relabelled(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t dim[4], rank = random_shape(dim, 11), x[4], y[4], kept, by;
        kl_layout l = random_layout(rank, dim, rnd(5), rnd(2), rnd(2), false);
        if (l.bad || !rank)
            continue;
        uint32_t perm[4] = {0, 1, 2, 3}, axis = rnd(rank), m = kl_layout_places(&l);
        for (uint32_t i = rank; i > 1; i--) {
            uint32_t k = rnd(i), t = perm[k];
            perm[k] = perm[i - 1];
            perm[i - 1] = t;
        }
        kl_layout t = kl_layout_permute(&l, perm), s = kl_layout_slice(&l, axis);
        kl_layout c = kl_layout_trim(&s, &kept);
        bool flips = kl_layout_flip(&l, axis, &by);
        assert_int_equal(flips, (dim[axis] & (dim[axis] - 1)) == 0);
        uint32_t n = 1 + rnd(9);
        kl_layout e = kl_layout_expand(&s, axis, n, false), w = kl_layout_expand(&s, axis, n, true);
        assert_int_equal(s.dim[axis], 1);
        for (uint32_t p = 0;;) {
            bool live = kl_layout_coords(&l, p, x);
            assert_int_equal(kl_layout_coords(&t, p, y), live);
            for (uint32_t d = 0; d < rank; d++)
                assert_int_equal(y[d], x[perm[d]]);
            bool slive = kl_layout_coords(&s, p, y);
            assert_true(slive || !live);
            for (uint32_t d = 0; d < rank; d++)
                assert_int_equal(y[d], d == axis ? 0 : x[d]);
            if (flips) {
                assert_int_equal(kl_layout_coords(&l, p ^ by, y), live);
                for (uint32_t d = 0; d < rank; d++)
                    assert_int_equal(y[d], d == axis ? dim[d] - 1 - x[d] : x[d]);
            }
            if (!next_place(&p, m))
                break;
        }
        for (uint32_t p = 0;;) {
            uint32_t q = (p & ~0xffffu) | kl_deposit(kl_place_reg(p), kept);
            assert_int_equal(kl_layout_at(&c, p), kl_layout_at(&s, q));
            if (!next_place(&p, kl_layout_places(&c)))
                break;
        }
        for (uint32_t k = 0; k < 2; k++) {
            const kl_layout *v = k ? &w : &e;
            if (v->bad)
                continue;
            bool all = kl_layout_is_surjective(v);
            assert_true(all);
            assert_int_equal(v->dim[axis], n);
            for (uint32_t p = 0;;) {
                kl_layout_coords(v, p, y);
                kl_layout_coords(&s, p & m, x);
                for (uint32_t d = 0; d < rank; d++)
                    if (d != axis)
                        assert_int_equal(x[d], y[d]);
                if (!next_place(&p, kl_layout_places(v)))
                    break;
            }
        }
    }
}

/* ---- algebra ---- */

static void inverses(void **state)
{
    (void)state;
    uint32_t holes = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t dim[4], rank = random_shape(dim, 10);
        kl_layout l = random_layout(rank, dim, rnd(5), rnd(2), rnd(2), rnd(2));
        if (l.bad)
            continue;
        uint32_t m = kl_layout_places(&l), bits = kl_layout_coord_bits(&l), covered = 0;
        static uint32_t first[1 << 12], times[1 << 12];
        memset(times, 0, sizeof times);
        uint32_t copies = kl_layout_replicas(&l);
        for (uint32_t p = 0;;) {
            uint32_t c = kl_layout_at(&l, p);
            if (!times[c]++)
                covered++;
            if (!(p & copies)) { /* canonical: once for each element */
                first[c] = p;
                times[c] += 1u << 24;
            }
            if (!next_place(&p, m))
                break;
        }
        bool once = true;
        for (uint32_t c = 0; c < 1u << bits; c++) {
            assert_true(!times[c] || times[c] >> 24 == 1);
            once &= (times[c] & 0xffffff) <= 1;
        }
        assert_int_equal(kl_layout_is_injective(&l), once);
        assert_int_equal(kl_layout_is_surjective(&l), covered == 1u << bits);
        assert_int_equal(1u << kl_layout_rank(&l), covered);
        kl_lin inv;
        bool ok = kl_layout_inverse(&l, &inv);
        assert_int_equal(ok, covered == 1u << bits);
        holes += !ok;
        for (uint32_t c = 0; ok && c < 1u << bits; c++)
            assert_int_equal(kl_lin_at(&inv, c), first[c]);
        /* place bits by name */
        for (uint32_t d = 0; d < rank; d++) {
            for (uint32_t k = 0; k < l.log2[d]; k++) {
                int at = kl_layout_find_bit(&l, d, k);
                if (at >= 0)
                    assert_int_equal(kl_layout_at(&l, 1u << at), 1u << (l.off[d] + k));
                else if (kl_layout_is_unit(&l))
                    assert_false(ok);
            }
            uint32_t v = kl_layout_vec(&l, d), x[4], y[4];
            for (uint32_t r = 0; r < kl_layout_nreg(&l); r++) {
                kl_layout_coords(&l, kl_place(r, 0, 0, 0), x);
                kl_layout_coords(&l, kl_place(r >> v << v, 0, 0, 0), y);
                assert_int_equal(x[d], y[d] ^ (r & ((1u << v) - 1)));
            }
        }
        assert_int_equal(kl_layout_threads_places(&l), 1ull << __builtin_popcount(m));
    }
    assert_true(holes > 50);
}

static void sizes(void **state)
{
    (void)state;
    kl_layout l = kl_layout_blocked(SHAPE(5, 5, 5), 0, 2, 2);
    assert_int_equal(kl_layout_live(&l), 125);
    assert_int_equal(kl_layout_total(&l), 512);
    assert_int_equal(kl_layout_threads_places(&l), 512);
    kl_layout m = kl_layout_blocked(SHAPE(5, 5, 5), 0, 2, 1);
    assert_true(kl_layout_same_shape(&l, &m));
    assert_false(kl_layout_eq(&l, &m));
    assert_true(kl_layout_eq(&l, &l));
    assert_int_equal(kl_bit_where(kl_place_bit(KL_IN_WARP, 2)), KL_IN_WARP);
    uint32_t p = kl_place(77, 21, 13, 9), x[4] = {4, 3, 2};
    assert_int_equal(kl_place_reg(p), 77);
    assert_int_equal(kl_place_lane(p), 21);
    assert_int_equal(kl_place_warp(p), 13);
    assert_int_equal(kl_place_cta(p), 9);
    assert_int_equal(kl_coord_pack(&l, x), 4 << 6 | 3 << 3 | 2);
}

/* ---- dead places ---- */

static void bounds(void **state)
{
    (void)state;
    uint32_t seen[3] = {0};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t dim[4], rank = random_shape(dim, 11);
        bool mix = rnd(3) == 0;
        kl_layout l = random_layout(rank, dim, rnd(5), rnd(2), mix, false);
        if (l.bad)
            continue;
        uint32_t threads = kl_layout_places(&l) & ~0xffffu;
        for (uint32_t r = 0; r < kl_layout_nreg(&l); r++) {
            kl_reg_bound b = kl_layout_bound(&l, r);
            uint32_t live = 0, dead = 0, in[4] = {0}, out[4] = {0};
            for (uint32_t p = 0;;) {
                uint32_t x[4], base[4];
                bool is = kl_layout_coords(&l, p | r, x), by_bound = true;
                kl_layout_coords(&l, p, base);
                for (uint32_t d = 0; d < rank; d++) {
                    assert_int_equal((base[d] ^ b.flip[d]) + b.add[d], x[d]);
                    bool inside = b.flip[d] ? (base[d] ^ b.flip[d]) + b.add[d] < dim[d]
                                            : base[d] < b.bound[d];
                    by_bound &= inside;
                    in[d] += inside;
                    out[d] += !inside;
                }
                assert_int_equal(by_bound, is);
                live += is;
                dead += !is;
                if (!next_place(&p, threads))
                    break;
            }
            for (uint32_t d = 0; d < rank; d++)
                assert_int_equal(b.axis[d], !out[d] ? KL_LIVE : !in[d] ? KL_DEAD : KL_DEPENDS);
            /* Axes that hang together may leave nothing without either saying so. */
            if (!mix || b.all != KL_DEPENDS)
                assert_int_equal(b.all, !dead ? KL_LIVE : !live ? KL_DEAD : KL_DEPENDS);
            seen[b.all]++;
        }
    }
    assert_true(seen[KL_DEAD] && seen[KL_LIVE] && seen[KL_DEPENDS]);
}

/* ---- counting ---- */

static uint64_t sectors(uint32_t bytes, uint64_t base, uint64_t stride, uint64_t *ideal)
{
    uint64_t a[32];
    for (uint32_t i = 0; i < 32; i++)
        a[i] = base + i * stride;
    kl_count c = kl_sectors(a, 0xffffffffu, bytes);
    if (ideal)
        *ideal = c.ideal;
    return c.units;
}

static void golden_sectors(void **state)
{
    (void)state;
    uint64_t ideal;
    assert_int_equal(sectors(4, 256, 4, &ideal), 4);
    assert_int_equal(ideal, 4);
    assert_int_equal(sectors(4, 256, 8, NULL), 8);
    assert_int_equal(sectors(4, 256, 16, NULL), 16);
    assert_int_equal(sectors(4, 256, 32, NULL), 32);
    assert_int_equal(sectors(4, 256, 4096, NULL), 32);
    assert_int_equal(sectors(4, 260, 4, NULL), 5);
    assert_int_equal(sectors(8, 256, 8, NULL), 8);
    assert_int_equal(sectors(16, 256, 16, &ideal), 16);
    assert_int_equal(ideal, 16);
    assert_int_equal(sectors(2, 256, 2, &ideal), 2);
    assert_int_equal(ideal, 2);
    assert_int_equal(sectors(2, 256, 32, NULL), 32);
    assert_int_equal(sectors(4, 256, 0, NULL), 1);
    uint64_t none[32] = {0};
    assert_int_equal(kl_sectors(none, 0, 4).requests, 0);
}

static uint32_t waves(uint32_t bytes, uint32_t stride, uint32_t swizzle)
{
    uint32_t a[32];
    for (uint32_t i = 0; i < 32; i++)
        a[i] = i * stride ^ (swizzle ? i % 8 * 16 : 0);
    return (uint32_t)kl_wavefronts(a, 0xffffffffu, bytes).units;
}

static void golden_waves(void **state)
{
    (void)state;
    assert_int_equal(waves(4, 4, 0), 1);
    assert_int_equal(waves(4, 4 * 32, 0), 32);
    assert_int_equal(waves(4, 4 * 33, 0), 1);
    assert_int_equal(waves(4, 4 * 34, 0), 2);
    assert_int_equal(waves(4, 4 * 36, 0), 4);
    assert_int_equal(waves(4, 4 * 40, 0), 8);
    for (uint32_t s = 1; s <= 64; s++) {
        uint32_t a = s, b = 32;
        while (b) {
            uint32_t t = a % b;
            a = b;
            b = t;
        }
        assert_int_equal(waves(4, 4 * s, 0), a);
    }
    assert_int_equal(waves(8, 8, 0), 2);
    assert_int_equal(waves(16, 16, 0), 4);
    assert_int_equal(waves(16, 128, 0), 32);
    assert_int_equal(waves(16, 128, 1), 4);
    assert_int_equal(waves(4, 0, 0), 1);
    assert_int_equal(waves(2, 2, 0), 1);
    assert_int_equal(waves(1, 1, 0), 1);
}

/* Both counts by marking bytes, for random addresses and masks. */
static void random_counts(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t bytes = 1u << rnd(5), active = rnd(2) ? 0xffffffffu : rnd(0x7fffffff) * 2u;
        uint32_t addr[32], kind = rnd(3), want = 0, group = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
        uint64_t wide[32];
        for (uint32_t i = 0; i < 32; i++) {
            addr[i] = (kind == 0 ? rnd(4096) : kind == 1 ? i * 36 : rnd(64)) & ~(bytes - 1);
            wide[i] = addr[i];
        }
        for (uint32_t g = 0; g < 32; g += group) {
            uint8_t word[1024 + 8] = {0};
            uint32_t most = 0, n[32] = {0};
            for (uint32_t i = g; i < g + group; i++)
                for (uint32_t b = 0; b < bytes; b++)
                    if (active >> i & 1)
                        word[(addr[i] + b) / 4] = 1;
            for (uint32_t w = 0; w < sizeof word; w++)
                if (word[w] && ++n[w % 32] > most)
                    most = n[w % 32];
            want += most;
        }
        assert_int_equal(kl_wavefronts(addr, active, bytes).units, want);
        uint16_t sector[256] = {0};
        want = 0;
        for (uint32_t i = 0; i < 32; i++)
            for (uint32_t b = 0; b < bytes; b++)
                if (active >> i & 1 && !sector[(addr[i] + b) / 32]++)
                    want++;
        assert_int_equal(kl_sectors(wide, active, bytes).units, want);
    }
}

/* Sectors of a whole tile: each register, warp and CTA in turn, with lists of sectors. */
static void tile_sectors(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 300; round++) {
        uint32_t dim[4], rank = random_shape(dim, 10), bytes = 1u << rnd(4), most, worst = 0;
        kl_layout l = random_layout(rank, dim, rnd(3), rnd(2), rnd(2), false);
        int64_t stride[4] = {0}, run = bytes;
        bool once = rnd(2);
        if (l.bad)
            continue;
        for (uint32_t d = rank; d-- > 0;) {
            stride[d] = run;
            run *= dim[d] + rnd(3);
        }
        uint32_t vec = rank ? kl_layout_vec(&l, rank - 1) : 0;
        while (vec && bytes << vec > 16)
            vec--;
        uint64_t base = 4096 + rnd(2) * 16, requests = 0, units = 0, ideal = 0;
        uint32_t copies = once ? kl_layout_replicas(&l) : 0;
        uint32_t mask = kl_layout_places(&l) & ~kl_place((1u << vec) - 1, 31, 0, 0);
        for (uint32_t p = 0;;) {
            uint64_t list[64];
            uint32_t n = 0, lanes = 0;
            for (uint32_t i = 0; i < 32; i++) {
                uint32_t x[4], q = p | kl_place(0, i, 0, 0);
                if (!kl_layout_coords(&l, q, x) || q & copies)
                    continue;
                lanes++;
                uint64_t a = base;
                for (uint32_t d = 0; d < rank; d++)
                    a += (uint64_t)stride[d] * x[d];
                for (uint32_t b = 0; b < bytes << vec; b++) {
                    uint32_t k = 0;
                    while (k < n && list[k] != (a + b) / 32)
                        k++;
                    if (k == n)
                        list[n++] = (a + b) / 32;
                }
            }
            requests += lanes != 0;
            units += n;
            worst = n > worst ? n : worst;
            ideal += (lanes * (bytes << vec) + 31) / 32;
            if (!next_place(&p, mask))
                break;
        }
        kl_count c = kl_layout_sectors(&l, base, stride, bytes, vec, once, &most);
        assert_int_equal(c.requests, requests);
        assert_int_equal(c.units, units);
        assert_int_equal(c.ideal, ideal);
        assert_int_equal(most, worst);
    }
    /* 8192 floats of a row, 16 bytes a lane: 16 sectors each; a column of them: 32. */
    kl_layout row = kl_layout_blocked(SHAPE(8192), 2, 3, 0), col;
    kl_count c = kl_layout_sectors(&row, 0, (int64_t[]){4}, 4, 2, false, NULL);
    assert_int_equal(c.requests, 64);
    assert_int_equal(c.units, 16 * 64);
    col = kl_layout_blocked(SHAPE(8192), 0, 3, 0);
    c = kl_layout_sectors(&col, 0, (int64_t[]){16384}, 4, 0, false, NULL);
    assert_int_equal(c.units, 32 * c.requests);
    assert_int_equal(c.ideal, 4 * c.requests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_maps),    cmocka_unit_test(linear_terms),
        cmocka_unit_test(blocked),        cmocka_unit_test(blocked_order), cmocka_unit_test(cta_order),
        cmocka_unit_test(fragments),      cmocka_unit_test(reshape),
        cmocka_unit_test(relabelled),     cmocka_unit_test(inverses),
        cmocka_unit_test(sizes),          cmocka_unit_test(bounds),
        cmocka_unit_test(golden_sectors), cmocka_unit_test(golden_waves),
        cmocka_unit_test(random_counts),  cmocka_unit_test(tile_sectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
