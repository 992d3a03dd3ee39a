/* peerhost.c - the process of a peer that is a shared library: `kiln bench` starts Kiln anew as
 * `kiln --peer-host LIBRARY`, which loads it and answers the questions of docs/bench.md.
 *
 * The library gets copies of the arrays as a kernel does, by the same rule, and the clock or the
 * events stand around each run as around a kernel's launch (take.c).  What it prints goes to
 * standard error, so that only answers stand on standard output. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/bench/peer.h"

struct impl {
    struct host *h;
    const kiln_peer *fn;
    struct kl_bset sets;
    bool made;
    void **state; /* one a copy of the arrays */
    size_t prepared;
    struct kl_taker turn;
};

struct host {
    const char *path;
    kiln_peer_get_fn get;
    struct kl_bdev dev;
    bool open;
    char threads[16];
    struct kl_optval opt[2];
    struct kl_opts o;
    /* the case */
    json_t *question;
    kiln_param_info *info;
    struct kl_args args;
    size_t copies;
    bool flush;
    struct impl impl[KL_PEER_IMPLS];
    size_t nimpl;
};

static const char *text_of(json_t *q, const char *key)
{
    const char *s = json_string_value(json_object_get(q, key));
    return s ? s : "";
}

static json_int_t int_of(json_t *q, const char *key)
{
    return json_integer_value(json_object_get(q, key));
}

/* Text of the library as a string of JSON, which knows no broken UTF-8. */
static json_t *plain(char *text)
{
    json_t *s = json_string(text);
    for (char *c = text; *c && !s; c++)
        if ((unsigned char)*c > '~')
            *c = '?';
    return s ? s : json_string(text);
}

/* While the library has the word, the end of Kiln is its end; else the closed input is. */
static void leash(bool on)
{
    prctl(PR_SET_PDEATHSIG, on ? SIGKILL : 0);
}

/* ---- the library ---- */

static bool load(struct host *h, struct kl_msg *m)
{
    leash(true);
    void *lib = dlopen(h->path, RTLD_NOW | RTLD_LOCAL);
    void *get = lib ? dlsym(lib, "kiln_peer_get") : NULL;
    if (!lib)
        return kl_msg(m, KL_RC_ENV, "%s", dlerror());
    memcpy(&h->get, &get, sizeof get);
    if (!get || !h->get(KILN_PEER_ABI, 0))
        return kl_msg(m, KL_RC_USAGE,
                      get ? "it was made for another version of kiln_peer.h"
                          : "it has no function kiln_peer_get (kiln_peer.h)");
    leash(false);
    return true;
}

static json_t *hello(struct host *h, json_t *q, struct kl_msg *m)
{
    snprintf(h->threads, sizeof h->threads, "%d", (int)int_of(q, "threads"));
    if (!load(h, m))
        return NULL;
    const kiln_peer *first = h->get(KILN_PEER_ABI, 0);
    return json_pack("{s:s, s:s}", "name", first->name, "version",
                     first->version ? first->version : "");
}

/* ---- a case ---- */

static void drop_case(struct host *h)
{
    for (size_t i = 0; i < h->nimpl; i++) {
        struct impl *p = &h->impl[i];
        for (size_t c = 0; c < p->prepared; c++)
            p->fn->drop(p->state[c]);
        free(p->state);
        free(p->turn.host_s);
        if (p->made)
            kl_bset_free(&p->sets);
    }
    h->nimpl = 0;
    for (size_t i = 0; i < h->args.narr; i++)
        kl_arr_free(&h->args.arr[i]);
    free(h->args.arr);
    free(h->args.arg);
    free(h->info);
    h->info = NULL;
    h->args = (struct kl_args){0};
    json_decref(h->question);
    h->question = NULL;
}

/* The device of the case, with a cache as large as Kiln takes it to be. */
static bool need_device(struct host *h, json_t *q, struct kl_msg *m)
{
    const char *on = text_of(q, "on"), *name = *on ? on : text_of(q, "device");
    if (strcmp(name, "sim") == 0) /* the arrays are the host's, and nothing is compiled */
        name = "interp";
    if (h->open && strcmp(h->dev.name, name) != 0) {
        kl_bdev_close(&h->dev);
        h->open = false;
    }
    if (!h->open) {
        h->opt[0] = (struct kl_optval){.id = KL_OPT_devices, .val = name};
        h->opt[1] = (struct kl_optval){.id = KL_OPT_threads, .val = h->threads};
        h->o = (struct kl_opts){.opt = h->opt, .nopt = 2};
        if (kl_bdev_open(&h->dev, &h->o, name, false))
            return kl_msg(m, KL_RC_ENV, "its process could not open the device %s", name);
        h->open = true;
    }
    uint64_t cold = (uint64_t)int_of(q, "cold_bytes");
    if (cold)
        h->dev.cache_bytes = cold / (h->dev.cuda ? 2 : 4);
    return true;
}

