/* bench.h - the parts of `kiln bench`.
 *
 * A *case* is one point of the sweeps.  In a case stand *subjects*: a kernel with its settings on a
 * device, or a peer.  Each subject has one lane for cold arrays and one for warm ones; all lanes of
 * a case are measured in turn (loop.h).  A subject becomes a *row* of the report. */
#ifndef KL_BENCH_H
#define KL_BENCH_H

#include "cli/bench/loop.h"
#include "cli/bench/word.h"
#include "cli/command.h"

enum { KL_BURST = 16, KL_COPIES = 48 };

/* ---- the clock of a device (clock.c) ---- */

struct kl_watch {
    kiln_device device;
    int32_t index;
    double full_mhz;    /* what the chip can do; 0: unknown */
    char governor[40];  /* of the CPU; "" unknown */
    char turbo[40];     /* "on", "off"; "" unknown */
    char throttle[200]; /* reasons, and in how many of the bursts; "" none or unknown */
    bool throttle_known;
    char driver[40];     /* its version, "" unknown */
    size_t looks, seen[8]; /* how often reasons were read, and each of them was there */
    void *nvml, *handle; /* the library, the device */
    struct kl_nvml *fn;
};
void kl_watch_open(struct kl_watch *w, kiln_device device, int32_t index);
double kl_watch_mhz(const struct kl_watch *w); /* now; 0: unknown */
void kl_watch_look(struct kl_watch *w);     /* reads the reasons for throttling, after a burst */
void kl_watch_throttle(struct kl_watch *w); /* what was seen, as w->throttle */
void kl_watch_close(struct kl_watch *w);
double kl_bench_now(void *user); /* seconds, monotonic */
/* Each thread that the process has now onto a core of its own; how many. */
unsigned kl_pin_threads(void);
/* Programs that wanted to run, on average of the last minute; negative: unknown. */
double kl_machine_load(void);
/* The cores that the threads of the process may use together, as a cpu_set_t. */
void kl_all_cores(void *set, size_t bytes);

/* ---- a device (dev.c) ---- */

struct kl_bdev {
    char *name;        /* as given to --device */
    const char *label; /* the same, and what auto became */
    struct kl_opts o;  /* the command line with this device alone */
    struct kl_optval *opt;
    struct kl_session s; /* the context */
    kiln_device kind;
    bool cuda;
    double start_ms;        /* to make the context */
    uint64_t cache_bytes;   /* the last cache before memory */
    const char *cache_name; /* "L2 cache", "last-level cache" */
    kiln_event *ev[2 * KL_BURST];
    struct kl_watch watch;
    kiln_module *mod; /* copy and read, for the ceilings and to flush the cache */
    kiln_buffer *big[2],
        *sums; /* of ceiling_bytes each, when needed; what the read kernel writes */
    kiln_buffer *few[2];
    double plug_ms; /* CUDA: what a copy from one to the other takes */
    struct kl_ceiling {
        struct kl_bdev *d;
        bool reads;           /* else it copies */
        bool flush;           /* the cache is flushed before each launch, as for the case */
        int64_t best, block;  /* the better one for large arrays, and for this case; 0: the driver's
                                 own copy */
        uint64_t bytes, next; /* of one array; where the next launch begins */
        double gbs;           /* measured beside the last case; 0: not */
        double least, most;   /* of all cases */
    } ceiling[2];             /* copy, read */
    uint64_t ceiling_bytes;
    double empty_ns; /* a launch of a kernel that does next to nothing */
};
int kl_bdev_open(struct kl_bdev *d, const struct kl_opts *o, const char *name, bool pin);
void kl_bdev_close(struct kl_bdev *d);
/* Which copying and which reading kernel is the fastest here. */
bool kl_bdev_ceilings(struct kl_bdev *d, const struct kl_rule *rule, struct kl_msg *m);
/* Samples of one, for lanes beside those of a case; user is a struct kl_ceiling. */
bool kl_ceiling_take(void *user, size_t n, double *ms, struct kl_msg *m);
/* From now on launches move so many bytes, each at another place; flush: with an empty cache each. */
void kl_ceiling_size(struct kl_ceiling *c, uint64_t traffic, bool flush);
void kl_ceiling_set(struct kl_ceiling *c, const double *sorted, size_t n);
bool kl_bdev_flush(struct kl_bdev *d, struct kl_msg *m); /* queued on a GPU */
bool kl_bdev_busy(struct kl_bdev *d, double ms, struct kl_msg *m);
/* A failed call as one line of text; frees the list. */
bool kl_bench_why(struct kl_msg *m, const char *what, kiln_status st, kiln_diags *d);

/* ---- copies of a launch's arrays on a device (set.c) ---- */

struct kl_bset {
    struct kl_bdev *dev;
    const struct kl_args *host;
    kiln_kernel *k;
    size_t n;            /* copies */
    kiln_arg *arg;       /* n times host->n */
    kiln_buffer **buf;   /* n times host->n; NULL where an array shares memory or is none */
    kiln_buffer **first; /* what arrays that are updated in place held, or NULL */
    uint64_t bytes;      /* of one copy */
    bool updates;        /* something is updated in place */
};
bool kl_bset_make(struct kl_bset *b, struct kl_bdev *dev, kiln_kernel *k,
                  const struct kl_args *host, size_t copies, struct kl_msg *m);
