/* special.c - from a kernel and arguments to something that runs.
 *
 * The table of a kernel maps the bytes of kl_bound_key to what was made for them, so that a
 * launch with known types, constants and facts costs a binding and a look-up.  What is missing
 * is lowered, and for the CPU printed as C and compiled, all texts of one call together; for a
 * GPU see gpu.c. */
#include <time.h>

#include "gen/c/genc.h"
#include "gen/interp/interp.h"
#include "lib/trace.h"

enum { BUCKETS = 16 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

kiln_status kl_check_args(struct kl_call *c, const char *fn, const kiln_kernel *k,
                          const kiln_arg *args, size_t n)
{
    if (!k)
        return kl_say(c, KL_K1809, KILN_E_ARG, "%s: the kernel is NULL", fn);
    if (n && !args)
        return kl_say(c, KL_K1809, KILN_E_ARG, "%s: there are %zu arguments, but args is NULL", fn,
                      n);
    for (size_t i = 0; i < n; i++) {
        if (!args[i].name)
            return kl_say(c, KL_K1809, KILN_E_ARG, "%s: argument %zu has no name", fn, i);
        if ((args[i].kind < KILN_ARG_TENSOR || args[i].kind > KILN_ARG_UINT) &&
            (int)args[i].kind != KL_ARG_PREFER)
            return kl_say(c, KL_K1809, KILN_E_ARG, "%s: argument `%s` has the unknown kind %d", fn,
                          args[i].name, (int)args[i].kind);
        if (args[i].kind != KILN_ARG_TENSOR)
            continue;
        const kiln_tensor *t = &args[i].u.tensor;
        if (t->ndim < 0 || t->ndim > KL_MAX_DIMS)
            return kl_say(c, KL_K1809, KILN_E_ARG,
                          "%s: array `%s` has %d dimensions; 0 to %d are "
                          "possible",
                          fn, args[i].name, t->ndim, KL_MAX_DIMS);
        if (t->ndim && !t->shape)
            return kl_say(c, KL_K1809, KILN_E_ARG, "%s: array `%s` has no shape", fn, args[i].name);
        if (!kiln_dtype_size(t->dtype))
            return kl_say(c, KL_K1809, KILN_E_ARG,
                          "%s: array `%s` has the unknown element type "
                          "%d",
                          fn, args[i].name, (int)t->dtype);
        if (t->flags & ~(uint32_t)(KILN_TENSOR_UNINIT | KILN_TENSOR_DEVICE))
            return kl_say(c, KL_K1809, KILN_E_ARG, "%s: array `%s` has unknown flags (%#x)", fn,
                          args[i].name, t->flags);
    }
    return KILN_OK;
}

/* ---- the table of a kernel ---- */

static uint64_t hash_of(const char *p, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 1099511628211u;
    return h;
}

static struct kl_special *find(const kiln_kernel *k, uint64_t hash, const char *key, size_t n)
{
    if (!k->nbucket)
        return NULL;
    struct kl_special *s = k->bucket[hash & (k->nbucket - 1)];
    while (s && (s->hash != hash || s->nkey != n || memcmp(s->key, key, n) != 0))
        s = s->next;
    return s;
}

static bool grow(kiln_kernel *k)
{
    const kl_alloc *al = &k->mod->ctx->al;
    uint32_t n = k->nbucket ? k->nbucket * 2 : BUCKETS;
    if (k->nspecial < k->nbucket)
        return true;
    struct kl_special **b = al->fn(al->user, NULL, 0, n * sizeof *b);
    if (!b)
        return k->nbucket != 0; /* longer chains will do */
    memset(b, 0, n * sizeof *b);
    for (uint32_t i = 0; i < k->nbucket; i++)
        for (struct kl_special *s = k->bucket[i], *next; s; s = next) {
            next = s->next;
            s->next = b[s->hash & (n - 1)];
            b[s->hash & (n - 1)] = s;
        }
    if (k->bucket)
        al->fn(al->user, k->bucket, k->nbucket * sizeof *b, 0);
    k->bucket = b;
    k->nbucket = n;
    return true;
}

void kl_special_free(kiln_context *ctx, struct kl_special *s)
{
    kl_code_drop(ctx, s->code);
    kl_gpu_free(ctx, s);
    kl_arena_free(&s->ir);
    kl_arena_free(&s->a);
    ctx->al.fn(ctx->al.user, s, sizeof *s, 0);
}

/* Enter what is new; where another thread was faster, its one is taken. */
static kiln_status enter(struct kl_item *it)
{
    kiln_kernel *k = it->k;
    kiln_status s = KILN_OK;
    if (!it->fresh)
        return s;
    pthread_mutex_lock(&k->lock);
    struct kl_special *have = find(k, it->s->hash, it->s->key, it->s->nkey);
    if (!have && grow(k)) {
        struct kl_special **b = &k->bucket[it->s->hash & (k->nbucket - 1)];
        it->s->next = *b;
        *b = it->s;
        k->nspecial++;
        it->fresh = false;
    } else if (!have) {
        s = KILN_E_NOMEM;
    }
    pthread_mutex_unlock(&k->lock);
    if (have) {
        kl_special_free(k->mod->ctx, it->s);
        it->s = have;
        it->fresh = false;
    }
    return s;
}

/* ---- making one ---- */

static kiln_status bind(struct kl_call *c, void *arg)
{
    struct kl_item *it = arg;
    kiln_module *m = it->k->mod;
    if (!kl_bind(&c->tmp, m->ast, it->k->node, it->args, it->n, 0,
                 kl_num_sms(m->ctx), &it->bound, c->d))
        return KILN_E_ARG;
    kl_buf b = {.a = &c->tmp};
    kl_bound_key(&b, &it->bound);
    if (kl_on_gpu(m->ctx)) {
        it->facts = kl_facts(it->k, &it->bound);
        kl_putf(&b, ";facts %u", it->facts);
    }
    uint64_t hash = hash_of(kl_buf_str(&b), b.n);
    pthread_mutex_lock(&it->k->lock); /* nothing raises while it is held */
    it->s = find(it->k, hash, b.s, b.n);
    pthread_mutex_unlock(&it->k->lock);
    if (it->s)
        return KILN_OK;
    it->s = m->ctx->al.fn(m->ctx->al.user, NULL, 0, sizeof *it->s);
    if (!it->s)
        return KILN_E_NOMEM;
    memset(it->s, 0, sizeof *it->s);
    it->fresh = true;
    it->s->hash = hash;
    it->s->a.env = it->s->ir.env = &c->env;
    it->s->key = kl_strndup(&it->s->a, b.s, b.n);
    it->s->nkey = b.n;
    it->s->info.device = m->ctx->device;
    return KILN_OK;
}

static kiln_status lower(struct kl_call *c, void *arg)
{
    struct kl_item *it = arg;
    struct kl_special *s = it->s;
    kl_fn *f = kl_lower(&s->ir, it->k->mod->ast, &it->bound, c->d);
    if (!f)
        return KILN_E_COMPILE;
    s->fn = f;
    it->ir = f;
    s->nslot = f->nparam;
    s->slot = kl_new_n(&s->a, struct kl_slotref, f->nparam + 1);
    for (uint32_t i = 0; i < f->nparam; i++)
        s->slot[i] = (struct kl_slotref){f->param[i].use, f->param[i].decl};
    return KILN_OK;
}

const char *const kl_not_interp[] = {"prefetch", NULL};

/* For the context's level. */
static kiln_status passes(struct kl_call *c, void *arg)
{
    struct kl_item *it = arg;
    const kiln_context *ctx = it->k->mod->ctx;
    const kl_pipeline p = {
        .level = ctx->opt.opt_level ? ctx->opt.opt_level : 2,
        .skip = it->s->info.device == KILN_DEVICE_INTERP ? kl_not_interp : NULL};
    const struct kl_target target = {.fused = it->s->info.device == KILN_DEVICE_CPU};
    (void)c;
    kl_run_passes(it->ir, &p, &target);
    return KILN_OK;
}

/* IR as C.  The name is a macro, so that equal kernels have equal texts. */
static kiln_status print_c(struct kl_call *c, void *arg)
{
    struct kl_item *it = arg;
    struct kl_special *s = it->s;
    const kiln_context *ctx = it->k->mod->ctx;
    kl_buf b = {.a = &c->tmp};
    kl_cinfo info = {0};
    kl_c_emit(&b, s->fn, "KILN_KERNEL", ctx->opt.keep_dir != NULL, &info);
    int64_t *extra = kl_new_n(&s->a, int64_t, info.nextra + 1);
    if (info.nextra)
        memcpy(extra, info.extra, info.nextra * sizeof *extra);
    s->extra = extra;
    s->nextra = info.nextra;
    s->scratch = s->info.scratch_bytes = info.scratch;
    it->want = (struct kl_want){.name = it->k->name, .text = kl_buf_str(&b), .len = b.n};
    kl_code_key(ctx, it->want.text, it->want.len, it->want.key);
    return KILN_OK;
}

/* print_c, with a limit of the back end as an answer rather than an error. */
static kiln_status print_or_refuse(struct kl_call *c, struct kl_item *it)
{
    uint32_t before = c->d->nerr;
    jmp_buf here, *const outer = c->env.fail;
    c->env.fail = &here;
    if (setjmp(here) == 0) {
        kiln_status s = print_c(c, it);
        c->env.fail = outer;
        return s;
    }
    c->env.fail = outer;
    if (c->env.status != KILN_E_UNSUPPORTED || c->d->nerr != before)
        longjmp(*outer, 1);
    it->s->info.device = KILN_DEVICE_INTERP;
    kl_diag(c->d, KL_K1807, it->k->node->name_span, "kernel `%s` is interpreted: %s", it->k->name,
            c->env.msg);
    return KILN_OK;
}

static kiln_status emit(struct kl_call *c, void *arg)
{
    struct kl_item *it = arg;
    return kl_on_gpu(it->k->mod->ctx) ? kl_gpu_print(c, it) : print_or_refuse(c, it);
}

/* A step of what leads to a launch, which listeners hear of. */
static kiln_status step(struct kl_call *c, kiln_trace_kind kind, kl_body *body, struct kl_item *it)
{
    struct kl_act span;
    kl_act_begin(&span, it->k->mod->ctx, kind, it->k->name, NULL, 0, NULL);
    return kl_act_end(&span, kl_guarded(c, &it->k->mod->ast->src, body, it));
}

static kiln_status front(struct kl_call *c, struct kl_item *it)
{
    const kiln_context *ctx = it->k->mod->ctx;
    kiln_status s = step(c, KILN_TRACE_LOWER, lower, it);
    if (!s)
        s = step(c, KILN_TRACE_PASSES, passes, it);
    if (!s && (ctx->device == KILN_DEVICE_CPU || kl_on_gpu(ctx)))
        s = step(c, KILN_TRACE_EMIT, emit, it);
    return s;
}

/* ---- all of them ---- */

/* The command that the last diagnostic shows speaks of a file that nobody has. */
static kiln_status note_keep(struct kl_call *c, void *arg)
{
    (void)arg;
    if (c->d->list.n)
        kl_note(c->d->list.v[c->d->list.n - 1], (kl_span){0, 0},
                "FILE.c was not kept; run again with --keep DIR (keep_dir of kiln_options) to get "
                "it");
    return KILN_OK;
}

static kiln_status say_failed(struct kl_call *c, enum kl_code code, kiln_status s, const char *msg)
{
    kl_say(c, code, s, "%s", msg);
    if (strstr(msg, " FILE.c"))
        kl_guarded(c, NULL, note_keep, NULL);
    return s;
}

/* Compile the texts.  With the device chosen automatically a failing compiler is no error. */
static kiln_status compile(struct kl_call *c, kiln_context *ctx, struct kl_item *item, size_t n)
{
    char msg[KL_CC_MSG];
    bool kept;
    size_t nw = 0, bytes = n * sizeof(struct kl_want);
    struct kl_want *w = ctx->al.fn(ctx->al.user, NULL, 0, bytes);
    if (!w)
        return KILN_E_NOMEM;
    for (size_t i = 0; i < n; i++)
        if (item[i].fresh && item[i].want.text)
            w[nw++] = item[i].want;
    kiln_status s = kl_code_get(ctx, w, nw, &kept, msg);
    for (size_t i = 0, j = 0; i < n; i++) {
        struct kl_special *sp = item[i].s;
        if (!item[i].fresh || !item[i].want.text)
            continue;
        sp->code = w[j++].code;
        if (!sp->code) {
            sp->info.device = KILN_DEVICE_INTERP;
            continue;
        }
        sp->info.cache = sp->code->cache;
        sp->info.cc_ms = sp->code->cc_ms;
        sp->info.load_ms = sp->code->load_ms;
        sp->fn = NULL;
        kl_arena_free(&sp->ir);
    }
    ctx->al.fn(ctx->al.user, w, bytes, 0);
    if (!kept && ctx->opt.keep_dir)
        kl_say(c, KL_K1808, KILN_OK, "generated code cannot be written to %s", ctx->opt.keep_dir);
    if (s && s != KILN_E_NOMEM) {
        if (ctx->opt.device == KILN_DEVICE_AUTO)
            return say_failed(c, KL_K1806, KILN_OK, msg);
        say_failed(c, KL_K1805, s, msg);
    }
    return s;
}

/* The same kernel with the same key may stand in a call more than once: one of them is made. */
static void join_equal(kiln_context *ctx, struct kl_item *item, size_t i)
{
    struct kl_item *it = &item[i];
    for (size_t j = 0; j < i; j++) {
        const struct kl_item *o = &item[j];
        if (!o->fresh || o->k != it->k || o->s->hash != it->s->hash || o->s->nkey != it->s->nkey ||
            memcmp(o->s->key, it->s->key, it->s->nkey) != 0)
            continue;
        kl_special_free(ctx, it->s);
        it->s = NULL;
        it->fresh = false;
        it->same = o;
        return;
    }
}

/* One line for the log: what was made for which types and constants, and how long it took. */
static void log_made(const kiln_context *ctx, const struct kl_item *it)
{
    static const char *const device[] = {"", "interpreter", "CPU", "CUDA", "SIM"};
    static const char *const cache[] = {"off", "hit", "miss", "stale"};
    const kiln_spec_info *i = &it->s->info;
    kl_log(ctx,
           "kernel `%s` [%.*s] for %s: front end %.2f ms, compiler %.2f ms, loading %.2f ms, cache %s",
           it->k->name, it->s->nkey < 200 ? (int)it->s->nkey : 200, it->s->key, device[i->device],
           i->front_ms, i->cc_ms, i->load_ms, cache[i->cache]);
}

static kiln_status make(struct kl_call *c, kiln_context *ctx, struct kl_item *item, size_t n)
{
    bool texts = false, together = ctx->cuda && n > 1;
    for (size_t i = 0; i < n; i++) {
        kiln_status s = step(c, KILN_TRACE_BIND, bind, &item[i]);
        if (s)
            return s;
        if (item[i].fresh)
            join_equal(ctx, item, i);
        if (!item[i].fresh)
            continue;
        item[i].part = together ? (uint32_t)i + 1 : 0;
        double t = now_ms();
        s = front(c, &item[i]);
        item[i].s->info.front_ms = now_ms() - t;
        if (!s && item[i].ptx) {
            kl_arena_free(&item[i].s->ir);
            if (!together)
                s = kl_gpu_make(c, &item[i]);
        }
        if (s)
            return s;
        texts |= item[i].want.text != NULL;
    }
    if (together) {
        kiln_status s = kl_gpu_make_many(c, item, n);
        if (s)
            return s;
    }
    if (texts) {
        kiln_status s = compile(c, ctx, item, n);
        if (s)
            return s;
    }
    for (size_t i = 0; i < n; i++) {
        if (item[i].fresh) {
            struct kl_special *sp = item[i].s;
            log_made(ctx, &item[i]);
            sp->env.al = &ctx->al;
            sp->a.env = sp->ir.env = &sp->env;
        }
        kiln_status s = enter(&item[i]);
        if (s)
            return s;
        if (item[i].same)
            item[i].s = item[i].same->s;
    }
    return KILN_OK;
}

kiln_status kl_prepare(struct kl_call *c, struct kl_item *item, size_t n)
{
    kiln_context *ctx = n ? item[0].k->mod->ctx : NULL;
    kiln_status s = n ? make(c, ctx, item, n) : KILN_OK;
    for (size_t i = 0; s && i < n; i++)
        if (item[i].fresh)
            kl_special_free(ctx, item[i].s);
    return s;
}
