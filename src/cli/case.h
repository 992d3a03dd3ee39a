/* case.h - cases in `//!` comments: reading them and running them. */
#ifndef KL_CASE_H
#define KL_CASE_H

#include "cli/command.h"

enum kl_expectkind {
    KL_EXPECT_VALUE,     /* output y = VALUE, output y ~ VALUE tol T */
    KL_EXPECT_REFERENCE, /* output y ~ reference KERNEL tol T */
    KL_EXPECT_ERROR,     /* error K0123 */
    KL_EXPECT_FINDING    /* finding K1201 */
};

struct kl_expect {
    enum kl_expectkind kind;
    char *name; /* output: the array; else the code */
    char *text; /* VALUE, or the name of the reference kernel */
    struct kl_tol tol;
    unsigned line;
};

struct kl_case {
    char *name, *kernel; /* kernel NULL: the first of the file */
    unsigned line;
    struct kl_assigns set; /* input, const, type, alias */
    struct kl_expect *expect;
    size_t nexpect;
};

struct kl_cases {
    struct kl_case *v;
    size_t n;
};

/* The cases of a source.  Lines before the first `test` make a case without a name, if there are
 * any.  On an error m names the line. */
bool kl_cases_read(const char *text, size_t len, struct kl_cases *out, struct kl_msg *m);
void kl_cases_free(struct kl_cases *c);

/* Findings of the checks, by severity; suppressed: by a comment in the source. */
struct kl_found {
    unsigned errors, warnings, suppressed;
};
bool kl_is_finding(const kiln_diag *d);
void kl_found_add(struct kl_found *f, const kiln_diags *d); /* all in check.c */

/* What running cases adds up to.  Zero-initialise; contexts are made when first needed. */
struct kl_tally {
    unsigned passed, failed, skipped;
    bool verbose, interp_only;
    bool checking, on_sim; /* kiln check: what is found is shown; on the executor */
    struct kl_found found;
    kiln_device device; /* that is compared with the interpreter */
    struct kl_session interp, cpu; /* cpu: that device; ctx NULL: not available, or not wanted */
    struct kl_session plain;       /* on_sim: the interpreter without checks, for references */
};
/* Run the cases of a file; prints failures.  0, or an exit code if nothing could be run. */
int kl_cases_run(struct kl_tally *t, const struct kl_opts *o, const char *path);
void kl_tally_close(struct kl_tally *t);

#endif
