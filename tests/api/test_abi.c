/* test_abi.c - sizes and offsets of the public structs, and pinned numbers, on 64-bit Linux.
 *
 * What the caller makes and passes in arrays (kiln_tensor, kiln_arg) never changes.  kiln_options
 * begins with its size and grows at its end; what the library makes (infos, diagnostics) grows at
 * its end.  So a line here may only be changed where the last member is added to, and then with
 * the version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "kiln.h"
#include "kiln_dlpack.h"
#include "kiln_nn.h"
#include "kiln_peer.h"

struct member {
    const char *name;
    size_t have, want;
};
#define SIZE(type, want) {"sizeof(" #type ")", sizeof(type), want}
#define AT(type, member, want) {#type "." #member, offsetof(type, member), want}
#define IS(name, want) {#name, (size_t)(name), (size_t)(want)}

static void check(const struct member *m, size_t n)
{
    unsigned bad = 0;
    for (size_t i = 0; i < n; i++)
        if (m[i].have != m[i].want) {
            print_message("%s is %zd, not %zd\n", m[i].name, (ssize_t)m[i].have,
                          (ssize_t)m[i].want);
            bad++;
        }
    assert_int_equal(bad, 0);
}
#define CHECK_ALL(list) check(list, sizeof list / sizeof *list)

/* ---- made by the caller ---- */

static void test_arguments(void **state)
{
    static const struct member all[] = {
        SIZE(kiln_tensor, 48),         AT(kiln_tensor, data, 0),
        AT(kiln_tensor, dtype, 8),     AT(kiln_tensor, ndim, 12),
        AT(kiln_tensor, shape, 16),    AT(kiln_tensor, strides, 24),
        AT(kiln_tensor, size_bytes, 32), AT(kiln_tensor, flags, 40),
        SIZE(kiln_arg, 64),            AT(kiln_arg, name, 0),
        AT(kiln_arg, kind, 8),         AT(kiln_arg, u, 16),
        SIZE(kiln_status, 4),          SIZE(kiln_dtype, 4),
        SIZE(kiln_device, 4),          SIZE(kiln_arg_kind, 4),
    };
    (void)state;
    CHECK_ALL(all);
}

static void test_options(void **state)
{
    static const struct member all[] = {
        AT(kiln_options, size, 0),         AT(kiln_options, device, 4),
        AT(kiln_options, threads, 8),      AT(kiln_options, opt_level, 12),
        AT(kiln_options, cc, 16),          AT(kiln_options, cache_dir, 24),
        AT(kiln_options, keep_dir, 32),    AT(kiln_options, include_dirs, 40),
        AT(kiln_options, cc_timeout_ms, 48), AT(kiln_options, checks, 52),
        AT(kiln_options, alloc, 56),       AT(kiln_options, alloc_user, 64),
        AT(kiln_options, cache_cap, 72),   AT(kiln_options, device_index, 80),
        AT(kiln_options, arch, 88),        AT(kiln_options, print, 96),
        AT(kiln_options, print_user, 104), AT(kiln_options, log, 112),
        AT(kiln_options, log_user, 120),   AT(kiln_options, include, 128),
        AT(kiln_options, include_user, 136),
    };
    (void)state;
    CHECK_ALL(all);
    assert_true(sizeof(kiln_options) >= 144 && sizeof(kiln_options) % 8 == 0);
    kiln_options o = KILN_OPTIONS_INIT;
    assert_int_equal(o.size, sizeof o);
    /* a caller that was built when the struct ended behind arch */
    kiln_context *ctx = NULL;
    o.size = 96;
    o.device = KILN_DEVICE_INTERP;
    assert_int_equal(kiln_context_create(&o, &ctx, NULL), KILN_OK);
    kiln_context_free(ctx);
}

/* ---- made by the library ---- */

