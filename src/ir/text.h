/* text.h - what printer, reader and verifier share. */
#ifndef KL_TEXT_H
#define KL_TEXT_H

#include "ir/ir.h"

void kl_put_type(kl_buf *b, const struct kl_type *t); /* f32[8][4]; array<f32,2> */
/* A constant, exactly: 3, true, 0.5, 0x1.8p-20, inf, nan(0x7fc00000). */
void kl_put_const(kl_buf *b, enum kl_elem e, uint64_t bits);
/* kl_ir_verify, and the instruction at fault (0: none in particular). */
const char *kl_ir_verify_at(const kl_fn *f, kl_arena *a, kl_val *where);

#endif
