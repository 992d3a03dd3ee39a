/* pad.c - what a tile holds where it reaches past the extents, and folds over that.
 *
 * For each axis of a tile along which some load of this launch reached past its array: the value
 * there, if it follows from the load's fill, or that it varies.  A fold along such an axis wants its
 * neutral element there.  Integers that vary are indices and counts mostly, chosen by comparisons
 * that are not followed here: nothing is said of them. */
#include <math.h>

#include "ir/pad.h"

enum state { PAD_NONE, PAD_CONST, PAD_VARIES };

/* Along one axis.  from: the load. */
struct pad {
    uint8_t state;
    uint64_t bits;
    kl_val from;
};

struct padder {
    const kl_pad_in *in;
    const kl_fn *f;
    struct pad (*at)[KL_MAX_RANK];
    kl_diags *d;
    void (*more)(void *user, struct kl_diag *g);
    void *user;
};

/* The value of a constant tile. */
static bool constant(const kl_fn *f, kl_val v, uint64_t *bits)
{
    while (kl_in(f, v)->op == KL_OP_broadcast || kl_in(f, v)->op == KL_OP_reshape)
        v = kl_arg(f, v, 0);
    *bits = kl_in(f, v)->attr.bits;
    return kl_in(f, v)->op == KL_OP_const;
}

static double number(enum kl_elem e, uint64_t bits)
{
    return kl_elem_double(e, bits);
}

static void load(struct padder *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, v);
    uint32_t out = p->in->out[v.id];
    uint64_t bits = 0;
    bool known = !(in->attr.access.flags & KL_ACC_FILL) ||
                 constant(f, kl_arg(f, v, 1u + in->attr.access.n), &bits);
    for (uint32_t d = 0; d < t->rank; d++)
        if (out >> d & 1)
            p->at[v.id][d] = (struct pad){known ? PAD_CONST : PAD_VARIES, bits, v};
}

/* One operand in the padding of an axis. */
struct term {
    bool known, padded;
    uint64_t bits;
};

static bool is_zero(const struct term *t, enum kl_elem e)
{
    return t->known && number(e, t->bits) == 0;
}

/* Operations that one operand decides. */
static bool decided(enum kl_op op, enum kl_elem e, const struct term *t, uint64_t *bits)
{
    bool inf[2];
    for (int i = 0; i < 2; i++)
        inf[i] = t[i].known && kl_is_float(e) && isinf(number(e, t[i].bits));
    switch (op) {
    case KL_OP_mul:
    case KL_OP_and: return *bits = 0, is_zero(&t[0], e) || is_zero(&t[1], e);
    case KL_OP_div: return *bits = 0, is_zero(&t[0], e);
    case KL_OP_add: *bits = inf[0] ? t[0].bits : t[1].bits; return inf[0] != inf[1];
    case KL_OP_sub:
        if (inf[0] == inf[1])
            return false;
        *bits = t[0].bits;
        if (inf[1]) {
            const uint64_t x[3] = {t[1].bits, 0, 0};
            return kl_fold(KL_OP_neg, e, e, x, bits);
        }
        return true;
    default: return false;
    }
}

