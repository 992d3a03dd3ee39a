/* emit.c - the function around the steps: names, scalars, control flow. */
#include "gen/c/gen.h"
#include "gen/c/genc.h"

/* ---- lines ---- */

void kl_c_unsupported(const struct gen *g, const char *what)
{
    kl_raise(g->a->env, KILN_E_UNSUPPORTED, "the C back end does not support %s", what);
}

static void start_line(struct gen *g)
{
    if (g->lines && g->loc.beg && g->f->src) {
        kiln_place at = kl_src_place(g->f->src, g->a, g->loc);
        if (at.file) {
            kl_putf(&g->out, "#line %u \"", at.line);
            for (const char *c = at.file; *c; c++)
                kl_putf(&g->out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
            kl_puts(&g->out, "\"\n");
        }
    }
    for (uint32_t i = 0; i < g->indent; i++)
        kl_puts(&g->out, "    ");
}

void kl_c_line(struct gen *g, const char *fmt, ...)
{
    va_list ap;
    start_line(g);
    va_start(ap, fmt);
    kl_puts(&g->out, kl_vprintf(g->a, fmt, ap));
    va_end(ap);
    kl_puts(&g->out, "\n");
}

void kl_c_open(struct gen *g, const char *fmt, ...)
{
    va_list ap;
    start_line(g);
    va_start(ap, fmt);
    const char *head = kl_vprintf(g->a, fmt, ap);
    va_end(ap);
    kl_putf(&g->out, "%s%s{\n", head, *head ? " " : "");
    g->indent++;
}

void kl_c_close(struct gen *g)
{
    g->indent--;
    kl_c_line(g, "}");
}

void kl_c_lines(struct gen *g, const kl_buf *text)
{
    for (const char *s = text->s, *end; s && *s; s = end + 1) {
        end = strchr(s, '\n');
        kl_c_line(g, "%.*s", (int)(end - s), s);
    }
}

void kl_c_comment(struct gen *g, kl_span loc)
{
    g->loc = loc;
    if (!loc.beg || !g->f->src)
        return;
    kiln_place at = kl_src_place(g->f->src, g->a, loc);
    const char *s = at.text;
    if (!s)
        return;
    while (*s == ' ' || *s == '\t')
        s++;
    size_t n = strcspn(s, "\n");
    const char *cut = strstr(s, "//");
    if (cut && (size_t)(cut - s) < n)
        n = (size_t)(cut - s);
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\\'))
        n--;
    kl_buf b = {.a = g->a};
    for (size_t i = 0; i < n; i++) /* nothing that opens or ends a comment */
        kl_buf_put(&b,
                   s[i] == '/' && i && (s[i - 1] == '*') ? " /"
                   : s[i] == '*' && i && s[i - 1] == '/' ? " *"
                                                         : s + i,
                   s[i] == '/' && i && s[i - 1] == '*'   ? 2
                   : s[i] == '*' && i && s[i - 1] == '/' ? 2
                                                         : 1);
    if (n)
        kl_c_line(g, "/* %s */", kl_buf_str(&b));
}

/* ---- names and sizes ---- */

const char *kl_c_temp(struct gen *g, const char *stem)
{
    bool isnew;
    uint32_t *n = kl_map_put(&g->stems, stem, strlen(stem), &isnew);
    *n = isnew ? 1 : *n + 1;
    return kl_printf(g->a, "%s%u", stem, *n);
}

const char *kl_c_load_temp(struct gen *g, kl_val v)
{
    return kl_c_temp(g, kl_printf(g->a, "%s_", g->pname[kl_root(g->f, kl_arg(g->f, v, 0))]));
}

const char *kl_c_size(struct gen *g, uint64_t n)
{
    if (n < G_BIG_DIM)
        return kl_printf(g->a, "%u", (unsigned)n);
    uint32_t i = 0;
    while (i < g->size.n && g->size.v[i] != (int64_t)n)
        i++;
    if (i == g->size.n)
        kl_push(g->a, &g->size, (int64_t)n);
    return kl_printf(g->a, "n%u", i);
}

/* Parameters keep their names unless a name of the text or of C could be meant.  Names of
 * the text end in a digit, behind `_` if they come from a parameter's, or are in the list. */
static const char *param_name(struct gen *g, uint32_t k)
{
    const char *name = g->f->param[k].name;
    /* clang-format off */
    static const char *const taken[] = {
        "i", "j", "k", "l", "p", "at", "from", "to", "left", "part", "end", "rest", "grid",
        "begin", "scratch", "prog", "tile", "level", "pairs", "turn",
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
        "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
        "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch",
        "typedef", "union", "unsigned", "void", "volatile", "while", "asm", "typeof", "bool",
        "true", "false", "nullptr", "constexpr", "alignas", "alignof", "unix", "linux", "main",
    };
    /* clang-format on */
    size_t n = name ? strlen(name) : 0;
    if (n == 0 || !strcmp(name, "_"))
        return kl_printf(g->a, "arg%u_", k);
    char last = name[n - 1];
    bool clash = (last >= '0' && last <= '9') || last == '_' || !strncmp(name, "kl_", 3) ||
                 !strncmp(name, "KL_", 3) || name[0] == '_';
    for (uint32_t i = 0; i < sizeof taken / sizeof *taken; i++)
        clash |= strcmp(name, taken[i]) == 0;
    return clash ? kl_printf(g->a, "%s%s_", name[0] == '_' ? "u" : "", name) : name;
}

/* ---- scalars ---- */

/* Which scalars must be variables: those that more than one thing or something other than a
 * scalar expression uses. */
static void find_named(struct gen *g)
{
    const kl_fn *f = g->f;
    for (uint32_t id = 1; id < f->nins; id++) {
        const struct kl_ins *in = &f->ins[id];
        if (!in->blk.id || !g->val[id].live)
            continue;
        bool expr = kl_ops[in->op].flags & KL_F_EW && g->val[id].one;
        for (uint32_t i = 0; i < in->nargs; i++) {
            struct gval *a = &g->val[kl_arg(f, (kl_val){id}, i).id];
            a->named |= !expr || a->nuse > 1;
        }
    }
}

static void flush(struct gen *g, struct site *s)
{
    kl_c_lines(g, &s->pre[0]);
    s->pre[0] = (kl_buf){.a = g->a};
}

static const char *in_parens(struct gen *g, const char *x)
{
    return strchr(x, ' ') || x[0] == '-' ? kl_printf(g->a, "(%s)", x) : x;
}

static void emit_view(struct gen *g, kl_val v)
{
    const struct kl_type *t = kl_type_of(g->f, v);
    kl_val off = kl_arg(g->f, v, 1);
    const char *base = g->val[kl_arg(g->f, v, 0).id].text;
    int64_t c;
    if (!kl_c_const_of(g->f, off, &c) || c != 0) {
        const char *name = kl_c_temp(g, kl_printf(g->a, "%s_v", g->pname[kl_root(g->f, v)]));
        kl_c_line(g, "%s *const %s = %s + %s;", kl_c_type((enum kl_elem)t->elem), name, base,
                  g->val[off.id].text);
        base = name;
    }
    g->val[v.id].text = base;
}

static void emit_store(struct gen *g, kl_val v)
{
    const struct kl_ins *in = kl_in(g->f, v);
    uint32_t k = 1u + in->attr.access.n, takes = kl_access_values(in);
    struct site s;
    struct map m = {0};
    kl_c_site(&s, g, NULL);
    const char *cond = NULL, *x = NULL, *y = NULL;
    if (takes)
        x = kl_c_value(&s, kl_arg(g->f, v, k++), &m);
    if (takes > 1)
        y = kl_c_value(&s, kl_arg(g->f, v, k++), &m);
    const struct acc *acc = kl_c_access(&s, v, &m);
    const char *in_it = kl_c_condition(&s, acc);
    if (in->attr.access.flags & KL_ACC_MASK)
        cond = kl_c_value(&s, kl_arg(g->f, v, k), &m);
    if (in_it)
        cond = cond ? kl_printf(g->a, "%s & %s", in_it, cond) : in_it;
    kl_c_comment(g, in->loc);
    flush(g, &s);
    if (kl_is_atomic(in->op)) {
        const char *call = kl_c_atomic(g, v, acc->place, x, y);
        if (in->type.id && kl_c_used(g->f, v)) {
            g->val[v.id].text = kl_c_temp(g, "old");
            kl_c_line(g, "const %s %s = %s%s%s%s;",
                      kl_c_local((enum kl_elem)kl_type_of(g->f, v)->elem), g->val[v.id].text,
                      cond ? cond : "", cond ? " ? " : "", call, cond ? " : 0" : "");
            return;
        }
        if (cond)
            kl_c_line(g, "if (%s)", kl_c_bare(g->a, cond));
        kl_c_line(g, "%s%s;", cond ? "    " : "", call);
        return;
    }
    if (cond)
        kl_c_line(g, "if (%s)", kl_c_bare(g->a, cond));
    kl_c_line(g, "%s%s = %s;", cond ? "    " : "", acc->place, kl_c_bare(g->a, x));
}

static void emit_scalar(struct gen *g, kl_val v)
{
    const struct kl_ins *in = kl_in(g->f, v);
    struct gval *x = &g->val[v.id];
    g->loc = in->loc;
    switch (in->op) {
    case KL_OP_view: emit_view(g, v); return;
    case KL_OP_store:
    case KL_OP_atomic:
    case KL_OP_atomic_load:
    case KL_OP_atomic_store: emit_store(g, v); return;
    case KL_OP_program_id: x->text = kl_printf(g->a, "pid%d", (int)in->attr.index); return;
    case KL_OP_num_programs: x->text = kl_printf(g->a, "grid[%d]", (int)in->attr.index); return;
    case KL_OP_num_sms: x->text = "grid[3]"; return;
    default: break;
    }
    struct site s;
    struct map m = {0};
    kl_c_site(&s, g, NULL);
    const char *text = kl_c_compute(&s, v, &m);
    flush(g, &s);
    bool plain = !strpbrk(text, " [(") || in->op == KL_OP_const;
    bool reads = in->op == KL_OP_load || in->op == KL_OP_extract;
    if (plain || (!x->named && !reads && !strchr(text, '?') && strlen(text) <= 48)) {
        x->text = in_parens(g, text);
        return;
    }
    x->text = in->op == KL_OP_load ? kl_c_load_temp(g, v) : kl_c_temp(g, "s");
    kl_c_line(g, "const %s %s = %s;", kl_c_local((enum kl_elem)kl_type_of(g->f, v)->elem), x->text,
              text);
}

/* ---- control flow ---- */

/* Hand the scalars that a block yields to variables; all are read first. */
static void assign(struct gen *g, kl_blk blk, const char *const *to)
{
    const kl_fn *f = g->f;
    kl_val y = kl_last(f, blk);
    uint32_t n = kl_in(f, y)->nargs, moves = 0;
    const char **x = kl_new_n(g->a, const char *, n + 1u);
    for (uint32_t i = 0; i < n; i++) {
        kl_val a = kl_arg(f, y, i);
        if (!to[i] || strcmp(to[i], g->val[a.id].text) == 0)
            continue;
        x[i] = g->val[a.id].text;
        moves++;
    }
    for (uint32_t i = 0; i < n && moves > 1; i++) {
        if (!x[i])
            continue;
        const struct kl_type *t = kl_type_of(f, kl_arg(f, y, i));
        const char *tmp = kl_c_temp(g, "y");
        kl_c_line(g, "const %s %s = %s;", kl_c_local((enum kl_elem)t->elem), tmp, x[i]);
        x[i] = tmp;
    }
    for (uint32_t i = 0; i < n; i++)
        if (x[i])
            kl_c_line(g, "%s = %s;", to[i], x[i]);
}

static void name_params(struct gen *g, kl_blk blk, uint32_t skip, const char *const *to)
{
    uint32_t k = 0;
    kl_each_ins (g->f, blk, v) {
        if (kl_in(g->f, v)->op != KL_OP_param)
            break;
        if (k >= skip && to[k - skip])
            g->val[v.id].text = to[k - skip];
        k++;
    }
}

static void emit_region(struct gen *g, const struct step *st)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, st->v);
    uint32_t n = kl_nresults(f, st->v), skip = in->op == KL_OP_for ? 3 : 0, k = 0;
    const char **to = kl_new_n(g->a, const char *, n + 1u);
    g->loc = in->loc;
    for (uint32_t id = in->next; k < n; id = f->ins[id].next, k++) {
        struct gval *r = &g->val[id];
        if (!r->one)
            continue;
        const char *type = kl_c_local((enum kl_elem)kl_type_of(f, (kl_val){id})->elem);
        to[k] = r->text = kl_c_temp(g, "s");
        if (in->op == KL_OP_if)
            kl_c_line(g, "%s %s;", type, to[k]);
        else
            kl_c_line(g, "%s %s = %s;", type, to[k], g->val[kl_arg(f, st->v, skip + k).id].text);
    }
    kl_blk own[2];
    uint32_t nblk = kl_blocks(f, st->v, own);
    for (uint32_t i = 0; i < nblk; i++)
        name_params(g, own[i], i == 0 && in->op == KL_OP_for, to);
    switch (in->op) {
    case KL_OP_for: {
        kl_val iv = {f->blk[own[0].id].first};
        const char *name = g->val[iv.id].text = kl_c_temp(g, "k"), *x[3];
        for (uint32_t i = 0; i < 3; i++)
            x[i] = g->val[kl_arg(f, st->v, i).id].text;
        kl_c_open(g, "for (%s %s = %s; %s < %s; %s += %s)",
                  kl_c_local((enum kl_elem)kl_type_of(f, iv)->elem), name, x[0], name, x[1], name,
                  x[2]);
        kl_c_steps(g, &st->sub[0]);
        assign(g, own[0], to);
        kl_c_close(g);
        return;
    }
    case KL_OP_while:
        kl_c_open(g, "for (;;)");
        kl_c_steps(g, &st->sub[0]);
        kl_c_line(g, "if (!%s)", in_parens(g, g->val[kl_arg(f, kl_last(f, own[0]), 0).id].text));
        kl_c_line(g, "    break;");
        kl_c_steps(g, &st->sub[1]);
        assign(g, own[1], to);
        kl_c_close(g);
        return;
    default:
        for (uint32_t i = 0; i < 2; i++) {
            if (i == 0)
                kl_c_open(g, "if (%s)", kl_c_bare(g->a, g->val[kl_arg(f, st->v, 0).id].text));
            else if (st->sub[1].n || n)
                kl_c_open(g, "else");
            else
                return;
            kl_c_steps(g, &st->sub[i]);
            assign(g, own[i], to);
            kl_c_close(g);
        }
    }
}

