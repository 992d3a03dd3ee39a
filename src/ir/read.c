/* read.c - IR from text.
 *
 * A recursive-descent reader of the form that print.c writes (grammar in docs/ir.md).
 * White space and `;` comments mean nothing.  Value names are any word behind %, each
 * defined once.  What is read is verified: text that parses but is not sound is refused
 * in the same way, so a reader's caller always holds sound IR. */
#include "ir/ir.h"
#include "ir/text.h"

enum tok { T_EOF, T_VAL, T_WORD, T_NUM, T_PUNCT };

struct reader {
    kl_fn *f;
    kl_arena *a;
    kl_diags *d;
    const char *text, *p, *end;
    uint32_t base; /* offset of text[0] in the source map */
    kl_map names;
    enum tok kind;
    const char *s; /* the token */
    uint32_t n;
    uint32_t depth;
};

_Noreturn static void __attribute__((format(printf, 2, 3)))
fail(struct reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vprintf(r->a, fmt, ap);
    va_end(ap);
    uint32_t at = r->base + (uint32_t)(r->s - r->text);
    kl_diag(r->d, KL_K0901, (kl_span){at, at + (r->n ? r->n : 1)}, "%s", text);
    kl_raise(r->a->env, KILN_E_COMPILE, "malformed IR text: %s", text);
}

/* ---- tokens ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void next(struct reader *r)
{
    const char *p = r->p;
    while (p < r->end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r' || *p == ';')) {
        if (*p == ';')
            while (p < r->end && *p != '\n')
                p++;
        else
            p++;
    }
    r->s = p;
    r->kind = T_EOF;
    if (p == r->end) {
        r->p = p;
        r->n = 0;
        return;
    }
    if (*p == '%') {
        r->kind = T_VAL;
        for (p++; p < r->end && is_word(*p);)
            p++;
    } else if (is_digit(*p) || (*p == '-' && p + 1 < r->end && (is_digit(p[1]) || p[1] == 'i'))) {
        r->kind = T_NUM;
        for (p++; p < r->end && (is_word(*p) || ((*p == '-' || *p == '+') && p[-1] == 'p'));)
            p++;
    } else if (is_word(*p)) {
        r->kind = T_WORD;
        while (p < r->end && is_word(*p))
            p++;
    } else {
        r->kind = T_PUNCT;
        p++;
    }
    r->n = (uint32_t)(p - r->s);
    r->p = p;
}

static bool is(const struct reader *r, const char *s)
{
    return r->n == strlen(s) && memcmp(r->s, s, r->n) == 0;
}

static bool accept(struct reader *r, const char *s)
{
    if (!is(r, s))
        return false;
    next(r);
    return true;
}

static void expect(struct reader *r, const char *s)
{
    if (!accept(r, s))
        fail(r, r->kind == T_EOF ? "the text ends where `%s` is missing"
                                 : "`%s` is missing before `%.*s`", s, (int)r->n, r->s);
}

/* ---- numbers ---- */

static bool parse_u64(const char *s, uint32_t n, uint64_t *out)
{
    uint64_t v = 0;
    uint32_t base = 10, i = 0;
    if (n > 2 && s[0] == '0' && s[1] == 'x')
        base = 16, i = 2;
    if (i == n)
        return false;
    for (; i < n; i++) {
        char c = s[i];
        uint32_t x = is_digit(c)            ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                                            : 99;
        if (x >= base || v > (UINT64_MAX - x) / base)
            return false;
        v = v * base + x;
    }
    *out = v;
    return true;
}

