/* model.c - from a function and a launch to its model: emit, run, add up. */
#include "model/model.h"

#include "model/program.h"
#include "model/run.h"

enum { BUDGET = 1 << 25 }; /* some seconds */

void kl_model_sum(kl_model_traffic *to, const kl_model_traffic *t)
{
    to->requests += t->requests;
    to->lanes += t->lanes;
    to->bytes += t->bytes;
    to->units += t->units;
    to->ideal += t->ideal;
    to->apart += t->apart;
}

uint64_t kl_model_scale(const struct mrun *r, uint64_t n, uint64_t k)
{
    uint64_t some = r->m->counted > 2 ? r->m->counted - 2 : 0, all = r->m->programs - 2;
    if (!some || some == all)
        return n + k;
    return n + (uint64_t)((double)k * (double)all / (double)some + 0.5);
}

uint64_t kl_model_times(const struct mrun *r, kl_val v)
{
    return kl_model_scale(r, r->runs[0][v.id], r->runs[1][v.id]);
}

kl_model_traffic kl_model_scaled(const struct mrun *r, const kl_model_traffic t[2])
{
    return (kl_model_traffic){
        kl_model_scale(r, t[0].requests, t[1].requests), kl_model_scale(r, t[0].lanes, t[1].lanes),
        kl_model_scale(r, t[0].bytes, t[1].bytes), kl_model_scale(r, t[0].units, t[1].units),
        kl_model_scale(r, t[0].ideal, t[1].ideal), kl_model_scale(r, t[0].apart, t[1].apart)};
}

kiln_place kl_model_place(const struct mrun *r, kl_span loc)
{
    return r->f->src && loc.beg ? kl_src_place(r->f->src, r->a, loc) : (kiln_place){0};
}

/* ---- lines ---- */

kl_model_line *kl_model_line_of(struct mrun *r, const char *file, uint32_t line)
{
    kl_model *m = r->m;
    for (uint32_t i = 0; i < m->line.n; i++) {
        kl_model_line *l = &m->line.v[i];
        if (l->line == line && (l->file == file || (l->file && file && !strcmp(l->file, file))))
            return l;
    }
    kl_push(r->a, &m->line, ((kl_model_line){.file = file, .line = line, .exact = true}));
    return &m->line.v[m->line.n - 1];
}

static int by_line(const kl_model_line *a, const kl_model_line *b)
{
    int c = !a->file || !b->file ? (a->file != NULL) - (b->file != NULL) : strcmp(a->file, b->file);
    return c ? c : a->line < b->line ? -1 : a->line > b->line;
}

static void sort_lines(kl_model *m)
{
    for (uint32_t i = 1; i < m->line.n; i++)
        for (uint32_t j = i; j > 0 && by_line(&m->line.v[j - 1], &m->line.v[j]) > 0; j--) {
            kl_model_line t = m->line.v[j];
            m->line.v[j] = m->line.v[j - 1];
            m->line.v[j - 1] = t;
        }
}

/* ---- accesses ---- */

static void make_accesses(struct mrun *r)
{
    const kl_fn *f = r->f;
    r->access = kl_new_n(r->a, struct maccess, r->tr->access.n + 1);
    r->at = kl_new_n(r->a, struct maccess *, f->nins);
    for (uint32_t i = 0; i < r->tr->access.n; i++) {
        const kl_ptx_access *rec = &r->tr->access.v[i];
        const struct kl_ins *in = kl_in(f, rec->at);
        struct maccess *a = &r->access[i];
        a->rec = rec;
        a->seen.a = a->marked.a = r->a;
        a->out = r->m->access.n;
        a->next = r->at[rec->at.id];
        r->at[rec->at.id] = a;
        kl_val u = kl_arg(f, rec->at, 0);
        uint32_t root = kl_root(f, u);
        uint8_t elem = (uint8_t)kl_type_of(f, u)->elem;
        kl_model_access o = {.at = rec->at,
                             .loc = in->loc,
                             .place = kl_model_place(r, in->loc),
                             .elem = elem,
                             .dir = in->op == KL_OP_atomic              ? KL_MODEL_ATOMIC
                                    : kl_ops[in->op].flags & KL_F_WRITE ? KL_MODEL_STORE
                                                                        : KL_MODEL_LOAD,
                             .vec = (uint8_t)(1u << rec->vec),
                             .width = (uint8_t)(kl_elems[elem].bytes << rec->vec),
                             .param = root,
                             .name = r->in->param[root].name,
                             .masked = (in->attr.access.flags & KL_ACC_MASK) != 0};
        kl_push(r->a, &r->m->access, o);
    }
}

