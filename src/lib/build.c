/* build.c - `kiln build`: kernels as one C file that needs neither this library nor a compiler
 * where it runs.
 *
 * The file has the prelude of the CPU back end, each kernel's code for each variant (PTX as text),
 * the kernel's clauses as code (lang/clauses.c), tables, the launch (build_text.c), and a typed
 * function for each kernel and choice of types.  A variant is a choice of the constants that have a
 * list of values, and of optional arrays.  Equal texts are written once. */
#include "lib/build.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen/c/genc.h"
#include "lang/setup.h"
#include "lib/lib.h"
#include "tool.h"

enum {
    MAX_VALUES = 64,  /* of one list */
    MAX_VARIANTS = 1024,
    MAX_PARAMS = 48, MAX_SLOTS = 512, MAX_CLAUSES = 512, /* as in build_text.c */
    MAX_OPTIONAL = 3
};

/* A -D option: the values of a type or constant, or whether an optional array is given. */
struct def {
    const char *name;
    uint32_t n;
    bool list; /* more than one value was asked for */
    bool fixed; /* "256!": whatever the shapes, as if every launch gave it */
    bool used;
    kiln_arg v[MAX_VALUES];
};

struct text {
    const char *s, *name;
    size_t n;
    bool v4; /* C: wanted for x86-64-v4, too */
};
typedef KL_VEC(struct text) texts;

struct build {
    struct kl_call *c;
    kl_arena *a;
    kiln_module *mod;
    const kl_tool_build_opts *o;
    struct def *def;
    const char *upper;
    texts code, ptx, extra;
    kl_buf fns, tables, wrap, protos, manifest;
    KL_VEC(const char *) names;
    uint32_t nfn, cpu;
};

static void fail(struct build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
static void fail(struct build *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = kl_vprintf(b->a, fmt, ap);
    va_end(ap);
    kl_raise(&b->c->env, KILN_E_UNSUPPORTED, "%s", text);
}

/* ---- -D ---- */

static const char *number(const char *p, kiln_arg *out)
{
    char *end;
    size_t n = strcspn(p, ",:!");
    enum kl_elem e = kl_elem_by_name(p, (uint32_t)n);
    if (e)
        *out = (kiln_arg){.kind = KILN_ARG_TYPE, .u.type = (kiln_dtype)e};
    else if ((n == 4 && !strncmp(p, "true", 4)) || (n == 5 && !strncmp(p, "false", 5)))
        *out = (kiln_arg){.kind = KILN_ARG_INT, .u.i = *p == 't'};
    else {
        *out = (kiln_arg){.kind = KILN_ARG_INT, .u.i = strtoll(p, &end, 0)};
        if (end == p)
            return NULL;
        if (end != p + n) {
            *out = (kiln_arg){.kind = KILN_ARG_FLOAT, .u.f = strtod(p, &end)};
            if (end != p + n)
                return NULL;
        }
    }
    return p + n;
}

static void put_value(struct build *b, struct def *d, kiln_arg v)
{
    if (d->n == MAX_VALUES)
        fail(b, "-D %s: there are more than %d values", d->name, MAX_VALUES);
    v.name = d->name;
    d->v[d->n++] = v;
}

/* "f32,bf16", "1024", "256!", "128:65536:*2", "1:4", "0:256:64" */
static void read_def(struct build *b, struct def *d, const char *text)
{
    const char *p = text;
    for (;;) {
        kiln_arg v, to;
        const char *q = *p ? number(p, &v) : NULL;
        if (q && *q == ':') {
            int64_t step = 1;
            bool times = false;
            q = number(q + 1, &to);
            if (q && *q == ':') {
                char *end;
                times = q[1] == '*';
                step = strtoll(q + 1 + times, &end, 0);
                q = end;
            }
            if (!q || v.kind != KILN_ARG_INT || to.kind != KILN_ARG_INT || step < 1 + times ||
                (times && v.u.i < 1) || to.u.i < v.u.i)
                q = NULL;
            for (int64_t i = v.u.i; q && i <= to.u.i;) {
                put_value(b, d, (kiln_arg){.kind = KILN_ARG_INT, .u.i = i});
                if (times ? __builtin_mul_overflow(i, step, &i) : __builtin_add_overflow(i, step, &i))
                    break;
            }
            d->list = true;
        } else if (q) {
            put_value(b, d, v);
        }
        if (q && strcmp(q, "!") == 0 && d->n == 1 && !d->list) {
            d->fixed = true;
            q++;
        }
        if (!q || (*q && *q != ','))
            fail(b, "-D %s=%s is no list of types or numbers, such as f32,bf16 or 128:65536:*2", d->name,
                 text);
        if (!*q)
            break;
        p = q + 1;
    }
    d->list |= d->n > 1;
}

static struct def *def_of(struct build *b, const char *name)
{
    for (size_t i = 0; i < b->o->ndefine; i++)
        if (strcmp(b->def[i].name, name) == 0)
            return &b->def[i];
    return NULL;
}

/* ---- texts ---- */

/* The number of a text, entered if it is new. */
static uint32_t text_of(struct build *b, texts *t, const char *s, size_t n, const char *name)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->v[i].n == n && memcmp(t->v[i].s, s, n) == 0)
            return i;
    struct text x = {kl_strndup(b->a, s, n), name, n, false};
    kl_push(b->a, t, x);
    return t->n - 1;
}

