/* precheck.c - for the checks of SIM: what PTX does not show any more.
 *
 * PTX masks what lies outside the extents, divides by other means, and has no tiles with padding.
 * What the source alone can tell is found by running it in the interpreter first, on the arrays of
 * the launch, which are put back.  A loop that does not end there would not end as PTX, either:
 * then all checks are made in the interpreter.  Both find what a wrong address or place does: that
 * is told once. */
#include "gen/interp/interp.h"
#include "lib/lib.h"

enum {
    OF_SOURCE = KILN_CHECK_BOUNDS | KILN_CHECK_ARITH | KILN_CHECK_PADDING
};

struct precheck {
    struct kl_item *it;
    const struct kl_slot *slot;
    bool instead;
};

static kl_fn *lowered(struct kl_call *c, const struct kl_item *it)
{
    const kiln_context *ctx = it->k->mod->ctx;
    const kl_pipeline p = {.level = ctx->opt.opt_level ? ctx->opt.opt_level : 2, .skip = kl_not_interp};
    uint32_t n = c->d->list.n, warnings = c->d->nwarn;
    kl_fn *f = kl_lower(&c->tmp, it->k->mod->ast, &it->bound, c->d);
    c->d->list.n = n, c->d->nwarn = warnings; /* what it says was said when the PTX was made */
    if (f)
        kl_run_passes(f, &p, NULL);
    return f;
}

/* Arrays that the kernel writes, as they are; NULL: not one of these. */
static char **save(struct kl_call *c, const struct kl_item *it, const struct kl_slot *slot, size_t *size)
{
    char **v = kl_new_n(&c->tmp, char *, it->s->nslot + 1);
    for (uint32_t i = 0; i < it->s->nslot; i++) {
        if (it->s->slot[i].use != KL_P_ARRAY || !slot[i].base)
            continue;
        size[i] = (size_t)((const char *)slot[i].hi - (const char *)slot[i].lo);
        if (!size[i] || !(slot[i].hidden || it->k->param[it->s->slot[i].decl].writes))
            continue;
        v[i] = kl_alloc_zero(&c->tmp, size[i]);
        memcpy(v[i], slot[i].lo, size[i]);
    }
    return v;
}

static bool endless(const kl_diags *d, uint32_t from)
{
    for (uint32_t i = from; i < d->list.n; i++)
        if (strcmp(d->list.v[i]->pub.code, "K1701") == 0)
            return true;
    return false;
}

static kiln_status run(struct kl_call *c, void *arg)
{
    struct precheck *j = arg;
    const struct kl_item *it = j->it;
    const int64_t *g = it->bound.grid;
    kl_diags *d = c->d;
    unsigned all = it->k->mod->ctx->opt.checks;
    const kl_fn *f = lowered(c, it);
    if (!f)
        return KILN_E_COMPILE;
    uint32_t n = it->s->nslot, before = d->list.n, nerr = d->nerr, nwarn = d->nwarn;
    struct kl_slot *slot = kl_new_n(&c->tmp, struct kl_slot, n + 1);
    size_t *size = kl_new_n(&c->tmp, size_t, n + 1);
    char **saved = save(c, it, j->slot, size);
    for (uint32_t i = 0; i < n; i++) {
        slot[i] = j->slot[i];
        slot[i].shadow = NULL;
    }
    kl_launch l = {.slot = slot, .grid = {g[0], g[1], g[2]}, .num_sms = kl_num_sms(it->k->mod->ctx)};
    kiln_status st = kl_interp_run(f, &l, all & (OF_SOURCE | KILN_CHECK_LOOPS), d, &c->env, NULL, NULL);
    for (uint32_t i = 0; i < n; i++)
        if (saved[i])
            memcpy((char *)(uintptr_t)slot[i].lo, saved[i], size[i]);
    if (!endless(d, before))
        return st;
    d->list.n = before, d->nerr = nerr, d->nwarn = nwarn;
    j->instead = true;
    l.slot = j->slot;
    return kl_interp_run(f, &l, all, d, &c->env, NULL, NULL);
}

kiln_status kl_check_source(struct kl_call *c, struct kl_item *it, const struct kl_slot *slot,
                            bool *instead)
{
    struct precheck j = {it, slot, false};
    if (!(it->k->mod->ctx->opt.checks & (OF_SOURCE | KILN_CHECK_LOOPS)))
        return KILN_OK;
    kiln_status st = kl_guarded(c, &it->k->mod->ast->src, run, &j);
    *instead = j.instead;
    return st;
}

/* An address outside an array: where the source has it as a view outside its parent. */
static bool same_cause(const char *told, const char *again)
{
    return strcmp(told, again) == 0 || (strcmp(told, "K1204") == 0 && strcmp(again, "K1203") == 0);
}

void kl_drop_told(struct kl_call *c, uint32_t from, uint32_t to)
{
    kl_diags *d = c->d;
    uint32_t n = to;
    for (uint32_t i = to; i < d->list.n; i++) {
        const kiln_diag *g = &d->list.v[i]->pub;
        bool told = false;
        for (uint32_t k = from; k < to && !told; k++) {
            const kiln_diag *o = &d->list.v[k]->pub;
            told = same_cause(o->code, g->code) && g->place.file && o->place.file &&
                   g->place.line == o->place.line && strcmp(g->place.file, o->place.file) == 0;
        }
        if (told) {
            d->nerr -= g->severity == KILN_ERROR;
            d->nwarn -= g->severity == KILN_WARNING;
        } else {
            d->list.v[n++] = d->list.v[i];
        }
    }
    d->list.n = n;
}
