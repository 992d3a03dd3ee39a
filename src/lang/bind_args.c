/* bind_args.c - what the host gives: by name to parameters, numbers and element types. */
#include "lang/binder.h"

#include <math.h>

/* ---- matching ---- */

/* warps, stages or cluster, unless the kernel has a parameter of that name. */
static bool take_knob(struct binder *s, const kiln_arg *a)
{
    int k = kl_knob_of(a->name);
    if (k < 0)
        return false;
    if (a->kind != KILN_ARG_INT || a->u.i < 0 || a->u.i > KL_KNOB_MOST)
        kl_bind_problem(s, KL_K0705, NULL,
                        "`%s` is a number from 1 to %d, or 0 for what the kernel says", a->name,
                        KL_KNOB_MOST);
    else if (s->out->knob[k])
        kl_bind_problem(s, KL_K0702, NULL, "`%s` is given twice", a->name);
    else
        s->out->knob[k] = (int32_t)a->u.i;
    return true;
}

static void no_parameter(struct binder *s, const char *name)
{
    const char *names[64];
    uint32_t n = 0;
    kl_buf list = {.a = s->e.a};
    for (uint32_t j = 0; j < s->n && n < 64; j++)
        if (!(s->params->kid[j]->flags & KL_NF_DEBUG))
            names[n++] = s->params->kid[j]->name;
    for (uint32_t j = 0; j < n; j++)
        kl_putf(&list, j ? ", %s" : "%s", names[j]);
    const char *near = kl_nearest(name, names, n);
    struct kl_diag *g =
        kl_bind_problem(s, KL_K0701, NULL, "the kernel has no parameter `%s`", name);
    kl_note(g, s->params->span, "it has %s", n ? kl_buf_str(&list) : "none");
    if (near)
        kl_fix(g, (kl_span){0, 0}, "%s", near);
}

bool kl_bind_preferred(const kiln_arg *a)
{
    return (int)a->kind == KL_ARG_PREFER;
}

void kl_bind_match(struct binder *s, const kiln_arg *args, size_t n)
{
    static const char *const want[] = {"a type", "a constant", "a scalar", "an array", ""};
    static const char *const have[] = {"",          "an array", "an integer",
                                       "a decimal", "a type",   "an integer"};
    for (size_t i = 0; i < n; i++) {
        uint32_t p = 0;
        kiln_arg_kind kind = kl_bind_preferred(&args[i]) ? KILN_ARG_INT : args[i].kind;
        if (!args[i].name || kind < KILN_ARG_TENSOR || kind > KILN_ARG_UINT) {
            kl_bind_problem(s, KL_K0702, NULL, "argument %zu has no name or no kind", i);
            continue;
        }
        while (p < s->n && (s->params->kid[p]->flags & KL_NF_DEBUG ||
                            strcmp(s->params->kid[p]->name, args[i].name) != 0))
            p++;
        if (p == s->n && take_knob(s, &args[i]))
            continue;
        if (p == s->n) {
            no_parameter(s, args[i].name);
            continue;
        }
        const kl_node *node = s->params->kid[p];
        enum kl_pk k = kl_param_kind(node);
        bool fits = k == KL_PK_ARRAY  ? kind == KILN_ARG_TENSOR
                    : k == KL_PK_TYPE ? kind == KILN_ARG_TYPE
                                      : kind != KILN_ARG_TENSOR && kind != KILN_ARG_TYPE;
        if (!fits)
            kl_bind_problem(s, KL_K0702, node, "`%s` is %s, and here it gets %s", node->name,
                            want[k], have[kind]);
        else if (s->arg[p])
            kl_bind_problem(s, KL_K0702, node, "`%s` is given twice", node->name);
        else
            s->arg[p] = &args[i];
    }
}

/* ---- values ---- */

void kl_bind_set(struct binder *s, uint32_t p)
{
    const kl_node *n = s->params->kid[p];
    kl_sym *y = s->sym[p];
    struct kl_boundparam *b = &s->b[p];
    s->known[p] = true;
    if (y->kind == KL_S_TYPE)
        y->elem = b->elem;
    else if (kl_param_kind(n) == KL_PK_CONST && kl_is_int((enum kl_elem)b->elem))
        y->val = kl_int_of((enum kl_elem)b->elem, b->bits, n->span);
    else
        y->val = kl_typed((enum kl_elem)b->elem, b->bits, n->span);
}

bool kl_bind_fits(enum kl_elem el, kl_i128 v)
{
    kl_value x = {.elem = (uint8_t)el, .bits = kl_canon(el, (uint64_t)v)};
    return kl_wide(&x) == v;
}

