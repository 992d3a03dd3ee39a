/* bind.c - arguments of a launch: matching, deduction, checks (LANGUAGE 7). */
#include "lang/setup.h"

#include <math.h>

typedef kl_i128 i128; /* products of 64-bit sizes */

struct binder {
    kl_elab e;
    const kl_node *params;
    uint32_t n;
    struct kl_boundparam *b;
    const kiln_arg **arg;      /* given by the host, or NULL */
    bool *known;               /* scalars, constants, types */
    const char **from;         /* "x": the array a scalar was deduced from */
    kl_sym **sym;
    kl_diags *d;
    kl_bound *out;
    unsigned flags;
    bool ok;
};

static struct kl_diag *problem(struct binder *s, enum kl_code code, const kl_node *at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static struct kl_diag *problem(struct binder *s, enum kl_code code, const kl_node *at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = kl_vprintf(s->e.a, fmt, ap);
    va_end(ap);
    s->ok = false;
    return kl_diag(s->d, code, at ? at->span : (kl_span){0, 0}, "%s", text);
}

static const char *shape_text(struct binder *s, uint32_t rank, const int64_t *ext)
{
    kl_buf b = {.a = s->e.a};
    for (uint32_t i = 0; i < rank; i++)
        kl_putf(&b, i ? "x%lld" : "%lld", (long long)ext[i]);
    return rank ? kl_buf_str(&b) : "()";
}

/* ---- matching ---- */

/* warps, stages or cluster, unless the kernel has a parameter of that name. */
static bool take_knob(struct binder *s, const kiln_arg *a)
{
    int k = kl_knob_of(a->name);
    if (k < 0 || !s->out)
        return false;
    if (a->kind != KILN_ARG_INT || a->u.i < 0 || a->u.i > KL_KNOB_MOST)
        problem(s, KL_K0705, NULL, "`%s` is a number from 1 to %d, or 0 for what the kernel says", a->name,
                KL_KNOB_MOST);
    else if (s->out->knob[k])
        problem(s, KL_K0702, NULL, "`%s` is given twice", a->name);
    else
        s->out->knob[k] = (int32_t)a->u.i;
    return true;
}

static bool is_preferred(const kiln_arg *a)
{
    return (int)a->kind == KL_ARG_PREFER;
}

static void match(struct binder *s, const kiln_arg *args, size_t n)
{
    static const char *const want[] = {"a type", "a constant", "a scalar", "an array", ""};
    static const char *const have[] = {"", "an array", "an integer", "a decimal", "a type", "an integer"};
    for (size_t i = 0; i < n; i++) {
        uint32_t p = 0;
        kiln_arg_kind kind = is_preferred(&args[i]) ? KILN_ARG_INT : args[i].kind;
        if (!args[i].name || kind < KILN_ARG_TENSOR || kind > KILN_ARG_UINT) {
            problem(s, KL_K0702, NULL, "argument %zu has no name or no kind", i);
            continue;
        }
        while (p < s->n && (s->params->kid[p]->flags & KL_NF_DEBUG ||
                            strcmp(s->params->kid[p]->name, args[i].name) != 0))
            p++;
        if (p == s->n && take_knob(s, &args[i]))
            continue;
        if (p == s->n) {
            const char *names[64];
            uint32_t k = 0;
            for (uint32_t j = 0; j < s->n && k < 64; j++)
                if (!(s->params->kid[j]->flags & KL_NF_DEBUG))
                    names[k++] = s->params->kid[j]->name;
            const char *near = kl_nearest(args[i].name, names, k);
            struct kl_diag *g = problem(s, KL_K0701, NULL, "the kernel has no parameter `%s`", args[i].name);
            kl_buf b = {.a = s->e.a};
            for (uint32_t j = 0; j < k; j++)
                kl_putf(&b, j ? ", %s" : "%s", names[j]);
            kl_note(g, s->params->span, "it has %s", k ? kl_buf_str(&b) : "none");
            if (near)
                kl_fix(g, (kl_span){0, 0}, "%s", near);
            continue;
        }
        const kl_node *node = s->params->kid[p];
        enum kl_pk k = kl_param_kind(node);
        bool fits = k == KL_PK_ARRAY  ? kind == KILN_ARG_TENSOR
                    : k == KL_PK_TYPE ? kind == KILN_ARG_TYPE
                                      : kind != KILN_ARG_TENSOR && kind != KILN_ARG_TYPE;
        if (!fits)
            problem(s, KL_K0702, node, "`%s` is %s, and here it gets %s", node->name, want[k],
                    have[kind]);
        else if (s->arg[p])
            problem(s, KL_K0702, node, "`%s` is given twice", node->name);
        else
            s->arg[p] = &args[i];
    }
}

/* ---- values ---- */

static void set_symbol(struct binder *s, uint32_t p)
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

static bool int_in_range(enum kl_elem el, i128 v)
{
    kl_value x = {.elem = (uint8_t)el, .bits = kl_canon(el, (uint64_t)v)};
    return kl_wide(&x) == v;
}

/* A number of the host becomes the parameter's value. */
static bool take_number(struct binder *s, uint32_t p, const kiln_arg *a)
{
    const kl_node *n = s->params->kid[p];
    struct kl_boundparam *b = &s->b[p];
    enum kl_elem el = (enum kl_elem)b->elem;
    if (a->kind != KILN_ARG_FLOAT) {
        bool uns = a->kind == KILN_ARG_UINT;
        i128 w = uns ? (i128)a->u.u : (i128)a->u.i;
        enum kl_elem from = uns ? KL_u64 : KL_i64;
        uint64_t bits = (uint64_t)w;
        bool ok;
        if (kl_is_float(el)) {
            float f = kl_bits_f32(kl_convert(KL_f32, from, bits));
            ok = kl_float_number(el, f, (double)f, &b->bits);
            b->bits = kl_convert(el, from, bits);
        } else {
            ok = int_in_range(el, w);
            b->bits = kl_canon(el, bits);
        }
        if (!ok) {
            problem(s, KL_K0705, n, uns ? "%llu does not fit `%s`, which is %s" : "%lld does not fit `%s`, which is %s",
                    (long long)bits, n->name, kl_elems[el].name);
            return false;
        }
    } else {
        if (!kl_is_float(el)) {
            problem(s, KL_K0705, n, "`%s` is %s, and %g is a decimal", n->name, kl_elems[el].name, a->u.f);
            return false;
        }
        float f = el == KL_f64 ? 0 : (float)a->u.f; /* smaller types by way of f32 */
        if (!kl_float_number(el, f, el == KL_f64 ? a->u.f : (double)f, &b->bits) ||
            (isfinite(a->u.f) && !isfinite(kl_elem_double(el, b->bits)))) {
            problem(s, KL_K0705, n, "%g does not fit `%s`, which is %s", a->u.f, n->name, kl_elems[el].name);
            return false;
        }
    }
    set_symbol(s, p);
    return true;
}

/* Which unknown parameter does an expression depend on?  -1 none, -2 several. */
static int unknown_in(struct binder *s, const kl_node *n)
{
    int u = -1;
    if (!n)
        return -1;
    if (n->kind == KL_N_NAME || n->kind == KL_N_TYPE)
        for (uint32_t p = 0; p < s->n; p++)
            if (s->params->kid[p]->name == n->name && kl_param_kind(s->params->kid[p]) != KL_PK_ARRAY &&
                !s->known[p])
                return (int)p;
    for (uint32_t i = 0; i < n->nkid; i++) {
        int v = unknown_in(s, n->kid[i]);
        if (v == -2 || (u >= 0 && v >= 0 && u != v))
            return -2;
        if (v >= 0)
            u = v;
    }
    return u;
}

static bool eval_i64(struct binder *s, const kl_node *n, const char *what, int64_t *out)
{
    uint32_t errors = s->d->nerr;
    kl_value v = kl_scalar_i64(&s->e, n, what);
    if (v.kind != KL_V_TILE || !v.known) {
        if (s->d->nerr == errors)
            problem(s, KL_K0713, n, "%s has no value here", what);
        s->ok = false;
        return false;
    }
    *out = (int64_t)v.bits;
    return true;
}

/* ---- deduction: an extent or stride that is linear in one unknown name ---- */

/* The steps from the value of an expression back to the unknown name in it.  false: there are none, or
 * the other sides are not known. */
static bool steps(struct binder *s, const kl_node *n, struct kl_source *o)
{
    if (n->kind == KL_N_NAME)
        return true;
    if (n->kind == KL_N_CAST)
        return steps(s, n->kid[1], o);
    if (o->nstep == KL_BACK_STEPS)
        return false;
    struct kl_back *t = &o->step[o->nstep];
    if (n->kind == KL_N_UNARY && (n->op == KL_TK_SUB || n->op == KL_TK_ADD)) {
        if (n->op == KL_TK_SUB)
            *t = (struct kl_back){'n', 0}, o->nstep++;
        return steps(s, n->kid[0], o);
    }
    if (n->kind != KL_N_BINARY)
        return false;
    bool left = unknown_in(s, n->kid[0]) >= 0, right = unknown_in(s, n->kid[1]) >= 0;
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
    return steps(s, n->kid[left ? 0 : 1], o);
}

static bool deduce_from(struct binder *s, const kl_node *expr, int64_t have, const char *array)
{
    int64_t v = have;
    int u = unknown_in(s, expr);
    struct kl_source o = {.nstep = 0};
    if (u < 0 || kl_param_kind(s->params->kid[u]) == KL_PK_TYPE || !steps(s, expr, &o) ||
        !kl_place_back(o.step, o.nstep, &v))
        return false;
    const kl_node *p = s->params->kid[u];
    enum kl_elem el = (enum kl_elem)s->b[u].elem;
    if (!kl_is_int(el))
        return false;
    if (!int_in_range(el, v)) {
        problem(s, KL_K0705, p, "`%s` would be %lld by the shape of `%s`, and that does not fit %s", p->name,
                (long long)v, array, kl_elems[el].name);
        return false;
    }
    s->b[u].bits = kl_canon(el, (uint64_t)v);
    s->from[u] = array;
    set_symbol(s, (uint32_t)u);
    return true;
}

static int64_t stride_of(const kiln_tensor *t, uint32_t d)
{
    return kl_place_stride(t->ndim, t->shape, t->strides, (int)d);
}

static void deduce(struct binder *s)
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
                    more |= deduce_from(s, str->kid[i], stride_of(t, i), n->name);
            }
        }
    }
}

