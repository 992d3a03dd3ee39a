/* test_ir.c - the IR: building, text, verifier, folding, effects, passes.
 *
 * Runs from the top folder of the project (it reads tests/opt and docs/ops.md). */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ir/ir.h"
#include "ir/meaning.h"
#include "opt/pass.h"

/* ---- a guarded world for one test ---- */

struct world {
    jmp_buf jb;
    kl_env env;
    kl_arena a;
    kl_srcmap src;
    kl_diags *d;
    long budget; /* allocations until one fails; < 0: none does */
};

static void *counting(void *user, void *ptr, size_t old, size_t size)
{
    struct world *w = user;
    (void)old;
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    if (w->budget == 0)
        return NULL;
    w->budget -= w->budget > 0;
    return realloc(ptr, size);
}

static struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof *w);
    kl_alloc *al = malloc(sizeof *al);
    *al = (kl_alloc){counting, w};
    w->budget = -1;
    w->env.al = al;
    w->env.fail = &w->jb;
    w->a.env = &w->env;
    w->src.a = &w->a;
    w->d = kl_diags_new(&kl_alloc_libc);
    kl_diags_use(w->d, &w->env, &w->src);
    return w;
}

static void world_free(struct world *w)
{
    w->d->a.env = &w->env;
    kl_arena_free(&w->d->a);
    kl_diags_use(w->d, NULL, NULL);
    kiln_diags_free(w->d);
    kl_arena_free(&w->a);
    free((void *)w->env.al);
    free(w);
}

/* NULL if it raised; then w->env.msg says why. */
static kl_fn *read_text(struct world *w, const char *text)
{
    if (setjmp(w->jb))
        return NULL;
    uint32_t file = kl_src_add(&w->src, "t.kir", text, (uint32_t)strlen(text), false);
    return kl_ir_read(&w->a, &w->src, file, w->d);
}

static const char *print_text(struct world *w, const kl_fn *f)
{
    kl_buf b = {.a = &w->a};
    kl_ir_print(&b, f);
    return kl_buf_str(&b);
}

static kl_fn *must_read(struct world *w, const char *text)
{
    kl_fn *f = read_text(w, text);
    if (!f)
        fail_msg("%s\nin\n%s", w->env.msg, text);
    return f;
}

static char *slurp(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in)
        return NULL;
    size_t cap = 1 << 20, n;
    char *s = malloc(cap);
    n = fread(s, 1, cap - 1, in);
    s[n] = 0;
    fclose(in);
    return s;
}

/* ---- building ---- */

/* y[r][0:8] = x[r][0:8] * 2, summed round a loop of n trips */
static kl_fn *build_sample(struct world *w)
{
    kl_fn *f = kl_fn_new(&w->a, "sample");
    kl_build b = {.f = f, .blk = KL_BODY};
    kl_param_add(f, (struct kl_param){"y", KL_P_ARRAY, KL_f32, 1, 0, true, false});
    kl_param_add(f, (struct kl_param){"x", KL_P_ARRAY, KL_f32, 1, 1, false, true});
    kl_param_add(f, (struct kl_param){"n", KL_P_SCALAR, KL_i64, 0, 2, false, false});
    kl_val y = kl_block_param(&b, kl_array(f, KL_f32, 1));
    kl_val x = kl_block_param(&b, kl_array(f, KL_f32, 1));
    kl_val n = kl_block_param(&b, kl_scalar(f, KL_i64));
    kl_val zero = kl_cst_i64(&b, 0), one = kl_cst_i64(&b, 1);
    kl_val vy[4] = {y, zero, n, one}, vx[4] = {x, zero, n, one};
    kl_val ay = kl_emit(&b, KL_OP_view, kl_array(f, KL_f32, 1), vy, 4, (union kl_attr){0});
    kl_val ax = kl_emit(&b, KL_OP_view, kl_array(f, KL_f32, 1), vx, 4, (union kl_attr){0});
    uint32_t dim[1] = {8};
    kl_typ tile = kl_tile(f, KL_f32, 1, dim);
    kl_val init = kl_bcast(&b, kl_cst(&b, kl_scalar(f, KL_f32), 0), 1, dim);

    kl_blk body = kl_blk_new(f);
    kl_val lo[4] = {zero, n, one, init};
    kl_val loop = kl_emit(&b, KL_OP_for, (kl_typ){0}, lo, 4,
                          (union kl_attr){.loop = {.blk = body}});
    kl_val sum = kl_result(&b, loop, 0, tile);
    kl_build in = {.f = f, .blk = body};
    kl_val iv = kl_block_param(&in, kl_scalar(f, KL_i64));
    kl_val acc = kl_block_param(&in, tile);
    int64_t step = 1;
    union kl_attr at = {.access = {.at = kl_aux_add(f, &step, 1), .n = 1}};
    kl_val la[2] = {ax, iv};
    kl_val v = kl_emit(&in, KL_OP_load, tile, la, 2, at);
    kl_val two = kl_bcast(&in, kl_cst(&in, kl_scalar(f, KL_f32), kl_f32_bits(2)), 1, dim);
    kl_val out = kl_ew2(&in, KL_OP_add, acc, kl_ew2(&in, KL_OP_mul, v, two));
    kl_emit(&in, KL_OP_yield, (kl_typ){0}, &out, 1, (union kl_attr){0});

    kl_val sa[3] = {ay, zero, sum};
    kl_emit(&b, KL_OP_store, (kl_typ){0}, sa, 3, at);
    return f;
}

static const char sample_text[] =
    "fn sample(%0: array<f32,1> y written,\n"
    "    %1: array<f32,1> x const,\n"
    "    %2: i64 n) {\n"
    "  %3 = const 0 : i64\n"
    "  %4 = const 1 : i64\n"
    "  %5 = view %0, %3 [%2] stride [%4] : array<f32,1>\n"
    "  %6 = view %1, %3 [%2] stride [%4] : array<f32,1>\n"
    "  %7 = const 0.0 : f32\n"
    "  %8 = broadcast %7 : f32[8]\n"
    "  %9 = for %3, %2, %4 carry %8 (%10: i64, %11: f32[8]) {\n"
    "    %12 = load %6[%10:8] : f32[8]\n"
    "    %13 = const 2.0 : f32\n"
    "    %14 = broadcast %13 : f32[8]\n"
    "    %15 = mul %12, %14 : f32[8]\n"
    "    %16 = add %11, %15 : f32[8]\n"
    "    yield %16\n"
    "  }\n"
    "  store %5[%3:8], %9\n"
    "}\n";

static void test_build(void **state)
{
    (void)state;
    struct world *w = world_new();
    assert_int_equal(setjmp(w->jb), 0);
    kl_fn *f = build_sample(w);
    assert_null(kl_ir_verify(f, &w->a));
    assert_string_equal(print_text(w, f), sample_text);
    assert_string_equal(print_text(w, must_read(w, sample_text)), sample_text);
    world_free(w);
}

static void test_types(void **state)
{
    (void)state;
    struct world *w = world_new();
    assert_int_equal(setjmp(w->jb), 0);
    kl_fn *f = kl_fn_new(&w->a, "t");
    uint32_t d[4] = {2, 3, 4, 5};
    kl_typ a = kl_tile(f, KL_f32, 3, d), b = kl_tile(f, KL_f32, 4, d);
    assert_int_equal(a.id, kl_tile(f, KL_f32, 3, d).id);
    assert_int_not_equal(a.id, b.id);
    assert_int_not_equal(a.id, kl_tile(f, KL_f16, 3, d).id);
    assert_int_not_equal(kl_array(f, KL_f32, 3).id, a.id);
    assert_int_equal(kl_numel(&f->type[b.id]), 120);
    assert_int_equal(kl_numel(&f->type[kl_scalar(f, KL_i32).id]), 1);
    world_free(w);
}

/* Insertion before, moving, the order of parameters, and what kl_emit refuses. */
static void test_surgery(void **state)
{
    (void)state;
    struct world *w = world_new();
    assert_int_equal(setjmp(w->jb), 0);
    kl_fn *f = must_read(w, "fn t(%x: i32 x) {\n %a = neg %x : i32\n %b = abs %a : i32\n}");
    kl_val a = {f->blk[1].first}, b = kl_last(f, KL_BODY);
    a.id = kl_in(f, a)->next;
    kl_build at = {.f = f, .blk = KL_BODY, .before = b, .loc = {3, 5}};
    kl_val c = kl_ew1(&at, KL_OP_pow2ceil, a);
    assert_int_equal(kl_in(f, c)->loc.beg, 3);
    kl_set_args(f, b, &c, 1);
    assert_null(kl_ir_verify(f, &w->a));
    kl_move_end(f, c, KL_BODY); /* now %b uses it too early */
    assert_non_null(kl_ir_verify(f, &w->a));
    kl_move_before(f, c, b);
    assert_null(kl_ir_verify(f, &w->a));
    kl_val *repl = kl_new_n(&w->a, kl_val, f->nins);
    repl[c.id] = a;
    kl_replace_all(f, repl);
    kl_remove(f, c);
    uint32_t *uses = kl_use_counts(f, &w->a);
    assert_int_equal(uses[a.id], 1);
    assert_int_equal(uses[c.id], 0);
    assert_string_equal(print_text(w, f),
                        "fn t(%0: i32 x) {\n  %1 = neg %0 : i32\n  %2 = abs %1 : i32\n}\n");
    if (setjmp(w->jb) == 0) {
        kl_ew2(&at, KL_OP_add, a, (kl_val){0});
        fail_msg("an operand that does not exist was taken");
    }
    assert_int_equal(w->env.status, KILN_E_INTERNAL);
    world_free(w);
}

