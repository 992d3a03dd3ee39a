/* test_sim.c - the PTX executor: whole kernels, counts, findings, errors of the text. */
#define _GNU_SOURCE
#include "sim_box.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>

#include "layout/layout.h"
#include "sim/run.h"

#define PTX_74 ".version 7.4\n.target sm_80\n.address_size 64\n"
#define ENTRY(name) ".visible .entry " name "(.param .u64 pa, .param .u64 pb, .param .u32 pn)\n{\n"
#define REGS                                                                                       \
    " .reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<60>; .reg .f32 %f<40>; .reg .b64 %d<30>;\n"
/* %r1: thread of the grid; %d1, %d2: arrays; %r2: n; %d4, %d5: elements of 4 bytes */
#define HEAD(name)                                                                                 \
    ENTRY(name) REGS " ld.param.u64 %d1, [pa];\n ld.param.u64 %d2, [pb];\n"                        \
                     " ld.param.u32 %r2, [pn];\n mov.u32 %r3, %ctaid.x;\n mov.u32 %r4, %ntid.x;\n" \
                     " mov.u32 %r5, %tid.x;\n mad.lo.s32 %r1, %r3, %r4, %r5;\n"                    \
                     " cvta.to.global.u64 %d1, %d1;\n cvta.to.global.u64 %d2, %d2;\n"              \
                     " mul.wide.u32 %d3, %r1, 4;\n add.s64 %d4, %d1, %d3;\n add.s64 %d5, %d2, "    \
                     "%d3;\n"

/* apart, so that what lies behind one does not belong to the other */
static struct {
    _Alignas(256) uint32_t in[4096];
    char gap[8192];
    _Alignas(256) uint32_t out[4096];
} mem;
static uint32_t *const in = mem.in, *const out = mem.out;

static void set(struct box *x, uint32_t n)
{
    box_args(x);
    memset(out, 0x5a, sizeof mem.out);
    arg_mem(x, in, sizeof mem.in, false);
    arg_mem(x, out, sizeof mem.out, true);
    arg_u32(x, n);
}

/* Texts that ran; ptxas takes them at the end. */
static struct { const char *text, *arch; } ran[400];
static uint32_t nran;

static void module(struct box *x, const char *text)
{
    box_module(x, text);
    bool known = false;
    for (uint32_t k = 0; k < nran; k++)
        known |= strcmp(ran[k].text, text) == 0;
    if (!known && nran < 400) {
        ran[nran].text = strdup(text);
        ran[nran++].arch = strstr(text, "sm_90") ? "sm_90" : "sm_80";
    }
}

/* ---- kernels ---- */

static void saxpy(void **state)
{
    (void)state;
    struct box x;
    module(&x, "//\n// a comment at the head\n" PTX_80 ".visible .entry saxpy(\n"
               "  .param .u64 .ptr .global .align 16 px, .param .u64 py,\n"
               "  .param .f32 a, .param .u32 n)\n.maxntid 256, 1, 1\n.minnctapersm 2\n{\n" REGS
               " ld.param.u64 %d1, [px]; /* two */ ld.param.u64 %d2, [py];\n"
               " ld.param.f32 %f1, [a]; ld.param.u32 %r1, [n];\n"
               " mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
               " mad.lo.s32 %r5, %r2, %r3, %r4;\n setp.ge.u32 %p1, %r5, %r1;\n"
               " @%p1 bra $L__end;\n mul.wide.s32 %d3, %r5, 4;\n add.s64 %d4, %d1, %d3;\n"
               " add.s64 %d5, %d2, %d3;\n ld.global.nc.f32 %f2, [%d4];\n"
               " ld.global.f32 %f3, [%d5];\n"
               " fma.rn.f32 %f4, %f1, %f2, %f3;\n st.global.f32 [%d5], %f4;\n$L__end:\n ret;\n}\n");
    const kl_sim_entry *e = kl_sim_find(x.m, "saxpy");
    assert_non_null(e);
    assert_null(kl_sim_find(x.m, "other"));
    assert_ptr_equal(kl_sim_at(x.m, 0), e);
    assert_null(kl_sim_at(x.m, 1));
    assert_int_equal(e->nparam, 4);
    assert_int_equal(e->param_bytes, 24);
    assert_string_equal(e->param[2].name, "a");
    assert_int_equal(e->param[2].offset, 16);
    assert_int_equal(e->max_threads, 256);
    float a[1000], b[1000], want[1000], s = 1.5f;
    for (int i = 0; i < 1000; i++)
        a[i] = (float)i * 0.37f, b[i] = (float)(i % 7), want[i] = fmaf(s, a[i], b[i]);
    arg_mem(&x, a, sizeof a, false);
    arg_mem(&x, b, sizeof b, true);
    arg_raw(&x, &s, 4);
    arg_u32(&x, 1000);
    fesetround(FE_UPWARD); /* the executor has its own */
    box_good(&x, "saxpy", 4, 256);
    assert_int_equal(fegetround(), FE_UPWARD);
    fesetround(FE_TONEAREST);
    assert_memory_equal(b, want, sizeof b);
    const kl_sim_counts *c = &x.counts;
    assert_int_equal(c->ctas, 4);
    assert_int_equal(c->warps, 32);
    assert_int_equal(c->instructions[KL_SIM_FP32], 32);
    assert_int_equal(c->lanes[KL_SIM_FP32], 1000);
    assert_int_equal(c->gload.requests, 64);
    assert_int_equal(c->gload.bytes, 8000);
    assert_int_equal(c->gload.ideal, 250);
    assert_int_equal(c->gstore.ideal, 125);
    assert_int_equal(c->divergent, 1);
    assert_int_equal(c->branches, 32);
    box_close(&x);
}

/* Every path through nested ifs, loops with break and continue, early returns. */
static void divergence(void **state)
{
    (void)state;
    struct box x;
    module(&x, PTX_80 HEAD("k")
           " setp.ge.u32 %p1, %r1, %r2;\n @%p1 ret;\n ld.global.u32 %r10, [%d4];\n"
           " mov.u32 %r11, 0; mov.u32 %r12, 0;\n"
           "loop:\n setp.ge.u32 %p2, %r11, 40;\n @%p2 bra done;\n add.u32 %r11, %r11, 1;\n"
           " and.b32 %r13, %r11, 3;\n setp.eq.u32 %p3, %r13, 2;\n @%p3 bra loop;\n"
           " xor.b32 %r14, %r10, %r11;\n and.b32 %r15, %r14, 1;\n setp.ne.u32 %p4, %r15, 0;\n"
           " @!%p4 bra even;\n add.u32 %r12, %r12, %r14;\n and.b32 %r16, %r14, 64;\n"
           " setp.ne.u32 %p5, %r16, 0;\n @%p5 bra.uni join;\n mul.lo.u32 %r12, %r12, 3;\n"
           " bra join;\n"
           "even:\n sub.u32 %r12, %r12, %r11;\n setp.eq.u32 %p6, %r14, 100;\n @%p6 bra stop;\n"
           "join:\n setp.gt.u32 %p7, %r11, %r10;\n @%p7 bra done;\n bra.uni loop;\n"
           "stop:\n st.global.u32 [%d5], 12345;\n exit;\n"
           "done:\n activemask.b32 %r20;\n popc.b32 %r21, %r20;\n add.u32 %r12, %r12, %r21;\n"
           " st.global.u32 [%d5], %r12;\n ret;\n}\n");
    uint64_t seed = 5;
    for (int i = 0; i < 1000; i++)
        in[i] = (uint32_t)(box_random(&seed) % 130);
    set(&x, 1000);
    box_good(&x, "k", 8, 128);
    uint32_t want[1024], alive[32] = {0};
    for (uint32_t i = 0; i < 1024; i++) {
        uint32_t r = 0, k = 0, v = in[i];
        bool stopped = i >= 1000;
        while (!stopped && k < 40) {
            k++;
            if ((k & 3) == 2)
                continue;
            uint32_t t = v ^ k;
            if (t & 1) {
                r += t;
                if (!(t & 64))
                    r *= 3;
            } else {
                r -= k;
                if (t == 100) {
                    stopped = true;
                    break;
                }
            }
            if (k > v)
                break;
        }
        want[i] = stopped ? 12345 : r;
        alive[i / 32] += !stopped;
    }
    for (uint32_t i = 0; i < 1000; i++) /* all that are left met again at `done` */
        assert_int_equal(out[i], want[i] == 12345 ? 12345 : want[i] + alive[i / 32]);
    assert_int_equal(out[1000], 0x5a5a5a5a);
    assert_true(x.counts.divergent > 100 && x.counts.divergent < x.counts.branches);
    box_close(&x);
}

