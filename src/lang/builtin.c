/* builtin.c - the built-in functions: one table, one handler a family. */
#include "lang/builtin.h"

#include <stdio.h>

/* By KL_DG_...; those of functions of later versions are unknown until these come. */
static const char *const designators[KL_NDESIG] = {"axis", "mask", "cache", "commutative", "precision",
                                                   "reverse", "order", "scope"};
enum { D_AXIS = 1 << KL_DG_AXIS, D_MASK = 1 << KL_DG_MASK, D_CACHE = 1 << KL_DG_CACHE,
       D_COMM = 1 << KL_DG_COMM, D_PREC = 1 << KL_DG_PREC, D_REV = 1 << KL_DG_REVERSE,
       D_ATOM = 1 << KL_DG_MASK | 1 << KL_DG_ORDER | 1 << KL_DG_SCOPE };

/* clang-format off */
static const struct kl_builtin table[] = {
    /* name          handler       op               min max designators        fast */
    {"abs",          kl_call_abs,       KL_OP_abs,        1, 1, 0, 0},
    {"all",          kl_call_reduce,    KL_OP_and,        1, 1, D_AXIS, 0},
    {"any",          kl_call_reduce,    KL_OP_or,         1, 1, D_AXIS, 0},
    {"argmax",       kl_call_argmax,    KL_OP_argmax,     1, 1, D_AXIS, 0},
    {"argmin",       kl_call_argmax,    KL_OP_argmin,     1, 1, D_AXIS, 0},
    {"assert",       kl_call_assert,    0,                2, 2, 0, 0},
    {"atomic_add",   kl_call_atomic,    KL_RMW_add,       2, 2, D_ATOM, 0},
    {"atomic_and",   kl_call_atomic,    KL_RMW_and,       2, 2, D_ATOM, 0},
    {"atomic_cas",   kl_call_atomic,    KL_RMW_cas,       3, 3, D_ATOM, 0},
    {"atomic_load",  kl_call_atomic,    KL_AT_LOAD,       1, 1, D_ATOM, 0},
    {"atomic_max",   kl_call_atomic,    KL_RMW_max,       2, 2, D_ATOM, 0},
    {"atomic_min",   kl_call_atomic,    KL_RMW_min,       2, 2, D_ATOM, 0},
    {"atomic_or",    kl_call_atomic,    KL_RMW_or,        2, 2, D_ATOM, 0},
    {"atomic_store", kl_call_atomic,    KL_AT_STORE,      2, 2, D_ATOM, 0},
    {"atomic_xchg",  kl_call_atomic,    KL_RMW_xchg,      2, 2, D_ATOM, 0},
    {"atomic_xor",   kl_call_atomic,    KL_RMW_xor,       2, 2, D_ATOM, 0},
    {"bitcast",      kl_call_bitcast,   0,                2, 2, 0, 0},
    {"broadcast",    kl_call_broadcast, 0,                1, 5, 0, 0},
    {"cat",          kl_call_cat,       0,                2, 2, D_AXIS, 0},
    {"cdiv",         kl_call_int2,      KL_OP_cdiv,       2, 2, 0, 0},
    {"ceil",         kl_call_math1,     KL_OP_ceil,       1, 1, 0, 0},
    {"clamp",        kl_call_fma,       0,                3, 3, 0, 0},
    {"clz",          kl_call_bits,      KL_OP_clz,        1, 1, 0, 0},
    {"coord",        kl_call_coord,     0,                2, 2, 0, 0},
    {"copysign",     kl_call_math2,     KL_OP_copysign,   2, 2, 0, 0},
    {"cos",          kl_call_math1,     KL_OP_cos,        1, 1, 0, 0},
    {"cos_fast",     kl_call_math1,     KL_OP_cos,        1, 1, 0, 1},
    {"ctz",          kl_call_bits,      KL_OP_ctz,        1, 1, 0, 0},
    {"cumprod",      kl_call_scan,      KL_OP_mul,        1, 1, D_AXIS | D_REV, 0},
    {"cumsum",       kl_call_scan,      KL_OP_add,        1, 1, D_AXIS | D_REV, 0},
    {"cvt_nan",      kl_call_cvt,       KL_OP_convert_nan, 2, 2, 0, 0},
    {"cvt_sat",      kl_call_cvt,       KL_OP_convert,    2, 2, 0, 0},
    {"dot",          kl_call_dot,       0,                2, 3, D_PREC, 0},
    {"erf",          kl_call_math1,     KL_OP_erf,        1, 1, 0, 0},
    {"erf_fast",     kl_call_math1,     KL_OP_erf,        1, 1, 0, 1},
    {"erfc",         kl_call_math1,     KL_OP_erfc,       1, 1, 0, 0},
    {"erfc_fast",    kl_call_math1,     KL_OP_erfc,       1, 1, 0, 1},
    {"exp",          kl_call_math1,     KL_OP_exp,        1, 1, 0, 0},
    {"exp2",         kl_call_math1,     KL_OP_exp2,       1, 1, 0, 0},
    {"exp2_fast",    kl_call_math1,     KL_OP_exp2,       1, 1, 0, 1},
    {"exp_fast",     kl_call_math1,     KL_OP_exp,        1, 1, 0, 1},
    {"expm1",        kl_call_math1,     KL_OP_expm1,      1, 1, 0, 0},
    {"flip",         kl_call_flip,      0,                1, 1, D_AXIS, 0},
    {"floor",        kl_call_math1,     KL_OP_floor,      1, 1, 0, 0},
    {"floordiv",     kl_call_int2,      KL_OP_floordiv,   2, 2, 0, 0},
    {"floormod",     kl_call_int2,      KL_OP_floormod,   2, 2, 0, 0},
    {"fma",          kl_call_fma,       KL_OP_fma,        3, 3, 0, 0},
    {"fmax",         kl_call_minmax,    KL_OP_fmax,       1, 2, D_AXIS, 0},
    {"fmin",         kl_call_minmax,    KL_OP_fmin,       1, 2, D_AXIS, 0},
    {"fmod",         kl_call_math2,     KL_OP_fmod,       2, 2, 0, 0},
    {"full",         kl_call_full,      0,                1, 5, 0, 0},
    {"gather",       kl_call_gather,    0,                2, 2, D_AXIS, 0},
    {"given",        kl_call_given,     0,                1, 1, 0, 0},
    {"inside",       kl_call_inside,    0,                1, 1, 0, 0},
    {"isfinite",     kl_call_isnan,     0,                1, 1, 0, 0},
    {"isinf",        kl_call_isnan,     0,                1, 1, 0, 0},
    {"isnan",        kl_call_isnan,     0,                1, 1, 0, 0},
    {"load",         kl_call_load,      0,                1, 2, D_MASK | D_CACHE, 0},
    {"log",          kl_call_math1,     KL_OP_log,        1, 1, 0, 0},
    {"log1p",        kl_call_math1,     KL_OP_log1p,      1, 1, 0, 0},
    {"log2",         kl_call_math1,     KL_OP_log2,       1, 1, 0, 0},
    {"log2_fast",    kl_call_math1,     KL_OP_log2,       1, 1, 0, 1},
    {"log_fast",     kl_call_math1,     KL_OP_log,        1, 1, 0, 1},
    {"max",          kl_call_minmax,    KL_OP_max,        1, 2, D_AXIS, 0},
    {"min",          kl_call_minmax,    KL_OP_min,        1, 2, D_AXIS, 0},
    {"num_programs", kl_call_program,   KL_OP_num_programs, 1, 1, 0, 0},
    {"num_sms",      kl_call_program,   KL_OP_num_sms,    0, 0, 0, 0},
    {"permute",      kl_call_permute,   0,                1, 5, 0, 0},
    {"philox",       kl_call_philox,    0,                2, 2, 0, 0},
    {"popcount",     kl_call_bits,      KL_OP_popcount,   1, 1, 0, 0},
    {"pow",          kl_call_math2,     KL_OP_pow,        2, 2, 0, 0},
    {"pow2ceil",     kl_call_pow2ceil,  0,                1, 1, 0, 0},
    {"pow_fast",     kl_call_math2,     KL_OP_pow,        2, 2, 0, 1},
    {"print",        kl_call_print,     0,                1, KL_MAX_ARGS, 0, 0},
    {"prod",         kl_call_reduce,    KL_OP_mul,        1, 1, D_AXIS, 0},
    {"program_id",   kl_call_program,   KL_OP_program_id, 1, 1, 0, 0},
    {"range",        kl_call_range,     0,                1, 1, 0, 0},
    {"rank",         kl_call_rank,      0,                1, 1, 0, 0},
    {"rcp_fast",     kl_call_rcp,       0,                1, 1, 0, 1},
    {"reduce",       kl_call_reduce_fn, 0,                2, 2, D_AXIS | D_COMM, 0},
    {"reshape",      kl_call_reshape,   0,                1, 5, 0, 0},
    {"rint",         kl_call_math1,     KL_OP_rint,       1, 1, 0, 0},
    {"round",        kl_call_math1,     KL_OP_round,      1, 1, 0, 0},
    {"rsqrt",        kl_call_math1,     KL_OP_rsqrt,      1, 1, 0, 0},
    {"rsqrt_fast",   kl_call_math1,     KL_OP_rsqrt,      1, 1, 0, 1},
    {"scan",         kl_call_scan,      0,                2, 2, D_AXIS | D_REV, 0},
    {"sigmoid",      kl_call_math1,     KL_OP_sigmoid,    1, 1, 0, 0},
    {"sigmoid_fast", kl_call_math1,     KL_OP_sigmoid,    1, 1, 0, 1},
    {"sin",          kl_call_math1,     KL_OP_sin,        1, 1, 0, 0},
    {"sin_fast",     kl_call_math1,     KL_OP_sin,        1, 1, 0, 1},
    {"size",         kl_call_size,      0,                2, 2, 0, 0},
    {"sqrt",         kl_call_math1,     KL_OP_sqrt,       1, 1, 0, 0},
    {"sqrt_fast",    kl_call_math1,     KL_OP_sqrt,       1, 1, 0, 1},
    {"store",        kl_call_store,     0,                2, 2, D_MASK | D_CACHE, 0},
    {"sum",          kl_call_reduce,    KL_OP_add,        1, 1, D_AXIS, 0},
    {"tanh",         kl_call_math1,     KL_OP_tanh,       1, 1, 0, 0},
    {"tanh_fast",    kl_call_math1,     KL_OP_tanh,       1, 1, 0, 1},
    {"trans",        kl_call_trans,     0,                1, 1, 0, 0},
    {"trunc",        kl_call_math1,     KL_OP_trunc,      1, 1, 0, 0},
    {"umulhi",       kl_call_int2,      KL_OP_umulhi,     2, 2, 0, 0},
};
/* clang-format on */

