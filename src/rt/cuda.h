/* cuda.h - NVIDIA GPUs through the CUDA driver, which is opened with dlopen.
 *
 * A kl_cuda is one device with its primary context, which is shared with
 * whatever else the process runs there.  Every call makes that context current
 * and restores the caller's, so any thread may call.  Nothing raises, and no
 * state is kept outside the object.  Failures are described in a kl_cudaerr.
 *
 * An error inside a running kernel is reported by some later call.  So the last
 * launches are remembered, and what synchronises names them. */
#ifndef KL_CUDA_H
#define KL_CUDA_H

#include <pthread.h>

#include "rt/rt.h"

struct kl_cuda_api {
#define CUDA(field, symbol, need, param) int(*field) param;
#include "rt/cuda.def"
};

/* What the library needs of CUDA's numbers. */
enum { /* CUresult */
    KL_CU_INVALID_VALUE = 1, KL_CU_OUT_OF_MEMORY = 2, KL_CU_NO_DEVICE = 100,
    KL_CU_INVALID_IMAGE = 200, KL_CU_NO_BINARY = 209, KL_CU_ECC = 214, KL_CU_INVALID_PTX = 218,
    KL_CU_NO_COMPILER = 221, KL_CU_OLD_DRIVER = 222, KL_CU_ILLEGAL_ADDRESS = 700,
    KL_CU_TIMEOUT = 702, KL_CU_ASSERT = 710, KL_CU_FIRST_FAULT = 714, KL_CU_LAST_FAULT = 719
};
enum { /* CUdevice_attribute, CUfunction_attribute, CUjit_option */
    KL_CU_DEV_THREADS = 1, KL_CU_DEV_GRID_X = 5, KL_CU_DEV_SHARED = 8, KL_CU_DEV_CLOCK = 13,
    KL_CU_DEV_SMS = 16, KL_CU_DEV_MEM_CLOCK = 36, KL_CU_DEV_BUS = 37, KL_CU_DEV_L2 = 38,
    KL_CU_DEV_SM_THREADS = 39, KL_CU_DEV_MAJOR = 75, KL_CU_DEV_MINOR = 76,
    KL_CU_DEV_SM_SHARED = 81, KL_CU_DEV_SM_REGISTERS = 82, KL_CU_DEV_SHARED_OPTIN = 97,
    KL_CU_FN_THREADS = 0, KL_CU_FN_SHARED = 1, KL_CU_FN_LOCAL = 3, KL_CU_FN_REGISTERS = 4,
    KL_CU_FN_DYNAMIC = 8, KL_CU_FN_LARGE_CLUSTER = 14,
    KL_CU_PTR_TYPE = 2, KL_CU_PTR_REACHED = 3, KL_CU_PTR_ORDINAL = 9, KL_CU_ON_DEVICE = 2,
    KL_CU_JIT_INFO = 3, KL_CU_JIT_INFO_SIZE = 4, KL_CU_JIT_ERROR = 5, KL_CU_JIT_ERROR_SIZE = 6,
    KL_CU_JIT_LINES = 13, KL_CU_INPUT_PTX = 1, KL_CU_HOST_PORTABLE = 1, KL_CU_EVENT_NO_TIME = 2,
    KL_CU_STREAM_APART = 1, KL_CU_CAPTURE_RELAXED = 2
};

/* Why a call failed.  diag is what to report it as. */
typedef struct kl_cudaerr {
    int cu; /* CUresult; 0: the driver was not asked */
    enum kl_code diag;
    char text[KL_CC_MSG];
} kl_cudaerr;

typedef struct kl_cudainfo {
    char name[100];
    int ordinal, count;         /* of how many devices */
    int driver;                 /* 12080: CUDA 12.8 */
    int major, minor;           /* compute capability */
    int sms, clock_khz, mem_clock_khz, bus_bits, l2_bytes;
    int threads, grid_x;        /* most threads of a CTA; most CTAs along x */
    int shared, shared_optin;   /* bytes a CTA: without and with asking for it */
    int sm_threads, sm_shared, sm_registers;
    uint64_t memory;            /* bytes */
} kl_cudainfo;

typedef struct kl_cuda kl_cuda;

/* lib: path of the driver; NULL: libcuda.so.1.  index: which device.  KILN_E_DEVICE: no driver
 * or no such device. */
kiln_status kl_cuda_open(const kl_alloc *al, const char *lib, int index, kl_cuda **out,
                         kl_cudaerr *e);
void kl_cuda_close(kl_cuda *c); /* NULL is fine */
const kl_cudainfo *kl_cuda_info(const kl_cuda *c);
const struct kl_cuda_api *kl_cuda_calls(const kl_cuda *c);
/* All devices, without making a context on any: at most `room` of them; *n is how many exist. */
kiln_status kl_cuda_list(const kl_alloc *al, const char *lib, kl_cudainfo *info, int room, int *n,
                         kl_cudaerr *e);

