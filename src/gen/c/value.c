/* value.c - values as C expressions.
 *
 * A value at an index becomes an expression, or the name of a variable that a statement
 * before it defines.  Statements stand in the outermost loop that they depend on.  Each
 * pair of value and index is computed once a nest; what is used once and is short is written
 * where it is used.  The innermost body exists twice when accesses may leave their arrays:
 * for places where all are inside, and checked; statements outside of it are shared. */
#include <math.h>

#include "gen/c/gen.h"

enum { SHORT = 64 }; /* longest expression that is written inside another */

void kl_c_put(struct site *s, uint32_t level, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    kl_puts(&s->pre[level], kl_vprintf(s->g->a, fmt, ap));
    va_end(ap);
    kl_puts(&s->pre[level], "\n");
}

void kl_c_site(struct site *s, struct gen *g, const struct nest *n)
{
    static const char *const names[] = {"i", "j", "k", "l"};
    *s = (struct site){.g = g, .rank = n ? n->rank : 0, .dim = n ? n->dim : NULL};
    s->memo.a = s->count.a = s->accs.a = s->limits.a = g->a;
    for (uint32_t a = 0; a <= KL_MAX_RANK; a++) {
        s->pre[a].a = g->a;
        if (a < KL_MAX_RANK)
            s->iv[a] = names[a];
    }
    s->at = s->rank ? s->iv[s->rank - 1] : "0";
}

/* ---- memory of what has been computed ---- */

struct key {
    uint64_t id, pass;
    struct map m;
};

static uint32_t level_of_ix(const struct ix *x)
{
    uint32_t level = 0;
    for (uint32_t a = 0; a < KL_MAX_RANK; a++)
        if (x->c[a])
            level = a + 1;
    return level;
}

uint32_t kl_c_level(const struct kl_type *t, const struct map *m)
{
    uint32_t level = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        uint32_t l = level_of_ix(&m->x[d]);
        level = l > level ? l : level;
    }
    return level;
}

/* A value in a buffer is known by the place of the element, others by their index. */
static struct key key_of(struct site *s, kl_val *v, const struct map *m, uint32_t *level)
{
    const struct kl_type *t = kl_type_of(s->g->f, *v);
    kl_val u = kl_c_strip(s->g, *v);
    struct key k = {.id = v->id, .m = *m};
    *level = kl_c_level(t, m);
    if (s->g->val[u.id].mat) {
        memset(&k.m, 0, sizeof k.m);
        k.m.x[0] = kl_c_linear(t->rank, t->dim, m);
        k.id = u.id;
        *v = u;
    }
    return k;
}

static const char *recall(struct site *s, struct key k, uint32_t level)
{
    k.pass = s->rank && level == s->rank ? 1u + s->checked : 0;
    uint32_t *at = kl_map_get(&s->memo, &k, sizeof k);
    return at ? s->text.v[*at] : NULL;
}

static void remember(struct site *s, struct key k, uint32_t level, const char *text)
{
    bool isnew;
    k.pass = s->rank && level == s->rank ? 1u + s->checked : 0;
    *kl_map_put(&s->memo, &k, sizeof k, &isnew) = s->text.n;
    kl_push(s->g->a, &s->text, text);
}

void kl_c_remember(struct site *s, kl_val v, const struct map *m, const char *text)
{
    uint32_t level;
    struct key k = key_of(s, &v, m, &level);
    remember(s, k, level, text);
}

bool kl_c_reads_put(struct site *s, kl_val v, const struct map *m)
{
    uint32_t level;
    struct key k = key_of(s, &v, m, &level);
    return kl_map_get(&s->count, &k, sizeof k) != NULL;
}

