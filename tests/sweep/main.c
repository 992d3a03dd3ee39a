/* main.c - every library kernel over many shapes, on a device, with the interpreter's bits.
 *
 *     sweep [--device sim|cpu|cuda[:N]] [--full] [--only TEXT] [--every N] [--list] [-j JOBS]
 *           [--repeat N] [--host-arrays]
 *
 * Run in the folder that holds kernels/.  Each case runs in the checked interpreter and on the
 * device (--repeat times, default 2), on arrays with guards around them in memory of the device;
 * all bytes must be the same at the end.  Where the device's approximate units are used, as
 * math(fast) allows, written elements may differ within their bound.  Without --full a choice of
 * cases runs, with --every one in N.  --host-arrays: arrays of the host, each of which the library
 * puts into memory of its own on the device, so that compute-sanitizer sees where it ends.  The
 * last line is `N passed, N failed, N skipped`. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sweep.h"

enum { BATCH = 48, MAX_SHOWN = 8, MAX_MODULES = 128, TEXT = 1 << 16 };

static struct {
    kiln_device device;
    int index;
    bool full, list, host;
    const char *only;
    unsigned jobs, repeat, every;
} opt = {KILN_DEVICE_SIM, 0, false, false, false, "", 1, 2, 1};

struct count {
    unsigned passed, failed, approximate;
};

struct loaded {
    const char *file;
    bool exact;
    kiln_module *mod[2]; /* interpreter, device */
};

struct sweep {
    kiln_context *ctx[2];
    struct loaded mod[MAX_MODULES];
    unsigned nmod, job, shown, seen;
    struct kase batch[BATCH];
    unsigned n;
    kiln_buffer *buf[BATCH];
    size_t room[BATCH];
    struct count *count;
};

/* ---- modules ---- */

static void die(const char *what, kiln_status s, const kiln_diags *d)
{
    char text[3000] = "";
    kiln_diags_render(d, 0, text, sizeof text);
    printf("FAIL %s: %s\n%s", what, kiln_status_text(s), text);
    exit(1);
}

static const struct loaded *load(struct sweep *s, const struct kase *c)
{
    static char text[TEXT];
    char path[200];
    for (unsigned i = 0; i < s->nmod; i++)
        if (s->mod[i].file == c->k->file && s->mod[i].exact == c->exact)
            return &s->mod[i];
    if (s->nmod == MAX_MODULES)
        die("more files than the table of modules holds", KILN_E_INTERNAL, NULL);
    struct loaded *l = &s->mod[s->nmod++];
    l->file = c->k->file;
    l->exact = c->exact;
    snprintf(path, sizeof path, "kernels/%s.kiln", c->k->file);
    if (access(path, R_OK) != 0)
        snprintf(path, sizeof path, "tests/sweep/%s.kiln", c->k->file);
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, TEXT - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    if (!n)
        die(path, KILN_E_IO, NULL);
    for (char *p = text; c->exact && (p = strstr(p, "math(fast"));)
        memset(p, ' ', strcspn(p, "\n"));
    for (int i = 0; i < 2; i++) {
        kiln_diags *d = NULL;
        kiln_status st = kiln_compile(s->ctx[i], path, text, n, &l->mod[i], &d);
        if (st)
            die(path, st, d);
        kiln_diags_free(d);
    }
    return l;
}

/* ---- one case ---- */

static void failed(struct sweep *s, const struct kase *c, const char *where, kiln_status st,
                   kiln_diags *d, const char *why)
{
    char name[400], text[1500] = "";
    s->count->failed++;
    if (s->shown++ < MAX_SHOWN) {
        describe(c, name, sizeof name);
        kiln_diags_render(d, 0, text, sizeof text);
        printf("FAIL %s: %s: %s%s%s\n", name, where, why ? why : kiln_status_text(st),
               *text ? "\n" : "", text);
    }
    kiln_diags_free(d);
}

