/* expr.c - random expressions.
 *
 * expr() gives a text of a known type and shape, so the generator applies the language's
 * rules of promotion and broadcasting itself: an operand of another type or a smaller shape
 * appears only where the rules say that the result stays what was asked for. */
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

#define PICK(g, table) (table)[below((g), sizeof(table) / sizeof *(table))]

/* ---- types and shapes ---- */

bool is_float(kiln_dtype t)
{
    return t == KILN_F16 || t == KILN_BF16 || t == KILN_F32 || t == KILN_F64 || t == KILN_F8E4M3 ||
           t == KILN_F8E5M2;
}

bool is_compute(kiln_dtype t)
{
    return t == KILN_I32 || t == KILN_U32 || t == KILN_I64 || t == KILN_U64 || t == KILN_F32 ||
           t == KILN_F64;
}

kiln_dtype random_type(struct gen *g, bool compute)
{
    static const kiln_dtype all[] = {KILN_F32, KILN_F32, KILN_F32, KILN_F32, KILN_F64, KILN_I32,
                                     KILN_I32, KILN_I64, KILN_U32, KILN_U64, KILN_F16, KILN_BF16,
                                     KILN_U8, KILN_BOOL, KILN_I8, KILN_I16, KILN_U16, KILN_F8E4M3,
                                     KILN_F8E5M2};
    return all[below(g, compute ? 10 : 19)];
}

bool same_shape(struct shape a, struct shape b)
{
    if (a.rank != b.rank)
        return false;
    for (int d = 0; d < a.rank; d++)
        if (a.dim[d] != b.dim[d])
            return false;
    return true;
}

int shape_numel(struct shape s)
{
    int n = 1;
    for (int d = 0; d < s.rank; d++)
        n *= s.dim[d];
    return n;
}

const char *dims_text(struct gen *g, struct shape s)
{
    const char *t = "";
    for (int d = 0; d < s.rank; d++)
        t = s.dim[d] == g->R && g->arrays && chance(g, 50) ? FMT("%s[R]", t)
                                                           : FMT("%s[%d]", t, s.dim[d]);
    return t;
}

const char *commas_text(struct gen *g, struct shape s)
{
    const char *t = "";
    for (int d = 0; d < s.rank; d++)
        t = FMT("%s, %d", t, s.dim[d]);
    return t;
}

int random_dim(struct gen *g)
{
    static const int dims[] = {1, 2, 3, 4, 4, 5, 7, 8, 8, 13, 16, 17, 31, 33};
    return PICK(g, dims);
}

struct shape random_shape(struct gen *g, int rank)
{
    struct shape s = {rank, {0}};
    for (int d = 0; d < rank; d++) {
        s.dim[d] = random_dim(g);
        while (shape_numel((struct shape){d + 1, {s.dim[0], s.dim[1], s.dim[2], s.dim[3]}}) > 300)
            s.dim[d] = (s.dim[d] + 1) / 2;
    }
    return s;
}

/* A shape that broadcasts to s. */
static struct shape narrower(struct gen *g, struct shape s)
{
    struct shape n = s;
    if (s.rank == 0 || chance(g, 55))
        return s;
    if (chance(g, 50))
        return SCALAR;
    if (chance(g, 50)) { /* without leading axes */
        int drop = 1 + (int)below(g, (unsigned)s.rank);
        n.rank = s.rank - drop;
        for (int d = 0; d < n.rank; d++)
            n.dim[d] = s.dim[d + drop];
        return n;
    }
    n.dim[below(g, (unsigned)s.rank)] = 1;
    return n;
}

/* ---- leaves ---- */

