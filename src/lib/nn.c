/* nn.c - kiln_nn: kernels compiled on first use, and how its functions gather arguments. */
#include "lib/nn.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* One for each file that is asked for. */
struct slot {
    struct slot *next;
    kiln_module *mod;
    char file[32];
};

struct kiln_nn {
    kiln_context *ctx;
    pthread_mutex_t lock;
    struct slot *slots; /* under the lock */
};

kiln_status kiln_nn_create(kiln_context *ctx, kiln_nn **out, kiln_diags **diags)
{
    if (diags)
        *diags = NULL;
    if (!out)
        return KILN_E_ARG;
    *out = NULL;
    if (!ctx)
        return KILN_E_ARG;
    kiln_nn *nn = ctx->al.fn(ctx->al.user, NULL, 0, sizeof *nn);
    if (!nn)
        return KILN_E_NOMEM;
    *nn = (kiln_nn){.ctx = ctx};
    pthread_mutex_init(&nn->lock, NULL);
    *out = nn;
    return KILN_OK;
}

void kiln_nn_free(kiln_nn *nn)
{
    if (!nn)
        return;
    const kl_alloc al = nn->ctx->al;
    for (struct slot *s = nn->slots, *next; s; s = next) {
        next = s->next;
        kiln_module_free(s->mod);
        al.fn(al.user, s, sizeof *s, 0);
    }
    pthread_mutex_destroy(&nn->lock);
    al.fn(al.user, nn, sizeof *nn, 0);
}

/* The constants that come with the library, if there are any for this device. */
static kiln_status tuned(kiln_module *mod, const char *file)
{
    char name[72];
    uint32_t len;
    snprintf(name, sizeof name, "%s.tune", file);
    const char *text = kl_embedded_tune(name, &len);
    return text ? kiln_module_tune(mod, name, text, len, NULL) : KILN_OK;
}

/* Compiled under the lock: a file takes a millisecond, and once. */
static kiln_status find(kiln_nn *nn, const char *file, kiln_module **out, kiln_diags **diags)
{
    char name[64];
    uint32_t len;
    const char *text = NULL;
    if (strlen(file) < sizeof((struct slot *)0)->file) {
        snprintf(name, sizeof name, "kernels/%s.kiln", file);
        text = kl_embedded(name, &len);
    }
    if (!text)
        return KILN_E_ARG;
    kiln_status st = KILN_OK;
    const kl_alloc *al = &nn->ctx->al;
    pthread_mutex_lock(&nn->lock);
    struct slot *s = nn->slots;
    while (s && strcmp(s->file, file))
        s = s->next;
    if (!s) {
        s = al->fn(al->user, NULL, 0, sizeof *s);
        st = s ? kiln_compile(nn->ctx, name, text, len, &s->mod, diags) : KILN_E_NOMEM;
        if (!st && (st = tuned(s->mod, name)) != KILN_OK)
            kiln_module_free(s->mod);
        if (!st) {
            snprintf(s->file, sizeof s->file, "%s", file);
            s->next = nn->slots;
            nn->slots = s;
        } else if (s) {
            al->fn(al->user, s, sizeof *s, 0);
            s = NULL;
        }
    }
    pthread_mutex_unlock(&nn->lock);
    *out = s ? s->mod : NULL;
    return st;
}

kiln_status kiln_nn_module(kiln_nn *nn, const char *file, kiln_module **out, kiln_diags **diags)
{
    if (diags)
        *diags = NULL;
    if (out)
        *out = NULL;
    return nn && file && out ? find(nn, file, out, diags) : KILN_E_ARG;
}

int64_t kl_nn_wave(const kiln_nn *nn)
{
    return nn ? kl_num_sms(nn->ctx) * (kl_on_gpu(nn->ctx) ? 8 : 1) : 1;
}

bool kl_nn_gpu(const struct nn *c)
{
    return c->nn && kl_on_gpu(c->nn->ctx);
}

