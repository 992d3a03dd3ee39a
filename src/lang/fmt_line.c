/* fmt_line.c - blanks between tokens, breaking of long lines, comments at ends of lines.
 *
 * Where the author broke a line inside a statement, it stays broken; what is broken off is aligned
 * behind the innermost open bracket, or behind the `=` or `return` of the statement.  A line that
 * is still longer than 100 columns is broken at the outermost place that keeps the first part
 * within them: after a comma or semicolon, around an operator. */
#include "lang/fmt.h"

#include "base/elem.h"

/* ---- roles ---- */

static bool is_word(const struct kl_item *t)
{
    return t->tk == KL_TK_NAME || t->tk == KL_TK_INT || t->tk == KL_TK_DECIMAL ||
           t->tk == KL_TK_STRING || t->tk >= KL_TK_AUTO;
}

static bool is_operand_end(const struct kl_item *t)
{
    switch (t->tk) {
    case KL_TK_NAME:
    case KL_TK_INT:
    case KL_TK_DECIMAL:
    case KL_TK_STRING:
    case KL_TK_TRUE:
    case KL_TK_FALSE:
    case KL_TK_INF:
    case KL_TK_NAN:
    case KL_TK_RBRACK: return true;
    case KL_TK_RPAREN: return t->role != KL_ROLE_CAST;
    case KL_TK_RBRACE: return t->role == KL_ROLE_VALUE;
    case KL_TK_INC:
    case KL_TK_DEC: return t->role != KL_ROLE_UNARY;
    default: return false;
    }
}

static bool is_op(uint8_t tk)
{
    switch (tk) {
    case KL_TK_ADD: case KL_TK_SUB: case KL_TK_MUL: case KL_TK_DIV: case KL_TK_REM:
    case KL_TK_AND: case KL_TK_OR: case KL_TK_XOR: case KL_TK_NOT: case KL_TK_TILDE:
    case KL_TK_SHL: case KL_TK_SHR: case KL_TK_LT: case KL_TK_GT: case KL_TK_LE: case KL_TK_GE:
    case KL_TK_EQ: case KL_TK_NE: case KL_TK_ANDAND: case KL_TK_OROR: case KL_TK_INC:
    case KL_TK_DEC: return true;
    default: return false;
    }
}

static bool is_assign(uint8_t tk)
{
    switch (tk) {
    case KL_TK_ASSIGN: case KL_TK_ADDEQ: case KL_TK_SUBEQ: case KL_TK_MULEQ: case KL_TK_DIVEQ:
    case KL_TK_REMEQ: case KL_TK_ANDEQ: case KL_TK_OREQ: case KL_TK_XOREQ: case KL_TK_SHLEQ:
    case KL_TK_SHREQ: return true;
    default: return false;
    }
}

static bool opens(uint8_t tk)
{
    return tk == KL_TK_LPAREN || tk == KL_TK_LBRACK || tk == KL_TK_LBRACE;
}

static bool closes(uint8_t tk)
{
    return tk == KL_TK_RPAREN || tk == KL_TK_RBRACK || tk == KL_TK_RBRACE;
}

static bool is_type_name(const struct kl_fmt *f, const struct kl_item *t)
{
    if (kl_elem_by_name(t->s, t->n))
        return true;
    for (uint32_t i = 0; i < f->ntype; i++)
        if (strlen(f->type[i]) == t->n && memcmp(f->type[i], t->s, t->n) == 0)
            return true;
    return false;
}

/* Names in the place of a type: behind `type` and `struct`, and before another name. */
static void find_types(struct kl_fmt *f)
{
    const struct kl_item *before = NULL;
    KL_VEC(const char *) names = {0};
    for (uint32_t i = 0; i < f->n; i++) {
        const struct kl_item *t = &f->item[i], *type = NULL;
        if (t->comment)
            continue;
        if (before && t->tk == KL_TK_NAME && before->tk == KL_TK_NAME)
            type = before->n == 4 && memcmp(before->s, "type", 4) == 0 ? t : before;
        before = t;
        if (type && !is_type_name(f, type)) {
            kl_push(f->a, &names, kl_strndup(f->a, type->s, type->n));
            f->type = names.v;
            f->ntype = names.n;
        }
    }
}

