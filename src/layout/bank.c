/* bank.c - sectors of global requests and wavefronts of shared ones, counted lane by lane. */
#include "layout/layout.h"

/* Puts x into a short list if it is not there. */
static uint32_t note(uint64_t *list, uint32_t n, uint64_t x)
{
    for (uint32_t i = n; i-- > 0;)
        if (list[i] == x)
            return n;
    list[n] = x;
    return n + 1;
}

kl_count kl_sectors(const uint64_t addr[32], uint32_t active, uint32_t bytes)
{
    uint64_t seen[32 * 2]; /* an access of up to 32 bytes touches at most two */
    uint32_t n = 0, lanes = (uint32_t)__builtin_popcount(active);
    if (!active || !bytes)
        return (kl_count){0};
    for (uint32_t m = active; m; m &= m - 1) {
        uint64_t a = addr[__builtin_ctz(m)];
        n = note(seen, n, a / 32);
        if ((a + bytes - 1) / 32 != a / 32)
            n = note(seen, n, (a + bytes - 1) / 32);
    }
    return (kl_count){1, n, ((uint64_t)lanes * bytes + 31) / 32};
}

kl_count kl_wavefronts(const uint32_t addr[32], uint32_t active, uint32_t bytes)
{
    uint32_t group = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
    kl_count c = {active != 0, 0, 0};
    for (uint32_t g = 0; g < 32; g += group) {
        uint32_t word[32][32], n[32] = {0}, most = 0;
        for (uint32_t i = g; i < g + group; i++) {
            if (!(active >> i & 1))
                continue;
            uint32_t last = (addr[i] + bytes - 1) / 4;
            for (uint32_t w = addr[i] / 4; w <= last; w++) {
                uint32_t bank = w % 32, k = n[bank];
                while (k && word[bank][k - 1] != w)
                    k--;
                if (!k && n[bank] < 32) {
                    word[bank][n[bank]++] = w;
                    most = n[bank] > most ? n[bank] : most;
                }
            }
        }
        c.units += most;
        c.ideal += most != 0;
    }
    return c;
}

kl_count kl_layout_sectors(const kl_layout *l, uint64_t base, const int64_t *stride, uint32_t bytes,
                           uint32_t vec_log2, bool once, uint32_t *most)
{
    kl_count sum = {0};
    uint32_t copies = once ? kl_layout_replicas(l) : 0, worst = 0;
    uint32_t group = kl_layout_places(l) & ~kl_place((1u << vec_log2) - 1, 31, 0, 0) & ~copies;
    uint32_t lane_copies = kl_place_lane(copies), p = 0;
    uint32_t lane[32]; /* coordinate words of the lanes alone */
    for (uint32_t i = 0; i < 32; i++)
        lane[i] = kl_layout_at(l, kl_place(0, i, 0, 0));
    do { /* all places of the group mask: registers, warps, CTAs */
        uint64_t addr[32];
        uint32_t active = 0, at = kl_layout_at(l, p);
        for (uint32_t i = 0; i < 32; i++) {
            uint32_t c = at ^ lane[i];
            if (i & lane_copies || !kl_coord_live(l, c))
                continue;
            active |= 1u << i;
            addr[i] = base;
            for (uint32_t d = 0; d < l->rank; d++)
                addr[i] += (uint64_t)stride[d] * kl_coord_axis(l, c, d);
        }
        kl_count k = active ? kl_sectors(addr, active, bytes << vec_log2) : (kl_count){0};
        sum.requests += k.requests;
        sum.units += k.units;
        sum.ideal += k.ideal;
        worst = k.units > worst ? (uint32_t)k.units : worst;
        p = (p - group) & group;
    } while (p);
    if (most)
        *most = worst;
    return sum;
}
