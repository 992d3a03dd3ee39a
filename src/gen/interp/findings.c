/* findings.c - what the checks look for; tell.c says it.
 *
 * One finding for each source place and kind: the number of elements and programs, and the
 * first instance.  Checks look at an access before it happens.  They go element by element
 * only where the ends of a range show that something is outside. */
#include "gen/interp/run.h"

#include <stdlib.h>

__extension__ typedef __int128 wide;

/* ---- recording ---- */

struct kl_finding *kl_found(struct kl_run *r, const struct kl_step *s, enum kl_code code,
                            uint32_t root, uint64_t lane, bool *isnew)
{
    kl_span loc = kl_in(r->f, s->val)->loc;
    struct kl_finding *g = NULL;
    for (uint32_t i = 0; i < r->found.n && !g; i++) {
        struct kl_finding *q = &r->found.v[i];
        if (q->code == code && q->root == root && q->loc.beg == loc.beg && q->loc.end == loc.end &&
            (loc.beg || q->val.id == s->val.id))
            g = q;
    }
    *isnew = !g;
    if (!g) {
        struct kl_finding one = {.code = code,
                                 .val = s->val,
                                 .loc = loc,
                                 .root = root,
                                 .last = -1,
                                 .program = r->program,
                                 .lane = lane,
                                 .again = r->again};
        kl_push(r->a, &r->found, one);
        g = &r->found.v[r->found.n - 1];
    }
    if (r->again != g->again)
        return g;
    g->count++;
    if (g->last != r->program) {
        g->last = r->program;
        g->programs++;
    }
    return g;
}

/* Index of a tile's element along each dimension of the array. */
void kl_coordinates(const struct kl_access *ac, uint64_t lane, int64_t *at)
{
    for (uint32_t d = 0; d < ac->ndim; d++) {
        uint64_t i = lane / ac->div[d] % ac->mod[d];
        if (ac->index[d])
            at[d] = ac->start[d][i];
        else
            at[d] = kl_wadd(*ac->start[d], kl_wmul((int64_t)i, ac->step[d]));
    }
}

static int64_t offset(const struct kl_walk *w, const int64_t *at)
{
    int64_t off = w->view->off;
    for (uint32_t d = 0; d < w->ac->ndim; d++)
        off = kl_wadd(off, kl_wmul(at[d], w->view->str[d]));
    return off;
}

static void record_element(struct kl_walk *w, enum kl_code code, uint64_t lane)
{
    bool isnew;
    struct kl_finding *g = kl_found(w->r, w->s, code, w->view->root, lane, &isnew);
    if (!isnew)
        return;
    kl_coordinates(w->ac, lane, g->at);
    memcpy(g->ext, w->view->ext, sizeof g->ext);
    g->off = offset(w, g->at);
}

/* ---- extents ---- */

/* Is an index outside in a way that is a finding?  A section may pass the upper end of an
 * array; of a tile nothing may. */
static bool index_bad(const struct kl_walk *w, uint32_t d, int64_t i)
{
    int64_t ext = w->view->ext[d];
    if (kl_in_extent(i, ext))
        return false;
    return i < 0 || w->ac->step[d] == 0 || w->view->root == UINT32_MAX;
}

/* Could any element be bad?  An index that runs one way is worst at an end. */
static bool suspicious(const struct kl_walk *w)
{
    const struct kl_access *ac = w->ac;
    uint32_t axis = 0;
    for (uint32_t d = 0; d < ac->ndim; d++) {
        int64_t first = *ac->start[d], last = first;
        if (axis < ac->naxis && ac->axis_dim[axis] == d) {
            uint64_t n = ac->axis_n[axis++];
            if (__builtin_mul_overflow((int64_t)(n - 1), ac->step[d], &last) ||
                __builtin_add_overflow(first, last, &last))
                return true;
        }
        if (index_bad(w, d, first) || index_bad(w, d, last))
            return true;
    }
    return false;
}

static void check_extents(struct kl_walk *w)
{
    const struct kl_access *ac = w->ac;
    enum kl_code code = w->view->root == UINT32_MAX ? KL_K1205 : w->write ? KL_K1202 : KL_K1201;
    if (ac->fill || ac->guarded || !suspicious(w))
        return;
    for (uint64_t lane = 0; lane < w->s->n; lane++) {
        int64_t at[KL_MAX_DIMS];
        if (ac->mask && !ac->mask[lane])
            continue;
        kl_coordinates(ac, lane, at);
        bool bad = false;
        for (uint32_t d = 0; d < ac->ndim; d++)
            bad |= index_bad(w, d, at[d]);
        if (bad)
            record_element(w, code, lane);
    }
}

/* ---- memory ---- */

