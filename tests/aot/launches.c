/* launches.c - launches that are right and wrong in many ways, of one case, on kl_bind and on the
 * generated code: both refuse for the same reason, or both accept with the same number of programs.
 * Nothing is computed: the hook for threads only notes how many programs there would be. */
#include <stdlib.h>
#include <string.h>

#include "aot.h"
#include "base/diag.h"
#include "lib/lib.h"

/* A launch to be changed: arrays with shapes and strides of their own. */
struct launch {
    kiln_arg arg[PARAMS];
    size_t n;
    int64_t shape[PARAMS][8], stride[PARAMS][8];
};

struct try {
    struct aot_case *r;
    const char *path;
    struct aot_counts *t;
    int64_t room; /* bytes in front of an array and behind its first element */
    struct launch base, now;
    uint64_t known[PARAMS]; /* values of the case, by declaration */
    struct kl_boundparam first[PARAMS]; /* the case as it is */
    int said;
    bool ok;
};

static void note(void *user, int64_t n, aot_body *body, void *arg)
{
    (void)body;
    (void)arg;
    *(int64_t *)user = n;
}

/* A copy whose tensors point at their own shapes. */
static void restore(struct try *t)
{
    t->now = t->base;
    for (size_t i = 0; i < t->now.n; i++)
        if (t->now.arg[i].kind == KILN_ARG_TENSOR) {
            t->now.arg[i].u.tensor.shape = t->now.shape[i];
            t->now.arg[i].u.tensor.strides = t->now.stride[i];
        }
}

static const struct aot_param *param(const struct aot_built *b, const char *name)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (strcmp(b->p[i].name, name) == 0)
            return &b->p[i];
    return NULL;
}

/* What a launch that fails gives for a scalar: the changed one, or that of the case. */
static uint64_t given(const struct try *t, uint32_t i)
{
    for (size_t k = 0; k < t->now.n; k++)
        if (t->now.arg[k].kind == KILN_ARG_INT && strcmp(t->now.arg[k].name, t->r->b->p[i].name) == 0)
            return (uint64_t)t->now.arg[k].u.i;
    return t->known[i];
}

/* What each diagnostic of a launch is in generated code. */
static bool same_reason(const char *code, int s)
{
    static const struct {
        const char *code;
        int status;
    } t[] = {{"K0703", -3}, {"K0704", -4}, {"K0705", -14}, {"K0706", -1}, {"K0706", -5},
             {"K0707", -5}, {"K0708", -6}, {"K0709", -7}, {"K0710", -5}, {"K0712", -8},
             {"K0714", -9}, {"K0715", -11}};
    if (strcmp(code, "K0713") == 0) /* as a division by zero: generated code gets some value */
        return s < 0;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        if (strcmp(t[i].code, code) == 0 && t[i].status == s)
            return true;
    return false;
}

struct binding {
    struct try *t;
    struct kl_boundparam param[PARAMS];
    kl_bound out;
    bool ok, far;
};

static kiln_status bind(struct kl_call *c, void *arg)
{
    struct binding *x = arg;
    struct aot_case *r = x->t->r;
    x->ok = kl_bind(&c->tmp, r->k->mod->ast, r->k->node, x->t->now.arg, x->t->now.n, 0, 1, &x->out, c->d);
    if (x->ok) /* the call's memory ends with it */
        memcpy(x->param, x->out.param, x->out.nparam * sizeof *x->param);
    return KILN_OK;
}

/* Were these constants and optional arrays built?  Other types are other functions. */
static bool built(const struct try *t, const struct kl_boundparam *now)
{
    for (uint32_t i = 0; i < t->r->b->n; i++) {
        const struct aot_param *p = &t->r->b->p[i];
        const struct kl_boundparam *x = &now[i], *y = &t->first[i];
        if ((p->kind == CONSTANT && x->bits != y->bits) ||
            (p->kind == ARRAY && p->optional && x->given != y->given))
            return false;
    }
    return true;
}

