/* run.c - memory of random programs, and running them on all targets.
 *
 * The oracle is the interpreter without optional passes; against it stand the interpreter
 * with all passes, the CPU back end with and without them, under gcc and clang, and the GPU back
 * end, in the PTX executor and on a device. */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/elem.h"
#include "random.h"

enum { GUARD = 256, GUARD_BYTE = 0xa5, LIMIT_S = 240 };

/* ---- memory ---- */

/* Values at which operations change their behaviour. */
static const double odd[] = {0.0, -0.0, (double)INFINITY, (double)-INFINITY, (double)NAN, 1e-40,
                             -1e-45, 3e38, 65504, 65520, 6e-8, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5,
                             88.7, -87.3, 104, 3.4e38, 2147483648.0, -2147483648.5, 4294967296.0,
                             9223372036854775808.0, 255.5, 1e-310, 1e300, 10.06, 16777217};
static const int64_t ints[] = {0, 1, -1, 2, -2, 3, 7, -7, 31, 32, 33, 63, 64, 127, 128, 255, 256,
                               INT32_MAX, INT32_MIN, INT32_MIN + 1, 1 << 16, UINT32_MAX,
                               INT64_MAX, INT64_MIN, INT64_MIN + 1, 1000003, -1000003,
                               16777217, 4294967296};
enum { NODD = sizeof odd / sizeof *odd, NINTS = sizeof ints / sizeof *ints };

static uint64_t special_bits(enum kl_elem t, unsigned i)
{
    if (t == KL_bool)
        return i & 1;
    if (!kl_is_float(t))
        return kl_canon(t, (uint64_t)ints[i % NINTS]);
    return kl_convert(t, KL_f64, kl_f64_bits(odd[i % NODD]));
}

static uint64_t random_bits(struct rng *r, enum kl_elem t, bool specials)
{
    if (specials && rng_chance(r, 8))
        return special_bits(t, rng_below(r, 1000));
    if (t == KL_bool)
        return rng_below(r, 2);
    if (!kl_is_float(t))
        return kl_canon(t, rng_chance(r, 80)
                               ? (uint64_t)((int64_t)rng_below(r, 60) - (kl_elems[t].kind == KL_KIND_UINT ? 0 : 20))
                               : rng_next(r));
    double x = rng_chance(r, 30)
                   ? ((int)rng_below(r, 33) - 16) / 4.0
                   : ((double)(rng_next(r) >> 11) * 0x1p-53 - 0.5) * (rng_chance(r, 20) ? 60 : 4);
    return kl_convert(t, KL_f64, kl_f64_bits(x));
}

/* Element i of array a where all pairs of special values come first: the second array varies
 * fastest; then bits at random. */
static uint64_t pair_bits(struct rng *r, enum kl_elem t, unsigned a, size_t i)
{
    unsigned n = kl_is_float(t) ? NODD : NINTS;
    if (i < (size_t)n * n)
        return special_bits(t, (unsigned)(a == 1 ? i / n : a == 2 ? i % n : i * 7 % n));
    return i % 2 ? kl_canon(t, t == KL_bool ? rng_below(r, 2) : rng_next(r))
                 : random_bits(r, t, true);
}

