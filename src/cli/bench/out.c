/* out.c - reports as text, markdown and CSV.  One list of columns serves all three; a column
 * that says nothing in any row is left out of text and markdown. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/peer.h"
#include "tool.h"

/* ---- a text that grows ---- */

struct text {
    char *s;
    size_t n, room;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (t->n + (size_t)n + 1 > t->room) {
        size_t room = 2 * (t->n + (size_t)n + 1);
        char *more = kl_xalloc(room);
        if (t->n)
            memcpy(more, t->s, t->n);
        free(t->s);
        t->s = more;
        t->room = room;
    }
    va_start(ap, fmt);
    vsnprintf(t->s + t->n, t->room - t->n, fmt, ap);
    va_end(ap);
    t->n += (size_t)n;
}

char *kl_time_text(double ms, char buf[32])
{
    double ns = ms * 1e6;
    if (!isfinite(ms))
        snprintf(buf, 32, "-");
    else if (ns < 1e3)
        snprintf(buf, 32, "%.0f ns", ns);
    else if (ns < 1e6)
        snprintf(buf, 32, ns < 1e4 ? "%.2f us" : ns < 1e5 ? "%.1f us" : "%.0f us", ns / 1e3);
    else if (ns < 1e9)
        snprintf(buf, 32, ns < 1e7 ? "%.2f ms" : ns < 1e8 ? "%.1f ms" : "%.0f ms", ns / 1e6);
    else
        snprintf(buf, 32, "%.2f s", ns / 1e9);
    return buf;
}

/* ---- cells ---- */

typedef void cell_fn(const struct kl_report *p, const struct kl_row *r, char *out, size_t n);

static int main_series(const struct kl_row *r)
{
    return r->has[0] ? 0 : 1;
}

#define CELL(name)                                                                                 \
    static void name(const struct kl_report *p, const struct kl_row *r, char *out, size_t n)
#define BEGIN                                                                                      \
    const struct kl_summary_stats *s = &r->stat[main_series(r)];                                   \
    (void)s;                                                                                       \
    (void)p

CELL(c_kernel)
{
    (void)p;
    snprintf(out, n, "%s%s%s", r->kernel, r->setting && *r->setting ? " " : "",
             r->setting ? r->setting : "");
}
CELL(c_shape)
{
    (void)p;
    snprintf(out, n, "%s", r->shape ? r->shape : "");
}
CELL(c_point)
{
    (void)p;
    snprintf(out, n, "%s", r->point ? r->point : "");
}
CELL(c_device)
{
    bool several = false;
    for (size_t i = 1; i < p->nrow; i++)
        several |= strcmp(p->row[i].device, p->row[0].device) != 0;
    snprintf(out, n, "%s", several ? r->device : "");
}
CELL(c_median)
{
    BEGIN;
    char b[32];
    snprintf(out, n, "%s", kl_time_text(s->median, b));
}
CELL(c_ci)
{
    BEGIN;
    char a[32], b[32];
    kl_time_text(s->ci.lo, a);
    kl_time_text(s->ci.hi, b);
    char *unit = strchr(a, ' ');
    if (unit && strcmp(unit, strchr(b, ' ') ? strchr(b, ' ') : "") == 0)
        *unit = 0;
    snprintf(out, n, "[%s, %s]", a, b);
}
CELL(c_noise)
{
    BEGIN;
    snprintf(out, n, "%.1f%%", s->noise * 100);
}
CELL(c_min)
{
    BEGIN;
    char b[32];
    snprintf(out, n, "%s", kl_time_text(s->min, b));
}
CELL(c_p95)
{
    BEGIN;
    char b[32];
    snprintf(out, n, "%s", kl_time_text(s->p95, b));
}
CELL(c_n)
{
    static const char *const mark[] = {"", "", "t", "", ""};
    BEGIN;
    snprintf(out, n, "%zu%s", s->n, mark[r->stop[main_series(r)]]);
}
CELL(c_gbs)
{
    (void)p;
    snprintf(out, n, r->gbs < 100 ? "%.2f" : "%.0f", r->gbs);
}
CELL(c_gflops)
{
    (void)p;
    if (r->flops > 0)
        snprintf(out, n, "%.1f", r->gflops);
}
CELL(c_copy)
{
    (void)p;
    if (r->of_copy > 0)
        snprintf(out, n, "%.0f%%", r->of_copy * 100);
}
CELL(c_read)
{
    (void)p;
    if (r->of_read > 0)
        snprintf(out, n, "%.0f%%", r->of_read * 100);
}
CELL(c_warm)
{
    char b[32];
    (void)p;
    if (r->has[0] && r->has[1])
        snprintf(out, n, "%s", kl_time_text(r->stat[1].median, b));
}
CELL(c_launch)
{
    char b[32];
    (void)p;
    if (r->launch_ns > 0)
        snprintf(out, n, "%s", kl_time_text(r->launch_ns * 1e-6, b));
}
static void versus(const struct kl_versus *v, char *out, size_t n)
{
    if (v->state == KL_STATE_UNKNOWN)
        snprintf(out, n, "????");
    else
        snprintf(out, n, "%.2fx [%.2f, %.2f] %s", v->ratio, v->ci.lo, v->ci.hi,
                 kl_state_name(v->state));
}
CELL(c_vs)
{
    (void)p;
    if (r->has_vs)
        versus(&r->vs, out, n);
}
CELL(c_base)
{
    (void)p;
    if (r->has_base)
        versus(&r->base, out, n);
}

