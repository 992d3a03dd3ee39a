/* oom.c - every allocation fails in turn.
 *
 * Each scenario runs again and again, the first time with the first allocation failing, then
 * with the second, until a run needs no more.  Each failure must come out as KILN_E_NOMEM (or be
 * absorbed, where memory only helps), with nothing leaked and nothing half done that a later,
 * successful run would trip over.  Last line: N passed, N failed, N skipped. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "explain.h"
#include "kiln.h"
#include "tool.h"

/* ---- an allocator that counts ---- */

struct counter {
    pthread_mutex_t lock;
    long calls;   /* allocations so far */
    long fail_at; /* this one fails (from 1); 0: none */
    bool sticky;  /* and all after it */
    long blocks;
    size_t bytes;
    bool wrong; /* a block was freed or grown with another size than it had */
};

struct head { /* in front of each block: its size */
    size_t size, pad;
};

static void *counting(void *user, void *ptr, size_t old, size_t size)
{
    struct counter *c = user;
    struct head *h = ptr ? (struct head *)ptr - 1 : NULL;
    pthread_mutex_lock(&c->lock);
    bool fails = false;
    if (h && h->size != old)
        c->wrong = true;
    if (size) {
        c->calls++;
        fails = c->fail_at && (c->calls == c->fail_at || (c->sticky && c->calls > c->fail_at));
    }
    struct head *n = NULL;
    if (!fails && size) {
        n = realloc(h, sizeof *h + size);
        if (n) {
            c->blocks += !h;
            c->bytes += size - (h ? old : 0);
            n->size = size;
        }
    } else if (!size && h) {
        c->blocks--;
        c->bytes -= old;
        free(h);
    }
    pthread_mutex_unlock(&c->lock);
    return n ? n + 1 : NULL;
}

/* ---- scenarios ---- */

static const char text[] =
    "#include <act.kiln>\n"
    "f32 add1(f32 a, f32 b)\n{\n    return a + b;\n}\n"
    "kernel softmax(i64 rows, i64 cols, f32 y[rows][cols], const f32 x[rows][cols],\n"
    "               constexpr i64 BLOCK = pow2ceil(cols))\n"
    "    grid(rows)\n"
    "{\n"
    "    i64 r = program_id(0);\n"
    "    auto v = load(x[r][0:BLOCK], -inf);\n"
    "    auto e = exp(v - max(v));\n"
    "    y[r][0:BLOCK] = e / reduce(e, add1, .commutative = true);\n"
    "}\n"
    "kernel act(i64 n, f32 y[n] = 0, const f32 x[n], optional const f32 bias[n],\n"
    "           constexpr i64 B = 64)\n"
    "    grid(cdiv(n, B))\n"
    "{\n"
    "    for (i64 i = program_id(0) * B; i < n; i += num_programs(0) * B) {\n"
    "        auto v = x[i:B];\n"
    "        if (given(bias))\n"
    "            v += bias[i:B];\n"
    "        y[i:B] += gelu(v);\n"
    "    }\n"
    "}\n";
static const char bad_text[] =
    "kernel k(i64 n, f32 y[n]) grid(n)\n{\n    y[0] = zz;\n    yy[0] = 1 +;\n}\n";

static char root[64];
static const char *cc;
static float x[3][37], y[3][37];

enum { COLS = 37, ROWS = 3 };

struct args {
    kiln_arg a[3];
    int64_t shape[2];
};

static void make_args(struct args *g, int rank)
{
    static const char *const names[] = {"x", "y", "bias"};
    memset(g, 0, sizeof *g);
    g->shape[0] = rank == 2 ? ROWS : COLS;
    g->shape[1] = COLS;
    for (int i = 0; i < 3; i++) {
        g->a[i].name = names[i];
        g->a[i].kind = KILN_ARG_TENSOR;
        g->a[i].u.tensor =
            (kiln_tensor){i == 1 ? (void *)y : (void *)x, KILN_F32, rank, g->shape, NULL, 0, 0};
    }
}

