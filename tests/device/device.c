/* device.c - what a host program may do to a device, on a real one or the stand-in driver.
 *
 *     device-check [--device sim|cpu|cuda[:N]] [--threads N] [--turns N] [--part threads]
 *
 * Several threads launch on one context and on contexts of their own; memory runs out; shapes are
 * wrong; there is no such device; a kernel faults (in a child process); with two GPUs, both work
 * at once and an array of the other one is refused.  After each error the process goes on.  The
 * last line is `N passed, N failed, N skipped`. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln.h"
#include "shared.h"

enum { N = 5000, MOST_THREADS = 64 };

static struct {
    kiln_device device;
    int index, threads, turns;
    bool some; /* --part: only what has threads */
} opt = {KILN_DEVICE_SIM, 0, 8, 20, false};

static unsigned passed, failed, skipped;

static const char text[] =
    "kernel scale(i64 n, type T = i32, T y[n], const T x[n], i32 s, constexpr i64 B = 128)\n"
    "    grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] = x[i:B] * s + 1;\n"
    "}\n"
    "kernel total(i64 n, i32 s[1], const i32 x[n], constexpr i64 B = pow2ceil(n)) grid(1)\n"
    "{\n"
    "    s[0] = sum(x[0:B]);\n"
    "}\n";

/* ---- reports ---- */

static void result(const char *what, const char *why)
{
    if (why)
        printf("FAIL %s: %s\n", what, why);
    passed += !why;
    failed += why != NULL;
}

static _Thread_local char said[2000];

/* Whether a call ended with this status and, if word is given, said so with it. */
static bool ended(kiln_status s, kiln_status want, kiln_diags *d, const char *word)
{
    said[0] = 0;
    kiln_diags_render(d, 0, said, sizeof said);
    kiln_diags_free(d);
    bool ok = s == want && (!word || strstr(said, word));
    if (!ok)
        printf("     got %s, wanted %s%s%s: %s\n", kiln_status_name(s), kiln_status_name(want),
               word ? " with " : "", word ? word : "", said);
    return ok;
}

/* ---- one context ---- */

struct dev {
    kiln_context *ctx;
    kiln_module *mod;
    kiln_kernel *scale, *total;
};

static bool open_dev(struct dev *v, int index)
{
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_diags *d = NULL;
    *v = (struct dev){.ctx = NULL};
    kiln_options_from_env(&o);
    o.device = opt.device;
    o.threads = 2;
    o.device_index = opt.device == KILN_DEVICE_CUDA ? index : 0;
    kiln_status s = kiln_context_create(&o, &v->ctx, &d);
    kiln_diags_free(s ? NULL : d);
    if (s)
        return ended(s, KILN_OK, d, NULL);
    s = kiln_compile(v->ctx, "device.kiln", text, sizeof text - 1, &v->mod, &d);
    if (!ended(s, KILN_OK, d, NULL))
        return false;
    v->scale = kiln_module_kernel(v->mod, "scale");
    v->total = kiln_module_kernel(v->mod, "total");
    return true;
}

static void close_dev(struct dev *v)
{
    kiln_module_free(v->mod);
    kiln_context_free(v->ctx);
}

static kiln_arg array(const char *name, void *data, const int64_t *n, uint32_t flags)
{
    kiln_arg a = {.name = name, .kind = KILN_ARG_TENSOR};
    a.u.tensor = (kiln_tensor){.data = data, .dtype = KILN_I32, .ndim = 1, .shape = n,
                               .flags = flags};
    return a;
}

static kiln_status scale(const struct dev *v, kiln_stream *st, void *y, void *x, int64_t n,
                         int64_t s, uint32_t flags, kiln_diags **d)
{
    kiln_arg a[3] = {array("y", y, &n, flags), array("x", x, &n, flags),
                     {.name = "s", .kind = KILN_ARG_INT, .u = {.i = s}}};
    return kiln_launch(v->scale, st, a, 3, d);
}

