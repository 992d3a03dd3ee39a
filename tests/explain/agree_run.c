/* agree_run.c - one launch of model-agree: see agree.c. */
#include "agree.h"

#include <stdio.h>

#include "lib/lib.h"
#include "model/model.h"
#include "sim/sim.h"

struct one {
    const struct options *o;
    struct totals *t;
    kiln_kernel *k;
    const kiln_arg *args;
    size_t n;
    const char *what;
    bool bad, left;
};

static void fail(struct one *w, const char *what, const char *line, unsigned number, uint64_t model,
                 uint64_t sim)
{
    printf("FAIL %s: line %s:%u: %s: the model says %llu, the executor %llu\n", w->what,
           line ? line : "-", number, what, (unsigned long long)model, (unsigned long long)sim);
    w->bad = true;
}

static void compare(struct one *w, const char *kind, const kl_model_line *l,
                    const kl_model_traffic *m, const kl_sim_traffic *s)
{
    const struct {
        const char *name;
        uint64_t m, s;
    } v[] = {{"requests", m->requests, s->requests},
             {"units", m->units, s->parts},
             {"ideal", m->ideal, s->ideal},
             {"bytes", m->bytes, s->bytes}};
    for (size_t i = 0; i < 4; i++)
        if (v[i].m != v[i].s) {
            char text[60];
            snprintf(text, sizeof text, "%s %s", kind, v[i].name);
            fail(w, text, l->file, l->line, v[i].m, v[i].s);
            return;
        }
}

static const kl_model_line *find(const kl_model *m, const kl_sim_line *s)
{
    static const kl_model_line none = {.exact = true};
    for (uint32_t i = 0; i < m->line.n; i++) {
        const kl_model_line *l = &m->line.v[i];
        if (l->line == s->line &&
            (l->file == s->file || (l->file && s->file && !strcmp(l->file, s->file))))
            return l;
    }
    return &none;
}

static void compare_all(struct one *w, const kl_model *m, const kl_sim_counts *c)
{
    uint32_t unsure = 0;
    for (uint32_t i = 0; i < c->nline; i++) {
        const kl_sim_line *s = &c->line[i];
        if (!(s->gload.requests + s->gstore.requests + s->sload.requests + s->sstore.requests +
              s->push.requests + s->atomic.requests))
            continue;
        const kl_model_line *l = find(m, s);
        kl_model_line named = *l;
        named.file = s->file;
        named.line = s->line;
        w->t->lines++;
        if (!l->exact) {
            unsure++;
            continue;
        }
        compare(w, "global load", &named, &l->gload, &s->gload);
        compare(w, "global store", &named, &l->gstore, &s->gstore);
        compare(w, "shared load", &named, &l->sload, &s->sload);
        compare(w, "shared store", &named, &l->sstore, &s->sstore);
        compare(w, "store to other blocks", &named, &l->push, &s->push);
        compare(w, "atomic", &named, &l->atomic, &s->atomic);
    }
    for (uint32_t i = 0; i < m->line.n; i++) { /* and nothing where the executor saw nothing */
        const kl_model_line *l = &m->line.v[i];
        bool seen = !l->exact;
        for (uint32_t k = 0; k < c->nline && !seen; k++)
            seen = c->line[k].line == l->line && find(m, &c->line[k]) == l;
        if (!seen &&
            l->gload.requests + l->gstore.requests + l->sload.requests + l->sstore.requests +
                l->push.requests + l->atomic.requests)
            fail(w, "requests", l->file, l->line, l->gload.requests + l->gstore.requests, 0);
    }
    if (m->barriers != c->barriers && !m->doubt.n)
        fail(w, "barriers", NULL, 0, m->barriers, c->barriers);
    uint64_t steps = 0; /* the model takes the shortest way, and leaves copies of registers out */
    for (int i = 0; i < KL_SIM_NKIND; i++)
        steps += c->instructions[i];
    if ((m->instructions > steps || 8 * m->instructions + 200 * c->warps < steps) && m->exact && !m->edges)
        fail(w, "instructions", NULL, 0, m->instructions, steps);
    /* active lanes, of all atomics */
    if (m->atomic.lanes != c->lanes[KL_SIM_ATOM] && !m->doubt.n)
        fail(w, "lanes of atomics", NULL, 0, m->atomic.lanes, c->lanes[KL_SIM_ATOM]);
    w->t->unsure += unsure;
    if (w->o->verbose || (unsure && w->o->most < 0))
        for (uint32_t i = 0; i < m->doubt.n; i++)
            printf("  %s: line %u: %s\n", w->what, m->doubt.v[i].place.line, m->doubt.v[i].text);
}

