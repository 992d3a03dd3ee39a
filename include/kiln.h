/* kiln.h - compile and run tile kernels.  C99 and later, valid as C++.
 *
 * A kernel written in the Kiln language (docs/language.md) is compiled in
 * memory, specialised for element types and constants, and launched on arrays
 * of the host or of a GPU.  Three steps are enough:
 *
 *     kiln_context_create(&opt, &ctx, NULL);
 *     kiln_compile(ctx, "softmax.kiln", text, length, &mod, &diags);
 *     kiln_launch(kiln_module_kernel(mod, "softmax"), NULL, args, nargs, &diags);
 *
 * The library never prints, exits, forks, reads the environment, or reads or
 * writes files unless an option asks for it: kiln_options.cc allows a child
 * process, .cache_dir a cache folder, .include_dirs reading sources.
 *
 * Errors.  Every function that can fail returns a kiln_status; 0 is success and
 * errors are negative with pinned numbers.  Functions that take a kiln_diags **
 * may hand back a list of diagnostics, on success as well (warnings); *out is
 * NULL when there is none.  The caller frees it.  NULL means not wanted.
 * KILN_E_ARG for a NULL where something must stand, KILN_E_NOMEM and KILN_E_INTERNAL may come from
 * any of them; what else may come is said there.  On failure *out is NULL.
 *
 * Units and ownership.  Sizes and offsets of memory are in bytes; extents, strides and lengths of
 * lists are numbers of elements.  What a call is given, it reads before it returns and does not
 * keep, unless that is said.  What it hands back behind a pointer to const is borrowed: of the
 * object it was asked of, and valid as long as that one.  A kiln_x is freed by kiln_x_free.
 *
 * What the library does, and when, is told to a function on request: kiln_context_trace.
 *
 * Threads.  Contexts, modules, kernels and specialisations may be used from several threads at the
 * same time: to compile, specialise, launch, read what is known of them, make and free objects of
 * them.  A buffer, stream, event, graph or diagnostics list follows the caller's order: one thread at
 * a time; a recording and its streams do so together.  Freeing an object while another thread uses
 * it is an error of the caller.  Functions that take no object may be called from any thread. */
#ifndef KILN_H
#define KILN_H

#include <stddef.h>
#include <stdint.h>

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0
#define KILN_VERSION (KILN_VERSION_MAJOR * 10000 + KILN_VERSION_MINOR * 100 + KILN_VERSION_PATCH)

#if defined(__GNUC__) && !defined(KILN_API)
#define KILN_API __attribute__((visibility("default")))
#elif !defined(KILN_API)
#define KILN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- version and status ---- */

/* X(name, number, text).  Numbers are pinned; new ones are added at the end. */
#define KILN_STATUS_MAP(X)                                                                         \
    X(OK, 0, "no error")                                                                           \
    X(E_ARG, -1, "invalid argument")                                                               \
    X(E_COMPILE, -2, "the kernel source has an error")                                             \
    X(E_NOMEM, -3, "out of memory")                                                                \
    X(E_DEVICE, -4, "no such device, or it failed")                                                \
    X(E_TOOLCHAIN, -5, "the C compiler is missing or failed")                                      \
    X(E_UNSUPPORTED, -6, "not supported by this version or device")                                \
    X(E_BOUNDS, -7, "an access outside an array or another checked error")                         \
    X(E_IO, -8, "a file could not be read or written")                                             \
    X(E_INTERNAL, -9, "internal error; please report it")

typedef enum kiln_status {
#define KILN_X(name, num, text) KILN_##name = num,
    KILN_STATUS_MAP(KILN_X)
#undef KILN_X
} kiln_status;

KILN_API unsigned kiln_version(void);                     /* KILN_VERSION of the library */
KILN_API const char *kiln_build_id(void);                 /* identifies the build; part of cache keys */
KILN_API const char *kiln_status_name(kiln_status s);     /* "KILN_E_ARG"; never NULL */
KILN_API const char *kiln_status_text(kiln_status s);     /* "invalid argument"; never NULL */

/* ---- element types ---- */

typedef enum kiln_dtype {
    KILN_DTYPE_NONE = 0,
    KILN_BOOL = 1, KILN_I8 = 2, KILN_I16 = 3, KILN_I32 = 4, KILN_I64 = 5,
    KILN_U8 = 6, KILN_U16 = 7, KILN_U32 = 8, KILN_U64 = 9,
    KILN_F16 = 10, KILN_BF16 = 11, KILN_F32 = 12, KILN_F64 = 13,
    KILN_F8E4M3 = 14, KILN_F8E5M2 = 15
} kiln_dtype;

