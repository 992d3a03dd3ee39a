/* genc_box.h - functions through the C back end and the interpreter, compared bit by bit.
 *
 * Functions are collected in one C file, compiled by the system's compiler and loaded.  Each
 * launch runs on two copies of the same random memory. */
#ifndef GENC_BOX_H
#define GENC_BOX_H

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gen/c/genc.h"
#include "gen/interp/interp.h"

enum { GB_ELEMS = 3 << 14, GB_BASE = 1 << 12, GB_PARAMS = 12 };

struct gb_fn {
    kl_fn *f;
    kl_cinfo ci;
    char symbol[32];
    const char *path; /* for messages */
    const char *text; /* the C of it */
};

struct gb {
    kl_env env;
    kl_arena a;
    kl_srcmap src;
    kl_diags *d;
    kl_buf c;
    KL_VEC(struct gb_fn) fn;
    char dir[64];
    unsigned builds;
    void *so;
    uint64_t seed;
};

/* What raises is a mistake of the test or of what it tests; the caller sets this jump. */
static jmp_buf gb_raised;

static inline void gb_open(struct gb *x)
{
    memset(x, 0, sizeof *x);
    x->env = (kl_env){.al = &kl_alloc_libc, .fail = &gb_raised};
    x->a.env = &x->env;
    x->src.a = x->c.a = &x->a;
    x->d = kl_diags_new(&kl_alloc_libc);
    kl_diags_use(x->d, &x->env, &x->src);
    kl_c_prelude(&x->c);
    x->seed = 1;
}

static inline void gb_close(struct gb *x)
{
    char cmd[128];
    if (x->so)
        dlclose(x->so);
    if (x->dir[0]) {
        snprintf(cmd, sizeof cmd, "rm -rf %s", x->dir);
        if (system(cmd))
            print_message("cannot remove %s\n", x->dir);
    }
    kl_diags_use(x->d, NULL, NULL);
    kiln_diags_free(x->d);
    kl_arena_free(&x->a);
}

/* Emit f; its index. */
static inline uint32_t gb_add(struct gb *x, kl_fn *f, const char *path)
{
    struct gb_fn fn = {.f = f, .path = path};
    size_t at = x->c.n;
    snprintf(fn.symbol, sizeof fn.symbol, "fn_%u", x->fn.n);
    kl_c_emit(&x->c, f, fn.symbol, false, &fn.ci);
    fn.text = kl_strndup(&x->a, x->c.s + at, x->c.n - at);
    kl_push(&x->a, &x->fn, fn);
    return x->fn.n - 1;
}

static inline const char *gb_level(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") ? "x86-64-v4"
                                                                                   : "x86-64-v3";
}

/* Compile all and load; false: there is no such compiler or it failed (shown). */
static inline bool gb_compile(struct gb *x, const char *cc, const char *level)
{
    char path[96], cmd[768];
    if (x->so)
        dlclose(x->so);
    x->so = NULL;
    if (!x->dir[0]) {
        strcpy(x->dir, "/tmp/genc-XXXXXX");
        assert_non_null(mkdtemp(x->dir));
    }
    snprintf(path, sizeof path, "%s/f.c", x->dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(x->c.s, 1, x->c.n, f), x->c.n);
    fclose(f);
    /* KILN_TEST_LEVEL: another level, where only this program is under test and not the compiler */
    const char *best = strstr(cc, "clang") ? "-O2" : "-O3", *other = getenv("KILN_TEST_LEVEL");
    snprintf(cmd, sizeof cmd,
             "%s %s -march=%s -mprefer-vector-width=512 -fPIC -shared -nostdinc "
             "-fvisibility=hidden -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv "
             "-fno-strict-aliasing -w -o %s/%u.so %s",
             cc, other ? other : best, level, x->dir, ++x->builds, path);
    if (system(cmd) != 0)
        return false;
    snprintf(path, sizeof path, "%s/%u.so", x->dir, x->builds);
    x->so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!x->so)
        print_error("%s\n", dlerror());
    /* it needs no other symbols than these */
    snprintf(cmd, sizeof cmd,
             "nm -D --undefined-only %s | grep -vE ' (w .*|U (memcpy|memmove|memset)(@.*)?)$'",
             path);
    if (system(cmd) == 0)
        return false;
    return x->so != NULL;
}

/* ---- data ---- */

