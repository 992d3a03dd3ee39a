/* global.c - global memory between CTAs: races, values that nothing wrote, sums of floats.
 *
 * What base/race.h finds is told at the place in the source that .loc names.  A CTA, or all of a
 * cluster, is one program.  Order between them comes from accesses that acquire or release for
 * more than their CTA; in a CTA it is made by barriers, and not looked at here. */
#include "base/elem.h"
#include "sim/lane.h"

struct sim_global {
    struct kl_race race;
    struct kl_race_span *span;
    uint32_t nspan;
    bool races;     /* there is something to look at */
    bool unseen;    /* there is too much */
    struct kl_sums sums;
    const kl_sim_array *last; /* that an address was found in */
    bool values;              /* some array has elements without a value */
    const char *value; /* what is being stored at `at` */
    const char *at;
    uint32_t *site; /* of each instruction: one that stands for all of its line */
};

/* ---- set-up ---- */

static void number_sites(struct sim_run *r, struct sim_global *g)
{
    kl_map map = {.a = &r->a};
    const struct kl_sim *m = r->m;
    g->site = kl_new_n(&r->a, uint32_t, r->f->nins + 1);
    for (uint32_t k = 0; k < r->f->nins; k++) {
        const struct sim_ins *i = &r->f->ins[k];
        g->site[k] = k;
        if (!i->loc || i->loc > m->nloc)
            continue;
        const struct sim_loc *l = &m->loc[i->loc - 1];
        uint32_t key[3] = {l->file, l->line, i->kind};
        bool isnew;
        uint32_t *x = kl_map_put(&map, key, sizeof key, &isnew);
        if (isnew)
            *x = k;
        g->site[k] = *x;
    }
}

uint32_t kl_sim_site(const struct sim_run *r, uint32_t ins)
{
    return r->global ? r->global->site[ins] : ins;
}

static void hit(void *user, const struct kl_race_hit *h);

static bool orders(const struct sim_ins *i)
{
    return i->order >= ORD_ACQUIRE && !i->in_cta && i->space != SP_SHARED;
}

bool kl_sim_global_synced(const struct sim_run *r)
{
    bool any = false;
    for (uint32_t k = 0; k < r->f->nins; k++)
        any |= orders(&r->f->ins[k]) &&
               (r->f->ins[k].kind == KL_SIM_ATOM || r->f->ins[k].kind == KL_SIM_LDG ||
                r->f->ins[k].kind == KL_SIM_STG);
    return any;
}

void kl_sim_global_open(struct sim_run *r)
{
    const kl_sim_launch *l = r->l;
    uint64_t ctas = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] / r->ncta;
    struct sim_global *g = kl_new(&r->a, struct sim_global);
    struct kl_race_mem *m = kl_new_n(&r->a, struct kl_race_mem, l->narray + 1);
    for (uint32_t k = 0; k < l->narray; k++) {
        const kl_sim_array *x = &l->array[k];
        m[k] = (struct kl_race_mem){x->base, x->lo, x->hi, kl_elems[x->elem].bytes, x->written,
                                    x->hidden};
    }
    for (uint32_t k = 0; k < l->narray; k++)
        g->values |= l->array[k].shadow != NULL;
    r->global = g;
    g->sums.a = &r->a;
    number_sites(r, g);
    g->unseen = r->opt.checks & KL_SIM_PROGRAMS &&
                !kl_race_spans(&r->a, m, l->narray, &g->span, &g->nspan);
    g->races = r->opt.checks & KL_SIM_PROGRAMS && !g->unseen && ctas < UINT32_MAX; /* of one CTA: its warps */
    if (g->races) {
        kl_race_open(&g->race, &r->a, (uint32_t)ctas, hit);
        g->race.user = r;
        g->race.synced = kl_sim_global_synced(r);
    }
}

void kl_sim_global_program(struct sim_run *r, uint64_t program)
{
    struct sim_global *g = r->global;
    if (g->races)
        kl_race_program(&g->race, (uint32_t)program);
}

/* ---- the second run ---- */

