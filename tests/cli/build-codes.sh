# kiln build: every code that the header declares, levels of the CPU, initial values on a GPU, the
# manifest in a file, AArch64 and clang.
which cc >/dev/null || { echo "no C compiler" >&2; exit 77; }
fake=$(dirname "$KILN")/tests/fakecuda
cat >k.kiln <<'K'
kernel grids(i64 n, i64 m, i64 k, f32 y[1]) grid(n, m, k) { y[0] = 1; }
kernel small(i32 n, u8 y[n]) grid(1) { y[0] = 1; }
kernel even(i64 n, constexpr i64 B = 4, f32 y[n], const f32 x[n], optional const f32 z[n])
    grid(cdiv(n, B))
    requires(n % 2 == 0, "n is even")
{
    i64 i = program_id(0) * B;
    f32 s[B] = load(x[i:B], 0);
    if (given(z))
        s += load(z[i:B], 0);
    y[i:B] = s - sum(s);
}
kernel fills(i64 n, i64 s, f64 a[n] stride(s) = 1.5, u16 b[n][2] stride(s, 1) = 515, i8 c[n] stride(s) = -1,
             i64 d[n] = 1, f32 e[n] = 0, u16 f[n] = 257)
    grid(1)
{
    a[0] = a[0] + 1;
    b[0][0] = b[0][1];
    c[0] = (i8)(c[0] + 1);
    d[0] = d[0] + 1;
    e[0] = e[0] + 1;
    f[0] = (u16)(f[0] + 1);
}
K
"$KILN" build k.kiln --targets cpu,sm_80 -D B=4,4096 -o codes --manifest codes.json || exit
"$KILN" build k.kiln:even --targets cpu -D B=4 -o host || exit
"$KILN" build k.kiln:even --targets sm_80 -D B=4 -o gpu || exit
w="-std=c11 -O1 -Wall -Wextra -Werror"
cc $w -Dmalloc=t_malloc -Dcalloc=t_calloc -c codes.c && cc $w -c host.c && cc $w -c gpu.c || exit
cat >use.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codes.h"
#include "gpu.h"
#include "host.h"
static int fail; /* the allocation that fails; 0: none */
void *t_malloc(size_t n) { return fail && !--fail ? NULL : malloc(n); }
void *t_calloc(size_t k, size_t n) { return fail && !--fail ? NULL : calloc(k, n); }
static void say(const char *what, int s)
{
    printf("%s: %d, %s%s%s\n", what, s, codes_strerror(s), s ? ": " : "", s ? codes_detail() : "");
}
/* threads of the caller: none, backwards */
static void back(void *user, int64_t n, kiln_aot_body *body, void *arg)
{
    ++*(int *)user;
    while (n-- > 0)
        body(arg, n, n + 1);
}
static int fills(codes_lib *l, char *base, int64_t s)
{
    static int64_t n[1] = {5}, n2[2] = {5, 2};
    int64_t st[1] = {s}, s2[2] = {s, 1};
    kiln_aot_tensor a = {base, KILN_AOT_F64, 1, n, st, 0}, b = {base + 1024, KILN_AOT_U16, 2, n2, s2, 0};
    kiln_aot_tensor c = {base + 2048, KILN_AOT_I8, 1, n, st, 0}, d = {base + 3072, KILN_AOT_I64, 1, n, NULL, 0};
    kiln_aot_tensor e = {base + 4096, KILN_AOT_F32, 1, n, NULL, 0}, f = {base + 5120, KILN_AOT_U16, 1, n, NULL, 0};
    if (s < 0)
        a.data = (char *)a.data - 4 * 8 * s, b.data = (char *)b.data - 4 * 2 * s, c.data = (char *)c.data - 4 * s;
    return codes_fills(l, NULL, &a, &b, &c, &d, &e, &f);
}
#define NEED(x) do { if ((x)) { say(#x, -1); return 1; } } while (0)
static int gpu(char *want)
{
    void *h = dlopen("libcuda.so.1", RTLD_NOW), *ctx;
    int (*retain)(void **, int), (*push)(void *), (*alloc)(uint64_t *, size_t), (*init)(unsigned);
    int (*down)(void *, uint64_t, size_t, void *), (*up)(uint64_t, const void *, size_t, void *), (*wait)(void);
    static char got[3][8192];
    uint64_t p;
    codes_lib *l;
    NEED(!h);
#define GET(v, n) *(void **)&v = dlsym(h, n)
    GET(alloc, "cuMemAlloc_v2"); GET(up, "cuMemcpyHtoDAsync_v2"); GET(down, "cuMemcpyDtoHAsync_v2");
    GET(push, "cuCtxPushCurrent_v2"); GET(retain, "cuDevicePrimaryCtxRetain"); GET(init, "cuInit");
    GET(wait, "cuCtxSynchronize");
    say("no context", codes_load(&l, CODES_CURRENT));
    say("no device", codes_load(&l, 7));
    NEED(init(0) || retain(&ctx, 0) || push(ctx) || alloc(&p, sizeof *got));
    fail = 1;
    say("no memory", codes_load(&l, CODES_CURRENT));
    fail = 0;
    say("loaded", codes_load(&l, CODES_CURRENT));
    printf("level %d\n", codes_level(l));
    for (int i = 0; i < 3; i++) {
        memset(got[i], 7, sizeof *got);
        NEED(up(p, got[i], sizeof *got, NULL));
        fail = i == 0; /* the first launch loads the code */
        int s = fills(l, (char *)(uintptr_t)p, i == 0 ? 2 : i == 1 ? 3 : -3);
        if (i == 0)
            say("no memory for the code", s), s = fills(l, (char *)(uintptr_t)p, 2);
        say("fills", s);
        NEED(down(got[i], p, sizeof *got, NULL) || wait());
        printf("as on the CPU: %d\n", memcmp(got[i], want + i * sizeof *got, sizeof *got) == 0);
    }
    codes_unload(l);
    return 0;
}
int main(int argc, char **argv)
{
    static int64_t one[1] = {1}, n6[1] = {6}, n5[1] = {5}, n7[1] = {7}, far[1] = {INT64_C(1) << 31};
    static int64_t two[2] = {6, 1}, less[1] = {-1}, zero[1] = {0}, huge[1] = {INT64_C(1) << 62};
    static char want[3][8192];
    float x[8] = {1, 2, 3, 4, 5, 6}, y[8] = {0};
    uint8_t u[1];
    kiln_aot_tensor ty = {y, KILN_AOT_F32, 1, n6, NULL, 0}, tx = {x, KILN_AOT_F32, 1, n6, NULL, 0}, t;
    kiln_aot_tensor t1 = {y, KILN_AOT_F32, 1, one, NULL, 0}, tu = {u, KILN_AOT_U8, 1, far, NULL, 0};
    codes_lib *l = NULL;
    host_lib *h;
    gpu_lib *g;
    int called = 0;
    for (int i = 0; i < 3; i++)
        memset(want[i], 7, sizeof *want);
    say("nowhere", codes_load(NULL, -1));
    fail = 1;
    say("no memory", codes_load(&l, -1));
    fail = 0;
    say("load", codes_load(&l, -1));
    if (argc > 1) {
        fills(l, want[0], 2), fills(l, want[1], 3), fills(l, want[2], -3);
        return gpu(want[0]);
    }
    printf("level %s\n", codes_level(l) >= 3 ? "3 or more" : "?");
    say("even", codes_even(l, NULL, 4, &ty, &tx, NULL));
    printf("%g %g\n", (double)y[0], (double)y[5]);
    y[0] = y[5] = 0;
    codes_parallel(l, back, &called);
    say("even", codes_even(l, NULL, 4, &ty, &tx, &tx));
    printf("%g %g, %d\n", (double)y[0], (double)y[5], called);
    fail = 1;
    say("no memory", codes_even(l, NULL, 4, &ty, &tx, NULL));
    codes_parallel(l, NULL, NULL);
    fail = 1;
    say("no memory", codes_even(l, NULL, 4, &ty, &tx, NULL));
    fail = 0;
    say("no library", codes_even(NULL, NULL, 4, &ty, &tx, NULL));
    say("no array", codes_even(l, NULL, 4, &ty, NULL, NULL));
#define TRY(what, change) t = tx; change; say(what, codes_even(l, NULL, 4, &ty, &t, NULL));
    TRY("rank", (t.ndim = 2, t.shape = two))
    TRY("rank", t.ndim = -1)
    TRY("no shape", t.shape = NULL)
    TRY("type", t.dtype = KILN_AOT_I32)
    TRY("type", t.dtype = 0)
    TRY("extent", t.shape = n7)
    TRY("negative extent", t.shape = less)
    TRY("stride", t.strides = two)
    TRY("no memory", t.data = NULL)
    TRY("too little", t.size_bytes = 23)
    TRY("not aligned", t.data = (char *)x + 2)
    TRY("too large", t.shape = huge)
    ty.shape = tx.shape = n5;
    say("requires", codes_even(l, NULL, 4, &ty, &tx, NULL));
    ty.shape = tx.shape = n6;
    say("variant", codes_even(l, NULL, 5, &ty, &tx, NULL));
    say("grid", codes_grids(l, NULL, 2, -1, 3, &t1));
    say("grid", codes_grids(l, NULL, INT64_C(1) << 22, INT64_C(1) << 21, INT64_C(1) << 20, &t1));
    say("empty grid", codes_grids(l, NULL, 2, 0, 3, &t1));
    say("value", codes_small(l, NULL, &tu));
    say("overlap", fills(l, want[0], 0));
    t1.shape = zero;
    say("extent", codes_grids(l, NULL, 1, 1, 1, &t1));
    codes_unload(l);
    codes_unload(NULL);
    printf("%d %s\n", host_load(&h, 0), host_detail());
    printf("%d %s\n", gpu_load(&g, -1), gpu_detail());
    printf("%d %s\n", codes_load(&l, 0), codes_detail());
    for (int s = 1; s > -17; s--)
        printf("%d %s\n", s, codes_strerror(s));
    return (void)argv, 0;
}
C
cc -std=c11 -O1 -I. use.c codes.o host.o gpu.o -o use || exit
echo "== CPU"
LD_LIBRARY_PATH=/nonexistent ./use
echo "== GPU"
if [ -e "$fake/libcuda.so.1" ]; then
    LD_LIBRARY_PATH=$fake ./use gpu
    FAKECUDA_FAIL=cuModuleLoadDataEx:1:218 LD_LIBRARY_PATH=$fake ./use gpu | grep "218"
    FAKECUDA_CC=75 LD_LIBRARY_PATH=$fake ./use gpu | grep "75"