/* Whether the ( at i begins a cast: a type in it, and an operand behind it. */
static bool is_cast(const struct kl_fmt *f, uint32_t i, const struct kl_item *before)
{
    uint32_t j = i + 1, close = f->item[i].match;
    const struct kl_item *t = f->item;
    if (close <= j || close + 1 >= f->n ||
        (before && (is_operand_end(before) || before->tk == KL_TK_SIZEOF || before->tk == KL_TK_IF ||
                    before->tk == KL_TK_FOR || before->tk == KL_TK_WHILE)))
        return false;
    bool is_struct = t[j].tk == KL_TK_STRUCT;
    j += is_struct;
    if (j >= close || t[j].tk != KL_TK_NAME)
        return false;
    const struct kl_item *name = &t[j++], *next = &t[close + 1];
    while (j < close && t[j].tk == KL_TK_LBRACK)
        j = t[j].match + 1;
    if (j != close)
        return false;
    if (is_struct || next->tk == KL_TK_LBRACE)
        return true;
    if (is_word(next) || next->tk == KL_TK_LPAREN || next->tk == KL_TK_NOT ||
        next->tk == KL_TK_TILDE || next->tk == KL_TK_DOT)
        return true;
    return (next->tk == KL_TK_ADD || next->tk == KL_TK_SUB) && is_type_name(f, name);
}

void kl_fmt_roles(struct kl_fmt *f)
{
    struct open {
        uint32_t at, quests;
        bool cast;
    };
    KL_VEC(struct open) stack = {0};
    const struct kl_item *before = NULL;
    find_types(f);
    for (uint32_t i = 0; i < f->n; i++) /* partners first: casts look ahead */
        if (opens(f->item[i].tk)) {
            struct open o = {.at = i};
            kl_push(f->a, &stack, o);
        } else if (closes(f->item[i].tk) && stack.n) {
            uint32_t o = stack.v[--stack.n].at;
            f->item[o].match = i;
            f->item[i].match = o;
        }
    stack.n = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        struct kl_item *t = &f->item[i];
        if (t->comment)
            continue;
        struct open *in = stack.n ? &stack.v[stack.n - 1] : NULL;
        if (opens(t->tk)) {
            struct open o = {.at = i, .cast = t->tk == KL_TK_LPAREN && is_cast(f, i, before)};
            if (t->tk == KL_TK_LBRACE && before &&
                (is_assign(before->tk) || before->tk == KL_TK_RETURN || before->tk == KL_TK_COMMA ||
                 before->tk == KL_TK_LPAREN || before->tk == KL_TK_QUEST ||
                 (before->tk == KL_TK_COLON) || before->role == KL_ROLE_CAST ||
                 (before->tk == KL_TK_LBRACE && before->role == KL_ROLE_VALUE)))
                t->role = f->item[t->match].role = KL_ROLE_VALUE;
            kl_push(f->a, &stack, o);
        } else if (closes(t->tk)) {
            if (in && in->cast)
                t->role = KL_ROLE_CAST;
            stack.n -= stack.n > 0;
        } else if (t->tk == KL_TK_QUEST) {
            if (in)
                in->quests++;
        } else if (t->tk == KL_TK_COLON) {
            if (in && f->item[in->at].tk == KL_TK_LBRACK && !in->quests)
                t->role = KL_ROLE_SECTION;
            else if (in && f->item[in->at].tk == KL_TK_LPAREN && !in->quests)
                t->role = KL_ROLE_LABEL;
            else if (in && in->quests)
                in->quests--;
        } else if (is_op(t->tk)) {
            t->role = before && is_operand_end(before) ? KL_ROLE_BINARY : KL_ROLE_UNARY;
        }
        before = t;
    }
}

/* ---- blanks ---- */

