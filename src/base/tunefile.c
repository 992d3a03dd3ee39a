/* tunefile.c - reading and writing tuned constants.
 *
 * A line of a version, then paragraphs that begin with `kernel NAME`.  Everything is kept apart by
 * blanks and line ends alone, so that the text can be edited by hand; what is not understood is an
 * error with its line, and never passed over. */
#include "base/tunefile.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/diag.h"
#include "base/elem.h"

enum { MOST_LINE = 4096, NAME_MOST = 200 };

struct reader {
    kl_arena *a;
    const char *p, *end; /* of the line */
    uint32_t line;
    const char **why;
};

static bool wrong(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(struct reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *r->why = kl_vprintf(r->a, fmt, ap);
    va_end(ap);
    return false;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; NULL at its end.  `#` begins a remark. */
static const char *word(struct reader *r)
{
    while (r->p < r->end && blank(*r->p))
        r->p++;
    const char *from = r->p;
    if (from == r->end || *from == '#')
        return NULL;
    while (r->p < r->end && !blank(*r->p))
        r->p++;
    return kl_strndup(r->a, from, (size_t)(r->p - from));
}

static bool is_name(const char *s, size_t n)
{
    if (!n || n > NAME_MOST || (!isalpha((unsigned char)*s) && *s != '_'))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '_')
            return false;
    return true;
}

static bool number(const char *s, int64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)*s) && !(*s == '-' && isdigit((unsigned char)s[1])))
        return false;
    errno = 0;
    *out = strtoll(s, &end, 10);
    return !*end && !errno;
}

static bool pairs(struct reader *r, kl_tunepairs *out, bool classes)
{
    const char *w;
    while ((w = word(r)) != NULL) {
        const char *eq = strchr(w, '=');
        struct kl_tunepair t = {.least = classes && eq && eq > w && eq[-1] == '>'};
        size_t len = eq ? (size_t)(eq - w) - t.least : 0;
        if (!eq || !is_name(w, len))
            return wrong(r, "`%.60s` is not NAME=VALUE", w);
        t.name = kl_strndup(r->a, w, len);
        for (uint32_t i = 0; i < out->n; i++)
            if (strcmp(out->v[i].name, t.name) == 0)
                return wrong(r, "`%s` stands twice", t.name);
        if (!number(eq + 1, &t.v)) {
            if (!classes || !kl_elem_by_name(eq + 1, (uint32_t)strlen(eq + 1)))
                return wrong(r, "`%.60s`: the value must be %s", w,
                             classes ? "a whole number or an element type" : "a whole number");
            if (t.least)
                return wrong(r, "`%.60s`: >= is for sizes, and %s is a type", w, eq + 1);
            t.type = eq + 1;
        } else if (classes && (t.v < 0 || (t.v & (t.v - 1)))) {
            int64_t up = 1;
            while (t.v > 0 && up < t.v && up < INT64_C(1) << 61)
                up <<= 1;
            return wrong(r,
                         "`%.60s`: sizes stand for classes, which are powers of two; write %s%s=%lld",
                         w, t.name, t.least ? ">" : "", (long long)up);
        }
        kl_push(r->a, out, t);
    }
    return true;
}

/* 12.5 or 1.25e-05, whatever the locale; 0: neither. */
static double decimal(const char *s)
{
    double v = 0, unit = 1;
    int exp = 0, digits = 0;
    for (; isdigit((unsigned char)*s); s++, digits++)
        v = v * 10 + (*s - '0');
    for (s += *s == '.'; digits && isdigit((unsigned char)*s); s++)
        v += (unit /= 10) * (*s - '0');
    if (*s == 'e') {
        bool neg = s[1] == '-';
        for (s += 1 + (s[1] == '-' || s[1] == '+'); isdigit((unsigned char)*s) && exp < 100; s++)
            exp = exp * 10 + (*s - '0');
        for (; exp > 0; exp--)
            v = neg ? v / 10 : v * 10;
    }
    return digits && !*s && v > 0 && v < 1e12 ? v : 0;
}

static bool milliseconds(struct reader *r, struct kl_tuneentry *e)
{
    const char *w = word(r), *of = w ? word(r) : NULL, *d = of ? word(r) : NULL;
    e->ms = w ? decimal(w) : 0;
    e->of_ms = d ? decimal(d) : 0;
    bool ok = e->ms > 0 && (!of || (strcmp(of, "default") == 0 && e->of_ms > 0));
    return ok || wrong(r, "write `ms 1.25 default 1.5`");
}

static bool source(struct reader *r, struct kl_tuneentry *e)
{
    e->source = word(r);
    size_t n = e->source ? strspn(e->source, "0123456789abcdef") : 0;
    return (n == 16 && !e->source[n]) || wrong(r, "`source` is followed by 16 digits from 0 to f");
}

