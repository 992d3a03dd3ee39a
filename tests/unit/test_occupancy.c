/* test_occupancy.c - blocks per multiprocessor: golden table, known cases, the toolkit's header, and
 * with KILN_TEST_DEVICE=1 the driver's own answer.
 *
 * The sweep against cuda_occupancy.h is a sample; KILN_TEST_EXHAUSTIVE=1 takes every register count,
 * block of threads and unit of shared memory. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../library.h"
#include "model/occupancy.h"
#include "rt/cuda.h"
#include "tool.h"

#ifdef __has_include
#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define HAVE_HEADER
#endif
#endif

static kl_sm sm_of(uint32_t cc)
{
    kl_sm sm;
    assert_true(kl_sm_find(cc, &sm));
    return sm;
}

static kl_occ occ(uint32_t cc, uint32_t registers, uint32_t threads, uint32_t shared)
{
    kl_sm sm = sm_of(cc);
    kl_occ_block b = {threads, registers, shared, 1};
    kl_occ o;
    kl_occupancy(&sm, &b, &o);
    return o;
}

static void golden(void **state)
{
    static const uint32_t column[] = {80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
    char line[1024];
    unsigned n = 0;
    (void)state;
    FILE *f = fopen("tests/model/occupancy.csv", "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    while (fgets(line, sizeof line, f)) {
        unsigned registers, threads, shared;
        char *p = strtok(line, ",\n");
        registers = (unsigned)strtoul(p, NULL, 10);
        threads = (unsigned)strtoul(strtok(NULL, ",\n"), NULL, 10);
        shared = (unsigned)strtoul(strtok(NULL, ",\n"), NULL, 10);
        for (size_t c = 0; c < sizeof column / sizeof *column; c++, n++) {
            kl_occ o = occ(column[c], registers, threads, shared);
            char text[100];
            size_t k = (size_t)snprintf(text, sizeof text, "%u/%u/%.1f%%", o.blocks, o.warps,
                                        100 * o.share);
            for (int i = 0; i < KL_LIMIT_BARRIERS; i++)
                if (o.limiter & 1u << i)
                    text[k++] = "WRSB"[i];
            text[k] = 0;
            assert_string_equal(text, strtok(NULL, ",\n"));
        }
    }
    fclose(f);
    assert_int_equal(n, 190);
}

static void known_cases(void **state)
{
    (void)state;
    /* rules that ignore sub-partitions say 3 */
    assert_int_equal(occ(80, 92, 224, 0).blocks, 2);
    assert_int_equal(occ(80, 85, 128, 0).blocks, 5);
    assert_int_equal(occ(80, 41, 256, 0).blocks, occ(80, 43, 256, 0).blocks);
    assert_int_equal(occ(90, 32, 1025, 0).blocks, 0);
    assert_int_equal(occ(90, 32, 128, 227 * 1024).blocks, 1);
    assert_int_equal(occ(90, 32, 128, 227 * 1024 + 1).blocks, 0);
    assert_int_equal(occ(90, 0, 32, 0).limit[KL_LIMIT_REGISTERS], KL_UNLIMITED);
    kl_sm sm;
    assert_false(kl_sm_find(107, &sm));
    assert_false(kl_sm_find(91, &sm));
    /* a block that uses many barriers: 64 of an SM / 16 */
    sm = sm_of(90);
    kl_occ_block b = {32, 16, 0, 16};
    kl_occ o;
    kl_occupancy(&sm, &b, &o);
    assert_int_equal(o.blocks, 4);
    assert_int_equal(o.limiter, 1 << KL_LIMIT_BARRIERS);
}

/* 65,536 registers, 128 threads of 160: 3 blocks, 12 of 64 warps, 18.75 %. */
static void simplified(void **state)
{
    (void)state;
    kl_sm sm = sm_of(90);
    kl_occ_block b = {128, 160, 0, 1};
    kl_occ o;
    kl_occupancy_simple(&sm, &b, &o);
    assert_int_equal(o.blocks, 3);
    assert_int_equal(o.warps, 12);
    assert_true(o.share == 0.1875);
    assert_int_equal(o.limiter, 1 << KL_LIMIT_REGISTERS);
    /* where the two rules part */
    b = (kl_occ_block){224, 92, 0, 1};
    kl_occupancy_simple(&sm, &b, &o);
    assert_int_equal(o.blocks, 3);
}