/* 0x1.8p-20: up to 53 significant bits, exactly. */
static bool parse_hexfloat(const char *s, uint32_t n, double *out)
{
    uint64_t man = 0;
    int exp = 0, e = 0;
    uint32_t i = 2;
    bool dot = false, neg = false;
    for (; i < n && s[i] != 'p'; i++) {
        char c = s[i];
        if (c == '.' && !dot) {
            dot = true;
            continue;
        }
        if (man >> 56 || !(is_digit(c) || (c >= 'a' && c <= 'f')))
            return false;
        man = man << 4 | (uint64_t)(is_digit(c) ? c - '0' : c - 'a' + 10);
        exp -= dot ? 4 : 0;
    }
    if (i == n || ++i == n)
        return false;
    if (s[i] == '-' || s[i] == '+')
        neg = s[i++] == '-';
    for (; i < n; i++) {
        if (!is_digit(s[i]) || e > 5000)
            return false;
        e = e * 10 + (s[i] - '0');
    }
    exp += neg ? -e : e;
    double x = (double)man;
    if ((uint64_t)x != man)
        return false;
    for (; exp > 0 && x < 0x1p1000; exp--) /* exact until the last step, and there if it can be */
        x *= 2;
    for (; exp < 0 && x >= 0x1p-1021; exp++)
        x *= 0.5;
    for (; exp < 0 && x > 0; exp++) { /* subnormal: a bit that falls off is an error */
        double half = x * 0.5;
        if (half * 2 != x)
            return false;
        x = half;
    }
    if (exp > 0 && x > 0) {
        for (; exp > 0 && exp < 30; exp--)
            x *= 2;
        if (exp || x - x != 0)
            return false;
    }
    *out = x;
    return true;
}

/* 12.5: a quotient of two exact doubles, so rounded once. */
static bool parse_decimal(const char *s, uint32_t n, double *out)
{
    uint64_t man = 0;
    double scale = 1;
    bool dot = false;
    for (uint32_t i = 0; i < n; i++) {
        if (s[i] == '.' && !dot) {
            dot = true;
            continue;
        }
        if (!is_digit(s[i]) || man > (UINT64_C(1) << 53) / 10 - 1)
            return false;
        man = man * 10 + (uint64_t)(s[i] - '0');
        scale *= dot ? 10 : 1;
    }
    *out = (double)man / scale;
    return true;
}

static int64_t read_int(struct reader *r)
{
    bool neg = r->n && r->s[0] == '-';
    uint64_t v;
    if (r->kind != T_NUM || !parse_u64(r->s + neg, r->n - neg, &v) ||
        v > (uint64_t)INT64_MAX + (uint64_t)neg)
        fail(r, "an integer is missing");
    next(r);
    return neg ? (int64_t)(0 - v) : (int64_t)v;
}

static uint32_t read_u32(struct reader *r, uint32_t max)
{
    const char *s = r->s;
    uint32_t n = r->n;
    int64_t v = read_int(r);
    if (v < 0 || v > max) {
        r->s = s, r->n = n;
        fail(r, "%lld is not in 0 to %u", (long long)v, max);
    }
    return (uint32_t)v;
}

/* The bits of a constant written as s. */
static bool const_bits(const char *s, uint32_t n, enum kl_elem e, uint64_t *out)
{
    bool neg = n && s[0] == '-';
    const char *t = s + neg;
    uint32_t m = n - neg;
    uint64_t v;
    if (kl_elems[e].kind == KL_KIND_BOOL) {
        *out = m == 4;
        return !neg &&
               ((m == 4 && memcmp(t, "true", 4) == 0) || (m == 5 && memcmp(t, "false", 5) == 0));
    }
    if (!kl_is_float(e)) {
        if (!parse_u64(t, m, &v) ||
            (v > (uint64_t)INT64_MAX + neg && kl_elems[e].kind == KL_KIND_SINT) ||
            (neg && v && kl_elems[e].kind == KL_KIND_UINT))
            return false;
        *out = kl_canon(e, neg ? 0 - v : v);
        return *out == (neg ? 0 - v : v);
    }
    double d = 0;
    if (m == 3 && memcmp(t, "inf", 3) == 0)
        d = kl_bits_f64(UINT64_C(0x7ff) << 52);
    else if (m > 2 && t[1] == 'x' ? !parse_hexfloat(t, m, &d) : !parse_decimal(t, m, &d))
        return false;
    d = neg ? -d : d;
    if (kl_elems[e].bytes == 1) /* infinities where there are some */
        return kl_float_number(e, (float)d, d, out);
    *out = kl_convert(e, KL_f64, kl_f64_bits(d));
    return true;
}

/* ---- types and values ---- */

static enum kl_elem read_elem(struct reader *r)
{
    enum kl_elem e = r->kind == T_WORD ? kl_elem_by_name(r->s, r->n) : KL_elem_none;
    if (!e)
        fail(r, "an element type is missing");
    next(r);
    return e;
}

