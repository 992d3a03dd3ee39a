/* completion.c - `kiln completion`: scripts for bash, zsh and fish, made of the table of commands
 * and options.
 *
 * What stands for an option's value follows from the word that the table has for it (DEVICE, DIR),
 * and for the arguments of a command from their description (FILE[:KERNEL] [NAME=VALUE]...).
 * Names of kernels and parameters are asked of `kiln completion --names FILE[:KERNEL]`, which
 * compiles the file. */
#include <string.h>

#include "cli/cli.h"
#include "tool.h"

/* ---- values of options ---- */

enum kind { ANY_FILE, FOLDER, WORDS, NOTHING };

static const struct value {
    const char *arg;
    enum kind kind;
    const char *words;               /* of WORDS, if they are fixed */
    const char *(*word)(size_t i);   /* or come from a list */
} values[] = {
    {"DEVICE", WORDS, "auto interp cpu cuda sim", NULL},
    {"STAGE", WORDS, "ast ir c ptx", NULL},
    {"FORMAT", WORDS, "text json", NULL},
    {"REPORT", WORDS, "text json csv md", NULL},
    {"DEVICES", WORDS, "auto interp cpu cuda sim cpu,cuda", NULL},
    {"SECONDS", NOTHING, NULL, NULL},
    {"PERCENT", NOTHING, NULL, NULL},
    {"EXPR", NOTHING, NULL, NULL},
    {"NAME=LIST", NOTHING, NULL, NULL},
    {"LIST", NOTHING, NULL, NULL},
    {"PAGE", WORDS, "text json md", NULL},
    {"GPU", WORDS, "H200 H100 A100 L40S RTX4090 B200 here", NULL},
    {"FROM", WORDS, "auto ptxas driver none", NULL},
    {"TEXT", NOTHING, NULL, NULL},
    {"HOW", WORDS, "sim", NULL},
    {"WHEN", WORDS, "auto always never", NULL},
    {"ARCH", WORDS, NULL, kl_tool_arch_name},
    {"PASS", WORDS, NULL, kl_tool_pass_name},
    {"DIR", FOLDER, NULL, NULL},
    {"N", NOTHING, NULL, NULL},
    {"T", NOTHING, NULL, NULL},
    {"TYPE", WORDS, "bool i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2", NULL},
};

static const struct value *value_of(const struct kl_optinfo *p)
{
    static const struct value file = {"FILE", ANY_FILE, NULL, NULL};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(values[i].arg, p->arg) == 0)
            return &values[i];
    return &file;
}

static void words_of(const struct value *v, FILE *f)
{
    const char *w;
    if (v->words)
        fputs(v->words, f);
    for (size_t i = 0; v->word && (w = v->word(i)); i++)
        fprintf(f, i ? " %s" : "%s", w);
}

/* ---- arguments of commands ---- */

enum shape { NONE, KERNEL, FILES, FIRST_WORD, COMMANDS };

static enum shape shape_of(const struct kl_cmdinfo *c)
{
    if (!*c->args)
        return NONE;
    if (strstr(c->args, "KERNEL"))
        return KERNEL;
    if (strstr(c->args, "COMMAND"))
        return COMMANDS;
    return *c->args >= 'a' && *c->args <= 'z' ? FIRST_WORD : FILES;
}

/* The words of "gen|show|cmp FILE...", with blanks between. */
static void first_words(const struct kl_cmdinfo *c, FILE *f)
{
    for (const char *s = c->args; *s && *s != ' '; s++)
        fputc(*s == '|' ? ' ' : *s, f);
}

static void commands(FILE *f)
{
    for (unsigned i = 0; i < kl_ncmds; i++)
        fprintf(f, i ? " %s" : "%s", kl_cmds[i].name);
}

/* The option of c behind p (NULL: the first one); NULL past the last. */
static const struct kl_optinfo *next_option(const struct kl_cmdinfo *c, const struct kl_optinfo *p)
{
    for (p = p ? p + 1 : kl_optinfos; p < kl_optinfos + KL_NOPT; p++)
        if (kl_opt_of(p, c))
            return p;
    return NULL;
}

/* ---- bash ---- */

static const char bash_head[] =
    "# Completion of kiln for bash; made by `kiln completion bash`.\n"
    "_kiln()\n"
    "{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} cur= prev cmd opts= shape= value= file= w i\n"
    "    local -a words\n"
    "    COMPREPLY=()\n"
    "    read -ra words <<<\"$line\"\n"
    "    case $line in\n"
    "    *[[:space:]]) ;;\n"
    "    *)\n"
    "        cur=${words[${#words[@]} - 1]}\n"
    "        unset \"words[${#words[@]} - 1]\"\n"
    "        ;;\n"
    "    esac\n";

