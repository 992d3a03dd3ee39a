/* word.c - lists, sweeps and expressions of `kiln bench`. */
#include "cli/bench/word.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/value.h"

enum { MOST_VALUES = 10000 };

/* ---- expressions ---- */

struct expr {
    const char *p, *end;
    kl_lookup *look;
    void *user;
    struct kl_msg *m;
    int depth;
};

static void blanks(struct expr *e)
{
    while (e->p < e->end && isspace((unsigned char)*e->p))
        e->p++;
}

static bool sum(struct expr *e, double *out);

static bool bad(struct expr *e)
{
    int n = (int)(e->end - e->p);
    return kl_msg(e->m, KL_RC_USAGE,
                  n ? "`%.*s` is unexpected in an expression" : "an expression ends too early%.*s",
                  n < 40 ? n : 40, e->p);
}

static bool atom(struct expr *e, double *out)
{
    blanks(e);
    const char *s = e->p;
    if (s < e->end && *s == '(') {
        if (++e->depth > 50)
            return bad(e);
        e->p++;
        if (!sum(e, out))
            return false;
        blanks(e);
        if (e->p == e->end || *e->p != ')')
            return bad(e);
        e->p++;
        e->depth--;
        return true;
    }
    if (s < e->end && (isdigit((unsigned char)*s) || *s == '.')) {
        struct kl_number v;
        while (e->p < e->end && (isalnum((unsigned char)*e->p) || *e->p == '.'))
            e->p++;
        if (!kl_number_parse(s, (size_t)(e->p - s), &v)) {
            e->p = s;
            return bad(e);
        }
        *out = v.f;
        return true;
    }
    while (e->p < e->end && (isalnum((unsigned char)*e->p) || *e->p == '_'))
        e->p++;
    if (e->p == s)
        return bad(e);
    if (e->look(e->user, s, (size_t)(e->p - s), out))
        return true;
    return kl_msg(e->m, KL_RC_USAGE, "`%.*s` is no number here", (int)(e->p - s), s);
}

static bool product(struct expr *e, double *out)
{
    *out = 0;
    if (!atom(e, out))
        return false;
    for (blanks(e); e->p < e->end && (*e->p == '*' || *e->p == '/'); blanks(e)) {
        char op = *e->p++;
        double v = 0;
        if (!atom(e, &v))
            return false;
        *out = op == '*' ? *out * v : *out / v;
    }
    return true;
}

static bool sum(struct expr *e, double *out)
{
    if (!product(e, out))
        return false;
    for (blanks(e); e->p < e->end && (*e->p == '+' || *e->p == '-'); blanks(e)) {
        char op = *e->p++;
        double v = 0;
        if (!product(e, &v))
            return false;
        *out = op == '+' ? *out + v : *out - v;
    }
    return true;
}

bool kl_number_expr(const char *s, size_t n, kl_lookup *look, void *user, double *out,
                    struct kl_msg *m)
{
    struct expr e = {.p = s, .end = s + n, .look = look, .user = user, .m = m};
    *out = 0;
    if (!sum(&e, out))
        return false;
    return (e.p == e.end || bad(&e)) &&
           (isfinite(*out) || kl_msg(m, KL_RC_USAGE, "`%.*s` is no finite number", (int)n, s));
}

/* ---- lists ---- */

static void push(struct kl_list *l, char *v)
{
    l->v = kl_xgrow(l->v, sizeof *l->v, l->n);
    l->v[l->n++] = v;
}