static kl_typ read_type(struct reader *r)
{
    if (accept(r, "array")) {
        expect(r, "<");
        enum kl_elem e = read_elem(r);
        expect(r, ",");
        uint32_t rank = read_u32(r, KL_MAX_DIMS);
        expect(r, ">");
        return kl_array(r->f, e, rank);
    }
    enum kl_elem e = read_elem(r);
    uint32_t dim[KL_MAX_RANK], rank = 0;
    while (accept(r, "[")) {
        if (rank < KL_MAX_RANK)
            dim[rank++] = read_u32(r, UINT32_MAX);
        else
            fail(r, "a tile has at most %d axes", KL_MAX_RANK);
        expect(r, "]");
    }
    return kl_tile(r->f, e, rank, dim);
}

static kl_val read_val(struct reader *r)
{
    if (r->kind != T_VAL)
        fail(r, "a value is missing");
    const uint32_t *id = kl_map_get(&r->names, r->s, r->n);
    if (!id)
        fail(r, "%.*s is not defined before this place", (int)r->n, r->s);
    next(r);
    return (kl_val){*id};
}

struct vals { KL_VEC(kl_val) v; };

static void read_vals(struct reader *r, struct vals *list)
{
    do {
        kl_val v = read_val(r);
        kl_push(r->a, &list->v, v);
    } while (accept(r, ","));
}

struct name { const char *s; uint32_t n; };
struct names { KL_VEC(struct name) v; };

static void define(struct reader *r, struct name at, kl_val v)
{
    bool isnew;
    uint32_t *id = kl_map_put(&r->names, at.s, at.n, &isnew);
    if (!isnew || at.n < 2) {
        r->s = at.s, r->n = at.n;
        fail(r, at.n < 2 ? "a value needs a name" : "%.*s is defined twice", (int)at.n, at.s);
    }
    *id = v.id;
}

/* ---- instructions ---- */

static void read_stmts(struct reader *r, kl_build *b);

static void read_block(struct reader *r, kl_blk blk)
{
    if (++r->depth > 200)
        fail(r, "blocks are nested too deep");
    kl_build b = {.f = r->f, .blk = blk};
    expect(r, "{");
    read_stmts(r, &b);
    expect(r, "}");
    r->depth--;
}

static void read_params(struct reader *r, kl_blk blk)
{
    kl_build b = {.f = r->f, .blk = blk};
    expect(r, "(");
    while (r->kind == T_VAL) {
        struct name at = {r->s, r->n};
        next(r);
        expect(r, ":");
        define(r, at, kl_block_param(&b, read_type(r)));
        if (!accept(r, ","))
            break;
    }
    expect(r, ")");
}

/* Operands of load, store, inside, extract, insert and atomics; counts go to dim, to be compared. */
struct access { struct vals arg; union kl_attr attr; uint32_t dim[KL_MAX_DIMS], rank; };

/* One of the words that may stand here, or `none`. */
static uint32_t read_choice(struct reader *r, const char *const *words, uint32_t n, uint32_t none)
{
    for (uint32_t i = 0; i < n; i++)
        if (accept(r, words[i]))
            return i;
    return none;
}

static uint8_t read_how(struct reader *r, uint32_t op)
{
    uint32_t rmw = 0, order, scope;
    if (op == KL_OP_atomic && (rmw = read_choice(r, kl_rmw_names, KL_NRMW, KL_NRMW)) == KL_NRMW)
        fail(r, "add, min, max, and, or, xor, xchg or cas is missing");
    order = read_choice(r, kl_order_names, KL_NORDER, KL_RELAXED);
    scope = read_choice(r, kl_reach_names, KL_NSCOPE, KL_SC_DEVICE);
    return KL_HOW(rmw, order, scope);
}