const char *literal(struct gen *g, kiln_dtype t)
{
    static const char *const f[] = {"0.5", "1", "1.0", "2", "-1.5", "0.1", "3.25", "-0.75", "7",
                                    "1e-3", "100", "0", "-2", "0.3333333", "12345.678"};
    static const char *const big[] = {"inf", "-inf", "nan", "1e30", "1e-30", "3e-39"};
    static const char *const i[] = {"0", "1", "2", "3", "5", "7", "-1", "-8", "31", "32", "33",
                                    "63", "64", "100", "-100", "255", "1000003", "2147483647",
                                    "-2147483647", "65536"};
    static const char *const u[] = {"0", "1", "2", "3", "7", "31", "32", "255", "65535",
                                    "2147483648", "4294967295"};
    static const char *const b[] = {"0", "1", "2", "7", "100", "255"};
    static const char *const wide[] = {"0", "1", "2", "3", "7", "31", "63", "64", "255", "65536",
                                       "4294967296", "9223372036854775808",
                                       "18446744073709551615", "0xfffffffffffffffe"};
    static const char *const narrow[] = {"0", "1", "2", "-1", "-8", "31", "100", "127", "-128"};
    static const char *const small[] = {"0.5", "1", "2", "-1.5", "0.1", "3.25", "7", "1e-3", "-2",
                                        "0.3333333", "100", "448", "-0.015625"};
    if (t == KILN_BOOL)
        return chance(g, 50) ? "true" : "false";
    if (t == KILN_U8)
        return PICK(g, b);
    if (t == KILN_U32)
        return PICK(g, u);
    if (t == KILN_U64)
        return PICK(g, wide);
    if (t == KILN_U16)
        return chance(g, 30) ? "65535" : PICK(g, b);
    if (t == KILN_I8)
        return PICK(g, narrow);
    if (t == KILN_I16)
        return chance(g, 30) ? "-32768" : PICK(g, narrow);
    if (t == KILN_F8E4M3 || t == KILN_F8E5M2)
        return PICK(g, small);
    if (!is_float(t))
        return PICK(g, i);
    if (g->p->specials && (t == KILN_F32 || t == KILN_F64) && chance(g, 6))
        return PICK(g, big);
    return PICK(g, f);
}

static const char *typed_constant(struct gen *g, kiln_dtype t, struct shape s)
{
    const char *l = literal(g, t);
    if (s.rank == 0)
        return FMT("(%s)(%s)", NAME(t), l);
    if (t == KILN_I32 && s.rank == 1 && chance(g, 60))
        return FMT("range(%d)", s.dim[0]);
    if (t != KILN_BOOL && chance(g, 40))
        return FMT("(%s)reshape(range(%d)%s)", NAME(t), shape_numel(s), commas_text(g, s));
    return FMT("full((%s)(%s)%s)", NAME(t), l, commas_text(g, s));
}

static const char *some_var(struct gen *g, kiln_dtype t, struct shape s)
{
    unsigned n = 0;
    const char *pick = NULL;
    for (unsigned i = 0; i < g->nvar; i++)
        if (g->var[i].t == t && same_shape(g->var[i].s, s) && below(g, ++n) == 0)
            pick = g->var[i].name;
    return pick;
}

/* A variable of a larger shape, cut to s: constant sections, or a run-time subscript. */
static const char *cut_var(struct gen *g, kiln_dtype t, struct shape s)
{
    for (unsigned i = 0; i < g->nvar; i++) {
        const struct var *v = &g->var[i];
        if (v->t != t || v->s.rank == 0 || !chance(g, 50))
            continue;
        if (v->s.rank == s.rank + 1) {
            struct shape rest = {s.rank, {0}};
            for (int d = 0; d < s.rank; d++)
                rest.dim[d] = v->s.dim[d + 1];
            if (same_shape(rest, s))
                return FMT("%s[%s]", v->name, index_text(g, v->s.dim[0]));
        }
        if (v->s.rank != s.rank)
            continue;
        bool fits = true;
        for (int d = 0; d < s.rank; d++)
            fits = fits && v->s.dim[d] >= s.dim[d];
        if (!fits || same_shape(v->s, s))
            continue;
        const char *x = v->name;
        for (int d = 0; d < s.rank; d++) {
            int room = v->s.dim[d] - s.dim[d], step = 1;
            if (s.dim[d] > 1 && v->s.dim[d] > 2 * (s.dim[d] - 1) && chance(g, 30)) {
                step = 2;
                room = v->s.dim[d] - 1 - 2 * (s.dim[d] - 1);
            }
            int at = (int)below(g, (unsigned)room + 1);
            x = step == 1 ? FMT("%s[%d:%d]", x, at, s.dim[d])
                          : FMT("%s[%d:%d:2]", x, at, s.dim[d]);
        }
        return x;
    }
    return NULL;
}

