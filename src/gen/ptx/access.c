/* access.c - views; where an access touches memory, and which of its elements lie inside.
 *
 * It computes once, for all threads, where its section begins and how much of each axis lies
 * inside; then a thread adds its own coordinates, and each register a constant. */
#include <stdlib.h>

#include "gen/ptx/access.h"

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

/* ---- axes ---- */

static bool const_of(const struct pgen *g, kl_val v, int64_t *k)
{
    const struct kl_ins *in = kl_in(g->f, v);
    if (in->op != KL_OP_const)
        return false;
    *k = (int64_t)in->attr.bits;
    return true;
}

opnd kl_px_and(struct pgen *g, opnd a, opnd b)
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
    a->whole = kl_px_and(g, a->whole, p);
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

/* ---- addresses ---- */

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

struct access kl_px_access(struct pgen *g, kl_val v, const kl_layout *l, bool address)
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
            a.ok = kl_px_and(g, a.ok, kl_px_set(g, CL_P, "setp.lt.u64 $, %s, %s", st, e));
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
    a.whole = kl_px_and(g, a.whole, a.ok);
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

/* ---- registers ---- */

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
            p = kl_px_and(g, p, kl_px_set(g, CL_P, "setp.lt.u32 $, %s, %u", r, x->n));
        }
    }
    kl_push(g->a, &a->preds, ((struct axis_in){i, rc, p}));
    return p;
}

/* Predicate of a register (the first of a vector); NULL: always inside. */
opnd kl_px_inside_reg(struct pgen *g, struct access *a, uint32_t reg)
{
    opnd p = a->ok;
    for (uint32_t i = 0; i < a->naxis && a->l; i++)
        if (a->ax[i].check)
            p = kl_px_and(g, p, axis_pred(g, a, i, kl_coord_axis(a->l, kl_px_coord(a->l, reg), i)));
    if (a->index)
        p = kl_px_and(g, p, kl_px_index_in(g, a->index, reg));
    return p;
}

/* Address and constant offset of a register. */
opnd kl_px_place(struct pgen *g, struct access *a, uint32_t reg, int64_t *off)
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

/* ---- what others ask ---- */

void kl_px_inside(struct pgen *g, kl_val v)
{
    const kl_layout *l = g->lay[v.id];
    struct access a = kl_px_access(g, v, l, false);
    uint32_t n = l ? kl_layout_nreg(l) : 1;
    opnd *r = kl_new_n(g->a, opnd, n);
    opnd yes = NULL;
    for (uint32_t i = 0; i < n; i++) {
        /* elements that one access may move are inside together */
        r[i] = i & ((1u << a.vec) - 1) ? r[i - 1] : kl_px_inside_reg(g, &a, i);
        if (!r[i])
            r[i] = yes ? yes : (yes = kl_px_once(g, CL_P, "setp.eq.u32 $, %s, %s", g->tid, g->tid));
    }
    g->val[v.id] = (struct pval){.l = l, .r = r};
}

void kl_px_places(struct pgen *g, kl_val v, const kl_layout *l, struct pplace *out)
{
    struct access a = kl_px_access(g, v, l, true);
    for (uint32_t i = 0; i < (l ? kl_layout_nreg(l) : 1); i++) {
        out[i].p = kl_px_inside_reg(g, &a, i);
        out[i].addr = kl_px_place(g, &a, i, &out[i].off);
    }
}
