/* tune.h - the parts of `kiln tune`.
 *
 * A *search* is one point of the sweeps on one device: the launch with the kernel's own constants,
 * and *candidates* with others.  Candidates that cannot work, or cannot win, are pruned before
 * anything is compiled; the rest is compiled together, checked, and measured by halving. */
#ifndef KL_TUNE_H
#define KL_TUNE_H

#include "cli/benchcase.h"
#include "cli/halving.h"
#include "tool.h"

/* Why a candidate did not take part, or not to the end. */
enum kl_fate {
#define FATE(id, text) KL_FATE_##id,
#include "cli/fate.def"
    KL_NFATE
};
extern const char *const kl_fate_text[KL_NFATE]; /* "does not fit" */

struct kl_candidate {
    int64_t *v; /* one a variable */
    enum kl_fate fate;
    char *why; /* in detail; or NULL */
    size_t by; /* of KL_FATE_dominated: by which */
    bool done; /* compiled and verified, if it is still alive */
    kl_tool_need need;
    kiln_spec_info info;
    kiln_arg *arg;       /* as the default's, with these constants; for each copy */
    struct kl_subject s; /* borrows all but arg from the default's */
    struct kl_lane_of of;
    bool same_bits;
};

struct kl_search {
    struct kl_bench *b;
    struct kl_source *src;
    kl_tool_space *space;
    kl_tool_var *var; /* what varies: of the tune clause, without what -D fixes; of -D lists */
    int64_t **own;    /* values of those lists */
    size_t nvar;
    kl_tool_param *param;   /* as the default's launch sees them */
    struct kl_candidate *c; /* [0]: the default */
    size_t n;
    size_t count[KL_NFATE];
    struct kl_subject base;
    struct kl_rival *rival;
    size_t *of_rival, nrival; /* which candidate a rival is */
    struct kl_halving halving;
    size_t winner;
    double seconds;
    struct kl_msg why; /* of a failure */
};

/* What varies, and all candidates.  0 or an exit code. */
int kl_search_open(struct kl_search *s, const struct kl_point *point);
/* By the model: sets fates. */
void kl_search_prune(struct kl_search *s);
/* Arrays, the default's result, code, results of the candidates.  0 or an exit code. */
int kl_search_prepare(struct kl_search *s);
void kl_search_measure(struct kl_search *s, double budget_s);
void kl_search_close(struct kl_search *s);
/* "BM=64 BN=128 warps=8"; allocated. */
char *kl_search_text(const struct kl_search *s, const struct kl_candidate *c);

#endif
