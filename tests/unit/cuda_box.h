/* cuda_box.h - what tests on the fake driver share: the driver, its hooks, contexts, arrays. */
#ifndef CUDA_BOX_H
#define CUDA_BOX_H

#include "../api/common.h"

#include <dlfcn.h>
#include <libgen.h>

#include "../fakecuda/fakecuda.h"
#include "lib/lib.h"

static char fake[4096];
static struct {
    void (*inject)(const char *, long, int);
    long (*calls)(const char *);
    long (*live)(void);
    void (*set)(int, int, int, size_t);
    void (*norun)(int);
    long (*launches)(void);
    void (*capture)(void *, int);
    int (*depth)(void);
    void (*forget)(void);
} hook;
enum { MIB = 1 << 20 };

static inline int find_fake(void **state)
{
    char self[4000] = "";
    (void)state;
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return -1;
    snprintf(fake, sizeof fake, "%s/../fakecuda/libcuda-fake.so", dirname(self));
    void *lib = dlopen(fake, RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        print_message("%s\n", dlerror());
        return -1;
    }
    static const char *const name[] = {"fail",  "calls",    "live",    "set",
                                       "norun", "launches", "capture", "depth",
                                       "forget"};
    void *to[9];
    for (size_t i = 0; i < 9; i++) {
        char symbol[64];
        snprintf(symbol, sizeof symbol, "fakecuda_%s", name[i]);
        to[i] = dlsym(lib, symbol);
        if (!to[i])
            return -1;
    }
    memcpy(&hook, to, sizeof hook);
    return setup(NULL);
}

static inline int fresh(void **state)
{
    (void)state;
    hook.set(1, 12080, 90, 256 * MIB);
    hook.forget(); /* what a failed test left */
    hook.inject(NULL, 0, 0);
    hook.norun(0);
    return 0;
}

/* Nothing may be left on the device, and no context on the thread. */
static inline int clean(void **state)
{
    (void)state;
    if (hook.depth() == 0 && hook.live() == 0)
        return 0;
    print_message("left behind: %ld objects, depth %d\n", hook.live(), hook.depth());
    return -1;
}

static inline kiln_context *cuda_at(int index, const char *cache)
{
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx = NULL;
    kiln_diags *d = NULL;
    o.device = KILN_DEVICE_CUDA;
    o.device_index = index;
    o.cache_dir = cache;
    kiln_status s = kl_context_create(&o, fake, &ctx, &d);
    show(d);
    assert_int_equal(s, KILN_OK);
    assert_null(d);
    assert_int_equal(kiln_context_device(ctx), KILN_DEVICE_CUDA);
    return ctx;
}
static inline kiln_context *cuda(void)
{
    return cuda_at(0, NULL);
}

static inline void ok(kiln_status s, kiln_diags *d)
{
    if (s || d)
        show(d);
    assert_int_equal(s, KILN_OK);
    kiln_diags_free(d);
}

/* A call that succeeds without a diagnostic; its list is g. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        kiln_status s_ = (call);                                                                   \
        ok(s_, g);                                                                                 \
        g = NULL;                                                                                  \
    } while (0)

/* The first diagnostic has this code, and all of these words. */
static inline void said(kiln_diags *d, const char *code, const char *a, const char *b)
{
    assert_non_null(d);
    assert_string_equal(kiln_diags_at(d, 0)->code, code);
    const char *text = kiln_diags_at(d, 0)->text;
    if ((a && !strstr(text, a)) || (b && !strstr(text, b)))
        fail_msg("`%s` lacks `%s` or `%s`", text, a, b ? b : "");
    kiln_diags_free(d);
}

/* ---- arrays on the device ---- */

struct on_device {
    struct data d;
    kiln_buffer *buf[3];
};

static inline void to_device(kiln_context *c, struct on_device *v, int64_t n)
{
    fill(&v->d, n);
    for (int i = 0; i < 3; i++) {
        kiln_diags *g = NULL;
        assert_int_equal(kiln_buffer_create(c, MAXN * sizeof(float), &v->buf[i]), KILN_OK);
        OK(kiln_buffer_upload(v->buf[i], 0, v->d.arg[i].u.tensor.data, MAXN * sizeof(float), NULL,
                              &g));
        kiln_tensor *t = &v->d.arg[i].u.tensor;
        t->data = kiln_buffer_data(v->buf[i]);
        t->flags = KILN_TENSOR_DEVICE;
        t->size_bytes = kiln_buffer_size(v->buf[i]);
    }
}

static inline void from_device(struct on_device *v)
{
    kiln_diags *g = NULL;
    OK(kiln_buffer_download(v->buf[0], 0, v->d.y, sizeof v->d.y, NULL, &g));
}

static inline void drop_device(struct on_device *v)
{
    for (int i = 0; i < 3; i++)
        kiln_buffer_free(v->buf[i]);
}

#endif