static void compare(struct try *t, const char *what, const char *name, long long d)
{
    struct aot_built *b = t->r->b;
    struct kl_call c;
    kiln_diags *diags = NULL;
    struct binding x = {.t = t};
    const struct aot_tensor *at[PARAMS] = {0};
    struct aot_tensor tensor[PARAMS];
    uint64_t v[PARAMS] = {0};
    uint32_t na = 0, nv = 0;
    int64_t n = 0, want = 1;
    if (kl_call_begin(&c, &t->r->k->mod->ctx->al))
        abort();
    kiln_status s = kl_guarded(&c, &t->r->k->mod->ast->src, bind, &x);
    s = kl_call_end(&c, s ? s : x.ok ? KILN_OK : KILN_E_ARG, &diags);
    const char *code = "none";
    for (size_t i = kiln_diags_count(diags); i-- > 0;)
        if (kiln_diags_at(diags, i)->severity == KILN_ERROR)
            code = kiln_diags_at(diags, i)->code;
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->p[i].kind == ARRAY) {
            const kiln_tensor *q = aot_find(t->now.arg, t->now.n, b->p[i].name);
            if (q) {
                tensor[na] = (struct aot_tensor){q->data, (int32_t)q->dtype, q->ndim, q->shape,
                                                 q->strides, q->size_bytes};
                at[na] = &tensor[na];
            }
            na++;
        } else if (b->p[i].argument) {
            v[nv++] = x.ok ? x.param[i].bits : given(t, i);
        }
    }
    for (uint32_t i = 0; i < b->n && x.ok; i++) { /* this one would be filled, far away */
        struct kl_place p = kl_place_of(&x.param[i]);
        if (b->p[i].kind == ARRAY && x.param[i].given && x.param[i].init &&
            (!kl_place_span(&p) || p.lo < -t->room || p.hi > t->room))
            x.far = true;
    }
    if (x.far) {
        kiln_diags_free(diags);
        return;
    }
    b->e->parallel(b->lib, note, &n);
    int got = b->e->call(b->lib, NULL, at, v);
    b->e->parallel(b->lib, NULL, NULL);
    t->t->launches++;
    t->t->refused += !x.ok;
    t->t->variant += got == -10;
    bool same, types = false;
    for (uint32_t i = 0; i < b->n && !types; i++) {
        const kiln_tensor *q = b->p[i].kind == ARRAY ? aot_find(t->now.arg, t->now.n, b->p[i].name) : NULL;
        types = q && (int)q->dtype != (int)b->p[i].elem;
    }
    if (types) { /* of a type parameter: kl_bind takes it for another function */
        same = got == -4;
    } else if (x.ok) {
        for (int i = 0; i < 3; i++)
            want *= x.out.grid[i];
        /* where it is empty, nothing is run, and nobody told how many; a scalar that an optional array
         * gives, which was built as given, is not determined without it */
        same = built(t, x.param) ? got == 0 && n == want : got == -10 || got == -5;
    } else {
        /* constants that depend on wrong shapes may be others */
        same = same_reason(code, got) || got == -10;
    }
    if (!same) {
        t->ok = false;
        if (++t->said < 5)
            printf("FAIL %s:%u: %s: %s %s %lld: a launch %s%s with %lld programs, and the generated code "
                   "says %d (%s) with %lld\n", t->path, t->r->line, t->r->name, what, name, d,
                   x.ok ? "passes" : "fails with ", x.ok ? "" : code, (long long)want, got,
                   got ? b->e->detail() : "", (long long)n);
    }
    kiln_diags_free(diags);
}

/* One array of a fresh copy. */
static kiln_tensor *fresh(struct try *t, size_t i)
{
    restore(t);
    return &t->now.arg[i].u.tensor;
}

static void change_array(struct try *t, size_t i)
{
    const char *name = t->base.arg[i].name;
    const kiln_tensor *was = &t->base.arg[i].u.tensor;
    const int64_t size = kl_elems[was->dtype].bytes;
    kiln_tensor *x;
    for (int d = 0; d < was->ndim; d++) {
        static const int64_t by[] = {1, -1, 7};
        for (size_t k = 0; k < sizeof by / sizeof *by; k++) {
            fresh(t, i);
            t->now.shape[i][d] += by[k];
            compare(t, "extent", name, d * 100 + by[k]);
        }
        fresh(t, i);
        t->now.shape[i][d] = 0;
        compare(t, "no extent", name, d);
        fresh(t, i);
        t->now.shape[i][d] = INT64_C(1) << 61;
        compare(t, "huge extent", name, d);
        static const int64_t stride[] = {0, 1, -1, 2, INT64_C(1) << 33, INT64_MAX};
        for (size_t k = 0; k < sizeof stride / sizeof *stride; k++) {
            fresh(t, i);
            t->now.stride[i][d] = stride[k];
            compare(t, "stride", name, stride[k]);
        }
        fresh(t, i);
        t->now.stride[i][d] += 1;
        compare(t, "longer stride", name, d);
        for (int e = 0; e < d; e++) {
            fresh(t, i);
            int64_t s = t->now.stride[i][d];
            t->now.stride[i][d] = t->now.stride[i][e];
            t->now.stride[i][e] = s;
            compare(t, "strides exchanged", name, d);
            s = t->now.shape[i][d];
            t->now.shape[i][d] = t->now.shape[i][e];
            t->now.shape[i][e] = s;
            compare(t, "transposed", name, d);
        }
    }
    x = fresh(t, i);
    x->strides = NULL;
    compare(t, "dense", name, 0);
    x = fresh(t, i);
    x->ndim++;
    compare(t, "rank", name, 1);
    x = fresh(t, i);
    x->ndim--;
    compare(t, "rank", name, -1);
    x = fresh(t, i);
    x->dtype = x->dtype == KILN_F32 ? KILN_I32 : KILN_F32;
    compare(t, "type", name, (long long)x->dtype);
    x = fresh(t, i);
    x->data = NULL;
    compare(t, "no memory", name, 0);
    x = fresh(t, i);
    x->data = (char *)x->data + 1;
    compare(t, "one byte on", name, 0);
    x = fresh(t, i);
    x->data = (char *)x->data + size;
    compare(t, "one element on", name, 0);
    static const uint64_t bytes[] = {1, 64, UINT64_MAX};
    for (size_t k = 0; k < sizeof bytes / sizeof *bytes; k++) {
        x = fresh(t, i);
        x->size_bytes = bytes[k];
        compare(t, "bytes", name, (long long)bytes[k]);
    }
    for (size_t k = 0; k < t->base.n; k++) /* in one place, and a little beside it */
        if (k != i && t->base.arg[k].kind == KILN_ARG_TENSOR)
            for (int off = 0; off < 2; off++) {
                x = fresh(t, i);
                x->data = (char *)t->now.arg[k].u.tensor.data + off * 8;
                compare(t, "same place as", t->base.arg[k].name, off);
            }
    restore(t);
    t->now.arg[i] = t->now.arg[--t->now.n];
    /* the shapes of the one that moved stay where they are */
    compare(t, "without", name, 0);
}