static void test_results(void **state)
{
    static const struct member all[] = {
        SIZE(kiln_place, 32),              AT(kiln_place, line, 8),
        AT(kiln_place, col, 12),           AT(kiln_place, end_col, 16),
        AT(kiln_place, text, 24),          SIZE(kiln_diag_note, 40),
        AT(kiln_diag, code, 8),            AT(kiln_diag, place, 16),
        AT(kiln_diag, text, 48),           AT(kiln_diag, notes, 56),
        AT(kiln_diag, nnotes, 64),         AT(kiln_diag, fix, 72),
        AT(kiln_diag, fix_place, 80),      AT(kiln_device_info, arch, 8),
        AT(kiln_device_info, index, 16),   AT(kiln_device_info, sms, 24),
        AT(kiln_device_info, memory_bytes, 40), AT(kiln_device_info, l2_bytes, 48),
        AT(kiln_device_info, shared_bytes, 56), AT(kiln_param_info, kind, 8),
        AT(kiln_param_info, dtype, 12),    AT(kiln_param_info, type_name, 16),
        AT(kiln_param_info, rank, 24),     AT(kiln_param_info, has_init, 48),
        AT(kiln_param_info, decl, 56),     AT(kiln_spec_info, cache, 4),
        AT(kiln_spec_info, grid, 8),       AT(kiln_spec_info, front_ms, 32),
        AT(kiln_spec_info, scratch_bytes, 56), AT(kiln_spec_info, cta_threads, 64),
        AT(kiln_spec_info, registers, 72), AT(kiln_spec_info, approximate, 88),
        SIZE(kiln_trace_event, 112),       AT(kiln_trace_event, kind, 4),
        AT(kiln_trace_event, phase, 8),    AT(kiln_trace_event, place, 12),
        AT(kiln_trace_event, name, 16),    AT(kiln_trace_event, detail, 24),
        AT(kiln_trace_event, begin_ns, 32), AT(kiln_trace_event, id, 48),
        AT(kiln_trace_event, thread, 56),  AT(kiln_trace_event, stream, 64),
        AT(kiln_trace_event, bytes, 72),   AT(kiln_trace_event, error_ns, 80),
        AT(kiln_trace_event, threads, 88), AT(kiln_trace_event, cache, 92),
        AT(kiln_trace_event, status, 96),  AT(kiln_trace_event, flags, 100),
        AT(kiln_trace_event, programs, 104),
    };
    (void)state;
    CHECK_ALL(all);
}

/* ---- kiln_dlpack.h: the layout is DLPack's; kiln_nn.h: made by the caller ---- */

static void test_dlpack(void **state)
{
    static const struct member all[] = {
        SIZE(kiln_dl_tensor, 48),           AT(kiln_dl_tensor, data, 0),
        AT(kiln_dl_tensor, device_type, 8), AT(kiln_dl_tensor, device_id, 12),
        AT(kiln_dl_tensor, ndim, 16),       AT(kiln_dl_tensor, code, 20),
        AT(kiln_dl_tensor, bits, 21),       AT(kiln_dl_tensor, lanes, 22),
        AT(kiln_dl_tensor, shape, 24),      AT(kiln_dl_tensor, strides, 32),
        AT(kiln_dl_tensor, byte_offset, 40), SIZE(kiln_dl_managed, 64),
        AT(kiln_dl_managed, manager, 48),   AT(kiln_dl_managed, deleter, 56),
        SIZE(kiln_dl_managed_v1, 80),       AT(kiln_dl_managed_v1, minor, 4),
        AT(kiln_dl_managed_v1, manager, 8), AT(kiln_dl_managed_v1, deleter, 16),
        AT(kiln_dl_managed_v1, flags, 24),  AT(kiln_dl_managed_v1, tensor, 32),
    };
    (void)state;
    CHECK_ALL(all);
}

static void test_nn(void **state)
{
    static const struct member all[] = {
        SIZE(kiln_nn_epilogue, 24),    AT(kiln_nn_epilogue, act, 16),
        AT(kiln_nn_epilogue, precision, 20),
        SIZE(kiln_nn_conv, 72),        AT(kiln_nn_conv, groups, 48),
        AT(kiln_nn_conv, bias, 56),    AT(kiln_nn_conv, act, 64),
        SIZE(kiln_nn_pool_params, 72), AT(kiln_nn_pool_params, mean, 48),
        AT(kiln_nn_pool_params, dilation, 56),
        SIZE(kiln_nn_attn, 32),        AT(kiln_nn_attn, window, 16),
        AT(kiln_nn_attn, slopes, 24),  SIZE(kiln_nn_gdn, 56),
        AT(kiln_nn_gdn, cu, 16),       AT(kiln_nn_gdn, last, 40),
        AT(kiln_nn_gdn, recurrent, 52),
    };
    (void)state;
    CHECK_ALL(all);
}

