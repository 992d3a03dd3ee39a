/* gen.c - random kernels: parameters, helper functions, statements.
 *
 * The kernel's programs own disjoint parts of each written array: rows r .. r+R-1, and on a
 * two-dimensional grid columns cb .. cb+CB-1.  Stores, and loads of arrays that are written or
 * share memory with one that is, stay inside that part, so the order of programs cannot
 * matter.  Loops count to a few trips; break, continue and return hang on any condition. */
#include <stdio.h>
#include <string.h>

#include "gen.h"

#define FMT(...) pool_fmt(g->mem, __VA_ARGS__)
#define NAME(t) kiln_dtype_name(t)

static unsigned below(struct gen *g, unsigned n)
{
    return rng_below(&g->r, n);
}

static bool chance(struct gen *g, unsigned percent)
{
    return rng_chance(&g->r, percent);
}

static void line(struct gen *g, const char *text)
{
    if (g->p->nline < MAX_LINES)
        g->p->line[g->p->nline++] = FMT("%*s%s", 4 * g->depth, "", text);
}

static const char *fresh(struct gen *g, const char *stem)
{
    return FMT("%s%u", stem, g->serial++);
}

static void declare(struct gen *g, const char *name, kiln_dtype t, struct shape s, bool fixed)
{
    if (g->nvar < MAX_VARS)
        g->var[g->nvar++] = (struct var){name, t, s, fixed};
}

static unsigned scope_open(struct gen *g)
{
    g->depth++;
    return g->nvar;
}

static void scope_close(struct gen *g, unsigned mark)
{
    g->depth--;
    g->nvar = mark;
    unsigned n = 0;
    for (unsigned i = 0; i < g->nseen; i++)
        if (g->seen[i].nvar <= mark)
            g->seen[n++] = g->seen[i];
    g->nseen = n;
}

/* ---- statements ---- */

static void statements(struct gen *g, unsigned n);

/* A value that may initialise or be assigned to type t. */
static const char *value_for(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    static const kiln_dtype floats[] = {KILN_F32, KILN_F64, KILN_F16, KILN_BF16, KILN_F8E4M3,
                                        KILN_F8E5M2};
    static const kiln_dtype wide[] = {KILN_I32, KILN_U32, KILN_U8, KILN_I64, KILN_I8, KILN_I16, KILN_U16};
    static const kiln_dtype uwide[] = {KILN_U32, KILN_U8, KILN_U16, KILN_BOOL};
    if (chance(g, 5))
        return literal(g, t);
    if (chance(g, 20)) {
        if (is_float(t))
            return expr(g, floats[below(g, 6)], s, depth);
        if (t == KILN_I64)
            return expr(g, wide[below(g, 7)], s, depth);
        if (t == KILN_U64)
            return expr(g, uwide[below(g, 4)], s, depth);
        if (t == KILN_I16 && chance(g, 50))
            return expr(g, KILN_I8, s, depth);
    }
    return expr(g, t, s, depth);
}

/* A view into a dense array that is only read: it lies inside, so all it gives is defined. */
static bool view(struct gen *g)
{
    unsigned a = below(g, g->p->narray);
    const struct rarray *x = &g->p->array[a];
    int64_t n = 1, at = 0;
    if (x->written || x->alias >= 0 || !x->given || g->bounded[a])
        return false;
    for (int d = x->rank; d-- > 0; n *= x->ext[d])
        if (x->str[d] != n)
            return false;
    const char *from = "", *name = fresh(g, "w"), *v = fresh(g, "v");
    for (int d = 0; d < x->rank; d++) {
        unsigned i = below(g, (unsigned)x->ext[d]);
        from = FMT("%s[%u]", from, i);
        at += i * x->str[d];
    }
    unsigned cols = 1 + below(g, (unsigned)(n - at)), rows = 1;
    if (cols > 20)
        cols = 1 + below(g, 20);
    rows += below(g, (unsigned)((n - at) / cols));
    struct shape s = {2, {1 + (int)below(g, 5), random_dim(g)}};
    line(g, FMT("global const %s %s[%u][%u] = &%s%s;", NAME(x->t), name, rows, cols, x->name,
                from));
    line(g, FMT("auto %s = %s[%s:%d][%u:%d];", v, name, index_text(g, rows), s.dim[0],
                below(g, 4), s.dim[1]));
    declare(g, v, x->t, s, false);
    return true;
}