/* Whether a blank stands between neighbours of one line. */
static bool blank(const struct kl_item *a, const struct kl_item *b)
{
    if (b->comment || a->comment)
        return !(opens(a->tk) && a->role != KL_ROLE_VALUE && a->tk != KL_TK_LBRACE) &&
               !(a->comment && (b->tk == KL_TK_RPAREN || b->tk == KL_TK_RBRACK ||
                                b->tk == KL_TK_COMMA || b->tk == KL_TK_SEMI));
    if (a->tk == KL_TK_LPAREN || a->tk == KL_TK_LBRACK || a->tk == KL_TK_DOT)
        return false;
    if (b->tk == KL_TK_RPAREN || b->tk == KL_TK_RBRACK || b->tk == KL_TK_COMMA ||
        b->tk == KL_TK_SEMI || b->tk == KL_TK_LBRACK)
        return false;
    if (a->role == KL_ROLE_SECTION || b->role == KL_ROLE_SECTION || b->role == KL_ROLE_LABEL)
        return false;
    if (a->role == KL_ROLE_CAST)
        return false;
    if (a->role == KL_ROLE_UNARY) /* - -x must not become --x */
        return (a->tk == KL_TK_SUB && (b->tk == KL_TK_SUB || b->tk == KL_TK_DEC)) ||
               (a->tk == KL_TK_ADD && (b->tk == KL_TK_ADD || b->tk == KL_TK_INC)) ||
               (a->tk == KL_TK_AND && (b->tk == KL_TK_AND || b->tk == KL_TK_ANDAND));
    if (b->tk == KL_TK_DOT)
        return !is_operand_end(a) || a->tk == KL_TK_INT;
    if ((b->tk == KL_TK_INC || b->tk == KL_TK_DEC) && b->role == KL_ROLE_BINARY)
        return false;
    if (a->role == KL_ROLE_VALUE && a->tk == KL_TK_LBRACE)
        return false;
    if (b->role == KL_ROLE_VALUE && b->tk == KL_TK_RBRACE)
        return false;
    if (b->tk == KL_TK_LPAREN)
        return !(a->tk == KL_TK_NAME || a->tk == KL_TK_SIZEOF || a->tk == KL_TK_RBRACK);
    if (a->tk == KL_TK_LBRACE && b->tk == KL_TK_RBRACE)
        return false;
    return true;
}

/* ---- a logical line ---- */

uint32_t kl_fmt_columns(const char *s, size_t n)
{
    uint32_t w = 0;
    for (size_t i = 0; i < n; i++)
        w += ((unsigned char)s[i] & 0xc0) != 0x80;
    return w;
}

uint32_t kl_fmt_width(const struct kl_fmt *f, uint32_t beg, uint32_t end)
{
    uint32_t w = 0;
    for (uint32_t i = beg; i < end; i++) {
        w += kl_fmt_columns(f->item[i].s, f->item[i].n);
        w += i > beg && blank(&f->item[i - 1], &f->item[i]);
    }
    return w;
}

enum { BREAK_LAST = 15 }; /* behind `=`: rather anywhere else */

struct piece { /* of one item of a logical line */
    bool brk, gap; /* on a new line; with a blank line before that */
    uint32_t col, depth;
    uint32_t row;
};

/* How well a line may be broken before item i: what binds least comes first.  0: not at all. */
static uint32_t breakable(const struct kl_fmt *f, uint32_t i)
{
    const struct kl_item *a = &f->item[i - 1], *b = &f->item[i];
    if (a->comment || b->comment)
        return 0;
    if (a->tk == KL_TK_COMMA || a->tk == KL_TK_SEMI)
        return 1;
    if (b->tk == KL_TK_QUEST || (b->tk == KL_TK_COLON && b->role == KL_ROLE_NONE))
        return 2;
    if (is_assign(a->tk))
        return b->role == KL_ROLE_VALUE ? 0 : BREAK_LAST;
    if (a->role != KL_ROLE_BINARY)
        return 0;
    switch (a->tk) {
    case KL_TK_OROR: return 3;
    case KL_TK_ANDAND: return 4;
    case KL_TK_OR:
    case KL_TK_XOR:
    case KL_TK_AND: return 5;
    case KL_TK_LT:
    case KL_TK_GT:
    case KL_TK_LE:
    case KL_TK_GE:
    case KL_TK_EQ:
    case KL_TK_NE: return 6;
    case KL_TK_SHL:
    case KL_TK_SHR: return 7;
    case KL_TK_ADD:
    case KL_TK_SUB: return 8;
    case KL_TK_MUL:
    case KL_TK_DIV:
    case KL_TK_REM: return 9;
    default: return 0;
    }
}

/* Columns of all pieces for the breaks as they stand.  Returns the first item of the first line
 * that is too long, or end. */
