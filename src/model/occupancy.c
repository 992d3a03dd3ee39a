/* occupancy.c - see occupancy.h. */
#include "model/occupancy.h"

enum {
    KIB = 1024,
    REGISTERS = 65536,   /* an SM, and a block */
    REGISTER_UNIT = 256, /* of a warp */
    PARTS = 4,           /* sub-partitions, which share registers out on their own */
    SHARED_DEFAULT = 48 * KIB
};

const char *const kl_limit_name[KL_NLIMIT] = {"warps", "registers", "shared memory", "blocks",
                                              "barriers"};

static const struct row {
    uint32_t cc, warps, blocks, shared, most, reserved, unit, barriers, fp32, fp64, fp16;
} rows[] = {
#define SM(...) {__VA_ARGS__},
#include "model/sm.def"
};

bool kl_sm_at(size_t i, kl_sm *out)
{
    if (i >= sizeof rows / sizeof *rows)
        return false;
    const struct row *r = &rows[i];
    *out = (kl_sm){.cc = r->cc,
                   .warps = r->warps,
                   .blocks = r->blocks,
                   .registers = REGISTERS,
                   .shared = r->shared * KIB,
                   .shared_default = SHARED_DEFAULT,
                   .shared_most = r->most * KIB,
                   .reserved = r->reserved,
                   .unit = r->unit,
                   .barriers = r->barriers,
                   .fp32 = r->fp32,
                   .fp64 = r->fp64,
                   .fp16 = r->fp16};
    return true;
}

bool kl_sm_find(uint32_t cc, kl_sm *out)
{
    for (size_t i = 0; kl_sm_at(i, out); i++)
        if (out->cc == cc)
            return true;
    return false;
}

static uint32_t round_up(uint32_t x, uint32_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/* Registers are given to a warp in units, and a sub-partition has a quarter of them.  Whether one
 * block fits at all is seen with its warps rounded up to whole rounds of sub-partitions. */
static uint32_t by_registers(const kl_sm *sm, const kl_occ_block *b, uint32_t wpb)
{
    uint32_t warp = round_up(b->registers * 32, REGISTER_UNIT);
    if (b->registers > KL_REGISTERS_MOST + 1 || warp * round_up(wpb, PARTS) > sm->registers)
        return 0;
    return b->registers ? sm->registers / PARTS / warp * PARTS / wpb : KL_UNLIMITED;
}

static uint32_t by_shared(const kl_sm *sm, const kl_occ_block *b)
{
    uint32_t most = b->shared > sm->shared_default ? sm->shared_most : sm->shared_default;
    if (b->shared > sm->shared_most)
        return 0;
    uint32_t bytes = round_up(b->shared + sm->reserved, sm->unit);
    if (bytes > most + sm->reserved)
        return 0;
    return bytes ? sm->shared / bytes : KL_UNLIMITED;
}

static void finish(const kl_sm *sm, uint32_t wpb, kl_occ *out)
{
    out->blocks = KL_UNLIMITED;
    for (int i = 0; i < KL_NLIMIT; i++)
        out->blocks = out->limit[i] < out->blocks ? out->limit[i] : out->blocks;
    out->limiter = 0;
    for (int i = 0; i < KL_NLIMIT; i++)
        out->limiter |= out->limit[i] == out->blocks ? 1u << i : 0;
    out->warps_block = wpb;
    out->warps = out->blocks * wpb;
    out->share = (double)out->warps / sm->warps;
}

void kl_occupancy(const kl_sm *sm, const kl_occ_block *b, kl_occ *out)
{
    uint32_t wpb = b->threads ? (b->threads + 31) / 32 : 1;
    out->limit[KL_LIMIT_WARPS] = b->threads > KL_THREADS_MOST ? 0 : sm->warps / wpb;
    out->limit[KL_LIMIT_REGISTERS] = by_registers(sm, b, wpb);
    out->limit[KL_LIMIT_SHARED] = by_shared(sm, b);
    out->limit[KL_LIMIT_BLOCKS] = sm->blocks;
    out->limit[KL_LIMIT_BARRIERS] =
        sm->barriers && b->barriers ? sm->barriers / b->barriers : KL_UNLIMITED;
    finish(sm, wpb, out);
}

void kl_occupancy_simple(const kl_sm *sm, const kl_occ_block *b, kl_occ *out)
{
    uint32_t wpb = b->threads ? (b->threads + 31) / 32 : 1;
    out->limit[KL_LIMIT_WARPS] = sm->warps / wpb;
    out->limit[KL_LIMIT_REGISTERS] =
        b->registers ? sm->registers / (b->registers * wpb * 32) : KL_UNLIMITED;
    out->limit[KL_LIMIT_SHARED] = b->shared ? sm->shared / b->shared : KL_UNLIMITED;
    out->limit[KL_LIMIT_BLOCKS] = sm->blocks;
    out->limit[KL_LIMIT_BARRIERS] = KL_UNLIMITED;
    finish(sm, wpb, out);
}

uint32_t kl_occ_ladder(const kl_sm *sm, const kl_occ_block *b, enum kl_limit of, kl_rung out[KL_RUNGS])
{
    kl_occ_block x = *b;
    kl_occ o;
    uint32_t n = 0, first = 1, last = KL_REGISTERS_MOST, step = 1;
    uint32_t *value = &x.registers;
    if (of == KL_LIMIT_WARPS)
        first = 32, last = KL_THREADS_MOST, step = 32, value = &x.threads;
    else if (of == KL_LIMIT_SHARED)
        first = 0, last = sm->shared_most, step = 1, value = &x.shared;
    for (uint32_t v = first; v <= last; v += step) {
        *value = v;
        kl_occupancy(sm, &x, &o);
        if (n && out[n - 1].blocks == o.blocks)
            out[n - 1].last = v;
        else if (n < KL_RUNGS)
            out[n++] = (kl_rung){v, v, o.blocks};
    }
    return n;
}
