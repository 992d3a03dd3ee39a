/* allow.c - comments that allow a finding of the checks.
 *
 *     y[0] = s; // kiln: allow K1301 all programs write the same value
 *
 * or the comment in a line of its own above.  What is allowed stays in the list, as a note with the
 * place of the comment.  A comment in the kernel that allows what was not found is a warning. */
#include "lib/lib.h"

static const char mark[] = "kiln: allow";

struct comment {
    const struct kl_file *file;
    uint32_t beg, end;  /* offsets in the file: from `kiln:` on, to the end of the line */
    uint32_t codes, ncodes; /* offset of the first code; how many bytes of codes */
};

static uint32_t line_end(const struct kl_file *f, uint32_t at)
{
    while (at < f->len && f->text[at] != '\n')
        at++;
    return at;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_code(const struct kl_file *f, uint32_t at, uint32_t end)
{
    bool ok = end - at >= 5 && f->text[at] == 'K';
    for (uint32_t i = 1; ok && i < 5; i++)
        ok = f->text[at + i] >= '0' && f->text[at + i] <= '9';
    char behind = ok && end - at > 5 ? f->text[at + 5] : ' ';
    return ok && !((behind >= '0' && behind <= '9') || (behind >= 'A' && behind <= 'Z') ||
                   (behind >= 'a' && behind <= 'z') || behind == '_');
}

/* The comment in the line that begins at `at`; whole: only if nothing stands before it. */
static bool find_comment(const struct kl_file *f, uint32_t at, bool whole, struct comment *c)
{
    uint32_t end = line_end(f, at), i = at;
    while (whole && i < end && blank(f->text[i]))
        i++;
    while (!whole && i + 1 < end && !(f->text[i] == '/' && f->text[i + 1] == '/'))
        i++;
    if (i + 1 >= end || f->text[i] != '/' || f->text[i + 1] != '/')
        return false;
    for (i += 2; i < end && blank(f->text[i]); i++)
        continue;
    if (end - i < sizeof mark - 1 || memcmp(f->text + i, mark, sizeof mark - 1) != 0)
        return false;
    *c = (struct comment){.file = f, .beg = i, .end = end};
    while (c->end > i && blank(f->text[c->end - 1]))
        c->end--;
    i += sizeof mark - 1;
    while (i < end && (blank(f->text[i]) || f->text[i] == ','))
        i++;
    c->codes = i;
    while (is_code(f, i, end)) {
        i += 5;
        c->ncodes = i - c->codes;
        while (i < end && (blank(f->text[i]) || f->text[i] == ','))
            i++;
    }
    return true;
}

static bool names(const struct comment *c, const char *code)
{
    for (uint32_t i = 0; i + 5 <= c->ncodes; i++)
        if (memcmp(c->file->text + c->codes + i, code, 5) == 0)
            return true;
    return false;
}

/* Where a line begins; the file's length past the last. */
static uint32_t line_start(const struct kl_file *f, uint32_t line)
{
    uint32_t at = 0;
    for (uint32_t n = 1; n < line && at < f->len; n++) {
        at = line_end(f, at);
        at += at < f->len;
    }
    return at;
}

static const struct kl_file *file_of(const kl_srcmap *m, const char *name)
{
    for (uint32_t i = 0; name && i < m->files.n; i++)
        if (strcmp(m->files.v[i].name, name) == 0)
            return &m->files.v[i];
    return NULL;
}

static bool is_finding(const char *code)
{
    return (code[0] == 'K' && code[1] == '1' && code[2] >= '2' && code[2] <= '7') ||
           strcmp(code, "K2702") == 0;
}

static bool allowed(const kl_srcmap *m, const kiln_diag *d, struct comment *c)
{
    const struct kl_file *f = file_of(m, d->place.file);
    if (!f || !d->place.line)
        return false;
    if (find_comment(f, line_start(f, d->place.line), false, c) && names(c, d->code))
        return true;
    return d->place.line > 1 && find_comment(f, line_start(f, d->place.line - 1), true, c) &&
           names(c, d->code);
}

/* Which check finds a code, and whether only the executor can. */
static const struct {
    const char *code; /* the longest that fits counts */
    unsigned check;
    bool sim_only;
} finders[] = {
    {"K1299", 0, false},
    {"K12", KILN_CHECK_BOUNDS, false},     {"K1303", KILN_CHECK_BOUNDS, false},
    {"K13", KILN_CHECK_RACES, false},      {"K1403", KILN_CHECK_WRITTEN, false},
    {"K14", KILN_CHECK_UNINIT, false},     {"K15", KILN_CHECK_ALL, true},
    {"K1601", KILN_CHECK_ARITH, false},    {"K1607", KILN_CHECK_ARITH, false},
    {"K1701", KILN_CHECK_LOOPS, false},    {"K2702", KILN_CHECK_PADDING, false},
};

/* -1: no check finds it; 0: it was not looked for; 1: it was. */
static int looked_for(const struct kl_item *it, const char *code)
{
    for (size_t i = 0; i < sizeof finders / sizeof *finders; i++)
        if (strncmp(code, finders[i].code, strlen(finders[i].code)) == 0)
            return it->k->mod->ctx->opt.checks & finders[i].check &&
                   !(finders[i].sim_only && !it->s->gpu);
    return -1;
}

static bool exists(const char *code)
{
    for (int i = 1; i < KL_NDIAG; i++)
        if (memcmp(kl_diaginfos[i].code, code, 5) == 0)
            return true;
    return false;
}

struct use {
    const struct kl_file *file;
    uint32_t at;
    char code[6];
};

/* A comment in which no code can be read, or not all of them: the next word has digits, as a code. */
static void misspelt(struct kl_call *c, const struct comment *x)
{
    const struct kl_file *f = x->file;
    uint32_t at = x->codes, n = 0;
    bool digits = false;
    for (at += x->ncodes; at < x->end && (blank(f->text[at]) || f->text[at] == ','); at++)
        continue;
    while (at + n < x->end && !blank(f->text[at + n]) && f->text[at + n] != ',') {
        digits |= f->text[at + n] >= '0' && f->text[at + n] <= '9';
        n++;
    }
    bool like = n >= 2 && n <= 8 && digits && (f->text[at] == 'K' || f->text[at] == 'k');
    if (x->ncodes && !like)
        return; /* the reason begins there */
    kl_span s = {f->base + x->beg, f->base + x->end};
    struct kl_diag *g = like ? kl_diag(c->d, KL_K1299, s, "`%.*s` is no code, and allows nothing",
                                       (int)n, f->text + at)
                             : kl_diag(c->d, KL_K1299, s, "this comment names no code, and allows nothing");
    kl_note(g, (kl_span){0, 0}, "codes are K and four digits, and come first: // kiln: allow K1301, K1302 why");
}

/* One code of a comment, which was not used. */
static void unused_code(struct kl_call *c, const struct kl_item *it, const struct comment *x,
                        const char *code)
{
    kl_span s = {x->file->base + x->beg, x->file->base + x->end};
    int looked = looked_for(it, code);
    if (looked > 0) {
        kl_diag(c->d, KL_K1299, s, "%.5s was not found here", code);
    } else if (looked < 0) {
        struct kl_diag *g =
            kl_diag(c->d, KL_K1299, s,
                    exists(code) ? "%.5s is not what the checks find, and cannot be allowed"
                                 : "there is no code %.5s", code);
        kl_note(g, (kl_span){0, 0}, "what can be allowed begins with K12 to K17, or is K2702: docs/check.md");
    }
}

static void unused(struct kl_call *c, const struct kl_item *it, const struct use *use, uint32_t n)
{
    kl_span s = it->k->node->span;
    const struct kl_file *f = kl_src_file(&it->k->mod->ast->src, s.beg);
    if (!f || f->lib)
        return;
    struct comment x;
    for (uint32_t at = s.beg - f->base, end = s.end - f->base; at < end;) {
        bool found = find_comment(f, at, false, &x);
        if (found)
            misspelt(c, &x);
        for (uint32_t i = x.codes; found && i + 5 <= x.codes + x.ncodes; i++) {
            const char *code = f->text + i;
            if (!is_code(f, i, x.end))
                continue;
            bool used = false;
            for (uint32_t k = 0; k < n; k++)
                used |= use[k].file == f && use[k].at == x.beg && memcmp(use[k].code, code, 5) == 0;
            if (!used)
                unused_code(c, it, &x, code);
        }
        at = line_end(f, at) + 1;
    }
}

struct job {
    const struct kl_item *it;
    kiln_status st;
};

static kiln_status allow(struct kl_call *c, void *arg)
{
    const struct job *j = arg;
    kl_diags *d = c->d;
    const kl_srcmap *m = &j->it->k->mod->ast->src;
    KL_VEC(struct use) use = {0};
    for (uint32_t i = 0, n = d->list.n; i < n; i++) {
        struct kl_diag *g = d->list.v[i];
        struct comment x;
        if (!is_finding(g->pub.code) || g->pub.severity == KILN_NOTE || !allowed(m, &g->pub, &x))
            continue;
        struct use one = {x.file, x.beg, {0}};
        memcpy(one.code, g->pub.code, 5);
        kl_push(&c->tmp, &use, one);
        d->nerr -= g->pub.severity == KILN_ERROR;
        d->nwarn -= g->pub.severity == KILN_WARNING;
        g->pub.severity = KILN_NOTE;
        g->src = m;
        kl_note(g, (kl_span){x.file->base + x.beg, x.file->base + x.end}, "allowed here");
    }
    unused(c, j->it, use.v, use.n);
    return j->st == KILN_E_BOUNDS && !d->nerr ? KILN_OK : j->st;
}

kiln_status kl_allow(struct kl_call *c, const struct kl_item *it, kiln_status st)
{
    struct job j = {it, st};
    return kl_guarded(c, &it->k->mod->ast->src, allow, &j);
}
