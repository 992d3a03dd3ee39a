/* build_variant.c - the code of one function: C and PTX for each choice of constants and of optional
 * arrays.  Equal texts are entered once. */
#include "lib/build.h"

#include "gen/c/genc.h"

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
        kl_build_fail(b, "kernel `%s` has too many buffers for kiln build", f->name);
    b->code.v[i].v4 |= v4;
    const char *second = v4 ? kl_printf(b->a, "KL_V4(kw_k%u)", i) : "0";
    for (uint32_t k = 0; k < info.nextra; k++)
        kl_putf(&x, k ? ", %lld" : "%lld", (long long)info.extra[k]);
    if (info.nextra)
        e = text_of(b, &b->extra, kl_buf_str(&x), x.n, NULL) + 1;
    const char *extra = e ? kl_printf(b->a, "kl_x%u", e - 1) : "0";
    return kl_printf(b->a, "{kl_k%u, %s, %llu, %s, %u}", i, second,
                     (unsigned long long)info.scratch, extra, info.nextra);
}

/* ---- one variant for one target ---- */

/* One variant for one target. */
struct making {
    struct function *f;
    const kl_bound *bd;
    uint32_t arch; /* 0: the CPU */
    kl_buf rows;   /* GPU: struct kl_gpu */
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
            const kl_ptx_opts po = {
                .arch = k->arch, .v16 = facts[i] & KL_FACT_V16, .i32 = facts[i] & KL_FACT_I32};
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
            k->f->k->name, constants(k->f, k->bd),
            k->arch ? kl_printf(b->a, "sm_%u", k->arch) : "the CPU", env->msg);
    return false;
}

/* ---- variants ---- */

const char *kl_build_clauses(struct build *b, const kl_bound *bd, const bool *open)
{
    kl_fn *f = kl_lower_clauses(b->a, b->mod->ast, bd, open, b->c->d);
    if (!f)
        kl_raise(&b->c->env, KILN_E_COMPILE, "%s", "");
    return cpu_of(b, f, false);
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
        enum kl_pk k = kl_build_kind(f, i);
        if (k == KL_PK_CONST && !known[i])
            kl_build_fail(
                b,
                "kernel `%s`: nothing determines the constant `%s` at build time; give -D %s=...",
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
    const char *clauses = kl_build_clauses(b, &bd, NULL);
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

void kl_build_variants(struct function *f)
{
    struct build *b = f->b;
    kl_buf rows = {.a = b->a};
    uint32_t at[MAX_PARAMS] = {0}, number = 0;
    for (;;) {
        for (uint32_t k = 0; k < f->ncon; k++)
            f->args[f->nargs + k] = kl_build_def(b, f->params->kid[f->con[k]]->name)->v[at[k]];
        for (uint32_t mask = 0; mask < 1u << f->nopt; mask++) {
            if (number == MAX_VARIANTS)
                kl_build_fail(b, "kernel `%s`: there are more than %d variants", f->k->name,
                              MAX_VARIANTS);
            variant(f, number++, mask, &rows);
        }
        uint32_t k = f->ncon;
        while (k && ++at[k - 1] == kl_build_def(b, f->params->kid[f->con[k - 1]]->name)->n)
            at[--k] = 0;
        if (!k)
            break;
    }
    kl_putf(&b->tables, "static const struct kl_variant kl_v%u[] = {\n%s};\n", b->nfn,
            kl_buf_str(&rows));
    kl_putf(&b->manifest, "\"variants\": %u, \"approximate\": %s, ", number,
            f->approximate ? "true" : "false");
}
