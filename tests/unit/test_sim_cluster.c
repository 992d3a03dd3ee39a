/* test_sim_cluster.c - the PTX executor on thread-block clusters: the memory of other CTAs,
 * barriers of the cluster, mbarriers, asynchronous stores, and what it reports. */
#define _GNU_SOURCE
#include "sim_box.h"

/* A cluster of 4 CTAs of 64 threads.  %r1 thread, %r2 CTA of the cluster, %r3 CTA of the grid,
 * %r4 byte offset of the thread's word, %r5 its address in s; %d1 where its result goes. */
#define PTX_81 ".version 8.1\n.target sm_90\n.address_size 64\n"
#define HEAD                                                                                       \
    PTX_81                                                                                         \
        ".visible .entry k(.param .u64 out)\n.maxntid 64, 1, 1\n.explicitcluster\n"                \
        ".reqnctapercluster 4, 1, 1\n{\n .reg .pred %p<10>; .reg .b32 %r<60>; .reg .b64 %d<10>;\n" \
        " .shared .align 16 .b8 bar[32];\n .shared .align 512 .b32 s[256];\n"                      \
        " mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %ctaid.x;\n"            \
        " shl.b32 %r4, %r1, 2; mov.u32 %r5, s; add.u32 %r5, %r5, %r4;\n"                           \
        " ld.param.u64 %d1, [out]; cvta.to.global.u64 %d1, %d1; mad.lo.u32 %r6, %r3, 64, %r1;\n"   \
        " mul.wide.u32 %d2, %r6, 4; add.s64 %d1, %d1, %d2; mov.u32 %r59, 0;\n"
#define TAIL   " st.global.u32 [%d1], %r59;\n ret;\n}\n"
#define ARRIVE " barrier.cluster.arrive.aligned;\n"
#define WAIT   " barrier.cluster.wait.aligned;\n"
#define MEET   ARRIVE WAIT
/* Thread 0 makes an mbarrier, and all meet. */
#define MAKE                                                                                       \
    " setp.eq.u32 %p1, %r1, 0; mov.u32 %r10, bar;\n @%p1 mbarrier.init.shared.b64 [%r10], 1;\n"    \
    " @%p1 fence.mbarrier_init.release.cluster;\n barrier.cluster.arrive.relaxed.aligned;\n" WAIT
#define WAITED(label, parity)                                                                      \
    label ": mbarrier.try_wait.parity.shared.b64 %p2, [%r10], " parity ";\n @!%p2 bra " label ";\n"

enum { CTAS = 8, THREADS = 64 };
static uint32_t out[CTAS * THREADS];

static void start(struct box *x, const char *body, int reverse)
{
    box_module(x, body);
    x->opt.reverse = reverse;
    x->opt.budget = 1 << 20;
    memset(out, 0x5a, sizeof out);
    arg_mem(x, out, sizeof out, true);
}

static char text[16384];

static const char *full(const char *body)
{
    snprintf(text, sizeof text, "%s%s%s", HEAD, body, TAIL);
    return text;
}

static void takes(const char *t)
{
    if (ptxas_path())
        assert_true(ptxas_takes(t, "sm_90"));
}

/* Loads and stores of the other CTAs' memory, vectors too; two clusters one after the other. */
static void memory(void **state)
{
    (void)state;
    struct box x;
    const char *t = full(
        " mad.lo.u32 %r7, %r2, 1000, %r1;\n st.shared.u32 [%r5], %r7;\n" MEET
        " add.u32 %r8, %r2, 1; and.b32 %r8, %r8, 3;\n mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
        " ld.shared::cluster.u32 %r59, [%r9];\n"
        /* every fourth thread puts four words into the third CTA on */
        " add.u32 %r8, %r2, 2; and.b32 %r8, %r8, 3;\n mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
        " and.b32 %r11, %r1, 3; setp.eq.u32 %p1, %r11, 0;\n"
        " @%p1 st.shared::cluster.v4.u32 [%r9+256], {%r7, %r2, %r7, %r1};\n" MEET
        " ld.shared.u32 %r12, [%r5+256]; shl.b32 %r12, %r12, 16; add.u32 %r59, %r59, %r12;\n");
    for (int reverse = 0; reverse < 2; reverse++) {
        start(&x, t, reverse);
        box_good(&x, "k", CTAS, THREADS);
        for (uint32_t k = 0; k < CTAS * THREADS; k++) {
            uint32_t cta = k / THREADS % 4, i = k % THREADS, from = (cta + 2) % 4, at = i & ~3u;
            const uint32_t four[4] = {from * 1000 + at, from, from * 1000 + at, at};
            assert_int_equal(out[k], (cta + 1) % 4 * 1000 + i + (four[i & 3] << 16));
        }
        assert_int_equal(x.counts.cluster_barriers, 4);
        assert_int_equal(x.counts.ctas, CTAS);
        box_close(&x);
    }
    takes(t);
}