static const struct column {
    const char *head;
    cell_fn *cell;
    bool left, label; /* label: shown for rows without times, too */
} columns[] = {
    {"kernel", c_kernel, true, true},   {"shape", c_shape, true, true},
    {"at", c_point, true, true},        {"device", c_device, true, true},
    {"median", c_median, false, false}, {"95% CI", c_ci, false, false},
    {"noise", c_noise, false, false},   {"min", c_min, false, false},
    {"p95", c_p95, false, false},       {"n", c_n, false, false},
    {"GB/s", c_gbs, false, false},      {"GFLOP/s", c_gflops, false, false},
    {"% copy", c_copy, false, false},   {"% read", c_read, false, false},
    {"warm", c_warm, false, false},     {"launch", c_launch, false, false},
    {"vs", c_vs, true, false},          {"baseline", c_base, true, false},
};
enum { NCOL = sizeof columns / sizeof *columns, CELL_MOST = 160 };

static bool timed(const struct kl_row *r)
{
    return !r->failed && !r->skipped;
}

static void head_of(const struct kl_report *p, size_t c, char *out, size_t n)
{
    if (columns[c].cell == c_vs && p->vs_name)
        snprintf(out, n, "vs %s", p->vs_name);
    else if (columns[c].cell == c_base && p->base_name)
        snprintf(out, n, "vs %s", p->base_name);
    else if (columns[c].cell == c_median)
        snprintf(out, n, "%s", p->cold ? "cold" : "warm");
    else
        snprintf(out, n, "%s", columns[c].head);
}

static void cell_of(const struct kl_report *p, const struct kl_row *r, size_t c, char *out)
{
    out[0] = 0;
    if (timed(r) || columns[c].label)
        columns[c].cell(p, r, out, CELL_MOST);
}

/* ---- text and markdown ---- */

/* Columns that go first where a terminal is narrow. */
static cell_fn *const lesser[] = {c_p95, c_noise, c_n, c_launch, c_read, c_min, c_warm, c_ci};

static size_t total(const size_t *width)
{
    size_t n = 0;
    for (size_t c = 0; c < NCOL; c++)
        n += width[c] ? width[c] + 2 : 0;
    return n ? n - 2 : 0;
}

/* Takes columns out until the rest fits; their names go to out. */
static void narrow(const struct kl_report *p, size_t *width, char *out, size_t n)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < sizeof lesser / sizeof *lesser && total(width) > p->width; i++)
        for (size_t c = 0; c < NCOL; c++)
            if (columns[c].cell == lesser[i] && width[c]) {
                width[c] = 0;
                if (used < n)
                    used += (size_t)snprintf(out + used, n - used, "%s%s", used ? ", " : "",
                                             columns[c].head);
            }
}