/* ---- types ---- */

static bool check_tensor(struct binder *s, uint32_t p)
{
    const kl_node *n = s->params->kid[p];
    const kiln_tensor *t = &s->arg[p]->u.tensor;
    uint32_t rank = kl_param_dims(n)->nkid;
    if ((int)t->dtype <= 0 || (int)t->dtype >= KL_NELEM) {
        problem(s, KL_K0704, n, "the array given for `%s` has no element type", n->name);
        return false;
    }
    if (t->ndim != (int32_t)rank || (rank && !t->shape)) {
        problem(s, KL_K0703, n, "`%s` has rank %u, and the array given has rank %d%s%s", n->name, rank,
                t->ndim, t->ndim > 0 && t->ndim <= KL_MAX_DIMS && t->shape ? ": " : "",
                t->ndim > 0 && t->ndim <= KL_MAX_DIMS && t->shape
                    ? shape_text(s, (uint32_t)t->ndim, t->shape)
                    : "");
        return false;
    }
    for (uint32_t i = 0; i < rank; i++)
        if (t->shape[i] < 0) {
            problem(s, KL_K0710, n, "the array given for `%s` has the extent %lld along dimension %u",
                    n->name, (long long)t->shape[i], i);
            return false;
        }
    return true;
}

/* Element types: first the given arrays of each type parameter, then what the host says, then
 * defaults. */
