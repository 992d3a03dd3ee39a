/* command.c - NAME=VALUE words. */
#include "cli/command.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool kl_assign_split(const char *word, struct kl_assign *out)
{
    const char *eq = strchr(word, '=');
    if (!eq || eq == word || isdigit((unsigned char)*word))
        return false;
    for (const char *c = word; c < eq; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            return false;
    *out = (struct kl_assign){.name = kl_xstrndup(word, (size_t)(eq - word)), .value = eq + 1};
    return true;
}

static bool add(struct kl_assigns *a, const char *word, bool define)
{
    struct kl_assign s;
    if (!kl_assign_split(word, &s))
        return false;
    s.define = define;
    a->v = kl_xgrow(a->v, sizeof *a->v, a->n);
    a->v[a->n++] = s;
    return true;
}

/* A word that is no NAME=VALUE: what may have been meant. */
static int malformed(const struct kl_opts *o, const struct kl_part *p, size_t i)
{
    const char *word = o->arg[i], *hint = "";
    const char *dot = strstr(word, ".kiln");
    bool blank = strstr(word, " =") || strstr(word, "= ") || *word == '=' ||
                 (i + 1 < p->arg1 && *o->arg[i + 1] == '=');
    for (size_t k = p->opt0; k < p->opt1; k++)
        if (o->opt[k].id == KL_OPT_define && !strchr(o->opt[k].val, '='))
            return kl_usage(o, "-D %s: it must be NAME=VALUE, as in -D %s=4", o->opt[k].val, o->opt[k].val);
    if (dot && (!dot[5] || dot[5] == ':'))
        hint = "; the file comes first, before its values";
    else if (blank)
        hint = "; there are no blanks around the `=`";
    return kl_usage(o, "`%s` is not of the form NAME=VALUE%s", word, hint);
}

static int read_all(struct kl_assigns *a, const struct kl_opts *o, const struct kl_part *p)
{
    for (size_t i = p->arg0; i < p->arg1; i++)
        if (!add(a, o->arg[i], false))
            return malformed(o, p, i);
    for (size_t i = p->opt0; i < p->opt1; i++)
        if (o->opt[i].id == KL_OPT_define && !add(a, o->opt[i].val, true))
            return kl_usage(o, "-D %s: it must be NAME=VALUE", o->opt[i].val);
    return 0;
}

int kl_assigns_read_part(struct kl_assigns *a, const struct kl_opts *o, const struct kl_part *p)
{
    *a = (struct kl_assigns){0};
    int rc = read_all(a, o, p);
    if (rc)
        kl_assigns_free(a);
    return rc;
}

int kl_assigns_read(struct kl_assigns *a, const struct kl_opts *o)
{
    *a = (struct kl_assigns){0};
    if (!o->narg)
        return kl_usage(o, "kiln %s needs a file", o->cmd->name);
    return kl_assigns_read_part(a, o, &(struct kl_part){1, o->narg, 0, o->nopt});
}

void kl_assigns_free(struct kl_assigns *a)
{
    for (size_t i = 0; i < a->n; i++)
        free((char *)a->v[i].name);
    free(a->v);
    *a = (struct kl_assigns){0};
}
