/* text.c - `kiln explain` as text, or as a table in Markdown. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain/cmd.h"

/* ---- rows ---- */

/* A label and what is said of it; without a label it goes on with the one before. */
__attribute__((format(printf, 3, 4))) static void row(struct kl_page *p, const char *label,
                                                      const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return;
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
    fclose(f);
    if (!p->markdown) {
        fprintf(p->f, "  %-9s %s\n", label, text);
    } else {
        fprintf(p->f, "| %s | ", label);
        for (const char *c = text; *c; c++) /* a bar would end the cell */
            fprintf(p->f, *c == '|' ? "\\|" : "%c", *c);
        fputs(" |\n", p->f);
    }
    free(text);
}

/* Text that is put together piece by piece. */
struct line {
    char s[1500];
    size_t n;
};
__attribute__((format(printf, 2, 3))) static void add(struct line *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int k = vsnprintf(l->s + l->n, sizeof l->s - l->n, fmt, ap);
    va_end(ap);
    l->n = k < 0 || l->n + (size_t)k >= sizeof l->s ? sizeof l->s - 1 : l->n + (size_t)k;
}

static const char *size(double bytes, char buf[32])
{
    return kl_explain_bytes(bytes, buf);
}

/* In the unit of another size, so that the two can be compared. */
static const char *size_like(double bytes, double like, char buf[32])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    for (; like >= 1024 && u < 4; u++)
        like /= 1024, bytes /= 1024;
    snprintf(buf, 32, bytes < 1e5 ? "%.5g %s" : "%.0f %s", bytes, unit[u]);
    return buf;
}

/* "0.1678 GFLOP" */
static const char *flop_text(double n, char buf[32])
{
    static const char *const unit[] = {"", "k", "M", "G", "T"};
    int u = 0;
    for (; n >= 100 && u < 4; u++)
        n /= 1000;
    snprintf(buf, 32, "%.4g %sFLOP", n, unit[u]);
    return buf;
}

static const char *cc_text(uint32_t cc, char buf[16])
{
    snprintf(buf, 16, "%u.%u", cc / 10, cc % 10);
    return buf;
}

/* "256", "unlimited" */
static void add_limit(struct line *l, const char *name, uint32_t v)
{
    if (v == KL_UNLIMITED)
        return;
    add(l, "%s%s %u", l->n ? ", " : "", name, v);
}

/* ---- the head ---- */

static void grid_text(const int64_t g[3], char buf[80])
{
    int last = g[2] != 1 ? 2 : g[1] != 1 ? 1 : 0;
    size_t n = 0;
    for (int i = 0; i <= last; i++)
        n += (size_t)snprintf(buf + n, 80 - n, i ? "x%lld" : "%lld", (long long)g[i]);
}

static void head(struct kl_page *p)
{
    const kl_explained *e = p->e;
    struct line l = {.n = 0};
    char grid[80];
    grid_text(e->grid, grid);
    add(&l, "%s:%u   grid %s   %u threads (%u warp%s)", e->place.file, e->place.line, grid,
        e->info.threads, (e->info.threads + 31) / 32, e->info.threads > 32 ? "s" : "");
    if (e->info.cluster > 1)
        add(&l, "   clusters of %u blocks", e->info.cluster);
    add(&l, "   sm_%u, PTX %s", e->arch, e->ptx_version);
    for (uint32_t i = 0; i < e->nconstant; i++)
        add(&l, "%s%s = %s", i ? ", " : "   ", e->constant[i].name, e->constant[i].value);
    add(&l, "   facts%s%s%s", e->v16 ? " v16" : "", e->i32 ? " i32" : "",
        e->v16 || e->i32 ? "" : " none");
    if (p->markdown)
        fprintf(p->f, "## %s\n\n%s\n\n| | |\n|---|---|\n", e->kernel, l.s);
    else
        fprintf(p->f, "%s  %s\n", e->kernel, l.s);
}