/* The sum of all warps of a cluster by asynchronous stores, in three rounds over two buffers. */
static void pushes(void **state)
{
    (void)state;
    struct box x;
    const char *t = full(
        " setp.eq.u32 %p1, %r1, 0; mov.u32 %r10, bar; mov.u32 %r40, 0;\n"
        " @%p1 mbarrier.init.shared.b64 [%r10], 1;\n @%p1 mbarrier.init.shared.b64 [%r10+8], 1;\n"
        " @%p1 fence.mbarrier_init.release.cluster;\n barrier.cluster.arrive.relaxed.aligned;\n"
        " shr.u32 %r11, %r1, 5; and.b32 %r12, %r1, 31; setp.lt.u32 %p3, %r12, 4;\n"
        " mad.lo.u32 %r13, %r2, 2, %r11; mov.u32 %r14, s; mad.lo.u32 %r15, %r13, 8, %r14;\n"
        " mov.u32 %r41, %r1;\n" WAIT
        "round:\n and.b32 %r42, %r40, 1; shr.u32 %r43, %r40, 1; and.b32 %r43, %r43, 1;\n"
        " mad.lo.u32 %r44, %r42, 8, %r10;\n mad.lo.u32 %r45, %r42, 64, %r15;\n"
        " redux.sync.add.u32 %r16, %r41, -1;\n"
        " @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r44], 64;\n"
        " @%p3 mapa.shared::cluster.u32 %r17, %r45, %r12; @%p3 mapa.shared::cluster.u32 %r18, %r44, %r12;\n"
        " @%p3 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r17], {%r16, %r13}, "
        "[%r18];\n"
        "w: mbarrier.try_wait.parity.shared.b64 %p2, [%r44], %r43;\n @!%p2 bra w;\n"
        " mad.lo.u32 %r46, %r42, 64, %r14; mov.u32 %r47, 0; mov.u32 %r48, 0;\n"
        "add: mad.lo.u32 %r49, %r48, 8, %r46; ld.shared.v2.u32 {%r50, %r51}, [%r49];\n"
        " mad.lo.u32 %r47, %r50, 1, %r47; mad.lo.u32 %r47, %r51, 65536, %r47;\n"
        " add.u32 %r48, %r48, 1; setp.lt.u32 %p4, %r48, 8; @%p4 bra.uni add;\n"
        " add.u32 %r59, %r59, %r47; add.u32 %r41, %r41, 1;\n"
        " add.u32 %r40, %r40, 1; setp.lt.u32 %p5, %r40, 3; @%p5 bra.uni round;\n");
    for (int reverse = 0; reverse < 2; reverse++) {
        start(&x, t, reverse);
        box_good(&x, "k", CTAS, THREADS);
        /* 4 times 0 + ... + 63, plus 256 for each round; ranks 0 + ... + 7 */
        uint32_t want = 3 * (4 * 2016 + 28 * 65536) + 256 * (0 + 1 + 2);
        for (uint32_t k = 0; k < CTAS * THREADS; k++)
            assert_int_equal(out[k], want);
        assert_int_equal(x.counts.cluster_barriers, 2);
        box_close(&x);
    }
    takes(t);
}

