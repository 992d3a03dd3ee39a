/* json.c - `kiln explain --format json`: schema kiln.explain/1, which docs/explain.md has key
 * by key. */
#include <string.h>

#include "cli/explain/cmd.h"
#include "cli/json.h"

static json_t *count(uint64_t v)
{
    return kl_json_count(v);
}

/* A figure that may be unknown. */
static json_t *rate(double v)
{
    return kl_json_above(v);
}

static json_t *ints(const int64_t *v, int32_t n)
{
    json_t *j = json_array();
    for (int32_t i = 0; i < n; i++)
        json_array_append_new(j, json_integer(v[i]));
    return j;
}

static void put(json_t *j, const char *key, json_t *v)
{
    kl_json_set(j, key, v);
}

/* ---- the launch ---- */

static void launch(json_t *j, const kl_explained *e)
{
    json_t *constants = json_object(), *arrays = json_array();
    put(j, "kernel", kl_json_text(e->kernel));
    put(j, "file", kl_json_text(e->place.file));
    put(j, "line", json_integer(e->place.line));
    put(j, "arch", json_sprintf("sm_%u", e->arch));
    put(j, "ptx", kl_json_text(e->ptx_version));
    put(j, "grid", ints(e->grid, 3));
    put(j, "programs", count(e->programs));
    put(j, "blocks", count(e->ctas));
    put(j, "threads", json_integer(e->info.threads));
    put(j, "warps", json_integer((e->info.threads + 31) / 32));
    put(j, "cluster", json_integer(e->info.cluster));
    put(j, "swizzle", json_boolean(!e->no_swizzle));
    put(j, "facts", json_pack("{s:b, s:b}", "v16", e->v16, "i32", e->i32));
    for (uint32_t i = 0; i < e->nconstant; i++)
        put(constants, e->constant[i].name, kl_json_text(e->constant[i].value));
    put(j, "constants", constants);
    for (uint32_t i = 0; i < e->narray; i++) {
        const kl_explain_array *a = &e->array[i];
        json_array_append_new(
            arrays, json_pack("{s:o, s:s, s:o, s:o, s:b, s:b, s:o}", "name", kl_json_text(a->name),
                              "type", kl_elems[a->elem].name, "shape", ints(a->shape, a->rank),
                              "strides", ints(a->strides, a->rank), "read", a->reads, "written",
                              a->writes, "bytes", count(a->bytes)));
    }
    put(j, "arrays", arrays);
}

static json_t *gpu(const kl_chip *c)
{
    if (!c)
        return json_null();
    json_t *j = json_object();
    put(j, "name", kl_json_text(c->name));
    put(j, "capability", json_sprintf("%u.%u", c->cc / 10, c->cc % 10));
    put(j, "sms", json_integer(c->sms));
    put(j, "clock_mhz", rate(c->clock));
    put(j, "memory_gbs", rate(c->memory));
    put(j, "l2_mib", rate(c->l2));
    put(j, "fp32_tflops", rate(kl_chip_peak(c, KL_PEAK_FP32)));
    put(j, "fp64_tflops", rate(kl_chip_peak(c, KL_PEAK_FP64)));
    put(j, "fp16_tflops", rate(kl_chip_peak(c, KL_PEAK_FP16)));
    put(j, "tensor16_tflops", rate(c->t16));
    put(j, "tensor32_tflops", rate(c->t32));
    put(j, "tensor8_tflops", rate(c->t8));
    put(j, "label", kl_json_text(c->label));
    put(j, "source", kl_json_text(c->source));
    put(j, "copy_gbs", rate(c->copy));
    put(j, "copy_share", rate(c->memory > 0 ? c->copy / c->memory : 0));
    put(j, "latency_ns", rate(c->latency));
    put(j, "unloaded_ns", rate(c->unloaded));
    put(j, "l2_read_gbs", rate(c->l2_read));
    put(j, "read_gbs", rate(c->read));
    put(j, "read_share", rate(c->memory > 0 ? c->read / c->memory : 0));
    put(j, "measured", kl_json_text(c->measured));
    return j;
}

