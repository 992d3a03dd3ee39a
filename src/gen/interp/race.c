/* race.c - the checks between programs: races, and float sums that depend on the order.
 *
 * base/race.h finds pairs of accesses; here they get their place in the source, coordinates and
 * values.  A pair is told at the access that writes, of two at the one that stands first, so
 * that it is the same whichever program ran first. */
#include "gen/interp/run.h"

/* ---- set-up ---- */

/* One value for all accesses of one place in the source, as unrolling makes many. */
static void number_sites(struct kl_run *r)
{
    const kl_fn *f = r->f;
    kl_map map = {.a = r->a};
    r->site = kl_new_n(r->a, uint32_t, f->nins);
    for (uint32_t id = 1; id < f->nins; id++) {
        const struct kl_ins *in = &f->ins[id];
        if (!in->blk.id || kl_ops[in->op].attr != KL_A_ACCESS)
            continue;
        uint32_t key[4] = {in->loc.beg, in->loc.end, in->op, kl_root(f, kl_arg(f, (kl_val){id}, 0))};
        bool isnew = true;
        uint32_t *x = in->loc.beg ? kl_map_put(&map, key, sizeof key, &isnew) : NULL;
        if (x && isnew)
            *x = id;
        r->site[id] = x ? *x : id;
    }
}

static void hit(void *user, const struct kl_race_hit *h);

static bool takes_array(const kl_fn *f, uint32_t id)
{
    uint16_t op = f->ins[id].op;
    return op == KL_OP_load || op == KL_OP_store || kl_is_atomic(op);
}

void kl_races_open(struct kl_run *r)
{
    const kl_fn *f = r->f;
    const int64_t *g = r->l->grid;
    bool synced = false, sums = false;
    int64_t programs;
    if (__builtin_mul_overflow(g[0], g[1], &programs) ||
        __builtin_mul_overflow(programs, g[2], &programs) || programs > INT32_MAX)
        return;
    struct kl_race_mem *m = kl_new_n(r->a, struct kl_race_mem, f->nparam + 1);
    for (uint32_t i = 0; i < f->nparam; i++) {
        const struct kl_slot *x = &r->l->slot[i];
        if (f->param[i].use == KL_P_ARRAY)
            m[i] = (struct kl_race_mem){x->base, x->lo, x->hi, kl_elems[f->param[i].elem].bytes,
                                        false, x->hidden};
    }
    for (uint32_t id = 1; id < f->nins; id++) {
        const struct kl_ins *in = &f->ins[id];
        if (!in->blk.id || !takes_array(f, id))
            continue;
        uint32_t root = kl_root(f, kl_arg(f, (kl_val){id}, 0)), order = 0;
        if (kl_is_atomic(in->op) && KL_HOW_SCOPE(in->attr.access.how) != KL_SC_PROGRAM)
            order = KL_HOW_ORDER(in->attr.access.how);
        synced |= order != KL_RELAXED && !m[root].hidden;
        sums |= in->op == KL_OP_atomic && kl_is_float(f->param[root].elem);
        m[root].written |= in->op != KL_OP_load && in->op != KL_OP_atomic_load;
    }
    if (sums) {
        r->sums = kl_new(r->a, struct kl_sums);
        r->sums->a = r->a;
    }
    number_sites(r);
    if (programs < 2)
        return;
    r->unseen = !kl_race_spans(r->a, m, f->nparam, &r->span, &r->nspan);
    if (r->unseen)
        return;
    for (uint32_t i = 0; i < f->nparam; i++) {
        struct kl_race_span *s =
            m[i].base && !m[i].hidden ? kl_race_span_of(r->span, r->nspan, m[i].lo) : NULL;
        if (s && s->cell)
            r->mem[i].race = s;
    }
    r->race = kl_new(r->a, struct kl_race);
    kl_race_open(r->race, r->a, (uint32_t)programs, hit);
    r->race->synced = synced;
}

