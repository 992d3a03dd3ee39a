/* access.c - where an access lies, and which of its elements are inside.
 *
 * Dimension d of an access in a nest has the index first + sum c[a]*loop a.  The address is
 * linear in the loops, so a pointer to the row stands before the innermost loop.  A dimension
 * that follows one loop with any step is inside for a range of that loop's values, which is
 * computed once before the nest; the innermost loop then needs one comparison of 32 bits or,
 * where it runs inside of all ranges, none.  An index that mixes loops (after flips of splits,
 * rarely) is tested element by element. */
#include "gen/c/gen.h"

struct num { /* a number of 64 bits: known now, or a C expression that needs no parentheses */
    bool known;
    int64_t c;
    const char *text;
};

struct dimension {
    struct num first, extent, stride;
    int64_t c[KL_MAX_RANK]; /* of the loops */
    uint32_t nloop, loop;   /* how many it follows, and the last of them */
    const char *index;      /* an index tile's element instead of all that */
    uint32_t level;         /* of the index: how many loops it depends on */
};

struct build {
    struct site *s;
    struct gen *g;
    kl_val v;
    const char *stem; /* of names */
    uint32_t n;
    struct dimension d[KL_MAX_DIMS];
};

static struct num known(int64_t c)
{
    return (struct num){true, c, NULL};
}

static struct num scalar(struct gen *g, kl_val v)
{
    int64_t c;
    if (kl_c_const_of(g->f, v, &c))
        return known(c);
    return (struct num){false, 0, g->val[v.id].text};
}

static const char *num_text(struct gen *g, struct num x)
{
    return x.known ? kl_printf(g->a, "%lld", (long long)x.c) : x.text;
}

static struct num times(struct gen *g, struct num a, int64_t k)
{
    if (a.known)
        return known((int64_t)((uint64_t)a.c * (uint64_t)k));
    return k == 1 ? a
                  : (struct num){false, 0, kl_printf(g->a, "(%s * %lld)", a.text, (long long)k)};
}

static struct num product(struct gen *g, struct num a, struct num b)
{
    if (b.known)
        return times(g, a, b.c);
    if (a.known)
        return a.c == 0 ? known(0) : times(g, b, a.c);
    return (struct num){false, 0, kl_printf(g->a, "(%s * %s)", a.text, b.text)};
}

static struct num sum(struct gen *g, struct num a, struct num b)
{
    if (a.known && b.known)
        return known((int64_t)((uint64_t)a.c + (uint64_t)b.c));
    if (a.known && a.c == 0)
        return b;
    if (b.known && b.c == 0)
        return a;
    return (struct num){false, 0, kl_printf(g->a, "(%s + %s)", num_text(g, a), num_text(g, b))};
}

/* ---- the dimensions ---- */

static void describe(struct build *b, const struct map *m)
{
    const kl_fn *f = b->g->f;
    const struct kl_ins *in = kl_in(f, b->v);
    kl_val base = kl_arg(f, b->v, 0);
    const struct kl_type *t = kl_type_of(f, base);
    int64_t pitch = 1;
    struct opnd index[C_OPNDS];
    uint32_t k = 0;
    kl_c_indices(f, b->v, m, index);
    b->n = in->attr.access.n;
    for (uint32_t d = 0, axis = 0; d < b->n; d++) {
        struct dimension *x = &b->d[d];
        int64_t step = f->aux[in->attr.access.at + d];
        bool is_index = kl_access_index(f, b->v, d);
        if (is_index) {
            const struct opnd *o = &index[k++];
            x->index = kl_c_value(b->s, o->v, &o->m);
            if (x->index[0] == '-' || (x->index[0] >= '0' && x->index[0] <= '9'))
                x->index = kl_printf(b->g->a, "((i64)%s)", x->index);
            x->level = kl_c_level(kl_type_of(f, o->v), &o->m);
        } else {
            x->first = scalar(b->g, kl_arg(f, b->v, 1 + d));
        }
        if (t->kind == KL_T_ARRAY) {
            x->extent = scalar(b->g, kl_arg(f, base, 2 + d));
            x->stride = scalar(b->g, kl_arg(f, base, 2 + b->n + d));
        }
        axis += is_index;
        if (!step)
            continue;
        const struct ix *ix = &m->x[axis++];
        x->first = sum(b->g, x->first, known(step * ix->k));
        for (uint32_t a = 0; a < b->s->rank; a++) {
            x->c[a] = step * ix->c[a];
            if (x->c[a]) {
                x->nloop++;
                x->loop = a;
            }
        }
    }
    for (uint32_t d = b->n; t->kind == KL_T_TILE && d-- > 0; pitch *= t->dim[d]) {
        b->d[d].extent = known(t->dim[d]);
        b->d[d].stride = known(pitch);
    }
}

