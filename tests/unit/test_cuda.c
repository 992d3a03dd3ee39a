/* test_cuda.c - the CUDA runtime and the library's path to it, on the fake driver. */
#define _GNU_SOURCE
#include "cuda_box.h"

/* ---- no driver, no device ---- */

static void refuse(const char *lib, int index, kiln_status want, const char *code, const char *word)
{
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx = NULL;
    kiln_diags *d = NULL;
    o.device = KILN_DEVICE_CUDA;
    o.device_index = index;
    assert_int_equal(kl_context_create(&o, lib, &ctx, &d), want);
    assert_null(ctx);
    said(d, code, word, NULL);
}

static void no_device(void **state)
{
    (void)state;
    refuse("/nowhere/libcuda.so.1", 0, KILN_E_DEVICE, "K1810", "cannot be loaded");
    refuse("libm.so.6", 0, KILN_E_DEVICE, "K1810", "lacks cuInit");
    hook.set(0, 12080, 90, MIB);
    refuse(fake, 0, KILN_E_DEVICE, "K1811", "no CUDA-capable device");
    hook.set(2, 12080, 90, MIB);
    refuse(fake, 2, KILN_E_DEVICE, "K1811", "no CUDA device 2: the driver sees 2");
    refuse(fake, -1, KILN_E_DEVICE, "K1811", "no CUDA device -1");
    hook.set(1, 12080, 75, MIB);
    refuse(fake, 0, KILN_E_UNSUPPORTED, "K1811", "compute capability 7.5");
    /* and the process goes on */
    kiln_context *c = interp();
    kiln_context_free(c);
}

static void info(void **state)
{
    (void)state;
    hook.set(2, 12080, 103, 64 * MIB);
    kiln_context *c = cuda_at(1, NULL);
    const kiln_device_info *i = kiln_context_device_info(c);
    assert_string_equal(i->name, "Fake GPU 1");
    assert_string_equal(i->arch, "sm_100"); /* the nearest below */
    assert_int_equal(i->index, 1);
    assert_int_equal(i->driver, 12080);
    assert_int_equal(i->sms, 4);
    assert_true(i->memory_bytes == 64 * MIB);
    kiln_context_free(c);
    static const struct {
        int driver, ptx;
    } v[] = {{11000, 70}, {11080, 78}, {12000, 80}, {12050, 85}, {12060, 85},
             {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}, {13010, 91}};
    for (size_t k = 0; k < sizeof v / sizeof *v; k++)
        assert_int_equal(kl_cuda_ptx_of_driver(v[k].driver), v[k].ptx);
}

/* ---- host arrays ---- */

static void host_arrays(void **state)
{
    static const int64_t sizes[] = {0, 1, 255, 256, 257, 1000};
    (void)state;
    kiln_context *c = cuda();
    kiln_module *m = compile(c, add_text);
    static struct data d;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        kiln_diags *g = NULL;
        fill(&d, sizes[i]);
        OK(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, &g));
        right(&d);
    }
    /* in place, and off by one element */
    kiln_diags *g = NULL;
    fill(&d, 700);
    d.arg[0].u.tensor.data = d.a;
    OK(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, &g));
    for (int i = 0; i < MAXN; i++)
        assert_true(d.a[i] == (i < 700 ? (float)i * 0.25f + d.b[i] : (float)i * 0.25f));
    fill(&d, 700);
    for (int i = 0; i < 3; i++)
        d.arg[i].u.tensor.data = (float *)d.arg[i].u.tensor.data + 1;
    g = NULL;
    OK(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, &g));
    for (int i = 0; i < MAXN; i++)
        assert_true(d.y[i] == (i >= 1 && i <= 700 ? d.a[i] + d.b[i] : -77));
    kiln_module_free(m);
    kiln_context_free(c);
}

/* ---- device arrays ---- */

static void device_arrays(void **state)
{
    static struct on_device v;
    (void)state;
    kiln_context *c = cuda();
    kiln_module *m = compile(c, add_text);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    kiln_diags *g = NULL;
    to_device(c, &v, 999);
    OK(kiln_launch(k, NULL, v.d.arg, 3, &g));
    from_device(&v);
    right(&v.d);
    /* a launch costs one call of the driver besides the context */
    static const char *const other[] = {"cuMemAlloc_v2",       "cuMemFree_v2",
                                        "cuStreamSynchronize", "cuCtxSynchronize",
                                        "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"};
    long before[6], launches = hook.calls("cuLaunchKernel"), all = hook.calls(NULL);
    for (int i = 0; i < 6; i++)
        before[i] = hook.calls(other[i]);
    OK(kiln_launch(k, NULL, v.d.arg, 3, &g));
    assert_int_equal(hook.calls("cuLaunchKernel"), launches + 1);
    assert_true(hook.calls(NULL) - all <= 3);
    for (int i = 0; i < 6; i++)
        assert_int_equal(hook.calls(other[i]), before[i]);
    OK(kiln_sync(c, &g));
    drop_device(&v);
    kiln_module_free(m);
    kiln_context_free(c);
}

