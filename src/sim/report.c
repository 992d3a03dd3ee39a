/* report.c - findings: one for an instruction and a cause, with the first instance. */
#include <stdio.h>

#include "sim/lane.h"

enum { MAX_FINDINGS = 100 };

bool kl_sim_known(struct sim_warp *w, const struct sim_ins *i, enum kl_code code, uint32_t lanes)
{
    struct sim_run *r = w->run;
    uint32_t at = sim_index(w, i);
    for (uint32_t k = 0; k < r->finding.n; k++)
        if (r->finding.v[k].ins == at && r->finding.v[k].code == code) {
            r->finding.v[k].n += (uint32_t)sim_popc(lanes);
            return true;
        }
    return r->finding.n == MAX_FINDINGS;
}

void kl_sim_report(struct sim_warp *w, const struct sim_ins *i, enum kl_code code, uint32_t lanes,
                   const char *fmt, ...)
{
    struct sim_run *r = w->run;
    if (kl_sim_known(w, i, code, lanes))
        return;
    struct sim_finding f = {.ins = sim_index(w, i), .code = code, .n = (uint32_t)sim_popc(lanes)};
    va_list ap;
    va_start(ap, fmt);
    f.text = kl_vprintf(&r->a, fmt, ap);
    va_end(ap);
    uint32_t t = w->id * LANES + (lanes ? sim_first(lanes) : 0);
    const uint32_t *b = r->l->block, *at = w->cta->ctaid;
    f.who = kl_printf(&r->a, "thread (%u,%u,%u) of CTA (%u,%u,%u)", t % b[0], t / b[0] % b[1],
                      t / b[0] / b[1], at[0], at[1], at[2]);
    kl_push(&r->a, &r->finding, f);
}

/* The place of .loc as a note: its file is not among the sources of the map. */
static void note_loc(const struct sim_run *r, struct kl_diag *g, const struct sim_ins *i)
{
    const struct kl_sim *m = r->m;
    if (!i->loc || i->loc > m->nloc)
        return;
    const struct sim_loc *l = &m->loc[i->loc - 1];
    const char *file = l->file < m->nfile ? m->file[l->file] : NULL;
    if (!file)
        return;
    kl_note(g, (kl_span){0, 0}, "the instruction comes from here");
    g->note.v[g->note.n - 1].place =
        (kiln_place){kl_strndup(g->a, file, strlen(file)), l->line, l->col, l->col + 1, NULL};
}

void kl_sim_findings(struct sim_run *r, kl_diags *d)
{
    for (uint32_t k = 0; k < r->finding.n; k++) {
        const struct sim_finding *f = &r->finding.v[k];
        const struct sim_ins *i = &r->f->ins[f->ins];
        struct kl_diag *g = kl_diag(d, f->code, i->span, "%s", f->text);
        if (f->n > 1)
            kl_note(g, (kl_span){0, 0}, "first by %s; %llu times in all", f->who,
                    (unsigned long long)f->n);
        else
            kl_note(g, (kl_span){0, 0}, "by %s", f->who);
        note_loc(r, g, i);
    }
}