static void types(struct binder *s)
{
    for (uint32_t p = 0; p < s->n; p++) {
        const kl_node *n = s->params->kid[p];
        if (kl_param_kind(n) != KL_PK_TYPE)
            continue;
        const kl_node *first = NULL;
        enum kl_elem el = s->arg[p] ? (enum kl_elem)s->arg[p]->u.type : KL_elem_none;
        if (s->arg[p] && (el <= 0 || (int)el >= KL_NELEM)) {
            problem(s, KL_K0704, n, "the type given for `%s` is unknown", n->name);
            return;
        }
        for (uint32_t q = 0; q < s->n; q++) {
            const kl_node *a = s->params->kid[q];
            if (kl_param_kind(a) != KL_PK_ARRAY || !s->arg[q] || !a->kid[0] || a->kid[0]->name != n->name)
                continue;
            enum kl_elem have = (enum kl_elem)s->arg[q]->u.tensor.dtype;
            if (have <= 0 || (int)have >= KL_NELEM)
                continue; /* said by check_tensor */
            if (!el || el == have) {
                first = first ? first : a;
                el = have;
                continue;
            }
            struct kl_diag *g = problem(s, KL_K0704, a, "`%s` is given as %s, and %s is %s", a->name,
                                        kl_elems[have].name, n->name, kl_elems[el].name);
            if (first)
                kl_note(g, first->span, "by `%s`", first->name);
            return;
        }
        bool ok = true;
        if (!el && n->nkid && n->kid[0])
            el = kl_eval_type(&s->e, n->kid[0], &ok);
        if (!el) {
            problem(s, KL_K0711, n, "nothing determines the type `%s`", n->name);
            return;
        }
        s->b[p].elem = (uint8_t)el;
        set_symbol(s, p);
    }
}

