/* test_interp_run.c - memory, control flow, programs and findings of the interpreter. */
#include "interp_box.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* ---- memory ---- */

static int64_t edge_start(int64_t ext)
{
    static const int64_t far[] = {INT64_MIN, INT64_MAX, INT64_MAX - 3, INT64_MIN + 2, -1000, 1000};
    if (below(12) == 0)
        return far[below(6)];
    return (int64_t)below((uint64_t)(ext < 0 ? 0 : ext) + 9) - 4;
}

static int64_t edge_step(void)
{
    static const int64_t far[] = {INT64_MAX, INT64_MIN, INT64_MAX / 2, -7, INT64_C(1) << 62};
    if (below(10) == 0)
        return far[below(5)];
    return below(3) ? 1 : (int64_t)below(3) + 1 - (below(2) ? 4 : 0);
}

/* One access of a random view, element by element in 128 bits.  tile: the array is a tile. */
struct acc {
    uint32_t ndim, rank;
    int64_t ext[4], str[4], off, start[4], step[4];
    uint32_t count[4];
    struct kl_type tile;
};

/* The offset of an element, or false if it is outside the extents.  Wraps in 64 bits. */
static bool element(const struct acc *c, uint64_t lane, int64_t *off)
{
    uint64_t at[4] = {0}, o = (uint64_t)c->off;
    uint32_t axis = 0;
    bool in = true;
    unravel(&c->tile, lane, at);
    for (uint32_t d = 0; d < c->ndim; d++) {
        uint64_t i = (uint64_t)c->start[d];
        if (c->step[d])
            i += at[axis++] * (uint64_t)c->step[d];
        if (c->ext[d] != INT64_MAX)
            in &= i < (uint64_t)(c->ext[d] < 0 ? 0 : c->ext[d]);
        o += i * (uint64_t)c->str[d];
    }
    *off = (int64_t)o;
    return in;
}

static struct acc random_access(enum kl_elem e, bool of_tile)
{
    struct acc c = {.ndim = 1 + (uint32_t)below(4), .off = (int64_t)below(60) - 5};
    int64_t dense = 1;
    c.tile.kind = KL_T_TILE;
    c.tile.elem = (uint8_t)e;
    for (uint32_t d = c.ndim; d-- > 0;) {
        c.ext[d] = (int64_t)below(7) + 1;
        c.str[d] = dense;
        dense *= c.ext[d];
        if (!of_tile) {
            if (below(4) == 0)
                c.str[d] = (int64_t)below(9) - 4;
            if (below(12) == 0)
                c.ext[d] = below(2) ? -(int64_t)below(4) : INT64_MAX;
            if (below(40) == 0)
                c.str[d] = (int64_t)rnd();
        }
        c.step[d] = below(3) ? edge_step() : 0;
        c.start[d] = edge_start(c.ext[d] == INT64_MAX ? 8 : c.ext[d]);
    }
    if (of_tile)
        c.off = 0;
    for (uint32_t d = 0; d < c.ndim; d++)
        if (c.step[d])
            c.tile.dim[c.tile.rank++] = below(5) ? 1 + (uint32_t)below(7) : 1;
    return c;
}

static kl_val access_op(struct box *x, enum kl_op op, const struct acc *c, kl_val base,
                        const kl_val *more, uint32_t nmore, unsigned flags)
{
    kl_val args[16] = {base};
    uint32_t n = 1;
    for (uint32_t d = 0; d < c->ndim; d++)
        args[n++] = kl_cst_i64(&x->b, c->start[d]);
    for (uint32_t i = 0; i < nmore; i++)
        args[n++] = more[i];
    kl_typ t = {0};
    if (op != KL_OP_store)
        t = kl_tile(x->f, op == KL_OP_inside ? KL_bool : (enum kl_elem)c->tile.elem, c->tile.rank,
                    c->tile.dim);
    return kl_emit(&x->b, op, t, args, n, access_attr(x, c->step, c->ndim, flags));
}

enum { ARENA = 400, GUARD_N = 64 }; /* elements of the array; and around it */

static void one_access(enum kl_elem e)
{
    struct box x;
    struct acc c = random_access(e, false);
    uint32_t w = kl_elems[e].bytes;
    uint64_t n = kl_numel(&c.tile);
    static char a[(ARENA + 2 * GUARD_N) * 8 + 1], was[sizeof a], want[sizeof a];
    static char fill[4096 * 8], val[4096 * 8], got[4096 * 8], mask[4096], in[4096];
    unsigned flags = (unsigned)below(4);
    char *base = a + GUARD_N * w + below(2); /* not aligned in half of the cases */
    for (size_t i = 0; i < sizeof a; i++)
        a[i] = (char)rnd();
    for (uint64_t i = 0; i < n; i++) {
        kl_elem_store(e, fill + i * w, kl_canon(e, rnd()));
        kl_elem_store(e, val + i * w, kl_canon(e, rnd()));
        mask[i] = (char)below(2);
    }
    memcpy(was, a, sizeof a);
    box_fn(&x);
    kl_val view[8] = {array(&x, 0, e, base, ARENA)};
    kl_val vfill = get(&x, array(&x, 1, e, fill, n), c.tile.rank, c.tile.dim);
    kl_val vval = get(&x, array(&x, 2, e, val, n), c.tile.rank, c.tile.dim);
    kl_val vmask = get(&x, array(&x, 3, KL_bool, mask, n), c.tile.rank, c.tile.dim);
    kl_val vgot = array(&x, 4, e, got, n), vin = array(&x, 5, KL_bool, in, n), args[16];
    int64_t shift = (int64_t)below(5) - 2; /* a view of a view */
    args[0] = view[0], args[1] = kl_cst_i64(&x.b, shift);
    for (uint32_t d = 0; d < c.ndim; d++) {
        args[2 + d] = kl_cst_i64(&x.b, 1);
        args[2 + c.ndim + d] = kl_cst_i64(&x.b, 1);
    }
    args[0] = kl_emit(&x.b, KL_OP_view, kl_array(x.f, e, c.ndim), args, 2 + 2 * c.ndim,
                      (union kl_attr){0});
    args[1] = kl_cst_i64(&x.b, c.off - shift);
    for (uint32_t d = 0; d < c.ndim; d++) {
        args[2 + d] = kl_cst_i64(&x.b, c.ext[d]);
        args[2 + c.ndim + d] = kl_cst_i64(&x.b, c.str[d]);
    }
    kl_val v = kl_emit(&x.b, KL_OP_view, kl_array(x.f, e, c.ndim), args, 2 + 2 * c.ndim,
                       (union kl_attr){0});
    kl_val more[2];
    uint32_t k = 0;
    if (flags & KL_ACC_FILL)
        more[k++] = vfill;
    if (flags & KL_ACC_MASK)
        more[k++] = vmask;
    kl_val loaded = access_op(&x, KL_OP_load, &c, v, more, k, flags);
    kl_val inside = access_op(&x, KL_OP_inside, &c, v, NULL, 0, 0);
    k = 0;
    more[k++] = vval;
    if (flags & KL_ACC_MASK)
        more[k++] = vmask;
    access_op(&x, KL_OP_store, &c, v, more, k, flags & KL_ACC_MASK);
    put(&x, vgot, loaded);
    put(&x, vin, inside);
    unsigned checks = (unsigned)below(2) * KILN_CHECK_BOUNDS;
    kiln_status st = run(&x, checks);
    assert_true(st == KILN_OK || (checks && st == KILN_E_BOUNDS));

    memcpy(want, was, sizeof was);
    bool finding = false;
    for (uint64_t i = 0; i < n; i++) {
        int64_t off;
        bool ok = element(&c, i, &off), there = off >= 0 && off < ARENA;
        bool on = !(flags & KL_ACC_MASK) || mask[i];
        uint64_t load = !ok || !on ? (flags & KL_ACC_FILL ? kl_elem_load(e, fill + i * w) : 0)
                        : there    ? kl_elem_load(e, was + (base - a) + off * w)
                                   : 0;
        assert_int_equal(in[i], ok);
        assert_int_equal(kl_elem_load(e, got + i * w), load);
        assert_true(e != KL_bool || (uint8_t)got[i] <= 1);
        if (ok && on && there)
            memcpy(want + (base - a) + off * w, val + i * w, w);
        finding |= ok && on && !there;
    }
    assert_memory_equal(a, want, sizeof a);
    if (finding && checks)
        assert_int_equal(st, KILN_E_BOUNDS);
    box_close(&x);
}