/* ---- resources ---- */

static json_t *registers(const kl_regs *r)
{
    static const char *const from[] = {NULL, "ptxas", "driver"};
    json_t *j = json_object();
    bool ptxas = r->from == KL_REGS_PTXAS, known = r->from != KL_REGS_NONE;
    put(j, "from", kl_json_text(from[r->from]));
    put(j, "why", kl_json_text(r->why));
    put(j, "registers", known ? json_integer(r->registers) : json_null());
    put(j, "spill_store_bytes", ptxas ? json_integer(r->spill_stores) : json_null());
    put(j, "spill_load_bytes", ptxas ? json_integer(r->spill_loads) : json_null());
    put(j, "local_bytes", known ? json_integer(r->stack) : json_null());
    return j;
}

static json_t *limit(uint32_t v)
{
    return v == KL_UNLIMITED ? json_null() : json_integer(v);
}

static json_t *occupancy(const kl_explained *e)
{
    static const char *const name[] = {"warps", "registers", "shared", "blocks", "barriers"};
    if (!e->has_sm || !e->has_occ)
        return json_null();
    json_t *j = json_object(), *limits = json_object(), *by = json_array();
    put(j, "blocks", json_integer(e->occ.blocks));
    put(j, "warps", json_integer(e->occ.warps));
    put(j, "warps_most", json_integer(e->sm.warps));
    put(j, "share", json_real(e->occ.share));
    for (int i = 0; i < KL_NLIMIT; i++) {
        put(limits, name[i], limit(e->occ.limit[i]));
        if (e->occ.limiter & 1u << i)
            json_array_append_new(by, json_string(name[i]));
    }
    put(j, "limits", limits);
    put(j, "limited_by", by);
    put(j, "driver_blocks", e->regs.blocks ? json_integer(e->regs.blocks) : json_null());
    put(j, "simplified",
        e->regs.from == KL_REGS_NONE
            ? json_null()
            : json_pack("{s:i, s:i, s:f}", "blocks", (int)e->simple.blocks, "warps",
                        (int)e->simple.warps, "share", e->simple.share));
    return j;
}

static json_t *rungs(const kl_explained *e, enum kl_limit of)
{
    kl_rung r[KL_RUNGS];
    uint32_t n = kl_occ_ladder(&e->sm, &e->block, of, r);
    json_t *j = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(j, json_pack("{s:I, s:I, s:I}", "from", (json_int_t)r[i].first, "to",
                                           (json_int_t)r[i].last, "blocks",
                                           (json_int_t)r[i].blocks));
    return j;
}

static json_t *ladder(const kl_explained *e)
{
    if (!e->has_sm)
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "registers", rungs(e, KL_LIMIT_REGISTERS), "shared",
                     e->has_occ ? rungs(e, KL_LIMIT_SHARED) : json_null(), "threads",
                     e->has_occ ? rungs(e, KL_LIMIT_WARPS) : json_null());
}

static json_t *waves(const kl_explained *e)
{
    const kl_waves *w = &e->waves;
    if (!w->slots)
        return json_null();
    return json_pack("{s:f, s:o, s:o, s:o, s:f, s:f, s:o}", "waves", w->waves, "blocks_per_wave",
                     count(w->slots), "full", count(w->whole), "last_blocks", count(w->rest),
                     "efficiency", w->efficiency, "tail_most", w->tail,
                     "tail", e->tail.known ? json_real(e->tail.gain) : json_null());
}

