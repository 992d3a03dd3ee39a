/* jsonwrite.c - JSON written from front to end, for what is too long to be built as a tree first.
 *
 * One flag is enough for the commas: after a value the next one needs one, after a key or an
 * opening bracket it does not. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"

static void put(struct kl_jsonwrite *w, const char *s, size_t n)
{
    if (w->n + n + 1 > w->cap) {
        size_t cap = (w->n + n + 1) * 2;
        char *grown = kl_xalloc(cap);
        if (w->n)
            memcpy(grown, w->s, w->n);
        free(w->s);
        w->s = grown;
        w->cap = cap;
    }
    memcpy(w->s + w->n, s, n);
    w->n += n;
    w->s[w->n] = 0;
}

static void before(struct kl_jsonwrite *w)
{
    if (w->comma)
        put(w, ",", 1);
    if (w->line)
        put(w, "\n", 1);
    w->line = false;
    w->comma = true;
}

void kl_jsonwrite_open(struct kl_jsonwrite *w, char bracket)
{
    before(w);
    put(w, &bracket, 1);
    w->comma = false;
}

void kl_jsonwrite_close(struct kl_jsonwrite *w, char bracket)
{
    if (w->line)
        put(w, "\n", 1);
    put(w, &bracket, 1);
    w->line = false;
    w->comma = true;
}

void kl_jsonwrite_line(struct kl_jsonwrite *w)
{
    w->line = true;
}

/* ---- strings ---- */

/* Bytes of the UTF-8 character at s, which ends in NUL; 0: it is none. */
static size_t utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3
               : s[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool odd = n > 2 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
                         (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f));
    return odd ? 0 : n;
}

static void put_text(struct kl_jsonwrite *w, const char *s)
{
    char b[8];
    while (*s) {
        size_t n = utf8(s);
        if (*s == '"' || *s == '\\')
            put(w, b, (size_t)snprintf(b, sizeof b, "\\%c", *s));
        else if ((unsigned char)*s < 0x20 || *s == 0x7f)
            put(w, b, (size_t)snprintf(b, sizeof b, "\\u%04x", (unsigned)*s));
        else if (n)
            put(w, s, n);
        else
            put(w, "\xef\xbf\xbd", 3);
        s += n ? n : 1;
    }
}

void kl_jsonwrite_strings(struct kl_jsonwrite *w, const char *a, const char *b, const char *c)
{
    before(w);
    put(w, "\"", 1);
    put_text(w, a);
    put_text(w, b);
    put_text(w, c);
    put(w, "\"", 1);
}

void kl_jsonwrite_string(struct kl_jsonwrite *w, const char *s)
{
    kl_jsonwrite_strings(w, s, "", "");
}

void kl_jsonwrite_key(struct kl_jsonwrite *w, const char *key)
{
    kl_jsonwrite_string(w, key);
    put(w, ":", 1);
    w->comma = false;
}

/* ---- numbers ---- */

static void number(struct kl_jsonwrite *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void number(struct kl_jsonwrite *w, const char *fmt, ...)
{
    char b[64];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(b, sizeof b, fmt, ap);
    va_end(ap);
    before(w);
    put(w, b, (size_t)n);
}

void kl_jsonwrite_count(struct kl_jsonwrite *w, uint64_t v)
{
    number(w, "%llu", (unsigned long long)v);
}

void kl_jsonwrite_thousandths(struct kl_jsonwrite *w, uint64_t v)
{
    number(w, "%llu.%03u", (unsigned long long)(v / 1000), (unsigned)(v % 1000));
}

void kl_jsonwrite_real(struct kl_jsonwrite *w, double v, int digits)
{
    char b[64];
    if (!isfinite(v)) {
        number(w, "null");
        return;
    }
    int most = digits ? digits : 17;
    for (int d = digits ? digits : 15; d <= most; d++) {
        snprintf(b, sizeof b, "%.*g", d, v);
        if (digits || strtod(b, NULL) == v)
            break;
    }
    number(w, "%s", b);
}

char *kl_jsonwrite_text(struct kl_jsonwrite *w, size_t *n)
{
    put(w, "\n", 1);
    *n = w->n;
    return w->s;
}
