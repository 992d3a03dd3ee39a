/* memory.c - views, loads, stores, inside.
 *
 * An access computes once, for all threads, where its section begins and how much of each axis
 * lies inside; then a thread adds its own coordinates, and each register a constant.  If the
 * whole section is inside, loads and stores are not masked.  Loads of a tile are all issued
 * before anything is unpacked. */
#include <stdlib.h>

#include "gen/ptx/ptx.h"

void kl_px_view(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_type *t = kl_type_of(f, v);
    kl_val a = kl_arg(f, v, 0);
    struct pview *w = kl_new(g->a, struct pview);
    const struct pview *p = g->view[a.id];
    w->root = p ? p->root : kl_root(f, a);
    w->direct = !p;
    w->ndim = t->rank;
    for (uint32_t d = 0; d < t->rank; d++) {
        w->ext[d] = kl_arg(f, v, 2 + d);
        w->str[d] = kl_arg(f, v, 2 + t->rank + d);
    }
    opnd off = kl_px_scalar(g, kl_arg(f, v, 1));
    w->off = strcmp(off, "0") == 0 ? NULL : off;
    if (p && p->off)
        w->off = w->off ? kl_px_set(g, CL_B64, "add.s64 $, %s, %s", w->off, p->off) : p->off;
    g->view[v.id] = w;
}

/* ---- an access ---- */

struct axis {
    uint32_t n, dim; /* size; the array's dimension */
    int64_t step;
    bool check;      /* some element may lie outside */
    bool index;      /* an index tile stands here */
    bool dead;       /* the size is no power of two: places beyond it are dead */
    opnd len;        /* step 1: b32, coordinate - lo below len is inside */
    opnd lo;         /* b32 or NULL for 0 */
    opnd ext, start; /* other steps: b64 */
    opnd bytes;      /* bytes from one element to the next, if not constant; b64, b32 under i32 */
    int64_t kbytes;  /* if bytes is NULL */
};

struct row_addr {
    uint32_t coord;
    opnd addr;
};

struct axis_in {
    uint32_t axis, coord;
    opnd p;
};

struct access {
    kl_val v;
    const struct pview *w;
    enum kl_elem e;
    uint32_t es, naxis, vec; /* vec: log2 of the elements of one move */
    const kl_layout *l;      /* NULL: one element */
    struct axis ax[KL_MAX_RANK];
    opnd ok;      /* the scalar subscripts are inside; NULL: always */
    opnd whole;   /* the whole section is inside; NULL: always */
    bool never_whole;
    opnd addr;    /* of the thread's register 0 */
    struct pindex *index; /* index tiles; NULL: none */
    KL_VEC(struct row_addr) rows;
    KL_VEC(struct axis_in) preds;
};

static bool const_of(const struct pgen *g, kl_val v, int64_t *k)
{
    const struct kl_ins *in = kl_in(g->f, v);
    if (in->op != KL_OP_const)
        return false;
    *k = (int64_t)in->attr.bits;
    return true;
}

static opnd and_pred(struct pgen *g, opnd a, opnd b)
{
    if (!a || !b)
        return a ? a : b;
    return kl_px_set(g, CL_P, "and.pred $, %s, %s", a, b);
}

/* An extent as it counts: at least 0; NULL: no bound. */
static opnd extent(struct pgen *g, kl_val e)
{
    int64_t k;
    if (const_of(g, e, &k))
        return k == INT64_MAX ? NULL : kl_px_int(g, k < 0 ? 0 : k);
    return kl_px_set(g, CL_B64, "max.s64 $, %s, 0", kl_px_scalar(g, e));
}

static void need(struct pgen *g, struct access *a, opnd p)
{
    a->whole = and_pred(g, a->whole, p);
}