/* Each rung says what the rule says, rungs touch, and neighbours differ. */
static void ladders(void **state)
{
    (void)state;
    kl_rung r[KL_RUNGS];
    kl_sm sm = sm_of(90);
    kl_occ_block b = {256, 31, 4096 + 100, 1};
    uint32_t n = kl_occ_ladder(&sm, &b, KL_LIMIT_REGISTERS, r);
    static const kl_rung want[] = {{1, 32, 8}, {33, 40, 6}, {41, 48, 5}, {49, 64, 4},
                                   {65, 80, 3}, {81, 128, 2}, {129, 255, 1}};
    assert_int_equal(n, 7);
    for (uint32_t i = 0; i < n; i++)
        assert_memory_equal(&r[i], &want[i], sizeof *r);
    for (int of = 0; of <= KL_LIMIT_SHARED; of++) {
        n = kl_occ_ladder(&sm, &b, (enum kl_limit)of, r);
        assert_true(n > 1 && n < KL_RUNGS);
        for (uint32_t i = 0; i < n; i++)
            for (int end = 0; end < 2; end++) {
                kl_occ_block x = b;
                kl_occ o;
                uint32_t v = end ? r[i].last : r[i].first;
                *(of == KL_LIMIT_WARPS ? &x.threads
                  : of == KL_LIMIT_SHARED ? &x.shared : &x.registers) = v;
                kl_occupancy(&sm, &x, &o);
                assert_int_equal(o.blocks, r[i].blocks);
                if (i && !end)
                    assert_int_equal(r[i - 1].last + (of == KL_LIMIT_WARPS ? 32 : 1), v);
                if (i)
                    assert_int_not_equal(r[i].blocks, r[i - 1].blocks);
            }
    }
}

/* ---- the toolkit's header ---- */

#ifdef HAVE_HEADER
static uint64_t compare(const kl_sm *sm, uint32_t threads_step, uint32_t shared_step,
                        uint32_t registers_step, unsigned *bad)
{
    cudaOccDeviceProp p = {.computeMajor = (int)sm->cc / 10,
                           .computeMinor = (int)sm->cc % 10,
                           .maxThreadsPerBlock = 1024,
                           .maxThreadsPerMultiprocessor = (int)sm->warps * 32,
                           .regsPerBlock = 65536,
                           .regsPerMultiprocessor = 65536,
                           .warpSize = 32,
                           .sharedMemPerBlock = sm->shared_default,
                           .sharedMemPerMultiprocessor = sm->shared,
                           .numSms = 100,
                           .sharedMemPerBlockOptin = sm->shared_most,
                           .reservedSharedMemPerBlock = sm->reserved};
    cudaOccDeviceState s = {.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED};
    uint64_t n = 0;
    for (uint32_t threads = threads_step; threads <= 1024; threads += threads_step)
        for (uint32_t registers = 0; registers <= 255; registers += registers_step)
            for (uint32_t shared = 0; shared <= sm->shared_most + 1024; shared += shared_step) {
                cudaOccFuncAttributes a = {.maxThreadsPerBlock = 1024,
                                           .numRegs = (int)registers,
                                           .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
                                           .maxDynamicSharedSizeBytes = sm->shared_most,
                                           .numBlockBarriers = 1};
                cudaOccResult r = {0};
                kl_occ_block b = {threads, registers, shared, 1};
                kl_occ o;
                cudaOccError e = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s,
                                                                         (int)threads, shared);
                kl_occupancy(sm, &b, &o);
                unsigned limiters = r.limitingFactors &
                                    ~(unsigned)OCC_LIMIT_VIRTUAL_RESOURCES;
                bool same = e == CUDA_OCC_SUCCESS &&
                            r.activeBlocksPerMultiprocessor == (int)o.blocks &&
                            (!o.blocks || limiters == o.limiter);
                if (!same && (*bad)++ < 10)
                    print_error("cc %u, %u threads, %u registers, %u bytes: header %d (limits %x, "
                                "error %d), here %u (%x)\n",
                                sm->cc, threads, registers, shared,
                                r.activeBlocksPerMultiprocessor, r.limitingFactors, (int)e,
                                o.blocks, o.limiter);
                n++;
            }
    return n;
}
#endif

static void header(void **state)
{
    (void)state;
#ifdef HAVE_HEADER
    bool all = getenv("KILN_TEST_EXHAUSTIVE") != NULL;
    uint64_t n = 0;
    unsigned bad = 0;
    kl_sm sm;
    for (size_t i = 0; kl_sm_at(i, &sm); i++)
        n += all ? compare(&sm, 32, 128, 1, &bad) + compare(&sm, 17, 1021, 3, &bad)
                 : compare(&sm, 96, 4000, 7, &bad) + compare(&sm, 77, 9001, 11, &bad);
    print_message("%llu points, %u differences\n", (unsigned long long)n, bad);
    assert_int_equal(bad, 0);
#else
    print_message("no cuda_occupancy.h: set CUDA_HOME\n");
    skip();
#endif
}

/* ---- the driver ---- */

struct swept {
    kl_cuda *cuda;
    kl_sm sm;
    uint64_t points, refused;
    unsigned kernels, bad;
};

