/* section.c - where the elements of an access lie, and which are inside the extents. */
#include "model/run.h"

/* Offset, extents and strides of a view.  false: some are not known. */
static bool view_of(struct mrun *r, kl_val u, int64_t *off, int64_t *ext, int64_t *str)
{
    const kl_fn *f = r->f;
    uint32_t rank = kl_type_of(f, u)->rank;
    bool outer = true;
    *off = 0;
    if (kl_in(f, u)->op != KL_OP_view)
        return false;
    for (; kl_in(f, u)->op == KL_OP_view; u = kl_arg(f, u, 0), outer = false) {
        kl_val o = kl_arg(f, u, 1);
        if (!kl_model_known(r, o))
            return false;
        *off = kl_model_add(*off, kl_model_int(r, o));
        for (uint32_t d = 0; d < rank && outer; d++) {
            kl_val e = kl_arg(f, u, 2 + d), s = kl_arg(f, u, 2 + rank + d);
            if (!kl_model_known(r, e) || !kl_model_known(r, s))
                return false;
            ext[d] = kl_model_int(r, e);
            str[d] = kl_model_int(r, s);
        }
    }
    return true;
}

static bool in_extent(int64_t i, int64_t ext)
{
    return ext == INT64_MAX || (uint64_t)i < (uint64_t)(ext < 0 ? 0 : ext);
}

static int64_t at_step(int64_t start, int64_t step, uint32_t i)
{
    return kl_model_add(start, kl_model_mul(step, i));
}

/* Which of start, start + step, ... (n of them) lie inside: a range, since they ascend or descend. */
static void clip(int64_t start, int64_t step, uint32_t n, int64_t ext, uint32_t *lo, uint32_t *hi)
{
    *lo = 0;
    *hi = n;
    while (*lo < *hi && !in_extent(at_step(start, step, *lo), ext)) {
        /* by one jump where it is below 0 and comes up */
        int64_t at = at_step(start, step, *lo);
        uint64_t skip = at < 0 && step > 0 ? (0 - (uint64_t)at - 1) / (uint64_t)step + 1 : 1;
        *lo = skip > *hi - *lo ? *hi : *lo + (uint32_t)skip;
    }
    uint32_t a = *lo, b = *hi; /* the last inside, by halves */
    while (a < b) {
        uint32_t mid = a + (b - a) / 2;
        if (in_extent(at_step(start, step, mid), ext))
            a = mid + 1;
        else
            b = mid;
    }
    *hi = a;
}

bool kl_model_section(struct mrun *r, kl_val v, struct msection *s, const char **why)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_access_tile(f, v);
    int64_t ext[KL_MAX_DIMS] = {0}, str[KL_MAX_DIMS] = {0};
    bool scattered = kl_access_scattered(f, v);
    memset(s, 0, sizeof *s);
    s->root = kl_root(f, kl_arg(f, v, 0));
    *why = NULL;
    if (!view_of(r, kl_arg(f, v, 0), &s->off, ext, str)) {
        *why = "the array that the kernel makes here depends on data";
        return false;
    }
    for (uint32_t d = 0; d < t->rank; d++)
        s->hi[d] = t->dim[d];
    uint32_t axis = 0;
    for (uint32_t d = 0; d < in->attr.access.n; d++) {
        kl_val at = kl_arg(f, v, 1 + d);
        int64_t step = kl_access_step(f, v, d);
        if (!kl_model_known(r, at)) {
            *why = kl_access_index(f, v, d) ? "indices are data" : "a subscript depends on data";
            return false;
        }
        if (kl_access_index(f, v, d)) {
            axis += !scattered;
            continue;
        }
        int64_t start = kl_model_int(r, at);
        s->off = kl_model_add(s->off, kl_model_mul(start, str[d]));
        if (!step) {
            s->dead |= !in_extent(start, ext[d]);
            continue;
        }
        s->step[axis] = kl_model_mul(step, str[d]);
        clip(start, step, t->dim[axis], ext[d], &s->lo[axis], &s->hi[axis]);
        axis++;
    }
    return true;
}