static void accesses(void **state)
{
    static const enum kl_elem es[] = {KL_bool, KL_f16, KL_f32, KL_i64};
    (void)state;
    for (int i = 0; i < 3000; i++)
        one_access(es[i & 3]);
}

/* Index tiles of both kinds: one of rank 1 beside sections, or all of the tile's shape.  For each
 * element its place by the definition; then a load, a store, and adding to what is there, which
 * sees the elements before it. */
static void one_index(enum kl_elem e)
{
    enum { SIZE = 5 };
    struct box x;
    struct kl_type t = {.kind = KL_T_TILE, .elem = (uint8_t)e};
    uint32_t ndim = 1 + (uint32_t)below(4), w = kl_elems[e].bytes, axis = 0;
    bool scattered = below(2), is_index[4] = {false};
    int64_t step[4] = {0}, start[4], ext[4], str[4], at = 1;
    uint32_t beside = (uint32_t)below(ndim);
    for (uint32_t d = ndim; d-- > 0; at *= SIZE) {
        ext[d] = SIZE, str[d] = at;
        start[d] = (int64_t)below(SIZE + 3) - 1;
    }
    for (uint32_t d = 0; d < ndim; d++) {
        is_index[d] = scattered ? d == beside || below(2) : d == beside;
        step[d] = scattered || is_index[d] ? 0 : (int64_t)below(3) - 1;
        if (!scattered && (is_index[d] || step[d]))
            t.dim[t.rank++] = 1 + (uint32_t)below(6);
    }
    if (scattered)
        for (t.rank = 1 + (uint8_t)below(3); axis < t.rank; axis++)
            t.dim[axis] = 1 + (uint32_t)below(4);
    uint64_t n = kl_numel(&t), total = (uint64_t)at;
    static char a[625 * 8], b[625 * 8], val[1296 * 8], got[1296 * 8], old[1296 * 8], mask[1296], in[1296];
    static int64_t index[4][1296];
    for (uint64_t i = 0; i < total; i++)
        kl_elem_store(e, a + i * w, kl_is_float(e) ? kl_convert(e, KL_i64, below(99)) : kl_canon(e, rnd()));
    memcpy(b, a, sizeof b);
    for (uint64_t i = 0; i < n; i++) {
        kl_elem_store(e, val + i * w, kl_is_float(e) ? kl_convert(e, KL_i64, below(99)) : kl_canon(e, rnd()));
        mask[i] = (char)below(2);
        for (uint32_t d = 0; d < 4; d++)
            index[d][i] = below(20) ? (int64_t)below(SIZE + 2) - 1 : (int64_t)rnd();
    }
    box_fn(&x);
    kl_val arr = array(&x, 0, e, a, total), args[16] = {kl_arg(x.f, arr, 0), kl_cst_i64(&x.b, 0)};
    for (uint32_t d = 0; d < ndim; d++) {
        args[2 + d] = kl_cst_i64(&x.b, ext[d]);
        args[2 + ndim + d] = kl_cst_i64(&x.b, str[d]);
    }
    kl_val vval = get(&x, array(&x, 1, e, val, n), t.rank, t.dim);
    kl_val vmask = get(&x, array(&x, 2, KL_bool, mask, n), t.rank, t.dim);
    kl_val vgot = array(&x, 3, e, got, n), vin = array(&x, 4, KL_bool, in, n);
    kl_val vold = array(&x, 5, e, old, n);
    args[0] = kl_emit(&x.b, KL_OP_view, kl_array(x.f, e, ndim), args, 2 + 2 * ndim, (union kl_attr){0});
    axis = 0;
    uint32_t used = 0, slot[4] = {0};
    for (uint32_t d = 0; d < ndim; d++) {
        uint32_t one = scattered ? 0 : t.dim[axis];
        axis += step[d] || is_index[d];
        if (!is_index[d]) {
            args[1 + d] = kl_cst_i64(&x.b, start[d]);
            continue;
        }
        slot[d] = used;
        if (used == 2) { /* as many as there are parameters left */
            args[1 + d] = args[1 + beside];
            slot[d] = slot[beside];
            continue;
        }
        kl_val p = array(&x, 6 + used, KL_i64, index[used], scattered ? n : one);
        args[1 + d] = get(&x, p, scattered ? t.rank : 1, scattered ? t.dim : &one);
        if (used == 0)
            beside = d;
        used++;
    }
    kl_typ type = kl_tile(x.f, e, t.rank, t.dim), truth = kl_tile(x.f, KL_bool, t.rank, t.dim);
    union kl_attr plain = access_attr(&x, step, ndim, 0), masked = access_attr(&x, step, ndim, KL_ACC_MASK);
    put(&x, vin, kl_emit(&x.b, KL_OP_inside, truth, args, 1 + ndim, plain));
    put(&x, vgot, kl_emit(&x.b, KL_OP_load, type, args, 1 + ndim, plain));
    args[1 + ndim] = vval, args[2 + ndim] = vmask;
    kl_emit(&x.b, KL_OP_store, (kl_typ){0}, args, 3 + ndim, masked);
    bool atomic = w >= 4;
    plain.access.how = KL_HOW(KL_RMW_add, KL_RELAXED, KL_SC_DEVICE);
    if (atomic)
        put(&x, vold, kl_emit(&x.b, KL_OP_atomic, type, args, 2 + ndim, plain));
    kiln_status st = run(&x, 0);
    assert_int_equal(st, KILN_OK);
    for (int round = 0; round < 3; round++)
        for (uint64_t i = 0; i < n; i++) {
            uint64_t c[4] = {0};
            int64_t off = 0;
            bool ok = true;
            unravel(&t, i, c);
            axis = 0;
            for (uint32_t d = 0; d < ndim; d++) {
                int64_t k = is_index[d] ? index[slot[d]][scattered ? i : c[axis]]
                                        : start[d] + (step[d] ? (int64_t)c[axis] * step[d] : 0);
                axis += step[d] || is_index[d];
                ok &= k >= 0 && k < ext[d];
                off += ok ? k * str[d] : 0;
            }
            char *p = b + off * w;
            uint64_t v = kl_elem_load(e, val + i * w), was = ok ? kl_elem_load(e, p) : 0;
            if (round == 0) {
                assert_int_equal(in[i], ok);
                assert_int_equal(kl_elem_load(e, got + i * w), was);
            } else if (round == 1 && ok && mask[i]) {
                kl_elem_store(e, p, v);
            } else if (round == 2 && atomic) {
                assert_int_equal(kl_elem_load(e, old + i * w), was);
                if (ok)
                    kl_elem_store(e, p,
                                  kl_is_float(e) ? kl_f32_bits(kl_bits_f32(was) + kl_bits_f32(v))
                                                 : kl_canon(e, was + v));
            }
        }
    assert_memory_equal(a, b, total * w);
    box_close(&x);
}