const char *index_text(struct gen *g, int64_t n)
{
    switch (below(g, 6)) {
    case 0:
    case 1: {
        const char *v = some_var(g, KILN_I64, SCALAR);
        if (v)
            return chance(g, 30) ? FMT("%s + %u", v, below(g, 4)) : v;
        break;
    }
    case 2:
        if (g->arrays && chance(g, 60))
            return FMT("program_id(0) * %u", 1 + below(g, 5));
        break;
    case 3:
        if (g->budget > 0 && chance(g, 40))
            return FMT("(i64)%s", expr(g, KILN_I32, SCALAR, 1));
        break;
    case 4:
        if (chance(g, 15))
            return FMT("%d", -1 - (int)below(g, 4));
        break;
    default:
        break;
    }
    return FMT("%u", below(g, (unsigned)(n > 0 ? n : 1) + 1));
}

const char *subscript_text(struct gen *g, unsigned a, int d, int count, bool own)
{
    const struct rarray *x = &g->p->array[a];
    int window = own && d == 0 ? g->R : own && d == x->rank - 1 && g->two ? g->CB : 0;
    const char *base = d == 0 ? "r" : "cb";
    if (g->bounded[a]) { /* no extent is known: stay inside */
        int step = count > 1 && x->ext[d] > 2 * count && chance(g, 30) ? 2 : 1;
        int room = (int)x->ext[d] - (count > 1 ? (count - 1) * step : 0);
        unsigned at = below(g, (unsigned)room);
        return !count     ? FMT("[%u]", at)
               : step > 1 ? FMT("[%u:%d:2]", at, count)
                          : FMT("[%u:%d]", at, count);
    }
    if (window) {
        int step = count > 1 && window > 2 * (count - 1) && chance(g, 30) ? 2 : 1;
        int room = window - 1 - (count > 1 ? (count - 1) * step : 0);
        unsigned at = below(g, (unsigned)room + 1);
        const char *first = at ? FMT("%s + %u", base, at) : base;
        return !count     ? FMT("[%s]", first)
               : step > 1 ? FMT("[%s:%d:2]", first, count)
                          : FMT("[%s:%d]", first, count);
    }
    const char *first = g->R && d == 0 && chance(g, 40)                        ? "r"
                        : g->two && d == x->rank - 1 && d > 0 && chance(g, 50) ? "cb"
                        : chance(g, 35)                                        ? "0"
                                                        : index_text(g, x->ext[d]);
    if (!count)
        return FMT("[%s]", first);
    if (chance(g, 15))
        return FMT("[%s:%d:%u]", first, count, 2 + below(g, 2));
    return FMT("[%s:%d]", first, count);
}

const char *access_text(struct gen *g, unsigned a, struct shape *s, bool fixed_shape, bool own)
{
    const struct rarray *x = &g->p->array[a];
    int limit[4], rank = x->rank;
    for (int d = 0; d < rank; d++) {
        limit[d] = own && d == 0 ? g->R : own && d == rank - 1 && g->two ? g->CB : 300;
        if (g->bounded[a])
            limit[d] = (int)x->ext[d];
    }
    bool section[4] = {false, false, false, false};
    if (!fixed_shape) {
        s->rank = 0;
        int numel = 1;
        for (int d = 0; d < rank; d++) {
            section[d] = chance(g, 80);
            if (!section[d])
                continue;
            int n = own && d == 0 ? 1 + (int)below(g, (unsigned)g->R) : random_dim(g);
            if (own && d == 0 && chance(g, 60))
                n = g->R;
            n = n > limit[d] ? limit[d] : n;
            while (numel * n > 300)
                n = (n + 1) / 2;
            numel *= n;
            s->dim[s->rank++] = n;
        }
    } else {
        if (s->rank > rank)
            return NULL;
        int k = 0, left = s->rank;
        for (int d = 0; d < rank; d++) {
            bool must = rank - d == left;
            section[d] = left > 0 && (must || chance(g, 70));
            if (section[d]) {
                if (s->dim[k] > limit[d])
                    return NULL;
                k++;
                left--;
            }
        }
    }
    const char *t = x->name;
    for (int d = 0, k = 0; d < rank; d++)
        t = FMT("%s%s", t, subscript_text(g, a, d, section[d] ? s->dim[k++] : 0, own));
    return t;
}

/* Must accesses of array a stay in what the program owns?  Written arrays, and those that
 * share their memory. */
