/* test_parse.c - tokens, precedence, spans and recovery of the parser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lang/ast.h"

/* What one case needs; everything is in the arena. */
struct fixture {
    jmp_buf jb;
    kl_env env;
    kl_arena a;
    kl_diags *d;
    const char *text;
    kl_module_ast *m;
};

static void open_case(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->env = (kl_env){.al = &kl_alloc_libc, .fail = &f->jb};
    f->a.env = &f->env;
    f->d = kl_diags_new(&kl_alloc_libc);
    assert_non_null(f->d);
    kl_diags_use(f->d, &f->env, NULL);
}

static void close_case(struct fixture *f)
{
    kl_diags_use(f->d, NULL, NULL);
    kl_arena_free(&f->a);
    kiln_diags_free(f->d);
}

/* ---- tokens ---- */

struct want_token {
    uint8_t kind;
    const char *text; /* of the source */
};

static void check_tokens(const char *text, const struct want_token *want, size_t n)
{
    struct fixture f;
    open_case(&f);
    if (setjmp(f.jb))
        fail_msg("%s", f.env.msg);
    kl_module_ast m = {.a = &f.a, .src.a = &f.a, .names.a = &f.a};
    uint32_t file = kl_src_add(&m.src, "t", text, (uint32_t)strlen(text), false);
    f.d->src = &m.src;
    kl_lexer l;
    kl_lex_init(&l, &m, file, f.d);
    for (size_t i = 0; i < n; i++) {
        struct kl_token t = kl_lex(&l);
        if (t.kind != want[i].kind || t.span.end - t.span.beg != strlen(want[i].text) ||
            memcmp(text + t.span.beg - l.base, want[i].text, strlen(want[i].text)) != 0)
            fail_msg("token %zu of `%s` is %s at %u to %u", i, text, kl_tok_text[t.kind],
                     t.span.beg - l.base, t.span.end - l.base);
    }
    assert_int_equal(kl_lex(&l).kind, KL_TK_EOF);
    assert_int_equal(kl_lex(&l).kind, KL_TK_EOF);
    close_case(&f);
}
#define CHECK_TOKENS(text, ...)                                                                    \
    check_tokens(text, (struct want_token[]){__VA_ARGS__},                                         \
                 sizeof((struct want_token[]){__VA_ARGS__}) / sizeof(struct want_token))

static void tokens(void **state)
{
    (void)state;
    CHECK_TOKENS("a<<=b>>c", {KL_TK_NAME, "a"}, {KL_TK_SHLEQ, "<<="}, {KL_TK_NAME, "b"},
                 {KL_TK_SHR, ">>"}, {KL_TK_NAME, "c"});
    CHECK_TOKENS("x---y", {KL_TK_NAME, "x"}, {KL_TK_DEC, "--"}, {KL_TK_SUB, "-"},
                 {KL_TK_NAME, "y"});
    CHECK_TOKENS("1.5.x", {KL_TK_ERROR, "1.5.x"});
    CHECK_TOKENS("[0:4]", {KL_TK_LBRACK, "["}, {KL_TK_INT, "0"}, {KL_TK_COLON, ":"},
                 {KL_TK_INT, "4"}, {KL_TK_RBRACK, "]"});
    CHECK_TOKENS("r.m .5 5. 1e-5f", {KL_TK_NAME, "r"}, {KL_TK_DOT, "."}, {KL_TK_NAME, "m"},
                 {KL_TK_DECIMAL, ".5"}, {KL_TK_DECIMAL, "5."}, {KL_TK_DECIMAL, "1e-5f"});
    CHECK_TOKENS("0x1e+3", {KL_TK_INT, "0x1e"}, {KL_TK_ADD, "+"}, {KL_TK_INT, "3"});
    CHECK_TOKENS("for forx kernel inf nan", {KL_TK_FOR, "for"}, {KL_TK_NAME, "forx"},
                 {KL_TK_KERNEL, "kernel"}, {KL_TK_INF, "inf"}, {KL_TK_NAN, "nan"});
    CHECK_TOKENS("a/*b\n*/c//d\ne", {KL_TK_NAME, "a"}, {KL_TK_NAME, "c"}, {KL_TK_NAME, "e"});
    CHECK_TOKENS("\"a\\\"b\" \"\"", {KL_TK_STRING, "\"a\\\"b\""}, {KL_TK_STRING, "\"\""});
    CHECK_TOKENS("#pragma unroll 4 // four\nx", {KL_TK_HASH, "#pragma unroll 4"},
                 {KL_TK_NAME, "x"});
    CHECK_TOKENS("#include \"a//b\"\r\nx", {KL_TK_HASH, "#include \"a//b\""}, {KL_TK_NAME, "x"});
    CHECK_TOKENS("\xef\xbb\xbfx", {KL_TK_NAME, "x"});
    CHECK_TOKENS("a => b", {KL_TK_NAME, "a"}, {KL_TK_GE, "=>"}, {KL_TK_NAME, "b"});
    CHECK_TOKENS("x /* open", {KL_TK_NAME, "x"});
    CHECK_TOKENS("\xff\xfex", {KL_TK_ERROR, "\xff\xfex"});
    CHECK_TOKENS("", {KL_TK_EOF, ""});
}

