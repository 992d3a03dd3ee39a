/* kernels.c - Kiln's side of the GPU benchmark: the table of issue-sized cases, each measured by
 * events on cold data, one line of JSON for a case and variant.
 *
 *     kernels [--device N] [--only TEXT]     all cases whose name holds TEXT, in order
 *     kernels [--device N] --list            their names
 *     kernels --warps N,N...                 each variant once more with that clause
 *     kernels --cluster N,N...               the same with cluster(N)
 *     kernels [--device N] --serve           names on standard input, one a line; after the
 *                                            lines of a case comes `{"end": NAME}`
 *
 * Inputs are random.  Several sets of arrays, more than 128 MiB together, are used in turn, so
 * that nothing is found in the L2 cache.  A large copy goes first and keeps the device busy until
 * all launches are queued, so that the host's part does not show.  After each case a copy from
 * device to device that moves as many bytes is measured in the same way.  Run it in the folder
 * that holds kernels/. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kiln.h"

enum { LEAST = 20, MOST = 100, MAX_SETS = 24, MAX_ARRAYS = 4, MAX_ARGS = 10, SLOTS = 2 };
#define COLD ((uint64_t)128 << 20)
#define MIB  ((uint64_t)1 << 20)

/* ---- the table ---- */

enum op { ELEMENTWISE, ADD, SAXPY, SOFTMAX, ROWSUM, PARTS, SHORT, LAYERNORM, RMSNORM, TRANSPOSE };

struct variant {
    const char *name; /* of a constant, or "" */
    int64_t value;
    const char *kernel; /* NULL: that of the case */
};

static const struct bench_case {
    const char *op, *file, *kernel;
    enum op kind;
    int64_t rows, cols; /* elementwise: rows is 1 */
    int exact;          /* without math(fast) */
    struct variant variant[4];
} cases[] = {
#define BLOCKS {{"BLOCK", 1024, NULL}, {"BLOCK", 2048, NULL}, {"BLOCK", 4096, NULL}, {"BLOCK", 8192, NULL}}
    {"gelu_tanh", "gelu", "tanh_form", ELEMENTWISE, 1, 1 << 28, 0, BLOCKS},
    {"gelu_tanh_exact", "gelu", "tanh_form", ELEMENTWISE, 1, 1 << 28, 1, BLOCKS},
    {"gelu_erf", "gelu", "erf_form", ELEMENTWISE, 1, 1 << 28, 0, BLOCKS},
    {"gelu_erf_exact", "gelu", "erf_form", ELEMENTWISE, 1, 1 << 28, 1, BLOCKS},
    {"saxpy", "saxpy", "saxpy", SAXPY, 1, 1 << 28, 0, BLOCKS},
    {"add", "add", "add", ADD, 1, 1 << 28, 0, BLOCKS},
#define SOFT(r, c) {"softmax", "softmax", "softmax", SOFTMAX, r, c, 0, {{"", 0, NULL}}}
    SOFT(1024, 1024), SOFT(16384, 1000), SOFT(65536, 1024), SOFT(4096, 4096), SOFT(8192, 16384),
    SOFT(4096, 32768),
#define FAST(r, c) {"softmax_fast", "softmax", "softmax", SOFTMAX, r, c, 0, {{"FAST", 1, NULL}}}
    FAST(16384, 1000), FAST(4096, 4096), FAST(8192, 16384),
/* the whole row on a cluster, and read twice in pieces */
#define LONG(name, looped, kind, r, c)                                                             \
    {name, name, name, kind, r, c, 0,                                                              \
     {{"", 0, NULL}, {"BLOCK", 4096, looped}, {"BLOCK", 8192, looped}, {"BLOCK", 16384, looped}}}
    LONG("softmax", "softmax_online", SOFTMAX, 2048, 131072),
    LONG("softmax", "softmax_online", SOFTMAX, 512, 262144),
    {"rowsum", "rowsum", "rowsum", ROWSUM, 4096, 4096, 0, BLOCKS},
    {"rowsum", "rowsum", "rowsum", ROWSUM, 8192, 16384, 0, BLOCKS},
    {"rowsum", "rowsum", "rowsum_parts", PARTS, 8, 1 << 24, 0,
     {{"parts", 128, NULL}, {"parts", 256, NULL}, {"parts", 512, NULL}, {"parts", 1024, NULL}}},
    {"rowsum", "rowsum", "rowsum_parts", PARTS, 1, 1 << 28, 0,
     {{"parts", 1024, NULL}, {"parts", 2048, NULL}, {"parts", 4096, NULL}, {"parts", 8192, NULL}}},
    {"rowsum", "rowsum", "rowsum_short", SHORT, 1 << 20, 64, 0,
     {{"ROWS", 16, NULL}, {"ROWS", 32, NULL}, {"ROWS", 64, NULL}, {"ROWS", 128, NULL}}},
#define NORM(op, kind, r, c) {op, op, op, kind, r, c, 0, {{"", 0, NULL}}}
    NORM("layernorm", LAYERNORM, 32768, 1024), NORM("layernorm", LAYERNORM, 16384, 8192),
    NORM("rmsnorm", RMSNORM, 32768, 1024), NORM("rmsnorm", RMSNORM, 16384, 8192),
    LONG("layernorm", "layernorm_looped", LAYERNORM, 4096, 65536),
    LONG("rmsnorm", "rmsnorm_looped", RMSNORM, 4096, 65536),
#define TILES {{"BM", 32, NULL}, {"BM", 64, NULL}, {"BM", 128, NULL}}
    {"transpose", "transpose", "transpose", TRANSPOSE, 16384, 16384, 0, TILES},
    {"transpose", "transpose", "transpose", TRANSPOSE, 10000, 7000, 0, TILES},
};
enum { NCASE = sizeof cases / sizeof *cases, NTYPE = 2 };
static const kiln_dtype types[NTYPE] = {KILN_F32, KILN_BF16};

