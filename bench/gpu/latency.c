/* latency.c - how long a load from memory takes, idle and busy, and how much must be under way.
 *
 * The kernel is Kiln's: each program follows a chain of rows, each of which holds the number of the
 * next one, and loads a row whole before it knows where the next one lies.  So a program always has
 * one row under way, no more, and Little's law needs no guess: bytes under way = programs x bytes of a
 * row, time of a step = latency at that load, bytes under way / time = bandwidth.  The chains are
 * parts of one cycle in random order through more memory than any cache holds; through some of the
 * L2 cache they give its latency and what it can carry.
 *
 *     latency [--device N | --device sim]      sim: a small run for tests, with meaningless times
 *
 * Prints a table and, last, the figures for src/model/gpu.def.  The sums that the kernel forms are
 * compared with those of the host. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kiln.h"

static const char source[] =
    "kernel fill(i64 n, constexpr i64 W, i32 x[n][W], const i32 next[n]) grid(n) warps(1)\n"
    "{\n"
    "    i64 r = program_id(0);\n"
    "    i32 v[W] = next[r];\n"
    "    x[r][0:W] = v;\n"
    "}\n"
    "kernel chase(i64 n, i64 chains, i64 steps, constexpr i64 W, i32 y[chains][W],\n"
    "             const i32 x[n][W], const i32 start[chains]) grid(chains) warps(1)\n"
    "{\n"
    "    i64 c = program_id(0);\n"
    "    i64 p = start[c];\n"
    "    i32 s[W] = 0;\n"
    "    for (i64 k = 0; k < steps; k++) {\n"
    "        auto v = x[p][0:W];\n"
    "        p = x[p][0];\n"
    "        s += v;\n"
    "    }\n"
    "    y[c][0:W] = s;\n"
    "}\n";

enum { REPEATS = 16, MOST_STEPS = 20000, FORGOTTEN = 1 << 24 };

struct bench {
    kiln_context *ctx;
    kiln_kernel *fill, *chase;
    kiln_buffer *rows, *next, *start, *sums;
    int32_t *cycle, *successor; /* the cycle in its order; of each row the next one */
    int64_t n, width;           /* rows, elements of one */
    int sms;
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void must(kiln_status s, kiln_diags *d, const char *what)
{
    char text[4000] = "";
    if (!s) {
        kiln_diags_free(d);
        return;
    }
    kiln_diags_render(d, 0, text, sizeof text);
    fprintf(stderr, "%s: %s\n%s", what, kiln_status_text(s), text);
    exit(1);
}

static kiln_arg number(const char *name, int64_t i)
{
    kiln_arg a = {.name = name, .kind = KILN_ARG_INT};
    a.u.i = i;
    return a;
}

static kiln_arg array(const char *name, kiln_buffer *b, int64_t offset, int32_t ndim, const int64_t *shape)
{
    kiln_arg a = {.name = name, .kind = KILN_ARG_TENSOR};
    a.u.tensor = (kiln_tensor){.data = (int32_t *)kiln_buffer_data(b) + offset,
                               .dtype = KILN_I32,
                               .ndim = ndim,
                               .shape = shape,
                               .flags = KILN_TENSOR_DEVICE};
    return a;
}

static void launch(struct bench *b, kiln_kernel *k, const kiln_arg *arg, size_t n)
{
    kiln_diags *d = NULL;
    kiln_status s = kiln_launch(k, NULL, arg, n, &d);
    (void)b;
    must(s, d, "kiln_launch");
}

static void wait(struct bench *b)
{
    kiln_diags *d = NULL;
    kiln_status s = kiln_sync(b->ctx, &d);
    must(s, d, "kiln_sync");
}

static void upload(kiln_buffer *to, const void *from, size_t bytes)
{
    kiln_diags *d = NULL;
    kiln_status s = kiln_buffer_upload(to, 0, from, bytes, NULL, &d);
    must(s, d, "kiln_buffer_upload");
}

static void *need(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return p;
}

