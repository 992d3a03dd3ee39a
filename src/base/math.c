/* math.c - math.def as C text: one string a row, so that no literal is long. */
#include "base/math.h"

#include <stddef.h>

/* clang-format off */
#define KL_X_add(t, a, b) #a " + " #b
#define KL_X_sub(t, a, b) #a " - " #b
#define KL_X_mul(t, a, b) #a " * " #b
#define KL_X_div(t, a, b) #a " / " #b
#define KL_X_and(t, a, b) #a " & " #b
#define KL_X_or(t, a, b)  #a " | " #b
#define KL_X_xor(t, a, b) #a " ^ " #b
#define KL_X_umulhi(t, a, b) "kl_umulhi_" #t "(" #a ", " #b ")"
#define KL_X_shl(t, a, b) #a " << " #b
#define KL_X_shr(t, a, b) #a " >> " #b
#define KL_X_min(t, a, b) #a " < " #b " ? " #a " : " #b
#define KL_X_lt(t, a, b)  #a " < " #b
#define KL_X_gt(t, a, b)  #a " > " #b
#define KL_X_eq(t, a, b)  #a " == " #b
#define KL_X_neg(t, a)    "-" #a
#define KL_X_abs(t, a)    "kl_abs_" #t "(" #a ")"
#define KL_X_sqrt(t, a)   "kl_sqrt_" #t "(" #a ")"
#define KL_X_trunc(t, a)  "kl_trunc_" #t "(" #a ")"
#define KL_X_fma(t, a, b, c) "kl_fma_" #t "(" #a ", " #b ", " #c ")"

#define MATH(name, t)        "KL_MATH " #t " kl_" #name "_" #t "(" #t " x)\n{\n",
#define MATH2(name, t)       "KL_MATH " #t " kl_" #name "_" #t "(" #t " x, " #t " y)\n{\n",
#define K(t, v, lit)         "    " #t " " #v " = " #lit ";\n",
#define I1(t, v, op, a)      "    " #t " " #v " = " KL_X_##op(t, a) ";\n",
#define I2(t, v, op, a, b)   "    " #t " " #v " = " KL_X_##op(t, a, b) ";\n",
#define I3(t, v, op, a, b, c) "    " #t " " #v " = " KL_X_##op(t, a, b, c) ";\n",
#define CMP(v, op, t, a, b)  "    _Bool " #v " = " KL_X_##op(t, a, b) ";\n",
#define SEL(t, v, c, a, b)   "    " #t " " #v " = " #c " ? " #a " : " #b ";\n",
#define BC(t, v, from, a)    "    " #t " " #v " = kl_bitcast_" #t "_" #from "(" #a ");\n",
#define CALL(t, v, fn, a)    "    " #t " " #v " = kl_" #fn "_" #t "(" #a ");\n",
#define RET(t, v)            "    return " #v ";\n}\n\n",

const char *const kl_math_c_text[] = {
    /* the functions are long, and a call left in a loop would end its vectorising */
    "#define KL_MATH static inline __attribute__((always_inline))\n",
#include "base/math.def"
    NULL,
};
/* clang-format on */
