/* json.c - reports as JSON, and reading one as a baseline.  docs/bench.md describes
 * "kiln.bench/1"; times are milliseconds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/json.h"
#include "cli/bench/peer.h"

/* ---- writing ---- */

static json_t *series(const struct kl_row *r, int w, bool samples)
{
    const struct kl_summary_stats *s = &r->stat[w];
    json_t *o = json_object();
    kl_json_set(o, "median", kl_json_number(s->median));
    kl_json_set(o, "ci", json_pack("[o, o]", kl_json_number(s->ci.lo), kl_json_number(s->ci.hi)));
    kl_json_set(o, "min", kl_json_number(s->min));
    kl_json_set(o, "p95", kl_json_number(s->p95));
    kl_json_set(o, "noise", kl_json_number(s->noise));
    kl_json_set(o, "samples", json_integer((json_int_t)s->n));
    kl_json_set(o, "dropped", json_integer((json_int_t)r->dropped[w]));
    kl_json_set(o, "stop", json_string(kl_stop_name(r->stop[w])));
    if (samples && s->sample) {
        json_t *a = json_array();
        for (size_t i = 0; i < s->n; i++)
            json_array_append_new(a, kl_json_number(s->sample[i]));
        kl_json_set(o, "sorted", a);
    }
    return o;
}

static json_t *versus(const struct kl_versus *v)
{
    return json_pack("{s:o, s:[o, o], s:s}", "ratio", kl_json_number(v->ratio), "ci",
                     kl_json_number(v->ci.lo), kl_json_number(v->ci.hi), "state",
                     kl_state_name(v->state));
}

/* What only a GPU has: elsewhere there is no such number. */
static json_t *of_gpu(const kiln_spec_info *i, int32_t n)
{
    return i->cta_threads ? json_integer(n) : json_null();
}

static json_t *code(const struct kl_row *r)
{
    const kiln_spec_info *i = &r->info;
    return json_pack("{s:[I, I, I], s:o, s:o, s:o, s:o, s:o, s:o}", "grid", (json_int_t)i->grid[0],
                     (json_int_t)i->grid[1], (json_int_t)i->grid[2], "threads",
                     of_gpu(i, (int32_t)i->cta_threads), "registers", of_gpu(i, (int32_t)i->registers),
                     "spill_bytes", of_gpu(i, (int32_t)i->local_bytes), "shared_bytes",
                     of_gpu(i, (int32_t)i->shared_bytes), "blocks_per_sm",
                     of_gpu(i, (int32_t)i->ctas_per_sm), "cluster", of_gpu(i, (int32_t)i->cluster));
}

static json_t *end_to_end(const struct kl_e2e *e)
{
    json_t *o = json_object();
    kl_json_set(o, "start", kl_json_number(e->start_ms));
    kl_json_set(o, "front_end", kl_json_number(e->front_ms));
    kl_json_set(o, "compile_cold", kl_json_number(e->cold_ms));
    kl_json_set(o, "compile_warm", kl_json_number(e->warm_ms));
    kl_json_set(o, "load", kl_json_number(e->load_ms));
    kl_json_set(o, "to_device", kl_json_number(e->up_ms));
    kl_json_set(o, "first_launch", kl_json_number(e->first_ms));
    kl_json_set(o, "launch", kl_json_number(e->kernel_ms));
    kl_json_set(o, "from_device", kl_json_number(e->down_ms));
    return o;
}

