/* atomic.c - atomics on global memory: atom, red, ld and st with an order and a scope.
 *
 * Each element is done once, by the first of the threads that share it; the others get what it
 * returned through shared memory, so that a scalar is the same everywhere and control flow stays
 * uniform.  The whole CTA is one program: before a release all its threads pass a barrier, and
 * after an acquire too. */
#include "gen/ptx/ptx.h"

static const char *type_of(uint32_t how, enum kl_elem e)
{
    bool w = kl_elems[e].bytes == 8;
    switch (KL_HOW_RMW(how)) {
    case KL_RMW_add:
        if (kl_is_float(e))
            return w ? "f64" : "f32";
        return w ? "u64" : "u32";
    case KL_RMW_min:
    case KL_RMW_max:
        if (kl_elems[e].kind == KL_KIND_SINT)
            return w ? "s64" : "s32";
        return w ? "u64" : "u32";
    default: return w ? "b64" : "b32";
    }
}

/* The instruction up to its operands. */
static const char *opcode(struct pgen *g, kl_val v, enum kl_elem e, bool used)
{
    static const char *const order[KL_NORDER] = {"relaxed", "acquire", "release", "acq_rel"};
    static const char *const names[KL_NRMW] = {"add", "min", "max", "and", "or", "xor", "exch", "cas"};
    const struct kl_ins *in = kl_in(g->f, v);
    uint32_t how = in->attr.access.how, o = KL_HOW_ORDER(how), rmw = KL_HOW_RMW(how);
    const char *scope = KL_HOW_SCOPE(how) == KL_SC_SYSTEM                           ? "sys"
                        : KL_HOW_SCOPE(how) == KL_SC_PROGRAM && g->f->cluster <= 1 ? "cta"
                                                                                   : "gpu";
    const char *bits = kl_px_b(kl_px_cls(e));
    if (in->op == KL_OP_atomic_load)
        return kl_px_fmt(g, "ld.%s.%s.global.%s", order[o], scope, bits);
    if (in->op == KL_OP_atomic_store)
        return kl_px_fmt(g, "st.%s.%s.global.%s", order[o], scope, bits);
    bool red = !used && rmw <= KL_RMW_xor && (o == KL_RELAXED || o == KL_RELEASE);
    return kl_px_fmt(g, "%s.%s.%s.global.%s.%s", red ? "red" : "atom", order[o], scope, names[rmw],
                     type_of(how, e));
}

static bool is_used(const kl_fn *f, kl_val v)
{
    for (uint32_t id = 1; id < f->nins; id++)
        for (uint32_t i = 0; f->ins[id].blk.id && i < f->ins[id].nargs; i++)
            if (kl_arg(f, (kl_val){id}, i).id == v.id)
                return true;
    return false;
}

void kl_px_atomic(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const struct kl_type *t = kl_access_tile(f, v);
    const kl_layout *l = g->lay[v.id];
    enum kl_elem e = (enum kl_elem)t->elem;
    enum cls c = kl_px_cls(e);
    uint32_t n = l ? kl_layout_nreg(l) : 1, takes = kl_access_values(in), k = 1u + in->attr.access.n;
    uint32_t o = KL_HOW_ORDER(in->attr.access.how);
    if (kl_is_float(e) && in->op == KL_OP_atomic) /* programs add in any order */
        g->approximate = true;
    bool used = in->type.id && is_used(f, v);
    bool returns = in->op == KL_OP_atomic_load || (in->op == KL_OP_atomic && used);
    struct pval x[2] = {{0}}, mask = {0};
    for (uint32_t i = 0; i < takes; i++)
        x[i] = kl_px_in(g, kl_arg(f, v, k++), l);
    if (in->attr.access.flags & KL_ACC_MASK)
        mask = kl_px_in(g, kl_arg(f, v, k), l);
    struct pplace *at = kl_new_n(g->a, struct pplace, n);
    kl_px_places(g, v, l, at);
    if (o == KL_RELEASE || o == KL_ACQ_REL)
        kl_px_barrier(g);
    kl_px_order(g, v);
    opnd first = kl_px_first(g, l);
    const char *op = opcode(g, v, e, used);
    bool atom = strncmp(op, "atom", 4) == 0 || in->op == KL_OP_atomic_load;
    struct pval old = {.l = l, .r = kl_new_n(g->a, opnd, n)};
    for (uint32_t i = 0; i < n; i++) {
        opnd p = at[i].p, arg[2] = {NULL, NULL};
        if (mask.r) {
            opnd m = kl_px_inreg(g, CL_P, kl_px_at(&mask, i));
            p = p ? kl_px_set(g, CL_P, "and.pred $, %s, %s", p, m) : m;
        }
        if (first)
            p = p ? kl_px_set(g, CL_P, "and.pred $, %s, %s", p, first) : first;
        for (uint32_t j = 0; j < takes; j++) {
            arg[j] = kl_px_inreg(g, c, kl_px_at(&x[j], i));
        }
        if (atom) {
            old.r[i] = kl_px_reg(g, c);
            kl_px(g, "mov.%s %s, %s", kl_px_b(c), old.r[i], kl_px_imm(g, e, 0));
        } else {
            old.r[i] = kl_px_imm(g, e, 0);
        }
        kl_px(g, "%s%s%s%s %s%s[%s+%lld]%s%s%s%s", p ? "@" : "", p ? p : "", p ? " " : "", op,
              atom ? old.r[i] : "", atom ? ", " : "", at[i].addr, (long long)at[i].off,
              takes ? ", " : "", takes ? arg[0] : "", takes > 1 ? ", " : "", takes > 1 ? arg[1] : "");
    }
    kl_px_trace_access(g, v, l, 0, true);
    if (returns && first && l)
        kl_px_spread(g, &old, c, t);
    else if (returns && !l)
        old.r[0] = kl_px_read_once(g, e, old.r[0]);
    if (o == KL_ACQUIRE || o == KL_ACQ_REL)
        kl_px_barrier(g);
    if (in->type.id)
        g->val[v.id] = old;
}
