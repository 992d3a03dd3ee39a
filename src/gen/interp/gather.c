/* gather.c - accesses that go element by element: with index tiles, and atomics; gather of a tile.
 *
 * The elements of one access are taken in row-major order.  Programs may run on several threads, so
 * an atomic is one in memory as well, as far as the host's array is aligned. */
#include "gen/interp/run.h"

static struct kl_walk walk(struct kl_run *r, const struct kl_step *s, bool write)
{
    const struct kl_view *v = s->in[0];
    struct kl_walk w = {.ac = s->u.access, .view = v, .mem = &r->mem[v->root], .r = r, .s = s};
    w.tile = (char *)(uintptr_t)(write ? s->in[1] : s->out);
    w.write = write;
    if (r->checks || (write && w.mem->shadow))
        kl_check_each(&w);
    return w;
}

static bool inside(const struct kl_walk *w, const int64_t *at)
{
    for (uint32_t d = 0; d < w->ac->ndim; d++)
        if (!kl_in_extent(at[d], w->view->ext[d]))
            return false;
    return true;
}

/* The memory of an element; NULL: outside, or masked. */
static char *element(const struct kl_walk *w, uint64_t lane)
{
    int64_t at[KL_MAX_DIMS], off = w->view->off;
    if (w->ac->mask && !w->ac->mask[lane])
        return NULL;
    kl_coordinates(w->ac, lane, at);
    if (!inside(w, at))
        return NULL;
    for (uint32_t d = 0; d < w->ac->ndim; d++)
        off = kl_wadd(off, kl_wmul(at[d], w->view->str[d]));
    if (off < w->mem->first || off > w->mem->last)
        return NULL;
    return w->mem->base + off * (int64_t)w->ac->bytes;
}

bool kl_do_load_each(struct kl_run *r, const struct kl_step *s)
{
    struct kl_walk w = walk(r, s, false);
    uint32_t bytes = w.ac->bytes;
    for (uint64_t i = 0; i < s->n; i++) {
        const char *x = element(&w, i), *fill = w.ac->fill;
        int64_t at[KL_MAX_DIMS];
        char *to = w.tile + i * bytes;
        if (w.ac->lost)
            w.ac->lost[i] = !x;
        if (x)
            memcpy(to, x, bytes);
        else if (!fill || (kl_coordinates(w.ac, i, at), inside(&w, at) && (!w.ac->mask || w.ac->mask[i])))
            memset(to, 0, bytes); /* also what extents promise and memory has not */
        else
            memcpy(to, fill + i * bytes, bytes);
        if (w.ac->is_bool)
            *to = *to != 0;
    }
    if (r->padding)
        kl_padding_load(&w);
    return true;
}

bool kl_do_store_each(struct kl_run *r, const struct kl_step *s)
{
    struct kl_walk w = walk(r, s, true);
    r->changes++;
    for (uint64_t i = 0; i < s->n; i++) {
        char *x = element(&w, i);
        if (x)
            memcpy(x, w.tile + i * w.ac->bytes, w.ac->bytes);
    }
    return true;
}

bool kl_do_inside_each(struct kl_run *r, const struct kl_step *s)
{
    const struct kl_view *v = s->in[0];
    struct kl_walk w = {.ac = s->u.access, .view = v, .mem = &r->mem[v->root], .r = r, .s = s};
    for (uint64_t i = 0; i < s->n; i++) {
        int64_t at[KL_MAX_DIMS];
        kl_coordinates(w.ac, i, at);
        ((kl_m_bool *)s->out)[i] = inside(&w, at);
    }
    return true;
}

/* ---- atomics ---- */

/* What takes the place of `old`; canonical bits. */
static uint64_t replaced(const struct kl_access *ac, uint64_t old, uint64_t a, uint64_t b)
{
    enum kl_elem e = (enum kl_elem)ac->elem;
    bool less = kl_elems[e].kind == KL_KIND_SINT ? (int64_t)a < (int64_t)old : a < old;
    switch (KL_HOW_RMW(ac->how)) {
    case KL_RMW_add:
        if (e == KL_f32)
            return kl_f32_bits(kl_bits_f32((uint32_t)old) + kl_bits_f32((uint32_t)a));
        if (e == KL_f64)
            return kl_f64_bits(kl_bits_f64(old) + kl_bits_f64(a));
        return kl_canon(e, old + a);
    case KL_RMW_min: return less ? a : old;
    case KL_RMW_max: return less || a == old ? old : a;
    case KL_RMW_and: return old & a;
    case KL_RMW_or: return old | a;
    case KL_RMW_xor: return old ^ a;
    case KL_RMW_xchg: return a;
    default: return old == a ? b : old;
    }
}

