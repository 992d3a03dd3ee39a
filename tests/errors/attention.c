/* attention.c - attention, decoding, Gated DeltaNet.
 *
 * A score is off by R = (D + 1) u scale sum(abs(q k)), its difference from the maximum by as much
 * again and its own rounding.  A weight p = exp(s - max) is then off, relatively, by what its
 * exponent is off, and E = 1.8 u; 16-bit types round p before the second product.  Blocks of keys:
 * each multiplies what is there (1 u and the factor's E) and adds.  With W the mean of a key's
 * relative errors, weighted by p, a result is off by
 *
 *     u mean(p (R + abs(s - max) + E + n) abs(v)) + W mean(p abs(v))
 *
 * and T's rounding of p, in f16 at least 2^-25 for each key.  RMS for Gated DeltaNet: a fixed part,
 * and one for the growth of the sums of gates in a chunk, whose rounding is a relative error of the
 * decays. */
#include <math.h>
#include <stddef.h>

#include "errors.h"

static const enum fill kinds[] = {NORMAL, CANCEL};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* One query against n keys; v: elements of one column. */
struct view {
    const struct tens *q, *k, *v;
    int64_t at, key, key_step, value, value_step, n, from, to; /* keys from .. to - 1 are seen */
    int D;
    real slope;
    int64_t place;
    int64_t block; /* keys of a block; 0: parts besides */
};

static void check_row(struct tens *o, int64_t out, const struct view *w)
{
    static real score[512], off[512];
    real top = -INFINITY, sum = 0, scale = 1 / sqrtl(w->D), worst = 0;
    if (w->to - w->from > 512)
        return;
    for (int64_t j = w->from; j < w->to; j++) {
        real s = 0, size = 0;
        for (int e = 0; e < w->D; e++) {
            real p = w->q->v[w->at + e] * w->k->v[w->key + j * w->key_step + e] * scale;
            s += p, size += fabsl(p);
        }
        real bias = w->slope * (j - w->place);
        score[j - w->from] = s + bias;
        off[j - w->from] = (w->D + 2) * size + 2 * fabsl(bias) + fabsl(s + bias);
        top = fmaxl(top, s + bias);
        worst = fmaxl(worst, off[j - w->from]);
    }
    real blocks = ceill((real)(w->to - w->from) / w->block) + 2, mean = 0;
    real half = now.t == now.a ? 0 : ulp(now.t, 1) / 2 / now.u, least = 0; /* p in T */
    if (now.t == KILN_F16)
        least = ulp(now.t, 0) / 2 / now.u; /* below 2^-14 */
    for (int64_t j = w->from; j < w->to; j++) {
        real p = expl(score[j - w->from] - top);
        /* the maximum's error is common to all, and cancels */
        off[j - w->from] += top - score[j - w->from] + now.fast_exp + blocks * (2 + now.fast_exp);
        sum += p;
        mean += p * (off[j - w->from] + w->block);
    }
    mean /= sum;
    for (int e = 0; e < w->D; e++) {
        real want = 0, bound = 0, size = 0;
        for (int64_t j = w->from; j < w->to; j++) {
            real p = expl(score[j - w->from] - top) / sum;
            real v = w->v->v[w->value + j * w->value_step + e];
            want += p * v;
            size += p * fabsl(v);
            bound += least / sum * fabsl(v) +
                     p * fabsl(v) * (off[j - w->from] + half + (real)(w->to - w->from));
        }
        item(o, out + e, want, size, bound / (size > 0 ? size : 1) + mean + now.fast_div);
    }
}

