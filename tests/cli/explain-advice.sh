# What K2101, K2102, K2104, K2301, K2401 and K2502 find in kernels of beginners, and what they advise.
cat >k.kiln <<'K'
kernel scale(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 1024) grid(cdiv(n, B)) warps(4)
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B];
}
kernel columns(i64 m, i64 n, f32 y[n], const f32 x[m][n], constexpr i64 C = 64) grid(cdiv(n, C)) warps(1)
{
    i64 c = program_id(0) * C;
    f32 sum[C] = 0;
    for (i64 r = 0; r < m; r++)
        sum += x[r][c:C];
    y[c:C] = sum;
}
K
cat >places.kiln <<'K'
kernel count(i64 n, i64 bins, i32 h[bins], const u8 x[n], constexpr i64 B = 1024) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    atomic_add(h[(i32)x[i:B]], 1, .mask = inside(x[i:B]));
}
kernel steps(i64 n, f32 y[n], const f32 x[2 * n], constexpr i64 B = 1024) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = x[2 * i:B:2] + x[2 * i + 1:B:2];
}
kernel back(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 1024) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = x[n - 1 - i:B:-1] + x[n - 1 - (i + range(B))];
}
kernel shift(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 1024, constexpr i64 W = 4) grid(cdiv(n, B)) warps(W)
{
    i64 i = program_id(0) * B;
    y[i:B] = load(x[i - 1:B], 0) + x[i + 1:B];
}
kernel put(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 1024) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[n - 1 - i:B:-1] = x[i:B];
}
kernel copies(i64 n, i64 k, i32 h[k][256], const u8 x[n], constexpr i64 B = 1024) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    atomic_add(h[program_id(0) % k][(i32)x[i:B]], 1);
}
kernel turned(i64 m, i64 n, f32 y[m * n], const f32 x[n][m], constexpr i64 B = 1024) grid(cdiv(m * n, B))
{
    i64 i = program_id(0) * B;
    auto t = i + range(B);
    y[i:B] = x[t % n][t / n];
}
K
cat >stencil.kiln <<'K'
kernel stencil(i64 h, i64 w, f32 y[h][w], const f32 x[h][w], constexpr i64 BH = 16, constexpr i64 BW = 64)
    grid(cdiv(h, BH), cdiv(w, BW))
{
    i64 i = program_id(0) * BH, j = program_id(1) * BW;
    y[i:BH][j:BW] = x[i:BH][j:BW] + x[i:BH][j + 1:BW] + load(x[i:BH][j - 1:BW], 0);
}
K
. "$SRC/tests/explain/stub.sh"
echo "== K2301: all warps fit, with 4 bytes each; blocks of the grid that go round, and enough of them"
k r32 k.kiln:scale x=10000000:f32 B=128 --gpu H200
k r32 k.kiln:columns x=8192x8448:f32 --gpu H200
k r32 k.kiln:columns x=8192x8448:f32 C=2048 --gpu H200
k r32 k.kiln:columns x=2x8448:f32 --gpu H200
echo "== K2104: 256 elements for 16 million numbers, which are data; 1 million that are known; few of them; 64 copies; one element"
k r32 places.kiln:count x=16777216:u8 bins=256 --gpu H200
k r32 places.kiln:count x='randint(1048576,u8,256)' bins=256 --gpu H200
k r32 places.kiln:count x='randint(2048,u8,256)' bins=65536 --gpu H200
k r32 places.kiln:copies x=16777216:u8 k=64 --gpu H200
k r32 places.kiln:count x=16777216:u8 bins=1 --gpu H200
echo "== K2101, K2102: steps, backwards, places that are computed, a shift; one element a lane"
k r32 places.kiln:steps x=2097152:f32 --gpu H200
k r32 places.kiln:back x=1048576:f32 --gpu H200
k r32 places.kiln:shift x=1048576:f32 --gpu H200
k r32 places.kiln:shift x=1048576:f32 B=256 W=8 --gpu H200
echo "== K2101 where each sector is asked for again by the same block: not loads, which find it in L1, but stores"
k r32 places.kiln:put x=1048576:f32 --gpu H200
k r32 stencil.kiln:stencil x=2048x2048:f32 --gpu H200
echo "== K2502 without a loop"
k r32 places.kiln:turned x=1024x1024:f32 --gpu H200
echo "== K2401: what spills in a loop"
k spill k.kiln:columns x=8192x8448:f32 C=2048 --gpu H200
