/* softmax.c - a kernel built ahead of time, used from C.  Nothing of Kiln is linked or needed where
 * it runs:
 *
 *     kiln build kernels/softmax.kiln:softmax --targets cpu,sm_80,sm_90 \
 *         -D T=f32,bf16 -D BLOCK=128:4096:*2 -o softmax
 *     cc -std=c11 -O2 softmax.c examples/aot/softmax.c -I. -o example
 */
#include <stdio.h>

#include "softmax.h"

int main(void)
{
    float x[2][5] = {{0, 0, 0.6931472f, 0, 0}, {1, 2, 3, 4, 5}}, y[2][5];
    const int64_t shape[2] = {2, 5};
    const kiln_aot_tensor tx = {x, KILN_AOT_F32, 2, shape, NULL, sizeof x};
    const kiln_aot_tensor ty = {y, KILN_AOT_F32, 2, shape, NULL, sizeof y};
    softmax_lib *lib;
    int s = softmax_load(&lib, SOFTMAX_CPU);
    if (!s) {
        s = softmax_f32(lib, NULL, &ty, &tx);
        softmax_unload(lib);
    }
    if (s) {
        fprintf(stderr, "%s: %s\n", softmax_strerror(s), softmax_detail());
        return 1;
    }
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 5; c++)
            printf("%.7g%s", (double)y[r][c], c < 4 ? " " : "\n");
    return 0;
}