void kl_bset_free(struct kl_bset *b);
bool kl_bset_launch(struct kl_bset *b, size_t copy, double *host_s, struct kl_msg *m);
bool kl_bset_restore(struct kl_bset *b, size_t copy, struct kl_msg *m); /* queued */
/* Each byte of what is only written. */
bool kl_bset_poison(struct kl_bset *b, size_t copy, uint8_t byte, struct kl_msg *m);
/* What the kernel writes, from a copy to the host's arrays. */
bool kl_bset_fetch(struct kl_bset *b, size_t copy, struct kl_msg *m);
/* Compare what is only written in a copy with the host's arrays.  false: they differ, or an
 * error; m says.  *same: the same bits. */
bool kl_bset_check(struct kl_bset *b, size_t copy, const struct kl_tol *tol, bool *same,
                   struct kl_msg *m);
/* The same for everything that the kernel writes, also in place; so behind one launch of a restored
 * and poisoned copy. */
bool kl_bset_check_all(struct kl_bset *b, size_t copy, const struct kl_tol *tol, bool *same,
                       struct kl_msg *m);
/* How many copies are more than twice the cache; 0: KL_COPIES are less, so that the cache must be
 * flushed. */
size_t kl_copies_for(uint64_t bytes, uint64_t cache);
uint64_t kl_args_bytes(const struct kl_args *a);   /* of the arrays, each memory once */
uint64_t kl_args_traffic(const struct kl_args *a); /* each once as it is read and written */

/* ---- what is measured ---- */

struct kl_peer;
struct kl_e2e {
    bool done;
    double start_ms, front_ms, cold_ms, warm_ms, load_ms, up_ms, down_ms, first_ms, kernel_ms;
};

struct kl_row {
    char *kernel;  /* "softmax/f32", "torch eager" */
    char *setting; /* "BLOCK=256", "" */
    char *shape;   /* "4096x4096" */
    char *point;   /* "rows=4096 cols=4096", "" without a sweep */
    char *values; /* what the parameters got: "x=randn(4096x4096,f32,0)"; NULL: a peer */
    char *device;
    bool peer, failed, skipped;
    bool broken; /* failed, since a peer did not do its work: no finding */
    struct kl_summary_stats stat[2]; /* cold, warm */
    double *sample[2];
    enum kl_stop stop[2];
    size_t dropped[2];
    double clock[2]; /* share of the full clock at first and at last; negative: unknown */
    bool has[2];
    const char *cold_by; /* "copies", "flush", "peer" */
    size_t copies;
    uint64_t bytes;
    double flops; /* 0: not said */
    double gbs, gflops, of_copy, of_read;
    double copy_gbs, read_gbs; /* the ceilings beside it; 0: not measured */
    double launch_ns;          /* 0: not known */
    char *check;               /* how the result was verified */
    char *note;                /* why it failed or was left out */
    kiln_spec_info info;
    struct kl_versus vs, base; /* against the first subject or --vs; against --baseline */
    bool has_vs, has_base;
    struct kl_e2e e2e;
};
void kl_row_free(struct kl_row *r);

/* The parts of a report; what is not text comes from kl_report_json. */
struct kl_report {
    const struct kl_bdev *dev;
    size_t ndev;
    struct kl_row *row;
    size_t nrow;
    bool cold, warm, end_to_end;
    const char *vs_name, *base_name; /* NULL: not compared */
    double fail_on;                  /* negative: not given */
    size_t width; /* of the terminal: text leaves columns out that do not fit; 0: no limit */
    size_t cases, regressed, failed;
    size_t broken;    /* of the failed ones */
    size_t unmatched; /* rows that --baseline says nothing of */
    const struct kl_peer *peer; /* for their versions */
    size_t npeer;
    char **note; /* remarks below the table */
    size_t nnote;
};
enum kl_format { KL_FORMAT_TEXT, KL_FORMAT_JSON, KL_FORMAT_CSV, KL_FORMAT_MD };
bool kl_format_parse(const char *s, enum kl_format *out);
/* The whole report as text, allocated.  samples: with every sample, for --save. */
char *kl_report_text(const struct kl_report *r, enum kl_format f, bool samples);
/* "66.1 us", "1.23 ms". */
char *kl_time_text(double ms, char buf[32]);

/* ---- a report of before (json.c) ---- */

struct kl_baseline {
    void *root; /* of jansson */
    char *path;
};
char *kl_report_json(const struct kl_report *r, bool samples);
bool kl_baseline_open(struct kl_baseline *b, const char *path, struct kl_msg *m);
/* The row of the same kernel, setting, shape, point and device; *samples is to be freed. */
bool kl_baseline_find(const struct kl_baseline *b, const struct kl_row *r, int warm,
                      struct kl_summary_stats *out, double **samples);
/* Why ratios to that row say less than they seem to, allocated; NULL: nothing is known. */
char *kl_baseline_doubt(const struct kl_baseline *b, const struct kl_row *r,
                        const struct kl_bdev *d);
void kl_baseline_close(struct kl_baseline *b);

/* ---- from nothing to the result (e2e.c) ---- */

/* Start, compile without and with a cache, copies, first launch. */
bool kl_e2e_run(struct kl_bdev *d, const struct kl_session *src, const struct kl_args *args,
                struct kl_e2e *out, struct kl_msg *m);

#endif
