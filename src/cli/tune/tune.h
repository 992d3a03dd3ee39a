/* tune.h - the parts of `kiln tune`.
 *
 * A *search* is one point of the sweeps on one device: the launch with the kernel's own constants,
 * and *candidates* with others.  Candidates that cannot work, or cannot win, are pruned before
 * anything is compiled; the rest is compiled together, checked, and measured by halving. */
#ifndef KL_TUNE_H
#define KL_TUNE_H

#include <pthread.h>

#include "cli/bench/case.h"
#include "cli/tune/halving.h"
#include "tool.h"

/* The file (keep.c). */
struct kl_keep {
    char *path;
    struct kl_session *s; /* of the kernels */
    size_t written;
};
/* Whether the file can be read and written.  to: NULL: beside the source.  0 or an exit code. */
int kl_keep_open(struct kl_keep *k, struct kl_session *s, const char *to);
/* Put it in now.  0 or an exit code; the entry is printed then. */
int kl_keep_add(struct kl_keep *k, const kl_tool_tuned *e);
void kl_keep_close(struct kl_keep *k);

/* Ends the process where what runs between begin and end takes too long (watch.c). */
struct kl_guard {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct timespec until;
    double limit_s;
    char *what; /* that runs; NULL: nothing */
    bool open, end;
};
void kl_guard_open(struct kl_guard *g, double limit_s);
void kl_guard_begin(struct kl_guard *g, char *what); /* takes what over */
void kl_guard_end(struct kl_guard *g);
void kl_guard_close(struct kl_guard *g);

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
    struct kl_guard *guard;
    size_t winner;
    double seconds, prune_s, code_s; /* measured, pruned, compiled and verified */
    size_t code_n, code_threads;     /* how many were compiled, by how many threads */
    struct kl_msg why; /* of a failure */
    int rc;            /* not 0: it has been said why nothing more is possible */
};

/* What varies, and all candidates.  0 or an exit code. */
int kl_search_open(struct kl_search *s, const struct kl_point *point);
/* By the model: sets fates (prune.c). */
void kl_search_prune(struct kl_search *s);
/* Arrays, the default's result, code, results of the candidates.  0 or an exit code. */
int kl_search_prepare(struct kl_search *s);
void kl_search_measure(struct kl_search *s, double budget_s);
void kl_search_close(struct kl_search *s);
/* "BM=64 BN=128 warps=8"; allocated. */
char *kl_search_text(const struct kl_search *s, const struct kl_candidate *c);

/* ---- between the parts ---- */

/* A candidate is out; why is taken over.  false. */
bool kl_search_end(struct kl_search *s, struct kl_candidate *c, enum kl_fate fate, char *why);
/* Arguments, n for each of the copies, with the constants of a candidate; allocated. */
kiln_arg *kl_search_args(const struct kl_search *s, const kiln_arg *from, size_t n, size_t copies,
                         const int64_t *v);
char *kl_search_said(kiln_status st, kiln_diags *d); /* allocated; frees d */
bool kl_search_gpu(const struct kl_search *s);

#endif
