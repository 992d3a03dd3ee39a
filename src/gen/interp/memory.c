/* memory.c - views, and reading and writing parts of arrays and tiles.
 *
 * An access is walked in rows along the innermost axis of the tile.  For each axis the range
 * of elements inside the extents is found once, so that a row is fill, a run of elements,
 * and fill again; a run that is dense in memory is one memcpy.  Indices wrap in 64 bits; an
 * axis on which they do is taken element by element.  Whatever extents say, no element
 * outside the root's memory is touched: it reads as 0 and is not written. */
#include "gen/interp/run.h"

bool kl_do_view(struct kl_run *r, const struct kl_step *s)
{
    struct kl_view *v = s->out;
    v->root = s->u.view.root;
    v->off = *s->u.view.off;
    if (s->u.view.parent)
        v->off = kl_wadd(v->off, s->u.view.parent->off);
    for (uint32_t i = 0; i < s->u.view.ndim; i++) {
        v->ext[i] = *s->u.view.ext[i];
        v->str[i] = *s->u.view.str[i];
    }
    if (r->checks & KILN_CHECK_BOUNDS)
        kl_check_view(r, s);
    return true;
}

/* ---- the walk ---- */

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* Which i in [0, n) have first + i*step inside ext.  false: the index wraps. */
static bool inside_range(int64_t first, int64_t step, uint64_t n, int64_t ext, uint64_t *lo,
                         uint64_t *hi)
{
    int64_t last;
    *lo = 0, *hi = n;
    if (ext == INT64_MAX)
        return true;
    if (n - 1 > INT64_MAX || __builtin_mul_overflow((int64_t)(n - 1), step, &last) ||
        __builtin_add_overflow(first, last, &last))
        return false;
    uint64_t e = ext < 0 ? 0 : (uint64_t)ext, f = (uint64_t)first;
    if (step > 0) {
        uint64_t st = (uint64_t)step;
        *lo = first >= 0 ? 0 : ceil_div(0 - f, st);
        *hi = first >= 0 && f >= e ? 0 : ceil_div(e - f, st);
    } else {
        uint64_t st = 0 - (uint64_t)step;
        *lo = first >= 0 && f >= e ? ceil_div(f - e + 1, st) : 0;
        *hi = first < 0 ? 0 : f / st + 1;
    }
    *hi = *hi < n ? *hi : n;
    *lo = *lo < *hi ? *lo : *hi;
    return true;
}

void kl_walk_begin(struct kl_walk *w)
{
    const struct kl_access *ac = w->ac;
    const struct kl_view *v = w->view;
    w->off = v->off;
    w->dead = false;
    w->naxis = 0;
    uint32_t axis = 0;
    for (uint32_t d = 0; d < ac->ndim; d++) {
        int64_t first = *ac->start[d];
        w->off = kl_wadd(w->off, kl_wmul(first, v->str[d]));
        if (axis == ac->naxis || ac->axis_dim[axis] != d) {
            w->dead |= !kl_in_extent(first, v->ext[d]);
            continue;
        }
        uint32_t k = w->naxis++;
        w->dim[k] = d;
        w->n[k] = ac->axis_n[axis++];
        w->es[k] = kl_wmul(ac->step[d], v->str[d]);
        w->wild[k] = !inside_range(first, ac->step[d], w->n[k], v->ext[d], &w->lo[k], &w->hi[k]);
        /* an axis that lies inside, on a row that does and is followed by the next: one row */
        if (k && !w->wild[k] && !w->wild[k - 1] && w->lo[k] == 0 && w->hi[k] == w->n[k] &&
            w->lo[k - 1] == 0 && w->hi[k - 1] == w->n[k - 1] &&
            w->es[k - 1] == kl_wmul((int64_t)w->n[k], w->es[k])) {
            w->n[k - 1] *= w->n[k];
            w->hi[k - 1] = w->n[k - 1];
            w->es[k - 1] = w->es[k];
            w->naxis--;
        }
    }
}

/* Whether element i of axis k is inside. */
static bool axis_inside(const struct kl_walk *w, uint32_t k, uint64_t i)
{
    if (!w->wild[k])
        return i >= w->lo[k] && i < w->hi[k];
    uint32_t d = w->dim[k];
    int64_t at = kl_wadd(*w->ac->start[d], kl_wmul((int64_t)i, w->ac->step[d]));
    return kl_in_extent(at, w->view->ext[d]);
}

static void one_row(struct kl_walk *w, kl_row_fn *row, uint64_t lane, int64_t off, bool live)
{
    if (!w->naxis) {
        row(w, lane, 1, off, 0, live);
        return;
    }
    uint32_t k = w->naxis - 1;
    uint64_t n = w->n[k];
    if (!live) {
        row(w, lane, n, off, 0, 0);
    } else if (!w->wild[k]) {
        row(w, lane, n, off, w->lo[k], w->hi[k]);
    } else {
        for (uint64_t i = 0; i < n; i++, off = kl_wadd(off, w->es[k]))
            row(w, lane + i, 1, off, 0, axis_inside(w, k, i));
    }
}

