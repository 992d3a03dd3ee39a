/* peer.c - peers of a benchmark: what they do of a case, their results, their times.
 *
 * A shared library gets copies of the arrays as a kernel does, and Kiln's clock or events stand
 * around each run.  A program gets files and takes times itself. */
#include "cli/peer.h"

#include <dlfcn.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

struct kl_tol kl_peer_tol(enum kl_elem e)
{
    static const double bound[KL_NELEM] = {[KL_f64] = 1e-9,  [KL_f32] = 2e-4,   [KL_f16] = 1e-2,
                                           [KL_bf16] = 5e-2, [KL_f8e4m3] = 0.3, [KL_f8e5m2] = 0.6};
    if (bound[e] > 0)
        return (struct kl_tol){KL_TOL_REL, bound[e]};
    return (struct kl_tol){KL_TOL_EXACT, 0};
}

/* ---- opening ---- */

bool kl_peer_open(struct kl_peer *p, const char *path, struct kl_msg *m)
{
    char magic[4] = "";
    /* dlopen and exec look at a path with a slash and nowhere else */
    *p = (struct kl_peer){.path = strchr(path, '/') ? kl_xstrndup(path, strlen(path))
                                                    : kl_xprintf("./%s", path),
                          .proc = {.to = -1, .from = -1}};
    FILE *f = fopen(p->path, "rb");
    bool read = f && fread(magic, 1, 4, f) == 4;
    const char *dot = strrchr(p->path, '.');
    if (f)
        fclose(f);
    if (!read)
        return kl_msg(m, KL_RC_USAGE, "--peer %s: cannot read it", path);
    if (memcmp(magic, "\177ELF", 4) != 0 || !dot || strncmp(dot, ".so", 3) != 0) {
        if (access(p->path, X_OK))
            return kl_msg(m, KL_RC_USAGE,
                          "--peer %s: it is neither a shared library nor may it "
                          "be executed (chmod +x)",
                          path);
        return true;
    }
    p->lib = dlopen(p->path, RTLD_NOW | RTLD_LOCAL);
    if (!p->lib)
        return kl_msg(m, KL_RC_ENV, "--peer %s: %s", path, dlerror());
    void *get = dlsym(p->lib, "kiln_peer_get");
    memcpy(&p->get, &get, sizeof get);
    if (!get || !p->get(KILN_PEER_ABI, 0))
        return kl_msg(m, KL_RC_USAGE, "--peer %s: %s", path,
                      get ? "it was made for another version of kiln_peer.h"
                          : "it has no function kiln_peer_get (kiln_peer.h)");
    p->name = kl_xstrndup(p->get(KILN_PEER_ABI, 0)->name, strlen(p->get(KILN_PEER_ABI, 0)->name));
    return true;
}

static void give_up(struct kl_peer *p, const struct kl_msg *m)
{
    kl_proc_end(&p->proc);
    p->proc.pid = -1;
    if (!p->broken)
        p->broken = kl_xstrndup(m->text, strlen(m->text));
}

bool kl_peer_hello(struct kl_peer *p, const struct kl_bdev *d, struct kl_msg *m)
{
    if (p->lib || p->broken || p->proc.pid)
        return true;
    uint32_t threads = kiln_context_threads(d->s.ctx);
    json_t *a = NULL;
    bool started = kl_proc_start(&p->proc, p->path, threads, m);
    p->proc.answer_s = p->answer_s;
    if (started)
        a = kl_proc_ask(&p->proc,
                        json_pack("{s:s, s:s, s:i}", "do", "hello", "protocol", "kiln.peer/1",
                                  "threads", (int)threads),
                        m);
    const char *name = json_string_value(json_object_get(a, "name"));
    const char *version = json_string_value(json_object_get(a, "version"));
    if (a && !name)
        kl_msg(m, KL_RC_ENV, "it does not say its name");
    if (name) {
        p->name = kl_xstrndup(name, strlen(name));
        p->version = kl_xstrndup(version ? version : "", version ? strlen(version) : 0);
    } else {
        give_up(p, m);
    }
    json_decref(a);
    return name != NULL;
}

void kl_peer_close(struct kl_peer *p)
{
    kl_proc_end(&p->proc);
    if (p->lib)
        dlclose(p->lib);
    free(p->path);
    free(p->name);
    free(p->version);
    free(p->broken);
    *p = (struct kl_peer){.proc = {.to = -1, .from = -1}};
}

