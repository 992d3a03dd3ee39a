/* replay.c - runs a fuzz target without libFuzzer: the files given, and each of them cut short,
 * with bytes changed and with parts repeated, in an order that is always the same.
 *
 * replay-TARGET [-n VARIANTS] FILE... ends with `N passed, 0 failed, 0 skipped`; a crash or a
 * sanitizer's report ends it before that. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t state = 1;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % (n ? n : 1));
}

/* One change of many kinds; the result is at most size + 64 bytes. */
static size_t change(uint8_t *p, size_t size)
{
    static const char *const words[] = {"(", "}", "[", "1", "//", "/*", "\"", "\0", "\xff", "?:",
                                        "9999999999999999999999", "x[0:4]", "kernel", "\n"};
    uint32_t at = below((uint32_t)size), n = 1 + below(16);
    switch (below(5)) {
    case 0: /* cut */
        return at;
    case 1: /* other bytes */
        for (uint32_t i = 0; i < n && at + i < size; i++)
            p[at + i] ^= (uint8_t)(1u << below(8));
        return size;
    case 2: /* a part left out */
        if (at + n < size) {
            memmove(p + at, p + at + n, size - at - n);
            size -= n;
        }
        return size;
    case 3: { /* a word put in */
        const char *w = words[below(sizeof words / sizeof *words)];
        size_t k = strlen(w);
        memmove(p + at + k, p + at, size - at);
        memcpy(p + at, w, k);
        return size + k;
    }
    default: /* a part once more */
        if (at + n < size) {
            memmove(p + at + n, p + at, size - at);
            size += n;
        }
        return size;
    }
}

static unsigned replay(const char *path, unsigned variants)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        printf("FAIL cannot read %s\n", path);
        exit(1);
    }
    static uint8_t text[1 << 20];
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    LLVMFuzzerTestOneInput(text, n);
    for (unsigned i = 0; i < variants; i++) {
        /* of exactly its size, so that a read past the end is seen */
        size_t size = n;
        uint8_t *p = malloc(n + 64 * 4);
        if (!p)
            exit(4);
        memcpy(p, text, n);
        for (uint32_t c = 1 + below(3); c > 0 && size; c--)
            size = change(p, size);
        uint8_t *exact = malloc(size ? size : 1);
        if (!exact)
            exit(4);
        memcpy(exact, p, size);
        free(p);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    return 1 + variants;
}

int main(int argc, char **argv)
{
    unsigned variants = 20, total = 0;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
            variants = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            total += replay(argv[i], variants);
    printf("%u passed, 0 failed, 0 skipped\n", total);
    return 0;
}
