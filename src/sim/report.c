/* report.c - findings: one for an instruction and a cause, with the first instance. */
#include <stdio.h>

#include "sim/lane.h"

enum { MAX_FINDINGS = 100 };

bool kl_sim_known(struct sim_warp *w, const struct sim_ins *i, enum kl_code code, uint32_t lanes)
{
    struct sim_run *r = w->run;
    uint32_t at = kl_sim_site(r, sim_index(w, i));
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
    struct sim_finding f = {.ins = kl_sim_site(r, sim_index(w, i)), .code = code, .n = (uint32_t)sim_popc(lanes)};
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

/* The place of .loc; false: there is none. */
static bool place_of(const struct sim_run *r, kl_arena *a, const struct sim_ins *i, kiln_place *out)
{
    const struct kl_sim *m = r->m;
    if (!i->loc || i->loc > m->nloc)
        return false;
    const struct sim_loc *l = &m->loc[i->loc - 1];
    const char *file = l->file < m->nfile ? m->file[l->file] : NULL;
    if (!file)
        return false;
    *out = (kiln_place){kl_strndup(a, file, strlen(file)), l->line, l->col, l->col + 1, NULL};
    const kl_srcmap *s = r->opt.source;
    for (uint32_t k = 0; s && k < s->files.n; k++) { /* the text of the line */
        const struct kl_file *f = &s->files.v[k];
        const char *p = f->text, *end = f->text + f->len;
        if (strcmp(f->name, file) != 0)
            continue;
        for (uint32_t n = 1; n < l->line && p < end; n++) {
            const char *q = memchr(p, '\n', (size_t)(end - p));
            p = q ? q + 1 : end;
        }
        const char *q = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        out->text = kl_strndup(a, p, (size_t)((q ? q : end) - p));
        break;
    }
    return true;
}

static void note_at(struct kl_diag *g, kiln_place place, const char *text)
{
    kl_note(g, (kl_span){0, 0}, "%s", text);
    g->note.v[g->note.n - 1].place = place;
}

/* What a check of global memory finds belongs to the Kiln source, the rest to the PTX. */
static bool at_source(const struct sim_run *r, enum kl_code code)
{
    return r->global && (code < KL_K1501 || code == KL_K1509 || code == KL_K1701);
}

void kl_sim_findings(struct sim_run *r, kl_diags *d)
{
    for (uint32_t k = 0; k < r->finding.n; k++) {
        const struct sim_finding *f = &r->finding.v[k];
        const struct sim_ins *i = &r->f->ins[f->ins];
        enum kl_code code = r->global && f->code == KL_K1509 ? KL_K1303 : f->code;
        struct kl_diag *g = kl_diag(d, code, i->span, "%s", f->text);
        kiln_place at, ptx = g->pub.place;
        bool source = at_source(r, f->code) && place_of(r, g->a, i, &at);
        if (source)
            g->pub.place = at;
        if (f->whom && r->f->ins[f->other - 1].loc != i->loc &&
            place_of(r, g->a, &r->f->ins[f->other - 1], &at)) {
            kl_note(g, (kl_span){0, 0}, "%s", f->who);
            note_at(g, at, f->whom);
        } else if (f->whom) {
            kl_note(g, (kl_span){0, 0}, "%s; %s", f->who, f->whom);
        } else if (f->n > 1) {
            kl_note(g, (kl_span){0, 0}, "first by %s; %llu times in all", f->who,
                    (unsigned long long)f->n);
        } else {
            kl_note(g, (kl_span){0, 0}, "by %s", f->who);
        }
        if (f->help)
            kl_note(g, (kl_span){0, 0}, "%s", f->help);
        if (source)
            note_at(g, ptx, "the instruction");
        else if (place_of(r, g->a, i, &at)) {
            at.text = NULL;
            note_at(g, at, "the instruction comes from here");
        }
    }
    if (kl_sim_global_unseen(r))
        kl_diag(d, KL_K1305, (kl_span){0, 0}, "races were not looked for: the arrays that are written "
                                              "have too many elements");
}
