/* arith.c - integer arithmetic that goes wrong: an index that overflows, a division by zero.
 *
 * Only what reaches the subscripts of an access or the place of a view is looked at for
 * overflow, and no further back than to an operation that cuts a value down (a remainder, a
 * mask, a shift) or chooses, as wrapping before that is usually meant or does no harm.
 *
 * Lanes past the end of an array read 0, so that a / b divides by zero there, and nobody sees the
 * result.  A division is therefore excused in lanes that an access in its divisor does not
 * have, and where a select or the mask of a store decides about the quotient. */
#include "gen/interp/run.h"

__extension__ typedef __int128 wide;

/* ---- which values are parts of an index ---- */

static bool passes(uint16_t op)
{
    switch (op) {
    case KL_OP_add:
    case KL_OP_sub:
    case KL_OP_mul:
    case KL_OP_convert:
    case KL_OP_broadcast:
    case KL_OP_reshape:
    case KL_OP_permute:
    case KL_OP_min:
    case KL_OP_max: return true;
    default: return false;
    }
}

enum { AT_ONCE = 1, LATER = 2 }; /* index[]: told where it happens; where it is used */

/* What a round of the loop hands on in the place of v, a scalar that it carries; 0: v is none. */
static kl_val handed_on(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    kl_val loop = {0};
    uint32_t k = 0;
    if (kl_type_of(f, v)->rank)
        return loop;
    if (in->op == KL_OP_result) {
        loop = in->attr.result.of, k = in->attr.result.index;
    } else if (in->op == KL_OP_param && in->blk.id != KL_BODY.id) {
        loop = f->blk[in->blk.id].owner;
        for (uint32_t id = f->blk[in->blk.id].first; id != v.id; id = f->ins[id].next)
            k++;
    }
    uint16_t op = loop.id ? kl_in(f, loop)->op : KL_OP_if;
    if ((op != KL_OP_for && op != KL_OP_while) || (op == KL_OP_for && in->op == KL_OP_param && !k--))
        return (kl_val){0};
    kl_blk own[2];
    uint32_t n = kl_blocks(f, loop, own);
    return kl_arg(f, kl_last(f, own[n - 1]), k);
}

static void mark(const kl_fn *f, uint8_t *index, kl_val v, uint8_t how)
{
    const struct kl_ins *in = kl_in(f, v);
    if (index[v.id] & (how | AT_ONCE) || kl_type_of(f, v)->kind != KL_T_TILE ||
        kl_is_float(kl_type_of(f, v)->elem))
        return;
    index[v.id] |= how;
    kl_val next = handed_on(f, v);
    if (next.id)
        mark(f, index, next, LATER);
    if (!passes(in->op))
        return;
    for (uint32_t i = 0; i < in->nargs; i++)
        mark(f, index, kl_arg(f, v, i), how);
}

static void mark_indices(const kl_fn *f, uint8_t *index)
{
    for (uint32_t id = 1; id < f->nins; id++) {
        const struct kl_ins *in = &f->ins[id];
        kl_val v = {id};
        if (!in->blk.id)
            continue;
        uint32_t n = in->op == KL_OP_view                 ? in->nargs - 1u
                     : kl_ops[in->op].attr == KL_A_ACCESS ? in->attr.access.n
                                                          : 0;
        for (uint32_t i = 0; i < n; i++)
            mark(f, index, kl_arg(f, v, 1 + i), AT_ONCE);
    }
}

/* ---- overflow ---- */

/* Of an operation whose result a loop carries: it is told when an access takes what came of it, since
 * a step behind the last use may well wrap. */
struct kl_later {
    bool wrapped; /* since the loop began */
    int64_t a, b;
    kl_val val;
};
struct kl_laters {
    uint32_t n;
    struct kl_later *of[8];
};

