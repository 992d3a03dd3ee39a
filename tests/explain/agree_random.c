/* agree_random.c - model-agree on random programs (tests/random). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random/random.h"
#include "agree.h"

static void one(const struct options *o, struct totals *t, kiln_context *ctx, uint64_t seed)
{
    struct rprog p = {0};
    struct rmem mem = {0};
    kiln_module *mod = NULL;
    kiln_diags *d = NULL;
    char what[60];
    bool bad = false, left = false;
    snprintf(what, sizeof what, "random program %llu", (unsigned long long)seed);
    generate(&p, seed);
    char *text = program_text(p.line, p.nline);
    mem_make(&p, &mem);
    kiln_status s = kiln_compile(ctx, "random.kiln", text, strlen(text), &mod, NULL);
    if (!s)
        s = agree_run(o, t, kiln_module_at(mod, 0), mem.arg, mem.narg, what, &bad, &left, &d);
    if (bad && o->verbose)
        printf("%s\n", text);
    if (bad)
        t->failed++;
    else if (s || left) /* programs that are rejected, or use what the device lacks */
        t->skipped++;
    else
        t->passed++;
    kiln_diags_free(d);
    kiln_module_free(mod);
    mem_free(&mem);
    free(text);
    pool_free(&p.mem);
}

void agree_random(const struct options *o, struct totals *t, kiln_context *ctx, unsigned long n,
                  unsigned long seed)
{
    for (unsigned long i = 0; i < n; i++)
        one(o, t, ctx, seed + i);
}
