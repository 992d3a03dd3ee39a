/* code.c - from texts to code in memory: the context's table, the cache, the compiler.
 *
 * A text is compiled once however many threads ask for it: who comes first enters it in the
 * table as being built, the others wait.  A thread that asks for several builds its own before
 * it waits for those of others, so that no two can wait for each other. */
#include "lib/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

struct kl_lib {
    kl_object *obj;
    uint32_t refs; /* kernels in the table; under the context's lock */
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void kl_code_key(const kiln_context *ctx, const char *text, size_t len, uint8_t key[32])
{
    kl_sha256 h = ctx->hash;
    kl_sha256_add(&h, text, len);
    kl_sha256_end(&h, key);
}

/* ---- the table; all under the lock ---- */

static struct kl_native *find(kiln_context *ctx, const uint8_t key[32])
{
    struct kl_native *k = ctx->code;
    while (k && memcmp(k->key, key, 32) != 0)
        k = k->next;
    return k;
}

/* One reference less; the last one takes it out. */
static void drop(kiln_context *ctx, struct kl_native *code)
{
    if (--code->refs)
        return;
    struct kl_native **p = &ctx->code;
    while (*p != code)
        p = &(*p)->next;
    *p = code->next;
    if (code->lib && --code->lib->refs == 0) {
        kl_object_free(code->lib->obj);
        ctx->al.fn(ctx->al.user, code->lib, sizeof *code->lib, 0);
    }
    ctx->al.fn(ctx->al.user, code, sizeof *code, 0);
}

void kl_code_drop(kiln_context *ctx, struct kl_native *code)
{
    if (!code)
        return;
    pthread_mutex_lock(&ctx->lock);
    drop(ctx, code);
    pthread_mutex_unlock(&ctx->lock);
}

enum claim { READY, MINE, OTHERS, NOMEM };

static enum claim claim(kiln_context *ctx, struct kl_want *w)
{
    struct kl_native *k = find(ctx, w->key);
    if (k) {
        if (k->building)
            return OTHERS;
        k->refs++;
        w->code = k;
        w->done = true;
        return READY;
    }
    k = ctx->al.fn(ctx->al.user, NULL, 0, sizeof *k);
    if (!k)
        return NOMEM;
    *k = (struct kl_native){.next = ctx->code, .refs = 1, .building = true};
    memcpy(k->key, w->key, 32);
    ctx->code = k;
    w->code = k;
    return MINE;
}

/* ---- building; without the lock: entries that are being built are ours alone ---- */

/* Give the kernels of want[] that are ours and lack code what the object holds for them. */
static kiln_status adopt(kiln_context *ctx, struct kl_want **w, size_t n, const void *so,
                         size_t len, const char *kept, char msg[KL_CC_MSG])
{
    char why[512];
    double t = now_ms();
    struct kl_lib *lib = ctx->al.fn(ctx->al.user, NULL, 0, sizeof *lib);
    if (!lib)
        return KILN_E_NOMEM;
    *lib = (struct kl_lib){0};
    struct kl_act span;
    kl_act_begin(&span, ctx, KILN_TRACE_LOAD, w[0]->name, NULL, len, NULL);
    kiln_status s = kl_object_load(&ctx->al, so, len, ctx->cache, kept, w[0]->key, &lib->obj, why);
    kl_act_end(&span, s);
    for (size_t i = 0; i < n && !s; i++) {
        struct kl_native *k = w[i]->code;
        k->fn = kl_object_kernel(lib->obj, k->key);
        k->load_ms = now_ms() - t;
        if (k->fn) {
            k->lib = lib;
            lib->refs++;
        } else {
            snprintf(why, sizeof why, "the compiled object lacks kernel %s", w[i]->name);
            s = KILN_E_TOOLCHAIN;
        }
    }
    if (s && s != KILN_E_NOMEM)
        snprintf(msg, KL_CC_MSG, "%s", why);
    if (lib->refs == 0) {
        kl_object_free(lib->obj);
        ctx->al.fn(ctx->al.user, lib, sizeof *lib, 0);
    }
    return s;
}

/* From the cache.  An entry that does not load is as good as none. */
static bool from_cache(kiln_context *ctx, struct kl_want *w)
{
    void *so;
    size_t n;
    char msg[KL_CC_MSG];
    if (ctx->opt.keep_dir)
        return false; /* the files are wanted */
    struct kl_act span;
    kl_act_begin(&span, ctx, KILN_TRACE_CACHE, w->name, "look", 0, NULL);
    w->code->cache = kl_cache_get(ctx->cache, w->key, &so, &n);
    kl_act_cache(&span, w->code->cache);
    kl_act_end(&span, KILN_OK);
    if (w->code->cache != KILN_CACHE_HIT)
        return false;
    bool ok = adopt(ctx, &w, 1, so, n, NULL, msg) == KILN_OK;
    ctx->al.fn(ctx->al.user, so, n, 0);
    if (!ok)
        w->code->cache = KILN_CACHE_STALE;
    return ok;
}

/* Text that is counted first and written the second time. */
struct sink {
    char *out; /* NULL: count */
    size_t n;
};

static void put(struct sink *k, const char *p, size_t n)
{
    if (k->out)
        memcpy(k->out + k->n, p, n);
    k->n += n;
}

static void putf(struct sink *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void putf(struct sink *k, const char *fmt, ...)
{
    char line[300];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    put(k, line, n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* The file: prelude, then each kernel under its name with its key beside it. */
static size_t print_file(const kiln_context *ctx, struct kl_want **w, size_t n, const char *file,
                         char *out)
{
    struct sink k = {out, 0};
    if (file) { /* so that a debugger finds it; standard input has no name */
        putf(&k, "#line 1 \"");
        for (const char *p = file; *p; p++)
            putf(&k, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
        putf(&k, "\"\n");
    }
    put(&k, ctx->prelude, ctx->nprelude);
    for (size_t i = 0; i < n; i++) {
        char hex[17];
        kl_hex(hex, w[i]->key, 8);
        putf(&k, "\n/* %.100s */\n#undef KILN_KERNEL\n#define KILN_KERNEL k_%s\n", w[i]->name, hex);
        put(&k, w[i]->text, w[i]->len);
        putf(&k,
             "\n__attribute__((visibility(\"default\")))\n"
             "const unsigned char kiln_key_%s[32] = {",
             hex);
        for (int b = 0; b < 32; b++)
            putf(&k, b ? ", %d" : "%d", w[i]->key[b]);
        putf(&k, "};\n");
    }
    return k.n;
}

static kiln_status compile(kiln_context *ctx, struct kl_want **w, size_t n, bool *kept,
                           char msg[KL_CC_MSG])
{
    char hex[17], name[160], path[4096] = "";
    void *so;
    size_t len;
    kl_hex(hex, w[0]->key, 8);
    snprintf(name, sizeof name, "%.100s-%s", w[0]->name, hex);
    if (ctx->opt.keep_dir)
        snprintf(path, sizeof path, "%.3800s/%s.c", ctx->opt.keep_dir, name);
    const char *file = ctx->opt.keep_dir ? path : NULL;
    size_t size = print_file(ctx, w, n, file, NULL);
    char *text = ctx->al.fn(ctx->al.user, NULL, 0, size);
    if (!text)
        return KILN_E_NOMEM;
    print_file(ctx, w, n, file, text);
    kl_cc_job job = {.cc = &ctx->cc,
                     .cache = ctx->cache,
                     .text = text,
                     .len = size,
                     .level = ctx->level,
                     .debug = file != NULL,
                     .keep = ctx->opt.keep_dir,
                     .keep_name = name,
                     .timeout_ms = ctx->opt.cc_timeout_ms};
    double t = now_ms();
    struct kl_act span;
    kl_act_begin(&span, ctx, KILN_TRACE_COMPILER, w[0]->name, ctx->cc.version, size, NULL);
    kiln_status s = kl_cc_run(&ctx->al, &job, &so, &len, kept, msg);
    kl_act_cache(&span, w[0]->code->cache);
    kl_act_end(&span, s);
    t = now_ms() - t;
    ctx->al.fn(ctx->al.user, text, size, 0);
    if (s)
        return s;
    if (file)
        snprintf(path, sizeof path, "%.3800s/%s.so", ctx->opt.keep_dir, name);
    s = adopt(ctx, w, n, so, len, file && *kept ? path : NULL, msg);
    for (size_t i = 0; i < n && !s; i++) {
        char meta[512];
        w[i]->code->cc_ms = t;
        if (file)
            continue;
        snprintf(meta, sizeof meta, "kernel %.100s\nkiln %s\ncc %.120s %.200s\n", w[i]->name,
                 kiln_build_id(), ctx->cc.path, ctx->cc.version);
        kl_act_begin(&span, ctx, KILN_TRACE_CACHE, w[i]->name, "keep", len, NULL);
        kl_cache_put(ctx->cache, w[i]->key, meta, so, len);
        kl_act_end(&span, KILN_OK);
    }
    ctx->al.fn(ctx->al.user, so, len, 0);
    return s;
}

/* Build what w[0..n) claims. */
static kiln_status build(kiln_context *ctx, struct kl_want **w, size_t n, bool *kept,
                         char msg[KL_CC_MSG])
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (!from_cache(ctx, w[i]))
            w[left++] = w[i];
    return left ? compile(ctx, w, left, kept, msg) : KILN_OK;
}

/* Those that have code are ready for everybody; the others leave the table. */
static void publish(kiln_context *ctx, struct kl_want *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct kl_native *k = w[i].code;
        if (!k || !k->building)
            continue;
        k->building = false;
        w[i].done = k->fn != NULL;
        if (!k->fn) {
            drop(ctx, k);
            w[i].code = NULL;
        }
    }
    pthread_cond_broadcast(&ctx->built);
}

kiln_status kl_code_get(kiln_context *ctx, struct kl_want *w, size_t n, bool *kept,
                        char msg[KL_CC_MSG])
{
    kiln_status s = KILN_OK;
    size_t bytes = n * sizeof(struct kl_want *);
    struct kl_want **mine = n ? ctx->al.fn(ctx->al.user, NULL, 0, bytes) : NULL;
    *kept = true;
    msg[0] = 0;
    if (!n)
        return KILN_OK;
    if (!mine)
        return KILN_E_NOMEM;
    pthread_mutex_lock(&ctx->lock);
    for (bool all = false; !all && !s;) {
        size_t nmine = 0;
        all = true;
        for (size_t i = 0; i < n && !s; i++) {
            enum claim c = w[i].done ? READY : claim(ctx, &w[i]);
            if (c == MINE)
                mine[nmine++] = &w[i];
            else if (c == OTHERS)
                all = false; /* or an equal text of this call */
            else if (c == NOMEM)
                s = KILN_E_NOMEM;
        }
        if (nmine) {
            pthread_mutex_unlock(&ctx->lock);
            if (!s)
                s = build(ctx, mine, nmine, kept, msg);
            pthread_mutex_lock(&ctx->lock);
            publish(ctx, w, n);
        } else if (!all && !s) {
            pthread_cond_wait(&ctx->built, &ctx->lock);
        }
    }
    pthread_mutex_unlock(&ctx->lock);
    ctx->al.fn(ctx->al.user, mine, bytes, 0);
    return s;
}
