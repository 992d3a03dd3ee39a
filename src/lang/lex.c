/* lex.c - from bytes to tokens, by C's lexical rules without macros.
 *
 * A line that begins with # is one token (HASH): its span is the directive without
 * the comment behind it, and the parser reads it from there.  What is wrong is
 * reported here; where the meaning is plain all the same (a suffix `u`, the operator
 * `=>`) the token meant is returned, otherwise ERROR, which the parser skips silently.
 * `//!` comments of the first file are collected as test lines. */
#include "base/elem.h"
#include "lang/ast.h"

#include <stdio.h>

struct spelling {
    const char *text;
    uint8_t len, kind;
};

static const struct spelling puncts[] = {
#define TOK(name, text) {text, sizeof text - 1, KL_TK_##name},
#include "lang/token.def"
};

static const struct spelling keys[] = {
#define KEY(name, text) {text, sizeof text - 1, KL_TK_##name},
#include "lang/token.def"
};

/* Operators of other languages and slips of the pen: no valid source holds them. */
static const struct {
    const char *text, *fix;
    uint8_t kind;
} aliens[] = {
    {"===", "==", KL_TK_EQ}, {"!==", "!=", KL_TK_NE}, {"=>", ">=", KL_TK_GE},
    {"=<", "<=", KL_TK_LE},  {"<>", "!=", KL_TK_NE},  {":=", "=", KL_TK_ASSIGN},
};

/* Characters that word processors put where ASCII was meant. */
static const struct {
    uint32_t code;
    const char *fix;
    uint8_t kind; /* EOF: a blank */
} lookalikes[] = {
    {0x00a0, " ", KL_TK_EOF}, {0x00d7, "*", KL_TK_MUL}, {0x00f7, "/", KL_TK_DIV},
    {0x2013, "-", KL_TK_SUB}, {0x2212, "-", KL_TK_SUB}, {0x2260, "!=", KL_TK_NE},
    {0x2264, "<=", KL_TK_LE}, {0x2265, ">=", KL_TK_GE}, {0xfeff, "", KL_TK_EOF},
};

void kl_lex_init(kl_lexer *l, kl_module_ast *m, uint32_t file, kl_diags *d)
{
    const struct kl_file *f = &m->src.files.v[file];
    *l = (kl_lexer){m, d, f->text, f->text, f->text + f->len, f->base, true};
    if (f->len >= 3 && memcmp(f->text, "\xef\xbb\xbf", 3) == 0)
        l->p += 3; /* a byte order mark */
}

static kl_span span_at(const kl_lexer *l, const char *beg, const char *end)
{
    return (kl_span){l->base + (uint32_t)(beg - l->text), l->base + (uint32_t)(end - l->text)};
}

/* Past the limit of errors nothing is kept, so nothing is worth its cost. */
static void fix(kl_lexer *l, struct kl_diag *g, kl_span span, const char *text)
{
    if (g != l->d->sink)
        kl_fix(g, span, "%s", text);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_alnum(char c)
{
    return is_alpha(c) || is_digit(c);
}

/* Value of a digit up to base 16, or 99. */
static unsigned digit_value(char c)
{
    if (is_digit(c))
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 99;
}

/* Length of the UTF-8 sequence at p and its code point; 0 if it is none. */
static int utf8(const char *p, const char *end, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = (unsigned char)*p;
    int n = c < 0x80             ? 1
            : (c & 0xe0) == 0xc0 ? 2
            : (c & 0xf0) == 0xe0 ? 3
            : (c & 0xf8) == 0xf0 ? 4
                                 : 0;
    if (n == 0 || end - p < n)
        return 0;
    uint32_t v = n == 1 ? c : c & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        v = v << 6 | ((unsigned char)p[i] & 0x3f);
    }
    *code = v;
    return v < least[n] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000) ? 0 : n;
}

/* ---- blanks and comments ---- */

