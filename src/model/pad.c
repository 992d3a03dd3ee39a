/* pad.c - what a tile holds where it reaches past the extents, and folds over that.
 *
 * For each axis of a tile along which some load of this launch reached past its array: the value
 * there, if it follows from the load's fill, or that it varies.  A fold along such an axis wants its
 * neutral element there.  Integers that vary are indices and counts mostly, chosen by comparisons
 * that are not followed here: nothing is said of them. */
#include <math.h>

#include "model/run.h"

enum state { PAD_NONE, PAD_CONST, PAD_VARIES };

/* Along one axis.  from: the load. */
struct pad {
    uint8_t state;
    uint64_t bits;
    kl_val from;
};

struct padder {
    const struct mrun *r;
    const kl_fn *f;
    const bool *data;
    struct pad (*at)[KL_MAX_RANK];
    kl_diags *d;
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
    uint32_t out = 0;
    uint64_t bits = 0;
    for (const struct maccess *a = p->r->at[v.id]; a; a = a->next)
        out |= a->outside | (a->mask_false && t->rank == 1 ? 1 : 0);
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
        } else if (!p->data[kl_arg(f, v, 0).id]) {
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

static const char *neutral_of(enum kl_op op, enum kl_elem e)
{
    switch (op) {
    case KL_OP_add:
    case KL_OP_or:
    case KL_OP_xor: return "0";
    case KL_OP_mul: return "1";
    case KL_OP_max:
    case KL_OP_fmax:
    case KL_OP_argmax: return kl_is_float(e) ? "-inf" : "the least value of its type";
    case KL_OP_min:
    case KL_OP_fmin:
    case KL_OP_argmin: return kl_is_float(e) ? "inf" : "the largest value of its type";
    default: return "all bits set";
    }
}

static bool is_neutral(enum kl_op op, enum kl_elem e, uint64_t bits)
{
    double x = number(e, bits);
    bool sign = kl_elems[e].kind == KL_KIND_SINT;
    uint32_t n = 8u * kl_elems[e].bytes;
    uint64_t least = sign ? kl_canon(e, UINT64_C(1) << (n - 1)) : 0;
    uint64_t most = sign ? kl_canon(e, (UINT64_C(1) << (n - 1)) - 1) : kl_canon(e, UINT64_MAX);
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
    kl_note(g, kl_in(f, s->from)->loc, "elements past the extents of `%s` are read here",
            p->r->in->param[kl_root(f, kl_arg(f, s->from, 0))].name);
    kl_val a = kl_arg(f, v, 0);
    while (kl_in(f, a)->op == KL_OP_convert || kl_in(f, a)->op == KL_OP_reshape)
        a = kl_arg(f, a, 0);
    if (a.id == s->from.id)
        kl_note(g, (kl_span){0, 0}, "help: let the load give it there: load(x[...], %s)", neutral);
    else
        kl_note(g, (kl_span){0, 0}, "help: choose it before the fold: inside(...) ? v : %s",
                neutral);
    kl_note(g, (kl_span){0, 0}, "expected gain: none in time; the result is another one");
}

static void fold(struct padder *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_val a = kl_arg(f, v, 0);
    bool reduce = in->op == KL_OP_reduce;
    uint32_t axis = reduce ? in->attr.red.axis : (uint32_t)in->attr.index;
    enum kl_op op = reduce ? (enum kl_op)in->attr.red.op : (enum kl_op)in->op;
    enum kl_elem e = (enum kl_elem)kl_type_of(f, a)->elem;
    const struct pad *s = &p->at[a.id][axis];
    if ((s->state == PAD_VARIES && kl_is_float(e)) ||
        (s->state == PAD_CONST && !is_neutral(op, e, s->bits)))
        say(p, v, s,
            reduce ? kl_printf(p->r->a, "the fold by %s", kl_ops[op].name) : kl_ops[op].name,
            neutral_of(op, e));
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
    if (s->state != PAD_NONE && !zero)
        say(p, v, s, "the inner sum of dot", "0");
}

static void walk(struct padder *p, kl_blk b)
{
    const kl_fn *f = p->f;
    kl_each_ins (f, b, v) {
        const struct kl_ins *in = kl_in(f, v);
        kl_blk own[2];
        if (!p->r->runs[0][v.id] && !p->r->runs[1][v.id])
            continue; /* never executed */
        if (!kl_is_fold(f, v))
            for (uint32_t i = 0, n = kl_blocks(f, v, own); i < n; i++)
                walk(p, own[i]);
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
        case KL_OP_reduce:
        case KL_OP_argmax:
        case KL_OP_argmin: fold(p, v); break;
        case KL_OP_dot: dot(p, v); break;
        default: break;
        }
    }
}

void kl_model_pad_notes(const struct mrun *r, kl_diags *d)
{
    struct padder p = {.r = r, .f = r->f, .data = kl_model_data(r), .d = d};
    p.at = kl_alloc_zero(r->a, sizeof *p.at * r->f->nins);
    walk(&p, KL_BODY);
}
