/* sim_box.h - PTX texts under test on the executor: shared by its tests. */
#ifndef SIM_BOX_H
#define SIM_BOX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/module.h"

struct box {
    kl_env env;
    kl_arena a;
    kl_srcmap src;
    kl_diags *d;
    kl_sim *m;
    kl_sim_counts counts;
    kl_sim_options opt;
    /* the launch */
    char param[256];
    uint32_t param_bytes;
    kl_sim_buffer buf[8];
    uint32_t nbuf, shared;
    const char *const *names;
};

static jmp_buf box_raised;
static struct box *box_current;
/* rows of ptx.def that some test text used */
static bool row_seen[1024];

/* Rows that test_sim_cluster.c has to use. */
static inline bool box_of_clusters(const char *id)
{
    return strstr(id, "cluster") || strstr(id, "mbarrier") || strncmp(id, "mapa", 4) == 0;
}

static inline void box_open(struct box *x)
{
    memset(x, 0, sizeof *x);
    box_current = x;
    x->env = (kl_env){.al = &kl_alloc_libc, .fail = &box_raised};
    x->a.env = &x->env;
    x->src.a = &x->a;
    x->d = kl_diags_new(&kl_alloc_libc);
    x->opt.checks = KL_SIM_CHECKS;
    x->opt.budget = 1 << 24;
    kl_diags_use(x->d, &x->env, &x->src);
}

static inline void box_close(struct box *x)
{
    kl_diags_use(x->d, NULL, NULL);
    kiln_diags_free(x->d);
    kl_arena_free(&x->a);
}

static inline const char *box_text(struct box *x)
{
    kl_buf b = {.a = &x->a};
    kl_diags_render(&b, x->d, false);
    return kl_buf_str(&b);
}

#define PTX_80 ".version 7.0\n.target sm_80\n.address_size 64\n"
#define PTX_90 ".version 7.8\n.target sm_90\n.address_size 64\n"

/* What raises is a mistake of the test. */
static inline void box_parse(struct box *x, const char *text)
{
    box_open(x);
    if (setjmp(box_raised))
        fail_msg("raised: %s", box_current->env.msg);
    uint32_t file = kl_src_add(&x->src, "test.ptx", text, (uint32_t)strlen(text), false);
    x->m = kl_sim_parse(&x->a, &x->src, file, x->d);
    for (uint32_t k = 0; x->m && k < x->m->nfn; k++)
        for (uint32_t i = 0; i < x->m->fn[k].nins; i++)
            row_seen[x->m->fn[k].ins[i].row] = true;
}

static inline void box_module(struct box *x, const char *text)
{
    box_parse(x, text);
    if (!x->m)
        fail_msg("%s", box_text(x));
}

static inline void box_args(struct box *x)
{
    x->param_bytes = x->nbuf = x->shared = 0;
}

static inline void arg_raw(struct box *x, const void *p, uint32_t n)
{
    x->param_bytes = (x->param_bytes + n - 1) / n * n;
    memcpy(x->param + x->param_bytes, p, n);
    x->param_bytes += n;
}

static inline void arg_mem(struct box *x, void *p, size_t bytes, bool writable)
{
    arg_raw(x, &p, 8);
    x->buf[x->nbuf++] = (kl_sim_buffer){p, bytes, writable};
}

static inline void arg_u32(struct box *x, uint32_t v)
{
    arg_raw(x, &v, 4);
}

static inline kiln_status box_run3(struct box *x, const char *entry, const uint32_t grid[3],
                                   const uint32_t block[3])
{
    kl_sim_launch l = {.entry = entry, .dynamic_shared = x->shared, .param = x->param,
                       .param_bytes = x->param_bytes, .buffer = x->buf, .nbuffer = x->nbuf,
                       .buffer_name = x->names};
    memcpy(l.grid, grid, sizeof l.grid);
    memcpy(l.block, block, sizeof l.block);
    return kl_sim_run(x->m, &l, &x->opt, &x->counts, &x->a, x->d, &x->env);
}

static inline kiln_status box_run(struct box *x, const char *entry, uint32_t grid, uint32_t block)
{
    return box_run3(x, entry, (const uint32_t[3]){grid, 1, 1}, (const uint32_t[3]){block, 1, 1});
}

static inline void box_good(struct box *x, const char *entry, uint32_t grid, uint32_t block)
{
    kiln_status st = box_run(x, entry, grid, block);
    if (st || x->d->list.n)
        fail_msg("status %d\n%s", st, box_text(x));
}

/* ---- ptxas, where there is one, must accept what the tests run ---- */

static inline const char *ptxas_path(void)
{
    static const char *const at[] = {"/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas"};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        if (access(at[i], X_OK) == 0)
            return at[i];
    return NULL;
}

/* Assembles the text for an architecture; false with the message printed. */
static inline bool ptxas_takes(const char *text, const char *arch)
{
    char name[] = "/tmp/kiln-sim-XXXXXX", cmd[256];
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    size_t n = strlen(text);
    assert_int_equal(write(fd, text, n), (ssize_t)n);
    close(fd);
    snprintf(cmd, sizeof cmd, "%s -arch=%s -o /dev/null %s 2>&1", ptxas_path(), arch, name);
    int rc = system(cmd);
    if (rc == 0)
        unlink(name);
    return rc == 0;
}

static inline uint64_t box_random(uint64_t *s)
{
    *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
    return *s * 2685821657736338717u;
}

#endif
