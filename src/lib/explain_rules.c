/* explain_rules.c - K23xx and K24xx: what blocks, grid and registers say of a launch. */
#include "lib/explain_rules.h"

#include <stdio.h>

static const kl_span nowhere = {0, 0};

/* What loads of tiles ask for in one program, each once, whatever loops do. */
uint64_t kl_explain_under_way(const kl_fn *f)
{
    uint64_t n = 0;
    for (uint32_t i = 1; i < f->nins; i++) {
        const kl_val v = {i};
        if (!f->ins[i].blk.id || f->ins[i].op != KL_OP_load)
            continue;
        const struct kl_type *t = kl_access_tile(f, v);
        n += kl_numel(t) * kl_elems[t->elem].bytes;
    }
    return n;
}

const char *kl_explain_bytes(double n, char buf[32])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    while (n >= 1024 && u < 4)
        n /= 1024, u++;
    snprintf(buf, 32, u ? "%.1f %s" : "%.0f %s", n, unit[u]);
    return buf;
}

/* "2.4", "230", "6.99e+05" */
static const char *counted(double x, char buf[32])
{
    snprintf(buf, 32, x < 10 ? "%.2g" : x < 1e4 ? "%.0f" : "%.3g", x);
    return buf;
}

static void gain(struct kl_diag *g, double share, const char *of)
{
    kl_note(g, nowhere, "expected gain: up to %.0f%% of %s", 100 * share, of);
}

/* The nearest rung on which more blocks fit. */
static bool step_up(const kl_explained *e, enum kl_limit of, kl_rung *out)
{
    kl_rung r[KL_RUNGS];
    uint32_t n = kl_occ_ladder(&e->sm, &e->block, of, r);
    for (uint32_t i = n; i-- > 0;)
        if (r[i].blocks > e->occ.blocks &&
            r[i].last < (of == KL_LIMIT_SHARED ? e->block.shared : e->block.registers)) {
            *out = r[i];
            return true;
        }
    return false;
}

static void say_step(const kl_explained *e, struct kl_diag *g, enum kl_limit of)
{
    kl_rung r;
    char at[32];
    if ((of != KL_LIMIT_SHARED && of != KL_LIMIT_REGISTERS) || !step_up(e, of, &r))
        return;
    double share = 100.0 * r.blocks * e->occ.warps_block / e->sm.warps;
    if (of == KL_LIMIT_SHARED)
        kl_note(g, nowhere, "help: with at most %s of shared memory a block %u fit (%.3g%%)",
                kl_explain_bytes(r.last, at), r.blocks, share);
    else
        kl_note(g, nowhere, "help: with at most %u registers a thread %u fit (%.3g%%)", r.last,
                r.blocks, share);
}

/* Does each program load its tiles again and again? */
static bool goes_round(const kl_explained *e)
{
    double once = (double)e->under_way * (double)e->ctas;
    return e->model && once > 0 && (double)e->model->gload.bytes >= 4 * once;
}

/* What loads have under way carries all bytes, at best at the latency of memory that has nothing else to
 * do, and at worst at that of memory that is busy. */
static void between(const kl_explained *e, struct kl_diag *g, double now)
{
    const kl_chip *c = e->chip;
    double rate = kl_memory_rate(c), best = now * c->sms / kl_unloaded(c), worst = now * c->sms / kl_latency(c);
    double least = best < rate ? 1 - best / rate : 0, most = 1 - worst / rate;
    if (most > least)
        kl_note(g, nowhere,
                "of the kernel's time: %.0f%% to %.0f%% (model): %.0f GB/s, if a load takes %.0f ns as without "
                "load (%s), %.0f if %.0f; memory has %.0f",
                100 * least, 100 * most, best, kl_unloaded(c), c->unloaded > 0 ? "measured" : "assumed", worst,
                kl_latency(c), rate);
}