static void table(const struct kl_report *p, struct text *t, bool md)
{
    char cell[CELL_MOST], gone[200] = "";
    size_t width[NCOL] = {0}, last = 0;
    for (size_t c = 0; c < NCOL; c++) {
        for (size_t i = 0; i < p->nrow; i++) {
            cell_of(p, &p->row[i], c, cell);
            width[c] = strlen(cell) > width[c] ? strlen(cell) : width[c];
        }
        head_of(p, c, cell, sizeof cell);
        if (width[c] && strlen(cell) > width[c])
            width[c] = strlen(cell);
    }
    if (p->width && !md)
        narrow(p, width, gone, sizeof gone);
    for (size_t c = 0; c < NCOL; c++)
        last = width[c] ? c : last;
    for (size_t i = 0; i <= p->nrow; i++) {
        const struct kl_row *r = i ? &p->row[i - 1] : NULL;
        for (size_t c = 0; c < NCOL; c++) {
            bool left = columns[c].left;
            if (!width[c])
                continue;
            if (r)
                cell_of(p, r, c, cell);
            else
                head_of(p, c, cell, sizeof cell);
            const char *before = md ? "| " : "", *after = md          ? c == last ? " |" : " "
                                                          : c == last ? ""
                                                                      : "  ";
            if (left && c == last && !md)
                put(t, "%s", cell);
            else if (left)
                put(t, "%s%-*s%s", before, (int)width[c], cell, after);
            else
                put(t, "%s%*s%s", before, (int)width[c], cell, after);
        }
        if (r && !timed(r) && !md) {
            while (t->n && t->s[t->n - 1] == ' ')
                t->s[--t->n] = 0;
            put(t, "  %s: %s", r->failed ? "FAILED" : "left out", r->note ? r->note : "");
        }
        while (t->n && t->s[t->n - 1] == ' ')
            t->s[--t->n] = 0;
        put(t, "\n");
        for (size_t c = 0; !i && md && c < NCOL; c++)
            if (width[c])
                put(t, columns[c].left ? "|:--%s" : "|--:%s", c == last ? "|\n" : "");
    }
    if (*gone)
        put(t, "(the terminal is narrow: without %s)\n", gone);
}

static void device_line(const struct kl_bdev *d, struct text *t, const char *before)
{
    const kiln_device_info *i = kiln_context_device_info(d->s.ctx);
    char size[32], empty[32];
    unsigned threads = kiln_context_threads(d->s.ctx);
    if (d->cuda)
        put(t, "%sdevice  %s, %d SMs, driver %s%sCUDA %d.%d", before, i->name, i->sms,
            d->watch.driver, *d->watch.driver ? ", " : "", i->driver / 1000,
            i->driver % 1000 / 10);
    else
        put(t, "%sdevice  %s, %u thread%s", before,
            d->kind == KILN_DEVICE_CPU ? kl_tool_cpu_level() : kl_device_text(d->kind), threads,
            threads == 1 ? "" : "s");
    for (int k = 0; k < 2; k++) {
        const struct kl_ceiling *c = &d->ceiling[k];
        if (c->most > 1.005 * c->least)
            put(t, ", %s %.4g to %.4g GB/s", k ? "read" : "copy", c->least, c->most);
        else if (c->most > 0)
            put(t, ", %s %.4g GB/s", k ? "read" : "copy", c->most);
    }
    if (d->ceiling[0].most > 0)
        put(t, " (measured beside the cases)");
    put(t, "\n%s        %s %s; clock ", before, d->cache_name,
        kl_human_bytes(d->cache_bytes, size));
    if (d->watch.full_mhz > 0)
        put(t, "%.0f MHz at most", d->watch.full_mhz);
    else
        put(t, "unknown");
    if (d->cuda)
        put(t, "; throttling: %s",
            !d->watch.throttle_known ? "unknown"
            : *d->watch.throttle     ? d->watch.throttle
                                     : "none");
    else
        put(t, "; governor %s; turbo %s", *d->watch.governor ? d->watch.governor : "unknown",
            *d->watch.turbo ? d->watch.turbo : "unknown");
    put(t, "; a launch of next to nothing %s\n", kl_time_text(d->empty_ns * 1e-6, empty));
}

