/* build_table.c - what a generated file and its manifest say of a function: tables for the launch
 * (aot_*.inc), the typed function and its declaration. */
#include "lib/build.h"

const char *kl_build_c_name(struct build *b, const char *s)
{
    static const char *const taken[] = {
        "lib",      "stream",   "new",      "class",     "this",     "template", "delete",
        "private",  "public",   "operator", "namespace", "int",      "char",     "short",
        "long",     "float",    "double",   "register",  "static",   "auto",     "and",
        "or",       "not",      "xor",      "default",   "switch",   "case",     "goto",
        "restrict", "volatile", "union",    "enum",      "extern",   "signed",   "unsigned",
        "typename", "using",    "virtual",  "friend",    "explicit", "export",   "try",
        "catch",    "throw",    "asm",      "inline",    "typedef",  "mutable",  "alignas",
        "concept",  "requires", "linux",    "unix",      "bool",     "true",     "false"};
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
    return kl_elems[e].kind == KL_KIND_SINT ? (int64_t)(UINT64_MAX << (kl_elems[e].bytes * 8 - 1))
                                            : 0;
}

static int64_t high_of(enum kl_elem e)
{
    bool sint = kl_elems[e].kind == KL_KIND_SINT;
    return kl_elems[e].bytes == 8 ? INT64_MAX
                                  : (int64_t)((UINT64_C(1) << (kl_elems[e].bytes * 8 - sint)) - 1);
}

const char *kl_build_quoted(struct build *b, const char *s)
{
    kl_buf q = {.a = b->a};
    kl_puts(&q, "\"");
    for (; *s; s++)
        kl_putf(&q, *s == '"' || *s == '\\' ? "\\%c" : *s == '\n' ? " " : "%c", *s);
    kl_puts(&q, "\"");
    return kl_buf_str(&q);
}

/* A parameter among others: its row of struct kl_par, its place among the arguments. */
struct param {
    const kl_node *node;
    const struct kl_boundparam *bound;
    enum kl_pk kind;
    enum kl_elem elem;
    bool varies; /* a constant with a list of values */
    int arg; /* number among the arrays, or among the values that the caller gives; -1: neither */
};

/* Types and fixed constants have a row, too, that positions stay: kind 3. */
static void put_row(kl_buf *out, const struct param *p)
{
    const kl_node *dims = kl_param_dims(p->node), *str = kl_param_strides(p->node);
    bool array = p->kind == KL_PK_ARRAY, ints = p->elem && !array && kl_is_int(p->elem);
    unsigned exts = 0, strs = 0, flags = 0;
    for (uint32_t d = 0; array && d < dims->nkid; d++) {
        exts |= (unsigned)(dims->kid[d] != NULL) << d;
        strs |= (unsigned)(str && d < str->nkid && str->kid[d]) << d;
    }
    if (array)
        flags = (p->node->flags & KL_NF_OPTIONAL ? 1u : 0) |
                (p->node->flags & KL_NF_WRITTEN ? 2u : 0) | (p->bound->init ? 4u : 0);
    kl_putf(out, "    {\"%s\", %d, %d, %d, %d, %u, %u, %u, %d, ", p->node->name,
            array                     ? 0
            : p->kind == KL_PK_SCALAR ? 1
            : p->varies               ? 2
                                      : 3,
            p->elem, p->elem ? kl_elems[p->elem].bytes : 0, array ? (int)dims->nkid : 0, flags,
            exts, strs, p->arg);
    if (ints && low_of(p->elem) == INT64_MIN)
        kl_putf(out, "INT64_MIN, INT64_MAX, 0},\n");
    else
        kl_putf(out, "%lld, %lld, %lluu},\n", ints ? (long long)low_of(p->elem) : 0,
                ints ? (long long)high_of(p->elem) : 0,
                array && p->bound->init ? (unsigned long long)p->bound->bits : 0);
}

/* Where the value of parameter i comes from, as the manifest has it. */
static const char *origin(const struct function *f, uint32_t i, const struct param *p)
{
    if (p->kind == KL_PK_TYPE || (p->arg < 0 && p->kind == KL_PK_CONST && !p->varies))
        return "build";
    if (p->arg >= 0)
        return "argument";
    return kl_build_deduced(f, i) ? "shapes" : "default";
}

static void put_manifest(struct function *f, uint32_t i, const struct param *p)
{
    static const char *const kinds[] = {[KL_PK_TYPE] = "type",
                                        [KL_PK_CONST] = "constant",
                                        [KL_PK_SCALAR] = "scalar",
                                        [KL_PK_ARRAY] = "array"};
    kl_buf *out = &f->b->manifest;
    kl_putf(out,
            "%s\n      {\"name\": \"%s\", \"kind\": \"%s\", \"type\": \"%s\", "
            "\"from\": \"%s\"",
            i ? "," : "", p->node->name, kinds[p->kind], kl_elems[p->elem].name, origin(f, i, p));
    if (p->kind == KL_PK_ARRAY)
        kl_putf(out, ", \"rank\": %u, \"written\": %s, \"optional\": %s",
                kl_param_dims(p->node)->nkid, p->node->flags & KL_NF_WRITTEN ? "true" : "false",
                p->node->flags & KL_NF_OPTIONAL ? "true" : "false");
    if (p->kind == KL_PK_CONST && !p->varies && f->known[i])
        kl_putf(out, ", \"value\": %.17g", kl_elem_double(p->elem, p->bound->bits));
    if (p->varies) {
        const struct def *d = kl_build_def(f->b, p->node->name);
        kl_puts(out, ", \"values\": [");
        for (uint32_t v = 0; v < d->n; v++)
            kl_putf(out, v ? ", %lld" : "%lld", (long long)d->v[v].u.i);
        kl_puts(out, "]");
    }
    kl_puts(out, "}");
}

