/* pass.h - passes and their driver. */
#ifndef KL_PASS_H
#define KL_PASS_H

#include "ir/ir.h"

/* What a back end asks for; NULL: none in particular. */
struct kl_target {
    bool fused; /* a load is a part of its use: none is done early */
};

/* true: changed something.  The driver checks the claim in checked mode. */
typedef bool kl_pass_fn(kl_fn *f, const struct kl_target *t);

struct kl_passinfo {
    const char *name, *doc;
    kl_pass_fn *run;
};
#define PASS(name, fn, doc) kl_pass_fn fn;
#include "opt/passes.def"

extern const struct kl_passinfo kl_passes[];
extern const uint32_t kl_npasses;

typedef struct kl_pipeline {
    const char *const *pass; /* names, NULL-terminated; NULL: by level */
    uint32_t level;          /* 1: only what lowering needs; 2: all */
    bool check;              /* verify after each pass, check progress claims, round-trip text */
    const char *const *skip; /* names to leave out, NULL-terminated, or NULL */
    const char *stop_after;  /* or NULL */
    const char *print_after; /* a name, or "all"; text goes to out */
    kl_buf *out;
} kl_pipeline;

/* Raises KILN_E_INTERNAL through f->a->env naming the pass if a check fails;
 * KILN_E_ARG if a name is unknown. */
void kl_run_passes(kl_fn *f, const kl_pipeline *p, const struct kl_target *t);

#endif