/* ---- a case ---- */

/* Parameters as a launch sees them. */
static kl_tool_param *resolve(const struct kl_args *a, size_t *n)
{
    int64_t grid[3];
    kiln_diags *d = NULL;
    *n = kiln_kernel_param_count(a->k);
    kl_tool_param *p = kl_xalloc((*n + 1) * sizeof *p);
    if (kl_tool_resolve(a->k, a->arg, a->n, p, grid, &d))
        *n = 0;
    kiln_diags_free(d);
    return p;
}

static bool is_scalar(const kl_tool_param *p)
{
    return p->kind == KILN_PARAM_SCALAR || p->kind == KILN_PARAM_CONST;
}

static void *prepare_copy(struct kl_peerrun *r, struct kl_bdev *d, const struct kl_args *args,
                          const char *file, size_t copy, struct kl_msg *why)
{
    size_t nparam;
    char text[300] = "it does not do this case";
    kl_tool_param *p = resolve(args, &nparam);
    kiln_peer_array *arr = kl_xalloc((args->n + 1) * sizeof *arr);
    kiln_peer_scalar *scalar = kl_xalloc((nparam + 1) * sizeof *scalar);
    kiln_peer_case c = {.size = sizeof c,
                        .file = file,
                        .kernel = kiln_kernel_name(args->k),
                        .device = d->cuda ? KILN_DEVICE_CUDA : KILN_DEVICE_CPU,
                        .device_index = d->watch.index,
                        .threads = kiln_context_threads(d->s.ctx),
                        .array = arr,
                        .scalar = scalar};
    for (size_t i = 0; i < args->n; i++) {
        const struct kl_arr *a =
            args->arg[i].kind == KILN_ARG_TENSOR ? kl_args_find(args, args->arg[i].name) : NULL;
        if (a)
            arr[c.narray++] =
                (kiln_peer_array){.name = a->p->name,
                                  .data = r->sets.arg[copy * args->n + i].u.tensor.data,
                                  .dtype = (kiln_dtype)a->elem,
                                  .ndim = a->ndim,
                                  .shape = a->shape,
                                  .strides = a->stride,
                                  .reads = a->p->reads,
                                  .writes = a->p->writes};
    }
    for (size_t i = 0; i < nparam; i++)
        if (is_scalar(&p[i]))
            scalar[c.nscalar++] =
                (kiln_peer_scalar){p[i].name, p[i].is_float ? p[i].fval : (double)p[i].ival};
    void *state = r->fn->prepare(&c, text, sizeof text);
    if (!state)
        kl_msg(why, KL_RC_OK, "%s", text);
    free(arr);
    free(scalar);
    free(p);
    return state; // cppcheck-suppress returnDanglingLifetime ; a peer may not keep the case
}

static size_t library_case(struct kl_peer *p, struct kl_bdev *d, const struct kl_args *args,
                           const char *file, size_t copies, struct kl_peerrun *out,
                           struct kl_msg *why)
{
    size_t n = 0;
    const kiln_peer *fn;
    for (size_t i = 0; n < KL_PEER_IMPLS && (fn = p->get(KILN_PEER_ABI, i)); i++) {
        struct kl_peerrun *r = &out[n];
        *r = (struct kl_peerrun){
            .peer = p, .impl = i, .fn = fn, .name = kl_xstrndup(fn->name, strlen(fn->name))};
        bool ok = kl_bset_make(&r->sets, d, args->k, args, copies, why);
        r->state = kl_xalloc((copies + 1) * sizeof *r->state);
        for (size_t c = 0; c < copies && ok; c++)
            ok = kl_bset_poison(&r->sets, c, 0xAB, why) &&
                 (r->state[c] = prepare_copy(r, d, args, file, c, why));
        if (ok)
            n++;
        else
            kl_peer_drop(r);
    }
    return n;
}

