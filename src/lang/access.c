/* access.c - subscripts: reading and writing arrays, parts of tiles, views. */
#include "lang/elab.h"

void kl_access_shape(const struct kl_access *acc, uint32_t *rank, kl_dim *dim)
{
    *rank = acc->rank;
    if (acc->rank) {
        memcpy(dim, acc->dim, acc->rank * sizeof *dim);
        return;
    }
    for (uint32_t i = 0; i < acc->n; i++)
        if ((acc->sub[i].step || acc->sub[i].index) && *rank < KL_MAX_RANK)
            dim[(*rank)++] = acc->sub[i].count;
}

/* first:first + count, as elsewhere one writes an end?  Then the count, else NULL. */
static const kl_node *end_for_count(const kl_node *first, const kl_node *n)
{
    if (n->kind != KL_N_BINARY || n->op != KL_TK_ADD || first->kind != KL_N_NAME)
        return NULL;
    for (uint32_t i = 0; i < 2; i++)
        if (n->kid[i]->kind == KL_N_NAME && n->kid[i]->name == first->name)
            return n->kid[1 - i];
    return NULL;
}

static bool section_count(kl_elab *e, const kl_node *first, const kl_node *n, kl_dim *out)
{
    kl_value v = kl_rvalue(e, n);
    if (v.kind == KL_V_TILE && !v.konst) {
        struct kl_diag *g = kl_err(e, KL_K0314, n->span,
                                   "a section is first:count, and the count must be a constant");
        const kl_node *count = end_for_count(first, n);
        const kl_sym *s = n->kind == KL_N_NAME ? kl_sym_find(e, n->name) : NULL;
        if (count) {
            kl_note(g, (kl_span){0, 0}, "behind the colon stands how many elements, not where they end");
            if (count->kind == KL_N_NAME)
                kl_fix(g, n->span, "%s", count->name);
        } else if (s && s->param && s->kind == KL_S_VAR) {
            kl_note(g, s->decl, "a parameter that is known when the kernel is compiled is "
                                "`constexpr i64 %s`", n->name);
        } else {
            kl_note(g, (kl_span){0, 0},
                    "for a part that ends at %s, read a tile of constant size; elements past the "
                    "extent of the array read 0 and are not written",
                    n->name ? kl_printf(e->a, "`%s`", n->name) : "a number of the launch");
        }
        return false;
    }
    int64_t k;
    bool known;
    v.span = n->span;
    if (!kl_need_const(e, &v, "the count of a section", &k, &known))
        return false;
    *out = (kl_dim){0, v.sym};
    if (!known)
        return true;
    if (k <= 0 || k > INT32_MAX) {
        kl_err(e, KL_K0310, n->span, "the count of a section must be between 1 and 2147483647, not %lld",
               (long long)k);
        return false;
    }
    *out = kl_dim_of((uint32_t)k);
    return true;
}

