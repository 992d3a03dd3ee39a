/* verify.c - is the IR sound?
 *
 * Three walks: the lists of each block are intact; each instruction agrees with its row
 * of ops.def; each operand is visible where it is used.  Visibility is a walk down the
 * blocks that marks values when they are defined and unmarks a block's values when it
 * ends, so everything is linear.  The first fault is reported, with the instruction's
 * id and name. */
#include "ir/ir.h"
#include "ir/text.h"

struct verifier {
    const kl_fn *f;
    kl_arena *a;
    const char *msg;
    kl_val where; /* of msg; 0: no instruction in particular */
    uint8_t *seen;  /* per instruction: SEEN, VISIBLE */
    uint8_t *owned; /* per block */
};

enum { SEEN = 1, VISIBLE = 2 }; /* in a block's list; visible where the walk is */

/* Record the first fault; false, so that callers can return it. */
static bool __attribute__((format(printf, 3, 4)))
bad(struct verifier *c, kl_val v, const char *fmt, ...)
{
    if (c->msg)
        return false;
    c->where = v.id < c->f->nins ? v : (kl_val){0};
    va_list ap;
    va_start(ap, fmt);
    const char *what = kl_vprintf(c->a, fmt, ap);
    va_end(ap);
    if (v.id && v.id < c->f->nins) {
        uint16_t op = kl_in(c->f, v)->op;
        c->msg = kl_printf(c->a, "%s (instruction %u): %s",
                           op < KL_NOP ? kl_ops[op].name : "unknown operation", v.id, what);
    } else {
        c->msg = what;
    }
    return false;
}

#define NEED(cond, ...)                                                                            \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return bad(c, v, __VA_ARGS__);                                                         \
    } while (0)

static const char *type_text(struct verifier *c, const struct kl_type *t)
{
    kl_buf b = {.a = c->a};
    kl_put_type(&b, t);
    return kl_buf_str(&b);
}

/* ---- lists ---- */

static bool check_list(struct verifier *c, kl_blk blk, uint32_t depth)
{
    const kl_fn *f = c->f;
    const struct kl_block *b = &f->blk[blk.id];
    uint32_t prev = 0, nparam = 0;
    if (depth > 256)
        return bad(c, b->owner, "blocks are nested more than 256 deep");
    for (uint32_t id = b->first; id; prev = id, id = f->ins[id].next) {
        kl_val v = {id};
        if (id >= f->nins)
            return bad(c, (kl_val){0}, "block %u lists instruction %u, which does not exist",
                       blk.id, id);
        const struct kl_ins *in = &f->ins[id];
        NEED(!(c->seen[id] & SEEN), "stands in more than one place");
        c->seen[id] |= SEEN;
        NEED(in->op > KL_OP_none && in->op < KL_NOP, "number %u", in->op);
        NEED(in->blk.id == blk.id, "stands in block %u but names block %u", blk.id, in->blk.id);
        NEED(in->prev == prev, "is not linked back to its predecessor");
        NEED(in->type.id < f->ntype, "has a type that does not exist");
        NEED(!in->nargs || (in->args && in->args + in->nargs <= f->nargs),
             "has operands outside the pool");
        nparam += in->op == KL_OP_param;
        kl_blk own[2];
        for (uint32_t n = kl_blocks(f, v, own), i = 0; i < n; i++) {
            NEED(own[i].id > KL_BODY.id && own[i].id < f->nblk,
                 "owns block %u, which does not exist", own[i].id);
            NEED(!c->owned[own[i].id], "owns block %u, which something else owns", own[i].id);
            c->owned[own[i].id] = 1;
            NEED(f->blk[own[i].id].owner.id == id, "is not the owner that block %u names",
                 own[i].id);
            if (!check_list(c, own[i], depth + 1))
                return false;
        }
    }
    if (b->last != prev)
        return bad(c, (kl_val){prev}, "is last in block %u, which names %u", blk.id, b->last);
    if (b->nparam != nparam)
        return bad(c, b->owner, "block %u counts %u parameters and has %u", blk.id, b->nparam,
                   nparam);
    return true;
}

/* ---- rows ---- */

static const struct kl_type *arg_type(struct verifier *c, kl_val v, uint32_t i)
{
    return kl_type_of(c->f, kl_arg(c->f, v, i));
}

static bool is_scalar(const struct kl_type *t, enum kl_elem e)
{
    return t->kind == KL_T_TILE && t->rank == 0 && t->elem == e;
}

static bool is_num(enum kl_elem e)
{
    return e == KL_i32 || e == KL_u32 || e == KL_i64 || e == KL_u64 || e == KL_f32 || e == KL_f64;
}