static bool right(void)
{
    for (int r = 0; r < ROWS; r++) {
        float sum = 0;
        for (int c = 0; c < COLS; c++)
            sum += y[r][c];
        if (!(sum > 0.999f && sum < 1.001f))
            return false;
    }
    return true;
}

/* What a scenario returns beside a status: everything worked, but the result is wrong. */
enum { WRONG = 77 };

static kiln_status only_compile(kiln_context *ctx, kiln_diags **d)
{
    kiln_module *m = NULL;
    kiln_status s = kiln_compile(ctx, "t.kiln", text, sizeof text - 1, &m, d);
    kiln_module_free(m);
    return s;
}

static kiln_status compile_bad(kiln_context *ctx, kiln_diags **d)
{
    kiln_module *m = NULL;
    kiln_status s = kiln_compile(ctx, "t.kiln", bad_text, sizeof bad_text - 1, &m, d);
    if (s == KILN_E_COMPILE && kiln_diags_render(*d, 1, NULL, 0) > 0)
        return KILN_OK;
    return s == KILN_E_COMPILE ? KILN_E_NOMEM : s; /* the text needs memory too */
}

static kiln_status format_source(kiln_context *ctx, kiln_diags **d)
{
    char *out = NULL;
    size_t n = 0;
    kiln_status s = kl_tool_format(ctx, "t.kiln", text, sizeof text - 1, &out, &n, d);
    bool same = !s && n == sizeof text - 1 && memcmp(out, text, n) == 0; /* it has the form */
    kl_tool_free(ctx, out);
    return s ? s : same ? KILN_OK : WRONG;
}

static kiln_status launch_both(kiln_context *ctx, kiln_diags **d)
{
    kiln_module *m = NULL;
    struct args g;
    kiln_status s = kiln_compile(ctx, "t.kiln", text, sizeof text - 1, &m, NULL);
    for (int times = 0; times < 2 && !s; times++) {
        make_args(&g, 1);
        kiln_diags_free(*d);
        s = kiln_launch(kiln_module_kernel(m, "act"), NULL, g.a, 3, d);
        kiln_diags_free(*d);
        *d = NULL;
        memset(y, 0, sizeof y);
        make_args(&g, 2);
        if (!s)
            s = kiln_launch(kiln_module_kernel(m, "softmax"), NULL, g.a, 2, d);
        if (!s && !right())
            s = (kiln_status)WRONG;
    }
    kiln_module_free(m);
    return s;
}

static kiln_status specialize(kiln_context *ctx, kiln_diags **d)
{
    kiln_module *m = NULL;
    struct args g, h;
    kiln_spec *sp[3] = {0};
    make_args(&g, 1);
    make_args(&h, 2);
    kiln_status s = kiln_compile(ctx, "t.kiln", text, sizeof text - 1, &m, NULL);
    if (!s) {
        kiln_kernel *k[3] = {kiln_module_kernel(m, "act"), kiln_module_kernel(m, "softmax"),
                             kiln_module_kernel(m, "act")};
        const kiln_arg *a[3] = {g.a, h.a, g.a};
        size_t n[3] = {2, 2, 3};
        s = kiln_specialize_many(k, a, n, 3, sp, d);
        for (int i = 0; i < 3; i++)
            if (s ? sp[i] != NULL : sp[i] == NULL)
                s = (kiln_status)WRONG;
    }
    for (int i = 0; i < 3; i++)
        kiln_spec_free(sp[i]);
    kiln_module_free(m);
    return s;
}