void kl_sim_global_save(struct sim_run *r, struct sim_saved *v)
{
    struct sim_global *g = r->global;
    v->n = g->nspan;
    v->first = kl_new_n(&r->a, char *, g->nspan + 1);
    v->value = kl_new_n(&r->a, uint8_t *, r->l->narray + 1);
    for (uint32_t k = 0; k < g->nspan; k++) {
        size_t n = (size_t)(g->span[k].hi - g->span[k].lo);
        v->first[k] = kl_alloc_zero(&r->a, n);
        memcpy(v->first[k], g->span[k].lo, n);
    }
    for (uint32_t k = 0; k < r->l->narray; k++) {
        const kl_sim_array *x = &r->l->array[k];
        if (!x->shadow || x->lo >= x->hi)
            continue;
        size_t n = (size_t)((const char *)x->hi - (const char *)x->lo);
        v->value[k] = kl_alloc_zero(&r->a, n);
        memcpy(v->value[k], x->shadow, n);
    }
}

/* What was saved takes the place of what is there, which is saved. */
void kl_sim_global_swap(struct sim_run *r, struct sim_saved *v)
{
    struct sim_global *g = r->global;
    for (uint32_t k = 0; k < g->nspan; k++) {
        size_t n = (size_t)(g->span[k].hi - g->span[k].lo);
        char *mem = (char *)(uintptr_t)g->span[k].lo;
        for (size_t b = 0; g->span[k].cell && b < n; b++) {
            char x = mem[b];
            mem[b] = v->first[k][b];
            v->first[k][b] = x;
        }
        if (g->span[k].cell)
            kl_race_clear(&g->span[k]);
    }
    for (uint32_t k = 0; k < r->l->narray; k++) {
        const kl_sim_array *x = &r->l->array[k];
        size_t n = v->value[k] ? (size_t)((const char *)x->hi - (const char *)x->lo) : 0;
        for (size_t b = 0; b < n; b++) {
            uint8_t y = x->shadow[b];
            x->shadow[b] = v->value[k][b];
            v->value[k][b] = y;
        }
    }
    uint32_t programs = g->race.nprogram;
    kl_race_open(&g->race, &r->a, programs, hit);
    g->race.user = r;
    g->race.synced = r->again = true;
}

/* ---- what an address is ---- */

static const kl_sim_array *array_at(const struct sim_run *r, const char *at)
{
    const kl_sim_array *last = r->global->last;
    if (last && at >= (const char *)last->lo && at < (const char *)last->hi)
        return last;
    for (uint32_t k = 0; k < r->l->narray; k++) {
        const kl_sim_array *x = &r->l->array[k];
        if (!x->hidden && x->base && at >= (const char *)x->lo && at < (const char *)x->hi)
            return r->global->last = x;
    }
    return NULL;
}

/* "x[3][0]" */
const char *kl_sim_element(struct sim_run *r, const char *at)
{
    const kl_sim_array *x = array_at(r, at);
    if (!x)
        return NULL;
    kl_buf b = {.a = &r->a};
    int64_t off = at - (const char *)x->base, i[8] = {0};
    bool done[8] = {false};
    off = off < 0 ? -1 : off / kl_elems[x->elem].bytes;
    kl_puts(&b, x->name);
    for (int32_t n = 0; n < x->rank && off >= 0; n++) { /* the largest stride first */
        int32_t best = -1;
        for (int32_t d = 0; d < x->rank; d++)
            if (!done[d] && (best < 0 || x->str[d] > x->str[best]))
                best = d;
        done[best] = true;
        i[best] = x->str[best] > 0 ? off / x->str[best] : 0;
        off -= x->str[best] > 0 ? i[best] * x->str[best] : 0;
    }
    for (int32_t d = 0; d < x->rank; d++)
        kl_putf(&b, "[%lld]", (long long)i[d]);
    return kl_buf_str(&b);
}

/* An access outside every array: the array that it lies behind or before. */
const char *kl_sim_outside(struct sim_run *r, uint64_t addr)
{
    const kl_sim_array *best = NULL;
    uint64_t dist = 1 << 20;
    for (uint32_t k = 0; k < r->l->narray; k++) {
        const kl_sim_array *x = &r->l->array[k];
        uint64_t lo = (uintptr_t)x->lo, hi = (uintptr_t)x->hi;
        uint64_t d = addr < lo ? lo - addr : addr >= hi ? addr - hi : 0;
        if (!x->hidden && x->base && d < dist)
            dist = d, best = x;
    }
    if (!best)
        return NULL;
    int64_t off = (int64_t)(addr - (uintptr_t)best->base) / (int64_t)kl_elems[best->elem].bytes;
    int64_t n = ((const char *)best->hi - (const char *)best->lo) / (int64_t)kl_elems[best->elem].bytes;
    return kl_printf(&r->a, "%s: element %lld of an array of %lld", best->name, (long long)off,
                     (long long)n);
}

