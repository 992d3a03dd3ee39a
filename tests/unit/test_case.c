/* test_case.c - reading the cases in `//!` comments. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/case.h"

/* A case as one line of text. */
static void describe(const struct kl_case *c, char *buf, size_t n)
{
    static const char *const tol[] = {"default", "exact", "ulp", "rel"};
    size_t at = (size_t)snprintf(buf, n, "%s@%u", c->name, c->line);
    if (c->kernel)
        at += (size_t)snprintf(buf + at, n - at, " kernel=%s", c->kernel);
    for (size_t i = 0; i < c->set.n; i++)
        at += (size_t)snprintf(buf + at, n - at, " %s%s=<%s>", c->set.v[i].define ? "-D" : "",
                               c->set.v[i].name, c->set.v[i].value);
    for (size_t i = 0; i < c->nexpect; i++) {
        const struct kl_expect *e = &c->expect[i];
        if (e->kind >= KL_EXPECT_ERROR)
            at += (size_t)snprintf(buf + at, n - at, " %s:%s",
                                   e->kind == KL_EXPECT_ERROR ? "error" : "finding", e->name);
        else
            at += (size_t)snprintf(buf + at, n - at, " %s%s<%s>%s %g", e->name,
                                   e->kind == KL_EXPECT_REFERENCE ? " ref " : " ", e->text,
                                   tol[e->tol.kind], e->tol.v);
    }
}

static void good(void **state)
{
    static const struct { const char *text, *want[3]; } cases[] = {
        {"", {0}},
        {"kernel k() {}\n// a comment\n", {0}},
        {"//! test a\n//! input x = {1, 2}\n//! output y = {3}\n",
         {"a@1 x=<{1, 2}> y <{3}>exact 0"}},
        {"//! input x = 3\n//!\n//! error K0123\n", {"case@1 x=<3> error:K0123"}},
        {"/* //! test no */ const char *s = \"//! test no\"; //! test yes it is\n"
         "//! const B = 8\n//! type T = bf16\n//! alias y = x\n//! kernel two\n",
         {"yes it is@1 kernel=two -DB=<8> -DT=<bf16> y=<@x>"}},
        {"\n//! test a\n//! input x = {{1, 2},\n//!   {3, 4}}\n//! test b\n"
         "//! output y ~ {1} tol 2ulp\n//! finding K1201\n",
         {"a@2 x=<{{1, 2},    {3, 4}}>", "b@5 y <{1}>ulp 2 finding:K1201"}},
        {"//! output y ~ reference slow tol 1e-6\n//! output z ~ reference slow\n",
         {"case@1 y ref <slow>rel 1e-06 z ref <slow>default 0"}},
        {"//! output y ~ {1, 2}\n//! input n=4\r\n", {"case@1 n=<4> y <{1, 2}>default 0"}},
        {"/* unterminated //! test x", {0}},
        {"x = \"unterminated\n//! test a", {"a@2"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kl_cases c;
        struct kl_msg m;
        char got[600];
        size_t n = 0;
        if (!kl_cases_read(cases[i].text, strlen(cases[i].text), &c, &m))
            fail_msg("%s: %s", cases[i].text, m.text);
        for (; cases[i].want[n]; n++) {
            assert_true(n < c.n);
            describe(&c.v[n], got, sizeof got);
            assert_string_equal(got, cases[i].want[n]);
        }
        assert_int_equal(n, c.n);
        kl_cases_free(&c);
    }
}

static void wrong(void **state)
{
    static const struct { const char *text, *why; } cases[] = {
        {"//! test\n", "line 1: //! test: it needs a name"},
        {"\n//! inptu x = 3\n", "line 2: //! `inptu` is not known; did you mean `input`?"},
        {"//! input x 3\n", "NAME = VALUE"},
        {"//! input x =\n", "NAME = VALUE"},
        {"//! alias y =\n", "NAME = VALUE"},
        {"//! input = 3\n", "NAME = VALUE"},
        {"//! output y {1}\n", "NAME ~ VALUE"},
        {"//! output y =\n", "missing"},
        {"//! output y ~ {1} tol 2apples\n", "the tolerance must be"},
        {"//! error 123\n", "a code"},
        {"//! error K0123 and more\n", "a code"},
        {"//! kernel\n", "one name"},
        {"//! kernel a b\n", "one name"},
        {"//! = 3\n", "is not known"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kl_cases c;
        struct kl_msg m;
        assert_false(kl_cases_read(cases[i].text, strlen(cases[i].text), &c, &m));
        if (!strstr(m.text, cases[i].why))
            fail_msg("%s: %s", cases[i].text, m.text);
    }
}

static void words(void **state)
{
    static const struct { const char *word, *name, *value; } cases[] = {
        {"x=a.npy", "x", "a.npy"}, {"y=@x", "y", "@x"}, {"x==3", "x", "=3"}, {"x=", "x", ""},
        {"x", NULL, NULL}, {"=3", NULL, NULL}, {"1x=3", NULL, NULL}, {"a b=3", NULL, NULL},
        {"dir/x=3", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kl_assign a;
        bool ok = kl_assign_split(cases[i].word, &a);
        assert_int_equal(ok, cases[i].name != NULL);
        if (!ok)
            continue;
        assert_string_equal(a.name, cases[i].name);
        assert_string_equal(a.value, cases[i].value);
        free((char *)a.name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good), cmocka_unit_test(wrong), cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
