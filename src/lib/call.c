/* call.c - what every API entry does at its beginning and end. */
#include "lib/lib.h"

#include <stdio.h>

kiln_status kl_call_begin(struct kl_call *c, const kl_alloc *al)
{
    memset(c, 0, sizeof *c);
    c->d = kl_diags_new(al);
    if (!c->d)
        return KILN_E_NOMEM;
    c->env.al = &c->d->al; /* outlives the arena */
    c->tmp.env = &c->env;
    /* constants are folded and programs interpreted in this environment; a host linked with
     * fast-math has another */
    fegetenv(&c->fp);
    fesetenv(FE_DFL_ENV);
    return KILN_OK;
}

kiln_status kl_call_end(struct kl_call *c, kiln_status s, kiln_diags **out)
{
    kl_arena_free(&c->tmp);
    kl_diags_use(c->d, NULL, NULL);
    if (out && c->d->list.n)
        *out = c->d;
    else
        kiln_diags_free(c->d);
    fesetenv(&c->fp);
    return s;
}

/* Objects that change between setjmp and longjmp live in the caller's frame (c), not here. */
static kiln_status guarded(struct kl_call *c, kl_body *body, void *arg)
{
    jmp_buf here, *const outer = c->env.fail;
    kiln_status s;
    c->env.fail = &here;
    c->env.msg[0] = 0;
    if (setjmp(here) == 0)
        s = body(c, arg);
    else
        s = c->env.status;
    c->env.fail = outer;
    return s;
}

struct saying {
    enum kl_code code;
    char text[KL_CC_MSG + 256];
};

static kiln_status say(struct kl_call *c, void *arg)
{
    const struct saying *w = arg;
    kl_diag(c->d, w->code, (kl_span){0, 0}, "%s", w->text);
    return KILN_OK;
}

kiln_status kl_say(struct kl_call *c, enum kl_code code, kiln_status s, const char *fmt, ...)
{
    struct saying w = {.code = code};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w.text, sizeof w.text, fmt, ap);
    va_end(ap);
    kl_diags_use(c->d, &c->env, c->d->src);
    guarded(c, say, &w);
    return s;
}

kiln_status kl_guarded(struct kl_call *c, const kl_srcmap *src, kl_body *body, void *arg)
{
    const kl_srcmap *before = c->d->src;
    uint32_t errors = c->d->nerr;
    kl_diags_use(c->d, &c->env, src);
    kiln_status s = guarded(c, body, arg);
    /* a message of its own only where nothing was said */
    if (s && s != KILN_E_NOMEM && c->env.msg[0] && c->d->nerr == errors) {
        char msg[sizeof c->env.msg];
        memcpy(msg, c->env.msg, sizeof msg);
        kl_say(c,
               s == KILN_E_INTERNAL      ? KL_K1899
               : s == KILN_E_UNSUPPORTED ? KL_K1890
                                         : KL_K1809,
               s, "%s", msg);
    }
    kl_diags_use(c->d, &c->env, before);
    return s;
}
