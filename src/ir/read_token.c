/* read_token.c - tokens and numbers of IR text. */
#include "ir/reader.h"

void kl_rd_fail(struct reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vprintf(r->a, fmt, ap);
    va_end(ap);
    uint32_t at = r->base + (uint32_t)(r->s - r->text);
    kl_diag(r->d, KL_K0901, (kl_span){at, at + (r->n ? r->n : 1)}, "%s", text);
    kl_raise(r->a->env, KILN_E_COMPILE, "malformed IR text: %s", text);
}

/* ---- tokens ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

void kl_rd_next(struct reader *r)
{
    const char *p = r->p;
    while (p < r->end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r' || *p == ';')) {
        if (*p == ';')
            while (p < r->end && *p != '\n')
                p++;
        else
            p++;
    }
    r->s = p;
    r->kind = T_EOF;
    if (p == r->end) {
        r->p = p;
        r->n = 0;
        return;
    }
    if (*p == '%') {
        r->kind = T_VAL;
        for (p++; p < r->end && is_word(*p);)
            p++;
    } else if (is_digit(*p) || (*p == '-' && p + 1 < r->end && (is_digit(p[1]) || p[1] == 'i'))) {
        r->kind = T_NUM;
        for (p++; p < r->end && (is_word(*p) || ((*p == '-' || *p == '+') && p[-1] == 'p'));)
            p++;
    } else if (is_word(*p)) {
        r->kind = T_WORD;
        while (p < r->end && is_word(*p))
            p++;
    } else {
        r->kind = T_PUNCT;
        p++;
    }
    r->n = (uint32_t)(p - r->s);
    r->p = p;
}

bool kl_rd_is(const struct reader *r, const char *s)
{
    return r->n == strlen(s) && memcmp(r->s, s, r->n) == 0;
}

bool kl_rd_accept(struct reader *r, const char *s)
{
    if (!kl_rd_is(r, s))
        return false;
    kl_rd_next(r);
    return true;
}

void kl_rd_expect(struct reader *r, const char *s)
{
    if (!kl_rd_accept(r, s))
        kl_rd_fail(r, r->kind == T_EOF ? "the text ends where `%s` is missing"
                                 : "`%s` is missing before `%.*s`", s, (int)r->n, r->s);
}

/* ---- numbers ---- */

bool kl_rd_parse_u64(const char *s, uint32_t n, uint64_t *out)
{
    uint64_t v = 0;
    uint32_t base = 10, i = 0;
    if (n > 2 && s[0] == '0' && s[1] == 'x')
        base = 16, i = 2;
    if (i == n)
        return false;
    for (; i < n; i++) {
        char c = s[i];
        uint32_t x = is_digit(c)            ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                                            : 99;
        if (x >= base || v > (UINT64_MAX - x) / base)
            return false;
        v = v * base + x;
    }
    *out = v;
    return true;
}

/* 0x1.8p-20: up to 53 significant bits, exactly. */
static bool parse_hexfloat(const char *s, uint32_t n, double *out)
{
    uint64_t man = 0;
    int exp = 0, e = 0;
    uint32_t i = 2;
    bool dot = false, neg = false;
    for (; i < n && s[i] != 'p'; i++) {
        char c = s[i];
        if (c == '.' && !dot) {
            dot = true;
            continue;
        }
        if (man >> 56 || !(is_digit(c) || (c >= 'a' && c <= 'f')))
            return false;
        man = man << 4 | (uint64_t)(is_digit(c) ? c - '0' : c - 'a' + 10);
        exp -= dot ? 4 : 0;
    }
    if (i == n || ++i == n)
        return false;
    if (s[i] == '-' || s[i] == '+')
        neg = s[i++] == '-';
    for (; i < n; i++) {
        if (!is_digit(s[i]) || e > 5000)
            return false;
        e = e * 10 + (s[i] - '0');
    }
    exp += neg ? -e : e;
    double x = (double)man;
    if ((uint64_t)x != man)
        return false;
    for (; exp > 0 && x < 0x1p1000; exp--) /* exact until the last step, and there if it can be */
        x *= 2;
    for (; exp < 0 && x >= 0x1p-1021; exp++)
        x *= 0.5;
    for (; exp < 0 && x > 0; exp++) { /* subnormal: a bit that falls off is an error */
        double half = x * 0.5;
        if (half * 2 != x)
            return false;
        x = half;
    }
    if (exp > 0 && x > 0) {
        for (; exp > 0 && exp < 30; exp--)
            x *= 2;
        if (exp || x - x != 0)
            return false;
    }
    *out = x;
    return true;
}

/* 12.5: a quotient of two exact doubles, so rounded once. */
static bool parse_decimal(const char *s, uint32_t n, double *out)
{
    uint64_t man = 0;
    double scale = 1;
    bool dot = false;
    for (uint32_t i = 0; i < n; i++) {
        if (s[i] == '.' && !dot) {
            dot = true;
            continue;
        }
        if (!is_digit(s[i]) || man > (UINT64_C(1) << 53) / 10 - 1)
            return false;
        man = man * 10 + (uint64_t)(s[i] - '0');
        scale *= dot ? 10 : 1;
    }
    *out = (double)man / scale;
    return true;
}

int64_t kl_rd_int(struct reader *r)
{
    bool neg = r->n && r->s[0] == '-';
    uint64_t v;
    if (r->kind != T_NUM || !kl_rd_parse_u64(r->s + neg, r->n - neg, &v) ||
        v > (uint64_t)INT64_MAX + (uint64_t)neg)
        kl_rd_fail(r, "an integer is missing");
    kl_rd_next(r);
    return neg ? (int64_t)(0 - v) : (int64_t)v;
}

uint32_t kl_rd_u32(struct reader *r, uint32_t max)
{
    const char *s = r->s;
    uint32_t n = r->n;
    int64_t v = kl_rd_int(r);
    if (v < 0 || v > max) {
        r->s = s, r->n = n;
        kl_rd_fail(r, "%lld is not in 0 to %u", (long long)v, max);
    }
    return (uint32_t)v;
}

bool kl_rd_const(const char *s, uint32_t n, enum kl_elem e, uint64_t *out)
{
    bool neg = n && s[0] == '-';
    const char *t = s + neg;
    uint32_t m = n - neg;
    uint64_t v;
    if (kl_elems[e].kind == KL_KIND_BOOL) {
        *out = m == 4;
        return !neg &&
               ((m == 4 && memcmp(t, "true", 4) == 0) || (m == 5 && memcmp(t, "false", 5) == 0));
    }
    if (!kl_is_float(e)) {
        if (!kl_rd_parse_u64(t, m, &v) ||
            (v > (uint64_t)INT64_MAX + neg && kl_elems[e].kind == KL_KIND_SINT) ||
            (neg && v && kl_elems[e].kind == KL_KIND_UINT))
            return false;
        *out = kl_canon(e, neg ? 0 - v : v);
        return *out == (neg ? 0 - v : v);
    }
    double d = 0;
    if (m == 3 && memcmp(t, "inf", 3) == 0)
        d = kl_bits_f64(UINT64_C(0x7ff) << 52);
    else if (m > 2 && t[1] == 'x' ? !parse_hexfloat(t, m, &d) : !parse_decimal(t, m, &d))
        return false;
    d = neg ? -d : d;
    if (kl_elems[e].bytes == 1) /* infinities where there are some */
        return kl_float_number(e, (float)d, d, out);
    *out = kl_convert(e, KL_f64, kl_f64_bits(d));
    return true;
}
