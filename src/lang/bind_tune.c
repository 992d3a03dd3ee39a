/* bind_tune.c - what was tuned, and what may be tuned. */
#include "lang/binder.h"

/* A constant as the launch has it: given, or by a default that needs nothing more. */
static bool constant(struct binder *s, uint32_t p, int64_t *out)
{
    const kl_node *n = s->params->kid[p], *def = kl_param_default(n);
    *out = (int64_t)s->b[p].bits;
    if (s->known[p])
        return true;
    if (!def || kl_bind_unknown(s, def) != -1)
        return false;
    kl_value v = kl_rvalue(&s->e, def);
    v = kl_move(&s->e, v, (enum kl_elem)s->b[p].elem, KL_CONSTINIT, "the default value");
    *out = (int64_t)v.bits;
    return v.kind == KL_V_TILE && v.known && !v.rank;
}

/* The constants that an entry is for. */
static bool has(struct binder *s, const struct kl_tuned *t)
{
    for (uint32_t i = 0; i < t->nwith; i++) {
        int64_t v = 0;
        uint32_t p = 0;
        while (p < s->n && strcmp(s->params->kid[p]->name, t->with[i].name) != 0)
            p++;
        int k = p == s->n ? kl_knob_of(t->with[i].name) : -1;
        if (k >= 0)
            v = s->out->knob[k];
        if ((k < 0 && (p == s->n || !constant(s, p, &v))) || v != t->with[i].v)
            return false;
    }
    return true;
}

static bool fits(struct binder *s, const struct kl_tuned *t)
{
    for (uint32_t i = 0; i < t->nwhen; i++) {
        bool ok = false;
        for (uint32_t p = 0; p < s->n && !ok; p++) {
            const kl_node *n = s->params->kid[p];
            if (strcmp(n->name, t->when[i].name) != 0)
                continue;
            int64_t v = s->known[p] ? kl_size_class((int64_t)s->b[p].bits) : -1;
            ok = kl_param_kind(n) == KL_PK_TYPE ? s->b[p].elem == t->when[i].v
                 : t->when[i].least             ? v >= t->when[i].v
                                                : v == t->when[i].v;
        }
        if (!ok)
            return false;
    }
    return has(s, t);
}

/* The caller's constants stay. */
static void use(struct binder *s, const struct kl_tuned *t)
{
    for (uint32_t i = 0; i < t->nuse; i++) {
        const struct kl_tunedval *u = &t->use[i];
        uint32_t p = 0;
        while (p < s->n && strcmp(s->params->kid[p]->name, u->name) != 0)
            p++;
        int k = p == s->n ? kl_knob_of(u->name) : -1;
        if (k >= 0 && !s->out->knob[k] && u->v >= 0 && u->v <= KL_KNOB_MOST) {
            s->out->knob[k] = (int32_t)u->v;
            s->out->tuned = true;
        } else if (p < s->n && kl_param_kind(s->params->kid[p]) == KL_PK_CONST && !s->known[p]) {
            const kiln_arg a = {.name = u->name, .kind = KILN_ARG_INT, .u = {.i = u->v}};
            s->out->tuned |= kl_bind_number(s, p, &a);
        }
    }
}

void kl_bind_tuned(struct binder *s, const kl_module_ast *m, const kl_node *kernel)
{
    for (uint32_t i = m->ntuned; i-- > 0;)
        if (strcmp(m->tuned[i].kernel, kernel->name) == 0 && fits(s, &m->tuned[i])) {
            s->out->tuned_line = m->tuned[i].line;
            use(s, &m->tuned[i]);
            return;
        }
}

/* ---- what the tune clause names ---- */

/* What one variable of the tune clause may be, without repetitions. */
static void space_var(struct binder *s, const kl_node *t, struct kl_spacevar *v)
{
    int k = kl_knob_of(t->name);
    bool truth = false;
    *v = (struct kl_spacevar){.name = t->name, .span = t->span, .knob = true};
    for (uint32_t p = 0; p < s->n; p++)
        if (s->params->kid[p]->name == t->name) {
            v->knob = false;
            truth = s->b[p].elem == KL_bool;
            v->preset = (int64_t)s->b[p].bits;
            if (kl_is_float((enum kl_elem)s->b[p].elem))
                kl_bind_problem(s, KL_K0306, t, "`%s` is a decimal: whole numbers can be tuned",
                                t->name);
        }
    if (v->knob && k >= 0)
        v->preset = s->out->knob[k];
    v->v = kl_new_n(s->e.a, int64_t, t->nkid + 1);
    for (uint32_t i = 0; i < t->nkid; i++) {
        int64_t x = 0;
        bool old = false;
        kl_value b = truth ? kl_to_bool(&s->e, kl_rvalue(&s->e, t->kid[i])) : kl_bad(t->span);
        if (truth && (b.kind != KL_V_TILE || !b.known || b.rank))
            kl_bind_problem(s, KL_K0306, t->kid[i], "a value to try must be a constant");
        else if (truth)
            x = b.bits != 0;
        if (!s->ok || (!truth && !kl_bind_i64(s, t->kid[i], "a value to try", &x)))
            return;
        for (uint32_t j = 0; j < v->n; j++)
            old |= v->v[j] == x;
        if (!old)
            v->v[v->n++] = x;
    }
}

void kl_bind_fill_space(struct binder *s, const kl_node *clauses, kl_space *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < clauses->nkid; i++)
        n += clauses->kid[i]->kind == KL_N_TUNE ? clauses->kid[i]->nkid : 0;
    *out = (kl_space){.var = kl_new_n(s->e.a, struct kl_spacevar, n + 1)};
    for (uint32_t i = 0; i < clauses->nkid && s->ok; i++)
        for (uint32_t j = 0;
             clauses->kid[i]->kind == KL_N_TUNE && j < clauses->kid[i]->nkid && s->ok; j++)
            space_var(s, clauses->kid[i]->kid[j], &out->var[out->nvar++]);
}
