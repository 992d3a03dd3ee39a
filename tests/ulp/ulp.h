/* ulp.h - errors in ULP, for the functions of one argument (ulp.c) and of two (pow.c). */
#ifndef ULP_H
#define ULP_H

#include <stdbool.h>
#include <stdint.h>

#include <mpfr.h>

/* Of y against the true value; infinity counts as the next power of two.  A NaN must be a NaN,
 * and the sign of zero counts: INFINITY otherwise. */
double err32(float y, double ref);
double err64_of(double y, mpfr_t ref); /* spoils ref */
uint64_t next_random(uint64_t *s);

/* pow on random pairs; false: a bound of bounds.def does not hold. */
bool check_pow(uint64_t step, bool wide, bool measure);

#endif