static void test_clone(void **state)
{
    (void)state;
    struct world *w = world_new();
    assert_int_equal(setjmp(w->jb), 0);
    kl_fn *f = must_read(w, "fn t(%n: i64 n, %c: bool c) {\n"
                            "  %z = const 0 : i64\n"
                            "  %r = for %z, %n, %n carry %n (%i: i64, %s: i64) {\n"
                            "    %q = if %c {\n"
                            "      %a = add %i, %n : i64\n"
                            "      yield %a\n"
                            "    } else {\n"
                            "      yield %s\n"
                            "    }\n"
                            "    %b = max %q, %s : i64\n"
                            "    yield %b\n"
                            "  }\n"
                            "}");
    kl_val loop = {0};
    kl_each_ins(f, KL_BODY, v)
        if (kl_in(f, v)->op == KL_OP_for)
            loop = v;
    kl_val *map = kl_new_n(&w->a, kl_val, f->nins), out;
    kl_blk blk = kl_in(f, loop)->attr.loop.blk;
    kl_val p = {f->blk[blk.id].first};
    map[p.id] = kl_arg(f, loop, 0);
    map[kl_in(f, p)->next] = kl_arg(f, loop, 3);
    kl_build b = {.f = f, .blk = KL_BODY, .before = loop};
    kl_clone_block(&b, blk, map, &out);
    kl_val args[4] = {kl_arg(f, loop, 0), kl_arg(f, loop, 1), kl_arg(f, loop, 2), out};
    kl_set_args(f, loop, args, 4);
    assert_null(kl_ir_verify(f, &w->a));
    assert_string_equal(print_text(w, f), "fn t(%0: i64 n, %1: bool c) {\n"
                                          "  %2 = const 0 : i64\n"
                                          "  %3 = if %1 {\n"
                                          "    %4 = add %2, %0 : i64\n"
                                          "    yield %4\n"
                                          "  } else {\n"
                                          "    yield %0\n"
                                          "  }\n"
                                          "  %5 = max %3, %0 : i64\n"
                                          "  %6 = for %2, %0, %0 carry %5 (%7: i64, %8: i64) {\n"
                                          "    %9 = if %1 {\n"
                                          "      %10 = add %7, %0 : i64\n"
                                          "      yield %10\n"
                                          "    } else {\n"
                                          "      yield %8\n"
                                          "    }\n"
                                          "    %11 = max %9, %8 : i64\n"
                                          "    yield %11\n"
                                          "  }\n"
                                          "}\n");
    world_free(w);
}

/* ---- text ---- */

static const char all_ops[] =
    "fn all(%x: array<f32,2> x const, %y: array<f32,2> y written decl=5, %n: i64 n, %i: i32 i,\n"
    "       %f: f32 f, %c: bool c, %h: bf16 h,\n"
    "       %w: array<i32,1> w written) may_alias fast warps=4 stages=3 cluster=2 {\n"
    "  %add = add %f, %f : f32  %sub = sub %f, %add : f32  %mul = mul %f, %sub : f32\n"
    "  %div = div %f, %mul : f32  %divf = div.fast %f, %mul : f32  %rem = rem %i, %i : i32\n"
    "  %neg = neg %f : f32  %abs = abs %f : f32  %min = min %f, %f : f32  %max = max %f, %f : f32\n"
    "  %fmin = fmin %f, %f : f32  %fmax = fmax %f, %f : f32  %fma = fma %f, %f, %f : f32\n"
    "  %sqrt = sqrt %f : f32  %floor = floor %f : f32  %ceil = ceil %f : f32\n"
    "  %trunc = trunc %f : f32  %rint = rint %f : f32  %and = and %i, %i : i32\n"
    "  %or = or %c, %c : bool  %xor = xor %i, %i : i32  %shl = shl %i, %i : i32\n"
    "  %shr = shr %i, %i : i32  %cdiv = cdiv %n, %n : i64  %floordiv = floordiv %n, %n : i64\n"
    "  %floormod = floormod %n, %n : i64  %pow2ceil = pow2ceil %n : i64\n"
    "  %eq = eq %f, %f : bool  %ne = ne %f, %f : bool  %lt = lt %f, %f : bool\n"
    "  %le = le %f, %f : bool  %gt = gt %f, %f : bool  %ge = ge %f, %f : bool\n"
    "  %select = select %c, %h, %h : bf16  %convert = convert %h : f64\n"
    "  %cnan = convert_nan %f : f8e4m3  %bitcast = bitcast %f : u32\n"
    "  %exp = exp %f : f32  %exp2 = exp2.fast %f : f32  %log = log %f : f32\n"
    "  %rsqrt = rsqrt %f : f32  %tanh = tanh %f : f32  %erf = erf %f : f32\n"
    "  %erfc = erfc %f : f32  %sigmoid = sigmoid.fast %f : f32\n"
    "  %sin = sin %f : f32  %cos = cos.fast %f : f32  %log2 = log2 %f : f32\n"
    "  %log1p = log1p %f : f32  %expm1 = expm1 %f : f32  %pow = pow %f, %f : f32\n"
    "  %round = round %f : f32  %fmod = fmod %f, %f : f32  %copysign = copysign %f, %f : f32\n"
    "  %tf32 = tf32 %f : f32\n"
    "  %umulhi = umulhi %n, %n : i64  %popcount = popcount %i : i32\n"
    "  %clz = clz %i : i32  %ctz = ctz %i : i32\n"
    "  %z = const 0 : i64  %one = const 1 : i64\n"
    "  %pid = program_id 2 : i64  %np = num_programs 1 : i64  %sms = num_sms : i64\n"
    "  %iota = iota : i32[8]  %table = table (1, -2) : i32[2]\n"
    "  %vx = view %x, %z [%n, %n] stride [%n, %one] : array<f32,2>\n"
    "  %vy = view %y, %z [%n, %n] stride [%n, %one] : array<f32,2>\n"
    "  %vi = view %w, %z [%n] stride [%one] : array<i32,1>\n"
    "  %fill = const -inf : f32[8]  %mask = const true : bool[8]\n"
    "  %l1 = load %vx[%pid][%z:8] : f32[8]\n"
    "  %l2 = load %vx[%pid][%z:8:2] fill %fill : f32[8]\n"
    "  %l3 = load %vx[%z:8:-1][%pid] mask %mask : f32[8]\n"
    "  %l4 = load %vx[%pid][%z:8] fill %fill mask %mask : f32[8]\n"
    "  %l5 = load %vx[%pid][%z] : f32\n"
    "  %l6 = load %vx[%pid:4][%z:8] : f32[4][8]\n"
    "  store %vy[%pid][%z:8], %l1\n"
    "  store %vy[%pid][%z:8], %l2 mask %mask\n"
    "  %inside = inside %vx[%pid:4][%z:8] : bool[4][8]\n"
    "  %ki = convert %iota : i64[8]  %kj = broadcast %ki : i64[4][8]\n"
    "  %l7 = load %vx[%ki][%z:4] : f32[8][4]  %l8 = load %vx[%z:4:2][%ki] fill %l6 : f32[4][8]\n"
    "  %l9 = load %vx[%kj][%pid] mask %inside : f32[4][8]  %in2 = inside %vx[%kj][%kj] : bool[4][8]\n"
    "  store %vy[%kj][%kj], %l9 mask %in2\n"
    "  %at1 = atomic add %vy[%pid][%ki], %l1 : f32[8]\n"
    "  %at2 = atomic cas acq_rel program %vi[%ki], %iota, %iota mask %mask : i32[8]\n"
    "  %at3 = atomic max release system %vi[%pid], %i : i32\n"
    "  %at4 = atomic_load acquire %vy[%ki][%z:4] : f32[8][4]\n"
    "  atomic_store release system %vy[%pid][%z:8], %l1 mask %mask\n"
    "  %ga = gather %l6, %kj axis 1 : f32[4][8]\n"
    "  %b = broadcast %l1 : f32[4][8]  %r = reshape %b : f32[8][4]\n"
    "  %p = permute %b (1, 0) : f32[8][4]  %cat = cat %b, %l6 axis 0 : f32[8][8]\n"
    "  %flip = flip %b axis 1 : f32[4][8]  %ex = extract %b[%z][%z:4] : f32[4]\n"
    "  %in = insert %b[%z][%z:4], %ex : f32[4][8]\n"
    "  %red = reduce add %b axis 1 : f32[4][1]\n"
    "  %rfn = reduce_fn %b axis 0 commutative : f32[1][8] (%u: f32, %v: f32) {\n"
    "    %s = fma %u, %v, %f : f32\n"
    "    yield %s\n"
    "  }\n"
    "  %rf1, %rf2 = reduce_fn %b, %inside axis 1 (%u1: f32, %u2: bool, %v1: f32, %v2: bool) {\n"
    "    %s1 = add %u1, %v1 : f32  %s2 = xor %u2, %v2 : bool\n"
    "    yield %s1, %s2\n"
    "  }\n"
    "  %sc = scan %b axis 1 : f32[4][8] (%u3: f32, %v3: f32) { yield %v3 }\n"
    "  %sc1, %sc2 = scan %rf1, %rf2 axis 0 (%u4: f32, %u5: bool, %v4: f32, %v5: bool) { yield %u4, %v5 }\n"
    "  %am = argmax %b axis 0 : i32[1][8]  %an = argmin %b axis 1 : i32[4][1]\n"
    "  %acc = const 0.0 : f32[4][4]  %dot = dot %b, %p, %acc : f32[4][4]\n"
    "  %r1, %r2 = for %z, %n, %one unroll 4 carry %dot, %f (%iv: i64, %a1: f32[4][4], %a2: f32) {\n"
    "    yield %a1, %a2\n"
    "  }\n"
    "  for %i, %i, %i (%jv: i32) { yield }\n"
    "  %w1 = while %n (%k: i64) { %t = gt %k, %z : bool yield %t }\n"
    "        do (%k2: i64) { %m = sub %k2, %one : i64 yield %m }\n"
    "  %i1, %i2 = if %c { yield %n, %f } else { yield %w1, %r2 }\n"
    "}\n";

/* Each operation of ops.def is read, printed, and read back to the same. */
static void test_round_trip(void **state)
{
    (void)state;
    struct world *w = world_new();
    kl_fn *f = must_read(w, all_ops);
    bool seen[KL_NOP] = {false};
    for (uint32_t id = 1; id < f->nins; id++)
        seen[f->ins[id].op] = true;
    for (int op = 1; op < KL_NOP; op++)
        if (!seen[op])
            fail_msg("%s does not appear in the text of all operations", kl_ops[op].name);
    const char *one = print_text(w, f);
    kl_fn *g = must_read(w, one);
    assert_string_equal(print_text(w, g), one);
    assert_true(g->may_alias && g->fast && g->warps == 4 && g->stages == 3 && g->cluster == 2);
    assert_int_equal(g->param[1].decl, 5);
    world_free(w);
}