static void elementwise(struct padder *p, kl_val v, uint32_t d)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    struct term t[3] = {{0}};
    struct pad *out = &p->at[v.id][d];
    bool any = false, all = true;
    uint64_t x[3] = {0};
    for (uint32_t i = 0; i < in->nargs && i < 3; i++) {
        kl_val a = kl_arg(f, v, i);
        const struct pad *s = &p->at[a.id][d];
        t[i].padded = s->state != PAD_NONE;
        t[i].known = s->state == PAD_CONST;
        t[i].bits = s->bits;
        if (!t[i].padded)
            t[i].known = constant(f, a, &t[i].bits);
        if (t[i].padded && !out->from.id)
            out->from = s->from;
        any |= t[i].padded;
        all &= t[i].known;
        x[i] = t[i].bits;
    }
    if (!any)
        return;
    enum kl_elem e = (enum kl_elem)kl_type_of(f, kl_arg(f, v, in->op == KL_OP_select))->elem;
    enum kl_elem to = (enum kl_elem)kl_type_of(f, v)->elem;
    if (in->op == KL_OP_select) {
        if (!t[1].padded && !t[2].padded) {
            *out = (struct pad){0}; /* inside() alone does not say that this axis is padded */
        } else if (t[0].known) {
            const struct term *s = &t[t[0].bits ? 1 : 2];
            *out = s->known    ? (struct pad){PAD_CONST, s->bits, out->from}
                   : s->padded ? (struct pad){PAD_VARIES, 0, out->from}
                               : (struct pad){0};
        } else if (!p->in->data[kl_arg(f, v, 0).id]) {
            *out = (struct pad){0}; /* chosen by place: the author minds the padding */
        } else {
            out->state = PAD_VARIES;
        }
        return;
    }
    if (!all && kl_ops[in->op].cls == KL_C_CMP) {
        *out = (struct pad){0}; /* so is what follows from a comparison */
        return;
    }
    out->state = PAD_VARIES;
    if (all && kl_fold((enum kl_op)in->op, to, e, x, &out->bits))
        out->state = PAD_CONST;
    else if (decided((enum kl_op)in->op, e, t, &out->bits))
        out->state = PAD_CONST;
    else if (in->op == KL_OP_fma && (is_zero(&t[0], e) || is_zero(&t[1], e)))
        *out = t[2].known    ? (struct pad){PAD_CONST, t[2].bits, out->from}
               : t[2].padded ? (struct pad){PAD_VARIES, 0, out->from}
                             : (struct pad){0};
}

static void moved(struct padder *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_val a = kl_arg(f, v, 0);
    const struct kl_type *t = kl_type_of(f, v), *from = kl_type_of(f, a);
    if (in->op == KL_OP_permute) {
        for (uint32_t d = 0; d < t->rank; d++)
            p->at[v.id][d] = p->at[a.id][f->aux[in->attr.aux.at + d]];
    } else if (in->op == KL_OP_broadcast) {
        for (uint32_t d = 0; d < from->rank; d++)
            if (from->dim[d] > 1)
                p->at[v.id][t->rank - from->rank + d] = p->at[a.id][d];
    } else { /* reshape: only axes of size 1 come and go */
        uint32_t k = 0;
        struct pad to[KL_MAX_RANK] = {{0}};
        for (uint32_t d = 0; d < t->rank; d++) {
            if (t->dim[d] == 1)
                continue;
            while (k < from->rank && from->dim[k] == 1)
                k++;
            if (k == from->rank || from->dim[k] != t->dim[d])
                return;
            to[d] = p->at[a.id][k++];
        }
        memcpy(p->at[v.id], to, sizeof to);
    }
}

/* ---- folds ---- */

/* The least and the largest value of an integer type. */
static void limits(enum kl_elem e, uint64_t *least, uint64_t *most)
{
    bool sign = kl_elems[e].kind == KL_KIND_SINT;
    uint32_t n = 8u * kl_elems[e].bytes;
    *least = sign ? kl_canon(e, UINT64_C(1) << (n - 1)) : 0;
    *most = sign ? kl_canon(e, (UINT64_C(1) << (n - 1)) - 1) : kl_canon(e, UINT64_MAX);
}