static bool owned(struct gen *g, unsigned a)
{
    if (g->p->array[a].written)
        return true;
    for (unsigned i = 0; i < g->p->narray; i++)
        if (g->p->array[i].alias == (int)a || g->p->array[a].alias == (int)i)
            return true;
    return false;
}

static const char *some_load(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    if (!g->arrays || !g->p->narray)
        return NULL;
    unsigned first = below(g, g->p->narray);
    for (unsigned i = 0; i < g->p->narray; i++) {
        unsigned a = (first + i) % g->p->narray;
        const struct rarray *x = &g->p->array[a];
        if (x->t != t || !x->given)
            continue;
        const char *at = access_text(g, a, &s, true, owned(g, a));
        if (!at)
            continue;
        if (depth > 0 && s.rank > 0 && chance(g, 40)) {
            const char *fill = chance(g, 50) ? literal(g, t) : expr(g, t, SCALAR, depth - 2);
            if (chance(g, 50))
                return FMT("load(%s, %s)", at, fill);
            return FMT("load(%s, %s, .mask = %s)", at, fill,
                       expr(g, KILN_BOOL, narrower(g, s), depth - 1));
        }
        return at;
    }
    return NULL;
}

/* Can a value of type u be cast to t within a leaf? All casts are defined. */
static const char *cast_var(struct gen *g, kiln_dtype t, struct shape s)
{
    unsigned n = 0;
    const struct var *pick = NULL;
    for (unsigned i = 0; i < g->nvar; i++)
        if (same_shape(g->var[i].s, s) && below(g, ++n) == 0)
            pick = &g->var[i];
    return !pick ? NULL : pick->t == t ? pick->name : FMT("(%s)%s", NAME(t), pick->name);
}

/* An element or section of any array, cast. */
static const char *cast_load(struct gen *g, kiln_dtype t, struct shape s)
{
    if (!g->arrays || !g->p->narray)
        return NULL;
    unsigned a = below(g, g->p->narray);
    if (!g->p->array[a].given)
        return NULL;
    const char *at = access_text(g, a, &s, true, owned(g, a));
    return !at ? NULL : g->p->array[a].t == t ? at : FMT("(%s)%s", NAME(t), at);
}

static const char *leaf(struct gen *g, kiln_dtype t, struct shape s)
{
    const char *x = NULL;
    for (unsigned tries = 0; tries < 4 && !x; tries++)
        switch (below(g, 9)) {
        case 0:
        case 1:
        case 2: x = some_var(g, t, s); break;
        case 3: x = some_load(g, t, s, 0); break;
        case 4: x = cast_var(g, t, s); break;
        case 5: x = cut_var(g, t, s); break;
        case 6:
        case 7: x = cast_load(g, t, s); break;
        default:
            if (s.rank > 0 && (x = some_var(g, t, SCALAR)))
                x = FMT("full(%s%s)", x, commas_text(g, s));
            break;
        }
    return x ? x : typed_constant(g, t, s);
}

/* ---- operations ---- */

/* A type that gives t when it meets t in arithmetic. */
static kiln_dtype joining(struct gen *g, kiln_dtype t)
{
    static const kiln_dtype f32[] = {KILN_F16, KILN_BF16, KILN_I32, KILN_U8, KILN_BOOL, KILN_I64,
                                     KILN_F8E4M3, KILN_F8E5M2, KILN_U64, KILN_I16};
    static const kiln_dtype f64[] = {KILN_F32, KILN_F16, KILN_I32, KILN_I64, KILN_U32, KILN_U64,
                                     KILN_F8E4M3};
    static const kiln_dtype i64[] = {KILN_I32, KILN_U8, KILN_U32, KILN_BOOL, KILN_I8, KILN_U16};
    static const kiln_dtype i32[] = {KILN_U8, KILN_BOOL, KILN_I8, KILN_I16, KILN_U16};
    if (!chance(g, 25))
        return t;
    return t == KILN_F32   ? PICK(g, f32)
           : t == KILN_F64 ? PICK(g, f64)
           : t == KILN_I64 ? PICK(g, i64)
           : t == KILN_I32 ? PICK(g, i32)
           : t == KILN_U64 ? KILN_U32
                           : t;
}

const char *operand(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    if (chance(g, 20))
        return FMT("(%s)", literal(g, t));
    return expr(g, joining(g, t), narrower(g, s), depth);
}

