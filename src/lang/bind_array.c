/* bind_array.c - arrays: the layout that the kernel declares, the memory that the host gives. */
#include "lang/binder.h"

/* ---- the layout ---- */

static bool layout(struct binder *s, uint32_t p)
{
    const kl_node *n = s->params->kid[p], *dims = kl_param_dims(n), *str = kl_param_strides(n);
    struct kl_boundparam *b = &s->b[p];
    b->rank = (int32_t)dims->nkid;
    for (uint32_t i = 0; i < dims->nkid; i++) {
        if (!dims->kid[i]) {
            b->ext[i] = s->arg[p] ? s->arg[p]->u.tensor.shape[i] : 0;
            continue;
        }
        if (!kl_bind_i64(s, dims->kid[i], kl_printf(s->e.a, "an extent of `%s`", n->name),
                         &b->ext[i]))
            return false;
        if (b->ext[i] < 0) {
            kl_bind_problem(s, KL_K0710, dims->kid[i],
                            "the extent of `%s` along dimension %u would be %lld", n->name, i,
                            (long long)b->ext[i]);
            return false;
        }
    }
    unsigned declared = 0;
    for (uint32_t i = dims->nkid; i-- > 0;)
        if (str && i < str->nkid && str->kid[i]) {
            if (!kl_bind_i64(s, str->kid[i], kl_printf(s->e.a, "a stride of `%s`", n->name),
                             &b->str[i]))
                return false;
            declared |= 1u << i;
        }
    if (!kl_place_dense(b->rank, b->ext, declared, b->str)) {
        kl_bind_problem(s, KL_K0709, n, "`%s` is larger than memory can be", n->name);
        return false;
    }
    return true;
}

static void explain_extent(struct binder *s, struct kl_diag *g, const kl_node *n)
{
    if (!n)
        return;
    if (n->kind == KL_N_NAME)
        for (uint32_t p = 0; p < s->n; p++) {
            if (s->params->kid[p]->name != n->name || !s->known[p])
                continue;
            if (s->from[p])
                kl_note(g, (kl_span){0, 0}, "`%s` is %lld by the shape of `%s`", n->name,
                        (long long)s->b[p].bits, s->from[p]);
            else if (s->arg[p] && kl_param_kind(s->params->kid[p]) == KL_PK_SCALAR)
                kl_note(g, (kl_span){0, 0}, "`%s` is given as %lld", n->name,
                        (long long)s->b[p].bits);
        }
    for (uint32_t i = 0; i < n->nkid; i++)
        explain_extent(s, g, n->kid[i]);
}

/* The strides clause that would describe the array given. */
static void propose_stride(struct binder *s, struct kl_diag *g, const kl_node *n,
                           const kiln_tensor *t)
{
    kl_buf b = {.a = s->e.a};
    kl_puts(&b, " stride(");
    for (int32_t i = 0; i < t->ndim; i++) {
        int64_t k = kl_bind_stride(t, (uint32_t)i);
        if (i + 1 == t->ndim && k == 1)
            kl_puts(&b, "1");
        else
            kl_putf(&b, "%s_s%d", n->name, i);
        kl_puts(&b, i + 1 < t->ndim ? ", " : ")");
    }
    kl_note(g, kl_param_dims(n)->span,
            "say so with `%s` behind the extents, and declare i64 parameters for "
            "the strides",
            kl_buf_str(&b) + 1);
}

static bool compare_array(struct binder *s, uint32_t p)
{
    const kl_node *n = s->params->kid[p], *dims = kl_param_dims(n);
    struct kl_boundparam *b = &s->b[p];
    const kiln_tensor *t = &s->arg[p]->u.tensor;
    bool empty = false;
    for (uint32_t i = 0; i < dims->nkid; i++) {
        empty |= t->shape[i] == 0;
        if (b->ext[i] == t->shape[i])
            continue;
        struct kl_diag *g = kl_bind_problem(
            s, KL_K0707, dims->kid[i] ? dims->kid[i] : n,
            "`%s` has shape %s, and its extent along dimension %u must be %lld", n->name,
            kl_bind_shape_text(s, (uint32_t)t->ndim, t->shape), i, (long long)b->ext[i]);
        explain_extent(s, g, dims->kid[i]);
        return false;
    }
    for (uint32_t i = 0; i < dims->nkid && !empty; i++) {
        int64_t have = kl_bind_stride(t, i);
        if (t->shape[i] <= 1 || have == b->str[i])
            continue;
        struct kl_diag *g = kl_bind_problem(
            s, KL_K0708, n, "`%s` has the stride %lld along dimension %u, and it must be %lld",
            n->name, (long long)have, i, (long long)b->str[i]);
        if (!kl_param_strides(n))
            propose_stride(s, g, n, t);
        return false;
    }
    return true;
}

/* ---- the memory ---- */