static void resources(json_t *j, const kl_explained *e)
{
    put(j, "shared", json_pack("{s:I, s:I, s:o}", "static_bytes", (json_int_t)e->info.shared,
                               "dynamic_bytes", (json_int_t)e->info.dynamic, "reserved_bytes",
                               e->has_sm ? json_integer(e->sm.reserved) : json_null()));
    put(j, "registers", registers(&e->regs));
    put(j, "occupancy", occupancy(e));
    put(j, "ladder", ladder(e));
    put(j, "waves", waves(e));
}

/* ---- traffic and work ---- */

static json_t *floors(const kl_explained *e)
{
    json_t *j = json_array();
    const kl_chip *c = e->chip;
    bool writes = false;
    for (uint32_t i = 0; i < e->narray; i++)
        writes |= e->array[i].writes;
    const struct {
        const char *from;
        double gbs;
    } f[] = {{c ? c->label : "", c ? c->memory : 0},
             {"measured copy", c ? c->copy : 0},
             {"measured read", c && !writes ? c->read : 0}};
    for (size_t i = 0; i < sizeof f / sizeof *f; i++)
        if (f[i].gbs > 0 && e->bytes > 0)
            json_array_append_new(j, json_pack("{s:s, s:f, s:f}", "from", f[i].from, "gbs",
                                               f[i].gbs, "us", kl_floor_us(e->bytes, f[i].gbs)));
    return j;
}

static json_t *moved(const kl_model_traffic *t)
{
    json_t *j = json_object();
    put(j, "requests", count(t->requests));
    put(j, "lanes", count(t->lanes));
    put(j, "bytes", count(t->bytes));
    put(j, "units", count(t->units));
    put(j, "ideal", count(t->ideal));
    return j;
}

static void unit_rates(json_t *j, const char *unit, const kl_model_traffic *t)
{
    char key[64];
    double n = (double)t->requests;
    snprintf(key, sizeof key, "%s_per_request", unit);
    put(j, key, t->requests ? json_real((double)t->units / n) : json_null());
    snprintf(key, sizeof key, "ideal_%s_per_request", unit);
    put(j, key, t->requests ? json_real((double)t->ideal / n) : json_null());
}

static json_t *access_of(const kl_model_access *a)
{
    static const char *const dir[] = {"load", "store", "atomic"};
    json_t *j = json_object();
    put(j, "line", json_integer(a->place.line));
    put(j, "place", kl_json_place(&a->place));
    put(j, "kind", json_string(dir[a->dir]));
    put(j, "array", kl_json_text(a->name));
    put(j, "lane_bytes", json_integer(a->width));
    put(j, "narrow", a->narrow ? json_string(kl_narrow_text(a->narrow)) : json_null());
    put(j, "missing", kl_json_text(a->fact));
    put(j, "contiguous", json_boolean(a->contiguous));
    put(j, "lane_step_bytes", json_integer(a->lane_bytes));
    put(j, "pitch_bytes", json_integer(a->pitch));
    put(j, "masked", json_boolean(a->masked));
    put(j, "exact", json_boolean(a->exact));
    put(j, "why", kl_json_text(a->why));
    put(j, "first", kl_json_text(a->first));
    put(j, "traffic", moved(&a->t));
    put(j, "apart", count(a->t.apart));
    unit_rates(j, "sectors", &a->t);
    return j;
}

static json_t *shared_of(const kl_model_shared *s)
{
    json_t *j = json_object();
    put(j, "line", json_integer(s->place.line));
    put(j, "place", kl_json_place(&s->place));
    put(j, "kind", json_string(s->push ? "cluster store" : s->store ? "store" : "load"));
    put(j, "lane_bytes", json_integer(s->width));
    put(j, "exact", json_boolean(s->exact));
    put(j, "traffic", moved(&s->t));
    unit_rates(j, "wavefronts", &s->t);
    put(j, "chosen", kl_json_text(s->chosen));
    put(j, "plain_wavefronts", s->chosen ? count(s->plain) : json_null());
    put(j, "padded_wavefronts", s->chosen ? count(s->padded) : json_null());
    put(j, "swizzled_wavefronts", s->chosen ? count(s->swizzled) : json_null());
    return j;
}

