/* align.c - what divides the scalars, so that accesses may move vectors; which are not negative.
 *
 * One walk forward.  align[v] is the log2 of a power of two that divides v, at most ALIGN_MAX.
 * Under the fact v16 the innermost extents and the pitches of array parameters are multiples of
 * 16 bytes. */
#include "gen/ptx/ptx.h"

enum { ALIGN_MAX = 20 };

static uint8_t lower(uint32_t a, uint32_t b)
{
    return (uint8_t)(a < b ? a : b);
}

static void raise_to(struct pgen *g, kl_val v, uint32_t to)
{
    if (g->align[v.id] < to)
        g->align[v.id] = (uint8_t)to;
}

/* Extents and strides of views of parameters, where the launch says that they are multiples. */
static void facts(struct pgen *g)
{
    const kl_fn *f = g->f;
    for (uint32_t i = 1; i < f->nins && g->o->v16; i++) {
        kl_val v = {i};
        const struct kl_ins *in = kl_in(f, v);
        if (in->op != KL_OP_view || !in->blk.id || kl_in(f, kl_arg(f, v, 0))->op != KL_OP_param)
            continue;
        const struct kl_type *t = kl_type_of(f, v);
        uint32_t log2 = 4 - (uint32_t)__builtin_ctz(kl_elems[t->elem].bytes);
        if (!t->rank)
            continue;
        raise_to(g, kl_arg(f, v, 1 + t->rank), log2);
        for (uint32_t d = 0; d + 1 < t->rank; d++)
            raise_to(g, kl_arg(f, v, 2 + t->rank + d), log2);
    }
}

static void one(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, v);
    if (!in->type.id || t->kind != KL_T_TILE || t->rank || !kl_is_int((enum kl_elem)t->elem))
        return;
    uint8_t a[3] = {0};
    for (uint32_t i = 0; i < in->nargs && i < 3; i++)
        a[i] = g->align[kl_arg(f, v, i).id];
    uint32_t r = 0;
    switch (in->op) {
    case KL_OP_const:
        r = in->attr.bits ? (uint32_t)__builtin_ctzll(in->attr.bits) : ALIGN_MAX;
        break;
    case KL_OP_add:
    case KL_OP_sub:
    case KL_OP_min:
    case KL_OP_max: r = lower(a[0], a[1]); break;
    case KL_OP_mul: r = a[0] + a[1]; break;
    case KL_OP_neg:
    case KL_OP_convert: r = kl_is_int((enum kl_elem)kl_type_of(f, kl_arg(f, v, 0))->elem) ? a[0] : 0; break;
    case KL_OP_select: r = lower(a[1], a[2]); break;
    case KL_OP_shl: {
        const struct kl_ins *c = kl_in(f, kl_arg(f, v, 1));
        r = a[0] + (c->op == KL_OP_const && c->attr.bits < ALIGN_MAX ? (uint32_t)c->attr.bits : 0);
        break;
    }
    default: break;
    }
    raise_to(g, v, r < ALIGN_MAX ? r : ALIGN_MAX);
}

/* ---- what is not negative ---- */

/* More programs than this would run for days. */
enum { PROGRAM_BITS = 48, MOST_BITS = 62 };

static void positive(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_type_of(f, v);
    if (!in->type.id || t->kind != KL_T_TILE || t->rank || !kl_is_int((enum kl_elem)t->elem))
        return;
    uint32_t a[2] = {0}, r = 0;
    for (uint32_t i = 0; i < in->nargs && i < 2; i++)
        a[i] = g->ubits[kl_arg(f, v, i).id];
    uint32_t low = a[0] < a[1] ? a[0] : a[1], high = a[0] > a[1] ? a[0] : a[1];
    switch (in->op) {
    case KL_OP_const:
        if ((int64_t)in->attr.bits >= 0)
            r = in->attr.bits ? 64 - (uint32_t)__builtin_clzll(in->attr.bits) : 1;
        break;
    case KL_OP_program_id:
    case KL_OP_num_programs: r = g->o->i32 ? KL_PTX_PROGRAM_BITS : PROGRAM_BITS; break;
    case KL_OP_num_sms: r = 31; break;
    case KL_OP_min: r = low; break;
    case KL_OP_max: r = low ? high : high ? 63 : 0; break;
    case KL_OP_add: r = low ? high + 1 : 0; break;
    case KL_OP_mul: r = low ? a[0] + a[1] : 0; break;
    case KL_OP_div:
    case KL_OP_floordiv: { /* by 0 it is -1 */
        const struct kl_ins *by = kl_in(f, kl_arg(f, v, 1));
        r = low && by->op == KL_OP_const && by->attr.bits ? a[0] : 0;
        break;
    }
    case KL_OP_convert: {
        const struct kl_type *from = kl_type_of(f, kl_arg(f, v, 0));
        if (kl_is_int((enum kl_elem)from->elem))
            r = kl_elems[from->elem].bytes < 8 && a[0] > 31 ? 31 : a[0];
        break;
    }
    default: break;
    }
    uint32_t bytes = kl_elems[t->elem].bytes, most = bytes == 8 ? MOST_BITS : 8 * bytes - 1;
    g->ubits[v.id] = (uint8_t)(r <= most || in->op == KL_OP_max || in->op == KL_OP_const ? r : 0);
}

static void walk(struct pgen *g, kl_blk b)
{
    kl_each_ins(g->f, b, v) {
        const struct kl_ins *in = kl_in(g->f, v);
        kl_blk own[2];
        uint32_t n = kl_blocks(g->f, v, own);
        if (in->op == KL_OP_param || in->op == KL_OP_result)
            continue;
        if (in->op == KL_OP_for) {
            kl_val iv = {g->f->blk[own[0].id].first};
            raise_to(g, iv, lower(g->align[kl_arg(g->f, v, 0).id], g->align[kl_arg(g->f, v, 2).id]));
            g->ubits[iv.id] = g->ubits[kl_arg(g->f, v, 0).id] ? 63 : 0; /* it never falls */
        }
        for (uint32_t i = 0; i < n; i++)
            walk(g, own[i]);
        one(g, v);
        positive(g, v);
    }
}

void kl_px_align(struct pgen *g)
{
    g->align = kl_new_n(g->a, uint8_t, g->f->nins);
    g->ubits = kl_new_n(g->a, uint8_t, g->f->nins);
    facts(g);
    walk(g, KL_BODY);
}
