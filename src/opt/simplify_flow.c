/* simplify_flow.c - rules on control flow.
 *
 * A block that surely runs once is spliced in front of its owner; its parameters become
 * what is handed in, the owner's results what the block yields.  A carried value that no
 * trip changes is no longer carried. */
#include "opt/simplify.h"

typedef struct kl_simp simp;

static kl_val result_at(const simp *s, kl_val v, uint32_t k)
{
    kl_val r = {kl_in(s->f, v)->next};
    while (k-- > 0)
        r.id = kl_in(s->f, r)->next;
    return r;
}

/* Remove v, whose results become val[0..n). */
static void replace_owner(simp *s, kl_val v, const kl_val *val, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) /* each removal brings the next one behind v */
        kl_simp_replace(s, result_at(s, v, 0), val[i]);
    kl_remove(s->f, v);
}

/* Operand i of the yield that ends a block, as it stands by now. */
static kl_val yielded(const simp *s, kl_blk b, uint32_t i)
{
    return kl_simp_now(s, kl_arg(s->f, kl_last(s->f, b), i));
}

/* Run block b once in front of v: parameters become in[], out[] what it yields (nout). */
static void run_once(simp *s, kl_val v, kl_blk b, const kl_val *in, kl_val *out, uint32_t nout)
{
    for (uint32_t k = 0; in && s->f->blk[b.id].nparam; k++)
        kl_simp_replace(s, kl_param_at(s->f, b, 0), in[k]);
    kl_splice_before(s->f, b, v);
    for (uint32_t i = 0; i < nout; i++)
        out[i] = yielded(s, b, i);
}

static kl_val *values(const simp *s, uint32_t n)
{
    return kl_new_n(s->f->a, kl_val, n + 1);
}

bool kl_flow_store_nothing(simp *s, kl_val v)
{
    const struct kl_ins *in = kl_in(s->f, v);
    if (!(in->attr.access.flags & KL_ACC_MASK) ||
        !kl_is_bits(s->f, kl_arg(s->f, v, in->nargs - 1u), 0))
        return false;
    kl_remove(s->f, v);
    return true;
}

bool kl_flow_if_const(simp *s, kl_val v)
{
    kl_val c = kl_arg(s->f, v, 0);
    if (!kl_is_const(s->f, c))
        return false;
    uint32_t n = kl_nresults(s->f, v);
    kl_val *out = values(s, n);
    run_once(s, v, kl_in(s->f, v)->attr.blk[kl_is_bits(s->f, c, 0)], NULL, out, n);
    replace_owner(s, v, out, n);
    return true;
}

bool kl_flow_if_not(simp *s, kl_val v)
{
    kl_val c = kl_arg(s->f, v, 0);
    if (kl_op_of(s, c) != KL_OP_xor || !kl_is_bits(s->f, kl_arg(s->f, c, 1), 1))
        return false;
    struct kl_ins *in = kl_in(s->f, v);
    kl_blk b = in->attr.blk[0];
    in->attr.blk[0] = in->attr.blk[1];
    in->attr.blk[1] = b;
    c = kl_arg(s->f, c, 0);
    kl_set_args(s->f, v, &c, 1);
    return true;
}

/* The value that two others both are: the same, or equal constants (made before v). */
static kl_val alike(simp *s, kl_val v, kl_val x, kl_val y)
{
    if (x.id == y.id)
        return x;
    if (kl_is_const(s->f, x) && kl_is_bits(s->f, y, kl_in(s->f, x)->attr.bits) &&
        kl_in(s->f, x)->type.id == kl_in(s->f, y)->type.id)
        return kl_make_const(s, v, kl_in(s->f, x)->type, kl_in(s->f, x)->attr.bits);
    return KL_NO;
}

bool kl_flow_if_same(simp *s, kl_val v)
{
    uint32_t n = kl_nresults(s->f, v);
    bool *drop = NULL;
    for (uint32_t i = 0; i < n; i++) {
        union kl_attr attr = kl_in(s->f, v)->attr;
        kl_val x = alike(s, v, yielded(s, attr.blk[0], i), yielded(s, attr.blk[1], i));
        if (!x.id)
            continue;
        drop = drop ? drop : kl_new_n(s->f->a, bool, n);
        drop[i] = true;
        kl_val r = result_at(s, v, i);
        /* the map first: dropping removes the instruction */
        if (r.id >= s->crepl)
            s->repl = kl_vec_grow(s->f->a, s->repl, &s->crepl, sizeof *s->repl, s->f->nins);
        s->repl[r.id] = x;
    }
    if (drop)
        kl_drop_carried(s->f, v, drop);
    return drop != NULL;
}