static void collect(struct kl_run *r, kl_val v, uint8_t *seen, struct kl_laters *x)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    if (seen[v.id] || kl_type_of(f, v)->kind != KL_T_TILE)
        return;
    seen[v.id] = 1;
    if (r->later[v.id] && x->n < 8)
        x->of[x->n++] = r->later[v.id];
    kl_val next = handed_on(f, v);
    if (next.id)
        collect(r, next, seen, x);
    for (uint32_t i = 0; passes(in->op) && i < in->nargs; i++)
        collect(r, kl_arg(f, v, i), seen, x);
}

static bool do_tell(struct kl_run *r, const struct kl_step *s)
{
    const struct kl_laters *x = s->u.laters;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct kl_later *l = x->of[i];
        const struct kl_step at = {.val = l->val};
        bool isnew;
        if (!l->wrapped)
            continue;
        struct kl_finding *g = kl_found(r, &at, KL_K1601, UINT32_MAX, 0, &isnew);
        if (isnew)
            g->bits[0] = (uint64_t)l->a, g->bits[1] = (uint64_t)l->b;
    }
    return true;
}

static bool do_forget(struct kl_run *r, const struct kl_step *s)
{
    (void)r;
    for (uint32_t i = 0; i < s->u.laters->n; i++)
        s->u.laters->of[i]->wrapped = false;
    return true;
}

static void inside_loop(struct kl_run *r, kl_blk b, struct kl_laters *x)
{
    kl_each_ins (r->f, b, v) {
        kl_blk own[2];
        if (r->later[v.id] && x->n < 8)
            x->of[x->n++] = r->later[v.id];
        for (uint32_t i = 0, n = kl_is_fold(r->f, v) ? 0 : kl_blocks(r->f, v, own); i < n; i++)
            inside_loop(r, own[i], x);
    }
}

bool kl_later_step(struct kl_run *r, kl_val v, struct kl_step *s)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    struct kl_laters x = {0};
    if (!r->later)
        return false;
    if (in->op == KL_OP_for || in->op == KL_OP_while) {
        kl_blk own[2];
        for (uint32_t i = 0, n = kl_blocks(f, v, own); i < n; i++)
            inside_loop(r, own[i], &x);
    } else if (in->op == KL_OP_view || kl_ops[in->op].attr == KL_A_ACCESS) {
        uint8_t *seen = kl_new_n(r->a, uint8_t, f->nins);
        uint32_t n = in->op == KL_OP_view ? in->nargs - 1u : in->attr.access.n;
        for (uint32_t i = 0; i < n; i++)
            collect(r, kl_arg(f, v, 1 + i), seen, &x);
    }
    if (!x.n)
        return false;
    struct kl_laters *y = kl_new(r->a, struct kl_laters);
    *y = x;
    bool loop = in->op == KL_OP_for || in->op == KL_OP_while;
    *s = (struct kl_step){.exec = loop ? do_forget : do_tell, .val = v, .u.laters = y};
    return true;
}

static int64_t load(uint8_t elem, const void *p, size_t i)
{
    return elem == KL_i32 ? ((const kl_m_i32 *)p)[i] : ((const kl_m_i64 *)p)[i];
}

static bool do_checked(struct kl_run *r, const struct kl_step *s)
{
    uint8_t elem = s->u.arith.elem;
    uint16_t op = s->u.arith.op;
    wide most = elem == KL_i32 ? INT32_MAX : INT64_MAX, least = -most - 1;
    for (size_t i = 0; i < s->n; i++) {
        wide a = load(elem, s->in[0], i), b = load(elem, s->in[1], i);
        wide x = op == KL_OP_add ? a + b : op == KL_OP_sub ? a - b : a * b;
        if (x <= most && x >= least)
            continue;
        bool isnew;
        struct kl_later *later = s->u.arith.later;
        if (later) { /* the first one stays */
            if (!later->wrapped)
                later->a = (int64_t)a, later->b = (int64_t)b;
            later->wrapped = true;
            continue;
        }
        struct kl_finding *g = kl_found(r, s, KL_K1601, UINT32_MAX, i, &isnew);
        if (isnew)
            g->bits[0] = (uint64_t)a, g->bits[1] = (uint64_t)b;
    }
    s->u.arith.ew(s->out, s->in[0], s->in[1], s->in[2], s->n);
    return true;
}

