/* prelude.c - the head of a generated file: types, the meaning of operations, conversions,
 * bounds of accesses, reductions in the fixed order, matrix products.  The texts are prelude_*.inc.
 *
 * It agrees with ir/meaning.h and base/elem.c bit by bit; the tests compare.  Functions that
 * a kernel does not use cost the C compiler a few milliseconds and leave nothing behind. */
#include "base/math.h"
#include "gen/c/gen.h"

void kl_c_prelude(kl_buf *b)
{
    static const char *const *const texts[] = {kl_text_prelude_scalar, kl_math_c_text, kl_text_prelude_access,
                                               kl_text_prelude_fold, kl_text_prelude_dot};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (const char *const *p = texts[i]; *p; p++)
            kl_puts(b, *p);
}