/* Launches that are captured must not allocate or wait on the device, the first time neither. */
static void capture(void **state)
{
    static struct on_device v;
    (void)state;
    kiln_context *c = cuda();
    kiln_module *m = compile(c, add_text);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    kiln_stream *s;
    kiln_diags *g = NULL;
    to_device(c, &v, 500);
    OK(kiln_stream_create(c, &s, &g));
    OK(kiln_launch(k, s, v.d.arg, 3, &g));
    OK(kiln_stream_sync(s, &g));
    hook.capture(kiln_stream_cuda(s), 1);
    OK(kiln_launch(k, s, v.d.arg, 3, &g));
    v.d.arg[2].u.tensor = v.d.arg[1].u.tensor; /* not by the short way */
    OK(kiln_launch(k, s, v.d.arg, 3, &g));
    v.d.arg[1].u.tensor.data = v.d.a;
    v.d.arg[1].u.tensor.flags = 0;
    assert_int_equal(kiln_launch(k, s, v.d.arg, 3, &g), KILN_E_ARG);
    said(g, "K1818", "captured", "host memory");
    assert_int_equal(kiln_stream_sync(s, &g), KILN_E_DEVICE);
    said(g, "K1816", "cuStreamSynchronize", "STREAM_CAPTURE_UNSUPPORTED");
    hook.capture(kiln_stream_cuda(s), 0);
    kiln_stream_free(s);
    drop_device(&v);
    kiln_module_free(m);
    kiln_context_free(c);
}

/* ---- the short way ---- */

static long nalloc;
static void *counting(void *user, void *p, size_t old, size_t size)
{
    (void)user, (void)old;
    nalloc += size != 0;
    if (!size) {
        free(p);
        return NULL;
    }
    return realloc(p, size);
}

static const char scaled_text[] =
    "kernel scaled(i64 n, type T, T y[n], const T x[n], f32 s, i64 stop = 100000,\n"
    "              constexpr i64 B = 64) grid(cdiv(min(n, stop), B))\n"
    "{\n"
    "    i64 i = program_id(0) * B;\n"
    "    y[i:B] = (T)(x[i:B] * s + y[i:B]);\n"
    "}\n";

static void short_way(void **state)
{
    enum { N = 4096 };
    static float x[N], y[N], want[N];
    (void)state;
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *c = NULL;
    kiln_diags *g = NULL;
    o.device = KILN_DEVICE_CUDA;
    o.alloc = counting;
    OK(kl_context_create(&o, fake, &c, &g));
    kiln_module *m = compile(c, scaled_text);
    kiln_kernel *k = kiln_module_kernel(m, "scaled");
    kiln_buffer *b;
    assert_int_equal(kiln_buffer_create(c, 4 * sizeof x, &b), KILN_OK);
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 100), y[i] = 1;
    static const struct {
        size_t xat, yat; /* elements */
        int64_t n;
        double s;
        bool quick;
    } turn[] = {
        {0, N, 1024, 2, false},    {0, N, 1024, 2, true},      {64, N, 1024, 2, true},
        {1, N, 1024, 2, false},    {1, N + 4, 1024, 2, true},  {0, N, 1000, 2, false},
        {0, N, 1024, 3, false},    {0, N, 1024, 2, true},      {0, 0, 1024, 2, false},
        {128, 128, 1024, 2, true}, {0, 8, 1024, 2, false},     {0, 2 * N, 1024, 3, true},
        {0, N, 1024, 3, true},     {0, N, 1023, 3, false},     {0, N, 1024, 2, true},
    };
    for (size_t t = 0; t < sizeof turn / sizeof *turn; t++) {
        int64_t shape[1] = {turn[t].n};
        size_t xa = turn[t].xat, ya = turn[t].yat;
        OK(kiln_buffer_upload(b, 0, x, sizeof x, NULL, &g));
        OK(kiln_buffer_upload(b, sizeof x, y, sizeof y, NULL, &g));
        OK(kiln_buffer_upload(b, 2 * sizeof x, y, sizeof y, NULL, &g));
        kiln_arg a[3] = {{.name = "x", .kind = KILN_ARG_TENSOR},
                         {.name = "y", .kind = KILN_ARG_TENSOR},
                         {.name = "s", .kind = KILN_ARG_FLOAT, .u = {.f = turn[t].s}}};
        kiln_tensor tx = {.data = (float *)kiln_buffer_data(b) + xa,
                          .dtype = KILN_F32,
                          .ndim = 1,
                          .shape = shape,
                          .flags = KILN_TENSOR_DEVICE};
        a[0].u.tensor = a[1].u.tensor = tx;
        a[1].u.tensor.data = (float *)kiln_buffer_data(b) + ya;
        long before = nalloc;
        OK(kiln_launch(k, NULL, a, 3, &g));
        if ((nalloc == before) != turn[t].quick)
            fail_msg("turn %zu took the %s way", t, turn[t].quick ? "long" : "short");
        /* overlapping arrays are read and written in an order of the kernel's: no values then */
        bool apart = ya >= xa + 1024 || ya == xa;
        for (size_t i = 0; i < N; i++)
            want[i] = i < 1024 && (int64_t)i < turn[t].n
                          ? x[xa + i] * (float)turn[t].s + (ya == xa ? x[xa + i] : 1)
                          : -1;
        static float got[N];
        OK(kiln_buffer_download(b, ya * sizeof(float), got, 1024 * sizeof(float), NULL, &g));
        for (int64_t i = 0; i < turn[t].n && apart; i++)
            if (got[i] != want[i])
                fail_msg("turn %zu: element %d is %g, not %g", t, (int)i, (double)got[i],
                         (double)want[i]);
    }
    kiln_buffer_free(b);
    kiln_module_free(m);
    kiln_context_free(c);
}

