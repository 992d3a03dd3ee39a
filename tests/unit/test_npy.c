/* test_npy.c - .npy headers: what is read, what is refused and why, and writing. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/npy.h"

/* A file of version v with this header and n bytes of data; length of the file. */
static size_t make(char *buf, int v, const char *header, size_t n)
{
    size_t h = strlen(header), fixed = v == 1 ? 10 : 12;
    memcpy(buf, "\x93NUMPY", 6);
    buf[6] = (char)v;
    buf[7] = 0;
    for (size_t i = 8; i < fixed; i++)
        buf[i] = (char)(h >> (8 * (i - 8)));
    memcpy(buf + fixed, header, h);
    memset(buf + fixed + h, 0x11, n);
    return fixed + h + n;
}

static void good_headers(void **state)
{
    static const struct {
        int version;
        const char *header;
        size_t data;
        enum kl_elem elem;
        int ndim;
        int64_t shape[3], stride[3];
    } cases[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24, KL_f32, 2,
         {2, 3}, {3, 1}},
        {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24, KL_f32, 2, {2, 3},
         {1, 2}},
        {2, "{'shape': (5,), 'descr': '<i8', 'fortran_order': False}   \n", 40, KL_i64, 1, {5},
         {1}},
        {3, "{ \"descr\" : \"|b1\" , 'fortran_order':False,'shape':()}", 1, KL_bool, 0, {0}, {0}},
        {1, "{'descr': '<f2', 'fortran_order': False, 'shape': (0, 7)}", 0, KL_f16, 2, {0, 7},
         {7, 1}},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1L, 2L, 1L)}", 16, KL_f64, 3,
         {1, 2, 1}, {2, 1, 1}},
        {1, "{'descr': '|V2', 'fortran_order': False, 'shape': (4,)}", 8, KL_elem_none, 1, {4},
         {1}},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}", 3, KL_u8, 1, {3}, {1}},
        {1, "{'descr': '<u4', 'fortran_order': False, 'shape': (1,)}", 4, KL_u32, 1, {1}, {1}},
        {1, "{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", 4, KL_i32, 1, {1}, {1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buf[400], msg[200] = "";
        struct kl_npy n;
        size_t len = make(buf, cases[i].version, cases[i].header, cases[i].data);
        if (!kl_npy_parse(buf, len, len, &n, msg, sizeof msg))
            fail_msg("%s: %s", cases[i].header, msg);
        assert_int_equal(n.elem, cases[i].elem);
        assert_int_equal(n.ndim, cases[i].ndim);
        assert_int_equal(n.size, cases[i].data);
        assert_int_equal(n.offset, len - cases[i].data);
        for (int d = 0; d < n.ndim; d++) {
            assert_int_equal(n.shape[d], cases[i].shape[d]);
            assert_int_equal(n.stride[d], cases[i].stride[d]);
        }
    }
}

#define DICT(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape "}"