/* Is a dimension inside for all values of the loops, as far as is known now? */
static bool always(const struct build *b, const struct dimension *x)
{
    if (!x->extent.known)
        return false;
    if (x->extent.c == INT64_MAX)
        return true;
    if (!x->first.known || x->first.c < 0 || x->first.c >= x->extent.c)
        return false;
    int64_t lo = x->first.c, hi = lo;
    for (uint32_t a = 0; a < b->s->rank; a++) {
        int64_t span = x->c[a] * ((int64_t)b->s->dim[a] - 1);
        lo += span < 0 ? span : 0;
        hi += span > 0 ? span : 0;
    }
    return lo >= 0 && hi < x->extent.c;
}

/* The index of a dimension. */
static const char *index_text(const struct build *b, const struct dimension *x)
{
    struct num r = x->first;
    for (uint32_t a = 0; a < b->s->rank; a++) {
        if (!x->c[a])
            continue;
        if (a + 1 == b->s->rank)
            b->s->uses_iv = true;
        struct num iv = {false, 0,
                         x->c[a] == 1 ? b->s->iv[a] : kl_printf(b->g->a, "(i64)%s", b->s->iv[a])};
        r = sum(b->g, r, times(b->g, iv, x->c[a]));
    }
    return num_text(b->g, r);
}

static const char *both(struct gen *g, const char *a, const char *b)
{
    return !a ? b : !b ? a : kl_printf(g->a, "%s & %s", a, b);
}

/* ---- the place ---- */

static const char *place(struct build *b, const char *base, uint32_t level)
{
    struct gen *g = b->g;
    struct site *s = b->s;
    struct num at = known(0), mult[KL_MAX_RANK];
    uint32_t last = s->rank - 1;
    for (uint32_t a = 0; a < s->rank; a++)
        mult[a] = known(0);
    for (uint32_t d = 0; d < b->n; d++) {
        const struct dimension *x = &b->d[d];
        if (x->index)
            continue;
        at = sum(g, at, product(g, x->first, x->stride));
        for (uint32_t a = 0; a < s->rank; a++)
            if (x->c[a])
                mult[a] = sum(g, mult[a], times(g, x->stride, x->c[a]));
    }
    const char *type = kl_c_type((enum kl_elem)kl_type_of(g->f, kl_arg(g->f, b->v, 0))->elem);
    if (s->rank && !(at.known && at.c == 0)) {
        const char *p = kl_c_temp(g, kl_printf(g->a, "%s_p", b->stem));
        kl_c_put(s, 0, "%s *const %s = %s + %s;", type, p, base, num_text(g, at));
        base = p;
        at = known(0);
    }
    bool inner = s->rank && level == s->rank;
    struct num apart = known(0); /* by indices of the innermost loop */
    for (uint32_t d = 0; d < b->n; d++) {
        const struct dimension *x = &b->d[d];
        if (x->index) {
            struct num *to = inner && x->level == s->rank ? &apart : &at;
            *to = sum(g, *to, product(g, (struct num){false, 0, x->index}, x->stride));
        }
    }
    for (uint32_t a = 0; a < s->rank; a++) {
        if (a == last && inner)
            continue;
        if (!(mult[a].known && mult[a].c == 0)) {
            struct num iv = {false, 0, kl_printf(g->a, "(i64)%s", s->iv[a])};
            at = sum(g, at, product(g, iv, mult[a]));
        }
    }
    if (!inner)
        return kl_printf(g->a, "%s[%s]", base, num_text(g, at));
    if (!(at.known && at.c == 0)) {
        const char *row = kl_c_temp(g, kl_printf(g->a, "%s_r", b->stem));
        kl_c_put(s, last, "%s *const %s = %s + %s;", type, row, base, num_text(g, at));
        base = row;
    }
    if (!(apart.known && apart.c == 0)) {
        if (!(mult[last].known && mult[last].c == 0))
            apart = sum(g, apart, product(g, (struct num){false, 0, kl_printf(g->a, "((i64)(%s))", s->at)},
                                          mult[last]));
        return kl_printf(g->a, "%s[%s]", base, num_text(g, apart));
    }
    if (mult[last].known && mult[last].c == 1)
        return kl_printf(g->a, "%s[%s]", base, s->at);
    return kl_printf(g->a, "%s[(i64)(%s) * %s]", base, s->at, num_text(g, mult[last]));
}