void kl_c_count_operands(struct site *s, kl_val v, const struct map *m)
{
    struct opnd o[C_OPNDS];
    const struct kl_ins *in = kl_in(s->g->f, v);
    bool access = kl_ops[in->op].attr == KL_A_ACCESS;
    uint32_t n = kl_c_operands(s->g, v, m, o);
    uint32_t index = access ? kl_access_indices(s->g->f, v) : in->op == KL_OP_gather;
    for (uint32_t i = 0; n != UINT32_MAX && i < n; i++) {
        kl_c_count(s, o[i].v, &o[i].m);
        if (i < index) /* for the place, and for being inside */
            kl_c_count(s, o[i].v, &o[i].m);
    }
}

void kl_c_count(struct site *s, kl_val v, const struct map *m)
{
    if (s->g->val[v.id].one)
        return;
    uint32_t level;
    bool isnew;
    struct key k = key_of(s, &v, m, &level);
    ++*kl_map_put(&s->count, &k, sizeof k, &isnew);
    if (isnew && !s->g->val[v.id].mat)
        kl_c_count_operands(s, v, m);
}

/* ---- text ---- */

static const char *paren(struct gen *g, const char *x)
{
    uint32_t depth = 0;
    for (const char *c = x; *c; c++) { /* a name, a literal, a call, an element? */
        depth += *c == '(' || *c == '[';
        depth -= *c == ')' || *c == ']';
        if (depth == 0 && (*c == ' ' || (c == x && *c == '-')))
            return kl_printf(g->a, "(%s)", x);
    }
    return x;
}

/* Floats that are integers in C. */
static bool is_small(enum kl_elem e)
{
    return kl_is_float(e) && kl_elems[e].bytes < 4;
}

const char *kl_c_convert(kl_arena *a, enum kl_elem to, enum kl_elem from, const char *x)
{
    if (to == from)
        return x;
    if (is_small(from)) {
        if (to == KL_bool)
            return kl_printf(a, kl_elems[from].bytes == 1 ? "(%s & 0x7f) != 0" : "(%s & 0x7fff) != 0", x);
        return kl_c_convert(
            a, to, KL_f32, kl_printf(a, "kl_cvt_f32_%s(%s)", kl_elems[from].name, kl_c_bare(a, x)));
    }
    if (is_small(to))
        return kl_printf(a, "kl_cvt_%s_f32(%s)", kl_elems[to].name,
                         kl_c_bare(a, kl_c_convert(a, KL_f32, from, x)));
    if (to == KL_bool)
        return kl_printf(a, "%s != 0", x);
    if (kl_is_float(from) && !kl_is_float(to))
        return kl_printf(a, "kl_cvt_%s_%s(%s)", kl_elems[to].name, kl_elems[from].name,
                         kl_c_bare(a, x));
    return kl_printf(a, "(%s)%s", kl_c_local(to), x);
}

/* The same bits.  Only f32 and f64 are no integers in C. */
static const char *bitcast_text(kl_arena *a, enum kl_elem to, enum kl_elem from, const char *x)
{
    bool flt_to = to == KL_f32 || to == KL_f64, flt_from = from == KL_f32 || from == KL_f64;
    const char *u = kl_elems[from].bytes == 4 ? "u32" : "u64";
    if (to == from)
        return x;
    if (to == KL_bool)
        return kl_printf(a, "%s != 0", x);
    if (flt_from)
        x = kl_printf(a, "kl_bitcast_%s_%s(%s)", u, kl_elems[from].name, x);
    if (flt_to)
        return kl_printf(a, "kl_bitcast_%s_%s((%s)%s)", kl_elems[to].name, u, u, x);
    return kl_printf(a, "(%s)%s", kl_c_local(to), x);
}

const char *kl_c_bare(kl_arena *a, const char *x)
{
    uint32_t depth = 0;
    size_t n = strlen(x);
    if (x[0] != '(' || x[n - 1] != ')')
        return x;
    for (size_t i = 0; i + 1 < n; i++) {
        depth += x[i] == '(';
        depth -= x[i] == ')';
        if (!depth)
            return x; /* the first one closes before the end */
    }
    return kl_strndup(a, x + 1, n - 2);
}