/* ---- telling ---- */

static bool writes(enum kl_touch t)
{
    return t == KL_TOUCH_WRITE || t == KL_TOUCH_ATOMIC;
}

static const struct sim_loc *loc_of(const struct sim_run *r, uint32_t ins)
{
    const struct sim_ins *i = &r->f->ins[ins];
    return i->loc && i->loc <= r->m->nloc ? &r->m->loc[i->loc - 1] : NULL;
}

static bool now_is_primary(const struct sim_run *r, const struct kl_race_hit *h)
{
    if (writes(h->now) != writes(h->then))
        return writes(h->now);
    const struct sim_loc *a = loc_of(r, h->site), *b = loc_of(r, h->old_site);
    if (!a || !b || a->line == b->line)
        return h->site < h->old_site;
    return a->line < b->line;
}

static const char *does(enum kl_touch t)
{
    return t == KL_TOUCH_READ          ? "reads"
           : t == KL_TOUCH_WRITE       ? "writes"
           : t == KL_TOUCH_ATOMIC_READ ? "reads atomically"
                                       : "changes atomically";
}

/* The value of an element at p, where `at` is one; "": of an atomic. */
static const char *value_text(struct sim_run *r, enum kl_touch t, const char *at, const char *p)
{
    const kl_sim_array *x = array_at(r, at);
    if (!x || (t != KL_TOUCH_READ && t != KL_TOUCH_WRITE) ||
        (at - (const char *)x->base) % kl_elems[x->elem].bytes)
        return "";
    enum kl_elem e = (enum kl_elem)x->elem;
    uint64_t bits = kl_elem_load(e, p);
    if (kl_is_float(e))
        return kl_printf(&r->a, e == KL_f64 ? " %.17g" : " %.9g", kl_elem_double(e, bits));
    return kl_elems[e].kind == KL_KIND_SINT ? kl_printf(&r->a, " %lld", (long long)bits)
                                            : kl_printf(&r->a, " %llu", (unsigned long long)bits);
}

const char *kl_sim_program(struct sim_run *r, uint64_t p)
{
    const int64_t *g = r->l->programs;
    if (g[1] <= 1 && g[2] <= 1)
        return kl_printf(&r->a, "%llu", (unsigned long long)p);
    uint64_t x = (uint64_t)g[0], y = (uint64_t)g[1];
    kl_buf b = {.a = &r->a};
    kl_putf(&b, "(%llu, %llu", (unsigned long long)(p % x), (unsigned long long)(p / x % y));
    if (g[2] > 1)
        kl_putf(&b, ", %llu", (unsigned long long)(p / x / y));
    kl_puts(&b, ")");
    return kl_buf_str(&b);
}

static const char *who(struct sim_run *r, uint32_t program, uint32_t thread, enum kl_touch t,
                       const char *value)
{
    if (thread == UINT32_MAX)
        return kl_printf(&r->a, "program %s %s%s", kl_sim_program(r, program), does(t), value);
    return kl_printf(&r->a, "program %s (thread %u) %s%s", kl_sim_program(r, program), thread, does(t),
                     value);
}

static void hit(void *user, const struct kl_race_hit *h)
{
    struct sim_run *r = user;
    bool both = writes(h->now) && writes(h->then), now = now_is_primary(r, h);
    uint32_t at = now ? h->site : h->old_site, other = now ? h->old_site : h->site;
    enum kl_code code = both ? KL_K1301 : KL_K1302;
    for (uint32_t k = 0; k < r->finding.n; k++) {
        struct sim_finding *f = &r->finding.v[k];
        if (f->code == code && f->ins == at && f->other == other + 1) {
            f->n += h->fresh && !r->again;
            return;
        }
    }
    const char *place = kl_sim_element(r, h->at);
    uint32_t p = now ? h->program : h->old_program, q = now ? h->old_program : h->program;
    struct sim_finding f = {.ins = at, .code = code, .n = 1, .other = other + 1};
    place = place ? place : "an element";
    if (both)
        f.text = kl_printf(&r->a, "programs %s and %s both %s %s, in no fixed order",
                           kl_sim_program(r, p < q ? p : q), kl_sim_program(r, p < q ? q : p),
                           h->now == KL_TOUCH_WRITE && h->then == KL_TOUCH_WRITE ? "write" : "change",
                           place);
    else
        f.text = kl_printf(&r->a, "program %s writes %s, which program %s reads, in no fixed order",
                           kl_sim_program(r, p), place, kl_sim_program(r, q));
    const struct sim_global *g = r->global; /* memory holds what the other one wrote, or read */
    bool stored = h->now == KL_TOUCH_WRITE && g->value && h->at >= g->at;
    const char *mine = value_text(r, h->now, h->at, stored ? g->value + (h->at - g->at) : h->at);
    const char *theirs = value_text(r, h->then, h->at, h->at);
    f.who = who(r, p, now ? h->lane : h->old_lane, now ? h->now : h->then, now ? mine : theirs);
    f.whom = who(r, q, now ? h->old_lane : h->lane, now ? h->then : h->now, now ? theirs : mine);
    bool plain = h->now == KL_TOUCH_WRITE && h->then == KL_TOUCH_WRITE;
    f.help = kl_race_help(both, plain, *mine && strcmp(mine, theirs) == 0);
    kl_push(&r->a, &r->finding, f);
}

