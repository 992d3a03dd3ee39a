/* surgery.c - owned blocks, replacing, counting and copying. */
#include "ir/ir.h"

uint32_t kl_blocks(const kl_fn *f, kl_val v, kl_blk out[2])
{
    const struct kl_ins *in = kl_in(f, v);
    switch (kl_ops[in->op].attr) {
    case KL_A_REDFN: out[0] = in->attr.redfn.blk; return 1;
    case KL_A_LOOP: out[0] = in->attr.loop.blk; return 1;
    case KL_A_BLOCKS:
        out[0] = in->attr.blk[0];
        out[1] = in->attr.blk[1];
        return 2;
    default: return 0;
    }
}

uint32_t kl_nresults(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    switch (in->op) {
    case KL_OP_for: return in->nargs >= 3 ? in->nargs - 3u : 0;
    case KL_OP_while: return in->nargs;
    case KL_OP_if: {
        kl_val y = kl_last(f, in->attr.blk[0]);
        return y.id ? kl_in(f, y)->nargs : 0;
    }
    case KL_OP_reduce_fn:
    case KL_OP_scan: return in->nargs > 1 ? in->nargs : 0;
    default: return 0;
    }
}

void kl_replace_all(kl_fn *f, const kl_val *repl)
{
    for (uint32_t id = 1; id < f->nins; id++) {
        const struct kl_ins *in = &f->ins[id];
        if (!in->blk.id)
            continue;
        for (uint32_t i = 0; i < in->nargs; i++) {
            kl_val *a = &f->args[in->args + i];
            while (repl[a->id].id) /* a replacement may itself be replaced */
                *a = repl[a->id];
        }
    }
}

uint32_t *kl_use_counts(const kl_fn *f, kl_arena *a)
{
    uint32_t *n = kl_new_n(a, uint32_t, f->nins);
    for (uint32_t id = 1; id < f->nins; id++)
        for (uint32_t i = 0; f->ins[id].blk.id && i < f->ins[id].nargs; i++)
            n[f->args[f->ins[id].args + i].id]++;
    return n;
}

static kl_val mapped(const kl_val *map, kl_val v)
{
    return map[v.id].id ? map[v.id] : v;
}

static void clone_into(kl_build *b, kl_blk from, kl_val *map, kl_val *out, bool top);

/* The attribute of a copy: owned blocks are copied too, results belong to the copy. */
static union kl_attr clone_attr(kl_build *b, const struct kl_ins *in, kl_val *map)
{
    union kl_attr attr = in->attr;
    switch (kl_ops[in->op].attr) {
    case KL_A_REDFN: attr.redfn.blk = kl_blk_new(b->f); break;
    case KL_A_LOOP: attr.loop.blk = kl_blk_new(b->f); break;
    case KL_A_BLOCKS:
        attr.blk[0] = kl_blk_new(b->f);
        attr.blk[1] = kl_blk_new(b->f);
        break;
    case KL_A_RESULT: attr.result.of = mapped(map, in->attr.result.of); break;
    default: break;
    }
    return attr;
}

static void clone_ins(kl_build *b, kl_val v, kl_val *map)
{
    kl_fn *f = b->f;
    struct kl_ins in = *kl_in(f, v); /* emitting moves the array */
    kl_val few[8], *args = in.nargs <= 8 ? few : kl_new_n(f->a, kl_val, in.nargs);
    for (uint32_t i = 0; i < in.nargs; i++)
        args[i] = mapped(map, kl_arg(f, v, i));
    kl_build at = *b;
    at.loc = in.loc;
    at.fast = false; /* the attribute says it already */
    kl_val c = kl_emit(&at, (enum kl_op)in.op, in.type, args, in.nargs, clone_attr(&at, &in, map));
    map[v.id] = c;

    kl_blk old[2], own[2];
    uint32_t n = kl_blocks(f, v, old);
    kl_blocks(f, c, own);
    for (uint32_t i = 0; i < n; i++) {
        kl_build in_blk = {.f = f, .blk = own[i]};
        clone_into(&in_blk, old[i], map, NULL, false);
    }
}

static void clone_into(kl_build *b, kl_blk from, kl_val *map, kl_val *out, bool top)
{
    kl_fn *f = b->f;
    for (uint32_t id = f->blk[from.id].first; id; id = f->ins[id].next) {
        kl_val v = {id};
        if (top && f->ins[id].op == KL_OP_param)
            continue;
        if (top && f->ins[id].op == KL_OP_yield) {
            for (uint32_t i = 0; i < f->ins[id].nargs; i++)
                out[i] = mapped(map, kl_arg(f, v, i));
            continue;
        }
        clone_ins(b, v, map);
    }
}

void kl_clone_block(kl_build *b, kl_blk from, kl_val *map, kl_val *out)
{
    clone_into(b, from, map, out, true);
}