static void test_constants(void **state)
{
    (void)state;
    static const struct { enum kl_elem e; uint64_t bits; const char *text; } row[] = {
        {KL_bool, 1, "true"}, {KL_bool, 0, "false"},
        {KL_i32, (uint64_t)INT32_MIN, "-2147483648"}, {KL_i32, 7, "7"},
        {KL_u32, 4294967295u, "4294967295"}, {KL_u8, 255, "255"},
        {KL_i64, (uint64_t)INT64_MIN, "-9223372036854775808"},
        {KL_i64, INT64_MAX, "9223372036854775807"},
        {KL_u64, UINT64_MAX, "18446744073709551615"},
        {KL_f32, 0, "0.0"}, {KL_f32, 0x80000000, "-0.0"}, {KL_f32, 0x3f800000, "1.0"},
        {KL_f32, 0xbf000000, "-0.5"}, {KL_f32, 0x3f600000, "0.875"}, {KL_f32, 0x3e800000, "0.25"},
        {KL_f32, 0x3dcccccd, "0x1.99999ap-4"}, {KL_f32, 1, "0x1p-149"},
        {KL_f32, 0x007fffff, "0x1.fffffcp-127"}, {KL_f32, 0x7f7fffff, "0x1.fffffep+127"},
        {KL_f32, 0x7f800000, "inf"}, {KL_f32, 0xff800000, "-inf"},
        {KL_f32, 0x7fc00000, "nan(0x7fc00000)"}, {KL_f32, 0xffc00001, "nan(0xffc00001)"},
        {KL_f32, 0x7f800001, "nan(0x7f800001)"}, {KL_f32, 0x49742400, "0x1.e848p+19"},
        {KL_f64, 1, "0x1p-1074"}, {KL_f64, 0x000fffffffffffff, "0x1.ffffffffffffep-1023"},
        {KL_f64, 0x7fefffffffffffff, "0x1.fffffffffffffp+1023"},
        {KL_f64, 0x3fb999999999999a, "0x1.999999999999ap-4"},
        {KL_f64, 0x7ff8000000000000, "nan(0x7ff8000000000000)"},
        {KL_f16, 0x0001, "0x1p-24"}, {KL_f16, 0x7bff, "65504.0"}, {KL_f16, 0x7c00, "inf"},
        {KL_f16, 0x7e01, "nan(0x7e01)"}, {KL_bf16, 0x3dcd, "0x1.9ap-4"}, {KL_bf16, 0x4120, "10.0"},
        {KL_f8e4m3, 0x7e, "448.0"}, {KL_f8e4m3, 1, "0x1p-9"}, {KL_f8e4m3, 0xff, "nan(0xff)"},
        {KL_f8e5m2, 0xfb, "-57344.0"}, {KL_f8e5m2, 0x7c, "inf"}, {KL_f8e5m2, 0x7d, "nan(0x7d)"},
        {KL_i8, (uint64_t)-128, "-128"}, {KL_i16, (uint64_t)-32768, "-32768"}, {KL_u16, 65535, "65535"},
    };
    struct world *w = world_new();
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char text[256], want[256];
        snprintf(text, sizeof text, "fn c() { %%0 = const %s : %s }", row[i].text,
                 kl_elems[row[i].e].name);
        snprintf(want, sizeof want, "fn c() {\n  %%0 = const %s : %s\n}\n", row[i].text,
                 kl_elems[row[i].e].name);
        kl_fn *f = must_read(w, text);
        assert_int_equal(f->ins[f->blk[1].first].attr.bits, row[i].bits);
        assert_string_equal(print_text(w, f), want);
    }
    world_free(w);
}

/* What the reader and the verifier refuse, and what they say. */
static void test_bad_text(void **state)
{
    (void)state;
#define P "fn t(%x: i32 x, %f: f32 f, %n: i64 n, %c: bool c, %a: array<f32,2> a) {\n" \
          " %z = const 0 : i64 %t = iota : i32[4] %m = const 1.0 : f32[4] " \
          " %v = view %a, %z [%n, %n] stride [%n, %n] : array<f32,2> "
#define K "%k = convert %t : i64[4] %k3 = extract %k[%z:3] : i64[3] %k4 = reshape %k : i64[2][2] " \
          "%u = view %a, %z [%n, %n, %n] stride [%n, %n, %n] : array<f32,3> "
    static const struct { const char *text, *want; } row[] = {
        {"", "`fn` is missing"},
        {"fn", "name of the function"},
        {"fn t(", "`)` is missing"},
        {"fn t() {", "`}` is missing"},
        {"fn t() { } x", "goes on behind"},
        {"fn t(%x: i32) { }", "name of the parameter"},
        {"fn t(%x: i33 x) { }", "element type"},
        {"fn t() { %a = addd %b, %c : i32 }", "not an operation"},
        {"fn t() { %a = neg %b : i32 }", "%b is not defined"},
        {P "%q = neg %x : i32 %q = neg %x : i32 }", "defined twice"},
        {P "%q = neg %x }", "`:` is missing"},
        {P "neg %x : i32 }", "one result"},
        {P "%q = add %x : i32 }", "has 1 operands, needs 2"},
        {P "%q = add %x, %x, %x : i32 }", "has 3 operands, needs 2"},
        {P "%q = add %x, %x : i64 }", "gives i32 here"},
        {P "%q = lt %x, %x : i32 }", "gives bool here"},
        {P "%q = add.fast %x, %x : i32 }", "no fast form"},
        {P "%q = add %x, %n : i32 }", "of types i32 and i64"},
        {P "%q = add %x, %t : i32 }", "the shapes differ"},
        {P "%q = add %a, %a : array<f32,2> }", "not a tile"},
        {P "%q = rem %f, %f : f32 }", "does not exist on f32"},
        {P "%q = sqrt %x : i32 }", "does not exist on i32"},
        {P "%q = add %c, %c : bool }", "does not exist on bool"},
        {P "%q = select %x, %x, %x : i32 }", "not bool"},
        {P "%q = bitcast %f : i64 }", "differ in size"},
        {P "%q = convert %m : i32 }", "the shapes differ"},
        {P "%q = const 1 : bool }", "not a constant"},
        {P "%q = const 1.5 : i32 }", "not a constant"},
        {P "%q = const 256 : u8 }", "not a constant"},
        {P "%q = const -1 : u32 }", "not a constant"},
        {P "%q = const 2147483648 : i32 }", "not a constant"},
        {P "%q = const nan(0x123456789) : f32 }", "not a constant"},
        {P "%q = const 0x1.8p : f32 }", "not a constant"},
        {P "%q = const 1 : array<f32,1> }", "not a constant"},
        {P "%q = program_id 3 : i64 }", "axis 3"},
        {P "%q = program_id 0 : i32 }", "not i64"},
        {P "%q = iota : f32[4] }", "not i32[n]"},
        {P "%q = iota : i32[2][2] }", "not i32[n]"},
        {P "%q = iota : i32[0] }", "size 0"},
        {P "%q = iota : i32[1][1][1][1][1] }", "at most 4 axes"},
        {P "%q = view %a, %z [%n] stride [%n] : array<i32,1> }", "gives array<i32,1>"},
        {P "%q = view %a, %z [%n] stride [%n, %n] : array<f32,1> }", "operands, needs"},
        {P "%q = view %x, %z [%n] stride [%n] : array<f32,1> }", "operand 0 is i32"},
        {P "%q = load %a[%z][%z] : f32 }", "without a view"},
        {P "%q = load %v[%z] : f32 }", "1 subscripts on array<f32,2>"},
        {P "%q = load %v[%z][%z:4] : f32[5] }", "sections do not give"},
        {P "%q = load %v[%z][%z:4:0] : f32[4] }", "step of 0"},
        {P "%q = load %v[%z][%z:4] : i32[4] }", "moves i32[4]"},
        {P "%q = load %v[%z][%x:4] : f32[4] }", "not an i64"},
        {P "%q = load %v[%z][%z:4] fill %f : f32[4] }", "fill of type f32"},
        {P "%q = load %v[%z][%z:4] mask %c : f32[4] }", "mask of type bool"},
        {P "store %v[%z][%z:4], %t }", "moves i32[4]"},
        {P "store %v[%z][%z:4], %m fill %m }", "fill or mask that it cannot have"},
        {P "%q = store %v[%z][%z:4], %m }", "no result"},
        {P "%q = inside %v[%z][%z:4] : i32[4] }", "not bool"},
        {P K "%q = load %v[%t][%z] : f32[4] }", "operand 1 is i32[4]"},
        {P K "%q = load %v[%k][%z:2] : f32[4][3] }", "sections do not give"},
        {P K "%q = load %v[%k][%z] : f32[2][2] }", "sections do not give"},
        {P K "%q = load %v[%k3][%k] : f32[4] }", "has an index i64[3] for a tile f32[4]"},
        {P K "%q = load %u[%k][%k][%z:2] : f32[4][4][2] }", "2 index tiles beside sections"},
        {P K "%q = load %u[%k4][%z][%z:2] : f32[2][2] }", "has an index i64[2][2] for axis 0"},
        {P K "%q = extract %m[%k] : f32[4] }", "has an index tile on a tile"},
        {P K "%q = gather %m, %t axis 0 : f32[4] }", "by an index i32[4]"},
        {P K "%q = gather %m, %k3 axis 0 : f32[4] }", "gives f32[4] by an index i64[3]"},
        {P K "%q = gather %m, %k axis 1 : f32[4] }", "from axis 1 of f32[4]"},
        {P K "%q = atomic %v[%z][%k], %m : f32[4] }", "add, min, max, and, or, xor, xchg or cas is missing"},
        {P K "%q = atomic min %v[%z][%k], %m : f32[4] }", "min does not exist on f32"},
        {P K "%q = atomic add %v[%z][%k], %t : f32[4] }", "takes i32[4] for a tile f32[4]"},
        {P K "%q = atomic cas %v[%z][%k], %m : f32[4] }", "`,` is missing"},
        {P K "%q = atomic_load release %v[%z][%z] : f32 }", "release: a load"},
        {P K "atomic_store acquire %v[%z][%z], %f }", "acquire: a store"},
        {P K "%q = atomic_load %v[%z][%k] fill %m : f32[4] }", "fill or mask that it cannot have"},
        {P K "%q = reduce_fn %m axis 0 : f32[1] (%u0: f32, %w0: f32) { "
           "%l = atomic add %v[%z][%z], %u0 : f32 yield %l } }", "with an effect"},
        {P "%q = broadcast %m : f32[5] }", "axis 0"},
        {P "%q = broadcast %m : f32 }", "lowers the rank"},
        {P "%q = broadcast %m : i32[4] }", "changes the element type"},
        {P "%q = reshape %m : f32[5] }", "numbers of elements differ"},
        {P "%q = permute %m (1) : f32[4] }", "no permutation"},
        {P "%q = permute %m (0, 1) : f32[4] }", "names 2 axes"},
        {P "%q = cat %m, %t axis 0 : f32[8] }", "joins f32[4] and i32[4]"},
        {P "%q = cat %m, %m axis 0 : f32[9] }", "must give f32[8]"},
        {P "%q = cat %m, %m axis 1 : f32[8] }", "has axis 1"},
        {P "%q = flip %m axis 1 : f32[4] }", "has axis 1"},
        {P "%q = extract %m[%z][%z:2] : f32[2] }", "2 subscripts"},
        {P "%q = insert %m[%z:2], %t : f32[4] }", "sections do not give"},
        {P "%q = reduce add %m axis 0 : f32[4] }", "must give f32[1]"},
        {P "%q = reduce add %m axis 1 : f32[1] }", "has axis 1"},
        {P "%q = reduce sub %m axis 0 : f32[1] }", "cannot fold"},
        {P "%q = reduce and %m axis 0 : f32[1] }", "cannot fold"},
        {P "%q = argmax %m axis 0 : f32[1] }", "must give i32[1]"},
        {P "%q = dot %m, %m, %m : f32[4] }", "multiplies"},
        {P "%q = reduce_fn %m axis 0 : f32[1] (%u: f32) { yield %u } }", "1 parameters, needs 2"},
        {P "%q = reduce_fn %m axis 0 : f32[1] (%u: f32, %w: f32) { yield %x } }", "one f32"},
        {P "%q = reduce_fn %m axis 0 : f32[1] (%u: f32, %w: f32) { "
           "%l = load %v[%z][%z] : f32 yield %l } }", "with an effect"},
        {P "%q = reduce_fn %m axis 0 : f32[1] (%u: f32, %w: f32) { "
           "%r = if %c { %l = load %v[%z][%z] : f32 yield %l } else { yield %u } yield %r } }", "with an effect"},
        {P "%s = const 1.0 : f32[2] %q, %r = reduce_fn %m, %s axis 0 (%u: f32, %w: f32, %g: f32, %h: f32) "
           "{ yield %u, %w } }", "operand 1 is f32[2]"},
        {P "%q = reduce_fn %m, %m axis 0 (%u: f32, %w: f32, %g: f32, %h: f32) { yield %u, %w } }",
           "1 names for 2 results"},
        {P "%q, %r = reduce_fn %m, %m axis 0 (%u: f32, %w: f32) { yield %u, %w } }", "2 parameters, needs 4"},
        {P "%q, %r = scan %m, %m axis 1 (%u: f32, %w: f32, %g: f32, %h: f32) { yield %u, %w } }", "no axis 1"},
        {P "%q, %r = scan %m, %m axis 0 (%u: f32, %w: f32, %g: f32, %h: f32) { yield %u } }", "one of each"},
        {P "%q = scan %m axis 0 : f32[1] (%u: f32, %w: f32) { yield %u } }", "must give f32[4]"},
        {P "%r = for %z, %n, %z carry %f (%i: i64, %b: i64) { yield %f } }", "parameter 1"},
        {P "%r = for %z, %n, %z carry %f (%i: i64, %b: f32) { yield %n } }", "yields i64"},
        {P "%r = for %z, %n, %z carry %f (%i: i64, %b: f32) { yield } }", "yields 0 values"},
        {P "%r = for %z, %n, %z carry %f (%i: i64) { yield %f } }", "1 parameters, needs 2"},
        {P "for %z, %x, %z (%i: i64) { yield } }", "different types"},
        {P "for %z, %n (%i: i64) { yield } }", "lo, hi, step"},
        {P "for %f, %f, %f (%i: f32) { yield } }", "not an i64"},
        {P "for %z, %n, %z (%i: i64) { } }", "does not end in yield"},
        {P "for %z, %n, %z (%i: i64) { yield yield } }", "does not end its block"},
        {P "%r = while %n (%k: i64) { yield %k } do (%l: i64) { yield %l } }", "must be bool"},
        {P "%r = while %n (%k: i64) { yield %c } do (%l: i64) { yield %f } }", "must be i64"},
        {P "%r = if %c { yield %n } else { yield %f } }", "must be i64"},
        {P "%r = if %c { yield %n } else { yield } }", "yields 0 values"},
        {P "if %x { yield } else { yield } }", "not a bool"},
        {P "%r, %s = if %c { yield %n } else { yield %n } }", "2 names for 1 results"},
        {P "if %c { %k = neg %x : i32 yield } else { yield } %q = neg %k : i32 }",
         "not visible here"},
        {P "yield }", "ends the body"},
        {P "%q = result 0 : i32 }", "not written as an instruction"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct world *w = world_new();
        if (read_text(w, row[i].text))
            fail_msg("taken: %s", row[i].text);
        assert_int_equal(w->env.status, KILN_E_COMPILE);
        if (!strstr(w->env.msg, row[i].want))
            fail_msg("%s\nsays: %s\nnot:  %s", row[i].text, w->env.msg, row[i].want);
        assert_int_equal(kiln_diags_count(w->d), 1);
        assert_string_equal(kiln_diags_at(w->d, 0)->code, "K0901");
        world_free(w);
    }
}

/* Text cut anywhere is refused or read, never a crash. */
static void test_cut_text(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof all_ops - 2; n += 7) {
        struct world *w = world_new();
        char *cut = strndup(all_ops, n);
        assert_null(read_text(w, cut));
        assert_int_equal(w->env.status, KILN_E_COMPILE);
        world_free(w);
        free(cut);
    }
}

