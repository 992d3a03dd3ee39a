/* help.c - `kiln help`: commands and pages of diagnostics. */
#include <ctype.h>
#include <string.h>

#include "cli/cli.h"
#include "tool.h"

static const char *title_of(const char *code)
{
    const char *title, *page, *c;
    for (size_t i = 0; (c = kl_tool_diag_code(i, &title, &page)); i++)
        if (strcmp(c, code) == 0)
            return title;
    return NULL;
}

int kl_cmd_help(const struct kl_opts *o)
{
    bool man = kl_opt_given(o, KL_OPT_man);
    if (!o->narg) {
        if (man)
            kl_help_man(NULL, stdout);
        else
            kl_help_top(stdout);
        return 0;
    }
    if (o->narg > 1)
        return kl_usage(o, "kiln help takes one name");
    const char *what = o->arg[0];
    for (unsigned i = 0; i < kl_ncmds; i++)
        if (strcmp(what, kl_cmds[i].name) == 0) {
            if (man)
                kl_help_man(&kl_cmds[i], stdout);
            else
                kl_help_cmd(&kl_cmds[i], stdout);
            return 0;
        }
    char code[16] = ""; /* k0123 is understood, too */
    if (strlen(what) < sizeof code)
        for (size_t i = 0; what[i]; i++)
            code[i] = (char)toupper((unsigned char)what[i]);
    const char *page = kiln_diag_page(code), *title = page ? title_of(code) : NULL;
    if (!page) {
        const char *names[64];
        char near[128];
        size_t n = 0;
        for (unsigned i = 0; i < kl_ncmds && n < 64; i++)
            names[n++] = kl_cmds[i].name;
        return kl_usage(o, "`%s` is neither a command nor a diagnostic code (K0123)%s", what,
                        kl_did_you_mean(what, names, n, near));
    }
    printf("%s: %s\n\n%s", code, title ? title : "", page);
    return 0;
}