/* min, max, fmin, fmax of a float and a constant as one comparison, which vector code has as an
 * instruction; NULL if it is not one.  Of equal numbers and with a NaN kl_least and kl_most give
 * the second, so the constant comes first in min and max; a zero that would be wrong is excluded. */
static const char *extreme_text(struct gen *g, kl_val v, const char *x[3])
{
    const struct kl_ins *in = kl_in(g->f, v);
    bool least = in->op == KL_OP_min || in->op == KL_OP_fmin, most = in->op == KL_OP_max || in->op == KL_OP_fmax;
    bool losing = in->op == KL_OP_fmin || in->op == KL_OP_fmax;
    if (!least && !most)
        return NULL;
    const struct kl_ins *c = kl_in(g->f, kl_arg(g->f, v, 1));
    enum kl_elem e = (enum kl_elem)kl_type_of(g->f, v)->elem;
    if (c->op != KL_OP_const || (e != KL_f32 && e != KL_f64))
        return NULL;
    double k = e == KL_f32 ? (double)kl_bits_f32(c->attr.bits) : kl_bits_f64(c->attr.bits);
    if (k != k || (k == 0 && !signbit(k) == (least == losing)))
        return NULL;
    const char *a = kl_c_bare(g->a, x[0]), *b = kl_c_bare(g->a, x[1]);
    return kl_printf(g->a, "kl_%s_%s(%s, %s)", least ? "least" : "most", kl_elems[e].name,
                     losing ? a : b, losing ? b : a);
}

/* A row of cops.def with its operands. */
static const char *row_text(struct gen *g, kl_val v, const char *x[3])
{
    const struct kl_ins *in = kl_in(g->f, v);
    enum kl_elem to = (enum kl_elem)kl_type_of(g->f, v)->elem;
    enum kl_elem from = (enum kl_elem)kl_type_of(g->f, kl_arg(g->f, v, 0))->elem;
    if (in->op == KL_OP_convert)
        return kl_c_convert(g->a, to, from, x[0]);
    if (in->op == KL_OP_convert_nan)
        return kl_printf(g->a, "kl_cvt_nan_%s_f32(%s)", kl_elems[to].name, kl_c_bare(g->a, x[0]));
    if (in->op == KL_OP_bitcast)
        return bitcast_text(g->a, to, from, x[0]);
    kl_val lit = kl_arg(g->f, v, 0);
    while (kl_in(g->f, lit)->op == KL_OP_broadcast || kl_in(g->f, lit)->op == KL_OP_reshape)
        lit = kl_arg(g->f, lit, 0);
    if (from == KL_i64 && kl_in(g->f, lit)->op == KL_OP_const)
        x[0] = kl_printf(g->a, "(i64)%s", x[0]); /* a literal alone might be an int */
    bool flt = from == KL_f32 || from == KL_f64;
    const char *extreme = extreme_text(g, v, x), *mid = from == KL_f32 ? kl_range_mid(g->f, g->range, v) : NULL;
    if (extreme)
        return extreme;
    if (mid)
        return kl_printf(g->a, "kl_%s_f32(%s)", mid, kl_c_bare(g->a, x[0]));
    const char *t = flt ? kl_cops[in->op].ftext : kl_cops[in->op].itext;
    KL_CHECK(g->a->env, t);
    bool call = strchr(t, '(') != NULL; /* an argument needs no parentheses */
    kl_buf b = {.a = g->a};
    for (; *t; t++) {
        if (*t != '$')
            kl_buf_put(&b, t, 1);
        else if (*++t == 'T')
            kl_puts(&b, kl_elems[from].name);
        else
            kl_puts(&b, call ? kl_c_bare(g->a, x[*t - '0']) : x[*t - '0']);
    }
    return kl_buf_str(&b);
}

