/* args.c - arguments of a launch from NAME=VALUE pairs.
 *
 * Order: types first, since a generator or list without a type takes the parameter's; then arrays,
 * then names for the memory of other arrays, then scalars.  What is not given is left to the
 * library, which deduces it; arrays that the kernel only writes are allocated here. */
#include "cli/args.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "cli/safetensors.h"
#include "cli/shape.h"

/* Poison by type, two patterns.  Floats: signalling NaNs with a payload, which arithmetic never
 * gives.  bool: no value that a kernel stores.  Integers and 8-bit floats: any pattern may be a real
 * value, so a second run with the other pattern tells. */
/* clang-format off */
static const uint64_t poison[KL_NELEM][2] = {
    [KL_bool] = {0xAB, 0x54},
    [KL_i8] = {0xAB, 0x54}, [KL_u8] = {0xAB, 0x54},
    [KL_i16] = {0xABAB, 0x5454}, [KL_u16] = {0xABAB, 0x5454},
    [KL_i32] = {0xABABABAB, 0x54545454}, [KL_u32] = {0xABABABAB, 0x54545454},
    [KL_i64] = {0xABABABABABABABAB, 0x5454545454545454},
    [KL_u64] = {0xABABABABABABABAB, 0x5454545454545454},
    [KL_f16] = {0x7DAB, 0x7D54}, [KL_bf16] = {0x7FAB, 0x7F94},
    [KL_f32] = {0x7FABABAB, 0x7F945454},
    [KL_f64] = {0x7FF4ABABABABABAB, 0x7FF4545454545454},
    [KL_f8e4m3] = {0xAB, 0x54}, [KL_f8e5m2] = {0xAB, 0x54},
};
/* clang-format on */

/* ---- parameters ---- */

/* Defaults of a GPU that a launch may give as if they were constants (docs/language.md). */
static const kiln_param_info knobs[] = {
#define KNOB(n)                                                                                    \
    {.name = n, .kind = KILN_PARAM_CONST, .dtype = KILN_I64, .type_name = "i64",                   \
     .has_default = 1, .decl = n}
    KNOB("warps"), KNOB("stages"), KNOB("cluster")
#undef KNOB
};
enum { NKNOB = sizeof knobs / sizeof *knobs };

const kiln_param_info *kl_param_find(const kiln_kernel *k, const char *name, struct kl_msg *m)
{
    size_t n = kiln_kernel_param_count(k), used = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(kiln_kernel_param(k, i)->name, name) == 0)
            return kiln_kernel_param(k, i);
    for (size_t i = 0; i < NKNOB; i++)
        if (strcmp(knobs[i].name, name) == 0)
            return &knobs[i];
    const char **names = kl_xalloc((n + 1) * sizeof *names);
    char near[128], list[400] = "";
    for (size_t i = 0; i < n; i++) {
        names[i] = kiln_kernel_param(k, i)->name;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, i ? ", %s" : "%s", names[i]);
    }
    kl_did_you_mean(name, names, n, near);
    kl_msg(m, KL_RC_USAGE, "kernel %s has no parameter `%s`%s (it has %s)", kiln_kernel_name(k),
           name, near, n ? list : "none");
    free(names);
    return NULL;
}

struct kl_arr *kl_args_find(const struct kl_args *a, const char *name)
{
    for (size_t i = 0; i < a->narr; i++)
        if (strcmp(a->arr[i].p->name, name) == 0)
            return &a->arr[i];
    return NULL;
}

/* The default of `type T = bf16`, if it is a plain type. */
static enum kl_elem default_type(const kiln_param_info *p)
{
    const char *eq = p->decl ? strchr(p->decl, '=') : NULL;
    if (!eq)
        return KL_elem_none;
    eq += 1 + strspn(eq + 1, " \t\n");
    size_t n = strcspn(eq, " \t\n");
    return eq[n + strspn(eq + n, " \t\n")] ? KL_elem_none : kl_elem_by_name(eq, (uint32_t)n);
}