/* A block sum in two ways: through shared memory, through shuffles. */
#define SUM                                                                                        \
    PTX_80 ".extern .shared .align 16 .b8 dyn[];\n" HEAD("tree")                                   \
        " .shared .align 4 .b8 s[1024];\n ld.global.u32 %r10, [%d4];\n shl.b32 %r11, %r5, 2;\n"    \
        " mov.u32 %r12, s;\n add.u32 %r12, %r12, %r11;\n st.shared.u32 [%r12], %r10;\n"            \
        " shr.u32 %r13, %r4, 1;\n"                                                                 \
        "loop:\n bar.sync 0;\n setp.lt.u32 %p1, %r5, %r13;\n @!%p1 bra next;\n"                    \
        " shl.b32 %r14, %r13, 2;\n add.u32 %r14, %r12, %r14;\n ld.shared.u32 %r15, [%r14];\n"      \
        " ld.shared.u32 %r16, [%r12];\n add.u32 %r16, %r16, %r15;\n st.shared.u32 [%r12], %r16;\n" \
        "next:\n shr.u32 %r13, %r13, 1;\n setp.ne.u32 %p2, %r13, 0;\n @%p2 bra loop;\n"            \
        " setp.eq.u32 %p3, %r5, 0;\n mul.wide.u32 %d6, %r3, 4;\n add.u64 %d6, %d2, %d6;\n"         \
        " @%p3 st.global.u32 [%d6], %r16;\n ret;\n}\n" HEAD("shuffle")                             \
        " ld.global.u32 %r10, [%d4];\n"                                                            \
        " shfl.sync.bfly.b32 %r11, %r10, 16, 31, -1;\n add.u32 %r10, %r10, %r11;\n"                \
        " shfl.sync.bfly.b32 %r11, %r10, 8, 31, -1;\n add.u32 %r10, %r10, %r11;\n"                 \
        " shfl.sync.bfly.b32 %r11, %r10, 4, 31, -1;\n add.u32 %r10, %r10, %r11;\n"                 \
        " shfl.sync.bfly.b32 %r11, %r10, 2, 31, -1;\n add.u32 %r10, %r10, %r11;\n"                 \
        " shfl.sync.bfly.b32 %r11, %r10, 1, 31, -1;\n add.u32 %r10, %r10, %r11;\n"                 \
        " and.b32 %r12, %r5, 31;\n setp.eq.u32 %p1, %r12, 0;\n shr.u32 %r13, %r5, 5;\n"            \
        " shl.b32 %r13, %r13, 2;\n mov.u32 %r14, dyn;\n add.u32 %r14, %r14, %r13;\n"               \
        " @%p1 st.shared.b32 [%r14], %r10;\n mov.u32 %r14, dyn;\n barrier.sync 0;\n"               \
        " setp.ne.u32 %p2, %r5, 0;\n"                                                              \
        " @%p2 bra end;\n mov.u32 %r15, 0;\n mov.u32 %r16, 0;\n shr.u32 %r17, %r4, 5;\n"           \
        "more:\n shl.b32 %r18, %r16, 2;\n add.u32 %r18, %r18, %r14;\n"                             \
        " ld.shared.u32 %r19, [%r18];\n"                                                           \
        " add.u32 %r15, %r15, %r19;\n add.u32 %r16, %r16, 1;\n setp.lt.u32 %p3, %r16, %r17;\n"     \
        " @%p3 bra more;\n mul.wide.u32 %d6, %r3, 4;\n add.u64 %d6, %d2, %d6;\n"                   \
        " st.global.u32 [%d6], %r15;\n"                                                            \
        "end:\n ret;\n}\n"

static void sums(void **state)
{
    (void)state;
    struct box x;
    module(&x, SUM);
    assert_int_equal(kl_sim_find(x.m, "tree")->shared_bytes, 1024);
    assert_int_equal(kl_sim_find(x.m, "shuffle")->shared_bytes, 0);
    uint32_t want[4] = {0};
    for (uint32_t i = 0; i < 1024; i++)
        in[i] = i * 2654435761u, want[i / 256] += in[i];
    for (int k = 0; k < 4; k++) {
        x.opt.reverse = k & 1;
        set(&x, 1024);
        x.shared = k / 2 ? 32 : 0;
        box_good(&x, k / 2 ? "shuffle" : "tree", 4, 256);
        assert_memory_equal(out, want, sizeof want);
        assert_int_equal(x.counts.barriers, k / 2 ? 4 : 32);
    }
    assert_int_equal(x.counts.instructions[KL_SIM_SHFL], 4 * 8 * 5);
    assert_int_equal(x.counts.divergent, 4);
    box_close(&x);
}

/* 32 x 32 transpose through shared memory of a given pitch; wavefronts as MODEL has them. */
static void transpose(void **state)
{
    (void)state;
    static const struct { uint32_t pitch, wavefronts; } row[] = {{32, 32}, {33, 1}, {34, 2},
                                                                 {36, 4}, {40, 8}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        struct box x;
        char text[4096];
        snprintf(text, sizeof text,
                 "%s .shared .align 16 .b32 s[%u];\n mov.u32 %%r20, %%laneid;\n"
                 " mov.u32 %%r21, %%tid.y;\n mad.lo.u32 %%r22, %%r21, %u, %%r20;\n"
                 " shl.b32 %%r22, %%r22, 2;\n mov.u32 %%r23, s;\n add.u32 %%r22, %%r22, %%r23;\n"
                 " mad.lo.u32 %%r24, %%r21, 32, %%r20;\n mul.wide.u32 %%d6, %%r24, 4;\n"
                 " add.u64 %%d7, %%d1, %%d6;\n add.u64 %%d8, %%d2, %%d6;\n"
                 " ld.global.b32 %%r25, [%%d7];\n st.shared.b32 [%%r22], %%r25;\n bar.sync 0;\n"
                 " mad.lo.u32 %%r26, %%r20, %u, %%r21;\n shl.b32 %%r26, %%r26, 2;\n"
                 " add.u32 %%r26, %%r26, %%r23;\n ld.shared.b32 %%r27, [%%r26];\n"
                 " st.global.b32 [%%d8], %%r27;\n ret;\n}\n",
                 PTX_80 HEAD("k"), 32 * row[k].pitch, row[k].pitch, row[k].pitch);
        module(&x, text);
        for (uint32_t i = 0; i < 1024; i++)
            in[i] = i * 7;
        set(&x, 1024);
        kiln_status st = box_run3(&x, "k", (const uint32_t[3]){1, 1, 1},
                                  (const uint32_t[3]){32, 32, 1});
        if (st)
            fail_msg("%s", box_text(&x));
        for (uint32_t i = 0; i < 1024; i++)
            assert_int_equal(out[i], in[i % 32 * 32 + i / 32]);
        assert_int_equal(x.counts.sload.requests, 32);
        assert_int_equal(x.counts.sload.parts, 32 * row[k].wavefronts);
        assert_int_equal(x.counts.sload.ideal, 32);
        assert_int_equal(x.counts.sstore.parts, 32);
        assert_int_equal(x.counts.gload.parts, 128);
        box_close(&x);
    }
}

/* Golden numbers of the counting rules. */
static void counting(void **state)
{
    (void)state;
    static const struct { uint32_t bytes, stride, base, sectors; } g[] = {
        {4, 4, 0, 4},   {4, 8, 0, 8},   {4, 16, 0, 16}, {4, 32, 0, 32}, {4, 64, 0, 32},
        {4, 4, 4, 5},   {8, 8, 0, 8},   {16, 16, 0, 16}, {2, 2, 0, 2},  {2, 32, 0, 32},
        {4, 0, 0, 1},   {1, 1, 0, 1},   {1, 1, 31, 2},
    };
    static const struct { uint32_t bytes, stride, wavefronts; } s[] = {
        {4, 4, 1},  {4, 128, 32}, {4, 132, 1}, {4, 136, 2}, {4, 144, 4}, {4, 160, 8}, {8, 8, 2},
        {16, 16, 4}, {16, 128, 32}, {4, 0, 1},  {4, 8, 2},   {4, 12, 1},  {4, 24, 2},  {2, 2, 1},
        {1, 1, 1},  {2, 128, 32}, {8, 0, 2},
    };
    uint64_t a[32];
    uint32_t b[32];
    for (size_t k = 0; k < sizeof g / sizeof *g; k++) {
        for (uint32_t l = 0; l < 32; l++)
            a[l] = 4096 + g[k].base + (31 - l) * g[k].stride; /* order does not matter */
        assert_int_equal(kl_sectors(a, UINT32_MAX, g[k].bytes).units, g[k].sectors);
    }
    for (size_t k = 0; k < sizeof s / sizeof *s; k++) {
        for (uint32_t l = 0; l < 32; l++)
            b[l] = l * s[k].stride;
        assert_int_equal(kl_wavefronts(b, UINT32_MAX, s[k].bytes).units, s[k].wavefronts);
    }
    /* 16-byte rows at a pitch of 128 bytes, swizzled by xor */
    for (uint32_t l = 0; l < 32; l++)
        b[l] = l * 128 + (l & 7) * 16;
    assert_int_equal(kl_wavefronts(b, UINT32_MAX, 16).units, 4);
    assert_int_equal(kl_wavefronts(b, 0x00ff0000, 16).units, 1);
    assert_int_equal(kl_wavefronts(b, 0, 16).units, 0);
    /* against brute force */
    uint64_t seed = 3;
    for (int n = 0; n < 2000; n++) {
        uint32_t bytes = 1u << box_random(&seed) % 5, mask = (uint32_t)box_random(&seed);
        uint64_t spread = box_random(&seed) % 300 + 1;
        for (uint32_t l = 0; l < 32; l++)
            a[l] = b[l] = (uint32_t)(box_random(&seed) % spread * bytes);
        static bool sector[300 * 16 / 32 + 2];
        memset(sector, 0, sizeof sector);
        uint32_t want = 0, waves = 0, group = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
        for (uint32_t l = 0; l < 32; l++)
            if (mask >> l & 1)
                for (uint32_t k = 0; k < bytes; k++)
                    if (!sector[(a[l] + k) / 32])
                        sector[(a[l] + k) / 32] = true, want++;
        assert_int_equal(kl_sectors(a, mask, bytes).units, want);
        for (uint32_t first = 0; first < 32; first += group) {
            static bool word[300 * 16 / 4 + 4];
            uint32_t bank[32] = {0}, most = 0;
            memset(word, 0, sizeof word);
            for (uint32_t l = first; l < first + group; l++)
                for (uint32_t k = 0; mask >> l & 1 && k < bytes; k++) {
                    uint64_t w = (a[l] + k) / 4;
                    if (!word[w])
                        word[w] = true, bank[w % 32]++;
                }
            for (int k = 0; k < 32; k++)
                most = bank[k] > most ? bank[k] : most;
            waves += most;
        }
        assert_int_equal(kl_wavefronts(b, mask, bytes).units, waves);
    }
}