/* ---- accesses ---- */

void kl_race_row(struct kl_walk *w, uint64_t lane, int64_t off, uint64_t a, uint64_t b)
{
    const struct kl_mem *m = w->mem;
    const kl_m_bool *mask = w->ac->mask;
    uint32_t bytes = w->ac->bytes, site = w->r->site[w->s->val.id];
    int64_t es = w->naxis ? w->es[w->naxis - 1] : 0;
    enum kl_touch touch = w->write ? KL_TOUCH_WRITE : KL_TOUCH_READ;
    w->r->race->user = w;
    if (a == b)
        return;
    if (!mask && kl_run_fits(m, off, es, a, b)) {
        off += (int64_t)a * es;
        kl_race_touch(w->r->race, m->race, m->base + off * bytes, bytes, es * bytes, b - a, touch,
                      site, (uint32_t)(lane + a));
        return;
    }
    bool fits = kl_run_fits(m, off, es, a, b);
    off = kl_wadd(off, kl_wmul((int64_t)a, es));
    for (uint64_t i = a, k; i < b; i = k) { /* runs that the mask lets through */
        for (k = i; k < b && fits && (!mask || mask[lane + k]); k++)
            continue;
        uint64_t n = k - i;
        if (!n && (!mask || mask[lane + i]) && off >= m->first && off <= m->last)
            n = 1;
        if (n)
            kl_race_touch(w->r->race, m->race, m->base + off * bytes, bytes, es * bytes, n, touch, site,
                          (uint32_t)(lane + i));
        k = k > i ? k : i + 1;
        off = kl_wadd(off, kl_wmul((int64_t)(k - i), es));
    }
}

void kl_race_one(struct kl_walk *w, uint64_t lane, int64_t off)
{
    const struct kl_mem *m = w->mem;
    const struct kl_ins *in = kl_in(w->r->f, w->s->val);
    uint32_t bytes = w->ac->bytes, site = w->r->site[w->s->val.id], how = w->ac->how;
    struct kl_race *q = w->r->race;
    const char *at = m->base + off * (int64_t)bytes;
    bool reads = in->op != KL_OP_store && in->op != KL_OP_atomic_store;
    bool writes = in->op != KL_OP_load && in->op != KL_OP_atomic_load;
    q->user = w;
    if (kl_is_atomic(in->op) && KL_HOW_SCOPE(how) != KL_SC_PROGRAM) {
        uint32_t order = KL_HOW_ORDER(how);
        kl_race_sync(q, at, reads, writes, order == KL_ACQUIRE || order == KL_ACQ_REL,
                     order == KL_RELEASE || order == KL_ACQ_REL);
        kl_race_touch(q, m->race, at, bytes, 0, 1, writes ? KL_TOUCH_ATOMIC : KL_TOUCH_ATOMIC_READ,
                      site, (uint32_t)lane);
        return;
    }
    if (reads)
        kl_race_touch(q, m->race, at, bytes, 0, 1, KL_TOUCH_READ, site, (uint32_t)lane);
    if (writes)
        kl_race_touch(q, m->race, at, bytes, 0, 1, KL_TOUCH_WRITE, site, (uint32_t)lane);
}

static bool writes(enum kl_touch t)
{
    return t == KL_TOUCH_WRITE || t == KL_TOUCH_ATOMIC;
}

/* Where the pair is told: at the one that writes, else at the one that stands first. */
static bool now_is_primary(const kl_fn *f, const struct kl_race_hit *h)
{
    if (writes(h->now) != writes(h->then))
        return writes(h->now);
    const struct kl_ins *a = &f->ins[h->site], *b = &f->ins[h->old_site];
    return a->loc.beg != b->loc.beg ? a->loc.beg < b->loc.beg : h->site < h->old_site;
}