/* A function that takes an array. */
static bool row(struct gen *g)
{
    unsigned a = below(g, g->p->narray);
    const struct rarray *x = &g->p->array[a];
    if (!g->rows || x->written || x->alias >= 0 || !x->given || x->rank != 2)
        return false;
    const char *v = fresh(g, "v");
    line(g, FMT("auto %s = row(%s, %s);", v, x->name, index_text(g, x->ext[0])));
    declare(g, v, x->t, (struct shape){1, {6}}, false);
    return true;
}

/* A variable of struct type: its members are variables like others. */
static bool bundle(struct gen *g)
{
    if (!g->npair)
        return false;
    const struct pair *p = &g->pair[below(g, g->npair)];
    struct shape s = chance(g, 30) ? SCALAR : random_shape(g, 1 + (int)below(g, 2));
    const char *name = fresh(g, "v"), *v = chance(g, 60) ? pair_fold(g, p, s, 3) : NULL;
    const char *type = chance(g, 50) ? FMT("struct %s", p->name) : "auto";
    line(g, FMT("%s %s = %s;", type, name, v ? v : pair_literal(g, p, s, 3)));
    if (chance(g, 30))
        line(g, FMT("if (%s) %s = %s;", expr(g, KILN_BOOL, SCALAR, 2), name, pair_literal(g, p, s, 2)));
    declare(g, FMT("%s.a", name), p->t[0], s, false);
    declare(g, FMT("%s.b", name), p->t[1], s, false);
    return true;
}

/* { 1, 2 } or {{1, 2}, {3, 4}} */
static const char *braces(struct gen *g, kiln_dtype t, struct shape s, int d)
{
    if (d == s.rank)
        return literal(g, t);
    const char *text = "{";
    for (int i = 0; i < s.dim[d]; i++)
        text = FMT("%s%s%s", text, i ? ", " : "", braces(g, t, s, d + 1));
    return FMT("%s}", text);
}

/* A tile of constants. */
static bool table(struct gen *g)
{
    struct shape s = random_shape(g, 1 + (int)below(g, 2));
    if (g->nvar && chance(g, 50) && g->var[0].s.rank)
        s = g->var[below(g, g->nvar)].s;
    if (!s.rank || shape_numel(s) > 40)
        return false;
    kiln_dtype t = random_type(g, false);
    const char *name = fresh(g, "w");
    line(g, FMT("constexpr %s %s%s = %s;", NAME(t), name, dims_text(g, s),
                chance(g, 90) ? braces(g, t, s, 0) : literal(g, t)));
    declare(g, name, t, s, true);
    return true;
}

static void declaration(struct gen *g)
{
    if (chance(g, 8) && table(g))
        return;
    if (chance(g, 8) && view(g))
        return;
    if (chance(g, 20) && bundle(g))
        return;
    if (chance(g, 8) && row(g))
        return;
    bool scalar = chance(g, 30);
    struct shape s = scalar ? SCALAR : random_shape(g, 1 + (int)below(g, 2));
    if (chance(g, 6))
        s = random_shape(g, 3 + (int)below(g, 2));
    if (g->nvar && chance(g, 35)) /* the shape of another variable, so that they meet */
        s = g->var[below(g, g->nvar)].s;
    kiln_dtype t = random_type(g, false);
    const char *name = fresh(g, "v");
    if (chance(g, 50)) {
        line(g, FMT("auto %s = %s;", name, expr(g, t, s, 4)));
    } else {
        /* an initialiser may be narrower than what is declared */
        const char *v = s.rank && chance(g, 25) ? value_for(g, t, SCALAR, 2)
                                                : value_for(g, t, s, 4);
        line(g, FMT("%s %s%s = %s;", NAME(t), name, dims_text(g, s), v));
    }
    declare(g, name, t, s, false);
}

static const struct var *target(struct gen *g)
{
    unsigned n = 0;
    const struct var *pick = NULL;
    for (unsigned i = 0; i < g->nvar; i++)
        if (!g->var[i].fixed && below(g, ++n) == 0)
            pick = &g->var[i];
    return pick;
}

