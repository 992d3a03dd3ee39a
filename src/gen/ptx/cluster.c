/* cluster.c - what crosses the CTAs of a cluster: partial results of reductions, and scalars that
 * one thread reads for all.
 *
 * The sender writes to the shared memory of the others (st.async); each write also counts down an
 * mbarrier of the receiver, which waits for a known number of bytes.  So nothing is fenced, no
 * CTA waits for another without need, and a CTA may end as soon as all that it was sent has
 * arrived.  barrier.cluster would fence global memory each time.
 *
 * There is one mbarrier for each of the two regions of shared memory, and a bit of a register has
 * the parity of the phase it is in.  A region that was read can be written by others once all CTAs
 * are known to have read it: when the pushes to the other region have arrived, for every CTA
 * sends those behind its reads; else a barrier of the cluster stands between (`far` of sync.c).
 * Before the first push of a program all CTAs must run: each arrives at a barrier of the cluster
 * when it begins, and the wait stands before the first push, behind the loads. */
#include "gen/ptx/ptx.h"

void kl_px_cluster_barrier(struct pgen *g)
{
    kl_px_cluster_open(g);
    kl_px(g, "barrier.cluster.arrive.aligned");
    kl_px(g, "barrier.cluster.wait.aligned");
    memset(&g->p, 0, sizeof g->p);
    g->since.n = 0;
}

void kl_px_cluster_open(struct pgen *g)
{
    if (!g->opened)
        kl_px(g, "barrier.cluster.wait.aligned");
    g->opened = true;
}

/* ---- pushes ---- */

opnd kl_px_push_region(struct pgen *g, uint32_t bytes, uint32_t *which)
{
    uint32_t k = g->region_next;
    if (g->in_block)
        kl_px_unsupported(g, "an operation that moves data between threads inside a reduction");
    g->pushes = true;
    kl_px_cluster_open(g);
    if (g->p.far >> k & 1 && !(g->p.far >> (1 - k) & 1))
        k = 1 - k;
    if (g->p.far >> k & 1)
        kl_px_cluster_barrier(g);
    g->region_next = 1 - k;
    bytes = (bytes + 15) & ~15u;
    if (bytes > g->region_bytes[k])
        g->region_bytes[k] = bytes;
    *which = k;
    return kl_px_region_base(g, k);
}

static opnd mbarrier(struct pgen *g, uint32_t k)
{
    return k ? kl_px_once(g, CL_B32, "add.u32 $, %s, %u", g->smem, 8 * k) : g->smem;
}

void kl_px_push_expect(struct pgen *g, uint32_t which, uint32_t bytes)
{
    opnd one = kl_px_once(g, CL_P, "setp.eq.u32 $, %s, 0", g->tid);
    kl_px(g, "@%s mbarrier.arrive.expect_tx.shared.b64 _, [%s], %u", one, mbarrier(g, which),
          bytes);
}

uint32_t kl_px_push_bytes(enum cls c)
{
    return c == CL_B64 || c == CL_F64 ? 8 : 4;
}

void kl_px_push(struct pgen *g, enum cls c, uint32_t which, opnd at, opnd cta, int64_t off,
                const opnd *v, uint32_t n, opnd pred)
{
    opnd w[4] = {NULL};
    bool wide = kl_px_push_bytes(c) == 8;
    for (uint32_t i = 0; i < n; i++) {
        opnd x = kl_px_inreg(g, c, v[i]);
        w[i] = c == CL_F64 ? kl_px_set(g, CL_B64, "mov.b64 $, %s", x)
               : wide      ? x
                           : kl_px_as32(g, c, x);
    }
    kl_px_trace_push(g, n * kl_px_push_bytes(c), at, cta, off, pred);
    /* not in the prologue: a register for each would be held over the whole program */
    opnd to = kl_px_set(g, CL_B32, "mapa.shared::cluster.u32 $, %s, %s", at, cta);
    opnd bar = kl_px_set(g, CL_B32, "mapa.shared::cluster.u32 $, %s, %s", mbarrier(g, which), cta);
    kl_px(
        g,
        "%s%s%sst.async.weak.shared::cluster.mbarrier::complete_tx::bytes%s.b%d [%s+%lld], %s, [%s]",
        pred ? "@" : "", pred ? pred : "", pred ? " " : "",
        n == 1   ? ""
        : n == 2 ? ".v2"
                 : ".v4",
        wide ? 64 : 32, to, (long long)off, kl_px_list(g, w, n), bar);
}

void kl_px_push_wait(struct pgen *g, uint32_t which)
{
    opnd bar = mbarrier(g, which), done = kl_px_reg(g, CL_P);
    uint32_t again = kl_px_new_label(g);
    if (!g->turns)
        g->turns = kl_px_reg(g, CL_B32); /* set at the entry */
    opnd turn = kl_px_set(g, CL_B32, which ? "shr.u32 $, %s, 1" : "and.b32 $, %s, 1", g->turns);
    kl_px_label(g, again);
    kl_px(g, "mbarrier.try_wait.parity.shared.b64 %s, [%s], %s", done, bar, turn);
    kl_px(g, "@!%s bra $L%u", done, again);
    kl_px(g, "xor.b32 %s, %s, %u", g->turns, g->turns, 1u << which);
}
