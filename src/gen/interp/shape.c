/* shape.c - operations that move elements: broadcast, permute, cat, flip. */
#include "gen/interp/run.h"

void kl_fill(void *out, const void *one, uint32_t bytes, size_t n)
{
    if (bytes == 1) {
        memset(out, *(const unsigned char *)one, n);
        return;
    }
    if (n)
        memcpy(out, one, bytes);
    for (size_t done = 1; done < n;) { /* twice as much each time */
        size_t k = done < n - done ? done : n - done;
        k = k * bytes > 4096 ? 4096 / bytes : k; /* the source stays in the cache */
        memcpy((char *)out + done * bytes, out, k * bytes);
        done += k;
    }
}

#define STRIDED(W)                                                                                 \
    static void strided_##W(void *out, const void *in, size_t n, size_t str)                       \
    {                                                                                              \
        kl_m_##W *restrict o = out;                                                                \
        const kl_m_##W *restrict a = in;                                                           \
        for (size_t i = 0; i < n; i++)                                                             \
            o[i] = a[i * str];                                                                     \
    }
STRIDED(u8)
STRIDED(w16)
STRIDED(w32)
STRIDED(w64)

void kl_copy_strided(char *out, const char *in, size_t n, size_t str, uint32_t bytes)
{
    if (str == 1)
        memcpy(out, in, n * bytes);
    else if (str == 0)
        kl_fill(out, in, bytes, n);
    else if (bytes == 1)
        strided_u8(out, in, n, str);
    else if (bytes == 2)
        strided_w16(out, in, n, str);
    else if (bytes == 4)
        strided_w32(out, in, n, str);
    else
        strided_w64(out, in, n, str);
}

/* A transpose in blocks, so that a cache line is used whole on both sides: the last axis
 * walks with a stride, the one before it element by element. */
#define BLOCKED(W)                                                                                 \
    static void blocked_##W(void *out, const void *in, size_t rows, size_t cols, size_t str)       \
    {                                                                                              \
        enum { B = 16 };                                                                           \
        for (size_t r0 = 0; r0 < rows; r0 += B)                                                    \
            for (size_t c0 = 0; c0 < cols; c0 += B)                                                \
                for (size_t r = r0; r < rows && r < r0 + B; r++) {                                 \
                    kl_m_##W *o = (kl_m_##W *)out + r * cols;                                      \
                    const kl_m_##W *a = (const kl_m_##W *)in + r;                                  \
                    for (size_t c = c0; c < cols && c < c0 + B; c++)                               \
                        o[c] = a[c * str];                                                         \
                }                                                                                  \
    }
BLOCKED(u8)
BLOCKED(w16)
BLOCKED(w32)
BLOCKED(w64)

void kl_transpose(char *out, const char *in, size_t rows, size_t cols, size_t str, uint32_t bytes)
{
    if (bytes == 1)
        blocked_u8(out, in, rows, cols, str);
    else if (bytes == 2)
        blocked_w16(out, in, rows, cols, str);
    else if (bytes == 4)
        blocked_w32(out, in, rows, cols, str);
    else
        blocked_w64(out, in, rows, cols, str);
}

/* Each element of a column repeated along its row. */
#define SPREAD(W)                                                                                  \
    static void spread_##W(void *out, const void *in, size_t rows, size_t cols)                    \
    {                                                                                              \
        kl_m_##W *restrict o = out;                                                                \
        const kl_m_##W *restrict a = in;                                                           \
        for (size_t r = 0; r < rows; r++)                                                          \
            for (size_t c = 0; c < cols; c++)                                                      \
                *o++ = a[r];                                                                       \
    }
SPREAD(u8)
SPREAD(w16)
SPREAD(w32)
SPREAD(w64)

static void spread(char *out, const char *in, size_t rows, size_t cols, uint32_t bytes)
{
    if (bytes == 1)
        spread_u8(out, in, rows, cols);
    else if (bytes == 2)
        spread_w16(out, in, rows, cols);
    else if (bytes == 4)
        spread_w32(out, in, rows, cols);
    else
        spread_w64(out, in, rows, cols);
}

bool kl_do_map(struct kl_run *r, const struct kl_step *s)
{
    (void)r;
    const uint64_t *dim = s->u.map.dim, *str = s->u.map.str;
    uint32_t rank = s->u.map.rank, bytes = s->u.map.bytes, inner = 1;
    char *out = s->out;
    if (!rank) {
        memcpy(out, s->in[0], bytes);
        return true;
    }
    uint64_t n = dim[rank - 1];
    if (rank >= 2 && str[rank - 2] == 1 && (str[rank - 1] > 1 || (!str[rank - 1] && n < 64)))
        inner = 2, n *= dim[rank - 2];
    uint64_t i[KL_MAX_RANK] = {0}, at = 0;
    for (;;) {
        const char *in = (const char *)s->in[0] + at * bytes;
        if (inner == 2 && !str[rank - 1])
            spread(out, in, dim[rank - 2], dim[rank - 1], bytes);
        else if (inner == 2)
            kl_transpose(out, in, dim[rank - 2], dim[rank - 1], str[rank - 1], bytes);
        else
            kl_copy_strided(out, in, n, str[rank - 1], bytes);
        out += n * bytes;
        uint32_t d = rank - inner; /* the next row */
        while (d > 0 && ++i[d - 1] == dim[d - 1]) {
            at -= (dim[d - 1] - 1) * str[d - 1];
            i[--d] = 0;
        }
        if (!d)
            return true;
        at += str[d - 1];
    }
}

bool kl_do_cat(struct kl_run *r, const struct kl_step *s)
{
    (void)r;
    size_t a = s->u.ax.n * s->u.ax.inner * s->u.ax.bytes;
    size_t b = s->u.ax.n2 * s->u.ax.inner * s->u.ax.bytes;
    char *out = s->out;
    for (uint64_t o = 0; o < s->u.ax.outer; o++, out += a + b) {
        memcpy(out, (const char *)s->in[0] + o * a, a);
        memcpy(out + a, (const char *)s->in[1] + o * b, b);
    }
    return true;
}

#define REVERSE(W)                                                                                 \
    static void reverse_##W(void *out, const void *in, size_t n)                                   \
    {                                                                                              \
        kl_m_##W *restrict o = out;                                                                \
        const kl_m_##W *restrict a = in;                                                           \
        for (size_t i = 0; i < n; i++)                                                             \
            o[i] = a[n - 1 - i];                                                                   \
    }
REVERSE(u8)
REVERSE(w16)
REVERSE(w32)
REVERSE(w64)

bool kl_do_flip(struct kl_run *r, const struct kl_step *s)
{
    (void)r;
    uint64_t n = s->u.ax.n;
    size_t row = s->u.ax.inner * s->u.ax.bytes;
    char *out = s->out;
    const char *in = s->in[0];
    for (uint64_t o = 0; o < s->u.ax.outer; o++, out += n * row, in += n * row) {
        if (s->u.ax.inner != 1)
            for (uint64_t i = 0; i < n; i++)
                memcpy(out + i * row, in + (n - 1 - i) * row, row);
        else if (row == 1)
            reverse_u8(out, in, n);
        else if (row == 2)
            reverse_w16(out, in, n);
        else if (row == 4)
            reverse_w32(out, in, n);
        else
            reverse_w64(out, in, n);
    }
    return true;
}
