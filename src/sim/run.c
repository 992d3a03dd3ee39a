/* run.c - one launch: CTAs, or clusters, one after another, their warps in turns. */
#include <fenv.h>

#include "sim/exec.h"
#include "sim/lane.h"

enum { TURN = 8192, MAX_SMEM = 1 << 24 };

/* ---- the launch must fit the entry ---- */

static bool fits(const struct sim_fn *f, const kl_sim_launch *l, kl_diags *d)
{
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    kl_span none = {0, 0};
    uint32_t before = d->nerr;
    if (!threads || threads > 1024 || l->block[2] > 64)
        kl_diag(d, KL_K1606, none, "a CTA has 1 to 1024 threads, not %u x %u x %u", l->block[0],
                l->block[1], l->block[2]);
    else if (f->req[0] && memcmp(f->req, l->block, sizeof f->req) != 0)
        kl_diag(d, KL_K1606, none, "`%s` asks for CTAs of %u x %u x %u threads (.reqntid)",
                f->pub.name, f->req[0], f->req[1], f->req[2]);
    else if (f->pub.max_threads && threads > f->pub.max_threads)
        kl_diag(d, KL_K1606, none, "`%s` is made for at most %u threads (.maxntid), not %u",
                f->pub.name, f->pub.max_threads, (uint32_t)threads);
    if (!l->grid[0] || !l->grid[1] || !l->grid[2] || l->grid[0] > INT32_MAX || l->grid[1] > 65535 ||
        l->grid[2] > 65535)
        kl_diag(d, KL_K1606, none, "a grid of %u x %u x %u CTAs cannot be launched", l->grid[0],
                l->grid[1], l->grid[2]);
    for (int k = 0; k < 3; k++)
        if (l->grid[k] % f->pub.cluster[k])
            kl_diag(d, KL_K1606, none, "a grid of %u x %u x %u CTAs has no whole clusters of %u x %u x %u",
                    l->grid[0], l->grid[1], l->grid[2], f->pub.cluster[0], f->pub.cluster[1],
                    f->pub.cluster[2]);
    if (l->param_bytes < f->pub.param_bytes)
        kl_diag(d, KL_K1606, none, "`%s` takes %u bytes of parameters, not %u", f->pub.name,
                f->pub.param_bytes, l->param_bytes);
    if (l->dynamic_shared > MAX_SMEM)
        kl_diag(d, KL_K1606, none, "%u bytes of shared memory", l->dynamic_shared);
    return d->nerr == before;
}

/* ---- setting up ---- */

static void set_buffers(struct sim_run *r)
{
    const kl_sim_launch *l = r->l;
    r->buf = kl_new_n(&r->a, struct sim_range, l->nbuffer + r->m->nvar + 1);
    for (uint32_t k = 0; k < l->nbuffer; k++) {
        const kl_sim_buffer *b = &l->buffer[k];
        if (b->size)
            r->buf[r->nbuf++] =
                (struct sim_range){(uint64_t)(uintptr_t)b->base, b->size, k, b->writable};
    }
    for (uint32_t k = 0; k < r->m->nvar; k++)
        r->buf[r->nbuf++] = (struct sim_range){(uint64_t)(uintptr_t)r->m->var[k].data,
                                               r->m->var[k].size, SIM_NONE, false};
}

static void set_warps(struct sim_run *r)
{
    const struct sim_fn *f = r->f;
    bool async = false;
    for (uint32_t k = 0; k < f->nins; k++)
        async |= f->ins[k].fn == kl_sim_x_cp_async;
    r->warp = kl_new_n(&r->a, struct sim_warp, r->ncta * r->nwarp);
    char *tmp = kl_alloc_zero(&r->a, 4 * 8 * LANES);
    for (uint32_t k = 0; k < r->ncta * r->nwarp; k++) {
        struct sim_warp *w = &r->warp[k];
        w->run = r;
        w->gid = k;
        w->id = k % r->nwarp;
        w->cta = w->mem = &r->cta[k / r->nwarp];
        w->bank[BANK_REG] = kl_alloc_zero(&r->a, (size_t)f->reg_bytes + 16);
        w->bank[BANK_CONST] = (char *)(uintptr_t)r->m->cst;
        w->bank[BANK_TMP] = tmp;
        w->pred = kl_new_n(&r->a, uint32_t, f->npred + 1);
        w->written = kl_new_n(&r->a, uint32_t, f->nreg + 1);
        if (async)
            w->pend = kl_new_n(&r->a, struct sim_pending, PENDING_MAX);
        if (f->local_pitch)
            w->local = kl_alloc_zero(&r->a, (size_t)f->local_pitch * LANES);
    }
}

