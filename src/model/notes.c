/* notes.c - the rules: what of a model deserves a word. */
#include "model/run.h"
void kl_model_notes(const kl_model *m, const kl_model_in *in, kl_diags *d)
{
    (void)m, (void)in, (void)d;
}
