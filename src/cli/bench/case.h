/* case.h - a run of `kiln bench`, and its cases. */
#ifndef KL_BENCHCASE_H
#define KL_BENCHCASE_H

#include "cli/bench/run.h"

struct kl_bench {
    const struct kl_opts *o;
    struct kl_bdev *dev;
    size_t ndev;
    const char **spec; /* kernels, then those of --vs */
    size_t nspec, nvs;
    struct kl_source *src; /* nspec for each device */
    size_t nsrc;
    struct kl_assign *word; /* NAME=VALUE */
    size_t nword;
    struct kl_sweep *sweep;
    size_t nsweep;
    struct kl_sweep *set; /* -D: one of several settings */
    size_t nset;
    struct kl_peer *peer;
    size_t npeer;
    struct kl_reference ref;
    struct kl_loop loop;
    struct kl_report rep;
    struct kl_baseline base;
    const char *flops;
    enum kl_format format;
    bool ceilings, pin, tty;
    struct kl_subject *subject; /* of the case */
    size_t nsubject;
    double progress_s;
    double load; /* of the machine before it began */
};
void kl_bench_note(struct kl_bench *b,
                   char *text); /* a remark of the report; text is kept or freed */
/* The words and options of the command line; then devices and sources.  0 or an exit code. */
int kl_bench_words(struct kl_bench *b);
int kl_bench_lists(struct kl_bench *b);
int kl_bench_number(const struct kl_bench *b, enum kl_optid id, const char *name, double least,
                    double most, double *out);
int kl_bench_devices(struct kl_bench *b);
int kl_bench_sources(struct kl_bench *b);
int kl_bench_names(const struct kl_bench *b);
void kl_bench_close(struct kl_bench *b);
/* The values of a subject: words with the point's names filled in, and those of a setting. */
bool kl_case_words(struct kl_bench *b, struct kl_subject *s, const struct kl_point *point,
                   const struct kl_point *set, struct kl_msg *m);
/* Case number i.  An exit code where the user must mend something. */
int kl_case_run(struct kl_bench *b, size_t i);
/* What is left of a case: its rows go to the report. */
void kl_case_end(struct kl_bench *b);

#endif