bool aot_launches(struct aot_case *r, const char *path, struct aot_counts *counts)
{
    struct try t = {.r = r, .path = path, .t = counts, .ok = true};
    size_t span = 1 << 16;
    for (size_t i = 0; i < r->want.narr; i++)
        span += (size_t)r->want.arr[i].count * kl_elems[r->want.arr[i].elem].bytes * 4;
    /* what has an initial value is filled even here: room around every array */
    char *room = kl_xalloc(PARAMS * span);
    t.room = (int64_t)(span / 2 - 4096);
    for (size_t i = 0; i < r->want.n; i++) {
        const kiln_arg *g = &r->want.arg[i];
        const struct aot_param *p = param(r->b, g->name);
        if (p->kind == SCALAR && !p->argument)
            continue; /* what shapes give */
        size_t at = t.base.n++;
        t.base.arg[at] = *g;
        if (g->kind != KILN_ARG_TENSOR)
            continue;
        kiln_tensor *x = &t.base.arg[at].u.tensor;
        int64_t k = 1;
        for (int d = x->ndim - 1; d >= 0; d--) {
            t.base.shape[at][d] = x->shape[d];
            t.base.stride[at][d] = x->strides ? x->strides[d] : k;
            k *= x->shape[d] > 0 ? x->shape[d] : 1;
        }
        x->data = room + at * span + span / 2 / 64 * 64;
        x->size_bytes = 0;
    }
    for (uint32_t i = 0; i < r->b->n; i++) { /* what was fixed is as if each launch gave it */
        const kl_tool_param *q = &r->par[i];
        bool there = r->b->p[i].kind != CONSTANT || r->b->p[i].varies;
        for (size_t k = 0; k < t.base.n && !there; k++)
            there = strcmp(t.base.arg[k].name, r->b->p[i].name) == 0;
        if (there)
            continue;
        kiln_arg *g = &t.base.arg[t.base.n++];
        *g = (kiln_arg){.name = q->name, .kind = q->is_float ? KILN_ARG_FLOAT : KILN_ARG_INT};
        if (q->is_float)
            g->u.f = q->fval;
        else
            g->u.i = q->ival;
    }
    struct binding first = {.t = &t};
    struct kl_call c;
    restore(&t);
    if (kl_call_begin(&c, &r->k->mod->ctx->al))
        abort();
    kiln_status s = kl_guarded(&c, &r->k->mod->ast->src, bind, &first);
    kl_call_end(&c, s, NULL);
    if (s || !first.ok) {
        printf("FAIL %s:%u: %s: the case itself does not bind\n", path, r->line, r->name);
        t.ok = false;
    } else {
        memcpy(t.first, first.param, sizeof t.first);
        for (uint32_t i = 0; i < first.out.nparam; i++)
            t.known[i] = first.param[i].bits;
        compare(&t, "as it is", "", 0);
        for (size_t i = 0; i < t.base.n; i++)
            if (t.base.arg[i].kind == KILN_ARG_TENSOR)
                change_array(&t, i);
        for (size_t i = 0; i < t.base.n; i++) {
            static const int64_t v[] = {-1, 0, 1, 1000, INT64_MAX};
            const struct aot_param *p = param(r->b, t.base.arg[i].name);
            if (p->kind != SCALAR || kl_is_float(p->elem))
                continue;
            for (size_t k = 0; k < sizeof v / sizeof *v; k++) {
                restore(&t);
                t.now.arg[i].kind = KILN_ARG_INT;
                t.now.arg[i].u.i = v[k];
                if (kl_elems[p->elem].bytes == 8) /* smaller ones cannot be given at all */
                    compare(&t, "value of", p->name, v[k]);
            }
        }
    }
    free(room);
    return t.ok;
}
