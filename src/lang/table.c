/* table.c - constexpr tiles: constexpr f32 w[3] = {1, 2, 1};
 *
 * Their symbol holds the elements.  Where one is named it is a tile as any other, of the operation
 * `table`; an element at constant places is a constant itself, known to both phases. */
#include "lang/stmt.h"

enum { MAX_TABLE = 1 << 14 }; /* elements */

struct filling {
    kl_elab *e;
    const kl_node *type;
    const char *name;
    uint32_t rank;
    const kl_dim *dim;
    KL_VEC(kl_value) v;
    bool ok, known;
};

static void one(struct filling *f, const kl_node *x)
{
    kl_value v = kl_bad(x->span);
    f->ok &= kl_const_value(f->e, x, f->type, f->name, &v);
    f->known &= v.konst && v.known;
    kl_push(f->e->a, &f->v, v);
}

/* The braces of axis d. */
static void braces(struct filling *f, const kl_node *n, uint32_t d)
{
    kl_dim size = f->dim[d];
    if (size.n && n->nkid != size.n) {
        kl_err(f->e, KL_K0302, n->span, "`%s` has %u element%s along axis %u, and here %s %u", f->name, size.n,
               size.n == 1 ? "" : "s", d, n->nkid == 1 ? "is" : "are", n->nkid);
        f->ok = false;
    }
    for (uint32_t i = 0; i < n->nkid; i++) {
        const kl_node *x = n->kid[i];
        bool inner = x->kind == KL_N_BRACES;
        if (inner != (d + 1 < f->rank) && x->kind != KL_N_ERROR) {
            kl_err(f->e, KL_K0302, x->span, inner ? "`%s` has rank %u, and these braces are one more"
                                                  : "`%s` has rank %u: braces are wanted for its last axis",
                   f->name, f->rank);
            f->ok = false;
            return; /* likewise the others */
        } else if (inner) {
            braces(f, x, d + 1);
        } else {
            one(f, x);
        }
    }
}

/* The declared shape; false: reported. */
static bool shape(kl_elab *e, const kl_node *v, kl_value *t)
{
    const kl_node *dims = v->kid[0];
    uint64_t n = 1;
    bool ok = true;
    if (v->kid[1])
        kl_err(e, KL_K0317, v->kid[1]->span, "a tile has no strides");
    if (dims->nkid > KL_MAX_RANK) {
        kl_err(e, KL_K0802, dims->span, "a tile has at most rank %d", KL_MAX_RANK);
        return false;
    }
    for (uint32_t i = 0; i < dims->nkid; i++) {
        if (!dims->kid[i]) {
            kl_err(e, KL_K0306, dims->span, "a tile needs a size in each bracket");
            ok = false;
        } else {
            ok &= kl_eval_dim(e, dims->kid[i], "a tile size", &t->dim[i]);
        }
        n *= n <= MAX_TABLE && t->dim[i].n ? t->dim[i].n : 1;
        t->rank++;
    }
    if (ok && n > MAX_TABLE) {
        kl_err(e, KL_K0802, dims->span, "a constexpr tile has at most %d elements", MAX_TABLE);
        return false;
    }
    return ok;
}

void kl_declare_table(kl_elab *e, const kl_node *v, const kl_node *type)
{
    const kl_node *init = v->kid[2];
    kl_value t = {.kind = KL_V_TILE, .span = v->span};
    bool ok = true, isauto = type->kind == KL_N_TYPE && strcmp(type->name, "auto") == 0;
    if (isauto)
        kl_err(e, KL_K0206, type->span, "a constexpr tile names the type of its elements");
    else
        t.elem = (uint8_t)kl_eval_type(e, type, &ok);
    ok &= !isauto;
    ok &= shape(e, v, &t);
    struct filling f = {.e = e, .type = type, .name = v->name, .rank = t.rank, .dim = t.dim, .ok = ok, .known = true};
    if (ok && init->kind == KL_N_BRACES)
        braces(&f, init, 0);
    else if (ok)
        one(&f, init);
    else
        kl_mark_used(e, init);
    kl_sym *s = kl_sym_add(e, KL_S_CONST, v->name, v->name_span);
    s->val = kl_bad(v->span);
    if (!f.ok)
        return;
    s->val = t;
    struct kl_table *table = kl_new(e->a, struct kl_table);
    table->n = 1;
    for (uint32_t i = 0; i < t.rank; i++)
        table->n *= t.dim[i].n;
    if (t.elem && table->n && f.known) {
        for (uint32_t i = 1; init->kind != KL_N_BRACES && i < table->n; i++)
            kl_push(e->a, &f.v, f.v.v[0]);
        table->v = f.v.v;
    }
    s->table = table;
}

kl_value kl_table_value(kl_elab *e, const kl_sym *s, kl_span span)
{
    const struct kl_table *table = s->table;
    kl_value v = s->val;
    v.span = span;
    if (kl_in_fold(e, span, "a tile"))
        return kl_bad(span);
    if (!kl_emitting(e))
        return v;
    kl_typ type = kl_irtype(e, (enum kl_elem)v.elem, v.rank, v.dim);
    int64_t *bits = kl_new_n(e->a, int64_t, table->n);
    bool equal = true;
    for (uint32_t i = 0; i < table->n; i++) {
        kl_value x = kl_give_type(e, table->v[i], (enum kl_elem)v.elem);
        bits[i] = (int64_t)x.bits;
        equal &= bits[i] == bits[0];
    }
    e->b.loc = span;
    if (equal) {
        v.ir = kl_cst(&e->b, type, (uint64_t)bits[0]);
        return v;
    }
    union kl_attr attr = {.aux = {.at = kl_aux_add(e->f, bits, table->n), .n = (uint16_t)table->n}};
    v.ir = kl_emit(&e->b, KL_OP_table, type, NULL, 0, attr);
    return v;
}

const kl_sym *kl_table_named(kl_elab *e, const kl_node *n)
{
    kl_sym *s = n->kind == KL_N_NAME ? kl_sym_find(e, n->name) : NULL;
    if (!s || s->kind != KL_S_CONST || !s->table)
        return NULL;
    s->used = true;
    return s;
}

bool kl_table_element(kl_elab *e, const kl_sym *s, const struct kl_access *acc, kl_span span, kl_value *out)
{
    const kl_value *t = &s->val;
    bool known = s->table->v != NULL;
    int64_t at = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        const kl_value *x = &acc->sub[d].first;
        if (acc->sub[d].step || acc->sub[d].index || x->kind != KL_V_TILE || !x->konst)
            return false;
        known &= x->known;
        int64_t i = x->known ? kl_const_i64(x) : 0;
        if (x->known && (i < 0 || (t->dim[d].n && i >= t->dim[d].n)))
            return false; /* reads zero, and is a finding */
        at = at * t->dim[d].n + i;
    }
    if (known) {
        *out = s->table->v[at];
    } else {
        *out = kl_int(0, span);
        out->known = false;
        out->sym = kl_symbol(e, "?%u", e->syms.n);
        if (!t->elem || !kl_is_int((enum kl_elem)t->elem)) {
            out->untyped = false;
            out->elem = t->elem;
        }
    }
    out->span = span;
    return true;
}