static void read_access(struct reader *r, struct access *x, uint32_t op)
{
    int64_t step[KL_MAX_DIMS];
    uint32_t n = 0, sections = 0;
    const struct kl_type *index = NULL;
    if (kl_is_atomic((uint16_t)op))
        x->attr.access.how = read_how(r, op);
    kl_val v = read_val(r);
    kl_push(r->a, &x->arg.v, v);
    while (accept(r, "[")) {
        if (n == KL_MAX_DIMS)
            fail(r, "an access has at most %d subscripts", KL_MAX_DIMS);
        v = read_val(r);
        kl_push(r->a, &x->arg.v, v);
        step[n] = 0;
        const struct kl_type *t = kl_type_of(r->f, v);
        if (t->kind == KL_T_TILE && t->rank) {
            index = t;
            x->dim[x->rank++] = t->dim[0];
        } else if (accept(r, ":")) {
            x->dim[x->rank++] = read_u32(r, UINT32_MAX);
            step[n] = 1;
            sections++;
            if (accept(r, ":") && (step[n] = read_int(r)) == 0)
                fail(r, "a step of 0");
        }
        n++;
        expect(r, "]");
    }
    x->attr.access.at = kl_aux_add(r->f, step, n);
    x->attr.access.n = (uint16_t)n;
    if (index && !sections) { /* their shape is that of the tile */
        x->rank = index->rank;
        memcpy(x->dim, index->dim, sizeof index->dim);
    }
    const struct kl_ins in = {.op = (uint16_t)op, .attr = x->attr};
    for (uint32_t i = kl_access_values(&in); i > 0; i--) {
        expect(r, ",");
        v = read_val(r);
        kl_push(r->a, &x->arg.v, v);
    }
    if (accept(r, "fill")) {
        v = read_val(r);
        kl_push(r->a, &x->arg.v, v);
        x->attr.access.flags |= KL_ACC_FILL;
    }
    if (accept(r, "mask")) {
        v = read_val(r);
        kl_push(r->a, &x->arg.v, v);
        x->attr.access.flags |= KL_ACC_MASK;
    }
    if (accept(r, "evict_first"))
        x->attr.access.flags |= KL_ACC_EVICT_FIRST;
    else if (accept(r, "evict_last"))
        x->attr.access.flags |= KL_ACC_EVICT_LAST;
}

/* The counts of the sections must be the sizes of the tile. */
static void check_counts(struct reader *r, const struct access *x, const struct kl_type *t)
{
    if (t->kind != KL_T_TILE || t->rank != x->rank ||
        memcmp(t->dim, x->dim, x->rank * sizeof *x->dim) != 0)
        fail(r, "the sections do not give the sizes of the tile");
}

static uint32_t find_op(struct reader *r, bool *fast)
{
    uint32_t n = r->n;
    *fast = n > 5 && memcmp(r->s + n - 5, ".fast", 5) == 0;
    n -= *fast ? 5 : 0;
    for (uint32_t op = 1; r->kind == T_WORD && op < KL_NOP; op++)
        if (strlen(kl_ops[op].name) == n && memcmp(kl_ops[op].name, r->s, n) == 0)
            return op;
    fail(r, "`%.*s` is not an operation", (int)r->n, r->s);
}

struct pending { /* a statement while it is read */
    uint32_t op;
    struct vals arg;
    union kl_attr attr;
    struct access x;
    struct name lit; /* const: the text of its value */
    uint64_t litbits;
    bool isbits;
};

static void read_literal(struct reader *r, struct pending *q)
{
    q->lit = (struct name){r->s, r->n};
    if (is(r, "nan") || is(r, "bits")) { /* bits as they are */
        bool nan = is(r, "nan");
        next(r);
        q->isbits = true;
        q->litbits = UINT64_MAX; /* plain nan: the default one of the type */
        if (is(r, "(") || !nan) {
            expect(r, "(");
            if (!parse_u64(r->s, r->n, &q->litbits))
                fail(r, "bits are missing");
            next(r);
            expect(r, ")");
        }
        return;
    }
    if (r->kind != T_NUM && r->kind != T_WORD)
        fail(r, "a constant is missing");
    next(r);
}

static void finish_literal(struct reader *r, struct pending *q, kl_typ type)
{
    enum kl_elem e = (enum kl_elem)r->f->type[type.id].elem;
    bool ok = r->f->type[type.id].kind == KL_T_TILE;
    if (q->isbits && q->litbits == UINT64_MAX)
        q->litbits = kl_convert(e, KL_f64, UINT64_C(0x7ff8) << 48);
    if (q->isbits)
        ok = ok && kl_is_float(e) && kl_canon(e, q->litbits) == q->litbits;
    else
        ok = ok && const_bits(q->lit.s, q->lit.n, e, &q->litbits);
    if (!ok) {
        r->s = q->lit.s, r->n = q->lit.n;
        fail(r, "%.*s is not a constant of type %s", (int)r->n, r->s, kl_elems[e].name);
    }
    q->attr.bits = q->litbits;
}