static void end_accesses(struct mrun *r)
{
    kl_model *m = r->m;
    for (uint32_t i = 0; i < r->tr->access.n; i++) {
        struct maccess *a = &r->access[i];
        kl_model_access *o = &m->access.v[a->out];
        o->t = kl_model_scaled(r, a->t);
        o->runs = kl_model_scale(r, a->runs[0], a->runs[1]);
        o->unknown = kl_model_scale(r, a->unknown[0], a->unknown[1]);
        o->why = a->why ? a->why : r->maybe[a->rec->at.id];
        o->exact = !o->unknown && !o->why && m->counted == m->programs;
        o->outside = a->outside != 0;
        o->empty = o->runs && !o->unknown && !a->inside;
        o->mask_true = o->masked && o->runs && !o->unknown && !a->mask_false;
        kl_model_line *l = kl_model_line_of(r, a->rec->file, a->rec->line);
        l->exact &= !o->why;
        kl_model_sum(o->dir == KL_MODEL_ATOMIC  ? &l->atomic
                     : o->dir == KL_MODEL_STORE ? &l->gstore
                                                : &l->gload,
                     &o->t);
        kl_model_sum(o->dir == KL_MODEL_ATOMIC  ? &m->atomic
                     : o->dir == KL_MODEL_STORE ? &m->gstore
                                                : &m->gload,
                     &o->t);
    }
}

/* Tiles of constants, which are no array of the launch. */
static void end_tables(struct mrun *r)
{
    for (uint32_t i = 0; i < r->tr->table.n; i++) {
        const kl_ptx_table *t = &r->tr->table.v[i];
        uint64_t n = kl_model_times(r, t->at);
        const kl_model_traffic all = {n * t->requests, n * t->lanes, n * t->bytes, n * t->units,
                                      n * t->ideal,    n * t->units};
        kl_model_line *l = kl_model_line_of(r, t->file, t->line);
        l->exact &= !r->maybe[t->at.id] && !r->unsure_runs[0][t->at.id] &&
                    !r->unsure_runs[1][t->at.id];
        kl_model_sum(&l->gload, &all);
        kl_model_sum(&r->m->gload, &all);
    }
}

/* ---- arrays ---- */

static uint64_t set_bits(const uint64_t *w, uint64_t n)
{
    uint64_t k = 0;
    for (uint64_t i = 0; w && i < n / 64 + 1; i++)
        k += (uint64_t)__builtin_popcountll(w[i]);
    return k;
}

uint64_t kl_model_touched(const struct mtouch *t, uint32_t write)
{
    uint64_t n = set_bits(t->bit[write], t->span >> t->log2) << t->log2;
    return n < t->span ? n : t->span;
}

/* Different bytes of a direction.  Of a sample: the programs that did not run touch as much anew,
 * each, as those of the second half did, until all is touched. */
static uint64_t unique(const struct mrun *r, const struct mtouch *t, uint32_t write, uint32_t es,
                       uint64_t whole, uint64_t asked)
{
    uint64_t n = kl_model_touched(t, write);
    if (r->m->counted < r->m->programs) {
        double each = (double)(n - t->half[write]) / ((double)(r->m->counted - 2) / 2);
        double more = (double)n + each * (double)(r->m->programs - r->m->counted);
        n = more * es < (double)whole ? (uint64_t)(more * es) : whole;
    } else {
        n *= es;
    }
    return n < asked ? n : asked;
}

static bool has_atomics(const kl_model *m, uint32_t param)
{
    for (uint32_t i = 0; i < m->access.n; i++)
        if (m->access.v[i].dir == KL_MODEL_ATOMIC && m->access.v[i].param == param)
            return true;
    return false;
}

