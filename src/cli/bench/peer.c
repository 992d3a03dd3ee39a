/* peer.c - peers of a benchmark: what they do of a case, their results, their times.
 *
 * The arrays of a case go to a peer as files.  A process that breaks down is started again for what
 * comes after, until it has done so KL_PEER_DEATHS times. */
#include "cli/bench/peer.h"

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

/* ---- the process ---- */

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
    p->library = memcmp(magic, "\177ELF", 4) == 0 && dot && strncmp(dot, ".so", 3) == 0;
    if (!p->library && access(p->path, X_OK))
        return kl_msg(m, KL_RC_USAGE,
                      "--peer %s: it is neither a shared library nor may it be executed (chmod +x)",
                      path);
    return true;
}

static char *copy_text(const char *s)
{
    return s ? kl_xstrndup(s, strlen(s)) : NULL;
}

/* One line of what a peer says, which a terminal shall not obey. */
static char *line_of(const char *s)
{
    char *line = kl_xstrndup(s, strcspn(s, "\n"));
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return line;
}

static bool skips(const char *said, struct kl_msg *why)
{
    char *line = line_of(said);
    kl_msg(why, KL_RC_OK, "%s", line);
    free(line);
    return false;
}

static void give_up(struct kl_peer *p, const struct kl_msg *m)
{
    p->proc.gone = true;
    kl_proc_stop(&p->proc);
    if (!p->broken)
        p->broken = copy_text(m->text);
}

/* Its process is over; what comes next starts another one, unless that happens again and again. */
static void died(struct kl_peer *p, const struct kl_msg *m)
{
    p->proc.gone = true;
    kl_proc_stop(&p->proc);
    if (++p->deaths >= KL_PEER_DEATHS && !p->broken)
        p->broken = kl_xprintf("it has broken down %d times and is not asked any more; at last: %s",
                               p->deaths, m->text);
}

static json_t *start(struct kl_peer *p, struct kl_msg *m)
{
    const char *const library[] = {"/proc/self/exe", "--peer-host", p->path, NULL};
    const char *const program[] = {p->path, NULL};
    p->proc.answer_s = p->answer_s;
    if (!kl_proc_start(&p->proc, p->library ? library : program, p->threads, m))
        return NULL;
    return kl_proc_ask(&p->proc,
                       json_pack("{s:s, s:s, s:i}", "do", "hello", "protocol", "kiln.peer/1",
                                 "threads", (int)p->threads),
                       m);
}

/* A process that may be asked; one that broke down is started anew with the present case. */
static bool ready(struct kl_peer *p, struct kl_msg *m)
{
    if (p->broken)
        return kl_msg(m, KL_RC_ENV, "%s", p->broken);
    if (p->proc.pid)
        return true;
    json_t *hello = start(p, m), *answer = NULL;
    if (hello && p->question)
        answer = kl_proc_ask(&p->proc, json_incref(p->question), m);
    bool ok = hello && (!p->question || answer);
    json_decref(hello);
    json_decref(answer);
    if (!ok)
        give_up(p, m);
    return ok;
}

bool kl_peer_hello(struct kl_peer *p, const struct kl_bdev *d, struct kl_msg *m)
{
    p->threads = kiln_context_threads(d->s.ctx);
    if (p->broken)
        return kl_msg(m, KL_RC_ENV, "%s", p->broken);
    if (p->name)
        return true;
    json_t *a = start(p, m);
    const char *name = json_string_value(json_object_get(a, "name"));
    const char *version = json_string_value(json_object_get(a, "version"));
    if (a && !name)
        kl_msg(m, KL_RC_ENV, "it does not say its name");
    if (name) {
        p->name = line_of(name);
        p->version = line_of(version ? version : "");
    } else {
        give_up(p, m);
    }
    json_decref(a);
    return name != NULL;
}

void kl_peer_close(struct kl_peer *p)
{
    kl_proc_end(&p->proc);
    json_decref(p->question);
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

static json_t *describe(struct kl_peer *p, struct kl_bdev *d, const struct kl_args *args,
                        const char *file, const struct kl_peer *other, struct kl_msg *why)
{
    json_t *theirs = json_object_get(other ? other->question : NULL, "arrays");
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
            ok = kl_proc_write_array(
                &p->proc, a,
                json_string_value(json_object_get(json_array_get(theirs, i), "path")), &path, why);
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
    json_t *q = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:s, s:o, s:o}", "do", "case",
                          "file", file, "kernel", kiln_kernel_name(args->k), "device",
                          d->cuda ? "cuda" : "cpu", "on", d->label, "device_index",
                          (int)d->watch.index, "threads", (int)kiln_context_threads(d->s.ctx),
                          "cold_bytes", (json_int_t)d->cache_bytes * (d->cuda ? 2 : 4), "folder",
                          p->proc.dir, "arrays", arrays, "scalars", scalars);
    if (ok)
        return q;
    json_decref(q);
    return NULL;
}

