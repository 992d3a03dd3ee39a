/* check.c - `kiln build` over the cases of kernels: each is built ahead of time, compiled by the C
 * compiler with warnings as errors, called from C++, and must give the interpreter's bits; in one
 * thread, with its programs spread over threads, and on a GPU (the stand-in for the driver).
 *
 *     aot-check [--every N] [--from N] [--filter TEXT] [--cc CMD] [--cxx CMD] [--jobs N]
 *               [--cuda] [--launches] [--keep DIR] FILE...
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aot.h"
#include "cli/case.h"

struct options {
    const char *cc, *cxx, *filter, *keep;
    unsigned every, from, jobs;
    bool cuda, launches;
};

struct file {
    const struct options *o;
    struct aot_counts *t;
    const char *path;
    struct kl_cases cases;
    struct aot_case *v;
    struct aot_built *b;
    size_t nb;
    kiln_context *ctx;
    kiln_module *mod;
    char *dir;
    void *so;
    bool atomics; /* some kernel has them */
};

static bool fail(struct file *f, const struct aot_case *r, const char *what, const char *more)
{
    printf("FAIL %s:%u: %s: %s%s%s\n", f->path, r->line, r->name, what, *more ? ": " : "", more);
    return false;
}

const kiln_tensor *aot_find(const kiln_arg *arg, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (arg[i].kind == KILN_ARG_TENSOR && strcmp(arg[i].name, name) == 0)
            return &arg[i].u.tensor;
    return NULL;
}

/* ---- the interpreter ---- */

static bool arguments(struct aot_case *r, struct kl_args *a, const char **wanted)
{
    struct kl_msg m = {0};
    kiln_diags *d = NULL;
    bool ok = kl_args_set(a, r->k, r->c->set.v, r->c->set.n, 0, &m) &&
              !kl_args_outputs(a, wanted, 0, &d, &m);
    kiln_diags_free(d);
    return ok;
}

/* false: the case is about an error, or fails, which is not for this test to say. */
static bool interpret(struct aot_case *r)
{
    const struct kl_case *c = r->c;
    const char **wanted = kl_xalloc((c->nexpect + 1) * sizeof *wanted);
    size_t n = 0;
    bool ok = true;
    for (size_t j = 0; j < c->nexpect; j++) {
        if (c->expect[j].kind == KL_EXPECT_VALUE || c->expect[j].kind == KL_EXPECT_REFERENCE)
            wanted[n++] = c->expect[j].name;
        else
            ok = false;
    }
    kiln_diags *d = NULL;
    ok = ok && arguments(r, &r->want, wanted) && arguments(r, &r->got, wanted);
    r->par = kl_xalloc((kiln_kernel_param_count(r->k) + 1) * sizeof *r->par);
    ok = ok && !kl_tool_resolve(r->k, r->want.arg, r->want.n, r->par, r->grid, &d);
    kiln_diags_free(d);
    d = NULL;
    ok = ok && !kiln_launch(r->k, NULL, r->want.arg, r->want.n, &d);
    kiln_diags_free(d);
    free(wanted);
    return ok;
}

/* ---- building ---- */

/* A default that no shape decides, for all we know: a number. */
static bool plain_default(const kiln_param_info *p)
{
    const char *eq = strchr(p->decl, '=');
    return !eq || eq[strspn(eq, "= 0123456789")] == 0;
}

/* All that is chosen at build time, as -D options.  Every other case has its constants as a list,
 * so that they come from the call or from the shapes; what a case says itself is fixed. */
static char *defines(struct aot_case *r, bool list, const char *(*def)[2], size_t *n)
{
    char *key = kl_xprintf("%s", kiln_kernel_name(r->k));
    for (size_t i = 0; i < kiln_kernel_param_count(r->k); i++) {
        const kiln_param_info *p = kiln_kernel_param(r->k, i);
        const kl_tool_param *q = &r->par[i];
        char *v = NULL;
        if (p->kind == KILN_PARAM_TYPE)
            v = kl_xprintf("%s", kl_elems[q->dtype].name);
        else if (p->kind == KILN_PARAM_CONST && q->is_float)
            v = kl_xprintf("%.17g", q->fval);
        else if (p->kind == KILN_PARAM_CONST)
            v = kl_xprintf(list && p->dtype != KILN_BOOL && (!q->given || plain_default(p)) ? "%lld:%lld"
                           : q->given ? "%lld!" : "%lld", (long long)q->ival, (long long)q->ival);
        else if (p->kind == KILN_PARAM_ARRAY && p->is_optional)
            v = kl_xprintf("%s", aot_find(r->want.arg, r->want.n, p->name) ? "true" : "false");
        if (!v)
            continue;
        def[*n][0] = p->name;
        def[(*n)++][1] = v;
        char *more = kl_xprintf("%s -D %s=%s", key, p->name, v);
        free(key);
        key = more;
    }
    return key;
}

