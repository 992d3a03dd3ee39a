/* test_fast.c - the texts of fast forms in gen/ptx/pops.def, run by the executor.
 *
 * There the hardware's units are rounded well, so what is seen is the error of the texts
 * themselves: constants, reductions of the argument, special values.  The bounds are those of
 * docs/math.md. */
#define _GNU_SOURCE
#include <math.h>

#include "genc_box.h"

#include "gen/ptx/ptx.h"
#include "sim/sim.h"

enum { N = 1024 };

static double ref_sin(double x, double y) { return (void)y, sin(x); }
static double ref_cos(double x, double y) { return (void)y, cos(x); }
static double ref_log2(double x, double y) { return (void)y, log2(x); }
static double ref_sqrt(double x, double y) { return (void)y, sqrt(x); }

static const struct form {
    const char *op;
    bool two;
    double (*ref)(double, double);
    float lo, hi;    /* of x, drawn evenly in log2 if both are positive */
    float ylo, yhi;
    double abs, rel; /* one of the two must hold */
} forms[] = {
    {"sin.fast", false, ref_sin, -6.25f, 6.25f, 0, 0, 0x1p-20, 0},
    {"sin.fast", false, ref_sin, -1e6f, 1e6f, 0, 0, 0x1p-20, 0},
    {"cos.fast", false, ref_cos, -6.25f, 6.25f, 0, 0, 0x1p-20, 0},
    {"cos.fast", false, ref_cos, -1e6f, 1e6f, 0, 0, 0x1p-20, 0},
    {"log2.fast", false, ref_log2, 0x1p-149f, 0x1p127f, 0, 0, 0x1p-22, 0x1p-22},
    {"sqrt.fast", false, ref_sqrt, 0x1p-149f, 0x1p127f, 0, 0, 0, 0x1p-22},
    {"pow.fast", true, pow, 0x1p-10f, 0x1p10f, -10, 10, 0, 0x1p-16},
};

/* Special values of pow.fast: also of negative x. */
static const float pairs[][3] = {
    {-2, 3, -8}, {-2, 2, 4}, {-2, 0.5f, NAN}, {0, 2, 0}, {0, -2, INFINITY}, {3, 0, 1}, {NAN, 0, 1}, {0, 0, 1},
    {-1, 0, 1}, {INFINITY, 2, INFINITY}, {INFINITY, -1, 0}, {NAN, 2, NAN}, {2, NAN, NAN}, {-2, -1, -0.5f},
    {-2, -2, 0.25f}, {-3, 16777216.0f, INFINITY},
};
enum { NPAIR = sizeof pairs / sizeof *pairs };

static void run(struct gb *x, const char *op, bool two, float *a, float *b, float *out)
{
    const char *text = kl_printf(&x->a,
        "fn f(%%x: array<f32,1> x const, %%w: array<f32,1> w const, %%y: array<f32,1> y written) {\n"
        "  %%z = const 0 : i64  %%o = const 1 : i64  %%n = const %d : i64\n"
        "  %%vx = view %%x, %%z [%%n] stride [%%o] : array<f32,1>\n"
        "  %%vw = view %%w, %%z [%%n] stride [%%o] : array<f32,1>\n"
        "  %%vy = view %%y, %%z [%%n] stride [%%o] : array<f32,1>\n"
        "  %%a = load %%vx[%%z:%d] : f32[%d]\n"
        "  %%b = load %%vw[%%z:%d] : f32[%d]\n"
        "  %%r = %s %%a%s : f32[%d]\n"
        "  store %%vy[%%z:%d], %%r\n}\n", N, N, N, N, N, op, two ? ", %b" : "", N, N);
    uint32_t id = kl_src_add(&x->src, "f", text, (uint32_t)strlen(text), false);
    kl_fn *f = kl_ir_read(&x->a, &x->src, id, x->d);
    assert_non_null(f);
    kl_buf ptx = {.a = &x->a};
    kl_ptx_opts o = {.arch = 80};
    kl_ptxinfo info;
    kl_ptx_prelude(&ptx, f, &o, false);
    kl_ptx_emit(&ptx, f, &o, &info);
    assert_non_null(strstr(kl_buf_str(&ptx), ".approx"));
    id = kl_src_add(&x->src, "f.ptx", kl_buf_str(&ptx), (uint32_t)ptx.n, false);
    kl_sim *sim = kl_sim_parse(&x->a, &x->src, id, x->d);
    assert_non_null(sim);
    uint64_t p[8] = {(uint64_t)(uintptr_t)a, (uint64_t)(uintptr_t)b, (uint64_t)(uintptr_t)out, 1, 1, 1, 1, 1};
    kl_sim_buffer buf[3] = {{(char *)a, N * 4, false}, {(char *)b, N * 4, false}, {(char *)out, N * 4, true}};
    kl_sim_launch l = {.entry = info.entry, .grid = {1, 1, 1}, .block = {info.threads, 1, 1},
                       .dynamic_shared = info.dynamic, .param = p, .param_bytes = sizeof p, .buffer = buf,
                       .nbuffer = 3};
    kl_sim_options so = {.checks = KL_SIM_CHECKS};
    assert_int_equal(kl_sim_run(sim, &l, &so, NULL, NULL, x->d, &x->env), KILN_OK);
}

static uint64_t seed = 3;

static double unit(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(seed >> 11) * 0x1p-53;
}

static float draw(float lo, float hi)
{
    if (lo > 0)
        return (float)exp2(log2((double)lo) + (log2((double)hi) - log2((double)lo)) * unit());
    return (float)((double)lo + ((double)hi - (double)lo) * unit());
}

static void within_bounds(void **state)
{
    (void)state;
    static float a[N], b[N], out[N];
    static unsigned bad; /* static: what a jump must not spoil */
    static size_t k;
    for (k = 0; k < sizeof forms / sizeof *forms; k++) {
        const struct form *m = &forms[k];
        struct gb x;
        gb_open(&x);
        if (setjmp(gb_raised))
            fail_msg("raised: %s", x.env.msg);
        for (int i = 0; i < N; i++) {
            a[i] = draw(m->lo, m->hi);
            b[i] = draw(m->ylo, m->yhi);
        }
        run(&x, m->op, m->two, a, b, out);
        for (int i = 0; i < N; i++) {
            double want = m->ref((double)a[i], (double)b[i]), err = fabs((double)out[i] - want);
            if (err <= m->abs || err <= m->rel * fabs(want))
                continue;
            print_error("%s(%a, %a) is %a, not %a\n", m->op, (double)a[i], (double)b[i], (double)out[i], want);
            bad++;
            break;
        }
        gb_close(&x);
    }
    assert_int_equal(bad, 0);
}

static void powers_of_special_values(void **state)
{
    (void)state;
    static float a[N], b[N], out[N];
    struct gb x;
    gb_open(&x);
    if (setjmp(gb_raised))
        fail_msg("raised: %s", x.env.msg);
    for (int i = 0; i < NPAIR; i++)
        a[i] = pairs[i][0], b[i] = pairs[i][1];
    run(&x, "pow.fast", true, a, b, out);
    for (int i = 0; i < NPAIR; i++) {
        double want = (double)pairs[i][2], err = fabs((double)out[i] - want);
        if (isnan(want) ? !isnan(out[i]) : (double)out[i] != want && !(err <= 1e-5 * fabs(want)))
            fail_msg("pow_fast(%g, %g) is %g, not %g", (double)a[i], (double)b[i], (double)out[i], want);
    }
    gb_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_bounds),
        cmocka_unit_test(powers_of_special_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
