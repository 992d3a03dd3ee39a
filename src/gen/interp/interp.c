/* interp.c - runs programs: the walk over steps, control flow, and the entry points.
 *
 * Nothing here writes to the function: a run's state lies in its own arena. */
#include "gen/interp/run.h"

enum { FUEL = 100000 }; /* element-operations between two calls of tick */

/* ---- steps ---- */

bool kl_spend(struct kl_run *r, uint64_t n)
{
    r->spent += n;
    if (n < (uint64_t)FUEL && (r->fuel -= (int64_t)n) > 0)
        return true;
    r->fuel = FUEL;
    if (r->tick && !r->tick(r->tick_user))
        r->stopped = true;
    return !r->stopped;
}

void *kl_temp(struct kl_run *r, uint32_t k, size_t n)
{
    if (r->temp[k].n < n) {
        size_t cap = n < 2 * r->temp[k].n ? 2 * r->temp[k].n : n;
        r->temp[k].p = kl_alloc_zero(r->a, cap);
        r->temp[k].n = cap;
    }
    return r->temp[k].p;
}

void kl_run_moves(const struct kl_moves *m)
{
    if (m->staged)
        for (uint32_t i = 0; i < m->n; i++)
            if (m->v[i].via)
                memcpy(m->v[i].via, m->v[i].from, m->v[i].bytes);
    for (uint32_t i = 0; i < m->n; i++)
        memcpy(m->v[i].to, m->v[i].via ? m->v[i].via : m->v[i].from, m->v[i].bytes);
}

bool kl_run_steps(struct kl_run *r, const struct kl_steps *c)
{
    uint64_t cost = 1;
    for (const struct kl_step *s = c->step, *end = s + c->n; s < end; s++) {
        if (s->ew)
            s->ew(s->out, s->in[0], s->in[1], s->in[2], s->n);
        else if (!s->exec(r, s))
            return false;
        cost += s->n + 4;
    }
    kl_run_moves(&c->yield);
    return kl_spend(r, cost);
}

/* ---- control flow ---- */

bool kl_do_if(struct kl_run *r, const struct kl_step *s)
{
    return kl_run_steps(r, s->u.region.blk[*(const kl_m_bool *)s->u.region.cond ? 0 : 1]);
}

bool kl_do_while(struct kl_run *r, const struct kl_step *s)
{
    kl_run_moves(&s->u.region.start);
    for (;;) {
        if (!kl_run_steps(r, s->u.region.blk[0]))
            return false;
        if (!*(const kl_m_bool *)s->u.region.cond)
            return true;
        if (!kl_run_steps(r, s->u.region.blk[1]))
            return false;
    }
}

/* The variable wraps in its own type, as adding the step to it would. */
bool kl_do_for(struct kl_run *r, const struct kl_step *s)
{
    kl_run_moves(&s->u.region.start);
    const struct kl_steps *body = s->u.region.blk[0];
    if (s->u.region.narrow) {
        const kl_m_i32 *lo = s->in[0], *hi = s->in[1], *step = s->in[2];
        for (int32_t i = *lo; i < *hi; i = (int32_t)((uint32_t)i + (uint32_t)*step)) {
            *(kl_m_i32 *)s->u.region.iv = i;
            if (!kl_run_steps(r, body))
                return false;
            if (i > INT32_MAX - *step && r->checks & KILN_CHECK_LOOPS)
                return kl_found_wrap(r, s);
        }
        return true;
    }
    const kl_m_i64 *lo = s->in[0], *hi = s->in[1], *step = s->in[2];
    for (int64_t i = *lo; i < *hi; i = kl_wadd(i, *step)) {
        *(kl_m_i64 *)s->u.region.iv = i;
        if (!kl_run_steps(r, body))
            return false;
        if (i > INT64_MAX - *step && r->checks & KILN_CHECK_LOOPS)
            return kl_found_wrap(r, s);
    }
    return true;
}

/* ---- runs ---- */