/* What stands between the name and the type; mirrors put_operands of print.c. */
static void read_operands(struct reader *r, struct pending *q)
{
    const struct kl_opinfo *row = &kl_ops[q->op];
    switch (row->attr) {
    case KL_A_BITS: read_literal(r, q); return;
    case KL_A_INDEX:
        if (!*row->sig) {
            q->attr.index = read_int(r);
            return;
        }
        read_vals(r, &q->arg);
        expect(r, "axis");
        q->attr.index = read_u32(r, KL_MAX_RANK);
        return;
    case KL_A_ACCESS:
        read_access(r, &q->x, q->op);
        q->arg = q->x.arg;
        q->attr = q->x.attr;
        return;
    case KL_A_AUX: {
        KL_VEC(int64_t) p = {0};
        if (!is(r, "("))
            read_vals(r, &q->arg);
        expect(r, "(");
        while (r->kind == T_NUM && p.n < UINT16_MAX) {
            int64_t x = read_int(r);
            kl_push(r->f->a, &p, x);
            if (!accept(r, ","))
                break;
        }
        expect(r, ")");
        q->attr.aux.at = kl_aux_add(r->f, p.v, p.n);
        q->attr.aux.n = (uint16_t)p.n;
        return;
    }
    case KL_A_RED: {
        bool fast;
        q->attr.red.op = (uint16_t)find_op(r, &fast);
        next(r);
        read_vals(r, &q->arg);
        expect(r, "axis");
        q->attr.red.axis = (uint8_t)read_u32(r, KL_MAX_RANK);
        return;
    }
    case KL_A_REDFN:
        read_vals(r, &q->arg);
        expect(r, "axis");
        q->attr.redfn.axis = (uint8_t)read_u32(r, KL_MAX_RANK);
        q->attr.redfn.commutative = accept(r, "commutative");
        q->attr.redfn.blk = kl_blk_new(r->f);
        return;
    case KL_A_LOOP:
        read_vals(r, &q->arg);
        if (q->arg.v.n != 3)
            fail(r, "a loop has lo, hi, step");
        if (accept(r, "unroll"))
            q->attr.loop.unroll = read_u32(r, (1u << 20) - 1) & ((1u << 20) - 1);
        if (accept(r, "pipeline"))
            q->attr.loop.pipeline = read_u32(r, (1u << 12) - 1) & ((1u << 12) - 1);
        if (accept(r, "carry"))
            read_vals(r, &q->arg);
        q->attr.loop.blk = kl_blk_new(r->f);
        return;
    case KL_A_BLOCKS:
        if (r->kind == T_VAL)
            read_vals(r, &q->arg);
        q->attr.blk[0] = kl_blk_new(r->f);
        q->attr.blk[1] = kl_blk_new(r->f);
        return;
    default: break;
    }
    if (r->kind == T_VAL)
        read_vals(r, &q->arg);
    if (q->op == KL_OP_view) {
        for (int i = 0; i < 2; i++) { /* extents, strides */
            if (i > 0)
                expect(r, "stride");
            expect(r, "[");
            if (!is(r, "]"))
                read_vals(r, &q->arg);
            expect(r, "]");
        }
    }
}

/* Refuse what kl_emit takes for a broken invariant. */
static void check_operands(struct reader *r, const struct pending *q, kl_typ type)
{
    const struct kl_opinfo *row = &kl_ops[q->op];
    uint32_t n = q->arg.v.n;
    if (n > 4000)
        fail(r, "%u operands are too many", n);
    if (row->res == KL_R_SAME && n == 0)
        fail(r, "%s needs operands", row->name);
    if (row->flags & KL_F_EW && n != row->nargs)
        fail(r, "%s has %u operands, needs %u", row->name, n, row->nargs);
    for (uint32_t i = 0; i < n && row->flags & KL_F_EW; i++)
        if (kl_type_of(r->f, q->arg.v.v[i])->kind != KL_T_TILE)
            fail(r, "operand %u of %s is not a tile", i, row->name);
    if (row->attr == KL_A_ACCESS && row->res == KL_R_GIVEN)
        check_counts(r, &q->x, &r->f->type[type.id]);
    if (q->op == KL_OP_store || q->op == KL_OP_insert || q->op == KL_OP_atomic_store)
        check_counts(r, &q->x, kl_type_of(r->f, q->arg.v.v[1 + q->x.attr.access.n]));
}