/* ---- damage that no text can express ---- */

static kl_val find_op(const kl_fn *f, enum kl_op op)
{
    for (uint32_t id = 1; id < f->nins; id++)
        if (f->ins[id].op == op && f->ins[id].blk.id)
            return (kl_val){id};
    fail_msg("no %s", kl_ops[op].name);
    return (kl_val){0};
}

typedef void damage_fn(kl_fn *f);
static void d_next(kl_fn *f) { kl_in(f, find_op(f, KL_OP_store))->next = 9999; }
static void d_cycle(kl_fn *f) { f->ins[f->blk[1].last].next = f->blk[1].first; }
static void d_prev(kl_fn *f) { kl_in(f, find_op(f, KL_OP_for))->prev = 0; }
static void d_last(kl_fn *f) { f->blk[1].last = f->ins[f->blk[1].last].prev; }
static void d_op(kl_fn *f) { kl_in(f, find_op(f, KL_OP_mul))->op = KL_NOP + 5; }
static void d_blk(kl_fn *f) { kl_in(f, find_op(f, KL_OP_mul))->blk = KL_BODY; }
static void d_type(kl_fn *f) { kl_in(f, find_op(f, KL_OP_mul))->type.id = f->ntype; }
static void d_pool(kl_fn *f) { kl_in(f, find_op(f, KL_OP_mul))->args = f->nargs; }
static void d_arg(kl_fn *f) { f->args[kl_in(f, find_op(f, KL_OP_mul))->args].id = 0; }
static void d_order(kl_fn *f) { kl_move_before(f, find_op(f, KL_OP_mul), find_op(f, KL_OP_load)); }
static void d_owner(kl_fn *f) { f->blk[2].owner = find_op(f, KL_OP_store); }
static void d_own(kl_fn *f) { kl_in(f, find_op(f, KL_OP_for))->attr.loop.blk.id = 77; }
static void d_body(kl_fn *f) { kl_in(f, find_op(f, KL_OP_for))->attr.loop.blk = KL_BODY; }
static void d_result(kl_fn *f) { kl_remove(f, find_op(f, KL_OP_result)); }
static void d_index(kl_fn *f) { kl_in(f, find_op(f, KL_OP_result))->attr.result.index = 1; }
static void d_far(kl_fn *f) { kl_move_end(f, find_op(f, KL_OP_result), KL_BODY); }
static void d_param(kl_fn *f) { kl_in(f, (kl_val){f->blk[1].first})->attr.index = 3; }
static void d_count(kl_fn *f) { f->blk[2].nparam = 1; }
static void d_fparam(kl_fn *f) { f->nparam--; }
static void d_ptype(kl_fn *f) { f->param[0].elem = KL_i32; }
static void d_yield(kl_fn *f) { kl_remove(f, find_op(f, KL_OP_yield)); }
static void d_bits(kl_fn *f) { kl_in(f, find_op(f, KL_OP_broadcast))->prev = 0; }
static void d_canon(kl_fn *f)
{
    kl_in(f, kl_arg(f, find_op(f, KL_OP_broadcast), 0))->attr.bits = UINT64_MAX;
}
static void d_aux(kl_fn *f) { kl_in(f, find_op(f, KL_OP_load))->attr.access.at = 1000; }
static void d_kind(kl_fn *f) { f->type[kl_in(f, find_op(f, KL_OP_mul))->type.id].kind = 9; }
static void d_lost(kl_fn *f)
{
    f->nins++; /* an instruction that says it stands in a block, and does not */
    f->ins[f->nins - 1] = *kl_in(f, find_op(f, KL_OP_mul));
}

static void damage_one(damage_fn *fn, const char *want)
{
    struct world *w = world_new();
    assert_int_equal(setjmp(w->jb), 0);
    kl_fn *f = build_sample(w);
    if (f->nins + 1 >= f->cins)
        f->ins = kl_vec_grow(&w->a, f->ins, &f->cins, sizeof *f->ins, f->nins + 2);
    fn(f);
    const char *msg = kl_ir_verify(f, &w->a);
    if (!msg || !strstr(msg, want))
        fail_msg("says %s, not %s", msg ? msg : "nothing", want);
    world_free(w);
}

