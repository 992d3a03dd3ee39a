/* parse.c - fuzz target: any bytes are parsed, printed and reported without a crash, a hang
 * or a leak, also when memory runs out on the way.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc \
 *           -D_POSIX_C_SOURCE=200809L tests/fuzz/parse.c src/base/{mem,diag,elem}.c \
 *           src/lang/{ast,lex,parse*}.c build/gen/embedded.c -lm */
#include <stdlib.h>

#include "lang/ast.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An allocator that can run out: left counts down, below 0 it never does. */
struct budget {
    long left;
};

static void *budget_alloc(void *user, void *ptr, size_t old, size_t size)
{
    struct budget *b = user;
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    if (b->left == 0)
        return NULL;
    b->left -= b->left > 0;
    return kl_alloc_libc.fn(NULL, ptr, old, size);
}

struct source {
    const char *text;
    size_t size;
};

/* Every file that is asked for is a tail of the input, so that includes nest and cycle. */
static const char *read_tail(void *user, kl_arena *a, const char *from, const char *name,
                             bool system, uint32_t *len, const char **fullname)
{
    const struct source *s = user;
    size_t skip = strlen(name) * 7;
    (void)a, (void)from;
    if (system || skip > s->size)
        return NULL;
    *len = (uint32_t)(s->size - skip);
    *fullname = name;
    return s->text + skip;
}

static void once(const char *text, size_t size, long budget)
{
    struct budget left = {budget};
    kl_alloc al = {budget_alloc, &left};
    jmp_buf jb;
    kl_env env = {.al = &al, .fail = &jb};
    kl_arena a = {.env = &env};
    struct source src = {text, size};
    kl_includer inc = {read_tail, &src};
    kl_diags *d = kl_diags_new(&al);
    if (!d)
        return;
    if (setjmp(jb) == 0) {
        kl_diags_use(d, &env, NULL);
        kl_module_ast *m = kl_parse(&a, "fuzz.kiln", text, size, &inc, d);
        kl_buf tree = {.a = &a}, said = {.a = &a};
        kl_ast_print(&tree, m);
        kl_diags_render(&said, d, false);
        if (d->nerr > KL_MAX_ERRORS || m->root->kind != KL_N_MODULE)
            abort();
    }
    kl_diags_use(d, NULL, NULL);
    kl_arena_free(&a);
    kiln_diags_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    once((const char *)data, size, -1);
    once((const char *)data, size, (long)(kl_hash(data, size) % 12));
    return 0;
}