static json_t *describe(struct kl_peer *p, struct kl_bdev *d, const struct kl_args *args,
                        const char *file, struct kl_msg *why)
{
    size_t nparam;
    bool ok = true;
    json_t *arrays = json_array(), *scalars = json_object();
    kl_tool_param *param = resolve(args, &nparam);
    kl_proc_clear(&p->proc);
    for (size_t i = 0; i < args->narr && ok; i++) {
        const struct kl_arr *a = &args->arr[i];
        json_t *shape = json_array();
        char *path = NULL;
        for (int32_t k = 0; k < a->ndim; k++)
            json_array_append_new(shape, json_integer(a->shape[k]));
        if (a->p->reads)
            ok = kl_proc_write_array(&p->proc, a, &path, why);
        json_array_append_new(arrays,
                              json_pack("{s:s, s:s, s:o, s:b, s:b, s:s?}", "name", a->p->name,
                                        "dtype", kl_elems[a->elem].name, "shape", shape, "reads",
                                        a->p->reads, "writes", a->p->writes, "path", path));
        free(path);
    }
    for (size_t i = 0; i < nparam; i++)
        if (is_scalar(&param[i]))
            json_object_set_new(scalars, param[i].name,
                                param[i].is_float ? json_real(param[i].fval)
                                                  : json_integer(param[i].ival));
    free(param);
    json_t *q = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:s, s:o, s:o}", "do", "case",
                          "file", file, "kernel", kiln_kernel_name(args->k), "device",
                          d->cuda ? "cuda" : "cpu", "device_index", (int)d->watch.index, "threads",
                          (int)kiln_context_threads(d->s.ctx), "cold_bytes",
                          (json_int_t)d->cache_bytes * (d->cuda ? 2 : 4), "folder", p->proc.dir,
                          "arrays", arrays, "scalars", scalars);
    if (ok)
        return q;
    json_decref(q);
    return NULL;
}

static size_t program_case(struct kl_peer *p, struct kl_bdev *d, const struct kl_args *args,
                           const char *file, struct kl_peerrun *out, struct kl_msg *why)
{
    size_t n = 0;
    json_t *q = describe(p, d, args, file, why), *a = q ? kl_proc_ask(&p->proc, q, why) : NULL;
    if (!a) {
        if (q)
            give_up(p, why);
        return 0;
    }
    json_t *list = json_object_get(a, "implementations");
    const char *skip = json_string_value(json_object_get(a, "skip"));
    for (; n < json_array_size(list) && n < KL_PEER_IMPLS; n++) {
        const char *name = json_string_value(json_array_get(list, n));
        bool same = !name || strcmp(name, p->name) == 0;
        out[n] = (struct kl_peerrun){.peer = p,
                                     .impl = n,
                                     .name = same ? kl_xprintf("%s", p->name)
                                                  : kl_xprintf("%s %s", p->name, name)};
    }
    if (!n)
        kl_msg(why, KL_RC_OK, "%s", skip ? skip : "it does not do this case");
    json_decref(a);
    return n;
}

size_t kl_peer_case(struct kl_peer *p, struct kl_bdev *d, const struct kl_args *args,
                    const char *file, size_t copies, struct kl_peerrun out[KL_PEER_IMPLS],
                    struct kl_msg *why)
{
    for (size_t i = 0; i < args->narr; i++)
        if (args->arr[i].alias ||
            (args->arr[i].p->writes && !args->arr[i].made && !args->arr[i].p->has_init)) {
            kl_msg(why, KL_RC_OK, "%s is updated in place", args->arr[i].p->name);
            return 0;
        }
    if (p->broken) {
        kl_msg(why, KL_RC_OK, "%s", p->broken);
        return 0;
    }
    return p->lib ? library_case(p, d, args, file, copies, out, why)
                  : program_case(p, d, args, file, out, why);
}

/* ---- results ---- */

static bool compare(const struct kl_arr *got, const struct kl_arr *ref, double *error,
                    struct kl_msg *m)
{
    struct kl_tol tol = kl_peer_tol(ref->elem);
    struct kl_cmp c;
    char text[600];
    if (!kl_arr_same_shape(got, ref))
        return kl_msg(m, KL_RC_FINDINGS, "%s has another shape", ref->p->name);
    kl_compare(got, ref, &tol, &c);
    kl_cmp_text(&c, got, &tol, text, sizeof text);
    *error = fmax(*error, c.rms);
    return c.ok ||
           kl_msg(m, KL_RC_FINDINGS, "%s differs from the kernel's: %s", ref->p->name, text);
}

