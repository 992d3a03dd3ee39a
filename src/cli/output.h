/* output.h - arrays that are written to files: -o NAME=FILE. */
#ifndef KL_OUTPUT_H
#define KL_OUTPUT_H

#include "cli/args.h"

struct kl_output {
    char *name;   /* of the array */
    char *tensor; /* in a .safetensors file; NULL: a .npy file */
    size_t stage; /* which kernel writes it */
    size_t file;
    const struct kl_arr *arr; /* set before kl_outputs_write */
};
struct kl_outputs {
    struct kl_output *v;
    size_t n;
    struct kl_outfile *file;
    size_t nfile;
};

/* Add NAME=FILE.npy, NAME=FILE.safetensors or NAME=FILE.safetensors:TENSOR; several tensors may
 * go to one file.  false and a message if it is none of these, or something is named twice. */
bool kl_outputs_add(struct kl_outputs *o, const char *text, size_t stage, struct kl_msg *m);
bool kl_outputs_open(struct kl_outputs *o, struct kl_msg *m); /* all files, before the work */
/* Write all of them, give the files their names, and say so on f. */
bool kl_outputs_write(struct kl_outputs *o, FILE *f, struct kl_msg *m);
bool kl_outputs_wants(const struct kl_outputs *o, size_t stage, const char *name);
void kl_outputs_free(struct kl_outputs *o); /* files that have no name yet vanish */

#endif