static void hit(void *user, const struct kl_race_hit *h)
{
    struct kl_walk *w = user;
    struct kl_run *r = w->r;
    const kl_fn *f = r->f;
    uint32_t bytes = w->ac->bytes, root = w->view->root;
    enum kl_code code = writes(h->now) && writes(h->then) ? KL_K1301 : KL_K1302;
    bool now = now_is_primary(f, h), start = !((uintptr_t)(h->at - w->mem->base) % bytes);
    uint32_t val = now ? h->site : h->old_site, other = now ? h->old_site : h->site;
    struct kl_finding *g = NULL;
    for (uint32_t i = 0; i < r->found.n && !g; i++) {
        struct kl_finding *q = &r->found.v[i];
        if (q->code == code && q->val.id == val && q->other.id == other)
            g = q;
    }
    if (g) {
        g->count += h->fresh && start && g->again == r->again;
        return;
    }
    struct kl_finding one = {.code = code, .val = {val}, .other = {other}, .root = root,
                             .loc = f->ins[val].loc, .again = r->again};
    one.count = h->fresh && start;
    one.program = now ? h->program : h->old_program;
    one.lane = now ? h->lane : h->old_lane == UINT32_MAX ? UINT64_MAX : h->old_lane;
    one.other_program = now ? h->old_program : h->program;
    one.other_lane = !now ? h->lane : h->old_lane == UINT32_MAX ? UINT64_MAX : h->old_lane;
    one.touch = now ? h->now : h->then;
    one.other_touch = now ? h->then : h->now;
    kl_coordinates(w->ac, h->lane, one.at);
    memcpy(one.ext, w->view->ext, sizeof one.ext);
    one.elements = 1;
    for (uint32_t d = 0; d < w->ac->ndim; d++)
        if (one.ext[d] == INT64_MAX ||
            __builtin_mul_overflow(one.elements, (uint64_t)one.ext[d], &one.elements))
            one.elements = 0;
    one.off = (h->at - w->mem->base) / (int64_t)bytes;
    if (h->at < w->mem->base)
        one.elements = 0;
    enum kl_elem e = (enum kl_elem)w->ac->elem;
    uint64_t memory = kl_elem_load(e, w->mem->base + one.off * (int64_t)bytes), mine = memory;
    if (h->now == KL_TOUCH_WRITE && w->tile)
        mine = kl_elem_load(e, w->tile + (size_t)h->lane * bytes);
    one.bits[0] = now ? mine : memory, one.bits[1] = now ? memory : mine;
    kl_push(r->a, &r->found, one);
}

/* ---- telling ---- */

/* The atomic that does what `x[i] = x[i] op v` means; NULL: none. */
static const char *atomic_for(const kl_fn *f, kl_val store)
{
    static const struct { uint16_t op; const char *name; bool floats; } rows[] = {
        {KL_OP_add, "atomic_add", true}, {KL_OP_sub, "atomic_add", true},
        {KL_OP_min, "atomic_min", false}, {KL_OP_max, "atomic_max", false},
        {KL_OP_and, "atomic_and", false}, {KL_OP_or, "atomic_or", false},
        {KL_OP_xor, "atomic_xor", false}};
    const struct kl_ins *in = kl_in(f, store);
    uint32_t root = kl_root(f, kl_arg(f, store, 0));
    enum kl_elem e = (enum kl_elem)f->param[root].elem;
    if (in->op != KL_OP_store || kl_elems[e].bytes < 4)
        return NULL;
    kl_val v = kl_arg(f, store, in->attr.access.n + 1u);
    while (kl_in(f, v)->op == KL_OP_reshape || kl_in(f, v)->op == KL_OP_broadcast)
        v = kl_arg(f, v, 0);
    const struct kl_ins *by = kl_in(f, v);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (by->op != rows[i].op || (kl_is_float(e) && !rows[i].floats))
            continue;
        for (uint32_t k = 0; k < by->nargs; k++) {
            kl_val x = kl_arg(f, v, k);
            while (kl_in(f, x)->op == KL_OP_reshape || kl_in(f, x)->op == KL_OP_broadcast)
                x = kl_arg(f, x, 0);
            if (kl_in(f, x)->op == KL_OP_load && kl_root(f, kl_arg(f, x, 0)) == root)
                return rows[i].name;
        }
    }
    return NULL;
}

