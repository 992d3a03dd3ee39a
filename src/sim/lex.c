/* lex.c - PTX text: blanks, names, numbers; names in scopes; types. */
#include <stdlib.h>

#include "sim/parse.h"

const struct sim_typeinfo kl_sim_types[PT_NTYPE] = {
    [PT_NONE] = {"", 0, TC_NONE},         [PT_PRED] = {"pred", 0, TC_PRED},
    [PT_B8] = {"b8", 1, TC_BITS},         [PT_B16] = {"b16", 2, TC_BITS},
    [PT_B32] = {"b32", 4, TC_BITS},       [PT_B64] = {"b64", 8, TC_BITS},
    [PT_U8] = {"u8", 1, TC_UINT},         [PT_U16] = {"u16", 2, TC_UINT},
    [PT_U32] = {"u32", 4, TC_UINT},       [PT_U64] = {"u64", 8, TC_UINT},
    [PT_S8] = {"s8", 1, TC_SINT},         [PT_S16] = {"s16", 2, TC_SINT},
    [PT_S32] = {"s32", 4, TC_SINT},       [PT_S64] = {"s64", 8, TC_SINT},
    [PT_F16] = {"f16", 2, TC_FLT},        [PT_BF16] = {"bf16", 2, TC_FLT},
    [PT_F16X2] = {"f16x2", 4, TC_FLT},    [PT_BF16X2] = {"bf16x2", 4, TC_FLT},
    [PT_F32] = {"f32", 4, TC_FLT},        [PT_F64] = {"f64", 8, TC_FLT},
    [PT_TF32] = {"tf32", 4, TC_FLT},      [PT_E4M3X2] = {"e4m3x2", 2, TC_BITS},
    [PT_E5M2X2] = {"e5m2x2", 2, TC_BITS},
};

/* ---- lexing ---- */

void kl_sp_skip(struct sim_parser *s)
{
    while (s->p < s->end) {
        char c = *s->p;
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v') {
            s->p++;
        } else if (c == '/' && s->end - s->p > 1 && s->p[1] == '/') {
            while (s->p < s->end && *s->p != '\n')
                s->p++;
        } else if (c == '/' && s->end - s->p > 1 && s->p[1] == '*') {
            s->p += 2;
            while (s->p < s->end && !(*s->p == '*' && s->end - s->p > 1 && s->p[1] == '/'))
                s->p++;
            s->p = s->end - s->p > 1 ? s->p + 2 : s->end;
        } else {
            return;
        }
    }
}