/* One subscript.  whole: the size that `:` stands for. */
static void subscript(kl_elab *e, const kl_node *n, const kl_value *whole, struct kl_access *acc)
{
    uint32_t i = acc->n++;
    acc->sub[i].step = 0;
    if (n->kind == KL_N_SECTION) {
        acc->sub[i].first = kl_scalar_i64(e, n->kid[0], "the start of a section");
        acc->sub[i].step = 1;
        if (!section_count(e, n->kid[0], n->kid[1], &acc->sub[i].count))
            acc->bad = true;
        if (n->nkid > 2 && n->kid[2]) {
            kl_value s = kl_rvalue(e, n->kid[2]);
            bool known;
            s.span = n->kid[2]->span;
            if (!kl_need_const(e, &s, "the step of a section", &acc->sub[i].step, &known))
                acc->bad = true;
            else if (known && acc->sub[i].step == 0) {
                kl_err(e, KL_K0310, n->kid[2]->span, "the step of a section must not be 0");
                acc->bad = true;
            }
            if (!acc->sub[i].step)
                acc->sub[i].step = 1;
        }
        acc->bad |= acc->sub[i].first.kind == KL_V_ERR;
        return;
    }
    if (n->kind == KL_N_ALL) {
        acc->sub[i].first = kl_typed(KL_i64, 0, n->span);
        acc->sub[i].step = 1;
        if (!whole->konst) {
            kl_err(e, KL_K0314, n->span,
                   "`:` stands for a whole dimension only when its extent is a constant");
            acc->bad = true;
        } else if (whole->known) {
            int64_t k = kl_const_i64(whole);
            if (k <= 0 || k > INT32_MAX) {
                kl_err(e, KL_K0310, n->span, "`:` stands for a dimension of extent %lld here",
                       (long long)k);
                acc->bad = true;
            } else {
                acc->sub[i].count = kl_dim_of((uint32_t)k);
            }
        } else {
            acc->sub[i].count = (kl_dim){0, whole->sym};
        }
        return;
    }
    kl_value v = kl_rvalue(e, n);
    if (v.kind == KL_V_TILE && v.dec) {
        kl_err(e, KL_K0309, n->span, "a subscript must be an integer, not a decimal");
        acc->bad = true;
        return;
    }
    if (v.kind == KL_V_TILE && !v.untyped && v.elem && !kl_is_int((enum kl_elem)v.elem)) {
        kl_err(e, KL_K0309, n->span, "a subscript must be an integer, not %s", kl_elems[v.elem].name);
        acc->bad = true;
        return;
    }
    if (v.kind == KL_V_TILE && v.rank && acc->tile) {
        kl_note(kl_err(e, KL_K0318, n->span, "a tile is a subscript of arrays only"), (kl_span){0, 0},
                "`gather(x, index, .axis = %u)` takes elements of a tile by their numbers", i);
        acc->bad = true;
        return;
    }
    acc->sub[i].first = v.untyped ? kl_give_type(e, v, KL_i64) : kl_cast(e, v, KL_i64);
    acc->sub[i].first.span = n->span;
    acc->bad |= acc->sub[i].first.kind != KL_V_TILE;
    if (v.rank && !acc->bad) {
        acc->sub[i].index = true;
        acc->sub[i].count = v.dim[0];
    }
}

static bool sections_fit(kl_elab *e, const struct kl_access *acc, kl_span s)
{
    uint32_t n = acc->rank;
    for (uint32_t i = 0; i < acc->n && !acc->rank; i++)
        n += acc->sub[i].step != 0 || acc->sub[i].index;
    if (n <= KL_MAX_RANK)
        return true;
    kl_err(e, KL_K0802, s, "this access makes a tile of rank %u; tiles have at most rank %d", n,
           KL_MAX_RANK);
    return false;
}

/* Index tiles: one of rank 1 beside sections, or several that broadcast together. */
static bool indices_fit(kl_elab *e, struct kl_access *acc, kl_span s)
{
    uint32_t sections = 0, n = 0, first = 0, rank = 0;
    kl_span section = s;
    for (uint32_t i = acc->n; i-- > 0;) {
        if (acc->sub[i].index)
            n++, first = i;
        else if (acc->sub[i].step)
            sections++, section = acc->sub[i].first.span;
    }
    const kl_value *x = &acc->sub[first].first;
    if (!n || (n == 1 && sections && x->rank == 1))
        return true;
    if (sections) {
        struct kl_diag *g =
            n > 1 ? kl_err(e, KL_K0318, s, "%u index tiles stand beside a section here", n)
                  : kl_err(e, KL_K0318, x->span, "an index tile of shape %s stands beside a section",
                           kl_dims_text(e, x));
        kl_note(g, section, "a section");
        kl_note(g, (kl_span){0, 0}, "beside sections stands one index tile of rank 1; several, or one of a "
                "higher rank, stand beside scalars");
        return false;
    }
    kl_dim dim[KL_MAX_RANK];
    for (uint32_t i = 0; i < acc->n; i++)
        if (acc->sub[i].index && !kl_broadcast_shape(e, &rank, dim, &acc->sub[i].first, s))
            return false;
    for (uint32_t i = 0; i < acc->n; i++)
        if (acc->sub[i].index)
            acc->sub[i].first = kl_stretch(e, acc->sub[i].first, rank, dim);
    acc->rank = (uint8_t)rank;
    memcpy(acc->dim, dim, rank * sizeof *dim);
    return true;
}