/* How shapes give scalars and constants. */
static void put_sources(struct function *f)
{
    kl_buf *out = &f->b->tables;
    if (!f->src.n)
        return;
    kl_putf(out, "static const struct kl_source kl_s%u[] = {\n", f->b->nfn);
    for (uint32_t i = 0; i < f->src.n; i++) {
        const struct kl_source *s = &f->src.v[i];
        kl_putf(out, "    {%u, %u, %u, %u, %u, {", s->array, s->param, s->dim, s->stride, s->nstep);
        for (uint32_t k = 0; k < s->nstep; k++)
            kl_putf(out, s->step[k].k == INT64_MIN ? "%s{'%c', INT64_MIN}" : "%s{'%c', %lld}",
                    k ? ", " : "", s->step[k].op, (long long)s->step[k].k);
        kl_puts(out, s->nstep ? "}},\n" : "{0, 0}}},\n");
    }
    kl_puts(out, "};\n");
}

void kl_build_params(struct function *f)
{
    struct build *b = f->b;
    int arrays = 0, values = 0;
    kl_putf(&b->tables, "static const struct kl_par kl_p%u[] = {\n", b->nfn);
    kl_puts(&b->manifest, "\"parameters\": [");
    for (uint32_t i = 0; i < f->params->nkid; i++) {
        const struct kl_boundparam *x = &f->bound.param[i];
        struct param p = {f->params->kid[i],     x,         kl_build_kind(f, i),
                          (enum kl_elem)x->elem, f->isc[i], -1};
        if (p.kind == KL_PK_ARRAY)
            p.arg = arrays++;
        else if (f->isarg[i])
            p.arg = values++;
        put_row(&b->tables, &p);
        put_manifest(f, i, &p);
    }
    kl_puts(&b->manifest, "]");
    kl_puts(&b->tables, "};\n");
    put_sources(f);
}

/* The typed function and its declaration. */
void kl_build_wrapper(struct function *f)
{
    struct build *b = f->b;
    kl_buf head = {.a = b->a}, t = {.a = b->a}, v = {.a = b->a};
    uint32_t nt = 0, nv = 0;
    kl_putf(&head, "int %s(%s_lib *lib, void *stream", f->name, b->o->name);
    for (uint32_t i = 0; i < f->params->nkid; i++) {
        const kl_node *p = f->params->kid[i];
        const char *name = kl_build_c_name(b, p->name);
        enum kl_elem e = (enum kl_elem)f->bound.param[i].elem;
        if (kl_build_kind(f, i) == KL_PK_ARRAY) {
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
                kl_putf(&v, kl_elems[e].kind == KL_KIND_SINT ? "(uint64_t)(int64_t)%s" : "%s",
                        name);
        }
    }
    kl_puts(&head, ")");
    kl_putf(&b->protos, "%s;\n", kl_buf_str(&head));
    kl_putf(&b->wrap,
            "\n%s\n{\n    static const struct kl_function kl_f = {\n        \"%s\", kl_p%u, ",
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
        kl_putf(&b->tables, nreq++ ? ", %s" : "%s",
                kl_build_quoted(b, c->name ? c->name : "this condition"));
    }
    if (nreq)
        kl_puts(&b->tables, "};\n");
    kl_putf(&b->wrap, nreq ? "kl_q%u, " : "0, ", b->nfn);
    kl_putf(&b->wrap, "kl_v%u,\n        %u, %u, %u, %u, %u, sizeof kl_v%u / sizeof *kl_v%u};\n",
            b->nfn, f->params->nkid, f->src.n, f->ncon, ngrid, nreq, b->nfn, b->nfn);
    kl_putf(&b->wrap,
            "    const kiln_aot_tensor *const kl_t[] = {%s};\n    const uint64_t kl_v[] = {%s};\n",
            nt ? kl_buf_str(&t) : "0", nv ? kl_buf_str(&v) : "0");
    kl_puts(&b->wrap, "    return kl_call(lib, &kl_f, stream, kl_t, kl_v);\n}\n");
}

/* Defaults of the constants with a list, as code. */
void kl_build_defaults(struct function *f)
{
    struct build *b = f->b;
    const char *code = "{0, 0, 0, 0, 0}";
    bool any = false;
    for (uint32_t k = 0; k < f->ncon; k++)
        any |= !f->isarg[f->con[k]] && kl_param_default(f->params->kid[f->con[k]]);
    if (any)
        code = kl_build_clauses(b, &f->bound, f->isc);
    kl_putf(&b->tables, "#define KL_DEFAULTS%u %s\n", b->nfn, code);
    if (!f->ncon)
        return;
    kl_putf(&b->tables, "static const uint8_t kl_n%u[] = {", b->nfn);
    for (uint32_t k = 0; k < f->ncon; k++)
        kl_putf(&b->tables, k ? ", %u" : "%u", f->con[k]);
    kl_puts(&b->tables, "};\n");
}