static void one_e2e(const struct kl_report *p, const struct kl_row *r, struct text *t, bool md)
{
    const double v[] = {r->e2e.start_ms, r->e2e.cold_ms,   r->e2e.warm_ms, r->e2e.up_ms,
                        r->e2e.first_ms, r->e2e.kernel_ms, r->e2e.down_ms};
    char b[32], label[CELL_MOST];
    snprintf(label, sizeof label, "%s%s%s%s%s", r->kernel, r->setting && *r->setting ? " " : "",
             r->setting ? r->setting : "", p->ndev > 1 ? " " : "", p->ndev > 1 ? r->device : "");
    put(t, md ? "| %s | %s " : "%-24s  %-12s", label, r->shape);
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        put(t, md ? "| %s " : "%14s", kl_time_text(v[i], b));
    put(t, md ? "|\n" : "\n");
}

static void e2e_table(const struct kl_report *p, struct text *t, bool md)
{
    static const char *const head[] = {"start-up",     "source cold", "source warm", "to device",
                                       "first launch", "launch",      "from device"};
    put(t, "\nend to end (measured, once): the context; from the source to code without and with a "
           "cache;\nthe arrays to the device; the first launch; another one; the results back\n");
    if (md)
        put(t, "\n| kernel | shape ");
    else
        put(t, "%-24s  %-12s", "kernel", "shape");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        put(t, md ? "| %s " : "%14s", head[i]);
    put(t, md ? "|\n|:--|:--|--:|--:|--:|--:|--:|--:|--:|\n" : "\n");
    for (size_t i = 0; i < p->nrow; i++)
        if (p->row[i].e2e.done)
            one_e2e(p, &p->row[i], t, md);
}

/* What the rows say of themselves, each text once. */
static void remarks(const struct kl_report *p, struct text *t, const char *before)
{
    bool time = false, few = false, versus = false, above = false, shares = false;
    size_t dropped = 0;
    for (size_t i = 0; i < p->nrow; i++) {
        const struct kl_row *r = &p->row[i];
        bool again = false;
        time |= timed(r) && (r->stop[0] == KL_STOP_TIME || r->stop[1] == KL_STOP_TIME);
        dropped += r->dropped[0] + r->dropped[1];
        few |= timed(r) && r->stat[main_series(r)].n < KL_STATE_LEAST;
        shares |= timed(r) && r->of_copy > 0;
        versus |= timed(r) && (r->has_vs || r->has_base);
        above |= timed(r) && !r->peer && (r->of_copy > 1.05 || r->of_read > 1.05);
        for (size_t k = 0; k < i && !again; k++)
            again = r->check && p->row[k].check && strcmp(p->row[k].check, r->check) == 0 &&
                    strcmp(p->row[k].kernel, r->kernel) == 0;
        if (r->check && !again)
            put(t, "%schecked: %s: %s\n", before, r->kernel, r->check);
        if (r->note && timed(r))
            put(t, "%snote: %s: %s\n", before, r->kernel, r->note);
        else if (r->note && *before) /* the table of a text says it in the row */
            put(t, "%s%s: %s %s%s%s: %s\n", before, r->failed ? "FAILED" : "left out", r->kernel,
                r->shape ? r->shape : "", r->point && *r->point ? " " : "",
                r->point ? r->point : "", r->note);
    }
    for (size_t i = 0; i < p->nnote; i++)
        put(t, "%snote: %s\n", before, p->note[i]);
    if (versus)
        put(t,
            "%svs: the other's time over this row's (above 1: this row is faster) and its 95%% "
            "interval; SAME: within 2%%, AMBG: undecided, ????: fewer than %d samples\n",
            before, KL_STATE_LEAST);
    if (few)
        put(t, "%sn < %d: [ ] is the range of the samples: less sure than 95%%\n", before,
            KL_STATE_LEAST);
    if (shares && !p->cold)
        put(t, "%sshares: warm times beside ceilings that come from memory\n", before);
    if (above)
        put(t,
            "%sabove 100%%: faster than what was measured as the ceiling beside it: arrays that "
            "stay in a cache, or other work on the machine\n",
            before);
    if (time)
        put(t, "%st: the time was over before the median was known to 0.5%%\n", before);
    if (dropped)
        put(t, "%s%zu samples did not count: the clock was below 75%%\n", before, dropped);
}

