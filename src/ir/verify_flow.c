/* verify_flow.c - operations with blocks: what these take and yield, where results stand. */
#include "ir/verifier.h"

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
             "parameter %u of the block is %s, must be %s", i, kl_vf_text(c, kl_type_of(f, p)),
             kl_vf_text(c, &f->type[t.id]));
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
             kl_vf_text(c, kl_type_of(f, kl_arg(f, y, i))), i, kl_vf_text(c, &f->type[t.id]));
    }
    return true;
}

bool kl_vf_tiles(struct verifier *c, kl_val v)
{
    for (uint32_t i = 0; i < kl_in(c->f, v)->nargs; i++)
        NEED(kl_vf_arg(c, v, i)->kind == KL_T_TILE, "operand %u is not a tile", i);
    return true;
}

/* ---- control ---- */

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
             kl_vf_text(c, &f->type[r->type.id]), kl_vf_text(c, kl_type_of(f, like[i])));
    }
    return true;
}

bool kl_vf_control(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    const kl_val *arg = f->args + in->args;
    kl_typ none = {0};
    if (!kl_vf_tiles(c, v))
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
            if (kl_vf_is_scalar(&f->type[i], KL_bool))
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
        if (!kl_vf_tiles(c, y))
            return false;
        return check_params(c, v, in->attr.blk[0], none, NULL, 0) &&
               check_params(c, v, in->attr.blk[1], none, NULL, 0) &&
               check_yield(c, v, in->attr.blk[1], out, n, none) && check_results(c, v, out, n);
    }
    }
}

/* ---- folds by a block ---- */

/* The results of a fold: one is the instruction itself, several stand behind it. */
static bool check_fold_results(struct verifier *c, kl_val v)
{
    const kl_fn *f = c->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t id = in->nargs > 1 ? in->next : v.id, axis = in->attr.redfn.axis;
    for (uint32_t i = 0; i < in->nargs; i++, id = f->ins[id].next) {
        struct kl_type want = *kl_vf_arg(c, v, i);
        NEED(want.kind == KL_T_TILE && kl_same_shape(&want, kl_vf_arg(c, v, 0)),
             "operand %u is %s, and operand 0 %s", i, kl_vf_text(c, &want),
             kl_vf_text(c, kl_vf_arg(c, v, 0)));
        NEED(axis < want.rank, "has axis %u on %s", axis, kl_vf_text(c, &want));
        if (in->op == KL_OP_reduce_fn)
            want.dim[axis] = 1;
        NEED(in->nargs == 1 || (id && f->ins[id].op == KL_OP_result &&
                                f->ins[id].attr.result.of.id == v.id &&
                                f->ins[id].attr.result.index == i),
             "result %u does not stand behind it", i);
        const struct kl_type *r = &f->type[f->ins[id].type.id];
        NEED(memcmp(&want, r, sizeof want) == 0, "gives %s, must give %s", kl_vf_text(c, r),
             kl_vf_text(c, &want));
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

bool kl_vf_fold(struct verifier *c, kl_val v)
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
         n == 1 ? kl_elems[kl_vf_arg(c, v, 0)->elem].name : "");
    for (uint32_t k = 0; k < n; k++)
        NEED(kl_vf_is_scalar(kl_vf_arg(c, y, k), (enum kl_elem)kl_vf_arg(c, v, k)->elem), "must yield one %s",
             kl_elems[kl_vf_arg(c, v, k)->elem].name);
    kl_each_ins(f, blk, p) {
        if (i == 2 * n)
            break;
        enum kl_elem e = (enum kl_elem)kl_vf_arg(c, v, i % n)->elem;
        NEED(kl_in(f, p)->op == KL_OP_param && kl_vf_is_scalar(kl_type_of(f, p), e),
             "parameters of the block must be %s", kl_elems[e].name);
        i++;
    }
    const char *what = NULL;
    NEED(!has_effect(f, blk, &what), "has a block with an effect (%s)", what);
    return true;
}

/* ---- parameters and results ---- */

/* Parameters of the body are the function's. */
bool kl_vf_param(struct verifier *c, kl_val v)
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
                              : kl_vf_is_scalar(t, (enum kl_elem)p->elem),
         "has type %s, not that of parameter %s", kl_vf_text(c, t), p->name);
    return true;
}

bool kl_vf_result(struct verifier *c, kl_val v)
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
