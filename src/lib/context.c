/* context.c - options, the choice of a device, and what a context owns. */
#include <stdio.h>

#include "gen/c/genc.h"
#include "lib/trace.h"

enum { TIMEOUT_MS = 60000 };

/* Read an options struct that may be older (shorter) or newer (longer). */
static bool take(kiln_options *dst, const kiln_options *src)
{
    uint32_t n;
    memcpy(&n, src, sizeof n);
    if (n < sizeof n)
        return false;
    for (size_t i = sizeof *dst; i < n; i++)
        if (((const unsigned char *)src)[i])
            return false; /* asks for something that this version lacks */
    memcpy(dst, src, n < sizeof *dst ? n : sizeof *dst);
    return true;
}

static const char *copy(kl_arena *a, const char *s)
{
    return s ? kl_strndup(a, s, strlen(s)) : NULL;
}

/* Strings become the context's own. */
static kiln_status copy_options(struct kl_call *c, void *arg)
{
    kiln_context *ctx = arg;
    kiln_options *o = &ctx->opt;
    (void)c;
    o->cc = copy(&ctx->a, o->cc);
    o->cache_dir = copy(&ctx->a, o->cache_dir);
    o->keep_dir = copy(&ctx->a, o->keep_dir);
    o->arch = copy(&ctx->a, o->arch);
    if (o->include_dirs) {
        size_t n = 0;
        while (o->include_dirs[n])
            n++;
        const char **dir = kl_new_n(&ctx->a, const char *, n + 1);
        for (size_t i = 0; i < n; i++)
            dir[i] = copy(&ctx->a, o->include_dirs[i]);
        o->include_dirs = dir;
    }
    return KILN_OK;
}

static kiln_status check_options(struct kl_call *c, const kiln_options *o)
{
    static const char fn[] = "kiln_context_create";
    uint32_t arch;
    if ((unsigned)o->device > KILN_DEVICE_SIM)
        return kl_say(c, KL_K1809, KILN_E_ARG, "%s: there is no device %d", fn, (int)o->device);
    if (o->device_index && o->device != KILN_DEVICE_CUDA)
        return kl_say(c, KL_K1809, KILN_E_ARG, "%s: device_index is for CUDA", fn);
    if (o->arch && o->device != KILN_DEVICE_SIM)
        return kl_say(c, KL_K1809, KILN_E_ARG, "%s: arch is for SIM; CUDA asks the device", fn);
    if (o->arch && !kl_ptx_parse_arch(o->arch, &arch))
        return kl_say(c, KL_K1809, KILN_E_ARG, "%s: there is no target `%s`", fn, o->arch);
    if (o->opt_level > 2)
        return kl_say(c, KL_K1809, KILN_E_ARG, "%s: opt_level is %u, and 2 is the highest", fn,
                      o->opt_level);
    if (o->threads > 4096)
        return kl_say(c, KL_K1809, KILN_E_ARG, "%s: %u threads; 4096 are the most", fn, o->threads);
    if (o->checks & ~(uint32_t)KILN_CHECK_ALL)
        return kl_say(c, KL_K1809, KILN_E_ARG, "%s: unknown bits in checks (%#x)", fn, o->checks);
    if (o->cc && o->cc[0] != '/')
        return kl_say(c, KL_K1809, KILN_E_ARG,
                      "%s: cc must be the absolute path of a C compiler, not `%s`", fn, o->cc);
    return KILN_OK;
}

/* The prelude and the state of the hash that every key of code begins with. */
static kiln_status make_prelude(struct kl_call *c, void *arg)
{
    kiln_context *ctx = arg;
    const char *flag[KL_CC_FLAGS];
    kl_buf b = {.a = &ctx->a};
    (void)c;
    kl_c_prelude(&b);
    ctx->prelude = kl_buf_str(&b);
    ctx->nprelude = b.n;
    kl_sha256_init(&ctx->hash);
    kl_sha256_str(&ctx->hash, kiln_build_id());
    kl_sha256_add(&ctx->hash, ctx->cc.id, sizeof ctx->cc.id);
    kl_cc_flags(&ctx->cc, ctx->level, ctx->opt.keep_dir != NULL, flag);
    for (uint32_t i = 0; flag[i]; i++)
        kl_sha256_str(&ctx->hash, flag[i]);
    kl_sha256_str(&ctx->hash, ctx->prelude);
    return KILN_OK;
}