/* A number of the host becomes the parameter's value. */
bool kl_bind_number(struct binder *s, uint32_t p, const kiln_arg *a)
{
    const kl_node *n = s->params->kid[p];
    struct kl_boundparam *b = &s->b[p];
    enum kl_elem el = (enum kl_elem)b->elem;
    if (a->kind != KILN_ARG_FLOAT) {
        bool uns = a->kind == KILN_ARG_UINT;
        kl_i128 w = uns ? (kl_i128)a->u.u : (kl_i128)a->u.i;
        enum kl_elem from = uns ? KL_u64 : KL_i64;
        uint64_t bits = (uint64_t)w;
        bool ok;
        if (kl_is_float(el)) {
            float f = kl_bits_f32(kl_convert(KL_f32, from, bits));
            ok = kl_float_number(el, f, (double)f, &b->bits);
            b->bits = kl_convert(el, from, bits);
        } else {
            ok = kl_bind_fits(el, w);
            b->bits = kl_canon(el, bits);
        }
        if (!ok) {
            kl_bind_problem(s, KL_K0705, n,
                            uns ? "%llu does not fit `%s`, which is %s"
                                : "%lld does not fit `%s`, which is %s",
                            (long long)bits, n->name, kl_elems[el].name);
            return false;
        }
    } else {
        if (!kl_is_float(el)) {
            kl_bind_problem(s, KL_K0705, n, "`%s` is %s, and %g is a decimal", n->name,
                            kl_elems[el].name, a->u.f);
            return false;
        }
        float f = el == KL_f64 ? 0 : (float)a->u.f; /* smaller types by way of f32 */
        if (!kl_float_number(el, f, el == KL_f64 ? a->u.f : (double)f, &b->bits) ||
            (isfinite(a->u.f) && !isfinite(kl_elem_double(el, b->bits)))) {
            kl_bind_problem(s, KL_K0705, n, "%g does not fit `%s`, which is %s", a->u.f, n->name,
                            kl_elems[el].name);
            return false;
        }
    }
    kl_bind_set(s, p);
    return true;
}

/* ---- types ---- */

bool kl_bind_tensor(struct binder *s, uint32_t p)
{
    const kl_node *n = s->params->kid[p];
    const kiln_tensor *t = &s->arg[p]->u.tensor;
    uint32_t rank = kl_param_dims(n)->nkid;
    if ((int)t->dtype <= 0 || (int)t->dtype >= KL_NELEM) {
        kl_bind_problem(s, KL_K0704, n, "the array given for `%s` has no element type", n->name);
        return false;
    }
    if (t->ndim != (int32_t)rank || (rank && !t->shape)) {
        kl_bind_problem(s, KL_K0703, n, "`%s` has rank %u, and the array given has rank %d%s%s",
                        n->name, rank, t->ndim,
                        t->ndim > 0 && t->ndim <= KL_MAX_DIMS && t->shape ? ": " : "",
                        t->ndim > 0 && t->ndim <= KL_MAX_DIMS && t->shape
                            ? kl_bind_shape_text(s, (uint32_t)t->ndim, t->shape)
                            : "");
        return false;
    }
    for (uint32_t i = 0; i < rank; i++)
        if (t->shape[i] < 0) {
            kl_bind_problem(s, KL_K0710, n,
                            "the array given for `%s` has the extent %lld along dimension %u",
                            n->name, (long long)t->shape[i], i);
            return false;
        }
    return true;
}

/* Element types: first the given arrays of each type parameter, then what the host says, then
 * defaults. */
void kl_bind_types(struct binder *s)
{
    for (uint32_t p = 0; p < s->n; p++) {
        const kl_node *n = s->params->kid[p];
        if (kl_param_kind(n) != KL_PK_TYPE)
            continue;
        const kl_node *first = NULL;
        enum kl_elem el = s->arg[p] ? (enum kl_elem)s->arg[p]->u.type : KL_elem_none;
        if (s->arg[p] && (el <= 0 || (int)el >= KL_NELEM)) {
            kl_bind_problem(s, KL_K0704, n, "the type given for `%s` is unknown", n->name);
            return;
        }
        for (uint32_t q = 0; q < s->n; q++) {
            const kl_node *a = s->params->kid[q];
            if (kl_param_kind(a) != KL_PK_ARRAY || !s->arg[q] || !a->kid[0] ||
                a->kid[0]->name != n->name)
                continue;
            enum kl_elem have = (enum kl_elem)s->arg[q]->u.tensor.dtype;
            if (have <= 0 || (int)have >= KL_NELEM)
                continue; /* said by check_tensor */
            if (!el || el == have) {
                first = first ? first : a;
                el = have;
                continue;
            }
            struct kl_diag *g =
                kl_bind_problem(s, KL_K0704, a, "`%s` is given as %s, and %s is %s", a->name,
                                kl_elems[have].name, n->name, kl_elems[el].name);
            if (first)
                kl_note(g, first->span, "by `%s`", first->name);
            return;
        }
        bool ok = true;
        if (!el && n->nkid && n->kid[0])
            el = kl_eval_type(&s->e, n->kid[0], &ok);
        if (!el) {
            kl_bind_problem(s, KL_K0711, n, "nothing determines the type `%s`", n->name);
            return;
        }
        s->b[p].elem = (uint8_t)el;
        kl_bind_set(s, p);
    }
}

void kl_bind_declared_types(struct binder *s)
{
    for (uint32_t p = 0; p < s->n; p++) {
        const kl_node *n = s->params->kid[p];
        enum kl_pk k = kl_param_kind(n);
        bool ok;
        if (k == KL_PK_TYPE)
            continue;
        s->b[p].elem = (uint8_t)kl_eval_type(&s->e, n->kid[0], &ok);
        if (!ok || !s->b[p].elem)
            s->ok = false;
        else if (k == KL_PK_ARRAY && s->arg[p] &&
                 (int)s->arg[p]->u.tensor.dtype != (int)s->b[p].elem)
            kl_bind_problem(s, KL_K0704, n, "`%s` has elements of %s, and the array given has %s",
                            n->name, kl_elems[s->b[p].elem].name,
                            kl_elems[s->arg[p]->u.tensor.dtype].name);
    }
}