static bool in_class(enum kl_cls cls, enum kl_elem e)
{
    switch (cls) {
    case KL_C_NUM: case KL_C_CMP: return is_num(e);
    case KL_C_INT: return is_num(e) && kl_is_int(e);
    case KL_C_FLT: return is_num(e) && kl_is_float(e);
    case KL_C_BIT: return e == KL_bool || (is_num(e) && kl_is_int(e));
    default: return true;
    }
}

static bool check_ew(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_opinfo *row = &kl_ops[in->op];
    const struct kl_type *r = kl_type_of(f, v), *a;
    NEED(in->nargs == row->nargs, "has %u operands, needs %u", in->nargs, row->nargs);
    NEED(r->kind == KL_T_TILE, "has no tile as result");
    for (uint32_t i = 0; i < in->nargs; i++) {
        a = arg_type(c, v, i);
        NEED(a->kind == KL_T_TILE, "operand %u is not a tile", i);
        NEED(kl_same_shape(a, r), "operand %u is %s, the result %s: the shapes differ", i,
             type_text(c, a), type_text(c, r));
    }
    uint32_t first = row->cls == KL_C_SEL ? 1 : 0;
    for (uint32_t i = first + 1; i < in->nargs; i++)
        NEED(arg_type(c, v, i)->elem == arg_type(c, v, first)->elem,
             "operands %u and %u are of types %s and %s", first, i,
             kl_elems[arg_type(c, v, first)->elem].name, kl_elems[arg_type(c, v, i)->elem].name);
    a = arg_type(c, v, first);
    NEED(in_class((enum kl_cls)row->cls, (enum kl_elem)a->elem), "does not exist on %s",
         kl_elems[a->elem].name);
    if (row->cls == KL_C_SEL)
        NEED(arg_type(c, v, 0)->elem == KL_bool, "selects by %s, not bool",
             type_text(c, arg_type(c, v, 0)));
    if (row->cls == KL_C_CMP)
        NEED(r->elem == KL_bool, "gives %s, not bool", kl_elems[r->elem].name);
    else if (row->cls != KL_C_CVT)
        NEED(r->elem == a->elem, "gives %s from %s", kl_elems[r->elem].name,
             kl_elems[a->elem].name);
    if (in->op == KL_OP_convert_nan)
        NEED(a->elem == KL_f32 && (r->elem == KL_f8e4m3 || r->elem == KL_f8e5m2),
             "is from f32 to an 8-bit float, not from %s to %s", kl_elems[a->elem].name,
             kl_elems[r->elem].name);
    if (in->op == KL_OP_bitcast)
        NEED(kl_elems[r->elem].bytes == kl_elems[a->elem].bytes, "%s and %s differ in size",
             kl_elems[r->elem].name, kl_elems[a->elem].name);
    return true;
}

/* Operands and kind of result by the row's signature.  Rank gives how many an `I*` takes:
 * the dimensions of the access, or of view's extents and strides. */
static bool check_sig(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_opinfo *row = &kl_ops[in->op];
    const struct kl_type *r = kl_type_of(f, v);
    bool several = row->attr == KL_A_REDFN && in->nargs > 1;
    NEED((row->res != KL_R_NONE && !several) == (in->type.id != 0), "%s",
         in->type.id ? "has a result" : "has no result");
    NEED(!in->type.id || r->kind == (in->op == KL_OP_view ? KL_T_ARRAY : KL_T_TILE) ||
             in->op == KL_OP_param, "has a result of the wrong kind (%s)", type_text(c, r));
    if (row->res == KL_R_SAME)
        NEED(in->nargs && kl_in(f, kl_arg(f, v, 0))->type.id == in->type.id,
             "has another type than its operand");
    uint32_t i = 0, many = in->op == KL_OP_view          ? 2u * r->rank + 1u
                           : row->attr == KL_A_REDFN ? in->nargs - 1u
                                                     : in->attr.access.n;
    for (const char *s = row->sig; *s; s++) {
        if (*s == '.')
            return true; /* the rest is the row's own */
        if (*s == '*')
            continue;
        uint32_t n = s[1] == '*' ? many : 1;
        for (; n-- > 0; i++) {
            NEED(i < in->nargs, "has %u operands, needs more", in->nargs);
            const struct kl_type *t = arg_type(c, v, i);
            NEED(t->kind == (*s == 'A' ? KL_T_ARRAY : KL_T_TILE), "operand %u is %s", i,
                 type_text(c, t));
            bool index = *s == 'I' && row->attr == KL_A_ACCESS && t->elem == KL_i64;
            NEED(*s == 'A' || *s == 'T' || t->rank == 0 || index, "operand %u is %s, not a scalar", i,
                 type_text(c, t));
            NEED(*s != 'I' || t->elem == KL_i64 || (in->op == KL_OP_for && t->elem == KL_i32),
                 "operand %u is %s, not an i64", i, type_text(c, t));
            NEED(*s != 'B' || t->elem == KL_bool, "operand %u is %s, not a bool", i,
                 type_text(c, t));
        }
    }
    NEED(i == in->nargs, "has %u operands, needs %u", in->nargs, i);
    return true;
}

