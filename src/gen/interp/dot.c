/* dot.c - matrix products: operands widened to the accumulator's type, then the chain in k
 * order of elementwise.c for each matrix of the batch. */
#include "gen/interp/run.h"

/* The operand, or a widened copy. */
static const void *widened(struct kl_run *r, const struct kl_step *s, uint32_t i, size_t n)
{
    if (!s->u.dot.widen)
        return s->in[i];
    void *out = kl_temp(r, i ? KL_TEMP_B : KL_TEMP_A, n * s->u.dot.bytes);
    s->u.dot.widen(out, s->in[i], NULL, NULL, n);
    return out;
}

bool kl_do_dot(struct kl_run *r, const struct kl_step *s)
{
    uint64_t m = s->u.dot.m, n = s->u.dot.n, k = s->u.dot.k, bytes = s->u.dot.bytes;
    const char *a = widened(r, s, 0, s->u.dot.batch * m * k);
    const char *b = widened(r, s, 1, s->u.dot.batch * k * n);
    char *out = s->out;
    memcpy(out, s->in[2], s->u.dot.batch * m * n * bytes);
    for (uint64_t i = 0; i < s->u.dot.batch; i++) {
        /* in bands of rows, so that an interruption is noticed within a large product */
        for (uint64_t row = 0, some; row < m; row += some) {
            some = m - row < 16 ? m - row : 16;
            s->u.dot.run(out + row * n * bytes, a + row * k * bytes, b, some, n, k);
            if (!kl_spend(r, some * n * k))
                return false;
        }
        out += m * n * bytes;
        a += m * k * bytes;
        b += k * n * bytes;
    }
    return true;
}