static void declared_types(struct binder *s)
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
        else if (k == KL_PK_ARRAY && s->arg[p] && (int)s->arg[p]->u.tensor.dtype != (int)s->b[p].elem)
            problem(s, KL_K0704, n, "`%s` has elements of %s, and the array given has %s", n->name,
                    kl_elems[s->b[p].elem].name, kl_elems[s->arg[p]->u.tensor.dtype].name);
    }
}

/* ---- scalars and constants ---- */

static bool mentions(const kl_node *n, const char *name)
{
    if (!n)
        return false;
    if (n->kind == KL_N_NAME && n->name == name)
        return true;
    for (uint32_t i = 0; i < n->nkid; i++)
        if (mentions(n->kid[i], name))
            return true;
    return false;
}

/* An array that was left out and would tell a scalar. */
static const kl_node *teller(const struct binder *s, const char *name)
{
    for (uint32_t p = 0; p < s->n; p++) {
        const kl_node *n = s->params->kid[p];
        if (kl_param_kind(n) == KL_PK_ARRAY && !s->arg[p] && n->flags & KL_NF_CONST && !(n->flags & KL_NF_OPTIONAL) &&
            mentions(kl_param_dims(n), name))
            return n;
    }
    return NULL;
}

static void defaults(struct binder *s)
{
    for (uint32_t p = 0; p < s->n && s->ok; p++) {
        const kl_node *n = s->params->kid[p];
        enum kl_pk k = kl_param_kind(n);
        if ((k != KL_PK_SCALAR && k != KL_PK_CONST) || s->known[p])
            continue;
        const kl_node *def = kl_param_default(n);
        if (!def) {
            struct kl_diag *g = problem(s, KL_K0706, n, "`%s` is not given, and nothing determines it",
                                        n->name);
            const kl_node *x = k == KL_PK_SCALAR ? teller(s, n->name) : NULL;
            if (x)
                kl_note(g, (kl_span){0, 0}, "give `%s`, whose extents tell it, or `%s=...`", x->name, n->name);
            else
                kl_note(g, (kl_span){0, 0}, "give it, as in `%s=...`", n->name);
            return;
        }
        int u = unknown_in(s, def);
        if (u != -1) {
            problem(s, KL_K0706, n, "the default of `%s` depends on what is not known before it", n->name);
            return;
        }
        uint32_t errors = s->d->nerr;
        kl_value v = kl_rvalue(&s->e, def);
        v.span = def->span;
        v = kl_move(&s->e, v, (enum kl_elem)s->b[p].elem, KL_CONSTINIT, "the default value");
        if (v.kind != KL_V_TILE || !v.known || v.rank) {
            if (s->d->nerr == errors)
                problem(s, KL_K0713, def, "the default of `%s` has no value here", n->name);
            s->ok = false;
            return;
        }
        s->b[p].bits = v.bits;
        set_symbol(s, p);
    }
}

/* ---- what was tuned ---- */

/* A constant as the launch has it: given, or by a default that needs nothing more. */
static bool constant(struct binder *s, uint32_t p, int64_t *out)
{
    const kl_node *n = s->params->kid[p], *def = kl_param_default(n);
    *out = (int64_t)s->b[p].bits;
    if (s->known[p])
        return true;
    if (!def || unknown_in(s, def) != -1)
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
            s->out->tuned |= take_number(s, p, &a);
        }
    }
}

static void tuned(struct binder *s, const kl_module_ast *m, const kl_node *kernel)
{
    for (uint32_t i = m->ntuned; i-- > 0;)
        if (strcmp(m->tuned[i].kernel, kernel->name) == 0 && fits(s, &m->tuned[i])) {
            s->out->tuned_line = m->tuned[i].line;
            use(s, &m->tuned[i]);
            return;
        }
}