static void indices(void **state)
{
    static const enum kl_elem es[] = {KL_bool, KL_f16, KL_f32, KL_i64, KL_i32, KL_u32};
    (void)state;
    for (int i = 0; i < 3000; i++)
        one_index(es[i % 6]);
}

static void one_part(enum kl_elem e)
{
    struct box x;
    struct acc c = random_access(e, true);
    struct kl_type t = {.kind = KL_T_TILE, .elem = (uint8_t)e, .rank = (uint8_t)c.ndim};
    uint32_t w = kl_elems[e].bytes;
    for (uint32_t d = 0; d < c.ndim; d++)
        t.dim[d] = (uint32_t)c.ext[d];
    uint64_t n = kl_numel(&c.tile), nt = kl_numel(&t);
    static char a[4096 * 8], val[4096 * 8], got[4096 * 8], ins[4096 * 8];
    for (uint64_t i = 0; i < nt; i++)
        kl_elem_store(e, a + i * w, kl_canon(e, rnd()));
    for (uint64_t i = 0; i < n; i++)
        kl_elem_store(e, val + i * w, kl_canon(e, rnd()));
    box_fn(&x);
    kl_val whole = get(&x, array(&x, 0, e, a, nt), t.rank, t.dim);
    kl_val part = get(&x, array(&x, 1, e, val, n), c.tile.rank, c.tile.dim);
    kl_val vgot = array(&x, 2, e, got, n), vins = array(&x, 3, e, ins, nt), args[8] = {whole};
    put(&x, vgot, access_op(&x, KL_OP_extract, &c, whole, NULL, 0, 0));
    for (uint32_t d = 0; d < c.ndim; d++)
        args[1 + d] = kl_cst_i64(&x.b, c.start[d]);
    args[1 + c.ndim] = part;
    put(&x, vins,
        kl_emit(&x.b, KL_OP_insert, (kl_typ){0}, args, 2 + c.ndim,
                access_attr(&x, c.step, c.ndim, 0)));
    kiln_status st = run(&x, KILN_CHECK_ALL);
    bool outside = false;
    for (uint64_t i = 0; i < n; i++) {
        int64_t off;
        bool ok = element(&c, i, &off);
        uint64_t want = ok ? kl_elem_load(e, a + off * w) : 0;
        assert_int_equal(kl_elem_load(e, got + i * w), want);
        outside |= !ok;
    }
    for (uint64_t i = 0; i < n; i++) {
        int64_t off;
        if (element(&c, i, &off))
            memcpy(a + off * w, val + i * w, w);
    }
    assert_memory_equal(ins, a, nt * w);
    assert_int_equal(st, outside ? KILN_E_BOUNDS : KILN_OK);
    box_close(&x);
}

static void parts(void **state)
{
    static const enum kl_elem es[] = {KL_bool, KL_f16, KL_f32, KL_i64};
    (void)state;
    for (int i = 0; i < 2000; i++)
        one_part(es[i & 3]);
}

/* ---- control flow ---- */

static const char head_y[] = "fn t(%0: array<i64,1> y written, %1: i64 n) {\n"
                             "%z = const 0 : i64\n%o = const 1 : i64\n%k = const 8 : i64\n"
                             "%y = view %0, %z [%k] stride [%o] : array<i64,1>\n";

static void run_y(const char *body, int64_t n, int64_t y[8])
{
    struct box x;
    char text[4096];
    snprintf(text, sizeof text, "%s%s}\n", head_y, body);
    box_text(&x, text);
    for (int i = 0; i < 8; i++)
        y[i] = -1;
    mem(&x, 0, y, 8 * sizeof *y);
    x.slot[1].bits = (uint64_t)n;
    assert_int_equal(run(&x, KILN_CHECK_ALL), KILN_OK);
    box_close(&x);
}

