/* builtin_random.c - philox: random bits as a function of a seed and an index.
 *
 * Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * 2011): ten rounds of two 32x32 -> 64 bit products on a counter of four words, under a key of
 * two words that grows by a constant each round.  The key is the low and the high word of the
 * seed, the counter those of the index, then 0, 0. */
#include "lang/builtin.h"

enum { ROUNDS = 10 };

static kl_value word(kl_elab *e, uint32_t bits, const kl_value *like, kl_span s)
{
    return kl_stretch(e, kl_typed(KL_u32, bits, s), like->rank, like->dim);
}

/* The low or high word of a seed or index, as if it were a u64. */
static kl_value half(kl_elab *e, kl_value x, bool high, kl_span s)
{
    if (!high)
        return kl_cast(e, x, KL_u32);
    x = kl_cast(e, x, KL_i64);
    kl_value by = kl_stretch(e, kl_typed(KL_i64, 32, s), x.rank, x.dim);
    return kl_cast(e, kl_op2(e, KL_OP_shr, x, by, s), KL_u32);
}

/* Low and high word of a product of two words. */
static void product(kl_elab *e, kl_value x, uint32_t by, kl_value *lo, kl_value *hi, kl_span s)
{
    kl_value wide = kl_cast(e, x, KL_i64);
    kl_value m = kl_stretch(e, kl_typed(KL_i64, by, s), x.rank, x.dim);
    kl_value p = kl_op2(e, KL_OP_mul, wide, m, s);
    *lo = kl_op2(e, KL_OP_mul, x, word(e, by, &x, s), s);
    *hi = half(e, p, true, s);
}

static bool integer(kl_elab *e, kl_value *v, const char *what)
{
    *v = kl_concrete(e, *v);
    if (v->kind != KL_V_TILE)
        return false;
    if (v->elem && (kl_is_float((enum kl_elem)v->elem) || v->elem == KL_bool)) {
        kl_err(e, KL_K0309, v->span, "%s of `philox` is an integer, not %s", what, kl_type_text(e, v));
        return false;
    }
    *v = kl_promote(e, *v);
    return true;
}

kl_value kl_call_philox(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    (void)b;
    kl_value seed = kl_arg_value(e, a, 0), i = kl_arg_value(e, a, 1), key[2], c[4];
    if (!integer(e, &seed, "the seed") || !integer(e, &i, "the index"))
        return kl_bad(a->s);
    for (uint32_t k = 0; k < 2; k++)
        key[k] = half(e, seed, k, a->s), c[k] = half(e, i, k, a->s);
    if (!kl_broadcast2(e, &key[0], &c[0], a->s))
        return kl_bad(a->s);
    kl_value seed_words[2];
    for (uint32_t k = 0; k < 2; k++)
        seed_words[k] = half(e, seed, k, a->s);
    c[1] = kl_stretch(e, c[1], c[0].rank, c[0].dim);
    c[2] = c[3] = word(e, 0, &c[0], a->s);
    for (uint32_t r = 0; r < ROUNDS; r++) {
        kl_value lo0, hi0, lo1, hi1;
        for (uint32_t k = 0; k < 2; k++) { /* of the seed alone, before it is spread */
            uint32_t grown = r * (k ? 0xBB67AE85u : 0x9E3779B9u);
            key[k] = kl_op2(e, KL_OP_add, seed_words[k], word(e, grown, &seed_words[k], a->s), a->s);
            key[k] = kl_stretch(e, key[k], c[0].rank, c[0].dim);
        }
        product(e, c[0], 0xD2511F53u, &lo0, &hi0, a->s);
        product(e, c[2], 0xCD9E8D57u, &lo1, &hi1, a->s);
        c[0] = kl_op2(e, KL_OP_xor, kl_op2(e, KL_OP_xor, hi1, c[1], a->s), key[0], a->s);
        c[2] = kl_op2(e, KL_OP_xor, kl_op2(e, KL_OP_xor, hi0, c[3], a->s), key[1], a->s);
        c[1] = lo1;
        c[3] = lo0;
    }
    static const char *const names[] = {"x", "y", "z", "w"};
    struct kl_sval *st = kl_alloc_zero(e->a, sizeof *st + 4 * sizeof st->m[0]);
    st->name = "philox";
    st->n = 4;
    for (uint32_t k = 0; k < 4; k++) {
        st->m[k].name = names[k];
        st->m[k].v = c[k];
        if (c[k].kind != KL_V_TILE)
            return kl_bad(a->s);
    }
    return (kl_value){.kind = KL_V_STRUCT, .st = st, .span = a->s};
}