static void cold_line(const struct kl_report *p, struct text *t, const char *before)
{
    size_t copies = 0, flushed = 0, least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < p->nrow; i++) {
        const struct kl_row *r = &p->row[i];
        if (!timed(r) || r->peer || !r->has[0])
            continue;
        if (strcmp(r->cold_by, "copies") == 0) {
            copies++;
            least = r->copies < least ? r->copies : least;
            most = r->copies > most ? r->copies : most;
        } else {
            flushed++;
        }
    }
    if (!copies && !flushed)
        return;
    put(t, "%scold: ", before);
    if (copies && least == most)
        put(t, "%zu copies of the arrays in turn", most);
    else if (copies)
        put(t, "%zu to %zu copies of the arrays in turn", least, most);
    if (flushed)
        put(t, "%sthe cache is flushed before each launch, outside the time",
            copies ? "; of small "
                     "arrays "
                   : "");
    put(t, "; bytes: each array once as it is read and written\n");
}

/* Which implementations of others these are. */
static void peer_line(const struct kl_report *p, struct text *t, const char *before)
{
    size_t said = 0;
    for (size_t i = 0; i < p->npeer; i++) {
        const struct kl_peer *o = &p->peer[i];
        if (!o->name)
            continue;
        if (said++)
            put(t, ", ");
        else
            put(t, "%speers   ", before);
        put(t, "%s%s%s", o->name, *o->version ? " " : "", o->version);
    }
    if (said)
        put(t, " (each in a process of its own)\n");
}

static void summary(const struct kl_report *p, struct text *t, const char *before)
{
    put(t, "%s%zu case%s, %zu row%s", before, p->cases, p->cases == 1 ? "" : "s", p->nrow,
        p->nrow == 1 ? "" : "s");
    size_t out = 0;
    for (size_t i = 0; i < p->nrow; i++)
        out += p->row[i].skipped;
    if (out)
        put(t, ", %zu left out", out);
    if (p->failed)
        put(t, ", %zu FAILED", p->failed);
    if (p->fail_on >= 0)
        put(t, ", %zu slower than %g%%", p->regressed, p->fail_on * 100);
    if (p->fail_on >= 0 && p->unmatched)
        put(t, ", %zu not in %s, which --fail-on does not let pass", p->unmatched, p->base_name);
    put(t, ".\n");
}

static char *plain(const struct kl_report *p, bool md)
{
    struct text t = {0};
    for (size_t i = 0; i < p->ndev; i++)
        device_line(&p->dev[i], &t, md ? "    " : "");
    peer_line(p, &t, md ? "    " : "");
    cold_line(p, &t, md ? "    " : "");
    put(&t, "\n");
    table(p, &t, md);
    put(&t, "\n");
    remarks(p, &t, md ? "- " : "");
    if (p->end_to_end)
        e2e_table(p, &t, md);
    if (md)
        put(&t, "\n");
    summary(p, &t, "");
    return t.s;
}

/* ---- CSV ---- */

static void field(struct text *t, const char *s)
{
    if (!s || !strpbrk(s, ",\"\n")) {
        put(t, "%s,", s ? s : "");
        return;
    }
    put(t, "\"");
    for (; *s; s++)
        put(t, *s == '"' ? "\"\"" : "%c", *s);
    put(t, "\",");
}

