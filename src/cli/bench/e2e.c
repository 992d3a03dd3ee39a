/* e2e.c - what a program pays that starts, compiles a kernel, and launches it.
 *
 * Contexts of their own, with a cache folder of their own: the first one finds it empty, the second
 * one finds what the first one left.  Each step is taken once, as it happens once in a program. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench/bench.h"

struct trial {
    kiln_context *ctx;
    kiln_module *mod;
    kiln_kernel *k;
    kiln_spec *spec;
};

static void close_trial(struct trial *t)
{
    kiln_spec_free(t->spec);
    kiln_module_free(t->mod);
    kiln_context_free(t->ctx);
}

/* start_ms: the context; *ms: from the source to code that can be launched. */
static bool open_trial(struct trial *t, const struct kl_bdev *d, const char *cache,
                       const struct kl_session *src, const struct kl_args *args, double *start_ms,
                       double *ms, struct kl_msg *m)
{
    kiln_options o = d->s.opt;
    kiln_diags *diags = NULL;
    double a = kl_bench_now(NULL);
    o.cache_dir = cache;
    kiln_status st = kiln_context_create(&o, &t->ctx, &diags);
    double b = kl_bench_now(NULL);
    kiln_diags_free(diags);
    diags = NULL;
    if (!st)
        st = kiln_compile(t->ctx, src->path, src->text, src->len, &t->mod, &diags);
    kiln_diags_free(diags);
    diags = NULL;
    t->k = st ? NULL : kiln_module_kernel(t->mod, kiln_kernel_name(args->k));
    if (!st)
        st = kiln_specialize(t->k, args->arg, args->n, &t->spec, &diags);
    *start_ms = (b - a) * 1e3;
    *ms = (kl_bench_now(NULL) - b) * 1e3;
    if (st)
        return kl_bench_why(m, "end to end", st, diags);
    kiln_diags_free(diags);
    return true;
}

static void remove_tree(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *p = kl_xprintf("%s/%s", path, e->d_name);
        if (unlink(p))
            remove_tree(p);
        free(p);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

static bool launches(struct trial *t, struct kl_bdev *d, const struct kl_args *args,
                     struct kl_e2e *out, struct kl_msg *m)
{
    struct kl_bdev other = *d; /* with the trial's context */
    struct kl_bset b = {0};
    double host;
    other.s.ctx = t->ctx;
    double a = kl_bench_now(NULL);
    bool ok = kl_bset_make(&b, &other, t->k, args, 1, m);
    kiln_sync(t->ctx, NULL);
    out->up_ms = (kl_bench_now(NULL) - a) * 1e3;
    for (int i = 0; i < 2 && ok; i++) {
        a = kl_bench_now(NULL);
        ok = kl_bset_launch(&b, 0, &host, m) && !kiln_sync(t->ctx, NULL);
        *(i ? &out->kernel_ms : &out->first_ms) = (kl_bench_now(NULL) - a) * 1e3;
    }
    a = kl_bench_now(NULL);
    ok = ok && kl_bset_fetch(&b, 0, m);
    out->down_ms = (kl_bench_now(NULL) - a) * 1e3;
    kl_bset_free(&b);
    return ok;
}

bool kl_e2e_run(struct kl_bdev *d, const struct kl_session *src, const struct kl_args *args,
                struct kl_e2e *out, struct kl_msg *m)
{
    const char *tmp = getenv("TMPDIR");
    char *cache = kl_xprintf("%s/kiln-bench-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    struct trial cold = {0}, warm = {0};
    double again;
    bool ok = mkdtemp(cache) || kl_msg(m, KL_RC_ENV, "no folder for a cache: %s", cache);
    *out = (struct kl_e2e){0};
    ok = ok && open_trial(&cold, d, cache, src, args, &again, &out->cold_ms, m);
    if (ok)
        out->front_ms = kiln_spec_get_info(cold.spec)->front_ms;
    close_trial(&cold);
    ok = ok && open_trial(&warm, d, cache, src, args, &again, &out->warm_ms, m) &&
         launches(&warm, d, args, out, m);
    if (ok)
        out->load_ms = kiln_spec_get_info(warm.spec)->load_ms;
    close_trial(&warm);
    remove_tree(cache);
    free(cache);
    out->start_ms = d->start_ms; /* the first one of the process also started the driver */
    out->done = ok;
    return ok;
}