/* Loads and stores of all widths, vectors, spaces, generic addresses, hints. */
static void memory(void **state)
{
    (void)state;
    struct box x;
    module(&x, PTX_74 ".const .align 4 .u32 tab[4] = {10, 20, 0x1e, 40};\n"
           ".global .align 8 .b8 text[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n" HEAD("k")
           " .shared .align 16 .b8 s[2048]; .local .align 16 .b8 l[32];\n"
           " .reg .f64 %g<4>; .reg .b8 %b<3>;\n shl.b32 %r6, %r5, 4;\n mov.u32 %r7, s;\n"
           " add.u32 %r7, %r7, %r6;\n mul.wide.u32 %d6, %r1, 16;\n add.u64 %d7, %d1, %d6;\n"
           " add.u64 %d8, %d2, %d6;\n"
           " ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%r10, %r11, %r12, %r13}, [%d7];\n"
           " st.shared.v4.b32 [%r7], {%r13, %r12, %r11, %r10};\n"
           " ld.shared.v2.f32 {%f1, %f2}, [%r7];\n"
           " ld.volatile.shared.f32 %f3, [%r7+8];\n ld.shared.s8 %r14, [%r7+12];\n"
           " ld.shared.u16 %h1, [%r7+14];\n ld.shared.s16 %d9, [%r7+14];\n"
           " ld.shared.b8 %b1, [%r7];\n"
           " st.shared.b8 [%r7+1], %b1;\n st.shared.b16 [%r7+2], %h1;\n"
           /* generic pointers to shared, local and global memory */
           " mov.u64 %d10, s;\n cvta.shared.u64 %d11, %d10;\n cvt.u64.u32 %d12, %r6;\n"
           " add.u64 %d11, %d11, %d12;\n ld.f64 %g1, [%d11];\n st.f64 [%d11+8], %g1;\n"
           " mov.u64 %d13, l;\n cvta.local.u64 %d14, %d13;\n st.u64 [%d14], %d9;\n"
           " st.local.v2.u32 [l+16], {%r14, %r5};\n ld.local.u32 %r15, [l+20];\n"
           " ld.u64 %d15, [%d14];\n isspacep.shared %p1, %d11;\n isspacep.local %p2, %d14;\n"
           " isspacep.global %p3, %d7;\n cvta.to.shared.u64 %d16, %d11;\n cvt.u32.u64 %r16, %d16;\n"
           " cvta.to.local.u64 %d17, %d14;\n cvta.global.u64 %d18, %d7;\n"
           " and.b32 %r17, %r5, 3;\n shl.b32 %r17, %r17, 2;\n mov.u64 %d19, tab;\n"
           " cvt.u64.u32 %d20, %r17;\n add.u64 %d19, %d19, %d20;\n ld.const.u32 %r18, [%d19];\n"
           " ld.const.u32 %r19, [tab+4];\n ld.global.v2.u32 {%r30, %r31}, [text];\n"
           " ld.shared.u32 %r20, [%r16];\n ld.shared.u32 %r21, [%r16+8];\n"
           " prefetch.global.L2 [%d7];\n prefetch.L1 [%d7];\n prefetchu.L1 [%d7];\n"
           " discard.global.L2 [%d1], 128;\n applypriority.global.L2::evict_normal [%d1], 128;\n"
           " nanosleep.u32 20;\n cvta.const.u64 %d22, %d19;\n cvta.to.const.u64 %d22, %d22;\n"
           " isspacep.const %p4, %d22;\n @!%p3 brkpt;\n"
           " ld.relaxed.gpu.global.u32 %r22, [%d18];\n"
           " ldu.global.u32 %r22, [%d7];\n"
           " add.u32 %r23, %r14, %r15;\n add.u32 %r23, %r23, %r18;\n add.u32 %r23, %r23, %r19;\n"
           " add.u32 %r23, %r23, %r22;\n selp.u32 %r24, 1, 0, %p1;\n selp.u32 %r25, 2, 0, %p2;\n"
           " selp.u32 %r26, 4, 0, %p3;\n add.u32 %r24, %r24, %r25;\n add.u32 %r24, %r24, %r26;\n"
           " cvt.u32.u64 %r27, %d15;\n add.u32 %r24, %r24, %r27;\n cvt.u32.u64 %r28, %d17;\n"
           " add.u32 %r24, %r24, %r28;\n add.u32 %r24, %r24, %r30;\n"
           " createpolicy.fractional.L2::evict_first.b64 %d21, 1.0;\n"
           " st.global.L2::cache_hint.cs.v4.u32 [%d8], {%r20, %r21, %r23, %r24}, %d21;\n"
           " ret;\n}\n");
    for (uint32_t i = 0; i < 512; i++)
        in[i] = i * 0x9e3779b9u;
    set(&x, 128);
    box_good(&x, "k", 1, 128);
    for (uint32_t t = 0; t < 128; t++) {
        const uint32_t *v = &in[4 * t];
        uint32_t w0 = v[3], s8 = (uint32_t)(int32_t)(int8_t)v[0];
        uint32_t s16 = (uint32_t)(int32_t)(int16_t)(v[0] >> 16);
        w0 = (w0 & 0xff) | (w0 & 0xff) << 8 | (v[0] >> 16) << 16;
        static const uint32_t tab[] = {10, 20, 30, 40};
        assert_int_equal(out[4 * t], w0);
        assert_int_equal(out[4 * t + 1], w0);
        assert_int_equal(out[4 * t + 2], s8 + t + tab[t & 3] + 20 + v[0]);
        assert_int_equal(out[4 * t + 3], 7 + s16 + 0x04030201);
    }
    assert_int_equal(x.counts.sstore.requests, 4 * 4);
    box_close(&x);
}

static void packing(void **state)
{
    (void)state;
    struct box x;
    module(&x, PTX_80 HEAD("k")
           " .reg .b16 lo, hi;\n ld.global.u32 %r10, [%d4];\n mov.b32 {lo, hi}, %r10;\n"
           " mov.b32 %r11, {hi, lo};\n mov.b64 %d6, {%r11, %r10};\n"
           " mov.b64 {%h1, %h2, %h3, %h4}, %d6;\n mov.b64 %d7, {%h4, %h3, %h2, %h1};\n"
           " mov.b64 {%r12, %r13}, %d7;\n"
           " { .reg .b32 %r<3>; .reg .pred %p<2>; .reg .b32 lo; mov.u32 %r1, 5; mov.b32 lo, %r1;\n"
           "   setp.eq.u32 %p1, lo, 5; @%p1 bra in; trap; in: }\n"
           " sub.u32 %r14, %r12, %r13;\n mov.f32 %f1, 0f3F800000;\n add.f32 %f1, %f1, 1.5;\n"
           " mov.b32 %r15, %f1;\n add.u32 %r14, %r14, %r15;\n mov.u32 %r16, %clock;\n"
           " mov.u64 %d8, %clock64;\n mov.u32 %r17, WARP_SZ;\n add.u32 %r14, %r14, %r17;\n"
           " mov.u32 %r18, %warpid;\n mov.u32 %r19, %lanemask_lt;\n popc.b32 %r19, %r19;\n"
           " mad.lo.u32 %r14, %r18, 1000, %r14;\n add.u32 %r14, %r14, %r19;\n"
           " st.global.u32 [%d5], %r14;\n ret;\n}\n");
    for (uint32_t i = 0; i < 128; i++)
        in[i] = i * 0x12345677u;
    set(&x, 128);
    box_good(&x, "k", 1, 128);
    for (uint32_t i = 0; i < 128; i++) {
        uint32_t swapped = in[i] >> 16 | in[i] << 16;
        /* d6 = swapped | in << 32, d7 its halfwords in reverse */
        uint32_t low = swapped, high = in[i];
        assert_int_equal(out[i], (low - high) + 0x40200000 + 32 + i / 32 * 1000 + i % 32);
    }
    box_close(&x);
}

/* ---- lanes of a warp ---- */

static uint32_t shuffled(int mode, uint32_t lane, uint32_t b, uint32_t c, bool *ok)
{
    /* the manual's definition */
    int seg = (int)(c >> 8 & 31), cv = (int)(c & 31), bv = (int)(b & 31), l = (int)lane;
    int max = (l & seg) | (cv & ~seg), min = l & seg, j = 0;
    switch (mode) {
    case 0: j = l - bv, *ok = j >= max; break;
    case 1: j = l + bv, *ok = j <= max; break;
    case 2: j = l ^ bv, *ok = j <= max; break;
    default: j = min | (bv & ~seg), *ok = j <= max; break;
    }
    return (uint32_t)(*ok ? j : l);
}

static void shuffles(void **state)
{
    (void)state;
    static const char *const modes[] = {"up", "down", "bfly", "idx"};
    for (int m = 0; m < 4; m++) {
        struct box x;
        char text[3000];
        snprintf(text, sizeof text, "%s shfl.sync.%s.b32 %%r12|%%p1, %%r5, %%r10, %%r11, -1;\n"
                 " selp.u32 %%r13, 100, 0, %%p1;\n add.u32 %%r12, %%r12, %%r13;\n"
                 " st.global.u32 [%%d5], %%r12;\n ret;\n}\n",
                 PTX_80 HEAD("k") " ld.global.u32 %r10, [%d4];\n ld.global.u32 %r11, [%d4+4096];\n",
                 modes[m]);
        module(&x, text);
        /* uniform b and c in a warp, 32 warps */
        static const uint32_t cs[] = {31, 0, 0x1f00, 0x181f, 0x1c03, 0x1007, 0x0f, 0x1e01};
        for (uint32_t i = 0; i < 1024; i++)
            in[i] = i / 32 * 5 % 32, in[i + 1024] = cs[i / 32 % 8];
        set(&x, 1024);
        box_good(&x, "k", 32, 32);
        for (uint32_t i = 0; i < 1024; i++) {
            bool ok;
            uint32_t from = shuffled(m, i % 32, in[i], in[i + 1024], &ok);
            assert_int_equal(out[i], from + (ok ? 100 : 0));
        }
        box_close(&x);
    }
}