/* How much of an axis of step 1 is inside. */
static void unit_axis(struct pgen *g, struct access *a, struct axis *x, kl_val start)
{
    kl_val ev = a->w->ext[x->dim];
    int64_t s = 0, k = 0;
    bool cs = const_of(g, start, &s), ce = const_of(g, ev, &k);
    opnd e = extent(g, ev);
    x->check = e != NULL;
    if (!e || (cs && ce && s >= 0 && k >= 0 && s <= k && k - s >= (int64_t)x->n)) {
        x->check = x->dead;
        if (x->check)
            x->len = kl_px_int(g, x->n);
        return;
    }
    opnd st = kl_px_inreg(g, CL_B64, kl_px_scalar(g, start));
    opnd out = kl_px_set(g, CL_P, "setp.ge.s64 $, %s, %s", st, e);
    opnd d = kl_px_set(g, CL_B64, "sub.s64 $, %s, %s", e, st);
    d = kl_px_set(g, CL_B64, "min.u64 $, %s, %u", d, x->n);
    d = kl_px_set(g, CL_B64, "selp.b64 $, 0, %s, %s", d, out);
    opnd hi = kl_px_set(g, CL_B32, "cvt.u32.u64 $, %s", d);
    if (!g->ubits[start.id]) {
        opnd m = kl_px_set(g, CL_B64, "neg.s64 $, %s", st);
        opnd neg = kl_px_set(g, CL_P, "setp.lt.s64 $, %s, 0", st);
        m = kl_px_set(g, CL_B64, "min.u64 $, %s, %u", m, x->n);
        m = kl_px_set(g, CL_B64, "selp.b64 $, %s, 0, %s", m, neg);
        x->lo = kl_px_set(g, CL_B32, "cvt.u32.u64 $, %s", m);
        x->len = kl_px_set(g, CL_B32, "sub.u32 $, %s, %s", hi, x->lo);
    } else {
        x->len = hi;
    }
    need(g, a, kl_px_set(g, CL_P, "setp.eq.u32 $, %s, %u", x->len, x->n));
}

static void strided_axis(struct pgen *g, struct access *a, struct axis *x, kl_val start)
{
    x->ext = extent(g, a->w->ext[x->dim]);
    x->start = kl_px_inreg(g, CL_B64, kl_px_scalar(g, start));
    x->check = x->ext || x->dead;
    if (!x->ext)
        return;
    x->ext = kl_px_inreg(g, CL_B64, x->ext);
    opnd end = kl_px_set(g, CL_B64, "add.s64 $, %s, %lld", x->start,
                         (long long)(x->step * (int64_t)(x->n - 1)));
    need(g, a, kl_px_set(g, CL_P, "setp.lt.u64 $, %s, %s", x->start, x->ext));
    need(g, a, kl_px_set(g, CL_P, "setp.lt.u64 $, %s, %s", end, x->ext));
}

/* start * stride added to an offset in elements (NULL: 0). */
static opnd add_product(struct pgen *g, opnd sum, kl_val start, kl_val str)
{
    int64_t s = 0, k = 0;
    bool cs = const_of(g, start, &s), ck = const_of(g, str, &k);
    if ((cs && s == 0) || (ck && k == 0))
        return sum;
    opnd a = kl_px_scalar(g, start), b = kl_px_scalar(g, str);
    if (cs && ck)
        a = kl_px_int(g, s * k), b = "1", ck = true, k = 1;
    if (ck && k == 1)
        return sum ? kl_px_set(g, CL_B64, "add.s64 $, %s, %s", sum, a) : a;
    if (!kl_px_isreg(a)) {
        opnd t = a;
        a = b, b = t;
    }
    return sum ? kl_px_set(g, CL_B64, "mad.lo.s64 $, %s, %s, %s", a, b, sum)
               : kl_px_set(g, CL_B64, "mul.lo.s64 $, %s, %s", a, b);
}