static void gpu(struct kl_page *p)
{
    const kl_chip *c = p->e->chip;
    struct line l = {.n = 0};
    char cc[16];
    if (!c) {
        row(p, "gpu", "none is known for sm_%u; --gpu NAME or --gpu FILE gives floors and waves",
            p->e->arch);
        return;
    }
    add(&l, "%s: %u multiprocessors of capability %s", c->name, c->sms, cc_text(c->cc, cc));
    if (c->memory > 0)
        add(&l, ", %.0f GB/s", c->memory);
    if (c->l2 > 0)
        add(&l, ", %.0f MiB L2", c->l2);
    add(&l, " (%s)", c->label);
    row(p, "gpu", "%s", l.s);
}

static void arrays(struct kl_page *p)
{
    const kl_explained *e = p->e;
    for (uint32_t i = 0; i < e->narray; i++) {
        const kl_explain_array *a = &e->array[i];
        struct line l = {.n = 0};
        char bytes[32];
        bool dense = true;
        int64_t step = 1;
        add(&l, "%s  %s[", a->name, kl_elems[a->elem].name);
        for (int32_t d = 0; d < a->rank; d++)
            add(&l, d ? "x%lld" : "%lld", (long long)a->shape[d]);
        add(&l, "]  %s%s%s  %s", a->reads ? "read" : "", a->reads && a->writes ? " and " : "",
            a->writes ? "written" : a->reads ? "" : "not used", size((double)a->bytes, bytes));
        for (int32_t d = a->rank; d-- > 0;) {
            dense &= a->strides[d] == step || a->shape[d] == 1;
            step *= a->shape[d];
        }
        if (!dense) {
            add(&l, "  strides ");
            for (int32_t d = 0; d < a->rank; d++)
                add(&l, d ? "x%lld" : "%lld", (long long)a->strides[d]);
        }
        row(p, i ? "" : "arrays", "%s", l.s);
    }
}

/* ---- traffic, work, floors ---- */

/* What print() and assert() write to is no array of the kernel. */
static bool declared(const kl_explained *e, const char *name)
{
    for (uint32_t i = 0; i < e->narray; i++)
        if (strcmp(e->array[i].name, name) == 0)
            return true;
    return false;
}

/* Where a launch leaves a part of an array alone, which part: a grid or an extent may be wrong. */
static void part(struct line *l, const kl_explained *e, const kl_model_array *r, uint64_t touched)
{
    for (uint32_t i = 0; i < e->narray; i++) {
        const kl_explain_array *a = &e->array[i];
        if (strcmp(a->name, r->name) != 0 || !r->exact || touched >= a->bytes)
            continue;
        uint64_t left = a->bytes - touched;
        if (left * 100 >= a->bytes)
            add(l, ", %.3g%% of the array", 100.0 * (double)touched / (double)a->bytes);
        else
            add(l, ", all but %llu of its elements",
                (unsigned long long)(left / kl_elems[a->elem].bytes));
    }
}

/* What is read more than once, and whether the second-level cache may have it. */
static void again(struct kl_page *p)
{
    const kl_explained *e = p->e;
    const kl_model *m = e->model;
    double more = 0;
    char a[32], b[32];
    if (!m || m->cut || !e->chip || e->chip->l2 <= 0)
        return;
    for (uint32_t i = 0; i < m->array.n; i++)
        more += (double)m->array.v[i].read - (double)m->array.v[i].unique_read;
    if (more * 100 < e->bytes || more <= 0)
        return;
    bool exact = true;
    for (uint32_t i = 0; i < m->array.n; i++)
        exact &= m->array.v[i].exact;
    bool fits = e->bytes <= e->chip->l2 * 1024 * 1024;
    row(p, "", "%s%s are read again; all different bytes, %s, %s the L2 cache (%.4g MiB): %s",
        exact ? "" : "about ", size(more, a),
        size(e->bytes, b), fits ? "fit" : "do not fit", e->chip->l2,
        fits ? "they may come from there"
             : "part of them may come from memory again, unless programs that run together share them");
}