/* A function as C, under a name by its number; .. fields of struct kl_cpu.  v4: in two versions. */
static const char *cpu_of(struct build *b, kl_fn *f, bool v4)
{
    const kl_pipeline p = {.level = 2};
    kl_cinfo info = {0};
    kl_buf t = {.a = b->a}, x = {.a = b->a};
    static const char head[] = "__attribute__((visibility(\"default\")))\n";
    const struct kl_target target = {.fused = true};
    kl_run_passes(f, &p, &target);
    kl_c_emit(&t, f, "KILN_KERNEL", false, &info);
    const char *s = kl_buf_str(&t);
    KL_CHECK(&b->c->env, strncmp(s, head, sizeof head - 1) == 0);
    uint32_t i = text_of(b, &b->code, s + sizeof head - 1, t.n - (sizeof head - 1), f->name), e = 0;
    if (f->nparam + info.nextra + 8 > MAX_SLOTS)
        fail(b, "kernel `%s` has too many buffers for kiln build", f->name);
    b->code.v[i].v4 |= v4;
    const char *second = v4 ? kl_printf(b->a, "KL_V4(kw_k%u)", i) : "0";
    for (uint32_t k = 0; k < info.nextra; k++)
        kl_putf(&x, k ? ", %lld" : "%lld", (long long)info.extra[k]);
    if (info.nextra)
        e = text_of(b, &b->extra, kl_buf_str(&x), x.n, NULL) + 1;
    const char *extra = e ? kl_printf(b->a, "kl_x%u", e - 1) : "0";
    return kl_printf(b->a, "{kl_k%u, %s, %llu, %s, %u}", i, second, (unsigned long long)info.scratch,
                     extra, info.nextra);
}

/* ---- one function: a kernel with types ---- */

struct function {
    struct build *b;
    kiln_kernel *k;
    const kl_node *params;
    kl_bound bound;
    bool *known;
    kl_sources src;
    const char *name;      /* in C */
    kiln_arg *args;        /* types, fixed constants; behind them those of the variant */
    uint32_t nargs;
    uint32_t con[MAX_PARAMS], ncon; /* parameters: constants with a list */
    bool isc[MAX_PARAMS];  /* is one of them */
    bool isarg[MAX_PARAMS]; /* a scalar or constant that the caller gives */
    uint32_t opt[MAX_OPTIONAL], nopt; /* optional arrays that may be given */
    bool approximate;      /* some text for a GPU has bits of its own */
    uint32_t fixed;        /* by position among the arrays: optional ones that are always given */
};

static enum kl_pk kind_of(const struct function *f, uint32_t i)
{
    return kl_param_kind(f->params->kid[i]);
}

/* One variant for one target. */
struct making {
    struct function *f;
    const kl_bound *bd;
    uint32_t arch;       /* 0: the CPU */
    kl_buf rows;         /* GPU: struct kl_gpu */
    uint32_t n;
    const char *cpu[2];
};

static kl_fn *lowered(struct build *b, const kl_bound *bd, int alias)
{
    kl_bound x = *bd;
    x.may_alias = alias;
    kl_fn *fn = kl_lower(b->a, b->mod->ast, &x, b->c->d);
    if (!fn)
        kl_raise(&b->c->env, KILN_E_COMPILE, "%s", "");
    return fn;
}

static void make_cpu(struct making *k)
{
    for (int alias = 0; alias < 2; alias++)
        k->cpu[alias] = cpu_of(k->f->b, lowered(k->f->b, k->bd, alias), true);
}

/* PTX for each set of facts, most first, and aliasing. */
static void make_gpu(struct making *k)
{
    static const uint8_t facts[4] = {KL_FACT_V16 | KL_FACT_I32, KL_FACT_V16, KL_FACT_I32, 0};
    struct build *b = k->f->b;
    const kl_pipeline p = {.level = 2};
    for (int alias = 0; alias < 2; alias++)
        for (int i = 0; i < 4; i++) {
            kl_fn *fn = lowered(b, k->bd, alias);
            const kl_ptx_opts po = {.arch = k->arch,
                                    .v16 = facts[i] & KL_FACT_V16,
                                    .i32 = facts[i] & KL_FACT_I32};
            kl_ptxinfo info;
            kl_buf body = {.a = b->a}, all = {.a = b->a};
            kl_run_passes(fn, &p, NULL);
            kl_ptx_emit(&body, fn, &po, &info);
            k->f->approximate |= info.approximate;
            kl_ptx_prelude(&all, fn, &po, info.cluster > 1);
            kl_buf_put(&all, body.s, body.n);
            uint32_t at = text_of(b, &b->ptx, kl_buf_str(&all), all.n, info.entry);
            kl_putf(&k->rows, "    {%u, %d, %d, %d, %u, %u, %u, %u, %u, %lluu},\n", k->arch, po.v16,
                    po.i32, alias, info.cluster ? info.cluster : 1, at, info.threads, info.dynamic,
                    info.shared, (unsigned long long)info.grid_limit);
            k->n++;
        }
}

static const char *constants(struct function *f, const kl_bound *bd)
{
    kl_buf t = {.a = f->b->a};
    for (uint32_t k = 0; k < f->ncon; k++)
        kl_putf(&t, "%s%s = %lld", k ? ", " : " with ", f->params->kid[f->con[k]]->name,
                (long long)bd->param[f->con[k]].bits);
    return kl_buf_str(&t);
}

/* Make it, unless a limit of the target forbids, which is said.  false: it is left out. */
static bool attempt(struct making *k)
{
    struct build *b = k->f->b;
    kl_env *env = &b->c->env;
    uint32_t before = b->c->d->nerr;
    jmp_buf here, *const outer = env->fail;
    env->fail = &here;
    if (setjmp(here) == 0) {
        if (k->arch)
            make_gpu(k);
        else
            make_cpu(k);
        env->fail = outer;
        return true;
    }
    env->fail = outer;
    if (env->status != KILN_E_UNSUPPORTED || b->c->d->nerr != before)
        longjmp(*outer, 1);
    kl_diag(b->c->d, KL_K1821, k->f->k->node->name_span, "kernel `%s`%s is not built for %s: %s",
            k->f->k->name, constants(k->f, k->bd), k->arch ? kl_printf(b->a, "sm_%u", k->arch) : "the CPU",
            env->msg);
    return false;
}

