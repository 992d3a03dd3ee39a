/* case.c - fuzzing of what people write: `//!` cases, and each line as a value. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "cli/case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void value(const char *text)
{
    struct kl_value v;
    struct kl_msg m;
    uint64_t count;
    if (!kl_value_parse(text, &v, &m))
        return;
    if ((v.kind == KL_VALUE_LIST || v.kind == KL_VALUE_GEN) &&
        kl_shape_count(v.ndim, v.shape, 8, &count) && count < 4096)
        for (int e = 1; e < KL_NELEM; e++) {
            char *p = malloc((size_t)count * 8 + 1);
            if (p)
                kl_value_fill(&v, (enum kl_elem)e, p, count, &m);
            free(p);
        }
    kl_value_free(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kl_cases c;
    struct kl_msg m;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (kl_cases_read(text, size, &c, &m))
        kl_cases_free(&c);
    for (char *s = text, *nl; s; s = nl ? nl + 1 : NULL) {
        nl = strchr(s, '\n');
        if (nl)
            *nl = 0;
        value(s);
    }
    free(text);
    return 0;
}