static void lanes(void **state)
{
    (void)state;
    struct box x;
    module(&x, PTX_80 HEAD("k")
           " ld.global.u32 %r10, [%d4];\n and.b32 %r11, %r10, 1;\n setp.ne.u32 %p1, %r11, 0;\n"
           " vote.sync.ballot.b32 %r12, %p1, -1;\n vote.sync.any.pred %p2, %p1, -1;\n"
           " vote.sync.all.pred %p3, %p1, -1;\n vote.sync.uni.pred %p4, !%p1, -1;\n"
           " selp.u32 %r13, 1, 0, %p2;\n selp.u32 %r14, 2, 0, %p3;\n selp.u32 %r15, 4, 0, %p4;\n"
           " add.u32 %r13, %r13, %r14;\n add.u32 %r13, %r13, %r15;\n"
           " redux.sync.add.u32 %r16, %r10, -1;\n redux.sync.min.s32 %r17, %r10, -1;\n"
           " redux.sync.max.u32 %r18, %r10, -1;\n redux.sync.and.b32 %r19, %r10, -1;\n"
           " redux.sync.or.b32 %r20, %r10, -1;\n redux.sync.xor.b32 %r21, %r10, -1;\n"
           " and.b32 %r22, %r10, 3;\n match.any.sync.b32 %r23, %r22, -1;\n"
           " match.all.sync.b32 %r24|%p5, %r22, -1;\n bar.warp.sync -1;\n"
           " xor.b32 %r25, %r12, %r13;\n xor.b32 %r25, %r25, %r16;\n xor.b32 %r25, %r25, %r17;\n"
           " xor.b32 %r25, %r25, %r18;\n xor.b32 %r25, %r25, %r19;\n xor.b32 %r25, %r25, %r20;\n"
           " xor.b32 %r25, %r25, %r21;\n xor.b32 %r25, %r25, %r23;\n xor.b32 %r25, %r25, %r24;\n"
           " st.global.u32 [%d5], %r25;\n ret;\n}\n");
    uint64_t seed = 77;
    for (uint32_t i = 0; i < 1024; i++)
        in[i] = i < 32 ? 5 : i < 64 ? 8 : (uint32_t)box_random(&seed);
    set(&x, 1024);
    box_good(&x, "k", 4, 256);
    for (uint32_t i = 0; i < 1024; i++) {
        const uint32_t *v = in + i / 32 * 32;
        uint32_t ballot = 0, add = 0, max = 0, and = ~0u, or = 0, xor = 0, any = 0, same = 0;
        int32_t min = INT32_MAX;
        for (int l = 0; l < 32; l++) {
            ballot |= (v[l] & 1) << l;
            add += v[l], and &= v[l], or |= v[l], xor ^= v[l];
            max = v[l] > max ? v[l] : max;
            min = (int32_t)v[l] < min ? (int32_t)v[l] : min;
            any |= (uint32_t)((v[l] & 3) == (in[i] & 3)) << l;
            same += (v[l] & 3) == (v[0] & 3);
        }
        uint32_t votes = (ballot != 0) | (ballot == ~0u) << 1 | (ballot == 0 || ballot == ~0u) << 2;
        assert_int_equal(out[i], ballot ^ votes ^ add ^ (uint32_t)min ^ max ^ and ^ or ^ xor ^ any ^
                                     (same == 32 ? ~0u : 0));
    }
    box_close(&x);
    module(&x, ".version 8.0\n.target sm_90\n.address_size 64\n" HEAD("k")
           " mov.u32 %r11, 0;\n elect.sync %r10|%p1, -1;\n @%p1 mov.u32 %r11, 7;\n"
           " add.u32 %r11, %r11, %r10;\n st.global.u32 [%d5], %r11;\n"
           " fence.proxy.async.global;\n fence.proxy.async;\n"
           " fence.proxy.async.shared::cta;\n griddepcontrol.wait;\n"
           " griddepcontrol.launch_dependents;\n"
           " ret;\n}\n");
    set(&x, 32);
    box_good(&x, "k", 1, 32);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i ? 0 : 7);
    box_close(&x);
}

/* ---- atomics ---- */

static void atomics(void **state)
{
    (void)state;
    /* op, type, initial value; the result must be that of any order, so operands are chosen */
    static const struct { const char *op, *type; uint64_t init, want; } t[] = {
        {"add", "u32", 5, 5 + 496},
        {"add", "s32", (uint32_t)-5, 491},
        {"add", "u64", 1ull << 40, (1ull << 40) + 496},
        {"add", "f32", 0x3f800000, 0x43f88000}, /* 497 */
        {"add", "f64", 0x3ff0000000000000, 0x407f100000000000},
        {"min", "u32", 7, 0}, {"min", "s32", (uint32_t)-7, (uint32_t)-7},
        {"max", "u32", 7, 31}, {"max", "s32", (uint32_t)-7, 31},
        {"min", "u64", 70, 0}, {"max", "s64", (uint64_t)-7, 31},
        {"min", "s64", (uint64_t)-7, (uint64_t)-7}, {"max", "u64", 70, 70},
        {"and", "b32", 0xff, 0}, {"or", "b32", 0x100, 0x11f}, {"xor", "b32", 1, 1},
        {"and", "b64", 0xff, 0}, {"or", "b64", 0x100, 0x11f}, {"xor", "b64", 1, 1},
        {"exch", "b32", 99, 31}, {"exch", "b64", 99, 31},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        for (int where = 0; where < 6; where++) {
            struct box x;
            char text[4000], reg[8], value[200], get[100];
            bool flt = t[k].type[0] == 'f', wide = strstr(t[k].type, "64") != NULL;
            const char *space = where / 2 == 0 ? ".global" : where / 2 == 1 ? ".shared" : "";
            bool red = where & 1;
            if (red && strcmp(t[k].op, "exch") == 0)
                continue;
            strcpy(reg, flt ? wide ? "%g1" : "%f1" : wide ? "%d10" : "%r10");
            snprintf(value, sizeof value, flt ? "cvt.rn.%s.u32 %s, %%r5;" : "cvt.u%s.u32 %s, %%r5;",
                     flt ? t[k].type : wide ? "64" : "32", reg);
            snprintf(get, sizeof get,
                     red ? "red%s.%s.%s [%%d6], %s;" : "atom%s.%s.%s %s, [%%d6], %s;",
                     space, t[k].op, t[k].type, reg, reg);
            snprintf(text, sizeof text,
                     "%s .reg .f64 %%g<3>; .shared .align 8 .b8 s[8];\n"
                     " ld.global.b64 %%d9, [%%d1];\n"
                     " mov.u64 %%d8, s; cvta.shared.u64 %%d7, %%d8;\n %s\n"
                     " setp.eq.u32 %%p1, %%r5, 0; @%%p1 st.shared.b64 [s], %%d9;\n"
                     " @%%p1 st.global.b64 [%%d2], %%d9;\n %s\n %s\n"
                     " ld.shared.b64 %%d9, [s];\n %s\n"
                     " ret;\n}\n",
                     PTX_80 HEAD("k"), value,
                     where / 2 == 0   ? "mov.u64 %d6, %d2;"
                     : where / 2 == 1 ? "mov.u64 %d6, s;"
                                      : "mov.u64 %d6, %d7;",
                     get, where / 2 ? "@%p1 st.global.b64 [%d2], %d9;" : "");
            module(&x, text);
            memcpy(in, &t[k].init, 8);
            set(&x, 32);
            box_good(&x, "k", 1, 32);
            uint64_t got;
            memcpy(&got, out, 8);
            if (!wide)
                got &= UINT32_MAX;
            if (got != t[k].want)
                fail_msg("%s: %llx, not %llx", text, (unsigned long long)got,
                         (unsigned long long)t[k].want);
            assert_int_equal(x.counts.instructions[KL_SIM_ATOM], 1);
            box_close(&x);
        }
    /* the old values, cas, inc and dec */
    struct box x;
    module(&x, PTX_80 HEAD("k") " atom.global.add.u32 %r10, [%d2], 1;\n"
           " atom.global.inc.u32 %r11, [%d2+4], 4;\n"
           " atom.relaxed.gpu.global.dec.u32 %r12, [%d2+8], 4;\n"
           " atom.global.cas.b32 %r13, [%d2+12], %r5, 1000;\n"
           " atom.global.cas.b64 %d6, [%d2+16], 0, 5;\n red.global.max.u32 [%d2+24], %r10;\n"
           " red.global.inc.u32 [%d2+28], 100;\n atom.cas.b32 %r14, [%d2+12], 1, 1;\n"
           " add.u32 %r15, %r11, %r12;\n add.u32 %r15, %r15, %r13;\n"
           " st.global.u32 [%d5+64], %r10;\n"
           " st.global.u32 [%d5+192], %r15;\n mov.u32 %r16, 0x3c003c00; "
           "atom.add.noftz.f16x2 %r16, [%d2+32], %r16;\n"
           " { .shared .b32 s1; setp.eq.u32 %p1, %r5, 0; @%p1 st.shared.b32 [s1], 3;\n"
           "   atom.shared.inc.u32 %r17, [s1], 7; atom.shared.dec.u32 %r17, [s1], 7;\n"
           "   red.shared.inc.u32 [s1], 9; red.shared.dec.u32 [s1], 9;\n"
           "   atom.shared.cas.b32 %r17, [s1], 3, 4; @%p1 st.global.u32 [%d2+36], %r17; }\n"
           " atom.inc.u32 %r18, [%d2+40], 1; atom.dec.u32 %r18, [%d2+40], 1;\n"
           " red.inc.u32 [%d2+40], 1; red.dec.u32 [%d2+40], 1; red.global.dec.u32 [%d2+40], 1;\n"
           " ret;\n}\n");
    set(&x, 32);
    memset(out, 0, sizeof mem.out);
    out[3] = 7;
    box_good(&x, "k", 1, 32);
    assert_int_equal(out[0], 32);
    assert_int_equal(out[1], 32 % 5);
    assert_int_equal(out[2], 3); /* 0 4 3 2 1 0 4 ... after 32 */
    assert_int_equal(out[3], 1000);
    assert_int_equal(out[4], 5);
    assert_int_equal(out[6], 31);
    assert_int_equal(out[7], 32);
    assert_int_equal(out[8], 0x50005000);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[16 + i], i);
    assert_int_equal(out[48], 0 + 0 + 7);
    assert_int_equal(out[48 + 8], 8 % 5 + (5 - 8 % 5) % 5 + 1000);
    box_close(&x);
}