/* Offsets of whole elements in [lo, hi), counted from base. */
static struct kl_mem slot_memory(const struct kl_slot *s, uint32_t bytes)
{
    int64_t lo = (int64_t)((uintptr_t)s->lo - (uintptr_t)s->base);
    int64_t hi = (int64_t)((uintptr_t)s->hi - (uintptr_t)s->base), b = bytes;
    struct kl_mem m = {.base = s->base, .first = 0, .last = -1};
    if (!s->base || !s->lo || hi - lo < b)
        return m;
    m.first = lo >= 0 ? (lo + b - 1) / b : -(-lo / b);
    hi -= b; /* where the last one may begin */
    m.last = hi >= 0 ? hi / b : -((-hi + b - 1) / b);
    m.shadow = s->shadow;
    m.shadow_at = lo;
    return m;
}

static void open_memory(struct kl_run *r)
{
    const kl_fn *f = r->f;
    r->mem = kl_new_n(r->a, struct kl_mem, f->nparam + 1);
    for (uint32_t i = 0; i < f->nparam; i++)
        if (f->param[i].use == KL_P_ARRAY)
            r->mem[i] = slot_memory(&r->l->slot[i], kl_elems[f->param[i].elem].bytes);
}

/* true: the next program may run. */
static bool run_program(struct kl_run *r)
{
    if (r->race)
        kl_race_program(r->race, (uint32_t)r->program);
    if (kl_run_steps(r, &r->body))
        return true;
    bool next = r->endless && !r->wild && !r->stopped;
    r->endless = false;
    return next;
}

static void go_to(struct kl_run *r, int64_t program)
{
    const int64_t *g = r->l->grid;
    r->program = program;
    r->pid[0] = program % g[0];
    r->pid[1] = program / g[0] % g[1];
    r->pid[2] = program / g[0] / g[1];
}

static bool run_programs(struct kl_run *r, int64_t begin, int64_t end)
{
    const int64_t *g = r->l->grid;
    if (begin >= end)
        return true;
    r->fuel = FUEL;
    go_to(r, begin);
    if (!kl_run_steps(r, &r->prologue))
        return false;
    for (; r->program < end; r->program++) {
        if (!run_program(r))
            return false;
        if (++r->pid[0] == g[0]) {
            r->pid[0] = 0;
            if (++r->pid[1] == g[1])
                r->pid[1] = 0, r->pid[2]++;
        }
    }
    return true;
}

/* ---- the second run, from the last program to the first ---- */

struct saved {
    char *first, *last; /* what the arrays held before and after the first run */
    uint8_t *value;     /* which bytes had a value before */
};

/* The shadow memory of a span. */
static uint8_t *shadow_of(const struct kl_run *r, const struct kl_race_span *s)
{
    for (uint32_t i = 0; i < r->f->nparam; i++) {
        const struct kl_slot *x = &r->l->slot[i];
        if (r->mem[i].race == s && x->shadow)
            return x->shadow - ((const char *)x->lo - s->lo);
    }
    return NULL;
}

static struct saved *save(struct kl_run *r)
{
    struct saved *v = kl_new_n(r->a, struct saved, r->nspan + 1);
    for (uint32_t i = 0; i < r->nspan; i++) {
        const struct kl_race_span *s = &r->span[i];
        size_t n = (size_t)(s->hi - s->lo);
        const uint8_t *shadow = shadow_of(r, s);
        if (!s->cell)
            continue;
        v[i].first = kl_alloc_zero(r->a, n), v[i].last = kl_alloc_zero(r->a, n);
        memcpy(v[i].first, s->lo, n);
        if (shadow) {
            v[i].value = kl_alloc_zero(r->a, n);
            memcpy(v[i].value, shadow, n);
        }
    }
    return v;
}