static bool place(struct binder *s, uint32_t p)
{
    const kl_node *n = s->params->kid[p];
    struct kl_boundparam *b = &s->b[p];
    struct kl_place at = kl_place_of(b);
    if (!kl_place_span(&at)) {
        kl_bind_problem(s, KL_K0709, n, "`%s` of shape %s is larger than memory can be", n->name,
                        kl_bind_shape_text(s, (uint32_t)b->rank, b->ext));
        return false;
    }
    if (!s->arg[p] || s->flags & KL_BIND_SHAPES_ONLY)
        return true;
    const kiln_tensor *t = &s->arg[p]->u.tensor;
    int64_t lo = at.lo, hi = at.hi;
    b->data = t->data;
    if (!t->data && hi > lo) {
        kl_bind_problem(s, KL_K0709, n, "`%s` has no memory", n->name);
        return false;
    }
    if (t->size_bytes && (uint64_t)hi > t->size_bytes) {
        kl_bind_problem(s, KL_K0709, n,
                        "`%s` of shape %s spans %lld bytes, and its memory has %llu", n->name,
                        kl_bind_shape_text(s, (uint32_t)b->rank, b->ext), (long long)hi,
                        (unsigned long long)t->size_bytes);
        return false;
    }
    if (t->data && (uintptr_t)t->data % kl_elems[b->elem].bytes) {
        kl_bind_problem(s, KL_K0709, n, "`%s` is not aligned to its elements of %u bytes", n->name,
                        kl_elems[b->elem].bytes);
        return false;
    }
    if (t->size_bytes && (int64_t)t->size_bytes > hi)
        hi = (int64_t)t->size_bytes;
    b->lo = (const char *)t->data + lo;
    b->hi = (const char *)t->data + hi;
    return true;
}

static bool coincides(const struct kl_boundparam *b)
{
    struct kl_place p = kl_place_of(b);
    return kl_place_coincides(&p);
}

static bool overlap(const struct kl_boundparam *a, const struct kl_boundparam *b)
{
    struct kl_place x = kl_place_of(a), y = kl_place_of(b);
    return kl_place_span(&x) && kl_place_span(&y) && kl_place_overlap(&x, &y);
}

void kl_bind_arrays(struct binder *s)
{
    for (uint32_t p = 0; p < s->n && s->ok; p++) {
        const kl_node *n = s->params->kid[p];
        if (kl_param_kind(n) != KL_PK_ARRAY)
            continue;
        struct kl_boundparam *b = &s->b[p];
        if (!s->arg[p] && n->flags & KL_NF_OPTIONAL && !(s->flags & KL_BIND_SHAPES_ONLY)) {
            b->rank = (int32_t)kl_param_dims(n)->nkid;
            continue; /* nothing is asked of an array that is not there */
        }
        if (!layout(s, p))
            return;
        if (n->flags & KL_NF_DEBUG) { /* the launch gives its memory */
            b->given = true;
            continue;
        }
        b->given = s->arg[p] || (s->flags & KL_BIND_SHAPES_ONLY && !(n->flags & KL_NF_OPTIONAL));
        if (s->arg[p] && (!compare_array(s, p)))
            return;
        if (!place(s, p))
            return;
        const kl_node *init = kl_param_default(n);
        if (init) {
            kl_value v = kl_move(&s->e, kl_rvalue(&s->e, init), (enum kl_elem)b->elem, KL_CONSTINIT,
                                 "the initial value");
            if (v.kind != KL_V_TILE || !v.known) {
                if (s->ok)
                    kl_bind_problem(s, KL_K0713, init,
                                    "the initial value of `%s` has no value here", n->name);
                return;
            }
            b->init = true;
            b->bits = v.bits;
        }
        if (!b->given && !(n->flags & KL_NF_OPTIONAL) && !(s->flags & KL_BIND_SHAPES_ONLY)) {
            kl_bind_problem(s, KL_K0706, n, "the array `%s` is not given", n->name);
            return;
        }
        if (b->given && n->flags & KL_NF_WRITTEN && coincides(b)) {
            kl_bind_problem(s, KL_K0714, n,
                            "`%s` is written, and elements of the array given lie in one place",
                            n->name);
            return;
        }
    }
}

void kl_bind_aliases(struct binder *s, kl_bound *out)
{
    for (uint32_t p = 0; p < s->n; p++)
        for (uint32_t q = 0; q < s->n; q++) {
            const kl_node *w = s->params->kid[p], *o = s->params->kid[q];
            if (p == q || kl_param_kind(w) != KL_PK_ARRAY || kl_param_kind(o) != KL_PK_ARRAY ||
                !s->b[p].given || !s->b[q].given || !(w->flags & KL_NF_WRITTEN))
                continue;
            if (overlap(&s->b[p], &s->b[q]))
                out->may_alias = true;
        }
}