/* The PTX version that a CUDA driver understands: 12080 -> 87. */
int kl_cuda_ptx_of_driver(int driver);

/* ---- modules (cudamod.c) ---- */

/* Assemble PTX for the device, through the cache if c is not NULL; the caller frees the cubin
 * with al.  name: for messages.  *state: whether it came from the cache. */
kiln_status kl_cuda_assemble(kl_cuda *c, kl_cache *cache, const char *ptx, size_t len,
                             const char *name, void **cubin, size_t *size,
                             kiln_cache_state *state, kl_cudaerr *e);

typedef struct kl_cufn {
    void *module, *function;
    uint32_t registers, local, shared; /* a thread; bytes a thread; static bytes a CTA */
    uint32_t max_threads;
    int blocks; /* CTAs that fit on an SM; 0: not known */
    struct kl_curefs *refs; /* of the module, if several functions share it */
} kl_cufn;
/* What to look up in a module: the entry, with how many threads and bytes it will run, and how
 * many CTAs of a cluster. */
typedef struct kl_cuentry {
    const char *name;
    uint32_t threads, dynamic_shared, cluster;
} kl_cuentry;
/* Load a cubin and look up its n entries; ask for dynamic shared memory beyond the usual limit, and
 * for clusters of more CTAs than every device takes.  The module is unloaded with the last. */
kiln_status kl_cuda_load(kl_cuda *c, const void *cubin, const kl_cuentry *entry, size_t n,
                         kl_cufn *out, kl_cudaerr *e);
void kl_cuda_unload(kl_cuda *c, kl_cufn *f);

/* ---- memory (cudamem.c); stream NULL: the default stream ---- */

kiln_status kl_cuda_alloc(kl_cuda *c, size_t bytes, uint64_t *at, kl_cudaerr *e);
void kl_cuda_free(kl_cuda *c, uint64_t at);
kiln_status kl_cuda_memory(kl_cuda *c, uint64_t *left, uint64_t *total, kl_cudaerr *e);
/* The number of another device in whose memory the address lies, where this one does not reach it;
 * -1: it does, or nothing is known. */
int kl_cuda_elsewhere(kl_cuda *c, uint64_t at);
kiln_status kl_cuda_host_alloc(kl_cuda *c, size_t bytes, void **at, kl_cudaerr *e);
void kl_cuda_host_free(kl_cuda *c, void *at);
kiln_status kl_cuda_upload(kl_cuda *c, uint64_t to, const void *from, size_t n, void *stream,
                           kl_cudaerr *e);
kiln_status kl_cuda_download(kl_cuda *c, void *to, uint64_t from, size_t n, void *stream,
                             kl_cudaerr *e);
kiln_status kl_cuda_copy(kl_cuda *c, uint64_t to, uint64_t from, size_t n, void *stream,
                         kl_cudaerr *e);
/* n elements of `size` bytes (1, 2, 4, 8), `step` bytes apart, become `bits`. */
kiln_status kl_cuda_fill(kl_cuda *c, uint64_t at, uint64_t n, int64_t step, uint32_t size,
                         uint64_t bits, void *stream, kl_cudaerr *e);

/* ---- streams, events, launches (cudarun.c) ---- */

kiln_status kl_cuda_stream_new(kl_cuda *c, void **stream, kl_cudaerr *e);
/* Not in order with the default stream. */
kiln_status kl_cuda_stream_apart(kl_cuda *c, void **stream, kl_cudaerr *e);
void kl_cuda_stream_free(kl_cuda *c, void *stream);
kiln_status kl_cuda_event_new(kl_cuda *c, void **event, kl_cudaerr *e);
void kl_cuda_event_free(kl_cuda *c, void *event);
kiln_status kl_cuda_event_record(kl_cuda *c, void *event, void *stream, kl_cudaerr *e);
kiln_status kl_cuda_event_wait(kl_cuda *c, void *stream, void *event, kl_cudaerr *e);
kiln_status kl_cuda_event_sync(kl_cuda *c, void *event, kl_cudaerr *e);
kiln_status kl_cuda_event_elapsed(kl_cuda *c, void *from, void *to, float *ms, kl_cudaerr *e);
/* Wait for one stream (which: NULL is the default one), or for the whole context. */
kiln_status kl_cuda_stream_sync(kl_cuda *c, void *stream, kl_cudaerr *e);
kiln_status kl_cuda_sync(kl_cuda *c, kl_cudaerr *e);
/* Whether launches on the stream are being recorded for a graph. */
bool kl_cuda_capturing(kl_cuda *c, void *stream);
/* Memory filled with zeros that is ready when the call returns.  It may be called while a stream
 * is being captured: nothing touches that stream or the default one. */