/* One variant: constants are chosen in f->args; mask: which optional arrays are given. */
static void variant(struct function *f, uint32_t number, uint32_t mask, kl_buf *rows)
{
    struct build *b = f->b;
    kl_bound bd;
    bool *known = kl_new_n(b->a, bool, f->params->nkid + 1);
    kl_buf con = {.a = b->a}, gpu = {.a = b->a};
    uint32_t given = 0, arrays = 0, n = 0;
    const char *cpu[2] = {"{0, 0, 0, 0, 0}", "{0, 0, 0, 0, 0}"};
    if (!kl_bind_build(b->a, b->mod->ast, f->k->node, f->args, f->nargs + f->ncon, NULL, &bd, known,
                       NULL, b->c->d))
        kl_raise(&b->c->env, KILN_E_ARG, "%s", "");
    for (uint32_t i = 0; i < bd.nparam; i++) {
        enum kl_pk k = kind_of(f, i);
        if (k == KL_PK_CONST && !known[i])
            fail(b, "kernel `%s`: nothing determines the constant `%s` at build time; give -D %s=...",
                 f->k->name, f->params->kid[i]->name, f->params->kid[i]->name);
        if (k != KL_PK_ARRAY)
            continue;
        if (f->params->kid[i]->flags & KL_NF_OPTIONAL)
            bd.param[i].given = f->fixed >> arrays & 1;
        for (uint32_t o = 0; o < f->nopt; o++)
            if (f->opt[o] == i)
                bd.param[i].given = mask >> o & 1;
        given |= (uint32_t)bd.param[i].given << arrays++;
    }
    for (uint32_t k = 0; k < f->ncon; k++)
        kl_putf(&con, k ? ", %lluu" : "%lluu", (unsigned long long)bd.param[f->con[k]].bits);
    if (f->ncon)
        kl_putf(&b->tables, "static const uint64_t kl_c%u_%u[] = {%s};\n", b->nfn, number,
                kl_buf_str(&con));
    kl_fn *cl = kl_lower_clauses(b->a, b->mod->ast, &bd, NULL, b->c->d);
    if (!cl)
        kl_raise(&b->c->env, KILN_E_COMPILE, "%s", "");
    const char *clauses = cpu_of(b, cl, false);
    struct making host = {.f = f, .bd = &bd};
    if (b->cpu && attempt(&host))
        memcpy(cpu, host.cpu, sizeof cpu);
    for (size_t t = 0; t < b->o->ntarget; t++) {
        struct making k = {.f = f, .bd = &bd, .rows = {.a = b->a}};
        if (!kl_ptx_parse_arch(b->o->target[t], &k.arch) || !attempt(&k))
            continue;
        kl_puts(&gpu, kl_buf_str(&k.rows));
        n += k.n;
    }
    if (n)
        kl_putf(&b->tables, "static const struct kl_gpu kl_g%u_%u[] = {\n%s};\n", b->nfn, number,
                kl_buf_str(&gpu));
    kl_putf(rows, "    {%u, ", given);
    kl_putf(rows, f->ncon ? "kl_c%u_%u, " : "0, ", b->nfn, number);
    kl_putf(rows, "%s, {%s, %s}, ", clauses, cpu[0], cpu[1]);
    kl_putf(rows, n ? "kl_g%u_%u, " : "0, ", b->nfn, number);
    kl_putf(rows, "%u},\n", n);
}

static void variants(struct function *f)
{
    struct build *b = f->b;
    kl_buf rows = {.a = b->a};
    uint32_t at[MAX_PARAMS] = {0}, number = 0;
    for (;;) {
        for (uint32_t k = 0; k < f->ncon; k++)
            f->args[f->nargs + k] = def_of(b, f->params->kid[f->con[k]]->name)->v[at[k]];
        for (uint32_t mask = 0; mask < 1u << f->nopt; mask++) {
            if (number == MAX_VARIANTS)
                fail(b, "kernel `%s`: there are more than %d variants", f->k->name, MAX_VARIANTS);
            variant(f, number++, mask, &rows);
        }
        uint32_t k = f->ncon;
        while (k && ++at[k - 1] == def_of(b, f->params->kid[f->con[k - 1]]->name)->n)
            at[--k] = 0;
        if (!k)
            break;
    }
    kl_putf(&b->tables, "static const struct kl_variant kl_v%u[] = {\n%s};\n", b->nfn, kl_buf_str(&rows));
    kl_putf(&b->manifest, "\"variants\": %u, \"approximate\": %s, ", number,
            f->approximate ? "true" : "false");
}

/* Is array number i one that every launch of the function has? */
static bool always_given(const struct function *f, uint32_t i)
{
    uint32_t arrays = 0;
    for (uint32_t k = 0; k < i; k++)
        arrays += kind_of(f, k) == KL_PK_ARRAY;
    return !(f->params->kid[i]->flags & KL_NF_OPTIONAL) || f->fixed >> arrays & 1;
}

/* Do shapes give it at every launch? */
static bool deduced(const struct function *f, uint32_t i)
{
    for (uint32_t k = 0; k < f->src.n; k++)
        if (f->src.v[k].param == i && always_given(f, f->src.v[k].array))
            return true;
    return false;
}

static bool names_const(const struct function *f, const kl_node *n)
{
    if (!n)
        return false;
    if (n->kind == KL_N_NAME)
        for (uint32_t i = 0; i < f->params->nkid; i++)
            if (f->params->kid[i]->name == n->name)
                return kind_of(f, i) == KL_PK_CONST && !f->known[i] && !f->isc[i];
    for (uint32_t i = 0; i < n->nkid; i++)
        if (names_const(f, n->kid[i]))
            return true;
    return false;
}

static bool names_scalar(const struct function *f, const kl_node *n)
{
    if (!n)
        return false;
    if (n->kind == KL_N_NAME)
        for (uint32_t i = 0; i < f->params->nkid; i++)
            if (f->params->kid[i]->name == n->name && kind_of(f, i) == KL_PK_SCALAR)
                return true;
    bool yes = n->kind == KL_N_CALL && n->name && strcmp(n->name, "num_sms") == 0;
    for (uint32_t i = 0; i < n->nkid; i++)
        yes |= names_scalar(f, n->kid[i]);
    return yes;
}