static json_t *busy_of(const kl_explained *e)
{
    static const char *const key[KL_NBUSY] = {"memory_us", "l2_us", "shared_us", "instructions_us"};
    if (!e->has_times)
        return json_null();
    json_t *j = json_object();
    for (int i = 0; i < KL_NBUSY; i++)
        put(j, key[i], json_real(e->times.us[i]));
    put(j, "l2_gbs", rate(kl_l2_rate(e->chip)));
    enum kl_busy longest;
    kl_times_most(&e->times, &longest);
    put(j, "longest", json_string(kl_busy_name[longest]));
    return j;
}

static json_t *line_of(const kl_model_line *l)
{
    json_t *j = json_object();
    put(j, "file", kl_json_text(l->file));
    put(j, "line", json_integer(l->line));
    put(j, "global_load", moved(&l->gload));
    put(j, "global_store", moved(&l->gstore));
    put(j, "shared_load", moved(&l->sload));
    put(j, "shared_store", moved(&l->sstore));
    put(j, "cluster_store", moved(&l->push));
    put(j, "atomic", moved(&l->atomic));
    put(j, "exact", json_boolean(l->exact));
    return j;
}

static json_t *array_of(const kl_model_array *a)
{
    json_t *j = json_object();
    put(j, "name", kl_json_text(a->name));
    put(j, "bytes", count(a->whole));
    put(j, "read_bytes", count(a->read));
    put(j, "written_bytes", count(a->written));
    put(j, "unique_read_bytes", count(a->unique_read));
    put(j, "unique_written_bytes", count(a->unique_written));
    put(j, "reuse", rate(a->reuse));
    put(j, "exact", json_boolean(a->exact));
    return j;
}

static json_t *dot_of(const kl_model_dot *d)
{
    json_t *j = json_object();
    put(j, "line", json_integer(d->place.line));
    put(j, "m", json_integer(d->m));
    put(j, "n", json_integer(d->n));
    put(j, "k", json_integer(d->k));
    put(j, "type", json_string(kl_elems[d->elem].name));
    put(j, "sum_type", json_string(kl_elems[d->acc].name));
    put(j, "tensor", json_boolean(d->tensor));
    put(j, "missing", kl_json_text(d->miss));
    return j;
}

#define LIST(j, key, vec, fn)                                                                      \
    do {                                                                                           \
        json_t *list_ = json_array();                                                              \
        for (uint32_t i_ = 0; i_ < (vec).n; i_++)                                                  \
            json_array_append_new(list_, fn(&(vec).v[i_]));                                        \
        put(j, key, list_);                                                                        \
    } while (0)

static json_t *doubt_of(const kl_model_doubt *d)
{
    return json_pack("{s:I, s:o, s:o}", "line", (json_int_t)d->place.line, "text",
                     kl_json_text(d->text), "count", count(d->count));
}

static json_t *model(const kl_model *m)
{
    if (!m)
        return json_null();
    json_t *j = json_object(), *work = json_object();
    put(j, "exact", json_boolean(m->exact));
    put(j, "programs", count(m->programs));
    put(j, "programs_counted", count(m->counted));
    put(j, "global_load", moved(&m->gload));
    put(j, "global_store", moved(&m->gstore));
    put(j, "shared_load", moved(&m->sload));
    put(j, "shared_store", moved(&m->sstore));
    put(j, "cluster_store", moved(&m->push));
    put(j, "instructions", count(m->instructions));
    put(j, "atomic", moved(&m->atomic));
    put(j, "barriers", count(m->barriers));
    put(work, "fp16", count(m->work.fp16));
    put(work, "fp32", count(m->work.fp32));
    put(work, "fp64", count(m->work.fp64));
    put(work, "special", count(m->work.special));
    put(work, "integer", count(m->work.integer));
    put(work, "dot", count(m->work.dot));
    put(j, "work", work);
    put(j, "passes", json_pack("{s:I, s:o, s:o, s:f}", "count", (json_int_t)m->passes.n, "bytes",
                               count(m->passes.read + m->passes.written), "fused_bytes",
                               count(m->passes.fused), "ratio", m->passes.ratio));
    LIST(j, "arrays", m->array, array_of);
    LIST(j, "accesses", m->access, access_of);
    LIST(j, "shared", m->shared, shared_of);
    LIST(j, "lines", m->line, line_of);
    LIST(j, "dots", m->dot, dot_of);
    LIST(j, "unknown", m->doubt, doubt_of);
    return j;
}