static void assignment(struct gen *g)
{
    static const char *const ops[] = {"+=", "-=", "*="};
    static const char *const bits[] = {"&=", "|=", "^=", "<<=", ">>=", "/=", "%="};
    const struct var *v = target(g);
    if (!v) {
        declaration(g);
        return;
    }
    if (v->s.rank && chance(g, 20)) { /* a part of the tile */
        struct shape s = {0, {0}};
        const char *x = v->name;
        for (int d = 0; d < v->s.rank; d++) {
            if (d == 0 && chance(g, 30)) {
                x = FMT("%s[%s]", x, index_text(g, v->s.dim[0]));
            } else {
                int n = 1 + (int)below(g, (unsigned)v->s.dim[d]);
                int at = (int)below(g, (unsigned)(v->s.dim[d] - n) + 1);
                x = FMT("%s[%d:%d]", x, at, n);
                s.dim[s.rank++] = n;
            }
        }
        line(g, FMT("%s = %s;", x, expr(g, v->t, s, 3)));
        return;
    }
    if (v->t != KILN_BOOL && chance(g, 40)) {
        if (!is_float(v->t) && is_compute(v->t) && chance(g, 30))
            line(g, FMT("%s %s %s;", v->name, bits[below(g, 7)], operand(g, v->t, v->s, 2)));
        else if (!is_float(v->t) && v->s.rank == 0 && chance(g, 30))
            line(g, FMT("%s%s;", v->name, chance(g, 50) ? "++" : "--"));
        else if (is_compute(v->t))
            line(g, FMT("%s %s %s;", v->name, ops[below(g, 3)], operand(g, v->t, v->s, 3)));
        else if (is_float(v->t))
            line(g, FMT("%s %s %s;", v->name, ops[below(g, 3)], operand(g, KILN_F32, v->s, 3)));
        return;
    }
    line(g, FMT("%s = %s;", v->name, value_for(g, v->t, v->s, 4)));
}

static void store(struct gen *g)
{
    unsigned n = 0, a = 0;
    for (unsigned i = 0; i < g->p->narray; i++)
        if (g->p->array[i].written && below(g, ++n) == 0)
            a = i;
    const struct rarray *x = &g->p->array[a];
    struct shape s = SCALAR;
    const char *at = chance(g, 15) ? scatter_text(g, a, &s) : access_text(g, a, &s, false, true);
    if (is_compute(x->t) && chance(g, 20)) {
        line(g, FMT("%s %s %s;", at, chance(g, 70) ? "+=" : "-=", operand(g, x->t, s, 3)));
        return;
    }
    if (s.rank && chance(g, 20)) {
        const char *m = expr(g, KILN_BOOL, s, 2);
        line(g, FMT("store(%s, %s, .mask = %s);", at, value_for(g, x->t, s, 3), m));
        return;
    }
    if (s.rank && chance(g, 15))
        line(g, FMT("%s = %s;", at, value_for(g, x->t, SCALAR, 3)));
    else
        line(g, FMT("%s = %s;", at, value_for(g, x->t, s, 4)));
}

static void branch(struct gen *g)
{
    unsigned a = below(g, g->p->narray);
    struct rarray *x = &g->p->array[a];
    bool was = x->given;
    if (g->optional[a] && chance(g, 60)) {
        line(g, FMT("if (given(%s)) {", x->name));
        x->given = true; /* what stands in a branch that is left out is only parsed */
    } else if (chance(g, 10)) {
        line(g, FMT("if (R %s %d) {", chance(g, 50) ? "==" : ">", 1 + (int)below(g, 5)));
    } else {
        line(g, FMT("if (%s) {", expr(g, KILN_BOOL, SCALAR, 2)));
    }
    unsigned mark = scope_open(g);
    statements(g, 1 + below(g, 3));
    scope_close(g, mark);
    if (x->given != was) {
        x->given = was;
        g->nseen = 0; /* some may read the array */
    }
    if (chance(g, 50)) {
        line(g, "} else {");
        mark = scope_open(g);
        statements(g, 1 + below(g, 2));
        scope_close(g, mark);
    }
    line(g, "}");
}

static void leave_loop(struct gen *g)
{
    if (chance(g, 25))
        line(g, FMT("if (%s) %s;", expr(g, KILN_BOOL, SCALAR, 2),
                    chance(g, 50) ? "break" : "continue"));
}

