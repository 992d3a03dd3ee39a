/* tool.h - what the command line needs beyond kiln.h: stages of a compile as text, cases in
 * sources, lists.  Internal; not installed, not stable. */
#ifndef KL_TOOL_H
#define KL_TOOL_H

#include "kiln.h"

/* ---- stages as text ---- */

typedef struct kl_tool_emit_opts {
    const char *stage;       /* "ast", "ir", "c" or "ptx" */
    uint32_t level;          /* 0: the context's; 1; 2 */
    const char *print_after; /* ir: a pass name or "all": the IR after it comes first; or NULL */
    const char *const *skip; /* pass names, NULL-terminated, or NULL */
    const char *stop_after;  /* a pass name, or NULL */
    int check;               /* verify after each pass, check progress claims, round-trip text */
    int lines;               /* c: #line, ptx: .loc directives to the Kiln source */
    const char *arch;        /* ptx: "sm_80"; NULL: sm_90 */
} kl_tool_emit_opts;

/* k may be NULL for "ast".  args as for kiln_specialize; arrays need shapes and types, and may
 * have data NULL.  *text ends in NUL and is freed by kl_tool_free. */
kiln_status kl_tool_emit(kiln_module *mod, kiln_kernel *k, const kiln_arg *args, size_t n,
                         const kl_tool_emit_opts *opts, char **text, kiln_diags **diags);
void kl_tool_free(kiln_context *ctx, char *text);

/* ---- ahead of time (build.c) ---- */

typedef struct kl_tool_build_opts {
    const char *name;          /* of the files and of all that they declare: a C identifier */
    const char *source;        /* what the files say they come from */
    const char *kernel;        /* NULL: all */
    const char *const *target; /* "cpu", "sm_80" */
    size_t ntarget;
    const char *(*define)[2];  /* name; values: "f32,bf16", "128:65536:*2" */
    size_t ndefine;
} kl_tool_build_opts;

/* The texts of NAME.h and NAME.c, and what NAME_manifest_json gives (NULL: not wanted), freed by
 * kl_tool_free. */
kiln_status kl_tool_build(kiln_module *mod, const kl_tool_build_opts *opts, char **header,
                          char **source, char **manifest, kiln_diags **diags);

/* ---- formatting ---- */

/* A source in the project's form, in *out (n bytes and a NUL), freed by kl_tool_free.  KILN_E_COMPILE: it does not
 * parse.  What it includes is not read. */
kiln_status kl_tool_format(kiln_context *ctx, const char *name, const char *text, size_t length,
                           char **out, size_t *n, kiln_diags **diags);

/* ---- a kernel's resolved launch, without running it ---- */

typedef struct kl_tool_param {
    const char *name;
    kiln_param_kind kind;
    int32_t given;    /* by args */
    kiln_dtype dtype; /* of a type parameter: its value */
    int32_t ndim;     /* arrays */
    int64_t shape[8], strides[8];
    int64_t ival; /* integer scalars and constants */
    double fval;  /* the value of any scalar or constant, as a double */
    int32_t is_float;
} kl_tool_param;

/* Parameters in declaration order, as a launch with these arguments would see them; arrays
 * that are not given get the shape that kiln_infer_shape computes.  out has room for
 * kiln_kernel_param_count(k) entries; names live as long as the kernel. */
kiln_status kl_tool_resolve(kiln_kernel *k, const kiln_arg *args, size_t n, kl_tool_param *out,
                            int64_t grid[3], kiln_diags **diags);

/* ---- tuning (tune.c) ---- */

typedef struct kl_tool_var {
    const char *name;
    const int64_t *value; /* to try, as written */
    size_t n;
    int64_t preset; /* what a launch has without it; 0 for warps, stages or cluster left open */
    int32_t is_knob; /* one of these three, and no parameter */
} kl_tool_var;
typedef struct kl_tool_space {
    const char *device; /* "cpu x86-64-v4" */
    const char *source; /* hash of the kernel, 16 digits */
    const char *when;   /* types and classes of sizes: "T=f32 rows=16384 cols>=1024 with MODE=1" */
    kl_tool_var *var;   /* of the tune clauses */
    size_t nvar;
} kl_tool_space;
/* For a launch with these arguments; constants among them are part of `when`.  above: sizes
 * ("rows,cols", "all") for which the entry holds above their class, too; or NULL.  Freed by
 * kl_tool_space_free. */