/* ---- barriers ---- */

static void barriers(void **state)
{
    (void)state;
    struct box x;
    module(&x, PTX_80 HEAD("red") " ld.global.u32 %r10, [%d4];\n setp.gt.u32 %p1, %r10, 50;\n"
           " bar.red.popc.u32 %r11, 0, %p1;\n bar.red.and.pred %p2, 1, !%p1;\n"
           " barrier.red.or.pred %p3, 0, %r4, %p1;\n selp.u32 %r12, 1000, 0, %p2;\n"
           " selp.u32 %r13, 2000, 0, %p3;\n add.u32 %r11, %r11, %r12;\n add.u32 %r11, %r11, %r13;\n"
           " st.global.u32 [%d5], %r11;\n barrier.red.popc.u32 %r14, 2, %p1;\n"
           " barrier.red.and.pred %p4, 3, %p1;\n bar.red.or.pred %p5, 4, %p1;\n membar.cta;\n"
           " fence.acq_rel.gpu;\n ret;\n}\n"
           /* warps 0 and 1 make, 2 and 3 use */
           HEAD("pipe") " .shared .align 4 .b32 s[64];\n shr.u32 %r10, %r5, 6;\n"
           " setp.ne.u32 %p1, %r10, 0;\n and.b32 %r11, %r5, 63;\n mov.u32 %r15, s;\n"
           " mad.lo.u32 %r11, %r11, 4, %r15;\n"
           " @%p1 bra use;\n ld.global.u32 %r12, [%d4];\n st.shared.u32 [%r11], %r12;\n"
           " bar.arrive 1, 128;\n bar.sync 2, 128;\n ld.shared.u32 %r13, [%r11];\n"
           " st.global.u32 [%d5], %r13;\n ret;\n"
           "use:\n barrier.sync.aligned 1, 128;\n ld.shared.u32 %r14, [%r11];\n"
           " add.u32 %r14, %r14, 1;\n st.shared.u32 [%r11], %r14;\n barrier.arrive 2, 128;\n"
           " st.global.u32 [%d5], %r14;\n ret;\n}\n");
    for (uint32_t i = 0; i < 256; i++)
        in[i] = i;
    set(&x, 128);
    box_good(&x, "red", 2, 128);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(out[i], i < 128 ? 77 + 2000 : 128 + 2000);
    assert_int_equal(x.counts.barriers, 2 * 6);
    for (int k = 0; k < 2; k++) {
        set(&x, 128);
        x.opt.reverse = k;
        box_good(&x, "pipe", 1, 128);
        for (uint32_t i = 0; i < 128; i++)
            assert_int_equal(out[i], i % 64 + 1);
    }
    box_close(&x);
}

/* ---- cp.async: a ring of two stages, and what a missing wait does ---- */

#define RING(wait)                                                                                 \
    PTX_74 HEAD("k") " .shared .align 16 .b8 s[1024];\n shl.b32 %r10, %r5, 4;\n"                   \
    " mov.u32 %r11, s;\n add.u32 %r11, %r11, %r10;\n cvt.u64.u32 %d6, %r10;\n"                     \
    " add.u64 %d7, %d1, %d6;\n add.u64 %d8, %d2, %d6;\n mov.u32 %r12, 0;\n"                        \
    " cp.async.cg.shared.global.L2::128B [%r11], [%d7], 16;\n cp.async.commit_group;\n"            \
    "loop:\n and.b32 %r13, %r12, 1;\n xor.b32 %r14, %r13, 1;\n shl.b32 %r14, %r14, 9;\n"           \
    " add.u32 %r14, %r14, %r11;\n setp.lt.u32 %p1, %r12, 3;\n add.u64 %d7, %d7, 512;\n"            \
    " @%p1 cp.async.cg.shared.global [%r14], [%d7], 16;\n cp.async.commit_group;\n " wait "\n"     \
    " bar.sync 0;\n shl.b32 %r15, %r13, 9;\n add.u32 %r16, %r15, 496;\n"                           \
    " sub.u32 %r16, %r16, %r10;\n mov.u32 %r15, s;\n add.u32 %r16, %r16, %r15;\n"                  \
    " ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r16];\n"                                      \
    " st.global.v4.u32 [%d8], {%r20, %r21, %r22, %r23};\n add.u64 %d8, %d8, 512;\n bar.sync 0;\n"  \
    " add.u32 %r12, %r12, 1;\n setp.lt.u32 %p2, %r12, 4;\n @%p2 bra loop;\n ret;\n}\n"

static void async(void **state)
{
    (void)state;
    struct box x;
    for (uint32_t i = 0; i < 512; i++)
        in[i] = i * 31;
    module(&x, RING("cp.async.wait_group 1;"));
    set(&x, 32);
    box_good(&x, "k", 1, 32);
    for (uint32_t i = 0; i < 512; i++)
        assert_int_equal(out[i], in[i / 128 * 128 + (31 - i % 128 / 4) * 4 + i % 4]);
    assert_int_equal(x.counts.gload.requests, 4);
    assert_int_equal(x.counts.gload.parts, 64);
    assert_int_equal(x.counts.sstore.requests, 4);
    box_close(&x);
    module(&x, RING("cp.async.wait_all;"));
    set(&x, 32);
    box_good(&x, "k", 1, 32);
    box_close(&x);
    module(&x, RING("cp.async.wait_group 2;"));
    set(&x, 32);
    assert_int_equal(box_run(&x, "k", 1, 32), KILN_E_BOUNDS);
    assert_string_equal(kiln_diags_at(x.d, 0)->code, "K1505");
    box_close(&x);
    /* fewer bytes than copied: the rest is zero */
    module(&x, PTX_80 HEAD("k") " .shared .align 16 .b8 s[512];\n shl.b32 %r10, %r5, 3;\n"
           " mov.u32 %r11, s;\n add.u32 %r11, %r11, %r10;\n and.b32 %r12, %r5, 7;\n"
           " cp.async.ca.shared.global [%r11], [%d1+8], 8, %r12;\n cp.async.wait_all;\n"
           " ld.shared.u32 %r13, [%r11];\n ld.shared.u32 %r14, [%r11+4];\n"
           " add.u32 %r13, %r13, %r14;\n"
           " st.global.u32 [%d5], %r13;\n ret;\n}\n");
    set(&x, 32);
    box_good(&x, "k", 1, 32);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t v[2] = {0, 0};
        memcpy(v, in + 2, i & 7);
        assert_int_equal(out[i], v[0] + v[1]);
    }
    box_close(&x);
}

/* ---- findings ---- */

/* Each body is run with 128 threads over 1024 elements; code: what must be found, NULL: nothing.
 * place: the instruction that the finding points at. */
