/* nn.h - tests of kiln_nn.h: devices, arrays of f32 with noise, what is demanded of a call. */
#ifndef TEST_NN_H
#define TEST_NN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln_nn.h"

enum { MOST = 4096, ARRAYS = 12 };

struct arr {
    kiln_tensor t;
    int64_t shape[6], stride[6];
    float v[MOST];
};

static struct fixture {
    kiln_context *ctx[3];
    kiln_nn *nn[3];
    unsigned n;
    struct arr a[ARRAYS];
    unsigned used;
    _Alignas(256) float work[1 << 18];
} fix;
static unsigned now; /* the device under test */
#define NN fix.nn[now]

static int setup(void **state)
{
    (void)state;
    static const kiln_device here[] = {KILN_DEVICE_INTERP, KILN_DEVICE_CPU, KILN_DEVICE_SIM},
                             gpu[] = {KILN_DEVICE_CUDA};
    const char *env = getenv("KILN_TEST_DEVICE"); /* 1: on a GPU instead */
    bool on_gpu = env && *env == '1';
    const kiln_device *dev = on_gpu ? gpu : here;
    for (unsigned i = 0; i < (on_gpu ? 1 : 3); i++) {
        kiln_options o = KILN_OPTIONS_INIT;
        kiln_options_from_env(&o);
        o.device = dev[i];
        o.threads = 2;
        if (dev[i] == KILN_DEVICE_INTERP)
            o.checks = KILN_CHECK_ALL;
        if ((dev[i] == KILN_DEVICE_CPU && !o.cc) ||
            kiln_context_create(&o, &fix.ctx[fix.n], NULL) != KILN_OK)
            continue;
        if (kiln_nn_create(fix.ctx[fix.n], &fix.nn[fix.n], NULL) != KILN_OK)
            return -1;
        fix.n++;
    }
    return fix.n ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < fix.n; i++) {
        kiln_nn_free(fix.nn[i]);
        kiln_context_free(fix.ctx[i]);
    }
    return 0;
}

/* ---- arrays ---- */

static uint32_t noise = 1;

static float draw(void)
{
    noise = noise * 1664525u + 1013904223u;
    return (float)(noise >> 8) / 8388608.0f - 1;
}

/* A dense f32 array; filled with noise, or poisoned if it is an output. */
static struct arr *array(bool output, int ndim, ...)
{
    assert_true(fix.used < ARRAYS);
    struct arr *a = &fix.a[fix.used++];
    va_list ap;
    int64_t n = 1;
    va_start(ap, ndim);
    for (int d = 0; d < ndim; d++)
        n *= a->shape[d] = va_arg(ap, int);
    va_end(ap);
    assert_true(n <= MOST);
    for (int64_t i = 0; i < MOST; i++)
        a->v[i] = output || i >= n ? NAN : draw();
    a->t = (kiln_tensor){.data = a->v, .dtype = KILN_F32, .ndim = ndim, .shape = a->shape};
    return a;
}
#define OUT(...) array(true, __VA_ARGS__)
#define IN(...)  array(false, __VA_ARGS__)

static void good(kiln_status st, kiln_diags *d)
{
    char text[2000] = "";
    kiln_diags_render(d, 0, text, sizeof text);
    kiln_diags_free(d);
    if (st)
        print_error("%s: %s", kiln_status_name(st), text);
    assert_int_equal(st, KILN_OK);
}
#define GOOD(call)                                                                                 \
    do {                                                                                           \
        kiln_diags *d = NULL;                                                                      \
        kiln_status st_ = (call);                                                                  \
        good(st_, d);                                                                              \
    } while (0)

/* Refused, with a message that holds text. */
#define BAD(text, call)                                                                            \
    do {                                                                                           \
        kiln_diags *d = NULL;                                                                      \
        char text_[2000] = "";                                                                     \
        assert_int_equal((call), KILN_E_ARG);                                                      \
        kiln_diags_render(d, 0, text_, sizeof text_);                                              \
        if (!strstr(text_, text))                                                                  \
            print_error("no `%s` in: %s", text, text_);                                            \
        assert_non_null(strstr(text_, text));                                                      \
        kiln_diags_free(d);                                                                        \
    } while (0)

static void near(double got, double want, double tol, const char *what, int64_t i)
{
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= tol * (1 + fabs(want)) || got == want)) {
        print_error("%s[%lld] is %.9g, and %.9g is right (device %u)\n", what, (long long)i, got,
                    want, now);
        fail();
    }
}
#define NEAR(got, want, i) near((got), (want), 1e-5, #got, (int64_t)(i))

/* Nothing written behind the array. */
static void guarded(const struct arr *a)
{
    int64_t n = 1;
    for (int d = 0; d < a->t.ndim; d++)
        n *= a->shape[d];
    for (int64_t i = n; i < MOST; i++)
        assert_true(isnan(a->v[i]));
}

#define EACH_DEVICE for (now = 0; now < fix.n; now++, fix.used = 0)

#endif