static void addresses(struct pgen *g, struct access *a)
{
    const kl_fn *f = g->f;
    opnd sum = a->w->off;
    for (uint32_t d = 0; d < a->w->ndim; d++)
        if (!a->index || !kl_access_index(f, a->v, d))
            sum = add_product(g, sum, kl_arg(f, a->v, 1 + d), a->w->str[d]);
    opnd base = g->base[a->w->root];
    uint32_t log2 = (uint32_t)__builtin_ctz(a->es);
    if (sum && kl_px_isreg(sum)) {
        if (log2)
            sum = kl_px_set(g, CL_B64, "shl.b64 $, %s, %u", sum, log2);
        base = kl_px_set(g, CL_B64, "add.s64 $, %s, %s", base, sum);
    } else if (sum) {
        base = kl_px_set(g, CL_B64, "add.s64 $, %s, %lld", base,
                         (long long)(strtoll(sum, NULL, 10) * (int64_t)a->es));
    }
    for (uint32_t i = 0; i < a->naxis && a->l; i++) {
        struct axis *x = &a->ax[i];
        int64_t k;
        if (x->index)
            continue;
        opnd t = kl_px_thread_axis(g, a->l, i);
        if (const_of(g, a->w->str[x->dim], &k)) {
            x->kbytes = k * x->step * (int64_t)a->es;
            if (t && x->kbytes) {
                bool small = x->kbytes > INT32_MIN && x->kbytes <= INT32_MAX;
                opnd c = small ? kl_px_once(g, CL_B64, "mul.wide.s32 $, %s, %lld", t, (long long)x->kbytes)
                               : NULL;
                if (!c) {
                    opnd w = kl_px_once(g, CL_B64, "cvt.u64.u32 $, %s", t);
                    c = kl_px_once(g, CL_B64, "mul.lo.s64 $, %s, %lld", w, (long long)x->kbytes);
                }
                base = kl_px_set(g, CL_B64, "add.s64 $, %s, %s", base, c);
            }
            continue;
        }
        opnd s = kl_px_scalar(g, a->w->str[x->dim]);
        x->bytes = kl_px_set(g, CL_B64, "mul.lo.s64 $, %s, %lld", s,
                             (long long)(x->step * (int64_t)a->es));
        if (g->o->i32) /* offsets inside fit 31 bits; what lies outside is not accessed */
            x->bytes = kl_px_set(g, CL_B32, "cvt.u32.u64 $, %s", x->bytes);
        if (t && g->o->i32) {
            base = kl_px_set(g, CL_B64, "mad.wide.s32 $, %s, %s, %s", t, x->bytes, base);
        } else if (t) {
            opnd w = kl_px_once(g, CL_B64, "cvt.u64.u32 $, %s", t);
            base = kl_px_set(g, CL_B64, "mad.lo.s64 $, %s, %s, %s", w, x->bytes, base);
        }
    }
    a->addr = base;
}

static struct access prepare(struct pgen *g, kl_val v, const kl_layout *l, bool address)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    kl_val u = kl_arg(f, v, 0);
    struct access a = {.v = v, .w = g->view[u.id], .l = l};
    a.e = (enum kl_elem)kl_type_of(f, u)->elem;
    a.es = kl_elems[a.e].bytes;
    const struct kl_type *t = kl_access_tile(f, v);
    bool scattered = kl_access_scattered(f, v);
    if (l && kl_access_indices(f, v)) {
        a.index = kl_px_indices(g, v, l, a.w, a.es);
        a.never_whole = true;
    }
    for (uint32_t d = 0; d < a.w->ndim; d++) {
        int64_t step = f->aux[in->attr.access.at + d];
        kl_val start = kl_arg(f, v, 1 + d);
        bool index = kl_access_index(f, v, d);
        if ((step == 0 && !index) || !l) {
            if (step)
                a.naxis++;
            int64_t s, k;
            opnd e = extent(g, a.w->ext[d]);
            if (!e || (const_of(g, start, &s) && const_of(g, a.w->ext[d], &k) && s >= 0 && s < k))
                continue;
            opnd st = kl_px_inreg(g, CL_B64, kl_px_scalar(g, start));
            a.ok = and_pred(g, a.ok, kl_px_set(g, CL_P, "setp.lt.u64 $, %s, %s", st, e));
            continue;
        }
        if (index && scattered)
            continue;
        struct axis *x = &a.ax[a.naxis];
        if (index) {
            *x = (struct axis){.n = t->dim[a.naxis], .dim = d, .index = true};
            a.naxis++;
            continue;
        }
        *x = (struct axis){.n = t->dim[a.naxis], .dim = d, .step = step};
        a.naxis++;
        x->dead = (x->n & (x->n - 1)) != 0;
        a.never_whole |= x->dead;
        if (step == 1)
            unit_axis(g, &a, x, start);
        else
            strided_axis(g, &a, x, start);
    }
    a.whole = and_pred(g, a.whole, a.ok);
    if (l && kl_px_access_vec(g, v)) {
        uint32_t c = kl_px_access_vec(g, v), m = kl_layout_vec(l, l->rank - 1u);
        a.vec = c < m ? c : m;
        while (a.vec && (t->dim[t->rank - 1] & ((1u << a.vec) - 1)))
            a.vec--;
        if (a.es == 1 && a.vec < 2)
            a.vec = 0;
    }
    if (address)
        addresses(g, &a);
    return a;
}

