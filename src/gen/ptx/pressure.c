/* pressure.c - how many registers of a thread the values of a program hold at once.
 *
 * The instructions are numbered in the order of the text.  A value lives from its own number to that
 * of its last use; where the use stands in a loop that the value does not, to the end of the loop.
 * Only loads and folds are looked at: between them the assembler takes element after element through
 * a chain of operations, whatever the order of the text. */
#include "gen/ptx/ptx.h"

struct span {
    uint32_t from, to; /* numbers; 0: does not count */
};

struct sweep {
    const struct pgen *g;
    struct span *of; /* by value */
    const uint32_t *uses;
    uint32_t *depth; /* loops around a value's definition */
    bool *anchor;    /* by number: a load or a fold */
    uint32_t now, loops; /* number of the last instruction; loops around it */
};

/* The value that holds the registers: views move nothing, and what is broadcast is there once. */
static kl_val holder(const kl_fn *f, kl_val v)
{
    for (;;) {
        uint16_t op = kl_in(f, v)->op;
        if (op != KL_OP_reshape && op != KL_OP_permute && op != KL_OP_broadcast)
            return v;
        v = kl_arg(f, v, 0);
    }
}

static uint32_t registers(const struct pgen *g, kl_val v)
{
    const struct kl_ins *in = kl_in(g->f, v);
    if (!in->type.id || !g->lay[v.id] || in->op == KL_OP_const || in->op == KL_OP_iota)
        return 0;
    const struct kl_type *t = kl_type_of(g->f, v);
    if (t->kind != KL_T_TILE || t->elem == KL_bool)
        return 0; /* masks are made where they are used */
    return kl_layout_nreg(g->lay[v.id]) * (kl_elems[t->elem].bytes == 8 ? 2 : 1);
}

static void use(struct sweep *s, kl_val v)
{
    v = holder(s->g->f, v);
    struct span *p = &s->of[v.id];
    if (s->depth[v.id] < s->loops) /* read again in the next trip */
        p->to = UINT32_MAX - s->depth[v.id]; /* until the loop at that depth ends */
    else if (p->to <= s->now)
        p->to = s->now;
}

static void number(struct sweep *s, kl_blk b)
{
    const kl_fn *f = s->g->f;
    kl_each_ins(f, b, v) {
        const struct kl_ins *in = kl_in(f, v);
        kl_blk own[2];
        s->now++;
        for (uint32_t i = 0; i < in->nargs; i++)
            use(s, kl_arg(f, v, i));
        s->of[v.id].from = s->of[v.id].to = s->now;
        s->anchor[s->now] = in->op == KL_OP_load || in->op == KL_OP_reduce || kl_is_fold(f, v);
        s->depth[v.id] = s->loops;
        bool loop = in->op == KL_OP_for || in->op == KL_OP_while;
        uint32_t n = kl_is_fold(f, v) ? 0 : kl_blocks(f, v, own);
        s->loops += loop;
        for (uint32_t i = 0; i < n; i++)
            number(s, own[i]);
        s->loops -= loop;
        if (!loop)
            continue;
        s->now++;
        for (uint32_t i = 1; i < f->nins; i++) /* what lived until the loop ends */
            if (s->of[i].to == UINT32_MAX - s->loops)
                s->of[i].to = s->now;
    }
}

/* A load of vectors that is read once: the assembler loads some and uses them before it loads the
 * next ones. */
static bool streams(const struct sweep *s, kl_val v)
{
    const struct pgen *g = s->g;
    const kl_fn *f = g->f;
    if (kl_in(f, v)->op != KL_OP_load || !kl_px_access_vec((struct pgen *)g, v))
        return false;
    return s->uses[v.id] == 1;
}

/* The index tiles of an access: addresses are made of them at once. */
static int64_t indices(const struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    int64_t n = 0;
    for (uint32_t d = 0, rank = kl_type_of(f, kl_arg(f, v, 0))->rank; d < rank; d++)
        if (kl_access_index(f, v, d))
            n += registers(g, kl_arg(f, v, 1 + d));
    return n;
}

/* Rows of an array that a thread's part of a load in a loop touches: each keeps its place, which is
 * a product with a number of the launch, in registers from trip to trip. */
static uint32_t rows(const struct sweep *s, kl_val v)
{
    const struct pgen *g = s->g;
    const kl_fn *f = g->f;
    if (kl_in(f, v)->op != KL_OP_load || !s->depth[v.id] || !g->lay[v.id] || kl_access_indices(f, v))
        return 0;
    kl_val u = kl_arg(f, v, 0);
    uint32_t rank = kl_type_of(f, u)->rank, axis = 0, n = 1;
    bool fixed[KL_MAX_RANK] = {0}; /* axes whose elements lie a constant apart */
    for (uint32_t d = 0; d < rank && axis < KL_MAX_RANK; d++)
        if (kl_access_step(f, v, d))
            fixed[axis++] = kl_in(f, u)->op == KL_OP_view &&
                            kl_in(f, kl_arg(f, u, 2 + rank + d))->op == KL_OP_const;
    const kl_layout *l = g->lay[v.id];
    for (uint32_t r = 1; r < kl_layout_nreg(l); r <<= 1) {
        uint32_t word = kl_px_coord(l, r);
        for (uint32_t d = 0; d < axis; d++)
            if (!fixed[d] && kl_coord_axis(l, word, d)) {
                n <<= 1;
                break;
            }
    }
    return n > 1 ? n : 0;
}

uint32_t kl_px_pressure(struct pgen *g)
{
    const kl_fn *f = g->f;
    struct sweep sweep = {.g = g, .of = kl_new_n(g->a, struct span, f->nins),
                          .depth = kl_new_n(g->a, uint32_t, f->nins),
                          .uses = kl_use_counts(f, g->a)},
                 *s = &sweep;
    s->anchor = kl_new_n(g->a, bool, 2 * f->nins + 2);
    number(s, KL_BODY);
    uint32_t places = 0;
    int64_t *across = kl_new_n(g->a, int64_t, s->now + 2), *own = kl_new_n(g->a, int64_t, s->now + 2);
    for (uint32_t i = 1; i < f->nins; i++) {
        const struct span *p = &s->of[i];
        int64_t n = p->to > p->from ? registers(g, (kl_val){i}) : 0;
        uint32_t k = n ? rows(s, (kl_val){i}) : 0;
        places = k > places ? k : places;
        if (!n)
            continue;
        if (n > 8 && streams(s, (kl_val){i}))
            n = 8;
        across[p->from + 1] += n, across[p->to] -= n;
        if (f->ins[i].op == KL_OP_load)
            own[p->from] = n + indices(g, (kl_val){i});
    }
    int64_t sum = 0, most = 0;
    for (uint32_t i = 0; i <= s->now; i++) {
        sum += across[i];
        if (s->anchor[i] && sum + own[i] > most)
            most = sum + own[i];
    }
    if (places)
        most += 8 + (4 * places < g->each ? 4 * places : g->each);
    return (uint32_t)most;
}