static void occupancy(const kl_explained *e, kl_span at, kl_diags *d)
{
    char need[32], have[32], one[32];
    if (!e->has_occ || !e->chip || e->chip->memory <= 0 || !e->under_way || e->ctas < e->chip->sms ||
        !e->occ.blocks || !e->memory_bound)
        return;
    /* blocks of a warp or so: half of the warps fit, and nothing but larger blocks would help */
    bool small = e->occ.limiter == 1u << KL_LIMIT_BLOCKS && e->occ.share < 1;
    bool few = e->occ.share < 0.5 || small;
    double want = kl_bytes_under_way(e->chip), fit = e->occ.blocks;
    /* a grid below one wave: there are no more blocks, which matters where each has much to load */
    bool part = e->ctas < e->waves.slots;
    if (part && !goes_round(e))
        return;
    if (part)
        fit = (double)e->ctas / e->chip->sms;
    double now = (double)e->under_way * fit;
    /* with many warps, only what is too little even for the latency of memory that is not busy; else
     * what is too little for nine tenths of the bandwidth */
    double calm = kl_unloaded(e->chip) / kl_latency(e->chip);
    if (now >= want * (few || part ? 0.9 : calm))
        return;
    struct kl_diag *g =
        part  ? kl_diag(d, KL_K2301, at,
                        "the grid has %.3g block%s for a multiprocessor, on which %u fit, and they do "
                        "not keep memory busy",
                        fit, fit == 1 ? "" : "s", e->occ.blocks)
        : few ? kl_diag(d, KL_K2301, at,
                        "%.3g%% of the warps fit on a multiprocessor, and they do not keep memory busy",
                        100 * e->occ.share)
              : kl_diag(d, KL_K2301, at, "the loads of all warps of a multiprocessor do not keep memory "
                                         "busy: each has few under way");
    kl_note(g, nowhere,
            "%.3g block%s a multiprocessor, loads of %s each: %s under way; %s needs %s (%.0f GB/s x %.0f "
            "ns / %u, the latency is %s)",
            fit, fit == 1 ? "" : "s", kl_explain_bytes((double)e->under_way, one),
            kl_explain_bytes(now, have), e->chip->name, kl_explain_bytes(want, need),
            kl_memory_rate(e->chip),
            kl_latency(e->chip), e->chip->sms, e->chip->latency > 0 ? "measured" : "assumed");
    for (int i = 0; i < KL_NLIMIT; i++) {
        if (!(e->occ.limiter & 1u << i) || part || !few)
            continue;
        if (i == KL_LIMIT_BLOCKS)
            kl_note(g, nowhere, "a multiprocessor takes no more than %u blocks", e->occ.blocks);
        else
            kl_note(g, nowhere, "%s stop%s more", kl_limit_name[i],
                    i == KL_LIMIT_SHARED ? "s" : "");
        say_step(e, g, (enum kl_limit)i);
    }
    if (part)
        kl_note(g, nowhere, "help: more programs: smaller tiles, or a long loop that is split over programs, "
                            "whose parts a second kernel joins");
    kl_note(g, nowhere, "help: tiles %s times as large, or several loads before the first use, have as "
                        "much under way%s",
            counted(want / now, one), small ? "; more warps alone load no more" : "");
    gain(g, 1 - now / want, "the time");
    between(e, g, now);
}

/* What is expected, neither the most nor the least. */
static void about(struct kl_diag *g, double share)
{
    kl_note(g, nowhere, "expected gain: about %.0f%% of the time", 100 * share);
}

/* Where memory is the bound: what so few blocks can ask of it, and what more of them would save.  No
 * launch is faster than one load. */
static void few_under_way(const kl_explained *e, struct kl_diag *g)
{
    char one[32];
    double rate = kl_memory_rate(e->chip), wait = kl_unloaded(e->chip);
    double now = (double)e->ctas * (double)e->under_way / wait;
    double idle = 1 - (double)e->ctas / e->chip->sms;
    if (rate <= 0 || now <= 0 || now >= rate || e->bytes <= 0 || !e->memory_bound) {
        e->memory_bound ? gain(g, idle, "the time") : about(g, idle);
        return;
    }
    double took = kl_floor_us(e->bytes, now), best = kl_floor_us(e->bytes, rate);
    best = best > wait * 1e-3 ? best : wait * 1e-3;
    if (best < 0.99 * took)
        about(g, 1 - best / took);
    else
        kl_note(g, nowhere, "expected gain: next to none; so little is loaded that it takes as long as one load, "
                            "%.0f ns (%s)", wait, e->chip->unloaded > 0 ? "measured" : "assumed");
    if (best < 0.99 * took)
        kl_note(g, nowhere,
                "of the kernel's time: about %.0f%% (model): loads of %s under way in each block carry "
                "%.3g GB/s at %.0f ns (without load, %s), and memory %.0f: %.3g us, then %.3g",
                100 * (1 - best / took), kl_explain_bytes((double)e->under_way, one), now,
                wait, e->chip->unloaded > 0 ? "measured" : "assumed", rate, took, best);
}