/* ---- errors ---- */

static void blame(void **state)
{
    static struct on_device v;
    (void)state;
    kiln_context *c = cuda();
    kiln_module *m = compile(c, add_text);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    kiln_diags *g = NULL;
    to_device(c, &v, 100);
    OK(kiln_launch(k, NULL, v.d.arg, 3, &g));
    OK(kiln_sync(c, &g));
    /* the buffer is shorter than the caller says */
    v.d.n[0] = 3000;
    for (int i = 0; i < 3; i++)
        v.d.arg[i].u.tensor.size_bytes = 0;
    OK(kiln_launch(k, NULL, v.d.arg, 3, &g));
    assert_int_equal(kiln_sync(c, &g), KILN_E_DEVICE);
    assert_non_null(strstr(kiln_diags_at(g, 0)->text, "n=3000"));
    assert_non_null(strstr(kiln_diags_at(g, 0)->text, "ILLEGAL_ADDRESS"));
    said(g, "K1815", "it was this launch:\n  add, grid 12x1x1", "context is lost");
    /* everything after fails, without harm */
    assert_int_equal(kiln_launch(k, NULL, v.d.arg, 3, &g), KILN_E_DEVICE);
    said(g, "K1815", "add", NULL);
    kiln_module_free(m); /* what is remembered loses its arguments */
    assert_int_equal(kiln_sync(c, &g), KILN_E_DEVICE);
    assert_null(strstr(kiln_diags_at(g, 0)->text, "n=3000"));
    said(g, "K1815", "add, grid 12x1x1", NULL);
    hook.set(1, 12080, 90, 256 * MIB); /* so that all can be given back */
    drop_device(&v);
    kiln_context_free(c);
    /* modules of a lost context cannot be unloaded; the fake driver counts them */
    kiln_context *other = interp();
    kiln_context_free(other);
}

static void out_of_memory(void **state)
{
    static struct data d;
    (void)state;
    hook.set(1, 12080, 90, 8192);
    kiln_context *c = cuda();
    kiln_module *m = compile(c, add_text);
    kiln_buffer *b = NULL;
    kiln_diags *g = NULL;
    assert_int_equal(kiln_buffer_create(c, 9000, &b), KILN_E_NOMEM);
    assert_null(b);
    assert_int_equal(kiln_buffer_alloc(c, 9000, &b, &g), KILN_E_NOMEM);
    assert_null(b);
    said(g, "K1814", "cuMemAlloc", "are free on Fake GPU 0");
    fill(&d, MAXN);
    assert_int_equal(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, &g), KILN_E_NOMEM);
    said(g, "K1814", "cuMemAlloc", "are free on Fake GPU 0");
    untouched(&d);
    fill(&d, 100); /* goes on */
    OK(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, &g));
    right(&d);
    kiln_module_free(m);
    kiln_context_free(c);
}

static void old_driver(void **state)
{
    static struct data d;
    (void)state;
    hook.set(1, 11040, 90, MIB);
    kiln_context *c = cuda();
    kiln_module *m = compile(c, add_text);
    kiln_diags *g = NULL;
    fill(&d, 10);
    assert_int_equal(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, &g),
                     KILN_E_UNSUPPORTED);
    said(g, "K1812", "(CUDA 11.4) supports PTX 7.4", "needs 7.8 for sm_90");
    kiln_module_free(m);
    kiln_context_free(c);
    /* the driver's own word */
    hook.set(1, 12080, 90, MIB);
    c = cuda();
    m = compile(c, add_text);
    static const struct {
        int cu;
        const char *code, *word;
        kiln_status s;
    } bad[] = {{222, "K1812", "newer NVIDIA driver", KILN_E_UNSUPPORTED},
               {218, "K1813", "refuses kernel `add`", KILN_E_DEVICE},
               {209, "K1813", "is for sm_90", KILN_E_UNSUPPORTED},
               {221, "K1813", "libnvidia-ptxjitcompiler", KILN_E_DEVICE}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hook.inject("cuLinkAddData_v2", 1, bad[i].cu);
        assert_int_equal(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, &g), bad[i].s);
        said(g, bad[i].code, bad[i].word, NULL);
        untouched(&d);
    }
    OK(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, &g));
    right(&d);
    kiln_module_free(m);
    kiln_context_free(c);
}

