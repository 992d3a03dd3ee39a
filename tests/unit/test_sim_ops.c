/* test_sim_ops.c - each instruction of the PTX executor on edge values against C written
 * independently; every form of ptx.def must appear. */
#define _GNU_SOURCE
#include "sim_box.h"
#include "sim_device.h"

#include <fenv.h>
#include <math.h>

__extension__ typedef __float128 quad;
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;
typedef uint64_t u64;
typedef int64_t s64;
typedef uint32_t u32;
typedef int32_t s32;

/* ---- values ---- */

static float f32_of(u64 b)
{
    u32 v = (u32)b;
    float f;
    memcpy(&f, &v, 4);
    return f;
}
static double f64_of(u64 b)
{
    double f;
    memcpy(&f, &b, 8);
    return f;
}
static u64 bits32(float f)
{
    u32 v;
    memcpy(&v, &f, 4);
    return v;
}
static u64 bits64(double f)
{
    u64 v;
    memcpy(&v, &f, 8);
    return v;
}

enum ty { I16, I32, I64, F32, F64, H, B, H2, B2, P8 };
static const uint32_t ty_bytes[] = {2, 4, 8, 4, 8, 2, 2, 4, 4, 2};

static u64 seed = 88172645463325252u;
static u64 rnd(void)
{
    return box_random(&seed);
}

/* 16-bit floats by definition: sign, exponent, fraction */
static quad q16(u64 v, bool bf)
{
    int eb = bf ? 8 : 5, fb = 15 - eb, bias = bf ? 127 : 15;
    int e = (int)(v >> fb) & ((1 << eb) - 1), f = (int)v & ((1 << fb) - 1);
    quad x = e ? (quad)(f + (1 << fb)) : (quad)f;
    for (int k = (e ? e : 1) - bias - fb; k > 0; k--)
        x *= 2;
    for (int k = (e ? e : 1) - bias - fb; k < 0; k++)
        x /= 2;
    return v & 0x8000 ? -x : x;
}
static bool nan16(u64 v, bool bf)
{
    return (v & 0x7fff) > (bf ? 0x7f80u : 0x7c00u);
}
static bool inf16(u64 v, bool bf)
{
    return (v & 0x7fff) == (bf ? 0x7f80u : 0x7c00u);
}

/* The 16-bit float nearest to x + e by search among all, where e is far below x; neg0: the sign
 * of an exact zero. */
static u64 near16e(quad x, quad e, bool neg0, bool bf)
{
    u64 inf = bf ? 0x7f80 : 0x7c00, s = x < 0 || (x == 0 && neg0) ? 0x8000 : 0;
    quad a = x < 0 ? -x : x;
    u64 lo = 0, hi = inf - 1; /* the largest not above a */
    while (lo < hi) {
        u64 mid = (lo + hi + 1) / 2;
        if (q16(mid, bf) <= a)
            lo = mid;
        else
            hi = mid - 1;
    }
    quad v = q16(lo, bf), next = lo + 1 == inf ? v + (v - q16(lo - 1, bf)) : q16(lo + 1, bf);
    quad down = a - v, up = next - a;
    if (up < down || (up == down && (e == 0 ? lo & 1 : (e < 0) == (x < 0))))
        lo++;
    return s | lo;
}
static u64 near16(quad x, bool neg0, bool bf)
{
    return near16e(x, 0, neg0, bf);
}

static const u64 ints[] = {0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7fff,
                           0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff,
                           0xfffffffe, 0x55555555, 0x100000000, 0x7fffffffffffffff,
                           0x8000000000000000, 0x8000000000000001, 0xffffffffffffffff,
                           0xfffffffffffffffe, 0xffffffff00000000, 0xaaaaaaaa55555555};
static const double flts[] = {0, 1, 2, 0.5, 1.5, 2.5, 3.5, 3, 7, 10, 0.1, 1e-3, 100.5, 127.5, 128,
                              255.5, 256, 32767.5, 65504, 65519, 65520, 1e6, 16777217, 2147483647,
                              2147483648.0, 4294967295.0, 4294967296.0, 9.3e18, 1.9e19, 1e30, 3e38,
                              1e-30, 1.2e-38, 1e-40, 1.5e-45, 6e-8, 3e-8, 1e-8, 1e300, 1e-310, 88.7,
                              0.99999994, 1.0000001, 448, 464, 57344};

static u64 random_value(enum ty t, uint32_t k)
{
    size_t ni = sizeof ints / sizeof *ints, nf = sizeof flts / sizeof *flts;
    if (t == H2 || t == B2)
        return random_value(t == H2 ? H : B, k) | random_value(t == H2 ? H : B, k * 7 + 3) << 16;
    if (t == I16 || t == I32 || t == I64 || t == P8)
        return k < ni ? ints[k] : rnd() >> rnd() % 64;
    if (k < 2 * nf + 6) {
        double d = k < 2 * nf ? flts[k / 2] : k < 2 * nf + 2 ? (double)INFINITY : (double)NAN;
        if (k & 1)
            d = -d;
        switch (t) {
        case F64: return bits64(d);
        case F32: return bits32((float)d);
        default:
            return d != d ? 0x7e00 + 0x100 * (t == B) : isinf(d) || fabs(d) > 1e38
                       ? (t == B ? 0x7f80u : 0x7c00u) | (d < 0 ? 0x8000u : 0)
                       : near16((quad)d, d == 0 && signbit(d), t == B);
        }
    }
    if (k & 1) { /* of moderate size */
        double d = ((double)(rnd() % 2000001) - 1000000) * 1e-4;
        return t == F64 ? bits64(d) : t == F32 ? bits32((float)d) : near16((quad)d, false, t == B);
    }
    return rnd();
}

/* ---- a module of many small entries: load, one instruction, store ---- */

typedef u64 ref_fn(u64 a, u64 b, u64 c);
struct test {
    const char *ins; /* with %d, %a, %b, %c */
    enum ty d, a, b, c;
    int n;           /* operands */
    ref_fn *ref;     /* NULL: a conversion */
    int flags; /* which of several references; a conversion: types and rounding */
};
enum { MAX_TESTS = 600 };
enum { N = 2048 };
static u64 convert_ref(const struct test *t, u64 a);

static const char *const pre[] = {"h", "r", "d", "f", "g", "h", "h", "r", "r", "h"};

static void entry(kl_buf *b, uint32_t k, const struct test *t)
{
    static const char names[] = "abc";
    enum ty ty[3] = {t->a, t->b, t->c};
    kl_putf(b, ".visible .entry k%u(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 "
               "pd)\n{\n .reg .b16 %%h<5>; .reg .b32 %%r<9>; .reg .f32 %%f<5>; .reg .b64 %%d<9>; "
               ".reg .f64 %%g<5>; .reg .pred %%p<4>;\n"
               " mov.u32 %%r5, %%tid.x; mov.u32 %%r6, %%ctaid.x; mad.lo.u32 %%r5, %%r6, 256, "
               "%%r5;\n mul.wide.u32 %%d5, %%r5, 8;\n", k);
    for (int i = 0; i < t->n; i++)
        kl_putf(b, " ld.param.u64 %%d6, [p%c]; add.u64 %%d6, %%d6, %%d5; ld.global.%s%u %%%s%d, "
                   "[%%d6];\n", names[i], ty[i] == F32 || ty[i] == F64 ? "f" : "b",
                8 * ty_bytes[ty[i]], pre[ty[i]], i + 1);
    kl_puts(b, " ");
    for (const char *p = t->ins; *p; p++) {
        if (*p == '%' && p[1] >= 'a' && p[1] <= 'd' && !(p[2] >= '0' && p[2] <= '9')) {
            int i = p[1] == 'd' ? 0 : p[1] - 'a' + 1;
            kl_putf(b, "%%%s%d", pre[i ? ty[i - 1] : t->d], i);
            p++;
        } else {
            kl_buf_put(b, p, 1);
        }
    }
    kl_putf(b, "\n ld.param.u64 %%d6, [pd]; add.u64 %%d6, %%d6, %%d5; st.global.%s%u [%%d6], "
               "%%%s0;\n ret;\n}\n", t->d == F32 || t->d == F64 ? "f" : "b", 8 * ty_bytes[t->d],
            pre[t->d]);
}

static u64 low(u64 v, uint32_t bytes)
{
    return bytes < 8 ? v & ((UINT64_C(1) << 8 * bytes) - 1) : v;
}

/* How a device's results differ from the executor's. */
static void compare(const struct test *t, const u64 *in[3], const u64 *sim, const u64 *dev)
{
    uint32_t sz = ty_bytes[t->d], differ = 0, first = 0;
    u64 most = 0;
    for (uint32_t i = 0; i < N; i++) {
        u64 x = low(sim[i], sz), y = low(dev[i], sz);
        if (x == y)
            continue;
        if (differ++ == 0)
            first = i;
        u64 apart = x > y ? x - y : y - x;
        most = apart > most ? apart : most;
    }
    if (differ)
        print_message("device: %-48s %4u of %d differ, by up to %llu: a %llx b %llx c %llx: "
                      "executor %llx, device %llx\n", t->ins, differ, N, (unsigned long long)most,
                      (unsigned long long)low(in[0][first], ty_bytes[t->a]),
                      (unsigned long long)low(in[1][first], ty_bytes[t->b]),
                      (unsigned long long)low(in[2][first], ty_bytes[t->c]),
                      (unsigned long long)low(sim[first], sz),
                      (unsigned long long)low(dev[first], sz));
}

