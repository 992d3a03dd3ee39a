/* chain.c - kernels one after the other, with the arrays between them on the device.
 *
 * Arrays of several kernels that are one memory on the host become one buffer. */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

struct place {
    void *host;
    size_t bytes;
    kiln_buffer *buf;
    bool written;
};
struct places {
    struct place *v;
    size_t n;
};

/* Bytes from the first element to the last one. */
static size_t span(const struct kl_arr *r)
{
    int64_t last = 0;
    for (int32_t d = 0; d < r->ndim && r->count; d++)
        last += (r->shape[d] - 1) * r->stride[d];
    return r->count ? (size_t)(last + 1) * kl_elems[r->elem].bytes : 0;
}

/* The array's buffer; made and filled when it is first met. */
static kiln_status resident(struct kl_session *s, struct places *all, const struct kl_arr *r,
                            void **data, kiln_diags **diags)
{
    struct place *p = NULL;
    for (size_t i = 0; i < all->n && !p; i++)
        if (all->v[i].host == r->data)
            p = &all->v[i];
    if (!p) {
        all->v = kl_xgrow(all->v, sizeof *all->v, all->n);
        p = &all->v[all->n++];
        *p = (struct place){.host = r->data, .bytes = span(r)};
        kiln_status st = kiln_buffer_create(s->ctx, p->bytes, &p->buf);
        if (!st)
            st = kiln_buffer_upload(p->buf, 0, p->host, p->bytes, NULL, diags);
        if (st)
            return st;
    }
    p->written |= r->p->writes != 0;
    *data = kiln_buffer_data(p->buf);
    return KILN_OK;
}

static kiln_status launch_one(struct kl_session *s, struct places *all, const struct kl_args *run,
                              kiln_diags **diags)
{
    kiln_arg *arg = kl_xalloc((run->n + 1) * sizeof *arg);
    kiln_status st = KILN_OK;
    memcpy(arg, run->arg, run->n * sizeof *arg);
    for (size_t i = 0; i < run->n && !st; i++) {
        const struct kl_arr *r =
            arg[i].kind == KILN_ARG_TENSOR ? kl_args_find(run, arg[i].name) : NULL;
        if (!r)
            continue;
        st = resident(s, all, r, &arg[i].u.tensor.data, diags);
        arg[i].u.tensor.size_bytes = 0;
        arg[i].u.tensor.flags |= KILN_TENSOR_DEVICE;
    }
    if (!st)
        st = kiln_launch(run->k, NULL, arg, run->n, diags);
    free(arg);
    return st;
}

/* Warnings of a launch that went well are shown at once, and of its repetitions not again. */
static void warn(const struct kl_session *s, size_t turn, kiln_status st, kiln_diags **diags)
{
    if (st)
        return;
    if (turn)
        kiln_diags_free(*diags);
    else
        kl_show_diags(*diags, stderr, s->o->color_err);
    *diags = NULL;
}

static kiln_status on_device(struct kl_session *s, struct kl_args *const *run, size_t n,
                             size_t repeat, size_t *failed, kiln_diags **diags)
{
    struct places all = {0};
    kiln_status st = KILN_OK;
    for (size_t turn = 0; turn < repeat && !st; turn++)
        for (*failed = 0; *failed < n && !st; *failed += !st) {
            st = launch_one(s, &all, run[*failed], diags);
            warn(s, turn, st, diags);
        }
    if (!st)
        st = kiln_sync(s->ctx, diags);
    for (size_t i = 0; i < all.n && !st; i++)
        if (all.v[i].written)
            st = kiln_buffer_download(all.v[i].buf, 0, all.v[i].host, all.v[i].bytes, NULL, diags);
    for (size_t i = 0; i < all.n; i++)
        kiln_buffer_free(all.v[i].buf);
    free(all.v);
    *failed -= *failed == n;
    return st;
}

kiln_status kl_chain_launch(struct kl_session *s, struct kl_args *const *run, size_t n,
                            size_t repeat, size_t *failed, kiln_diags **diags)
{
    if ((n > 1 || repeat > 1) && kiln_context_device(s->ctx) == KILN_DEVICE_CUDA)
        return on_device(s, run, n, repeat, failed, diags);
    kiln_status st = KILN_OK;
    for (size_t turn = 0; turn < repeat && !st; turn++)
        for (*failed = 0; *failed < n && !st; *failed += !st) {
            st = kiln_launch(run[*failed]->k, NULL, run[*failed]->arg, run[*failed]->n, diags);
            warn(s, turn, st, diags);
        }
    *failed -= *failed == n;
    return st;
}
