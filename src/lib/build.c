/* build.c - `kiln build`: kernels as one C file that needs neither this library nor a compiler
 * where it runs.
 *
 * The file has the prelude of the CPU back end, each kernel's code for each variant (PTX as text),
 * the kernel's clauses as code (lang/clauses.c), tables, the launch (aot_*.inc), and a typed
 * function for each kernel and choice of types.  A variant is a choice of the constants that have a
 * list of values, and of optional arrays. */
#include "lib/build.h"

#include <ctype.h>

_Static_assert(KL_PTX_PROGRAM_BITS == 27, "kl_launch_gpu of aot_run.inc knows it");

void kl_build_fail(struct build *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = kl_vprintf(b->a, fmt, ap);
    va_end(ap);
    kl_raise(&b->c->env, KILN_E_UNSUPPORTED, "%s", text);
}

/* Each choice of types is a function. */
static void kernel(struct build *b, kiln_kernel *k)
{
    uint32_t n = k->node->kid[0]->nkid, at[MAX_PARAMS] = {0};
    if (n > MAX_PARAMS)
        kl_build_fail(b, "kernel `%s` has more than %d parameters", k->name, MAX_PARAMS);
    for (;;) {
        kl_build_function(b, k, at);
        uint32_t i = n;
        for (; i; i--) {
            const kl_node *p = k->node->kid[0]->kid[i - 1];
            struct def *d = kl_param_kind(p) == KL_PK_TYPE ? kl_build_def(b, p->name) : NULL;
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
    kl_buf *const bufs[] = {&b->tables, &b->wrap, &b->protos, &b->manifest, &x->h, &x->c};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        bufs[i]->a = b->a;
    char *up = kl_strndup(b->a, o->name, strlen(o->name));
    for (char *p = up; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    b->upper = up;
    if (kl_build_c_name(b, o->name) != o->name || strncmp(o->name, "kl", 2) == 0 ||
        strncmp(o->name, "kiln_aot", 8) == 0)
        kl_build_fail(b, "-o %s: the name is taken; all names in the files begin with it", o->name);
    for (size_t i = 0; i < o->ntarget; i++) {
        uint32_t arch;
        if (strcmp(o->target[i], "cpu") == 0)
            b->cpu = 1;
        else if (!kl_ptx_parse_arch(o->target[i], &arch))
            kl_build_fail(b, "there is no target `%s`; targets are cpu and sm_80, sm_86, ...",
                          o->target[i]);
    }
    b->def = kl_new_n(b->a, struct def, o->ndefine + 1);
    for (size_t i = 0; i < o->ndefine; i++) {
        b->def[i].name = o->define[i][0];
        for (size_t j = 0; j < i; j++)
            if (strcmp(b->def[j].name, b->def[i].name) == 0)
                kl_build_fail(b, "-D %s is given twice", b->def[i].name);
        kl_build_read_def(b, &b->def[i], o->define[i][1]);
    }
    kl_putf(&b->manifest,
            "{\"name\": \"%s\", \"source\": %s, \"kiln\": \"%d.%d.%d\", \"targets\": [", o->name,
            kl_build_quoted(b, o->source), KILN_VERSION_MAJOR, KILN_VERSION_MINOR,
            KILN_VERSION_PATCH);
    for (size_t i = 0; i < o->ntarget; i++)
        kl_putf(&b->manifest, i ? ", \"%s\"" : "\"%s\"", o->target[i]);
    kl_puts(&b->manifest, "], \"functions\": [");
    for (size_t i = 0; i < b->mod->nkernel; i++)
        if (!o->kernel || strcmp(o->kernel, b->mod->kernel[i].name) == 0)
            kernel(b, &b->mod->kernel[i]);
    kl_puts(&b->manifest, "\n]}\n");
    for (size_t i = 0; i < o->ndefine; i++)
        if (!b->def[i].used)
            kl_build_fail(b, "-D %s: no kernel has a type or constant of that name",
                          b->def[i].name);
    kl_build_put_header(b, &x->h);
    kl_build_put_source(b, &x->c);
    return KILN_OK;
}

kiln_status kl_tool_build(kiln_module *mod, const kl_tool_build_opts *opts, char **header,
                          char **source, char **manifest, kiln_diags **diags)
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