static bool read_array(struct host *h, size_t i, json_t *a, struct kl_msg *m)
{
    struct kl_arr *r = &h->args.arr[i];
    kiln_param_info *p = &h->info[i];
    const char *path = json_string_value(json_object_get(a, "path"));
    json_t *shape = json_object_get(a, "shape");
    *p = (kiln_param_info){.name = text_of(a, "name"),
                           .reads = json_is_true(json_object_get(a, "reads")),
                           .writes = json_is_true(json_object_get(a, "writes"))};
    *r = (struct kl_arr){.p = p, .dense = true, .count = 1, .made = p->writes};
    for (int e = 1; e < KL_NELEM; e++)
        if (strcmp(kl_elems[e].name, text_of(a, "dtype")) == 0)
            r->elem = (enum kl_elem)e;
    if (!r->elem || json_array_size(shape) > KL_DIMS)
        return kl_msg(m, KL_RC_ENV, "%s: no such type or shape", p->name);
    if (path) {
        char *word = kl_npy_knows(r->elem) ? kl_xprintf("%s", path)
                                           : kl_xprintf("%s:%s", path, kl_elems[r->elem].name);
        bool ok = kl_arr_read(r, word, m);
        free(word);
        return ok;
    }
    r->ndim = (int32_t)json_array_size(shape);
    for (int32_t d = r->ndim; d-- > 0;) {
        r->shape[d] = json_integer_value(json_array_get(shape, (size_t)d));
        r->stride[d] = (int64_t)r->count;
        r->count *= (uint64_t)r->shape[d];
    }
    r->data = r->owned = kl_array_alloc(p->name, r->count * kl_elems[r->elem].bytes, m);
    return r->data != NULL;
}

static bool read_arrays(struct host *h, json_t *q, struct kl_msg *m)
{
    json_t *list = json_object_get(q, "arrays");
    size_t n = json_array_size(list);
    h->info = kl_xalloc((n + 1) * sizeof *h->info);
    h->args.arr = kl_xalloc((n + 1) * sizeof *h->args.arr);
    h->args.arg = kl_xalloc((n + 1) * sizeof *h->args.arg);
    for (size_t i = 0; i < n; i++) {
        h->args.narr = i + 1;
        if (!read_array(h, i, json_array_get(list, i), m))
            return false;
        const struct kl_arr *r = &h->args.arr[i];
        h->args.arg[h->args.n++] = (kiln_arg){.name = r->p->name,
                                              .kind = KILN_ARG_TENSOR,
                                              .u = {.tensor = {.data = r->data,
                                                               .dtype = (kiln_dtype)r->elem,
                                                               .ndim = r->ndim,
                                                               .shape = r->shape,
                                                               .strides = r->stride}}};
    }
    return true;
}

/* As many as a kernel gets (kl_subject_make). */
static void count_copies(struct host *h)
{
    uint64_t bytes = kl_args_bytes(&h->args), left = 0;
    size_t n = kl_copies_for(bytes, (h->dev.cuda ? 1 : 2) * h->dev.cache_bytes);
    kiln_memory_info(h->dev.s.ctx, &left, NULL, NULL);
    while (n > 2 && left && n * bytes > left / 2)
        n--;
    h->flush = n == 0;
    h->copies = h->flush ? 1 : n;
}

static json_t *new_case(struct host *h, json_t *q, struct kl_msg *m)
{
    const kiln_peer *fn;
    json_t *names = json_array();
    drop_case(h);
    h->question = json_incref(q);
    if (!need_device(h, q, m) || !read_arrays(h, q, m)) {
        json_decref(names);
        return NULL;
    }
    count_copies(h);
    for (size_t i = 0; i < KL_PEER_IMPLS && (fn = h->get(KILN_PEER_ABI, i)); i++) {
        h->impl[h->nimpl++] = (struct impl){.h = h, .fn = fn};
        json_array_append_new(names, json_string(fn->name));
    }
    return json_pack("{s:o}", "implementations", names);
}