static void control(void **state)
{
    int64_t y[8];
    (void)state;
    /* two carried values change places each time round */
    const char *swap = "%a, %b = for %z, %1, %o carry %o, %k (%i: i64, %p: i64, %q: i64) {\n"
                       "%t = add %q, %i : i64\nyield %t, %p\n}\n"
                       "store %y[%z], %a\nstore %y[%o], %b\n";
    for (int64_t n = -2; n < 9; n++) {
        int64_t p = 1, q = 8;
        for (int64_t i = 0; i < n; i++) {
            int64_t t = q + i;
            q = p, p = t;
        }
        run_y(swap, n, y);
        assert_true(y[0] == p && y[1] == q && y[2] == -1);
    }
    /* a pure exchange: each source is the other's destination */
    const char *exchange = "%a, %b = for %z, %1, %o carry %o, %k (%i: i64, %p: i64, %q: i64) {\n"
                           "yield %q, %p\n}\nstore %y[%z], %a\nstore %y[%o], %b\n";
    run_y(exchange, 3, y);
    assert_true(y[0] == 8 && y[1] == 1);
    /* Collatz: a loop with an if in it */
    const char *collatz =
        "%two = const 2 : i64\n%three = const 3 : i64\n"
        "%a, %c = while %1, %z (%p: i64, %q: i64) {\n%t = ne %p, %o : bool\nyield %t\n}\n"
        "do (%r: i64, %s: i64) {\n%m = rem %r, %two : i64\n%e = eq %m, %z : bool\n"
        "%next = if %e {\n%h = div %r, %two : i64\nyield %h\n}\n"
        "else {\n%u = mul %r, %three : i64\n%w = add %u, %o : i64\nyield %w\n}\n"
        "%inc = add %s, %o : i64\nyield %next, %inc\n}\n"
        "store %y[%z], %a\nstore %y[%o], %c\n";
    run_y(collatz, 27, y);
    assert_true(y[0] == 1 && y[1] == 111);
    run_y(collatz, 1, y);
    assert_true(y[0] == 1 && y[1] == 0);
    /* a narrow loop that ends at the top of its range */
    const char *narrow = "%lo = const 2147483645 : i32\n%hi = const 2147483647 : i32\n"
                         "%st = const 1 : i32\n"
                         "%a = for %lo, %hi, %st carry %z (%i: i32, %s: i64) {\n"
                         "%w = convert %i : i64\n%t = add %s, %w : i64\nyield %t\n}\n"
                         "store %y[%z], %a\n";
    run_y(narrow, 0, y);
    assert_true(y[0] == INT64_C(2147483645) + 2147483646);
    /* a tile carried through a loop under another shape */
    const char *tile = "%v = iota : i32[8]\n"
                       "%a = for %z, %1, %o carry %v (%i: i64, %t: i32[8]) {\n"
                       "%r = reshape %t : i32[2][4]\n%p = permute %r (1, 0) : i32[4][2]\n"
                       "%q = reshape %p : i32[8]\nyield %q\n}\n"
                       "%w = convert %a : i64[8]\nstore %y[%z:8], %w\n";
    run_y(tile, 1, y);
    assert_memory_equal(y, ((int64_t[]){0, 4, 1, 5, 2, 6, 3, 7}), 64);
    run_y(tile, 3, y);
    assert_memory_equal(y, ((int64_t[]){0, 1, 2, 3, 4, 5, 6, 7}), 64);
    run_y(tile, 2, y);
    assert_memory_equal(y, ((int64_t[]){0, 2, 4, 6, 1, 3, 5, 7}), 64);
}

/* Random nests of loops, ifs and arithmetic on scalars and small tiles, against an evaluator
 * that keeps every value apart: places that are shared too early show here. */
struct nest {
    struct box *x;
    kl_val v[64]; /* visible values */
    uint32_t n, made;
};

static kl_val pick(struct nest *g)
{
    return g->v[below(g->n)];
}

static kl_val element_of(struct box *x, kl_build *b, kl_val tile)
{
    int64_t step = 0;
    kl_val args[2] = {tile, kl_cst_i64(b, (int64_t)below(3))};
    return kl_emit(b, KL_OP_extract, kl_scalar(x->f, KL_i64), args, 2, access_attr(x, &step, 1, 0));
}

static void grow(struct nest *g, kl_build *b, uint32_t depth, uint32_t len)
{
    kl_fn *f = g->x->f;
    uint32_t dim = 3;
    kl_typ t = kl_tile(f, KL_i64, 1, &dim);
    for (uint32_t i = 0; i < len && g->n < 60; i++) {
        uint32_t kind = (uint32_t)below(depth ? 12 : 9);
        kl_val a = pick(g), c = pick(g), r;
        uint32_t keep = g->n;
        if (kind < 6) {
            r = kl_ew2(b, kind < 2 ? KL_OP_add : kind < 4 ? KL_OP_sub : KL_OP_mul, a, c);
        } else if (kind == 6) {
            r = kl_emit(b, KL_OP_flip, (kl_typ){0}, &a, 1, (union kl_attr){.index = 0});
        } else if (kind == 7) {
            uint32_t col[2] = {3, 1};
            r = kl_emit(b, KL_OP_reshape, kl_tile(f, KL_i64, 2, col), &a, 1, (union kl_attr){0});
            r = kl_emit(b, KL_OP_reshape, t, &r, 1, (union kl_attr){0});
        } else if (kind == 8) {
            r = kl_cst(b, t, below(100));
        } else if (kind == 9) { /* if */
            union kl_attr attr = {.blk = {kl_blk_new(f), kl_blk_new(f)}};
            kl_val s = element_of(g->x, b, a);
            kl_val cond = kl_ew2(b, KL_OP_lt, s, kl_cst_i64(b, (int64_t)below(200)));
            for (int k = 0; k < 2; k++) {
                kl_build in = {.f = f, .blk = attr.blk[k]};
                grow(g, &in, depth - 1, 1 + (uint32_t)below(5));
                kl_val y[2] = {pick(g), pick(g)};
                kl_emit(&in, KL_OP_yield, (kl_typ){0}, y, 2, (union kl_attr){0});
                g->n = keep;
            }
            kl_val op = kl_emit(b, KL_OP_if, (kl_typ){0}, &cond, 1, attr);
            r = kl_result(b, op, 0, t);
            g->v[g->n++] = kl_result(b, op, 1, t);
        } else { /* for */
            union kl_attr attr = {.loop = {.blk = kl_blk_new(f)}};
            kl_build in = {.f = f, .blk = attr.loop.blk};
            kl_block_param(&in, kl_scalar(f, KL_i64));
            g->v[g->n++] = kl_block_param(&in, t);
            g->v[g->n++] = kl_block_param(&in, t);
            grow(g, &in, depth - 1, 1 + (uint32_t)below(6));
            kl_val y[2] = {pick(g), pick(g)};
            kl_emit(&in, KL_OP_yield, (kl_typ){0}, y, 2, (union kl_attr){0});
            g->n = keep;
            kl_val three = kl_cst_i64(b, 3),
                   hi = kl_ew2(b, KL_OP_and, element_of(g->x, b, a), three);
            kl_val args[5] = {kl_cst_i64(b, 0), hi, kl_cst_i64(b, 1), a, c};
            kl_val op = kl_emit(b, KL_OP_for, (kl_typ){0}, args, 5, attr);
            r = kl_result(b, op, 0, t);
            g->v[g->n++] = kl_result(b, op, 1, t);
        }
        g->v[g->n++] = r;
    }
}