void kl_c_steps(struct gen *g, const steps *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const struct step *s = list->v[i];
        switch (s->kind) {
        case ST_SCALAR: emit_scalar(g, s->v); break;
        case ST_NEST: kl_c_nest(g, s); break;
        case ST_REGION: emit_region(g, s); break;
        case ST_COPY:
            if (kl_c_buf_root(g, s->src) != kl_c_buf_root(g, s->dst)) {
                const struct gbuf *b = &g->buf.v[s->dst];
                kl_c_line(g, "__builtin_memcpy(%s, %s, (u64)%s * sizeof(%s));",
                          kl_c_bufname(g, s->dst), kl_c_bufname(g, s->src), kl_c_size(g, b->count),
                          kl_c_type((enum kl_elem)b->elem));
            }
            break;
        default: kl_c_helper(g, s); break;
        }
    }
}

/* ---- the function ---- */

static void name_all(struct gen *g)
{
    const kl_fn *f = g->f;
    g->pname = kl_new_n(g->a, const char *, f->nparam + 1u);
    for (uint32_t i = 0; i < f->nparam; i++)
        g->pname[i] = param_name(g, i);
    kl_each_ins (f, KL_BODY, v) {
        if (kl_in(f, v)->op != KL_OP_param)
            break;
        g->val[v.id].text = g->pname[kl_in(f, v)->attr.index];
    }
    uint32_t n = 0;
    for (uint32_t b = 1; b < g->buf.n; b++)
        if (!g->buf.v[b].same)
            g->buf.v[b].name = kl_printf(g->a, "tile%u", n++);
}