static const char *does(enum kl_touch t)
{
    return t == KL_TOUCH_READ           ? "reads"
           : t == KL_TOUCH_WRITE        ? "writes"
           : t == KL_TOUCH_ATOMIC_READ  ? "reads atomically"
                                        : "changes atomically";
}

static const char *value_text(kl_arena *a, enum kl_elem e, uint64_t bits)
{
    if (!kl_is_float(e))
        return kl_elems[e].kind == KL_KIND_SINT ? kl_printf(a, "%lld", (long long)bits)
                                                : kl_printf(a, "%llu", (unsigned long long)bits);
    return kl_printf(a, e == KL_f64 ? "%.17g" : "%.9g", kl_elem_double(e, bits));
}

/* "program 5, lane 2, writes 1" */
static const char *one_side(const struct kl_run *r, int64_t program, uint64_t lane, uint64_t lanes,
                            enum kl_touch t, uint64_t bits, enum kl_elem e)
{
    kl_buf b = {.a = r->a};
    kl_putf(&b, "program %s", kl_program_text(r, program));
    if (lane != UINT64_MAX && lanes > 1)
        kl_putf(&b, ", lane %llu of %llu,", (unsigned long long)lane, (unsigned long long)lanes);
    kl_putf(&b, " %s", does(t));
    if (t == KL_TOUCH_WRITE || t == KL_TOUCH_READ)
        kl_putf(&b, " %s", value_text(r->a, e, bits));
    return kl_buf_str(&b);
}

static const char *place_text(const struct kl_run *r, const struct kl_finding *g)
{
    const kl_fn *f = r->f;
    const char *name = f->param[g->root].name;
    kl_val access = g->val;
    bool inner = kl_in(f, kl_arg(f, kl_arg(f, access, 0), 0))->op == KL_OP_view;
    const char *at = kl_subscripts(r->a, g->at, kl_in(f, access)->attr.access.n);
    return inner ? kl_printf(r->a, "%s of a view of %s", at, name) : kl_printf(r->a, "%s%s", name, at);
}

static bool in_program(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    return kl_is_atomic(in->op) && KL_HOW_SCOPE(in->attr.access.how) == KL_SC_PROGRAM;
}

/* "programs 0 and 5 both write out[3], in no fixed order" */
void kl_tell_race(struct kl_run *r, const struct kl_finding *g, kl_diags *d)
{
    const kl_fn *f = r->f;
    kl_span none = {0, 0};
    enum kl_elem e = (enum kl_elem)f->param[g->root].elem;
    const char *where = place_text(r, g), *p = kl_program_text(r, g->program);
    const char *q = kl_program_text(r, g->other_program);
    bool both = g->code == KL_K1301, plain = g->touch == KL_TOUCH_WRITE && g->other_touch == KL_TOUCH_WRITE;
    struct kl_diag *x;
    if (both) {
        bool swap = g->other_program < g->program;
        x = kl_diag(d, g->code, g->loc, "programs %s and %s both %s %s, in no fixed order",
                    swap ? q : p, swap ? p : q, plain ? "write" : "change", where);
    } else {
        x = kl_diag(d, g->code, g->loc, "program %s writes %s, which program %s reads, in no fixed order",
                    p, where, q);
    }
    uint64_t lanes = kl_numel(kl_access_tile(f, g->val)), more = kl_numel(kl_access_tile(f, g->other));
    const char *a = one_side(r, g->program, g->lane, lanes, g->touch, g->bits[0], e);
    const char *b = one_side(r, g->other_program, g->other_lane, more, g->other_touch, g->bits[1], e);
    if (g->val.id == g->other.id) {
        kl_note(x, none, "%s; %s", a, b);
    } else {
        kl_note(x, none, "%s", a);
        kl_note(x, kl_in(f, g->other)->loc, "%s", b);
    }
    uint64_t count = 0;
    for (uint32_t i = 0; i < r->found.n; i++)
        if (r->found.v[i].code == g->code && r->found.v[i].root == g->root)
            count += r->found.v[i].count;
    const char *what = both ? "written by more than one program" : "read and written by different programs";
    if (g->elements)
        kl_note(x, none, "%llu of %llu elements of %s are %s", (unsigned long long)count,
                (unsigned long long)g->elements, f->param[g->root].name, what);
    const char *atomic = atomic_for(f, g->val);
    if (!atomic && both)
        atomic = atomic_for(f, g->other);
    if (atomic)
        kl_note(x, none, "an update is lost when both read before one writes; %s(%s, ...) is one step%s",
                atomic, f->param[g->root].name,
                kl_is_float(e) ? " (sums of floats still depend on the order)" : "");
    else if (in_program(f, g->val) || in_program(f, g->other))
        kl_note(x, none, "an atomic with .scope = program is a plain access to other programs; "
                         ".scope = device, the default, is for them");
    else if (kl_race_help(both, plain, g->bits[0] == g->bits[1]))
        kl_note(x, none, "%s", kl_race_help(both, plain, g->bits[0] == g->bits[1]));
}

