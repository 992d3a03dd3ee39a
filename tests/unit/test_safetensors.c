/* test_safetensors.c - headers of .safetensors files: what is read, and writing; what is refused
 * is in tests/cli/badsafetensors.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/safetensors.h"

static bool parse(const char *json, uint64_t data, struct kl_st *s, char msg[700])
{
    char buf[2000];
    size_t n = strlen(json);
    for (int i = 0; i < 8; i++)
        buf[i] = (char)((uint64_t)n >> (8 * i));
    memcpy(buf + 8, json, n);
    return kl_st_parse(buf, 8 + n, 8 + n + data, s, msg, 700);
}

static void every_type(void **state)
{
    static const struct {
        const char *name;
        enum kl_elem elem;
    } types[] = {{"BOOL", KL_bool}, {"I8", KL_i8},   {"U8", KL_u8},
                 {"I16", KL_i16},   {"U16", KL_u16}, {"I32", KL_i32},
                 {"U32", KL_u32},   {"I64", KL_i64}, {"U64", KL_u64},
                 {"F16", KL_f16},   {"BF16", KL_bf16}, {"F32", KL_f32},
                 {"F64", KL_f64},   {"F8_E4M3", KL_f8e4m3}, {"F8_E5M2", KL_f8e5m2}};
    (void)state;
    assert_int_equal(sizeof types / sizeof *types, KL_NELEM - 1); /* all there are */
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct kl_st s, t;
        char msg[700], json[300];
        uint64_t bytes = 3u * kl_elems[types[i].elem].bytes;
        size_t n;
        snprintf(json, sizeof json,
                 "{\"x\":{\"dtype\":\"%s\",\"shape\":[3,1],\"data_offsets\":[0,%llu]}}   ",
                 types[i].name, (unsigned long long)bytes);
        assert_true(parse(json, bytes, &s, msg));
        assert_int_equal(s.n, 1);
        assert_int_equal(s.v[0].elem, types[i].elem);
        assert_int_equal(s.v[0].ndim, 2);
        assert_int_equal(s.v[0].shape[0], 3);
        char *head = kl_st_header(s.v, 1, &n);
        assert_int_equal(n % 8, 0);
        assert_non_null(strstr(head + 8, types[i].name));
        assert_true(kl_st_parse(head, n, n + bytes, &t, msg, sizeof msg));
        assert_int_equal(t.v[0].elem, types[i].elem);
        kl_st_free(&s);
        kl_st_free(&t);
        free(head);
    }
}

static void order_and_metadata(void **state)
{
    struct kl_st s;
    char msg[700];
    (void)state;
    /* not in the order of their data; a scalar; nothing; a type that Kiln does not have */
    assert_true(parse("{\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[16,20]},"
                      "\"__metadata__\":{\"format\":\"pt\",\"k\":\"v\"},"
                      "\"c\":{\"dtype\":\"C64\",\"shape\":[2],\"data_offsets\":[0,16]},"
                      "\"\":{\"dtype\":\"I8\",\"shape\":[0,9],\"data_offsets\":[20,20]}}",
                      20, &s, msg));
    assert_int_equal(s.n, 3);
    assert_string_equal(s.v[0].name, "b");
    assert_int_equal(s.v[0].ndim, 0);
    assert_int_equal(s.v[1].elem, KL_elem_none);
    assert_string_equal(s.v[1].type, "C64");
    assert_string_equal(s.v[2].name, "");
    assert_int_equal(s.nmeta, 2);
    assert_string_equal(s.meta[0], "format");
    assert_string_equal(s.meta[3], "v");
    kl_st_free(&s);
    assert_true(parse("{}", 0, &s, msg));
    assert_int_equal(s.n, 0);
    kl_st_free(&s);
}

static void extents_that_overflow(void **state)
{
    struct kl_st s;
    char msg[700];
    (void)state;
    /* 2^32 * 2^32 * 0 is 0; 2^62 * 2^62 is not 0 */
    assert_true(parse("{\"x\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,0],"
                      "\"data_offsets\":[0,0]}}", 0, &s, msg));
    kl_st_free(&s);
    assert_false(parse("{\"x\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,"
                       "4611686018427387904],\"data_offsets\":[0,0]}}", 0, &s, msg));
    assert_false(parse("{\"x\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],"
                       "\"data_offsets\":[0,0]}}", 0, &s, msg));
}

static void paths(void **state)
{
    size_t n;
    const char *name;
    (void)state;
    assert_true(kl_st_path("a.safetensors", &n, &name) && n == 13 && !name);
    assert_true(kl_st_path("a.safetensors:", &n, &name) && !name);
    assert_true(kl_st_path("d/a.safetensors:x.y:z", &n, &name) && n == 15);
    assert_string_equal(name, "x.y:z");
    assert_true(kl_st_path("a.safetensors.d/b.safetensors:q", &n, &name) && n == 29);
    assert_false(kl_st_path("a.safetensorsx", &n, &name));
    assert_false(kl_st_path("a.npy:f32", &n, &name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type),
        cmocka_unit_test(order_and_metadata),
        cmocka_unit_test(extents_that_overflow),
        cmocka_unit_test(paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