static const char *binary(struct gen *g, kiln_dtype t, struct shape s, const char *op, int depth)
{
    const char *a = expr(g, t, s, depth - 1);
    if (chance(g, 6)) /* what algebraic rules look for: x - x, (x + 2) + 3 */
        return FMT("(%s %s %s)", a, op, a);
    if (chance(g, 8) && strchr("+-*", *op))
        return FMT("((%s %s (%s)) %s (%s))", a, op, literal(g, t), op, literal(g, t));
    const char *b = operand(g, t, s, depth - 1);
    return chance(g, 70) ? FMT("(%s %s %s)", a, op, b) : FMT("(%s %s %s)", b, op, a);
}

static const char *call2(struct gen *g, kiln_dtype t, struct shape s, const char *fn, int depth)
{
    const char *a = expr(g, t, s, depth - 1), *b = operand(g, t, s, depth - 1);
    return chance(g, 60) ? FMT("%s(%s, %s)", fn, a, b) : FMT("%s(%s, %s)", fn, b, a);
}

static const char *arithmetic(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    static const char *const common[] = {"+", "+", "-", "-", "*", "*"};
    static const char *const ints[] = {"/", "%", "&", "|", "^"};
    static const char *const fns[] = {"cdiv", "floordiv", "floormod", "umulhi"};
    unsigned k = below(g, 10);
    if (k < 5)
        return binary(g, t, s, PICK(g, common), depth);
    if (k < 7)
        return call2(g, t, s, chance(g, 50) ? "min" : "max", depth);
    if (k == 7)
        return FMT("(-%s)", expr(g, t, s, depth - 1));
    if (is_float(t)) {
        if (k == 8)
            return binary(g, t, s, "/", depth);
        return FMT("fma(%s, %s, %s)", expr(g, t, s, depth - 1), operand(g, t, s, depth - 1),
                   operand(g, t, s, depth - 2));
    }
    if (k == 8)
        return binary(g, t, s, PICK(g, ints), depth);
    if (chance(g, 40)) { /* the count may have any integer type */
        static const kiln_dtype counts[] = {KILN_I32, KILN_U32, KILN_I64, KILN_U8, KILN_U64, KILN_I8};
        kiln_dtype u = PICK(g, counts);
        const char *a = expr(g, t, s, depth - 1), *op = chance(g, 50) ? "<<" : ">>";
        const char *b = chance(g, 60) ? FMT("%u", below(g, 70))
                                      : expr(g, u, narrower(g, s), depth - 1);
        return FMT("(%s %s %s)", a, op, b);
    }
    return chance(g, 60) ? call2(g, t, s, PICK(g, fns), depth)
                         : FMT("(~%s)", expr(g, t, s, depth - 1));
}

static const char *math(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    static const char *const fns[] = {"abs", "sqrt", "exp", "tanh", "floor", "sigmoid", "erf",
                                      "log", "rsqrt", "exp2", "exp_fast", "tanh_fast", "erfc",
                                      "sin", "cos", "log2", "log1p", "expm1", "round", "trunc",
                                      "sin_fast"};
    static const char *const two[] = {"pow", "fmod", "copysign", "pow"};
    static const char *const ints[] = {"abs", "popcount", "clz", "ctz"};
    if (!is_float(t))
        return FMT("%s(%s)", PICK(g, ints), expr(g, t, s, depth - 1));
    if (chance(g, 20))
        return call2(g, t, s, PICK(g, two), depth);
    if (chance(g, 15))
        return FMT("clamp(%s, %s, %s)", expr(g, t, s, depth - 1), operand(g, t, s, depth - 2),
                   operand(g, t, s, depth - 2));
    return FMT("%s(%s)", PICK(g, fns), expr(g, t, s, depth - 1));
}

static const char *select_text(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    const char *c = expr(g, KILN_BOOL, chance(g, 60) ? s : narrower(g, s), depth - 1);
    const char *a = expr(g, t, s, depth - 1);
    const char *b = chance(g, 30) ? FMT("(%s)", literal(g, t))
                                  : expr(g, t, narrower(g, s), depth - 1);
    return chance(g, 50) ? FMT("(%s ? %s : %s)", c, a, b) : FMT("(%s ? %s : %s)", c, b, a);
}

