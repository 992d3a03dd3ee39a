/* demo.c - the main job, from source to verified result.
 *
 * demo [--data DIR] [--rows N] [--cols N] [--runs N]
 *
 * Makes a matrix as .npy, runs the fused kernels of kernels/ on it on all cores, and the same
 * work operation by operation (unfused.kiln); verifies every element against ref.c; and shows
 * times beside the machine's own copy, which is measured in turn with the kernels. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "demo.h"
#include "kiln.h"

enum { MAX_RUNS = 50, MAX_STEPS = 5, MAX_ARGS = 4 };

static struct {
    const char *dir;
    size_t rows, cols;
    unsigned runs;
} opt = {"build/demo", 8192, 8192, 5};

struct demo {
    kiln_context *ctx;
    kiln_module *mod[3]; /* softmax, gelu, unfused */
    float *x, *y, *t, *u, *row;
    size_t rows, cols;
    double front_ms, cc_ms;
};

static void say(kiln_diags *d)
{
    size_t n = kiln_diags_render(d, 0, NULL, 0);
    char *text = malloc(n + 1);
    if (text) {
        kiln_diags_render(d, 0, text, n + 1);
        fputs(text, stderr);
    }
    free(text);
    kiln_diags_free(d);
}

/* ---- compiling ---- */

static kiln_module *module(struct demo *m, const char *path)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "demo: cannot read %s: %s\n", path, strerror(errno));
        return NULL;
    }
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    kiln_module *mod = NULL;
    kiln_diags *d = NULL;
    if (kiln_compile(m->ctx, path, text, n, &mod, &d) != KILN_OK)
        say(d);
    else
        kiln_diags_free(d);
    return mod;
}

/* ---- what is run ---- */

/* One launch: kernel and arguments. */
struct step {
    unsigned mod;
    const char *kernel;
    kiln_arg arg[MAX_ARGS];
    unsigned narg;
};

struct job {
    const char *name;
    struct step step[MAX_STEPS];
    unsigned nstep;
    enum ref_kind ref;
    double traffic; /* bytes: each array a step reads or writes, once */
    double time[MAX_RUNS];
    double limit_ulp;
    struct error err;
    bool same; /* the same bits as the job before */
};

static kiln_arg array(const char *name, float *p, int32_t ndim, const int64_t *shape)
{
    kiln_arg a = {.name = name, .kind = KILN_ARG_TENSOR};
    a.u.tensor = (kiln_tensor){.data = p, .dtype = KILN_F32, .ndim = ndim, .shape = shape};
    return a;
}

static void add_step(struct job *j, unsigned mod, const char *kernel, const kiln_arg *arg,
                     unsigned n)
{
    struct step *s = &j->step[j->nstep++];
    s->mod = mod;
    s->kernel = kernel;
    s->narg = n;
    for (unsigned i = 0; i < n; i++) {
        s->arg[i] = arg[i];
        double count = 1;
        if (arg[i].kind != KILN_ARG_TENSOR)
            continue;
        for (int32_t d = 0; d < arg[i].u.tensor.ndim; d++)
            count *= (double)arg[i].u.tensor.shape[d];
        j->traffic += count * sizeof(float);
    }
}
#define STEP(j, mod, kernel, ...)                                                                  \
    add_step((j), (mod), (kernel), (const kiln_arg[]){__VA_ARGS__},                                \
             sizeof((const kiln_arg[]){__VA_ARGS__}) / sizeof(kiln_arg))

static kiln_status run(struct demo *m, struct job *j, double *seconds)
{
    double begin = now();
    for (unsigned i = 0; i < j->nstep; i++) {
        const struct step *s = &j->step[i];
        kiln_diags *d = NULL;
        kiln_kernel *k = kiln_module_kernel(m->mod[s->mod], s->kernel);
        kiln_status st = k ? kiln_launch(k, NULL, s->arg, s->narg, &d) : KILN_E_ARG;
        if (st != KILN_OK) {
            fprintf(stderr, "demo: %s: %s\n", s->kernel, kiln_status_text(st));
            say(d);
            return st;
        }
        kiln_diags_free(d);
    }
    *seconds = now() - begin;
    return KILN_OK;
}

/* All kernels of all jobs through one run of the C compiler. */
static bool specialise(struct demo *m, const struct job *j, unsigned n)
{
    enum { MOST = 32 };
    kiln_kernel *k[MOST];
    const kiln_arg *arg[MOST];
    size_t narg[MOST], count = 0;
    kiln_spec *spec[MOST] = {NULL};
    kiln_diags *d = NULL;
    for (unsigned i = 0; i < n; i++)
        for (unsigned s = 0; s < j[i].nstep && count < MOST; s++, count++) {
            k[count] = kiln_module_kernel(m->mod[j[i].step[s].mod], j[i].step[s].kernel);
            arg[count] = j[i].step[s].arg;
            narg[count] = j[i].step[s].narg;
        }
    bool ok = kiln_specialize_many(k, arg, narg, count, spec, &d) == KILN_OK;
    for (size_t i = 0; ok && i < count; i++) {
        const kiln_spec_info *info = kiln_spec_get_info(spec[i]);
        m->front_ms += info->front_ms;
        if (info->cc_ms > m->cc_ms)
            m->cc_ms = info->cc_ms;
    }
    for (size_t i = 0; i < count; i++)
        kiln_spec_free(spec[i]);
    say(d);
    return ok;
}