/* A cluster in three dimensions, and one that is declared but of one CTA. */
static void shapes(void **state)
{
    (void)state;
    struct box x;
    static const char t[] = PTX_90
        ".visible .entry k(.param .u64 out)\n.explicitcluster\n.reqnctapercluster 2, 3, 2\n{\n"
        " .reg .b32 %r<30>; .reg .b64 %d<4>;\n"
        " mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;\n"
        " mad.lo.u32 %r4, %r3, 3, %r2; mad.lo.u32 %r4, %r4, 4, %r1;\n"
        " mov.u32 %r5, %cluster_ctarank; mov.u32 %r6, %cluster_nctarank;\n"
        " mov.u32 %r7, %clusterid.x; mov.u32 %r8, %clusterid.y; mov.u32 %r9, %clusterid.z;\n"
        " mov.u32 %r10, %nclusterid.x; mov.u32 %r11, %nclusterid.y; mov.u32 %r12, %nclusterid.z;\n"
        " mov.u32 %r13, %cluster_ctaid.x; mov.u32 %r14, %cluster_ctaid.y; mov.u32 %r15, "
        "%cluster_ctaid.z;\n mov.u32 %r16, %cluster_nctaid.x; mov.u32 %r17, %cluster_nctaid.y; "
        "mov.u32 %r18, %cluster_nctaid.z;\n"
        " mad.lo.u32 %r20, %r6, 100, %r5; mad.lo.u32 %r21, %r7, 10, %r8; mad.lo.u32 %r21, %r21, 10, %r9;\n"
        " mad.lo.u32 %r22, %r10, 10, %r11; mad.lo.u32 %r22, %r22, 10, %r12;\n"
        " mad.lo.u32 %r23, %r13, 10, %r14; mad.lo.u32 %r23, %r23, 10, %r15;\n"
        " mad.lo.u32 %r24, %r16, 10, %r17; mad.lo.u32 %r24, %r24, 10, %r18;\n"
        " ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r4, 32; add.s64 %d1, %d1, %d2;\n"
        " st.global.u32 [%d1], %r20; st.global.u32 [%d1+4], %r21; st.global.u32 [%d1+8], %r22;\n"
        " st.global.u32 [%d1+12], %r23; st.global.u32 [%d1+16], %r24;\n ret;\n}\n";
    start(&x, t, 0);
    const uint32_t grid[3] = {4, 3, 2}, one[3] = {1, 1, 1}, odd[3] = {3, 3, 2};
    assert_int_equal(box_run3(&x, "k", grid, one), KILN_OK);
    for (uint32_t k = 0; k < 24; k++) {
        uint32_t cx = k % 4, cy = k / 4 % 3, cz = k / 12;
        assert_int_equal(out[8 * k], 12 * 100 + (cz * 3 + cy) * 2 + cx % 2);
        assert_int_equal(out[8 * k + 1], cx / 2 * 100);
        assert_int_equal(out[8 * k + 2], 211);
        assert_int_equal(out[8 * k + 3], cx % 2 * 100 + cy * 10 + cz);
        assert_int_equal(out[8 * k + 4], 232);
    }
    assert_int_equal(x.counts.ctas, 24);
    assert_int_equal(box_run3(&x, "k", odd, one), KILN_E_ARG);
    assert_string_equal(kiln_diags_at(x.d, 0)->code, "K1606");
    box_close(&x);
    takes(t);
    start(&x, PTX_90 ".visible .entry k(.param .u64 out)\n{\n" ARRIVE WAIT " ret;\n}\n", 0);
    box_good(&x, "k", 5, 32);
    box_close(&x);
    box_parse(&x, PTX_90 ".visible .entry k()\n.reqnctapercluster 32, 1, 1\n{\n ret;\n}\n");
    assert_null(x.m);
    box_close(&x);
}

/* ---- what it reports ---- */