KILN_API const char *kiln_dtype_name(kiln_dtype t); /* "f32"; "none" for an unknown number */
KILN_API size_t kiln_dtype_size(kiln_dtype t);      /* bytes; 0 for an unknown number */

/* ---- diagnostics ---- */

typedef struct kiln_diags kiln_diags;
typedef enum kiln_severity { KILN_NOTE = 0, KILN_WARNING = 1, KILN_ERROR = 2 } kiln_severity;

/* A place in a source.  file is NULL if there is none.  line and col count from
 * 1, col in bytes; the range ends before end_col on the same line. */
typedef struct kiln_place {
    const char *file;
    uint32_t line, col, end_col;
    const char *text; /* the source line, without its newline */
} kiln_place;

typedef struct kiln_diag_note {
    kiln_place place;
    const char *text;
} kiln_diag_note;

/* Everything is owned by the list and lives until kiln_diags_free. */
typedef struct kiln_diag {
    kiln_severity severity;
    const char *code; /* "K0123"; `kiln help K0123` explains it */
    kiln_place place;
    const char *text;
    const kiln_diag_note *notes;
    size_t nnotes;
    const char *fix; /* NULL, or what to write instead of the range at fix_place */
    kiln_place fix_place;
} kiln_diag;

KILN_API size_t kiln_diags_count(const kiln_diags *d); /* NULL: 0 */
KILN_API const kiln_diag *kiln_diags_at(const kiln_diags *d, size_t i); /* NULL: no such one */
/* All of them as text, in the form of docs/language.md section 9.  snprintf's rule:
 * returns the length needed, writes at most n bytes with a NUL.  color: 0 or 1. */
KILN_API size_t kiln_diags_render(const kiln_diags *d, int color, char *buf, size_t n);
KILN_API void kiln_diags_free(kiln_diags *d); /* NULL is fine */
/* The help page of a code, or NULL if there is no such code.  Lives as long as the library. */
KILN_API const char *kiln_diag_page(const char *code);

/* ---- context ---- */

typedef struct kiln_context kiln_context;
typedef struct kiln_module kiln_module;
typedef struct kiln_kernel kiln_kernel; /* owned by its module */
typedef struct kiln_spec kiln_spec;
typedef struct kiln_buffer kiln_buffer;
typedef struct kiln_stream kiln_stream; /* work in order, beside other streams */
typedef struct kiln_event kiln_event;   /* a point in a stream */
typedef struct kiln_graph kiln_graph;   /* recorded work */

typedef enum kiln_device {
    KILN_DEVICE_AUTO = 0,   /* the CPU with a C compiler, else the interpreter */
    KILN_DEVICE_INTERP = 1, /* the checked interpreter */
    KILN_DEVICE_CPU = 2,
    KILN_DEVICE_CUDA = 3,   /* an NVIDIA GPU; never chosen by AUTO in this version */
    KILN_DEVICE_SIM = 4     /* the GPU's code, executed and checked on the CPU */
} kiln_device;

/* Zero-initialise, set size = sizeof(kiln_options) (KILN_OPTIONS_INIT does).
 * Strings are copied.  A shorter struct of an older caller is accepted; a
 * longer one if what the library does not know is zero. */