static void test_damage(void **state)
{
    (void)state;
    static const struct { damage_fn *fn; const char *want; } row[] = {
        {d_next, "does not exist"}, {d_cycle, "more than one place"}, {d_prev, "predecessor"},
        {d_last, "which names"}, {d_op, "number"}, {d_blk, "but names block"},
        {d_type, "type that does not exist"}, {d_pool, "outside the pool"}, {d_arg, "no value"},
        {d_order, "not visible"}, {d_owner, "not the owner"}, {d_own, "does not exist"},
        {d_body, "does not exist"}, {d_result, "does not stand behind"},
        {d_index, "does not stand behind"}, {d_far, "does not stand behind"},
        {d_param, "in place"}, {d_count, "counts"}, {d_fparam, "the function 2"},
        {d_ptype, "not that of parameter"}, {d_yield, "end in yield"}, {d_bits, "predecessor"},
        {d_canon, "not a f32"}, {d_aux, "steps outside"}, {d_kind, "kind"}, {d_lost, "no block's"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        damage_one(row[i].fn, row[i].want);
}

/* ---- folding ---- */

static uint64_t F(float x)
{
    return kl_f32_bits(x);
}

static void test_fold(void **state)
{
    (void)state;
    const uint64_t inf = 0x7f800000, ninf = 0xff800000, nan = 0x7fc00000, nz = 0x80000000;
    const uint64_t min = (uint64_t)INT32_MIN, max = INT32_MAX, minus = UINT64_MAX;
    const uint64_t min64 = (uint64_t)INT64_MIN;
#define I(x) ((uint64_t)(int64_t)(x))
    const struct { enum kl_op op; enum kl_elem to, e; uint64_t v[3], want; } row[] = {
        {KL_OP_add, KL_i32, KL_i32, {max, 1}, min},
        {KL_OP_sub, KL_u32, KL_u32, {0, 1}, 0xffffffff},
        {KL_OP_mul, KL_i64, KL_i64, {min64, minus}, min64},
        {KL_OP_neg, KL_i32, KL_i32, {min}, min}, {KL_OP_abs, KL_i32, KL_i32, {min}, min},
        {KL_OP_abs, KL_i32, KL_i32, {I(-5)}, 5},
        {KL_OP_div, KL_i32, KL_i32, {7, 0}, minus}, {KL_OP_div, KL_i32, KL_i32, {min, minus}, min},
        {KL_OP_div, KL_i32, KL_i32, {I(-7), 2}, I(-3)},
        {KL_OP_div, KL_u32, KL_u32, {7, 0}, 0xffffffff},
        {KL_OP_rem, KL_i32, KL_i32, {7, 0}, 7}, {KL_OP_rem, KL_i32, KL_i32, {min, minus}, 0},
        {KL_OP_rem, KL_i32, KL_i32, {I(-7), 2}, minus},
        {KL_OP_cdiv, KL_i32, KL_i32, {7, 2}, 4}, {KL_OP_cdiv, KL_i32, KL_i32, {I(-7), 2}, I(-3)},
        {KL_OP_cdiv, KL_i32, KL_i32, {7, 0}, minus},
        {KL_OP_cdiv, KL_i32, KL_i32, {min, minus}, min},
        {KL_OP_cdiv, KL_i32, KL_i32, {max, 2}, 1073741824},
        {KL_OP_cdiv, KL_u32, KL_u32, {0xffffffff, 2}, 0x80000000},
        {KL_OP_cdiv, KL_u32, KL_u32, {3, 0}, 0xffffffff},
        {KL_OP_floordiv, KL_i32, KL_i32, {I(-7), 2}, I(-4)},
        {KL_OP_floordiv, KL_i32, KL_i32, {7, I(-2)}, I(-4)},
        {KL_OP_floordiv, KL_i32, KL_i32, {7, 0}, minus},
        {KL_OP_floordiv, KL_i64, KL_i64, {min64, minus}, min64},
        {KL_OP_floormod, KL_i32, KL_i32, {I(-7), 2}, 1},
        {KL_OP_floormod, KL_i32, KL_i32, {7, I(-4)}, minus},
        {KL_OP_floormod, KL_i32, KL_i32, {I(-7), 0}, I(-7)},
        {KL_OP_floormod, KL_i32, KL_i32, {min, minus}, 0},
        {KL_OP_pow2ceil, KL_i32, KL_i32, {0}, 1}, {KL_OP_pow2ceil, KL_i32, KL_i32, {I(-9)}, 1},
        {KL_OP_pow2ceil, KL_i32, KL_i32, {1000}, 1024},
        {KL_OP_pow2ceil, KL_i32, KL_i32, {1024}, 1024},
        {KL_OP_pow2ceil, KL_i32, KL_i32, {max}, min},
        {KL_OP_pow2ceil, KL_u32, KL_u32, {0x80000000}, 0x80000000},
        {KL_OP_pow2ceil, KL_u32, KL_u32, {0x80000001}, 0},
        {KL_OP_pow2ceil, KL_u64, KL_u64, {UINT64_MAX}, 0},
        {KL_OP_shl, KL_i32, KL_i32, {1, 33}, 0}, {KL_OP_shl, KL_i32, KL_i32, {1, 31}, min},
        {KL_OP_shl, KL_i32, KL_i32, {1, minus}, 0}, {KL_OP_shr, KL_i32, KL_i32, {min, 99}, minus},
        {KL_OP_shr, KL_i32, KL_i32, {I(-8), 1}, I(-4)}, {KL_OP_shr, KL_u32, KL_u32, {8, 32}, 0},
        {KL_OP_shr, KL_i64, KL_i64, {min64, 63}, minus}, {KL_OP_shl, KL_u64, KL_u64, {1, 64}, 0},
        {KL_OP_and, KL_bool, KL_bool, {1, 0}, 0}, {KL_OP_xor, KL_bool, KL_bool, {1, 1}, 0},
        {KL_OP_or, KL_i64, KL_i64, {min64, 1}, min64 + 1},
        {KL_OP_lt, KL_bool, KL_u32, {1, 0xffffffff}, 1}, {KL_OP_lt, KL_bool, KL_i32, {1, minus}, 0},
        {KL_OP_min, KL_f32, KL_f32, {0, nz}, nz}, {KL_OP_min, KL_f32, KL_f32, {nz, 0}, nz},
        {KL_OP_max, KL_f32, KL_f32, {nz, 0}, 0}, {KL_OP_max, KL_f32, KL_f32, {0, nz}, 0},
        {KL_OP_max, KL_f32, KL_f32, {inf, nan}, nan}, {KL_OP_min, KL_f32, KL_f32, {nan, ninf}, nan},
        {KL_OP_fmax, KL_f32, KL_f32, {ninf, nan}, ninf},
        {KL_OP_fmin, KL_f32, KL_f32, {nan, F(1)}, F(1)},
        {KL_OP_fmax, KL_f32, KL_f32, {nz, 0}, 0}, {KL_OP_fmin, KL_f32, KL_f32, {nan, nan}, nan},
        {KL_OP_neg, KL_f32, KL_f32, {0}, nz}, {KL_OP_abs, KL_f32, KL_f32, {0xffc00000}, nan},
        {KL_OP_eq, KL_bool, KL_f32, {nan, nan}, 0}, {KL_OP_ne, KL_bool, KL_f32, {nan, nan}, 1},
        {KL_OP_ge, KL_bool, KL_f32, {nan, F(1)}, 0}, {KL_OP_eq, KL_bool, KL_f32, {0, nz}, 1},
        {KL_OP_div, KL_f32, KL_f32, {F(1), nz}, ninf},
        {KL_OP_fma, KL_f32, KL_f32, {F(0x1.001p0f), F(0x1.001p0f), F(-0x1.002p0f)}, F(0x1p-24f)},
        {KL_OP_sqrt, KL_f32, KL_f32, {nz}, nz}, {KL_OP_rint, KL_f32, KL_f32, {F(2.5f)}, F(2)},
        {KL_OP_rint, KL_f32, KL_f32, {F(-0.5f)}, nz}, {KL_OP_ceil, KL_f32, KL_f32, {F(-0.5f)}, nz},
        {KL_OP_floor, KL_f32, KL_f32, {F(-0.5f)}, F(-1)},
        {KL_OP_trunc, KL_f32, KL_f32, {F(-1.5f)}, F(-1)},
        {KL_OP_exp, KL_f32, KL_f32, {0}, F(1)}, {KL_OP_exp, KL_f32, KL_f32, {ninf}, 0},
        {KL_OP_exp2, KL_f32, KL_f32, {F(-3)}, F(0.125f)}, {KL_OP_log, KL_f32, KL_f32, {F(1)}, 0},
        {KL_OP_log2, KL_f32, KL_f32, {F(0x1p-149f)}, F(-149)},
        {KL_OP_pow, KL_f32, KL_f32, {F(-2), F(3)}, F(-8)},
        {KL_OP_pow, KL_f32, KL_f32, {nan, 0}, F(1)}, {KL_OP_pow, KL_f32, KL_f32, {F(1), nan}, F(1)},
        {KL_OP_pow, KL_f32, KL_f32, {nz, F(-3)}, ninf},
        {KL_OP_round, KL_f32, KL_f32, {F(-2.5f)}, F(-3)},
        {KL_OP_round, KL_f32, KL_f32, {F(-0.25f)}, nz},
        {KL_OP_fmod, KL_f32, KL_f32, {F(-7), F(2)}, F(-1)},
        {KL_OP_fmod, KL_f32, KL_f32, {F(-6), F(2)}, nz},
        {KL_OP_fmod, KL_f32, KL_f32, {F(3), inf}, F(3)},
        {KL_OP_copysign, KL_f32, KL_f32, {F(2), nz}, F(-2)},
        {KL_OP_copysign, KL_f32, KL_f32, {F(-2), 0xffc00000}, F(2)},
        {KL_OP_umulhi, KL_u32, KL_u32, {0xffffffff, 0xffffffff}, 0xfffffffe},
        {KL_OP_umulhi, KL_i32, KL_i32, {minus, 2}, 1},
        {KL_OP_umulhi, KL_u64, KL_u64, {UINT64_MAX, UINT64_MAX}, UINT64_MAX - 1},
        {KL_OP_umulhi, KL_i64, KL_i64, {minus, minus}, I(-2)},
        {KL_OP_popcount, KL_i32, KL_i32, {minus}, 32}, {KL_OP_popcount, KL_u64, KL_u64, {0}, 0},
        {KL_OP_clz, KL_u32, KL_u32, {0}, 32}, {KL_OP_clz, KL_i64, KL_i64, {1}, 63},
        {KL_OP_ctz, KL_i32, KL_i32, {0}, 32}, {KL_OP_ctz, KL_i64, KL_i64, {min64}, 63},
        {KL_OP_ctz, KL_u64, KL_u64, {0}, 64}, {KL_OP_clz, KL_i32, KL_i32, {minus}, 0},
        {KL_OP_select, KL_bf16, KL_bf16, {1, 0x7f81, 5}, 0x7f81},
        {KL_OP_convert, KL_i32, KL_f32, {F(3e9f)}, max}, {KL_OP_convert, KL_i32, KL_f32, {nan}, 0},
        {KL_OP_convert, KL_u8, KL_f32, {F(-1)}, 0}, {KL_OP_convert, KL_u8, KL_i32, {300}, 44},
        {KL_OP_convert, KL_bool, KL_f32, {nz}, 0}, {KL_OP_convert, KL_bool, KL_f32, {nan}, 1},
        {KL_OP_convert, KL_f16, KL_f32, {F(65520)}, 0x7c00},
        {KL_OP_convert, KL_bf16, KL_f32, {0x7fffffff}, 0x7fff},
        {KL_OP_convert, KL_f32, KL_i64, {INT64_MAX}, F(0x1p63f)},
        {KL_OP_convert, KL_f32, KL_u64, {UINT64_MAX}, F(0x1p64f)},
        {KL_OP_convert, KL_f32, KL_u64, {0x8000008000000001}, F(0x1.000002p63f)},
        {KL_OP_convert, KL_u64, KL_f32, {F(1e30f)}, UINT64_MAX},
        {KL_OP_convert, KL_u64, KL_f32, {nan}, 0},
        {KL_OP_convert, KL_u64, KL_f32, {F(0x1.8p63f)}, 0xc000000000000000},
        {KL_OP_convert, KL_i8, KL_f32, {F(200)}, 127},
        {KL_OP_convert, KL_i8, KL_f32, {ninf}, I(-128)},
        {KL_OP_convert, KL_i8, KL_i32, {200}, I(-56)},
        {KL_OP_convert, KL_u16, KL_f32, {inf}, 65535},
        {KL_OP_convert, KL_f8e4m3, KL_f32, {F(464)}, 0x7e},
        {KL_OP_convert, KL_f8e4m3, KL_f32, {inf}, 0x7e},
        {KL_OP_convert, KL_f8e4m3, KL_f32, {F(1.0625001f)}, 0x39},
        {KL_OP_convert, KL_f8e4m3, KL_f32, {nan}, 0x7f},
        {KL_OP_convert, KL_f8e4m3, KL_f32, {F(0x1p-10f)}, 0},
        {KL_OP_convert, KL_f8e4m3, KL_f32, {F(0x1.000002p-10f)}, 1},
        {KL_OP_convert, KL_f8e5m2, KL_f32, {F(1e9f)}, 0x7b},
        {KL_OP_convert, KL_f8e5m2, KL_f32, {ninf}, 0xfb},
        {KL_OP_convert_nan, KL_f8e4m3, KL_f32, {F(464)}, 0x7e},
        {KL_OP_convert_nan, KL_f8e4m3, KL_f32, {F(464.00003f)}, 0x7f},
        {KL_OP_convert_nan, KL_f8e4m3, KL_f32, {ninf}, 0xff},
        {KL_OP_convert_nan, KL_f8e5m2, KL_f32, {F(61440)}, 0x7c},
        {KL_OP_convert_nan, KL_f8e5m2, KL_f32, {F(61439.996f)}, 0x7b},
        {KL_OP_convert_nan, KL_f8e5m2, KL_f32, {ninf}, 0xfc},
        {KL_OP_convert, KL_i32, KL_f8e4m3, {0xff}, 0},
        {KL_OP_bitcast, KL_i32, KL_f32, {nz}, min},
        {KL_OP_bitcast, KL_f32, KL_i32, {minus}, 0xffffffff},
        {KL_OP_bitcast, KL_u32, KL_i32, {minus}, 0xffffffff},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        uint64_t got = 0;
        if (!kl_fold(row[i].op, row[i].to, row[i].e, row[i].v, &got) || got != row[i].want)
            fail_msg("row %zu: %s on %s gives %llx, must give %llx", i, kl_ops[row[i].op].name,
                     kl_elems[row[i].e].name, (unsigned long long)got,
                     (unsigned long long)row[i].want);
    }
    uint64_t v[3] = {1, 1, 1}, out;
    assert_false(kl_fold(KL_OP_add, KL_f16, KL_f16, v, &out));  /* storage types have no sum */
    assert_false(kl_fold(KL_OP_add, KL_bool, KL_bool, v, &out));
    assert_false(kl_fold(KL_OP_rem, KL_f32, KL_f32, v, &out));
    assert_false(kl_fold(KL_OP_sqrt, KL_i32, KL_i32, v, &out));
    assert_false(kl_fold(KL_OP_bitcast, KL_i64, KL_i32, v, &out));
    assert_false(kl_fold(KL_OP_reduce, KL_i32, KL_i32, v, &out));
}

/* ---- effects ---- */

static void test_effects(void **state)
{
    (void)state;
    struct world *w = world_new();
    kl_fn *f = must_read(w, "fn t(%x: array<f32,1> x, %y: array<f32,1> y, %n: i64 n) {\n"
                            "  %z = const 0 : i64\n"
                            "  %v = view %y, %z [%n] stride [%n] : array<f32,1>\n"
                            "  %u = view %v, %n [%n] stride [%n] : array<f32,1>\n"
                            "  %q = view %x, %n [%n] stride [%n] : array<f32,1>\n"
                            "  %a = load %u[%z] : f32\n"
                            "  for %z, %n, %n (%i: i64) {\n"
                            "    store %q[%i], %a\n"
                            "    yield\n"
                            "  }\n"
                            "}");
    kl_val load = find_op(f, KL_OP_load), loop = find_op(f, KL_OP_for);
    struct kl_effect r = kl_effect(f, load), s = kl_effect(f, loop);
    assert_int_equal(kl_root(f, kl_arg(f, load, 0)), 1);
    assert_true(r.read == 2 && r.write == 0 && s.read == 0 && s.write == 1);
    assert_false(kl_conflict(f, r, s));
    assert_false(kl_conflict(f, r, r));
    assert_true(kl_conflict(f, s, s));
    f->may_alias = true;
    assert_true(kl_conflict(f, r, s));
    assert_true(kl_conflict(f, s, r));
    assert_false(kl_conflict(f, r, r));
    f->may_alias = false; /* an atomic: relaxed on its own array, else on all */
    f = must_read(w, "fn t(%x: array<i32,1> x, %y: array<i32,1> y, %i: i32 i) {\n"
                     "  %z = const 0 : i64\n"
                     "  %v = view %y, %z [%z] stride [%z] : array<i32,1>\n"
                     "  %a = atomic add %v[%z], %i : i32\n"
                     "  %b = atomic_load acquire %v[%z] : i32\n"
                     "  atomic_store %v[%z], %b\n"
                     "}");
    r = kl_effect(f, find_op(f, KL_OP_atomic));
    assert_true(r.read == 2 && r.write == 2);
    r = kl_effect(f, find_op(f, KL_OP_atomic_store));
    assert_true(r.read == 0 && r.write == 2);
    r = kl_effect(f, find_op(f, KL_OP_atomic_load));
    assert_true(r.read == UINT64_MAX && r.write == UINT64_MAX);
    world_free(w);
}

/* ---- passes ---- */

static void run(struct world *w, kl_fn *f, const char *passes)
{
    const char *names[16] = {NULL};
    char *s = strdup(passes), *save = NULL;
    uint32_t n = 0;
    for (char *p = strtok_r(s, ", ", &save); p && n < 15; p = strtok_r(NULL, ", ", &save))
        names[n++] = p;
    kl_pipeline p = {.pass = n ? names : NULL, .level = 2, .check = true};
    if (setjmp(w->jb) == 0)
        kl_run_passes(f, &p, NULL);
    else
        fail_msg("%s", w->env.msg);
    free(s);
}

/* Every golden of tests/opt, and the goldens under the whole pipeline. */
static void test_goldens(void **state)
{
    (void)state;
    uint32_t count = 0;
    for (uint32_t i = 0; i < kl_npasses; i++) {
        char dir[256], path[1024];
        snprintf(dir, sizeof dir, "tests/opt/%s", kl_passes[i].name);
        DIR *d = opendir(dir);
        if (!d)
            fail_msg("%s: there are no goldens", dir);
        for (struct dirent *e; (e = readdir(d)) != NULL;) {
            if (!strstr(e->d_name, ".kir"))
                continue;
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
            char *text = slurp(path), *want = strstr(text, "\n; ---\n");
            assert_non_null(want);
            *want = 0;
            want += strlen("\n; ---\n");
            char passes[128] = "";
            assert_int_equal(sscanf(text, "; passes: %127[^\n]", passes), 1);
            struct world *w = world_new();
            kl_fn *f = must_read(w, text);
            run(w, f, passes);
            if (strcmp(print_text(w, f), want) != 0)
                fail_msg("%s gives\n%s", path, print_text(w, f));
            run(w, must_read(w, text), "");
            world_free(w);
            free(text);
            count++;
        }
        closedir(d);
    }
    print_message("%u goldens\n", count);
    assert_true(count >= 60);
}

static void test_rules_have_cases(void **state)
{
    (void)state;
    static const char *const name[] = {
#define RULE(op, name, doc) #name,
#include "opt/rules.def"
#define FLOW(op, name, doc) #name,
#include "opt/flow.def"
    };
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        char path[256];
        snprintf(path, sizeof path, "tests/opt/simplify/%s.kir", name[i]);
        char *text = slurp(path);
        if (!text)
            fail_msg("%s is missing", path);
        free(text);
    }
}

static void test_all_ops_through_passes(void **state)
{
    (void)state;
    struct world *w = world_new();
    run(w, must_read(w, all_ops), "");
    run(w, must_read(w, sample_text), "");
    world_free(w);
}

static kiln_status driver(struct world *w, const kl_pipeline *p)
{
    kl_fn *f = must_read(w, sample_text);
    if (setjmp(w->jb))
        return w->env.status;
    kl_run_passes(f, p, NULL);
    return KILN_OK;
}

static void test_driver(void **state)
{
    (void)state;
    struct world *w = world_new();
    const char *bad[] = {"simplfy", NULL}, *skip[] = {"simplify", "cse", NULL};
    kl_buf out = {.a = &w->a};
    assert_int_equal(driver(w, &(kl_pipeline){.pass = bad}), KILN_E_ARG);
    assert_non_null(strstr(w->env.msg, "did you mean `simplify`"));
    assert_int_equal(driver(w, &(kl_pipeline){.level = 2, .skip = bad}), KILN_E_ARG);
    assert_int_equal(driver(w, &(kl_pipeline){.level = 2, .stop_after = "x"}), KILN_E_ARG);
    assert_int_equal(driver(w, &(kl_pipeline){.level = 2, .print_after = "y"}), KILN_E_ARG);

    kl_pipeline p = {.level = 2, .check = true, .print_after = "all", .out = &out, .skip = skip,
                     .stop_after = "licm"};
    assert_int_equal(driver(w, &p), KILN_OK);
    const char *text = kl_buf_str(&out);
    assert_null(strstr(text, "; after simplify"));
    assert_null(strstr(text, "; after dce"));
    assert_non_null(strstr(text, "; after unroll (nothing changed)\nfn sample("));
    assert_non_null(strstr(text, "; after licm\nfn sample("));

    kl_buf none = {.a = &w->a}; /* level 1 runs only what lowering needs: nothing here */
    p = (kl_pipeline){.level = 1, .check = true, .print_after = "all", .out = &none};
    assert_int_equal(driver(w, &p), KILN_OK);
    assert_string_equal(kl_buf_str(&none), "");
    world_free(w);
}

/* ---- the same values before and after the passes ---- */

static uint64_t rng_state;
static uint32_t rnd(uint32_t n)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng_state >> 33) % n;
}

