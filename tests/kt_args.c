/* kt_args.c - launch arguments written as words: x=zeros(4x8,f32) B=8 T=bf16 y=@x eps=0.5
 *
 * Arrays are zeros(SHAPE,TYPE[,stride=S:S...][,bytes=N][,uninit]) or range(...), which holds
 * 0, 1, ... .  bytes says how large the buffer claims to be; no more than that is allocated;
 * uninit, that nothing was written to it.  @x is the array x again, as another parameter. */
#include "kt.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/elem.h"

static void *keep(struct kt_args *a, size_t n)
{
    void **mem = kt_alloc((a->nmem + 1) * sizeof *mem);
    if (a->nmem)
        memcpy(mem, a->mem, a->nmem * sizeof *mem);
    free(a->mem);
    a->mem = mem;
    return mem[a->nmem++] = kt_alloc(n);
}

static char *keep_text(struct kt_args *a, const char *s, size_t n)
{
    char *t = keep(a, n + 1);
    memcpy(t, s, n);
    return t;
}

static kiln_dtype type_named(const char *s, size_t n)
{
    for (int t = 1; t <= KILN_F8E5M2; t++)
        if (strlen(kiln_dtype_name((kiln_dtype)t)) == n &&
            memcmp(kiln_dtype_name((kiln_dtype)t), s, n) == 0)
            return (kiln_dtype)t;
    return KILN_DTYPE_NONE;
}

/* Numbers a sep b sep c into v; returns where it stopped. */
static const char *numbers(const char *p, char sep, int64_t *v, int32_t *n)
{
    for (*n = 0; *n < 8;) {
        char *e;
        long long x = strtoll(p, &e, 10);
        if (e == p)
            break;
        v[(*n)++] = x;
        p = e;
        if (*p != sep)
            break;
        p++;
    }
    return p;
}

static bool array(struct kt_args *a, kiln_arg *g, const char *p, bool range, char err[200])
{
    int64_t *shape = keep(a, 16 * sizeof *shape), *strides = shape + 8;
    kiln_tensor *t = &g->u.tensor;
    int32_t ns = 0;
    g->kind = KILN_ARG_TENSOR;
    p = numbers(p, 'x', shape, &t->ndim);
    t->shape = shape;
    if (*p == ',')
        p++;
    size_t n = strcspn(p, ",)");
    t->dtype = type_named(p, n);
    if (!t->dtype) {
        snprintf(err, 200, "no such type in `%s`", g->name);
        return false;
    }
    for (p += n; *p == ',';) {
        p++;
        if (strncmp(p, "stride=", 7) == 0) {
            p = numbers(p + 7, ':', strides, &ns);
            t->strides = strides;
        } else if (strncmp(p, "bytes=", 6) == 0) {
            char *e;
            t->size_bytes = strtoull(p + 6, &e, 10);
            p = e;
        } else if (strncmp(p, "uninit", 6) == 0) {
            t->flags = KILN_TENSOR_UNINIT;
            p += 6;
        } else {
            snprintf(err, 200, "unknown option in array `%s`", g->name);
            return false;
        }
    }
    if (*p != ')' || (t->strides && ns != t->ndim)) {
        snprintf(err, 200, "malformed array `%s`", g->name);
        return false;
    }
    size_t size = kiln_dtype_size(t->dtype);
    int64_t lo = 0, hi = 0, dense = 1;
    for (int32_t d = t->ndim; d-- > 0;) {
        int64_t s = t->strides ? strides[d] : dense;
        dense *= shape[d];
        *(s < 0 ? &lo : &hi) += (shape[d] > 0 ? shape[d] - 1 : 0) * s;
    }
    size_t bytes = t->size_bytes ? t->size_bytes : (size_t)(hi - lo + 1) * size;
    if (bytes > (size_t)1 << 30)
        bytes = size; /* only claims are tested with such shapes */
    char *mem = keep(a, bytes);
    t->data = mem + (size_t)-lo * size;
    if (range)
        for (size_t i = 0; i < bytes / size; i++)
            kl_elem_store((enum kl_elem)t->dtype, mem + i * size,
                          kl_convert((enum kl_elem)t->dtype, KL_i64, i));
    return true;
}

static bool value(struct kt_args *a, kiln_arg *g, const char *v, char err[200])
{
    char *e;
    if (strncmp(v, "zeros(", 6) == 0)
        return array(a, g, v + 6, false, err);
    if (strncmp(v, "range(", 6) == 0)
        return array(a, g, v + 6, true, err);
    if (*v == '@') {
        for (size_t i = 0; i < a->n; i++)
            if (strcmp(a->v[i].name, v + 1) == 0) {
                g->kind = a->v[i].kind;
                g->u = a->v[i].u;
                return true;
            }
        snprintf(err, 200, "no argument `%s` stands before", v + 1);
        return false;
    }
    if (type_named(v, strlen(v))) {
        g->kind = KILN_ARG_TYPE;
        g->u.type = type_named(v, strlen(v));
        return true;
    }
    g->kind = KILN_ARG_INT;
    g->u.i = strtoll(v, &e, 10);
    if (*v && !*e)
        return true;
    g->kind = KILN_ARG_FLOAT;
    g->u.f = strtod(v, &e);
    if (*v && !*e)
        return true;
    snprintf(err, 200, "cannot read value `%s`", v);
    return false;
}

bool kt_args_parse(struct kt_args *a, const char *text, char err[200])
{
    memset(a, 0, sizeof *a);
    a->v = kt_alloc((strlen(text) / 2 + 1) * sizeof *a->v);
    for (const char *p = text; *p;) {
        p += strspn(p, " ");
        size_t n = strcspn(p, " "), eq = strcspn(p, "= ");
        if (!n)
            break;
        if (eq == n) {
            if (a->kernel || a->n) {
                snprintf(err, 200, "`%.*s` is no name=value", (int)n, p);
                return false;
            }
            a->kernel = keep_text(a, p, n);
        } else {
            kiln_arg *g = &a->v[a->n];
            g->name = keep_text(a, p, eq);
            if (!value(a, g, keep_text(a, p + eq + 1, n - eq - 1), err))
                return false;
            a->n++;
        }
        p += n;
    }
    return true;
}

void kt_args_free(struct kt_args *a)
{
    for (size_t i = 0; i < a->nmem; i++)
        free(a->mem[i]);
    free(a->mem);
    free(a->v);
}