static void test_line(kl_lexer *l, const char *beg, const char *end)
{
    if (l->base != l->m->src.files.v[0].base)
        return; /* tests of an included file are its own */
    while (beg < end && (*beg == ' ' || *beg == '\t'))
        beg++;
    while (end > beg && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    struct kl_testline t = {kl_strndup(l->m->a, beg, (size_t)(end - beg)), span_at(l, beg, end)};
    kl_push(l->m->a, &l->m->tests, t);
}

static void skip_blanks(kl_lexer *l)
{
    while (l->p < l->end) {
        char c = *l->p;
        if (c == '\n') {
            l->bol = true;
            l->p++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            l->p++;
        } else if (c == '/' && l->end - l->p > 1 && l->p[1] == '/') {
            const char *beg = l->p;
            const char *nl = memchr(beg, '\n', (size_t)(l->end - beg));
            l->p = nl ? nl : l->end;
            if (l->p - beg > 2 && beg[2] == '!')
                test_line(l, beg + 3, l->p);
        } else if (c == '/' && l->end - l->p > 1 && l->p[1] == '*') {
            const char *beg = l->p;
            for (l->p += 2; l->p < l->end; l->p++) {
                if (*l->p == '\n')
                    l->bol = true;
                if (*l->p == '*' && l->end - l->p > 1 && l->p[1] == '/')
                    break;
            }
            if (l->p == l->end)
                kl_diag(l->d, KL_K0102, span_at(l, beg, beg + 2), "this comment does not end");
            else
                l->p += 2;
        } else {
            return;
        }
    }
}

/* ---- numbers ---- */

/* The type that a suffix asks for: C's letters, or an element type's name as in 1.0_f64. */
static const char *suffix_type(const char *s, size_t n, bool decimal)
{
    static const struct {
        const char *text, *integer, *decimal;
    } table[] = {
        {"u", "u32", NULL},  {"l", "i64", "f64"},  {"ll", "i64", NULL},  {"ul", "u64", NULL},
        {"lu", "u64", NULL}, {"ull", "u64", NULL}, {"llu", "u64", NULL}, {"z", "i64", NULL},
        {"uz", "u64", NULL}, {"h", "f16", "f16"},  {"d", "f64", "f64"},  {"bf", "bf16", "bf16"},
        {"f", "f32", "f32"},
    };
    char low[8] = {0};
    if (n > 0 && *s == '_')
        s++, n--;
    if (n == 0 || n >= sizeof low)
        return NULL;
    for (size_t i = 0; i < n; i++)
        low[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] + ('a' - 'A')) : s[i];
    enum kl_elem e = kl_elem_by_name(low, (uint32_t)n);
    if (e)
        return decimal && !kl_is_float(e) ? NULL : kl_elems[e].name;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(low, table[i].text) == 0)
            return decimal ? table[i].decimal : table[i].integer;
    return NULL;
}

static struct kl_token bad_number(kl_lexer *l, struct kl_token t, const char *beg, const char *what)
{
    t.kind = KL_TK_ERROR;
    t.span = span_at(l, beg, l->p);
    int n = l->p - beg > 60 ? 60 : (int)(l->p - beg);
    kl_diag(l->d, KL_K0105, t.span, "`%.*s` is not a number: %s", n, beg, what);
    return t;
}

static const char *skip_digits(const char *p, const char *end, unsigned base)
{
    while (p < end && digit_value(*p) < base)
        p++;
    return p;
}

