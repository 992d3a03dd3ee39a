# `kiln tune` on a GPU: the driver is the one of tests/fakecuda, whose events are always 20 us apart,
# so that nothing can be faster than the default.
fake=$(dirname "$KILN")/tests/fakecuda
[ -e "$fake/libcuda.so.1" ] || { echo "no fake driver is built" >&2; exit 77; }
unset CUDA_VISIBLE_DEVICES
cat >k.kiln <<'K'
kernel grow(i64 n, f32 x[n], constexpr i64 B = 256, constexpr i64 BAD = 0) grid(cdiv(n, B))
    tune(B: 128, 1024; warps: 2, 4; BAD: 0, 1)
{
    i64 i = program_id(0) * B;
    x[i:B] = 2 * x[i:B] + 1 + BAD;
}
K
export LD_LIBRARY_PATH=$fake
hide() { sed -E 's/pruned in [^;]*; ([0-9]+) compiled and checked in .*/pruned, \1 compiled/; s/(after|in) [0-9]+ rounds?/\1 # rounds/; s/rounds, [0-9.]+ s/rounds, # s/; s/; the time was up.*//'; }
"$KILN" tune k.kiln x=3000:f32 --device cuda --budget 0.5 -v 2>&1 | hide
sed -E 's/source .*/source HASH/' k.kiln.tune
echo "== what takes it"
sed -i 's/use .*/use B=1024 warps=8/' k.kiln.tune
"$KILN" run k.kiln 'x=zeros(3000,f32)' --device cuda 2>&1
"$KILN" bench k.kiln x=3000:f32 --device cuda --samples 3 --measure warm --format json 2>&1 |
    grep -E 'tuned|"threads"|"grid"' | tail -3
"$KILN" bench k.kiln x=3000:f32 --device cuda --samples 3 --measure warm --format json --no-tune 2>&1 |
    grep -E 'tuned|"threads"|"grid"' | tail -2
echo "== what a wrong one dominates"
cat >sum.kiln <<'K'
kernel sum(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 256, constexpr i64 N = 3) grid(cdiv(n, B))
    tune(N: 0, 2; B: 128, 512; warps: 4)
{
    i64 i = program_id(0) * B;
    f32 s[B] = 0;
    for (i64 k = 0; k < N; k++)
        s = max(s, abs(x[i:B]) + 0 * (f32)k);
    y[i:B] = s;
}
K
"$KILN" tune sum.kiln x=300000:f32 --device cuda --dry-run -v
"$KILN" tune sum.kiln x=300000:f32 --device cuda --budget 0.3 -v 2>/dev/null | hide | sed 's/: y: .*//'
echo "== what comes with the library, by kiln_nn.h"
test=$(dirname "$KILN")/tests/api/test_tune
for n in "NVIDIA H200" "NVIDIA H200 NVL" "Other"; do
    FAKECUDA_NAME=$n "$test" 2>&1 | grep '^matmul on\|FAILED'
done
echo "== a device with an odd name"
export FAKECUDA_NAME="  Odd  #2
use B=1 "
"$KILN" tune k.kiln x=3000:f32 --device cuda --budget 0.1 -o odd.tune 2>&1 | sed -n '1p;$p'
sed -i 's/^    use .*/    use B=1024/' odd.tune
grep device odd.tune
"$KILN" run k.kiln 'x=zeros(3000,f32)' --device cuda --tune odd.tune 2>&1 | head -1
