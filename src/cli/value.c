/* value.c - parsing of values: numbers, shapes, generators, lists. */
#include "cli/value.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void trim(const char **s, size_t *n)
{
    while (*n && isspace((unsigned char)**s))
        ++*s, --*n;
    while (*n && isspace((unsigned char)(*s)[*n - 1]))
        --*n;
}

/* ---- numbers ---- */

bool kl_number_parse(const char *s, size_t n, struct kl_number *out)
{
    trim(&s, &n);
    if (!n || n >= sizeof out->text)
        return false;
    memset(out, 0, sizeof *out);
    memcpy(out->text, s, n);
    const char *t = out->text;
    if (strcmp(t, "true") == 0 || strcmp(t, "false") == 0) {
        out->is_int = true;
        out->i = *t == 't';
        out->f = (double)out->i;
        return true;
    }
    const char *digits = t + (*t == '-' || *t == '+');
    if (!isdigit((unsigned char)*digits) && *digits != '.' && strcmp(digits, "inf") != 0 &&
        strcmp(digits, "nan") != 0)
        return false; /* strtod would take "infinity", blanks and more */
    bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    char *end;
    if (!strpbrk(digits, hex ? ".pP" : ".eEnf")) {
        errno = 0;
        out->i = strtoll(t, &end, hex ? 16 : 10);
        out->is_int = true;
        out->f = (double)out->i;
        if (errno && *t != '-') { /* from 2^63 on: for u64 */
            errno = 0;
            uint64_t u = strtoull(t, &end, hex ? 16 : 10);
            out->big = true;
            out->i = (int64_t)u;
            out->f = (double)u;
        }
        return !errno && end != t && !*end;
    }
    if (n > 1 && t[n - 1] == 'f' && !hex && strcmp(digits, "inf") != 0)
        out->text[--n] = 0; /* the suffix of LANGUAGE's literals */
    out->f = strtod(t, &end);
    return end != t && !*end;
}

bool kl_number_named(const struct kl_number *v)
{
    return strchr(v->text, 'n') != NULL; /* digits, exponents and 0x hold none */
}

/* As bits of a float type; false: it is too large. */
static bool float_bits(const struct kl_number *v, enum kl_elem e, uint64_t *bits)
{
    if (!v->is_int)
        return kl_float_number(e, e == KL_f32 ? strtof(v->text, NULL) : (float)v->f, v->f, bits) &&
               (isfinite(kl_elem_double(e, *bits)) || kl_number_named(v));
    enum kl_elem from = v->big ? KL_u64 : KL_i64;
    uint64_t f = kl_convert(KL_f32, from, (uint64_t)v->i);
    if (kl_elems[e].bytes == 1)
        *bits = kl_convert_nan(e, f);
    else
        *bits = kl_convert(e, from, (uint64_t)v->i);
    return isfinite(kl_elem_double(e, *bits));
}

bool kl_number_bits(const struct kl_number *v, enum kl_elem e, uint64_t *bits)
{
    if (kl_elems[e].kind == KL_KIND_FLT) {
        float_bits(v, e, bits);
        return true;
    }
    int64_t i = v->i;
    bool big = v->big;
    if (!v->is_int) { /* 1e6 is welcome, 0.5 is not */
        if (!(v->f >= -9223372036854775808.0 && v->f < 18446744073709551616.0) ||
            v->f != floor(v->f))
            return false;
        big = v->f >= 9223372036854775808.0;
        i = big ? (int64_t)(uint64_t)v->f : (int64_t)v->f;
    }
    *bits = kl_canon(e, (uint64_t)i);
    if (e == KL_u64)
        return big || i >= 0;
    return !big && (e == KL_bool ? i == 0 || i == 1 : (int64_t)*bits == i);
}

bool kl_number_fits(const struct kl_number *v, enum kl_elem e, uint64_t *bits)
{
    return kl_is_float(e) ? float_bits(v, e, bits) : kl_number_bits(v, e, bits);
}

/* ---- shapes ---- */

bool kl_shape_parse(const char *s, size_t n, int32_t *ndim, int64_t shape[KL_DIMS])
{
    const char *p = s, *end = s + n;
    *ndim = 0;
    for (;;) {
        int64_t v = 0;
        const char *start = p;
        for (; p < end && isdigit((unsigned char)*p); p++)
            if (__builtin_mul_overflow(v, (int64_t)10, &v) ||
                __builtin_add_overflow(v, (int64_t)(*p - '0'), &v))
                return false;
        if (p == start || *ndim == KL_DIMS)
            return false;
        shape[(*ndim)++] = v;
        if (p == end)
            return true;
        if (*p++ != 'x')
            return false;
    }
}