static void try_all(const struct test *t, uint32_t n, const char *head, const char *arch)
{
    struct box x;
    static u64 a[N], b[N], c[N], d[N], e[N];
    const u64 *ins[3] = {a, b, c};
    static struct device gpu;
    static bool tried;
    kl_arena text_arena = {0};
    kl_env env = {.al = &kl_alloc_libc, .fail = &box_raised};
    text_arena.env = &env;
    kl_buf text = {.a = &text_arena};
    kl_puts(&text, head);
    for (uint32_t k = 0; k < n; k++)
        entry(&text, k, &t[k]);
    box_module(&x, kl_buf_str(&text));
    if (!tried)
        tried = true, gpu.good = device_open(&gpu, sizeof a);
    if (gpu.good && !device_module(&gpu, kl_buf_str(&text)))
        print_error("the device does not take the text for %s\n", arch);
    uint32_t wrong = 0;
    for (uint32_t k = 0; k < n; k++) {
        char name[16];
        snprintf(name, sizeof name, "k%u", k);
        for (uint32_t i = 0; i < N; i++) { /* all pairs of the first 45, then random */
            uint32_t m = 45;
            a[i] = random_value(t[k].a, i < m * m ? i % m : 200);
            b[i] = random_value(t[k].b, i < m * m ? i / m : 201);
            c[i] = random_value(t[k].c, i < m * m ? (uint32_t)(rnd() % 100) : 202);
            if (t[k].n == 1) /* one operand: every special value */
                a[i] = random_value(t[k].a, i);
        }
        box_args(&x);
        arg_mem(&x, a, sizeof a, false), arg_mem(&x, b, sizeof b, false);
        arg_mem(&x, c, sizeof c, false), arg_mem(&x, d, sizeof d, true);
        box_good(&x, name, N / 256, 256);
        if (gpu.good &&
            device_run(&gpu, name, (const void *const[3]){a, b, c}, e, N / 256, 256))
            compare(&t[k], ins, d, e);
        uint32_t here = 0;
        for (uint32_t i = 0; i < N; i++) {
            uint32_t sz = ty_bytes[t[k].d];
            u64 va = low(a[i], ty_bytes[t[k].a]), vb = low(b[i], ty_bytes[t[k].b]);
            u64 vc = low(c[i], ty_bytes[t[k].c]);
            u64 want = low(t[k].ref ? t[k].ref(va, vb, vc) : convert_ref(&t[k], va), sz);
            u64 got = low(d[i], sz);
            if (want == got)
                continue;
            if (here++ == 0)
                print_error("%s: a %llx b %llx c %llx: %llx, not %llx\n", t[k].ins,
                            (unsigned long long)va, (unsigned long long)vb, (unsigned long long)vc,
                            (unsigned long long)got, (unsigned long long)want);
        }
        wrong += here != 0;
    }
    box_close(&x);
    if (ptxas_path() && !ptxas_takes(kl_buf_str(&text), arch))
        wrong++;
    kl_arena_free(&text_arena);
    assert_int_equal(wrong, 0);
}

/* ---- integers ---- */

#define REF(name, expr)                                                                            \
    __attribute__((unused)) static u64 name(u64 a, u64 b, u64 c)                                   \
    {                                                                                              \
        (void)a, (void)b, (void)c;                                                                 \
        return (u64)(expr);                                                                        \
    }