static bool only_constants(const simp *s, kl_blk b)
{
    kl_each_ins(s->f, b, v)
        if (kl_op_of(s, v) != KL_OP_const && kl_op_of(s, v) != KL_OP_yield)
            return false;
    return true;
}

bool kl_flow_if_select(simp *s, kl_val v)
{
    kl_blk own[2] = {kl_in(s->f, v)->attr.blk[0], kl_in(s->f, v)->attr.blk[1]};
    uint32_t n = kl_nresults(s->f, v);
    if (n == 0 || !only_constants(s, own[0]) || !only_constants(s, own[1]))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (kl_type_of(s->f, result_at(s, v, i))->rank != 0)
            return false;
    kl_val *x = values(s, n), *y = values(s, n);
    run_once(s, v, own[0], NULL, x, n);
    run_once(s, v, own[1], NULL, y, n);
    for (uint32_t i = 0; i < n; i++) {
        kl_val a[3] = {kl_arg(s->f, v, 0), x[i], y[i]};
        x[i] = kl_make(s, v, KL_OP_select, (kl_typ){0}, a, 3, (union kl_attr){0});
    }
    replace_owner(s, v, x, n);
    return true;
}

bool kl_flow_for_once(simp *s, kl_val v)
{
    uint64_t trips;
    if (!kl_const_trips(s->f, v, &trips) || trips > 1)
        return false;
    uint32_t n = kl_nresults(s->f, v);
    kl_val *in = values(s, n + 1), *out = values(s, n);
    in[0] = kl_arg(s->f, v, 0);
    for (uint32_t i = 0; i < n; i++)
        in[1 + i] = out[i] = kl_arg(s->f, v, 3 + i);
    if (trips)
        run_once(s, v, kl_in(s->f, v)->attr.loop.blk, in, out, n);
    replace_owner(s, v, out, n);
    return true;
}

bool kl_flow_while_false(simp *s, kl_val v)
{
    kl_blk cond = kl_in(s->f, v)->attr.blk[0];
    if (!kl_is_bits(s->f, yielded(s, cond, 0), 0))
        return false;
    uint32_t n = kl_nresults(s->f, v);
    kl_val *in = values(s, n), none;
    for (uint32_t i = 0; i < n; i++)
        in[i] = kl_arg(s->f, v, i);
    run_once(s, v, cond, in, &none, 0);
    replace_owner(s, v, in, n);
    return true;
}

bool kl_flow_carry_same(simp *s, kl_val v)
{
    struct kl_carry c = kl_carried(s->f, v);
    kl_blk own[2];
    uint32_t nblk = kl_blocks(s->f, v, own);
    kl_blk body = own[nblk - 1]; /* blk[1] of a while */
    bool *drop = NULL;
    kl_val p = kl_param_at(s->f, body, c.iv);
    for (uint32_t i = 0; i < c.n; i++, p.id = kl_in(s->f, p)->next) {
        kl_val init = kl_arg(s->f, v, c.first + i), y = yielded(s, body, i);
        if (y.id != p.id && y.id != init.id &&
            !(kl_is_const(s->f, init) && kl_is_bits(s->f, y, kl_in(s->f, init)->attr.bits)))
            continue;
        drop = drop ? drop : kl_new_n(s->f->a, bool, c.n);
        drop[i] = true;
    }
    if (!drop)
        return false;
    if (s->crepl < s->f->nins)
        s->repl = kl_vec_grow(s->f->a, s->repl, &s->crepl, sizeof *s->repl, s->f->nins);
    for (uint32_t i = 0; i < c.n; i++) {
        if (!drop[i])
            continue;
        kl_val init = kl_arg(s->f, v, c.first + i);
        s->repl[result_at(s, v, i).id] = init;
        for (uint32_t k = 0; k < nblk; k++)
            s->repl[kl_param_at(s->f, own[k], c.iv + i).id] = init;
    }
    kl_drop_carried(s->f, v, drop);
    return true;
}