static const struct fault { const char *name, *code, *place, *body; } faults[] = {
    {"clean", NULL, NULL, "ld.global.u32 %r10, [%d4]; st.global.u32 [%d5], %r10;"},
    {"misaligned", "K1501", "ld.global.u32 %r10, [%d4+2]", "ld.global.u32 %r10, [%d4+2];"},
    {"misaligned vector", "K1501", "ld.global.v2.u32 {%r10,%r11}, [%d4+4]",
     "mul.wide.u32 %d6, %r1, 8; add.u64 %d4, %d1, %d6; ld.global.v2.u32 {%r10,%r11}, [%d4+4];"},
    {"aligned vector", NULL, NULL,
     "mul.wide.u32 %d6, %r1, 8; add.u64 %d4, %d1, %d6; ld.global.v2.u32 {%r10,%r11}, [%d4+8];"},
    {"behind the end", "K1502", "ld.global.u32 %r10, [%d4+16380]",
     "ld.global.u32 %r10, [%d4+16380];"},
    {"before the beginning", "K1502", "st.global.u32 [%d5+-4], 1", "st.global.u32 [%d5+-4], 1;"},
    {"null", "K1502", "ld.global.u8 %h1, [%d6]", "mov.u64 %d6, 0; ld.global.u8 %h1, [%d6];"},
    {"guarded", NULL, NULL,
     "setp.eq.u32 %p1, %r1, 0; @%p1 ld.global.u32 %r10, [%d4+16380];"},
    {"half outside", "K1502", "ld.global.b64 %d6, [%d4+16376]",
     "add.u64 %d4, %d4, %d3; ld.global.b64 %d6, [%d4+16376];"},
    {"read-only", "K1503", "st.global.u32 [%d4], 1", "st.global.u32 [%d4], 1;"},
    {"read-only atomic", "K1503", "red.global.add.u32 [%d4], 1", "red.global.add.u32 [%d4], 1;"},
    {"shared outside", "K1504", "st.shared.u32 [%r6+4], 0",
     ".shared .align 512 .b32 s[128]; mov.u32 %r50, s; mad.lo.u32 %r6, %r5, 4, %r50; "
     "st.shared.u32 [%r6+4], 0;"},
    {"shared inside", NULL, NULL,
     ".shared .align 512 .b32 s[128]; mov.u32 %r50, s; mad.lo.u32 %r6, %r5, 4, %r50; "
     "st.shared.u32 [%r6], 0;"},
    {"shared never written", "K1505", "ld.shared.u32 %r7, [%r6]",
     ".shared .align 512 .b32 s[129]; mov.u32 %r50, s; mad.lo.u32 %r6, %r5, 4, %r50; "
     "st.shared.u32 [%r6+4], 0; bar.sync 0; "
     "ld.shared.u32 %r7, [%r6];"},
    {"half a word written", "K1505", "ld.shared.u32 %r7, [%r6]",
     ".shared .align 512 .b32 s[128]; mov.u32 %r50, s; mad.lo.u32 %r6, %r5, 4, %r50; "
     "mov.b16 %h1, 1; st.shared.u16 [%r6], %h1; "
     "ld.shared.u32 %r7, [%r6];"},
    {"register", "K1506", "add.u32 %r7, %r6, 1", "add.u32 %r7, %r6, 1;"},
    {"register in some lanes", "K1506", "add.u32 %r7, %r6, 1",
     "setp.lt.u32 %p1, %r5, 100; @%p1 mov.u32 %r6, 0; add.u32 %r7, %r6, 1;"},
    {"predicate", "K1506", "@%p1 mov.u32 %r6, 0", "@%p1 mov.u32 %r6, 0;"},
    {"address register", "K1506", "ld.global.u32 %r6, [%d20]", "ld.global.u32 %r6, [%d20];"},
    {"selected", "K1506", "selp.u32 %r7, %r6, 1, %p1",
     "setp.lt.u32 %p1, %r5, 100; setp.lt.u32 %p2, %r5, 90; @%p2 mov.u32 %r6, 0; "
     "selp.u32 %r7, %r6, 1, %p1;"},
    {"not selected", NULL, NULL,
     "setp.lt.u32 %p1, %r5, 100; @%p1 mov.u32 %r6, 0; selp.u32 %r7, %r6, 1, %p1;"},
    {"write and read", "K1507", "ld.shared.u32 %r7, [%r8]",
     ".shared .align 512 .b32 s[128]; mov.u32 %r50, s; mad.lo.u32 %r6, %r5, 4, %r50; "
     "xor.b32 %r8, %r6, 128; st.shared.u32 [%r6], %r5; "
     "st.shared.u32 [%r6], 0; bar.sync 0; st.shared.u32 [%r6], %r5; "
     "ld.shared.u32 %r7, [%r8];"},
    {"write, barrier, read", NULL, NULL,
     ".shared .align 512 .b32 s[128]; mov.u32 %r50, s; mad.lo.u32 %r6, %r5, 4, %r50; "
     "xor.b32 %r8, %r6, 128; st.shared.u32 [%r6], %r5; "
     "bar.sync 0; ld.shared.u32 %r7, [%r8];"},
    {"within a warp", NULL, NULL,
     ".shared .align 512 .b32 s[128]; mov.u32 %r50, s; mad.lo.u32 %r6, %r5, 4, %r50; "
     "xor.b32 %r8, %r6, 64; st.shared.u32 [%r6], %r5; "
     "ld.shared.u32 %r7, [%r8];"},
    {"read and write", "K1507", "st.shared.u32 [%r8], 1",
     ".shared .align 512 .b32 s[128]; mov.u32 %r50, s; mad.lo.u32 %r6, %r5, 4, %r50; "
     "xor.b32 %r8, %r6, 128; st.shared.u32 [%r6], %r5; "
     "bar.sync 0; ld.shared.u32 %r7, [%r6]; st.shared.u32 [%r8], 1;"},
    {"two writes", "K1507", "st.shared.u32 [s], %r6",
     ".shared .b32 s[1]; shr.u32 %r6, %r5, 5; and.b32 %r7, %r5, 31; setp.eq.u32 %p1, %r7, 0; "
     "@%p1 st.shared.u32 [s], %r6;"},
    {"two equal writes", NULL, NULL, ".shared .b32 s[1]; st.shared.u32 [s], 7;"},
    {"neighbouring bytes", NULL, NULL,
     ".shared .b8 s[128]; mov.u32 %r6, s; and.b32 %r7, %r5, 31; shl.b32 %r7, %r7, 2; "
     "shr.u32 %r8, %r5, 5; add.u32 %r7, %r7, %r8; add.u32 %r6, %r6, %r7; cvt.u16.u32 %h1, %r5; "
     "st.shared.u8 [%r6], %h1; ld.shared.u8 %h2, [%r6];"},
    {"overlapping bytes", "K1507", "st.shared.u16 [%r6], %h1",
     ".shared .align 4 .b8 s[128]; mov.u32 %r6, s; shr.u32 %r7, %r5, 6; shl.b32 %r7, %r7, 1; "
     "add.u32 %r6, %r6, %r7; cvt.u16.u32 %h1, %r5; and.b32 %r8, %r5, 31; setp.eq.u32 %p1, %r8, 0; "
     "@%p1 st.shared.u16 [%r6], %h1;"},
    {"volatile flags", NULL, NULL,
     ".shared .b32 s[1]; shr.u32 %r6, %r5, 5; and.b32 %r7, %r5, 31; setp.eq.u32 %p1, %r7, 0; "
     "@%p1 st.volatile.shared.u32 [s], %r6; @%p1 ld.volatile.shared.u32 %r7, [s];"},
    {"atomic and plain", "K1507", "ld.shared.u32 %r6, [s]",
     ".shared .b32 s[1]; setp.eq.u32 %p1, %r5, 0; @%p1 st.shared.u32 [s], 0; bar.sync 0; "
     "red.shared.add.u32 [s], 1; ld.shared.u32 %r6, [s];"},
    {"atomics", NULL, NULL,
     ".shared .b32 s[1]; setp.eq.u32 %p1, %r5, 0; @%p1 st.shared.u32 [s], 0; bar.sync 0; "
     "red.shared.add.u32 [s], 1; atom.shared.max.u32 %r7, [s], %r5; bar.sync 0; "
     "ld.shared.u32 %r6, [s];"},
    {"async before the readers are done", "K1507", "cp.async.ca.shared.global [%r6], [%d4], 4",
     ".shared .align 512 .b32 s[128]; mov.u32 %r50, s; mad.lo.u32 %r6, %r5, 4, %r50; "
     "st.shared.u32 [%r6], 1; bar.sync 0; xor.b32 %r8, %r6, 128; ld.shared.u32 %r9, [%r8]; "
     "cp.async.ca.shared.global [%r6], [%d4], 4; cp.async.wait_all;"},
    {"barrier in a branch", "K1508", "bar.sync 0",
     "setp.lt.u32 %p1, %r5, 64; @%p1 bra skip; bar.sync 0; skip:"},
    {"barrier in half a warp", "K1508", "@%p1 bar.sync 0", "setp.lt.u32 %p1, %r5, 80; "
        "@%p1 bar.sync 0;"},
    {"two barriers", "K1508", "bar.sync 0",
     "setp.lt.u32 %p1, %r5, 64; @%p1 bra one; bar.sync 1; bra two; one: bar.sync 0; two:"},
    {"after an exit", "K1508", "bar.sync 0", "setp.lt.u32 %p1, %r5, 64; @%p1 exit; bar.sync 0;"},
    {"after the exit of lanes", NULL, NULL,
     "and.b32 %r6, %r5, 1; setp.eq.u32 %p1, %r6, 0; @%p1 exit; bar.sync 0;"},
    {"no such barrier", "K1508", "bar.sync %r5", "bar.sync %r5;"},
    {"half warps", "K1508", "bar.sync 0, %r6", "mov.u32 %r6, 48; bar.sync 0, %r6;"},
    {"lanes of a shared store", "K1509", "st.shared.u32 [s], %r6",
     ".shared .b32 s[1]; and.b32 %r6, %r5, 1; setp.lt.u32 %p1, %r5, 2; "
     "@%p1 st.shared.u32 [s], %r6;"},
    {"lanes of a global store", "K1509", "st.global.u32 [%d2], %r5", "st.global.u32 [%d2], %r5;"},
    {"lanes agree", NULL, NULL, "st.global.u32 [%d2], 5;"},
    {"shuffle from nobody", "K1510", "shfl.sync.bfly.b32 %r6, %r5, 16, 31, %r7",
     "and.b32 %r6, %r5, 31; setp.lt.u32 %p1, %r6, 16; mov.u32 %r7, 0xffff; "
     "@%p1 shfl.sync.bfly.b32 %r6, %r5, 16, 31, %r7;"},
    {"shuffle within half a warp", NULL, NULL,
     "and.b32 %r6, %r5, 31; setp.lt.u32 %p1, %r6, 16; mov.u32 %r7, 0xffff; "
     "@%p1 shfl.sync.bfly.b32 %r6, %r5, 8, 31, %r7;"},
    {"mask too wide", "K1510", "@%p1 shfl.sync.bfly.b32 %r6, %r5, 8, 31, -1",
     "and.b32 %r6, %r5, 31; setp.lt.u32 %p1, %r6, 16; "
     "@%p1 shfl.sync.bfly.b32 %r6, %r5, 8, 31, -1;"},
    {"mask too narrow", "K1510", "vote.sync.any.pred %p1, %p1, 0xffff",
     "setp.lt.u32 %p1, %r5, 16; vote.sync.any.pred %p1, %p1, 0xffff;"},
    {"endless", "K1511", NULL, "loop: bra loop;"},
    {"parameters", "K1512", "ld.param.u64 %d6, [pn]", "ld.param.u64 %d6, [pn];"},
    {"local", "K1512", "st.local.u32 [l+8], 0", ".local .b32 l[1]; st.local.u32 [l+8], 0;"},
    {"trap", "K1513", "@%p1 trap", "setp.eq.u32 %p1, %r1, 0; @%p1 trap;"},
};