static kl_value array_access(kl_elab *e, const kl_node *n, struct kl_arr *arr)
{
    uint32_t given = n->nkid - 1;
    struct kl_access *acc = kl_new(e->a, struct kl_access);
    kl_value v = {.kind = KL_V_ACCESS, .elem = arr->elem, .arr = arr, .acc = acc, .span = n->span};
    if (given > arr->rank) {
        kl_note(kl_err(e, KL_K0315, n->span, "`%s` has rank %u, and here are %u subscripts", arr->name,
                       arr->rank, given),
                arr->decl, "declared here");
        return kl_bad(n->span);
    }
    for (uint32_t i = 0; i < given; i++)
        subscript(e, n->kid[i + 1], &arr->ext[i], acc);
    for (uint32_t i = given; i < arr->rank && !acc->bad; i++) {
        kl_node all = {.kind = KL_N_ALL, .span = n->span};
        if (!arr->ext[i].konst) {
            kl_note(kl_err(e, KL_K0315, n->span, "`%s` has rank %u, and here %s %u subscript%s",
                           arr->name, arr->rank, given == 1 ? "is" : "are", given,
                           given == 1 ? "" : "s"),
                    arr->decl, "declared here");
            return kl_bad(n->span);
        }
        subscript(e, &all, &arr->ext[i], acc);
    }
    if (acc->bad || !indices_fit(e, acc, n->span) || !sections_fit(e, acc, n->span))
        return kl_bad(n->span);
    return v;
}

/* Start operands and steps for IR, in an access of e's function; returns the number of operands. */
uint32_t kl_access_starts(kl_elab *e, const struct kl_access *acc, kl_val *args, union kl_attr *attr)
{
    int64_t step[KL_MAX_DIMS];
    for (uint32_t i = 0; i < acc->n; i++) {
        args[i] = kl_ir(e, &acc->sub[i].first);
        step[i] = acc->sub[i].step;
    }
    attr->access.at = kl_aux_add(e->f, step, acc->n);
    attr->access.n = (uint16_t)acc->n;
    return acc->n;
}

bool kl_array_usable(kl_elab *e, const struct kl_arr *arr, kl_span s)
{
    if (arr->given)
        return true;
    kl_note(kl_err(e, KL_K0604, s, "the optional array `%s` was not given", arr->name), arr->decl,
            "test `given(%s)` in a compile-time if before using it", arr->name);
    return false;
}

kl_value kl_load(kl_elab *e, kl_value v, const kl_value *fill, const kl_value *mask, kl_span s)
{
    if (kl_in_fold(e, s, "a load"))
        return kl_bad(s);
    struct kl_arr *arr = v.arr;
    uint32_t rank;
    kl_dim dim[KL_MAX_RANK];
    kl_access_shape(v.acc, &rank, dim);
    if (arr->param && e->mode == KL_CHECK && !e->trial)
        arr->param->flags |= KL_NF_READ;
    if (!kl_array_usable(e, arr, s))
        return kl_bad(s);
    if (!e->fx) {
        kl_err(e, KL_K0403, s, "`%s` has no elements outside a program", arr->name);
        return kl_bad(s);
    }
    kl_value fl = {0}, mk = {0};
    if (fill) {
        fl = kl_move(e, *fill, (enum kl_elem)arr->elem, KL_MOVE, "the fill");
        fl = kl_fit(e, fl, rank, dim, "the fill");
        if (fl.kind != KL_V_TILE)
            return kl_bad(s);
    }
    if (mask) {
        mk = kl_fit(e, kl_to_bool(e, *mask), rank, dim, "the mask");
        if (mk.kind != KL_V_TILE)
            return kl_bad(s);
    }
    kl_value r = kl_rt(e, (enum kl_elem)arr->elem, rank, dim, (kl_val){0}, s);
    if (kl_emitting(e)) {
        kl_val args[KL_MAX_DIMS + 3];
        union kl_attr attr = {0};
        e->b.loc = s;
        args[0] = arr->ir;
        uint32_t n = 1 + kl_access_starts(e, v.acc, args + 1, &attr);
        if (fill)
            args[n++] = kl_ir(e, &fl), attr.access.flags |= KL_ACC_FILL;
        if (mask)
            args[n++] = kl_ir(e, &mk), attr.access.flags |= KL_ACC_MASK;
        e->b.loc = s;
        r.ir = kl_emit(&e->b, KL_OP_load, kl_irtype(e, (enum kl_elem)arr->elem, rank, dim), args, n,
                       attr);
    }
    return r;
}