static void traffic(struct kl_page *p)
{
    const kl_explained *e = p->e;
    const kl_model *m = e->model;
    struct line l = {.n = 0};
    char a[32], b[32];
    bool exact = true;
    for (uint32_t i = 0; m && i < m->array.n; i++)
        exact &= m->array.v[i].exact;
    add(&l, "%s moved (each byte once%s)", size_like(e->bytes, e->bytes, a),
        m && m->cut ? "; not exact: a loop was not followed to its end"
        : exact     ? ""
                    : "; not exact, see unknown");
    if (m && m->passes.n > 1 && !m->cut)
        add(&l, "   as %u separate passes %s: ratio %.3f (traffic, not speed)", m->passes.n,
            size_like((double)(m->passes.read + m->passes.written), e->bytes, b), m->passes.ratio);
    row(p, "traffic", "%s", l.s);
    for (uint32_t i = 0; m && i < m->array.n; i++) {
        const kl_model_array *r = &m->array.v[i];
        if ((!r->read && !r->written) || !declared(e, r->name))
            continue;
        l.n = 0;
        add(&l, "%s:", r->name);
        if (r->read)
            add(&l, " reads %s%s of %s, each byte %s%.4g times", m->cut ? "at least " : "",
                size_like((double)r->read, (double)r->unique_read, a),
                size_like((double)r->unique_read, (double)r->unique_read, b),
                m->cut     ? "at least "
                : r->exact ? ""
                           : "about ",
                r->reuse);
        if (r->read)
            part(&l, e, r, r->unique_read);
        if (r->written)
            add(&l, "%s writes %s%s of %s", r->read ? ";" : "", m->cut ? "at least " : "",
                size_like((double)r->written, (double)r->unique_written, a),
                size_like((double)r->unique_written, (double)r->unique_written, b));
        if (r->written)
            part(&l, e, r, r->unique_written);
        row(p, "", "%s", l.s);
    }
    again(p);
}

static bool on_tensor(const kl_model *m)
{
    bool any = false;
    for (uint32_t i = 0; i < m->dot.n; i++)
        any |= m->dot.v[i].tensor;
    return any;
}

static void work(struct kl_page *p)
{
    const kl_explained *e = p->e;
    const kl_model *m = e->model;
    struct line l = {.n = 0};
    char n[32];
    if (!m)
        return;
    if (e->flop <= 0) {
        row(p, "work", "no floating-point arithmetic on tiles");
        return;
    }
    if (m->cut) { /* what a part of the loop does is no measure of the kernel */
        row(p, "work", "at least %s (not exact)", flop_text(e->flop, n));
        return;
    }
    add(&l, "%s", flop_text(e->flop, n));
    if (m->work.special)
        add(&l, " (functions: %s)", flop_text((double)m->work.special, n));
    if (m->work.dot)
        add(&l, " (products of matrices: %s, %s)", flop_text((double)m->work.dot, n),
            on_tensor(m) ? "some on tensor cores" : "on CUDA cores, as all in this version");
    if (e->bytes > 0)
        add(&l, "   %.3g FLOP/B", e->flop / e->bytes);
    if (e->has_roof)
        add(&l, "   -> %s-bound: the roof is %.3g TFLOP/s (ridge at %.3g FLOP/B, %.3g TFLOP/s %s)",
            e->roof.memory ? "memory" : "compute", e->roof.most, e->roof.ridge, e->peak, e->peak_of);
    row(p, "work", "%s", l.s);
}

static void floors(struct kl_page *p)
{
    const kl_explained *e = p->e;
    const kl_chip *c = e->chip;
    struct line l = {.n = 0};
    bool writes = false;
    if (!c || e->bytes <= 0)
        return;
    for (uint32_t i = 0; i < e->narray; i++)
        writes |= e->array[i].writes;
    if (c->memory > 0)
        add(&l, "%.4g us at %.0f GB/s (%s)", kl_floor_us(e->bytes, c->memory), c->memory,
            c->label);
    if (c->copy > 0)
        add(&l, "   %.4g us at %.0f GB/s (measured copy)", kl_floor_us(e->bytes, c->copy), c->copy);
    if (c->read > 0 && !writes)
        add(&l, "   %.4g us at %.0f GB/s (measured read)", kl_floor_us(e->bytes, c->read), c->read);
    if (e->flop > 0 && e->peak > 0 && !(e->model && e->model->cut))
        add(&l, "   arithmetic %.4g us at %.3g TFLOP/s (%s)", e->flop / e->peak * 1e-6, e->peak,
            e->peak_of);
    if (l.n)
        row(p, "floor", "%s", l.s);
}