struct eval {
    const kl_fn *f;
    int64_t (*val)[3];
};

static void eval_block(struct eval *e, kl_blk blk)
{
    const kl_fn *f = e->f;
    kl_each_ins(f, blk, v) {
        const struct kl_ins *in = kl_in(f, v);
        int64_t *o = e->val[v.id];
        const int64_t *a = in->nargs > 0 ? e->val[kl_arg(f, v, 0).id] : NULL;
        const int64_t *b = in->nargs > 1 ? e->val[kl_arg(f, v, 1).id] : NULL;
        switch (in->op) {
        case KL_OP_add:
            for (int i = 0; i < 3; i++)
                o[i] = (int64_t)((uint64_t)a[i] + (uint64_t)b[i]);
            break;
        case KL_OP_sub:
            for (int i = 0; i < 3; i++)
                o[i] = (int64_t)((uint64_t)a[i] - (uint64_t)b[i]);
            break;
        case KL_OP_mul:
            for (int i = 0; i < 3; i++)
                o[i] = (int64_t)((uint64_t)a[i] * (uint64_t)b[i]);
            break;
        case KL_OP_and: o[0] = a[0] & b[0]; break;
        case KL_OP_lt: o[0] = a[0] < b[0]; break;
        case KL_OP_flip:
            for (int i = 0; i < 3; i++)
                o[i] = a[2 - i];
            break;
        case KL_OP_reshape: memcpy(o, a, sizeof *e->val); break;
        case KL_OP_const:
            for (int i = 0; i < 3; i++)
                o[i] = (int64_t)in->attr.bits;
            break;
        case KL_OP_extract: o[0] = a[b[0]]; break;
        case KL_OP_load: o[0] = 0; break;
        case KL_OP_if: {
            kl_blk taken = in->attr.blk[a[0] ? 0 : 1];
            eval_block(e, taken);
            kl_val y = kl_last(f, taken);
            memcpy(e->val[in->next], e->val[kl_arg(f, y, 0).id], sizeof *e->val);
            memcpy(e->val[f->ins[in->next].next], e->val[kl_arg(f, y, 1).id], sizeof *e->val);
            break;
        }
        case KL_OP_for: {
            kl_val p = {f->ins[f->blk[in->attr.loop.blk.id].first].next}, q = {kl_in(f, p)->next};
            int64_t next[2][3];
            memcpy(next[0], e->val[kl_arg(f, v, 3).id], sizeof next[0]);
            memcpy(next[1], e->val[kl_arg(f, v, 4).id], sizeof next[1]);
            for (int64_t i = a[0]; i < b[0]; i++) {
                memcpy(e->val[p.id], next[0], sizeof next[0]);
                memcpy(e->val[q.id], next[1], sizeof next[1]);
                eval_block(e, in->attr.loop.blk);
                kl_val y = kl_last(f, in->attr.loop.blk);
                memcpy(next[0], e->val[kl_arg(f, y, 0).id], sizeof next[0]);
                memcpy(next[1], e->val[kl_arg(f, y, 1).id], sizeof next[1]);
            }
            memcpy(e->val[in->next], next[0], sizeof next[0]);
            memcpy(e->val[f->ins[in->next].next], next[1], sizeof next[1]);
            break;
        }
        default: break;
        }
    }
}

static void nests(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++) {
        struct box x;
        int64_t out[64][3];
        uint32_t dim = 3;
        box_fn(&x);
        kl_val y = array(&x, 0, KL_i64, out, 64 * 3);
        struct nest g = {.x = &x};
        for (uint32_t i = 0; i < 3; i++)
            g.v[g.n++] = kl_cst(&x.b, kl_tile(x.f, KL_i64, 1, &dim), 10 + i);
        grow(&g, &x.b, 3, 14);
        for (uint32_t i = 0; i < g.n; i++) {
            int64_t one = 1;
            kl_val args[3] = {y, kl_cst_i64(&x.b, 3 * i), g.v[i]};
            kl_emit(&x.b, KL_OP_store, (kl_typ){0}, args, 3, access_attr(&x, &one, 1, 0));
        }
        x.l.grid[0] = 2; /* the second program finds what the first left in the places */
        assert_int_equal(run(&x, 0), KILN_OK);
        struct eval e = {x.f, calloc(x.f->nins, sizeof *e.val)};
        eval_block(&e, KL_BODY);
        for (uint32_t i = 0; i < g.n; i++)
            assert_memory_equal(out[i], e.val[g.v[i].id], sizeof out[i]);
        free(e.val);
        box_close(&x);
    }
}

/* ---- programs ---- */

static void programs(void **state)
{
    struct box x;
    int64_t y[24][7];
    (void)state;
    box_text(&x, "fn t(%0: array<i64,2> y written, %1: i64 n) {\n"
                 "%z = const 0 : i64\n%o = const 1 : i64\n%s = const 7 : i64\n"
                 "%two = const 2 : i64\n%three = const 3 : i64\n%four = const 4 : i64\n"
                 "%five = const 5 : i64\n%six = const 6 : i64\n"
                 "%y = view %0, %z [%1, %s] stride [%s, %o] : array<i64,2>\n"
                 "%a = program_id 0 : i64\n%b = program_id 1 : i64\n%c = program_id 2 : i64\n"
                 "%na = num_programs 0 : i64\n%nb = num_programs 1 : i64\n"
                 "%nc = num_programs 2 : i64\n%sms = num_sms : i64\n"
                 "%t = mul %c, %nb : i64\n%u = add %t, %b : i64\n%v = mul %u, %na : i64\n"
                 "%w = add %v, %a : i64\n"
                 "store %y[%w][%z], %a\nstore %y[%w][%o], %b\nstore %y[%w][%two], %c\n"
                 "store %y[%w][%three], %na\nstore %y[%w][%four], %nb\nstore %y[%w][%five], %nc\n"
                 "store %y[%w][%six], %sms\n}\n");
    mem(&x, 0, y, sizeof y);
    x.slot[1].bits = 24;
    memcpy(x.l.grid, ((int64_t[]){2, 3, 4}), sizeof x.l.grid);
    assert_int_equal(run(&x, KILN_CHECK_ALL), KILN_OK);
    for (int64_t i = 0; i < 24; i++)
        assert_memory_equal(y[i], ((int64_t[]){i % 2, i / 2 % 3, i / 6, 2, 3, 4, 7}), sizeof y[i]);
    memset(y, 0, sizeof y);
    assert_int_equal(kl_interp_range(x.f, &x.l, 7, 9, &x.env), KILN_OK);
    assert_memory_equal(y[6], ((int64_t[7]){0}), sizeof y[6]);
    assert_memory_equal(y[7], ((int64_t[]){1, 0, 1, 2, 3, 4, 7}), sizeof y[7]);
    assert_memory_equal(y[8], ((int64_t[]){0, 1, 1, 2, 3, 4, 7}), sizeof y[8]);
    assert_memory_equal(y[9], ((int64_t[7]){0}), sizeof y[9]);
    box_close(&x);
}

