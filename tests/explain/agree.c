/* agree.c - the model of a kernel against the PTX executor, line by line.
 *
 *     model-agree [--cases N] [--arch 90] [--no-swizzle] [--notes] [-v] [--random N SEED] FILE...
 *
 * For the `//!` cases of each file (at most N of them, evenly): requests, sectors or wavefronts, ideal
 * ones and bytes of global and shared loads and stores of each line must be the same numbers.  Lines
 * where something depends on data are counted apart, with the reason.  The model is given the arrays'
 * values where a case has them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "cli/case.h"

static void run_case(const struct options *o, struct totals *t, kiln_module *mod, const char *path,
                     const struct kl_case *cs)
{
    struct kl_args a;
    struct kl_msg msg = {0};
    kiln_diags *d = NULL;
    kiln_kernel *k = cs->kernel ? kiln_module_kernel(mod, cs->kernel) : kiln_module_at(mod, 0);
    char what[300];
    bool bad = false, left = false;
    snprintf(what, sizeof what, "%s:%u %s", path, cs->line, cs->name);
    for (size_t i = 0; i < cs->nexpect; i++)
        left |= cs->expect[i].kind >= KL_EXPECT_ERROR;
    if (left) {
        t->skipped++;
        return;
    }
    const char **wanted = kl_xalloc((cs->nexpect + 1) * sizeof *wanted);
    for (size_t i = 0; i < cs->nexpect; i++)
        wanted[i] = cs->expect[i].name;
    kiln_status s = KILN_E_ARG;
    if (k && kl_args_set(&a, k, cs->set.v, cs->set.n, 0, &msg)) {
        s = kl_args_outputs(&a, wanted, 0, &d, &msg);
        if (!s)
            s = agree_run(o, t, k, a.arg, a.n, what, &bad, &left, &d);
        kl_args_free(&a);
    }
    if (s && s != KILN_E_UNSUPPORTED) {
        printf("FAIL %s: %s: %s\n", what, kiln_status_text(s),
               kiln_diags_count(d) ? kiln_diags_at(d, 0)->text : msg.text);
        bad = true;
    }
    if (o->notes && d) {
        static char text[1 << 16];
        kiln_diags_render(d, 0, text, sizeof text);
        printf("---- %s\n%s", what, text);
    }
    if (bad)
        t->failed++;
    else if (s || left)
        t->skipped++;
    else
        t->passed++;
    kiln_diags_free(d);
    free(wanted);
}

static void run_file(const struct options *o, struct totals *t, kiln_context *ctx, const char *path)
{
    struct kl_msg m;
    struct kl_cases cases;
    kiln_module *mod = NULL;
    size_t len;
    char *text = kl_read_file(path, &len, &m);
    if (!text || !kl_cases_read(text, len, &cases, &m)) {
        printf("FAIL %s: %s\n", path, m.text);
        t->failed++;
        free(text);
        return;
    }
    if (kiln_compile(ctx, path, text, len, &mod, NULL)) {
        printf("FAIL %s does not compile\n", path);
        t->failed++;
    }
    long n = (long)cases.n, most = o->most > 0 && o->most < n ? o->most : n;
    for (long i = 0; mod && i < most; i++)
        run_case(o, t, mod, path, &cases.v[i * n / most]);
    kiln_module_free(mod);
    kl_cases_free(&cases);
    free(text);
}

int main(int argc, char **argv)
{
    struct options o = {.arch = 90};
    struct totals t = {0};
    kiln_context *ctx;
    const kiln_options opt = {.size = sizeof opt, .device = KILN_DEVICE_INTERP};
    if (kiln_context_create(&opt, &ctx, NULL))
        return 3;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--cases") && i + 1 < argc)
            o.most = strtol(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--no-swizzle"))
            o.no_swizzle = true;
        else if (!strcmp(argv[i], "--arch") && i + 1 < argc)
            o.arch = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--random") && i + 2 < argc) {
            agree_random(&o, &t, ctx, strtoul(argv[i + 1], NULL, 10),
                         strtoul(argv[i + 2], NULL, 10));
            i += 2;
        } else if (!strcmp(argv[i], "--notes"))
            o.notes = true;
        else if (!strcmp(argv[i], "-v"))
            o.verbose = true;
        else
            run_file(&o, &t, ctx, argv[i]);
    }
    kiln_context_free(ctx);
    printf("%lu lines with memory traffic; on %lu of them something depends on data\n", t.lines,
           t.unsure);
    printf("%lu passed, %lu failed, %lu skipped\n", t.passed, t.failed, t.skipped);
    return t.failed != 0;
}