/* Functions of the library, and the file that has them. */
static const char *const library[][2] = {
    {"argsort", "sort"}, {"gelu", "act"}, {"gelu_tanh", "act"}, {"histogram", "sort"}, {"rand", "random"},
    {"randint", "random"}, {"randn", "random"}, {"relu", "act"}, {"silu", "act"}, {"sort", "sort"}, {"topk", "sort"},
};

static const struct kl_builtin *find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

bool kl_is_builtin(const char *name)
{
    return find(name) != NULL;
}

uint32_t kl_builtin_names(const char **out, uint32_t max)
{
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table && n < max; i++)
        out[n++] = table[i].name;
    return n;
}

/* Sort the arguments of a call into positions and designators. */
static bool take_args(kl_elab *e, const struct kl_builtin *b, const kl_node *n, struct kl_args *a)
{
    *a = (struct kl_args){.call = n, .s = n->span};
    for (uint32_t i = 0; i < n->nkid; i++) {
        const kl_node *k = n->kid[i];
        if (k->kind != KL_N_DESIG) {
            if (a->n < KL_MAX_ARGS)
                a->pos[a->n] = k;
            a->n++;
            continue;
        }
        uint32_t d = 0;
        while (d < KL_NDESIG && strcmp(designators[d], k->name) != 0)
            d++;
        if (d == KL_NDESIG || !(b->desig >> d & 1)) {
            const char *names[KL_NDESIG];
            uint32_t m = 0;
            for (uint32_t j = 0; j < KL_NDESIG; j++)
                if (b->desig >> j & 1)
                    names[m++] = designators[j];
            struct kl_diag *g = kl_err(e, KL_K0402, k->span, "`%s` has no `.%s`", n->name, k->name);
            const char *near = kl_nearest(k->name, names, m);
            if (near)
                kl_note(g, (kl_span){0, 0}, "`.%s` is meant, perhaps", near);
            return false;
        }
        if (a->desig[d]) {
            kl_err(e, KL_K0402, k->span, "`.%s` is given twice", k->name);
            return false;
        }
        a->desig[d] = k;
    }
    if (a->n < b->min || a->n > b->max || a->n > KL_MAX_ARGS) {
        char want[40];
        if (b->min == b->max)
            snprintf(want, sizeof want, "%u", b->min);
        else
            snprintf(want, sizeof want, "%u to %u", b->min, b->max);
        struct kl_diag *g = kl_err(e, KL_K0401, n->span, "`%s` takes %s argument%s, not %u", n->name, want,
                                   b->max == 1 ? "" : "s", a->n);
        if (a->n == b->max + 1u && b->desig & 1u << KL_DG_AXIS)
            kl_note(g, (kl_span){0, 0}, "an axis is given by name: %s(x, .axis = 0)", n->name);
        return false;
    }
    return true;
}