static kiln_status bad_launch(kiln_context *ctx, kiln_diags **d)
{
    kiln_module *m = NULL;
    struct args g;
    make_args(&g, 1); /* the wrong rank */
    kiln_status s = kiln_compile(ctx, "t.kiln", text, sizeof text - 1, &m, NULL);
    if (!s)
        s = kiln_launch(kiln_module_kernel(m, "softmax"), NULL, g.a, 2, d);
    if (s == KILN_E_ARG)
        s = kiln_diags_count(*d) ? KILN_OK : KILN_E_NOMEM;
    kiln_module_free(m);
    return s;
}

static kiln_status infer(kiln_context *ctx, kiln_diags **d)
{
    kiln_module *m = NULL;
    struct args g;
    int64_t shape[8];
    int32_t rank = 0;
    make_args(&g, 2);
    kiln_status s = kiln_compile(ctx, "t.kiln", text, sizeof text - 1, &m, NULL);
    if (!s)
        s = kiln_infer_shape(kiln_module_kernel(m, "softmax"), g.a, 1, "y", NULL, &rank, shape, d);
    if (!s && (rank != 2 || shape[0] != ROWS || shape[1] != COLS))
        s = (kiln_status)WRONG;
    kiln_module_free(m);
    return s;
}

static kiln_status tune(kiln_context *ctx, kiln_diags **d)
{
    static const char file[] = "kiln-tune 1\nkernel softmax\n use BLOCK=64 warps=4\n when cols=64\n"
                               "kernel act\n source 0123456789abcdef\n use B=8\n";
    kiln_module *m = NULL;
    kl_tool_space *space = NULL;
    char *out = NULL;
    struct args g;
    make_args(&g, 2);
    kiln_status s = kiln_compile(ctx, "t.kiln", text, sizeof text - 1, &m, NULL);
    if (!s)
        s = kiln_module_tune(m, "t.tune", file, sizeof file - 1, d);
    if (!s && kl_tool_tuned_count(m) != 1)
        s = (kiln_status)WRONG;
    if (!s)
        s = kiln_launch(kiln_module_kernel(m, "softmax"), NULL, g.a, 2, NULL);
    if (!s && !right())
        s = (kiln_status)WRONG;
    if (!s)
        s = kl_tool_space_get(kiln_module_kernel(m, "softmax"), g.a, 2, "all", &space, NULL);
    if (!s) {
        const kl_tool_tuned e = {.k = kiln_module_kernel(m, "softmax"), .space = space, .ms = 1};
        s = kl_tool_tune_text(m, "t.tune", file, sizeof file - 1, &e, 1, &out, NULL);
    }
    kl_tool_free(ctx, out);
    kl_tool_space_free(space);
    kiln_module_free(m);
    return s;
}

static kiln_status explain(kiln_context *ctx, kiln_diags **d)
{
    kiln_module *m = NULL;
    kl_explained *e = NULL;
    struct args g;
    kl_chip chip;
    kl_chip_at(0, &chip);
    make_args(&g, 2);
    const kl_explain_opts o = {.chip = &chip, .ptxas = "/none/ptxas"};
    kiln_status s = kiln_compile(ctx, "t.kiln", text, sizeof text - 1, &m, NULL);
    if (!s)
        s = kl_explain(kiln_module_kernel(m, "softmax"), g.a, 2, &o, &e, d);
    if (!s && (e->programs != ROWS || !e->model || e->regs.from != KL_REGS_NONE))
        s = (kiln_status)WRONG;
    kl_explain_free(e);
    kiln_module_free(m);
    return s;
}

static kiln_status buffers(kiln_context *ctx, kiln_diags **d)
{
    kiln_buffer *b = NULL, *b2 = NULL;
    kiln_status s = kiln_buffer_create(ctx, 1000, &b);
    (void)d;
    if (!s)
        s = kiln_buffer_create(ctx, 5, &b2);
    kiln_buffer_free(b);
    kiln_buffer_free(b2);
    return s;
}