static const char *reduction(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    struct shape in = s;
    const char *axis = "";
    int rank1 = 0;
    if (s.rank == 0) {
        in = random_shape(g, 1 + (int)below(g, 2));
        rank1 = in.rank == 1;
    } else {
        int ones = 0, d = -1;
        for (int i = 0; i < s.rank; i++)
            if (s.dim[i] == 1 && below(g, (unsigned)++ones) == 0)
                d = i;
        if (d < 0)
            return NULL;
        in.dim[d] = random_dim(g);
        if (shape_numel(in) > 600)
            return NULL;
        axis = FMT(", .axis = %d", d);
    }
    if (t == KILN_BOOL)
        return FMT("%s(%s%s)", chance(g, 50) ? "any" : "all", expr(g, t, in, depth - 1), axis);
    if (t == KILN_I32 && (s.rank || rank1) && chance(g, 30))
        return FMT("argmax(%s%s)", expr(g, random_type(g, true), in, depth - 1), axis);
    if (t == KILN_I32 && chance(g, 20))
        return FMT("sum(%s%s)", expr(g, KILN_BOOL, in, depth - 1), axis);
    for (unsigned i = 0; i < g->nfunc; i++)
        if (g->func[i].kind == F_REDUCE && g->func[i].t == t && chance(g, 40))
            return FMT("reduce(%s, %s%s%s)", expr(g, t, in, depth - 1), g->func[i].name, axis,
                       chance(g, 40) ? ", .commutative = true" : "");
    static const kiln_dtype floats[] = {KILN_F16, KILN_BF16, KILN_F8E4M3, KILN_F8E5M2};
    static const kiln_dtype ints[] = {KILN_U8, KILN_I8, KILN_I16, KILN_U16};
    kiln_dtype u = t == KILN_F32 && chance(g, 30)   ? PICK(g, floats)
                   : t == KILN_I32 && chance(g, 20) ? PICK(g, ints)
                                                    : t;
    static const char *const fns[] = {"sum", "sum", "max", "min"};
    return FMT("%s(%s%s)", PICK(g, fns), expr(g, u, in, depth - 1), axis);
}

const char *pair_literal(struct gen *g, const struct pair *p, struct shape s, int depth)
{
    const char *a = expr(g, p->t[0], s, depth - 1);
    const char *b = expr(g, p->t[1], narrower(g, s), depth - 1); /* stretches */
    return chance(g, 80) ? FMT("(struct %s){%s, %s}", p->name, a, b)
                         : FMT("(struct %s){.b = %s, .a = %s}", p->name, b, a);
}

const char *pair_fold(struct gen *g, const struct pair *p, struct shape s, int depth)
{
    struct shape in = s;
    if (s.rank && chance(g, 60)) {
        int d = (int)below(g, (unsigned)s.rank);
        return FMT("scan(%s, %s, .axis = %d%s)", pair_literal(g, p, s, depth), p->join, d,
                   chance(g, 40) ? ", .reverse = true" : "");
    }
    const char *axis = "", *order = chance(g, 40) ? ", .commutative = true" : "";
    if (s.rank) {
        int d = 0;
        while (d < s.rank && s.dim[d] != 1)
            d++;
        if (d == s.rank)
            return NULL;
        in.dim[d] = random_dim(g);
        axis = FMT(", .axis = %d", d);
    } else {
        in = random_shape(g, 1 + (int)below(g, 2));
    }
    return shape_numel(in) > 600
               ? NULL
               : FMT("reduce(%s, %s%s%s)", pair_literal(g, p, in, depth), p->join, axis, order);
}

static const char *scan_text(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    const char *how = chance(g, 40) ? ", .reverse = true" : "";
    int d = (int)below(g, (unsigned)s.rank);
    if (!is_compute(t))
        return NULL;
    how = s.rank == 1 && chance(g, 50) ? how : FMT(", .axis = %d%s", d, how);
    for (unsigned i = 0; i < g->nfunc; i++)
        if (g->func[i].kind == F_REDUCE && g->func[i].t == t && chance(g, 60))
            return FMT("scan(%s, %s%s)", expr(g, t, s, depth - 1), g->func[i].name, how);
    for (unsigned i = 0; i < g->npair; i++)
        for (int k = 0; k < 2; k++)
            if (g->pair[i].t[k] == t && chance(g, 40)) {
                const char *f = pair_fold(g, &g->pair[i], s, depth);
                if (f)
                    return FMT("%s.%c", f, "ab"[k]);
            }
    kiln_dtype u = t == KILN_F32 && chance(g, 20) ? KILN_BF16 : t == KILN_I32 && chance(g, 20) ? KILN_BOOL : t;
    return FMT("%s(%s%s)", chance(g, 70) ? "cumsum" : "cumprod", expr(g, u, s, depth - 1), how);
}