static const char *neutral_of(const struct padder *p, enum kl_op op, enum kl_elem e)
{
    uint64_t least, most, x;
    limits(e, &least, &most);
    switch (op) {
    case KL_OP_add:
    case KL_OP_or:
    case KL_OP_xor: return "0";
    case KL_OP_mul: return "1";
    case KL_OP_max:
    case KL_OP_fmax:
    case KL_OP_argmax:
        if (kl_is_float(e))
            return "-inf";
        x = least;
        break;
    case KL_OP_min:
    case KL_OP_fmin:
    case KL_OP_argmin:
        if (kl_is_float(e))
            return "inf";
        x = most;
        break;
    default: return e == KL_bool ? "true" : "all bits set";
    }
    return kl_elems[e].kind == KL_KIND_SINT ? kl_printf(p->in->a, "%lld", (long long)x)
                                            : kl_printf(p->in->a, "%llu", (unsigned long long)x);
}

static bool is_neutral(enum kl_op op, enum kl_elem e, uint64_t bits)
{
    double x = number(e, bits);
    uint64_t least, most;
    limits(e, &least, &most);
    switch (op) {
    case KL_OP_add:
    case KL_OP_or:
    case KL_OP_xor: return x == 0;
    case KL_OP_mul: return x == 1;
    case KL_OP_max:
    case KL_OP_fmax:
    case KL_OP_argmax: return kl_is_float(e) ? isinf(x) && x < 0 : bits == least;
    case KL_OP_min:
    case KL_OP_fmin:
    case KL_OP_argmin: return kl_is_float(e) ? isinf(x) && x > 0 : bits == most;
    default: return bits == kl_canon(e, UINT64_MAX) || (e == KL_bool && bits);
    }
}

/* Is every element at least (up), or at most, 0, or what `than` is?  A NaN passes any maximum. */
static bool bounded(const kl_fn *f, kl_val v, bool up, double than, uint32_t depth)
{
    const struct kl_ins *in = kl_in(f, v);
    enum kl_elem e = (enum kl_elem)kl_type_of(f, v)->elem;
    bool zero = up ? than <= 0 : than >= 0; /* to know the sign is enough */
    if (!depth)
        return false;
#define ARG(i) bounded(f, kl_arg(f, v, i), up, than, depth - 1)
#define SIGN(i, plus) bounded(f, kl_arg(f, v, i), plus, 0, depth - 1)
    switch (in->op) {
    case KL_OP_const: {
        double x = number(e, in->attr.bits);
        return up ? x >= than : x <= than;
    }
    case KL_OP_broadcast:
    case KL_OP_reshape:
    case KL_OP_permute:
    case KL_OP_flip: return ARG(0);
    case KL_OP_convert: return kl_is_float(e) && ARG(0); /* others may wrap */
    case KL_OP_reduce:
        if (in->attr.red.op == KL_OP_add || in->attr.red.op == KL_OP_mul)
            return zero && kl_is_float(e) && SIGN(0, true) && up;
        return ARG(0);
    case KL_OP_max:
    case KL_OP_fmax: return up ? ARG(0) || ARG(1) : ARG(0) && ARG(1);
    case KL_OP_min:
    case KL_OP_fmin: return up ? ARG(0) && ARG(1) : ARG(0) || ARG(1);
    case KL_OP_select: return ARG(1) && ARG(2);
    case KL_OP_neg: return zero && SIGN(0, !up);
    case KL_OP_add: return zero && kl_is_float(e) && SIGN(0, up) && SIGN(1, up);
    case KL_OP_mul:
    case KL_OP_div:
        if (!zero || !kl_is_float(e))
            return false;
        if (in->op == KL_OP_mul && kl_arg(f, v, 0).id == kl_arg(f, v, 1).id)
            return up;
        return up ? (SIGN(0, true) && SIGN(1, true)) || (SIGN(0, false) && SIGN(1, false))
                  : (SIGN(0, true) && SIGN(1, false)) || (SIGN(0, false) && SIGN(1, true));
    case KL_OP_abs: return up && zero && kl_is_float(e);
    case KL_OP_exp:
    case KL_OP_exp2:
    case KL_OP_sqrt:
    case KL_OP_sigmoid: return up && zero;
    default: return up && zero && kl_elems[e].kind == KL_KIND_UINT;
    }
#undef ARG
#undef SIGN
}

