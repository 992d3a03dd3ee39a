/* softmax.c - a kernel compiled and run from C.  In the source folder, after make:
 *
 *     cc -o softmax examples/softmax.c -Iinclude -Lbuild -lkiln -lm
 *     LD_LIBRARY_PATH=build ./softmax
 */
#include <kiln.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "kernel softmax(i64 rows, i64 cols, f32 y[rows][cols], const f32 x[rows][cols],\n"
    "               constexpr i64 BLOCK = pow2ceil(cols))\n"
    "    grid(rows)\n"
    "{\n"
    "    i64 r = program_id(0);\n"
    "    auto v = load(x[r][0:BLOCK], -inf);   // past the end of the row: -inf\n"
    "    auto e = exp(v - max(v));\n"
    "    y[r][0:BLOCK] = e / sum(e);\n"
    "}\n";

enum { ROWS = 1000, COLS = 781 };

/* Print what the library has to say; give up on an error. */
static void check(kiln_status status, kiln_diags *diags)
{
    size_t n = kiln_diags_render(diags, 0, NULL, 0);
    char *text = malloc(n + 1);
    if (text && n) {
        kiln_diags_render(diags, 0, text, n + 1);
        fputs(text, stderr);
    }
    free(text);
    kiln_diags_free(diags);
    if (status) {
        fprintf(stderr, "%s\n", kiln_status_text(status));
        exit(1);
    }
}

int main(void)
{
    static float x[ROWS][COLS], y[ROWS][COLS];
    const int64_t shape[2] = {ROWS, COLS};
    kiln_options options = KILN_OPTIONS_INIT;
    kiln_context *ctx;
    kiln_module *module;
    kiln_diags *diags;
    double worst = 0;

    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            x[r][c] = sinf((float)(r * 7 + c)) * 10;

    /* a C compiler and a cache folder, as the environment has them; without them kernels are
     * interpreted, or compiled in each process */
    check(kiln_options_from_env(&options), NULL);
    kiln_status s = kiln_context_create(&options, &ctx, &diags);
    check(s, diags);
    s = kiln_compile(ctx, "softmax.kiln", source, strlen(source), &module, &diags);
    check(s, diags);

    kiln_arg args[2] = {{.name = "x", .kind = KILN_ARG_TENSOR},
                        {.name = "y", .kind = KILN_ARG_TENSOR}};
    args[0].u.tensor = (kiln_tensor){.data = x, .dtype = KILN_F32, .ndim = 2, .shape = shape};
    args[1].u.tensor = (kiln_tensor){.data = y, .dtype = KILN_F32, .ndim = 2, .shape = shape};
    s = kiln_launch(kiln_module_kernel(module, "softmax"), NULL, args, 2, &diags);
    check(s, diags);

    for (int r = 0; r < ROWS; r++) {
        double max = (double)-INFINITY, sum = 0;
        for (int c = 0; c < COLS; c++)
            max = fmax(max, (double)x[r][c]);
        for (int c = 0; c < COLS; c++)
            sum += exp((double)x[r][c] - max);
        for (int c = 0; c < COLS; c++)
            worst = fmax(worst, fabs(exp((double)x[r][c] - max) / sum - (double)y[r][c]));
    }
    printf("softmax of %d x %d on the %s: largest error %.1e\n", ROWS, COLS,
           kiln_context_device(ctx) == KILN_DEVICE_CPU ? "CPU" : "interpreter", worst);
    kiln_module_free(module);
    kiln_context_free(ctx);
    return worst < 1e-6 ? 0 : 1;
}