static bool put(struct file *f, const char *name, const char *ext, const char *text)
{
    char *path = kl_xprintf("%s/%s.%s", f->dir, name, ext);
    FILE *o = fopen(path, "w");
    bool ok = o && fputs(text, o) >= 0;
    ok &= o && fclose(o) == 0;
    free(path);
    return ok;
}

static bool generate(struct file *f, struct aot_case *r, bool list)
{
    static const char *const targets[] = {"cpu", "sm_80", "sm_90"};
    const char *def[PARAMS][2];
    size_t n = 0;
    char *key = defines(r, list, def, &n), *text[3] = {0};
    kiln_diags *d = NULL;
    bool ok = true;
    for (size_t i = 0; i < f->nb && !r->b; i++)
        if (strcmp(f->b[i].key, key) == 0)
            r->b = &f->b[i];
    if (!r->b) {
        struct aot_built *b = r->b = &f->b[f->nb++];
        b->key = key;
        b->name = kl_xprintf("lib%zu", f->nb);
        const kl_tool_build_opts o = {.name = b->name, .source = "cases.kiln", .kernel = kiln_kernel_name(r->k),
                                      .target = targets, .ntarget = 3, .define = def, .ndefine = n};
        ok = !kl_tool_build(f->mod, &o, &text[0], &text[1], &text[2], &d);
        const kiln_diag *g = kiln_diags_count(d) ? kiln_diags_at(d, 0) : NULL;
        if (!ok || g)
            ok = fail(f, r, key, g ? g->text : "kiln build fails");
        if (ok) {
            b->manifest = kl_xstrndup(text[2], strlen(text[2]));
            ok = aot_manifest(b, r->k) && put(f, b->name, "h", text[0]) && put(f, b->name, "c", text[1]);
        }
        if (!ok) {
            b->function = NULL;
            r->b = NULL;
        }
        f->t->builds += ok;
    } else {
        free(key);
        if (!r->b->function)
            r->b = NULL;
    }
    for (int i = 0; i < 3; i++)
        kl_tool_free(f->ctx, text[i]);
    for (size_t i = 0; i < n; i++)
        free((char *)(uintptr_t)def[i][1]);
    kiln_diags_free(d);
    return ok;
}

static const char *c_type(enum kl_elem e)
{
    static const char *const t[] = {
#define ELEM(name, code, bytes, kind, ctype, acc, doc) [code] = #ctype,
#include "base/elem.def"
    };
    return t[e];
}