static kiln_status open_gpu(struct kl_call *c, kiln_context *ctx, const char *libcuda)
{
    kl_cudaerr e;
    ctx->device = ctx->opt.device;
    ctx->arch = 90;
    if (ctx->device == KILN_DEVICE_CUDA) {
        kiln_status s =
            kl_cuda_open(&ctx->al, libcuda, (int)ctx->opt.device_index, &ctx->cuda, &e);
        if (s)
            return kl_say_cuda(c, s, &e);
        const kl_cudainfo *i = kl_cuda_info(ctx->cuda);
        ctx->arch = kl_ptx_target(i->major * 10 + i->minor);
        ctx->info = kl_info_of(i, i->name, "", i->ordinal);
    } else if (ctx->opt.arch) {
        kl_ptx_parse_arch(ctx->opt.arch, &ctx->arch);
    }
    snprintf(ctx->archname, sizeof ctx->archname, "sm_%u", ctx->arch);
    return KILN_OK;
}

static kiln_status choose_device(struct kl_call *c, kiln_context *ctx, const char *libcuda)
{
    static const char lacks[] = "compiled kernels need an x86-64 processor with AVX2 and FMA "
                                "(x86-64-v3), or AArch64";
    char msg[KL_CC_MSG] = "";
    const char *level = kl_cpu_level();
    bool want = ctx->opt.device == KILN_DEVICE_CPU;
    ctx->level = level ? level : "";
    ctx->device = KILN_DEVICE_INTERP;
    if (ctx->opt.device == KILN_DEVICE_INTERP)
        return KILN_OK;
    if (ctx->opt.device == KILN_DEVICE_CUDA || ctx->opt.device == KILN_DEVICE_SIM)
        return open_gpu(c, ctx, libcuda);
    if (!level) {
        if (want)
            return kl_say(c, KL_K1804, KILN_E_UNSUPPORTED, "%s", lacks);
        if (ctx->opt.cc)
            kl_say(c, KL_K1803, KILN_OK, "kernels are interpreted: %s", lacks);
        return KILN_OK;
    }
    if (!ctx->opt.cc) {
        if (want)
            return kl_say(c, KL_K1802, KILN_E_TOOLCHAIN,
                          "the CPU device needs a C compiler and none was named or found; on "
                          "Debian: apt install gcc (or clang)");
        return KILN_OK;
    }
    if (kl_cc_probe(&ctx->cc, ctx->opt.cc, ctx->cache, ctx->opt.cc_timeout_ms, msg)) {
        ctx->cc.path = NULL;
        size_t n = strlen(msg) + 1;
        char *why = ctx->al.fn(ctx->al.user, NULL, 0, n);
        if (!why)
            return KILN_E_NOMEM;
        memcpy(why, msg, n);
        ctx->cc_problem = why;
        if (want)
            return kl_say(c, KL_K1802, KILN_E_TOOLCHAIN,
                          "the CPU device needs a C compiler: %s; on Debian: apt install gcc (or "
                          "clang)",
                          msg);
        kl_say(c, KL_K1803, KILN_OK, "kernels are interpreted: %s", msg);
        return KILN_OK;
    }
    ctx->device = KILN_DEVICE_CPU;
    return kl_guarded(c, NULL, make_prelude, ctx);
}

static kiln_status fill(struct kl_call *c, kiln_context *ctx, const char *libcuda)
{
    kiln_status s = check_options(c, &ctx->opt);
    if (!s)
        s = kl_guarded(c, NULL, copy_options, ctx);
    if (s)
        return s;
    if (!ctx->opt.cc_timeout_ms)
        ctx->opt.cc_timeout_ms = TIMEOUT_MS;
    ctx->cache =
        kl_cache_open(&ctx->al, ctx->opt.cache_dir, ctx->opt.cache_cap, &ctx->cache_problem);
    if (!ctx->cache)
        return KILN_E_NOMEM;
    if (ctx->cache_problem)
        kl_say(c, KL_K1801, KILN_OK, "compiled kernels are not kept: %s", ctx->cache_problem);
    s = choose_device(c, ctx, libcuda);
    if (s)
        return s;
    ctx->pool = kl_pool_new(&ctx->al, ctx->opt.threads);
    if (!ctx->pool)
        return KILN_E_NOMEM;
    size_t n = kl_pool_threads(ctx->pool) * sizeof *ctx->scratch;
    ctx->scratch = ctx->al.fn(ctx->al.user, NULL, 0, n);
    if (!ctx->scratch)
        return KILN_E_NOMEM;
    memset(ctx->scratch, 0, n);
    ctx->info.name = ctx->info.name ? ctx->info.name : "";
    ctx->info.arch = ctx->archname;
    ctx->info.sms = (int32_t)kl_num_sms(ctx);
    return KILN_OK;
}

