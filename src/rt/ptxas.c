/* ptxas.c - see ptxas.h. */
#define _GNU_SOURCE
#include "rt/ptxas.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "rt/file.h"

#define SOURCE "kernel.ptx"

/* The number in front of a word on the line that begins at s. */
static bool count(const char *s, size_t n, const char *word, uint32_t *out)
{
    const char *at = memmem(s, n, word, strlen(word));
    if (!at)
        return false;
    while (at > s && at[-1] >= '0' && at[-1] <= '9')
        at--;
    if (*at < '0' || *at > '9')
        return false;
    *out = (uint32_t)strtoul(at, NULL, 10);
    return true;
}

/* "Used 31 registers": the number stands behind the word. */
static bool used(const char *s, size_t n, uint32_t *out)
{
    const char *at = memmem(s, n, "Used ", 5);
    if (!at)
        return false;
    *out = (uint32_t)strtoul(at + 5, NULL, 10);
    return true;
}

bool kl_ptxas_read(const char *text, const char *entry, kl_ptxas *out)
{
    bool mine = false, found = false;
    size_t len = strlen(entry);
    *out = (kl_ptxas){0};
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        static const char head[] = "Compiling entry function '";
        const char *at = memmem(p, n, head, sizeof head - 1);
        if (at) {
            at += sizeof head - 1;
            mine = strncmp(at, entry, len) == 0 && at[len] == '\'';
        } else if (mine && count(p, n, " bytes stack frame", &out->stack)) {
            count(p, n, " bytes spill stores", &out->spill_stores);
            count(p, n, " bytes spill loads", &out->spill_loads);
        } else if (mine && used(p, n, &out->registers)) {
            count(p, n, " barriers", &out->barriers);
            count(p, n, " bytes smem", &out->shared);
            found = true;
        }
        p += n + (p[n] == '\n');
    }
    return found;
}

static kiln_status run(kl_child *c, uint32_t timeout_ms, const char *entry, kl_ptxas *out,
                       char msg[KL_CC_MSG])
{
    const char *path = c->argv[0];
    if (!kl_child_run(c))
        snprintf(msg, KL_CC_MSG, "%.200s cannot be started: %s", path, strerror(errno));
    else if (c->timed_out)
        snprintf(msg, KL_CC_MSG, "%.200s did not end within %u ms", path, (unsigned)timeout_ms);
    else if (c->exit_code != 0 && !c->unknown)
        snprintf(msg, KL_CC_MSG, "%.200s failed: %.*s", path, (int)strcspn(c->out, "\n"), c->out);
    else if (!kl_ptxas_read(c->out, entry, out))
        snprintf(msg, KL_CC_MSG, "%.200s says nothing about the kernel", path);
    else
        return KILN_OK;
    return KILN_E_TOOLCHAIN;
}

kiln_status kl_ptxas_run(kl_cache *c, const char *path, const char *ptx, size_t n, uint32_t cc,
                         const char *entry, uint32_t timeout_ms, kl_ptxas *out,
                         char msg[KL_CC_MSG])
{
    enum { OUTPUT = 32 << 10 };
    char arch[32], text[OUTPUT];
    kl_privdir d;
    msg[0] = 0;
    if (path[0] != '/') {
        snprintf(msg, KL_CC_MSG, "ptxas must be an absolute path, not `%.200s`", path);
        return KILN_E_ARG;
    }
    if (!kl_privdir_make(&d, c)) {
        snprintf(msg, KL_CC_MSG, "no folder for ptxas can be made: %s", strerror(errno));
        return KILN_E_TOOLCHAIN;
    }
    snprintf(arch, sizeof arch, "-arch=sm_%u", (unsigned)cc);
    /* -c: as the driver assembles, for linking; what is optimised differs */
    const char *const argv[] = {path, "-c", "-v", arch, SOURCE, "-o", "kernel.o", NULL};
    kl_child child = {.argv = argv,
                      .in = -1,
                      .cwd = d.fd,
                      .capture_err = true,
                      .timeout_ms = timeout_ms,
                      .out = text,
                      .nout = sizeof text};
    kiln_status s = KILN_E_TOOLCHAIN;
    if (kl_file_replace(d.fd, SOURCE, ptx, n, 0600))
        s = run(&child, timeout_ms, entry, out, msg);
    else
        snprintf(msg, KL_CC_MSG, "the text for ptxas cannot be written: %s", strerror(errno));
    kl_privdir_remove(&d);
    return s;
}
