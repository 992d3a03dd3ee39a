/* linear.c - maps and bases over GF(2), one word a vector. */
#include "layout/layout.h"

kl_lin kl_lin_compose(const kl_lin *f, const kl_lin *g)
{
    kl_lin h;
    for (uint32_t i = 0; i < 32; i++)
        h.v[i] = kl_lin_at(f, g->v[i]);
    return h;
}

uint32_t kl_lin_rank(const kl_lin *f)
{
    kl_basis b;
    b.lead = 0;
    for (uint32_t i = 0; i < 32; i++)
        kl_basis_add(&b, f->v[i], 0);
    return kl_basis_rank(&b);
}

/* Clears leading bits of the basis in v, gathering tags. */
static uint32_t clear(const kl_basis *b, uint32_t v, uint32_t *from)
{
    for (uint32_t rest = v & b->lead; rest; rest = v & b->lead) {
        uint32_t top = 31u - (uint32_t)__builtin_clz(rest);
        v ^= b->vec[top];
        *from ^= b->from[top];
    }
    return v;
}

bool kl_basis_add(kl_basis *b, uint32_t v, uint32_t tag)
{
    v = clear(b, v, &tag);
    if (!v)
        return false;
    uint32_t top = 31u - (uint32_t)__builtin_clz(v);
    b->vec[top] = v;
    b->from[top] = tag;
    b->lead |= 1u << top;
    return true;
}

bool kl_basis_solve(const kl_basis *b, uint32_t v, uint32_t *from)
{
    *from = 0;
    return clear(b, v, from) == 0;
}

uint32_t kl_basis_reduce(const kl_basis *b, uint32_t v)
{
    uint32_t from = 0;
    return clear(b, v, &from);
}

uint32_t kl_deposit(uint32_t x, uint32_t mask)
{
    uint32_t y = 0;
    for (; mask; mask &= mask - 1, x >>= 1)
        if (x & 1)
            y |= mask & -mask;
    return y;
}

uint32_t kl_extract(uint32_t x, uint32_t mask)
{
    uint32_t y = 0;
    for (uint32_t i = 0; mask; mask &= mask - 1, i++)
        if (x & mask & -mask)
            y |= 1u << i;
    return y;
}