static uint32_t columns(const struct kl_fmt *f, struct piece *p, uint32_t beg, uint32_t end,
                        uint32_t indent, uint32_t hang)
{
    struct open {
        uint32_t inside, line; /* where what follows goes; the indentation of its own line */
        bool value;
    };
    KL_VEC(struct open) stack = {0};
    uint32_t col = indent, line = indent, row = 0, outer = indent + hang, bad = end, first = beg;
    for (uint32_t i = beg; i < end; i++) {
        const struct kl_item *t = &f->item[i];
        struct piece *q = &p[i - beg];
        bool shut = closes(t->tk) && stack.n;
        if (i > beg && q->brk) {
            const struct open *in = stack.n ? &stack.v[stack.n - 1] : NULL;
            col = !in ? outer : shut ? in->line : in->inside;
            line = col;
            row++;
            first = i;
        } else if (i > beg) {
            col += blank(&f->item[i - 1], t);
        }
        if (shut)
            stack.n--;
        q->col = col;
        q->row = row;
        q->depth = stack.n;
        const char *nl = t->comment ? memchr(t->s, '\n', t->n) : NULL;
        col += kl_fmt_columns(t->s, nl ? (size_t)(nl - t->s) : t->n);
        if (col > KL_FMT_WIDTH && bad == end && !t->comment)
            bad = first;
        if (opens(t->tk)) {
            bool last = i + 1 < end && p[i + 1 - beg].brk;
            struct open o = {last ? line + KL_FMT_INDENT : col, line, false};
            kl_push(f->a, &stack, o);
        }
        if (!stack.n && i + 1 < end && !p[i + 1 - beg].brk && outer == indent + hang &&
            (is_assign(t->tk) || t->tk == KL_TK_RETURN))
            outer = col + 1;
    }
    return bad;
}

/* Put one break into the line that begins at item first: outside brackets rather than inside,
 * where least is bound, as far to the right as the part before it stays within the width. */
static bool break_line(const struct kl_fmt *f, struct piece *p, uint32_t beg, uint32_t end,
                       uint32_t first)
{
    uint32_t best = 0, least = UINT32_MAX, row = p[first - beg].row;
    for (uint32_t i = first + 1; i < end && p[i - beg].row == row; i++) {
        uint32_t rank = breakable(f, i);
        if (!rank)
            continue;
        const struct kl_item *a = &f->item[i - 1];
        bool fits = p[i - 1 - beg].col + kl_fmt_columns(a->s, a->n) <= KL_FMT_WIDTH;
        rank += rank == BREAK_LAST ? 1 << 20 : p[i - beg].depth * 16;
        if (!best || (fits && rank <= least)) {
            best = i;
            least = fits ? rank : UINT32_MAX;
        }
    }
    if (!best)
        return false;
    p[best - beg].brk = true;
    return true;
}

static void spaces(kl_buf *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        kl_buf_put(b, " ", 1);
}

/* A comment of several lines: the later ones move as far as the first one did. */
static void put_comment(kl_buf *b, const struct kl_item *c, uint32_t column)
{
    const char *s = c->s, *end = c->s + c->n;
    int32_t shift = (int32_t)column - (int32_t)c->col;
    for (bool first = true; s < end; first = false) {
        const char *nl = memchr(s, '\n', (size_t)(end - s)), *stop = nl ? nl : end;
        const char *text = s;
        while (!first && text < stop && *text == ' ')
            text++;
        const char *tail = stop;
        while (tail > text && (tail[-1] == ' ' || tail[-1] == '\t' || tail[-1] == '\r'))
            tail--;
        if (!first) {
            kl_buf_put(b, "\n", 1);
            int32_t at = (int32_t)(text - s) + shift;
            if (text < tail)
                spaces(b, at > 0 ? (uint32_t)at : 0);
        }
        kl_buf_put(b, text, (size_t)(tail - text));
        s = nl ? nl + 1 : end;
    }
}

static void add_line(struct kl_fmt *f, kl_buf *b)
{
    struct kl_fmtline l = {.code = kl_strndup(f->a, kl_buf_str(b), b->n), .ncode = (uint32_t)b->n};
    const char *last = l.code;
    for (const char *s = l.code; *s; s++)
        if (*s == '\n')
            last = s + 1;
    l.width = kl_fmt_columns(last, strlen(last));
    kl_push(f->a, &f->line, l);
    b->n = 0;
}

void kl_fmt_blank(struct kl_fmt *f)
{
    struct kl_fmtline l = {.code = ""};
    kl_push(f->a, &f->line, l);
}

void kl_fmt_comment(struct kl_fmt *f, const struct kl_item *c, uint32_t column)
{
    kl_buf b = {.a = f->a};
    spaces(&b, column);
    put_comment(&b, c, column);
    add_line(f, &b);
}

static uint32_t trimmed(const struct kl_item *c)
{
    uint32_t n = c->n;
    while (n && (c->s[n - 1] == ' ' || c->s[n - 1] == '\t' || c->s[n - 1] == '\r'))
        n--;
    return n;
}