/* FROM:TO:*STEP or FROM:TO:+STEP; false: it is none. */
static bool range(const char *s, size_t n, struct kl_list *l, bool *good, const char **why)
{
    char text[120], *c1, *c2;
    struct kl_number from, to, step;
    if (n >= sizeof text)
        return false;
    memcpy(text, s, n);
    text[n] = 0;
    c1 = strchr(text, ':');
    c2 = c1 ? strchr(c1 + 1, ':') : NULL;
    if (c1 && !c2 && kl_number_parse(text, (size_t)(c1 - text), &from) &&
        kl_number_parse(c1 + 1, strlen(c1 + 1), &to)) {
        *why = "the step is missing";
        *good = false;
        return true;
    }
    if (!c2 || (c2[1] != '*' && c2[1] != '+'))
        return false;
    *good = kl_number_parse(text, (size_t)(c1 - text), &from) && from.is_int &&
            kl_number_parse(c1 + 1, (size_t)(c2 - c1 - 1), &to) && to.is_int &&
            kl_number_parse(c2 + 2, strlen(c2 + 2), &step) && step.is_int && from.i <= to.i &&
            (c2[1] == '*' ? step.i > 1 && from.i > 0 : step.i > 0);
    for (int64_t v = from.i; *good && v <= to.i;) {
        if (l->n == MOST_VALUES) {
            *why = "there are more than 10000 values";
            *good = false;
            break;
        }
        push(l, kl_xprintf("%lld", (long long)v));
        if (c2[1] == '*' ? __builtin_mul_overflow(v, step.i, &v)
                         : __builtin_add_overflow(v, step.i, &v))
            break;
    }
    return true;
}

/* Items stand between commas that are not inside parentheses or braces. */
static size_t item(const char *s)
{
    int open = 0;
    size_t n = 0;
    for (; s[n] && (open || s[n] != ','); n++)
        open += s[n] == '(' || s[n] == '{' ? 1 : s[n] == ')' || s[n] == '}' ? -1 : 0;
    return n;
}

bool kl_list_parse(const char *s, struct kl_list *out, struct kl_msg *m)
{
    *out = (struct kl_list){0};
    for (const char *p = s;; p++) {
        size_t n = item(p);
        bool good = true;
        const char *why = n ? NULL : *s ? "an item is empty" : NULL;
        if (!n || (!range(p, n, out, &good, &why) && (push(out, kl_xstrndup(p, n)), 0)) || !good) {
            kl_list_free(out);
            if (why)
                return kl_msg(m, KL_RC_USAGE, "`%.80s`: %s; write 128,256 or 1024:65536:*2", s,
                              why);
            return kl_msg(m, KL_RC_USAGE, "`%.80s` is no list; write 128,256 or 1024:65536:*2", s);
        }
        p += n;
        if (!*p)
            return true;
    }
}

bool kl_words_parse(const char *s, struct kl_list *out)
{
    *out = (struct kl_list){0};
    for (const char *p = s;; p++) {
        size_t n = strcspn(p, ",");
        if (!n) {
            kl_list_free(out);
            return false;
        }
        push(out, kl_xstrndup(p, n));
        p += n;
        if (!*p)
            return true;
    }
}

void kl_list_free(struct kl_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
    *l = (struct kl_list){0};
}

/* ---- sweeps ---- */

static bool is_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    while (isalnum((unsigned char)*s) || *s == '_')
        s++;
    return !*s;
}

bool kl_sweep_parse(const char *s, struct kl_sweep *out, struct kl_msg *m)
{
    const char *eq = strchr(s, '=');
    struct kl_list names = {0}, values = {0};
    *out = (struct kl_sweep){0};
    char *left = eq ? kl_xstrndup(s, (size_t)(eq - s)) : NULL;
    bool ok = left && kl_list_parse(left, &names, m);
    for (size_t i = 0; i < names.n; i++)
        ok = ok && is_name(names.v[i]);
    free(left);
    if (!ok)
        kl_msg(m, KL_RC_USAGE, "write NAME=VALUE, NAME=1024,2048 or NAME=1024:65536:*2");
    ok = ok && kl_list_parse(eq + 1, &values, m);
    if (ok) {
        *out = (struct kl_sweep){.name = names.v, .nname = names.n, .n = values.n};
        out->value = kl_xalloc((values.n * names.n + 1) * sizeof *out->value);
    }
    for (size_t i = 0; ok && i < values.n; i++) {
        const char *p = values.v[i];
        for (size_t k = 0; k < names.n && ok; k++) {
            size_t n = names.n > 1 ? strcspn(p, "x") : strlen(p);
            ok = n > 0 && (p[n] != 0) == (k + 1 < names.n);
            out->value[i * names.n + k] = kl_xstrndup(p, n);
            p += n + (p[n] != 0);
        }
        if (!ok)
            kl_msg(m, KL_RC_USAGE, "`%.40s` must hold %zu values, as 64x128", values.v[i],
                   names.n);
    }
    kl_list_free(&values);
    if (!ok && out->name)
        kl_sweep_free(out);
    else if (!ok)
        kl_list_free(&names);
    return ok;
}