/* One program that uses everything; the status of the first failure. */
static kiln_status everything(const kiln_options *o, bool *same)
{
    static struct data d;
    kiln_context *c = NULL;
    kiln_module *m = NULL, *m2 = NULL;
    kiln_buffer *b = NULL, *b2 = NULL;
    kiln_stream *st = NULL;
    kiln_event *e[2] = {NULL, NULL};
    void *pinned = NULL;
    double ms;
    kiln_status s = kl_context_create(o, fake, &c, NULL);
    fill(&d, 300);
    if (!s)
        s = kiln_compile(c, "t", add_text, strlen(add_text), &m, NULL);
    if (!s)
        s = kiln_compile(c, "t", add_text, strlen(add_text), &m2, NULL);
    if (!s) {
        kiln_kernel *k[2] = {kiln_module_kernel(m, "add"), kiln_module_kernel(m2, "add")};
        const kiln_arg *args[2] = {d.arg, d.arg};
        const size_t n[2] = {3, 3};
        s = kiln_specialize_many(k, args, n, 2, NULL, NULL);
    }
    if (!s)
        s = kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, NULL);
    if (!s)
        s = kiln_stream_create(c, &st, NULL);
    for (int i = 0; i < 2 && !s; i++)
        s = kiln_event_create(c, &e[i], NULL);
    if (!s)
        s = kiln_buffer_create(c, 4000, &b);
    if (!s)
        s = kiln_buffer_create(c, 4000, &b2);
    if (!s)
        s = kiln_host_alloc(c, 4000, &pinned, NULL);
    if (!s) {
        memcpy(pinned, d.a, 4000);
        s = kiln_event_record(e[0], st, NULL);
    }
    if (!s)
        s = kiln_buffer_fill(b2, 0, 4000, 0, st, NULL);
    if (!s)
        s = kiln_buffer_upload(b, 0, pinned, 4000, st, NULL);
    kiln_arg a[3];
    memcpy(a, d.arg, sizeof a);
    for (int i = 0; i < 3; i++) {
        a[i].u.tensor.data = kiln_buffer_data(i ? b : b2);
        a[i].u.tensor.flags = KILN_TENSOR_DEVICE;
    }
    for (int i = 0; i < 2 && !s; i++)
        s = kiln_launch(kiln_module_kernel(m, "add"), st, a, 3, NULL);
    if (!s)
        s = kiln_event_record(e[1], st, NULL);
    if (!s)
        s = kiln_event_wait(e[1], NULL, NULL);
    if (!s)
        s = kiln_event_sync(e[1], NULL);
    if (!s)
        s = kiln_event_elapsed(e[0], e[1], &ms, NULL);
    if (!s)
        s = kiln_buffer_copy(b, 0, b2, 0, 1200, st, NULL);
    if (!s)
        s = kiln_buffer_download(b, 0, pinned, 4000, st, NULL);
    if (!s)
        s = kiln_stream_sync(st, NULL);
    if (!s)
        s = kiln_sync(c, NULL);
    *same = !s;
    for (int i = 0; i < MAXN && !s; i++)
        *same &= ((float *)pinned)[i] == (i < 300 ? 2 * d.a[i] : d.a[i]) &&
                 d.y[i] == (i < 300 ? d.a[i] + d.b[i] : -77);
    if (pinned)
        kiln_host_free(c, pinned);
    kiln_event_free(e[0]);
    kiln_event_free(e[1]);
    kiln_stream_free(st);
    kiln_buffer_free(b);
    kiln_buffer_free(b2);
    kiln_module_free(m);
    kiln_module_free(m2);
    kiln_context_free(c);
    return s;
}

/* Every call of the driver fails in turn. */
static void each_call_fails(void **state)
{
    static const int codes[] = {2, 999};
    (void)state;
    kiln_options o = KILN_OPTIONS_INIT;
    bool same;
    o.device = KILN_DEVICE_CUDA;
    assert_int_equal(everything(&o, &same), KILN_OK);
    assert_true(same);
    for (int k = 0; k < 2; k++)
        for (long n = 1;; n++) {
            long before = hook.calls(NULL);
            hook.inject("*", n, codes[k]);
            kiln_status s = everything(&o, &same);
            bool reached = hook.calls(NULL) - before >= n;
            hook.inject(NULL, 0, 0);
            assert_int_equal(hook.depth(), 0);
            if (!reached) {
                assert_int_equal(s, KILN_OK);
                assert_true(n > 40);
                break;
            }
            /* a failing attribute that is not needed, or a free, is no failure */
            if (s)
                assert_true(s == KILN_E_DEVICE || s == KILN_E_NOMEM);
            else
                assert_true(same);
            if (hook.live()) { /* a call that gives something back failed */
                assert_int_equal(hook.live(), 1);
                hook.forget();
            }
        }
}

/* ---- the cache ---- */

static kiln_cache_state state_of(kiln_context *c, kiln_status *s)
{
    static struct data d;
    kiln_spec *sp = NULL;
    kiln_diags *g = NULL;
    kiln_module *m = compile(c, add_text);
    fill(&d, 77);
    *s = kiln_specialize(kiln_module_kernel(m, "add"), d.arg, 3, &sp, &g);
    ok(*s, g);
    const kiln_spec_info *i = kiln_spec_get_info(sp);
    kiln_cache_state st = i->cache;
    assert_int_equal(i->device, KILN_DEVICE_CUDA);
    assert_true(i->registers > 0 && i->cta_threads > 0 && i->ctas == 1 && i->ctas_per_sm > 0);
    g = NULL;
    OK(kiln_launch(kiln_module_kernel(m, "add"), NULL, d.arg, 3, &g));
    right(&d);
    kiln_spec_free(sp);
    kiln_module_free(m);
    return st;
}

static void cache(void **state)
{
    static const struct {
        int driver, cc;
        kiln_cache_state want;
    } turn[] = {{12080, 90, KILN_CACHE_MISS}, {12080, 90, KILN_CACHE_HIT},
                {12090, 90, KILN_CACHE_MISS}, {12080, 89, KILN_CACHE_MISS},
                {12080, 90, KILN_CACHE_HIT}};
    char dir[100];
    kiln_status s;
    (void)state;
    snprintf(dir, sizeof dir, "%s/cubins", root);
    for (size_t i = 0; i < sizeof turn / sizeof *turn; i++) {
        hook.set(1, turn[i].driver, turn[i].cc, MIB);
        kiln_context *c = cuda_at(0, dir);
        long links = hook.calls("cuLinkCreate_v2");
        assert_int_equal(state_of(c, &s), turn[i].want);
        assert_int_equal(hook.calls("cuLinkCreate_v2") - links, turn[i].want == KILN_CACHE_MISS);
        kiln_context_free(c);
    }
    /* a cubin that the driver does not take any more is made anew */
    kiln_context *c = cuda_at(0, dir);
    hook.inject("cuModuleLoadDataEx", 1, 200);
    state_of(c, &s);
    kiln_context_free(c);
}