static void put_param(struct gen *g, kl_buf *b, uint32_t i)
{
    const struct kl_param *q = &g->f->param[i];
    enum kl_elem e = (enum kl_elem)q->elem;
    const char *name = g->pname[i], *t = kl_c_type(e);
    if (q->use == KL_P_ARRAY)
        kl_putf(b, "    %s *const %s = (%s *)p[%u];\n", t, name, t, i);
    else if (e == KL_f32)
        kl_putf(b, "    const f32 %s = kl_bitcast_f32_u32((u32)p[%u]);\n", name, i);
    else if (e == KL_f64)
        kl_putf(b, "    const f64 %s = kl_bitcast_f64_u64(p[%u]);\n", name, i);
    else if (e == KL_bool)
        kl_putf(b, "    const b1 %s = (p[%u] & 0xff) != 0;\n", name, i);
    else
        kl_putf(b, "    const %s %s = (%s)p[%u];\n", t, name, t, i);
}

/* Parameters, sizes and buffers, in front of the loop over the programs. */
static void put_head(struct gen *g, kl_buf *b, const char *symbol)
{
    const kl_fn *f = g->f;
    kl_putf(b,
            "__attribute__((visibility(\"default\")))\n"
            "void %s(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)\n{\n",
            symbol);
    kl_each_ins (f, KL_BODY, v) {
        if (kl_in(f, v)->op != KL_OP_param)
            break;
        if (g->val[v.id].live)
            put_param(g, b, (uint32_t)kl_in(f, v)->attr.index);
    }
    kl_puts(b, kl_buf_str(&g->tables));
    for (uint32_t i = 0; i < g->size.n; i++) {
        kl_putf(b, "    const i32 n%u = (i32)p[%u];\n", i, f->nparam + g->extra.n);
        kl_push(g->a, &g->extra, g->size.v[i]);
    }
    for (uint32_t i = 1; i < g->buf.n; i++) {
        const struct gbuf *x = &g->buf.v[i];
        const char *t = kl_c_type((enum kl_elem)x->elem);
        if (x->same)
            continue;
        kl_putf(b, "    %s *const %s = (%s *)(scratch + p[%u]);\n", t, x->name, t,
                f->nparam + g->extra.n);
        kl_push(g->a, &g->extra, (int64_t)x->offset);
    }
    kl_puts(b, "    for (i64 prog = begin; prog < end; prog++) {\n");
    static const char *const pid[] = {"prog % grid[0]", "prog / grid[0] % grid[1]",
                                      "prog / grid[0] / grid[1]"};
    bool used[3] = {false};
    for (uint32_t id = 1; id < f->nins; id++)
        if (f->ins[id].blk.id && f->ins[id].op == KL_OP_program_id && g->val[id].live)
            used[f->ins[id].attr.index] = true;
    for (uint32_t a = 0; a < 3; a++)
        if (used[a])
            kl_putf(b, "        const i64 pid%u = %s;\n", a, pid[a]);
}

void kl_c_emit(kl_buf *b, const kl_fn *f, const char *symbol, bool lines, kl_cinfo *out)
{
    struct gen g = {.f = f, .a = f->a, .lines = lines, .out.a = f->a, .tables.a = f->a, .indent = 2, .stems.a = f->a};
    g.range = kl_ranges(f);
    g.val = kl_new_n(g.a, struct gval, f->nins);
    kl_c_plan(&g);
    out->scratch = kl_c_place(&g);
    name_all(&g);
    find_named(&g);
    kl_c_steps(&g, &g.body);
    put_head(&g, b, symbol);
    kl_puts(b, kl_buf_str(&g.out));
    kl_puts(b, "    }\n}\n\n");
    out->extra = g.extra.v;
    out->nextra = g.extra.n;
}