kiln_status kl_cuda_alloc_zero(kl_cuda *c, size_t bytes, uint64_t *at, kl_cudaerr *e);

/* What stays the same over the launches of a kernel.  It and what it points to outlive every
 * launch until kl_cuda_forget. */
typedef struct kl_cukernel {
    const char *name;
    const struct kl_cuslot {
        const char *name;
        uint8_t elem; /* enum kl_elem */
        bool array;
    } *slot;
    uint32_t nslot;
    kl_cufn fn;
    uint32_t threads, cluster, dynamic_shared; /* cluster: CTAs; the text declares it too */
} kl_cukernel;

/* param: nslot values, then what the kernel takes besides.  ctas: up to grid_x of the device.
 * recorded: the stream records a graph, and nothing runs. */
kiln_status kl_cuda_launch(kl_cuda *c, const kl_cukernel *k, const uint64_t *param,
                           uint32_t nparam, const int64_t grid[3], uint32_t ctas, void *stream,
                           bool recorded, kl_cudaerr *e);
/* The kernel is about to die: what is remembered of its launches loses their arguments. */
void kl_cuda_forget(kl_cuda *c, const kl_cukernel *k);

/* ---- graphs (cudagraph.c) ---- */

/* Record what is queued on the stream from now on.  KILN_E_UNSUPPORTED: the driver is too old. */
kiln_status kl_cuda_record(kl_cuda *c, void *stream, kl_cudaerr *e);
/* Stop, and make what was recorded ready for launches; exec NULL: throw it away.  On a failure
 * nothing is left.  *nodes: how many operations it has. */
kiln_status kl_cuda_record_end(kl_cuda *c, void *stream, void **exec, size_t *nodes,
                               kl_cudaerr *e);
/* label: what a later failure calls it. */
kiln_status kl_cuda_graph_launch(kl_cuda *c, void *exec, const char *label, void *stream,
                                 kl_cudaerr *e);
void kl_cuda_graph_free(kl_cuda *c, void *exec);

/* ---- between the files of rt ---- */

enum { KL_CUDA_RING = 64, KL_CUDA_SHOWN = 20 };

struct kl_cuda_launched {
    const kl_cukernel *k; /* NULL: forgotten, or a graph */
    char name[48];        /* then */
    int64_t grid[3];
    uint32_t ctas, nparam;
    void *stream;
    uint64_t param[KL_CUDA_SHOWN];
};

struct kl_cuda {
    kl_alloc al;
    void *lib, *ctx;
    int device;
    struct kl_cuda_api api;
    kl_cudainfo info;
    pthread_mutex_t lock; /* guards what follows */
    uint64_t launches;    /* all so far */
    uint64_t settled;     /* those known to have ended well */
    struct kl_cuda_launched ring[KL_CUDA_RING];
};

/* While a stream is captured, the driver forbids a thread what the capture would not see, as
 * allocating, and spoils the capture of who does it.  Between these two the thread may, which is
 * right where the graph does not depend on it.  relax returns what restore takes. */
int kl_cuda_relax(kl_cuda *c);
void kl_cuda_restore(kl_cuda *c, int mode);

/* A launch for the messages of later failures; label: of a graph, which has no k. */
void kl_cuda_note(kl_cuda *c, const kl_cukernel *k, const char *label, const uint64_t *param,
                  uint32_t nparam, const int64_t grid[3], uint32_t ctas, void *stream);

/* Make the context current.  What it returns is given to kl_cuda_leave; -1: e says why not. */
int kl_cuda_enter(kl_cuda *c, kl_cudaerr *e);
void kl_cuda_leave(kl_cuda *c, int pushed);
/* The rest of a function: one call of the driver with the context current. */
#define KL_CUDA_CALL(c, e, call, ...)                                                                 \
    do {                                                                                           \
        *(e) = (kl_cudaerr){0};                                                                    \
        int in_ = kl_cuda_enter((c), (e));                                                         \
        if (in_ < 0)                                                                               \
            return KILN_E_DEVICE;                                                                  \
        kiln_status s_ = kl_cuda_check((c), (c)->api.call(__VA_ARGS__), "cu" #call, (e));          \
        kl_cuda_leave((c), in_);                                                                   \
        return s_;                                                                                 \
    } while (0)
/* Describe result `cu` of `call`; returns the status that goes with it, KILN_OK for 0. */
kiln_status kl_cuda_check(kl_cuda *c, int cu, const char *call, kl_cudaerr *e);
/* Errors that a kernel left behind: the context is lost. */
bool kl_cuda_is_fault(int cu);
/* Append the launches that may have caused an error to e->text. */
void kl_cuda_blame(kl_cuda *c, kl_cudaerr *e);
kiln_status kl_cuda_fail(kl_cudaerr *e, enum kl_code diag, kiln_status s, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
