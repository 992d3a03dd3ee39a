/* trace.h - what a run did, collected: for `kiln trace`. */
#ifndef KL_CLI_TRACE_H
#define KL_CLI_TRACE_H

#include <pthread.h>

#include "cli/cli.h"

/* Something that began and ended. */
struct kl_traced {
    kiln_trace_kind kind; /* 0: a step of the command itself */
    kiln_trace_place place;
    char *name, *detail;
    uint64_t begin, end; /* ns */
    uint64_t id, thread, stream, bytes, error, programs;
    uint32_t threads, flags;
    kiln_cache_state cache;
    kiln_status status;
    size_t nth;    /* the order in which it was told */
    uint64_t self; /* of the host: without what lies inside (kl_tracer_order) */
};

struct kl_tracer {
    pthread_mutex_t lock;
    struct kl_traced *v;
    size_t n;
    uint64_t thread;          /* that of the command */
    uint64_t begin, end;      /* of the whole; 0: not known */
    const char *device;       /* what the GPU is called; "" or NULL: there is none */
    char *name;               /* the same, allocated; or NULL */
    uint64_t open[8], nopen;  /* steps of the command that have begun */
    const char *opened[8];
};

uint64_t kl_tracer_now(void); /* CLOCK_MONOTONIC, ns */
void kl_tracer_init(struct kl_tracer *t);
void kl_tracer_free(struct kl_tracer *t);
/* For kiln_context_trace, with the tracer as user. */
void kl_tracer_hear(void *tracer, const kiln_trace_event *e);
/* A step of the command: it is in the trace as what the library does.  t NULL: nothing. */
void kl_tracer_step(struct kl_tracer *t, const char *name);
void kl_tracer_done(struct kl_tracer *t);
/* Put all in order: what began earlier first, and what lies around before what lies inside; compute
 * what is left of the host's without what lies inside. */
void kl_tracer_order(struct kl_tracer *t);

/* The trace as JSON text for chrome://tracing and Perfetto; the caller frees it.  Ordered. */
char *kl_tracer_json(const struct kl_tracer *t, size_t *n);

/* ---- numbers (sum.c, table.c) ---- */

struct kl_trace_row {
    const char *name, *detail; /* of the tracer */
    size_t n;
    uint64_t total, min, max, bytes; /* ns */
    bool several;                    /* another row has the name */
};
/* Longest first. */
struct kl_trace_rows {
    struct kl_trace_row *v;
    size_t n;
    uint64_t total;
};
struct kl_trace_sum {
    struct kl_trace_rows kernels; /* one for each kernel with its types and shapes */
    struct kl_trace_rows copies, host;
    uint64_t whole;
    bool gpu;
    uint64_t busy, first, last, error; /* of the GPU */
};
/* Of an ordered tracer, which must outlive it. */
void kl_tracer_sum(const struct kl_tracer *t, struct kl_trace_sum *s);
void kl_trace_sum_free(struct kl_trace_sum *s);
/* Kernels, copies, compilation, host time.  Ordered. */
void kl_tracer_table(const struct kl_tracer *t, FILE *f);
/* The same as JSON, schema kiln.trace/1; path: the file with the time line, or NULL.  The caller
 * frees it; NULL: no memory. */
char *kl_tracer_report(const struct kl_tracer *t, const char *path);

/* ---- the ranges of a profiler (nvtx.c) ---- */

/* With a profiler's library, as NVTX_INJECTION64_PATH names it: load it, once.  false: it is no such
 * library, or refused; why says so. */
bool kl_nvtx_open(const char *path, char *why, size_t n);
bool kl_nvtx_on(void);
/* For kiln_context_trace: a range for each launch. */
void kl_nvtx_hear(void *user, const kiln_trace_event *e);

#endif