static void read_regions(struct reader *r, struct pending *q)
{
    kl_blk own[2] = {{0}, {0}};
    uint32_t n = 1;
    if (q->op == KL_OP_for)
        own[0] = q->attr.loop.blk;
    else if (kl_ops[q->op].attr == KL_A_REDFN)
        own[0] = q->attr.redfn.blk;
    else
        own[0] = q->attr.blk[0], own[1] = q->attr.blk[1], n = 2;
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0)
            expect(r, q->op == KL_OP_if ? "else" : "do");
        if (q->op != KL_OP_if)
            read_params(r, own[i]);
        read_block(r, own[i]);
    }
}

static void read_results(struct reader *r, kl_build *b, kl_val v, const struct names *left)
{
    const struct kl_ins *in = kl_in(r->f, v);
    kl_val y = in->op == KL_OP_if ? kl_last(r->f, in->attr.blk[0]) : v;
    uint32_t skip = in->op == KL_OP_for ? 3 : 0, n = y.id ? kl_in(r->f, y)->nargs : 0;
    if (n < skip || n - skip != left->v.n)
        fail(r, "%u names for %u results", left->v.n, n < skip ? 0 : n - skip);
    for (uint32_t i = 0; i < left->v.n; i++)
        define(r, left->v.v[i],
               kl_result(b, v, i, kl_in(r->f, kl_arg(r->f, y, skip + i))->type));
}

/* Of a fold of several tiles: the type of each follows from its operand. */
static void read_folds(struct reader *r, kl_build *b, kl_val v, const struct names *left)
{
    uint32_t n = kl_in(r->f, v)->nargs, axis = kl_in(r->f, v)->attr.redfn.axis;
    if (n != left->v.n)
        fail(r, "%u names for %u results", left->v.n, n);
    for (uint32_t i = 0; i < n; i++) {
        struct kl_type t = *kl_type_of(r->f, kl_arg(r->f, v, i));
        if (t.kind != KL_T_TILE || axis >= t.rank)
            fail(r, "operand %u has no axis %u", i, axis);
        if (kl_in(r->f, v)->op == KL_OP_reduce_fn)
            t.dim[axis] = 1;
        define(r, left->v.v[i],
               kl_result(b, v, i, kl_tile(r->f, (enum kl_elem)t.elem, t.rank, t.dim)));
    }
}

static void read_stmt(struct reader *r, kl_build *b)
{
    struct names left = {0};
    struct pending q = {0};
    const char *beg = r->s;
    if (r->kind == T_VAL) {
        do {
            if (r->kind != T_VAL)
                fail(r, "a name is missing");
            struct name at = {r->s, r->n};
            kl_push(r->a, &left.v, at);
            next(r);
        } while (accept(r, ","));
        expect(r, "=");
    }
    bool fast;
    q.op = find_op(r, &fast);
    const struct kl_opinfo *row = &kl_ops[q.op];
    if (q.op == KL_OP_param || q.op == KL_OP_result)
        fail(r, "`%s` is not written as an instruction", row->name);
    if (fast && !(row->flags & KL_F_FAST))
        fail(r, "%s has no fast form", row->name);
    next(r);
    q.attr.bits = fast;
    read_operands(r, &q);

    kl_typ type = {0};
    bool several = row->attr == KL_A_REDFN && q.arg.v.n > 1;
    if (row->res != KL_R_NONE && !several) {
        expect(r, ":");
        type = read_type(r);
        if (q.op == KL_OP_const)
            finish_literal(r, &q, type);
    }
    check_operands(r, &q, type);
    if (row->flags & KL_F_REGION)
        read_regions(r, &q);

    uint32_t off = r->base + (uint32_t)(beg - r->text);
    b->loc = (kl_span){off, r->base + (uint32_t)(r->s - r->text)};
    while (b->loc.end > off + 1 && (unsigned char)r->text[b->loc.end - 1 - r->base] <= ' ')
        b->loc.end--;
    kl_val v = kl_emit(b, (enum kl_op)q.op, type, q.arg.v.v, q.arg.v.n, q.attr);
    if (type.id && kl_in(r->f, v)->type.id != type.id) {
        kl_buf t = {.a = r->a};
        kl_put_type(&t, kl_type_of(r->f, v));
        fail(r, "%s gives %s here", row->name, kl_buf_str(&t));
    }
    if (several) {
        read_folds(r, b, v, &left);
    } else if (row->res == KL_R_NONE && row->flags & KL_F_REGION) {
        read_results(r, b, v, &left);
    } else {
        if (left.v.n != (type.id != 0))
            fail(r, type.id ? "%s has one result" : "%s has no result", row->name);
        if (left.v.n)
            define(r, left.v.v[0], v);
    }
}

