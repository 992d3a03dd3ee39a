/* lib.h - what the files behind kiln.h share.
 *
 * An API entry is a kl_call: an environment for the compile path, an arena that dies with the
 * call, a list of diagnostics, and the default floating-point environment.  The entry
 * itself never raises; what may raise runs inside kl_guarded.  No lock is held there. */
#ifndef KL_LIB_H
#define KL_LIB_H

#include <fenv.h>
#include <pthread.h>

#include "base/diag.h"
#include "gen/launch.h"
#include "gen/ptx/genptx.h"
#include "lang/lang.h"
#include "opt/pass.h"
#include "rt/cuda.h"
#include "rt/rt.h"

/* ---- calls (call.c) ---- */

struct kl_call {
    kl_env env;
    kl_arena tmp;
    kl_diags *d; /* never NULL between begin and end */
    fenv_t fp;
};

kiln_status kl_call_begin(struct kl_call *c, const kl_alloc *al);
/* Hands the list over if out is not NULL and there is something in it.  Returns s. */
kiln_status kl_call_end(struct kl_call *c, kiln_status s, kiln_diags **out);

/* Run body under a guard; spans of its diagnostics lie in src.  What it raises becomes a
 * status and, where it has a text, a diagnostic.  May be nested. */
typedef kiln_status kl_body(struct kl_call *c, void *arg);
kiln_status kl_guarded(struct kl_call *c, const kl_srcmap *src, kl_body *body, void *arg);