/* Different lines of 128 bytes in which something was written. */
static uint64_t lines_written(const struct mtouch *t, uint64_t base, uint32_t es)
{
    uint64_t n = 0, last = UINT64_MAX;
    for (uint64_t w = 0; t->bit[1] && w < (t->span >> t->log2) / 64 + 1; w++)
        for (uint64_t m = t->bit[1][w]; m; m &= m - 1) {
            uint64_t i = ((w * 64 + (uint64_t)__builtin_ctzll(m)) << t->log2) + (uint64_t)t->low;
            uint64_t first = (base + i * es) / 128, end = (base + (i + (UINT64_C(1) << t->log2)) * es - 1) / 128;
            n += end - first + (first != last);
            last = end;
        }
    return n;
}

static void end_arrays(struct mrun *r)
{
    kl_model *m = r->m;
    for (uint32_t i = 0; i < r->f->nparam; i++) {
        const kl_model_param *p = &r->in->param[i];
        const struct mtouch *t = &r->touch[i];
        if (r->f->param[i].use != KL_P_ARRAY || !p->given)
            continue;
        uint32_t es = kl_elems[r->f->param[i].elem].bytes;
        kl_model_array a = {.name = p->name, .param = i, .elem = r->f->param[i].elem, .whole = es};
        for (int32_t d = 0; d < p->rank; d++)
            a.whole *= p->ext[d] > 0 ? (uint64_t)p->ext[d] : 0;
        a.read = kl_model_scale(r, t->asked[0][0], t->asked[0][1]);
        a.written = kl_model_scale(r, t->asked[1][0], t->asked[1][1]);
        a.unique_read = unique(r, t, 0, es, a.whole, a.read);
        a.unique_written = unique(r, t, 1, es, a.whole, a.written);
        if (has_atomics(m, i))
            a.lines = lines_written(t, p->base, es);
        a.exact = m->counted == m->programs && !m->cut && !t->unknown[0] && !t->unknown[1] && !t->coarse[0] &&
                  !t->coarse[1];
        a.reuse = a.unique_read ? (double)a.read / (double)a.unique_read : 0;
        m->moved += a.unique_read + a.unique_written;
        kl_push(r->a, &m->array, a);
    }
}

/* ---- all of it ---- */

void kl_model_make(kl_model *m, const kl_model_in *in)
{
    const kl_fn *f = in->f;
    kl_arena *a = f->a;
    kl_ptx_trace *tr = kl_new(a, kl_ptx_trace);
    kl_ptx_opts o = *in->ptx;
    kl_buf text = {.a = a};
    memset(m, 0, sizeof *m);
    o.trace = tr;
    o.lines = true;
    kl_ptx_emit(&text, f, &o, &m->info);
    struct mrun *r = kl_new(a, struct mrun);
    *r = (struct mrun){.m = m, .in = in, .f = f, .a = a, .tr = tr, .doubts = {.a = a}};
    m->run = r;
    r->val = kl_new_n(a, struct mval, f->nins);
    r->touch = kl_new_n(a, struct mtouch, f->nparam + 1);
    r->maybe = kl_new_n(a, const char *, f->nins);
    r->most = kl_new_n(a, uint64_t, f->nins);
    for (uint32_t k = 0; k < 2; k++) {
        r->runs[k] = kl_new_n(a, uint64_t, f->nins);
        r->unsure_runs[k] = kl_new_n(a, uint64_t, f->nins);
    }
    make_accesses(r);
    kl_model_shared_begin(r);
    kl_model_slice(r);
    kl_model_programs(r, in->budget ? in->budget : BUDGET);
    end_accesses(r);
    end_tables(r);
    kl_model_shared_end(r);
    sort_lines(m);
    end_arrays(r);
    kl_model_work_of(r);
    kl_model_instructions(r);
    kl_model_passes_of(r);
    kl_model_dots(r);
    kl_model_narrow_of(r);
    const kl_model_work *w = &m->work;
    if (m->moved)
        m->intensity = (double)(w->fp16 + w->fp32 + w->fp64 + w->special) / (double)m->moved;
    m->edges = kl_model_scale(r, r->edges[0], r->edges[1]);
    m->exact = m->counted == m->programs && !m->doubt.n;
}