/* How long each part of the GPU is busy if it never waits. */
static void busy(struct kl_page *p)
{
    const kl_explained *e = p->e;
    struct line l = {.n = 0};
    if (!e->has_times)
        return;
    for (int i = 0; i < KL_NBUSY; i++) {
        add(&l, "%s%s %.4g us", i ? "   " : "", kl_busy_name[i], e->times.us[i]);
        if (i == KL_BUSY_L2)
            add(&l, " at %.0f GB/s (%s)", kl_l2_rate(e->chip),
                e->chip->l2_read > 0 ? "measured" : "its ports");
    }
    enum kl_busy longest;
    kl_times_most(&e->times, &longest);
    row(p, "busy", "%s   (model, at least; longest: %s)", l.s, kl_busy_name[longest]);
}

/* ---- accesses ---- */

/* The source of a place, on one line and not too long. */
static const char *snippet(const kiln_place *at, char buf[64])
{
    const char *text = at->text ? at->text : "";
    size_t len = strlen(text), from = at->col ? at->col - 1 : 0;
    size_t end = at->end_col > at->col ? at->end_col - 1 : len;
    from = from < len ? from : len;
    end = end < len ? end : len;
    size_t n = end > from ? end - from : 0;
    if (n <= 40)
        snprintf(buf, 64, "%.*s", (int)n, text + from);
    else
        snprintf(buf, 64, "%.*s...", 37, text + from);
    return buf;
}

static double per(uint64_t units, uint64_t requests)
{
    return requests ? (double)units / (double)requests : 0;
}

const char *kl_narrow_text(unsigned narrow)
{
    static const char *const text[] = {
        [KL_NARROW_NOT] = "",
        [KL_NARROW_SCALAR] = "one element",
        [KL_NARROW_STRIDED] = "strided",
        [KL_NARROW_FACTS] = "alignment is not known",
        [KL_NARROW_VIEW] = "of an array that the kernel makes",
        [KL_NARROW_START] = "where it begins is not known",
        [KL_NARROW_MASK] = "mask or index element by element",
        [KL_NARROW_SMALL] = "few elements for the threads",
        [KL_NARROW_LAYOUT] = "no neighbours in a thread",
    };
    return narrow < sizeof text / sizeof *text ? text[narrow] : "";
}

static void accesses(struct kl_page *p, unsigned dir, const char *label)
{
    const kl_model *m = p->e->model;
    bool first = true;
    char text[64];
    for (uint32_t i = 0; m && i < m->access.n; i++) {
        const kl_model_access *a = &m->access.v[i];
        struct line l = {.n = 0};
        if (a->dir != dir)
            continue;
        add(&l, "line %-4u %s   %u B/lane   ", a->place.line, snippet(&a->place, text), a->width);
        if (a->t.requests)
            add(&l, "%.4g sectors/request (ideal %.4g)", per(a->t.units, a->t.requests),
                per(a->t.ideal, a->t.requests));
        else
            add(&l, a->empty ? "nothing is inside the array" : "not counted");
        if (a->narrow)
            add(&l, "   %s%s%s", kl_narrow_text(a->narrow), a->fact ? ": " : "",
                a->fact ? a->fact : "");
        if (!a->exact)
            add(&l, "   (%s)", a->why ? a->why : "not exact");
        row(p, first ? label : "", "%s", l.s);
        first = false;
    }
}

static void onchip(struct kl_page *p)
{
    const kl_explained *e = p->e;
    const kl_model *m = e->model;
    struct line l = {.n = 0};
    char bytes[32], text[64];
    add(&l, "%s shared", size(e->block.shared, bytes));
    if (e->has_sm && e->sm.reserved)
        add(&l, " (+%u B reserved)", e->sm.reserved);
    if (m) {
        uint64_t units = m->sload.units + m->sstore.units + m->push.units,
                 ideal = m->sload.ideal + m->sstore.ideal + m->push.ideal;
        add(&l, "   %llu bank conflicts", (unsigned long long)(units > ideal ? units - ideal : 0));
        add(&l, "   %llu barriers", (unsigned long long)m->barriers);
    }
    row(p, "on-chip", "%s", l.s);
    for (uint32_t i = 0; m && i < m->shared.n; i++) {
        const kl_model_shared *s = &m->shared.v[i];
        l.n = 0;
        add(&l, "line %-4u %s   %s %u B/lane   %.4g wavefronts/request (ideal %.4g)", s->place.line,
            snippet(&s->place, text), s->push ? "store to other blocks" : s->store ? "store" : "load", s->width,
            per(s->t.units, s->t.requests), per(s->t.ideal, s->t.requests));
        if (s->chosen && s->t.requests)
            add(&l, "   %s: plain %.4g, padded %.4g, swizzled %.4g", s->chosen,
                per(s->plain, s->t.requests), per(s->padded, s->t.requests),
                per(s->swizzled, s->t.requests));
        row(p, "", "%s", l.s);
    }
}