bool kl_sp_char(struct sim_parser *s, char c)
{
    kl_sp_skip(s);
    if (s->p >= s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

bool kl_sp_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool kl_sp_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A dot belongs to a name only in special registers: %tid.x */
uint32_t kl_sp_name(struct sim_parser *s, const char **name)
{
    kl_sp_skip(s);
    *name = s->p;
    if (s->p >= s->end || !kl_sp_letter(*s->p))
        return 0;
    while (s->p < s->end && (kl_sp_letter(*s->p) || kl_sp_digit(*s->p)))
        s->p++;
    if (**name == '%' && s->end - s->p > 1 && *s->p == '.' && kl_sp_letter(s->p[1])) {
        s->p++;
        while (s->p < s->end && kl_sp_letter(*s->p))
            s->p++;
    }
    uint32_t n = (uint32_t)(s->p - *name);
    return n > PTX_MAX_NAME ? 0 : n;
}

kl_span kl_sp_span(const struct sim_parser *s, const char *from, const char *to)
{
    return (kl_span){s->base + (uint32_t)(from - s->text), s->base + (uint32_t)(to - s->text)};
}

void kl_sp_error(struct sim_parser *s, enum kl_code code, const char *from, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *to = from;
    while (to < s->end && *to != '\n' && *to != ';')
        to++;
    kl_diag(s->d, code, kl_sp_span(s, from, to), "%s", kl_vprintf(s->a, fmt, ap));
    va_end(ap);
}

static uint32_t digit_of(char c)
{
    return kl_sp_digit(c)         ? (uint32_t)(c - '0')
           : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
           : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                  : 99;
}

static uint64_t bits64(double d)
{
    union {
        double f;
        uint64_t u;
    } x = {d};
    return x.u;
}
static uint64_t bits32(float f)
{
    union {
        float f;
        uint32_t u;
    } x = {f};
    return x.u;
}

/* 0f3f800000, 0d3ff0000000000000; converted where the operand has the other size. */
static const char *float_bits(const char *p, const char *end, uint32_t size, bool neg,
                              uint64_t *bits)
{
    uint32_t want = (p[1] | 32) == 'f' ? 8 : 16, n = 0;
    uint64_t v = 0;
    for (p += 2; p < end && n < want && digit_of(*p) < 16; p++, n++)
        v = v << 4 | digit_of(*p);
    if (n != want)
        return NULL;
    if (neg)
        v ^= UINT64_C(1) << (want * 4 - 1);
    if (want == 8 && size == 8) {
        union {
            uint32_t u;
            float f;
        } x = {(uint32_t)v};
        v = bits64((double)x.f);
    } else if (want == 16 && size == 4) {
        union {
            uint64_t u;
            double f;
        } x = {v};
        v = bits32((float)x.f);
    }
    *bits = v;
    return p;
}

static const char *decimal(const char *p, const char *end, uint32_t size, bool neg, uint64_t *bits)
{
    char text[64];
    uint32_t n = 0;
    for (; p < end && n < sizeof text - 1; p++) {
        bool sign = (*p == '-' || *p == '+') && n && (text[n - 1] | 32) == 'e';
        if (!kl_sp_digit(*p) && *p != '.' && (*p | 32) != 'e' && !sign)
            break;
        text[n++] = *p;
    }
    text[n] = 0;
    double d = strtod(text, NULL);
    d = neg ? -d : d;
    *bits = size == 8 ? bits64(d) : bits32((float)d);
    return p;
}

static const char *integer(const char *p, const char *end, bool neg, uint64_t *bits)
{
    uint32_t radix = 10;
    char x = *p == '0' && end - p > 1 ? (char)(p[1] | 32) : ' ';
    if (x == 'x')
        radix = 16, p += 2;
    else if (x == 'b')
        radix = 2, p += 2;
    else if (kl_sp_digit(x))
        radix = 8;
    uint64_t v = 0;
    const char *first = p;
    for (; p < end && digit_of(*p) < radix; p++)
        v = v * radix + digit_of(*p);
    if (p == first)
        return NULL;
    *bits = neg ? 0 - v : v;
    return p < end && *p == 'U' ? p + 1 : p;
}

/* 12 -3 0x1f 0b1 017 12U 0f3f800000 0d... 1.5 1e-3 */
bool kl_sp_number(struct sim_parser *s, uint32_t size, bool flt, uint64_t *bits)
{
    kl_sp_skip(s);
    const char *p = s->p;
    bool neg = p < s->end && *p == '-';
    p += neg;
    while (p < s->end && *p == ' ')
        p++;
    if (p >= s->end || !kl_sp_digit(*p))
        return false;
    char x = *p == '0' && s->end - p > 1 ? (char)(p[1] | 32) : ' ';
    const char *q = p;
    while (q < s->end && kl_sp_digit(*q))
        q++;
    bool point = q < s->end && (*q == '.' || (*q | 32) == 'e');
    if (x == 'f' || x == 'd')
        p = float_bits(p, s->end, size, neg, bits);
    else if (x != 'x' && x != 'b' && (point || flt))
        p = decimal(p, s->end, size, neg, bits);
    else
        p = integer(p, s->end, neg, bits);
    if (p)
        s->p = p;
    return p != NULL;
}

/* ---- names ---- */

static uint32_t find_in(struct sim_parser *s, uint32_t scope, const char *name, uint32_t len)
{
    char key[4 + PTX_MAX_NAME];
    memcpy(key, &scope, 4);
    memcpy(key + 4, name, len);
    uint32_t *at = kl_map_get(&s->names, key, 4 + len);
    return at ? *at : SIM_NONE;
}

uint32_t kl_sp_declare(struct sim_parser *s, const char *name, uint32_t len, struct sim_decl x)
{
    char key[4 + PTX_MAX_NAME];
    memcpy(key, &s->scope, 4);
    memcpy(key + 4, name, len);
    bool isnew;
    uint32_t *at = kl_map_put(&s->names, key, 4 + len, &isnew);
    if (!isnew)
        return SIM_NONE;
    *at = s->decl.n;
    kl_push(s->a, &s->decl, x);
    return s->decl.n - 1;
}

/* The register %r7 of a range %r<9>: declared by itself when it is first named. */
static uint32_t from_range(struct sim_parser *s, uint32_t scope, const char *name, uint32_t len)
{
    uint32_t stem = len;
    while (stem && kl_sp_digit(name[stem - 1]))
        stem--;
    if (stem == len || !stem || len - stem > 8 || (name[stem] == '0' && len - stem > 1))
        return SIM_NONE;
    /* the range's name has a mark that no name can have */
    char key[PTX_MAX_NAME + 1];
    memcpy(key, name, stem);
    key[stem] = '<';
    uint32_t k = stem < PTX_MAX_NAME ? find_in(s, scope, key, stem + 1) : SIM_NONE, number = 0;
    if (k == SIM_NONE)
        return SIM_NONE;
    for (uint32_t i = stem; i < len; i++)
        number = number * 10 + (uint32_t)(name[i] - '0');
    if (number >= s->decl.v[k].size)
        return SIM_NONE;
    struct sim_decl x = {.kind = DECL_REG, .type = s->decl.v[k].type, .at = SIM_NONE};
    uint32_t here = s->scope;
    s->scope = scope;
    k = kl_sp_declare(s, name, len, x);
    s->scope = here;
    return k;
}

uint32_t kl_sp_find(struct sim_parser *s, uint32_t scope, const char *name, uint32_t len)
{
    for (;; scope = s->parent.v[scope]) {
        uint32_t k = find_in(s, scope, name, len);
        if (k == SIM_NONE)
            k = from_range(s, scope, name, len);
        if (k != SIM_NONE || scope == 0)
            return k;
    }
}
