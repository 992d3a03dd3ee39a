/* launch.c - the launches of a list, one after the other in one process, for a profiler to count
 * and for events to time.
 *
 *     launches CASES [--only TEXT | --exact NAME] [--part K/N]   each case once
 *     launches CASES [--only TEXT] --time           cold times
 *     launches CASES --list                         their names
 *
 * A line of CASES is NAME [--no-swizzle] FILE:KERNEL NAME=VALUE..., values as for `kiln explain`,
 * words without blanks inside; `then` begins another launch of the same case.  K/N: every N-th case
 * from the K-th on.  A case that fails does not end the run; a kernel that leaves the context
 * unusable fails all later ones.  After --seconds S no further case begins.  Each case is a line of
 * JSON on standard output.
 *
 * Arrays of floats hold random numbers, those of integers what the case gives.  --time: each launch
 * follows a copy that is larger than the L2 cache; all are queued behind one another, so that the
 * host's part does not show.  Other options: --device cuda (default), cuda:N or sim; --plug BYTES. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "lib/lib.h"

enum { STAGES = 8, WORDS = 40, TURNS = 30, LEAST = 5, BUDGET_MS = 400 };

struct stage {
    struct kl_session s; /* the context is everybody's */
    bool no_swizzle;
    struct kl_assigns as;
    struct kl_args args;
    kiln_kernel *k;
    kiln_arg *arg; /* with addresses of the device */
    kiln_buffer **buf;
    kiln_spec_info info;
};

static struct {
    const struct kl_opts *o;
    struct kl_session s;
    kiln_buffer *noise[2], *plug[2]; /* noise: of 32-bit and of 16-bit floats */
    kiln_event *ev[2 * TURNS];
    struct stage st[STAGES];
    size_t n;
    double start;
} g;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool failed(kiln_status st, kiln_diags *d)
{
    if (st)
        kl_session_fail(&g.s, st, d);
    else
        kiln_diags_free(d);
    return st != KILN_OK;
}

/* ---- arrays ---- */

enum { NOISE = 16 << 20 };

/* Roughly normal numbers: sums of four uniform ones. */
static bool make_noise(unsigned which)
{
    uint64_t x = 1;
    kiln_diags *d = NULL;
    char *host = malloc(NOISE);
    size_t size = which ? 2 : 4;
    for (size_t i = 0; host && i < NOISE / size; i++) {
        float f = 0;
        uint32_t bits;
        for (int k = 0; k < 4; k++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            f += (float)(x >> 33) / 2147483648.0f;
        }
        f = (f - 2) * 1.7f;
        memcpy(&bits, &f, sizeof bits);
        bits >>= which ? 16 : 0;
        memcpy(host + i * size, &bits, size);
    }
    kiln_status st = host ? kiln_buffer_create(g.s.ctx, NOISE, &g.noise[which]) : KILN_E_NOMEM;
    if (!st)
        st = kiln_buffer_upload(g.noise[which], 0, host, NOISE, NULL, &d);
    free(host);
    return !failed(st, d);
}

static kiln_status fill(kiln_buffer *b, size_t bytes, const struct kl_arr *r, kiln_diags **d)
{
    kiln_status st = KILN_OK;
    unsigned which = kl_elems[r->elem].bytes == 2;
    if (!kl_is_float(r->elem) || kl_elems[r->elem].bytes < 2 || kl_elems[r->elem].bytes == 8)
        return kiln_buffer_fill(b, 0, bytes, kl_is_float(r->elem) ? 0x38 : 0, NULL, d);
    if (!g.noise[which] && !make_noise(which))
        return KILN_E_NOMEM;
    for (size_t at = 0; at < bytes && !st; at += NOISE) {
        size_t n = bytes - at < NOISE ? bytes - at : NOISE;
        st = kiln_buffer_copy(b, at, g.noise[which], 0, n, NULL, d);
        if (!st)
            kiln_diags_free(*d);
        *d = st ? *d : NULL;
    }
    return st;
}

/* The array behind argument i on the device. */
static kiln_status put(struct stage *s, size_t i, kiln_diags **d)
{
    kiln_arg *a = &s->arg[i];
    const struct kl_arr *r = kl_args_find(&s->args, a->name);
    int64_t last = 0;
    if (a->kind != KILN_ARG_TENSOR || !r)
        return KILN_OK;
    for (int32_t k = 0; k < r->ndim && r->count; k++)
        last += (r->shape[k] - 1) * r->stride[k];
    size_t size = kl_elems[r->elem].bytes, skip = (size_t)r->offset * size;
    size_t bytes = r->count ? (size_t)(last + 1) * size : 0;
    kiln_status st = kiln_buffer_create(g.s.ctx, skip + bytes + 256, &s->buf[i]);
    if (!st)
        st = r->data ? kiln_buffer_upload(s->buf[i], skip, r->data, bytes, NULL, d)
                     : fill(s->buf[i], skip + bytes, r, d);
    a->u.tensor.data = (char *)kiln_buffer_data(s->buf[i]) + skip;
    a->u.tensor.size_bytes = 0;
    a->u.tensor.flags |= KILN_TENSOR_DEVICE;
    return st;
}

