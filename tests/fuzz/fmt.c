/* fmt.c - fuzz target: whatever parses can be formatted, and formatting the result changes
 * nothing.  That tokens, comments and tree stay the same is checked by kl_format itself.  Each
 * input is tried as it is and with other blanks, newlines and comments where it has blanks.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc \
 *           -D_POSIX_C_SOURCE=200809L tests/fuzz/fmt.c src/base/{mem,diag,elem}.c \
 *           src/lang/{ast,lex,fmt,fmt_line,parse*}.c build/gen/embedded.c -lm */
#include <stdio.h>
#include <stdlib.h>

#include "lang/lang.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void format(const char *text, size_t size)
{
    kl_alloc al = kl_alloc_libc;
    jmp_buf jb;
    kl_env env = {.al = &al, .fail = &jb};
    kl_arena a = {.env = &env};
    kl_buf once = {.a = &a}, twice = {.a = &a};
    kl_diags *d = kl_diags_new(&al);
    if (!d)
        return;
    if (setjmp(jb) == 0) {
        kl_diags_use(d, &env, NULL);
        if (kl_format(&a, "fuzz.kiln", text, size, &once, d)) {
            if (!kl_format(&a, "fuzz.kiln", kl_buf_str(&once), once.n, &twice, d))
                abort();
            if (once.n != twice.n || memcmp(once.s, twice.s, once.n) != 0) {
                fprintf(stderr, "not stable:\n%s\n--- then\n%s\n", once.s, twice.s);
                abort();
            }
        }
    } else if (env.status == KILN_E_INTERNAL) {
        fprintf(stderr, "%s\n", env.msg);
        abort();
    }
    kl_diags_use(d, NULL, NULL);
    kl_arena_free(&a);
    kiln_diags_free(d);
}

/* The input with its blanks replaced, but for those in texts, comments and directives. */
static void respace(const char *s, size_t n, uint32_t seed)
{
    static const char *const put[] = {" ", " ", " ", "\n", "\n\n\n", "\t ", " /* c */ ", "\n// c\n",
                                      " // c\n", "\n/* two\n * lines */", " /* a */ /* b */\n"};
    char *out = malloc(n * 20 + 1);
    size_t at = 0;
    if (!out)
        return;
    for (size_t i = 0; i < n;) {
        size_t stop = i + 1;
        if (s[i] == '"' || s[i] == '#' || (s[i] == '/' && i + 1 < n && s[i + 1] == '/')) {
            char end = s[i] == '"' ? '"' : '\n';
            while (stop < n && s[stop] != end && s[stop] != '\n')
                stop += s[stop] == '\\' && stop + 1 < n ? 2 : 1;
            stop += stop < n && end == '"';
            stop = stop < n ? stop : n;
        } else if (s[i] == '/' && i + 1 < n && s[i + 1] == '*') {
            while (stop + 1 < n && !(s[stop] == '*' && s[stop + 1] == '/'))
                stop++;
            stop = stop + 2 < n ? stop + 2 : n;
        } else if (s[i] == ' ' || s[i] == '\n') {
            const char *w;
            while (stop < n && (s[stop] == ' ' || s[stop] == '\n'))
                stop++;
            seed = seed * 1664525u + 1013904223u;
            w = put[(seed >> 16) % (sizeof put / sizeof *put)];
            if (stop < n && s[stop] == '#') /* stays at the begin of a line, and ends there */
                w = "\n";
            if (i && (seed >> 8) % 4)
                w = memchr(s + i, '\n', stop - i) ? "\n" : " ";
            memcpy(out + at, w, strlen(w));
            at += strlen(w);
            i = stop;
            continue;
        }
        memcpy(out + at, s + i, stop - i);
        at += stop - i;
        if (s[i] == '#' || (s[i] == '/' && stop < n && s[stop] == '\n'))
            out[at++] = '\n';
        i = stop;
    }
    format(out, at);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    format((const char *)data, size);
    for (uint32_t i = 0; i < 3; i++)
        respace((const char *)data, size, kl_hash(data, size) + i);
    return 0;
}