/* Index tiles of an access: one of rank 1 beside sections, or all of the shape of the tile.
 * sections becomes the rank that the access has. */
static bool check_index(struct verifier *c, kl_val v, const struct kl_type *tile, uint32_t *sections)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t indices = kl_access_indices(f, v), axis = 0;
    bool scattered = kl_access_scattered(f, v);
    if (!indices)
        return true;
    NEED(in->op != KL_OP_extract && in->op != KL_OP_insert, "has an index tile on a tile");
    NEED(scattered || indices == 1, "has %u index tiles beside sections", indices);
    for (uint32_t d = 0; d < in->attr.access.n; d++) {
        const struct kl_type *t = arg_type(c, v, 1 + d);
        bool index = kl_access_index(f, v, d), section = kl_access_step(f, v, d) != 0;
        NEED(!index || !section, "has a tile as start of a section");
        if (index && scattered)
            NEED(kl_same_shape(t, tile), "has an index %s for a tile %s", type_text(c, t),
                 type_text(c, tile));
        else if (index)
            NEED(t->rank == 1 && axis < tile->rank && t->dim[0] == tile->dim[axis],
                 "has an index %s for axis %u of a tile %s", type_text(c, t), axis,
                 type_text(c, tile));
        axis += index || section;
    }
    *sections = scattered ? tile->rank : *sections + indices;
    return true;
}

static bool check_atomic(struct verifier *c, kl_val v, const struct kl_type *base)
{
    const struct kl_ins *in = kl_in(c->f, v);
    enum kl_elem e = (enum kl_elem)base->elem;
    uint32_t how = in->attr.access.how, rmw = KL_HOW_RMW(how), order = KL_HOW_ORDER(how);
    NEED(rmw < KL_NRMW && KL_HOW_SCOPE(how) < KL_NSCOPE, "does what no atomic does");
    NEED(is_num(e), "does not exist on %s", kl_elems[e].name);
    NEED(in->op != KL_OP_atomic || rmw == KL_RMW_add || kl_is_int(e), "%s does not exist on %s",
         kl_rmw_names[rmw], kl_elems[e].name);
    NEED(in->op != KL_OP_atomic_load || order <= KL_ACQUIRE, "%s: a load", kl_order_names[order]);
    NEED(in->op != KL_OP_atomic_store || order == KL_RELAXED || order == KL_RELEASE, "%s: a store",
         kl_order_names[order]);
    return true;
}

/* The access of load, store, inside, extract, insert and atomics: one start and step a dimension, and
 * one axis of the tile for each section. */
static bool check_access(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t n = in->attr.access.n, sections = 0, k = 1 + n;
    const struct kl_type *base = arg_type(c, v, 0), *tile;
    NEED(in->attr.access.at + n <= f->naux, "has steps outside the pool");
    NEED(n == base->rank, "has %u subscripts on %s", n, type_text(c, base));
    if (base->kind == KL_T_ARRAY)
        NEED(kl_in(f, kl_arg(f, v, 0))->op == KL_OP_view,
             "reaches a parameter without a view, which has no extents");
    for (uint32_t i = 0; i < n; i++)
        sections += f->aux[in->attr.access.at + i] != 0;
    uint32_t takes = kl_access_values(in);
    uint32_t flags = in->attr.access.flags, allowed = 0;
    if (in->op == KL_OP_load)
        allowed = KL_ACC_FILL | KL_ACC_MASK | KL_ACC_EVICT;
    else if (in->op == KL_OP_store)
        allowed = KL_ACC_MASK | KL_ACC_EVICT;
    else if (kl_is_atomic(in->op))
        allowed = KL_ACC_MASK;
    NEED(!(flags & ~allowed), "has a fill or mask that it cannot have");
    NEED((flags & KL_ACC_EVICT) != KL_ACC_EVICT, "has two hints");
    uint32_t extra = takes + !!(flags & KL_ACC_FILL) + !!(flags & KL_ACC_MASK);
    NEED(in->nargs == k + extra, "has %u operands, needs %u", in->nargs, k + extra);
    for (uint32_t i = k; i < in->nargs; i++)
        NEED(arg_type(c, v, i)->kind == KL_T_TILE, "operand %u is not a tile", i);
    tile = kl_access_tile(f, v);
    if (!check_index(c, v, tile, &sections))
        return false;
    NEED(tile->rank == sections, "has %u sections for a tile %s", sections, type_text(c, tile));
    for (uint32_t i = 0; i < takes; i++, k++)
        NEED(arg_type(c, v, k) == tile, "takes %s for a tile %s", type_text(c, arg_type(c, v, k)),
             type_text(c, tile));
    if (kl_is_atomic(in->op) && !check_atomic(c, v, base))
        return false;
    if (in->op == KL_OP_inside)
        NEED(tile->elem == KL_bool, "gives %s, not bool", type_text(c, tile));
    else
        NEED(tile->elem == base->elem, "moves %s between %s elements", type_text(c, tile),
             kl_elems[base->elem].name);
    if (flags & KL_ACC_FILL) {
        const struct kl_type *t = arg_type(c, v, k++);
        NEED(t == tile, "has a fill of type %s for a tile %s", type_text(c, t), type_text(c, tile));
    }
    if (flags & KL_ACC_MASK) {
        const struct kl_type *t = arg_type(c, v, k++);
        NEED(t->elem == KL_bool && kl_same_shape(t, tile), "has a mask of type %s for a tile %s",
             type_text(c, t), type_text(c, tile));
    }
    return true;
}