static json_t *row(const struct kl_row *r, bool samples)
{
    json_t *o = json_object();
    kl_json_set(o, "kernel", kl_json_text(r->kernel));
    kl_json_set(o, "setting", kl_json_text(r->setting ? r->setting : ""));
    kl_json_set(o, "shape", kl_json_text(r->shape ? r->shape : ""));
    kl_json_set(o, "point", kl_json_text(r->point ? r->point : ""));
    kl_json_set(o, "values", kl_json_some(r->values));
    kl_json_set(o, "device", kl_json_text(r->device));
    kl_json_set(o, "peer", json_boolean(r->peer));
    kl_json_set(o, "check", kl_json_some(r->check));
    kl_json_set(o, "note", kl_json_some(r->note));
    kl_json_set(o, "failed", json_boolean(r->failed));
    kl_json_set(o, "skipped", json_boolean(r->skipped));
    if (r->failed || r->skipped)
        return o;
    for (int w = 0; w < 2; w++)
        if (r->has[w])
            kl_json_set(o, w ? "warm" : "cold", series(r, w, samples));
    if (r->has[0]) {
        kl_json_set(o, "cold_by", kl_json_text(r->cold_by));
        kl_json_set(o, "copies", json_integer((json_int_t)r->copies));
    }
    kl_json_set(o, "clock",
                json_pack("[o, o]", r->clock[0] < 0 ? json_null() : kl_json_number(r->clock[0]),
                          r->clock[1] < 0 ? json_null() : kl_json_number(r->clock[1])));
    kl_json_set(o, "bytes", json_integer((json_int_t)r->bytes));
    kl_json_set(o, "flops", kl_json_above(r->flops));
    kl_json_set(o, "gbs", kl_json_number(r->gbs));
    kl_json_set(o, "gflops", r->flops > 0 ? kl_json_number(r->gflops) : json_null());
    kl_json_set(o, "copy_gbs", kl_json_above(r->copy_gbs));
    kl_json_set(o, "read_gbs", kl_json_above(r->read_gbs));
    kl_json_set(o, "copy_share", kl_json_above(r->of_copy));
    kl_json_set(o, "read_share", kl_json_above(r->of_read));
    kl_json_set(o, "launch_ns", kl_json_above(r->launch_ns));
    kl_json_set(o, "vs", r->has_vs ? versus(&r->vs) : json_null());
    kl_json_set(o, "baseline", r->has_base ? versus(&r->base) : json_null());
    if (!r->peer)
        kl_json_set(o, "code", code(r));
    if (r->e2e.done)
        kl_json_set(o, "end_to_end", end_to_end(&r->e2e));
    return o;
}

/* Least and most of all cases. */
static json_t *range(const struct kl_ceiling *c)
{
    return c->most > 0
               ? json_pack("[o, o]", kl_json_number(c->least), kl_json_number(c->most))
               : json_null();
}

static json_t *device(const struct kl_bdev *d)
{
    const kiln_device_info *i = kiln_context_device_info(d->s.ctx);
    json_t *o = json_object();
    kl_json_set(o, "device", kl_json_text(d->label));
    kl_json_set(o, "name", kl_json_text(i->name));
    kl_json_set(o, "threads", json_integer((json_int_t)kiln_context_threads(d->s.ctx)));
    kl_json_set(o, "multiprocessors", json_integer(d->cuda ? i->sms : 0));
    kl_json_set(o, "driver", json_integer(i->driver));
    kl_json_set(o, "driver_version", kl_json_some(d->watch.driver));
    kl_json_set(o, "cache_bytes", json_integer((json_int_t)d->cache_bytes));
    kl_json_set(o, "copy_gbs", range(&d->ceiling[0]));
    kl_json_set(o, "read_gbs", range(&d->ceiling[1]));
    kl_json_set(o, "empty_launch_ns", kl_json_number(d->empty_ns));
    kl_json_set(o, "full_mhz", kl_json_above(d->watch.full_mhz));
    kl_json_set(o, "governor", kl_json_some(d->watch.governor));
    kl_json_set(o, "turbo", kl_json_some(d->watch.turbo));
    kl_json_set(o, "throttle", kl_json_text(d->watch.throttle_known ? d->watch.throttle : NULL));
    return o;
}