static void loop_body(struct gen *g)
{
    g->loops++;
    statements(g, 1 + below(g, 2));
    leave_loop(g);
    statements(g, 1 + below(g, 2));
    g->loops--;
}

/* A variable that a loop may load some trips ahead: its place follows from the loop's variable. */
static void early_load(struct gen *g, const char *i)
{
    const struct rprog *p = g->p;
    if (!g->arrays || !p->narray)
        return;
    unsigned a = below(g, p->narray);
    const struct rarray *x = &p->array[a];
    bool shared = x->written || !x->given || x->alias >= 0 || g->bounded[a];
    for (unsigned k = 0; k < p->narray; k++)
        shared |= p->array[k].alias == (int)a;
    if (shared)
        return;
    struct shape s = {1, {1 + (int)below(g, 12)}};
    const char *name = fresh(g, "v"), *at = x->name;
    for (int d = 0; d + 1 < x->rank; d++)
        at = FMT("%s[%s]", at, chance(g, 50) ? "0" : i);
    at = FMT("%s[%s * %u:%d]", at, i, below(g, 5), s.dim[0]);
    if (chance(g, 40))
        at = FMT("load(%s, %s, .mask = range(%d) + %s < %u)", at, literal(g, x->t), s.dim[0], i, below(g, 20));
    line(g, FMT("auto %s = %s;", name, at));
    declare(g, name, x->t, s, false);
}

static void loop(struct gen *g)
{
    const char *i = fresh(g, "j");
    unsigned mark, kind = below(g, 12), trips = 1 + below(g, 5);
    bool ahead = false;
    if (kind < 2) { /* while, do: the counter moves first, so that continue cannot hang */
        line(g, FMT("i32 %s = 0;", i));
        declare(g, i, KILN_I32, SCALAR, true);
        line(g, kind ? "do {" : FMT("while (%s < %u) {", i, trips));
        mark = scope_open(g);
        line(g, FMT("%s++;", i));
        loop_body(g);
        scope_close(g, mark);
        line(g, kind ? FMT("} while (%s < %u);", i, trips) : "}");
        return;
    }
    bool copies = g->loops == 0; /* of copies of copies a C compiler may need minutes */
    if (chance(g, 10)) {
        if (copies)
            line(g, "#pragma unroll");
    } else if (chance(g, 25)) { /* in part, with trips left over */
        unsigned n = 2 + below(g, 3);
        if (copies)
            line(g, FMT("#pragma unroll %u", n));
        trips += n;
    } else if (chance(g, 25)) { /* more than a few trips, so that it is not unrolled */
        line(g, FMT("#pragma pipeline(%u)", 1 + below(g, 4)));
        ahead = true;
        trips += chance(g, 50) ? 5 + below(g, 8) : 0;
    }
    kiln_dtype t = chance(g, 70) ? KILN_I64 : KILN_I32;
    const char *ty = NAME(t);
    unsigned step = 1 + below(g, 3), lo = below(g, 3);
    switch (kind) {
    case 2: /* a bound that only the launch knows */
        t = KILN_I64;
        line(g, FMT("for (i64 %s = 0; %s < trips; %s++) {", i, i, i));
        break;
    case 3: /* along the columns of the data */
        t = KILN_I64;
        line(g, FMT("for (i64 %s = 0; %s < M; %s += %u) {", i, i, i, 8 + below(g, 24)));
        break;
    case 4: /* downwards */
        line(g, FMT("for (%s %s = %u; %s > %u; %s--) {", ty, i, lo + trips, i, lo, i));
        break;
    case 5: /* no trip at all, or one whose bounds are data */
        line(g, FMT("for (%s %s = %u; %s <= %s; %s += %u) {", ty, i, lo, i,
                    chance(g, 50) ? "0" : FMT("(%s)min(6, (i64)%s)", ty,
                                              expr(g, KILN_I32, SCALAR, 1)),
                    i, step));
        break;
    default:
        line(g, FMT("for (%s %s = %u; %s < %u; %s += %u) {", ty, i, lo, i, lo + trips * step, i,
                    step));
        break;
    }
    mark = g->nvar;
    g->depth++;
    declare(g, i, t, SCALAR, true);
    if (ahead)
        early_load(g, i);
    loop_body(g);
    scope_close(g, mark);
    line(g, "}");
}