/* Predicate of coordinate rc (of a register) on an axis. */
static opnd axis_pred(struct pgen *g, struct access *a, uint32_t i, uint32_t rc)
{
    struct axis *x = &a->ax[i];
    for (uint32_t k = 0; k < a->preds.n; k++)
        if (a->preds.v[k].axis == i && a->preds.v[k].coord == rc)
            return a->preds.v[k].p;
    opnd t = kl_px_thread_axis(g, a->l, i), p;
    if (x->step == 1) {
        opnd c = t ? t : "0";
        if (x->lo)
            c = kl_px_set(g, CL_B32, "sub.u32 $, %s, %s", c, x->lo);
        if (rc)
            c = kl_px_isreg(c) ? kl_px_set(g, CL_B32, "add.u32 $, %s, %u", c, rc) : kl_px_int(g, rc);
        p = kl_px_set(g, CL_P, "setp.lt.u32 $, %s, %s", kl_px_inreg(g, CL_B32, c), x->len);
    } else {
        opnd c = t ? kl_px_once(g, CL_B64, "cvt.u64.u32 $, %s", t) : NULL;
        opnd at = c ? kl_px_set(g, CL_B64, "mad.lo.s64 $, %s, %lld, %s", c, (long long)x->step, x->start)
                    : x->start;
        if (rc)
            at = kl_px_set(g, CL_B64, "add.s64 $, %s, %lld", at, (long long)(x->step * (int64_t)rc));
        p = x->ext ? kl_px_set(g, CL_P, "setp.lt.u64 $, %s, %s", at, x->ext) : NULL;
        if (x->dead) {
            opnd r = t ? kl_px_set(g, CL_B32, "add.u32 $, %s, %u", t, rc) : kl_px_set(g, CL_B32, "mov.u32 $, %u", rc);
            p = and_pred(g, p, kl_px_set(g, CL_P, "setp.lt.u32 $, %s, %u", r, x->n));
        }
    }
    kl_push(g->a, &a->preds, ((struct axis_in){i, rc, p}));
    return p;
}

/* Predicate of a register (the first of a vector); NULL: always inside. */
static opnd inside(struct pgen *g, struct access *a, uint32_t reg)
{
    opnd p = a->ok;
    for (uint32_t i = 0; i < a->naxis && a->l; i++)
        if (a->ax[i].check)
            p = and_pred(g, p, axis_pred(g, a, i, kl_coord_axis(a->l, kl_px_coord(a->l, reg), i)));
    if (a->index)
        p = and_pred(g, p, kl_px_index_in(g, a->index, reg));
    return p;
}