typedef struct kiln_options {
    uint32_t size;
    kiln_device device;
    uint32_t threads;      /* 0: one a core that the process may use */
    uint32_t opt_level;    /* 0: default (2); 1: no passes but what lowering needs; 2: all */
    const char *cc;        /* absolute path of a C compiler; NULL: no child process */
    const char *cache_dir; /* NULL: nothing is kept on disk */
    const char *keep_dir;  /* where generated C and objects are kept; NULL: nowhere */
    const char *const *include_dirs; /* for #include "file"; NULL-terminated; NULL: none */
    uint32_t cc_timeout_ms; /* 0: 60,000 */
    uint32_t checks;       /* KILN_CHECK_*: what the interpreter and SIM report */
    /* Memory: size 0 frees; NULL on failure, the old block untouched; aligned for any type;
     * called from several threads.  NULL: realloc and free. */
    void *(*alloc)(void *user, void *ptr, size_t old, size_t size);
    void *alloc_user;
    uint64_t cache_cap; /* bytes the cache may hold; 0: 256 MiB */
    int32_t device_index; /* CUDA: which device, from 0 */
    const char *arch;   /* SIM: the target, as "sm_80"; NULL: sm_90 */
    /* What print() of a kernel says: one call a line, text of n bytes without a newline, and the
     * program it comes from.  Called by the launch on the host's devices and SIM, and by whatever
     * waits on CUDA (kiln_sync, kiln_stream_sync, a launch with host arrays), from that thread,
     * with no lock held; it must not call the library.  NULL: the text is dropped. */
    void (*print)(void *user, const char *text, size_t n, const int64_t program[3]);
    void *print_user;
    /* What the library does: one call a line, without a newline: what was compiled, for how long,
     * what the cache had.  Called from any thread that compiles.  NULL: nobody. */
    void (*log)(void *user, const char *text, size_t n);
    void *log_user;
    /* Serve #include from memory, before include_dirs are looked at.  from: the file that includes;
     * name: as written, without quotes.  Returns the text and its length, which are copied before
     * the next call, or NULL: not known here.  Called by kiln_compile, in its thread. */
    const char *(*include)(void *user, const char *from, const char *name, size_t *length);
    void *include_user;
} kiln_options;
#define KILN_OPTIONS_INIT                                                                          \
    { (uint32_t)sizeof(kiln_options), KILN_DEVICE_AUTO, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,      \
      0, 0, 0, 0, 0 }

enum {
    KILN_CHECK_BOUNDS = 1, /* accesses outside an extent that the language calls findings */
    KILN_CHECK_UNINIT = 2, /* reads of elements that nothing wrote */
    KILN_CHECK_RACES = 4,  /* two programs at one place; sums of floats that depend on the order */
    KILN_CHECK_ARITH = 8,  /* an index that overflows, an integer divided by zero */
    KILN_CHECK_LOOPS = 16, /* a loop that does not end */
    KILN_CHECK_WRITTEN = 32, /* elements of an output that no program wrote */
    KILN_CHECK_PADDING = 64, /* a fold over elements past an extent that are not neutral in it */
    KILN_CHECK_ALL = 127
};

/* Fill cc, cache_dir, keep_dir and threads from KILN_CC, KILN_CACHE_DIR
 * (then XDG_CACHE_HOME/kiln, HOME/.cache/kiln), KILN_KEEP and KILN_THREADS, and
 * find a C compiler in /usr/bin (cc, gcc, clang) if KILN_CC is not set.  A variable
 * that is set but empty turns its feature off.  Only fields that are 0 are set.
 * The strings live as long as the process.  In a setuid program the environment
 * is not read.  KILN_E_ARG: KILN_THREADS is not a number from 1 to 4096. */
KILN_API kiln_status kiln_options_from_env(kiln_options *opt);

/* opt NULL: KILN_OPTIONS_INIT.  KILN_E_ARG: an option has no meaning (K1809).  KILN_E_DEVICE: no such
 * GPU, or its driver fails.  KILN_E_TOOLCHAIN, KILN_E_UNSUPPORTED: KILN_DEVICE_CPU without a C
 * compiler that works, or on a processor without AVX2 and FMA; AUTO then interprets, and says so.
 * A cache that cannot be used is no error: kiln_context_cache_problem. */
KILN_API kiln_status kiln_context_create(const kiln_options *opt, kiln_context **out,
                                         kiln_diags **diags);
KILN_API void kiln_context_free(kiln_context *ctx); /* after its modules and buffers; NULL is fine */
/* The device that launches use, never AUTO. */
KILN_API kiln_device kiln_context_device(const kiln_context *ctx);
KILN_API uint32_t kiln_context_threads(const kiln_context *ctx);
/* Why the cache is off, or NULL if it works or was not asked for.  Borrowed. */
KILN_API const char *kiln_context_cache_problem(const kiln_context *ctx);

typedef struct kiln_device_info {
    const char *name; /* "NVIDIA H200"; "" for the devices of the host */
    const char *arch; /* "sm_90": the target of code; "" where there is none */
    int32_t index, driver; /* driver: 12080 for CUDA 12.8; 0: none */
    int32_t sms;           /* what num_sms() gives: multiprocessors, or threads of the host */
    int32_t clock_khz, memory_clock_khz, bus_bits;
    uint64_t memory_bytes, l2_bytes, shared_bytes; /* shared: most of a block of threads */
} kiln_device_info;
/* Borrowed; lives as long as the context. */
KILN_API const kiln_device_info *kiln_context_device_info(const kiln_context *ctx);