/* The run has denormals and rounding to nearest, whatever the caller has. */
static void environment(void **state)
{
    (void)state;
#if defined(__x86_64__)
    struct box x;
    float in[2] = {1e-40f, 0x1p-126f}, y[2];
    box_text(&x, "fn t(%0: array<f32,1> x, %1: array<f32,1> y written) {\n"
                 "%z = const 0 : i64\n%o = const 1 : i64\n%n = const 2 : i64\n"
                 "%x = view %0, %z [%n] stride [%o] : array<f32,1>\n"
                 "%y = view %1, %z [%n] stride [%o] : array<f32,1>\n"
                 "%v = load %x[%z:2] : f32[2]\n%h = const 0.5 : f32[2]\n%t = mul %v, %h : f32[2]\n"
                 "store %y[%z:2], %t\n}\n");
    mem(&x, 0, in, sizeof in);
    mem(&x, 1, y, sizeof y);
    unsigned was = _mm_getcsr();
    _mm_setcsr(was | 0x8040 | 0x6000); /* flush to zero, denormals are zero, round to zero */
    kiln_status st = kl_interp_run(x.f, &x.l, 0, x.d, &x.env, NULL, NULL);
    unsigned after = _mm_getcsr();
    _mm_setcsr(was);
    assert_int_equal(st, KILN_OK);
    assert_int_equal(after & 0xe040, 0xe040);
    assert_true(y[0] == in[0] / 2 && y[0] != 0 && y[1] == 0x1p-127f);
    box_close(&x);
#endif
}

static bool stop_after(void *user)
{
    return --*(int *)user > 0;
}

static void interrupted(void **state)
{
    struct box x;
    int left = 5;
    (void)state;
    box_text(&x,
             "fn t() {\n%c = const true : bool\nwhile () {\nyield %c\n} do () {\nyield\n}\n}\n");
    assert_int_equal(kl_interp_run(x.f, &x.l, 0, x.d, &x.env, stop_after, &left),
                     KILN_E_UNSUPPORTED);
    assert_int_equal(left, 0);
    left = 5; /* empty programs count as well */
    box_close(&x);
    box_text(&x, "fn t() {\n}\n");
    x.l.grid[0] = INT64_MAX;
    assert_int_equal(kl_interp_run(x.f, &x.l, 0, x.d, &x.env, stop_after, &left),
                     KILN_E_UNSUPPORTED);
    box_close(&x);
}

/* ---- memory of the run ---- */

struct failing {
    int64_t left; /* allocations until one fails */
    int64_t live;
};

static void *fail_alloc(void *user, void *p, size_t old, size_t size)
{
    struct failing *s = user;
    (void)old;
    if (!size) {
        s->live -= p != NULL;
        free(p);
        return NULL;
    }
    if (s->left-- == 0)
        return NULL;
    s->live += !p;
    return realloc(p, size);
}

static const char *const findings_text =
    "fn t(%0: array<f32,1> x, %1: array<f32,1> y written) {\n"
    "%z = const 0 : i64\n%o = const 1 : i64\n%n = const 10 : i64\n%m = const 4 : i64\n"
    "%x = view %0, %z [%n] stride [%o] : array<f32,1>\n"
    "%y = view %1, %z [%n] stride [%o] : array<f32,1>\n"
    "%p = program_id 0 : i64\n%q = mul %p, %m : i64\n%i = sub %q, %o : i64\n"
    "%v = load %x[%i:4] : f32[4]\n"
    "store %y[%i:4], %v\n}\n";