static struct kl_token number(kl_lexer *l, struct kl_token t)
{
    const char *beg = l->p, *end = l->end, *digits = beg, *p;
    unsigned base = 10;
    bool decimal = false, exponent = false;
    if (*beg == '0' && end - beg > 1 && (beg[1] == 'x' || beg[1] == 'X'))
        base = 16, digits += 2;
    else if (*beg == '0' && end - beg > 1 && (beg[1] == 'b' || beg[1] == 'B'))
        base = 2, digits += 2;
    p = skip_digits(digits, end, base);
    size_t ndigit = (size_t)(p - digits);
    if (base != 2 && p < end && *p == '.') {
        const char *frac = p + 1;
        p = skip_digits(frac, end, base);
        ndigit += (size_t)(p - frac);
        decimal = true;
    }
    if (base != 2 && p < end && (base == 16 ? *p == 'p' || *p == 'P' : *p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        if (q < end && (*q == '+' || *q == '-'))
            q++;
        if (q < end && is_digit(*q)) {
            p = skip_digits(q, end, 10);
            decimal = exponent = true;
        }
    }
    const char *suffix = p;
    while (p < end && (is_alnum(*p) || *p == '.'))
        p++;
    l->p = p;
    size_t len = (size_t)(suffix - beg), nsuffix = (size_t)(p - suffix);

    if (ndigit == 0)
        return bad_number(l, t, beg, "it has no digits");
    if (nsuffix == 1 && (*suffix == 'e' || *suffix == 'E' || *suffix == 'p' || *suffix == 'P') &&
        base != 2)
        return bad_number(l, t, beg, "the exponent has no digits");
    if (base == 2 && nsuffix && is_digit(*suffix))
        return bad_number(l, t, beg, "a binary number has the digits 0 and 1");
    if (decimal && base == 16 && !exponent) {
        t.kind = KL_TK_ERROR;
        t.span = span_at(l, beg, p);
        fix(l, kl_diag(l->d, KL_K0105, t.span, "a hexadecimal fraction needs an exponent"),
            span_at(l, suffix, suffix), "p0");
        return t;
    }
    bool octal = !decimal && base == 10 && *beg == '0' && len > 1;
    if (nsuffix && base == 10 && !octal && nsuffix == 1 && (*suffix == 'f' || *suffix == 'F'))
        decimal = t.f32 = true;
    else if (nsuffix && decimal && nsuffix == 1 && (*suffix == 'f' || *suffix == 'F'))
        t.f32 = true; /* 0x1p4f */
    else if (nsuffix) {
        const char *type = suffix_type(suffix, nsuffix, decimal);
        if (!type)
            return bad_number(l, t, beg,
                              memchr(suffix, '.', nsuffix) ? "it has a second point"
                                                           : "letters follow its digits");
        struct kl_diag *g = kl_diag(l->d, KL_K0106, span_at(l, suffix, p),
                                    "a number has no suffix `%.*s`; the type is a cast: (%s)%.*s",
                                    (int)nsuffix, suffix, type, (int)(len > 60 ? 60 : len), beg);
        if (len <= 60)
            fix(l, g, span_at(l, beg, p), kl_printf(l->m->a, "(%s)%.*s", type, (int)len, beg));
    }
    t.span = span_at(l, beg, p);
    if (decimal) {
        t.kind = KL_TK_DECIMAL;
        t.text = kl_intern(l->m, beg, len);
        return t;
    }
    if (octal)
        base = 8;
    for (const char *q = digits; q < suffix; q++) {
        unsigned v = digit_value(*q);
        if (v >= base)
            return bad_number(l, t, beg, "a leading 0 means octal, which has the digits 0 to 7");
        if (t.ival > (UINT64_MAX - v) / base)
            return bad_number(l, t, beg, "it does not fit in 64 bits");
        t.ival = t.ival * base + v;
    }
    t.kind = KL_TK_INT;
    return t;
}

/* ---- strings ---- */

static void put_utf8(kl_buf *b, uint32_t c)
{
    char s[4];
    if (c < 0x80) {
        s[0] = (char)c;
        kl_buf_put(b, s, 1);
        return;
    }
    int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6)
        s[i] = (char)(0x80 | (c & 0x3f));
    s[0] = (char)((0xf00u >> n) | c);
    kl_buf_put(b, s, (size_t)n);
}

/* An escape at l->p, behind the backslash.  NULL if it is good, else what is wrong. */
static const char *escape(kl_lexer *l, kl_buf *b)
{
    static const char from[] = "ntr\\\"'abfv?", to[] = "\n\t\r\\\"'\a\b\f\v?";
    char c = *l->p++;
    const char *at = c ? strchr(from, c) : NULL;
    if (at) {
        kl_buf_put(b, &to[at - from], 1);
        return NULL;
    }
    unsigned base = 16;
    int max = 0, n = 0;
    if (digit_value(c) < 8)
        base = 8, max = 3, l->p--;
    else if (c == 'x')
        max = 2;
    else if (c == 'u')
        max = 4;
    else if (c == 'U')
        max = 8;
    else
        return "is not an escape of C";
    uint32_t v = 0;
    for (; n < max && l->p < l->end && digit_value(*l->p) < base; n++, l->p++)
        v = v * base + digit_value(*l->p);
    if (n == 0 || ((c == 'u' || c == 'U') && n < max))
        return "needs more digits";
    if (v == 0)
        return "would end the text";
    if (v > 0x10ffff || (v >= 0xd800 && v < 0xe000) || (v >= 0x80 && c != 'u' && c != 'U'))
        return "is not a character; write the character itself";
    put_utf8(b, v);
    return NULL;
}