static void finding(const struct fault *f)
{
    struct box x;
    char text[4096];
    snprintf(text, sizeof text, "%s %s\n ret;\n}\n", PTX_80 HEAD("k"), f->body);
    for (int reverse = 0; reverse < 2; reverse++) {
        module(&x, text);
        x.opt.reverse = reverse;
        x.opt.budget = 50000;
        set(&x, 1024);
        kiln_status st = box_run(&x, "k", 1, 128);
        if (!f->code) {
            if (st || x.d->list.n)
                fail_msg("%s: status %d\n%s", f->name, st, box_text(&x));
        } else {
            const kiln_diag *g = kiln_diags_at(x.d, 0);
            if (st != KILN_E_BOUNDS || !g || strcmp(g->code, f->code) != 0)
                fail_msg("%s: status %d, not %s\n%s", f->name, st, f->code, box_text(&x));
            /* for races either side may be the later one */
            if (f->place && (!reverse || strcmp(f->code, "K1507") != 0) &&
                !strstr(g->place.text, f->place))
                fail_msg("%s: not at %s\n%s", f->name, f->place, box_text(&x));
        }
        box_close(&x);
    }
}

static void findings(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        finding(&faults[k]);
}

/* How a finding reads, with the source place; and counts by source line. */
static void rendered(void **state)
{
    (void)state;
    struct box x;
    module(&x, PTX_80 ".file 1 \"add.kiln\"\n" HEAD("k")
           ".loc 1 4 12\n ld.global.u32 %r10, [%d4];\n ld.global.u32 %r11, [%d4+16000];\n"
           ".loc 1 5 3\n add.u32 %r10, %r10, %r11;\n st.global.u32 [%d5], %r10;\n"
           ".loc 1 4 2, function_name info, inlined_at 1 5 1\n ld.global.u32 %r10, [%d4];\n"
           " ret;\n}\n.section .debug_str\n{\ninfo:\n.b8 0\n}\n");
    free((char *)(uintptr_t)ran[--nran].text); /* ptxas wants real debug sections */
    set(&x, 1024);
    x.names = (const char *const[]){"x", "y"};
    assert_int_equal(box_run(&x, "k", 1, 128), KILN_E_BOUNDS);
    assert_string_equal(box_text(&x),
        "test.ptx:22:2: error[K1502]: load of 4 bytes outside every buffer: 0 bytes behind the end "
        "of `x` (16384 bytes)\n"
        "   22 |  ld.global.u32 %r11, [%d4+16000];\n"
        "      |  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "note: first by thread (96,0,0) of CTA (0,0,0); 32 times in all\n"
        "add.kiln:4:12: note: the instruction comes from here\n");
    const kl_sim_counts *c = &x.counts;
    assert_int_equal(c->nline, 3);
    assert_null(c->line[0].file);
    assert_string_equal(c->line[1].file, "add.kiln");
    assert_int_equal(c->line[1].line, 4);
    assert_int_equal(c->line[1].instructions, 3 * 4 + 4);
    assert_int_equal(c->line[1].gload.requests, 4 + 3 + 4);
    assert_int_equal(c->line[1].gload.parts, 16 + 12 + 16);
    assert_int_equal(c->line[2].line, 5);
    assert_int_equal(c->line[2].gstore.bytes, 512);
    box_close(&x);
}

/* ---- errors of the text and of the launch ---- */

static void errors(void **state)
{
    (void)state;
    static const struct { const char *code, *body; } t[] = {
        {"K1602", "add.s32 %r1, %r2 %r3;"},
        {"K1602", "add.s32 %r1, %r2;"},
        {"K1602", "add.s32 %r1, %r2, %r3"},
        {"K1602", "ld.global.u32 %r1, %d1;"},
        {"K1602", "ld.global.v2.u32 {%r1}, [%d1];"},
        {"K1602", "bra 5;"},
        {"K1602", ".reg %x;"},
        {"K1602", ".shared .b32 s[];"},
        {"K1602", ".shared .align 3 .b32 s[4];"},
        {"K1602", "lop3.b32 %r1, %r1, %r1, %r1, %r1;"},
        {"K1602", ";"},
        {"K1603", "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [t, {%f1,%f2}];"},
        {"K1603", "add.foo.s32 %r1, %r1, %r1;"},
        {"K1603", "add.ftz.s32 %r1, %r1, %r1;"},
        {"K1603", "add %r1, %r1, %r1;"},
        {"K1603", "setp.lt.b32.u32 %p1, %r1, %r1;"},
        {"K1603", "setp.u32 %p1, %r1, %r1;"},
        {"K1603", "setp.ltu.u32 %p1, %r1, %r1;"},
        {"K1603", "setp.lt.u32 %p1, %r1, %r1, %p2;"},
        {"K1603", "cvt.s32.f32 %r1, %f1;"},
        {"K1603", "cvt.f32.s32 %f1, %r1;"},
        {"K1603", "cvt.rn.s32.u32 %r1, %r1;"},
        {"K1603", "cvt.f16.f32 %h1, %f1;"},
        {"K1603", "ld.global.v8.b64 {%d1,%d2,%d3,%d4,%d5,%d6,%d7,%d8}, [%d1];"},
        {"K1603", "ld.global.v2.u32 {%r1,%r1}, [%d1];"},
        {"K1603", "atom.global.min.f32 %f1, [%d1], %f1;"},
        {"K1603", "cp.async.ca.shared.global [%r1], [%d1], 12;"},
        {"K1603", "call foo;"},
        {"K1603", ".branchtargets a, b;"},
        {"K1604", "mov.u32 %r60, 0;"},
        {"K1604", "mov.u32 %r01, 0;"},
        {"K1604", "mov.u32 %r1, nothing;"},
        {"K1604", "bra nowhere;"},
        {"K1604", "@%q1 bra end;"},
        {"K1604", "@%r1 mov.u32 %r1, 0;"},
        {"K1604", ".reg .b32 a; .reg .b32 a;"},
        {"K1604", "a: a:"},
        {"K1604", "{ .reg .b32 a; } mov.u32 a, 0;"},
        {"K1604", "ld.global.u32 %r1, [what+4];"},
        {"K1605", "add.u64 %d1, %d1, %r1;"},
        {"K1605", "add.u32 %r1, %d1, %r1;"},
        {"K1605", "mov.u32 %p1, 0;"},
        {"K1605", "ld.global.u64 %r1, [%d1];"},
        {"K1605", "mov.u32 %tid.x, 0;"},
        {"K1605", "mov.b64 %d1, {%r1, %r2, %r3};"},
        {"K1605", "mov.b64 %d1, {%h1, %h2};"},
        {"K1605", "ld.global.u32 %r1, [%h1];"},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        struct box x;
        char text[3000];
        snprintf(text, sizeof text, "%s %s\n ret;\n}\n", PTX_80 ENTRY("k") REGS, t[k].body);
        box_parse(&x, text);
        const kiln_diag *g = kiln_diags_at(x.d, 0);
        if (x.m || !g || strcmp(g->code, t[k].code) != 0)
            fail_msg("%s: not %s\n%s", t[k].body, t[k].code, box_text(&x));
        assert_true(g->place.line == 7 || g->place.line == 8);
        box_close(&x);
    }
    static const char *const whole[] = {
        "nonsense", PTX_80 ".func foo() { ret; }\n", PTX_80 ".entry", PTX_80 ".entry k {",
        PTX_80 ".entry k(.param .u32)", PTX_80 ".entry k(.reg .u32 a) { ret; }",
        ".version 7.0\n.target sm_80\n.address_size 32\n", PTX_80 ".global .texref t;",
        PTX_80 ".const .u32 c[2] = {1, 2, 3};", PTX_80 ".extern .global .u32 g;",
        PTX_80 ".shared .b32 s[1000000][1000000];", PTX_80 ".file 1 foo",
    };
    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++) {
        struct box x;
        box_parse(&x, whole[k]);
        if (x.m || !x.d->nerr)
            fail_msg("%s", whole[k]);
        box_close(&x);
    }
}

static void launches(void **state)
{
    (void)state;
    struct box x;
    module(&x, PTX_80 ENTRY("any") " ret;\n}\n"
           ".visible .entry most(.param .u32 n)\n.maxntid 64\n{ ret; }\n"
           ".visible .entry exact()\n.reqntid 8, 8, 1\n{ ret; }\n");
    static const struct { const char *entry; uint32_t grid[3], block[3]; bool good; } t[] = {
        {"any", {1, 1, 1}, {1, 1, 1}, true},       {"none", {1, 1, 1}, {1, 1, 1}, false},
        {"any", {0, 1, 1}, {1, 1, 1}, false},      {"any", {1, 65536, 1}, {1, 1, 1}, false},
        {"any", {1, 1, 1}, {0, 1, 1}, false},      {"any", {1, 1, 1}, {1025, 1, 1}, false},
        {"any", {1, 1, 1}, {4, 16, 16}, true},     {"any", {1, 1, 1}, {1, 1, 65}, false},
        {"most", {1, 1, 1}, {64, 1, 1}, true},     {"most", {1, 1, 1}, {65, 1, 1}, false},
        {"exact", {2, 2, 2}, {8, 8, 1}, true},     {"exact", {1, 1, 1}, {64, 1, 1}, false},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        uint32_t before = x.d->nerr;
        set(&x, 0);
        kiln_status st = box_run3(&x, t[k].entry, t[k].grid, t[k].block);
        assert_int_equal(st, t[k].good ? KILN_OK : KILN_E_ARG);
        assert_int_equal(x.d->nerr - before, !t[k].good);
        if (!t[k].good)
            assert_string_equal(kiln_diags_at(x.d, x.d->list.n - 1)->code, "K1606");
    }
    box_args(&x); /* no parameters */
    assert_int_equal(box_run(&x, "any", 1, 1), KILN_E_ARG);
    box_close(&x);
}

