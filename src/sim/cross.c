/* cross.c - operations across the lanes of a warp: shuffles, votes, redux, match. */
#include "sim/exec.h"
#include "sim/lane.h"

/* Every lane that executes must be in its mask, and every living lane of the mask must be here:
 * a device would wait for the others, or take what they do not give. */
static void members(struct sim_warp *w, const struct sim_ins *i, uint32_t mask,
                    const struct sim_opnd *o)
{
    uint64_t v[LANES];
    uint32_t outside = 0, missing = 0;
    sim_get(w, o, v);
    EACH_LANE
    {
        if (!HAS(mask, l))
            continue;
        outside |= (uint32_t)!HAS((uint32_t)v[l], l) << l;
        missing |= (uint32_t)v[l] & w->alive & ~mask;
    }
    if (outside)
        kl_sim_report(w, i, KL_K1510, outside, "a lane that its member mask does not name");
    if (missing)
        kl_sim_report(w, i, KL_K1510, missing,
                      "the member mask names lane %u, which is not here: the warp has diverged",
                      sim_first(missing));
}

EXEC(shfl)
{
    uint32_t a[LANES], r[LANES], ok = 0, absent = 0;
    uint64_t b[LANES], c[LANES];
    members(w, i, mask, &i->op[5]);
    memcpy(a, sim_ptr(w, &i->op[2]), sizeof a);
    sim_get(w, &i->op[3], b), sim_get(w, &i->op[4], c);
    for (int l = 0; l < LANES; l++) {
        int bv = (int)(b[l] & 31), cv = (int)(c[l] & 31), seg = (int)(c[l] >> 8 & 31);
        int low = l & seg, top = low | (cv & ~seg), j;
        bool p;
        switch (i->mode) {
        case SHFL_UP: j = l - bv, p = j >= top; break;
        case SHFL_DOWN: j = l + bv, p = j <= top; break;
        case SHFL_BFLY: j = l ^ bv, p = j <= top; break;
        default: j = low | (bv & ~seg), p = j <= top; break;
        }
        if (!p)
            j = l;
        ok |= (uint32_t)p << l;
        absent |= (uint32_t)(HAS(mask, l) && !HAS(mask, j & 31)) << l;
        r[l] = a[j & 31];
    }
    if (absent)
        kl_sim_report(w, i, KL_K1510, absent, "the value comes from a lane that is not here");
    if (i->op[0].given)
        sim_put32(sim_ptr(w, &i->op[0]), r, mask);
    if (i->op[1].given)
        sim_setp(w, &i->op[1], mask, ok);
}

EXEC(vote)
{
    members(w, i, mask, &i->op[2]);
    uint32_t p = sim_getp(w, &i->op[1]) & mask;
    bool r = i->mode == 0 ? p == mask : i->mode == 1 ? p != 0 : p == 0 || p == mask;
    sim_setp(w, &i->op[0], mask, r ? UINT32_MAX : 0);
}

static void all32(struct sim_warp *w, const struct sim_opnd *d, uint32_t mask, uint32_t v)
{
    uint32_t r[LANES];
    EACH_LANE r[l] = v;
    if (d->given)
        sim_put32(sim_ptr(w, d), r, mask);
}

EXEC(ballot)
{
    members(w, i, mask, &i->op[2]);
    all32(w, &i->op[0], mask, sim_getp(w, &i->op[1]) & mask);
}

EXEC(activemask)
{
    all32(w, &i->op[0], mask, mask);
}

EXEC(redux)
{
    const sim_m32 *a = (const sim_m32 *)(const void *)sim_ptr(w, &i->op[1]);
    members(w, i, mask, &i->op[2]);
    uint32_t r = a[sim_first(mask)];
    for (uint32_t m = mask & (mask - 1); m; m &= m - 1) {
        uint32_t x = a[sim_first(m)];
        bool less = i->type == PT_S32 ? (int32_t)x < (int32_t)r : x < r;
        switch (i->mode) {
        case ATOM_ADD: r += x; break;
        case ATOM_MIN: r = less ? x : r; break;
        case ATOM_MAX: r = less ? r : x; break;
        case ATOM_AND: r &= x; break;
        case ATOM_OR: r |= x; break;
        default: r ^= x; break;
        }
    }
    all32(w, &i->op[0], mask, r);
}

EXEC(match_any)
{
    uint64_t a[LANES], r[LANES] = {0};
    members(w, i, mask, &i->op[2]);
    sim_get(w, &i->op[1], a);
    for (int l = 0; l < LANES; l++)
        for (int k = 0; k < LANES; k++)
            r[l] |= (uint64_t)(HAS(mask, k) && a[k] == a[l]) << k;
    sim_set(w, &i->op[0], mask, r);
}

EXEC(match_all)
{
    uint64_t a[LANES];
    members(w, i, mask, &i->op[3]);
    sim_get(w, &i->op[2], a);
    bool same = true;
    EACH_LANE same &= !HAS(mask, l) || a[l] == a[sim_first(mask)];
    all32(w, &i->op[0], mask, same ? mask : 0);
    if (i->op[1].given)
        sim_setp(w, &i->op[1], mask, same ? UINT32_MAX : 0);
}

EXEC(elect) /* the first lane */
{
    members(w, i, mask, &i->op[2]);
    all32(w, &i->op[0], mask, sim_first(mask));
    if (i->op[1].given)
        sim_setp(w, &i->op[1], mask, 1u << sim_first(mask));
}

EXEC(bar_warp)
{
    members(w, i, mask, &i->op[0]);
}