static struct kl_token string(kl_lexer *l, struct kl_token t)
{
    const char *beg = l->p++;
    kl_buf b = {.a = l->m->a};
    bool bad = false;
    while (l->p < l->end && *l->p != '"' && *l->p != '\n') {
        const char *at = l->p, *what = NULL;
        uint32_t code;
        int n;
        if (*at == '\\' && l->end - at > 1 && at[1] != '\n') {
            l->p++;
            what = escape(l, &b);
        } else if (*at == 0) {
            what = "(a NUL byte) cannot stand in a text";
            l->p++;
        } else if ((n = utf8(at, l->end, &code)) == 0) {
            what = "is not UTF-8";
            l->p++;
        } else {
            kl_buf_put(&b, at, (size_t)n);
            l->p += n;
        }
        if (what && !bad) { /* one message a text */
            bad = true;
            if (*at == '\\')
                kl_diag(l->d, KL_K0104, span_at(l, at, l->p), "`%.*s` %s", (int)(l->p - at), at,
                        what);
            else
                kl_diag(l->d, KL_K0104, span_at(l, at, l->p), "byte 0x%02x %s",
                        (unsigned)(unsigned char)*at, what);
        }
    }
    if (l->p == l->end || *l->p == '\n') {
        kl_diag(l->d, KL_K0103, span_at(l, beg, beg + 1), "this text does not end on its line");
        t.kind = KL_TK_ERROR;
    } else {
        l->p++;
        t.kind = KL_TK_STRING;
        t.text = kl_intern(l->m, kl_buf_str(&b), b.n);
    }
    t.span = span_at(l, beg, l->p);
    return t;
}

/* 'a': there is no character type, but what was meant is a number. */
static struct kl_token character(kl_lexer *l, struct kl_token t)
{
    const char *beg = l->p, *end = beg + 1;
    while (end < l->end && *end != '\'' && *end != '\n' && end - beg < 12)
        end += *end == '\\' && l->end - end > 1 ? 2 : 1;
    if (end > l->end)
        end = l->end;
    bool closed = end < l->end && *end == '\'';
    l->p = closed ? end + 1 : beg + 1;
    t.span = span_at(l, beg, l->p);
    t.kind = KL_TK_ERROR;
    struct kl_diag *g = kl_diag(l->d, KL_K0107, t.span,
                                closed ? "there are no characters; write the number"
                                       : "`'` begins nothing; a text stands in \"double quotes\"");
    if (closed && end - beg == 2 && beg[1] > 32 && beg[1] < 127) {
        fix(l, g, t.span, kl_printf(l->m->a, "%d", beg[1]));
        t.kind = KL_TK_INT;
        t.ival = (uint64_t)beg[1];
    }
    return t;
}

/* ---- the rest ---- */

/* A line that begins with #: up to its end or to a comment. */
static struct kl_token directive(kl_lexer *l, struct kl_token t)
{
    const char *beg = l->p, *end = beg;
    for (bool quoted = false; l->p < l->end && *l->p != '\n'; l->p++) {
        if (*l->p == '"')
            quoted = !quoted;
        if (!quoted && *l->p == '/' && l->end - l->p > 1 && (l->p[1] == '/' || l->p[1] == '*'))
            break;
        if (*l->p != ' ' && *l->p != '\t' && *l->p != '\r')
            end = l->p + 1;
    }
    t.kind = KL_TK_HASH;
    t.span = span_at(l, beg, end);
    return t;
}