void kl_store(kl_elab *e, kl_value acc, kl_value v, const kl_value *mask, kl_span s)
{
    if (kl_in_fold(e, s, "a store"))
        return;
    struct kl_arr *arr = acc.arr;
    uint32_t rank;
    kl_dim dim[KL_MAX_RANK];
    kl_access_shape(acc.acc, &rank, dim);
    if (arr->param && e->mode == KL_CHECK && !e->trial)
        arr->param->flags |= KL_NF_WRITTEN;
    if (arr->isconst) {
        struct kl_diag *g = kl_err(e, KL_K0316, acc.span, "`%s` is const and may not be written", arr->name);
        kl_note(g, arr->decl, "declared const here");
        return;
    }
    if (!kl_array_usable(e, arr, acc.span))
        return;
    v = kl_move(e, v, (enum kl_elem)arr->elem, KL_MOVE, "the value stored");
    v = kl_fit(e, v, rank, dim, "the value stored");
    kl_value mk = {0};
    if (mask) {
        mk = kl_fit(e, kl_to_bool(e, *mask), rank, dim, "the mask");
        if (mk.kind != KL_V_TILE)
            return;
    }
    if (v.kind != KL_V_TILE || !kl_emitting(e))
        return;
    kl_val args[KL_MAX_DIMS + 3];
    union kl_attr attr = {0};
    e->b.loc = s;
    args[0] = arr->ir;
    uint32_t n = 1 + kl_access_starts(e, acc.acc, args + 1, &attr);
    args[n++] = kl_ir(e, &v);
    if (mask)
        args[n++] = kl_ir(e, &mk), attr.access.flags |= KL_ACC_MASK;
    e->b.loc = s;
    kl_emit(&e->b, KL_OP_store, (kl_typ){0}, args, n, attr);
}

kl_value kl_inside(kl_elab *e, kl_value v, kl_span s)
{
    uint32_t rank;
    kl_dim dim[KL_MAX_RANK];
    kl_access_shape(v.acc, &rank, dim);
    if (!kl_array_usable(e, v.arr, s))
        return kl_bad(s);
    kl_value r = kl_rt(e, KL_bool, rank, dim, (kl_val){0}, s);
    if (kl_emitting(e)) {
        kl_val args[KL_MAX_DIMS + 1];
        union kl_attr attr = {0};
        args[0] = v.arr->ir;
        uint32_t n = 1 + kl_access_starts(e, v.acc, args + 1, &attr);
        r.ir = kl_emit(&e->b, KL_OP_inside, kl_irtype(e, KL_bool, rank, dim), args, n, attr);
    }
    return r;
}

