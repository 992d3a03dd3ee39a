/* fold.c - reductions and scans by a block, of one tile or several at once.
 *
 * A level of the tree is one run of the block over all of its pairs, laid side by side, so
 * that a block without loops runs on vectors.  A scan begins with a copy of its operand; the
 * level of distance h combines the last element of each left half of h with every element
 * of the right half behind it. */
#include "gen/interp/run.h"

/* Where a level reads and writes, for each of the tiles. */
struct places {
    char *v[KL_MAX_FOLD];
};

/* c[i] = f(a[i], b[i]) for n pairs. */
static bool combine(struct kl_run *r, const struct kl_fold *s, const struct places *c,
                    const struct places *a, const struct places *b, uint64_t n)
{
    const struct kl_vecblock *v = s->vec;
    for (uint64_t i = 0, some = 1; i < n; i += some) {
        if (v)
            some = n - i < KL_VEC_LEN ? n - i : KL_VEC_LEN;
        for (uint32_t k = 0; k < s->m; k++) {
            uint32_t bytes = s->v[k].bytes;
            memcpy(v ? v->param[0][k] : s->v[k].param[0], a->v[k] + i * bytes, some * bytes);
            memcpy(v ? v->param[1][k] : s->v[k].param[1], b->v[k] + i * bytes, some * bytes);
        }
        if (!v && !kl_run_steps(r, s->blk))
            return false;
        for (uint32_t k = 0; v && k < v->n; k++) {
            const struct kl_step *t = &v->step[k];
            t->ew(t->out, t->in[0], t->in[1], t->in[2], some);
        }
        for (uint32_t k = 0; k < s->m; k++) {
            uint32_t bytes = s->v[k].bytes;
            memcpy(c->v[k] + i * bytes, v ? v->result[k] : s->v[k].result, some * bytes);
        }
        if (v && !kl_spend(r, some * v->n))
            return false;
    }
    return true;
}

static struct places shifted(const struct kl_fold *s, const struct places *p, uint64_t elements)
{
    struct places q;
    for (uint32_t k = 0; k < s->m; k++)
        q.v[k] = p->v[k] + elements * s->v[k].bytes;
    return q;
}

/* One level of the tree: [outer][n][inner] to [outer][h][inner], pairs (i, i + h). */
static bool halve(struct kl_run *r, const struct kl_fold *s, struct places to, struct places from,
                  uint64_t n, uint64_t h)
{
    uint64_t inner = s->inner;
    for (uint64_t o = 0; o < s->outer; o++) {
        struct places upper = shifted(s, &from, h * inner);
        if (!combine(r, s, &to, &from, &upper, (n - h) * inner))
            return false;
        for (uint32_t k = 0; k < s->m && 2 * h > n; k++) {
            size_t row = inner * s->v[k].bytes;
            memcpy(to.v[k] + (n - h) * row, from.v[k] + (n - h) * row, (2 * h - n) * row);
        }
        from = shifted(s, &from, n * inner);
        to = shifted(s, &to, h * inner);
    }
    return true;
}

/* Pairs laid side by side: left operands, right operands, what comes out. */
static void side_by_side(const struct kl_fold *s, uint64_t pairs, struct places out[3])
{
    for (uint32_t k = 0; k < s->m; k++)
        for (uint32_t i = 0; i < 3; i++)
            out[i].v[k] = s->v[k].work[2] + i * pairs * s->inner * s->v[k].bytes;
}