/* A cycle through n rows in random order (Fisher-Yates), and the rows with it. */
static void make_rows(struct bench *b, int64_t n, int64_t width)
{
    uint64_t x = UINT64_C(88172645463325252);
    const int64_t shape[2] = {n, width};
    b->n = n;
    b->width = width;
    for (int64_t i = 0; i < n; i++)
        b->cycle[i] = (int32_t)i;
    for (int64_t i = n - 1; i > 0; i--) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        int64_t k = (int64_t)(x % (uint64_t)(i + 1));
        int32_t t = b->cycle[i];
        b->cycle[i] = b->cycle[k];
        b->cycle[k] = t;
    }
    for (int64_t i = 0; i < n; i++)
        b->successor[b->cycle[i]] = b->cycle[(i + 1) % n];
    upload(b->next, b->successor, (size_t)n * 4);
    const kiln_arg arg[] = {number("W", width), array("x", b->rows, 0, 2, shape),
                            array("next", b->next, 0, 1, shape)};
    launch(b, b->fill, arg, 3);
    wait(b);
}

/* The first program's sums of the last launch against the host's. */
static void verify(struct bench *b, int32_t from, int64_t steps)
{
    int32_t got[2];
    uint32_t sum = 0;
    kiln_diags *d = NULL;
    for (int64_t k = 0; k < steps; k++)
        sum += (uint32_t)(from = b->successor[from]);
    kiln_status s = kiln_buffer_download(b->sums, 0, &got[0], 4, NULL, &d);
    must(s, d, "kiln_buffer_download");
    d = NULL;
    s = kiln_buffer_download(b->sums, (size_t)(b->width - 1) * 4, &got[1], 4, NULL, &d);
    must(s, d, "kiln_buffer_download");
    if ((uint32_t)got[0] != sum || (uint32_t)got[1] != sum) {
        fprintf(stderr, "the kernel's sum is %d and %d, the host's %d\n", got[0], got[1], (int32_t)sum);
        exit(1);
    }
}

/* Nanoseconds of a step with so many chains; each launch takes up where the one before ended.  What is
 * read again was read so long ago that no cache has it, unless all of it fits. */
static double step_ns(struct bench *b, int64_t chains, int64_t most_steps)
{
    int64_t each = b->n / chains, steps = each / 2;
    if (steps > most_steps || b->n * b->width * 4 <= FORGOTTEN)
        steps = most_steps;
    int32_t *start = need((size_t)(chains * (REPEATS + 1)) * 4);
    for (int64_t r = 0; r <= REPEATS; r++)
        for (int64_t c = 0; c < chains; c++)
            start[r * chains + c] = b->cycle[(c * each + r * steps) % b->n];
    upload(b->start, start, (size_t)(chains * (REPEATS + 1)) * 4);
    const int64_t rows[2] = {b->n, b->width}, sums[2] = {chains, b->width};
    double from = 0;
    for (int64_t r = 0; r <= REPEATS; r++) {
        const kiln_arg arg[] = {number("W", b->width), number("steps", steps),
                                array("x", b->rows, 0, 2, rows), array("y", b->sums, 0, 2, sums),
                                array("start", b->start, r * chains, 1, sums)};
        launch(b, b->chase, arg, 5);
        if (r == 0) { /* the first one compiles, loads and warms up */
            wait(b);
            from = now_us();
        }
    }
    wait(b);
    double took = now_us() - from;
    verify(b, start[REPEATS * chains], steps);
    free(start);
    return took * 1e3 / (double)(REPEATS * steps);
}

struct row {
    double under_way, ns, gbs; /* bytes on a multiprocessor */
};

static struct row measure(struct bench *b, int64_t chains, int64_t most_steps)
{
    double bytes = (double)b->width * 4, ns = step_ns(b, chains, most_steps);
    return (struct row){(double)chains * bytes / b->sms, ns, (double)chains * bytes / ns};
}

static void print(const char *where, const struct bench *b, int64_t chains, struct row r)
{
    printf("%-9s %8lld %8.0f %10.2f %10.0f %10.1f\n", where, (long long)chains, (double)b->width * 4,
           r.under_way / 1024, r.ns, r.gbs);
    fflush(stdout);
}