static void token_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t val;
    } ints[] = {
        {"0", 0},
        {"017", 15},
        {"0b101", 5},
        {"0xffffffffffffffff", UINT64_MAX},
        {"18446744073709551615", UINT64_MAX},
        {"255u", 255},
    };
    struct fixture f;
    open_case(&f);
    if (setjmp(f.jb))
        fail_msg("%s", f.env.msg);
    kl_module_ast m = {.a = &f.a, .src.a = &f.a, .names.a = &f.a};
    f.d->src = &m.src;
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        kl_lexer l;
        kl_lex_init(&l, &m,
                    kl_src_add(&m.src, "t", ints[i].text, (uint32_t)strlen(ints[i].text), false),
                    f.d);
        struct kl_token t = kl_lex(&l);
        assert_int_equal(t.kind, KL_TK_INT);
        assert_true(t.ival == ints[i].val);
    }
    /* the same name is the same pointer */
    assert_ptr_equal(kl_intern(&m, "abc", 3), kl_intern(&m, "abcd", 3));
    assert_ptr_not_equal(kl_intern(&m, "abc", 3), kl_intern(&m, "abcd", 4));
    assert_string_equal(kl_intern(&m, "", 0), "");
    close_case(&f);
}

/* ---- trees ---- */

static void parse(struct fixture *f, const char *text)
{
    open_case(f);
    if (setjmp(f->jb))
        fail_msg("%s", f->env.msg);
    f->text = text;
    f->m = kl_parse(&f->a, "t.kiln", text, strlen(text), NULL, f->d);
    f->env.fail = NULL; /* the jump's target ends here */
}

/* An expression with all parentheses written, to show what binds to what. */
static void brief(kl_buf *b, const kl_node *n)
{
    switch (n->kind) {
    case KL_N_BINARY:
        kl_puts(b, "(");
        brief(b, n->kid[0]);
        kl_puts(b, kl_tok_text[n->op]);
        brief(b, n->kid[1]);
        kl_puts(b, ")");
        break;
    case KL_N_UNARY:
        kl_putf(b, "%s", kl_tok_text[n->op]);
        brief(b, n->kid[0]);
        break;
    case KL_N_COND:
        kl_puts(b, "(");
        brief(b, n->kid[0]);
        kl_puts(b, "?");
        brief(b, n->kid[1]);
        kl_puts(b, ":");
        brief(b, n->kid[2]);
        kl_puts(b, ")");
        break;
    case KL_N_CAST:
        kl_putf(b, "(%s)", n->kid[0]->name);
        brief(b, n->kid[1]);
        break;
    case KL_N_INT: kl_putf(b, "%llu", (unsigned long long)n->ival); break;
    case KL_N_INDEX:
        brief(b, n->kid[0]);
        for (uint32_t i = 1; i < n->nkid; i++) {
            kl_puts(b, "[");
            brief(b, n->kid[i]);
            kl_puts(b, "]");
        }
        break;
    case KL_N_SECTION:
        for (uint32_t i = 0; i < 3 && n->kid[i]; i++) {
            kl_puts(b, i ? ":" : "");
            brief(b, n->kid[i]);
        }
        break;
    case KL_N_ALL: kl_puts(b, ":"); break;
    case KL_N_MEMBER:
        brief(b, n->kid[0]);
        kl_putf(b, ".%s", n->name);
        break;
    case KL_N_CALL:
        kl_putf(b, "%s(", n->name);
        for (uint32_t i = 0; i < n->nkid; i++) {
            kl_puts(b, i ? "," : "");
            brief(b, n->kid[i]);
        }
        kl_puts(b, ")");
        break;
    case KL_N_DESIG:
        kl_putf(b, ".%s=", n->name);
        brief(b, n->kid[0]);
        break;
    default: kl_puts(b, n->name ? n->name : "?"); break;
    }
}