/* ---- accesses ---- */

static void note_value(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                       const uint64_t *addr, uint32_t bytes, bool write)
{
    struct sim_run *r = w->run;
    uint32_t bad = 0;
    for (uint32_t m = r->global->values ? mask : 0; m; m &= m - 1) {
        uint32_t l = sim_first(m);
        const char *at = (const char *)(uintptr_t)addr[l];
        const kl_sim_array *x = array_at(r, at);
        if (!x || !x->shadow)
            continue;
        uint8_t *s = x->shadow + (at - (const char *)x->lo);
        if (write)
            memset(s, 1, bytes);
        else if (r->opt.checks & KL_SIM_VALUES && memchr(s, 0, bytes))
            bad |= 1u << l;
    }
    if (!bad || kl_sim_known(w, i, KL_K1401, bad))
        return;
    const char *at = (const char *)(uintptr_t)addr[sim_first(bad)];
    kl_sim_report(w, i, KL_K1401, bad, "%s reads %s, which nothing wrote",
                  i->kind == KL_SIM_ATOM ? "atomic" : "load", kl_sim_element(r, at));
    r->finding.v[r->finding.n - 1].help = kl_no_value_help(&r->a, array_at(r, at)->name);
}

/* Another warp wrote this by the same store, another value. */
static void meet(struct sim_warp *w, const struct sim_ins *i, const struct kl_race_span *s,
                 const char *at, uint32_t bytes, const char *value, uint32_t lane)
{
    struct sim_global *g = w->run->global;
    const struct kl_cell *c = kl_race_cell(s, at);
    if (!c->w || c->epoch != g->race.epoch || c->wlane / LANES == w->id || c->wlane == UINT32_MAX)
        return;
    const struct kl_race_set *set = &g->race.set.v[c->w];
    if (set->segment == g->race.segment && set->site == g->site[sim_index(w, i)] &&
        memcmp(at, value, bytes) != 0)
        kl_sim_report(w, i, KL_K1509, 1u << lane, "two elements of a store write %s, with different values",
                      kl_sim_element(w->run, at));
}

void kl_sim_global_touch(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                         const uint64_t *addr, uint32_t bytes, bool write, const char *value,
                         uint32_t stride)
{
    struct sim_run *r = w->run;
    struct sim_global *g = r->global;
    uint32_t site = g->site[sim_index(w, i)];
    note_value(w, i, mask, addr, bytes, write);
    if (write)
        for (uint32_t m = mask; m && value; m &= m - 1) {
            uint32_t l = sim_first(m);
            r->changes += memcmp((const void *)(uintptr_t)addr[l], value + (size_t)l * stride, bytes) != 0;
        }
    if (!g->races)
        return;
    enum kl_touch touch = write ? KL_TOUCH_WRITE : KL_TOUCH_READ;
    if (i->strong && !i->in_cta)
        touch = write ? KL_TOUCH_ATOMIC : KL_TOUCH_ATOMIC_READ;
    g->race.epoch = w->cta->epoch;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = sim_first(m), thread = w->id * LANES + l;
        const char *at = (const char *)(uintptr_t)addr[l];
        const struct kl_race_span *s = kl_race_span_of(g->span, g->nspan, at);
        if (!s || !s->cell)
            continue;
        if (orders(i))
            kl_race_sync(&g->race, at, !write, write, i->order != ORD_RELEASE,
                         i->order != ORD_ACQUIRE);
        else if (i->strong && write)
            kl_race_sync(&g->race, at, false, true, false, false);
        if (touch == KL_TOUCH_WRITE && value)
            meet(w, i, s, at, bytes, value + (size_t)l * stride, l);
        g->value = value ? value + (size_t)l * stride : NULL, g->at = at;
        kl_race_touch(&g->race, s, at, bytes, 0, 1, touch, site, thread);
        g->value = NULL;
    }
}