static void statements(struct gen *g, unsigned n)
{
    for (; n && g->p->nline < MAX_LINES - 40; n--) {
        unsigned k = below(g, 100);
        if (k < 30)
            declaration(g);
        else if (k < 55)
            assignment(g);
        else if (k < 72 || g->budget <= 0)
            store(g);
        else if (k < 82 && g->depth < 4)
            branch(g);
        else if (g->loops < 2 && g->depth < 4)
            loop(g);
        else
            store(g);
    }
}

/* ---- functions ---- */

/* Arithmetic on parameters a0, a1: what may be lifted to tiles. */
static const char *plain(struct gen *g, kiln_dtype t, unsigned nparam, int depth)
{
    static const char *const flt[] = {"(%s + %s)", "(%s - %s)", "(%s * %s)", "min(%s, %s)",
                                      "max(%s, %s)", "(%s / %s)"};
    static const char *const intg[] = {"(%s + %s)", "(%s - %s)", "(%s * %s)", "min(%s, %s)",
                                       "(%s ^ %s)", "floormod(%s, %s)"};
    if (depth <= 0 || chance(g, 20))
        return FMT("a%u", below(g, nparam));
    const char *x = plain(g, t, nparam, depth - 1);
    if (chance(g, 20))
        return FMT("(%s %s a0 ? %s : %s)", x, chance(g, 50) ? "<" : "==",
                   plain(g, t, nparam, depth - 1), plain(g, t, nparam, depth - 1));
    const char *y = chance(g, 30) ? FMT("(%s)", literal(g, t))
                                  : plain(g, t, nparam, depth - 1);
    /* the table's rows are the only formats */
    const char *f = is_float(t) ? flt[below(g, 6)] : intg[below(g, 6)];
    char buf[2048];
    size_t at = 0;
    const char *arg[] = {x, y};
    for (unsigned k = 0; *f && at + 600 < sizeof buf; f++) {
        if (f[0] == '%' && f[1] == 's') {
            at += (size_t)snprintf(buf + at, 600, "%s", arg[k++ & 1]);
            f++;
        } else {
            buf[at++] = *f;
        }
    }
    return FMT("%.*s", (int)at, buf);
}

static void function(struct gen *g)
{
    static const char *const generic[] = {
        "return a0 * a0 - 3;", "return max(a0, 1) + a0;", "return a0 > 2 ? a0 : a0 + a0;",
        "auto b = a0 + 1; return b * (b - 2);", "return clamp(a0, 0, 5) * 2 - a0;"};
    struct func f = {.kind = (enum func_kind)below(g, 4), .t = random_type(g, true)};
    f.name = fresh(g, "fn");
    f.nparam = f.kind == F_REDUCE ? 2 : f.kind == F_AUTO ? 1 : 1 + below(g, 2);
    const char *ty = NAME(f.t);
    if (f.kind == F_AUTO) {
        line(g, FMT("auto %s(auto a0)", f.name));
        line(g, "{");
        line(g, FMT("    %s", generic[below(g, 5)]));
    } else {
        line(g, f.nparam == 2 ? FMT("%s %s(%s a0, %s a1)", ty, f.name, ty, ty)
                              : FMT("%s %s(%s a0)", ty, f.name, ty));
        line(g, "{");
        if (f.kind == F_SCALAR) { /* only called with scalars: control flow is fine */
            line(g, FMT("    if (%s > a0)", plain(g, f.t, f.nparam, 1)));
            line(g, FMT("        return %s;", plain(g, f.t, f.nparam, 2)));
            line(g, "    for (i32 k = 0; k < 3; k++)");
            line(g, FMT("        a0 = %s;", plain(g, f.t, f.nparam, 2)));
        } else if (f.kind == F_LIFTED && chance(g, 50)) {
            line(g, FMT("    a0 = %s;", plain(g, f.t, f.nparam, 2)));
        }
        /* both parameters take part, so that a tile in either place makes the result one */
        const char *x = plain(g, f.t, f.nparam, 3), *ops[] = {"+", "-", "*"};
        line(g, f.nparam == 2 ? FMT("    return %s %s min(a0, a1);", x, ops[below(g, 3)])
                              : FMT("    return %s;", x));
    }
    line(g, "}");
    line(g, "");
    g->func[g->nfunc++] = f;
}

