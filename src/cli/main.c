/* main.c - the command `kiln`: parsing by the table of cli.def, help, dispatch. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"

/* ---- the table ---- */

enum cmd_index {
#define CMD(name, arguments, summary, more) CMD_##name,
#include "cli/cli.def"
    NCMD
};

enum {
#define CMD(name, arguments, summary, more) C_##name = 1 << CMD_##name,
#include "cli/cli.def"
    C_ALL = (1 << NCMD) - 1
};

const struct kl_cmdinfo kl_cmds[] = {
#define CMD(name, arguments, summary, more) {#name, arguments, summary, more, kl_cmd_##name},
#include "cli/cli.def"
};
const unsigned kl_ncmds = NCMD;

const struct kl_optinfo kl_optinfos[KL_NOPT] = {
#define OPT(id, letter, name, argument, commands, help)                                            \
    [KL_OPT_##id] = {name, argument, help, commands, letter},
#include "cli/cli.def"
};

bool kl_opt_of(const struct kl_optinfo *p, const struct kl_cmdinfo *c)
{
    return p->cmds >> (c - kl_cmds) & 1;
}

/* ---- help ---- */

static int opt_usage(const struct kl_optinfo *p, char *buf, size_t n)
{
    char letter[8] = "    ";
    if (p->letter)
        snprintf(letter, sizeof letter, "-%c, ", p->letter);
    return snprintf(buf, n, "%s--%s%s%s", letter, p->name, p->arg ? " " : "", p->arg ? p->arg : "");
}

void kl_help_cmd(const struct kl_cmdinfo *c, FILE *f)
{
    char usage[80];
    fprintf(f, "usage: kiln %s%s%s [OPTION]...\n%c%s.\n", c->name, *c->args ? " " : "", c->args,
            c->summary[0] - 'a' + 'A', c->summary + 1);
    for (int i = 0; i < KL_NOPT; i++)
        if (kl_opt_of(&kl_optinfos[i], c)) {
            opt_usage(&kl_optinfos[i], usage, sizeof usage);
            fprintf(f, "  %-25s %s\n", usage, kl_optinfos[i].help);
        }
    fputs(c->more, f);
}

void kl_help_top(FILE *f)
{
    fputs("usage: kiln COMMAND [ARGUMENT]... [OPTION]...\n"
          "Compiles kernels written in the Kiln language and runs them on arrays.\n\n",
          f);
    for (unsigned i = 0; i < kl_ncmds; i++)
        fprintf(f, "  %-10s %s\n", kl_cmds[i].name, kl_cmds[i].summary);
    fputs("\n`kiln COMMAND --help` lists the options of a command; `kiln --version` says\n"
          "which version this is.\n"
          "Exit codes: 0 clean, 1 findings, 2 wrong usage or source error, 3 something is\n"
          "missing on this machine, 4 internal error.\n",
          f);
}

/* ---- parsing ---- */

static const struct kl_optinfo *find_option(const struct kl_opts *o, const char *s, size_t n)
{
    for (int i = 0; i < KL_NOPT; i++)
        if (kl_opt_of(&kl_optinfos[i], o->cmd) && strlen(kl_optinfos[i].name) == n &&
            memcmp(kl_optinfos[i].name, s, n) == 0)
            return &kl_optinfos[i];
    return NULL;
}

static int unknown_option(const struct kl_opts *o, const char *s, size_t n)
{
    const char *names[KL_NOPT];
    char *name = kl_xstrndup(s, n);
    uint32_t k = 0;
    for (int i = 0; i < KL_NOPT; i++)
        if (kl_opt_of(&kl_optinfos[i], o->cmd))
            names[k++] = kl_optinfos[i].name;
    const char *near = kl_nearest(name, names, k);
    int rc = near ? kl_usage(o, "kiln %s has no option --%s; did you mean `--%s`?", o->cmd->name, name, near)
                  : kl_usage(o, "kiln %s has no option --%s; values of a kernel are written NAME=VALUE",
                             o->cmd->name, name);
    free(name);
    return rc;
}

static void add_option(struct kl_opts *o, const struct kl_optinfo *p, const char *val)
{
    o->opt = kl_xgrow(o->opt, sizeof *o->opt, o->nopt);
    o->opt[o->nopt++] = (struct kl_optval){(enum kl_optid)(p - kl_optinfos), val, o->narg};
}

/* One option at argv[*i]; takes the next word as its value where it needs one. */
static int parse_option(struct kl_opts *o, int *i)
{
    const char *s = o->argv[*i], *val = NULL;
    const struct kl_optinfo *p = NULL;
    if (s[1] == '-') {
        size_t n = strcspn(s + 2, "=");
        p = find_option(o, s + 2, n);
        if (!p)
            return unknown_option(o, s + 2, n);
        if (s[2 + n])
            val = s + 3 + n;
    } else {
        for (int k = 0; k < KL_NOPT && !p; k++)
            if (kl_optinfos[k].letter == s[1] && kl_opt_of(&kl_optinfos[k], o->cmd))
                p = &kl_optinfos[k];
        if (!p)
            return kl_usage(o, "kiln %s has no option -%c", o->cmd->name, s[1]);
        if (s[2])
            val = s + 2;
    }
    if (p->arg && !val) {
        if (*i + 1 >= o->argc)
            return kl_usage(o, "--%s needs a value: %s", p->name, p->arg);
        val = o->argv[++*i];
    } else if (!p->arg && val) {
        return kl_usage(o, "--%s takes no value", p->name);
    }
    add_option(o, p, val);
    return 0;
}

static int parse(struct kl_opts *o)
{
    bool only_args = false;
    o->arg = kl_xalloc((size_t)o->argc * sizeof *o->arg);
    for (int i = 2; i < o->argc; i++) {
        const char *s = o->argv[i];
        if (!only_args && strcmp(s, "--") == 0)
            only_args = true;
        else if (only_args || s[0] != '-' || !s[1])
            o->arg[o->narg++] = s;
        else if (parse_option(o, &i))
            return KL_RC_USAGE;
    }
    return 0;
}

static int set_color(struct kl_opts *o)
{
    const char *when = kl_opt(o, KL_OPT_color), *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (when && strcmp(when, "always") == 0) {
        o->color = o->color_err = true;
    } else if (!when || strcmp(when, "auto") == 0) {
        bool plain = (no && *no) || (term && strcmp(term, "dumb") == 0);
        o->color = !plain && isatty(1);
        o->color_err = !plain && isatty(2);
    } else if (strcmp(when, "never") != 0) {
        return kl_usage(o, "--color %s: there are auto, always and never", when);
    }
    return 0;
}

/* A full disk or a closed pipe shows when the last bytes are written. */
static int finish(int rc)
{
    if (fflush(stdout) || ferror(stdout)) {
        fputs("kiln: error: cannot write to standard output\n", stderr);
        return rc ? rc : KL_RC_ENV;
    }
    return rc;
}

static int dispatch(struct kl_opts *o)
{
    const char *names[NCMD], *first = o->argc > 1 ? o->argv[1] : NULL;
    char near[128];
    if (!first) {
        kl_help_top(stderr);
        return KL_RC_USAGE;
    }
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        kl_help_top(stdout);
        return 0;
    }
    if (strcmp(first, "--version") == 0) {
        unsigned v = kiln_version();
        printf("kiln %u.%u.%u\n", v / 10000, v / 100 % 100, v % 100);
        return 0;
    }
    if (strcmp(first, "--peer-host") == 0 && o->argc == 3) /* for `kiln bench` alone */
        return kl_peer_host(o->argv[2]);
    for (unsigned i = 0; i < kl_ncmds; i++) {
        names[i] = kl_cmds[i].name;
        if (strcmp(first, names[i]) == 0)
            o->cmd = &kl_cmds[i];
    }
    if (!o->cmd)
        return kl_usage(o, "`%s` is no command%s", first,
                        kl_did_you_mean(first, names, NCMD, near));
    int rc = parse(o);
    if (rc)
        return rc;
    if (kl_opt_given(o, KL_OPT_help)) {
        kl_help_cmd(o->cmd, stdout);
        return 0;
    }
    rc = set_color(o);
    return rc ? rc : o->cmd->run(o);
}

int main(int argc, char **argv)
{
    struct kl_opts o = {.argc = argc, .argv = argv};
    kl_outfile_signals();
    int rc = finish(dispatch(&o));
    free(o.opt);
    free(o.arg);
    return rc;
}
