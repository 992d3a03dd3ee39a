/* pad.h - folds over what a tile holds where it reaches past the extents (K2702).
 *
 * Two ask: the model of a launch (`kiln explain`), and the interpreter, for the checks. */
#ifndef KL_PAD_H
#define KL_PAD_H

#include "base/diag.h"
#include "ir/ir.h"

typedef struct kl_pad_in {
    const kl_fn *f;
    kl_arena *a;        /* takes what is needed meanwhile */
    const uint8_t *out; /* of each load: axes along which it got no element somewhere, as bits */
    const uint8_t *ran; /* of each instruction; NULL: all were executed */
    const bool *data;   /* kl_data_of */
    kl_val only;        /* this fold; 0: all */
    void *work;         /* NULL at first; memory for the next call */
} kl_pad_in;

/* A diagnostic for each fold in which padding counts, with its cause and a help; `more` adds to it. */
void kl_pad_notes(kl_pad_in *in, kl_diags *d, void (*more)(void *user, struct kl_diag *g),
                  void *user);

/* Which values depend on elements of arrays: more than one, or what a loop or branch made of them. */
bool *kl_data_of(kl_arena *a, const kl_fn *f);

#endif