/* ---- many kernels at once ---- */

/* One run of the assembler for all; what is the same is made once; the module goes with the last
 * kernel.  Where the whole is refused, each is made by itself. */
static void together(void **state)
{
    enum { N = 6 };
    static struct data d;
    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        kiln_context *c = cuda();
        kiln_module *m[N];
        kiln_kernel *k[N];
        const kiln_arg *args[N];
        size_t n[N];
        kiln_spec *spec[N];
        kiln_diags *g = NULL;
        fill(&d, 300);
        for (int i = 0; i < N; i++) { /* kernels of four modules, one of them three times */
            m[i] = i < 3 || i == 4 ? compile(c, add_text) : m[0];
            k[i] = kiln_module_kernel(m[i], "add");
            args[i] = d.arg;
            n[i] = 3;
        }
        long links = hook.calls("cuLinkCreate_v2"), loads = hook.calls("cuModuleLoadDataEx");
        if (turn == 1)
            hook.inject("cuLinkComplete", 1, 218);
        if (turn == 2)
            hook.inject("cuModuleGetFunction", 3, 500);
        OK(kiln_specialize_many(k, args, n, N, spec, &g));
        assert_int_equal(hook.calls("cuLinkCreate_v2") - links, turn ? 5 : 1);
        assert_int_equal(hook.calls("cuModuleLoadDataEx") - loads, turn ? turn + 3 : 1);
        for (int i = 0; i < N; i++) {
            const kiln_spec_info *s = kiln_spec_get_info(spec[i]);
            assert_true(s->registers > 0 && s->ctas_per_sm > 0);
            kiln_spec_free(spec[i]);
        }
        links = hook.calls("cuLinkCreate_v2");
        for (int i = 0; i < N; i++) {
            fill(&d, 300);
            OK(kiln_launch(k[i], NULL, d.arg, 3, &g));
            right(&d);
            if (i == 1 || i == 2) {
                kiln_module_free(m[i]); /* the others stay */
            }
        }
        assert_int_equal(hook.calls("cuLinkCreate_v2"), links);
        kiln_module_free(m[4]);
        kiln_module_free(m[0]);
        kiln_context_free(c);
    }
}

/* Only fast forms make results the device's own: exact functions and divisions begin with
 * approximate instructions too, and end with the right bits. */
static void approximate(void **state)
{
    static const char text[] =
        "kernel f(i64 n, type T = f32, T y[n], const T x[n], constexpr i64 B = 64,\n"
        "         constexpr bool FAST = false) grid(cdiv(n, B)) math(fast, FAST)\n"
        "{\n"
        "    i64 i = program_id(0) * B;\n"
        "    y[i:B] = (T)(1 / (1 + exp(x[i:B])));\n"
        "}\n";
    static struct data d;
    (void)state;
    kiln_context *c = cuda();
    kiln_module *m = compile(c, text);
    kiln_diags *g = NULL;
    for (int fast = 0; fast < 2; fast++) {
        kiln_spec *sp;
        fill(&d, 300);
        d.arg[1].name = "x";
        d.arg[2] = (kiln_arg){.name = "FAST", .kind = KILN_ARG_INT, .u = {.i = fast}};
        OK(kiln_specialize(kiln_module_at(m, 0), d.arg, 3, &sp, &g));
        assert_int_equal(kiln_spec_get_info(sp)->approximate, fast);
        kiln_spec_free(sp);
    }
    kiln_module_free(m);
    kiln_context_free(c);
}

/* ---- initial values ---- */

static const char init_text[] =
    "kernel count(i64 n, i64 m, type T, i64 s0, i64 s1, T y[n][m] stride(s0, s1) = 3,\n"
    "             const T x[n]) grid(n)\n"
    "{\n"
    "    i64 i = program_id(0);\n"
    "    y[i][0] = (T)(y[i][0] + x[i]);\n"
    "}\n";