/* Emit, model, execute. */
static kiln_status run(struct kl_call *c, void *arg)
{
    struct one *w = arg;
    kiln_kernel *k = w->k;
    kiln_module *mod = k->mod;
    kl_bound b;
    if (!kl_bind(&c->tmp, mod->ast, k->node, w->args, w->n, 0, 4, &b, c->d))
        return KILN_E_ARG;
    if (b.empty || b.nparam > k->nparam) { /* nothing runs, or it prints */
        w->left = true;
        return KILN_OK;
    }
    kl_fn *f = kl_lower(&c->tmp, mod->ast, &b, c->d);
    if (!f)
        return KILN_E_COMPILE;
    const kl_pipeline p = {.level = 2};
    kl_run_passes(f, &p, NULL);
    unsigned facts = kl_facts(k, &b);
    const kl_ptx_opts po = {.arch = w->o->arch,
                            .v16 = facts & KL_FACT_V16,
                            .i32 = facts & KL_FACT_I32,
                            .exact = true,
                            .lines = true,
                            .no_swizzle = w->o->no_swizzle};
    kl_model_param *mp = kl_new_n(&c->tmp, kl_model_param, f->nparam + 1);
    kl_sim_buffer *buf = kl_new_n(&c->tmp, kl_sim_buffer, f->nparam + 1);
    uint64_t *param = kl_new_n(&c->tmp, uint64_t, f->nparam + 5);
    uint32_t nbuf = 0;
    for (uint32_t i = 0; i < f->nparam; i++) {
        const struct kl_boundparam *q = &b.param[f->param[i].decl];
        mp[i] = (kl_model_param){.name = f->param[i].name,
                                 .given = q->given,
                                 .bits = q->bits,
                                 .rank = q->rank,
                                 .base = (uint64_t)(uintptr_t)q->data,
                                 .data = q->data,
                                 .lo = q->lo,
                                 .hi = q->hi};
        memcpy(mp[i].ext, q->ext, sizeof mp[i].ext);
        memcpy(mp[i].str, q->str, sizeof mp[i].str);
        bool array = f->param[i].use == KL_P_ARRAY;
        param[i] = array ? (uint64_t)(uintptr_t)q->data : q->bits;
        if (array && q->lo < q->hi)
            buf[nbuf++] =
                (kl_sim_buffer){.base = (void *)(uintptr_t)q->lo,
                                .size = (size_t)((const char *)q->hi - (const char *)q->lo),
                                .writable = f->param[i].written};
    }
    uint64_t total = (uint64_t)b.grid[0] * (uint64_t)b.grid[1] * (uint64_t)b.grid[2];
    for (int i = 0; i < 3; i++)
        param[f->nparam + (uint32_t)i] = (uint64_t)b.grid[i];
    param[f->nparam + 3] = total;
    param[f->nparam + 4] = 4;
    const kl_model_in in = {
        .f = f, .ptx = &po, .param = mp, .grid = {b.grid[0], b.grid[1], b.grid[2]}, .num_sms = 4};
    kl_model m;
    kl_model_make(&m, &in);
    kl_model_notes(&m, &in, NULL, c->d);

    kl_ptxinfo info;
    kl_buf text = {.a = &c->tmp}, body = {.a = &c->tmp};
    kl_ptx_emit(&body, f, &po, &info);
    kl_ptx_prelude(&text, f, &po, info.cluster > 1);
    kl_buf_put(&text, body.s, body.n);
    kl_srcmap *src = kl_new(&c->tmp, kl_srcmap);
    src->a = &c->tmp;
    uint32_t file = kl_src_add(src, "kernel.ptx", kl_buf_str(&text), (uint32_t)text.n, false);
    kl_sim *sim = kl_sim_parse(&c->tmp, src, file, c->d);
    if (!sim)
        return KILN_E_INTERNAL;
    const kl_sim_launch l = {.entry = info.entry,
                             .grid = {(uint32_t)(total * info.cluster), 1, 1},
                             .block = {info.threads, 1, 1},
                             .dynamic_shared = info.dynamic,
                             .param = param,
                             .param_bytes = info.nparam * 8,
                             .buffer = buf,
                             .nbuffer = nbuf};
    const kl_sim_options so = {.checks = 0};
    kl_sim_counts counts;
    kiln_status s = kl_sim_run(sim, &l, &so, &counts, &c->tmp, c->d, &c->env);
    if (s)
        return s;
    if (m.counted != m.programs) {
        printf("  %s: %llu of %llu programs\n", w->what, (unsigned long long)m.counted,
               (unsigned long long)m.programs);
        w->left = true;
        return KILN_OK;
    }
    compare_all(w, &m, &counts);
    return KILN_OK;
}

kiln_status agree_run(const struct options *o, struct totals *t, kiln_kernel *k,
                      const kiln_arg *args, size_t n, const char *what, bool *bad, bool *left,
                      kiln_diags **diags)
{
    struct one w = {.o = o, .t = t, .k = k, .args = args, .n = n, .what = what};
    struct kl_call c;
    kiln_status s = kl_call_begin(&c, &k->mod->ctx->al);
    if (s)
        return s;
    s = kl_guarded(&c, &k->mod->ast->src, run, &w);
    *bad = w.bad;
    *left = w.left;
    return kl_call_end(&c, s, diags);
}
