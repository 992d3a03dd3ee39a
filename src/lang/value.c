/* value.c - values of the elaborator: constants, conversion, promotion, shapes. */
#include "lang/elab.h"

#include <math.h>

kl_dim kl_dim_of(uint32_t n)
{
    return (kl_dim){n, 0};
}

int kl_dim_eq(kl_dim a, kl_dim b)
{
    if (a.n && b.n)
        return a.n == b.n;
    if (!a.n && !b.n && a.sym && a.sym == b.sym)
        return 1;
    return -1;
}

enum { MAX_NUMEL = 1 << 26 }; /* elements of one tile */

bool kl_tile_fits(kl_elab *e, uint32_t rank, const kl_dim *dim, kl_span s)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < rank && n <= MAX_NUMEL; i++)
        n *= dim[i].n ? dim[i].n : 1;
    if (n <= MAX_NUMEL)
        return true;
    kl_value t = {.kind = KL_V_TILE, .rank = (uint8_t)rank};
    memcpy(t.dim, dim, rank * sizeof *dim);
    kl_err(e, KL_K0802, s, "a tile of shape %s has more than %d elements", kl_dims_text(e, &t), MAX_NUMEL);
    return false;
}

bool kl_dims_known(const kl_value *v)
{
    for (uint32_t i = 0; i < v->rank; i++)
        if (!v->dim[i].n)
            return false;
    return true;
}

kl_value kl_int(int64_t i, kl_span span)
{
    return (kl_value){.kind = KL_V_TILE, .elem = KL_i32, .konst = true, .known = true,
                      .untyped = true, .i = i, .f = (float)i, .d = (double)i, .span = span};
}

kl_value kl_uint(uint64_t i, kl_span span)
{
    kl_value v = kl_int((int64_t)i, span);
    if (i > INT64_MAX)
        v.big = true, v.f = (float)i, v.d = (double)i;
    return v;
}

kl_value kl_int_of(enum kl_elem el, uint64_t bits, kl_span s)
{
    return el == KL_u64 ? kl_uint(bits, s) : kl_int((int64_t)bits, s);
}

kl_i128 kl_wide(const kl_value *v)
{
    bool big = v->untyped ? v->big : v->elem == KL_u64;
    uint64_t bits = v->untyped ? (uint64_t)v->i : v->bits;
    return big ? (kl_i128)bits : (kl_i128)(int64_t)bits;
}

int64_t kl_const_i64(const kl_value *v)
{
    kl_i128 w = kl_wide(v);
    return w > INT64_MAX ? INT64_MAX : (int64_t)w;
}

bool kl_from_wide(kl_i128 w, kl_span s, kl_value *out)
{
    if (w < INT64_MIN || w > UINT64_MAX)
        return false;
    *out = w > INT64_MAX ? kl_uint((uint64_t)w, s) : kl_int((int64_t)w, s);
    return true;
}

kl_value kl_typed(enum kl_elem el, uint64_t bits, kl_span s)
{
    return (kl_value){.kind = KL_V_TILE, .elem = (uint8_t)el, .konst = true, .known = true,
                      .bits = kl_canon(el, bits), .span = s};
}

kl_value kl_rt(kl_elab *e, enum kl_elem el, uint32_t rank, const kl_dim *dim, kl_val ir, kl_span s)
{
    if (rank && !kl_tile_fits(e, rank, dim, s))
        return kl_bad(s);
    kl_value v = {.kind = KL_V_TILE, .elem = (uint8_t)el, .rank = (uint8_t)rank, .ir = ir, .span = s};
    if (rank)
        memcpy(v.dim, dim, rank * sizeof *dim);
    return v;
}

kl_typ kl_irtype(kl_elab *e, enum kl_elem el, uint32_t rank, const kl_dim *dim)
{
    uint32_t n[KL_MAX_RANK] = {0};
    for (uint32_t i = 0; i < rank; i++)
        n[i] = dim[i].n;
    return kl_tile(e->f, el, rank, n);
}

kl_val kl_ir(kl_elab *e, const kl_value *v)
{
    if (!kl_emitting(e))
        return (kl_val){0};
    if (v->konst) {
        kl_value c = v->untyped ? kl_concrete(e, *v) : *v;
        return kl_cst(&e->b, kl_scalar(e->f, (enum kl_elem)c.elem), c.bits);
    }
    KL_CHECK(e->a->env, v->ir.id != 0);
    return v->ir;
}

/* ---- untyped constants ---- */

