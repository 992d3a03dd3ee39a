/* clauses.c - the clauses of a kernel as a kernel of their own.
 *
 * What kiln_launch computes from scalars (extents, strides, grid, requirements, defaults of
 * constants) a program built ahead of time computes, too.  Here the same expressions become the
 * body of a kernel that stores their values, so that they are lowered as any other code is and mean
 * the same there. */
#include "lang/setup.h"

struct making {
    kl_arena *a;
    kl_node *block; /* statements */
    uint32_t cap;
    const char *out;
};

static kl_node *node(kl_arena *a, int kind, const char *name, uint32_t nkid)
{
    kl_node *n = kl_new(a, kl_node);
    n->kind = (uint8_t)kind;
    n->name = name;
    n->nkid = nkid;
    n->kid = kl_new_n(a, kl_node *, nkid + 1);
    return n;
}

static kl_node *integer(kl_arena *a, uint64_t v)
{
    kl_node *n = node(a, KL_N_INT, NULL, 0);
    n->ival = v;
    return n;
}

static kl_node *cast(kl_arena *a, const char *type, kl_node *expr)
{
    kl_node *n = node(a, KL_N_CAST, NULL, 2);
    n->kid[0] = node(a, KL_N_TYPE, type, 0);
    n->kid[1] = expr;
    n->span = n->kid[0]->span = expr->span;
    return n;
}

/* out[i] = (i64)expr; */
static void add(struct making *k, kl_node *expr)
{
    kl_node *s = node(k->a, KL_N_ASSIGN, NULL, 2), *x = node(k->a, KL_N_INDEX, NULL, 2);
    s->op = KL_TK_ASSIGN;
    x->kid[0] = node(k->a, KL_N_NAME, k->out, 0);
    x->kid[1] = integer(k->a, k->block->nkid);
    s->kid[0] = x;
    s->kid[1] = cast(k->a, "i64", expr);
    s->span = x->span = x->kid[0]->span = expr->span;
    k->block->kid[k->block->nkid++] = s;
}

static uint32_t most(const kl_node *n)
{
    uint32_t k = 1;
    for (uint32_t i = 0; n && i < n->nkid; i++)
        k += most(n->kid[i]);
    return k;
}

kl_fn *kl_lower_clauses(kl_arena *a, const kl_module_ast *m, const kl_bound *bd,
                        const bool *defaults, kl_diags *d)
{
    const kl_node *from = bd->kernel, *params = from->kid[0], *clauses = from->kid[1];
    uint32_t n = params->nkid;
    kl_node *kernel = node(a, KL_N_KERNEL, from->name, 3), *list = node(a, KL_N_PARAMS, NULL, n + 1);
    struct making k = {.a = a, .out = "kiln_clauses_"};
    struct kl_boundparam *b = kl_new_n(a, struct kl_boundparam, n + 1);
    memcpy(b, bd->param, n * sizeof *b);
    k.block = node(a, KL_N_BLOCK, NULL, most(params) + most(clauses));
    k.block->nkid = 0;
    for (uint32_t i = 0; i < n; i++) {
        kl_node *p = params->kid[i];
        bool isarr = kl_param_kind(p) == KL_PK_ARRAY;
        list->kid[i] = p;
        if (defaults && isarr)
            b[i].given = false;
        if (defaults && defaults[i]) {
            kl_node *c = kl_new(a, kl_node);
            *c = *p;
            c->flags &= (uint16_t)~KL_NF_CONSTEXPR;
            c->nkid = 1; /* without its default */
            list->kid[i] = c;
            if (kl_param_default(p))
                add(&k, cast(a, kl_elems[b[i].elem].name, p->kid[3]));
            else
                add(&k, integer(a, 0));
        }
        if (defaults || !isarr || !b[i].given)
            continue;
        const kl_node *dims = kl_param_dims(p), *str = kl_param_strides(p);
        for (uint32_t j = 0; dims && j < dims->nkid; j++)
            if (dims->kid[j])
                add(&k, dims->kid[j]);
        for (uint32_t j = 0; dims && str && j < str->nkid && j < dims->nkid; j++)
            if (str->kid[j])
                add(&k, str->kid[j]);
    }
    for (int turn = 0; turn < 2 && !defaults; turn++)
        for (uint32_t i = 0; i < clauses->nkid; i++) {
            kl_node *c = clauses->kid[i];
            if (c->kind == KL_N_GRID && turn == 0)
                for (uint32_t j = 0; j < c->nkid && j < 3; j++)
                    add(&k, c->kid[j]);
            if (c->kind == KL_N_REQUIRES && turn == 1)
                add(&k, cast(a, "bool", c->kid[0]));
        }
    kl_node *out = node(a, KL_N_PARAM, k.out, 4);
    out->flags = KL_NF_WRITTEN | KL_NF_USED;
    out->kid[0] = node(a, KL_N_TYPE, "i64", 0);
    out->kid[1] = node(a, KL_N_DIMS, NULL, 1);
    out->kid[1]->kid[0] = integer(a, k.block->nkid);
    list->kid[n] = out;
    b[n] = (struct kl_boundparam){.given = true, .elem = KL_i64, .rank = 1};
    kernel->kid[0] = list;
    kernel->kid[1] = node(a, KL_N_CLAUSES, NULL, 0);
    kernel->kid[2] = k.block;
    kl_bound all = {.kernel = kernel, .param = b, .nparam = n + 1};
    return kl_lower(a, m, &all, d);
}