/* ---- what is inside ---- */

/* A variable of that value before loop `level`; the same value has one variable. */
static const char *limit(struct build *b, uint32_t level, const char *stem, const char *value)
{
    bool isnew;
    const char *key = kl_printf(b->g->a, "%u %s", level, value);
    uint32_t *at = kl_map_put(&b->s->limits, key, strlen(key), &isnew);
    if (isnew) {
        const char *name = kl_c_temp(b->g, stem);
        kl_c_put(b->s, level, "const i32 %s = %s;", name, value);
        *at = b->s->text.n;
        kl_push(b->g->a, &b->s->text, name);
    }
    return b->s->text.v[*at];
}

/* The values of a loop for which a dimension is inside: names, or NULL for no limit. */
static void range(struct build *b, const struct dimension *x, const char **lo, const char **hi,
                  const char *only_if)
{
    struct gen *g = b->g;
    int64_t c = x->c[x->loop];
    const char *first = num_text(g, x->first), *ext = num_text(g, x->extent);
    const char *n = kl_c_size(g, b->s->dim[x->loop]);
    const char *args =
        c == 1 ? kl_printf(g->a, "(%s, %s, %s)", first, ext, n)
               : kl_printf(g->a, "_step(%s, %lld, %s, %s)", first, (long long)c, ext, n);
    if (!(x->first.known && x->first.c >= 0 && c > 0))
        *lo = limit(b, 0, "lo", kl_printf(g->a, "kl_lo%s", args));
    *hi = limit(b, 0, "hi",
                only_if ? kl_printf(g->a, "%s ? kl_hi%s : 0", only_if, args)
                        : kl_printf(g->a, "kl_hi%s", args));
}

static const char *in_range(struct gen *g, const char *iv, const char *lo, const char *hi)
{
    const char *a = lo ? kl_printf(g->a, "(%s >= %s)", iv, lo) : NULL;
    const char *b = hi ? kl_printf(g->a, "(%s < %s)", iv, hi) : NULL;
    return both(g, a, b);
}

/* Both ends of a mixed index's box. */
static const char *box(struct build *b, const struct dimension *x)
{
    struct gen *g = b->g;
    int64_t lo = 0, hi = 0;
    for (uint32_t a = 0; a < b->s->rank; a++) {
        int64_t span = x->c[a] * ((int64_t)b->s->dim[a] - 1);
        lo += span < 0 ? span : 0;
        hi += span > 0 ? span : 0;
    }
    const char *e = num_text(g, x->extent);
    return kl_printf(g->a, "kl_in(%s, %s) & kl_in(%s, %s)",
                     num_text(g, sum(g, x->first, known(lo))), e,
                     num_text(g, sum(g, x->first, known(hi))), e);
}

