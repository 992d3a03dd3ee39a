/* command.h - what the commands that launch a kernel share. */
#ifndef KL_COMMAND_H
#define KL_COMMAND_H

#include "cli/args.h"
#include "cli/compare.h"

/* The NAME=VALUE words and -D options of a command line.  v and the names behind it live until
 * kl_assigns_free. */
struct kl_assigns {
    struct kl_assign *v;
    size_t n;
};
/* The first positional argument is FILE; the others must be NAME=VALUE.  0 or an exit code. */
int kl_assigns_read(struct kl_assigns *a, const struct kl_opts *o);
/* The same for a part of the command line: arguments [arg0, arg1), all NAME=VALUE, and options
 * [opt0, opt1). */
struct kl_part {
    size_t arg0, arg1, opt0, opt1;
};
int kl_assigns_read_part(struct kl_assigns *a, const struct kl_opts *o, const struct kl_part *p);
/* One NAME=VALUE; false if it is none.  The name is allocated. */
bool kl_assign_split(const char *word, struct kl_assign *out);
void kl_assigns_free(struct kl_assigns *a);

/* ---- --verify (verify.c) ---- */

/* One reference: an array for one output, or a kernel that computes them all. */
struct kl_ref {
    const kiln_param_info *p; /* the output that is compared; NULL: every output */
    struct kl_arr file;
    kiln_module *mod; /* of FILE.kiln:KERNEL; NULL: the module of the run */
    kiln_kernel *kernel;
    char *label; /* "ref.npy", "softmax_ref" */
};
struct kl_verify {
    struct kl_session *s;
    struct kl_tol tol;
    struct kl_ref *ref;
    size_t n;
    struct kl_msg *said; /* where the last comparison is told; NULL: on standard output */
};
/* Read the --verify and --tol options and open what they name.  0 or an exit code. */
int kl_verify_open(struct kl_verify *v, struct kl_session *s, kiln_kernel *k,
                   const char *const *wanted);
/* Compare the outputs of a finished run; prints a line for each.  A reference kernel gets the
 * values of the command line anew.  KL_RC_OK, KL_RC_FINDINGS, or an error with its message. */
int kl_verify_run(struct kl_verify *v, const struct kl_args *run, const struct kl_assigns *as,
                  const char *const *wanted);
void kl_verify_close(struct kl_verify *v);

/* ---- the launches of `kiln run` (run.c) ---- */

struct kl_tracer;
/* The command line's launches, `repeat` times, with a listener; nothing is shown of the results. */
int kl_run_traced(const struct kl_opts *o, struct kl_tracer *t, size_t repeat);

/* ---- several kernels (chain.c) ---- */

/* Launch one after the other.  On a GPU several of them work on arrays of the device: each is
 * copied there once, and what was written is copied back at the end; so does one that is
 * repeated.  *failed: which one. */
kiln_status kl_chain_launch(struct kl_session *s, struct kl_args *const *run, size_t n,
                            size_t repeat, size_t *failed, kiln_diags **diags);

/* ---- --time (time.c) ---- */

/* Launch again and again, and print what it takes. */
int kl_time(struct kl_session *s, const struct kl_args *run, const kiln_spec_info *info);

#endif
