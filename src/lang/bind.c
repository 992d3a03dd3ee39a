/* bind.c - arguments of a launch (LANGUAGE 7): what is given, what follows from it, whether all
 * of it fits.  One file a step: bind_args.c, bind_deduce.c, bind_tune.c, bind_array.c. */
#include "lang/binder.h"

struct kl_diag *kl_bind_problem(struct binder *s, enum kl_code code, const kl_node *at,
                                const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = kl_vprintf(s->e.a, fmt, ap);
    va_end(ap);
    s->ok = false;
    return kl_diag(s->d, code, at ? at->span : (kl_span){0, 0}, "%s", text);
}

const char *kl_bind_shape_text(struct binder *s, uint32_t rank, const int64_t *ext)
{
    kl_buf b = {.a = s->e.a};
    for (uint32_t i = 0; i < rank; i++)
        kl_putf(&b, i ? "x%lld" : "%lld", (long long)ext[i]);
    return rank ? kl_buf_str(&b) : "()";
}

bool kl_bind_i64(struct binder *s, const kl_node *n, const char *what, int64_t *out)
{
    uint32_t errors = s->d->nerr;
    kl_value v = kl_scalar_i64(&s->e, n, what);
    if (v.kind != KL_V_TILE || !v.known) {
        if (s->d->nerr == errors)
            kl_bind_problem(s, KL_K0713, n, "%s has no value here", what);
        s->ok = false;
        return false;
    }
    *out = (int64_t)v.bits;
    return true;
}

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
                arr->ext[i] =
                    s->arg[p] && s->arg[p]->u.tensor.shape &&
                            (uint32_t)s->arg[p]->u.tensor.ndim == arr->rank
                        ? kl_typed(KL_i64, (uint64_t)s->arg[p]->u.tensor.shape[i], n->span)
                        : kl_bad(n->span);
            y->arr = arr;
        }
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
        if (kl_param_kind(n) == KL_PK_ARRAY && !s->arg[p] && n->flags & KL_NF_CONST &&
            !(n->flags & KL_NF_OPTIONAL) && mentions(kl_param_dims(n), name))
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
            struct kl_diag *g = kl_bind_problem(
                s, KL_K0706, n, "`%s` is not given, and nothing determines it", n->name);
            const kl_node *x = k == KL_PK_SCALAR ? teller(s, n->name) : NULL;
            if (x)
                kl_note(g, (kl_span){0, 0}, "give `%s`, whose extents tell it, or `%s=...`", x->name,
                        n->name);
            else
                kl_note(g, (kl_span){0, 0}, "give it, as in `%s=...`", n->name);
            return;
        }
        int u = kl_bind_unknown(s, def);
        if (u != -1) {
            kl_bind_problem(s, KL_K0706, n,
                            "the default of `%s` depends on what is not known before it", n->name);
            return;
        }
        uint32_t errors = s->d->nerr;
        kl_value v = kl_rvalue(&s->e, def);
        v.span = def->span;
        v = kl_move(&s->e, v, (enum kl_elem)s->b[p].elem, KL_CONSTINIT, "the default value");
        if (v.kind != KL_V_TILE || !v.known || v.rank) {
            if (s->d->nerr == errors)
                kl_bind_problem(s, KL_K0713, def, "the default of `%s` has no value here", n->name);
            s->ok = false;
            return;
        }
        s->b[p].bits = v.bits;
        kl_bind_set(s, p);
    }
}

/* ---- clauses ---- */

static void grid(struct binder *s, kl_bound *out, const kl_node *clauses)
{
    kl_i128 total = 1;
    for (int i = 0; i < 3; i++)
        out->grid[i] = 1;
    for (uint32_t i = 0; i < clauses->nkid && s->ok; i++) {
        const kl_node *c = clauses->kid[i];
        if (c->kind == KL_N_REQUIRES) {
            kl_value v = kl_to_bool(&s->e, kl_rvalue(&s->e, c->kid[0]));
            if (v.kind != KL_V_TILE || !v.known)
                s->ok = false;
            else if (!v.bits)
                kl_bind_problem(s, KL_K0712, c, "the kernel requires: %s",
                                c->name ? c->name : "this condition");
        }
        if (c->kind != KL_N_GRID)
            continue;
        for (uint32_t k = 0; k < c->nkid && k < 3; k++) {
            if (!kl_bind_i64(s, c->kid[k], "an extent of the grid", &out->grid[k]))
                return;
            if (out->grid[k] < 0) {
                kl_bind_problem(s, KL_K0715, c->kid[k],
                                "the grid would have %lld programs along axis %u",
                                (long long)out->grid[k], k);
                return;
            }
            out->empty |= out->grid[k] == 0;
            total *= out->grid[k];
            if (total > INT64_MAX) {
                kl_bind_problem(s, KL_K0715, c, "the grid has more than 2^63 programs");
                return;
            }
        }
    }
}

