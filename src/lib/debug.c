/* debug.c - what assert and print of a kernel left behind (lang/debug.h).
 *
 * Host devices and SIM: memory for one launch, looked at when it has ended.  CUDA: memory of the
 * kernel on the device, shared by its launches and those of graphs, which is looked at and cleared
 * by whatever waits; a list of the context has the kernels that have some. */
#include "lang/debug.h"

#include <stdio.h>

#include "lib/lib.h"

static size_t bytes_of(const kiln_kernel *k)
{
    return (size_t)kl_debug_words(k->node) * 8;
}

/* ---- text of values ---- */

static void put_element(kl_buf *b, enum kl_elem el, uint64_t w)
{
    if (el == KL_bool)
        kl_puts(b, w ? "true" : "false");
    else if (el == KL_u64)
        kl_putf(b, "%llu", (unsigned long long)w);
    else if (!kl_is_float(el))
        kl_putf(b, "%lld", (long long)w);
    else if (el == KL_f64)
        kl_putf(b, "%.17g", kl_elem_double(KL_f64, w));
    else
        kl_putf(b, "%.9g", kl_elem_double(KL_f32, w & UINT32_MAX));
}

/* A tile as C writes its initial value.  dim[rank] sizes; w goes on behind it. */
static const uint64_t *put_tile(kl_buf *b, enum kl_elem el, uint32_t rank, const uint64_t *dim,
                                const uint64_t *w)
{
    if (!rank) {
        put_element(b, el, *w);
        return w + 1;
    }
    kl_puts(b, "{");
    for (uint64_t i = 0; i < dim[0]; i++) {
        kl_puts(b, i ? ", " : "");
        w = put_tile(b, el, rank - 1, dim + 1, w);
    }
    kl_puts(b, "}");
    return w;
}

static const uint64_t *put_value(kl_buf *b, const uint64_t *w)
{
    uint64_t head = *w++, dim[KL_MAX_RANK];
    uint32_t rank = (uint32_t)(head >> 8 & 255);
    for (uint32_t d = 0; d < rank && d < KL_MAX_RANK; d++)
        dim[d] = head >> (16 + 12 * d) & 4095;
    return put_tile(b, (enum kl_elem)(head & 255), rank < KL_MAX_RANK ? rank : KL_MAX_RANK, dim, w);
}

/* ---- reporting ---- */

struct report {
    kiln_kernel *k;
    const uint64_t *w;
    bool failed; /* an assertion */
};

static void print_record(struct kl_call *c, const kiln_kernel *k, const uint64_t *w)
{
    const kiln_options *o = &k->mod->ctx->opt;
    const kl_node *call = kl_debug_call(k->mod->ast, w[KL_PRINT_WHERE]);
    const uint64_t *v = w + KL_PRINT_HEAD;
    kl_buf b = {.a = &c->tmp};
    if (!call || !call->nkid || !call->kid[0]->name)
        return;
    for (const char *s = call->kid[0]->name; *s; s++) {
        if (*s == '{' && s[1] == '}')
            v = put_value(&b, v);
        else
            kl_buf_put(&b, s, 1);
        s += *s == '{' || *s == '}';
    }
    int64_t program[3];
    for (int i = 0; i < 3; i++)
        program[i] = (int64_t)w[KL_PRINT_PROGRAM + i];
    o->print(o->print_user, kl_buf_str(&b), b.n, program);
}

static void report_prints(struct kl_call *c, const struct report *r)
{
    const kiln_options *o = &r->k->mod->ctx->opt;
    uint64_t most = kl_debug_words(r->k->node) - KL_DEBUG_HEAD, at = 0, seen = 0;
    uint64_t used = r->w[KL_DEBUG_USED], end = used < most ? used : most;
    if (!o->print)
        return;
    while (at + KL_PRINT_HEAD <= end) {
        const uint64_t *w = r->w + KL_DEBUG_HEAD + at;
        uint64_t size = w[KL_PRINT_SIZE];
        if (size < KL_PRINT_HEAD || size > end - at)
            break;
        print_record(c, r->k, w);
        at += size;
        seen++;
    }
    if (seen == r->w[KL_DEBUG_PRINTS])
        return;
    const int64_t none[3] = {-1, -1, -1};
    const char *text = kl_printf(&c->tmp, "%llu more prints of kernel `%s` did not fit the buffer",
                                 (unsigned long long)(r->w[KL_DEBUG_PRINTS] - seen), r->k->name);
    o->print(o->print_user, text, strlen(text), none);
}

