/* man.c - `kiln help --man`: what manual pages are made of, in scdoc's form.  tools/man.sh puts
 * the written parts of docs/man in. */
#include <ctype.h>
#include <string.h>

#include "cli/cli.h"

/* With scdoc's own characters behind a backslash. */
static void plain(const char *s, FILE *f)
{
    for (; *s; s++)
        fprintf(f, strchr("_*\\#`[]<>", *s) ? "\\%c" : "%c", *s);
}

static int upper(char c)
{
    return toupper((unsigned char)c);
}

static void option(const struct kl_optinfo *p, FILE *f)
{
    if (p->letter)
        fprintf(f, "*-%c*, ", p->letter);
    fprintf(f, "*--%s*", p->name);
    if (p->arg) {
        fputs(" _", f);
        plain(p->arg, f);
        fputc('_', f);
    }
    fputs("\n\t", f);
    plain(p->help, f);
    fputs("\n\n", f);
}

static void page(const struct kl_cmdinfo *c, FILE *f)
{
    fprintf(f, "kiln-%s(1)\n\n# NAME\n\nkiln-%s - ", c->name, c->name);
    plain(c->summary, f);
    fprintf(f, "\n\n# SYNOPSIS\n\n*kiln %s* ", c->name);
    plain(c->args, f);
    fprintf(f, "%s\\[_OPTION_\\]...\n\n# DESCRIPTION\n\n%c", *c->args ? " " : "",
            upper(c->summary[0]));
    plain(c->summary + 1, f);
    fputs(".\n\n", f);
    if (*c->more)
        fprintf(f, "```\n%s```\n\n", c->more);
    fputs("# OPTIONS\n\nLong options also take their value behind *=*, short ones without a "
          "blank.\n\n",
          f);
    for (int i = 0; i < KL_NOPT; i++)
        if (kl_opt_of(&kl_optinfos[i], c))
            option(&kl_optinfos[i], f);
}

void kl_help_man(const struct kl_cmdinfo *c, FILE *f)
{
    if (c) {
        page(c, f);
        return;
    }
    for (unsigned i = 0; i < kl_ncmds; i++) {
        fprintf(f, "*kiln-%s*(1)\n\t%c", kl_cmds[i].name, upper(kl_cmds[i].summary[0]));
        plain(kl_cmds[i].summary + 1, f);
        fputs(".\n\n", f);
    }
}