/* first + i * step along dimension d, sized 1 along the other axes */
kl_value kl_coord(kl_elab *e, kl_value v, uint32_t d, kl_span s)
{
    struct kl_access *acc = v.acc;
    uint32_t rank = 0, axis = 0;
    kl_dim dim[KL_MAX_RANK];
    if (acc->rank) {
        if (acc->sub[d].index)
            return acc->sub[d].first;
        for (; rank < acc->rank; rank++)
            dim[rank] = kl_dim_of(1);
        return kl_stretch(e, acc->sub[d].first, rank, dim);
    }
    for (uint32_t i = 0; i < acc->n; i++)
        if (acc->sub[i].step || acc->sub[i].index) {
            if (i == d)
                axis = rank;
            dim[rank++] = i == d ? acc->sub[i].count : kl_dim_of(1);
        }
    kl_value first = acc->sub[d].first;
    if (acc->sub[d].index)
        return kl_fit(e, first, rank, dim, "coord");
    if (!acc->sub[d].step)
        return kl_stretch(e, first, rank, dim);
    kl_value idx = kl_rt(e, KL_i32, 1, &dim[axis], (kl_val){0}, s);
    if (kl_emitting(e))
        idx.ir = kl_emit(&e->b, KL_OP_iota, kl_irtype(e, KL_i32, 1, &dim[axis]), NULL, 0,
                         (union kl_attr){0});
    idx = kl_fit(e, kl_cast(e, idx, KL_i64), rank, dim, "coord");
    kl_value step = kl_stretch(e, kl_typed(KL_i64, (uint64_t)acc->sub[d].step, s), rank, dim);
    first = kl_stretch(e, first, rank, dim);
    return kl_op2(e, KL_OP_add, first, kl_op2(e, KL_OP_mul, idx, step, s), s);
}

/* ---- parts of tiles ---- */

struct kl_access *kl_tile_subscripts(kl_elab *e, const kl_value *t, const kl_node *n)
{
    uint32_t given = n->nkid - 1;
    struct kl_access *acc = kl_new(e->a, struct kl_access);
    acc->tile = true;
    if (given > t->rank) {
        kl_err(e, KL_K0315, n->span, "a tile of shape %s with %u subscripts", kl_dims_text(e, t), given);
        return NULL;
    }
    for (uint32_t i = 0; i < t->rank; i++) {
        kl_node all = {.kind = KL_N_ALL, .span = n->span};
        kl_value size = kl_int(t->dim[i].n, n->span);
        if (!t->dim[i].n)
            size.known = false, size.sym = t->dim[i].sym;
        subscript(e, i < given ? n->kid[i + 1] : &all, &size, acc);
    }
    return acc->bad ? NULL : acc;
}

kl_value kl_tile_part(kl_elab *e, kl_value t, const struct kl_access *acc, kl_span s)
{
    uint32_t rank;
    kl_dim dim[KL_MAX_RANK];
    kl_access_shape(acc, &rank, dim);
    kl_value r = kl_rt(e, (enum kl_elem)t.elem, rank, dim, (kl_val){0}, s);
    if (kl_emitting(e)) {
        kl_val args[KL_MAX_DIMS + 1];
        union kl_attr attr = {0};
        args[0] = kl_ir(e, &t);
        uint32_t k = 1 + kl_access_starts(e, acc, args + 1, &attr);
        e->b.loc = s;
        r.ir = kl_emit(&e->b, KL_OP_extract, kl_irtype(e, (enum kl_elem)t.elem, rank, dim), args, k,
                       attr);
    }
    return r;
}

kl_value kl_tile_replace(kl_elab *e, kl_value t, const struct kl_access *acc, kl_value v, kl_span s)
{
    uint32_t rank;
    kl_dim dim[KL_MAX_RANK];
    kl_access_shape(acc, &rank, dim);
    v = kl_move(e, v, (enum kl_elem)t.elem, KL_MOVE, "the value assigned");
    v = kl_fit(e, v, rank, dim, "the value assigned");
    if (v.kind != KL_V_TILE)
        return kl_bad(s);
    if (kl_emitting(e)) {
        kl_val args[KL_MAX_DIMS + 2];
        union kl_attr attr = {0};
        args[0] = kl_ir(e, &t);
        uint32_t k = 1 + kl_access_starts(e, acc, args + 1, &attr);
        args[k++] = kl_ir(e, &v);
        e->b.loc = s;
        t.ir = kl_emit(&e->b, KL_OP_insert, e->f->ins[args[0].id].type, args, k, attr);
        t.konst = t.known = false;
    }
    t.span = s;
    return t;
}

