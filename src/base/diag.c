/* diag.c - see diag.h */
#include "base/diag.h"

#include <stdio.h>
#include <stdlib.h>

const struct kl_diaginfo kl_diaginfos[KL_NDIAG] = {
    [0] = {"K0000", "", "", KILN_ERROR},
#define DIAG(code_, sev_, title_, page_) [KL_##code_] = {#code_, title_, page_, KILN_##sev_},
#include "base/diag.def"
};

uint32_t kl_src_add(kl_srcmap *m, const char *name, const char *text, uint32_t len, bool lib)
{
    uint32_t base = 1;
    if (m->files.n)
        base = m->files.v[m->files.n - 1].base + m->files.v[m->files.n - 1].len + 1;
    if (len > UINT32_MAX - base - 1)
        kl_raise(m->a->env, KILN_E_UNSUPPORTED, "sources of more than 4 GiB");
    kl_push(m->a, &m->files, ((struct kl_file){name, text, len, base, lib}));
    return m->files.n - 1;
}

const struct kl_file *kl_src_file(const kl_srcmap *m, uint32_t off)
{
    if (!m || !off)
        return NULL;
    for (uint32_t i = m->files.n; i-- > 0;)
        if (off >= m->files.v[i].base)
            return &m->files.v[i];
    return NULL;
}

kiln_place kl_src_place(const kl_srcmap *m, kl_arena *a, kl_span s)
{
    const struct kl_file *f = kl_src_file(m, s.beg);
    if (!f)
        return (kiln_place){0};
    uint32_t at = s.beg - f->base, line = 1, start = 0;
    if (at > f->len)
        at = f->len;
    for (const char *nl; (nl = memchr(f->text + start, '\n', at - start)) != NULL; line++)
        start = (uint32_t)(nl - f->text) + 1;
    uint32_t stop = start;
    while (stop < f->len && f->text[stop] != '\n' && f->text[stop] != '\r')
        stop++;
    uint32_t end = s.end > s.beg ? s.end - f->base : at + 1;
    if (end > stop)
        end = stop > at ? stop : at + 1;
    char *text = kl_strndup(a, f->text + start, stop - start);
    for (uint32_t i = 0; i < stop - start; i++)
        if (!text[i])
            text[i] = '?'; /* else the line would end here */
    return (kiln_place){kl_strndup(a, f->name, strlen(f->name)), line, at - start + 1,
                        end - start + 1, text};
}

kl_diags *kl_diags_new(const kl_alloc *al)
{
    kl_diags *d = al->fn(al->user, NULL, 0, sizeof *d);
    if (!d)
        return NULL;
    memset(d, 0, sizeof *d);
    d->al = *al;
    d->env.al = &d->al;
    d->a.env = &d->env;
    return d;
}

void kl_diags_use(kl_diags *d, kl_env *env, const kl_srcmap *src)
{
    d->a.env = env ? env : &d->env;
    d->src = src;
}

static struct kl_diag *diag_new(kl_diags *d, enum kl_code code, kl_span span)
{
    struct kl_diag *g = kl_new(&d->a, struct kl_diag);
    g->a = &d->a;
    g->src = d->src;
    g->pub.code = kl_diaginfos[code].code;
    g->pub.severity = (kiln_severity)kl_diaginfos[code].sev;
    g->pub.place = kl_src_place(d->src, &d->a, span);
    return g;
}

struct kl_diag *kl_diag(kl_diags *d, enum kl_code code, kl_span span, const char *fmt, ...)
{
    bool err = kl_diaginfos[code].sev == KILN_ERROR;
    if (err && d->nerr >= KL_MAX_ERRORS) {
        if (!d->sink)
            d->sink = diag_new(d, code, span);
        return d->sink;
    }
    struct kl_diag *g = diag_new(d, code, span);
    va_list ap;
    va_start(ap, fmt);
    g->pub.text = kl_vprintf(&d->a, fmt, ap);
    va_end(ap);
    kl_push(&d->a, &d->list, g);
    d->nerr += err;
    d->nwarn += kl_diaginfos[code].sev == KILN_WARNING;
    return g;
}

struct kl_diag *kl_note(struct kl_diag *g, kl_span span, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    kiln_diag_note n = {kl_src_place(g->src, g->a, span), kl_vprintf(g->a, fmt, ap)};
    va_end(ap);
    kl_push(g->a, &g->note, n);
    g->pub.notes = g->note.v;
    g->pub.nnotes = g->note.n;
    return g;
}

struct kl_diag *kl_fix(struct kl_diag *g, kl_span span, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    g->pub.fix = kl_vprintf(g->a, fmt, ap);
    va_end(ap);
    g->pub.fix_place = kl_src_place(g->src, g->a, span);
    if (span.end == span.beg)
        g->pub.fix_place.end_col = g->pub.fix_place.col;
    return g;
}

