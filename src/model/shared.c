/* shared.c - exchanges through shared memory.
 *
 * What one execution costs is in the trace, where addresses follow from the thread.  Extract, insert
 * and gather name elements by numbers that the program computes: if the model knows these, it
 * counts lane by lane what they lead to. */
#include "model/run.h"

void kl_model_shared_begin(struct mrun *r)
{
    r->shared = kl_new_n(r->a, struct mshared, r->tr->shared.n + 1);
    r->parts = kl_new_n(r->a, struct mshared *, r->f->nins);
    for (uint32_t i = 0; i < r->tr->shared.n; i++) {
        const kl_ptx_shared *rec = &r->tr->shared.v[i];
        struct mshared *s = &r->shared[i];
        s->rec = rec;
        if (rec->part && !rec->known) {
            s->next = r->parts[rec->at.id];
            r->parts[rec->at.id] = s;
        }
    }
}

/* Where the elements that an instruction names lie in its tile, dense and row-major. */
struct part {
    kl_val v;
    bool gather;
    uint32_t rank, axis; /* of the whole tile; gather: along which it goes */
    uint32_t dim[KL_MAX_RANK], pitch[KL_MAX_RANK];
    int64_t start[KL_MAX_RANK], step[KL_MAX_RANK];
    const struct kl_type *t; /* of the part */
    const uint64_t *index;
};

static bool part_of(const struct mrun *r, kl_val v, uint32_t bytes, struct part *p)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *whole = kl_type_of(f, kl_arg(f, v, 0));
    *p = (struct part){.v = v, .gather = in->op == KL_OP_gather, .rank = whole->rank};
    for (uint32_t d = whole->rank; d-- > 0; bytes *= whole->dim[d]) {
        p->dim[d] = whole->dim[d];
        p->pitch[d] = bytes;
    }
    if (p->gather) {
        kl_val i = kl_arg(f, v, 1);
        p->axis = (uint32_t)in->attr.index;
        p->index = r->val[i.id].v;
        p->t = kl_type_of(f, v);
        return kl_model_known(r, i);
    }
    p->t = kl_access_tile(f, v);
    for (uint32_t d = 0; d < whole->rank; d++) {
        kl_val s = kl_arg(f, v, 1 + d);
        if (!kl_model_known(r, s))
            return false;
        p->start[d] = kl_model_int(r, s);
        p->step[d] = kl_access_step(f, v, d);
    }
    return true;
}

/* Byte offset of the element with coordinates x of the part; false: it is outside. */
static bool offset(const struct part *p, const uint32_t *x, uint32_t *at)
{
    uint32_t axis = 0, n = 0;
    *at = 0;
    for (uint32_t d = 0; d < p->t->rank; d++)
        n = n * p->t->dim[d] + x[d];
    for (uint32_t d = 0; d < p->rank; d++) {
        uint64_t i;
        if (p->gather)
            i = d == p->axis ? p->index[n] : x[d];
        else
            i = (uint64_t)kl_model_add(p->start[d],
                                       p->step[d] ? kl_model_mul(p->step[d], x[axis++]) : 0);
        if (i >= p->dim[d])
            return false;
        *at += (uint32_t)i * p->pitch[d];
    }
    return true;
}

static void count(struct mrun *r, struct mshared *s, const struct part *p)
{
    const kl_layout *l = s->rec->l;
    uint32_t threads = 32 * r->tr->warps, nreg = l ? kl_layout_nreg(l) : 1;
    uint32_t copies = !s->rec->store ? 0 : l ? kl_layout_replicas(l) : UINT32_MAX;
    copies &= ~((1u << KL_LANE0) - 1) & kl_place(0, 31, r->tr->warps - 1, r->tr->ctas - 1);
    for (uint32_t cta = 0; cta < r->tr->ctas; cta++)
        for (uint32_t first = 0; first < threads; first += 32)
            for (uint32_t reg = 0; reg < nreg; reg++) {
                uint32_t addr[32], active = 0;
                for (uint32_t i = 0; i < 32; i++) {
                    uint32_t place = kl_place(reg, i, first / 32, cta), x[KL_MAX_RANK] = {0};
                    bool in = !(place & copies) && (!l || kl_layout_coords(l, place, x));
                    in = in && offset(p, x, &addr[i]);
                    active |= (uint32_t)in << i;
                }
                if (!active)
                    continue;
                kl_count c = kl_wavefronts(addr, active, s->rec->width);
                uint64_t lanes = (uint64_t)__builtin_popcount(active);
                kl_model_sum(&s->t[r->set], &(kl_model_traffic){1, lanes, lanes * s->rec->width,
                                                                c.units, c.ideal, c.units});
                s->worst = c.units > s->worst ? (uint32_t)c.units : s->worst;
            }
    r->work += (uint64_t)nreg * r->tr->warps * r->tr->ctas;
}