/* ---- barriers ---- */

static struct sim_warp *warps_of(const struct sim_run *r, const struct sim_cta *c)
{
    return &r->warp[c->rank * r->nwarp];
}

static uint32_t at_barrier(const struct sim_run *r, const struct sim_cta *c, uint32_t bar,
                           uint32_t *need)
{
    uint32_t n = 0;
    *need = 0;
    for (uint32_t k = 0; k < r->nwarp; k++) {
        const struct sim_warp *w = &warps_of(r, c)[k];
        if (w->state != WARP_BAR || w->bar != bar)
            continue;
        n++;
        if (w->bar_need)
            *need = w->bar_need;
    }
    return n;
}

static void reduce(struct sim_run *r, const struct sim_cta *c, uint32_t bar)
{
    uint32_t count = 0;
    bool all = true;
    for (uint32_t k = 0; k < r->nwarp; k++) {
        const struct sim_warp *w = &warps_of(r, c)[k];
        if (w->state != WARP_BAR || w->bar != bar || !w->redb)
            continue;
        count += (uint32_t)sim_popc(w->red_mask);
        all &= w->red_mask == w->alive;
    }
    for (uint32_t k = 0; k < r->nwarp; k++) {
        struct sim_warp *w = &warps_of(r, c)[k];
        if (w->state != WARP_BAR || w->bar != bar || !w->redb)
            continue;
        const struct sim_opnd *o = &w->redb->op[0];
        if (w->redb->mode == 0) {
            uint64_t v[LANES];
            EACH_LANE v[l] = count;
            sim_set(w, o, w->alive, v);
        } else {
            bool yes = w->redb->mode == 1 ? all : count != 0;
            sim_setp(w, o, w->alive, yes ? UINT32_MAX : 0);
        }
    }
}

/* Lets the warps of a CTA go on whose barrier is complete. */
static bool release(struct sim_run *r, struct sim_cta *c)
{
    bool any = false;
    for (uint32_t bar = 0; bar < SIM_BARRIERS; bar++) {
        uint32_t need, n = at_barrier(r, c, bar, &need), here = 0;
        if (!n || (need ? n * LANES + c->arrived[bar] < need : n < r->nwarp))
            continue;
        reduce(r, c, bar);
        for (uint32_t k = 0; k < r->nwarp; k++) {
            struct sim_warp *w = &warps_of(r, c)[k];
            if (w->state != WARP_BAR || w->bar != bar)
                continue;
            w->state = WARP_RUN;
            here |= 1u << k;
        }
        if (r->ncta > 1) /* of what arrived only, it is not known when */
            kl_sim_cluster_met(r, c, c->arrived[bar] ? UINT32_MAX : here);
        c->arrived[bar] = 0;
        c->epoch++;
        r->barriers++;
        any = true;
    }
    if (any)
        kl_sim_shadow_barrier(c);
    return any;
}

/* No warp can go on, but some wait. */
static void deadlock(struct sim_run *r)
{
    uint32_t done = 0, elsewhere = 0, all = r->ncta * r->nwarp;
    struct sim_warp *first = NULL;
    for (uint32_t k = all; k-- > 0;)
        if (r->warp[k].state != WARP_DONE)
            first = &r->warp[k];
    if (!first)
        return;
    uint32_t from = first->state == WARP_BAR ? first->cta->rank * r->nwarp : 0;
    uint32_t n = first->state == WARP_BAR ? r->nwarp : all;
    for (uint32_t k = from; k < from + n; k++) {
        const struct sim_warp *w = &r->warp[k];
        done += w->state == WARP_DONE;
        elsewhere += w->state != WARP_DONE &&
                     (w->state != first->state || (w->state == WARP_BAR && w->bar != first->bar));
    }
    const char *what = first->state == WARP_BAR ? kl_printf(&r->a, "barrier %u", first->bar)
                       : first->state == WARP_CLUSTER ? "a barrier of the cluster"
                                                      : "an mbarrier";
    kl_sim_report(first, first->at, KL_K1508, first->alive,
                  "%s waits for ever: of %u warps %u have ended and %u wait at another barrier", what,
                  n, done, elsewhere);
    r->stop = true;
}

