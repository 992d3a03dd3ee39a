/* common.h - what the tests of the public interface share: sources, folders, contexts. */
#ifndef COMMON_H
#define COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <ftw.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kiln.h"

static const char add_text[] =
    "kernel add(i64 n, f32 y[n], const f32 a[n], const f32 b[n], constexpr i64 B = 256)\n"
    "    grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] = a[i:B] + b[i:B];\n"
    "}\n"
    "kernel softmax(i64 rows, i64 cols, f32 y[rows][cols], const f32 x[rows][cols],\n"
    "               constexpr i64 BLOCK = pow2ceil(cols))\n"
    "    grid(rows)\n"
    "{\n"
    "    i64 r = program_id(0);\n"
    "    auto v = load(x[r][0:BLOCK], -inf);\n"
    "    auto e = exp(v - max(v));\n"
    "    y[r][0:BLOCK] = e / sum(e);\n"
    "}\n"
    "kernel scale(i64 n, type T = f32, T y[n], const T x[n], f32 s = 2, constexpr i64 B = 64)\n"
    "    grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] = (T)(x[i:B] * s);\n"
    "}\n"
    "kernel start(i64 n, i32 y[n] = 7, const i32 x[n], constexpr i64 B = 16)\n"
    "    grid(cdiv(n, B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] += x[i:B];\n"
    "}\n";

static char root[64];

static inline int rm_one(const char *p, const struct stat *st, int flag, struct FTW *f)
{
    (void)st, (void)flag, (void)f;
    return remove(p);
}

static inline int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/kiln-test-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    return nftw(root, rm_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void show(kiln_diags *d)
{
    char text[4096];
    if (d) {
        kiln_diags_render(d, 0, text, sizeof text);
        print_message("%s", text);
    }
}

static inline const char *system_cc(void)
{
    static const char *const names[] = {"/usr/bin/cc", "/usr/bin/gcc", "/usr/bin/clang"};
    for (size_t i = 0; i < 3; i++)
        if (access(names[i], X_OK) == 0)
            return names[i];
    skip();
    return NULL;
}

static inline kiln_context *context(const kiln_options *o)
{
    kiln_context *ctx = NULL;
    kiln_diags *d = NULL;
    kiln_status s = kiln_context_create(o, &ctx, &d);
    if (s || d)
        show(d);
    assert_int_equal(s, KILN_OK);
    assert_null(d);
    assert_non_null(ctx);
    return ctx;
}

static inline kiln_context *interp(void)
{
    kiln_options o = KILN_OPTIONS_INIT;
    o.device = KILN_DEVICE_INTERP;
    return context(&o);
}

/* The CPU with a compiler and a cache; NULL where there is no CPU device. */
static inline kiln_context *cpu(const char *cc, const char *cache)
{
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx = NULL;
    o.device = KILN_DEVICE_CPU;
    o.cc = cc ? cc : system_cc();
    o.cache_dir = cache;
    kiln_status s = kiln_context_create(&o, &ctx, NULL);
    if (s == KILN_E_UNSUPPORTED)
        skip();
    assert_int_equal(s, KILN_OK);
    assert_int_equal(kiln_context_device(ctx), KILN_DEVICE_CPU);
    return ctx;
}

static inline kiln_module *compile(kiln_context *ctx, const char *text)
{
    kiln_module *m = NULL;
    kiln_diags *d = NULL;
    kiln_status s = kiln_compile(ctx, "test.kiln", text, strlen(text), &m, &d);
    if (s)
        show(d);
    assert_int_equal(s, KILN_OK);
    kiln_diags_free(d);
    assert_non_null(m);
    return m;
}

/* Three arrays of n for `add`. */
enum { MAXN = 1000 };
struct data {
    float y[MAXN], a[MAXN], b[MAXN];
    int64_t n[1];
    kiln_arg arg[8];
};

static inline void fill(struct data *d, int64_t n)
{
    memset(d, 0, sizeof *d);
    d->n[0] = n;
    for (int i = 0; i < MAXN; i++) {
        d->y[i] = -77;
        d->a[i] = (float)i * 0.25f;
        d->b[i] = 1000 - (float)i;
    }
    static const char *const names[] = {"y", "a", "b"};
    float *const p[] = {d->y, d->a, d->b};
    for (int i = 0; i < 3; i++) {
        d->arg[i].name = names[i];
        d->arg[i].kind = KILN_ARG_TENSOR;
        d->arg[i].u.tensor.data = p[i];
        d->arg[i].u.tensor.dtype = KILN_F32;
        d->arg[i].u.tensor.ndim = 1;
        d->arg[i].u.tensor.shape = d->n;
    }
}

static inline void right(const struct data *d)
{
    for (int i = 0; i < MAXN; i++)
        if (d->y[i] != (i < d->n[0] ? d->a[i] + d->b[i] : -77))
            fail_msg("element %d is %g", i, (double)d->y[i]);
}

static inline void untouched(const struct data *d)
{
    for (int i = 0; i < MAXN; i++)
        assert_true(d->y[i] == -77);
}

static inline int in_child(int (*f)(void))
{
    int st;
    pid_t pid = fork();
    if (pid == 0)
        _exit(f());
    assert_int_equal(waitpid(pid, &st, 0), pid);
    return st;
}

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return __LINE__ % 251 + 1;                                                             \
    } while (0)

#endif