static const char bash_tail[] =
    "    # what is completed: the value of an option, an option, or an argument\n"
    "    case $cur in\n"
    "    --*=*) prev=${cur%%=*} ;;\n"
    "    esac\n"
    "    _kiln_value \"$cmd $prev\"\n"
    "    w=$cur\n"
    "    [[ $cur != --*=* ]] || w=${cur#*=}\n"
    "    for ((i = 2; i < ${#words[@]}; i++)); do\n"
    "        case ${words[i]} in\n"
    "        -*) ;;\n"
    "        *.kiln | *.kiln:*) file=${words[i]} ;;\n"
    "        esac\n"
    "    done\n"
    "    if [[ $value = '<file>' ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        COMPREPLY=($(compgen -f -- \"$w\"))\n"
    "    elif [[ $value = '<dir>' ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        COMPREPLY=($(compgen -d -- \"$w\"))\n"
    "    elif [[ $value = '<none>' ]]; then\n"
    "        return\n"
    "    elif [[ $value ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$value\" -- \"$w\"))\n"
    "    elif [[ $cur = -* ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$opts\" -- \"$cur\"))\n"
    "    elif [[ $shape = '<kernel>' && ! $file && $cur = *.kiln:* ]]; then\n"
    "        w=$(\"${words[0]}\" completion --names \"${cur%:*}\" 2>/dev/null)\n"
    "        COMPREPLY=($(compgen -P \"${cur%:*}:\" -W \"$w\" -- \"${cur##*:}\"))\n"
    "    elif [[ $shape = '<kernel>' && $file && $cur != *=* ]]; then\n"
    "        compopt -o nospace 2>/dev/null\n"
    "        w=$(\"${words[0]}\" completion --names \"$file\" 2>/dev/null | grep '=$')\n"
    "        COMPREPLY=($(compgen -W \"$w\" -- \"$cur\"))\n"
    "    elif [[ $shape = '<kernel>' && ! $file ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        COMPREPLY=($(compgen -f -X '!*.kiln' -- \"$cur\") $(compgen -d -- \"$cur\"))\n"
    "    elif [[ $shape = '<'* ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        w=\n"
    "        [[ $cur != *=* ]] || w=${cur%%=*}=\n"
    "        COMPREPLY=($(compgen -P \"$w\" -f -- \"${cur#\"$w\"}\"))\n"
    "    elif [[ $shape ]] && ((${#words[@]} == 2)); then\n"
    "        COMPREPLY=($(compgen -W \"$shape\" -- \"$cur\"))\n"
    "    elif [[ $shape ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "    fi\n"
    "    # bash replaces only what stands behind the last break character\n"
    "    for w in : =; do\n"
    "        if [[ $cur = *$w* && $COMP_WORDBREAKS = *$w* ]]; then\n"
    "            w=${cur%\"${cur##*$w}\"}\n"
    "            COMPREPLY=(\"${COMPREPLY[@]#\"$w\"}\")\n"
    "        fi\n"
    "    done\n"
    "}\n"
    "complete -F _kiln kiln\n";

static void bash_value(const struct value *v, FILE *f)
{
    static const char *const mark[] = {
        [ANY_FILE] = "<file>", [FOLDER] = "<dir>", [NOTHING] = "<none>"};
    fputs("value='", f);
    if (v->kind == WORDS)
        words_of(v, f);
    else
        fputs(mark[v->kind], f);
    fputs("'", f);
}

static void bash(FILE *f)
{
    fputs(bash_head, f);
    fputs("    if ((${#words[@]} < 2)); then\n        COMPREPLY=($(compgen -W '", f);
    commands(f);
    fputs(" --help --version' -- \"$cur\"))\n        return\n    fi\n"
          "    cmd=${words[1]} prev=${words[${#words[@]} - 1]}\n    case $cmd in\n",
          f);
    for (const struct kl_cmdinfo *c = kl_cmds; c < kl_cmds + kl_ncmds; c++) {
        static const char *const mark[COMMANDS + 1] = {
            [NONE] = "", [KERNEL] = "<kernel>", [FILES] = "<files>"};
        fprintf(f, "    %s)\n        opts='", c->name);
        for (const struct kl_optinfo *p = next_option(c, NULL); p; p = next_option(c, p)) {
            fprintf(f, "--%s ", p->name);
            if (p->letter)
                fprintf(f, "-%c ", p->letter);
        }
        fputs("' shape='", f);
        if (shape_of(c) == FIRST_WORD)
            first_words(c, f);
        else if (shape_of(c) == COMMANDS)
            commands(f);
        else if (mark[shape_of(c)])
            fputs(mark[shape_of(c)], f);
        fputs("'\n        ;;\n", f);
    }
    fputs("    esac\n", f);
    fputs(bash_tail, f);
    fputs("_kiln_value() # of the option \"COMMAND OPTION\", into value\n{\n    case $1 in\n", f);
    for (const struct kl_cmdinfo *c = kl_cmds; c < kl_cmds + kl_ncmds; c++)
        for (const struct kl_optinfo *p = next_option(c, NULL); p; p = next_option(c, p)) {
            if (!p->arg)
                continue;
            fprintf(f, "    '%s --%s'", c->name, p->name);
            if (p->letter)
                fprintf(f, " | '%s -%c'", c->name, p->letter);
            fputs(") ", f);
            bash_value(value_of(p), f);
            fputs(" ;;\n", f);
        }
    fputs("    esac\n}\n", f);
}