/* The functions of all builds of a file behind one table, in C++. */
static bool write_calls(struct file *f)
{
    char *path = kl_xprintf("%s/calls.cc", f->dir);
    FILE *o = fopen(path, "w");
    free(path);
    if (!o)
        return false;
    fputs("#include <cstring>\n", o);
    for (size_t i = 0; i < f->nb; i++)
        if (f->b[i].function)
            fprintf(o, "#include \"%s.h\"\n", f->b[i].name);
    fputs("namespace {\nstruct entry {\n    int (*load)(void **, int);\n    void (*unload)(void *);\n"
          "    int (*call)(void *, void *, const kiln_aot_tensor *const *, const uint64_t *);\n"
          "    const char *(*detail)(), *(*strerror_)(int), *(*manifest)();\n"
          "    void (*parallel)(void *, kiln_aot_run *, void *);\n    int (*level)(const void *);\n};\n"
          "template <class T> T as(uint64_t v) { T x; memcpy(&x, &v, sizeof x); return x; }\n", o);
    for (size_t i = 0; i < f->nb; i++) {
        const struct aot_built *b = &f->b[i];
        unsigned nt = 0, nv = 0;
        const char *n = b->name;
        if (!b->function)
            continue;
        fprintf(o, "int %s_load_(void **l, int d) { return %s_load(reinterpret_cast<%s_lib **>(l), d); }\n"
                   "void %s_unload_(void *l) { %s_unload(static_cast<%s_lib *>(l)); }\n"
                   "void %s_parallel_(void *l, kiln_aot_run *r, void *u)\n"
                   "{ %s_parallel(static_cast<%s_lib *>(l), r, u); }\n"
                   "int %s_level_(const void *l) { return %s_level(static_cast<const %s_lib *>(l)); }\n"
                   "int %s_call_(void *l, void *s, const kiln_aot_tensor *const *t, const uint64_t *v)\n"
                   "{\n    (void)t, (void)v;\n    return %s(static_cast<%s_lib *>(l), s",
                n, n, n, n, n, n, n, n, n, n, n, n, n, b->function, n);
        for (uint32_t k = 0; k < b->n; k++)
            if (b->p[k].kind == ARRAY)
                fprintf(o, ", t[%u]", nt++);
            else if (b->p[k].argument)
                fprintf(o, ", as<%s>(v[%u])", c_type(b->p[k].elem), nv++);
        fputs(");\n}\n", o);
    }
    fputs("}\nextern \"C\" const entry *calls();\nextern \"C\" const entry *calls()\n{\n"
          "    static const entry e[] = {\n", o);
    for (size_t i = 0; i < f->nb; i++) {
        const char *n = f->b[i].name;
        if (f->b[i].function)
            fprintf(o, "        {%s_load_, %s_unload_, %s_call_, %s_detail, %s_strerror, %s_manifest_json, "
                       "%s_parallel_, %s_level_},\n", n, n, n, n, n, n, n, n);
        else
            fputs("        {},\n", o);
    }
    fputs("    };\n    return e;\n}\n", o);
    return fclose(o) == 0;
}

static bool command(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool command(const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return system(text) == 0;
}

/* Compile everything, with warnings as errors, and load it. */
static bool compile(struct file *f)
{
    const struct options *o = f->o;
    static const char warn[] = "-Wall -Wextra -Werror";
    bool ok = write_calls(f) &&
              command("cd %s && ls lib*.c | xargs -P %u -n 1 %s -std=c11 -O2 -fPIC %s -c 2>log", f->dir,
                      o->jobs, o->cc, warn) &&
              command("cd %s && sed -n 's/^#include \"lib/&/p' calls.cc >headers.c && %s -std=c99 -Wpedantic "
                      "%s -fsyntax-only headers.c 2>>log && %s -std=c++17 -Wpedantic -O1 -fPIC %s -c calls.cc "
                      "2>>log && %s -shared *.o -o all.so -ldl 2>>log",
                      f->dir, o->cc, warn, o->cxx, warn, o->cxx);
    if (!ok) {
        printf("FAIL %s: what was built does not compile\n", f->path);
        fflush(stdout);
        command("head -30 %s/log", f->dir);
        return false;
    }
    char *path = kl_xprintf("%s/all.so", f->dir);
    f->so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    free(path);
    const struct aot_entry *(*calls)(void) = NULL;
    void *at = f->so ? dlsym(f->so, "calls") : NULL;
    if (!at) {
        printf("FAIL %s: %s\n", f->path, dlerror());
        return false;
    }
    memcpy(&calls, &at, sizeof calls);
    for (size_t i = 0; i < f->nb; i++)
        f->b[i].e = &calls()[i];
    return true;
}

/* ---- memory of a device ---- */

static struct {
    void *so;
    int (*init)(unsigned), (*retain)(void **, int), (*push)(void *), (*alloc)(uint64_t *, size_t);
    int (*free_)(uint64_t), (*up)(uint64_t, const void *, size_t, void *);
    int (*down)(void *, uint64_t, size_t, void *), (*wait)(void);
} cu;

static bool open_cuda(void)
{
    static const struct {
        const char *name;
        void *at;
    } t[] = {{"cuInit", &cu.init}, {"cuDevicePrimaryCtxRetain", &cu.retain},
             {"cuCtxPushCurrent_v2", &cu.push}, {"cuMemAlloc_v2", &cu.alloc},
             {"cuMemFree_v2", &cu.free_}, {"cuMemcpyHtoDAsync_v2", &cu.up},
             {"cuMemcpyDtoHAsync_v2", &cu.down}, {"cuCtxSynchronize", &cu.wait}};
    void *ctx;
    cu.so = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; i < sizeof t / sizeof *t && cu.so; i++) {
        void *p = dlsym(cu.so, t[i].name);
        if (!p)
            return false;
        memcpy(t[i].at, &p, sizeof p);
    }
    return cu.so && !cu.init(0) && !cu.retain(&ctx, 0) && !cu.push(ctx);
}