void kl_sweep_free(struct kl_sweep *s)
{
    for (size_t i = 0; i < s->n * s->nname; i++)
        free(s->value[i]);
    for (size_t i = 0; i < s->nname; i++)
        free(s->name[i]);
    free(s->value);
    free(s->name);
    *s = (struct kl_sweep){0};
}

size_t kl_points(const struct kl_sweep *s, size_t n)
{
    size_t c = 1;
    for (size_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(c, s[i].n, &c))
            return SIZE_MAX;
    return c;
}

void kl_point_at(const struct kl_sweep *s, size_t n, size_t i, struct kl_point *out)
{
    size_t names = 0, at;
    for (size_t k = 0; k < n; k++)
        names += s[k].nname;
    *out = (struct kl_point){.n = names};
    out->name = kl_xalloc((names + 1) * sizeof *out->name);
    out->value = kl_xalloc((names + 1) * sizeof *out->value);
    at = names;
    for (size_t k = n; k-- > 0;) {
        at -= s[k].nname;
        for (size_t j = 0; j < s[k].nname; j++) {
            out->name[at + j] = s[k].name[j];
            out->value[at + j] = s[k].value[i % s[k].n * s[k].nname + j];
        }
        i /= s[k].n;
    }
}

void kl_point_free(struct kl_point *p)
{
    free(p->name);
    free(p->value);
    *p = (struct kl_point){0};
}

/* ---- words ---- */

static const char *value_of(const struct kl_point *p, const char *name, size_t n)
{
    for (size_t i = 0; i < p->n; i++)
        if (strlen(p->name[i]) == n && memcmp(p->name[i], name, n) == 0)
            return p->value[i];
    return NULL;
}

static bool number_of(void *user, const char *name, size_t n, double *out)
{
    struct kl_number v;
    const char *text = value_of(user, name, n);
    if (!text || !kl_number_parse(text, strlen(text), &v))
        return false;
    *out = v.f;
    return true;
}

/* Whether a name of the point stands in the text. */
static bool uses(const struct kl_point *p, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t k = i;
        while (k < n && (isalnum((unsigned char)s[k]) || s[k] == '_'))
            k++;
        if (k > i && value_of(p, s + i, k - i))
            return true;
        i = k + (k == i);
    }
    return false;
}

char *kl_point_expand(const struct kl_point *p, const char *word, struct kl_msg *m)
{
    char *out = kl_xalloc(1);
    while (*word) {
        size_t n = *word == '{' ? strcspn(word, "}") : 0;
        char *more;
        if (n && word[n] && uses(p, word + 1, n - 1)) {
            const char *plain = value_of(p, word + 1, n - 1);
            double v;
            if (plain) {
                more = kl_xprintf("%s%s", out, plain);
            } else if (kl_number_expr(word + 1, n - 1, number_of, (void *)p, &v, m)) {
                more = kl_xprintf(v == floor(v) && fabs(v) < 1e15 ? "%s%.0f" : "%s%.17g", out, v);
            } else {
                free(out);
                return NULL;
            }
            word += n + 1;
        } else {
            n = 1 + strcspn(word + 1, "{");
            more = kl_xprintf("%s%.*s", out, (int)n, word);
            word += n;
        }
        free(out);
        out = more;
    }
    return out;
}

bool kl_random_word(const char *word, kiln_dtype type, unsigned seed, char **out)
{
    int32_t ndim;
    int64_t shape[KL_DIMS];
    size_t n = strcspn(word, ":");
    if (!kl_shape_parse(word, n, &ndim, shape))
        return false;
    enum kl_elem e = word[n] ? kl_elem_by_name(word + n + 1, (uint32_t)strlen(word + n + 1))
                             : (enum kl_elem)type;
    if (word[n] && !e)
        return false;
    const char *name = word[n] ? word + n + 1 : "";
    const char *comma = word[n] ? "," : "";
    if (!e || kl_is_float(e))
        *out = kl_xprintf("randn(%.*s%s%s,%u)", (int)n, word, comma, name, seed);
    else
        *out = kl_xprintf("randint(%.*s%s%s,%d,%u)", (int)n, word, comma, name,
                          e == KL_bool ? 2 : 100, seed);
    return true;
}
