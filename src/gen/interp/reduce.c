/* reduce.c - folding along an axis in the fixed order, and argmax, argmin.
 *
 * The operand is seen as [outer][n][inner].  The halving tree combines element i with
 * i + P/2, then i + P/4 and so on, P being n rounded up to a power of two.  Elements with
 * the same distance lie together, so that a level is one element-wise loop over the lower
 * and the upper part.  The first level has no partner for the elements from n - P/2 on:
 * they pass through; behind it the count is a power of two.  */
#include "gen/interp/run.h"

bool kl_do_reduce(struct kl_run *r, const struct kl_step *s)
{
    uint64_t outer = s->u.ax.outer, n = s->u.ax.n, inner = s->u.ax.inner, half = kl_half_of(n);
    uint32_t bytes = s->u.ax.bytes;
    kl_ew_fn *fold = s->u.ax.fold;
    const char *in = s->in[0];
    char *out = s->out;
    if (inner == 1 && n <= 32 && outer >= 8) { /* many short rows: fold all of them at once */
        char *turned = kl_temp(r, KL_TEMP_C, outer * n * bytes);
        kl_transpose(turned, in, n, outer, n, bytes);
        in = turned, inner = outer, outer = 1;
    }
    size_t row = inner * bytes;
    /* two places that levels write in turn; none reads and writes the same one */
    char *place[2] = {kl_temp(r, KL_TEMP_A, half * row), kl_temp(r, KL_TEMP_B, half * row)};
    for (uint64_t o = 0; o < outer; o++, in += n * row, out += row) {
        uint64_t h = half;
        char *to = h == 1 ? out : place[0];
        fold(to, in, in + h * row, NULL, (n - h) * inner);
        if (2 * h > n)
            memcpy(to + (n - h) * row, in + (n - h) * row, (2 * h - n) * row);
        for (uint32_t turn = 1; h > 1; turn ^= 1) {
            const char *from = to;
            h /= 2;
            to = h == 1 ? out : place[turn];
            fold(to, from, from + h * row, NULL, h * inner);
        }
    }
    return true;
}

/* ---- argmax, argmin ---- */

/* Numbers in the order of NUMERICS.md: those of a float are its bits, mirrored when it is
 * negative, and NaN beyond the end that wins. */
static int64_t key_int(int64_t v)
{
    return v;
}
static int64_t key_u64(uint64_t v)
{
    return (int64_t)(v ^ UINT64_C(1) << 63);
}
static int64_t key_f32(float v)
{
    int32_t b = (int32_t)kl_f32_bits(v);
    return b < 0 ? b ^ INT32_MAX : b;
}
static int64_t key_f64(double v)
{
    int64_t b = (int64_t)kl_f64_bits(v);
    return b < 0 ? b ^ INT64_MAX : b;
}

/* sign: 1 for the maximum, -1 for the minimum, whose keys are complemented.  No float's key
 * but a NaN's is INT64_MAX or INT64_MIN, so that NaN takes one of them. */
#define ARG(E, KEY, NAN_WINS)                                                                      \
    static void arg_##E(kl_m_i32 *out, int64_t *best, const void *in, uint64_t n, uint64_t inner,  \
                        bool min)                                                                  \
    {                                                                                              \
        const kl_m_##E *a = in;                                                                    \
        int64_t turn = min ? -1 : 0;                                                               \
        for (uint64_t i = 0; i < n; i++, a += inner)                                               \
            for (uint64_t j = 0; j < inner; j++) {                                                 \
                int64_t key = NAN_WINS && a[j] != a[j] ? INT64_MAX : KEY(a[j]) ^ turn;             \
                if (i == 0 || key > best[j]) {                                                     \
                    best[j] = key;                                                                 \
                    out[j] = (int32_t)i;                                                           \
                }                                                                                  \
            }                                                                                      \
    }
ARG(i32, key_int, false)
ARG(i64, key_int, false)
ARG(u32, key_int, false)
ARG(u64, key_u64, false)
ARG(f32, key_f32, true)
ARG(f64, key_f64, true)

static bool do_arg(struct kl_run *r, const struct kl_step *s, bool min)
{
    uint64_t n = s->u.ax.n, inner = s->u.ax.inner;
    size_t row = n * inner * s->u.ax.bytes;
    int64_t *best = kl_temp(r, KL_TEMP_A, inner * sizeof *best);
    for (uint64_t o = 0; o < s->u.ax.outer; o++) {
        kl_m_i32 *out = (kl_m_i32 *)s->out + o * inner;
        const char *in = (const char *)s->in[0] + o * row;
        switch (s->u.ax.elem) {
        case KL_i32: arg_i32(out, best, in, n, inner, min); break;
        case KL_i64: arg_i64(out, best, in, n, inner, min); break;
        case KL_u32: arg_u32(out, best, in, n, inner, min); break;
        case KL_u64: arg_u64(out, best, in, n, inner, min); break;
        case KL_f32: arg_f32(out, best, in, n, inner, min); break;
        case KL_f64: arg_f64(out, best, in, n, inner, min); break;
        default: kl_raise(r->a->env, KILN_E_INTERNAL, "argmax of %s", kl_elems[s->u.ax.elem].name);
        }
    }
    return true;
}

bool kl_do_argmax(struct kl_run *r, const struct kl_step *s)
{
    return do_arg(r, s, false);
}

bool kl_do_argmin(struct kl_run *r, const struct kl_step *s)
{
    return do_arg(r, s, true);
}