/* How many GPUs there are, and one of them, from 0 on; neither needs nor makes a context.  Any
 * thread may call them.  *count is 0 where there is no driver or no GPU.  The strings of *out lie in
 * `name` (cut at 127 bytes) and in the library; arch is "" for a device that Kiln has no target for.
 * KILN_E_ARG: a pointer is NULL.  KILN_E_DEVICE: there is no such GPU. */
KILN_API kiln_status kiln_device_count(int32_t *count);
KILN_API kiln_status kiln_device_at(int32_t index, kiln_device_info *out, char name[128]);
/* Bytes of the device's memory that are free now, and all of them; of the machine's on the host's
 * devices.  Either pointer may be NULL.  Any thread may call it. */
KILN_API kiln_status kiln_memory_info(kiln_context *ctx, uint64_t *left, uint64_t *total,
                                      kiln_diags **diags);

/* ---- modules and kernels ---- */

/* Compile a source text: syntax, names, ranks, and all that does not depend on
 * constants or types still unknown.  name is used in messages, and its folder
 * as the first place for #include "file" if include_dirs is set.  length in bytes,
 * up to 64 MiB.  KILN_E_COMPILE: diagnostics with KILN_ERROR say where and why. */
KILN_API kiln_status kiln_compile(kiln_context *ctx, const char *name, const char *text,
                                  size_t length, kiln_module **out, kiln_diags **diags);
KILN_API void kiln_module_free(kiln_module *mod); /* after its specialisations; NULL is fine */
KILN_API size_t kiln_module_count(const kiln_module *mod);
/* In source order; NULL: there is no such one.  A kernel lives as long as its module. */
KILN_API kiln_kernel *kiln_module_at(kiln_module *mod, size_t i);
KILN_API kiln_kernel *kiln_module_kernel(kiln_module *mod, const char *name); /* NULL: absent */

/* Constants that `kiln tune` found: text is a file of it (kiln-tune(5)), name what messages call it.
 * From then on launches take what fits their device, types and sizes for constants that they do not
 * give; what they give stays.  Entries for kernels that have changed are passed over, with a note
 * (K1820).  A later call replaces the earlier one; length 0: none.  Before launches that are to use
 * it, and not while another thread uses the module.  KILN_E_ARG: a mistake in the text (K1819), of
 * which nothing is used then. */
KILN_API kiln_status kiln_module_tune(kiln_module *mod, const char *name, const char *text,
                                      size_t length, kiln_diags **diags);

typedef enum kiln_param_kind {
    KILN_PARAM_ARRAY = 1,
    KILN_PARAM_SCALAR = 2,
    KILN_PARAM_CONST = 3, /* constexpr */
    KILN_PARAM_TYPE = 4
} kiln_param_kind;

typedef struct kiln_param_info {
    const char *name;
    kiln_param_kind kind;
    kiln_dtype dtype;      /* NONE if it is a type parameter's */
    const char *type_name; /* as written: "f32", "T" */
    int32_t rank;          /* arrays; 0 otherwise */
    int32_t is_const;      /* not written through this name */
    int32_t is_optional;
    int32_t has_default;   /* scalars, constants, types */
    int32_t reads, writes; /* arrays: whether the kernel may read, write it */
    int32_t has_init;      /* arrays: filled before each launch */
    const char *decl;      /* the declaration as written */
} kiln_param_info;

KILN_API const char *kiln_kernel_name(const kiln_kernel *k);
KILN_API size_t kiln_kernel_param_count(const kiln_kernel *k);
KILN_API const kiln_param_info *kiln_kernel_param(const kiln_kernel *k, size_t i); /* NULL: none */

/* ---- arguments ---- */

/* An array in memory that the host can read and write, or, with KILN_TENSOR_DEVICE, in memory
 * of the context's device.  For CUDA, host arrays are copied to the device before the launch
 * and what the kernel writes is copied back after it: simple, and slow.  shape and strides in
 * elements, ndim entries each; strides NULL means dense and row-major.  data
 * points at element [0,...,0].  size_bytes: bytes from data on that belong to
 * the array (0: what shape and strides span). */
