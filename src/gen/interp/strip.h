/* strip.h - private to the loops of the interpreter: n elements in strips of a constant length, which
 * compilers vectorise, and the rest. */
#ifndef KL_STRIP_H
#define KL_STRIP_H

enum { STRIP = 32 }; /* above the 16 rounds that compilers unroll before they vectorise */

/* Statements for each j below n; i is taken. */
#define EACH(...)                                                                                  \
    size_t i = 0;                                                                                  \
    for (; i + STRIP <= n; i += STRIP)                                                             \
        for (size_t strip = 0; strip < STRIP; strip++) {                                           \
            const size_t j = i + strip;                                                            \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    for (size_t j = i; j < n; j++) {                                                               \
        __VA_ARGS__                                                                                \
    }

#endif