/* Launch on the device from the block's first bytes; what came out is in got. */
static kiln_status on_device(kiln_kernel *k, const struct kase *c,
                             const struct block *b, kiln_buffer *buf, unsigned char *got,
                             kiln_diags **d)
{
    kiln_arg arg[MAX_ARGS];
    if (opt.host) {
        memcpy(got, b->start, b->size);
        return kiln_launch(k, NULL, arg, block_args(c, b, got, arg, 'h'), d);
    }
    kiln_status st = kiln_buffer_upload(buf, 0, b->start, b->size, NULL, d);
    if (st)
        return st;
    kiln_diags_free(*d);
    unsigned n = block_args(c, b, kiln_buffer_data(buf), arg, 'd');
    st = kiln_launch(k, NULL, arg, n, d);
    if (st)
        return st;
    kiln_diags_free(*d);
    return kiln_buffer_download(buf, 0, got, b->size, NULL, d);
}

static void one(struct sweep *s, const struct kase *c, const struct block *b, kiln_buffer *buf,
                bool loose)
{
    const struct loaded *l = load(s, c);
    kiln_kernel *k[2] = {kiln_module_kernel(l->mod[0], c->k->kernel),
                         kiln_module_kernel(l->mod[1], c->k->kernel)};
    kiln_arg arg[MAX_ARGS];
    kiln_diags *d = NULL;
    char why[300];
    unsigned char *want = malloc(b->size + 256), *got = malloc(b->size + 256), *to = got,
                  *before = malloc(b->size), *mem = want;
    if (!want || !got || !before || !k[0] || !k[1])
        die(c->k->kernel, KILN_E_NOMEM, NULL);
    mem += 256 - (uintptr_t)want % 256; /* as on the device */
    to += 256 - (uintptr_t)got % 256;
    memcpy(mem, b->start, b->size);
    unsigned n = block_args(c, b, mem, arg, 'h');
    kiln_status st = kiln_launch(k[0], NULL, arg, n, &d);
    if (st) {
        failed(s, c, "interpreter", st, d, NULL);
    } else {
        bool good = true;
        for (unsigned r = 0; r < opt.repeat && good; r++) {
            kiln_diags_free(d);
            d = NULL;
            st = on_device(k[1], c, b, buf, to, &d);
            good = false;
            if (st) {
                failed(s, c, "device", st, d, NULL);
                d = NULL;
            } else if (r && memcmp(before, to, b->size) != 0) {
                failed(s, c, "device", st, NULL, "another run gave other bits");
            } else {
                memcpy(before, to, b->size);
                good = r || block_same(c, b, mem, to, loose, why, sizeof why);
                if (!good)
                    failed(s, c, "device", st, NULL, why);
            }
        }
        kiln_diags_free(d);
        s->count->passed += good;
        s->count->approximate += good && loose;
    }
    free(want);
    free(got);
    free(before);
}

/* ---- batches: their code is made together ---- */

static void flush_batch(struct sweep *s)
{
    static struct block b[BATCH];
    static kiln_arg arg[BATCH][MAX_ARGS];
    static const kiln_arg *args[BATCH];
    kiln_kernel *k[BATCH];
    kiln_spec *spec[BATCH] = {NULL};
    size_t nargs[BATCH];
    kiln_diags *d = NULL;
    for (unsigned i = 0; i < s->n; i++) {
        const struct kase *c = &s->batch[i];
        block_make(c, &b[i]);
        if (s->room[i] < b[i].size) {
            kiln_buffer_free(s->buf[i]);
            s->buf[i] = NULL;
            s->room[i] = b[i].size + b[i].size / 2;
            kiln_status st = kiln_buffer_create(s->ctx[1], s->room[i], &s->buf[i]);
            if (st)
                die("kiln_buffer_create", st, NULL);
        }
        k[i] = kiln_module_kernel(load(s, c)->mod[1], c->k->kernel);
        nargs[i] = block_args(c, &b[i], kiln_buffer_data(s->buf[i]), arg[i], 'd');
        args[i] = arg[i];
    }
    /* where one of them fails, the launches say which */
    if (s->n)
        kiln_specialize_many(k, args, nargs, s->n, spec, &d);
    kiln_diags_free(d);
    for (unsigned i = 0; i < s->n; i++) {
        one(s, &s->batch[i], &b[i], s->buf[i],
            opt.device == KILN_DEVICE_CUDA && spec[i] &&
                kiln_spec_get_info(spec[i])->approximate);
        kiln_spec_free(spec[i]);
        block_free(&b[i]);
    }
    s->n = 0;
}