/* ---- sums of floats ---- */

void kl_note_sum(struct kl_walk *w, uint64_t lane, const char *at, uint64_t old, uint64_t value)
{
    struct kl_run *r = w->r;
    if (KL_HOW_RMW(w->ac->how) != KL_RMW_add || r->again)
        return;
    if (!lane)
        r->seq++;
    struct kl_sum x = {old, value, at, (uint32_t)r->program, r->seq, (uint32_t)lane,
                       r->site[w->s->val.id], w->ac->bytes == 8};
    kl_sums_add(r->sums, &x);
}

void kl_find_orders(struct kl_run *r)
{
    uint32_t n;
    const struct kl_sum_order *o = kl_sums_orders(r->sums, &n);
    r->sums = NULL;
    for (uint32_t i = 0; i < n; i++) {
        kl_val v = {o[i].site};
        struct kl_finding g = {.code = KL_K1304, .val = v, .loc = kl_in(r->f, v)->loc,
                               .root = kl_root(r->f, kl_arg(r->f, v, 0)), .count = o[i].count,
                               .program = o[i].program, .other_program = o[i].other,
                               .bits = {o[i].bits[0], o[i].bits[1]}};
        g.off = (o[i].at - r->mem[g.root].base) / (int64_t)kl_elems[r->f->param[g.root].elem].bytes;
        kl_push(r->a, &r->found, g);
    }
}

void kl_tell_order(struct kl_run *r, const struct kl_finding *g, kl_diags *d)
{
    const kl_fn *f = r->f;
    enum kl_elem e = (enum kl_elem)f->param[g->root].elem;
    int digits = e == KL_f64 ? 16 : 8;
    bool alone = r->l->grid[0] * r->l->grid[1] * r->l->grid[2] == 1;
    struct kl_diag *x =
        kl_diag(d, g->code, g->loc, "the sum depends on the order of %s: 2 orders give 0x%0*llx and 0x%0*llx",
                alone ? "lanes" : "programs", digits, (unsigned long long)g->bits[0], digits,
                (unsigned long long)g->bits[1]);
    kl_note(x, (kl_span){0, 0}, "that is %s and %s, at element %lld of %s; so in %llu element%s",
            value_text(r->a, e, g->bits[0]), value_text(r->a, e, g->bits[1]), (long long)g->off,
            f->param[g->root].name, (unsigned long long)g->count, g->count == 1 ? "" : "s");
    kl_note(x, (kl_span){0, 0}, "%s", alone ? kl_lanes_help : kl_sum_help);
}
