/* prune.c - candidates of `kiln tune` that need not be compiled.
 *
 * What each of them would need is found out by several threads, from the front end and the text of
 * the back end; then they are looked at one after the other, so that what is said depends on no
 * thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tune/tune.h"

/* By the first error: a limit is told apart from a mistake. */
static enum kl_fate fate_of(kiln_status st, const kiln_diags *d)
{
    const char *code = "";
    for (size_t i = kiln_diags_count(d); i-- > 0;)
        if (kiln_diags_at(d, i)->severity == KILN_ERROR)
            code = kiln_diags_at(d, i)->code;
    if (st == KILN_E_UNSUPPORTED || strcmp(code, "K0802") == 0)
        return KL_FATE_unfit;
    if (strcmp(code, "K0712") == 0)
        return KL_FATE_required;
    return st == KILN_E_COMPILE ? KL_FATE_failed : KL_FATE_refused;
}

static int64_t programs(const kl_tool_need *n)
{
    int64_t p = n->grid[0] * n->grid[1] * n->grid[2];
    return p * (n->cluster ? n->cluster : 1);
}

/* Threads that have no element of their own in any tile: they would repeat what others do. */
static bool spare(const kl_tool_need *n)
{
    uint64_t threads = (uint64_t)n->threads * (n->cluster ? n->cluster : 1);
    return threads > 32 && threads > n->widest;
}

/* Not given and optional: no launch of the search has it, whatever its extents would be. */
static bool absent(kiln_kernel *k, const kl_tool_param *p)
{
    struct kl_msg m;
    const kiln_param_info *info = kl_param_find(k, p->name, &m);
    return !p->given && info && info->is_optional;
}

/* The name of an array whose extents depend on what varies; NULL: they are those of the default. */
static const char *other_shape(kiln_kernel *k, const kl_tool_param *p, const kl_tool_param *first,
                               size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i].kind == KILN_PARAM_ARRAY && !absent(k, &p[i]) &&
            (p[i].ndim != first[i].ndim ||
             memcmp(p[i].shape, first[i].shape, (size_t)p[i].ndim * sizeof *p[i].shape) != 0))
            return p[i].name;
    return NULL;
}

/* How many programs the device runs at once; 0: the executor stands for a device of any size. */
static int32_t at_once(const struct kl_search *s)
{
    return s->src->dev->kind == KILN_DEVICE_SIM ? 0
                                                : kiln_context_device_info(s->src->dev->s.ctx)->sms;
}

/* ---- what candidates need ---- */

struct answer {
    kiln_status st;
    kiln_diags *d;
    const char *other; /* an array of another shape */
};

/* Candidates are taken in turn by all threads. */
struct asking {
    struct kl_search *s;
    const struct kl_args *a;
    struct answer *answer; /* NULL: what the model counts is asked for */
    atomic_size_t next;
};

static void ask(struct asking *q, size_t i)
{
    struct kl_search *s = q->s;
    struct kl_candidate *c = &s->c[i];
    struct answer *o = &q->answer[i];
    size_t n = kiln_kernel_param_count(s->src->k);
    kiln_arg *arg = kl_search_args(s, q->a->arg, q->a->n, 1, c->v);
    kl_tool_param *p = kl_xalloc((n + 1) * sizeof *p);
    o->st = kl_tool_resolve(s->src->k, arg, q->a->n, p, NULL, &o->d);
    if (!o->st) {
        kiln_diags_free(o->d);
        o->other = other_shape(s->src->k, p, s->param, n);
        o->st = kl_tool_need_get(s->src->k, arg, q->a->n, 0, &c->need, &o->d);
    }
    free(arg);
    free(p);
}

static void count(struct asking *q, size_t i)
{
    struct kl_candidate *c = &q->s->c[i];
    if (c->fate != KL_FATE_alive)
        return;
    kiln_arg *arg = kl_search_args(q->s, q->a->arg, q->a->n, 1, c->v);
    kl_tool_need_get(q->s->src->k, arg, q->a->n, 1, &c->need, NULL);
    free(arg);
}

static void *work(void *user)
{
    struct asking *q = user;
    size_t i;
    while ((i = atomic_fetch_add(&q->next, 1)) < q->s->n)
        if (q->answer)
            ask(q, i);
        else
            count(q, i);
    return NULL;
}

static void ask_all(struct asking *q)
{
    enum { MOST = 32 };
    pthread_t thread[MOST];
    size_t want = kiln_context_threads(q->s->src->dev->s.ctx), n = 0;
    want = want > MOST ? MOST : want;
    want = want > q->s->n ? q->s->n : want;
    while (n + 1 < want && pthread_create(&thread[n], NULL, work, q) == 0)
        n++;
    work(q);
    while (n > 0)
        pthread_join(thread[--n], NULL);
}

/* ---- one after the other ---- */