static void report_failure(struct kl_call *c, const struct report *r)
{
    const uint64_t *w = r->w;
    const kl_node *call = kl_debug_call(r->k->mod->ast, w[KL_DEBUG_WHERE]);
    kl_span s = {(uint32_t)w[KL_DEBUG_WHERE], (uint32_t)(w[KL_DEBUG_WHERE] >> 32)};
    kl_buf b = {.a = &c->tmp};
    int last = w[KL_DEBUG_PROGRAM + 2] ? 2 : w[KL_DEBUG_PROGRAM + 1] ? 1 : 0;
    const kl_node *clauses = r->k->node->kid[1];
    for (uint32_t i = 0; i < clauses->nkid; i++)
        if (clauses->kid[i]->kind == KL_N_GRID)
            last = (int)clauses->kid[i]->nkid - 1;
    kl_putf(&b, "in program ");
    for (int i = 0; i <= last; i++)
        kl_putf(&b, "%s%llu", i ? ", " : last > 0 ? "(" : "", (unsigned long long)w[KL_DEBUG_PROGRAM + i]);
    kl_putf(&b, "%s of kernel `%s`", last > 0 ? ")" : "", r->k->name);
    if ((int64_t)w[KL_DEBUG_ELEMENT] >= 0) {
        uint64_t dim[4], at = w[KL_DEBUG_ELEMENT], place[4];
        int rank = 0;
        for (int i = 0; i < 4; i++)
            dim[i] = w[KL_DEBUG_SHAPE + i / 2] >> 32 * (i % 2) & UINT32_MAX;
        while (rank < 4 && dim[rank])
            rank++;
        for (int i = rank; i-- > 0; at /= dim[i])
            place[i] = at % dim[i];
        kl_puts(&b, ", first at element ");
        for (int i = 0; i < rank; i++)
            kl_putf(&b, "[%llu]", (unsigned long long)place[i]);
    }
    struct kl_diag *g = kl_diag(c->d, KL_K1702, s, "assertion failed: %s",
                                call && call->nkid > 1 && call->kid[1]->name ? call->kid[1]->name : "?");
    kl_note(g, (kl_span){0, 0}, "%s", kl_buf_str(&b));
    if (w[KL_DEBUG_FAILED] > 1)
        kl_note(g, (kl_span){0, 0}, "%llu programs failed; this one was the first to record it",
                (unsigned long long)w[KL_DEBUG_FAILED]);
}

static kiln_status report(struct kl_call *c, void *arg)
{
    struct report *r = arg;
    r->failed = r->w[KL_DEBUG_FAILED] != 0;
    if (kl_debug_uses(r->k->node) & KL_DEBUG_PRINT)
        report_prints(c, r);
    if (r->failed)
        report_failure(c, r);
    return KILN_OK;
}

static kiln_status tell(struct kl_call *c, kiln_kernel *k, const uint64_t *w, kiln_status s)
{
    struct report r = {k, w, false};
    kiln_status t = kl_guarded(c, &k->mod->ast->src, report, &r);
    if (!t && r.failed)
        t = KILN_E_BOUNDS;
    return s ? s : t;
}

/* ---- memory ---- */

/* On the device, once a kernel, so that a recorded graph finds it again.  Under the context's
 * lock. */
static kiln_status device_memory(kiln_kernel *k, kl_cudaerr *e)
{
    kiln_context *ctx = k->mod->ctx;
    uint64_t at;
    kiln_status s = kl_cuda_alloc_zero(ctx->cuda, bytes_of(k), &at, e);
    if (s)
        return s;
    k->debug = at;
    k->next_debug = ctx->debug;
    ctx->debug = k;
    return KILN_OK;
}

