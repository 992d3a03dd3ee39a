/* explain_tile.c - where the elements of a kernel's tiles lie: in which register of which lane, and
 * in which word of shared memory.  What the emitter did is in the trace; this looks at a corner of
 * each tile, for pictures. */
#include <string.h>

#include "explain.h"
#include "lib/lib.h"
#include "model/run.h"

static kl_tile_corner corner_of(const kl_layout *l)
{
    kl_tile_corner c = {.rank = l->rank, .wrapped = l->rank < 2};
    uint32_t n = l->rank ? l->dim[l->rank - 1] : 1;
    memcpy(c.dim, l->dim, sizeof c.dim);
    c.cols = n < KL_TILE_SIDE ? n : KL_TILE_SIDE;
    c.rows = l->rank < 2 ? (n + c.cols - 1) / c.cols : l->dim[l->rank - 2];
    c.rows = c.rows < KL_TILE_SIDE ? c.rows : KL_TILE_SIDE;
    return c;
}

/* The coordinate word of element (row, col) of the corner; false: there is none. */
static bool coord(const kl_layout *l, const kl_tile_corner *c, uint32_t row, uint32_t col,
                  uint32_t *word)
{
    uint32_t x[KL_LAYOUT_RANK] = {0};
    if (l->rank < 2)
        x[0] = row * c->cols + col;
    else {
        x[l->rank - 2] = row;
        x[l->rank - 1] = col;
    }
    for (uint32_t d = 0; d < l->rank; d++)
        if (x[d] >= l->dim[d])
            return false;
    *word = kl_coord_pack(l, x);
    return true;
}

static const char *layout_text(kl_arena *a, const kl_layout *l)
{
    kl_buf b = {.a = a};
    kl_layout_print(&b, l);
    return kl_buf_str(&b);
}

/* ---- holders ---- */

static void hold(kl_tile_holders *h, const kl_layout *l)
{
    kl_lin inv;
    bool all = kl_layout_inverse(l, &inv);
    memset(h->reg, 0xff, sizeof h->reg);
    for (uint32_t r = 0; all && r < h->corner.rows; r++)
        for (uint32_t c = 0; c < h->corner.cols; c++) {
            uint32_t word, p;
            if (!coord(l, &h->corner, r, c, &word))
                continue;
            p = kl_lin_at(&inv, word);
            h->reg[r][c] = kl_place_reg(p);
            h->lane[r][c] = (uint8_t)kl_place_lane(p);
            h->warp[r][c] = (uint8_t)kl_place_warp(p);
            h->cta[r][c] = (uint8_t)kl_place_cta(p);
        }
}

static const kl_ptx_trace *trace_of(const kl_explained *e)
{
    return e->model && e->model->run ? e->model->run->tr : NULL;
}

static const kl_model_access *access_of(const kl_explained *e, kl_val at)
{
    for (uint32_t i = 0; i < e->model->access.n; i++)
        if (e->model->access.v[i].at.id == at.id)
            return &e->model->access.v[i];
    return NULL;
}

/* The same picture as an earlier one: nothing to add. */
static bool seen_before(const kl_ptx_trace *t, uint32_t i)
{
    const kl_ptx_access *x = &t->access.v[i];
    for (uint32_t k = 0; k < i; k++) {
        const kl_ptx_access *y = &t->access.v[k];
        if (y->l && y->vec == x->vec && kl_layout_eq(y->l, x->l))
            return true;
    }
    return false;
}

struct want {
    kl_explained *e;
    uint32_t i;
    void *out;
};

static kiln_status find_holders(struct kl_call *call, void *arg)
{
    static const char *const kind[] = {"load", "store", "atomic"};
    struct want *w = arg;
    const kl_ptx_trace *t = trace_of(w->e);
    uint32_t left = w->i;
    (void)call;
    for (uint32_t i = 0; t && i < t->access.n; i++) {
        const kl_ptx_access *x = &t->access.v[i];
        const kl_model_access *m = access_of(w->e, x->at);
        if (!x->l || !x->l->rank || x->l->bad || !m || seen_before(t, i) || left--)
            continue;
        kl_tile_holders *h = kl_new(&w->e->a, kl_tile_holders);
        h->corner = corner_of(x->l);
        h->place = m->place;
        h->kind = kind[m->dir];
        h->array = m->name;
        h->layout = layout_text(&w->e->a, x->l);
        h->vec = 1u << x->vec;
        h->copies = kl_layout_replicas(x->l) != 0;
        hold(h, x->l);
        w->out = h;
        break;
    }
    return KILN_OK;
}

/* ---- exchanges ---- */

static uint32_t offset_of(const kl_shared *s, uint32_t word)
{
    uint32_t x = 0;
    for (; word; word &= word - 1) {
        uint32_t b = s->offset.v[__builtin_ctz(word)];
        x = s->additive ? x + b : x ^ b;
    }
    return x;
}