/* ---- one CTA, or those of a cluster ---- */

static void begin_cta(struct sim_run *r, struct sim_cta *c)
{
    /* what nobody wrote is no useful number */
    if (r->smem_size) {
        memset(c->smem, 0xff, r->smem_size);
        memset(c->init, 0, r->smem_size);
    }
    kl_sim_shadow_barrier(c);
    memset(c->arrived, 0, sizeof c->arrived);
    for (uint32_t k = 0; k < r->nwarp; k++) {
        struct sim_warp *w = &warps_of(r, c)[k];
        uint32_t left = r->nthread - k * LANES;
        w->alive = left >= LANES ? UINT32_MAX : (1u << left) - 1;
        w->sp = 1;
        w->stack[1] = (struct sim_frame){0, SIM_NONE, w->alive};
        w->state = WARP_RUN;
        w->carry = w->npend = 0;
        w->arrives = w->waits = w->sums = 0;
        memset(w->group, 0, sizeof w->group);
        memset(w->written, 0, r->f->nreg * sizeof *w->written);
        kl_sim_specials(w);
    }
    r->cta_count++;
}

/* One turn of each warp; true if some CTA is not at its end. */
static bool turn(struct sim_run *r, bool *running)
{
    bool waiting = false;
    *running = false;
    for (uint32_t q = 0; q < r->ncta; q++) {
        struct sim_cta *c = &r->cta[r->opt.reverse ? r->ncta - 1 - q : q];
        bool was = false, is = false;
        for (uint32_t k = 0; k < r->nwarp && !r->stop; k++) {
            struct sim_warp *w = &warps_of(r, c)[r->opt.reverse ? r->nwarp - 1 - k : k];
            was |= w->state != WARP_DONE;
            if (w->state == WARP_RUN)
                kl_sim_warp_run(w, TURN);
            *running |= w->state == WARP_RUN;
            is |= w->state != WARP_DONE;
        }
        waiting |= is;
        if (was && !is && r->ncta > 1)
            kl_sim_cluster_ended(r, c);
    }
    return waiting;
}

static void run_cluster(struct sim_run *r)
{
    bool running;
    for (uint32_t k = 0; k < r->ncta; k++)
        begin_cta(r, &r->cta[k]);
    if (r->ncta > 1)
        kl_sim_cluster_begin(r);
    if (r->global && r->opt.checks & KL_SIM_ENDLESS)
        kl_sim_endless_begin(r);
    while (!r->stop && turn(r, &running) && !r->stop) {
        bool any = running;
        for (uint32_t k = 0; k < r->ncta; k++)
            any |= release(r, &r->cta[k]);
        if (r->ncta > 1)
            any |= kl_sim_cluster_release(r);
        if (!any)
            deadlock(r);
        if (r->machine && !r->stop && !kl_sim_endless_turn(r))
            break;
    }
}

/* CTAs, or clusters, are numbered along x, then y, then z. */
static void run_program(struct sim_run *r, uint64_t p)
{
    const kl_sim_launch *l = r->l;
    const uint32_t *n = r->f->pub.cluster;
    uint64_t nx = l->grid[0] / n[0], ny = l->grid[1] / n[1];
    uint32_t x = (uint32_t)(p % nx) * n[0], y = (uint32_t)(p / nx % ny) * n[1];
    uint32_t z = (uint32_t)(p / nx / ny) * n[2];
    for (uint32_t k = 0; k < r->ncta; k++) {
        uint32_t *at = r->cta[k].ctaid;
        at[0] = x + k % n[0], at[1] = y + k / n[0] % n[1], at[2] = z + k / n[0] / n[1];
    }
    if (r->global)
        kl_sim_global_program(r, p);
    run_cluster(r);
}