/* Zeros in a maximum of squares: nothing is less. */
static bool harmless(const kl_fn *f, enum kl_op op, kl_val v, const struct pad *s)
{
    enum kl_elem e = (enum kl_elem)kl_type_of(f, v)->elem;
    bool up = op == KL_OP_max || op == KL_OP_fmax || op == KL_OP_argmax;
    bool down = op == KL_OP_min || op == KL_OP_fmin || op == KL_OP_argmin;
    return s->state == PAD_CONST && (up || down) && bounded(f, v, up, number(e, s->bits), 12);
}

static void say(struct padder *p, kl_val v, const struct pad *s, const char *fold,
                const char *neutral)
{
    const kl_fn *f = p->f;
    enum kl_elem e = (enum kl_elem)kl_type_of(f, kl_arg(f, v, 0))->elem;
    struct kl_diag *g =
        s->state == PAD_CONST
            ? kl_diag(p->d, KL_K2702, kl_in(f, v)->loc,
                      "padding takes part in %s with %g, and %s is neutral there", fold,
                      number(e, s->bits), neutral)
            : kl_diag(p->d, KL_K2702, kl_in(f, v)->loc,
                      "padding takes part in %s with a value that is not known to be %s", fold,
                      neutral);
    bool masked = kl_in(f, s->from)->attr.access.flags & KL_ACC_MASK;
    kl_note(g, kl_in(f, s->from)->loc, "elements %s the extents of `%s` are read here",
            masked ? "that are masked or past" : "past", f->param[kl_root(f, kl_arg(f, s->from, 0))].name);
    kl_val a = kl_arg(f, v, 0);
    while (kl_in(f, a)->op == KL_OP_convert || kl_in(f, a)->op == KL_OP_reshape)
        a = kl_arg(f, a, 0);
    if (a.id == s->from.id)
        kl_note(g, (kl_span){0, 0}, "help: let the load give it there: load(%s[...], %s)",
                f->param[kl_root(f, kl_arg(f, s->from, 0))].name, neutral);
    else
        kl_note(g, (kl_span){0, 0}, "help: choose it before the fold: inside(...) ? v : %s",
                neutral);
    p->more(p->user, g);
}

static bool asked(const struct padder *p, kl_val v)
{
    return !p->in->only.id || p->in->only.id == v.id;
}

static void fold(struct padder *p, kl_val v)
{
    static const struct pad nothing = {0};
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_val a = kl_arg(f, v, 0);
    bool reduce = in->op == KL_OP_reduce;
    uint32_t axis = reduce ? in->attr.red.axis : (uint32_t)in->attr.index;
    enum kl_op op = reduce ? (enum kl_op)in->attr.red.op : (enum kl_op)in->op;
    enum kl_elem e = (enum kl_elem)kl_type_of(f, a)->elem;
    const struct pad *s = &p->at[a.id][axis];
    if (!asked(p, v))
        s = &nothing;
    if ((s->state == PAD_VARIES && kl_is_float(e)) ||
        (s->state == PAD_CONST && !is_neutral(op, e, s->bits) && !harmless(f, op, a, s)))
        say(p, v, s,
            reduce ? kl_printf(p->in->a, "the fold by %s", kl_ops[op].name) : kl_ops[op].name,
            neutral_of(p, op, e));
    for (uint32_t d = 0; d < kl_type_of(f, v)->rank; d++) {
        const struct pad *o = &p->at[a.id][d];
        if (d == axis || o->state == PAD_NONE)
            continue;
        bool same = o->state == PAD_CONST &&
                    (kl_ops[op].flags & KL_F_IDEM || (op == KL_OP_add && number(e, o->bits) == 0));
        p->at[v.id][d] = (struct pad){same ? PAD_CONST : PAD_VARIES, o->bits, o->from};
    }
}