/* Result like the operand but for one axis of size `size` and element type e. */
static bool check_axis(struct verifier *c, kl_val v, int64_t axis, uint32_t size, enum kl_elem e)
{
    const struct kl_type *a = arg_type(c, v, 0), *r = kl_type_of(c->f, v);
    NEED(axis >= 0 && axis < a->rank, "has axis %lld on %s", (long long)axis, type_text(c, a));
    struct kl_type want = *a;
    want.elem = (uint8_t)e;
    want.dim[axis] = size;
    NEED(memcmp(&want, r, sizeof want) == 0, "gives %s, must give %s", type_text(c, r),
         type_text(c, &want));
    return true;
}

static bool check_shape(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *r = kl_type_of(f, v), *a = in->nargs ? arg_type(c, v, 0) : r;
    NEED(r->elem == a->elem, "changes the element type");
    switch (in->op) {
    case KL_OP_broadcast:
        NEED(r->rank >= a->rank, "from %s to %s lowers the rank", type_text(c, a),
             type_text(c, r));
        for (uint32_t i = 0, lead = r->rank - a->rank; i < a->rank; i++)
            NEED(a->dim[i] == 1 || a->dim[i] == r->dim[lead + i], "from %s to %s: axis %u",
                 type_text(c, a), type_text(c, r), i);
        return true;
    case KL_OP_reshape:
        NEED(kl_numel(a) == kl_numel(r), "from %s to %s: the numbers of elements differ",
             type_text(c, a), type_text(c, r));
        return true;
    case KL_OP_permute: {
        uint32_t used = 0;
        NEED(in->attr.aux.at + in->attr.aux.n <= f->naux, "has axes outside the pool");
        NEED(in->attr.aux.n == a->rank && r->rank == a->rank, "names %u axes of %s",
             in->attr.aux.n, type_text(c, a));
        for (uint32_t i = 0; i < a->rank; i++) {
            int64_t p = f->aux[in->attr.aux.at + i];
            NEED(p >= 0 && p < a->rank && !(used >> p & 1), "axes are no permutation");
            used |= 1u << p;
            NEED(r->dim[i] == a->dim[p], "gives %s from %s", type_text(c, r), type_text(c, a));
        }
        return true;
    }
    default: { /* cat */
        const struct kl_type *b = arg_type(c, v, 1);
        int64_t x = in->attr.index;
        NEED(x >= 0 && x < a->rank && b->rank == a->rank, "has axis %lld on %s and %s",
             (long long)x, type_text(c, a), type_text(c, b));
        struct kl_type like = *b;
        like.dim[x] = a->dim[x];
        NEED(memcmp(&like, a, sizeof like) == 0, "joins %s and %s", type_text(c, a),
             type_text(c, b));
        return check_axis(c, v, x, a->dim[x] + b->dim[x], (enum kl_elem)a->elem);
    }
    }
}

static bool check_table(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *r = kl_type_of(f, v);
    NEED(in->attr.aux.at + in->attr.aux.n <= f->naux, "has elements outside the pool");
    NEED(r->rank && kl_numel(r) == in->attr.aux.n, "gives %s from %u constants", type_text(c, r), in->attr.aux.n);
    for (uint32_t i = 0; i < in->attr.aux.n; i++) {
        uint64_t bits = (uint64_t)f->aux[in->attr.aux.at + i];
        NEED(kl_canon((enum kl_elem)r->elem, bits) == bits, "has bits that are not a %s", kl_elems[r->elem].name);
    }
    return true;
}