/* ---- arrays ---- */

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
        if (!eval_i64(s, dims->kid[i], kl_printf(s->e.a, "an extent of `%s`", n->name), &b->ext[i]))
            return false;
        if (b->ext[i] < 0) {
            problem(s, KL_K0710, dims->kid[i], "the extent of `%s` along dimension %u would be %lld", n->name,
                    i, (long long)b->ext[i]);
            return false;
        }
    }
    unsigned declared = 0;
    for (uint32_t i = dims->nkid; i-- > 0;)
        if (str && i < str->nkid && str->kid[i]) {
            if (!eval_i64(s, str->kid[i], kl_printf(s->e.a, "a stride of `%s`", n->name), &b->str[i]))
                return false;
            declared |= 1u << i;
        }
    if (!kl_place_dense(b->rank, b->ext, declared, b->str)) {
        problem(s, KL_K0709, n, "`%s` is larger than memory can be", n->name);
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
            else if (s->from[p])
                kl_note(g, (kl_span){0, 0}, "`%s` is %lld by the shape of `%s`", n->name,
                        (long long)s->b[p].bits, s->from[p]);
            else if (s->arg[p] && kl_param_kind(s->params->kid[p]) == KL_PK_SCALAR)
                kl_note(g, (kl_span){0, 0}, "`%s` is given as %lld", n->name, (long long)s->b[p].bits);
        }
    for (uint32_t i = 0; i < n->nkid; i++)
        explain_extent(s, g, n->kid[i]);
}

/* The strides clause that would describe the array given. */
static void propose_stride(struct binder *s, struct kl_diag *g, const kl_node *n, const kiln_tensor *t)
{
    kl_buf b = {.a = s->e.a};
    kl_puts(&b, " stride(");
    for (int32_t i = 0; i < t->ndim; i++) {
        int64_t k = stride_of(t, (uint32_t)i);
        if (i + 1 == t->ndim && k == 1)
            kl_puts(&b, "1");
        else
            kl_putf(&b, "%s_s%d", n->name, i);
        kl_puts(&b, i + 1 < t->ndim ? ", " : ")");
    }
    kl_note(g, kl_param_dims(n)->span, "say so with `%s` behind the extents, and declare i64 parameters for "
            "the strides", kl_buf_str(&b) + 1);
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
        struct kl_diag *g = problem(s, KL_K0707, dims->kid[i] ? dims->kid[i] : n,
                                    "`%s` has shape %s, and its extent along dimension %u must be %lld",
                                    n->name, shape_text(s, (uint32_t)t->ndim, t->shape), i,
                                    (long long)b->ext[i]);
        explain_extent(s, g, dims->kid[i]);
        return false;
    }
    for (uint32_t i = 0; i < dims->nkid && !empty; i++) {
        int64_t have = stride_of(t, i);
        if (t->shape[i] <= 1 || have == b->str[i])
            continue;
        struct kl_diag *g = problem(s, KL_K0708, n,
                                    "`%s` has the stride %lld along dimension %u, and it must be %lld", n->name,
                                    (long long)have, i, (long long)b->str[i]);
        if (!kl_param_strides(n))
            propose_stride(s, g, n, t);
        return false;
    }
    return true;
}

static bool place(struct binder *s, uint32_t p)
{
    const kl_node *n = s->params->kid[p];
    struct kl_boundparam *b = &s->b[p];
    struct kl_place at = kl_place_of(b);
    if (!kl_place_span(&at)) {
        problem(s, KL_K0709, n, "`%s` of shape %s is larger than memory can be", n->name,
                shape_text(s, (uint32_t)b->rank, b->ext));
        return false;
    }
    if (!s->arg[p] || s->flags & KL_BIND_SHAPES_ONLY)
        return true;
    const kiln_tensor *t = &s->arg[p]->u.tensor;
    int64_t lo = at.lo, hi = at.hi;
    b->data = t->data;
    if (!t->data && hi > lo) {
        problem(s, KL_K0709, n, "`%s` has no memory", n->name);
        return false;
    }
    if (t->size_bytes && (uint64_t)hi > t->size_bytes) {
        problem(s, KL_K0709, n, "`%s` of shape %s spans %lld bytes, and its memory has %llu", n->name,
                shape_text(s, (uint32_t)b->rank, b->ext), (long long)hi, (unsigned long long)t->size_bytes);
        return false;
    }
    if (t->data && (uintptr_t)t->data % kl_elems[b->elem].bytes) {
        problem(s, KL_K0709, n, "`%s` is not aligned to its elements of %u bytes", n->name,
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

static void arrays(struct binder *s)
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
                    problem(s, KL_K0713, init, "the initial value of `%s` has no value here", n->name);
                return;
            }
            b->init = true;
            b->bits = v.bits;
        }
        if (!b->given && !(n->flags & KL_NF_OPTIONAL) && !(s->flags & KL_BIND_SHAPES_ONLY)) {
            problem(s, KL_K0706, n, "the array `%s` is not given", n->name);
            return;
        }
        if (b->given && n->flags & KL_NF_WRITTEN && coincides(b)) {
            problem(s, KL_K0714, n, "`%s` is written, and elements of the array given lie in one place",
                    n->name);
            return;
        }
    }
}

