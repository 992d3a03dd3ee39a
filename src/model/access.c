/* access.c - what one execution of a load, store or atomic asks of memory, lane by lane. */
#include "model/run.h"

enum { MOST_SEEN = 1 << 14 }; /* sections of one access whose cost is kept */

/* Different sectors of the requests of one block: a table of those seen. */
struct apart {
    uint64_t *seen; /* sector + 1; 0: free */
    uint32_t size, n; /* size: a power of two, twice what may come; 0: not asked for */
};

static struct apart apart_for(struct mrun *r, uint64_t requests)
{
    struct apart s = {.size = 128};
    while (s.size < requests * 32 * 2 * 2)
        s.size *= 2;
    if (s.size > r->room) {
        r->sectors = kl_new_n(r->a, uint64_t, s.size);
        r->room = s.size;
    }
    s.seen = r->sectors;
    memset(s.seen, 0, s.size * sizeof *s.seen);
    return s;
}

static void apart_add(struct apart *s, uint64_t sector)
{
    uint32_t i = (uint32_t)((sector * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (s->size - 1);
    while (s->seen[i] && s->seen[i] != sector + 1)
        i = (i + 1) & (s->size - 1);
    s->n += !s->seen[i];
    s->seen[i] = sector + 1;
}

static void request(struct mcost *c, struct apart *s, const uint64_t *addr, uint32_t active, uint32_t width)
{
    if (!active)
        return;
    kl_count k = kl_sectors(addr, active, width);
    uint32_t lanes = (uint32_t)__builtin_popcount(active);
    kl_model_sum(&c->t, &(kl_model_traffic){1, lanes, (uint64_t)lanes * width, k.units, k.ideal,
                                            s->size ? 0 : k.units});
    for (uint32_t m = s->size ? active : 0; m; m &= m - 1) {
        uint64_t at = addr[__builtin_ctz(m)];
        apart_add(s, at / 32);
        apart_add(s, (at + width - 1) / 32);
    }
    c->worst = k.units > c->worst ? (uint32_t)k.units : c->worst;
}

/* What loads fetch stays in the L1 cache of the multiprocessor; stores and atomics pass it. */
static bool is_load(const struct mrun *r, const struct maccess *a)
{
    return r->m->access.v[a->out].dir == KL_MODEL_LOAD;
}

/* One element, which all threads access, or one of them. */
static void scalar(struct mrun *r, const struct maccess *a, const struct msection *s, kl_val mask,
                   uint64_t base, uint32_t es, struct mcost *c)
{
    uint32_t x[KL_MAX_RANK] = {0};
    int64_t off;
    if (!kl_model_element(r, a->rec->at, s, x, &off) || (mask.id && !r->val[mask.id].v[0]))
        return;
    uint64_t addr[32];
    for (uint32_t i = 0; i < 32; i++)
        addr[i] = base + (uint64_t)off * es;
    uint32_t ctas = a->rec->once ? 1 : r->tr->ctas, warps = a->rec->once ? 1 : r->tr->warps;
    for (uint32_t k = 0; k < ctas; k++) {
        struct apart seen = is_load(r, a) ? apart_for(r, 1) : (struct apart){0};
        for (uint32_t i = 0; i < warps; i++)
            request(c, &seen, addr, a->rec->once ? 1 : UINT32_MAX, es);
        c->t.apart += seen.n;
    }
}

/* A tile under its layout. */
static void tile(struct mrun *r, const struct maccess *a, const struct msection *s, kl_val mask,
                 uint64_t base, uint32_t es, struct mcost *c)
{
    const kl_layout *l = a->rec->l;
    const struct kl_type *t = kl_access_tile(r->f, a->rec->at);
    bool indices = kl_access_indices(r->f, a->rec->at) > 0;
    uint32_t copies = a->rec->once ? kl_layout_replicas(l) & ~((1u << KL_LANE0) - 1) : 0;
    uint32_t lane[32], each = 1u << a->rec->vec, width = es << a->rec->vec;
    for (uint32_t i = 0; i < 32; i++)
        lane[i] = kl_layout_at(l, kl_place(0, i, 0, 0));
    uint64_t requests = (uint64_t)r->tr->warps * (kl_layout_nreg(l) / each + 1);
    for (uint32_t cta = 0; cta < r->tr->ctas; cta++) {
        struct apart seen = is_load(r, a) ? apart_for(r, requests) : (struct apart){0};
        for (uint32_t warp = 0; warp < r->tr->warps; warp++)
            for (uint32_t reg = 0; reg < kl_layout_nreg(l); reg += each) {
                uint64_t addr[32];
                uint32_t active = 0, place = kl_place(reg, 0, warp, cta),
                         at = kl_layout_at(l, place);
                for (uint32_t i = 0; i < 32; i++) {
                    uint32_t w = at ^ lane[i], x[KL_MAX_RANK] = {0}, n = 0;
                    int64_t off = s->off;
                    bool in = !((place | kl_place(0, i, 0, 0)) & copies) && kl_coord_live(l, w);
                    for (uint32_t d = 0; d < t->rank && in; d++) {
                        x[d] = kl_coord_axis(l, w, d);
                        in = x[d] >= s->lo[d] && x[d] < s->hi[d];
                        off = kl_model_add(off, kl_model_mul(s->step[d], x[d]));
                        n = n * t->dim[d] + x[d];
                    }
                    in = in && (!mask.id || r->val[mask.id].v[n]) &&
                         (!indices || kl_model_element(r, a->rec->at, s, x, &off));
                    active |= (uint32_t)in << i;
                    addr[i] = base + (uint64_t)off * es;
                }
                request(c, &seen, addr, active, width);
            }
        c->t.apart += seen.n;
    }
}

/* Sections that begin at the same place of a sector, with the same parts inside, cost the same. */
struct key {
    int64_t step[KL_MAX_RANK];
    uint64_t mask; /* hash */
    uint32_t lo[KL_MAX_RANK], hi[KL_MAX_RANK], at, dead;
};

static uint64_t hash_of(const struct mval *m)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (uint32_t i = 0; i < m->n; i++)
        h = (h ^ m->v[i]) * UINT64_C(1099511628211);
    return h;
}

static const struct mcost *cost_of(struct mrun *r, struct maccess *a, const struct msection *s,
                                   kl_val mask, uint64_t hash, struct mcost *own)
{
    uint32_t es = kl_elems[r->f->param[s->root].elem].bytes;
    uint64_t base = r->in->param[s->root].base;
    bool plain = !kl_access_indices(r->f, a->rec->at), isnew = true;
    uint32_t *found = NULL;
    memset(own, 0, sizeof *own);
    if (plain && a->cost.n < MOST_SEEN) {
        struct key k;
        memset(&k, 0, sizeof k);
        memcpy(k.step, s->step, sizeof k.step);
        memcpy(k.lo, s->lo, sizeof k.lo);
        memcpy(k.hi, s->hi, sizeof k.hi);
        k.at = (uint32_t)((base + (uint64_t)s->off * es) & 31);
        k.dead = s->dead;
        k.mask = hash;
        found = kl_map_put(&a->seen, &k, sizeof k, &isnew);
        if (!isnew)
            return &a->cost.v[*found];
        *found = a->cost.n;
    }
    if (!s->dead && a->rec->l)
        tile(r, a, s, mask, base, es, own);
    else if (!s->dead)
        scalar(r, a, s, mask, base, es, own);
    r->work += 1 + own->t.requests;
    if (found)
        kl_push(r->a, &a->cost, *own);
    return own;
}

void kl_model_doubt_at(struct mrun *r, kl_val v, const char *why)
{
    struct {
        uint32_t at;
        char text[60];
    } k;
    bool isnew;
    memset(&k, 0, sizeof k);
    k.at = kl_in(r->f, v)->loc.beg;
    memcpy(k.text, why, strlen(why) < sizeof k.text ? strlen(why) : sizeof k.text);
    uint32_t *i = kl_map_put(&r->doubts, &k, sizeof k, &isnew);
    if (isnew) {
        *i = r->m->doubt.n;
        kl_model_doubt d = {.loc = kl_in(r->f, v)->loc, .text = why};
        if (r->f->src && d.loc.beg)
            d.place = kl_src_place(r->f->src, r->a, d.loc);
        kl_push(r->a, &r->m->doubt, d);
    }
    r->m->doubt.v[*i].count++;
}

/* Does the mask leave something out that is inside? */
static void look_at_mask(struct mrun *r, struct maccess *a, const struct msection *s, kl_val mask)
{
    const struct kl_type *t = kl_access_tile(r->f, a->rec->at);
    const struct mval *m = &r->val[mask.id];
    for (uint32_t i = 0; i < m->n && !a->mask_false; i++) {
        uint32_t x[KL_MAX_RANK] = {0}, k = i;
        int64_t off;
        if (m->v[i])
            continue;
        for (uint32_t d = t->rank; d-- > 0; k /= t->dim[d])
            x[d] = k % t->dim[d];
        a->mask_false |= kl_model_element(r, a->rec->at, s, x, &off);
    }
}

/* The first execution that moves more than its bytes need; of none, the first of all. */
static void name_first(struct mrun *r, struct maccess *a, const struct mcost *c)
{
    kl_model_access *o = &r->m->access.v[a->out];
    const int64_t *g = r->in->grid;
    uint64_t p = (uint64_t)(r->pid[0] + g[0] * (r->pid[1] + g[1] * r->pid[2]));
    bool wasteful = c->t.units > c->t.ideal;
    if (!c->t.requests || (o->first && a->wasteful && !wasteful) ||
        (o->first && a->wasteful == wasteful && p >= a->first))
        return;
    a->wasteful = wasteful;
    a->first = p;
    o->first = kl_model_where(r, a->rec->at);
}

void kl_model_access_run(struct mrun *r, kl_val v)
{
    kl_val mask = kl_model_mask(r->f, v);
    struct msection s;
    const char *why = NULL;
    bool known = kl_model_section(r, v, &s, &why);
    if (known && mask.id && !kl_model_known(r, mask)) {
        known = false;
        why = "the mask is data";
    }
    if (!known) {
        r->touch[kl_root(r->f, kl_arg(r->f, v, 0))].unknown[0] |=
            kl_ops[kl_in(r->f, v)->op].flags & KL_F_READ;
        r->touch[kl_root(r->f, kl_arg(r->f, v, 0))].unknown[1] |=
            kl_ops[kl_in(r->f, v)->op].flags & KL_F_WRITE;
        kl_model_doubt_at(r, v, why);
    }
    const uint64_t hash = known && mask.id ? hash_of(&r->val[mask.id]) : 0;
    for (struct maccess *a = r->at[v.id]; a; a = a->next) {
        struct mcost own;
        a->runs[r->set]++;
        if (!known || r->unsure) {
            a->unknown[r->set]++;
            a->why = known ? r->unsure : why;
        }
        if (!known)
            continue;
        const struct kl_type *t = kl_access_tile(r->f, v);
        bool partly = false;
        for (uint32_t d = 0; d < t->rank; d++)
            partly |= s.lo[d] > 0 || s.hi[d] < t->dim[d];
        for (uint32_t d = 0; d < t->rank; d++)
            a->outside |= (uint32_t)(s.lo[d] > 0 || s.hi[d] < t->dim[d]) << d;
        a->outside |= s.dead ? 16 : 0;
        const struct mcost *c = cost_of(r, a, &s, mask, hash, &own);
        kl_model_sum(&a->t[r->set], &c->t);
        a->inside |= c->t.requests > 0;
        name_first(r, a, c);
        r->edge |= partly;
        kl_model_access *o = &r->m->access.v[a->out];
        o->worst = c->worst > o->worst ? c->worst : o->worst;
        if (mask.id)
            look_at_mask(r, a, &s, mask);
    }
    if (known)
        kl_model_touch(r, v, &s, mask, hash);
}
