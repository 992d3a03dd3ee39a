# K2301, K2302, K2303, K2401: a launch that each note is for, and one that it is not for.
cat >k.kiln <<'K'
kernel scale(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 1024) grid(cdiv(n, B)) warps(4)
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B];
}
kernel warp(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 32) grid(n / B)
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B];
}
kernel wide(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 8192) grid(cdiv(n, B)) warps(8)
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B];
}
kernel busy(i64 n, f32 y[n], const f32 x[n], constexpr i64 TURNS = 1024, constexpr i64 B = 8192)
    grid(cdiv(n, B)) warps(32)
{
    i64 i = program_id(0) * B;
    auto v = x[i:B];
    for (i64 k = 0; k < TURNS; k++)
        v = v * 0.5 + 1;
    y[i:B] = v;
}
kernel columns(i64 n, i64 m, f32 y[m], const f32 x[n][m], constexpr i64 B = 64) grid(m) warps(2)
{
    i64 c = program_id(0);
    f32 s = 0;
#pragma unroll
    for (i64 k = 0; k < 3; k++)
        s += sum(x[k * B : B][c]);
    y[c] = s;
}
K
. "$SRC/tests/explain/stub.sh"
echo "== K2301: 3 blocks of 4 KiB are too little for memory; 16 are not; nor when blocks are large"
k r168 k.kiln:scale x=10000000:f32 --gpu H200
k r32 k.kiln:scale x=10000000:f32 --gpu H200
k r168 k.kiln:wide x=100000000:f32 --gpu H200
k r32 k.kiln:warp x=10000000:f32 --gpu H200
echo "== what a launch leaves alone: one element, most of an array"
$KILN explain k.kiln:warp x=3201:f32 --registers none | grep -E '^ +[xy]: '
$KILN explain k.kiln:warp x=1000:f32 B=512 --registers none | grep -E '^ +[xy]: '
echo "== K2302: 160 blocks, one a multiprocessor of 148; 296 are two full waves, 295 almost; many waves"
k r255 k.kiln:wide x=1310720:f32 --gpu B200
k r255 k.kiln:wide x=2424832:f32 --gpu B200
k r255 k.kiln:wide x=2416640:f32 --gpu B200
k r255 k.kiln:wide x=20000000:f32 --gpu B200
echo "== K2302 where arithmetic bounds: 280 blocks, two a multiprocessor; 792 are three full waves"
k r28 k.kiln:busy x=2293760:f32 --gpu H200
k r28 k.kiln:busy x=6488064:f32 --gpu H200
echo "== instances of a finding at one place: the first and a count, or each"
k r32 k.kiln:columns x=192x4096:f32 --gpu H200 | grep -E 'note.K2101|the first|more like'
k r32 k.kiln:columns x=192x4096:f32 --gpu H200 --all | grep -E 'note.K2101|the first|more like'
echo "== K2303: 8 blocks for 132 multiprocessors; 132 for 132"
k r32 k.kiln:wide x=65536:f32 --gpu H200
k r32 k.kiln:wide x=1081344:f32 --gpu H200
echo "== K2401: spills, and none"
k spill k.kiln:scale x=10000000:f32 --gpu H200
tool spill4 64 4
tool spill2 64 2
for t in spill4 spill2; do # of 256 bytes that a thread moves
    k $t k.kiln:wide x=1081344:f32 --gpu H200 | grep -c K2401
done
k r32 k.kiln:scale x=10000000:f32 --gpu H200
echo "== without registers neither occupancy nor waves is guessed"
"$KILN" explain k.kiln:scale x=10000000:f32 --gpu H200 --registers none | sed -n '/registers/p; /occupancy/p; /waves/p; /^notes/p'
"$KILN" explain k.kiln:wide x=65536:f32 --gpu H200 --registers none | grep -c 'note\[K2303'