char *kl_report_json(const struct kl_report *r, bool samples)
{
    json_t *root = json_object(), *devices = json_array(), *rows = json_array();
    json_t *notes = json_array();
    unsigned v = kiln_version();
    char version[40];
    snprintf(version, sizeof version, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
    kl_json_set(root, "schema", json_string("kiln.bench/1"));
    kl_json_set(root, "kiln", json_string(version));
    kl_json_set(root, "build", json_string(kiln_build_id()));
    for (size_t i = 0; i < r->ndev; i++)
        json_array_append_new(devices, device(&r->dev[i]));
    for (size_t i = 0; i < r->nrow; i++)
        json_array_append_new(rows, row(&r->row[i], samples));
    for (size_t i = 0; i < r->nnote; i++)
        json_array_append_new(notes, kl_json_text(r->note[i]));
    json_t *peers = json_array();
    for (size_t i = 0; i < r->npeer; i++) {
        json_t *peer = json_object();
        kl_json_set(peer, "file", kl_json_text(r->peer[i].path));
        kl_json_set(peer, "name", kl_json_some(r->peer[i].name));
        kl_json_set(peer, "version", kl_json_some(r->peer[i].version));
        json_array_append_new(peers, peer);
    }
    kl_json_set(root, "devices", devices);
    kl_json_set(root, "peers", peers);
    kl_json_set(root, "vs", kl_json_some(r->vs_name));
    kl_json_set(root, "baseline", kl_json_some(r->base_name));
    kl_json_set(root, "fail_on", r->fail_on >= 0 ? kl_json_number(r->fail_on) : json_null());
    kl_json_set(root, "regressed", json_integer((json_int_t)r->regressed));
    kl_json_set(root, "failed", json_integer((json_int_t)r->failed));
    kl_json_set(root, "unmatched", json_integer((json_int_t)r->unmatched));
    kl_json_set(root, "notes", notes);
    kl_json_set(root, "rows", rows);
    char *text = kl_json_dump(root, 9), *out;
    out = kl_xprintf("%s\n", text ? text : "{}");
    free(text);
    return out;
}

/* ---- reading ---- */

static bool is_time(const json_t *v)
{
    double t = json_number_value(v);
    return json_is_number(v) && t > 0 && isfinite(t);
}

/* What is wrong with the times of a row, or NULL.  Without them the row has none of that kind. */
static const char *wrong_times(const json_t *s)
{
    const json_t *ci = json_object_get(s, "ci"), *list = json_object_get(s, "sorted"), *v;
    size_t i;
    if (!s || json_is_null(s))
        return NULL;
    if (!json_is_object(s))
        return "that is no object";
    if (!is_time(json_object_get(s, "median")) || !is_time(json_object_get(s, "min")))
        return "without a median or min above 0";
    if (json_array_size(ci) != 2 || !is_time(json_array_get(ci, 0)) ||
        !is_time(json_array_get(ci, 1)))
        return "without a `ci` of two times";
    if (json_integer_value(json_object_get(s, "samples")) < 1)
        return "without a number of samples";
    if (list && !json_array_size(list))
        return "with `sorted` that is no list of times";
    json_array_foreach(list, i, v)
    {
        if (!is_time(v))
            return "with a sample that is no time above 0";
    }
    return NULL;
}

static bool check_rows(const json_t *rows, const char *path, struct kl_msg *m)
{
    static const char *const words[] = {"kernel", "setting", "shape", "point", "device"};
    static const char *const kinds[] = {"cold", "warm"};
    const json_t *o;
    size_t i;
    json_array_foreach(rows, i, o)
    {
        if (!json_is_object(o))
            return kl_msg(m, KL_RC_USAGE, "--baseline %s: row %zu is no object", path, i + 1);
        for (size_t k = 0; k < 5; k++)
            if (!json_is_string(json_object_get(o, words[k])))
                return kl_msg(m, KL_RC_USAGE, "--baseline %s: row %zu has no `%s`", path,
                              i + 1, words[k]);
        for (size_t k = 0; k < 2; k++) {
            const char *why = wrong_times(json_object_get(o, kinds[k]));
            if (why)
                return kl_msg(m, KL_RC_USAGE, "--baseline %s: row %zu has `%s` %s", path, i + 1,
                              kinds[k], why);
        }
    }
    return true;
}

bool kl_baseline_open(struct kl_baseline *b, const char *path, struct kl_msg *m)
{
    json_error_t e;
    *b = (struct kl_baseline){0};
    json_t *root = json_load_file(path, 0, &e);
    if (!root)
        return kl_msg(m, KL_RC_USAGE, "--baseline %s: %s", path, e.text);
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (!schema || strcmp(schema, "kiln.bench/1") != 0) {
        json_decref(root);
        return kl_msg(m, KL_RC_USAGE,
                      "--baseline %s: it is no report of kiln bench (its schema is "
                      "not kiln.bench/1)",
                      path);
    }
    if (!json_is_array(json_object_get(root, "rows"))) {
        json_decref(root);
        return kl_msg(m, KL_RC_USAGE, "--baseline %s: the report has no list of `rows`", path);
    }
    if (!check_rows(json_object_get(root, "rows"), path, m)) {
        json_decref(root);
        return false;
    }
    b->root = root;
    b->path = kl_xstrndup(path, strlen(path));
    return true;
}

static bool is(const json_t *o, const char *key, const char *want)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s && strcmp(s, want ? want : "") == 0;
}