static void initial_values(void **state)
{
    enum { N = 5, M = 3, ROOM = 64 };
    static const struct {
        kiln_dtype t;
        int64_t s0, s1, at;
    } turn[] = {{KILN_I32, 3, 1, 0}, {KILN_I64, 3, 1, 0},  {KILN_F64, 4, 1, 2}, {KILN_I64, 7, 2, 1},
                {KILN_U8, 3, 1, 1},  {KILN_BF16, 4, 1, 3},  {KILN_F32, 1, 5, 0},
                {KILN_I32, -3, 1, 20}, {KILN_F16, 3, 1, 0}, {KILN_I32, -8, -2, 60}};
    (void)state;
    kiln_context *c = cuda(), *h = interp();
    for (size_t k = 0; k < sizeof turn / sizeof *turn; k++) {
        size_t size = kiln_dtype_size(turn[k].t);
        int64_t shape[2] = {N, M}, strides[2] = {turn[k].s0, turn[k].s1};
        unsigned char out[2][ROOM * 8], x[N * 8] = {0};
        for (int dev = 0; dev < 2; dev++) {
            kiln_context *ctx = dev ? c : h;
            kiln_module *m = compile(ctx, init_text);
            kiln_diags *g = NULL;
            kiln_buffer *by, *bx;
            assert_int_equal(kiln_buffer_create(ctx, sizeof out[0], &by), KILN_OK);
            assert_int_equal(kiln_buffer_create(ctx, sizeof x, &bx), KILN_OK);
            OK(kiln_buffer_fill(by, 0, sizeof out[0], 0x11, NULL, &g));
            OK(kiln_buffer_upload(bx, 0, x, sizeof x, NULL, &g));
            kiln_arg a[2] = {{.name = "y", .kind = KILN_ARG_TENSOR},
                             {.name = "x", .kind = KILN_ARG_TENSOR}};
            a[0].u.tensor =
                (kiln_tensor){.data = (char *)kiln_buffer_data(by) + (size_t)turn[k].at * size,
                              .dtype = turn[k].t,
                              .ndim = 2,
                              .shape = shape,
                              .strides = strides,
                              .flags = KILN_TENSOR_DEVICE};
            a[1].u.tensor = (kiln_tensor){.data = kiln_buffer_data(bx),
                                          .dtype = turn[k].t,
                                          .ndim = 1,
                                          .shape = shape,
                                          .flags = KILN_TENSOR_DEVICE};
            for (int i = 0; i < 2; i++) /* each launch begins with the value */
                OK(kiln_launch(kiln_module_at(m, 0), NULL, a, 2, &g));
            OK(kiln_buffer_download(by, 0, out[dev], sizeof out[0], NULL, &g));
            kiln_buffer_free(by);
            kiln_buffer_free(bx);
            kiln_module_free(m);
        }
        if (memcmp(out[0], out[1], sizeof out[0]) != 0)
            fail_msg("turn %zu differs", k);
    }
    kiln_context_free(h);
    kiln_context_free(c);
}

/* ---- streams, threads, devices ---- */

static void streams(void **state)
{
    static struct on_device v;
    (void)state;
    kiln_context *c = cuda(), *other = cuda();
    kiln_module *m = compile(c, add_text);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    kiln_stream *s[3], *foreign;
    kiln_event *e;
    kiln_diags *g = NULL;
    float *pinned;
    to_device(c, &v, 600);
    for (int i = 0; i < 2; i++)
        OK(kiln_stream_create(c, &s[i], &g));
    OK(kiln_stream_from_cuda(c, kiln_stream_cuda(s[1]), &s[2], &g));
    OK(kiln_event_create(c, &e, &g));
    void *p;
    OK(kiln_host_alloc(c, sizeof v.d.y, &p, &g));
    pinned = p;
    for (int i = 0; i < MAXN; i++)
        pinned[i] = (float)i + 0.5f;
    /* upload on one stream, kernel on the other when the event has come */
    OK(kiln_buffer_upload(v.buf[1], 0, pinned, sizeof v.d.y, s[0], &g));
    OK(kiln_event_record(e, s[0], &g));
    OK(kiln_event_wait(e, s[1], &g));
    OK(kiln_launch(k, s[1], v.d.arg, 3, &g));
    OK(kiln_buffer_download(v.buf[0], 0, v.d.y, sizeof v.d.y, s[2], &g));
    assert_true(v.d.y[0] == -77); /* not yet */
    OK(kiln_stream_sync(s[2], &g));
    for (int i = 0; i < MAXN; i++)
        assert_true(v.d.y[i] == (i < 600 ? pinned[i] + v.d.b[i] : -77));
    OK(kiln_stream_create(other, &foreign, &g));
    assert_int_equal(kiln_launch(k, foreign, v.d.arg, 3, &g), KILN_E_ARG);
    said(g, "K1809", "another context", NULL);
    assert_int_equal(kiln_buffer_fill(v.buf[0], 0, 4, 0, foreign, &g), KILN_E_ARG);
    said(g, "K1809", "different contexts", NULL);
    assert_int_equal(kiln_event_record(e, foreign, &g), KILN_E_ARG);
    said(g, "K1809", "different contexts", NULL);
    assert_int_equal(kiln_buffer_upload(v.buf[0], 4, pinned, sizeof v.d.y, NULL, &g), KILN_E_ARG);
    said(g, "K1809", "bytes 4 to 4004 of a buffer of 4000", NULL);
    kiln_host_free(c, p);
    kiln_event_free(e);
    for (int i = 0; i < 3; i++)
        kiln_stream_free(s[i]);
    kiln_stream_free(foreign);
    drop_device(&v);
    kiln_module_free(m);
    kiln_context_free(c);
    kiln_context_free(other);
}