static bool check_dot(struct verifier *c, kl_val v)
{
    const struct kl_type *a = arg_type(c, v, 0), *b = arg_type(c, v, 1), *acc = arg_type(c, v, 2);
    uint32_t r = a->rank;
    NEED((r == 2 || r == 3) && b->rank == r && acc->rank == r, "multiplies %s by %s onto %s",
         type_text(c, a), type_text(c, b), type_text(c, acc));
    NEED(a->elem == b->elem, "multiplies %s by %s", type_text(c, a), type_text(c, b));
    NEED(a->elem != KL_bool && acc->elem == kl_elems[a->elem].acc,
         "accumulates %s in %s", kl_elems[a->elem].name, kl_elems[acc->elem].name);
    NEED((r == 2 || (a->dim[0] == b->dim[0] && a->dim[0] == acc->dim[0])) &&
             a->dim[r - 1] == b->dim[r - 2] && acc->dim[r - 2] == a->dim[r - 2] &&
             acc->dim[r - 1] == b->dim[r - 1],
         "multiplies %s by %s onto %s", type_text(c, a), type_text(c, b), type_text(c, acc));
    NEED(kl_type_of(c->f, v) == acc, "gives %s, must give %s", type_text(c, kl_type_of(c->f, v)),
         type_text(c, acc));
    return true;
}

static bool reduces_by(uint16_t op, enum kl_elem e)
{
    switch (op) {
    case KL_OP_add: case KL_OP_mul: case KL_OP_min: case KL_OP_max:
    case KL_OP_fmin: case KL_OP_fmax: case KL_OP_and: case KL_OP_or: case KL_OP_xor:
        return in_class((enum kl_cls)kl_ops[op].cls, e);
    default: return false;
    }
}

/* Parameters of a block: their number and types.  extra: the type in front, or 0. */
static bool check_params(struct verifier *c, kl_val v, kl_blk blk, kl_typ extra,
                         const kl_val *like, uint32_t n)
{
    const kl_fn *f = c->f;
    uint32_t want = n + (extra.id != 0), i = 0;
    NEED(f->blk[blk.id].nparam == want, "block has %u parameters, needs %u",
         f->blk[blk.id].nparam, want);
    kl_each_ins(f, blk, p) {
        if (i == want)
            break;
        kl_typ t = !extra.id ? kl_in(f, like[i])->type
                   : i == 0  ? extra
                             : kl_in(f, like[i - 1])->type;
        NEED(kl_in(f, p)->op == KL_OP_param && kl_in(f, p)->type.id == t.id,
             "parameter %u of the block is %s, must be %s", i, type_text(c, kl_type_of(f, p)),
             type_text(c, &f->type[t.id]));
        i++;
    }
    return true;
}

/* The yield of a block hands over n values of the types of `like` (or of type one). */
static bool check_yield(struct verifier *c, kl_val v, kl_blk blk, const kl_val *like, uint32_t n,
                        kl_typ one)
{
    const kl_fn *f = c->f;
    kl_val y = kl_last(f, blk);
    NEED(y.id && kl_in(f, y)->op == KL_OP_yield, "has a block that does not end in yield");
    NEED(kl_in(f, y)->nargs == n, "block yields %u values, must yield %u", kl_in(f, y)->nargs, n);
    for (uint32_t i = 0; i < n; i++) {
        kl_typ t = one.id ? one : kl_in(f, like[i])->type;
        NEED(kl_in(f, kl_arg(f, y, i))->type.id == t.id, "block yields %s as value %u, must be %s",
             type_text(c, kl_type_of(f, kl_arg(f, y, i))), i, type_text(c, &f->type[t.id]));
    }
    return true;
}

static bool check_tiles(struct verifier *c, kl_val v)
{
    for (uint32_t i = 0; i < kl_in(c->f, v)->nargs; i++)
        NEED(arg_type(c, v, i)->kind == KL_T_TILE, "operand %u is not a tile", i);
    return true;
}

/* Results stand right behind, in order, one for each value handed out. */
static bool check_results(struct verifier *c, kl_val v, const kl_val *like, uint32_t n)
{
    const kl_fn *f = c->f;
    uint32_t id = kl_in(f, v)->next;
    for (uint32_t i = 0; i < n; i++, id = f->ins[id].next) {
        const struct kl_ins *r = &f->ins[id];
        NEED(id && r->op == KL_OP_result && r->attr.result.of.id == v.id &&
                 r->attr.result.index == i, "result %u does not stand behind it", i);
        NEED(r->type.id == kl_in(f, like[i])->type.id, "result %u is %s, must be %s", i,
             type_text(c, &f->type[r->type.id]), type_text(c, kl_type_of(f, like[i])));
    }
    return true;
}