int64_t kl_nn_whole(const struct nn *c, const kiln_tensor *x, int64_t on_cpu)
{
    const kiln_context *ctx = c->nn->ctx;
    if (!kl_on_gpu(ctx))
        return on_cpu;
    int64_t n = ctx->arch >= 90 ? 262144 : 32768;
    return x->dtype == KILN_F64 ? n / 2 : n;
}

/* ---- a call ---- */

static void begin_call(struct nn *c)
{
    if (c->open)
        return;
    kiln_status st = kl_call_begin(&c->call, c->nn ? &c->nn->ctx->al : &kl_alloc_libc);
    c->open = st == KILN_OK;
    if (st && !c->st)
        c->st = st;
}

bool kl_nn_fail(struct nn *c, const char *fmt, ...)
{
    if (c->st)
        return false;
    va_list ap;
    char text[300];
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    begin_call(c);
    if (c->open)
        kl_say(&c->call, KL_K1809, KILN_E_ARG, "%s: %s", c->what, text);
    if (!c->st)
        c->st = KILN_E_ARG;
    return false;
}

void kl_nn_begin(struct nn *c, kiln_nn *nn, kiln_stream *s, const char *what, const char *file,
                 kiln_diags **diags)
{
    memset(c, 0, sizeof *c);
    c->nn = nn;
    c->stream = s;
    c->what = what;
    c->diags = diags;
    if (diags)
        *diags = NULL;
    c->st = nn ? find(nn, file, &c->mod, diags) : KILN_E_ARG;
}

void kl_nn_file(struct nn *c, const char *file)
{
    if (!c->st)
        c->st = find(c->nn, file, &c->mod, c->diags);
}

void kl_nn_next(struct nn *c)
{
    c->n = c->ntensor = 0;
}

void kl_nn_launch(struct nn *c, const char *kernel)
{
    kiln_kernel *k = c->st ? NULL : kiln_module_kernel(c->mod, kernel);
    if (c->st)
        return;
    if (!k) {
        c->st = KILN_E_INTERNAL;
        return;
    }
    if (c->diags) {
        kiln_diags_free(*c->diags); /* warnings of an earlier launch */
        *c->diags = NULL;
    }
    c->st = kiln_launch(k, c->stream, c->arg, c->n, c->diags);
}

kiln_status kl_nn_end(struct nn *c)
{
    if (!c->open)
        return c->st;
    if (c->diags) {
        kiln_diags_free(*c->diags);
        *c->diags = NULL;
    }
    return kl_call_end(&c->call, c->st, c->diags);
}

/* ---- arguments ---- */

static kiln_arg *add(struct nn *c, const char *name, kiln_arg_kind kind)
{
    if (c->n == NN_ARGS) {
        c->st = c->st ? c->st : KILN_E_INTERNAL;
        return &c->arg[0];
    }
    c->arg[c->n] = (kiln_arg){.name = name, .kind = kind};
    return &c->arg[c->n++];
}

void kl_nn_int(struct nn *c, const char *name, int64_t v)
{
    add(c, name, KILN_ARG_INT)->u.i = v;
}

void kl_nn_prefer(struct nn *c, const char *name, int64_t v)
{
    add(c, name, (kiln_arg_kind)KL_ARG_PREFER)->u.i = v;
}

void kl_nn_float(struct nn *c, const char *name, double v)
{
    add(c, name, KILN_ARG_FLOAT)->u.f = v;
}

void kl_nn_type(struct nn *c, const char *name, kiln_dtype t)
{
    add(c, name, KILN_ARG_TYPE)->u.type = t;
}

int64_t kl_nn_stride(const kiln_tensor *t, int axis)
{
    int64_t s = 1;
    if (t->strides)
        return t->strides[axis];
    for (int d = t->ndim - 1; d > axis; d--)
        s *= t->shape[d];
    return s;
}