kiln_status kl_tool_space_get(kiln_kernel *k, const kiln_arg *args, size_t n, const char *above,
                              kl_tool_space **out, kiln_diags **diags);
void kl_tool_space_free(kl_tool_space *s);

/* What code for a launch would need, by the front end and the back end's text alone. */
typedef struct kl_tool_need {
    int64_t grid[3];
    uint32_t threads, shared_bytes, cluster; /* of a GPU */
    uint32_t blocks, warps; /* that fit on a multiprocessor, were it not for registers; 0 and
                               `shared_most` not 0: none does */
    uint32_t shared_most;   /* bytes that a block may have; 0: not known */
    uint64_t widest;        /* elements of the largest tile */
    uint64_t scratch_bytes;                  /* a thread of the CPU */
    /* GPU: what the model counts for the launch, padding of tiles included (model/model.h) */
    int32_t counted;                         /* 0: it depends on data */
    uint64_t sectors, wavefronts, work;
    uint8_t code[32];                        /* equal for the same code and grid */
} kl_tool_need;
/* count: with what the model counts. */
kiln_status kl_tool_need_get(kiln_kernel *k, const kiln_arg *args, size_t n, int count,
                             kl_tool_need *out, kiln_diags **diags);

typedef struct kl_tool_tuned {
    const kiln_kernel *k;
    const kl_tool_space *space;
    const kl_tool_var *var; /* nvar that were varied */
    size_t nvar;
    const int64_t *use; /* one each; NULL: the defaults */
    double ms, of_ms;
} kl_tool_tuned;
/* The text of a tune file: old (n bytes of `name`, or none) with these entries put in.  Freed by
 * kl_tool_free. */
kiln_status kl_tool_tune_text(kiln_module *mod, const char *name, const char *old, size_t n,
                              const kl_tool_tuned *e, size_t ne, char **text, kiln_diags **diags);
/* kiln_module_tune as if the device were another one ("cuda sm_90 NVIDIA H200"), of which the last
 * words may be missing; NULL: the context's. */
kiln_status kl_tool_tune(kiln_module *mod, const char *name, const char *text, size_t length,
                         const char *device, kiln_diags **diags);
/* How many entries launches of this module can use. */
size_t kl_tool_tuned_count(const kiln_module *mod);

/* ---- cases in the source: `//!` lines in order, the text behind `//!` ---- */

size_t kl_tool_test_count(const kiln_module *mod);
const char *kl_tool_test_line(const kiln_module *mod, size_t i, kiln_place *place);

/* ---- lists; NULL past the end ---- */

const char *kl_tool_pass_name(size_t i);
const char *kl_tool_pass_doc(size_t i);
const char *kl_tool_arch_name(size_t i); /* "sm_80" */
const char *kl_tool_embedded_name(size_t i); /* "act.kiln" */
/* Codes of diagnostics in order: title and page; NULL past the end. */
const char *kl_tool_diag_code(size_t i, const char **title, const char **page);

/* ---- for a signal handler ---- */

/* End the C compilers that run now, with all they started.  Async-signal-safe. */
void kl_tool_kill_children(void);

/* ---- what doctor prints ---- */

/* The level of this CPU for generated code ("x86-64-v4"), or NULL. */
const char *kl_tool_cpu_level(void);
/* First line of `cc --version` of the context's compiler, or NULL. */
const char *kl_tool_cc_version(const kiln_context *ctx);
/* Why the context has no C compiler though one was named, or NULL. */
const char *kl_tool_cc_problem(const kiln_context *ctx);
/* NVIDIA GPU number i: 1, 0 past the last one, -1 if there is none to use (why in text, of n
 * bytes).  Nothing is started on the device. */
int kl_tool_cuda_device(size_t i, kiln_device_info *out, char *text, size_t n);
/* Leave out what a comment in the source allows (severity note). */
void kl_tool_drop_notes(kiln_diags *d);
/* docs/ops.md as text; free with kl_tool_free. */
kiln_status kl_tool_ops_markdown(kiln_context *ctx, char **text);

#endif