static void read_stmts(struct reader *r, kl_build *b)
{
    while (r->kind == T_VAL || r->kind == T_WORD)
        read_stmt(r, b);
}

/* ---- the function ---- */

static void read_head(struct reader *r)
{
    kl_build b = {.f = r->f, .blk = KL_BODY};
    expect(r, "(");
    while (r->kind == T_VAL) {
        struct kl_param p = {.decl = (uint16_t)r->f->nparam};
        struct name at = {r->s, r->n};
        next(r);
        expect(r, ":");
        kl_typ t = read_type(r);
        p.use = r->f->type[t.id].kind == KL_T_ARRAY ? KL_P_ARRAY : KL_P_SCALAR;
        p.elem = r->f->type[t.id].elem;
        p.rank = r->f->type[t.id].rank;
        if (r->kind != T_WORD)
            fail(r, "the name of the parameter is missing");
        p.name = kl_strndup(r->a, r->s, r->n);
        next(r);
        for (;;) {
            if (accept(r, "const"))
                p.isconst = true;
            else if (accept(r, "written"))
                p.written = true;
            else if (accept(r, "decl"))
                expect(r, "="), p.decl = (uint16_t)read_u32(r, UINT16_MAX);
            else
                break;
        }
        kl_param_add(r->f, p);
        define(r, at, kl_block_param(&b, t));
        if (!accept(r, ","))
            break;
    }
    expect(r, ")");
    for (;;) {
        if (accept(r, "may_alias"))
            r->f->may_alias = true;
        else if (accept(r, "fast"))
            r->f->fast = true;
        else if (accept(r, "warps"))
            expect(r, "="), r->f->warps = (int32_t)read_u32(r, INT32_MAX);
        else if (accept(r, "stages"))
            expect(r, "="), r->f->stages = (int32_t)read_u32(r, INT32_MAX);
        else if (accept(r, "cluster"))
            expect(r, "="), r->f->cluster = (int32_t)read_u32(r, INT32_MAX);
        else
            break;
    }
}

kl_fn *kl_ir_read(kl_arena *a, const kl_srcmap *src, uint32_t file, kl_diags *d)
{
    const struct kl_file *in = &src->files.v[file];
    struct reader r = {.a = a, .d = d, .text = in->text, .p = in->text,
                       .end = in->text + in->len, .base = in->base, .names = {.a = a}};
    next(&r);
    expect(&r, "fn");
    if (r.kind != T_WORD)
        fail(&r, "the name of the function is missing");
    r.f = kl_fn_new(a, kl_strndup(a, r.s, r.n));
    r.f->src = src;
    next(&r);
    read_head(&r);
    expect(&r, "{");
    kl_build b = {.f = r.f, .blk = KL_BODY};
    read_stmts(&r, &b);
    expect(&r, "}");
    if (r.kind != T_EOF)
        fail(&r, "the text goes on behind the function");

    kl_val where;
    const char *wrong = kl_ir_verify_at(r.f, a, &where);
    if (wrong) { /* the caret goes to the instruction */
        kl_span at = kl_in(r.f, where)->loc;
        r.s = in->text + (at.beg ? at.beg - in->base : 0);
        r.n = at.end - at.beg;
        fail(&r, "%s", wrong);
    }
    return r.f;
}
