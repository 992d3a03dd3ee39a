/* kernels.c - Kiln's side of the CPU benchmark: a server that peers.py drives, so that Kiln and
 * its peers run in turn on the same data.
 *
 * kernels THREADS, then on standard input one line each:
 *   make NAME ROWS COLS      softmax gelu layernorm rowsum matmul: arrays and code for a case
 *   run                      launch once; prints the seconds
 *   sum                      prints a checksum of the output: the sum, and the sum of squares
 * Every answer is one line; `error TEXT` on failure.  Inputs come from a file of f32 that
 * peers.py wrote (`data FILE`), so that all sides see the same numbers. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kiln.h"

static struct {
    kiln_context *ctx;
    kiln_module *mod;
    kiln_spec *spec;
    kiln_kernel *k;
    kiln_arg arg[8];
    unsigned narg;
    int64_t shape[8][2];
    float *mem[8];
    unsigned nmem;
    size_t nout; /* elements of the first argument, the output */
} s;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what, kiln_diags *d)
{
    static char text[4000];
    kiln_diags_render(d, 0, text, sizeof text);
    text[strcspn(text, "\n")] = 0;
    printf("error %s: %s\n", what, d ? text : "");
    kiln_diags_free(d);
}

static void drop(void)
{
    for (unsigned i = 0; i < s.nmem; i++)
        free(s.mem[i]);
    kiln_spec_free(s.spec);
    kiln_module_free(s.mod);
    s.spec = NULL;
    s.mod = NULL;
    s.nmem = s.narg = 0;
}

/* An f32 array; filled from `data` (repeated) or left zero. */
static int array(const char *name, int32_t ndim, size_t a, size_t b, const float *data, size_t n)
{
    size_t count = ndim == 2 ? a * b : a;
    void *p = NULL;
    if (posix_memalign(&p, 64, count * sizeof(float)) != 0)
        return 0;
    float *f = s.mem[s.nmem] = p;
    for (size_t i = 0; i < count; i++)
        f[i] = data ? data[i % n] : 0;
    int64_t *shape = s.shape[s.nmem++];
    shape[0] = (int64_t)a;
    shape[1] = (int64_t)b;
    kiln_arg *g = &s.arg[s.narg++];
    memset(g, 0, sizeof *g);
    g->name = name;
    g->kind = KILN_ARG_TENSOR;
    g->u.tensor = (kiln_tensor){.data = f, .dtype = KILN_F32, .ndim = ndim, .shape = shape};
    return 1;
}

struct bench_case {
    const char *name, *file, *kernel;
};
static const struct bench_case cases[] = {
    {"softmax", "kernels/softmax.kiln", "softmax"},
    {"softmax_online", "kernels/softmax.kiln", "softmax_online"},
    {"gelu", "kernels/gelu.kiln", "erf_form"},
    {"layernorm", "kernels/layernorm.kiln", "layernorm"},
    {"rowsum", "kernels/rowsum.kiln", "rowsum"},
    {"matmul", "kernels/matmul.kiln", "matmul"},
};

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *t = f ? malloc(1 << 20) : NULL;
    *n = t ? fread(t, 1, 1 << 20, f) : 0;
    if (f)
        fclose(f);
    return t;
}

static void make(const char *name, size_t rows, size_t cols, const float *data, size_t n)
{
    const struct bench_case *c = NULL;
    drop();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, name) == 0)
            c = &cases[i];
    if (!c) {
        printf("error no case %s\n", name);
        return;
    }
    size_t len;
    char *text = slurp(c->file, &len);
    kiln_diags *d = NULL;
    if (!text || kiln_compile(s.ctx, c->file, text, len, &s.mod, &d) != KILN_OK) {
        free(text);
        fail(c->file, d);
        return;
    }
    free(text);
    kiln_diags_free(d);
    d = NULL;
    s.k = kiln_module_kernel(s.mod, c->kernel);
    int ok = 1;
    s.nout = rows * cols;
    if (strcmp(name, "matmul") == 0) {
        ok = array("c", 2, rows, cols, NULL, 0) && array("a", 2, rows, cols, data, n) &&
             array("b", 2, rows, cols, data + n / 2, n / 2);
    } else if (strcmp(name, "rowsum") == 0) {
        s.nout = rows;
        ok = array("s", 1, rows, 1, NULL, 0) && array("x", 2, rows, cols, data, n);
    } else if (strcmp(name, "gelu") == 0) {
        ok = array("y", 1, rows * cols, 1, NULL, 0) && array("x", 1, rows * cols, 1, data, n);
    } else {
        ok = array("y", 2, rows, cols, NULL, 0) && array("x", 2, rows, cols, data, n);
        if (ok && strcmp(name, "layernorm") == 0)
            ok = array("gamma", 1, cols, 1, data, n) && array("beta", 1, cols, 1, data, n);
    }
    if (!ok) {
        printf("error no memory\n");
        return;
    }
    if (!s.k || kiln_specialize(s.k, s.arg, s.narg, &s.spec, &d) != KILN_OK) {
        fail(c->kernel, d);
        return;
    }
    kiln_diags_free(d);
    printf("ok %s\n", kiln_spec_get_info(s.spec)->device == KILN_DEVICE_CPU ? "cpu" : "interp");
}

int main(int argc, char **argv)
{
    char line[4096], word[64], rest[4000];
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_options_from_env(&o);
    o.threads = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    if (kiln_context_create(&o, &s.ctx, NULL) != KILN_OK)
        return 3;
    float *data = NULL;
    size_t n = 0;
    while (fgets(line, sizeof line, stdin)) {
        size_t a, b;
        if (sscanf(line, "data %3999s", rest) == 1) {
            FILE *f = fopen(rest, "rb");
            n = 0;
            if (f && fseek(f, 0, SEEK_END) == 0) {
                n = (size_t)ftell(f) / sizeof *data;
                rewind(f);
                free(data);
                data = malloc(n * sizeof *data);
                n = data ? fread(data, sizeof *data, n, f) : 0;
            }
            if (f)
                fclose(f);
            printf(n ? "ok\n" : "error no data\n");
        } else if (sscanf(line, "make %63s %zu %zu", word, &a, &b) == 3) {
            make(word, a, b, data, n);
        } else if (strncmp(line, "run", 3) == 0 && s.spec) {
            kiln_diags *d = NULL;
            double t = now();
            kiln_status st = kiln_launch(s.k, NULL, s.arg, s.narg, &d);
            t = now() - t;
            if (st != KILN_OK)
                fail("launch", d);
            else
                printf("%.9f\n", t);
        } else if (strncmp(line, "sum", 3) == 0 && s.nmem) {
            double t = 0, q = 0;
            for (size_t i = 0; i < s.nout; i++) {
                t += (double)s.mem[0][i];
                q += (double)s.mem[0][i] * (double)s.mem[0][i];
            }
            printf("%.17g %.17g\n", t, q);
        } else {
            printf("error unknown line\n");
        }
        fflush(stdout);
    }
    drop();
    kiln_context_free(s.ctx);
    free(data);
    return 0;
}
