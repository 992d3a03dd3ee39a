/* index.c - index tiles: gathers of anything, scatters to places that differ, rows at run time.
 *
 * Indices are brought near the range, one past it included, where a load reads its fill or 0 and a
 * store drops.  A scatter stays in what the program owns and names no place twice. */
#include <stdio.h>
#include <string.h>

#include "gen.h"

#define FMT(...) pool_fmt(g->mem, __VA_ARGS__)

/* An integer tile of shape s with values from 0 to n, mostly below n. */
static const char *numbers(struct gen *g, struct shape s, int64_t n, int depth)
{
    unsigned past = rng_chance(&g->r, 30);
    switch (rng_below(&g->r, 3)) {
    case 0: return FMT("floormod(%s, %d)", expr(g, KILN_I32, s, depth), (int)n + (int)past);
    case 1: return FMT("(%s %% %u)", expr(g, KILN_U32, s, depth), (unsigned)n + past);
    default: return FMT("floormod(%s, %d)", expr(g, KILN_I64, s, depth), (int)n + (int)past);
    }
}

/* The access's text: one index tile beside sections, or tiles of one shape everywhere. */
static const char *indexed(struct gen *g, unsigned a, struct shape s, int depth)
{
    const struct rarray *x = &g->p->array[a];
    const char *t = x->name;
    if (s.rank > x->rank || rng_chance(&g->r, 40)) {
        int first = (int)rng_below(&g->r, (unsigned)x->rank);
        for (int d = 0; d < x->rank; d++) {
            struct shape own = s;
            if (d != first && rng_chance(&g->r, 50)) /* an axis or two stretch */
                own.dim[rng_below(&g->r, (unsigned)s.rank)] = 1;
            if (d != first && rng_chance(&g->r, 30))
                t = FMT("%s[%s]", t, index_text(g, x->ext[d]));
            else
                t = FMT("%s[%s]", t, numbers(g, own, x->ext[d], depth));
        }
        return t;
    }
    int tile = (int)rng_below(&g->r, (unsigned)s.rank);
    for (int d = 0, k = 0; d < x->rank; d++) {
        bool axis = k < s.rank && (x->rank - d == s.rank - k || rng_chance(&g->r, 60));
        struct shape one = {1, {axis ? s.dim[k] : 1}};
        if (axis && k == tile)
            t = FMT("%s[%s]", t, numbers(g, one, x->ext[d], depth));
        else
            t = FMT("%s%s", t, subscript_text(g, a, d, axis ? s.dim[k] : 0, false));
        k += axis;
    }
    return t;
}

const char *gather_text(struct gen *g, kiln_dtype t, struct shape s, int depth)
{
    if (!s.rank)
        return NULL;
    for (unsigned a = 0; g->arrays && a < g->p->narray; a++) {
        const struct rarray *x = &g->p->array[a];
        bool mine = x->t == t && x->given && !x->written && x->alias < 0 && !g->bounded[a];
        if (!mine || rng_chance(&g->r, 30))
            continue;
        const char *at = indexed(g, a, s, depth - 2);
        if (rng_chance(&g->r, 50))
            return at;
        const char *fill = rng_chance(&g->r, 50) ? literal(g, t) : expr(g, t, SCALAR, depth - 2);
        if (rng_chance(&g->r, 50))
            return FMT("load(%s, %s)", at, fill);
        return FMT("load(%s, %s, .mask = %s)", at, fill, expr(g, KILN_BOOL, s, depth - 2));
    }
    for (unsigned i = 0; i < g->nvar && rng_chance(&g->r, 60); i++) { /* a row at run time */
        const struct var *v = &g->var[i];
        if (v->t == t && v->s.rank == s.rank + 1 &&
            memcmp(v->s.dim + 1, s.dim, (size_t)s.rank * sizeof *s.dim) == 0)
            return FMT("%s[%s]", v->name, index_text(g, v->s.dim[0]));
    }
    struct shape from = s;
    int axis = (int)rng_below(&g->r, (unsigned)s.rank), size = random_dim(g);
    from.dim[axis] = size;
    if (shape_numel(from) > 300)
        return NULL;
    return FMT("gather(%s, %s, .axis = %d)", expr(g, t, from, depth - 1),
               numbers(g, s, size, depth - 1), axis);
}

const char *scatter_text(struct gen *g, unsigned a, struct shape *s)
{
    const struct rarray *x = &g->p->array[a];
    unsigned n = 1 + rng_below(&g->r, (unsigned)g->R), turn = rng_below(&g->r, 7);
    const char *rows = rng_chance(&g->r, 50) ? FMT("r + (range(%u) + %u) %% %d", n, turn, g->R)
                                             : FMT("r + %d - range(%u)", g->R - 1, n);
    *s = (struct shape){1, {(int)n}};
    if (x->rank == 2 && rng_chance(&g->r, 40)) { /* index tiles along both */
        int m = 1 + (int)rng_below(&g->r, g->two ? (unsigned)g->CB : 20);
        s->rank = 2;
        s->dim[1] = m;
        return FMT("%s[reshape(%s, %u, 1)][%srange(%d)]", x->name, rows, n, g->two ? "cb + " : "", m);
    }
    const char *t = FMT("%s[%s]", x->name, rows);
    for (int d = 1; d < x->rank; d++) {
        int limit = d == x->rank - 1 && g->two ? g->CB : 300, m = random_dim(g);
        m = m > limit ? limit : m;
        while (shape_numel(*s) * m > 300)
            m = (m + 1) / 2;
        bool section = rng_chance(&g->r, 80);
        t = FMT("%s%s", t, subscript_text(g, a, d, section ? m : 0, true));
        if (section)
            s->dim[s->rank++] = m;
    }
    return t;
}