static void no_memory(void **state)
{
    (void)state;
    struct failing s = {0};
    kl_alloc al = {fail_alloc, &s};
    int64_t n = 0;
    for (;; n++) {
        struct box x;
        float in[10] = {0}, out[10];
        box_text(&x, findings_text);
        mem(&x, 0, in, sizeof in);
        mem(&x, 1, out, sizeof out);
        x.l.grid[0] = 3;
        kl_env env = {.al = &al};
        kl_diags *d = kl_diags_new(&al);
        s.left = n;
        kiln_status st = kl_interp_run(x.f, &x.l, KILN_CHECK_ALL, d, &env, NULL, NULL);
        s.left = INT64_MAX;
        assert_true(st == KILN_E_NOMEM || st == KILN_E_BOUNDS);
        kiln_diags_free(d);
        box_close(&x);
        s.live++; /* the list itself was made before counting */
        if (st == KILN_E_BOUNDS)
            break;
        assert_true(strstr(env.msg, "memory") != NULL);
    }
    assert_true(n >= 2);
    struct box x; /* 2^64 elements and more */
    box_fn(&x);
    uint32_t dim[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    kl_cst(&x.b, kl_tile(x.f, KL_f32, 4, dim), 0);
    assert_int_equal(kl_interp_run(x.f, &x.l, 0, x.d, &x.env, NULL, NULL), KILN_E_NOMEM);
    box_close(&x);
}

/* ---- findings ---- */

static void expect(struct box *x, unsigned checks, kiln_status st, const char *want)
{
    assert_int_equal(run(x, checks), st);
    const char *got = text_of(x);
    if (strcmp(got, want) != 0)
        fail_msg("got:\n%s\nwant:\n%s", got, want);
}

static void findings(void **state)
{
    struct box x;
    float in[10], out[10];
    (void)state;
    for (int i = 0; i < 10; i++)
        in[i] = (float)i, out[i] = -1;
    box_text(&x, findings_text);
    mem(&x, 0, in, sizeof in);
    mem(&x, 1, out, sizeof out);
    x.l.grid[0] = 3; /* starts -1, 3, 7: only the first is below, the last hangs over */
    expect(&x, KILN_CHECK_ALL, KILN_E_BOUNDS,
           "test.ir:11:1: error[K1201]: load reads outside x: x[-1], the extents are [10]\n"
           "   11 | %v = load %x[%i:4] : f32[4]\n"
           "      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
           "note: 1 element in 1 of 3 programs; first in program 0, lane 0 of 4\n"
           "note: it reads 0; if that is meant, write load(..., 0), a mask, or test inside(...)\n"
           "test.ir:12:1: error[K1202]: store writes outside y: y[-1], the extents are [10]\n"
           "   12 | store %y[%i:4], %v\n"
           "      | ^^^^^^^^^^^^^^^^^^\n"
           "note: 1 element in 1 of 3 programs; first in program 0, lane 0 of 4\n"
           "note: it is not written; if that is meant, write a mask or test inside(...)\n");
    for (int i = 0; i < 10; i++)
        assert_true(out[i] == (float)i);
    box_close(&x);

    /* a fill and a false mask silence it; without checks nothing is said */
    static const char *const quiet[] = {" fill %f", " mask %k"};
    for (int i = 0; i < 3; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "fn t(%%0: array<f32,1> x) {\n"
                 "%%z = const 0 : i64\n%%o = const 1 : i64\n%%n = const 10 : i64\n"
                 "%%x = view %%0, %%z [%%n] stride [%%o] : array<f32,1>\n%%i = const -1 : i64\n"
                 "%%f = const 7.0 : f32[4]\n%%k = inside %%x[%%i:4] : bool[4]\n"
                 "%%v = load %%x[%%i:4]%s : f32[4]\n}\n",
                 i < 2 ? quiet[i] : "");
        box_text(&x, text);
        mem(&x, 0, in, sizeof in);
        expect(&x, i < 2 ? KILN_CHECK_ALL : 0, KILN_OK, "");
        box_close(&x);
    }

    /* a scalar subscript past the end, in two dimensions and a grid of two */
    box_text(&x, "fn t(%0: array<f32,2> a) {\n"
                 "%z = const 0 : i64\n%o = const 1 : i64\n%r = const 2 : i64\n%c = const 5 : i64\n"
                 "%x = view %0, %z [%r, %c] stride [%c, %o] : array<f32,2>\n"
                 "%p = program_id 1 : i64\n"
                 "%v = load %x[%p][%o:8] : f32[8]\n}\n");
    mem(&x, 0, in, sizeof in);
    x.l.grid[0] = 2, x.l.grid[1] = 4;
    expect(&x, KILN_CHECK_ALL, KILN_E_BOUNDS,
           "test.ir:8:1: error[K1201]: load reads outside a: a[2][1], the extents are [2][5]\n"
           "    8 | %v = load %x[%p][%o:8] : f32[8]\n"
           "      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
           "note: 32 elements in 4 of 8 programs; first in program (0, 2), lane 0 of 8\n"
           "note: it reads 0; if that is meant, write load(..., 0), a mask, or test inside(...)\n");
    box_close(&x);

    /* an array without an extent */
    box_text(&x, "fn t(%0: array<f32,1> x) {\n"
                 "%z = const 0 : i64\n%o = const 1 : i64\n%n = const 9223372036854775807 : i64\n"
                 "%m = const 4 : i64\n%x = view %0, %z [%n] stride [%o] : array<f32,1>\n"
                 "%p = program_id 0 : i64\n%i = mul %p, %m : i64\n"
                 "%v = load %x[%i:4] : f32[4]\n}\n");
    mem(&x, 0, in, sizeof in);
    x.l.grid[0] = 4;
    expect(
        &x, KILN_CHECK_ALL, KILN_E_BOUNDS,
        "test.ir:9:1: error[K1203]: load reads outside x: element 10 of an array of 10\n"
        "    9 | %v = load %x[%i:4] : f32[4]\n"
        "      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "note: 6 elements in 2 of 4 programs; first in program 2, lane 2 of 4\n"
        "note: x is declared without an extent: declare one, and elements past it read 0 and are "
        "not written\n");
    box_close(&x);

    /* a view that is larger than its parent, and an access that leaves the memory */
    box_text(&x, "fn t(%0: array<f32,1> x) {\n"
                 "%z = const 0 : i64\n%o = const 1 : i64\n%n = const 10 : i64\n%e = const 8 : i64\n"
                 "%x = view %0, %z [%n] stride [%o] : array<f32,1>\n"
                 "%v = view %x, %e [%e] stride [%o] : array<f32,1>\n"
                 "%a = load %v[%z:4] : f32[4]\n}\n");
    mem(&x, 0, in, sizeof in);
    expect(
        &x, KILN_CHECK_ALL, KILN_E_BOUNDS,
        "test.ir:7:1: error[K1204]: a view of x is not inside its parent: it covers elements 8 to "
        "15, the parent 0 to 9\n"
        "    7 | %v = view %x, %e [%e] stride [%o] : array<f32,1>\n"
        "      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "note: 1 of 1 program; first in program 0\n"
        "test.ir:8:1: error[K1204]: load reads outside x: [2] of a view with extents [8] is "
        "element 10 of an array of 10\n"
        "    8 | %a = load %v[%z:4] : f32[4]\n"
        "      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "note: 2 elements in 1 of 1 program; first in program 0, lane 2 of 4\n");
    box_close(&x);

    /* outside, but chosen away under inside() */
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(
            text, sizeof text,
            "fn t(%%0: array<f32,1> x, %%1: array<f32,1> y written) {\n"
            "%%z = const 0 : i64\n%%o = const 1 : i64\n%%n = const 10 : i64\n"
            "%%x = view %%0, %%z [%%n] stride [%%o] : array<f32,1>\n%%i = const -1 : i64\n"
            "%%f = const 7.0 : f32[4]\n%%k = inside %%x[%%i:4] : bool[4]\n"
            "%%v = load %%x[%%i:4] : f32[4]\n%%s = select %%k, %s : f32[4]\n"
            "%%y = view %%1, %%z [%%n] stride [%%o] : array<f32,1>\nstore %%y[%%z:4], %%s\n}\n",
            i ? "%f, %v" : "%v, %f");
        box_text(&x, text);
        mem(&x, 0, in, sizeof in);
        mem(&x, 1, out, sizeof out);
        assert_int_equal(run(&x, KILN_CHECK_ALL), i ? KILN_E_BOUNDS : KILN_OK);
        box_close(&x);
    }

    /* elements of a store that meet: equal values are fine, and so are masked ones */
    box_text(&x, "fn t(%0: array<f32,1> y written) {\n"
                 "%z = const 0 : i64\n%o = const 1 : i64\n%n = const 4 : i64\n%w = const 2 : i64\n"
                 "%y = view %0, %z [%n] stride [%z] : array<f32,1>\n"
                 "%q = view %0, %o [%n, %n] stride [%w, %o] : array<f32,2>\n"
                 "%c = const 3.0 : f32[4]\nstore %y[%z:4], %c\n"
                 "%r = iota : i32[4]\n%f = convert %r : f32[4]\n%e = const 1 : i32[4]\n"
                 "%m = le %r, %e : bool[4]\n%p = reshape %f : f32[2][2]\n"
                 "%k = eq %r, %e : bool[4]\nstore %y[%z:4], %f mask %k\n"
                 "store %q[%z:2][%z:2], %p\nstore %y[%z:4], %f mask %m\n}\n");
    mem(&x, 0, in, sizeof in);
    expect(&x, KILN_CHECK_ALL, KILN_E_BOUNDS,
           "test.ir:18:1: error[K1303]: store writes y[1] more than once, with different values\n"
           "   18 | store %y[%z:4], %f mask %m\n"
           "      | ^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
           "note: 1 element in 1 of 1 program; first in program 0, lane 1 of 4\n");
    box_close(&x);

    /* a subscript that a tile does not have */
    box_text(&x, "fn t(%0: i64 i) {\n%v = iota : i32[4]\n%e = extract %v[%0] : i32\n}\n");
    x.slot[0].bits = 4;
    expect(&x, KILN_CHECK_ALL, KILN_E_BOUNDS,
           "test.ir:3:1: error[K1205]: subscript reads outside a tile: [4], the sizes are [4]\n"
           "    3 | %e = extract %v[%0] : i32\n"
           "      | ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
           "note: 1 element in 1 of 1 program; first in program 0\n");
    box_close(&x);
}