void kl_model_shared_run(struct mrun *r, kl_val v)
{
    for (struct mshared *s = r->parts[v.id]; s; s = s->next) {
        struct part p;
        if (part_of(r, v, s->rec->width, &p))
            count(r, s, &p);
        else
            s->unknown[r->set]++;
    }
}

/* ---- the end ---- */

static kl_model_shared made(struct mrun *r, const struct mshared *s)
{
    const kl_ptx_shared *rec = s->rec;
    const struct kl_ins *in = kl_in(r->f, rec->at);
    uint64_t n = kl_model_times(r, rec->at);
    uint64_t unsure =
        kl_model_scale(r, r->unsure_runs[0][rec->at.id], r->unsure_runs[1][rec->at.id]);
    uint64_t unknown = rec->known  ? 0
                       : rec->part ? kl_model_scale(r, s->unknown[0], s->unknown[1])
                                   : n;
    kl_model_shared o = {.at = rec->at,
                         .loc = in->loc,
                         .place = kl_model_place(r, in->loc),
                         .store = rec->store,
                         .push = rec->push,
                         .width = rec->width,
                         .runs = n,
                         .worst = rec->known ? rec->worst : s->worst,
                         .unknown = unknown > unsure ? unknown : unsure,
                         .why = unknown  ? "addresses in shared memory depend on data"
                                : unsure ? "it is executed as often as data say"
                                         : r->maybe[rec->at.id]};
    if (rec->known)
        o.t = (kl_model_traffic){n * rec->requests, n * rec->lanes, n * rec->lanes * rec->width,
                                 n * rec->units, n * rec->ideal, n * rec->units};
    else
        o.t = kl_model_scaled(r, s->t);
    o.exact = !o.why && r->m->counted == r->m->programs;
    if (unknown)
        kl_model_doubt_at(r, rec->at, o.why);
    return o;
}

void kl_model_shared_end(struct mrun *r)
{
    static const char *const how[KL_PTX_NHOW] = {"plain", "padded", "swizzled"};
    kl_model *m = r->m;
    for (uint32_t i = 0; i < r->tr->shared.n; i++) {
        const kl_ptx_shared *rec = &r->tr->shared.v[i];
        kl_model_shared o = made(r, &r->shared[i]);
        if (rec->plan) {
            const kl_ptx_plan *p = &r->tr->plan.v[rec->plan - 1];
            const uint64_t *w = rec->store ? p->st : p->ld;
            o.plain = o.runs * w[KL_PTX_PLAIN];
            o.padded = o.runs * w[KL_PTX_PADDED];
            o.swizzled = o.runs * w[KL_PTX_SWIZZLED];
            o.chosen = how[p->chosen];
        }
        kl_push(r->a, &m->shared, o);
        kl_model_line *l = kl_model_line_of(r, rec->file, rec->line);
        l->exact &= !o.why;
        kl_model_sum(rec->push ? &l->push : rec->store ? &l->sstore : &l->sload, &o.t);
        kl_model_sum(rec->push ? &m->push : rec->store ? &m->sstore : &m->sload, &o.t);
    }
    for (uint32_t i = 0; i < r->tr->barrier.n; i++) {
        const kl_ptx_barrier *b = &r->tr->barrier.v[i];
        m->barriers += kl_model_times(r, b->at) * b->n * r->tr->ctas;
    }
}
