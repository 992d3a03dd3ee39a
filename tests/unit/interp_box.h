/* interp_box.h - a function under test with its memory: shared by the tests of the interpreter. */
#ifndef INTERP_BOX_H
#define INTERP_BOX_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gen/interp/interp.h"

struct box {
    kl_env env;
    kl_arena a;
    kl_srcmap src;
    kl_diags *d;
    kl_fn *f;
    kl_build b;
    struct kl_slot slot[8];
    kl_launch l;
};

/* What raises is a mistake of the test; main ends with the message. */
static jmp_buf box_raised;
static struct box *box_current;
#define BOX_GUARD                                                                                  \
    if (setjmp(box_raised)) {                                                                      \
        print_error("raised: %s\n%s\n", box_current->env.msg, text_of(box_current));               \
        return 1;                                                                                  \
    }

static inline void box_open(struct box *x)
{
    memset(x, 0, sizeof *x);
    box_current = x;
    x->env = (kl_env){.al = &kl_alloc_libc, .fail = &box_raised};
    x->a.env = &x->env;
    x->src.a = &x->a;
    x->d = kl_diags_new(&kl_alloc_libc);
    kl_diags_use(x->d, &x->env, &x->src);
    x->l = (kl_launch){.slot = x->slot, .grid = {1, 1, 1}, .num_sms = 7};
}

static inline void box_close(struct box *x)
{
    kl_diags_use(x->d, NULL, NULL);
    kiln_diags_free(x->d);
    kl_arena_free(&x->a);
}

static inline void box_text(struct box *x, const char *text)
{
    box_open(x);
    uint32_t file = kl_src_add(&x->src, "test.ir", text, (uint32_t)strlen(text), false);
    x->f = kl_ir_read(&x->a, &x->src, file, x->d);
    assert_null(kl_ir_verify(x->f, &x->a));
}

static inline void box_fn(struct box *x)
{
    box_open(x);
    x->f = kl_fn_new(&x->a, "t");
    x->b = (kl_build){.f = x->f, .blk = KL_BODY};
}

static inline void mem(struct box *x, uint32_t i, void *p, size_t bytes)
{
    x->slot[i] = (struct kl_slot){.base = p, .lo = p, .hi = (char *)p + bytes};
}

static inline kiln_status run(struct box *x, unsigned checks)
{
    const char *bad = kl_ir_verify(x->f, &x->a);
    if (bad)
        fail_msg("%s", bad);
    return kl_interp_run(x->f, &x->l, checks, x->d, &x->env, NULL, NULL);
}

static const char *text_of(struct box *x)
{
    kl_buf b = {.a = &x->a};
    kl_diags_render(&b, x->d, false);
    return kl_buf_str(&b);
}

/* An array parameter of `n` elements, as a view of rank 1. */
static inline kl_val array(struct box *x, uint32_t i, enum kl_elem e, void *p, size_t n)
{
    struct kl_param q = {.name = kl_printf(&x->a, "p%u", i),
                         .use = KL_P_ARRAY,
                         .elem = (uint8_t)e,
                         .rank = 1,
                         .written = true};
    uint32_t k = kl_param_add(x->f, q);
    assert_int_equal(k, i);
    kl_val base = kl_block_param(&x->b, kl_array(x->f, e, 1));
    mem(x, k, p, n * kl_elems[e].bytes);
    kl_val args[4] = {base, kl_cst_i64(&x->b, 0), kl_cst_i64(&x->b, (int64_t)n),
                      kl_cst_i64(&x->b, 1)};
    return kl_emit(&x->b, KL_OP_view, kl_array(x->f, e, 1), args, 4, (union kl_attr){0});
}

static inline union kl_attr access_attr(struct box *x, const int64_t *step, uint32_t n,
                                        unsigned flags)
{
    union kl_attr at = {0};
    at.access.at = kl_aux_add(x->f, step, n);
    at.access.n = (uint16_t)n;
    at.access.flags = (uint8_t)flags;
    return at;
}