bool kl_shape_count(int32_t ndim, const int64_t *shape, uint32_t elem_bytes, uint64_t *count)
{
    int64_t c = 1, bytes;
    for (int32_t i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(c, shape[i], &c))
            return false;
    *count = (uint64_t)c;
    return !__builtin_mul_overflow(c, (int64_t)elem_bytes, &bytes);
}

/* ---- generators ---- */

static const struct {
    const char *name;
    uint32_t least, most;
} gens[KL_NGEN] = {
#define KL_X(name, least, most) {#name, least, most},
    KL_GEN_MAP(KL_X)
#undef KL_X
};

/* A word where a type may stand: float32 is f32. */
static bool no_type(const char *text, const char *word, size_t n, struct kl_msg *m)
{
    static const char *const other[][2] = {
        {"float32", "f32"}, {"float", "f32"},  {"single", "f32"}, {"float64", "f64"},  {"double", "f64"},
        {"float16", "f16"}, {"half", "f16"},   {"fp16", "f16"},   {"fp32", "f32"},     {"fp64", "f64"},
        {"bfloat16", "bf16"}, {"int8", "i8"},  {"int16", "i16"},  {"int32", "i32"},    {"int", "i32"},
        {"int64", "i64"},   {"long", "i64"},   {"uint8", "u8"},   {"uint16", "u16"},   {"uint32", "u32"},
        {"uint64", "u64"},  {"boolean", "bool"},
    };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (strlen(other[i][0]) == n && memcmp(word, other[i][0], n) == 0)
            return kl_msg(m, KL_RC_USAGE, "`%s`: there is no type `%.*s`; write %s", text, (int)n, word,
                          other[i][1]);
    return kl_msg(m, KL_RC_USAGE,
                  "`%s`: there is no type `%.*s`; types are bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, "
                  "f8e4m3 and f8e5m2",
                  text, (int)n, word);
}

static bool parse_gen(const char *open, struct kl_value *v, struct kl_msg *m)
{
    const char *s = open + 1, *end = v->text + strlen(v->text);
    if (end[-1] != ')')
        return kl_msg(m, KL_RC_USAGE, "`%s`: the `)` is missing", v->text);
    end--;
    for (unsigned field = 0;; field++) {
        const char *comma = memchr(s, ',', (size_t)(end - s)), *stop = comma ? comma : end;
        size_t n = (size_t)(stop - s);
        const char *f = s;
        trim(&f, &n);
        enum kl_elem e = kl_elem_by_name(f, (uint32_t)n);
        if (field == 0) {
            if (!kl_shape_parse(f, n, &v->ndim, v->shape))
                return kl_msg(m, KL_RC_USAGE, "`%s`: `%.*s` is no shape; write 512x1000", v->text,
                              (int)n, f);
        } else if (field == 1 && e) {
            v->elem = e;
        } else if (v->nnum == gens[v->gen].most || !kl_number_parse(f, n, &v->num[v->nnum])) {
            return field == 1 && n && isalpha((unsigned char)*f)
                       ? no_type(v->text, f, n, m)
                       : kl_msg(m, KL_RC_USAGE, "`%s`: `%.*s` is unexpected", v->text, (int)n, f);
        } else {
            v->nnum++;
        }
        if (!comma)
            break;
        s = comma + 1;
    }
    if (v->nnum < gens[v->gen].least)
        return kl_msg(m, KL_RC_USAGE, "`%s`: %s needs a %s", v->text, gens[v->gen].name,
                      v->gen == KL_GEN_full ? "value" : "limit");
    if (v->gen == KL_GEN_randint &&
        (!v->num[0].is_int || v->num[0].big || v->num[0].i < 1 || v->num[0].i > (int64_t)UINT32_MAX))
        return kl_msg(m, KL_RC_USAGE, "`%s`: the limit must be an integer from 1 to 2^32 - 1",
                      v->text);
    uint32_t seed = v->gen == KL_GEN_randint ? 1 : 0;
    if (v->gen != KL_GEN_full && v->nnum > seed && (!v->num[seed].is_int || v->num[seed].i < 0))
        return kl_msg(m, KL_RC_USAGE, "`%s`: the seed must be an integer of 0 or more", v->text);
    return true;
}