/* Address and constant offset of a register. */
static opnd place(struct pgen *g, struct access *a, uint32_t reg, int64_t *off)
{
    *off = 0;
    if (!a->l)
        return a->addr;
    uint32_t w = kl_px_coord(a->l, reg), key = 0;
    for (uint32_t i = 0; i < a->naxis; i++) {
        uint32_t rc = kl_coord_axis(a->l, w, i);
        if (a->ax[i].bytes || a->ax[i].index)
            key |= rc << a->l->off[i];
        else
            *off += (int64_t)rc * a->ax[i].kbytes;
    }
    if (a->index && !a->naxis) /* index tiles everywhere */
        key = w;
    if (!key && !a->index)
        return a->addr;
    for (uint32_t k = 0; k < a->rows.n; k++)
        if (a->rows.v[k].coord == key)
            return a->rows.v[k].addr;
    opnd at = a->addr;
    for (uint32_t i = 0; i < a->naxis; i++) {
        uint32_t rc = a->ax[i].index ? 0 : kl_coord_axis(a->l, key, i);
        if (rc)
            at = kl_px_set(g, CL_B64, "mad.%s.s%d $, %s, %u, %s", g->o->i32 ? "wide" : "lo",
                           g->o->i32 ? 32 : 64, a->ax[i].bytes, rc, at);
    }
    if (a->index)
        at = kl_px_index_at(g, a->index, reg, at);
    kl_push(g->a, &a->rows, ((struct row_addr){key, at}));
    return at;
}

/* ---- moves of a vector ---- */

struct chunk {
    uint32_t n; /* registers of the move */
    opnd r[4];
};

struct shape_of_move {
    enum cls c;       /* of the registers that move */
    const char *type; /* in the instruction */
    uint32_t n;
};

static struct shape_of_move move_shape(enum kl_elem e, uint32_t vec)
{
    uint32_t es = kl_elems[e].bytes, bytes = es << vec;
    enum cls c = kl_px_cls(e);
    if (es == 1)
        return vec ? (struct shape_of_move){CL_B32, "b32", bytes / 4}
                   : (struct shape_of_move){CL_B32, kl_elems[e].kind == KL_KIND_SINT ? "s8" : "u8", 1};
    if (es == 2)
        return vec ? (struct shape_of_move){CL_B32, "b32", bytes / 4}
                   : (struct shape_of_move){CL_B16, "b16", 1};
    return (struct shape_of_move){c, kl_px_b(c), 1u << vec};
}

static const char *vector_suffix(uint32_t n)
{
    return n == 1 ? "" : n == 2 ? ".v2" : ".v4";
}

/* Elements (registers of class of e) packed as a move wants them. */
static struct chunk pack(struct pgen *g, enum kl_elem e, uint32_t vec, const opnd *x)
{
    struct shape_of_move m = move_shape(e, vec);
    struct chunk c = {.n = m.n};
    uint32_t es = kl_elems[e].bytes;
    for (uint32_t i = 0; i < m.n; i++) {
        if (es == 2 && vec) {
            opnd hi = kl_px_inreg(g, CL_B16, x[2 * i + 1]);
            opnd lo = kl_px_inreg(g, CL_B16, x[2 * i]);
            c.r[i] = kl_px_set(g, CL_B32, "mov.b32 $, {%s, %s}", lo, hi);
        } else if (es == 1) {
            opnd b[4];
            uint32_t n = vec ? 4 : 1;
            for (uint32_t k = 0; k < n; k++)
                b[k] = e == KL_bool ? kl_px_set(g, CL_B32, "selp.b32 $, 1, 0, %s", kl_px_inreg(g, CL_P, x[n * i + k]))
                                    : kl_px_inreg(g, CL_B32, x[n * i + k]);
            c.r[i] = b[0];
            if (vec) {
                opnd lo = kl_px_set(g, CL_B32, "prmt.b32 $, %s, %s, 64", b[0], b[1]);
                opnd hi = kl_px_set(g, CL_B32, "prmt.b32 $, %s, %s, 64", b[2], b[3]);
                c.r[i] = kl_px_set(g, CL_B32, "prmt.b32 $, %s, %s, 21520", lo, hi);
            }
        } else {
            c.r[i] = kl_px_inreg(g, m.c, x[i]);
        }
    }
    return c;
}

