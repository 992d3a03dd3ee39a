/* set.c - copies of a launch's arrays on a device, which are used in turn.
 *
 * Arrays that are one memory on the host are one buffer in each copy.  What a kernel updates in
 * place is kept once more, so that every launch can start from the same values. */
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"

/* Bytes from the first element to the last one. */
static size_t span(const struct kl_arr *r)
{
    int64_t last = 0;
    for (int32_t d = 0; d < r->ndim && r->count; d++)
        last += (r->shape[d] - 1) * r->stride[d];
    return r->count ? (size_t)(last + 1) * kl_elems[r->elem].bytes : 0;
}

/* The array behind argument i, and the first argument with the same memory. */
static const struct kl_arr *array_of(const struct kl_args *a, size_t i, size_t *same)
{
    if (a->arg[i].kind != KILN_ARG_TENSOR || !a->arg[i].u.tensor.data)
        return NULL;
    *same = i;
    for (size_t j = i; j-- > 0;)
        if (a->arg[j].kind == KILN_ARG_TENSOR && a->arg[j].u.tensor.data == a->arg[i].u.tensor.data)
            *same = j;
    return kl_args_find(a, a->arg[i].name);
}

uint64_t kl_args_bytes(const struct kl_args *a)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < a->n; i++) {
        size_t same;
        const struct kl_arr *r = array_of(a, i, &same);
        sum += r && same == i ? span(r) : 0;
    }
    return sum;
}

uint64_t kl_args_traffic(const struct kl_args *a)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < a->narr; i++)
        sum += a->arr[i].count * kl_elems[a->arr[i].elem].bytes *
               ((a->arr[i].p->reads != 0) + (unsigned)(a->arr[i].p->writes != 0));
    return sum;
}

size_t kl_copies_for(uint64_t bytes, uint64_t cache)
{
    uint64_t n = bytes ? 2 * cache / bytes + 1 : KL_COPIES + 1;
    return n > KL_COPIES ? 0 : n < 2 ? 2 : (size_t)n;
}

/* Arrays whose first values matter: what the kernel writes and did not get from here. */
static bool updated(const struct kl_arr *r)
{
    return r->p->writes && !r->made && !r->p->has_init;
}

static bool make_one(struct kl_bset *b, size_t c, size_t i, struct kl_msg *m)
{
    size_t n = b->host->n, same;
    const struct kl_arr *r = array_of(b->host, i, &same);
    kiln_arg *a = &b->arg[c * n + i];
    kiln_diags *d = NULL;
    kiln_status st = KILN_OK;
    *a = b->host->arg[i];
    if (!r)
        return true;
    if (same == i) {
        st = kiln_buffer_alloc(b->dev->s.ctx, span(r), &b->buf[c * n + i], &d);
        if (!st)
            st = kiln_buffer_upload(b->buf[c * n + i], 0, r->data, span(r), NULL, &d);
    }
    if (!st && c == 0 && same == i && updated(r)) {
        b->updates = true;
        st = kiln_buffer_alloc(b->dev->s.ctx, span(r), &b->first[i], &d);
        if (!st)
            st = kiln_buffer_upload(b->first[i], 0, r->data, span(r), NULL, &d);
    }
    if (st)
        return kl_bench_why(m, r->p->name, st, d);
    kiln_diags_free(d);
    a->u.tensor.data = kiln_buffer_data(b->buf[c * n + same]);
    a->u.tensor.size_bytes = 0;
    a->u.tensor.flags = KILN_TENSOR_DEVICE;
    return true;
}

bool kl_bset_make(struct kl_bset *b, struct kl_bdev *dev, kiln_kernel *k,
                  const struct kl_args *host, size_t copies, struct kl_msg *m)
{
    *b = (struct kl_bset){.dev = dev, .host = host, .k = k, .n = copies};
    b->arg = kl_xalloc((copies * host->n + 1) * sizeof *b->arg);
    b->buf = kl_xalloc((copies * host->n + 1) * sizeof *b->buf);
    b->first = kl_xalloc((host->n + 1) * sizeof *b->first);
    b->bytes = kl_args_bytes(host);
    for (size_t c = 0; c < copies; c++)
        for (size_t i = 0; i < host->n; i++)
            if (!make_one(b, c, i, m))
                return false;
    return true;
}

void kl_bset_free(struct kl_bset *b)
{
    for (size_t i = 0; b->buf && i < b->n * b->host->n; i++)
        kiln_buffer_free(b->buf[i]);
    for (size_t i = 0; b->first && i < b->host->n; i++)
        kiln_buffer_free(b->first[i]);
    free(b->buf);
    free(b->first);
    free(b->arg);
    *b = (struct kl_bset){0};
}