typedef struct kiln_tensor {
    void *data;
    kiln_dtype dtype;
    int32_t ndim;
    const int64_t *shape;
    const int64_t *strides;
    uint64_t size_bytes;
    uint32_t flags; /* KILN_TENSOR_* */
} kiln_tensor;

enum {
    KILN_TENSOR_UNINIT = 1, /* nothing has been written to it: reading it before the kernel wrote
                               it is a finding of KILN_CHECK_UNINIT */
    KILN_TENSOR_DEVICE = 2  /* data is an address on the device: of kiln_buffer_data, or from
                               elsewhere.  On the devices of the host it changes nothing */
};

typedef enum kiln_arg_kind {
    KILN_ARG_TENSOR = 1, KILN_ARG_INT = 2, KILN_ARG_FLOAT = 3, KILN_ARG_TYPE = 4,
    KILN_ARG_UINT = 5 /* for u64 from 2^63 on; any integer may be given so */
} kiln_arg_kind;

/* Matched by name.  INT, UINT and FLOAT serve scalars and constants of any type that
 * holds the value.  What is not given is deduced or has its default. */
typedef struct kiln_arg {
    const char *name;
    kiln_arg_kind kind;
    union {
        kiln_tensor tensor;
        int64_t i;
        double f;
        kiln_dtype type;
        uint64_t u;
    } u;
} kiln_arg;

/* ---- specialisation and launch ---- */

typedef enum kiln_cache_state {
    KILN_CACHE_OFF = 0, KILN_CACHE_HIT = 1, KILN_CACHE_MISS = 2, KILN_CACHE_STALE = 3
} kiln_cache_state;

typedef struct kiln_spec_info {
    kiln_device device;
    kiln_cache_state cache;      /* of the compiled object; OFF for the interpreter */
    int64_t grid[3];             /* programs */
    double front_ms, cc_ms, load_ms; /* source to C or PTX; C compiler or assembler; loading */
    uint64_t scratch_bytes;      /* a thread */
    /* CUDA, and SIM as far as it knows */
    uint32_t cta_threads, ctas;  /* threads of a block; blocks of the launch */
    uint32_t registers, local_bytes; /* a thread; local bytes are spills */
    uint32_t shared_bytes;       /* a block */
    uint32_t ctas_per_sm;        /* blocks that fit on a multiprocessor; 0: not known */
    uint32_t approximate;        /* 1: the GPU's approximate units are used, as math(fast) allows,
                                    and the bits may differ from those of other devices */
    uint32_t cluster;            /* blocks that run one program together; 1: no cluster */
} kiln_spec_info;

/* Check arguments and prepare code for them.  A later launch with arguments of
 * the same types, constants and facts reuses it, after kiln_spec_free as well: the
 * context keeps the code.  Implied by kiln_launch.  out NULL: the code is all that is
 * wanted.  Errors as of kiln_launch, but for those of running. */
KILN_API kiln_status kiln_specialize(kiln_kernel *k, const kiln_arg *args, size_t n,
                                     kiln_spec **out, kiln_diags **diags);
KILN_API const kiln_spec_info *kiln_spec_get_info(const kiln_spec *s); /* borrowed */
KILN_API void kiln_spec_free(kiln_spec *s); /* NULL is fine */

/* Several specialisations through one run of the C compiler, or of the GPU driver's assembler: args[i],
 * n[i] are for kernel k[i], all of one context; out (or NULL) has room for count.  After an error all
 * of out are NULL. */
KILN_API kiln_status kiln_specialize_many(kiln_kernel *const *k, const kiln_arg *const *args,
                                          const size_t *n, size_t count, kiln_spec **out,
                                          kiln_diags **diags);

/* Deduce, check, specialise and run.  Arrays are checked against extents,
 * strides, types and overlaps before anything runs.  Host devices and SIM run
 * before the call returns.  On an error that is found before the launch nothing
 * was written.
 *
 * CUDA: with all arrays on the device the call queues the kernel on the stream
 * (NULL: the default stream) and returns; after the first launch of its kind
 * nothing is allocated and nothing waited for.  It may be captured into a
 * graph (below, or by the caller's own code), the first launch as well.  A host
 * array makes the call wait for the end.  What a kernel does wrong on the device
 * is reported by a later call, as kiln_sync, with the launch.
 *
 * KILN_E_ARG: an argument does not fit.  KILN_E_COMPILE: the kernel is wrong for these types and
 * constants.  KILN_E_UNSUPPORTED: a limit of the device.  KILN_E_TOOLCHAIN: the C compiler failed.
 * KILN_E_BOUNDS: an assertion failed, or a check of kiln_options.checks found something.
 * KILN_E_DEVICE: the device failed, now or earlier. */