/* ---- the whole ---- */

void kl_bind_begin(struct binder *s, kl_arena *a, const kl_module_ast *m, const kl_node *kernel,
                   const kiln_arg *args, size_t n, kl_bound *out, bool *known, kl_diags *d)
{
    *s = (struct binder){
        .params = kernel->kid[0], .n = kernel->kid[0]->nkid, .d = d, .out = out, .ok = true};
    *out = (kl_bound){.kernel = kernel, .nparam = s->n};
    out->param = s->b = kl_new_n(a, struct kl_boundparam, s->n + 1);
    s->arg = kl_new_n(a, const kiln_arg *, s->n + 1);
    s->known = known ? known : kl_new_n(a, bool, s->n + 1);
    s->from = kl_new_n(a, const char *, s->n + 1);
    s->sym = kl_new_n(a, kl_sym *, s->n + 1);
    kl_elab_init(&s->e, KL_BIND, a, m, d);
    kl_scope_push(&s->e, NULL);
    kl_bind_match(s, args, n);
}

void kl_bind_declare(struct binder *s)
{
    symbols(s);
    kl_bind_types(s);
    if (s->ok)
        kl_bind_declared_types(s);
}

static bool bind(kl_arena *a, const kl_module_ast *m, const kl_node *kernel, const kiln_arg *args,
                 size_t n, unsigned flags, int64_t num_sms, kl_bound *out, kl_space *space,
                 kl_diags *d)
{
    struct binder s;
    uint32_t errors = d->nerr;
    kl_bind_begin(&s, a, m, kernel, args, n, out, NULL, d);
    s.flags = flags;
    s.e.num_sms = num_sms;
    if (!s.ok)
        return false;
    for (uint32_t p = 0; p < s.n; p++)
        if (s.arg[p] && kl_param_kind(s.params->kid[p]) == KL_PK_ARRAY && !kl_bind_tensor(&s, p))
            return false;
    kl_bind_declare(&s);
    if (!s.ok)
        return false;
    for (uint32_t p = 0; p < s.n; p++) {
        enum kl_pk k = kl_param_kind(s.params->kid[p]);
        if (s.arg[p] && (k == KL_PK_SCALAR || k == KL_PK_CONST) && !kl_bind_preferred(s.arg[p]) &&
            !kl_bind_number(&s, p, s.arg[p]))
            return false;
    }
    kl_bind_deduce(&s);
    if (s.ok && !(flags & KL_BIND_UNTUNED))
        kl_bind_tuned(&s, m, kernel);
    for (uint32_t p = 0; p < s.n && s.ok; p++)
        if (s.arg[p] && kl_bind_preferred(s.arg[p]) && !s.known[p] &&
            !kl_bind_number(&s, p, s.arg[p]))
            return false;
    if (s.ok)
        defaults(&s);
    if (s.ok)
        kl_bind_arrays(&s);
    if (s.ok)
        grid(&s, out, kernel->kid[1]);
    if (s.ok && !(flags & KL_BIND_SHAPES_ONLY))
        kl_bind_aliases(&s, out);
    if (s.ok && space)
        kl_bind_fill_space(&s, kernel->kid[1], space);
    return s.ok && d->nerr == errors;
}

bool kl_bind(kl_arena *a, const kl_module_ast *m, const kl_node *kernel, const kiln_arg *args,
             size_t n, unsigned flags, int64_t num_sms, kl_bound *out, kl_diags *d)
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

bool kl_bind_space(kl_arena *a, const kl_module_ast *m, const kl_node *kernel, const kiln_arg *args,
                   size_t n, int64_t num_sms, kl_bound *out, kl_space *space, kl_diags *d)
{
    return bind(a, m, kernel, args, n, KL_BIND_SHAPES_ONLY | KL_BIND_UNTUNED, num_sms, out, space,
                d);
}

void kl_bound_key(kl_buf *b, const kl_bound *bd)
{
    const kl_node *params = bd->kernel->kid[0];
    for (uint32_t i = 0; i < bd->nparam; i++) {
        const struct kl_boundparam *p = &bd->param[i];
        switch (kl_param_kind(params->kid[i])) {
        case KL_PK_CONST:
            kl_putf(b, "%s:%u=%llx;", params->kid[i]->name, p->elem, (unsigned long long)p->bits);
            break;
        case KL_PK_ARRAY:
            kl_putf(b, "%s:%u%s;", params->kid[i]->name, p->elem, p->given ? "" : "-");
            break;
        default: kl_putf(b, "%s:%u;", params->kid[i]->name, p->elem); break;
        }
    }
    kl_puts(b, bd->may_alias ? "alias" : "");
    for (int k = 0; k < KL_NKNOB; k++)
        if (bd->knob[k])
            kl_putf(b, ";%s %d", kl_knob_name[k], (int)bd->knob[k]);
}