static unsigned make_jobs(struct demo *m, struct job *j)
{
    static int64_t full[2], flat[1], rows[1];
    full[0] = rows[0] = (int64_t)m->rows;
    full[1] = (int64_t)m->cols;
    flat[0] = full[0] * full[1];
    kiln_arg a = {.name = "a", .kind = KILN_ARG_FLOAT};
    memset(j, 0, 5 * sizeof *j);
    j[0].name = "softmax, fused";
    j[0].ref = j[1].ref = REF_SOFTMAX;
    j[0].limit_ulp = j[1].limit_ulp = 32;
    STEP(&j[0], 0, "softmax", array("y", m->y, 2, full), array("x", m->x, 2, full));
    j[1].name = "softmax, 5 kernels";
    STEP(&j[1], 2, "row_max", array("m", m->row, 1, rows), array("x", m->x, 2, full));
    STEP(&j[1], 2, "row_sub", array("d", m->t, 2, full), array("x", m->x, 2, full),
         array("m", m->row, 1, rows));
    STEP(&j[1], 2, "row_exp", array("e", m->u, 2, full), array("d", m->t, 2, full));
    STEP(&j[1], 2, "row_sum", array("s", m->row, 1, rows), array("e", m->u, 2, full));
    STEP(&j[1], 2, "row_div", array("y", m->t, 2, full), array("e", m->u, 2, full),
         array("s", m->row, 1, rows));
    j[2].name = "gelu (erf), fused";
    j[2].ref = j[3].ref = REF_GELU_ERF;
    j[2].limit_ulp = j[3].limit_ulp = j[4].limit_ulp = 32;
    STEP(&j[2], 1, "erf_form", array("y", m->y, 1, flat), array("x", m->x, 1, flat));
    j[3].name = "gelu (erf), 4 kernels";
    a.u.f = -0.70710678118654752440;
    STEP(&j[3], 2, "scale", array("y", m->t, 1, flat), array("x", m->x, 1, flat), a);
    STEP(&j[3], 2, "erfc_of", array("y", m->u, 1, flat), array("x", m->t, 1, flat));
    a.u.f = 0.5;
    STEP(&j[3], 2, "scale", array("y", m->t, 1, flat), array("x", m->x, 1, flat), a);
    STEP(&j[3], 2, "product", array("z", m->t, 1, flat), array("x", m->t, 1, flat),
         array("y", m->u, 1, flat));
    j[4].name = "gelu (tanh), fused";
    j[4].ref = REF_GELU_TANH;
    STEP(&j[4], 1, "tanh_form", array("y", m->y, 1, flat), array("x", m->x, 1, flat));
    return 5;
}

/* ---- the table ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *t, unsigned n)
{
    qsort(t, n, sizeof *t, by_value);
    return n % 2 ? t[n / 2] : (t[n / 2 - 1] + t[n / 2]) / 2;
}

static void print_row(const char *name, double bytes, double s, double copy, const struct job *j)
{
    printf("%-22s %8.1f MiB %8.1f ms %6.2f %5.0f %%", name, bytes / 1048576, s * 1e3,
           bytes / s / 1e9, 100 * bytes / s / copy);
    if (!j)
        putchar('\n');
    else if (j->same)
        printf("   same bits\n");
    else
        printf(" %6.2f %8.1e\n", j->err.max_ulp, j->err.rms);
}

/* Bytes of softmax on an n x n matrix: five kernels move 8 n^2 + 4 n elements, one 2 n^2. */
static void traffic_model(double n)
{
    double five = (8 * n * n + 4 * n) * 4 / 1048576, one = 2 * n * n * 4 / 1048576;
    printf("softmax on %.0f x %.0f moves %.3f MiB in five kernels, %.3f MiB fused: "
           "%.3f times\n", n, n, five, one, five / one);
}

static bool measure(struct demo *m, struct job *j, unsigned n, double *copy)
{
    size_t count = m->rows * m->cols;
    unsigned threads = kiln_context_threads(m->ctx);
    double copies[MAX_RUNS], warm;
    for (unsigned i = 0; i < n; i++) { /* warm up, and verify what the first run gives */
        if (run(m, &j[i], &warm) != KILN_OK)
            return false;
        const float *y = j[i].nstep > 1 ? m->t : m->y;
        if (j[i].nstep > 1) /* the fused job stands before: its result is still in y */
            j[i].same = memcmp(m->y, m->t, count * sizeof *y) == 0;
        if (!j[i].same)
            reference(j[i].ref, m->x, y, m->rows, m->cols, threads, &j[i].err);
    }
    copy_time(m->t, m->x, count, threads);
    for (unsigned r = 0; r < opt.runs; r++) {
        copies[r] = copy_time(m->t, m->x, count, threads);
        for (unsigned i = 0; i < n; i++)
            if (run(m, &j[i], &j[i].time[r]) != KILN_OK)
                return false;
    }
    *copy = median(copies, opt.runs);
    return true;
}