/* The element type that parameter p has, as far as it is known without its own value. */
static enum kl_elem param_type(const struct kl_args *a, const kiln_param_info *p)
{
    if (p->dtype)
        return (enum kl_elem)p->dtype;
    for (size_t i = 0; i < a->n; i++)
        if (a->arg[i].kind == KILN_ARG_TYPE && strcmp(a->arg[i].name, p->type_name) == 0)
            return (enum kl_elem)a->arg[i].u.type;
    for (size_t i = 0; i < a->narr; i++)
        if (a->arr[i].elem && strcmp(a->arr[i].p->type_name, p->type_name) == 0)
            return a->arr[i].elem;
    for (size_t i = 0; i < kiln_kernel_param_count(a->k); i++) {
        const kiln_param_info *q = kiln_kernel_param(a->k, i);
        if (q->kind == KILN_PARAM_TYPE && strcmp(q->name, p->type_name) == 0)
            return default_type(q);
    }
    return KL_elem_none;
}

/* ---- arrays ---- */

static struct kl_arr *add_array(struct kl_args *a, const kiln_param_info *p)
{
    struct kl_arr *r = &a->arr[a->narr++]; /* room for every parameter: pointers stay */
    *r = (struct kl_arr){.p = p, .dense = true};
    return r;
}

static void row_major(struct kl_arr *r)
{
    int64_t step = 1;
    for (int32_t d = r->ndim; d-- > 0;) {
        r->stride[d] = step;
        step *= r->shape[d] ? r->shape[d] : 1; /* kl_shape_count has seen that it fits */
    }
}

static void add_arg(struct kl_args *a, const struct kl_arr *r)
{
    kiln_arg *g = &a->arg[a->n++];
    g->name = r->p->name;
    g->kind = KILN_ARG_TENSOR;
    g->u.tensor = (kiln_tensor){.data = r->data,
                                .dtype = (kiln_dtype)r->elem,
                                .ndim = r->ndim,
                                .shape = r->shape,
                                .strides = r->dense ? NULL : r->stride,
                                .size_bytes =
                                    (r->span ? r->span : r->count) * kl_elems[r->elem].bytes,
                                .flags = r->made ? KILN_TENSOR_UNINIT : 0};
}

static bool count_elements(struct kl_arr *r, struct kl_msg *m)
{
    char shape[200];
    if (kl_shape_count(r->ndim, r->shape, kl_elems[r->elem].bytes, &r->count))
        return true;
    return kl_msg(m, KL_RC_ENV, "%s: an array of %s elements of type %s does not fit in memory",
                  r->p->name, kl_shape_text(r->ndim, r->shape, shape, sizeof shape),
                  kl_elems[r->elem].name);
}

static bool allocate(struct kl_arr *r, struct kl_msg *m)
{
    char what[300], shape[200];
    snprintf(what, sizeof what, "%s: %s[%s]", r->p->name, kl_elems[r->elem].name,
             kl_shape_text(r->ndim, r->shape, shape, sizeof shape));
    r->owned = r->data = kl_array_alloc(what, r->count * kl_elems[r->elem].bytes, m);
    return r->data != NULL;
}

/* FILE.safetensors[:NAME]. */
static bool read_safetensors(struct kl_arr *r, const char *text, size_t len, const char *name,
                             struct kl_msg *m)
{
    char why[700], *path = kl_xstrndup(text, len);
    bool ok = kl_st_open(path, name, r->p->name, &r->file, why, sizeof why);
    if (!ok)
        kl_msg(m, KL_RC_USAGE, "%s: cannot read %s: %s", r->p->name, path, why);
    free(path);
    return ok;
}

/* FILE.npy or FILE:TYPE. */
static bool read_npy(struct kl_arr *r, const char *text, struct kl_msg *m)
{
    char why[300], *path = kl_xstrndup(text, strlen(text));
    char *colon = strrchr(path, ':');
    enum kl_elem as =
        colon ? kl_elem_by_name(colon + 1, (uint32_t)strlen(colon + 1)) : KL_elem_none;
    bool ok = false;
    if (as && access(path, F_OK))
        *colon = 0;
    else
        as = KL_elem_none;
    const char *paren = strchr(path, '(');
    if (paren && access(path, F_OK)) {
        static const char *const names[] = {
#define KL_X(name, least, most) #name,
            KL_GEN_MAP(KL_X)
#undef KL_X
        };
        char near[128], *word = kl_xstrndup(path, (size_t)(paren - path));
        kl_msg(m, KL_RC_USAGE, "%s: no generator `%s`%s", r->p->name, word,
               kl_did_you_mean(word, names, KL_NGEN, near));
        free(word);
    } else if (!kl_npy_open(path, &r->file, why, sizeof why)) {
        kl_msg(m, KL_RC_USAGE, "%s: cannot read %s: %s", r->p->name, path, why);
    } else if (as && !kl_npy_view(&r->file.head, as, why, sizeof why)) {
        kl_msg(m, KL_RC_USAGE, "%s: %s: %s", r->p->name, path, why);
    } else if (!r->file.head.elem) {
        kl_msg(m, KL_RC_USAGE, "%s: %s has elements of type %s; say what they are: %s=%s:%s",
               r->p->name, path, r->file.head.descr, r->p->name, path,
               r->file.head.bytes == 1 ? "f8e4m3" : "bf16");
    } else {
        ok = true;
    }
    free(path);
    return ok;
}