/* c*var + ... + k as C, of 64 bits if wide. */
static const char *ix_text(struct site *s, const struct ix *x, bool wide)
{
    kl_buf b = {.a = s->g->a};
    for (uint32_t a = 0; a < s->rank; a++) {
        if (!x->c[a])
            continue;
        if (a + 1 == s->rank && !wide)
            s->uses_iv = true;
        const char *iv = wide && a + 1 == s->rank ? s->at : s->iv[a];
        kl_puts(&b, b.n ? " + " : "");
        if (x->c[a] == 1)
            kl_puts(&b, iv);
        else if (wide) /* a pitch of a tile */
            kl_putf(&b, strchr(iv, ' ') ? "(i64)(%s) * %s" : "(i64)%s * %s", iv,
                    x->c[a] > 0 ? kl_c_size(s->g, (uint64_t)x->c[a])
                                : kl_printf(s->g->a, "%lld", (long long)x->c[a]));
        else
            kl_putf(&b, "%s * %lld", iv, (long long)x->c[a]);
    }
    if (x->k || !b.n)
        kl_putf(&b, b.n ? " + %lld" : "%lld", (long long)x->k);
    return kl_buf_str(&b);
}

/* ---- buffers ---- */

/* The element of a buffer: a pointer to the row stands before the innermost loop, so that the
 * index there is the bare variable. */
const char *kl_c_buf_place(struct site *s, uint32_t buf, const struct ix *lin)
{
    struct gen *g = s->g;
    const char *name = kl_c_bufname(g, buf);
    uint32_t level = level_of_ix(lin), last = s->rank - 1;
    if (!s->rank || level < s->rank)
        return kl_printf(g->a, "%s[%s]", name, ix_text(s, lin, true));
    struct ix outer = *lin, inner = {{0}, 0};
    inner.c[last] = lin->c[last];
    outer.c[last] = 0;
    if (level_of_ix(&outer) || outer.k) {
        struct key k = {.id = UINT64_C(1) << 32 | kl_c_buf_root(g, buf)};
        k.m.x[0] = outer;
        const char *row = recall(s, k, 0);
        if (!row) {
            row = kl_c_temp(g, kl_printf(g->a, "%s_", name));
            kl_c_put(s, last, "%s *const %s = %s + (%s);",
                     kl_c_type((enum kl_elem)g->buf.v[buf].elem), row, name,
                     ix_text(s, &outer, true));
            remember(s, k, 0, row);
        }
        name = row;
    }
    return kl_printf(g->a, "%s[%s]", name, ix_text(s, &inner, true));
}

/* ---- values ---- */

static const char *load_text(struct site *s, kl_val v, const struct map *m)
{
    struct gen *g = s->g;
    const struct kl_ins *in = kl_in(g->f, v);
    enum kl_elem e = (enum kl_elem)kl_type_of(g->f, v)->elem;
    const struct acc *acc = kl_c_access(s, v, m);
    const char *elem = e == KL_bool ? kl_printf(g->a, "(%s != 0)", acc->place) : acc->place;
    const char *fill = kl_c_const(g->a, e, 0), *mask = NULL, *cond = NULL;
    uint32_t k = 1u + in->attr.access.n;
    if (in->op == KL_OP_load && in->attr.access.flags & KL_ACC_FILL)
        fill = kl_c_value(s, kl_arg(g->f, v, k++), m);
    if (in->op == KL_OP_load && in->attr.access.flags & KL_ACC_MASK)
        mask = kl_c_value(s, kl_arg(g->f, v, k), m);
    cond = kl_c_condition(s, acc);
    if (mask && !cond && acc->safe) { /* read always, so that it needs no masked load */
        const char *t = kl_c_temp(g, "t");
        kl_c_put(s, acc->level, "const %s %s = %s;", kl_c_local(e), t, elem);
        elem = t;
    }
    s->masks |= mask && !acc->safe;
    if (mask)
        cond = cond ? kl_printf(g->a, "%s & %s", cond, mask) : mask;
    return cond ? kl_printf(g->a, "%s ? %s : %s", cond, elem, fill) : elem;
}

/* An element of a tile of constants: a static array, of bits if they are floats, since a NaN is no
 * constant expression. */