/* ---- division ---- */

/* Lanes of loads in the divisor that got no element of the array; always: it cannot be told. */
struct kl_excuse {
    bool always;
    uint32_t n;
    const uint8_t *lost[8];
};

/* Loads that the divisor is made of, lane for lane.  make: give them memory for what is lost. */
static void trace(struct kl_run *r, kl_val v, struct kl_excuse *x, bool make, uint32_t depth)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, v);
    bool lanewise = kl_ops[in->op].flags & KL_F_EW || in->op == KL_OP_reshape;
    if (in->op == KL_OP_load) {
        if (!r->lost[v.id] && make)
            r->lost[v.id] = kl_alloc_zero(r->a, kl_numel(t));
        if (x->n == 8 || !depth)
            x->always = true;
        else if (t->rank)
            x->lost[x->n++] = r->lost[v.id];
    } else if (in->op == KL_OP_broadcast && !kl_type_of(f, kl_arg(f, v, 0))->rank) {
        return; /* a scalar: what it is does not depend on lanes */
    } else if (lanewise && depth) {
        for (uint32_t i = 0; i < in->nargs; i++)
            trace(r, kl_arg(f, v, i), x, make, depth - 1);
    } else if (t->rank && in->op != KL_OP_const && in->op != KL_OP_iota) {
        x->always = true;
    }
}

/* Does a select or a mask decide about each use of v? */
static bool guarded(const kl_fn *f, kl_val v)
{
    bool any = false;
    for (uint32_t id = 1; id < f->nins; id++) {
        const struct kl_ins *in = &f->ins[id];
        for (uint32_t i = 0; in->blk.id && i < in->nargs; i++) {
            if (kl_arg(f, (kl_val){id}, i).id != v.id)
                continue;
            any = true;
            bool masked = in->op == KL_OP_store && in->attr.access.flags & KL_ACC_MASK;
            if (!(in->op == KL_OP_select && i) && !masked)
                return false;
        }
    }
    return any;
}

static bool do_divide(struct kl_run *r, const struct kl_step *s)
{
    uint8_t elem = s->u.arith.elem;
    bool narrow = kl_elems[elem].bytes == 4;
    const struct kl_excuse *x = s->u.arith.excuse;
    for (size_t i = 0; i < s->n; i++) {
        bool lost = false;
        if (narrow ? ((const kl_m_w32 *)s->in[1])[i] : ((const kl_m_w64 *)s->in[1])[i])
            continue;
        for (uint32_t k = 0; k < x->n; k++)
            lost |= x->lost[k][i];
        if (lost)
            continue;
        bool isnew;
        struct kl_finding *g = kl_found(r, s, KL_K1607, UINT32_MAX, i, &isnew);
        if (isnew)
            g->bits[0] = kl_elem_load((enum kl_elem)elem,
                                      (const char *)s->in[0] + i * kl_elems[elem].bytes);
    }
    s->u.arith.ew(s->out, s->in[0], s->in[1], s->in[2], s->n);
    return true;
}

enum { DEPTH = 8 };

/* An integer division by what may be 0. */
static bool divides(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    if (in->op != KL_OP_div && in->op != KL_OP_rem && in->op != KL_OP_cdiv &&
        in->op != KL_OP_floordiv && in->op != KL_OP_floormod)
        return false;
    const struct kl_ins *by = kl_in(f, kl_arg(f, v, 1));
    return !kl_is_float(kl_type_of(f, v)->elem) && !(by->op == KL_OP_const && by->attr.bits);
}