/* A name for C and C++. */
static const char *c_name(struct build *b, const char *s)
{
    static const char *const taken[] = {"lib", "stream", "new", "class", "this", "template", "delete",
        "private", "public", "operator", "namespace", "int", "char", "short", "long", "float", "double",
        "register", "static", "auto", "and", "or", "not", "xor", "default", "switch", "case", "goto",
        "restrict", "volatile", "union", "enum", "extern", "signed", "unsigned", "typename", "using",
        "virtual", "friend", "explicit", "export", "try", "catch", "throw", "asm", "inline", "typedef",
        "mutable", "alignas", "concept", "requires", "linux", "unix", "bool", "true", "false"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(s, taken[i]) == 0)
            return kl_printf(b->a, "%s_", s);
    return s;
}

static const char *c_type(enum kl_elem e)
{
    static const char *const t[] = {
#define ELEM(name, code, bytes, kind, ctype, acc, doc) [code] = #ctype,
#include "base/elem.def"
    };
    return t[e];
}

static int64_t low_of(enum kl_elem e)
{
    return kl_elems[e].kind == KL_KIND_SINT ? (int64_t)(UINT64_MAX << (kl_elems[e].bytes * 8 - 1)) : 0;
}

static int64_t high_of(enum kl_elem e)
{
    bool sint = kl_elems[e].kind == KL_KIND_SINT;
    return kl_elems[e].bytes == 8 ? INT64_MAX
                                  : (int64_t)((UINT64_C(1) << (kl_elems[e].bytes * 8 - sint)) - 1);
}