/* ---- one case ---- */

static void drop(void)
{
    for (size_t i = 0; i < g.n; i++) {
        struct stage *s = &g.st[i];
        for (size_t k = 0; s->buf && k < s->args.n; k++)
            kiln_buffer_free(s->buf[k]);
        free(s->buf);
        free(s->arg);
        kl_args_free(&s->args);
        kl_assigns_free(&s->as);
        s->s.ctx = NULL;
        kl_session_close(&s->s);
    }
    memset(g.st, 0, sizeof g.st);
    g.n = 0;
}

/* word: [--no-swizzle] FILE:KERNEL NAME=VALUE... */
static bool read_stage(struct stage *s, char **word, size_t n)
{
    struct kl_msg m = {0};
    kiln_diags *d = NULL;
    s->s = (struct kl_session){.o = g.o, .ctx = g.s.ctx};
    s->no_swizzle = n && strcmp(word[0], "--no-swizzle") == 0;
    word += s->no_swizzle;
    n -= s->no_swizzle;
    if (!n || kl_session_load(&s->s, word[0]) ||
        kl_session_kernel(s->s.mod, s->s.path, s->s.want, &s->k))
        return false;
    struct kl_opts o = *g.o; /* read as the words of a command line are */
    const char *arg[WORDS];
    for (size_t i = 0; i < n; i++)
        arg[i] = word[i];
    o.arg = arg;
    o.narg = n;
    if (kl_assigns_read(&s->as, &o))
        return false;
    const unsigned flags = KL_ARGS_SHAPES | KL_ARGS_WORDS | KL_ARGS_INTEGERS;
    if (!kl_args_set(&s->args, s->k, s->as.v, s->as.n, flags, &m))
        return kl_fail(0, "%s", m.text);
    kiln_status st = kl_args_outputs(&s->args, NULL, flags | KL_ARGS_READS, &d, &m);
    if (st && m.rc)
        return kl_fail(0, "%s", m.text);
    if (failed(st, d))
        return false;
    s->arg = kl_xalloc((s->args.n + 1) * sizeof *s->arg);
    s->buf = kl_xalloc((s->args.n + 1) * sizeof *s->buf);
    memcpy(s->arg, s->args.arg, s->args.n * sizeof *s->arg);
    for (size_t i = 0; i < s->args.n; i++) {
        d = NULL;
        if (failed(put(s, i, &d), d))
            return false;
    }
    return true;
}

static bool read_case(char **word, size_t n)
{
    for (size_t i = 0, j; i < n; i = j + 1) {
        for (j = i; j < n && strcmp(word[j], "then") != 0;)
            j++;
        if (g.n == STAGES)
            return kl_fail(0, "more than %d launches", STAGES);
        if (!read_stage(&g.st[g.n++], word + i, j - i))
            return false;
    }
    return g.n > 0;
}

static kiln_status launch(const struct stage *s, kiln_diags **d)
{
    struct kl_call c;
    if (!s->no_swizzle)
        return kiln_launch(s->k, NULL, s->arg, s->args.n, d);
    kiln_status st = kl_call_begin(&c, &s->k->mod->ctx->al);
    struct kl_item it = {.k = s->k, .args = s->arg, .n = s->args.n, .no_swizzle = true};
    return st ? st : kl_call_end(&c, kl_launch_item(&c, &it, NULL), d);
}