static void structure(struct gen *g)
{
    struct pair p = {.name = fresh(g, "st"), .t = {random_type(g, true), random_type(g, true)}};
    line(g, FMT("struct %s { %s a; %s b; };", p.name, NAME(p.t[0]), NAME(p.t[1])));
    for (int i = 0; i < 2; i++) {
        const char *t = NAME(p.t[i]);
        line(g, FMT("%s %s_%c(%s a0, %s a1) { return %s + a1; }", t, p.name, "ab"[i], t, t,
                    plain(g, p.t[i], 2, 2)));
    }
    p.join = FMT("%s_join", p.name);
    line(g, FMT("struct %s %s(struct %s p, struct %s q)", p.name, p.join, p.name, p.name));
    line(g, "{");
    if (chance(g, 30)) { /* both orders are the author's: control flow is fine */
        line(g, FMT("    if (p.b < q.b) return (struct %s){q.a, %s_b(p.b, q.b)};", p.name, p.name));
        line(g, FMT("    p.a = %s_a(p.a, q.a);", p.name));
        line(g, "    return p;");
    } else {
        line(g, FMT("    return (struct %s){p.b %s q.b ? %s_a(p.a, q.a) : %s_a(q.a, p.a), %s_b(p.b, q.b)};", p.name,
                    chance(g, 50) ? ">" : "==", p.name, p.name, p.name));
    }
    line(g, "}");
    line(g, "");
    g->pair[g->npair++] = p;
}

/* ---- parameters ---- */

static void give(struct gen *g, const char *name, kiln_arg_kind kind, int64_t i, double f,
                 kiln_dtype t)
{
    if (g->p->nscalar < MAX_SCALARS)
        g->p->scalar[g->p->nscalar++] = (struct rscalar){name, kind, i, f, t};
}

struct params {
    const char *v[MAX_ARRAYS + MAX_SCALARS];
    unsigned n;
};

static void param(struct params *p, const char *text)
{
    if (p->n < sizeof p->v / sizeof *p->v)
        p->v[p->n++] = text;
}

/* Strides of an array that need not be dense: padded, transposed, reversed, repeated. */
static const char *choose_strides(struct gen *g, struct rarray *x, struct params *ps)
{
    int64_t dense = 1;
    for (int d = x->rank; d-- > 0;) {
        x->str[d] = dense;
        dense *= x->ext[d];
    }
    if (x->alias >= 0 || !chance(g, 30))
        return "";
    unsigned kind = below(g, x->written ? 3 : 4);
    if (kind == 0 && x->rank > 1) { /* rows with a gap */
        int64_t pad = x->ext[x->rank - 1] + 1 + below(g, 9);
        x->str[x->rank - 2] = pad;
        for (int d = x->rank - 2; d-- > 0;)
            x->str[d] = x->str[d + 1] * x->ext[d + 1];
    } else if (kind == 1) { /* the first axis is the fastest */
        int64_t s = 1 + below(g, 2);
        for (int d = 0; d < x->rank; d++) {
            x->str[d] = s;
            s *= x->ext[d];
        }
    } else if (kind == 2) {
        x->str[below(g, (unsigned)x->rank)] *= -1;
    } else if (kind == 3) {
        x->str[below(g, (unsigned)x->rank)] = 0;
    }
    const char *text = "";
    for (int d = 0; d < x->rank; d++) {
        if (x->str[d] == 1 && d == x->rank - 1) {
            text = FMT("%s%s1", text, d ? ", " : "");
            continue;
        }
        const char *s = fresh(g, "s");
        param(ps, FMT("i64 %s", s));
        text = FMT("%s%s%s", text, d ? ", " : "", s);
        /* an extent of 0 or 1 leaves the stride open: the host says it */
        give(g, s, KILN_ARG_INT, x->str[d], 0, KILN_DTYPE_NONE);
    }
    return FMT(" stride(%s)", text);
}

/* A written array whose memory an input may share, or -1. */
static int in_place_of(struct gen *g, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (g->p->array[i].written && chance(g, 12))
            return (int)i;
    return -1;
}