static void check_expr(const char *text, const char *want)
{
    struct fixture f;
    char src[256];
    snprintf(src, sizeof src, "kernel k(type T) { x = %s; }", text);
    parse(&f, src);
    kl_buf b = {.a = &f.a};
    brief(&b, f.m->kernels.v[0]->kid[2]->kid[0]->kid[1]);
    assert_string_equal(kl_buf_str(&b), want);
    assert_int_equal(f.d->nerr, 0);
    close_case(&f);
}

static void precedence(void **state)
{
    (void)state;
    check_expr("a+b*c-d", "((a+(b*c))-d)");
    check_expr("a||b&&c|d^e&f==g<h<<i+j*k", "(a||(b&&(c|(d^(e&(f==(g<(h<<(i+(j*k))))))))))");
    check_expr("a*b+c<<d<e==f&g^h|i&&j||k", "((((((((((a*b)+c)<<d)<e)==f)&g)^h)|i)&&j)||k)");
    check_expr("a-b-c", "((a-b)-c)");
    check_expr("a/b%c*d", "(((a/b)%c)*d)");
    check_expr("a?b:c?d:e", "(a?b:(c?d:e))");
    check_expr("a?b?c:d:e", "(a?(b?c:d):e)");
    check_expr("a==b!=c", "((a==b)!=c)");
    check_expr("- -a - -b", "(--a--b)");
    check_expr("!a&&~b", "(!a&&~b)");
    check_expr("-a[i].m", "-a[i].m");
    check_expr("(T)a+b", "((T)a+b)");
    check_expr("(T)-a[0]", "(T)-a[0]");
    check_expr("(f32)(T)a", "(f32)(T)a");
    check_expr("(a)+b", "(a+b)");
    check_expr("(a)-b", "(a-b)");
}

static void subscripts(void **state)
{
    (void)state;
    check_expr("a[i][0:4][0:8:2][:]", "a[i][0:4][0:8:2][:]");
    check_expr("a[c?1:2:4]", "a[(c?1:2):4]");
    check_expr("a[0:c?1:2]", "a[0:(c?1:2)]");
    check_expr("f(a[0:1],.axis=1,.type=f16)", "f(a[0:1],.axis=1,.type=f16)");
    check_expr("f(T,c?f16:T)[0]", "f(T,(c?f16:T))[0]");
    check_expr("&a[r][0]", "&a[r][0]");
}

/* ---- spans ---- */

static void check_span(const struct fixture *f, kl_span s, const char *want)
{
    const char *at = f->text + s.beg - f->m->src.files.v[0].base;
    if (s.end - s.beg != strlen(want) || memcmp(at, want, strlen(want)) != 0)
        fail_msg("span is `%.*s`, not `%s`", (int)(s.end - s.beg), at, want);
}