static bool int_fits(const kl_value *v, enum kl_elem el)
{
    int64_t i = v->i;
    if (v->big)
        return el == KL_u64;
    switch (el) {
    case KL_bool: return i == 0 || i == 1;
    case KL_i64: return true;
    case KL_u64: return i >= 0;
    default: break;
    }
    uint32_t bits = kl_elems[el].bytes * 8u;
    if (kl_elems[el].kind == KL_KIND_SINT)
        return i >= -((int64_t)1 << (bits - 1)) && i < (int64_t)1 << (bits - 1);
    return i >= 0 && i < (int64_t)1 << bits;
}

kl_value kl_give_type(kl_elab *e, kl_value v, enum kl_elem el)
{
    if (v.kind == KL_V_ERR || !v.untyped)
        return v;
    if (el == KL_elem_none) { /* a type still unknown: so is the constant */
        v.untyped = v.known = false;
        v.elem = 0;
        v.sym = kl_symbol(e, "?%u", e->syms.n);
        return v;
    }
    if (!v.known) {
        if (v.dec && !kl_is_float(el)) {
            kl_err(e, KL_K0304, v.span, "a decimal where %s is wanted", kl_elems[el].name);
            return kl_bad(v.span);
        }
        v.untyped = false;
        v.elem = (uint8_t)el;
        return v;
    }
    if (kl_is_float(el)) {
        uint64_t bits;
        if (!kl_float_number(el, v.f, v.d, &bits)) {
            kl_err(e, KL_K0303, v.span, "%s does not fit %s", kl_const_text(e, &v), kl_elems[el].name);
            return kl_bad(v.span);
        }
        return kl_typed(el, bits, v.span);
    }
    if (v.dec) {
        struct kl_diag *g = kl_err(e, KL_K0304, v.span, "the decimal %s where %s is wanted",
                                   kl_const_text(e, &v), kl_elems[el].name);
        kl_note(g, (kl_span){0, 0}, "cast the other operand to a float type, or write an integer");
        return kl_bad(v.span);
    }
    if (!int_fits(&v, el)) {
        kl_err(e, KL_K0303, v.span, "%s does not fit %s", kl_const_text(e, &v), kl_elems[el].name);
        return kl_bad(v.span);
    }
    return kl_typed(el, (uint64_t)v.i, v.span);
}

kl_value kl_concrete(kl_elab *e, kl_value v)
{
    if (v.kind != KL_V_TILE || !v.untyped)
        return v;
    if (v.dec)
        return kl_give_type(e, v, KL_f32);
    if (!v.known) /* i32 or i64 */
        return kl_give_type(e, v, KL_elem_none);
    return kl_give_type(e, v, int_fits(&v, KL_i32) ? KL_i32 : KL_i64);
}

/* ---- operations ---- */

/* elem of the result of an EW row on operands of type el */
static enum kl_elem result_elem(enum kl_op op, enum kl_elem el)
{
    return kl_ops[op].cls == KL_C_CMP ? KL_bool : el;
}

static kl_value ew(kl_elab *e, enum kl_op op, kl_value *x, uint32_t n, kl_span s)
{
    for (uint32_t i = 0; i < n; i++)
        if (x[i].kind == KL_V_ERR)
            return kl_bad(s);
    const kl_value *t = &x[op == KL_OP_select ? n - 1 : 0]; /* select: the type is that of its arms */
    enum kl_elem el = result_elem(op, (enum kl_elem)t->elem);
    bool konst = true, known = true;
    uint64_t bits[3] = {0};
    for (uint32_t i = 0; i < n; i++) {
        konst &= x[i].konst;
        known &= x[i].konst && x[i].known;
        bits[i] = x[i].bits;
    }
    if (known && e->mode == KL_BIND && bits[1] == 0 &&
        (op == KL_OP_div || op == KL_OP_rem || op == KL_OP_cdiv || op == KL_OP_floordiv || op == KL_OP_floormod) &&
        kl_is_int((enum kl_elem)t->elem)) {
        kl_err(e, KL_K0713, s, "a division by 0 where the size of the launch is computed");
        return kl_bad(s);
    }
    if (known) {
        uint64_t out;
        if (kl_fold(op, el, (enum kl_elem)t->elem, bits, &out))
            return kl_typed(el, out, s);
        konst = false;
    }
    kl_value r = kl_rt(e, el, t->rank, t->dim, (kl_val){0}, s);
    if (konst && !kl_emitting(e)) {
        r.konst = true;
        r.sym = kl_symbol(e, "?%u", e->syms.n);
        return r;
    }
    if (kl_emitting(e)) {
        kl_val a[3];
        for (uint32_t i = 0; i < n; i++)
            a[i] = kl_ir(e, &x[i]);
        e->b.loc = s;
        r.ir = n == 1   ? kl_ew1(&e->b, op, a[0])
               : n == 2 ? kl_ew2(&e->b, op, a[0], a[1])
                        : kl_ew3(&e->b, op, a[0], a[1], a[2]);
    }
    return r;
}