KILN_API kiln_status kiln_launch(kiln_kernel *k, kiln_stream *stream, const kiln_arg *args,
                                 size_t n, kiln_diags **diags);
/* What a launch with these arguments would need: the shape of array parameter
 * `name` (ndim <= 8 entries into shape), so that the host can allocate it.  Arrays that
 * are not given are not missed.  dtype, ndim, shape: NULL is fine.  KILN_E_ARG: there is no
 * such array, or the arguments do not determine its extents. */
KILN_API kiln_status kiln_infer_shape(kiln_kernel *k, const kiln_arg *args, size_t n,
                                      const char *name, kiln_dtype *dtype, int32_t *ndim,
                                      int64_t shape[8], kiln_diags **diags);
/* Wait for everything launched, on all streams.  Host devices: returns at once.  Reports what failed
 * since: KILN_E_BOUNDS an assertion, KILN_E_DEVICE a fault, after which the context is of no more use. */
KILN_API kiln_status kiln_sync(kiln_context *ctx, kiln_diags **diags);

/* ---- buffers ---- */

/* Memory of the context's device, aligned to 256 bytes on a GPU and 64 on the host.  KILN_E_NOMEM:
 * there is not so much left. */
KILN_API kiln_status kiln_buffer_create(kiln_context *ctx, size_t bytes, kiln_buffer **out);
/* The same, and says why not. */
KILN_API kiln_status kiln_buffer_alloc(kiln_context *ctx, size_t bytes, kiln_buffer **out,
                                       kiln_diags **diags);
/* An address of the device; on the host's devices, and SIM, the host may use it.  It stays the same. */
KILN_API void *kiln_buffer_data(kiln_buffer *b);
KILN_API size_t kiln_buffer_size(const kiln_buffer *b);
KILN_API void kiln_buffer_free(kiln_buffer *b); /* NULL is fine; waits for what uses it */

/* Copies of `bytes` from `offset` on; KILN_E_ARG: beyond the buffer's end.  stream NULL: done when the
 * call returns, in order with the default stream.  With a
 * stream: queued; host memory must then stay as it is until the stream has come there, and the
 * copy overlaps with other work only if the memory is of kiln_host_alloc. */
KILN_API kiln_status kiln_buffer_upload(kiln_buffer *to, size_t offset, const void *from,
                                        size_t bytes, kiln_stream *stream, kiln_diags **diags);
KILN_API kiln_status kiln_buffer_download(kiln_buffer *from, size_t offset, void *to, size_t bytes,
                                          kiln_stream *stream, kiln_diags **diags);
/* Between buffers of a context, which must not overlap; and one value for each byte.  Queued. */
KILN_API kiln_status kiln_buffer_copy(kiln_buffer *to, size_t to_offset, kiln_buffer *from,
                                      size_t from_offset, size_t bytes, kiln_stream *stream,
                                      kiln_diags **diags);
KILN_API kiln_status kiln_buffer_fill(kiln_buffer *to, size_t offset, size_t bytes, uint8_t value,
                                      kiln_stream *stream, kiln_diags **diags);

/* Host memory that a GPU reads and writes at full speed (pinned); ordinary memory for the host's
 * devices.  Free it with the same context. */
KILN_API kiln_status kiln_host_alloc(kiln_context *ctx, size_t bytes, void **out,
                                     kiln_diags **diags);
KILN_API void kiln_host_free(kiln_context *ctx, void *p); /* NULL is fine */

/* ---- streams and events ---- */

/* Streams of the host's devices do everything at once.  Streams made here are in order with the
 * default stream (NULL), not with each other. */
KILN_API kiln_status kiln_stream_create(kiln_context *ctx, kiln_stream **out, kiln_diags **diags);
/* The caller's own CUstream (or cudaStream_t) of the context's device; it must outlive the result,
 * whose freeing leaves it alone. */
KILN_API kiln_status kiln_stream_from_cuda(kiln_context *ctx, void *custream, kiln_stream **out,
                                           kiln_diags **diags);