static void attention(void)
{
    static const int ext[][6] = {{1, 2, 1, 9, 9, 8}, {1, 4, 2, 5, 33, 20}, {2, 2, 2, 70, 150, 64}};
    for (unsigned s = 0; s < (now.full ? 3 : 2); s++)
        for (unsigned k = 0; k < KINDS; k++)
            for (int how = 0; how < 3; how++, fresh()) {
                int B = ext[s][0], H = ext[s][1], G = ext[s][2], L = ext[s][3], S = ext[s][4],
                    D = ext[s][5];
                struct tens *q = tens(now.t, NORMAL, 4, B, H, L, D),
                            *key = tens(now.t, NORMAL, 4, B, G, S, D);
                struct tens *v = tens(now.t, kinds[k], 4, B, G, S, D),
                            *o = tens(now.t, POISON, 4, B, H, L, D);
                struct tens *slopes = tens(now.a, UNIFORM, 1, H);
                if (how == 2)
                    tens_scale(q, 4); /* sharp */
                kiln_nn_attn p = {.causal = how > 0,
                                  .window = how == 2 ? 6 : 0,
                                  .slopes = how == 1 ? &slopes->t : NULL};
                RUN(kiln_nn_attention(now.nn, NULL, &o->t, NULL, &q->t, &key->t, &v->t, &p, &d));
                for (int64_t r = 0; r < (int64_t)B * H * L; r++) {
                    int64_t b = r / L / H, h = r / L % H, g = h / (H / G), i = r % L + S - L;
                    struct view w = {.q = q,
                                     .k = key,
                                     .v = v,
                                     .at = r * D,
                                     .D = D,
                                     .n = S,
                                     .key = (b * G + g) * S * D,
                                     .key_step = D,
                                     .value = (b * G + g) * S * D,
                                     .value_step = D,
                                     .to = how ? i + 1 : S,
                                     .from = how == 2 && i > 5 ? i - 5 : 0,
                                     .slope = how == 1 ? slopes->v[h] : 0,
                                     .place = i,
                                     .block = 64};
                    check_row(o, r * D, &w);
                }
            }
}

static void decode(void)
{
    for (unsigned k = 0; k < KINDS; k++)
        for (int paged = 0; paged < 2; paged++, fresh()) {
            int B = 2, H = 4, G = 2, D = now.full ? 64 : 20, S = now.full ? 300 : 80, P = 16,
                most = (S + P - 1) / P;
            struct tens *q = tens(now.t, NORMAL, 3, B, H, D), *o = tens(now.t, POISON, 3, B, H, D);
            struct tens *key, *v, *len = ints(KILN_I32, S, 1, B),
                                  *table = ints(KILN_I32, 1, 2, B, most);
            tens_set(len, 0, S - 3), tens_set(len, 1, S / 2);
            for (int64_t i = 0; i < table->n; i++)
                tens_set(table, i, i);
            key = paged ? tens(now.t, NORMAL, 4, B * most, P, G, D)
                        : tens(now.t, NORMAL, 4, B, S, G, D);
            v = paged ? tens(now.t, kinds[k], 4, B * most, P, G, D)
                      : tens(now.t, kinds[k], 4, B, S, G, D);
            size_t need = kiln_nn_decode_workspace(now.nn, &q->t, &key->t);
            RUN(kiln_nn_decode(now.nn, NULL, &o->t, &q->t, &key->t, &v->t, &len->t,
                               paged ? &table->t : NULL, 0, workspace(need), need, &d));
            for (int64_t r = 0; r < B * H; r++) {
                int64_t b = r / H, g = r % H / (H / G),
                        from = (b * (paged ? most * P : S) * G + g) * D;
                struct view w = {.q = q,
                                 .k = key,
                                 .v = v,
                                 .at = r * D,
                                 .D = D,
                                 .n = S,
                                 .key = from,
                                 .key_step = G * D,
                                 .value = from,
                                 .value_step = G * D,
                                 .to = (int64_t)len->v[b],
                                 .block = 16};
                check_row(o, r * D, &w);
            }
        }
}

/* ---- Gated DeltaNet: against the recurrence, here in long double ---- */