static void unpack(struct pgen *g, enum kl_elem e, uint32_t vec, const struct chunk *c, opnd *x)
{
    uint32_t es = kl_elems[e].bytes;
    for (uint32_t i = 0; i < c->n; i++) {
        if (es == 2 && vec) {
            x[2 * i] = kl_px_reg(g, CL_B16), x[2 * i + 1] = kl_px_reg(g, CL_B16);
            kl_px(g, "mov.b32 {%s, %s}, %s", x[2 * i], x[2 * i + 1], c->r[i]);
        } else if (es == 1) {
            for (uint32_t k = 0; k < (vec ? 4u : 1u); k++) {
                opnd b = vec ? kl_px_set(g, CL_B32, "bfe.%s $, %s, %u, 8",
                                         kl_elems[e].kind == KL_KIND_SINT ? "s32" : "u32", c->r[i], 8 * k)
                             : c->r[i];
                x[(vec ? 4 : 1) * i + k] = e == KL_bool ? kl_px_set(g, CL_P, "setp.ne.u32 $, %s, 0", b) : b;
            }
        } else {
            x[i] = c->r[i];
        }
    }
}

/* ---- load ---- */

static const char *load_op(struct pgen *g, const struct access *a)
{
    return g->f->may_alias || g->f->param[a->w->root].written ? "ld.global" : "ld.global.nc";
}

/* What the second-level cache is told: a word of the instruction and an operand of it.  It takes
 * PTX 7.4; sm_80 and sm_86 are written for drivers that know less, and go without. */
struct hint {
    const char *word, *operand;
};

static struct hint cache_hint(struct pgen *g, const struct kl_ins *in)
{
    uint8_t flags = in->attr.access.flags;
    if (!(flags & KL_ACC_EVICT) || g->o->arch < 89)
        return (struct hint){"", ""};
    opnd p = kl_px_once(g, CL_B64, "createpolicy.fractional.L2::evict_%s.b64 $, 0f3F800000",
                        flags & KL_ACC_EVICT_FIRST ? "first" : "last");
    return (struct hint){".L2::cache_hint", kl_px_fmt(g, ", %s", p)};
}

/* A scalar that others may be writing: one thread reads it for all. */
opnd kl_px_read_once(struct pgen *g, enum kl_elem e, opnd x)
{
    uint32_t which;
    enum cls c = kl_px_cls(e);
    opnd one = kl_px_first(g, NULL);
    if (g->clog2) {
        uint32_t bytes = kl_px_push_bytes(c);
        opnd to = kl_px_push_region(g, bytes, &which), r;
        kl_px_push_expect(g, which, bytes);
        for (uint32_t i = 0; i < g->ctas; i++)
            kl_px_push(g, c, which, to, kl_px_int(g, i), 0, &x, 1, one);
        kl_px_push_wait(g, which);
        r = kl_px_ld_shared(g, c, to, 0);
        kl_px_region_read(g, which);
        return r;
    }
    opnd at = kl_px_region(g, 16, &which);
    kl_px_st_shared(g, c, at, 0, x, one);
    kl_px_barrier(g);
    kl_px_region_read(g, which);
    return kl_px_ld_shared(g, c, at, 0);
}