static const enum kl_elem scalar_elem[] = {KL_i32, KL_u32, KL_i64, KL_f32, KL_f64, KL_bool,
                                           KL_f16, KL_u8, KL_u64, KL_i8, KL_i16, KL_u16,
                                           KL_bf16, KL_f8e4m3, KL_f8e5m2};
enum { NELEM = sizeof scalar_elem / sizeof scalar_elem[0], NSTORE = 6 };

static uint64_t random_bits(enum kl_elem e)
{
    static const double odd[] = {0, 0, 1, 1, -1, -0.0, 2, 0.5, 3, -7, 8, 31, 32, 64, 100, 300,
                                 -0.25, 16777217, 1e10, -1e-40};
    uint64_t all = (uint64_t)rnd(1u << 31) << 33 ^ (uint64_t)rnd(1u << 31) << 11 ^ rnd(1u << 31);
    switch (rnd(6)) {
    case 0: return kl_canon(e, all);
    case 1: /* ends, infinities, NaN */
        if (kl_is_float(e)) {
            static const double s[] = {HUGE_VAL, -HUGE_VAL, -0.0, 1e300};
            return rnd(4) ? kl_convert(e, KL_f64, kl_f64_bits(s[rnd(4)]))
                          : kl_convert(e, KL_f64, 0x7ff8000000000000u);
        }
        all = UINT64_C(1) << (kl_elems[e].bytes * 8 - 1);
        return kl_canon(e, rnd(2) ? all : rnd(2) ? all - 1 : UINT64_MAX);
    default: {
        double d = odd[rnd(sizeof odd / sizeof odd[0])];
        return kl_is_float(e) ? kl_convert(e, KL_f64, kl_f64_bits(d))
                              : kl_canon(e, (uint64_t)(int64_t)d);
    }
    }
}