/* ---- registers, occupancy, waves ---- */

static void registers(struct kl_page *p)
{
    const kl_regs *r = &p->e->regs;
    if (r->from == KL_REGS_PTXAS && (r->spill_stores || r->spill_loads))
        row(p, "registers", "%u (ptxas)   spills %u B stored, %u B loaded a thread (ptxas)",
            r->registers, r->spill_stores, r->spill_loads);
    else if (r->from == KL_REGS_PTXAS)
        row(p, "registers", "%u (ptxas)   spills 0", r->registers);
    else if (r->from == KL_REGS_DRIVER)
        row(p, "registers", "%u (driver)   local memory %u B a thread (driver)", r->registers,
            r->stack);
    else
        row(p, "registers", "unknown here (needs the driver or ptxas)%s%s", r->why ? ": " : "",
            r->why ? r->why : "");
}

static double share_of(const kl_explained *e, const kl_rung *r)
{
    return 100.0 * r->blocks * e->occ.warps_block / e->sm.warps;
}

static void occupancy(struct kl_page *p)
{
    const kl_explained *e = p->e;
    struct line l = {.n = 0};
    if (!e->has_sm) {
        row(p, "occupancy", "unknown: the limits of capability %u.%u are not in the table",
            e->arch / 10, e->arch % 10);
        return;
    }
    if (!e->has_occ) {
        row(p, "occupancy", "unknown, as registers are");
        return;
    }
    static const char *const name[] = {"warps", "registers", "shared", "blocks", "barriers"};
    for (int i = 0; i < KL_NLIMIT; i++)
        if (i != KL_LIMIT_BARRIERS || e->occ.limit[i] < e->sm.blocks)
            add_limit(&l, name[i], e->occ.limit[i]);
    row(p, "occupancy", "%.4g%%   %u block%s = %u/%u warps per SM    limits: %s%s",
        100 * e->occ.share, e->occ.blocks, e->occ.blocks == 1 ? "" : "s", e->occ.warps,
        e->sm.warps, l.s,
        e->regs.from == KL_REGS_NONE ? "   (the same for any number of registers)" : "");
    if (e->regs.blocks && e->regs.blocks != e->occ.blocks)
        row(p, "", "the driver says %u blocks", e->regs.blocks);
    if (e->regs.from != KL_REGS_NONE)
        row(p, "", "simplified rule (%u / (%u x %u), no units): %u blocks, %u of %u warps, %.2f%%",
            e->sm.registers, e->block.threads, e->regs.registers, e->simple.blocks,
            e->simple.warps, e->sm.warps, 100 * e->simple.share);
}

/* The rungs above and below the value, nearest first. */
static void steps(struct kl_page *p, enum kl_limit of)
{
    const kl_explained *e = p->e;
    bool shared = of == KL_LIMIT_SHARED;
    uint32_t now = shared ? e->block.shared : e->block.registers;
    const char *what = shared ? "shared memory" : "registers";
    kl_rung r[KL_RUNGS];
    char buf[32];
    uint32_t n = kl_occ_ladder(&e->sm, &e->block, of, r), at = 0;
    struct line up = {.n = 0}, down = {.n = 0};
    while (at < n && r[at].last < now)
        at++;
    for (uint32_t i = at, k = 0; i-- > 0 && k < 4;) {
        if (r[i].blocks <= r[at].blocks)
            continue;
        if (k++ == 0 && shared)
            add(&up, "at most %s %u blocks (%.3g%%)", size(r[i].last, buf), r[i].blocks,
                share_of(e, &r[i]));
        else if (k == 1)
            add(&up, "at most %u %u blocks (%.3g%%)", r[i].last, r[i].blocks, share_of(e, &r[i]));
        else if (shared)
            add(&up, ", %s %u", size(r[i].last, buf), r[i].blocks);
        else
            add(&up, ", %u %u", r[i].last, r[i].blocks);
    }
    for (uint32_t i = at + 1, k = 0; i < n && k < 7; i++, k++) {
        if (!r[i].blocks)
            break;
        if (k)
            add(&down, ", ");
        if (shared)
            add(&down, "from %s", size(r[i].first, buf));
        else
            add(&down, "%u+", r[i].first);
        add(&down, " %u", r[i].blocks);
        if (!k)
            add(&down, " block%s (%.3g%%)", r[i].blocks == 1 ? "" : "s", share_of(e, &r[i]));
    }
    if (up.n)
        row(p, "", "step up by %s: %s", what, up.s);
    if (down.n)
        row(p, "", "step down by %s: %s", what, down.s);
}