static const struct fault {
    const char *name, *code, *place, *body; /* code NULL: nothing */
} faults[] = {
    {"an orderly exchange", NULL, NULL,
     MEET " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
          " st.shared::cluster.u32 [%r9], %r1;\n" MEET " ld.shared.u32 %r59, [%r5];\n"},
    {"a CTA that may not have begun", "K1504", "st.shared::cluster.u32",
     " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
     " st.shared::cluster.u32 [%r9], %r1;\n" MEET},
    {"a CTA that may have ended: load", "K1504", "ld.shared::cluster.u32",
     " st.shared.u32 [%r5], %r1;\n" MEET
     " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
     " ld.shared::cluster.u32 %r59, [%r9];\n"},
    {"one that waits with its end", NULL, NULL,
     " st.shared.u32 [%r5], %r1;\n" MEET
     " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
     " ld.shared::cluster.u32 %r59, [%r9];\n" MEET},
    {"a CTA that may have ended: asynchronous store", "K1504", "st.async",
     MAKE " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
          " mapa.shared::cluster.u32 %r11, %r10, %r8;\n"
          " st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r1, [%r11];\n"},
    {"a store and a load without a barrier", "K1507", NULL,
     " st.shared.u32 [%r5], 0;\n" MEET
     " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
     " st.shared.u32 [%r5], %r1; bar.sync 0;\n ld.shared::cluster.u32 %r59, [%r9];\n" MEET},
    {"the barrier of the CTA does not do", "K1507", NULL,
     " st.shared.u32 [%r5], 0;\n" MEET
     " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
     " st.shared::cluster.u32 [%r9], %r1; bar.sync 0;\n ld.shared.u32 %r59, [%r5];\n" MEET},
    {"a load between arriving and waiting", "K1507", NULL,
     " st.shared.u32 [%r5], 0;\n" MEET
     " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
     " st.shared.u32 [%r5], %r1;\n" ARRIVE " ld.shared::cluster.u32 %r59, [%r9];\n" WAIT MEET},
    {"a store after arriving", "K1507", NULL,
     MEET
     " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n st.shared.u32 [%r5], 0;\n" ARRIVE
     " st.shared.u32 [%r5], %r1;\n" WAIT " ld.shared::cluster.u32 %r59, [%r9];\n" MEET},
    {"a relaxed arrival orders nothing", "K1507", NULL,
     " st.shared.u32 [%r5], 0;\n" MEET
     " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n st.shared.u32 [%r5], %r1;\n"
     " barrier.cluster.arrive.relaxed.aligned;\n" WAIT
     " ld.shared::cluster.u32 %r59, [%r9];\n" MEET},
    {"loads, then a store", "K1507", NULL,
     " st.shared.u32 [%r5], %r1; bar.sync 0; xor.b32 %r12, %r5, 128; ld.shared.u32 %r59, [%r12];\n"
     " ld.shared.u32 %r59, [%r5];\n" MEET
     " ld.shared.u32 %r59, [%r12]; ld.shared.u32 %r59, [%r5];\n"
     " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
     " setp.eq.u32 %p1, %r2, 0;\n @%p1 st.shared::cluster.u32 [%r9], %r1;\n" MEET},
    {"within a CTA: write and read", "K1507", NULL,
     " xor.b32 %r12, %r5, 128; st.shared.u32 [%r5], 0; st.shared.u32 [%r5], %r1;\n"
     " bar.sync 0; st.shared.u32 [%r5], %r2;\n ld.shared.u32 %r59, [%r12];\n"},
    {"within a CTA, with a barrier", NULL, NULL,
     " xor.b32 %r12, %r5, 128; st.shared.u32 [%r5], %r1;\n bar.sync 0;\n"
     " ld.shared.u32 %r59, [%r12];\n"},
    {"shared memory that nothing wrote", "K1505", "ld.shared::cluster.u32",
     MEET " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
          " ld.shared::cluster.u32 %r59, [%r9];\n" MEET},
    {"past the end of the other's memory", "K1504", "ld.shared::cluster.u32",
     MEET " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
          " ld.shared::cluster.u32 %r59, [%r9+4096];\n" MEET},
    {"no such CTA", "K1504", "mapa.shared::cluster.u32",
     " add.u32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"},
    {"an address of the cluster in a plain load", "K1504", "ld.shared.u32",
     MEET " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
          " ld.shared.u32 %r59, [%r9];\n" MEET},
    {"a barrier that a CTA does not reach", "K1508", "barrier.cluster.wait",
     " setp.eq.u32 %p1, %r2, 3; @%p1 bra over;\n" MEET "over:\n"},
    {"a barrier in half a warp", "K1508", "@%p1 barrier.cluster.arrive",
     " and.b32 %r7, %r1, 1; setp.eq.u32 %p1, %r7, 0; @%p1 barrier.cluster.arrive;\n"},
    {"two arrivals", "K1508", "barrier.cluster.arrive", ARRIVE ARRIVE WAIT},
    {"a wait without an arrival", "K1508", "barrier.cluster.wait", WAIT},
    {"barriers of two kinds", "K1508", NULL,
     " setp.eq.u32 %p1, %r2, 3; @%p1 bra one;\n" MEET " bra two;\none: setp.lt.u32 %p2, %r1, 32;\n"
     " @%p2 bra two; bar.sync 0;\ntwo:\n"},
    {"an mbarrier that nobody made", "K1505", "mbarrier.arrive.expect_tx",
     " mov.u32 %r10, bar;\n setp.eq.u32 %p1, %r1, 0;\n"
     " @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 4;\n"},
    {"bytes that do not come", "K1508", "mbarrier.try_wait",
     MAKE " @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 4;\n" WAITED("w", "0")},
    {"arrivals alone", NULL, NULL,
     MAKE " @%p1 mbarrier.arrive.shared.b64 %d3, [%r10];\n" WAITED("w", "0")},
    {"an arrival too many", "K1508", "mbarrier.arrive.shared",
     MAKE " setp.lt.u32 %p3, %r1, 2; @%p3 mbarrier.arrive.shared.b64 %d3, [%r10];\n"},
    {"a read without the wait", "K1505", "ld.shared.u32 %r59, [%r5]",
     MAKE " @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 512;\n"
          " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
          " mapa.shared::cluster.u32 %r11, %r10, %r8;\n"
          " st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r1, [%r11];\n"
          " st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9+256], %r1, [%r11];\n"
          " setp.eq.u32 %p3, %r1, 5; @%p3 ld.shared.u32 %r59, [%r5];\n" WAITED("w", "0")},
    {"a read in the wrong phase", "K1507", NULL,
     MAKE
     " st.shared.u32 [%r5], 7;\n" MEET
     " @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 256;\n"
     " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
     " mapa.shared::cluster.u32 %r11, %r10, %r8;\n" WAITED(
         "w",
         "1") " ld.shared.u32 %r59, [%r5];\n"
              " st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r1, [%r11];\n" WAITED(
                  "w2", "0")},
    {"an mbarrier without a fence", "K1505", "st.async",
     " setp.eq.u32 %p1, %r1, 0; mov.u32 %r10, bar;\n @%p1 mbarrier.init.shared.b64 [%r10], 1;\n" MEET
     " @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 256;\n"
     " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
     " mapa.shared::cluster.u32 %r11, %r10, %r8;\n"
     " st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r1, [%r11];\n" MEET},
    {"data and mbarrier in different CTAs", "K1505", "st.async",
     MAKE " xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r9, %r5, %r8;\n"
          " mapa.shared::cluster.u32 %r11, %r10, %r2;\n"
          " st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r1, [%r11];\n" MEET},
};