bool kl_arr_read(struct kl_arr *r, const char *text, struct kl_msg *m)
{
    size_t len;
    const char *name;
    if (!(kl_st_path(text, &len, &name) ? read_safetensors(r, text, len, name, m)
                                        : read_npy(r, text, m)))
        return false;
    const struct kl_npy *h = &r->file.head;
    r->elem = h->elem;
    r->ndim = h->ndim;
    memcpy(r->shape, h->shape, sizeof r->shape);
    memcpy(r->stride, h->stride, sizeof r->stride);
    r->dense = !h->fortran || h->ndim < 2;
    r->count = h->size / h->bytes;
    r->data = r->file.data;
    return true;
}

static bool array_from_value(struct kl_args *a, struct kl_arr *r, const struct kl_value *v,
                             unsigned flags, struct kl_msg *m)
{
    r->elem = v->elem ? v->elem : param_type(a, r->p);
    if (!r->elem)
        return kl_msg(m, KL_RC_USAGE, "%s: say the element type: %s", r->p->name,
                      v->kind == KL_VALUE_LIST ? "{...}:f32" : "rand(512x1000,f32)");
    r->ndim = v->ndim;
    memcpy(r->shape, v->shape, sizeof r->shape);
    if (!count_elements(r, m))
        return false;
    row_major(r);
    if (flags & KL_ARGS_SHAPES && (!(flags & KL_ARGS_INTEGERS) || kl_is_float(r->elem)))
        return true;
    return allocate(r, m) && kl_value_fill(v, r->elem, r->data, r->count, m);
}

/* 8192x4096:f32:strides=5000x1:offset=4.  Memory, where it is wanted, holds random numbers, or
 * zeros if they are integers. */
static bool array_from_word(struct kl_args *a, struct kl_arr *r, const struct kl_shape *w,
                            unsigned flags, struct kl_msg *m)
{
    r->elem = w->elem ? w->elem : param_type(a, r->p);
    if (!r->elem)
        return kl_msg(m, KL_RC_USAGE, "%s: say the element type: %s=%s:f32", r->p->name, r->p->name,
                      w->text);
    r->ndim = w->ndim;
    memcpy(r->shape, w->shape, sizeof r->shape);
    r->offset = w->offset;
    if (!count_elements(r, m))
        return false;
    row_major(r);
    if (w->strided) {
        memcpy(r->stride, w->stride, sizeof r->stride);
        r->dense = false;
        if (!kl_shape_span(w, kl_elems[r->elem].bytes, &r->span))
            return kl_msg(m, KL_RC_ENV, "%s: an array with these strides does not fit in memory",
                          r->p->name);
    }
    if (flags & KL_ARGS_SHAPES)
        return true;
    const struct kl_value v = {.kind = KL_VALUE_GEN,
                               .gen = kl_is_float(r->elem) ? KL_GEN_rand : KL_GEN_zeros};
    uint64_t n = r->span ? r->span : r->count, width = kl_elems[r->elem].bytes;
    r->owned = kl_array_alloc(r->p->name, (n + (uint64_t)r->offset) * width, m);
    r->data = r->owned ? (char *)r->owned + (uint64_t)r->offset * width : NULL;
    return r->data && kl_value_fill(&v, r->elem, r->data, n, m);
}