static bool no(void *user)
{
    ++*(int *)user;
    return false;
}

/* The same memory as a const array and as one that is written; a part of it. */
static void overlapping(void **state)
{
    (void)state;
    struct box x;
    module(&x, PTX_80 HEAD("k") " ld.global.u32 %r10, [%d4];\n add.u32 %r10, %r10, 1;\n"
           " st.global.u32 [%d5], %r10;\n ret;\n}\n");
    memset(out, 0, sizeof mem.out);
    for (int k = 0; k < 3; k++) {
        box_args(&x);
        arg_mem(&x, out, sizeof mem.out, k == 1);
        arg_mem(&x, out + 64 * (k == 2), 4096, k != 1);
        arg_u32(&x, 0);
        box_good(&x, "k", 1, 64);
    }
    assert_int_equal(out[0], 2);
    assert_int_equal(out[64], 3);
    box_close(&x);
}

static void stopping(void **state)
{
    (void)state;
    struct box x;
    int calls = 0;
    module(&x, PTX_80 ENTRY("k") "loop: bra loop;\n}\n");
    set(&x, 0);
    x.opt.budget = 0;
    x.opt.tick = no, x.opt.tick_user = &calls;
    assert_int_equal(box_run(&x, "k", 1, 32), KILN_E_UNSUPPORTED);
    assert_int_equal(calls, 1);
    assert_int_equal(x.d->list.n, 0);
    box_close(&x);
}

/* ---- several threads on one module; memory that runs out; broken texts ---- */

static void *one_thread(void *arg)
{
    kl_sim *m = arg;
    uint32_t *a = calloc(1024, 4), *b = calloc(1024, 4);
    kl_env env = {.al = &kl_alloc_libc};
    kl_diags *d = kl_diags_new(&kl_alloc_libc);
    bool good = true;
    for (int k = 0; k < 20; k++) {
        struct { void *a, *b; uint32_t n; } p = {a, b, 1024};
        kl_sim_buffer buf[2] = {{a, 4096, false}, {b, 4096, true}};
        kl_sim_launch l = {.entry = "tree", .grid = {4, 1, 1}, .block = {256, 1, 1}, .param = &p,
                           .param_bytes = 20, .buffer = buf, .nbuffer = 2};
        kl_sim_counts c;
        for (uint32_t i = 0; i < 1024; i++)
            a[i] = i + (uint32_t)k;
        good &= kl_sim_run(m, &l, NULL, &c, NULL, d, &env) == KILN_OK;
        for (uint32_t i = 0; i < 4; i++)
            good &= b[i] == 256 * (256 * i + (uint32_t)k) + 255 * 128;
        good &= c.instructions[KL_SIM_LDS] == 4 * 2 * (4 + 2 + 1 + 5);
    }
    kiln_diags_free(d);
    free(a), free(b);
    return good ? arg : NULL;
}

static void threads(void **state)
{
    (void)state;
    struct box x;
    module(&x, SUM);
    pthread_t t[4];
    for (int k = 0; k < 4; k++)
        assert_int_equal(pthread_create(&t[k], NULL, one_thread, x.m), 0);
    for (int k = 0; k < 4; k++) {
        void *r;
        pthread_join(t[k], &r);
        assert_ptr_equal(r, x.m);
    }
    box_close(&x);
}

struct failing {
    long left, held;
};
static void *fail_alloc(void *user, void *p, size_t old, size_t size)
{
    struct failing *f = user;
    if (size && f->left-- <= 0)
        return NULL;
    f->held += (size != 0) - (old != 0);
    return kl_alloc_libc.fn(NULL, p, old, size);
}

/* Every allocation of parsing and running fails in turn. */
static void no_memory(void **state)
{
    (void)state;
    for (long volatile n = 0;; n++) {
        struct failing f = {n, 0};
        kl_alloc al = {fail_alloc, &f};
        jmp_buf jump;
        kl_env env = {.al = &al, .fail = &jump};
        kl_arena a = {.env = &env};
        kl_srcmap src = {.a = &a};
        kl_diags *d = kl_diags_new(&al);
        kiln_status volatile st = KILN_E_NOMEM;
        if (!d)
            continue;
        kl_diags_use(d, &env, &src);
        if (setjmp(jump) == 0) {
            static const char text[] = PTX_80 HEAD("k") " ld.global.u32 %r9, [%d4+16000];\n"
                " ret;\n}\n";
            uint32_t file = kl_src_add(&src, "t", text, sizeof text - 1, false);
            kl_sim *m = kl_sim_parse(&a, &src, file, d);
            assert_non_null(m);
            struct { void *a, *b; uint32_t n; } p = {in, out, 1024};
            kl_sim_buffer buf[2] = {{in, sizeof mem.in, false}, {out, sizeof mem.out, true}};
            kl_sim_launch l = {.entry = "k", .grid = {1, 1, 1}, .block = {128, 1, 1}, .param = &p,
                               .param_bytes = 20, .buffer = buf, .nbuffer = 2};
            kl_sim_counts c;
            st = kl_sim_run(m, &l, NULL, &c, &a, d, &env);
        } else {
            assert_int_equal(env.status, KILN_E_NOMEM);
        }
        kl_diags_use(d, NULL, NULL);
        kiln_diags_free(d);
        kl_arena_free(&a);
        assert_int_equal(f.held, 0);
        if (st != KILN_E_NOMEM) {
            assert_int_equal(st, KILN_E_BOUNDS);
            assert_true(n > 5);
            return;
        }
    }
}

/* Texts with bytes changed, cut out, doubled: no crash, and what still parses runs within its
 * buffers and its budget. */
static void mutations(void **state)
{
    (void)state;
    uint64_t seed = 12345;
    uint32_t parsed = 0, rounds = getenv("SIM_FUZZ") ? (uint32_t)atoi(getenv("SIM_FUZZ")) : 3000;
    if (getenv("SIM_SEED"))
        seed += (uint64_t)atoll(getenv("SIM_SEED"));
    for (uint32_t n = 0; n < rounds; n++) {
        const char *text = ran[box_random(&seed) % nran].text;
        size_t len = strlen(text);
        char *t = malloc(2 * len + 64);
        memcpy(t, text, len + 1);
        for (uint64_t k = box_random(&seed) % 3 + 1; k--;) {
            static const char bits[] = "0123456789%[]{}+-.,;:@!rdfp \n<>_abx";
            size_t at = 60 + box_random(&seed) % (len - 60), run = box_random(&seed) % 12;
            size_t from = 60 + box_random(&seed) % (len - 60);
            if (at + run > len)
                run = len - at;
            if (from + run > len)
                run = len - from;
            switch (box_random(&seed) % 4) {
            case 0: t[at] = bits[box_random(&seed) % (sizeof bits - 1)]; break;
            case 1:
                memmove(t + at, t + at + run, len - at - run + 1);
                len -= run;
                break;
            case 2: memmove(t + at, t + from, run); break;
            default: /* a digit becomes another: registers, offsets, labels */
                while (at < len && !(t[at] >= '0' && t[at] <= '9'))
                    at++;
                if (at < len)
                    t[at] = (char)('0' + box_random(&seed) % 10);
                break;
            }
            if (len < 200)
                break;
        }
        struct box x;
        box_parse(&x, t);
        if (x.m) {
            parsed++;
            for (uint32_t k = 0; kl_sim_at(x.m, k); k++) {
                set(&x, 100);
                x.opt.budget = 3000;
                x.shared = 64;
                x.param_bytes = sizeof x.param;
                box_run(&x, kl_sim_at(x.m, k)->name, 2, 96);
            }
        }
        kl_buf b = {.a = &x.a};
        kl_diags_render(&b, x.d, false);
        box_close(&x);
        free(t);
    }
    assert_true(parsed > rounds / 20);
}

/* ---- what the tests ran is PTX that ptxas takes; every form was in a test ---- */

static void assembled(void **state)
{
    (void)state;
    if (!ptxas_path())
        skip();
    uint32_t bad = 0;
    for (uint32_t k = 0; k < nran; k++) {
        bad += !ptxas_takes(ran[k].text, ran[k].arch);
        if (k % 4 == 0 && strcmp(ran[k].arch, "sm_80") == 0)
            bad += !ptxas_takes(ran[k].text, "sm_90");
    }
    assert_int_equal(bad, 0);
}

static void covered(void **state)
{
    (void)state;
    const uint32_t others = 1u << KL_SIM_INT | 1u << KL_SIM_FP32 | 1u << KL_SIM_FP64 |
                            1u << KL_SIM_FP16 | 1u << KL_SIM_SFU | 1u << KL_SIM_CVT;
    uint32_t missing = 0;
    for (uint32_t k = 0; k < kl_sim_nrows; k++)
        if (!(others >> kl_sim_rows[k].kind & 1) && !row_seen[k] &&
            !box_of_clusters(kl_sim_rows[k].id)) {
            print_error("no test for %s\n", kl_sim_rows[k].id);
            missing++;
        }
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saxpy),     cmocka_unit_test(divergence), cmocka_unit_test(sums),
        cmocka_unit_test(transpose), cmocka_unit_test(counting),   cmocka_unit_test(memory),
        cmocka_unit_test(packing),   cmocka_unit_test(shuffles),   cmocka_unit_test(lanes),
        cmocka_unit_test(atomics),   cmocka_unit_test(barriers),   cmocka_unit_test(async),
        cmocka_unit_test(findings),  cmocka_unit_test(rendered),   cmocka_unit_test(errors),
        cmocka_unit_test(launches),  cmocka_unit_test(stopping),   cmocka_unit_test(threads),
        cmocka_unit_test(no_memory), cmocka_unit_test(mutations),  cmocka_unit_test(assembled),
        cmocka_unit_test(overlapping), cmocka_unit_test(covered),
    };
    return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