/* Another shape with the same number of elements. */
static struct shape refactor(struct gen *g, struct shape s)
{
    int n = shape_numel(s);
    struct shape o = {0, {0}};
    while (o.rank < 3 && n > 1 && chance(g, 75)) {
        int f = 1 + (int)below(g, 8);
        if (n % f == 0) {
            o.dim[o.rank++] = f;
            n /= f;
        }
    }
    if (n > 1 || o.rank == 0)
        o.dim[o.rank++] = n;
    return o;
}

static const char *reshaping(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    struct shape in = s;
    if (s.rank == 0)
        return NULL;
    if (chance(g, 20))
        return scan_text(g, t, s, depth);
    switch (below(g, 6)) {
    case 0:
        return FMT("reshape(%s%s)", expr(g, t, refactor(g, s), depth - 1), commas_text(g, s));
    case 1:
        if (s.rank == 2 && s.dim[1] == 1 && chance(g, 50))
            return FMT("trans(%s)", expr(g, t, (struct shape){1, {s.dim[0]}}, depth - 1));
        if (s.rank != 2)
            return NULL;
        in.dim[0] = s.dim[1];
        in.dim[1] = s.dim[0];
        return FMT("trans(%s)", expr(g, t, in, depth - 1));
    case 2: {
        if (s.rank < 2)
            return NULL;
        int p[4] = {0, 1, 2, 3};
        for (int i = s.rank - 1; i > 0; i--) {
            int j = (int)below(g, (unsigned)i + 1), x = p[i];
            p[i] = p[j];
            p[j] = x;
        }
        const char *order = "";
        for (int d = 0; d < s.rank; d++) {
            in.dim[p[d]] = s.dim[d]; /* axis d of the result is axis p[d] of the operand */
            order = FMT("%s, %d", order, p[d]);
        }
        return FMT("permute(%s%s)", expr(g, t, in, depth - 1), order);
    }
    case 3:
        return FMT("broadcast(%s%s)", expr(g, t, narrower(g, s), depth - 1), commas_text(g, s));
    case 4: {
        int d = (int)below(g, (unsigned)s.rank);
        return FMT("flip(%s, .axis = %d)", expr(g, t, s, depth - 1), d);
    }
    default: {
        int d = (int)below(g, (unsigned)s.rank);
        if (s.dim[d] < 2)
            return NULL;
        in.dim[d] = 1 + (int)below(g, (unsigned)s.dim[d] - 1);
        struct shape rest = s;
        rest.dim[d] = s.dim[d] - in.dim[d];
        const char *a = expr(g, t, in, depth - 1);
        return FMT("cat(%s, %s, .axis = %d)", a, expr(g, t, rest, depth - 1), d);
    }
    }
}

static const char *dot_text(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    if (s.rank < 2 || s.rank > 3 || !is_compute(t))
        return NULL;
    int k = random_dim(g), m = s.rank - 2, n = s.rank - 1;
    if (k * s.dim[m] > 300 || k * s.dim[n] > 300)
        return NULL;
    static const kiln_dtype f[] = {KILN_F32, KILN_F32, KILN_F16, KILN_BF16, KILN_F8E4M3, KILN_F8E5M2};
    static const kiln_dtype i[] = {KILN_I32, KILN_I32, KILN_U8, KILN_I8, KILN_I16, KILN_U16};
    kiln_dtype u = t == KILN_F32 ? PICK(g, f) : t == KILN_I32 ? PICK(g, i) : t;
    struct shape a = s, b = s;
    a.dim[n] = k;
    b.dim[m] = k;
    const char *x = expr(g, u, a, depth - 1), *y = expr(g, u, b, depth - 1);
    static const char *const how[] = {"", "", ", .precision = tf32", ", .precision = tf32x3"};
    const char *prec = u == KILN_F32 ? PICK(g, how) : "";
    if (chance(g, 50))
        return FMT("dot(%s, %s%s)", x, y, prec);
    return FMT("dot(%s, %s, %s%s)", x, y, expr(g, t, s, depth - 1), prec);
}

