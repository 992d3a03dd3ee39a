/* env.c - kiln_options_from_env, the one place where the library reads the environment. */
#define _GNU_SOURCE
#include "kiln.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* The caller is promised strings that live as long as the process, and a later setenv may
 * move the environment's own.  So each different string is kept once, on a list that is never
 * freed; it is the only state that belongs to no context. */
struct kept {
    struct kept *next;
    char text[];
};

static const char *keep(const char *text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct kept *list;
    pthread_mutex_lock(&lock);
    struct kept *k = list;
    while (k && strcmp(k->text, text) != 0)
        k = k->next;
    if (!k && (k = malloc(sizeof *k + strlen(text) + 1))) {
        strcpy(k->text, text);
        k->next = list;
        list = k;
    }
    pthread_mutex_unlock(&lock);
    return k ? k->text : NULL;
}

/* NULL also where the program runs with the rights of another. */
static const char *var(const char *name)
{
    return getauxval(AT_SECURE) ? NULL : secure_getenv(name);
}

static kiln_status set_cc(kiln_options *opt)
{
    static const char *const names[] = {"/usr/bin/cc", "/usr/bin/gcc", "/usr/bin/clang"};
    const char *v = var("KILN_CC");
    if (v)
        return !*v || (opt->cc = keep(v)) ? KILN_OK : KILN_E_NOMEM;
    for (size_t i = 0; i < sizeof names / sizeof *names && !opt->cc; i++)
        if (access(names[i], X_OK) == 0)
            opt->cc = names[i];
    return KILN_OK;
}

static kiln_status set_cache(kiln_options *opt)
{
    static const struct {
        const char *var, *under;
    } places[] = {{"KILN_CACHE_DIR", ""}, {"XDG_CACHE_HOME", "/kiln"}, {"HOME", "/.cache/kiln"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *v = var(places[i].var);
        if (!v || (i > 0 && *v != '/')) /* relative ones are to be ignored, says XDG */
            continue;
        if (!*v)
            break;
        size_t n = strlen(v) + strlen(places[i].under) + 1;
        char *s = malloc(n);
        if (!s)
            return KILN_E_NOMEM;
        snprintf(s, n, "%s%s", v, places[i].under);
        opt->cache_dir = keep(s);
        free(s);
        return opt->cache_dir ? KILN_OK : KILN_E_NOMEM;
    }
    return KILN_OK;
}

static kiln_status set_threads(kiln_options *opt)
{
    const char *v = var("KILN_THREADS");
    char *end;
    if (!v || !*v)
        return KILN_OK;
    errno = 0;
    long n = strtol(v, &end, 10);
    if (errno || *end || n < 1 || n > 4096)
        return KILN_E_ARG;
    opt->threads = (uint32_t)n;
    return KILN_OK;
}

/* A caller built against an older header has a shorter struct. */
#define HAS(opt, field) ((opt)->size >= offsetof(kiln_options, field) + sizeof(opt)->field)

kiln_status kiln_options_from_env(kiln_options *opt)
{
    kiln_status s = KILN_OK;
    if (!opt || !HAS(opt, threads))
        return KILN_E_ARG;
    if (HAS(opt, cc) && !opt->cc)
        s = set_cc(opt);
    if (!s && HAS(opt, cache_dir) && !opt->cache_dir)
        s = set_cache(opt);
    if (!s && HAS(opt, keep_dir) && !opt->keep_dir) {
        const char *v = var("KILN_KEEP");
        if (v && *v && !(opt->keep_dir = keep(v)))
            s = KILN_E_NOMEM;
    }
    if (!s && !opt->threads)
        s = set_threads(opt);
    return s;
}