static void array_param(struct gen *g, struct params *ps, bool written, int64_t N, int64_t M)
{
    unsigned a = g->p->narray++;
    int with;
    struct rarray *x = &g->p->array[a];
    x->alias = -1;
    x->written = written;
    x->given = true;
    x->t = random_type(g, false);
    x->name = fresh(g, written ? "y" : "x");
    const char *ext[4] = {"N", "M", NULL, NULL};
    if (written) {
        x->rank = g->two ? 2 + chance(g, 20) : 1 + (int)below(g, 3);
        x->ext[0] = N;
        x->ext[1] = M;
        if (x->rank == 3) {
            x->ext[1] = 1 + below(g, 3);
            ext[1] = FMT("%d", (int)x->ext[1]);
            x->ext[2] = M;
            ext[2] = "M";
        }
    } else if ((with = in_place_of(g, a)) >= 0) {
        const char *name = x->name;
        *x = g->p->array[with];
        x->name = name;
        x->written = false;
        x->alias = with;
        for (int d = 0; d < x->rank; d++)
            ext[d] = d == 0 ? "N" : d == x->rank - 1 ? "M" : FMT("%d", (int)x->ext[d]);
    } else {
        x->rank = 1 + (int)below(g, 3);
        for (int d = 0; d < x->rank; d++) {
            x->ext[d] = d == 0 && chance(g, 40) ? N : chance(g, 30) ? M : 1 + below(g, 40);
            if (x->rank == 3 && x->ext[d] > 12)
                x->ext[d] = 1 + below(g, 12);
            ext[d] = x->ext[d] == N ? "N" : x->ext[d] == M ? "M" : NULL;
            if (!ext[d] && chance(g, 50)) {
                ext[d] = fresh(g, "n");
                param(ps, FMT("i64 %s", ext[d]));
            } else if (!ext[d]) {
                ext[d] = FMT("%d", (int)x->ext[d]);
            }
        }
    }
    bool open = false; /* an extent that only this array gives */
    for (int d = 0; d < x->rank; d++)
        open |= ext[d][0] == 'n';
    const char *strides = "", *dims = "", *type = NAME(x->t);
    if (x->alias < 0) {
        strides = choose_strides(g, x, ps);
    } else { /* the same strides as the array it shares memory with */
        for (int d = 0; d < x->rank; d++) {
            const char *s = fresh(g, "s");
            param(ps, FMT("i64 %s", s));
            give(g, s, KILN_ARG_INT, x->str[d], 0, KILN_DTYPE_NONE);
            strides = FMT("%s%s%s", strides, d ? ", " : "", s);
        }
        strides = FMT(" stride(%s)", strides);
    }
    for (int d = 0; d < x->rank; d++)
        dims = FMT("%s[%s]", dims, ext[d]);
    if (!written && x->alias < 0 && x->rank == 1 && !*strides && !open && chance(g, 15)) {
        dims = "[]";
        g->bounded[a] = true;
    }
    if (chance(g, 15)) { /* its type is a parameter; what the host has decides */
        const char *ty = fresh(g, "T");
        param(ps, FMT("type %s = %s", ty, NAME(random_type(g, false))));
        type = ty;
    }
    bool optional = !written && x->alias < 0 && !g->bounded[a] && chance(g, 20);
    g->optional[a] = optional;
    x->given = !optional || open || *strides || chance(g, 50);
    param(ps, FMT("%s%s%s %s%s%s", optional ? "optional " : "", written ? "" : "const ", type,
                  x->name, dims, strides));
}

static bool is_signed(kiln_dtype t)
{
    return t >= KILN_I8 && t <= KILN_I64;
}