/* "softmax 4096x4096 bf16" */
static void name_of(const struct bench_case *b, kiln_dtype t, char out[100])
{
    if (b->rows == 1 && b->kind != PARTS)
        snprintf(out, 100, "%s %lld %s", b->op, (long long)b->cols, kiln_dtype_name(t));
    else
        snprintf(out, 100, "%s %lldx%lld %s", b->op, (long long)b->rows, (long long)b->cols,
                 kiln_dtype_name(t));
}

/* ---- the state ---- */

static struct {
    kiln_context *ctx;
    kiln_module *mod;
    kiln_stream *stream;
    kiln_event *ev[2 * MOST];
    kiln_buffer *noise, *plug[2];
    const struct bench_case *b;
    kiln_dtype type, acc;
    kiln_kernel *kernel[SLOTS]; /* launched one after the other */
    kiln_arg arg[SLOTS][MAX_ARGS];
    unsigned narg[SLOTS];
    int64_t shape[SLOTS][MAX_ARGS][2];
    kiln_buffer *set[MAX_SETS][MAX_ARRAYS];
    uint64_t size[MAX_ARRAYS], bytes; /* of an array; moved by a launch */
    unsigned narray, nset;
    const char *clause; /* warps or cluster */
    int value;          /* of it; 0: the back end chooses */
    char error[600];
} s;

static int fail(const char *what, kiln_status st, kiln_diags *d)
{
    char text[500] = "";
    kiln_diags_render(d, 0, text, sizeof text);
    for (char *p = text; *p; p++)
        if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ')
            *p = ' ';
    snprintf(s.error, sizeof s.error, "%s: %s: %.400s", what, kiln_status_text(st), text);
    kiln_diags_free(d);
    return 0;
}
/* Evaluates to 1 if the call succeeded. */
#define TRY(what, call)                                                                            \
    (d = NULL, st = (call), st ? fail(what, st, d) : (kiln_diags_free(d), 1))

/* ---- arrays ---- */

static uint32_t next(uint64_t *x)
{
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*x >> 33);
}

/* Roughly normal numbers of either type: sums of four uniform ones. */
static int make_noise(kiln_dtype t)
{
    enum { N = 8 << 20 };
    size_t size = kiln_dtype_size(t);
    kiln_diags *d;
    kiln_status st;
    uint64_t x = 1;
    char *host = malloc(N * size);
    if (!host)
        return fail("noise", KILN_E_NOMEM, NULL);
    for (size_t i = 0; i < N; i++) {
        float f = 0;
        uint32_t bits;
        for (int k = 0; k < 4; k++)
            f += (float)next(&x) / 2147483648.0f;
        f = (f - 2) * 1.7f;
        memcpy(&bits, &f, sizeof bits);
        if (t == KILN_BF16) {
            uint16_t h = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
            memcpy(host + i * size, &h, size);
        } else {
            memcpy(host + i * size, &f, size);
        }
    }
    kiln_buffer_free(s.noise);
    s.noise = NULL;
    int ok = TRY("noise", kiln_buffer_create(s.ctx, N * size, &s.noise)) &&
             TRY("noise", kiln_buffer_upload(s.noise, 0, host, N * size, NULL, &d));
    free(host);
    return ok;
}