kl_value kl_op1(kl_elab *e, enum kl_op op, kl_value a, kl_span s)
{
    return ew(e, op, &a, 1, s);
}

kl_value kl_op2(kl_elab *e, enum kl_op op, kl_value a, kl_value b, kl_span s)
{
    return ew(e, op, (kl_value[2]){a, b}, 2, s);
}

kl_value kl_op3(kl_elab *e, enum kl_op op, kl_value a, kl_value b, kl_value c, kl_span s)
{
    return ew(e, op, (kl_value[3]){a, b, c}, 3, s);
}

/* ---- conversion ---- */

kl_value kl_cast(kl_elab *e, kl_value v, enum kl_elem el)
{
    if (v.kind != KL_V_TILE)
        return v;
    if (v.untyped) {
        if (v.known) { /* a cast takes any value, as from i64 or f64 */
            uint64_t bits;
            if (!v.dec)
                bits = kl_convert(el, v.big ? KL_u64 : KL_i64, (uint64_t)v.i);
            else if (!kl_is_float(el))
                bits = kl_convert(el, KL_f64, kl_f64_bits(v.d));
            else if (!kl_float_number(el, v.f, v.d, &bits) || isinf(v.d)) /* too large */
                bits = kl_convert(el, KL_f32, kl_f32_bits(v.f));
            return kl_typed(el, bits, v.span);
        }
        v.untyped = false;
        v.elem = (uint8_t)el;
        return v;
    }
    if (v.elem == el)
        return v;
    if (v.konst && v.known && el)
        return kl_typed(el, kl_convert(el, (enum kl_elem)v.elem, v.bits), v.span);
    if (kl_emitting(e))
        v.ir = kl_to(&e->b, el, kl_ir(e, &v));
    v.elem = (uint8_t)el;
    return v;
}

kl_value kl_promote(kl_elab *e, kl_value v)
{
    if (v.kind != KL_V_TILE || v.untyped || !v.elem)
        return v;
    return kl_cast(e, v, (enum kl_elem)kl_elems[v.elem].acc);
}

/* Does an integer type hold every value of another? */
static bool holds(enum kl_elem to, enum kl_elem from)
{
    uint32_t tk = kl_elems[to].kind, fk = kl_elems[from].kind, tb = kl_elems[to].bytes,
             fb = kl_elems[from].bytes;
    if (fk == KL_KIND_BOOL)
        return tk == KL_KIND_SINT || tk == KL_KIND_UINT;
    if (tk == fk)
        return tb >= fb;
    return tk == KL_KIND_SINT && fk == KL_KIND_UINT && tb > fb;
}

kl_value kl_move(kl_elab *e, kl_value v, enum kl_elem el, int how, const char *what)
{
    if (v.kind != KL_V_TILE)
        return v;
    if (v.untyped)
        return kl_give_type(e, v, el);
    enum kl_elem from = (enum kl_elem)v.elem;
    if (from == el || !from || !el)
        return from == el ? v : kl_cast(e, v, el);
    bool ok = false;
    if (kl_is_float(from) && kl_is_float(el))
        ok = how != KL_ARG || kl_elems[el].bytes > kl_elems[from].bytes;
    else if (!kl_is_float(from) && !kl_is_float(el))
        ok = holds(el, from);
    if (!ok && how == KL_CONSTINIT && v.konst) {
        uint64_t there = v.known ? kl_convert(el, from, v.bits) : 0;
        ok = !v.known || kl_elem_double(from, kl_convert(from, el, there)) ==
                             kl_elem_double(from, v.bits);
    }
    if (!ok) {
        struct kl_diag *g = kl_err(e, KL_K0301, v.span, "%s is %s and does not become %s by itself",
                                   what, kl_elems[from].name, kl_elems[el].name);
        kl_note(g, (kl_span){0, 0}, "write a cast: (%s)", kl_elems[el].name);
        return kl_bad(v.span);
    }
    return kl_cast(e, v, el);
}