static void aliases(struct binder *s, kl_bound *out)
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

/* ---- clauses ---- */

static void grid(struct binder *s, kl_bound *out, const kl_node *clauses)
{
    i128 total = 1;
    for (int i = 0; i < 3; i++)
        out->grid[i] = 1;
    for (uint32_t i = 0; i < clauses->nkid && s->ok; i++) {
        const kl_node *c = clauses->kid[i];
        if (c->kind == KL_N_REQUIRES) {
            kl_value v = kl_to_bool(&s->e, kl_rvalue(&s->e, c->kid[0]));
            if (v.kind != KL_V_TILE || !v.known)
                s->ok = false;
            else if (!v.bits)
                problem(s, KL_K0712, c, "the kernel requires: %s", c->name ? c->name : "this condition");
        }
        if (c->kind != KL_N_GRID)
            continue;
        for (uint32_t k = 0; k < c->nkid && k < 3; k++) {
            if (!eval_i64(s, c->kid[k], "an extent of the grid", &out->grid[k]))
                return;
            if (out->grid[k] < 0) {
                problem(s, KL_K0715, c->kid[k], "the grid would have %lld programs along axis %u",
                        (long long)out->grid[k], k);
                return;
            }
            out->empty |= out->grid[k] == 0;
            total *= out->grid[k];
            if (total > INT64_MAX) {
                problem(s, KL_K0715, c, "the grid has more than 2^63 programs");
                return;
            }
        }
    }
}

/* ---- the whole ---- */

static void symbols(struct binder *s)
{
    for (uint32_t p = 0; p < s->n; p++) {
        const kl_node *n = s->params->kid[p];
        enum kl_pk k = kl_param_kind(n);
        int kind = k == KL_PK_TYPE ? KL_S_TYPE : k == KL_PK_ARRAY ? KL_S_ARRAY : KL_S_CONST;
        kl_sym *y = kl_sym_add(&s->e, kind, n->name, n->name_span);
        s->sym[p] = y;
        y->val = kl_bad(n->span);
        if (k == KL_PK_ARRAY) {
            struct kl_arr *arr = kl_new(s->e.a, struct kl_arr);
            arr->name = n->name;
            arr->decl = n->name_span;
            arr->rank = kl_param_dims(n)->nkid;
            arr->given = s->arg[p] != NULL;
            for (uint32_t i = 0; i < arr->rank && i < KL_MAX_DIMS; i++)
                arr->ext[i] = s->arg[p] && s->arg[p]->u.tensor.shape && (uint32_t)s->arg[p]->u.tensor.ndim == arr->rank
                                  ? kl_typed(KL_i64, (uint64_t)s->arg[p]->u.tensor.shape[i], n->span)
                                  : kl_bad(n->span);
            y->arr = arr;
        }
    }
}

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
                problem(s, KL_K0306, t, "`%s` is a decimal: whole numbers can be tuned", t->name);
        }
    if (v->knob && k >= 0)
        v->preset = s->out->knob[k];
    v->v = kl_new_n(s->e.a, int64_t, t->nkid + 1);
    for (uint32_t i = 0; i < t->nkid; i++) {
        int64_t x = 0;
        bool old = false;
        kl_value b = truth ? kl_to_bool(&s->e, kl_rvalue(&s->e, t->kid[i])) : kl_bad(t->span);
        if (truth && (b.kind != KL_V_TILE || !b.known || b.rank))
            problem(s, KL_K0306, t->kid[i], "a value to try must be a constant");
        else if (truth)
            x = b.bits != 0;
        if (!s->ok || (!truth && !eval_i64(s, t->kid[i], "a value to try", &x)))
            return;
        for (uint32_t j = 0; j < v->n; j++)
            old |= v->v[j] == x;
        if (!old)
            v->v[v->n++] = x;
    }
}