struct copy {
    char *lo, *hi; /* on the host */
    uint64_t at;   /* on the device; as far behind a multiple of 256 as lo is */
    uint64_t base;
};

/* One piece of device memory for each stretch of host memory that arrays lie in. */
static size_t to_device(struct aot_tensor *t, const struct aot_param *p, size_t n, struct copy *c)
{
    size_t nc = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t lo = 0, hi = 0, k = 1, size = kl_elems[p[i].elem].bytes;
        bool empty = t[i].data == NULL;
        for (int d = t[i].ndim - 1; d >= 0; d--) {
            int64_t far = (t[i].shape[d] - 1) * (t[i].strides ? t[i].strides[d] : k);
            lo += far < 0 ? far : 0;
            hi += far > 0 ? far : 0;
            empty |= t[i].shape[d] == 0;
            k *= t[i].shape[d];
        }
        if (empty)
            continue;
        struct copy x = {(char *)t[i].data + lo * size, (char *)t[i].data + (hi + 1) * size, 0, 0};
        for (size_t j = 0; j < nc;)
            if (c[j].lo < x.hi && x.lo < c[j].hi) {
                x.lo = c[j].lo < x.lo ? c[j].lo : x.lo;
                x.hi = c[j].hi > x.hi ? c[j].hi : x.hi;
                c[j] = c[--nc];
            } else {
                j++;
            }
        c[nc++] = x;
    }
    for (size_t j = 0; j < nc; j++) {
        size_t bytes = (size_t)(c[j].hi - c[j].lo);
        if (cu.alloc(&c[j].base, bytes + 256))
            abort();
        c[j].at = c[j].base + (uintptr_t)c[j].lo % 256;
        if (cu.up(c[j].at, c[j].lo, bytes, NULL))
            abort();
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < nc; j++)
            if ((char *)t[i].data >= c[j].lo && (char *)t[i].data < c[j].hi)
                t[i].data = (void *)(uintptr_t)(c[j].at + (uint64_t)((char *)t[i].data - c[j].lo));
    return nc;
}

/* ---- running ---- */

/* A caller's threads: three, of which each takes every third part of five programs. */
struct part {
    aot_body *body;
    void *arg;
    int64_t n, first;
};

static void *part(void *arg)
{
    struct part *p = arg;
    for (int64_t at = p->first * 5; at < p->n; at += 15)
        p->body(p->arg, at, at + 5 < p->n ? at + 5 : p->n);
    return NULL;
}

static void spread(void *user, int64_t n, aot_body *body, void *arg)
{
    struct part p[3];
    pthread_t t[3];
    *(int64_t *)user = n;
    for (int i = 0; i < 3; i++) {
        p[i] = (struct part){body, arg, n, i};
        if (pthread_create(&t[i], NULL, part, &p[i]))
            abort();
    }
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
}

static uint64_t value_of(const kl_tool_param *q, enum kl_elem e)
{
    if (e == KL_f64)
        return kl_f64_bits(q->fval);
    return kl_is_float(e) ? kl_convert(e, KL_f64, kl_f64_bits(q->fval)) : (uint64_t)q->ival;
}

static bool outputs(struct file *f, struct aot_case *r, const char *how, bool threads)
{
    /* floats added by atomics come in any order then; a GPU may have bits of its own */
    const struct kl_tol exact = {(threads && f->atomics) || (f->o->cuda && r->b->approximate)
                                     ? KL_TOL_DEFAULT
                                     : KL_TOL_EXACT, 0};
    bool ok = true;
    for (size_t i = 0; i < r->got.narr; i++) {
        struct kl_cmp c;
        char what[200];
        if (!r->got.arr[i].p->writes)
            continue;
        kl_compare(&r->got.arr[i], &r->want.arr[i], &exact, &c);
        if (c.ok)
            continue;
        snprintf(what, sizeof what, "%s: %s: %llu of %llu elements differ from the interpreter's", how,
                 r->got.arr[i].p->name, (unsigned long long)c.differ, (unsigned long long)c.count);
        ok = fail(f, r, r->b->key, what);
    }
    return ok;
}