int64_t kl_nn_count(const kiln_tensor *t, int from, int to)
{
    int64_t n = 1;
    for (int d = from; d < to; d++)
        n *= t->shape[d];
    return n;
}

bool kl_nn_dense(const kiln_tensor *t)
{
    int64_t s = 1;
    for (int d = t->ndim - 1; d >= 0 && t->strides; d--) {
        if (t->shape[d] != 1 && t->strides[d] != s)
            return false;
        s *= t->shape[d];
    }
    return true;
}

/* Sensible as far as its axes go: the rest is checked by the launch. */
static bool usable(struct nn *c, const char *name, const kiln_tensor *t, int least)
{
    if (t->ndim < least || t->ndim > 8 || (t->ndim && !t->shape))
        return kl_nn_fail(c, "%s has %d axes; %d to 8 are possible", name, (int)t->ndim, least);
    int64_t n = 1;
    for (int d = 0; d < t->ndim; d++)
        if (t->shape[d] < 0 || __builtin_mul_overflow(n, t->shape[d] ? t->shape[d] : 1, &n))
            return kl_nn_fail(c, "the shape of %s is negative or too large", name);
    return true;
}

void kl_nn_need(struct nn *c, const char *user, const char *name, const kiln_tensor *t, int rank)
{
    if (c->st)
        return;
    if (!t)
        kl_nn_fail(c, "%s is not given", user);
    else if (t->ndim != rank)
        kl_nn_fail(c, "%s has %d axes, and %d are needed", user, (int)t->ndim, rank);
    else if (usable(c, user, t, 0))
        add(c, name, KILN_ARG_TENSOR)->u.tensor = *t;
}

void kl_nn_tensor(struct nn *c, const char *name, const kiln_tensor *t, int rank)
{
    if (t)
        kl_nn_need(c, name, name, t, rank);
}

/* Axes from .. to - 1 of t as one.  false: their strides do not allow it. */
static bool collapse(const kiln_tensor *t, int from, int to, int64_t *extent, int64_t *stride)
{
    *extent = kl_nn_count(t, from, to);
    *stride = 0;
    if (*extent == 0 || from == to) {
        *stride = from == to || to == t->ndim ? 1 : kl_nn_stride(t, to - 1);
        return true;
    }
    bool first = true;
    int64_t expect = 0;
    for (int d = to - 1; d >= from; d--) {
        if (t->shape[d] == 1)
            continue;
        int64_t s = kl_nn_stride(t, d);
        if (first)
            *stride = s;
        else if (s != expect)
            return false;
        first = false;
        expect = s * t->shape[d];
    }
    if (first) /* all are 1 */
        *stride = kl_nn_stride(t, to - 1);
    return true;
}

/* A view of t with n axes; axis i is made of axes at[i] .. at[i + 1] - 1. */
static void view(struct nn *c, const char *name, const kiln_tensor *t, const int *at, int n)
{
    if (c->st)
        return;
    if (c->ntensor == NN_TENSORS) {
        c->st = KILN_E_INTERNAL;
        return;
    }
    int64_t *shape = c->shape[c->ntensor], *stride = c->stride[c->ntensor];
    for (int i = 0; i < n; i++)
        if (!collapse(t, at[i], at[i + 1], &shape[i], &stride[i])) {
            kl_nn_fail(c,
                       "axes %d to %d of %s cannot be walked as one: their strides do not follow "
                       "each other",
                       at[i], at[i + 1] - 1, name);
            return;
        }
    c->ntensor++;
    kiln_tensor *v = &add(c, name, KILN_ARG_TENSOR)->u.tensor;
    *v = *t;
    v->ndim = n;
    v->shape = shape;
    v->strides = kl_nn_dense(t) ? NULL : stride;
}

void kl_nn_rows(struct nn *c, const char *name, const kiln_tensor *t)
{
    if (c->st)
        return;
    if (!t)
        kl_nn_fail(c, "%s is not given", name);
    else if (usable(c, name, t, 1))
        view(c, name, t, (const int[]){0, t->ndim - 1, t->ndim}, 2);
}