static void parameters(struct gen *g, struct params *ps)
{
    int64_t N = 1 + below(g, 14), M = chance(g, 20) ? 1 + below(g, 4) : 5 + below(g, 60);
    param(ps, "i64 N");
    param(ps, "i64 M");
    give(g, "N", KILN_ARG_INT, N, 0, KILN_DTYPE_NONE);
    give(g, "M", KILN_ARG_INT, M, 0, KILN_DTYPE_NONE);
    unsigned nout = 1 + below(g, 2), nin = 1 + below(g, 4);
    for (unsigned i = 0; i < nout; i++)
        array_param(g, ps, true, N, M);
    for (unsigned i = 0; i < nin; i++)
        array_param(g, ps, false, N, M);
    param(ps, "i64 trips = 2");
    give(g, "trips", KILN_ARG_INT, below(g, 5), 0, KILN_DTYPE_NONE);
    declare(g, "N", KILN_I64, SCALAR, true);
    declare(g, "M", KILN_I64, SCALAR, true);
    for (unsigned i = below(g, 4); i > 0; i--) {
        kiln_dtype t = random_type(g, chance(g, 50));
        const char *name = fresh(g, "p");
        bool defaulted = chance(g, 30);
        param(ps, defaulted ? FMT("%s %s = %s", NAME(t), name, literal(g, t))
                            : FMT("%s %s", NAME(t), name));
        if (!defaulted && is_float(t))
            give(g, name, KILN_ARG_FLOAT, 0, ((int)below(g, 200) - 100) / 8.0, KILN_DTYPE_NONE);
        else if (!defaulted && t == KILN_U64 && chance(g, 40))
            give(g, name, KILN_ARG_UINT, -1 - (int)below(g, 40), 0, KILN_DTYPE_NONE);
        else if (!defaulted && t == KILN_BOOL)
            give(g, name, KILN_ARG_INT, below(g, 2), 0, KILN_DTYPE_NONE);
        else if (!defaulted)
            give(g, name, KILN_ARG_INT, (int)below(g, 40) - (is_signed(t) ? 10 : 0), 0,
                 KILN_DTYPE_NONE);
        declare(g, name, t, SCALAR, true);
    }
    param(ps, FMT("constexpr i64 R = %d", chance(g, 50) ? g->R : 1));
    give(g, "R", KILN_ARG_INT, g->R, 0, KILN_DTYPE_NONE);
    if (g->two) {
        param(ps, "constexpr i64 CB = 8");
        give(g, "CB", KILN_ARG_INT, g->CB, 0, KILN_DTYPE_NONE);
    }
}

void generate(struct rprog *p, uint64_t seed)
{
    struct gen gen = {.p = p, .r = {seed * 0x2545f4914f6cdd1du + 88172645463325252u}},
               *g = &gen;
    memset(p, 0, sizeof *p);
    p->seed = seed;
    g->mem = &p->mem;
    p->line = pool_get(g->mem, MAX_LINES * sizeof *p->line);
    p->specials = chance(g, 40);
    g->budget = 15 + (int)below(g, 40);
    line(g, "#pragma kiln 1");
    for (unsigned n = below(g, MAX_FUNCS); n > 0; n--)
        function(g);
    for (unsigned n = below(g, MAX_STRUCTS + 1); n > 0; n--)
        structure(g);
    g->rows = chance(g, 40);
    if (g->rows) {
        line(g, "auto row(global const T q[L][D], i64 i)");
        line(g, "{");
        line(g, "    return q[i][1:6];");
        line(g, "}");
        line(g, "");
    }
    struct params ps = {.n = 0};
    g->R = 1 + (int)below(g, 5);
    g->CB = 1 + (int)below(g, 20);
    g->two = chance(g, 25);
    g->arrays = true;
    parameters(g, &ps);
    line(g, FMT("kernel k(%s,", ps.v[0]));
    for (unsigned i = 1; i < ps.n; i++)
        line(g, FMT("         %s%s", ps.v[i], i + 1 < ps.n ? "," : ")"));
    line(g, g->two ? "    grid(cdiv(N, R), cdiv(M, CB))" : "    grid(cdiv(N, R))");
    uint64_t how = seed * 0x9e3779b97f4a7c15u >> 32; /* not from g->r: programs stay what they were */
    if (how % 3 == 0)
        line(g, FMT("    warps(%d) cluster(%d)", 1 << how / 3 % 4, 2 << how / 12 % 4));
    line(g, "{");
    g->depth = 1;
    line(g, "i64 r = program_id(0) * R;");
    declare(g, "r", KILN_I64, SCALAR, true);
    if (g->two) {
        line(g, "i64 cb = program_id(1) * CB;");
        declare(g, "cb", KILN_I64, SCALAR, true);
    }
    statements(g, 3 + below(g, 6));
    if (chance(g, 8))
        line(g, FMT("if (%s) return;", expr(g, KILN_BOOL, SCALAR, 2)));
    statements(g, below(g, 3));
    for (unsigned i = 0; i < 2; i++)
        store(g); /* something must come out */
    g->depth = 0;
    line(g, "}");
}
