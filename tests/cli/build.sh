# kiln build: C files that run kernels without kiln, against the bits of kiln run.
which cc >/dev/null || { echo "no C compiler" >&2; exit 77; }
fake=$(dirname "$KILN")/tests/fakecuda
k=$SRC/kernels
build() { "$KILN" build "$@"; echo "rc $?"; }
build $k/softmax.kiln:softmax --targets sm_80,sm_90,cpu -D T=f32,bf16 -D 'BLOCK=1:1024:*2' -o softmax
build $k/gelu.kiln:erf_form --targets sm_80,sm_90,cpu -o gelu
build $k/matmul.kiln:matmul --targets sm_80,sm_90,cpu -D BM=32 -D BN=16,32 -D BK=16 -D ACT=0,2 -o mm
ls *.[ch]
# the same text each time
mkdir again
"$KILN" build $k/softmax.kiln:softmax --targets sm_80,sm_90,cpu -D T=f32,bf16 -D 'BLOCK=1:1024:*2' -o again/softmax
cmp softmax.c again/softmax.c; cmp softmax.h again/softmax.h
build $k/matmul.kiln:matmul --targets sm_90 -D BM=16 -D BN=16 -D BK=16 -o gpu
for n in softmax gelu mm gpu; do
    [ $n = gelu ] && v4= || v4=-DKL_NO_V4 # the others in half the time
    cc -std=c11 -O2 $v4 -Wall -Wextra -Werror -c $n.c || echo "$n.c does not compile"