static const char *table_text(struct site *s, kl_val v, const struct map *m)
{
    struct gen *g = s->g;
    const struct kl_ins *in = kl_in(g->f, v);
    const struct kl_type *t = kl_type_of(g->f, v);
    enum kl_elem e = (enum kl_elem)t->elem, as = e == KL_f32 ? KL_u32 : e == KL_f64 ? KL_u64 : e;
    const int64_t *bits = g->f->aux + in->attr.aux.at;
    if (g->val[v.id].one)
        return kl_c_const(g->a, e, (uint64_t)bits[0]);
    uint32_t known = 0;
    while (known < g->tabled.n && g->tabled.v[known] != v.id)
        known++;
    if (known == g->tabled.n) {
        kl_push(g->a, &g->tabled, v.id);
        kl_putf(&g->tables, "    static const %s table%u[%u] = {", kl_c_type(as), known, in->attr.aux.n);
        for (uint32_t i = 0; i < in->attr.aux.n; i++)
            kl_putf(&g->tables, "%s%s", i ? i % 8 ? ", " : ",\n        " : "",
                    kl_c_const(g->a, as, (uint64_t)bits[i]));
        kl_puts(&g->tables, "};\n");
    }
    struct ix lin = kl_c_linear(t->rank, t->dim, m);
    const char *x = kl_printf(g->a, "table%u[%s]", known, ix_text(s, &lin, true));
    return as == e           ? x
           : e == KL_f32     ? kl_printf(g->a, "kl_bitcast_f32_u32(%s)", x)
                             : kl_printf(g->a, "kl_bitcast_f64_u64(%s)", x);
}

const char *kl_c_condition(const struct site *s, const struct acc *acc)
{
    bool inner = s->rank && acc->level == s->rank;
    const char *in = inner && !s->checked ? NULL : acc->inside;
    return !in ? acc->must : !acc->must ? in : kl_printf(s->g->a, "%s & %s", in, acc->must);
}

/* An element of a tile in a buffer, by its number along one axis; 0 if there is none. */
static const char *gather_text(struct site *s, kl_val v, const struct map *m)
{
    struct gen *g = s->g;
    const kl_fn *f = g->f;
    kl_val base = kl_arg(f, v, 0), u = kl_c_strip(g, base);
    const struct kl_type *t = kl_type_of(f, base);
    enum kl_elem e = (enum kl_elem)t->elem;
    int64_t axis = kl_in(f, v)->attr.index, pitch = 1;
    const char *i = kl_c_value(s, kl_arg(f, v, 1), m), *place;
    for (uint32_t d = t->rank; d-- > (uint32_t)axis + 1;)
        pitch *= t->dim[d];
    if (g->val[u.id].one) {
        place = g->val[base.id].text;
    } else {
        struct map rest = *m;
        rest.x[axis] = (struct ix){{0}, 0};
        struct ix lin = kl_c_linear(t->rank, t->dim, &rest);
        const char *name = kl_c_bufname(g, g->val[u.id].buf);
        place = kl_printf(g->a, "%s[(i64)%s * %lld + %s]", name, i, (long long)pitch,
                          ix_text(s, &lin, true));
        if (e == KL_bool)
            place = kl_printf(g->a, "(%s != 0)", place);
    }
    return kl_printf(g->a, "kl_in(%s, %u) ? %s : %s", kl_c_bare(g->a, i), t->dim[axis], place,
                     kl_c_const(g->a, e, 0));
}

/* Does the loop run inside of the same limits anyway, as an access to memory has them? */
static bool is_known_inside(const struct site *s, const struct acc *acc)
{
    if (s->checked || !s->rank || acc->level != s->rank || acc->mixed)
        return false;
    for (uint32_t i = 0; i < s->acc.n; i++) {
        const struct acc *x = s->acc.v[i];
        if (x->place && x->level == s->rank && x->lo == acc->lo && x->hi == acc->hi)
            return true;
    }
    return false;
}