static void run_all(struct sim_run *r, kl_sim_counts *out, kl_arena *out_arena)
{
    const kl_sim_launch *l = r->l;
    const uint32_t *n = r->f->pub.cluster;
    r->nthread = l->block[0] * l->block[1] * l->block[2];
    r->nwarp = (r->nthread + LANES - 1) / LANES;
    r->ncta = n[0] * n[1] * n[2];
    r->smem_size = r->f->dynamic_at + l->dynamic_shared;
    if (!l->dynamic_shared)
        r->smem_size = r->f->pub.shared_bytes;
    r->cta = kl_new_n(&r->a, struct sim_cta, r->ncta);
    for (uint32_t k = 0; k < r->ncta; k++) {
        struct sim_cta *c = &r->cta[k];
        c->rank = k;
        c->smem = kl_alloc_zero(&r->a, (size_t)r->smem_size + 64);
        c->init = kl_alloc_zero(&r->a, (size_t)r->smem_size + 64);
        c->wr = kl_alloc_zero(&r->a, (size_t)r->smem_size + 64);
        c->rd = kl_alloc_zero(&r->a, (size_t)r->smem_size + 64);
    }
    r->tally = kl_new_n(&r->a, struct sim_tally, r->f->nins + 1);
    set_buffers(r);
    set_warps(r);
    if (r->ncta > 1)
        kl_sim_cluster_open(r);
    if (r->opt.checks & KL_SIM_GLOBAL)
        kl_sim_global_open(r);
    uint64_t programs = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] / r->ncta;
    struct sim_saved saved = {0};
    bool again = r->global && r->opt.checks & KL_SIM_PROGRAMS && programs > 1 && kl_sim_global_synced(r);
    if (again)
        kl_sim_global_save(r, &saved);
    for (uint64_t p = 0; p < programs && !r->stop; p++)
        run_program(r, p);
    if (out)
        kl_sim_counts_sum(r, out, out_arena);
    if (r->global)
        kl_sim_global_orders(r);
    if (!again || r->stop)
        return;
    kl_sim_global_swap(r, &saved);
    for (uint64_t p = programs; p-- > 0 && !r->stop;)
        run_program(r, p);
    kl_sim_global_swap(r, &saved);
}

/* A guard of its own: what fails inside becomes a status, and arenas keep their guards. */
kiln_status kl_sim_run(const kl_sim *m, const kl_sim_launch *l, const kl_sim_options *opt,
                       kl_sim_counts *out, kl_arena *out_arena, kl_diags *d, kl_env *env)
{
    jmp_buf jump;
    struct sim_run *r = env->al->fn(env->al->user, NULL, 0, sizeof *r);
    if (!r)
        return KILN_E_NOMEM;
    memset(r, 0, sizeof *r);
    r->env = (kl_env){.al = env->al, .fail = &jump};
    r->a.env = &r->env;
    r->m = m;
    r->l = l;
    if (opt)
        r->opt = *opt;
    else
        r->opt.checks = KL_SIM_CHECKS;
    if (!r->opt.budget)
        r->opt.budget = UINT64_C(1) << 40;
    kl_env *d_env = d->a.env, *out_env = out_arena ? out_arena->env : NULL;
    const kl_srcmap *d_src = d->src;
    d->a.env = &r->env;
    d->src = m->src;
    if (out_arena)
        out_arena->env = &r->env;
    fenv_t fenv;
    bool saved = fegetenv(&fenv) == 0 && fesetenv(FE_DFL_ENV) == 0;
    kiln_status volatile st = KILN_OK;
    if (setjmp(jump) == 0) {
        for (uint32_t k = 0; k < m->nfn; k++)
            if (strcmp(m->fn[k].pub.name, l->entry) == 0)
                r->f = &m->fn[k];
        if (!r->f) {
            kl_diag(d, KL_K1606, (kl_span){0, 0}, "there is no entry `%s`", l->entry);
            st = KILN_E_ARG;
        } else if (!fits(r->f, l, d)) {
            st = KILN_E_ARG;
        } else {
            run_all(r, out, out_arena);
            kl_sim_findings(r, d);
            uint32_t errors = 0;
            for (uint32_t k = 0; k < r->finding.n; k++)
                errors += kl_diaginfos[r->finding.v[k].code].sev == KILN_ERROR;
            st = errors ? KILN_E_BOUNDS : r->stopped_by_tick ? KILN_E_UNSUPPORTED : KILN_OK;
        }
    } else {
        st = r->env.status;
    }
    if (saved)
        fesetenv(&fenv);
    d->a.env = d_env;
    d->src = d_src;
    if (out_arena)
        out_arena->env = out_env;
    kl_arena_free(&r->a);
    env->al->fn(env->al->user, r, sizeof *r, 0);
    return st;
}