/* Repeated noise, from a place of its own for each array. */
static int fill(kiln_buffer *b, unsigned seed)
{
    kiln_diags *d;
    kiln_status st;
    size_t n = kiln_buffer_size(b), period = kiln_buffer_size(s.noise);
    size_t from = (size_t)seed * 1048583 * 16 % period;
    for (size_t at = 0; at < n;) {
        size_t part = period - from < n - at ? period - from : n - at;
        if (!TRY("fill", kiln_buffer_copy(b, at, s.noise, from, part, NULL, &d)))
            return 0;
        at += part;
        from = 0;
    }
    return 1;
}

static void drop(void)
{
    for (unsigned i = 0; i < MAX_SETS; i++)
        for (unsigned k = 0; k < MAX_ARRAYS; k++) {
            kiln_buffer_free(s.set[i][k]);
            s.set[i][k] = NULL;
        }
    kiln_module_free(s.mod);
    s.mod = NULL;
    s.narray = s.nset = s.narg[0] = s.narg[1] = 0;
}

/* Array number `array` of a set as argument of launch `slot`; a new one gets its size. */
static void tensor(unsigned slot, unsigned array, const char *name, kiln_dtype t, int32_t ndim,
                   int64_t a, int64_t b)
{
    unsigned i = s.narg[slot]++;
    int64_t *shape = s.shape[slot][i];
    shape[0] = a;
    shape[1] = b;
    s.size[array] = (uint64_t)a * (uint64_t)(ndim == 2 ? b : 1) * kiln_dtype_size(t);
    if (array >= s.narray)
        s.narray = array + 1;
    s.arg[slot][i] = (kiln_arg){.name = name, .kind = KILN_ARG_TENSOR};
    s.arg[slot][i].u.tensor = (kiln_tensor){
        .dtype = t, .ndim = ndim, .shape = shape, .size_bytes = s.size[array],
        .flags = KILN_TENSOR_DEVICE | array << 16 /* taken out again in launch() */};
}

static void integer(unsigned slot, const char *name, int64_t v)
{
    s.arg[slot][s.narg[slot]] = (kiln_arg){.name = name, .kind = KILN_ARG_INT};
    s.arg[slot][s.narg[slot]++].u.i = v;
}

/* The arguments of a case; bytes: each array once as it is read and written. */
static void describe(const struct variant *v)
{
    const struct bench_case *b = s.b;
    kiln_dtype t = s.type, acc = KILN_F32;
    int64_t r = b->rows, c = b->cols;
    int grid = b->kind != ELEMENTWISE && b->kind != ADD && b->kind != SAXPY;
    uint64_t all = (uint64_t)r * (uint64_t)c * kiln_dtype_size(t);
    if (!grid) {
        tensor(0, 0, b->kind == ADD ? "z" : "y", t, 1, c, 0);
        tensor(0, 1, "x", t, 1, c, 0);
    }
    s.bytes = 2 * all;
    switch (b->kind) {
    case ADD:
        tensor(0, 2, "y", t, 1, c, 0);
        s.bytes = 3 * all;
        break;
    case SAXPY:
        s.arg[0][s.narg[0]] = (kiln_arg){.name = "a", .kind = KILN_ARG_FLOAT};
        s.arg[0][s.narg[0]++].u.f = 0.5;
        s.bytes = 3 * all;
        break;
    case ELEMENTWISE: break;
    case ROWSUM:
    case SHORT:
        tensor(0, 0, "s", acc, 1, r, 0);
        tensor(0, 1, "x", t, 2, r, c);
        s.bytes = all + (uint64_t)r * 4;
        break;
    case PARTS:
        tensor(0, 0, "partial", acc, 2, r, v->value);
        tensor(0, 1, "x", t, 2, r, c);
        tensor(1, 2, "s", acc, 1, r, 0);
        tensor(1, 0, "partial", acc, 2, r, v->value);
        s.bytes = all + (uint64_t)r * 4;
        break;
    case TRANSPOSE:
        tensor(0, 0, "y", t, 2, c, r);
        tensor(0, 1, "x", t, 2, r, c);
        break;
    case SOFTMAX:
    case LAYERNORM:
    case RMSNORM:
        tensor(0, 0, "y", t, 2, r, c);
        tensor(0, 1, "x", t, 2, r, c);
        if (b->kind != SOFTMAX)
            tensor(0, 2, "gamma", t, 1, c, 0);
        if (b->kind == LAYERNORM)
            tensor(0, 3, "beta", t, 1, c, 0);
        break;
    }
    if (*v->name)
        integer(0, v->name, v->value);
    if (strcmp(v->name, "BM") == 0)
        integer(0, "BN", v->value);
}