kiln_status kl_context_create(const kiln_options *opt, const char *libcuda, kiln_context **out,
                              kiln_diags **diags)
{
    kiln_options o = KILN_OPTIONS_INIT;
    struct kl_call c;
    if (diags)
        *diags = NULL;
    if (!out)
        return KILN_E_ARG;
    *out = NULL;
    bool known = !opt || take(&o, opt);
    kl_alloc al = known && o.alloc ? (kl_alloc){o.alloc, o.alloc_user} : kl_alloc_libc;
    kiln_status s = kl_call_begin(&c, &al);
    if (s)
        return s;
    if (!known)
        return kl_call_end(&c,
                           kl_say(&c, KL_K1809, KILN_E_ARG,
                                  "kiln_context_create: kiln_options.size must be set, and "
                                  "what lies beyond the fields that this version knows must "
                                  "be zero"),
                           diags);
    kiln_context *ctx = al.fn(al.user, NULL, 0, sizeof *ctx);
    if (!ctx)
        return kl_call_end(&c, KILN_E_NOMEM, diags);
    memset(ctx, 0, sizeof *ctx);
    ctx->al = al;
    ctx->opt = o;
    ctx->a.env = &c.env; /* while this call may raise */
    pthread_mutex_init(&ctx->lock, NULL);
    pthread_cond_init(&ctx->built, NULL);
    s = fill(&c, ctx, libcuda);
    ctx->env.al = &ctx->al;
    ctx->a.env = &ctx->env;
    if (s) {
        kiln_context_free(ctx);
        ctx = NULL;
    }
    *out = ctx;
    return kl_call_end(&c, s, diags);
}

kiln_status kiln_context_create(const kiln_options *opt, kiln_context **out, kiln_diags **diags)
{
    return kl_context_create(opt, NULL, out, diags);
}

void kiln_context_free(kiln_context *ctx)
{
    if (!ctx)
        return;
    kl_alloc al = ctx->al;
    kl_trace_free(ctx);
    uint32_t n = ctx->pool ? kl_pool_threads(ctx->pool) : 0;
    kl_pool_free(ctx->pool);
    for (uint32_t i = 0; ctx->scratch && i < n; i++)
        if (ctx->scratch[i].mem)
            al.fn(al.user, ctx->scratch[i].mem, ctx->scratch[i].size, 0);
    if (ctx->scratch)
        al.fn(al.user, ctx->scratch, n * sizeof *ctx->scratch, 0);
    if (ctx->cc_problem)
        al.fn(al.user, (char *)(uintptr_t)ctx->cc_problem, strlen(ctx->cc_problem) + 1, 0);
    kl_cache_close(ctx->cache);
    kl_cuda_close(ctx->cuda);
    kl_arena_free(&ctx->a);
    pthread_cond_destroy(&ctx->built);
    pthread_mutex_destroy(&ctx->lock);
    al.fn(al.user, ctx, sizeof *ctx, 0);
}

void kl_log(const kiln_context *ctx, const char *fmt, ...)
{
    char text[500];
    if (!ctx->opt.log)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ctx->opt.log(ctx->opt.log_user, text, strlen(text));
}

kiln_device kiln_context_device(const kiln_context *ctx)
{
    return ctx ? ctx->device : KILN_DEVICE_AUTO;
}

uint32_t kiln_context_threads(const kiln_context *ctx)
{
    return ctx ? kl_pool_threads(ctx->pool) : 0;
}

const char *kiln_context_cache_problem(const kiln_context *ctx)
{
    return ctx ? ctx->cache_problem : NULL;
}

const kiln_device_info *kiln_context_device_info(const kiln_context *ctx)
{
    return ctx ? &ctx->info : NULL;
}