/* Along k one factor has to be zero where the other is padding. */
static void dot(struct padder *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct kl_type *t = kl_type_of(f, v);
    enum kl_elem e = (enum kl_elem)kl_type_of(f, kl_arg(f, v, 0))->elem;
    const struct pad *a = &p->at[kl_arg(f, v, 0).id][t->rank - 1];
    const struct pad *b = &p->at[kl_arg(f, v, 1).id][t->rank - 2];
    const struct pad *s = a->state != PAD_NONE ? a : b;
    bool zero = (a->state == PAD_CONST && number(e, a->bits) == 0) ||
                (b->state == PAD_CONST && number(e, b->bits) == 0);
    if (s->state != PAD_NONE && !zero && asked(p, v))
        say(p, v, s, "the inner sum of dot", "0");
    /* rows and columns of padding, where the sum starts at 0 */
    uint64_t bits;
    enum kl_elem to = (enum kl_elem)t->elem;
    if (!constant(f, kl_arg(f, v, 2), &bits) || number(to, bits) != 0)
        return;
    for (uint32_t d = 0; d < t->rank; d++) {
        const struct pad *x = &p->at[kl_arg(f, v, d + 1 == t->rank).id][d]; /* columns: of the second */
        if (x->state == PAD_NONE)
            continue;
        bool nil = x->state == PAD_CONST && number(e, x->bits) == 0;
        p->at[v.id][d] = (struct pad){nil ? PAD_CONST : PAD_VARIES, 0, x->from};
    }
}

static void cat(struct padder *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct pad *a = p->at[kl_arg(f, v, 0).id], *b = p->at[kl_arg(f, v, 1).id];
    for (uint32_t d = 0; d < kl_type_of(f, v)->rank; d++) {
        const struct pad *x = a[d].state != PAD_NONE ? &a[d] : &b[d];
        bool both = a[d].state != PAD_NONE && b[d].state != PAD_NONE;
        p->at[v.id][d] = *x;
        if (both && (a[d].state != b[d].state || a[d].bits != b[d].bits))
            p->at[v.id][d].state = PAD_VARIES;
    }
}

/* What a loop carries element by element, acc = max(acc, x): neutral padding leaves nothing behind,
 * other padding stays in its elements. */
static struct pad gathered(const struct padder *p, kl_val y, kl_val given, uint32_t d)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, y);
    enum kl_op op = (enum kl_op)in->op;
    if ((op != KL_OP_add && op != KL_OP_mul && op != KL_OP_max && op != KL_OP_fmax && op != KL_OP_min &&
         op != KL_OP_fmin) ||
        (kl_arg(f, y, 0).id != given.id && kl_arg(f, y, 1).id != given.id))
        return (struct pad){0};
    kl_val x = kl_arg(f, y, kl_arg(f, y, 0).id == given.id);
    enum kl_elem e = (enum kl_elem)kl_type_of(f, y)->elem;
    const struct pad *s = &p->at[x.id][d];
    if (s->state == PAD_NONE || (s->state == PAD_VARIES && !kl_is_float(e)) ||
        (s->state == PAD_CONST && (is_neutral(op, e, s->bits) || harmless(f, op, x, s))))
        return (struct pad){0};
    return (struct pad){PAD_VARIES, 0, s->from};
}

static void loop(struct padder *p, kl_val v)
{
    const kl_fn *f = p->f;
    kl_blk own[2];
    uint32_t n = kl_blocks(f, v, own), res = kl_in(f, v)->next, given = f->blk[own[n - 1].id].first;
    kl_val y = kl_last(f, own[n - 1]);
    if (kl_in(f, v)->op == KL_OP_for)
        given = f->ins[given].next; /* the first is the variable */
    for (uint32_t i = 0; i < kl_in(f, y)->nargs; i++) {
        for (uint32_t d = 0; d < kl_type_of(f, (kl_val){res})->rank; d++)
            p->at[res][d] = gathered(p, kl_arg(f, y, i), (kl_val){given}, d);
        res = f->ins[res].next, given = f->ins[given].next;
    }
}