/* What it finds is told with the rest; what it writes is not kept. */
static void run_again(struct kl_run *r, int64_t end, const struct saved *v)
{
    for (uint32_t i = 0; i < r->nspan; i++) {
        struct kl_race_span *s = &r->span[i];
        size_t n = (size_t)(s->hi - s->lo);
        uint8_t *shadow = shadow_of(r, s);
        if (!s->cell)
            continue;
        memcpy(v[i].last, s->lo, n);
        memcpy((char *)(uintptr_t)s->lo, v[i].first, n);
        kl_race_clear(s);
        if (shadow)
            memcpy(shadow, v[i].value, n);
    }
    kl_race_fn *found = r->race->found;
    kl_race_open(r->race, r->a, r->race->nprogram, found);
    r->race->synced = r->again = true;
    for (int64_t p = end; p-- > 0;) {
        go_to(r, p);
        if (!run_program(r))
            break;
    }
    for (uint32_t i = 0; i < r->nspan; i++)
        if (r->span[i].cell)
            memcpy((char *)(uintptr_t)r->span[i].lo, v[i].last,
                   (size_t)(r->span[i].hi - r->span[i].lo));
}

/* Everything between the guards: what it allocates lies in r->a, what it raises is the
 * caller's own jump. */
static kiln_status run_all(struct kl_run *r, int64_t begin, int64_t end, kl_diags *d)
{
    open_memory(r);
    if (r->checks & KILN_CHECK_RACES && d)
        kl_races_open(r);
    kl_plan(r);
    struct saved *saved = r->race && r->race->synced && end > 1 ? save(r) : NULL;
    bool done = run_programs(r, begin, end);
    if (r->sums)
        kl_find_orders(r);
    if (saved && done)
        run_again(r, end, saved);
    uint32_t errors = 0;
    for (uint32_t i = 0; i < r->found.n; i++)
        errors += kl_diaginfos[r->found.v[i].code].sev == KILN_ERROR;
    if (d)
        kl_report(r, d);
    if (!done && !r->wild)
        return KILN_E_UNSUPPORTED;
    return errors ? KILN_E_BOUNDS : KILN_OK;
}

static kiln_status jump_into(struct kl_run *r, int64_t begin, int64_t end, kl_diags *d,
                             jmp_buf *jump)
{
    return setjmp(*jump) == 0 ? run_all(r, begin, end, d) : KILN_E_INTERNAL;
}

/* A guard of its own: what fails inside becomes a status, and the arena, the list's guard and
 * the floating-point environment are put back. */
static kiln_status guarded(struct kl_run *r, int64_t begin, int64_t end, kl_diags *d, kl_env *env)
{
    jmp_buf jump;
    kl_env own = {.al = env->al, .fail = &jump}, listed = {.fail = &jump};
    kl_env *list_env = d ? d->a.env : NULL;
    kl_arena arena = {.env = &own};
    fenv_t fp;
    r->a = &arena;
    fegetenv(&fp);
    fesetenv(FE_DFL_ENV);
    if (d) {
        listed.al = list_env->al;
        d->a.env = &listed;
    }
    kiln_status st = jump_into(r, begin, end, d, &jump);
    const kl_env *raised = own.status ? &own : listed.status ? &listed : NULL;
    if (raised) {
        st = env->status = raised->status;
        memcpy(env->msg, raised->msg, sizeof env->msg);
    }
    if (d)
        d->a.env = list_env;
    fesetenv(&fp);
    kl_arena_free(&arena);
    return st;
}

kiln_status kl_interp_run(const kl_fn *f, const kl_launch *l, unsigned checks, kl_diags *d,
                          kl_env *env, bool (*tick)(void *), void *tick_user)
{
    struct kl_run r = {.f = f, .l = l, .checks = checks, .tick = tick, .tick_user = tick_user};
    return guarded(&r, 0, l->grid[0] * l->grid[1] * l->grid[2], d, env);
}

kiln_status kl_interp_range(const kl_fn *f, const kl_launch *l, int64_t begin, int64_t end,
                            kl_env *env)
{
    struct kl_run r = {.f = f, .l = l};
    return guarded(&r, begin, end, NULL, env);
}
