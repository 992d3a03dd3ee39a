/* tune.c - fuzzing of the tune files' reader: what is accepted is written as a text that is accepted
 * again and written as the same text; what is not has a reason and a line of the text. */
#include <stdio.h>
#include <stdlib.h>

#include "base/tunefile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void read_write(kl_arena *a, const char *text, size_t size)
{
    kl_tunefile f = {.a = a}, g = {.a = a};
    kl_buf once = {.a = a}, twice = {.a = a};
    uint32_t line = 0, lines = 1;
    const char *why = NULL;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    if (!kl_tunefile_parse(&f, text, size, &line, &why)) {
        require(why && *why && line >= 1 && line <= lines);
        return;
    }
    kl_tunefile_print(&once, &f);
    require(kl_tunefile_parse(&g, kl_buf_str(&once), once.n, &line, &why));
    require(g.entry.n == f.entry.n);
    kl_tunefile_print(&twice, &g);
    require(once.n == twice.n && memcmp(once.s, twice.s, once.n) == 0);
    for (uint32_t i = 0; i < g.entry.n; i++)
        kl_tunefile_put(&f, &g.entry.v[i]); /* each is there already */
    require(f.entry.n <= g.entry.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kl_alloc al = kl_alloc_libc;
    jmp_buf jb;
    kl_env env = {.al = &al, .fail = &jb};
    kl_arena a = {.env = &env};
    if (setjmp(jb) == 0)
        read_write(&a, (const char *)data, size);
    else
        require(env.status != KILN_E_INTERNAL);
    kl_arena_free(&a);
    return 0;
}
