/* memory.c - loads and stores: addresses, checks, copies.
 *
 * Host pointers are device addresses, so every access is checked against the
 * registered buffers before it is made.  A lane that fails reads 0 or stores
 * nothing, and the run goes on: the first finding is seldom the only one. */
#include "sim/exec.h"
#include "sim/lane.h"

void kl_sim_addresses(const struct sim_warp *w, const struct sim_ins *i, uint32_t op, int64_t imm,
                      uint64_t addr[LANES])
{
    sim_get(w, &i->op[op], addr);
    EACH_LANE addr[l] += (uint64_t)imm;
    if (i->op[op].size == 4)
        EACH_LANE addr[l] = (uint32_t)addr[l];
}

uint32_t kl_sim_one_space(uint32_t mask, uint64_t *addr, uint8_t *space)
{
    uint64_t win = addr[sim_first(mask)] & SIM_WINDOW_MASK;
    uint32_t same = 0;
    EACH_LANE same |= (uint32_t)((addr[l] & SIM_WINDOW_MASK) == win) << l;
    same &= mask;
    *space = win == SIM_SHARED_WINDOW ? SP_SHARED : win == SIM_LOCAL_WINDOW ? SP_LOCAL : SP_GLOBAL;
    EACH_LANE
    if (HAS(same, l))
        addr[l] -= win;
    return same;
}

uint32_t kl_sim_aligned(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                        const uint64_t *addr, uint32_t bytes)
{
    uint32_t bad = 0;
    EACH_LANE bad |= (uint32_t)((addr[l] & (bytes - 1)) != 0) << l;
    bad &= mask;
    if (bad)
        kl_sim_report(w, i, KL_K1501, bad,
                      "access of %u bytes at an address that is not a multiple of %u", bytes,
                      bytes);
    return mask & ~bad;
}

/* ---- global memory ---- */

static bool holds(const struct sim_range *b, uint64_t addr, uint64_t bytes)
{
    return addr - b->base < b->size && b->size - (addr - b->base) >= bytes;
}

/* A range that holds [addr, addr + bytes), if there is one then one that allows the access: a
 * kernel may get the same memory twice, as a const array and as one it writes. */
static const struct sim_range *range_of(struct sim_run *r, uint64_t addr, uint32_t bytes,
                                        bool write)
{
    const struct sim_range *found = NULL;
    if (r->hint < r->nbuf)
        found = &r->buf[r->hint];
    if (found && holds(found, addr, bytes) && (found->writable || !write))
        return found;
    found = NULL;
    for (uint32_t k = 0; k < r->nbuf; k++) {
        const struct sim_range *b = &r->buf[k];
        if (!holds(b, addr, bytes))
            continue;
        found = b;
        if (b->writable || !write) {
            r->hint = k;
            break;
        }
    }
    return found;
}

/* Where an address lies, without the address itself, which differs from run to run. */
static const char *where(struct sim_run *r, uint64_t addr)
{
    enum { NEAR = 1 << 20 };
    const struct sim_range *best = NULL;
    uint64_t dist = UINT64_MAX;
    for (uint32_t k = 0; k < r->nbuf; k++) {
        const struct sim_range *b = &r->buf[k];
        uint64_t d = addr < b->base              ? b->base - addr
                     : addr - b->base >= b->size ? addr - b->base - b->size
                                                 : 0;
        if (d < dist)
            dist = d, best = b;
    }
    if (!addr)
        return "address 0";
    const char *name = NULL;
    if (best && best->index != SIM_NONE)
        name = r->l->buffer_name ? kl_printf(&r->a, "`%s`", r->l->buffer_name[best->index])
                                 : kl_printf(&r->a, "buffer %u", best->index);
    if (!name || dist > NEAR)
        return "an address far from every buffer";
    unsigned long long d = dist, size = best->size;
    if (addr < best->base)
        return kl_printf(&r->a, "%llu bytes before %s (%llu bytes)", d, name, size);
    if (addr - best->base >= best->size)
        return kl_printf(&r->a, "%llu bytes behind the end of %s (%llu bytes)", d, name, size);
    return kl_printf(&r->a, "byte %llu of %s (%llu bytes)", (unsigned long long)(addr - best->base),
                     name, size);
}