void kl_walk_rows(struct kl_walk *w, kl_row_fn *row)
{
    uint64_t i[KL_MAX_RANK] = {0}, lane = 0;
    int64_t off = w->off;
    for (;;) {
        bool live = !w->dead;
        for (uint32_t k = 0; live && k + 1 < w->naxis; k++)
            live = axis_inside(w, k, i[k]);
        one_row(w, row, lane, off, live);
        lane += w->naxis ? w->n[w->naxis - 1] : 1;
        uint32_t k = w->naxis ? w->naxis - 1 : 0; /* the next row */
        while (k > 0 && ++i[k - 1] == w->n[k - 1]) {
            off = kl_wadd(off, kl_wmul(-(int64_t)(w->n[k - 1] - 1), w->es[k - 1]));
            i[--k] = 0;
        }
        if (!k)
            return;
        off = kl_wadd(off, w->es[k - 1]);
    }
}

bool kl_run_fits(const struct kl_mem *m, int64_t off, int64_t es, uint64_t a, uint64_t b)
{
    int64_t x, y;
    if (a == b)
        return true;
    if (b > INT64_MAX || __builtin_mul_overflow((int64_t)a, es, &x) ||
        __builtin_add_overflow(off, x, &x) || __builtin_mul_overflow((int64_t)(b - 1), es, &y) ||
        __builtin_add_overflow(off, y, &y))
        return false;
    return x >= m->first && x <= m->last && y >= m->first && y <= m->last;
}

/* ---- rows ---- */

/* Elements [a, b) of a row that are not read: the fill, or zero. */
static void fill_row(struct kl_walk *w, uint64_t lane, uint64_t a, uint64_t b)
{
    size_t bytes = w->ac->bytes;
    char *to = w->tile + (lane + a) * bytes;
    if (a == b)
        return;
    if (w->ac->fill)
        memcpy(to, w->ac->fill + (lane + a) * bytes, (b - a) * bytes);
    else
        memset(to, 0, (b - a) * bytes);
}

/* memcpy of one element: the host's arrays need not be aligned. */
#define ROWS(W)                                                                                    \
    static void get_##W(char *to, const struct kl_mem *m, int64_t off, int64_t es, uint64_t n,     \
                        bool safe)                                                                 \
    {                                                                                              \
        kl_m_##W *o = (kl_m_##W *)to;                                                              \
        for (uint64_t i = 0; i < n; i++, off = kl_wadd(off, es)) {                                 \
            kl_m_##W x = 0;                                                                        \
            if (safe || (off >= m->first && off <= m->last))                                       \
                memcpy(&x, m->base + off * (int64_t)sizeof x, sizeof x);                           \
            o[i] = x;                                                                              \
        }                                                                                          \
    }                                                                                              \
    static void put_##W(const char *from, const struct kl_mem *m, int64_t off, int64_t es,         \
                        uint64_t n, bool safe, const kl_m_bool *mask)                              \
    {                                                                                              \
        const kl_m_##W *p = (const kl_m_##W *)from;                                                \
        for (uint64_t i = 0; i < n; i++, off = kl_wadd(off, es)) {                                 \
            const kl_m_##W x = p[i];                                                               \
            if ((!mask || mask[i]) && (safe || (off >= m->first && off <= m->last)))               \
                memcpy(m->base + off * (int64_t)sizeof x, &x, sizeof x);                           \
        }                                                                                          \
    }
ROWS(u8)
ROWS(w16)
ROWS(w32)
ROWS(w64)

static void load_row(struct kl_walk *w, uint64_t lane, uint64_t n, int64_t off, uint64_t a,
                     uint64_t b)
{
    uint32_t bytes = w->ac->bytes, k = w->naxis ? w->naxis - 1 : 0;
    int64_t es = w->naxis ? w->es[k] : 0;
    fill_row(w, lane, 0, a);
    fill_row(w, lane, b, n);
    if (a == b)
        return;
    char *to = w->tile + (lane + a) * bytes;
    bool fits = kl_run_fits(w->mem, off, es, a, b);
    off = kl_wadd(off, kl_wmul((int64_t)a, es));
    if (fits && es == 1)
        memcpy(to, w->mem->base + off * bytes, (b - a) * bytes);
    else if (bytes == 1)
        get_u8(to, w->mem, off, es, b - a, fits);
    else if (bytes == 2)
        get_w16(to, w->mem, off, es, b - a, fits);
    else if (bytes == 4)
        get_w32(to, w->mem, off, es, b - a, fits);
    else
        get_w64(to, w->mem, off, es, b - a, fits);
    if (w->ac->is_bool)
        for (uint64_t i = 0; i < b - a; i++)
            to[i] = to[i] != 0;
    const kl_m_bool *mask = w->ac->mask;
    for (uint64_t i = lane + a; mask && i < lane + b; i++)
        if (!mask[i])
            fill_row(w, i, 0, 1);
}

