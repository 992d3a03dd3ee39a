/* doctor.c - `kiln doctor`: what this machine can do, and what to install for the rest. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "tool.h"

__attribute__((format(printf, 2, 3))) static void line(const char *what, const char *fmt, ...)
{
    va_list ap;
    printf("%-9s ", what);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

static const char probe[] = "kernel probe(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 4))\n"
                            "{\n"
                            "    i64 i = program_id(0) * 4;\n"
                            "    y[i:4] = 2 * x[i:4] + 1;\n"
                            "}\n";

/* Compile, load and run a tiny kernel on the CPU.  NULL, or why it did not work (allocated). */
static char *try_cpu(const struct kl_opts *o)
{
    enum { N = 10 };
    float x[N], y[N] = {0};
    int64_t shape[1] = {N};
    struct kl_session s;
    kiln_diags *d = NULL;
    kiln_spec *spec = NULL;
    char *why = NULL;
    kiln_status st = kl_session_open(&s, o, KILN_DEVICE_AUTO, 0, true) ? KILN_E_DEVICE : KILN_OK;
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    kiln_tensor tx = {.data = x, .dtype = KILN_F32, .ndim = 1, .shape = shape}, ty = tx;
    ty.data = y;
    kiln_arg args[2] = {{.name = "x", .kind = KILN_ARG_TENSOR, .u = {.tensor = tx}},
                        {.name = "y", .kind = KILN_ARG_TENSOR, .u = {.tensor = ty}}};
    if (!st && kiln_context_device(s.ctx) == KILN_DEVICE_INTERP) {
        const char *cc = kl_tool_cc_problem(s.ctx);
        why = kl_xprintf("%s", !kl_tool_cpu_level() ? "no code is generated for this CPU"
                               : cc                 ? cc
                                                    : "there is no C compiler");
    }
    if (!st && !why)
        st = kiln_compile(s.ctx, "probe.kiln", probe, sizeof probe - 1, &s.mod, &d);
    if (!st && !why)
        st = kiln_specialize(kiln_module_at(s.mod, 0), args, 2, &spec, &d);
    if (spec && kiln_spec_get_info(spec)->device == KILN_DEVICE_INTERP)
        why = kl_xprintf("%s",
                         kiln_diags_count(d) ? kiln_diags_at(d, 0)->text : "the C compiler failed");
    if (!st && !why)
        st = kiln_launch(kiln_module_at(s.mod, 0), NULL, args, 2, NULL);
    for (int i = 0; i < N && !st && !why; i++)
        if (y[i] != 2 * x[i] + 1)
            why = kl_xprintf("a compiled kernel gave wrong values");
    if (st && kiln_diags_count(d))
        why = kl_xprintf("%s", kiln_diags_at(d, 0)->text);
    else if (st)
        why = kl_xprintf("%s", kiln_status_text(st));
    kiln_diags_free(d);
    kiln_spec_free(spec);
    kl_session_close(&s);
    return why;
}

/* One line about each GPU, or why there is none. */
static void gpus(void)
{
    char text[2048];
    kiln_device_info d;
    int more = 1;
    for (size_t i = 0; more > 0; i++) {
        more = kl_tool_cuda_device(i, &d, text, sizeof text);
        if (more < 0)
            line("gpu", "none: %s", text);
        if (more > 0)
            line("gpu", "cuda:%zu %s, %d multiprocessors, %.0f GiB, driver CUDA %d.%d", i, d.name,
                 d.sms, (double)d.memory_bytes / (1024.0 * 1024 * 1024), d.driver / 1000,
                 d.driver % 1000 / 10);
    }
}

int kl_cmd_doctor(const struct kl_opts *o)
{
    struct kl_session s;
    unsigned v = kiln_version();
    if (o->narg)
        return kl_usage(o, "kiln doctor takes no arguments");
    int rc = kl_session_open(&s, o, KILN_DEVICE_AUTO, 0, true);
    if (rc)
        return rc;
    const char *level = kl_tool_cpu_level(), *cc = kl_tool_cc_version(s.ctx);
    const char *bad_cc = kl_tool_cc_problem(s.ctx), *off = kiln_context_cache_problem(s.ctx);
    line("kiln", "%u.%u.%u, build %s", v / 10000, v / 100 % 100, v % 100, kiln_build_id());
    line("cpu", "%s, %u thread%s", level ? level : "no code is generated for it",
         kiln_context_threads(s.ctx), kiln_context_threads(s.ctx) == 1 ? "" : "s");
    if (s.opt.cc && cc)
        line("compiler", "%s: %s", s.opt.cc, cc);
    else if (s.opt.cc)
        line("compiler", "%s: %s", s.opt.cc, bad_cc ? bad_cc : "it does not answer");
    else
        line("compiler", "none found");
    if (!s.opt.cache_dir)
        line("cache", "off%s",
             kl_opt_given(o, KL_OPT_no_cache) ? ": --no-cache" : ": no folder for it is known");
    else
        line("cache", "%s%s%s", s.opt.cache_dir, off ? ": off: " : "", off ? off : "");
    kl_session_close(&s);
    gpus();

    char *why = try_cpu(o);
    line("kernels", "%s%s", why ? "interpreted, which is slow: " : "compiled, loaded and run: ok",
         why ? why : "");
    if (why && level)
        line("remedy", "apt install gcc libc6-dev    (or: clang)");
    rc = why ? KL_RC_ENV : KL_RC_OK;
    free(why);
    return rc;
}