static bool unbounded(const struct kl_walk *w)
{
    for (uint32_t d = 0; d < w->ac->ndim; d++)
        if (w->view->ext[d] == INT64_MAX)
            return true;
    return false;
}

static uint8_t *shadow_of(const struct kl_mem *m, int64_t off, uint32_t bytes)
{
    return m->shadow + (off * (int64_t)bytes - m->shadow_at);
}

/* The elements of a row that lie inside the extents: are they in the memory, and have those
 * that are read a value? */
static void check_row(struct kl_walk *w, uint64_t lane, uint64_t n, int64_t off, uint64_t a,
                      uint64_t b)
{
    (void)n;
    const struct kl_mem *m = w->mem;
    const kl_m_bool *mask = w->ac->mask;
    uint32_t bytes = w->ac->bytes;
    int64_t es = w->naxis ? w->es[w->naxis - 1] : 0;
    unsigned checks = w->r->checks;
    bool fits = kl_run_fits(m, off, es, a, b), reads = !w->write && checks & KILN_CHECK_UNINIT;
    if (m->race)
        kl_race_row(w, lane, off, a, b);
    off = kl_wadd(off, kl_wmul((int64_t)a, es));
    if (fits && es == 1 && !mask) {
        if (!m->shadow || a == b)
            return;
        uint8_t *x = shadow_of(m, off, bytes);
        if (w->write) {
            memset(x, 1, (b - a) * bytes);
            return;
        }
        if (!reads || !memchr(x, 0, (b - a) * bytes))
            return;
    }
    for (uint64_t i = a; i < b; i++, off = kl_wadd(off, es)) {
        if (mask && !mask[lane + i])
            continue;
        if (off < m->first || off > m->last) {
            if (checks & KILN_CHECK_BOUNDS)
                record_element(w, unbounded(w) ? KL_K1203 : KL_K1204, lane + i);
        } else if (m->shadow) {
            uint8_t *x = shadow_of(m, off, bytes);
            if (w->write)
                memset(x, 1, bytes);
            else if (reads && memchr(x, 0, bytes))
                record_element(w, KL_K1401, lane + i);
        }
    }
}

/* ---- two elements of a store at one place ---- */

/* Are all offsets different?  Sure if each axis steps over all that the smaller ones cover. */
static bool disjoint(const struct kl_walk *w)
{
    wide covered = 0, step[KL_MAX_RANK];
    uint32_t order[KL_MAX_RANK];
    for (uint32_t k = 0; k < w->naxis; k++) {
        step[k] = w->es[k] < 0 ? -(wide)w->es[k] : w->es[k];
        uint32_t i = k;
        for (; i > 0 && step[order[i - 1]] > step[k]; i--)
            order[i] = order[i - 1];
        order[i] = k;
        if (w->wild[k])
            return false;
    }
    for (uint32_t i = 0; i < w->naxis; i++) {
        if (step[order[i]] <= covered)
            return false;
        covered += step[order[i]] * (wide)(w->n[order[i]] - 1);
    }
    return true;
}

struct placed {
    int64_t off;
    uint64_t lane;
};

static void place_row(struct kl_walk *w, uint64_t lane, uint64_t n, int64_t off, uint64_t a,
                      uint64_t b)
{
    (void)n;
    struct placed **to = w->user;
    int64_t es = w->naxis ? w->es[w->naxis - 1] : 0;
    for (uint64_t i = a; i < b; i++)
        if (!w->ac->mask || w->ac->mask[lane + i])
            *(*to)++ = (struct placed){kl_wadd(off, kl_wmul((int64_t)i, es)), lane + i};
}

static int by_place(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;
    if (a->off != b->off)
        return a->off < b->off ? -1 : 1;
    return a->lane < b->lane ? -1 : a->lane > b->lane;
}

/* Elements that were placed: do two of one place differ? */
static void find_collisions(struct kl_walk *w, struct placed *all, struct placed *end)
{
    size_t bytes = w->ac->bytes;
    bool up = true;
    for (struct placed *p = all; p + 1 < end && up; p++)
        up = p[0].off < p[1].off;
    if (up) /* as most are */
        return;
    qsort(all, (size_t)(end - all), sizeof *all, by_place);
    for (struct placed *p = all; p + 1 < end; p++)
        if (p[0].off == p[1].off &&
            memcmp(w->tile + p[0].lane * bytes, w->tile + p[1].lane * bytes, bytes) != 0)
            record_element(w, KL_K1303, p[1].lane);
}

static void check_collisions(struct kl_walk *w)
{
    if (w->s->n < 2 || disjoint(w))
        return;
    struct placed *all = kl_temp(w->r, KL_TEMP_C, w->s->n * sizeof *all), *end = all;
    w->user = &end;
    kl_walk_rows(w, place_row);
    find_collisions(w, all, end);
}