/* Marks what the first access of warp 0 moves. */
static void mark(kl_tile_banks *b, const kl_tile_corner *c, const kl_layout *l, const kl_side *s,
                 uint8_t bit)
{
    for (uint32_t lane = 0; lane < 32; lane++)
        for (uint32_t k = 0; k < 1u << s->nvec; k++) {
            uint32_t reg = 0, x[KL_LAYOUT_RANK], row, col;
            if (lane & s->skip_threads)
                continue;
            for (uint32_t i = 0; i < s->nvec; i++)
                reg |= (k >> i & 1) << s->vec[i];
            if (!kl_layout_coords(l, kl_place(reg, lane, 0, 0), x))
                continue;
            bool in = true;
            for (uint32_t d = 0; d + 2 < l->rank; d++)
                in &= x[d] == 0;
            row = l->rank < 2 ? x[0] / c->cols : x[l->rank - 2];
            col = l->rank < 2 ? x[0] % c->cols : x[l->rank - 1];
            if (in && row < c->rows && col < c->cols)
                b->first[row][col] |= bit;
        }
}

static void request(kl_tile_request *q, const kl_side *s, bool additive, uint32_t elem)
{
    uint32_t group;
    q->bytes = elem << s->nvec;
    group = q->bytes <= 4 ? 32 : q->bytes <= 8 ? 16 : 8;
    q->groups = 32 / group;
    q->waves = s->waves;
    q->ideal = s->ideal;
    for (uint32_t g = 0; g < q->groups; g++) {
        uint32_t seen[128], n = 0; /* 16 bytes a lane are 32 words, 3 bytes across two are more */
        for (uint32_t lane = g * group; lane < (g + 1) * group; lane++) {
            uint32_t at = 0;
            for (uint32_t i = 0; i < 5; i++)
                if (lane >> i & 1)
                    at = additive ? at + s->bit[KL_LANE0 + i] : at ^ s->bit[KL_LANE0 + i];
            if (lane & s->skip_threads)
                continue;
            for (uint32_t w = at / 4; w <= (at + q->bytes - 1) / 4; w++) {
                uint32_t k = n;
                while (k && seen[k - 1] != w)
                    k--;
                if (k || n == 128)
                    continue;
                seen[n++] = w;
                q->words[g][w % KL_TILE_BANKS]++;
            }
        }
    }
}

static void bank(kl_tile_banks *b, const kl_tile_corner *corner, const kl_conv *c)
{
    b->possible = true;
    b->bytes = c->shared.bytes;
    for (uint32_t row = 0; row < corner->rows; row++)
        for (uint32_t col = 0; col < corner->cols; col++) {
            uint32_t word;
            b->word[row][col] = KL_TILE_NOBODY;
            if (coord(&c->src, corner, row, col, &word))
                b->word[row][col] = offset_of(&c->shared, word) / 4;
        }
    mark(b, corner, &c->src, &c->shared.st, 1);
    mark(b, corner, &c->dst, &c->shared.ld, 2);
    request(&b->st, &c->shared.st, c->shared.additive, c->bytes);
    request(&b->ld, &c->shared.ld, c->shared.additive, c->bytes);
}

static bool same_plan(const kl_ptx_plan *x, const kl_ptx_plan *y)
{
    const kl_conv *a = x->way[x->chosen], *b = y->way[y->chosen];
    return a && b && a->bytes == b->bytes && kl_layout_eq(&a->src, &b->src) &&
           kl_layout_eq(&a->dst, &b->dst);
}

static kiln_status find_exchange(struct kl_call *call, void *arg)
{
    static const char *const name[] = {"row-major", "padded", "swizzled"};
    struct want *w = arg;
    const kl_ptx_trace *t = trace_of(w->e);
    uint32_t left = w->i;
    (void)call;
    for (uint32_t i = 0; t && i < t->plan.n; i++) {
        const kl_ptx_plan *p = &t->plan.v[i];
        const kl_conv *c = p->way[p->chosen];
        bool seen = false;
        for (uint32_t k = 0; k < i; k++)
            seen |= same_plan(&t->plan.v[k], p);
        if (!c || seen || left--)
            continue;
        kl_tile_exchange *x = kl_new(&w->e->a, kl_tile_exchange);
        x->corner = corner_of(&c->src);
        for (uint32_t k = 0; k < w->e->model->shared.n; k++)
            if (w->e->model->shared.v[k].at.id == p->at.id)
                x->place = w->e->model->shared.v[k].place;
        x->bytes = c->bytes;
        x->from = layout_text(&w->e->a, &c->src);
        x->to = layout_text(&w->e->a, &c->dst);
        for (uint32_t k = 0; k < KL_TILE_WAYS; k++) {
            kl_tile_banks *b = &x->way[k];
            b->name = name[k];
            b->chosen = k == p->chosen;
            b->store = p->st[k];
            b->load = p->ld[k];
            if (p->way[k])
                bank(b, &x->corner, p->way[k]);
        }
        w->out = x;
        break;
    }
    return KILN_OK;
}

static const void *find(kl_explained *e, uint32_t i, kl_body *body)
{
    struct kl_call c;
    struct want w = {e, i, NULL};
    if (kl_call_begin(&c, &e->al))
        return NULL;
    e->a.env = &c.env;
    kiln_status s = kl_guarded(&c, NULL, body, &w);
    e->a.env = &e->env;
    kl_call_end(&c, s, NULL);
    return s ? NULL : w.out;
}

const kl_tile_holders *kl_explain_holders(kl_explained *e, uint32_t i)
{
    return find(e, i, find_holders);
}

const kl_tile_exchange *kl_explain_exchange(kl_explained *e, uint32_t i)
{
    return find(e, i, find_exchange);
}