static void grid(const kl_explained *e, kl_span at, kl_diags *d)
{
    const kl_waves *w = &e->waves;
    if (!e->chip || !e->ctas)
        return;
    if (e->ctas < e->chip->sms) {
        struct kl_diag *g =
            kl_diag(d, KL_K2303, at,
                    "a grid of %llu block%s on %u multiprocessors: %u of them do nothing",
                    (unsigned long long)e->ctas, e->ctas == 1 ? "" : "s", e->chip->sms,
                    e->chip->sms - (uint32_t)e->ctas);
        kl_note(g, nowhere, "help: smaller tiles make more programs; a long loop can be split over "
                            "programs, whose parts a second kernel joins");
        few_under_way(e, g);
        return;
    }
    if (!e->has_occ || !w->slots || w->whole < 1 || w->tail < 0.2 || w->efficiency > 0.95 ||
        (e->tail.known && e->tail.gain < 0.05))
        return;
    uint64_t most = (e->ctas + e->chip->sms - 1) / e->chip->sms;
    double mean = (double)e->ctas / e->chip->sms;
    struct kl_diag *g =
        kl_diag(d, KL_K2302, at, "%.2f waves: the last one holds %llu of %llu blocks", w->waves,
                (unsigned long long)w->rest, (unsigned long long)w->slots);
    kl_note(g, nowhere,
            "a wave is %llu blocks: %u multiprocessors x %u; the busiest one gets %llu blocks in all, "
            "the mean is %.2f",
            (unsigned long long)w->slots, e->chip->sms, e->occ.blocks, (unsigned long long)most, mean);
    kl_note(g, nowhere,
            "help: share the work evenly among %llu blocks, %llu full wave%s, each of which loops over its "
            "part; or let all programs fit at once: fewer warps with more work for a thread",
            (unsigned long long)(w->slots * w->whole), (unsigned long long)w->whole,
            w->whole == 1 ? "" : "s");
    kl_note(g, nowhere,
            "smaller programs alone bring less: those of a wave end together, and the first multiprocessors "
            "with room take several of those that are left");
    if (!e->tail.known) {
        gain(g, 1 - w->efficiency, "the time");
        return;
    }
    about(g, e->tail.gain);
    if (e->tail.last_us > 0)
        kl_note(g, nowhere,
                "memory is the bound (model): blocks of the last wave have it for themselves, but too few "
                "loads under way; they take %.3g us, and %.3g if memory were busy",
                e->tail.last_us, e->tail.ideal_us);
    else
        kl_note(g, nowhere,
                "what multiprocessors do is the bound, not memory (model): blocks on one share it, so the time "
                "goes with the number on the busiest one: 1 - %.2f / %llu",
                mean, (unsigned long long)most);
    kl_note(g, nowhere,
            "1 / (full waves + 1) = %.0f%% bounds it, where a block takes as long alone as among others",
            100 * w->tail);
}

static void spills(const kl_explained *e, kl_span at, kl_diags *d)
{
    const kl_regs *r = &e->regs;
    char bytes[32];
    if (!r->spill_stores && !r->spill_loads)
        return;
    if (r->from == KL_REGS_DRIVER) {
        struct kl_diag *g = kl_diag(d, KL_K2401, at,
                                    "%u bytes a thread lie in local memory (driver)", r->stack);
        kl_note(g, nowhere, "help: smaller tiles, or more threads for them: warps(...) of the kernel");
        return;
    }
    double moved = (double)(r->spill_stores + r->spill_loads) * e->info.threads * (double)e->ctas;
    if (moved < 0.02 * e->bytes && !goes_round(e))
        return;
    struct kl_diag *g =
        kl_diag(d, KL_K2401, at,
                "registers spill: %u bytes of stores and %u of loads a thread (ptxas, %u registers)",
                r->spill_stores, r->spill_loads, r->registers);
    kl_note(g, nowhere, "%s through the cache if each runs once; the kernel's own traffic is %s",
            kl_explain_bytes(moved, bytes), kl_explain_bytes(e->bytes, (char[32]){0}));
    kl_note(g, nowhere, "help: smaller tiles, or more threads for them: warps(...) of the kernel");
    if (goes_round(e))
        kl_note(g, nowhere, "expected gain: not known, there is a loop: what spills in it does so in each "
                            "trip");
    else
        gain(g, moved / (moved + e->bytes), "the bytes that pass the cache");
    if (!e->has_times || goes_round(e))
        return;
    /* Of local memory that is larger than the L2 cache a part passes memory each time. */
    kl_times now = e->times;
    double held = e->chip->l2 * 1024 * 1024;
    double lies = (double)(r->stack ? r->stack : r->spill_stores) * e->info.threads *
                  (double)(e->ctas < e->waves.slots || !e->waves.slots ? e->ctas : e->waves.slots);
    now.us[KL_BUSY_L2] += kl_floor_us(moved, kl_l2_rate(e->chip));
    if (held > 0 && lies > held)
        now.us[KL_BUSY_MEMORY] += kl_floor_us(moved * (1 - held / lies), kl_memory_rate(e->chip));
    kl_note(g, nowhere, "%s", kl_times_text(g->a, &now, &e->times));
}