static bool device(struct reader *r, struct kl_tuneentry *e)
{
    kl_buf b = {.a = r->a};
    const char *w;
    while ((w = word(r)) != NULL)
        kl_putf(&b, b.n ? " %s" : "%s", w);
    e->device = kl_buf_str(&b);
    return b.n || wrong(r, "`device` is followed by its name, as `cpu` or `cuda sm_90`");
}

static bool use(struct reader *r, struct kl_tuneentry *e)
{
    const char *from = r->p, *w = word(r);
    if (w && strcmp(w, "default") == 0)
        return true;
    r->p = from;
    return w ? pairs(r, &e->use, false)
             : wrong(r, "`use` is followed by NAME=VALUE..., or by `default`");
}

enum key { KERNEL, SOURCE, DEVICE, WHEN, WITH, USE, MS, NKEY };
static const char *const keys[NKEY] = {"kernel", "source", "device", "when", "with", "use", "ms"};

/* seen: the keys of the paragraph so far. */
static bool line(struct reader *r, kl_tunefile *f, unsigned *seen)
{
    const char *w = word(r), *near;
    unsigned k = 0;
    if (!w)
        return true;
    while (k < NKEY && strcmp(keys[k], w) != 0)
        k++;
    if (k == NKEY) {
        near = kl_nearest(w, keys, NKEY);
        return wrong(r, "`%.60s` is none of kernel, source, device, when, with, use and ms%s%s%s", w,
                     near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
    }
    if (k == KERNEL) {
        const char *name = word(r);
        if (f->entry.n && !(*seen & 1u << USE))
            return wrong(r, "the entry for `%s` in line %u has no `use`",
                         f->entry.v[f->entry.n - 1].kernel, f->entry.v[f->entry.n - 1].line);
        if (!name || !is_name(name, strlen(name)))
            return wrong(r, "`kernel` is followed by its name");
        const struct kl_tuneentry e = {.kernel = name, .device = "", .line = r->line};
        kl_push(r->a, &f->entry, e);
        *seen = 0;
    } else if (!f->entry.n) {
        return wrong(r, "`%s` stands before the first `kernel`", w);
    }
    if (*seen & 1u << k)
        return wrong(r, "`%s` stands twice in one entry", w);
    *seen |= 1u << k;
    struct kl_tuneentry *e = &f->entry.v[f->entry.n - 1];
    bool ok = k == SOURCE   ? source(r, e)
              : k == DEVICE ? device(r, e)
              : k == WHEN   ? pairs(r, &e->when, true)
              : k == WITH   ? pairs(r, &e->with, false)
              : k == USE    ? use(r, e)
              : k == MS     ? milliseconds(r, e)
                            : true;
    const char *more = ok ? word(r) : NULL;
    return more ? wrong(r, "`%.60s` is too much here", more) : ok;
}

static bool head(struct reader *r, bool *found)
{
    const char *w = word(r), *v = w ? word(r) : NULL;
    int64_t version;
    if (!w)
        return true;
    *found = true;
    if (strcmp(w, "kiln-tune") != 0 || !v || !number(v, &version))
        return wrong(r, "the first line must be `kiln-tune %d`", KL_TUNE_VERSION);
    if (version != KL_TUNE_VERSION)
        return wrong(r, "the file is of version %lld, and this Kiln reads version %d",
                     (long long)version, KL_TUNE_VERSION);
    return true;
}

bool kl_tunefile_parse(kl_tunefile *out, const char *text, size_t n, uint32_t *at, const char **why)
{
    struct reader r = {.a = out->a, .why = why};
    const char *end = text + n;
    bool found = false, ok = true;
    unsigned seen = 0;
    while (text < end && ok) {
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        r.p = text;
        r.end = nl ? nl : end;
        *at = ++r.line;
        if (r.end - r.p > MOST_LINE || memchr(r.p, 0, (size_t)(r.end - r.p)))
            ok = wrong(&r, "this line is no text of a tune file");
        else
            ok = found ? line(&r, out, &seen) : head(&r, &found);
        text = nl ? nl + 1 : end;
    }
    *at = r.line ? r.line : 1;
    if (ok && !found)
        ok = wrong(&r, "the first line must be `kiln-tune %d`", KL_TUNE_VERSION);
    if (ok && out->entry.n && !(seen & 1u << USE)) {
        *at = out->entry.v[out->entry.n - 1].line;
        ok = wrong(&r, "the entry for `%s` has no `use`", out->entry.v[out->entry.n - 1].kernel);
    }
    return ok;
}

/* ---- order ---- */

static int compare_pairs(const kl_tunepairs *a, const kl_tunepairs *b)
{
    for (uint32_t i = 0; i < a->n && i < b->n; i++) {
        const struct kl_tunepair *x = &a->v[i], *y = &b->v[i];
        int c = strcmp(x->name, y->name);
        if (!c)
            c = strcmp(x->type ? x->type : "", y->type ? y->type : "");
        if (!c)
            c = (x->v > y->v) - (x->v < y->v);
        if (!c)
            c = y->least - x->least; /* the exact one is said more exactly: it stands behind */
        if (c)
            return c;
    }
    return (a->n > b->n) - (a->n < b->n);
}

static int compare(const struct kl_tuneentry *a, const struct kl_tuneentry *b)
{
    int c = strcmp(a->kernel, b->kernel);
    if (!c)
        c = strcmp(a->device, b->device);
    if (!c)
        c = compare_pairs(&a->when, &b->when);
    return c ? c : compare_pairs(&a->with, &b->with);
}

/* By insertion: the few entries of a file are nearly always in order.  Equal ones keep theirs. */
static void put_at(kl_tunefile *f, uint32_t at, const struct kl_tuneentry *e)
{
    kl_push(f->a, &f->entry, *e);
    memmove(&f->entry.v[at + 1], &f->entry.v[at], (f->entry.n - 1 - at) * sizeof *e);
    f->entry.v[at] = *e;
}

void kl_tunefile_put(kl_tunefile *f, const struct kl_tuneentry *e)
{
    uint32_t at = f->entry.n;
    bool replaced = false;
    for (uint32_t i = f->entry.n; i-- > 0;) {
        int c = compare(&f->entry.v[i], e);
        if (c == 0 && !replaced) {
            f->entry.v[i] = *e;
            replaced = true;
        } else if (c == 0) { /* a second one for the same would never be used */
            memmove(&f->entry.v[i], &f->entry.v[i + 1], (f->entry.n - 1 - i) * sizeof *e);
            f->entry.n--;
        }
        at = c > 0 ? i : at;
    }
    if (!replaced)
        put_at(f, at, e);
}

const char *kl_tune_device_name(kl_arena *a, const char *name)
{
    kl_buf b = {.a = a};
    for (const char *s = name; *s; s++) {
        bool gap = isspace((unsigned char)*s), odd = iscntrl((unsigned char)*s) || *s == '#';
        if (gap && b.n && b.s[b.n - 1] != ' ')
            kl_puts(&b, " ");
        else if (!gap)
            kl_putf(&b, "%c", odd ? '_' : *s);
    }
    while (b.n && b.s[b.n - 1] == ' ')
        b.s[--b.n] = 0;
    return kl_buf_str(&b);
}

bool kl_tune_device_fits(const char *device, const char *own)
{
    size_t n = strlen(device);
    return strncmp(device, own, n) == 0 && (!n || !own[n] || own[n] == ' ');
}

/* ---- writing ---- */

static void print_pairs(kl_buf *b, const char *key, const kl_tunepairs *p)
{
    kl_putf(b, "    %-6s", key);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->v[i].type)
            kl_putf(b, " %s=%s", p->v[i].name, p->v[i].type);
        else
            kl_putf(b, " %s%s=%lld", p->v[i].name, p->v[i].least ? ">" : "", (long long)p->v[i].v);
    kl_puts(b, "\n");
}