/* What the case's arrays hold before a launch, again. */
struct saved {
    void *copy[PARAMS];
};

static size_t bytes_of(const struct kl_arr *a)
{
    return (size_t)a->count * kl_elems[a->elem].bytes;
}

static void save(struct aot_case *r, struct saved *s, bool back)
{
    for (size_t i = 0; i < r->got.narr; i++) {
        struct kl_arr *a = &r->got.arr[i];
        if (!a->dense || !a->data || !bytes_of(a) || !a->p->writes)
            continue;
        if (!back)
            memcpy(s->copy[i] = kl_xalloc(bytes_of(a)), a->data, bytes_of(a));
        else if (s->copy[i])
            memcpy(a->data, s->copy[i], bytes_of(a));
    }
}

static bool call(struct file *f, struct aot_case *r, const char *how, bool cuda, bool threads)
{
    const struct aot_built *b = r->b;
    struct aot_tensor t[PARAMS];
    struct aot_param tp[PARAMS];
    const struct aot_tensor *at[PARAMS] = {0};
    struct copy c[PARAMS];
    uint64_t v[PARAMS] = {0};
    size_t nt = 0, na = 0, nv = 0, nc = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->p[i].kind == ARRAY) {
            const kiln_tensor *q = aot_find(r->got.arg, r->got.n, b->p[i].name);
            if (q) {
                t[nt] = (struct aot_tensor){q->data, (int32_t)q->dtype, q->ndim, q->shape, q->strides,
                                            q->size_bytes};
                tp[nt] = b->p[i];
                at[na] = &t[nt++];
            }
            na++;
        } else if (b->p[i].argument) {
            v[nv++] = value_of(&r->par[i], b->p[i].elem);
        }
    }
    if (cuda)
        nc = to_device(t, tp, nt, c);
    int s = b->e->call(b->lib, NULL, at, v);
    for (size_t j = 0; j < nc; j++) {
        if (cu.down(c[j].lo, c[j].at, (size_t)(c[j].hi - c[j].lo), NULL) || cu.wait() || cu.free_(c[j].base))
            abort();
    }
    if (s) {
        char what[600];
        snprintf(what, sizeof what, "%s: %d %s: %s", how, s, b->e->strerror(s), b->e->detail());
        return fail(f, r, b->key, what);
    }
    return outputs(f, r, how, threads);
}

static bool run(struct file *f, struct aot_case *r)
{
    struct saved s = {0};
    int64_t n = 0, want = r->grid[0] * r->grid[1] * r->grid[2];
    char text[100];
    bool ok = true;
    if (!r->b->lib) {
        if (r->b->e->load(&r->b->lib, f->o->cuda ? 0 : -1))
            return fail(f, r, "load", r->b->e->detail());
        if (strcmp(r->b->e->manifest(), r->b->manifest) != 0)
            return fail(f, r, r->b->key, "the manifest in the code is another one");
    }
    save(r, &s, false);
    if (f->o->cuda) {
        ok = call(f, r, "GPU", true, true);
    } else {
        ok = call(f, r, "CPU", false, false);
        save(r, &s, true);
        r->b->e->parallel(r->b->lib, spread, &n);
        ok &= call(f, r, "CPU, three threads", false, true);
        r->b->e->parallel(r->b->lib, NULL, NULL);
        snprintf(text, sizeof text, "%lld programs, not %lld", (long long)n, (long long)want);
        if (n != want)
            ok = fail(f, r, r->b->key, text);
        if (f->o->launches)
            ok &= aot_launches(r, f->path, f->t);
    }
    for (size_t i = 0; i < r->got.narr; i++)
        free(s.copy[i]);
    return ok;
}

/* ---- a file ---- */

static void free_case(struct aot_case *r)
{
    kl_args_free(&r->want);
    kl_args_free(&r->got);
    free(r->par);
}

static void free_built(struct aot_built *b)
{
    if (b->lib)
        b->e->unload(b->lib);
    for (uint32_t i = 0; i < b->n; i++)
        free(b->p[i].name);
    free(b->key);
    free(b->name);
    free(b->function);
    free(b->manifest);
}