struct pool { kl_val v[256]; uint32_t n; };

static kl_val pick(kl_build *b, const struct pool *p, enum kl_elem e)
{
    for (uint32_t k = 0; k < 12 && p->n; k++) {
        uint32_t back = rnd(2) ? rnd(p->n) : rnd(p->n < 6 ? p->n : 6);
        kl_val v = p->v[p->n - 1 - back];
        if (kl_type_of(b->f, v)->elem == e)
            return v;
    }
    return kl_cst(b, kl_scalar(b->f, e), random_bits(e));
}

static void random_block(kl_build *b, struct pool *p, uint32_t n, uint32_t depth);

/* What rules look for: an operation with a constant, the negation of a comparison, a
 * conversion of a conversion. */
static kl_val random_motif(kl_build *b, const struct pool *p)
{
    static const enum kl_op with_const[] = {
        KL_OP_add, KL_OP_sub, KL_OP_mul, KL_OP_div, KL_OP_rem, KL_OP_floordiv, KL_OP_floormod,
        KL_OP_and, KL_OP_or, KL_OP_xor, KL_OP_shl, KL_OP_shr, KL_OP_min, KL_OP_max, KL_OP_lt,
        KL_OP_le, KL_OP_gt, KL_OP_ge,
    };
    kl_fn *f = b->f;
    enum kl_elem e = rnd(6) ? scalar_elem[rnd(5)] : KL_u64;
    if (rnd(3) == 0) {
        kl_val x = pick(b, p, scalar_elem[rnd(NELEM)]);
        x = kl_to(b, scalar_elem[rnd(NELEM)], x);
        return kl_to(b, scalar_elem[rnd(NELEM)], x);
    }
    if (rnd(4) == 0) {
        enum kl_op op = (enum kl_op)(KL_OP_eq + rnd(6));
        kl_val x = kl_ew2(b, op, pick(b, p, e), pick(b, p, e));
        return kl_ew2(b, KL_OP_xor, x, kl_cst(b, kl_scalar(f, KL_bool), 1));
    }
    enum kl_op op = with_const[rnd(sizeof with_const / sizeof with_const[0])];
    if (kl_is_float(e) && (kl_ops[op].cls == KL_C_INT || kl_ops[op].cls == KL_C_BIT))
        op = KL_OP_add;
    kl_val x = pick(b, p, e), c = kl_cst(b, kl_scalar(f, e), random_bits(e));
    x = rnd(4) ? kl_ew2(b, op, x, c) : kl_ew2(b, op, c, x);
    if (kl_type_of(f, x)->elem == e && rnd(2))
        x = kl_ew2(b, op, x, kl_cst(b, kl_scalar(f, e), random_bits(e)));
    return x;
}

static kl_val random_ew(kl_build *b, const struct pool *p)
{
    for (;;) {
        enum kl_op op = (enum kl_op)(1 + rnd(KL_OP_bitcast)); /* up to convert: no bits of NaNs */
        const struct kl_opinfo *row = &kl_ops[op];
        enum kl_elem e = rnd(7) ? scalar_elem[rnd(6)] : KL_u64, to = scalar_elem[rnd(NELEM)];
        bool flt = kl_is_float(e), integer = kl_is_int(e);
        if (op == KL_OP_bitcast || op == KL_OP_none)
            continue;
        if ((row->cls == KL_C_FLT && !flt) || (row->cls == KL_C_INT && !integer) ||
            (row->cls == KL_C_BIT && flt) || ((row->cls == KL_C_NUM || row->cls == KL_C_CMP) &&
                                              e == KL_bool))
            continue;
        if (op == KL_OP_select || op == KL_OP_convert)
            e = scalar_elem[rnd(NELEM)];
        if (op == KL_OP_convert_nan)
            e = KL_f32, to = rnd(2) ? KL_f8e4m3 : KL_f8e5m2;
        kl_val a[3] = {pick(b, p, op == KL_OP_select ? KL_bool : e), pick(b, p, e), pick(b, p, e)};
        kl_typ t = row->cls == KL_C_CVT ? kl_scalar(b->f, to) : (kl_typ){0};
        return kl_emit(b, op, t, a, row->nargs, (union kl_attr){0});
    }
}

/* An if or a short loop over values of the pool; its results go to the pool. */
static void random_control(kl_build *b, struct pool *p, uint32_t depth)
{
    kl_fn *f = b->f;
    enum kl_elem e[2] = {scalar_elem[rnd(6)], scalar_elem[rnd(6)]};
    bool loop = rnd(2);
    kl_blk own[2] = {kl_blk_new(f), loop ? (kl_blk){0} : kl_blk_new(f)};
    kl_val arg[5], v;
    if (loop) {
        arg[0] = kl_cst_i64(b, (int64_t)rnd(4) - 2);
        arg[1] = kl_cst_i64(b, (int64_t)rnd(6) - 1);
        arg[2] = kl_cst_i64(b, 1 + rnd(3));
        arg[3] = pick(b, p, e[0]);
        arg[4] = pick(b, p, e[1]);
        union kl_attr at = {.loop = {.blk = own[0], .unroll = rnd(3) & 3, .pipeline = rnd(3) & 3}};
        v = kl_emit(b, KL_OP_for, (kl_typ){0}, arg, 5, at);
    } else {
        arg[0] = pick(b, p, KL_bool);
        union kl_attr at = {.blk = {own[0], own[1]}};
        v = kl_emit(b, KL_OP_if, (kl_typ){0}, arg, 1, at);
    }
    for (uint32_t i = 0; i < (loop ? 1u : 2u); i++) {
        struct pool inner = *p;
        kl_build in = {.f = f, .blk = own[i]};
        if (loop) {
            inner.v[inner.n++] = kl_block_param(&in, kl_scalar(f, KL_i64));
            inner.v[inner.n++] = kl_block_param(&in, kl_scalar(f, e[0]));
            inner.v[inner.n++] = kl_block_param(&in, kl_scalar(f, e[1]));
        }
        random_block(&in, &inner, rnd(8), depth + 1);
        kl_val y[2] = {pick(&in, &inner, e[0]), pick(&in, &inner, e[1])};
        kl_emit(&in, KL_OP_yield, (kl_typ){0}, y, 2, (union kl_attr){0});
    }
    p->v[p->n++] = kl_result(b, v, 0, kl_scalar(f, e[0]));
    p->v[p->n++] = kl_result(b, v, 1, kl_scalar(f, e[1]));
}

static void random_block(kl_build *b, struct pool *p, uint32_t n, uint32_t depth)
{
    for (uint32_t i = 0; i < n && p->n < 240; i++) {
        if (depth < 3 && rnd(12) == 0)
            random_control(b, p, depth);
        else
            p->v[p->n++] = rnd(2) ? random_ew(b, p) : random_motif(b, p);
    }
}

