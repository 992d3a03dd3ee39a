/* count.c - sectors of global memory, wavefronts of shared memory, sums.
 *
 * The rules are those of src/layout, which plans with them: what the compiler
 * expects and what the executor counts cannot disagree. */
#include "layout/layout.h"
#include "sim/exec.h"
#include "sim/lane.h"

const char *const kl_sim_kind_text[KL_SIM_NKIND] = {
#define X(name, text) [KL_SIM_##name] = text,
    KL_SIM_KINDS(X)
#undef X
};

void kl_sim_count_access(struct sim_warp *w, const struct sim_ins *i, bool shared, uint32_t mask,
                         const uint64_t *addr, uint32_t bytes)
{
    kl_sim_traffic *t = &w->run->tally[sim_index(w, i)].traffic[shared];
    uint32_t n = (uint32_t)sim_popc(mask) * bytes;
    t->requests++;
    t->bytes += n;
    /* the usual case: 32 neighbours */
    uint64_t bad = mask != UINT32_MAX || (shared && bytes < 4);
    EACH_LANE bad |= addr[l] ^ (addr[0] + (uint64_t)l * bytes);
    if (!bad && shared) {
        t->parts += n / 128;
        t->ideal += n / 128;
    } else if (!bad) {
        t->parts += ((addr[0] + n - 1) >> 5) - (addr[0] >> 5) + 1;
        t->ideal += (n + 31) / 32;
    } else {
        uint32_t at[LANES];
        EACH_LANE at[l] = (uint32_t)addr[l];
        kl_count c = shared ? kl_wavefronts(at, mask, bytes) : kl_sectors(addr, mask, bytes);
        t->parts += c.units;
        t->ideal += c.ideal;
    }
}

void kl_sim_count_push(struct sim_warp *w, const struct sim_ins *i, bool first, uint32_t mask,
                       const uint64_t *addr, uint32_t bytes)
{
    kl_sim_count_access(w, i, true, mask, addr, bytes);
    w->run->tally[sim_index(w, i)].traffic[1].requests -= !first;
}

static void add(kl_sim_traffic *to, const kl_sim_traffic *t)
{
    to->requests += t->requests;
    to->bytes += t->bytes;
    to->parts += t->parts;
    to->ideal += t->ideal;
}

/* Traffic of an instruction: cp.async loads from global and stores to shared memory. */
static void add_ins(const struct sim_ins *i, const struct sim_tally *t, kl_sim_traffic *gl,
                    kl_sim_traffic *gs, kl_sim_traffic *sl, kl_sim_traffic *ss,
                    kl_sim_traffic *push, kl_sim_traffic *at)
{
    bool load = i->nd > 0;
    if (i->kind == KL_SIM_ATOM) {
        add(at, &t->traffic[0]);
        return;
    }
    add(load || i->kind == KL_SIM_ASYNC ? gl : gs, &t->traffic[0]);
    add(i->fn == kl_sim_x_st_async ? push : load ? sl : ss, &t->traffic[1]);
}

static bool line_before(const kl_sim_line *a, const char *file, uint32_t line)
{
    if (a->file != file) {
        if (!a->file || !file)
            return !a->file;
        int c = strcmp(a->file, file);
        if (c)
            return c < 0;
    }
    return a->line < line;
}

/* The entry of a place in the sorted list; a new one is put in between. */
static kl_sim_line *line_of(kl_sim_line *v, uint32_t *n, const char *file, uint32_t line)
{
    uint32_t lo = 0, hi = *n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (line_before(&v[mid], file, line))
            lo = mid + 1;
        else
            hi = mid;
    }
    bool same = lo < *n && v[lo].line == line &&
                (v[lo].file == file || (file && v[lo].file && !strcmp(v[lo].file, file)));
    if (!same) {
        memmove(&v[lo + 1], &v[lo], (*n - lo) * sizeof *v);
        memset(&v[lo], 0, sizeof *v);
        v[lo].file = file;
        v[lo].line = line;
        ++*n;
    }
    return &v[lo];
}

void kl_sim_counts_sum(struct sim_run *r, kl_sim_counts *out, kl_arena *a)
{
    memset(out, 0, sizeof *out);
    const struct kl_sim *m = r->m;
    uint32_t n = 0;
    kl_sim_line *line = a ? kl_new_n(a, kl_sim_line, r->f->nins + 1) : NULL;
    for (uint32_t k = 0; k < r->f->nins; k++) {
        const struct sim_ins *i = &r->f->ins[k];
        const struct sim_tally *t = &r->tally[k];
        if (!t->warps)
            continue;
        out->instructions[i->kind] += t->warps;
        out->lanes[i->kind] += t->lanes;
        add_ins(i, t, &out->gload, &out->gstore, &out->sload, &out->sstore, &out->push, &out->atomic);
        out->divergent += t->divergent;
        if (i->is_branch && i->pred != SIM_NONE)
            out->branches += t->warps;
        if (!line)
            continue;
        struct sim_loc loc = {0};
        if (i->loc && i->loc <= m->nloc)
            loc = m->loc[i->loc - 1];
        const char *file = loc.file < m->nfile ? m->file[loc.file] : NULL;
        kl_sim_line *x = line_of(line, &n, file, loc.line);
        x->instructions += t->warps;
        x->lanes += t->lanes;
        x->divergent += t->divergent;
        add_ins(i, t, &x->gload, &x->gstore, &x->sload, &x->sstore, &x->push, &x->atomic);
    }
    out->line = line;
    out->nline = n;
    out->barriers = r->barriers;
    out->cluster_barriers = r->cluster_barriers;
    out->ctas = r->cta_count;
    out->warps = r->cta_count * r->nwarp;
}