static int show(struct demo *m, struct job *j, unsigned n, double copy)
{
    double bytes = 2.0 * (double)(m->rows * m->cols) * sizeof(float), rate = bytes / copy;
    int bad = 0;
    printf("\n%-22s %12s %11s %6s %7s %6s %8s\n", "", "traffic", "time", "GB/s", "of copy",
           "ULP", "RMS err");
    print_row("copy (memcpy)", bytes, copy, rate, NULL);
    for (unsigned i = 0; i < n; i++) {
        print_row(j[i].name, j[i].traffic, median(j[i].time, opt.runs), rate, &j[i]);
        if (!j[i].same &&
            (j[i].err.mask || j[i].err.max_ulp > j[i].limit_ulp || j[i].err.rms > 1e-6)) {
            printf("    FAILED: element %zu: x = %.9g, limit %.0f ULP\n", j[i].err.worst,
                   (double)m->x[j[i].err.worst], j[i].limit_ulp);
            bad = 1;
        }
    }
    printf("\n");
    traffic_model(1024);
    printf("fused against unfused, time: softmax %.2f times, gelu %.2f times\n",
           j[1].time[opt.runs / 2] / j[0].time[opt.runs / 2],
           j[3].time[opt.runs / 2] / j[2].time[opt.runs / 2]);
    printf("times are medians of %u runs in turn; ULP and RMS err against C in double\n"
           "precision, all %zu elements: %s\n", opt.runs, m->rows * m->cols,
           bad ? "FAILED" : "verified");
    return bad;
}

static bool open_all(struct demo *m)
{
    char path[4000];
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_diags *d = NULL;
    kiln_options_from_env(&o);
    o.cache_dir = NULL; /* compile times are part of what is shown */
    if (kiln_context_create(&o, &m->ctx, &d) != KILN_OK) {
        say(d);
        return false;
    }
    kiln_diags_free(d);
    if (!(m->mod[0] = module(m, "kernels/softmax.kiln")) ||
        !(m->mod[1] = module(m, "kernels/gelu.kiln")) ||
        !(m->mod[2] = module(m, "bench/demo/unfused.kiln")))
        return false;
    if (mkdir(opt.dir, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "demo: cannot make %s: %s\n", opt.dir, strerror(errno));
        return false;
    }
    snprintf(path, sizeof path, "%s/x.npy", opt.dir);
    if (!data_make(path, opt.rows, opt.cols) || !(m->x = data_read(path, &m->rows, &m->cols)))
        return false;
    size_t n = m->rows * m->cols;
    unsigned v = kiln_version();
    printf("kiln %u.%u.%u, %s, %u threads\ninput %s: %zu x %zu f32, %.1f MiB\n", v / 10000,
           v / 100 % 100, v % 100,
           kiln_context_device(m->ctx) == KILN_DEVICE_CPU ? "cpu" : "interpreter (no C compiler)",
           kiln_context_threads(m->ctx), path, m->rows, m->cols, (double)n * 4 / 1048576);
    return (m->y = data_alloc(n)) && (m->t = data_alloc(n)) && (m->u = data_alloc(n)) &&
           (m->row = data_alloc(m->rows));
}

static size_t number(const char *s)
{
    char *e;
    unsigned long long v = s ? strtoull(s, &e, 10) : 0;
    if (!v || *e) {
        fputs("demo [--data DIR] [--rows N] [--cols N] [--runs N]\n", stderr);
        exit(2);
    }
    return (size_t)v;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--data") == 0 && v)
            opt.dir = v;
        else if (strcmp(argv[i], "--rows") == 0)
            opt.rows = number(v);
        else if (strcmp(argv[i], "--cols") == 0)
            opt.cols = number(v);
        else if (strcmp(argv[i], "--runs") == 0)
            opt.runs = (unsigned)number(v);
        else
            number(NULL);
    }
    if (opt.runs > MAX_RUNS)
        opt.runs = MAX_RUNS;
    struct demo m = {0};
    struct job job[5];
    double copy = 0;
    int rc = 3;
    if (open_all(&m)) {
        unsigned n = make_jobs(&m, job);
        double begin = now();
        if (specialise(&m, job, n)) {
            printf("compiled in %.0f ms: front end %.1f ms, C compiler %.0f ms\n",
                   (now() - begin) * 1e3, m.front_ms, m.cc_ms);
            fflush(stdout);
            if (measure(&m, job, n, &copy))
                rc = show(&m, job, n, copy);
        }
    }
    for (unsigned i = 0; i < 3; i++)
        kiln_module_free(m.mod[i]);
    kiln_context_free(m.ctx);
    free(m.x);
    free(m.y);
    free(m.t);
    free(m.u);
    free(m.row);
    return rc;
}