void kl_nn_places(struct nn *c, const char *name, const kiln_tensor *t)
{
    if (c->st)
        return;
    if (!t)
        kl_nn_fail(c, "%s is not given", name);
    else if (usable(c, name, t, 2))
        view(c, name, t, (const int[]){0, 1, 2, t->ndim}, 3);
}

bool kl_nn_axis_of(const kiln_tensor *t, int *axis)
{
    if (!t || t->ndim < 1 || t->ndim > 8 || !t->shape)
        return false;
    if (*axis < 0)
        *axis += t->ndim;
    return *axis >= 0 && *axis < t->ndim;
}

void kl_nn_axis(struct nn *c, const char *name, const kiln_tensor *t, int axis, bool back,
                const char *const names[3])
{
    if (c->st || !usable(c, name, t, 1))
        return;
    uint32_t at = c->ntensor, place = c->n;
    view(c, name, t, (const int[]){0, axis, axis + 1, t->ndim}, 3);
    if (c->st)
        return;
    kiln_tensor *v = &c->arg[place].u.tensor;
    int64_t *stride = c->stride[at], n = v->shape[1];
    v->strides = stride;
    if (axis == 0)
        stride[0] = n * stride[1]; /* of one row: what is usual */
    if (axis == t->ndim - 1)
        stride[2] = 1;
    if (back && n > 0) {
        v->data = (char *)v->data + (n - 1) * stride[1] * (int64_t)kiln_dtype_size(t->dtype);
        stride[1] = -stride[1];
    }
    for (int d = 0; d < 3; d++)
        kl_nn_int(c, names[d], stride[d]);
}

void kl_nn_line(struct nn *c, const char *name, const kiln_tensor *t, const char *stride)
{
    if (c->st)
        return;
    if (!t) {
        kl_nn_fail(c, "%s is not given", name);
        return;
    }
    if (!usable(c, name, t, 0))
        return;
    view(c, name, t, (const int[]){0, t->ndim}, 1);
    if (!c->st && c->arg[c->n - 1].u.tensor.strides && kl_nn_count(t, 0, t->ndim) > 1)
        kl_nn_int(c, stride, c->stride[c->ntensor - 1][0]);
}

void kl_nn_flat(struct nn *c, const char *name, const kiln_tensor *t)
{
    if (c->st)
        return;
    if (!t)
        kl_nn_fail(c, "%s is not given", name);
    else if (usable(c, name, t, 0) && !kl_nn_dense(t))
        kl_nn_fail(c, "%s must be dense", name);
    else
        view(c, name, t, (const int[]){0, t->ndim}, 1);
}

void kl_nn_work(struct nn *c, const char *name, void *p, size_t bytes, kiln_dtype t, int rank,
                const int64_t *shape, const kiln_tensor *like)
{
    uint64_t need = kiln_dtype_size(t);
    for (int d = 0; d < rank; d++)
        need *= (uint64_t)shape[d];
    if (c->st)
        return;
    if (!p && need)
        kl_nn_fail(c, "work is NULL, and %llu bytes are needed", (unsigned long long)need);
    else if (bytes < need)
        kl_nn_fail(c, "work has %zu bytes, and %llu are needed", bytes, (unsigned long long)need);
    else if (c->ntensor == NN_TENSORS || rank > NN_RANK)
        c->st = KILN_E_INTERNAL;
    else {
        int64_t *s = c->shape[c->ntensor++];
        memcpy(s, shape, (size_t)rank * sizeof *s);
        add(c, name, KILN_ARG_TENSOR)->u.tensor =
            (kiln_tensor){.data = p,
                          .dtype = t,
                          .ndim = rank,
                          .shape = s,
                          .flags = like->flags & KILN_TENSOR_DEVICE};
    }
}
