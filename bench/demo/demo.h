/* demo.h - the parts of the demo: input file, reference, the machine's copy. */
#ifndef DEMO_H
#define DEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- data.c ---- */

/* A matrix of f32, about normal with variance 1, as .npy; a file of that shape is kept. */
bool data_make(const char *path, size_t rows, size_t cols);
/* Read it into memory from malloc, aligned to 64 bytes; NULL after a message. */
float *data_read(const char *path, size_t *rows, size_t *cols);
float *data_alloc(size_t count); /* aligned to 64, pages touched */
double now(void);                /* seconds */

/* ---- ref.c ---- */

/* How far y is from the reference, which is computed in double precision by libm. */
struct error {
    double max_ulp;  /* in units in the last place of f32 at the reference */
    double max_abs;
    double rms;      /* RMS of the error over RMS of the reference */
    size_t worst;    /* where max_ulp is */
    size_t mask;     /* elements where one is NaN or infinite and the other is not */
};
enum ref_kind { REF_SOFTMAX, REF_GELU_ERF, REF_GELU_TANH };
void reference(enum ref_kind kind, const float *x, const float *y, size_t rows, size_t cols,
               unsigned threads, struct error *out);

/* ---- copy.c ---- */

/* memcpy of n floats by this many threads; seconds. */
double copy_time(float *dst, const float *src, size_t n, unsigned threads);

#endif