/* Nothing of a graph is left where a part of it found no memory. */
static kiln_status graphs(kiln_context *ctx, kiln_diags **d)
{
    kiln_module *m = NULL;
    kiln_stream *st[2] = {0};
    kiln_event *e = NULL;
    kiln_graph *gr = NULL;
    float copy[ROWS][COLS] = {{0}};
    kiln_buffer *b = NULL;
    struct args g;
    make_args(&g, 2);
    memset(y, 0, sizeof y);
    kiln_status s = kiln_compile(ctx, "t.kiln", text, sizeof text - 1, &m, NULL);
    for (int i = 0; i < 2 && !s; i++)
        s = kiln_stream_create(ctx, &st[i], NULL);
    if (!s)
        s = kiln_event_create(ctx, &e, NULL);
    if (!s)
        s = kiln_buffer_create(ctx, sizeof copy, &b);
    if (!s)
        s = kiln_graph_begin(st[0], NULL);
    if (!s) {
        s = kiln_launch(kiln_module_kernel(m, "softmax"), st[0], g.a, 2, d);
        if (!s)
            s = kiln_event_record(e, st[0], NULL);
        if (!s)
            s = kiln_event_wait(e, st[1], NULL);
        if (!s)
            s = kiln_buffer_fill(b, 0, sizeof copy, 1, st[1], NULL);
        if (!s)
            s = kiln_buffer_upload(b, 0, y, sizeof y, st[1], NULL);
        if (!s)
            s = kiln_buffer_download(b, 0, copy, sizeof copy, st[1], NULL);
        if (!s)
            s = kiln_event_record(e, st[1], NULL);
        if (!s)
            s = kiln_event_wait(e, st[0], NULL);
        kiln_status r = kiln_graph_end(st[0], s ? NULL : &gr, NULL);
        s = s ? s : r;
    }
    if (!s && y[0][0] != 0)
        s = (kiln_status)WRONG; /* it ran */
    for (int i = 0; i < 2 && !s; i++)
        s = kiln_graph_launch(gr, st[i], d);
    if (!s && (!right() || memcmp(copy, y, sizeof y) != 0))
        s = (kiln_status)WRONG;
    kiln_graph_free(gr);
    kiln_event_free(e);
    kiln_buffer_free(b);
    kiln_stream_free(st[0]);
    kiln_stream_free(st[1]);
    kiln_module_free(m);
    return s;
}

static void hear(void *user, const kiln_trace_event *e)
{
    *(long *)user += e->phase == KILN_TRACE_BEGIN ? 1 : e->phase == KILN_TRACE_END ? -1 : 0;
}

/* With a listener; what has begun ends whatever fails. */
static kiln_status traced(kiln_context *ctx, kiln_diags **d)
{
    long open = 0;
    kiln_status s = kiln_context_trace(ctx, KILN_TRACE_WORKERS, hear, &open, d);
    if (!s)
        s = launch_both(ctx, d);
    kiln_context_trace(ctx, 0, NULL, NULL, NULL);
    return open ? (kiln_status)WRONG : s;
}

/* ---- the loop ---- */

enum { INTERP, CHECKED, CPU_WARM, CPU_COLD };

static void set_options(kiln_options *o, int mode, struct counter *c)
{
    static char dir[100];
    snprintf(dir, sizeof dir, "%s/cache", root);
    *o = (kiln_options)KILN_OPTIONS_INIT;
    o->device = mode >= CPU_WARM ? KILN_DEVICE_CPU : KILN_DEVICE_INTERP;
    o->threads = 2;
    o->checks = mode == CHECKED ? KILN_CHECK_ALL : 0;
    o->cc = cc;
    o->cache_dir = dir;
    o->alloc = counting;
    o->alloc_user = c;
}

static kiln_status once(int mode, struct counter *c,
                        kiln_status (*f)(kiln_context *, kiln_diags **))
{
    kiln_options o;
    kiln_context *ctx = NULL;
    kiln_diags *d = NULL;
    set_options(&o, mode, c);
    kiln_status s = kiln_context_create(&o, &ctx, &d);
    kiln_diags_free(d);
    d = NULL;
    if (!s)
        s = f(ctx, &d);
    kiln_diags_free(d);
    kiln_context_free(ctx);
    return s;
}