static void csv_number(struct text *t, double v, bool known)
{
    if (known && isfinite(v))
        put(t, "%.9g,", v);
    else
        put(t, ",");
}

static char *csv(const struct kl_report *p)
{
    struct text t = {0};
    put(&t,
        "kernel,setting,shape,point,device,peer,mode,median_ms,ci_lo_ms,ci_hi_ms,noise,min_ms,"
        "p95_ms,samples,dropped,stop,bytes,gbs,gflops,copy_share,read_share,launch_ns,vs_ratio,"
        "vs_lo,vs_hi,vs_state,baseline_ratio,baseline_lo,baseline_hi,baseline_state,check,note\n");
    for (size_t i = 0; i < p->nrow; i++)
        for (int w = 0; w < 2; w++) {
            const struct kl_row *r = &p->row[i];
            const struct kl_summary_stats *s = &r->stat[w];
            bool ok = timed(r), first = w == main_series(r);
            if (ok ? !r->has[w] : w)
                continue;
            field(&t, r->kernel);
            field(&t, r->setting);
            field(&t, r->shape);
            field(&t, r->point);
            field(&t, r->device);
            put(&t, "%d,%s,", r->peer,
                !ok ? r->failed ? "failed" : "skipped"
                : w ? "warm"
                    : "cold");
            csv_number(&t, s->median, ok);
            csv_number(&t, s->ci.lo, ok);
            csv_number(&t, s->ci.hi, ok);
            csv_number(&t, s->noise, ok);
            csv_number(&t, s->min, ok);
            csv_number(&t, s->p95, ok);
            put(&t, "%zu,%zu,%s,%llu,", s->n, r->dropped[w], ok ? kl_stop_name(r->stop[w]) : "",
                (unsigned long long)r->bytes);
            csv_number(&t, (double)r->bytes / (s->median * 1e6), ok);
            csv_number(&t, r->flops / (s->median * 1e6), ok && r->flops > 0);
            csv_number(&t, r->of_copy, ok && first && r->of_copy > 0);
            csv_number(&t, r->of_read, ok && first && r->of_read > 0);
            csv_number(&t, r->launch_ns, ok && r->launch_ns > 0);
            csv_number(&t, r->vs.ratio, ok && first && r->has_vs);
            csv_number(&t, r->vs.ci.lo, ok && first && r->has_vs);
            csv_number(&t, r->vs.ci.hi, ok && first && r->has_vs);
            put(&t, "%s,", ok && first && r->has_vs ? kl_state_name(r->vs.state) : "");
            csv_number(&t, r->base.ratio, ok && first && r->has_base);
            csv_number(&t, r->base.ci.lo, ok && first && r->has_base);
            csv_number(&t, r->base.ci.hi, ok && first && r->has_base);
            put(&t, "%s,", ok && first && r->has_base ? kl_state_name(r->base.state) : "");
            field(&t, r->check);
            field(&t, r->note);
            t.s[t.n - 1] = '\n';
        }
    return t.s;
}

/* ---- all of them ---- */

bool kl_format_parse(const char *s, enum kl_format *out)
{
    static const char *const name[] = {"text", "json", "csv", "md"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (strcmp(s, name[i]) == 0) {
            *out = (enum kl_format)i;
            return true;
        }
    return false;
}

char *kl_report_text(const struct kl_report *r, enum kl_format f, bool samples)
{
    if (f == KL_FORMAT_JSON)
        return kl_report_json(r, samples);
    return f == KL_FORMAT_CSV ? csv(r) : plain(r, f == KL_FORMAT_MD);
}

void kl_row_free(struct kl_row *r)
{
    free(r->kernel);
    free(r->setting);
    free(r->shape);
    free(r->point);
    free(r->values);
    free(r->device);
    free(r->check);
    free(r->note);
    free(r->sample[0]);
    free(r->sample[1]);
    *r = (struct kl_row){0};
}