static int number; /* of cases so far, for --every */

static void check_file(const struct options *o, struct aot_counts *t, kiln_context *ctx, const char *path)
{
    struct file f = {.o = o, .t = t, .path = path, .ctx = ctx};
    struct kl_msg m;
    size_t len;
    char dir[] = "/tmp/kiln-aot-XXXXXX";
    char *text = kl_read_file(path, &len, &m);
    if (!text || !kl_cases_read(text, len, &f.cases, &m) || kiln_compile(ctx, path, text, len, &f.mod, NULL) ||
        !mkdtemp(dir)) {
        printf("FAIL %s cannot be read\n", path);
        t->failed++;
        return;
    }
    f.dir = dir;
    f.atomics = strstr(text, "atomic_") != NULL;
    f.v = kl_xalloc((f.cases.n + 1) * sizeof *f.v);
    f.b = kl_xalloc((f.cases.n + 1) * sizeof *f.b);
    for (size_t i = 0; i < f.cases.n; i++) {
        struct aot_case *r = &f.v[i];
        r->c = &f.cases.v[i];
        r->name = r->c->name;
        r->line = r->c->line;
        if ((unsigned)number++ % o->every != o->from || (o->filter && !strstr(r->c->name, o->filter)))
            continue;
        r->k = r->c->kernel ? kiln_module_kernel(f.mod, r->c->kernel) : kiln_module_at(f.mod, 0);
        if (r->k && interpret(r) && !generate(&f, r, number / o->every & 1))
            t->failed++;
    }
    size_t good = 0;
    for (size_t i = 0; i < f.nb; i++)
        good += f.b[i].function != NULL;
    bool ok = !good || compile(&f);
    t->failed += !ok;
    for (size_t i = 0; i < f.cases.n && good && ok; i++)
        if (f.v[i].b) {
            bool fine = run(&f, &f.v[i]);
            t->passed += fine;
            t->failed += !fine;
        }
    for (size_t i = 0; i < f.cases.n; i++)
        free_case(&f.v[i]);
    for (size_t i = 0; i < f.nb; i++)
        free_built(&f.b[i]);
    if (f.so)
        dlclose(f.so);
    if (o->keep)
        command("mkdir -p %s && mv %s %s/", o->keep, dir, o->keep);
    else
        command("rm -rf %s", dir);
    free(f.v);
    free(f.b);
    kl_cases_free(&f.cases);
    kiln_module_free(f.mod);
    free(text);
}

int main(int argc, char **argv)
{
    struct options o = {.cc = "cc", .cxx = "c++", .every = 1, .jobs = 2};
    struct aot_counts t = {0};
    kiln_options k = KILN_OPTIONS_INIT;
    kiln_context *ctx;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(a, "--cuda"))
            o.cuda = true;
        else if (!strcmp(a, "--launches"))
            o.launches = true;
        else if (!strcmp(a, "--cc") && ++i)
            o.cc = v;
        else if (!strcmp(a, "--cxx") && ++i)
            o.cxx = v;
        else if (!strcmp(a, "--filter") && ++i)
            o.filter = v;
        else if (!strcmp(a, "--keep") && ++i)
            o.keep = v;
        else if (!strcmp(a, "--every") && ++i)
            o.every = (unsigned)atoi(v);
        else if (!strcmp(a, "--from") && ++i)
            o.from = (unsigned)atoi(v);
        else if (!strcmp(a, "--jobs") && ++i)
            o.jobs = (unsigned)atoi(v);
        else
            return fprintf(stderr, "aot-check: %s?\n", a), 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (o.cuda && !open_cuda())
        return fprintf(stderr, "aot-check: there is no driver\n"), 2;
    k.device = KILN_DEVICE_INTERP;
    k.threads = 1; /* atomics in the order of the programs */
    if (!o.every || !o.jobs || i == argc || kiln_context_create(&k, &ctx, NULL))
        return fprintf(stderr, "aot-check FILE...\n"), 2;
    for (; i < argc; i++)
        check_file(&o, &t, ctx, argv[i]);
    kiln_context_free(ctx);
    printf("%u builds, %u launches compared: %u refused, %u without a variant\n", t.builds, t.launches,
           t.refused, t.variant);
    printf("%u passed, %u failed, 0 skipped\n", t.passed, t.failed);
    return t.failed != 0;
}