/* One level of neighbours first: pairs (2i, 2i + 1); the last of an odd number stays. */
static bool pair_up(struct kl_run *r, const struct kl_fold *s, const struct places *to,
                    const struct places *from, uint64_t n)
{
    uint64_t outer = s->outer, pairs = n / 2;
    struct places p[3];
    side_by_side(s, outer * pairs, p);
    for (uint32_t k = 0; k < s->m; k++) {
        uint32_t bytes = s->v[k].bytes;
        size_t row = s->inner * bytes;
        for (uint64_t o = 0; o < outer; o++) {
            const char *src = from->v[k] + o * n * row;
            char *a = p[0].v[k] + o * pairs * row, *b = p[1].v[k] + o * pairs * row;
            if (s->inner == 1) {
                kl_copy_strided(a, src, pairs, 2, bytes);
                kl_copy_strided(b, src + row, pairs, 2, bytes);
                continue;
            }
            for (uint64_t i = 0; i < pairs; i++) {
                memcpy(a + i * row, src + 2 * i * row, row);
                memcpy(b + i * row, src + (2 * i + 1) * row, row);
            }
        }
    }
    if (!combine(r, s, &p[2], &p[0], &p[1], outer * pairs * s->inner))
        return false;
    for (uint32_t k = 0; k < s->m; k++) {
        size_t row = s->inner * s->v[k].bytes;
        const char *c = p[2].v[k];
        char *t = to->v[k];
        for (uint64_t o = 0; o < outer; o++, c += pairs * row) {
            memcpy(t, c, pairs * row);
            t += pairs * row;
            if (n & 1) {
                memcpy(t, from->v[k] + (o * n + n - 1) * row, row);
                t += row;
            }
        }
    }
    return true;
}

/* One level of a scan: every element whose index has bit h takes the last element of the
 * half before its own on its left. */
static bool spread(struct kl_run *r, const struct kl_fold *s, uint64_t h)
{
    uint64_t n = s->n, pairs = (n / (2 * h)) * h + (n % (2 * h) > h ? n % (2 * h) - h : 0);
    struct places p[3];
    if (!pairs)
        return true;
    side_by_side(s, s->outer * pairs, p);
    for (int back = 0; back < 2; back++) {
        for (uint32_t k = 0; k < s->m; k++) {
            size_t row = s->inner * s->v[k].bytes, at = 0;
            for (uint64_t o = 0; o < s->outer; o++)
                for (uint64_t left = h; left < n; left += 2 * h) {
                    char *x = s->v[k].out + o * n * row;
                    uint64_t some = n - left < h ? n - left : h;
                    if (back) {
                        memcpy(x + left * row, p[2].v[k] + at, some * row);
                    } else {
                        for (uint64_t i = 0; i < some; i++)
                            memcpy(p[0].v[k] + at + i * row, x + (left - 1) * row, row);
                        memcpy(p[1].v[k] + at, x + left * row, some * row);
                    }
                    at += some * row;
                }
        }
        if (!back && !combine(r, s, &p[2], &p[0], &p[1], s->outer * pairs * s->inner))
            return false;
    }
    return true;
}

bool kl_do_fold(struct kl_run *r, const struct kl_step *step)
{
    const struct kl_fold *s = step->u.fold;
    const struct kl_vecblock *v = s->vec;
    uint64_t n = s->n;
    for (uint32_t i = 0; v && i < v->nsplat; i++)
        kl_fill(v->splat[i].to, v->splat[i].from, (uint32_t)v->splat[i].bytes, KL_VEC_LEN);
    if (s->scan || n == 1) {
        for (uint32_t k = 0; k < s->m; k++)
            memcpy(s->v[k].out, s->v[k].in, s->outer * n * s->inner * s->v[k].bytes);
        for (uint64_t h = 1; h < n; h *= 2)
            if (!spread(r, s, h))
                return false;
        return true;
    }
    struct places from, to;
    for (uint32_t k = 0; k < s->m; k++)
        from.v[k] = (char *)(uintptr_t)s->v[k].in; /* only read */
    for (uint32_t turn = 0; n > 1; turn ^= 1) {
        uint64_t next = s->tree ? kl_half_of(n) : (n + 1) / 2;
        for (uint32_t k = 0; k < s->m; k++)
            to.v[k] = next == 1 ? s->v[k].out : s->v[k].work[turn];
        if (!(s->tree ? halve(r, s, to, from, n, next) : pair_up(r, s, &to, &from, n)))
            return false;
        from = to, n = next;
    }
    return true;
}