void kl_fmt_trail(struct kl_fmt *f, const struct kl_item *c)
{
    struct kl_fmtline *l = &f->line.v[f->line.n - 1];
    if (!l->cmt && !memchr(c->s, '\n', c->n)) {
        int64_t col = (int64_t)c->col + f->cmt_shift;
        l->cmt = c->s;
        l->ncmt = trimmed(c);
        l->col = col > 0 ? (uint32_t)col : 0;
        return;
    }
    /* a second one, or one of several lines, belongs to the text before it */
    kl_buf b = {.a = f->a};
    kl_buf_put(&b, l->code, l->ncode);
    if (l->cmt) {
        kl_buf_put(&b, "  ", 2);
        kl_buf_put(&b, l->cmt, l->ncmt);
    }
    kl_buf_put(&b, "  ", 2);
    put_comment(&b, c, c->col);
    f->line.n--;
    add_line(f, &b);
}

void kl_fmt_lay(struct kl_fmt *f, uint32_t beg, uint32_t end, uint32_t indent, uint32_t hang)
{
    struct piece *p = kl_new_n(f->a, struct piece, end - beg);
    for (uint32_t i = beg + 1; i < end; i++) {
        const struct kl_item *a = &f->item[i - 1], *b = &f->item[i];
        bool join = b->tk == KL_TK_COMMA || b->tk == KL_TK_SEMI || b->tk == KL_TK_RPAREN ||
                    b->tk == KL_TK_RBRACK || (b->tk == KL_TK_LBRACE && b->role != KL_ROLE_VALUE) ||
                    (a->tk == KL_TK_RBRACE && a->role != KL_ROLE_VALUE && !a->comment);
        p[i - beg].brk = a->line || (b->nl && (!join || a->comment || b->comment));
        p[i - beg].gap = p[i - beg].brk && b->nl > 1;
    }
    for (uint32_t guard = 0; guard < end - beg; guard++) {
        uint32_t bad = columns(f, p, beg, end, indent, hang);
        if (bad == end || !break_line(f, p, beg, end, bad))
            break;
    }
    columns(f, p, beg, end, indent, hang);
    kl_buf b = {.a = f->a};
    for (uint32_t i = beg; i < end; i++) {
        const struct kl_item *t = &f->item[i];
        const struct piece *q = &p[i - beg];
        bool begins = i == beg || q->brk, ends = i + 1 == end || p[i + 1 - beg].brk;
        if (begins) {
            if (q->gap)
                kl_fmt_blank(f);
            spaces(&b, q->col);
            f->cmt_shift = (int32_t)q->col - (int32_t)t->col;
        } else if (blank(&f->item[i - 1], t) && !(t->comment && ends)) {
            spaces(&b, 1);
        }
        if (t->comment && ends && !begins) {
            add_line(f, &b);
            kl_fmt_trail(f, t);
            continue;
        }
        if (t->comment)
            put_comment(&b, t, q->col);
        else
            kl_buf_put(&b, t->s, t->n);
        if (ends)
            add_line(f, &b);
    }
}

/* ---- all lines ---- */

/* Comments at ends of neighbouring lines: where the author had them if they are aligned and fit,
 * else two columns behind the longest line; each on its own if that is too wide. */
static void align(struct kl_fmtline *l, uint32_t n)
{
    uint32_t widest = 0, longest = 0;
    bool same = true;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t w = kl_fmt_columns(l[i].cmt, l[i].ncmt);
        widest = l[i].width > widest ? l[i].width : widest;
        longest = w > longest ? w : longest;
        same &= l[i].col == l[0].col;
    }
    bool keep = same && l[0].col > widest;
    for (uint32_t i = 0; i < n && !keep; i++)
        l[i].col = widest + 2 + longest <= KL_FMT_WIDTH ? widest + 2 : l[i].width + 2;
}

void kl_fmt_text(struct kl_fmt *f, kl_buf *out)
{
    for (uint32_t i = 0; i < f->line.n;) {
        uint32_t n = 0;
        while (i + n < f->line.n && f->line.v[i + n].cmt)
            n++;
        if (n)
            align(&f->line.v[i], n);
        for (uint32_t stop = i + (n ? n : 1); i < stop; i++) {
            const struct kl_fmtline *l = &f->line.v[i];
            kl_buf_put(out, l->code, l->ncode);
            if (l->cmt) {
                spaces(out, l->col > l->width ? l->col - l->width : 1);
                kl_buf_put(out, l->cmt, l->ncmt);
            }
            kl_buf_put(out, "\n", 1);
        }
    }
}