static void finding(const struct fault *f)
{
    struct box x;
    for (int reverse = 0; reverse < 2; reverse++) {
        start(&x, full(f->body), reverse);
        kiln_status st = box_run(&x, "k", 4, THREADS);
        const kiln_diag *g = kiln_diags_at(x.d, 0);
        if (!f->code) {
            if (st || g)
                fail_msg("%s: status %d\n%s", f->name, st, box_text(&x));
        } else {
            if (st != KILN_E_BOUNDS || !g || strcmp(g->code, f->code) != 0)
                fail_msg("%s: status %d, not %s\n%s", f->name, st, f->code, box_text(&x));
            if (f->place && !strstr(g->place.text, f->place))
                fail_msg("%s: not at %s\n%s", f->name, f->place, box_text(&x));
        }
        box_close(&x);
    }
    takes(full(f->body));
}

static void findings(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        finding(&faults[k]);
}

/* Forms that are refused. */
static void errors(void **state)
{
    (void)state;
    static const char *const bad[] = {
        " atom.shared::cluster.add.u32 %r7, [%r5], 1;\n",
        " mapa.shared.u32 %r7, %r5, 1;\n",
        " st.async.shared.mbarrier::complete_tx::bytes.u32 [%r5], %r1, [%r5];\n",
        " st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u64 [%r5], {%d1,%d1,%d1,%d1}, [%r5];\n",
        " st.async.shared::cluster.mbarrier::complete_tx::bytes.u16 [%r5], %r1, [%r5];\n",
    };
    struct box x;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        box_parse(&x, full(bad[k]));
        if (x.m)
            fail_msg("taken: %s", bad[k]);
        box_close(&x);
    }
    /* mbarriers of a lone CTA are not executed */
    start(&x,
          PTX_81 ".visible .entry k(.param .u64 out)\n{\n .shared .b64 b;\n"
                 " mbarrier.init.shared.b64 [b], 1;\n ret;\n}\n",
          0);
    assert_int_equal(box_run(&x, "k", 1, 32), KILN_E_BOUNDS);
    box_close(&x);
}

static void covered(void **state)
{
    (void)state;
    uint32_t missing = 0;
    for (uint32_t k = 0; k < kl_sim_nrows; k++)
        if (box_of_clusters(kl_sim_rows[k].id) && !row_seen[k]) {
            print_error("no test for %s\n", kl_sim_rows[k].id);
            missing++;
        }
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory),   cmocka_unit_test(pushes), cmocka_unit_test(shapes),
        cmocka_unit_test(findings), cmocka_unit_test(errors), cmocka_unit_test(covered),
    };
    return cmocka_run_group_tests_name("sim_cluster", tests, NULL, NULL);
}