static void open_all(struct bench *b, int argc, char **argv, bool *sim, int64_t *bytes)
{
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_diags *d = NULL;
    kiln_module *m;
    *sim = argc == 3 && strcmp(argv[2], "sim") == 0;
    if ((argc != 1 && argc != 3) || (argc == 3 && strcmp(argv[1], "--device") != 0)) {
        fputs("usage: latency [--device N | --device sim]\n", stderr);
        exit(2);
    }
    o.device = *sim ? KILN_DEVICE_SIM : KILN_DEVICE_CUDA;
    o.device_index = argc == 3 && !*sim ? atoi(argv[2]) : 0;
    kiln_status s = kiln_context_create(&o, &b->ctx, &d);
    must(s, d, "kiln_context_create");
    d = NULL;
    s = kiln_compile(b->ctx, "latency.kiln", source, sizeof source - 1, &m, &d);
    must(s, d, "kiln_compile");
    b->fill = kiln_module_at(m, 0);
    b->chase = kiln_module_at(m, 1);
    const kiln_device_info *info = kiln_context_device_info(b->ctx);
    b->sms = *sim ? 2 : info->sms;
    *bytes = *sim ? 1 << 18 : 1 << 30;
    printf("%s: %d multiprocessors, %.1f MiB of L2 cache; rows in %.4g MiB\n",
           *sim ? "the PTX executor (times mean nothing)" : info->name, b->sms,
           (double)info->l2_bytes / 1048576, (double)*bytes / 1048576);
    int64_t rows = *bytes / 512, chains = 32 * (int64_t)b->sms;
    must(kiln_buffer_create(b->ctx, (size_t)*bytes, &b->rows), NULL, "buffer");
    must(kiln_buffer_create(b->ctx, (size_t)rows * 4, &b->next), NULL, "buffer");
    must(kiln_buffer_create(b->ctx, (size_t)chains * (REPEATS + 1) * 4, &b->start), NULL, "buffer");
    must(kiln_buffer_create(b->ctx, (size_t)chains * 2048, &b->sums), NULL, "buffer");
    b->cycle = need((size_t)rows * 4);
    b->successor = need((size_t)rows * 4);
}

int main(int argc, char **argv)
{
    static const int64_t widths[] = {128, 512};
    struct bench b = {0};
    struct row all[32], idle = {0}, l2_idle, l2 = {0};
    int64_t bytes;
    size_t n = 0;
    double most = 0;
    bool sim;
    open_all(&b, argc, argv, &sim, &bytes);
    int64_t steps = sim ? 8 : MOST_STEPS;
    puts("where       chains bytes/row  KiB an SM    ns/step       GB/s");
    for (size_t w = 0; w < 2; w++) {
        make_rows(&b, bytes / (widths[w] * 4), widths[w]);
        if (w == 0) {
            idle = measure(&b, 1, steps);
            print("memory", &b, 1, idle);
        }
        for (int64_t k = 1; k <= 32; k *= 2) {
            all[n] = measure(&b, k * b.sms, steps);
            print("memory", &b, k * b.sms, all[n]);
            most = all[n].gbs > most ? all[n].gbs : most;
            n++;
        }
    }
    /* again and again through 16 MiB, which the cache holds even if its halves keep copies */
    make_rows(&b, (sim ? bytes : FORGOTTEN) / 512, 128);
    l2_idle = measure(&b, 1, steps);
    l2_idle = measure(&b, 1, steps); /* all of it has been read now */
    print("L2 cache", &b, 1, l2_idle);
    make_rows(&b, (sim ? bytes : FORGOTTEN) / 2048, 512);
    for (int i = 0; i < 3; i++) {
        struct row r = measure(&b, 32 * (int64_t)b.sms, sim ? 8 : 200);
        l2 = r.gbs > l2.gbs ? r : l2;
    }
    print("L2 cache", &b, 32 * (int64_t)b.sms, l2);
    /* the least that is under way with nine tenths of the most, whatever the rows */
    struct row enough = all[0];
    bool found = false;
    for (size_t i = 0; i < n; i++)
        if (all[i].gbs >= 0.9 * most && (!found || all[i].under_way < enough.under_way)) {
            enough = all[i];
            found = true;
        }
    printf("\nunloaded: %.0f ns from memory, %.0f ns from the L2 cache (with the loop's own work)\n", idle.ns,
           l2_idle.ns);
    printf("loaded: %.0f GB/s at most; nine tenths of it take %.1f KiB under way on each multiprocessor, "
           "and a load then %.0f ns\n",
           most, enough.under_way / 1024, enough.ns);
    printf("gpu.def: latency %.0f, unloaded %.0f, l2_read %.0f\n", enough.ns, idle.ns, l2.gbs);
    return 0;
}