kl_value kl_index(kl_elab *e, const kl_node *n)
{
    const kl_sym *table = kl_table_named(e, n->kid[0]);
    if (table) {
        kl_value v;
        struct kl_access *at = kl_tile_subscripts(e, &table->val, n);
        if (!at)
            return kl_bad(n->span);
        if (kl_table_element(e, table, at, n->span, &v))
            return v;
        v = kl_table_value(e, table, n->kid[0]->span);
        return v.kind == KL_V_TILE ? kl_tile_part(e, v, at, n->span) : kl_bad(n->span);
    }
    kl_value base = kl_expr(e, n->kid[0]);
    if (base.kind == KL_V_ARRAY)
        return array_access(e, n, base.arr);
    base = kl_load_if_access(e, base);
    if (base.kind != KL_V_TILE) {
        for (uint32_t i = 1; i < n->nkid; i++)
            kl_mark_used(e, n->kid[i]);
        return kl_bad(n->span);
    }
    if (!base.rank) {
        kl_err(e, KL_K0315, n->span, "a scalar has no subscripts");
        return kl_bad(n->span);
    }
    struct kl_access *acc = kl_tile_subscripts(e, &base, n);
    return acc ? kl_tile_part(e, base, acc, n->span) : kl_bad(n->span);
}

/* ---- arrays and views ---- */

void kl_array_layout(kl_elab *e, struct kl_arr *arr, const kl_node *dims, const kl_node *strides)
{
    arr->rank = dims->nkid;
    if (arr->rank > KL_MAX_DIMS) {
        kl_err(e, KL_K0802, dims->span, "an array has at most rank %d", KL_MAX_DIMS);
        arr->rank = KL_MAX_DIMS;
    }
    for (uint32_t i = 0; i < arr->rank; i++) {
        const kl_node *x = dims->kid[i];
        if (!x) {
            if (arr->rank > 1)
                kl_err(e, KL_K0317, dims->span, "only an array of rank 1 may have an unknown extent");
            arr->unbounded = true;
            arr->ext[i] = kl_typed(KL_i64, INT64_MAX, dims->span);
            arr->ext[i].konst = false;
            arr->ext[i].konst = kl_emitting(e); /* `:` needs an extent; IR takes the number */
            continue;
        }
        kl_value v = kl_rvalue(e, x);
        uint32_t sym = v.sym;
        arr->ext[i] = kl_as_i64(e, v, x, "an extent");
        if (v.kind == KL_V_TILE && v.konst) /* sizes compare by their text */
            arr->ext[i].sym = sym;
    }
    if (strides && strides->nkid != arr->rank)
        kl_err(e, KL_K0317, strides->span, "`%s` has rank %u, and here are %u strides", arr->name,
               arr->rank, strides->nkid);
    for (uint32_t i = arr->rank; i-- > 0;) {
        if (strides && i < strides->nkid && strides->kid[i])
            arr->str[i] = kl_scalar_i64(e, strides->kid[i], "a stride");
        else if (i + 1 == arr->rank)
            arr->str[i] = kl_typed(KL_i64, 1, dims->span);
        else if (arr->str[i + 1].kind == KL_V_TILE && arr->ext[i + 1].kind == KL_V_TILE)
            arr->str[i] = kl_op2(e, KL_OP_mul, arr->str[i + 1], arr->ext[i + 1], dims->span);
        else
            arr->str[i] = kl_bad(dims->span);
    }
}

/* The view instruction of arr inside `base` at `offset`. */
static void emit_view(kl_elab *e, struct kl_arr *arr, kl_val base, const kl_value *offset)
{
    kl_val args[2 + 2 * KL_MAX_DIMS];
    uint32_t n = 0;
    args[n++] = base;
    args[n++] = kl_ir(e, offset);
    for (uint32_t i = 0; i < arr->rank; i++)
        args[n++] = kl_ir(e, &arr->ext[i]);
    for (uint32_t i = 0; i < arr->rank; i++)
        args[n++] = kl_ir(e, &arr->str[i]);
    arr->ir = kl_emit(&e->b, KL_OP_view, kl_array(e->f, (enum kl_elem)arr->elem, arr->rank), args, n,
                      (union kl_attr){0});
}