/* A launch on host arrays with the right result: the device is well. */
static bool works(const struct dev *v)
{
    enum { SMALL = 333 };
    int32_t x[SMALL], y[SMALL];
    kiln_diags *d = NULL;
    for (int i = 0; i < SMALL; i++)
        x[i] = i;
    kiln_status s = scale(v, NULL, y, x, SMALL, 3, 0, &d);
    if (!ended(s, KILN_OK, d, NULL))
        return false;
    for (int i = 0; i < SMALL; i++)
        if (y[i] != 3 * i + 1)
            return false;
    return true;
}

/* ---- threads ---- */

struct worker {
    const struct dev *dev; /* NULL: one of its own */
    int number;
    pthread_t id;
    const char *why; /* NULL: all right */
};

/* Both kernels over sizes of its own, so that code is made while others launch. */
static const char *turns(const struct dev *v, int number)
{
    int32_t *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y), sum;
    kiln_stream *st = NULL;
    kiln_buffer *b[3] = {NULL};
    const char *why = x && y ? NULL : "no memory";
    if (kiln_stream_create(v->ctx, &st, NULL))
        why = "no stream";
    for (int i = 0; i < 3 && !why; i++)
        if (kiln_buffer_create(v->ctx, N * sizeof *x, &b[i]))
            why = "no buffer";
    for (int t = 0; t < opt.turns && !why; t++) {
        int64_t n = 1 + (number * 977 + t * 131) % N, one = 1;
        int32_t want = 0;
        for (int i = 0; i < N; i++)
            x[i] = i * 7 + number + t;
        for (int64_t i = 0; i < n; i++)
            want += x[i] * number + 1;
        kiln_arg a[2] = {array("s", kiln_buffer_data(b[2]), &one, KILN_TENSOR_DEVICE),
                         array("x", kiln_buffer_data(b[1]), &n, KILN_TENSOR_DEVICE)};
        if (kiln_buffer_upload(b[0], 0, x, N * sizeof *x, st, NULL) ||
            scale(v, st, kiln_buffer_data(b[1]), kiln_buffer_data(b[0]), n, number,
                  KILN_TENSOR_DEVICE, NULL) ||
            kiln_launch(v->total, st, a, 2, NULL) ||
            kiln_buffer_download(b[1], 0, y, N * sizeof *y, st, NULL) ||
            kiln_buffer_download(b[2], 0, &sum, sizeof sum, st, NULL) || kiln_stream_sync(st, NULL))
            why = "a call failed";
        for (int64_t i = 0; i < n && !why; i++)
            if (y[i] != x[i] * number + 1)
                why = "a wrong element";
        if (!why && sum != want)
            why = "a wrong sum";
        if (!why && t % 4 == 0 && !works(v))
            why = "a launch on host arrays failed";
    }
    for (int i = 0; i < 3; i++)
        kiln_buffer_free(b[i]);
    kiln_stream_free(st);
    free(x);
    free(y);
    return why;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct dev own;
    if (w->dev) {
        w->why = turns(w->dev, w->number);
    } else if (open_dev(&own, opt.index)) {
        w->why = turns(&own, w->number);
        close_dev(&own);
    } else {
        w->why = "no context";
    }
    return NULL;
}

/* Each thread on dev[i % ndev]; ndev 0: on a context of its own. */
static const char *run_threads(const struct dev *dev, int ndev)
{
    struct worker w[MOST_THREADS];
    const char *why = NULL;
    for (int i = 0; i < opt.threads; i++) {
        w[i] = (struct worker){.dev = ndev ? &dev[i % ndev] : NULL, .number = i + 1};
        if (pthread_create(&w[i].id, NULL, work, &w[i]))
            exit(4);
    }
    for (int i = 0; i < opt.threads; i++) {
        pthread_join(w[i].id, NULL);
        if (w[i].why)
            why = w[i].why;
    }
    return why;
}

/* ---- errors ---- */