static bool library_check(struct kl_peerrun *r, const struct kl_args *args, double *error,
                          struct kl_msg *m)
{
    kiln_diags *d = NULL;
    double t;
    bool ok = true;
    if (!kl_peer_launch(r, 0, &t, m))
        return false;
    for (size_t i = 0; i < args->n && ok; i++) {
        const struct kl_arr *a =
            args->arg[i].kind == KILN_ARG_TENSOR ? kl_args_find(args, args->arg[i].name) : NULL;
        if (!a || !a->p->writes)
            continue;
        struct kl_arr got = *a;
        size_t bytes = (size_t)a->count * kl_elems[a->elem].bytes;
        got.data = kl_array_alloc(a->p->name, bytes, m);
        if (!got.data)
            return false;
        kiln_status st = kiln_buffer_download(r->sets.buf[i], 0, got.data, bytes, NULL, &d);
        ok = st ? kl_bench_why(m, "reading a result", st, d) : compare(&got, a, error, m);
        free(got.data);
    }
    return ok;
}

static bool program_check(struct kl_peerrun *r, const struct kl_args *args, double *error,
                          struct kl_msg *m)
{
    json_t *a = kl_proc_ask(
        &r->peer->proc, json_pack("{s:s, s:i}", "do", "result", "implementation", (int)r->impl), m);
    json_t *files = json_object_get(a, "files");
    bool ok = a != NULL;
    if (!a && r->peer->proc.gone)
        give_up(r->peer, m);
    for (size_t i = 0; i < args->narr && ok; i++) {
        const struct kl_arr *ref = &args->arr[i];
        if (!ref->p->writes)
            continue;
        const char *path = json_string_value(json_object_get(files, ref->p->name));
        struct kl_arr got = {.p = ref->p, .dense = true};
        char *word = path ? kl_npy_knows(ref->elem)
                                ? kl_xprintf("%s", path)
                                : kl_xprintf("%s:%s", path, kl_elems[ref->elem].name)
                          : NULL;
        ok = word ? kl_arr_read(&got, word, m)
                  : kl_msg(m, KL_RC_FINDINGS, "it gave no result for %s", ref->p->name);
        ok = ok && compare(&got, ref, error, m);
        if (got.data)
            kl_arr_free(&got);
        if (path)
            unlink(path);
        free(word);
    }
    json_decref(a);
    return ok;
}

bool kl_peer_check(struct kl_peerrun *r, const struct kl_args *args, double *error,
                   struct kl_msg *m)
{
    *error = 0;
    if (r->peer->broken)
        return kl_msg(m, KL_RC_ENV, "%s", r->peer->broken);
    return r->fn ? library_check(r, args, error, m) : program_check(r, args, error, m);
}

/* ---- times ---- */

bool kl_peer_launch(struct kl_peerrun *r, size_t copy, double *host_s, struct kl_msg *m)
{
    double t = kl_bench_now(NULL);
    int rc = r->fn->run(r->state[copy]);
    *host_s = kl_bench_now(NULL) - t;
    return rc == 0 || kl_msg(m, KL_RC_ENV, "%s: error %d", r->name, rc);
}

bool kl_peer_time(struct kl_peerrun *r, bool warm, size_t n, double *ms, struct kl_msg *m)
{
    if (r->peer->broken)
        return kl_msg(m, KL_RC_ENV, "%s", r->peer->broken);
    json_t *a = kl_proc_ask(&r->peer->proc,
                            json_pack("{s:s, s:i, s:b, s:I}", "do", "time", "implementation",
                                      (int)r->impl, "cold", !warm, "n", (json_int_t)n),
                            m);
    json_t *list = json_object_get(a, "ms");
    bool ok = a != NULL;
    if (ok && json_array_size(list) != n)
        ok = kl_msg(m, KL_RC_ENV, "it answered %zu times instead of %zu", json_array_size(list), n);
    for (size_t i = 0; ok && i < n; i++) {
        ms[i] = json_number_value(json_array_get(list, i));
        if (!(ms[i] > 0 && isfinite(ms[i])))
            ok = kl_msg(m, KL_RC_ENV, "it answered a time that is none");
    }
    if (!a)
        give_up(r->peer, m);
    json_decref(a);
    return ok;
}

void kl_peer_drop(struct kl_peerrun *r)
{
    for (size_t i = 0; r->state && i < r->sets.n; i++)
        if (r->state[i])
            r->fn->drop(r->state[i]);
    free(r->state);
    if (r->sets.dev)
        kl_bset_free(&r->sets);
    free(r->name);
    *r = (struct kl_peerrun){0};
}