/* Parameters: one array a type for results, then scalars. */
static kl_fn *random_fn(struct world *w)
{
    kl_fn *f = kl_fn_new(&w->a, "random");
    kl_build b = {.f = f, .blk = KL_BODY};
    struct pool p = {.n = 0};
    kl_val arr[NELEM];
    for (uint32_t i = 0; i < NELEM; i++) {
        enum kl_elem e = scalar_elem[i];
        kl_param_add(f, (struct kl_param){"out", KL_P_ARRAY, (uint8_t)e, 1, 0, true, false});
        arr[i] = kl_block_param(&b, kl_array(f, e, 1));
    }
    for (uint32_t i = 0; i < 2 * NELEM; i++) {
        enum kl_elem e = scalar_elem[i % NELEM];
        kl_param_add(f, (struct kl_param){"in", KL_P_SCALAR, (uint8_t)e, 0, 0, false, false});
        p.v[p.n++] = kl_block_param(&b, kl_scalar(f, e));
    }
    random_block(&b, &p, 60, 0);
    kl_val zero = kl_cst_i64(&b, 0), one = kl_cst_i64(&b, 1);
    int64_t scalar = 0;
    union kl_attr at = {.access = {.at = kl_aux_add(f, &scalar, 1), .n = 1}};
    for (uint32_t i = 0; i < NELEM; i++) {
        enum kl_elem e = scalar_elem[i];
        kl_val v[4] = {arr[i], zero, one, one};
        kl_val view = kl_emit(&b, KL_OP_view, kl_array(f, e, 1), v, 4, (union kl_attr){0});
        for (uint32_t k = 0; k < NSTORE; k++) {
            kl_val s[3] = {view, zero, pick(&b, &p, e)};
            kl_emit(&b, KL_OP_store, (kl_typ){0}, s, 3, at);
        }
    }
    return f;
}

/* Scalar evaluation; what stores get goes to out. */
struct machine {
    const kl_fn *f;
    uint64_t *val, *out;
    const uint64_t *in;
    uint32_t nout;
};

static void eval_block(struct machine *m, kl_blk blk, uint64_t *yield)
{
    const kl_fn *f = m->f;
    kl_each_ins(f, blk, v) {
        const struct kl_ins *in = kl_in(f, v);
        uint64_t a[8] = {0};
        for (uint32_t i = 0; i < in->nargs && i < 8; i++)
            a[i] = m->val[kl_arg(f, v, i).id];
        enum kl_elem e = (enum kl_elem)f->type[in->type.id].elem;
        if (kl_ops[in->op].flags & KL_F_EW) {
            uint32_t from = in->op == KL_OP_select ? 1 : 0;
            enum kl_elem ae = (enum kl_elem)kl_type_of(f, kl_arg(f, v, from))->elem;
            assert_true(kl_fold((enum kl_op)in->op, e, ae, a, &m->val[v.id]));
        } else if (in->op == KL_OP_const) {
            m->val[v.id] = in->attr.bits;
        } else if (in->op == KL_OP_param && blk.id == KL_BODY.id) {
            m->val[v.id] = m->in[in->attr.index];
        } else if (in->op == KL_OP_store) {
            m->out[m->nout++] = a[2];
        } else if (in->op == KL_OP_yield) {
            memcpy(yield, a, 2 * sizeof *a);
        } else if (in->op == KL_OP_if || in->op == KL_OP_for) {
            uint64_t y[8] = {0};
            if (in->op == KL_OP_if) {
                eval_block(m, in->attr.blk[!a[0]], y);
            } else {
                memcpy(y, a + 3, 2 * sizeof *y);
                for (int64_t i = (int64_t)a[0]; i < (int64_t)a[1]; i += (int64_t)a[2]) {
                    uint32_t id = f->blk[in->attr.loop.blk.id].first;
                    m->val[id] = (uint64_t)i;
                    for (uint32_t k = 0; k + 3 < in->nargs; k++)
                        m->val[id = f->ins[id].next] = y[k];
                    eval_block(m, in->attr.loop.blk, y);
                }
            }
            for (uint32_t id = in->next, k = 0; f->ins[id].op == KL_OP_result; id = f->ins[id].next)
                m->val[id] = y[k++];
        }
    }
}

/* NaNs are equal whatever their payload. */
static uint64_t one_nan(enum kl_elem e, uint64_t bits)
{
    double d = kl_is_float(e) ? kl_elem_double(e, bits) : 0;
    return d != d ? UINT64_MAX : bits;
}

/* One random function on eight random inputs. */
static void same_values(uint32_t seed)
{
    rng_state = seed;
    struct world *w = world_new();
    assert_int_equal(setjmp(w->jb), 0);
    kl_fn *f = random_fn(w);
    const char *text = print_text(w, f);
    kl_fn *g = must_read(w, text);
    run(w, g, "");
    for (uint32_t round = 0; round < 8; round++) {
        uint64_t in[3 * NELEM] = {0}, x[NSTORE * NELEM], y[NSTORE * NELEM];
        for (uint32_t i = 0; i < 2 * NELEM; i++)
            in[NELEM + i] = random_bits(scalar_elem[i % NELEM]);
        struct machine m = {f, kl_new_n(&w->a, uint64_t, f->nins), x, in, 0};
        eval_block(&m, KL_BODY, NULL);
        m = (struct machine){g, kl_new_n(&w->a, uint64_t, g->nins), y, in, 0};
        eval_block(&m, KL_BODY, NULL);
        assert_int_equal(m.nout, NSTORE * NELEM);
        for (uint32_t i = 0; i < NSTORE * NELEM; i++) {
            enum kl_elem e = scalar_elem[i / NSTORE];
            if (one_nan(e, x[i]) == one_nan(e, y[i]))
                continue;
            fprintf(stderr, "%s---\n%s---\n", text, print_text(w, g)); /* cmocka would cut them */
            fail_msg("seed %u, store %u: %llx before, %llx after the passes", seed, i,
                     (unsigned long long)x[i], (unsigned long long)y[i]);
        }
    }
    world_free(w);
}

static void test_same_values(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 500; seed++)
        same_values(seed);
}

/* ---- limits ---- */

/* A long function takes time in proportion: 10,000 instructions in milliseconds. */
static void test_speed(void **state)
{
    (void)state;
    struct world *w = world_new();
    assert_int_equal(setjmp(w->jb), 0);
    kl_fn *f = kl_fn_new(&w->a, "long");
    kl_build b = {.f = f, .blk = KL_BODY};
    kl_param_add(f, (struct kl_param){"y", KL_P_ARRAY, KL_i64, 1, 0, true, false});
    kl_param_add(f, (struct kl_param){"n", KL_P_SCALAR, KL_i64, 0, 1, false, false});
    kl_val y = kl_block_param(&b, kl_array(f, KL_i64, 1));
    kl_val n = kl_block_param(&b, kl_scalar(f, KL_i64)), x = n;
    kl_val zero = kl_cst_i64(&b, 0), one = kl_cst_i64(&b, 1);
    kl_val v[4] = {y, zero, n, one};
    kl_val view = kl_emit(&b, KL_OP_view, kl_array(f, KL_i64, 1), v, 4, (union kl_attr){0});
    int64_t scalar = 0;
    union kl_attr at = {.access = {.at = kl_aux_add(f, &scalar, 1), .n = 1}};
    for (uint32_t i = 0; i < 1000; i++) {
        kl_val k = kl_cst_i64(&b, i % 7);
        x = kl_ew2(&b, KL_OP_add, kl_ew2(&b, KL_OP_mul, x, n), k);
        kl_blk blk = kl_blk_new(f);
        kl_val a[4] = {zero, i % 2 ? kl_cst_i64(&b, 3) : n, one, x};
        union kl_attr la = {.loop = {.blk = blk}};
        kl_val loop = kl_emit(&b, KL_OP_for, (kl_typ){0}, a, 4, la);
        kl_build in = {.f = f, .blk = blk};
        kl_val iv = kl_block_param(&in, kl_scalar(f, KL_i64));
        kl_val c = kl_block_param(&in, kl_scalar(f, KL_i64));
        c = kl_ew2(&in, KL_OP_sub, kl_ew2(&in, KL_OP_mul, c, n), iv);
        kl_emit(&in, KL_OP_yield, (kl_typ){0}, &c, 1, (union kl_attr){0});
        x = kl_result(&b, loop, 0, kl_scalar(f, KL_i64));
        kl_val s[3] = {view, k, x};
        kl_emit(&b, KL_OP_store, (kl_typ){0}, s, 3, at);
    }
    uint32_t before = f->nins;
    clock_t t = clock();
    kl_pipeline p = {.level = 2};
    kl_run_passes(f, &p, NULL);
    double ms = (double)(clock() - t) * 1000 / CLOCKS_PER_SEC;
    print_message("%u instructions through the passes: %.1f ms, %zu KiB\n", before, ms,
                  w->a.total / 1024);
    assert_true(ms < 2000);
    assert_null(kl_ir_verify(f, &w->a));
    world_free(w);
}

/* Read and run all passes with n allocations; true if that was enough. */
static bool with_memory(const char *text, long n)
{
    struct world *w = world_new();
    w->budget = n;
    volatile bool done = false;
    if (setjmp(w->jb) == 0) {
        uint32_t file = kl_src_add(&w->src, "t", text, (uint32_t)strlen(text), false);
        kl_pipeline p = {.level = 2, .check = true};
        kl_run_passes(kl_ir_read(&w->a, &w->src, file, w->d), &p, NULL);
        done = true;
    } else {
        assert_int_equal(w->env.status, KILN_E_NOMEM);
    }
    world_free(w);
    return done;
}

/* Each allocation failing in turn: a status, no crash, no leak (under ASan). */
static void test_no_memory(void **state)
{
    (void)state;
    static char big[1 << 14]; /* many lines, so that arenas grow */
    int k = sprintf(big, "fn t(%%x: i32 x) {\n%%v0 = neg %%x : i32\n");
    for (int i = 1; i < 200; i++)
        k += sprintf(big + k, "%%v%d = add %%v%d, %%x : i32\n", i, i - 1);
    sprintf(big + k, "}\n");
    long n = 0;
    while (!with_memory(big, n))
        assert_true(++n < 400);
    assert_true(n > 5);
}

static void test_ops_document(void **state)
{
    (void)state;
    struct world *w = world_new();
    assert_int_equal(setjmp(w->jb), 0);
    kl_buf b = {.a = &w->a};
    kl_ops_markdown(&b);
    char *text = slurp("docs/ops.md");
    if (!text || strcmp(text, kl_buf_str(&b)) != 0)
        fail_msg("docs/ops.md is not what ops.def gives");
    free(text);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build), cmocka_unit_test(test_types),
        cmocka_unit_test(test_surgery), cmocka_unit_test(test_clone),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_constants),
        cmocka_unit_test(test_bad_text), cmocka_unit_test(test_cut_text),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_fold),
        cmocka_unit_test(test_effects), cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_rules_have_cases), cmocka_unit_test(test_all_ops_through_passes),
        cmocka_unit_test(test_driver), cmocka_unit_test(test_same_values),
        cmocka_unit_test(test_speed), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_ops_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
