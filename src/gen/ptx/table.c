/* table.c - tiles of constants.
 *
 * They lie in global memory that the module brings, in the order of the layout's coordinate words:
 * what an axis lacks to a power of two is 0, so a thread's elements are its part of the word and the
 * registers' parts, which are constants.  A table begins with a sector.  Constant memory would be read
 * one address at a time. */
#include "gen/ptx/ptx.h"

/* Row-major number of the element at a coordinate word; UINT32_MAX: beyond an axis. */
static uint32_t element(const kl_layout *l, uint32_t word)
{
    uint32_t at = 0;
    for (uint32_t d = 0; d < l->rank; d++) {
        uint32_t x = kl_coord_axis(l, word, d);
        if (x >= l->dim[d])
            return UINT32_MAX;
        at = at * l->dim[d] + x;
    }
    return at;
}

void kl_px_table(struct pgen *g, kl_val v)
{
    const struct kl_ins *in = kl_in(g->f, v);
    const struct kl_type *t = kl_type_of(g->f, v);
    const int64_t *bits = g->f->aux + in->attr.aux.at;
    const kl_layout *l = g->lay[v.id];
    uint32_t n = l ? kl_layout_nreg(l) : 1;
    opnd *r = kl_new_n(g->a, opnd, n);
    g->val[v.id] = (struct pval){.l = l, .r = r};
    if (!l) {
        r[0] = kl_px_imm(g, (enum kl_elem)t->elem, (uint64_t)bits[0]);
        return;
    }
    enum cls c = kl_px_vcls(g, v);
    uint32_t bytes = kl_px_bytes(c), words = 1u << kl_layout_coord_bits(l);
    opnd name = kl_px_fmt(g, "%s_table%u", g->entry, g->ntable++);
    kl_putf(&g->data, ".global .align 32 .b%u %s[%u] = {", 8 * bytes, name, words);
    for (uint32_t w = 0; w < words; w++) {
        uint32_t at = element(l, w);
        uint64_t x = at == UINT32_MAX ? 0 : (uint64_t)bits[at];
        x &= bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;
        kl_putf(&g->data, "%s0x%llx", w ? w % 16 ? ", " : ",\n\t" : "", (unsigned long long)x);
    }
    kl_puts(&g->data, "};\n");
    opnd base = kl_px_once(g, CL_B64, "mov.u64 $, %s", name);
    opnd thread = kl_px_thread(g, l, 0, kl_layout_coord_bits(l));
    if (thread) {
        opnd off = kl_px_once(g, CL_B64, "mul.wide.u32 $, %s, %u", thread, bytes);
        base = kl_px_once(g, CL_B64, "add.u64 $, %s, %s", base, off);
    }
    enum cls as = c == CL_P ? CL_B32 : c;
    for (uint32_t i = 0; i < n; i++) {
        r[i] = kl_px_set(g, as, "ld.global.nc.%s $, [%s+%u]", kl_px_b(as), base, kl_px_coord(l, i) * bytes);
        if (c == CL_P)
            r[i] = kl_px_set(g, CL_P, "setp.ne.u32 $, %s, 0", r[i]);
    }
    kl_px_trace_table(g, v, l, bytes); /* behind its .loc */
}