/* ---- zsh ---- */

/* Text inside single quotes, with a backslash before what _arguments takes as its own. */
static void quoted(const char *s, const char *special, FILE *f)
{
    for (; *s; s++)
        if (*s == '\'')
            fputs("'\\''", f);
        else
            fprintf(f, strchr(special, *s) ? "\\%c" : "%c", *s);
}

static void zsh_option(const struct kl_optinfo *p, FILE *f)
{
    if (p->letter)
        fprintf(f, "        '*'{-%c,--%s}'[", p->letter, p->name);
    else
        fprintf(f, "        '*--%s%s[", p->name, p->arg ? "=" : "");
    quoted(p->help, "[]:\\", f);
    fputc(']', f);
    if (p->arg) {
        const struct value *v = value_of(p);
        fputc(':', f);
        quoted(p->arg, "[]:\\", f);
        fputc(':', f);
        if (v->kind == WORDS) {
            fputc('(', f);
            words_of(v, f);
            fputc(')', f);
        } else if (v->kind != NOTHING) {
            fputs(v->kind == FOLDER ? "_files -/" : "_files", f);
        } else {
            fputc(' ', f);
        }
    }
    fputs("' \\\n", f);
}

static void zsh_arguments(const struct kl_cmdinfo *c, FILE *f)
{
    switch (shape_of(c)) {
    case NONE: fputs("        && return\n", f); break;
    case KERNEL:
        fputs("        '1:kernel:_kiln_kernel' '*:parameter:_kiln_name' && return\n", f);
        break;
    case FILES: fputs("        '*:file:_files' && return\n", f); break;
    case COMMANDS:
    case FIRST_WORD:
        fputs("        '1:word:(", f);
        if (shape_of(c) == COMMANDS)
            commands(f);
        else
            first_words(c, f);
        fputs(")' '*:file:_files' && return\n", f);
        break;
    }
}

static void zsh(FILE *f)
{
    fputs("#compdef kiln\n"
          "# Completion of kiln for zsh; made by `kiln completion zsh`.\n"
          "_kiln_kernel() { # FILE.kiln or FILE.kiln:KERNEL\n"
          "    local file=${${(Q)PREFIX}%:*}\n"
          "    local -a names\n"
          "    if [[ $PREFIX = *.kiln:* ]]; then\n"
          "        names=(${(f)\"$($kiln completion --names $file 2>/dev/null)\"})\n"
          "        compset -P '*:'\n"
          "        compadd -a names\n"
          "    else\n"
          "        _files -g '*.kiln'\n"
          "    fi\n"
          "}\n"
          "_kiln_name() { # NAME= of a parameter, then a file\n"
          "    local -a names\n"
          "    if compset -P '*='; then\n"
          "        _files\n"
          "        return\n"
          "    fi\n"
          "    local -a files=(${(M)words[2,CURRENT-1]:#*.kiln(|:*)})\n"
          "    names=(${(M)${(f)\"$($kiln completion --names ${(Q)files[-1]} 2>/dev/null)\"}:#*=})\n"
          "    compadd -S '' -a names\n"
          "}\n"
          "_kiln() {\n"
          "    local kiln=$words[1] cmd\n"
          "    local -a cmds\n"
          "    cmds=(\n",
          f);
    for (const struct kl_cmdinfo *c = kl_cmds; c < kl_cmds + kl_ncmds; c++) {
        fprintf(f, "        '%s:", c->name);
        quoted(c->summary, ":\\", f);
        fputs("'\n", f);
    }
    fputs("    )\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe command cmds\n"
          "        return\n"
          "    fi\n"
          "    cmd=$words[2]\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $cmd in\n",
          f);
    for (const struct kl_cmdinfo *c = kl_cmds; c < kl_cmds + kl_ncmds; c++) {
        fprintf(f, "    %s) _arguments \\\n", c->name);
        for (const struct kl_optinfo *p = next_option(c, NULL); p; p = next_option(c, p))
            zsh_option(p, f);
        zsh_arguments(c, f);
        fputs("        ;;\n", f);
    }
    fputs("    esac\n}\n_kiln \"$@\"\n", f);
}

/* ---- fish ---- */

