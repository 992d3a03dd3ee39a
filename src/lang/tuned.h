/* tuned.h - constants found by measuring, which a launch takes where its caller gives none, and the
 * space in which `kiln tune` looks for them. */
#ifndef KL_TUNED_H
#define KL_TUNED_H

#include "base/mem.h"
#include "lang/ast.h"

/* An entry that holds for the kernels of this module on this device (lib/tune.c). */
struct kl_tunedval {
    const char *name;
    int64_t v; /* a constant's value, the class of a size, or the element type of a type */
    bool least; /* of a size: this class, and all above */
};
struct kl_tuned {
    const char *kernel;
    struct kl_tunedval *when, *with, *use; /* with: constants that the launch must have */
    uint32_t nwhen, nwith, nuse, line;     /* line: of the text, where the entry begins */
};

/* GPU defaults that a launch may give as if they were constants of the kernel. */
enum kl_knob { KL_KNOB_WARPS, KL_KNOB_STAGES, KL_KNOB_CLUSTER, KL_NKNOB };
extern const char *const kl_knob_name[KL_NKNOB];
enum { KL_KNOB_MOST = 64 };
int kl_knob_of(const char *name); /* -1: none */

/* Sizes with the same class share an entry: the powers of two, rounded up. */
int64_t kl_size_class(int64_t v);
/* Whether parameter p is an integer scalar that stands in an extent of an array. */
bool kl_is_size(const kl_node *kernel, uint32_t p);

/* What the tune clauses of a kernel vary, in their order. */
typedef struct kl_space {
    struct kl_spacevar {
        const char *name;
        int64_t *v; /* as written; a value that stands twice is left out */
        uint32_t n;
        int64_t preset; /* what a launch without it has; 0 for a knob that the kernel leaves open */
        bool knob;
        kl_span span;
    } * var;
    uint32_t nvar;
} kl_space;

#endif