/* Sorts the parameters: what a list varies, what is deduced, what the caller gives. */
static void sort_out(struct function *f)
{
    struct build *b = f->b;
    uint32_t n = f->params->nkid, arrays = 0;
    for (uint32_t i = 0; i < n; i++) {
        const kl_node *p = f->params->kid[i];
        enum kl_pk k = kind_of(f, i);
        struct def *o = k == KL_PK_ARRAY && p->flags & KL_NF_OPTIONAL ? def_of(b, p->name) : NULL;
        if (o) {
            if (o->n != 1 || o->v[0].kind != KILN_ARG_INT)
                fail(b, "-D %s: the array is given (true) or not (false)", p->name);
            o->used = true;
            f->fixed |= (uint32_t)(o->v[0].u.i != 0) << arrays;
        } else if (k == KL_PK_ARRAY && p->flags & KL_NF_OPTIONAL) {
            if (f->nopt == MAX_OPTIONAL)
                fail(b, "kernel `%s` has more than %d optional arrays; say which are given, as in "
                     "-D %s=false", f->k->name, MAX_OPTIONAL, p->name);
            f->opt[f->nopt++] = i;
        }
        arrays += k == KL_PK_ARRAY;
        if (k == KL_PK_ARRAY && f->bound.param[i].init && !f->known[i])
            fail(b, "kernel `%s`: the initial value of `%s` is not known at build time", f->k->name, p->name);
        if (f->isc[i]) {
            f->con[f->ncon++] = i;
            if (!kl_is_int((enum kl_elem)f->bound.param[i].elem) && f->bound.param[i].elem != KL_bool)
                fail(b, "-D %s: a list can have integers only", p->name);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const kl_node *p = f->params->kid[i], *def = kl_param_default(p);
        enum kl_pk k = kind_of(f, i);
        if (k == KL_PK_SCALAR)
            f->isarg[i] = !deduced(f, i);
        if (f->isc[i] && !deduced(f, i)) {
            f->isarg[i] = !def || !names_scalar(f, def);
            if (!f->isarg[i] && names_const(f, def))
                fail(b, "kernel `%s`: the default of `%s` depends on a constant that is not known at build "
                     "time; give that one with -D", f->k->name, p->name);
        }
    }
}

static const char *quoted(struct build *b, const char *s)
{
    kl_buf q = {.a = b->a};
    kl_puts(&q, "\"");
    for (; *s; s++)
        kl_putf(&q, *s == '"' || *s == '\\' ? "\\%c" : *s == '\n' ? " " : "%c", *s);
    kl_puts(&q, "\"");
    return kl_buf_str(&q);
}

static void put_params(struct function *f)
{
    struct build *b = f->b;
    uint32_t arrays = 0, values = 0;
    const char *comma = "";
    kl_putf(&b->tables, "static const struct kl_par kl_p%u[] = {\n", b->nfn);
    kl_puts(&b->manifest, "\"parameters\": [");
    for (uint32_t i = 0; i < f->params->nkid; i++) {
        const kl_node *p = f->params->kid[i], *dims = kl_param_dims(p), *str = kl_param_strides(p);
        const struct kl_boundparam *x = &f->bound.param[i];
        enum kl_elem e = (enum kl_elem)x->elem;
        enum kl_pk k = kind_of(f, i);
        unsigned exts = 0, strs = 0, flags = 0;
        int arg = -1;
        bool ints = e && k != KL_PK_ARRAY && kl_is_int(e);
        if (k == KL_PK_ARRAY) {
            for (uint32_t d = 0; d < dims->nkid; d++) {
                exts |= (unsigned)(dims->kid[d] != NULL) << d;
                strs |= (unsigned)(str && d < str->nkid && str->kid[d]) << d;
            }
            flags = (p->flags & KL_NF_OPTIONAL ? 1u : 0) | (p->flags & KL_NF_WRITTEN ? 2u : 0) |
                    (x->init ? 4u : 0);
            arg = (int)arrays++;
        } else if (f->isarg[i]) {
            arg = (int)values++;
        }
        /* types and fixed constants have a row, too, that positions stay: kind 3 */
        kl_putf(&b->tables, "    {\"%s\", %d, %d, %d, %d, %u, %u, %u, %d, ", p->name,
                k == KL_PK_ARRAY ? 0 : k == KL_PK_SCALAR ? 1 : f->isc[i] ? 2 : 3, e,
                e ? kl_elems[e].bytes : 0, k == KL_PK_ARRAY ? (int)dims->nkid : 0, flags, exts, strs, arg);
        if (ints && low_of(e) == INT64_MIN)
            kl_putf(&b->tables, "INT64_MIN, INT64_MAX, 0},\n");
        else
            kl_putf(&b->tables, "%lld, %lld, %lluu},\n", ints ? (long long)low_of(e) : 0,
                    ints ? (long long)high_of(e) : 0,
                    k == KL_PK_ARRAY && x->init ? (unsigned long long)x->bits : 0);
        const char *what = k == KL_PK_ARRAY   ? "array"
                           : k == KL_PK_TYPE  ? "type"
                           : k == KL_PK_CONST ? "constant"
                                              : "scalar";
        const char *from = k == KL_PK_TYPE                ? "build"
                           : arg >= 0                     ? "argument"
                           : k == KL_PK_CONST && !f->isc[i] ? "build"
                           : deduced(f, i)                ? "shapes"
                                                          : "default";
        kl_putf(&b->manifest, "%s\n      {\"name\": \"%s\", \"kind\": \"%s\", \"type\": \"%s\", "
                "\"from\": \"%s\"", comma, p->name, what, kl_elems[e].name, from);
        if (k == KL_PK_ARRAY)
            kl_putf(&b->manifest, ", \"rank\": %u, \"written\": %s, \"optional\": %s", dims->nkid,
                    flags & 2 ? "true" : "false", flags & 1 ? "true" : "false");
        if (k == KL_PK_CONST && !f->isc[i] && f->known[i])
            kl_putf(&b->manifest, ", \"value\": %.17g", kl_elem_double(e, x->bits));
        if (f->isc[i]) {
            const struct def *d = def_of(b, p->name);
            kl_puts(&b->manifest, ", \"values\": [");
            for (uint32_t v = 0; v < d->n; v++)
                kl_putf(&b->manifest, v ? ", %lld" : "%lld", (long long)d->v[v].u.i);
            kl_puts(&b->manifest, "]");
        }
        kl_puts(&b->manifest, "}");
        comma = ",";
    }
    kl_puts(&b->manifest, "]");
    kl_puts(&b->tables, "};\n");
    if (!f->src.n)
        return;
    kl_putf(&b->tables, "static const struct kl_source kl_s%u[] = {\n", b->nfn);
    for (uint32_t i = 0; i < f->src.n; i++) {
        const struct kl_source *s = &f->src.v[i];
        kl_putf(&b->tables, "    {%u, %u, %u, %u, %u, {", s->array, s->param, s->dim, s->stride, s->nstep);
        for (uint32_t k = 0; k < s->nstep; k++)
            kl_putf(&b->tables, s->step[k].k == INT64_MIN ? "%s{'%c', INT64_MIN}" : "%s{'%c', %lld}",
                    k ? ", " : "", s->step[k].op, (long long)s->step[k].k);
        kl_puts(&b->tables, s->nstep ? "}},\n" : "{0, 0}}},\n");
    }
    kl_puts(&b->tables, "};\n");
}

/* The typed function and its declaration. */
static void put_wrapper(struct function *f)
{
    struct build *b = f->b;
    kl_buf head = {.a = b->a}, t = {.a = b->a}, v = {.a = b->a};
    uint32_t nt = 0, nv = 0;
    kl_putf(&head, "int %s(%s_lib *lib, void *stream", f->name, b->o->name);
    for (uint32_t i = 0; i < f->params->nkid; i++) {
        const kl_node *p = f->params->kid[i];
        const char *name = c_name(b, p->name);
        enum kl_elem e = (enum kl_elem)f->bound.param[i].elem;
        if (kind_of(f, i) == KL_PK_ARRAY) {
            kl_putf(&head, ",\n        const kiln_aot_tensor *%s", name);
            kl_putf(&t, nt++ ? ", %s" : "%s", name);
        } else if (f->isarg[i]) {
            kl_putf(&head, ",\n        %s %s", c_type(e), name);
            kl_putf(&v, nv++ ? ", " : "");
            if (e == KL_f32 || e == KL_f64)
                kl_putf(&v, "kl_%s_bits(%s)", kl_elems[e].name, name);
            else if (e == KL_bool)
                kl_putf(&v, "%s != 0", name);
            else
                kl_putf(&v, kl_elems[e].kind == KL_KIND_SINT ? "(uint64_t)(int64_t)%s" : "%s", name);
        }
    }
    kl_puts(&head, ")");
    kl_putf(&b->protos, "%s;\n", kl_buf_str(&head));
    kl_putf(&b->wrap, "\n%s\n{\n    static const struct kl_function kl_f = {\n        \"%s\", kl_p%u, ",
            kl_buf_str(&head), f->name, b->nfn);
    kl_putf(&b->wrap, f->src.n ? "kl_s%u, " : "0, ", b->nfn);
    kl_putf(&b->wrap, "KL_DEFAULTS%u, ", b->nfn);
    kl_putf(&b->wrap, f->ncon ? "kl_n%u, " : "0, ", b->nfn);
    uint32_t ngrid = 0, nreq = 0;
    const kl_node *clauses = f->k->node->kid[1];
    for (uint32_t i = 0; i < clauses->nkid; i++) {
        const kl_node *c = clauses->kid[i];
        if (c->kind == KL_N_GRID)
            ngrid += c->nkid < 3 ? c->nkid : 3;
        if (c->kind != KL_N_REQUIRES)
            continue;
        if (!nreq)
            kl_putf(&b->tables, "static const char *const kl_q%u[] = {", b->nfn);
        kl_putf(&b->tables, nreq++ ? ", %s" : "%s", quoted(b, c->name ? c->name : "this condition"));
    }
    if (nreq)
        kl_puts(&b->tables, "};\n");
    kl_putf(&b->wrap, nreq ? "kl_q%u, " : "0, ", b->nfn);
    kl_putf(&b->wrap, "kl_v%u,\n        %u, %u, %u, %u, %u, sizeof kl_v%u / sizeof *kl_v%u};\n", b->nfn,
            f->params->nkid, f->src.n, f->ncon, ngrid, nreq, b->nfn, b->nfn);
    kl_putf(&b->wrap, "    const kiln_aot_tensor *const kl_t[] = {%s};\n    const uint64_t kl_v[] = {%s};\n",
            nt ? kl_buf_str(&t) : "0", nv ? kl_buf_str(&v) : "0");
    kl_puts(&b->wrap, "    return kl_call(lib, &kl_f, stream, kl_t, kl_v);\n}\n");
}

/* Defaults of the constants with a list, as code. */
static void put_defaults(struct function *f)
{
    struct build *b = f->b;
    const char *code = "{0, 0, 0, 0, 0}";
    bool any = false;
    for (uint32_t k = 0; k < f->ncon; k++)
        any |= !f->isarg[f->con[k]] && kl_param_default(f->params->kid[f->con[k]]);
    if (any) {
        kl_fn *fn = kl_lower_clauses(b->a, b->mod->ast, &f->bound, f->isc, b->c->d);
        if (!fn)
            kl_raise(&b->c->env, KILN_E_COMPILE, "%s", "");
        code = cpu_of(b, fn, false);
    }
    kl_putf(&b->tables, "#define KL_DEFAULTS%u %s\n", b->nfn, code);
    if (!f->ncon)
        return;
    kl_putf(&b->tables, "static const uint8_t kl_n%u[] = {", b->nfn);
    for (uint32_t k = 0; k < f->ncon; k++)
        kl_putf(&b->tables, k ? ", %u" : "%u", f->con[k]);
    kl_puts(&b->tables, "};\n");
}

/* One kernel with one choice of types: at[i] of the values of type parameter i. */
static void function(struct build *b, kiln_kernel *k, const uint32_t *at)
{
    struct function *f = kl_new(b->a, struct function);
    uint32_t n = k->node->kid[0]->nkid;
    kl_buf name = {.a = b->a};
    f->b = b;
    f->k = k;
    f->params = k->node->kid[0];
    f->known = kl_new_n(b->a, bool, n + 1);
    f->args = kl_new_n(b->a, kiln_arg, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        struct def *d = def_of(b, f->params->kid[i]->name);
        enum kl_pk p = kind_of(f, i);
        if (!d || (p != KL_PK_TYPE && p != KL_PK_CONST))
            continue;
        d->used = true;
        const kl_node *def = kl_param_default(f->params->kid[i]);
        if (p == KL_PK_TYPE)
            f->args[f->nargs++] = d->v[at[i]];
        else if (d->fixed || (!d->list && !names_scalar(f, def)))
            /* else what shapes decide stays to be compared */
            f->args[f->nargs++] = d->v[0];
        else
            f->isc[i] = true;
    }
    if (!kl_bind_build(b->a, b->mod->ast, k->node, f->args, f->nargs, f->isc, &f->bound, f->known,
                       &f->src, b->c->d))
        kl_raise(&b->c->env, KILN_E_ARG, "%s", "");
    sort_out(f);
    kl_puts(&name, b->o->name);
    if (strcmp(k->name, b->o->name) != 0)
        kl_putf(&name, "_%s", k->name);
    for (uint32_t i = 0; i < n; i++) {
        const kl_node *p = f->params->kid[i];
        if (kind_of(f, i) == KL_PK_TYPE &&
            (def_of(b, p->name) || (p->kid[0] && p->kid[0]->kind == KL_N_TYPE &&
                                    kl_elem_by_name(p->kid[0]->name, (uint32_t)strlen(p->kid[0]->name)))))
            kl_putf(&name, "_%s", kl_elems[f->bound.param[i].elem].name);
    }
    f->name = kl_buf_str(&name);
    static const char *const own[] = {"lib", "load", "unload", "strerror", "detail", "manifest_json",
                                      "parallel", "level"};
    size_t stem = strlen(b->o->name);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (f->name[stem] == '_' && strcmp(f->name + stem + 1, own[i]) == 0)
            fail(b, "kernel `%s` would become %s, which is the library's own; give another name with -o",
                 k->name, f->name);
    for (uint32_t i = 0; i < b->names.n; i++)
        if (strcmp(b->names.v[i], f->name) == 0)
            fail(b, "two functions would be called %s", f->name);
    kl_push(b->a, &b->names, f->name);
    kl_putf(&b->manifest, "%s\n    {\"function\": \"%s\", \"kernel\": \"%s\", ", b->nfn ? "," : "", f->name,
            k->name);
    put_defaults(f);
    variants(f);
    put_params(f);
    put_wrapper(f);
    kl_puts(&b->manifest, "}");
    b->nfn++;
}

static void kernel(struct build *b, kiln_kernel *k)
{
    uint32_t n = k->node->kid[0]->nkid, at[MAX_PARAMS] = {0};
    if (n > MAX_PARAMS)
        fail(b, "kernel `%s` has more than %d parameters", k->name, MAX_PARAMS);
    for (;;) {
        function(b, k, at);
        uint32_t i = n;
        for (; i; i--) {
            const kl_node *p = k->node->kid[0]->kid[i - 1];
            struct def *d = kl_param_kind(p) == KL_PK_TYPE ? def_of(b, p->name) : NULL;
            if (!d)
                continue;
            if (++at[i - 1] < d->n)
                break;
            at[i - 1] = 0;
        }
        if (!i)
            return;
    }
}

/* ---- the files ---- */

static void put_text(struct build *b, kl_buf *out, const char *const *piece)
{
    for (; *piece; piece++)
        for (const char *p = *piece; *p; p++)
            if (p[0] == '@' && (p[1] == 'P' || p[1] == 'U'))
                kl_puts(out, *++p == 'P' ? b->o->name : b->upper);
            else
                kl_buf_put(out, p, 1);
}

/* A text as string literals, a line each. */
static void put_literal(kl_buf *out, const char *s, size_t n)
{
    kl_puts(out, "    \"");
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\n') {
            kl_puts(out, i + 1 < n ? "\\n\"\n    \"" : "\\n");
            continue;
        }
        if (s[i] == '"' || s[i] == '\\')
            kl_puts(out, "\\");
        kl_buf_put(out, s + i, 1);
    }
    kl_puts(out, "\"");
}