/* A text that somebody meant as a shape: digits and x, and perhaps more behind a colon. */
static bool looks_like_shape(const char *s)
{
    size_t n = strspn(s, "-0123456789x*,()[] ");
    return n && s[0] != 'x' && s[strcspn(s, "0123456789")] && (!s[n] || s[n] == ':');
}

static bool set_array(struct kl_args *a, const kiln_param_info *p, const char *text, unsigned flags,
                      struct kl_msg *m)
{
    struct kl_value v;
    struct kl_shape w;
    if (flags & KL_ARGS_WORDS && kl_shape_is(text) && access(text, F_OK) != 0) {
        if (!kl_shape_word(p->name, text, &w, m))
            return false;
        struct kl_arr *r = add_array(a, p);
        bool ok = array_from_word(a, r, &w, flags, m);
        if (ok)
            add_arg(a, r);
        return ok;
    }
    if (!kl_value_parse(text, &v, m))
        return false;
    if (v.kind == KL_VALUE_TEXT && looks_like_shape(text) && access(text, F_OK) != 0) {
        kl_value_free(&v);
        if (flags & KL_ARGS_WORDS)
            return kl_msg(m, KL_RC_USAGE,
                          "%s=%.100s: it is neither a file nor a shape; write %s=512x1000:f32",
                          p->name, text, p->name);
        if (!kl_shape_is(text))
            return kl_msg(m, KL_RC_USAGE,
                          "%s=%.100s: there is no such file; a shape is written 512x1000, and random "
                          "values of it are %s='randn(512x1000)'",
                          p->name, text, p->name);
        return kl_msg(m, KL_RC_USAGE,
                      "%s=%.100s: there is no such file; random values of a shape are "
                      "%s='randn(512x1000)'",
                      p->name, text, p->name);
    }
    char *end;
    bool number = strtod(text, &end) != 0 || end != text;
    if (number && v.kind == KL_VALUE_TEXT && !*end && access(text, F_OK) != 0) {
        kl_value_free(&v);
        return kl_msg(m, KL_RC_USAGE,
                      "%s=%.100s: it is an array: give a file, elements as {1, 2}, or %s='randn(512x1000)'",
                      p->name, text, p->name);
    }
    struct kl_arr *r = add_array(a, p);
    bool ok =
        v.kind == KL_VALUE_TEXT ? kl_arr_read(r, text, m) : array_from_value(a, r, &v, flags, m);
    kl_value_free(&v);
    if (ok)
        add_arg(a, r);
    return ok;
}

/* The latest array of that name in the kernels before. */
static const struct kl_arr *earlier_array(const struct kl_args *a, const char *name)
{
    for (const struct kl_earlier *e = a->before; e; e = e->before) {
        const struct kl_arr *r = kl_args_find(e->args, name);
        if (r)
            return r;
    }
    return NULL;
}

/* @NAME: an array with a value of its own here, else one of the kernels before. */
static bool set_alias(struct kl_args *a, const kiln_param_info *p, const char *text,
                      struct kl_msg *m)
{
    const char *name = text + 1;
    if (!*name)
        return kl_msg(m, KL_RC_USAGE, "%s=@: the name of an array is missing", p->name);
    const struct kl_arr *own = kl_args_find(a, name), *of = own && !own->alias ? own : NULL;
    if (!of)
        of = earlier_array(a, name);
    if (!of && !kl_param_find(a->k, name, m))
        return false;
    if (!of)
        return kl_msg(m, KL_RC_USAGE, "%s=%s: %s is not given a value of its own%s", p->name, text,
                      name, a->before ? ", and no kernel before has it" : "");
    struct kl_arr *r = add_array(a, p);
    *r = *of;
    r->p = p;
    r->alias = of->p->name;
    r->made = false; /* whoever made it has written it by then */
    r->shared = of != own;
    r->owned = NULL;
    r->file.block = NULL;
    add_arg(a, r);
    return true;
}

/* ---- scalars ---- */