void kl_px_load(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const kl_layout *l = g->lay[v.id];
    struct access a = prepare(g, v, l, true);
    uint32_t at = 1 + in->attr.access.n, nreg = l ? kl_layout_nreg(l) : 1;
    struct pval fill = {.r = kl_new_n(g->a, opnd, 1)}, mask = {0};
    bool has_mask = in->attr.access.flags & KL_ACC_MASK;
    fill.r[0] = kl_px_imm(g, a.e, 0);
    if (in->attr.access.flags & KL_ACC_FILL)
        fill = kl_px_in(g, kl_arg(f, v, at++), l);
    if (has_mask) {
        mask = kl_px_in(g, kl_arg(f, v, at), l);
        a.vec = 0;
    }
    kl_px_order(g, v); /* what changes layouts is done, and passes no barrier behind this */
    uint32_t n = nreg >> a.vec, each = 1u << a.vec;
    struct shape_of_move m = move_shape(a.e, a.vec);
    struct chunk *c = kl_new_n(g->a, struct chunk, n);
    for (uint32_t i = 0; i < n; i++) {
        c[i].n = m.n;
        for (uint32_t k = 0; k < m.n; k++)
            c[i].r[k] = kl_px_reg(g, m.c);
    }
    bool once = !l && (f->may_alias || f->param[a.w->root].written);
    opnd one = once ? kl_px_first(g, NULL) : NULL;
    bool masked = has_mask || a.whole || a.never_whole || once;
    /* Behind a reduction its operand mostly is alive in registers still: then the assembler must
     * be free to load a part and use it, which it is within a piece of straight code only. */
    bool late = g->folded && !g->nested && (g->clog2 || g->threads >= 512);
    bool split = !has_mask && a.whole && !a.never_whole && n > 2 && !late;
    struct hint h = cache_hint(g, in);
    const char *op = kl_px_fmt(g, "%s%s", load_op(g, &a), h.word), *vs = vector_suffix(m.n);
    uint32_t lm = 0, ld = 0;
    if (split) {
        lm = kl_px_new_label(g), ld = kl_px_new_label(g);
        /* addresses of rows serve both ways */
        for (uint32_t i = 0; i < n; i++) {
            int64_t off;
            place(g, &a, i << a.vec, &off);
        }
        kl_px(g, "@!%s bra $L%u", a.whole, lm);
    }
    if (split || !masked)
        for (uint32_t i = 0; i < n; i++) {
            int64_t off;
            opnd p = place(g, &a, i << a.vec, &off);
            kl_px(g, "%s%s.%s %s, [%s+%lld]%s", op, vs, m.type, kl_px_list(g, c[i].r, c[i].n), p, (long long)off,
                  h.operand);
        }
    if (split) {
        kl_px(g, "bra.uni $L%u", ld);
        kl_px_label(g, lm);
    }
    if (masked) {
        struct chunk fc = {0};
        opnd *x = kl_new_n(g->a, opnd, each);
        for (uint32_t i = 0; i < n; i++) {
            if (i == 0 || fill.l) {
                for (uint32_t k = 0; k < each; k++)
                    x[k] = kl_px_at(&fill, (i << a.vec) + k);
                if (a.e == KL_bool && !kl_px_isreg(x[0]))
                    fc = (struct chunk){m.n, {x[0][0] == '0' ? "0" : a.vec ? "16843009" : "1"}};
                else
                    fc = pack(g, a.e, a.vec, x);
                for (uint32_t k = 1; k < fc.n && a.e == KL_bool && !kl_px_isreg(x[0]); k++)
                    fc.r[k] = fc.r[0];
            }
            for (uint32_t k = 0; k < m.n; k++)
                kl_px(g, "mov.%s %s, %s", kl_px_b(m.c), c[i].r[k], fc.r[k]);
        }
        for (uint32_t i = 0; i < n; i++) {
            int64_t off;
            opnd p = inside(g, &a, i << a.vec);
            if (has_mask)
                p = and_pred(g, p, kl_px_inreg(g, CL_P, kl_px_at(&mask, i)));
            p = and_pred(g, p, one);
            opnd q = place(g, &a, i << a.vec, &off);
            kl_px(g, "%s%s%s%s%s.%s %s, [%s+%lld]%s", p ? "@" : "", p ? p : "", p ? " " : "", op, vs,
                  m.type, kl_px_list(g, c[i].r, c[i].n), q, (long long)off, h.operand);
        }
    }
    kl_px_trace_access(g, v, l, a.vec, once);
    if (split)
        kl_px_label(g, ld);
    opnd *r = kl_new_n(g->a, opnd, nreg);
    for (uint32_t i = 0; i < n; i++)
        unpack(g, a.e, a.vec, &c[i], r + ((size_t)i << a.vec));
    if (once)
        r[0] = kl_px_read_once(g, a.e, r[0]);
    g->val[v.id] = (struct pval){.l = l, .r = r};
}

/* ---- store ---- */