static void fill_space(struct binder *s, const kl_node *clauses, kl_space *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < clauses->nkid; i++)
        n += clauses->kid[i]->kind == KL_N_TUNE ? clauses->kid[i]->nkid : 0;
    *out = (kl_space){.var = kl_new_n(s->e.a, struct kl_spacevar, n + 1)};
    for (uint32_t i = 0; i < clauses->nkid && s->ok; i++)
        for (uint32_t j = 0; clauses->kid[i]->kind == KL_N_TUNE && j < clauses->kid[i]->nkid && s->ok; j++)
            space_var(s, clauses->kid[i]->kid[j], &out->var[out->nvar++]);
}

static bool bind(kl_arena *a, const kl_module_ast *m, const kl_node *kernel, const kiln_arg *args, size_t n,
                 unsigned flags, int64_t num_sms, kl_bound *out, kl_space *space, kl_diags *d)
{
    struct binder s = {.params = kernel->kid[0], .n = kernel->kid[0]->nkid, .d = d, .out = out,
                       .flags = flags, .ok = true};
    uint32_t errors = d->nerr;
    memset(out, 0, sizeof *out);
    out->kernel = kernel;
    out->nparam = s.n;
    out->param = s.b = kl_new_n(a, struct kl_boundparam, s.n + 1);
    s.arg = kl_new_n(a, const kiln_arg *, s.n + 1);
    s.known = kl_new_n(a, bool, s.n + 1);
    s.from = kl_new_n(a, const char *, s.n + 1);
    s.sym = kl_new_n(a, kl_sym *, s.n + 1);
    kl_elab_init(&s.e, KL_BIND, a, m, d);
    s.e.num_sms = num_sms;
    kl_scope_push(&s.e, NULL);
    match(&s, args, n);
    if (!s.ok)
        return false;
    for (uint32_t p = 0; p < s.n; p++)
        if (s.arg[p] && kl_param_kind(s.params->kid[p]) == KL_PK_ARRAY && !check_tensor(&s, p))
            return false;
    symbols(&s);
    types(&s);
    if (s.ok)
        declared_types(&s);
    if (!s.ok)
        return false;
    for (uint32_t p = 0; p < s.n; p++) {
        enum kl_pk k = kl_param_kind(s.params->kid[p]);
        if (s.arg[p] && (k == KL_PK_SCALAR || k == KL_PK_CONST) && !is_preferred(s.arg[p]) &&
            !take_number(&s, p, s.arg[p]))
            return false;
    }
    deduce(&s);
    if (s.ok && !(flags & KL_BIND_UNTUNED))
        tuned(&s, m, kernel);
    for (uint32_t p = 0; p < s.n && s.ok; p++)
        if (s.arg[p] && is_preferred(s.arg[p]) && !s.known[p] && !take_number(&s, p, s.arg[p]))
            return false;
    if (s.ok)
        defaults(&s);
    if (s.ok)
        arrays(&s);
    if (s.ok)
        grid(&s, out, kernel->kid[1]);
    if (s.ok && !(flags & KL_BIND_SHAPES_ONLY))
        aliases(&s, out);
    if (s.ok && space)
        fill_space(&s, kernel->kid[1], space);
    return s.ok && d->nerr == errors;
}

bool kl_bind(kl_arena *a, const kl_module_ast *m, const kl_node *kernel, const kiln_arg *args, size_t n,
             unsigned flags, int64_t num_sms, kl_bound *out, kl_diags *d)
{
    uint32_t list = d->list.n, nerr = d->nerr, nwarn = d->nwarn;
    if (!m->ntuned)
        flags |= KL_BIND_UNTUNED;
    if (bind(a, m, kernel, args, n, flags, num_sms, out, NULL, d))
        return true;
    if (!out->tuned)
        return false;
    d->list.n = list; /* an entry stands for a class of sizes: it need not fit all of them */
    d->nerr = nerr;
    d->nwarn = nwarn;
    return bind(a, m, kernel, args, n, flags | KL_BIND_UNTUNED, num_sms, out, NULL, d);
}

bool kl_bind_space(kl_arena *a, const kl_module_ast *m, const kl_node *kernel, const kiln_arg *args, size_t n,
                   int64_t num_sms, kl_bound *out, kl_space *space, kl_diags *d)
{
    return bind(a, m, kernel, args, n, KL_BIND_SHAPES_ONLY | KL_BIND_UNTUNED, num_sms, out, space, d);
}

/* ---- for kl_build: what is known without any launch ---- */

