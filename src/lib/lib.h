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
#include "lang/lang.h"
#include "opt/pass.h"
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
    struct kl_scratch *scratch; /* a thread; used inside kl_pool_run */

    pthread_mutex_t lock; /* guards code and what hangs there */
    pthread_cond_t built;
    struct kl_native *code;
};

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
    struct kl_want want;
};
/* Bind, check and prepare all of them.  All belong to one context. */
kiln_status kl_prepare(struct kl_call *c, struct kl_item *item, size_t n);
void kl_special_free(kiln_context *ctx, struct kl_special *s);
/* Parse-tree checks of (k, args) that every entry makes; says what is wrong. */
kiln_status kl_check_args(struct kl_call *c, const char *fn, const kiln_kernel *k,
                          const kiln_arg *args, size_t n);

#endif
