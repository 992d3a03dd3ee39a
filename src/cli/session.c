/* session.c - a context with the options of the command line, and a compiled source. */
#define _GNU_SOURCE
#include "cli/trace/trace.h"
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- diagnostics ---- */

void kl_show_diags(kiln_diags *d, FILE *f, bool color)
{
    size_t n = kiln_diags_render(d, color, NULL, 0);
    char *text = kl_xalloc(n + 1);
    kiln_diags_render(d, color, text, n + 1);
    if (f == stderr)
        fflush(stdout);
    fwrite(text, 1, n, f);
    free(text);
    kiln_diags_free(d);
}

/* An internal error is a bug of Kiln.  One file holds what is needed to see it again. */
static void report(const struct kl_session *s, kiln_status st)
{
    const char *tmp = getenv("TMPDIR");
    char *path = kl_xprintf("%s/kiln-report-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (f) {
        fprintf(f, "// kiln %d.%d.%d, build %s: %s\n// command:", KILN_VERSION_MAJOR,
                KILN_VERSION_MINOR, KILN_VERSION_PATCH, kiln_build_id(), kiln_status_name(st));
        for (int i = 0; i < s->o->argc; i++) {
            fputs(" '", f);
            for (const char *c = s->o->argv[i]; *c; c++)
                fputs(*c == '\'' ? "'\\''" : (char[]){(char)(*c < ' ' ? ' ' : *c), 0}, f);
            fputs("'", f);
        }
        fputc('\n', f);
        if (s->text)
            fwrite(s->text, 1, s->len, f);
        fclose(f);
        fprintf(stderr, "kiln: this is a bug of kiln; %s holds the source and the command\n", path);
    }
    free(path);
}

int kl_session_fail(const struct kl_session *s, kiln_status st, kiln_diags *d)
{
    bool shown = false;
    for (size_t i = 0; i < kiln_diags_count(d); i++)
        shown |= kiln_diags_at(d, i)->severity == KILN_ERROR;
    kl_show_diags(d, stderr, s->o->color_err);
    if (!shown)
        kl_fail(0, "%s", kiln_status_text(st));
    if (st == KILN_E_INTERNAL)
        report(s, st);
    return kl_rc_of(st);
}

/* ---- context ---- */

int kl_parse_device(const char *s, kiln_device *out, int32_t *index)
{
    static const struct {
        const char *name;
        kiln_device d;
    } devices[] = {{"auto", KILN_DEVICE_AUTO},
                   {"interp", KILN_DEVICE_INTERP},
                   {"cpu", KILN_DEVICE_CPU},
                   {"cuda", KILN_DEVICE_CUDA},
                   {"sim", KILN_DEVICE_SIM}};
    *index = 0;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (strcmp(s, devices[i].name) == 0) {
            *out = devices[i].d;
            return 0;
        }
    if (strncmp(s, "cuda:", 5) == 0 && isdigit((unsigned char)s[5]) &&
        strspn(s + 5, "0123456789") == strlen(s + 5) && strlen(s) < 10) {
        *out = KILN_DEVICE_CUDA;
        *index = (int32_t)strtol(s + 5, NULL, 10);
        return 0;
    }
    return kl_fail(KL_RC_USAGE, "--device %s: there are auto, interp, cpu, cuda, cuda:N and sim",
                   s);
}

int kl_check_arch(const char *s)
{
    char list[200] = "";
    size_t used = 0;
    const char *name;
    for (size_t i = 0; s && (name = kl_tool_arch_name(i)); i++) {
        if (strcmp(name, s) == 0)
            return 0;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, i ? ", %s" : "%s", name);
    }
    return s ? kl_fail(KL_RC_USAGE, "--arch %s: there are %s", s, list) : 0;
}

const char *kl_device_text(kiln_device d)
{
    static const char *const text[] = {"", "in the interpreter", "on the CPU", "on the GPU",
                                       "in the PTX executor"};
    return text[d];
}

static int number_option(const struct kl_opts *o, enum kl_optid id, const char *name,
                         unsigned least, unsigned most, uint32_t *out)
{
    const char *s = kl_opt(o, id);
    char *end;
    if (!s)
        return 0;
    errno = 0;
    unsigned long v = isdigit((unsigned char)*s) ? strtoul(s, &end, 10) : ULONG_MAX;
    if (v < least || v > most || errno || *end)
        return kl_fail(KL_RC_USAGE, "--%s %s: it must be a number from %u to %u", name, s, least,
                       most);
    *out = (uint32_t)v;
    return 0;
}