static void spans(void **state)
{
    (void)state;
    struct fixture f;
    parse(&f, "kernel k(i64 n, const T x[n] stride(2))\n    grid(n)\n{\n"
              "    y[i][0:4] = (a + b) * exp( c ) ;\n    auto z = q.m ? -1 : 2;\n    i++;\n}\n");
    const kl_node *k = f.m->kernels.v[0], *body = k->kid[2];
    check_span(&f, k->name_span, "k");
    check_span(&f, k->kid[0]->kid[1]->span, "const T x[n] stride(2)");
    check_span(&f, k->kid[0]->kid[1]->kid[1]->span, "[n]");
    check_span(&f, k->kid[0]->kid[1]->kid[2]->span, "stride(2)");
    check_span(&f, k->kid[1]->kid[0]->span, "grid(n)");
    const kl_node *as = body->kid[0];
    check_span(&f, as->span, "y[i][0:4] = (a + b) * exp( c ) ;");
    check_span(&f, as->name_span, "=");
    check_span(&f, as->kid[0]->span, "y[i][0:4]");
    check_span(&f, as->kid[0]->kid[2]->span, "0:4");
    check_span(&f, as->kid[1]->span, "(a + b) * exp( c )");
    check_span(&f, as->kid[1]->name_span, "*");
    check_span(&f, as->kid[1]->kid[0]->span, "(a + b)");
    check_span(&f, as->kid[1]->kid[1]->span, "exp( c )");
    check_span(&f, as->kid[1]->kid[1]->name_span, "exp");
    const kl_node *var = body->kid[1]->kid[1];
    check_span(&f, var->span, "z = q.m ? -1 : 2");
    check_span(&f, var->name_span, "z");
    check_span(&f, var->kid[2]->span, "q.m ? -1 : 2");
    check_span(&f, var->kid[2]->kid[0]->span, "q.m");
    check_span(&f, var->kid[2]->kid[1]->span, "-1");
    check_span(&f, body->kid[2]->span, "i++;");
    assert_int_equal(k->span.beg, f.m->src.files.v[0].base);
    assert_int_equal(k->span.end, k->span.beg + strlen(f.text) - 1);
    close_case(&f);
}

/* ---- errors ---- */

/* The codes and places of all errors, as "K0114 2:5 ". */
static void check_errors(const char *text, const char *want)
{
    struct fixture f;
    parse(&f, text);
    kl_buf b = {.a = &f.a};
    for (size_t i = 0; i < kiln_diags_count(f.d); i++) {
        const kiln_diag *g = kiln_diags_at(f.d, i);
        kl_putf(&b, "%s %u:%u ", g->code, g->place.line, g->place.col);
    }
    assert_string_equal(kl_buf_str(&b), want);
    close_case(&f);
}

static void recovery(void **state)
{
    (void)state;
    /* each statement is judged by itself */
    check_errors("kernel k() {\n x = ;\n y = 1;\n z = * 2 +;\n f(a;\n if (x = 1) { y[1 = 2; }\n}\n",
                 "K0114 2:4 K0119 4:6 K0114 4:10 K0113 5:5 K0122 6:8 K0113 6:18 ");
    /* brackets contain an error */
    check_errors("kernel k() {\n x = f(1 2) + g(3 4);\n}\n", "K0114 2:10 K0114 2:19 ");
    /* a body is read although its head is wrong */
    check_errors("kernel k() {\n for (i64 i = ; i < 3; i++) {\n  x = ;\n }\n}\n",
                 "K0114 2:13 K0114 3:5 ");
    check_errors("kernel k(i64) {\n x = ;\n}\nkernel m() {\n x = ;\n}\n",
                 "K0114 1:13 K0114 2:4 K0114 5:4 ");
    /* a missing brace costs no more than itself */
    check_errors("kernel k() {\n if (a) {\n x = 1;\n}\n\nkernel m() {\n x = ;\n}\n",
                 "K0113 4:2 K0114 7:4 ");
    check_errors("f32 f(f32 x) {\n while (1) {\n}\nf32 g(f32 x) {\n return ;\n}\n", "K0113 3:2 ");
    /* behind an error of the lexer the parser is silent */
    check_errors("kernel k() {\n x = a @ b;\n y = 12ab;\n z = f(\"open);\n w = 1;\n}\n",
                 "K0101 2:8 K0105 3:6 K0103 4:8 ");
    check_errors("kernel", "K0114 1:7 ");
    check_errors("", "");
    check_errors("/*", "K0102 1:1 ");
}