/* 32 neighbours that are read. */
void kl_sim_global_row(struct sim_warp *w, const struct sim_ins *i, const uint64_t *addr, uint32_t bytes)
{
    struct sim_global *g = w->run->global;
    const char *at = (const char *)(uintptr_t)addr[0];
    const struct kl_race_span *s = g->races ? kl_race_span_of(g->span, g->nspan, at) : NULL;
    const kl_sim_array *x = g->values ? array_at(w->run, at) : NULL;
    if (x && x->shadow && memchr(x->shadow + (at - (const char *)x->lo), 0, (size_t)bytes * LANES))
        note_value(w, i, UINT32_MAX, addr, bytes, false);
    if (s && s->cell)
        kl_race_touch(&g->race, s, at, bytes, bytes, LANES, KL_TOUCH_READ, g->site[sim_index(w, i)],
                      w->id * LANES);
}

void kl_sim_global_atomic(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                          const uint64_t *addr, uint32_t bytes)
{
    struct sim_run *r = w->run;
    struct sim_global *g = r->global;
    uint32_t site = g->site[sim_index(w, i)];
    note_value(w, i, mask, addr, bytes, false);
    note_value(w, i, mask, addr, bytes, true);
    g->race.epoch = w->cta->epoch;
    g->value = NULL;
    for (uint32_t m = mask; m && g->races; m &= m - 1) {
        uint32_t l = sim_first(m), thread = w->id * LANES + l;
        const char *at = (const char *)(uintptr_t)addr[l];
        const struct kl_race_span *s = kl_race_span_of(g->span, g->nspan, at);
        if (!s || !s->cell)
            continue;
        if (i->in_cta) {
            kl_race_touch(&g->race, s, at, bytes, 0, 1, KL_TOUCH_READ, site, thread);
            kl_race_touch(&g->race, s, at, bytes, 0, 1, KL_TOUCH_WRITE, site, thread);
            continue;
        }
        kl_race_sync(&g->race, at, true, true, i->order == ORD_ACQUIRE || i->order == ORD_ACQ_REL,
                     i->order == ORD_RELEASE || i->order == ORD_ACQ_REL);
        kl_race_touch(&g->race, s, at, bytes, 0, 1, KL_TOUCH_ATOMIC, site, thread);
    }
}

void kl_sim_global_sum(struct sim_warp *w, const struct sim_ins *i, uint32_t lane, const char *at,
                       uint64_t old, uint64_t value)
{
    struct sim_run *r = w->run;
    struct sim_global *g = r->global;
    struct kl_sum x = {old, value, at, g->races ? g->race.program : 0, w->sums, w->id * LANES + lane,
                       g->site[sim_index(w, i)], i->type == PT_F64};
    if (!r->again && r->opt.checks & KL_SIM_PROGRAMS && array_at(r, at))
        kl_sums_add(&g->sums, &x);
}

void kl_sim_global_orders(struct sim_run *r)
{
    uint32_t n;
    struct sim_global *g = r->global;
    const struct kl_sum_order *o = kl_sums_orders(&g->sums, &n);
    for (uint32_t k = 0; k < n; k++) {
        struct sim_finding f = {.ins = o[k].site, .code = KL_K1304, .n = o[k].count};
        int digits = o[k].wide ? 16 : 8;
        bool alone = !g->races || g->race.nprogram == 1;
        f.help = alone ? kl_lanes_help : kl_sum_help;
        f.text = kl_printf(&r->a, "the sum depends on the order of %s: 2 orders give 0x%0*llx and 0x%0*llx",
                           alone ? "lanes" : "programs", digits, (unsigned long long)o[k].bits[0], digits,
                           (unsigned long long)o[k].bits[1]);
        f.who = kl_printf(&r->a, "program %s at %s", kl_sim_program(r, o[k].program), kl_sim_element(r, o[k].at));
        kl_push(&r->a, &r->finding, f);
    }
    g->sums.add.n = 0;
}

bool kl_sim_global_unseen(const struct sim_run *r)
{
    return r->global && r->global->unseen;
}