uint32_t kl_sim_global_ok(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                          const uint64_t *addr, uint32_t bytes, bool write)
{
    struct sim_run *r = w->run;
    uint64_t lo = UINT64_MAX, hi = 0;
    EACH_LANE
    {
        uint64_t x = HAS(mask, l) ? addr[l] : addr[sim_first(mask)];
        lo = x < lo ? x : lo;
        hi = x > hi ? x : hi;
    }
    /* mostly all lanes lie in one buffer */
    const struct sim_range *b = range_of(r, lo, bytes, write);
    if (b && holds(b, hi, bytes) && (b->writable || !write))
        return mask;
    uint32_t out = 0, ro = 0;
    EACH_LANE
    {
        if (!HAS(mask, l))
            continue;
        b = range_of(r, addr[l], bytes, write);
        out |= (uint32_t)!b << l;
        ro |= (uint32_t)(b && write && !b->writable) << l;
    }
    const char *outside = out && r->global ? kl_sim_outside(r, addr[sim_first(out)]) : NULL;
    if (outside) {
        if (!kl_sim_known(w, i, KL_K1203, out))
            kl_sim_report(w, i, KL_K1203, out, "%s outside %s", write ? "store writes" : "load reads",
                          outside);
    } else if (out && !kl_sim_known(w, i, KL_K1502, out))
        kl_sim_report(w, i, KL_K1502, out, "%s of %u bytes outside every buffer: %s",
                      write ? "store" : "load", bytes, where(r, addr[sim_first(out)]));
    if (ro && !kl_sim_known(w, i, KL_K1503, ro))
        kl_sim_report(w, i, KL_K1503, ro, "store of %u bytes to memory that is only read: %s",
                      bytes, where(r, addr[sim_first(ro)]));
    return mask & ~(out | ro);
}

uint32_t kl_sim_shared_ok(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                          const uint64_t *addr, uint32_t bytes, bool write)
{
    uint64_t size = w->run->smem_size;
    uint32_t bad = 0;
    EACH_LANE bad |= (uint32_t)(addr[l] >= size || size - addr[l] < bytes) << l;
    bad &= mask;
    if (bad)
        kl_sim_report(w, i, KL_K1504, bad,
                      "%s of %u bytes at byte %llu of %llu bytes of shared "
                      "memory",
                      write ? "store" : "load", bytes, (unsigned long long)addr[sim_first(bad)],
                      (unsigned long long)size);
    return mask & ~bad;
}

static uint32_t window_ok(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                          const uint64_t *addr, uint32_t bytes, uint64_t size, const char *what)
{
    uint32_t bad = 0;
    EACH_LANE bad |= (uint32_t)(addr[l] >= size || size - addr[l] < bytes) << l;
    bad &= mask;
    if (bad)
        kl_sim_report(w, i, KL_K1512, bad, "access of %u bytes at byte %llu of %llu bytes of %s",
                      bytes, (unsigned long long)addr[sim_first(bad)], (unsigned long long)size,
                      what);
    return mask & ~bad;
}

/* Checks, counts, and turns addresses into pointers of the host; the lanes that may go on. */
static uint32_t resolve(struct sim_warp *w, const struct sim_ins *i, uint8_t space, uint32_t mask,
                        uint64_t *addr, uint32_t bytes, bool write)
{
    struct sim_run *r = w->run;
    mask = kl_sim_aligned(w, i, mask, addr, bytes);
    if (!mask)
        return 0;
    switch (space) {
    case SP_SHARED:
        mask = kl_sim_shared_ok(w, i, mask, addr, bytes, write);
        if (mask)
            kl_sim_count_access(w, i, true, mask, addr, bytes);
        return mask;
    case SP_PARAM: return window_ok(w, i, mask, addr, bytes, r->f->pub.param_bytes, "parameters");
    case SP_LOCAL: return window_ok(w, i, mask, addr, bytes, r->f->local_bytes, "local memory");
    default:
        mask = kl_sim_global_ok(w, i, mask, addr, bytes, write);
        if (mask && space == SP_GLOBAL)
            kl_sim_count_access(w, i, false, mask, addr, bytes);
        return mask;
    }
}