static void put_head_comment(struct build *b, kl_buf *out, const char *ext)
{
    kl_putf(out, "/* %s.%s - generated by kiln build %d.%d.%d from %s", b->o->name, ext, KILN_VERSION_MAJOR,
            KILN_VERSION_MINOR, KILN_VERSION_PATCH, b->o->source);
}

static void put_header(struct build *b, kl_buf *out)
{
    put_head_comment(b, out, "h");
    kl_putf(out, ".  C and C++. */\n#ifndef KILN_BUILD_%s_H\n#define KILN_BUILD_%s_H\n\n", b->upper, b->upper);
    put_text(b, out, kl_build_header);
    kl_puts(out, "\n/* Launch.  stream: a CUstream, or NULL; not looked at on the CPU, where the call returns when\n"
                 " * all is computed.  Extents and constants follow from the shapes. */\n");
    kl_puts(out, kl_buf_str(&b->protos));
    kl_puts(out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

/* Code for x86-64-v4: the same under names that begin with kw_ and KW_, for macros and types depend
 * on the level, too.  v4 false: the text as it is, for any compiler's flags. */
static void put_level(kl_buf *out, const char *s, size_t n, bool v4)
{
    static const char test[] = "defined(__AVX512F__)";
    for (size_t i = 0; i < n; i++) {
        bool word = i && (isalnum((unsigned char)s[i - 1]) || s[i - 1] == '_');
        if (n - i >= sizeof test && memcmp(s + i, test, sizeof test - 1) == 0) {
            kl_puts(out, v4 ? "1" : "0");
            i += sizeof test - 2;
        } else if (v4 && !word && n - i > 3 && s[i + 2] == '_' &&
                   ((s[i] == 'k' && s[i + 1] == 'l') || (s[i] == 'K' && s[i + 1] == 'L'))) {
            kl_puts(out, s[i] == 'k' ? "kw_" : "KW_");
            i += 2;
        } else {
            kl_buf_put(out, s + i, 1);
        }
    }
}

/* All code of one level between the pragmas that it needs. */
static void put_code(struct build *b, kl_buf *out, bool v4)
{
    static const char gcc[] = "avx2,fma,bmi,bmi2,lzcnt,movbe,f16c,popcnt",
                      more[] = ",avx512f,avx512bw,avx512cd,avx512dq,avx512vl";
    kl_buf t = {.a = b->a};
    kl_putf(out, "#if defined(__clang__)\n"
                 "#if defined(__x86_64__) && KL_HAS_CPU\n"
                 "#pragma clang attribute push(__attribute__((target(\"%s%s\"))), apply_to = function)\n"
                 "#define KL_POP 1\n#endif\n#else\n"
                 "#pragma GCC push_options\n"
                 "#pragma GCC optimize(\"O3\", \"wrapv\", \"no-strict-aliasing\", \"fp-contract=off\", "
                 "\"no-math-errno\", \"no-trapping-math\")\n"
                 "#if defined(__x86_64__) && KL_HAS_CPU\n"
                 "#pragma GCC target(\"%s%s%s\")\n#endif\n#endif\n\n",
            gcc, v4 ? more : "", gcc, v4 ? more : "", v4 ? ",prefer-vector-width=512" : "");
    kl_c_prelude(&t);
    for (uint32_t i = 0; i < b->code.n; i++) {
        if (v4 && !b->code.v[i].v4)
            continue;
        kl_putf(&t, "\n/* %s */\n#undef KILN_KERNEL\n#define KILN_KERNEL kl_k%u\nstatic ", b->code.v[i].name, i);
        kl_buf_put(&t, b->code.v[i].s, b->code.v[i].n);
    }
    put_level(out, t.s, t.n, v4);
    kl_puts(out, "#undef inline\n#if !defined(__clang__)\n#pragma GCC pop_options\n#elif defined(KL_POP)\n"
                 "#pragma clang attribute pop\n#undef KL_POP\n#endif\n");
}

static void put_source(struct build *b, kl_buf *out)
{
    put_head_comment(b, out, "c");
    kl_puts(out, ".\n *\n * cc -std=c11 -O2 -c, by gcc from 11 on.  clang also needs -fwrapv -fno-strict-aliasing\n"
                 " * -ffp-contract=off, which gcc takes from the pragmas below.  -DKL_NO_V4 leaves the code for\n"
                 " * x86-64-v4 out. */\n"
                 "#include <dlfcn.h>\n#include <stdarg.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
                 "#include <string.h>\n#if defined(__x86_64__)\n#include <cpuid.h>\n#endif\n");
    kl_putf(out, "#include \"%s.h\"\n\n", b->o->name);
    kl_putf(out, "#define KL_HAS_CPU %u\n#define KL_NTEXT %u\n\n", b->cpu, b->ptx.n);
    kl_puts(out, "#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n"
                 "#pragma clang diagnostic ignored \"-Wunknown-warning-option\"\n"
                 "#pragma clang diagnostic ignored \"-Wbitwise-instead-of-logical\"\n"
                 "#pragma clang diagnostic ignored \"-Wunused-parameter\"\n"
                 "#pragma clang diagnostic ignored \"-Wunused-variable\"\n"
                 "#pragma clang diagnostic ignored \"-Wunused-function\"\n"
                 "#pragma clang diagnostic ignored \"-Wsign-compare\"\n"
                 "#else\n#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n"
                 "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
                 "#pragma GCC diagnostic ignored \"-Wunused-function\"\n"
                 "#pragma GCC diagnostic ignored \"-Wsign-compare\"\n"
                 "#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n"
                 "#pragma GCC diagnostic ignored \"-Wpsabi\"\n"
                 "#pragma GCC diagnostic ignored \"-Waggressive-loop-optimizations\"\n"
                 "#endif\n\n");
    put_code(b, out, false);
    if (b->cpu) {
        kl_puts(out, "\n/* ---- the same for x86-64-v4 ---- */\n\n"
                     "#if defined(__x86_64__) && KL_HAS_CPU && !defined(KL_NO_V4)\n#define KL_V4(x) x\n");
        put_code(b, out, true);
        kl_puts(out, "#else\n#define KL_V4(x) 0\n#endif\n");
    }
    kl_puts(out, "\n");
    for (uint32_t i = 0; i < b->extra.n; i++)
        kl_putf(out, "static const int64_t kl_x%u[] = {%s};\n", i, b->extra.v[i].s);
    kl_puts(out, "\n/* PTX, and the entry of each text */\nstatic const char *const kl_text[KL_NTEXT + 1] = {\n");
    for (uint32_t i = 0; i < b->ptx.n; i++) {
        put_literal(out, b->ptx.v[i].s, b->ptx.v[i].n);
        kl_puts(out, ",\n");
    }
    kl_puts(out, "    0};\nstatic const char *const kl_entry[KL_NTEXT + 1] = {\n");
    for (uint32_t i = 0; i < b->ptx.n; i++)
        kl_putf(out, "    \"%s\",\n", b->ptx.v[i].name);
    kl_puts(out, "    0};\n\n");
    kl_puts(out, "/* ---- rules of a launch ---- */\n\n");
    for (const char *const *p = kl_place_text; *p; p++)
        kl_puts(out, *p);
    put_text(b, out, kl_build_launch);
    kl_puts(out, "\nstatic inline uint64_t kl_f32_bits(float x)\n{\n    uint32_t b;\n    memcpy(&b, &x, sizeof b);\n"
                 "    return b;\n}\n\nstatic inline uint64_t kl_f64_bits(double x)\n{\n    uint64_t b;\n"
                 "    memcpy(&b, &x, sizeof b);\n    return b;\n}\n\n/* ---- tables ---- */\n\n");
    kl_puts(out, kl_buf_str(&b->tables));
    kl_puts(out, "\n/* ---- functions ---- */\n");
    kl_puts(out, kl_buf_str(&b->wrap));
    kl_putf(out, "\nconst char *%s_manifest_json(void)\n{\n    return\n", b->o->name);
    put_literal(out, kl_buf_str(&b->manifest), b->manifest.n);
    kl_puts(out, ";\n}\n");
}

struct building {
    struct build b;
    kl_buf h, c;
};

static kiln_status build(struct kl_call *c, void *arg)
{
    struct building *x = arg;
    struct build *b = &x->b;
    const kl_tool_build_opts *o = b->o;
    b->c = c;
    b->a = &c->tmp;
    kl_buf *const bufs[] = {&b->fns, &b->tables, &b->wrap, &b->protos, &b->manifest, &x->h, &x->c};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        bufs[i]->a = b->a;
    char *up = kl_strndup(b->a, o->name, strlen(o->name));
    for (char *p = up; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    b->upper = up;
    if (c_name(b, o->name) != o->name || strncmp(o->name, "kl", 2) == 0 || strncmp(o->name, "kiln_aot", 8) == 0)
        fail(b, "-o %s: the name is taken; all names in the files begin with it", o->name);
    for (size_t i = 0; i < o->ntarget; i++) {
        uint32_t arch;
        if (strcmp(o->target[i], "cpu") == 0)
            b->cpu = 1;
        else if (!kl_ptx_parse_arch(o->target[i], &arch))
            fail(b, "there is no target `%s`; targets are cpu and sm_80, sm_86, ...", o->target[i]);
    }
    b->def = kl_new_n(b->a, struct def, o->ndefine + 1);
    for (size_t i = 0; i < o->ndefine; i++) {
        b->def[i].name = o->define[i][0];
        for (size_t j = 0; j < i; j++)
            if (strcmp(b->def[j].name, b->def[i].name) == 0)
                fail(b, "-D %s is given twice", b->def[i].name);
        read_def(b, &b->def[i], o->define[i][1]);
    }
    kl_putf(&b->manifest, "{\"name\": \"%s\", \"source\": %s, \"kiln\": \"%d.%d.%d\", \"targets\": [", o->name,
            quoted(b, o->source), KILN_VERSION_MAJOR, KILN_VERSION_MINOR, KILN_VERSION_PATCH);
    for (size_t i = 0; i < o->ntarget; i++)
        kl_putf(&b->manifest, i ? ", \"%s\"" : "\"%s\"", o->target[i]);
    kl_puts(&b->manifest, "], \"functions\": [");
    for (size_t i = 0; i < b->mod->nkernel; i++)
        if (!o->kernel || strcmp(o->kernel, b->mod->kernel[i].name) == 0)
            kernel(b, &b->mod->kernel[i]);
    kl_puts(&b->manifest, "\n]}\n");
    for (size_t i = 0; i < o->ndefine; i++)
        if (!b->def[i].used)
            fail(b, "-D %s: no kernel has a type or constant of that name", b->def[i].name);
    put_header(b, &x->h);
    put_source(b, &x->c);
    return KILN_OK;
}

kiln_status kl_tool_build(kiln_module *mod, const kl_tool_build_opts *opts, char **header, char **source,
                          char **manifest, kiln_diags **diags)
{
    struct kl_call c;
    char *none = NULL, **const out[] = {header, source, manifest ? manifest : &none};
    if (diags)
        *diags = NULL;
    for (size_t i = 0; i < 3; i++)
        *out[i] = NULL;
    kiln_status s = kl_call_begin(&c, &mod->ctx->al);
    if (s)
        return s;
    struct building x = {.b = {.mod = mod, .o = opts}};
    kl_buf *const text[] = {&x.h, &x.c, &x.b.manifest};
    s = kl_guarded(&c, &mod->ast->src, build, &x);
    for (size_t i = 0; i < 2 + (manifest != NULL) && !s; i++)
        s = kl_tool_hand_over(mod->ctx, text[i], out[i]);
    for (size_t i = 0; i < 3 && s; i++) {
        kl_tool_free(mod->ctx, *out[i]);
        *out[i] = NULL;
    }
    return kl_call_end(&c, s, diags);
}