static inline uint64_t gb_rand(struct gb *x)
{
    uint64_t z = x->seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* One element: wild: special values and all bit patterns too. */
static inline uint64_t gb_element(struct gb *x, enum kl_elem e, bool wild)
{
    static const double special[] = {
        0.0,          -0.0,          1.0,          -1.0,   0.5,     2.0,     88.7,
        -103.9,       1e-40,         -1e-40,       3.4e38, -3.4e38, 65504.0, 65520.0,
        2147483648.0, -2147483648.0, 4294967296.0, 9.3e18, 1e300,   1e-310,  6e-8};
    uint64_t r = gb_rand(x), pick = r >> 32 & 15;
    if (kl_is_float(e)) {
        double d = (double)(int64_t)(r & 0xffffff) / 0x1p21 - 4.0;
        if (!wild)
            return kl_convert(e, KL_f64, kl_f64_bits(d));
        if (pick < 4)
            d = special[r % (sizeof special / sizeof *special)];
        if (pick == 4)
            d = r & 1 ? (double)INFINITY : -(double)INFINITY;
        if (pick == 5)
            return kl_canon(e, kl_convert(e, KL_f64, 0x7ff8000000000000) | (r & 1) << 63);
        if (pick == 6)
            return kl_canon(e, gb_rand(x)); /* any bits */
        if (pick == 7)
            d *= 1e4;
        return kl_convert(e, KL_f64, kl_f64_bits(d));
    }
    if (e == KL_bool)
        return r & 1;
    if (!wild || pick < 6)
        return kl_canon(
            e, (uint64_t)((int64_t)(r % 201) - (kl_elems[e].kind == KL_KIND_SINT ? 100 : 0)));
    if (pick < 9) {
        static const uint64_t edge[] = {0,
                                        1,
                                        2,
                                        31,
                                        32,
                                        33,
                                        63,
                                        64,
                                        UINT64_MAX,
                                        INT64_MAX,
                                        (uint64_t)INT64_MIN,
                                        0x7fffffff,
                                        0x80000000,
                                        0xffffffff,
                                        0xffffffff80000000};
        return kl_canon(e, edge[r % (sizeof edge / sizeof *edge)]);
    }
    return kl_canon(e, gb_rand(x));
}

/* Bits of an element with every NaN made the same. */
static inline uint64_t gb_plain(enum kl_elem e, const char *p)
{
    uint64_t b = 0;
    memcpy(&b, p, kl_elems[e].bytes);
    return kl_is_float(e) && kl_elem_double(e, b) != kl_elem_double(e, b) ? UINT64_MAX - 1 : b;
}

/* ---- running ---- */

/* The memory of each array: random, twice the same.  slot: what the interpreter takes, of the first;
 * p: what the other takes. */
static inline void gb_memory(struct gb *x, const kl_fn *f, const uint64_t *scalar, bool wild,
                             struct kl_slot *slot, char *mem[2][GB_PARAMS], uint64_t *p)
{
    for (uint32_t i = 0, s = 0; i < f->nparam; i++) {
        const struct kl_param *q = &f->param[i];
        enum kl_elem e = (enum kl_elem)q->elem;
        if (q->use != KL_P_ARRAY) {
            slot[i].bits = p[i] = kl_canon(e, scalar[s++]);
            continue;
        }
        uint32_t size = kl_elems[e].bytes;
        for (int j = 0; j < 2; j++)
            mem[j][i] = malloc((size_t)GB_ELEMS * size);
        for (uint32_t n = 0; n < GB_ELEMS; n++) {
            uint64_t b = gb_element(x, e, wild);
            if (e == KL_bool && wild && b)
                b = gb_rand(x) % 255 + 1;
            memcpy(mem[0][i] + (size_t)n * size, &b, size);
        }
        memcpy(mem[1][i], mem[0][i], (size_t)GB_ELEMS * size);
        slot[i].base = mem[0][i] + (size_t)GB_BASE * size;
        slot[i].lo = mem[0][i];
        slot[i].hi = mem[0][i] + (size_t)GB_ELEMS * size;
        p[i] = (uint64_t)(uintptr_t)(mem[1][i] + (size_t)GB_BASE * size);
    }
}

/* Is the memory the same?  It is freed.  who: the other beside the interpreter. */
static inline bool gb_same(const kl_fn *f, const char *path, const char *who, char *mem[2][GB_PARAMS])
{
    bool same = true;
    for (uint32_t i = 0; i < f->nparam; i++) {
        enum kl_elem e = (enum kl_elem)f->param[i].elem;
        uint32_t size = kl_elems[e].bytes, bad = 0;
        for (uint32_t n = 0; mem[0][i] && n < GB_ELEMS; n++) {
            const char *a = mem[0][i] + (size_t)n * size, *b = mem[1][i] + (size_t)n * size;
            if (memcmp(a, b, size) == 0 || gb_plain(e, a) == gb_plain(e, b))
                continue;
            if (bad++ == 0) {
                uint64_t u = 0, w = 0;
                memcpy(&u, a, size);
                memcpy(&w, b, size);
                print_error("%s: %s[%d]: interpreter %llx, %s %llx\n", path, f->param[i].name,
                            (int)n - GB_BASE, (unsigned long long)u, who, (unsigned long long)w);
            }
        }
        if (bad > 1)
            print_error("    and %u more elements\n", bad - 1);
        same &= bad == 0;
        free(mem[0][i]);
        free(mem[1][i]);
    }
    return same;
}

/* Grid and scalars, in the order of the parameters, of a line `; run grid=G0[,G1[,G2]] NAME=VALUE ...`. */
static inline void gb_launch(const kl_fn *f, const char *s, const char *end, int64_t grid[3],
                             uint64_t scalar[GB_PARAMS])
{
    grid[0] = grid[1] = grid[2] = 1;
    memset(scalar, 0, GB_PARAMS * sizeof *scalar);
    for (const char *eq = s; (eq = strchr(eq, '=')) != NULL && eq < end; eq++) {
        const char *name = eq;
        while (name[-1] != ' ')
            name--;
        char *rest;
        long long v = strtoll(eq + 1, &rest, 0);
        size_t n = (size_t)(eq - name), at = 0;
        if (n == 4 && !memcmp(name, "grid", 4)) {
            grid[0] = v;
            for (int i = 1; i < 3 && *rest == ','; i++)
                grid[i] = strtoll(rest + 1, &rest, 0);
            continue;
        }
        bool found = false;
        for (uint32_t i = 0; i < f->nparam; i++) {
            if (f->param[i].use != KL_P_SCALAR)
                continue;
            if (strlen(f->param[i].name) == n && !memcmp(f->param[i].name, name, n)) {
                enum kl_elem e = (enum kl_elem)f->param[i].elem;
                scalar[at] = kl_is_float(e)
                                 ? kl_convert(e, KL_f64, kl_f64_bits(strtod(eq + 1, NULL)))
                                 : (uint64_t)v;
                found = true;
            }
            at++;
        }
        assert_true(found);
    }
}

typedef void gb_entry(const uint64_t *p, const int64_t *grid, int64_t begin, int64_t end,
                      char *scratch);

/* Run function k on random memory; scalars in the order of the parameters.  split: in two
 * parts of the programs.  true: same bits. */
static inline bool gb_run(struct gb *x, uint32_t k, const int64_t grid[3], const uint64_t *scalar,
                          bool wild)
{
    const struct gb_fn *fn = &x->fn.v[k];
    const kl_fn *f = fn->f;
    struct kl_slot slot[GB_PARAMS] = {{0}};
    char *mem[2][GB_PARAMS] = {{NULL}};
    uint64_t p[GB_PARAMS + 256] = {0};
    int64_t g4[4] = {grid[0], grid[1], grid[2], 7};
    bool same = true;
    assert_true(f->nparam <= GB_PARAMS && fn->ci.nextra <= 256);
    gb_memory(x, f, scalar, wild, slot, mem, p);
    for (uint32_t i = 0; i < fn->ci.nextra; i++)
        p[f->nparam + i] = (uint64_t)fn->ci.extra[i];
    kl_launch l = {.slot = slot, .grid = {grid[0], grid[1], grid[2]}, .num_sms = 7};
    int64_t total = grid[0] * grid[1] * grid[2];
    assert_int_equal(kl_interp_range(f, &l, 0, total, &x->env), KILN_OK);
    gb_entry *entry;
    void *sym = dlsym(x->so, fn->symbol);
    assert_non_null(sym);
    memcpy(&entry, &sym, sizeof entry);
    size_t scratch = (fn->ci.scratch + 127) / 64 * 64;
    char *room = aligned_alloc(64, scratch + 64);
    memset(room, 0xa5, scratch);
    memcpy(room + scratch, "guard", 6);
    entry(p, g4, 0, total / 2, room); /* programs keep nothing in scratch */
    memset(room, 0x5a, scratch);
    entry(p, g4, total / 2, total, room);
    if (memcmp(room + scratch, "guard", 6)) {
        print_error("%s: wrote behind its scratch\n", fn->path);
        same = false;
    }
    free(room);
    return gb_same(f, fn->path, "C", mem) && same;
}

#endif
