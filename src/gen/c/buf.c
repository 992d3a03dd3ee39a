/* buf.c - which buffers share memory, and where they lie in scratch.
 *
 * The plan copies freely: into the buffers that loops carry, into the accumulator of a dot.
 * Most copies vanish here: source and destination become one if they are never live with
 * different contents at the same time.  Liveness is a walk from the end of the program
 * backwards; a loop is walked until nothing changes.  Two buffers interfere if one is
 * written while the other is live, or if one step touches both and writes one.  A nest that
 * reads an element and then writes the same one may do so in place: such a pair may become
 * one buffer (`may_join`), but may not share memory at another offset (`apart`). */
#include "gen/c/gen.h"

enum { ALIGN = 64, WORD = 64 };

struct place {
    struct gen *g;
    kl_arena *a;
    uint32_t n, words;
    uint64_t *apart;  /* n rows of n bits: must not overlap */
    uint64_t *differ; /* must not become one */
};

static bool get(const uint64_t *set, uint32_t i)
{
    return set[i / WORD] >> i % WORD & 1;
}

static void set_bit(uint64_t *set, uint32_t i)
{
    set[i / WORD] |= UINT64_C(1) << i % WORD;
}

static uint64_t *row(const struct place *p, uint64_t *m, uint32_t i)
{
    return m + (size_t)i * p->words;
}

static void relate(const struct place *p, uint64_t *m, uint32_t a, uint32_t b)
{
    if (a == b)
        return;
    set_bit(row(p, m, a), b);
    set_bit(row(p, m, b), a);
}

static bool join_sets(const struct place *p, uint64_t *to, const uint64_t *from)
{
    bool grew = false;
    for (uint32_t w = 0; w < p->words; w++) {
        grew |= (from[w] & ~to[w]) != 0;
        to[w] |= from[w];
    }
    return grew;
}

uint32_t kl_c_buf_new(struct gen *g, enum kl_elem e, uint64_t count)
{
    struct gbuf b = {.elem = (uint8_t)e, .count = count};
    kl_push(g->a, &g->buf, b);
    return g->buf.n - 1;
}

uint32_t kl_c_buf_root(const struct gen *g, uint32_t b)
{
    while (g->buf.v[b].same)
        b = g->buf.v[b].same;
    return b;
}

/* ---- liveness ---- */

static void clash(struct place *p, const struct step *s, const uint64_t *live)
{
    for (uint32_t i = 0; i < s->use.n; i++) {
        const struct touch *w = &s->use.v[i];
        if (!w->write)
            continue;
        for (uint32_t b = 1; b < p->n; b++)
            if (get(live, b)) {
                relate(p, p->apart, w->buf, b);
                if (s->kind != ST_COPY || b != s->src)
                    relate(p, p->differ, w->buf, b);
            }
        for (uint32_t j = 0; j < s->use.n; j++) {
            const struct touch *t = &s->use.v[j];
            relate(p, p->apart, w->buf, t->buf);
            if (t->write || !t->ident || !w->ident || t->root > w->root)
                relate(p, p->differ, w->buf, t->buf);
        }
    }
}

static void walk(struct place *p, const steps *list, uint64_t *live);

static void walk_region(struct place *p, const struct step *s, uint64_t *live)
{
    size_t bytes = p->words * sizeof *live;
    uint64_t *head = kl_new_n(p->a, uint64_t, p->words), *set = kl_new_n(p->a, uint64_t, p->words);
    switch (kl_in(p->g->f, s->v)->op) {
    case KL_OP_if:
        memcpy(head, live, bytes);
        walk(p, &s->sub[1], head);
        walk(p, &s->sub[0], live);
        join_sets(p, live, head);
        return;
    case KL_OP_for: /* live is what is needed before a round or behind the loop */
        do {
            memcpy(set, live, bytes);
            walk(p, &s->sub[0], set);
        } while (join_sets(p, live, set));
        return;
    default: /* while: head is what the condition needs */
        do {
            memcpy(set, head, bytes);
            walk(p, &s->sub[1], set);
            join_sets(p, set, live);
            walk(p, &s->sub[0], set);
        } while (join_sets(p, head, set));
        memcpy(live, head, bytes);
    }
}

static void walk(struct place *p, const steps *list, uint64_t *live)
{
    for (uint32_t k = list->n; k-- > 0;) {
        const struct step *s = list->v[k];
        if (s->kind == ST_REGION) {
            walk_region(p, s, live);
            continue;
        }
        clash(p, s, live);
        for (uint32_t i = 0; i < s->use.n; i++)
            if (s->use.v[i].write && s->use.v[i].whole)
                live[s->use.v[i].buf / WORD] &= ~(UINT64_C(1) << s->use.v[i].buf % WORD);
        for (uint32_t i = 0; i < s->use.n; i++)
            if (!s->use.v[i].write || !s->use.v[i].whole)
                set_bit(live, s->use.v[i].buf);
    }
}

/* ---- one buffer for both sides of a copy ---- */

static void merge_rows(struct place *p, uint64_t *m, uint32_t a, uint32_t b)
{
    for (uint32_t c = 1; c < p->n; c++)
        if (get(row(p, m, b), c))
            relate(p, m, a, c);
}

static void join_copies(struct place *p, const steps *list)
{
    for (uint32_t k = 0; k < list->n; k++) {
        const struct step *s = list->v[k];
        join_copies(p, &s->sub[0]);
        join_copies(p, &s->sub[1]);
        if (s->kind != ST_COPY)
            continue;
        uint32_t a = kl_c_buf_root(p->g, s->src), b = kl_c_buf_root(p->g, s->dst);
        const struct gbuf *x = &p->g->buf.v[a], *y = &p->g->buf.v[b];
        if (a == b || x->elem != y->elem || x->count != y->count || get(row(p, p->differ, a), b))
            continue;
        p->g->buf.v[b].same = a;
        merge_rows(p, p->differ, a, b);
        merge_rows(p, p->apart, a, b);
    }
}

uint64_t kl_c_place(struct gen *g)
{
    struct place p = {.g = g, .a = g->a, .n = g->buf.n, .words = (g->buf.n + WORD - 1) / WORD};
    size_t cells = (size_t)p.n * p.words;
    uint64_t *live = kl_new_n(g->a, uint64_t, p.words), total = 0;
    p.apart = kl_new_n(g->a, uint64_t, cells);
    p.differ = kl_new_n(g->a, uint64_t, cells);
    walk(&p, &g->body, live);
    join_copies(&p, &g->body);
    uint64_t *size = kl_new_n(g->a, uint64_t, p.n + 1u);
    for (uint32_t b = 1; b < p.n; b++) {
        struct gbuf *x = &g->buf.v[b];
        if (x->same)
            continue;
        size[b] = (x->count * kl_elems[x->elem].bytes + ALIGN - 1) / ALIGN * ALIGN;
        if (size[b] >= 4096)
            size[b] += UINT64_C(3) * ALIGN; /* neighbours do not start at the same place of a page */
        uint64_t at = 0;
        for (bool moved = true; moved;) { /* the lowest place that is free */
            moved = false;
            for (uint32_t c = 1; c < b; c++) {
                const struct gbuf *y = &g->buf.v[c];
                if (y->same || !get(row(&p, p.apart, b), c))
                    continue;
                if (at < y->offset + size[c] && y->offset < at + size[b]) {
                    at = y->offset + size[c];
                    moved = true;
                }
            }
        }
        x->offset = at;
        if (at + size[b] > total)
            total = at + size[b];
    }
    return total ? total + UINT64_C(4) * ALIGN : 0; /* dot reads whole vectors at the right edge */
}