static void host_pointers(struct sim_warp *w, uint8_t space, uint32_t mask, uint64_t *addr)
{
    struct sim_run *r = w->run;
    uint64_t base = space == SP_SHARED  ? (uint64_t)(uintptr_t)w->mem->smem
                    : space == SP_PARAM ? (uint64_t)(uintptr_t)r->l->param
                    : space == SP_LOCAL ? (uint64_t)(uintptr_t)w->local
                                        : 0;
    uint64_t pitch = space == SP_LOCAL ? r->f->local_pitch : 0;
    EACH_LANE
    if (HAS(mask, l))
        addr[l] += base + pitch * (uint64_t)l;
}

static inline void fetch(void *to, uint64_t addr, uint32_t bytes)
{
    memcpy(to, (const void *)(uintptr_t)addr, bytes);
}

/* Element k of each lane's vector into v, extended as the type says; 0 where mask is not set. */
static void load_lanes(uint8_t type, uint32_t mask, const uint64_t *addr, uint32_t at,
                       uint64_t v[LANES])
{
    uint32_t size = kl_sim_types[type].size;
    bool sign = kl_sim_types[type].cls == TC_SINT;
    EACH_LANE
    {
        v[l] = 0;
        if (!HAS(mask, l))
            continue;
        switch (size) { /* constant sizes become single moves */
        case 1: fetch(&v[l], addr[l] + at, 1); break;
        case 2: fetch(&v[l], addr[l] + at, 2); break;
        case 4: fetch(&v[l], addr[l] + at, 4); break;
        default: fetch(&v[l], addr[l] + at, 8); break;
        }
        if (sign)
            v[l] = (uint64_t)((int64_t)(v[l] << (64 - 8 * size)) >> (64 - 8 * size));
    }
}

static bool consecutive(uint32_t mask, const uint64_t *addr, uint32_t bytes)
{
    if (mask != UINT32_MAX)
        return false;
    uint64_t bad = 0;
    EACH_LANE bad |= addr[l] ^ (addr[0] + (uint64_t)l * bytes);
    return !bad;
}

/* The usual access, 32 neighbours in global or shared memory, where nothing is to be reported:
 * its first byte on the host, or NULL when the lanes must be looked at one by one. */
static char *row(struct sim_warp *w, const struct sim_ins *i, uint32_t mask, const uint64_t *addr,
                 uint32_t bytes, bool write)
{
    struct sim_run *r = w->run;
    uint32_t n = bytes * LANES;
    if ((i->space != SP_GLOBAL && i->space != SP_SHARED) || i->cluster || !consecutive(mask, addr, bytes) ||
        addr[0] & (bytes - 1))
        return NULL;
    if (i->space == SP_GLOBAL) {
        const struct sim_range *b = range_of(r, addr[0], n, write);
        if (!b || (write && (!b->writable || r->global)) || (r->global && i->strong))
            return NULL;
        if (r->global)
            kl_sim_global_row(w, i, addr, bytes);
    } else if (addr[0] >= r->smem_size || r->smem_size - addr[0] < n ||
               !kl_sim_shadow_row(w, i, (uint32_t)addr[0], n, write)) {
        return NULL;
    }
    kl_sim_count_access(w, i, i->space == SP_SHARED, mask, addr, bytes);
    return i->space == SP_SHARED ? w->mem->smem + addr[0] : (char *)(uintptr_t)addr[0];
}

