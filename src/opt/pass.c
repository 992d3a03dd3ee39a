/* pass.c - the pass driver.
 *
 * Runs a list of passes by name or the pipeline of a level.  In checked mode it verifies
 * after each pass, compares the printed IR before and after with what the pass claims,
 * and reads the text back: a pass that lies, damages the IR, or makes something that the
 * text cannot express is found where it happens.  stop_after and skip make it easy to
 * find the first pass that goes wrong. */
#include "opt/pass.h"

const struct kl_passinfo kl_passes[] = {
#define PASS(name_, fn_, doc_) {#name_, doc_, fn_},
#include "opt/passes.def"
};
const uint32_t kl_npasses = sizeof kl_passes / sizeof kl_passes[0];

static const struct { uint8_t level; const char *name; } pipe[] = {
#define PIPE(level_, name_) {level_, #name_},
#include "opt/passes.def"
};

static const struct kl_passinfo *find(const char *name)
{
    for (uint32_t i = 0; i < kl_npasses; i++)
        if (strcmp(kl_passes[i].name, name) == 0)
            return &kl_passes[i];
    return NULL;
}

static const struct kl_passinfo *must_find(kl_fn *f, const char *name, const char *option)
{
    const struct kl_passinfo *p = find(name);
    if (p)
        return p;
    const char **names = kl_new_n(f->a, const char *, kl_npasses);
    for (uint32_t i = 0; i < kl_npasses; i++)
        names[i] = kl_passes[i].name;
    const char *near = kl_nearest(name, names, kl_npasses);
    kl_raise(f->a->env, KILN_E_ARG, "%s: there is no pass `%s`%s%s%s", option, name,
             near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
}

static bool listed(const char *const *list, const char *name)
{
    for (; list && *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

static const char *text_of(kl_fn *f)
{
    kl_buf b = {.a = f->a};
    kl_ir_print(&b, f);
    return kl_buf_str(&b);
}

static void sound(kl_fn *f, const char *when)
{
    const char *wrong = kl_ir_verify(f, f->a);
    if (wrong)
        kl_raise(f->a->env, KILN_E_INTERNAL, "%s: %s", when, wrong);
}

/* Print, read, print: the two texts must be equal.  The reader raises on an error: catch
 * it to name the pass, and to free what the diagnostic took. */
static void round_trip(kl_fn *f, const char *text, const char *when)
{
    kl_env *env = f->a->env;
    jmp_buf here, *outer = env->fail;
    kl_srcmap *map = kl_new(f->a, kl_srcmap);
    kl_diags *d = kl_new(f->a, kl_diags);
    map->a = f->a;
    kl_diags_use(d, env, map);
    uint32_t file = kl_src_add(map, "round trip", text, (uint32_t)strlen(text), false);
    if (setjmp(here)) {
        env->fail = outer;
        kl_arena_free(&d->a);
        char *msg = kl_strndup(f->a, env->msg, strlen(env->msg));
        kl_raise(env, env->status == KILN_E_NOMEM ? KILN_E_NOMEM : KILN_E_INTERNAL,
                 "%s: the text of the IR does not read back: %s", when, msg);
    }
    env->fail = &here;
    kl_fn *g = kl_ir_read(f->a, map, file, d);
    env->fail = outer;
    const char *again = text_of(g);
    if (strcmp(again, text) != 0)
        kl_raise(env, KILN_E_INTERNAL, "%s: the IR changes when its text is read back", when);
}

static void run_one(kl_fn *f, const struct kl_passinfo *pass, const kl_pipeline *p,
                    const struct kl_target *t, const char **text)
{
    bool changed = pass->run(f, t);
    if (p->check) {
        const char *when = kl_printf(f->a, "after pass %s on %s", pass->name, f->name);
        sound(f, when);
        const char *now = text_of(f);
        bool differs = strcmp(now, *text) != 0;
        if (differs != changed)
            kl_raise(f->a->env, KILN_E_INTERNAL, "%s: the pass claims that it %s", when,
                     changed ? "changed something, and did not" : "changed nothing, and did");
        if (changed)
            round_trip(f, now, when);
        *text = now;
    }
    if (p->print_after && p->out &&
        (strcmp(p->print_after, "all") == 0 || strcmp(p->print_after, pass->name) == 0)) {
        kl_putf(p->out, "; after %s%s\n", pass->name, changed ? "" : " (nothing changed)");
        kl_ir_print(p->out, f);
    }
}

void kl_run_passes(kl_fn *f, const kl_pipeline *p, const struct kl_target *t)
{
    const char *text = NULL;
    for (const char *const *s = p->skip; s && *s; s++)
        must_find(f, *s, "skip");
    if (p->stop_after)
        must_find(f, p->stop_after, "stop after");
    if (p->print_after && strcmp(p->print_after, "all") != 0)
        must_find(f, p->print_after, "print after");
    for (const char *const *s = p->pass; s && *s; s++)
        must_find(f, *s, "passes");
    if (p->check) {
        sound(f, kl_printf(f->a, "before the passes on %s", f->name));
        text = text_of(f);
        round_trip(f, text, kl_printf(f->a, "before the passes on %s", f->name));
    }
    for (uint32_t i = 0; p->pass ? p->pass[i] != NULL : i < sizeof pipe / sizeof pipe[0]; i++) {
        if (!p->pass && pipe[i].level > p->level)
            continue;
        const struct kl_passinfo *pass = find(p->pass ? p->pass[i] : pipe[i].name);
        KL_CHECK(f->a->env, pass != NULL);
        if (listed(p->skip, pass->name))
            continue;
        run_one(f, pass, p, t, &text);
        if (p->stop_after && strcmp(p->stop_after, pass->name) == 0)
            break;
    }
}