void mem_make(const struct rprog *p, struct rmem *m)
{
    memset(m, 0, sizeof *m);
    struct rng r = {p->seed ^ 0x5851f42d4c957f2du};
    for (unsigned a = 0; a < p->narray; a++) {
        const struct rarray *x = &p->array[a];
        size_t es = kiln_dtype_size(x->t);
        int64_t lo = 0, hi = 0;
        for (int32_t d = 0; d < x->rank; d++)
            *(x->str[d] < 0 ? &lo : &hi) += (x->ext[d] - 1) * x->str[d];
        if (x->alias >= 0) {
            m->elem0[a] = m->elem0[x->alias];
            continue;
        }
        size_t n = (size_t)(hi - lo + 1);
        m->size[a] = n * es;
        m->base[a] = malloc(m->size[a] + 2 * GUARD);
        if (!m->base[a]) {
            fputs("out of memory\n", stderr);
            exit(4);
        }
        memset(m->base[a], GUARD_BYTE, m->size[a] + 2 * GUARD);
        for (size_t i = 0; i < n; i++)
            kl_elem_store((enum kl_elem)x->t, m->base[a] + GUARD + i * es,
                          p->pairs ? pair_bits(&r, (enum kl_elem)x->t, a, i)
                                   : random_bits(&r, (enum kl_elem)x->t, p->specials));
        m->elem0[a] = m->base[a] + GUARD + (size_t)-lo * es;
    }
    for (unsigned a = 0; a < p->narray; a++) {
        const struct rarray *x = &p->array[a];
        if (!x->given)
            continue;
        kiln_arg *g = &m->arg[m->narg++];
        g->name = x->name;
        g->kind = KILN_ARG_TENSOR;
        g->u.tensor = (kiln_tensor){.data = m->elem0[a], .dtype = x->t, .ndim = x->rank,
                                    .shape = x->ext, .strides = x->str};
    }
    for (unsigned s = 0; s < p->nscalar; s++) {
        const struct rscalar *x = &p->scalar[s];
        kiln_arg *g = &m->arg[m->narg++];
        g->name = x->name;
        g->kind = x->kind;
        if (x->kind == KILN_ARG_INT)
            g->u.i = x->i;
        else if (x->kind == KILN_ARG_UINT)
            g->u.u = (uint64_t)x->i;
        else if (x->kind == KILN_ARG_FLOAT)
            g->u.f = x->f;
        else
            g->u.type = x->t;
    }
}

void mem_free(struct rmem *m)
{
    for (unsigned a = 0; a < MAX_ARRAYS; a++)
        free(m->base[a]);
    memset(m, 0, sizeof *m);
}

static bool same_element(enum kl_elem t, uint64_t a, uint64_t b)
{
    if (a == b)
        return true;
    double x = kl_elem_double(t, a), y = kl_elem_double(t, b);
    return kl_is_float(t) && isnan(x) && isnan(y);
}

bool mem_same(const struct rprog *p, const struct rmem *want, const struct rmem *got, char *why,
              size_t nwhy)
{
    for (unsigned a = 0; a < p->narray; a++) {
        const struct rarray *x = &p->array[a];
        enum kl_elem t = (enum kl_elem)x->t;
        size_t es = kiln_dtype_size(x->t);
        if (!got->base[a])
            continue;
        const unsigned char *g = got->base[a], *w = want->base[a];
        for (size_t i = 0; i < GUARD; i++)
            if (g[i] != GUARD_BYTE || g[GUARD + got->size[a] + i] != GUARD_BYTE) {
                snprintf(why, nwhy, "memory beside %s was written", x->name);
                return false;
            }
        for (size_t i = 0; i < got->size[a]; i += es) {
            uint64_t u = kl_elem_load(t, w + GUARD + i), v = kl_elem_load(t, g + GUARD + i);
            if (!same_element(t, u, v)) {
                snprintf(why, nwhy,
                         "%s, element %zu of its memory: %.9g (0x%llx), want %.9g (0x%llx)",
                         x->name, i / es, kl_elem_double(t, v), (unsigned long long)v,
                         kl_elem_double(t, u), (unsigned long long)u);
                return false;
            }
        }
    }
    return true;
}

/* ---- targets ---- */

struct target {
    const char *name;
    kiln_device device;
    uint32_t level, threads;
    const char *cc;
    unsigned need; /* USE_ bits */
};
static const struct target targets[] = {
    {"interpreter, level 1", KILN_DEVICE_INTERP, 1, 1, NULL, 0}, /* the oracle */
    {"interpreter, level 2", KILN_DEVICE_INTERP, 2, 1, NULL, 0},
    {"cpu, level 1, cc", KILN_DEVICE_CPU, 1, 1, "/usr/bin/cc", USE_CPU},
    {"cpu, level 2, cc", KILN_DEVICE_CPU, 2, 2, "/usr/bin/cc", USE_CPU},
    {"cpu, level 2, clang", KILN_DEVICE_CPU, 2, 1, "/usr/bin/clang", USE_CPU | USE_CLANG},
    {"sim, level 1", KILN_DEVICE_SIM, 1, 1, NULL, USE_SIM},
    {"sim, level 2", KILN_DEVICE_SIM, 2, 1, NULL, USE_SIM},
    {"cuda, level 2", KILN_DEVICE_CUDA, 2, 1, NULL, USE_CUDA},
};
enum { NTARGETS = sizeof targets / sizeof *targets };