static bool set_type(struct kl_args *a, const kiln_param_info *p, const char *text,
                     struct kl_msg *m)
{
    static const char *const other[][2] = {
        {"float", "f32"}, {"float32", "f32"}, {"double", "f64"},    {"float64", "f64"},
        {"half", "f16"},  {"float16", "f16"}, {"bfloat16", "bf16"}, {"int", "i32"},
        {"int32", "i32"}, {"long", "i64"},    {"int64", "i64"},     {"uint8", "u8"},
        {"int8", "i8"},   {"int16", "i16"},   {"uint16", "u16"},    {"uint32", "u32"},
        {"uint64", "u64"}, {"float8_e4m3fn", "f8e4m3"}, {"float8_e5m2", "f8e5m2"}};
    enum kl_elem e = kl_elem_by_name(text, (uint32_t)strlen(text));
    const char *names[KL_NELEM], *near = NULL;
    uint32_t n = 0;
    for (int i = 1; i < KL_NELEM; i++)
        names[n++] = kl_elems[i].name;
    for (size_t i = 0; i < sizeof other / sizeof *other && !e; i++)
        if (strcmp(text, other[i][0]) == 0)
            near = other[i][1];
    if (!e && !near)
        near = kl_nearest(text, names, n);
    if (!e)
        return kl_msg(m, KL_RC_USAGE, "%s: `%s` is no element type%s%s%s", p->name, text,
                      near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
    kiln_arg *g = &a->arg[a->n++];
    g->name = p->name;
    g->kind = KILN_ARG_TYPE;
    g->u.type = (kiln_dtype)e;
    return true;
}

static bool set_scalar(struct kl_args *a, const kiln_param_info *p, const char *text,
                       struct kl_msg *m)
{
    struct kl_number v;
    enum kl_elem e = (enum kl_elem)p->dtype;
    uint64_t bits;
    if (!kl_number_parse(text, strlen(text), &v))
        return kl_msg(m, KL_RC_USAGE, "%s is a %s of type %s, and `%s` is no number", p->name,
                      p->kind == KILN_PARAM_CONST ? "constant" : "scalar", p->type_name, text);
    if (e ? !kl_number_fits(&v, e, &bits) : isinf(v.f) && !kl_number_named(&v))
        return kl_msg(m, KL_RC_USAGE, "%s is of type %s, which does not hold %s", p->name,
                      p->type_name, text);
    kiln_arg *g = &a->arg[a->n++];
    g->name = p->name;
    if (v.big || e == KL_u64) {
        g->kind = KILN_ARG_UINT;
        g->u.u = v.is_int ? (uint64_t)v.i : (uint64_t)v.f;
    } else if (v.is_int || (e && !kl_is_float(e))) {
        g->kind = KILN_ARG_INT;
        g->u.i = v.is_int ? v.i : (int64_t)v.f;
    } else {
        g->kind = KILN_ARG_FLOAT; /* rounded once, to the parameter's type, where that is known */
        g->u.f = e ? kl_elem_double(e, bits) : v.f;
    }
    return true;
}

/* ---- all of them ---- */

enum phase { TYPES, ARRAYS, ALIASES, SCALARS, NPHASE };

static enum phase phase_of(const kiln_param_info *p, const char *value)
{
    if (p->kind == KILN_PARAM_TYPE)
        return TYPES;
    if (p->kind == KILN_PARAM_ARRAY)
        return *value == '@' ? ALIASES : ARRAYS;
    return SCALARS;
}

/* Whether a reference kernel does without this value. */
static bool pass_over(const kiln_param_info *p, const struct kl_assign *s, unsigned flags)
{
    return !p || ((flags & KL_ARGS_REFERENCE) && p->kind == KILN_PARAM_ARRAY && *s->value == '@' &&
                  p->writes && !p->reads);
}

static bool set_one(struct kl_args *a, const kiln_param_info *p, const struct kl_assign *s,
                    unsigned flags, struct kl_msg *m)
{
    if (s->define && p->kind == KILN_PARAM_ARRAY)
        return kl_msg(m, KL_RC_USAGE, "-D %s=%s: %s is an array; give it without -D", s->name,
                      s->value, s->name);
    switch (phase_of(p, s->value)) {
    case TYPES: return set_type(a, p, s->value, m);
    case ARRAYS: return set_array(a, p, s->value, flags, m);
    case ALIASES: return set_alias(a, p, s->value, m);
    default: return set_scalar(a, p, s->value, m);
    }
}

bool kl_args_set(struct kl_args *a, kiln_kernel *k, const struct kl_assign *as, size_t n,
                 unsigned flags, struct kl_msg *m)
{
    return kl_args_set_after(a, k, as, n, flags, NULL, m);
}

bool kl_args_set_after(struct kl_args *a, kiln_kernel *k, const struct kl_assign *as, size_t n,
                       unsigned flags, const struct kl_earlier *before, struct kl_msg *m)
{
    size_t np = kiln_kernel_param_count(k);
    *a = (struct kl_args){.k = k, .before = before};
    a->arg = kl_xalloc((np + NKNOB + 1) * sizeof *a->arg);
    a->arr = kl_xalloc((np + 1) * sizeof *a->arr);
    for (size_t i = 0; i < n; i++) {
        if (!kl_param_find(k, as[i].name, m) && !(flags & KL_ARGS_REFERENCE))
            goto fail;
        for (size_t j = 0; j < i; j++)
            if (strcmp(as[i].name, as[j].name) == 0) {
                kl_msg(m, KL_RC_USAGE, "%s is given twice", as[i].name);
                goto fail;
            }
    }
    for (int phase = 0; phase < NPHASE; phase++)
        for (size_t i = 0; i < n; i++) {
            struct kl_msg unknown = {0};
            const kiln_param_info *p = kl_param_find(k, as[i].name, &unknown);
            if (!pass_over(p, &as[i], flags) && (int)phase_of(p, as[i].value) == phase &&
                !set_one(a, p, &as[i], flags, m))
                goto fail;
        }
    return true;
fail:
    kl_args_free(a);
    return false;
}

static bool listed(const char *const *list, const char *name)
{
    for (; list && *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* The strides that parameter i declares, where the array made for it can have them: they are another
 * order of its dimensions, without holes. */
static void take_strides(struct kl_args *a, size_t given, size_t i, struct kl_arr *r)
{
    kl_tool_param *p = kl_xalloc((kiln_kernel_param_count(a->k) + 1) * sizeof *p);
    int64_t grid[3];
    kiln_diags *d = NULL;
    if (kl_tool_resolve(a->k, a->arg, given, p, grid, &d) == KILN_OK && p[i].ndim == r->ndim) {
        uint64_t next = 1; /* the dimension whose stride is this lies behind those that were found */
        int32_t found = 0;
        for (bool more = true; more && found < r->ndim;) {
            more = false;
            for (int32_t k = 0; k < r->ndim && !more; k++)
                if (r->shape[k] > 1 && (uint64_t)p[i].strides[k] == next) {
                    next *= (uint64_t)r->shape[k];
                    more = true;
                }
        }
        if (next == r->count) {
            memcpy(r->stride, p[i].strides, sizeof r->stride);
            int64_t row = 1;
            for (int32_t k = r->ndim; k-- > 0; row *= r->shape[k])
                r->dense &= r->shape[k] == 1 || r->stride[k] == row;
        }
    }
    kiln_diags_free(d);
    free(p);
}

kiln_status kl_args_outputs(struct kl_args *a, const char *const *wanted, unsigned flags,
                            kiln_diags **diags, struct kl_msg *m)
{
    size_t given = a->n; /* shapes follow from what was given, not from what is made here */
    m->rc = 0;
    for (size_t i = 0; i < kiln_kernel_param_count(a->k); i++) {
        const kiln_param_info *p = kiln_kernel_param(a->k, i);
        if (p->kind != KILN_PARAM_ARRAY || kl_args_find(a, p->name) || p->is_const ||
            (p->reads && !p->has_init && !(flags & KL_ARGS_READS)) ||
            (p->is_optional && !listed(wanted, p->name)))
            continue;
        if (p->decl && strstr(p->decl, "[]")) {
            kl_msg(m, KL_RC_USAGE,
                   "%s: the kernel does not say how large it is (%s); give it, as "
                   "in %s=zeros(1000,%s)",
                   p->name, p->decl, p->name, p->dtype ? kl_elems[p->dtype].name : "f32");
            return KILN_E_ARG;
        }
        struct kl_arr *r = add_array(a, p);
        kiln_dtype t = KILN_DTYPE_NONE;
        kiln_status st =
            kiln_infer_shape(a->k, a->arg, given, p->name, &t, &r->ndim, r->shape, diags);
        if (st) {
            a->narr--;
            return st;
        }
        kiln_diags_free(*diags); /* warnings come again with the launch */
        *diags = NULL;
        r->elem = (enum kl_elem)t;
        r->made = !p->has_init;
        if (!count_elements(r, m))
            return KILN_E_NOMEM;
        row_major(r);
        if (p->decl && strstr(p->decl, "stride("))
            take_strides(a, given, i, r);
        if (!(flags & KL_ARGS_SHAPES)) {
            if (!allocate(r, m))
                return KILN_E_NOMEM;
            kl_arr_poison(r, 0);
        }
        add_arg(a, r);
    }
    return KILN_OK;
}

void kl_arr_free(struct kl_arr *r)
{
    kl_npy_close(&r->file);
    free(r->owned);
    r->owned = r->data = NULL;
}

void kl_args_free(struct kl_args *a)
{
    for (size_t i = 0; i < a->narr; i++)
        kl_arr_free(&a->arr[i]);
    free(a->arr);
    free(a->arg);
    *a = (struct kl_args){0};
}

/* ---- elements ---- */

const void *kl_arr_at(const struct kl_arr *a, uint64_t i)
{
    uint32_t w = kl_elems[a->elem].bytes;
    if (a->dense)
        return (const char *)a->data + i * w;
    int64_t off = 0;
    for (int32_t d = a->ndim; d-- > 0;) {
        off += (int64_t)(i % (uint64_t)a->shape[d]) * a->stride[d];
        i /= (uint64_t)a->shape[d];
    }
    return (const char *)a->data + off * (int64_t)w;
}

void kl_arr_poison(struct kl_arr *a, unsigned pattern)
{
    uint32_t w = kl_elems[a->elem].bytes;
    for (uint64_t i = 0; i < a->count; i++)
        kl_elem_store(a->elem, (char *)a->data + i * w, poison[a->elem][pattern]);
}

uint64_t kl_arr_poisoned(const struct kl_arr *a)
{
    uint64_t n = 0, want = poison[a->elem][0];
    uint32_t w = kl_elems[a->elem].bytes;
    for (uint64_t i = 0; i < a->count; i++)
        n += memcmp((const char *)a->data + i * w, &want, w) == 0; /* little-endian */
    return n;
}

char *kl_shape_text(int32_t ndim, const int64_t *shape, char *buf, size_t n)
{
    size_t at = 0;
    buf[0] = 0;
    for (int32_t d = 0; d < ndim && at < n; d++)
        at += (size_t)snprintf(buf + at, n - at, d ? "x%lld" : "%lld", (long long)shape[d]);
    return buf;
}

char *kl_index_text(const struct kl_arr *a, uint64_t i, char *buf, size_t n)
{
    uint64_t c[KL_DIMS] = {0};
    size_t at = 0;
    buf[0] = 0;
    for (int32_t d = a->ndim; d-- > 0;) {
        c[d] = i % (uint64_t)a->shape[d];
        i /= (uint64_t)a->shape[d];
    }
    for (int32_t d = 0; d < a->ndim && at < n; d++)
        at += (size_t)snprintf(buf + at, n - at, "[%llu]", (unsigned long long)c[d]);
    return buf;
}

char *kl_elem_text(enum kl_elem e, uint64_t bits, char buf[32])
{
    if (e == KL_bool) {
        snprintf(buf, 32, "%s", bits ? "true" : "false");
    } else if (!kl_is_float(e)) {
        if (kl_elems[e].kind == KL_KIND_UINT)
            snprintf(buf, 32, "%llu", (unsigned long long)bits);
        else
            snprintf(buf, 32, "%lld", (long long)bits);
    } else {
        double v = kl_elem_double(e, bits);
        if (v != v) {
            snprintf(buf, 32, "nan"); /* the sign of a NaN means nothing */
            return buf;
        }
        /* not 4.5e+02 for the 448 of an 8-bit float */
        for (int digits = kl_elems[e].bytes == 1 ? 3 : 1; digits <= 17; digits++) {
            struct kl_number back;
            uint64_t again;
            snprintf(buf, 32, "%.*g", digits, v);
            if (kl_number_parse(buf, strlen(buf), &back) && kl_number_bits(&back, e, &again) &&
                again == bits)
                break;
        }
        if (strchr(buf, 'e') && fabs(v) >= 1 && fabs(v) < 1e6) /* 40 rather than 4e+01 */
            snprintf(buf, 32, "%.*g", 6, v);
    }
    return buf;
}