static void walk(struct padder *p, kl_blk b)
{
    const kl_fn *f = p->f;
    kl_each_ins (f, b, v) {
        const struct kl_ins *in = kl_in(f, v);
        kl_blk own[2];
        if (p->in->ran && !p->in->ran[v.id])
            continue;
        if (!kl_is_fold(f, v))
            for (uint32_t i = 0, n = kl_blocks(f, v, own); i < n; i++)
                walk(p, own[i]);
        if (in->op == KL_OP_for || in->op == KL_OP_while)
            loop(p, v);
        if (!in->type.id || kl_type_of(f, v)->kind != KL_T_TILE)
            continue;
        uint32_t rank = kl_type_of(f, v)->rank;
        if (kl_ops[in->op].flags & KL_F_EW) {
            for (uint32_t d = 0; d < rank; d++)
                elementwise(p, v, d);
            continue;
        }
        switch (in->op) {
        case KL_OP_load: load(p, v); break;
        case KL_OP_inside: /* false there */
            for (uint32_t d = 0; d < rank; d++)
                p->at[v.id][d] = (struct pad){PAD_CONST, 0, v};
            break;
        case KL_OP_broadcast:
        case KL_OP_reshape:
        case KL_OP_permute: moved(p, v); break;
        case KL_OP_flip:
            memcpy(p->at[v.id], p->at[kl_arg(f, v, 0).id], sizeof p->at[v.id]);
            break;
        case KL_OP_cat: cat(p, v); break;
        case KL_OP_reduce:
        case KL_OP_argmax:
        case KL_OP_argmin: fold(p, v); break;
        case KL_OP_dot: dot(p, v); break;
        default: break;
        }
    }
}

void kl_pad_notes(kl_pad_in *in, kl_diags *d, void (*more)(void *user, struct kl_diag *g),
                  void *user)
{
    struct padder p = {.in = in, .f = in->f, .d = d, .more = more, .user = user};
    size_t size = sizeof *p.at * in->f->nins;
    if (in->work)
        memset(in->work, 0, size);
    else
        in->work = kl_alloc_zero(in->a, size);
    p.at = in->work;
    walk(&p, KL_BODY);
}

/* ---- data ---- */

static bool depends(const kl_fn *f, const bool *data, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    if (in->op == KL_OP_result && kl_in(f, in->attr.result.of)->op == KL_OP_if) {
        kl_val of = in->attr.result.of;
        bool any = data[kl_arg(f, of, 0).id];
        for (int i = 0; i < 2; i++)
            any |= data[kl_arg(f, kl_last(f, kl_in(f, of)->attr.blk[i]), in->attr.result.index).id];
        return any;
    }
    if (in->op == KL_OP_load || in->op == KL_OP_atomic || in->op == KL_OP_atomic_load)
        return kl_numel(kl_type_of(f, v)) > 1;
    if (in->op == KL_OP_result || (in->op == KL_OP_param && f->blk[in->blk.id].owner.id))
        return in->type.id && kl_type_of(f, v)->rank > 0;
    for (uint32_t i = 0; i < in->nargs; i++)
        if (data[kl_arg(f, v, i).id])
            return true;
    return false;
}

static void find_data(const kl_fn *f, bool *data, kl_blk b)
{
    kl_each_ins (f, b, v) {
        kl_blk own[2];
        uint32_t n = kl_blocks(f, v, own);
        data[v.id] = depends(f, data, v);
        for (uint32_t i = 0; i < n && !kl_is_fold(f, v); i++) /* the block of a fold is part of it */
            find_data(f, data, own[i]);
    }
}

bool *kl_data_of(kl_arena *a, const kl_fn *f)
{
    bool *data = kl_new_n(a, bool, f->nins);
    find_data(f, data, KL_BODY);
    return data;
}