/* Add a diagnostic without a place; lack of memory only loses it.  Returns s. */
kiln_status kl_say(struct kl_call *c, enum kl_code code, kiln_status s, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- code in memory (code.c) ---- */

struct kl_lib; /* a loaded object that several kernels share */

struct kl_native {
    struct kl_native *next;
    uint8_t key[32];
    uint32_t refs;  /* under the context's lock, as building */
    bool building;
    struct kl_lib *lib;
    kl_kernel_fn *fn;
    kiln_cache_state cache;
    double cc_ms, load_ms;
};

/* A text that is to become code. */
struct kl_want {
    const char *name, *text; /* text: one function KILN_KERNEL */
    size_t len;
    uint8_t key[32];
    struct kl_native *code;    /* out: with a reference; NULL on failure */
    bool done;
};

/* Find or make code for all of them, with one run of the compiler at most for those that
 * nobody else is making.  On failure msg says why; those that succeeded keep their code. */
kiln_status kl_code_get(kiln_context *ctx, struct kl_want *w, size_t n, bool *kept,
                        char msg[KL_CC_MSG]);
void kl_code_drop(kiln_context *ctx, struct kl_native *code); /* NULL is fine */
void kl_code_key(const kiln_context *ctx, const char *text, size_t len, uint8_t key[32]);

/* ---- context (context.c) ---- */

struct kl_scratch {
    char *mem, *at; /* at is mem aligned to 64 */
    size_t size;    /* of mem */
};

struct kiln_context {
    kl_alloc al;
    kl_env env;
    kl_arena a;           /* strings of opt, prelude */
    kiln_options opt;
    kiln_device device;
    const char *level;    /* kl_cpu_level() or "" */
    kl_cache *cache;
    const char *cache_problem, *cc_problem;
    kl_cc cc;             /* path NULL: none */
    const char *prelude;  /* CPU */
    size_t nprelude;
    kl_sha256 hash;       /* of all that the keys of code have in common */
    kl_pool *pool;
    kl_cuda *cuda;        /* NULL unless the device is CUDA */
    uint32_t arch;        /* of PTX: 90; 0 unless the device is CUDA or SIM */
    char archname[16];
    kiln_device_info info;
    struct kl_scratch *scratch; /* a thread; used inside kl_pool_run */

    pthread_mutex_t lock; /* guards code and what hangs there */
    pthread_cond_t built;
    struct kl_native *code;
    kiln_kernel *debug; /* kernels with memory for assert and print on the device */
    _Atomic uint32_t recordings; /* graphs being recorded */
    struct kl_trace *_Atomic trace; /* who listens: NULL: nobody */
    struct kl_trace *traces;        /* all so far; under the lock */
    uint64_t (*now)(void *user);    /* the clock of traces; NULL: the system's, but in tests */
    void *now_user;
};

/* kiln_context_create, with the path of the CUDA driver (NULL: libcuda.so.1) for tests. */
kiln_status kl_context_create(const kiln_options *opt, const char *libcuda, kiln_context **out,
                              kiln_diags **diags);
/* A line for the log callback, cut at 500 bytes; costs nothing without one. */
void kl_log(const kiln_context *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What num_sms() gives. */
static inline int64_t kl_num_sms(const kiln_context *ctx)
{
    return ctx->cuda ? kl_cuda_info(ctx->cuda)->sms : (int64_t)kl_pool_threads(ctx->pool);
}
static inline bool kl_on_gpu(const kiln_context *ctx)
{
    return ctx->arch != 0;
}

/* ---- modules (module.c) ---- */

struct kl_slotref {
    uint8_t use;   /* enum kl_param_use */
    uint16_t decl; /* which parameter of the kernel */
};

/* What a kernel is for given types, constants and facts: IR or code. */
struct kl_special {
    struct kl_special *next;
    uint64_t hash;
    const char *key;
    size_t nkey;
    kl_env env;
    kl_arena a, ir;       /* ir: dies when there is code */
    struct kl_slotref *slot;
    uint32_t nslot;
    const kl_fn *fn;      /* interpreter; NULL with code */
    struct kl_native *code;
    struct kl_gpu *gpu;   /* CUDA, SIM; in a */
    const int64_t *extra;
    uint32_t nextra;
    uint64_t scratch;
    kiln_spec_info info;  /* but for the grid */
};

struct kiln_kernel {
    kiln_module *mod;
    const kl_node *node;
    const char *name;
    kiln_param_info *param;
    size_t nparam;
    pthread_mutex_t lock; /* guards the table */
    struct kl_special **bucket;
    uint32_t nbucket, nspecial;
    uint64_t debug;       /* CUDA: what assert and print write to; 0: not yet */
    kiln_kernel *next_debug; /* in the context */
    struct kl_fast *fast; /* the latest launches on a GPU; NULL: none */
    uint32_t nfast;
};

struct kiln_module {
    kiln_context *ctx;
    kl_env env;
    kl_arena a;
    kl_module_ast *ast;
    kiln_kernel *kernel;
    size_t nkernel;
};

/* ---- specialisation (special.c) ---- */

struct kl_item {
    kiln_kernel *k;
    const kiln_arg *args;
    size_t n;
    kl_bound bound;           /* in the call's arena */
    struct kl_special *s;     /* owned by the kernel's table when all is done */
    bool fresh;               /* not yet in the table */
    kl_fn *ir;                /* between lowering and the passes */
    const struct kl_item *same; /* an earlier one of the call that is the same; or NULL */
    const struct kl_act *span; /* of the launch, if somebody listens; or NULL */
    unsigned facts;           /* KL_FACT_* */
    uint32_t part;            /* from 1 on, if its text goes with others'; 0: alone */
    const char *ptx;          /* between kl_gpu_print and kl_gpu_make */
    size_t nptx, body;        /* body: where the head ends */
    struct kl_want want;
    bool no_swizzle;          /* SIM: as in kl_ptx_opts */
    struct kl_sim_counts *counts; /* SIM: what a launch counts goes there, lines into count_arena */
    kl_arena *count_arena;
};
/* Bind, check and prepare all of them.  All belong to one context. */
kiln_status kl_prepare(struct kl_call *c, struct kl_item *item, size_t n);
void kl_special_free(kiln_context *ctx, struct kl_special *s);
/* Parse-tree checks of (k, args) that every entry makes; says what is wrong. */
kiln_status kl_check_args(struct kl_call *c, const char *fn, const kiln_kernel *k,
                          const kiln_arg *args, size_t n);

/* Prepare and run one of them (launch.c). */
kiln_status kl_launch_item(struct kl_call *c, struct kl_item *it, kiln_stream *stream);
/* ---- checks (shadow.c) ---- */

/* Memory of the arrays of a launch, with what it knows of values. */
struct kl_slot *kl_make_slots(struct kl_call *c, const struct kl_item *it);
void kl_add_shadow(struct kl_call *c, const struct kl_item *it, struct kl_slot *slot);
/* After the launch: arrays that are only written, had no values, and have some elements without. */
void kl_find_unwritten(struct kl_call *c, const struct kl_item *it, const struct kl_slot *slot);

/* SIM: what only the source shows, found in the interpreter; memory stays as it is (precheck.c).
 * *instead: a loop does not end, and all checks were made there. */
kiln_status kl_check_source(struct kl_call *c, struct kl_item *it, const struct kl_slot *slot,
                            bool *instead);
/* Of the diagnostics from `to` on, drop those that are among [from, to), too. */
void kl_drop_told(struct kl_call *c, uint32_t from, uint32_t to);
/* Passes that are of no use to the interpreter. */
extern const char *const kl_not_interp[];

/* Findings that a comment in the source allows become notes (allow.c); the status without them. */
kiln_status kl_allow(struct kl_call *c, const struct kl_item *it, kiln_status st);

/* ---- GPUs (gpu.c) ---- */

enum { KL_FACT_V16 = 1, KL_FACT_I32 = 2 };
/* What LANGUAGE 7 calls the facts of a launch. */
unsigned kl_facts(const kiln_kernel *k, const kl_bound *b);

struct kl_sim;
struct kl_gpu {
    kl_cukernel k; /* of SIM: without fn */
    kl_ptxinfo info;
    struct kl_sim *sim;
    kl_srcmap *src; /* of sim: the PTX text */
    uint64_t ctas_most;
};
/* From the IR of it->s to PTX, which raises, and from there to code on the device. */
kiln_status kl_gpu_print(struct kl_call *c, struct kl_item *it);
kiln_status kl_gpu_make(struct kl_call *c, struct kl_item *it);
/* CUDA: kl_gpu_make for all that are fresh, together. */
kiln_status kl_gpu_make_many(struct kl_call *c, struct kl_item *item, size_t n);
void kl_gpu_free(kiln_context *ctx, struct kl_special *s);
/* Run what kl_prepare made. */
kiln_status kl_gpu_launch(struct kl_call *c, struct kl_item *it, kiln_stream *stream);
/* CUDA: what would go wrong on the device, before anything is written. */
kiln_status kl_gpu_check(struct kl_call *c, const struct kl_item *it, kiln_stream *stream);
/* Initial values of arrays in device memory. */
kiln_status kl_gpu_fill(struct kl_call *c, const struct kl_item *it, kiln_stream *stream);
/* How many CTAs a launch of so many programs has. */
uint32_t kl_gpu_ctas(const struct kl_gpu *g, const int64_t grid[3]);
const kiln_tensor *kl_tensor_of(const struct kl_item *it, uint32_t decl); /* NULL: not given */
/* The row of PTX targets for a compute capability, or 0; what a target is called. */
uint32_t kl_ptx_target(int capability);
bool kl_ptx_parse_arch(const char *name, uint32_t *arch);
/* Turn a failure of the driver into a diagnostic; returns s. */
kiln_status kl_say_cuda(struct kl_call *c, kiln_status s, const kl_cudaerr *e);

/* ---- the latest launches of a kernel (fast.c) ---- */

/* Launch at once if these arguments are like those of a recent launch but for addresses.  false:
 * take the long way. */
bool kl_fast_launch(kiln_kernel *k, void *custream, const kiln_arg *args, size_t n);
/* Remember a launch that kl_gpu_launch made with all arrays on the device. */
void kl_fast_note(const struct kl_item *it, const uint64_t *param);
void kl_fast_free(kiln_kernel *k);

/* ---- assert and print (debug.c) ---- */

/* Memory for what a launch records, given to its parameter.  *words: host memory to be handed to
 * kl_debug_end; NULL: the kernel records nothing, or on the device. */
kiln_status kl_debug_begin(struct kl_call *c, struct kl_item *it, uint64_t **words);
/* Report it: prints to the callback, a failed assertion as a diagnostic.  s: of the launch. */
kiln_status kl_debug_end(struct kl_call *c, const struct kl_item *it, uint64_t *words,
                         kiln_status s);
/* CUDA: the same for all launches of the context, which it waits for. */
kiln_status kl_debug_collect(struct kl_call *c, kiln_context *ctx);
/* ... at the end of a call that waited; s is the status so far. */
kiln_status kl_debug_sync(kiln_context *ctx, kiln_status s, kiln_diags **out);
void kl_debug_free(kiln_kernel *k);

/* ---- streams (stream.c) ---- */

struct kl_recording;

struct kiln_stream {
    kiln_context *ctx;
    void *cu;
    bool own;
    struct kl_recording *rec; /* NULL: what is queued is done */
    uint32_t member;          /* its number there */
};
/* The end of a call that needs a list of diagnostics only if it failed; returns s. */
kiln_status kl_finish_cuda(kiln_context *ctx, kiln_status s, const kl_cudaerr *e,
                           kiln_diags **out);
/* KILN_E_ARG, with K1809. */
kiln_status kl_wrong(kiln_context *ctx, kiln_diags **out, const char *text);

/* ---- launches that are prepared (launch.c) ---- */

/* From the initial values to the report of assertions. */
kiln_status kl_launch_prepared(struct kl_call *c, struct kl_item *it, kiln_stream *stream);

/* ---- graphs (graph.c) ---- */

static inline bool kl_recording(const kiln_stream *s)
{
    return s && s->rec;
}
/* The driver forbids the default stream, and waiting for all, while a stream is captured, and the
 * capture suffers; so fn refuses that on every device.  st: what the call was given. */
kiln_status kl_graph_allows(kiln_context *ctx, const kiln_stream *st, const char *fn,
                            kiln_diags **diags);
/* K1818. */
kiln_status kl_graph_refuse(kiln_context *ctx, kiln_diags **diags, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Add to what the stream records, on the host's devices and SIM.  A launch's item is copied. */
kiln_status kl_record_copy(kiln_stream *st, void *to, const void *from, size_t bytes);
kiln_status kl_record_fill(kiln_stream *st, void *to, uint8_t value, size_t bytes);
kiln_status kl_record_launch(kiln_stream *st, const struct kl_item *it);
/* CUDA: the driver has recorded a launch of this kernel. */
void kl_record_name(kiln_stream *st, const char *name);
/* The stream is about to die. */
void kl_record_leave(kiln_stream *st);

enum { KL_RECORD_STREAMS = 32 };
/* A place in a recording: how many operations of each stream lie before it. */
struct kl_mark {
    struct kl_recording *rec; /* NULL: none.  Counted */
    uint32_t seen[KL_RECORD_STREAMS];
};
void kl_mark_set(struct kl_mark *m, const kiln_stream *st);
void kl_mark_drop(struct kl_mark *m);
/* Whether the stream may wait for the mark: K1818 if not. */
kiln_status kl_mark_check(const struct kl_mark *m, const kiln_stream *st, kiln_context *ctx,
                          kiln_diags **diags);
/* The stream waits: it takes part in the recording from now on. */
void kl_mark_join(const struct kl_mark *m, kiln_stream *st);

/* Bind what a launch with these arguments would have; arrays may be missing. */
kiln_status kl_bind_shapes(struct kl_call *c, const char *fn, kiln_kernel *k, const kiln_arg *args,
                           size_t n, kl_bound *out);
/* What the driver says of a device, under strings that the caller keeps. */
kiln_device_info kl_info_of(const kl_cudainfo *c, const char *name, const char *arch, int32_t index);
/* A text of a call for its caller, freed by kl_tool_free (tool.c). */
kiln_status kl_tool_hand_over(kiln_context *ctx, kl_buf *b, char **text);

#endif
