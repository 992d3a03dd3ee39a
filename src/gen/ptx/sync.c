/* sync.c - barriers: the order of effects on global arrays, and the reuse of shared memory.
 *
 * Shared memory is used in two regions in turn.  An operation writes one, passes a barrier and
 * reads it; the reads are over for all threads at the next barrier, which is that of the next
 * operation.  So `pending` holds what was read or written since the last barrier; who wants to
 * write what others may still read passes a barrier first.  A loop must end with no more
 * pending than it began with, else a barrier stands at its end. */
#include "gen/ptx/ptx.h"

void kl_px_barrier(struct pgen *g)
{
    kl_px(g, "bar.sync 0");
    kl_px_trace_barrier(g);
    if (g->clog2) { /* the other CTAs go on */
        g->p.dirty &= 0x80;
        return;
    }
    memset(&g->p, 0, sizeof g->p);
    g->since.n = 0;
}

/* Between accesses to global memory. */
static void order_barrier(struct pgen *g)
{
    if (g->clog2)
        kl_px_cluster_barrier(g);
    else
        kl_px_barrier(g);
}

/* What is large has the first region, so that not both become large. */
enum { LARGE = 24 * 1024 };

opnd kl_px_region(struct pgen *g, uint32_t bytes, uint32_t *which)
{
    if (g->in_block)
        kl_px_unsupported(g, "an operation that moves data between threads inside a reduction");
    uint32_t k = bytes > LARGE ? 0 : g->region_next;
    if (bytes <= LARGE && g->p.dirty >> k & 1 && !(g->p.dirty >> (1 - k) & 1))
        k = 1 - k;
    if (g->p.dirty >> k & 1)
        kl_px_barrier(g);
    g->region_next = 1 - k;
    bytes = (bytes + 15) & ~15u;
    if (bytes > g->region_bytes[k])
        g->region_bytes[k] = bytes;
    *which = k;
    return kl_px_region_base(g, k);
}

opnd kl_px_region_base(struct pgen *g, uint32_t k)
{
    /* region 1 begins behind region 0, whose size is known at the end: a symbol */
    if (k)
        return kl_px_once(g, CL_B32, "add.u32 $, %s, KL_REGION_BYTES", g->smem);
    return g->clog2 ? kl_px_once(g, CL_B32, "add.u32 $, %s, %u", g->smem, MBARRIERS) : g->smem;
}

static bool same_access(struct pgen *g, kl_val a, kl_val b)
{
    const kl_fn *f = g->f;
    const struct kl_ins *x = kl_in(f, a), *y = kl_in(f, b);
    kl_val u = kl_arg(f, a, 0), w = kl_arg(f, b, 0);
    const struct pview *p = g->view[u.id], *q = g->view[w.id];
    if (p->root != q->root || p->ndim != q->ndim || p->off != q->off)
        return false;
    if (x->attr.access.n != y->attr.access.n || kl_access_indices(f, a) || kl_is_atomic(x->op) ||
        kl_is_atomic(y->op)) /* by an index tile two threads may reach one place */
        return false;
    for (uint32_t d = 0; d < p->ndim; d++)
        if (p->str[d].id != q->str[d].id || kl_arg(f, a, 1 + d).id != kl_arg(f, b, 1 + d).id ||
            f->aux[x->attr.access.at + d] != f->aux[y->attr.access.at + d])
            return false;
    return true;
}

/* The layout that an access happens in; a store takes its value's. */
static const kl_layout *layout_of(struct pgen *g, kl_val v)
{
    return g->lay[v.id];
}

static uint64_t arrays(struct pgen *g, kl_val v)
{
    uint32_t root = g->view[kl_arg(g->f, v, 0).id]->root;
    if (!g->f->may_alias)
        return g->f->param[root].written ? UINT64_C(1) << (root < 63 ? root : 63) : 0;
    return 1; /* const arrays and written ones may be one memory */
}

static bool writes(struct pgen *g, kl_val v)
{
    return (kl_ops[kl_in(g->f, v)->op].flags & KL_F_WRITE) != 0;
}

void kl_px_order(struct pgen *g, kl_val v)
{
    bool store = writes(g, v);
    uint64_t mine = arrays(g, v);
    uint64_t against = g->p.write | (store ? g->p.read : 0);
    if (against & mine) {
        /* every access since the barrier that conflicts must be the same place for place */
        bool same = !g->f->may_alias;
        for (uint32_t i = 0; i < g->since.n && same; i++) {
            kl_val o = g->since.v[i];
            if (!(arrays(g, o) & mine) || (!store && !writes(g, o)))
                continue;
            /* of replicas one writes, and all read */
            same = same_access(g, o, v) && layout_of(g, o) == layout_of(g, v) && layout_of(g, v) &&
                   !kl_px_replicas(layout_of(g, v));
        }
        /* what loops left behind is not in the list */
        if (!same || (g->p.dirty & 0x80))
            order_barrier(g);
    }
    *(store ? &g->p.write : &g->p.read) |= mine;
    kl_push(g->a, &g->since, v);
}

struct pending kl_px_enter_loop(struct pgen *g)
{
    /* the list of accesses does not hold for later trips */
    if (g->p.read | g->p.write)
        g->p.dirty |= 0x80;
    /* Exchanges of a cluster take the regions in turn: as if the one that comes second had been
     * read in an earlier trip, a trip with an even number of them needs no barrier at its end. */
    if (g->clog2) {
        g->p.dirty |= (uint8_t)(1u << (1 - g->region_next));
        g->p.far |= (uint8_t)(1u << (1 - g->region_next));
    }
    return g->p;
}

void kl_px_end_loop(struct pgen *g, const struct pending *head)
{
    if ((g->p.far & ~head->far) || (g->p.read & ~head->read) || (g->p.write & ~head->write))
        order_barrier(g);
    else if (g->p.dirty & ~head->dirty)
        kl_px_barrier(g);
    g->p.dirty |= head->dirty;
    g->p.far |= head->far;
    g->p.read |= head->read;
    g->p.write |= head->write;
    if (g->p.read | g->p.write)
        g->p.dirty |= 0x80;
}