static void fish_option(const struct kl_cmdinfo *c, const struct kl_optinfo *p, FILE *f)
{
    fprintf(f, "complete -c kiln -n '__kiln_is %s' -l %s", c->name, p->name);
    if (p->letter)
        fprintf(f, " -s %c", p->letter);
    if (p->arg) {
        const struct value *v = value_of(p);
        switch (v->kind) {
        case ANY_FILE: fputs(" -r -F", f); break;
        case FOLDER: fputs(" -x -a '(__fish_complete_directories)'", f); break;
        case NOTHING: fputs(" -x", f); break;
        case WORDS:
            fputs(" -x -a '", f);
            words_of(v, f);
            fputc('\'', f);
            break;
        }
    }
    fputs(" -d '", f);
    for (const char *s = p->help; *s; s++)
        fprintf(f, *s == '\'' || *s == '\\' ? "\\%c" : "%c", *s);
    fputs("'\n", f);
}

static void fish(FILE *f)
{
    fputs("# Completion of kiln for fish; made by `kiln completion fish`.\n"
          "function __kiln_is # the command on the line is one of those named\n"
          "    set -l words (commandline -opc)\n"
          "    test (count $words) -ge 2; and contains -- $words[2] $argv\n"
          "end\n"
          "function __kiln_first # no command yet\n"
          "    test (count (commandline -opc)) -eq 1\n"
          "end\n"
          "function __kiln_names # kernels of FILE.kiln: or parameters of the kernel named before\n"
          "    set -l words (commandline -opc)\n"
          "    set -l cur (commandline -ct)\n"
          "    set -l file (string match -r '.*\\.kiln(?::.*)?$' -- $words)[-1]\n"
          "    if test -n \"$file\"\n"
          "        $words[1] completion --names $file 2>/dev/null | string match '*='\n"
          "    else if string match -q '*.kiln:*' -- $cur\n"
          "        set -l base (string replace -r ':[^:]*$' '' -- $cur)\n"
          "        for name in ($words[1] completion --names $base 2>/dev/null)\n"
          "            echo $base:$name\n"
          "        end\n"
          "    end\n"
          "end\n"
          "complete -c kiln -f\n"
          "complete -c kiln -n __kiln_first -l help -d 'list the commands'\n"
          "complete -c kiln -n __kiln_first -l version -d 'print the version'\n",
          f);
    for (const struct kl_cmdinfo *c = kl_cmds; c < kl_cmds + kl_ncmds; c++) {
        fprintf(f, "complete -c kiln -n __kiln_first -a %s -d '", c->name);
        quoted(c->summary, "\\", f);
        fputs("'\n", f);
        for (const struct kl_optinfo *p = next_option(c, NULL); p; p = next_option(c, p))
            fish_option(c, p, f);
        if (shape_of(c) == NONE)
            continue;
        fprintf(f, "complete -c kiln -n '__kiln_is %s'", c->name);
        switch (shape_of(c)) {
        case KERNEL: fputs(" -F -a '(__kiln_names)'", f); break;
        case COMMANDS:
            fputs(" -a '", f);
            commands(f);
            fputc('\'', f);
            break;
        case FIRST_WORD:
            fputs(strstr(c->args, "FILE") ? " -F -a '" : " -a '", f);
            first_words(c, f);
            fputc('\'', f);
            break;
        default: fputs(" -F", f);
        }
        fputc('\n', f);
    }
}

/* ---- the command ---- */

/* Kernels of FILE, or the parameters of FILE:KERNEL, or of FILE's only kernel, as NAME=. */
static int names(const struct kl_opts *o, const char *spec)
{
    struct kl_session s;
    kiln_kernel *k = NULL;
    int rc = kl_session_open(&s, o, KILN_DEVICE_INTERP, 0, true);
    s.hold = true;
    if (!rc)
        rc = kl_session_load(&s, spec);
    if (!rc && s.want)
        rc = kl_session_kernel(s.mod, s.path, s.want, &k);
    for (size_t i = 0; !rc && !k && i < kiln_module_count(s.mod); i++)
        puts(kiln_kernel_name(kiln_module_at(s.mod, i)));
    if (!rc && !k && kiln_module_count(s.mod) == 1)
        k = kiln_module_at(s.mod, 0);
    for (size_t i = 0; !rc && k && i < kiln_kernel_param_count(k); i++)
        printf("%s=\n", kiln_kernel_param(k, i)->name);
    kl_session_close(&s);
    return rc;
}

int kl_cmd_completion(const struct kl_opts *o)
{
    static const struct {
        const char *name;
        void (*print)(FILE *f);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    const char *spec = kl_opt(o, KL_OPT_names);
    if (spec)
        return names(o, spec);
    if (o->narg == 1)
        for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
            if (strcmp(o->arg[0], shells[i].name) == 0) {
                shells[i].print(stdout);
                return 0;
            }
    return kl_usage(o, "kiln completion takes one shell: bash, zsh or fish");
}