static void say(struct result *r, enum outcome o, const struct target *t, const char *text,
                const kiln_diags *d)
{
    size_t n = (size_t)snprintf(r->why, sizeof r->why, "%s: %s\n", t->name, text);
    if (d && n < sizeof r->why)
        kiln_diags_render(d, 0, r->why + n, sizeof r->why - n);
    r->outcome = o;
}

static bool context(const struct target *t, kiln_context **ctx)
{
    kiln_options opt = KILN_OPTIONS_INIT;
    opt.device = t->device;
    opt.opt_level = t->level;
    opt.threads = t->threads;
    opt.cc = t->cc;
    /* Without passes only what the back end emits is under test, not the compiler at its best. */
    const char *plain = getenv("KILN_TEST_PLAIN_CC");
    if (plain && t->level == 1 && t->cc)
        opt.cc = plain;
    return kiln_context_create(&opt, ctx, NULL) == KILN_OK;
}

/* Make the code of many kernels at once, with one run of the C compiler or of the driver's
 * assembler; when that fails, launching one by one shows which. */
static void prepare(kiln_kernel *const *k, const struct rmem *mem, unsigned n, kiln_spec **spec)
{
    const kiln_arg *args[MAX_BATCH];
    size_t nargs[MAX_BATCH];
    for (unsigned i = 0; i < n; i++) {
        args[i] = mem[i].arg;
        nargs[i] = mem[i].narg;
    }
    kiln_diags *d = NULL;
    kiln_specialize_many(k, args, nargs, n, spec, &d);
    kiln_diags_free(d);
}

/* One program's launch against the oracle's memory; on the oracle itself mem is kept there.
 * loose: values may differ. */
static void run_one(const struct rprog *p, kiln_kernel *k, const struct target *t, bool loose,
                    struct rmem *mem, struct rmem *oracle, struct result *r)
{
    kiln_diags *d = NULL;
    char why[300];
    r->outcome = O_RUNNING;
    snprintf(r->why, sizeof r->why, "%s: running", t->name);
    kiln_status s = kiln_launch(k, NULL, mem->arg, mem->narg, &d);
    if (s != KILN_OK) {
        say(r, s == KILN_E_COMPILE || s == KILN_E_ARG ? O_REJECTED : O_FAILED, t,
            kiln_status_name(s), d);
    } else if (t == targets) {
        r->outcome = O_OK;
        *oracle = *mem;
        memset(mem, 0, sizeof *mem);
    } else if (loose || mem_same(p, oracle, mem, why, sizeof why)) {
        r->outcome = O_OK;
    } else {
        say(r, O_DIFFERENT, t, why, NULL);
    }
    kiln_diags_free(d);
}