void kl_check_access(struct kl_walk *w)
{
    if (w->r->checks & KILN_CHECK_BOUNDS)
        check_extents(w);
    if (w->view->root == UINT32_MAX)
        return;
    if (w->write && w->r->checks & KILN_CHECK_BOUNDS)
        check_collisions(w);
    kl_walk_rows(w, check_row);
}

/* ---- element by element ---- */

/* One element that lies inside the extents: is it in the memory, has it a value? */
static void check_one(struct kl_walk *w, uint64_t lane, int64_t off, bool reads)
{
    const struct kl_mem *m = w->mem;
    unsigned checks = w->r->checks;
    if (off < m->first || off > m->last) {
        if (checks & KILN_CHECK_BOUNDS)
            record_element(w, unbounded(w) ? KL_K1203 : KL_K1204, lane);
        return;
    }
    if (m->race)
        kl_race_one(w, lane, off);
    if (!m->shadow)
        return;
    uint8_t *x = shadow_of(m, off, w->ac->bytes);
    if (reads && checks & KILN_CHECK_UNINIT && memchr(x, 0, w->ac->bytes))
        record_element(w, KL_K1401, lane);
    if (w->write)
        memset(x, 1, w->ac->bytes);
}

void kl_check_each(struct kl_walk *w)
{
    const struct kl_access *ac = w->ac;
    uint16_t op = kl_in(w->r->f, w->s->val)->op;
    bool bounds = w->r->checks & KILN_CHECK_BOUNDS, reads = op != KL_OP_store && op != KL_OP_atomic_store;
    bool places = bounds && op == KL_OP_store;
    struct placed *all = places ? kl_temp(w->r, KL_TEMP_C, w->s->n * sizeof *all) : NULL, *end = all;
    for (uint64_t lane = 0; lane < w->s->n; lane++) {
        int64_t at[KL_MAX_DIMS];
        if (ac->mask && !ac->mask[lane])
            continue;
        kl_coordinates(ac, lane, at);
        bool inside = true, bad = false;
        for (uint32_t d = 0; d < ac->ndim; d++) {
            inside &= kl_in_extent(at[d], w->view->ext[d]);
            bad |= index_bad(w, d, at[d]);
        }
        if (bad && bounds && !ac->fill && !ac->guarded)
            record_element(w, w->write ? KL_K1202 : KL_K1201, lane);
        if (!inside)
            continue;
        int64_t off = offset(w, at);
        check_one(w, lane, off, reads);
        if (places)
            *end++ = (struct placed){off, lane};
    }
    if (places)
        find_collisions(w, all, end);
}

void kl_found_gather(struct kl_run *r, const struct kl_step *s, uint64_t lane, int64_t at)
{
    bool isnew;
    struct kl_finding *g = kl_found(r, s, KL_K1205, UINT32_MAX, lane, &isnew);
    if (!isnew)
        return;
    g->at[0] = at;
    g->ext[0] = (int64_t)s->u.ax.n;
}

/* ---- views ---- */

/* Offsets of the first and last element.  false: no elements, or no bound. */
static bool cover(const struct kl_view *v, uint32_t ndim, wide *lo, wide *hi)
{
    *lo = *hi = v->off;
    for (uint32_t d = 0; d < ndim; d++) {
        if (v->ext[d] <= 0 || v->ext[d] == INT64_MAX)
            return false;
        wide far = (wide)(v->ext[d] - 1) * v->str[d];
        *(far < 0 ? lo : hi) += far;
    }
    return true;
}

static int64_t clip(wide x)
{
    return x > INT64_MAX ? INT64_MAX : x < INT64_MIN ? INT64_MIN : (int64_t)x;
}

/* A view of a parameter is the launch's to check; of another view it must cover no more. */
void kl_check_view(struct kl_run *r, const struct kl_step *s)
{
    const struct kl_view *v = s->out, *parent = s->u.view.parent;
    wide lo, hi, plo, phi;
    if (!parent || !cover(v, s->u.view.ndim, &lo, &hi))
        return;
    if (!cover(parent, s->u.view.parent_ndim, &plo, &phi)) {
        for (uint32_t d = 0; d < s->u.view.parent_ndim; d++)
            if (parent->ext[d] == INT64_MAX)
                return;
        plo = parent->off, phi = plo - 1; /* an empty parent */
    }
    if (lo >= plo && hi <= phi)
        return;
    bool isnew;
    struct kl_finding *g = kl_found(r, s, KL_K1204, v->root, 0, &isnew);
    if (!isnew)
        return;
    g->span[0] = clip(lo), g->span[1] = clip(hi);
    g->outer[0] = clip(plo), g->outer[1] = clip(phi);
}