static void take(void *user, const struct kase *c, unsigned group)
{
    struct sweep *s = user;
    char name[400];
    if (group % opt.jobs != s->job || (s->seen++ % opt.every && !*opt.only))
        return;
    if (*opt.only) {
        describe(c, name, sizeof name);
        if (!strstr(name, opt.only))
            return;
    }
    if (s->n == BATCH)
        flush_batch(s);
    s->batch[s->n++] = *c;
}

static void list(void *user, const struct kase *c, unsigned group)
{
    char name[400];
    (void)user;
    describe(c, name, sizeof name);
    if (strstr(name, opt.only))
        printf("%u %s\n", group, name);
}

static void run(unsigned job, struct count *count)
{
    static struct sweep s;
    kiln_diags *d = NULL;
    s.job = job;
    s.count = count;
    for (int i = 0; i < 2; i++) {
        kiln_options o = KILN_OPTIONS_INIT;
        kiln_options_from_env(&o);
        o.device = i ? opt.device : KILN_DEVICE_INTERP;
        o.device_index = i ? opt.index : 0;
        o.checks = i ? 0 : KILN_CHECK_BOUNDS;
        o.threads = i ? 2 : 1;
        kiln_status st = kiln_context_create(&o, &s.ctx[i], &d);
        if (st)
            die("kiln_context_create", st, d);
        kiln_diags_free(d);
        d = NULL;
    }
    enumerate(opt.full, take, &s);
    flush_batch(&s);
    for (unsigned i = 0; i < BATCH; i++)
        kiln_buffer_free(s.buf[i]);
    for (unsigned i = 0; i < s.nmod; i++)
        for (int j = 0; j < 2; j++)
            kiln_module_free(s.mod[i].mod[j]);
    kiln_context_free(s.ctx[0]);
    kiln_context_free(s.ctx[1]);
    fflush(stdout);
}

/* ---- the command ---- */

static void usage(void)
{
    fputs("sweep [--device sim|cpu|cuda[:N]] [--full] [--only TEXT] [--every N] [--list] "
          "[-j JOBS] [--repeat N] [--host-arrays]\n", stderr);
    exit(2);
}

static void options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--full") == 0) {
            opt.full = true;
        } else if (strcmp(argv[i], "--host-arrays") == 0) {
            opt.host = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            opt.list = true;
        } else if (!v) {
            usage();
        } else if (strcmp(argv[i], "--only") == 0) {
            opt.only = argv[++i];
        } else if (strcmp(argv[i], "-j") == 0) {
            opt.jobs = (unsigned)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--every") == 0) {
            opt.every = (unsigned)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--repeat") == 0) {
            opt.repeat = (unsigned)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--device") == 0) {
            i++;
            if (strcmp(v, "sim") == 0)
                opt.device = KILN_DEVICE_SIM;
            else if (strcmp(v, "cpu") == 0)
                opt.device = KILN_DEVICE_CPU;
            else if (strncmp(v, "cuda", 4) == 0 && (!v[4] || v[4] == ':'))
                opt.device = KILN_DEVICE_CUDA, opt.index = v[4] ? atoi(v + 5) : 0;
            else
                usage();
        } else {
            usage();
        }
    }
    if (!opt.jobs || opt.jobs > 64 || !opt.repeat || !opt.every)
        usage();
}

int main(int argc, char **argv)
{
    options(argc, argv);
    if (opt.list) {
        enumerate(opt.full, list, NULL);
        return 0;
    }
    struct count *count = mmap(NULL, opt.jobs * sizeof *count, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0), all = {0, 0, 0};
    if (count == MAP_FAILED)
        return 4;
    if (opt.jobs == 1)
        run(0, count);
    for (unsigned j = 0; j < opt.jobs && opt.jobs > 1; j++)
        if (fork() == 0) { /* before any context: a child cannot use its parent's device */
            run(j, &count[j]);
            exit(0);
        }
    for (int st; wait(&st) > 0;)
        if (!WIFEXITED(st) || WEXITSTATUS(st)) {
            puts("FAIL a job ended badly");
            all.failed++;
        }
    for (unsigned j = 0; j < opt.jobs; j++) {
        all.passed += count[j].passed;
        all.failed += count[j].failed;
        all.approximate += count[j].approximate;
    }
    printf("%u of them within bounds, all others bit by bit\n", all.approximate);
    printf("%u passed, %u failed, 0 skipped\n", all.passed, all.failed);
    return all.failed != 0 || !all.passed;
}
