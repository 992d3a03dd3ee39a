/* atomic.c - atom and red.  Lanes follow each other from the first to the last. */
#include "sim/exec.h"
#include "sim/lane.h"
#include "sim/num.h"

static uint64_t flt_add(uint8_t type, uint64_t a, uint64_t b)
{
    uint64_t r = 0;
    switch (type) {
    case PT_F32: return kl_f32_bits(sim_nf(kl_bits_f32(a) + kl_bits_f32(b)));
    case PT_F64: return kl_f64_bits(sim_nd(kl_bits_f64(a) + kl_bits_f64(b)));
    default: break;
    }
    bool bf = type == PT_BF16 || type == PT_BF16X2;
    for (int h = 0; h < kl_sim_types[type].size * 8; h += 16) {
        uint16_t x = (uint16_t)(a >> h), y = (uint16_t)(b >> h);
        r |= (uint64_t)(bf ? sim_to_b(kl_sim_add_odd(sim_b(x), sim_b(y)))
                           : sim_to_h(kl_sim_add_odd(sim_h(x), sim_h(y))))
             << h;
    }
    return r;
}

static uint64_t operate(uint8_t op, uint8_t type, uint64_t old, uint64_t b, uint64_t c)
{
    uint32_t size = kl_sim_types[type].size;
    bool sign = kl_sim_types[type].cls == TC_SINT, less;
    if (sign && size == 4)
        less = (int32_t)b < (int32_t)old;
    else if (sign)
        less = (int64_t)b < (int64_t)old;
    else
        less = b < old;
    switch (op) {
    case ATOM_ADD: return kl_sim_types[type].cls == TC_FLT ? flt_add(type, old, b) : old + b;
    case ATOM_MIN: return less ? b : old;
    case ATOM_MAX: return less ? old : b;
    case ATOM_AND: return old & b;
    case ATOM_OR: return old | b;
    case ATOM_XOR: return old ^ b;
    case ATOM_EXCH: return b;
    case ATOM_INC: return old >= b ? 0 : old + 1;
    case ATOM_DEC: return old == 0 || old > b ? b : old - 1;
    default: return old == b ? c : old;
    }
}

static void apply(struct sim_warp *w, const struct sim_ins *i, uint8_t space, uint32_t mask,
                  const uint64_t *addr, const uint64_t *b, const uint64_t *c, uint64_t *old)
{
    uint32_t size = kl_sim_types[i->type].size;
    mask = kl_sim_aligned(w, i, mask, addr, size);
    if (!mask)
        return;
    if (space == SP_LOCAL) {
        kl_sim_report(w, i, KL_K1502, mask, "atomic operation on local memory");
        return;
    }
    if (space == SP_SHARED) {
        mask = kl_sim_shared_ok(w, i, mask, addr, size, true);
        if (mask)
            kl_sim_shadow_atomic(w, i, mask, addr, size);
    } else {
        mask = kl_sim_global_ok(w, i, mask, addr, size, true);
        if (mask)
            kl_sim_count_access(w, i, false, mask, addr, size);
        if (mask && w->run->global)
            kl_sim_global_atomic(w, i, mask, addr, size);
    }
    bool sums = space == SP_GLOBAL && w->run->global && i->mode == ATOM_ADD &&
                (i->type == PT_F32 || i->type == PT_F64);
    w->sums += sums;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = sim_first(m);
        char *p = space == SP_SHARED ? w->mem->smem + addr[l] : (char *)(uintptr_t)addr[l];
        memcpy(&old[l], p, size);
        uint64_t v = operate(i->mode, i->type, old[l], b[l], c[l]);
        w->run->changes += v != old[l];
        if (sums)
            kl_sim_global_sum(w, i, l, p, old[l], b[l]);
        memcpy(p, &v, size);
    }
}

EXEC(atom)
{
    uint64_t addr[LANES], b[LANES], c[LANES] = {0}, old[LANES] = {0};
    uint32_t at = i->nd; /* red has no destination */
    kl_sim_addresses(w, i, at, i->imm, addr);
    sim_get(w, &i->op[at + 1], b);
    if (i->mode == ATOM_CAS)
        sim_get(w, &i->op[at + 2], c);
    for (uint32_t left = mask; left;) {
        uint8_t space = i->space;
        uint32_t part = left;
        if (space == SP_GENERIC)
            part = kl_sim_one_space(left, addr, &space);
        apply(w, i, space, part, addr, b, c, old);
        left &= ~part;
    }
    if (at)
        sim_set(w, &i->op[0], mask, old);
}