/* The expression of v at index m; operands may be named before it. */
static const char *expr(struct site *s, kl_val v, const struct map *m)
{
    struct gen *g = s->g;
    const struct kl_ins *in = kl_in(g->f, v);
    struct opnd o[C_OPNDS];
    switch (in->op) {
    case KL_OP_const:
        return kl_c_const(g->a, (enum kl_elem)kl_type_of(g->f, v)->elem, in->attr.bits);
    case KL_OP_iota: return ix_text(s, &m->x[0], false);
    case KL_OP_table: return table_text(s, v, m);
    case KL_OP_load: return load_text(s, v, m);
    case KL_OP_extract:
        if (!kl_c_static_part(g->f, v) || g->val[v.id].one)
            return load_text(s, v, m);
        break;
    case KL_OP_inside: {
        const struct acc *acc = kl_c_access(s, v, m);
        const char *x = acc->inside && !is_known_inside(s, acc) ? acc->inside : NULL;
        if (x && acc->must)
            return kl_printf(g->a, "%s & %s", acc->must, x);
        return x ? x : acc->must ? acc->must : "1";
    }
    case KL_OP_gather: return gather_text(s, v, m);
    case KL_OP_argmax:
    case KL_OP_argmin: return "0";
    case KL_OP_insert: { /* one element: replaced if the place is inside */
        const struct acc *acc = kl_c_access(s, v, m);
        const char *x = kl_c_value(s, kl_arg(g->f, v, 1u + in->attr.access.n), m);
        return acc->inside ? kl_printf(g->a, "%s ? %s : %s", acc->inside, x,
                                       kl_c_value(s, kl_arg(g->f, v, 0), m))
                           : x;
    }
    default: break;
    }
    uint32_t n = kl_c_operands(g, v, m, o);
    KL_CHECK(g->a->env, n >= 1 && n <= 3);
    const char *x[3] = {NULL};
    for (uint32_t i = 0; i < n; i++)
        x[i] = kl_c_value(s, o[i].v, &o[i].m);
    if (in->op == KL_OP_select && strcmp(x[0], "1") == 0)
        return x[1];
    return kl_ops[in->op].flags & KL_F_EW ? row_text(g, v, x) : x[0];
}

const char *kl_c_compute(struct site *s, kl_val v, const struct map *m)
{
    return expr(s, v, m);
}

static bool is_name(const char *x)
{
    for (; *x; x++)
        if (*x == ' ' || *x == '(' || *x == '[')
            return false;
    return true;
}

const char *kl_c_value(struct site *s, kl_val v, const struct map *m)
{
    struct gen *g = s->g;
    if (g->val[v.id].one && g->val[v.id].text)
        return g->val[v.id].text;
    uint32_t level;
    struct key k = key_of(s, &v, m, &level);
    const char *known = recall(s, k, level);
    if (known)
        return known;
    enum kl_elem e = (enum kl_elem)kl_type_of(g->f, v)->elem;
    const struct kl_ins *in = kl_in(g->f, v);
    const char *x;
    if (g->val[v.id].mat) {
        x = kl_c_buf_place(s, g->val[v.id].buf, &k.m.x[0]);
        if (e == KL_bool)
            x = kl_printf(g->a, "(%s != 0)", x);
    } else {
        x = expr(s, v, m);
    }
    uint32_t *count = kl_map_get(&s->count, &k, sizeof k);
    bool once = !count || *count < 2, inner = level == s->rank;
    /* gcc 12 crashes on some loops where a choice is compared without a name between */
    bool small = strlen(x) <= SHORT && !strchr(x, '?');
    if (!is_name(x) && !(once && inner && small)) {
        const char *t = in->op == KL_OP_load ? kl_c_load_temp(g, v) : kl_c_temp(g, "t");
        kl_c_put(s, level, "const %s %s = %s;", kl_c_local(e), t, kl_c_bare(g->a, x));
        x = t;
    }
    x = paren(g, x);
    remember(s, k, level, x);
    return x;
}