/* ---- code ---- */

/* Puts the clause warps(N) or cluster(N) before the body of the kernel. */
static int add_clause(const char *kernel, char *text, size_t room, size_t *n)
{
    char head[80], clause[40];
    int nhead = snprintf(head, sizeof head, "kernel %s(", kernel);
    size_t nclause = (size_t)snprintf(clause, sizeof clause, " %s(%d)", s.clause, s.value);
    char *p = nhead < (int)sizeof head ? strstr(text, head) : NULL;
    p = p ? strstr(p, "\n{") : NULL;
    if (!p || *n + nclause + 1 > room)
        return 0;
    memmove(p + nclause, p, *n - (size_t)(p - text) + 1);
    memcpy(p, clause, nclause);
    *n += nclause;
    return 1;
}

/* The source of a case; exact: with the clause math(fast, ...) blanked. */
static int compile(const struct variant *v)
{
    const char *name = v->kernel ? v->kernel : s.b->kernel;
    static char text[1 << 16];
    char path[200];
    kiln_diags *d;
    kiln_status st;
    snprintf(path, sizeof path, "kernels/%s.kiln", s.b->file);
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    if (!n)
        return fail(path, KILN_E_IO, NULL);
    for (char *p = text; s.b->exact && (p = strstr(p, "math(fast"));)
        memset(p, ' ', strcspn(p, "\n"));
    if (s.value && !add_clause(name, text, sizeof text, &n))
        return fail(name, KILN_E_ARG, NULL);
    if (!TRY(path, kiln_compile(s.ctx, path, text, n, &s.mod, &d)))
        return 0;
    s.kernel[0] = kiln_module_kernel(s.mod, name);
    s.kernel[1] = s.b->kind == PARTS ? kiln_module_kernel(s.mod, "rowsum_join") : NULL;
    return s.kernel[0] ? 1 : fail(name, KILN_E_ARG, NULL);
}

/* ---- measuring ---- */

static int launch(unsigned set)
{
    kiln_diags *d;
    kiln_status st;
    for (unsigned k = 0; k < SLOTS && s.kernel[k]; k++) {
        kiln_arg a[MAX_ARGS];
        memcpy(a, s.arg[k], sizeof a);
        for (unsigned i = 0; i < s.narg[k]; i++)
            if (a[i].kind == KILN_ARG_TENSOR) {
                a[i].u.tensor.data = kiln_buffer_data(s.set[set][a[i].u.tensor.flags >> 16]);
                a[i].u.tensor.flags = KILN_TENSOR_DEVICE;
            }
        if (!TRY("launch", kiln_launch(s.kernel[k], s.stream, a, s.narg[k], &d)))
            return 0;
    }
    return 1;
}

static uint64_t copied; /* bytes that the copy reads */