/* What print() of a kernel says, with the number of the program. */
static void show_print(void *user, const char *text, size_t n, const int64_t program[3])
{
    (void)user;
    int last = program[2] ? 2 : program[1] ? 1 : 0;
    fflush(stdout);
    if (program[0] < 0)
        fputs("kiln: ", stderr);
    else
        fprintf(stderr, "[%lld", (long long)program[0]);
    for (int i = 1; i <= last && program[0] >= 0; i++)
        fprintf(stderr, ", %lld", (long long)program[i]);
    if (program[0] >= 0)
        fputs("] ", stderr);
    fwrite(text, 1, n, stderr);
    fputc('\n', stderr);
}

/* A profiler that started this process hears of each launch. */
static void attach(struct kl_session *s, bool quiet)
{
    const char *path = secure_getenv("NVTX_INJECTION64_PATH");
    char why[300];
    if (!path || !*path)
        return;
    if (kl_nvtx_open(path, why, sizeof why))
        kiln_context_trace(s->ctx, 0, kl_nvtx_hear, NULL, NULL);
    else if (!quiet)
        kl_warn("the profiler's library %s hears nothing: %s", path, why);
}

int kl_session_open(struct kl_session *s, const struct kl_opts *o, kiln_device device,
                    unsigned checks, bool quiet)
{
    return kl_session_open_sms(s, o, device, checks, quiet, 0);
}

int kl_session_open_sms(struct kl_session *s, const struct kl_opts *o, kiln_device device,
                        unsigned checks, bool quiet, uint32_t sms)
{
    *s = (struct kl_session){.o = o, .opt = KILN_OPTIONS_INIT};
    s->opt.device = device;
    s->opt.checks = checks;
    s->opt.print = show_print;
    if (device == KILN_DEVICE_CUDA && kl_opt(o, KL_OPT_device))
        kl_parse_device(kl_opt(o, KL_OPT_device), &device, &s->opt.device_index);
    if (device == KILN_DEVICE_SIM)
        s->opt.arch = kl_opt(o, KL_OPT_arch);
    if (kl_check_arch(kl_opt(o, KL_OPT_arch)))
        return KL_RC_USAGE;
    if (number_option(o, KL_OPT_threads, "threads", 1, 4096, &s->opt.threads) ||
        number_option(o, KL_OPT_opt, "opt", 1, 2, &s->opt.opt_level))
        return KL_RC_USAGE;
    if (sms)
        s->opt.threads = sms;
    s->opt.cc = kl_opt(o, KL_OPT_cc);
    if (s->opt.cc && *s->opt.cc != '/')
        return kl_fail(KL_RC_USAGE, "--cc %s: it must be an absolute path", s->opt.cc);
    s->opt.cache_dir = kl_opt(o, KL_OPT_cache_dir);
    s->opt.keep_dir = kl_opt(o, KL_OPT_keep);
    if (s->opt.keep_dir && mkdir(s->opt.keep_dir, 0777) && errno != EEXIST)
        return kl_fail(KL_RC_USAGE, "--keep %s: %s", s->opt.keep_dir, strerror(errno));
    if (s->opt.keep_dir && access(s->opt.keep_dir, W_OK | X_OK))
        return kl_fail(KL_RC_USAGE, "--keep %s: %s", s->opt.keep_dir, strerror(errno));
    kiln_options_from_env(&s->opt);
    if (kl_opt_given(o, KL_OPT_no_cache) || device == KILN_DEVICE_INTERP)
        s->opt.cache_dir = NULL;
    if (device == KILN_DEVICE_INTERP)
        s->opt.cc = NULL; /* no folder is made and no compiler looked at that nothing needs */

    const char **dirs = kl_xalloc((o->nopt + 1) * sizeof *dirs);
    size_t n = 0;
    for (size_t i = 0; i < o->nopt; i++)
        if (o->opt[i].id == KL_OPT_include)
            dirs[n++] = o->opt[i].val;
    s->opt.include_dirs = dirs;
    kiln_diags *d = NULL;
    kiln_status st = kiln_context_create(&s->opt, &s->ctx, &d);
    free(dirs); /* strings and lists are copied */
    s->opt.include_dirs = NULL;
    if (st)
        return kl_session_fail(s, st, d);
    if (quiet)
        kiln_diags_free(d);
    else
        kl_show_diags(d, stderr, o->color_err);
    attach(s, quiet);
    return 0;
}