#define ATOMIC(N, T)                                                                               \
    static uint64_t atomic_##N(const struct kl_access *ac, uint16_t op, char *x, uint64_t a, uint64_t b) \
    {                                                                                              \
        enum kl_elem e = (enum kl_elem)ac->elem;                                                   \
        T old, now;                                                                                \
        if ((uintptr_t)x % sizeof(T)) { /* no atomic can be had there */                           \
            memcpy(&old, x, sizeof old);                                                           \
            now = (T)(op == KL_OP_atomic ? replaced(ac, kl_canon(e, old), a, b) : a);              \
            if (op != KL_OP_atomic_load)                                                           \
                memcpy(x, &now, sizeof now);                                                       \
            return old;                                                                            \
        }                                                                                          \
        T __attribute__((may_alias)) *p = (T *)(void *)x;                                          \
        old = __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                \
        if (op == KL_OP_atomic_store)                                                              \
            __atomic_store_n(p, (T)a, __ATOMIC_SEQ_CST);                                           \
        if (op == KL_OP_atomic)                                                                    \
            do                                                                                     \
                now = (T)replaced(ac, kl_canon(e, old), a, b);                                     \
            while (!__atomic_compare_exchange_n(p, &old, now, false, __ATOMIC_SEQ_CST,             \
                                                __ATOMIC_SEQ_CST));                                \
        return old;                                                                                \
    }
ATOMIC(4, uint32_t)
ATOMIC(8, uint64_t)

/* For the checks: did memory change, and is it a sum of floats? */
static void note_atomic(struct kl_walk *w, uint16_t op, uint64_t lane, const char *x, uint64_t old,
                        uint64_t a)
{
    enum kl_elem e = (enum kl_elem)w->ac->elem;
    uint64_t now = old;
    memcpy(&now, x, w->ac->bytes);
    w->r->changes += now != old;
    if (w->r->sums && op == KL_OP_atomic && kl_is_float(e))
        kl_note_sum(w, lane, x, old, a);
}

bool kl_do_atomic(struct kl_run *r, const struct kl_step *s)
{
    uint16_t op = kl_in(r->f, s->val)->op;
    struct kl_walk w = walk(r, s, op != KL_OP_atomic_load);
    const struct kl_access *ac = w.ac;
    enum kl_elem e = (enum kl_elem)ac->elem;
    uint32_t bytes = ac->bytes;
    const char *first = op == KL_OP_atomic_load ? NULL : s->in[1], *second = ac->desired;
    for (uint64_t i = 0; i < s->n; i++) {
        char *x = element(&w, i);
        uint64_t a = first ? kl_elem_load(e, first + i * bytes) : 0;
        uint64_t b = second ? kl_elem_load(e, second + i * bytes) : 0, old = 0;
        if (x)
            old = bytes == 4 ? atomic_4(ac, op, x, a, b) : atomic_8(ac, op, x, a, b);
        if (x && r->checks)
            note_atomic(&w, op, i, x, old, a);
        if (s->out)
            memcpy((char *)s->out + i * bytes, &old, bytes);
    }
    return true;
}

/* ---- gather of a tile ---- */

bool kl_do_gather(struct kl_run *r, const struct kl_step *s)
{
    const kl_m_i64 *index = s->in[1];
    uint64_t n = s->u.ax.n, n2 = s->u.ax.n2, inner = s->u.ax.inner;
    uint32_t bytes = s->u.ax.bytes;
    for (uint64_t i = 0; i < s->n; i++) {
        char *to = (char *)s->out + i * bytes;
        uint64_t o = i / inner / n2, k = i % inner;
        if ((uint64_t)index[i] < n) {
            memcpy(to, (const char *)s->in[0] + ((o * n + (uint64_t)index[i]) * inner + k) * bytes, bytes);
            continue;
        }
        memset(to, 0, bytes);
        if (r->checks & KILN_CHECK_BOUNDS)
            kl_found_gather(r, s, i, index[i]);
    }
    return true;
}