/* Registers are not known: what each number would give. */
static void open_ladder(struct kl_page *p)
{
    const kl_explained *e = p->e;
    kl_rung r[KL_RUNGS];
    uint32_t n = kl_occ_ladder(&e->sm, &e->block, KL_LIMIT_REGISTERS, r);
    struct line l = {.n = 0};
    for (uint32_t i = 0; i < n; i++)
        if (r[i].blocks)
            add(&l, "%s%u %u block%s (%.3g%%)", l.n ? ", " : "", r[i].last, r[i].blocks,
                r[i].blocks == 1 ? "" : "s", share_of(e, &r[i]));
    row(p, "", "by registers, at most: %s", l.s);
}

static void threads_ladder(struct kl_page *p)
{
    const kl_explained *e = p->e;
    struct line l = {.n = 0};
    for (uint32_t t = 32; t <= KL_THREADS_MOST; t *= 2) {
        kl_occ_block b = e->block;
        kl_occ o;
        b.threads = t;
        kl_occupancy(&e->sm, &b, &o);
        add(&l, "%s%u: %u = %.3g%%", l.n ? ", " : "", t, o.blocks, 100 * o.share);
    }
    row(p, "", "by threads, all else the same: %s", l.s);
}

static void ladder(struct kl_page *p)
{
    const kl_explained *e = p->e;
    if (!e->has_sm)
        return;
    if (e->regs.from == KL_REGS_NONE && !e->has_occ) {
        open_ladder(p);
        return;
    }
    if (e->regs.from != KL_REGS_NONE)
        steps(p, KL_LIMIT_REGISTERS);
    steps(p, KL_LIMIT_SHARED);
    if (e->regs.from != KL_REGS_NONE)
        threads_ladder(p);
}

static void waves(struct kl_page *p)
{
    const kl_explained *e = p->e;
    const kl_waves *w = &e->waves;
    struct line l = {.n = 0};
    if (!e->chip)
        return;
    if (!e->has_occ || !w->slots) {
        row(p, "waves", "%llu block%s on %u multiprocessors; how many fit at a time is not known",
            (unsigned long long)e->ctas, e->ctas == 1 ? "" : "s", e->chip->sms);
        return;
    }
    add(&l, "%.4g (%llu blocks per wave on %u SMs)", w->waves, (unsigned long long)w->slots,
        e->chip->sms);
    if (w->whole && w->rest)
        add(&l, "   last wave %.3g%% full: %llu block%s   tail cost <= %.3g%%",
            100.0 * (double)w->rest / (double)w->slots, (unsigned long long)w->rest,
            w->rest == 1 ? "" : "s", 100 * w->tail);
    if (e->tail.known)
        add(&l, ", by the model %.2g%%", 100 * e->tail.gain);
    else if (w->whole)
        add(&l, "   the last wave is full");
    if (e->info.cluster > 1)
        add(&l, "   (the blocks of a cluster must find room together, which is not modelled)");
    row(p, "waves", "%s", l.s);
}

/* ---- the source, line by line ---- */

struct cells {
    char load[24], store[24], shared[24];
};

static void cell(char buf[24], uint64_t units, uint64_t ideal, uint64_t requests)
{
    if (requests)
        snprintf(buf, 24, "%.4g/%.4g", per(units, requests), per(ideal, requests));
    else
        buf[0] = 0;
}

