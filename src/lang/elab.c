/* elab.c - errors, scopes and symbols of the elaborator. */
#include "lang/elab.h"

#include <stdio.h>

struct kl_diag *kl_err(kl_elab *e, enum kl_code code, kl_span span, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = kl_vprintf(e->a, fmt, ap);
    va_end(ap);
    bool again = e->quiet || e->gave_up;
    for (uint32_t i = 0; i < e->said.n && !again; i++)
        again = e->said.v[i].code == (int)code && e->said.v[i].span.beg == span.beg &&
                e->said.v[i].span.end == span.end && span.beg;
    if (again) { /* the message goes nowhere */
        struct kl_diag *g = kl_new(e->a, struct kl_diag);
        g->a = e->a;
        return g;
    }
    kl_push(e->a, &e->said, ((struct kl_said){span, (int)code}));
    struct kl_diag *g = kl_diag(e->d, code, span, "%s", text);
    /* what is wrong in an expanded function is often the caller's doing: show the calls */
    uint32_t shown = 0;
    for (struct kl_fctx *fx = e->fx; fx && !fx->kernel && shown < 3; fx = fx->up, shown++)
        if (fx->call.beg)
            kl_note(g, fx->call, "in `%s`, called here", fx->fn->name);
    return g;
}

void kl_limit(kl_elab *e, kl_span span, const char *text, const char *note)
{
    struct kl_diag *g = kl_err(e, KL_K0802, span, "%s", text);
    if (note)
        kl_note(g, (kl_span){0, 0}, "%s", note);
    if (!e->quiet)
        e->gave_up = true;
}

bool kl_deeper(kl_elab *e, kl_span span)
{
    if (e->regions >= KL_MAX_REGIONS) {
        kl_limit(e, span, kl_printf(e->a, "branches and loops are nested more than %d deep", KL_MAX_REGIONS),
                 "functions are expanded in place, and what follows a statement that may return, break or "
                 "continue lies in a branch of its own");
        return false;
    }
    e->regions++;
    return true;
}

kl_value kl_bad(kl_span span)
{
    return (kl_value){.kind = KL_V_ERR, .span = span};
}

static bool from_library(const kl_elab *e, const kl_node *n)
{
    const struct kl_file *f = kl_src_file(&e->m->src, n->span.beg);
    return f && f->lib;
}

/* Functions of the library, or of the file and what it includes. */
static void add_functions(kl_elab *e, bool lib)
{
    for (uint32_t i = 0; i < e->m->root->nkid; i++) {
        kl_node *n = e->m->root->kid[i];
        if (n->kind != KL_N_FUNC || from_library(e, n) != lib)
            continue;
        kl_sym *s = kl_sym_find(e, n->name);
        if (s && s->lib == lib) {
            if (e->mode == KL_CHECK)
                kl_note(kl_err(e, KL_K0202, n->name_span, "`%s` is defined twice", n->name), s->decl,
                        "first defined here");
            continue;
        }
        s = kl_sym_add(e, KL_S_FUNC, n->name, n->name_span);
        s->node = n;
        s->lib = lib;
        s->used = true;
    }
}

/* Constants and types at file scope. */
static void add_constants(kl_elab *e, bool lib)
{
    for (uint32_t i = 0; i < e->m->root->nkid; i++) {
        const kl_node *n = e->m->root->kid[i];
        if ((n->kind == KL_N_DECL || n->kind == KL_N_TYPEDECL || n->kind == KL_N_SASSERT ||
             n->kind == KL_N_STRUCT) &&
            from_library(e, n) == lib)
            kl_stmt(e, n);
    }
}

void kl_elab_init(kl_elab *e, int mode, kl_arena *a, const kl_module_ast *m, kl_diags *d)
{
    memset(e, 0, sizeof *e);
    e->mode = (int)mode == KL_CHECK ? KL_CHECK : (int)mode == KL_BIND ? KL_BIND : KL_LOWER;
    e->a = a, e->m = m, e->d = d;
    e->symmap.a = a;
    kl_push(a, &e->var, (struct kl_varstate){0});
    kl_push(a, &e->syms, "?");
    kl_scope_push(e, NULL); /* library names: the file's shadow them */
    add_functions(e, true);
    kl_scope_push(e, NULL);
    e->file = e->scope;
    add_functions(e, false);
    e->scope = e->file->up;
    add_constants(e, true);
    e->scope = e->file;
    add_constants(e, false);
}

void kl_scope_push(kl_elab *e, kl_scope *outer)
{
    kl_scope *s = kl_new(e->a, kl_scope);
    s->up = e->scope;
    s->outer = outer ? outer : e->scope;
    e->scope = s;
}

void kl_scope_pop(kl_elab *e)
{
    e->scope = e->scope->up;
}