static json_t *row_of(const struct kl_baseline *b, const struct kl_row *r, const char *kind)
{
    json_t *rows = json_object_get(b->root, "rows"), *o;
    size_t i;
    json_array_foreach(rows, i, o)
    {
        if (json_object_get(o, kind) && is(o, "kernel", r->kernel) &&
            is(o, "setting", r->setting) && is(o, "shape", r->shape) && is(o, "point", r->point) &&
            is(o, "device", r->device))
            return o;
    }
    return NULL;
}

bool kl_baseline_find(const struct kl_baseline *b, const struct kl_row *r, int warm,
                      struct kl_summary_stats *out, double **samples)
{
    const char *kind = warm ? "warm" : "cold";
    json_t *s = json_object_get(row_of(b, r, kind), kind);
    json_t *ci = json_object_get(s, "ci"), *list = json_object_get(s, "sorted");
    *samples = NULL;
    if (!s)
        return false;
    *out = (struct kl_summary_stats){
        .median = json_number_value(json_object_get(s, "median")),
        .min = json_number_value(json_object_get(s, "min")),
        .ci = {json_number_value(json_array_get(ci, 0)), json_number_value(json_array_get(ci, 1))},
        .n = (size_t)json_integer_value(json_object_get(s, "samples"))};
    if (json_array_size(list)) {
        out->n = json_array_size(list);
        *samples = kl_xalloc(out->n * sizeof **samples);
        for (size_t k = 0; k < out->n; k++)
            (*samples)[k] = json_number_value(json_array_get(list, k));
        kl_stats_summarize(*samples, out->n, out);
    }
    return out->n > 0 && out->median > 0;
}

/* A copy that moved by more than this between the runs: so may everything else. */
#define MOVED 0.05

char *kl_baseline_doubt(const struct kl_baseline *b, const struct kl_row *r,
                        const struct kl_bdev *d)
{
    const char *now = kiln_context_device_info(d->s.ctx)->name, *then = NULL;
    json_t *devices = json_object_get(b->root, "devices"), *o;
    size_t i;
    json_array_foreach(devices, i, o)
    {
        if (is(o, "device", r->device))
            then = json_string_value(json_object_get(o, "name"));
    }
    if (then && strcmp(then, now) != 0)
        return kl_xprintf("%s was measured on %.80s, and this is %s: ratios to it compare machines",
                          b->path, then, now);
    const char *kind = r->has[0] ? "cold" : "warm";
    double was = json_number_value(json_object_get(row_of(b, r, kind), "copy_gbs"));
    if (was > 0 && r->copy_gbs > 0 && fabs(r->copy_gbs / was - 1) > MOVED)
        return kl_xprintf("beside %s %s the copy reaches %.4g GB/s, in %s it was %.4g: the machine "
                          "is another one than then; --vs measures both in turn",
                          r->kernel, r->shape, r->copy_gbs, b->path, was);
    return NULL;
}

void kl_baseline_close(struct kl_baseline *b)
{
    json_decref(b->root);
    free(b->path);
    *b = (struct kl_baseline){0};
}
