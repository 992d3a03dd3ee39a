/* build_function.c - one kernel with one choice of types: which parameters its caller gives, which
 * follow from shapes, which vary among the variants; its name. */
#include "lib/build.h"

enum kl_pk kl_build_kind(const struct function *f, uint32_t i)
{
    return kl_param_kind(f->params->kid[i]);
}

/* Is array number i one that every launch of the function has? */
static bool always_given(const struct function *f, uint32_t i)
{
    uint32_t arrays = 0;
    for (uint32_t k = 0; k < i; k++)
        arrays += kl_build_kind(f, k) == KL_PK_ARRAY;
    return !(f->params->kid[i]->flags & KL_NF_OPTIONAL) || f->fixed >> arrays & 1;
}

bool kl_build_deduced(const struct function *f, uint32_t i)
{
    for (uint32_t k = 0; k < f->src.n; k++)
        if (f->src.v[k].param == i && always_given(f, f->src.v[k].array))
            return true;
    return false;
}

static bool names_const(const struct function *f, const kl_node *n)
{
    if (!n)
        return false;
    if (n->kind == KL_N_NAME)
        for (uint32_t i = 0; i < f->params->nkid; i++)
            if (f->params->kid[i]->name == n->name)
                return kl_build_kind(f, i) == KL_PK_CONST && !f->known[i] && !f->isc[i];
    for (uint32_t i = 0; i < n->nkid; i++)
        if (names_const(f, n->kid[i]))
            return true;
    return false;
}

static bool names_scalar(const struct function *f, const kl_node *n)
{
    if (!n)
        return false;
    if (n->kind == KL_N_NAME)
        for (uint32_t i = 0; i < f->params->nkid; i++)
            if (f->params->kid[i]->name == n->name && kl_build_kind(f, i) == KL_PK_SCALAR)
                return true;
    bool yes = n->kind == KL_N_CALL && n->name && strcmp(n->name, "num_sms") == 0;
    for (uint32_t i = 0; i < n->nkid; i++)
        yes |= names_scalar(f, n->kid[i]);
    return yes;
}

/* Sorts the parameters: what a list varies, what is deduced, what the caller gives. */
static void sort_out(struct function *f)
{
    struct build *b = f->b;
    uint32_t n = f->params->nkid, arrays = 0;
    for (uint32_t i = 0; i < n; i++) {
        const kl_node *p = f->params->kid[i];
        enum kl_pk k = kl_build_kind(f, i);
        struct def *o =
            k == KL_PK_ARRAY && p->flags & KL_NF_OPTIONAL ? kl_build_def(b, p->name) : NULL;
        if (o) {
            if (o->n != 1 || o->v[0].kind != KILN_ARG_INT)
                kl_build_fail(b, "-D %s: the array is given (true) or not (false)", p->name);
            o->used = true;
            f->fixed |= (uint32_t)(o->v[0].u.i != 0) << arrays;
        } else if (k == KL_PK_ARRAY && p->flags & KL_NF_OPTIONAL) {
            if (f->nopt == MAX_OPTIONAL)
                kl_build_fail(
                    b,
                    "kernel `%s` has more than %d optional arrays; say which are given, as in "
                    "-D %s=false",
                    f->k->name, MAX_OPTIONAL, p->name);
            f->opt[f->nopt++] = i;
        }
        arrays += k == KL_PK_ARRAY;
        if (k == KL_PK_ARRAY && f->bound.param[i].init && !f->known[i])
            kl_build_fail(b, "kernel `%s`: the initial value of `%s` is not known at build time",
                          f->k->name, p->name);
        if (f->isc[i]) {
            f->con[f->ncon++] = i;
            if (!kl_is_int((enum kl_elem)f->bound.param[i].elem) &&
                f->bound.param[i].elem != KL_bool)
                kl_build_fail(b, "-D %s: a list can have integers only", p->name);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const kl_node *p = f->params->kid[i], *def = kl_param_default(p);
        enum kl_pk k = kl_build_kind(f, i);
        if (k == KL_PK_SCALAR)
            f->isarg[i] = !kl_build_deduced(f, i);
        if (f->isc[i] && !kl_build_deduced(f, i)) {
            f->isarg[i] = !def || !names_scalar(f, def);
            if (!f->isarg[i] && names_const(f, def))
                kl_build_fail(
                    b,
                    "kernel `%s`: the default of `%s` depends on a constant that is not known at build "
                    "time; give that one with -D",
                    f->k->name, p->name);
        }
    }
}

void kl_build_function(struct build *b, kiln_kernel *k, const uint32_t *at)
{
    struct function *f = kl_new(b->a, struct function);
    uint32_t n = k->node->kid[0]->nkid;
    kl_buf name = {.a = b->a};
    f->b = b;
    f->k = k;
    f->params = k->node->kid[0];
    f->known = kl_new_n(b->a, bool, n + 1);
    f->args = kl_new_n(b->a, kiln_arg, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        struct def *d = kl_build_def(b, f->params->kid[i]->name);
        enum kl_pk p = kl_build_kind(f, i);
        if (!d || (p != KL_PK_TYPE && p != KL_PK_CONST))
            continue;
        d->used = true;
        const kl_node *def = kl_param_default(f->params->kid[i]);
        if (p == KL_PK_TYPE)
            f->args[f->nargs++] = d->v[at[i]];
        else if (d->fixed || (!d->list && !names_scalar(f, def)))
            /* else what shapes decide stays to be compared */
            f->args[f->nargs++] = d->v[0];
        else
            f->isc[i] = true;
    }
    if (!kl_bind_build(b->a, b->mod->ast, k->node, f->args, f->nargs, f->isc, &f->bound, f->known,
                       &f->src, b->c->d))
        kl_raise(&b->c->env, KILN_E_ARG, "%s", "");
    sort_out(f);
    kl_puts(&name, b->o->name);
    if (strcmp(k->name, b->o->name) != 0)
        kl_putf(&name, "_%s", k->name);
    for (uint32_t i = 0; i < n; i++) {
        const kl_node *p = f->params->kid[i];
        if (kl_build_kind(f, i) == KL_PK_TYPE &&
            (kl_build_def(b, p->name) ||
             (p->kid[0] && p->kid[0]->kind == KL_N_TYPE &&
              kl_elem_by_name(p->kid[0]->name, (uint32_t)strlen(p->kid[0]->name)))))
            kl_putf(&name, "_%s", kl_elems[f->bound.param[i].elem].name);
    }
    f->name = kl_buf_str(&name);
    static const char *const own[] = {"lib",    "load",          "unload",   "strerror",
                                      "detail", "manifest_json", "parallel", "level"};
    size_t stem = strlen(b->o->name);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (f->name[stem] == '_' && strcmp(f->name + stem + 1, own[i]) == 0)
            kl_build_fail(
                b,
                "kernel `%s` would become %s, which is the library's own; give another name with -o",
                k->name, f->name);
    for (uint32_t i = 0; i < b->names.n; i++)
        if (strcmp(b->names.v[i], f->name) == 0)
            kl_build_fail(b, "two functions would be called %s", f->name);
    kl_push(b->a, &b->names, f->name);
    kl_putf(&b->manifest, "%s\n    {\"function\": \"%s\", \"kernel\": \"%s\", ", b->nfn ? "," : "",
            f->name, k->name);
    kl_build_defaults(f);
    kl_build_variants(f);
    kl_build_params(f);
    kl_build_wrapper(f);
    kl_puts(&b->manifest, "}");
    b->nfn++;
}