const char *kl_model_where(struct mrun *r, kl_val v)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_access_tile(f, v);
    const int64_t *g = r->in->grid;
    uint32_t root = kl_root(f, kl_arg(f, v, 0)), axis = 0;
    bool part = kl_arg(f, kl_arg(f, v, 0), 0).id && kl_in(f, kl_arg(f, kl_arg(f, v, 0), 0))->op == KL_OP_view;
    kl_buf b = {.a = r->a};
    if (g[1] == 1 && g[2] == 1)
        kl_putf(&b, "program %lld: ", (long long)r->pid[0]);
    else
        kl_putf(&b, g[2] == 1 ? "program (%lld, %lld): " : "program (%lld, %lld, %lld): ",
                (long long)r->pid[0], (long long)r->pid[1], (long long)r->pid[2]);
    kl_putf(&b, part ? "of a part of %s " : "%s", r->in->param[root].name);
    for (uint32_t d = 0; d < in->attr.access.n; d++) {
        int64_t step = kl_access_step(f, v, d);
        if (kl_access_index(f, v, d)) {
            kl_putf(&b, "[indices]");
            axis += !kl_access_scattered(f, v);
        } else if (!step) {
            kl_putf(&b, "[%lld]", (long long)kl_model_int(r, kl_arg(f, v, 1 + d)));
        } else {
            kl_putf(&b, "[%lld:%u", (long long)kl_model_int(r, kl_arg(f, v, 1 + d)), t->dim[axis++]);
            kl_putf(&b, step == 1 ? "]" : ":%lld]", (long long)step);
        }
    }
    return kl_buf_str(&b);
}

bool kl_model_element(struct mrun *r, kl_val v, const struct msection *s, const uint32_t *x,
                      int64_t *off)
{
    const kl_fn *f = r->f;
    const struct kl_type *t = kl_access_tile(f, v);
    if (s->dead)
        return false;
    *off = s->off;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (x[d] < s->lo[d] || x[d] >= s->hi[d])
            return false;
        *off = kl_model_add(*off, kl_model_mul(s->step[d], x[d]));
    }
    if (!kl_access_indices(f, v))
        return true;
    /* index tiles: one coordinate, or all of them, name the element */
    bool scattered = kl_access_scattered(f, v);
    kl_val u = kl_arg(f, v, 0);
    uint32_t rank = kl_type_of(f, u)->rank, axis = 0, all = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        all = all * t->dim[d] + x[d];
    for (uint32_t d = 0; d < rank; d++) {
        if (!kl_access_index(f, v, d)) {
            axis += kl_access_step(f, v, d) != 0;
            continue;
        }
        const struct mval *m = &r->val[kl_arg(f, v, 1 + d).id];
        int64_t i = (int64_t)m->v[scattered ? all : x[axis]];
        axis += !scattered;
        if (!in_extent(i, kl_model_int(r, kl_arg(f, u, 2 + d))))
            return false;
        *off = kl_model_add(*off, kl_model_mul(i, kl_model_int(r, kl_arg(f, u, 2 + rank + d))));
    }
    return true;
}

/* ---- what was touched ---- */

enum { MOST_BITS = 1 << 28 }; /* of one array and direction: 32 MiB */

static void prepare(struct mrun *r, struct mtouch *t, uint32_t root)
{
    const kl_model_param *p = &r->in->param[root];
    int64_t low = 0, high = 0;
    for (int32_t d = 0; d < p->rank; d++) {
        int64_t far = p->ext[d] > 0 ? (p->ext[d] - 1) * p->str[d] : 0;
        low += far < 0 ? far : 0;
        high += far > 0 ? far : 0;
    }
    t->low = low;
    t->span = (uint64_t)(high - low) + 1;
    while (t->span >> t->log2 > MOST_BITS)
        t->log2++;
}

