# kiln explain: the other kernels of a file when one does not compile; a loop without end.
cat >k.kiln <<'K'
kernel a(i64 n, f32 y[n]) grid(cdiv(n, 256)) { y[program_id(0) * 256:256] = 1; }
kernel b(i64 n, f32 y[n], constexpr i64 B = -1) grid(1) { y[0:B] = 1; }
kernel c(i64 n, f32 y[n]) grid(cdiv(n, 512)) { y[program_id(0) * 512:512] = 1; }
K
e() { timeout 60 "$KILN" explain "$@" --registers none 2>err >out; echo "rc $?"; }
e k.kiln y=1000:f32
grep -E '^[a-z]+ +k.kiln' out | cut -c1-20
cat err
e k.kiln y=1000:f32 --format json
grep '"kernel"' out
e k.kiln:b y=1000:f32
wc -c <out
cat >loop.kiln <<'K'
kernel f(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 256) grid(cdiv(n, B))
{
    i64 i = 0;
    f32 s[B] = 0;
    while (i < 10)
        s = s + x[program_id(0) * B:B];
    y[program_id(0) * B:B] = s;
}
kernel g(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 256))
{
    y[program_id(0) * 256:256] = 2 * x[program_id(0) * 256:256];
}
K
printf 'cc = 9.0\nsms = 132\n\nsms = 2\n' >twice.gpu
e k.kiln:a y=1000:f32 --gpu twice.gpu
cat err
e loop.kiln:f x=1000:f32
grep -E 'not exact|at least|unknown  ' out
e loop.kiln:f x=1000:f32 --measure sim
cat err
e loop.kiln:g x=10000000000:f32 --measure sim
cat err