void kl_session_close(struct kl_session *s)
{
    kiln_diags_free(s->held);
    kiln_module_free(s->mod);
    kiln_context_free(s->ctx);
    free(s->path);
    free(s->want);
    free(s->text);
    *s = (struct kl_session){.o = s->o};
}

/* ---- source ---- */

int kl_session_kernel(kiln_module *mod, const char *path, const char *name, kiln_kernel **out)
{
    size_t n = kiln_module_count(mod), used = 0;
    *out = name ? kiln_module_kernel(mod, name) : n == 1 ? kiln_module_at(mod, 0) : NULL;
    if (*out)
        return 0;
    if (!n)
        return kl_fail(KL_RC_USAGE, "%s holds no kernel", path);
    const char **names = kl_xalloc(n * sizeof *names);
    char list[600] = "", near[128] = "";
    for (size_t i = 0; i < n; i++) {
        names[i] = kiln_kernel_name(kiln_module_at(mod, i));
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, i ? ", %s" : "%s", names[i]);
    }
    if (name)
        kl_did_you_mean(name, names, n, near);
    int rc = name ? kl_fail(KL_RC_USAGE, "%s holds no kernel `%s`%s (it holds %s)", path, name,
                            near, list)
                  : kl_fail(KL_RC_USAGE, "%s holds several kernels; choose with %s:NAME: %s", path,
                            path, list);
    free(names);
    return rc;
}

/* FILE:KERNEL is split at the last `:` if a name follows and no file is called so. */
static void split(struct kl_session *s, const char *spec)
{
    const char *colon = strrchr(spec, ':');
    bool name = colon && (isalpha((unsigned char)colon[1]) || colon[1] == '_');
    for (const char *c = colon; name && *++c;)
        name = isalnum((unsigned char)*c) || *c == '_';
    if (name && access(spec, F_OK)) {
        s->path = kl_xstrndup(spec, (size_t)(colon - spec));
        s->want = kl_xstrndup(colon + 1, strlen(colon + 1));
    } else {
        s->path = kl_xstrndup(spec, strlen(spec));
    }
}

int kl_session_load(struct kl_session *s, const char *spec)
{
    struct kl_msg m;
    kiln_diags *d = NULL;
    split(s, spec);
    s->text = kl_read_file(s->path, &s->len, &m);
    if (!s->text)
        return kl_fail(m.rc, "%s", m.text);
    kiln_status st = kiln_compile(s->ctx, s->path, s->text, s->len, &s->mod, &d);
    if (st && s->hold && st != KILN_E_INTERNAL) {
        s->held = d;
        return kl_rc_of(st);
    }
    if (st)
        return kl_session_fail(s, st, d);
    kl_show_diags(d, stderr, s->o->color_err);
    return 0;
}

int kl_session_tuned(struct kl_session *s, const char *device, bool quiet)
{
    const char *asked = kl_opt(s->o, KL_OPT_tune_file);
    struct kl_msg m;
    kiln_diags *d = NULL;
    size_t n, used;
    if (kl_opt_given(s->o, KL_OPT_no_tune))
        return 0;
    char *path = asked ? kl_xprintf("%s", asked) : kl_xprintf("%s.tune", s->path);
    if (!asked && access(path, F_OK)) {
        free(path);
        return 0;
    }
    char *text = kl_read_file(path, &n, &m);
    int rc = text ? 0 : kl_fail(m.rc, "%s", m.text);
    kiln_status st = text ? kl_tool_tune(s->mod, path, text, n, device, &d) : KILN_OK;
    if (st)
        rc = kl_session_fail(s, st, d);
    else if (quiet)
        kiln_diags_free(d);
    else
        kl_show_diags(d, stderr, s->o->color_err);
    used = rc || quiet ? 0 : kl_tool_tuned_count(s->mod);
    if (used)
        fprintf(stderr, "kiln: tuned constants of %s are used where none are given (%zu entr%s for "
                        "%s; --no-tune: none)\n",
                path, used, used == 1 ? "y" : "ies", device ? device : "this device");
    free(text);
    free(path);
    return rc;
}
