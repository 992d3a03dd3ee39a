/* shadow.c - for the checks: which bytes of the arrays of a launch have a value. */
#include "lang/debug.h"
#include "lib/lib.h"

struct kl_slot *kl_make_slots(struct kl_call *c, const struct kl_item *it)
{
    struct kl_slot *slot = kl_new_n(&c->tmp, struct kl_slot, it->s->nslot + 1);
    for (uint32_t i = 0; i < it->s->nslot; i++) {
        const struct kl_boundparam *p = &it->bound.param[it->s->slot[i].decl];
        if (it->s->slot[i].use == KL_P_ARRAY)
            slot[i] = (struct kl_slot){.base = p->data, .lo = p->lo, .hi = p->hi};
        else
            slot[i].bits = p->bits;
        const kl_node *params = it->k->node->kid[0];
        slot[i].hidden = it->s->slot[i].decl < params->nkid &&
                         params->kid[it->s->slot[i].decl]->flags & KL_NF_DEBUG;
    }
    return slot;
}

/* ---- shadow memory: which bytes have a value ---- */

struct span {
    const char *lo, *hi;
    uint8_t *mem;
};

static bool is_uninit(const struct kl_item *it, uint32_t slot)
{
    uint32_t decl = it->s->slot[slot].decl;
    for (size_t i = 0; i < it->n; i++)
        if (it->args[i].kind == KILN_ARG_TENSOR &&
            strcmp(it->args[i].name, it->k->param[decl].name) == 0)
            return it->args[i].u.tensor.flags & KILN_TENSOR_UNINIT && !it->bound.param[decl].init;
    return false;
}

/* Arrays may share memory: spans that overlap become one, so that a write through one name is
 * seen through the other. */
void kl_add_shadow(struct kl_call *c, const struct kl_item *it, struct kl_slot *slot)
{
    uint32_t n = it->s->nslot, ns = 0;
    struct span *span = kl_new_n(&c->tmp, struct span, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (it->s->slot[i].use != KL_P_ARRAY || !slot[i].base)
            continue;
        struct span s = {slot[i].lo, slot[i].hi, NULL};
        for (uint32_t j = 0; j < ns;) {
            struct span *o = &span[j];
            if (s.hi <= o->lo || o->hi <= s.lo) {
                j++;
                continue;
            }
            s.lo = o->lo < s.lo ? o->lo : s.lo;
            s.hi = o->hi > s.hi ? o->hi : s.hi;
            *o = span[--ns]; /* merged; look again at all, as s has grown */
            j = 0;
        }
        span[ns++] = s;
    }
    for (uint32_t j = 0; j < ns; j++) {
        span[j].mem = kl_alloc_zero(&c->tmp, (size_t)(span[j].hi - span[j].lo));
        memset(span[j].mem, 1, (size_t)(span[j].hi - span[j].lo));
    }
    /* first all have values, then those that were marked lose them */
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < ns; j++) {
            const char *lo = slot[i].lo, *hi = slot[i].hi;
            if (it->s->slot[i].use != KL_P_ARRAY || !slot[i].base || lo < span[j].lo ||
                hi > span[j].hi || lo >= hi)
                continue;
            slot[i].shadow = span[j].mem + (lo - span[j].lo);
            if (is_uninit(it, i))
                memset(slot[i].shadow, 0, (size_t)(hi - lo));
        }
    for (uint32_t i = 0; i < n; i++) /* where all have a value, nothing is left to know */
        if (slot[i].shadow && !memchr(slot[i].shadow, 0,
                                      (size_t)((const char *)slot[i].hi - (const char *)slot[i].lo)))
            slot[i].shadow = NULL;
}

/* ---- elements that no program wrote ---- */

static bool wants_all(const struct kl_item *it, uint32_t slot)
{
    const struct kl_boundparam *p = &it->bound.param[it->s->slot[slot].decl];
    const kiln_param_info *info = &it->k->param[it->s->slot[slot].decl];
    return it->s->slot[slot].use == KL_P_ARRAY && p->given && !p->init && info->writes &&
           !info->reads && is_uninit(it, slot);
}

/* Programs were ended before they had written all: by a loop, or an assertion. */
static bool cut_short(const struct kl_call *c, const struct kl_item *it, const struct kl_slot *slot)
{
    for (uint32_t i = 0; i < c->d->list.n; i++)
        if (strcmp(c->d->list.v[i]->pub.code, "K1701") == 0)
            return true;
    for (uint32_t i = 0; i < it->s->nslot; i++)
        if (slot[i].hidden && slot[i].base && ((const uint64_t *)slot[i].base)[KL_DEBUG_FAILED])
            return true;
    return false;
}

void kl_find_unwritten(struct kl_call *c, const struct kl_item *it, const struct kl_slot *slot)
{
    if (cut_short(c, it, slot))
        return;
    for (uint32_t i = 0; i < it->s->nslot; i++) {
        uint32_t decl = it->s->slot[i].decl;
        const struct kl_boundparam *p = &it->bound.param[decl];
        if (slot[i].hidden || !slot[i].shadow || !wants_all(it, i))
            continue;
        if (!memchr(slot[i].shadow, 0, (size_t)((const char *)slot[i].hi - (const char *)slot[i].lo)))
            continue;
        int64_t at[KL_MAX_DIMS] = {0}, first[KL_MAX_DIMS] = {0};
        uint64_t missing = 0, all = 1;
        size_t size = kl_elems[p->elem].bytes;
        for (int32_t d = 0; d < p->rank; d++)
            all = p->ext[d] <= 0 || p->ext[d] == INT64_MAX ? 0 : all * (uint64_t)p->ext[d];
        for (uint64_t n = 0; n < all; n++) {
            const char *q = slot[i].base;
            for (int32_t d = 0; d < p->rank; d++)
                q += at[d] * p->str[d] * (int64_t)size;
            if (q >= (const char *)slot[i].lo && q + size <= (const char *)slot[i].hi &&
                memchr(slot[i].shadow + (q - (const char *)slot[i].lo), 0, size) && !missing++)
                memcpy(first, at, sizeof at);
            for (int32_t d = p->rank; d-- > 0;) {
                if (++at[d] < p->ext[d])
                    break;
                at[d] = 0;
            }
        }
        if (!missing)
            continue;
        kl_buf b = {.a = &c->tmp};
        for (int32_t d = 0; d < p->rank; d++)
            kl_putf(&b, "[%lld]", (long long)first[d]);
        const kl_node *node = it->k->node->kid[0]->kid[decl];
        const char *name = it->k->param[decl].name;
        struct kl_diag *e =
            kl_diag(c->d, KL_K1403, node->name_span, "no program wrote %s%s: %llu of %llu elements have no value",
                    name, kl_buf_str(&b), (unsigned long long)missing, (unsigned long long)all);
        kl_note(e, (kl_span){0, 0}, "the launch has %lld program%s",
                (long long)(it->bound.grid[0] * it->bound.grid[1] * it->bound.grid[2]),
                it->bound.grid[0] * it->bound.grid[1] * it->bound.grid[2] == 1 ? "" : "s");
    }
}