static const char *call_text(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    for (unsigned i = 0; i < g->nfunc; i++) {
        const struct func *f = &g->func[i];
        bool fits = f->kind == F_AUTO     ? is_compute(t)
                    : f->kind == F_LIFTED ? f->t == t
                    : f->kind == F_SCALAR ? f->t == t && s.rank == 0
                                          : false;
        if (!fits || !chance(g, 60))
            continue;
        const char *x = expr(g, t, s, depth - 1);
        for (unsigned k = 1; k < f->nparam; k++)
            x = FMT("%s, %s", x, expr(g, t, chance(g, 50) ? s : SCALAR, depth - 1));
        return FMT("%s(%s)", f->name, x);
    }
    return NULL;
}

static const char *boolean(struct gen *g, struct shape s, int depth)
{
    static const char *const cmp[] = {"<", "<=", ">", ">=", "==", "!="};
    static const char *const logic[] = {"&&", "||", "&", "|", "^"};
    unsigned k = below(g, 10);
    if (k < 5) {
        kiln_dtype t = random_type(g, true);
        return binary(g, t, s, PICK(g, cmp), depth);
    }
    if (k < 7)
        return FMT("(%s %s %s)", expr(g, KILN_BOOL, s, depth - 1), PICK(g, logic),
                   expr(g, KILN_BOOL, narrower(g, s), depth - 1));
    if (k == 7)
        return FMT("(!%s)", expr(g, KILN_BOOL, s, depth - 1));
    if (k == 8 && g->arrays && g->p->narray) {
        unsigned a = below(g, g->p->narray);
        const char *at = g->p->array[a].given && !g->bounded[a]
                             ? access_text(g, a, &s, true, owned(g, a))
                             : NULL;
        if (at)
            return FMT("inside(%s)", at);
    }
    return NULL;
}

static const char *operation(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    unsigned k = below(g, 100);
    if (k < 12) {
        const char *x = reduction(g, is_compute(t) || t == KILN_BOOL ? t : KILN_F32, s, depth);
        return x && !is_compute(t) && t != KILN_BOOL ? FMT("(%s)(%s)", NAME(t), x) : x;
    }
    if (k < 22)
        return reshaping(g, t, s, depth);
    if (k < 30)
        return select_text(g, t, s, depth);
    if (k < 36)
        return some_load(g, t, s, depth);
    if (k < 40)
        return cut_var(g, t, s);
    if (k < 46)
        return gather_text(g, t, s, depth);
    if (t == KILN_BOOL)
        return boolean(g, s, depth);
    if (k < 52 || !is_compute(t)) {
        kiln_dtype u = random_type(g, false);
        if ((t == KILN_F8E4M3 || t == KILN_F8E5M2) && chance(g, 30))
            return FMT("%s(%s, %s)", chance(g, 70) ? "cvt_nan" : "cvt_sat", NAME(t), expr(g, u, s, depth - 1));
        return u == t ? NULL : FMT("(%s)(%s)", NAME(t), expr(g, u, s, depth - 1));
    }
    if (k < 57)
        return dot_text(g, t, s, depth);
    if (k < 62)
        return call_text(g, t, s, depth);
    if (k < 73)
        return math(g, t, s, depth);
    return arithmetic(g, t, s, depth);
}

static void remember(struct gen *g, const char *x, kiln_dtype t, struct shape s)
{
    unsigned at = g->nseen < MAX_SEEN ? g->nseen++ : below(g, MAX_SEEN);
    g->seen[at] = (struct seen){x, t, s, g->nvar};
}

const char *expr(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    if (chance(g, 12))
        for (unsigned i = 0; i < g->nseen; i++)
            if (g->seen[i].t == t && same_shape(g->seen[i].s, s) && g->seen[i].nvar <= g->nvar &&
                chance(g, 50))
                return g->seen[i].text;
    if (depth <= 0 || g->budget <= 0 || chance(g, 10))
        return leaf(g, t, s);
    g->budget--;
    const char *x = NULL;
    for (unsigned tries = 0; tries < 3 && !x; tries++)
        x = operation(g, t, s, depth);
    if (!x)
        return leaf(g, t, s);
    if (strlen(x) < 200)
        remember(g, x, t, s);
    return x;
}