static void model_cells(const kl_model_line *l, struct cells *c)
{
    cell(c->load, l->gload.units, l->gload.ideal, l->gload.requests);
    cell(c->store, l->gstore.units + l->atomic.units, l->gstore.ideal + l->atomic.ideal,
         l->gstore.requests + l->atomic.requests);
    cell(c->shared, l->sload.units + l->sstore.units + l->push.units,
         l->sload.ideal + l->sstore.ideal + l->push.ideal,
         l->sload.requests + l->sstore.requests + l->push.requests);
}

static void sim_cells(const kl_sim_line *l, struct cells *c)
{
    cell(c->load, l->gload.parts, l->gload.ideal, l->gload.requests);
    cell(c->store, l->gstore.parts, l->gstore.ideal, l->gstore.requests);
    cell(c->shared, l->sload.parts + l->sstore.parts + l->push.parts,
         l->sload.ideal + l->sstore.ideal + l->push.ideal,
         l->sload.requests + l->sstore.requests + l->push.requests);
}

static void source_row(struct kl_page *p, const char *label, const struct cells *c, double bytes,
                       const char *text, int len)
{
    char size_text[32] = "", cells[160];
    if (bytes > 0)
        size(bytes, size_text);
    int n = snprintf(cells, sizeof cells, "  %5s  %-11s %-11s %-11s %-10s", label, c->load, c->store,
                     c->shared, size_text);
    if (len > 0) {
        fprintf(p->f, "%s | %.*s\n", cells, len, text);
        return;
    }
    while (n > 0 && cells[n - 1] == ' ')
        n--;
    fprintf(p->f, "%.*s\n", n, cells);
}

static const kl_sim_line *sim_line(const kl_explained *e, const char *file, uint32_t line)
{
    for (uint32_t i = 0; e->counts && i < e->counts->nline; i++) {
        const kl_sim_line *l = &e->counts->line[i];
        if (l->file && l->line == line && strcmp(l->file, file) == 0)
            return l;
    }
    return NULL;
}

static void measured_row(struct kl_page *p, const kl_model_line *l)
{
    const kl_sim_line *s = l->file ? sim_line(p->e, l->file, l->line) : NULL;
    struct cells c = {{0}, {0}, {0}};
    if (!p->e->counts)
        return;
    if (s)
        sim_cells(s, &c);
    source_row(p, "sim", &c,
               s ? (double)(s->gload.bytes + s->gstore.bytes) : 0, "", 0);
}

static bool same_file(const struct kl_page *p, const char *file)
{
    return file && strcmp(file, p->path) == 0;
}

static void source(struct kl_page *p)
{
    const kl_model *m = p->e->model;
    uint32_t first = p->e->place.line, last = 0, i = 0;
    if (!m || !m->line.n)
        return;
    for (uint32_t k = 0; k < m->line.n; k++)
        if (same_file(p, m->line.v[k].file) && m->line.v[k].line > last)
            last = m->line.v[k].line;
    fputs(p->markdown ? "\n```\n" : "", p->f);
    fputs("   line  loads       stores      shared      bytes\n"
          "         sectors a request/ideal  wavefronts\n",
          p->f);
    if (m->cut)
        fputs("         not exact: a loop was not followed to its end\n", p->f);
    const char *at = p->text;
    for (uint32_t line = 1; at && *at && line <= last; line++) {
        size_t n = strcspn(at, "\n");
        struct cells c = {{0}, {0}, {0}};
        const kl_model_line *found = NULL;
        for (i = 0; i < m->line.n && !found; i++)
            if (m->line.v[i].line == line && same_file(p, m->line.v[i].file))
                found = &m->line.v[i];
        if (found)
            model_cells(found, &c);
        if (line >= first || found) {
            char label[16];
            snprintf(label, sizeof label, "%u", line);
            source_row(p, label, &c,
                       found ? (double)(found->gload.bytes + found->gstore.bytes) : 0, at,
                       n < 90 ? (int)n : 90);
            if (found)
                measured_row(p, found);
        }
        at += n + (at[n] == '\n');
    }
    for (i = 0; i < m->line.n; i++) { /* of files that are included */
        const kl_model_line *l = &m->line.v[i];
        struct cells c;
        char text[200], label[16];
        if (same_file(p, l->file))
            continue;
        model_cells(l, &c);
        snprintf(label, sizeof label, "%u", l->line);
        int n = snprintf(text, sizeof text, "(%s)", l->file ? l->file : "no line");
        source_row(p, l->file ? label : "-", &c, (double)(l->gload.bytes + l->gstore.bytes), text,
                   n < 190 ? n : 190);
        measured_row(p, l);
    }
    fputs(p->markdown ? "```\n" : "", p->f);
}

