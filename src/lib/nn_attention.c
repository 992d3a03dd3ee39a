/* nn_attention.c - kiln_nn.h: attention, decoding, Gated DeltaNet. */
#include "lib/nn.h"

kiln_status kiln_nn_attention(kiln_nn *nn, kiln_stream *s, const kiln_tensor *o,
                              const kiln_tensor *lse, const kiln_tensor *q, const kiln_tensor *k,
                              const kiln_tensor *v, const kiln_nn_attn *p, kiln_diags **diags)
{
    const kiln_nn_attn none = {0};
    struct nn c;
    p = p ? p : &none;
    kl_nn_begin(&c, nn, s, "kiln_nn_attention", "attention", diags);
    kl_nn_need(&c, "o", "o", o, 4);
    kl_nn_need(&c, "q", "q", q, 4);
    kl_nn_need(&c, "k", "k", k, 4);
    kl_nn_need(&c, "v", "v", v, 4);
    kl_nn_tensor(&c, "slopes", p->slopes, 1);
    kl_nn_tensor(&c, "lse", lse, 3);
    if (!c.st && q->shape[3] > 256)
        kl_nn_fail(&c, "heads of %lld elements; the most is 256", (long long)q->shape[3]);
    if (c.st)
        return kl_nn_end(&c);
    kl_nn_float(&c, "scale", p->scale);
    kl_nn_int(&c, "window", p->window);
    kl_nn_int(&c, "CAUSAL", p->causal != 0);
    /* rows and keys of a tile: few where there are few, or where heads are long */
    int64_t most = q->shape[3] > 128 || q->dtype == KILN_F64 ? 32 : 64;
    kl_nn_prefer(&c, "BM", kl_nn_min(most, kl_nn_pow2(kl_nn_max(1, q->shape[2]))));
    kl_nn_prefer(&c, "BN", kl_nn_min(most, kl_nn_pow2(kl_nn_max(1, k->shape[2]))));
    kl_nn_launch(&c, "attention");
    return kl_nn_end(&c);
}

/* ---- decoding ---- */

/* Over how many programs the keys of a sequence are split; what is kept of each. */
static int64_t decode_parts(const kiln_nn *nn, const kiln_tensor *q, const kiln_tensor *k)
{
    int64_t some = kl_nn_max(1, q->shape[0] * k->shape[2]);
    return kl_nn_max(1, kl_nn_min(kl_nn_cdiv(kl_nn_wave(nn), some), 64));
}

size_t kiln_nn_decode_workspace(const kiln_nn *nn, const kiln_tensor *q, const kiln_tensor *k)
{
    if (!nn || !q || !k || q->ndim != 3 || k->ndim != 4 || !q->shape || !k->shape)
        return 0;
    return (size_t)(decode_parts(nn, q, k) * q->shape[0] * q->shape[1] * (q->shape[2] + 2)) *
           kiln_dtype_size(kl_nn_acc(q->dtype));
}

kiln_status kiln_nn_decode(kiln_nn *nn, kiln_stream *s, const kiln_tensor *o, const kiln_tensor *q,
                           const kiln_tensor *k, const kiln_tensor *v, const kiln_tensor *len,
                           const kiln_tensor *table, double scale, void *work, size_t work_bytes,
                           kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_decode", "decode", diags);
    kl_nn_need(&c, "q", "q", q, 3);
    kl_nn_need(&c, "k", "k", k, 4);
    kl_nn_need(&c, "v", "v", v, 4);
    kl_nn_need(&c, "len", "len", len, 1);
    if (table)
        kl_nn_need(&c, "table", "table", table, 2);
    if (c.st)
        return kl_nn_end(&c);
    kiln_dtype acc = kl_nn_acc(q->dtype);
    int64_t parts = decode_parts(nn, q, k);
    const int64_t wide[4] = {q->shape[0], parts, q->shape[1], q->shape[2]};
    size_t one = kiln_dtype_size(acc), row = (size_t)(wide[0] * wide[1] * wide[2]) * one;
    size_t sums = row * (size_t)wide[3];
    size_t need = kiln_nn_decode_workspace(nn, q, k);
    if (!work || work_bytes < need) {
        kl_nn_fail(&c, "work has %zu bytes, and %zu are needed", work ? work_bytes : 0, need);
        return kl_nn_end(&c);
    }
    char *at = work;
    for (int pass = 0; pass < 2; pass++) {
        kl_nn_work(&c, "acc", at, sums, acc, 4, wide, q);
        kl_nn_work(&c, "top", at + sums, row, acc, 3, wide, q);
        kl_nn_work(&c, "sum_", at + sums + row, row, acc, 3, wide, q);
        if (pass) {
            kl_nn_need(&c, "o", "o", o, 3);
            kl_nn_launch(&c, "decode_merge");
            break;
        }
        kl_nn_int(&c, "parts", parts);
        kl_nn_float(&c, "scale", scale);
        if (table)
            kl_nn_int(&c, "PAGE", k->shape[1]);
        kl_nn_launch(&c, table ? "decode_paged" : "decode_split");
        kl_nn_next(&c);
    }
    return kl_nn_end(&c);
}

/* ---- Gated DeltaNet ---- */

kiln_status kiln_nn_gated_deltanet(kiln_nn *nn, kiln_stream *s, const kiln_tensor *o,
                                   const kiln_tensor *q, const kiln_tensor *k, const kiln_tensor *v,
                                   const kiln_tensor *g, const kiln_tensor *beta,
                                   const kiln_nn_gdn *p, kiln_diags **diags)
{
    const kiln_nn_gdn none = {0};
    struct nn c;
    p = p ? p : &none;
    kl_nn_begin(&c, nn, s, "kiln_nn_gated_deltanet", "gdn", diags);
    kl_nn_need(&c, "o", "o", o, 3);
    kl_nn_need(&c, "q", "q", q, 3);
    kl_nn_need(&c, "k", "k", k, 3);
    kl_nn_need(&c, "v", "v", v, 3);
    kl_nn_need(&c, "g", "g", g, 2);
    kl_nn_need(&c, "beta", "beta", beta, 2);
    kl_nn_tensor(&c, "cu", p->cu, 1);
    kl_nn_tensor(&c, "h0", p->h0, 4);
    kl_nn_tensor(&c, "ht", p->ht, 4);
    if (c.st)
        return kl_nn_end(&c);
    int64_t n = p->sequences ? p->sequences : p->cu ? p->cu->shape[0] - 1 : 1;
    if (!p->cu && (n < 1 || q->shape[0] % n)) {
        kl_nn_fail(&c, "%lld tokens are not %lld sequences of one length", (long long)q->shape[0],
                   (long long)n);
        return kl_nn_end(&c);
    }
    kl_nn_int(&c, "N", n);
    kl_nn_float(&c, "scale", p->scale);
    kl_nn_int(&c, "LINEAR", p->linear != 0);
    kl_nn_int(&c, "NORM", p->norm != 0);
    kl_nn_int(&c, "LAST", p->last != 0);
    kl_nn_launch(&c, p->recurrent ? "gdn_recurrent" : "gdn_chunk");
    return kl_nn_end(&c);
}
