/* main.c - random programs: all targets must give the same bits.
 *
 * random-programs [-n COUNT] [-s SEED] [-j JOBS] [--batch N] [--ops [--every N]] [--show]
 *                 [--interp] [--sim] [--cuda] [--no-reduce]
 *
 * The code of a batch (50 programs, at most 128) is made together; what fails is run again by
 * itself, and one that then does not fail is shown with its batch.
 *
 * Programs have the seeds SEED, SEED+1, ...: `-n 1 -s SEED --show` is one of them
 * again.  --ops: every operation by itself instead (ops.c), or every Nth.  --interp leaves the CPU out;
 * --sim and --cuda add the PTX executor and the GPU (`--interp --cuda`: the GPU alone).  Every
 * tenth program is also compiled by clang.  A failing program is printed after it has been
 * shrunk.  The last line is `N passed, N failed, N skipped`. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "random.h"

enum { MAX_SHOWN = 5 };

static struct {
    uint64_t seed;
    unsigned count, jobs, batch, use;
    bool show, shrink, ops;
    unsigned every;
} opt = {1, 300, 2, 50, USE_CPU | USE_CLANG, false, true, false, 1};

static const char *const words[] = {"not run", "running", "ok", "rejected", "failed",
                                    "different", "crashed"};

static void report(struct rprog *p, const struct result *r, bool clang, unsigned first, unsigned n,
                   unsigned *shown)
{
    if (p->title)
        printf("FAIL %s: %s: %s\n", p->title, words[r->outcome], r->why);
    else
        printf("FAIL seed %llu: %s: %s\n", (unsigned long long)p->seed, words[r->outcome],
               r->why);
    if ((*shown)++ >= MAX_SHOWN)
        return;
    char *whole = program_text(p->line, p->nline);
    struct result alone = {O_NONE, ""};
    run_guarded(&p, &whole, 1, &clang, opt.use, &alone);
    free(whole);
    if (alone.outcome != r->outcome) {
        printf("---- by itself it is %s: only together with its batch, seeds %llu to %llu\n",
               words[alone.outcome], (unsigned long long)(opt.seed + first),
               (unsigned long long)(opt.seed + first + n - 1));
        return;
    }
    if (opt.shrink && r->outcome > O_OK && !p->title)
        reduce(p, r, clang, opt.use);
    char *text = program_text(p->line, p->nline);
    printf("---- %s\n%s----\n", opt.shrink ? "shrunk" : "source", text);
    free(text);
}

/* Programs first .. first+n-1; how many passed. */
static unsigned one_batch(unsigned first, unsigned n, unsigned *shown)
{
    struct rprog *p = calloc(n, sizeof *p), *ptr[MAX_BATCH] = {NULL};
    struct result *res = calloc(n, sizeof *res);
    char *text[MAX_BATCH] = {NULL};
    bool clang[MAX_BATCH] = {false};
    unsigned passed = 0;
    if (!p || !res)
        exit(4);
    for (unsigned i = 0; i < n; i++) {
        if (opt.ops)
            one_operation(&p[i], (first + i) * opt.every);
        else
            generate(&p[i], opt.seed + first + i);
        ptr[i] = &p[i];
        text[i] = program_text(p[i].line, p[i].nline);
        clang[i] = (first + i) % 10 == 0;
        if (opt.show)
            printf("// seed %llu\n%s\n", (unsigned long long)p[i].seed, text[i]);
    }
    run_guarded(ptr, text, n, clang, opt.use, res);
    for (unsigned i = 0; i < n; i++) {
        if (res[i].outcome == O_OK)
            passed++;
        else
            report(&p[i], &res[i], clang[i], first, n, shown);
        free(text[i]);
        pool_free(&p[i].mem);
    }
    free(p);
    free(res);
    return passed;
}

static void usage(void)
{
    fputs("random-programs [-n COUNT] [-s SEED] [-j JOBS] [--batch N] [--ops [--every N]] [--show] "
          "[--interp] [--sim] [--cuda] [--no-reduce]\n", stderr);
    exit(2);
}

static void options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(a, "--show") == 0) {
            opt.show = true;
        } else if (strcmp(a, "--ops") == 0) {
            opt.ops = true;
        } else if (strcmp(a, "--interp") == 0) {
            opt.use &= ~(unsigned)(USE_CPU | USE_CLANG);
        } else if (strcmp(a, "--sim") == 0) {
            opt.use |= USE_SIM;
        } else if (strcmp(a, "--cuda") == 0) {
            opt.use |= USE_CUDA;
        } else if (strcmp(a, "--no-reduce") == 0) {
            opt.shrink = false;
        } else if (!v) {
            usage();
        } else if (strcmp(a, "-n") == 0) {
            opt.count = (unsigned)strtoul(v, NULL, 10), i++;
        } else if (strcmp(a, "-s") == 0) {
            opt.seed = strtoull(v, NULL, 10), i++;
        } else if (strcmp(a, "-j") == 0) {
            opt.jobs = (unsigned)strtoul(v, NULL, 10), i++;
        } else if (strcmp(a, "--every") == 0) {
            opt.every = (unsigned)strtoul(v, NULL, 10), i++;
        } else if (strcmp(a, "--batch") == 0) {
            opt.batch = (unsigned)strtoul(v, NULL, 10), i++;
        } else {
            usage();
        }
    }
    if (opt.ops) {
        struct rprog p;
        opt.count = 0;
        while (one_operation(&p, opt.count * opt.every)) {
            pool_free(&p.mem);
            opt.count++;
        }
        pool_free(&p.mem);
    }
    if (!opt.jobs || !opt.every || !opt.batch || opt.batch > MAX_BATCH)
        usage();
}

int main(int argc, char **argv)
{
    options(argc, argv);
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    if (opt.ops)
        printf("operations: %u programs\n", opt.count);
    else
        printf("random programs: seeds %llu to %llu\n", (unsigned long long)opt.seed,
               (unsigned long long)(opt.seed + opt.count - 1));
    fflush(stdout);
    unsigned *passed = mmap(NULL, opt.jobs * sizeof *passed, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (passed == MAP_FAILED)
        return 4;
    /* job j takes batches j, j + jobs, ... */
    for (unsigned j = 0; j < opt.jobs; j++)
        if (fork() == 0) {
            unsigned shown = 0;
            for (unsigned b = j; b * opt.batch < opt.count; b += opt.jobs) {
                unsigned first = b * opt.batch, left = opt.count - first;
                passed[j] += one_batch(first, left < opt.batch ? left : opt.batch, &shown);
                fflush(stdout);
            }
            exit(0);
        }
    while (wait(NULL) > 0)
        continue;
    unsigned total = 0;
    for (unsigned j = 0; j < opt.jobs; j++)
        total += passed[j];
    printf("%u passed, %u failed, 0 skipped\n", total, opt.count - total);
    return total != opt.count;
}
