/* work.c - operations of all programs, and products of matrices: from the IR and from how often each
 * instruction is executed. */
#include "model/run.h"

static bool is_special(enum kl_op op)
{
    switch (op) {
    case KL_OP_sqrt:
    case KL_OP_exp:
    case KL_OP_exp2:
    case KL_OP_log:
    case KL_OP_rsqrt:
    case KL_OP_tanh:
    case KL_OP_erf:
    case KL_OP_erfc:
    case KL_OP_sin:
    case KL_OP_cos:
    case KL_OP_log2:
    case KL_OP_log1p:
    case KL_OP_expm1:
    case KL_OP_pow:
    case KL_OP_fmod:
    case KL_OP_sigmoid: return true;
    default: return false;
    }
}

/* Operations that compute nothing: bits move, or types change. */
static bool is_free(enum kl_op op)
{
    return op == KL_OP_select || op == KL_OP_convert || op == KL_OP_convert_nan ||
           op == KL_OP_tf32 || op == KL_OP_bitcast || op == KL_OP_neg || op == KL_OP_abs || op == KL_OP_copysign;
}

/* n operations; fma: each is a product and a sum. */
static void count(kl_model_work *w, enum kl_elem e, uint64_t n, bool fma)
{
    if (e != KL_bool)
        w->steps += n;
    if (e == KL_f64)
        w->steps64 += n;
    n *= fma ? 2 : 1;
    if (e == KL_f64)
        w->fp64 += n;
    else if (e == KL_f32)
        w->fp32 += n;
    else if (kl_is_float(e))
        w->fp16 += n;
    else if (e != KL_bool)
        w->integer += n;
}

static void special(kl_model_work *w, enum kl_elem e, uint64_t n)
{
    w->special += n;
    w->steps += n;
    w->steps64 += e == KL_f64 ? n : 0;
}

static uint64_t elements(const kl_fn *f, kl_val v)
{
    return kl_numel(kl_type_of(f, v));
}

/* Operations of one run of the block of a fold. */
static void count_block(const kl_fn *f, kl_blk b, uint64_t times, kl_model_work *w)
{
    kl_each_ins (f, b, v) {
        const struct kl_ins *in = kl_in(f, v);
        kl_blk own[2];
        for (uint32_t i = 0, n = kl_blocks(f, v, own); i < n; i++)
            count_block(f, own[i], times, w);
        if (!(kl_ops[in->op].flags & KL_F_EW) || is_free((enum kl_op)in->op))
            continue;
        if (is_special((enum kl_op)in->op))
            special(w, (enum kl_elem)kl_type_of(f, v)->elem, times);
        else
            count(w, (enum kl_elem)kl_type_of(f, kl_arg(f, v, 0))->elem, times,
                  in->op == KL_OP_fma);
    }
}

void kl_model_work_of(struct mrun *r)
{
    const kl_fn *f = r->f;
    kl_model_work *w = &r->m->work;
    for (uint32_t i = 1; i < f->nins; i++) {
        kl_val v = {i};
        const struct kl_ins *in = kl_in(f, v);
        uint64_t times = in->blk.id ? kl_model_times(r, v) : 0;
        if (!times)
            continue;
        enum kl_op op = (enum kl_op)in->op;
        if (kl_is_fold(f, v)) {
            uint64_t n = elements(f, kl_arg(f, v, 0));
            const struct kl_type *t = kl_type_of(f, kl_arg(f, v, 0));
            if (op == KL_OP_reduce_fn)
                n -= n / t->dim[in->attr.redfn.axis];
            count_block(f, in->attr.redfn.blk, times * n, w);
            continue;
        }
        if (!kl_model_is_tile(f, v))
            continue;
        enum kl_elem e = (enum kl_elem)kl_type_of(f, in->nargs ? kl_arg(f, v, 0) : v)->elem;
        uint64_t n = elements(f, v);
        if (kl_ops[op].flags & KL_F_EW) {
            if (is_special(op))
                special(w, e, times * n);
            else if (!is_free(op))
                count(w, e, times * n, op == KL_OP_fma);
        } else if (op == KL_OP_reduce || op == KL_OP_argmax || op == KL_OP_argmin) {
            count(w, e, times * (elements(f, kl_arg(f, v, 0)) - n), false);
        } else if (op == KL_OP_dot) {
            const struct kl_type *a = kl_type_of(f, kl_arg(f, v, 0));
            uint64_t k = times * n * a->dim[a->rank - 1];
            count(w, (enum kl_elem)kl_type_of(f, v)->elem, k, true);
            w->dot += 2 * k;
        }
    }
}

/* ---- instructions ---- */

void kl_model_instructions(struct mrun *r)
{
    const kl_fn *f = r->f;
    for (uint32_t i = 1; i < f->nins; i++) {
        kl_val v = {i};
        if (!r->tr->steps[i] || !kl_in(f, v)->blk.id)
            continue;
        for (kl_val o = v; o.id; o = f->blk[kl_in(f, o)->blk.id].owner) /* a fold's code is its own */
            if (kl_is_fold(f, o))
                v = o;
        r->m->instructions += r->tr->steps[i] * kl_model_times(r, v) * r->tr->warps * r->tr->ctas;
    }
}

/* ---- products ---- */

void kl_model_dots(struct mrun *r)
{
    const kl_fn *f = r->f;
    for (uint32_t i = 1; i < f->nins; i++) {
        kl_val v = {i};
        const struct kl_ins *in = kl_in(f, v);
        if (!in->blk.id || in->op != KL_OP_dot || !kl_model_times(r, v))
            continue;
        const struct kl_type *t = kl_type_of(f, v), *a = kl_type_of(f, kl_arg(f, v, 0));
        kl_model_dot d = {.at = v,
                          .loc = in->loc,
                          .m = t->dim[t->rank - 2],
                          .n = t->dim[t->rank - 1],
                          .k = a->dim[a->rank - 1],
                          .elem = a->elem,
                          .acc = t->elem};
        d.place = f->src && in->loc.beg ? kl_src_place(f->src, r->a, in->loc) : (kiln_place){0};
        uint32_t es = kl_elems[a->elem].bytes, kstep = es ? 32 / es : 1;
        const char *type = kl_elems[a->elem].name;
        if (a->elem == KL_f64 || a->elem == KL_f32)
            d.miss = kl_printf(
                r->a,
                "operands are %s, which tensor cores would round; f16, bf16, 8-bit floats and "
                "i8 have a form there",
                type);
        else if (es > 2 || (kl_is_int((enum kl_elem)a->elem) && es != 1))
            d.miss = kl_printf(r->a, "operands are %s, for which tensor cores have no form", type);
        else if (d.m % 16)
            d.miss = kl_printf(r->a, "the tile has %u rows, no multiple of 16", d.m);
        else if (d.n % 8)
            d.miss = kl_printf(r->a, "the tile has %u columns, no multiple of 8", d.n);
        else if (d.k % kstep)
            d.miss = kl_printf(r->a, "the tile's inner size is %u, no multiple of %u (of %s)", d.k,
                               kstep, type);
        kl_push(r->a, &r->m->dot, d);
    }
}