struct worker {
    kiln_context *ctx;
    kiln_kernel *k;
    pthread_t id;
    bool right;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    kiln_stream *s = NULL;
    kiln_buffer *b[3] = {NULL};
    float in[500], out[500];
    w->right = kiln_stream_create(w->ctx, &s, NULL) == KILN_OK;
    for (int i = 0; i < 500; i++)
        in[i] = (float)i;
    for (int i = 0; i < 3; i++)
        w->right &= kiln_buffer_create(w->ctx, sizeof in, &b[i]) == KILN_OK &&
                    kiln_buffer_upload(b[i], 0, in, sizeof in, s, NULL) == KILN_OK;
    for (int turn = 0; turn < 20 && w->right; turn++) {
        int64_t n[1] = {100 + turn % 7 * 50};
        static const char *const name[] = {"y", "a", "b"};
        kiln_arg a[3] = {{.kind = KILN_ARG_TENSOR}, {.kind = KILN_ARG_TENSOR},
                         {.kind = KILN_ARG_TENSOR}};
        for (int i = 0; i < 3; i++) {
            a[i].name = name[i];
            a[i].u.tensor = (kiln_tensor){.data = kiln_buffer_data(b[i]),
                                          .dtype = KILN_F32,
                                          .ndim = 1,
                                          .shape = n,
                                          .flags = KILN_TENSOR_DEVICE};
        }
        w->right &= kiln_launch(w->k, s, a, 3, NULL) == KILN_OK &&
                    kiln_buffer_download(b[0], 0, out, sizeof out, s, NULL) == KILN_OK &&
                    kiln_stream_sync(s, NULL) == KILN_OK;
        for (int i = 0; i < n[0]; i++)
            w->right &= out[i] == 2 * in[i];
    }
    for (int i = 0; i < 3; i++)
        kiln_buffer_free(b[i]);
    kiln_stream_free(s);
    return NULL;
}

