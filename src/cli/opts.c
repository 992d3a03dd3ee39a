/* opts.c - what a parsed command line says; apart from main.c, for the tests. */
#include "cli/cli.h"

const char *kl_opt(const struct kl_opts *o, enum kl_optid id)
{
    for (size_t i = o->nopt; i-- > 0;)
        if (o->opt[i].id == id)
            return o->opt[i].val;
    return NULL;
}

bool kl_opt_given(const struct kl_opts *o, enum kl_optid id)
{
    for (size_t i = 0; i < o->nopt; i++)
        if (o->opt[i].id == id)
            return true;
    return false;
}