static const char *out_of_memory(const struct dev *v)
{
    enum { MOST = 4096 };
    static kiln_buffer *b[MOST];
    uint64_t all = kiln_context_device_info(v->ctx)->memory_bytes;
    kiln_diags *d = NULL;
    kiln_buffer *big;
    kiln_status s = kiln_buffer_alloc(v->ctx, (size_t)all + (1 << 20), &big, &d);
    if (!ended(s, KILN_E_NOMEM, d, "cuMemAlloc") || !strstr(said, "are free on"))
        return "more than there is";
    if (!works(v))
        return "after that";
    size_t part = all / 32 + 1, n = 0;
    for (s = KILN_OK; !s && n < MOST; n += !s) {
        d = NULL;
        s = kiln_buffer_alloc(v->ctx, part, &b[n], &d);
    }
    bool ok = ended(s, KILN_E_NOMEM, d, "cuMemAlloc") && n < 33;
    /* host arrays do not fit either: nothing is launched, the arrays stay as they are */
    const char *why = ok ? NULL : "memory does not run out";
    for (size_t i = 0; i < n; i++)
        kiln_buffer_free(b[i]);
    return why ? why : works(v) ? NULL : "after all was freed";
}

static const char *wrong_shapes(const struct dev *v)
{
    int32_t x[8] = {0}, y[8] = {5, 5, 5, 5, 5, 5, 5, 5};
    int64_t seven = 7, eight = 8, two[2] = {2, 4};
    kiln_arg a[3] = {array("y", y, &eight, 0), array("x", x, &seven, 0),
                     {.name = "s", .kind = KILN_ARG_INT, .u = {.i = 1}}};
    kiln_diags *d = NULL;
    kiln_status s = kiln_launch(v->scale, NULL, a, 3, &d);
    if (!ended(s, KILN_E_ARG, d, "error[K07"))
        return "extents that disagree";
    a[1] = array("x", x, two, 0);
    a[1].u.tensor.ndim = 2;
    d = NULL;
    s = kiln_launch(v->scale, NULL, a, 3, &d);
    if (!ended(s, KILN_E_ARG, d, "has rank 1"))
        return "a wrong rank";
    a[1] = array("x", x, &eight, 0);
    a[1].u.tensor.dtype = KILN_F32;
    d = NULL;
    s = kiln_launch(v->scale, NULL, a, 3, &d);
    if (!ended(s, KILN_E_ARG, d, NULL) || !*said)
        return "a wrong type";
    for (int i = 0; i < 8; i++)
        if (y[i] != 5)
            return "something was written";
    return works(v) ? NULL : "after that";
}

static const char *no_such_device(const struct dev *v, int count)
{
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx = NULL;
    kiln_diags *d = NULL;
    o.device = KILN_DEVICE_CUDA;
    o.device_index = count;
    kiln_status s = kiln_context_create(&o, &ctx, &d);
    if (!ended(s, KILN_E_DEVICE, d, "there is no CUDA device") || ctx)
        return "it exists";
    return works(v) ? NULL : "after that";
}

/* In a process of its own, as the context is lost: an array shorter than the caller says. */
static const char *fault(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct dev v;
        kiln_buffer *b;
        kiln_diags *d = NULL;
        if (!open_dev(&v, opt.index) || kiln_buffer_create(v.ctx, 4096, &b))
            _exit(1);
        void *p = kiln_buffer_data(b);
        kiln_status s = scale(&v, NULL, p, p, (int64_t)1 << 25, 2, KILN_TENSOR_DEVICE, &d);
        if (!s)
            s = kiln_sync(v.ctx, &d);
        bool ok = ended(s, KILN_E_DEVICE, d, "scale, grid") && strstr(said, "context is lost");
        d = NULL;
        s = scale(&v, NULL, p, p, 16, 2, KILN_TENSOR_DEVICE, &d);
        if (!s)
            s = kiln_sync(v.ctx, &d);
        ok &= ended(s, KILN_E_DEVICE, d, NULL);
        kiln_buffer_free(b);
        close_dev(&v);
        fflush(stdout);
        _exit(ok ? 0 : 2);
    }
    int st;
    if (pid < 0 || waitpid(pid, &st, 0) != pid)
        return "cannot fork";
    if (WIFSIGNALED(st))
        return "the process died of it";
    return WEXITSTATUS(st) ? "the error is not what it should be" : NULL;
}