static void inside(struct build *b, struct acc *acc)
{
    struct gen *g = b->g;
    struct site *s = b->s;
    const char *flags = NULL, *rows = NULL, *mixed = NULL, *boxes = NULL, *must = NULL;
    const struct dimension *along = NULL; /* follows the innermost loop alone */
    bool inner = s->rank && acc->level == s->rank;
    for (uint32_t d = 0; d < b->n; d++) {
        const struct dimension *x = &b->d[d];
        if (x->index) {
            if (x->extent.known && x->extent.c == INT64_MAX)
                continue;
            const char *in = kl_printf(g->a, "kl_in(%s, %s)", kl_c_bare(g->a, x->index),
                                       num_text(g, x->extent));
            const char **to = !inner ? &flags : x->level == s->rank ? &must : &rows;
            *to = both(g, *to, in);
            continue;
        }
        if (always(b, x))
            continue;
        const char *test =
            kl_printf(g->a, "kl_in(%s, %s)", index_text(b, x), num_text(g, x->extent));
        if (!inner || x->nloop == 0) {
            flags = both(g, flags, test);
        } else if (x->nloop > 1 || (x->loop + 1 == s->rank && along)) {
            mixed = both(g, mixed, test);
            boxes = both(g, boxes, box(b, x));
        } else if (x->loop + 1 == s->rank) {
            along = x;
        } else {
            const char *lo = NULL, *hi = NULL;
            range(b, x, &lo, &hi, NULL);
            rows = both(g, rows, in_range(g, s->iv[x->loop], lo, hi));
        }
    }
    acc->must = must && strchr(must, '&') ? kl_printf(g->a, "(%s)", must) : must;
    if (!inner) {
        acc->inside = flags;
        return;
    }
    const char *n = kl_c_size(g, s->dim[s->rank - 1]), *iv = s->iv[s->rank - 1];
    if (along) {
        range(b, along, &acc->lo, &acc->hi, flags);
    } else if (flags) {
        acc->hi = limit(b, 0, "hi", kl_printf(g->a, "%s ? %s : 0", flags, n));
    }
    if (rows)
        acc->hi = limit(b, s->rank - 1, "hi",
                        kl_printf(g->a, "%s ? %s : 0", rows, acc->hi ? acc->hi : n));
    acc->inside = in_range(g, iv, acc->lo, acc->hi);
    s->uses_iv |= acc->inside != NULL;
    if (mixed) {
        acc->mixed = true;
        acc->inside = both(g, acc->inside, mixed);
        acc->hi = limit(b, s->rank - 1, "hi",
                        kl_printf(g->a, "%s ? %s : 0", boxes, acc->hi ? acc->hi : n));
    }
    if (acc->inside && strchr(acc->inside, '&'))
        acc->inside = kl_printf(g->a, "(%s)", acc->inside);
}

const struct acc *kl_c_access(struct site *s, kl_val v, const struct map *m)
{
    struct gen *g = s->g;
    bool apart = false; /* the two bodies have their own names for an index of the innermost loop */
    struct opnd index[C_OPNDS];
    for (uint32_t i = kl_c_indices(g->f, v, m, index); i-- > 0;)
        apart |= s->rank && kl_c_level(kl_type_of(g->f, index[i].v), &index[i].m) == s->rank;
    struct {
        uint64_t id;
        struct map m;
    } key = {v.id | (apart && s->checked ? UINT64_C(1) << 32 : 0), *m};
    bool isnew;
    uint32_t *at = kl_map_put(&s->accs, &key, sizeof key, &isnew);
    if (!isnew)
        return s->acc.v[*at];
    *at = s->acc.n;
    const struct kl_ins *in = kl_in(g->f, v);
    kl_val base = kl_arg(g->f, v, 0), u = kl_c_strip(g, base);
    bool tile = kl_type_of(g->f, base)->kind == KL_T_TILE;
    struct build b = {.s = s, .g = g, .v = v};
    struct acc *acc = kl_new(g->a, struct acc);
    kl_push(g->a, &s->acc, acc);
    uint32_t buf = in->op == KL_OP_insert ? g->val[v.id].buf : tile ? g->val[u.id].buf : 0;
    const char *name = !tile ? g->val[base.id].text : buf ? kl_c_bufname(g, buf) : "tile";
    b.stem = tile ? name : g->pname[kl_root(g->f, base)];
    describe(&b, m);
    acc->safe = true;
    for (uint32_t d = 0; d < b.n; d++) {
        acc->safe &= !b.d[d].index && !(b.d[d].extent.known && b.d[d].extent.c == INT64_MAX);
        if (acc->level < b.d[d].level)
            acc->level = b.d[d].level;
        for (uint32_t a = 0; a < s->rank; a++)
            if (b.d[d].c[a] && acc->level < a + 1)
                acc->level = a + 1;
    }
    inside(&b, acc);
    if (tile && !buf)
        acc->place = g->val[base.id].text; /* its one element */
    else if (in->op != KL_OP_inside)
        acc->place = place(&b, name, acc->level);
    return acc;
}