/* ---- counts of the executor ---- */

static json_t *counted(const kl_sim_traffic *t)
{
    json_t *j = json_object();
    put(j, "requests", count(t->requests));
    put(j, "bytes", count(t->bytes));
    put(j, "units", count(t->parts));
    put(j, "ideal", count(t->ideal));
    return j;
}

static json_t *executor(const kl_sim_counts *c)
{
    if (!c)
        return json_null();
    json_t *j = json_object(), *lines = json_array(), *kinds = json_object();
    put(j, "blocks", count(c->ctas));
    put(j, "warps", count(c->warps));
    for (int i = 0; i < KL_SIM_NKIND; i++)
        if (c->instructions[i])
            put(kinds, kl_sim_kind_text[i], count(c->instructions[i]));
    put(j, "instructions", kinds);
    put(j, "branches", count(c->branches));
    put(j, "divergent", count(c->divergent));
    put(j, "barriers", count(c->barriers));
    put(j, "global_load", counted(&c->gload));
    put(j, "global_store", counted(&c->gstore));
    put(j, "shared_load", counted(&c->sload));
    put(j, "shared_store", counted(&c->sstore));
    put(j, "cluster_store", counted(&c->push));
    put(j, "atomic", counted(&c->atomic));
    for (uint32_t i = 0; i < c->nline; i++) {
        const kl_sim_line *l = &c->line[i];
        json_t *o = json_object();
        put(o, "file", kl_json_text(l->file));
        put(o, "line", json_integer(l->line));
        put(o, "instructions", count(l->instructions));
        put(o, "divergent", count(l->divergent));
        put(o, "global_load", counted(&l->gload));
        put(o, "global_store", counted(&l->gstore));
        put(o, "shared_load", counted(&l->sload));
        put(o, "shared_store", counted(&l->sstore));
        put(o, "cluster_store", counted(&l->push));
        put(o, "atomic", counted(&l->atomic));
        json_array_append_new(lines, o);
    }
    put(j, "lines", lines);
    return j;
}

json_t *kl_explain_json(const kl_explained *e, const kiln_diags *notes)
{
    json_t *j = json_object(), *list = json_array();
    launch(j, e);
    put(j, "gpu", gpu(e->chip));
    put(j, "moved_bytes", json_integer((json_int_t)e->bytes));
    put(j, "flop", json_integer((json_int_t)e->flop));
    put(j, "intensity", e->bytes > 0 && e->model ? json_real(e->flop / e->bytes) : json_null());
    put(j, "roofline",
        e->has_roof && e->model
            ? json_pack("{s:f, s:f, s:s, s:f, s:s}", "ridge", e->roof.ridge, "peak_tflops", e->peak,
                        "peak_of", e->peak_of, "attainable_tflops", e->roof.most, "bound",
                        e->roof.memory ? "memory" : "compute")
            : json_null());
    put(j, "floors", floors(e));
    put(j, "busy", busy_of(e));
    resources(j, e);
    put(j, "model", model(e->model));
    put(j, "executor", executor(e->counts));
    for (size_t i = 0; i < kiln_diags_count(notes); i++)
        json_array_append_new(list, kl_json_diag(kiln_diags_at(notes, i)));
    put(j, "notes", list);
    return j;
}