done
sed 's/.*/#include "&.h"/' >headers.cc <<'H'
softmax
gelu
mm
H
! which c++ >/dev/null || c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only headers.cc
echo "== examples"
cc -std=c11 -I. softmax.o "$SRC/examples/aot/softmax.c" -o ex && ./ex
if which c++ >/dev/null; then c++ -std=c++17 -I. softmax.o "$SRC/examples/aot/softmax.cc" -o exx && ./exx
else printf '0.333333 0.333333 0.333333\n0.0900306 0.244728 0.665241\n'; fi
! ldd ex | grep kiln
cat >use.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gelu.h"
#include "mm.h"
#include "softmax.h"
static int device;
static int (*alloc)(uint64_t *, size_t), (*up)(uint64_t, const void *, size_t, void *);
static int (*down)(void *, uint64_t, size_t, void *), (*sync_)(void), (*push)(void *);
static int (*retain)(void **, int), (*init)(unsigned);
static void need(int s, const char *what)
{
    if (s)
        printf("%s: %d %s%s%s\n", what, s, softmax_detail(), gelu_detail(), mm_detail()), exit(1);
}
/* memory for n bytes, `off` bytes behind a multiple of 256 */
static void *memory(size_t n, size_t off)
{
    uint64_t p;
    if (device < 0)
        return (char *)aligned_alloc(256, (n + off + 511) / 256 * 256) + off;
    need(alloc(&p, n + off), "cuMemAlloc");
    return (void *)(uintptr_t)(p + off);
}
static void *input(const char *path, size_t n, size_t off)
{
    FILE *f = fopen(path, "rb");
    char *host = malloc(n);
    if (!f || fseek(f, -(long)n, SEEK_END) || fread(host, 1, n, f) != n)
        need(1, path);
    fclose(f);
    void *p = memory(n, off);
    if (device < 0)
        memcpy(p, host, n);
    else
        need(up((uint64_t)(uintptr_t)p, host, n, NULL), "up");
    free(host);
    return p;
}
static void output(const char *path, void *p, size_t n)
{
    char *host = malloc(n);
    if (device < 0)
        memcpy(host, p, n);
    else
        need(down(host, (uint64_t)(uintptr_t)p, n, NULL), "down"), need(sync_(), "sync");
    FILE *f = fopen(path, "wb");
    fwrite(host, 1, n, f);
    fclose(f);
    free(host);
}
static kiln_aot_tensor tensor(void *p, int t, const int64_t *shape)
{
    return (kiln_aot_tensor){p, t, 2, shape, NULL, 0};
}
static void say(int s, const char *text, const char *more)
{
    printf("%d %s: %s\n", s, text, more);
}
int main(int argc, char **argv)
{
    void *h = NULL, *ctx;
    device = argc > 1 ? atoi(argv[1]) : -1;
    if (device != -1) {
        h = dlopen("libcuda.so.1", RTLD_NOW);
        if (!h)
            return puts("no driver"), 1;
#define GET(v, n) *(void **)&v = dlsym(h, n)
        GET(alloc, "cuMemAlloc_v2"); GET(up, "cuMemcpyHtoDAsync_v2"); GET(down, "cuMemcpyDtoHAsync_v2");
        GET(sync_, "cuCtxSynchronize"); GET(push, "cuCtxPushCurrent_v2");
        GET(retain, "cuDevicePrimaryCtxRetain"); GET(init, "cuInit");
        need(init(0), "init"), need(retain(&ctx, 0), "retain"), need(push(ctx), "push");
    }
    int cuda = device != -1, dev = device;
    device = cuda ? 0 : -1;
    softmax_lib *sl;
    gelu_lib *gl;
    mm_lib *ml;
    need(softmax_load(&sl, dev), "load"), need(gelu_load(&gl, dev), "load"), need(mm_load(&ml, dev), "load");
    for (int off = 0; off < 16; off += 8) { /* all alignments: facts choose the code, not the bits */
        static const int64_t s1[2] = {37, 1000}, s2[2] = {9, 333};
        size_t n1 = 37 * 1000 * 4, n2 = 9 * 333 * 2;
        kiln_aot_tensor x = tensor(input("x.npy", n1, off), KILN_AOT_F32, s1);
        kiln_aot_tensor y = tensor(memory(n1, off), KILN_AOT_F32, s1);
        need(softmax_f32(sl, NULL, &y, &x), "softmax");
        output(off ? "y8.raw" : "y.raw", y.data, n1);
        if (!off) { /* in place */
            need(softmax_f32(sl, NULL, &x, &x), "softmax");
            output("yx.raw", x.data, n1);
        }
        kiln_aot_tensor b = tensor(input("b.npy", n2, off), KILN_AOT_BF16, s2);
        kiln_aot_tensor z = tensor(memory(n2, off), KILN_AOT_BF16, s2);
        need(softmax_bf16(sl, NULL, &z, &b), "softmax");
        output(off ? "z8.raw" : "z.raw", z.data, n2);
        static const int64_t g1[1] = {37000};
        kiln_aot_tensor gx = {input("x.npy", n1, off), KILN_AOT_F32, 1, g1, NULL, 0};
        kiln_aot_tensor gy = {memory(n1, off), KILN_AOT_F32, 1, g1, NULL, 0};
        need(gelu_erf_form_f32(gl, NULL, &gy, &gx), "gelu");
        output(off ? "g8.raw" : "g.raw", gy.data, n1);
    }
    static const int64_t sa[2] = {33, 37}, sb[2] = {37, 70}, sc[2] = {33, 70}, st[2] = {70, 1}, sn[1] = {70};
    kiln_aot_tensor a = tensor(input("a.npy", 33 * 37 * 4, 0), KILN_AOT_F32, sa);
    kiln_aot_tensor w = tensor(input("w.npy", 37 * 70 * 4, 0), KILN_AOT_F32, sb);
    kiln_aot_tensor v = {input("v.npy", 70 * 4, 0), KILN_AOT_F32, 1, sn, NULL, 0};
    kiln_aot_tensor c = tensor(memory(33 * 70 * 4, 0), KILN_AOT_F32, sc);
    c.strides = st;
    need(mm_matmul_f32(ml, NULL, &c, &a, &w, NULL, 0, 16), "matmul");
    output("c.raw", c.data, 33 * 70 * 4);
    need(mm_matmul_f32(ml, NULL, &c, &a, &w, &v, 2, 32), "matmul");
    output("cv.raw", c.data, 33 * 70 * 4);
    if (argc > 2)
        return 0;
    /* what is wrong gives the documented codes */
    static const int64_t o3[3] = {33, 70, 1}, o2[2] = {33, 71}, big[2] = {2, 2000}, one[2] = {1, 0}, none[2] = {0, 70};
    kiln_aot_tensor t = c;
#define TRY(call) { int s_ = call; say(s_, mm_strerror(s_), mm_detail()); t = c; }
    TRY(mm_matmul_f32(NULL, NULL, &c, &a, &w, NULL, 0, 16))
    TRY(mm_matmul_f32(ml, NULL, NULL, &a, &w, NULL, 0, 16))
    t.ndim = 3, t.shape = o3;
    TRY(mm_matmul_f32(ml, NULL, &t, &a, &w, NULL, 0, 16))
    t.dtype = KILN_AOT_F16;
    TRY(mm_matmul_f32(ml, NULL, &t, &a, &w, NULL, 0, 16))
    t.shape = o2, t.strides = NULL;
    TRY(mm_matmul_f32(ml, NULL, &t, &a, &w, NULL, 0, 16))
    t.strides = o2; /* {33, 71}: columns 71 apart */
    TRY(mm_matmul_f32(ml, NULL, &t, &a, &w, NULL, 0, 16))
    t.data = NULL;
    TRY(mm_matmul_f32(ml, NULL, &t, &a, &w, NULL, 0, 16))
    t.size_bytes = 1000;
    TRY(mm_matmul_f32(ml, NULL, &t, &a, &w, NULL, 0, 16))
    t.data = (char *)t.data + 1;
    TRY(mm_matmul_f32(ml, NULL, &t, &a, &w, NULL, 0, 16))
    t.strides = one; /* every row in one place: {1, 0} */
    TRY(mm_matmul_f32(ml, NULL, &t, &a, &w, NULL, 0, 16))
    t.strides = (int64_t[]){1, 1};
    TRY(mm_matmul_f32(ml, NULL, &t, &a, &w, NULL, 0, 16))
    TRY(mm_matmul_f32(ml, NULL, &c, &a, &w, NULL, 1, 16))
    kiln_aot_tensor e = tensor(NULL, KILN_AOT_F32, none), ea = tensor(NULL, KILN_AOT_F32, (int64_t[]){0, 37});
    TRY(mm_matmul_f32(ml, NULL, &e, &ea, &w, NULL, 0, 16))
    kiln_aot_tensor l = tensor(memory(16000, 0), KILN_AOT_F32, big);
    int s = softmax_f32(sl, NULL, &l, &l);
    say(s, softmax_strerror(s), softmax_detail());
    softmax_lib *no;
    s = softmax_load(&no, -7);
    say(s, softmax_strerror(s), softmax_detail());
    softmax_unload(sl), gelu_unload(gl), mm_unload(ml);
    return 0;
}
C
cc -std=c11 -O1 -I. use.c softmax.o gelu.o mm.o -o use || exit
"$KILN" data gen x.npy 'randn(37x1000,f32,5)'
"$KILN" data gen b.safetensors 'b=randn(9x333,bf16,6)'
"$KILN" data gen a.npy 'randn(33x37,f32,1)'; "$KILN" data gen w.npy 'randn(37x70,f32,2)'
"$KILN" data gen v.npy 'randn(70,f32,3)'
cp b.safetensors b.npy # its end, too, is the elements
same() { # RAW FILE: the end of FILE is RAW
    tail -c "$(wc -c <$1)" $2 | cmp - $1 && echo "$1 same"
}
run() { LD_LIBRARY_PATH=$fake "$KILN" run "$@" --no-cache >/dev/null; }
compare() { # DEVICE
    run $k/softmax.kiln:softmax x=x.npy --device $1 -o y=y.npy
    run $k/softmax.kiln:softmax x=b.safetensors:b --device $1 -o y=z.safetensors:y
    run $k/gelu.kiln:erf_form "x=randn(37000,f32,5)" --device $1 -o y=g.npy
    run $k/matmul.kiln:matmul a=a.npy b=w.npy -D BM=32 -D BN=16 -D BK=16 --device $1 -o c=c.npy
    run $k/matmul.kiln:matmul a=a.npy b=w.npy bias=v.npy -D ACT=2 -D BM=32 -D BN=32 -D BK=16 --device $1 -o c=cv.npy
    for n in y y8 yx; do same $n.raw y.npy; done
    for n in z z8; do same $n.raw z.safetensors; done
    for n in g g8; do same $n.raw g.npy; done
    same c.raw c.npy; same cv.raw cv.npy
}
echo "== cpu"
./use; compare cpu
echo "== no driver"
LD_LIBRARY_PATH=/nonexistent ./ex >/dev/null && echo "the CPU needs none"
echo "== cuda"
if [ -e "$fake/libcuda.so.1" ]; then
    for d in 0 -2; do
        rm -f *.raw
        LD_LIBRARY_PATH=$fake ./use $d quiet; compare cuda >log; cat log | wc -l
    done
    for cc in 80 86; do
        FAKECUDA_CC=$cc LD_LIBRARY_PATH=$fake ./use 0 quiet; compare cuda | wc -l
    done
    FAKECUDA_CC=75 LD_LIBRARY_PATH=$fake ./use 0 quiet
    FAKECUDA_FAIL=cuLaunchKernel:1:700 LD_LIBRARY_PATH=$fake ./use 0 quiet