/* Functions that look at several elements of a tile. */
static bool mixes(const struct kl_builtin *b, uint32_t args)
{
    static kl_builtin_fn *const all[] = {kl_call_reduce, kl_call_argmax, kl_call_reduce_fn, kl_call_scan, kl_call_dot,
                                         kl_call_broadcast, kl_call_reshape, kl_call_trans, kl_call_permute,
                                         kl_call_cat, kl_call_flip, kl_call_gather};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (b->fn == all[i])
            return true;
    return b->fn == kl_call_minmax && args == 1;
}

/* Where scalars are expanded to tiles, a sum would be one over what are separate elements. */
static bool mixes_elements(kl_elab *e, const struct kl_builtin *b, const struct kl_args *a)
{
    if (!e->fx || !e->fx->lifted || !mixes(b, a->n))
        return false;
    bool touched = false;
    for (uint32_t i = 0; i < a->n; i++)
        touched |= kl_mentions_taint(e->fx, a->pos[i]);
    if (!touched)
        return false;
    struct kl_diag *g = kl_err(e, KL_K0403, a->s, "`%s` would mix the elements of tiles that `%s` takes one "
                               "at a time", a->call->name, e->fx->fn->name);
    kl_note(g, e->fx->fn->name_span, "its parameters are scalars; declare them as tiles or `auto`");
    return true;
}