static void source(struct binder *s, kl_sources *out, uint32_t p, uint32_t i, const kl_node *expr,
                   bool stride)
{
    int u = expr ? unknown_in(s, expr) : -1;
    struct kl_source o = {.array = (uint16_t)p, .dim = (uint8_t)i, .stride = stride};
    if (u < 0 || kl_param_kind(s->params->kid[u]) == KL_PK_TYPE ||
        !kl_is_int((enum kl_elem)s->b[u].elem) || !steps(s, expr, &o))
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

bool kl_bind_build(kl_arena *a, const kl_module_ast *m, const kl_node *kernel, const kiln_arg *args,
                   size_t n, const bool *open, kl_bound *out, bool *known, kl_sources *src, kl_diags *d)
{
    struct binder s = {.params = kernel->kid[0], .n = kernel->kid[0]->nkid, .d = d, .ok = true};
    uint32_t errors = d->nerr;
    memset(out, 0, sizeof *out);
    out->kernel = kernel;
    out->nparam = s.n;
    out->param = s.b = kl_new_n(a, struct kl_boundparam, s.n + 1);
    s.arg = kl_new_n(a, const kiln_arg *, s.n + 1);
    s.known = known;
    s.from = kl_new_n(a, const char *, s.n + 1);
    s.sym = kl_new_n(a, kl_sym *, s.n + 1);
    kl_elab_init(&s.e, KL_BIND, a, m, d);
    kl_scope_push(&s.e, NULL);
    match(&s, args, n);
    if (!s.ok)
        return false;
    symbols(&s);
    types(&s);
    if (s.ok)
        declared_types(&s);
    if (!s.ok)
        return false;
    for (uint32_t p = 0; p < s.n; p++)
        if (s.arg[p] && kl_param_kind(s.params->kid[p]) == KL_PK_CONST && !take_number(&s, p, s.arg[p]))
            return false;
    for (uint32_t p = 0; p < s.n; p++) {
        const kl_node *node = s.params->kid[p], *def = kl_param_default(node);
        enum kl_pk k = kl_param_kind(node);
        struct kl_boundparam *b = &s.b[p];
        if (k == KL_PK_ARRAY) {
            b->rank = (int32_t)kl_param_dims(node)->nkid;
            b->given = !(node->flags & KL_NF_OPTIONAL);
            b->init = def != NULL;
        }
        if (!def || (k != KL_PK_ARRAY && (k != KL_PK_CONST || known[p])) || (open && open[p]) ||
            unknown_in(&s, def) != -1 || calls_num_sms(def))
            continue;
        s.e.quiet++;
        kl_value v = kl_move(&s.e, kl_rvalue(&s.e, def), (enum kl_elem)b->elem, KL_CONSTINIT, "this");
        s.e.quiet--;
        if (v.kind != KL_V_TILE || !v.known || v.rank)
            continue;
        b->bits = v.bits;
        known[p] = true;
        if (k == KL_PK_CONST)
            set_symbol(&s, p);
    }
    for (uint32_t p = 0; src && p < s.n; p++) {
        const kl_node *node = s.params->kid[p];
        if (kl_param_kind(node) != KL_PK_ARRAY)
            continue;
        const kl_node *dims = kl_param_dims(node), *str = kl_param_strides(node);
        for (uint32_t i = 0; dims && i < dims->nkid; i++) {
            source(&s, src, p, i, dims->kid[i], false);
            if (str && i < str->nkid)
                source(&s, src, p, i, str->kid[i], true);
        }
    }
    return s.ok && d->nerr == errors;
}

void kl_bound_key(kl_buf *b, const kl_bound *bd)
{
    const kl_node *params = bd->kernel->kid[0];
    for (uint32_t i = 0; i < bd->nparam; i++) {
        const struct kl_boundparam *p = &bd->param[i];
        switch (kl_param_kind(params->kid[i])) {
        case KL_PK_CONST: kl_putf(b, "%s:%u=%llx;", params->kid[i]->name, p->elem, (unsigned long long)p->bits); break;
        case KL_PK_ARRAY: kl_putf(b, "%s:%u%s;", params->kid[i]->name, p->elem, p->given ? "" : "-"); break;
        default: kl_putf(b, "%s:%u;", params->kid[i]->name, p->elem); break;
        }
    }
    kl_puts(b, bd->may_alias ? "alias" : "");
    for (int k = 0; k < KL_NKNOB; k++)
        if (bd->knob[k])
            kl_putf(b, ";%s %d", kl_knob_name[k], (int)bd->knob[k]);
}