KILN_API void *kiln_stream_cuda(const kiln_stream *s); /* the CUstream; NULL: the default one */
KILN_API kiln_status kiln_stream_sync(kiln_stream *s, kiln_diags **diags); /* wait for its work */
KILN_API void kiln_stream_free(kiln_stream *s); /* NULL is fine; queued work is still done */

KILN_API kiln_status kiln_event_create(kiln_context *ctx, kiln_event **out, kiln_diags **diags);
/* Record: the event happens when the stream (NULL: the default one) comes here.  Wait: later work
 * of the stream waits for the event's latest record.  Sync: the caller waits. */
KILN_API kiln_status kiln_event_record(kiln_event *e, kiln_stream *stream, kiln_diags **diags);
KILN_API kiln_status kiln_event_wait(kiln_event *e, kiln_stream *stream, kiln_diags **diags);
KILN_API kiln_status kiln_event_sync(kiln_event *e, kiln_diags **diags);
/* Milliseconds between two events of a context that have happened.  KILN_E_ARG: one never was recorded. */
KILN_API kiln_status kiln_event_elapsed(kiln_event *from, kiln_event *to, double *ms,
                                        kiln_diags **diags);
KILN_API void kiln_event_free(kiln_event *e); /* NULL is fine */

/* ---- graphs ---- */

/* Work that is queued again and again, with the same arguments, costs less as a graph: it is
 * recorded once and launched by one call.
 *
 * Begin: launches, copies, fills and functions of kiln_nn.h called with the stream from now on are
 * checked and recorded, and not done.  Another stream takes part from where it waits for an event that was
 * recorded in the graph (kiln_event_wait), and the first one must wait for it before the end.
 * End, with the stream of the beginning: stop, and make the graph; out NULL: throw it away.
 * After an error of kiln_graph_end nothing is recorded any more, and there is no graph.
 *
 * While a stream records, calls that wait for it, use the default stream or kiln_sync, launch with
 * host arrays on CUDA, or wait for events from outside are refused (K1818); the recording goes on.
 *
 * A graph keeps addresses, scalars and kernels as they were: buffers, host memory of copies,
 * modules, a kiln_nn handle and its workspace must live until kiln_graph_free.  What the memory
 * holds is read when the graph runs.  Host memory is best of kiln_host_alloc.
 *
 * Assertions and prints of recorded kernels are reported as those of launches: by kiln_graph_launch
 * on the host's devices and SIM, where a failure also ends the launch of the graph, and by what
 * waits on CUDA: kiln_sync, kiln_stream_sync.  That holds as well for kernels on a stream of
 * kiln_stream_from_cuda that the caller captures with cuStreamBeginCapture, in any of its modes.
 * While the caller captures, calls that wait spoil the capture, as the driver documents.
 *
 * KILN_E_UNSUPPORTED: the driver has no graphs. */
KILN_API kiln_status kiln_graph_begin(kiln_stream *stream, kiln_diags **diags);
KILN_API kiln_status kiln_graph_end(kiln_stream *stream, kiln_graph **out, kiln_diags **diags);
/* Queue it on a stream (NULL: the default one), in order with what else is there.  The host's
 * devices and SIM run it before the call returns. */
KILN_API kiln_status kiln_graph_launch(kiln_graph *g, kiln_stream *stream, kiln_diags **diags);
/* Launches, copies and fills; on CUDA the nodes of the driver's graph. */
KILN_API size_t kiln_graph_count(const kiln_graph *g);
KILN_API void kiln_graph_free(kiln_graph *g); /* NULL is fine; a queued launch is still done */

/* ---- traces ---- */

/* What a context does, and when, told to a function: for a time line, or for ranges of a profiler.
 * examples/trace.c writes a file for Perfetto, docs/trace.md says what is told when.
 * X(name, number, text): the text is what kiln_trace_kind_name gives. */
#define KILN_TRACE_MAP(X)                                                                          \
    X(SOURCE, 1, "source")     /* kiln_compile */                                                  \
    X(BIND, 2, "bind")         /* arguments checked, extents and the grid computed */              \
    X(LOWER, 3, "lower")       /* IR for the types and constants of a launch */                    \
    X(PASSES, 4, "passes")                                                                         \
    X(EMIT, 5, "emit")         /* IR to C or PTX */                                                \
    X(CACHE, 6, "cache")       /* compiled code looked for on disk, or kept there */               \
    X(COMPILER, 7, "compiler") /* the C compiler, or the assembler of the driver */                \
    X(LOAD, 8, "load")                                                                             \
    X(LAUNCH, 9, "launch")     /* the call of the host: kiln_launch, kiln_graph_launch */          \
    X(KERNEL, 10, "kernel")    /* the kernel runs */                                               \
    X(COPY, 11, "copy")                                                                            \
    X(FILL, 12, "fill")                                                                            \
    X(WAIT, 13, "wait")        /* kiln_sync, kiln_stream_sync, kiln_event_sync */                  \
    X(MEMORY, 14, "memory")    /* memory of the device or pinned memory is taken or given back */  \
    X(CLOCK, 15, "clock")      /* the clocks of host and device were compared */