static void threads(void **state)
{
    enum { N = 4 };
    (void)state;
    hook.set(2, 12080, 90, 16 * MIB);
    kiln_context *c[2] = {cuda_at(0, NULL), cuda_at(1, NULL)};
    kiln_module *m[2] = {compile(c[0], add_text), compile(c[1], add_text)};
    struct worker w[N];
    for (int i = 0; i < N; i++) {
        w[i] = (struct worker){.ctx = c[i % 2], .k = kiln_module_kernel(m[i % 2], "add")};
        assert_int_equal(pthread_create(&w[i].id, NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(w[i].id, NULL);
        assert_true(w[i].right);
    }
    for (int i = 0; i < 2; i++) {
        kiln_module_free(m[i]);
        kiln_context_free(c[i]);
    }
}

/* An array in the memory of another device is refused before it can end the context. */
static void wrong_device(void **state)
{
    static struct on_device v[2];
    (void)state;
    hook.set(2, 12080, 90, 16 * MIB);
    kiln_context *c[2] = {cuda_at(0, NULL), cuda_at(1, NULL)};
    kiln_module *m = compile(c[1], add_text);
    kiln_kernel *k = kiln_module_kernel(m, "add");
    kiln_diags *g = NULL;
    for (int i = 0; i < 2; i++)
        to_device(c[i], &v[i], 400);
    void *own = v[1].d.arg[2].u.tensor.data;
    for (int turn = 0; turn < 2; turn++) {
        v[1].d.arg[2].u.tensor.data = v[0].d.arg[2].u.tensor.data;
        assert_int_equal(kiln_launch(k, NULL, v[1].d.arg, 3, &g), KILN_E_ARG);
        said(g, "K1809", "`b` lies in memory of CUDA device 0", "context of device 1");
        v[1].d.arg[2].u.tensor.data = own;
        if (turn)
            OK(kiln_launch(k, NULL, v[1].d.arg, 3, &g));
    }
    from_device(&v[1]);
    right(&v[1].d);
    drop_device(&v[0]);
    drop_device(&v[1]);
    kiln_module_free(m);
    kiln_context_free(c[0]);
    kiln_context_free(c[1]);
}

/* ---- the same program without a GPU ---- */

static void everywhere(void **state)
{
    static const kiln_device device[] = {KILN_DEVICE_INTERP, KILN_DEVICE_SIM};
    (void)state;
    for (int i = 0; i < 2; i++) {
        kiln_options o = KILN_OPTIONS_INIT;
        bool same;
        o.device = device[i];
        assert_int_equal(everything(&o, &same), KILN_OK);
        assert_true(same);
    }
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *c;
    kiln_diags *g = NULL;
    o.device = KILN_DEVICE_SIM;
    o.arch = "sm_80";
    OK(kiln_context_create(&o, &c, &g));
    assert_string_equal(kiln_context_device_info(c)->arch, "sm_80");
    kiln_context_free(c);
    o.arch = "sm_81";
    assert_int_equal(kiln_context_create(&o, &c, &g), KILN_E_ARG);
    said(g, "K1809", "no target `sm_81`", NULL);
    o.device = KILN_DEVICE_CPU;
    o.arch = "sm_80";
    assert_int_equal(kiln_context_create(&o, &c, &g), KILN_E_ARG);
    said(g, "K1809", "arch is for SIM", NULL);
}

/* ---- host memory runs out ---- */

static long left;
static void *limited(void *user, void *p, size_t old, size_t size)
{
    (void)user, (void)old;
    if (!size) {
        free(p);
        return NULL;
    }
    return left-- > 0 ? realloc(p, size) : NULL;
}

static void each_allocation_fails(void **state)
{
    (void)state;
    kiln_options o = KILN_OPTIONS_INIT;
    o.device = KILN_DEVICE_CUDA;
    o.alloc = limited;
    for (long n = 0;; n += n < 60 ? 1 : 7) {
        bool same;
        left = n;
        kiln_status s = everything(&o, &same);
        assert_int_equal(hook.depth(), 0);
        assert_int_equal(hook.live(), 0);
        if (s == KILN_OK && left > 0) {
            assert_true(same);
            assert_true(n > 25);
            break;
        }
        if (s)
            assert_int_equal(s, KILN_E_NOMEM);
    }
}

/* ---- assert and print ---- */

struct heard {
    int n;
    int64_t sum; /* of the numbers printed */
};

static void hear(void *user, const char *text, size_t n, const int64_t program[3])
{
    struct heard *h = user;
    assert_int_equal(strlen(text), n);
    assert_int_equal(atoi(text), program[0] * 10);
    h->n++;
    h->sum += atoi(text);
}

/* Launches with arrays on the device only queue: what they recorded is told by what waits. */
static void told_at_sync(void **state)
{
    static const char text[] = "kernel k(i64 n, i64 most, f32 y[n]) grid(n)\n"
                               "{\n"
                               "    i64 p = program_id(0);\n"
                               "    print(\"{}\", p * 10);\n"
                               "    assert(p < most, \"few programs\");\n"
                               "    y[p] = 1;\n"
                               "}\n";
    struct heard h = {0, 0};
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *c = NULL;
    kiln_diags *g = NULL;
    kiln_stream *st = NULL;
    kiln_buffer *b;
    (void)state;
    o.device = KILN_DEVICE_CUDA;
    o.print = hear;
    o.print_user = &h;
    OK(kl_context_create(&o, fake, &c, &g));
    kiln_module *m = compile(c, text);
    OK(kiln_stream_create(c, &st, &g));
    OK(kiln_buffer_alloc(c, 256, &b, &g));
    int64_t five = 5;
    kiln_arg a[] = {{.name = "y", .kind = KILN_ARG_TENSOR},
                    {.name = "most", .kind = KILN_ARG_INT, .u.i = 3}};
    a[0].u.tensor = (kiln_tensor){kiln_buffer_data(b), KILN_F32, 1, &five, NULL, 0, KILN_TENSOR_DEVICE};
    kiln_kernel *k = kiln_module_at(m, 0);
    for (int turn = 0; turn < 3; turn++) { /* the short way, too; through both that wait */
        h = (struct heard){0, 0};
        OK(kiln_launch(k, st, a, 2, &g));
        OK(kiln_launch(k, st, a, 2, &g));
        assert_int_equal(h.n, 0);
        assert_int_equal(turn == 1 ? kiln_stream_sync(st, &g) : kiln_sync(c, &g), KILN_E_BOUNDS);
        assert_int_equal(h.n, 10);
        assert_int_equal(h.sum, 200);
        assert_int_equal(kiln_diags_at(g, 0)->place.line, 5);
        assert_string_equal(kiln_diags_at(g, 0)->notes[1].text,
                            "4 programs failed; this one was the first to record it");
        said(g, "K1702", "assertion failed: few programs", NULL);
        g = NULL;
        OK(kiln_sync(c, &g)); /* said once */
    }
    a[1].u.i = 5; /* holds */
    OK(kiln_launch(k, st, a, 2, &g));
    OK(kiln_stream_sync(st, &g));
    assert_int_equal(h.n, 15);
    uint64_t some[2], total;
    OK(kiln_memory_info(c, &some[0], &total, &g));
    assert_true(total == 256 * MIB && some[0] < total);
    kiln_buffer *more;
    OK(kiln_buffer_alloc(c, 1024, &more, &g));
    OK(kiln_memory_info(c, &some[1], NULL, &g));
    assert_true(some[1] + 1024 <= some[0]);
    kiln_buffer_free(more);
    hook.inject("cuMemGetInfo_v2", 1, 1);
    assert_int_equal(kiln_memory_info(c, &some[1], NULL, &g), KILN_E_DEVICE);
    said(g, "K1816", "cuMemGetInfo", NULL);
    g = NULL;
    float host[5] = {0}; /* a launch with host arrays waits, and tells by itself */
    a[0].u.tensor.data = host;
    a[0].u.tensor.flags = 0;
    OK(kiln_launch(k, NULL, a, 2, &g));
    assert_int_equal(h.n, 20);
    a[1].u.i = 4;
    assert_int_equal(kiln_launch(k, NULL, a, 2, &g), KILN_E_BOUNDS);
    said(g, "K1702", "assertion failed: few programs", NULL);
    assert_true(host[3] == 1 && host[4] == 1);
    hook.inject("cuMemAlloc_v2", 1, 2);
    kiln_module *m2 = compile(c, text); /* no memory for what it records: nothing runs */
    a[0].u.tensor.data = kiln_buffer_data(b);
    a[0].u.tensor.flags = KILN_TENSOR_DEVICE;
    assert_int_equal(kiln_launch(kiln_module_at(m2, 0), st, a, 2, &g), KILN_E_NOMEM);
    said(g, "K1814", "cuMemAlloc", NULL);
    kiln_module_free(m2);
    kiln_buffer_free(b);
    kiln_stream_free(st);
    kiln_module_free(m);
    g = NULL;
    OK(kiln_sync(c, &g)); /* a kernel that is gone has nothing to tell */
    kiln_context_free(c);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fresh, clean)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(no_device),     T(info),   T(host_arrays),    T(device_arrays), T(capture),
        T(short_way),     T(cache),  T(initial_values), T(streams),       T(threads),     T(together),
        T(wrong_device), T(approximate),
        T(out_of_memory), T(everywhere), T(old_driver),  T(each_allocation_fails),
        T(each_call_fails), T(told_at_sync), cmocka_unit_test_setup(blame, fresh),
    };
    return cmocka_run_group_tests(tests, find_fake, teardown);
}