static void run_target(struct rprog *const *p, char *const *text, unsigned n, const bool *use,
                       const struct target *t, struct rmem *oracle, struct result *res)
{
    kiln_context *ctx = NULL;
    kiln_module *mod[MAX_BATCH] = {NULL};
    kiln_kernel *k[MAX_BATCH];
    kiln_spec *spec[MAX_BATCH] = {NULL};
    struct rmem mem[MAX_BATCH];
    unsigned at[MAX_BATCH], m = 0;
    if (!context(t, &ctx)) {
        for (unsigned i = 0; i < n && t->device == KILN_DEVICE_CUDA; i++)
            say(&res[i], O_FAILED, t, "there is no such device", NULL);
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        if ((use && !use[i]) || res[i].outcome > O_OK)
            continue;
        kiln_diags *d = NULL;
        res[i].outcome = O_RUNNING;
        snprintf(res[i].why, sizeof res[i].why, "%s: compiling", t->name);
        if (kiln_compile(ctx, "k.kiln", text[i], strlen(text[i]), &mod[m], &d) != KILN_OK ||
            !kiln_module_kernel(mod[m], "k")) {
            say(&res[i], O_REJECTED, t, "did not compile", d);
            kiln_module_free(mod[m]);
            mod[m] = NULL;
        } else {
            k[m] = kiln_module_kernel(mod[m], "k");
            mem_make(p[i], &mem[m]);
            at[m++] = i;
            res[i].outcome = O_OK;
        }
        kiln_diags_free(d);
    }
    if ((t->device == KILN_DEVICE_CPU || t->device == KILN_DEVICE_CUDA) && m)
        prepare(k, mem, m, spec);
    for (unsigned j = 0; j < m; j++)
        /* for the fast functions a GPU has units of its own */
        run_one(p[at[j]], k[j], t,
                t->need & (USE_SIM | USE_CUDA) && strstr(text[at[j]], "_fast("), &mem[j], &oracle[at[j]], &res[at[j]]);
    for (unsigned j = 0; j < m; j++) {
        mem_free(&mem[j]);
        kiln_spec_free(spec[j]);
        kiln_module_free(mod[j]);
    }
    kiln_context_free(ctx);
}

void run_batch(struct rprog *const *p, char *const *text, unsigned n, const bool *clang,
               unsigned use, struct result *res)
{
    struct rmem oracle[MAX_BATCH];
    memset(oracle, 0, sizeof oracle);
    for (unsigned t = 0; t < NTARGETS; t++)
        if ((targets[t].need & use) == targets[t].need &&
            (!targets[t].cc || access(targets[t].cc, X_OK) == 0))
            run_target(p, text, n, targets[t].need & USE_CLANG ? clang : NULL, &targets[t],
                       oracle, res);
    for (unsigned i = 0; i < n; i++)
        mem_free(&oracle[i]);
}

void run_guarded(struct rprog *const *p, char *const *text, unsigned n, const bool *clang,
                 unsigned use, struct result *res)
{
    size_t bytes = n * sizeof *res;
    struct result *sh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                             0);
    if (sh == MAP_FAILED) {
        fputs("out of memory\n", stderr);
        exit(4);
    }
    memcpy(sh, res, bytes);
    for (bool again = true; again;) { /* after a crash: once more, without the culprit */
        again = false;
        for (unsigned i = 0; i < n; i++)
            if (sh[i].outcome <= O_OK)
                sh[i].outcome = O_NONE;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(LIMIT_S);
            run_batch(p, text, n, clang, use, sh);
            _exit(0);
        }
        int st = 0;
        if (pid < 0 || waitpid(pid, &st, 0) != pid) {
            fputs("cannot fork\n", stderr);
            exit(4);
        }
        if (WIFEXITED(st) && WEXITSTATUS(st) == 0)
            break;
        for (unsigned i = 0; i < n; i++)
            if (sh[i].outcome == O_RUNNING) {
                char was[sizeof sh[i].why];
                memcpy(was, sh[i].why, sizeof was);
                sh[i].outcome = O_CRASH;
                snprintf(sh[i].why, sizeof sh[i].why, "%.200s: ended by %s %d", was,
                         WIFSIGNALED(st) ? "signal" : "status",
                         WIFSIGNALED(st) ? WTERMSIG(st) : WEXITSTATUS(st));
                again = n > 1;
            }
        if (!again && n > 1) { /* while code was made for all: one by one */
            memcpy(res, sh, bytes);
            munmap(sh, bytes);
            for (unsigned i = 0; i < n; i++)
                if (res[i].outcome <= O_OK)
                    run_guarded(&p[i], &text[i], 1, &clang[i], use, &res[i]);
            return;
        }
        if (!again)
            for (unsigned i = 0; i < n; i++)
                if (sh[i].outcome <= O_OK) {
                    sh[i].outcome = O_CRASH;
                    snprintf(sh[i].why, sizeof sh[i].why, "the batch ended by %s %d",
                             WIFSIGNALED(st) ? "signal" : "status",
                             WIFSIGNALED(st) ? WTERMSIG(st) : WEXITSTATUS(st));
                }
    }
    memcpy(res, sh, bytes);
    munmap(sh, bytes);
}