static bool check_control(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const kl_val *arg = f->args + in->args;
    kl_typ none = {0};
    if (!check_tiles(c, v))
        return false;
    switch (in->op) {
    case KL_OP_for: {
        uint32_t n = in->nargs - 3u;
        kl_typ iv = kl_in(f, arg[0])->type;
        NEED(kl_in(f, arg[1])->type.id == iv.id && kl_in(f, arg[2])->type.id == iv.id,
             "bounds and step are of different types");
        return check_params(c, v, in->attr.loop.blk, iv, arg + 3, n) &&
               check_yield(c, v, in->attr.loop.blk, arg + 3, n, none) &&
               check_results(c, v, arg + 3, n);
    }
    case KL_OP_while: {
        kl_typ truth = {0};
        for (uint32_t i = 1; i < f->ntype; i++)
            if (is_scalar(&f->type[i], KL_bool))
                truth.id = i;
        NEED(truth.id, "has no bool condition");
        return check_params(c, v, in->attr.blk[0], none, arg, in->nargs) &&
               check_params(c, v, in->attr.blk[1], none, arg, in->nargs) &&
               check_yield(c, v, in->attr.blk[0], NULL, 1, truth) &&
               check_yield(c, v, in->attr.blk[1], arg, in->nargs, none) &&
               check_results(c, v, arg, in->nargs);
    }
    default: { /* if */
        kl_val y = kl_last(f, in->attr.blk[0]);
        NEED(y.id && kl_in(f, y)->op == KL_OP_yield, "has a block that does not end in yield");
        const kl_val *out = f->args + kl_in(f, y)->args;
        uint32_t n = kl_in(f, y)->nargs;
        if (!check_tiles(c, y))
            return false;
        return check_params(c, v, in->attr.blk[0], none, NULL, 0) &&
               check_params(c, v, in->attr.blk[1], none, NULL, 0) &&
               check_yield(c, v, in->attr.blk[1], out, n, none) && check_results(c, v, out, n);
    }
    }
}

/* The results of a fold: one is the instruction itself, several stand behind it. */
static bool check_fold_results(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t id = in->nargs > 1 ? in->next : v.id, axis = in->attr.redfn.axis;
    for (uint32_t i = 0; i < in->nargs; i++, id = f->ins[id].next) {
        struct kl_type want = *arg_type(c, v, i);
        NEED(want.kind == KL_T_TILE && kl_same_shape(&want, arg_type(c, v, 0)),
             "operand %u is %s, and operand 0 %s", i, type_text(c, &want),
             type_text(c, arg_type(c, v, 0)));
        NEED(axis < want.rank, "has axis %u on %s", axis, type_text(c, &want));
        if (in->op == KL_OP_reduce_fn)
            want.dim[axis] = 1;
        NEED(in->nargs == 1 || (id && f->ins[id].op == KL_OP_result &&
                                f->ins[id].attr.result.of.id == v.id &&
                                f->ins[id].attr.result.index == i),
             "result %u does not stand behind it", i);
        const struct kl_type *r = &f->type[f->ins[id].type.id];
        NEED(memcmp(&want, r, sizeof want) == 0, "gives %s, must give %s", type_text(c, r),
             type_text(c, &want));
    }
    return true;
}

static bool has_effect(const kl_fn *f, kl_blk blk, const char **what)
{
    kl_each_ins(f, blk, v) {
        const struct kl_opinfo *row = &kl_ops[kl_in(f, v)->op];
        kl_blk own[2];
        if (row->flags & (KL_F_READ | KL_F_WRITE)) {
            *what = row->name;
            return true;
        }
        for (uint32_t n = kl_blocks(f, v, own), i = 0; i < n; i++)
            if (has_effect(f, own[i], what))
                return true;
    }
    return false;
}