/* ---- an implementation ---- */

static void *prepare_copy(struct impl *p, size_t copy, char *why, size_t nwhy)
{
    struct host *h = p->h;
    json_t *scalars = json_object_get(h->question, "scalars"), *v;
    const char *key = NULL;
    kiln_peer_array *arr = kl_xalloc((h->args.n + 1) * sizeof *arr);
    kiln_peer_scalar *scalar = kl_xalloc((json_object_size(scalars) + 1) * sizeof *scalar);
    kiln_peer_case c = {.size = sizeof c,
                        .file = text_of(h->question, "file"),
                        .kernel = text_of(h->question, "kernel"),
                        .device = h->dev.cuda ? KILN_DEVICE_CUDA : KILN_DEVICE_CPU,
                        .device_index = (int32_t)int_of(h->question, "device_index"),
                        .threads = (uint32_t)int_of(h->question, "threads"),
                        .array = arr,
                        .scalar = scalar};
    for (size_t i = 0; i < h->args.n; i++) {
        const struct kl_arr *a = &h->args.arr[i];
        arr[c.narray++] = (kiln_peer_array){.name = a->p->name,
                                            .data = p->sets.arg[copy * h->args.n + i].u.tensor.data,
                                            .dtype = (kiln_dtype)a->elem,
                                            .ndim = a->ndim,
                                            .shape = a->shape,
                                            .strides = a->stride,
                                            .reads = a->p->reads,
                                            .writes = a->p->writes};
    }
    json_object_foreach(scalars, key, v)
        scalar[c.nscalar++] = (kiln_peer_scalar){key, json_number_value(v)};
    leash(true);
    void *state = p->fn->prepare(&c, why, nwhy);
    leash(false);
    free(arr);
    free(scalar);
    return state; // cppcheck-suppress returnDanglingLifetime ; a peer may not keep the case
}

/* The first copies, up to n of them.  *skip: it does not do this case, and why. */
static bool prepare(struct impl *p, size_t n, char *skip, size_t nskip, struct kl_msg *m)
{
    struct host *h = p->h;
    if (!p->made) {
        p->made = true;
        if (!kl_bset_make(&p->sets, &h->dev, NULL, &h->args, h->copies, m))
            return false;
        p->state = kl_xalloc((h->copies + 1) * sizeof *p->state);
    }
    for (; p->prepared < n; p->prepared++) {
        snprintf(skip, nskip, "it does not do this case");
        if (!kl_bset_poison(&p->sets, p->prepared, 0xAB, m))
            return false;
        p->state[p->prepared] = prepare_copy(p, p->prepared, skip, nskip);
        if (!p->state[p->prepared])
            return kl_msg(m, KL_RC_OK, "%s", skip);
    }
    return true;
}

static bool run_once(void *user, size_t copy, double *host_s, struct kl_msg *m)
{
    struct impl *p = user;
    double t = kl_bench_now(NULL);
    int rc = p->fn->run(p->state[copy]);
    *host_s = kl_bench_now(NULL) - t;
    return rc == 0 || kl_msg(m, KL_RC_ENV, "%s: error %d", p->fn->name, rc);
}

static bool no_restore(void *user, size_t copy, struct kl_msg *m)
{
    (void)user, (void)copy, (void)m;
    return true;
}

/* What copy 0 holds, into the last names of the folder. */
static bool save_results(struct impl *p, json_t *files, struct kl_msg *m)
{
    struct host *h = p->h;
    for (size_t i = 0; i < h->args.n; i++) {
        struct kl_arr got = h->args.arr[i];
        size_t bytes = (size_t)got.count * kl_elems[got.elem].bytes;
        kiln_diags *d = NULL;
        if (!got.p->writes)
            continue;
        got.dense = true;
        got.data = kl_array_alloc(got.p->name, bytes, m);
        if (!got.data)
            return false;
        kiln_status st = kiln_buffer_download(p->sets.buf[i], 0, got.data, bytes, NULL, &d);
        char *path =
            kl_xprintf("%s/%zu.npy", text_of(h->question, "folder"), KL_PEER_FILES - 1 - i);
        bool ok = st ? kl_bench_why(m, "reading a result", st, d) : kl_array_save(path, &got, m);
        json_object_set_new(files, got.p->name, json_string(path));
        free(path);
        free(got.data);
        if (!ok)
            return false;
    }
    return true;
}