kl_value kl_call(kl_elab *e, const kl_node *n)
{
    kl_sym *s = kl_sym_find(e, n->name);
    if (s && s->kind == KL_S_FUNC)
        return kl_expand(e, s, n);
    const struct kl_builtin *b = find(n->name);
    struct kl_args a;
    if (!b) {
        for (uint32_t i = 0; i < e->m->kernels.n; i++)
            if (e->m->kernels.v[i]->name == n->name) {
                kl_err(e, KL_K0203, n->span, "`%s` is a kernel; kernels are launched by the host and not "
                       "called", n->name);
                return kl_bad(n->span);
            }
        size_t lib = 0;
        while (lib < sizeof library / sizeof *library && strcmp(library[lib][0], n->name) != 0)
            lib++;
        if (s)
            kl_note(kl_err(e, KL_K0203, n->span, "`%s` is not a function", n->name), s->decl,
                    "declared here");
        else if (lib < sizeof library / sizeof *library)
            kl_note(kl_err(e, KL_K0203, n->name_span, "there is no function `%s` here", n->name), (kl_span){0, 0},
                    "the library has one: #include <%s.kiln>", library[lib][1]);
        else
            kl_sym_need(e, n);
    } else if (take_args(e, b, n, &a) && !mixes_elements(e, b, &a)) {
        kl_value v = b->fn(e, b, &a);
        v.span = n->span;
        return v;
    }
    for (uint32_t i = 0; i < n->nkid; i++)
        kl_mark_used(e, n->kid[i]);
    return kl_bad(n->span);
}

bool kl_get_word(kl_elab *e, const kl_node *d, const char *const *words, uint32_t n, uint32_t *out)
{
    if (!d)
        return true;
    const kl_node *x = d->kid[0];
    for (uint32_t i = 0; i < n && x->kind == KL_N_NAME; i++)
        if (strcmp(words[i], x->name) == 0) {
            *out = i;
            return true;
        }
    kl_buf b = {.a = e->a};
    for (uint32_t i = 0; i < n; i++)
        kl_putf(&b, "%s%s", !i ? "" : i + 1 < n ? ", " : " or ", words[i]);
    kl_err(e, KL_K0402, d->span, "`.%s` is %s", d->name, kl_buf_str(&b));
    return false;
}
