/* reduce.c - shrink a failing program: lines and balanced blocks go, then parts of
 * expressions, as long as it fails in the same way.  What no longer compiles is not the same
 * failure, so no knowledge of the language is needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "random.h"

enum { TRIES = 600, SECONDS = 90 };

struct shrink {
    struct rprog *p;
    enum outcome what;
    char code[6]; /* of the first diagnostic, or "" */
    bool clang;
    unsigned use, tries;
    time_t end;
};

static void first_code(const char *why, char code[6])
{
    const char *k = strstr(why, "[K");
    code[0] = 0;
    if (k)
        memcpy(code, k + 1, 5);
    code[5] = 0;
}

static bool still(struct shrink *s, const char **line, unsigned n)
{
    if (s->tries++ >= TRIES || time(NULL) > s->end)
        return false;
    char *text = program_text(line, n);
    struct result r = {O_NONE, ""};
    run_guarded(&s->p, &text, 1, &s->clang, s->use, &r);
    free(text);
    char code[6];
    first_code(r.why, code);
    return r.outcome == s->what && strcmp(code, s->code) == 0;
}

static bool keep(struct shrink *s, const char **line, unsigned n)
{
    if (!still(s, line, n))
        return false;
    memcpy(s->p->line, line, n * sizeof *line);
    s->p->nline = n;
    return true;
}

/* The line that closes the block which line i opens; i itself if it opens none. */
static unsigned block_end(const char *const *line, unsigned n, unsigned i)
{
    size_t k = strlen(line[i]);
    if (!k || line[i][k - 1] != '{')
        return i;
    int depth = 0;
    for (unsigned j = i; j < n; j++) {
        for (const char *c = line[j]; *c; c++)
            depth += (*c == '{') - (*c == '}');
        if (depth <= 0)
            return j;
    }
    return n - 1;
}

static unsigned without(const struct rprog *p, const char **out, unsigned from, unsigned to)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->nline; i++)
        if (i < from || i > to)
            out[n++] = p->line[i];
    return n;
}

static bool drop_lines(struct shrink *s)
{
    struct rprog *p = s->p;
    const char **out = malloc((p->nline + 1) * sizeof *out);
    bool changed = false;
    for (unsigned size = p->nline / 2; out && size > 0; size /= 2)
        for (unsigned i = p->nline; i-- > 0;) {
            if (i >= p->nline)
                continue;
            unsigned to = size > 1 ? i + size - 1 : block_end(p->line, p->nline, i);
            if (to >= p->nline)
                continue;
            if (keep(s, out, without(p, out, i, to))) {
                changed = true;
            } else if (size == 1 && to > i) { /* only the frame of the block */
                unsigned n = 0;
                for (unsigned j = 0; j < p->nline; j++)
                    if (j != i && j != to)
                        out[n++] = p->line[j];
                changed |= keep(s, out, n);
            }
        }
    free(out);
    return changed;
}

static const char *closing(const char *open)
{
    int depth = 0;
    for (const char *c = open; *c; c++) {
        depth += (*c == '(') - (*c == ')');
        if (depth == 0)
            return c;
    }
    return NULL;
}

/* Replace each parenthesised part, outermost first, by 1 or by a part inside it. */
static bool shrink_line(struct shrink *s, unsigned i)
{
    struct rprog *p = s->p;
    const char **out = malloc(p->nline * sizeof *out), *text = p->line[i];
    bool changed = false;
    for (const char *c = text; out && (c = strchr(c, '(')); c++) {
        const char *e = closing(c), *in;
        if (!e)
            break;
        memcpy(out, p->line, p->nline * sizeof *out);
        out[i] = pool_fmt(&p->mem, "%.*s(1)%s", (int)(c - text), text, e + 1);
        if (e - c > 3 && keep(s, out, p->nline)) {
            changed = true;
            break;
        }
        for (in = c + 1; (in = strchr(in, '(')) && in < e && !changed; in++) {
            const char *ie = closing(in);
            if (!ie || ie > e)
                break;
            out[i] = pool_fmt(&p->mem, "%.*s%.*s%s", (int)(c - text), text, (int)(ie - in + 1), in,
                              e + 1);
            changed = keep(s, out, p->nline);
        }
        if (changed)
            break;
    }
    free(out);
    return changed;
}

void reduce(struct rprog *p, const struct result *res, bool clang, unsigned use)
{
    struct shrink s = {.p = p, .what = res->outcome, .clang = clang, .use = use};
    first_code(res->why, s.code);
    s.end = time(NULL) + SECONDS;
    for (bool changed = true; changed;) {
        changed = false;
        while (drop_lines(&s))
            changed = true;
        for (unsigned i = 0; i < p->nline; i++)
            while (shrink_line(&s, i))
                changed = true;
    }
}