/* ---- counts of the executor ---- */

static void total(struct kl_page *p, const char *label, const char *what,
                  const kl_model_traffic *t, const kl_sim_traffic *s, bool exact)
{
    if (!t->requests && !s->requests)
        return;
    bool same = t->requests == s->requests && t->bytes == s->bytes && t->units == s->parts;
    row(p, label, "%s: %llu requests, %llu B, %llu units; the model says %llu, %llu, %llu%s", what,
        (unsigned long long)s->requests, (unsigned long long)s->bytes, (unsigned long long)s->parts,
        (unsigned long long)t->requests, (unsigned long long)t->bytes, (unsigned long long)t->units,
        same ? ": the same" : exact ? ": NOT THE SAME" : " (not exact)");
}

static void measured(struct kl_page *p)
{
    const kl_sim_counts *c = p->e->counts;
    static const kl_model none;
    const kl_model *m = p->e->model ? p->e->model : &none;
    uint64_t n = 0;
    if (!c)
        return;
    for (int i = 0; i < KL_SIM_NKIND; i++)
        n += c->instructions[i];
    row(p, "executor", "%llu warps, %llu instructions of warps (the model: %llu), %llu of %llu "
        "branches divergent",
        (unsigned long long)c->warps, (unsigned long long)n, (unsigned long long)m->instructions,
        (unsigned long long)c->divergent,
        (unsigned long long)c->branches);
    if (!p->e->model)
        return;
    total(p, "", "global loads", &m->gload, &c->gload, m->exact);
    total(p, "", "global stores", &m->gstore, &c->gstore, m->exact);
    total(p, "", "shared loads", &m->sload, &c->sload, m->exact);
    total(p, "", "shared stores", &m->sstore, &c->sstore, m->exact);
    total(p, "", "stores to other blocks", &m->push, &c->push, m->exact);
    if (m->atomic.requests || c->atomic.requests)
        total(p, "", "atomics", &m->atomic, &c->atomic, m->exact);
}

static void doubts(struct kl_page *p)
{
    const kl_model *m = p->e->model;
    for (uint32_t i = 0; m && i < m->doubt.n; i++)
        row(p, i ? "" : "unknown", "line %-4u %s", m->doubt.v[i].place.line, m->doubt.v[i].text);
    if (m && m->counted < m->programs)
        row(p, m->doubt.n ? "" : "unknown",
            "%llu of %llu programs were counted, and the counts scaled",
            (unsigned long long)m->counted, (unsigned long long)m->programs);
}

/* ---- notes ---- */

static void notes(struct kl_page *p)
{
    size_t n = kiln_diags_count(p->notes) ? kiln_diags_render(p->notes, p->color, NULL, 0) : 0;
    if (!n) {
        fputs(p->markdown ? "\nNotes: none.\n" : "notes: none.\n", p->f);
        return;
    }
    char *text = kl_xalloc(n + 1);
    kiln_diags_render(p->notes, p->color, text, n + 1);
    fputs(p->markdown ? "\n```\n" : "", p->f);
    fwrite(text, 1, n, p->f);
    fputs(p->markdown ? "```\n" : "", p->f);
    free(text);
}

void kl_page_print(struct kl_page *p)
{
    head(p);
    gpu(p);
    arrays(p);
    traffic(p);
    work(p);
    floors(p);
    busy(p);
    accesses(p, KL_MODEL_LOAD, "loads");
    accesses(p, KL_MODEL_STORE, "stores");
    accesses(p, KL_MODEL_ATOMIC, "atomics");
    onchip(p);
    registers(p);
    occupancy(p);
    ladder(p);
    waves(p);
    measured(p);
    doubts(p);
    source(p);
    notes(p);
}