kl_value kl_to_bool(kl_elab *e, kl_value v)
{
    if (v.kind != KL_V_TILE || (v.elem == KL_bool && !v.untyped))
        return v;
    if (v.untyped && v.known)
        return kl_typed(KL_bool, v.dec ? v.d != 0 : v.i != 0, v.span);
    if (v.konst && !v.known) {
        v.untyped = false;
        v.elem = KL_bool;
        v.sym = kl_symbol(e, "(%s != 0)", e->syms.v[v.sym]);
        return v;
    }
    if (!v.elem) {
        v.elem = KL_bool;
        return v;
    }
    kl_value p = kl_promote(e, v), z = kl_typed((enum kl_elem)p.elem, 0, v.span);
    z = kl_stretch(e, z, p.rank, p.dim);
    return kl_op2(e, KL_OP_ne, p, z, v.span);
}

bool kl_unify(kl_elab *e, kl_value *a, kl_value *b, kl_span op, const char *opname)
{
    if (a->kind != KL_V_TILE || b->kind != KL_V_TILE)
        return false;
    if (a->untyped && b->untyped) {
        if (a->dec || b->dec) {
            *a = kl_give_type(e, *a, KL_f32), *b = kl_give_type(e, *b, KL_f32);
        } else {
            *a = kl_concrete(e, *a), *b = kl_concrete(e, *b);
            if (!a->elem || !b->elem)
                a->elem = b->elem = 0;
            else if (a->elem != b->elem)
                *a = kl_cast(e, *a, KL_i64), *b = kl_cast(e, *b, KL_i64);
        }
        return a->kind == KL_V_TILE && b->kind == KL_V_TILE;
    }
    *a = kl_promote(e, *a), *b = kl_promote(e, *b);
    if (a->untyped || b->untyped) {
        kl_value *u = a->untyped ? a : b, *t = a->untyped ? b : a;
        *u = kl_give_type(e, *u, (enum kl_elem)t->elem);
        if (u->kind != KL_V_TILE && !t->untyped && kl_is_int((enum kl_elem)t->elem))
            return false;
        return u->kind == KL_V_TILE;
    }
    enum kl_elem x = (enum kl_elem)a->elem, y = (enum kl_elem)b->elem, r;
    if (x == y)
        return true;
    if (!x || !y) { /* one type is still unknown: so is the result */
        a->elem = b->elem = 0;
        return true;
    }
    bool fx = kl_is_float(x), fy = kl_is_float(y);
    if (fx != fy)
        r = fx ? x : y;
    else if (fx)
        r = x == KL_f64 || y == KL_f64 ? KL_f64 : KL_f32;
    else if (holds(x, y))
        r = x;
    else if (holds(y, x))
        r = y;
    else {
        struct kl_diag *g = kl_err(e, KL_K0305, op, "signed %s with unsigned %s in `%s`",
                                   kl_elems[kl_elems[x].kind == KL_KIND_SINT ? x : y].name,
                                   kl_elems[kl_elems[x].kind == KL_KIND_SINT ? y : x].name, opname);
        kl_note(g, a->span, "this is %s", kl_elems[x].name);
        kl_note(g, b->span, "this is %s; cast one of them", kl_elems[y].name);
        return false;
    }
    *a = kl_cast(e, *a, r), *b = kl_cast(e, *b, r);
    return true;
}

/* ---- shapes ---- */

kl_value kl_stretch(kl_elab *e, kl_value v, uint32_t rank, const kl_dim *dim)
{
    if (v.kind != KL_V_TILE)
        return v;
    bool same = v.rank == rank;
    for (uint32_t i = 0; same && i < rank; i++)
        same = kl_dim_eq(v.dim[i], dim[i]) == 1;
    if (same)
        return v;
    if (!kl_tile_fits(e, rank, dim, v.span))
        return kl_bad(v.span);
    if (v.untyped)
        v = kl_concrete(e, v);
    if (kl_emitting(e) && v.kind == KL_V_TILE) {
        uint32_t n[KL_MAX_RANK] = {0};
        for (uint32_t i = 0; i < rank; i++)
            n[i] = dim[i].n;
        v.ir = kl_bcast(&e->b, kl_ir(e, &v), rank, n);
    }
    v.konst = v.known = false;
    v.rank = (uint8_t)rank;
    memcpy(v.dim, dim, rank * sizeof *dim);
    return v;
}