/* Elements [at, at + n) of an array. */
static void mark(struct mrun *r, uint32_t root, bool write, int64_t at, uint64_t n)
{
    struct mtouch *t = &r->touch[root];
    if (!t->span)
        prepare(r, t, root);
    if (at < t->low || (uint64_t)at - (uint64_t)t->low > t->span - n ||
        n > t->span) { /* outside what was bound */
        t->unknown[write] = true;
        return;
    }
    if (!t->bit[write])
        t->bit[write] = kl_new_n(r->a, uint64_t, (t->span >> t->log2) / 64 + 1);
    uint64_t a = (uint64_t)(at - t->low), b = a + n, grain = UINT64_C(1) << t->log2;
    t->coarse[write] |= (a & (grain - 1)) || ((b & (grain - 1)) && b != t->span);
    a >>= t->log2;
    b = (b + grain - 1) >> t->log2;
    uint64_t *w = t->bit[write];
    r->work += n / 4096;
    while (a < b) {
        uint64_t in = a & 63, run = b - a < 64 - in ? b - a : 64 - in;
        w[a / 64] |= (run == 64 ? UINT64_MAX : (UINT64_C(1) << run) - 1) << in;
        a += run;
    }
}

/* Section by rows; axes from d on have coordinates x. */
static uint64_t rows(struct mrun *r, const struct msection *s, uint32_t rank, bool write,
                     bool marks, uint32_t d, int64_t off)
{
    if (d == rank) {
        if (marks)
            mark(r, s->root, write, off, 1);
        return 1;
    }
    uint64_t n = 0;
    if (d + 1 == rank && s->step[d] == 1 && s->lo[d] < s->hi[d]) {
        n = s->hi[d] - s->lo[d];
        if (marks)
            mark(r, s->root, write, kl_model_add(off, s->lo[d]), n);
        return n;
    }
    for (uint32_t x = s->lo[d]; x < s->hi[d]; x++)
        n += rows(r, s, rank, write, marks, d + 1, kl_model_add(off, kl_model_mul(s->step[d], x)));
    return n;
}

/* Marks and counts the elements of a section, those that mask and index tiles leave. */
static uint64_t mark_all(struct mrun *r, kl_val v, const struct msection *s, kl_val mask,
                         bool write)
{
    const struct kl_type *t = kl_access_tile(r->f, v);
    uint32_t all = (uint32_t)kl_numel(t), x[KL_MAX_RANK];
    uint64_t n = 0;
    if (!mask.id && !kl_access_indices(r->f, v))
        return rows(r, s, t->rank, write, true, 0, s->off);
    r->work += all / 8;
    for (uint32_t i = 0; i < all; i++) {
        int64_t off;
        uint32_t k = i;
        for (uint32_t d = t->rank; d-- > 0; k /= t->dim[d])
            x[d] = k % t->dim[d];
        if ((mask.id && !r->val[mask.id].v[i]) || !kl_model_element(r, v, s, x, &off))
            continue;
        mark(r, s->root, write, off, 1);
        n++;
    }
    return n;
}

/* How many elements the section has if it was marked before. */
static uint64_t *marked_before(struct mrun *r, kl_val v, const struct msection *s, uint64_t hash,
                               bool *isnew)
{
    enum { MOST = 1 << 14 };
    struct {
        struct msection s;
        uint64_t hash;
    } k;
    struct maccess *a = r->at[v.id];
    *isnew = true;
    if (kl_access_indices(r->f, v) || a->elements.n >= MOST)
        return NULL;
    memset(&k, 0, sizeof k);
    memcpy(&k.s, s, sizeof k.s); /* made of zeros, so that what lies between members is the same */
    k.hash = hash;
    uint32_t *at = kl_map_put(&a->marked, &k, sizeof k, isnew);
    if (*isnew) {
        *at = a->elements.n;
        kl_push(r->a, &a->elements, UINT64_C(0));
    }
    return &a->elements.v[*at];
}

void kl_model_touch(struct mrun *r, kl_val v, const struct msection *s, kl_val mask, uint64_t hash)
{
    uint16_t flags = kl_ops[kl_in(r->f, v)->op].flags;
    struct mtouch *to = &r->touch[s->root];
    bool isnew;
    if (s->dead)
        return;
    uint64_t own = 0, *n = marked_before(r, v, s, hash, &isnew);
    n = n ? n : &own;
    for (uint32_t write = 0; write < 2; write++) {
        if (!(flags & (write ? KL_F_WRITE : KL_F_READ)))
            continue;
        if (isnew)
            *n = mark_all(r, v, s, mask, write);
        to->asked[write][r->set] += *n * kl_elems[r->f->param[s->root].elem].bytes;
    }
}