/* Atomics in a clock on an H200, as bench/results/advice-h200-2026-11-30.md has them: those of one line of
 * 128 bytes alone, those of each line where there are more, and those of all. */
static const double ONE_LINE = 0.69, EACH_LINE = 0.25, ALL_LINES = 46;
enum { LINE = 128, COPIES = 64 };

static double atomics_a_clock(double lines)
{
    double n = EACH_LINE * lines;
    return n < ONE_LINE ? ONE_LINE : n > ALL_LINES ? ALL_LINES : n;
}

/* Atomics that find one line follow each other.  How many lines there are is counted where the indices
 * are known; where they are not, it is those of the array at best. */
static void meet(const kl_explained *e, kl_diags *d)
{
    double clock = e->chip ? e->chip->clock : 0, bandwidth = e->bandwidth;
    for (uint32_t i = 0; e->model && clock > 0 && bandwidth > 0 && i < e->model->access.n; i++) {
        const kl_model_access *a = &e->model->access.v[i];
        if (a->dir != KL_MODEL_ATOMIC)
            continue;
        const kl_model_array *w = NULL;
        for (uint32_t k = 0; k < e->model->array.n; k++)
            if (e->model->array.v[k].param == a->param)
                w = &e->model->array.v[k];
        const struct kl_type *t = kl_access_tile(e->in->f, a->at);
        bool known = a->unknown == 0 && a->t.lanes > 0;
        double n = known ? (double)a->t.lanes : (double)a->runs * (double)kl_numel(t);
        double bytes = !w ? 0 : known ? (double)w->unique_written : (double)w->whole;
        if (bytes <= 0)
            continue;
        double lines = known ? (double)w->lines : (double)((w->whole + LINE - 1) / LINE);
        double floor = kl_floor_us(e->bytes, bandwidth);
        double us = n / atomics_a_clock(lines) / clock, then = n / atomics_a_clock(COPIES * lines) / clock;
        then = then > floor ? then : floor;
        if (us <= floor || us < 1 || then > 0.8 * us) /* less than a launch takes; or copies bring little */
            continue;
        char each[32], in[32];
        struct kl_diag *g = kl_diag(d, KL_K2104, a->loc, "atomics that meet: %s%s of them for each element of `%s`%s",
                                    known ? "" : "up to ", counted(n * kl_elems[a->elem].bytes / bytes, each), a->name,
                                    known ? " that is changed" : ", the indices being data");
        kl_note(g, nowhere, "%s line%s of 128 bytes take%s %.3g in a clock (as measured on an H200: %.2f each, one "
                            "alone %.2f, all %.0f at most): %.*f us of %.0f MHz, where memory needs %.3g us",
                counted(lines, in), lines == 1 ? "" : "s", lines == 1 ? "s" : "", atomics_a_clock(lines), EACH_LINE,
                ONE_LINE, ALL_LINES, us < 100, us, clock, floor);
        kl_note(g, nowhere, "help: let programs add to copies, as %s[program_id(0) %% %d][...], which a second "
                            "kernel joins; where few elements are changed, fold in the program first: "
                            "sum(x == k)", a->name, COPIES);
        kl_note(g, nowhere, "expected gain: about %.0f%% of the time by %d copies: %.*f us, then %.3g (model)",
                100 * (1 - then / us), COPIES, us < 100, us, then);
    }
}

void kl_explain_rules(const kl_explained *e, kl_span at, kl_diags *d)
{
    occupancy(e, at, d);
    grid(e, at, d);
    spills(e, at, d);
    meet(e, d);
}