/* sign-extended operands of a width */
static s64 sx(u64 v, int w)
{
    return (s64)(v << (64 - w)) >> (64 - w);
}
#define REF3(name, expr)                                                                           \
    static u64 name##_at(u64 a, u64 b, u64 c, int W, bool S)                                       \
    {                                                                                              \
        s128 A = S ? (s128)sx(a, W) : (s128)a, Bv = S ? (s128)sx(b, W) : (s128)b;                  \
        s128 C = S ? (s128)sx(c, W) : (s128)c;                                                     \
        (void)A, (void)Bv, (void)C;                                                                \
        return (u64)(expr);                                                                        \
    }                                                                                              \
    REF(name##_u16, name##_at(a, b, c, 16, false))                                                 \
    REF(name##_s16, name##_at(a, b, c, 16, true))                                                  \
    REF(name##_u32, name##_at(a, b, c, 32, false))                                                 \
    REF(name##_s32, name##_at(a, b, c, 32, true))                                                  \
    REF(name##_u64, name##_at(a, b, c, 64, false))                                                 \
    REF(name##_s64, name##_at(a, b, c, 64, true))

static s128 mulx(s128 a, s128 b)
{
    return (s128)((u128)a * (u128)b);
}
static s128 hi128(s128 a, s128 b, int w, bool s)
{
    u128 p = (u128)mulx(a, b); /* 64 x 64 bits fit; unsigned 64 as well, modulo 2^128 */
    return s ? (s128)p >> w : (s128)(p >> w);
}

REF3(add, A + Bv)
REF3(sub, A - Bv)
REF3(mullo, mulx(A, Bv))
REF3(mulhi, hi128(A, Bv, W, S))
REF3(madlo, mulx(A, Bv) + C)
REF3(madhi, hi128(A, Bv, W, S) + C)
REF3(quo, Bv == 0 ? (s128)-1 : A / Bv)
REF3(remd, Bv == 0 ? A : A % Bv)
REF3(imin, A < Bv ? A : Bv)
REF3(imax, A > Bv ? A : Bv)
REF3(sad, C + (A < Bv ? Bv - A : A - Bv))
REF3(neg, -A)
REF3(iabs, A < 0 ? -A : A)
REF3(shr, (b & 0xffffffff) >= (u64)W ? (A < 0 ? -1 : 0) : A >> (b & 0xffffffff))
REF3(shl, (b & 0xffffffff) >= (u64)W ? 0 : (s128)(a << (b & 0xffffffff)))
#undef REF3

static s64 clamp32(s128 v)
{
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (s64)v;
}
REF(addsat, clamp32((s128)sx(a, 32) + sx(b, 32)))
REF(subsat, clamp32((s128)sx(a, 32) - sx(b, 32)))
REF(madhisat, clamp32(((sx(a, 32) * sx(b, 32)) >> 32) + sx(c, 32)))
REF(wide_u16, a * b)
REF(wide_s16, sx(a, 16) * sx(b, 16))
REF(wide_u32, a * b)
REF(wide_s32, sx(a, 32) * sx(b, 32))
REF(madw_u16, a * b + c)
REF(madw_s16, (u64)(sx(a, 16) * sx(b, 16)) + c)
REF(madw_s32, (u64)(sx(a, 32) * sx(b, 32)) + c)
REF(mul24u, (a & 0xffffff) * (b & 0xffffff))
REF(mul24s, (u64)sx(a, 24) * (u64)sx(b, 24))
static u64 dp4(u64 a, u64 b, u64 c, bool sa, bool sb)
{
    for (int k = 0; k < 4; k++) {
        s64 x = (s64)(a >> 8 * k & 255), y = (s64)(b >> 8 * k & 255);
        c += (u64)((sa && x > 127 ? x - 256 : x) * (sb && y > 127 ? y - 256 : y));
    }
    return c;
}
REF(dp_uu, dp4(a, b, c, false, false))
REF(dp_ss, dp4(a, b, c, true, true))
REF(dp_su, dp4(a, b, c, true, false))
REF(dp_us, dp4(a, b, c, false, true))
REF(band, a & b)
REF(bor, a | b)
REF(bxor, a ^ b)
REF(bnot, ~a)
REF(cnot, a ? 0 : 1)
static u64 rev(u64 a, int w)
{
    u64 r = 0;
    for (int k = 0; k < w; k++)
        if (a & (UINT64_C(1) << k))
            r |= UINT64_C(1) << (w - 1 - k);
    return r;
}
REF(brev32, rev(a, 32))
REF(brev64, rev(a, 64))
static u64 ones(u64 a)
{
    u64 n = 0;
    for (; a; a >>= 1)
        n += a & 1;
    return n;
}
REF(popc, ones(a))
static u64 zeros(u64 a, int w)
{
    u64 n = 0;
    while (n < (u64)w && !(a >> (w - 1 - (int)n) & 1))
        n++;
    return n;
}
REF(clz32, zeros(a, 32))
REF(clz64, zeros(a, 64))
static u64 find(u64 a, int w, bool s, bool shift)
{
    for (int k = w - 1; k >= 0; k--)
        if ((a >> k & 1) != (s ? a >> (w - 1) & 1 : 0))
            return (u64)(shift ? w - 1 - k : k);
    return 0xffffffff;
}
REF(bfind_u32, find(a, 32, false, false))
REF(bfind_s32, find(a, 32, true, false))
REF(bfind_u64, find(a, 64, false, false))
REF(bfind_s64, find(a, 64, true, false))
REF(bfind_sh, find(a, 32, false, true))
/* bit by bit, as the manual writes them */
static u64 extract(u64 a, u64 b, u64 c, int w, bool s)
{
    int pos = (int)(b & 255), len = (int)(c & 255), msb = w - 1;
    int sbit = !s || len == 0 ? 0 : (int)(a >> (pos + len - 1 < msb ? pos + len - 1 : msb) & 1);
    u64 r = 0;
    for (int i = 0; i <= msb; i++) {
        int bit = i < len && pos + i <= msb ? (int)(a >> (pos + i) & 1) : sbit;
        r |= (u64)bit << i;
    }
    return r;
}
REF(bfe_u32, extract(a, b, c, 32, false))
REF(bfe_s32, extract(a, b, c, 32, true))
REF(bfe_u64, extract(a, b, c, 64, false))
REF(bfe_s64, extract(a, b, c, 64, true))
static u64 insert(u64 a, u64 b, int pos, int len, int w)
{
    for (int i = 0; i < len && pos + i < w; i++)
        b = (b & ~(UINT64_C(1) << (pos + i))) | (a >> i & 1) << (pos + i);
    return b;
}
REF(bfi32, insert(a, b, (int)(c & 255), 7, 32))
REF(bfi64, insert(a, b, 60, (int)(c & 255), 64))
static u64 permute(u64 a, u64 b, u64 c)
{
    u64 r = 0;
    for (int k = 0; k < 4; k++) {
        int s = (int)(c >> 4 * k & 15), n = s & 7;
        u64 byte = (n < 4 ? a >> 8 * n : b >> 8 * (n - 4)) & 255;
        if (s & 8)
            byte = byte & 128 ? 255 : 0;
        r |= byte << 8 * k;
    }
    return r;
}
REF(prmt, permute(a, b, c))
/* the modes of the manual's table as selectors for c = 0..3 */
static const u32 table_f4e[] = {0x3210, 0x4321, 0x5432, 0x6543};
static const u32 table_b4e[] = {0x5670, 0x6701, 0x7012, 0x0123};
static const u32 table_rc8[] = {0x0000, 0x1111, 0x2222, 0x3333};
static const u32 table_ecl[] = {0x3210, 0x3211, 0x3222, 0x3333};
static const u32 table_ecr[] = {0x0000, 0x1110, 0x2210, 0x3210};
static const u32 table_rc16[] = {0x1010, 0x3232, 0x1010, 0x3232};
REF(prmt_f4e, permute(a, b, table_f4e[c & 3]))
REF(prmt_b4e, permute(a, b, table_b4e[c & 3]))
REF(prmt_rc8, permute(a, b, table_rc8[c & 3]))
REF(prmt_ecl, permute(a, b, table_ecl[c & 3]))
REF(prmt_ecr, permute(a, b, table_ecr[c & 3]))
REF(prmt_rc16, permute(a, b, table_rc16[c & 3]))
REF(lop_96, a ^ b ^ c)
REF(lop_e8, (a & b) | (a & c) | (b & c))
REF(lop_ca, (a & b) | (~a & c))
REF(shf_lw, (u32)(((b << 32 | a) << (c & 31)) >> 32))
REF(shf_lc, c >= 32 ? a : (u32)(((b << 32 | a) << c) >> 32))
REF(shf_rw, (u32)((b << 32 | a) >> (c & 31)))
REF(shf_rc, c >= 32 ? b : (u32)((b << 32 | a) >> c))
REF(add128, a + b + (a + b < a)) /* low + carry, folded */
REF(sub128, a - b - (a < b))
REF(mad128, (u64)((u128)a * b + c) + (u64)(((u128)a * b + c) >> 64))

#define FAM(name, op) {op ".u16 %d, %a, %b;", I16, I16, I16, I16, 2, name##_u16, 0},               \
    {op ".s16 %d, %a, %b;", I16, I16, I16, I16, 2, name##_s16, 0},                                 \
    {op ".u32 %d, %a, %b;", I32, I32, I32, I32, 2, name##_u32, 0},                                 \
    {op ".s32 %d, %a, %b;", I32, I32, I32, I32, 2, name##_s32, 0},                                 \
    {op ".u64 %d, %a, %b;", I64, I64, I64, I64, 2, name##_u64, 0},                                 \
    {op ".s64 %d, %a, %b;", I64, I64, I64, I64, 2, name##_s64, 0}
#define FAM3(name, op) {op ".u16 %d, %a, %b, %c;", I16, I16, I16, I16, 3, name##_u16, 0},          \
    {op ".s16 %d, %a, %b, %c;", I16, I16, I16, I16, 3, name##_s16, 0},                             \
    {op ".u32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, name##_u32, 0},                             \
    {op ".s32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, name##_s32, 0},                             \
    {op ".u64 %d, %a, %b, %c;", I64, I64, I64, I64, 3, name##_u64, 0},                             \
    {op ".s64 %d, %a, %b, %c;", I64, I64, I64, I64, 3, name##_s64, 0}
#define BITS(name, op) {op ".b16 %d, %a, %b;", I16, I16, I16, I16, 2, name, 0},                    \
    {op ".b32 %d, %a, %b;", I32, I32, I32, I32, 2, name, 0},                                       \
    {op ".b64 %d, %a, %b;", I64, I64, I64, I64, 2, name, 0}

static const struct test int_tests[] = {
    FAM(add, "add"), FAM(sub, "sub"), FAM(mullo, "mul.lo"), FAM(mulhi, "mul.hi"),
    FAM3(madlo, "mad.lo"), FAM3(madhi, "mad.hi"), FAM(quo, "div"), FAM(remd, "rem"),
    FAM(imin, "min"), FAM(imax, "max"), FAM3(sad, "sad"),
    BITS(band, "and"), BITS(bor, "or"), BITS(bxor, "xor"),
    {"neg.s16 %d, %a;", I16, I16, I16, I16, 1, neg_s16, 0},
    {"neg.s32 %d, %a;", I32, I32, I32, I32, 1, neg_s32, 0},
    {"neg.s64 %d, %a;", I64, I64, I64, I64, 1, neg_s64, 0},
    {"abs.s16 %d, %a;", I16, I16, I16, I16, 1, iabs_s16, 0},
    {"abs.s32 %d, %a;", I32, I32, I32, I32, 1, iabs_s32, 0},
    {"abs.s64 %d, %a;", I64, I64, I64, I64, 1, iabs_s64, 0},
    {"shl.b16 %d, %a, %b;", I16, I16, I32, I32, 2, shl_u16, 0},
    {"shl.b32 %d, %a, %b;", I32, I32, I32, I32, 2, shl_u32, 0},
    {"shl.b64 %d, %a, %b;", I64, I64, I32, I32, 2, shl_u64, 0},
    {"shr.u16 %d, %a, %b;", I16, I16, I32, I32, 2, shr_u16, 0},
    {"shr.b16 %d, %a, %b;", I16, I16, I32, I32, 2, shr_u16, 0},
    {"shr.s16 %d, %a, %b;", I16, I16, I32, I32, 2, shr_s16, 0},
    {"shr.u32 %d, %a, %b;", I32, I32, I32, I32, 2, shr_u32, 0},
    {"shr.b32 %d, %a, %b;", I32, I32, I32, I32, 2, shr_u32, 0},
    {"shr.s32 %d, %a, %b;", I32, I32, I32, I32, 2, shr_s32, 0},
    {"shr.u64 %d, %a, %b;", I64, I64, I32, I32, 2, shr_u64, 0},
    {"shr.b64 %d, %a, %b;", I64, I64, I32, I32, 2, shr_u64, 0},
    {"shr.s64 %d, %a, %b;", I64, I64, I32, I32, 2, shr_s64, 0},
    {"add.sat.s32 %d, %a, %b;", I32, I32, I32, I32, 2, addsat, 0},
    {"sub.sat.s32 %d, %a, %b;", I32, I32, I32, I32, 2, subsat, 0},
    {"mad.hi.sat.s32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, madhisat, 0},
    {"mul.wide.u16 %d, %a, %b;", I32, I16, I16, I16, 2, wide_u16, 0},
    {"mul.wide.s16 %d, %a, %b;", I32, I16, I16, I16, 2, wide_s16, 0},
    {"mul.wide.u32 %d, %a, %b;", I64, I32, I32, I32, 2, wide_u32, 0},
    {"mul.wide.s32 %d, %a, %b;", I64, I32, I32, I32, 2, wide_s32, 0},
    {"mad.wide.u16 %d, %a, %b, %c;", I32, I16, I16, I32, 3, madw_u16, 0},
    {"mad.wide.s16 %d, %a, %b, %c;", I32, I16, I16, I32, 3, madw_s16, 0},
    {"mad.wide.u32 %d, %a, %b, %c;", I64, I32, I32, I64, 3, madw_u16, 0},
    {"mad.wide.s32 %d, %a, %b, %c;", I64, I32, I32, I64, 3, madw_s32, 0},
    {"mul24.lo.u32 %d, %a, %b;", I32, I32, I32, I32, 2, mul24u, 0},
    {"mul24.lo.s32 %d, %a, %b;", I32, I32, I32, I32, 2, mul24s, 0},
    {"dp4a.u32.u32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, dp_uu, 0},
    {"dp4a.s32.s32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, dp_ss, 0},
    {"dp4a.s32.u32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, dp_su, 0},
    {"dp4a.u32.s32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, dp_us, 0},
    {"not.b16 %d, %a;", I16, I16, I16, I16, 1, bnot, 0},
    {"not.b32 %d, %a;", I32, I32, I32, I32, 1, bnot, 0},
    {"not.b64 %d, %a;", I64, I64, I64, I64, 1, bnot, 0},
    {"cnot.b16 %d, %a;", I16, I16, I16, I16, 1, cnot, 0},
    {"cnot.b32 %d, %a;", I32, I32, I32, I32, 1, cnot, 0},
    {"cnot.b64 %d, %a;", I64, I64, I64, I64, 1, cnot, 0},
    {"brev.b32 %d, %a;", I32, I32, I32, I32, 1, brev32, 0},
    {"brev.b64 %d, %a;", I64, I64, I64, I64, 1, brev64, 0},
    {"popc.b32 %d, %a;", I32, I32, I32, I32, 1, popc, 0},
    {"popc.b64 %d, %a;", I32, I64, I64, I64, 1, popc, 0},
    {"clz.b32 %d, %a;", I32, I32, I32, I32, 1, clz32, 0},
    {"clz.b64 %d, %a;", I32, I64, I64, I64, 1, clz64, 0},
    {"bfind.u32 %d, %a;", I32, I32, I32, I32, 1, bfind_u32, 0},
    {"bfind.s32 %d, %a;", I32, I32, I32, I32, 1, bfind_s32, 0},
    {"bfind.u64 %d, %a;", I32, I64, I64, I64, 1, bfind_u64, 0},
    {"bfind.s64 %d, %a;", I32, I64, I64, I64, 1, bfind_s64, 0},
    {"bfind.shiftamt.u32 %d, %a;", I32, I32, I32, I32, 1, bfind_sh, 0},
    {"bfe.u32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, bfe_u32, 0},
    {"bfe.s32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, bfe_s32, 0},
    {"bfe.u64 %d, %a, %b, %c;", I64, I64, I32, I32, 3, bfe_u64, 0},
    {"bfe.s64 %d, %a, %b, %c;", I64, I64, I32, I32, 3, bfe_s64, 0},
    {"bfi.b32 %d, %a, %b, %c, 7;", I32, I32, I32, I32, 3, bfi32, 0},
    {"bfi.b64 %d, %a, %b, 60, %c;", I64, I64, I64, I32, 3, bfi64, 0},
    {"prmt.b32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, prmt, 0},
    {"prmt.b32.f4e %d, %a, %b, %c;", I32, I32, I32, I32, 3, prmt_f4e, 0},
    {"prmt.b32.b4e %d, %a, %b, %c;", I32, I32, I32, I32, 3, prmt_b4e, 0},
    {"prmt.b32.rc8 %d, %a, %b, %c;", I32, I32, I32, I32, 3, prmt_rc8, 0},
    {"prmt.b32.ecl %d, %a, %b, %c;", I32, I32, I32, I32, 3, prmt_ecl, 0},
    {"prmt.b32.ecr %d, %a, %b, %c;", I32, I32, I32, I32, 3, prmt_ecr, 0},
    {"prmt.b32.rc16 %d, %a, %b, %c;", I32, I32, I32, I32, 3, prmt_rc16, 0},
    {"lop3.b32 %d, %a, %b, %c, 0x96;", I32, I32, I32, I32, 3, lop_96, 0},
    {"lop3.b32 %d, %a, %b, %c, 232;", I32, I32, I32, I32, 3, lop_e8, 0},
    {"lop3.b32 %d, %a, %b, %c, 0xCA;", I32, I32, I32, I32, 3, lop_ca, 0},
    {"shf.l.wrap.b32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, shf_lw, 0},
    {"shf.l.clamp.b32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, shf_lc, 0},
    {"shf.r.wrap.b32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, shf_rw, 0},
    {"shf.r.clamp.b32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, shf_rc, 0},
    {"add.cc.u64 %d, %a, %b; addc.u64 %d, %d, 0;", I64, I64, I64, I64, 2, add128, 0},
    {"sub.cc.s64 %d, %a, %b; subc.s64 %d, %d, 0;", I64, I64, I64, I64, 2, sub128, 0},
    {"add.cc.u32 %d, %a, %b; addc.u32 %d, %d, 0;", I32, I32, I32, I32, 2, NULL, 0},
    {"sub.cc.u32 %d, %a, %b; subc.u32 %d, %d, 0;", I32, I32, I32, I32, 2, NULL, 0},
    {"mad.lo.cc.u64 %d7, %a, %b, %c; madc.hi.u64 %d8, %a, %b, 0; add.u64 %d, %d7, %d8;", I64, I64,
     I64, I64, 3, mad128, 0},
    {"add.cc.u32 %r7, 0xffffffff, 1; addc.cc.u32 %r7, 0xffffffff, 0; addc.u32 %d, %a, 0;", I32, I32,
     I32, I32, 1, NULL, 1 << 8},
    {"sub.cc.u32 %r7, 0, 1; subc.cc.u32 %r7, 0, 0; subc.u32 %d, %a, 0;", I32, I32, I32, I32, 1,
     NULL, 1 << 9},
    {"mad.hi.cc.u32 %r7, 0xffffffff, 0xffffffff, 2; madc.lo.cc.u32 %r8, 0xffffffff, 1, 0; "
     "madc.lo.u32 %d, %a, 1, 0;", I32, I32, I32, I32, 1, NULL, 1 << 8},
    {"mad.hi.cc.u32 %r7, 0xffffffff, 0xffffffff, 2; madc.hi.cc.u32 %r8, 0xffffffff, 0xffffffff, 1; "
     "madc.hi.u32 %d, %a, 0, %a;", I32, I32, I32, I32, 1, NULL, 1 << 8},
};
REF(add64, (u32)(a + b) + (a + b > 0xffffffff))
REF(sub64, (u32)(a - b) - (a < b))
REF(plus1, a + 1)
REF(minus1, a - 1)

static void integers(void **state)
{
    (void)state;
    static struct test t[MAX_TESTS];
    uint32_t n = sizeof int_tests / sizeof *int_tests;
    memcpy(t, int_tests, sizeof int_tests);
    for (uint32_t k = 0; k < n; k++)
        if (!t[k].ref) {
            t[k].ref = t[k].flags == 1 << 8   ? plus1
                       : t[k].flags == 1 << 9 ? minus1
                       : t[k].ins[0] == 'a'   ? add64
                                              : sub64;
            t[k].flags = 0;
        }
    try_all(t, n, PTX_80, "sm_80");
}

/* ---- f32, f64 ---- */

/* x + e is the exact result, e far below the last bit of x; rounded in a direction. */
static int cmp_exact(quad f, quad x, quad e)
{
    return f < x ? -1 : f > x ? 1 : e > 0 ? -1 : e < 0 ? 1 : 0;
}
static u64 round32(quad x, quad e, char mode, bool negzero)
{
    if (x != x)
        return 0x7fffffff;
    if (x == 0 && e == 0)
        return negzero ? 0x80000000 : 0;
    float f = (float)x;
    if (mode == 'n') {
        return bits32(f);
    }
    quad inf = (quad)INFINITY;
    if (x == inf || x == -inf)
        return bits32(f);
    bool neg = x < 0 || (x == 0 && e < 0);
    bool down = mode == 'm' || (mode == 'z' && !neg), up = mode == 'p' || (mode == 'z' && neg);
    int c = cmp_exact((quad)f, x, e);
    if (down && c > 0)
        f = nextafterf(f, -INFINITY);
    if (up && c < 0)
        f = nextafterf(f, INFINITY);
    if (f == 0)
        return neg ? 0x80000000 : 0;
    return bits32(f);
}
static u64 round64(quad x, quad e, char mode, bool negzero)
{
    if (x != x)
        return UINT64_C(0x7ff8000000000000);
    if (x == 0 && e == 0)
        return negzero ? UINT64_C(1) << 63 : 0;
    double f = (double)x;
    quad inf = (quad)INFINITY;
    if (x == inf || x == -inf)
        return bits64(f);
    if (mode == 'n') { /* a tie that e decides */
        double g = nextafter(f, x > (quad)f ? (double)INFINITY : -(double)INFINITY);
        quad mid = ((quad)f + (quad)g) / 2;
        if (x == mid && e != 0)
            f = (e > 0) == (g > f) ? g : f;
        return bits64(f);
    }
    bool neg = x < 0 || (x == 0 && e < 0);
    bool down = mode == 'm' || (mode == 'z' && !neg), up = mode == 'p' || (mode == 'z' && neg);
    int c = cmp_exact((quad)f, x, e);
    if (down && c > 0)
        f = nextafter(f, -(double)INFINITY);
    if (up && c < 0)
        f = nextafter(f, (double)INFINITY);
    if (f == 0)
        return neg ? UINT64_C(1) << 63 : 0;
    return bits64(f);
}
static quad sum(quad a, quad b, quad *e)
{
    quad s = a + b, z = s - a;
    *e = (a - (s - z)) + (b - z);
    if (*e != *e)
        *e = 0;
    return s;
}
static bool sb32(u64 a)
{
    return a >> 31 & 1;
}
/* sign of an exact zero a + b */
static bool zsum(bool sa, bool sb, bool zeros_both, char mode)
{
    if (zeros_both && sa == sb)
        return sa;
    return mode == 'm';
}
static u64 fadd32(u64 a, u64 b, char mode)
{
    quad e, s = sum((quad)f32_of(a), (quad)f32_of(b), &e);
    return round32(s, e, mode, zsum(sb32(a), sb32(b), f32_of(a) == 0 && f32_of(b) == 0, mode));
}
static u64 fmul32(u64 a, u64 b, char mode)
{
    return round32((quad)f32_of(a) * (quad)f32_of(b), 0, mode, sb32(a ^ b));
}
static u64 ffma32(u64 a, u64 b, u64 c, char mode)
{
    quad p = (quad)f32_of(a) * (quad)f32_of(b), e, s = sum(p, (quad)f32_of(c), &e);
    return round32(s, e, mode, zsum(sb32(a ^ b), sb32(c), p == 0 && f32_of(c) == 0, mode));
}
static u64 fdiv32(u64 a, u64 b, char mode)
{
    return round32((quad)f32_of(a) / (quad)f32_of(b), 0, mode, sb32(a ^ b));
}
static u64 fsqrt32(u64 a, char mode)
{
    return round32((quad)sqrtl((long double)f32_of(a)), 0, mode, sb32(a));
}
REF(add_rn, fadd32(a, b, 'n'))
REF(add_rz, fadd32(a, b, 'z'))
REF(add_rm, fadd32(a, b, 'm'))
REF(add_rp, fadd32(a, b, 'p'))
REF(sub_rn, fadd32(a, b ^ 0x80000000, 'n'))
REF(sub_rm, fadd32(a, b ^ 0x80000000, 'm'))
REF(mul_rn, fmul32(a, b, 'n'))
REF(mul_rz, fmul32(a, b, 'z'))
REF(mul_rm, fmul32(a, b, 'm'))
REF(mul_rp, fmul32(a, b, 'p'))
REF(fma_rn, ffma32(a, b, c, 'n'))
REF(fma_rz, ffma32(a, b, c, 'z'))
REF(fma_rm, ffma32(a, b, c, 'm'))
REF(fma_rp, ffma32(a, b, c, 'p'))
REF(div_rn, fdiv32(a, b, 'n'))
REF(div_rz, fdiv32(a, b, 'z'))
REF(div_rm, fdiv32(a, b, 'm'))
REF(div_rp, fdiv32(a, b, 'p'))
REF(sqrt_rn, fsqrt32(a, 'n'))
REF(sqrt_rp, fsqrt32(a, 'p'))
REF(sqrt_rz, fsqrt32(a, 'z'))
REF(rcp_rn, fdiv32(0x3f800000, a, 'n'))
REF(rcp_rm, fdiv32(0x3f800000, a, 'm'))
static u64 fz(u64 a)
{
    return (a & 0x7f800000) ? a : a & 0x80000000;
}
static u64 sat(u64 a)
{
    float f = f32_of(a);
    return f > 1 ? 0x3f800000 : f > 0 ? a : 0;
}
REF(add_ftz, fz(fadd32(fz(a), fz(b), 'n')))
REF(mul_ftz, fz(fmul32(fz(a), fz(b), 'n')))
REF(fma_ftz_sat, sat(fz(ffma32(fz(a), fz(b), fz(c), 'n'))))
REF(add_sat, sat(fadd32(a, b, 'n')))
REF(fneg, a ^ 0x80000000)
REF(fabs_, a & 0x7fffffff)
REF(fabs_ftz, fz(a) & 0x7fffffff)
REF(copys, (a & 0x80000000) | (b & 0x7fffffff))
/* floats order like sign and magnitude: -0 below +0 */
static s64 key32(u64 a)
{
    return a & 0x80000000 ? -1 - (s64)(a & 0x7fffffff) : (s64)a;
}
static s64 key64(u64 a)
{
    return a >> 63 ? -1 - (s64)(a << 1 >> 1) : (s64)a;
}
static u64 pick32(u64 a, u64 b, bool max, bool nan)
{
    bool na = f32_of(a) != f32_of(a), nb = f32_of(b) != f32_of(b);
    if (na || nb)
        return nan || (na && nb) ? 0x7fffffff : na ? b : a;
    return (key32(a) < key32(b)) == max ? b : a;
}
static u64 pick64(u64 a, u64 b, bool max)
{
    bool na = f64_of(a) != f64_of(a), nb = f64_of(b) != f64_of(b);
    if (na || nb)
        return na && nb ? UINT64_C(0x7ff8000000000000) : na ? b : a;
    return (key64(a) < key64(b)) == max ? b : a;
}
REF(min32, pick32(a, b, false, false))
REF(max32, pick32(a, b, true, false))
REF(min32n, pick32(a, b, false, true))
REF(max32n, pick32(a, b, true, true))
REF(min32f, pick32(fz(a), fz(b), false, false))
REF(min64, pick64(a, b, false))
REF(max64, pick64(a, b, true))

static bool sb64(u64 a)
{
    return a >> 63;
}
static u64 fadd64(u64 a, u64 b, char mode)
{
    quad e, s = sum((quad)f64_of(a), (quad)f64_of(b), &e);
    return round64(s, e, mode, zsum(sb64(a), sb64(b), f64_of(a) == 0 && f64_of(b) == 0, mode));
}
static u64 fmul64(u64 a, u64 b, char mode)
{
    return round64((quad)f64_of(a) * (quad)f64_of(b), 0, mode, sb64(a ^ b));
}
static u64 ffma64(u64 a, u64 b, u64 c, char mode)
{
    quad p = (quad)f64_of(a) * (quad)f64_of(b), e, s = sum(p, (quad)f64_of(c), &e);
    /* twice rounded only where s has its last bits at a tie */
    return round64(s, e, mode, zsum(sb64(a ^ b), sb64(c), p == 0 && f64_of(c) == 0, mode));
}
REF(dadd_rn, fadd64(a, b, 'n'))
REF(dadd_rz, fadd64(a, b, 'z'))
REF(dsub_rp, fadd64(a, b ^ UINT64_C(1) << 63, 'p'))
REF(dmul_rn, fmul64(a, b, 'n'))
REF(dmul_rm, fmul64(a, b, 'm'))
REF(dfma_rn, ffma64(a, b, c, 'n'))
REF(dfma_rz, ffma64(a, b, c, 'z'))
REF(ddiv_rn, round64((quad)(f64_of(a) / f64_of(b)), 0, 'n', sb64(a ^ b)))
REF(drcp_rn, round64((quad)(1 / f64_of(a)), 0, 'n', sb64(a)))
REF(dsqrt_rn, round64((quad)sqrt(f64_of(a)), 0, 'n', sb64(a)))
REF(dneg, a ^ UINT64_C(1) << 63)
REF(dabs, a << 1 >> 1)
REF(dcopys, (a >> 63 << 63) | (b << 1 >> 1))

/* approximations: the nearest value from long double */
static u64 appr(long double x)
{
    return x != x ? 0x7fffffff : bits32((float)x);
}
REF(ex2, appr(exp2l((long double)f32_of(a))))
REF(lg2, appr(log2l((long double)f32_of(a))))
REF(rsq, appr(1 / sqrtl((long double)f32_of(a))))
REF(sinr, appr(sinl((long double)f32_of(a))))
REF(cosr, appr(cosl((long double)f32_of(a))))
REF(tanhr, appr(tanhl((long double)f32_of(a))))
REF(rsq64, f64_of(a) != f64_of(a) || f64_of(a) < 0 ? UINT64_C(0x7ff8000000000000)
                                                  : bits64(1 / sqrt(f64_of(a))))

#define F2(ins, ref) {ins " %d, %a, %b;", F32, F32, F32, F32, 2, ref, 0}
#define F1(ins, ref) {ins " %d, %a;", F32, F32, F32, F32, 1, ref, 0}
#define F3(ins, ref) {ins " %d, %a, %b, %c;", F32, F32, F32, F32, 3, ref, 0}
#define D2(ins, ref) {ins " %d, %a, %b;", F64, F64, F64, F64, 2, ref, 0}
#define D1(ins, ref) {ins " %d, %a;", F64, F64, F64, F64, 1, ref, 0}
#define D3(ins, ref) {ins " %d, %a, %b, %c;", F64, F64, F64, F64, 3, ref, 0}
static const struct test float_tests[] = {
    F2("add.rn.f32", add_rn), F2("add.f32", add_rn), F2("add.rz.f32", add_rz),
    F2("add.rm.f32", add_rm), F2("add.rp.f32", add_rp), F2("add.rn.ftz.f32", add_ftz),
    F2("add.sat.f32", add_sat), F2("sub.rn.f32", sub_rn), F2("sub.rm.f32", sub_rm),
    F2("mul.rn.f32", mul_rn), F2("mul.rz.f32", mul_rz), F2("mul.rm.f32", mul_rm),
    F2("mul.rp.f32", mul_rp), F2("mul.ftz.f32", mul_ftz), F3("fma.rn.f32", fma_rn),
    F3("fma.rz.f32", fma_rz), F3("fma.rm.f32", fma_rm), F3("fma.rp.f32", fma_rp),
    F3("fma.rn.ftz.sat.f32", fma_ftz_sat), F3("mad.rn.f32", fma_rn), F2("div.rn.f32", div_rn),
    F2("div.rz.f32", div_rz), F2("div.rm.f32", div_rm), F2("div.rp.f32", div_rp),
    F2("div.approx.f32", div_rn), F2("div.full.f32", div_rn), F1("sqrt.rn.f32", sqrt_rn),
    F1("sqrt.rp.f32", sqrt_rp), F1("sqrt.rz.f32", sqrt_rz), F1("sqrt.approx.f32", sqrt_rn),
    F1("rcp.rn.f32", rcp_rn), F1("rcp.rm.f32", rcp_rm), F1("rcp.approx.f32", rcp_rn),
    F1("neg.f32", fneg), F1("abs.f32", fabs_), F1("abs.ftz.f32", fabs_ftz),
    F2("copysign.f32", copys), F2("min.f32", min32), F2("max.f32", max32),
    F2("min.NaN.f32", min32n), F2("max.NaN.f32", max32n), F2("min.ftz.f32", min32f),
    F1("ex2.approx.f32", ex2), F1("lg2.approx.f32", lg2), F1("rsqrt.approx.f32", rsq),
    F1("sin.approx.f32", sinr), F1("cos.approx.f32", cosr), F1("tanh.approx.f32", tanhr),
    D2("add.rn.f64", dadd_rn), D2("add.rz.f64", dadd_rz), D2("sub.rp.f64", dsub_rp),
    D2("mul.rn.f64", dmul_rn), D2("mul.rm.f64", dmul_rm), D3("fma.rn.f64", dfma_rn),
    D3("fma.rz.f64", dfma_rz), D3("mad.rn.f64", dfma_rn), D2("div.rn.f64", ddiv_rn),
    D1("rcp.rn.f64", drcp_rn), D1("sqrt.rn.f64", dsqrt_rn), D1("neg.f64", dneg),
    D1("abs.f64", dabs), D2("copysign.f64", dcopys), D2("min.f64", min64), D2("max.f64", max64),
    D1("rsqrt.approx.f64", rsq64),
};

static void floats(void **state)
{
    (void)state;
    try_all(float_tests, sizeof float_tests / sizeof *float_tests, PTX_80, "sm_80");
}

/* ---- 16-bit floats ---- */

/* a * b + c: mul with c = -0 gives the product, add with b = 1 the sum, and the signs of zeros
 * come out right. */
static u64 fma16(u64 a, u64 b, u64 c, bool bf)
{
    if (nan16(a, bf) || nan16(b, bf) || nan16(c, bf))
        return 0x7fff;
    bool ia = inf16(a, bf), ib = inf16(b, bf), sp = (a ^ b) & 0x8000;
    if (ia || ib) {
        if ((a & 0x7fff) == 0 || (b & 0x7fff) == 0 || (inf16(c, bf) && !!(c & 0x8000) != sp))
            return 0x7fff;
        return (sp ? 0x8000 : 0) | (bf ? 0x7f80 : 0x7c00);
    }
    if (inf16(c, bf))
        return c;
    quad p = q16(a, bf) * q16(b, bf), e, r = sum(p, q16(c, bf), &e);
    bool zneg = p == 0 && (c & 0x7fff) == 0 ? sp && c & 0x8000 : false;
    return near16e(r, e, zneg, bf);
}
static u64 x2(u64 a, u64 b, u64 c, bool bf)
{
    return fma16(a & 0xffff, b & 0xffff, c & 0xffff, bf) |
           fma16(a >> 16 & 0xffff, b >> 16 & 0xffff, c >> 16 & 0xffff, bf) << 16;
}
#define ONES(bf) (bf ? 0x3f80u : 0x3c00u)
#define TWO(v) ((u64)(v) | (u64)(v) << 16)
REF(add_h, fma16(a, ONES(0), b, false))
REF(sub_h, fma16(a, ONES(0), b ^ 0x8000, false))
REF(fma_h, fma16(a, b, c, false))
REF(add_b, fma16(a, ONES(1), b, true))
REF(sub_b, fma16(a, ONES(1), b ^ 0x8000, true))
REF(fma_b, fma16(a, b, c, true))
static u64 mul16(u64 a, u64 b, bool bf)
{
    u64 s = (a ^ b) & 0x8000, r = fma16(a, b, s, bf);
    return nan16(r, bf) ? r : s | (r & 0x7fff);
}
REF(mul_h1, mul16(a, b, false))
REF(mul_b1, mul16(a, b, true))
REF(add_h2, x2(a, TWO(ONES(0)), b, false))
REF(sub_h2, x2(a, TWO(ONES(0)), b ^ 0x80008000, false))
REF(fma_h2, x2(a, b, c, false))
REF(mul_h2, mul16(a & 0xffff, b & 0xffff, false) | mul16(a >> 16, b >> 16, false) << 16)
REF(add_b2, x2(a, TWO(ONES(1)), b, true))
REF(sub_b2, x2(a, TWO(ONES(1)), b ^ 0x80008000, true))
REF(fma_b2, x2(a, b, c, true))
REF(mul_b2, mul16(a & 0xffff, b & 0xffff, true) | mul16(a >> 16, b >> 16, true) << 16)
REF(neg_h, a ^ 0x8000)
REF(neg_h2, a ^ 0x80008000)
REF(abs_h, a & 0x7fff)
REF(abs_h2, a & 0x7fff7fff)
static u64 fz16(u64 a)
{
    return a & 0x7c00 ? a : a & 0x8000;
}
static u64 sat16(u64 a)
{
    return a & 0x8000 || a > 0x7c00 ? 0 : a > 0x3c00 ? 0x3c00 : a;
}
REF(add_h_ftz, fz16(fma16(fz16(a), ONES(0), fz16(b), false)))
REF(fma_h_sat, sat16(fma16(a, b, c, false)))
static s64 key16(u64 a)
{
    return a & 0x8000 ? -1 - (s64)(a & 0x7fff) : (s64)a;
}
static u64 pick16(u64 a, u64 b, bool max, bool nan, bool bf)
{
    bool na = nan16(a, bf), nb = nan16(b, bf);
    if (na || nb)
        return nan || (na && nb) ? 0x7fff : na ? b : a;
    return (key16(a) < key16(b)) == max ? b : a;
}
#define PICK2(max, nan, bf) (pick16(a & 0xffff, b & 0xffff, max, nan, bf) |                        \
                             pick16(a >> 16, b >> 16, max, nan, bf) << 16)
REF(min_h, pick16(a, b, false, false, false))
REF(max_h, pick16(a, b, true, false, false))
REF(max_hn, pick16(a, b, true, true, false))
REF(min_b, pick16(a, b, false, false, true))
REF(max_bn, pick16(a, b, true, true, true))
REF(min_h2, PICK2(false, false, false))
REF(max_h2n, PICK2(true, true, false))
REF(min_b2, PICK2(false, false, true))
REF(max_b2n, PICK2(true, true, true))
static u64 fun16(long double (*f)(long double), u64 a, bool bf)
{
    if (nan16(a, bf))
        return 0x7fff;
    long double x = inf16(a, bf) ? (a & 0x8000 ? -(long double)INFINITY : (long double)INFINITY)
                                 : (long double)q16(a, bf);
    long double y = f(x);
    if (isinf(y))
        return bf ? 0x7f80 : 0x7c00;
    return near16((quad)y, signbit(y), bf);
}
REF(ex2_h, fun16(exp2l, a, false))
REF(ex2_b, fun16(exp2l, a, true))
REF(tanh_h, fun16(tanhl, a, false))
REF(tanh_b, fun16(tanhl, a, true))
REF(ex2_h2, fun16(exp2l, a & 0xffff, false) | fun16(exp2l, a >> 16, false) << 16)
REF(ex2_b2, fun16(exp2l, a & 0xffff, true) | fun16(exp2l, a >> 16, true) << 16)
REF(tanh_h2, fun16(tanhl, a & 0xffff, false) | fun16(tanhl, a >> 16, false) << 16)
REF(tanh_b2, fun16(tanhl, a & 0xffff, true) | fun16(tanhl, a >> 16, true) << 16)

#define T2(ins, t, ref) {ins " %d, %a, %b;", t, t, t, t, 2, ref, 0}
#define T1(ins, t, ref) {ins " %d, %a;", t, t, t, t, 1, ref, 0}
#define T3(ins, t, ref) {ins " %d, %a, %b, %c;", t, t, t, t, 3, ref, 0}
static const struct test half_tests[] = {
    T2("add.rn.f16", H, add_h), T2("sub.rn.f16", H, sub_h), T2("mul.rn.f16", H, mul_h1),
    T3("fma.rn.f16", H, fma_h), T2("add.ftz.f16", H, add_h_ftz), T3("fma.rn.sat.f16", H, fma_h_sat),
    T2("add.f16x2", H2, add_h2), T2("sub.f16x2", H2, sub_h2), T2("mul.f16x2", H2, mul_h2),
    T3("fma.rn.f16x2", H2, fma_h2), T3("fma.rn.bf16", B, fma_b), T3("fma.rn.bf16x2", B2, fma_b2),
    T1("neg.f16", H, neg_h), T1("neg.f16x2", H2, neg_h2), T1("neg.bf16", B, neg_h),
    T1("neg.bf16x2", B2, neg_h2), T1("abs.f16", H, abs_h), T1("abs.f16x2", H2, abs_h2),
    T1("abs.bf16", B, abs_h), T1("abs.bf16x2", B2, abs_h2), T2("min.f16", H, min_h),
    T2("max.f16", H, max_h), T2("max.NaN.f16", H, max_hn), T2("min.bf16", B, min_b),
    T2("max.NaN.bf16", B, max_bn), T2("min.f16x2", H2, min_h2), T2("max.NaN.f16x2", H2, max_h2n),
    T2("min.bf16x2", B2, min_b2), T2("max.NaN.bf16x2", B2, max_b2n),
    T1("ex2.approx.f16", H, ex2_h), T1("ex2.approx.f16x2", H2, ex2_h2),
    T1("tanh.approx.f16", H, tanh_h), T1("tanh.approx.f16x2", H2, tanh_h2),
};
static const struct test half_tests_90[] = {
    T2("add.rn.bf16", B, add_b), T2("sub.rn.bf16", B, sub_b), T2("mul.rn.bf16", B, mul_b1),
    T2("add.bf16x2", B2, add_b2), T2("sub.bf16x2", B2, sub_b2), T2("mul.bf16x2", B2, mul_b2),
    T1("ex2.approx.ftz.bf16", B, ex2_b), T1("ex2.approx.ftz.bf16x2", B2, ex2_b2),
    T1("tanh.approx.bf16", B, tanh_b), T1("tanh.approx.bf16x2", B2, tanh_b2),
};

static void halves(void **state)
{
    (void)state;
    try_all(half_tests, sizeof half_tests / sizeof *half_tests, PTX_80, "sm_80");
    try_all(half_tests_90, sizeof half_tests_90 / sizeof *half_tests_90, PTX_90, "sm_90");
}

/* ---- comparison and selection ---- */

enum cmp { EQ, NE, LT, LE, GT, GE };
static bool icmp(s128 a, s128 b, enum cmp c)
{
    switch (c) {
    case EQ: return a == b;
    case NE: return a != b;
    case LT: return a < b;
    case LE: return a <= b;
    case GT: return a > b;
    default: return a >= b;
    }
}
/* what an ordered comparison says of a NaN, and an unordered one */
static bool fcmp(double a, double b, enum cmp c, bool unordered)
{
    if (a != a || b != b)
        return unordered;
    switch (c) {
    case EQ: return a == b;
    case NE: return a != b;
    case LT: return a < b;
    case LE: return a <= b;
    case GT: return a > b;
    default: return a >= b;
    }
}
static double h_of(u64 v, bool bf)
{
    return nan16(v, bf) ? (double)NAN
           : inf16(v, bf) ? (v & 0x8000 ? -(double)INFINITY : (double)INFINITY)
                          : (double)q16(v, bf);
}
#define CMPS(X) X(eq, EQ) X(ne, NE) X(lt, LT) X(le, LE) X(gt, GT) X(ge, GE)
#define R(n, c)                                                                                    \
    REF(n##_u16, icmp((s128)a, (s128)b, c)) REF(n##_s16, icmp(sx(a, 16), sx(b, 16), c))            \
    REF(n##_s32, icmp(sx(a, 32), sx(b, 32), c)) REF(n##_s64, icmp((s64)a, (s64)b, c))              \
    REF(n##_f32, fcmp((double)f32_of(a), (double)f32_of(b), c, false))                             \
    REF(n##_f64, fcmp(f64_of(a), f64_of(b), c, false))                                             \
    REF(n##u_f32, fcmp((double)f32_of(a), (double)f32_of(b), c, true))                             \
    REF(n##u_f64, fcmp(f64_of(a), f64_of(b), c, true))                                             \
    REF(n##_h, fcmp(h_of(a, false), h_of(b, false), c, false))                                     \
    REF(n##u_b, fcmp(h_of(a, true), h_of(b, true), c, true))
CMPS(R)
#undef R
REF(num_f32, f32_of(a) == f32_of(a) && f32_of(b) == f32_of(b))
REF(nan_f64, f64_of(a) != f64_of(a) || f64_of(b) != f64_of(b))
REF(and_xor, (sx(a, 32) < sx(b, 32)) ^ (c > 5))
REF(two_dest, (((u32)a == (u32)b) & (c > 5)) + 2 * (((u32)a != (u32)b) & (c > 5)))
REF(or_not, ((u32)a < (u32)b) | !(c > 5))
REF(set_u32, (float)f32_of(a) < f32_of(b) ? 0xffffffff : 0)
REF(set_f32, sx(a, 32) >= sx(b, 32) ? 0x3f800000 : 0)
REF(slct_s, sx(c, 32) >= 0 ? a : b)
REF(slct_f, f32_of(c) >= 0 ? a : b)
REF(lt_ftz, fcmp((double)f32_of(fz(a)), (double)f32_of(fz(b)), LT, false))
static u64 logic(u64 a, u64 b)
{
    bool p = a > 5, q = b & 1;
    return (p && q) | (p || q) << 1 | (p != q) << 2 | (u64)!p << 3 | (u64)q << 4;
}
REF(predlogic, logic((u32)a, (u32)b))
static u64 classify(double d, double least)
{
    bool small = fabs(d) < least;
    return (u64)isfinite(d) | (u64)!!isinf(d) << 1 | (u64)(d == d) << 2 | (u64)(d != d) << 3 |
           (u64)(isfinite(d) && !small) << 4 | (u64)(small && d != 0) << 5;
}
REF(class32, classify((double)f32_of(a), 0x1p-126))
REF(class64, classify(f64_of(a), 0x1p-1022))

#define SEL " selp.b32 %d, 1, 0, %p1;"
#define CM(n, u)                                                                                   \
    {"setp." #n ".u16 %p1, %a, %b;" SEL, I32, I16, I16, I16, 2, u##_u16, 0},                       \
    {"setp." #n ".u32 %p1, %a, %b;" SEL, I32, I32, I32, I32, 2, u##_u16, 0},                       \
    {"setp." #n ".u64 %p1, %a, %b;" SEL, I32, I64, I64, I64, 2, u##_u16, 0}
#define CS(n, u)                                                                                   \
    {"setp." #n ".s16 %p1, %a, %b;" SEL, I32, I16, I16, I16, 2, u##_s16, 0},                       \
    {"setp." #n ".s32 %p1, %a, %b;" SEL, I32, I32, I32, I32, 2, u##_s32, 0},                       \
    {"setp." #n ".s64 %p1, %a, %b;" SEL, I32, I64, I64, I64, 2, u##_s64, 0},                       \
    {"setp." #n ".f32 %p1, %a, %b;" SEL, I32, F32, F32, F32, 2, u##_f32, 0},                       \
    {"setp." #n ".f64 %p1, %a, %b;" SEL, I32, F64, F64, F64, 2, u##_f64, 0},                       \
    {"setp." #n "u.f32 %p1, %a, %b;" SEL, I32, F32, F32, F32, 2, u##u_f32, 0},                     \
    {"setp." #n "u.f64 %p1, %a, %b;" SEL, I32, F64, F64, F64, 2, u##u_f64, 0},                     \
    {"setp." #n ".f16 %p1, %a, %b;" SEL, I32, H, H, H, 2, u##_h, 0}
#define TESTP(t, r, fn)                                                                            \
    {"mov.b32 %r0, 0; testp.finite." #t " %p1, %a; @%p1 or.b32 %r0, %r0, 1; testp.infinite." #t    \
     " %p1, %a; @%p1 or.b32 %r0, %r0, 2; testp.number." #t " %p1, %a; @%p1 or.b32 %r0, %r0, 4; "   \
     "testp.notanumber." #t " %p1, %a; @%p1 or.b32 %r0, %r0, 8; testp.normal." #t                  \
     " %p1, %a; @%p1 or.b32 %r0, %r0, 16; testp.subnormal." #t                                     \
     " %p1, %a; @%p1 or.b32 %r0, %r0, 32;", I32, r, r, r, 1, fn, 0}
static const struct test cmp_tests[] = {
    CM(eq, eq), CM(ne, ne), CM(lt, lt), CM(le, le), CM(gt, gt), CM(ge, ge), CM(lo, lt), CM(ls, le),
    CM(hi, gt), CM(hs, ge), CS(eq, eq), CS(ne, ne), CS(lt, lt), CS(le, le), CS(gt, gt), CS(ge, ge),
    {"setp.eq.b16 %p1, %a, %b;" SEL, I32, I16, I16, I16, 2, eq_u16, 0},
    {"setp.ne.b32 %p1, %a, %b;" SEL, I32, I32, I32, I32, 2, ne_u16, 0},
    {"setp.eq.b64 %p1, %a, %b;" SEL, I32, I64, I64, I64, 2, eq_u16, 0},
    {"setp.num.f32 %p1, %a, %b;" SEL, I32, F32, F32, F32, 2, num_f32, 0},
    {"setp.nan.f64 %p1, %a, %b;" SEL, I32, F64, F64, F64, 2, nan_f64, 0},
    {"setp.lt.ftz.f32 %p1, %a, %b;" SEL, I32, F32, F32, F32, 2, lt_ftz, 0},
    {"setp.hi.u32 %p2, %c, 5; setp.lt.xor.s32 %p1, %a, %b, %p2;" SEL, I32, I32, I32, I32, 3,
     and_xor, 0},
    {"setp.hi.u32 %p2, %c, 5; setp.lt.or.u32 %p1, %a, %b, !%p2;" SEL, I32, I32, I32, I32, 3, or_not,
     0},
    {"setp.hi.u32 %p3, %c, 5; setp.eq.and.b32 %p1|%p2, %a, %b, %p3; selp.b32 %r7, 1, 0, %p1; "
     "selp.b32 %r8, 2, 0, %p2; add.u32 %d, %r7, %r8;", I32, I32, I32, I32, 3, two_dest, 0},
    {"setp.lt.u32 %p1, %a, %b; selp.b16 %d, %h3, %h3, %p1;", I16, I32, I32, I16, 3, NULL, 0},
    {"setp.lt.u32 %p1, %a, %b; selp.f64 %d, %c, 0d3FF0000000000000, %p1;", F64, I32, I32, F64, 3,
     NULL, 1 << 8},
    {"set.lt.u32.f32 %d, %a, %b;", I32, F32, F32, F32, 2, set_u32, 0},
    {"set.ge.f32.s32 %d, %a, %b;", F32, I32, I32, I32, 2, set_f32, 0},
    {"set.eq.u32.b64 %d, %a, %b;", I32, I64, I64, I64, 2, NULL, 1 << 9},
    {"slct.b32.s32 %d, %a, %b, %c;", I32, I32, I32, I32, 3, slct_s, 0},
    {"slct.f64.f32 %d, %a, %b, %c;", F64, F64, F64, F32, 3, slct_f, 0},
    {"setp.hi.u32 %p1, %a, 5; and.b32 %r7, %b, 1; setp.ne.u32 %p2, %r7, 0; and.pred %p3, %p1, %p2; "
     "selp.b32 %r0, 1, 0, %p3; or.pred %p3, %p1, %p2; @%p3 or.b32 %r0, %r0, 2; xor.pred %p3, %p1, "
     "%p2; @%p3 or.b32 %r0, %r0, 4; not.pred %p3, %p1; @%p3 or.b32 %r0, %r0, 8; mov.pred %p3, %p2; "
     "@%p3 or.b32 %r0, %r0, 16;", I32, I32, I32, I32, 2, predlogic, 0},
    TESTP(f32, F32, class32), TESTP(f64, F64, class64),
};
static const struct test cmp_tests_90[] = {
    {"setp.ltu.bf16 %p1, %a, %b;" SEL, I32, B, B, B, 2, ltu_b, 0},
    {"setp.geu.bf16 %p1, %a, %b;" SEL, I32, B, B, B, 2, geu_b, 0},
    {"setp.equ.bf16 %p1, %a, %b;" SEL, I32, B, B, B, 2, equ_b, 0},
};
REF(third, c)
REF(sel64, (u32)a < (u32)b ? c : UINT64_C(0x3ff0000000000000))
REF(set64, a == b ? 0xffffffff : 0)

static void comparisons(void **state)
{
    (void)state;
    static struct test t[MAX_TESTS];
    uint32_t n = sizeof cmp_tests / sizeof *cmp_tests;
    memcpy(t, cmp_tests, sizeof cmp_tests);
    for (uint32_t k = 0; k < n; k++)
        if (!t[k].ref) {
            t[k].ref = t[k].flags == 1 << 8 ? sel64 : t[k].flags == 1 << 9 ? set64 : third;
            t[k].flags = 0;
        }
    try_all(t, n, PTX_80, "sm_80");
    try_all(cmp_tests_90, sizeof cmp_tests_90 / sizeof *cmp_tests_90, PTX_90, "sm_90");
}

/* ---- conversions ---- */

enum pt { U8, S8, U16, S16, U32, S32, U64, S64, PF16, PBF16, PF32, PF64, NPT };
static const struct { const char *name; enum ty reg; int w; bool sign, flt; } pts[NPT] = {
    {"u8", P8, 8, false, false},   {"s8", P8, 8, true, false},   {"u16", I16, 16, false, false},
    {"s16", I16, 16, true, false}, {"u32", I32, 32, false, false}, {"s32", I32, 32, true, false},
    {"u64", I64, 64, false, false}, {"s64", I64, 64, true, false}, {"f16", H, 16, true, true},
    {"bf16", B, 16, true, true},   {"f32", F32, 32, true, true}, {"f64", F64, 64, true, true},
};

static quad value_of(enum pt t, u64 a)
{
    double d = 0;
    switch (t) {
    case PF16: d = h_of(a, false); break;
    case PBF16: d = h_of(a, true); break;
    case PF32: d = (double)f32_of(a); break;
    case PF64: d = f64_of(a); break;
    default: return pts[t].sign ? (quad)sx(a, pts[t].w) : (quad)low(a, (uint32_t)pts[t].w / 8);
    }
    return (quad)d;
}
static bool negative(enum pt t, u64 a)
{
    return pts[t].sign && a >> (pts[t].w - 1) & 1;
}
/* to an integer, still a float; |x| above 2^100 is one already */
static quad integral(quad x, char mode)
{
    quad big = 1;
    for (int k = 0; k < 100; k++)
        big *= 2;
    if (x != x || x >= big || x <= -big)
        return x;
    s128 t = (s128)x;
    quad f = (quad)t;
    if (f > x)
        f -= 1; /* floor */
    quad up = f + 1, d = x - f;
    if (d == 0)
        return f;
    switch (mode) {
    case 'm': return f;
    case 'p': return up;
    case 'z': return x < 0 ? up : f;
    default: return d < up - x ? f : d > up - x ? up : (s128)f % 2 == 0 ? f : up;
    }
}
static u64 to_int(enum pt t, enum pt from, quad x, char mode)
{
    u64 max = pts[t].sign ? (UINT64_C(1) << (pts[t].w - 1)) - 1 : UINT64_MAX >> (64 - pts[t].w);
    if (x != x)
        return from != PF64 && pts[t].w != 64 ? 0 : pts[t].sign ? ~max : max / 2 + 1;
    x = integral(x, mode);
    if (x > (quad)max)
        return max;
    quad min = pts[t].sign ? -(quad)max - 1 : 0;
    if (x < min)
        x = min;
    return (u64)(s128)x;
}
static u64 to_16(quad x, bool neg, char mode, bool bf)
{
    if (x != x)
        return 0x7fff;
    u64 inf = bf ? 0x7f80 : 0x7c00, s = neg ? 0x8000 : 0;
    quad a = x < 0 ? -x : x, qinf = (quad)INFINITY;
    if (a == qinf)
        return s | inf;
    if (mode == 'n')
        return near16(x, neg, bf);
    u64 lo = 0, hi = inf - 1;
    while (lo < hi) {
        u64 mid = (lo + hi + 1) / 2;
        if (q16(mid, bf) <= a)
            lo = mid;
        else
            hi = mid - 1;
    }
    if (q16(lo, bf) != a && mode == (neg ? 'm' : 'p'))
        lo++;
    return s | lo;
}
static u64 convert_ref(const struct test *t, u64 a)
{
    enum pt to = (enum pt)(t->flags & 15), from = (enum pt)(t->flags >> 4 & 15);
    char mode = (char)(t->flags >> 8);
    quad x = value_of(from, a);
    bool neg = negative(from, a);
    if (!pts[to].flt) {
        if (!pts[from].flt) {
            u64 v = pts[from].sign ? (u64)sx(a, pts[from].w) : low(a, (uint32_t)pts[from].w / 8);
            return pts[to].sign ? (u64)sx(v, pts[to].w) : low(v, (uint32_t)pts[to].w / 8);
        }
        return to_int(to, from, x, mode);
    }
    if (to == from && mode)
        x = integral(x, mode);
    if (to == from || !mode)
        mode = 'n';
    switch (to) {
    case PF16: return to_16(x, neg, mode, false);
    case PBF16: return to_16(x, neg, mode, true);
    case PF32: return x == 0 ? (u64)neg << 31 : round32(x, 0, mode, neg);
    default: return x == 0 ? (u64)neg << 63 : round64(x, 0, mode, neg);
    }
}

/* All pairs with the roundings they take. */
static uint32_t all_pairs(struct test *t, kl_arena *a, bool bf)
{
    uint32_t n = 0;
    for (int to = 0; to < NPT; to++)
        for (int from = 0; from < NPT; from++)
            for (const char *m = "-nzmp"; *m; m++) {
                bool tf = pts[to].flt, ff = pts[from].flt, has = to == PBF16 || from == PBF16;
                bool round = *m != '-';
                if (has != bf)
                    continue;
                bool smaller = tf && ff && (pts[to].w < pts[from].w ||
                                            (pts[to].w == 16 && pts[from].w == 16 && to != from));
                if (tf && ff && to == from ? (to == PBF16 && (*m == '-' || to == from))
                    : tf && ff             ? smaller != round
                    : tf || ff             ? !round
                                           : round)
                    continue;
                /* what PTX leaves out */
                if (tf && pts[to].w == 16 && round && *m != 'n' && *m != 'z' && to != from)
                    continue;
                if (bf && ((smaller && to == PF16) || pts[to].w == 8 || pts[from].w == 8))
                    continue;
                const char *i = round && (!tf || to == from) ? "i" : "";
                char word[8] = "";
                if (round)
                    snprintf(word, sizeof word, ".r%c%s", *m, i);
                if (to == from && !tf && pts[to].w == 8)
                    continue;
                t[n++] = (struct test){
                    .ins = kl_printf(a, "cvt%s.%s.%s %%d, %%a;", word, pts[to].name,
                                     pts[from].name),
                    .d = pts[to].reg, .a = pts[from].reg, .b = I16, .c = I16, .n = 1,
                    .flags = to | from << 4 | (round ? *m : 0) << 8};
            }
    return n;
}
REF(sat_u8_s32, sx(a, 32) < 0 ? 0 : sx(a, 32) > 255 ? 255 : a)
REF(sat_s16_u32, a > 32767 ? 32767 : a)
REF(sat_s32_s64, clamp32((s64)a))
REF(f32_sat, sat(a))
REF(f32_f64_sat, sat(round32((quad)f64_of(a), 0, 'n', sb64(a))))
REF(f32_ftz, fz(f32_of(a) != f32_of(a) ? 0x7fffffff : a))
REF(s8_r32, (u32)sx(a, 8))
REF(u16_r32, a & 0xffff)
REF(s16_r64, (u64)sx(a, 16))
REF(from_r32, (u64)sx(a, 8))
REF(pair_h, to_16((quad)f32_of(a), sb32(a), 'n', false) << 16 |
                to_16((quad)f32_of(b), sb32(b), 'n', false))
REF(pair_b, to_16((quad)f32_of(a), sb32(a), 'n', true) << 16 |
                to_16((quad)f32_of(b), sb32(b), 'n', true))
REF(pair_hz, to_16((quad)f32_of(a), sb32(a), 'z', false) << 16 |
                 to_16((quad)f32_of(b), sb32(b), 'z', false))
static u64 relu16(u64 v)
{
    return v & 0x8000 ? 0 : v;
}
REF(pair_brelu, relu16(to_16((quad)f32_of(a), sb32(a), 'n', true)) << 16 |
                    relu16(to_16((quad)f32_of(b), sb32(b), 'n', true)))
static u64 tf32(u64 a) /* 10 bits of fraction, ties away */
{
    if (f32_of(a) != f32_of(a))
        return 0x7fffffff;
    if ((a & 0x7fffffff) == 0x7f800000)
        return a;
    return (a + 0x1000) & 0xffffe000;
}
REF(tf32_rna, tf32(a))
/* 8-bit floats by search, as the others */
static double e8(u64 v, bool e4)
{
    int fb = e4 ? 3 : 2, bias = e4 ? 7 : 15, e = (int)(v & 127) >> fb, f = (int)v & ((1 << fb) - 1);
    return ldexp(e ? f + (1 << fb) : f, (e ? e : 1) - bias - fb);
}
static u64 near8(double x, bool e4)
{
    if (x != x)
        return 0x7f;
    u64 best = 0, max = e4 ? 0x7e : 0x7b;
    double a = fabs(x);
    for (u64 v = 0; v <= max; v++) {
        double d = fabs(e8(v, e4) - a), db = fabs(e8(best, e4) - a);
        if (d < db || (d == db && !(v & 1)))
            best = v;
    }
    if (a >= e8(max, e4))
        best = max;
    return best | (signbit(x) ? 0x80 : 0);
}
REF(e4_f32, near8((double)f32_of(a), true) << 8 | near8((double)f32_of(b), true))
REF(e5_f32, near8((double)f32_of(a), false) << 8 | near8((double)f32_of(b), false))
REF(e4_h, near8(h_of(a >> 16, false), true) << 8 | near8(h_of(a & 0xffff, false), true))
REF(e5_h, near8(h_of(a >> 16, false), false) << 8 | near8(h_of(a & 0xffff, false), false))
static u64 h_from_e4(u64 v)
{
    return (v & 127) == 127 ? 0x7fff : near16((quad)e8(v, true), false, false) | (v & 128) << 8;
}
static u64 h_from_e5(u64 v)
{
    return (v & 127) > 0x7c ? 0x7fff : v << 8;
}
REF(h_e4, h_from_e4(a & 255) | h_from_e4(a >> 8 & 255) << 16)
REF(h_e5, h_from_e5(a & 255) | h_from_e5(a >> 8 & 255) << 16)

static const struct test cvt_tests[] = {
    {"cvt.sat.u8.s32 %d, %a;", P8, I32, I16, I16, 1, sat_u8_s32, 0},
    {"cvt.sat.s16.u32 %d, %a;", I16, I32, I16, I16, 1, sat_s16_u32, 0},
    {"cvt.sat.s32.s64 %d, %a;", I32, I64, I16, I16, 1, sat_s32_s64, 0},
    {"cvt.sat.f32.f32 %d, %a;", F32, F32, I16, I16, 1, f32_sat, 0},
    {"cvt.rn.sat.f32.f64 %d, %a;", F32, F64, I16, I16, 1, f32_f64_sat, 0},
    {"cvt.ftz.f32.f32 %d, %a;", F32, F32, I16, I16, 1, f32_ftz, 0},
    {"cvt.s8.s32 %d, %a;", I32, I32, I16, I16, 1, s8_r32, 0},
    {"cvt.u16.u64 %d, %a;", I32, I64, I16, I16, 1, u16_r32, 0},
    {"cvt.s16.s32 %d, %a;", I64, I32, I16, I16, 1, s16_r64, 0},
    {"cvt.s64.s8 %d, %a;", I64, I32, I16, I16, 1, from_r32, 0},
    {"cvt.rn.f16x2.f32 %d, %a, %b;", I32, F32, F32, I16, 2, pair_h, 0},
    {"cvt.rn.bf16x2.f32 %d, %a, %b;", I32, F32, F32, I16, 2, pair_b, 0},
    {"cvt.rz.f16x2.f32 %d, %a, %b;", I32, F32, F32, I16, 2, pair_hz, 0},
    {"cvt.rn.relu.bf16x2.f32 %d, %a, %b;", I32, F32, F32, I16, 2, pair_brelu, 0},
    {"cvt.rna.tf32.f32 %d, %a;", I32, F32, F32, I16, 1, tf32_rna, 0},
};
static const struct test f8_tests[] = {
    {"cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;", I16, F32, F32, I16, 2, e4_f32, 0},
    {"cvt.rn.satfinite.e5m2x2.f32 %d, %a, %b;", I16, F32, F32, I16, 2, e5_f32, 0},
    {"cvt.rn.satfinite.e4m3x2.f16x2 %d, %a;", I16, H2, F32, I16, 1, e4_h, 0},
    {"cvt.rn.satfinite.e5m2x2.f16x2 %d, %a;", I16, H2, F32, I16, 1, e5_h, 0},
    {"cvt.rn.f16x2.e4m3x2 %d, %a;", I32, I16, F32, I16, 1, h_e4, 0},
    {"cvt.rn.f16x2.e5m2x2 %d, %a;", I32, I16, F32, I16, 1, h_e5, 0},
};

static void conversions(void **state)
{
    (void)state;
    static struct test t[MAX_TESTS];
    kl_env env = {.al = &kl_alloc_libc, .fail = &box_raised};
    kl_arena a = {.env = &env};
    uint32_t n = all_pairs(t, &a, false);
    assert_true(n + sizeof cvt_tests / sizeof *cvt_tests < MAX_TESTS);
    memcpy(t + n, cvt_tests, sizeof cvt_tests);
    try_all(t, n + sizeof cvt_tests / sizeof *cvt_tests, PTX_80, "sm_80");
    n = all_pairs(t, &a, true);
    try_all(t, n, PTX_90, "sm_90");
    try_all(f8_tests, sizeof f8_tests / sizeof *f8_tests,
              ".version 8.1\n.target sm_90\n.address_size 64\n", "sm_90");
    kl_arena_free(&a);
}

/* Rows of ptx.def that compute something must all have been in a test above. */
static void covered(void **state)
{
    (void)state;
    const uint32_t kinds = 1u << KL_SIM_INT | 1u << KL_SIM_FP32 | 1u << KL_SIM_FP64 |
                           1u << KL_SIM_FP16 | 1u << KL_SIM_SFU | 1u << KL_SIM_CVT;
    uint32_t missing = 0;
    for (uint32_t k = 0; k < kl_sim_nrows; k++)
        if (kinds >> kl_sim_rows[k].kind & 1 && !row_seen[k] && !box_of_clusters(kl_sim_rows[k].id)) {
            print_error("no test for %s\n", kl_sim_rows[k].id);
            missing++;
        }
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),    cmocka_unit_test(floats),
        cmocka_unit_test(halves),      cmocka_unit_test(comparisons),
        cmocka_unit_test(conversions), cmocka_unit_test(covered),
    };
    return cmocka_run_group_tests_name("sim_ops", tests, NULL, NULL);
}
