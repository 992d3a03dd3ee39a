/* module.c - compiled sources: parsing, inclusion, reflection. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lang/debug.h"
#include "lib/trace.h"

#define MAX_SOURCE ((size_t)64 << 20)

/* ---- inclusion ---- */

/* A regular file of sensible size, in a.  NULL: not there. */
static const char *read_source(kl_arena *a, const char *path, uint32_t *len)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > MAX_SOURCE) {
        close(fd);
        return NULL;
    }
    size_t n = (size_t)st.st_size, at = 0;
    close(fd); /* allocation may raise, and nothing outside the arena may be held then */
    char *text = kl_alloc_zero(a, n + 1);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd >= 0 && at < n) {
        ssize_t k = read(fd, text + at, n - at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            break;
        at += (size_t)k;
    }
    if (fd >= 0)
        close(fd);
    text[at] = 0;
    *len = (uint32_t)at;
    return fd >= 0 ? text : NULL;
}

/* "file": beside the file that includes it, then the folders of the context.  <file>: what is
 * embedded in the library. */
static const char *include(void *user, kl_arena *a, const char *from, const char *name, bool system,
                           uint32_t *len, const char **fullname)
{
    const kiln_context *ctx = user;
    if (system) {
        *fullname = kl_printf(a, "<%s>", name);
        return kl_embedded(name, len);
    }
    if (ctx->opt.include) {
        size_t n = 0;
        const char *text = ctx->opt.include(ctx->opt.include_user, from, name, &n);
        if (text && n <= MAX_SOURCE) {
            *fullname = kl_strndup(a, name, strlen(name));
            *len = (uint32_t)n;
            return kl_strndup(a, text, n);
        }
    }
    if (!ctx->opt.include_dirs)
        return NULL;
    const char *slash = strrchr(from, '/');
    const char *path = name[0] == '/' || !slash
                           ? kl_strndup(a, name, strlen(name))
                           : kl_printf(a, "%.*s%s", (int)(slash + 1 - from), from, name);
    const char *text = read_source(a, path, len);
    for (size_t i = 0; !text && name[0] != '/' && ctx->opt.include_dirs[i]; i++) {
        path = kl_printf(a, "%s/%s", ctx->opt.include_dirs[i], name);
        text = read_source(a, path, len);
    }
    *fullname = path;
    return text;
}

/* ---- compiling ---- */

struct source {
    kiln_module *mod;
    const char *name, *text;
    size_t length;
};

static kiln_status compile(struct kl_call *c, void *arg)
{
    struct source *src = arg;
    kiln_module *m = src->mod;
    kl_arena *a = &m->a;
    const kl_includer inc = {include, m->ctx};
    const char *name = kl_strndup(a, src->name, strlen(src->name));
    const char *text = kl_strndup(a, src->text, src->length);
    m->ast = kl_parse(a, name, text, src->length, &inc, c->d);
    kl_check(m->ast, c->d);
    if (c->d->nerr)
        return KILN_E_COMPILE;
    m->kernel = kl_new_n(a, kiln_kernel, m->ast->kernels.n + 1);
    for (uint32_t i = 0; i < m->ast->kernels.n; i++) {
        kiln_kernel *k = &m->kernel[i];
        k->mod = m;
        k->node = m->ast->kernels.v[i];
        k->name = k->node->name;
        k->nparam = k->node->kid[0]->nkid - (kl_debug_words(k->node) != 0); /* PARAMS */
        k->param = kl_reflect(a, m->ast, k->node);
    }
    for (; m->nkernel < m->ast->kernels.n; m->nkernel++) /* nothing raises from here on */
        pthread_mutex_init(&m->kernel[m->nkernel].lock, NULL);
    return KILN_OK;
}

kiln_status kiln_compile(kiln_context *ctx, const char *name, const char *text, size_t length,
                         kiln_module **out, kiln_diags **diags)
{
    struct kl_call c;
    if (diags)
        *diags = NULL;
    if (out)
        *out = NULL;
    if (!ctx)
        return KILN_E_ARG;
    kiln_status s = kl_call_begin(&c, &ctx->al);
    if (s)
        return s;
    if (!out || (!text && length))
        return kl_call_end(
            &c, kl_say(&c, KL_K1809, KILN_E_ARG, "kiln_compile: %s is NULL", out ? "text" : "out"),
            diags);
    if (length > MAX_SOURCE)
        return kl_call_end(&c,
                           kl_say(&c, KL_K1809, KILN_E_ARG,
                                  "kiln_compile: a source of %zu bytes; %zu are the most", length,
                                  MAX_SOURCE),
                           diags);
    kiln_module *m = ctx->al.fn(ctx->al.user, NULL, 0, sizeof *m);
    if (!m)
        return kl_call_end(&c, KILN_E_NOMEM, diags);
    memset(m, 0, sizeof *m);
    m->ctx = ctx;
    m->a.env = &c.env;
    struct source src = {m, name ? name : "<source>", text ? text : "", length};
    struct kl_act span;
    kl_act_begin(&span, ctx, KILN_TRACE_SOURCE, src.name, NULL, length, NULL);
    s = kl_act_end(&span, kl_guarded(&c, NULL, compile, &src));
    m->env.al = &ctx->al;
    m->a.env = &m->env;
    if (s) {
        kl_diags_use(c.d, &c.env, NULL);
        kiln_module_free(m);
        m = NULL;
    }
    if (m)
        kl_log(ctx, "source %s: %zu bytes, %zu kernel%s", src.name, length, m->nkernel,
               m->nkernel == 1 ? "" : "s");
    *out = m;
    return kl_call_end(&c, s, diags);
}

void kiln_module_free(kiln_module *m)
{
    if (!m)
        return;
    kl_alloc al = m->ctx->al;
    for (size_t i = 0; i < m->nkernel; i++) {
        kiln_kernel *k = &m->kernel[i];
        kl_debug_free(k);
        for (uint32_t b = 0; b < k->nbucket; b++)
            for (struct kl_special *s = k->bucket[b], *next; s; s = next) {
                next = s->next;
                kl_special_free(m->ctx, s);
            }
        if (k->bucket)
            al.fn(al.user, k->bucket, k->nbucket * sizeof *k->bucket, 0);
        kl_fast_free(k);
        pthread_mutex_destroy(&k->lock);
    }
    kl_arena_free(&m->a);
    al.fn(al.user, m, sizeof *m, 0);
}

/* ---- reflection ---- */

size_t kiln_module_count(const kiln_module *mod)
{
    return mod ? mod->nkernel : 0;
}

kiln_kernel *kiln_module_at(kiln_module *mod, size_t i)
{
    return mod && i < mod->nkernel ? &mod->kernel[i] : NULL;
}

kiln_kernel *kiln_module_kernel(kiln_module *mod, const char *name)
{
    for (size_t i = 0; mod && name && i < mod->nkernel; i++)
        if (strcmp(mod->kernel[i].name, name) == 0)
            return &mod->kernel[i];
    return NULL;
}

const char *kiln_kernel_name(const kiln_kernel *k)
{
    return k ? k->name : NULL;
}

size_t kiln_kernel_param_count(const kiln_kernel *k)
{
    return k ? k->nparam : 0;
}

const kiln_param_info *kiln_kernel_param(const kiln_kernel *k, size_t i)
{
    return k && i < k->nparam ? &k->param[i] : NULL;
}