static void recurrence(const struct tens *q, const struct tens *k, const struct tens *v,
                       const struct tens *g, const struct tens *beta, int T, int H, int HV, int D,
                       real *o)
{
    static real S[64][64];
    for (int h = 0; h < HV; h++) {
        int a = h / (HV / H);
        for (int i = 0; i < D; i++)
            for (int j = 0; j < D; j++)
                S[i][j] = 0;
        for (int t = 0; t < T; t++) {
            const real *key = k->v + (t * H + a) * D, *query = q->v + (t * H + a) * D;
            real nk = 1e-6L, nq = 1e-6L, decay = expl(g->v[t * HV + h]);
            for (int i = 0; i < D; i++)
                nk += key[i] * key[i], nq += query[i] * query[i];
            nk = 1 / sqrtl(nk), nq = 1 / sqrtl(nq);
            for (int j = 0; j < D; j++) {
                real u = 0, r = 0;
                for (int i = 0; i < D; i++)
                    S[i][j] *= decay, u += S[i][j] * key[i] * nk;
                u = beta->v[t * HV + h] * (v->v[(t * HV + h) * D + j] - u);
                for (int i = 0; i < D; i++) {
                    S[i][j] += key[i] * nk * u;
                    r += S[i][j] * query[i] * nq;
                }
                o[(t * HV + h) * D + j] = r / sqrtl(D);
            }
        }
    }
}

/* The ratio of root mean squares: 32 u for the fixed part (sums of D and of a chunk grow like their
 * root), u for each unit of the longest sum of gates in a chunk; the recurrence: 32 u; the rounding of
 * results in T: 0.3 ulp on the mean.  Ratios of inputs rounded to T count as exact. */
static void gdn(void)
{
    for (int kind = 0; kind < 3; kind++)
        for (int form = 0; form < 2; form++, fresh()) {
            int T = now.full ? 300 : 70, H = 2, HV = 4, D = now.full ? 60 : 16;
            struct tens *q = tens(now.t, NORMAL, 3, T, H, D), *k = tens(now.t, NORMAL, 3, T, H, D);
            struct tens *v = tens(now.t, NORMAL, 3, T, HV, D),
                        *o = tens(now.t, POISON, 3, T, HV, D);
            struct tens *g = tens(now.a, UNIFORM, 2, T, HV), *beta = tens(now.a, UNIFORM, 2, T, HV);
            real *want = workspace((size_t)o->n * sizeof *want), most = 0, c = 0;
            tens_scale(g, kind == 0 ? -8 : 0);
            for (int64_t i = 0; i < k->n && kind == 2; i++)
                tens_set(k, i, k->v[i] * 0.1L + 1);
            for (int t = 0; t < T; t++, most = fmaxl(most, c))
                c = (t % 64 ? c : 0) - g->v[t * HV];
            kiln_nn_gdn p = {.norm = 1, .recurrent = form};
            RUN(kiln_nn_gated_deltanet(now.nn, NULL, &o->t, &q->t, &k->t, &v->t, &g->t, &beta->t,
                                       &p, &d));
            recurrence(q, k, v, g, beta, T, H, HV, D, want);
            read_back(o);
            real over = 0, under = 0;
            for (int64_t i = 0; i < o->n; i++)
                over += (o->v[i] - want[i]) * (o->v[i] - want[i]), under += want[i] * want[i];
            real rounding = now.t == now.a ? 0 : ulp(now.t, 1) / 2;
            part(form ? "recurrent" : "chunks");
            figure(sqrtl(over / under), now.u * (32 + (form ? 0 : most)) + rounding);
        }
}

const struct test attention_tests[] = {
    {"attention attention", "kiln_nn_attention", "u mean abs(v)", T_ALL, attention},
    {"decode decode_split decode_paged decode_merge", "kiln_nn_decode", "u mean abs(v)", T_ALL,
     decode},
    {"gdn gdn_recurrent gdn_chunk", "kiln_nn_gated_deltanet", "RMS ratio", T_ALL, gdn},
    {NULL, NULL, NULL, 0, NULL},
};