/* ---- rendering ---- */

/* Length of the UTF-8 sequence at s, of at most n bytes, that may go to a terminal; 0: none, as for
 * control characters, overlong forms, surrogates and stray bytes. */
static size_t sequence(const char *s, size_t n)
{
    static const struct {
        uint8_t lo, hi, len, from, to; /* first byte, length, range of the second */
    } forms[] = {
        {0x20, 0x7E, 1, 0, 0},       {0xC2, 0xC2, 2, 0xA0, 0xBF}, /* below U+00A0: controls */
        {0xC3, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x80, 0xBF},
        {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF},
        {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F}};
    const uint8_t *u = (const uint8_t *)s;
    for (size_t i = 0; n && i < sizeof forms / sizeof *forms; i++) {
        if (u[0] < forms[i].lo || u[0] > forms[i].hi)
            continue;
        size_t len = forms[i].len;
        if (len > n || (len > 1 && (u[1] < forms[i].from || u[1] > forms[i].to)))
            return 0;
        for (size_t k = 2; k < len; k++)
            if (u[k] < 0x80 || u[k] > 0xBF)
                return 0;
        return len;
    }
    return 0;
}

/* Text for a terminal: what is no character is `?`.  Lines of a message stay lines. */
static void put_text(kl_buf *b, const char *s, size_t n)
{
    for (size_t i = 0, k; i < n; i += k) {
        k = sequence(s + i, n - i);
        if (!k)
            k = 1, kl_puts(b, s[i] == '\n' ? "\n" : s[i] == '\t' ? "\t" : "?");
        else
            kl_putf(b, "%.*s", (int)k, s + i);
    }
}

/* One column of a line: a character, or a byte that is none. */
static uint32_t step(const char *s, uint32_t at, uint32_t n)
{
    size_t k = sequence(s + at, n - at);
    return at + (k ? (uint32_t)k : 1);
}

static uint32_t columns(const char *s, uint32_t from, uint32_t to, uint32_t n)
{
    uint32_t c = 0;
    for (uint32_t i = from; i < to && i < n; i = step(s, i, n))
        c++;
    return c;
}

/* The line with carets below it.  Of a long line a part around the first caret. */
static void excerpt(kl_buf *b, const kiln_place *p, const char *on, const char *off)
{
    enum { WHOLE = 120, PART = 100, BEFORE = 50 };
    if (!p->file || !p->text)
        return;
    uint32_t n = (uint32_t)strlen(p->text), beg = 0, end = 0;
    uint32_t at = p->col ? p->col - 1 : 0, last = p->end_col ? p->end_col - 1 : 0;
    uint32_t total = columns(p->text, 0, n, n), caret = columns(p->text, 0, at, n), skip = 0;
    uint32_t show = total > WHOLE ? PART : total;
    if (total > WHOLE && caret > BEFORE)
        skip = caret - BEFORE < total - PART ? caret - BEFORE : total - PART;
    for (uint32_t i = 0; i < skip; i++)
        beg = step(p->text, beg, n);
    end = beg;
    for (uint32_t i = 0; i < show; i++)
        end = step(p->text, end, n);
    kl_putf(b, "%5u | %s", p->line, beg ? "..." : "");
    put_text(b, p->text + beg, end - beg);
    kl_putf(b, "%s\n      | %s", end < n ? "..." : "", beg ? "   " : "");
    for (uint32_t i = beg; i < at && i < n; i = step(p->text, i, n))
        kl_puts(b, p->text[i] == '\t' ? "\t" : " "); /* so that the caret lines up */
    for (uint32_t i = n; i < at; i++)
        kl_puts(b, " ");
    kl_puts(b, on);
    uint32_t stop = last < end || end == n ? last : end;
    for (uint32_t i = at; i < stop || i == at; i = i < n ? step(p->text, i, n) : i + 1)
        kl_puts(b, "^");
    kl_putf(b, "%s\n", off);
}

static void put_head(kl_buf *b, const kiln_place *p)
{
    if (!p->file)
        return;
    put_text(b, p->file, strlen(p->file));
    kl_putf(b, ":%u:%u: ", p->line, p->col);
}