void kl_px_store(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const kl_layout *l = g->lay[v.id];
    kl_val xv = kl_arg(f, v, 1 + in->attr.access.n);
    struct pval x = kl_px_in(g, xv, l), mask = {0};
    bool has_mask = in->attr.access.flags & KL_ACC_MASK;
    if (has_mask)
        mask = kl_px_in(g, kl_arg(f, v, 2 + in->attr.access.n), l);
    struct access a = prepare(g, v, l, true);
    kl_px_order(g, v);
    if (has_mask)
        a.vec = 0;
    opnd first = kl_px_first(g, l);
    uint32_t n = (l ? kl_layout_nreg(l) : 1) >> a.vec, each = 1u << a.vec;
    struct shape_of_move m = move_shape(a.e, a.vec);
    struct chunk *c = kl_new_n(g->a, struct chunk, n);
    opnd *e = kl_new_n(g->a, opnd, each);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < each; k++)
            e[k] = kl_px_at(&x, (i << a.vec) + k);
        c[i] = pack(g, a.e, a.vec, e);
    }
    bool masked = has_mask || a.whole || a.never_whole;
    bool split = !has_mask && a.whole && !a.never_whole && n > 2;
    struct hint h = cache_hint(g, in);
    const char *vs = kl_px_fmt(g, "%s%s", h.word, vector_suffix(m.n));
    uint32_t lm = 0, ld = 0;
    if (split) {
        lm = kl_px_new_label(g), ld = kl_px_new_label(g);
        for (uint32_t i = 0; i < n; i++) {
            int64_t off;
            place(g, &a, i << a.vec, &off);
        }
        kl_px(g, "@!%s bra $L%u", a.whole, lm);
    }
    if (split || !masked)
        for (uint32_t i = 0; i < n; i++) {
            int64_t off;
            opnd p = place(g, &a, i << a.vec, &off);
            kl_px(g, "%s%s%sst.global%s.%s [%s+%lld], %s%s", first ? "@" : "", first ? first : "",
                  first ? " " : "", vs, m.type[0] == 's' ? "u8" : m.type, p, (long long)off,
                  kl_px_list(g, c[i].r, c[i].n), h.operand);
        }
    if (split) {
        kl_px(g, "bra.uni $L%u", ld);
        kl_px_label(g, lm);
    }
    if (masked)
        for (uint32_t i = 0; i < n; i++) {
            int64_t off;
            opnd p = inside(g, &a, i << a.vec);
            if (has_mask)
                p = and_pred(g, p, kl_px_inreg(g, CL_P, kl_px_at(&mask, i)));
            p = and_pred(g, p, first);
            opnd q = place(g, &a, i << a.vec, &off);
            kl_px(g, "%s%s%sst.global%s.%s [%s+%lld], %s%s", p ? "@" : "", p ? p : "", p ? " " : "", vs,
                  m.type[0] == 's' ? "u8" : m.type, q, (long long)off, kl_px_list(g, c[i].r, c[i].n),
                  h.operand);
        }
    kl_px_trace_access(g, v, l, a.vec, true);
    if (split)
        kl_px_label(g, ld);
}

void kl_px_inside(struct pgen *g, kl_val v)
{
    const kl_layout *l = g->lay[v.id];
    struct access a = prepare(g, v, l, false);
    uint32_t n = l ? kl_layout_nreg(l) : 1;
    opnd *r = kl_new_n(g->a, opnd, n);
    opnd yes = NULL;
    for (uint32_t i = 0; i < n; i++) {
        /* elements that one access may move are inside together */
        r[i] = i & ((1u << a.vec) - 1) ? r[i - 1] : inside(g, &a, i);
        if (!r[i])
            r[i] = yes ? yes : (yes = kl_px_once(g, CL_P, "setp.eq.u32 $, %s, %s", g->tid, g->tid));
    }
    g->val[v.id] = (struct pval){.l = l, .r = r};
}

void kl_px_places(struct pgen *g, kl_val v, const kl_layout *l, struct pplace *out)
{
    struct access a = prepare(g, v, l, true);
    for (uint32_t i = 0; i < (l ? kl_layout_nreg(l) : 1); i++) {
        out[i].p = inside(g, &a, i);
        out[i].addr = place(g, &a, i, &out[i].off);
    }
}