static char *name_of(const struct kl_peer *p, const char *said)
{
    char *impl = line_of(said ? said : ""), *all = impl;
    if (!*impl || strcmp(impl, p->name) == 0)
        all = kl_xprintf("%s", p->name);
    else if (!p->library)
        all = kl_xprintf("%s %s", p->name, impl);
    if (all != impl)
        free(impl);
    return all;
}

static size_t ask_case(struct kl_peer *p, struct kl_bdev *d, const struct kl_args *args,
                       const char *file, const struct kl_peer *other, struct kl_peerrun *out,
                       struct kl_msg *why)
{
    size_t n = 0;
    json_t *q = describe(p, d, args, file, other, why), *a = NULL;
    if (!q)
        return 0;
    a = kl_proc_ask(&p->proc, json_incref(q), why);
    if (!a && p->proc.gone)
        died(p, why);
    else if (!a && p->proc.stale)
        kl_proc_stop(&p->proc);
    p->question = q;
    json_t *list = json_object_get(a, "implementations");
    const char *skip = json_string_value(json_object_get(a, "skip"));
    for (; n < json_array_size(list) && n < KL_PEER_IMPLS; n++)
        out[n] = (struct kl_peerrun){
            .peer = p, .impl = n, .name = name_of(p, json_string_value(json_array_get(list, n)))};
    if (a && !n)
        skips(skip ? skip : "it does not do this case", why);
    json_decref(a);
    return n;
}

size_t kl_peer_case(struct kl_peer *p, struct kl_bdev *d, const struct kl_args *args,
                    const char *file, const struct kl_peer *other,
                    struct kl_peerrun out[KL_PEER_IMPLS], struct kl_msg *why)
{
    json_decref(p->question); /* the last case: nobody goes back to it */
    p->question = NULL;
    for (size_t i = 0; i < args->narr; i++)
        if (args->arr[i].alias ||
            (args->arr[i].p->writes && !args->arr[i].made && !args->arr[i].p->has_init)) {
            kl_msg(why, KL_RC_OK, "%s is updated in place", args->arr[i].p->name);
            return 0;
        }
    return ready(p, why) ? ask_case(p, d, args, file, other, out, why) : 0;
}

/* A question about one implementation. */
static json_t *ask(struct kl_peerrun *r, json_t *question, struct kl_msg *m)
{
    struct kl_peer *p = r->peer;
    if (r->broken)
        kl_msg(m, KL_RC_ENV, "%s", r->broken);
    if (r->broken || !ready(p, m)) {
        json_decref(question);
        return NULL;
    }
    json_t *a = kl_proc_ask(&p->proc, question, m);
    if (!a && p->proc.gone) {
        r->broken = copy_text(m->text);
        died(p, m);
    } else if (!a && p->proc.stale) {
        r->broken = copy_text(m->text);
        kl_proc_stop(&p->proc);
    }
    return a;
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

bool kl_peer_check(struct kl_peerrun *r, const struct kl_args *args, double *error,
                   struct kl_msg *m)
{
    *error = 0;
    json_t *a =
        ask(r, json_pack("{s:s, s:i}", "do", "result", "implementation", (int)r->impl), m);
    json_t *files = json_object_get(a, "files");
    const char *skip = json_string_value(json_object_get(a, "skip"));
    bool ok = a != NULL;
    if (skip)
        ok = skips(skip, m);
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
    json_int_t copies = json_integer_value(json_object_get(a, "copies"));
    r->copies = copies > 0 ? (size_t)copies : 0;
    r->flush = json_is_true(json_object_get(a, "flush"));
    json_decref(a);
    return ok;
}

/* ---- times ---- */

bool kl_peer_time(struct kl_peerrun *r, bool warm, size_t n, double *ms, struct kl_taker *host,
                  struct kl_msg *m)
{
    json_t *a = ask(r,
                    json_pack("{s:s, s:i, s:b, s:I}", "do", "time", "implementation", (int)r->impl,
                              "cold", !warm, "n", (json_int_t)n),
                    m);
    json_t *list = json_object_get(a, "ms"), *queued = json_object_get(a, "host_ms");
    bool ok = a != NULL;
    if (ok && json_array_size(list) != n)
        ok = kl_msg(m, KL_RC_ENV, "it answered %zu times instead of %zu", json_array_size(list), n);
    for (size_t i = 0; ok && i < n; i++) {
        ms[i] = json_number_value(json_array_get(list, i));
        if (!(ms[i] > 0 && isfinite(ms[i])))
            ok = kl_msg(m, KL_RC_ENV, "it answered a time that is none");
    }
    for (size_t i = 0; ok && i < json_array_size(queued); i++) {
        double t = json_number_value(json_array_get(queued, i));
        if (t > 0 && isfinite(t))
            kl_take_note(host, t * 1e-3);
    }
    json_decref(a);
    return ok;
}

void kl_peer_drop(struct kl_peerrun *r)
{
    free(r->broken);
    free(r->name);
    *r = (struct kl_peerrun){0};
}