kiln_status kl_debug_begin(struct kl_call *c, struct kl_item *it, uint64_t **words)
{
    kiln_kernel *k = it->k;
    kiln_context *ctx = k->mod->ctx;
    size_t n = bytes_of(k);
    *words = NULL;
    if (!n)
        return KILN_OK;
    struct kl_boundparam *p = &it->bound.param[k->nparam];
    if (ctx->cuda) {
        kl_cudaerr e = {0};
        pthread_mutex_lock(&ctx->lock);
        kiln_status s = k->debug ? KILN_OK : device_memory(k, &e);
        pthread_mutex_unlock(&ctx->lock);
        p->data = (void *)(uintptr_t)k->debug;
        p->lo = p->data;
        p->hi = (const char *)p->data + n;
        return kl_say_cuda(c, s, &e);
    }
    uint64_t *w = ctx->al.fn(ctx->al.user, NULL, 0, n);
    if (!w)
        return KILN_E_NOMEM;
    memset(w, 0, n);
    p->data = *words = w;
    p->lo = w;
    p->hi = (const char *)w + n;
    return KILN_OK;
}

kiln_status kl_debug_end(struct kl_call *c, const struct kl_item *it, uint64_t *words,
                         kiln_status s)
{
    const kl_alloc *al = &it->k->mod->ctx->al;
    s = tell(c, it->k, words, s);
    al->fn(al->user, words, bytes_of(it->k), 0);
    return s;
}

/* What a kernel has on the device, which is then empty again.  head: its first words, or all. */
static kiln_status take(kiln_kernel *k, uint64_t *w, kl_cudaerr *e)
{
    kl_cuda *cu = k->mod->ctx->cuda;
    enum { HEAD = KL_DEBUG_HEAD * 8 };
    kiln_status s = kl_cuda_download(cu, w, k->debug, HEAD, NULL, e);
    if (!s)
        s = kl_cuda_stream_sync(cu, NULL, e);
    if (s || !(w[KL_DEBUG_FAILED] | w[KL_DEBUG_PRINTS]))
        return s;
    uint64_t more = w[KL_DEBUG_USED] * 8, most = bytes_of(k) - HEAD;
    more = more < most ? more : most;
    if (more)
        s = kl_cuda_download(cu, w + KL_DEBUG_HEAD, k->debug + HEAD, more, NULL, e);
    if (!s)
        s = kl_cuda_fill(cu, k->debug, (HEAD + more) / 8, 8, 8, 0, NULL, e);
    return s ? s : kl_cuda_stream_sync(cu, NULL, e);
}

kiln_status kl_debug_collect(struct kl_call *c, kiln_context *ctx)
{
    kiln_status s = KILN_OK;
    kl_cudaerr e = {0};
    if (ctx->recordings)
        return KILN_OK; /* waiting for the context would spoil them; a later call reports */
    /* a stream was waited for; others may be in the middle of a record */
    kiln_status t = kl_cuda_sync(ctx->cuda, &e);
    pthread_mutex_lock(&ctx->lock);
    kiln_kernel *k = ctx->debug;
    pthread_mutex_unlock(&ctx->lock);
    for (; k && !t; k = k->next_debug) {
        size_t n = bytes_of(k);
        uint64_t *w = ctx->al.fn(ctx->al.user, NULL, 0, n);
        if (!w)
            return s ? s : KILN_E_NOMEM;
        pthread_mutex_lock(&k->lock);
        t = take(k, w, &e);
        pthread_mutex_unlock(&k->lock);
        if (!t && (w[KL_DEBUG_FAILED] | w[KL_DEBUG_PRINTS]))
            s = tell(c, k, w, s);
        ctx->al.fn(ctx->al.user, w, n, 0);
    }
    return s ? s : kl_say_cuda(c, t, &e);
}

kiln_status kl_debug_sync(kiln_context *ctx, kiln_status s, kiln_diags **out)
{
    struct kl_call c;
    pthread_mutex_lock(&ctx->lock);
    bool some = ctx->debug != NULL;
    pthread_mutex_unlock(&ctx->lock);
    if (s || !some || ctx->recordings)
        return s;
    s = kl_call_begin(&c, &ctx->al);
    return s ? s : kl_call_end(&c, kl_debug_collect(&c, ctx), out);
}

void kl_debug_free(kiln_kernel *k)
{
    kiln_context *ctx = k->mod->ctx;
    if (!k->debug)
        return;
    pthread_mutex_lock(&ctx->lock);
    kiln_kernel **p = &ctx->debug;
    while (*p && *p != k)
        p = &(*p)->next_debug;
    if (*p)
        *p = k->next_debug;
    pthread_mutex_unlock(&ctx->lock);
    kl_cuda_free(ctx->cuda, k->debug);
}