/* ---- kiln_peer.h: a case grows at its end, the others never ---- */

static void test_peer(void **state)
{
    static const struct member all[] = {
        SIZE(kiln_peer_array, 48),         AT(kiln_peer_array, data, 8),
        AT(kiln_peer_array, shape, 24),    AT(kiln_peer_array, strides, 32),
        AT(kiln_peer_array, writes, 44),   SIZE(kiln_peer_scalar, 16),
        SIZE(kiln_peer_case, 80),          AT(kiln_peer_case, kernel, 16),
        AT(kiln_peer_case, threads, 32),   AT(kiln_peer_case, stream, 40),
        AT(kiln_peer_case, nscalar, 72),   SIZE(kiln_peer, 48),
        AT(kiln_peer, prepare, 24),        AT(kiln_peer, drop, 40),
        IS(KILN_PEER_ABI, 1),
    };
    (void)state;
    CHECK_ALL(all);
}

/* ---- numbers ---- */

static void test_numbers(void **state)
{
    static const struct member all[] = {
        IS(KILN_OK, 0),             IS(KILN_E_ARG, -1),         IS(KILN_E_COMPILE, -2),
        IS(KILN_E_NOMEM, -3),       IS(KILN_E_DEVICE, -4),      IS(KILN_E_TOOLCHAIN, -5),
        IS(KILN_E_UNSUPPORTED, -6), IS(KILN_E_BOUNDS, -7),      IS(KILN_E_IO, -8),
        IS(KILN_E_INTERNAL, -9),    IS(KILN_BOOL, 1),           IS(KILN_I8, 2),
        IS(KILN_I16, 3),            IS(KILN_I32, 4),            IS(KILN_I64, 5),
        IS(KILN_U8, 6),             IS(KILN_U16, 7),            IS(KILN_U32, 8),
        IS(KILN_U64, 9),            IS(KILN_F16, 10),           IS(KILN_BF16, 11),
        IS(KILN_F32, 12),           IS(KILN_F64, 13),           IS(KILN_F8E4M3, 14),
        IS(KILN_F8E5M2, 15),        IS(KILN_DEVICE_AUTO, 0),    IS(KILN_DEVICE_INTERP, 1),
        IS(KILN_DEVICE_CPU, 2),     IS(KILN_DEVICE_CUDA, 3),    IS(KILN_DEVICE_SIM, 4),
        IS(KILN_PARAM_ARRAY, 1),    IS(KILN_PARAM_TYPE, 4),     IS(KILN_ARG_TENSOR, 1),
        IS(KILN_ARG_TYPE, 4),       IS(KILN_TENSOR_UNINIT, 1),  IS(KILN_TENSOR_DEVICE, 2),
        IS(KILN_CHECK_BOUNDS, 1),   IS(KILN_CHECK_UNINIT, 2),   IS(KILN_CHECK_RACES, 4),
        IS(KILN_CHECK_ARITH, 8),    IS(KILN_CHECK_LOOPS, 16),   IS(KILN_CHECK_WRITTEN, 32),
        IS(KILN_CHECK_PADDING, 64),
        IS(KILN_CACHE_OFF, 0),
        IS(KILN_CACHE_STALE, 3),    IS(KILN_NOTE, 0),           IS(KILN_ERROR, 2),
        IS(KILN_TRACE_SOURCE, 1),   IS(KILN_TRACE_KERNEL, 10),  IS(KILN_TRACE_CLOCK, 15),
        IS(KILN_TRACE_SPAN, 3),     IS(KILN_TRACE_WORKER, 3),   IS(KILN_TRACE_WORKERS, 2),
    };
    (void)state;
    CHECK_ALL(all);
    assert_int_equal(kiln_version(), KILN_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_dlpack),
        cmocka_unit_test(test_nn), cmocka_unit_test(test_peer),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
