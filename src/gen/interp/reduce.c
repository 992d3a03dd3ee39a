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

/* ---- a block as the operation ---- */

/* c[i] = f(a[i], b[i]) for n pairs. */
static bool combine(struct kl_run *r, const struct kl_step *s, char *c, const char *a,
                    const char *b, uint64_t n)
{
    const struct kl_vecblock *v = s->u.fn.vec;
    uint32_t bytes = s->u.fn.bytes;
    if (!v) {
        for (uint64_t i = 0; i < n; i++) {
            memcpy(s->u.fn.param[0], a + i * bytes, bytes);
            memcpy(s->u.fn.param[1], b + i * bytes, bytes);
            if (!kl_run_steps(r, s->u.fn.blk))
                return false;
            memcpy(c + i * bytes, s->u.fn.result, bytes);
        }
        return true;
    }
    for (uint64_t i = 0, some; i < n; i += some) {
        some = n - i < KL_VEC_LEN ? n - i : KL_VEC_LEN;
        memcpy(v->param[0], a + i * bytes, some * bytes);
        memcpy(v->param[1], b + i * bytes, some * bytes);
        for (uint32_t k = 0; k < v->n; k++) {
            const struct kl_step *t = &v->step[k];
            t->ew(t->out, t->in[0], t->in[1], t->in[2], some);
        }
        memcpy(c + i * bytes, v->result, some * bytes);
        if (!kl_spend(r, some * v->n))
            return false;
    }
    return true;
}

/* One level of the tree: [outer][n][inner] to [outer][h][inner], pairs (i, i + h). */
static bool halve(struct kl_run *r, const struct kl_step *s, char *to, const char *from,
                  uint64_t n, uint64_t h)
{
    uint64_t inner = s->u.fn.inner;
    size_t row = inner * s->u.fn.bytes;
    for (uint64_t o = 0; o < s->u.fn.outer; o++, from += n * row, to += h * row) {
        if (!combine(r, s, to, from, from + h * row, (n - h) * inner))
            return false;
        if (2 * h > n)
            memcpy(to + (n - h) * row, from + (n - h) * row, (2 * h - n) * row);
    }
    return true;
}

/* One level of neighbours first: pairs (2i, 2i + 1); the last of an odd number stays.  The
 * operands are laid side by side first, for all rows at once. */
static bool pair_up(struct kl_run *r, const struct kl_step *s, char *to, const char *from,
                    uint64_t n)
{
    uint64_t outer = s->u.fn.outer, pairs = n / 2;
    size_t row = s->u.fn.inner * s->u.fn.bytes;
    char *a = s->u.fn.work[2], *b = a + outer * pairs * row, *c = b + outer * pairs * row;
    for (uint64_t o = 0; o < outer; o++) {
        const char *src = from + o * n * row;
        char *pa = a + o * pairs * row, *pb = b + o * pairs * row;
        if (s->u.fn.inner == 1) {
            kl_copy_strided(pa, src, pairs, 2, s->u.fn.bytes);
            kl_copy_strided(pb, src + row, pairs, 2, s->u.fn.bytes);
            continue;
        }
        for (uint64_t i = 0; i < pairs; i++) {
            memcpy(pa + i * row, src + 2 * i * row, row);
            memcpy(pb + i * row, src + (2 * i + 1) * row, row);
        }
    }
    if (!combine(r, s, c, a, b, outer * pairs * s->u.fn.inner))
        return false;
    for (uint64_t o = 0; o < outer; o++, c += pairs * row) {
        memcpy(to, c, pairs * row);
        to += pairs * row;
        if (n & 1) {
            memcpy(to, from + (o * n + n - 1) * row, row);
            to += row;
        }
    }
    return true;
}

bool kl_do_reduce_fn(struct kl_run *r, const struct kl_step *s)
{
    uint64_t n = s->u.fn.n;
    const struct kl_vecblock *v = s->u.fn.vec;
    for (uint32_t i = 0; v && i < v->nsplat; i++)
        kl_fill(v->splat[i].to, v->splat[i].from, (uint32_t)v->splat[i].bytes, KL_VEC_LEN);
    const char *from = s->in[0];
    for (uint32_t turn = 0; n > 1; turn ^= 1) {
        uint64_t next = s->u.fn.tree ? kl_half_of(n) : (n + 1) / 2;
        char *to = next == 1 ? s->out : s->u.fn.work[turn];
        if (!(s->u.fn.tree ? halve(r, s, to, from, n, next) : pair_up(r, s, to, from, n)))
            return false;
        from = to, n = next;
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
