/* program.c - the model's run: programs one after another, on scalars.
 *
 * Loops take their trips and branches their way where these are known.  Where they depend on data
 * one trip, or the first side, is taken, and what is executed there is marked as unsure. */
#include "model/program.h"

static void run_block(struct mrun *r, kl_blk b);

static const char data_trips[] = "the trips of a loop depend on data: one is counted",
                  too_long[] = "a loop ran longer than the model follows it";

static void set(struct mrun *r, kl_val to, kl_val from)
{
    struct mval *t = &r->val[to.id];
    const struct mval *f = &r->val[from.id];
    if (!t->needed)
        return;
    t->known = f->known;
    if (f->known)
        memcpy(t->v, f->v, t->n * sizeof *t->v);
}

/* Values from[0..n) for to[0..n), all read before any is written. */
static void set_all(struct mrun *r, const kl_val *from, kl_val first, uint32_t n)
{
    kl_val q = first;
    for (uint32_t i = 0; i < n; i++, q.id = kl_in(r->f, q)->next) {
        struct mval *t = &r->val[q.id];
        const struct mval *f = &r->val[from[i].id];
        if (!t->needed)
            continue;
        if (!t->stage)
            t->stage = kl_new_n(r->a, uint64_t, t->n);
        t->stage_known = f->known;
        if (f->known)
            memcpy(t->stage, f->v, t->n * sizeof *t->v);
    }
    q = first;
    for (uint32_t i = 0; i < n; i++, q.id = kl_in(r->f, q)->next) {
        struct mval *t = &r->val[q.id];
        if (!t->needed)
            continue;
        uint64_t *v = t->v;
        t->v = t->stage, t->stage = v;
        t->known = t->stage_known;
    }
}

static const kl_val *yields(const kl_fn *f, kl_blk b)
{
    return &f->args[kl_in(f, kl_last(f, b))->args];
}

static void forget(struct mrun *r, kl_val first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, first.id = kl_in(r->f, first)->next)
        r->val[first.id].known = false;
}

/* What the block's parameters hold after the last trip goes to the results. */
static void results(struct mrun *r, kl_val v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        set(r, kl_model_result(r->f, v, i), kl_model_given(r->f, v, 0, i));
}

static void set_iv(struct mrun *r, kl_val iv, int64_t i)
{
    struct mval *m = &r->val[iv.id];
    if (m->needed) {
        m->v[0] = kl_canon((enum kl_elem)kl_type_of(r->f, iv)->elem, (uint64_t)i);
        m->known = true;
    }
}

/* All of a block may be executed, for a reason that depends on data. */
static void mark(struct mrun *r, kl_blk b, const char *why)
{
    kl_each_ins (r->f, b, v) {
        kl_blk own[2];
        r->maybe[v.id] = why;
        for (uint32_t i = 0, n = kl_blocks(r->f, v, own); i < n; i++)
            mark(r, own[i], why);
    }
}

static void run_for(struct mrun *r, kl_val v)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t n = kl_nresults(f, v);
    kl_blk body = in->attr.loop.blk;
    kl_val iv = {f->blk[body.id].first}, first = {kl_in(f, iv)->next};
    kl_val lo = kl_arg(f, v, 0), hi = kl_arg(f, v, 1), step = kl_arg(f, v, 2);
    set_all(r, &f->args[in->args + 3], first, n);
    if (!kl_model_known(r, lo) || !kl_model_known(r, hi) || !kl_model_known(r, step)) {
        const char *was = r->unsure;
        kl_model_doubt_at(r, v, data_trips);
        r->unsure = data_trips;
        mark(r, body, data_trips);
        if (kl_model_known(r, lo))
            set_iv(r, iv, kl_model_int(r, lo));
        else
            r->val[iv.id].known = false;
        run_block(r, body);
        r->unsure = was;
        forget(r, kl_model_result(f, v, 0), n);
        return;
    }
    int64_t i = kl_model_int(r, lo), end = kl_model_int(r, hi), by = kl_model_int(r, step);
    while (i < end) {
        set_iv(r, iv, i);
        run_block(r, body);
        set_all(r, yields(f, body), first, n);
        if (r->work > r->stop) {
            r->m->cut = true;
            kl_model_doubt_at(r, v, too_long);
            mark(r, body, too_long);
            forget(r, kl_model_result(f, v, 0), n);
            return;
        }
        if (by <= 0 || (uint64_t)end - (uint64_t)i <= (uint64_t)by)
            break;
        i += by;
    }
    results(r, v, n);
}