static void twenty_at_most(void **state)
{
    (void)state;
    struct fixture f;
    char text[4096] = "kernel k() {\n";
    for (int i = 0; i < 100; i++)
        strcat(text, "x = ;\n");
    strcat(text, "}\n");
    parse(&f, text);
    assert_int_equal(f.d->nerr, KL_MAX_ERRORS);
    assert_int_equal(kiln_diags_count(f.d), KL_MAX_ERRORS);
    close_case(&f);
}

static void error_nodes(void **state)
{
    (void)state;
    struct fixture f;
    parse(&f, "kernel k() {\n x = 1 + f(2 3) ;\n y = 4;\n}\n");
    const kl_node *body = f.m->kernels.v[0]->kid[2];
    assert_int_equal(body->nkid, 2);
    assert_int_equal(body->kid[0]->kind, KL_N_ASSIGN);
    assert_int_equal(body->kid[1]->kind, KL_N_ASSIGN);
    check_span(&f, body->kid[1]->span, "y = 4;");
    close_case(&f);
}

static void fixes(void **state)
{
    (void)state;
    struct fixture f;
    parse(&f, "kernel k() {\n  x = 1\n  y[a, b] = 2;\n}\n");
    const kiln_diag *g = kiln_diags_at(f.d, 0);
    assert_string_equal(g->fix, ";");
    assert_int_equal(g->fix_place.line, 2);
    assert_int_equal(g->fix_place.col, 8);
    assert_int_equal(g->fix_place.end_col, 8);
    g = kiln_diags_at(f.d, 1);
    assert_string_equal(g->fix, "][");
    assert_int_equal(g->fix_place.col, 6);
    assert_int_equal(g->fix_place.end_col, 7);
    close_case(&f);
}

/* ---- the rest ---- */

static void test_lines(void **state)
{
    (void)state;
    struct fixture f;
    parse(&f, "//! test a  \n//!\tinput x = 1\r\n// no\nkernel k() { } //! const B = 8\n//!");
    assert_int_equal(f.m->tests.n, 4);
    assert_string_equal(f.m->tests.v[0].text, "test a");
    assert_string_equal(f.m->tests.v[1].text, "input x = 1");
    check_span(&f, f.m->tests.v[1].span, "input x = 1");
    assert_string_equal(f.m->tests.v[2].text, "const B = 8");
    assert_string_equal(f.m->tests.v[3].text, "");
    close_case(&f);
}

static void library_include(void **state)
{
    (void)state;
    struct fixture f;
    parse(&f, "#include <act.kiln>\n#include <act.kiln>\nkernel k() { }\n");
    assert_int_equal(f.d->nerr, 0);
    assert_int_equal(f.m->src.files.n, 2);
    assert_true(f.m->src.files.v[1].lib);
    assert_string_equal(f.m->src.files.v[1].name, "<act.kiln>");
    assert_int_equal(f.m->kernels.n, 1);
    bool gelu = false;
    for (uint32_t i = 0; i < f.m->root->nkid; i++)
        gelu |=
            f.m->root->kid[i]->kind == KL_N_FUNC && strcmp(f.m->root->kid[i]->name, "gelu") == 0;
    assert_true(gelu);
    close_case(&f);
}

static void depth(void **state)
{
    (void)state;
    static const char *const unit[] = {"(", "-", "a[", "f(", "!", "a?", "a+", "(f32)", "a."};
    char text[8192];
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
        strcpy(text, "kernel k() { x = ");
        for (int n = 0; n < 1200; n++)
            strcat(text, unit[i]);
        struct fixture f;
        parse(&f, text);
        assert_int_equal(f.d->nerr, 1);
        assert_string_equal(kiln_diags_at(f.d, 0)->code, "K0126");
        close_case(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens),          cmocka_unit_test(token_values),
        cmocka_unit_test(precedence),      cmocka_unit_test(subscripts),
        cmocka_unit_test(spans),           cmocka_unit_test(recovery),
        cmocka_unit_test(twenty_at_most),  cmocka_unit_test(error_nodes),
        cmocka_unit_test(fixes),           cmocka_unit_test(test_lines),
        cmocka_unit_test(library_include), cmocka_unit_test(depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