fi
echo "== levels"
cat >level.c <<'C'
#include <stdio.h>
#include "host.h"
int main(void)
{
    host_lib *l;
    float y[6], x[6] = {1, 2, 3, 4, 5, 6};
    int64_t n = 6;
    kiln_aot_tensor ty = {y, KILN_AOT_F32, 1, &n, NULL, 0}, tx = {x, KILN_AOT_F32, 1, &n, NULL, 0};
    int s = host_load(&l, HOST_CPU);
    if (!s)
        s = host_even(l, NULL, &ty, &tx, NULL);
    printf("%d %s", s, host_detail());
    for (int i = 0; !s && i < 6; i++)
        printf(" %g", (double)y[i]);
    printf(", level %d\n", s ? 0 : host_level(l));
    host_unload(s ? NULL : l);
    return 0;
}
C
for f in -DKL_CPU_LEVEL=2 -DKL_CPU_LEVEL=3 -DKL_NO_V4; do
    cc -std=c11 -O1 $f -I. level.c host.c -o level && ./level | sed '/NO_V4/!s/level 4$/level 3/'
done
echo "== emulated" # an older CPU, and AArch64
if which qemu-x86_64 >/dev/null && cc -std=c11 -O1 -static -I. level.c host.c -o level 2>/dev/null; then
    qemu-x86_64 -cpu Nehalem ./level 2>/dev/null
else
    echo "-12 this CPU is below x86-64-v3: it has not all of AVX2, FMA, BMI, F16C, LZCNT and MOVBE, level 0"
fi
if which qemu-aarch64 >/dev/null && aarch64-linux-gnu-gcc -std=c11 -O1 -static -I. level.c host.c -o level 2>/dev/null
then
    qemu-aarch64 ./level
else
    echo "0  -9 -8 -7 -6 -6 -5, level 8"
fi
echo "== elsewhere"
! echo '#include <stdlib.h>' | aarch64-linux-gnu-gcc -E - >/dev/null 2>&1 ||
    aarch64-linux-gnu-gcc -std=c11 -O1 -Wall -Wextra -Werror -c codes.c -o arm.o
! which clang >/dev/null || clang -fwrapv -fno-strict-aliasing -ffp-contract=off $w -c codes.c -o clang.o
! which c++ >/dev/null || echo '#include "codes.h"' | c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I. -x c++ -
echo '#include "codes.h"' | cc -std=c99 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I. -x c -
cat codes.json