else
    printf '9\n9\n9\n9\nsoftmax: -12\nsoftmax: -13\n'
fi
echo "== other clauses"
cat >k.kiln <<'K'
/* half as many elements in y; a scalar from the caller; a requirement; an initial value */
kernel half(i32 n, f32 a, bool neg, u8 v = 3, f32 y[n], const f32 x[2 * n + 1], i32 count[1] = 7)
    grid(cdiv(n, 4))
    requires(n % 2 == 0, "n is even")
    requires(n < 100, "few")
{
    i64 i = program_id(0) * 4;
    y[i:4] = (neg ? -a : a) * x[i:4] + v;
    if (i == 0)
        count[0] = count[0] + n;
}
K
build k.kiln --targets cpu,sm_80 -o half
cc -std=c11 -O2 -Wall -Wextra -Werror -c half.c
sed -n '/^int half_f/,/;/p; /^int half(/,/;/p' half.h
cat >h.c <<'C'
#include <stdio.h>
#include "half.h"
int main(int argc, char **argv)
{
    float x[13] = {1, 2, 3, 4, 5, 6}, y[6];
    int32_t count[1] = {100};
    half_lib *l;
    (void)argv;
    if (half_load(&l, -1) || argc > 9)
        return 1;
    for (int64_t n = 6; n > 2; n--) {
        int64_t nx = 2 * n + 1 + (n == 3), one = 1;
        kiln_aot_tensor ty = {y, KILN_AOT_F32, 1, &n, NULL, 0}, tx = {x, KILN_AOT_F32, 1, &nx, NULL, 0};
        kiln_aot_tensor tc = {count, KILN_AOT_I32, 1, &one, NULL, 0};
        int s = half(l, NULL, 0.5f, n == 4, 3, &ty, &tx, &tc);
        printf("%d %s; %g %g %d\n", s, half_detail(), (double)y[0], (double)y[n - 1], count[0]);
    }
    puts(half_manifest_json());
    half_unload(l);
    return 0;
}
C
cc -std=c11 -I. h.c half.o -o h && ./h
echo "== refused"
build $k/softmax.kiln:softmax -o s 2>&1
build $k/softmax.kiln:softmax --targets sm_12 -D BLOCK=8 -o s 2>&1
build $k/softmax.kiln:softmax -D BLOCK=8:x -o s 2>&1
build $k/softmax.kiln:softmax -D BLOCK=8 -D NONE=1 -o s 2>&1
build $k/softmax.kiln:softmax -D BLOCK=8 -D BLOCK=9 -o s 2>&1
build $k/softmax.kiln:softmax -D T=f32,7 -D BLOCK=8 -o s 2>&1 | sed "s,$SRC/,,"
build $k/softmax.kiln:softmax --targets sm_80 -D BLOCK=1048576 -o left_out 2>&1 | sed "s,$SRC/,,"
build $k/softmax.kiln:softmax -D BLOCK=8 -o int 2>&1
cat >l.kiln <<'K'
kernel load(f32 y[1]) grid(1) { y[0] = 1; }
K
build l.kiln -o s 2>&1
build $k/groupnorm.kiln -D BLOCK=8 -o s 2>&1
build $k/softmax.kiln:none -o s 2>&1 | sed "s,$SRC/,,"
build $k/softmax.kiln -o a-b 2>&1
build 2>&1
[ ! -e s.c ] && [ ! -e s.h ]