void kl_mark_arith(struct kl_run *r, uint8_t *index)
{
    const kl_fn *f = r->f;
    mark_indices(f, index);
    for (uint32_t id = 1; id < f->nins; id++) {
        uint16_t op = f->ins[id].op;
        bool wraps = op == KL_OP_add || op == KL_OP_sub || op == KL_OP_mul;
        if (!f->ins[id].blk.id || index[id] != LATER || !wraps ||
            kl_type_of(f, (kl_val){id})->rank)
            continue;
        if (!r->later)
            r->later = kl_new_n(r->a, struct kl_later *, f->nins);
        r->later[id] = kl_new(r->a, struct kl_later);
        r->later[id]->val = (kl_val){id};
    }
    if (!r->lost)
        r->lost = kl_new_n(r->a, uint8_t *, f->nins);
    for (uint32_t id = 1; id < f->nins; id++) {
        struct kl_excuse x = {0};
        if (f->ins[id].blk.id && divides(f, (kl_val){id}))
            trace(r, kl_arg(f, (kl_val){id}, 1), &x, true, DEPTH);
    }
}

void kl_check_arith(struct kl_run *r, kl_val v, bool index, struct kl_step *s)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    uint8_t elem = kl_type_of(f, v)->elem;
    switch (in->op) {
    case KL_OP_add:
    case KL_OP_sub:
    case KL_OP_mul:
        if (!index || (elem != KL_i32 && elem != KL_i64))
            return;
        s->u.arith.later = r->later ? r->later[v.id] : NULL;
        s->exec = do_checked;
        break;
    case KL_OP_div:
    case KL_OP_rem:
    case KL_OP_cdiv:
    case KL_OP_floordiv:
    case KL_OP_floormod: {
        struct kl_excuse *x = kl_new(r->a, struct kl_excuse);
        if (!divides(f, v))
            return;
        trace(r, kl_arg(f, v, 1), x, false, DEPTH);
        if (x->always || guarded(f, v))
            return;
        s->u.arith.excuse = x;
        s->exec = do_divide;
        break;
    }
    default: return;
    }
    s->u.arith.ew = s->ew;
    s->u.arith.op = in->op;
    s->u.arith.elem = elem;
    s->ew = NULL;
}

/* ---- telling ---- */

void kl_tell_arith(struct kl_run *r, const struct kl_finding *g, kl_diags *d)
{
    const struct kl_ins *in = kl_in(r->f, g->val);
    uint8_t elem = kl_type_of(r->f, g->val)->elem;
    long long a = (long long)g->bits[0], b = (long long)g->bits[1];
    struct kl_diag *x;
    if (g->code == KL_K1607) {
        x = kl_diag(d, g->code, g->loc, "integer division by zero: %lld %s 0", a,
                    in->op == KL_OP_rem || in->op == KL_OP_floormod ? "%" : "/");
    } else {
        const char *op = in->op == KL_OP_add ? "+" : in->op == KL_OP_sub ? "-" : "*";
        wide v = in->op == KL_OP_add   ? (wide)a + b
                 : in->op == KL_OP_sub ? (wide)a - b
                                       : (wide)a * b;
        x = elem == KL_i32
                ? kl_diag(d, g->code, g->loc, "index overflow: %lld %s %lld is %lld, %s in i32", a, op,
                          b, (long long)v, v > 0 ? "more than 2^31 - 1" : "less than -2^31")
                : kl_diag(d, g->code, g->loc, "index overflow: %lld %s %lld does not fit i64", a, op, b);
    }
    kl_tell_where(r, g, x, true);
    if (g->code == KL_K1607)
        kl_note(x, (kl_span){0, 0}, "the result is %s; test the divisor, or choose with ?:",
                in->op == KL_OP_rem || in->op == KL_OP_floormod ? "the dividend" : "all ones (-1)");
    else if (elem == KL_i32)
        kl_note(x, (kl_span){0, 0}, "it wraps, and the access goes to another place; compute it in i64");
}