/* One function with every block of threads that it takes and all shared memory there is. */
static void sweep(struct swept *w, const char *name, const kl_cufn *f)
{
    const struct kl_cuda_api *api = kl_cuda_calls(w->cuda);
    uint32_t most = w->sm.shared_most - f->shared;
    kl_cudaerr e;
    int in = kl_cuda_enter(w->cuda, &e);
    assert_true(in >= 0);
    assert_int_equal(api->FuncSetAttribute(f->function, KL_CU_FN_DYNAMIC, (int)most), 0);
    for (uint32_t threads = 32; threads <= f->max_threads; threads += 32)
        for (uint32_t dynamic = 0; dynamic <= most; dynamic += 1024) {
            const kl_occ_block b = {threads, f->registers, f->shared + dynamic, 1};
            kl_occ o;
            int blocks = -1;
            kl_occupancy(&w->sm, &b, &o);
            int cu = api->Occupancy(&blocks, f->function, (int)threads, dynamic);
            w->points++;
            w->refused += cu != 0;
            if (!cu && blocks != (int)o.blocks && w->bad++ < 20)
                print_error("%s: %u threads, %u registers, %u + %u bytes: the driver says %d, the "
                            "rule %u\n",
                            name, threads, f->registers, f->shared, dynamic, blocks, o.blocks);
        }
    kl_cuda_leave(w->cuda, in);
    w->kernels++;
}

static void sweep_kernel(struct swept *w, kiln_context *ctx, const struct lib_row *r, kiln_dtype t)
{
    static char text[1 << 17];
    char path[200], label[60], arch[16], entry[100], *ptx;
    struct lib_args a;
    kiln_module *m;
    const kl_cudainfo *d = kl_cuda_info(w->cuda);
    snprintf(path, sizeof path, "kernels/%s.kiln", r->file);
    FILE *in = fopen(path, "rb");
    if (!in)
        fail_msg("no %s; run this from the root of the tree", path);
    size_t len = fread(text, 1, sizeof text, in);
    fclose(in);
    assert_int_equal(kiln_compile(ctx, path, text, len, &m, NULL), KILN_OK);
    lib_label(r, t, label, sizeof label);
    lib_arguments(r, t, &a, 0);
    uint32_t best = 0; /* the latest target that the device runs */
    const char *name;
    for (size_t i = 0; (name = kl_tool_arch_name(i)); i++)
        if (strtoul(name + 3, NULL, 10) <= (unsigned)(d->major * 10 + d->minor))
            best = (uint32_t)strtoul(name + 3, NULL, 10);
    snprintf(arch, sizeof arch, "sm_%u", best);
    snprintf(entry, sizeof entry, "kiln_%s", r->kernel);
    const kl_tool_emit_opts e = {.stage = "ptx", .arch = arch};
    assert_int_equal(
        kl_tool_emit(m, kiln_module_kernel(m, r->kernel), a.arg, a.n, &e, &ptx, NULL), KILN_OK);
    void *cubin = NULL;
    size_t size = 0;
    kiln_cache_state state;
    kl_cudaerr err = {0};
    kl_cufn f = {0};
    const kl_cuentry want = {entry, 32, 0, 1};
    if (kl_cuda_assemble(w->cuda, NULL, ptx, strlen(ptx), entry, &cubin, &size, &state, &err) ||
        kl_cuda_load(w->cuda, cubin, &want, 1, &f, &err))
        fail_msg("%s: %s", entry, err.text);
    sweep(w, entry, &f);
    kl_cuda_unload(w->cuda, &f);
    kl_alloc_libc.fn(NULL, cubin, size, 0);
    kl_tool_free(ctx, ptx);
    kiln_module_free(m);
}

/* Every kernel of the library x threads x shared memory, against
 * cuOccupancyMaxActiveBlocksPerMultiprocessor. */
static void device(void **state)
{
    static const kiln_dtype types[] = {KILN_F32, KILN_BF16};
    struct swept w = {0};
    kl_cudaerr e = {0};
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx;
    (void)state;
    if (!getenv("KILN_TEST_DEVICE"))
        skip();
    if (kl_cuda_open(&kl_alloc_libc, NULL, 0, &w.cuda, &e))
        fail_msg("%s", e.text);
    const kl_cudainfo *d = kl_cuda_info(w.cuda);
    assert_true(kl_sm_find((uint32_t)(d->major * 10 + d->minor), &w.sm));
    /* the table beside the device's attributes */
    assert_int_equal(w.sm.warps * 32, d->sm_threads);
    assert_int_equal(w.sm.shared, d->sm_shared);
    assert_int_equal(w.sm.shared_most, d->shared_optin);
    assert_int_equal(w.sm.registers, d->sm_registers);
    assert_non_null(kl_cuda_calls(w.cuda)->Occupancy);
    o.device = KILN_DEVICE_INTERP;
    assert_int_equal(kiln_context_create(&o, &ctx, NULL), KILN_OK);
    for (size_t i = 0; i < LIB_ROWS; i++)
        for (int t = 0; t < 2; t++)
            if (lib_rows[i].types & 1 << t)
                sweep_kernel(&w, ctx, &lib_rows[i], types[t]);
    kiln_context_free(ctx);
    print_message("%s: %u kernels, %llu points, %u differences, %llu not answered\n", d->name,
                  w.kernels, (unsigned long long)w.points, w.bad, (unsigned long long)w.refused);
    kl_cuda_close(w.cuda);
    assert_int_equal(w.bad, 0);
    assert_true(w.points > w.refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden),  cmocka_unit_test(known_cases), cmocka_unit_test(simplified),
        cmocka_unit_test(ladders), cmocka_unit_test(header),      cmocka_unit_test(device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