static bool launch_all(void)
{
    for (size_t i = 0; i < g.n; i++) {
        kiln_diags *d = NULL;
        kiln_status st = launch(&g.st[i], &d);
        if (failed(st, d))
            return false;
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool wait_all(void)
{
    kiln_diags *d = NULL;
    return !failed(kiln_sync(g.s.ctx, &d), d);
}

/* The median and the least of *n single times in milliseconds. */
static bool measure(double *median, double *least, unsigned *n)
{
    double ms[TURNS], t = now();
    kiln_diags *d = NULL;
    if (!launch_all() || !wait_all()) /* code and pages; how long it takes */
        return false;
    t = now();
    if (!launch_all() || !wait_all())
        return false;
    t = (now() - t) * 1e3;
    *n = t * TURNS < BUDGET_MS ? TURNS : (unsigned)(BUDGET_MS / t);
    *n = *n < LEAST ? LEAST : *n;
    for (unsigned i = 0; i < *n; i++) {
        kiln_status st =
            kiln_buffer_copy(g.plug[1], 0, g.plug[0], 0, kiln_buffer_size(g.plug[0]), NULL, &d);
        if (failed(st, d))
            return false;
        d = NULL;
        if (failed(kiln_event_record(g.ev[2 * i], NULL, &d), d) || !launch_all())
            return false;
        d = NULL;
        if (failed(kiln_event_record(g.ev[2 * i + 1], NULL, &d), d))
            return false;
        d = NULL;
    }
    if (!wait_all())
        return false;
    for (unsigned i = 0; i < *n; i++) {
        d = NULL;
        if (failed(kiln_event_elapsed(g.ev[2 * i], g.ev[2 * i + 1], &ms[i], &d), d))
            return false;
    }
    qsort(ms, *n, sizeof *ms, by_value);
    *median = *n % 2 ? ms[*n / 2] : (ms[*n / 2 - 1] + ms[*n / 2]) / 2;
    *least = ms[0];
    return true;
}

static void run(const char *name, char **word, size_t n, bool timed)
{
    double median = 0, least = 0;
    unsigned turns = 0;
    bool ok = read_case(word, n);
    if (ok)
        ok = timed ? measure(&median, &least, &turns) : launch_all() && wait_all();
    printf("{\"case\": \"%s\", \"ok\": %s, \"launches\": %zu, \"kernels\": [", name,
           ok ? "true" : "false", g.n);
    for (size_t i = 0; i < g.n; i++)
        printf("%s\"%s\"", i ? ", " : "", g.st[i].k ? kiln_kernel_name(g.st[i].k) : "");
    printf("]");
    if (timed && ok)
        printf(", \"ms\": %.6f, \"least_ms\": %.6f, \"n\": %u", median, least, turns);
    printf("}\n");
    fflush(stdout);
    fprintf(stderr, "%7.2f s  %s%s\n", now() - g.start, name, ok ? "" : "  FAILED");
    drop();
}

/* ---- the command ---- */

/* Until the clocks are up. */
static bool warm(void)
{
    double t = now();
    while (now() - t < 0.3) {
        for (int i = 0; i < 8; i++) {
            kiln_diags *d = NULL;
            kiln_status st =
                kiln_buffer_copy(g.plug[1], 0, g.plug[0], 0, kiln_buffer_size(g.plug[0]), NULL, &d);
            if (failed(st, d))
                return false;
        }
        if (!wait_all())
            return false;
    }
    return true;
}

static bool open_all(bool timed, size_t plug)
{
    kiln_device device = KILN_DEVICE_CUDA;
    int32_t index;
    const char *dev = kl_opt(g.o, KL_OPT_device);
    kiln_diags *d = NULL;
    kiln_status st = KILN_OK;
    if ((dev && kl_parse_device(dev, &device, &index)) ||
        kl_session_open(&g.s, g.o, device, 0, true))
        return false;
    for (int i = 0; i < 2 && timed && !st; i++)
        st = kiln_buffer_create(g.s.ctx, plug, &g.plug[i]);
    for (int i = 0; i < 2 * TURNS && timed && !st; i++)
        st = kiln_event_create(g.s.ctx, &g.ev[i], &d);
    return !failed(st, d) && (!timed || warm());
}

static void close_all(void)
{
    for (int i = 0; i < 2 * TURNS; i++)
        kiln_event_free(g.ev[i]);
    for (int i = 0; i < 2; i++) {
        kiln_buffer_free(g.noise[i]);
        kiln_buffer_free(g.plug[i]);
    }
    kl_session_close(&g.s);
}

static const struct kl_cmdinfo cmd = {.name = "run"};

int main(int argc, char **argv)
{
    const char *file = NULL, *only = "", *exact = NULL;
    double seconds = 1e9;
    char line[4000], *word[WORDS];
    unsigned part = 0, parts = 1, number = 0;
    bool timed = false, list = false;
    size_t plug = (size_t)256 << 20;
    struct kl_optval device = {.id = KL_OPT_device, .val = "cuda"};
    struct kl_opts o = {.cmd = &cmd, .opt = &device, .nopt = 1, .argc = argc, .argv = argv};
    g.o = &o;
    g.start = now();
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--time") == 0)
            timed = true;
        else if (strcmp(argv[i], "--list") == 0)
            list = true;
        else if (strcmp(argv[i], "--only") == 0 && next)
            only = argv[++i];
        else if (strcmp(argv[i], "--exact") == 0 && next)
            exact = argv[++i];
        else if (strcmp(argv[i], "--seconds") == 0 && next)
            seconds = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--device") == 0 && next)
            device.val = argv[++i];
        else if (strcmp(argv[i], "--plug") == 0 && next)
            plug = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--part") == 0 && next &&
                 sscanf(next, "%u/%u", &part, &parts) == 2)
            i++;
        else if (!file && argv[i][0] != '-')
            file = argv[i];
        else
            file = NULL, i = argc;
    }
    FILE *f = file && parts ? fopen(file, "r") : NULL;
    if (!f) {
        fprintf(stderr,
                "usage: launches CASES [--device D] [--only TEXT | --exact NAME] [--part K/N] "
                "[--seconds S] [--time [--plug BYTES] | --list]\n");
        return 2;
    }
    if (!list && !open_all(timed, plug))
        return 1;
    while (fgets(line, sizeof line, f)) {
        size_t n = 0;
        for (char *p = strtok(line, " \t\n"); p && n < WORDS; p = strtok(NULL, " \t\n"))
            word[n++] = p;
        if (n < 2 || word[0][0] == '#' || number++ % parts != part || !strstr(word[0], only) ||
            (exact && strcmp(word[0], exact) != 0) || now() - g.start > seconds)
            continue;
        if (list)
            puts(word[0]);
        else
            run(word[0], word + 1, n - 1, timed);
    }
    fclose(f);
    if (!list)
        close_all();
    return 0;
}