/* ---- lists ---- */

struct list {
    struct kl_value *v;
    const char *p;
    int64_t seen[KL_DIMS]; /* extents found so far; -1: none yet */
    int32_t depth;         /* of the numbers; -1: none seen yet */
};

static bool list_fail(struct list *l, struct kl_msg *m, const char *what)
{
    return kl_msg(m, KL_RC_USAGE, "`%.60s`: %s", l->v->text, what);
}

static void skip_blanks(struct list *l)
{
    while (isspace((unsigned char)*l->p))
        l->p++;
}

/* At a `{`; level: how many are open already. */
static bool parse_braces(struct list *l, int32_t level, struct kl_msg *m)
{
    int64_t n = 0;
    if (level == KL_DIMS)
        return list_fail(l, m, "too many levels of braces");
    l->p++;
    for (;; n++) {
        skip_blanks(l);
        if (*l->p == '}')
            break;
        if (*l->p == '{') {
            if (l->depth >= 0 && level + 1 >= l->depth)
                return list_fail(l, m, "numbers and braces stand side by side");
            if (!parse_braces(l, level + 1, m))
                return false;
        } else {
            size_t len = strcspn(l->p, ",{}");
            if (l->depth >= 0 && l->depth != level + 1)
                return list_fail(l, m, "numbers and braces stand side by side");
            l->depth = level + 1;
            l->v->item = kl_xgrow(l->v->item, sizeof *l->v->item, l->v->nitem);
            if (!kl_number_parse(l->p, len, &l->v->item[l->v->nitem]))
                return kl_msg(m, KL_RC_USAGE, "`%.60s`: `%.*s` is no number", l->v->text,
                              (int)(len < 40 ? len : 40), l->p);
            l->v->nitem++;
            l->p += len;
        }
        skip_blanks(l);
        if (*l->p == ',')
            l->p++;
        else if (*l->p != '}')
            return list_fail(l, m, *l->p ? "a `,` is missing" : "a `}` is missing");
    }
    l->p++;
    if (l->seen[level] >= 0 && l->seen[level] != n)
        return list_fail(l, m, "rows differ in length");
    l->seen[level] = n;
    return true;
}

static bool parse_list(struct kl_value *v, struct kl_msg *m)
{
    struct list l = {.v = v, .p = v->text, .depth = -1};
    for (int i = 0; i < KL_DIMS; i++)
        l.seen[i] = -1;
    if (!parse_braces(&l, 0, m))
        return false;
    while (v->ndim < KL_DIMS && l.seen[v->ndim] >= 0) {
        v->shape[v->ndim] = l.seen[v->ndim];
        v->ndim++;
    }
    uint64_t count;
    if (!kl_shape_count(v->ndim, v->shape, 1, &count) || count != v->nitem)
        return list_fail(&l, m, "numbers and braces stand side by side");
    skip_blanks(&l);
    if (*l.p == ':') {
        v->elem = kl_elem_by_name(l.p + 1, (uint32_t)strlen(l.p + 1));
        if (!v->elem)
            return list_fail(&l, m, "what follows the `:` is no element type");
    } else if (*l.p) {
        return list_fail(&l, m, "text after the closing `}`");
    }
    return true;
}

bool kl_value_parse(const char *text, struct kl_value *v, struct kl_msg *m)
{
    *v = (struct kl_value){.text = text};
    if (*text == '@') {
        v->kind = KL_VALUE_ALIAS;
        v->text++;
        return *v->text || kl_msg(m, KL_RC_USAGE, "`@` needs the name of a parameter");
    }
    if (*text == '{') {
        v->kind = KL_VALUE_LIST;
        if (parse_list(v, m))
            return true;
        kl_value_free(v);
        return false;
    }
    const char *open = strchr(text, '(');
    for (int g = 0; open && g < KL_NGEN; g++)
        if (strlen(gens[g].name) == (size_t)(open - text) &&
            strncmp(text, gens[g].name, (size_t)(open - text)) == 0) {
            v->kind = KL_VALUE_GEN;
            v->gen = (enum kl_gen)g;
            return parse_gen(open, v, m);
        }
    return true;
}

void kl_value_free(struct kl_value *v)
{
    free(v->item);
    v->item = NULL;
    v->nitem = 0;
}
