/* bind_build.c - for kiln build: what is known without any launch, and what launches deduce. */
#include "lang/binder.h"

static void source(struct binder *s, kl_sources *out, uint32_t p, uint32_t i, const kl_node *expr,
                   bool stride)
{
    int u = expr ? kl_bind_unknown(s, expr) : -1;
    struct kl_source o = {.array = (uint16_t)p, .dim = (uint8_t)i, .stride = stride};
    if (u < 0 || kl_param_kind(s->params->kid[u]) == KL_PK_TYPE ||
        !kl_is_int((enum kl_elem)s->b[u].elem) || !kl_bind_steps(s, expr, &o))
        return;
    o.param = (uint16_t)u;
    kl_push(s->e.a, out, o);
}

static bool calls_num_sms(const kl_node *n)
{
    bool yes = n && n->kind == KL_N_CALL && n->name && strcmp(n->name, "num_sms") == 0;
    for (uint32_t i = 0; n && i < n->nkid; i++)
        yes |= calls_num_sms(n->kid[i]);
    return yes;
}

/* A default of a constant or initial value of an array that no launch changes. */
static void fixed_default(struct binder *s, uint32_t p)
{
    const kl_node *def = kl_param_default(s->params->kid[p]);
    struct kl_boundparam *b = &s->b[p];
    if (!def || kl_bind_unknown(s, def) != -1 || calls_num_sms(def))
        return;
    s->e.quiet++;
    kl_value v = kl_move(&s->e, kl_rvalue(&s->e, def), (enum kl_elem)b->elem, KL_CONSTINIT, "this");
    s->e.quiet--;
    if (v.kind != KL_V_TILE || !v.known || v.rank)
        return;
    b->bits = v.bits;
    s->known[p] = true;
    if (kl_param_kind(s->params->kid[p]) == KL_PK_CONST)
        kl_bind_set(s, p);
}

static void sources(struct binder *s, kl_sources *out)
{
    for (uint32_t p = 0; p < s->n; p++) {
        const kl_node *n = s->params->kid[p];
        if (kl_param_kind(n) != KL_PK_ARRAY)
            continue;
        const kl_node *dims = kl_param_dims(n), *str = kl_param_strides(n);
        for (uint32_t i = 0; dims && i < dims->nkid; i++) {
            source(s, out, p, i, dims->kid[i], false);
            if (str && i < str->nkid)
                source(s, out, p, i, str->kid[i], true);
        }
    }
}

bool kl_bind_build(kl_arena *a, const kl_module_ast *m, const kl_node *kernel, const kiln_arg *args,
                   size_t n, const bool *open, kl_bound *out, bool *known, kl_sources *src,
                   kl_diags *d)
{
    struct binder s;
    uint32_t errors = d->nerr;
    kl_bind_begin(&s, a, m, kernel, args, n, out, known, d);
    if (!s.ok)
        return false;
    kl_bind_declare(&s);
    if (!s.ok)
        return false;
    for (uint32_t p = 0; p < s.n; p++)
        if (s.arg[p] && kl_param_kind(s.params->kid[p]) == KL_PK_CONST &&
            !kl_bind_number(&s, p, s.arg[p]))
            return false;
    for (uint32_t p = 0; p < s.n; p++) {
        const kl_node *node = s.params->kid[p];
        enum kl_pk k = kl_param_kind(node);
        if (k == KL_PK_ARRAY) {
            s.b[p].rank = (int32_t)kl_param_dims(node)->nkid;
            s.b[p].given = !(node->flags & KL_NF_OPTIONAL);
            s.b[p].init = kl_param_default(node) != NULL;
        }
        if ((k == KL_PK_ARRAY || (k == KL_PK_CONST && !known[p])) && !(open && open[p]))
            fixed_default(&s, p);
    }
    if (src)
        sources(&s, src);
    return s.ok && d->nerr == errors;
}