static int rm_one(const char *p, const struct stat *st, int flag, struct FTW *f)
{
    (void)st, (void)flag, (void)f;
    return remove(p);
}

static void forget(void)
{
    char dir[100];
    snprintf(dir, sizeof dir, "%s/cache", root);
    nftw(dir, rm_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int passed, failed, skipped;

static void scenario(const char *name, int mode, kiln_status (*f)(kiln_context *, kiln_diags **))
{
    static const char *const modes[] = {"interp", "checked", "cpu, warm", "cpu, cold"};
    long most = 0, absorbed = 0;
    for (int sticky = 0; sticky < 2; sticky++)
        for (long n = 1;; n++) {
            struct counter c = {.fail_at = n, .sticky = sticky != 0};
            pthread_mutex_init(&c.lock, NULL);
            if (mode == CPU_COLD)
                forget();
            kiln_status s = once(mode, &c, f);
            bool reached = c.calls >= n, leak = c.blocks || c.bytes;
            pthread_mutex_destroy(&c.lock);
            absorbed += reached && !s;
            if (leak || c.wrong || (s && s != KILN_E_NOMEM) || (s && !reached)) {
                printf("FAIL %s (%s): allocation %ld%s: %s, %ld blocks and %zu bytes left%s\n",
                       name, modes[mode], n, sticky ? " and all after it" : "",
                       (int)s == WRONG ? "wrong result" : kiln_status_name(s), c.blocks, c.bytes,
                       c.wrong ? ", a wrong size was given" : "");
                failed++;
                return;
            }
            if (!reached)
                break;
            most = n;
        }
    printf("  %s (%s): %ld allocations, %ld failures absorbed\n", name, modes[mode], most,
           absorbed);
    passed++;
}

int main(void)
{
    static const struct {
        const char *name;
        kiln_status (*f)(kiln_context *, kiln_diags **);
    } all[] = {{"compile", only_compile},  {"bad source", compile_bad}, {"launch", launch_both},
               {"traced", traced},
               {"format", format_source},
               {"specialize", specialize}, {"bad launch", bad_launch},  {"infer", infer}, {"tune", tune},
               {"buffers", buffers},       {"graph", graphs},           {"explain", explain}};
    strcpy(root, "/tmp/kiln-test-XXXXXX");
    if (!mkdtemp(root))
        return 1;
    for (int i = 0; i < ROWS * COLS; i++)
        x[i / COLS][i % COLS] = (float)(i % 11) * 0.3f - 1;
    static const char *const names[] = {"/usr/bin/cc", "/usr/bin/gcc", "/usr/bin/clang"};
    for (int i = 0; i < 3 && !cc; i++)
        if (access(names[i], X_OK) == 0)
            cc = names[i];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        scenario(all[i].name, INTERP, all[i].f);
        if (all[i].f == launch_both)
            scenario(all[i].name, CHECKED, all[i].f);
        if (all[i].f != launch_both && all[i].f != specialize)
            continue;
        struct counter c = {.calls = 0};
        pthread_mutex_init(&c.lock, NULL);
        if (!cc || once(CPU_WARM, &c, all[i].f) != KILN_OK) {
            printf("SKIP %s (cpu): no C compiler, or no CPU device\n", all[i].name);
            skipped++;
            continue;
        }
        scenario(all[i].name, CPU_WARM, all[i].f);
        /* with a compile in each run: as many as fit in a minute */
        if (all[i].f == specialize && getenv("KILN_TEST_SCALE"))
            scenario(all[i].name, CPU_COLD, all[i].f);
    }
    nftw(root, rm_one, 16, FTW_DEPTH | FTW_PHYS);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