bool kl_bset_launch(struct kl_bset *b, size_t copy, double *host_s, struct kl_msg *m)
{
    kiln_diags *d = NULL;
    size_t n = b->host->n;
    double t = kl_bench_now(NULL);
    kiln_status st = kiln_launch(b->k, NULL, b->arg + copy * n, n, &d);
    *host_s = kl_bench_now(NULL) - t;
    if (st)
        return kl_bench_why(m, "the launch", st, d);
    kiln_diags_free(d);
    return true;
}

bool kl_bset_restore(struct kl_bset *b, size_t copy, struct kl_msg *m)
{
    for (size_t i = 0; b->updates && i < b->host->n; i++) {
        kiln_diags *d = NULL;
        kiln_buffer *to = b->buf[copy * b->host->n + i];
        if (!b->first[i])
            continue;
        kiln_status st =
            kiln_buffer_copy(to, 0, b->first[i], 0, kiln_buffer_size(b->first[i]), NULL, &d);
        if (st)
            return kl_bench_why(m, "restoring an array", st, d);
        kiln_diags_free(d);
    }
    return true;
}

bool kl_bset_poison(struct kl_bset *b, size_t copy, uint8_t byte, struct kl_msg *m)
{
    for (size_t i = 0; i < b->host->n; i++) {
        size_t same;
        const struct kl_arr *r = array_of(b->host, i, &same);
        kiln_diags *d = NULL;
        if (!r || !r->made || same != i)
            continue;
        kiln_status st =
            kiln_buffer_fill(b->buf[copy * b->host->n + i], 0, span(r), byte, NULL, &d);
        if (st)
            return kl_bench_why(m, "filling an array", st, d);
        kiln_diags_free(d);
    }
    return true;
}

bool kl_bset_fetch(struct kl_bset *b, size_t copy, struct kl_msg *m)
{
    for (size_t i = 0; i < b->host->n; i++) {
        size_t same;
        const struct kl_arr *r = array_of(b->host, i, &same);
        kiln_diags *d = NULL;
        if (!r || !r->p->writes)
            continue;
        kiln_status st =
            kiln_buffer_download(b->buf[copy * b->host->n + same], 0, r->data, span(r), NULL, &d);
        if (st)
            return kl_bench_why(m, "reading a result", st, d);
        kiln_diags_free(d);
    }
    return true;
}

static bool check_one(struct kl_bset *b, size_t copy, size_t i, const struct kl_arr *r,
                      const struct kl_tol *tol, bool *same, struct kl_msg *m)
{
    struct kl_arr got = *r;
    struct kl_cmp c;
    char text[600];
    kiln_diags *d = NULL;
    got.owned = NULL;
    got.data = kl_array_alloc(r->p->name, span(r), m);
    if (!got.data)
        return false;
    kiln_status st =
        kiln_buffer_download(b->buf[copy * b->host->n + i], 0, got.data, span(r), NULL, &d);
    bool ok = !st || kl_bench_why(m, "reading a result", st, d);
    if (ok) {
        kiln_diags_free(d);
        if (memcmp(got.data, r->data, span(r)) != 0) {
            const struct kl_tol exact = {KL_TOL_EXACT, 0};
            kl_compare(&got, r, &exact, &c);
            uint64_t differ = c.differ;
            *same &= c.ok;
            kl_compare(&got, r, tol, &c);
            kl_cmp_text(&c, &got, tol, text, sizeof text);
            ok = c.ok ||
                 kl_msg(m, KL_RC_FINDINGS, "%s: %llu of %llu elements differ: %s", r->p->name,
                        (unsigned long long)differ, (unsigned long long)c.count, text);
        }
    }
    free(got.data);
    return ok;
}

static bool check_all(struct kl_bset *b, size_t copy, bool updates, const struct kl_tol *tol,
                      bool *same, struct kl_msg *m)
{
    *same = true;
    for (size_t i = 0; i < b->host->n; i++) {
        size_t first;
        const struct kl_arr *r = array_of(b->host, i, &first);
        if (r && r->p->writes && first == i && (updates || r->made || r->p->has_init) &&
            !check_one(b, copy, i, r, tol, same, m))
            return false;
    }
    return true;
}

bool kl_bset_check(struct kl_bset *b, size_t copy, const struct kl_tol *tol, bool *same,
                   struct kl_msg *m)
{
    return check_all(b, copy, false, tol, same, m);
}

bool kl_bset_check_all(struct kl_bset *b, size_t copy, const struct kl_tol *tol, bool *same,
                       struct kl_msg *m)
{
    return check_all(b, copy, true, tol, same, m);
}