static bool check_fold(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_blk blk = in->attr.redfn.blk;
    uint32_t i = 0, n = in->nargs;
    NEED(n <= KL_MAX_FOLD, "folds %u tiles, at most %u", n, KL_MAX_FOLD);
    if (!check_fold_results(c, v))
        return false;
    NEED(f->blk[blk.id].nparam == 2 * n, "block has %u parameters, needs %u", f->blk[blk.id].nparam,
         2 * n);
    kl_val y = kl_last(f, blk);
    NEED(y.id && kl_in(f, y)->op == KL_OP_yield, "has a block that does not end in yield");
    NEED(kl_in(f, y)->nargs == n, "must yield %s%s", n == 1 ? "one " : "one of each",
         n == 1 ? kl_elems[arg_type(c, v, 0)->elem].name : "");
    for (uint32_t k = 0; k < n; k++)
        NEED(is_scalar(arg_type(c, y, k), (enum kl_elem)arg_type(c, v, k)->elem), "must yield one %s",
             kl_elems[arg_type(c, v, k)->elem].name);
    kl_each_ins(f, blk, p) {
        if (i == 2 * n)
            break;
        enum kl_elem e = (enum kl_elem)arg_type(c, v, i % n)->elem;
        NEED(kl_in(f, p)->op == KL_OP_param && is_scalar(kl_type_of(f, p), e),
             "parameters of the block must be %s", kl_elems[e].name);
        i++;
    }
    const char *what = NULL;
    NEED(!has_effect(f, blk, &what), "has a block with an effect (%s)", what);
    return true;
}

/* Parameters of the body are the function's. */
static bool check_param(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, v);
    uint32_t k = 0;
    for (uint32_t id = in->prev; id; id = f->ins[id].prev, k++)
        NEED(f->ins[id].op == KL_OP_param, "does not stand at the head of its block");
    NEED(in->attr.index == k, "is parameter %lld in place %u", (long long)in->attr.index, k);
    if (in->blk.id != KL_BODY.id) {
        NEED(t->kind == KL_T_TILE, "of a block is no tile");
        return true;
    }
    NEED(k < f->nparam, "stands for parameter %u of %u", k, f->nparam);
    const struct kl_param *p = &f->param[k];
    NEED(p->use == KL_P_ARRAY ? t->kind == KL_T_ARRAY && t->elem == p->elem && t->rank == p->rank
                              : is_scalar(t, (enum kl_elem)p->elem),
         "has type %s, not that of parameter %s", type_text(c, t), p->name);
    return true;
}

static bool check_result_place(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_val of = in->attr.result.of;
    NEED(of.id && of.id < f->nins && c->seen[of.id] & SEEN && kl_in(f, of)->blk.id == in->blk.id,
         "belongs to instruction %u, which is not in its block", of.id);
    uint32_t id = in->prev; /* back over the results before it */
    for (uint32_t i = in->attr.result.index; i > 0 && id && f->ins[id].op == KL_OP_result; i--)
        id = f->ins[id].prev;
    NEED(id == of.id && in->attr.result.index < kl_nresults(f, of),
         "does not stand behind the operation it belongs to");
    return true;
}

static bool check_other(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *r = kl_type_of(f, v);
    switch (in->op) {
    case KL_OP_const:
        NEED(kl_canon((enum kl_elem)r->elem, in->attr.bits) == in->attr.bits,
             "has bits that are not a %s", kl_elems[r->elem].name);
        return true;
    case KL_OP_table: return check_table(c, v);
    case KL_OP_param: return check_param(c, v);
    case KL_OP_program_id: case KL_OP_num_programs:
        NEED(in->attr.index >= 0 && in->attr.index < 3, "axis %lld", (long long)in->attr.index);
        NEED(is_scalar(r, KL_i64), "gives %s, not i64", type_text(c, r));
        return true;
    case KL_OP_num_sms:
        NEED(is_scalar(r, KL_i64), "gives %s, not i64", type_text(c, r));
        return true;
    case KL_OP_iota:
        NEED(r->elem == KL_i32 && r->rank == 1, "gives %s, not i32[n]", type_text(c, r));
        return true;
    case KL_OP_view:
        NEED(r->rank >= 1 && r->elem == arg_type(c, v, 0)->elem, "gives %s", type_text(c, r));
        return true;
    case KL_OP_load: case KL_OP_store: case KL_OP_inside: case KL_OP_extract: case KL_OP_insert:
    case KL_OP_atomic: case KL_OP_atomic_load: case KL_OP_atomic_store:
        return check_access(c, v);
    case KL_OP_gather: {
        const struct kl_type *a = arg_type(c, v, 0), *i = arg_type(c, v, 1);
        int64_t x = in->attr.index;
        NEED(i->elem == KL_i64 && kl_same_shape(i, r), "gives %s by an index %s", type_text(c, r),
             type_text(c, i));
        NEED(a->elem == r->elem && a->rank == r->rank && x >= 0 && x < r->rank,
             "gives %s from axis %lld of %s", type_text(c, r), (long long)x, type_text(c, a));
        for (uint32_t d = 0; d < r->rank; d++)
            NEED(d == x || a->dim[d] == r->dim[d], "gives %s from %s: axis %u", type_text(c, r),
                 type_text(c, a), d);
        return true;
    }
    case KL_OP_broadcast: case KL_OP_reshape: case KL_OP_permute: case KL_OP_cat:
        return check_shape(c, v);
    case KL_OP_flip:
        NEED(in->attr.index >= 0 && in->attr.index < r->rank, "has axis %lld on %s",
             (long long)in->attr.index, type_text(c, r));
        return true;
    case KL_OP_reduce:
        NEED(reduces_by(in->attr.red.op, (enum kl_elem)r->elem), "cannot fold %s by %s",
             type_text(c, arg_type(c, v, 0)),
             in->attr.red.op < KL_NOP ? kl_ops[in->attr.red.op].name : "?");
        return check_axis(c, v, in->attr.red.axis, 1, (enum kl_elem)arg_type(c, v, 0)->elem);
    case KL_OP_reduce_fn: case KL_OP_scan: return check_fold(c, v);
    case KL_OP_argmax: case KL_OP_argmin:
        NEED(is_num((enum kl_elem)arg_type(c, v, 0)->elem), "does not exist on %s",
             type_text(c, arg_type(c, v, 0)));
        return check_axis(c, v, in->attr.index, 1, KL_i32);
    case KL_OP_dot: return check_dot(c, v);
    case KL_OP_for: case KL_OP_while: case KL_OP_if: return check_control(c, v);
    case KL_OP_result: return check_result_place(c, v);
    case KL_OP_yield:
        NEED(in->blk.id != KL_BODY.id, "ends the body, which ends without");
        NEED(!in->next, "does not end its block");
        return check_tiles(c, v);
    default: return true;
    }
}