bool kl_broadcast_shape(kl_elab *e, uint32_t *rank, kl_dim *dim, const kl_value *v, kl_span op)
{
    kl_dim out[KL_MAX_RANK];
    uint32_t r = *rank > v->rank ? *rank : v->rank;
    for (uint32_t i = 0; i < r; i++) { /* from the last axis */
        kl_dim a = i < *rank ? dim[*rank - 1 - i] : kl_dim_of(1);
        kl_dim b = i < v->rank ? v->dim[v->rank - 1 - i] : kl_dim_of(1);
        kl_dim *o = &out[r - 1 - i];
        if (a.n == 1)
            *o = b;
        else if (b.n == 1 || kl_dim_eq(a, b) == 1)
            *o = a;
        else if (kl_dim_eq(a, b) == 0) {
            kl_value t = {.kind = KL_V_TILE, .rank = (uint8_t)*rank};
            memcpy(t.dim, dim, *rank * sizeof *dim);
            kl_err(e, KL_K0302, op, "shapes %s and %s do not broadcast", kl_dims_text(e, &t),
                   kl_dims_text(e, v));
            return false;
        } else {
            *o = a.n ? a : b.n ? b : (kl_dim){0, 0};
        }
    }
    if (!kl_tile_fits(e, r, out, op))
        return false;
    *rank = r;
    memcpy(dim, out, r * sizeof *dim);
    return true;
}

bool kl_broadcast2(kl_elab *e, kl_value *a, kl_value *b, kl_span op)
{
    if (a->kind != KL_V_TILE || b->kind != KL_V_TILE)
        return false;
    if (!a->rank && !b->rank)
        return true;
    uint32_t rank = a->rank;
    kl_dim dim[KL_MAX_RANK];
    memcpy(dim, a->dim, sizeof dim);
    if (!kl_broadcast_shape(e, &rank, dim, b, op))
        return false;
    *a = kl_stretch(e, *a, rank, dim);
    *b = kl_stretch(e, *b, rank, dim);
    return true;
}

static uint32_t squeeze(uint32_t rank, const kl_dim *dim, kl_dim *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (dim[i].n != 1)
            out[n++] = dim[i];
    return n;
}

kl_value kl_fit(kl_elab *e, kl_value v, uint32_t rank, const kl_dim *dim, const char *what)
{
    if (v.kind != KL_V_TILE)
        return v;
    kl_dim p[KL_MAX_RANK], q[KL_MAX_RANK];
    uint32_t np = squeeze(v.rank, v.dim, p), nq = squeeze(rank, dim, q);
    bool same = np == nq;
    for (uint32_t i = 0; same && i < np; i++)
        same = kl_dim_eq(p[i], q[i]) == 1;
    if (same && v.rank && v.rank != rank) {
        if (kl_emitting(e)) {
            kl_val x = kl_ir(e, &v);
            v.ir = kl_emit(&e->b, KL_OP_reshape, kl_irtype(e, (enum kl_elem)v.elem, rank, dim), &x,
                           1, (union kl_attr){0});
        }
        v.rank = (uint8_t)rank;
        memcpy(v.dim, dim, rank * sizeof *dim);
        return v;
    }
    /* broadcasting must give exactly the wanted shape */
    bool bad = v.rank > rank;
    for (uint32_t i = 0; !bad && i < v.rank; i++) {
        kl_dim a = v.dim[v.rank - 1 - i], b = dim[rank - 1 - i];
        bad = a.n != 1 && kl_dim_eq(a, b) == 0;
    }
    if (bad) {
        kl_value t = {.kind = KL_V_TILE, .rank = (uint8_t)rank};
        memcpy(t.dim, dim, rank * sizeof *dim);
        kl_err(e, KL_K0302, v.span, "%s has shape %s, which does not become %s", what,
               kl_dims_text(e, &v), kl_dims_text(e, &t));
        return kl_bad(v.span);
    }
    return kl_stretch(e, v, rank, dim);
}

bool kl_need_const(kl_elab *e, const kl_value *v, const char *what, int64_t *out, bool *known)
{
    *known = false;
    *out = 0;
    if (v->kind == KL_V_ERR)
        return false;
    if (v->kind != KL_V_TILE || !v->konst || v->rank || v->dec ||
        (!v->untyped && v->elem && !kl_is_int((enum kl_elem)v->elem))) {
        struct kl_diag *g = kl_err(e, KL_K0306, v->span, "%s must be an integer constant", what);
        if (v->kind == KL_V_TILE && !v->konst)
            kl_note(g, (kl_span){0, 0},
                    "only literals, constexpr names and expressions of them are known when the "
                    "kernel is compiled");
        return false;
    }
    if (v->known) {
        *known = true;
        *out = kl_const_i64(v);
    }
    return true;
}