kl_sym *kl_sym_add(kl_elab *e, int kind, const char *name, kl_span decl)
{
    uint32_t levels = e->mode == KL_BIND ? 0 : e->scope->body ? 3 : 1; /* block, expansion, parameters */
    for (kl_scope *c = e->scope; c && levels; c = c->outer, levels--)
        for (kl_sym *s = c->head; s; s = s->next)
            if (s->name == name && (s->kind == KL_S_STRUCT) == (kind == KL_S_STRUCT)) {
                kl_note(kl_err(e, KL_K0202, decl, "`%s` is declared twice in this block", name), s->decl,
                        "first declared here");
                c = e->file; /* once is enough */
                levels = 1;
                break;
            }
    kl_sym *s = kl_new(e->a, kl_sym);
    s->kind = (uint8_t)kind;
    s->name = name;
    s->decl = decl;
    s->next = e->scope->head;
    e->scope->head = s;
    return s;
}

/* Names are interned; those of structs are apart. */
static kl_sym *find(kl_elab *e, const char *name, bool tag)
{
    kl_scope *c = e->scope;
    do
        for (kl_sym *s = c->head; s; s = s->next)
            if (s->name == name && (s->kind == KL_S_STRUCT) == tag)
                return s;
    while ((c = c->outer) != NULL);
    return NULL;
}

kl_sym *kl_sym_find(kl_elab *e, const char *name)
{
    return find(e, name, false);
}

kl_sym *kl_tag_find(kl_elab *e, const char *name)
{
    return find(e, name, true);
}

kl_sym *kl_sym_need(kl_elab *e, const kl_node *n)
{
    kl_sym *s = kl_sym_find(e, n->name);
    if (s) {
        s->used = true;
        return s;
    }
    enum { MAX = 400 };
    const char *names[MAX];
    uint32_t k = 0;
    for (kl_scope *c = e->scope; c; c = c->outer)
        for (kl_sym *t = c->head; t && k < MAX; t = t->next)
            if ((t->kind == KL_S_FUNC) == (n->kind == KL_N_CALL) && t->kind != KL_S_STRUCT)
                names[k++] = t->name;
    static const char *const literals[] = {"inf", "nan", "true", "false"};
    if (n->kind == KL_N_CALL)
        k += kl_builtin_names(names + k, MAX - k);
    else
        for (size_t i = 0; i < sizeof literals / sizeof *literals && k < MAX; i++)
            names[k++] = literals[i];
    const char *hint = kl_foreign(n->name), *near = hint ? NULL : kl_nearest(n->name, names, k);
    kl_span at = n->name_span.beg ? n->name_span : n->span;
    struct kl_diag *g = n->kind == KL_N_CALL
                            ? kl_err(e, KL_K0203, at, "there is no function `%s`", n->name)
                            : kl_err(e, KL_K0201, at, "there is no `%s` here", n->name);
    if (hint)
        kl_note(g, (kl_span){0, 0}, "%s", hint);
    if (near)
        kl_fix(g, at, "%s", near);
    kl_sym *near_sym = near ? kl_sym_find(e, near) : NULL;
    if (near_sym)
        near_sym->used = true; /* meant, most likely: no warning about it as well */
    return NULL;
}

uint32_t kl_symbol(kl_elab *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *s = kl_vprintf(e->a, fmt, ap);
    va_end(ap);
    bool isnew;
    uint32_t *id = kl_map_put(&e->symmap, s, strlen(s), &isnew);
    if (isnew) {
        *id = e->syms.n;
        kl_push(e->a, &e->syms, s);
    }
    return *id;
}

const char *kl_const_text(kl_elab *e, const kl_value *v)
{
    if (!v->known)
        return e->syms.v[v->sym];
    if (v->untyped)
        return v->dec   ? kl_printf(e->a, "%g", v->d)
               : v->big ? kl_printf(e->a, "%llu", (unsigned long long)v->i)
                        : kl_printf(e->a, "%lld", (long long)v->i);
    if (kl_is_float((enum kl_elem)v->elem))
        return kl_printf(e->a, "%g", kl_elem_double((enum kl_elem)v->elem, v->bits));
    return v->elem == KL_u64 ? kl_printf(e->a, "%llu", (unsigned long long)v->bits)
                             : kl_printf(e->a, "%lld", (long long)v->bits);
}

const char *kl_dims_text(kl_elab *e, const kl_value *v)
{
    if (!v->rank)
        return "a scalar";
    kl_buf b = {.a = e->a};
    for (uint32_t i = 0; i < v->rank; i++)
        if (v->dim[i].n)
            kl_putf(&b, "[%u]", v->dim[i].n);
        else
            kl_putf(&b, "[%s]", e->syms.v[v->dim[i].sym]);
    return kl_buf_str(&b);
}

const char *kl_type_text(kl_elab *e, const kl_value *v)
{
    if (v->untyped)
        return v->dec ? "a decimal constant" : "an integer constant";
    const char *el = v->elem ? kl_elems[v->elem].name : "a type still unknown";
    return v->rank ? kl_printf(e->a, "%s%s", el, kl_dims_text(e, v)) : el;
}

uint32_t kl_var_new(kl_elab *e, kl_val ir, int def)
{
    kl_push(e->a, &e->var, ((struct kl_varstate){ir, (uint8_t)def}));
    return e->var.n - 1;
}