static bool prune_one(struct kl_search *s, size_t i, const struct answer *a)
{
    struct kl_candidate *c = &s->c[i], *first = &s->c[0];
    const kiln_device_info *dev = kiln_context_device_info(s->src->dev->s.ctx);
    const char *other = a->other;
    kiln_status st = a->st;
    kiln_diags *d = a->d;
    if (st) {
        enum kl_fate fate = fate_of(st, d);
        return kl_search_end(s, c, fate, kl_search_said(st, d));
    }
    kiln_diags_free(d);
    if (other)
        return kl_search_end(s, c, KL_FATE_shapes, kl_xprintf("%s", other));
    uint64_t shared = dev->shared_bytes ? dev->shared_bytes : c->need.shared_most;
    if (shared && c->need.shared_bytes > shared)
        return kl_search_end(s, c, KL_FATE_unfit,
                   kl_xprintf("%u bytes of shared memory, and a block may have %llu",
                              c->need.shared_bytes, (unsigned long long)shared));
    if (c->need.shared_most && !c->need.blocks)
        return kl_search_end(s, c, KL_FATE_unfit,
                   kl_xprintf("no block of %u threads and %u bytes fits on a multiprocessor",
                              c->need.threads, c->need.shared_bytes));
    for (size_t j = 0; j < i; j++)
        if ((s->c[j].fate == KL_FATE_alive) &&
            memcmp(s->c[j].need.code, c->need.code, sizeof c->need.code) == 0) {
            char *text = kl_search_text(s, &s->c[j]);
            kl_search_end(s, c, KL_FATE_same, kl_xprintf("as %s", j ? text : "the default"));
            free(text);
            return false;
        }
    int32_t most = at_once(s);
    if (i && 2 * programs(&c->need) <= most && programs(&first->need) >= most)
        return kl_search_end(s, c, KL_FATE_idle,
                   kl_xprintf("%lld on a device that runs %d at once",
                              (long long)programs(&c->need), most));
    if (i && spare(&c->need) && !spare(&first->need))
        return kl_search_end(s, c, KL_FATE_spare,
                   kl_xprintf("%u threads for tiles of %llu elements",
                              c->need.threads * c->need.cluster,
                              (unsigned long long)c->need.widest));
    uint64_t cache = s->src->dev->cache_bytes;
    if (i && !c->need.threads && cache && c->need.scratch_bytes > cache &&
        first->need.scratch_bytes <= cache)
        return kl_search_end(s, c, KL_FATE_scratch,
                   kl_xprintf("tiles of %llu bytes a thread, and the cache has %llu",
                              (unsigned long long)c->need.scratch_bytes,
                              (unsigned long long)cache));
    return true;
}

/* Whether j, with as many threads, does no more of anything than i, moves or computes less than half
 * as much, and keeps the device as busy with no more shared memory. */
static bool dominates(const struct kl_search *s, const struct kl_candidate *j,
                      const struct kl_candidate *i)
{
    const kl_tool_need *a = &j->need, *b = &i->need;
    int64_t busy = 2 * (int64_t)at_once(s);
    int64_t most = programs(b) < busy || !busy ? programs(b) : busy;
    return a->counted && b->counted && a->sectors <= b->sectors && a->wavefronts <= b->wavefronts &&
           a->work <= b->work && a->shared_bytes <= b->shared_bytes && a->threads == b->threads &&
           a->warps >= b->warps && programs(a) >= most &&
           (2 * a->sectors < b->sectors || 2 * a->work < b->work);
}

static void prune_dominated(struct kl_search *s, struct asking *q)
{
    q->answer = NULL;
    atomic_store(&q->next, 0);
    if (kl_search_gpu(s))
        ask_all(q);
    for (size_t i = 1; i < s->n; i++)
        for (size_t j = 0; j < s->n && s->c[i].fate == KL_FATE_alive; j++)
            if (j != i && s->c[j].fate == KL_FATE_alive && dominates(s, &s->c[j], &s->c[i])) {
                const kl_tool_need *n = &s->c[j].need, *b = &s->c[i].need;
                char *text = kl_search_text(s, &s->c[j]);
                s->c[i].by = j;
                kl_search_end(s, &s->c[i], KL_FATE_dominated,
                    kl_xprintf("by %s: %.2fx the sectors, %.2fx the work", j ? text : "the default",
                               (double)b->sectors / (double)(n->sectors + !n->sectors),
                               (double)b->work / (double)(n->work + !n->work)));
                free(text);
            }
}

void kl_search_prune(struct kl_search *s)
{
    struct kl_args a;
    double start = kl_bench_now(NULL);
    kiln_diags *d = NULL;
    if (!kl_args_set(&a, s->src->k, s->base.as.v, s->base.as.n, KL_ARGS_SHAPES, &s->why))
        return;
    s->param = kl_xalloc((kiln_kernel_param_count(s->src->k) + 1) * sizeof *s->param);
    kl_tool_resolve(s->src->k, a.arg, a.n, s->param, NULL, &d); /* an error is the first one's, too */
    kiln_diags_free(d);
    struct asking q = {.s = s, .a = &a, .answer = kl_xalloc((s->n + 1) * sizeof *q.answer)};
    struct answer *all = q.answer;
    ask_all(&q);
    for (size_t i = 0; i < s->n; i++)
        prune_one(s, i, &all[i]);
    prune_dominated(s, &q);
    free(all);
    kl_args_free(&a);
    s->prune_s = kl_bench_now(NULL) - start;
}