/* Tiles have sizes and element types that this version knows. */
static bool check_type(struct verifier *c, kl_val v, const struct kl_type *t)
{
    NEED(t->kind == KL_T_TILE || t->kind == KL_T_ARRAY, "has a type of unknown kind");
    NEED(t->elem > KL_elem_none && t->elem < KL_NELEM, "has an unknown element type");
    for (uint32_t i = 0; i < t->rank && t->kind == KL_T_TILE; i++)
        NEED(t->dim[i] > 0, "has a tile type with an axis of size 0");
    return true;
}

/* ---- visibility ---- */

static bool check_block(struct verifier *c, kl_blk blk)
{
    const kl_fn *f = c->f;
    kl_each_ins(f, blk, v) {
        const struct kl_ins *in = kl_in(f, v);
        for (uint32_t i = 0; i < in->nargs; i++) {
            kl_val a = kl_arg(f, v, i);
            NEED(a.id && a.id < f->nins && f->ins[a.id].type.id, "operand %u is no value", i);
            NEED(c->seen[a.id] & VISIBLE, "operand %u (%s, instruction %u) is not visible here", i,
                 kl_ops[f->ins[a.id].op < KL_NOP ? f->ins[a.id].op : 0].name, a.id);
        }
        if (in->type.id && !check_type(c, v, kl_type_of(f, v)))
            return false;
        kl_blk own[2];
        for (uint32_t n = kl_blocks(f, v, own), i = 0; i < n; i++)
            if (!check_block(c, own[i]))
                return false;
        if (kl_ops[in->op].flags & KL_F_EW ? !check_ew(c, v)
                                           : !check_sig(c, v) || !check_other(c, v))
            return false;
        c->seen[v.id] |= VISIBLE;
    }
    kl_each_ins(f, blk, v)
        c->seen[v.id] = SEEN;
    return true;
}

static void verify(struct verifier *c)
{
    const kl_fn *f = c->f;
    if (!check_list(c, KL_BODY, 0))
        return;
    for (uint32_t id = 1; id < f->nins; id++)
        if (f->ins[id].blk.id && !c->seen[id]) {
            bad(c, (kl_val){id}, "stands in no block's list");
            return;
        }
    if (f->blk[KL_BODY.id].nparam != f->nparam)
        bad(c, (kl_val){0}, "the body has %u parameters, the function %u",
            f->blk[KL_BODY.id].nparam, f->nparam);
    else
        check_block(c, KL_BODY);
}

const char *kl_ir_verify_at(const kl_fn *f, kl_arena *a, kl_val *where)
{
    struct verifier c = {.f = f, .a = a, .seen = kl_new_n(a, uint8_t, f->nins),
                         .owned = kl_new_n(a, uint8_t, f->nblk)};
    verify(&c);
    *where = c.where;
    return c.msg;
}

const char *kl_ir_verify(const kl_fn *f, kl_arena *a)
{
    kl_val where;
    return kl_ir_verify_at(f, a, &where);
}