static json_t *result(struct impl *p, struct kl_msg *m)
{
    char skip[300];
    double t;
    json_t *files = json_object();
    bool ok = prepare(p, 1, skip, sizeof skip, m);
    if (!ok && m->rc == KL_RC_OK) {
        json_decref(files);
        return json_pack("{s:o}", "skip", plain(skip));
    }
    leash(true);
    ok = ok && run_once(p, 0, &t, m) && save_results(p, files, m);
    leash(false);
    if (ok)
        return json_pack("{s:o, s:I, s:b}", "files", files, "copies", (json_int_t)p->h->copies,
                         "flush", p->h->flush);
    json_decref(files);
    return NULL;
}

static json_t *times(struct impl *p, json_t *q, struct kl_msg *m)
{
    struct host *h = p->h;
    char skip[300];
    json_int_t n = int_of(q, "n");
    double ms[64];
    if (n < 1 || n > (h->dev.cuda ? KL_BURST : 64)) {
        kl_msg(m, KL_RC_ENV, "asked for %lld times at once", (long long)n);
        return NULL;
    }
    if (!prepare(p, h->copies, skip, sizeof skip, m))
        return NULL;
    p->turn.dev = &h->dev;
    p->turn.user = p;
    p->turn.launch = run_once;
    p->turn.restore = no_restore;
    p->turn.copies = h->copies;
    p->turn.flush = h->flush;
    size_t before = p->turn.nhost;
    leash(true);
    bool ok = kl_take(&p->turn, !json_is_true(json_object_get(q, "cold")), (size_t)n, ms, m);
    leash(false);
    if (!ok)
        return NULL;
    json_t *list = json_array(), *host = json_array();
    for (json_int_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(ms[i]));
    for (size_t i = before; i < p->turn.nhost; i++)
        json_array_append_new(host, json_real(p->turn.host_s[i] * 1e3));
    return json_pack("{s:o, s:o}", "ms", list, "host_ms", host);
}

/* ---- questions and answers ---- */

static json_t *answer(struct host *h, json_t *q, struct kl_msg *m)
{
    const char *what = text_of(q, "do");
    json_int_t i = int_of(q, "implementation");
    if (strcmp(what, "hello") == 0 && !h->get)
        return hello(h, q, m);
    if (strcmp(what, "case") == 0 && h->get)
        return new_case(h, q, m);
    if (i < 0 || (size_t)i >= h->nimpl)
        kl_msg(m, KL_RC_ENV, "a question out of turn");
    else if (strcmp(what, "result") == 0)
        return result(&h->impl[i], m);
    else if (strcmp(what, "time") == 0)
        return times(&h->impl[i], q, m);
    else
        kl_msg(m, KL_RC_ENV, "it does not know this question");
    return NULL;
}

static bool say(FILE *out, json_t *a)
{
    char *text = json_dumps(a, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(a);
    bool ok = text && fprintf(out, "%s\n", text) > 0 && fflush(out) == 0;
    free(text);
    return ok;
}

/* Kiln ended without a word: nobody else removes the arrays. */
static void remove_folder(struct host *h)
{
    struct kl_proc p = {.dir = kl_xprintf("%s", text_of(h->question, "folder"))};
    kl_proc_clear(&p);
    if (*p.dir)
        rmdir(p.dir);
    free(p.dir);
}

int kl_peer_host(const char *path)
{
    struct host h = {.path = path};
    char *line = NULL;
    size_t room = 0;
    bool bye = false;
    int to = dup(1);
    FILE *out = to < 0 ? NULL : fdopen(to, "w");
    if (!out || dup2(2, 1) < 0) {
        if (out)
            fclose(out);
        return kl_fail(KL_RC_ENV, "no standard output");
    }
    while (!bye && getline(&line, &room, stdin) > 0) {
        struct kl_msg m = {0};
        json_t *q = json_loads(line, 0, NULL), *a = NULL;
        bye = strcmp(text_of(q, "do"), "bye") == 0;
        if (!bye) {
            a = answer(&h, q, &m);
            /* a GPU's context does nothing any more after some errors: the next question goes to a
             * new process */
            if (!a)
                a = json_pack("{s:o, s:b}", "error", plain(m.text), "again", h.open && h.dev.cuda);
            bye = !say(out, a);
        }
        json_decref(q);
    }
    free(line);
    fclose(out);
    if (!bye)
        remove_folder(&h);
    _exit(0); /* what the library registered to be done at the end is not waited for */
}