static struct kl_token unknown(kl_lexer *l, struct kl_token t)
{
    const char *beg = l->p;
    uint32_t code = 0;
    int n = utf8(beg, l->end, &code);
    unsigned char c = (unsigned char)*beg;
    const char *better = NULL;
    l->p += n ? n : 1;
    t.kind = KL_TK_ERROR;
    if (beg == l->text && l->end - beg > 1 && memcmp(beg, "\xff\xfe", 2) == 0) {
        kl_diag(l->d, KL_K0101, span_at(l, beg, beg + 2), "this file is UTF-16; a source is UTF-8");
        l->p = l->end;
        t.span = span_at(l, beg, l->end);
        return t;
    }
    for (size_t i = 0; i < sizeof lookalikes / sizeof *lookalikes; i++)
        if (n && code == lookalikes[i].code) {
            t.kind = lookalikes[i].kind;
            better = lookalikes[i].fix;
        }
    if (!better) /* a run of strange bytes is one error */
        while (l->p < l->end &&
               ((unsigned char)*l->p >= 0x80 ||
                ((unsigned char)*l->p < 32 && !strchr("\n\r\t\f\v", *l->p)) || *l->p == 0))
            l->p++;
    t.span = span_at(l, beg, l->p);
    struct kl_diag *g;
    if (c == '\\')
        g = kl_diag(l->d, KL_K0101, t.span,
                    "unknown character `\\`; a statement may span lines as it is");
    else if (c == '@')
        g = kl_diag(l->d, KL_K0101, t.span,
                    "unknown character `@`; the matrix product is dot(a, b)");
    else if (c == '#')
        g = kl_diag(l->d, KL_K0101, t.span, "`#` begins a directive only at the start of a line");
    else if (c > 32 && c < 127)
        g = kl_diag(l->d, KL_K0101, t.span, "unknown character `%c`", c);
    else if (n > 1)
        g = kl_diag(l->d, KL_K0101, t.span, "unknown character U+%04X", (unsigned)code);
    else
        g = kl_diag(l->d, KL_K0101, t.span,
                    c < 0x80 ? "byte 0x%02x is not text" : "byte 0x%02x is not UTF-8", (unsigned)c);
    if (better)
        fix(l, g, t.span, better);
    return t;
}

static struct kl_token word(kl_lexer *l, struct kl_token t)
{
    const char *beg = l->p;
    while (l->p < l->end && is_alnum(*l->p))
        l->p++;
    size_t n = (size_t)(l->p - beg);
    t.kind = KL_TK_NAME;
    t.span = span_at(l, beg, l->p);
    t.text = kl_intern(l->m, beg, n);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].len == n && memcmp(keys[i].text, beg, n) == 0)
            t.kind = keys[i].kind;
    return t;
}

static bool starts(const kl_lexer *l, const char *s)
{
    size_t n = strlen(s);
    return (size_t)(l->end - l->p) >= n && memcmp(l->p, s, n) == 0;
}

static struct kl_token punct(kl_lexer *l, struct kl_token t)
{
    const char *beg = l->p;
    for (size_t i = 0; i < sizeof aliens / sizeof *aliens; i++)
        if (starts(l, aliens[i].text)) {
            l->p += strlen(aliens[i].text);
            t.kind = aliens[i].kind;
            t.span = span_at(l, beg, l->p);
            struct kl_diag *g =
                kl_diag(l->d, KL_K0115, t.span, "`%s` is not an operator; write `%s`",
                        aliens[i].text, aliens[i].fix);
            fix(l, g, t.span, aliens[i].fix);
            return t;
        }
    for (size_t i = 0; i < sizeof puncts / sizeof *puncts; i++)
        if (puncts[i].kind != KL_TK_HASH && starts(l, puncts[i].text)) {
            l->p += puncts[i].len;
            t.kind = puncts[i].kind;
            t.span = span_at(l, beg, l->p);
            return t;
        }
    return unknown(l, t);
}

struct kl_token kl_lex(kl_lexer *l)
{
    for (;;) {
        skip_blanks(l);
        struct kl_token t = {.bol = l->bol};
        l->bol = false;
        if (l->p == l->end) {
            t.kind = KL_TK_EOF;
            t.span = span_at(l, l->end, l->end);
            return t;
        }
        char c = *l->p;
        if (is_alpha(c))
            return word(l, t);
        if (is_digit(c) || (c == '.' && l->end - l->p > 1 && is_digit(l->p[1])))
            return number(l, t);
        if (c == '"')
            return string(l, t);
        if (c == '\'')
            return character(l, t);
        if (c == '#' && t.bol)
            return directive(l, t);
        bool bol = t.bol;
        t = punct(l, t);
        if (t.kind != KL_TK_EOF)
            return t;
        l->bol = bol; /* an odd blank */
    }
}