static void store_row(struct kl_walk *w, uint64_t lane, uint64_t n, int64_t off, uint64_t a,
                      uint64_t b)
{
    (void)n;
    uint32_t bytes = w->ac->bytes;
    int64_t es = w->naxis ? w->es[w->naxis - 1] : 0;
    if (a == b)
        return;
    const kl_m_bool *mask = w->ac->mask ? w->ac->mask + lane + a : NULL;
    const char *from = w->tile + (lane + a) * bytes;
    bool fits = kl_run_fits(w->mem, off, es, a, b);
    off = kl_wadd(off, kl_wmul((int64_t)a, es));
    if (fits && es == 1 && !mask)
        memcpy(w->mem->base + off * bytes, from, (b - a) * bytes);
    else if (bytes == 1)
        put_u8(from, w->mem, off, es, b - a, fits, mask);
    else if (bytes == 2)
        put_w16(from, w->mem, off, es, b - a, fits, mask);
    else if (bytes == 4)
        put_w32(from, w->mem, off, es, b - a, fits, mask);
    else
        put_w64(from, w->mem, off, es, b - a, fits, mask);
}

static void inside_row(struct kl_walk *w, uint64_t lane, uint64_t n, int64_t off, uint64_t a,
                       uint64_t b)
{
    (void)off;
    memset(w->tile + lane, 0, n);
    memset(w->tile + lane + a, 1, b - a);
}

/* Lanes that are outside or masked. */
static void lost_row(struct kl_walk *w, uint64_t lane, uint64_t n, int64_t off, uint64_t a,
                     uint64_t b)
{
    (void)off;
    uint8_t *lost = w->ac->lost + lane;
    memset(lost, 1, n);
    for (uint64_t i = a; i < b; i++)
        lost[i] = w->ac->mask && !w->ac->mask[lane + i];
}

/* ---- the operations ---- */

static struct kl_walk walk_array(struct kl_run *r, const struct kl_step *s)
{
    const struct kl_view *v = s->in[0];
    return (struct kl_walk){.ac = s->u.access, .view = v, .mem = &r->mem[v->root], .r = r, .s = s};
}

static struct kl_walk walk_tile(struct kl_run *r, const struct kl_step *s)
{
    const struct kl_access *ac = s->u.access;
    return (struct kl_walk){.ac = ac, .view = &ac->tile, .mem = &ac->tile_mem, .r = r, .s = s};
}

bool kl_do_load(struct kl_run *r, const struct kl_step *s)
{
    struct kl_walk w = walk_array(r, s);
    w.tile = s->out;
    kl_walk_begin(&w);
    if (r->checks)
        kl_check_access(&w);
    kl_walk_rows(&w, load_row);
    if (w.ac->lost)
        kl_walk_rows(&w, lost_row);
    if (r->padding)
        kl_padding_load(&w);
    return true;
}

bool kl_do_store(struct kl_run *r, const struct kl_step *s)
{
    struct kl_walk w = walk_array(r, s);
    w.tile = (char *)(uintptr_t)s->in[1];
    w.write = true;
    kl_walk_begin(&w);
    if (r->checks || w.mem->shadow)
        kl_check_access(&w);
    r->changes++;
    kl_walk_rows(&w, store_row);
    return true;
}

bool kl_do_inside(struct kl_run *r, const struct kl_step *s)
{
    struct kl_walk w = walk_array(r, s);
    w.tile = s->out;
    kl_walk_begin(&w);
    kl_walk_rows(&w, inside_row);
    return true;
}

bool kl_do_extract(struct kl_run *r, const struct kl_step *s)
{
    struct kl_walk w = walk_tile(r, s);
    w.tile = s->out;
    kl_walk_begin(&w);
    if (r->checks)
        kl_check_access(&w);
    kl_walk_rows(&w, load_row);
    return true;
}

bool kl_do_insert(struct kl_run *r, const struct kl_step *s)
{
    struct kl_walk w = walk_tile(r, s);
    w.tile = (char *)(uintptr_t)s->in[1];
    w.write = true;
    memcpy(s->out, s->in[0], (size_t)(s->u.access->tile_mem.last + 1) * s->u.access->bytes);
    kl_walk_begin(&w);
    if (r->checks)
        kl_check_access(&w);
    kl_walk_rows(&w, store_row);
    return true;
}