EXEC(ld)
{
    uint64_t addr[LANES], v[LANES];
    uint32_t size = kl_sim_types[i->type].size, bytes = size * i->vec;
    kl_sim_addresses(w, i, i->nd, i->imm, addr);
    const char *p = row(w, i, mask, addr, bytes, false);
    if (p && i->vec == 1 && size == i->op[0].size) {
        memcpy(sim_ptr(w, &i->op[0]), p, size * LANES);
        return;
    }
    if (p && size == 4) {
        for (uint32_t k = 0; k < i->vec; k++) {
            sim_m32 *to = (sim_m32 *)(void *)sim_ptr(w, &i->op[k]);
            if (i->op[k].size != 4)
                break;
            EACH_LANE memcpy(&to[l], p + (uint32_t)l * bytes + 4 * k, 4);
            if (k + 1 == i->vec)
                return;
        }
    }
    while (mask) {
        uint8_t space = i->space;
        uint32_t part = mask;
        if (space == SP_GENERIC)
            part = kl_sim_one_space(mask, addr, &space);
        uint32_t good = part, rest = mask & ~part;
        if (i->cluster)
            good = part = kl_sim_cluster_part(w, i, mask, addr, &rest);
        if (!p) {
            good = part ? resolve(w, i, space, part, addr, bytes, false) : 0;
            if (good && space == SP_SHARED)
                kl_sim_shadow_read(w, i, good, addr, bytes);
            else if (good && space == SP_GLOBAL && w->run->global)
                kl_sim_global_touch(w, i, good, addr, bytes, false, NULL, 0);
        }
        host_pointers(w, space, good, addr);
        for (uint32_t k = 0; k < i->vec; k++) {
            load_lanes(i->type, good, addr, k * size, v);
            sim_set(w, &i->op[k], part, v);
        }
        mask = rest;
        w->mem = w->cta;
    }
}

EXEC(st)
{
    uint64_t addr[LANES], v[LANES];
    uint32_t size = kl_sim_types[i->type].size, bytes = size * i->vec;
    _Alignas(16) char value[LANES][32];
    kl_sim_addresses(w, i, 0, i->imm, addr);
    char *p = row(w, i, mask, addr, bytes, true);
    if (p && w->run->global)
        w->run->changes++;
    if (p && i->vec == 1 && size == i->op[1].size) {
        memcpy(p, sim_ptr(w, &i->op[1]), size * LANES);
        return;
    }
    if (p && size == 4) {
        for (uint32_t k = 0; k < i->vec; k++) {
            const sim_m32 *from = (const sim_m32 *)(const void *)sim_ptr(w, &i->op[1 + k]);
            if (i->op[1 + k].size != 4)
                break;
            EACH_LANE memcpy(p + (uint32_t)l * bytes + 4 * k, &from[l], 4);
            if (k + 1 == i->vec)
                return;
        }
    }
    for (uint32_t k = 0; k < i->vec; k++) {
        sim_get(w, &i->op[1 + k], v);
        switch (size) {
        case 1: EACH_LANE memcpy(value[l] + k, &v[l], 1); break;
        case 2: EACH_LANE memcpy(value[l] + 2 * k, &v[l], 2); break;
        case 4: EACH_LANE memcpy(value[l] + 4 * k, &v[l], 4); break;
        default: EACH_LANE memcpy(value[l] + 8 * k, &v[l], 8); break;
        }
    }
    while (mask) {
        uint8_t space = i->space;
        uint32_t part = mask;
        if (space == SP_GENERIC)
            part = kl_sim_one_space(mask, addr, &space);
        uint32_t good = part, rest = mask & ~part;
        if (i->cluster)
            good = part = kl_sim_cluster_part(w, i, mask, addr, &rest);
        if (!p) {
            good = part ? resolve(w, i, space, part, addr, bytes, true) : 0;
            if (good && space == SP_SHARED)
                kl_sim_shadow_write(w, i, good, addr, bytes, value[0], sizeof value[0]);
            else if (good && space == SP_GLOBAL && w->run->global)
                kl_sim_global_touch(w, i, good, addr, bytes, true, value[0], sizeof value[0]);
        }
        host_pointers(w, space, good, addr);
        if (w->run->global && space != SP_GLOBAL && !p)
            EACH_LANE
            if (HAS(good, l))
                w->run->changes += memcmp((void *)(uintptr_t)addr[l], value[l], bytes) != 0;
        EACH_LANE
        if (HAS(good, l))
            memcpy((void *)(uintptr_t)addr[l], value[l], bytes);
        if (!consecutive(good, addr, bytes)) {
            /* the last of several lanes at one place won: do the others agree? */
            uint32_t lost = 0;
            EACH_LANE
            if (HAS(good, l))
                lost |= (uint32_t)(memcmp((void *)(uintptr_t)addr[l], value[l], bytes) != 0) << l;
            if (lost)
                kl_sim_report(w, i, KL_K1509, lost,
                              "lanes of one store write different values to one place");
        }
        mask = rest;
        w->mem = w->cta;
    }
}