static void run_while(struct mrun *r, kl_val v)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t n = kl_nresults(f, v);
    kl_val head = {f->blk[in->attr.blk[0].id].first};
    kl_val go = yields(f, in->attr.blk[0])[0];
    set_all(r, &f->args[in->args], head, n);
    for (;;) {
        run_block(r, in->attr.blk[0]);
        bool known = kl_model_known(r, go);
        const char *was = r->unsure;
        if (known && !kl_model_int(r, go))
            break;
        bool stop = !known || r->work > r->stop;
        if (stop) { /* a loop without end stops somewhere */
            r->unsure = known ? too_long : data_trips;
            r->m->cut |= known;
            kl_model_doubt_at(r, v, r->unsure);
            mark(r, in->attr.blk[0], r->unsure);
            mark(r, in->attr.blk[1], r->unsure);
        }
        for (uint32_t i = 0; i < n; i++)
            set(r, kl_model_given(f, v, 1, i), kl_model_given(f, v, 0, i));
        run_block(r, in->attr.blk[1]);
        set_all(r, yields(f, in->attr.blk[1]), head, n);
        r->unsure = was;
        if (stop) {
            forget(r, kl_model_result(f, v, 0), n);
            return;
        }
    }
    results(r, v, n);
}

static void run_if(struct mrun *r, kl_val v)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_val cond = kl_arg(f, v, 0);
    uint32_t n = kl_nresults(f, v), side = 0;
    const char *was = r->unsure;
    bool known = kl_model_known(r, cond);
    if (known) {
        side = kl_model_int(r, cond) ? 0 : 1;
    } else {
        r->unsure = "a branch depends on data: its first side is counted";
        kl_model_doubt_at(r, v, r->unsure);
        mark(r, in->attr.blk[0], r->unsure);
        mark(r, in->attr.blk[1], r->unsure);
    }
    run_block(r, in->attr.blk[side]);
    for (uint32_t i = 0; i < n; i++) {
        kl_val q = kl_model_result(f, v, i);
        set(r, q, yields(f, in->attr.blk[side])[i]);
        r->val[q.id].known &= known;
    }
    r->unsure = was;
}

static void run_block(struct mrun *r, kl_blk b)
{
    r->work++;
    kl_each_ins (r->f, b, v) {
        const struct kl_ins *in = kl_in(r->f, v);
        r->runs[r->set][v.id]++;
        r->unsure_runs[r->set][v.id] += r->unsure != NULL;
        kl_model_eval(r, v);
        if (r->at[v.id])
            kl_model_access_run(r, v);
        if (r->parts[v.id])
            kl_model_shared_run(r, v);
        if (in->op == KL_OP_for)
            run_for(r, v);
        else if (in->op == KL_OP_while)
            run_while(r, v);
        else if (in->op == KL_OP_if)
            run_if(r, v);
    }
}

static void run_program(struct mrun *r, uint64_t p)
{
    uint64_t g0 = (uint64_t)r->in->grid[0], g1 = (uint64_t)r->in->grid[1];
    r->pid[0] = (int64_t)(p % g0);
    r->pid[1] = (int64_t)(p / g0 % g1);
    r->pid[2] = (int64_t)(p / g0 / g1);
    r->edge = false;
    run_block(r, KL_BODY);
    r->edges[r->set] += r->edge;
}

/* Where in [0, n) number i of a sample lies: a number that is not regular in i, so that it does not
 * follow the grid's axes. */
static uint64_t spread(uint64_t i, uint64_t n)
{
    uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return n ? (x ^ x >> 32) % n : 0;
}

void kl_model_programs(struct mrun *r, uint64_t budget)
{
    enum { LEAST = 64, FEW = 2 }; /* FEW: where one alone takes the budget */
    uint64_t n = (uint64_t)r->in->grid[0] * (uint64_t)r->in->grid[1] * (uint64_t)r->in->grid[2];
    r->m->programs = r->m->counted = n;
    r->stop = budget;
    if (n == 0)
        return;
    run_program(r, 0); /* the edges count once */
    r->stop = r->work + budget;
    uint64_t some = n > 2 ? 1 : 0, before = r->work;
    if (n > 1)
        run_program(r, n - 1);
    uint64_t middle = n > 2 ? n - 2 : 0, each = r->work - before + 1; /* as one costs once others ran */
    if (!some)
        return;
    uint64_t least = each < budget / 4 ? LEAST : FEW;
    uint64_t most = budget / each > least ? budget / each : least;
    r->set = 1;
    some = middle < most ? middle : most;
    for (uint64_t i = 0; i < some; i++) {
        if (i == some / 2)
            for (uint32_t k = 0; k < 2 * r->f->nparam; k++)
                r->touch[k / 2].half[k % 2] = kl_model_touched(&r->touch[k / 2], k % 2);
        /* one of each of `some` equal parts */
        uint64_t lo = (uint64_t)((__uint128_t)i * middle / some);
        uint64_t hi = (uint64_t)((__uint128_t)(i + 1) * middle / some);
        r->stop = r->work + budget;
        run_program(r, 1 + lo + spread(i, hi - lo));
    }
    r->m->counted = 2 + some;
}