/* The array's first elements as a tile of any shape. */
static inline kl_val get(struct box *x, kl_val view, uint32_t rank, const uint32_t *dim)
{
    enum kl_elem e = (enum kl_elem)kl_type_of(x->f, view)->elem;
    int64_t one = 1;
    kl_typ shape = kl_tile(x->f, e, rank, dim);
    uint32_t n = (uint32_t)kl_numel(&x->f->type[shape.id]);
    kl_val args[2] = {view, kl_cst_i64(&x->b, 0)};
    kl_val v =
        kl_emit(&x->b, KL_OP_load, kl_tile(x->f, e, 1, &n), args, 2, access_attr(x, &one, 1, 0));
    return kl_emit(&x->b, KL_OP_reshape, shape, &v, 1, (union kl_attr){0});
}

static inline void put(struct box *x, kl_val view, kl_val v)
{
    const struct kl_type t = *kl_type_of(x->f, v);
    int64_t one = 1;
    uint32_t n = (uint32_t)kl_numel(&t);
    v = kl_emit(&x->b, KL_OP_reshape, kl_tile(x->f, (enum kl_elem)t.elem, 1, &n), &v, 1,
                (union kl_attr){0});
    kl_val args[3] = {view, kl_cst_i64(&x->b, 0), v};
    kl_emit(&x->b, KL_OP_store, (kl_typ){0}, args, 3, access_attr(x, &one, 1, 0));
}

static uint64_t rnd_state = 88172645463325252u;
static inline uint64_t rnd(void)
{
    rnd_state ^= rnd_state << 13;
    rnd_state ^= rnd_state >> 7;
    rnd_state ^= rnd_state << 17;
    return rnd_state * 2685821657736338717u;
}
static inline uint64_t below(uint64_t n)
{
    return rnd() % n;
}

static inline bool same_bits(enum kl_elem e, uint64_t a, uint64_t b)
{
    if (a == b)
        return true;
    if (!kl_is_float(e))
        return false;
    double x = kl_elem_double(e, a), y = kl_elem_double(e, b);
    return x != x && y != y;
}

/* Interesting bits of a type, then random ones. */
static inline uint64_t special(enum kl_elem e, uint64_t i)
{
    static const double flt[] = {
        0.0,           -0.0,         1,      -1,      2,      0.5,    -0.5,       1.5,
        2.5,           -2.5,         3,      -3,      7,      1e-3,   10.0609665, 88,
        -88,           104,          -104,   127.5,   -150,   1e10,   -1e10,      2147483648.0,
        -2147483648.0, 4294967296.0, 9.3e18, -9.3e18, 1.9e19, 65504,  65520,      255.5,
        -0.9,          1e38,         -1e38,  1e-38,   1e-40,  -1e-40, 5e-45,      6e-8,
        1e-310,        1e300,        -1e300};
    static const int64_t num[] = {0,
                                  1,
                                  -1,
                                  2,
                                  -2,
                                  3,
                                  -3,
                                  5,
                                  7,
                                  31,
                                  32,
                                  33,
                                  63,
                                  64,
                                  65,
                                  100,
                                  -100,
                                  127,
                                  128,
                                  255,
                                  256,
                                  65535,
                                  INT32_MAX,
                                  INT32_MIN,
                                  INT32_MAX - 1,
                                  INT32_MIN + 1,
                                  UINT32_MAX,
                                  INT64_MAX,
                                  INT64_MIN,
                                  INT64_MAX - 1,
                                  INT64_MIN + 1,
                                  0x40000000,
                                  0x40000001};
    static const uint64_t top[] = {0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000};
    size_t nf = sizeof flt / sizeof *flt, nn = sizeof num / sizeof *num;
    if (kl_is_float(e)) {
        if (i < nf)
            return kl_convert(e, KL_f64, kl_f64_bits(flt[i]));
        if (i < nf + 3)
            return kl_convert(e, KL_f64, top[i - nf]);
        if (i & 1) /* of moderate size */
            return kl_convert(e, KL_f64, kl_f64_bits(((double)below(2000001) - 1000000) * 1e-4));
        return kl_canon(e, rnd());
    }
    if (i < nn)
        return kl_canon(e, (uint64_t)num[i]);
    return kl_canon(e, rnd() >> below(64));
}

/* Row-major index of element `lane` of a shape along each axis. */
static inline void unravel(const struct kl_type *t, uint64_t lane, uint64_t at[4])
{
    for (uint32_t i = t->rank; i-- > 0; lane /= t->dim[i])
        at[i] = lane % t->dim[i];
}

#endif