void kl_tunefile_print(kl_buf *b, const kl_tunefile *f)
{
    kl_tunefile sorted = {.a = b->a};
    for (uint32_t i = 0; i < f->entry.n; i++) {
        uint32_t at = sorted.entry.n;
        while (at > 0 && compare(&sorted.entry.v[at - 1], &f->entry.v[i]) > 0)
            at--;
        put_at(&sorted, at, &f->entry.v[i]);
    }
    kl_putf(b, "kiln-tune %d\n# Constants found by `kiln tune`; man 5 kiln-tune explains them.\n",
            KL_TUNE_VERSION);
    for (uint32_t i = 0; i < sorted.entry.n; i++) {
        const struct kl_tuneentry *e = &sorted.entry.v[i];
        kl_putf(b, "\nkernel %s\n", e->kernel);
        if (e->source)
            kl_putf(b, "    source %s\n", e->source);
        if (*e->device)
            kl_putf(b, "    device %s\n", e->device);
        if (e->when.n)
            print_pairs(b, "when", &e->when);
        if (e->with.n)
            print_pairs(b, "with", &e->with);
        if (e->use.n)
            print_pairs(b, "use", &e->use);
        else
            kl_puts(b, "    use    default\n");
        if (e->ms > 0 && e->of_ms > 0)
            kl_putf(b, "    ms     %.4g default %.4g\n", e->ms, e->of_ms);
        else if (e->ms > 0)
            kl_putf(b, "    ms     %.4g\n", e->ms);
    }
}
