/* foreign.c - what to write in place of names of other languages. */
#include <string.h>

#include "lang/lang.h"

static const struct {
    const char *name, *hint;
} table[] = {
#define FOREIGN(name, hint) {#name, hint},
#include "lang/foreign.def"
#undef FOREIGN
};

const char *kl_foreign(const char *name)
{
    for (size_t i = 0; name && i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].hint;
    return NULL;
}