typedef enum kiln_trace_kind {
#define KILN_X(name, num, text) KILN_TRACE_##name = num,
    KILN_TRACE_MAP(KILN_X)
#undef KILN_X
} kiln_trace_kind;
KILN_API const char *kiln_trace_kind_name(kiln_trace_kind k); /* "kernel"; never NULL */

typedef enum kiln_trace_phase {
    KILN_TRACE_BEGIN = 1, /* the calling thread begins something */
    KILN_TRACE_END = 2,   /* ... and has ended it; these two nest on each thread */
    KILN_TRACE_SPAN = 3   /* something ran elsewhere, or earlier: begin_ns to end_ns */
} kiln_trace_phase;

typedef enum kiln_trace_place {
    KILN_TRACE_HOST = 1,   /* a thread of the host */
    KILN_TRACE_DEVICE = 2, /* a stream of a GPU; only SPAN */
    KILN_TRACE_WORKER = 3  /* a thread of the library that ran programs; only SPAN */
} kiln_trace_place;

/* Strings and the event live until the function returns. */
typedef struct kiln_trace_event {
    uint32_t size; /* of what the library knows of this struct */
    kiln_trace_kind kind;
    kiln_trace_phase phase;
    kiln_trace_place place;
    const char *name;   /* the kernel, the file, "upload", "download", "kiln_sync"; never NULL */
    const char *detail; /* types and shapes: "x=4x8:f32 n=8"; how the clocks differ; or "" */
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC; end_ns: 0 with BEGIN */
    uint64_t id;     /* a launch, copy or fill: the same for the host's call and for what ran */
    uint64_t thread; /* HOST: the system's number of the thread; WORKER: which one, from 0 */
    uint64_t stream; /* 0: the default one; others are numbered as they come */
    uint64_t bytes;  /* COPY, FILL; LAUNCH, KERNEL: of each array once as it is read and written */
    uint64_t error_ns; /* DEVICE: how far off the host's clock the times may be, at most */
    uint32_t threads;  /* KERNEL on the CPU: how many took part */
    kiln_cache_state cache; /* END of CACHE and COMPILER */
    kiln_status status;     /* END */
    uint32_t flags;    /* KILN_TRACE_RECORDED: a graph recorded it, nothing ran */
    uint64_t programs; /* KERNEL on the CPU and WORKER: how many were run */
} kiln_trace_event;

enum {
    KILN_TRACE_DEVICE_TIMES = 1, /* CUDA: two events around each launch, copy and fill */
    KILN_TRACE_WORKERS = 2       /* the CPU: a SPAN for each thread of a launch */
};
enum { KILN_TRACE_RECORDED = 1 };

/* From now on fn is told what the context does; fn NULL: no longer.  fn is called from any thread
 * that uses the context, from several at once, with no lock held that launches need; it must not
 * call the library on this context.  Calls that are under way when it is set or taken away may tell
 * half of what they do, or still call the old fn; so let them end first where that matters.
 *
 * Device times are measured by events of the driver and told when they are known: by kiln_sync, by
 * taking fn away, by kiln_context_free, and by a launch after 4,096 that nobody waited for.  They
 * are moved to the host's clock by comparing the clocks when the trace begins and at each of these;
 * error_ns is the bound that follows.  Lengths are the device's own.  Streams that others capture,
 * and what a graph records, are not timed; a launch of a graph is one span.
 *
 * Without a trace a launch pays one test of a pointer.  KILN_E_ARG: flags are unknown, or (with
 * K1818) a stream records a graph. */
KILN_API kiln_status kiln_context_trace(kiln_context *ctx, uint32_t flags,
                                        void (*fn)(void *user, const kiln_trace_event *e),
                                        void *user, kiln_diags **diags);

#ifdef __cplusplus
}
#endif
#endif