/* ---- elements without a value ---- */

static void unwritten(void **state)
{
    struct box x;
    int32_t m[8] = {0};
    uint8_t shadow[sizeof m];
    (void)state;
    const char *text = "fn t(%0: array<i32,1> y written, %1: i64 first, %2: array<bool,1> k) {\n"
                       "%z = const 0 : i64\n%o = const 1 : i64\n%n = const 8 : i64\n"
                       "%y = view %0, %z [%n] stride [%o] : array<i32,1>\n"
                       "%k = view %2, %z [%n] stride [%o] : array<bool,1>\n"
                       "%v = iota : i32[4]\nstore %y[%1:4], %v\n"
                       "%m = load %k[%z:8] : bool[8]\n"
                       "%a = load %y[%z:8] mask %m : i32[8]\n}\n";
    static const struct {
        int64_t first;
        uint8_t mask[8];
        int bad, lane;
    } cases[] = {
        {0, {1, 1, 1, 1, 0, 0, 0, 0}, 0, 0},  {0, {1, 1, 1, 1, 1, 1, 1, 1}, 4, 4},
        {2, {0, 1, 1, 1, 1, 1, 1, 0}, 2, 1},  {6, {1, 0, 0, 0, 0, 0, 1, 1}, 1, 0},
        {-2, {1, 1, 0, 0, 0, 0, 0, 0}, 0, 0}, {100, {0, 0, 0, 0, 0, 0, 0, 1}, 1, 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[400] = "";
        memset(shadow, 0, sizeof shadow);
        box_text(&x, text);
        mem(&x, 0, m, sizeof m);
        x.slot[0].shadow = shadow;
        x.slot[1].bits = (uint64_t)cases[i].first;
        mem(&x, 2, (void *)(uintptr_t)cases[i].mask, 8);
        if (cases[i].bad)
            snprintf(want, sizeof want,
                     "test.ir:10:1: error[K1401]: load reads y[%d], which nothing wrote\n"
                     "   10 | %%a = load %%y[%%z:8] mask %%m : i32[8]\n"
                     "      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
                     "note: %d element%s in 1 of 1 program; first in program 0, lane %d of 8\n"
                     "note: y came into the launch without a value\n"
                     "note: help: declare it with one, as in `y[n] = 0`, or give one: y='zeros(...)'\n",
                     cases[i].lane, cases[i].bad, cases[i].bad == 1 ? "" : "s", cases[i].lane);
        expect(&x, KILN_CHECK_UNINIT, cases[i].bad ? KILN_E_BOUNDS : KILN_OK, want);
        for (int64_t k = 0; k < 8; k++)
            assert_int_equal(shadow[4 * k + 3], k >= cases[i].first && k < cases[i].first + 4);
        box_close(&x);
    }
    /* without a shadow everything has a value; strided rows are followed too */
    box_text(&x, text);
    mem(&x, 0, m, sizeof m);
    mem(&x, 2, (void *)(uintptr_t)cases[1].mask, 8);
    expect(&x, KILN_CHECK_ALL, KILN_OK, "");
    box_close(&x);
    box_text(&x, "fn t(%0: array<i32,1> y written) {\n"
                 "%z = const 0 : i64\n%o = const 1 : i64\n%n = const 8 : i64\n%l = const 7 : i64\n"
                 "%y = view %0, %z [%n] stride [%o] : array<i32,1>\n"
                 "%v = iota : i32[4]\nstore %y[%l:4:-2], %v\n"
                 "%a = load %y[%o:4:2] : i32[4]\n%b = load %y[%z:4] : i32[4]\n}\n");
    memset(shadow, 0, sizeof shadow);
    mem(&x, 0, m, sizeof m);
    x.slot[0].shadow = shadow;
    expect(&x, KILN_CHECK_ALL, KILN_E_BOUNDS,
           "test.ir:10:1: error[K1401]: load reads y[0], which nothing wrote\n"
           "   10 | %b = load %y[%z:4] : i32[4]\n"
           "      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
           "note: 2 elements in 1 of 1 program; first in program 0, lane 0 of 4\n"
           "note: y came into the launch without a value\n"
           "note: help: declare it with one, as in `y[n] = 0`, or give one: y='zeros(...)'\n");
    box_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accesses),    cmocka_unit_test(parts),     cmocka_unit_test(control),
        cmocka_unit_test(nests),       cmocka_unit_test(programs),  cmocka_unit_test(environment),
        cmocka_unit_test(interrupted), cmocka_unit_test(no_memory), cmocka_unit_test(findings),
        cmocka_unit_test(unwritten),   cmocka_unit_test(indices),
    };
    BOX_GUARD
    return cmocka_run_group_tests(tests, NULL, NULL);
}