static void bad_headers(void **state)
{
    static const struct {
        int version;
        const char *header;
        size_t data;
        const char *why; /* part of the message */
    } cases[] = {
        {1, DICT("'<f4'", "False", "(2, 3)"), 23, "is truncated: its shape needs 24"},
        {1, DICT("'<f4'", "False", "(2, 3)"), 25, "is too long"},
        {1, DICT("'>f4'", "False", "(1,)"), 4, "big-endian"},
        {1, DICT("'|O'", "False", "(1,)"), 8, "Python objects"},
        {1, DICT("'<c8'", "False", "(1,)"), 8, "<c8 is not supported"},
        {1, DICT("'<U4'", "False", "(1,)"), 16, "not supported"},
        {1, DICT("[('a', '<f4')]", "False", "(1,)"), 4, "structured"},
        {1, DICT("'<f4'", "1", "(1,)"), 4, "truth value"},
        {1, DICT("'<f4'", "False", "(1)"), 4, "not a tuple"},
        {1, DICT("'<f4'", "False", "(-1,)"), 4, "tuple of numbers"},
        {1, DICT("'<f4'", "False", "[1]"), 4, "not a tuple"},
        {1, DICT("'<f4'", "False", "(1.5,)"), 4, "not a tuple"},
        {1, DICT("'<f4'", "False", "(1,,)"), 4, "not a tuple"},
        {1, DICT("'<f4'", "False", "(1,"), 4, "tuple"},
        {1, DICT("'<f4'", "False", "(99999999999999999999,)"), 4, "too large"},
        {1, DICT("'<f4'", "False", "(4611686018427387904, 4)"), 4, "more elements than memory"},
        {1, DICT("'<f4'", "False", "(4611686018427387904, 0, 4)"), 0, "more elements"},
        {1, DICT("'<f8'", "False", "(1152921504606846976,)"), 0, "more elements"},
        {1, DICT("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4, "8 dimensions"},
        {1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, "twice"},
        {1, "{'descr': '<f4', 'order': False, 'shape': ()}", 4, "unknown"},
        {1, "{'descr': '<f4', 'shape': ()}", 4, "lacks `fortran_order`"},
        {1, "{}", 0, "lacks `descr`"},
        {1, "{'descr': '<f4' 'fortran_order': False, 'shape': ()}", 4, "no `,`"},
        {1, "{'descr' '<f4', 'fortran_order': False, 'shape': ()}", 4, "no `:`"},
        {1, DICT("'<f4'", "False", "()") "x", 4, "text after"},
        {1, DICT("'<f4", "False", "()"), 4, "is not supported"},
        {1, DICT("'<f4\\n'", "False", "()"), 4, "unexpected string"},
        {1, "{'descr", 0, "does not end"},
        {1, "", 0, "not a dictionary"},
        {1, "'descr'", 0, "not a dictionary"},
        {4, DICT("'<f4'", "False", "()"), 4, "version 4.0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buf[400], msg[200] = "";
        struct kl_npy n;
        size_t len = make(buf, cases[i].version, cases[i].header, cases[i].data);
        if (kl_npy_parse(buf, len, len, &n, msg, sizeof msg))
            fail_msg("accepted: %s", cases[i].header);
        if (!strstr(msg, cases[i].why))
            fail_msg("%s: %s", cases[i].header, msg);
    }
}

/* A good file cut at every length is refused, and so is any single wrong byte before the
 * header's text that changes its meaning. */
static void cut(void **state)
{
    char buf[400], msg[200];
    struct kl_npy n;
    (void)state;
    for (int v = 1; v <= 3; v++) {
        size_t len = make(buf, v, DICT("'<f4'", "False", "(2, 3)"), 24);
        for (size_t k = 0; k < len; k++)
            assert_false(kl_npy_parse(buf, k, k, &n, msg, sizeof msg));
        assert_true(kl_npy_parse(buf, len, len, &n, msg, sizeof msg));
        for (size_t k = 0; k < 8; k++) {
            if (k == 6)
                continue;
            buf[k]++;
            assert_false(kl_npy_parse(buf, len, len, &n, msg, sizeof msg));
            buf[k]--;
        }
    }
    memset(buf + 8, 0xff, 4); /* version 3: a header of 4 GiB */
    assert_false(kl_npy_parse(buf, sizeof buf, sizeof buf, &n, msg, sizeof msg));
    assert_non_null(strstr(msg, "not believable"));
}

static void views(void **state)
{
    static const struct { const char *descr; enum kl_elem as; bool ok; } cases[] = {
        {"'<u2'", KL_bf16, true},  {"'|V2'", KL_bf16, true}, {"'|V2'", KL_f16, true},
        {"'<u2'", KL_f16, true},   {"'<f2'", KL_f16, true},  {"'<f2'", KL_bf16, false},
        {"'<f4'", KL_bf16, false}, {"'|u1'", KL_bool, true}, {"'<u4'", KL_f32, true},
        {"'<i2'", KL_bf16, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buf[400], msg[200], header[100];
        struct kl_npy n;
        snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': (0,)}",
                 cases[i].descr);
        size_t len = make(buf, 1, header, 0);
        assert_true(kl_npy_parse(buf, len, len, &n, msg, sizeof msg));
        assert_int_equal(kl_npy_view(&n, cases[i].as, msg, sizeof msg), cases[i].ok);
        if (cases[i].ok)
            assert_int_equal(n.elem, cases[i].as);
    }
}

/* Every type and rank: what is written reads back. */
static void written(void **state)
{
    (void)state;
    for (int e = 1; e < KL_NELEM; e++)
        for (int ndim = 0; ndim <= KL_NPY_DIMS; ndim++) {
            int64_t shape[KL_NPY_DIMS], zero[KL_NPY_DIMS] = {0};
            char head[KL_NPY_HEADER], msg[200] = "";
            struct kl_npy n;
            for (int d = 0; d < ndim; d++)
                shape[d] = d + 1;
            size_t len = kl_npy_header((enum kl_elem)e, ndim, ndim == 3 ? zero : shape, head);
            assert_int_equal(len % 64, 0);
            assert_int_equal(head[len - 1], '\n');
            uint64_t count = 1;
            for (int d = 0; d < ndim; d++)
                count *= ndim == 3 ? 0 : (uint64_t)shape[d];
            if (!kl_npy_parse(head, len, len + count * kl_elems[e].bytes, &n, msg, sizeof msg))
                fail_msg("%s: %s", kl_elems[e].name, msg);
            if (!kl_npy_knows((enum kl_elem)e))
                assert_true(kl_npy_view(&n, (enum kl_elem)e, msg, sizeof msg));
            assert_int_equal(n.elem, e);
            assert_int_equal(n.ndim, ndim);
        }
    int64_t huge[KL_NPY_DIMS];
    char head[KL_NPY_HEADER];
    for (int d = 0; d < KL_NPY_DIMS; d++)
        huge[d] = INT64_MAX;
    assert_true(kl_npy_header(KL_f32, KL_NPY_DIMS, huge, head) <= KL_NPY_HEADER);
}

/* Opening: files that are no files, and a header of odd length, whose data are copied. */
static void opening(void **state)
{
    char path[] = "/tmp/kiln-npy-XXXXXX", buf[400], msg[200];
    struct kl_npyfile f;
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    assert_false(kl_npy_open(path, &f, msg, sizeof msg));
    assert_string_equal(msg, "the file is empty");
    for (int pad = 0; pad < 4; pad++) {
        char header[100];
        snprintf(header, sizeof header, "%s%.*s", DICT("'<f4'", "False", "(2,)"), pad, "   ");
        size_t len = make(buf, 1, header, 8);
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, buf, len, 0), (ssize_t)len);
        assert_true(kl_npy_open(path, &f, msg, sizeof msg));
        assert_int_equal((uintptr_t)f.data % 4, 0);
        memset(f.data, 0, 8); /* a private copy: the file stays */
        kl_npy_close(&f);
        char back[400];
        assert_int_equal(pread(fd, back, len, 0), (ssize_t)len);
        assert_memory_equal(back, buf, len);
    }
    close(fd);
    unlink(path);
    assert_false(kl_npy_open(path, &f, msg, sizeof msg));
    assert_string_equal(msg, "No such file or directory");
    assert_false(kl_npy_open("/tmp", &f, msg, sizeof msg));
    assert_string_equal(msg, "it is a directory");
    assert_false(kl_npy_open("/dev/null", &f, msg, sizeof msg));
    assert_string_equal(msg, "it is no regular file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_headers), cmocka_unit_test(bad_headers), cmocka_unit_test(cut),
        cmocka_unit_test(views),        cmocka_unit_test(written),     cmocka_unit_test(opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