void kl_diag_render(kl_buf *b, const kiln_diag *d, bool color)
{
    static const char *const word[] = {"note", "warning", "error"};
    static const char *const paint[] = {"\033[1;36m", "\033[1;35m", "\033[1;31m"};
    const char *on = color ? paint[d->severity] : "", *off = color ? "\033[0m" : "";
    put_head(b, &d->place);
    kl_putf(b, "%s%s[%s]%s: ", on, word[d->severity], d->code, off);
    put_text(b, d->text, strlen(d->text));
    kl_puts(b, "\n");
    excerpt(b, &d->place, on, off);
    for (size_t i = 0; i < d->nnotes; i++) {
        const kiln_diag_note *n = &d->notes[i];
        put_head(b, &n->place);
        kl_puts(b, "note: ");
        put_text(b, n->text, strlen(n->text));
        kl_puts(b, "\n");
        excerpt(b, &n->place, color ? paint[0] : "", off);
    }
    if (!d->fix)
        return;
    bool instead = d->fix_place.file && d->fix_place.text &&
                   d->fix_place.end_col > d->fix_place.col;
    kl_puts(b, !d->fix_place.file ? "fix: " : instead ? "fix: write `" : "fix: insert `");
    put_text(b, d->fix, strlen(d->fix));
    if (instead) {
        kl_puts(b, "` instead of `");
        put_text(b, d->fix_place.text + d->fix_place.col - 1,
                 d->fix_place.end_col - d->fix_place.col);
        kl_puts(b, "`\n");
    } else if (d->fix_place.file) {
        kl_putf(b, "` at %u:%u\n", d->fix_place.line, d->fix_place.col);
    } else {
        kl_puts(b, "\n");
    }
}

void kl_diags_render(kl_buf *b, const kl_diags *d, bool color)
{
    for (uint32_t i = 0; i < d->list.n; i++)
        kl_diag_render(b, &d->list.v[i]->pub, color);
    if (d->nerr >= KL_MAX_ERRORS)
        kl_putf(b, "%u errors shown; there may be more\n", d->nerr);
}

/* ---- nearest name ---- */

/* Damerau-Levenshtein, capped: more than `cap` counts as cap + 1. */
static uint32_t distance(const char *a, const char *b, uint32_t cap)
{
    enum { MAX = 40 };
    uint32_t n = (uint32_t)strlen(a), m = (uint32_t)strlen(b);
    uint32_t row[3][MAX + 1];
    if (n > MAX || m > MAX || (n > m ? n - m : m - n) > cap)
        return cap + 1;
    for (uint32_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t *cur = row[i % 3], *prev = row[(i + 2) % 3], *pp = row[(i + 1) % 3];
        cur[0] = i;
        for (uint32_t j = 1; j <= m; j++) {
            uint32_t sub = prev[j - 1] + (a[i - 1] != b[j - 1]);
            uint32_t gap = (prev[j] < cur[j - 1] ? prev[j] : cur[j - 1]) + 1;
            cur[j] = sub < gap ? sub : gap;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                pp[j - 2] + 1 < cur[j])
                cur[j] = pp[j - 2] + 1;
        }
    }
    return row[n % 3][m];
}

const char *kl_nearest(const char *name, const char *const *names, uint32_t n)
{
    uint32_t len = (uint32_t)strlen(name), cap = len < 3 ? 1 : len < 6 ? 2 : 3, best = cap + 1;
    const char *found = NULL;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = distance(name, names[i], cap);
        if (d < best && d < len)
            best = d, found = names[i];
    }
    return found;
}

/* ---- public face ---- */

size_t kiln_diags_count(const kiln_diags *d)
{
    return d ? d->list.n : 0;
}

const kiln_diag *kiln_diags_at(const kiln_diags *d, size_t i)
{
    return d && i < d->list.n ? &d->list.v[i]->pub : NULL;
}

size_t kiln_diags_render(const kiln_diags *d, int color, char *buf, size_t n)
{
    if (n)
        buf[0] = 0;
    if (!d)
        return 0;
    jmp_buf jb;
    kl_env env = {.al = &d->al, .fail = &jb};
    kl_arena a = {.env = &env};
    kl_buf b = {.a = &a};
    size_t need = 0;
    if (setjmp(jb) == 0) {
        kl_diags_render(&b, d, color != 0);
        if (n && b.s) {
            size_t k = b.n < n - 1 ? b.n : n - 1;
            memcpy(buf, b.s, k);
            buf[k] = 0;
        }
    }
    need = b.n;
    kl_arena_free(&a);
    return need;
}

void kiln_diags_free(kiln_diags *d)
{
    if (!d)
        return;
    kl_alloc al = d->al;
    d->a.env = &d->env;
    d->env.al = &al;
    kl_arena_free(&d->a);
    al.fn(al.user, d, sizeof *d, 0);
}

const char *kiln_diag_page(const char *code)
{
    for (int i = 1; code && i < KL_NDIAG; i++)
        if (strcmp(kl_diaginfos[i].code, code) == 0)
            return kl_diaginfos[i].page;
    return NULL;
}