static int copy(unsigned set)
{
    kiln_diags *d;
    kiln_status st;
    size_t room = kiln_buffer_size(s.plug[0]) - copied, at = room ? set * (room / MAX_SETS) : 0;
    at -= at % 256;
    return TRY("copy", kiln_buffer_copy(s.plug[1], at, s.plug[0], at, copied, s.stream, &d));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median and least of n single times. */
static int measure(int (*once)(unsigned), unsigned sets, unsigned n, double *median, double *least)
{
    double ms[MOST];
    kiln_diags *d;
    kiln_status st;
    for (unsigned i = 0; i < 2; i++) /* warm-up: code, and the pages of each array */
        for (unsigned k = 0; k < sets; k++)
            if (!once(k))
                return 0;
    /* keeps the device busy while the launches are queued */
    for (int i = 0; i < 2; i++)
        if (!TRY("plug", kiln_buffer_copy(s.plug[1], 0, s.plug[0], 0,
                                          kiln_buffer_size(s.plug[0]), s.stream, &d)))
            return 0;
    for (unsigned i = 0; i < n; i++)
        if (!TRY("event", kiln_event_record(s.ev[2 * i], s.stream, &d)) || !once(i % sets) ||
            !TRY("event", kiln_event_record(s.ev[2 * i + 1], s.stream, &d)))
            return 0;
    if (!TRY("sync", kiln_stream_sync(s.stream, &d)))
        return 0;
    for (unsigned i = 0; i < n; i++)
        if (!TRY("event", kiln_event_elapsed(s.ev[2 * i], s.ev[2 * i + 1], &ms[i], &d)))
            return 0;
    qsort(ms, n, sizeof *ms, by_value);
    *median = ms[n / 2];
    *least = ms[0];
    return 1;
}

static int one(const struct variant *v, const char *name)
{
    kiln_diags *d;
    kiln_status st;
    kiln_spec *spec = NULL;
    double ms, least, cms, cleast;
    drop();
    if (!compile(v))
        return 0;
    describe(v);
    uint64_t total = 0;
    for (unsigned i = 0; i < s.narray; i++)
        total += s.size[i];
    s.nset = (unsigned)(COLD / total + 2);
    s.nset = s.nset > MAX_SETS ? MAX_SETS : s.nset;
    for (unsigned k = 0; k < s.nset; k++)
        for (unsigned i = 0; i < s.narray; i++)
            if (!TRY("buffer", kiln_buffer_create(s.ctx, s.size[i], &s.set[k][i])) ||
                !fill(s.set[k][i], k * MAX_ARRAYS + i))
                return 0;
    kiln_arg a[MAX_ARGS];
    memcpy(a, s.arg[0], sizeof a);
    for (unsigned i = 0; i < s.narg[0]; i++)
        if (a[i].kind == KILN_ARG_TENSOR) {
            a[i].u.tensor.data = kiln_buffer_data(s.set[0][a[i].u.tensor.flags >> 16]);
            a[i].u.tensor.flags = KILN_TENSOR_DEVICE;
        }
    if (!TRY("specialize", kiln_specialize(s.kernel[0], a, s.narg[0], &spec, &d)))
        return 0;
    kiln_spec_info info = *kiln_spec_get_info(spec);
    kiln_spec_free(spec);
    unsigned n = s.bytes > ((uint64_t)1 << 30) ? LEAST + 10 : MOST;
    if (!measure(launch, s.nset, n, &ms, &least))
        return 0;
    copied = s.bytes / 2;
    if (copied > kiln_buffer_size(s.plug[0]))
        copied = kiln_buffer_size(s.plug[0]);
    if (!measure(copy, s.nset, n, &cms, &cleast))
        return 0;
    double gbs = (double)s.bytes / ms / 1e6, copy_gbs = 2.0 * (double)copied / cms / 1e6;
    printf("{\"case\": \"%s\", \"peer\": \"kiln\", \"kernel\": \"%s\", "
           "\"variant\": \"%s%s%.0lld\", \"ms\": %.5f, \"least_ms\": %.5f, \"n\": %u, "
           "\"sets\": %u, \"bytes\": %llu, \"gbs\": %.1f, \"copy_ms\": %.5f, \"copy_gbs\": %.1f, "
           "\"of_copy\": %.4f, ",
           name, v->kernel ? v->kernel : s.b->kernel, v->name, *v->name ? "=" : "", (long long)v->value, ms, least, n,
           s.nset, (unsigned long long)s.bytes, gbs, cms, copy_gbs, gbs / copy_gbs);
    printf("\"threads\": %u, \"ctas\": %u, \"cluster\": %u, \"registers\": %u, \"spill_bytes\": %u, "
           "\"shared_bytes\": %u, \"ctas_per_sm\": %u, \"front_ms\": %.3f, \"assemble_ms\": %.2f, "
           "\"load_ms\": %.3f, \"cache\": %d}\n",
           info.cta_threads, info.ctas, info.cluster, info.registers, info.local_bytes, info.shared_bytes,
           info.ctas_per_sm, info.front_ms, info.cc_ms, info.load_ms, (int)info.cache);
    fflush(stdout);
    return 1;
}

static int tried[8], ntried; /* --warps, --cluster */

static void run(const struct bench_case *b, kiln_dtype t)
{
    char name[100];
    name_of(b, t, name);
    s.b = b;
    if (s.type != t || !s.noise) {
        s.type = t;
        if (!make_noise(t))
            printf("{\"case\": \"%s\", \"peer\": \"kiln\", \"error\": \"%s\"}\n", name, s.error);
    }
    for (int i = 0, w = 0; i < 4 && b->variant[i].name; w < ntried ? w++ : (w = 0, i++)) {
        s.value = w ? tried[w - 1] : 0;
        if (!one(&b->variant[i], name))
            printf("{\"case\": \"%s\", \"peer\": \"kiln\", \"variant\": \"%s=%lld\", \"error\": "
                   "\"%s\"}\n",
                   name, b->variant[i].name, (long long)b->variant[i].value, s.error);
    }
    drop();
    fflush(stdout);
}

/* ---- the command ---- */

static int open_all(int device, uint64_t plug)
{
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_diags *d;
    kiln_status st;
    kiln_options_from_env(&o); /* the cache */
    o.device = KILN_DEVICE_CUDA;
    o.device_index = device;
    int ok = TRY("context", kiln_context_create(&o, &s.ctx, &d)) &&
             TRY("stream", kiln_stream_create(s.ctx, &s.stream, &d)) &&
             TRY("buffer", kiln_buffer_create(s.ctx, plug, &s.plug[0])) &&
             TRY("buffer", kiln_buffer_create(s.ctx, plug, &s.plug[1]));
    for (int i = 0; i < 2 * MOST && ok; i++)
        ok = TRY("event", kiln_event_create(s.ctx, &s.ev[i], &d));
    return ok;
}

static void close_all(void)
{
    for (int i = 0; i < 2 * MOST; i++)
        kiln_event_free(s.ev[i]);
    kiln_buffer_free(s.noise);
    kiln_buffer_free(s.plug[0]);
    kiln_buffer_free(s.plug[1]);
    kiln_stream_free(s.stream);
    kiln_context_free(s.ctx);
}

static void serve(void)
{
    char line[200], name[100];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        for (int t = 0; t < NTYPE; t++)
            for (int i = 0; i < NCASE; i++) {
                name_of(&cases[i], types[t], name);
                if (strcmp(name, line) == 0)
                    run(&cases[i], types[t]);
            }
        printf("{\"end\": \"%s\"}\n", line);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    const char *only = "";
    int device = 0, list = 0, server = 0;
    uint64_t plug = 1024 * MIB;
    char name[100];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) {
            list = 1;
        } else if (strcmp(argv[i], "--serve") == 0) {
            server = 1;
        } else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
            device = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else if ((strcmp(argv[i], "--warps") == 0 || strcmp(argv[i], "--cluster") == 0) &&
                   i + 1 < argc) {
            s.clause = argv[i] + 2;
            ntried = 0;
            for (char *p = argv[++i]; *p && ntried < 8; p += *p == ',')
                tried[ntried++] = (int)strtol(p, &p, 10);
        } else if (strcmp(argv[i], "--plug") == 0 && i + 1 < argc) {
            plug = strtoull(argv[++i], NULL, 10); /* bytes; small ones for trying it out */
        } else {
            fprintf(stderr, "usage: kernels [--device N] [--list | --serve | --only TEXT] "
                            "[--warps N,N... | --cluster N,N...]\n");
            return 2;
        }
    }
    if (!list && !open_all(device, plug)) {
        fprintf(stderr, "%s\n", s.error);
        return 1;
    }
    if (server)
        serve();
    for (int t = 0; t < NTYPE && !server; t++)
        for (int i = 0; i < NCASE; i++) {
            name_of(&cases[i], types[t], name);
            if (list && strstr(name, only))
                puts(name);
            else if (!list && strstr(name, only))
                run(&cases[i], types[t]);
        }
    if (!list)
        close_all();
    return 0;
}