struct kl_arr *kl_make_view(kl_elab *e, const kl_node *var, const kl_node *type, unsigned flags)
{
    const kl_node *dims = var->kid[0], *init = var->nkid > 2 ? var->kid[2] : NULL;
    bool ok;
    struct kl_arr *arr = kl_new(e->a, struct kl_arr);
    arr->name = var->name;
    arr->decl = var->name_span;
    arr->given = true;
    arr->elem = (uint8_t)kl_eval_type(e, type, &ok);
    arr->isconst = flags & KL_NF_CONST;
    if (!ok)
        return NULL;
    if (!dims) {
        kl_err(e, KL_K0317, var->span, "a view needs extents, as in `global T %s[n] = &a[first];`",
               var->name);
        return NULL;
    }
    const kl_node *target = init && init->kind == KL_N_UNARY && init->op == KL_TK_AND ? init->kid[0] : NULL;
    if (!target) {
        kl_err(e, KL_K0312, init ? init->span : var->span,
               "a view begins at a place in an array: `= &a[first];`");
        return NULL;
    }
    const kl_node *base = target->kind == KL_N_INDEX ? target->kid[0] : target;
    kl_value b = kl_expr(e, base);
    if (b.kind != KL_V_ARRAY) {
        if (b.kind != KL_V_ERR)
            kl_err(e, KL_K0312, base->span, "only a place in an array has an address");
        return NULL;
    }
    struct kl_arr *parent = b.arr;
    if (!kl_array_usable(e, parent, base->span))
        return NULL;
    if (parent->isconst && !arr->isconst) {
        kl_note(kl_err(e, KL_K0316, init->span, "`%s` is const, and the view `%s` is not", parent->name,
                       arr->name),
                parent->decl, "declared const here");
        arr->isconst = true;
    }
    if (parent->elem && arr->elem && parent->elem != arr->elem) {
        kl_note(kl_err(e, KL_K0301, type->span, "a view of %s into an array of %s",
                       kl_elems[arr->elem].name, kl_elems[parent->elem].name),
                parent->decl, "declared here");
        return NULL;
    }
    arr->param = parent->param;
    kl_value off = kl_typed(KL_i64, 0, init->span);
    if (target->kind == KL_N_INDEX) {
        if (target->nkid - 1 > parent->rank) {
            kl_err(e, KL_K0315, target->span, "`%s` has rank %u, and here are %u subscripts",
                   parent->name, parent->rank, target->nkid - 1);
            return NULL;
        }
        for (uint32_t i = 0; i + 1 < target->nkid; i++) {
            const kl_node *x = target->kid[i + 1];
            if (x->kind == KL_N_SECTION || x->kind == KL_N_ALL) {
                kl_err(e, KL_K0312, x->span, "the place where a view begins has scalar subscripts");
                return NULL;
            }
            kl_value v = kl_scalar_i64(e, x, "a subscript");
            if (v.kind != KL_V_TILE || parent->str[i].kind != KL_V_TILE)
                return NULL;
            v = kl_op2(e, KL_OP_mul, v, parent->str[i], x->span);
            off = kl_op2(e, KL_OP_add, off, v, x->span);
        }
    }
    kl_array_layout(e, arr, dims, var->nkid > 1 ? var->kid[1] : NULL);
    for (uint32_t i = 0; i < arr->rank; i++)
        if (arr->ext[i].kind != KL_V_TILE || arr->str[i].kind != KL_V_TILE)
            return NULL;
    if (kl_emitting(e)) {
        e->b.loc = var->span;
        emit_view(e, arr, parent->ir, &off);
    }
    return arr;
}