/* ---- several devices ---- */

static const char *two_devices(const struct dev *v)
{
    struct dev pair[2];
    kiln_buffer *b[2][2];
    kiln_diags *d = NULL;
    const char *why = NULL;
    (void)v;
    for (int i = 0; i < 2; i++)
        if (!open_dev(&pair[i], i) || kiln_context_device_info(pair[i].ctx)->index != i)
            return "a context on each";
    why = run_threads(pair, 2);
    for (int i = 0; i < 4; i++)
        if (kiln_buffer_create(pair[i / 2].ctx, 4096, &b[i / 2][i % 2]))
            return "buffers on each";
    void *y = kiln_buffer_data(b[1][0]), *far = kiln_buffer_data(b[0][0]);
    kiln_status s = scale(&pair[1], NULL, y, far, 100, 2, KILN_TENSOR_DEVICE, &d);
    if (s) { /* where devices do not reach each other's memory */
        if (!ended(s, KILN_E_ARG, d, "`x` lies in memory of CUDA device 0"))
            why = why ? why : "an array of the other device";
    } else {
        kiln_diags_free(d);
    }
    d = NULL;
    s = kiln_buffer_copy(b[1][0], 0, b[0][0], 0, 64, NULL, &d);
    if (!ended(s, KILN_E_ARG, d, "different contexts"))
        why = why ? why : "a copy between contexts";
    for (int i = 0; i < 2; i++)
        if (!works(&pair[i]))
            why = why ? why : "after that";
    for (int i = 0; i < 4; i++)
        kiln_buffer_free(b[i / 2][i % 2]);
    for (int i = 0; i < 2; i++)
        close_dev(&pair[i]);
    return why;
}

/* How many GPUs there are: contexts are made until there is no further one. */
static int devices(void)
{
    int n = 0;
    for (;; n++) {
        kiln_options o = KILN_OPTIONS_INIT;
        kiln_context *ctx;
        o.device = KILN_DEVICE_CUDA;
        o.device_index = n;
        if (kiln_context_create(&o, &ctx, NULL))
            return n;
        kiln_context_free(ctx);
    }
}

/* ---- the command ---- */

static void options(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *v = argv[i + 1];
        if (strcmp(argv[i], "--threads") == 0) {
            opt.threads = atoi(v);
        } else if (strcmp(argv[i], "--turns") == 0) {
            opt.turns = atoi(v);
        } else if (strcmp(argv[i], "--part") == 0) {
            opt.some = strcmp(v, "threads") == 0;
        } else if (strcmp(argv[i], "--device") == 0) {
            opt.device = strncmp(v, "cuda", 4) == 0 ? KILN_DEVICE_CUDA
                         : strcmp(v, "cpu") == 0    ? KILN_DEVICE_CPU
                                                    : KILN_DEVICE_SIM;
            opt.index = strncmp(v, "cuda:", 5) == 0 ? atoi(v + 5) : 0;
        }
    }
    if (opt.threads < 1 || opt.threads > MOST_THREADS)
        opt.threads = 8;
}

int main(int argc, char **argv)
{
    struct dev v;
    options(argc, argv);
    bool gpu = opt.device == KILN_DEVICE_CUDA;
    if (gpu && !opt.some) /* first: a child cannot use a device that its parent has opened */
        result("a kernel that faults", fault());
    if (!open_dev(&v, opt.index)) {
        puts("0 passed, 1 failed, 0 skipped");
        return 1;
    }
    result("threads on one context", run_threads(&v, 1));
    result("threads on contexts of their own", run_threads(NULL, 0));
    result("objects that threads share", shared_objects(v.ctx, opt.threads, opt.turns / 4 + 1));
    if (!opt.some)
        result("wrong shapes", wrong_shapes(&v));
    if (gpu && !opt.some) {
        int n = devices();
        result("out of memory", out_of_memory(&v));
        result("no such device", no_such_device(&v, n));
        if (n > 1)
            result("two devices", two_devices(&v));
        else
            skipped++;
    }
    close_dev(&v);
    printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed != 0;
}
