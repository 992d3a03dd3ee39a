/* tuned.c - names of what may be tuned, and classes of sizes. */
#include "lang/tuned.h"

#include "lang/setup.h"

const char *const kl_knob_name[KL_NKNOB] = {"warps", "stages", "cluster"};

int kl_knob_of(const char *name)
{
    for (int k = 0; k < KL_NKNOB; k++)
        if (strcmp(kl_knob_name[k], name) == 0)
            return k;
    return -1;
}

int64_t kl_size_class(int64_t v)
{
    int64_t c = 1;
    if (v <= 1)
        return v < 0 ? 0 : v;
    while (c < v && c < INT64_C(1) << 62)
        c <<= 1;
    return c;
}

static bool names(const kl_node *n, const char *name)
{
    if (!n)
        return false;
    if (n->kind == KL_N_NAME && n->name == name)
        return true;
    for (uint32_t i = 0; i < n->nkid; i++)
        if (names(n->kid[i], name))
            return true;
    return false;
}

bool kl_is_size(const kl_node *kernel, uint32_t p)
{
    const kl_node *params = kernel->kid[0], *n = params->kid[p];
    if (kl_param_kind(n) != KL_PK_SCALAR || n->flags & KL_NF_DEBUG)
        return false;
    for (uint32_t q = 0; q < params->nkid; q++)
        if (kl_param_kind(params->kid[q]) == KL_PK_ARRAY &&
            !(params->kid[q]->flags & KL_NF_DEBUG) && names(kl_param_dims(params->kid[q]), n->name))
            return true;
    return false;
}
