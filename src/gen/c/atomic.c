/* atomic.c - atomics: planning, and the calls of the prelude's functions.
 *
 * An atomic on a tile is a loop nest of its own, in row-major order and in the place where it
 * stands; its old values go to a buffer if anything uses them. */
#include "gen/c/plan.h"

bool kl_c_used(const kl_fn *f, kl_val v)
{
    for (uint32_t id = 1; id < f->nins; id++)
        for (uint32_t i = 0; f->ins[id].blk.id && i < f->ins[id].nargs; i++)
            if (kl_arg(f, (kl_val){id}, i).id == v.id)
                return true;
    return false;
}

void kl_c_plan_atomic(struct plan *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct kl_type *t = kl_access_tile(f, v);
    if (kl_numel(t) == 1) {
        kl_c_close_nest(p);
        kl_c_plan_scalar(p, v);
        return;
    }
    struct root r = {.kind = R_STORE, .v = v, .elem = t->elem, .brank = t->rank, .to = kl_c_walk(t)};
    memcpy(r.bdim, t->dim, sizeof r.bdim);
    if (kl_in(f, v)->type.id && kl_c_used(f, v))
        r.buf = kl_c_buffer(p, v);
    kl_c_finish_args(p, v);
    kl_c_close_nest(p);
    kl_c_add_root(p, r, t, gv(p, v)->pos);
    kl_c_close_nest(p);
}

const char *kl_c_atomic(struct gen *g, kl_val v, const char *place, const char *x, const char *y)
{
    static const char *const order[KL_NORDER] = {"RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL"};
    const struct kl_ins *in = kl_in(g->f, v);
    uint32_t how = in->attr.access.how, o = KL_HOW_ORDER(how);
    const char *op = in->op == KL_OP_atomic_load    ? "load"
                     : in->op == KL_OP_atomic_store ? "store"
                                                    : kl_rmw_names[KL_HOW_RMW(how)];
    kl_buf b = {.a = g->a};
    kl_putf(&b, "kl_atomic_%s_%s(&%s", op, kl_elems[kl_access_tile(g->f, v)->elem].name, place);
    if (x)
        kl_putf(&b, ", %s", kl_c_bare(g->a, x));
    if (y)
        kl_putf(&b, ", %s", kl_c_bare(g->a, y));
    kl_putf(&b, ", KL_%s)", order[o]);
    return kl_buf_str(&b);
}
