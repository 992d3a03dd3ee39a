/* bind_deduce.c - deduction: an extent or stride that is linear in one unknown name gives it. */
#include "lang/binder.h"

int kl_bind_unknown(struct binder *s, const kl_node *n)
{
    int u = -1;
    if (!n)
        return -1;
    if (n->kind == KL_N_NAME || n->kind == KL_N_TYPE)
        for (uint32_t p = 0; p < s->n; p++)
            if (s->params->kid[p]->name == n->name &&
                kl_param_kind(s->params->kid[p]) != KL_PK_ARRAY && !s->known[p])
                return (int)p;
    for (uint32_t i = 0; i < n->nkid; i++) {
        int v = kl_bind_unknown(s, n->kid[i]);
        if (v == -2 || (u >= 0 && v >= 0 && u != v))
            return -2;
        if (v >= 0)
            u = v;
    }
    return u;
}

bool kl_bind_steps(struct binder *s, const kl_node *n, struct kl_source *o)
{
    if (n->kind == KL_N_NAME)
        return true;
    if (n->kind == KL_N_CAST)
        return kl_bind_steps(s, n->kid[1], o);
    if (o->nstep == KL_BACK_STEPS)
        return false;
    struct kl_back *t = &o->step[o->nstep];
    if (n->kind == KL_N_UNARY && (n->op == KL_TK_SUB || n->op == KL_TK_ADD)) {
        if (n->op == KL_TK_SUB)
            *t = (struct kl_back){'n', 0}, o->nstep++;
        return kl_bind_steps(s, n->kid[0], o);
    }
    if (n->kind != KL_N_BINARY)
        return false;
    bool left = kl_bind_unknown(s, n->kid[0]) >= 0, right = kl_bind_unknown(s, n->kid[1]) >= 0;
    if (left == right)
        return false;
    s->e.quiet++;
    kl_value v = kl_scalar_i64(&s->e, n->kid[left ? 1 : 0], "this");
    s->e.quiet--;
    if (v.kind != KL_V_TILE || !v.known)
        return false;
    t->k = (int64_t)v.bits;
    switch (n->op) {
    case KL_TK_ADD: t->op = '+'; break;
    case KL_TK_SUB: t->op = left ? '-' : 'r'; break;
    case KL_TK_MUL:
        if (t->k == 0 || t->k == -1)
            return false;
        t->op = '*';
        break;
    case KL_TK_DIV:
        if (!left)
            return false;
        t->op = '/';
        break;
    default: return false;
    }
    o->nstep++;
    return kl_bind_steps(s, n->kid[left ? 0 : 1], o);
}

static bool deduce_from(struct binder *s, const kl_node *expr, int64_t have, const char *array)
{
    int64_t v = have;
    int u = kl_bind_unknown(s, expr);
    struct kl_source o = {.nstep = 0};
    if (u < 0 || kl_param_kind(s->params->kid[u]) == KL_PK_TYPE || !kl_bind_steps(s, expr, &o) ||
        !kl_place_back(o.step, o.nstep, &v))
        return false;
    const kl_node *p = s->params->kid[u];
    enum kl_elem el = (enum kl_elem)s->b[u].elem;
    if (!kl_is_int(el))
        return false;
    if (!kl_bind_fits(el, v)) {
        kl_bind_problem(s, KL_K0705, p,
                        "`%s` would be %lld by the shape of `%s`, and that does not fit %s",
                        p->name, (long long)v, array, kl_elems[el].name);
        return false;
    }
    s->b[u].bits = kl_canon(el, (uint64_t)v);
    s->from[u] = array;
    kl_bind_set(s, (uint32_t)u);
    return true;
}

int64_t kl_bind_stride(const kiln_tensor *t, uint32_t d)
{
    return kl_place_stride(t->ndim, t->shape, t->strides, (int)d);
}

void kl_bind_deduce(struct binder *s)
{
    /* strides of extents up to 1 mean nothing, but are better than no value: last */
    bool weak = false;
    for (bool more = true; s->ok && (more || !weak);) {
        weak |= !more;
        more = false;
        for (uint32_t p = 0; p < s->n; p++) {
            const kl_node *n = s->params->kid[p];
            if (!s->arg[p] || kl_param_kind(n) != KL_PK_ARRAY)
                continue;
            const kiln_tensor *t = &s->arg[p]->u.tensor;
            const kl_node *dims = kl_param_dims(n), *str = kl_param_strides(n);
            for (uint32_t i = 0; i < dims->nkid; i++) {
                if (dims->kid[i])
                    more |= deduce_from(s, dims->kid[i], t->shape[i], n->name);
                if (str && i < str->nkid && str->kid[i] && (weak || t->shape[i] > 1))
                    more |= deduce_from(s, str->kid[i], kl_bind_stride(t, i), n->name);
            }
        }
    }
}
