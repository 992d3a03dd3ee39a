/* test_json.c - what commands say as JSON: what JSON has no word for, and the writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"

static void dumped(json_t *v, const char *want)
{
    json_t *a = json_array();
    assert_non_null(v);
    json_array_append_new(a, v);
    char *text = kl_json_dump(a, 9);
    assert_non_null(text);
    char *line = strchr(text, '\n') + 2; /* [, a line, a blank */
    *strrchr(line, '\n') = 0;
    assert_string_equal(line, want);
    free(text);
}

/* Whatever a command puts into a report, the report has the key. */
static void no_words(void **state)
{
    json_t *o = json_object();
    (void)state;
    dumped(kl_json_number(0.1), "0.1");
    dumped(kl_json_number(-0.0), "-0.0");
    dumped(kl_json_number((double)NAN), "null");
    dumped(kl_json_number(-(double)INFINITY), "null");
    dumped(kl_json_above((double)INFINITY), "null");
    dumped(kl_json_above(0), "null");
    dumped(kl_json_above((double)NAN), "null");
    dumped(kl_json_above(2.5), "2.5");
    dumped(kl_json_count(INT64_MAX), "9223372036854775807");
    dumped(kl_json_count(UINT64_MAX), "1.84467441e19");
    dumped(kl_json_text(NULL), "null");
    dumped(kl_json_text(""), "\"\"");
    dumped(kl_json_some(""), "null");
    dumped(kl_json_text("a\xff\"b"), "\"a?\\\"b\"");
    dumped(kl_json_text("\xc3\xa9"), "\"\xc3\xa9\"");
    kl_json_set(o, "gone", json_real((double)NAN)); /* Jansson makes no such number */
    assert_true(json_is_null(json_object_get(o, "gone")));
    json_decref(o);
    assert_null(kl_json_dump(NULL, 0));
}

static void commas_and_lines(void **state)
{
    struct kl_jsonwrite w = {0};
    size_t n;
    (void)state;
    kl_jsonwrite_open(&w, '{');
    kl_jsonwrite_key(&w, "a");
    kl_jsonwrite_open(&w, '[');
    kl_jsonwrite_close(&w, ']');
    kl_jsonwrite_line(&w);
    kl_jsonwrite_key(&w, "b\"");
    kl_jsonwrite_open(&w, '[');
    for (uint64_t i = 0; i < 3; i++) {
        kl_jsonwrite_line(&w);
        kl_jsonwrite_open(&w, '{');
        kl_jsonwrite_key(&w, "i");
        kl_jsonwrite_count(&w, i);
        kl_jsonwrite_key(&w, "s");
        kl_jsonwrite_strings(&w, "x", "\t\\", "y");
        kl_jsonwrite_close(&w, '}');
    }
    kl_jsonwrite_line(&w);
    kl_jsonwrite_close(&w, ']');
    kl_jsonwrite_key(&w, "c");
    kl_jsonwrite_thousandths(&w, UINT64_MAX);
    kl_jsonwrite_close(&w, '}');
    char *text = kl_jsonwrite_text(&w, &n);
    assert_string_equal(text, "{\"a\":[],\n"
                              "\"b\\\"\":[\n"
                              "{\"i\":0,\"s\":\"x\\u0009\\\\y\"},\n"
                              "{\"i\":1,\"s\":\"x\\u0009\\\\y\"},\n"
                              "{\"i\":2,\"s\":\"x\\u0009\\\\y\"}\n"
                              "],\"c\":18446744073709551.615}\n");
    assert_int_equal(strlen(text), n);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    json_decref(root);
    free(text);
}

static void reals(void **state)
{
    static const struct {
        double v;
        int digits;
        const char *want;
    } t[] = {
        {0.1, 0, "0.1"},        {1.0 / 3, 0, "0.3333333333333333"},
        {5e-324, 0, "4.94065645841247e-324"},
        {1e22, 0, "1e+22"},     {123456789, 4, "1.235e+08"},
        {(double)NAN, 0, "null"},       {(double)INFINITY, 4, "null"},
        {-0.0, 0, "-0"},        {0.1 + 0.2, 0, "0.30000000000000004"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct kl_jsonwrite w = {0};
        size_t n;
        kl_jsonwrite_real(&w, t[i].v, t[i].digits);
        char *text = kl_jsonwrite_text(&w, &n);
        text[n - 1] = 0;
        assert_string_equal(text, t[i].want);
        if (!t[i].digits && isfinite(t[i].v))
            assert_true(strtod(text, NULL) == t[i].v);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_words),
        cmocka_unit_test(commas_and_lines),
        cmocka_unit_test(reals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
